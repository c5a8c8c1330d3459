/* Reads a "prony.report/1": everything that report_json.c writes, except derived values (rates, ratios, bounds).
 * Writing it again gives the same bytes. The file is not trusted: the tables of keys check types and counts, and this
 * file checks references between rows, so other code need not. */
#include "profiler/report/report_read.h"

#include "base/shape.h"
#include "base/threads/thread_pool.h"
#include "profiler/report/report_keys.h"

#include <stdlib.h>
#include <string.h>

/* ---- indices ---- */

static void report_read_check_list(prn_json_reader *j, const char *key, const uint32_t *list, size_t count,
                                   size_t bound)
{
    for (size_t i = 0; i < count && list; i++)
        if (list[i] != PRONY_NO_INDEX && list[i] >= bound)
            prn_json_bad(j, key, "element %zu refers to a missing row", i);
}

static void check_layer(prn_json_reader *j, const prony_report *r, size_t i)
{
    const prony_layer_row *l = &r->layers[i];
    if (l->index != i) prn_json_bad(j, "index", "%u does not match the row's position", l->index);
    if (l->operator_index != PRONY_NO_INDEX && l->operator_index >= r->operator_count)
        prn_json_bad(j, "operator", "%u refers to a missing operator", l->operator_index);
    report_read_check_list(j, "sources", l->sources, l->input_count, r->layer_count);
}

static void check_operator(prn_json_reader *j, const prony_report *r, size_t i)
{
    const prony_operator_row *o = &r->operators[i];
    if (o->index != i) prn_json_bad(j, "index", "%u does not match the row's position", o->index);
    report_read_check_list(j, "layers", o->layers, o->layer_count, r->layer_count);
    if (o->kernel_best_operator && o->kernel_best_operator >= r->operator_count)
        prn_json_bad(j, "kernel_best", "%u refers to a missing operator", o->kernel_best_operator);
    if (o->worker < 0 || o->worker >= PRN_MOST_THREADS)
        prn_json_bad(j, "worker", "worker %d does not exist", o->worker);
    for (size_t t = 0; t < o->thread_share_count; t++)
        if (o->thread_shares[t].thread < 0 || o->thread_shares[t].thread >= PRN_MOST_THREADS)
            prn_json_bad(j, "thread", "thread %d does not exist", o->thread_shares[t].thread);
}

static void check_weight(prn_json_reader *j, const prony_report *r, size_t i)
{
    prony_parameter_row *p = &r->parameters[i];
    if (p->layer >= r->layer_count) prn_json_bad(j, "layer", "%u refers to a missing layer", p->layer);
    p->bits = p->elements * prn_dtype_bits(p->dtype); /* at most 2^53 times 128 */
}

static void check_composite(prn_json_reader *j, const prony_report *r, size_t i)
{
    const prn_composite_row *c = &r->composites[i];
    if (c->layer_count == 0) prn_json_bad(j, "layers", "a composite needs at least one layer");
    report_read_check_list(j, "layers", c->layers, c->layer_count, r->layer_count);
}

/* Exporters rely on the order of nested rows: owners ascend, and a row follows the one that contains it. */
static void check_place(prn_json_reader *j, const prony_nested_row *rows, size_t i, size_t owners)
{
    const prony_nested_row *n = &rows[i],
                           *parent = n->parent != PRONY_NO_INDEX && n->parent < i ? &rows[n->parent] : NULL;
    if (n->index != i) prn_json_bad(j, "index", "%u does not match the row's position", n->index);
    if (n->owner >= owners || (i && n->owner < rows[i - 1].owner))
        prn_json_bad(j, "owner", "%u refers to a missing row, or is out of order", n->owner);
    if (n->parent != PRONY_NO_INDEX && (!parent || parent->owner != n->owner))
        prn_json_bad(j, "parent", "%u is not an earlier row of the same owner", n->parent);
    if (n->depth > PRN_NESTED_DEPTH || n->depth != (parent ? parent->depth + 1 : 1))
        prn_json_bad(j, "depth", "%u is not one more than the parent's depth, or exceeds %d", n->depth,
                     PRN_NESTED_DEPTH);
}

static void check_nested_layer(prn_json_reader *j, const prony_report *r, size_t i)
{
    prony_nested_row *n = &r->nested_layers[i];
    check_place(j, r->nested_layers, i, r->layer_count);
    report_read_check_list(j, "sources", n->sources, n->input_count, r->nested_layer_count);
    n->kernel = n->backend = "";
    if (n->operator_index == PRONY_NO_INDEX) return;
    if (n->operator_index >= r->nested_operator_count) {
        prn_json_bad(j, "operator", "%u leads to no operator", n->operator_index);
        return;
    }
    n->kernel = r->nested_operators[n->operator_index].kernel; /* layers name the kernel of the operator that runs
                                                                  them */
    n->backend = r->nested_operators[n->operator_index].backend;
}

static void check_nested_operator(prn_json_reader *j, const prony_report *r, size_t i)
{
    prony_nested_row *n = &r->nested_operators[i];
    check_place(j, r->nested_operators, i, r->operator_count);
    report_read_check_list(j, "layers", n->layers, n->layer_count, r->nested_layer_count);
    n->module = "";
    n->operator_index = PRONY_NO_INDEX;
}

static void report_read_check_rows(prn_json_reader *j, prony_report *r)
{
    const struct {
        const char *key;
        size_t count;
        void (*check)(prn_json_reader *, const prony_report *, size_t);
    } lists[] = {{"layers", r->layer_count, check_layer},
                 {"operators", r->operator_count, check_operator},
                 {"nested_layers", r->nested_layer_count, check_nested_layer},
                 {"nested_operators", r->nested_operator_count, check_nested_operator},
                 {"weights", r->parameter_count, check_weight},
                 {"composites", r->composite_count, check_composite}};
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        for (size_t i = 0; i < lists[l].count && j->status == PRONY_OK; i++) {
            prn_where where = prn_json_enter(j, lists[l].key, i);
            lists[l].check(j, r, i);
            prn_json_leave(j, where);
        }
    }
    double sum = 0;
    for (size_t i = 0; i < r->parameter_count; i++) sum += (double)r->parameters[i].elements;
    for (size_t i = 0; i < r->parameter_count && sum > 0; i++)
        r->parameters[i].share = (double)r->parameters[i].elements / sum;
}

/* Checks that the processes' runs sum to the report's. */
static void check_processes(prn_json_reader *j, const prony_report *r)
{
    uint64_t left = r->latency.count;
    prn_where where = prn_json_enter(j, "latency_ns", PRN_NO_ELEMENT);
    for (size_t i = 0; i < r->process_count; i++) {
        if (r->process_runs[i] == 0 || r->process_runs[i] > left)
            prn_json_bad(j, "process_runs", "the runs of each process must be positive and sum to %llu",
                         (unsigned long long)r->latency.count);
        left -= r->process_runs[i];
    }
    if (r->process_runs && left)
        prn_json_bad(j, "process_runs", "%llu of %llu runs belong to no process", (unsigned long long)left,
                     (unsigned long long)r->latency.count);
    prn_json_leave(j, where);
}

/* ---- the tree of modules ---- */

typedef struct path_index {
    const char *path;
    uint32_t row;
} path_index;

static int report_read_by_path(const void *left, const void *right)
{
    return strcmp(((const path_index *)left)->path, ((const path_index *)right)->path);
}

/* A module lists its children by path; a child comes after its parent. */
static void adopt(prn_json_reader *j, prony_report *r, uint32_t parent, const char *child, const path_index *sorted)
{
    path_index key = {child, 0};
    const path_index *found = bsearch(&key, sorted, r->module_count, sizeof key, report_read_by_path);
    if (!found || found->row <= parent || r->modules[found->row].parent != PRONY_NO_INDEX) {
        prn_json_bad(j, "children", "\"%.100s\" is not a module below it", child);
        return;
    }
    r->modules[found->row].parent = parent;
    r->modules[found->row].depth = r->modules[parent].depth + 1;
}

static void link_modules(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    path_index *sorted = prn_calloc(r->module_count + 1, sizeof *sorted);
    size_t count;
    uint32_t m = 0;
    if (!sorted) {
        j->status = prn_no_memory(j->error);
        return;
    }
    for (; m < r->module_count; m++) {
        sorted[m] = (path_index){r->modules[m].path, m};
        r->modules[m].parent = PRONY_NO_INDEX;
    }
    qsort(sorted, r->module_count, sizeof *sorted, report_read_by_path);
    const prn_json_value *row = prn_json_first(prn_json_get_array(j, root, "modules", true, &count));
    for (m = 0; row && j->status == PRONY_OK; row = prn_json_next(row), m++) {
        prn_where where = prn_json_enter(j, "modules", m);
        const char *child = NULL;
        const prn_json_value *e = prn_json_first(prn_json_get_array(j, row, "children", true, &count));
        for (; e && prn_json_element_string(j, e, "children", &child); e = prn_json_next(e))
            adopt(j, r, m, child, sorted);
        prn_json_leave(j, where);
    }
    prn_free(sorted);
}

/* ---- accuracy ---- */

/* `error` of each row of the list `key`; NULL where no row has one. */
static prony_accuracy_row *read_errors(prn_json_reader *j, const prn_json_value *root, const char *key, size_t rows)
{
    size_t count = 0;
    uint32_t i = 0;
    const prn_json_value *row = prn_json_first(prn_json_get_array(j, root, key, true, &count));
    if (!row || !prn_json_has(row, "error")) return NULL;
    prony_accuracy_row *errors = prn_json_room(j, rows, sizeof *errors);
    for (; errors && row && i < rows && j->status == PRONY_OK; row = prn_json_next(row), i++) {
        prn_where where = prn_json_enter(j, key, i);
        prn_keys_read(j, prn_json_get_object(j, row, "error", true), prn_error_keys, &(prn_at){.row = &errors[i]});
        errors[i].index = i;
        prn_json_leave(j, where);
    }
    return j->status == PRONY_OK ? errors : NULL;
}

static void read_accuracy(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    if (!r->has_accuracy) return;
    r->layer_errors = read_errors(j, root, "layers", r->layer_count);
    r->operator_errors = read_errors(j, root, "operators", r->operator_count);
    if (!r->layer_errors != !r->operator_errors)
        prn_json_bad(j, "accuracy", "layers and operators must both have errors, or neither");
    for (size_t k = 0; k < r->accuracy.output_count && j->status == PRONY_OK; k++)
        ((prony_accuracy_output *)(uintptr_t)r->accuracy.outputs)[k].error.known = true;
    if (j->status == PRONY_OK) j->status = prn_report_judge_accuracy(r, j->error);
}

/* ---- the report ---- */

prony_status prn_report_read(prony_report **out, const char *file, const char *text, size_t size, prony_error *error)
{
    prn_json_value *root = NULL;
    PRN_TRY(prn_json_document_parse(&root, file, text, size, error));
    prony_report *report = prn_calloc(1, sizeof *report);
    if (!report) {
        prn_json_document_release(root);
        return prn_no_memory(error);
    }
    prn_json_reader j = {.pool = &report->pool, .file = file, .error = error};
    prn_json_check_schema(&j, root, PRN_REPORT_SCHEMA, "report");
    prn_keys_read(&j, root, prn_report_keys, &(prn_at){.root = report, .row = report});
    if (j.status == PRONY_OK) report_read_check_rows(&j, report);
    if (j.status == PRONY_OK) check_processes(&j, report);
    if (j.status == PRONY_OK) link_modules(&j, root, report);
    if (j.status == PRONY_OK) read_accuracy(&j, root, report);
    prn_json_document_release(root);
    if (j.status == PRONY_OK)
        *out = report;
    else
        prony_report_release(report);
    return j.status;
}
