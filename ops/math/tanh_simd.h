/* Hyperbolic tangents of doubles, compiled once per instruction set. */
#ifndef PRN_OPS_MATH_TANH_SIMD_H
#define PRN_OPS_MATH_TANH_SIMD_H

#include <stdint.h>

typedef struct prn_tanh_simd {
    /* x[i] = tanh(x[i]), within 2 units in the last place, the same with every instruction set; an element's result
     * depends on it alone. */
    void (*tanh_f64)(double *x, int64_t n);
} prn_tanh_simd;

#endif
