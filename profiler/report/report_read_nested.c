/* The rows of what runs in subgraphs, read back. Forms rely on their order: owners ascend, and a row stands behind the one that it is
 * inside of. */
#include "profiler/report/report_read.h"

#include <stdio.h>

typedef struct list {
    prony_nested_row *rows;
    size_t count, read;
    size_t owners;      /* rows of the level around them */
    size_t others;      /* rows of the other list of this kind */
    const char *key;
} list;

static void read_place(prn_json_reader *j, const prn_json_value *object, const list *at, prony_nested_row *n)
{
    const prony_nested_row *before = at->read ? n - 1 : NULL;
    n->parent = n->operator_index = PRONY_NO_INDEX;
    n->module = n->kernel = n->backend = "";
    if (prn_json_get_u32(j, object, "index", true, &n->index) && n->index != at->read)
        prn_json_bad(j, "index", "%u is not its place", n->index);
    if (prn_json_get_u32(j, object, "owner", true, &n->owner) &&
        (n->owner >= at->owners || (before && n->owner < before->owner)))
        prn_json_bad(j, "owner", "%u is no row, or not in order", n->owner);
    if (prn_json_get_u32(j, object, "parent", false, &n->parent) &&
        (n->parent >= at->read || at->rows[n->parent].owner != n->owner))
        prn_json_bad(j, "parent", "%u is no row before it of the same owner", n->parent);
    else if (prn_json_get_u32(j, object, "depth", true, &n->depth) &&
             (n->depth > PRN_NESTED_DEPTH || n->depth != (n->parent == PRONY_NO_INDEX ? 1 : at->rows[n->parent].depth + 1)))
        prn_json_bad(j, "depth", "%u is not one more than its parent's, or above %d", n->depth, PRN_NESTED_DEPTH);
    prn_json_get_string(j, object, "path", true, &n->path);
    prn_json_get_string(j, object, "subgraph", true, &n->subgraph);
    prn_json_get_string(j, object, "name", true, &n->name);
    prn_json_get_string(j, object, "op", true, &n->op);
}

static void read_figures(prn_json_reader *j, const prn_json_value *object, prony_nested_row *n)
{
    n->executed = prn_json_get_u64(j, object, "executions", false, &n->executions);
    prn_read_counts(j, object, &n->cost);
    n->measured = prn_read_time(j, object, &n->time);
    prn_json_get_share(j, object, "share", n->measured, &n->share);
    prn_json_get_bool(j, object, "stopped", false, &n->stopped);
    prn_json_get_bool(j, object, "dynamic", true, &n->dynamic);
}

static void read_layer(prn_json_reader *j, const prn_json_value *object, const list *at, prony_nested_row *n)
{
    size_t sources;
    prn_json_get_string(j, object, "module", false, &n->module);
    prn_json_get_bool(j, object, "folded", true, &n->folded);
    n->inputs = prn_read_values(j, object, "inputs", &n->input_count);
    n->outputs = prn_read_values(j, object, "outputs", &n->output_count);
    prn_read_facts(j, object, &n->cost);
    n->sources = prn_read_indices(j, object, "sources", true, at->count, &sources);
    if (n->sources && sources != n->input_count)
        prn_json_bad(j, "sources", "%zu sources of %zu inputs", sources, n->input_count);
    prn_json_get_bool(j, object, "time_attributed", false, &n->time_attributed);
    if (prn_json_get_u32(j, object, "operator", false, &n->operator_index) && n->operator_index >= at->others)
        prn_json_bad(j, "operator", "%u leads to no operator", n->operator_index);
}

static void read_operator(prn_json_reader *j, const prn_json_value *object, const list *at, prony_nested_row *n)
{
    prn_json_get_string(j, object, "kernel", false, &n->kernel);
    prn_json_get_string(j, object, "backend", false, &n->backend);
    n->layers = prn_read_indices(j, object, "layers", false, at->others, &n->layer_count);
    const prn_json_value *trace = prn_json_get_object(j, object, "trace", false);
    n->traced = trace != NULL;
    if (!trace) return;
    prn_json_get_i64(j, trace, "start_ns", true, &n->trace_start_ns);
    prn_json_get_i64(j, trace, "time_ns", true, &n->trace_ns);
}

static const prn_json_value *begin(prn_json_reader *j, const prn_json_value *root, list *at)
{
    const prn_json_value *array = prn_json_get_array(j, root, at->key, false, &at->count);
    if (!array) at->count = 0;
    at->rows = at->count ? prn_json_room(j, at->count, sizeof *at->rows) : NULL;
    return at->rows ? prn_json_first(array) : NULL;
}

static void read_rows(prn_json_reader *j, list *at, const prn_json_value *first,
                      void (*read)(prn_json_reader *, const prn_json_value *, const list *, prony_nested_row *))
{
    for (const prn_json_value *e = first; e && j->status == PRONY_OK; e = prn_json_next(e), at->read++) {
        prony_nested_row *row = &at->rows[at->read];
        j->where[0] = '\0';
        snprintf(j->where, sizeof j->where, "%s[%zu]", at->key, at->read);
        if (!prn_json_element_is_object(j, e, "")) return;
        read_place(j, e, at, row);
        read_figures(j, e, row);
        read(j, e, at, row);
    }
}

/* Layers that an operator runs name its kernel. */
static void link_kernels(prony_report *r)
{
    for (size_t i = 0; i < r->nested_layer_count; i++) {
        prony_nested_row *row = &r->nested_layers[i];
        if (row->operator_index >= r->nested_operator_count) continue;
        row->kernel = r->nested_operators[row->operator_index].kernel;
        row->backend = r->nested_operators[row->operator_index].backend;
    }
}

void prn_read_nested(prn_report_reader *reader, const prn_json_value *root)
{
    prony_report *r = reader->report;
    prn_json_reader *j = &reader->json;
    list layers = {.owners = r->layer_count, .key = "nested_layers"};
    list operators = {.owners = r->operator_count, .key = "nested_operators"};
    j->where[0] = '\0';
    const prn_json_value *first_layer = begin(j, root, &layers), *first_operator = begin(j, root, &operators);
    layers.others = operators.count;
    operators.others = layers.count;
    read_rows(j, &layers, first_layer, read_layer);
    read_rows(j, &operators, first_operator, read_operator);
    if (j->status != PRONY_OK) return;
    r->nested_layers = layers.rows;
    r->nested_layer_count = layers.count;
    r->nested_operators = operators.rows;
    r->nested_operator_count = operators.count;
    link_kernels(r);
    j->where[0] = '\0';
}
