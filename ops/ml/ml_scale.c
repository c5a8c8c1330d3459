/* Feature by feature: Scaler, Normalizer, Binarizer, Imputer, FeatureVectorizer. */
#include "ops/kernels/vector/number.h"
#include "ops/ml/ml.h"

typedef struct scale_params {
    prn_floats offset, scale;
    const char *norm;
    float threshold, replaced_value_float;
    int64_t replaced_value_int64;
    prn_floats imputed_value_floats;
    prn_ints imputed_value_int64s, inputdimensions;
} scale_params;

static prony_status ml_scale_run_rows(const prony_context *context,
                                      void (*fn)(void *argument, int64_t begin, int64_t end))
{
    const prn_ml_rows at = prn_ml_rows_of(context);
    prn_ml_parallel_rows(context, at.rows, 8 * at.features, fn, (void *)(uintptr_t)context);
    return PRONY_OK;
}

/* `n` operations per element of input 0. */
static prony_status ml_scale_cost_map(const prony_context *context, prony_cost *cost, uint64_t n, uint64_t special)
{
    return prn_cost_elementwise(context, cost, (uint64_t)prony_shape_numel(&context->inputs[0]->shape), n, special);
}

/* A list with an entry for each feature, or one for all. */
static prony_status ml_scale_check_list(const prony_context *context, const char *name, size_t count)
{
    if (count == 1) return PRONY_OK;
    return prn_ml_check_count(context, name, (int64_t)count, prn_ml_rows_of(context).features);
}

static float pick(const prn_floats *list, int64_t feature)
{
    return list->v[list->count == 1 ? 0 : feature];
}

/* ---- Scaler: (x - offset) scale */

static prony_status infer_scaler(const prony_context *context)
{
    const scale_params *params = context->params;
    PRN_TRY(prn_ml_check_rows(context, PRN_ML_TYPES));
    PRN_TRY(ml_scale_check_list(context, "offset", params->offset.count));
    PRN_TRY(ml_scale_check_list(context, "scale", params->scale.count));
    prn_set_output(context, 0, PRONY_FLOAT32, &context->inputs[0]->shape);
    return PRONY_OK;
}

static void scaler_rows(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const scale_params *params = context->params;
    const prony_value *x = context->inputs[0];
    const int64_t features = prn_ml_rows_of(context).features;
    float *y = context->outputs[0]->data;
    for (int64_t i = begin * features; i < end * features; i++) {
        const double offset = (double)pick(&params->offset, i % features);
        y[i] = (float)((prn_get_f64(x->data, x->dtype, i) - offset) * (double)pick(&params->scale, i % features));
    }
}

static prony_status run_scaler(const prony_context *context)
{
    return ml_scale_run_rows(context, scaler_rows);
}

static prony_status cost_scaler(const prony_context *context, prony_cost *cost)
{
    cost->madds += (uint64_t)prony_shape_numel(&context->inputs[0]->shape);
    return ml_scale_cost_map(context, cost, 2, 0);
}

/* ---- Normalizer: every row over its largest element, its sum of magnitudes or its length */

static prony_status check_normalizer(const prony_context *context)
{
    const char *norm = ((const scale_params *)context->params)->norm;
    if (strcmp(norm, "MAX") == 0 || strcmp(norm, "L1") == 0 || strcmp(norm, "L2") == 0) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "norm '%s' is unknown", norm);
}

static prony_status infer_normalizer(const prony_context *context)
{
    PRN_TRY(prn_ml_check_rows(context, PRN_ML_TYPES));
    prn_set_output(context, 0, PRONY_FLOAT32, &context->inputs[0]->shape);
    return PRONY_OK;
}

static double ml_scale_norm_of(const prony_value *x, int64_t first, int64_t count, const char *norm)
{
    double highest = -INFINITY, sum = 0.0;
    for (int64_t i = first; i < first + count; i++) {
        const double value = prn_get_f64(x->data, x->dtype, i);
        highest = fmax(highest, value);
        sum += norm[1] == '1' ? fabs(value) : value * value;
    }
    return norm[0] == 'M' ? highest : (norm[1] == '1' ? sum : sqrt(sum));
}

static void normalizer_rows(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const prony_value *x = context->inputs[0];
    const int64_t features = prn_ml_rows_of(context).features;
    float *y = context->outputs[0]->data;
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row * features;
        const double norm = ml_scale_norm_of(x, first, features, ((const scale_params *)context->params)->norm);
        for (int64_t i = first; i < first + features; i++) {
            const double value = prn_get_f64(x->data, x->dtype, i);
            y[i] = (float)(norm != 0.0 ? value / norm : value);
        }
    }
}

static prony_status run_normalizer(const prony_context *context)
{
    return ml_scale_run_rows(context, normalizer_rows);
}

static prony_status cost_normalizer(const prony_context *context, prony_cost *cost)
{
    const bool max = ((const scale_params *)context->params)->norm[0] == 'M';
    return ml_scale_cost_map(context, cost, max ? 2 : 3, 1);
}

/* ---- Binarizer: x > threshold */

static prony_status infer_binarizer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_ML_TYPES));
    return prn_infer_same(context);
}

static void binarizer_range(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const prony_value *x = context->inputs[0], *y = context->outputs[0];
    const double threshold = (double)((const scale_params *)context->params)->threshold;
    for (int64_t i = begin; i < end; i++)
        prn_put_f64(y->data, y->dtype, i, prn_get_f64(x->data, x->dtype, i) > threshold ? 1.0 : 0.0);
}

static prony_status run_binarizer(const prony_context *context)
{
    prn_ml_parallel_rows(context, prony_shape_numel(&context->inputs[0]->shape), 8, binarizer_range,
                         (void *)(uintptr_t)context);
    return PRONY_OK;
}

static prony_status cost_binarizer(const prony_context *context, prony_cost *cost)
{
    return ml_scale_cost_map(context, cost, 1, 0);
}

/* ---- Imputer: a marked value, perhaps NaN, gives way to the feature's own */

static bool imputes_floats(const prony_context *context)
{
    return prn_dtype_is_float(context->inputs[0]->dtype);
}

static prony_status infer_imputer(const prony_context *context)
{
    const scale_params *params = context->params;
    PRN_TRY(prn_ml_check_rows(context, PRN_ML_TYPES));
    if (imputes_floats(context)) {
        PRN_TRY(ml_scale_check_list(context, "imputed_value_floats", params->imputed_value_floats.count));
    } else {
        PRN_TRY(ml_scale_check_list(context, "imputed_value_int64s", params->imputed_value_int64s.count));
    }
    return prn_infer_same(context);
}

static void imputer_rows(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const scale_params *params = context->params;
    const prony_value *x = context->inputs[0], *y = context->outputs[0];
    const int64_t features = prn_ml_rows_of(context).features;
    const double marked = (double)params->replaced_value_float;
    const prn_ints *ints = &params->imputed_value_int64s;
    for (int64_t i = begin * features; i < end * features; i++) {
        if (imputes_floats(context)) {
            const double value = prn_get_f64(x->data, x->dtype, i);
            const bool missing = isnan(marked) ? isnan(value) : value == marked;
            prn_put_f64(y->data, y->dtype, i,
                        missing ? (double)pick(&params->imputed_value_floats, i % features) : value);
        } else {
            const int64_t value = prn_get_i64(x->data, x->dtype, i);
            const bool missing = value == params->replaced_value_int64;
            prn_put_i64(y->data, y->dtype, i, missing ? ints->v[ints->count == 1 ? 0 : i % features] : value);
        }
    }
}

static prony_status run_imputer(const prony_context *context)
{
    return ml_scale_run_rows(context, imputer_rows);
}

/* ---- FeatureVectorizer: rows of all inputs side by side, each cut or filled up with zeros to its stated width */

static prony_status infer_vectorizer(const prony_context *context)
{
    const prn_ints *widths = &((const scale_params *)context->params)->inputdimensions;
    PRN_TRY(prn_ml_check_count(context, "inputdimensions", (int64_t)widths->count, (int64_t)context->input_count));
    int64_t columns = 0;
    const int64_t rows =
        context->inputs[0] && context->inputs[0]->shape.rank == 2 ? context->inputs[0]->shape.dim[0] : 1;
    for (size_t i = 0; i < context->input_count; i++) {
        char text[PRN_SHAPE_TEXT_BYTES];
        const prony_value *in = context->inputs[i];
        if (!in) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
        PRN_TRY(prn_check_type(context, i, PRN_ML_TYPES));
        PRN_TRY(prn_check_rank(context, i, 1, 2));
        if ((in->shape.rank == 2 ? in->shape.dim[0] : 1) != rows) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %lld rows", i,
                              prn_value_text(in, text), (long long)rows);
        }
        if (widths->v[i] < 0 || __builtin_add_overflow(columns, widths->v[i], &columns))
            return prony_fail(context, PRONY_INVALID_MODEL, "inputdimensions[%zu] is %lld", i, (long long)widths->v[i]);
    }
    return prn_ml_set_output(context, 0, PRONY_FLOAT32, rows, columns);
}

static void vectorizer_rows(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const prn_ints *widths = &((const scale_params *)context->params)->inputdimensions;
    for (int64_t row = begin; row < end; row++) {
        float *y = (float *)context->outputs[0]->data + row * context->outputs[0]->shape.dim[1];
        for (size_t i = 0; i < context->input_count; y += widths->v[i], i++) {
            const prony_value *in = context->inputs[i];
            const int64_t features = in->shape.dim[in->shape.rank - 1];
            const int64_t taken = features < widths->v[i] ? features : widths->v[i];
            const size_t first = prony_dtype_bytes(in->dtype, row * features);
            prn_convert(y, PRONY_FLOAT32, (const char *)in->data + first, in->dtype, taken);
            for (int64_t k = taken; k < widths->v[i]; k++) y[k] = 0.0f;
        }
    }
}

static prony_status run_vectorizer(const prony_context *context)
{
    const prony_shape *shape = &context->outputs[0]->shape;
    prn_ml_parallel_rows(context, shape->dim[0], 8 * shape->dim[1], vectorizer_rows, (void *)(uintptr_t)context);
    return PRONY_OK;
}

/* ---- rows */

static const prn_param scaler_params[] = {PRN_FLOATS(scale_params, offset), PRN_FLOATS(scale_params, scale), {0}};
static const prn_param normalizer_params[] = {PRN_STRING(scale_params, norm, "MAX"), {0}};
static const prn_param binarizer_params[] = {PRN_FLOAT(scale_params, threshold, 0.0f), {0}};
static const prn_param imputer_params[] = {PRN_FLOATS(scale_params, imputed_value_floats),
                                           PRN_INTS(scale_params, imputed_value_int64s),
                                           PRN_FLOAT(scale_params, replaced_value_float, 0.0f),
                                           PRN_INT(scale_params, replaced_value_int64, 0),
                                           {0}};
static const prn_param vectorizer_params[] = {PRN_INTS(scale_params, inputdimensions), {0}};

static const prn_kernel scaler_kernels[] = {
    {.name = "scaler_reference", .backend = "reference", .types = PRN_ML_TYPES, .run = run_scaler}, {0}};
static const prn_kernel normalizer_kernels[] = {
    {.name = "normalizer_reference", .backend = "reference", .types = PRN_ML_TYPES, .run = run_normalizer}, {0}};
static const prn_kernel binarizer_kernels[] = {
    {.name = "binarizer_reference", .backend = "reference", .types = PRN_ML_TYPES, .run = run_binarizer, .inplace = 1},
    {0}};
static const prn_kernel imputer_kernels[] = {
    {.name = "imputer_reference", .backend = "reference", .types = PRN_ML_TYPES, .run = run_imputer, .inplace = 1},
    {0}};
static const prn_kernel vectorizer_kernels[] = {
    {.name = "vectorizer_reference", .backend = "reference", .types = PRN_ML_TYPES, .run = run_vectorizer}, {0}};

// clang-format off
const prn_op prn_ops_ml_scale[] = {
    {.name = "Scaler", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = scaler_params, .params_bytes = sizeof(scale_params),
     .infer = infer_scaler, .cost = cost_scaler, .cost_text = "2 n; madds n", .kernels = scaler_kernels},
    {.name = "Normalizer", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = normalizer_params, .params_bytes = sizeof(scale_params), .check = check_normalizer,
     .infer = infer_normalizer, .cost = cost_normalizer, .cost_text = "MAX 2 n, L1 and L2 3 n; special n",
     .kernels = normalizer_kernels},
    {.name = "Binarizer", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = binarizer_params, .params_bytes = sizeof(scale_params),
     .infer = infer_binarizer, .cost = cost_binarizer, .cost_text = "n", .kernels = binarizer_kernels},
    {.name = "Imputer", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = imputer_params, .params_bytes = sizeof(scale_params),
     .infer = infer_imputer, .cost = cost_binarizer, .cost_text = "n", .kernels = imputer_kernels},
    {.name = "FeatureVectorizer", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, -1},
     .params = vectorizer_params, .params_bytes = sizeof(scale_params),
     .infer = infer_vectorizer, .cost = prn_cost_none, .cost_text = "0", .kernels = vectorizer_kernels},
    {0}};
// clang-format on
