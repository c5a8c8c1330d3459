/* One metric of one group of runs: levels, changes of level with the layers that moved, and the verdict on the newest
 * run. Values are compared as ratios, so positive ones are analysed as logarithms. */
#include "profiler/history/history.h"

#include "profiler/compare/comparison.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

prony_status prn_trend_metrics(const prony_metric **out, size_t capacity, size_t *count, const prony_metrics *metrics,
                               const char *keys, const char *otherwise, prony_error *error)
{
    *count = 0;
    if (keys && strcmp(keys, "all") == 0) {
        for (size_t i = 0; i < prony_metrics_count(metrics) && *count < capacity; i++)
            if (prony_metrics_at(metrics, i)->direction != PRONY_NO_DIRECTION)
                out[(*count)++] = prony_metrics_at(metrics, i);
        return PRONY_OK;
    }
    for (const char *at = keys ? keys : otherwise; *at;) {
        char key[64];
        const size_t length = strcspn(at, ",");
        snprintf(key, sizeof key, "%.*s", (int)(length < sizeof key ? length : sizeof key - 1), at);
        const prony_metric *metric = prn_threshold_metric(metrics, key);
        if (!metric && keys)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "unknown metric '%s'; prony metrics MODEL lists them", key);
        if (metric && *count < capacity) out[(*count)++] = metric;
        at += length + (at[length] == ',');
    }
    return PRONY_OK;
}

const char *prn_trend_outcome_name(prn_trend_outcome outcome)
{
    static const char *const names[] = {"within", "worse", "drifts", "better", "busy", "too few runs"};
    return names[outcome];
}

const char *prn_trend_verdict_name(const prn_trend *t)
{
    return t->outcome == PRN_TREND_BUSY || t->outcome == PRN_TREND_FEW ? "undecided"
           : prn_trend_is_bad(t)                                       ? "regressed"
                                                                       : "passed";
}

/* ---- points ---- */

static prony_status collect_points(prn_trend *t, const prn_history_writing *w, prony_error *error)
{
    const prony_history *history = w->history;
    const prony_history_options *options = w->options;
    const prn_history_group *g = t->group;
    const size_t first = g->count > (size_t)options->last ? g->count - (size_t)options->last : 0;
    t->points = prn_calloc(g->count - first + 1, sizeof *t->points);
    if (!t->points) return prn_no_memory(error);
    for (size_t i = first; i < g->count; i++) {
        const prony_history_run *run = &history->runs[g->runs[i]];
        const prony_history_value *value = prn_history_value(run, t->metric->key);
        if (!value || !isfinite(value->value)) continue;
        prn_trend_point *p = &t->points[t->count++];
        *p = (prn_trend_point){run, value->value, {value->interval[0], value->interval[1]}, .level = NAN};
        p->counted = options->ignore_load || run->load != PRONY_LOAD_BUSY;
        t->counted += p->counted;
    }
    return PRONY_OK;
}

/* The point of the `position`-th counted value. */
static size_t point_at(const prn_trend *t, size_t position)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->points[i].counted && position-- == 0) return i;
    return t->count;
}

bool prn_trend_has_newest(const prn_trend *t)
{
    return t->count && t->points[t->count - 1].run == t->group->of;
}

bool prn_trend_is_bad(const prn_trend *t)
{
    return prn_trend_has_newest(t) && (t->outcome == PRN_TREND_WORSE || t->outcome == PRN_TREND_DRIFTS);
}

/* ---- levels ---- */

/* The part of the level below which a difference is noise. Exact metrics, such as accuracy and memory, have none unless
 * the caller sets it. */
static double noise_of(const prn_history_writing *w, const prony_metric *metric)
{
    if (w->options->noise >= 0) return w->options->noise;
    for (size_t i = 0; i < prony_metrics_count(w->metrics); i++) {
        const prn_metric_builtin *builtin = prn_metrics_builtin(w->metrics, i);
        if (builtin && prony_metrics_at(w->metrics, i) == metric && builtin->basis == PRONY_BASIS_EXACT) return 0;
    }
    return PRN_TREND_NOISE;
}

/* Smallest part of a level that is a difference: below it lies the rounding of logarithms and sums. */
#define TREND_ROUNDING 1e-12

/* The analysed series: logarithms if all values are positive. */
typedef struct trend_series {
    double *x, *room;
    size_t count;
    bool logarithmic;
    double noise; /* in units of the series */
} trend_series;

static double natural(const trend_series *s, double x)
{
    return s->logarithmic ? exp(x) : x;
}

static bool series_make(trend_series *s, const prn_trend *t, double noise)
{
    *s = (trend_series){.x = prn_calloc(t->counted + 1, sizeof *s->x),
                        .room = prn_calloc(t->counted + 1, sizeof *s->room),
                        .logarithmic = true};
    if (!s->x || !s->room) return false;
    double largest = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (!t->points[i].counted) continue;
        s->logarithmic = s->logarithmic && t->points[i].value > 0;
        largest = fmax(largest, fabs(t->points[i].value));
        s->x[s->count++] = t->points[i].value;
    }
    for (size_t i = 0; s->logarithmic && i < s->count; i++) s->x[i] = log(s->x[i]);
    const double part = fmax(noise, TREND_ROUNDING);
    s->noise = s->logarithmic ? log1p(part) : part * largest;
    return true;
}

/* Joins neighbouring levels that differ by less than the noise threshold. */
static void join_levels(prn_trend *t, const trend_series *s)
{
    for (size_t i = 1; i < t->piece_count;) {
        prn_level_piece *a = &t->pieces[i - 1], *b = &t->pieces[i];
        if (a->drift || b->drift || fabs(b->first - a->first) >= s->noise) {
            i++;
            continue;
        }
        a->end = b->end;
        memcpy(s->room, s->x + a->begin, (a->end - a->begin) * sizeof *s->room);
        a->first = a->last = prn_median(s->room, a->end - a->begin);
        a->spread = fmax(a->spread, b->spread);
        memmove(b, b + 1, (t->piece_count - i - 1) * sizeof *b);
        t->piece_count--;
    }
}

static void set_levels(prn_trend *t, const trend_series *s)
{
    size_t position = 0, piece = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (!t->points[i].counted) continue;
        while (piece + 1 < t->piece_count && position >= t->pieces[piece].end) piece++;
        const prn_level_piece *p = &t->pieces[piece];
        t->points[i].piece = piece;
        t->points[i].level = natural(s, p->first + p->slope * (double)(position - p->begin));
        position++;
    }
}

/* ---- layers that moved ---- */

enum { LAYER_RUNS = 10 };

/* Runs with layers among positions [begin, end), the nearest LAYER_RUNS to `end` (or to `begin`). */
static size_t runs_with_layers(const prn_trend *t, size_t begin, size_t end, bool from_end,
                               const prony_history_run *out[LAYER_RUNS])
{
    size_t count = 0;
    for (size_t k = 0; k < end - begin && count < LAYER_RUNS; k++) {
        const size_t at = point_at(t, from_end ? end - 1 - k : begin + k);
        if (t->points[at].run->layer_count) out[count++] = t->points[at].run;
    }
    return count;
}

static size_t trend_layer_times(const prony_history_run *const *runs, size_t count, size_t hint, const char *name,
                                double *out)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        const double ns = prn_history_layer_ns(runs[i], hint, name);
        if (isfinite(ns)) out[known++] = ns;
    }
    return known;
}

static void keep_layer(prn_trend_change *c, const prn_trend_layer *layer)
{
    size_t at = c->layer_count;
    const double size = fabs(layer->after_ns - layer->before_ns);
    while (at > 0 && fabs(c->layers[at - 1].after_ns - c->layers[at - 1].before_ns) < size) at--;
    if (at >= PRN_TREND_LAYERS) return;
    const size_t kept = c->layer_count < PRN_TREND_LAYERS ? c->layer_count : PRN_TREND_LAYERS - 1;
    memmove(&c->layers[at + 1], &c->layers[at], (kept - at) * sizeof *c->layers);
    c->layers[at] = *layer;
    c->layer_count = kept + 1;
}

/* Layers whose times before [begin, middle) and after [middle, end) differ: the rank test rejects equality at 5 % (with
 * fewer than four runs a side: no overlap at all), and the layer has at least 5 % of the movement of all layers. */
static prony_status find_layers(prn_trend_change *c, const prn_trend *t, size_t begin, size_t middle, size_t end,
                                prony_error *error)
{
    const prony_history_run *before[LAYER_RUNS], *after[LAYER_RUNS];
    const size_t before_count = runs_with_layers(t, begin, middle, !c->drift, before),
                 after_count = runs_with_layers(t, middle, end, c->drift, after);
    double all = 0;
    if (t->metric->scale != PRONY_SCALE_TIME) return PRONY_OK;
    c->layers_known = before_count && after_count;
    for (int pass = 0; c->layers_known && pass < 2; pass++)
        for (size_t l = 0; l < after[0]->layer_count; l++) {
            double a[LAYER_RUNS], b[LAYER_RUNS];
            prn_rank_test test = {0};
            prn_trend_layer layer = {.name = after[0]->layers[l].name, .op = after[0]->layers[l].op};
            const size_t n = trend_layer_times(before, before_count, l, layer.name, a),
                         m = trend_layer_times(after, after_count, l, layer.name, b);
            if (n == 0 || m == 0) continue;
            if (pass) PRN_TRY(prn_rank_test_compute(&test, a, n, 1, b, m, 1, error));
            layer.before_ns = prn_median(a, n); /* sorts */
            layer.after_ns = prn_median(b, m);
            const double moved = fabs(layer.after_ns - layer.before_ns);
            if (!pass) {
                all += moved;
                continue;
            }
            const bool apart = a[n - 1] < b[0] || b[m - 1] < a[0];
            layer.share = all > 0 ? moved / all : 0;
            if (layer.share >= 0.05 && (n < 4 || m < 4 ? apart : test.p < 0.05)) keep_layer(c, &layer);
        }
    return PRONY_OK;
}

/* ---- changes ---- */

static int change_direction(const prony_metric *metric, double from, double to)
{
    if (metric->direction == PRONY_NO_DIRECTION || !(fabs(to - from) > 0)) return 0;
    return (to > from) == (metric->direction == PRONY_SMALLER_IS_BETTER) ? 1 : -1;
}

static prn_trend_change *change_add(prn_trend *t, const trend_series *s, bool drift, double from, double to)
{
    prn_trend_change *c = &t->changes[t->change_count++];
    *c = (prn_trend_change){.drift = drift, .from = natural(s, from), .to = natural(s, to)};
    c->ratio = fabs(c->from) > 0 ? c->to / c->from : NAN;
    c->direction = change_direction(t->metric, c->from, c->to);
    return c;
}

/* Steps between pieces and drifts of pieces, in order of time. Beside a drift a step counts only if it exceeds three
 * times the scatter: the drift's line and the search's bounds do not meet exactly. */
static prony_status find_changes(prn_trend *t, const trend_series *s, prony_error *error)
{
    for (size_t i = 0; i < t->piece_count; i++) {
        const prn_level_piece *p = &t->pieces[i], *q = i ? &t->pieces[i - 1] : NULL;
        const double jump = q ? fabs(p->first - q->last) : 0;
        if (q && jump >= s->noise && ((!q->drift && !p->drift) || jump > 3 * fmax(p->spread, q->spread))) {
            prn_trend_change *c = change_add(t, s, false, q->last, p->first);
            c->before = point_at(t, p->begin - 1);
            c->first = c->last = point_at(t, p->begin);
            PRN_TRY(find_layers(c, t, q->begin, p->begin, p->end, error));
        }
        if (p->drift && fabs(p->last - p->first) >= s->noise) {
            prn_trend_change *c = change_add(t, s, true, p->first, p->last);
            c->before = c->first = point_at(t, p->begin);
            c->last = point_at(t, p->end - 1);
            PRN_TRY(find_layers(c, t, p->begin, p->begin + (p->end - p->begin) / 3, p->end, error));
        }
    }
    return PRONY_OK;
}

/* ---- the newest run ---- */

/* Level and scatter of `count` values; values beyond four robust deviations count as such, so that one outlier does not
 * hide a later change. */
static void settled_level(const trend_series *s, size_t begin, size_t count, double *level, double *deviation)
{
    double sum = 0, squares = 0;
    memcpy(s->room, s->x + begin, count * sizeof *s->room);
    *level = prn_median(s->room, count);
    for (size_t i = 0; i < count; i++) s->room[i] = fabs(s->x[begin + i] - *level);
    const double bound = 4 * 1.4826 * prn_median(s->room, count);
    for (size_t i = 0; i < count; i++) {
        double off = s->x[begin + i] - *level;
        if (bound > 0) off = fmax(-bound, fmin(bound, off));
        sum += off;
        squares += off * off;
    }
    *deviation = sqrt(fmax(0, squares - sum * sum / (double)count) / (double)(count - 1));
}

/* The newest run beside the last settled level: the piece before it with at least PRN_TREND_SETTLED runs. A change
 * younger than that is not yet the level. Beyond: outside of the 99 % prediction interval and of the noise
 * threshold. */
static void judge_newest(prn_trend *t, const trend_series *s)
{
    const prn_trend_point *newest = &t->points[t->count - 1];
    t->outcome = newest->counted ? PRN_TREND_FEW : PRN_TREND_BUSY;
    if (!newest->counted) return;
    size_t k = t->piece_count - 1;
    size_t end = s->count - 1; /* the newest run itself is left out */
    while (k > 0 && (end <= t->pieces[k].begin || end - t->pieces[k].begin < PRN_TREND_SETTLED))
        end = t->pieces[k--].begin;
    const prn_level_piece *p = &t->pieces[k];
    if (end < p->begin + PRN_TREND_SETTLED) return;
    double level, deviation;
    const double n = (double)(end - p->begin);
    settled_level(s, p->begin, end - p->begin, &level, &deviation);
    if (p->drift) {
        level = p->first + p->slope * n;
        deviation = p->spread;
    }
    const double reach = fmax(prn_student_bound(0.01, n - 1) * deviation * sqrt(1 + 1 / n), s->noise);
    const double x = s->x[s->count - 1];
    t->expected = natural(s, level);
    t->bounds[0] = natural(s, level - reach);
    t->bounds[1] = natural(s, level + reach);
    t->outcome = PRN_TREND_WITHIN;
    const int side = fabs(x - level) > reach ? change_direction(t->metric, level, x) : 0;
    const bool drifts = t->pieces[t->piece_count - 1].drift && k == t->piece_count - 1;
    if (side > 0)
        t->outcome = PRN_TREND_WORSE;
    else if (drifts && fabs(p->last - p->first) >= s->noise && change_direction(t->metric, p->first, p->last) > 0)
        t->outcome = PRN_TREND_DRIFTS;
    else if (side < 0)
        t->outcome = PRN_TREND_BETTER;
}

/* The general score of a run whose top-1 accuracy is that score: one of the two is enough, unless it was asked for. */
static bool repeats_accuracy(const prn_trend *t)
{
    if (t->count == 0 || strcmp(t->metric->key, "evaluation") != 0) return false;
    const prn_trend_point *newest = &t->points[t->count - 1];
    const prony_history_value *top1 = prn_history_value(newest->run, "top1_accuracy");
    return top1 && !(fabs(top1->value - newest->value) > 0);
}

prony_status prn_trend_make(prn_trend *t, const prn_history_writing *w, const prn_history_group *group,
                            const prony_metric *metric, prony_error *error)
{
    trend_series series = {0};
    *t = (prn_trend){.group = group, .metric = metric, .expected = NAN, .bounds = {NAN, NAN}};
    prony_status status = collect_points(t, w, error);
    if (status == PRONY_OK && !w->options->metrics && repeats_accuracy(t)) t->count = t->counted = 0;
    if (status == PRONY_OK && t->counted && !series_make(&series, t, noise_of(w, metric)))
        status = prn_no_memory(error);
    if (status == PRONY_OK && t->counted)
        status = prn_history_pieces(w->history, t->pieces, &t->piece_count, series.x, series.count, error);
    if (status == PRONY_OK && t->counted) {
        join_levels(t, &series);
        set_levels(t, &series);
        status = find_changes(t, &series, error);
    }
    if (status == PRONY_OK && t->counted)
        judge_newest(t, &series);
    else
        t->outcome = PRN_TREND_BUSY;
    prn_free(series.x);
    prn_free(series.room);
    if (status != PRONY_OK) prn_trend_release(t);
    return status;
}

void prn_trend_release(prn_trend *trend)
{
    prn_free(trend->points);
    trend->points = NULL;
    trend->count = 0;
}

const char *prn_trend_change_text(const prn_trend_change *c, char text[32])
{
    const char *kind = c->drift ? "drift" : "step";
    if (isfinite(c->ratio))
        snprintf(text, 32, "%s %+.1f %%", kind, 100 * (c->ratio - 1));
    else
        snprintf(text, 32, "%s", kind);
    return text;
}

const char *prn_trend_commits(const prn_trend *t, const prn_trend_change *c, char text[96])
{
    const char *from = t->points[c->before].run->commit, *to = t->points[c->drift ? c->last : c->first].run->commit;
    snprintf(text, 96, "%.12s..%.12s", *from ? from : "?", *to ? to : "?");
    if (!*from && !*to) snprintf(text, 96, "-");
    return text;
}
