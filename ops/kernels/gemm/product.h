/* The batched product of two strided matrices that Gemm, MatMul and Einsum reduce to, and the kernels they share.
 *
 *   C[item] = post(alpha A[item] B[item] + beta bias)     A [m, k], B [k, n], C [m, n]
 *
 * An operator describes its node as a prn_product; nothing here owns memory. */
#ifndef PRN_OPS_LOOPS_PRODUCT_H
#define PRN_OPS_LOOPS_PRODUCT_H

#include "ops/kernels/vector/number.h"
#include "ops/op.h"

#define PRN_PRODUCT_TYPES PRN_TYPES_NUMBER

typedef struct prn_product {
    prony_dtype dtype;
    int64_t m, n, k;
    const void *a, *b; /* NULL where the data is not there yet */
    void *c;
    int64_t a_row, a_col, b_row, b_col, c_row; /* strides in elements; C's columns are contiguous */
    int batch_rank;
    int64_t batch_dim[PRONY_MAX_RANK], a_step[PRONY_MAX_RANK], b_step[PRONY_MAX_RANK], c_step[PRONY_MAX_RANK];
    int64_t items; /* product of batch_dim */
    float alpha, beta;
    const void *bias; /* beta bias[i bias_row + j bias_col] is added to every item; NULL: none */
    int64_t bias_row, bias_col;
    int a_input, b_input,
        bias_input; /* which of the node's inputs they are, of a node that is this product; -1: no bias */
} prn_product;

/* alpha 1, no bias, one item, C's rows n apart, A and B inputs 0 and 1. */
prn_product prn_product_make(prony_dtype dtype, int64_t m, int64_t n, int64_t k);
/* Appends a batch dimension; extent 1 is dropped. */
void prn_product_batch(prn_product *product, int64_t extent, int64_t a_step, int64_t b_step, int64_t c_step);
/* Makes one taller product of the innermost batch dimensions for which B is the same while the items of A and C follow
 * each other as rows do. */
void prn_product_fold(prn_product *product);
/* NumPy's matmul of two tensors, rank 1 taken as a row or a column: strides, batch and data of A and B, not folded; the
 * shape of the result in *y. Checks the shapes and that counts fit 63 bits; types are the caller's. */
prony_status prn_product_matmul(const prony_context *context, const prony_value *a, const prony_value *b,
                                prn_product *out, prony_shape *y);
/* Takes A, B, the bias and C from where the node's inputs and output 0 are. */
void prn_product_place(const prony_context *context, prn_product *product);
/* Element offsets of an item. */
void prn_product_offsets(const prn_product *product, int64_t item, int64_t *a, int64_t *b, int64_t *c);

/* Of a node that is a product: prepare keeps it, for the functions that take nothing but the context. All of them are
 * released by prn_free. */

/* float32, by ops/kernels/gemm/gemm_native.c. A constant B without batch is packed once. */
prony_status prn_product_native_prepare(const prony_context *context, const prn_product *product, prn_prepared *out);
prony_status prn_product_native_run(const prony_context *context);
void prn_product_native_facts(const prony_context *context, prony_cost *facts);
/* With bytes that are no inputs of the node: `product` is what was prepared, and says where they are. */
prony_status prn_product_native_run_at(const prony_context *context, const prn_product *product);
/* Of a node that is several products: nothing was prepared, its post-operations are left out. */
void prn_product_native_run_unpacked(const prony_context *context, const prn_product *product);
/* The native kernel with B, a constant, in fewer bits than float32 has, as context->precision wants (stored_weights.h);
 * it stays float32 where an element is not within their range. */
bool prn_product_stored_usable(const prony_context *context, const prn_product *product);
/* Whether it then multiplies parts of bfloat16 on tiles. */
bool prn_product_halves_usable(const prony_context *context, const prn_product *product);
bool prn_product_stored_worth(const prn_product *product);
prony_status prn_product_stored_prepare(const prony_context *context, const prn_product *product, prn_prepared *out);
prony_status prn_product_stored_run(const prony_context *context);
void prn_product_stored_facts(const prony_context *context, prony_cost *facts);

/* Of what is prepared: where the node's operands are now. */
prn_product prn_product_placed(const prony_context *context);

/* Plain C, every type of PRN_PRODUCT_TYPES; sums of floats are formed in double. */
prony_status prn_product_reference_prepare(const prony_context *context, const prn_product *product, prn_prepared *out);
prony_status prn_product_reference_run(const prony_context *context);
prony_status prn_product_reference_run_at(const prony_context *context, const prn_product *product);

/* Whether the strides of such a tensor, empty or not, fit 63 bits. */
bool prn_product_countable(const prony_shape *shape);
/* Whether a post-operation adds input `index`, which then is no operand of the product. */
bool prn_product_is_post_input(const prony_context *context, size_t index);

#endif
