/* LinearRegressor, LinearClassifier: scores = X C^T + intercepts, transformed. The score matrix is the output itself; a
 * classifier's second column, where one score stands for two classes, is filled last. */
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/vec.h"
#include "ops/ml/ml.h"

typedef struct linear_params {
    prn_floats coefficients, intercepts;
    prn_ints classlabels_ints;
    int64_t targets, multi_class;
    const char *post_transform;
} linear_params;

typedef struct linear {
    prn_ml_rows at;
    int64_t scores;  /* per row */
    int64_t columns; /* of the output: one more than scores where two classes share one */
    prn_ml_transform transform;
    bool classifies;
    prony_value labels;
    const prony_value *x, *classes, *y;
    const linear_params *params;
} linear;

static prony_status ml_linear_read_common(const prony_context *context, linear *out)
{
    *out = (linear){.x = context->inputs[0], .params = context->params};
    PRN_TRY(prn_ml_check_rows(context, PRN_ML_TYPES));
    out->at = prn_ml_rows_of(context);
    return prn_ml_transform_read(context, out->params->post_transform, &out->transform);
}

static prony_status check_at_least(const prony_context *context, const char *name, size_t count, int64_t wanted)
{
    if ((int64_t)count >= wanted) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "%s has %zu entries, wanted %lld", name, count, (long long)wanted);
}

/* Exporters write more coefficients than a model of the declared features uses; those behind the last score are not
 * read. */
static prony_status ml_linear_check_sizes(const prony_context *context, const linear *l)
{
    int64_t wanted;
    const size_t intercepts = l->params->intercepts.count;
    if (l->scores < 1 || __builtin_mul_overflow(l->scores, l->at.features, &wanted))
        return prony_fail(context, PRONY_INVALID_MODEL, "%lld targets or classes", (long long)l->scores);
    PRN_TRY(check_at_least(context, "coefficients", l->params->coefficients.count, wanted));
    return intercepts ? check_at_least(context, "intercepts", intercepts, l->scores) : PRONY_OK;
}

static prony_status ml_linear_read_regressor(const prony_context *context, linear *out)
{
    PRN_TRY(ml_linear_read_common(context, out));
    out->scores = out->columns = out->params->targets;
    out->y = prn_output(context, 0);
    return ml_linear_check_sizes(context, out);
}

static prony_status ml_linear_read_classifier(const prony_context *context, linear *out)
{
    PRN_TRY(ml_linear_read_common(context, out));
    PRN_TRY(prn_ml_ints_or_strings(context, &out->params->classlabels_ints, "classlabels_strings", &out->labels));
    out->classifies = true;
    out->columns = prn_ml_count(&out->labels);
    out->scores = out->columns;
    const bool one_score =
        (int64_t)out->params->coefficients.count == out->at.features || out->params->intercepts.count == 1;
    if (out->columns == 2 && one_score) out->scores = 1;
    out->classes = prn_output(context, 0);
    out->y = prn_output(context, 1);
    return ml_linear_check_sizes(context, out);
}

/* A row's variant: how its node is read. */
typedef struct linear_kind {
    prony_status (*read)(const prony_context *context, linear *out);
} linear_kind;

static prony_status ml_linear_read_node(const prony_context *context, linear *out)
{
    return ((const linear_kind *)prn_variant(context))->read(context, out);
}

static prony_status ml_linear_infer(const prony_context *context)
{
    linear l;
    PRN_TRY(ml_linear_read_node(context, &l));
    if (!l.classifies) return prn_ml_set_output(context, 0, PRONY_FLOAT32, l.at.rows, l.columns);
    prn_set_output(context, 0, l.labels.dtype, &(prony_shape){1, {l.at.rows}});
    return prn_ml_set_output(context, 1, PRONY_FLOAT32, l.at.rows, l.columns);
}

static prony_status ml_linear_cost(const prony_context *context, prony_cost *cost)
{
    linear l;
    PRN_TRY(ml_linear_read_node(context, &l));
    uint64_t scores, macs;
    if (!prn_mul_u64(&scores, (uint64_t)l.at.rows, (uint64_t)l.scores) ||
        !prn_mul_u64(&macs, scores, (uint64_t)l.at.features))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    prn_cost_fact(cost, "rows", l.at.rows);
    prn_cost_fact(cost, "in_features", l.at.features);
    prn_cost_fact(cost, "out_features", l.scores);
    prn_cost_fact(cost, "bias", l.params->intercepts.count > 0);
    /* Both products fit: ml_linear_check_sizes. */
    cost->parameters += (uint64_t)l.scores * ((uint64_t)l.at.features + (l.params->intercepts.count > 0));
    PRN_TRY(prn_cost_macs(context, cost, macs, false));
    PRN_TRY(prn_cost_floats(context, cost, scores, l.params->intercepts.count > 0, 0));
    return prn_ml_transform_cost(context, cost, l.transform, l.at.rows, l.scores);
}

/* ---- running */

static double dot_reference(const prony_value *x, int64_t first, const float *weights, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += prn_get_f64(x->data, x->dtype, first + i) * (double)weights[i];
    return sum;
}

static double dot_native(const prony_value *x, int64_t first, const float *weights, int64_t n)
{
    return prn_vec()->dot((const float *)x->data + first, weights, n);
}

typedef struct linear_job {
    const linear *linear;
    double (*dot)(const prony_value *x, int64_t first, const float *weights, int64_t n);
    double *scores; /* [rows, columns] */
} linear_job;

static void ml_linear_rows(void *argument, int64_t begin, int64_t end)
{
    const linear_job *job = argument;
    const linear *l = job->linear;
    const prn_floats *intercepts = &l->params->intercepts;
    for (int64_t row = begin; row < end; row++) {
        double *scores = job->scores + row * l->columns;
        for (int64_t k = 0; k < l->scores; k++) {
            const float *weights = prn_ml_vector(&l->params->coefficients, k, l->at.features);
            scores[k] = job->dot(l->x, row * l->at.features, weights, l->at.features);
            if (intercepts->count) scores[k] += (double)intercepts->v[k];
        }
        const bool pair = l->columns > l->scores;
        if (l->classes)
            prn_ml_copy(l->classes, row, &l->labels, pair ? scores[0] > 0.0 : prn_ml_best(scores, l->scores));
        if (pair)
            prn_ml_pair_scores(l->transform, PRN_ML_COMPLEMENT, scores[0], scores);
        else
            prn_ml_transform_row(l->transform, scores, l->scores);
        for (int64_t k = 0; l->y && k < l->columns; k++) ((float *)l->y->data)[row * l->columns + k] = (float)scores[k];
    }
}

static prony_status ml_linear_prepare(const prony_context *context, prn_prepared *out)
{
    linear l;
    int64_t count;
    PRN_TRY(ml_linear_read_node(context, &l));
    if (__builtin_mul_overflow(l.at.rows, l.columns, &count) ||
        (out->scratch_bytes = prony_dtype_bytes(PRONY_FLOAT64, count)) == SIZE_MAX)
        return prony_fail(context, PRONY_LIMIT, "the scores do not fit in memory");
    return PRONY_OK;
}

static prony_status ml_linear_run_with(const prony_context *context, double (*dot)(const prony_value *x, int64_t first,
                                                                                   const float *weights, int64_t n))
{
    linear l;
    PRN_TRY(ml_linear_read_node(context, &l));
    prn_ml_parallel_rows(context, l.at.rows, l.scores * (l.at.features + 8), ml_linear_rows,
                         &(linear_job){&l, dot, context->scratch});
    return PRONY_OK;
}

static prony_status ml_linear_run_native(const prony_context *context)
{
    return ml_linear_run_with(context, dot_native);
}

static prony_status ml_linear_run_reference(const prony_context *context)
{
    return ml_linear_run_with(context, dot_reference);
}

/* ---- rows */

static const prn_param regressor_params[] = {PRN_FLOATS(linear_params, coefficients),
                                             PRN_FLOATS(linear_params, intercepts),
                                             PRN_INT(linear_params, targets, 1),
                                             PRN_STRING(linear_params, post_transform, "NONE"),
                                             {0}};
static const prn_param classifier_params[] = {
    PRN_FLOATS(linear_params, coefficients),           PRN_FLOATS(linear_params, intercepts),
    PRN_INTS(linear_params, classlabels_ints),         PRN_INT(linear_params, multi_class, 0),
    PRN_STRING(linear_params, post_transform, "NONE"), {0}};

// clang-format off
static const prn_kernel regressor_kernels[] = {
    {.name = "linear_regressor_f32_native", .backend = "native", .types = PRN_TYPE_F32, .prepare = ml_linear_prepare,
     .run = ml_linear_run_native},
    {.name = "linear_regressor_reference", .backend = "reference", .types = PRN_ML_TYPES, .prepare = ml_linear_prepare,
     .run = ml_linear_run_reference},
    {0}};
static const prn_kernel classifier_kernels[] = {
    {.name = "linear_classifier_f32_native", .backend = "native", .types = PRN_TYPE_F32, .prepare = ml_linear_prepare,
     .run = ml_linear_run_native},
    {.name = "linear_classifier_reference", .backend = "reference", .types = PRN_ML_TYPES, .prepare = ml_linear_prepare,
     .run = ml_linear_run_reference},
    {0}};

const prn_op prn_ops_ml_linear[] = {
    {.name = "LinearRegressor", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = regressor_params, .params_bytes = sizeof(linear_params),
     .variant = &(const linear_kind){ml_linear_read_regressor},
     .infer = ml_linear_infer, .cost = ml_linear_cost, .kernels = regressor_kernels,
     .cost_text = "MACs M = scores times features; FLOPs 2M, + n with intercepts, and the transform: SOFTMAX 5 d "
                  "- 2 per row, LOGISTIC 4, PROBIT 10 per score"},
    {.name = "LinearClassifier", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1}, .outputs = {2, 2},
     .params = classifier_params, .params_bytes = sizeof(linear_params),
     .variant = &(const linear_kind){ml_linear_read_classifier},
     .infer = ml_linear_infer, .cost = ml_linear_cost, .kernels = classifier_kernels,
     .cost_text = "MACs M = scores times features; FLOPs 2M, + n with intercepts, and the transform: SOFTMAX 5 d "
                  "- 2 per row, LOGISTIC 4, PROBIT 10 per score"},
    {0}};
// clang-format on
