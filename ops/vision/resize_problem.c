/* The problem of Resize and Upsample: reading every opset's form, and the coordinate arithmetic. Rounding at .5 decides
 * which neighbour is taken. Sizes make the scale a ratio of two integers, and coordinates exact: one division of
 * integers. Scales are float32, and so is the arithmetic then, as in other engines. With align_corners a scale may
 * leave a fraction of a pixel, which the specification's formula divides by (scale * in - 1) and which ONNX Runtime and
 * PyTorch drop (floor(scale * in) - 1): the specification is followed. Invariant: a tap's index always lies within its
 * axis. */
#include "ops/vision/resize.h"

#include "ops/kernels/vector/number.h"

#include <math.h>
#include <string.h>

/* ---- attributes */

/* Index of `name` in a NULL-terminated list, or -1. */
static int resize_problem_find_name(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], name) == 0) return i;
    }
    return -1;
}

static const char *const mode_names[] = {"nearest", "linear", "cubic", NULL};
static const char *const coordinate_names[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
static const char *const rounding_names[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
static const char *const policy_names[] = {"stretch", "not_larger", "not_smaller", NULL};

static bool is_upsample(const prony_context *context)
{
    return *(const prn_resize_kind *)prn_variant(context) == PRN_UPSAMPLE;
}

/* Before opset 11 (Upsample always) there is one way to find coordinates and to round. */
static bool old_form(const prony_context *context)
{
    return context->node->opset < 11 || is_upsample(context);
}

/* Upsample before opset 7: scales of the last two of four axes, and a name of its own for linear. */
static bool first_form(const prony_context *context)
{
    return is_upsample(context) && context->node->opset < 7;
}

static const char *resize_problem_mode_of(const prony_context *context)
{
    const char *mode = ((const prn_resize_params *)context->params)->mode;
    return first_form(context) && strcmp(mode, "bilinear") == 0 ? "linear" : mode;
}

/* Attribute values that Resize, Upsample and their old forms know. Upsample before opset 9 needs scales. */
prony_status prn_resize_check(const prony_context *context)
{
    const prn_resize_params *params = context->params;
    bool old = old_form(context);
    const struct {
        const char *what, *value;
        const char *const *names;
    } choices[] = {
        {"mode", resize_problem_mode_of(context), mode_names},
        {"coordinate_transformation_mode", params->coordinate_transformation_mode, coordinate_names},
        {"nearest_mode", params->nearest_mode, rounding_names},
        {"keep_aspect_ratio_policy", params->keep_aspect_ratio_policy, policy_names},
    };
    for (size_t i = 0; i < (old ? 1 : sizeof choices / sizeof *choices); i++) {
        if (resize_problem_find_name(choices[i].names, choices[i].value) < 0) {
            return prony_fail(context, PRONY_UNSUPPORTED, "%s '%s' is not supported", choices[i].what,
                              choices[i].value);
        }
    }
    if (first_form(context) ? !(params->height_scale > 0 && params->width_scale > 0)
                            : is_upsample(context) && context->node->opset < 9 && !params->scales.present) {
        return prony_fail(context, PRONY_INVALID_MODEL, "scales are missing or not above 0");
    }
    return PRONY_OK;
}

static void read_modes(const prony_context *context, prn_resize *resize)
{
    const prn_resize_params *params = context->params;
    *resize =
        (prn_resize){.mode = (prn_resize_mode)resize_problem_find_name(mode_names, resize_problem_mode_of(context)),
                     .cubic_a = params->cubic_coeff_a,
                     .extrapolation = params->extrapolation_value,
                     .exclude_outside = params->exclude_outside != 0,
                     .rank = context->inputs[0]->shape.rank};
    if (old_form(context)) {
        resize->coordinate = PRN_RESIZE_ASYMMETRIC;
        resize->rounding = PRN_RESIZE_SIMPLE;
        return;
    }
    resize->antialias = params->antialias != 0 && resize->mode != PRN_RESIZE_NEAREST;
    resize->coordinate =
        (prn_resize_coordinate)resize_problem_find_name(coordinate_names, params->coordinate_transformation_mode);
    resize->rounding = (prn_resize_rounding)resize_problem_find_name(rounding_names, params->nearest_mode);
}

/* ---- scales and sizes */

/* The axes that scales, sizes and region speak of, in their order. */
static prony_status resize_problem_read_axes(const prony_context *context, int axes[PRONY_MAX_RANK], size_t *count)
{
    const prn_resize_params *params = context->params;
    int rank = context->inputs[0]->shape.rank;
    uint32_t seen = 0;
    *count = params->axes.present ? params->axes.count : (size_t)rank;
    if (*count > PRONY_MAX_RANK) return prony_fail(context, PRONY_LIMIT, "%zu axes", *count);
    for (size_t i = 0; i < *count; i++) {
        int64_t axis = params->axes.present ? params->axes.v[i] : (int64_t)i;
        if (!prn_axis_normalize(&axis, rank) || (seen >> axis & 1)) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "axes[%zu] is outside of rank %d or given twice", i, rank);
        }
        seen |= UINT32_C(1) << axis;
        axes[i] = (int)axis;
    }
    return PRONY_OK;
}

/* An optional list with one entry per axis; an empty one counts as omitted. */
static prony_status resize_problem_read_list(const prony_context *context, size_t input, size_t wanted, uint32_t types,
                                             const prony_value **out)
{
    const prony_value *in = prn_input(context, input);
    *out = NULL;
    if (!in || prony_shape_numel(&in->shape) == 0) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, types));
    if (prony_shape_numel(&in->shape) != (int64_t)wanted) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %zu entries", input,
                          prn_value_text(in, text), wanted);
    }
    *out = in;
    return PRONY_OK;
}

static prony_status apply_scale(const prony_context *context, prn_resize_axis *axis, float scale)
{
    float extent = floorf(scale * (float)axis->in);
    if (!(scale > 0) || !(extent < 0x1p62f)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "scale %g of extent %lld", (double)scale, (long long)axis->in);
    }
    axis->scale = scale;
    axis->length = scale * (float)axis->in;
    axis->out = (int64_t)extent;
    return PRONY_OK;
}

/* Extents as `sizes` gives them; with an aspect ratio policy, the smallest or largest scale applies to every axis. */
static prony_status apply_sizes(const prony_context *context, prn_resize *resize, const prony_value *sizes,
                                const int *axes, size_t count)
{
    int policy = old_form(context)
                     ? 0
                     : resize_problem_find_name(policy_names,
                                                ((const prn_resize_params *)context->params)->keep_aspect_ratio_policy);
    float common = 0;
    for (size_t i = 0; i < count; i++) {
        prn_resize_axis *axis = &resize->axis[axes[i]];
        axis->out = prn_get_i64(sizes->data, sizes->dtype, (int64_t)i);
        if (axis->out < 0) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "sizes[%zu] is %lld", i, (long long)axis->out);
        }
        axis->scale = axis->in ? (float)axis->out / (float)axis->in : 1.0f;
        axis->length = (float)axis->out;
        axis->rational = policy == 0;
        common = i == 0 ? axis->scale : (policy == 1 ? fminf(common, axis->scale) : fmaxf(common, axis->scale));
    }
    for (size_t i = 0; i < count && policy != 0; i++) {
        prn_resize_axis *axis = &resize->axis[axes[i]];
        float extent = roundf(common * (float)axis->in);
        if (!(extent < 0x1p62f)) return prony_fail(context, PRONY_OUT_OF_RANGE, "sizes[%zu] is too large", i);
        axis->scale = common;
        axis->length = common * (float)axis->in;
        axis->out = (int64_t)extent;
    }
    return PRONY_OK;
}

/* Output extents, scales and crop regions of the named axes, from attributes or inputs by opset. Not known while they
 * have no data. */
static prony_status read_extents(const prony_context *context, prn_resize *resize, bool *known)
{
    const prn_resize_params *params = context->params;
    const prony_value *region = NULL, *scales = NULL, *sizes = NULL;
    int axes[PRONY_MAX_RANK];
    size_t count;
    bool old = old_form(context);
    PRN_TRY(resize_problem_read_axes(context, axes, &count));
    PRN_TRY(resize_problem_read_list(context, old ? 1 : 2, count, PRN_TYPE_F32, &scales));
    if (!old) {
        PRN_TRY(resize_problem_read_list(context, 3, count, PRN_TYPE(PRONY_INT64), &sizes));
        if (resize->coordinate == PRN_RESIZE_TF_CROP_AND_RESIZE) {
            PRN_TRY(resize_problem_read_list(context, 1, 2 * count, PRN_TYPES_FLOAT, &region));
        }
    }
    bool attribute = is_upsample(context) && context->node->opset < 9;
    const float *given = params->scales.v;
    size_t given_count = params->scales.count;
    const float last_two[] = {1, 1, params->height_scale, params->width_scale};
    if (first_form(context)) {
        given = last_two;
        given_count = 4;
    }
    if (attribute ? given_count != count : !scales && !sizes) {
        return prony_fail(context, PRONY_INVALID_MODEL, "wanted scales or sizes for %zu axes", count);
    }
    *known = attribute || (sizes ? sizes->data : scales->data);
    if (!*known) return PRONY_OK;
    if (sizes) PRN_TRY(apply_sizes(context, resize, sizes, axes, count));
    for (size_t i = 0; i < count; i++) {
        prn_resize_axis *axis = &resize->axis[axes[i]];
        if (!sizes) {
            PRN_TRY(apply_scale(context, axis, attribute ? given[i] : ((const float *)scales->data)[i]));
        }
        if (!region || !region->data) continue;
        axis->start = (float)prn_get_f64(region->data, region->dtype, (int64_t)i);
        axis->end = (float)prn_get_f64(region->data, region->dtype, (int64_t)(count + i));
    }
    return PRONY_OK;
}

prony_status prn_resize_read(const prony_context *context, prn_resize *resize, bool *known)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    read_modes(context, resize);
    for (int i = 0; i < shape->rank; i++) {
        resize->axis[i] = (prn_resize_axis){.in = shape->dim[i], .out = shape->dim[i], .scale = 1, .end = 1};
    }
    PRN_TRY(read_extents(context, resize, known));
    for (int i = 0; i < shape->rank && *known; i++) {
        prn_resize_axis *axis = &resize->axis[i];
        axis->same = axis->in == axis->out && axis->scale == 1.0f && axis->start == 0.0f && axis->end == 1.0f;
        if (axis->in == 0 && axis->out > 0) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "axis %d is empty and cannot become %lld", i,
                              (long long)axis->out);
        }
    }
    return PRONY_OK;
}

/* ---- coordinates */

/* A scale of out / in. Products of extents are exact in a double, so that only the quotient is rounded. */
static double exact_source(const prn_resize *resize, const prn_resize_axis *axis, int64_t position)
{
    const double x = (double)position, in = (double)axis->in, out = (double)axis->out;
    switch (resize->coordinate) {
    case PRN_RESIZE_PYTORCH_HALF_PIXEL:
        if (axis->out <= 1) return 0.0;
        break;
    case PRN_RESIZE_ALIGN_CORNERS:
        return axis->out > 1 ? x * (in - 1.0) / (out - 1.0) : 0.0;
    case PRN_RESIZE_ASYMMETRIC:
        return x * in / out;
    case PRN_RESIZE_TF_HALF_PIXEL_FOR_NN:
        return (2.0 * x + 1.0) * in / (2.0 * out);
    case PRN_RESIZE_TF_CROP_AND_RESIZE:
        break; /* has a region, and does not come here */
    case PRN_RESIZE_HALF_PIXEL:
    case PRN_RESIZE_HALF_PIXEL_SYMMETRIC: /* the symmetric one adjusts by what the scale leaves of a pixel, which is
                                             nothing */
        break;
    }
    return ((2.0 * x + 1.0) * in - out) / (2.0 * out);
}

static float float_source(const prn_resize *resize, const prn_resize_axis *axis, int64_t position)
{
    float x = (float)position, in = (float)axis->in;
    switch (resize->coordinate) {
    case PRN_RESIZE_HALF_PIXEL:
        return (x + 0.5f) / axis->scale - 0.5f;
    case PRN_RESIZE_HALF_PIXEL_SYMMETRIC: {
        float adjustment = (float)axis->out / (axis->scale * in), center = in / 2.0f;
        return center * (1.0f - adjustment) + (x + 0.5f) / axis->scale - 0.5f;
    }
    case PRN_RESIZE_PYTORCH_HALF_PIXEL:
        return axis->out > 1 ? (x + 0.5f) / axis->scale - 0.5f : 0.0f;
    case PRN_RESIZE_ALIGN_CORNERS:
        return axis->out > 1 ? x * (in - 1.0f) / (axis->length - 1.0f) : 0.0f;
    case PRN_RESIZE_ASYMMETRIC:
        return x / axis->scale;
    case PRN_RESIZE_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5f) / axis->scale;
    case PRN_RESIZE_TF_CROP_AND_RESIZE:
        if (axis->out <= 1) return 0.5f * (axis->start + axis->end) * (in - 1.0f);
        return axis->start * (in - 1.0f) + x * (axis->end - axis->start) * (in - 1.0f) / (axis->length - 1.0f);
    }
    return x;
}

double prn_resize_source(const prn_resize *resize, int axis_index, int64_t position)
{
    const prn_resize_axis *axis = &resize->axis[axis_index];
    const bool exact = axis->rational && axis->out > 0 && resize->coordinate != PRN_RESIZE_TF_CROP_AND_RESIZE;
    return exact ? exact_source(resize, axis, position) : (double)float_source(resize, axis, position);
}

static double resize_problem_rounded(const prn_resize *resize, const prn_resize_axis *axis, double x)
{
    switch (resize->rounding) {
    case PRN_RESIZE_ROUND_PREFER_FLOOR:
        return x == floor(x) + 0.5 ? floor(x) : round(x);
    case PRN_RESIZE_ROUND_PREFER_CEIL:
        return floor(x + 0.5);
    case PRN_RESIZE_FLOOR:
        return floor(x);
    case PRN_RESIZE_CEIL:
        return ceil(x);
    case PRN_RESIZE_SIMPLE:
        return axis->scale < 1.0f ? ceil(x) : trunc(x);
    }
    return x;
}

/* NaN (an invalid region) goes to the first entry. */
static int64_t clamp_index(double x, int64_t extent)
{
    if (!(x > 0.0)) return 0;
    return x < (double)(extent - 1) ? (int64_t)x : extent - 1;
}

static void resize_problem_linear_taps(prn_taps *taps, const prn_resize_axis *axis, double x)
{
    double last = (double)(axis->in - 1);
    double inside = x > 0.0 ? (x < last ? x : last) : 0.0;
    int64_t low = clamp_index(inside, axis->in), high = low + 1 < axis->in ? low + 1 : low;
    float ratio = high > low ? (float)(inside - (double)low) : 0.0f;
    *taps = (prn_taps){.count = 2, .index = {low, high}, .weight = {(double)(1.0f - ratio), (double)ratio}};
}

static void cubic_taps(const prn_resize *resize, prn_taps *taps, const prn_resize_axis *axis, double x)
{
    double base = floor(x);
    double sum = 0.0;
    taps->count = 4;
    prn_taps_cubic(taps->weight, x - base, (double)resize->cubic_a);
    for (int k = 0; k < 4; k++) {
        double at = base + (double)(k - 1);
        taps->index[k] = clamp_index(at, axis->in);
        if (resize->exclude_outside && (at < 0.0 || at > (double)(axis->in - 1))) taps->weight[k] = 0.0;
        sum += taps->weight[k];
    }
    for (int k = 0; k < 4 && resize->exclude_outside; k++) taps->weight[k] /= sum;
}

bool prn_resize_is_outside(const prn_resize *resize, int axis, double source)
{
    return resize->coordinate == PRN_RESIZE_TF_CROP_AND_RESIZE && !resize->axis[axis].same &&
           !(source >= 0.0 && source <= (double)(resize->axis[axis].in - 1));
}

prn_taps prn_resize_taps_at(const prn_resize *resize, int axis_index, int64_t position, bool *outside)
{
    const prn_resize_axis *axis = &resize->axis[axis_index];
    prn_taps taps = {.count = 1, .index = {position}, .weight = {1.0}};
    if (axis->same) return taps;
    double x = prn_resize_source(resize, axis_index, position);
    if (resize->mode == PRN_RESIZE_NEAREST) {
        taps.index[0] = clamp_index(resize_problem_rounded(resize, axis, x), axis->in);
    } else if (resize->mode == PRN_RESIZE_LINEAR) {
        resize_problem_linear_taps(&taps, axis, x);
    } else {
        cubic_taps(resize, &taps, axis, x);
    }
    if (outside && prn_resize_is_outside(resize, axis_index, x)) *outside = true;
    return taps;
}
