/* The convolution of float64, all operands plain. */
#ifndef PRN_OPS_CONV_CONV_F64_H
#define PRN_OPS_CONV_CONV_F64_H

#include "ops/op.h"

bool prn_conv_f64_supported(const prony_context *context);
prony_status prn_conv_f64_run(const prony_context *context);

/* Its inner loop, compiled once per instruction set. */
enum { PRN_CONV_F64_COLUMNS = 64, PRN_CONV_F64_MAX_ROWS = 8 };

typedef struct prn_conv_f64_simd {
    int64_t rows, columns; /* of a register tile */
    /* c[r][j] = start[r] (c[r][j] itself where start is NULL) + sum over d < depth of a[r a_row + d] b[d][j], in order
     * of depth, for `count` rows, as many as a tile has at most, and all columns; rows of c are c_row apart. b is
     * [column block][depth][columns]. */
    void (*tile)(const double *a, int64_t rs_a, int64_t count, const double *b, int64_t depth, const double *start,
                 double *c, int64_t rs_c);
} prn_conv_f64_simd;

#endif
