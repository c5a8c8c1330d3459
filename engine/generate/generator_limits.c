/* Bounds of ids and positions, read off the graph: rows of the tables that Gather takes them from. */
#include "engine/generate/generator.h"

#include <string.h>

enum { FROM_IDS, FROM_POSITIONS };

/* Operators that pass whole numbers on. */
static bool limits_passes(const prn_model_node *node)
{
    static const char *const names[] = {"Cast", "Reshape", "Identity", "Unsqueeze", "Squeeze", "Flatten"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(node->op_type, names[k]) == 0) return node->input_count > 0 && node->output_count > 0;
    return false;
}

static const prn_initializer *limits_constant(const prn_graph *graph, const prn_names *constants, const char *name)
{
    uint32_t index;
    return prn_names_get(constants, name, &index) ? &graph->initializers[index] : NULL;
}

static void limits_lower(int64_t *limit, const char **name, const prn_initializer *table)
{
    if (!table || table->value.shape.rank < 1 || (*limit && *limit <= table->value.shape.dim[0])) return;
    *limit = table->value.shape.dim[0];
    *name = table->name;
}

/* One walk in the order of the nodes, so that what a node reads is known before it. */
static bool limits_walk(prony_generator *g, prn_names *numbers, const prn_names *constants)
{
    const prn_graph *graph = g->graph;
    prn_generator_limits *limits = &g->limits;
    for (size_t n = 0; n < graph->node_count; n++) {
        const prn_model_node *node = &graph->nodes[n];
        uint32_t from;
        if (limits_passes(node) && prn_names_get(numbers, node->inputs[0], &from)) {
            if (!prn_names_put(numbers, node->outputs[0], from)) return false;
        } else if (strstr(node->op_type, "Gather") && node->input_count > 1 &&
                   prn_names_get(numbers, node->inputs[1], &from)) {
            const prn_attr *axis = prn_attr_find(&node->attributes, "axis");
            if (axis && axis->i != 0) continue;
            const prn_initializer *table = limits_constant(graph, constants, node->inputs[0]);
            if (from == FROM_IDS)
                limits_lower(&limits->vocabulary, &limits->embedding, table);
            else
                limits_lower(&limits->positions, &limits->position_table, table);
        } else if (strcmp(node->op_type, "GroupQueryAttention") == 0 && node->input_count > 7) {
            limits_lower(&limits->positions, &limits->position_table,
                         limits_constant(graph, constants, node->inputs[7]));
        }
    }
    return true;
}

prony_status prn_generator_find_limits(prony_generator *generator, prony_error *error)
{
    prn_names numbers = {0}, constants = {0};
    const prn_graph *graph = generator->graph;
    const size_t ids = generator->role_of[PRN_ROLE_IDS], positions = generator->role_of[PRN_ROLE_POSITIONS];
    bool ok = prn_names_put(&numbers, graph->inputs[ids].name, FROM_IDS);
    if (positions != SIZE_MAX) ok = ok && prn_names_put(&numbers, graph->inputs[positions].name, FROM_POSITIONS);
    for (size_t k = 0; k < graph->initializer_count && ok; k++)
        ok = prn_names_put(&constants, graph->initializers[k].name, (uint32_t)k);
    ok = ok && limits_walk(generator, &numbers, &constants);
    prn_names_free(&numbers);
    prn_names_free(&constants);
    return ok ? PRONY_OK : prn_no_memory(error);
}
