/* conv_f32_depthwise: one filter for each channel, in channel blocks.
 *
 *   x [N, C/L, D, H, W, L]    task: some output rows of one block of one image; each row is a run of positions whose sums stay in
 *   w [C/L, tap, L]           registers (conv_depthwise_simd.c). Of a window of several planes, each plane's sums are added to those of
 *   y [N, C/L, D, H, W, L]    the planes before
 *
 * Invariant: tasks are cut by the problem alone. */
#include "ops/conv/conv_kernels.h"

#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/cpu/isa.h"
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/conv/conv_cost_model.h"
#include "ops/conv/conv_depthwise_simd.h"
#include "ops/conv/conv_direct_plan.h"

#include <math.h>
#include <stdio.h>

/* Came with the kernel; chosen without measurement of other values. It is tens of microseconds, several times what a
 * task's start costs. */
enum { TASK_WORK = 200000 /* multiply-adds, of all lanes */ };

PRN_SIMD_PICK(prn_depthwise_simd, prn_depthwise_simd_, const prn_depthwise_simd *prn_depthwise_rows)

bool prn_conv_depthwise_supported(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_AVX2) || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (conv.bias && !conv.bias->data) return false;
    if (conv.groups < 2 || conv.group_in != 1 || conv.group_out != 1 || conv.batch < 1) return false;
    return prn_direct_can_fuse(context, conv.out_channels);
}

double prn_conv_depthwise_predict(const prony_context *context)
{
    prn_conv conv;
    return prn_conv_read(context, &conv) == PRONY_OK && conv.groups > 1 && conv.group_in == 1 && conv.group_out == 1
               ? prn_conv_depthwise_cycles(context, &conv)
               : INFINITY;
}

/* The state. The data of conv.x and conv.y is found anew in every run. */
typedef struct depthwise_plan {
    prn_conv conv;
    prn_direct_epilogue end;
    const float *packed;          /* NULL: the weights are made in the run, and packed into its scratch */
    int64_t blocks, rows, pieces; /* of a task; tasks of a block */
    int64_t first, last;          /* outputs of a row whose windows have no column in the padding */
} depthwise_plan;

/* One block of channels. */
static void conv_depthwise_pack_block(const prn_conv *conv, const float *weights, int64_t block, float *to)
{
    const int64_t lanes = prn_depthwise_rows()->lanes, taps = conv->kernel_volume, first = block * lanes;
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = first; c < first + lanes; c++) *to++ = c < conv->out_channels ? weights[c * taps + t] : 0.0f;
}

static prony_status conv_depthwise_build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const depthwise_plan *plan = argument;
    const int64_t floats = prn_depthwise_rows()->lanes * plan->conv.kernel_volume;
    for (int64_t block = 0; block < plan->blocks && !prn_cancelled(); block++)
        conv_depthwise_pack_block(&plan->conv, plan->conv.weights->data, block, (float *)packed + block * floats);
    return PRONY_OK;
}

static prony_status conv_depthwise_pack(const prony_context *context, depthwise_plan *plan, prn_prepared *out)
{
    const void *packed;
    const prn_conv *conv = &plan->conv;
    const int64_t lanes = prn_depthwise_rows()->lanes;
    const prn_pack_key key = {.build = conv_depthwise_build_weights,
                              .size = {lanes, conv->out_channels, conv->kernel_volume}};
    const size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, plan->blocks * lanes * conv->kernel_volume);
    if (!conv->weights->data) {
        out->scratch_bytes = bytes;
        return PRONY_OK;
    }
    PRN_TRY(context->services->packed(context, conv->weights->data, &key, bytes, plan, &packed));
    plan->packed = packed;
    return PRONY_OK;
}

/* The outputs of a row that no padding is part of, left or right. */
static void find_inside(depthwise_plan *plan)
{
    const prn_window *window = &plan->conv.window;
    const int64_t reach = (window->kernel[2] - 1) * window->dilation[2], stride = window->stride[2];
    const int64_t room = window->in[2] - 1 - reach + window->pad_begin[2];
    plan->first = prn_ceil_div(window->pad_begin[2], stride);
    plan->last = room < 0 ? 0 : prn_least(room / stride + 1, window->out[2]);
    if (plan->first > plan->last) plan->first = plan->last;
}

prony_status prn_conv_depthwise_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    depthwise_plan *plan = prn_calloc(1, sizeof *plan);
    if (!plan) return prn_no_memory(context->error);
    plan->conv = conv;
    plan->end = prn_direct_find_epilogue(context->post_ops, plan->conv.out_channels);
    plan->blocks = prn_ceil_div(conv.out_channels, prn_depthwise_rows()->lanes);
    const double row_work = (double)conv.window.out[2] * (double)conv.kernel_volume * PRN_DIRECT_UNIT;
    plan->rows = row_work > 0 && row_work < TASK_WORK ? (int64_t)(TASK_WORK / row_work) : 1;
    plan->pieces = prn_ceil_div(conv.window.out[0] * conv.window.out[1], plan->rows);
    find_inside(plan);
    prony_status status = conv_depthwise_pack(context, plan, out);
    return prn_conv_prepared(status, plan, out);
}

void prn_conv_depthwise_facts(const prony_context *context, prony_cost *facts)
{
    const prn_conv *conv = &((const depthwise_plan *)context->state)->conv;
    prn_conv_tile_facts(facts, conv->window.out[2], 1, conv->kernel_volume, prn_depthwise_rows()->positions,
                        prn_depthwise_rows()->lanes);
}

/* ---- run */

typedef struct job {
    const depthwise_plan *plan;
    const prony_context *context;
    const float *x, *added, *packed;
    float *y;
} job;

/* An output row of plane z. `row` is that of a window without planes: it ends with the bias and with what its place
 * says. */
static void conv_depthwise_run_planes(const job *job, const prn_depthwise_row *whole, int64_t z)
{
    const depthwise_plan *plan = job->plan;
    const prn_window *window = &plan->conv.window;
    const int64_t lanes = prn_depthwise_rows()->lanes, plane = window->in[1] * window->in[2] * lanes;
    const int64_t taps = window->kernel[1] * window->kernel[2] * lanes;
    static const float none[PRN_DIRECT_UNIT];
    const int64_t front = z * window->stride[0] - window->pad_begin[0];
    int64_t first, end;
    prn_window_clip(window, 0, front, &first, &end);
    prn_depthwise_row row = *whole;
    if (first == end) row.height = 0; /* all of it is padding */
    for (int64_t k = first; k < end || k == first; k++) {
        const bool last = k + 1 >= end;
        if (first < end) {
            row.x = whole->x + (front + k * window->dilation[0]) * plane;
            row.weights = whole->weights + k * taps;
        }
        row.bias = last ? whole->bias : none;
        row.clamped = last && whole->clamped;
        prn_depthwise_rows()->row(&row);
        row.added = row.y;
    }
}

/* One task: rows [begin, end) of one block of channels of one image, then the epilogue of these rows. No two tasks
 * share an output row. */
static void conv_depthwise_run_task(void *argument, int64_t task)
{
    const job *job = argument;
    const depthwise_plan *plan = job->plan;
    const prn_conv *conv = &plan->conv;
    const prn_window *window = &conv->window;
    const int64_t lanes = prn_depthwise_rows()->lanes, plane = task / plan->pieces,
                  begin = task % plan->pieces * plan->rows;
    const int64_t height = window->out[1], width = window->out[2],
                  end = prn_least(begin + plan->rows, window->out[0] * height);
    const int64_t block = plane % plan->blocks;
    const bool in_plane = prn_conv_in_plane(conv);
    float bias[PRN_DIRECT_UNIT];
    prn_direct_copy_bias(conv->bias, conv->out_channels, 0, block * lanes, lanes, bias);
    prn_depthwise_row row = {.x = job->x + plane * conv->in_spatial * lanes,
                             .height = window->in[1],
                             .width = window->in[2],
                             .left = -window->pad_begin[2],
                             .kernel = {window->kernel[1], window->kernel[2]},
                             .dilation = {window->dilation[1], window->dilation[2]},
                             .stride = window->stride[2],
                             .first = plan->first,
                             .last = plan->last,
                             .weights = job->packed + block * conv->kernel_volume * lanes,
                             .bias = bias,
                             .columns = width,
                             .clamped = plan->end.clamped,
                             .low = plan->end.low,
                             .high = plan->end.high};
    for (int64_t y = begin; y < end && !prn_cancelled(); y++) {
        const int64_t at = (plane * conv->out_spatial + y * width) * lanes;
        row.top = (in_plane ? y : y % height) * window->stride[1] - window->pad_begin[1];
        row.y = job->y + at;
        row.added = job->added ? job->added + at : NULL;
        if (in_plane)
            prn_depthwise_rows()->row(&row);
        else
            conv_depthwise_run_planes(job, &row, y / height);
    }
    prn_direct_apply_epilogue(job->context, &plan->end, job->y, plane, 1, conv->out_spatial, begin * width,
                              end * width);
}

static void pack_blocks(void *argument, int64_t begin, int64_t end)
{
    const job *job = argument;
    const int64_t floats = prn_depthwise_rows()->lanes * job->plan->conv.kernel_volume;
    for (int64_t block = begin; block < end; block++)
        conv_depthwise_pack_block(&job->plan->conv, job->context->inputs[1]->data, block,
                                  (float *)job->context->scratch + block * floats);
}

prony_status prn_conv_depthwise_run(const prony_context *context)
{
    const depthwise_plan *plan = context->state;
    job job = {.plan = plan,
               .context = context,
               .x = context->inputs[0]->data,
               .packed = plan->packed,
               .y = context->outputs[0]->data};
    if (!plan->packed) {
        job.packed = context->scratch;
        prn_parallel_items(context->threads, plan->blocks, plan->conv.out_channels * plan->conv.kernel_volume,
                           pack_blocks, &job);
    }
    if (plan->end.added) job.added = context->inputs[plan->end.added]->data;
    prn_parallel_tasks(context->threads, plan->conv.batch * plan->blocks * plan->pieces, conv_depthwise_run_task, &job);
    return PRONY_OK;
}
