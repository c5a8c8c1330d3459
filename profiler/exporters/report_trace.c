/* The last run as Chrome trace events, which Perfetto and chrome://tracing open. Process 1 is the model: one track for
 * the run, one per worker with its operators, and one per worker with each operator's layers (the operator's time is
 * shared among them as an estimate, marked "attributed"). If threads were traced, each thread has a track with its
 * measured share of each operator. A counter shows the arena's live bytes. A flow leads from each layer to its
 * operator. Nested rows lie inside of their operator: at the measured time if they ran once; else one after another
 * with the total time, marked "accumulated". Reads the report only. */
#include "base/threads/thread_pool.h"
#include "profiler/exporters/nested_lines.h"
#include "profiler/json/json_write.h"

#include <string.h>

enum {
    RUN_TRACK = 1,
    WORKER_TRACK = 100,
    LAYER_TRACK = 10000,
    TEAM_TRACK = 20000,
    TEAM_ORDER = 10000,
    DEVICE_TRACK = 50,
    COPY_TRACK = 51,
    DEVICE_ORDER = 9000,
    PROCESS = 1
};

static int team_track(int worker, int thread)
{
    return TEAM_TRACK + worker * PRN_MOST_THREADS + thread;
}

static void report_trace_open_event(prn_json *j, const char *phase, const char *name, int track)
{
    prn_json_open(j, NULL, '{', true);
    prn_json_string(j, "ph", phase);
    prn_json_string(j, "name", name);
    prn_json_int(j, "pid", PROCESS);
    prn_json_int(j, "tid", track);
}

/* Timestamps of the format are microseconds; three decimals keep the nanosecond. */
static void put_us(prn_json *j, const char *key, int64_t ns)
{
    prn_json_double(j, key, (double)ns / 1e3);
}

/* A slice, with its arguments open. */
static void open_span(prn_json *j, const char *name, int track, const char *category, int64_t start_ns, int64_t took_ns)
{
    report_trace_open_event(j, "X", name, track);
    prn_json_string(j, "cat", category);
    put_us(j, "ts", start_ns);
    put_us(j, "dur", took_ns);
    prn_json_open(j, "args", '{', true);
}

static void name_track(prn_json *j, const char *what, const char *name, int track, int order)
{
    report_trace_open_event(j, "M", what, track);
    prn_json_open(j, "args", '{', true);
    prn_json_string(j, "name", name);
    prn_json_close(j, '}');
    prn_json_close(j, '}');
    if (order < 0) return;
    report_trace_open_event(j, "M", "thread_sort_index", track);
    prn_json_open(j, "args", '{', true);
    prn_json_int(j, "sort_index", order);
    prn_json_close(j, '}');
    prn_json_close(j, '}');
}

/* The largest number of threads in an operator; 0: threads were not traced. */
static int team_size(const prony_report *r)
{
    int threads = 0;
    for (size_t i = 0; i < r->operator_count; i++)
        for (size_t t = 0; t < r->operators[i].thread_share_count; t++)
            if (r->operators[i].thread_shares[t].thread >= threads)
                threads = r->operators[i].thread_shares[t].thread + 1;
    return threads;
}

static void name_team(prn_json *j, int worker, int threads, prn_bump *pool)
{
    for (int t = 0; t < threads; t++) {
        const char *name =
            prn_bump_printf(pool, t ? "worker %d: thread %d" : "worker %d: thread %d (its own)", worker, t);
        if (!name && j->status == PRONY_OK) j->status = prn_no_memory(j->error);
        name_track(j, "thread_name", name ? name : "", team_track(worker, t), TEAM_ORDER + t);
    }
}

static void name_tracks(prn_json *j, const prony_report *r, int threads, prn_bump *pool)
{
    int workers = 0;
    for (size_t i = 0; i < r->operator_count; i++)
        if (r->operators[i].traced && r->operators[i].worker >= workers) workers = r->operators[i].worker + 1;
    const char *process = prn_bump_printf(pool, "prony: %s", r->model.name);
    if (!process && j->status == PRONY_OK) j->status = prn_no_memory(j->error);
    name_track(j, "process_name", process ? process : "", RUN_TRACK, -1);
    name_track(j, "thread_name", "run", RUN_TRACK, 0);
    for (int w = 0; w < workers; w++) {
        const char *operators = prn_bump_printf(pool, "worker %d: operators", w);
        const char *layers = prn_bump_printf(pool, "worker %d: layers (attributed)", w);
        if ((!operators || !layers) && j->status == PRONY_OK) j->status = prn_no_memory(j->error);
        name_track(j, "thread_name", operators ? operators : "", WORKER_TRACK + w, 1 + 2 * w);
        name_track(j, "thread_name", layers ? layers : "", LAYER_TRACK + w, 2 + 2 * w);
        name_team(j, w, threads, pool);
    }
}

static void report_trace_put_shape(prn_json *j, const prony_value *const *values, size_t count)
{
    if (!count || !values[0] || values[0]->shape.rank < 0) return;
    prn_json_open(j, "output_shape", '[', true);
    for (int d = 0; d < values[0]->shape.rank && d < PRONY_MAX_RANK; d++)
        prn_json_int(j, NULL, values[0]->shape.dim[d]);
    prn_json_close(j, ']');
}

static void report_trace_put_cost(prn_json *j, const prony_cost *c)
{
    prn_json_uint(j, "macs", c->macs);
    prn_json_uint(j, "flops", c->flops);
    if (c->int_ops) prn_json_uint(j, "int_ops", c->int_ops);
    prn_json_uint(j, "bytes_read", c->bytes_read);
    prn_json_uint(j, "bytes_written", c->bytes_written);
    prn_json_uint(j, "parameters", c->parameters);
}

static void put_operator(prn_json *j, const prony_operator_row *o)
{
    int64_t took = o->trace_end_ns - o->trace_start_ns;
    open_span(j, o->name, WORKER_TRACK + o->worker, "operator", o->trace_start_ns, took);
    prn_json_uint(j, "operator", o->index);
    prn_json_string(j, "op", o->op);
    prn_json_string(j, "kernel", o->kernel);
    prn_json_string(j, "backend", o->backend);
    prn_json_int(j, "threads", o->threads);
    report_trace_put_cost(j, &o->cost);
    if (took > 0) prn_json_double(j, "gflops_per_second", (double)o->cost.flops / (double)took);
    prn_json_int(j, "mean_ns", o->time.mean_ns);
    prn_json_double(j, "share", o->share);
    prn_json_uint(j, "output_bytes", o->output_bytes);
    prn_json_uint(j, "scratch_bytes", o->scratch_bytes);
    prn_json_close(j, '}');
    prn_json_close(j, '}');
}

static void put_nested_event(prn_json *j, const prony_nested_row *n, int worker, int64_t start, int64_t took)
{
    open_span(j, n->name, WORKER_TRACK + worker, "nested", start, took);
    prn_json_uint(j, "nested_operator", n->index);
    prn_json_string(j, "path", n->path);
    prn_json_string(j, "op", n->op);
    prn_json_string(j, "kernel", n->kernel);
    prn_json_string(j, "backend", n->backend);
    prn_json_uint(j, "executions", n->executions);
    prn_json_bool(j, "accumulated", n->executions > 1);
    report_trace_put_cost(j, &n->cost);
    if (took > 0) prn_json_double(j, "gflops_per_second", (double)n->cost.flops / (double)took);
    prn_json_int(j, "mean_ns", n->time.mean_ns);
    prn_json_double(j, "share", n->share);
    prn_json_close(j, '}');
    prn_json_close(j, '}');
}

/* Begin and end of a row's slice, and the end of the nested slices placed so far. */
typedef struct slice {
    int64_t start, end, filled;
} slice;

/* Places a nested slice; it never leaves the one around it. */
static slice place_nested(const prony_nested_row *n, slice *around)
{
    int64_t start = n->executions == 1 ? n->trace_start_ns : around->filled;
    if (start < around->filled) start = around->filled;
    if (start > around->end) start = around->end;
    int64_t end = n->trace_ns < around->end - start ? start + n->trace_ns : around->end;
    around->filled = end;
    return (slice){start, end, start};
}

static void report_trace_put_nested(prn_json *j, const prony_report *r, const prony_operator_row *o)
{
    size_t first, count = prn_nested_of(r->nested_operators, r->nested_operator_count, o->index, &first);
    slice whole = {o->trace_start_ns, o->trace_end_ns, o->trace_start_ns};
    slice *slices = count ? prn_calloc(count, sizeof *slices) : NULL;
    if (count && !slices && j->status == PRONY_OK) j->status = prn_no_memory(j->error);
    for (size_t i = 0; slices && i < count; i++) {
        const prony_nested_row *n = &r->nested_operators[first + i];
        if (!n->traced || !n->executions) continue;
        slices[i] = place_nested(n, n->parent == PRONY_NO_INDEX ? &whole : &slices[n->parent - first]);
        put_nested_event(j, n, o->worker, slices[i].start, slices[i].end - slices[i].start);
    }
    prn_free(slices);
}

/* The work of each thread in the operator. Without a thread pool the caller's thread did everything. */
static void put_team(prn_json *j, const prony_operator_row *o)
{
    const prony_thread_share alone = {0, o->trace_start_ns, o->trace_end_ns, o->trace_end_ns - o->trace_start_ns, 0};
    const prony_thread_share *team = o->thread_share_count ? o->thread_shares : &alone;
    double took = (double)(o->trace_end_ns - o->trace_start_ns);
    for (size_t t = 0; t < (o->thread_share_count ? o->thread_share_count : 1); t++) {
        open_span(j, o->name, team_track(o->worker, team[t].thread), "thread", team[t].start_ns,
                  team[t].end_ns - team[t].start_ns);
        prn_json_uint(j, "operator", o->index);
        prn_json_string(j, "op", o->op);
        prn_json_int(j, "busy_ns", team[t].busy_ns);
        if (took > 0) prn_json_double(j, "busy_share", (double)team[t].busy_ns / took);
        if (o->thread_share_count)
            prn_json_int(j, "tasks", team[t].tasks);
        else
            prn_json_bool(j, "alone", true);
        prn_json_close(j, '}');
        prn_json_close(j, '}');
    }
}

static void put_flow(prn_json *j, const char *phase, const prony_layer_row *layer, int track, int64_t ns)
{
    report_trace_open_event(j, phase, "layer to operator", track);
    prn_json_string(j, "cat", "flow");
    prn_json_uint(j, "id", layer->index);
    put_us(j, "ts", ns);
    if (*phase == 'f') prn_json_string(j, "bp", "e");
    prn_json_close(j, '}');
}

/* The layers divide the operator's time in the proportions of their mean times. */
static void report_trace_put_layers(prn_json *j, const prony_report *r, const prony_operator_row *o)
{
    double whole = (double)o->time.mean_ns, took = (double)(o->trace_end_ns - o->trace_start_ns), before = 0;
    for (size_t k = 0; k < o->layer_count; k++) {
        if (o->layers[k] >= r->layer_count) continue;
        const prony_layer_row *l = &r->layers[o->layers[k]];
        double after = before + (double)l->time.mean_ns;
        double from = whole > 0 ? before / whole : (double)k / (double)o->layer_count;
        double to = whole > 0 ? after / whole : (double)(k + 1) / (double)o->layer_count;
        int64_t start = o->trace_start_ns + (int64_t)(took * from), end = o->trace_start_ns + (int64_t)(took * to);
        if (end > o->trace_end_ns) end = o->trace_end_ns;
        before = after;
        open_span(j, l->name, LAYER_TRACK + o->worker, "layer", start, end - start);
        prn_json_uint(j, "layer", l->index);
        prn_json_string(j, "op", l->op);
        prn_json_string(j, "module", l->module);
        prn_json_uint(j, "operator", o->index);
        prn_json_bool(j, "time_attributed", l->time_attributed);
        report_trace_put_shape(j, l->outputs, l->output_count);
        report_trace_put_cost(j, &l->cost);
        prn_json_close(j, '}');
        prn_json_close(j, '}');
        put_flow(j, "s", l, LAYER_TRACK + o->worker, start);
        put_flow(j, "f", l, WORKER_TRACK + o->worker, start);
    }
}

static void put_counter(prn_json *j, int64_t ns, uint64_t bytes)
{
    report_trace_open_event(j, "C", "arena live bytes", RUN_TRACK);
    put_us(j, "ts", ns);
    prn_json_open(j, "args", '{', true);
    prn_json_uint(j, "live_bytes", bytes);
    prn_json_close(j, '}');
    prn_json_close(j, '}');
}

static void put_run(prn_json *j, const prony_report *r, int64_t end_ns)
{
    report_trace_open_event(j, "X", "run", RUN_TRACK);
    prn_json_string(j, "cat", "run");
    prn_json_double(j, "ts", 0);
    put_us(j, "dur", end_ns);
    prn_json_open(j, "args", '{', true);
    prn_json_uint(j, "runs_measured", r->latency.count);
    prn_json_int(j, "median_latency_ns", r->latency.median_ns);
    prn_json_int(j, "intra_op_threads", r->config.intra_op_threads);
    prn_json_int(j, "inter_op_threads", r->config.inter_op_threads);
    prn_json_close(j, '}');
    prn_json_close(j, '}');
}

/* Kernels and copies by the device's clock, moved to the host's. */
static void put_device(prn_json *j, const prony_report *r)
{
    const prony_device_report *d = &r->device;
    if (!r->has_device) return;
    name_track(j, "thread_name", "device: kernels", DEVICE_TRACK, DEVICE_ORDER);
    name_track(j, "thread_name", "device: copies", COPY_TRACK, DEVICE_ORDER + 1);
    for (size_t i = 0; i < d->operator_count; i++) {
        const prony_device_operator_row *o = &d->operators[i];
        if (o->trace_end_ns == 0 || o->operator_index >= r->operator_count) continue;
        open_span(j, r->operators[o->operator_index].name, DEVICE_TRACK, "device", o->trace_start_ns,
                  o->trace_end_ns - o->trace_start_ns);
        prn_json_uint(j, "operator", o->operator_index);
        prn_json_string(j, "kernels", o->kernels);
        prn_json_uint(j, "launches", o->launches);
        prn_json_int(j, "busy_ns", o->busy_ns);
        prn_json_int(j, "wait_ns", o->wait_ns);
        prn_json_close(j, '}');
        prn_json_close(j, '}');
    }
    for (size_t i = 0; i < d->copy_count; i++) {
        const prony_device_copy_row *c = &d->copies[i];
        if (c->trace_end_ns == 0) continue;
        open_span(j, c->value, COPY_TRACK, "copy", c->trace_start_ns, c->trace_end_ns - c->trace_start_ns);
        prn_json_bool(j, "to_device", c->to_device);
        prn_json_uint(j, "bytes", c->bytes);
        prn_json_string(j, "reason", c->reason);
        prn_json_close(j, '}');
        prn_json_close(j, '}');
    }
}

static void put_events(prn_json *j, const prony_report *r, int64_t last_end)
{
    bool threads = team_size(r) > 0;
    int64_t run_end = r->traced_run_ns;
    if (run_end <= 0) run_end = r->samples_ns && r->latency.count ? r->samples_ns[r->latency.count - 1] : last_end;
    put_run(j, r, run_end > last_end ? run_end : last_end);
    for (size_t i = 0; i < r->operator_count; i++) {
        if (!r->operators[i].traced) continue;
        put_operator(j, &r->operators[i]);
        report_trace_put_nested(j, r, &r->operators[i]);
        report_trace_put_layers(j, r, &r->operators[i]);
        if (threads) put_team(j, &r->operators[i]);
    }
    for (size_t i = 0; i < r->memory.timeline_count; i++) {
        const prony_memory_point *p = &r->memory.timeline[i];
        if (p->step < r->operator_count && r->operators[p->step].traced)
            put_counter(j, r->operators[p->step].trace_start_ns, p->live_bytes);
    }
    put_counter(j, last_end, 0);
    put_device(j, r);
}

/* ---- a sharded model ----
 *
 * The last run of all ranks, on rank 0's clock: processes 2 and on, one a rank, with a track for computing and waiting,
 * one for operators and one for messages. Operators were traced in the rank's last pass, so they begin where its last
 * computing begins. */

enum { FIRST_PROCESS = 2, STAGE_TRACK = 1, OPERATOR_TRACK = 2, MESSAGE_TRACK = 3 };

static bool has_ranks(const prony_report *r)
{
    return r->rank_count && r->pipeline_event_count;
}

static void trace_ranks_event(prn_json *j, const char *phase, const char *name, size_t rank, int track)
{
    prn_json_open(j, NULL, '{', true);
    prn_json_string(j, "ph", phase);
    prn_json_string(j, "name", name);
    prn_json_uint(j, "pid", FIRST_PROCESS + rank);
    prn_json_int(j, "tid", track);
}

static void trace_ranks_span(prn_json *j, const char *category, int64_t start_ns, int64_t end_ns)
{
    prn_json_string(j, "cat", category);
    prn_json_double(j, "ts", (double)start_ns / 1e3);
    prn_json_double(j, "dur", end_ns > start_ns ? (double)(end_ns - start_ns) / 1e3 : 0);
    prn_json_open(j, "args", '{', true);
}

static void trace_ranks_close(prn_json *j)
{
    prn_json_close(j, '}');
    prn_json_close(j, '}');
}

static void trace_ranks_name(prn_json *j, const char *what, const char *name, size_t rank, int track)
{
    trace_ranks_event(j, "M", what, rank, track);
    prn_json_open(j, "args", '{', true);
    prn_json_string(j, "name", name ? name : "");
    trace_ranks_close(j);
    if (!name && j->status == PRONY_OK) j->status = prn_no_memory(j->error);
}

static void name_rank(prn_json *j, const prony_rank_row *row, size_t rank, prn_bump *pool)
{
    const char *name =
        rank == 0 ? prn_bump_printf(pool, "rank 0: %s", row->node)
                  : prn_bump_printf(pool, "rank %zu: %s, clock %.3f us from rank 0's, within %.3f us", rank, row->node,
                                    (double)row->clock_offset_ns * 1e-3, (double)row->clock_error_ns * 1e-3);
    trace_ranks_name(j, "process_name", name, rank, STAGE_TRACK);
    trace_ranks_name(j, "thread_name", "stage", rank, STAGE_TRACK);
    trace_ranks_name(j, "thread_name", "operators of the last pass", rank, OPERATOR_TRACK);
    trace_ranks_name(j, "thread_name", "messages", rank, MESSAGE_TRACK);
}

static void put_pipeline_event(prn_json *j, const prony_pipeline_event *e, prn_bump *pool)
{
    const bool message = e->tensor != NULL;
    const char *name = message ? prn_bump_printf(pool, "%s %s", e->kind, e->tensor)
                               : prn_bump_printf(pool, "%s, micro-batch %u", e->kind, e->micro_batch);
    if (!name && j->status == PRONY_OK) j->status = prn_no_memory(j->error);
    trace_ranks_event(j, "X", name ? name : "", e->rank, message ? MESSAGE_TRACK : STAGE_TRACK);
    trace_ranks_span(j, e->kind, e->start_ns, e->end_ns);
    prn_json_uint(j, "micro_batch", e->micro_batch);
    if (message) prn_json_uint(j, "peer", e->peer);
    trace_ranks_close(j);
}

/* The rank whose stage holds the layer; PRONY_NO_INDEX: none. */
static size_t rank_of_layer(const prony_report *r, uint32_t layer)
{
    for (size_t k = 0; k < r->rank_count; k++)
        for (size_t i = 0; i < r->ranks[k].layer_count; i++)
            if (r->ranks[k].layers[i] == layer) return k;
    return PRONY_NO_INDEX;
}

static int64_t last_pass_start(const prony_report *r, size_t rank)
{
    int64_t start = 0;
    for (size_t i = 0; i < r->pipeline_event_count; i++) {
        const prony_pipeline_event *e = &r->pipeline_events[i];
        if (e->rank == rank && strcmp(e->kind, "compute") == 0 && e->start_ns > start) start = e->start_ns;
    }
    return start;
}

/* Operators stand in the order of the stages; one without layers belongs to the stage of the one before it. */
static void put_rank_operators(prn_json *j, const prony_report *r)
{
    size_t rank = 0;
    int64_t start = last_pass_start(r, 0);
    for (size_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        const size_t of = o->layer_count ? rank_of_layer(r, o->layers[0]) : rank;
        if (of != PRONY_NO_INDEX && of != rank) start = last_pass_start(r, rank = of);
        if (!o->traced) continue;
        trace_ranks_event(j, "X", o->name, rank, OPERATOR_TRACK);
        trace_ranks_span(j, "operator", start + o->trace_start_ns, start + o->trace_end_ns);
        prn_json_uint(j, "operator", o->index);
        prn_json_string(j, "op", o->op);
        prn_json_string(j, "kernel", o->kernel);
        trace_ranks_close(j);
    }
}

static void put_ranks(prn_json *j, const prony_report *r, prn_bump *pool)
{
    for (size_t k = 0; k < r->rank_count; k++) name_rank(j, &r->ranks[k], k, pool);
    for (size_t i = 0; i < r->pipeline_event_count; i++) put_pipeline_event(j, &r->pipeline_events[i], pool);
    put_rank_operators(j, r);
}

/* Refuses a report without time stamps; otherwise names all tracks before their events. */
prony_status prn_report_write_trace(const prony_report *r, const prony_write_options *options, prony_write_fn write,
                                    void *user, prony_error *error)
{
    (void)options;
    int64_t last_end = -1;
    for (size_t i = 0; i < r->operator_count; i++)
        if (r->operators[i].traced && r->operators[i].trace_end_ns > last_end) last_end = r->operators[i].trace_end_ns;
    const bool ranks = has_ranks(r);
    if (last_end < 0 && !ranks)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "the report holds no timestamps of a run; profile the model to trace it");
    prn_json *j = prn_alloc(sizeof *j);
    if (!j) return prn_no_memory(error);
    prn_bump pool = {0};
    prn_json_begin(j, write, user, error);
    prn_json_open(j, NULL, '{', false);
    prn_json_string(j, "displayTimeUnit", "ns");
    prn_json_open(j, "otherData", '{', true);
    prn_json_string(j, "model", r->model.name);
    prn_json_string(j, "prony_version", PRONY_VERSION);
    prn_json_close(j, '}');
    prn_json_open(j, "traceEvents", '[', false);
    if (ranks) {
        put_ranks(j, r, &pool);
    } else {
        name_tracks(j, r, team_size(r), &pool);
        put_events(j, r, last_end);
    }
    prn_json_close(j, ']');
    prn_json_close(j, '}');
    prony_status status = prn_json_end(j);
    prn_bump_release(&pool);
    prn_free(j);
    return status;
}
