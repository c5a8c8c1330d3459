/* Cast and CastLike among all types but the complex ones. The conversion itself is narrow_types.c's and, for text,
 * cast_text.c's; elements are independent, so any cut among threads gives the same result. */
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/cast_text.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/op.h"
#include "ops/vendor/opencl/opencl_map.h"

#include <string.h>

typedef struct cast_params {
    int64_t to, saturate;
    const char *round_mode, *to_name;
} cast_params;

static const prn_param cast_attributes[] = {PRN_INT_REQUIRED(cast_params, to),
                                            PRN_INT(cast_params, saturate, 1),
                                            PRN_STRING(cast_params, round_mode, "up"),
                                            {0}};
static const prn_param cast_like_attributes[] = {
    PRN_INT(cast_params, saturate, 1), PRN_STRING(cast_params, round_mode, "up"), {0}};

/* Below opset 6 the type is named. */
static const prn_param cast_1_attributes[] = {
    {"to", PRN_PARAM_STRING, offsetof(cast_params, to_name), true, 0, 0, NULL},
    PRN_STRING(cast_params, round_mode, "up"),
    {0}};

static const char *const round_modes[] = {
    [PRN_E8M0_UP] = "up", [PRN_E8M0_DOWN] = "down", [PRN_E8M0_NEAREST] = "nearest"};

static bool read_rule(const prony_context *context, prn_cast_rule *rule)
{
    const cast_params *params = context->params;
    rule->saturate = params->saturate != 0;
    for (size_t i = 0; i < sizeof round_modes / sizeof *round_modes; i++) {
        rule->rounding = (prn_e8m0_rounding)i;
        if (strcmp(params->round_mode, round_modes[i]) == 0) return true;
    }
    return false;
}

static prony_status check_rule(const prony_context *context)
{
    prn_cast_rule rule;
    if (read_rule(context, &rule)) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'round_mode' is '%s', wanted up, down or nearest",
                      ((const cast_params *)context->params)->round_mode);
}

static prony_status check_cast(const prony_context *context)
{
    const cast_params *params = context->params;
    if (params->to > PRONY_UNDEFINED && params->to < PRONY_DTYPE_COUNT) return check_rule(context);
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'to' is %lld, which is not an element type",
                      (long long)params->to);
}

static bool is_castable(prony_dtype type)
{
    return type == PRONY_STRING || prn_dtype_is_castable(type);
}

static prony_status infer_to(const prony_context *context, prony_dtype to)
{
    const prony_value *in = context->inputs[0];
    if (!is_castable(in->dtype) || !is_castable(to)) {
        return prony_fail(context, PRONY_UNSUPPORTED, "conversion of %s to %s is not supported",
                          prony_dtype_name(in->dtype), prony_dtype_name(to));
    }
    prn_set_output(context, 0, to, &in->shape);
    return PRONY_OK;
}

static prony_status infer_cast(const prony_context *context)
{
    return infer_to(context, (prony_dtype)((const cast_params *)context->params)->to);
}

static prony_status infer_cast_1(const prony_context *context)
{
    static const char *const names[] = {
        [PRONY_FLOAT32] = "FLOAT", [PRONY_UINT8] = "UINT8",     [PRONY_INT8] = "INT8",      [PRONY_UINT16] = "UINT16",
        [PRONY_INT16] = "INT16",   [PRONY_INT32] = "INT32",     [PRONY_INT64] = "INT64",    [PRONY_STRING] = "STRING",
        [PRONY_BOOL] = "BOOL",     [PRONY_FLOAT16] = "FLOAT16", [PRONY_FLOAT64] = "DOUBLE", [PRONY_UINT32] = "UINT32",
        [PRONY_UINT64] = "UINT64"};
    const char *wanted = ((const cast_params *)context->params)->to_name;
    for (size_t type = 1; type < sizeof names / sizeof *names; type++)
        if (strcmp(names[type], wanted) == 0) return infer_to(context, (prony_dtype)type);
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'to' is '%.40s', which is not an element type", wanted);
}

static prony_status infer_cast_like(const prony_context *context)
{
    return infer_to(context, context->inputs[1]->dtype);
}

/* ---- text */

static prony_status cast_write_text(const prony_context *context, const prony_value *in, const prony_value *out)
{
    const int64_t count = prony_shape_numel(&in->shape);
    prony_string *strings = out->data;
    char text[PRN_NUMBER_TEXT_BYTES], *room = NULL;
    size_t bytes = 0;
    for (int64_t i = 0; i < count && !prn_cancelled_at(i); i++)
        bytes += prn_number_to_text(text, in->data, in->dtype, i);
    if (prn_cancelled()) return PRONY_OK; /* the sum may not be whole */
    if (bytes > 0) PRN_TRY(context->services->text_take(context, bytes, &room));
    for (int64_t i = 0; i < count && !prn_cancelled_at(i); i++) {
        const size_t size = prn_number_to_text(text, in->data, in->dtype, i);
        memcpy(room, text, size);
        strings[i] = (prony_string){room, size};
        room += size;
    }
    return PRONY_OK;
}

static prony_status read_text(const prony_context *context, const prony_value *in, const prony_value *out,
                              const prn_cast_rule *rule)
{
    const prony_string *strings = in->data;
    for (int64_t i = 0; i < prony_shape_numel(&in->shape) && !prn_cancelled_at(i); i++) {
        if (prn_text_to_number(&strings[i], out->data, out->dtype, i, rule)) continue;
        const int shown = strings[i].size < 40 ? (int)strings[i].size : 40;
        return prony_fail(context, PRONY_OUT_OF_RANGE, "element %lld, '%.*s', is not a valid %s", (long long)i, shown,
                          strings[i].data, prony_dtype_name(out->dtype));
    }
    return PRONY_OK;
}

/* ---- running */

typedef struct cast_job {
    const prony_value *in, *out;
    prn_cast_rule rule;
} cast_job;

static void cast_range(void *argument, int64_t begin, int64_t end)
{
    const cast_job *job = argument;
    prn_cast(job->out->data, job->out->dtype, begin, job->in->data, job->in->dtype, begin, end - begin, &job->rule);
}

prony_status prn_cast_value(const prony_context *context, const prony_value *in, const prony_value *out,
                            const prn_cast_rule *rule)
{
    cast_job job = {.in = in, .out = out, .rule = *rule};
    const int64_t count = prony_shape_numel(&in->shape);
    if (in->dtype == out->dtype) {
        prn_copy_bytes(context->threads, in->data, out->data, prony_dtype_bytes(in->dtype, count));
        return PRONY_OK;
    }
    if (out->dtype == PRONY_STRING) return cast_write_text(context, in, out);
    if (in->dtype == PRONY_STRING) return read_text(context, in, out, rule);
    prn_parallel_range(context->threads, count, 16384, cast_range, &job);
    return PRONY_OK;
}

static prony_status run_cast(const prony_context *context)
{
    prn_cast_rule rule;
    read_rule(context, &rule);
    return prn_cast_value(context, context->inputs[0], context->outputs[0], &rule);
}

#ifdef PRN_HAVE_OPENCL
/* From or to float32. Tensors of rank 0 and 1 belong to computations of shapes, which stay on the host. */
static bool cast_opencl_supported(const prony_context *context)
{
    const prony_dtype from = context->inputs[0]->dtype, to = context->outputs[0]->dtype;
    const uint32_t known =
        PRN_TYPE_F32 | PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64) | PRN_TYPE(PRONY_UINT8) | PRN_TYPE(PRONY_BOOL);
    return (known >> from & 1) && (known >> to & 1) && (from == PRONY_FLOAT32 || to == PRONY_FLOAT32) && from != to &&
           context->outputs[0]->shape.rank >= 2 && prn_opencl_map_supported(context);
}

/* As prn_convert does it: floats are cut off and saturate, and NaN gives 0. */
static prony_status cast_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    static const char *const texts[] = {[PRONY_FLOAT32] = "convert_float_rte(x)",
                                        [PRONY_INT32] = "x != x ? 0 : convert_int_sat_rtz(x)",
                                        [PRONY_INT64] = "x != x ? 0 : convert_long_sat_rtz(x)",
                                        [PRONY_UINT8] = "x != x ? 0 : convert_uchar_sat_rtz(x)",
                                        [PRONY_BOOL] = "x != 0"};
    return prn_opencl_expression_prepare(context, out, texts[context->outputs[0]->dtype], 0.0f, 0.0f);
}
#endif

/* Equally large means equally wide elements, which prn_cast takes in place; or strings, which are copied. */
// clang-format off
static const prn_kernel cast_kernels[] = {
    PRN_OPENCL_ROW("cast_opencl", PRN_TYPE_ANY, cast_opencl_supported, cast_opencl_prepare)
    {.name = "cast_reference", .backend = "reference", .run = run_cast, .inplace = 1}, {0}};

const prn_op prn_ops_cast[] = {
    {.name = "Cast", .since_opset = 6, .inputs = {1, 1},
     .params = cast_attributes, .params_bytes = sizeof(cast_params), .check = check_cast,
     .infer = infer_cast, .cost = prn_cost_none, .cost_text = "0", .kernels = cast_kernels},
    {.name = "Cast", .since_opset = 1, .inputs = {1, 1},
     .params = cast_1_attributes, .params_bytes = sizeof(cast_params),
     .infer = infer_cast_1, .cost = prn_cost_none, .cost_text = "0", .kernels = cast_kernels},
    {.name = "CastLike", .since_opset = 15, .inputs = {2, 2}, .non_weight_inputs = 2,
     .params = cast_like_attributes, .params_bytes = sizeof(cast_params), .check = check_rule,
     .infer = infer_cast_like, .cost = prn_cost_none, .cost_text = "0", .kernels = cast_kernels},
    {0}};
// clang-format on
