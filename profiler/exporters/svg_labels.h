/* Places for the labels of a chart: none overlaps another or leaves the chart, and of the free places each label gets
 * the one nearest to what it names that hides least. First come, first served: the most important one goes first. */
#ifndef PRN_PROFILER_EXPORTERS_SVG_LABELS_H
#define PRN_PROFILER_EXPORTERS_SVG_LABELS_H

#include "profiler/exporters/svg.h"

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

/* What a text of `size` fills, generously: fonts differ. */
prn_box prn_label_box(const char *text, double size, double left, double baseline);
/* Takes exactly this place; false: it is not free, or there is no room for more. */
bool prn_labels_take(prn_labels *labels, const prn_box *box);
/* Draws `text` beside the spot, with a line to it where it stands apart; false: there was no place. */
bool prn_labels_draw(prn_labels *labels, prn_out *out, const prn_spot *spot, double size, const char *color,
                     const char *text);

#endif
