/* Writing by index: ScatterElements (and Scatter, its old name) and ScatterND, with or without a reduction.
 * Invariant: updates are applied one after another in their order, so that repeated indices always end the same way;
 * only the copy of the data is shared by threads. */
#include "ops/copy_nd.h"
#include "ops/indexing.h"
#include "ops/number.h"

#include <string.h>

typedef struct scatter_params {
    int64_t axis;
    const char *reduction;
} scatter_params;

static const prn_param scatter_attributes[] = {
    PRN_INT(scatter_params, axis, 0), PRN_STRING(scatter_params, reduction, "none"), {0}};
static const prn_param scatter_nd_attributes[] = {PRN_STRING(scatter_params, reduction, "none"), {0}};

typedef enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MIN, REDUCE_MAX, REDUCE_UNKNOWN } reduction;

static reduction reduction_of(const prony_context *context)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *name = ((const scatter_params *)context->params)->reduction;
    for (int i = 0; i < REDUCE_UNKNOWN; i++) {
        if (strcmp(names[i], name) == 0) return (reduction)i;
    }
    return REDUCE_UNKNOWN;
}

static prony_status scatter_check(const prony_context *context)
{
    if (reduction_of(context) != REDUCE_UNKNOWN) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "reduction '%s' is not supported",
                      ((const scatter_params *)context->params)->reduction);
}

/* Data and updates are of one type, and a number where they are combined. */
static prony_status check_updates(const prony_context *context, const prony_shape *wanted)
{
    const prony_value *data = context->inputs[0], *updates = context->inputs[2];
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    if (reduction_of(context) != REDUCE_NONE) PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    if (updates->dtype == data->dtype && prn_shape_equal(&updates->shape, wanted)) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "updates are %s, wanted %s%s", prn_value_text(updates, left),
                      prony_dtype_name(data->dtype), prn_shape_text(wanted, right));
}

#define COMBINE(how)                                                                                                   \
    switch (how) {                                                                                                     \
    case REDUCE_ADD:                                                                                                   \
        x = x + y;                                                                                                     \
        break;                                                                                                         \
    case REDUCE_MUL:                                                                                                   \
        x = x * y;                                                                                                     \
        break;                                                                                                         \
    case REDUCE_MIN:                                                                                                   \
        x = y < x || y != y ? y : x;                                                                                   \
        break;                                                                                                         \
    default:                                                                                                           \
        x = y > x || y != y ? y : x;                                                                                   \
        break;                                                                                                         \
    }

/* Signed integers add and multiply as unsigned ones do: they wrap. */
static uint64_t combine_signed(reduction how, uint64_t a, uint64_t b)
{
    if (how == REDUCE_ADD || how == REDUCE_MUL) return how == REDUCE_ADD ? a + b : a * b;
    return (((int64_t)b < (int64_t)a) == (how == REDUCE_MIN)) ? b : a;
}

/* to[i] = to[i] combined with from[i], for `count` elements. */
static void combine(reduction how, prony_dtype dtype, void *to, const void *from, int64_t count)
{
    bool is_signed = PRN_TYPES_SIGNED & PRN_TYPE(dtype);
    for (int64_t i = 0; i < count; i++) {
        if (dtype == PRONY_FLOAT32) {
            float x = ((const float *)to)[i], y = ((const float *)from)[i];
            COMBINE(how)
            ((float *)to)[i] = x;
        } else if (prn_dtype_is_float(dtype)) {
            double x = prn_get_f64(to, dtype, i), y = prn_get_f64(from, dtype, i);
            COMBINE(how)
            prn_put_f64(to, dtype, i, x);
        } else if (is_signed) {
            uint64_t x = (uint64_t)prn_get_i64(to, dtype, i), y = (uint64_t)prn_get_i64(from, dtype, i);
            prn_put_i64(to, dtype, i, (int64_t)combine_signed(how, x, y));
        } else {
            uint64_t x = (uint64_t)prn_get_i64(to, dtype, i), y = (uint64_t)prn_get_i64(from, dtype, i);
            COMBINE(how)
            prn_put_i64(to, dtype, i, (int64_t)x);
        }
    }
}

static void copy_data(const prony_context *context)
{
    prn_copy_bytes(context->threads, context->inputs[0]->data, context->outputs[0]->data,
                   prn_value_bytes(context->inputs[0]));
}

static prony_status scatter_cost(const prony_context *context, prony_cost *cost)
{
    int64_t count = prony_shape_numel(&context->inputs[2]->shape);
    if (reduction_of(context) == REDUCE_NONE || count < 0) return PRONY_OK;
    return prn_cost_elementwise(context, cost, (uint64_t)count, 1, 0);
}

/* ---- ScatterElements */

static prony_status scatter_infer(const prony_context *context)
{
    PRN_TRY(prn_index_check_elements(context, ((const scatter_params *)context->params)->axis));
    PRN_TRY(check_updates(context, &context->inputs[1]->shape));
    return prn_infer_same(context);
}

static prony_status scatter_run(const prony_context *context)
{
    const prony_value *updates = context->inputs[2];
    prn_index_elements elements = prn_index_elements_make(context, ((const scatter_params *)context->params)->axis);
    reduction how = reduction_of(context);
    size_t width = prn_copy_width(updates->dtype);
    PRN_TRY(prn_index_check_range(context, &elements.extent, 1));
    copy_data(context);
    for (int64_t i = 0; i < elements.count; i++) {
        char *to = (char *)context->outputs[0]->data + (size_t)prn_index_element_place(&elements, i) * width;
        const char *from = (const char *)updates->data + (size_t)i * width;
        if (how == REDUCE_NONE) {
            memcpy(to, from, width);
        } else {
            combine(how, updates->dtype, to, from, 1);
        }
    }
    return PRONY_OK;
}

static const prn_kernel scatter_kernels[] = {
    {.name = "scatter_elements_reference", .backend = "reference", .run = scatter_run, .inplace = 1},
    {0},
};

const prn_op prn_op_scatter_elements = {.name = "ScatterElements",
                                        .domain = "",
                                        .since_opset = 11,
                                        .min_inputs = 3,
                                        .max_inputs = 3,
                                        .min_outputs = 1,
                                        .max_outputs = 1,
                                        .non_weight_inputs = 2,
                                        .params = scatter_attributes,
                                        .params_bytes = sizeof(scatter_params),
                                        .check = scatter_check,
                                        .infer = scatter_infer,
                                        .cost = scatter_cost,
                                        .cost_text = "0; with a reduction, one per update",
                                        .kernels = scatter_kernels};

const prn_op prn_op_scatter = {.name = "Scatter",
                               .domain = "",
                               .since_opset = 9,
                               .min_inputs = 3,
                               .max_inputs = 3,
                               .min_outputs = 1,
                               .max_outputs = 1,
                               .non_weight_inputs = 2,
                               .params = scatter_attributes,
                               .params_bytes = sizeof(scatter_params),
                               .check = scatter_check,
                               .infer = scatter_infer,
                               .cost = scatter_cost,
                               .cost_text = "0",
                               .kernels = scatter_kernels};

/* ---- ScatterND */

static prony_status scatter_nd_infer(const prony_context *context)
{
    const prony_shape *data = &context->inputs[0]->shape, *indices = &context->inputs[1]->shape;
    PRN_TRY(prn_index_check_tuples(context, 0));
    int first = (int)indices->dim[indices->rank - 1];
    prony_shape wanted = {.rank = indices->rank - 1 + data->rank - first};
    if (wanted.rank > PRONY_MAX_RANK) return prony_fail(context, PRONY_LIMIT, "rank %d is too large", wanted.rank);
    int at = 0;
    for (int i = 0; i < indices->rank - 1; i++) wanted.dim[at++] = indices->dim[i];
    for (int i = first; i < data->rank; i++) wanted.dim[at++] = data->dim[i];
    PRN_TRY(check_updates(context, &wanted));
    return prn_infer_same(context);
}

static prony_status scatter_nd_run(const prony_context *context)
{
    const prony_value *updates = context->inputs[2];
    prn_index_tuples tuples = prn_index_tuples_make(context, 0);
    reduction how = reduction_of(context);
    int64_t width = (int64_t)prn_copy_width(updates->dtype);
    PRN_TRY(prn_index_check_range(context, tuples.dim, tuples.tuple));
    copy_data(context);
    for (int64_t i = 0; i < tuples.count; i++) {
        char *to = (char *)context->outputs[0]->data + prn_index_tuple_place(&tuples, i);
        const char *from = (const char *)updates->data + i * tuples.block;
        if (how == REDUCE_NONE) {
            memcpy(to, from, (size_t)tuples.block);
        } else {
            combine(how, updates->dtype, to, from, tuples.block / width);
        }
    }
    return PRONY_OK;
}

static const prn_kernel scatter_nd_kernels[] = {
    {.name = "scatter_nd_reference", .backend = "reference", .run = scatter_nd_run, .inplace = 1},
    {0},
};

const prn_op prn_op_scatter_nd = {.name = "ScatterND",
                                  .domain = "",
                                  .since_opset = 11,
                                  .min_inputs = 3,
                                  .max_inputs = 3,
                                  .min_outputs = 1,
                                  .max_outputs = 1,
                                  .non_weight_inputs = 2,
                                  .params = scatter_nd_attributes,
                                  .params_bytes = sizeof(scatter_params),
                                  .check = scatter_check,
                                  .infer = scatter_nd_infer,
                                  .cost = scatter_cost,
                                  .cost_text = "0; with a reduction, one per updated element",
                                  .kernels = scatter_nd_kernels};
