/* The inner loops of MaxPool, AveragePool and their global forms, compiled once per instruction set. No state,
 * thread-safe. */
#ifndef PRN_OPS_POOL_POOL_SIMD_H
#define PRN_OPS_POOL_POOL_SIMD_H

#include <stdbool.h>
#include <stdint.h>

/* Some rows of outputs, [rows][out][lanes], and the input rows [in][lanes] that windows meet: depth x height of them,
 * as many elements apart as the steps say, the first at x, and `row_step` further on for each row of outputs. Along the
 * row a window has `taps` taps `dilation` apart; window i begins at i stride - pad. All extents are at least 1 and
 * every window meets the input. */
typedef struct prn_bump_row {
    const float *x;
    int64_t depth, depth_step, height, height_step;
    int64_t rows, row_step;
    int64_t in, out, lanes, taps, stride, dilation, pad;
} prn_bump_row;

/* Some rows of outputs of a plane whose elements lie next to each other. A window's first axis is that of rows; every
 * window meets the input. */
typedef struct prn_pool_plane {
    const float *x;             /* the plane's first element */
    float *y;                   /* the first of the rows of outputs */
    int64_t height, width, out; /* of the input, outputs of a row */
    int64_t first, rows;        /* the first row's number, how many */
    int64_t taps[2], stride[2], dilation[2], pad[2];
    const float *row_counts, *column_counts; /* of an average: taps that count, of each of the rows and of each output
                                                of one */
} prn_pool_plane;

enum { PRN_POOL_PARTIALS = 32, PRN_POOL_LINE = 2048 };

/* True if a plane's lines fit into what its rows are combined in, and a window is small enough for nothing to interrupt
 * it. */
static inline bool prn_pool_plane_fits(const prn_pool_plane *plane)
{
    const int64_t most = PRN_POOL_LINE / 4;
    return plane->taps[0] <= most && plane->taps[1] <= most && plane->dilation[1] <= most / plane->taps[1] &&
           plane->stride[1] <= most && plane->pad[1] <= most && (plane->out + 64) * plane->stride[1] <= 2 * most;
}

/* `planes` (1 or 2) runs of `count` elements, one behind the other: element i of a run is combined into result i mod
 * `sums` (8, 16 or 32) of the plane's. */
typedef struct prn_pool_runs {
    const float *x;
    int64_t planes, count, sums;
    float (*partial)[PRN_POOL_PARTIALS];
} prn_pool_runs;

typedef struct prn_pool_simd {
    void (*max)(float *y, const prn_bump_row *row); /* a window with a NaN gives NaN */
    void (*sum)(float *y, const prn_bump_row *row);
    void (*max_plane)(const prn_pool_plane *plane);
    void (*average_plane)(const prn_pool_plane *plane);
    void (*max_runs)(const prn_pool_runs *runs);
    void (*sum_runs)(const prn_pool_runs *runs);
} prn_pool_simd;

#endif
