/* The roofline: what each operator reached, over its arithmetic intensity, below what the machine can do. Operators
 * whose FLOPs are zero have no place on logarithmic axes and are counted in the note. */
#include "profiler/forms/report_svg.h"

#include <math.h>
#include <string.h>

enum { LEFT = 80, RIGHT = 830, TOP = 80, BOTTOM = 480 };

typedef struct roof_point {
    double intensity, rate;
} roof_point;

static bool point_of(const prony_operator_row *o, roof_point *p)
{
    double bytes = (double)o->cost.bytes_read + (double)o->cost.bytes_written;
    if (!o->measured || o->cost.flops == 0 || bytes <= 0 || o->time.mean_ns <= 0) return false;
    *p = (roof_point){(double)o->cost.flops / bytes, (double)o->cost.flops / ((double)o->time.mean_ns / 1e9)};
    return true;
}

static size_t find_ranges(const prony_report *r, prn_axis *x, prn_axis *y)
{
    size_t points = 0;
    double low_x = 1, high_x = 10, low_y = 1e9, high_y = 1e9;
    for (size_t i = 0; i < r->operator_count; i++) {
        roof_point p;
        if (!point_of(&r->operators[i], &p)) continue;
        points++;
        low_x = fmin(low_x, p.intensity);
        high_x = fmax(high_x, p.intensity);
        low_y = fmin(low_y, p.rate);
        high_y = fmax(high_y, p.rate);
    }
    high_y = fmax(high_y, prn_report_roof_flops(r));
    *x = (prn_axis){pow(10, floor(log10(low_x))), pow(10, ceil(log10(high_x * 1.2))), LEFT, RIGHT, true, false};
    *y = (prn_axis){pow(10, floor(log10(low_y))), pow(10, ceil(log10(high_y * 1.2))), BOTTOM, TOP, true, false};
    return points;
}

/* A slanted line up to the compute roof, cut at the chart's edges. */
static void draw_bandwidth(prn_out *out, const prn_axis *x, const prn_axis *y, const prn_roof_memory *memory,
                           double peak)
{
    double bandwidth = memory->bytes_per_second;
    double begin = fmax(x->low, y->low / bandwidth), end = fmin(x->high, (peak > 0 ? peak : y->high) / bandwidth);
    if (!(bandwidth > 0) || end <= begin) return;
    prn_number_text number;
    char label[80];
    snprintf(label, sizeof label, "%.16s %sB/s", memory->level, prn_number_si(number, bandwidth, 3, " "));
    prn_svg_line(out, prn_axis_at(x, begin), prn_axis_at(y, begin * bandwidth), prn_axis_at(x, end),
                 prn_axis_at(y, end * bandwidth), PRN_SVG_GREEN, 1.5, false);
    prn_svg_text(out, prn_axis_at(x, begin) + 14, prn_axis_at(y, begin * bandwidth) + 5, PRN_ANCHOR_START, 11,
                 PRN_SVG_GREEN, label);
}

static void draw_roofs(prn_out *out, const prony_report *r, const prn_axis *x, const prn_axis *y)
{
    double peak = prn_report_roof_flops(r);
    for (size_t i = 0; r->has_roof && i < r->roof.memory_count; i++) {
        const prn_roof_memory *m = &r->roof.memory[i];
        double best = prn_report_roof_bandwidth(r, m->level);
        if (best < m->bytes_per_second || best > m->bytes_per_second) continue; /* of another thread count */
        draw_bandwidth(out, x, y, m, peak);
    }
    if (!(peak > 0)) return;
    prn_number_text number;
    char label[80];
    snprintf(label, sizeof label, "peak %sFLOP/s", prn_number_si(number, peak, 3, " "));
    prn_svg_line(out, x->from, prn_axis_at(y, peak), x->to, prn_axis_at(y, peak), PRN_SVG_GREEN, 1.5, false);
    prn_svg_text(out, x->to - 4, prn_axis_at(y, peak) - 6, PRN_ANCHOR_END, 11, PRN_SVG_GREEN, label);
}

prony_status prn_svg_roofline(prn_out *out, const prony_report *r, prony_error *error)
{
    (void)error;
    prn_axis x, y;
    char note[240];
    size_t points = find_ranges(r, &x, &y);
    snprintf(note, sizeof note,
             "%.60s, %d threads: %zu operators, area by share of time; %zu without FLOPs are not shown%s",
             prn_report_title(r), prn_report_threads(r), points, r->operator_count - points,
             r->has_roof ? "" : ". No roofs: `prony machine` has not been run here");
    prn_svg_begin(out, 860, 530, "Roofline", note);
    prn_svg_axis_y(out, &y, LEFT, RIGHT, prn_tick_count, "FLOP/s");
    prn_svg_axis_x(out, &x, TOP, BOTTOM, prn_tick_count, "arithmetic intensity, FLOP per byte");
    draw_roofs(out, r, &x, &y);
    for (size_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        roof_point p;
        prn_number_text rate, time;
        char tip[300];
        if (!point_of(o, &p)) continue;
        snprintf(tip, sizeof tip, "%.120s [%.60s] %sFLOP/s, %s", o->name, o->kernel,
                 prn_number_si(rate, p.rate, 3, " "), prn_number_time(time, o->time.mean_ns, 3, " "));
        prn_svg_circle(out, prn_axis_at(&x, p.intensity), prn_axis_at(&y, p.rate), 3 + 22 * sqrt(o->share),
                       PRN_SVG_BLUE, tip);
    }
    prn_svg_end(out);
    return PRONY_OK;
}
