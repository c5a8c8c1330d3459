/* Resize with antialias: where an axis shrinks, the interpolation kernel is widened by as much, so that every input
 * element counts. Axes are done one after another on doubles: each pass turns [outer][in][inner] into
 * [outer][out][inner].
 *
 * The working space holds two buffers and one axis' weights. Invariant: weights depend on the node alone, and a row of
 * a pass is one sum in ascending order. */
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"
#include "ops/vision/resize.h"

#include <string.h>

enum { LOOK_UP = 4096 }; /* elements of a row between two looks at whether to go on */

typedef struct pass {
    const prn_resize *resize;
    int axis;
    int64_t inner, taps;
    const double *from, *weights; /* [out][taps] */
    double *to;
} pass;

/* Half of the kernel's support on either side, on an axis that does not shrink. */
static int64_t reach_of(const prn_resize *resize)
{
    return resize->mode == PRN_RESIZE_LINEAR ? 1 : 2;
}

static double shrink_of(const prn_resize_axis *axis)
{
    return axis->scale < 1.0f ? (double)axis->scale : 1.0;
}

/* The first tap counted from the element left of a position; the last one is 1 - first. */
static double first_tap(const prn_resize *resize, const prn_resize_axis *axis)
{
    return floor(-(double)reach_of(resize) / shrink_of(axis)) + 1.0;
}

prony_status prn_resize_antialias_space(const prony_context *context, const prn_resize *resize, int64_t *doubles)
{
    prony_shape shape = context->inputs[0]->shape;
    int64_t largest = prony_shape_numel(&shape), table = 0;
    for (int i = resize->rank - 1; i >= 0; i--) {
        const prn_resize_axis *axis = &resize->axis[i];
        if (axis->same || axis->out == 0) continue;
        const double taps = 2.0 - 2.0 * first_tap(resize, axis), entries = taps * (double)axis->out;
        shape.dim[i] = axis->out;
        const int64_t count = prony_shape_numel(&shape);
        if (count < 0 || !(entries < 0x1p40))
            return prony_fail(context, PRONY_LIMIT, "scale %g is too small", (double)axis->scale);
        largest = count > largest ? count : largest;
        table = (int64_t)entries > table ? (int64_t)entries : table;
    }
    if (largest > INT64_MAX / 64) return prony_fail(context, PRONY_LIMIT, "the input is too large");
    *doubles = 2 * largest + table;
    return PRONY_OK;
}

/* The interpolation kernel at distance x. */
static double kernel_at(const prn_resize *resize, double x)
{
    const double a = (double)resize->cubic_a;
    x = fabs(x);
    if (resize->mode == PRN_RESIZE_LINEAR) return x < 1.0 ? 1.0 - x : 0.0;
    if (x <= 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a : 0.0;
}

/* The element left of a position, which lies more than 0 and at most 1 to its right. */
static double resize_antialias_left_of(double source)
{
    return ceil(source) - 1.0;
}

static void fill_weights(const prn_resize *resize, int index, int64_t taps, double *weights)
{
    const prn_resize_axis *axis = &resize->axis[index];
    const double first = first_tap(resize, axis), shrink = shrink_of(axis);
    for (int64_t position = 0; position < axis->out && !prn_cancelled(); position++) {
        const double source = prn_resize_source(resize, index, position), left = resize_antialias_left_of(source);
        double sum = 0.0, *row = weights + position * taps;
        for (int64_t k = 0; k < taps && !prn_cancelled_at(k); k++) {
            const double at = left + first + (double)k;
            row[k] = kernel_at(resize, shrink * (at - source));
            if (resize->exclude_outside && !(at >= 0.0 && at <= (double)(axis->in - 1))) row[k] = 0.0;
            sum += row[k];
        }
        for (int64_t k = 0; k < taps && !prn_cancelled_at(k); k++) row[k] /= sum;
    }
}

static void resize_antialias_add_row(double *to, const double *from, double weight, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] += weight * from[i];
}

static void resize_antialias_pass_rows(void *argument, int64_t begin, int64_t end)
{
    const pass *job = argument;
    const prn_resize_axis *axis = &job->resize->axis[job->axis];
    const double first = first_tap(job->resize, axis), last = (double)(axis->in - 1);
    for (int64_t row = begin; row < end; row++) {
        const int64_t outer = row / axis->out, position = row % axis->out;
        const double *weights = job->weights + position * job->taps;
        const double base = resize_antialias_left_of(prn_resize_source(job->resize, job->axis, position)) + first;
        for (int64_t i = 0; i < job->inner && (i == 0 || !prn_cancelled()); i += LOOK_UP) {
            const int64_t count = job->inner - i < LOOK_UP ? job->inner - i : LOOK_UP;
            double *to = job->to + row * job->inner + i;
            memset(to, 0, (size_t)count * sizeof *to);
            for (int64_t k = 0; k < job->taps && !(count == LOOK_UP ? prn_cancelled() : prn_cancelled_at(k)); k++) {
                const double at = base + (double)k;
                const int64_t source = at > 0.0 ? (int64_t)(at < last ? at : last) : 0;
                resize_antialias_add_row(to, job->from + (outer * axis->in + source) * job->inner + i, weights[k],
                                         count);
            }
        }
    }
}

/* Positions that lie outside of the region get the extrapolation value. */
static void extrapolate(const prn_resize *resize, const prony_value *out)
{
    for (int index = 0; index < resize->rank; index++) {
        const int64_t outer = prn_shape_count(&out->shape, 0, index), extent = out->shape.dim[index];
        const int64_t inner = prn_shape_count(&out->shape, index + 1, resize->rank);
        for (int64_t row = 0; row < outer * extent && !(inner < 1024 ? prn_cancelled_at(row) : prn_cancelled());
             row++) {
            if (!prn_resize_is_outside(resize, index, prn_resize_source(resize, index, row % extent))) continue;
            for (int64_t i = 0; i < inner && !prn_cancelled_at(i); i++)
                prn_put_f64(out->data, out->dtype, row * inner + i, (double)resize->extrapolation);
        }
    }
}

/* One pass per resized axis, last axis first, in float64 between two buffers that both hold the largest
 * intermediate. */
void prn_resize_antialias(const prony_context *context, const prn_resize *resize, double *space)
{
    const prony_value *in = context->inputs[0], *out = context->outputs[0];
    prony_shape shape = in->shape;
    int64_t largest = prony_shape_numel(&shape);
    for (int i = resize->rank - 1; i >= 0; i--) {
        shape.dim[i] = resize->axis[i].out;
        const int64_t count = prony_shape_numel(&shape);
        largest = count > largest ? count : largest;
    }
    double *from = space, *to = from + largest, *weights = to + largest;
    shape = in->shape;
    prn_convert(from, PRONY_FLOAT64, in->data, in->dtype, prony_shape_numel(&shape));
    for (int i = resize->rank - 1; i >= 0; i--) {
        const prn_resize_axis *axis = &resize->axis[i];
        if (axis->same) continue;
        pass job = {.resize = resize, .axis = i, .from = from, .to = to, .weights = weights};
        job.taps = 2 - 2 * (int64_t)first_tap(resize, axis);
        fill_weights(resize, i, job.taps, weights);
        shape.dim[i] = axis->out;
        job.inner = prn_shape_count(&shape, i + 1, shape.rank);
        const int64_t rows = prn_shape_count(&shape, 0, i + 1);
        prn_parallel_items(context->threads, rows, 16 * rows * job.inner * job.taps, resize_antialias_pass_rows, &job);
        to = from;
        from = job.to;
    }
    prn_convert(out->data, out->dtype, from, PRONY_FLOAT64, prony_shape_numel(&out->shape));
    if (resize->coordinate == PRN_RESIZE_TF_CROP_AND_RESIZE) extrapolate(resize, out);
}
