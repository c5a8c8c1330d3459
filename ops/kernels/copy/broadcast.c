/* Strides of broadcast operands in every memory layout, and the walk over them.
 * Invariant: the result is visited in memory order, each element once; the last axis has operand strides 0 or 1. */
#include "ops/kernels/copy/broadcast.h"

#include "base/integers.h"
#include "base/threads/parallel.h"

#include <string.h>

/* Channel axis first in logical order, so rank 0 and 1 never have one. */
static bool has_channels(const prn_broadcast *walk)
{
    return walk->layout != PRN_PLAIN && walk->shape.rank >= 2;
}

void prn_broadcast_begin(prn_broadcast *walk, const prony_value *out)
{
    memset(walk, 0, sizeof *walk);
    walk->shape = out->shape;
    walk->layout = (prn_layout)out->layout;
    walk->count = prn_layout_elements(&out->shape, walk->layout);
    const prony_shape *shape = &walk->shape;
    if (!has_channels(walk)) {
        for (int d = 0; d < shape->rank; d++) walk->dim[walk->rank++] = shape->dim[d];
        return;
    }
    const int64_t block = prn_layout_block(walk->layout);
    walk->dim[walk->rank++] = shape->dim[0];
    if (block) walk->dim[walk->rank++] = prn_ceil_div(shape->dim[1], block);
    for (int d = 2; d < shape->rank; d++) walk->dim[walk->rank++] = shape->dim[d];
    walk->dim[walk->rank++] = block ? block : shape->dim[1];
}

/* Row-major strides of the operand's own memory axes in the walk's layout, 0 where it is broadcast. */
static void own_strides(const prn_broadcast *walk, const prony_shape *in, int64_t *stride)
{
    const int64_t block = prn_layout_block(walk->layout);
    const bool one_channel = in->dim[1] == 1 && walk->shape.dim[1] != 1;
    int64_t step = 1;
    int axis = walk->rank - 1;
    stride[axis--] = one_channel ? 0 : step;
    step *= block ? block : in->dim[1];
    for (int d = in->rank - 1; d >= 2; d--) {
        stride[axis--] = in->dim[d] == 1 ? 0 : step;
        step *= in->dim[d];
    }
    if (block) {
        stride[axis--] = one_channel ? 0 : step;
        step *= prn_ceil_div(in->dim[1], block);
    }
    stride[axis] = in->dim[0] == 1 ? 0 : step;
}

void prn_broadcast_add(prn_broadcast *walk, const prony_value *in)
{
    int64_t *stride = walk->stride[walk->inputs++];
    if (!has_channels(walk)) {
        prn_shape_broadcast_strides(&in->shape, &walk->shape, stride);
        return;
    }
    if (in->layout != PRN_PLAIN) {
        own_strides(walk, &in->shape, stride);
        return;
    }
    int64_t logical[PRONY_MAX_RANK] = {0};
    prn_shape_broadcast_strides(&in->shape, &walk->shape, logical);
    const int channel = in->shape.rank - walk->shape.rank + 1;
    if (channel < 0 || in->shape.dim[channel] == 1) logical[1] = 0;
    const int64_t block = prn_layout_block(walk->layout);
    int axis = 0;
    stride[axis++] = logical[0];
    if (block) stride[axis++] = logical[1] * block;
    for (int d = 2; d < walk->shape.rank; d++) stride[axis++] = logical[d];
    stride[axis] = logical[1];
}

static bool can_merge(const prn_broadcast *walk, int outer, int inner)
{
    for (int k = 0; k < walk->inputs; k++) {
        if (walk->stride[k][outer] != walk->stride[k][inner] * walk->dim[inner]) return false;
    }
    return true;
}

void prn_broadcast_merge(prn_broadcast *walk)
{
    int kept = 0;
    for (int d = 0; d < walk->rank; d++) {
        if (walk->dim[d] == 1) continue;
        int64_t merged = 1;
        int to = kept;
        if (kept > 0 && can_merge(walk, kept - 1, d)) {
            to = kept - 1;
            merged = walk->dim[to];
        } else {
            kept++;
        }
        for (int k = 0; k < walk->inputs; k++) walk->stride[k][to] = walk->stride[k][d];
        walk->dim[to] = merged * walk->dim[d];
    }
    if (kept == 0) {
        walk->dim[0] = 1;
        for (int k = 0; k < walk->inputs; k++) walk->stride[k][0] = 0;
        kept = 1;
    }
    walk->rank = kept;
}

/* Calls `fn` for the stretches of rows that make up elements [begin, end) of the output; offset[k] is the stretch's
 * row in input k. */
void prn_broadcast_range(const prn_broadcast *walk, int64_t begin, int64_t end, prn_broadcast_fn fn, void *argument)
{
    if (begin >= end) return;
    const int inner = walk->rank - 1;
    const int64_t row = walk->dim[inner];
    int64_t index[PRN_BROADCAST_DIMS], offset[PRN_BROADCAST_INPUTS] = {0};
    int64_t rest = begin / row, at = begin % row;
    for (int d = inner - 1; d >= 0; d--) {
        index[d] = rest % walk->dim[d];
        rest /= walk->dim[d];
        for (int k = 0; k < walk->inputs; k++) offset[k] += index[d] * walk->stride[k][d];
    }
    while (begin < end) {
        const int64_t n = row - at < end - begin ? row - at : end - begin;
        fn(argument, offset, begin, at, n);
        begin += n;
        at = 0;
        for (int d = inner - 1; d >= 0; d--) {
            const bool wraps = ++index[d] == walk->dim[d];
            const int64_t moved = wraps ? 1 - walk->dim[d] : 1;
            for (int k = 0; k < walk->inputs; k++) offset[k] += moved * walk->stride[k][d];
            if (!wraps) break;
            index[d] = 0;
        }
    }
}

typedef struct job {
    const prn_broadcast *walk;
    prn_broadcast_fn fn;
    void *argument;
} job;

static void run_range(void *argument, int64_t begin, int64_t end)
{
    const job *job = argument;
    prn_broadcast_range(job->walk, begin, end, job->fn, job->argument);
}

void prn_broadcast_parallel(const prn_broadcast *walk, int threads, prn_broadcast_fn fn, void *argument)
{
    job job = {walk, fn, argument};
    prn_parallel_range(threads, walk->count, 16384, run_range, &job);
}

/* ---- layouts */

/* The strides by which an operand of shape `in` can be read beside a result of shape `out` in `layout`; false: it
 * cannot. */
static bool operand_layout(const prony_value *in, const prony_shape *out, prn_layout layout, prn_layout *needed)
{
    const int shift = out->rank - in->shape.rank;
    const int64_t block = prn_layout_block(layout);
    const int64_t channels = shift > 1 ? 1 : in->shape.dim[1 - shift];
    bool pixel = true;
    for (int d = 2; d < out->rank; d++) pixel &= d < shift || in->shape.dim[d - shift] == 1;
    const bool whole_blocks = block == 0 || channels % block == 0;
    *needed = PRN_PLAIN;
    if (shift == 0 && (in->layout == layout || prn_shape_equal(&in->shape, out))) {
        *needed = layout;
    } else if (channels != 1 && !(pixel && whole_blocks)) {
        *needed = layout;
        return shift == 0;
    }
    return true;
}

void prn_broadcast_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prony_shape *shape = &context->outputs[0]->shape;
    prn_layout layout = PRN_PLAIN;
    for (size_t i = 0; i < context->input_count && layout == PRN_PLAIN; i++) {
        const prony_value *value = context->inputs[i];
        if (prn_shape_equal(&value->shape, shape)) layout = (prn_layout)value->layout;
    }
    if (layout == PRN_PLAIN || shape->rank < 3) return;
    for (size_t i = 0; i < context->input_count; i++) {
        if (operand_layout(context->inputs[i], shape, layout, &in[i])) continue;
        for (size_t k = 0; k <= i; k++) in[k] = PRN_PLAIN;
        return;
    }
    out[0] = layout;
}

void prn_same_layout(const prony_context *context, prn_layout *in, prn_layout *out)
{
    in[0] = out[0] = (prn_layout)context->inputs[0]->layout;
}

void prn_clear_padding(const prony_value *value)
{
    const int64_t block = prn_layout_block((prn_layout)value->layout);
    if (block == 0 || value->shape.rank < 2 || value->shape.dim[1] % block == 0) return;
    const int64_t used = value->shape.dim[1] % block, blocks = value->shape.dim[1] / block + 1;
    const int64_t pixels = prn_shape_count(&value->shape, 2, value->shape.rank);
    const size_t width = prony_dtype_bytes(value->dtype, 1), beyond = (size_t)(block - used) * width;
    for (int64_t n = 0; n < value->shape.dim[0]; n++) {
        char *lanes = (char *)value->data + (size_t)((n * blocks + blocks - 1) * pixels * block + used) * width;
        for (int64_t p = 0; p < pixels; p++, lanes += (size_t)block * width) memset(lanes, 0, beyond);
    }
}

void prn_clear_spoiled_lanes(float *pixels, int64_t count, int64_t block, int64_t used)
{
    enum { RUN = 64 };
    const float *lane = pixels + block - 1;
    for (int64_t begin = 0; begin < count; begin += RUN) {
        const int64_t end = prn_least(begin + RUN, count);
        bool spoiled = false;
        for (int64_t p = begin; p < end; p++) spoiled |= lane[p * block] != 0;
        for (int64_t p = begin; spoiled && p < end; p++)
            for (int64_t l = used; l < block; l++) pixels[p * block + l] = 0;
    }
}

/* The last block of every image. */
typedef struct last_blocks {
    float *data;
    int64_t pixels, blocks, block, used;
} last_blocks;

/* Pixels [begin, end), counted over the images. */
static void clear_spoiled_pixels(void *argument, int64_t begin, int64_t end)
{
    const last_blocks *last = argument;
    for (int64_t i = begin, count; i < end; i += count) {
        const int64_t n = i / last->pixels, p = i % last->pixels;
        count = prn_least(end - i, last->pixels - p);
        prn_clear_spoiled_lanes(last->data + (((n + 1) * last->blocks - 1) * last->pixels + p) * last->block, count,
                                last->block, last->used);
    }
}

void prn_clear_spoiled_padding(const prony_context *context, const prony_value *value)
{
    const int64_t block = prn_layout_block((prn_layout)value->layout);
    if (block == 0 || value->shape.rank < 2 || value->shape.dim[1] % block == 0) return;
    last_blocks last = {.data = value->data,
                        .pixels = prn_shape_count(&value->shape, 2, value->shape.rank),
                        .blocks = value->shape.dim[1] / block + 1,
                        .block = block,
                        .used = value->shape.dim[1] % block};
    const int64_t count = value->shape.dim[0] * last.pixels;
    prn_parallel_items(context->threads, count, 8 * count, clear_spoiled_pixels, &last);
}
