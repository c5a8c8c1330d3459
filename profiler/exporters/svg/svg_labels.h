/* Positions for the labels of a chart. Labels do not overlap or leave the chart. Each label takes the nearest free
 * position to its point that hides least. Draw the most important label first. */
#ifndef PRN_PROFILER_EXPORTERS_SVG_SVG_LABELS_H
#define PRN_PROFILER_EXPORTERS_SVG_SVG_LABELS_H

#include "profiler/exporters/svg/svg.h"

typedef struct prn_box {
    double left, top, right, bottom;
} prn_box;

/* A disc that labels should not hide. */
typedef struct prn_spot {
    double x, y, radius;
} prn_spot;

enum { PRN_MOST_LABELS = 48 };

typedef struct prn_labels {
    prn_box within;
    const prn_spot *spots;
    size_t spot_count;
    size_t count;
    prn_box taken[PRN_MOST_LABELS];
} prn_labels;

/* The box of a text of `size`, with a margin because fonts differ. */
prn_box prn_label_box(const char *text, double size, double left, double baseline);
/* Reserves exactly this box; false: it is not free, or there are too many labels. */
bool prn_labels_take(prn_labels *labels, const prn_box *box);
/* Draws `text` beside the spot, with a line to it if it is not adjacent; false: no free position. */
bool prn_labels_draw(prn_labels *labels, prn_out *out, const prn_spot *spot, double size, const char *color,
                     const char *text);

#endif
