/* Charts over the time of the measurement: the latency of every run in order, and the use of the processors. */
#include "profiler/exporters/svg/report_svg.h"

#include <math.h>

enum { LEFT = 80, RIGHT = 930, TOP = 80, RUNS_BOTTOM = 300, CORES_HEIGHT = 360, HIGHEST_ROW = 18 };
enum { USE_LEVELS = 8, MOST_CELLS = 8000 /* keep the picture of many processors small */, LEAST_COLUMNS = 20 };
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

/* Draws every run as a dot, the outliers of prony_report_outliers in red above the others, and the median as a line. */
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

/* The use of a processor in one of `columns` equal parts of the intervals, from 0 to USE_LEVELS. */
static int level_of(const prony_report *r, const prony_core_row *core, size_t column, size_t columns)
{
    const size_t first = column * r->core_points / columns, end = (column + 1) * r->core_points / columns;
    double use = 0;
    for (size_t i = first; i < end; i++) use += core->use[i] / (double)(end - first);
    return (int)lround(fmin(1, fmax(0, use)) * USE_LEVELS);
}

/* Draws a processor's row: its ground, then one path for each level of use, a rectangle per run of columns. */
static void draw_core(prn_out *out, const prony_report *r, const prony_core_row *core, const prn_axis *x, double top,
                      double height, size_t columns)
{
    char tip[80];
    prn_number_text mean;
    snprintf(tip, sizeof tip, "cpu%d: busy %s %% of the time", core->core, prn_number_percent(mean, core->mean));
    prn_out_text(out, "<g fill-opacity=\"0.06\">\n");
    prn_svg_rect(out, x->from, top, x->to - x->from, height, NULL, PRN_SVG_TIP(tip));
    prn_out_text(out, "</g>\n");
    for (int level = 1; level <= USE_LEVELS; level++) {
        bool begun = false;
        for (size_t c = 0, next; c < columns; c = next + 1) {
            for (next = c; next < columns && level_of(r, core, next, columns) == level;) next++;
            if (next == c) continue;
            const size_t first = c * r->core_points / columns, end = next * r->core_points / columns;
            const double left = prn_axis_at(x, first ? (double)r->core_times_ns[first - 1] : 0),
                         right = prn_axis_at(x, (double)r->core_times_ns[end - 1]);
            if (!begun) {
                prn_out_text(out, "<path fill-opacity=\"");
                prn_out_fixed(out, (double)level / USE_LEVELS, 2);
                prn_out_text(out, "\" d=\"");
            }
            begun = true;
            prn_svg_point(out, 'M', left, top);
            prn_svg_point(out, 'L', right, top);
            prn_svg_point(out, 'L', right, top + height);
            prn_svg_point(out, 'L', left, top + height);
        }
        if (begun) prn_out_text(out, "\"/>\n");
    }
}

/* A row per processor, the stronger the busier. Many processors have low rows, of which only some have labels. */
prony_status prn_svg_cores(prn_out *out, const prony_report *r, prony_error *error)
{
    const double row = fmin(HIGHEST_ROW, fmax(2, (double)CORES_HEIGHT / (double)r->core_count)),
                 bottom = TOP + row * (double)r->core_count;
    const size_t labelled = row >= LABEL_ROOM ? 1 : (size_t)ceil(LABEL_ROOM / row);
    size_t columns = MOST_CELLS / r->core_count > LEAST_COLUMNS ? MOST_CELLS / r->core_count : LEAST_COLUMNS;
    if (columns > r->core_points) columns = r->core_points;
    const prn_axis x = {.low = 0, .high = (double)r->core_times_ns[r->core_points - 1], .from = LEFT, .to = RIGHT};
    char note[240], text[80];
    prn_number_text mean;
    (void)error;
    snprintf(
        note, sizeof note,
        "%.60s: busy share of each usable processor during the measurement, all processes together; mean at the right",
        prn_report_title(r));
    prn_svg_begin(out, RIGHT + 60, bottom + 50, "Processors over time", note);
    prn_svg_axis_x(out, &x, TOP, bottom, prn_tick_time, "time since the first run");
    prn_svg_plot_begin(out, &x, TOP, bottom);
    prn_out_text(out, "<g fill=\"" PRN_SVG_ORANGE "\">\n");
    for (size_t c = 0; c < r->core_count; c++)
        draw_core(out, r, &r->cores[c], &x, TOP + row * (double)c, row > 4 ? row - 1 : row, columns);
    prn_out_text(out, "</g>\n");
    prn_svg_plot_end(out);
    for (size_t c = 0; c < r->core_count; c += labelled) {
        const double base = TOP + row * (double)c + fmin(row, LABEL_ROOM);
        snprintf(text, sizeof text, "cpu%d", r->cores[c].core);
        prn_svg_text(out, LEFT - 6, base, PRN_ANCHOR_END, 11, PRN_SVG_GREY, text);
        snprintf(text, sizeof text, "%s %%", prn_number_percent(mean, r->cores[c].mean));
        prn_svg_text(out, RIGHT + 6, base, PRN_ANCHOR_START, 11, PRN_SVG_GREY, text);
    }
    prn_svg_end(out);
    return PRONY_OK;
}
