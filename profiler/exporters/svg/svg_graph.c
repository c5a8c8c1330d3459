/* The model's graph, drawn without Graphviz: a row per depth (longest path from an input), vertices ordered within a
 * row by the mean position of their inputs, edges that skip rows bent to the side. A deep graph folds into columns, so
 * that it fits a page. Layers evaluated at bind time are left out. Linear in layers and edges but for the sort of each
 * row and the number of columns tried.
 */
#include "profiler/exporters/nested_lines.h"
#include "profiler/exporters/svg/report_svg.h"
#include "profiler/exporters/color_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BOX_WIDTH = 170, BOX_HEIGHT = 40, GAP_X = 24, GAP_Y = 28, MARGIN = 60, TOP = 70, COLUMN_GAP = 70 };
enum { UNFOLDED_ROWS = 16, LEAST_COLUMN = 4 /* rows; chosen by looking at graphs of 13 to 3000 layers */ };
#define PAGE_SHAPE 1.3 /* width over height that folding aims at: a page on its side */

typedef struct vertex {
    double x; /* middle */
    uint32_t layer, depth;
    double wanted;
} vertex;

/* All vertices of one depth. */
typedef struct graph_row {
    double low, high;  /* the extent of its boxes */
    double shift, top; /* of its column: added to x; the boxes' upper edge */
    double gap;        /* middle of the gap before its column */
    size_t crossing;   /* edges from this row or above to a row below */
    uint32_t column;
} graph_row;

typedef struct layout {
    const prony_report *report;
    vertex *vertices; /* by depth, then position; `of` maps a layer to its vertex */
    uint32_t *of;     /* PRONY_NO_INDEX: left out */
    size_t count;
    graph_row *rows;
    uint32_t row_count;
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
        if (v.depth + 1 > g->row_count) g->row_count = v.depth + 1;
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
    }
    g->rows[row->depth].low = row[0].x - BOX_WIDTH / 2.0;
    g->rows[row->depth].high = row[count - 1].x + BOX_WIDTH / 2.0;
}

static void count_crossings(layout *g)
{
    for (size_t v = 0; v < g->count; v++) {
        const prony_layer_row *l = &g->report->layers[g->vertices[v].layer];
        for (size_t k = 0; k < l->input_count; k++) {
            uint32_t from = source_of(g, l, k);
            if (from == PRONY_NO_INDEX) continue;
            g->rows[g->vertices[g->of[from]].depth].crossing++;
            g->rows[g->vertices[v].depth].crossing--; /* wraps; the sums below are not negative */
        }
    }
    for (uint32_t r = 1; r < g->row_count; r++) g->rows[r].crossing += g->rows[r - 1].crossing;
}

/* Folds the rows into `count` columns of about the same height, each ending where few edges cross. Returns the width;
 * *height gets the highest column's. */
static double fold(layout *g, uint32_t count, double *height)
{
    double across = 0;
    *height = 0;
    for (uint32_t c = 0, begin = 0, end; c < count; c++, begin = end) {
        const uint32_t even = (uint32_t)((uint64_t)(c + 1) * g->row_count / count), reach = g->row_count / count / 6;
        double left = INFINITY, right = -INFINITY;
        end = even;
        for (uint32_t r = even; c + 1 < count && r + reach > even && r > begin + 1; r--)
            if (g->rows[r - 1].crossing < g->rows[end - 1].crossing) end = r;
        for (uint32_t r = begin; r < end; r++) {
            left = fmin(left, g->rows[r].low);
            right = fmax(right, g->rows[r].high);
        }
        for (uint32_t r = begin; r < end; r++) {
            g->rows[r].shift = MARGIN + across - left;
            g->rows[r].top = TOP + (double)(r - begin) * (BOX_HEIGHT + GAP_Y);
            g->rows[r].gap = MARGIN + across - COLUMN_GAP / 2.0;
            g->rows[r].column = c;
        }
        across += right - left + COLUMN_GAP;
        *height = fmax(*height, (double)(end - begin) * (BOX_HEIGHT + GAP_Y));
    }
    return across - COLUMN_GAP;
}

static void draw_edge(prn_out *out, const layout *g, const vertex *from, const vertex *to)
{
    const graph_row *above = &g->rows[from->depth], *below = &g->rows[to->depth];
    double x1 = from->x + above->shift, y1 = above->top + BOX_HEIGHT, x2 = to->x + below->shift, y2 = below->top;
    double middle = (y1 + y2) / 2, span = (double)(to->depth - from->depth);
    prn_out_text(out, "<path d=\"");
    prn_svg_point(out, 'M', x1, y1);
    if (above->column != below->column) {
        /* Up through the gap before the column, not behind boxes. */
        prn_svg_point(out, 'C', x1, y1 + GAP_Y), prn_out_text(out, " ");
        prn_svg_point(out, ' ', below->gap, y1 + GAP_Y), prn_svg_point(out, ' ', below->gap, middle);
        prn_svg_point(out, 'C', below->gap, y2 - GAP_Y), prn_out_text(out, " ");
        prn_svg_point(out, ' ', x2, y2 - GAP_Y), prn_svg_point(out, ' ', x2, y2);
    } else if (span < 2) {
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

static void draw_box(prn_out *out, const layout *g, const vertex *v, double most)
{
    const prony_report *r = g->report;
    const prony_layer_row *l = &r->layers[v->layer];
    prn_number_text number, percent;
    prn_color color;
    char tip[400], line[100];
    double heat = prn_color_map_layer(r, l), level = most > 0 ? sqrt(heat / most) : 0;
    double left = v->x + g->rows[v->depth].shift - BOX_WIDTH / 2.0, top = g->rows[v->depth].top;
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

static void svg_graph_draw(prn_out *out, const layout *g, double width, double height)
{
    const prony_report *r = g->report;
    const double most = prn_color_map_max(r);
    width += 2 * MARGIN + 40;
    char note[200];
    snprintf(note, sizeof note, "%.80s: %zu layers, coloured by share of the %s; ~ estimated", prn_report_title(r),
             g->count, prn_report_stamped(r) ? "time" : "FLOPs");
    prn_svg_begin(out, width < 480 ? 480 : width, TOP + height + 20, "Graph", note);
    prn_out_text(out, "<g fill=\"none\" stroke=\"#9ca3af\">\n");
    for (size_t v = 0; v < g->count; v++) {
        const prony_layer_row *l = &r->layers[g->vertices[v].layer];
        for (size_t k = 0; k < l->input_count; k++) {
            uint32_t from = source_of(g, l, k);
            if (from != PRONY_NO_INDEX) draw_edge(out, g, &g->vertices[g->of[from]], &g->vertices[v]);
        }
    }
    prn_out_text(out, "</g>\n<g stroke=\"#6b7280\" stroke-width=\"0.5\">\n");
    for (size_t v = 0; v < g->count; v++) draw_box(out, g, &g->vertices[v], most);
    prn_out_text(out, "</g>\n");
    prn_svg_end(out);
}

prony_status prn_svg_graph(prn_out *out, const prony_report *r, prony_error *error)
{
    layout g = {.report = r};
    double width = 0, height = 0;
    g.vertices = prn_calloc(r->layer_count, sizeof *g.vertices);
    g.of = prn_calloc(r->layer_count, sizeof *g.of);
    g.rows = prn_calloc(r->layer_count, sizeof *g.rows);
    prony_status status = g.vertices && g.of && g.rows ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        find_depths(&g);
        for (size_t begin = 0, end; begin < g.count; begin = end) {
            for (end = begin + 1; end < g.count && g.vertices[end].depth == g.vertices[begin].depth;) end++;
            place_row(&g, g.vertices + begin, end - begin);
        }
        count_crossings(&g);
        for (uint32_t count = 1; count == 1 || g.row_count / count >= LEAST_COLUMN; count++) {
            width = g.row_count ? fold(&g, count, &height) : 0;
            if (g.row_count <= UNFOLDED_ROWS || width >= PAGE_SHAPE * height) break;
        }
        svg_graph_draw(out, &g, width, height);
    }
    prn_free(g.vertices);
    prn_free(g.of);
    prn_free(g.rows);
    return status;
}
