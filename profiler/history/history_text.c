/* The trend of a metric and the verdict on the newest run as text. */
#include "profiler/history/history_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SPARK_COLUMNS = 60, MOST_GROUPS = 12 };

prn_text *prn_history_text_begin(const prony_write_options *options, prony_write_fn write, void *user,
                                 prony_error *error)
{
    prn_text *text = prn_alloc(sizeof *text);
    if (!text) {
        (void)prn_no_memory(error);
        return NULL;
    }
    prn_text_begin(text, options->width ? options->width : 80, options->color, write, user, error);
    text->whole_names = options->whole_names != 0;
    return text;
}

prony_status prn_history_text_end(prn_text *text)
{
    const prony_status status = prn_text_end(text);
    prn_free(text);
    return status;
}

/* Medians of `columns` equal pieces of the counted values, in eight heights between the smallest and the largest. */
static void spark_line(const prn_trend *t, int columns, char *out)
{
    double cells[SPARK_COLUMNS], low = INFINITY, high = -INFINITY;
    double *room = prn_calloc(t->counted + 1, sizeof *room);
    *out = '\0';
    if (!room || t->counted == 0) {
        prn_free(room);
        return;
    }
    const size_t count = t->counted < (size_t)columns ? t->counted : (size_t)columns;
    size_t position = 0, cell = 0, used = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (!t->points[i].counted) continue;
        room[used++] = t->points[i].value;
        if (++position * count / t->counted == cell) continue;
        cells[cell] = prn_median(room, used);
        low = fmin(low, cells[cell]);
        high = fmax(high, cells[cell]);
        used = 0;
        cell++;
    }
    /* A range below 2 % of the values is noise: it does not fill the line's height. */
    const double span = fmax(high - low, 0.02 * fabs(high)), base = (low + high - span) / 2;
    for (size_t c = 0; c < cell; c++) {
        const int height = span > 0 ? (int)fmin(7, fmax(0, (cells[c] - base) / span * 8)) : 0;
        snprintf(out + 3 * c, 4, "\xe2\x96%c", (char)(0x81 + height));
    }
    prn_free(room);
}

static const char *value_text(const prony_metric *metric, double value, char *text, size_t size)
{
    return prn_history_value_text(metric, value, text, size, "-");
}

/* ---- trend ---- */

static const prn_column point_columns[] = {{"run", true, false, 0, 0},     {"time (UTC)", false, false, 0, 0},
                                           {"commit", false, false, 0, 0}, {"label", false, true, 1, 8},
                                           {"", true, false, 0, 0},        {"95 %", true, true, 0, 0},
                                           {"level", true, false, 0, 0},   {"", false, false, 0, 0}};

typedef struct trend_view {
    const prn_trend *trend;
    size_t first;
} trend_view;

/* "step" or "drift" at the first point behind a change. */
static const prn_trend_change *change_at(const prn_trend *t, size_t point)
{
    for (size_t i = 0; i < t->change_count; i++)
        if (t->changes[i].first == point && point) return &t->changes[i];
    return NULL;
}

/* A cell of a trend's table, by column number of point_columns; row 0 is run v->first of the trend. A run on a busy
 * machine says so instead of a change, since it takes no part in finding changes. */
static void point_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const trend_view *v = user;
    const prn_trend *t = v->trend;
    const prn_trend_point *p = &t->points[v->first + row];
    const prn_trend_change *change = change_at(t, v->first + row);
    char low[40], high[40];
    cell->string = cell->own;
    switch (column) {
    case 0:
        snprintf(cell->own, sizeof cell->own, "%zu", v->first + row + 1);
        return;
    case 1:
        prn_history_date(p->run->time_s, cell->own);
        return;
    case 2:
        prn_history_commit(p->run, cell->own);
        return;
    case 3:
        cell->string = p->run->label;
        return;
    case 4:
        cell->string = value_text(t->metric, p->value, cell->own, sizeof cell->own);
        return;
    case 5:
        if (isfinite(p->interval[0]) && isfinite(p->interval[1]))
            snprintf(cell->own, sizeof cell->own, "%.28s..%.28s",
                     value_text(t->metric, p->interval[0], low, sizeof low),
                     value_text(t->metric, p->interval[1], high, sizeof high));
        return;
    case 6:
        cell->string = value_text(t->metric, p->level, cell->own, sizeof cell->own);
        return;
    default:
        if (!p->counted) {
            cell->string = "busy, not counted";
            cell->style = PRN_STYLE_WARN;
        } else if (change) {
            prn_trend_change_text(change, cell->own);
            cell->style = change->direction > 0   ? PRN_STYLE_BAD
                          : change->direction < 0 ? PRN_STYLE_GOOD
                                                  : PRN_STYLE_WARN;
        }
    }
}

static void put_group_heading(prn_text *text, const prn_trend *t)
{
    static const char *const names[] = {"model files", "machines", "configurations"};
    char line[900];
    prn_text_putf(text, PRN_STYLE_TITLE, "%s of %.200s", t->metric->name, t->group->of->model);
    prn_text_line(text);
    snprintf(line, sizeof line, "%.400s; %.300s", prn_history_group_configuration(t->group),
             prn_history_group_machine(t->group));
    prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
    for (int i = 0; i < 3; i++) {
        if (!t->group->differs[i]) continue;
        snprintf(line, sizeof line, "joined runs of several %s", names[i]);
        prn_text_wrap(text, PRN_STYLE_WARN, 2, line);
    }
}

/* One change of level and the layers that explain it. `line` has room for all pieces: names and commits are cut as they
 * are printed. A step with few runs behind it gets a warning, because later runs may show it to be noise;
 * PRN_TREND_SETTLED says how many settle it. */
static void put_change(prn_text *text, const prn_trend *t, const prn_trend_change *c)
{
    char line[700], from[64], to[64], date[24], commits[96], before[64], after[64], what[32];
    const prn_trend_point *first = &t->points[c->first], *last = &t->points[c->last];
    const double days = (double)(last->run->time_s - first->run->time_s) / 86400;
    int used = snprintf(line, sizeof line, "%s%s: %s -> %s, ",
                        c->direction > 0   ? "worse, "
                        : c->direction < 0 ? "better, "
                                           : "",
                        prn_trend_change_text(c, what), value_text(t->metric, c->from, from, sizeof from),
                        value_text(t->metric, c->to, to, sizeof to));
    if (c->drift) {
        used += snprintf(line + used, sizeof line - (size_t)used, "run %zu to %zu", c->first + 1, c->last + 1);
        if (first->run->time_s && days > 0)
            used += snprintf(line + used, sizeof line - (size_t)used, " (%.1f days)", days);
    } else
        used += snprintf(line + used, sizeof line - (size_t)used, "at run %zu (%s)", c->first + 1,
                         prn_history_date(first->run->time_s, date));
    prn_trend_commits(t, c, commits);
    if (strcmp(commits, "-") != 0) snprintf(line + used, sizeof line - (size_t)used, ", commits %s", commits);
    prn_text_wrap(text,
                  c->direction > 0   ? PRN_STYLE_BAD
                  : c->direction < 0 ? PRN_STYLE_GOOD
                                     : PRN_STYLE_PLAIN,
                  2, line);
    const char *was = t->points[c->before].run->prony, *is = last->run->prony;
    if (strcmp(was, is) != 0) {
        snprintf(line, sizeof line, "Prony changed too: %.100s -> %.100s", was, is);
        prn_text_wrap(text, PRN_STYLE_WARN, 4, line);
    }
    for (size_t i = 0; i < c->layer_count; i++) {
        const prn_trend_layer *l = &c->layers[i];
        prn_number_text a, b;
        snprintf(before, sizeof before, "%s", prn_number_time(a, llround(l->before_ns), 3, " "));
        snprintf(after, sizeof after, "%s", prn_number_time(b, llround(l->after_ns), 3, " "));
        snprintf(line, sizeof line, "%.0f %% of the layers' movement: %.200s (%.40s), %s -> %s", 100 * l->share,
                 l->name, l->op, before, after);
        prn_text_wrap(text, PRN_STYLE_PLAIN, 4, line);
    }
    size_t since = 0;
    for (size_t i = c->first; i < t->count; i++) since += t->points[i].counted;
    if (!c->drift && since < PRN_TREND_SETTLED) {
        snprintf(line, sizeof line, "only %zu runs since then: later ones may take it back", since);
        prn_text_wrap(text, PRN_STYLE_DIM, 4, line);
    }
    if (c->layers_known && c->layer_count == 0)
        prn_text_wrap(text, PRN_STYLE_DIM, 4,
                      "no layer moved by itself: all moved a little, or the change lies between them");
}

/* A trend: range, spark line, changes, and a table of the newest runs. The range covers all runs, busy ones included;
 * changes come from counted runs alone. */
static void put_trend(prn_text *text, const prn_trend *t, const prony_write_options *options)
{
    char spark[3 * SPARK_COLUMNS + 1], low[64], high[64];
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < t->count; i++) {
        least = fmin(least, t->points[i].value);
        most = fmax(most, t->points[i].value);
    }
    const int columns = text->width - 4 < SPARK_COLUMNS ? text->width - 4 : SPARK_COLUMNS;
    put_group_heading(text, t);
    prn_text_putf(text, PRN_STYLE_PLAIN, "  %zu run%s from %s to %s", t->count, t->count == 1 ? "" : "s",
                  value_text(t->metric, least, low, sizeof low), value_text(t->metric, most, high, sizeof high));
    if (t->counted < t->count) prn_text_putf(text, PRN_STYLE_WARN, ", %zu busy, not counted", t->count - t->counted);
    prn_text_line(text);
    spark_line(t, columns > 1 ? columns : 1, spark);
    if (t->counted > 1) {
        prn_text_to(text, 2);
        prn_text_put(text, PRN_STYLE_BAR, spark);
        prn_text_line(text);
    }
    for (size_t i = 0; i < t->change_count; i++) put_change(text, t, &t->changes[i]);
    if (t->change_count == 0)
        prn_text_wrap(text, PRN_STYLE_DIM, 2,
                      t->counted < 2 * PRN_LEVEL_FEWEST ? "too few runs to look for changes: six are needed"
                                                        : "no change of level");
    prn_text_line(text);
    const size_t wanted = options->top > 0 ? (size_t)options->top : PRN_HISTORY_ROWS,
                 shown = t->count < wanted ? t->count : wanted;
    trend_view view = {t, t->count - shown};
    const prn_table table = {.columns = point_columns,
                             .column_count = sizeof point_columns / sizeof *point_columns,
                             .rows = shown,
                             .cell = point_cell,
                             .user = &view};
    prn_text_table(text, &table);
    if (shown < t->count)
        prn_text_putf(text, PRN_STYLE_DIM, "the newest %zu of %zu runs; --top %zu shows all", shown, t->count,
                      t->count);
    if (text->column) prn_text_line(text);
}

static void put_method(prn_text *text, const prony_history_options *options)
{
    char line[400];
    snprintf(line, sizeof line,
             "Changes: E-divisive with permutation tests, %.0f %% false alarms for each metric of each group, noise "
             "threshold %.2g %%%s.",
             100 * PRN_LEVEL_FALSE_ALARMS, 100 * (options->noise < 0 ? PRN_TREND_NOISE : options->noise),
             options->noise < 0 ? ", of exact metrics 0" : "");
    prn_text_wrap(text, PRN_STYLE_DIM, 0, line);
}

/* A trend per metric and group, MOST_GROUPS at most: the others are counted only. A trend lives for one turn of the
 * loop. A group without values of the metric makes no text. */
prony_status prn_history_trend_text(const prn_history_writing *w, const prony_write_options *options,
                                    prony_write_fn write, void *user, prony_error *error)
{
    const prony_metric *metrics[PRN_TREND_METRICS];
    size_t count, shown = 0, left = 0;
    PRN_TRY(prn_trend_metrics(metrics, PRN_TREND_METRICS, &count, w->metrics, w->options->metrics, "latency", error));
    prn_text *text = prn_history_text_begin(options, write, user, error);
    if (!text) return PRONY_OUT_OF_MEMORY;
    prony_status status = PRONY_OK;
    for (size_t m = 0; m < count; m++)
        for (size_t g = 0; g < w->groups.count && status == PRONY_OK; g++) {
            prn_trend trend;
            if (shown >= MOST_GROUPS) {
                left++;
                continue;
            }
            status = prn_trend_make(&trend, w, &w->groups.groups[g], metrics[m], error);
            if (status == PRONY_OK && trend.count) {
                if (shown++) prn_text_line(text);
                put_trend(text, &trend, options);
            }
            if (status == PRONY_OK) prn_trend_release(&trend);
        }
    if (shown == 0) prn_text_wrap(text, PRN_STYLE_WARN, 0, "no run has this metric");
    if (left) prn_text_putf(text, PRN_STYLE_WARN, "and %zu more groups; --model NAME chooses", left);
    if (left) prn_text_line(text);
    if (shown) prn_text_line(text);
    if (shown) put_method(text, w->options);
    if (status == PRONY_OK) return prn_history_text_end(text);
    prn_free(text);
    return status;
}

/* ---- check ---- */

typedef struct check_rows {
    prn_trend *trends;
    size_t count;
} check_rows;

static const prn_column check_columns[] = {{"metric", false, false, 1, 12}, {"newest", true, false, 0, 0},
                                           {"expected", true, false, 0, 0}, {"99 %", true, true, 0, 0},
                                           {"", true, false, 0, 0},         {"", false, false, 0, 0}};

/* A cell of the check's table, by column number; a row per trend, which has at least one point. An expected value of
 * NaN or 0 leaves the change in percent empty. */
static void history_check_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const prn_trend *t = &((const check_rows *)user)->trends[row];
    const prn_trend_point *newest = &t->points[t->count - 1];
    char low[40], high[40];
    cell->string = cell->own;
    switch (column) {
    case 0:
        cell->string = t->metric->key;
        return;
    case 1:
        cell->string = value_text(t->metric, newest->value, cell->own, sizeof cell->own);
        return;
    case 2:
        cell->string = value_text(t->metric, t->expected, cell->own, sizeof cell->own);
        return;
    case 3:
        if (isfinite(t->bounds[0]))
            snprintf(cell->own, sizeof cell->own, "%.28s..%.28s", value_text(t->metric, t->bounds[0], low, sizeof low),
                     value_text(t->metric, t->bounds[1], high, sizeof high));
        return;
    case 4:
        if (isfinite(t->expected) && fabs(t->expected) > 0) {
            const double percent = 100 * (newest->value / t->expected - 1);
            snprintf(cell->own, sizeof cell->own, "%+.1f %%", fabs(percent) < 0.05 ? 0 : percent); /* not "-0.0" */
        }
        return;
    default:
        cell->string = t->outcome == PRN_TREND_WORSE    ? "WORSE"
                       : t->outcome == PRN_TREND_DRIFTS ? "DRIFTS"
                                                        : prn_trend_outcome_name(t->outcome);
        cell->style = t->outcome == PRN_TREND_WORSE || t->outcome == PRN_TREND_DRIFTS ? PRN_STYLE_BAD
                      : t->outcome == PRN_TREND_BUSY || t->outcome == PRN_TREND_FEW   ? PRN_STYLE_WARN
                                                                                      : PRN_STYLE_GOOD;
    }
}

/* The metrics of one group that the newest run is judged by. */
static prony_status put_check(prn_text *text, const prn_history_writing *w, const prn_history_group *group,
                              const prony_metric *const *metrics, size_t count, prony_error *error)
{
    prn_trend *trends = prn_calloc(count + 1, sizeof *trends);
    check_rows rows = {trends, 0};
    prony_status status = trends ? PRONY_OK : prn_no_memory(error);
    for (size_t m = 0; m < count && status == PRONY_OK; m++) {
        status = prn_trend_make(&trends[rows.count], w, group, metrics[m], error);
        if (status != PRONY_OK) break;
        if (prn_trend_has_newest(&trends[rows.count]))
            rows.count++;
        else
            prn_trend_release(&trends[rows.count]);
    }
    if (status == PRONY_OK) {
        char date[24], commit[16], line[900];
        prn_text_putf(text, PRN_STYLE_TITLE, "Newest run of %.200s", group->of->model);
        prn_text_putf(text, PRN_STYLE_DIM, ": %s, commit %s, %zu runs before",
                      prn_history_date(group->of->time_s, date), prn_history_commit(group->of, commit),
                      group->count - 1);
        prn_text_line(text);
        snprintf(line, sizeof line, "%.400s; %.300s", group->of->configuration, group->of->machine);
        prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
        const prn_table table = {.columns = check_columns,
                                 .column_count = sizeof check_columns / sizeof *check_columns,
                                 .rows = rows.count,
                                 .cell = history_check_cell,
                                 .user = &rows};
        if (rows.count)
            prn_text_table(text, &table);
        else
            prn_text_wrap(text, PRN_STYLE_WARN, 2, "the run has none of these metrics");
        if (group->of->load == PRONY_LOAD_BUSY && !w->options->ignore_load)
            prn_text_wrap(text, PRN_STYLE_WARN, 2,
                          "the machine was busy, so the run does not decide; "
                          "--ignore-load judges anyway");
        for (size_t i = 0; i < rows.count; i++)
            for (size_t c = 0; c < trends[i].change_count; c++)
                if (c + 1 == trends[i].change_count && prn_trend_is_bad(&trends[i]))
                    put_change(text, &trends[i], &trends[i].changes[c]);
    }
    for (size_t i = 0; i < rows.count; i++) prn_trend_release(&trends[i]);
    prn_free(trends);
    return status;
}

prony_status prn_history_check_text(const prn_history_writing *w, const prony_write_options *options,
                                    prony_write_fn write, void *user, prony_error *error)
{
    const prony_metric *metrics[PRN_TREND_METRICS];
    size_t count, shown = 0;
    PRN_TRY(prn_trend_metrics(metrics, PRN_TREND_METRICS, &count, w->metrics, w->options->metrics, PRN_TREND_CHECKED,
                              error));
    prn_text *text = prn_history_text_begin(options, write, user, error);
    if (!text) return PRONY_OUT_OF_MEMORY;
    prony_status status = PRONY_OK;
    for (size_t g = 0; g < w->groups.count && status == PRONY_OK; g++) {
        if (!prn_history_is_newest(w, &w->groups.groups[g])) continue;
        if (shown++) prn_text_line(text);
        status = put_check(text, w, &w->groups.groups[g], metrics, count, error);
    }
    if (shown == 0) prn_text_wrap(text, PRN_STYLE_WARN, 0, "no runs to check");
    if (status == PRONY_OK) return prn_history_text_end(text);
    prn_free(text);
    return status;
}
