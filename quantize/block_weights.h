/* Weights in blocks along K of each column, as MatMulNBits of com.microsoft has them:
 *
 *   w[k] = (code[k] - zero) scale        code of 4 or 8 bits, zero = 2^(bits - 1) without zero points
 */
#ifndef PRN_QUANTIZE_BLOCK_WEIGHTS_H
#define PRN_QUANTIZE_BLOCK_WEIGHTS_H

#include "ops/kernels/vector/number.h"

enum { PRN_LARGEST_WEIGHT_BLOCK = 256 };

typedef struct prn_block_format {
    int bits; /* 4 or 8 */
    int64_t block;
    bool zero_points;
    bool search;            /* of the scale with the least error; else by the largest weight */
    prony_dtype scale_type; /* PRONY_FLOAT32 or PRONY_FLOAT16: scales are rounded to it before codes are chosen */
} prn_block_format;

/* Sums over the weights of a block. */
typedef struct prn_block_errors {
    double plain;    /* of squared errors */
    double weighted; /* of squared errors times importance; without importance the same */
} prn_block_errors;

/* Quantizes `count` weights of one block. *scale is a number of scale_type. `importance` [count] weighs the squared
 * errors that a search minimises; NULL, or zero for every weight that is not 0: all count alike. */
prn_block_errors prn_block_quantize(const prn_block_format *format, const float *weights, const double *importance,
                                    int64_t count, uint8_t *codes, float *scale, uint8_t *zero);

#endif
