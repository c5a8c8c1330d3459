/* Operators that opset 1 had on trial and later ones dropped; what early converters wrote still holds them: Affine,
 * Scale, ParametricSoftplus, ScaledTanh, ImageScaler and Crop. */
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"

typedef struct first_params {
    float alpha, beta, scale;
    prn_floats bias;
} first_params;

/* A row's variant: y = f(x), and what an element costs. */
typedef struct map_kind {
    double (*f)(const first_params *params, double x);
    uint64_t flops, special, madds;
} map_kind;

typedef struct map_job {
    const first_params *params;
    const prony_value *x, *y;
    double (*f)(const first_params *params, double x);
    int64_t plane, channels; /* ImageScaler: elements of a channel */
} map_job;

static double affine(const first_params *params, double x)
{
    return (double)params->alpha * x + (double)params->beta;
}

static double scale(const first_params *params, double x)
{
    return (double)params->scale * x;
}

static double parametric_softplus(const first_params *params, double x)
{
    const double z = (double)params->beta * x;
    return (double)params->alpha * (fmax(z, 0.0) + log1p(exp(-fabs(z))));
}

static double scaled_tanh(const first_params *params, double x)
{
    return (double)params->alpha * tanh((double)params->beta * x);
}

static void first_opset_map_range(void *argument, int64_t begin, int64_t end)
{
    const map_job *job = argument;
    for (int64_t i = begin; i < end; i++) {
        double y = job->f(job->params, prn_get_f64(job->x->data, job->x->dtype, i));
        if (job->plane > 0) y += (double)job->params->bias.v[i / job->plane % job->channels];
        prn_put_f64(job->y->data, job->y->dtype, i, y);
    }
}

static prony_status first_opset_cost_map(const prony_context *context, prony_cost *cost)
{
    const map_kind *kind = prn_variant(context);
    return prn_cost_map(context, cost, kind->flops, kind->special, kind->madds);
}

static prony_status run_map(const prony_context *context)
{
    const first_params *params = context->params;
    const prony_value *x = context->inputs[0];
    map_job job = {
        .params = params, .x = x, .y = context->outputs[0], .f = ((const map_kind *)prn_variant(context))->f};
    if (params->bias.count > 0) {
        job.plane = prn_shape_count(&x->shape, 2, x->shape.rank);
        job.channels = x->shape.dim[1];
    }
    prn_parallel_items(context->threads, prony_shape_numel(&x->shape), 16 * (int64_t)prn_value_bytes(x),
                       first_opset_map_range, &job);
    return PRONY_OK;
}

static prony_status infer_map(const prony_context *context)
{
    const prn_floats *bias = &((const first_params *)context->params)->bias;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    if (bias->count > 0) {
        PRN_TRY(prn_check_rank(context, 0, 2, PRONY_MAX_RANK));
        if ((int64_t)bias->count != context->inputs[0]->shape.dim[1])
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "bias has %zu entries for %lld channels", bias->count,
                              (long long)context->inputs[0]->shape.dim[1]);
    }
    return prn_infer_same(context);
}

/* ---- Crop: borders of the last two of four axes, and how much is left if `scale` says so */

typedef struct crop_params {
    prn_ints border, scale; /* left, top, right, bottom; height, width */
} crop_params;

/* Crop of opset 1: borders are left, top, right, bottom; with `scale`, the extent replaces the right and bottom
 * borders. */
static prony_status first_opset_infer_crop(const prony_context *context)
{
    const crop_params *params = context->params;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_check_rank(context, 0, 4, 4));
    if (params->border.count != 4 || (params->scale.present && params->scale.count != 2))
        return prony_fail(context, PRONY_INVALID_MODEL, "border has %zu entries, scale %zu", params->border.count,
                          params->scale.count);
    prony_shape shape = context->inputs[0]->shape;
    for (int k = 0; k < 2; k++) {
        const int64_t before = params->border.v[1 - k], after = params->border.v[3 - k], have = shape.dim[2 + k];
        bool fits = before >= 0 && before <= have && after >= 0;
        int64_t left = fits ? have - before : 0;
        if (params->scale.present) {
            fits = fits && params->scale.v[k] >= 0 && params->scale.v[k] <= left;
            left = params->scale.v[k];
        } else if (fits) {
            fits = after <= left;
            left -= fits ? after : 0;
        }
        if (!fits)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "borders %lld and %lld do not fit extent %lld of axis %d",
                              (long long)before, (long long)after, (long long)have, 2 + k);
        shape.dim[2 + k] = left;
    }
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

static prony_status run_crop(const prony_context *context)
{
    const prn_ints *border = &((const crop_params *)context->params)->border;
    const prony_value *in = context->inputs[0], *out = context->outputs[0];
    const size_t width = prn_copy_width(in->dtype);
    int64_t from[PRONY_MAX_RANK], to[PRONY_MAX_RANK];
    prn_copy copy = {0};
    if (prony_shape_numel(&out->shape) == 0) return PRONY_OK;
    prn_shape_strides(&in->shape, from);
    prn_shape_strides(&out->shape, to);
    for (int i = 0; i < 4; i++) prn_copy_axis(&copy, out->shape.dim[i], from[i], to[i]);
    prn_copy_native(context->threads, width, &copy,
                    (const char *)in->data + (size_t)(border->v[1] * from[2] + border->v[0]) * width, out->data);
    return PRONY_OK;
}

/* ---- rows */

static const prn_param map_params[] = {PRN_FLOAT(first_params, alpha, 1.0f),
                                       PRN_FLOAT(first_params, beta, 0.0f),
                                       PRN_FLOAT(first_params, scale, 1.0f),
                                       {0}};
static const prn_param image_params[] = {PRN_FLOAT(first_params, scale, 1.0f), PRN_FLOATS(first_params, bias), {0}};
static const prn_param crop_attributes[] = {PRN_INTS_REQUIRED(crop_params, border), PRN_INTS(crop_params, scale), {0}};

static const prn_kernel affine_kernels[] = {{.name = "affine_reference", .backend = "reference", .run = run_map}, {0}};
static const prn_kernel scale_kernels[] = {{.name = "scale_reference", .backend = "reference", .run = run_map}, {0}};
static const prn_kernel parametric_softplus_kernels[] = {
    {.name = "parametric_softplus_reference", .backend = "reference", .run = run_map}, {0}};
static const prn_kernel scaled_tanh_kernels[] = {
    {.name = "scaled_tanh_reference", .backend = "reference", .run = run_map}, {0}};
static const prn_kernel image_scaler_kernels[] = {
    {.name = "image_scaler_reference", .backend = "reference", .run = run_map}, {0}};
static const prn_kernel crop_kernels[] = {{.name = "crop_reference", .backend = "reference", .run = run_crop}, {0}};

// clang-format off
const prn_op prn_ops_first_opset[] = {
    {.name = "Affine", .since_opset = 1, .inputs = {1, 1},
     .params = map_params, .params_bytes = sizeof(first_params), .variant = &(const map_kind){affine, 2, 0, 1},
     .infer = infer_map, .cost = first_opset_cost_map, .cost_text = "2 n; madds n", .kernels = affine_kernels},
    {.name = "Scale", .since_opset = 1, .inputs = {1, 1},
     .params = map_params, .params_bytes = sizeof(first_params), .variant = &(const map_kind){scale, 1, 0, 0},
     .infer = infer_map, .cost = first_opset_cost_map, .cost_text = "n", .kernels = scale_kernels},
    {.name = "ParametricSoftplus", .since_opset = 1, .inputs = {1, 1},
     .params = map_params, .params_bytes = sizeof(first_params),
     .variant = &(const map_kind){parametric_softplus, 5, 2, 0},
     .infer = infer_map, .cost = first_opset_cost_map, .cost_text = "5 n; special 2 n", .kernels = parametric_softplus_kernels},
    {.name = "ScaledTanh", .since_opset = 1, .inputs = {1, 1},
     .params = map_params, .params_bytes = sizeof(first_params), .variant = &(const map_kind){scaled_tanh, 3, 1, 0},
     .infer = infer_map, .cost = first_opset_cost_map, .cost_text = "3 n; special n", .kernels = scaled_tanh_kernels},
    {.name = "ImageScaler", .since_opset = 1, .inputs = {1, 1},
     .params = image_params, .params_bytes = sizeof(first_params), .variant = &(const map_kind){scale, 2, 0, 1},
     .infer = infer_map, .cost = first_opset_cost_map, .cost_text = "2 n; madds n", .kernels = image_scaler_kernels},
    {.name = "Crop", .since_opset = 1, .inputs = {1, 1},
     .params = crop_attributes, .params_bytes = sizeof(crop_params),
     .infer = first_opset_infer_crop, .cost = prn_cost_none, .cost_text = "0", .kernels = crop_kernels},
    {0}};
// clang-format on
