/* float32 vectors of the width that the compile flags give, and elementary functions on them. For sources that are
 * compiled once per instruction set.
 *
 * Everything is written with the compilers' vector extensions; masks are vectors of 0 and -1. Polynomial coefficients
 * are near-minimax fits (Chebyshev) of the functions named beside them. No function raises; NaN operands give NaN.
 */
#ifndef PRN_OPS_KERNELS_VECTOR_VEC_MATH_H
#define PRN_OPS_KERNELS_VECTOR_VEC_MATH_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(PRN_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__) || defined(PRN_EMULATED_AVX512)
#define VEC_BYTES 64
#elif defined(__AVX2__)
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif
#define VEC_LANES (VEC_BYTES / 4)
#define VEC_INLINE static inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(VEC_BYTES)));
typedef int32_t vi __attribute__((vector_size(VEC_BYTES)));
typedef uint32_t vu __attribute__((vector_size(VEC_BYTES)));
typedef float vf_unaligned __attribute__((vector_size(VEC_BYTES), aligned(4), may_alias));

VEC_INLINE vf v_splat(float a)
{
    return a - (vf){0}; /* keeps the sign of zero */
}

VEC_INLINE vf v_load(const float *p)
{
    return *(const vf_unaligned *)p;
}

VEC_INLINE void v_store(float *p, vf x)
{
    *(vf_unaligned *)p = x;
}

VEC_INLINE vf v_select(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

/* Parts of a vector: masked where the instruction set has that, since a copy of any length is a call, and what it wrote
 * in pieces cannot be read back at once. */
#if defined(__AVX512F__)
VEC_INLINE __mmask16 v_part(int64_t count)
{
    return (__mmask16)_bzhi_u32(0xffff, (uint32_t)count);
}
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
VEC_INLINE __m256i v_part(int64_t count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

/* The first `count` (>= 1) elements; the lanes beyond hold `fill`. */
VEC_INLINE vf v_load_part(const float *p, int64_t count, float fill)
{
    if (count >= VEC_LANES) return v_load(p);
#if defined(__AVX512F__)
    return (vf)_mm512_mask_loadu_ps((__m512)v_splat(fill), v_part(count), p);
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
    const __m256i part = v_part(count);
    return v_select((vi)part, (vf)_mm256_maskload_ps(p, part), v_splat(fill));
#else
    vf x = v_splat(fill);
    memcpy(&x, p, (size_t)count * sizeof(float));
    return x;
#endif
}

VEC_INLINE void v_store_part(float *p, vf x, int64_t count)
{
    if (count >= VEC_LANES) {
        v_store(p, x);
        return;
    }
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, v_part(count), (__m512)x);
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
    _mm256_maskstore_ps(p, v_part(count), (__m256)x);
#else
    memcpy(p, &x, (size_t)count * sizeof(float));
#endif
}

/* ---- sums of 16 lanes, as many vectors as that takes: the same for every width */

typedef float v_quarter __attribute__((vector_size(16)));

/* The first half of the lanes plus the second, and the half of that again: lanes i, i + 4, i + 8 and i + 12. */
VEC_INLINE v_quarter v_sum_quarters(const vf *sum)
{
#if VEC_LANES == 16
    typedef float half __attribute__((vector_size(32)));
    const half low = __builtin_shufflevector(sum[0], sum[0], 0, 1, 2, 3, 4, 5, 6, 7);
    const half both = low + __builtin_shufflevector(sum[0], sum[0], 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_shufflevector(both, both, 0, 1, 2, 3) + __builtin_shufflevector(both, both, 4, 5, 6, 7);
#elif VEC_LANES == 8
    const vf both = sum[0] + sum[1];
    return __builtin_shufflevector(both, both, 0, 1, 2, 3) + __builtin_shufflevector(both, both, 4, 5, 6, 7);
#else
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
#endif
}

VEC_INLINE float v_sum_16(const vf *sum)
{
    const v_quarter four = v_sum_quarters(sum);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

VEC_INLINE vf v_abs(vf x)
{
    return (vf)((vu)x & UINT32_C(0x7fffffff));
}

VEC_INLINE vf v_copysign(vf x, vf sign)
{
    return (vf)(((vu)x & UINT32_C(0x7fffffff)) | ((vu)sign & UINT32_C(0x80000000)));
}

VEC_INLINE vf v_max(vf a, vf b)
{
    return v_select((a > b) | (a != a), a, b);
}

VEC_INLINE vf v_min(vf a, vf b)
{
    return v_select((a < b) | (a != a), a, b);
}

/* b where it exceeds a, otherwise a: also where either is NaN. */
VEC_INLINE vf v_larger(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)b, (__m512)a);
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
    return (vf)_mm256_max_ps((__m256)b, (__m256)a);
#elif defined(__SSE2__) && !defined(__AVX2__)
    return (vf)_mm_max_ps((__m128)b, (__m128)a);
#else
    return v_select(b > a, b, a);
#endif
}

/* b where it exceeds a or is NaN, otherwise a: a NaN of either stays. Two instructions with AVX-512, else three. */
VEC_INLINE vf v_larger_or_nan(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_mask_max_ps((__m512)b, _mm512_cmp_ps_mask((__m512)b, (__m512)b, _CMP_ORD_Q), (__m512)b,
                                  (__m512)a);
#else
    return v_select(b != b, b, v_larger(a, b));
#endif
}

/* b where it is below a, otherwise a: also where either is NaN. */
VEC_INLINE vf v_smaller(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_min_ps((__m512)b, (__m512)a);
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
    return (vf)_mm256_min_ps((__m256)b, (__m256)a);
#elif defined(__SSE2__) && !defined(__AVX2__)
    return (vf)_mm_min_ps((__m128)b, (__m128)a);
#else
    return v_select(b < a, b, a);
#endif
}

/* min(max(x, low), high), NaN stays. */
VEC_INLINE vf v_clamp(vf x, vf low, vf high)
{
    return v_smaller(v_larger(x, low), high);
}

VEC_INLINE vf v_sqrt(vf x)
{
#if defined(__AVX512F__)
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__) && !defined(__AVX2__)
    return (vf)_mm_sqrt_ps((__m128)x);
#elif defined(PRN_NEON)
    return (vf)vsqrtq_f32((float32x4_t)x);
#else
    for (int i = 0; i < VEC_LANES; i++) x[i] = sqrtf(x[i]);
    return x;
#endif
}

/* yes where a < b. */
VEC_INLINE vf v_select_less(vf a, vf b, vf yes, vf no)
{
#if defined(__AVX512F__)
    return (vf)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ), (__m512)no, (__m512)yes);
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
    return (vf)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)(a < b));
#else
    return v_select(a < b, yes, no);
#endif
}

/* Half to even, by adding and taking away 2^23. */
VEC_INLINE vf v_round(vf x)
{
    const vf size = v_abs(x);
    const vf rounded = v_copysign((size + 8388608.0f) - 8388608.0f, x);
    return v_select(size < 8388608.0f, rounded, x);
}

VEC_INLINE vf v_floor(vf x)
{
    const vf r = v_round(x);
    return v_select(r > x, r - 1.0f, r);
}

VEC_INLINE vf v_ceil(vf x)
{
    const vf r = v_round(x);
    return v_select(r < x, v_copysign(r + 1.0f, x), r);
}

VEC_INLINE vf v_sign(vf x)
{
    const vf size = v_select(x != 0.0f, v_copysign(v_splat(1.0f), x), v_splat(0.0f));
    return v_select(x != x, x, size);
}

/* x 2^n for -252 <= n <= 254, in two steps so that subnormal results are rounded once more at most. */
VEC_INLINE vf v_scale2(vf x, vi n)
{
    const vi half = n >> 1;
    const vu first = ((vu)half + 127u) << 23, second = ((vu)n - (vu)half + 127u) << 23;
    return x * (vf)first * (vf)second;
}

/* x = n ln 2 + r, |r| <= ln 2 / 2; |x| < 110. `shifted` holds n in its low mantissa bits. */
VEC_INLINE vf v_reduce_shifted(vf x, vf *shifted, vf *count)
{
    const vf magic = v_splat(12582912.0f); /* 1.5 2^23 */
    *shifted = x * 1.44269504f + magic;
    *count = *shifted - magic;
    const vf r = x - *count * 0.693359375f;
    return r - *count * -2.12194440e-4f;
}

VEC_INLINE vf v_reduce_ln2(vf x, vi *n)
{
    vf shifted, count;
    const vf r = v_reduce_shifted(x, &shifted, &count);
    *n = (vi)((vu)shifted - 0x4b400000u);
    return r;
}

/* exp(r) - 1 on the reduced range. */
VEC_INLINE vf v_expm1_reduced(vf r)
{
    vf p = r * 0.0013926198f + 0.00836319011f;
    p = p * r + 0.0416665561f;
    p = p * r + 0.166665763f;
    p = p * r + 0.5f;
    return p * r * r + r;
}

/* exp(x), and 0 below `least` (-104 or more). Unwanted lanes are not computed: an underflow costs a hundred times
 * as much, and half of a masked attention's scores are such. */
VEC_INLINE vf v_exp_from(vf x, const float least)
{
#if defined(__AVX512F__)
    const __mmask16 some = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(least), _CMP_NLT_UQ);
    vf shifted, count;
    const vf in = (vf)_mm512_maskz_min_ps(some, _mm512_set1_ps(89.0f), (__m512)x);
    const vf r = v_reduce_shifted(in, &shifted, &count);
    return (vf)_mm512_maskz_scalef_ps(some, (__m512)(v_expm1_reduced(r) + 1.0f), (__m512)count);
#else
    const vi none = x < least;
    vi n;
    const vf r = v_reduce_ln2(v_smaller(v_select(none, v_splat(0.0f), x), v_splat(89.0f)), &n);
    return v_select(none, v_splat(0.0f), v_scale2(v_expm1_reduced(r) + 1.0f, n));
#endif
}

/* Below -104 the result rounds to 0. */
VEC_INLINE vf v_exp(vf x)
{
    return v_exp_from(x, -104.0f);
}

/* exp(x) of x <= 0; 0 where it is a subnormal number. */
VEC_INLINE vf v_exp_normal(vf x)
{
    const float least = -87.33654f;
#if defined(__AVX512F__)
    const __mmask16 some = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(least), _CMP_NLT_UQ);
    vf shifted, count;
    const vf r = v_reduce_shifted(x, &shifted, &count);
    return (vf)_mm512_maskz_scalef_ps(some, (__m512)(v_expm1_reduced(r) + 1.0f), (__m512)count);
#else
    vi n;
    const vf r = v_reduce_ln2(v_larger(x, v_splat(least)), &n);
    return v_select(x < least, v_splat(0.0f), (v_expm1_reduced(r) + 1.0f) * (vf)(((vu)n + 127u) << 23));
#endif
}

/* exp(x) of |x| <= 87, where the power of two is a normal number. */
VEC_INLINE vf v_exp_bounded(vf x)
{
    vi n;
    const vf r = v_reduce_ln2(x, &n);
    return (v_expm1_reduced(r) + 1.0f) * (vf)(((vu)n + 127u) << 23);
}

/* exp(x) - 1 for x <= 0 without cancellation. */
VEC_INLINE vf v_expm1_negative(vf x)
{
    vi n;
    const vf r = v_reduce_ln2(v_clamp(x, v_splat(-30.0f), v_splat(0.0f)), &n);
    const vf power = (vf)(((vu)n + 127u) << 23);
    return v_select(x == 0.0f, x, v_expm1_reduced(r) * power + (power - 1.0f));
}

/* log of finite x > 0. */
VEC_INLINE vf v_log_positive(vf x)
{
    const vi tiny = x < FLT_MIN;
    x = v_select(tiny, x * 8388608.0f, x);
    const vi exponent = (vi)((vu)x - 0x3f3504f3u) >> 23; /* mantissa in [sqrt 1/2, sqrt 2) */
    const vf f = (vf)((vu)x - ((vu)exponent << 23)) - 1.0f;
    const vf e = __builtin_convertvector(exponent - (tiny & 23), vf);
    vf p = f * 0.0697161183f - 0.114797339f; /* (log(1 + f) - f + f^2/2) / f^3 */
    p = p * f + 0.116854198f;
    p = p * f - 0.124256872f;
    p = p * f + 0.142490581f;
    p = p * f - 0.166678026f;
    p = p * f + 0.200007156f;
    p = p * f - 0.24999997f;
    p = p * f + 0.333333313f;
    const vf square = f * f;
    vf y = p * f * square + e * -2.12194440e-4f;
    y = y - 0.5f * square;
    y = y + f;
    return y + e * 0.693359375f;
}

VEC_INLINE vf v_log(vf x)
{
    const vf y = v_select(x == INFINITY, x, v_log_positive(x));
    const vf low = v_select(x == 0.0f, v_splat(-INFINITY), v_splat(NAN));
    return v_select(x > 0.0f, y, v_select(x != x, x, low));
}

/* log(1 + u) for 0 <= u <= 1: the rounding error of 1 + u is put back to first order. */
VEC_INLINE vf v_log1p_unit(vf u)
{
    const vf w = u + 1.0f;
    return v_log_positive(w) + (u - (w - 1.0f)) / w;
}

VEC_INLINE vf v_tanh(vf x)
{
    const vf size = v_abs(x), z = x * x;
    vf p = z * -0.00609671418f + 0.0209971797f; /* (tanh(x)/x - 1) / x^2 */
    p = p * z - 0.0538509078f;
    p = p * z + 0.133327693f;
    p = p * z - 0.333333284f;
    const vf small = p * z * size + size;
    /* exp(2 t) = 2^n (1 + q) by h, half of what n ln 2 leaves of 2 t; a rounded ln 2 is near enough, since what is off
     * ends in the smaller part of the result. The magic number, 1.5 2^23 and an exponent's bias, leaves the power's
     * bits a shift away. */
    const vf t = v_smaller(size, v_splat(10.0f)), magic = v_splat(12582912.0f + 127.0f);
    const vf shifted = t * 2.88539008f + magic, h = t - (shifted - magic) * 0.34657359f;
    vf q = h * (64.0f * 0.0013926198f) + 32.0f * 0.00836319011f; /* v_expm1_reduced's, of 2 h */
    q = q * h + 16.0f * 0.0416665561f;
    q = q * h + 8.0f * 0.166665763f;
    q = q * h + 2.0f;
    q = (q * h + 2.0f) * h;
    const vf power = (vf)((vu)shifted << 23);
    const vf large = 1.0f - 2.0f / (q * power + (power + 1.0f));
    return v_copysign(v_select_less(size, v_splat(0.625f), small, large), x);
}

/* 2^q of -126 <= q <= 127, any number of a NaN; what is left of q beside its integer is exact. */
VEC_INLINE vf v_exp2_bounded(vf q)
{
    const vf magic = v_splat(12582912.0f), shifted = q + magic, r = q - (shifted - magic);
    vf p = r * 0.000154780177f + 0.00134004317f;
    p = p * r + 0.00961799453f;
    p = p * r + 0.0555032722f;
    p = p * r + 0.240226515f;
    p = p * r + 0.693147207f;
    p = p * r + 1.0f;
    return (vf)((vu)p + ((vu)shifted << 23));
}

VEC_INLINE vf v_erf(vf x)
{
    const vf size = v_abs(x), z = x * x;
    vf p = z * -0.000596731086f + 0.00498890597f; /* erf(x)/x - 1 */
    p = p * z - 0.0267639942f;
    p = p * z + 0.112817541f;
    p = p * z - 0.376124889f;
    p = p * z + 0.128379151f;
    const vf small = p * size + size;
    const vf t = v_select(size > 4.0f, v_splat(4.0f), size);
    vf q = t * 1.45660772e-06f - 5.12314364e-05f; /* log2(1 - erf(t)) */
    q = q * t + 0.000752722553f;
    q = q * t - 0.00644035777f;
    q = q * t + 0.0371015333f;
    q = q * t - 0.157308713f;
    q = q * t - 0.91288203f;
    q = q * t - 1.6299088f;
    q = q * t + 0.000318721461f;
    const vf large = 1.0f - v_exp2_bounded(q);
    return v_copysign(v_select(size >= 0.93f, large, small), x); /* `large` is not NaN */
}

/* exp(x) + 1, infinity above 88.7. In one step, as half of exp(x) is what has an exponent; what underflows is nothing
 * beside 1. */
VEC_INLINE vf v_exp_and_1(vf x)
{
    vf shifted, count;
    const vf r = v_reduce_shifted(v_clamp(x, v_splat(-87.3f), v_splat(89.4f)), &shifted, &count);
    const vf power = (vf)(((vu)shifted - (0x4b400000u - 126u)) << 23);
    return (v_expm1_reduced(r) + 1.0f) * power * 2.0f + 1.0f;
}

VEC_INLINE vf v_sigmoid(vf x)
{
    return 1.0f / v_exp_and_1(-x);
}

VEC_INLINE vf v_softplus(vf x)
{
    return v_max(x, v_splat(0.0f)) + v_log1p_unit(v_exp(-v_abs(x)));
}

/* tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) with e = exp(x); beyond 20 it is 1 in float32. */
VEC_INLINE vf v_mish(vf x)
{
    const vf e = v_exp(v_clamp(x, v_splat(-105.0f), v_splat(20.0f)));
    const vf n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
}

VEC_INLINE vf v_elu(vf x, vf a)
{
    return v_select(x > 0.0f, x, a * v_expm1_negative(x));
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), with Phi(-|x|) from a polynomial of its logarithm: one for all arguments, and
 * no difference that cancels for negative ones. */
VEC_INLINE vf v_gelu_erf(vf x)
{
    const float far = 5.6f; /* the rest is below 6e-8: 0, but of -infinity, which x Phi(x) makes NaN */
    const vf size = v_abs(x), t = v_smaller(size, v_splat(far)), none = v_smaller(x, v_splat(0.0f)) * 0.0f;
    vf q = t * -2.29547865e-08f + 7.01533679e-07f; /* log2(Phi(-t)) */
    q = q * t - 9.21158062e-06f;
    q = q * t + 6.58429781e-05f;
    q = q * t - 0.000241892747f;
    q = q * t - 8.0597245e-05f;
    q = q * t + 0.00704773748f;
    q = q * t - 0.052510757f;
    q = q * t - 0.459197581f;
    q = q * t - 1.15110707f;
    q = q * t - 0.99999994f;
    const vf tail = v_select(size > far, none, v_exp2_bounded(q));
    return v_larger(x, v_splat(0.0f)) - t * tail;
}

/* x / (1 + exp(-2 u)), u = sqrt(2/pi) (x + 0.044715 x^3): what tanh(u) + 1 cancels to for negative x is one quotient
 * here. */
VEC_INLINE vf v_gelu_tanh(vf x)
{
    const float far = 126.0f;                             /* the rest is below 2^-118 */
    const vf s = x * (x * x * -0.10294324f - 2.3022082f); /* -2 u / ln 2 */
    const vf share = 1.0f / (1.0f + v_exp2_bounded(v_clamp(s, v_splat(-far), v_splat(far))));
    return x * v_select(s > far, v_splat(0.0f), share);
}

/* Lane i holds what lane i + by held. */
#define V_LANE_(i, by) (((i) + (by)) % VEC_LANES)
#define V_LANES_4_(i, by) V_LANE_(i, by), V_LANE_((i) + 1, by), V_LANE_((i) + 2, by), V_LANE_((i) + 3, by)
#if VEC_LANES == 16
#define V_ROTATE(x, by)                                                                                                \
    __builtin_shufflevector(x, x, V_LANES_4_(0, by), V_LANES_4_(4, by), V_LANES_4_(8, by), V_LANES_4_(12, by))
#elif VEC_LANES == 8
#define V_ROTATE(x, by) __builtin_shufflevector(x, x, V_LANES_4_(0, by), V_LANES_4_(4, by))
#else
#define V_ROTATE(x, by) __builtin_shufflevector(x, x, V_LANES_4_(0, by))
#endif

/* Lane 0 of it: f over all lanes, halves first. */
#define V_FOLD(x, f)                                                                                                   \
    do {                                                                                                               \
        if (VEC_LANES > 8) x = f(x, V_ROTATE(x, 8));                                                                   \
        if (VEC_LANES > 4) x = f(x, V_ROTATE(x, 4));                                                                   \
        x = f(x, V_ROTATE(x, 2));                                                                                      \
        x = f(x, V_ROTATE(x, 1));                                                                                      \
    } while (0)

#endif
