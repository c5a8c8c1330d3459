/* Charts made of bars: the layers that take longest, the operator types with time beside FLOPs, the histogram of
 * latencies. */
#include "profiler/exporters/svg/report_svg.h"
#include "profiler/exporters/color_map.h"
#include "profiler/report/type_summary.h"
#include "profiler/text/short_names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAR_HEIGHT = 18, BARS_TOP = 76, MOST_BARS = 40, MOST_TYPES = 20, NAME_WIDTH = 300, LATENCY_RIGHT = 690 };

/* Draws one bar per layer with its share and the sum of shares so far. */
static void draw_layer_bars(prn_out *out, const prony_report *r, const prn_hot_layer *hot, size_t shown,
                            const prn_short_names *names)
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
        prn_svg_text_fit(out, 312, y + 13, PRN_ANCHOR_END, 11, PRN_SVG_INK, names->shown[i], NAME_WIDTH);
        prn_svg_rect(out, axis.from, y + 2, prn_axis_at(&axis, hot[i].heat) - axis.from, BAR_HEIGHT - 4,
                     prn_color_map_color(color, 0.35 + 0.65 * hot[i].heat / axis.high),
                     &(prn_svg_mark){l->name, "layer", hot[i].layer});
        prn_svg_text(out, prn_axis_at(&axis, hot[i].heat) + 6, y + 13, PRN_ANCHOR_START, 11, PRN_SVG_GREY, label);
    }
}

prony_status prn_svg_layers(prn_out *out, const prony_report *r, prony_error *error)
{
    size_t count = 0;
    prn_hot_layer *hot = prn_hottest_layers(r, &count);
    if (!hot) return prn_no_memory(error);
    while (count && !(hot[count - 1].heat > 0)) count--;
    size_t shown = count < MOST_BARS ? count : MOST_BARS;
    char note[240];
    const char *given[MOST_BARS];
    prn_short_names names;
    for (size_t i = 0; i < shown; i++) given[i] = r->layers[hot[i].layer].name;
    if (!prn_short_names_make(&names, given, shown, prn_svg_columns(11, NAME_WIDTH))) {
        prn_short_names_free(&names);
        prn_free(hot);
        return prn_no_memory(error);
    }
    snprintf(note, sizeof note,
             "%.80s: the %zu of %zu layers that take most; in brackets the cumulative share; ~ estimated",
             prn_report_title(r), shown, r->layer_count);
    prn_svg_begin(out, 960, BARS_TOP + (double)shown * BAR_HEIGHT + 50,
                  prn_report_stamped(r) ? "Time by layer" : "FLOPs by layer", note);
    draw_layer_bars(out, r, hot, shown, &names);
    prn_svg_end(out);
    prn_short_names_free(&names);
    prn_free(hot);
    return PRONY_OK;
}

/* Draws two bars per type on one axis: share of the time, and share of the FLOPs. */
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
            prn_svg_rect(out, axis.from, y + 3, x - axis.from, BAR_HEIGHT - 4, PRN_SVG_ORANGE, PRN_SVG_TIP(label));
            prn_svg_text(out, x + 6, y + 14, PRN_ANCHOR_START, 11, PRN_SVG_GREY, label);
        }
        snprintf(label, sizeof label, "%s FLOPs  %s %%", prn_number_si(flops, (double)rows[i].flops, 3, " "),
                 prn_number_percent(flop_share, of_flops));
        double x = prn_axis_at(&axis, of_flops);
        prn_svg_rect(out, axis.from, y + 1 + BAR_HEIGHT, x - axis.from, BAR_HEIGHT - 4, PRN_SVG_BLUE,
                     PRN_SVG_TIP(label));
        prn_svg_text(out, x + 6, y + 12 + BAR_HEIGHT, PRN_ANCHOR_START, 11, PRN_SVG_GREY, label);
    }
}

/* Adds hidden rows to the last shown row: "and N more". */
static size_t merge_tail(prn_type_row *rows, size_t count, char *name, size_t bytes)
{
    if (count <= MOST_TYPES) return count;
    prn_type_row *tail = &rows[MOST_TYPES - 1];
    for (size_t i = MOST_TYPES; i < count; i++) {
        tail->count += rows[i].count;
        tail->time_ns += rows[i].time_ns;
        tail->share += rows[i].share;
        tail->flops += rows[i].flops;
    }
    snprintf(name, bytes, "and %zu more", count - MOST_TYPES + 1);
    tail->op = name;
    return MOST_TYPES;
}

prony_status prn_svg_types(prn_out *out, const prony_report *r, prony_error *error)
{
    prn_type_row *rows;
    size_t count;
    char note[240], tail[40];
    PRN_TRY(prn_type_summary(r, &rows, &count, error));
    size_t shown = merge_tail(rows, count, tail, sizeof tail);
    snprintf(note, sizeof note, "%.80s: %zu types; orange: time, blue: FLOPs", prn_report_title(r), count);
    prn_svg_begin(out, 860, BARS_TOP + (double)shown * 2 * BAR_HEIGHT + 50,
                  prn_report_stamped(r) ? "Time and FLOPs by type" : "FLOPs by type", note);
    draw_types(out, r, rows, shown);
    prn_svg_end(out);
    prn_free(rows);
    return PRONY_OK;
}

/* ---- latency ---- */

static void draw_quantile(prn_out *out, const prn_axis *x, double top, double bottom, const char *name, int64_t ns,
                          int row)
{
    prn_number_text time;
    char label[80];
    if ((double)ns < x->low || (double)ns > x->high) return;
    double at = prn_axis_at(x, (double)ns);
    snprintf(label, sizeof label, "%s %s", name, prn_number_time(time, ns, 4, " "));
    prn_svg_line(out, at, top, at, bottom, PRN_SVG_RED, 1.5, true);
    bool left = at > x->to - 120;
    prn_svg_text(out, at + (left ? -4 : 4), top + 12 + 14 * row, left ? PRN_ANCHOR_END : PRN_ANCHOR_START, 11,
                 PRN_SVG_RED, label);
}

static void draw_bin(prn_out *out, const prn_axis *x, const prn_axis *y, const prony_histogram_bin *bin, double from,
                     double to, uint64_t runs, const char *color)
{
    prn_number_text begin, end, percent;
    char tip[128];
    double left = prn_axis_at(x, from), top = prn_axis_at(y, (double)bin->count);
    snprintf(tip, sizeof tip, "%s - %s\n%llu runs, %s %%", prn_number_time(begin, bin->from_ns, 4, " "),
             prn_number_time(end, bin->to_ns, 4, " "), (unsigned long long)bin->count,
             prn_number_percent(percent, (double)bin->count / (double)runs));
    prn_svg_rect(out, left, top, prn_axis_at(x, to) - left - 1, y->from - top, color, PRN_SVG_TIP(tip));
}

/* Runs beyond the last bin are one red bar, after a gap behind the axis. */
static void draw_histogram(prn_out *out, const prony_report *r, const prony_histogram_bin *bins, size_t count,
                           bool beyond)
{
    size_t inner = count - beyond;
    uint64_t most = 1;
    double top = 80, bottom = 340;
    for (size_t b = 0; b < count; b++) most = bins[b].count > most ? bins[b].count : most;
    double low = (double)bins[0].from_ns, high = fmax((double)bins[inner - 1].to_ns, low + 1),
           step = (high - low) / (double)inner;
    double right = beyond ? LATENCY_RIGHT - fmax(3 * 620.0 / ((double)inner + 3), 60) : LATENCY_RIGHT;
    prn_axis x = {.low = low, .high = high, .from = 70, .to = right};
    prn_axis y = {.low = 0, .high = (double)most * 1.15, .from = bottom, .to = top};
    prn_svg_axis_y(out, &y, 70, LATENCY_RIGHT, prn_tick_count, "runs");
    prn_svg_axis_x(out, &x, top, bottom, prn_tick_time, "latency of a run");
    for (size_t b = 0; b < inner; b++)
        draw_bin(out, &x, &y, &bins[b], low + step * (double)b, low + step * (double)(b + 1), r->latency.count,
                 PRN_SVG_BLUE);
    if (beyond) {
        prn_axis end = {
            .low = 0, .high = 1, .from = LATENCY_RIGHT - (LATENCY_RIGHT - right) / 2, .to = LATENCY_RIGHT - 4};
        draw_bin(out, &end, &y, &bins[inner], 0, 1, r->latency.count, PRN_SVG_RED);
        prn_svg_text(out, (end.from + end.to) / 2, bottom + 18, PRN_ANCHOR_MIDDLE, 11, PRN_SVG_RED, "beyond");
    }
    const prony_time_stats *t = &r->latency;
    draw_quantile(out, &x, top, bottom, "median", t->median_ns, 0);
    if (t->p90_valid) draw_quantile(out, &x, top, bottom, "P90", t->p90_ns, 1);
    if (t->p99_valid) draw_quantile(out, &x, top, bottom, "P99", t->p99_ns, 2);
}

prony_status prn_svg_latency(prn_out *out, const prony_report *r, prony_error *error)
{
    prony_histogram_bin *bins = NULL;
    size_t count;
    bool beyond;
    PRN_TRY(prn_report_latency_bins(&bins, &count, &beyond, r, 0, error));
    prn_number_text low, high, limit;
    char note[240], rest[80] = "";
    if (beyond)
        snprintf(rest, sizeof rest, "; %llu beyond %s in red", (unsigned long long)bins[count - 1].count,
                 prn_number_time(limit, bins[count - 1].from_ns, 4, " "));
    snprintf(note, sizeof note, "%.60s: %llu runs; median's 95 %% interval %s - %s%s", prn_report_title(r),
             (unsigned long long)r->latency.count, prn_number_time(low, r->latency.median_ci95_ns[0], 4, " "),
             prn_number_time(high, r->latency.median_ci95_ns[1], 4, " "), rest);
    prn_svg_begin(out, LATENCY_RIGHT + 30, 390, "Latency", note);
    draw_histogram(out, r, bins, count, beyond);
    prn_svg_end(out);
    prony_rows_release(bins);
    return PRONY_OK;
}
