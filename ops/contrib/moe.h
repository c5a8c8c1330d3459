/* The parsed problem of com.microsoft MoE and QMoE: tokens x [T, C], a router's logits [T, E], and for each of E
 * experts
 *
 *   h = W1 x + b1            W1 [F, C], F = I, or 2 I if one layer holds gate and value
 *   g = activation(h)        with a third layer: activation(h) * (W3 x + b3)
 *   y = W2 g + b2            W2 [C, I]
 *
 * A token's result is the sum of y over its k best experts, weighted. Nothing is owned; data are borrowed from the
 * context. */
#ifndef PRN_OPS_CONTRIB_MOE_H
#define PRN_OPS_CONTRIB_MOE_H

#include "ops/kernels/lowbit/nbit_weights.h"

typedef struct prn_moe_params {
    int64_t k, normalize_routing_weights, use_sparse_mixer, swiglu_fusion, expert_weight_bits, block_size,
        accuracy_level, weights_prepacked;
    float activation_alpha, activation_beta, swiglu_limit;
    const char *activation_type, *quant_type;
} prn_moe_params;

/* Index of each input; 0: the node lacks it. Layers are W1, W2, W3. */
typedef struct prn_moe_inputs {
    size_t weights[3], scales[3], biases[3], zeros[3], mix, unsupported; /* mix: router_weights; unsupported: the first
                                                                            refused */
    bool coded;
} prn_moe_inputs;

typedef enum prn_moe_activation {
    PRN_MOE_RELU,
    PRN_MOE_GELU,
    PRN_MOE_SILU,
    PRN_MOE_IDENTITY,
    PRN_MOE_SWIGLU
} prn_moe_activation;

enum { PRN_MOE_FC1, PRN_MOE_FC2, PRN_MOE_FC3, PRN_MOE_LAYERS };

/* One layer of every expert: [E][n][k]. */
typedef struct prn_moe_layer {
    const prony_value *weight, *scale, *zero, *bias; /* weight NULL: the node lacks this layer */
    int64_t n, k;
} prn_moe_layer;

typedef struct prn_moe {
    const prn_moe_params *params;
    const prony_value *x, *router, *mix;
    int64_t tokens, experts, width, inner, top; /* T, E, C, I, k */
    prn_moe_activation activation;
    bool joined, interleaved; /* gate and value come from one layer; they alternate */
    int64_t bits, block;      /* of codes; 0: numbers */
    prn_moe_layer layer[PRN_MOE_LAYERS];
} prn_moe;

prony_status prn_moe_check(const prony_context *context);
/* Checks all shapes. */
prony_status prn_moe_read(const prony_context *context, prn_moe *out);
/* Copies a parsed problem, with the operands of the present context. */
prn_moe prn_moe_with_operands(const prony_context *context, const prn_moe *read);

/* The codes in the inputs of QMoE (prn_op's packed_codes). */
prn_packed_qint8 prn_moe_packed_codes(const prony_context *context, size_t input);
/* Codes of one expert's layer. */
prn_nbit_weights prn_moe_codes(const prn_moe *m, int layer, int64_t expert);

/* The `top` best experts of a token and their weights; of equal logits the later expert is the better one. */
void prn_moe_route(const prn_moe *m, int64_t token, int32_t *expert, float *weight);

/* The reference kernel. */
prony_status prn_moe_reference_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_moe_reference_run(const prony_context *context);

#endif
