/*   x ── Identity ── y ──          x ──
 *
 * Drops nodes that return their input unchanged: Identity, Dropout and Cast that do nothing, Reshape and Expand to the
 * same shape, Slice of everything, Pad by nothing, Transpose that keeps the order, Concat, Sum and others of one, Split
 * into one, Clip without bounds, Mul and Div by 1, Pow by 1, Sub of 0, AveragePool and MaxPool of windows of one
 * element (an adaptive pool of an image that has its size already). Adding 0 is an identity for integers only: it turns
 * -0 into 0. The layer is marked as removed and moves to the node before it, or else to a reader. If neither can take
 * it (a graph output is an input, or another output), the node becomes an Identity, which the plan makes a view. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

#include <math.h>
#include <string.h>

static bool all_are(const prn_rewriter *r, const prn_node_def *node, const char *name, uint32_t input, int64_t wanted)
{
    int64_t list[2 * PRONY_MAX_RANK];
    size_t count;
    if (!prn_rewrite_int_list(r, node, name, input, list, 2 * PRONY_MAX_RANK, &count)) return false;
    for (size_t i = 0; i < count; i++)
        if (list[i] != wanted) return false;
    return true;
}

static bool absent_or_all(const prn_node_def *node, const char *name, int64_t wanted)
{
    const prn_attr *attr = prn_attr_find(node->info.attributes, name);
    for (size_t i = 0; attr && i < attr->count; i++)
        if (attr->type != PRN_ATTR_INTS || attr->ints[i] != wanted) return false;
    return true;
}

/* A pool of one element at every position, whose mean is the element: -0 stays, which the kernel's sum from 0 would
 * lose. Indices, the second output of MaxPool, are not its input. */
static bool pools_one(const prn_rewriter *r, const prn_node_def *node)
{
    if (node->output_count > 1 && node->outputs[1] != PRN_NO_VALUE && r->uses[node->outputs[1]]) return false;
    return absent_or_all(node, "kernel_shape", 1) && absent_or_all(node, "strides", 1) &&
           absent_or_all(node, "pads", 0);
}

static bool keeps_order(const prn_rewriter *r, const prn_node_def *node)
{
    int64_t perm[PRONY_MAX_RANK];
    prn_rewrite_permutation(r, node, perm);
    for (int i = 0; i < r->program->values[node->inputs[0]]->info.shape.rank; i++)
        if (perm[i] != i) return false;
    return true;
}

/* Dropout drops only in training. From opset 12 an input selects training; before opset 7 an attribute selects
 * inference. A ratio of 0 keeps everything, and scales by 1. */
static bool drops_nothing(const prn_rewriter *r, const prn_node_def *node)
{
    if (node->output_count > 1 && node->outputs[1] != PRN_NO_VALUE && r->uses[node->outputs[1]]) return false;
    if (node->info.opset < 7) return prn_node_int(node, "is_test", 0) != 0;
    uint32_t training = prn_node_input(node, 2);
    if (node->info.opset < 12 || training == PRN_NO_VALUE) return true;
    const prn_value_def *value = r->program->values[training];
    double ratio;
    if (prn_rewrite_scalar(r, prn_node_input(node, 1), &ratio) && ratio == 0.0) return true;
    return value->constant && value->info.data && value->info.dtype == PRONY_BOOL &&
           prony_shape_numel(&value->info.shape) == 1 && !*(const uint8_t *)value->info.data;
}

static bool is_unbounded(const prn_node_def *node)
{
    if (node->info.opset < 11)
        return !prn_attr_find(node->info.attributes, "min") && !prn_attr_find(node->info.attributes, "max");
    return prn_node_input(node, 1) == PRN_NO_VALUE && prn_node_input(node, 2) == PRN_NO_VALUE;
}

/* The operand whose other operand is a neutral constant; -1: none. A subtracted 0 must be +0: -0 would turn -0 into
 * 0. */
static int neutral_operand(const prn_rewriter *r, const prn_node_def *node)
{
    static const char *const commutes[] = {"Mul", "Add", NULL}, *const one[] = {"Mul", "Div", "Pow", NULL};
    double value;
    bool wants_one = prn_node_is_any(node, one);
    if (!wants_one && !prn_node_is(node, "Add") && !prn_node_is(node, "Sub")) return -1;
    int constant = prn_rewrite_scalar_operand(r, node, &value);
    if (constant < 0 || value != (wants_one ? 1.0 : 0.0) || (constant == 0 && !prn_node_is_any(node, commutes)))
        return -1;
    prony_dtype dtype = r->program->values[node->inputs[1 - constant]]->info.dtype;
    bool integer = dtype == PRONY_INT32 || dtype == PRONY_INT64;
    if (prn_node_is(node, "Add") && !integer) return -1;
    return prn_node_is(node, "Sub") && signbit(value) ? -1 : 1 - constant;
}

/* Index of the input that comes out unchanged, given that type and shape agree; -1: none. */
static int unchanged_input(const prn_rewriter *r, const prn_node_def *node)
{
    static const char *const by_shape[] = {"Identity", "Cast",      "CastLike", "Reshape", "Flatten",
                                           "Squeeze",  "Unsqueeze", "Expand",   "Tile",    NULL};
    static const char *const of_one[] = {"Concat", "Sum", "Max", "Min", "Mean", NULL};
    static const char *const pools[] = {"AveragePool", "MaxPool", NULL};
    if (prn_node_is_any(node, by_shape)) return 0;
    if (prn_node_is_any(node, of_one)) return node->input_count == 1 ? 0 : -1;
    if (prn_node_is_any(node, pools)) return pools_one(r, node) ? 0 : -1;
    if (prn_node_is(node, "Dropout")) return drops_nothing(r, node) ? 0 : -1;
    if (prn_node_is(node, "Transpose")) return keeps_order(r, node) ? 0 : -1;
    if (prn_node_is(node, "Pad")) return all_are(r, node, "pads", 1, 0) ? 0 : -1;
    if (prn_node_is(node, "Slice"))
        return prn_node_input(node, 4) == PRN_NO_VALUE || all_are(r, node, "steps", 4, 1) ? 0 : -1;
    if (prn_node_is(node, "Split")) return node->output_count == 1 ? 0 : -1;
    if (prn_node_is(node, "Clip")) return is_unbounded(node) ? 0 : -1;
    return neutral_operand(r, node);
}

static bool drop_identity_same_type(const prony_value *a, const prony_value *b)
{
    return a->kind == PRONY_TENSOR && b->kind == PRONY_TENSOR && a->dtype == b->dtype && prn_shape_known(&a->shape) &&
           prn_shape_equal(&a->shape, &b->shape);
}

/* A node that reads the value; `computing`: one with arithmetic. Such a node always stays an operator, while a view or
 * a join may vanish. NULL: none. */
static prn_node_def *reader_of(const prn_rewriter *r, uint32_t value, bool computing)
{
    for (const prn_use *use = r->program->values[value]->places; use; use = use->next) {
        prn_node_def *node = use->node;
        if (!node || node->dead || node->dynamic || use->child != PRN_NO_CHILD || use->index >= node->input_count)
            continue;
        if (node->inputs[use->index] == value && (!computing || node->computes)) return node;
    }
    return NULL;
}

/* The node that takes its layers: layers with a cost go to a node with a cost. */
static prn_node_def *drop_identity_heir_of(const prn_rewriter *r, const prn_node_def *node, uint32_t from, uint32_t to)
{
    prn_node_def *before = prn_rewrite_producer(r, from), *after = NULL;
    if (node->computes && (!before || !before->computes)) after = reader_of(r, to, true);
    if (after || before) return after ? after : before;
    return reader_of(r, to, false);
}

/* No other node can take its layers: it becomes an Identity, which is a view. */
static prony_status become_identity(prn_rewriter *r, prn_node_def *node, uint32_t from)
{
    static const prn_pattern nothing = {.node_count = 0};
    prn_rewrite_mark_removed(r, node);
    if (prn_node_is(node, "Identity")) return PRONY_OK;
    if (!prn_node_set_outputs(r->program, node, node->outputs, 1)) return prn_no_memory(r->error); /* no mask */
    return prn_rewrite_become(r, node, "Identity", NULL, 0, &from, 1, &nothing);
}

/* A graph output keeps its value: the producer makes it directly. */
static prony_status drop_before_output(prn_rewriter *r, uint32_t n, uint32_t from, uint32_t to)
{
    prn_program *p = r->program;
    prn_node_def *node = p->nodes[n], *before = prn_rewrite_producer(r, from);
    if (!before || p->values[from]->output) return become_identity(r, node, from);
    prn_rewrite_mark_removed(r, node);
    PRN_TRY(prn_rewrite_absorb(r, before, node));
    uint32_t *outputs = prn_bump_alloc(&p->pool, before->output_count, sizeof *outputs);
    if (!outputs) return prn_no_memory(r->error);
    memcpy(outputs, before->outputs, before->output_count * sizeof *outputs);
    outputs[0] = to;
    if (!prn_node_set_outputs(p, before, outputs, before->output_count)) return prn_no_memory(r->error);
    p->values[to]->producer = p->values[from]->producer;
    p->values[from]->producer = PRN_NO_NODE;
    prn_rewrite_replace_uses(r, from, to);
    return PRONY_OK;
}

/* true: the node computes and has a step in the plan; views have none, whatever they absorbed. */
static bool computes_in_a_step(const prn_node_def *node)
{
    return !node->dead && node->computes && !(node->binding.op && (node->binding.op->flags & PRN_OP_VIEW));
}

/* true: another node has arithmetic and runs. Asks the nearest ones first, so that a chain of neutral nodes does not
 * cost quadratic time. */
static bool others_compute(const prn_program *p, uint32_t n)
{
    for (size_t i = n + 1; i < p->node_count; i++)
        if (computes_in_a_step(p->nodes[i])) return true;
    for (size_t i = n; i-- > 0;)
        if (computes_in_a_step(p->nodes[i])) return true;
    return false;
}

prony_status prn_rewrite_drop_identity(prn_rewriter *r, uint32_t n)
{
    prn_program *p = r->program;
    prn_node_def *node = p->nodes[n];
    int input = node->input_count && node->output_count ? unchanged_input(r, node) : -1;
    if (input < 0 || node->inputs[input] == PRN_NO_VALUE) return PRONY_OK;
    uint32_t from = node->inputs[input], to = node->outputs[0];
    if (!drop_identity_same_type(&p->values[from]->info, &p->values[to]->info)) return PRONY_OK;
    /* The model's only arithmetic stays, because an operator has to carry its counts. */
    if (node->computes && !others_compute(p, n)) return PRONY_OK;
    if (p->values[to]->output) return drop_before_output(r, n, from, to);
    prn_node_def *heir = drop_identity_heir_of(r, node, from, to);
    if (!heir) return become_identity(r, node, from);
    prn_rewrite_mark_removed(r, node);
    PRN_TRY(prn_rewrite_absorb(r, heir, node));
    prn_rewrite_replace_uses(r, to, from);
    return PRONY_OK;
}
