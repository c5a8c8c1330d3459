/* Walking the elements of a broadcast result in memory order, whatever the layout, with the operands' offsets beside
 * it. The walk of a range depends on the shapes alone. */
#ifndef PRN_OPS_KERNELS_COPY_BROADCAST_H
#define PRN_OPS_KERNELS_COPY_BROADCAST_H

#include "ops/op.h"

enum { PRN_BROADCAST_INPUTS = 3, PRN_BROADCAST_DIMS = PRONY_MAX_RANK + 1 };

/* Axes of the result as it lies in memory, outermost first, adjacent ones merged where every operand allows it. Strides
 * count elements; along the last axis they are 0 or 1. */
typedef struct prn_broadcast {
    int rank; /* >= 1 after prn_broadcast_merge */
    int inputs;
    prony_shape shape;
    prn_layout layout;
    int64_t dim[PRN_BROADCAST_DIMS];
    int64_t stride[PRN_BROADCAST_INPUTS][PRN_BROADCAST_DIMS];
    int64_t count; /* elements of the result, padding lanes included */
} prn_broadcast;

/* The result; then each operand in turn (its layout is the result's, or plain as prn_broadcast_layouts allows); then
 * merge. */
void prn_broadcast_begin(prn_broadcast *walk, const prony_value *out);
void prn_broadcast_add(prn_broadcast *walk, const prony_value *in);
void prn_broadcast_merge(prn_broadcast *walk);

/* One stretch of a row: elements [at, at + n) of the last axis, the first of them at `out` in the result; offset[k] is
 * where operand k's row starts. */
typedef void (*prn_broadcast_fn)(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at,
                                 int64_t n);
/* Visits elements [begin, end) of the result in memory order. */
void prn_broadcast_range(const prn_broadcast *walk, int64_t begin, int64_t end, prn_broadcast_fn fn, void *argument);
/* The same over the whole result, cut among threads. */
void prn_broadcast_parallel(const prn_broadcast *walk, int threads, prn_broadcast_fn fn, void *argument);

/* Layouts for an elementwise kernel on float32: that of the first operand with the result's shape which is not plain,
 * if every other operand can be read beside it; else everything plain. */
void prn_broadcast_layouts(const prony_context *context, prn_layout *in, prn_layout *out);

/* A kernel that maps elements one by one takes any layout as it comes. */
void prn_same_layout(const prony_context *context, prn_layout *in, prn_layout *out);

/* Restores the invariant of ops/layout.h on a value of whole-byte elements: lanes beyond the channels are zero. */
void prn_clear_padding(const prony_value *value);
/* The same on `count` pixels of a last block of `block` lanes, of which `used` are channels and the others sums of
 * x * 0. An infinite or NaN x makes NaN of all these sums of a pixel, and a reader that multiplies them by 0 would hand
 * NaN on to its channels. One lane of each pixel is read, since nearly always all are 0. */
void prn_clear_spoiled_lanes(float *pixels, int64_t count, int64_t block, int64_t used);
/* The same on the last blocks of a float32 value. */
void prn_clear_spoiled_padding(const prony_context *context, const prony_value *value);

#endif
