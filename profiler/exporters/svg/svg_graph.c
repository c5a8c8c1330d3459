/* The model's graph, drawn without Graphviz: a row per depth (longest path from an input), vertices ordered within a
 * row by the mean position of their inputs, edges that skip rows bent to the side. Layers evaluated at bind time are
 * left out. Linear in layers and edges but for the sort of each row.
 */
#include "profiler/exporters/nested_lines.h"
#include "profiler/exporters/svg/report_svg.h"
#include "profiler/exporters/color_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BOX_WIDTH = 170, BOX_HEIGHT = 40, GAP_X = 24, GAP_Y = 28, MARGIN = 60, TOP = 70 };

typedef struct vertex {
    double x; /* middle */
    uint32_t layer, depth;
    double wanted;
} vertex;

typedef struct layout {
    const prony_report *report;
    vertex *vertices; /* by depth, then position; `of` maps a layer to its vertex */
    uint32_t *of;     /* PRONY_NO_INDEX: left out */
    size_t count;
    double left, right;
    uint32_t rows;
} layout;

static int by_depth(const void *left, const void *right)
{
    const vertex *a = left, *b = right;
    if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
    return a->layer < b->layer ? -1 : a->layer > b->layer;
}

static int by_wish(const void *left, const void *right)
{
    const vertex *a = left, *b = right;
    if (a->wanted < b->wanted || a->wanted > b->wanted) return a->wanted < b->wanted ? -1 : 1;
    return a->layer < b->layer ? -1 : a->layer > b->layer;
}

/* The layer that makes input `k`, if it is drawn and stands earlier. */
static uint32_t source_of(const layout *g, const prony_layer_row *l, size_t k)
{
    uint32_t from = l->sources ? l->sources[k] : PRONY_NO_INDEX;
    return from < l->index && g->of[from] != PRONY_NO_INDEX ? from : PRONY_NO_INDEX;
}

static void find_depths(layout *g)
{
    const prony_report *r = g->report;
    for (uint32_t i = 0; i < r->layer_count; i++) {
        const prony_layer_row *l = &r->layers[i];
        g->of[i] = PRONY_NO_INDEX;
        if (l->folded) continue;
        vertex v = {.layer = i};
        for (size_t k = 0; k < l->input_count; k++) {
            uint32_t from = source_of(g, l, k);
            if (from != PRONY_NO_INDEX && g->vertices[g->of[from]].depth >= v.depth)
                v.depth = g->vertices[g->of[from]].depth + 1;
        }
        g->of[i] = (uint32_t)g->count;
        g->vertices[g->count++] = v;
        if (v.depth + 1 > g->rows) g->rows = v.depth + 1;
    }
    qsort(g->vertices, g->count, sizeof *g->vertices, by_depth);
    for (size_t v = 0; v < g->count; v++) g->of[g->vertices[v].layer] = (uint32_t)v;
}

/* Places one row close to its vertices' preferred positions; rows above are done. */
static void place_row(layout *g, vertex *row, size_t count)
{
    double mean_wish = 0, mean_place = 0;
    for (size_t i = 0; i < count; i++) {
        const prony_layer_row *l = &g->report->layers[row[i].layer];
        double sum = 0;
        int found = 0;
        for (size_t k = 0; k < l->input_count; k++) {
            uint32_t from = source_of(g, l, k);
            if (from == PRONY_NO_INDEX) continue;
            sum += g->vertices[g->of[from]].x;
            found++;
        }
        row[i].wanted = found ? sum / found : 0;
        mean_wish += row[i].wanted / (double)count;
    }
    qsort(row, count, sizeof *row, by_wish);
    for (size_t i = 0; i < count; i++) {
        double least = i ? row[i - 1].x + BOX_WIDTH + GAP_X : row[i].wanted;
        row[i].x = row[i].wanted > least ? row[i].wanted : least;
        mean_place += row[i].x / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        row[i].x += mean_wish - mean_place;
        g->of[row[i].layer] = (uint32_t)(&row[i] - g->vertices);
        if (row[i].x - BOX_WIDTH / 2.0 < g->left) g->left = row[i].x - BOX_WIDTH / 2.0;
        if (row[i].x + BOX_WIDTH / 2.0 > g->right) g->right = row[i].x + BOX_WIDTH / 2.0;
    }
}

static double top_of(uint32_t depth)
{
    return TOP + (double)depth * (BOX_HEIGHT + GAP_Y);
}

static void draw_edge(prn_out *out, const vertex *from, const vertex *to, double shift)
{
    double x1 = from->x + shift, y1 = top_of(from->depth) + BOX_HEIGHT, x2 = to->x + shift, y2 = top_of(to->depth);
    double middle = (y1 + y2) / 2, span = (double)(to->depth - from->depth);
    prn_out_text(out, "<path d=\"");
    prn_svg_point(out, 'M', x1, y1);
    if (span < 2) {
        prn_svg_point(out, 'C', x1, middle), prn_out_text(out, " ");
        prn_svg_point(out, ' ', x2, middle), prn_svg_point(out, ' ', x2, y2);
    } else {
        /* A cubic reaches three quarters of the way to its control points. */
        double side = fmax(x1, x2) + (BOX_WIDTH / 2.0 + 10 + fmin(3 * span, 40)) * 4 / 3;
        prn_svg_point(out, 'C', side, y1 + GAP_Y), prn_out_text(out, " ");
        prn_svg_point(out, ' ', side, y2 - GAP_Y), prn_svg_point(out, ' ', x2, y2);
    }
    prn_out_text(out, "\"/>\n");
}

static void draw_box(prn_out *out, const layout *g, const vertex *v, double shift, double most)
{
    const prony_report *r = g->report;
    const prony_layer_row *l = &r->layers[v->layer];
    prn_number_text number, percent;
    prn_color color;
    char tip[400], line[100];
    double heat = prn_color_map_layer(r, l), level = most > 0 ? sqrt(heat / most) : 0;
    double left = v->x + shift - BOX_WIDTH / 2.0, top = top_of(v->depth);
    const char *ink = level > 0.6 ? "#ffffff" : PRN_SVG_INK;
    prn_number_percent(percent, heat);
    if (l->measured)
        snprintf(line, sizeof line, "%s  %s %%%s", prn_number_time(number, l->time.mean_ns, 3, " "), percent,
                 l->time_attributed ? " ~" : "");
    else
        snprintf(line, sizeof line, "%sFLOPs  %s %%", prn_number_si(number, (double)l->cost.flops, 3, " "), percent);
    size_t first, inside = prn_nested_of(r->nested_layers, r->nested_layer_count, l->index, &first);
    int used = snprintf(tip, sizeof tip, "%.300s (layer %u)", l->name, l->index);
    if (inside) snprintf(tip + used, sizeof tip - (size_t)used, ", %zu nodes in subgraphs", inside);
    prn_svg_rect(out, left, top, BOX_WIDTH, BOX_HEIGHT, prn_color_map_color(color, level),
                 &(prn_svg_mark){tip, "layer", v->layer});
    prn_svg_text_fit(out, left + BOX_WIDTH / 2.0, top + 16, PRN_ANCHOR_MIDDLE, 11, ink, l->op, BOX_WIDTH - 8);
    if (heat > 0) prn_svg_text(out, left + BOX_WIDTH / 2.0, top + 32, PRN_ANCHOR_MIDDLE, 10, ink, line);
}

static void svg_graph_draw(prn_out *out, const layout *g)
{
    const prony_report *r = g->report;
    double shift = MARGIN - g->left, width = g->right - g->left + 2 * MARGIN + 40, most = prn_color_map_max(r);
    char note[200];
    snprintf(note, sizeof note, "%.80s: %zu layers, coloured by share of the %s; ~ estimated", prn_report_title(r),
             g->count, prn_report_stamped(r) ? "time" : "FLOPs");
    prn_svg_begin(out, width < 480 ? 480 : width, top_of(g->rows) + 20, "Graph", note);
    prn_out_text(out, "<g fill=\"none\" stroke=\"#9ca3af\">\n");
    for (size_t v = 0; v < g->count; v++) {
        const prony_layer_row *l = &r->layers[g->vertices[v].layer];
        for (size_t k = 0; k < l->input_count; k++) {
            uint32_t from = source_of(g, l, k);
            if (from != PRONY_NO_INDEX) draw_edge(out, &g->vertices[g->of[from]], &g->vertices[v], shift);
        }
    }
    prn_out_text(out, "</g>\n<g stroke=\"#6b7280\" stroke-width=\"0.5\">\n");
    for (size_t v = 0; v < g->count; v++) draw_box(out, g, &g->vertices[v], shift, most);
    prn_out_text(out, "</g>\n");
    prn_svg_end(out);
}

prony_status prn_svg_graph(prn_out *out, const prony_report *r, prony_error *error)
{
    layout g = {.report = r, .left = 0, .right = BOX_WIDTH};
    g.vertices = prn_calloc(r->layer_count, sizeof *g.vertices);
    g.of = prn_calloc(r->layer_count, sizeof *g.of);
    prony_status status = g.vertices && g.of ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        find_depths(&g);
        for (size_t begin = 0, end; begin < g.count; begin = end) {
            for (end = begin + 1; end < g.count && g.vertices[end].depth == g.vertices[begin].depth;) end++;
            place_row(&g, g.vertices + begin, end - begin);
        }
        svg_graph_draw(out, &g);
    }
    prn_free(g.vertices);
    prn_free(g.of);
    return status;
}
