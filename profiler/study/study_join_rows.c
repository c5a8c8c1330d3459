/* Rows of studies side by side: configurations that are the same, whatever their place in each plan. */
#include "profiler/study/study_join.h"

#include <stdio.h>
#include <string.h>

size_t prn_study_join_at(const prn_study_join *join, size_t row, size_t study)
{
    return join->rows[row * join->count + study];
}

const prn_study_configuration *prn_study_join_row(const prn_study_join *join, size_t row, size_t *study)
{
    size_t have = 0;
    while (have + 1 < join->count && prn_study_join_at(join, row, have) == PRONY_NO_INDEX) have++;
    *study = have;
    return &join->studies[have]->configurations[prn_study_join_at(join, row, have)];
}

/* A study's labels tell its own configurations apart; batch and precision follow where those of all rows differ. */
const char *prn_study_join_label(const prn_study_join *join, size_t row, char text[PRN_STUDY_LABEL_BYTES])
{
    size_t study, other;
    const prn_study_configuration *c = prn_study_join_row(join, row, &study);
    bool batches = false, precisions = false;
    for (size_t i = 0; i < join->row_count; i++) {
        const prn_study_configuration *o = prn_study_join_row(join, i, &other);
        batches = batches || o->batch != c->batch;
        precisions = precisions || strcmp(o->precision, c->precision) != 0;
    }
    prn_study_label(join->studies[study], prn_study_join_at(join, row, study), text);
    size_t used = strlen(text);
    if (batches && c->batch && !strstr(text, "batch"))
        used += (size_t)snprintf(text + used, PRN_STUDY_LABEL_BYTES - used, ", batch %lld", (long long)c->batch);
    if (precisions && used < PRN_STUDY_LABEL_BYTES && !strstr(text, c->precision))
        (void)snprintf(text + used, PRN_STUDY_LABEL_BYTES - used, ", %s", c->precision);
    return text;
}

const prn_study_difference *prn_study_join_difference(const prn_study_join *join, size_t row, size_t study)
{
    const size_t at = prn_study_join_at(join, row, study);
    const prony_study *s = join->studies[study];
    if (study == 0 || at == PRONY_NO_INDEX || prn_study_join_at(join, row, 0) == PRONY_NO_INDEX) return NULL;
    for (size_t i = 0; i < s->difference_count; i++)
        if (s->differences[i].configuration == at) return &s->differences[i];
    return NULL;
}

/* Rows in the order of the baseline; configurations that only later studies have follow. */
prony_status prn_study_join_find_rows(prn_study_join *join, prony_error *error)
{
    size_t most = 1;
    for (size_t k = 0; k < join->count; k++) most += join->studies[k]->configuration_count;
    join->rows = prn_calloc(most * join->count, sizeof *join->rows);
    if (!join->rows) return prn_no_memory(error);
    for (size_t k = 0; k < join->count; k++)
        for (size_t i = 0; i < join->studies[k]->configuration_count; i++) {
            size_t row = 0;
            for (; row < join->row_count; row++) {
                size_t have = 0;
                while (prn_study_join_at(join, row, have) == PRONY_NO_INDEX) have++;
                if (have < k &&
                    prn_study_match(join->studies[k], join->studies[have], prn_study_join_at(join, row, have)) == i)
                    break;
            }
            for (size_t j = 0; row == join->row_count && j < join->count; j++)
                join->rows[row * join->count + j] = PRONY_NO_INDEX;
            join->row_count += row == join->row_count;
            join->rows[row * join->count + k] = i;
        }
    return PRONY_OK;
}
