/* MaxPool, AveragePool and LpPool; their global forms are in pool_global.c.
 *
 * The native kernel runs in whatever layout its input has: a tensor is [outer][D, H, W][lanes] with lanes 1 (plain), 8
 * or 16 (blocked) or C (NHWC), and a window combines whole rows of lanes. Invariant: the order in which
 * an output combines its window's elements depends on the window and the layout alone. */
#include "ops/pool/pool.h"
#include "base/integers.h"

#include "base/memory/alloc.h"
#include "base/cpu/simd.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/widen.h"
#include "ops/kernels/vector/vec.h"
#include "ops/kernels/window/window.h"
#include "ops/pool/pool_simd.h"
#include "ops/vendor/opencl/opencl_pool.h"

#include <math.h>
#include <string.h>

typedef struct pool_params {
    prn_window_params window;
    int64_t count_include_pad, storage_order, p;
} pool_params;

/* ---- shapes and cost */

static prony_status pool_check(const prony_context *context)
{
    const pool_params *params = context->params;
    if (params->storage_order != 0 && params->storage_order != 1)
        return prony_fail(context, PRONY_INVALID_MODEL, "storage_order is %lld; it must be 0 or 1",
                          (long long)params->storage_order);
    PRN_TRY(prn_window_check(context, &params->window));
    return prn_pool_kind_of(context) == PRN_POOL_LP ? prn_pool_check_p(context, params->p) : PRONY_OK;
}

static prony_status pool_read_window(const prony_context *context, prn_window *window)
{
    const pool_params *params = context->params;
    PRN_TRY(prn_check_rank(context, 0, 3, 2 + PRN_WINDOW_AXES));
    size_t axes = (size_t)context->inputs[0]->shape.rank - 2;
    if (params->window.kernel_shape.count != axes)
        return prony_fail(context, PRONY_INVALID_MODEL, "kernel_shape has %zu entries, wanted %zu",
                          params->window.kernel_shape.count, axes);
    PRN_TRY(prn_window_begin(context, &params->window, params->window.kernel_shape.v, window));
    return prn_window_forward(context, &params->window, window);
}

static prony_status pool_prepare(const prony_context *context, prn_prepared *out)
{
    prn_window window;
    PRN_TRY(pool_read_window(context, &window));
    return prn_prepared_keep(context, &window, sizeof window, out);
}

#define MAX_TYPES (PRN_TYPES_FLOAT | PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8))

static prony_status pool_infer(const prony_context *context)
{
    prn_window window;
    PRN_TRY(prn_check_type(context, 0, prn_pool_kind_of(context) == PRN_POOL_MAX ? MAX_TYPES : PRN_TYPES_FLOAT));
    PRN_TRY(pool_read_window(context, &window));
    const prony_shape *in = &context->inputs[0]->shape;
    prony_shape shape = prn_window_output_shape(&window, in->dim[0], in->dim[1]);
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the output is too large");
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    prn_set_output(context, 1, PRONY_INT64, &shape);
    return PRONY_OK;
}

static prony_status pool_cost(const prony_context *context, prony_cost *cost)
{
    const prn_pool_kind kind = prn_pool_kind_of(context);
    prn_window window;
    PRN_TRY(pool_read_window(context, &window));
    const int64_t volume = prn_window_volume(window.kernel);
    prn_cost_fact(cost, "kernel_volume", volume);
    if (kind == PRN_POOL_LP)
        return prn_pool_cost_lp(context, cost, (uint64_t)volume, ((const pool_params *)context->params)->p);
    const prony_shape *in = &context->inputs[0]->shape;
    const prony_shape out = prn_window_output_shape(&window, in->dim[0], in->dim[1]);
    const int64_t outputs = prony_shape_numel(&out);
    const bool average = kind == PRN_POOL_AVERAGE;
    prn_cost_fact(cost, "input_elements", prony_shape_numel(in));
    prn_cost_fact(cost, "output_elements", outputs);
    return prn_cost_elementwise(context, cost, (uint64_t)outputs, (uint64_t)(average ? volume : volume - 1), average);
}

/* ---- windows */

/* Input positions first, last along each axis, for one output position. */
typedef struct reach {
    int64_t start[PRN_WINDOW_AXES], first[PRN_WINDOW_AXES], last[PRN_WINDOW_AXES];
} reach;

static void pool_find_reach(const prn_window *window, const int64_t at[PRN_WINDOW_AXES], reach *reach)
{
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        reach->start[a] = at[a] * window->stride[a] - window->pad_begin[a];
        prn_window_clip(window, a, reach->start[a], &reach->first[a], &reach->last[a]);
    }
}

/* Every output position sees at least one input, so that lanes of zeros stay zeros. */
static bool all_windows_meet_input(const prn_window *window)
{
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        for (int64_t o = 0; o < window->out[a]; o++) {
            if (prn_window_taps(window, a, o, false) == 0 || prn_cancelled_at(o)) return false;
        }
    }
    return true;
}

/* ---- native */

typedef struct job {
    prn_window window;
    const float *x;
    float *y;
    int64_t lanes, rows, rows_per_task; /* rows of the output, over all outer planes */
    bool average, padding, inside;      /* inside: no window meets any padding */
    bool one_divisor;                   /* all windows of an average count as many taps */
    bool planes;                        /* pool_planes */
} job;

PRN_SIMD_PICK(prn_pool_simd, prn_pool_simd_, static const prn_pool_simd *pool_table)

/* Windows inside the input have one number of taps. */
static void divide_row(const job *job, int64_t z, int64_t row, float *y)
{
    const prn_window *window = &job->window;
    const int64_t depth_rows =
        prn_window_taps(window, 0, z, job->padding) * prn_window_taps(window, 1, row, job->padding);
    const int64_t room = window->in[2] - prn_window_reach(window, 2) + window->pad_begin[2];
    int64_t first = prn_ceil_div(window->pad_begin[2], window->stride[2]);
    int64_t last = room < 0 ? 0 : room / window->stride[2] + 1;
    if (last > window->out[2]) last = window->out[2];
    if (first > last) first = last;
    prn_long_vs(PRN_BINARY_DIV, y + first * job->lanes, y + first * job->lanes, (float)(depth_rows * window->kernel[2]),
                (last - first) * job->lanes);
    for (int64_t k = 0; k < window->out[2] - (last - first); k++) {
        const int64_t i = k < first ? k : k + (last - first);
        const float count = (float)(depth_rows * prn_window_taps(window, 2, i, job->padding));
        for (int64_t l = 0; l < job->lanes; l++) y[i * job->lanes + l] /= count;
    }
}

/* `count` rows of the output from row `index` on: one, or several of a plane whose windows all lie inside the input. */
static void pool_rows(const job *job, int64_t index, int64_t count)
{
    const prn_window *window = &job->window;
    const int64_t lanes = job->lanes, row = index % window->out[1], z = index / window->out[1] % window->out[0];
    const float *plane = job->x + index / (window->out[0] * window->out[1]) * prn_window_volume(window->in) * lanes;
    float *y = job->y + index * window->out[2] * lanes;
    const int64_t at[PRN_WINDOW_AXES] = {z, row, 0}, width = window->in[2] * lanes;
    reach reach;
    pool_find_reach(window, at, &reach);
    const int64_t first_z = reach.start[0] + reach.first[0] * window->dilation[0];
    const int64_t first_row = reach.start[1] + reach.first[1] * window->dilation[1];
    const prn_bump_row rows = {.x = plane + (first_z * window->in[1] + first_row) * width,
                               .depth = reach.last[0] - reach.first[0],
                               .depth_step = window->dilation[0] * window->in[1] * width,
                               .height = reach.last[1] - reach.first[1],
                               .height_step = window->dilation[1] * width,
                               .rows = count,
                               .row_step = window->stride[1] * width,
                               .in = window->in[2],
                               .out = window->out[2],
                               .lanes = lanes,
                               .taps = window->kernel[2],
                               .stride = window->stride[2],
                               .dilation = window->dilation[2],
                               .pad = window->pad_begin[2]};
    if (job->average) {
        pool_table()->sum(y, &rows);
        if (!job->one_divisor) divide_row(job, z, row, y);
    } else {
        pool_table()->max(y, &rows);
    }
}

/* A plane of planar elements, as far as it says nothing of rows. */
static prn_pool_plane plane_of(const prn_window *window)
{
    return (prn_pool_plane){.height = window->in[1],
                            .width = window->in[2],
                            .out = window->out[2],
                            .taps = {window->kernel[1], window->kernel[2]},
                            .stride = {window->stride[1], window->stride[2]},
                            .dilation = {window->dilation[1], window->dilation[2]},
                            .pad = {window->pad_begin[1], window->pad_begin[2]}};
}

/* True if planes are pooled whole: of windows without padding in steps of two, rows have loops that are faster. */
static bool pools_planes(const job *job)
{
    const prn_window *window = &job->window;
    const prn_pool_plane plane = plane_of(window);
    if (job->lanes != 1 || window->kernel[0] != 1 || window->in[0] != 1 || window->out[0] != 1 || window->pad_begin[0])
        return false;
    if (job->inside && window->stride[2] == 2 && window->kernel[2] <= 3) return false;
    return prn_pool_plane_fits(&plane);
}

/* Rows [begin, end) of all planes' outputs. */
static void pool_planes(const job *job, int64_t begin, int64_t end)
{
    enum { ROWS = 64 };
    const prn_window *window = &job->window;
    const int64_t height = window->out[1], width = window->out[2];
    float row_counts[ROWS], column_counts[PRN_POOL_LINE];
    prn_pool_plane plane = plane_of(window);
    plane.row_counts = row_counts;
    plane.column_counts = column_counts;
    for (int64_t i = 0; i < width && job->average; i++)
        column_counts[i] = (float)prn_window_taps(window, 2, i, job->padding);
    for (int64_t row = begin; row < end && !prn_cancelled(); row += plane.rows) {
        plane.first = row % height;
        plane.rows = prn_least(ROWS, prn_least(height - plane.first, end - row));
        for (int64_t r = 0; r < plane.rows && job->average; r++)
            row_counts[r] = (float)prn_window_taps(window, 1, plane.first + r, job->padding);
        plane.x = job->x + row / height * window->in[1] * window->in[2];
        plane.y = job->y + row * width;
        (job->average ? pool_table()->average_plane : pool_table()->max_plane)(&plane);
    }
}

static void pool_task(void *argument, int64_t task)
{
    const job *job = argument;
    const int64_t begin = task * job->rows_per_task, end = prn_least(begin + job->rows_per_task, job->rows);
    const int64_t plane = job->window.out[1], width = job->window.out[2] * job->lanes;
    if (job->planes) {
        pool_planes(job, begin, end);
        return;
    }
    for (int64_t row = begin, count; row < end && !prn_cancelled(); row += count) {
        count = job->inside ? prn_least(plane - row % plane, end - row) : 1;
        pool_rows(job, row, count);
    }
    if (job->average && job->one_divisor) {
        const int64_t volume = prn_window_volume(job->window.kernel);
        const bool power = (volume & (volume - 1)) == 0; /* of two: multiplying by its reciprocal is exact, and
                                                            faster */
        prn_long_vs(power ? PRN_BINARY_MUL : PRN_BINARY_DIV, job->y + begin * width, job->y + begin * width,
                    power ? 1.0f / (float)volume : (float)volume, (end - begin) * width);
    }
}

/* No window meets any padding. */
static bool all_inside(const prn_window *window)
{
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        if (window->pad_begin[a] ||
            (window->out[a] - 1) * window->stride[a] + prn_window_reach(window, a) > window->in[a])
            return false;
    }
    return true;
}

/* No window reaches over the end of the padding. */
static bool all_in_padding(const prn_window *window)
{
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        const int64_t last = (window->out[a] - 1) * window->stride[a] - window->pad_begin[a];
        if (last + prn_window_reach(window, a) > window->in[a] + window->pad_end[a]) return false;
    }
    return true;
}

static prony_status pool_run_native(const prony_context *context)
{
    enum { TASK_ELEMENTS = 16384 };
    const prony_value *x = context->inputs[0];
    prn_layout layout = (prn_layout)x->layout;
    int64_t block = prn_layout_block(layout), channels = x->shape.dim[1];
    job job = {.window = *(const prn_window *)context->state,
               .x = x->data,
               .y = context->outputs[0]->data,
               .lanes = layout == PRN_NHWC ? channels
                        : block            ? block
                                           : 1,
               .average = prn_pool_kind_of(context) == PRN_POOL_AVERAGE,
               .padding = ((const pool_params *)context->params)->count_include_pad != 0};
    job.inside = all_inside(&job.window);
    job.one_divisor = job.inside || (job.padding && all_in_padding(&job.window));
    job.planes = pools_planes(&job);
    int64_t planes = layout == PRN_NHWC ? x->shape.dim[0] : prn_layout_elements(&x->shape, layout) / job.lanes;
    if (layout != PRN_NHWC) planes /= prn_window_volume(job.window.in);
    job.rows = planes * job.window.out[0] * job.window.out[1];
    job.rows_per_task = TASK_ELEMENTS / (job.window.out[2] * job.lanes) + 1;
    prn_parallel_tasks(context->threads, prn_ceil_div(job.rows, job.rows_per_task), pool_task, &job);
    return PRONY_OK;
}

static bool pool_native_supported(const prony_context *context)
{
    prn_window window;
    if (prn_output(context, 1) || prony_shape_numel(&context->inputs[0]->shape) <= 0) return false;
    return pool_read_window(context, &window) == PRONY_OK && all_windows_meet_input(&window);
}

/* Of 8-bit codes. */
static bool codes_supported(const prony_context *context)
{
    prn_window window;
    if (!pool_native_supported(context) || pool_read_window(context, &window) != PRONY_OK) return false;
    return prn_pool_codes_fit(&window);
}

static prony_status run_codes(const prony_context *context)
{
    prn_pool_codes_run(context, context->state);
    return PRONY_OK;
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static bool pool_opencl_supported(const prony_context *context)
{
    prn_window window;
    return pool_read_window(context, &window) == PRONY_OK && prn_opencl_pool_supported(context, &window);
}

static prony_status pool_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    prn_window window;
    PRN_TRY(pool_read_window(context, &window));
    const pool_params *params = context->params;
    const prn_opencl_pool pool = {.average = prn_pool_kind_of(context) == PRN_POOL_AVERAGE,
                                  .padding = params->count_include_pad != 0,
                                  .column_major = params->storage_order == 1};
    return prn_opencl_pool_prepare(context, &window, &pool, out);
}
#endif

/* ---- reference */

/* One output element after another: [begin, end) of them. */
typedef struct plain_job {
    prn_window window;
    const prony_value *x;
    prony_value *y;
    int64_t *indices;
    int64_t in_plane, out_plane, p; /* p: 0 is an average */
    bool column_major, padding;
} plain_job;

/* True if a large window is left in front of its row `row`. */
static bool pool_is_left(int64_t row, const reach *reach)
{
    return reach->last[2] - reach->first[2] > 256 ? (row & 63) == 63 && prn_cancelled() : prn_cancelled_at(row);
}

/* `b` is larger than `a`, or the first NaN. */
#define EXCEEDS(a, b) ((b) > (a) || ((b) != (b) && (a) == (a)))

/* Position in a plane of the largest element of the window, its first NaN if it has one; -1 if the window lies in the
 * padding. */
#define DEFINE_LARGEST(P, DTYPE, name, storage, work, load, store)                                                     \
    static int64_t largest_##name(const void *data, const prn_window *window, const reach *reach)                      \
    {                                                                                                                  \
        const storage *x = data;                                                                                       \
        int64_t best = -1, rows = 0;                                                                                   \
        for (int64_t i = reach->first[0]; i < reach->last[0]; i++) {                                                   \
            for (int64_t j = reach->first[1]; j < reach->last[1] && !pool_is_left(rows++, reach); j++) {               \
                for (int64_t t = reach->first[2]; t < reach->last[2] && !prn_cancelled_at(t); t++) {                   \
                    int64_t z = reach->start[0] + i * window->dilation[0];                                             \
                    int64_t row = reach->start[1] + j * window->dilation[1];                                           \
                    int64_t p = (z * window->in[1] + row) * window->in[2] + reach->start[2] + t * window->dilation[2]; \
                    if (best < 0 || EXCEEDS(load(x[best]), load(x[p]))) best = p;                                      \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        return best;                                                                                                   \
    }
#define MAX_LIST(X, P)                                                                                                 \
    PRN_FLOAT_TYPES(X, P)                                                                                              \
    X(P, INT8, i8, int8_t, int64_t, prn_as_is, prn_as_is)                                                              \
    X(P, UINT8, u8, uint8_t, int64_t, prn_as_is, prn_as_is)
MAX_LIST(DEFINE_LARGEST, )

static int64_t pool_largest(const prony_value *x, int64_t first, const prn_window *window, const reach *reach)
{
    switch (x->dtype) {
#define LARGEST_CASE(P, DTYPE, name, storage, work, load, store)                                                       \
    case PRONY_##DTYPE:                                                                                                \
        return largest_##name((const storage *)x->data + first, window, reach);
        MAX_LIST(LARGEST_CASE, )
    default:
        return -1;
    }
}

/* Number of element p of a plane in the order that the Indices output counts in. */
static int64_t stored_index(const prn_window *window, int64_t p, bool column_major)
{
    if (!column_major) return p;
    int64_t x = p % window->in[2], y = p / window->in[2] % window->in[1], z = p / (window->in[1] * window->in[2]);
    return z + (y + x * window->in[1]) * window->in[0];
}

/* The place of the window of output element p of a plane. */
static void place_window(const plain_job *job, int64_t p, int64_t at[PRN_WINDOW_AXES], reach *reach)
{
    const int64_t *out = job->window.out;
    at[0] = p / (out[1] * out[2]);
    at[1] = p / out[2] % out[1];
    at[2] = p % out[2];
    pool_find_reach(&job->window, at, reach);
}

/* A window that lies in the padding gives the lowest value of the type. */
static void find_maxima(void *argument, int64_t begin, int64_t end)
{
    const plain_job *job = argument;
    const size_t size = prony_dtype_bytes(job->x->dtype, 1);
    for (int64_t i = begin; i < end; i++) {
        int64_t at[PRN_WINDOW_AXES], first = i / job->out_plane * job->in_plane;
        reach reach;
        place_window(job, i % job->out_plane, at, &reach);
        int64_t best = pool_largest(job->x, first, &job->window, &reach);
        if (best < 0)
            prn_put_f64(job->y->data, job->y->dtype, i, -(double)INFINITY);
        else
            memcpy((char *)job->y->data + (size_t)i * size, (const char *)job->x->data + (size_t)(first + best) * size,
                   size);
        if (job->indices) job->indices[i] = first + stored_index(&job->window, best < 0 ? 0 : best, job->column_major);
    }
}

/* Sum over the window of x, or of |x|^p. */
static double window_sum(const plain_job *job, int64_t plane, const reach *reach)
{
    const prn_window *window = &job->window;
    double sum = 0;
    int64_t rows = 0;
    for (int64_t a = reach->first[0]; a < reach->last[0]; a++) {
        for (int64_t b = reach->first[1]; b < reach->last[1] && !pool_is_left(rows++, reach); b++) {
            int64_t row =
                (reach->start[0] + a * window->dilation[0]) * window->in[1] + reach->start[1] + b * window->dilation[1];
            int64_t first = plane + row * window->in[2] + reach->start[2];
            for (int64_t c = reach->first[2]; c < reach->last[2] && !prn_cancelled_at(c); c++) {
                double x = prn_get_f64(job->x->data, job->x->dtype, first + c * window->dilation[2]);
                sum += job->p == 0 ? x : prn_pool_power(x, job->p);
            }
        }
    }
    return sum;
}

static void pool_sum_windows(void *argument, int64_t begin, int64_t end)
{
    const plain_job *job = argument;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[PRN_WINDOW_AXES], count = 1;
        reach reach;
        place_window(job, i % job->out_plane, at, &reach);
        double sum = window_sum(job, i / job->out_plane * job->in_plane, &reach);
        for (int a = 0; a < PRN_WINDOW_AXES; a++) count *= prn_window_taps(&job->window, a, at[a], job->padding);
        prn_put_f64(job->y->data, job->y->dtype, i, job->p == 0 ? sum / (double)count : prn_pool_root(sum, job->p));
    }
}

static prony_status pool_run_reference(const prony_context *context)
{
    const prn_pool_kind kind = prn_pool_kind_of(context);
    const pool_params *params = context->params;
    const prony_value *indices = prn_output(context, 1);
    plain_job job = {.window = *(const prn_window *)context->state,
                     .x = context->inputs[0],
                     .y = context->outputs[0],
                     .indices = indices ? indices->data : NULL,
                     .p = kind == PRN_POOL_LP ? params->p : 0,
                     .column_major = params->storage_order == 1,
                     .padding = params->count_include_pad != 0};
    job.in_plane = prn_window_volume(job.window.in);
    job.out_plane = prn_window_volume(job.window.out);
    const int64_t count = job.x->shape.dim[0] * job.x->shape.dim[1] * job.out_plane;
    prn_parallel_items(context->threads, count, 8 * count * prn_window_volume(job.window.kernel),
                       kind == PRN_POOL_MAX ? find_maxima : pool_sum_windows, &job);
    return PRONY_OK;
}

/* ---- descriptors */

static const prn_param params[] = {PRN_WINDOW_PARAMS(pool_params),
                                   PRN_WINDOW_ROW(pool_params, ceil_mode, PRN_PARAM_INT, NULL),
                                   PRN_INT(pool_params, count_include_pad, 0),
                                   PRN_INT(pool_params, storage_order, 0),
                                   {0}};
static const prn_param lp_params[] = {PRN_WINDOW_PARAMS(pool_params),
                                      PRN_WINDOW_ROW(pool_params, ceil_mode, PRN_PARAM_INT, NULL),
                                      PRN_INT(pool_params, p, 2),
                                      {0}};

static const prn_kernel maxpool_f32 = {
    .supported = pool_native_supported, .prepare = pool_prepare, .run = pool_run_native, .release = prn_free};
PRN_WIDENED(maxpool_half, &maxpool_f32)

// clang-format off
static const prn_kernel max_kernels[] = {
    PRN_OPENCL_ROW("maxpool_f32_opencl", PRN_TYPE_F32, pool_opencl_supported, pool_opencl_prepare)
    PRN_OPENCL_ROW("maxpool_int8_opencl", PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8), pool_opencl_supported, pool_opencl_prepare)
    {.name = "maxpool_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = pool_native_supported,
     .layouts = prn_same_layout, .layout_invariant = true, .prepare = pool_prepare, .run = pool_run_native, .release = prn_free},
    PRN_WIDENED_PLAIN_ROW(maxpool_half, "maxpool_half_native"),
    {.name = "maxpool_int8_native", .backend = "native", .types = PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8),
     .supported = codes_supported, .layouts = prn_pool_codes_layouts, .prepare = pool_prepare, .run = run_codes, .release = prn_free, .own_layout = true},
    {.name = "maxpool_ref", .backend = "reference", .types = MAX_TYPES, .prepare = pool_prepare, .run = pool_run_reference,
     .release = prn_free},
    {0}};
// clang-format on

static const prn_kernel averagepool_f32 = {
    .supported = pool_native_supported, .prepare = pool_prepare, .run = pool_run_native, .release = prn_free};
PRN_WIDENED(averagepool_half, &averagepool_f32)

// clang-format off
static const prn_kernel average_kernels[] = {
    PRN_OPENCL_ROW("averagepool_f32_opencl", PRN_TYPE_F32, pool_opencl_supported, pool_opencl_prepare)
    {.name = "averagepool_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = pool_native_supported,
     .layouts = prn_same_layout, .prepare = pool_prepare, .run = pool_run_native, .release = prn_free},
    PRN_WIDENED_PLAIN_ROW(averagepool_half, "averagepool_half_native"),
    {.name = "averagepool_ref", .backend = "reference", .types = PRN_TYPES_FLOAT, .prepare = pool_prepare, .run = pool_run_reference,
     .release = prn_free},
    {0}};
// clang-format on

static const prn_kernel lp_kernels[] = {{.name = "lppool_ref",
                                         .backend = "reference",
                                         .types = PRN_TYPES_FLOAT,
                                         .prepare = pool_prepare,
                                         .run = pool_run_reference,
                                         .release = prn_free},
                                        {0}};

// clang-format off
const prn_op prn_ops_pool[] = {
    {.name = "MaxPool", .since_opset = 1, .inputs = {1, 1}, .outputs = {1, 2},
     .params = params, .params_bytes = sizeof(pool_params), .variant = &(const prn_pool_kind){PRN_POOL_MAX},
     .check = pool_check, .infer = pool_infer, .cost = pool_cost, .cost_text = "n (K - 1)", .kernels = max_kernels},
    {.name = "AveragePool", .since_opset = 1, .inputs = {1, 1},
     .params = params, .params_bytes = sizeof(pool_params), .variant = &(const prn_pool_kind){PRN_POOL_AVERAGE},
     .check = pool_check, .infer = pool_infer, .cost = pool_cost, .cost_text = "n K, n of them divisions", .kernels = average_kernels},
    {.name = "LpPool", .since_opset = 1, .inputs = {1, 1},
     .params = lp_params, .params_bytes = sizeof(pool_params), .variant = &(const prn_pool_kind){PRN_POOL_LP},
     .check = pool_check, .infer = pool_infer, .cost = pool_cost, .cost_text = PRN_POOL_LP_COST_TEXT, .kernels = lp_kernels},
    {0}};
// clang-format on
