/* Resize of float32 by linear and cubic interpolation over any axes, in any layout: one axis after another, the last
 * one first, each pass turning [outer][in][inner] into [outer][out][inner]. Lanes of a layout are part of `inner`.
 *
 * The working space holds one axis' taps (indices, then weights) and two buffers for what lies between passes.
 * Invariant: a row of a pass is one sum in the taps' order, and rows are dealt out by the problem alone. */
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/vision/resize.h"

#include "base/shape.h"
#include "base/threads/cancel.h"

#include <string.h>

enum { LOOK_UP = 1 << 18 }; /* elements between two looks at whether to go on */

typedef struct pass {
    int64_t in, out, inner;
    int taps;
    const int64_t *index; /* [out][taps], in elements of the axis */
    const float *weight;
    const float *from;
    float *to;
} pass;

/* Sizes in elements; taps of the longest axis, and the largest of what lies between passes. */
typedef struct space {
    int64_t taps, buffer;
    int passes;
} space;

static int resize_passes_taps_of(const prn_resize *resize)
{
    return resize->mode == PRN_RESIZE_LINEAR ? 2 : 4;
}

static space resize_passes_measure(const prony_context *context, const prn_resize *resize)
{
    const prn_layout layout = (prn_layout)context->inputs[0]->layout;
    prony_shape shape = prn_lowbit_shape(&context->inputs[0]->shape, layout);
    space found = {0};
    int64_t before = 0;
    for (int axis = resize->rank - 1; axis >= 0; axis--) {
        if (resize->axis[axis].same) continue;
        const int64_t taps = resize->axis[axis].out * resize_passes_taps_of(resize);
        found.taps = taps > found.taps ? taps : found.taps;
        found.buffer = before > found.buffer ? before : found.buffer;
        shape.dim[prn_lowbit_axis(resize->rank, layout, axis)] = resize->axis[axis].out;
        before = prony_shape_numel(&shape);
        if (before < 0) return (space){0};
        found.passes++;
    }
    return found;
}

static bool resize_passes_fits(const space *s)
{
    return s->passes > 0 && s->taps < INT64_C(1) << 40 && s->buffer < INT64_C(1) << 50;
}

bool prn_resize_passes_supported(const prony_context *context)
{
    prn_resize resize;
    if (!prn_resize_known(context, &resize) || resize.mode == PRN_RESIZE_NEAREST || resize.antialias) return false;
    const space needed = resize_passes_measure(context, &resize);
    return resize_passes_fits(&needed);
}

prony_status prn_resize_passes_prepare(const prony_context *context, prn_prepared *out)
{
    prn_resize resize;
    bool known;
    PRN_TRY(prn_resize_read(context, &resize, &known));
    const space s = resize_passes_measure(context, &resize);
    out->scratch_bytes = (size_t)s.taps * (sizeof(int64_t) + sizeof(float)) + (size_t)s.buffer * 2 * sizeof(float);
    return prn_prepared_keep(context, &resize, sizeof resize, out);
}

/* Elements [begin, end) of a row. */
static void blend2(const pass *p, const float *from, int64_t j, float *to, int64_t begin, int64_t end)
{
    const int64_t *index = p->index + 2 * j;
    const float *a = from + index[0] * p->inner, *b = from + index[1] * p->inner;
    const float wa = p->weight[2 * j], wb = p->weight[2 * j + 1];
    for (int64_t i = begin; i < end; i++) to[i] = wa * a[i] + wb * b[i];
}

static void blend4(const pass *p, const float *from, int64_t j, float *to, int64_t begin, int64_t end)
{
    const int64_t *index = p->index + 4 * j;
    const float *a = from + index[0] * p->inner, *b = from + index[1] * p->inner, *c = from + index[2] * p->inner,
                *d = from + index[3] * p->inner, *w = p->weight + 4 * j;
    const float wa = w[0], wb = w[1], wc = w[2], wd = w[3];
    for (int64_t i = begin; i < end; i++) to[i] = wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i];
}

static void resize_passes_pass_rows(void *argument, int64_t begin, int64_t end)
{
    const pass *p = argument;
    for (int64_t row = begin; row < end; row++) {
        const float *from = p->from + row / p->out * p->in * p->inner;
        float *to = p->to + row * p->inner;
        for (int64_t i = 0, next; i < p->inner && (i == 0 || !prn_cancelled()); i = next) {
            next = p->inner - i < LOOK_UP ? p->inner : i + LOOK_UP;
            if (p->taps == 2) {
                blend2(p, from, row % p->out, to, i, next);
            } else {
                blend4(p, from, row % p->out, to, i, next);
            }
        }
    }
}

/* Elements [begin, end) of a line. */
static void blend_line(const pass *p, const float *from, float *to, int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j++) {
        const int64_t *index = p->index + j * p->taps;
        const float *w = p->weight + j * p->taps;
        float sum = w[0] * from[index[0]] + w[1] * from[index[1]];
        if (p->taps == 4) sum = sum + w[2] * from[index[2]] + w[3] * from[index[3]];
        to[j] = sum;
    }
}

/* The axis that nothing lies behind: a line at a time. */
static void pass_lines(void *argument, int64_t begin, int64_t end)
{
    const pass *p = argument;
    for (int64_t line = begin; line < end; line++) {
        for (int64_t j = 0; j < p->out && (j == 0 || !prn_cancelled()); j += LOOK_UP)
            blend_line(p, p->from + line * p->in, p->to + line * p->out, j,
                       p->out - j < LOOK_UP ? p->out : j + LOOK_UP);
    }
}

static void resize_passes_fill_taps(const prn_resize *resize, int axis, int64_t *index, float *weight)
{
    const int count = resize_passes_taps_of(resize);
    for (int64_t j = 0; j < resize->axis[axis].out && !prn_cancelled_at(j); j++) {
        const prn_taps taps = prn_resize_taps_at(resize, axis, j, NULL);
        int some = 0; /* a tap that counts; those that do not look there, so that no infinity comes in by them */
        while (some + 1 < count && taps.weight[some] == 0.0) some++;
        for (int k = 0; k < count; k++) {
            index[j * count + k] = taps.index[taps.weight[k] == 0.0 ? some : k];
            weight[j * count + k] = (float)taps.weight[k];
        }
    }
}

/* One pass per resized axis, last axis first, between two buffers; the last pass writes the output. */
prony_status prn_resize_passes_native(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    const prn_layout layout = (prn_layout)in->layout;
    const prn_resize *resize = context->state;
    if (prony_shape_numel(&context->outputs[0]->shape) == 0) return PRONY_OK;
    const space s = resize_passes_measure(context, resize);
    int64_t *index = context->scratch;
    float *buffer[2] = {(float *)(void *)(index + s.taps), NULL}, *weight = buffer[0] + 2 * s.buffer;
    buffer[1] = buffer[0] + s.buffer;
    pass p = {.taps = resize_passes_taps_of(resize), .index = index, .weight = weight, .from = in->data};
    prony_shape shape = prn_lowbit_shape(&in->shape, layout);
    int left = s.passes;
    for (int axis = resize->rank - 1; axis >= 0; axis--) {
        if (resize->axis[axis].same) continue;
        const int place = prn_lowbit_axis(resize->rank, layout, axis);
        resize_passes_fill_taps(resize, axis, index, weight);
        p.in = resize->axis[axis].in;
        p.out = shape.dim[place] = resize->axis[axis].out;
        p.inner = prn_shape_count(&shape, place + 1, shape.rank);
        p.to = --left ? buffer[left % 2] : context->outputs[0]->data;
        const int64_t outer = prn_shape_count(&shape, 0, place), bytes = outer * p.out * p.inner * 4 * p.taps;
        if (p.inner == 1) {
            prn_parallel_items(context->threads, outer, bytes, pass_lines, &p);
        } else {
            prn_parallel_items(context->threads, outer * p.out, bytes, resize_passes_pass_rows, &p);
        }
        p.from = p.to;
    }
    return PRONY_OK;
}
