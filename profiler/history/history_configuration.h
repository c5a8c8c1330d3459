/* The configuration of a run as text: runs with equal texts are comparable. Members of documents for it. */
#ifndef PRN_PROFILER_HISTORY_HISTORY_CONFIGURATION_H
#define PRN_PROFILER_HISTORY_HISTORY_CONFIGURATION_H

#include "profiler/json/json_read.h"

#include <stdbool.h>

/* "": the member is missing or null, or `object` is NULL. */
const char *prn_history_string(prn_json_reader *reader, const prn_json_value *object, const char *key);
int64_t prn_history_integer(prn_json_reader *reader, const prn_json_value *object, const char *key, int64_t otherwise);

/* "profile, 2 x 1 threads, batch 1, fp32": all that the user chose and that moves a time, a rate or a score. In the
 * reader's pool; "" after a failure, which the reader keeps. */
const char *prn_history_report_configuration(prn_json_reader *reader, const prn_json_value *report, bool stamped);
const char *prn_history_load_configuration(prn_json_reader *reader, const prn_json_value *document);
/* `shape`: a configuration of the study's plan. */
const char *prn_history_study_configuration(prn_json_reader *reader, const prn_json_value *document,
                                            const prn_json_value *shape);

#endif
