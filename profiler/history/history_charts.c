/* The pictures of the dashboard: a metric over the runs of a group, and its slowest layers over the same runs. Runs
 * stand at equal distances, since they come in bursts; the axis names their dates. */
#include "profiler/history/history_page.h"

#include "profiler/exporters/svg/svg_labels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 860,
    HEIGHT = 380,
    LEFT = 86,
    RIGHT = 836,
    TOP = 84,
    BOTTOM = 334,
    LAYERS_RIGHT = 606,
    TICK_PIXELS = 130
};

/* Okabe and Ito's colours, which colour-blind readers can tell apart; readable on white and on the dark theme. */
static const char *const layer_colors[PRN_PAGE_LAYERS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                          "#e69f00", "#56b4e9", "#888888", "#b07aa1"};

/* ---- axes ---- */

static void range_begin(prn_axis *y)
{
    *y = (prn_axis){INFINITY, -INFINITY, BOTTOM, TOP, false, false};
}

static void range_take(prn_axis *y, double value)
{
    if (!isfinite(value)) return;
    y->low = fmin(y->low, value);
    y->high = fmax(y->high, value);
}

/* At least 2 % of the values, so that noise does not look like change, and a margin. */
static void range_end(prn_axis *y, bool from_zero)
{
    if (!(y->high >= y->low)) y->low = y->high = 0;
    const double most = fmax(fabs(y->low), fabs(y->high)), middle = (y->low + y->high) / 2;
    double span = fmax(y->high - y->low, 0.02 * most);
    if (!(span > 0)) span = 1;
    const double low = y->low;
    y->low = from_zero ? 0 : middle - 0.56 * span;
    y->high = from_zero ? fmax(y->high * 1.08, span) : middle + 0.62 * span;
    if (low >= 0 && y->low < 0) y->low = 0;
}

static void tick_label(const prony_metric *metric, double value, char *text, size_t size)
{
    prn_number_text number;
    if (metric->scale == PRONY_SCALE_TIME)
        snprintf(text, size, "%s", prn_number_time(number, llround(value), 4, " "));
    else if (metric->scale == PRONY_SCALE_BINARY)
        snprintf(text, size, "%s", prn_number_bytes(number, value, 4, " "));
    else if (metric->scale == PRONY_SCALE_PERCENT)
        snprintf(text, size, "%s %%", prn_number_fixed(number, 100 * value, 2));
    else
        snprintf(text, size, "%s",
                 fabs(value) < 1 ? prn_number_fixed(number, value, 4) : prn_number_si(number, value, 4, " "));
}

static void draw_y(prn_out *out, const prn_axis *y, double right, const prony_metric *metric, const char *title)
{
    double ticks[PRN_AXIS_TICKS];
    const int count = prn_axis_ticks(y, 6, ticks);
    for (int i = 0; i < count; i++) {
        char text[64];
        const double at = prn_axis_at(y, ticks[i]);
        tick_label(metric, ticks[i], text, sizeof text);
        prn_svg_line(out, LEFT, at, right, at, PRN_SVG_FAINT, 1, false);
        prn_svg_text(out, LEFT - 6, at + 4, PRN_ANCHOR_END, 11, PRN_SVG_GREY, text);
    }
    prn_svg_line(out, LEFT, TOP, LEFT, BOTTOM, PRN_SVG_GREY, 1, false);
    prn_svg_text(out, 8, TOP - 12, PRN_ANCHOR_START, 12, PRN_SVG_INK, title);
}

/* Dates below some runs; the first and the last have one. Within two days the hour counts more than the year. */
static void draw_x(prn_out *out, const prn_trend *t, const prn_axis *x)
{
    const int64_t begin = t->points[0].run->time_s;
    const bool long_span = begin == 0 || t->points[t->count - 1].run->time_s - begin > 2 * 86400;
    const size_t most = (size_t)((x->to - x->from) / TICK_PIXELS), labels = t->count < most ? t->count : most;
    for (size_t k = 0; k < labels; k++) {
        const size_t i = labels > 1 ? k * (t->count - 1) / (labels - 1) : 0;
        char date[24];
        const double at = prn_axis_at(x, (double)i);
        prn_history_date(t->points[i].run->time_s, date);
        if (long_span) date[10] = '\0'; /* also if the first date is unknown */
        prn_svg_line(out, at, BOTTOM, at, BOTTOM + 4, PRN_SVG_GREY, 1, false);
        prn_svg_text(out, at, BOTTOM + 18,
                     k == 0            ? PRN_ANCHOR_START
                     : k + 1 == labels ? PRN_ANCHOR_END
                                       : PRN_ANCHOR_MIDDLE,
                     11, PRN_SVG_GREY, long_span ? date : date + 5);
    }
    prn_svg_line(out, x->from, BOTTOM, x->to, BOTTOM, PRN_SVG_GREY, 1, false);
    prn_svg_text(out, (x->from + x->to) / 2, BOTTOM + 36, PRN_ANCHOR_MIDDLE, 12, PRN_SVG_INK,
                 "runs, oldest first (UTC)");
}

static prn_axis runs_axis(const prn_trend *t, double right)
{
    const double last = t->count > 1 ? (double)(t->count - 1) : 1;
    return (prn_axis){-0.02 * last, 1.02 * last, LEFT, right, false, false};
}

/* ---- a metric ---- */

static const char *direction_color(int direction)
{
    return direction > 0 ? PRN_SVG_RED : direction < 0 ? PRN_SVG_GREEN : PRN_SVG_GREY;
}

static void draw_points(prn_out *out, const prn_trend *t, const prn_axis *x, const prn_axis *y)
{
    const double radius = t->count > 200 ? 2 : 3.5;
    for (size_t i = 0; i < t->count; i++) {
        const prn_trend_point *p = &t->points[i];
        char value[64], date[24], tip[300];
        const double at = prn_axis_at(x, (double)i);
        prony_metric_format(t->metric, p->value, value, sizeof value);
        snprintf(tip, sizeof tip, "%s, %s%s%.40s%s%.60s%s", value, prn_history_date(p->run->time_s, date),
                 *p->run->commit ? ", commit " : "", p->run->commit, *p->run->label ? ", " : "", p->run->label,
                 p->counted ? "" : ", busy: not counted");
        if (isfinite(p->interval[0]) && isfinite(p->interval[1]))
            prn_svg_line(out, at, prn_axis_at(y, fmin(fmax(p->interval[0], y->low), y->high)), at,
                         prn_axis_at(y, fmax(fmin(p->interval[1], y->high), y->low)),
                         p->counted ? "#9db8dc" : PRN_SVG_FAINT, 1, false);
        /* Busy runs do not stretch the axis: a point beyond it stands at the frame. */
        prn_svg_circle(out, at, prn_axis_at(y, fmax(y->low, fmin(y->high, p->value))), radius,
                       p->counted ? PRN_SVG_BLUE : PRN_SVG_GREY, PRN_SVG_TIP(tip));
    }
}

static void draw_levels(prn_out *out, const prn_trend *t, const prn_axis *x, const prn_axis *y)
{
    for (size_t i = 0; i < t->count;) {
        size_t last = i;
        if (!t->points[i].counted) {
            i++;
            continue;
        }
        for (size_t k = i; k < t->count; k++)
            if (t->points[k].counted && t->points[k].piece == t->points[i].piece) last = k;
        const double beyond = t->count > 2 ? 0.4 : 0.01;
        const double from = fmax(prn_axis_at(x, (double)i - beyond), LEFT),
                     to = fmin(prn_axis_at(x, (double)last + beyond), RIGHT);
        prn_svg_line(out, from, prn_axis_at(y, t->points[i].level), to, prn_axis_at(y, t->points[last].level),
                     PRN_SVG_ORANGE, 2.5, false);
        i = last + 1;
    }
}

static void draw_changes(prn_out *out, const prn_trend *t, const prn_axis *x)
{
    prn_labels labels = {.within = {LEFT, TOP - 30, RIGHT, BOTTOM}};
    for (size_t i = 0; i < t->change_count; i++) {
        const prn_trend_change *c = &t->changes[i];
        const double at = prn_axis_at(x, c->drift ? (double)(c->first + c->last) / 2 : (double)c->first - 0.5);
        if (!c->drift) prn_svg_line(out, at, TOP - 4, at, BOTTOM, direction_color(c->direction), 1, true);
    }
    for (size_t i = 0; i < t->change_count; i++) {
        const prn_trend_change *c = &t->changes[i];
        const double at = prn_axis_at(x, c->drift ? (double)(c->first + c->last) / 2 : (double)c->first - 0.5);
        const prn_spot spot = {at, TOP - 8, 1};
        char label[32];
        prn_labels_draw(&labels, out, &spot, 11, direction_color(c->direction), prn_trend_change_text(c, label));
    }
}

void prn_history_chart(prn_out *out, const prn_trend *t)
{
    char title[300], note[500];
    prn_axis x = runs_axis(t, RIGHT), y;
    range_begin(&y);
    for (size_t i = 0; i < t->count; i++)
        if (t->points[i].counted || !t->counted) range_take(&y, t->points[i].value);
    range_end(&y, false);
    snprintf(title, sizeof title, "%s of %.200s", t->metric->name, t->group->of->model);
    snprintf(note, sizeof note, "%.200s; %.120s. %zu run%s%s", prn_history_group_configuration(t->group),
             prn_history_group_machine(t->group), t->count, t->count == 1 ? "" : "s",
             t->counted < t->count ? "; grey points: busy machine, not counted" : "");
    prn_svg_begin(out, WIDTH, HEIGHT, title, note);
    draw_y(out, &y, RIGHT, t->metric, "");
    draw_x(out, t, &x);
    draw_points(out, t, &x, &y);
    draw_levels(out, t, &x, &y);
    draw_changes(out, t, &x);
    prn_svg_end(out);
}

/* ---- layers ---- */

typedef struct slow_layer {
    const char *name;
    double newest;
} slow_layer;

static int slowest_first(const void *left, const void *right)
{
    const slow_layer *a = left, *b = right;
    if (a->newest > b->newest || a->newest < b->newest) return a->newest > b->newest ? -1 : 1;
    return strcmp(a->name, b->name);
}

static const prony_history_run *newest_with_layers(const prn_trend *t)
{
    for (size_t i = t->count; i-- > 0;)
        if (t->points[i].run->layer_count && t->points[i].counted) return t->points[i].run;
    return NULL;
}

bool prn_history_has_layers(const prn_trend *t)
{
    return newest_with_layers(t) != NULL;
}

static void draw_layer(prn_out *out, const prn_trend *t, const char *name, const char *color, const prn_axis *x,
                       const prn_axis *y)
{
    double before_x = NAN, before_y = NAN;
    for (size_t i = 0; i < t->count; i++) {
        const double ns = t->points[i].counted ? prn_history_layer_ns(t->points[i].run, SIZE_MAX, name) : NAN;
        if (!isfinite(ns)) continue;
        const double at = prn_axis_at(x, (double)i), height = prn_axis_at(y, ns);
        char tip[300], date[24];
        prn_number_text number;
        if (isfinite(before_x)) prn_svg_line(out, before_x, before_y, at, height, color, 1.5, false);
        snprintf(tip, sizeof tip, "%.160s: %s, %s", name, prn_number_time(number, llround(ns), 3, " "),
                 prn_history_date(t->points[i].run->time_s, date));
        prn_svg_circle(out, at, height, t->count > 100 ? 1.5 : 2.5, color, PRN_SVG_TIP(tip));
        before_x = at;
        before_y = height;
    }
}

/* The layers are chosen by their time in the newest run alone and followed back by name. A run without one of them
 * leaves a gap in its line. Runs on a busy machine do not count in the scale. */
prony_status prn_history_layers_chart(prn_out *out, const prn_trend *t, prony_error *error)
{
    const prony_history_run *newest = newest_with_layers(t);
    char title[300], note[300];
    if (!newest) return PRONY_OK;
    slow_layer *layers = prn_calloc(newest->layer_count, sizeof *layers);
    if (!layers) return prn_no_memory(error);
    for (size_t i = 0; i < newest->layer_count; i++)
        layers[i] = (slow_layer){newest->layers[i].name, newest->layers[i].time_ns};
    qsort(layers, newest->layer_count, sizeof *layers, slowest_first);
    const size_t shown = newest->layer_count < PRN_PAGE_LAYERS ? newest->layer_count : PRN_PAGE_LAYERS;
    prn_axis x = runs_axis(t, LAYERS_RIGHT), y;
    range_begin(&y);
    for (size_t k = 0; k < shown; k++)
        for (size_t i = 0; i < t->count; i++)
            if (t->points[i].counted) range_take(&y, prn_history_layer_ns(t->points[i].run, SIZE_MAX, layers[k].name));
    range_end(&y, true);
    snprintf(title, sizeof title, "Slowest layers of %.200s", t->group->of->model);
    snprintf(note, sizeof note, "%zu of %zu layers, by their time in the newest run", shown, newest->layer_count);
    const prony_metric time = {.scale = PRONY_SCALE_TIME};
    prn_svg_begin(out, WIDTH, HEIGHT, title, note);
    draw_y(out, &y, LAYERS_RIGHT, &time, "");
    draw_x(out, t, &x);
    for (size_t k = 0; k < shown; k++) draw_layer(out, t, layers[k].name, layer_colors[k], &x, &y);
    for (size_t k = 0; k < shown; k++) {
        prn_number_text number;
        const double at = TOP + 14 + 30 * (double)k;
        prn_svg_circle(out, LAYERS_RIGHT + 22, at - 4, 5, layer_colors[k], NULL);
        prn_svg_text_fit(out, LAYERS_RIGHT + 34, at, PRN_ANCHOR_START, 11, PRN_SVG_INK, layers[k].name,
                         WIDTH - LAYERS_RIGHT - 44);
        prn_svg_text(out, LAYERS_RIGHT + 34, at + 13, PRN_ANCHOR_START, 11, PRN_SVG_GREY,
                     prn_number_time(number, llround(layers[k].newest), 3, " "));
    }
    prn_svg_end(out);
    prn_free(layers);
    return PRONY_OK;
}
