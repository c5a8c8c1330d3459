/* tanh of double vectors: near 0 by a rational function (S. L. Moshier, Cephes), where 1 - 2 / (exp(2 |x|) + 1) would
 * lose digits, by that elsewhere. Both are a sum and one quotient, which are chosen per lane. */
#include "ops/math/tanh_simd.h"
#include "base/cpu/simd.h"

#include <string.h>

enum { LANES = PRN_SIMD_BYTES / (int)sizeof(double) };
typedef double vd __attribute__((vector_size(PRN_SIMD_BYTES)));
typedef int64_t vl __attribute__((vector_size(PRN_SIMD_BYTES)));

#define SPLAT(x) ((vd){0} + (x))
#define INLINE static inline __attribute__((always_inline))

INLINE vd tanh_simd_chosen(vl mask, vd yes, vd no)
{
    return (vd)((mask & (vl)yes) | (~mask & (vl)no));
}

/* exp of 0 to 44: 2^n times the series for what is left, |r| <= ln(2) / 2, to the thirteenth power. */
INLINE vd exponential(vd x)
{
    static const double factor[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                    1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                                    1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5};
    const vd shifted = x * 0x1.71547652b82fep0 + 0x1.8p52, n = shifted - 0x1.8p52;
    const vd r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
    vd sum = SPLAT(factor[0]);
    PRN_UNROLL
    for (int i = 1; i < 12; i++) sum = sum * r + factor[i];
    const vd power = (vd)(((vl)shifted << 52) + 0x3ff0000000000000);
    return (sum * r * r + r + 1.0) * power;
}

INLINE vd tanh_of(vd x)
{
    const vl sign = (vl)x & INT64_MIN, near = (vd)((vl)x & INT64_MAX) < SPLAT(0.625);
    const vd size = (vd)((vl)x & INT64_MAX), z = x * x, kept = tanh_simd_chosen(size < SPLAT(22.0), size, SPLAT(22.0));
    const vd p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
    const vd q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3;
    const vd quotient =
        tanh_simd_chosen(near, x * z * p, SPLAT(-2.0)) / tanh_simd_chosen(near, q, exponential(2.0 * kept) + 1.0);
    const vd sum = tanh_simd_chosen(near, x, SPLAT(1.0)) + quotient;
    const vd result = (vd)((vl)tanh_simd_chosen(near, sum, (vd)((vl)sum | sign)));
    return tanh_simd_chosen(x == x, result, x);
}

static void tanh_f64(double *x, int64_t n)
{
    vd v;
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t left = n - i;
        if (left >= LANES) {
            memcpy(&v, x + i, sizeof v);
            v = tanh_of(v);
            memcpy(x + i, &v, sizeof v);
        } else {
            v = (vd){0};
            memcpy(&v, x + i, (size_t)left * sizeof *x);
            v = tanh_of(v);
            memcpy(x + i, &v, (size_t)left * sizeof *x);
        }
    }
}

const prn_tanh_simd PRN_SIMD_TABLE(prn_tanh_simd_) = {tanh_f64};
