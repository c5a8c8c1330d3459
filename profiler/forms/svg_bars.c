/* Charts made of bars: the layers that take longest, the operator types with time beside FLOPs, the histogram of
 * latencies. */
#include "profiler/forms/report_svg.h"
#include "profiler/report/heat.h"
#include "profiler/report/type_summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAR_HEIGHT = 18, BARS_TOP = 76, MOST_BARS = 40, MOST_BINS = 60 };

typedef struct hot_layer {
    double heat;
    uint32_t layer;
} hot_layer;

static int hottest_first(const void *left, const void *right)
{
    const hot_layer *a = left, *b = right;
    if (a->heat > b->heat || a->heat < b->heat) return a->heat > b->heat ? -1 : 1;
    return a->layer < b->layer ? -1 : a->layer > b->layer;
}

static void draw_layer_bars(prn_out *out, const prony_report *r, const hot_layer *hot, size_t shown)
{
    bool stamped = prn_report_stamped(r);
    double bottom = BARS_TOP + (double)shown * BAR_HEIGHT, sum = 0;
    prn_axis axis = {.low = 0, .high = shown && hot[0].heat > 0 ? hot[0].heat : 1, .from = 320, .to = 760};
    prn_svg_axis_x(out, &axis, BARS_TOP, bottom, prn_tick_percent,
                   stamped ? "share of the time inside operators" : "share of the FLOPs");
    for (size_t i = 0; i < shown; i++) {
        const prony_layer_row *l = &r->layers[hot[i].layer];
        prn_number_text time, share, total;
        char label[128];
        double y = BARS_TOP + (double)i * BAR_HEIGHT;
        sum += hot[i].heat;
        prn_number_percent(share, hot[i].heat);
        prn_number_percent(total, sum);
        if (stamped)
            snprintf(label, sizeof label, "%s%s  %s %%  (%s %%)", prn_number_time(time, l->time.mean_ns, 3, " "),
                     l->time_attributed ? " ~" : "", share, total);
        else
            snprintf(label, sizeof label, "%s FLOPs  %s %%  (%s %%)",
                     prn_number_si(time, (double)l->cost.flops, 3, " "), share, total);
        prn_color color;
        prn_svg_text_fit(out, 312, y + 13, PRN_ANCHOR_END, 11, PRN_SVG_INK, l->name, 300);
        prn_svg_rect(out, axis.from, y + 2, prn_axis_at(&axis, hot[i].heat) - axis.from, BAR_HEIGHT - 4,
                     prn_heat_color(color, 0.35 + 0.65 * hot[i].heat / axis.high), l->name);
        prn_svg_text(out, prn_axis_at(&axis, hot[i].heat) + 6, y + 13, PRN_ANCHOR_START, 11, PRN_SVG_GREY, label);
    }
}

prony_status prn_svg_layers(prn_out *out, const prony_report *r, prony_error *error)
{
    hot_layer *hot = prn_calloc(r->layer_count, sizeof *hot);
    if (!hot) return prn_no_memory(error);
    size_t count = 0;
    for (uint32_t i = 0; i < r->layer_count; i++) {
        double heat = prn_layer_heat(r, &r->layers[i]);
        if (heat > 0) hot[count++] = (hot_layer){heat, i};
    }
    qsort(hot, count, sizeof *hot, hottest_first);
    size_t shown = count < MOST_BARS ? count : MOST_BARS;
    char note[240];
    snprintf(note, sizeof note,
             "%.80s: the %zu of %zu layers that take most; in brackets the cumulative share; ~ estimated",
             prn_report_title(r), shown, r->layer_count);
    prn_svg_begin(out, 960, BARS_TOP + (double)shown * BAR_HEIGHT + 50,
                  prn_report_stamped(r) ? "Time by layer" : "FLOPs by layer", note);
    draw_layer_bars(out, r, hot, shown);
    prn_svg_end(out);
    prn_free(hot);
    return PRONY_OK;
}

static void draw_types(prn_out *out, const prony_report *r, const prn_type_row *rows, size_t shown)
{
    bool stamped = prn_report_stamped(r);
    double all_flops = r->totals.cost.flops > 0 ? (double)r->totals.cost.flops : 1, most = 0;
    for (size_t i = 0; i < shown; i++) {
        most = fmax(most, (double)rows[i].flops / all_flops);
        if (stamped) most = fmax(most, rows[i].share);
    }
    double bottom = BARS_TOP + (double)shown * 2 * BAR_HEIGHT;
    prn_axis axis = {.low = 0, .high = most > 0 ? most : 1, .from = 200, .to = 640};
    prn_svg_axis_x(out, &axis, BARS_TOP, bottom, prn_tick_percent, "share");
    for (size_t i = 0; i < shown; i++) {
        prn_number_text time, share, flops, flop_share;
        char label[160];
        double y = BARS_TOP + (double)i * 2 * BAR_HEIGHT, of_flops = (double)rows[i].flops / all_flops;
        prn_svg_text_fit(out, 192, y + 21, PRN_ANCHOR_END, 12, PRN_SVG_INK, rows[i].op, 180);
        if (stamped) {
            snprintf(label, sizeof label, "%s  %s %%  (n = %llu)", prn_number_time(time, rows[i].time_ns, 3, " "),
                     prn_number_percent(share, rows[i].share), (unsigned long long)rows[i].count);
            double x = prn_axis_at(&axis, rows[i].share);
            prn_svg_rect(out, axis.from, y + 3, x - axis.from, BAR_HEIGHT - 4, PRN_SVG_ORANGE, label);
            prn_svg_text(out, x + 6, y + 14, PRN_ANCHOR_START, 11, PRN_SVG_GREY, label);
        }
        snprintf(label, sizeof label, "%s FLOPs  %s %%", prn_number_si(flops, (double)rows[i].flops, 3, " "),
                 prn_number_percent(flop_share, of_flops));
        double x = prn_axis_at(&axis, of_flops);
        prn_svg_rect(out, axis.from, y + 1 + BAR_HEIGHT, x - axis.from, BAR_HEIGHT - 4, PRN_SVG_BLUE, label);
        prn_svg_text(out, x + 6, y + 12 + BAR_HEIGHT, PRN_ANCHOR_START, 11, PRN_SVG_GREY, label);
    }
}

prony_status prn_svg_types(prn_out *out, const prony_report *r, prony_error *error)
{
    prn_type_row *rows;
    size_t count;
    char note[240];
    PRN_TRY(prn_type_summary(r, &rows, &count, error));
    size_t shown = count < MOST_BARS ? count : MOST_BARS;
    snprintf(note, sizeof note, "%.80s: %zu of %zu types; orange: time, blue: FLOPs", prn_report_title(r), shown,
             count);
    prn_svg_begin(out, 860, BARS_TOP + (double)shown * 2 * BAR_HEIGHT + 50,
                  prn_report_stamped(r) ? "Time and FLOPs by type" : "FLOPs by type", note);
    draw_types(out, r, rows, shown);
    prn_svg_end(out);
    prn_free(rows);
    return PRONY_OK;
}

/* ---- latency ---- */

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Freedman and Diaconis; what lies far out (beyond the 99.5th percentile, or eight quartile ranges above the upper
 * quartile) stands in the last bin. `sorted` ascending. */
static size_t choose_bins(const int64_t *sorted, size_t count, double *low, double *high)
{
    *low = (double)sorted[0];
    *high = (double)sorted[(count - 1) - (count - 1) / 200];
    double upper = (double)sorted[(count - 1) * 3 / 4], spread = upper - (double)sorted[(count - 1) / 4];
    *high = fmin(*high, upper + 8 * spread);
    if (*high <= *low) *high = *low + 1;
    double width = 2 * spread / cbrt((double)count);
    double bins = width > 0 ? ceil((*high - *low) / width) : 10;
    return bins < 5 ? 5 : bins > MOST_BINS ? MOST_BINS : (size_t)bins;
}

static void draw_quantile(prn_out *out, const prn_axis *x, double top, double bottom, const char *name, int64_t ns,
                          int row)
{
    prn_number_text time;
    char label[80];
    if ((double)ns < x->low || (double)ns > x->high) return;
    double at = prn_axis_at(x, (double)ns);
    snprintf(label, sizeof label, "%s %s", name, prn_number_time(time, ns, 4, " "));
    prn_svg_line(out, at, top, at, bottom, PRN_SVG_RED, 1.5, true);
    prn_svg_text(out, at + 4, top + 12 + 14 * row, PRN_ANCHOR_START, 11, PRN_SVG_RED, label);
}

static void draw_histogram(prn_out *out, const prony_report *r, const int64_t *sorted)
{
    size_t counts[MOST_BINS] = {0}, most = 0, count = r->latency.count;
    double low, high, top = 80, bottom = 340;
    size_t bins = choose_bins(sorted, count, &low, &high);
    for (size_t i = 0; i < count; i++) {
        size_t bin = (size_t)(((double)sorted[i] - low) / (high - low) * (double)bins);
        if (bin >= bins) bin = bins - 1;
        if (++counts[bin] > most) most = counts[bin];
    }
    prn_axis x = {.low = low, .high = high, .from = 70, .to = 830};
    prn_axis y = {.low = 0, .high = (double)most * 1.15, .from = bottom, .to = top};
    prn_svg_axis_y(out, &y, 70, 830, prn_tick_count, "runs");
    prn_svg_axis_x(out, &x, top, bottom, prn_tick_time, "latency of a run");
    double width = (x.to - x.from) / (double)bins;
    for (size_t b = 0; b < bins; b++) {
        prn_number_text from, to;
        char tip[128];
        double begin = low + (high - low) * (double)b / (double)bins,
               end = low + (high - low) * (double)(b + 1) / (double)bins;
        double at = prn_axis_at(&y, (double)counts[b]);
        snprintf(tip, sizeof tip, "%s - %s: %zu runs", prn_tick_time(from, begin), prn_tick_time(to, end), counts[b]);
        prn_svg_rect(out, x.from + width * (double)b, at, width - 1, bottom - at, PRN_SVG_BLUE, tip);
    }
    const prony_time_stats *t = &r->latency;
    draw_quantile(out, &x, top, bottom, "median", t->median_ns, 0);
    if (t->p90_valid) draw_quantile(out, &x, top, bottom, "P90", t->p90_ns, 1);
    if (t->p99_valid) draw_quantile(out, &x, top, bottom, "P99", t->p99_ns, 2);
}

prony_status prn_svg_latency(prn_out *out, const prony_report *r, prony_error *error)
{
    int64_t *sorted = prn_calloc(r->latency.count, sizeof *sorted);
    if (!sorted) return prn_no_memory(error);
    memcpy(sorted, r->samples_ns, r->latency.count * sizeof *sorted);
    qsort(sorted, r->latency.count, sizeof *sorted, by_value);
    prn_number_text low, high;
    char note[200];
    snprintf(note, sizeof note,
             "%.60s: %llu runs; median's 95 %% interval %s - %s; what lies far out stands in the last bin",
             prn_report_title(r), (unsigned long long)r->latency.count,
             prn_number_time(low, r->latency.median_ci95_ns[0], 4, " "),
             prn_number_time(high, r->latency.median_ci95_ns[1], 4, " "));
    prn_svg_begin(out, 860, 390, "Latency", note);
    draw_histogram(out, r, sorted);
    prn_svg_end(out);
    prn_free(sorted);
    return PRONY_OK;
}
