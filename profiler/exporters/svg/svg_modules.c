/* The module tree as an icicle, layers as its leaves: each part below its module, as wide as its share of the time (of
 * the FLOPs if nothing was measured). The page has such a picture for each metric, and enters a module by zooming.
 * Parts that are too many to draw stand together at the end of their module. */
#include "profiler/exporters/svg/report_svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = 16, WIDTH = 928, TOP = 70, ROW = 34, DEEPEST_ROW = 12 };
enum { MOST_PARTS = 300 /* of one picture; keeps the page of a model of 10,000 layers small */ };
#define UNDIVIDED_SHARE 0.6 /* a module with more than that leaves the colours to its own modules */

typedef enum metric { METRIC_TIME, METRIC_FLOPS, METRIC_PARAMETERS, METRICS } metric;
static const char *const metric_names[] = {"time", "FLOPs", "parameters"};

typedef struct part {
    double weight, small;     /* its own; of parts inside of it that are not drawn by themselves */
    size_t few;               /* number of these */
    double left, next, right; /* its extent, and where its next part begins */
    int color, children;      /* -1: no colour of its own */
} part;

/* Parts of modules, then of layers. `by_path` orders the modules, so that a layer finds its own. */
typedef struct icicle {
    const prony_report *report;
    metric by;
    part *parts;
    const prony_module_row **by_path;
    size_t count;
    double whole, least; /* weight of the root; of the smallest part that is drawn */
} icicle;

static double weight_of(const icicle *g, size_t i)
{
    const prony_report *r = g->report;
    const prony_module_row *m = i < r->module_count ? &r->modules[i] : NULL;
    const prony_layer_row *l = m ? NULL : &r->layers[i - r->module_count];
    if (g->by == METRIC_FLOPS) return (double)(m ? m->flops : l->cost.flops);
    if (g->by == METRIC_PARAMETERS) return (double)(m ? m->parameters : l->cost.parameters);
    const int64_t ns = m ? m->time_ns : l->measured ? l->time.mean_ns : 0;
    return ns > 0 ? (double)ns : 0;
}

static int by_path(const void *left, const void *right)
{
    return strcmp((*(const prony_module_row *const *)left)->path, (*(const prony_module_row *const *)right)->path);
}

static int heavier_first(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a > b ? -1 : a < b;
}

/* The module around a part; PRONY_NO_INDEX: it is the root, or its module is not among the rows. */
static size_t module_around(const icicle *g, size_t i)
{
    const prony_report *r = g->report;
    if (i < r->module_count) return r->modules[i].parent < i ? r->modules[i].parent : PRONY_NO_INDEX;
    const char *path = r->layers[i - r->module_count].module;
    const prony_module_row wanted = {.path = path ? path : ""}, *key = &wanted;
    const prony_module_row **found = bsearch(&key, g->by_path, r->module_count, sizeof(void *), by_path);
    return found ? (size_t)(*found - r->modules) : PRONY_NO_INDEX;
}

/* Sets weights and the least weight that is drawn. */
static prony_status svg_modules_weigh(icicle *g, prony_error *error)
{
    double *sorted = prn_calloc(g->count, sizeof *sorted);
    if (!sorted) return prn_no_memory(error);
    for (size_t i = 0; i < g->count; i++) sorted[i] = g->parts[i].weight = weight_of(g, i);
    qsort(sorted, g->count, sizeof *sorted, heavier_first);
    g->whole = g->report->module_count ? g->parts[0].weight : 0;
    g->least = g->count > MOST_PARTS ? sorted[MOST_PARTS] : 0;
    prn_free(sorted);
    return PRONY_OK;
}

static const char *last_name(const char *path)
{
    const char *last = strrchr(path, '/');
    return last && last[1] ? last + 1 : path;
}

static void name_part(prn_out *out, const icicle *g, const char *name, const part *p, double y, const char *label)
{
    const double width = p->right - p->left;
    prn_svg_text_fit(out, p->left + 4, y + 14, PRN_ANCHOR_START, 11, PRN_SVG_INK, name, width - 8);
    if (width > 100 && g->whole > 0) prn_svg_text(out, p->left + 4, y + 27, PRN_ANCHOR_START, 10, PRN_SVG_GREY, label);
}

/* Draws a part's rectangle, or its name: names come last, so that no rectangle hides one. */
static void draw_part(prn_out *out, const icicle *g, size_t i, size_t around, bool name)
{
    static const char *const fills[] = {"#dbe7f5", "#c6dcc9", "#f5dfc2", "#e6d3ec", "#f3cfcb", "#cfe8ea"};
    const prony_report *r = g->report;
    const part *p = &g->parts[i];
    const bool module = i < r->module_count;
    const char *path = module ? r->modules[i].path : r->layers[i - r->module_count].name;
    const double y = TOP + (module ? r->modules[i].depth : r->modules[around].depth + 1.0) * ROW;
    prn_number_text number, percent;
    char label[120], tip[480];
    prn_number_percent(percent, p->weight / g->whole);
    if (g->by == METRIC_TIME)
        snprintf(label, sizeof label, "%s  %s %%", prn_number_time(number, (int64_t)p->weight, 3, " "), percent);
    else
        snprintf(label, sizeof label, "%s%s  %s %%", prn_number_si(number, p->weight, 3, " "), metric_names[g->by],
                 percent);
    if (name) {
        name_part(out, g, module && !*path ? prn_report_title(r) : last_name(path), p, y, label);
        return;
    }
    snprintf(tip, sizeof tip, "%.250s: %s", *path ? path : "__root__", label);
    prn_svg_rect(out, p->left, y, p->right - p->left, ROW - 2,
                 !module         ? "#eef0f3"
                 : p->color >= 0 ? fills[p->color % (int)(sizeof fills / sizeof fills[0])]
                                 : "#e0e4ea",
                 &(prn_svg_mark){tip, module ? "module" : "layer", module ? i : i - r->module_count});
}

static bool svg_modules_is_drawn(const icicle *g, size_t i, size_t around)
{
    const prony_report *r = g->report;
    const part *p = &g->parts[i];
    return p->weight > 0 && p->weight >= g->least && (i == 0 || around < r->module_count) && p->right > p->left &&
           (i >= r->module_count ? r->modules[around].depth < DEEPEST_ROW : r->modules[i].depth <= DEEPEST_ROW);
}

/* Gives a part its extent, from the left in its module, and a colour. Modules stand before the modules inside of them,
 * and all of them before the layers, so a part's module is placed before it. */
static void place_part(icicle *g, size_t i, size_t around)
{
    part *p = &g->parts[i], *outer = around < g->report->module_count ? &g->parts[around] : NULL;
    p->color = -1;
    if (i == 0) {
        p->right = LEFT + (g->whole > 0 ? WIDTH : 0);
        p->left = p->next = LEFT;
    } else if (outer && (p->weight < g->least || outer->right <= outer->left)) {
        outer->small += p->weight;
        outer->few += p->weight > 0;
    } else if (outer && g->whole > 0) {
        p->left = p->next = outer->next;
        p->right = outer->next = fmin(outer->right, p->left + p->weight / g->whole * WIDTH);
        if (outer->color >= 0)
            p->color = outer->color;
        else if (p->weight <= UNDIVIDED_SHARE * g->whole)
            p->color = outer->children++;
    }
}

static void draw_rest(prn_out *out, const icicle *g, size_t i)
{
    const part *p = &g->parts[i];
    const prony_module_row *m = &g->report->modules[i];
    char tip[400];
    const double width = fmin(p->right - p->next, p->small / g->whole * WIDTH);
    if (!p->few || width <= 0 || m->depth >= DEEPEST_ROW) return;
    snprintf(tip, sizeof tip, "%zu smaller parts of %.250s", p->few, *m->path ? m->path : "__root__");
    prn_svg_rect(out, p->next, TOP + (m->depth + 1.0) * ROW, width, ROW - 2, "#d5d9de",
                 &(prn_svg_mark){tip, "rest", i});
}

/* Places all parts, then draws rectangles, rests and names. The picture is as high as its deepest part. */
static void draw_icicle(prn_out *out, icicle *g, bool heading)
{
    const prony_report *r = g->report;
    const prn_axis x = {.low = 0, .high = 1, .from = LEFT, .to = LEFT + WIDTH};
    char note[240];
    uint32_t deepest = 0;
    for (size_t i = 0; i < g->count; i++) {
        const size_t around = module_around(g, i);
        place_part(g, i, around);
        if (!svg_modules_is_drawn(g, i, around)) continue;
        const uint32_t depth = i < r->module_count ? r->modules[i].depth : r->modules[around].depth + 1;
        if (depth > deepest) deepest = depth;
    }
    const double bottom = TOP + (deepest + 1.0) * ROW;
    snprintf(note, sizeof note,
             "%.80s: %zu modules, from node names, and their layers (grey); width is the share of the %s%s",
             prn_report_title(r), r->module_count, metric_names[g->by], g->whole > 0 ? "" : " (none known)");
    prn_svg_begin(out, LEFT * 2 + WIDTH, bottom + 20, heading ? "Modules" : NULL, note);
    prn_svg_plot_begin(out, &x, TOP, bottom);
    prn_out_text(out, "<g stroke=\"#ffffff\" stroke-width=\"0.5\">\n");
    for (size_t i = 0; i < g->count; i++) {
        const size_t around = module_around(g, i);
        if (svg_modules_is_drawn(g, i, around)) draw_part(out, g, i, around, false);
    }
    for (size_t i = 0; i < r->module_count; i++)
        if (svg_modules_is_drawn(g, i, module_around(g, i))) draw_rest(out, g, i);
    prn_out_text(out, "</g>\n");
    prn_svg_plot_end(out);
    prn_out_text(out, "<g class=\"names\">\n");
    for (size_t i = 0; i < g->count; i++) {
        const size_t around = module_around(g, i);
        if (svg_modules_is_drawn(g, i, around)) draw_part(out, g, i, around, true);
    }
    prn_out_text(out, "</g>\n");
    prn_svg_end(out);
}

static prony_status draw_by(prn_out *out, const prony_report *r, metric by, bool heading, prony_error *error)
{
    icicle g = {.report = r, .by = by, .count = r->module_count + r->layer_count};
    g.parts = prn_calloc(g.count + 1, sizeof *g.parts);
    g.by_path = prn_calloc(r->module_count + 1, sizeof *g.by_path);
    prony_status status = g.parts && g.by_path ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        for (size_t i = 0; i < r->module_count; i++) g.by_path[i] = &r->modules[i];
        qsort(g.by_path, r->module_count, sizeof *g.by_path, by_path);
        status = svg_modules_weigh(&g, error);
    }
    if (status == PRONY_OK) draw_icicle(out, &g, heading);
    prn_free(g.parts);
    prn_free(g.by_path);
    return status;
}

/* The page has the picture by every metric, in the order of its list (html/pictures_modules.js). */
prony_status prn_svg_modules(prn_out *out, const prony_report *r, prony_error *error)
{
    const metric first = prn_report_stamped(r) ? METRIC_TIME : METRIC_FLOPS;
    PRN_TRY(draw_by(out, r, first, true, error));
    for (metric by = first + 1; out->in_page && by < METRICS; by++) PRN_TRY(draw_by(out, r, by, false, error));
    return PRONY_OK;
}
