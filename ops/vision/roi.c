/* Pooling of regions of interest: RoiAlign, which samples each cell of a region at points between the pixels, and
 * MaxRoiPool, which takes the largest pixel of each cell.
 *
 * Coordinates are rounded to float32 step by step, as other engines compute them, except for float64 input.
 * Invariant: a region is checked before anything of it is read; one task makes whole regions. */
#include "ops/vision/roi_align_simd.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

PRN_SIMD_PICK(prn_roi_align_simd, prn_roi_align_simd_, static const prn_roi_align_simd *roi_simd_table)

enum { IMAGE, ROIS, BATCH };
/* More samples along one axis of a cell than any trained model asks for. */
enum { MOST_SAMPLES = 4096 };
/* Of a region along one axis, placed once for all channels; where there are more, each is placed when it is read. */
enum { MOST_PLACED = 512 };

typedef struct roi_params {
    const char *mode, *coordinate_transformation_mode;
    int64_t output_height, output_width, sampling_ratio;
    float spatial_scale;
    prn_ints pooled_shape;
} roi_params;

typedef struct roi_job {
    const prony_value *image, *rois, *batch;
    prony_value *out;
    int64_t channels, extent[2], cells[2]; /* height, width */
    int64_t sampling;
    double scale, offset;
    bool wide, maximum, aligned;
} roi_job;

/* ---- shapes */

static prony_status infer_regions(const prony_context *context, int64_t columns, int64_t height, int64_t width)
{
    const prony_shape *image = &context->inputs[IMAGE]->shape, *rois = &context->inputs[ROIS]->shape;
    PRN_TRY(prn_check_type(context, IMAGE, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, IMAGE, 4, 4));
    PRN_TRY(prn_check_rank(context, ROIS, 2, 2));
    PRN_TRY(prn_check_type(context, ROIS, PRN_TYPE(context->inputs[IMAGE]->dtype)));
    if (rois->dim[1] != columns) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "a region has %lld numbers, wanted %lld",
                          (long long)rois->dim[1], (long long)columns);
    }
    if (height < 1 || width < 1) {
        return prony_fail(context, PRONY_INVALID_MODEL, "a region becomes %lld x %lld cells", (long long)height,
                          (long long)width);
    }
    const prony_shape shape = {4, {rois->dim[0], image->dim[1], height, width}};
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    prn_set_output(context, 0, context->inputs[IMAGE]->dtype, &shape);
    return PRONY_OK;
}

static roi_job roi_job_of(const prony_context *context)
{
    const roi_params *params = context->params;
    const prony_value *image = context->inputs[IMAGE];
    const prony_shape *out = &context->outputs[0]->shape;
    return (roi_job){.image = image,
                     .rois = context->inputs[ROIS],
                     .batch = prn_input(context, BATCH),
                     .out = context->outputs[0],
                     .channels = image->shape.dim[1],
                     .extent = {image->shape.dim[2], image->shape.dim[3]},
                     .cells = {out->dim[2], out->dim[3]},
                     .sampling = params->sampling_ratio,
                     .scale = (double)params->spatial_scale,
                     .wide = image->dtype == PRONY_FLOAT64};
}

static double roi_rounded(const roi_job *job, double x)
{
    return job->wide ? x : (double)(float)x;
}

/* ---- RoiAlign */

static bool half_pixel(const prony_context *context)
{
    const roi_params *params = context->params;
    return context->node->opset >= 16 && strcmp(params->coordinate_transformation_mode, "half_pixel") == 0;
}

static prony_status check_align(const prony_context *context)
{
    const roi_params *params = context->params;
    if (strcmp(params->mode, "avg") != 0 && strcmp(params->mode, "max") != 0)
        return prony_fail(context, PRONY_UNSUPPORTED, "mode '%.40s' is not supported", params->mode);
    if (strcmp(params->coordinate_transformation_mode, "half_pixel") != 0 &&
        strcmp(params->coordinate_transformation_mode, "output_half_pixel") != 0)
        return prony_fail(context, PRONY_UNSUPPORTED, "coordinate_transformation_mode '%.40s' is not supported",
                          params->coordinate_transformation_mode);
    if (params->sampling_ratio >= 0 && params->sampling_ratio <= MOST_SAMPLES) return PRONY_OK;
    return prony_fail(context, PRONY_OUT_OF_RANGE, "sampling_ratio is %lld, wanted 0 to %d",
                      (long long)params->sampling_ratio, MOST_SAMPLES);
}

static prony_status infer_align(const prony_context *context)
{
    const roi_params *params = context->params;
    PRN_TRY(infer_regions(context, 4, params->output_height, params->output_width));
    PRN_TRY(prn_check_type(context, BATCH, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(prn_check_rank(context, BATCH, 1, 1));
    if (context->inputs[BATCH]->shape.dim[0] == context->inputs[ROIS]->shape.dim[0]) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "%lld regions, but %lld batch indices",
                      (long long)context->inputs[ROIS]->shape.dim[0], (long long)context->inputs[BATCH]->shape.dim[0]);
}

/* One axis of a region: sample k of cell c lies at start + c size + (k + 1/2) size / samples. */
typedef struct region_axis {
    double start, size;
    int64_t samples;
} region_axis;

static region_axis align_axis(const roi_job *job, int64_t roi, int axis)
{
    const double low = prn_get_f64(job->rois->data, job->rois->dtype, 4 * roi + 1 - axis);
    const double high = prn_get_f64(job->rois->data, job->rois->dtype, 4 * roi + 3 - axis);
    const double start = roi_rounded(job, roi_rounded(job, low * job->scale) - job->offset);
    const double end = roi_rounded(job, roi_rounded(job, high * job->scale) - job->offset);
    double length = roi_rounded(job, end - start);
    if (!job->aligned && length < 1.0) length = 1.0;
    region_axis out = {.start = start, .size = roi_rounded(job, length / (double)job->cells[axis])};
    out.samples = job->sampling > 0 ? job->sampling : prn_f64_to_i64(ceil(out.size));
    if (out.samples < 0) out.samples = 0; /* a region that ends before it begins */
    return out;
}

/* The place of a sample between two pixels. */
typedef struct between {
    int64_t low, high;
    double weight; /* of `high` */
    bool inside;   /* otherwise it is outside of the image */
} between;

static between place_sample(const roi_job *job, const region_axis *axis, int which, int64_t cell, int64_t sample)
{
    const double inside =
        roi_rounded(job, roi_rounded(job, ((double)sample + 0.5) * axis->size) / (double)axis->samples);
    double at = roi_rounded(job, roi_rounded(job, axis->start + roi_rounded(job, (double)cell * axis->size)) + inside);
    const int64_t last = job->extent[which] - 1;
    if (!(at >= -1.0 && at <= (double)(last + 1))) return (between){0};
    if (at < 0.0) at = 0.0;
    const int64_t low = (int64_t)at;
    if (low >= last) return (between){last, last, 0.0, true};
    return (between){low, low + 1, roi_rounded(job, at - (double)low), true};
}

typedef struct region {
    int64_t roi;
    region_axis axis[2];
    bool placed[2];                /* where there is room for it */
    between point[2][MOST_PLACED]; /* [cell][sample] */
} region;

static void place_region(const roi_job *job, int64_t roi, region *out)
{
    out->roi = roi;
    for (int which = 0; which < 2; which++) {
        const region_axis *axis = &out->axis[which];
        out->axis[which] = align_axis(job, roi, which);
        out->placed[which] = axis->samples <= MOST_PLACED / job->cells[which];
        for (int64_t k = 0; out->placed[which] && k < job->cells[which] * axis->samples; k++)
            out->point[which][k] = place_sample(job, axis, which, k / axis->samples, k % axis->samples);
    }
}

static inline between region_point(const roi_job *job, const region *region, int which, int64_t cell, int64_t sample)
{
    const region_axis *axis = &region->axis[which];
    return region->placed[which] ? region->point[which][cell * axis->samples + sample]
                                 : place_sample(job, axis, which, cell, sample);
}

#define DEFINE_ALIGN(P, DTYPE, name, storage, work, load, store)                                                       \
    static double sample_##name(const roi_job *job, const storage *plane, const between *y, const between *x)          \
    {                                                                                                                  \
        const storage *low = plane + y->low * job->extent[1], *high = plane + y->high * job->extent[1];                \
        const double value[4] = {(1.0 - y->weight) * (1.0 - x->weight) * (double)load(low[x->low]),                    \
                                 (1.0 - y->weight) * x->weight * (double)load(low[x->high]),                           \
                                 y->weight * (1.0 - x->weight) * (double)load(high[x->low]),                           \
                                 y->weight * x->weight * (double)load(high[x->high])};                                 \
        double largest = -INFINITY;                                                                                    \
        if (!job->maximum) return 0.0 + value[0] + value[1] + value[2] + value[3];                                     \
        for (int k = 0; k < 4; k++) largest = value[k] > largest ? value[k] : largest;                                 \
        return largest;                                                                                                \
    }                                                                                                                  \
    static double cell_##name(const roi_job *job, const region *region, const storage *plane, int64_t row,             \
                              int64_t column)                                                                          \
    {                                                                                                                  \
        const int64_t rows = region->axis[0].samples, columns = region->axis[1].samples;                               \
        double result = 0.0;                                                                                           \
        bool first = true;                                                                                             \
        for (int64_t i = 0; i < rows; i++) {                                                                           \
            if (rows * columns > 4096 ? prn_cancelled() : prn_cancelled_at(i)) return 0.0;                             \
            const between y = region_point(job, region, 0, row, i);                                                    \
            for (int64_t j = 0; j < columns; j++) {                                                                    \
                const between x = region_point(job, region, 1, column, j);                                             \
                const double value = y.inside && x.inside ? sample_##name(job, plane, &y, &x) : 0.0;                   \
                result = !job->maximum ? result + value : (first || value > result ? value : result);                  \
                first = false;                                                                                         \
            }                                                                                                          \
        }                                                                                                              \
        return job->maximum || rows <= 0 || columns <= 0 ? result : result / (double)(rows * columns);                 \
    }                                                                                                                  \
    static void align_##name(const roi_job *job, const region *region, int64_t from, int64_t to)                       \
    {                                                                                                                  \
        const storage *plane = (const storage *)job->image->data + from;                                               \
        for (int64_t row = 0; row < job->cells[0] && !prn_cancelled(); row++)                                          \
            for (int64_t column = 0; column < job->cells[1] && !((column & 15) == 15 && prn_cancelled()); column++)    \
                prn_put_f64(job->out->data, PRONY_##DTYPE, to++, cell_##name(job, region, plane, row, column));        \
    }
PRN_FLOAT_TYPES(DEFINE_ALIGN, )

static void align_regions(void *argument, int64_t begin, int64_t end)
{
    const roi_job *job = argument;
    const int64_t pixels = job->extent[0] * job->extent[1], cells = job->cells[0] * job->cells[1];
    region region = {.roi = -1};
    for (int64_t i = begin; i < end; i++) {
        const int64_t roi = i / job->channels, channel = i % job->channels;
        if (roi != region.roi) place_region(job, roi, &region);
        const int64_t plane = (((const int64_t *)job->batch->data)[roi] * job->channels + channel) * pixels;
        switch (job->image->dtype) {
#define ALIGN_CASE(P, DTYPE, name, storage, work, load, store)                                                         \
    case PRONY_##DTYPE:                                                                                                \
        align_##name(job, &region, plane, i *cells);                                                                   \
        break;
            PRN_FLOAT_TYPES(ALIGN_CASE, )
        default:
            break;
        }
    }
}

static prony_status check_regions(const prony_context *context, const roi_job *job)
{
    const int64_t images = job->image->shape.dim[0];
    for (int64_t roi = 0; roi < job->rois->shape.dim[0]; roi++) {
        const int64_t batch = ((const int64_t *)job->batch->data)[roi];
        if (batch < 0 || batch >= images) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "batch index %lld of region %lld is outside of %lld images",
                              (long long)batch, (long long)roi, (long long)images);
        }
        for (int axis = 0; axis < 2; axis++) {
            const region_axis found = align_axis(job, roi, axis);
            if (isfinite(found.start) && isfinite(found.size) && found.samples <= MOST_SAMPLES) continue;
            return prony_fail(context, PRONY_OUT_OF_RANGE, "region %lld has cells of %g pixels from %g on",
                              (long long)roi, found.size, found.start);
        }
    }
    return PRONY_OK;
}

/* ---- RoiAlign's averages of float32 planes: along each axis a cell is a weighted sum of some pixels, the same for all
 * channels */

/* Samples go one way, so that a pixel that was met already is one of the last two. */
static void roi_add_tap(prn_roi_taps *taps, double *weight, int32_t from, int32_t *count, int64_t place, double add)
{
    for (int32_t at = *count - 1; at >= from && at >= *count - 2; at--) {
        if (taps->index[at] != place) continue;
        weight[at] += add;
        return;
    }
    taps->index[*count] = (int32_t)place;
    weight[(*count)++] = add;
}

/* False: there are too many. */
static bool roi_find_taps(const roi_job *job, int64_t roi, int which, prn_roi_taps *out, float *samples)
{
    const region_axis axis = align_axis(job, roi, which);
    double weight[PRN_ROI_TAPS];
    int32_t count = 0;
    out->cells = job->cells[which];
    out->low = out->high = 0;
    *samples = (float)axis.samples;
    if (out->cells > PRN_ROI_CELLS || job->extent[which] > INT32_MAX) return false;
    for (int64_t cell = 0; cell < out->cells; cell++) {
        const int32_t from = out->begin[cell] = count;
        for (int64_t i = 0; i < axis.samples; i++) {
            const between at = place_sample(job, &axis, which, cell, i);
            if (!at.inside) continue;
            if (count + 2 > PRN_ROI_TAPS) return false;
            roi_add_tap(out, weight, from, &count, at.low, 1.0 - at.weight);
            if (at.high > at.low) roi_add_tap(out, weight, from, &count, at.high, at.weight);
        }
    }
    out->begin[out->cells] = count;
    for (int32_t i = 0; i < count; i++) {
        out->weight[i] = (float)weight[i];
        out->low = i == 0 ? out->index[i] : prn_least(out->low, out->index[i]);
        out->high = out->index[i] < out->high ? out->high : out->index[i] + 1;
    }
    return true;
}

static void average_regions(void *argument, int64_t begin, int64_t end)
{
    const roi_job *job = argument;
    const int64_t pixels = job->extent[0] * job->extent[1], cells = job->cells[0] * job->cells[1];
    prn_roi_taps rows, columns;
    float samples[2];
    for (int64_t i = begin, next; i < end && !prn_cancelled(); i = next) {
        const int64_t roi = i / job->channels, plane = ((const int64_t *)job->batch->data)[roi] * job->channels;
        next = prn_least((roi + 1) * job->channels, end);
        if (!roi_find_taps(job, roi, 0, &rows, &samples[0]) || !roi_find_taps(job, roi, 1, &columns, &samples[1]) ||
            columns.high - columns.low > PRN_ROI_SPAN) {
            align_regions(argument, i, next);
            continue;
        }
        /* Without a sample a cell is 0. */
        const float count = samples[0] * samples[1] > 0.0f ? samples[0] * samples[1] : 1.0f;
        for (int64_t at = i; at < next && !prn_cancelled_at(at); at++)
            roi_simd_table()->cells(&rows, &columns,
                                    (const float *)job->image->data + (plane + at % job->channels) * pixels,
                                    job->extent[1], count, (float *)job->out->data + at * cells);
    }
}

static bool averages(const prony_context *context)
{
    return strcmp(((const roi_params *)context->params)->mode, "avg") == 0;
}

/* ---- RoiAlign's kernels */

static prony_status run_align(const prony_context *context, void (*regions)(void *, int64_t, int64_t), int64_t work)
{
    const roi_params *params = context->params;
    roi_job job = roi_job_of(context);
    job.aligned = half_pixel(context);
    job.offset = job.aligned ? 0.5 : 0.0;
    job.maximum = strcmp(params->mode, "max") == 0;
    const int64_t count = prony_shape_numel(&job.out->shape);
    if (count == 0) return PRONY_OK;
    if (job.extent[0] == 0 || job.extent[1] == 0) return prony_fail(context, PRONY_SHAPE_MISMATCH, "an empty image");
    PRN_TRY(check_regions(context, &job));
    prn_parallel_items(context->threads, job.rois->shape.dim[0] * job.channels, work * count, regions, &job);
    return PRONY_OK;
}

static prony_status run_align_native(const prony_context *context)
{
    return run_align(context, average_regions, 16);
}

static prony_status run_align_reference(const prony_context *context)
{
    return run_align(context, align_regions, 256);
}

/* With sampling_ratio 0 the number of samples is the data's; one per cell is counted then. */
static prony_status cost_align(const prony_context *context, prony_cost *cost)
{
    const roi_params *params = context->params;
    const uint64_t ratio = params->sampling_ratio > 0 ? (uint64_t)params->sampling_ratio : 1;
    prn_cost_fact(cost, "samples", (int64_t)(ratio * ratio));
    return prn_cost_elementwise(context, cost, prn_output_elements(context), 8 * ratio * ratio, 1);
}

/* ---- MaxRoiPool */

static prony_status infer_pool(const prony_context *context)
{
    const prn_ints *shape = &((const roi_params *)context->params)->pooled_shape;
    if (shape->count != 2)
        return prony_fail(context, PRONY_INVALID_MODEL, "pooled_shape has %zu entries, wanted 2", shape->count);
    return infer_regions(context, 5, shape->v[0], shape->v[1]);
}

/* The first pixel and the one after the last of cell `cell`. */
static void pool_span(const roi_job *job, int64_t roi, int axis, int64_t cell, int64_t *first, int64_t *end)
{
    const int64_t extent = job->extent[axis];
    const double from =
        round(roi_rounded(job, prn_get_f64(job->rois->data, job->rois->dtype, 5 * roi + 2 - axis) * job->scale));
    const double to =
        round(roi_rounded(job, prn_get_f64(job->rois->data, job->rois->dtype, 5 * roi + 4 - axis) * job->scale));
    const double length = to - from + 1.0 > 1.0 ? to - from + 1.0 : 1.0;
    const double size = roi_rounded(job, length / (double)job->cells[axis]);
    const int64_t low = prn_f64_to_i64(floor(roi_rounded(job, (double)cell * size)) + from);
    const int64_t high = prn_f64_to_i64(ceil(roi_rounded(job, (double)(cell + 1) * size)) + from);
    *first = low < 0 ? 0 : (low > extent ? extent : low);
    *end = high < 0 ? 0 : (high > extent ? extent : high);
}

/* MaxRoiPool: the largest element of each cell of a region; an empty cell is 0, and NaN wins. */
static void pool_regions(void *argument, int64_t begin, int64_t end)
{
    const roi_job *job = argument;
    const int64_t pixels = job->extent[0] * job->extent[1], cells = job->cells[0] * job->cells[1];
    for (int64_t i = begin; i < end; i++) {
        const int64_t roi = i / job->channels, channel = i % job->channels;
        const int64_t image = (int64_t)prn_get_f64(job->rois->data, job->rois->dtype, 5 * roi);
        const int64_t plane = (image * job->channels + channel) * pixels;
        for (int64_t cell = 0; cell < cells && !prn_cancelled(); cell++) {
            int64_t top, bottom, left, right;
            pool_span(job, roi, 0, cell / job->cells[1], &top, &bottom);
            pool_span(job, roi, 1, cell % job->cells[1], &left, &right);
            double largest = top < bottom && left < right ? -INFINITY : 0.0;
            for (int64_t y = top;
                 y < bottom && !(right - left > 1024 ? prn_cancelled() : (y & 15) == 15 && prn_cancelled()); y++) {
                for (int64_t x = left; x < right && !prn_cancelled_at(x); x++) {
                    const double value =
                        prn_get_f64(job->image->data, job->image->dtype, plane + y * job->extent[1] + x);
                    largest = value > largest || value != value ? value : largest;
                }
            }
            prn_put_f64(job->out->data, job->out->dtype, i * cells + cell, largest);
        }
    }
}

static prony_status run_pool(const prony_context *context)
{
    const roi_job job = roi_job_of(context);
    const int64_t regions = job.rois->shape.dim[0], images = job.image->shape.dim[0];
    for (int64_t roi = 0; roi < regions; roi++) {
        const double image = prn_get_f64(job.rois->data, job.rois->dtype, 5 * roi);
        if (image >= 0.0 && image < (double)images) continue;
        return prony_fail(context, PRONY_OUT_OF_RANGE, "batch index %g of region %lld is outside of %lld images", image,
                          (long long)roi, (long long)images);
    }
    prn_parallel_items(context->threads, regions * job.channels, 256 * prony_shape_numel(&job.out->shape), pool_regions,
                       (void *)(uintptr_t)&job);
    return PRONY_OK;
}

/* The cells of a region together have about its pixels; that is the data's. One comparison per cell is counted. */
static prony_status cost_pool(const prony_context *context, prony_cost *cost)
{
    return prn_cost_elementwise(context, cost, prn_output_elements(context), 1, 0);
}

/* ---- descriptors */

static const prn_param align_params[] = {PRN_STRING(roi_params, mode, "avg"),
                                         PRN_STRING(roi_params, coordinate_transformation_mode, "half_pixel"),
                                         PRN_INT(roi_params, output_height, 1),
                                         PRN_INT(roi_params, output_width, 1),
                                         PRN_INT(roi_params, sampling_ratio, 0),
                                         PRN_FLOAT(roi_params, spatial_scale, 1.0f),
                                         {0}};
static const prn_param pool_params[] = {
    PRN_INTS_REQUIRED(roi_params, pooled_shape), PRN_FLOAT(roi_params, spatial_scale, 1.0f), {0}};

// clang-format off
static const prn_kernel align_kernels[] = {
    {.name = "roi_align_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = averages, .run = run_align_native},
    {.name = "roi_align_reference", .backend = "reference", .run = run_align_reference},
    {0}};
// clang-format on
static const prn_kernel pool_kernels[] = {{.name = "max_roi_pool_reference", .backend = "reference", .run = run_pool},
                                          {0}};

// clang-format off
const prn_op prn_ops_roi[] = {
    {.name = "RoiAlign", .since_opset = 10, .inputs = {3, 3}, .non_weight_inputs = 6,
     .params = align_params, .params_bytes = sizeof(roi_params), .check = check_align,
     .infer = infer_align, .cost = cost_align, .kernels = align_kernels,
     .cost_text = "8 n s, n of them divisions, s samples per cell (1 where the data decides)"},
    {.name = "MaxRoiPool", .since_opset = 1, .inputs = {2, 2}, .non_weight_inputs = 2,
     .params = pool_params, .params_bytes = sizeof(roi_params),
     .infer = infer_pool, .cost = cost_pool, .kernels = pool_kernels,
     .cost_text = "n (the pixels of a cell are the data's)"},
    {0}};
// clang-format on
