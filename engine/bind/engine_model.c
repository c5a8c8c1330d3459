/* Loading and reference counting of models, what they declare, and the check that everything in a model can be
 * served. */
#include "engine/bind/engine_model.h"

#include "base/os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static prony_status engine_model_read_source(prony_model *model, const prn_model_source *from, prony_error *error)
{
    PRN_TRY(prn_weight_cache_create(&model->shared, error));
    if (!from->data)
        PRN_TRY(prn_model_open(&model->file, from->name, from->data_folder, from->copy, error));
    else
        PRN_TRY(prn_model_parse(&model->file, from->name, from->data, from->size, error));
    return prn_model_index(model, error);
}

static void release_parts(prony_model *model)
{
    prn_weight_cache_release(model->shared);
    prn_free(model->functions);
    if (model->file) prn_model_close(model->file);
}

/* Everything allocated from here on is charged to the model's budget. */
prony_status prn_model_load(prony_model **out, const prn_model_source *from, const prony_model_options *options,
                            prony_error *error)
{
    int64_t start = prn_now_ns();
    prn_budget *budget = prn_budget_create(NULL, options ? options->memory_limit_bytes : 0);
    if (!budget) return prn_no_memory(error);
    prn_budget *former = prn_budget_enter(budget);
    prony_model *model = prn_calloc(1, sizeof *model);
    prony_status status = model ? engine_model_read_source(model, from, error) : prn_no_memory(error);
    if (status == PRONY_LIMIT && error && !strstr(error->message, from->name))
        prn_error_prefix(error, "%s", from->name);
    prn_budget_enter(former);
    if (status != PRONY_OK) {
        if (model) release_parts(model);
        prn_free(model);
        prn_budget_release(budget);
        return status;
    }
    atomic_init(&model->references, 1);
    model->budget = budget;
    if (options) model->registry = options->registry;
    prn_registry_retain(model->registry);
    model->load_ns = prn_now_ns() - start;
    *out = model;
    return PRONY_OK;
}

void prn_model_retain(prony_model *model)
{
    atomic_fetch_add(&model->references, 1);
}

void prony_model_release(prony_model *model)
{
    if (!model || atomic_fetch_sub(&model->references, 1) != 1) return;
    if (model->stage) {
        model->release_stage(model->stage);
        prn_free(model);
        return;
    }
    if (model->observer) {
        model->release_observer(model->observer);
        prn_free(model);
        return;
    }
    release_parts(model);
    prony_registry_release(model->registry);
    prn_free(model->owned);
    prn_bump_release(&model->quantized.pool);
    prn_budget_release(model->budget);
    prn_free(model);
}

bool prony_model_is_quantized(const prony_model *model)
{
    static const char *const names[] = {"QuantizeLinear",       "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul",
                                        "ConvInteger",          "MatMulInteger",         "QGemm",       "QLinearAdd",
                                        "DynamicQuantizeMatMul"};
    const prn_graph *graph = model ? &model->file->graph : NULL;
    for (size_t n = 0; graph && n < graph->node_count; n++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(graph->nodes[n].op_type, names[i]) == 0) return true;
    return false;
}

size_t prony_model_input_count(const prony_model *model)
{
    return model ? model->file->graph.input_count : 0;
}

size_t prony_model_output_count(const prony_model *model)
{
    return model ? model->file->graph.output_count : 0;
}

const prony_value_info *prony_model_input(const prony_model *model, size_t index)
{
    return model && index < model->file->graph.input_count ? &model->file->graph.inputs[index] : NULL;
}

size_t prony_model_optional_input_count(const prony_model *model)
{
    return model ? model->file->graph.optional_count : 0;
}

const prony_value_info *prony_model_optional_input(const prony_model *model, size_t index)
{
    const prn_graph *graph = model ? &model->file->graph : NULL;
    return graph && index < graph->optional_count ? &graph->inputs[graph->input_count + index] : NULL;
}

const prony_value_info *prony_model_output(const prony_model *model, size_t index)
{
    return model && index < model->file->graph.output_count ? &model->file->graph.outputs[index] : NULL;
}

/* ---- unsupported operators ---- */

typedef struct missing {
    const char *domain, *name;
    int64_t opset;
    uint64_t nodes;
    size_t order; /* in which it was found */
} missing;

typedef struct missing_list {
    missing *items;
    size_t count, capacity;
} missing_list;

static bool note_missing(missing_list *list, const prn_model_node *node, int64_t opset)
{
    if (!PRN_GROW(list->items, list->capacity, list->count + 1)) return false;
    list->items[list->count] = (missing){node->domain, node->op_type, opset, 1, list->count};
    list->count++;
    return true;
}

static int engine_model_by_name(const void *a, const void *b)
{
    const missing *x = a, *y = b;
    int order = strcmp(x->domain, y->domain);
    if (!order) order = strcmp(x->name, y->name);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* One entry per operator, of the opset of the first. */
static void sort_missing(missing_list *list)
{
    size_t kept = 0;
    if (list->count) qsort(list->items, list->count, sizeof *list->items, engine_model_by_name);
    for (size_t i = 0; i < list->count; i++) {
        missing *last = kept ? &list->items[kept - 1] : NULL;
        if (last && strcmp(last->name, list->items[i].name) == 0 && strcmp(last->domain, list->items[i].domain) == 0)
            last->nodes++;
        else
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

/* ---- functions ---- */

static int engine_model_compare_names(const prn_function *f, const char *domain, const char *name, const char *overload)
{
    int order = strcmp(f->name, name);
    if (!order) order = strcmp(f->domain, domain);
    return order ? order : strcmp(f->overload, overload);
}

static int by_function_name(const void *a, const void *b)
{
    const prn_function *x = *(const prn_function *const *)a, *y = *(const prn_function *const *)b;
    int order = engine_model_compare_names(x, y->domain, y->name, y->overload);
    return order ? order : (x > y) - (x < y);
}

prony_status prn_model_index(prony_model *model, prony_error *error)
{
    const prn_model_file *file = model->file;
    model->functions = prn_calloc(file->function_count + 1, sizeof *model->functions);
    if (!model->functions) return prn_no_memory(error);
    for (size_t i = 0; i < file->function_count; i++) model->functions[i] = &file->functions[i];
    if (file->function_count) qsort(model->functions, file->function_count, sizeof *model->functions, by_function_name);
    return PRONY_OK;
}

const prn_function *prn_model_function(const prony_model *model, const prn_model_node *node, int64_t opset)
{
    size_t low = 0, high = model->file->function_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (engine_model_compare_names(model->functions[middle], node->domain, node->op_type, node->overload) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const prn_function *f = low < model->file->function_count ? model->functions[low] : NULL;
    if (!f || engine_model_compare_names(f, node->domain, node->op_type, node->overload) != 0) return NULL;
    return prn_registry_is_custom(model->registry, node->domain, node->op_type, opset) ? NULL : f;
}

/* Each called function is scanned once. */
typedef struct scanner {
    const prony_model *model;
    missing_list list;
    bool *called;                 /* per function */
    const prn_function **waiting; /* called, but not scanned yet */
    size_t waiting_count;
    const char *assumed; /* domain of a node without an import; NULL: none */
} scanner;

static int64_t opset_in(scanner *s, const prn_function *function, const char *domain)
{
    for (size_t i = 0; function && i < function->opset_count; i++)
        if (strcmp(function->opsets[i].domain, domain) == 0) return function->opsets[i].version;
    const int64_t opset = prn_model_opset(s->model->file, domain);
    if (opset && !prn_model_imports(s->model->file, domain)) s->assumed = domain;
    return opset;
}

static bool scan(scanner *s, const prn_function *function, const prn_model_node *nodes, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        const prn_model_node *node = &nodes[n];
        int64_t opset = opset_in(s, function, node->domain);
        const prn_function *callee = prn_model_function(s->model, node, opset);
        if (callee) {
            bool *called = &s->called[callee - s->model->file->functions];
            if (!*called) s->waiting[s->waiting_count++] = callee;
            *called = true;
            continue;
        }
        prn_operator_binding binding = prn_registry_find(s->model->registry, node->domain, node->op_type, opset);
        bool internal = binding.op && strcmp(prn_op_domain(binding.op), "prony") == 0;
        /* a Gradient becomes other nodes (bind_gradient.c) */
        if (prn_model_is_gradient(node)) continue;
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
    while (s->waiting_count > 0) {
        const prn_function *f = s->waiting[--s->waiting_count];
        if (!scan(s, f, f->nodes, f->node_count)) return false;
    }
    return true;
}

static const char *unsupported_text(const missing *m, prn_bump *pool)
{
    const char *domain = *m->domain ? m->domain : "ai.onnx", *plural = m->nodes == 1 ? "" : "s";
    const unsigned long long nodes = m->nodes;
    if (m->opset)
        return prn_bump_printf(pool, "%s::%s-%lld (%llu node%s)", domain, m->name, (long long)m->opset, nodes, plural);
    return prn_bump_printf(pool, "%s::%s (%llu node%s; the model does not import %s)", domain, m->name, nodes, plural,
                           domain);
}

static prony_status put_gaps(const scanner *s, prn_bump *pool, prn_model_gaps *out, prony_error *error)
{
    const missing_list *list = &s->list;
    const char **names = prn_bump_alloc(pool, list->count + 1, sizeof *names);
    const char **assumed = prn_bump_alloc(pool, 1, sizeof *assumed);
    if (!names || !assumed) return prn_no_memory(error);
    for (size_t i = 0; i < list->count; i++)
        if (!(names[i] = unsupported_text(&list->items[i], pool))) return prn_no_memory(error);
    *out = (prn_model_gaps){names, list->count, assumed, s->assumed != NULL};
    if (!s->assumed) return PRONY_OK;
    *assumed = prn_bump_printf(pool, "%s %lld", s->assumed, (long long)prn_model_opset(s->model->file, s->assumed));
    return *assumed ? PRONY_OK : prn_no_memory(error);
}

prony_status prn_model_find_gaps(const prony_model *model, prn_bump *pool, prn_model_gaps *out, prony_error *error)
{
    const prn_graph *graph = &model->file->graph;
    scanner s = {.model = model, .called = prn_calloc(model->file->function_count + 1, sizeof *s.called)};
    s.waiting = prn_calloc(model->file->function_count + 1, sizeof *s.waiting);
    bool ok = s.called && s.waiting && scan(&s, NULL, graph->nodes, graph->node_count) && scan_functions(&s);
    sort_missing(&s.list);
    prony_status status = ok ? put_gaps(&s, pool, out, error) : prn_no_memory(error);
    prn_free(s.list.items);
    prn_free(s.called);
    prn_free(s.waiting);
    return status;
}
