/* The last run of a sharded model as Chrome trace events: a process a rank, all on rank 0's clock. Operators were traced
 * in the rank's last pass, so they begin where its last computing begins. */
#include "profiler/exporters/pipeline/trace_ranks.h"

#include <string.h>

enum { FIRST_PROCESS = 2, STAGE_TRACK = 1, OPERATOR_TRACK = 2, MESSAGE_TRACK = 3 };

bool prn_trace_has_ranks(const prony_report *r)
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

void prn_trace_put_ranks(prn_json *j, const prony_report *r, prn_bump *pool)
{
    if (!prn_trace_has_ranks(r)) return;
    for (size_t k = 0; k < r->rank_count; k++) name_rank(j, &r->ranks[k], k, pool);
    for (size_t i = 0; i < r->pipeline_event_count; i++) put_pipeline_event(j, &r->pipeline_events[i], pool);
    put_rank_operators(j, r);
}
