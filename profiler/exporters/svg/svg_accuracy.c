/* Errors along the network: own and accumulated, over the output's range, on a logarithmic axis. An operator without
 * error is drawn on the lower edge. */
#include "profiler/exporters/svg/report_svg.h"

#include <math.h>

enum { LEFT = 90, RIGHT = 930, TOP = 80, BOTTOM = 400 };

static char *tick_error(prn_number_text text, double value)
{
    snprintf(text, sizeof(prn_number_text), "%.0e", value);
    prn_number_plain_point(text);
    return text;
}

static void svg_accuracy_widen(const prony_error_metrics *f, double *low, double *high)
{
    if (!f->known || !(f->max_rel > 0)) return;
    if (f->max_rel < *low) *low = f->max_rel;
    if (f->max_rel > *high) *high = f->max_rel;
}

static prn_axis errors_axis(const prony_report *r)
{
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < r->operator_count; i++) {
        svg_accuracy_widen(&r->operator_errors[i].own, &low, &high);
        svg_accuracy_widen(&r->operator_errors[i].accumulated, &low, &high);
    }
    if (!(high > 0)) low = 1e-8, high = 1e-6;
    return (prn_axis){.low = pow(10, floor(log10(low))),
                      .high = pow(10, ceil(log10(high * 1.01))),
                      .from = BOTTOM,
                      .to = TOP,
                      .logarithmic = true};
}

static double svg_accuracy_place(const prn_axis *y, double value)
{
    return prn_axis_at(y, value > y->low ? value : y->low);
}

static void draw_curve(prn_out *out, const prony_report *r, const prn_axis *x, const prn_axis *y)
{
    char command = 'M';
    prn_out_text(out, "<path fill=\"none\" stroke=\"" PRN_SVG_ORANGE "\" stroke-width=\"1.6\" d=\"");
    for (size_t i = 0; i < r->operator_count; i++) {
        const prony_error_metrics *f = &r->operator_errors[i].accumulated;
        if (!f->known) continue;
        prn_svg_point(out, command, prn_axis_at(x, (double)i), svg_accuracy_place(y, f->max_rel));
        command = 'L';
    }
    if (command == 'M') prn_svg_point(out, 'M', LEFT, BOTTOM);
    prn_out_text(out, "\"/>\n");
}

static void draw_own(prn_out *out, const prony_report *r, const prn_axis *x, const prn_axis *y)
{
    for (size_t i = 0; i < r->operator_count; i++) {
        const prony_error_metrics *f = &r->operator_errors[i].own;
        const prony_operator_row *o = &r->operators[i];
        char tip[400];
        if (!f->known) continue;
        snprintf(tip, sizeof tip, "%.160s (%.40s, %.60s): %.2e of the range%s", o->name, o->op, o->kernel, f->max_rel,
                 f->nonfinite ? ", becomes infinite or NaN here" : "");
        prn_svg_circle(out, prn_axis_at(x, (double)i), svg_accuracy_place(y, f->max_rel), 3,
                       f->nonfinite ? PRN_SVG_RED : PRN_SVG_BLUE, &(prn_svg_mark){tip, "operator", i});
    }
}

prony_status prn_svg_accuracy(prn_out *out, const prony_report *r, prony_error *error)
{
    const prn_axis y = errors_axis(r);
    const prn_axis x = {
        .low = 0, .high = r->operator_count > 1 ? (double)(r->operator_count - 1) : 1, .from = LEFT, .to = RIGHT};
    (void)error;
    char note[300];
    snprintf(note, sizeof note, "%.60s: %.220s", prn_report_title(r), r->accuracy_verdict ? r->accuracy_verdict : "");
    prn_svg_begin(out, 960, BOTTOM + 70, "Error along the network, compared with float64", note);
    prn_svg_axis_y(out, &y, LEFT, RIGHT, tick_error, "largest error over the output's range");
    prn_svg_axis_x(out, &x, TOP, BOTTOM, prn_tick_count, "operator");
    draw_curve(out, r, &x, &y);
    draw_own(out, r, &x, &y);
    prn_svg_text(out, RIGHT, TOP - 12, PRN_ANCHOR_END, 11, PRN_SVG_GREY,
                 "blue: each operator's own error; orange: accumulated");
    prn_svg_end(out);
    return PRONY_OK;
}
