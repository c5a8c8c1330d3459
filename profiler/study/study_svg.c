/* Charts of a study, each a standalone SVG: speed-up and efficiency over threads with their intervals, the ideal and
 * the fits (drawn only where something was measured), operators by what they lose, and the blocks in order of time. */
#include "profiler/exporters/svg/svg.h"
#include "profiler/study/study.h"
#include "profiler/text/short_names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 760,
    HEIGHT = 440,
    LEFT = 70,
    RIGHT = 600,
    TOP = 70,
    BOTTOM = 390,
    ROW = 24,
    KEY_LINE = 18,
    MOST_ROWS = 40,
    NAME_WIDTH = 235
};

static const char *const colors[] = {PRN_SVG_BLUE, PRN_SVG_ORANGE, PRN_SVG_GREEN, PRN_SVG_RED};
#define COLORS (sizeof colors / sizeof colors[0])
#define WORKERS_COLOR "#8250df"
#define TOP_OF_TIMELINE 1.0 /* twice the median: slower blocks are drawn at the edge */

static char *tick_fixed(prn_number_text text, double value)
{
    return prn_number_fixed(text, value, fabs(value - round(value)) < 1e-9 ? 0 : 1);
}

/* ---- over threads ---- */

static double study_svg_value_of(const prony_study_result *r, bool efficiency, int end)
{
    if (end < 0) return efficiency ? r->efficiency : r->speedup;
    return efficiency ? r->efficiency_ci95[end] : r->speedup_ci95[end];
}

static void draw_fit(prn_out *out, const prn_axis *x, const prn_axis *y, const prn_study_fit *f, double most,
                     bool efficiency, const char *color)
{
    double one = prn_law_speedup(f->law, &f->fit, 1);
    prn_out_text(out, "<path fill=\"none\" stroke-width=\"1.5\" stroke=\"");
    prn_out_text(out, color);
    prn_out_text(out, "\" d=\"");
    for (int i = 0; i <= 60; i++) {
        double n = 1 + (most - 1) * i / 60, speedup = prn_law_speedup(f->law, &f->fit, n) / one;
        prn_svg_point(out, i ? 'L' : 'M', prn_axis_at(x, n), prn_axis_at(y, efficiency ? speedup / n : speedup));
    }
    prn_out_text(out, "\"/>\n");
}

/* Workers (-y) have a colour and a shape of their own: a configuration of 4 threads and one of 4 workers lie at the
 * same number of threads. */
static const char *point_color(const prn_study_configuration *c)
{
    if (c->beyond || c->again) return PRN_SVG_GREY;
    return c->inter_op > 1 && c->group == 0 ? WORKERS_COLOR : colors[c->group % COLORS];
}

static void draw_square(prn_out *out, double x, double y, const char *color, const char *tip)
{
    prn_svg_rect(out, x - 4.5, y - 4.5, 9, 9, color, PRN_SVG_TIP(tip));
    prn_svg_rect(out, x - 2, y - 2, 4, 4, "#ffffff", PRN_SVG_TIP(tip));
}

static void study_svg_draw_points(prn_out *out, const prony_study *s, const prn_axis *x, const prn_axis *y,
                                  bool efficiency)
{
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *c = &s->configurations[i];
        const prony_study_result *r = &s->results[i];
        const char *color = point_color(c);
        char label[PRN_STUDY_LABEL_BYTES], tip[200];
        double at = prn_axis_at(x, prn_study_threads(c)) + (c->again ? 9 : c->inter_op > 1 ? -9 : 0), ends[2];
        if (!isfinite(study_svg_value_of(r, efficiency, -1))) continue;
        for (int end = 0; end < 2; end++)
            ends[end] = fmin(fmax(study_svg_value_of(r, efficiency, end), y->low), y->high);
        prn_number_text number;
        snprintf(tip, sizeof tip, "%s: %s", prn_study_label(s, i, label),
                 prn_number_fixed(number, study_svg_value_of(r, efficiency, -1), 3));
        prn_svg_line(out, at, prn_axis_at(y, ends[0]), at, prn_axis_at(y, ends[1]), color, 2, false);
        for (int end = 0; end < 2; end++)
            prn_svg_line(out, at - 5, prn_axis_at(y, ends[end]), at + 5, prn_axis_at(y, ends[end]), color, 2, false);
        const double height = prn_axis_at(y, study_svg_value_of(r, efficiency, -1));
        if (c->inter_op > 1)
            draw_square(out, at, height, color, tip);
        else
            prn_svg_circle(out, at, height, 4.5, color, PRN_SVG_TIP(tip));
    }
}

static bool study_svg_has_workers(const prony_study *s)
{
    for (size_t i = 0; i < s->configuration_count; i++)
        if (s->configurations[i].inter_op > 1) return true;
    return false;
}

/* The height of a picture with a key of so many lines. */
static double study_svg_height(size_t key_lines)
{
    return fmax(HEIGHT, TOP + KEY_LINE * ((double)key_lines + 1));
}

/* Draws the legend: groups, fitted laws, and the limit if shown. */
static void study_svg_draw_key(prn_out *out, const prony_study *s, bool limits)
{
    double y = TOP + 8;
    const bool workers = study_svg_has_workers(s);
    char text[PRN_STUDY_LABEL_BYTES + 40], label[PRN_STUDY_LABEL_BYTES];
    prn_svg_line(out, RIGHT + 12, y, RIGHT + 32, y, PRN_SVG_GREY, 1.5, true);
    prn_svg_text(out, RIGHT + 38, y + 4, PRN_ANCHOR_START, 11, PRN_SVG_INK, "ideal");
    for (size_t g = 0; g < prn_study_groups(s); g++) {
        y += KEY_LINE;
        prn_svg_circle(out, RIGHT + 22, y, 4.5, colors[g % COLORS], NULL);
        prn_study_label(s, prn_study_baseline(s, g), label);
        const char *rest = strchr(label, ',');
        snprintf(text, sizeof text, "%.60s", rest ? rest + 2 : workers ? "threads (-x), 95 %" : "measured, 95 %");
        prn_svg_text(out, RIGHT + 38, y + 4, PRN_ANCHOR_START, 11, PRN_SVG_INK, text);
    }
    if (workers) {
        y += KEY_LINE;
        draw_square(out, RIGHT + 22, y, WORKERS_COLOR, NULL);
        prn_svg_text(out, RIGHT + 38, y + 4, PRN_ANCHOR_START, 11, PRN_SVG_INK, "with workers (-y)");
    }
    for (size_t i = 0; i < s->fit_count; i++) {
        static const char *const names[] = {"Amdahl", "Gustafson", "USL"};
        if (!s->fits[i].fit.known || s->fits[i].group) continue;
        y += KEY_LINE;
        prn_svg_line(out, RIGHT + 12, y, RIGHT + 32, y, colors[(i + 1) % COLORS], 1.5, false);
        snprintf(text, sizeof text, "%s%s", names[s->fits[i].law], s->fits[i].inter ? ", workers" : "");
        prn_svg_text(out, RIGHT + 38, y + 4, PRN_ANCHOR_START, 11, PRN_SVG_INK, text);
    }
    if (!limits || s->limit_count == 0) return;
    y += KEY_LINE;
    prn_svg_line(out, RIGHT + 12, y, RIGHT + 32, y, PRN_SVG_RED, 1.5, true);
    prn_svg_text(out, RIGHT + 38, y + 4, PRN_ANCHOR_START, 11, PRN_SVG_INK, "limit here");
}

/* Draws speed-up or efficiency over threads, with intervals, fits, ideal and limit. */
static void draw_over_threads(prn_out *out, const prony_study *s, bool efficiency)
{
    double most = 1, highest = efficiency ? 1.1 : 1;
    for (size_t i = 0; i < s->configuration_count; i++) {
        most = fmax(most, prn_study_threads(&s->configurations[i]));
        if (isfinite(s->results[i].speedup))
            highest = fmax(highest, study_svg_value_of(&s->results[i], efficiency, -1) * 1.1);
    }
    if (!efficiency) highest = fmax(highest, most);
    prn_axis x = {1 - 0.05 * most, most + 0.05 * most, LEFT, RIGHT, false, false},
             y = {0, highest, BOTTOM, TOP, false, false};
    char note[240];
    snprintf(
        note, sizeof note,
        "%.80s, %s scaling; medians with 95 %% intervals; grey: baseline again, or beyond the quota; data quality: %s",
        prn_report_title(s->manifest), s->weak ? "weak" : "strong", s->quality.verdict);
    prn_svg_begin(out, WIDTH, study_svg_height(prn_study_groups(s) + s->fit_count + 3),
                  efficiency ? "Efficiency" : "Speed-up", note);
    prn_svg_axis_x(out, &x, TOP, BOTTOM, tick_fixed, "threads (intra-op x inter-op)");
    prn_svg_axis_y(out, &y, LEFT, RIGHT, efficiency ? prn_tick_percent : tick_fixed,
                   efficiency ? "efficiency" : "speed-up");
    prn_svg_line(out, prn_axis_at(&x, 1), prn_axis_at(&y, 1), prn_axis_at(&x, most),
                 prn_axis_at(&y, efficiency ? 1 : most), PRN_SVG_GREY, 1.5, true);
    for (size_t i = 0; i < s->fit_count; i++)
        if (s->fits[i].fit.known && s->fits[i].group == 0)
            draw_fit(out, &x, &y, &s->fits[i], most, efficiency, colors[(i + 1) % COLORS]);
    for (size_t i = 0; i < s->limit_count && !efficiency; i++)
        prn_svg_line(out, LEFT, prn_axis_at(&y, s->limits[i].speedup), RIGHT, prn_axis_at(&y, s->limits[i].speedup),
                     PRN_SVG_RED, 1.5, true);
    study_svg_draw_points(out, s, &x, &y, efficiency);
    study_svg_draw_key(out, s, !efficiency);
    prn_svg_end(out);
}

/* ---- operators ---- */

/* The losses of a configuration, the largest first: the first MOST_ROWS in `rows`, the others summed in *rest_ns.
 * Returns how many there are in all. */
static size_t losses_of(const prony_study *s, size_t configuration, const prn_study_loss *rows[MOST_ROWS],
                        double *rest_ns)
{
    size_t count = 0;
    *rest_ns = 0;
    for (size_t i = 0; i < s->loss_count; i++) {
        const prn_study_loss *l = &s->losses[i];
        if (l->configuration != configuration || l->lost_ns <= 0) continue;
        if (count < MOST_ROWS)
            rows[count] = l;
        else
            *rest_ns += l->lost_ns;
        count++;
    }
    return count;
}

static void draw_loss(prn_out *out, const prn_study_loss *l, const char *name, double top, double most)
{
    prn_number_text number;
    char text[160];
    prn_svg_text_fit(out, 250, top + 13, PRN_ANCHOR_END, 11, PRN_SVG_INK, name, NAME_WIDTH);
    prn_svg_rect(out, 258, top, fmax(1, 250 * l->lost_ns / most), ROW - 7, PRN_SVG_ORANGE, PRN_SVG_TIP(l->reason));
    snprintf(text, sizeof text, "%s, %.60s", prn_number_time(number, (int64_t)l->lost_ns, 3, " "), l->reason);
    prn_svg_text(out, 264 + 250 * l->lost_ns / most, top + 13, PRN_ANCHOR_START, 11, PRN_SVG_GREY, text);
}

/* Draws the operators with the largest losses, for the configuration with the most threads within the quota. The
 * picture grows with them; those beyond MOST_ROWS are one line. */
static void draw_operators(prn_out *out, const prony_study *s)
{
    size_t shown = PRONY_NO_INDEX;
    double most = 0, rest_ns;
    const prn_study_loss *losses[MOST_ROWS];
    const char *given[MOST_ROWS];
    char note[PRN_STUDY_LABEL_BYTES + 80], label[PRN_STUDY_LABEL_BYTES];
    prn_short_names names;
    prn_number_text number;
    for (size_t i = 0; i < s->loss_count; i++) {
        const prn_study_configuration *c = &s->configurations[s->losses[i].configuration];
        if (!c->beyond && (shown == PRONY_NO_INDEX || c->intra_op > s->configurations[shown].intra_op))
            shown = s->losses[i].configuration;
    }
    const size_t count = losses_of(s, shown, losses, &rest_ns), rows = count < MOST_ROWS ? count : MOST_ROWS;
    for (size_t i = 0; i < rows; i++) {
        most = fmax(most, losses[i]->lost_ns);
        given[i] = s->configurations[shown].operators[losses[i]->operator].name;
    }
    snprintf(note, sizeof note, "lost against an even share of the serial time%s%s",
             shown == PRONY_NO_INDEX ? "" : ", on ", shown == PRONY_NO_INDEX ? "" : prn_study_label(s, shown, label));
    const double bottom = TOP + (double)ROW * (double)rows;
    prn_svg_begin(out, WIDTH, bottom + 30, "Operators that do not scale", note);
    if (rows == 0)
        prn_svg_text(out, LEFT, TOP, PRN_ANCHOR_START, 12, PRN_SVG_GREY,
                     "no operator loses time, or no operator was traced");
    const bool named = prn_short_names_make(&names, given, rows, prn_svg_columns(11, NAME_WIDTH));
    if (!named && out->status == PRONY_OK) out->status = prn_no_memory(out->error);
    for (size_t i = 0; named && i < rows; i++)
        draw_loss(out, losses[i], names.shown[i], TOP + (double)ROW * (double)i, most);
    if (count > rows) {
        snprintf(note, sizeof note, "and %zu more operators, %s together", count - rows,
                 prn_number_time(number, (int64_t)rest_ns, 3, " "));
        prn_svg_text(out, 258, bottom + 13, PRN_ANCHOR_START, 11, PRN_SVG_GREY, note);
    }
    prn_svg_end(out);
    prn_short_names_free(&names);
}

/* ---- blocks over time ---- */

static char *tick_seconds(prn_number_text text, double ns)
{
    return prn_number_fixed(text, ns * 1e-9, ns < 20e9 ? 1 : 0);
}

/* Colours without red, which marks a disturbed block. */
static const char *study_svg_block_color(size_t configuration)
{
    static const char *const own[] = {PRN_SVG_BLUE, PRN_SVG_ORANGE, PRN_SVG_GREEN, WORKERS_COLOR,
                                      "#0891b2",    "#a16207",      "#be185d",     "#475569"};
    return own[configuration % (sizeof own / sizeof *own)];
}

/* Draws each block's median relative to its configuration's, over time; disturbed and failed blocks in red. */
static void draw_timeline(prn_out *out, const prony_study *s)
{
    int64_t begin = s->block_count ? s->blocks[0].before.time_ns : 0, end = begin + 1000000000;
    double low = -0.02, high = 0.02;
    for (size_t i = 0; i < s->block_count; i++) {
        const prn_study_block *b = &s->blocks[i];
        double median = s->results[b->configuration].median_ns;
        if (b->before.time_ns < begin) begin = b->before.time_ns;
        if (b->after.time_ns > end) end = b->after.time_ns;
        if (b->failure || !(median > 0)) continue;
        const double slower = prn_study_block_median(b) / median - 1;
        low = fmin(low, slower * 1.1);
        high = fmin(fmax(high, slower * 1.1), TOP_OF_TIMELINE);
    }
    prn_axis x = {0, (double)(end - begin), LEFT, RIGHT, false, false}, y = {low, high, BOTTOM, TOP, false, false};
    prn_svg_begin(out, WIDTH, study_svg_height(s->configuration_count), "Blocks in order of time",
                  "each process's median relative to its configuration's; red ring: disturbed; at the top edge: slower "
                  "than shown");
    prn_svg_axis_x(out, &x, TOP, BOTTOM, tick_seconds, "seconds since the study began");
    prn_svg_axis_y(out, &y, LEFT, RIGHT, prn_tick_percent, "slower than its median");
    for (size_t i = 0; i < s->block_count; i++) {
        const prn_study_block *b = &s->blocks[i];
        double median = s->results[b->configuration].median_ns,
               at = prn_axis_at(&x, (double)(b->before.time_ns - begin));
        char label[PRN_STUDY_LABEL_BYTES], tip[300];
        snprintf(tip, sizeof tip, "block %zu, %s%s%.100s", i, prn_study_label(s, b->configuration, label),
                 b->failure     ? ": "
                 : b->disturbed ? ": "
                                : "",
                 b->failure     ? b->failure
                 : b->disturbed ? b->disturbed
                                : "");
        if (b->failure || !(median > 0)) {
            prn_svg_rect(out, at - 3, BOTTOM - 8, 6, 6, PRN_SVG_RED, PRN_SVG_TIP(tip));
            continue;
        }
        double up = prn_axis_at(&y, fmin(prn_study_block_median(b) / median - 1, high));
        if (b->disturbed) prn_svg_circle(out, at, up, 6.5, PRN_SVG_RED, NULL);
        prn_svg_circle(out, at, up, 4, study_svg_block_color(b->configuration), PRN_SVG_TIP(tip));
    }
    for (size_t i = 0; i < s->configuration_count; i++) {
        char label[PRN_STUDY_LABEL_BYTES];
        prn_svg_circle(out, RIGHT + 18, TOP + 8 + KEY_LINE * (double)i, 4, study_svg_block_color(i), NULL);
        prn_svg_text_fit(out, RIGHT + 28, TOP + 12 + KEY_LINE * (double)i, PRN_ANCHOR_START, 11, PRN_SVG_INK,
                         prn_study_label(s, i, label), 125);
    }
    prn_svg_end(out);
}

const char *const *prony_study_chart_names(void)
{
    static const char *const names[] = {"speedup", "efficiency", "operators", "timeline", NULL};
    return names;
}

prony_status prn_study_write_svg(const prony_study *s, const prony_write_options *options, prony_write_fn write,
                                 void *user, prony_error *error)
{
    const char *name = options->chart ? options->chart : "speedup";
    prn_out out;
    prn_out_begin(&out, write, user, error);
    if (strcmp(name, "speedup") == 0)
        draw_over_threads(&out, s, false);
    else if (strcmp(name, "efficiency") == 0)
        draw_over_threads(&out, s, true);
    else if (strcmp(name, "operators") == 0)
        draw_operators(&out, s);
    else if (strcmp(name, "timeline") == 0)
        draw_timeline(&out, s);
    else
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "unknown chart \"%s\"; known: speedup, efficiency, operators and timeline", name);
    return prn_out_end(&out);
}
