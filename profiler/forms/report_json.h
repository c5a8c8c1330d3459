/* Parts of the JSON report, between report_json.c (the head) and report_json_rows.c (the rows). */
#ifndef PRN_PROFILER_FORMS_REPORT_JSON_H
#define PRN_PROFILER_FORMS_REPORT_JSON_H

#include "profiler/report/json_write.h"
#include "profiler/report/report.h"

/* Left out where the text is NULL or empty. */
void prn_json_known_string(prn_json *json, const char *key, const char *text);
/* null where the divisor is zero: the ratio does not exist. */
void prn_json_ratio(prn_json *json, const char *key, double over, double under);
/* "shape", left out where even the rank is unknown; an unknown extent is null. */
void prn_json_shape(prn_json *json, const prony_shape *shape);
/* "type", and "kind" for what is no tensor. */
void prn_json_type(prn_json *json, prony_kind kind, prony_dtype dtype);
/* macs to parameters. */
void prn_json_counts(prn_json *json, const prony_cost *cost);
/* What rows have in common. */
void prn_json_facts(prn_json *json, const prony_cost *cost);
void prn_json_indices(prn_json *json, const char *key, const uint32_t *indices, size_t count);
void prn_json_values(prn_json *json, const char *key, const prony_value *const *values, size_t count);
void prn_json_time(prn_json *json, const prony_time_stats *time);
void prn_json_bytes(prn_json *json, const prony_cost *cost);
/* "nested_layers" and "nested_operators", where there are some. */
void prn_json_nested(prn_json *json, const prony_report *report);
/* What is needed to repeat a measurement: "model", "config" and "system". */
void prn_json_manifest(prn_json *json, const prony_report *report);
/* "roof", if there is one. */
void prn_json_roof(prn_json *json, const prony_report *report);
/* "layers", "operators" and "modules". */
void prn_json_rows(prn_json *json, const prony_report *report);

#endif
