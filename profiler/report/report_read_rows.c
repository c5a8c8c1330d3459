/* The rows of a report read back: layers, operators, modules, weights, composites. An index that leads nowhere is an
 * error, so that readers of the report need not ask. */
#include "profiler/report/report_read.h"

#include "base/shape.h"
#include "base/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An array of objects under `key`: room for as many rows, and one object after the other, its place noted for messages.
 */
typedef struct rows {
    prn_json_reader *json;
    const char *key;
    const prn_json_value *next;
    size_t index;
} rows;

static void *begin_rows(rows *at, prn_report_reader *reader, const prn_json_value *root, const char *key, bool required,
                        size_t size)
{
    size_t count;
    const prn_json_value *array = prn_json_get_array(&reader->json, root, key, required, &count);
    *at = (rows){&reader->json, key, prn_json_first(array), 0};
    return prn_json_room(&reader->json, count, size);
}

static const prn_json_value *next_row(rows *at, size_t *index)
{
    const prn_json_value *row = at->next;
    prn_json_reader *j = at->json;
    j->where[0] = '\0';
    if (!row || j->status != PRONY_OK) return NULL;
    snprintf(j->where, sizeof j->where, "%s[%zu]", at->key, at->index);
    if (!prn_json_element_is_object(j, row, "")) return NULL;
    at->next = prn_json_next(row);
    *index = at->index++;
    return row;
}

/* ---- what rows share ---- */

static void read_fact_list(prn_json_reader *j, const prn_json_value *object, const char *name, prony_cost *cost)
{
    const prn_json_value *facts = prn_json_get_object(j, object, name, false);
    for (const prn_json_value *e = prn_json_first(facts); e && j->status == PRONY_OK; e = prn_json_next(e)) {
        if (cost->fact_count == PRONY_MAX_FACTS) {
            prn_json_bad(j, name, "more than %d facts", PRONY_MAX_FACTS);
            return;
        }
        prony_fact *fact = &cost->facts[cost->fact_count];
        const char *key = prn_json_key(e);
        if (!prn_json_element_i64(j, e, key, &fact->value)) return;
        fact->key = prn_pool_strndup(j->pool, key, strlen(key));
        if (!fact->key) {
            j->status = prn_no_memory(j->error);
            return;
        }
        cost->fact_count++;
    }
}

void prn_read_facts(prn_json_reader *j, const prn_json_value *object, prony_cost *cost)
{
    read_fact_list(j, object, "facts", cost);
}

const uint32_t *prn_read_indices(prn_json_reader *j, const prn_json_value *object, const char *key, bool nulls,
                                    size_t bound, size_t *count)
{
    size_t i = 0;
    const prn_json_value *array = prn_json_get_array(j, object, key, false, count);
    if (!array) return NULL;
    uint32_t *list = prn_json_room(j, *count, sizeof *list);
    if (!list) return NULL;
    for (const prn_json_value *e = prn_json_first(array); e; e = prn_json_next(e), i++) {
        if (!prn_json_element_index(j, e, key, &list[i])) return NULL;
        if (list[i] == PRONY_NO_INDEX ? !nulls : list[i] >= bound) {
            prn_json_bad(j, key, "element %zu leads to no row", i);
            return NULL;
        }
    }
    return list;
}

bool prn_read_time(prn_json_reader *j, const prn_json_value *object, prony_time_stats *t)
{
    const prn_json_value *time = prn_json_get_object(j, object, "time_ns", false);
    if (!time) return false;
    prn_json_get_i64(j, time, "mean", true, &t->mean_ns);
    prn_json_get_i64(j, time, "median", true, &t->median_ns);
    prn_json_get_i64(j, time, "min", true, &t->min_ns);
    prn_json_get_i64(j, time, "max", true, &t->max_ns);
    prn_json_get_i64(j, time, "std", true, &t->std_ns);
    return true;
}

const prony_value *const *prn_read_values(prn_json_reader *j, const prn_json_value *object, const char *key,
                                             size_t *count)
{
    size_t i = 0;
    const prn_json_value *array = prn_json_get_array(j, object, key, true, count);
    const prony_value **list = prn_json_room(j, *count, sizeof *list);
    for (const prn_json_value *e = prn_json_first(array); list && e; e = prn_json_next(e), i++) {
        if (prn_json_is_null(e)) continue;
        if (!prn_json_element_is_object(j, e, key)) return NULL;
        prony_value *value = prn_json_room(j, 1, sizeof *value);
        if (!value) return NULL;
        prn_read_type(j, e, &value->kind, &value->dtype);
        prn_read_shape(j, e, &value->shape);
        list[i] = value;
    }
    return list;
}

/* ---- the rows ---- */

static void read_layer(prn_report_reader *reader, const prn_json_value *object, prony_layer_row *l)
{
    prn_json_reader *j = &reader->json;
    l->operator_index = PRONY_NO_INDEX;
    l->module = "";
    if (prn_json_get_u32(j, object, "index", true, &l->index) && l->index != (size_t)(l - reader->report->layers))
        prn_json_bad(j, "index", "%u is not its place", l->index);
    prn_json_get_string(j, object, "name", true, &l->name);
    prn_json_get_string(j, object, "module", false, &l->module);
    prn_json_get_string(j, object, "op", true, &l->op);
    prn_json_get_bool(j, object, "folded", true, &l->folded);
    prn_json_get_bool(j, object, "dynamic", true, &l->dynamic);
    l->inputs = prn_read_values(j, object, "inputs", &l->input_count);
    l->outputs = prn_read_values(j, object, "outputs", &l->output_count);
    prn_read_counts(j, object, &l->cost);
    l->counted = prn_json_get_u64(j, object, "count", false, &l->count);
    prn_read_facts(j, object, &l->cost);
    l->measured = prn_read_time(j, object, &l->time);
    prn_json_get_share(j, object, "share", l->measured, &l->share);
    prn_json_get_bool(j, object, "time_attributed", false, &l->time_attributed);
    prn_json_get_share(j, object, "operator_share", false, &l->operator_share);
    const char *kind = NULL;
    if (prn_json_get_string(j, object, "time_kind", false, &kind)) l->removed = strcmp(kind, "removed") == 0;
    if (prn_json_get_u32(j, object, "operator", false, &l->operator_index) &&
        l->operator_index >= reader->report->operator_count)
        prn_json_bad(j, "operator", "%u leads to no operator", l->operator_index);
    prn_json_get_u64(j, object, "memory_bytes", true, &l->output_bytes);
    size_t sources;
    l->sources = prn_read_indices(j, object, "sources", true, reader->report->layer_count, &sources);
    if (l->sources && sources != l->input_count)
        prn_json_bad(j, "sources", "%zu sources of %zu inputs", sources, l->input_count);
}

static void read_team(prn_json_reader *j, const prn_json_value *trace, prony_operator_row *o)
{
    const prn_json_value *array = prn_json_get_array(j, trace, "team", false, &o->team_count);
    prony_thread_share *team = prn_json_room(j, o->team_count, sizeof *team), *share = team;
    for (const prn_json_value *e = prn_json_first(array); team && e; e = prn_json_next(e), share++) {
        if (!prn_json_element_is_object(j, e, "team")) return;
        prn_json_get_int(j, e, "thread", true, &share->thread);
        prn_json_get_i64(j, e, "start_ns", true, &share->start_ns);
        prn_json_get_i64(j, e, "end_ns", true, &share->end_ns);
        prn_json_get_i64(j, e, "busy_ns", true, &share->busy_ns);
        prn_json_get_i64(j, e, "tasks", true, &share->tasks);
        if (share->thread < 0 || share->thread >= PRN_MOST_THREADS)
            prn_json_bad(j, "thread", "%d is no thread of a team", share->thread);
    }
    o->team = o->team_count ? team : NULL;
}

static void read_parallel(prn_json_reader *j, const prn_json_value *object, prony_operator_row *o)
{
    const prn_json_value *parallel = prn_json_get_object(j, object, "parallel", false);
    prony_parallel *p = &o->parallel;
    if (!parallel) return;
    prn_json_get_double(j, parallel, "threads_used", true, &p->threads_used);
    prn_json_get_i64(j, parallel, "busy_ns", true, &p->busy_ns);
    prn_json_get_i64(j, parallel, "wait_ns", true, &p->wait_ns);
    prn_json_get_double(j, parallel, "imbalance", true, &p->imbalance);
    prn_json_get_double(j, parallel, "achieved_cores", true, &p->achieved_cores);
    prn_json_get_double(j, parallel, "efficiency", true, &p->efficiency);
    const prn_json_value *busy = prn_json_get_array(j, parallel, "thread_busy_ns", true, &o->thread_busy_count);
    int64_t *list = prn_json_room(j, o->thread_busy_count, sizeof *list), *at = list;
    for (const prn_json_value *e = prn_json_first(busy); list && e; e = prn_json_next(e))
        if (!prn_json_element_i64(j, e, "thread_busy_ns", at++)) return;
    o->thread_busy_ns = list;
}

static void read_reasons(prn_report_reader *reader, const prn_json_value *object, prony_operator_row *o)
{
    prn_json_reader *j = &reader->json;
    prony_cost facts = {.fact_count = 0};
    const prn_json_value *array = prn_json_get_array(j, object, "reasons", false, &o->reason_count);
    prony_reason *list = prn_json_room(j, o->reason_count, sizeof *list), *at = list;
    for (const prn_json_value *e = prn_json_first(array); list && e; e = prn_json_next(e), at++) {
        if (!prn_json_element_is_object(j, e, "reasons")) return;
        prn_json_get_string(j, e, "reason", true, &at->reason);
        prn_json_get_string(j, e, "text", true, &at->text);
    }
    o->reasons = list;
    const prn_json_value *best = prn_json_get_object(j, object, "kernel_best", false);
    if (best) {
        prn_json_get_double(j, best, "percent_of_roof", true, &o->kernel_best);
        o->kernel_best /= 100;
        if (prn_json_get_u32(j, best, "operator", true, &o->kernel_best_operator) &&
            o->kernel_best_operator >= reader->report->operator_count)
            prn_json_bad(j, "kernel_best", "%u leads to no operator", o->kernel_best_operator);
    }
    read_fact_list(j, object, "kernel_facts", &facts);
    prony_fact *copy = prn_json_room(j, facts.fact_count, sizeof *copy);
    if (copy && facts.fact_count) memcpy(copy, facts.facts, facts.fact_count * sizeof *copy);
    o->kernel_facts = copy;
    o->kernel_fact_count = copy ? facts.fact_count : 0;
}

static void read_operator(prn_report_reader *reader, const prn_json_value *object, prony_operator_row *o)
{
    prn_json_reader *j = &reader->json;
    o->kernel = o->backend = "";
    o->offset_bytes = UINT64_MAX;
    if (prn_json_get_u32(j, object, "index", true, &o->index) && o->index != (size_t)(o - reader->report->operators))
        prn_json_bad(j, "index", "%u is not its place", o->index);
    prn_json_get_string(j, object, "name", true, &o->name);
    prn_json_get_string(j, object, "op", true, &o->op);
    prn_json_get_string(j, object, "kernel", false, &o->kernel);
    prn_json_get_string(j, object, "backend", false, &o->backend);
    o->layers = prn_read_indices(j, object, "layers", false, reader->report->layer_count, &o->layer_count);
    prn_read_counts(j, object, &o->cost);
    o->measured = prn_read_time(j, object, &o->time);
    prn_json_get_share(j, object, "share", o->measured, &o->share);
    prn_json_get_u64(j, object, "library_heap_calls", false, &o->library_heap_calls);
    prn_json_get_int(j, object, "threads", false, &o->threads);
    read_parallel(j, object, o);
    read_reasons(reader, object, o);
    prn_json_get_u64(j, object, "offset_bytes", false, &o->offset_bytes);
    prn_json_get_u64(j, object, "output_bytes", true, &o->output_bytes);
    prn_json_get_u64(j, object, "scratch_bytes", true, &o->scratch_bytes);
    const prn_json_value *counters = prn_json_get_object(j, object, "counters", false);
    if (counters) {
        o->counted = true;
        prn_json_get_u64(j, counters, "cycles", true, &o->cycles);
        prn_json_get_u64(j, counters, "instructions", true, &o->instructions);
        prn_json_get_u64(j, counters, "cache_misses", true, &o->cache_misses);
    }
    const prn_json_value *trace = prn_json_get_object(j, object, "trace", false);
    if (!trace) return;
    o->traced = true;
    prn_json_get_int(j, trace, "worker", true, &o->worker);
    if (o->worker < 0 || o->worker >= PRN_MOST_THREADS) prn_json_bad(j, "worker", "%d is no worker", o->worker);
    prn_json_get_i64(j, trace, "start_ns", true, &o->trace_start_ns);
    prn_json_get_i64(j, trace, "end_ns", true, &o->trace_end_ns);
    read_team(j, trace, o);
}

static void read_module(prn_report_reader *reader, const prn_json_value *object, prn_module_row *m)
{
    prn_json_reader *j = &reader->json;
    m->type = "";
    m->time_ns = -1;
    m->parent = PRONY_NO_INDEX;
    prn_json_get_string(j, object, "path", true, &m->path);
    prn_json_get_string(j, object, "type", false, &m->type);
    prn_json_get_u64(j, object, "macs", true, &m->macs);
    prn_json_get_u64(j, object, "flops", true, &m->flops);
    prn_json_get_u64(j, object, "parameters", true, &m->parameters);
    prn_json_get_u64(j, object, "count", false, &m->count);
    prn_json_get_u32(j, object, "layers", false, &m->layers);
    prn_json_get_u32(j, object, "nested_layers", false, &m->nested_layers);
    prn_json_get_i64(j, object, "time_ns", false, &m->time_ns);
    prn_json_get_share(j, object, "share", false, &m->share);
}

typedef struct path_index {
    const char *path;
    uint32_t row;
} path_index;

static int by_path(const void *left, const void *right)
{
    return strcmp(((const path_index *)left)->path, ((const path_index *)right)->path);
}

/* A module lists its children by path; a child comes after its parent. */
static void adopt(prn_json_reader *j, prony_report *r, uint32_t parent, const char *child, const path_index *sorted)
{
    path_index key = {child, 0};
    const path_index *found = bsearch(&key, sorted, r->module_count, sizeof key, by_path);
    if (!found || found->row <= parent || r->modules[found->row].parent != PRONY_NO_INDEX) {
        prn_json_bad(j, "children", "\"%.100s\" is not a module below it", child);
        return;
    }
    r->modules[found->row].parent = parent;
    r->modules[found->row].depth = r->modules[parent].depth + 1;
}

static void link_modules(prn_report_reader *reader, const prn_json_value *root)
{
    prn_json_reader *j = &reader->json;
    prony_report *r = reader->report;
    path_index *sorted = prn_calloc(r->module_count + 1, sizeof *sorted);
    if (!sorted) {
        if (j->status == PRONY_OK) j->status = prn_no_memory(j->error);
        return;
    }
    for (uint32_t m = 0; m < r->module_count; m++) sorted[m] = (path_index){r->modules[m].path, m};
    qsort(sorted, r->module_count, sizeof *sorted, by_path);
    rows at;
    size_t m, count;
    at = (rows){j, "modules", NULL, 0};
    at.next = prn_json_first(prn_json_get_array(j, root, "modules", true, &count));
    for (const prn_json_value *row; (row = next_row(&at, &m));) {
        const prn_json_value *children = prn_json_get_array(j, row, "children", true, &count);
        for (const prn_json_value *e = prn_json_first(children); e && j->status == PRONY_OK; e = prn_json_next(e)) {
            const char *child = NULL;
            if (prn_json_element_string(j, e, "children", &child)) adopt(j, r, (uint32_t)m, child, sorted);
        }
    }
    prn_free(sorted);
}

static void read_weight(prn_report_reader *reader, const prn_json_value *object, prony_parameter_row *p)
{
    prn_json_reader *j = &reader->json;
    prony_kind kind;
    prn_json_get_string(j, object, "name", true, &p->name);
    if (prn_json_get_u32(j, object, "layer", true, &p->layer) && p->layer >= reader->report->layer_count)
        prn_json_bad(j, "layer", "%u leads to no layer", p->layer);
    prn_read_type(j, object, &kind, &p->dtype);
    prn_read_shape(j, object, &p->shape);
    prn_json_get_u64(j, object, "elements", true, &p->elements);
    prn_json_get_u64(j, object, "bytes", true, &p->bytes);
    p->bits = p->elements * prn_dtype_bits(p->dtype); /* at most 2^53 times 128 */
    prn_json_get_bool(j, object, "trainable", true, &p->trainable);
}

static void read_weights(prn_report_reader *reader, const prn_json_value *root)
{
    prony_report *r = reader->report;
    rows at;
    size_t i;
    double sum = 0;
    r->parameters = begin_rows(&at, reader, root, "weights", false, sizeof *r->parameters);
    for (const prn_json_value *row; r->parameters && (row = next_row(&at, &i)); r->parameter_count++) {
        read_weight(reader, row, &r->parameters[i]);
        sum += (double)r->parameters[i].elements;
    }
    for (i = 0; i < r->parameter_count && sum > 0; i++)
        r->parameters[i].share = (double)r->parameters[i].elements / sum;
}

static void read_composites(prn_report_reader *reader, const prn_json_value *root)
{
    prony_report *r = reader->report;
    prn_json_reader *j = &reader->json;
    rows at;
    size_t i;
    r->composites = begin_rows(&at, reader, root, "composites", false, sizeof *r->composites);
    for (const prn_json_value *row; r->composites && (row = next_row(&at, &i)); r->composite_count++) {
        prn_composite_row *c = &r->composites[i];
        prn_json_get_string(j, row, "op", true, &c->op);
        c->layers = prn_read_indices(j, row, "layers", false, r->layer_count, &c->layer_count);
        if (j->status == PRONY_OK && c->layer_count == 0) prn_json_bad(j, "layers", "a composite of no layers");
        prn_json_get_u64(j, row, "macs", true, &c->cost.macs);
        prn_read_facts(j, row, &c->cost);
    }
}

void prn_read_rows(prn_report_reader *reader, const prn_json_value *root)
{
    prony_report *r = reader->report;
    rows layers, operators, modules;
    size_t i;
    r->layers = begin_rows(&layers, reader, root, "layers", true, sizeof *r->layers);
    r->operators = begin_rows(&operators, reader, root, "operators", true, sizeof *r->operators);
    r->modules = begin_rows(&modules, reader, root, "modules", true, sizeof *r->modules);
    if (reader->json.status != PRONY_OK) return;
    for (const prn_json_value *e = layers.next; e; e = prn_json_next(e)) r->layer_count++;
    for (const prn_json_value *e = operators.next; e; e = prn_json_next(e)) r->operator_count++;
    for (const prn_json_value *row; (row = next_row(&layers, &i));) read_layer(reader, row, &r->layers[i]);
    for (const prn_json_value *row; (row = next_row(&operators, &i));) read_operator(reader, row, &r->operators[i]);
    for (const prn_json_value *row; (row = next_row(&modules, &i)); r->module_count++)
        read_module(reader, row, &r->modules[i]);
    if (reader->json.status == PRONY_OK) prn_read_nested(reader, root);
    if (reader->json.status == PRONY_OK) link_modules(reader, root);
    read_weights(reader, root);
    read_composites(reader, root);
}
