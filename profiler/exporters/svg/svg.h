/* Drawing primitives of the standalone SVG charts, in pixels from the upper left corner. Text is escaped here. The
 * charts suit paper and web pages: a white background, one font, colours that colour-blind readers can tell apart.
 *
 * The HTML page contains the same pictures (prn_out.in_page) and adds behaviour: html/pictures.js finds the report's
 * row of an element by its data attribute, and html/page.css replaces the colours below by those of the theme. */
#ifndef PRN_PROFILER_EXPORTERS_SVG_SVG_H
#define PRN_PROFILER_EXPORTERS_SVG_SVG_H

#include "profiler/exporters/export_out.h"
#include "profiler/text/number_text.h"

#include <stdbool.h>
#include <stdio.h>

#define PRN_SVG_BLUE "#2f6db5"
#define PRN_SVG_ORANGE "#e07b1a"
#define PRN_SVG_GREEN "#2e8b57"
#define PRN_SVG_RED "#b8322a"
#define PRN_SVG_GREY "#6b7280"
#define PRN_SVG_FAINT "#e5e7eb"
#define PRN_SVG_INK "#1f2937"

typedef enum prn_anchor { PRN_ANCHOR_START, PRN_ANCHOR_MIDDLE, PRN_ANCHOR_END } prn_anchor;

/* The row of the report that an element shows, written as data-KEY="ROW" (KEY NULL: no row), and a text of its own. In
 * the page a row's text comes from the report's JSON, so the page does not repeat `tip`. */
typedef struct prn_svg_mark {
    const char *tip, *key;
    size_t row;
} prn_svg_mark;
#define PRN_SVG_TIP(text) (&(prn_svg_mark){.tip = (text)})

enum { PRN_SVG_HEADING = 52 }; /* pixels for title and note; drawings stand below */

/* Opens the picture, with a heading of title and note. NULL title, in the page only: a variant below the same
 * heading. */
void prn_svg_begin(prn_out *out, double width, double height, const char *title, const char *note);
void prn_svg_end(prn_out *out);

/* `mark` may be NULL; `fill` NULL: as the group around it. */
void prn_svg_rect(prn_out *out, double x, double y, double width, double height, const char *fill,
                  const prn_svg_mark *mark);
void prn_svg_line(prn_out *out, double x1, double y1, double x2, double y2, const char *color, double width,
                  bool dashed);
void prn_svg_circle(prn_out *out, double x, double y, double radius, const char *fill, const prn_svg_mark *mark);
void prn_svg_text(prn_out *out, double x, double y, prn_anchor anchor, double size, const char *color,
                  const char *text);
/* Characters of this size that `width` pixels hold. */
int prn_svg_columns(double size, double width);
/* Cut to what `width` pixels hold, its end (the telling part of a layer's name) kept. */
void prn_svg_text_fit(prn_out *out, double x, double y, prn_anchor anchor, double size, const char *color,
                      const char *text, double width);
/* Point list of a path: "M" or "L", then the coordinates. */
void prn_svg_point(prn_out *out, char command, double x, double y);

/* ---- axes ---- */

/* Maps [low, high] onto pixels [from, to]; logarithmic ones need low > 0. */
typedef struct prn_axis {
    double low, high, from, to;
    bool logarithmic;
    bool binary; /* round values are powers of two: bytes */
} prn_axis;

/* Between the two calls stands what the page zooms along x: its extent in pixels and the values at both ends. */
void prn_svg_plot_begin(prn_out *out, const prn_axis *x, double top, double bottom);
void prn_svg_plot_end(prn_out *out);

double prn_axis_at(const prn_axis *axis, double value);
/* About `wanted` round values within the axis; returns how many. */
#define PRN_AXIS_TICKS 32
int prn_axis_ticks(const prn_axis *axis, int wanted, double ticks[PRN_AXIS_TICKS]);
typedef char *(*prn_tick_text)(prn_number_text text, double value);
/* Grid lines and labels: along the bottom of [top, bottom], or along the left of [left, right]. */
void prn_svg_axis_x(prn_out *out, const prn_axis *axis, double top, double bottom, prn_tick_text label,
                    const char *title);
void prn_svg_axis_y(prn_out *out, const prn_axis *axis, double left, double right, prn_tick_text label,
                    const char *title);

char *prn_tick_count(prn_number_text text, double value);
char *prn_tick_bytes(prn_number_text text, double value);
char *prn_tick_time(prn_number_text text, double ns);
char *prn_tick_percent(prn_number_text text, double share);

#endif
