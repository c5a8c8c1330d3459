/* Several studies side by side. The first one is the baseline: every other one was compared with it. Rows are the
 * configurations of all studies; a study that lacks one has PRONY_NO_INDEX there. */
#ifndef PRN_PROFILER_STUDY_STUDY_JOIN_H
#define PRN_PROFILER_STUDY_STUDY_JOIN_H

#include "profiler/study/study.h"

#define PRN_STUDIES_SCHEMA "prony.studies/1"

typedef struct prn_study_join {
    const prony_study *const *studies;
    const char *const *names;
    size_t count;
    size_t *rows; /* [row_count * count]: a configuration of each study */
    size_t row_count;
} prn_study_join;

/* study_join_rows.c. Fills join->rows, which the caller frees. */
PRN_MUST_USE prony_status prn_study_join_find_rows(prn_study_join *join, prony_error *error);
/* The row's configuration in the first study that has it, and that study. */
const prn_study_configuration *prn_study_join_row(const prn_study_join *join, size_t row, size_t *study);
/* The configuration of `study` in this row; PRONY_NO_INDEX: it has none. */
size_t prn_study_join_at(const prn_study_join *join, size_t row, size_t study);
/* The label of a row, of the first study that has it. */
const char *prn_study_join_label(const prn_study_join *join, size_t row, char text[PRN_STUDY_LABEL_BYTES]);
/* The comparison with the baseline; NULL: the study is the baseline, or one of both lacks the row. */
const prn_study_difference *prn_study_join_difference(const prn_study_join *join, size_t row, size_t study);

/* study_join_show.c, study_join_svg.c */
typedef prony_status prn_study_join_writer(const prn_study_join *join, const prony_write_options *options,
                                           prony_write_fn write, void *user, prony_error *error);
PRN_MUST_USE prn_study_join_writer prn_study_join_text, prn_study_join_html, prn_study_join_svg;

#endif
