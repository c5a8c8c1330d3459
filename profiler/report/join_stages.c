/* prony_report_join_stages: the reports of the stages of a sharded model in one. Every stage's report has the rows of
 * all layers, since each process binds the whole model; a layer's figures are those of the stage that ran it. */
#include "base/hash/sha256.h"
#include "base/shape.h"
#include "engine/bind/stage.h"
#include "profiler/report/report.h"

#include <math.h>
#include <string.h>

static const char *copy(prony_report *into, const char *text)
{
    return text ? prn_bump_strndup(&into->pool, text, strlen(text)) : NULL;
}

static void scale_time(prony_time_stats *t, int64_t times)
{
    int64_t *const all[] = {&t->mean_ns,          &t->median_ns, &t->min_ns, &t->max_ns,  &t->p50_ns,
                            &t->p90_ns,           &t->p95_ns,    &t->p99_ns, &t->p999_ns, &t->median_ci95_ns[0],
                            &t->median_ci95_ns[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] *= times;
    t->std_ns = (int64_t)((double)t->std_ns * sqrt((double)times));
}

/* A row of a stage as one of the whole: its strings are copied, its layers are the same. */
static bool take_operator(prony_report *into, prony_operator_row *row, const prony_operator_row *from, uint32_t index)
{
    uint32_t *layers = prn_bump_alloc(&into->pool, from->layer_count + 1, sizeof *layers);
    *row = *from;
    row->index = index;
    row->name = copy(into, from->name);
    row->op = copy(into, from->op);
    row->kernel = copy(into, from->kernel);
    row->backend = copy(into, from->backend);
    if (!layers || !row->name || !row->op || !row->kernel || !row->backend) return false;
    if (from->layer_count) memcpy(layers, from->layers, from->layer_count * sizeof *layers);
    row->layers = layers;
    row->thread_shares = NULL;
    row->thread_share_count = 0;
    row->thread_busy_ns = NULL;
    row->thread_busy_count = 0;
    row->kernel_facts = NULL;
    row->kernel_fact_count = 0;
    row->reasons = NULL;
    row->reason_count = 0;
    row->kernel_best = 0;
    return true;
}

static void take_layers(prony_report *into, const prony_report *stage, uint32_t first)
{
    for (size_t l = 0; l < into->layer_count; l++) {
        const prony_layer_row *from = &stage->layers[l];
        prony_layer_row *row = &into->layers[l];
        if (from->operator_index == PRONY_NO_INDEX) continue;
        row->operator_index = first + from->operator_index;
        const prony_cost own = row->cost;
        row->cost = from->cost; /* a run may have decided it */
        memcpy(row->cost.facts, own.facts, sizeof own.facts);
        row->cost.fact_count = own.fact_count;
        row->measured = from->measured;
        row->time = from->time;
        row->time_attributed = from->time_attributed;
        row->operator_share = from->operator_share;
        row->removed = from->removed;
    }
}

/* Shares are of the summed time of the operators of all stages. */
static void fill_shares(prony_report *into, int64_t micro_batches)
{
    double sum = 0;
    for (size_t o = 0; o < into->operator_count; o++) {
        scale_time(&into->operators[o].time, micro_batches);
        sum += (double)into->operators[o].time.mean_ns;
    }
    for (size_t o = 0; o < into->operator_count && sum > 0; o++)
        into->operators[o].share = (double)into->operators[o].time.mean_ns / sum;
    for (size_t l = 0; l < into->layer_count; l++) {
        scale_time(&into->layers[l].time, micro_batches);
        if (sum > 0) into->layers[l].share = (double)into->layers[l].time.mean_ns / sum;
    }
}

static void join_stages_add_memory(prony_memory_report *to, const prony_memory_report *from)
{
    to->packed_weight_bytes += from->packed_weight_bytes;
    to->planned_bytes += from->planned_bytes;
    to->lower_bound_bytes += from->lower_bound_bytes;
    to->peak_live_bytes += from->peak_live_bytes;
    to->allocations += from->allocations;
    to->releases += from->releases;
    to->heap_calls_per_run += from->heap_calls_per_run;
    to->library_heap_calls_per_run += from->library_heap_calls_per_run;
    if (from->scratch_bytes > to->scratch_bytes) to->scratch_bytes = from->scratch_bytes;
    if (from->peak_rss_bytes > to->peak_rss_bytes) to->peak_rss_bytes = from->peak_rss_bytes;
}

static bool times_cost(prony_cost *cost, uint64_t by)
{
    uint64_t *const all[] = {&cost->macs,    &cost->madds,      &cost->flops,        &cost->special,
                             &cost->int_ops, &cost->bytes_read, &cost->bytes_written};
    bool fits = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fits = fits && !__builtin_mul_overflow(*all[i], by, all[i]);
    return fits;
}

/* A run is all of its micro-batches; weights are what they are. */
static prony_status scale_costs(prony_report *into, uint64_t micro_batches, prony_error *error)
{
    bool fits = true;
    for (size_t l = 0; l < into->layer_count; l++) fits = fits && times_cost(&into->layers[l].cost, micro_batches);
    for (size_t o = 0; o < into->operator_count; o++)
        fits = fits && times_cost(&into->operators[o].cost, micro_batches);
    return fits ? PRONY_OK : prn_fail(error, PRONY_LIMIT, "the cost of all micro-batches exceeds 64 bits");
}

/* Ports of the whole model in place of those of its first stage, with the shapes of a run. */
static prony_status take_ports(prony_report *into, int64_t micro_batches, const prony_value *const *outputs,
                               size_t output_count, prony_error *error)
{
    const prn_stage *stage = into->source ? into->source->stage : NULL;
    if (!stage) return PRONY_OK;
    const prn_graph *graph = &stage->whole->file->graph;
    prony_value_info *inputs = prn_bump_alloc(&into->pool, graph->input_count + 1, sizeof *inputs);
    prony_value_info *made = prn_bump_alloc(&into->pool, graph->output_count + 1, sizeof *made);
    if (!inputs || !made) return prn_no_memory(error);
    for (size_t i = 0; i < graph->input_count; i++) {
        inputs[i] = graph->inputs[i]; /* names belong to the model, which the report holds */
        inputs[i].shape = stage->inputs[i].shape;
        if (micro_batches > 1 && inputs[i].shape.rank > 0) inputs[i].shape.dim[0] *= micro_batches;
    }
    for (size_t k = 0; k < graph->output_count; k++) {
        made[k] = graph->outputs[k];
        if (k < output_count && outputs && outputs[k]) made[k].shape = outputs[k]->shape;
    }
    into->model.inputs = inputs;
    into->model.input_count = graph->input_count;
    into->model.outputs = made;
    into->model.output_count = graph->output_count;
    into->config.batch = graph->input_count && inputs[0].shape.rank > 0 ? inputs[0].shape.dim[0] : -1;
    return PRONY_OK;
}

static prony_status join_rows(prony_report *into, const prony_report *const *others, size_t count, prony_error *error)
{
    size_t total = into->operator_count;
    for (size_t s = 0; s < count; s++) total += others[s]->operator_count;
    prony_operator_row *rows = prn_bump_alloc(&into->pool, total + 1, sizeof *rows);
    if (!rows) return prn_no_memory(error);
    size_t at = 0;
    for (; at < into->operator_count; at++) rows[at] = into->operators[at];
    for (size_t s = 0; s < count; s++) {
        const size_t first = at;
        for (size_t o = 0; o < others[s]->operator_count; o++, at++)
            if (!take_operator(into, &rows[at], &others[s]->operators[o], (uint32_t)at)) return prn_no_memory(error);
        take_layers(into, others[s], (uint32_t)first);
        join_stages_add_memory(&into->memory, &others[s]->memory);
    }
    into->operators = rows;
    into->operator_count = total;
    into->memory.held_known = false;
    into->memory.timeline_count = into->memory.event_count = 0;
    into->operator_samples_ns = NULL;
    into->nested_layer_count = into->nested_operator_count = 0; /* the rows of stages are not joined */
    return PRONY_OK;
}

static prony_status join_ranks(prony_report *into, const prony_rank_row *rows, size_t count,
                               const prony_pipeline *pipeline, prony_error *error)
{
    into->ranks = prn_bump_alloc(&into->pool, count + 1, sizeof *into->ranks);
    if (!into->ranks) return prn_no_memory(error);
    into->rank_count = count;
    for (size_t s = 0; s < count; s++) {
        uint32_t *layers = prn_bump_alloc(&into->pool, rows[s].layer_count + 1, sizeof *layers);
        into->ranks[s] = rows[s];
        into->ranks[s].node = copy(into, rows[s].node);
        if (!layers || !into->ranks[s].node) return prn_no_memory(error);
        if (rows[s].layer_count) memcpy(layers, rows[s].layers, rows[s].layer_count * sizeof *layers);
        into->ranks[s].layers = layers;
    }
    into->pipeline = *pipeline;
    into->pipeline.basis = copy(into, pipeline->basis);
    into->has_pipeline = true;
    return into->pipeline.basis ? PRONY_OK : prn_no_memory(error);
}

static prony_status join_stages_hash_outputs(prony_report *into, const prony_value *const *outputs, size_t count,
                                             prony_error *error)
{
    prn_sha256 hash;
    char *text = prn_bump_alloc(&into->pool, 65, 1);
    if (!text) return prn_no_memory(error);
    prn_sha256_init(&hash);
    for (size_t k = 0; k < count; k++) {
        const size_t bytes = outputs[k] ? prn_value_bytes(outputs[k]) : 0;
        if (bytes && bytes != SIZE_MAX) prn_sha256_add(&hash, outputs[k]->data, bytes);
    }
    prn_sha256_text(&hash, text);
    into->output_sha256 = text;
    return PRONY_OK;
}

static prony_status check(const prony_report *into, const prony_report *const *others, size_t count,
                          const prony_pipeline *pipeline, prony_error *error)
{
    if (pipeline->stages != count || pipeline->micro_batches < 1)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%u stages of %zu reports", pipeline->stages, count);
    for (size_t s = 0; s + 1 < count; s++)
        if (!others[s] || others[s]->layer_count != into->layer_count)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "the report of stage %zu is of another model", s + 1);
    return PRONY_OK;
}

prony_status prony_report_join_stages(prony_report *into, const prony_report *const *others, const prony_rank_row *rows,
                                      size_t count, const prony_pipeline *pipeline, const int64_t *samples_ns,
                                      size_t sample_count, const prony_value *const *outputs, size_t output_count,
                                      prony_error *error)
{
    if (!into || !rows || !pipeline || !count || (count > 1 && !others) || !samples_ns || !sample_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_join_stages: an argument is NULL");
    PRN_TRY(check(into, others, count, pipeline, error));
    const bool stamped = prn_report_stamped(into);
    const double share = into->time_share;
    PRN_TRY(join_rows(into, others, count - 1, error));
    if (stamped) fill_shares(into, pipeline->micro_batches);
    PRN_TRY(scale_costs(into, (uint64_t)pipeline->micro_batches, error));
    PRN_TRY(take_ports(into, pipeline->micro_batches, outputs, output_count, error));
    into->has_around = false;
    PRN_TRY(join_ranks(into, rows, count, pipeline, error));
    PRN_TRY(prn_report_fill_latency(into, samples_ns, sample_count, error));
    into->time_share = stamped ? share : -1; /* rank 0's coverage */
    into->config.runs = (int64_t)sample_count;
    PRN_TRY(prn_report_fill_totals(into, error));
    PRN_TRY(prn_report_fill_modules(into, error));
    into->pipeline.measured_step_ns = into->latency.median_ns;
    return output_count ? join_stages_hash_outputs(into, outputs, output_count, error) : PRONY_OK;
}

const prony_rank_row *prony_report_ranks(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->rank_count : 0;
    return report && report->rank_count ? report->ranks : NULL;
}

const prony_pipeline *prony_report_pipeline(const prony_report *report)
{
    return report && report->has_pipeline ? &report->pipeline : NULL;
}
