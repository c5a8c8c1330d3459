/*   x ── Conv ── Relu ── y                        x ── Conv[relu] ── y
 *   x ── Conv[relu] ── Mul(a) ── Add(b) ── y      x ── Conv[relu, affine] ── y
 *
 * For every operator that takes post-operations: attaches activations, and constants that scale and shift the
 * result. */
#include "engine/rewrites/pass.h"

#include <math.h>
#include <string.h>

static bool read_clip(const prn_rewriter *r, const prn_node_def *node, prn_post_op *op)
{
    op->kind = PRN_POST_CLIP;
    if (!prn_rewrite_clip_bounds(r, node, &op->a, &op->b)) return false;
    if (op->a == 0.0f && op->b == INFINITY) *op = (prn_post_op){.kind = PRN_POST_RELU};
    return true;
}

/* Reads a PRelu with one slope for all elements as LeakyRelu. */
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
    {operator, {.kind = PRN_POST_##SYMBOL, .a = a_, .b = b_} },
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

/* The reciprocal of a power of two, which is exact, so no quotient is rounded twice; of other numbers infinite or
 * NaN. */
static float reciprocal(double number)
{
    int exponent;
    return fabs(frexp(number, &exponent)) == 0.5 ? (float)(1.0 / number) : INFINITY;
}

/* Reads a scale or shift by one number. Directly after a contraction it is folded into the weights
 * (fold_scale_shift.c), or belongs to a pattern not matched yet. */
static bool read_affine(const prn_rewriter *r, const prn_node_def *node, prn_post_op *op, uint32_t *x)
{
    static const char *const names[] = {"Mul", "Div", "Add", "Sub"};
    double number;
    size_t k = 0;
    while (k < 4 && !prn_node_is(node, names[k])) k++;
    if (k == 4 || node->info.opset < 7) return false;
    const int operand = prn_rewrite_scalar_operand(r, node, &number);
    if (operand < 0 || (operand == 0 && k == 1)) return false;
    *x = node->inputs[1 - operand];
    const prn_node_def *before = prn_rewrite_producer(r, *x);
    if (!before || !before->post_ops || !prn_rewrite_same_shape(r, *x, node->outputs[0])) return false;
    *op = (prn_post_op){.kind = PRN_POST_AFFINE, .a = 1.0f};
    if (k == 0) op->a = (float)number;
    if (k == 1) op->a = reciprocal(number);
    if (k == 2) op->b = (float)number;
    if (k == 3) op->b = (float)(operand ? -number : number);
    if (k == 3 && operand == 0) op->a = -1.0f;
    return isfinite(op->a) && isfinite(op->b);
}

/* true: a shift after a scale joins it in one post-operation. */
static bool joins_last(prn_node_def *node, const prn_post_op *op)
{
    prn_post_op *last = node->post_ops ? &node->post_ops->op[node->post_ops->count - 1] : NULL;
    if (!last || last->kind != PRN_POST_AFFINE || last->b != 0.0f || op->kind != PRN_POST_AFFINE || op->a != 1.0f)
        return false;
    last->b = op->b;
    return true;
}

prony_status prn_rewrite_attach_activation(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    prn_post_op op;
    uint32_t x = node->input_count > 0 ? node->inputs[0] : PRN_NO_VALUE;
    if (x == PRN_NO_VALUE || (!read_activation(r, node, &op) && !read_affine(r, node, &op, &x))) return PRONY_OK;
    if (!prn_rewrite_used_once(r, x) || !prn_rewrite_is_f32(r, x)) return PRONY_OK;
    prn_node_def *before = prn_rewrite_producer(r, x);
    if (!before || !prn_node_takes_post_op(before)) return PRONY_OK;
    if (!joins_last(before, &op) && !prn_node_add_post_op(r->program, before, &op)) return prn_no_memory(r->error);
    return prn_rewrite_take_over(r, before, n);
}
