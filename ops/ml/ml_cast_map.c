/* CastMap: a map's values as one row of numbers or strings. A map is the tensor of its values in ascending order of the
 * keys; SPARSE takes the keys for 0, 1, 2 … and fills the row up to max_map with zeros. */
#include "ops/kernels/copy/cast_text.h"
#include "ops/kernels/lowbit/narrow_types.h"
#include "ops/ml/ml.h"

#include <string.h>

typedef struct cast_map_params {
    const char *cast_to, *map_form;
    int64_t max_map;
} cast_map_params;

static const prn_param attributes[] = {PRN_STRING(cast_map_params, cast_to, "TO_FLOAT"),
                                       PRN_STRING(cast_map_params, map_form, "DENSE"),
                                       PRN_INT(cast_map_params, max_map, 1),
                                       {0}};

static prony_dtype wanted_type(const cast_map_params *params)
{
    if (strcmp(params->cast_to, "TO_FLOAT") == 0) return PRONY_FLOAT32;
    if (strcmp(params->cast_to, "TO_INT64") == 0) return PRONY_INT64;
    return strcmp(params->cast_to, "TO_STRING") == 0 ? PRONY_STRING : PRONY_UNDEFINED;
}

static prony_status ml_cast_map_check(const prony_context *context)
{
    const cast_map_params *params = context->params;
    if (wanted_type(params) == PRONY_UNDEFINED)
        return prony_fail(context, PRONY_INVALID_MODEL, "cast_to '%s' is unknown", params->cast_to);
    if (strcmp(params->map_form, "DENSE") != 0 && strcmp(params->map_form, "SPARSE") != 0)
        return prony_fail(context, PRONY_INVALID_MODEL, "map_form '%s' is unknown", params->map_form);
    if (params->max_map < 1)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "max_map is %lld", (long long)params->max_map);
    return PRONY_OK;
}

static prony_status ml_cast_map_infer(const prony_context *context)
{
    const cast_map_params *params = context->params;
    const bool sparse = params->map_form[0] == 'S';
    PRN_TRY(prn_ml_check_rows(context, PRN_TYPE_F32 | PRN_TYPE(PRONY_STRING)));
    const prn_ml_rows rows = prn_ml_rows_of(context);
    if (rows.rows != 1) return prony_fail(context, PRONY_SHAPE_MISMATCH, "%lld maps, wanted one", (long long)rows.rows);
    if (sparse && rows.features > params->max_map)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "%lld values, but max_map is %lld", (long long)rows.features,
                          (long long)params->max_map);
    return prn_ml_set_output(context, 0, wanted_type(params), 1, sparse ? params->max_map : rows.features);
}

static prony_status ml_cast_map_run(const prony_context *context)
{
    static const prn_cast_rule rule = {.saturate = true};
    const prony_value *x = context->inputs[0];
    prony_value values = *context->outputs[0];
    values.shape = x->shape;
    if (prn_value_bytes(context->outputs[0]) > 0) memset(values.data, 0, prn_value_bytes(context->outputs[0]));
    return prn_cast_value(context, x, &values, &rule);
}

static const prn_kernel kernels[] = {{.name = "cast_map_reference", .backend = "reference", .run = ml_cast_map_run},
                                     {0}};

// clang-format off
const prn_op prn_ops_ml_cast_map[] = {
    {.name = "CastMap", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = attributes, .params_bytes = sizeof(cast_map_params), .check = ml_cast_map_check,
     .infer = ml_cast_map_infer, .cost = prn_cost_none, .cost_text = "0 (a map is the tensor of its values)", .kernels = kernels},
    {0}};
// clang-format on
