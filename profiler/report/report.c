/* Fills derived values of a report: measured times into operators and layers, layers into totals.
 *
 * The report owns everything through its pool. Invariant after prn_report_fill_times: the mean times of the layers an
 * operator stands for sum to the operator's mean, to the nanosecond.
 */
#include "profiler/report/report.h"

#include "base/shape.h"
#include "profiler/statistics/statistics.h"
#include "profiler/report/work.h"

#include <string.h>

static prony_status operator_times(prony_report *report, const int64_t *durations, size_t runs, prony_error *error)
{
    int64_t *column = prn_calloc(runs ? runs : 1, sizeof *column);
    if (!column) return prn_no_memory(error);
    prony_status status = PRONY_OK;
    size_t operators = report->operator_count;
    for (size_t o = 0; o < operators && status == PRONY_OK; o++) {
        for (size_t r = 0; r < runs; r++) column[r] = durations[r * operators + o];
        status = prn_stats_compute(&report->operators[o].time, column, runs, false, error);
        report->operators[o].measured = true;
    }
    prn_free(column);
    return status;
}

static void operator_shares(prony_report *report)
{
    double sum = 0;
    for (size_t o = 0; o < report->operator_count; o++) sum += (double)report->operators[o].time.mean_ns;
    for (size_t o = 0; o < report->operator_count; o++)
        report->operators[o].share = sum > 0 ? (double)report->operators[o].time.mean_ns / sum : 0;
}

/* The part of `whole` between two marks on [0, end]: parts of a partition sum to the whole exactly. */
static int64_t part(int64_t whole, uint64_t from, uint64_t to, uint64_t end)
{
    __int128 w = whole;
    return (int64_t)(w * to / end - w * from / end);
}

static prony_time_stats part_of_time(const prony_time_stats *time, uint64_t from, uint64_t to, uint64_t end)
{
    prony_time_stats s = *time;
    int64_t *const fields[] = {&s.mean_ns,
                               &s.median_ns,
                               &s.min_ns,
                               &s.max_ns,
                               &s.std_ns,
                               &s.p50_ns,
                               &s.p90_ns,
                               &s.p95_ns,
                               &s.p99_ns,
                               &s.p999_ns,
                               &s.median_ci95_ns[0],
                               &s.median_ci95_ns[1]};
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) *fields[f] = part(*fields[f], from, to, end);
    return s;
}

static void layer_times(prony_report *report, const prony_operator_row *row)
{
    uint64_t from = 0;
    double sum = 0;
    for (size_t k = 0; k < row->layer_count; k++) {
        prony_layer_row *layer = &report->layers[row->layers[k]];
        uint64_t to = prn_share_mark(report, row, k, &sum);
        layer->time = part_of_time(&row->time, from, to, PRN_SHARE_END);
        layer->share = row->share * layer->operator_share;
        layer->measured = true;
        from = to;
    }
}

size_t prn_report_layer_samples(const prony_report *report, size_t layer, int64_t *out, size_t capacity)
{
    const prony_layer_row *wanted = layer < report->layer_count ? &report->layers[layer] : NULL;
    if (!wanted || !report->operator_samples_ns || wanted->operator_index >= report->operator_count) return 0;
    const prony_operator_row *row = &report->operators[wanted->operator_index];
    uint64_t from = 0, to = 0;
    double sum = 0;
    for (size_t k = 0; k < row->layer_count; k++) {
        from = to;
        to = prn_share_mark(report, row, k, &sum);
        if (row->layers[k] == layer) break;
    }
    size_t runs = (size_t)report->latency.count, stride = report->operator_count;
    for (size_t r = 0; r < runs && r < capacity; r++)
        out[r] = part(report->operator_samples_ns[r * stride + wanted->operator_index], from, to, PRN_SHARE_END);
    return runs;
}

prony_status prn_report_fill_latency(prony_report *report, const int64_t *latency_ns, size_t runs, prony_error *error)
{
    PRN_TRY(prn_stats_compute(&report->latency, latency_ns, runs, true, error));
    report->samples_ns = prn_bump_alloc(&report->pool, runs ? runs : 1, sizeof *report->samples_ns);
    if (!report->samples_ns) return prn_no_memory(error);
    if (runs) memcpy(report->samples_ns, latency_ns, runs * sizeof *latency_ns);
    report->measured = true;
    return PRONY_OK;
}

prn_times prn_report_times(const prony_report *report)
{
    return (prn_times){.samples = report->samples_ns,
                       .count = report->samples_ns ? (size_t)report->latency.count : 0,
                       .process_runs = report->process_runs,
                       .processes = report->process_count};
}

prony_status prn_report_fill_times(prony_report *report, const int64_t *durations, const int64_t *latency_ns,
                                   size_t runs, prony_error *error)
{
    PRN_TRY(prn_report_fill_latency(report, latency_ns, runs, error));
    PRN_TRY(operator_times(report, durations, runs, error));
    operator_shares(report);
    PRN_TRY(prn_report_estimate_shares(report, error));
    for (size_t o = 0; o < report->operator_count; o++) layer_times(report, &report->operators[o]);
    double inside = 0, wall = 0;
    for (size_t i = 0; i < runs * report->operator_count; i++) inside += (double)durations[i];
    for (size_t r = 0; r < runs; r++) wall += (double)latency_ns[r];
    report->time_share = wall > 0 ? inside / wall : 0;
    return PRONY_OK;
}

/* As layer_times: an operator's time shared among the rows that it stands for. */
static void nested_layer_times(prony_report *report, const prony_nested_row *row)
{
    uint64_t end = 0, from = 0;
    for (size_t k = 0; k < row->layer_count; k++) {
        const prony_cost *cost = &report->nested_layers[row->layers[k]].cost;
        if (!prn_add_u64(&end, end, cost->flops) || !prn_add_u64(&end, end, cost->int_ops)) return;
    }
    bool even = end == 0;
    if (even) end = row->layer_count;
    for (size_t k = 0; k < row->layer_count; k++) {
        prony_nested_row *layer = &report->nested_layers[row->layers[k]];
        uint64_t to = from + (even ? 1 : layer->cost.flops + layer->cost.int_ops);
        layer->time = part_of_time(&row->time, from, to, end);
        layer->share = row->share * (double)(to - from) / (double)end;
        layer->measured = true;
        layer->time_attributed = row->layer_count > 1;
        from = to;
    }
}

prony_status prn_report_fill_nested_times(prony_report *report, const int64_t *durations, size_t runs,
                                          prony_error *error)
{
    double sum = 0;
    size_t count = report->nested_operator_count;
    int64_t *column = prn_calloc(runs ? runs : 1, sizeof *column);
    prony_status status = column ? PRONY_OK : prn_no_memory(error);
    for (size_t o = 0; o < report->operator_count; o++) sum += (double)report->operators[o].time.mean_ns;
    for (size_t i = 0; i < count && status == PRONY_OK; i++) {
        prony_nested_row *row = &report->nested_operators[i];
        for (size_t r = 0; r < runs; r++) column[r] = durations[r * count + i];
        status = prn_stats_compute(&row->time, column, runs, false, error);
        row->measured = true;
        row->share = sum > 0 ? (double)row->time.mean_ns / sum : 0;
        nested_layer_times(report, row);
    }
    prn_free(column);
    return status;
}

static bool is_integer_port(const prony_value_info *port)
{
    return port->dtype == PRONY_INT64 || port->dtype == PRONY_INT32;
}

static bool is_image_port(const prony_value_info *port)
{
    const prony_shape *s = &port->shape;
    if (port->kind != PRONY_TENSOR || s->rank != 4 || is_integer_port(port)) return false;
    return (s->dim[1] >= 1 && s->dim[1] <= 4 && s->dim[3] > 4) || (s->dim[3] >= 1 && s->dim[3] <= 4 && s->dim[1] > 4);
}

prn_report_rates prn_report_rates_of(const prony_report *report)
{
    prn_report_rates rates = {-1, -1, -1, -1};
    double runs = report->latency.mean_ns > 0 ? 1e9 / (double)report->latency.mean_ns : 0;
    if (!report->measured || runs <= 0) return rates;
    rates.requests = runs;
    if (report->config.batch > 0) rates.samples = (double)report->config.batch * runs;
    const prony_value_info *first = report->model.input_count ? &report->model.inputs[0] : NULL;
    if (!first || report->config.batch <= 0) return rates;
    if (is_image_port(first)) rates.images = rates.samples;
    if (first->kind == PRONY_TENSOR && first->shape.rank == 2 && first->shape.dim[1] > 0 && is_integer_port(first))
        rates.tokens = rates.samples * (double)first->shape.dim[1];
    return rates;
}

#define COST_FIELDS 8

static void cost_fields(prony_cost *cost, uint64_t *fields[COST_FIELDS])
{
    uint64_t *const all[COST_FIELDS] = {&cost->macs,    &cost->madds,      &cost->flops,      &cost->special,
                                        &cost->int_ops, &cost->parameters, &cost->bytes_read, &cost->bytes_written};
    memcpy(fields, all, sizeof all);
}

static bool add_cost(prony_cost *sum, const prony_cost *cost)
{
    prony_cost copy = *cost;
    uint64_t *to[COST_FIELDS], *from[COST_FIELDS];
    cost_fields(sum, to);
    cost_fields(&copy, from);
    for (size_t f = 0; f < COST_FIELDS; f++)
        if (!prn_add_u64(to[f], *to[f], *from[f])) return false;
    return true;
}

prony_status prn_report_fill_totals(prony_report *report, prony_error *error)
{
    prony_totals totals = {.layers = (uint32_t)report->layer_count, .operators = (uint32_t)report->operator_count};
    for (size_t l = 0; l < report->layer_count; l++) {
        const prony_layer_row *layer = &report->layers[l];
        totals.folded_layers += layer->folded;
        if (!add_cost(&totals.cost, &layer->cost))
            return prn_fail(error, PRONY_LIMIT, "layer \"%s\": the model's cost overflows 64 bits", layer->name);
    }
    prony_cost executed = {0};
    for (size_t o = 0; o < report->operator_count; o++)
        if (!add_cost(&executed, &report->operators[o].cost))
            return prn_fail(error, PRONY_LIMIT, "operator \"%s\": the model's cost overflows 64 bits",
                            report->operators[o].name);
    report->totals = totals;
    const prony_cost *t = &totals.cost;
    report->conserved =
        report->operator_count == 0 ||
        (t->macs == executed.macs && t->madds == executed.madds && t->flops == executed.flops &&
         t->special == executed.special && t->int_ops == executed.int_ops && t->parameters == executed.parameters);
    return PRONY_OK;
}

double prn_report_roof_flops(const prony_report *report, const char *precision)
{
    double found = 0;
    int threads = 0;
    for (size_t i = 0; report->has_roof && i < report->roof.compute_count; i++) {
        const prn_roof_compute *c = &report->roof.compute[i];
        if (strcmp(c->precision, precision) != 0 || c->threads > prn_report_threads(report) || c->threads < threads)
            continue;
        threads = c->threads;
        found = c->flops_per_second;
    }
    return found;
}

double prn_report_roof_bandwidth(const prony_report *report, const char *level)
{
    double found = 0;
    int threads = 0;
    for (size_t i = 0; report->has_roof && i < report->roof.memory_count; i++) {
        const prn_roof_memory *m = &report->roof.memory[i];
        if (strcmp(m->level, level) != 0 || m->threads > prn_report_threads(report) || m->threads < threads) continue;
        threads = m->threads;
        found = m->bytes_per_second;
    }
    return found;
}

const char *prn_report_title(const prony_report *report)
{
    const char *slash = strrchr(report->model.name, '/');
    return slash && slash[1] ? slash + 1 : report->model.name;
}

prony_status prn_report_add_evaluation(prony_report *report, const char *metric, double value, int64_t samples,
                                       prony_error *error)
{
    size_t count = report->evaluation_count;
    const char *name = prn_bump_strndup(&report->pool, metric, strlen(metric));
    prony_evaluation_row *rows = prn_bump_alloc(&report->pool, count + 1, sizeof *rows);
    if (!name || !rows) return prn_no_memory(error);
    if (count) memcpy(rows, report->evaluations, count * sizeof *rows);
    rows[count] = (prony_evaluation_row){name, value, samples};
    report->evaluations = rows;
    report->evaluation_count = count + 1;
    return PRONY_OK;
}

const prony_evaluation_row *prn_report_find_evaluation(const prony_report *report, const char *metric)
{
    for (size_t i = 0; i < report->evaluation_count; i++)
        if (strcmp(report->evaluations[i].metric, metric) == 0) return &report->evaluations[i];
    return NULL;
}
