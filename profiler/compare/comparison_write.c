/* A comparison as text and as JSON, "prony.comparison/1". Reads it only. */
#include "base/option_struct.h"
#include "profiler/compare/comparison.h"

#include "profiler/metrics/metrics.h"
#include "profiler/text/number_text.h"
#include "profiler/text/text_out.h"
#include "profiler/json/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ROWS 10
#define SAME_RATIO 1e-9 /* relative difference of equal ratios: rates made of one time */

/* ---- text ---- */

static const char *comparison_write_ratio_text(char *text, size_t size, double ratio)
{
    prn_number_text number;
    if (!isfinite(ratio)) return "-";
    snprintf(text, size, "%s", prn_number_fixed(number, ratio, 3));
    return text;
}

static const char *comparison_write_interval_text(char *text, size_t size, const double interval[2])
{
    prn_number_text low, high;
    if (!isfinite(interval[0]) || !isfinite(interval[1])) return "";
    snprintf(text, size, "%s..%s", prn_number_fixed(low, interval[0], 3), prn_number_fixed(high, interval[1], 3));
    return text;
}

static const char *p_text(char *text, size_t size, double p)
{
    prn_number_text number;
    if (isnan(p)) return "";
    snprintf(text, size, "%s", p < 0.001 ? "<0.001" : prn_number_fixed(number, p, 3));
    return text;
}

static prn_style comparison_write_verdict_style(prony_verdict verdict)
{
    return verdict == PRONY_VERDICT_BETTER   ? PRN_STYLE_GOOD
           : verdict == PRONY_VERDICT_WORSE  ? PRN_STYLE_BAD
           : verdict == PRONY_VERDICT_UNSURE ? PRN_STYLE_WARN
                                             : PRN_STYLE_DIM;
}

/* A difference with its sign; fractions in points, to distinguish it from a ratio. */
static void difference_text(const prony_metric *metric, double difference, char *text, size_t size)
{
    char number[64];
    prony_metric_format(metric, fabs(difference), number, sizeof number);
    snprintf(text, size, "%s%.60s", difference > 0 ? "+" : difference < 0 ? "-" : "", number);
}

static void verdict_cell(prn_cell *cell, prony_verdict verdict, prony_basis basis)
{
    cell->string = verdict == PRONY_VERDICT_NONE && basis == PRONY_BASIS_NONE ? "once" : prn_verdict_mark(verdict);
    cell->style = comparison_write_verdict_style(verdict);
}

static const prn_column metric_columns[] = {{"metric", false, false, 1, 12}, {"A", true, false, 0, 0},
                                            {"B", true, false, 0, 0},        {"B / A", true, false, 0, 0},
                                            {"95 %", true, true, 0, 0},      {"p", true, true, 0, 0},
                                            {"B - A", true, true, 0, 0},     {"B is", false, false, 0, 0}};

/* The metrics that are shown. */
typedef struct metric_view {
    const prony_compare_metric **rows;
    size_t count;
    size_t merged; /* of the ratio of an earlier row, or of its inverse */
} metric_view;

/* One cell of the table of metrics. */
static void metric_cell(const void *user, size_t index, int column, prn_cell *cell)
{
    const prony_compare_metric *row = ((const metric_view *)user)->rows[index];
    switch (column) {
    case 0:
        cell->string = row->first.metric->key;
        return;
    case 1:
        cell->string = row->first.text;
        return;
    case 2:
        cell->string = row->second.text;
        return;
    case 3:
        cell->string = comparison_write_ratio_text(cell->own, sizeof cell->own, row->ratio);
        return;
    case 4:
        cell->string = comparison_write_interval_text(cell->own, sizeof cell->own, row->ratio_ci95);
        return;
    case 5:
        cell->string = p_text(cell->own, sizeof cell->own, row->p);
        return;
    case 6:
        difference_text(row->first.metric, row->difference, cell->own, sizeof cell->own);
        cell->string = cell->own;
        return;
    default:
        verdict_cell(cell, row->verdict, row->basis);
    }
}

/* Rows by the size of their difference. */
typedef struct part_view {
    const prony_compare_row **rows;
    size_t count;
} part_view;

static const prn_column part_columns[] = {
    {"name", false, false, 3, 12}, {"type", false, true, 1, 8},  {"A", true, false, 0, 0},
    {"B", true, false, 0, 0},      {"B - A", true, false, 0, 0}, {"B / A", true, false, 0, 0},
    {"95 %", true, true, 0, 0},    {"p", true, true, 0, 0},      {"B is", false, false, 0, 0}};

static void comparison_write_put_time(prn_cell *cell, double ns, bool sign)
{
    prn_number_text number;
    prn_number_time(number, llround(fabs(ns)), 3, " ");
    snprintf(cell->own, sizeof cell->own, "%s%s", !sign ? "" : ns > 0 ? "+" : ns < 0 ? "-" : "", number);
    cell->string = cell->own;
}

/* One cell of a table of layers or types. */
static void part_cell(const void *user, size_t index, int column, prn_cell *cell)
{
    const prony_compare_row *row = ((const part_view *)user)->rows[index];
    switch (column) {
    case 0:
        cell->string = row->name;
        return;
    case 1:
        cell->string = row->op;
        return;
    case 2:
        comparison_write_put_time(cell, row->first_ns, false);
        return;
    case 3:
        comparison_write_put_time(cell, row->second_ns, false);
        return;
    case 4:
        comparison_write_put_time(cell, row->difference_ns, true);
        return;
    case 5:
        cell->string = comparison_write_ratio_text(cell->own, sizeof cell->own, row->ratio);
        return;
    case 6:
        cell->string = comparison_write_interval_text(cell->own, sizeof cell->own, row->ratio_ci95);
        return;
    case 7:
        cell->string = p_text(cell->own, sizeof cell->own, row->p);
        return;
    default:
        verdict_cell(cell, row->verdict, PRONY_BASIS_MEANS);
    }
}

static double log_ratio(const prony_compare_metric *row)
{
    return row->ratio > 0 ? fabs(log(row->ratio)) : INFINITY;
}

static bool one_ratio(const prony_compare_metric *a, const prony_compare_metric *b)
{
    return a->verdict == b->verdict && isfinite(log_ratio(a)) && fabs(log_ratio(a) - log_ratio(b)) < SAME_RATIO;
}

/* Deciding metrics first, then verdicts, then the rest by the size of the difference. */
static int rank_of(const prony_comparison *c, size_t i)
{
    const prony_verdict verdict = c->metrics[i].verdict;
    return c->decides[i]                      ? 0
           : verdict == PRONY_VERDICT_WORSE   ? 1
           : verdict == PRONY_VERDICT_BETTER  ? 2
           : verdict == PRONY_VERDICT_UNSURE  ? 3
           : log_ratio(&c->metrics[i]) > 0.01 ? 4
                                              : 5;
}

/* The metrics that differ at all, in order of their ranks. Several with one ratio (latency and its rates) share a row
 * unless all are wanted. */
static void view_metrics(metric_view *view, const prony_comparison *c, bool all)
{
    for (int rank = 0; rank <= 5; rank++) {
        for (size_t i = 0; i < c->metric_count; i++) {
            const prony_compare_metric *row = &c->metrics[i];
            if (rank_of(c, i) != rank || !(row->difference > 0 || row->difference < 0)) continue;
            size_t k = 0;
            while (!all && k < view->count && !one_ratio(view->rows[k], row)) k++;
            if (!all && k < view->count)
                view->merged++;
            else
                view->rows[view->count++] = row;
        }
    }
}

/* Writes the table of metrics, with the number of rows not shown and why. */
static prony_status put_metrics(prn_text *text, const prony_comparison *c, size_t top, bool all)
{
    prn_number_text noise;
    metric_view view = {prn_calloc(c->metric_count + 1, sizeof(prony_compare_metric *)), 0, 0};
    if (!view.rows) return prn_no_memory(text->error);
    view_metrics(&view, c, all);
    prn_table table = {.columns = metric_columns,
                       .column_count = sizeof metric_columns / sizeof metric_columns[0],
                       .rows = view.count < top ? view.count : top,
                       .cell = metric_cell,
                       .user = &view};
    prn_text_line(text);
    prn_text_put(text, PRN_STYLE_TITLE, "Metrics");
    prn_text_putf(text, PRN_STYLE_DIM, ", ~: not significant, or within %s %%; once: measured once, not judged",
                  prn_number_fixed(noise, c->noise * 100, c->noise < 0.001 ? 3 : 1));
    prn_text_line(text);
    if (view.count) prn_text_table(text, &table);
    if (view.count > table.rows || view.merged) {
        char line[160], merged[80] = "";
        if (view.merged)
            snprintf(merged, sizeof merged, "%zu with the same ratio as a row above%s", view.merged,
                     view.count > table.rows ? ", " : "");
        int used = snprintf(line, sizeof line, "not shown: %s", merged);
        if (view.count > table.rows)
            used +=
                snprintf(line + used, sizeof line - (size_t)used, "%zu further differences", view.count - table.rows);
        snprintf(line + used, sizeof line - (size_t)used, " (--all)");
        prn_text_wrap(text, PRN_STYLE_DIM, 0, line);
    }
    const size_t differ = view.count + view.merged;
    if (differ < c->metric_count) {
        prn_text_putf(text, PRN_STYLE_DIM, "%zu metrics are identical", c->metric_count - differ);
        prn_text_line(text);
    }
    prn_free(view.rows);
    return PRONY_OK;
}

static int by_difference(const void *left, const void *right)
{
    const prony_compare_row *a = *(const prony_compare_row *const *)left, *b = *(const prony_compare_row *const *)right;
    double da = fabs(a->difference_ns), db = fabs(b->difference_ns);
    return da > db ? -1 : da < db ? 1 : (a > b) - (a < b);
}

static prony_status put_parts(prn_text *text, const prony_compare_row *parts, size_t count, prn_compare_by by,
                              size_t top)
{
    static const char *const titles[] = {"Layers", "Operator types", "Inside these layers"};
    part_view view = {prn_calloc(count + 1, sizeof(prony_compare_row *)), count};
    if (!view.rows) return prn_no_memory(text->error);
    for (size_t i = 0; i < count; i++) view.rows[i] = &parts[i];
    qsort(view.rows, count, sizeof *view.rows, by_difference);
    prn_table table = {.columns = part_columns,
                       .column_count = sizeof part_columns / sizeof part_columns[0],
                       .hidden = by == PRN_BY_TYPE ? 1U << 1 : 0,
                       .names = 1U << 0,
                       .rows = count < top ? count : top,
                       .cell = part_cell,
                       .user = &view};
    prn_text_line(text);
    prn_text_put(text, PRN_STYLE_TITLE, titles[by]);
    if (count > table.rows)
        prn_text_putf(text, PRN_STYLE_DIM, ", the %zu of %zu with the largest differences", table.rows, count);
    prn_text_line(text);
    if (count)
        prn_text_table(text, &table);
    else
        prn_text_putf(text, PRN_STYLE_DIM, "  none with times in both reports"), prn_text_line(text);
    prn_free(view.rows);
    return PRONY_OK;
}

static void put_side(prn_text *text, const char *letter, const prn_compare_side *s)
{
    prn_text_putf(text, PRN_STYLE_BOLD, "%s  ", letter);
    prn_text_putf(text, PRN_STYLE_PLAIN, "%.200s", s->name);
    if (s->batch > 0) prn_text_putf(text, PRN_STYLE_DIM, "  batch %" PRId64, s->batch);
    if (s->threads > 0) prn_text_putf(text, PRN_STYLE_DIM, "  %d thread%s", s->threads, s->threads > 1 ? "s" : "");
    if (s->runs) prn_text_putf(text, PRN_STYLE_DIM, "  %" PRIu64 " runs", s->runs);
    prn_text_line(text);
}

static void put_unmatched(prn_text *text, const prony_comparison *c)
{
    for (int side = 0; side < 2; side++) {
        size_t count = c->side[side].only_count;
        if (count == 0) continue;
        prn_text_putf(text, PRN_STYLE_DIM, "%zu layer%s only in %s: %.100s%s", count, count > 1 ? "s are" : " is",
                      side ? "B" : "A", c->side[side].only[0], count > 1 ? ", .." : "");
        prn_text_line(text);
    }
}

/* "latency, throughput and session_memory": those that decide. */
static void deciding_text(const prony_comparison *c, char *text, size_t size)
{
    size_t count = 0, done = 0, used = 0;
    *text = '\0';
    for (size_t i = 0; i < c->metric_count; i++) count += c->decides[i];
    for (size_t i = 0; i < c->metric_count && count <= 6 && used < size; i++) {
        if (!c->decides[i]) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%.40s",
                                 !done               ? ", of "
                                 : done + 1 == count ? " and "
                                                     : ", ",
                                 c->metrics[i].first.metric->key);
        done++;
    }
    if (count > 6) snprintf(text, size, ", of %zu", count);
}

/* The verdict: how many of the metrics that decide are worse, better or undecided, and a line for each of these. */
static void put_conclusion(prn_text *text, const prony_comparison *c)
{
    static const prony_verdict shown[] = {PRONY_VERDICT_WORSE, PRONY_VERDICT_BETTER, PRONY_VERDICT_UNSURE};
    static const char *const words[] = {"worse", "better", "cannot tell"};
    size_t better = 0, unsure = 0, others = 0;
    char line[400], deciding[280], ratio[24];
    for (size_t i = 0; i < c->metric_count; i++) {
        const prony_verdict verdict = c->metrics[i].verdict;
        better += c->decides[i] && verdict == PRONY_VERDICT_BETTER;
        unsure += c->decides[i] && verdict == PRONY_VERDICT_UNSURE;
        others += !c->decides[i] && verdict == PRONY_VERDICT_WORSE;
    }
    deciding_text(c, deciding, sizeof deciding);
    int used = snprintf(line, sizeof line, "%zu metric%s worse, %zu better", c->regressions,
                        c->regressions == 1 ? " is" : "s are", better);
    if (unsure) used += snprintf(line + used, sizeof line - (size_t)used, ", %zu undecided", unsure);
    snprintf(line + used, sizeof line - (size_t)used, "%s", deciding);
    prn_text_line(text);
    prn_text_wrap(text, c->regressions ? PRN_STYLE_BAD : unsure ? PRN_STYLE_WARN : PRN_STYLE_GOOD, 0, line);
    for (size_t k = 0; k < sizeof shown / sizeof *shown; k++)
        for (size_t i = 0; i < c->metric_count; i++) {
            const prony_compare_metric *row = &c->metrics[i];
            if (!c->decides[i] || row->verdict != shown[k]) continue;
            prn_text_putf(text, comparison_write_verdict_style(shown[k]), "  %s: %s, %s -> %s (x %s)", words[k],
                          row->first.metric->key, row->first.text, row->second.text,
                          comparison_write_ratio_text(ratio, sizeof ratio, row->ratio));
            prn_text_line(text);
        }
    if (others) {
        snprintf(line, sizeof line, "%zu other metric%s worse, but %s not count (choose with --metrics LIST, or all)",
                 others, others == 1 ? " is" : "s are", others == 1 ? "does" : "do");
        prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
    }
}

static prony_status comparison_write_text(const prony_comparison *c, const prony_write_options *options,
                                          prony_write_fn write, void *user, prony_error *error)
{
    prn_text *text = prn_alloc(sizeof *text);
    if (!text) return prn_no_memory(error);
    prn_text_begin(text, options->width ? options->width : 80, options->color, write, user, error);
    text->whole_names = options->whole_names != 0;
    put_side(text, "A", &c->side[0]);
    put_side(text, "B", &c->side[1]);
    put_conclusion(text, c);
    if (c->note_count) prn_text_line(text);
    for (size_t i = 0; i < c->note_count; i++) {
        prn_text_put(text, PRN_STYLE_WARN, "!");
        prn_text_wrap(text, PRN_STYLE_WARN, 3, c->notes[i]);
    }
    size_t top = options->all ? SIZE_MAX : options->top > 0 ? (size_t)options->top : DEFAULT_ROWS;
    prony_status status = put_metrics(text, c, top, options->all);
    if (status == PRONY_OK) status = put_parts(text, c->types, c->type_count, PRN_BY_TYPE, top);
    if (status == PRONY_OK) status = put_parts(text, c->layers, c->layer_count, PRN_BY_LAYER, top);
    if (status == PRONY_OK && c->nested_count) status = put_parts(text, c->nested, c->nested_count, PRN_BY_NESTED, top);
    if (status == PRONY_OK) {
        put_unmatched(text, c);
        status = prn_text_end(text);
    }
    prn_free(text);
    return status;
}

/* ---- JSON ---- */

static void json_interval(prn_json *json, const double interval[2])
{
    if (!isfinite(interval[0]) || !isfinite(interval[1])) { /* too few runs for an interval */
        prn_json_null(json, "ratio_ci95");
        return;
    }
    prn_json_open(json, "ratio_ci95", '[', true);
    prn_json_double(json, NULL, interval[0]);
    prn_json_double(json, NULL, interval[1]);
    prn_json_close(json, ']');
}

static void comparison_write_json_side(prn_json *json, const char *key, const prn_compare_side *s)
{
    prn_json_open(json, key, '{', false);
    prn_json_string(json, "name", s->name);
    prn_json_string(json, "model", s->model);
    if (s->sha256) prn_json_string(json, "sha256", s->sha256);
    if (s->batch > 0) prn_json_int(json, "batch", s->batch);
    if (s->threads > 0) prn_json_int(json, "intra_op_threads", s->threads);
    prn_json_uint(json, "runs", s->runs);
    prn_json_open(json, "only_layers", '[', false);
    for (size_t i = 0; i < s->only_count; i++) prn_json_string(json, NULL, s->only[i]);
    prn_json_close(json, ']');
    prn_json_close(json, '}');
}

static void json_metric(prn_json *json, const prony_compare_metric *row, bool decides)
{
    const prony_metric *m = row->first.metric;
    prn_json_open(json, NULL, '{', false);
    prn_json_string(json, "key", m->key);
    prn_json_string(json, "name", m->name);
    prn_json_string(json, "unit", prn_metric_unit(m));
    prn_json_string(json, "better", prn_direction_name(m->direction));
    prn_json_double(json, "a", row->first.value);
    prn_json_double(json, "b", row->second.value);
    prn_json_double(json, "difference", row->difference);
    prn_json_double(json, "ratio", row->ratio);
    json_interval(json, row->ratio_ci95);
    prn_json_double(json, "p", row->p);
    prn_json_string(json, "evidence", prony_basis_name(row->basis));
    prn_json_string(json, "verdict", prony_verdict_name(row->verdict));
    prn_json_bool(json, "decides", decides);
    prn_json_close(json, '}');
}

static void json_parts(prn_json *json, const char *key, const prony_compare_row *parts, size_t count, bool nested)
{
    prn_json_open(json, key, '[', false);
    for (size_t i = 0; i < count; i++) {
        const prony_compare_row *row = &parts[i];
        prn_json_open(json, NULL, '{', false);
        prn_json_string(json, "name", row->name);
        prn_json_string(json, "op", row->op);
        prn_json_double(json, "a_ns", row->first_ns);
        prn_json_double(json, "b_ns", row->second_ns);
        prn_json_double(json, "difference_ns", row->difference_ns);
        prn_json_double(json, "ratio", row->ratio);
        json_interval(json, row->ratio_ci95);
        prn_json_double(json, "p", row->p);
        prn_json_uint(json, "a_flops", row->first_flops);
        prn_json_uint(json, "b_flops", row->second_flops);
        if (nested) prn_json_uint(json, "a_executions", row->first_executions);
        if (nested) prn_json_uint(json, "b_executions", row->second_executions);
        prn_json_string(json, "verdict", prony_verdict_name(row->verdict));
        prn_json_close(json, '}');
    }
    prn_json_close(json, ']');
}

static prony_status comparison_write_json(const prony_comparison *c, prony_write_fn write, void *user,
                                          prony_error *error)
{
    prn_json *json = prn_json_dated_document("prony.comparison/1", write, user, error);
    if (!json) return PRONY_OUT_OF_MEMORY;
    prn_json_double(json, "noise", c->noise);
    comparison_write_json_side(json, "a", &c->side[0]);
    comparison_write_json_side(json, "b", &c->side[1]);
    prn_json_open(json, "notes", '[', false);
    for (size_t i = 0; i < c->note_count; i++) prn_json_string(json, NULL, c->notes[i]);
    prn_json_close(json, ']');
    prn_json_open(json, "metrics", '[', false);
    for (size_t i = 0; i < c->metric_count; i++) json_metric(json, &c->metrics[i], c->decides[i]);
    prn_json_close(json, ']');
    json_parts(json, "operator_types", c->types, c->type_count, false);
    json_parts(json, "layers", c->layers, c->layer_count, false);
    if (c->nested_count) json_parts(json, "nested_layers", c->nested, c->nested_count, true);
    prn_json_open(json, "regressions", '[', true);
    for (size_t i = 0; i < c->metric_count; i++)
        if (c->decides[i] && c->metrics[i].verdict == PRONY_VERDICT_WORSE)
            prn_json_string(json, NULL, c->metrics[i].first.metric->key);
    prn_json_close(json, ']');
    return prn_json_finish(json);
}

prony_status prony_comparison_write(const prony_comparison *comparison, prony_format format,
                                    const prony_write_options *options, prony_write_fn write, void *user,
                                    prony_error *error)
{
    prony_write_options own = PRONY_WRITE_OPTIONS_INIT;
    if (!comparison || !write)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_comparison_write: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "write options", error));
    options = &own;
    if (format == PRONY_FORMAT_JSON) return comparison_write_json(comparison, write, user, error);
    if (format == PRONY_FORMAT_TEXT) return comparison_write_text(comparison, options, write, user, error);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "a comparison can be written as text or JSON only");
}
