/*   x ── Conv ── Relu ── y          x ── Conv[relu] ── y
 *
 * For every operator that takes post-operations, and every activation that is one. */
#include "engine/rewrites/rewrites.h"

#include <math.h>
#include <string.h>

static bool read_clip(const prn_rewriter *r, const prn_node_def *node, prn_post_op *op)
{
    op->kind = PRN_POST_CLIP;
    if (!prn_rewrite_clip_bounds(r, node, &op->a, &op->b)) return false;
    if (op->a == 0.0f && isinf(op->b)) *op = (prn_post_op){.kind = PRN_POST_RELU};
    return true;
}

/* A slope for all elements is LeakyRelu's. */
static bool read_prelu(const prn_rewriter *r, const prn_node_def *node, prn_post_op *op)
{
    double slope;
    *op = (prn_post_op){.kind = PRN_POST_LEAKY_RELU};
    if (!prn_rewrite_scalar(r, prn_node_input(node, 1), &slope)) return false;
    op->a = (float)slope;
    return prn_rewrite_same_shape(r, node->inputs[0], node->outputs[0]);
}

static bool read_activation(const prn_rewriter *r, const prn_node_def *node, prn_post_op *op)
{
    static const struct {
        const char *op_type;
        prn_post_op post;
    } activations[] = {
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
        {operator, {.kind = PRN_POST_##SYMBOL, .a = a_, .b = b_}},
#include "ops/activations.inc"
    };
    if (prn_node_is(node, "Clip")) return read_clip(r, node, op);
    if (prn_node_is(node, "PRelu")) return read_prelu(r, node, op);
    size_t i = 0;
    while (i < sizeof activations / sizeof *activations && !prn_node_is(node, activations[i].op_type)) i++;
    if (i == sizeof activations / sizeof *activations) return false;
    *op = activations[i].post;
    op->a = (float)prn_node_float(node, "alpha", (double)op->a);
    op->b = (float)prn_node_float(node, "beta", (double)op->b);
    if (op->kind != PRN_POST_GELU_ERF) return true;
    const prn_attr *approximate = prn_attr_find(node->info.attributes, "approximate");
    return !approximate || (approximate->type == PRN_ATTR_STRING && strcmp(approximate->s.data, "none") == 0);
}

prony_status prn_rewrite_attach_activation(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    prn_post_op op;
    if (node->input_count < 1 || !prn_rewrite_used_once(r, node->inputs[0]) || !prn_rewrite_is_f32(r, node->inputs[0]))
        return PRONY_OK;
    prn_node_def *before = prn_rewrite_producer(r, node->inputs[0]);
    if (!before || !prn_node_takes_post_op(before) || !read_activation(r, node, &op)) return PRONY_OK;
    if (!prn_node_add_post_op(r->program, before, &op)) return prn_no_memory(r->error);
    return prn_rewrite_take_over(r, before, n);
}
