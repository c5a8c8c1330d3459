/* The product of rows of 8-bit codes and a constant matrix of 8-bit weights, from codes to codes. Quantized
 * convolutions and matrix products with constant weights reduce to it.
 *
 *   sums[row][column] = sum over k of (code of A) (weight)
 *
 * and then the finish of ops/kernels/int8/int8_dot.h, or the operator's store.
 *
 * A's codes are read as unsigned bytes and weights as signed ones: the other kind is shifted by 128 first, which like
 * zero points is made good in the bias (prn_qint8_bias). Nothing here owns memory; sums wrap around and are the same
 * bits for every instruction set and number of threads. */
#ifndef PRN_OPS_KERNELS_INT8_INT8_GEMM_H
#define PRN_OPS_KERNELS_INT8_INT8_GEMM_H

#include "ops/kernels/int8/int8_pack.h"

/* Codes of rows [row, row + rows) of group `group` as unsigned bytes, `depth` of each; rows are to_row bytes apart. */
typedef void (*prn_qint8_rows_fn)(const void *argument, int64_t group, int64_t row, int64_t rows, uint8_t *to,
                                  int64_t to_row);
/* Takes sums of columns [column, column + columns) of these rows, rows of sums 32 apart. */
typedef void (*prn_qint8_store_fn)(const void *argument, int64_t row, int64_t rows, int64_t column, int64_t columns,
                                   const int32_t *sums);

typedef struct prn_qint8_gemm {
    int64_t rows, groups, columns, depth; /* columns and depth of a group */
    prn_qint8_packed packed;
    /* Rows of unsigned codes where they lie, a_row apart, of one group; NULL: they have to be fetched. */
    const uint8_t *a;
    int64_t rs_a;
    prn_qint8_rows_fn fetch;   /* needed in either case */
    prn_qint8_store_fn store;  /* NULL: `finish` makes codes at y, whose rows are y_row apart */
    const void *argument;      /* of both */
    prn_qint8_epilogue finish; /* of all groups' columns */
    uint8_t *y;
    int64_t y_row;
    const uint8_t *residual; /* as y lies; NULL: none */
} prn_qint8_gemm;

/* Working space of a run by at most `threads` threads, aligned to 64. */
size_t prn_qint8_gemm_scratch(int threads, const prn_qint8_gemm *product);
void prn_qint8_gemm_run(int threads, const prn_qint8_gemm *product, void *scratch, size_t scratch_bytes);

/* Facts for prn_kernel.facts. */
void prn_qint8_gemm_facts(const prn_qint8_gemm *product, prony_cost *facts);

#endif
