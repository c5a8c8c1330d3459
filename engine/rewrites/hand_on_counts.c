/*   x ── QLinearConv ── Reshape{Quantize, Dequantize} ── y        x ── QLinearConv{Quantize, Dequantize} ── Reshape ── y
 *
 * The plan has no step for a view. Layers that count something and that a node absorbed before it became a view go to the
 * nearest node with a step: before it, or else behind it. Where there is none the plan makes a step of the view after all.
 * Nothing of the layers runs, so they are marked as removed. */
#include "engine/rewrites/rewrites.h"

#include <string.h>

static bool is_view(const prn_node_def *node)
{
    return node->binding.op && (node->binding.op->flags & PRN_OP_VIEW) && !node->dead && !node->dynamic &&
           node->output_count > 0 && node->outputs[0] != PRN_NO_VALUE;
}

/* A node that reads the value, or what views make of it. */
static prn_node_def *reader_of(const prn_rewriter *r, uint32_t value)
{
    for (const prn_use *use = r->program->values[value]->places; use; use = use->next) {
        prn_node_def *node = use->node;
        if (!node || node->dead || node->dynamic || use->child != PRN_NO_CHILD || use->index >= node->input_count ||
            node->inputs[use->index] != value)
            continue;
        if (is_view(node)) node = reader_of(r, node->outputs[0]);
        if (node) return node;
    }
    return NULL;
}

static prn_node_def *heir_of(const prn_rewriter *r, const prn_node_def *view)
{
    prn_node_def *node = prn_rewrite_producer(r, view->inputs[0]);
    while (node && is_view(node)) node = prn_rewrite_producer(r, node->inputs[0]);
    return node ? node : reader_of(r, view->outputs[0]);
}

prony_status prn_rewrite_hand_on_counts(prn_rewriter *r, uint32_t n)
{
    prn_program *p = r->program;
    prn_node_def *view = p->nodes[n], given = {.layer_count = 0};
    if (!is_view(view) || !prn_node_is_counted(p, view)) return PRONY_OK;
    prn_node_def *heir = heir_of(r, view);
    uint32_t *layers = prn_pool_alloc(&p->pool, view->layer_count, sizeof *layers);
    if (!layers) return prn_no_memory(r->error);
    if (!heir) return PRONY_OK;
    uint32_t kept = 0;
    for (uint32_t l = 0; l < view->layer_count; l++) {
        const uint32_t layer = view->layers[l];
        if (!prn_cost_is_counted(&p->layers[layer].cost)) {
            view->layers[kept++] = layer;
            continue;
        }
        p->layers[layer].removed = true;
        layers[given.layer_count++] = layer;
    }
    view->layer_count = kept;
    given.layers = layers;
    given.layer_capacity = given.layer_count;
    return prn_program_absorb(p, heir, &given) ? PRONY_OK : prn_no_memory(r->error);
}
