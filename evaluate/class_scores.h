/* Scores of classes in an output. */
#ifndef PRN_EVALUATE_CLASS_SCORES_H
#define PRN_EVALUATE_CLASS_SCORES_H

#include "base/status.h"

/* A view of [samples, classes]. */
typedef struct prn_scores {
    const prony_value *value;
    int64_t samples, classes;
} prn_scores;

/* `batch`: samples that are expected in the first dimension; 0: any. Refuses values that are not a table of numbers. */
PRN_MUST_USE prony_status prn_scores_of(prn_scores *out, const prony_value *value, int64_t batch, prony_error *error);
double prn_score_at(const prn_scores *scores, int64_t sample, int64_t class_index);
/* The number of classes before this one: those of a higher score, or of an equal score and a lower number. Classes
 * with a NaN come last. */
int64_t prn_score_rank(const prn_scores *scores, int64_t sample, int64_t class_index);

#endif
