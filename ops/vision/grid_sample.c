/* GridSample: each output position takes its value from a point of the input that a grid names, and AffineGrid, which
 * makes such grids. Both know any number of spatial axes (AffineGrid two or three); a grid entry names the last axis
 * first, in coordinates that run from -1 to 1 over the axis.
 *
 * Invariant: a tap's index lies within its axis or is -1, whatever the grid holds. */
#include "base/threads/cancel.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/window/taps.h"
#include "ops/vision/grid_sample_simd.h"

#include <string.h>

PRN_SIMD_PICK(prn_sample_simd, prn_sample_simd_, static const prn_sample_simd *grid_sample_simd_table)

enum { DATA, GRID };
enum { THETA, SIZE };

typedef enum sample_mode { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC, SAMPLE_UNKNOWN } sample_mode;
typedef enum sample_padding { PADDING_ZEROS, PADDING_BORDER, PADDING_REFLECTION, PADDING_UNKNOWN } sample_padding;

typedef struct sample_params {
    const char *mode, *padding_mode;
    int64_t align_corners;
} sample_params;

typedef struct sample_job {
    const prony_value *data, *grid;
    prony_value *out;
    sample_mode mode;
    sample_padding padding;
    bool aligned;
    int axes;
    int64_t channels, plane, points; /* points of one image */
    int64_t stride[PRONY_MAX_RANK];
} sample_job;

/* ---- GridSample: attributes and shapes */

/* Opset 20 renamed two modes. */
static sample_mode grid_sample_mode_of(const sample_params *params)
{
    static const char *const names[] = {"linear", "bilinear", "nearest", "nearest", "cubic", "bicubic"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], params->mode) == 0) return (sample_mode)(i / 2);
    }
    return SAMPLE_UNKNOWN;
}

static sample_padding padding_of(const sample_params *params)
{
    static const char *const names[] = {"zeros", "border", "reflection"};
    for (int i = 0; i < PADDING_UNKNOWN; i++) {
        if (strcmp(names[i], params->padding_mode) == 0) return (sample_padding)i;
    }
    return PADDING_UNKNOWN;
}

static prony_status check_sample(const prony_context *context)
{
    const sample_params *params = context->params;
    if (grid_sample_mode_of(params) == SAMPLE_UNKNOWN)
        return prony_fail(context, PRONY_UNSUPPORTED, "mode '%.40s' is not supported", params->mode);
    if (padding_of(params) == PADDING_UNKNOWN)
        return prony_fail(context, PRONY_UNSUPPORTED, "padding_mode '%.40s' is not supported", params->padding_mode);
    return PRONY_OK;
}

static prony_status infer_sample(const prony_context *context)
{
    const prony_shape *data = &context->inputs[DATA]->shape, *grid = &context->inputs[GRID]->shape;
    PRN_TRY(prn_check_type(context, DATA, PRN_TYPES_NUMBER_BOOL));
    PRN_TRY(prn_check_type(context, GRID, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, DATA, 3, PRONY_MAX_RANK));
    PRN_TRY(prn_check_rank(context, GRID, data->rank, data->rank));
    if (grid->dim[0] != data->dim[0] || grid->dim[grid->rank - 1] != data->rank - 2) {
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "a grid of shape %s does not sample %s",
                          prn_shape_text(grid, right), prn_shape_text(data, left));
    }
    prony_shape shape = {data->rank, {data->dim[0], data->dim[1]}};
    for (int i = 2; i < shape.rank; i++) shape.dim[i] = grid->dim[i - 1];
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    if (prony_shape_numel(&shape) > 0 && prony_shape_numel(data) == 0)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "the input has nothing to sample");
    prn_set_output(context, 0, context->inputs[DATA]->dtype, &shape);
    return PRONY_OK;
}

static prony_status cost_sample(const prony_context *context, prony_cost *cost)
{
    const sample_mode mode = grid_sample_mode_of(context->params);
    const uint64_t each = mode == SAMPLE_LINEAR ? 2 : (mode == SAMPLE_CUBIC ? 4 : 1);
    uint64_t taps = 1;
    for (int i = 2; i < context->inputs[DATA]->shape.rank; i++) taps *= each;
    prn_cost_fact(cost, "taps", (int64_t)taps);
    prn_cost_fact(cost, "mode", (int64_t)mode);
    return mode == SAMPLE_NEAREST ? PRONY_OK
                                  : prn_cost_elementwise(context, cost, prn_output_elements(context), 2 * taps - 1, 0);
}

/* ---- GridSample: taps of a point */

/* Back and forth between the two ends. */
static double reflected(double x, double low, double high)
{
    const double range = high - low;
    if (!(range > 0.0)) return low;
    if (x >= low && x <= high) return x;
    const double over = fmod(x < low ? low - x : x - high, 2.0 * range);
    const double inside = over < range ? over : 2.0 * range - over;
    return x < low ? low + inside : high - inside;
}

static int64_t tap_index(const sample_job *job, double at, int64_t extent)
{
    const double last = (double)(extent - 1);
    if (job->padding == PADDING_REFLECTION)
        at = trunc(job->aligned ? reflected(at, 0.0, last) : reflected(at, -0.5, last + 0.5));
    if (job->padding == PADDING_ZEROS && !(at >= 0.0 && at <= last)) return -1;
    if (!(at > 0.0)) return 0;
    return at < last ? (int64_t)at : extent - 1;
}

/* Indices and weights of the elements that a normalised coordinate reads on one axis, with padding applied. */
static prn_taps grid_sample_taps_of(const sample_job *job, double coordinate, int64_t extent)
{
    const double length = (double)extent;
    double x = job->aligned ? (coordinate + 1.0) / 2.0 * (length - 1.0) : ((coordinate + 1.0) * length - 1.0) / 2.0;
    if (job->grid->dtype != PRONY_FLOAT64) x = (double)(float)x;
    if (job->mode == SAMPLE_NEAREST) x = nearbyint(x);
    const double low = job->aligned ? 0.0 : -0.5, high = job->aligned ? length - 1.0 : length - 0.5;
    if (!(x >= low && x <= high)) {
        /* Four taps meet the border one by one; two further out they all lie on it. */
        const double beyond = job->mode == SAMPLE_CUBIC ? 2.0 : 0.0;
        if (job->padding == PADDING_BORDER) x = fmin(fmax(x, -beyond), length - 1.0 + beyond);
        if (job->padding == PADDING_REFLECTION) x = reflected(x, low, high);
    }
    const double base = job->mode == SAMPLE_NEAREST ? trunc(x) : floor(x), fraction = x - base;
    prn_taps taps = {.count = job->mode == SAMPLE_LINEAR ? 2 : (job->mode == SAMPLE_CUBIC ? 4 : 1)};
    const int first = job->mode == SAMPLE_CUBIC ? -1 : 0;
    for (int k = 0; k < taps.count; k++) taps.index[k] = tap_index(job, base + (double)(first + k), extent);
    if (job->mode == SAMPLE_NEAREST) {
        taps.weight[0] = 1.0;
    } else if (job->mode == SAMPLE_LINEAR) {
        taps.weight[0] = 1.0 - fraction;
        taps.weight[1] = fraction;
    } else {
        prn_taps_cubic(taps.weight, fraction, -0.75);
    }
    return taps;
}

static void grid_sample_find_taps(const sample_job *job, int64_t point, prn_taps taps[PRONY_MAX_RANK])
{
    for (int axis = 0; axis < job->axes; axis++) {
        const int64_t entry = point * job->axes + job->axes - 1 - axis;
        taps[axis] = grid_sample_taps_of(job, prn_get_f64(job->grid->data, job->grid->dtype, entry),
                                         job->data->shape.dim[2 + axis]);
    }
}

static void sample_points(void *argument, int64_t begin, int64_t end)
{
    const sample_job *job = argument;
    prn_taps taps[PRONY_MAX_RANK];
    for (int64_t point = begin; point < end && !prn_cancelled(); point++) {
        const int64_t image = point / job->points, at = point % job->points;
        grid_sample_find_taps(job, point, taps);
        for (int64_t c = 0; c < job->channels && !((c & 15) == 15 && prn_cancelled()); c++) {
            const int64_t plane = image * job->channels + c;
            prn_put_f64(job->out->data, job->out->dtype, plane * job->points + at,
                        prn_taps_blend(job->data, taps, job->stride + 2, job->axes, plane * job->plane));
        }
    }
}

/* ---- float32 images: the taps of a piece of points are found once for all channels */

enum { PIECE = PRN_SAMPLE_POINTS };

static void grid_sample_find_piece(const sample_job *job, int64_t first, int64_t n, prn_sample_taps *out)
{
    prn_taps taps[PRONY_MAX_RANK];
    out->taps = 0;
    out->count = n;
    out->whole = true;
    for (int64_t p = 0; p < PIECE; p++) {
        if (p < n) grid_sample_find_taps(job, first + p, taps);
        out->taps = taps[0].count * taps[1].count;
        for (int tap = 0; tap < out->taps; tap++) {
            const int i = tap / taps[1].count, j = tap % taps[1].count;
            const bool inside = p < n && taps[0].index[i] >= 0 && taps[1].index[j] >= 0;
            const int64_t place = taps[0].index[i] * job->stride[2] + taps[1].index[j] * job->stride[3];
            out->place[tap][p] = inside ? (int32_t)place : 0;
            out->weight[tap][p] = inside ? (float)(taps[0].weight[i] * taps[1].weight[j]) : 0.0f;
            out->whole &= p >= n || out->weight[tap][p] != 0.0f;
        }
    }
}

/* Two taps along each axis that are neighbours, wherever the point lies. */
static bool is_bilinear(const sample_job *job)
{
    return job->mode == SAMPLE_LINEAR && job->padding != PADDING_REFLECTION && job->grid->dtype == PRONY_FLOAT32 &&
           job->data->shape.dim[2] >= 2 && job->data->shape.dim[3] >= 2;
}

/* Pieces of points: the taps are found once and serve all channels of the image. */
static void sample_pieces(void *argument, int64_t begin, int64_t end)
{
    const sample_job *job = argument;
    const prn_sample_simd *with = grid_sample_simd_table();
    const int64_t pieces = prn_ceil_div(job->points, PIECE), height = job->data->shape.dim[2],
                  width = job->data->shape.dim[3];
    const prn_sample_plane plane = {height, width, job->aligned, job->padding == PADDING_BORDER};
    const bool bilinear = is_bilinear(job);
    union {
        prn_sample_squares squares;
        prn_sample_taps taps;
    } of;
    for (int64_t item = begin; item < end && !prn_cancelled(); item++) {
        const int64_t image = item / pieces, at = item % pieces * PIECE, left = job->points - at,
                      n = left < PIECE ? left : PIECE;
        const int64_t first = image * job->points + at;
        if (bilinear)
            with->find_squares(&plane, (const float *)job->grid->data + 2 * first, n, &of.squares);
        else
            grid_sample_find_piece(job, first, n, &of.taps);
        for (int64_t c = image * job->channels; c < (image + 1) * job->channels && !((c & 7) == 7 && prn_cancelled());
             c++) {
            const float *x = (const float *)job->data->data + c * job->plane;
            float *to = (float *)job->out->data + c * job->points + at;
            if (bilinear)
                with->squares(&of.squares, x, width, to);
            else
                with->taps(&of.taps, x, to);
        }
    }
}

static prony_status run_sample(const prony_context *context, bool in_pieces)
{
    const sample_params *params = context->params;
    const prony_value *data = context->inputs[DATA];
    sample_job job = {.data = data,
                      .grid = context->inputs[GRID],
                      .out = context->outputs[0],
                      .mode = grid_sample_mode_of(params),
                      .padding = padding_of(params),
                      .aligned = params->align_corners != 0,
                      .axes = data->shape.rank - 2,
                      .channels = data->shape.dim[1],
                      .plane = prn_shape_count(&data->shape, 2, data->shape.rank),
                      .points = prn_shape_count(&context->outputs[0]->shape, 2, data->shape.rank)};
    const int64_t count = prony_shape_numel(&job.out->shape), images = data->shape.dim[0];
    prn_shape_strides(&data->shape, job.stride);
    if (count == 0) return PRONY_OK;
    if (in_pieces)
        prn_parallel_items(context->threads, images * prn_ceil_div(job.points, PIECE), 64 * count, sample_pieces, &job);
    else
        prn_parallel_items(context->threads, images * job.points, 256 * count, sample_points, &job);
    return PRONY_OK;
}

static prony_status run_sample_native(const prony_context *context)
{
    return run_sample(context, true);
}

static prony_status run_sample_reference(const prony_context *context)
{
    return run_sample(context, false);
}

static bool is_flat(const prony_context *context)
{
    const prony_shape *data = &context->inputs[DATA]->shape;
    return data->rank == 4 && prn_shape_count(data, 2, 4) <= INT32_MAX;
}

/* ---- AffineGrid */

typedef struct affine_params {
    int64_t align_corners;
} affine_params;

typedef struct affine_job {
    const prony_value *theta;
    prony_value *grid;
    int axes;
    int64_t points;
    bool aligned;
} affine_job;

/* The grid's shape follows from size (N, C, spatial...): [N, spatial..., axes]. Unknown while size has no data. */
static prony_status infer_affine(const prony_context *context)
{
    const prony_shape *theta = &context->inputs[THETA]->shape, *size = &context->inputs[SIZE]->shape;
    int64_t wanted[PRONY_MAX_RANK];
    size_t count;
    bool known;
    PRN_TRY(prn_check_type(context, THETA, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, THETA, 3, 3));
    PRN_TRY(prn_check_type(context, SIZE, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(prn_check_rank(context, SIZE, 1, 1));
    PRN_TRY(prn_input_ints(context, SIZE, wanted, PRONY_MAX_RANK, &count, &known));
    const int64_t axes = size->dim[0] - 2;
    if ((axes != 2 && axes != 3) || theta->dim[1] != axes || theta->dim[2] != axes + 1) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "theta of shape %s does not fit a size of %lld entries",
                          prn_shape_text(theta, text), (long long)size->dim[0]);
    }
    prony_shape shape = prn_shape_unknown();
    if (known) {
        shape = (prony_shape){.rank = (int32_t)axes + 2, .dim = {theta->dim[0]}};
        for (int64_t i = 0; i < axes; i++) {
            shape.dim[1 + i] = wanted[2 + i];
            if (wanted[2 + i] < 0)
                return prony_fail(context, PRONY_OUT_OF_RANGE, "size[%lld] is %lld", (long long)i + 2,
                                  (long long)wanted[2 + i]);
        }
        shape.dim[1 + axes] = axes;
        if (wanted[0] != theta->dim[0] || prony_shape_numel(&shape) < 0) {
            char text[PRN_SHAPE_TEXT_BYTES];
            return prony_fail(context, PRONY_SHAPE_MISMATCH,
                              "size needs %lld grids of shape %s, but there are %lld matrices", (long long)wanted[0],
                              prn_shape_text(&shape, text), (long long)theta->dim[0]);
        }
    }
    prn_set_output(context, 0, context->inputs[THETA]->dtype, &shape);
    return PRONY_OK;
}

static double affine_coordinate(const affine_job *job, int64_t i, int64_t extent)
{
    if (!job->aligned) return -1.0 + (double)(2 * i + 1) / (double)extent;
    return extent > 1 ? -1.0 + (double)(2 * i) / (double)(extent - 1) : 0.0;
}

static void affine_points(void *argument, int64_t begin, int64_t end)
{
    const affine_job *job = argument;
    const int axes = job->axes;
    for (int64_t point = begin; point < end; point++) {
        double place[4] = {0}; /* x, y, z, 1 */
        int64_t rest = point % job->points, first = point / job->points * axes * (axes + 1);
        for (int axis = 0; axis < axes; axis++) {
            const int64_t extent = job->grid->shape.dim[axes - axis];
            place[axis] = affine_coordinate(job, rest % extent, extent);
            rest /= extent;
        }
        place[axes] = 1.0;
        for (int row = 0; row < axes; row++) {
            double sum = 0.0;
            for (int k = 0; k <= axes; k++)
                sum += prn_get_f64(job->theta->data, job->theta->dtype, first + row * (axes + 1) + k) * place[k];
            prn_put_f64(job->grid->data, job->grid->dtype, point * axes + row, sum);
        }
    }
}

static prony_status run_affine(const prony_context *context)
{
    prony_value *grid = context->outputs[0];
    const int axes = grid->shape.rank - 2;
    affine_job job = {.theta = context->inputs[THETA],
                      .grid = grid,
                      .axes = axes,
                      .points = prn_shape_count(&grid->shape, 1, 1 + axes),
                      .aligned = ((const affine_params *)context->params)->align_corners != 0};
    prn_parallel_items(context->threads, grid->shape.dim[0] * job.points, 64 * prony_shape_numel(&grid->shape),
                       affine_points, &job);
    return PRONY_OK;
}

static prony_status cost_affine(const prony_context *context, prony_cost *cost)
{
    const uint64_t axes = (uint64_t)context->inputs[THETA]->shape.dim[1];
    const int64_t count = prony_shape_numel(&context->outputs[0]->shape);
    return prn_cost_macs(context, cost, count > 0 ? (uint64_t)count * (axes + 1) : 0, false);
}

/* ---- descriptors */

static const prn_param sample_attributes[] = {PRN_STRING(sample_params, mode, "linear"),
                                              PRN_STRING(sample_params, padding_mode, "zeros"),
                                              PRN_INT(sample_params, align_corners, 0),
                                              {0}};
static const prn_param affine_attributes[] = {PRN_INT(affine_params, align_corners, 0), {0}};

static const prn_kernel sample_kernels[] = {
    {.name = "grid_sample_f32_native",
     .backend = "native",
     .types = PRN_TYPE_F32,
     .supported = is_flat,
     .run = run_sample_native},
    {.name = "grid_sample_reference", .backend = "reference", .run = run_sample_reference},
    {0}};
static const prn_kernel affine_kernels[] = {
    {.name = "affine_grid_reference", .backend = "reference", .run = run_affine}, {0}};

// clang-format off
const prn_op prn_ops_grid_sample[] = {
    {.name = "GridSample", .since_opset = 16, .inputs = {2, 2}, .non_weight_inputs = 2,
     .params = sample_attributes, .params_bytes = sizeof(sample_params), .check = check_sample,
     .infer = infer_sample, .cost = cost_sample, .kernels = sample_kernels,
     .cost_text = "nearest 0; else n (2t - 1), t = 2 or 4 taps per spatial axis, multiplied"},
    {.name = "AffineGrid", .since_opset = 20, .inputs = {2, 2}, .non_weight_inputs = 2,
     .params = affine_attributes, .params_bytes = sizeof(affine_params),
     .infer = infer_affine, .cost = cost_affine, .kernels = affine_kernels,
     .cost_text = "MACs M = n (axes + 1); FLOPs 2M"},
    {0}};
// clang-format on
