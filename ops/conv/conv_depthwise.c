/* conv_f32_depthwise, convtranspose_f32_depthwise: one filter for each channel, in channel blocks.
 *
 *   x [N, C/L, D, H, W, L]    task: some output rows of one block of one image; each row is a run of positions whose sums stay in
 *   w [C/L, tap, L]           registers (conv_depthwise_simd.c). Of a window of several planes, each plane's sums are added to those of
 *   y [N, C/L, D, H, W, L]    the planes before
 *
 * ConvTranspose's outputs of one remainder by the strides are a run of such a row, which is laid out s apart behind it: their
 * taps are s apart and their inputs neighbours. Its weights are [C/L, remainder of rows, of columns, tap, L].
 *
 *     o = r + s q,  o + pad - k = s i    =>    i = q + (r + pad - k) / s  for the taps k that leave no remainder
 *
 * Invariant: tasks are cut by the problem alone; each output is summed in one order. */
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
#include <string.h>

/* TASK_WORK came with the kernel; chosen without measurement of other values. It is tens of microseconds, several times
 * what a task's start costs. The others bound tables and a stack buffer of ConvTranspose. */
enum {
    TASK_WORK = 200000, /* multiply-adds, of all lanes */
    MOST_STRIDE = 16,
    MOST_COLUMNS = 512 /* of a remainder: a run lies on the stack */
};

PRN_SIMD_PICK(prn_depthwise_simd, prn_depthwise_simd_, const prn_depthwise_simd *prn_depthwise_rows)

bool prn_conv_depthwise_supported(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_FMA) || prn_conv_read(context, &conv) != PRONY_OK) return false;
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

bool prn_conv_transpose_depthwise_supported(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_FMA) || prn_conv_transpose_read(context, &conv) != PRONY_OK) return false;
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

/* The outputs of one remainder along one axis: how many, the last tap that they meet and how many taps, and where in
 * the input the first one's window begins. Taps are in the order of their inputs, from the last one on. */
typedef struct axis_phase {
    int64_t outputs, last, taps, begin;
    int64_t first, end; /* outputs whose windows have no column in the padding */
} axis_phase;

/* The state. The data of conv.x and conv.y is found anew in every run. */
typedef struct depthwise_plan {
    prn_conv conv;
    prn_direct_epilogue end;
    bool transposed;
    const float *packed;          /* NULL: the weights are made in the run, and packed into its scratch */
    int64_t blocks, rows, pieces; /* of a task; tasks of a block */
    /* Of rows and columns; Conv has one of columns, and its outputs, first and end alone. */
    axis_phase axis[2][MOST_STRIDE];
    int64_t weights[MOST_STRIDE][MOST_STRIDE]; /* transposed: where those of two remainders begin, in vectors */
} depthwise_plan;

/* One tap of a block of channels. */
static float *conv_depthwise_pack_tap(const prn_conv *conv, const float *weights, int64_t block, int64_t tap, float *to)
{
    const int64_t lanes = prn_depthwise_rows()->lanes, first = block * lanes;
    for (int64_t c = first; c < first + lanes; c++)
        *to++ = c < conv->out_channels ? weights[c * conv->kernel_volume + tap] : 0.0f;
    return to;
}

static void conv_depthwise_pack_block(const depthwise_plan *plan, const float *weights, int64_t block, float *to)
{
    const prn_window *window = &plan->conv.window;
    for (int64_t t = 0; t < plan->conv.kernel_volume && !plan->transposed; t++)
        to = conv_depthwise_pack_tap(&plan->conv, weights, block, t, to);
    for (int64_t phase = 0; phase < window->stride[1] * window->stride[2] && plan->transposed; phase++) {
        const axis_phase *y = &plan->axis[0][phase / window->stride[2]], *x = &plan->axis[1][phase % window->stride[2]];
        for (int64_t t = 0; t < y->taps * x->taps; t++) {
            const int64_t ky = y->last - t / x->taps * window->stride[1],
                          kx = x->last - t % x->taps * window->stride[2];
            to = conv_depthwise_pack_tap(&plan->conv, weights, block, ky * window->kernel[2] + kx, to);
        }
    }
}

static prony_status conv_depthwise_build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const depthwise_plan *plan = argument;
    const int64_t floats = prn_depthwise_rows()->lanes * plan->conv.kernel_volume;
    for (int64_t block = 0; block < plan->blocks && !prn_cancelled(); block++)
        conv_depthwise_pack_block(plan, plan->conv.weights->data, block, (float *)packed + block * floats);
    return PRONY_OK;
}

static prony_status conv_depthwise_pack(const prony_context *context, depthwise_plan *plan, prn_prepared *out)
{
    const void *packed;
    const prn_conv *conv = &plan->conv;
    const prn_window *window = &conv->window;
    const int64_t lanes = prn_depthwise_rows()->lanes;
    prn_pack_key key = {.build = conv_depthwise_build_weights,
                        .size = {lanes, conv->out_channels, conv->kernel_volume}};
    for (int axis = 1, at = 3; axis < PRN_WINDOW_AXES && plan->transposed; axis++) {
        key.size[at++] = window->kernel[axis];
        key.size[at++] = window->stride[axis];
        key.size[at++] = window->pad_begin[axis] % window->stride[axis];
    }
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
static axis_phase find_inside(const prn_window *window)
{
    const int64_t reach = (window->kernel[2] - 1) * window->dilation[2], stride = window->stride[2];
    const int64_t room = window->in[2] - 1 - reach + window->pad_begin[2];
    axis_phase of = {.outputs = window->out[2], .first = prn_ceil_div(window->pad_begin[2], stride)};
    of.end = room < 0 ? 0 : prn_least(room / stride + 1, window->out[2]);
    if (of.first > of.end) of.first = of.end;
    return of;
}

static axis_phase find_remainder(const prn_window *window, int axis, int64_t r)
{
    const int64_t stride = window->stride[axis], in = window->in[axis];
    const int64_t from = (r + window->pad_begin[axis]) % stride; /* the first tap */
    axis_phase of = {.outputs = r < window->out[axis] ? prn_ceil_div(window->out[axis] - r, stride) : 0};
    of.taps = from < window->kernel[axis] ? (window->kernel[axis] - 1 - from) / stride + 1 : 0;
    of.last = from + (of.taps - 1) * stride;
    of.begin = of.taps ? (r + window->pad_begin[axis] - of.last) / stride : 0;
    of.first = of.begin < 0 ? prn_least(-of.begin, of.outputs) : 0;
    of.end = prn_least(in - of.taps + 1 - of.begin, of.outputs);
    if (of.end < of.first) of.end = of.first;
    return of;
}

static void conv_depthwise_find_remainders(depthwise_plan *plan)
{
    const prn_window *window = &plan->conv.window;
    int64_t at = 0;
    for (int a = 0; a < 2; a++)
        for (int64_t r = 0; r < window->stride[a + 1]; r++) plan->axis[a][r] = find_remainder(window, a + 1, r);
    for (int64_t r = 0; r < window->stride[1]; r++) {
        for (int64_t c = 0; c < window->stride[2]; c++) {
            plan->weights[r][c] = at;
            at += plan->axis[0][r].taps * plan->axis[1][c].taps;
        }
    }
}

/* Plans rows of a convolution, or of each remainder of a transposed one, whose weights are packed one after another. */
static prony_status conv_depthwise_prepare_plan(const prony_context *context, const prn_conv *conv, bool transposed,
                                                prn_prepared *out)
{
    depthwise_plan *plan = prn_calloc(1, sizeof *plan);
    if (!plan) return prn_no_memory(context->error);
    const prn_window *window = &conv->window;
    plan->conv = *conv;
    plan->transposed = transposed;
    plan->end = prn_direct_find_epilogue(context->post_ops, conv->out_channels);
    plan->blocks = prn_ceil_div(conv->out_channels, prn_depthwise_rows()->lanes);
    const double row_work =
        (double)conv->kernel_volume * PRN_DIRECT_UNIT *
        (transposed ? 2.0 * (double)window->in[2] / (double)window->stride[1] : (double)window->out[2]);
    plan->rows = row_work > 0 && row_work < TASK_WORK ? (int64_t)(TASK_WORK / row_work) : 1;
    plan->pieces = prn_ceil_div(window->out[0] * window->out[1], plan->rows);
    if (transposed)
        conv_depthwise_find_remainders(plan);
    else
        plan->axis[1][0] = find_inside(window);
    return prn_conv_prepared(conv_depthwise_pack(context, plan, out), plan, out);
}

prony_status prn_conv_depthwise_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    return conv_depthwise_prepare_plan(context, &conv, false, out);
}

prony_status prn_conv_transpose_depthwise_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_transpose_read(context, &conv));
    return conv_depthwise_prepare_plan(context, &conv, true, out);
}

void prn_conv_depthwise_facts(const prony_context *context, prony_cost *facts)
{
    const depthwise_plan *plan = context->state;
    const axis_phase *x = &plan->axis[1][0];
    prn_conv_tile_facts(facts, x->outputs, 1,
                        plan->transposed ? plan->axis[0][0].taps * x->taps : plan->conv.kernel_volume,
                        prn_depthwise_rows()->positions, prn_depthwise_rows()->lanes);
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

/* Row `number` of the output of Conv. */
static void conv_depthwise_run_row(const job *job, prn_depthwise_row row, int64_t number)
{
    const prn_window *window = &job->plan->conv.window;
    row.top = number % window->out[1] * window->stride[1] - window->pad_begin[1];
    if (prn_conv_in_plane(&job->plan->conv))
        prn_depthwise_rows()->row(&row);
    else
        conv_depthwise_run_planes(job, &row, number / window->out[1]);
}

/* Every stride-th position of a row. */
static void conv_depthwise_spread(float *y, const float *run, int64_t count, int64_t stride, int64_t lanes)
{
    for (int64_t i = 0; i < count; i++) memcpy(y + i * stride * lanes, run + i * lanes, (size_t)lanes * sizeof *y);
}

/* Row `number` of the output of ConvTranspose: a depthwise row per remainder of the columns, spread to every stride-th
 * output. Remainders cover each output once. */
static void conv_depthwise_run_transposed_row(const job *job, prn_depthwise_row row, int64_t number)
{
    const depthwise_plan *plan = job->plan;
    const prn_window *window = &plan->conv.window;
    const int64_t lanes = prn_depthwise_rows()->lanes, r = number % window->stride[1];
    const axis_phase *of_rows = &plan->axis[0][r];
    const float *weights = row.weights;
    float *const y = row.y;
    _Alignas(64) float run[MOST_COLUMNS * PRN_DIRECT_UNIT];
    row.top = number / window->stride[1] + of_rows->begin;
    row.stride = 1;
    if (window->stride[2] > 1) row.y = run;
    for (int64_t c = 0; c < window->stride[2]; c++) {
        const axis_phase *of_columns = &plan->axis[1][c];
        if (of_columns->outputs == 0) continue;
        row.left = of_columns->begin;
        row.kernel[0] = of_columns->taps ? of_rows->taps : 0;
        row.kernel[1] = of_columns->taps;
        row.first = of_columns->first;
        row.last = of_columns->end;
        row.weights = weights + plan->weights[r][c] * lanes;
        row.columns = of_columns->outputs;
        prn_depthwise_rows()->row(&row);
        if (row.y == run) conv_depthwise_spread(y + c * lanes, run, of_columns->outputs, window->stride[2], lanes);
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
    const int64_t width = window->out[2], end = prn_least(begin + plan->rows, window->out[0] * window->out[1]);
    const int64_t block = plane % plan->blocks;
    float bias[PRN_DIRECT_UNIT];
    prn_direct_copy_bias(conv->bias, conv->out_channels, 0, block * lanes, lanes, bias);
    prn_depthwise_row row = {.x = job->x + plane * conv->in_spatial * lanes,
                             .height = window->in[1],
                             .width = window->in[2],
                             .left = -window->pad_begin[2],
                             .kernel = {window->kernel[1], window->kernel[2]},
                             .dilation = {window->dilation[1], window->dilation[2]},
                             .stride = window->stride[2],
                             .first = plan->axis[1][0].first,
                             .last = plan->axis[1][0].end,
                             .weights = job->packed + block * conv->kernel_volume * lanes,
                             .bias = bias,
                             .columns = width,
                             .clamped = plan->end.clamped,
                             .low = plan->end.low,
                             .high = plan->end.high};
    for (int64_t y = begin; y < end && !prn_cancelled(); y++) {
        const int64_t at = (plane * conv->out_spatial + y * width) * lanes;
        row.y = job->y + at;
        row.added = job->added ? job->added + at : NULL;
        if (plan->transposed)
            conv_depthwise_run_transposed_row(job, row, y);
        else
            conv_depthwise_run_row(job, row, y);
    }
    prn_direct_apply_epilogue(job->context, &plan->end, job->y, plane, 1, conv->out_spatial, begin * width,
                              end * width);
}

static void pack_blocks(void *argument, int64_t begin, int64_t end)
{
    const job *job = argument;
    const int64_t floats = prn_depthwise_rows()->lanes * job->plan->conv.kernel_volume;
    for (int64_t block = begin; block < end; block++)
        conv_depthwise_pack_block(job->plan, job->context->inputs[1]->data, block,
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
