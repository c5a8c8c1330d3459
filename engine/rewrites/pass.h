/* Shared by the rewrites: pattern matching on a program, and the only functions that edit it.
 *
 * A rewrite is asked about one live, static node at a time, in order of execution, as the *last* node of its pattern;
 * it looks backwards. If the pattern is there it edits the program and the next question follows. An intermediate value
 * that would vanish must have no other reader (`uses` is 1). Each node that vanishes is absorbed by one that stays.
 *
 * Invariant: `uses` and every value's producer are right whenever a rewrite is asked.
 */
#ifndef PRN_ENGINE_REWRITES_PASS_H
#define PRN_ENGINE_REWRITES_PASS_H

#include "engine/bind/program.h"

typedef struct prn_rewriter {
    prn_program *program;
    uint32_t *uses; /* per value: node inputs, captures and graph outputs that read it */
    size_t uses_capacity;
    bool changed;
    prony_error *error;
} prn_rewriter;

/* ---- matching ---- */

/* true: this live, static node is served by the built-in operator of that name, of domain prony or ai.onnx. A user's
 * operator of the same name does not match. */
bool prn_node_is(const prn_node_def *node, const char *name);
/* true: it is one of these; NULL ends the list. */
bool prn_node_is_any(const prn_node_def *node, const char *const *names);
/* Input i, or PRN_NO_VALUE. */
uint32_t prn_node_input(const prn_node_def *node, uint32_t i);
/* A node whose output 0 is this value and that is live and static; NULL: none. */
prn_node_def *prn_rewrite_producer(const prn_rewriter *r, uint32_t value);
/* The same if the node is the operator `name` and the value has one reader. */
prn_node_def *prn_rewrite_inner(const prn_rewriter *r, uint32_t value, const char *name);
bool prn_rewrite_used_once(const prn_rewriter *r, uint32_t value);
/* A float32 tensor of known shape. */
bool prn_rewrite_is_f32(const prn_rewriter *r, uint32_t value);
bool prn_rewrite_same_shape(const prn_rewriter *r, uint32_t a, uint32_t b);
/* A constant float32 tensor's data and shape; false if it is something else. If its rank is 2 or more it has to be
 * pinned before the data is read (prn_program_hold). */
bool prn_rewrite_constant(const prn_rewriter *r, uint32_t value, const float **data, const prony_shape **shape);
/* true: a constant float32 tensor with all elements `wanted`; to be pinned before as above. */
bool prn_rewrite_is_all(const prn_rewriter *r, uint32_t value, float wanted);
/* A constant of one element, whatever its numeric type. */
bool prn_rewrite_scalar(const prn_rewriter *r, uint32_t value, double *out);
/* A constant of one element that is exactly `wanted`. */
bool prn_rewrite_scalar_is(const prn_rewriter *r, uint32_t value, double wanted);
/* For a node of two operands: the index of the one that is a constant of one element, or -1. */
int prn_rewrite_scalar_operand(const prn_rewriter *r, const prn_node_def *node, double *out);
/* Within two float32 roundings of `wanted`, for constants that models write in decimals: 1/6, sqrt(2/pi). */
bool prn_rewrite_near(double value, double wanted);
/* true: a normal float32 number. Rewrites move no other factor: 0, infinity and subnormal factors would make NaN and 0
 * elsewhere. */
bool prn_rewrite_is_factor(double value);

int64_t prn_node_int(const prn_node_def *node, const char *name, int64_t absent);
double prn_node_float(const prn_node_def *node, const char *name, double absent);
/* A list of integers that is an attribute in older opsets and constant input `input` in newer ones. false: not there,
 * or longer than `capacity`. */
bool prn_rewrite_int_list(const prn_rewriter *r, const prn_node_def *node, const char *name, uint32_t input,
                          int64_t *out, size_t capacity, size_t *count);
/* A Conv's or pool's `count` explicit pads, zeros by default; false: they follow from the input's extents. */
bool prn_node_pads(const prn_node_def *node, size_t count, int64_t *pads);
/* true: the attribute is this text. `absent`: the result if the attribute is missing. */
bool prn_node_string_is(const prn_node_def *node, const char *name, const char *wanted, bool absent);
/* Permutation of a Transpose node. */
void prn_rewrite_permutation(const prn_rewriter *r, const prn_node_def *node, int64_t *perm);
/* Bounds of a Clip node, infinite where it has none; false if they are computed at run time. */
bool prn_rewrite_clip_bounds(const prn_rewriter *r, const prn_node_def *node, float *low, float *high);

/* A product of nodes: constants of one element multiplied together, everything else as a list of factors. Follows Mul,
 * and Div by a constant, through values with one reader. */
enum { PRN_MAX_FACTORS = 4, PRN_MAX_PATTERN = 16 };
typedef struct prn_pattern {
    prn_node_def *nodes[PRN_MAX_PATTERN]; /* nodes that vanish */
    size_t node_count;
} prn_pattern;
typedef struct prn_factor_product {
    double constant;
    uint32_t factors[PRN_MAX_FACTORS];
    size_t count;
} prn_factor_product;
/* Adds the nodes on the way to `pattern`. false: too many factors or nodes. */
bool prn_rewrite_product_of_value(const prn_rewriter *r, uint32_t value, prn_factor_product *product,
                                  prn_pattern *pattern);
bool prn_rewrite_product_of_node(const prn_rewriter *r, prn_node_def *node, prn_factor_product *product,
                                 prn_pattern *pattern);
bool prn_pattern_add(prn_pattern *pattern, prn_node_def *node);

/* value = clip(x + shift, 0, top), through nodes that only the caller's pattern reads; they are added to it. */
typedef struct prn_shifted_clip {
    uint32_t x;
    double shift;
    float top;
} prn_shifted_clip;
bool prn_rewrite_shifted_clip(const prn_rewriter *r, uint32_t value, prn_shifted_clip *out, prn_pattern *pattern);

/* true: the node supports post-operations and has room for one more. */
bool prn_node_takes_post_op(const prn_node_def *node);

/* ---- editing ---- */

PRN_MUST_USE prony_status prn_rewrite_set_inputs(prn_rewriter *r, prn_node_def *node, const uint32_t *inputs,
                                                 uint32_t count);
/* `gone` is dead afterwards and `keep` stands for its layers. Its outputs must be without readers soon. */
PRN_MUST_USE prony_status prn_rewrite_absorb(prn_rewriter *r, prn_node_def *keep, prn_node_def *gone);
/* Marks the node's layers as removed: they do not execute and have no time. Called before the node is absorbed. */
void prn_rewrite_mark_removed(prn_rewriter *r, prn_node_def *node);
/* `keep`, with one output that only `last` reads, computes the output of node `last` instead, at the position of
 * `last`, and absorbs `last`. */
PRN_MUST_USE prony_status prn_rewrite_take_over(prn_rewriter *r, prn_node_def *keep, uint32_t last);
/* The same for a `last` that was absorbed by another node. */
PRN_MUST_USE prony_status prn_rewrite_take_place(prn_rewriter *r, prn_node_def *keep, uint32_t last);
/* `last` becomes the built-in `op` with these attributes and inputs and absorbs the pattern. Domain and opset of `op`
 * stand in a table in graph_edit.c, which has to list every operator that rewrites make. Attribute values (ints) must
 * outlive the program; the array need not. */
PRN_MUST_USE prony_status prn_rewrite_become(prn_rewriter *r, prn_node_def *last, const char *op,
                                             const prn_attr *attributes, size_t attribute_count, const uint32_t *inputs,
                                             uint32_t input_count, const prn_pattern *pattern);
/* The same for a node that keeps its operator, domain and opset. */
PRN_MUST_USE prony_status prn_rewrite_restate(prn_rewriter *r, prn_node_def *node, const prn_attr *attributes,
                                              size_t attribute_count, const uint32_t *inputs, uint32_t input_count,
                                              const prn_pattern *pattern);
bool prn_rewrite_has(const char *op);
/* All readers of `from` read `to` instead. */
void prn_rewrite_replace_uses(prn_rewriter *r, uint32_t from, uint32_t to);
/* Takes `data` (64-byte aligned, from prn_alloc_aligned) over, also on failure. */
PRN_MUST_USE prony_status prn_rewrite_add_constant(prn_rewriter *r, const char *name, const prony_value *info,
                                                   void *data, uint32_t *out);
/* A float32 vector of `count` elements equal to `element`. */
PRN_MUST_USE prony_status prn_rewrite_add_vector(prn_rewriter *r, const char *name, int64_t count, float element,
                                                 uint32_t *out);
/* A deferred constant made by `recipe` from the bytes of constant `from`. */
PRN_MUST_USE prony_status prn_rewrite_add_deferred(prn_rewriter *r, const prony_value *info, prn_lazy_constant *recipe,
                                                   uint32_t from, uint32_t *out);
/* A Reshape node's shape input. */
PRN_MUST_USE prony_status prn_rewrite_add_shape(prn_rewriter *r, const char *name, const prony_shape *shape,
                                                uint32_t *out);
/* `node` becomes a Reshape of `input` to the shape its output has. */
PRN_MUST_USE prony_status prn_rewrite_become_reshape(prn_rewriter *r, prn_node_def *node, uint32_t input,
                                                     const prn_pattern *pattern);

/* ---- contractions with constant weights, into which per-channel scales and shifts can be folded ---- */

typedef struct prn_contraction {
    prn_node_def *node;
    int axis; /* of the output: its channels */
    int64_t channels;
    const float *weights; /* weights and shape may be read while pinned */
    const prony_shape *weight_shape;
    const float *bias;             /* NULL: none */
    int64_t bias_step;             /* 0: one element for all channels */
    int64_t block, inner, modulus; /* weight e belongs to channel e / block * modulus + e / inner % modulus */
} prn_contraction;

/* false: another operator, not constant, or with post-operations already. */
bool prn_contraction_read(const prn_rewriter *r, prn_node_def *node, prn_contraction *out);
/* The node computes scale[c] * old + shift[c]; NULL: all ones, all zeros. *done is false, and nothing changed, if a
 * weight would leave the range of float32. */
PRN_MUST_USE prony_status prn_contraction_fold(prn_rewriter *r, const prn_contraction *contraction, const double *scale,
                                               const double *shift, bool *done);

/* true: the node is a BatchNormalization for inference with constant statistics of `channels` channels. Fills `scale`
 * with the scale of each channel and behind them the shifts. NULL: only tests. */
bool prn_batch_norm_affine(const prn_rewriter *r, const prn_node_def *node, int64_t channels, double *scale);

/* ---- prony::Attention, made by one rewrite and widened by another ---- */

typedef struct prn_attention {
    double scale;
    float fill; /* value where a bool mask is not `kept` */
    int64_t kept;
    int rank;
    int64_t perm[4][PRONY_MAX_RANK]; /* of q, k and v as the operator reads them, and of the result */
} prn_attention;

PRN_MUST_USE prony_status prn_attention_write(prn_rewriter *r, prn_node_def *node, const prn_attention *attention,
                                              const uint32_t *inputs, uint32_t input_count, const prn_pattern *pattern);

/* ---- the rewrites ---- */

typedef prony_status (*prn_rewrite_fn)(prn_rewriter *r, uint32_t node);

prony_status prn_rewrite_drop_identity(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_drop_expand(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_merge_transposes(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_transpose_as_reshape(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_merge_reshapes(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_channels_last(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_merge_constant_sums(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_fold_pad(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_quantize_contraction(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_quantize_sum(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_attach_quantized_residual(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_quantize_moves(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_quantize_maps(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_match_silu(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_match_hard_sigmoid(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_match_hard_swish(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_match_gelu(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_match_layer_norm(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_match_group_norm(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_fold_layer_norm_affine(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_fold_channel_norm_affine(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_match_attention(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_widen_attention(prn_rewriter *r, uint32_t node);
PRN_MUST_USE prony_status prn_rewrite_append_cache(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_fold_batch_norm(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_merge_branches(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_fold_scale_shift(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_pointwise_conv(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_attach_activation(prn_rewriter *r, uint32_t node);
prony_status prn_rewrite_attach_residual(prn_rewriter *r, uint32_t node);
/* Over the whole program at once. */
prony_status prn_rewrite_share_subexpressions(prn_rewriter *r);
/* Notes why nodes still read dequantized values; called after all rewrites. */
PRN_MUST_USE prony_status prn_rewrite_say_floats(prn_rewriter *r);

#endif
