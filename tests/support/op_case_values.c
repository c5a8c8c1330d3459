#include "tests/support/op_case_values.h"

#include "ops/kernels/vector/number.h"
#include "tests/support/op_cases.h"

#include <string.h>

#define MOST_KERNELS 64

typedef struct answers {
    prony_status status;
    prony_cost cost;
    bool supported[MOST_KERNELS], profitable[MOST_KERNELS];
    double cycles[MOST_KERNELS];
} answers;

static void ask(const prn_op *op, const prony_context *context, answers *out)
{
    memset(out, 0, sizeof *out);
    out->status = op->cost(context, &out->cost);
    for (size_t k = 0; op->kernels[k].name && k < MOST_KERNELS; k++) {
        const prn_kernel *kernel = &op->kernels[k];
        out->supported[k] = !kernel->supported || kernel->supported(context);
        out->profitable[k] = out->supported[k] && (!kernel->profitable || kernel->profitable(context));
        out->cycles[k] = kernel->predict ? kernel->predict(context) : 0.0;
    }
}

static bool same_shapes(const prony_context *context, const prony_value *before)
{
    for (size_t k = 0; k < context->output_count; k++) {
        const prony_value *out = context->outputs[k];
        if (out && (out->dtype != before[k].dtype || !prn_shape_equal(&out->shape, &before[k].shape))) return false;
    }
    return true;
}

/* Zeros, ones, the elements but for one, other whole numbers. */
static void change(prony_value *value, const prony_value *from, int how)
{
    const int64_t count = prony_shape_numel(&from->shape);
    for (int64_t i = 0; i < count; i++) {
        double element = how == 0 ? 0.0 : how == 1 ? 1.0 : prn_get_f64(from->data, from->dtype, i);
        if (how == 2 && i == count / 2) element += 1.0 / 64;
        if (how == 3) element += 1.0;
        prn_put_f64(value->data, value->dtype, i, element);
    }
}

int op_case_value_that_matters(const prn_op *op, prony_context *context, prony_value *in)
{
    answers first, then;
    prony_value before[OP_CASE_MAX_VALUES];
    const size_t count = op->flags & PRN_OP_BY_VALUE ? 1 : context->input_count;
    int found = -1;
    for (size_t k = 0; k < context->output_count; k++)
        if (context->outputs[k]) before[k] = *context->outputs[k];
    ask(op, context, &first);
    for (size_t i = 0; i < count && found < 0; i++) {
        const prony_value kept = in[i];
        if (!context->inputs[i] || kept.dtype == PRONY_STRING || prn_value_bytes(&kept) == 0) continue;
        in[i].data = op_case_bytes(prn_value_bytes(&kept));
        for (int how = 0; how < 4 && found < 0; how++) {
            change(&in[i], &kept, how);
            if (op->infer(context) != PRONY_OK || !same_shapes(context, before)) continue;
            ask(op, context, &then);
            if (memcmp(&first, &then, sizeof first) != 0) found = (int)i;
        }
        prn_free_aligned(in[i].data);
        in[i] = kept;
    }
    for (size_t k = 0; k < context->output_count; k++)
        if (context->outputs[k]) *context->outputs[k] = before[k];
    context->error->message[0] = '\0';
    return found;
}
