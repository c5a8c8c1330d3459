/* Shared by the files of Einsum: an equation as a space of indices, and a contraction of two operands as a matrix
 * product. */
#ifndef PRN_OPS_MATH_EINSUM_H
#define PRN_OPS_MATH_EINSUM_H

#include "ops/kernels/gemm/matmul.h"

enum { PRN_EINSUM_OPERANDS = 8, PRN_EINSUM_AXES = 32 };

typedef struct prn_einsum_params {
    const char *equation;
} prn_einsum_params;

/* The output's axes first, then the summed ones; a stride is 0 where an operand lacks the axis or broadcasts along
 * it. */
typedef struct prn_einsum_space {
    prony_dtype dtype;
    int operands, axes, output_axes;
    int64_t extent[PRN_EINSUM_AXES];
    int64_t stride[PRN_EINSUM_OPERANDS][PRN_EINSUM_AXES];
    int64_t output_stride[PRN_EINSUM_AXES];
} prn_einsum_space;

/* The error that says so of the equation. */
prony_status prn_einsum_refuse(const prony_context *context, const char *what);
/* Reads the node's equation; an error says what is wrong with it. */
prony_status prn_einsum_space_of(const prony_context *context, prn_einsum_space *out);
/* Operands 0 and 1 as a product, whichever of them gives the rows; no extent is 0. false: not a product. */
bool prn_einsum_product(const prn_einsum_space *space, prn_matmul_desc *out);

/* einsum_f32_pairs: two operands after the other, through the scratch. */
bool prn_einsum_pairs_supported(const prony_context *context);
prony_status prn_einsum_pairs_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_einsum_pairs_run(const prony_context *context);
void prn_einsum_pairs_facts(const prony_context *context, prony_cost *facts);

#endif
