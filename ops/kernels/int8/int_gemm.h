/* The batched product of two 8-bit integer matrices less their zero points, summed in 32 bits, which all quantized
 * products and convolutions reduce to:
 *
 *   S[item] = (A[item] - zero point of the row) (B[item] - zero point of the column)
 *
 * Sums are handed to the operator row by row, in pieces, as soon as they are complete; nothing is stored in between.
 * Sums wrap around at 32 bits, so they do not depend on any order. Nothing here owns memory.
 */
#ifndef PRN_OPS_KERNELS_INT8_INT_GEMM_H
#define PRN_OPS_KERNELS_INT8_INT_GEMM_H

#include "ops/kernels/gemm/matmul.h"
#include "ops/kernels/int8/quantized.h"

/* Sums S[item][row][column .. column + n); they may be changed in place. */
typedef void (*prn_int_store_fn)(const void *argument, int64_t item, int64_t row, int64_t column, int64_t n,
                                 int32_t *sums);
/* Writes what columns [column, column + n) of B[item] have at depths [depth, depth + count), zero points subtracted:
 * panels[panel][pair][column of the panel][2], panels as wide as the register tile. Entries beyond are 0. */
typedef void (*prn_int_fill_fn)(const void *argument, int64_t item, int64_t depth, int64_t count, int64_t column,
                                int64_t n, int16_t *panels);

typedef struct prn_int_gemm {
    prn_matmul_desc shape; /* m, n, k, batch, strides; a and b are the codes */
    prony_dtype a_type, b_type;
    prn_quant_lines a_zero, b_zero; /* per row of A, per column of B */
    const int16_t *a_rows;          /* A as prn_int_widen_rows gives it, for every item side by side; NULL: not there */
    const int16_t *b_panels;        /* B as prn_int_pack_panels gives it; NULL: not there */
    prn_int_fill_fn fill;           /* makes B's panels, if b_panels is NULL; NULL: from the codes */
    prn_int_store_fn store;
    const void *argument; /* of both */
} prn_int_gemm;

/* MatMul's product of the tensors a and b; y is its shape. */
prony_status prn_int_gemm_matmul(const prony_context *context, const prony_value *a, const prony_value *b,
                                 prn_int_gemm *out, prony_shape *y);

/* Which matrix of its own tensor A (B) is in an item: that of the zero points and scales. */
int64_t prn_int_gemm_a_matrix(const prn_matmul_desc *shape, int64_t item);
int64_t prn_int_gemm_b_matrix(const prn_matmul_desc *shape, int64_t item);

/* Packs a constant B without batch, or widens a constant A's `rows` rows, through context->services, if the zero
 * points are constant too. Otherwise leaves the pointer NULL. */
prony_status prn_int_pack_panels(const prony_context *context, const prn_int_gemm *product, const int16_t **out);
prony_status prn_int_widen_rows(const prony_context *context, const prn_int_gemm *product, int64_t rows,
                                const int16_t **out);

/* Every item, cut into tasks by its shape. */
void prn_int_gemm_run(int threads, const prn_int_gemm *product);
/* Plain C, one sum after the other; a_rows, b_panels and fill are not used. */
void prn_int_gemm_reference(const prn_int_gemm *product);

/* MACs and 2 int_ops (or FLOPs) each, and the facts of a product. */
prony_status prn_int_gemm_cost(const prony_context *context, const prn_matmul_desc *shape, bool integer,
                               prony_cost *cost);
/* Facts of prn_int_gemm_run for prn_kernel.facts; `packed`: neither operand is made into panels or widened in a
 * run. */
void prn_int_gemm_facts(const prn_matmul_desc *shape, bool packed, prony_cost *facts);

#endif
