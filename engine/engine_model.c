/* Reference counting of models, and the check that everything in a model can be served. */
#include "engine/engine_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void prn_model_retain(prony_model *model)
{
    atomic_fetch_add(&model->references, 1);
}

typedef struct missing {
    const char *domain, *name;
    int64_t opset;
    uint64_t nodes;
} missing;

typedef struct missing_list {
    missing *items;
    size_t count, capacity;
} missing_list;

static bool note_missing(missing_list *list, const prn_model_node *node, int64_t opset)
{
    for (size_t i = 0; i < list->count; i++) {
        missing *m = &list->items[i];
        if (strcmp(m->name, node->op_type) != 0 || strcmp(m->domain, node->domain) != 0) continue;
        m->nodes++;
        return true;
    }
    if (!PRN_GROW(list->items, list->capacity, list->count + 1)) return false;
    list->items[list->count++] = (missing){node->domain, node->op_type, opset, 1};
    return true;
}

static bool scan(const prony_model *model, const prn_graph *graph, missing_list *list)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const prn_model_node *node = &graph->nodes[n];
        int64_t opset = prn_model_opset(model->file, node->domain);
        prn_operator_binding binding = prn_registry_find(model->registry, node->domain, node->op_type, opset);
        bool internal = binding.op && strcmp(binding.op->domain, "prony") == 0;
        if ((!binding.op || internal) && !note_missing(list, node, opset)) return false;
        for (size_t a = 0; a < node->attributes.count; a++)
            if (node->attributes.items[a].graph && !scan(model, node->attributes.items[a].graph, list)) return false;
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    const missing *x = a, *y = b;
    int domains = strcmp(x->domain, y->domain);
    return domains ? domains : strcmp(x->name, y->name);
}

prony_status prn_model_unsupported(const prony_model *model, prn_pool *pool, const char *const **out, size_t *count,
                                   prony_error *error)
{
    missing_list list = {0};
    const char **names = NULL;
    prony_status status = scan(model, &model->file->graph, &list) ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        names = prn_pool_alloc(pool, list.count + 1, sizeof *names);
        if (!names) status = prn_no_memory(error);
    }
    if (status == PRONY_OK && list.count) qsort(list.items, list.count, sizeof *list.items, by_name);
    for (size_t i = 0; status == PRONY_OK && i < list.count; i++) {
        const missing *m = &list.items[i];
        names[i] = prn_pool_printf(pool, "%s::%s-%lld (%llu node%s)", *m->domain ? m->domain : "ai.onnx", m->name,
                                   (long long)m->opset, (unsigned long long)m->nodes, m->nodes == 1 ? "" : "s");
        if (!names[i]) status = prn_no_memory(error);
    }
    *out = names;
    *count = list.count;
    prn_free(list.items);
    return status;
}
