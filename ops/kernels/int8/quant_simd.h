/* The inner loops of quantized operators, compiled once per instruction set. Integer sums wrap around, so they are the
 * same in any order. No state, thread-safe.
 */
#ifndef PRN_OPS_KERNELS_INT8_QUANT_SIMD_H
#define PRN_OPS_KERNELS_INT8_QUANT_SIMD_H

#include <stdbool.h>
#include <stdint.h>

enum { PRN_QUANT_MAX_ROWS = 12, PRN_QUANT_MAX_COLUMNS = 32 };

typedef struct prn_quant_simd {
    const char *name;
    int64_t rows, columns; /* register tile; columns divides 64 */
    /* c[r][j] (+)= sum over p < pairs of a[r][2 p] b[p][j][0] + a[r][2 p + 1] b[p][j][1], for r < rows <= the tile's
     * and all of the tile's columns. Rows of a and c are a_row and c_row apart, those of b follow each other. */
    void (*tile)(const int16_t *a, int64_t rs_a, int64_t rows, const int16_t *b, int64_t pairs, int32_t *c,
                 int64_t rs_c, bool add);
    /* to[i] = from[i step] - zero */
    void (*widen_u8)(int16_t *to, const uint8_t *from, int64_t step, int64_t n, int32_t zero);
    void (*widen_i8)(int16_t *to, const int8_t *from, int64_t step, int64_t n, int32_t zero);
    /* to[2 i] = even[i], to[2 i + 1] = odd[i] */
    void (*interleave)(int16_t *to, const int16_t *even, const int16_t *odd, int64_t n);
    /* y[i] += w x[i step] */
    void (*add_scaled)(int32_t *y, const int16_t *x, int64_t step, int32_t w, int64_t n);
    /* y[i] = x[i] rounded half to even + zero[i], kept in range; NaN gives the lowest value */
    void (*quantize_u8)(uint8_t *y, const float *x, const float *zero, int64_t n);
    void (*quantize_i8)(int8_t *y, const float *x, const float *zero, int64_t n);
    /* y[i] = (x[i] - zero[i]) scale[i] */
    void (*dequantize_u8)(float *y, const uint8_t *x, const float *zero, const float *scale, int64_t n);
    void (*dequantize_i8)(float *y, const int8_t *x, const float *zero, const float *scale, int64_t n);
    /* The same with one zero point and scale. */
    void (*dequantize_flat_u8)(float *y, const uint8_t *x, float zero, float scale, int64_t n);
    void (*dequantize_flat_i8)(float *y, const int8_t *x, float zero, float scale, int64_t n);
    /* y[i] = (float)x[i] scale[i] */
    void (*scale_i32)(float *y, const int32_t *x, const float *scale, int64_t n);
} prn_quant_simd;

/* The table for this processor, within the cap on its instruction set. */
const prn_quant_simd *prn_quant_simd_table(void);

#endif
