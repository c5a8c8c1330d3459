/* Charts over the time of the measurement: the latency of every run in order, and the use of the processors. */
#include "profiler/exporters/svg/report_svg.h"

#include <math.h>

enum { LEFT = 80, RIGHT = 930, TOP = 80, RUNS_BOTTOM = 300, CORES_HEIGHT = 360, HIGHEST_ROW = 18 };
enum { MANY_RUNS = 2000, LABEL_ROOM = 12 /* pixels a row's label needs */ };

/* Draws runs [0, count), or only the listed outliers, as dots: lines of no length with round ends, which keep their
 * shape when the page zooms. */
static void draw_runs(prn_out *out, const prony_report *r, const prn_axis *x, const prn_axis *y,
                      const prony_outlier *outliers, size_t count)
{
    const char *width = r->latency.count > MANY_RUNS ? "2" : "4";
    prn_out_format(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" stroke-linecap=\"round\" d=\"",
                   outliers ? PRN_SVG_RED : PRN_SVG_BLUE, width);
    for (size_t i = 0; i < count; i++) {
        const uint64_t run = outliers ? outliers[i].run : i;
        prn_svg_point(out, 'M', prn_axis_at(x, (double)run), prn_axis_at(y, (double)r->samples_ns[run]));
        prn_out_text(out, "h0");
    }
    prn_out_text(out, "\"/>\n");
}

prony_status prn_svg_runs(prn_out *out, const prony_report *r, prony_error *error)
{
    const size_t count = (size_t)r->latency.count;
    prony_outlier *outliers = NULL;
    size_t outlier_count = 0;
    char note[240];
    PRN_TRY(prony_report_outliers(&outliers, &outlier_count, r, error));
    const double low = (double)r->latency.min_ns, high = fmax((double)r->latency.max_ns, low + 1);
    const prn_axis x = {.low = 0, .high = (double)count, .from = LEFT, .to = RIGHT};
    const prn_axis y = {
        .low = fmax(0, low - 0.05 * (high - low)), .high = high + 0.05 * (high - low), .from = RUNS_BOTTOM, .to = TOP};
    snprintf(note, sizeof note,
             "%.60s: in order of time; drift, steps and %zu outliers (red) show here; orange: median",
             prn_report_title(r), outlier_count);
    prn_svg_begin(out, RIGHT + 30, RUNS_BOTTOM + 50, "Latency over the runs", note);
    prn_svg_axis_y(out, &y, LEFT, RIGHT, prn_tick_time, "latency");
    prn_svg_axis_x(out, &x, TOP, RUNS_BOTTOM, prn_tick_count, "run");
    prn_svg_plot_begin(out, &x, TOP, RUNS_BOTTOM);
    draw_runs(out, r, &x, &y, NULL, count);
    if (outlier_count) draw_runs(out, r, &x, &y, outliers, outlier_count);
    prn_svg_plot_end(out);
    const double median = prn_axis_at(&y, (double)r->latency.median_ns);
    prn_svg_line(out, LEFT, median, RIGHT, median, PRN_SVG_ORANGE, 1.2, false);
    prn_svg_end(out);
    prony_rows_release(outliers);
    return PRONY_OK;
}

/* A row per processor, a rectangle per interval, the stronger the busier. Many processors have low rows, and only some
 * of the rows a label. */
prony_status prn_svg_cores(prn_out *out, const prony_report *r, prony_error *error)
{
    const double row = fmin(HIGHEST_ROW, fmax(2, (double)CORES_HEIGHT / (double)r->core_count)),
                 bottom = TOP + row * (double)r->core_count;
    const size_t labelled = row >= LABEL_ROOM ? 1 : (size_t)ceil(LABEL_ROOM / row);
    const prn_axis x = {.low = 0, .high = (double)r->core_times_ns[r->core_points - 1], .from = LEFT, .to = RIGHT};
    char note[200], text[80], tip[160];
    (void)error;
    snprintf(note, sizeof note, "%.60s: busy share of each processor that could be used, all processes together",
             prn_report_title(r));
    prn_svg_begin(out, RIGHT + 30, bottom + 50, "Processors over time", note);
    prn_svg_axis_x(out, &x, TOP, bottom, prn_tick_time, "time since the first run");
    for (size_t c = 0; c < r->core_count; c++) {
        const double top = TOP + row * (double)c;
        snprintf(text, sizeof text, "cpu%d", r->cores[c].core);
        if (c % labelled == 0)
            prn_svg_text(out, LEFT - 6, top + fmin(row, LABEL_ROOM), PRN_ANCHOR_END, 11, PRN_SVG_GREY, text);
        prn_out_text(out, "<g fill=\"" PRN_SVG_ORANGE "\">\n");
        for (size_t i = 0; i < r->core_points; i++) {
            prn_number_text begin, end, busy;
            const int64_t from = i ? r->core_times_ns[i - 1] : 0;
            const double left = prn_axis_at(&x, (double)from);
            prn_number_percent(busy, r->cores[c].use[i]);
            snprintf(tip, sizeof tip, "%s\n%s %% busy, %s - %s", text, busy, prn_number_time(begin, from, 3, " "),
                     prn_number_time(end, r->core_times_ns[i], 3, " "));
            prn_out_text(out, "<g fill-opacity=\"");
            prn_out_fixed(out, 0.06 + 0.94 * fmin(1, fmax(0, r->cores[c].use[i])), 2);
            prn_out_text(out, "\">");
            prn_svg_rect(out, left, top, prn_axis_at(&x, (double)r->core_times_ns[i]) - left - 0.5,
                         row > 4 ? row - 1 : row, NULL, PRN_SVG_TIP(tip));
            prn_out_text(out, "</g>\n");
        }
        prn_out_text(out, "</g>\n");
    }
    prn_svg_end(out);
    return PRONY_OK;
}
