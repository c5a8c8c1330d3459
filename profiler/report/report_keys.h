/* The keys of "prony.report/1". The report_keys_*.c files hold them, with the functions of keys that are more than a
 * field: report_keys_head.c, report_keys_figures.c, report_keys_rows.c. */
#ifndef PRN_PROFILER_REPORT_REPORT_KEYS_H
#define PRN_PROFILER_REPORT_REPORT_KEYS_H

#include "profiler/json/keys.h"
#include "profiler/report/report.h"

#define PRN_REPORT_SCHEMA "prony.report/1"

/* Keys of a prony_report: all after "schema"; those needed to repeat a measurement (model, config, system); "roof";
 * layers to composites. */
extern const prn_key prn_report_keys[], prn_manifest_keys[], prn_roof_keys[], prn_rows_keys[];
/* Of one of its rows. */
extern const prn_key prn_layer_keys[], prn_operator_keys[], prn_module_keys[], prn_nested_layer_keys[],
    prn_nested_operator_keys[];
/* A part of these, of prony_cost. */
extern const prn_key prn_count_keys[];

extern const prn_key prn_tuning_keys[];     /* of prony_tuning (report_keys_tuning.c) */
extern const prn_key prn_device_keys[];     /* of prony_device_report (report_keys_device.c) */
extern const prn_key prn_generation_keys[]; /* of prony_generation (report_keys_generation.c) */

/* ---- the accuracy profile (report_keys_accuracy.c) */

extern const prn_key prn_accuracy_keys[]; /* of prony_accuracy */
extern const prn_key prn_error_keys[];    /* of prony_accuracy_row */
bool prn_at_accuracy(const prn_at *at);
void prn_key_write_layer_error(prn_json *j, const prn_key *key, const prn_at *at);
void prn_key_write_operator_error(prn_json *j, const prn_key *key, const prn_at *at);
void prn_key_read_later(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at);
#define PRN_ERROR_KEY(level)                                                                                           \
    {"error",                                                                                                          \
     PRN_PLACE(PRN_KEY_OBJECT, 0, 0, 0, prn_error_keys),                                                               \
     PRN_ALWAYS,                                                                                                       \
     "With --accuracy: beside a float64 reference.",                                                                   \
     .when = prn_at_accuracy,                                                                                          \
     .write = prn_key_write_##level##_error,                                                                           \
     .read = prn_key_read_later}

static inline bool prn_at_stamped(const prn_at *at)
{
    return prn_report_stamped(at->root);
}

#endif
