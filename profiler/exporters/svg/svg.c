/* Drawing primitives of the SVG charts. */
#include "profiler/exporters/svg/svg.h"

#include "profiler/text/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Mean width of a character of the font, over its size. */
#define CHARACTER_WIDTH 0.56

static void svg_attribute(prn_out *out, const char *name, double value)
{
    prn_out_format(out, " %s=\"", name);
    prn_out_fixed(out, value, 2);
    prn_out_text(out, "\"");
}

/* In the page the heading is HTML, which wraps on a narrow screen, and the picture begins below it. */
void prn_svg_begin(prn_out *out, double width, double height, const char *title, const char *note)
{
    const double top = out->in_page ? PRN_SVG_HEADING : 0;
    if (out->in_page && title) {
        prn_out_text(out, "<div class=\"head\"><h2>");
        prn_out_xml(out, title);
        prn_out_text(out, "</h2></div>\n<p class=\"sub\">");
        prn_out_xml(out, note);
        prn_out_text(out, "</p>\n");
    }
    prn_out_text(out, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    svg_attribute(out, "width", width);
    svg_attribute(out, "height", height - top);
    prn_out_text(out, " viewBox=\"0 ");
    prn_out_fixed(out, top, 0);
    prn_out_text(out, " ");
    prn_out_fixed(out, width, 2);
    prn_out_text(out, " ");
    prn_out_fixed(out, height - top, 2);
    if (out->in_page) {
        prn_out_text(out, "\" role=\"img\" aria-label=\"");
        prn_out_xml(out, title ? title : note);
        prn_out_text(out, "\">\n");
        return;
    }
    prn_out_text(out, "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n<title>");
    prn_out_xml(out, title);
    prn_out_text(out, "</title>\n");
    prn_svg_rect(out, 0, 0, width, height, "#ffffff", NULL);
    prn_svg_text(out, 16, 26, PRN_ANCHOR_START, 16, PRN_SVG_INK, title);
    prn_svg_text(out, 16, 44, PRN_ANCHOR_START, 11, PRN_SVG_GREY, note);
}

void prn_svg_end(prn_out *out)
{
    prn_out_text(out, "</svg>\n");
}

static void close_with_mark(prn_out *out, const char *element, const prn_svg_mark *mark)
{
    if (mark && mark->key) prn_out_format(out, " data-%s=\"%zu\"", mark->key, mark->row);
    if (!mark || !mark->tip || (mark->key && out->in_page)) {
        prn_out_text(out, "/>\n");
        return;
    }
    prn_out_text(out, "><title>");
    prn_out_xml(out, mark->tip);
    prn_out_format(out, "</title></%s>\n", element);
}

void prn_svg_rect(prn_out *out, double x, double y, double width, double height, const char *fill,
                  const prn_svg_mark *mark)
{
    prn_out_text(out, "<rect");
    svg_attribute(out, "x", x);
    svg_attribute(out, "y", y);
    svg_attribute(out, "width", width > 0 ? width : 0);
    svg_attribute(out, "height", height > 0 ? height : 0);
    if (fill) prn_out_format(out, " fill=\"%s\"", fill);
    close_with_mark(out, "rect", mark);
}

void prn_svg_line(prn_out *out, double x1, double y1, double x2, double y2, const char *color, double width,
                  bool dashed)
{
    prn_out_text(out, "<line");
    svg_attribute(out, "x1", x1);
    svg_attribute(out, "y1", y1);
    svg_attribute(out, "x2", x2);
    svg_attribute(out, "y2", y2);
    svg_attribute(out, "stroke-width", width);
    prn_out_format(out, " stroke=\"%s\"%s/>\n", color, dashed ? " stroke-dasharray=\"5 4\"" : "");
}

void prn_svg_circle(prn_out *out, double x, double y, double radius, const char *fill, const prn_svg_mark *mark)
{
    prn_out_text(out, "<circle");
    svg_attribute(out, "cx", x);
    svg_attribute(out, "cy", y);
    svg_attribute(out, "r", radius);
    if (fill) prn_out_format(out, " fill=\"%s\" fill-opacity=\"0.65\" stroke=\"%s\"", fill, fill);
    close_with_mark(out, "circle", mark);
}

void prn_svg_text(prn_out *out, double x, double y, prn_anchor anchor, double size, const char *color, const char *text)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    prn_out_text(out, "<text");
    svg_attribute(out, "x", x);
    svg_attribute(out, "y", y);
    svg_attribute(out, "font-size", size);
    prn_out_format(out, " stroke=\"none\" fill=\"%s\"%s>", color, anchors[anchor]);
    prn_out_xml(out, text);
    prn_out_text(out, "</text>\n");
}

int prn_svg_columns(double size, double width)
{
    return width > 0 ? (int)fmin(width / (size * CHARACTER_WIDTH), INT16_MAX) : 0; /* times of a file may be any */
}

void prn_svg_text_fit(prn_out *out, double x, double y, prn_anchor anchor, double size, const char *color,
                      const char *text, double width)
{
    char cut[256];
    size_t length = prn_utf8_length(text), room = (size_t)prn_svg_columns(size, width);
    if (length <= room) {
        prn_svg_text(out, x, y, anchor, size, color, text);
        return;
    }
    if (room < 3) return;
    for (size_t skip = length - room + 1; skip > 0; skip--) {
        size_t bytes = prn_utf8_sequence(text);
        text += bytes ? bytes : 1;
    }
    snprintf(cut, sizeof cut, "\xe2\x80\xa6%.240s", text);
    prn_svg_text(out, x, y, anchor, size, color, cut);
}

void prn_svg_point(prn_out *out, char command, double x, double y)
{
    prn_out_bytes(out, &command, 1);
    prn_out_fixed(out, x, 2);
    prn_out_text(out, " ");
    prn_out_fixed(out, y, 2);
}

/* ---- axes ---- */

void prn_svg_plot_begin(prn_out *out, const prn_axis *x, double top, double bottom)
{
    const double data[] = {x->from, x->to, top, bottom, x->low, x->high};
    prn_out_text(out, "<g class=\"plot\" data-x=\"");
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
        if (i) prn_out_text(out, " ");
        prn_out_fixed(out, data[i], 2);
    }
    prn_out_text(out, "\">\n");
}

void prn_svg_plot_end(prn_out *out)
{
    prn_out_text(out, "</g>\n");
}

double prn_axis_at(const prn_axis *axis, double value)
{
    double low = axis->low, high = axis->high;
    if (axis->logarithmic) {
        low = log10(low);
        high = log10(high);
        value = log10(value);
    }
    return high > low ? axis->from + (value - low) / (high - low) * (axis->to - axis->from) : axis->from;
}

int prn_axis_ticks(const prn_axis *axis, int wanted, double ticks[PRN_AXIS_TICKS])
{
    int count = 0;
    if (!(axis->high > axis->low)) return 0;
    if (axis->logarithmic) {
        double first = ceil(log10(axis->low) - 1e-9), last = floor(log10(axis->high) + 1e-9);
        double step = ceil((last - first + 1) / wanted);
        for (double e = first; e <= last && count < PRN_AXIS_TICKS; e += step > 1 ? step : 1)
            ticks[count++] = pow(10, e);
        return count;
    }
    double raw = (axis->high - axis->low) / wanted, power = pow(10, floor(log10(raw))), over = raw / power;
    double step = (over <= 1 ? 1 : over <= 2 ? 2 : over <= 5 ? 5 : 10) * power;
    if (axis->binary) step = exp2(ceil(log2(raw)));
    for (double i = ceil(axis->low / step - 1e-9) + 0.0;
         /* no negative zero */ i * step <= axis->high * (1 + 1e-12) && count < PRN_AXIS_TICKS; i++)
        ticks[count++] = i * step;
    return count;
}

void prn_svg_axis_x(prn_out *out, const prn_axis *axis, double top, double bottom, prn_tick_text label,
                    const char *title)
{
    double ticks[PRN_AXIS_TICKS];
    int count = prn_axis_ticks(axis, (int)((axis->to - axis->from) / 90) + 1, ticks);
    prn_out_text(out, "<g class=\"ticks\">\n");
    for (int i = 0; i < count; i++) {
        prn_number_text text;
        double x = prn_axis_at(axis, ticks[i]);
        prn_svg_line(out, x, top, x, bottom, PRN_SVG_FAINT, 1, false);
        prn_svg_text(out, x, bottom + 18, PRN_ANCHOR_MIDDLE, 11, PRN_SVG_GREY, label(text, ticks[i]));
    }
    prn_out_text(out, "</g>\n");
    prn_svg_line(out, axis->from, bottom, axis->to, bottom, PRN_SVG_GREY, 1, false);
    prn_svg_text(out, (axis->from + axis->to) / 2, bottom + 34, PRN_ANCHOR_MIDDLE, 12, PRN_SVG_INK, title);
}

void prn_svg_axis_y(prn_out *out, const prn_axis *axis, double left, double right, prn_tick_text label,
                    const char *title)
{
    double ticks[PRN_AXIS_TICKS];
    int count = prn_axis_ticks(axis, (int)(fabs(axis->to - axis->from) / 50) + 1, ticks);
    for (int i = 0; i < count; i++) {
        prn_number_text text;
        double y = prn_axis_at(axis, ticks[i]);
        prn_svg_line(out, left, y, right, y, PRN_SVG_FAINT, 1, false);
        prn_svg_text(out, left - 6, y + 4, PRN_ANCHOR_END, 11, PRN_SVG_GREY, label(text, ticks[i]));
    }
    prn_svg_line(out, left, axis->from, left, axis->to, PRN_SVG_GREY, 1, false);
    prn_svg_text(out, left - 6, (axis->from < axis->to ? axis->from : axis->to) - 10, PRN_ANCHOR_START, 12, PRN_SVG_INK,
                 title);
}

char *prn_tick_count(prn_number_text text, double value)
{
    return value != 0 && fabs(value) < 1 ? prn_number_exact(text, value) : prn_number_si(text, value, 3, " ");
}

char *prn_tick_bytes(prn_number_text text, double value)
{
    return prn_number_bytes(text, value, 3, " ");
}

char *prn_tick_time(prn_number_text text, double ns)
{
    return prn_number_time(text, (int64_t)(ns + 0.5), 3, " ");
}

char *prn_tick_percent(prn_number_text text, double share)
{
    prn_number_fixed(text, share * 100, share < 0.1 && share > 0 ? 1 : 0);
    return strcat(text, " %");
}
