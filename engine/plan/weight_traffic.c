/* Bytes of weights that a run of a plan reads. */
#include "base/memory/alloc.h"
#include "base/shape.h"
#include "engine/bind/node.h"
#include "engine/plan/plan.h"

#include <stdlib.h>
#include <string.h>

typedef struct traffic_form {
    const char *source;
    size_t bytes;
} traffic_form;

static int traffic_order(const void *a, const void *b)
{
    const traffic_form *x = a, *y = b;
    return x->source < y->source ? -1 : x->source > y->source;
}

/* Bytes of the packed forms of a constant; 0: it was not packed. `forms` are sorted by their source. */
static uint64_t traffic_packed(const traffic_form *forms, size_t count, const char *data, size_t bytes)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (forms[middle].source < data)
            low = middle + 1;
        else
            high = middle;
    }
    uint64_t sum = 0;
    for (; low < count && forms[low].source < data + bytes; low++) sum += forms[low].bytes;
    return sum;
}

/* A constant that a step reads: Gather takes rows of it, other operators all of it. */
static uint64_t traffic_of_input(const prn_step *step, uint32_t i, const prony_value *value)
{
    const size_t bytes = prn_value_bytes(value);
    if (bytes == SIZE_MAX) return 0;
    if (i > 0 || !strstr(step->node->info.op_type, "Gather") || !value->shape.rank || !value->shape.dim[0])
        return bytes;
    const int64_t taken = step->output_values[0] ? prony_shape_numel(&step->output_values[0]->shape) : 0;
    const size_t rows = prony_dtype_bytes(value->dtype, taken > 0 ? taken : 0);
    return rows < bytes ? rows : bytes;
}

static uint64_t traffic_of_step(const prn_plan *plan, const prn_step *step, const traffic_form *forms, size_t count)
{
    uint64_t sum = 0;
    bool packed = false;
    for (int pass = 0; pass < 2; pass++) { /* scales of low-bit weights lie in the packed form */
        for (uint32_t i = 0; i < step->node->input_count; i++) {
            if (step->inputs[i] == PRN_NO_VALUE || !plan->values[step->inputs[i]]->constant) continue;
            const prony_value *value = &plan->values[step->inputs[i]]->value;
            const size_t bytes = prn_value_bytes(value);
            if (!value->data || bytes == SIZE_MAX) continue;
            const uint64_t form = traffic_packed(forms, count, value->data, bytes);
            packed = packed || form;
            if (pass == 0) sum += form;
            if (pass == 1 && !form && !(packed && strcmp(step->node->info.op_type, "MatMulNBits") == 0))
                sum += traffic_of_input(step, i, value);
        }
    }
    return sum;
}

prony_status prn_plan_weight_traffic(const prn_plan *plan, uint64_t *bytes, prony_error *error)
{
    traffic_form *forms = prn_calloc(plan->refs.count + 1, sizeof *forms);
    if (!forms) return prn_no_memory(error);
    size_t count = 0;
    for (size_t k = 0; k < plan->refs.count; k++) {
        const void *source;
        const size_t size = prn_weight_cache_packed(plan->refs.items[k], &source);
        if (source) forms[count++] = (traffic_form){source, size};
    }
    qsort(forms, count, sizeof *forms, traffic_order);
    *bytes = 0;
    for (size_t s = 0; s < plan->step_count; s++) *bytes += traffic_of_step(plan, plan->steps[s], forms, count);
    prn_free(forms);
    return PRONY_OK;
}
