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

const prn_function *prn_model_function(const prony_model *model, const prn_model_node *node, int64_t opset)
{
    const prn_model_file *file = model->file;
    for (size_t i = 0; i < file->function_count; i++) {
        const prn_function *f = &file->functions[i];
        if (strcmp(f->name, node->op_type) != 0 || strcmp(f->domain, node->domain) != 0 ||
            strcmp(f->overload, node->overload) != 0)
            continue;
        return prn_registry_is_custom(model->registry, node->domain, node->op_type, opset) ? NULL : f;
    }
    return NULL;
}

/* Functions are looked at once each, as far as they are called. */
typedef struct scanner {
    const prony_model *model;
    missing_list list;
    bool *called; /* per function */
    bool again;   /* one was called that was not before */
} scanner;

static int64_t opset_in(const scanner *s, const prn_function *function, const char *domain)
{
    for (size_t i = 0; function && i < function->opset_count; i++)
        if (strcmp(function->opsets[i].domain, domain) == 0) return function->opsets[i].version;
    return prn_model_opset(s->model->file, domain);
}

static bool scan(scanner *s, const prn_function *function, const prn_model_node *nodes, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        const prn_model_node *node = &nodes[n];
        int64_t opset = opset_in(s, function, node->domain);
        const prn_function *callee = prn_model_function(s->model, node, opset);
        if (callee) {
            bool *called = &s->called[callee - s->model->file->functions];
            s->again |= !*called;
            *called = true;
            continue;
        }
        prn_operator_binding binding = prn_registry_find(s->model->registry, node->domain, node->op_type, opset);
        bool internal = binding.op && strcmp(binding.op->domain, "prony") == 0;
        if ((!binding.op || internal) && !note_missing(&s->list, node, opset)) return false;
        for (size_t a = 0; a < node->attributes.count; a++) {
            const prn_graph *graph = node->attributes.items[a].graph;
            if (graph && !scan(s, function, graph->nodes, graph->node_count)) return false;
        }
    }
    return true;
}

static bool scan_functions(scanner *s)
{
    const prn_model_file *file = s->model->file;
    bool *done = prn_calloc(file->function_count + 1, sizeof *done);
    bool ok = done != NULL;
    while (ok && s->again) {
        s->again = false;
        for (size_t i = 0; ok && i < file->function_count; i++) {
            const prn_function *f = &file->functions[i];
            if (!s->called[i] || done[i]) continue;
            done[i] = true;
            ok = scan(s, f, f->nodes, f->node_count);
        }
    }
    prn_free(done);
    return ok;
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
    const prn_graph *graph = &model->file->graph;
    scanner s = {.model = model, .called = prn_calloc(model->file->function_count + 1, sizeof *s.called)};
    const char **names = NULL;
    bool ok = s.called && scan(&s, NULL, graph->nodes, graph->node_count) && scan_functions(&s);
    missing_list list = s.list;
    prony_status status = ok ? PRONY_OK : prn_no_memory(error);
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
    prn_free(s.called);
    return status;
}
