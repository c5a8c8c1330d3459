/* The loops of ops/kernels/vector/vec.h, compiled once per instruction set with PRN_SIMD naming the table.
 * Invariant: a row's last, partial vector passes the same instructions as the full ones, so an element's result does
 * not depend on where it stands. */
#include "base/threads/cancel.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/vec.h"
#include "ops/kernels/vector/vec_math.h"
#include "ops/kernels/vector/vec_wide.h"

/* ---- maps: `x`, and the splat parameters `va` and `vb`, are in scope of the expression */

/* `vectors` of them go side by side, as far as the compiler puts their operations in turns: one's is a chain, of which
 * a processor sees but the beginning. */
#define MAP(name, expression) MAP_BY(4, name, expression)
#define MAP_BY(vectors, name, expression)                                                                              \
    VEC_INLINE vf f_##name(const vf x, const vf va, const vf vb)                                                       \
    {                                                                                                                  \
        (void)va, (void)vb;                                                                                            \
        return expression;                                                                                             \
    }                                                                                                                  \
    static void map_##name(float *y, const float *x_, int64_t n, float a, float b)                                     \
    {                                                                                                                  \
        const vf va = v_splat(a), vb = v_splat(b);                                                                     \
        int64_t i = 0;                                                                                                 \
        for (; i + vectors * VEC_LANES <= n; i += vectors * VEC_LANES) {                                               \
            vf some[vectors];                                                                                          \
            PRN_UNROLL                                                                                                 \
            for (int v = 0; v < vectors; v++) some[v] = v_load(x_ + i + v * VEC_LANES);                                \
            PRN_UNROLL                                                                                                 \
            for (int v = 0; v < vectors; v++) some[v] = f_##name(some[v], va, vb);                                     \
            PRN_UNROLL                                                                                                 \
            for (int v = 0; v < vectors; v++) v_store(y + i + v * VEC_LANES, some[v]);                                 \
        }                                                                                                              \
        for (; i < n; i += VEC_LANES) v_store_part(y + i, f_##name(v_load_part(x_ + i, n - i, 0.0f), va, vb), n - i);  \
    }

#define ZERO v_splat(0.0f)
#define ONE v_splat(1.0f)

MAP(copy, x)
MAP(affine, x *va + vb)
MAP(relu, v_select(x < ZERO, ZERO, x))
MAP(clip, v_clamp(x, va, vb))
MAP(leaky_relu, v_select(x < ZERO, x *va, x))
MAP(thresholded_relu, v_select((x > va) | (x != x), x, ZERO))
MAP(sigmoid, v_sigmoid(x))
MAP(tanh, v_tanh(x))
MAP(exp, v_exp(x))
MAP(log, v_log(x))
MAP(erf, v_erf(x))
MAP(gelu_erf, v_gelu_erf(x))
MAP(gelu_tanh, v_gelu_tanh(x))
MAP(silu, x / v_exp_and_1(-(x * va)))
MAP(hard_sigmoid, v_clamp(x *va + vb, ZERO, ONE))
MAP(hard_swish, x *v_clamp(x * (1.0f / 6.0f) + 0.5f, ZERO, ONE))
MAP(elu, v_elu(x, va))
MAP(selu, vb *v_elu(x, va))
MAP(celu, v_select(x > ZERO, x, va *v_expm1_negative(x / va)))
MAP(softplus, v_softplus(x))
MAP(softsign, x / (v_abs(x) + 1.0f))
MAP(mish, v_mish(x))
MAP(sqrt, v_sqrt(x))
MAP(pow_half, v_abs(v_sqrt(v_select(x == -INFINITY, -x, x))))
MAP(reciprocal, 1.0f / x)
MAP(square, x *x)
MAP(cube, x *x *x)
MAP(abs, v_abs(x))
MAP(neg, -x)
MAP(floor, v_floor(x))
MAP(ceil, v_ceil(x))
MAP(round, v_round(x))
MAP(sign, v_sign(x))
MAP(shrink, v_select(x < -va, x + vb, v_select(x > va, x - vb, v_select(x != x, x, ZERO))))
MAP(sin, v_sin(x))
MAP(cos, v_cos(x))
MAP(tan, v_tan(x))
MAP(asin, v_asin(x))
MAP(acos, v_acos(x))
MAP_BY(2, atan, v_atan(x))

/* ---- binary operators on vectors `a` and `b` */

/* The vector that a period dividing the lanes comes to. */
static vf vec_simd_repeat(const float *p, int64_t period, int64_t phase)
{
    vf v = {0};
    for (int64_t i = 0; i < VEC_LANES; i++) v[i] = p[(phase + i) % period];
    return v;
}

#define BINARY(name, expression)                                                                                       \
    VEC_INLINE vf op_##name(vf a, vf b)                                                                                \
    {                                                                                                                  \
        return expression;                                                                                             \
    }                                                                                                                  \
    static void vv_##name(float *y, const float *a, const float *b, int64_t n)                                         \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i += VEC_LANES) {                                                                   \
            const vf va = v_load_part(a + i, n - i, 0.0f), vb = v_load_part(b + i, n - i, 0.0f);                       \
            v_store_part(y + i, op_##name(va, vb), n - i);                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void vc_##name(float *y, const float *a, vf b, int64_t n)                                                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i += VEC_LANES) {                                                                   \
            v_store_part(y + i, op_##name(v_load_part(a + i, n - i, 0.0f), b), n - i);                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void cv_##name(float *y, vf a, const float *b, int64_t n)                                                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i += VEC_LANES) {                                                                   \
            v_store_part(y + i, op_##name(a, v_load_part(b + i, n - i, 0.0f)), n - i);                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void vs_##name(float *y, const float *a, float b, int64_t n)                                                \
    {                                                                                                                  \
        vc_##name(y, a, v_splat(b), n);                                                                                \
    }                                                                                                                  \
    static void sv_##name(float *y, float a, const float *b, int64_t n)                                                \
    {                                                                                                                  \
        cv_##name(y, v_splat(a), b, n);                                                                                \
    }                                                                                                                  \
    static void vr_##name(float *y, const float *a, const float *b, int64_t n, int64_t period, int64_t phase)          \
    {                                                                                                                  \
        if (VEC_LANES % period == 0) {                                                                                 \
            vc_##name(y, a, vec_simd_repeat(b, period, phase), n);                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; phase = 0) {                                                                        \
            const int64_t count = n - i < period - phase ? n - i : period - phase;                                     \
            vv_##name(y + i, a + i, b + phase, count);                                                                 \
            i += count;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void rv_##name(float *y, const float *a, const float *b, int64_t n, int64_t period, int64_t phase)          \
    {                                                                                                                  \
        if (VEC_LANES % period == 0) {                                                                                 \
            cv_##name(y, vec_simd_repeat(a, period, phase), b, n);                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; phase = 0) {                                                                        \
            const int64_t count = n - i < period - phase ? n - i : period - phase;                                     \
            vv_##name(y + i, a + phase, b + i, count);                                                                 \
            i += count;                                                                                                \
        }                                                                                                              \
    }

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
BINARY(min, v_min(a, b))
BINARY(max, v_max(a, b))
BINARY(prelu, v_select(a < ZERO, a *b, a))
BINARY(pow, v_pow(a, b))

static void scale_shift(float *y, const float *x, const float *scale, const float *shift, int64_t n)
{
    for (int64_t i = 0; i < n; i += VEC_LANES) {
        const int64_t left = n - i;
        const vf s = v_load_part(scale + i, left, 0.0f), t = v_load_part(shift + i, left, 0.0f);
        v_store_part(y + i, v_load_part(x + i, left, 0.0f) * s + t, left);
    }
}

static void vec_simd_scale_shift_rows(float *y, const float *x, const float *scale, const float *shift, int64_t rows,
                                      int64_t width)
{
    if (VEC_LANES % width == 0) {
        const vf s = vec_simd_repeat(scale, width, 0), t = vec_simd_repeat(shift, width, 0);
        for (int64_t i = 0, n = rows * width; i < n; i += VEC_LANES) {
            v_store_part(y + i, v_load_part(x + i, n - i, 0.0f) * s + t, n - i);
        }
        return;
    }
    for (int64_t r = 0; r < rows; r++) scale_shift(y + r * width, x + r * width, scale, shift, width);
}

static void vec_simd_add_scaled(float *y, const float *x, float a, int64_t n)
{
    const vf va = v_splat(a);
    for (int64_t i = 0; i < n; i += VEC_LANES) {
        const int64_t left = n - i;
        v_store_part(y + i, v_load_part(x + i, left, 0.0f) * va + v_load_part(y + i, left, 0.0f), left);
    }
}

static void add_four(float *y, const float *const x[4], int64_t n)
{
    const float *a = x[0], *b = x[1], *c = x[2], *d = x[3];
    for (int64_t i = 0; i < n; i += VEC_LANES) {
        const int64_t left = n - i;
        const vf low = v_load_part(a + i, left, 0.0f) + v_load_part(b + i, left, 0.0f);
        const vf high = v_load_part(c + i, left, 0.0f) + v_load_part(d + i, left, 0.0f);
        v_store_part(y + i, v_load_part(y + i, left, 0.0f) + (low + high), left);
    }
}

/* ---- reductions */

enum { BLOCK = 4096, LOOK_UP = 1 << 18 };

/* True if a long row is left at element `at`, a multiple of BLOCK. */
VEC_INLINE bool vec_simd_is_left(int64_t at)
{
    return (at & (LOOK_UP - 1)) == LOOK_UP - BLOCK && prn_cancelled();
}

/* The end of the run of elements from `begin` on behind which the next look is due; `begin` itself if the work is
 * cancelled. */
VEC_INLINE int64_t run_end(int64_t begin, int64_t n)
{
    if (n - begin <= LOOK_UP) return n;
    return prn_cancelled() ? begin : begin + LOOK_UP;
}

/* Loops over [0, n) in runs of elements [begin, end). */
#define EACH_RUN(begin, end, n)                                                                                        \
    for (int64_t begin = 0, end; begin < (n) && (end = run_end(begin, n)) > begin; begin = end)

/* Sums lie in 64 lanes, as many vectors as that takes, so that they are the same for every width; several accumulators
 * hide the latency of addition as well. Lane i of 16 has the elements i, i + 16, …; what is left of a row goes to the
 * first 16. */
#define SUM_LANES 16
#define SUM_VECS (SUM_LANES / VEC_LANES)

#define BLOCK_SUM(name, parameters, load, term)                                                                        \
    static float name parameters                                                                                       \
    {                                                                                                                  \
        vf sum[4 * SUM_VECS] = {{0}};                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + 4 * SUM_LANES <= n; i += 4 * SUM_LANES) {                                                           \
            PRN_UNROLL                                                                                                 \
            for (int k = 0; k < 4 * SUM_VECS; k++) {                                                                   \
                const vf x = load(i + k * VEC_LANES, VEC_LANES);                                                       \
                sum[k] += term(i + k * VEC_LANES, VEC_LANES);                                                          \
            }                                                                                                          \
        }                                                                                                              \
        for (int k = 0; i < n; i += VEC_LANES, k = (k + 1) % SUM_VECS) {                                               \
            const vf x = load(i, n - i);                                                                               \
            sum[k] += term(i, n - i);                                                                                  \
        }                                                                                                              \
        for (int k = 0; k < SUM_VECS; k++)                                                                             \
            sum[k] = (sum[k] + sum[SUM_VECS + k]) + (sum[2 * SUM_VECS + k] + sum[3 * SUM_VECS + k]);                   \
        return v_sum_16(sum);                                                                                          \
    }

#define LOAD_X(at, left) v_load_part(p + (at), left, 0.0f)
#define LOAD_X_OR_C(at, left) v_load_part(p + (at), left, c)
#define TERM_SUM(at, left) x
#define TERM_SQUARE(at, left) x *x
#define TERM_ABS(at, left) v_abs(x)
#define TERM_DOT(at, left) x *v_load_part(q + (at), left, 0.0f)
#define TERM_DEVIATION(at, left) (x - c) * (x - c)

BLOCK_SUM(block_sum, (const float *p, int64_t n), LOAD_X, TERM_SUM)
BLOCK_SUM(block_sum_squares, (const float *p, int64_t n), LOAD_X, TERM_SQUARE)
BLOCK_SUM(block_sum_abs, (const float *p, int64_t n), LOAD_X, TERM_ABS)
BLOCK_SUM(block_dot, (const float *p, int64_t n, const float *q), LOAD_X, TERM_DOT)
BLOCK_SUM(block_deviations, (const float *p, int64_t n, float c), LOAD_X_OR_C, TERM_DEVIATION)

/* Adds up a block function over a row; `arguments` may use the offset i. */
#define ROW_SUM(total, block, n, ...)                                                                                  \
    double total = 0.0;                                                                                                \
    for (int64_t i = 0; i < (n) && !vec_simd_is_left(i); i += BLOCK) {                                                 \
        const int64_t count = (n) - i < BLOCK ? (n) - i : BLOCK;                                                       \
        total += (double)block(__VA_ARGS__);                                                                           \
    }

static double row_sum(const float *x, int64_t n)
{
    ROW_SUM(total, block_sum, n, x + i, count)
    return total;
}

static double row_sum_squares(const float *x, int64_t n)
{
    ROW_SUM(total, block_sum_squares, n, x + i, count)
    return total;
}

static double row_sum_abs(const float *x, int64_t n)
{
    ROW_SUM(total, block_sum_abs, n, x + i, count)
    return total;
}

static double row_dot(const float *a, const float *b, int64_t n)
{
    ROW_SUM(total, block_dot, n, a + i, count, b + i)
    return total;
}

#define ROW_EXTREME(name, empty, pick)                                                                                 \
    static float name(const float *x, int64_t n)                                                                       \
    {                                                                                                                  \
        vf best[2] = {v_splat(empty), v_splat(empty)};                                                                 \
        EACH_RUN(begin, end, n)                                                                                        \
        {                                                                                                              \
            int64_t i = begin;                                                                                         \
            for (; i + 2 * VEC_LANES <= end; i += 2 * VEC_LANES) {                                                     \
                best[0] = pick(v_load(x + i), best[0]);                                                                \
                best[1] = pick(v_load(x + i + VEC_LANES), best[1]);                                                    \
            }                                                                                                          \
            for (; i < end; i += VEC_LANES) best[0] = pick(v_load_part(x + i, end - i, empty), best[0]);               \
        }                                                                                                              \
        best[0] = pick(best[0], best[1]);                                                                              \
        V_FOLD(best[0], pick);                                                                                         \
        return best[0][0];                                                                                             \
    }

ROW_EXTREME(row_max, -INFINITY, v_max)
ROW_EXTREME(row_min, INFINITY, v_min)

static void vec_simd_sum_rows(float *y, const float *x, int64_t n, int64_t rows, double divisor)
{
    for (int64_t r = 0; r < rows && !prn_cancelled_at(r); r++) y[r] = (float)(row_sum(x + r * n, n) / divisor);
}

static void max_rows(float *y, const float *x, int64_t n, int64_t rows)
{
    for (int64_t r = 0; r < rows && !prn_cancelled_at(r); r++) y[r] = row_max(x + r * n, n);
}

static void min_rows(float *y, const float *x, int64_t n, int64_t rows)
{
    for (int64_t r = 0; r < rows && !prn_cancelled_at(r); r++) y[r] = row_min(x + r * n, n);
}

static void mean_variance(double *mean, double *variance, const float *x, int64_t n)
{
    *mean = row_sum(x, n) / (double)n;
    const float center = (float)*mean;
    ROW_SUM(total, block_deviations, n, x + i, count, center)
    const double shift = *mean - (double)center, result = total / (double)n - shift * shift;
    *variance = result < 0.0 ? 0.0 : result;
}

/* ---- rows */

static void fill_where(float *y, const uint8_t *choice, bool wanted, float fill, int64_t n)
{
    EACH_RUN(begin, end, n)
    {
        for (int64_t i = begin; i < end; i++) y[i] = (choice[i] != 0) == wanted ? fill : y[i];
    }
}

/* y = exp(scale (x - shift)), and its sum; the difference comes first, as it is 0 for the largest x however large that
 * is. Weights that are subnormal are 0: by them the product behind a softmax takes ten times as long. */
VEC_INLINE double scaled_exp_sum(float *y, const float *x, int64_t n, float scale, float shift)
{
    const vf vk = v_splat(scale), vs = v_splat(shift);
    double total = 0.0;
    for (int64_t begin = 0; begin < n && !vec_simd_is_left(begin); begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        vf sum[SUM_VECS] = {{0}};
        int64_t i = begin;
        for (; i + SUM_LANES <= end; i += SUM_LANES) {
            PRN_UNROLL
            for (int k = 0; k < SUM_VECS; k++) {
                const vf e = v_exp_normal((v_load(x + i + k * VEC_LANES) - vs) * vk);
                v_store(y + i + k * VEC_LANES, e);
                sum[k] += e;
            }
        }
        for (int k = 0; i < end; i += VEC_LANES, k++) {
            const vf e = v_exp_normal((v_load_part(x + i, end - i, -INFINITY) - vs) * vk);
            v_store_part(y + i, e, end - i);
            sum[k] += e;
        }
        total += (double)v_sum_16(sum);
    }
    return total;
}

static double exp_sum(float *y, const float *x, int64_t n, float shift)
{
    return scaled_exp_sum(y, x, n, 1.0f, shift);
}

/* The largest; NaN is passed over, which makes the sum of a softmax NaN in any case. */
static float row_peak(const float *x, int64_t n)
{
    vf best[2] = {v_splat(-INFINITY), v_splat(-INFINITY)};
    EACH_RUN(begin, end, n)
    {
        int64_t i = begin;
        for (; i + 2 * VEC_LANES <= end; i += 2 * VEC_LANES) {
            best[0] = v_larger(best[0], v_load(x + i));
            best[1] = v_larger(best[1], v_load(x + i + VEC_LANES));
        }
        for (; i < end; i += VEC_LANES) best[0] = v_larger(best[0], v_load_part(x + i, end - i, -INFINITY));
    }
    best[0] = v_larger(best[0], best[1]);
    V_FOLD(best[0], v_larger);
    return best[0][0];
}

/* y = scale x + mask; returns the largest of y, as row_peak does. */
VEC_INLINE float scale_mask(float *y, const float *x, const float *mask, float scale, int64_t n, const bool masked)
{
    const vf vs = v_splat(scale);
    vf best = v_splat(-INFINITY);
    EACH_RUN(begin, end, n)
    {
        int64_t i = begin;
        for (; i + VEC_LANES <= end; i += VEC_LANES) {
            vf v = v_load(x + i) * vs;
            if (masked) v += v_load(mask + i);
            v_store(y + i, v);
            best = v_larger(best, v);
        }
        if (i == end) continue;
        vf v = v_load_part(x + i, end - i, 0.0f) * vs;
        if (masked) v += v_load_part(mask + i, end - i, 0.0f);
        v_store_part(y + i, v, end - i);
        best = v_larger(best, v_load_part(y + i, end - i, -INFINITY));
    }
    V_FOLD(best, v_larger);
    return best[0];
}

static void vec_simd_softmax_of(float *y, const float *x, int64_t n, float top)
{
    const double sum = exp_sum(y, x, n, top);
    const float scale = (float)(1.0 / sum);
    EACH_RUN(begin, end, n) vs_mul(y + begin, y + begin, scale, end - begin);
}

/* Of a row that one vector holds: the same without loops. */
static void softmax_short(float *y, const float *x, int64_t n)
{
    const vf row = v_load_part(x, n, -INFINITY);
    vf best = v_larger(v_splat(-INFINITY), row), sum[SUM_VECS] = {{0}};
    V_FOLD(best, v_larger);
    sum[0] = v_exp_normal(row - v_splat(best[0]));
    v_store_part(y, sum[0] * v_splat((float)(1.0 / (double)v_sum_16(sum))), n);
}

static void vec_simd_softmax(float *y, const float *x, int64_t n)
{
    if (n > 0 && n <= VEC_LANES) {
        softmax_short(y, x, n);
        return;
    }
    vec_simd_softmax_of(y, x, n, row_peak(x, n));
}

static void softmax_unscaled(float *x, int64_t x_row, const float *mask, int64_t mask_row, float scale, int64_t n,
                             int64_t rows, float *factors)
{
    for (int64_t r = 0; r < rows; r++, x += x_row) {
        double sum;
        if (!mask && scale > 0.0f) {
            sum = scaled_exp_sum(x, x, n, scale, row_peak(x, n));
        } else {
            sum = exp_sum(x, x, n,
                          mask ? scale_mask(x, x, mask + r * mask_row, scale, n, true)
                               : scale_mask(x, x, NULL, scale, n, false));
        }
        factors[r] = (float)(1.0 / sum);
    }
}

VEC_INLINE vf v_plus(vf a, vf b)
{
    return a + b;
}

static bool scale_finite(float *x, float factor, int64_t n)
{
    const vf vk = v_splat(factor);
    vf none = v_splat(0.0f); /* and NaN once something is not finite */
    EACH_RUN(begin, end, n)
    {
        for (int64_t i = begin; i < end; i += VEC_LANES) {
            const vf v = v_load_part(x + i, end - i, 0.0f) * vk;
            v_store_part(x + i, v, end - i);
            none += v - v;
        }
    }
    V_FOLD(none, v_plus);
    return none[0] == 0.0f;
}

static void log_softmax(float *y, const float *x, int64_t n)
{
    const float top = row_max(x, n);
    const vf vt = v_splat(top);
    double sum = 0.0;
    for (int64_t begin = 0; begin < n && !vec_simd_is_left(begin); begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        vf part[SUM_VECS] = {{0}};
        for (int64_t i = begin, k = 0; i < end; i += VEC_LANES, k = (k + 1) % SUM_VECS)
            part[k] += v_exp_normal(v_load_part(x + i, end - i, -INFINITY) - vt);
        sum += (double)v_sum_16(part);
    }
    const vf offset = v_splat((float)log(sum));
    EACH_RUN(begin, end, n)
    {
        for (int64_t i = begin; i < end; i += VEC_LANES)
            v_store_part(y + i, (v_load_part(x + i, end - i, 0.0f) - vt) - offset, end - i);
    }
}

/* Mean and variance of a row of at most `groups` times 16 elements, without loops: beginnings of several rows then go
 * side by side. `groups` is a constant after inlining. */
VEC_INLINE void short_mean_variance(double *mean, double *variance, const float *x, int64_t n, const int groups)
{
    vf sum[SUM_VECS] = {{0}}, square[SUM_VECS] = {{0}};
    PRN_UNROLL
    for (int k = 0; k < groups * SUM_VECS; k++)
        if (n > k * VEC_LANES) sum[k % SUM_VECS] += v_load_part(x + k * VEC_LANES, n - k * VEC_LANES, 0.0f);
    *mean = (double)v_sum_16(sum) / (double)n;
    const float center = (float)*mean;
    PRN_UNROLL
    for (int k = 0; k < groups * SUM_VECS; k++) {
        if (n <= k * VEC_LANES) break;
        const vf off = v_load_part(x + k * VEC_LANES, n - k * VEC_LANES, center) - v_splat(center);
        square[k % SUM_VECS] += off * off;
    }
    const double shift = *mean - (double)center, result = (double)v_sum_16(square) / (double)n - shift * shift;
    *variance = result < 0.0 ? 0.0 : result;
}

/* (x - mean) / deviation, scaled and shifted, of one row. Mean and variance are in float64, with a summation order
 * that the row's length alone decides. */
static void layer_norm(float *y, const float *x, const float *scale, const float *shift, int64_t n, float epsilon,
                       float *mean, float *inverse_deviation)
{
    double center, variance;
    if (n <= SUM_LANES)
        short_mean_variance(&center, &variance, x, n, 1);
    else if (n < 4 * SUM_LANES)
        short_mean_variance(&center, &variance, x, n, 4);
    else
        mean_variance(&center, &variance, x, n);
    const float inverse = (float)(1.0 / sqrt(variance + (double)epsilon));
    const vf vm = v_splat((float)center), vk = v_splat(inverse);
    /* One expression, in which every compiler multiplies and adds at once: in branches of their own, versions of gcc
     * differ. -0 changes no sum, not even of -0. */
    const vf one = v_splat(1.0f), nothing = v_splat(-0.0f);
    EACH_RUN(begin, end, n)
    {
        for (int64_t i = begin; i < end; i += VEC_LANES) {
            const int64_t left = end - i;
            const vf times = scale ? v_load_part(scale + i, left, 0.0f) : one;
            const vf plus = shift ? v_load_part(shift + i, left, 0.0f) : nothing;
            v_store_part(y + i, (v_load_part(x + i, left, 0.0f) - vm) * vk * times + plus, left);
        }
    }
    if (mean) *mean = (float)center;
    if (inverse_deviation) *inverse_deviation = inverse;
}

static void rms_norm(float *y, const float *x, const float *scale, int64_t n, float epsilon)
{
    const double square = row_sum_squares(x, n) / (double)n;
    const float inverse = (float)(1.0 / sqrt(square + (double)epsilon));
    if (!scale) {
        EACH_RUN(begin, end, n) vs_mul(y + begin, x + begin, inverse, end - begin);
        return;
    }
    const vf vk = v_splat(inverse);
    EACH_RUN(begin, end, n)
    {
        for (int64_t i = begin; i < end; i += VEC_LANES) {
            const int64_t left = end - i;
            v_store_part(y + i, v_load_part(x + i, left, 0.0f) * vk * v_load_part(scale + i, left, 0.0f), left);
        }
    }
}

/* ---- the table */

const prn_vec_table PRN_SIMD_TABLE(prn_vec_) = {
    .name = PRN_SIMD_NAME,
#define MAP_ROW(symbol, name) [PRN_MAP_##symbol] = map_##name,
    .map = {PRN_MAP_LIST(MAP_ROW)},
#define VV_ROW(symbol, name) [PRN_BINARY_##symbol] = vv_##name,
    .vv = {PRN_BINARY_LIST(VV_ROW)},
#define VS_ROW(symbol, name) [PRN_BINARY_##symbol] = vs_##name,
    .vs = {PRN_BINARY_LIST(VS_ROW)},
#define SV_ROW(symbol, name) [PRN_BINARY_##symbol] = sv_##name,
    .sv = {PRN_BINARY_LIST(SV_ROW)},
#define VR_ROW(symbol, name) [PRN_BINARY_##symbol] = vr_##name,
    .vr = {PRN_BINARY_LIST(VR_ROW)},
#define RV_ROW(symbol, name) [PRN_BINARY_##symbol] = rv_##name,
    .rv = {PRN_BINARY_LIST(RV_ROW)},
    .scale_shift = scale_shift,
    .scale_shift_rows = vec_simd_scale_shift_rows,
    .fill_where = fill_where,
    .add_scaled = vec_simd_add_scaled,
    .add_four = add_four,
    .sum = row_sum,
    .sum_rows = vec_simd_sum_rows,
    .max_rows = max_rows,
    .min_rows = min_rows,
    .sum_squares = row_sum_squares,
    .sum_abs = row_sum_abs,
    .dot = row_dot,
    .max = row_max,
    .min = row_min,
    .mean_variance = mean_variance,
    .exp_sum = exp_sum,
    .softmax = vec_simd_softmax,
    .softmax_unscaled = softmax_unscaled,
    .scale_finite = scale_finite,
    .log_softmax = log_softmax,
    .layer_norm = layer_norm,
    .rms_norm = rms_norm,
};
