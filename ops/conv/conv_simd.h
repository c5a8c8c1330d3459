/* The inner loops of the native convolution, compiled once per instruction set. */
#ifndef PRN_OPS_CONV_CONV_SIMD_H
#define PRN_OPS_CONV_CONV_SIMD_H

#include <stdint.h>

enum { PRN_CONV_MAX_ROWS = 12, PRN_CONV_MAX_COLUMNS = 32 };

typedef struct prn_conv_simd {
    int64_t rows, columns; /* register tile; columns divides 64 */
    /* c[r][j] = start[r] (c[r][j] itself where start is NULL) + sum over d < depth of a[d][r] b[d][j], for a whole
     * tile; rows of c are `stride` apart. */
    void (*tile)(const float *a, const float *b, int64_t depth, const float *start, float *c, int64_t stride);
    /* y[i] += w x[i step] */
    void (*add_scaled)(float *y, const float *x, int64_t step, float w, int64_t count);
} prn_conv_simd;

#endif
