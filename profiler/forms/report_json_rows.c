/* The rows of the JSON report: layers, operators, modules; and the members that rows and totals share. Reads the report
 * only; the module tree's links end with the call. */
#include "profiler/forms/report_json.h"

#include "base/shape.h"
#include "profiler/report/work.h"

void prn_json_known_string(prn_json *j, const char *key, const char *text)
{
    if (text && *text) prn_json_string(j, key, text);
}

void prn_json_ratio(prn_json *j, const char *key, double over, double under)
{
    if (under > 0)
        prn_json_double(j, key, over / under);
    else
        prn_json_null(j, key);
}

void prn_json_shape(prn_json *j, const prony_shape *shape)
{
    if (shape->rank < 0 || shape->rank > PRONY_MAX_RANK) return;
    prn_json_open(j, "shape", '[', true);
    for (int d = 0; d < shape->rank; d++) {
        if (shape->dim[d] >= 0)
            prn_json_int(j, NULL, shape->dim[d]);
        else
            prn_json_null(j, NULL);
    }
    prn_json_close(j, ']');
}

void prn_json_type(prn_json *j, prony_kind kind, prony_dtype dtype)
{
    static const char *const kinds[] = {"tensor", "sequence", "optional"};
    if (kind != PRONY_TENSOR && (size_t)kind < sizeof kinds / sizeof kinds[0]) prn_json_string(j, "kind", kinds[kind]);
    if (dtype != PRONY_UNDEFINED) prn_json_string(j, "type", prony_dtype_name(dtype));
}

void prn_json_counts(prn_json *j, const prony_cost *c)
{
    prn_json_uint(j, "macs", c->macs);
    prn_json_uint(j, "madds", c->madds);
    prn_json_uint(j, "flops", c->flops);
    prn_json_uint(j, "special", c->special);
    prn_json_uint(j, "int_ops", c->int_ops);
    prn_json_uint(j, "bytes_read", c->bytes_read);
    prn_json_uint(j, "bytes_written", c->bytes_written);
    prn_json_uint(j, "parameters", c->parameters);
}

static void write_fact_list(prn_json *j, const char *key, const prony_fact *facts, size_t count)
{
    prn_json_open(j, key, '{', true);
    for (size_t f = 0; f < count; f++) prn_json_int(j, facts[f].key, facts[f].value);
    prn_json_close(j, '}');
}

void prn_json_facts(prn_json *j, const prony_cost *cost)
{
    write_fact_list(j, "facts", cost->facts, cost->fact_count < PRONY_MAX_FACTS ? cost->fact_count : PRONY_MAX_FACTS);
}

void prn_json_indices(prn_json *j, const char *key, const uint32_t *indices, size_t count)
{
    prn_json_open(j, key, '[', true);
    for (size_t k = 0; k < count; k++) {
        if (indices[k] != PRONY_NO_INDEX)
            prn_json_uint(j, NULL, indices[k]);
        else
            prn_json_null(j, NULL);
    }
    prn_json_close(j, ']');
}

void prn_json_values(prn_json *j, const char *key, const prony_value *const *values, size_t count)
{
    prn_json_open(j, key, '[', true);
    for (size_t i = 0; i < count; i++) {
        if (!values[i]) {
            prn_json_null(j, NULL);
            continue;
        }
        prn_json_open(j, NULL, '{', true);
        prn_json_shape(j, &values[i]->shape);
        prn_json_type(j, values[i]->kind, values[i]->dtype);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

void prn_json_time(prn_json *j, const prony_time_stats *t)
{
    prn_json_open(j, "time_ns", '{', true);
    prn_json_int(j, "mean", t->mean_ns);
    prn_json_int(j, "median", t->median_ns);
    prn_json_int(j, "min", t->min_ns);
    prn_json_int(j, "max", t->max_ns);
    prn_json_int(j, "std", t->std_ns);
    prn_json_close(j, '}');
}

void prn_json_bytes(prn_json *j, const prony_cost *c)
{
    uint64_t sum;
    if (!prn_add_u64(&sum, c->bytes_read, c->bytes_written)) sum = UINT64_MAX;
    prn_json_uint(j, "bytes", sum);
}

static void write_layer(prn_json *j, const prony_report *r, const prony_layer_row *l)
{
    prn_json_open(j, NULL, '{', false);
    prn_json_uint(j, "index", l->index);
    prn_json_string(j, "name", l->name ? l->name : "");
    prn_json_string(j, "module", l->module ? l->module : "");
    prn_json_string(j, "op", l->op ? l->op : "");
    prn_json_bool(j, "folded", l->folded);
    prn_json_bool(j, "dynamic", l->dynamic);
    prn_json_values(j, "inputs", l->inputs, l->input_count);
    prn_json_values(j, "outputs", l->outputs, l->output_count);
    prn_json_counts(j, &l->cost);
    prn_json_bytes(j, &l->cost);
    if (l->counted) prn_json_uint(j, "count", l->count);
    prn_json_facts(j, &l->cost);
    if (l->sources) prn_json_indices(j, "sources", l->sources, l->input_count);
    if (l->measured) {
        prn_json_time(j, &l->time);
        prn_json_double(j, "share", l->share);
        prn_json_bool(j, "time_attributed", l->time_attributed);
        prn_json_double(j, "operator_share", prn_round_digits(l->operator_share, prn_estimate_digits(l)));
    } else if (prn_report_stamped(r)) {
        prn_json_null(j, "time_ns");
        prn_json_null(j, "share");
    }
    if (prn_report_stamped(r)) prn_json_known_string(j, "time_kind", prn_time_kind(l));
    if (l->operator_index != PRONY_NO_INDEX)
        prn_json_uint(j, "operator", l->operator_index);
    else
        prn_json_null(j, "operator");
    prn_json_uint(j, "memory_bytes", l->output_bytes);
    prn_json_close(j, '}');
}

static void write_team(prn_json *j, const prony_operator_row *o)
{
    prn_json_open(j, "team", '[', true);
    for (size_t i = 0; i < o->team_count; i++) {
        const prony_thread_share *share = &o->team[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_int(j, "thread", share->thread);
        prn_json_int(j, "start_ns", share->start_ns);
        prn_json_int(j, "end_ns", share->end_ns);
        prn_json_int(j, "busy_ns", share->busy_ns);
        prn_json_int(j, "tasks", share->tasks);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_parallel(prn_json *j, const prony_operator_row *o)
{
    const prony_parallel *p = &o->parallel;
    prn_json_open(j, "parallel", '{', true);
    prn_json_double(j, "threads_used", p->threads_used);
    prn_json_int(j, "busy_ns", p->busy_ns);
    prn_json_int(j, "wait_ns", p->wait_ns);
    prn_json_double(j, "imbalance", p->imbalance);
    prn_json_double(j, "achieved_cores", p->achieved_cores);
    prn_json_double(j, "efficiency", p->efficiency);
    prn_json_open(j, "thread_busy_ns", '[', true);
    for (size_t t = 0; t < o->thread_busy_count; t++) prn_json_int(j, NULL, o->thread_busy_ns[t]);
    prn_json_close(j, ']');
    prn_json_open(j, "thread_wait_ns", '[', true);
    int64_t time = o->threads > 0 ? (p->busy_ns + p->wait_ns) / o->threads : 0;
    for (size_t t = 0; t < o->thread_busy_count; t++)
        prn_json_int(j, NULL, time > o->thread_busy_ns[t] ? time - o->thread_busy_ns[t] : 0);
    prn_json_close(j, ']');
    prn_json_close(j, '}');
}

static void write_reasons(prn_json *j, const prony_operator_row *o)
{
    if (o->reason_count) prn_json_open(j, "reasons", '[', false);
    for (size_t i = 0; i < o->reason_count; i++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "reason", o->reasons[i].reason);
        prn_json_string(j, "text", o->reasons[i].text);
        prn_json_close(j, '}');
    }
    if (o->reason_count) prn_json_close(j, ']');
    if (!(o->kernel_best > 0)) return;
    prn_json_open(j, "kernel_best", '{', true);
    prn_json_double(j, "percent_of_roof", o->kernel_best * 100);
    prn_json_uint(j, "operator", o->kernel_best_operator);
    prn_json_close(j, '}');
}

static void write_operator(prn_json *j, const prony_report *r, const prony_operator_row *o)
{
    prn_json_open(j, NULL, '{', false);
    prn_json_uint(j, "index", o->index);
    prn_json_string(j, "name", o->name ? o->name : "");
    prn_json_string(j, "op", o->op ? o->op : "");
    prn_json_known_string(j, "kernel", o->kernel);
    prn_json_known_string(j, "backend", o->backend);
    prn_json_indices(j, "layers", o->layers, o->layer_count);
    prn_json_counts(j, &o->cost);
    prn_json_bytes(j, &o->cost);
    double bytes = (double)o->cost.bytes_read + (double)o->cost.bytes_written;
    prn_json_ratio(j, "arithmetic_intensity", (double)o->cost.flops, bytes);
    if (o->measured) {
        prn_json_time(j, &o->time);
        prn_json_double(j, "share", o->share);
        prn_json_ratio(j, "flops_per_second", (double)o->cost.flops, (double)o->time.mean_ns / 1e9);
        double share_of_roof;
        prony_bound bound = prony_report_bound(r, o->index, &share_of_roof);
        if (bound != PRONY_BOUND_UNKNOWN) {
            prn_json_string(j, "bound", prony_bound_name(bound));
            prn_json_double(j, "percent_of_roof", share_of_roof * 100);
        }
        prn_json_uint(j, "library_heap_calls", o->library_heap_calls);
        write_reasons(j, o);
    }
    if (o->kernel_fact_count) write_fact_list(j, "kernel_facts", o->kernel_facts, o->kernel_fact_count);
    if (o->threads > 0) prn_json_int(j, "threads", o->threads);
    if (o->parallel.threads_used > 0) write_parallel(j, o);
    if (o->offset_bytes != UINT64_MAX)
        prn_json_uint(j, "offset_bytes", o->offset_bytes);
    else
        prn_json_null(j, "offset_bytes");
    prn_json_uint(j, "output_bytes", o->output_bytes);
    prn_json_uint(j, "scratch_bytes", o->scratch_bytes);
    if (o->counted) {
        prn_json_open(j, "counters", '{', true);
        prn_json_uint(j, "cycles", o->cycles);
        prn_json_uint(j, "instructions", o->instructions);
        prn_json_uint(j, "cache_misses", o->cache_misses);
        prn_json_close(j, '}');
    }
    if (o->traced) {
        prn_json_open(j, "trace", '{', true);
        prn_json_int(j, "worker", o->worker);
        prn_json_int(j, "start_ns", o->trace_start_ns);
        prn_json_int(j, "end_ns", o->trace_end_ns);
        if (o->team_count) write_team(j, o);
        prn_json_close(j, '}');
    }
    prn_json_close(j, '}');
}

static void write_module(prn_json *j, const prony_report *r, size_t index, const uint32_t *first_child,
                         const uint32_t *next_sibling)
{
    const prn_module_row *m = &r->modules[index];
    prn_json_open(j, NULL, '{', false);
    prn_json_string(j, "path", m->path);
    prn_json_known_string(j, "type", m->type);
    prn_json_uint(j, "macs", m->macs);
    prn_json_uint(j, "flops", m->flops);
    prn_json_uint(j, "parameters", m->parameters);
    if (r->totals.counted) prn_json_uint(j, "count", m->count);
    prn_json_uint(j, "layers", m->layers);
    if (m->nested_layers) prn_json_uint(j, "nested_layers", m->nested_layers);
    if (prn_report_stamped(r)) {
        prn_json_int(j, "time_ns", m->time_ns);
        prn_json_double(j, "share", m->share);
    }
    prn_json_open(j, "children", '[', true);
    for (uint32_t c = first_child[index]; c != PRONY_NO_INDEX; c = next_sibling[c])
        prn_json_string(j, NULL, r->modules[c].path);
    prn_json_close(j, ']');
    prn_json_close(j, '}');
}

/* Children are linked back to front, so that they come out in the order of the rows. */
static void write_modules(prn_json *j, const prony_report *r)
{
    uint32_t *first_child = prn_calloc(r->module_count + 1, sizeof *first_child);
    uint32_t *next_sibling = prn_calloc(r->module_count + 1, sizeof *next_sibling);
    if (!first_child || !next_sibling) {
        if (j->status == PRONY_OK) j->status = prn_no_memory(j->error);
    } else {
        for (size_t i = 0; i < r->module_count; i++) first_child[i] = next_sibling[i] = PRONY_NO_INDEX;
        for (size_t i = r->module_count; i-- > 0;) {
            uint32_t parent = r->modules[i].parent;
            if (parent >= r->module_count) continue;
            next_sibling[i] = first_child[parent];
            first_child[parent] = (uint32_t)i;
        }
        prn_json_open(j, "modules", '[', false);
        for (size_t i = 0; i < r->module_count; i++) write_module(j, r, i, first_child, next_sibling);
        prn_json_close(j, ']');
    }
    prn_free(first_child);
    prn_free(next_sibling);
}

static void write_weights(prn_json *j, const prony_report *r)
{
    prn_json_open(j, "weights", '[', false);
    for (size_t i = 0; i < r->parameter_count; i++) {
        const prony_parameter_row *p = &r->parameters[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "name", p->name);
        prn_json_uint(j, "layer", p->layer);
        prn_json_type(j, PRONY_TENSOR, p->dtype);
        prn_json_shape(j, &p->shape);
        prn_json_uint(j, "elements", p->elements);
        prn_json_uint(j, "bytes", p->bytes);
        prn_json_bool(j, "trainable", p->trainable);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_composites(prn_json *j, const prony_report *r)
{
    prn_json_open(j, "composites", '[', false);
    for (size_t i = 0; i < r->composite_count; i++) {
        const prn_composite_row *c = &r->composites[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "op", c->op);
        prn_json_indices(j, "layers", c->layers, c->layer_count);
        prn_json_uint(j, "macs", c->cost.macs);
        prn_json_facts(j, &c->cost);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

void prn_json_rows(prn_json *j, const prony_report *r)
{
    prn_json_open(j, "layers", '[', false);
    for (size_t i = 0; i < r->layer_count; i++) write_layer(j, r, &r->layers[i]);
    prn_json_close(j, ']');
    prn_json_open(j, "operators", '[', false);
    for (size_t i = 0; i < r->operator_count; i++) write_operator(j, r, &r->operators[i]);
    prn_json_close(j, ']');
    prn_json_nested(j, r);
    write_modules(j, r);
    write_weights(j, r);
    write_composites(j, r);
}
