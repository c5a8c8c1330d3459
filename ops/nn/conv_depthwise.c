/* conv_f32_depthwise: one filter for each channel, in channel blocks.
 *
 *   x [N, C/L, H, W, L]    task: some output rows of one block of one image; each row is a run of positions whose sums stay in
 *   w [C/L, tap, L]        registers (conv_depthwise_simd.c)
 *   y [N, C/L, H, W, L]
 *
 * Invariant: tasks are cut by the problem alone. */
#include "ops/nn/conv_depthwise.h"

#include "base/integers.h"
#include "base/isa.h"
#include "base/parallel.h"
#include "base/simd.h"
#include "base/stop.h"
#include "ops/nn/conv_depthwise_simd.h"
#include "ops/nn/conv_direct_plan.h"

#include <stdio.h>

enum { TASK_WORK = 200000 /* multiply-adds, of all lanes */ };

PRN_SIMD_PICK(prn_depthwise_simd, prn_depthwise_simd_, static const prn_depthwise_simd *simd)

bool prn_conv_depthwise_usable(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_AVX2) || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    if (conv.groups < 2 || conv.group_in != 1 || conv.group_out != 1 || conv.batch < 1) return false;
    if (!prn_conv_in_plane(&conv)) return false;
    return prn_direct_can_end(context, conv.out_channels);
}

bool prn_conv_depthwise_worth(const prony_context *context)
{
    return context->precision == PRONY_PRECISION_FP32_STRICT || simd()->lanes == 16;
}

void prn_conv_depthwise_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prn_post_ops *post_ops = context->post_ops;
    in[0] = out[0] = simd()->lanes == 16 ? PRN_BLOCKED16 : PRN_BLOCKED8;
    if (post_ops && post_ops->count && post_ops->op[0].kind == PRN_POST_ADD) in[post_ops->op[0].input] = out[0];
}

static prony_status build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const prn_conv *conv = argument;
    const int64_t lanes = simd()->lanes, taps = conv->kernel_volume;
    const float *weights = conv->weights->data;
    float *to = packed;
    for (int64_t first = 0; first < conv->out_channels && !prn_stopped(); first += lanes) {
        for (int64_t t = 0; t < taps; t++) {
            for (int64_t c = first; c < first + lanes; c++) *to++ = c < conv->out_channels ? weights[c * taps + t] : 0.0f;
        }
    }
    return PRONY_OK;
}

prony_status prn_conv_depthwise_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    char tag[96];
    const void *packed;
    PRN_TRY(prn_conv_read(context, &conv));
    const int64_t lanes = simd()->lanes, blocks = prn_ceil_div(conv.out_channels, lanes);
    snprintf(tag, sizeof tag, "conv depthwise %lld lanes: %lld x %lld", (long long)lanes, (long long)conv.out_channels,
             (long long)conv.kernel_volume);
    const size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, blocks * lanes * conv.kernel_volume);
    PRN_TRY(context->host->packed(context, conv.weights->data, tag, bytes, build_weights, &conv, &packed));
    out->state = (void *)(uintptr_t)packed;
    return PRONY_OK;
}

void prn_conv_depthwise_facts(const prony_context *context, prony_cost *facts)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK) return;
    prn_cost_fact(facts, "product_rows", conv.window.out[2]); /* tiles end with the row */
    prn_cost_fact(facts, "product_columns", 1);
    prn_cost_fact(facts, "product_depth", conv.kernel_volume);
    prn_cost_fact(facts, "tile_rows", simd()->positions);
    prn_cost_fact(facts, "tile_columns", simd()->lanes);
}

/* ---- run */

typedef struct job {
    const prony_context *context;
    prn_conv conv;
    prn_direct_end end;
    const float *packed, *x, *added;
    float *y;
    int64_t blocks, rows, pieces; /* of a task; tasks of a block */
    int64_t first, last;          /* outputs of a row whose windows have no column in the padding */
} job;

/* The outputs of a row that no padding is part of, left or right. */
static void find_inside(job *job)
{
    const prn_window *window = &job->conv.window;
    const int64_t reach = (window->kernel[2] - 1) * window->dilation[2], stride = window->stride[2];
    const int64_t room = window->in[2] - 1 - reach + window->pad_begin[2];
    job->first = prn_ceil_div(window->pad_begin[2], stride);
    job->last = room < 0 ? 0 : room / stride + 1;
    if (job->last > window->out[2]) job->last = window->out[2];
    if (job->first > job->last) job->first = job->last;
}

static void run_task(void *argument, int64_t task)
{
    const job *job = argument;
    const prn_window *window = &job->conv.window;
    const int64_t lanes = simd()->lanes, plane = task / job->pieces, begin = task % job->pieces * job->rows;
    const int64_t left = window->out[1] - begin, end = begin + (left < job->rows ? left : job->rows);
    const int64_t block = plane % job->blocks, width = window->out[2];
    float bias[PRN_DIRECT_UNIT];
    prn_direct_copy_bias(&job->conv, block * lanes, lanes, bias);
    prn_depthwise_row row = {.x = job->x + plane * job->conv.in_spatial * lanes,
                             .height = window->in[1],
                             .width = window->in[2],
                             .left = -window->pad_begin[2],
                             .kernel = {window->kernel[1], window->kernel[2]},
                             .dilation = {window->dilation[1], window->dilation[2]},
                             .stride = window->stride[2],
                             .first = job->first,
                             .last = job->last,
                             .weights = job->packed + block * job->conv.kernel_volume * lanes,
                             .bias = bias,
                             .columns = width,
                             .clamped = job->end.clamped,
                             .low = job->end.low,
                             .high = job->end.high};
    for (int64_t y = begin; y < end && !prn_stopped(); y++) {
        const int64_t at = (plane * job->conv.out_spatial + y * width) * lanes;
        row.top = y * window->stride[1] - window->pad_begin[1];
        row.y = job->y + at;
        row.added = job->added ? job->added + at : NULL;
        simd()->row(&row);
    }
    prn_direct_finish(job->context, &job->end, job->y, plane, 1, job->conv.out_spatial, begin * width, end * width);
}

prony_status prn_conv_depthwise_run(const prony_context *context)
{
    job job = {.context = context,
               .end = prn_direct_find_end(context->post_ops),
               .packed = context->state,
               .x = context->inputs[0]->data,
               .y = context->outputs[0]->data};
    PRN_TRY(prn_conv_read(context, &job.conv));
    const prn_window *window = &job.conv.window;
    if (job.end.added) job.added = context->inputs[job.end.added]->data;
    job.blocks = prn_ceil_div(job.conv.out_channels, simd()->lanes);
    const double row_work = (double)window->out[2] * (double)job.conv.kernel_volume * PRN_DIRECT_UNIT;
    job.rows = row_work > 0 && row_work < TASK_WORK ? (int64_t)(TASK_WORK / row_work) : 1;
    job.pieces = prn_ceil_div(window->out[1], job.rows);
    find_inside(&job);
    prn_parallel_tasks(context->threads, job.conv.batch * job.blocks * job.pieces, run_task, &job);
    return PRONY_OK;
}
