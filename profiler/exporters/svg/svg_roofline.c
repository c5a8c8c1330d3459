/* The roofline: each operator's rate over its arithmetic intensity, below the machine's roofs. Operators without FLOPs
 * cannot be drawn on logarithmic axes and are counted in the note. Labels never overlap: first the roofs', then those
 * of the slowest operators, as many as fit. */
#include "profiler/exporters/svg/report_svg.h"
#include "profiler/exporters/svg/svg_labels.h"
#include "profiler/report/type_summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = 80, RIGHT = 730, TOP = 80, BOTTOM = 440, MOST_NAMES = 12, LINE_SPOTS = 60, MOST_LINES = 8 };
enum { GROUPS = 7 /* the types that take most, and the others */, KEY_WIDTH = 96, ROOF_GROUP = 100 };
enum { MOST_DISCS = 1000 /* keeps the page of a large model small; operators beyond are dots of one path */ };
#define LABEL_SIZE 11
#define NAME_SIZE 10
#define LEAST_NAMED 0.005 /* least share of the time for a label; chosen without measurement */

typedef struct roof_point {
    double intensity, rate;
} roof_point;

typedef struct ranked_row {
    double share;
    uint32_t row;
} ranked_row;

/* The chart: discs in the order of `rows`, the largest share first. */
typedef struct roof_chart {
    const prony_report *report;
    prn_axis x, y;
    prn_spot *spots;
    ranked_row *rows;
    size_t count, spot_room;
    prn_labels labels;
    prn_type_row *types; /* those that take most time first */
    size_t type_count;
} roof_chart;

static const char *const group_colors[GROUPS] = {"#3b78c4", "#e0862a", "#2f9e6b", "#b55bb0",
                                                 "#c2453c", "#3aa6b0", "#8892a0"};

static bool point_of(const prony_operator_row *o, roof_point *p)
{
    double bytes = (double)o->cost.bytes_read + (double)o->cost.bytes_written;
    if (!o->measured || o->cost.flops == 0 || bytes <= 0 || o->time.mean_ns <= 0) return false;
    *p = (roof_point){prn_operator_flops(o) / bytes, prn_operator_flops(o) / ((double)o->time.mean_ns / 1e9)};
    return true;
}

static void svg_roofline_find_ranges(const prony_report *r, prn_axis *x, prn_axis *y)
{
    double low_x = 1, high_x = 10, low_y = 1e9, high_y = 1e9;
    for (size_t i = 0; i < r->operator_count; i++) {
        roof_point p;
        if (!point_of(&r->operators[i], &p)) continue;
        low_x = fmin(low_x, p.intensity);
        high_x = fmax(high_x, p.intensity);
        low_y = fmin(low_y, p.rate);
        high_y = fmax(high_y, p.rate);
    }
    high_y = fmax(high_y, prn_report_highest_peak(r));
    *x = (prn_axis){pow(10, floor(log10(low_x))), pow(10, ceil(log10(high_x * 1.2))), LEFT, RIGHT, true, false};
    *y = (prn_axis){pow(10, floor(log10(low_y))), pow(10, ceil(log10(high_y * 1.2))), BOTTOM, TOP, true, false};
}

/* Tries positions along the line, from its low end up, below and above it. */
static void label_bandwidth(prn_out *out, roof_chart *c, int roof, double bandwidth, double begin, double end,
                            const char *label)
{
    enum { PLACES = 40 };
    for (int i = 0; i < 2 * PLACES; i++) {
        int place = i / 2;
        double at = begin * pow(end / begin, 0.02 + 0.9 * place / PLACES);
        double x = prn_axis_at(&c->x, at), y = prn_axis_at(&c->y, at * bandwidth);
        prn_box box = prn_label_box(label, LABEL_SIZE, 0, 0);
        double width = box.right;
        box = prn_label_box(label, LABEL_SIZE, i % 2 ? x - width - 10 : x + 12, i % 2 ? y - 2 : y + 7);
        if (!prn_labels_take(&c->labels, &box)) continue;
        prn_out_format(out, "<g class=\"key\" data-of=\"%d\">\n", roof);
        prn_svg_text(out, i % 2 ? box.right : box.left, i % 2 ? y - 2 : y + 7,
                     i % 2 ? PRN_ANCHOR_END : PRN_ANCHOR_START, LABEL_SIZE, PRN_SVG_GREEN, label);
        prn_out_text(out, "</g>\n");
        return;
    }
}

/* Adds spots along a roof, as many as fit, so that labels do not hide it. */
static void keep_clear(roof_chart *c, double x1, double y1, double x2, double y2)
{
    for (int i = 0; i <= LINE_SPOTS && c->labels.spot_count < c->spot_room; i++)
        c->spots[c->labels.spot_count++] =
            (prn_spot){x1 + (x2 - x1) * i / LINE_SPOTS, y1 + (y2 - y1) * i / LINE_SPOTS, 1};
}

static void roof_line(prn_out *out, int roof, double x1, double y1, double x2, double y2)
{
    prn_out_format(out, "<g data-group=\"%d\">\n", roof);
    prn_svg_line(out, x1, y1, x2, y2, PRN_SVG_GREEN, 1.5, false);
    prn_out_text(out, "</g>\n");
}

/* A slanted line up to the compute roof, cut at the chart's edges. */
static void draw_bandwidth(prn_out *out, roof_chart *c, int roof, const prn_roof_memory *memory, double peak)
{
    double bandwidth = memory->bytes_per_second;
    double begin = fmax(c->x.low, c->y.low / bandwidth),
           end = fmin(c->x.high, (peak > 0 ? peak : c->y.high) / bandwidth);
    if (!(bandwidth > 0) || end <= begin) return;
    prn_number_text number;
    char label[80];
    snprintf(label, sizeof label, "%.16s %sB/s", memory->level, prn_number_si(number, bandwidth, 3, " "));
    roof_line(out, roof, prn_axis_at(&c->x, begin), prn_axis_at(&c->y, begin * bandwidth), prn_axis_at(&c->x, end),
              prn_axis_at(&c->y, end * bandwidth));
    label_bandwidth(out, c, roof, bandwidth, begin, end, label);
    keep_clear(c, prn_axis_at(&c->x, begin), prn_axis_at(&c->y, begin * bandwidth), prn_axis_at(&c->x, end),
               prn_axis_at(&c->y, end * bandwidth));
}

static void draw_roofs(prn_out *out, roof_chart *c)
{
    const prony_report *r = c->report;
    double peak = prn_report_highest_peak(r);
    if (peak > 0) {
        prn_number_text number;
        char label[80];
        double y = prn_axis_at(&c->y, peak);
        snprintf(label, sizeof label, "peak %sFLOP/s", prn_number_si(number, peak, 3, " "));
        prn_box box = prn_label_box(label, LABEL_SIZE, 0, y - 6);
        box = prn_label_box(label, LABEL_SIZE, c->x.to - 4 - box.right, y - 6);
        roof_line(out, ROOF_GROUP, c->x.from, y, c->x.to, y);
        prn_out_format(out, "<g class=\"key\" data-of=\"%d\">\n", ROOF_GROUP);
        if (prn_labels_take(&c->labels, &box))
            prn_svg_text(out, c->x.to - 4, y - 6, PRN_ANCHOR_END, LABEL_SIZE, PRN_SVG_GREEN, label);
        prn_out_text(out, "</g>\n");
        keep_clear(c, c->x.from, y, c->x.to, y);
    }
    for (size_t i = 0; r->has_roof && i < r->roof.memory_count; i++) {
        const prn_roof_memory *m = &r->roof.memory[i];
        double best = prn_report_roof_bandwidth(r, m->level);
        if (best < m->bytes_per_second || best > m->bytes_per_second) continue; /* of another thread count */
        draw_bandwidth(out, c, ROOF_GROUP + 1 + (int)i, m, peak);
    }
}

static int largest_first(const void *left, const void *right)
{
    const ranked_row *a = left, *b = right;
    if (a->share > b->share || a->share < b->share) return a->share > b->share ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static void find_spots(roof_chart *c)
{
    const prony_report *r = c->report;
    roof_point p;
    for (uint32_t i = 0; i < r->operator_count; i++)
        if (point_of(&r->operators[i], &p)) c->rows[c->count++] = (ranked_row){r->operators[i].share, i};
    qsort(c->rows, c->count, sizeof *c->rows, largest_first);
    for (size_t i = 0; i < c->count; i++) {
        if (!point_of(&r->operators[c->rows[i].row], &p)) continue;
        c->spots[i] =
            (prn_spot){prn_axis_at(&c->x, p.intensity), prn_axis_at(&c->y, p.rate), 3 + 22 * sqrt(c->rows[i].share)};
    }
    c->labels.spots = c->spots;
    c->labels.spot_count = c->count;
}

/* Number of an operator's type among those with a colour. */
static size_t group_of(const roof_chart *c, const prony_operator_row *o)
{
    for (size_t i = 0; i < c->type_count && i + 1 < GROUPS; i++)
        if (strcmp(c->types[i].op, o->op) == 0) return i;
    return GROUPS - 1;
}

static void draw_disc(prn_out *out, const roof_chart *c, size_t i)
{
    const prony_operator_row *o = &c->report->operators[c->rows[i].row];
    roof_point p;
    prn_number_text rate, time;
    char tip[300];
    if (!point_of(o, &p)) return;
    snprintf(tip, sizeof tip, "%.120s [%.60s] %sFLOP/s, %s", o->name, o->kernel, prn_number_si(rate, p.rate, 3, " "),
             prn_number_time(time, o->time.mean_ns, 3, " "));
    prn_svg_circle(out, c->spots[i].x, c->spots[i].y, c->spots[i].radius, NULL,
                   &(prn_svg_mark){tip, "operator", o->index});
}

/* Draws the operators of each type as a group, which the page can hide; then the key below the chart. Beyond
 * MOST_DISCS, operators are dots of one path, without a tip. */
static void svg_roofline_draw_points(prn_out *out, const roof_chart *c)
{
    double key = LEFT;
    for (size_t group = 0; group < GROUPS; group++) {
        const char *color = group_colors[group];
        size_t discs = 0, dots = 0;
        prn_out_format(out, "<g data-group=\"%zu\" fill=\"%s\" fill-opacity=\"0.55\" stroke=\"%s\">\n", group, color,
                       color);
        for (size_t i = 0; i < c->count; i++) {
            if (group_of(c, &c->report->operators[c->rows[i].row]) != group) continue;
            if (i < MOST_DISCS) {
                draw_disc(out, c, i);
                discs++;
                continue;
            }
            if (!dots++)
                prn_out_text(out, "<path stroke-width=\"6\" stroke-linecap=\"round\" stroke-opacity=\"0.55\" d=\"");
            prn_svg_point(out, 'M', c->spots[i].x, c->spots[i].y);
            prn_out_text(out, "h0");
        }
        prn_out_text(out, dots ? "\"/>\n</g>\n" : "</g>\n");
        if (!discs && !dots) continue;
        prn_out_format(out, "<g class=\"key\" data-of=\"%zu\">\n", group);
        prn_svg_rect(out, key, BOTTOM + 48, 10, 10, color, NULL);
        prn_svg_text_fit(out, key + 15, BOTTOM + 57, PRN_ANCHOR_START, LABEL_SIZE, PRN_SVG_INK,
                         group + 1 < GROUPS ? c->types[group].op : "other types", KEY_WIDTH - 18);
        prn_out_text(out, "</g>\n");
        key += KEY_WIDTH;
    }
}

/* The last two parts of a path, if they are short; else its end. */
static const char *short_name(const char *name)
{
    const char *end = name + strlen(name), *at = end;
    int slashes = 0;
    while (at > name && end - at < 24) {
        if (at[-1] == '/' && ++slashes == 2) break;
        at--;
    }
    while (at < end && ((unsigned char)*at & 0xc0) == 0x80) at++; /* not within a character */
    return at;
}

static void name_points(prn_out *out, roof_chart *c)
{
    for (size_t i = 0; i < c->count && i < MOST_NAMES; i++) {
        const prony_operator_row *o = &c->report->operators[c->rows[i].row];
        prn_number_text percent;
        char label[96];
        if (c->rows[i].share < LEAST_NAMED) break;
        snprintf(label, sizeof label, "%s  %s %%", short_name(o->name && *o->name ? o->name : o->op),
                 prn_number_percent(percent, o->share));
        prn_labels_draw(&c->labels, out, &c->spots[i], NAME_SIZE, PRN_SVG_INK, label);
    }
}

static void draw_chart(prn_out *out, roof_chart *c, size_t left_out)
{
    const prony_report *r = c->report;
    char note[240];
    snprintf(note, sizeof note,
             "%.40s, %d threads: %zu operators, area by share of time; %zu without FLOPs not shown%s",
             prn_report_title(r), prn_report_threads(r), c->count, left_out,
             r->has_roof ? "" : ". No roofs: run `prony machine` once");
    prn_svg_begin(out, RIGHT + 30, BOTTOM + 70, "Roofline", note);
    prn_svg_axis_y(out, &c->y, LEFT, RIGHT, prn_tick_count, "FLOP/s");
    prn_svg_axis_x(out, &c->x, TOP, BOTTOM, prn_tick_count, "arithmetic intensity, FLOP per byte");
    svg_roofline_draw_points(out, c);
    draw_roofs(out, c);
    name_points(out, c);
    prn_svg_end(out);
}

prony_status prn_svg_roofline(prn_out *out, const prony_report *r, prony_error *error)
{
    roof_chart *c = prn_calloc(1, sizeof *c);
    prony_status status = PRONY_OK;
    if (!c) return prn_no_memory(error);
    c->report = r;
    c->labels.within = (prn_box){LEFT + 2, TOP + 2, RIGHT, BOTTOM - 2};
    c->spot_room = r->operator_count + (size_t)MOST_LINES * (LINE_SPOTS + 1);
    c->spots = prn_calloc(c->spot_room, sizeof *c->spots);
    c->rows = prn_calloc(r->operator_count + 1, sizeof *c->rows);
    status = prn_type_summary(r, &c->types, &c->type_count, error);
    if (status == PRONY_OK && c->spots && c->rows) {
        svg_roofline_find_ranges(r, &c->x, &c->y);
        find_spots(c);
        draw_chart(out, c, r->operator_count - c->count);
    } else if (status == PRONY_OK) {
        status = prn_no_memory(error);
    }
    prn_free(c->spots);
    prn_free(c->rows);
    prn_free(c->types);
    prn_free(c);
    return status;
}
