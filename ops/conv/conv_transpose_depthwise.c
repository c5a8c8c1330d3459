/* convtranspose_f32_depthwise: one filter for each channel, in channel blocks, as depthwise convolutions of one
 * remainder of the output's positions by the strides each.
 *
 *     o = r + s q,  o + pad - k = s i    =>    i = q + (r + pad - k) / s  for the taps k that leave no remainder
 *
 * Those taps are s apart and their inputs neighbours, so outputs of one remainder are a run of a depthwise
 * convolution's row (conv_depthwise_simd.c), which is laid out s apart behind it.
 *
 *     task    = some output rows of one block of one image
 *     weights = [block][remainder of rows][of columns][tap, by the input's row and column][lane]
 *
 * Invariant: tasks are cut by the problem alone; each output is summed in one order. */
#include "ops/conv/conv_kernels.h"
#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/cpu/isa.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/conv/conv_depthwise_simd.h"
#include "ops/conv/conv_direct_plan.h"

#include <stdio.h>
#include <string.h>

/* Chosen without measurement: the first two bound tables and a stack buffer, TASK_WORK is half of the depthwise
 * convolution's. */
enum {
    MOST_STRIDE = 16,
    MOST_COLUMNS = 512,
    /* of a remainder: a run lies on the stack */ TASK_WORK = 100000 /* multiply-adds, of all lanes */
};

/* The outputs of one remainder along one axis: how many, the last tap that they meet and how many taps, and where in
 * the input the first one's window begins. Taps are in the order of their inputs, from the last one on. */
typedef struct remainder {
    int64_t outputs, last, taps, begin;
    int64_t first, end; /* outputs whose windows have no column in the padding */
} remainder;

typedef struct transpose_plan {
    prn_conv conv;
    prn_direct_epilogue end;
    const float *packed;
    int64_t blocks, rows, pieces; /* of a task; tasks of a block */
    remainder axis[2][MOST_STRIDE];
    int64_t weights[MOST_STRIDE][MOST_STRIDE]; /* where those of two remainders begin, in vectors */
} transpose_plan;

bool prn_conv_transpose_depthwise_supported(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_AVX2) || prn_conv_transpose_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    if (conv.groups < 2 || conv.group_in != 1 || conv.group_out != 1 || conv.batch < 1 || conv.in_spatial < 1)
        return false;
    const prn_window *window = &conv.window;
    if (window->kernel[0] != 1 || window->in[0] != 1 || window->out[0] != 1 || window->pad_begin[0]) return false;
    for (int axis = 1; axis < PRN_WINDOW_AXES; axis++)
        if (window->stride[axis] > MOST_STRIDE || window->dilation[axis] != 1) return false;
    if (prn_ceil_div(window->out[2], window->stride[2]) > MOST_COLUMNS ||
        prn_direct_find_epilogue(context->post_ops, 1).added)
        return false;
    return prn_direct_can_fuse(context, conv.out_channels);
}

/* ---- prepared */

static remainder find_remainder(const prn_window *window, int axis, int64_t r)
{
    const int64_t stride = window->stride[axis], in = window->in[axis];
    const int64_t from = (r + window->pad_begin[axis]) % stride; /* the first tap */
    remainder of = {.outputs = r < window->out[axis] ? prn_ceil_div(window->out[axis] - r, stride) : 0};
    of.taps = from < window->kernel[axis] ? (window->kernel[axis] - 1 - from) / stride + 1 : 0;
    of.last = from + (of.taps - 1) * stride;
    of.begin = of.taps ? (r + window->pad_begin[axis] - of.last) / stride : 0;
    of.first = of.begin < 0 ? prn_least(-of.begin, of.outputs) : 0;
    of.end = prn_least(in - of.taps + 1 - of.begin, of.outputs);
    if (of.end < of.first) of.end = of.first;
    return of;
}

static prony_status conv_transpose_depthwise_build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const transpose_plan *plan = argument;
    const prn_conv *conv = &plan->conv;
    const prn_window *window = &conv->window;
    const int64_t lanes = prn_depthwise_rows()->lanes, width = window->kernel[2];
    const float *weights = conv->weights->data;
    float *to = packed;
    for (int64_t first = 0; first < plan->blocks * lanes && !prn_cancelled(); first += lanes) {
        for (int64_t phase = 0; phase < window->stride[1] * window->stride[2]; phase++) {
            const remainder *y = &plan->axis[0][phase / window->stride[2]],
                            *x = &plan->axis[1][phase % window->stride[2]];
            for (int64_t t = 0; t < y->taps * x->taps; t++) {
                const int64_t ky = y->last - t / x->taps * window->stride[1],
                              kx = x->last - t % x->taps * window->stride[2];
                for (int64_t c = first; c < first + lanes; c++)
                    *to++ = c < conv->out_channels ? weights[c * conv->kernel_volume + ky * width + kx] : 0.0f;
            }
        }
    }
    return PRONY_OK;
}

static prony_status conv_transpose_depthwise_pack(const prony_context *context, transpose_plan *plan)
{
    const void *packed;
    const prn_conv *conv = &plan->conv;
    const prn_window *window = &conv->window;
    const int64_t lanes = prn_depthwise_rows()->lanes;
    const prn_pack_key key = {.build = conv_transpose_depthwise_build_weights,
                              .size = {lanes, conv->out_channels, window->kernel[1], window->kernel[2],
                                       window->stride[1], window->stride[2], window->pad_begin[1] % window->stride[1],
                                       window->pad_begin[2] % window->stride[2]}};
    const size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, plan->blocks * lanes * conv->kernel_volume);
    PRN_TRY(context->services->packed(context, conv->weights->data, &key, bytes, plan, &packed));
    plan->packed = packed;
    return PRONY_OK;
}

/* Plans the depthwise convolution of each remainder of the output by the strides, and packs their weights one after
 * another. */
prony_status prn_conv_transpose_depthwise_prepare(const prony_context *context, prn_prepared *out)
{
    transpose_plan *plan = prn_calloc(1, sizeof *plan);
    if (!plan) return prn_no_memory(context->error);
    prony_status status = prn_conv_transpose_read(context, &plan->conv);
    const prn_window *window = &plan->conv.window;
    if (status == PRONY_OK) {
        plan->end = prn_direct_find_epilogue(context->post_ops, plan->conv.out_channels);
        plan->blocks = prn_ceil_div(plan->conv.out_channels, prn_depthwise_rows()->lanes);
        const double row_work =
            (double)window->in[2] * (double)plan->conv.kernel_volume / (double)window->stride[1] * PRN_DIRECT_UNIT;
        plan->rows = row_work > 0 && row_work < TASK_WORK ? (int64_t)(TASK_WORK / row_work) + 1 : 1;
        plan->pieces = prn_ceil_div(window->out[1], plan->rows);
        int64_t at = 0;
        for (int a = 0; a < 2; a++)
            for (int64_t r = 0; r < window->stride[a + 1]; r++) plan->axis[a][r] = find_remainder(window, a + 1, r);
        for (int64_t r = 0; r < window->stride[1]; r++) {
            for (int64_t c = 0; c < window->stride[2]; c++) {
                plan->weights[r][c] = at;
                at += plan->axis[0][r].taps * plan->axis[1][c].taps;
            }
        }
        status = conv_transpose_depthwise_pack(context, plan);
    }
    return prn_conv_prepared(status, plan, out);
}

void prn_conv_transpose_depthwise_facts(const prony_context *context, prony_cost *facts)
{
    const transpose_plan *plan = context->state;
    prn_conv_tile_facts(facts, plan->axis[1][0].outputs, 1, plan->axis[0][0].taps * plan->axis[1][0].taps,
                        prn_depthwise_rows()->positions, prn_depthwise_rows()->lanes);
}

/* ---- run */

typedef struct job {
    const transpose_plan *plan;
    const prony_context *context;
    const float *x;
    float *y;
} job;

/* Every stride-th position of a row. */
static void conv_transpose_depthwise_spread(float *y, const float *run, int64_t count, int64_t stride, int64_t lanes)
{
    for (int64_t i = 0; i < count; i++) memcpy(y + i * stride * lanes, run + i * lanes, (size_t)lanes * sizeof *y);
}

/* One output row of a channel block: a depthwise row per remainder of the columns, spread to every stride-th output.
 * Remainders cover each output once. */
static void conv_transpose_depthwise_run_row(const transpose_plan *plan, const float *x, const float *weights,
                                             const float *bias, int64_t number, float *y)
{
    const prn_window *window = &plan->conv.window;
    const int64_t lanes = prn_depthwise_rows()->lanes, r = number % window->stride[1];
    const remainder *of_rows = &plan->axis[0][r];
    _Alignas(64) float run[MOST_COLUMNS * PRN_DIRECT_UNIT];
    for (int64_t c = 0; c < window->stride[2]; c++) {
        const remainder *of_columns = &plan->axis[1][c];
        if (of_columns->outputs == 0) continue;
        const prn_depthwise_row row = {.x = x,
                                       .height = window->in[1],
                                       .width = window->in[2],
                                       .top = number / window->stride[1] + of_rows->begin,
                                       .left = of_columns->begin,
                                       .kernel = {of_columns->taps ? of_rows->taps : 0, of_columns->taps},
                                       .dilation = {1, 1},
                                       .stride = 1,
                                       .first = of_columns->first,
                                       .last = of_columns->end,
                                       .weights = weights + plan->weights[r][c] * lanes,
                                       .bias = bias,
                                       .y = window->stride[2] == 1 ? y : run,
                                       .columns = of_columns->outputs,
                                       .clamped = plan->end.clamped,
                                       .low = plan->end.low,
                                       .high = plan->end.high};
        prn_depthwise_rows()->row(&row);
        if (row.y == run)
            conv_transpose_depthwise_spread(y + c * lanes, run, of_columns->outputs, window->stride[2], lanes);
    }
}

static void conv_transpose_depthwise_run_task(void *argument, int64_t task)
{
    const job *job = argument;
    const transpose_plan *plan = job->plan;
    const prn_conv *conv = &plan->conv;
    const int64_t lanes = prn_depthwise_rows()->lanes, plane = task / plan->pieces,
                  begin = task % plan->pieces * plan->rows;
    const int64_t end = prn_least(begin + plan->rows, conv->window.out[1]), block = plane % plan->blocks,
                  width = conv->window.out[2];
    float bias[PRN_DIRECT_UNIT];
    prn_direct_copy_bias(conv->bias, conv->out_channels, 0, block * lanes, lanes, bias);
    for (int64_t y = begin; y < end && !prn_cancelled(); y++)
        conv_transpose_depthwise_run_row(plan, job->x + plane * conv->in_spatial * lanes,
                                         plan->packed + block * conv->kernel_volume * lanes, bias, y,
                                         job->y + (plane * conv->out_spatial + y * width) * lanes);
    prn_direct_apply_epilogue(job->context, &plan->end, job->y, plane, 1, conv->out_spatial, begin * width,
                              end * width);
}

prony_status prn_conv_transpose_depthwise_run(const prony_context *context)
{
    const transpose_plan *plan = context->state;
    job job = {plan, context, context->inputs[0]->data, context->outputs[0]->data};
    prn_parallel_tasks(context->threads, plan->conv.batch * plan->blocks * plan->pieces,
                       conv_transpose_depthwise_run_task, &job);
    return PRONY_OK;
}
