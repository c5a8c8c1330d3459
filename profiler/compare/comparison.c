/* prony_compare: compares the metrics of two reports. comparison_parts.c compares layers and types, comparison_notes.c
 * lists other differences between the reports.
 *
 * The test depends on a metric's scatter. Metrics that follow from model and configuration have none. Latencies have
 * raw samples: a rank test and a bootstrap interval must agree, and both allow for correlated runs. Metrics measured
 * once are shown without a verdict. Layers and types have mean and deviation of their times: Welch's test, adjusted for
 * the number of rows. A difference counts only if its whole interval is beyond the noise threshold.
 */
#include "base/option_struct.h"
#include "profiler/compare/comparison.h"

#include "profiler/metrics/metrics.h"
#include "profiler/statistics/statistics.h"

#include <math.h>
#include <string.h>

/* Differences within 1 % are noise by default; chosen without measurement. */
#define DEFAULT_NOISE 0.01
/* Ten processes of each of two models held up to 3.6 % and 0.5 MiB more or less than their median. */
#define HELD_SHARE 0.05
#define HELD_BYTES 0x1p21

const char *prony_verdict_name(prony_verdict verdict)
{
    static const char *const names[] = {"none", "same", "better", "worse", "cannot tell"};
    return (size_t)verdict < sizeof names / sizeof names[0] ? names[verdict] : "none";
}

const char *prn_verdict_mark(prony_verdict verdict)
{
    return verdict == PRONY_VERDICT_NONE     ? ""
           : verdict == PRONY_VERDICT_SAME   ? "~"
           : verdict == PRONY_VERDICT_UNSURE ? "?"
                                             : prony_verdict_name(verdict);
}

const char *prony_basis_name(prony_basis basis)
{
    static const char *const names[] = {"single", "exact", "runs", "interval", "means"};
    return (size_t)basis < sizeof names / sizeof names[0] ? names[basis] : "single";
}

/* ---- metrics ---- */

/* The change of an exact metric; fractions by their difference, because a ratio of tiny fractions means nothing. */
static double exact_change(const prony_compare_metric *row)
{
    double a = row->first.value, b = row->second.value;
    if (row->first.metric->scale == PRONY_SCALE_PERCENT) return 1 + (b - a);
    if (a > 0 || a < 0) return 1 + (b - a) / fabs(a);
    return b > 0 ? INFINITY : b < 0 ? -INFINITY : 1;
}

/* The values of a side for the rank test: its latencies, or the medians (for rates: the means) of its processes. */
static prony_status rank_values(double **out, size_t *count, const prony_report *r, bool processes, bool rate,
                                prony_error *error)
{
    size_t begin = 0;
    *count = processes ? r->process_count : (size_t)r->latency.count;
    double *values = *out = prn_calloc(*count, sizeof *values);
    if (!values) return prn_no_memory(error);
    for (size_t i = 0; i < *count; i++) {
        prony_time_stats one;
        values[i] = processes ? 0 : (double)r->samples_ns[i];
        if (!processes) continue;
        PRN_TRY(prn_stats_compute(&one, r->samples_ns + begin, (size_t)r->process_runs[i], false, error));
        values[i] = (double)(rate ? one.mean_ns : one.median_ns);
        begin += (size_t)r->process_runs[i];
    }
    return PRONY_OK;
}

/* Compares latencies, or the rates that the metric makes of them. */
static prony_status rank_test(const prn_comparing *c, const prony_compare_metric *row, bool rate, double *p)
{
    double *values[2] = {NULL, NULL}, memory[2];
    size_t count[2] = {0, 0};
    prn_rank_test test = {0};
    prony_status status = PRONY_OK;
    for (int side = 0; side < 2 && status == PRONY_OK; side++) {
        const prony_report *r = c->report[side];
        double scale = (side ? row->second : row->first).value * (double)r->latency.mean_ns;
        status = rank_values(&values[side], &count[side], r, c->by_processes, rate, c->error);
        memory[side] = c->by_processes ? 1 : c->memory[side];
        for (size_t i = 0; status == PRONY_OK && rate && i < count[side]; i++)
            values[side][i] = scale / fmax(values[side][i], 1);
    }
    if (status == PRONY_OK)
        status = prn_rank_test_compute(&test, values[0], count[0], memory[0], values[1], count[1], memory[1], c->error);
    prn_free(values[0]);
    prn_free(values[1]);
    *p = test.p;
    return status;
}

static prony_status judge_samples(prn_comparing *c, const prn_metric_builtin *by, prony_compare_metric *row)
{
    const double *interval = c->intervals[by->statistic];
    row->ratio_ci95[0] = interval[0];
    row->ratio_ci95[1] = interval[1];
    if (by->rate) {
        double means = (double)c->report[1]->latency.mean_ns / (double)c->report[0]->latency.mean_ns;
        row->ratio_ci95[0] = row->ratio * means / interval[1];
        row->ratio_ci95[1] = row->ratio * means / interval[0];
    }
    row->basis = by->basis;
    if (by->basis == PRONY_BASIS_RUNS) PRN_TRY(rank_test(c, row, by->rate, &row->p));
    bool chance = row->p >= PRN_COMPARE_ALPHA;
    if (chance) {
        prn_interval_widen(row->ratio_ci95, row->ratio, 1 - PRN_COMPARE_ALPHA, c->deviation);
        row->verdict = row->first.metric->direction == PRONY_NO_DIRECTION ? PRONY_VERDICT_NONE : PRONY_VERDICT_SAME;
    } else {
        row->verdict = prn_verdict_on_times(c, row->first.metric->direction, row->ratio, row->ratio_ci95, c->deviation);
    }
    return PRONY_OK;
}

/* false: the two reports define the metric differently, so it has no verdict. */
static bool comparable(const prn_comparing *c, const char *key)
{
    const prony_report *a = c->report[0], *b = c->report[1];
    if (strcmp(key, "evaluation") == 0) return strcmp(a->evaluations->metric, b->evaluations->metric) == 0;
    if (strcmp(key, "count") == 0 && a->config.count_preset && b->config.count_preset)
        return strcmp(a->config.count_preset, b->config.count_preset) == 0;
    return true;
}

/* The verdict on held memory, which is measured once: processes of one model differ by pages of the program and its
 * libraries. A second measurement in a process always holds more than the first. */
static void judge_held(const prn_comparing *c, prony_compare_metric *row)
{
    if (c->report[0]->measured_here && c->report[1]->measured_here) return;
    const double change = exact_change(row), pages = HELD_BYTES / fmax(row->first.value, 1);
    row->verdict =
        prn_verdict_of(row->first.metric->direction, change, change, fmax(c->noise, fmax(HELD_SHARE, pages)));
}

static prony_status compare_metric(prn_comparing *c, size_t index, prony_compare_metric *row)
{
    const prony_metric *metric = row->first.metric;
    const prn_metric_builtin *by = prn_metrics_builtin(c->metrics, index);
    row->difference = row->second.value - row->first.value;
    row->ratio = row->first.value > 0 || row->first.value < 0 ? row->second.value / row->first.value : NAN;
    row->ratio_ci95[0] = row->ratio_ci95[1] = row->p = NAN;
    if (prn_metric_samples(by))
        return c->sampled && row->first.value > 0 && row->second.value > 0 ? judge_samples(c, by, row) : PRONY_OK;
    if (by && by->basis == PRONY_BASIS_NONE && by->decides) judge_held(c, row);
    if ((by && by->basis == PRONY_BASIS_NONE) || !comparable(c, metric->key)) return PRONY_OK;
    double change = exact_change(row);
    row->basis = PRONY_BASIS_EXACT;
    row->verdict = prn_verdict_of(metric->direction, change, change, c->noise);
    return PRONY_OK;
}

/* Compares every metric that both reports know and the caller selected, and counts regressions among deciding ones. */
static prony_status compare_metrics(prn_comparing *c)
{
    prony_comparison *out = c->out;
    size_t count = prony_metrics_count(c->metrics);
    prony_metric_value *first = prn_calloc(count + 1, sizeof *first), *second = prn_calloc(count + 1, sizeof *second);
    out->metrics = prn_bump_alloc(&out->pool, count + 1, sizeof *out->metrics);
    out->decides = prn_bump_alloc(&out->pool, count + 1, sizeof *out->decides);
    prony_status status = first && second && out->metrics && out->decides ? PRONY_OK : prn_no_memory(c->error);
    if (status == PRONY_OK) status = prony_metrics_compute_all(c->metrics, c->report[0], first, c->error);
    if (status == PRONY_OK) status = prony_metrics_compute_all(c->metrics, c->report[1], second, c->error);
    for (size_t i = 0; status == PRONY_OK && i < count; i++) {
        if (!first[i].known || !second[i].known || !prn_metrics_named(c->keys, first[i].metric->key)) continue;
        const prn_metric_builtin *by = prn_metrics_builtin(c->metrics, i);
        bool *decides = &out->decides[out->metric_count];
        prony_compare_metric *row = &out->metrics[out->metric_count++];
        row->first = first[i];
        row->second = second[i];
        *decides = c->keys || !by || by->decides;
        status = compare_metric(c, i, row);
        if (!*decides) continue;
        const bool up = row->difference > 0, larger = row->first.metric->direction == PRONY_LARGER_IS_BETTER;
        out->regressions += row->verdict == PRONY_VERDICT_WORSE;
        out->undecided += row->verdict == PRONY_VERDICT_UNSURE && up != larger;
    }
    prn_free(first);
    prn_free(second);
    return status;
}

/* ---- the comparison ---- */

static bool comparison_is_busy(const prony_report *r)
{
    return r->has_disturbance && r->disturbance.verdict == PRN_LOAD_BUSY;
}

static prony_status fill_side(prn_comparing *c, int side, const char *name)
{
    const prony_report *r = c->report[side];
    prn_bump *pool = &c->out->pool;
    const char *model = prn_text_or_empty(r->model.name), *hash = r->model.sha256;
    name = name ? name : prn_report_title(r);
    prn_compare_side *s = &c->out->side[side];
    *s = (prn_compare_side){.name = prn_bump_strndup(pool, name, strlen(name)),
                            .model = prn_bump_strndup(pool, model, strlen(model)),
                            .sha256 = hash ? prn_bump_strndup(pool, hash, strlen(hash)) : NULL,
                            .batch = r->config.batch,
                            .threads = r->config.intra_op_threads,
                            .runs = r->measured ? r->latency.count : 0};
    return s->name && s->model && (s->sha256 || !hash) ? PRONY_OK : prn_no_memory(c->error);
}

/* Prepares intervals, memory of the series and deviation between processes once; all rows use them. */
static prony_status comparison_compare(prn_comparing *c, const prony_compare_options *options)
{
    const prony_report *a = c->report[0], *b = c->report[1];
    PRN_TRY(fill_side(c, 0, options->first_name));
    PRN_TRY(fill_side(c, 1, options->second_name));
    c->sampled = a->measured && b->measured && a->samples_ns && b->samples_ns && a->latency.count && b->latency.count &&
                 a->latency.mean_ns > 0 && b->latency.mean_ns > 0;
    prn_times first = prn_report_times(a), second = prn_report_times(b);
    bool in_turns = a->turns && a->turns == b->turns;
    if (c->sampled) {
        PRN_TRY(prn_series_memory(&c->memory[0], first.samples, first.count, c->error));
        PRN_TRY(prn_series_memory(&c->memory[1], second.samples, second.count, c->error));
        PRN_TRY(prn_times_intervals(c->intervals, 1 - PRN_COMPARE_ALPHA, first, &second, c->error));
    }
    c->deviation = in_turns ? 0 : prn_process_deviation(first, &second);
    c->by_processes = a->process_count >= PRN_FEWEST_PROCESSES && b->process_count >= PRN_FEWEST_PROCESSES;
    c->part_deviation = in_turns ? 0 : PRN_PROCESS_DEVIATION * sqrt(2);
    /* On a busy machine processes scatter more, by an unknown amount. */
    bool busy = !in_turns && !c->by_processes && (comparison_is_busy(a) || comparison_is_busy(b));
    c->loads_differ = !options->ignore_load && (busy || prn_loads_differ(a, b));
    PRN_TRY(compare_metrics(c));
    PRN_TRY(prn_compare_parts(c, PRN_BY_LAYER));
    PRN_TRY(prn_compare_parts(c, PRN_BY_NESTED));
    PRN_TRY(prn_compare_parts(c, PRN_BY_TYPE));
    return prn_compare_notes(c);
}

/* Checks options and metrics, then makes the comparison; a failure releases it. */
prony_status prony_compare(prony_comparison **out, const prony_report *first, const prony_report *second,
                           const prony_compare_options *options, prony_error *error)
{
    prony_compare_options own = PRONY_COMPARE_OPTIONS_INIT;
    if (!out || !first || !second) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_compare: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "compare options", error));
    options = &own;
    if (!(options->noise >= 0))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "compare options: thresholds must not be negative");
    prony_comparison *made = prn_calloc(1, sizeof *made);
    if (!made) return prn_no_memory(error);
    made->noise = options->noise > 0 ? options->noise : DEFAULT_NOISE;
    prn_comparing c = {.out = made,
                       .report = {first, second},
                       .metrics = options->metrics,
                       .noise = made->noise,
                       .keys = options->keys,
                       .error = error};
    prony_status status = options->metrics ? PRONY_OK : prony_metrics_create(&made->own_metrics, error);
    if (!c.metrics) c.metrics = made->own_metrics;
    if (status == PRONY_OK) status = prn_metrics_check_keys(c.metrics, c.keys, error);
    if (status == PRONY_OK) status = comparison_compare(&c, options);
    if (status == PRONY_OK)
        *out = made;
    else
        prony_comparison_release(made);
    return status;
}

void prony_comparison_release(prony_comparison *comparison)
{
    if (!comparison) return;
    prony_metrics_release(comparison->own_metrics);
    prn_free(comparison->notes);
    prn_bump_release(&comparison->pool);
    prn_free(comparison);
}

const prony_compare_metric *prony_comparison_metrics(const prony_comparison *comparison, size_t *count)
{
    if (count) *count = comparison ? comparison->metric_count : 0;
    return comparison ? comparison->metrics : NULL;
}

const prony_compare_row *prony_comparison_layers(const prony_comparison *comparison, size_t *count)
{
    if (count) *count = comparison ? comparison->layer_count : 0;
    return comparison ? comparison->layers : NULL;
}

const prony_compare_row *prony_comparison_types(const prony_comparison *comparison, size_t *count)
{
    if (count) *count = comparison ? comparison->type_count : 0;
    return comparison ? comparison->types : NULL;
}

const prony_compare_row *prony_comparison_nested(const prony_comparison *comparison, size_t *count)
{
    if (count) *count = comparison ? comparison->nested_count : 0;
    return comparison ? comparison->nested : NULL;
}

const char *const *prony_comparison_notes(const prony_comparison *comparison, size_t *count)
{
    if (count) *count = comparison ? comparison->note_count : 0;
    return comparison ? comparison->notes : NULL;
}

size_t prony_comparison_regressions(const prony_comparison *comparison)
{
    return comparison ? comparison->regressions : 0;
}

size_t prony_comparison_undecided(const prony_comparison *comparison)
{
    return comparison ? comparison->undecided : 0;
}
