/* The curves of several studies in one chart: throughput or speed-up over threads, a colour a study. */
#include "profiler/exporters/svg/svg.h"
#include "profiler/study/study_join.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 760, HEIGHT = 440, LEFT = 80, RIGHT = 560, TOP = 70, BOTTOM = 390, MOST_KEYS = 16 };

/* Of a study: Okabe and Ito's colours, which colour-blind readers can tell apart. */
static const char *study_join_color(size_t study)
{
    static const char *const own[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"};
    return own[study % (sizeof own / sizeof *own)];
}

static double curve_value(const prony_study_result *r, bool speedup)
{
    if (!r->processes) return NAN;
    return speedup ? r->speedup : r->samples_per_second;
}

/* The interval of a point: throughput scales with the inverse of the median. */
static void curve_interval(const prony_study_result *r, bool speedup, double out[2])
{
    for (int end = 0; end < 2; end++)
        out[end] = speedup ? r->speedup_ci95[end] : r->samples_per_second * r->median_ns / r->ci95_ns[1 - end];
}

static bool study_join_is_drawn(const prn_study_configuration *c, const prony_study_result *r, bool speedup)
{
    return !c->again && prn_study_replicas(c) == 1 && isfinite(curve_value(r, speedup));
}

/* The next configuration of the same series (group and workers), by threads; PRONY_NO_INDEX: none. */
static size_t next_of_series(const prony_study *s, size_t of, bool speedup)
{
    size_t next = PRONY_NO_INDEX;
    const prn_study_configuration *c = &s->configurations[of];
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *o = &s->configurations[i];
        if (!study_join_is_drawn(o, &s->results[i], speedup) || o->group != c->group ||
            prn_study_threads(o) <= prn_study_threads(c))
            continue;
        if (o->inter_op != c->inter_op && prn_study_threads(c) > 1) continue;
        if (next == PRONY_NO_INDEX || prn_study_threads(o) < prn_study_threads(&s->configurations[next])) next = i;
    }
    return next;
}

static void draw_study(prn_out *out, const prn_study_join *join, size_t k, const prn_axis *x, const prn_axis *y,
                       bool speedup)
{
    const prony_study *s = join->studies[k];
    const char *color = study_join_color(k);
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *c = &s->configurations[i];
        const prony_study_result *r = &s->results[i];
        const size_t next = next_of_series(s, i, speedup);
        double ends[2];
        char label[PRN_STUDY_LABEL_BYTES], tip[300];
        prn_number_text number;
        if (!study_join_is_drawn(c, r, speedup)) continue;
        const double at = prn_axis_at(x, prn_study_threads(c)), height = prn_axis_at(y, curve_value(r, speedup));
        if (next != PRONY_NO_INDEX)
            prn_svg_line(out, at, height, prn_axis_at(x, prn_study_threads(&s->configurations[next])),
                         prn_axis_at(y, curve_value(&s->results[next], speedup)), color, 1.5, c->beyond);
        curve_interval(r, speedup, ends);
        if (isfinite(ends[0]) && isfinite(ends[1]))
            prn_svg_line(out, at, prn_axis_at(y, fmax(ends[0], y->low)), at, prn_axis_at(y, fmin(ends[1], y->high)),
                         color, 2, false);
        snprintf(tip, sizeof tip, "%.100s, %s: %s", join->names[k], prn_study_label(s, i, label),
                 prn_number_si(number, curve_value(r, speedup), 4, ""));
        prn_svg_circle(out, at, height, 4, color, PRN_SVG_TIP(tip));
    }
}

static char *tick_threads(prn_number_text text, double value)
{
    return prn_number_fixed(text, value, fabs(value - round(value)) < 1e-9 ? 0 : 1);
}

/* Both axes cover all drawn points of all studies, so the curves are comparable. The dashed diagonal of a speed-up is
 * one thread's rate times the threads. The legend names MOST_KEYS studies at most, the curves are all drawn. */
static void draw_curves(prn_out *out, const prn_study_join *join, bool speedup)
{
    double most = 1, highest = speedup ? 1 : 0;
    for (size_t k = 0; k < join->count; k++)
        for (size_t i = 0; i < join->studies[k]->configuration_count; i++) {
            const prn_study_configuration *c = &join->studies[k]->configurations[i];
            const double value = curve_value(&join->studies[k]->results[i], speedup);
            if (!study_join_is_drawn(c, &join->studies[k]->results[i], speedup)) continue;
            most = fmax(most, prn_study_threads(c));
            highest = fmax(highest, 1.1 * value);
        }
    if (!(highest > 0)) highest = 1;
    const prn_axis x = {1 - 0.05 * most, 1.05 * most, LEFT, RIGHT, false, false},
                   y = {0, highest, BOTTOM, TOP, false, false};
    prn_svg_begin(out, WIDTH, HEIGHT, speedup ? "Speed-up of the studies" : "Throughput of the studies",
                  "medians over processes with 95 % intervals; dashed: beyond the quota");
    prn_svg_axis_x(out, &x, TOP, BOTTOM, tick_threads, "threads (intra-op x inter-op)");
    prn_svg_axis_y(out, &y, LEFT, RIGHT, speedup ? tick_threads : prn_tick_count, speedup ? "speed-up" : "samples/s");
    if (speedup)
        prn_svg_line(out, prn_axis_at(&x, 1), prn_axis_at(&y, 1), prn_axis_at(&x, fmin(most, highest)),
                     prn_axis_at(&y, fmin(most, highest)), PRN_SVG_GREY, 1.5, true);
    for (size_t k = 0; k < join->count; k++) draw_study(out, join, k, &x, &y, speedup);
    for (size_t k = 0; k < join->count && k < MOST_KEYS; k++) {
        const double at = TOP + 8 + 18 * (double)k;
        prn_svg_circle(out, RIGHT + 20, at, 4, study_join_color(k), NULL);
        prn_svg_text_fit(out, RIGHT + 30, at + 4, PRN_ANCHOR_START, 11, PRN_SVG_INK, join->names[k],
                         WIDTH - RIGHT - 40);
    }
    prn_svg_end(out);
}

prony_status prn_study_join_svg(const prn_study_join *join, const prony_write_options *options, prony_write_fn write,
                                void *user, prony_error *error)
{
    const char *name = options->chart ? options->chart : "throughput";
    prn_out out;
    prn_out_begin(&out, write, user, error);
    if (strcmp(name, "throughput") != 0 && strcmp(name, "speedup") != 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "unknown chart \"%s\"; known: throughput and speedup", name);
    draw_curves(&out, join, strcmp(name, "speedup") == 0);
    return prn_out_end(&out);
}
