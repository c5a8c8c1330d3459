/* The conversion around a float32 kernel. Scratch holds a float32 form of every half-precision input and output, each
 * from a cache line on, and then what the kernel itself asks for. The prepared state is the kernel's own. Invariant:
 * the places depend on shapes alone. */
#include "ops/loops/widen.h"

#include "base/parallel.h"
#include "ops/loops/number.h"

enum { MOST_VALUES = 16, LINE_BYTES = 64 };

/* The node as the float32 kernel sees it; holds pointers into itself. */
typedef struct widened {
    prony_context context;
    const prony_value *input_pointers[MOST_VALUES];
    prony_value *output_pointers[MOST_VALUES];
    prony_value inputs[MOST_VALUES], outputs[MOST_VALUES];
    size_t bytes; /* before the kernel's own scratch */
} widened;

static bool is_half(const prony_value *value)
{
    return value && value->kind == PRONY_TENSOR && (value->dtype == PRONY_FLOAT16 || value->dtype == PRONY_BFLOAT16);
}

/* false: too large. `space` is the scratch, or NULL while there is none. */
static bool widen_value(widened *wide, prony_value *value, char *space)
{
    value->dtype = PRONY_FLOAT32;
    value->data = space ? space + wide->bytes : NULL;
    const size_t bytes = prn_value_bytes(value);
    if (bytes > SIZE_MAX / 2 - wide->bytes - LINE_BYTES) return false;
    wide->bytes += (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return true;
}

static bool widen_node(const prony_context *context, widened *wide, char *space)
{
    if (context->input_count > MOST_VALUES || context->output_count > MOST_VALUES) return false;
    wide->context = *context;
    wide->context.inputs = wide->input_pointers;
    wide->context.outputs = wide->output_pointers;
    wide->bytes = 0;
    for (size_t i = 0; i < context->input_count; i++) {
        wide->input_pointers[i] = context->inputs[i];
        if (!is_half(context->inputs[i])) continue;
        wide->inputs[i] = *context->inputs[i];
        wide->input_pointers[i] = &wide->inputs[i];
        if (!widen_value(wide, &wide->inputs[i], space)) return false;
    }
    for (size_t k = 0; k < context->output_count; k++) {
        wide->output_pointers[k] = context->outputs[k];
        if (!is_half(context->outputs[k])) continue;
        wide->outputs[k] = *context->outputs[k];
        wide->output_pointers[k] = &wide->outputs[k];
        if (!widen_value(wide, &wide->outputs[k], space)) return false;
    }
    return true;
}

bool prn_widen_usable(const prony_context *context, const prn_kernel *inner)
{
    widened wide;
    if (!widen_node(context, &wide, NULL)) return false;
    return !inner->usable || inner->usable(&wide.context);
}

prony_status prn_widen_prepare(const prony_context *context, const prn_kernel *inner, prn_prepared *out)
{
    widened wide;
    if (!widen_node(context, &wide, NULL)) return prony_fail(context, PRONY_LIMIT, "the inputs do not fit in memory");
    if (inner->prepare) PRN_TRY(inner->prepare(&wide.context, out));
    if (out->scratch_bytes > SIZE_MAX / 2) return prony_fail(context, PRONY_LIMIT, "the inputs do not fit in memory");
    out->scratch_bytes += wide.bytes;
    return PRONY_OK;
}

typedef struct conversion {
    void *to;
    const void *from;
    prony_dtype to_type, from_type;
} conversion;

static void convert_range(void *argument, int64_t begin, int64_t end)
{
    const conversion *job = argument;
    prn_convert((char *)job->to + prony_dtype_bytes(job->to_type, begin), job->to_type,
                (const char *)job->from + prony_dtype_bytes(job->from_type, begin), job->from_type, end - begin);
}

static void convert(const prony_context *context, const prony_value *to, const prony_value *from)
{
    conversion job = {to->data, from->data, to->dtype, from->dtype};
    const int64_t count = prony_shape_numel(&from->shape);
    if (count > 0) prn_parallel_range(context->threads, count, 8192, convert_range, &job);
}

prony_status prn_widen_run(const prony_context *context, const prn_kernel *inner)
{
    widened wide;
    if (!widen_node(context, &wide, context->scratch))
        return prony_fail(context, PRONY_LIMIT, "the inputs do not fit in memory");
    for (size_t i = 0; i < context->input_count; i++) {
        if (is_half(context->inputs[i])) convert(context, &wide.inputs[i], context->inputs[i]);
    }
    wide.context.scratch_bytes = context->scratch_bytes - wide.bytes;
    wide.context.scratch = wide.context.scratch_bytes ? (char *)context->scratch + wide.bytes : NULL;
    PRN_TRY(inner->run(&wide.context));
    for (size_t k = 0; k < context->output_count; k++) {
        if (is_half(context->outputs[k])) convert(context, context->outputs[k], &wide.outputs[k]);
    }
    return PRONY_OK;
}
