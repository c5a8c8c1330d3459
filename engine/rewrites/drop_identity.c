/*   x ── Identity ── y ──          x ──
 *
 * Whatever returns its input unchanged: Identity, Dropout and Cast that do nothing, Reshape and Expand to the same
 * shape, Slice of everything, Pad by nothing, Transpose that keeps the order, Concat of one, Mul and Div by 1. Adding 0
 * is not among them: it turns -0 into 0. Its layer goes to the node before it, or else to a reader. */
#include "engine/rewrites/rewrites.h"

#include "base/shape.h"

#include <string.h>

static bool is_any(const prn_node_def *node, const char *const *names)
{
    for (; *names; names++)
        if (prn_node_is(node, *names)) return true;
    return false;
}

static bool all_are(const prn_rewriter *r, const prn_node_def *node, const char *name, uint32_t input, int64_t wanted)
{
    int64_t list[2 * PRONY_MAX_RANK];
    size_t count;
    if (!prn_rewrite_int_list(r, node, name, input, list, 2 * PRONY_MAX_RANK, &count)) return false;
    for (size_t i = 0; i < count; i++)
        if (list[i] != wanted) return false;
    return true;
}

static bool keeps_order(const prn_rewriter *r, const prn_node_def *node)
{
    int64_t perm[PRONY_MAX_RANK];
    prn_rewrite_permutation(r, node, perm);
    for (int i = 0; i < r->program->values[node->inputs[0]]->info.shape.rank; i++)
        if (perm[i] != i) return false;
    return true;
}

/* Dropout is for training; only opset 12 on can a model ask for it, and before 7 it had to be told otherwise. */
static bool drops_nothing(const prn_rewriter *r, const prn_node_def *node)
{
    if (node->output_count > 1 && node->outputs[1] != PRN_NO_VALUE) return false;
    if (node->info.opset < 7) return prn_node_int(node, "is_test", 0) != 0;
    uint32_t training = prn_node_input(node, 2);
    if (node->info.opset < 12 || training == PRN_NO_VALUE) return true;
    const prn_value_def *value = r->program->values[training];
    return value->constant && value->info.data && value->info.dtype == PRONY_BOOL &&
           prony_shape_numel(&value->info.shape) == 1 && !*(const uint8_t *)value->info.data;
}

/* Index of the input that comes out unchanged, given that type and shape agree; -1: none. */
static int unchanged_input(const prn_rewriter *r, const prn_node_def *node)
{
    static const char *const by_shape[] = {"Identity", "Cast",      "CastLike", "Reshape", "Flatten",
                                           "Squeeze",  "Unsqueeze", "Expand",   "Tile",    NULL};
    static const char *const of_one[] = {"Concat", "Sum", "Max", "Min", "Mean", NULL};
    if (is_any(node, by_shape)) return 0;
    if (is_any(node, of_one)) return node->input_count == 1 ? 0 : -1;
    if (prn_node_is(node, "Dropout")) return drops_nothing(r, node) ? 0 : -1;
    if (prn_node_is(node, "Transpose")) return keeps_order(r, node) ? 0 : -1;
    if (prn_node_is(node, "Pad")) return all_are(r, node, "pads", 1, 0) ? 0 : -1;
    if (prn_node_is(node, "Slice"))
        return prn_node_input(node, 4) == PRN_NO_VALUE || all_are(r, node, "steps", 4, 1) ? 0 : -1;
    double factor;
    if (!prn_node_is(node, "Mul") && !prn_node_is(node, "Div")) return -1;
    int constant = prn_rewrite_scalar_operand(r, node, &factor);
    return constant >= 0 && factor == 1.0 && (constant == 1 || prn_node_is(node, "Mul")) ? 1 - constant : -1;
}

static bool same_type(const prony_value *a, const prony_value *b)
{
    return a->kind == PRONY_TENSOR && b->kind == PRONY_TENSOR && a->dtype == b->dtype && prn_shape_known(&a->shape) &&
           prn_shape_equal(&a->shape, &b->shape);
}

static prn_node_def *first_reader(const prn_rewriter *r, uint32_t n, uint32_t value)
{
    for (size_t k = n + 1; k < r->program->node_count; k++) {
        prn_node_def *node = r->program->nodes[k];
        for (uint32_t i = 0; i < node->input_count && !node->dead && !node->dynamic; i++)
            if (node->inputs[i] == value) return node;
    }
    return NULL;
}

/* A graph output keeps its value: the producer makes it directly. */
static prony_status drop_before_output(prn_rewriter *r, uint32_t n, uint32_t from, uint32_t to)
{
    prn_program *p = r->program;
    prn_node_def *node = p->nodes[n], *before = prn_rewrite_producer(r, from);
    if (!before || p->values[from]->output) return PRONY_OK;
    PRN_TRY(prn_rewrite_absorb(r, before, node));
    uint32_t *outputs = prn_pool_alloc(&p->pool, before->output_count, sizeof *outputs);
    if (!outputs) return prn_no_memory(r->error);
    memcpy(outputs, before->outputs, before->output_count * sizeof *outputs);
    outputs[0] = to;
    if (!prn_node_set_outputs(p, before, outputs, before->output_count)) return prn_no_memory(r->error);
    p->values[to]->producer = p->values[from]->producer;
    p->values[from]->producer = PRN_NO_NODE;
    prn_rewrite_replace_uses(r, from, to);
    return PRONY_OK;
}

prony_status prn_rewrite_drop_identity(prn_rewriter *r, uint32_t n)
{
    prn_program *p = r->program;
    prn_node_def *node = p->nodes[n];
    int input = node->input_count && node->output_count ? unchanged_input(r, node) : -1;
    if (input < 0 || node->inputs[input] == PRN_NO_VALUE) return PRONY_OK;
    uint32_t from = node->inputs[input], to = node->outputs[0];
    if (!same_type(&p->values[from]->info, &p->values[to]->info)) return PRONY_OK;
    if (p->values[to]->output) return drop_before_output(r, n, from, to);
    prn_node_def *heir = prn_rewrite_producer(r, from);
    if (!heir) heir = first_reader(r, n, to);
    if (!heir) return PRONY_OK;
    PRN_TRY(prn_rewrite_absorb(r, heir, node));
    prn_rewrite_replace_uses(r, to, from);
    return PRONY_OK;
}
