/* SVMRegressor, SVMClassifier.
 *
 *   regressor    y = sum over support vectors of coefficient K(x, vector) + rho
 *   classifier   one such score for every pair of classes, votes, and, given prob_a and prob_b, probabilities by the
 *                pairwise coupling of Wu, Lin and Weng (2004, second method)
 *   no vectors   coefficients are the rows of a linear map
 *
 * Rows are cut into at most LANES tasks, each with a working space of its own in scratch. */
#include "ops/ml/ml.h"
#include "base/integers.h"

#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"

enum { LANES = 16 };

typedef struct svm_params {
    prn_floats coefficients, kernel_params, rho, support_vectors, prob_a, prob_b;
    prn_ints vectors_per_class, classlabels_ints;
    int64_t n_supports, one_class;
    const char *kernel_type, *post_transform;
} svm_params;

typedef enum svm_kernel { LINEAR, POLY, RBF, SIGMOID } svm_kernel;

typedef struct svm {
    const svm_params *params;
    const prony_value *x;
    prn_ml_rows at;
    svm_kernel kernel;
    double gamma, coef0, degree;
    prn_ml_transform transform;
    int64_t vectors; /* 0: linear */
    int64_t columns; /* of the scores given out */
    bool classifies, couples;
    prony_value labels;
    int64_t classes, pairs;
    bool positive; /* no coefficient is negative */
    int64_t space; /* doubles of a lane */
} svm;

static prony_status read_kernel(const prony_context *context, svm *out)
{
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    const prn_floats *p = &out->params->kernel_params;
    int k = 0;
    while (k < 4 && strcmp(names[k], out->params->kernel_type) != 0) k++;
    if (k == 4)
        return prony_fail(context, PRONY_INVALID_MODEL, "kernel_type '%s' is unknown", out->params->kernel_type);
    out->kernel = out->vectors ? (svm_kernel)k : LINEAR;
    if (p->count) {
        PRN_TRY(prn_ml_check_count(context, "kernel_params", (int64_t)p->count, 3));
        out->gamma = (double)p->v[0];
        out->coef0 = (double)p->v[1];
        out->degree = (double)p->v[2];
    }
    return prn_ml_transform_read(context, out->params->post_transform, &out->transform);
}

static prony_status ml_svm_read_common(const prony_context *context, int64_t vectors, svm *out)
{
    int64_t wanted;
    PRN_TRY(prn_ml_check_rows(context, PRN_ML_TYPES));
    out->x = context->inputs[0];
    out->at = prn_ml_rows_of(context);
    out->vectors = vectors;
    if (vectors < 0 || __builtin_mul_overflow(vectors, out->at.features, &wanted))
        return prony_fail(context, PRONY_INVALID_MODEL, "%lld support vectors", (long long)vectors);
    PRN_TRY(prn_ml_check_count(context, "support_vectors", (int64_t)out->params->support_vectors.count, wanted));
    return read_kernel(context, out);
}

static prony_status ml_svm_read_regressor(const prony_context *context, svm *out)
{
    const svm_params *p = context->params;
    *out = (svm){.params = p, .columns = 1};
    PRN_TRY(ml_svm_read_common(context, p->n_supports, out));
    out->space = out->vectors;
    if (p->rho.count < 1) return prony_fail(context, PRONY_INVALID_MODEL, "rho is empty");
    return prn_ml_check_count(context, "coefficients", (int64_t)p->coefficients.count,
                              out->vectors ? out->vectors : out->at.features);
}

static prony_status check_pairs(const prony_context *context, const svm *s)
{
    const svm_params *p = s->params;
    PRN_TRY(prn_ml_check_count(context, "vectors_per_class", (int64_t)p->vectors_per_class.count, s->classes));
    PRN_TRY(prn_ml_check_count(context, "coefficients", (int64_t)p->coefficients.count, (s->classes - 1) * s->vectors));
    PRN_TRY(prn_ml_check_count(context, "rho", (int64_t)p->rho.count, s->pairs));
    if (!s->couples) return PRONY_OK;
    PRN_TRY(prn_ml_check_count(context, "prob_a", (int64_t)p->prob_a.count, s->pairs));
    return prn_ml_check_count(context, "prob_b", (int64_t)p->prob_b.count, s->pairs);
}

static prony_status ml_svm_read_classifier(const prony_context *context, svm *out)
{
    const svm_params *p = context->params;
    int64_t vectors = 0;
    *out = (svm){.params = p, .classifies = true, .positive = true};
    for (size_t i = 0; i < p->vectors_per_class.count; i++) {
        if (p->vectors_per_class.v[i] < 0 || __builtin_add_overflow(vectors, p->vectors_per_class.v[i], &vectors))
            return prony_fail(context, PRONY_INVALID_MODEL, "vectors_per_class[%zu] is %lld", i,
                              (long long)p->vectors_per_class.v[i]);
    }
    for (size_t i = 0; i < p->coefficients.count; i++) out->positive = out->positive && p->coefficients.v[i] >= 0.0f;
    PRN_TRY(ml_svm_read_common(context, vectors, out));
    PRN_TRY(prn_ml_ints_or_strings(context, &p->classlabels_ints, "classlabels_strings", &out->labels));
    out->classes = prn_ml_count(&out->labels);
    if (out->classes < 1 || out->classes > UINT16_MAX)
        return prony_fail(context, PRONY_INVALID_MODEL, "%lld classes", (long long)out->classes);
    out->pairs = out->classes * (out->classes - 1) / 2;
    out->couples = out->vectors && p->prob_a.count > 0;
    out->columns = !out->vectors || out->couples ? out->classes : (out->classes > 2 ? out->pairs : 2);
    out->space = out->vectors + out->pairs + 2 * out->classes + (out->couples ? 2 * out->classes * out->classes : 0);
    if (out->vectors) return check_pairs(context, out);
    if (p->rho.count < 1) return prony_fail(context, PRONY_INVALID_MODEL, "rho is empty");
    return prn_ml_check_count(context, "coefficients", (int64_t)p->coefficients.count, out->classes * out->at.features);
}

/* A row's variant: how its node is read. */
typedef struct svm_kind {
    prony_status (*read)(const prony_context *context, svm *out);
} svm_kind;

static prony_status ml_svm_read_node(const prony_context *context, svm *out)
{
    return ((const svm_kind *)prn_variant(context))->read(context, out);
}

/* ---- scores */

static double apply_kernel(const svm *s, int64_t row, const float *vector)
{
    double sum = 0.0;
    for (int64_t i = 0; i < s->at.features; i++) {
        const double x = prn_get_f64(s->x->data, s->x->dtype, row * s->at.features + i);
        const double d = x - (double)vector[i];
        sum += s->kernel == RBF ? d * d : x * (double)vector[i];
    }
    switch (s->kernel) {
    case POLY:
        return pow(s->gamma * sum + s->coef0, s->degree);
    case RBF:
        return exp(-s->gamma * sum);
    case SIGMOID:
        return tanh(s->gamma * sum + s->coef0);
    case LINEAR:
        break;
    }
    return sum;
}

static void apply_kernels(const svm *s, int64_t row, double *values)
{
    for (int64_t v = 0; v < s->vectors && !prn_cancelled_at(v); v++)
        values[v] = apply_kernel(s, row, prn_ml_vector(&s->params->support_vectors, v, s->at.features));
}

static double weighted(const float *coefficients, const double *values, int64_t first, int64_t count)
{
    double sum = 0.0;
    for (int64_t v = first; v < first + count; v++) sum += (double)coefficients[v] * values[v];
    return sum;
}

/* A score per pair i < j, the classes' vectors being in rows j - 1 and i of the coefficients, and its vote. */
static void score_pairs(const svm *s, const double *values, double *pairs, double *votes)
{
    const svm_params *p = s->params;
    int64_t first_i = 0;
    for (int64_t c = 0; c < s->classes; c++) votes[c] = 0.0;
    for (int64_t i = 0, pair = 0; i < s->classes; first_i += p->vectors_per_class.v[i], i++) {
        int64_t first_j = first_i + p->vectors_per_class.v[i];
        for (int64_t j = i + 1; j < s->classes; first_j += p->vectors_per_class.v[j], j++, pair++) {
            pairs[pair] =
                weighted(p->coefficients.v + (j - 1) * s->vectors, values, first_i, p->vectors_per_class.v[i]) +
                weighted(p->coefficients.v + i * s->vectors, values, first_j, p->vectors_per_class.v[j]) +
                (double)p->rho.v[pair];
            votes[pairs[pair] > 0.0 ? i : j] += 1.0;
        }
    }
}

/* ---- probabilities from pairs */

/* r[i][j]: how likely i is, of i and j. */
static void pair_probabilities(const svm *s, const double *pairs, double *r)
{
    for (int64_t i = 0, pair = 0; i < s->classes; i++) {
        for (int64_t j = i + 1; j < s->classes; j++, pair++) {
            const double a = (double)s->params->prob_a.v[pair], b = (double)s->params->prob_b.v[pair];
            const double p = 1.0 - prn_ml_logistic(pairs[pair] * a + b);
            r[i * s->classes + j] = fmin(fmax(p, 1e-7), 1.0 - 1e-7);
            r[j * s->classes + i] = 1.0 - r[i * s->classes + j];
        }
    }
}

/* Minimises sum over i, j of (r[j][i] p[i] - r[i][j] p[j])^2 on the simplex, coordinate by coordinate. */
static void couple(int64_t k, const double *r, double *q, double *qp, double *p)
{
    const double enough = 0.005 / (double)k;
    for (int64_t i = 0; i < k; i++) {
        p[i] = 1.0 / (double)k;
        q[i * k + i] = 0.0;
        for (int64_t j = 0; j < k; j++) {
            if (j == i) continue;
            q[i * k + i] += r[j * k + i] * r[j * k + i];
            q[i * k + j] = -r[j * k + i] * r[i * k + j];
        }
    }
    for (int round = 0; round < 100 && !prn_cancelled(); round++) {
        double all = 0.0, worst = 0.0;
        for (int64_t i = 0; i < k; i++) {
            qp[i] = 0.0;
            for (int64_t j = 0; j < k; j++) qp[i] += q[i * k + j] * p[j];
            all += p[i] * qp[i];
        }
        for (int64_t i = 0; i < k; i++) worst = fmax(worst, fabs(qp[i] - all));
        if (worst < enough) break;
        for (int64_t i = 0; i < k; i++) {
            const double step = (all - qp[i]) / q[i * k + i], scale = 1.0 / (1.0 + step);
            p[i] += step;
            all = (all + step * (step * q[i * k + i] + 2.0 * qp[i])) * scale * scale;
            for (int64_t j = 0; j < k; j++) {
                qp[j] = (qp[j] + step * q[i * k + j]) * scale;
                p[j] *= scale;
            }
        }
    }
}

/* ---- rows */

typedef struct svm_job {
    const svm *svm;
    const prony_value *classes, *y;
    double *space;
    int64_t per_lane;
} svm_job;

static void ml_svm_put_row(const svm_job *job, int64_t row, const double *scores)
{
    for (int64_t k = 0; job->y && k < job->svm->columns; k++)
        ((float *)job->y->data)[row * job->svm->columns + k] = (float)scores[k];
}

static void regress_row(const svm_job *job, int64_t row, double *values)
{
    const svm *s = job->svm;
    const svm_params *p = s->params;
    double y = (double)p->rho.v[0];
    apply_kernels(s, row, values);
    y += s->vectors ? weighted(p->coefficients.v, values, 0, s->vectors) : apply_kernel(s, row, p->coefficients.v);
    if (p->one_class) y = y > 0.0 ? 1.0 : -1.0;
    ml_svm_put_row(job, row, &y);
}

/* Scores of one row and its label: votes of pairs, or linear scores; then probabilities if the model has them.
 * `values` is scratch of the row's task. */
static void classify_row(const svm_job *job, int64_t row, double *values)
{
    const svm *s = job->svm;
    double *pairs = values + s->vectors, *votes = pairs + s->pairs, *scores = votes + s->classes;
    double pair[2];
    int64_t best;
    apply_kernels(s, row, values);
    if (s->vectors) {
        score_pairs(s, values, pairs, votes);
        best = prn_ml_best(votes, s->classes);
    } else {
        for (int64_t c = 0; c < s->classes; c++)
            scores[c] = apply_kernel(s, row, prn_ml_vector(&s->params->coefficients, c, s->at.features)) +
                        (double)s->params->rho.v[0];
        best = prn_ml_best(scores, s->classes);
        /* Of two linear scores the better one decides by its size alone. */
        if (s->classes == 2 && scores[best] >= (s->positive ? 0.5 : 0x1p-1074)) best = 1;
    }
    if (job->classes) prn_ml_copy(job->classes, row, &s->labels, best);
    if (s->couples) {
        double *r = scores + s->classes, *q = r + s->classes * s->classes;
        pair_probabilities(s, pairs, r);
        couple(s->classes, r, q, votes, scores);
    } else if (s->vectors && s->classes <= 2) {
        prn_ml_pair_scores(s->transform, s->transform == PRN_ML_NONE ? PRN_ML_MIRROR : PRN_ML_COMPLEMENT,
                           s->pairs ? pairs[0] : 0.0, pair);
        ml_svm_put_row(job, row, pair);
        return;
    } else if (s->vectors) {
        scores = pairs;
    }
    prn_ml_transform_row(s->transform, scores, s->columns);
    ml_svm_put_row(job, row, scores);
}

static void lane(void *argument, int64_t task)
{
    const svm_job *job = argument;
    double *space = job->space ? job->space + task * job->svm->space : NULL;
    const int64_t first = task * job->per_lane, rest = job->svm->at.rows - first;
    for (int64_t row = first; row < first + (rest < job->per_lane ? rest : job->per_lane) && !prn_cancelled(); row++) {
        if (job->svm->classifies)
            classify_row(job, row, space);
        else
            regress_row(job, row, space);
    }
}

static int64_t per_lane(const svm *s)
{
    return prn_ceil_div(s->at.rows, LANES);
}

static prony_status ml_svm_prepare(const prony_context *context, prn_prepared *out)
{
    svm s;
    PRN_TRY(ml_svm_read_node(context, &s));
    out->scratch_bytes = prony_dtype_bytes(PRONY_FLOAT64, s.space * LANES);
    if (out->scratch_bytes == SIZE_MAX)
        return prony_fail(context, PRONY_LIMIT, "the working space does not fit in memory");
    return PRONY_OK;
}

static prony_status ml_svm_run(const prony_context *context)
{
    svm s;
    PRN_TRY(ml_svm_read_node(context, &s));
    if (s.at.rows == 0) return PRONY_OK;
    svm_job job = {&s, s.classifies ? prn_output(context, 0) : NULL, prn_output(context, s.classifies),
                   context->scratch, per_lane(&s)};
    prn_parallel_tasks(context->threads, prn_ceil_div(s.at.rows, job.per_lane), lane, &job);
    return PRONY_OK;
}

static prony_status ml_svm_infer(const prony_context *context)
{
    svm s;
    PRN_TRY(ml_svm_read_node(context, &s));
    if (s.classifies) prn_set_output(context, 0, s.labels.dtype, &(prony_shape){1, {s.at.rows}});
    return prn_ml_set_output(context, s.classifies, PRONY_FLOAT32, s.at.rows, s.columns);
}

static prony_status ml_svm_cost(const prony_context *context, prony_cost *cost)
{
    svm s;
    PRN_TRY(ml_svm_read_node(context, &s));
    const uint64_t outer = s.classifies ? (uint64_t)s.classes - (s.vectors > 0) : 1;
    const uint64_t inner = s.vectors ? (uint64_t)s.vectors : outer;
    uint64_t values, products, sums = 0;
    if (!prn_mul_u64(&values, (uint64_t)s.at.rows, inner) || !prn_mul_u64(&products, values, (uint64_t)s.at.features) ||
        (s.vectors && !prn_mul_u64(&sums, values, outer)))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    prn_cost_fact(cost, "rows", s.at.rows);
    prn_cost_fact(cost, "in_features", s.at.features);
    prn_cost_fact(cost, "support_vectors", s.vectors);
    cost->parameters += s.params->coefficients.count + s.params->support_vectors.count + s.params->rho.count;
    PRN_TRY(prn_cost_macs(context, cost, products, false));
    PRN_TRY(prn_cost_macs(context, cost, sums, false));
    if (s.kernel == RBF) PRN_TRY(prn_cost_floats(context, cost, products, 1, 0));
    if (s.kernel != LINEAR) PRN_TRY(prn_cost_floats(context, cost, values, s.kernel == RBF ? 2 : 3, 1));
    return prn_ml_transform_cost(context, cost, s.transform, s.at.rows, s.columns);
}

/* ---- rows */

#define SHARED_PARAMS                                                                                                  \
    PRN_FLOATS(svm_params, coefficients), PRN_FLOATS(svm_params, kernel_params), PRN_FLOATS(svm_params, rho),          \
        PRN_FLOATS(svm_params, support_vectors), PRN_STRING(svm_params, kernel_type, "LINEAR"),                        \
        PRN_STRING(svm_params, post_transform, "NONE")

static const prn_param regressor_params[] = {
    SHARED_PARAMS, PRN_INT(svm_params, n_supports, 0), PRN_INT(svm_params, one_class, 0), {0}};
static const prn_param classifier_params[] = {SHARED_PARAMS,
                                              PRN_INTS(svm_params, vectors_per_class),
                                              PRN_INTS(svm_params, classlabels_ints),
                                              PRN_FLOATS(svm_params, prob_a),
                                              PRN_FLOATS(svm_params, prob_b),
                                              {0}};

static const prn_kernel regressor_kernels[] = {{.name = "svm_regressor_reference",
                                                .backend = "reference",
                                                .types = PRN_ML_TYPES,
                                                .prepare = ml_svm_prepare,
                                                .run = ml_svm_run},
                                               {0}};
static const prn_kernel classifier_kernels[] = {{.name = "svm_classifier_reference",
                                                 .backend = "reference",
                                                 .types = PRN_ML_TYPES,
                                                 .prepare = ml_svm_prepare,
                                                 .run = ml_svm_run},
                                                {0}};

// clang-format off
const prn_op prn_ops_ml_svm[] = {
    {.name = "SVMRegressor", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = regressor_params, .params_bytes = sizeof(svm_params), .variant = &(const svm_kind){ml_svm_read_regressor},
     .infer = ml_svm_infer, .cost = ml_svm_cost, .kernels = regressor_kernels,
     .cost_text = "V support vectors: MACs r V features + r V (classes - 1), regressor r V; RBF one more FLOP per "
                  "product and 2 per value, POLY and SIGMOID 3 per value, special 1; then the transform"},
    {.name = "SVMClassifier", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1}, .outputs = {2, 2},
     .params = classifier_params, .params_bytes = sizeof(svm_params), .variant = &(const svm_kind){ml_svm_read_classifier},
     .infer = ml_svm_infer, .cost = ml_svm_cost, .kernels = classifier_kernels,
     .cost_text = "V support vectors: MACs r V features + r V (classes - 1), regressor r V; RBF one more FLOP per "
                  "product and 2 per value, POLY and SIGMOID 3 per value, special 1; then the transform"},
    {0}};
// clang-format on
