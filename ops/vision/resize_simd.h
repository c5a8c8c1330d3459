/* Linear Resize of float32 rows, compiled once per instruction set: a + ratio (b - a), along a row and
 * between two. */
#ifndef PRN_OPS_VISION_RESIZE_SIMD_H
#define PRN_OPS_VISION_RESIZE_SIMD_H

#include <stdint.h>

enum {
    PRN_RESIZE_WIDE = 8,    /* lanes from which on columns are blended as wholes */
    PRN_RESIZE_BEHIND = 16, /* entries behind the `count` of every table, repeats of the last one, and elements behind a
                               blended row, of any value: vectors are always full */
};

/* The sources of a result row's entries: columns of `lanes` elements (of at least PRN_RESIZE_WIDE), or single
 * elements, of which `lanes` stand at the same coordinate. Coordinates do not decrease along the row. */
typedef struct prn_resize_line {
    const int32_t *low, *high; /* entries of the source row */
    const float *ratio;
    int64_t count;
    int64_t width; /* entries in a source row */
    int64_t lanes;
} prn_resize_line;

typedef struct prn_resize_simd {
    /* A row is blended: of single elements, and of columns. `to` has room for PRN_RESIZE_BEHIND elements more. */
    void (*across)(const prn_resize_line *line, const float *row, float *to);
    void (*across_columns)(const prn_resize_line *line, const float *row, float *to);
    /* Of two blended rows; `to` takes `count` elements. */
    void (*down)(const float *above, const float *below, float down, int64_t count, float *to);
    /* Both at once for lanes [begin, end) of every column. */
    void (*lanes)(const prn_resize_line *line, const float *top, const float *bottom, float down, float *to,
                  int64_t begin, int64_t end);
} prn_resize_simd;

#endif
