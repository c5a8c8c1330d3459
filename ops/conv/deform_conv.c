/* DeformConv: a convolution whose taps each lie where an offset moves them, between pixels, and may be weighted by a
 * mask.
 *
 * A task makes a stretch of output positions: for each it gathers the samples of every input channel into a column of
 * its own in scratch and multiplies that by the weights, which are there as doubles. Invariant: the stretches depend
 * on the shapes alone. */
#include "base/threads/parallel.h"
#include "base/integers.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/window/taps.h"
#include "ops/kernels/window/window.h"

#include <string.h>

enum { X, W, OFFSET, BIAS, MASK };
enum { MOST_TASKS = 64 };

typedef struct deform_params {
    prn_window_params window;
    int64_t group, offset_group;
} deform_params;

typedef struct deform_job {
    prn_window window;
    const prony_value *x, *offset, *bias, *mask;
    prony_value *y;
    const double *weights; /* [M, C / group, K] */
    double *columns;       /* per task: [C, K] */
    int64_t channels, groups, offset_groups, maps, volume, points, positions, per_task;
    int64_t stride[PRONY_MAX_RANK];
} deform_job;

/* ---- shapes */

static prony_status deform_conv_check(const prony_context *context)
{
    const deform_params *params = context->params;
    if (params->group < 1 || params->offset_group < 1)
        return prony_fail(context, PRONY_INVALID_MODEL, "group is %lld and offset_group is %lld; both must be positive",
                          (long long)params->group, (long long)params->offset_group);
    return prn_window_check(context, &params->window);
}

static prony_status deform_conv_read_window(const prony_context *context, prn_window *window)
{
    const prn_window_params *params = &((const deform_params *)context->params)->window;
    PRN_TRY(prn_check_rank(context, X, 3, 2 + PRN_WINDOW_AXES));
    const int rank = context->inputs[X]->shape.rank;
    PRN_TRY(prn_check_rank(context, W, rank, rank));
    const int64_t *kernel = context->inputs[W]->shape.dim + 2;
    for (int i = 0; i < rank - 2; i++) {
        if (kernel[i] >= 1 && (!params->kernel_shape.present || params->kernel_shape.count != (size_t)rank - 2 ||
                               params->kernel_shape.v[i] == kernel[i]))
            continue;
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "kernel extent %lld of the weights along spatial axis %d",
                          (long long)kernel[i], i);
    }
    PRN_TRY(prn_window_begin(context, params, kernel, window));
    return prn_window_forward(context, params, window);
}

static prony_status check_channels(const prony_context *context)
{
    const deform_params *params = context->params;
    const int64_t channels = context->inputs[X]->shape.dim[1];
    const int64_t maps = context->inputs[W]->shape.dim[0], depth = context->inputs[W]->shape.dim[1];
    if (channels % params->group == 0 && channels / params->group == depth && maps % params->group == 0 &&
        channels % params->offset_group == 0)
        return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH,
                      "%lld channels, %lld maps of depth %lld, %lld groups, %lld offset groups", (long long)channels,
                      (long long)maps, (long long)depth, (long long)params->group, (long long)params->offset_group);
}

/* An input of [N, channels, output extents …]. */
static prony_status check_field(const prony_context *context, size_t input, const prony_shape *out, int64_t channels)
{
    const prony_value *value = prn_input(context, input);
    prony_shape wanted = *out;
    wanted.dim[1] = channels;
    if (!value || prn_shape_equal(&value->shape, &wanted)) return PRONY_OK;
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %s", input, prn_value_text(value, left),
                      prn_shape_text(&wanted, right));
}

static prony_status deform_conv_infer(const prony_context *context)
{
    prn_window window;
    PRN_TRY(prn_check_type(context, X, PRN_TYPES_FLOAT));
    for (size_t i = W; i <= MASK; i++) PRN_TRY(prn_check_type(context, i, PRN_TYPE(context->inputs[X]->dtype)));
    PRN_TRY(deform_conv_read_window(context, &window));
    PRN_TRY(check_channels(context));
    const int64_t maps = context->inputs[W]->shape.dim[0], volume = prn_window_volume(window.kernel);
    const int64_t offset_groups = ((const deform_params *)context->params)->offset_group;
    const prony_shape shape = prn_window_output_shape(&window, context->inputs[X]->shape.dim[0], maps);
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the output is too large");
    PRN_TRY(check_field(context, OFFSET, &shape, offset_groups * volume * window.axes));
    PRN_TRY(check_field(context, MASK, &shape, offset_groups * volume));
    const prony_value *bias = prn_input(context, BIAS);
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != maps))
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "the bias has no %lld elements", (long long)maps);
    prn_set_output(context, 0, context->inputs[X]->dtype, &shape);
    return PRONY_OK;
}

/* A sample blends two pixels along each axis. */
static prony_status deform_conv_cost(const prony_context *context, prony_cost *cost)
{
    prn_window window;
    PRN_TRY(deform_conv_read_window(context, &window));
    const int64_t volume = prn_window_volume(window.kernel), outputs = prony_shape_numel(&context->outputs[0]->shape);
    const int64_t maps = context->inputs[W]->shape.dim[0], depth = context->inputs[W]->shape.dim[1];
    const bool masked = prn_input(context, MASK) != NULL;
    uint64_t macs, samples;
    if (!prn_mul_u64(&macs, (uint64_t)outputs, (uint64_t)(depth * volume)) ||
        !prn_mul_u64(&samples, (uint64_t)(maps ? outputs / maps : 0),
                     (uint64_t)(context->inputs[X]->shape.dim[1] * volume)))
        return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    prn_cost_fact(cost, "kernel_volume", volume);
    prn_cost_fact(cost, "groups", ((const deform_params *)context->params)->group);
    prn_cost_fact(cost, "bias", prn_input(context, BIAS) != NULL);
    PRN_TRY(prn_cost_macs(context, cost, macs, false));
    PRN_TRY(prn_cost_elementwise(context, cost, samples, (UINT64_C(2) << window.axes) - 1 + masked, 0));
    return prn_cost_elementwise(context, cost, prn_input(context, BIAS) ? (uint64_t)outputs : 0, 1, 0);
}

/* ---- samples */

static prn_taps deform_conv_linear_taps(double at, int64_t extent)
{
    prn_taps taps = {.count = 2, .index = {-1, -1}};
    if (!(at > -1.0 && at < (double)extent)) return taps;
    const int64_t low = (int64_t)floor(at);
    taps.weight[1] = at - (double)low;
    taps.weight[0] = 1.0 - taps.weight[1];
    taps.index[0] = low;
    taps.index[1] = low + 1 < extent ? low + 1 : -1;
    return taps;
}

/* The input position of tap `tap` of offset group `group` for output point `point` of image `image`. */
static void place_tap(const deform_job *job, int64_t image, int64_t point, int64_t group, int64_t tap,
                      prn_taps taps[PRN_WINDOW_AXES])
{
    const prn_window *window = &job->window;
    const int leading = PRN_WINDOW_AXES - window->axes;
    int64_t at = point, in_kernel = tap;
    for (int slot = PRN_WINDOW_AXES - 1; slot >= leading; slot--) {
        const int64_t start = at % window->out[slot] * window->stride[slot] - window->pad_begin[slot];
        const int64_t place = start + in_kernel % window->kernel[slot] * window->dilation[slot];
        const int64_t field = (group * job->volume + tap) * window->axes + slot - leading;
        const int64_t fields = job->offset_groups * job->volume * window->axes;
        const double moved =
            prn_get_f64(job->offset->data, job->offset->dtype, (image * fields + field) * job->points + point);
        taps[slot - leading] = deform_conv_linear_taps((double)place + moved, window->in[slot]);
        at /= window->out[slot];
        in_kernel /= window->kernel[slot];
    }
}

static void fill_column(const deform_job *job, int64_t image, int64_t point, double *column)
{
    const int64_t per_group = job->channels / job->offset_groups, plane = prn_window_volume(job->window.in);
    prn_taps taps[PRN_WINDOW_AXES];
    for (int64_t group = 0; group < job->offset_groups; group++) {
        for (int64_t tap = 0; tap < job->volume; tap++) {
            const int64_t masks = job->offset_groups * job->volume, field = group * job->volume + tap;
            const double weight = job->mask ? prn_get_f64(job->mask->data, job->mask->dtype,
                                                          (image * masks + field) * job->points + point)
                                            : 1.0;
            place_tap(job, image, point, group, tap, taps);
            for (int64_t c = group * per_group; c < (group + 1) * per_group; c++) {
                const double value = prn_taps_blend(job->x, taps, job->stride + 2, job->window.axes,
                                                    (image * job->channels + c) * plane);
                column[c * job->volume + tap] = weight * value;
            }
        }
    }
}

static void make_points(void *argument, int64_t task)
{
    const deform_job *job = argument;
    const int64_t length = job->channels / job->groups * job->volume, per_group = job->maps / job->groups;
    double *column = job->columns + task * job->channels * job->volume;
    int64_t end = (task + 1) * job->per_task;
    if (end > job->positions) end = job->positions;
    for (int64_t position = task * job->per_task; position < end && !prn_cancelled(); position++) {
        const int64_t image = position / job->points, point = position % job->points;
        fill_column(job, image, point, column);
        for (int64_t m = 0; m < job->maps; m++) {
            const double *weights = job->weights + m * length, *samples = column + m / per_group * length;
            double sum = job->bias ? prn_get_f64(job->bias->data, job->bias->dtype, m) : 0.0;
            for (int64_t i = 0; i < length; i++) sum += weights[i] * samples[i];
            prn_put_f64(job->y->data, job->y->dtype, (image * job->maps + m) * job->points + point, sum);
        }
    }
}

/* ---- kernel */

static prony_status deform_conv_make_job(const prony_context *context, deform_job *job, int64_t *tasks)
{
    const deform_params *params = context->params;
    *job = (deform_job){.x = context->inputs[X],
                        .offset = context->inputs[OFFSET],
                        .bias = prn_input(context, BIAS),
                        .mask = prn_input(context, MASK),
                        .y = context->outputs[0],
                        .channels = context->inputs[X]->shape.dim[1],
                        .groups = params->group,
                        .offset_groups = params->offset_group,
                        .maps = context->inputs[W]->shape.dim[0]};
    PRN_TRY(deform_conv_read_window(context, &job->window));
    job->volume = prn_window_volume(job->window.kernel);
    job->points = prn_window_volume(job->window.out);
    job->positions = job->x->shape.dim[0] * job->points;
    job->per_task = job->positions / MOST_TASKS + 1;
    *tasks = prn_ceil_div(job->positions, job->per_task);
    prn_shape_strides(&job->x->shape, job->stride);
    return PRONY_OK;
}

static prony_status deform_conv_prepare(const prony_context *context, prn_prepared *out)
{
    deform_job job;
    int64_t tasks;
    PRN_TRY(deform_conv_make_job(context, &job, &tasks));
    const int64_t weights = prony_shape_numel(&context->inputs[W]->shape);
    uint64_t columns, all;
    if (!prn_mul_u64(&columns, (uint64_t)(job.channels * job.volume), (uint64_t)tasks) ||
        !prn_add_u64(&all, columns, (uint64_t)weights) || all > SIZE_MAX / 16)
        return prony_fail(context, PRONY_LIMIT, "the samples do not fit in memory");
    out->scratch_bytes = (size_t)(all ? all : 1) * sizeof(double);
    return PRONY_OK;
}

static prony_status deform_conv_run(const prony_context *context)
{
    deform_job job;
    int64_t tasks;
    PRN_TRY(deform_conv_make_job(context, &job, &tasks));
    const prony_value *weights = context->inputs[W];
    const int64_t count = prony_shape_numel(&weights->shape);
    prn_convert(context->scratch, PRONY_FLOAT64, weights->data, weights->dtype, count);
    job.weights = context->scratch;
    job.columns = (double *)context->scratch + count;
    if (prony_shape_numel(&job.y->shape) > 0) prn_parallel_tasks(context->threads, tasks, make_points, &job);
    return PRONY_OK;
}

/* ---- descriptor */

static const prn_param params[] = {
    PRN_WINDOW_PARAMS(deform_params), PRN_INT(deform_params, group, 1), PRN_INT(deform_params, offset_group, 1), {0}};

static const prn_kernel kernels[] = {
    {.name = "deform_conv_reference", .backend = "reference", .prepare = deform_conv_prepare, .run = deform_conv_run},
    {0}};

// clang-format off
const prn_op prn_ops_deform_conv[] = {
    {.name = "DeformConv", .since_opset = 19, .inputs = {3, 5},
     .params = params, .params_bytes = sizeof(deform_params), .check = deform_conv_check,
     .infer = deform_conv_infer, .cost = deform_conv_cost, .kernels = kernels,
     .cost_text = "MACs M = n (Cin/g) K; FLOPs 2M, + n with bias, + 2^(axes+1) - 1 per sample, + 1 per sample with "
                  "mask; Cin K samples per output point"},
    {0}};
// clang-format on
