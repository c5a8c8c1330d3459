/* Shared by the ai.onnx.ml operators: input 0 as rows of features, list attributes as values, class labels, and the
 * transforms that turn scores into what is given out. Values made here borrow from the node's attributes.
 *
 * If the specification is silent, results are those of ONNX Runtime. A map is the tensor of its values, in the order
 * of the keys that the node's attributes list. */
#ifndef PRN_OPS_ML_ML_H
#define PRN_OPS_ML_ML_H

#include "ops/op.h"

#define PRN_ML_TYPES (PRN_TYPE_F32 | PRN_TYPE(PRONY_FLOAT64) | PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64))

/* ---- rows */

/* Input 0 is [rows, features], or [features]: one row. */
typedef struct prn_ml_rows {
    int64_t rows, features;
} prn_ml_rows;

prony_status prn_ml_check_rows(const prony_context *context, uint32_t types);
/* Of an input that passed. */
prn_ml_rows prn_ml_rows_of(const prony_context *context);
/* Output 0 or another is dtype[rows, columns]. */
prony_status prn_ml_set_output(const prony_context *context, size_t output, prony_dtype dtype, int64_t rows,
                               int64_t columns);

/* Cuts the rows among threads; `work` is about how many operations one row takes. */
void prn_ml_parallel_rows(const prony_context *context, int64_t rows, int64_t work,
                          void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);

/* ---- lists */

/* Rank 1; UNDEFINED where the attribute is absent. */
prony_value prn_ml_ints(const prn_ints *list);
prony_value prn_ml_floats(const prn_floats *list);
prony_status prn_ml_strings(const prony_context *context, const char *name, prony_value *out);
/* Whichever of both lists is there, integers if both are empty. */
prony_status prn_ml_ints_or_strings(const prony_context *context, const prn_ints *ints, const char *strings,
                                    prony_value *out);
static inline int64_t prn_ml_count(const prony_value *list)
{
    return list->dtype == PRONY_UNDEFINED ? 0 : prony_shape_numel(&list->shape);
}
/* to[at] = from[i]; both have the same type of a byte or more. */
void prn_ml_copy(const prony_value *to, int64_t at, const prony_value *from, int64_t i);

/* `name` has `count` entries, must have `wanted`. */
prony_status prn_ml_check_count(const prony_context *context, const char *name, int64_t count, int64_t wanted);

/* ---- scores */

typedef enum prn_ml_transform { /* numbers of TreeEnsemble's post_transform */
                                PRN_ML_NONE,
                                PRN_ML_SOFTMAX,
                                PRN_ML_LOGISTIC,
                                PRN_ML_SOFTMAX_ZERO,
                                PRN_ML_PROBIT,
                                PRN_ML_TRANSFORM_COUNT
} prn_ml_transform;

prony_status prn_ml_transform_read(const prony_context *context, const char *name, prn_ml_transform *out);
double prn_ml_logistic(double x);
/* Number `index` of the vectors of `features` numbers each; NULL where they have none. */
static inline const float *prn_ml_vector(const prn_floats *vectors, int64_t index, int64_t features)
{
    return features ? vectors->v + index * features : NULL;
}

/* Index of the first of the largest. */
int64_t prn_ml_best(const double *scores, int64_t count);
/* One row, in place. Of the transforms only PROBIT applies to a single score. */
void prn_ml_transform_row(prn_ml_transform transform, double *scores, int64_t count);

/* One score for two classes: (1 - s, s) or (-s, s); LOGISTIC makes either (f(-s), f(s)), SOFTMAX leaves them alone. */
typedef enum prn_ml_pair { PRN_ML_COMPLEMENT, PRN_ML_MIRROR } prn_ml_pair;
void prn_ml_pair_scores(prn_ml_transform transform, prn_ml_pair pair, double score, double out[2]);

/* The cost of transforming `rows` rows of `count` scores. */
prony_status prn_ml_transform_cost(const prony_context *context, prony_cost *cost, prn_ml_transform transform,
                                   int64_t rows, int64_t count);

#endif
