/* Elementary functions of float32 vectors computed in double, half a vector at a time, and rounded once: trigonometry
 * and powers, whose reduction or whose exponent needs more than 24 bits. For ops/kernels/vector/vec_simd.c alone.
 *
 * Polynomial coefficients are near-minimax fits (Chebyshev) of the functions named beside them.
 */
#ifndef PRN_OPS_KERNELS_VECTOR_VEC_WIDE_H
#define PRN_OPS_KERNELS_VECTOR_VEC_WIDE_H

#include "ops/kernels/vector/vec_math.h"

typedef double wf __attribute__((vector_size(VEC_BYTES)));
typedef int64_t wi __attribute__((vector_size(VEC_BYTES)));
typedef uint64_t wu __attribute__((vector_size(VEC_BYTES)));
typedef float half_vf __attribute__((vector_size(VEC_BYTES / 2)));

VEC_INLINE wf w_splat(double a)
{
    return a - (wf){0};
}

VEC_INLINE wf w_half(vf x, int upper)
{
    half_vf part;
    memcpy(&part, (const char *)&x + upper * (int)sizeof part, sizeof part);
    return __builtin_convertvector(part, wf);
}

VEC_INLINE vf w_join(wf low, wf high)
{
    const half_vf parts[2] = {__builtin_convertvector(low, half_vf), __builtin_convertvector(high, half_vf)};
    vf x;
    memcpy(&x, parts, sizeof x);
    return x;
}

VEC_INLINE wf w_select(wi mask, wf yes, wf no)
{
    return (wf)((mask & (wi)yes) | (~mask & (wi)no));
}

VEC_INLINE wf w_abs(wf x)
{
    return (wf)((wu)x & UINT64_C(0x7fffffffffffffff));
}

/* x with its sign turned where `sign` is negative. */
VEC_INLINE wf w_turn(wf x, wf sign)
{
    return (wf)((wu)x ^ ((wu)sign & UINT64_C(0x8000000000000000)));
}

VEC_INLINE wf w_sqrt(wf x)
{
#if defined(__AVX512F__)
    return (wf)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
    return (wf)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__) && !defined(__AVX2__)
    return (wf)_mm_sqrt_pd((__m128d)x);
#elif defined(PRN_NEON)
    return (wf)vsqrtq_f64((float64x2_t)x);
#else
    for (int i = 0; i < VEC_LANES / 2; i++) x[i] = sqrt(x[i]);
    return x;
#endif
}

/* Adding it leaves a whole number of less than 2^51 in the low bits. */
#define W_MAGIC 6755399441055744.0

/* ---- sine, cosine, tangent of |x| < 2^26 */

/* x = n pi/2 + r, |r| <= pi/4; the low bits of *n are those of n. The parts of pi/2 have 26 bits, so that n times
 * either of the first two is exact. */
VEC_INLINE wf w_reduce_half_pi(wf x, wi *n)
{
    const wf shifted = x * 0.63661977236758134 + W_MAGIC;
    const wf count = shifted - W_MAGIC;
    *n = (wi)shifted;
    return ((x - count * 0x1.921fb50000000p+0) - count * 0x1.110b460000000p-26) - count * 0x1.1a62633145c07p-54;
}

VEC_INLINE void w_sine_cosine(wf r, wf *sine, wf *cosine)
{
    const wf z = r * r;
    wf p = z * 2.7249895221783179e-06 - 0.00019840086499502466; /* (sin(r) / r - 1) / r^2 */
    p = p * z + 0.0083333318742734724;
    p = p * z - 0.16666666663854166;
    *sine = r * (p * z + 1.0);
    p = z * -2.7237110000082661e-07 + 2.4799861859040923e-05; /* (cos(r) - 1) / r^2 */
    p = p * z - 0.0013888885090290466;
    p = p * z + 0.041666666637384324;
    p = p * z - 0.49999999999963862;
    *cosine = p * z + 1.0;
}

/* The sine of x + quarter pi/2. */
VEC_INLINE wf w_sine(wf x, int64_t quarter)
{
    wi n;
    wf sine, cosine;
    w_sine_cosine(w_reduce_half_pi(x, &n), &sine, &cosine);
    n += quarter;
    return w_turn(w_select(-(n & 1), cosine, sine), (wf)((wu)n << 62));
}

VEC_INLINE wf w_sin(wf x)
{
    return w_sine(x, 0);
}

VEC_INLINE wf w_cos(wf x)
{
    return w_sine(x, 1);
}

VEC_INLINE wf w_tan(wf x)
{
    wi n;
    wf sine, cosine;
    w_sine_cosine(w_reduce_half_pi(x, &n), &sine, &cosine);
    const wi odd = -(n & 1);
    return w_select(odd, -cosine, sine) / w_select(odd, sine, cosine);
}

/* ---- their inverses */

/* (asin(u) / u - 1) / u^2 at z = u^2 <= 1/4 */
VEC_INLINE wf w_asin_rest(wf z)
{
    wf p = z * 0.029317325493147157 + 0.0054334101529608294;
    p = p * z + 0.019309346039053592;
    p = p * z + 0.022131964591565762;
    p = p * z + 0.030397671949378501;
    p = p * z + 0.044642357079606045;
    p = p * z + 0.075000006007588202;
    return p * z + 0.16666666665490842;
}

/* Beyond 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)). */
VEC_INLINE wf w_asin(wf x)
{
    const wf size = w_abs(x);
    const wi large = size > 0.5;
    const wf z = w_select(large, (1.0 - size) * 0.5, size * size), u = w_select(large, w_sqrt(z), size);
    const wf y = u * (w_asin_rest(z) * z + 1.0);
    return w_turn(w_select(large, M_PI_2 - (y + y), y), x);
}

VEC_INLINE wf w_acos(wf x)
{
    const wf size = w_abs(x);
    const wi large = size > 0.5;
    const wf z = w_select(large, (1.0 - size) * 0.5, size * size), u = w_select(large, w_sqrt(z), size);
    const wf y = u * (w_asin_rest(z) * z + 1.0);
    return w_select(large, w_select(x < 0.0, M_PI - (y + y), y + y), M_PI_2 - w_turn(y, x));
}

/* From tan(pi/8) on atan(a) = pi/4 + atan((a - 1) / (a + 1)), from tan(3 pi/8) on pi/2 - atan(1 / a). */
VEC_INLINE wf w_atan(wf x)
{
    const wf size = w_abs(x), zero = {0};
    const wi middle = size > 0.41421356237309503, large = size > 2.4142135623730949;
    const wf above = w_select(large, w_splat(-1.0), w_select(middle, size - 1.0, size));
    const wf below = w_select(large, size, w_select(middle, size + 1.0, w_splat(1.0)));
    const wf base = w_select(large, w_splat(M_PI_2), w_select(middle, w_splat(M_PI_4), zero));
    const wf u = above / below, z = u * u;
    wf p = z * -0.040413136795340789 + 0.0713442004420346; /* (atan(u) / u - 1) / u^2 */
    p = p * z - 0.090288239888461186;
    p = p * z + 0.11107482296730674;
    p = p * z - 0.14285612049476137;
    p = p * z + 0.19999998911295266;
    p = p * z - 0.33333333331428361;
    return w_turn(base + u * (p * z + 1.0), x);
}

/* ---- powers */

/* log2(x) of x = m 2^e > 0, m in [sqrt 1/2, sqrt 2), no subnormal double. */
VEC_INLINE wf w_log2(wf x)
{
    const wu biased = ((wu)x + UINT64_C(0x00095f619980c433)) >> 52;
    const wf e = (wf)(biased | UINT64_C(0x4330000000000000)) - 4503599627371519.0;
    const wf m = (wf)((wu)x - ((biased - 1023) << 52));
    const wf s = (m - 1.0) / (m + 1.0), z = s * s;
    wf p = z * 0.073059938364501351 + 0.076660131480016186; /* (atanh(s) / s - 1) / s^2 */
    p = p * z + 0.090914406280542259;
    p = p * z + 0.11111105617378127;
    p = p * z + 0.14285714312648332;
    p = p * z + 0.19999999999950832;
    p = p * z + 0.33333333333333348;
    return e + 2.8853900817779268 * (s * (p * z + 1.0));
}

VEC_INLINE wf w_exp2(wf x)
{
    x = w_select(x < -200.0, w_splat(-200.0), x);
    x = w_select(x > 200.0, w_splat(200.0), x);
    const wf shifted = x + W_MAGIC;
    const wf f = x - (shifted - W_MAGIC);
    wf p = f * 1.3250816491624512e-06 + 1.530372135933811e-05; /* (2^f - 1) / f */
    p = p * f + 0.00015403475165333831;
    p = p * f + 0.0013333478409089264;
    p = p * f + 0.0096181291352339607;
    p = p * f + 0.055504109063744603;
    p = p * f + 0.24022650695888612;
    p = p * f + 0.69314718055682745;
    return (p * f + 1.0) * (wf)(((wu)shifted + 1023) << 52);
}

/* As the C function: 1 where x is 1 or y is 0, whatever the other. */
VEC_INLINE wf w_pow(wf x, wf y)
{
    const wf size = w_abs(x), infinity = w_splat((double)INFINITY), zero = {0};
    wf log = w_select(size == 0.0, -infinity, w_log2(size));
    log = w_select(size == infinity, infinity, w_select(x != x, x, log));
    const wf power = w_exp2(w_select(log == 0.0, zero, log * y));
    const wf whole = w_abs(y), half = whole * 0.5; /* every float from 2^24 on is even */
    const wi is_whole = ((whole + W_MAGIC) - W_MAGIC == whole) | (whole > 16777216.0);
    const wi is_odd = is_whole & ((half + W_MAGIC) - W_MAGIC != half) & (whole < 16777216.0);
    const wf signed_power = w_select(is_odd, w_turn(power, x), power);
    const wi undefined = (x < 0.0) & (size != infinity) & ~is_whole;
    const wf result = w_select(undefined | (y != y), w_splat((double)NAN), signed_power);
    return w_select((x == 1.0) | (y == 0.0), w_splat(1.0), result);
}

/* ---- float32 */

VEC_INLINE int v_any(vi mask)
{
#if defined(__AVX2__) && !defined(__AVX512F__) && !defined(PRN_EMULATED_AVX512)
    return _mm256_movemask_ps((__m256)mask);
#elif defined(__SSE2__) && !defined(__AVX2__)
    return _mm_movemask_ps((__m128)mask);
#elif defined(PRN_NEON)
    return (int)vmaxvq_u32((uint32x4_t)mask);
#else
    int any = 0;
    for (int i = 0; i < VEC_LANES; i++) any |= mask[i];
    return any;
#endif
}

#define V_WIDE(name)                                                                                                   \
    VEC_INLINE vf v_##name(vf x)                                                                                       \
    {                                                                                                                  \
        return w_join(w_##name(w_half(x, 0)), w_##name(w_half(x, 1)));                                                 \
    }
/* An argument that cannot be reduced goes through libm, lane by lane. */
#define V_WIDE_REDUCED(name)                                                                                           \
    VEC_INLINE vf v_##name(vf x)                                                                                       \
    {                                                                                                                  \
        vf y = w_join(w_##name(w_half(x, 0)), w_##name(w_half(x, 1)));                                                 \
        const vi far = v_abs(x) > 67108864.0f;                                                                         \
        if (v_any(far)) {                                                                                              \
            for (int i = 0; i < VEC_LANES; i++) y[i] = far[i] ? (float)name((double)x[i]) : y[i];                      \
        }                                                                                                              \
        return y;                                                                                                      \
    }
V_WIDE_REDUCED(sin)
V_WIDE_REDUCED(cos)
V_WIDE_REDUCED(tan)
V_WIDE(asin)
V_WIDE(acos)
V_WIDE(atan)

VEC_INLINE vf v_pow(vf x, vf y)
{
    return w_join(w_pow(w_half(x, 0), w_half(y, 0)), w_pow(w_half(x, 1), w_half(y, 1)));
}

#endif
