/* BitCast: the bits of each element read as another type of the same width. */
#include "ops/kernels/copy/copy_nd.h"

typedef struct bit_cast_params {
    int64_t to;
} bit_cast_params;

static prony_status bit_cast_infer(const prony_context *context)
{
    const int64_t to = ((const bit_cast_params *)context->params)->to;
    const prony_value *in = context->inputs[0];
    const size_t bits = in->kind == PRONY_TENSOR ? prn_dtype_bits(in->dtype) : 0;
    if (bits == 0 || to <= PRONY_UNDEFINED || to >= PRONY_DTYPE_COUNT || prn_dtype_bits((prony_dtype)to) != bits)
        return prony_fail(context, PRONY_INVALID_MODEL, "elements of %s cannot be read as type %lld",
                          prony_dtype_name(in->dtype), (long long)to);
    prn_set_output(context, 0, (prony_dtype)to, &in->shape);
    return PRONY_OK;
}

static prony_status bit_cast_run(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prn_copy_bytes(context->threads, in->data, context->outputs[0]->data, prn_value_bytes(in));
    return PRONY_OK;
}

static const prn_param params[] = {PRN_INT_REQUIRED(bit_cast_params, to), {0}};

static const prn_kernel kernels[] = {
    {.name = "bit_cast_reference", .backend = "reference", .run = bit_cast_run, .inplace = 1}, {0}};

// clang-format off
const prn_op prn_ops_bit_cast[] = {
    {.name = "BitCast", .since_opset = 26, .inputs = {1, 1},
     .params = params, .params_bytes = sizeof(bit_cast_params),
     .infer = bit_cast_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = kernels},
    {0}};
// clang-format on
