/* Pieces of the study's JSON that its file and a process's sample have in common. */
#ifndef PRN_PROFILER_STUDY_IO_H
#define PRN_PROFILER_STUDY_IO_H

#include "profiler/report/json_read.h"
#include "profiler/study/study.h"

void prn_study_json_times(prn_json *json, const char *key, const int64_t *times, size_t count);
/* [time_ns, tasks, members, busy_ns, longest_ns, wake_ns] */
void prn_study_json_part(prn_json *json, const char *key, const prn_study_part *part);
void prn_study_read_times(prn_json_reader *reader, const prn_json_value *object, const char *key, int64_t **out,
                          size_t *count);
void prn_study_read_part(prn_json_reader *reader, const prn_json_value *object, const char *key, prn_study_part *out);
void prn_study_take_part(prn_json_reader *reader, const prn_json_value *array, prn_study_part *out);
void prn_study_read_operator(prn_json_reader *reader, const prn_json_value *object, prn_study_operator *out);

#endif
