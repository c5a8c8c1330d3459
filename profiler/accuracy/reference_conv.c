/* Conv in float64, row by row of the output: every tap adds a row of the input. Sums are formed in the order of the
 * definition. */
#include "profiler/accuracy/reference.h"

#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/shape.h"
#include "base/threads/cancel.h"
#include "ops/kernels/window/conv_problem.h"

#include <string.h>

/* One row of the output: += tap * the row of the input that it meets. */
static void reference_conv_add_tap(const prn_window *w, double *y, const double *x, double tap, int64_t t)
{
    int64_t first, last;
    prn_window_outputs(w, t, &first, &last);
    const int64_t stride = w->stride[2], shift = t * w->dilation[2] - w->pad_begin[2];
    if (stride == 1) {
        for (int64_t p = first; p < last; p++) y[p] += tap * x[p + shift];
    } else {
        for (int64_t p = first; p < last; p++) y[p] += tap * x[p * stride + shift];
    }
}

static void add_channel(const prn_conv *c, double *y, const double *x, const double *weights)
{
    const prn_window *w = &c->window;
    for (int64_t i = 0; i < w->kernel[0]; i++)
        for (int64_t j = 0; j < w->kernel[1]; j++)
            for (int64_t t = 0; t < w->kernel[2]; t++, weights++)
                for (int64_t d = 0; d < w->out[0]; d++) {
                    const int64_t z = d * w->stride[0] - w->pad_begin[0] + i * w->dilation[0];
                    if (z < 0 || z >= w->in[0]) continue;
                    for (int64_t h = 0; h < w->out[1]; h++) {
                        const int64_t v = h * w->stride[1] - w->pad_begin[1] + j * w->dilation[1];
                        if (v < 0 || v >= w->in[1]) continue;
                        reference_conv_add_tap(w, y + (d * w->out[1] + h) * w->out[2],
                                               x + (z * w->in[1] + v) * w->in[2], *weights, t);
                    }
                }
}

static void plane(void *argument, int64_t task)
{
    const prn_conv *c = argument;
    const int64_t n = task / c->out_channels, k = task % c->out_channels;
    const double *weights = (const double *)c->weights->data + k * c->group_in * c->kernel_volume;
    const double *x =
        (const double *)c->x->data + (n * c->in_channels + k / c->group_out * c->group_in) * c->in_spatial;
    double *y = (double *)c->y->data + task * c->out_spatial;
    const double bias = c->bias ? ((const double *)c->bias->data)[k] : 0;
    for (int64_t p = 0; p < c->out_spatial; p++) y[p] = bias;
    for (int64_t i = 0; i < c->group_in && !prn_cancelled(); i++)
        add_channel(c, y, x + i * c->in_spatial, weights + i * c->kernel_volume);
}

/* Computes a Conv with float64 inputs only; *done stays false for other nodes. */
prony_status prn_reference_conv(const prn_reference *r, const prn_node_def *node, const prn_f64_tensor *const *inputs,
                                prn_f64_tensor *outputs, bool *done, prony_error *error)
{
    enum { MOST = 3 };
    const prony_value *pointers[MOST] = {NULL};
    prony_value made = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT64}, *output = &made;
    prony_error unused = {0};
    prn_conv conv;
    bool rounded = false;
    if (strcmp(node->info.op_type, "Conv") != 0 || *node->info.domain || node->input_count > MOST) return PRONY_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!inputs[i]) continue;
        if (inputs[i]->value.dtype != PRONY_FLOAT64) return PRONY_OK;
        rounded |= inputs[i]->rounded;
        pointers[i] = &inputs[i]->value;
    }
    prony_context context = prn_reference_context(r, node, pointers, &output, &unused);
    if (prn_conv_read(&context, &conv) != PRONY_OK || prn_conv_infer(&context, &conv) != PRONY_OK) return PRONY_OK;
    made.data = prn_alloc_aligned(64, prn_value_bytes(&made) + 1);
    if (!made.data) return prn_no_memory(error);
    prn_parallel_tasks(r->threads, conv.batch * conv.out_channels, plane, &conv);
    PRN_TRY(prn_f64_tensor_take(&outputs[0], &made, error));
    outputs[0].model = inputs[0]->model;
    outputs[0].rounded = rounded;
    *done = true;
    return PRONY_OK;
}
