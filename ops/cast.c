/* Cast and CastLike among the number types. The conversion itself is number.c's; elements are independent, so any cut
 * among threads gives the same result. */
#include "base/parallel.h"
#include "ops/number.h"
#include "ops/op.h"

typedef struct cast_params {
    int64_t to;
} cast_params;

static const prn_param cast_attributes[] = {PRN_INT_REQUIRED(cast_params, to), {0}};

static prony_status infer_to(const prony_context *context, prony_dtype to)
{
    const prony_value *in = context->inputs[0];
    if (!prn_dtype_is_number(in->dtype) || !prn_dtype_is_number(to)) {
        return prony_fail(context, PRONY_UNSUPPORTED, "conversion of %s to %s", prony_dtype_name(in->dtype),
                          prony_dtype_name(to));
    }
    prn_set_output(context, 0, to, &in->shape);
    return PRONY_OK;
}

static prony_status check_cast(const prony_context *context)
{
    const cast_params *params = context->params;
    if (params->to > PRONY_UNDEFINED && params->to < PRONY_DTYPE_COUNT) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'to' is %lld, which is no element type",
                      (long long)params->to);
}

static prony_status infer_cast(const prony_context *context)
{
    return infer_to(context, (prony_dtype)((const cast_params *)context->params)->to);
}

static prony_status infer_cast_like(const prony_context *context)
{
    return infer_to(context, context->inputs[1]->dtype);
}

static void convert_range(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const prony_value *in = context->inputs[0], *out = context->outputs[0];
    prn_convert((char *)out->data + prony_dtype_bytes(out->dtype, begin), out->dtype,
                (const char *)in->data + prony_dtype_bytes(in->dtype, begin), in->dtype, end - begin);
}

static prony_status run_cast(const prony_context *context)
{
    prn_parallel_range(context->threads, prony_shape_numel(&context->outputs[0]->shape), 16384, convert_range,
                       (void *)context);
    return PRONY_OK;
}

/* Equally large means equally wide elements, which prn_convert takes in place. */
static const prn_kernel cast_kernels[] = {
    {.name = "cast_reference", .backend = "reference", .run = run_cast, .inplace = 1}, {0}};

const prn_op prn_op_cast = {
    .name = "Cast",
    .domain = "",
    .since_opset = 6,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .params = cast_attributes,
    .params_bytes = sizeof(cast_params),
    .check = check_cast,
    .infer = infer_cast,
    .cost = prn_cost_none,
    .cost_text = "0",
    .kernels = cast_kernels,
};

const prn_op prn_op_cast_like = {
    .name = "CastLike",
    .domain = "",
    .since_opset = 15,
    .min_inputs = 2,
    .max_inputs = 2,
    .min_outputs = 1,
    .max_outputs = 1,
    .non_weight_inputs = 2,
    .infer = infer_cast_like,
    .cost = prn_cost_none,
    .cost_text = "0",
    .kernels = cast_kernels,
};
