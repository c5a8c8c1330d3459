/* The module tree as an icicle: each module below its parent, as wide as its share of the time (of the FLOPs if nothing
 * was measured). Rows of the report stand parents first, children in order, so one pass places them. */
#include "profiler/exporters/report_svg.h"

#include <string.h>

enum { LEFT = 16, WIDTH = 1168, TOP = 70, ROW = 34, DEEPEST_ROW = 12 };

static double weight_of(const prony_report *r, const prn_module_row *m)
{
    return prn_report_stamped(r) ? (double)(m->time_ns > 0 ? m->time_ns : 0) : (double)m->flops;
}

static void draw_module(prn_out *out, const prony_report *r, const prn_module_row *m, double x, double width,
                        double share)
{
    static const char *const fills[] = {"#dbe7f5", "#c6dcc9", "#f5dfc2", "#e6d3ec", "#f3cfcb", "#cfe8ea"};
    prn_number_text time, percent;
    char label[200], tip[480];
    unsigned color = 0;
    double y = TOP + (double)m->depth * ROW;
    for (const char *c = m->type ? m->type : ""; *c; c++) color = color * 31 + (unsigned char)*c;
    const char *last = strrchr(m->path, '/');
    last = !*m->path ? prn_report_title(r) : last ? last + 1 : m->path;
    prn_number_percent(percent, share);
    if (prn_report_stamped(r))
        prn_number_time(time, m->time_ns, 3, " ");
    else
        prn_number_si(time, (double)m->flops, 3, " ");
    snprintf(label, sizeof label, "%s%s  %s %%", time, prn_report_stamped(r) ? "" : "FLOPs", percent);
    snprintf(tip, sizeof tip, "%.250s: %s", *m->path ? m->path : "__root__", label);
    prn_svg_rect(out, x, y, width - 1, ROW - 2, fills[color % (sizeof fills / sizeof fills[0])], PRN_SVG_TIP(tip));
    prn_svg_text_fit(out, x + 4, y + 14, PRN_ANCHOR_START, 11, PRN_SVG_INK, last, width - 8);
    if (width > 100) prn_svg_text(out, x + 4, y + 27, PRN_ANCHOR_START, 10, PRN_SVG_GREY, label);
}

/* Parents stand before children, so next[] already holds the position of a module's next child. */
prony_status prn_svg_modules(prn_out *out, const prony_report *r, prony_error *error)
{
    double *next = prn_calloc(r->module_count + 1, sizeof *next); /* where the next child begins */
    double whole = r->module_count ? weight_of(r, &r->modules[0]) : 0;
    uint32_t deepest = 0;
    char note[200];
    if (!next) return prn_no_memory(error);
    for (size_t i = 0; i < r->module_count; i++)
        if (r->modules[i].depth > deepest) deepest = r->modules[i].depth;
    if (deepest > DEEPEST_ROW) deepest = DEEPEST_ROW;
    snprintf(note, sizeof note, "%.80s: %zu modules, from node names; width is the share of the %s%s",
             prn_report_title(r), r->module_count, prn_report_stamped(r) ? "time" : "FLOPs",
             whole > 0 ? "" : " (none known)");
    prn_svg_begin(out, LEFT * 2 + WIDTH, TOP + (deepest + 1.0) * ROW + 20, "Modules", note);
    for (size_t i = 0; i < r->module_count; i++) {
        const prn_module_row *m = &r->modules[i];
        double width = whole > 0 ? weight_of(r, m) / whole * WIDTH : 0;
        double x = m->parent < i ? next[m->parent] : LEFT;
        if (m->parent < i) next[m->parent] += width;
        next[i] = x;
        if (width >= 0.3 && m->depth <= DEEPEST_ROW) draw_module(out, r, m, x, width, weight_of(r, m) / whole);
    }
    prn_svg_end(out);
    prn_free(next);
    return PRONY_OK;
}
