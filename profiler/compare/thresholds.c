/* prony_check: metrics of a report against limits, and the outcome as text or JSON.
 *
 * A scattering metric misses a limit only if its whole interval does. Otherwise half of all measurements would miss a
 * limit that comes from the same code. */
#include "base/option_struct.h"
#include "profiler/metrics/metrics.h"
#include "profiler/text/text_out.h"
#include "profiler/compare/comparison.h"
#include "profiler/json/json_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PRN_CHECK_CONFIDENCE 0.99

static const char *const short_names[][2] = {
    {"p50", "latency"},       {"p90", "latency_p90"},      {"p95", "latency_p95"},        {"p99", "latency_p99"},
    {"p999", "latency_p999"}, {"mean", "latency_mean"},    {"min", "latency_min"},        {"max", "latency_max"},
    {"time", "latency"},      {"rss", "peak_resident"},    {"fps", "images_per_second"},  {"params", "parameters"},
    {"size", "model_size"},   {"accuracy", "evaluation"},  {"top1", "top1_accuracy"},     {"top5", "top5_accuracy"},
    {"held", "held_memory"},  {"arena", "planned_memory"}, {"latency_median", "latency"}, {"latency_p50", "latency"},
};

const prony_metric *prn_threshold_metric(const prony_metrics *metrics, const char *key)
{
    const prony_metric *metric = prony_metrics_find(metrics, key);
    for (size_t i = 0; !metric && i < sizeof short_names / sizeof short_names[0]; i++)
        if (strcmp(short_names[i][0], key) == 0) metric = prony_metrics_find(metrics, short_names[i][1]);
    return metric;
}

prony_status prony_threshold_parse(prony_threshold *out, const prony_metrics *metrics, const char *text,
                                   prony_error *error)
{
    if (!out || !metrics || !text)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_threshold_parse: an argument is NULL");
    char key[64];
    size_t length = strcspn(text, ":");
    if (!text[length] || length == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "threshold \"%.100s\" needs METRIC:VALUE, such as latency:100ms",
                        text);
    if (length >= sizeof key) /* cut, it might be the name of another metric */
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "threshold \"%.100s\": no metric has so long a name", text);
    snprintf(key, sizeof key, "%.*s", (int)length, text);
    *out = (prony_threshold){.metric = prn_threshold_metric(metrics, key)};
    if (!out->metric)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "threshold \"%.100s\": unknown metric \"%s\"; prony metrics MODEL lists them", text, key);
    if (out->metric->direction == PRONY_NO_DIRECTION)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "threshold \"%.100s\": metric %s has no better or worse direction, so it takes no threshold",
                        text, key);
    const char *value = text + length + 1;
    prony_status status = prony_metric_parse(out->metric, value + strspn(value, " "), &out->limit, error);
    if (status != PRONY_OK) prn_error_prefix(error, "threshold \"%.100s\"", text);
    prony_metric_format(out->metric, out->limit, out->text, sizeof out->text);
    return status;
}

/* Intervals of the latencies, made once for all rows that need them. */
typedef struct scatter {
    const prony_report *report;
    bool made;
    double intervals[PRN_STATISTIC_COUNT][2];
} scatter;

static const prn_metric_builtin *find_builtin(const prony_metrics *metrics, const prony_metric *metric)
{
    for (size_t i = 0; i < prony_metrics_count(metrics); i++)
        if (prony_metrics_at(metrics, i) == metric) return prn_metrics_builtin(metrics, i);
    return NULL;
}

static prony_status find_interval(scatter *of, prony_check_row *row, const prn_metric_builtin *by, prony_error *error)
{
    const prony_report *r = of->report;
    if (!prn_metric_samples(by)) return PRONY_OK;
    if (!r->measured || !r->samples_ns || r->latency.count == 0) return PRONY_OK;
    if (!of->made) PRN_TRY(prn_times_intervals(of->intervals, PRN_CHECK_CONFIDENCE, prn_report_times(r), NULL, error));
    of->made = true;
    const double *interval = of->intervals[by->statistic];
    double work = row->value.value * (double)r->latency.mean_ns;
    if (by->rate && !(interval[0] > 0)) return PRONY_OK;
    row->interval[0] = by->rate ? work / interval[1] : interval[0];
    row->interval[1] = by->rate ? work / interval[0] : interval[1];
    prn_interval_widen(row->interval, row->value.value, PRN_CHECK_CONFIDENCE,
                       prn_process_deviation(prn_report_times(r), NULL));
    return PRONY_OK;
}

/* The margin to the limit at `value`. */
static double thresholds_left_of(const prony_threshold *threshold, double value)
{
    return threshold->metric->direction == PRONY_LARGER_IS_BETTER ? value - threshold->limit : threshold->limit - value;
}

/* true: the fastest run of a metric with an interval would meet the limit in the fastest possible process. */
static bool fastest_meets(const prony_report *r, const prony_check_row *row)
{
    if (isnan(row->interval[0])) return false;
    double fastest = (double)r->latency.min_ns, interval[2] = {fastest, fastest};
    prn_interval_widen(interval, fastest, PRN_CHECK_CONFIDENCE, prn_process_deviation(prn_report_times(r), NULL));
    fastest = interval[0];
    if (row->value.metric->direction == PRONY_LARGER_IS_BETTER)
        fastest = fastest > 0 ? row->value.value * (double)r->latency.mean_ns / fastest : INFINITY;
    return thresholds_left_of(&row->threshold, fastest) >= 0;
}

static prony_outcome beyond_limit(const prony_report *r, const prony_check_row *row)
{
    const double *ends = row->interval;
    bool fastest = fastest_meets(r, row);
    bool reaches =
        thresholds_left_of(&row->threshold, ends[0]) >= 0 || thresholds_left_of(&row->threshold, ends[1]) >= 0;
    /* The interval of few runs reaches far beyond them, or is infinite. If not even the fastest run meets the limit, it
     * is missed. */
    if (reaches && fastest) return PRONY_OUTCOME_OPEN;
    bool busy = r->has_disturbance && r->disturbance.verdict == PRN_LOAD_BUSY;
    return fastest && busy ? PRONY_OUTCOME_WITHHELD : PRONY_OUTCOME_MISSED;
}

prony_status prony_check(prony_check_row *rows, const prony_report *report, const prony_metrics *metrics,
                         const prony_threshold *thresholds, size_t count, prony_error *error)
{
    if (!report || !metrics || (count && (!rows || !thresholds)))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_check: an argument is NULL");
    scatter of = {.report = report};
    for (size_t i = 0; i < count; i++) {
        prony_check_row *row = &rows[i];
        *row = (prony_check_row){
            .threshold = thresholds[i], .outcome = PRONY_OUTCOME_UNKNOWN, .margin = NAN, .interval = {NAN, NAN}};
        PRN_TRY(prony_metrics_compute(metrics, report, thresholds[i].metric->key, &row->value, error));
        if (!row->value.known) continue;
        double left = thresholds_left_of(&thresholds[i], row->value.value);
        row->outcome = left >= 0 ? PRONY_OUTCOME_MET : PRONY_OUTCOME_MISSED;
        if (fabs(thresholds[i].limit) > 0) row->margin = left / fabs(thresholds[i].limit);
        if (left >= 0) continue;
        PRN_TRY(find_interval(&of, row, find_builtin(metrics, row->value.metric), error));
        row->outcome = beyond_limit(report, row);
    }
    return PRONY_OK;
}

/* ---- writing ---- */

typedef struct check_view {
    const prony_check_row *rows;
} check_view;

static const prn_column columns[] = {{"metric", false, false, 1, 12},
                                     {"", true, false, 0, 0},
                                     {"threshold", true, false, 0, 0},
                                     {"", false, false, 0, 0},
                                     {"left", true, true, 0, 0}};

/* One cell of the table of thresholds. */
static void check_cell(const void *user, size_t index, int column, prn_cell *cell)
{
    const prony_check_row *row = &((const check_view *)user)->rows[index];
    static const char *const names[] = {"met", "MISSED", "not known", "cannot tell", "within noise"};
    cell->string = cell->own;
    switch (column) {
    case 0:
        cell->string = row->threshold.metric->key;
        return;
    case 1:
        cell->string = row->value.text;
        return;
    case 2:
        snprintf(cell->own, sizeof cell->own, "%s %.50s",
                 row->threshold.metric->direction == PRONY_LARGER_IS_BETTER ? "at least" : "at most",
                 row->threshold.text);
        return;
    case 3:
        cell->string = names[row->outcome];
        cell->style = row->outcome == PRONY_OUTCOME_MET                                              ? PRN_STYLE_GOOD
                      : row->outcome == PRONY_OUTCOME_OPEN || row->outcome == PRONY_OUTCOME_WITHHELD ? PRN_STYLE_WARN
                                                                                                     : PRN_STYLE_BAD;
        return;
    default:
        if (isnan(row->margin)) return;
        if (fabs(row->margin) >= 10)
            cell->string = row->margin > 0 ? "> 999 %" : "< -999 %";
        else
            snprintf(cell->own, sizeof cell->own, "%.0f %%", row->margin * 100);
    }
}

/* Writes the table of thresholds, then a line for each unknown metric. */
static prony_status thresholds_write_text(const prony_check_row *rows, size_t count, const char *target,
                                          const prony_write_options *options, prony_write_fn write, void *user,
                                          prony_error *error)
{
    prn_text *text = prn_alloc(sizeof *text);
    if (!text) return prn_no_memory(error);
    check_view view = {rows};
    prn_table table = {.columns = columns,
                       .column_count = sizeof columns / sizeof columns[0],
                       .rows = count,
                       .cell = check_cell,
                       .user = &view};
    prn_text_begin(text, options->width ? options->width : 80, options->color, write, user, error);
    prn_text_putf(text, PRN_STYLE_TITLE, "Thresholds");
    if (target) prn_text_putf(text, PRN_STYLE_DIM, ", %.200s", target);
    prn_text_line(text);
    prn_text_table(text, &table);
    for (size_t i = 0; i < count; i++) {
        char line[400];
        if (rows[i].outcome != PRONY_OUTCOME_UNKNOWN) continue;
        snprintf(line, sizeof line, "%.60s is unknown in this report (%.300s)", rows[i].threshold.metric->key,
                 rows[i].threshold.metric->description);
        prn_text_wrap(text, PRN_STYLE_WARN, 0, line);
    }
    prony_status status = prn_text_end(text);
    prn_free(text);
    return status;
}

/* "passed" counts met and open thresholds; "undecided" open and withheld ones. */
static prony_status thresholds_write_json(const prony_check_row *rows, size_t count, const char *target,
                                          prony_write_fn write, void *user, prony_error *error)
{
    static const char *const outcomes[] = {"met", "missed", "unknown", "withheld", "open"};
    prn_json *json = prn_json_dated_document("prony.check/1", write, user, error);
    bool passed = true;
    uint64_t undecided = 0;
    if (!json) return PRONY_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        passed = passed && (rows[i].outcome == PRONY_OUTCOME_MET || rows[i].outcome == PRONY_OUTCOME_OPEN);
        undecided += rows[i].outcome == PRONY_OUTCOME_OPEN || rows[i].outcome == PRONY_OUTCOME_WITHHELD;
    }
    prn_json_string(json, "target", target);
    prn_json_bool(json, "passed", passed);
    prn_json_uint(json, "undecided", undecided);
    prn_json_open(json, "thresholds", '[', false);
    for (size_t i = 0; i < count; i++) {
        const prony_check_row *row = &rows[i];
        prn_json_open(json, NULL, '{', false);
        prn_json_string(json, "metric", row->threshold.metric->key);
        prn_json_string(json, "bound",
                        row->threshold.metric->direction == PRONY_LARGER_IS_BETTER ? "at least" : "at most");
        prn_json_double(json, "limit", row->threshold.limit);
        prn_json_string(json, "limit_text", row->threshold.text);
        prn_json_double(json, "value", row->value.known ? row->value.value : NAN);
        prn_json_string(json, "value_text", row->value.text);
        prn_json_double(json, "margin", row->margin);
        if (isfinite(row->interval[0])) {
            prn_json_open(json, "interval", '[', true);
            for (int end = 0; end < 2; end++) prn_json_double(json, NULL, row->interval[end]);
            prn_json_close(json, ']');
        }
        prn_json_string(json, "outcome", outcomes[row->outcome]);
        prn_json_close(json, '}');
    }
    prn_json_close(json, ']');
    return prn_json_finish(json);
}

prony_status prony_check_write(const prony_check_row *rows, size_t count, const char *target, prony_format format,
                               const prony_write_options *options, prony_write_fn write, void *user, prony_error *error)
{
    prony_write_options own = PRONY_WRITE_OPTIONS_INIT;
    if (!write || (!rows && count))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_check_write: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "write options", error));
    options = &own;
    if (format == PRONY_FORMAT_JSON) return thresholds_write_json(rows, count, target, write, user, error);
    if (format == PRONY_FORMAT_TEXT) return thresholds_write_text(rows, count, target, options, write, user, error);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "thresholds can be written as text or JSON only");
}
