/* The latency of a decoder's steps over the position: a dot a step, the median of the repetitions. */
#include "profiler/exporters/svg/report_svg.h"

#include <math.h>

enum { LEFT = 80, RIGHT = 930, TOP = 80, BOTTOM = 320, MANY_STEPS = 1000 };

/* Twice the 95th percentile of the steps: the few above it are drawn at the upper edge, since they would press all
 * others together. */
static double generation_highest(const prony_generation *g)
{
    double most = 0;
    for (size_t k = 0; k < g->position_count; k++) most = fmax(most, (double)g->position_ns[k]);
    const double usual = 2 * fmax((double)g->step.p95_ns, (double)g->step.p50_ns);
    return fmax(usual > 0 ? fmin(most, usual) : most, 1) * 1.05;
}

/* Dots, and above the axis' end triangles that point upwards. */
static void draw_steps(prn_out *out, const prony_generation *g, const prn_axis *x, const prn_axis *y)
{
    const double first = (double)(g->prompt_tokens + 1);
    prn_out_format(out,
                   "<path fill=\"none\" stroke=\"" PRN_SVG_BLUE "\" stroke-width=\"%s\" stroke-linecap=\"round\" d=\"",
                   g->position_count > MANY_STEPS ? "2" : "4");
    for (size_t k = 0; k < g->position_count; k++) {
        if ((double)g->position_ns[k] > y->high) continue;
        prn_svg_point(out, 'M', prn_axis_at(x, first + (double)k), prn_axis_at(y, (double)g->position_ns[k]));
        prn_out_text(out, "h0");
    }
    prn_out_text(out, "\"/>\n<path fill=\"" PRN_SVG_RED "\" d=\"");
    for (size_t k = 0; k < g->position_count; k++) {
        const double at = prn_axis_at(x, first + (double)k);
        if ((double)g->position_ns[k] <= y->high) continue;
        prn_svg_point(out, 'M', at - 4, TOP + 7);
        prn_svg_point(out, 'L', at + 4, TOP + 7);
        prn_svg_point(out, 'L', at, TOP);
        prn_out_text(out, "z");
    }
    prn_out_text(out, "\"/>\n");
}

/* The median step, and the growth through the middle of the positions. */
static void draw_growth(prn_out *out, const prony_generation *g, const prn_axis *x, const prn_axis *y)
{
    const double half = (double)(g->position_count - 1) / 2, middle = (double)(g->prompt_tokens + 1) + half;
    const double p50 = (double)g->step.p50_ns, rise = half * g->step_growth_ns;
    const double ends[] = {fmin(fmax(p50 - rise, 0), y->high), fmin(fmax(p50 + rise, 0), y->high)};
    prn_svg_line(out, prn_axis_at(x, middle - half), prn_axis_at(y, ends[0]), prn_axis_at(x, middle + half),
                 prn_axis_at(y, ends[1]), PRN_SVG_ORANGE, 1.5, false);
}

prony_status prn_svg_generation(prn_out *out, const prony_report *r, prony_error *error)
{
    const prony_generation *g = &r->generation;
    const double first = (double)(g->prompt_tokens + 1), count = (double)g->position_count;
    const prn_axis x = {.low = first, .high = first + fmax(count - 1, 1), .from = LEFT, .to = RIGHT},
                   y = {.low = 0, .high = generation_highest(g), .from = BOTTOM, .to = TOP};
    prn_number_text p50, growth;
    char note[240];
    (void)error;
    snprintf(
        note, sizeof note,
        "%.60s: median of %lld repetition%s at each position; orange: %s and %s a token; red: slower than the axis",
        prn_report_title(r), (long long)g->repetitions, g->repetitions == 1 ? "" : "s",
        prn_number_time(p50, g->step.p50_ns, 3, " "),
        prn_number_time(growth, (int64_t)llround(g->step_growth_ns), 3, " "));
    prn_svg_begin(out, RIGHT + 30, BOTTOM + 50, "Latency over the position", note);
    prn_svg_axis_y(out, &y, LEFT, RIGHT, prn_tick_time, "time of a token");
    prn_svg_axis_x(out, &x, TOP, BOTTOM, prn_tick_count, "tokens before it");
    prn_svg_plot_begin(out, &x, TOP, BOTTOM);
    draw_steps(out, g, &x, &y);
    draw_growth(out, g, &x, &y);
    prn_svg_plot_end(out);
    prn_svg_end(out);
    return PRONY_OK;
}
