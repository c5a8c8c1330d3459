/*   past ── com.microsoft GroupQueryAttention ── present   becomes   past ── prony GroupQueryAttention ── new rows
 *
 * A cache in fewer bits that GroupQueryAttention reads and writes by itself: the node's place takes the internal
 * operator, whose past operands are blocks of attend_cache.h, in a derived graph that shares all of the model's but its
 * list of nodes. The present outputs are the new rows alone, so nothing else may read them. */
#include "engine/generate/generator.h"

#include <string.h>

enum { STORED_PAST = 3, STORED_PRESENT = 1, STORED_ATTRIBUTES = 2 };

static bool stored_is_attention(const prn_model_node *node)
{
    return strcmp(node->op_type, "GroupQueryAttention") == 0 && strcmp(node->domain, "com.microsoft") == 0;
}

/* Nodes of this graph and of graphs inside of it that read a value. */
static size_t stored_readers(const prn_graph *g, const char *name)
{
    size_t count = 0;
    for (size_t n = 0; n < g->node_count; n++) {
        const prn_attr_list *list = &g->nodes[n].attributes;
        for (size_t i = 0; i < g->nodes[n].input_count; i++) count += strcmp(g->nodes[n].inputs[i], name) == 0;
        for (size_t a = 0; a < list->count; a++) {
            const prn_attr *attr = &list->items[a];
            const size_t graphs = attr->type == PRN_ATTR_GRAPH ? 1 : attr->type == PRN_ATTR_GRAPHS ? attr->count : 0;
            for (size_t i = 0; i < graphs && attr->graph; i++)
                for (size_t k = 0; k < attr->graph[i].captured_count; k++)
                    count += strcmp(attr->graph[i].captured[k], name) == 0;
        }
    }
    return count;
}

/* The node that reads a cache's past rows and makes its present ones, at operands of one pair; SIZE_MAX: none. */
static size_t stored_node_of(const prn_graph *g, const char *past, const char *present)
{
    for (size_t n = 0; n < g->node_count; n++) {
        const prn_model_node *node = &g->nodes[n];
        for (size_t k = 0; k < 2 && stored_is_attention(node); k++)
            if (STORED_PAST + k < node->input_count && STORED_PRESENT + k < node->output_count &&
                strcmp(node->inputs[STORED_PAST + k], past) == 0 &&
                strcmp(node->outputs[STORED_PRESENT + k], present) == 0)
                return n;
    }
    return SIZE_MAX;
}

/* Counts the caches of each node in found[node]. */
static prony_status stored_find(const prony_generator *g, uint8_t *found, prony_error *error)
{
    for (size_t k = 0; k < g->cache_count; k++) {
        const prn_generator_cache *cache = &g->caches[k];
        if (cache->stored == PRN_CACHE_FLOAT32) continue;
        const char *past = g->graph->inputs[cache->input].name, *present = g->graph->outputs[cache->output].name;
        const size_t node = stored_node_of(g->graph, past, present);
        if (node == SIZE_MAX || stored_readers(g->graph, past) != 1 || stored_readers(g->graph, present) != 0)
            return prn_generator_refuse_stored(g, cache,
                                               "wanted GroupQueryAttention of the main graph that reads it and makes "
                                               "its output, and nothing else that reads either",
                                               error);
        found[node]++;
    }
    return PRONY_OK;
}

static bool stored_become(const prony_generator *g, prn_model_node *node, prn_bump *pool)
{
    prn_attr *items = prn_bump_alloc(pool, node->attributes.count + STORED_ATTRIBUTES, sizeof *items);
    if (!items) return false;
    if (node->attributes.count) memcpy(items, node->attributes.items, node->attributes.count * sizeof *items);
    items[node->attributes.count] = (prn_attr){.name = "cache_rows", .type = PRN_ATTR_INT, .i = g->cache_rows};
    items[node->attributes.count + 1] = (prn_attr){.name = "cache_type", .type = PRN_ATTR_INT, .i = g->cache_type};
    node->attributes = (prn_attr_list){items, node->attributes.count + STORED_ATTRIBUTES};
    node->domain = "prony";
    return true;
}

/* All of it lies in the session's pool: plans of the graph outlive the generator. The present outputs lose their
 * shapes, which are those of all rows. */
static prn_graph *stored_derive(const prony_generator *g, const uint8_t *found, prn_bump *pool)
{
    const prn_graph *from = g->graph;
    prn_graph *out = prn_bump_alloc(pool, 1, sizeof *out);
    prn_model_node *nodes = prn_bump_alloc(pool, from->node_count + 1, sizeof *nodes);
    prn_port *outputs = prn_bump_alloc(pool, from->output_count + 1, sizeof *outputs);
    if (!out || !nodes || !outputs) return NULL;
    memcpy(nodes, from->nodes, from->node_count * sizeof *nodes);
    memcpy(outputs, from->outputs, from->output_count * sizeof *outputs);
    for (size_t n = 0; n < from->node_count; n++)
        if (found[n] && !stored_become(g, &nodes[n], pool)) return NULL;
    for (size_t k = 0; k < g->cache_count; k++)
        if (g->caches[k].stored != PRN_CACHE_FLOAT32) outputs[g->caches[k].output].shape.rank = -1;
    *out = *from;
    out->nodes = nodes;
    out->outputs = outputs;
    return out;
}

prony_status prn_generator_derive_stored(prony_generator *generator, prony_error *error)
{
    prony_generator *g = generator;
    if (g->cache_type == PRN_CACHE_FLOAT32 || g->kind != PRONY_CACHE_SHARED) return PRONY_OK;
    if (g->session->merged[0]) return prn_generator_refuse_stored(g, &g->caches[0], "it is a merged decoder's", error);
    prn_lowbit_graph *kept = &g->session->stored;
    uint8_t *found = prn_calloc(g->graph->node_count + 1, 1);
    prony_status status = found ? stored_find(g, found, error) : prn_no_memory(error);
    for (size_t n = 0; n < g->graph->node_count && status == PRONY_OK; n++)
        if (found[n] == 1)
            status = prn_fail(error, PRONY_UNSUPPORTED,
                              "%s: node '%s' (GroupQueryAttention): keys and values must both be caches", g->file,
                              g->graph->nodes[n].name);
    if (status == PRONY_OK && (!kept->graph || kept->rows != g->cache_rows || kept->type != (int)g->cache_type)) {
        *kept =
            (prn_lowbit_graph){stored_derive(g, found, &g->session->pool), NULL, g->cache_rows, (int)g->cache_type, 0};
        if (!kept->graph) status = prn_no_memory(error);
    }
    if (status == PRONY_OK) g->stored = kept->graph;
    prn_free(found);
    return status;
}
