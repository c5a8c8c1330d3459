/* Shared parts of the ai.onnx.ml operators. */
#include "ops/ml/ml.h"

#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"

/* ---- rows */

prony_status prn_ml_check_rows(const prony_context *context, uint32_t types)
{
    PRN_TRY(prn_check_type(context, 0, types));
    return prn_check_rank(context, 0, 1, 2);
}

prn_ml_rows prn_ml_rows_of(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    return shape->rank == 1 ? (prn_ml_rows){1, shape->dim[0]} : (prn_ml_rows){shape->dim[0], shape->dim[1]};
}

prony_status prn_ml_set_output(const prony_context *context, size_t output, prony_dtype dtype, int64_t rows,
                               int64_t columns)
{
    const prony_shape shape = prn_shape_make(2, (const int64_t[]){rows, columns});
    if (prony_shape_numel(&shape) < 0)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "output %zu is too large", output);
    prn_set_output(context, output, dtype, &shape);
    return PRONY_OK;
}

void prn_ml_parallel_rows(const prony_context *context, int64_t rows, int64_t work,
                          void (*fn)(void *argument, int64_t begin, int64_t end), void *argument)
{
    int64_t total;
    if (__builtin_mul_overflow(rows, work, &total)) total = INT64_MAX;
    prn_parallel_items(context->threads, rows, total, fn, argument);
}

/* ---- lists */

static prony_value list_of(prony_dtype dtype, const void *data, size_t count)
{
    return (prony_value){.dtype = dtype, .shape = {1, {(int64_t)count}}, .data = (void *)(uintptr_t)data};
}

prony_value prn_ml_ints(const prn_ints *list)
{
    return list->present ? list_of(PRONY_INT64, list->v, list->count) : (prony_value){0};
}

prony_value prn_ml_floats(const prn_floats *list)
{
    return list->present ? list_of(PRONY_FLOAT32, list->v, list->count) : (prony_value){0};
}

prony_status prn_ml_strings(const prony_context *context, const char *name, prony_value *out)
{
    const prn_attr_list *list = context->node->attributes;
    const prn_attr *attr = list ? prn_attr_find(list, name) : NULL;
    *out = (prony_value){0};
    if (!attr || attr->count == 0) return PRONY_OK;
    if (attr->type != PRN_ATTR_STRINGS) {
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute '%s' is of type %s, wanted %s", name,
                          prn_attr_type_name(attr->type), prn_attr_type_name(PRN_ATTR_STRINGS));
    }
    *out = list_of(PRONY_STRING, attr->strings, attr->count);
    return PRONY_OK;
}

prony_status prn_ml_ints_or_strings(const prony_context *context, const prn_ints *ints, const char *strings,
                                    prony_value *out)
{
    PRN_TRY(prn_ml_strings(context, strings, out));
    if (out->dtype == PRONY_UNDEFINED) *out = list_of(PRONY_INT64, ints->v, ints->count);
    return PRONY_OK;
}

void prn_ml_copy(const prony_value *to, int64_t at, const prony_value *from, int64_t i)
{
    const size_t width = prn_copy_width(to->dtype);
    memcpy((char *)to->data + (size_t)at * width, (const char *)from->data + (size_t)i * width, width);
}

prony_status prn_ml_check_count(const prony_context *context, const char *name, int64_t count, int64_t wanted)
{
    if (count == wanted) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "%s has %lld entries, wanted %lld", name, (long long)count,
                      (long long)wanted);
}

/* ---- scores */

prony_status prn_ml_transform_read(const prony_context *context, const char *name, prn_ml_transform *out)
{
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    for (int i = 0; i < PRN_ML_TRANSFORM_COUNT; i++) {
        *out = (prn_ml_transform)i;
        if (strcmp(names[i], name) == 0) return PRONY_OK;
    }
    return prony_fail(context, PRONY_INVALID_MODEL, "post_transform '%s' is unknown", name);
}

double prn_ml_logistic(double x)
{
    const double y = 1.0 / (1.0 + exp(-fabs(x)));
    return x < 0.0 ? 1.0 - y : y;
}

int64_t prn_ml_best(const double *scores, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++) {
        if (scores[i] > scores[best]) best = i;
    }
    return best;
}

/* The inverse of the normal distribution, by Winitzki's approximation of the inverse error function (a = 0.147), which
 * other runtimes use. */
static double probit(double p)
{
    const double x = 2.0 * p - 1.0, tail = log((1.0 - x) * (1.0 + x));
    const double half = 2.0 / (3.14159 * 0.147) + 0.5 * tail;
    const double y = sqrt(sqrt(half * half - tail / 0.147) - half);
    return 1.41421356 * (x < 0.0 ? -y : y);
}

/* Scores of zero stay out of SOFTMAX_ZERO: they stand for classes without any. */
static bool takes_part(prn_ml_transform transform, double score)
{
    return transform == PRN_ML_SOFTMAX || fabs(score) > 1e-7;
}

static void ml_softmax(prn_ml_transform transform, double *scores, int64_t count)
{
    double highest = -INFINITY, sum = 0.0;
    for (int64_t i = 0; i < count; i++) highest = fmax(highest, scores[i]);
    for (int64_t i = 0; i < count; i++) {
        if (takes_part(transform, scores[i])) {
            scores[i] = exp(scores[i] - highest);
            sum += scores[i];
        } else {
            scores[i] *= exp(-highest);
        }
    }
    for (int64_t i = 0; i < count; i++) scores[i] /= sum;
}

void prn_ml_transform_row(prn_ml_transform transform, double *scores, int64_t count)
{
    if (count == 1 && transform != PRN_ML_PROBIT) return;
    if (transform == PRN_ML_SOFTMAX || transform == PRN_ML_SOFTMAX_ZERO) ml_softmax(transform, scores, count);
    for (int64_t i = 0; i < count && transform == PRN_ML_LOGISTIC; i++) scores[i] = prn_ml_logistic(scores[i]);
    for (int64_t i = 0; i < count && transform == PRN_ML_PROBIT; i++) scores[i] = probit(scores[i]);
}

void prn_ml_pair_scores(prn_ml_transform transform, prn_ml_pair pair, double score, double out[2])
{
    if (transform == PRN_ML_PROBIT) score = probit(score);
    out[0] = pair == PRN_ML_COMPLEMENT && transform != PRN_ML_LOGISTIC ? 1.0 - score : -score;
    out[1] = score;
    if (transform == PRN_ML_LOGISTIC) prn_ml_transform_row(transform, out, 2);
}

prony_status prn_ml_transform_cost(const prony_context *context, prony_cost *cost, prn_ml_transform transform,
                                   int64_t rows, int64_t count)
{
    static const uint64_t operations[] = {0, 5, 4, 5, 10}, special[] = {0, 2, 2, 2, 5};
    uint64_t scores;
    if (!prn_mul_u64(&scores, (uint64_t)rows, (uint64_t)count))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of scores does not fit 64 bits");
    PRN_TRY(prn_cost_floats(context, cost, scores, operations[transform], special[transform]));
    if (count > 0 && (transform == PRN_ML_SOFTMAX || transform == PRN_ML_SOFTMAX_ZERO))
        cost->flops -= 2 * (uint64_t)rows;
    return PRONY_OK;
}
