/*   use_cache_branch ── If ── logits, present…      becomes      true (or false) ── If ── logits, present…
 *
 * A merged decoder has a branch for prompts and one for steps. Each run of a generator knows its branch, so the graph
 * is bound with the condition as a constant: bind puts the branch in place of the If, and one plan serves all steps, as
 * in other decoders. The derived graphs share all of the model's but the nodes that read the condition. */
#include "engine/generate/generator.h"

#include <string.h>

static const char *const merged_names[] = {"prony/use_cache_false", "prony/use_cache_true"};
static const uint8_t merged_values[] = {0, 1};

static bool merged_reads(const prn_model_node *node, const char *name)
{
    for (size_t i = 0; i < node->input_count; i++)
        if (strcmp(node->inputs[i], name) == 0) return true;
    return false;
}

/* The graph with this value for the condition `name`. NULL: no memory. All of it lies in the pool. */
static prn_graph *merged_derive(const prn_graph *g, const prony_value_info *input, int value, prn_bump *pool)
{
    prn_graph *out = prn_bump_alloc(pool, 1, sizeof *out);
    prn_model_node *nodes = prn_bump_alloc(pool, g->node_count + 1, sizeof *nodes);
    prn_initializer *initializers = prn_bump_alloc(pool, g->initializer_count + 1, sizeof *initializers);
    if (!out || !nodes || !initializers) return NULL;
    memcpy(nodes, g->nodes, g->node_count * sizeof *nodes);
    for (size_t n = 0; n < g->node_count; n++) {
        if (!merged_reads(&nodes[n], input->name)) continue;
        const char **inputs = prn_bump_alloc(pool, nodes[n].input_count, sizeof *inputs);
        if (!inputs) return NULL;
        for (size_t i = 0; i < nodes[n].input_count; i++)
            inputs[i] = strcmp(nodes[n].inputs[i], input->name) == 0 ? merged_names[value] : nodes[n].inputs[i];
        nodes[n].inputs = inputs;
    }
    if (g->initializer_count) memcpy(initializers, g->initializers, g->initializer_count * sizeof *initializers);
    initializers[g->initializer_count] =
        (prn_initializer){.name = merged_names[value],
                          .value = {.dtype = PRONY_BOOL,
                                    .shape = input->shape.rank ? (prony_shape){1, {1}} : (prony_shape){0},
                                    .data = (void *)(uintptr_t)&merged_values[value]},
                          .bytes = 1,
                          .aligned = true};
    *out = *g;
    out->nodes = nodes;
    out->initializers = initializers;
    out->initializer_count++;
    return out;
}

prony_status prn_generator_derive_merged(prony_generator *generator, prony_error *error)
{
    const prony_generator *g = generator;
    const size_t index = g->role_of[PRN_ROLE_USE_CACHE];
    if (index == SIZE_MAX || g->session->merged[0]) return PRONY_OK;
    const prony_value_info *input = &g->graph->inputs[index];
    if (input->dtype != PRONY_BOOL || input->shape.rank > 1) return PRONY_OK;
    prn_graph *derived[2];
    for (int k = 0; k < 2; k++) {
        derived[k] = merged_derive(g->graph, input, k, &g->session->pool);
        if (!derived[k]) return prn_no_memory(error);
    }
    for (int k = 0; k < 2; k++) g->session->merged[k] = derived[k];
    return PRONY_OK;
}
