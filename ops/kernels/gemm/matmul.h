/* The batched product of two strided matrices that Gemm, MatMul and Einsum reduce to, and the kernels they share.
 *
 *   C[item] = post(alpha A[item] B[item] + beta bias)     A [m, k], B [k, n], C [m, n]
 *
 * An operator describes its node as a prn_matmul_desc; nothing here owns memory. */
#ifndef PRN_OPS_KERNELS_GEMM_MATMUL_H
#define PRN_OPS_KERNELS_GEMM_MATMUL_H

#include "ops/kernels/vector/number.h"
#include "ops/op.h"

#define PRN_MATMUL_TYPES PRN_TYPES_NUMBER

typedef struct prn_matmul_desc {
    prony_dtype dtype;
    int64_t m, n, k;
    const void *a, *b; /* NULL where the data is not there yet */
    void *c;
    int64_t rs_a, cs_a, rs_b, cs_b, rs_c; /* strides in elements; C's columns are contiguous */
    int batch_rank;
    int64_t batch_dim[PRONY_MAX_RANK], a_step[PRONY_MAX_RANK], b_step[PRONY_MAX_RANK], c_step[PRONY_MAX_RANK];
    int64_t items; /* product of batch_dim */
    float alpha, beta;
    const void *bias; /* beta bias[i bias_row + j bias_col] is added to every item; NULL: none */
    int64_t bias_row, bias_col;
    /* Indices of the inputs of a node that is this product; -1: no bias. */
    int a_input, b_input, bias_input;
} prn_matmul_desc;

/* alpha 1, no bias, one item, C's rows n apart, A and B inputs 0 and 1. */
prn_matmul_desc prn_matmul_make(prony_dtype dtype, int64_t m, int64_t n, int64_t k);
/* Appends a batch dimension; extent 1 is dropped. */
void prn_matmul_batch(prn_matmul_desc *product, int64_t extent, int64_t a_step, int64_t b_step, int64_t c_step);
/* Makes one taller product of the innermost batch dimensions for which B is the same while the items of A and C follow
 * each other as rows do. */
void prn_matmul_fold(prn_matmul_desc *product);
/* NumPy's matmul of two tensors, rank 1 taken as a row or a column: strides, batch and data of A and B, not folded; the
 * shape of the result in *y. Checks the shapes and that counts fit 63 bits; types are the caller's. */
prony_status prn_matmul_from_shapes(const prony_context *context, const prony_value *a, const prony_value *b,
                                    prn_matmul_desc *out, prony_shape *y);
/* Takes A, B, the bias and C from where the node's inputs and output 0 are. */
void prn_matmul_bind_data(const prony_context *context, prn_matmul_desc *product);
/* Element offsets of an item. */
void prn_matmul_offsets(const prn_matmul_desc *product, int64_t item, int64_t *a, int64_t *b, int64_t *c);

/* Of a node that is a product: prepare keeps it, for the functions that take nothing but the context. All of them are
 * released by prn_free. */

/* float32, by ops/kernels/gemm/gemm_native.c. A constant B without batch is packed once. */
prony_status prn_matmul_native_prepare(const prony_context *context, const prn_matmul_desc *product, prn_prepared *out);
prony_status prn_matmul_native_run(const prony_context *context);
void prn_matmul_native_facts(const prony_context *context, prony_cost *facts);
/* The same for bytes other than the node's inputs: `product` is the prepared one, with their addresses. */
prony_status prn_matmul_native_run_at(const prony_context *context, const prn_matmul_desc *product);
/* Of a node that is several products: nothing was prepared, its post-operations are left out. */
void prn_matmul_native_run_unpacked(const prony_context *context, const prn_matmul_desc *product);
/* The native kernel with B, a constant, in fewer bits than float32 has, as context->precision wants (lowbit_weights.h);
 * it stays float32 where an element is not within their range. */
bool prn_matmul_lowbit_supported(const prony_context *context, const prn_matmul_desc *product);
/* True if it then multiplies parts of bfloat16 on tiles. */
bool prn_matmul_halves_supported(const prony_context *context, const prn_matmul_desc *product);
bool prn_matmul_lowbit_profitable(const prn_matmul_desc *product);
prony_status prn_matmul_lowbit_prepare(const prony_context *context, const prn_matmul_desc *product, prn_prepared *out);
prony_status prn_matmul_lowbit_run(const prony_context *context);
void prn_matmul_lowbit_facts(const prony_context *context, prony_cost *facts);

/* Of what is prepared: where the node's operands are now. */
prn_matmul_desc prn_matmul_with_data(const prony_context *context);

/* Plain C, every type of PRN_MATMUL_TYPES; sums of floats are formed in double. */
prony_status prn_matmul_reference_prepare(const prony_context *context, const prn_matmul_desc *product,
                                          prn_prepared *out);
prony_status prn_matmul_reference_run(const prony_context *context);
prony_status prn_matmul_reference_run_at(const prony_context *context, const prn_matmul_desc *product);

/* True if the strides of such a tensor, empty or not, fit 63 bits. */
bool prn_matmul_countable(const prony_shape *shape);
/* True if a post-operation adds input `index`, which then is not an operand of the product. */
bool prn_matmul_is_post_input(const prony_context *context, size_t index);

#endif
