/* Finds composites of a program by the matchers that fuse them before a run, without rewrites that change other nodes.
 * Works on static programs too, because matchers read small constants only. */
#include "engine/rewrites/composites.h"
#include "base/threads/cancel.h"
#include "engine/bind/node.h"

#include "engine/rewrites/pass.h"

#include <string.h>

enum { MAX_ROUNDS = 4 };

/*   x ── MatMul(W) ── Add(b) ── y          x ── linear layer ── y
 *
 * W and b are constants, b has one element per column of W. Only the layers are joined: the node stays an Add. */
static prony_status match_linear(prn_rewriter *r, uint32_t n)
{
    prn_node_def *add = r->program->nodes[n];
    if (!prn_node_is(add, "Add") || add->input_count != 2) return PRONY_OK;
    prn_value_def *const *values = r->program->values;
    for (uint32_t i = 0; i < 2; i++) {
        prn_node_def *product = prn_rewrite_inner(r, add->inputs[1 - i], "MatMul");
        const prn_value_def *bias = values[add->inputs[i]];
        if (!product || !bias->constant || product->layer_count != 1) continue;
        const prn_value_def *weight = values[product->inputs[1]];
        const prony_shape *b = &bias->info.shape, *w = &weight->info.shape;
        if (!weight->constant || w->rank != 2 || b->rank < 1 || b->dim[b->rank - 1] != w->dim[1] ||
            prony_shape_numel(b) != w->dim[1] || !prn_rewrite_same_shape(r, product->outputs[0], add->outputs[0]))
            continue;
        return prn_rewrite_absorb(r, add, product);
    }
    return PRONY_OK;
}

static const prn_rewrite_fn matchers[] = {prn_rewrite_match_silu,
                                          prn_rewrite_match_hard_sigmoid,
                                          prn_rewrite_match_hard_swish,
                                          prn_rewrite_match_gelu,
                                          prn_rewrite_match_layer_norm,
                                          prn_rewrite_fold_layer_norm_affine,
                                          match_linear};

bool prn_composite_sign(const char *op)
{
    static const char *const signs[] = {"Sigmoid", "Clip",       "HardSigmoid",        "Erf",
                                        "Tanh",    "ReduceMean", "LayerNormalization", "MatMul"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcmp(op, signs[i]) == 0) return true;
    return false;
}

static prony_status run_matchers(prn_program *program, prony_error *error)
{
    prn_rewriter r = {.program = program, .error = error, .changed = true};
    if (!PRN_GROW(r.uses, r.uses_capacity, program->value_count + 1)) return prn_no_memory(error);
    prn_program_count_uses(program, r.uses);
    prony_status status = PRONY_OK;
    for (int round = 0; round < MAX_ROUNDS && status == PRONY_OK && r.changed; round++) {
        r.changed = false;
        for (size_t k = 0; k < sizeof matchers / sizeof *matchers; k++) {
            for (uint32_t n = 0; n < program->node_count && status == PRONY_OK; n++) {
                const prn_node_def *node = program->nodes[n];
                if (!node->dead && !node->dynamic && node->binding.op) status = matchers[k](&r, n);
                if (status == PRONY_OK) status = prn_cancel_check(error);
            }
        }
    }
    prn_free(r.uses);
    return status;
}

/* The linear layer has the facts of the MatMul, plus a bias. */
static void linear_cost(const prn_program *program, const prn_node_def *node, prony_cost *cost)
{
    for (uint32_t l = 0; l < node->layer_count; l++)
        if (program->layers[node->layers[l]].cost.macs) *cost = prn_layer_cost(&program->layers[node->layers[l]]);
    for (uint32_t f = 0; f < cost->fact_count; f++)
        if (strcmp(cost->facts[f].key, "bias") == 0) cost->facts[f].value = 1;
}

/* true: the scale of a LayerNormalization was added by match_layer_norm. */
static bool is_plain(const prn_program *program, const prn_node_def *node)
{
    const prn_value_def *scale = program->values[node->inputs[1]];
    const float *data = scale->info.data;
    bool ones = scale->weight == PRN_NO_WEIGHT && scale->folded_from == PRN_NO_NODE && data;
    for (int64_t i = 0; ones && i < prony_shape_numel(&scale->info.shape); i++) ones = data[i] == 1.0f;
    return ones;
}

static prony_status composite_cost(const prn_program *program, const prn_node_def *node, prn_composite *c,
                                   prony_error *error)
{
    if (strcmp(c->op, "Add") == 0) {
        c->op = "Gemm";
        linear_cost(program, node, &c->cost);
        return PRONY_OK;
    }
    prony_context context = prn_node_context(program, node, error);
    PRN_TRY(prn_node_cost(node, &context, &c->cost));
    if (strcmp(c->op, "LayerNormalization") != 0 || !is_plain(program, node)) return PRONY_OK;
    for (uint32_t f = 0; f < c->cost.fact_count; f++)
        if (strcmp(c->cost.facts[f].key, "affine") == 0) c->cost.facts[f].value = 0;
    return PRONY_OK;
}

/* After the matchers, each live node of several layers is one composite. */
prony_status prn_program_composites(prn_program *program, prn_composite **out, size_t *count, prony_error *error)
{
    prn_composite *list = NULL;
    size_t capacity = 0;
    *out = NULL;
    *count = 0;
    PRN_TRY(run_matchers(program, error));
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        if (node->dead || node->layer_count < 2) continue;
        if (!PRN_GROW(list, capacity, *count + 1)) {
            prn_free(list);
            return prn_no_memory(error);
        }
        prn_composite *c = &list[*count];
        *c = (prn_composite){.op = node->info.op_type, .layers = node->layers, .layer_count = node->layer_count};
        prony_status status = composite_cost(program, node, c, error);
        if (status != PRONY_OK) {
            prn_free(list);
            return status;
        }
        (*count)++;
    }
    *out = list;
    return PRONY_OK;
}
