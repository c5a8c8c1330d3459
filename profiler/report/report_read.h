/* A report read back from its JSON; between report_read.c (model, configuration, system), report_read_figures.c and
 * report_read_rows.c. */
#ifndef PRN_PROFILER_REPORT_REPORT_READ_H
#define PRN_PROFILER_REPORT_REPORT_READ_H

#include "profiler/report/json_read.h"
#include "profiler/report/report.h"

/* The caller releases *out by prony_report_release; its pool owns everything. `file` appears in messages. */
PRN_MUST_USE prony_status prn_report_read(prony_report **out, const char *file, const char *text, size_t size,
                                          prony_error *error);

typedef struct prn_report_reader {
    prn_json_reader json;
    prony_report *report;
} prn_report_reader;

/* "shape", "type" and "kind". */
void prn_read_shape(prn_json_reader *reader, const prn_json_value *object, prony_shape *out);
void prn_read_type(prn_json_reader *reader, const prn_json_value *object, prony_kind *kind, prony_dtype *dtype);
/* macs to parameters. */
void prn_read_counts(prn_json_reader *reader, const prn_json_value *object, prony_cost *out);
/* What rows have in common. `nulls`: an index may be null; `bound` is how many rows there are to lead to. */
void prn_read_facts(prn_json_reader *reader, const prn_json_value *object, prony_cost *out);
const uint32_t *prn_read_indices(prn_json_reader *reader, const prn_json_value *object, const char *key, bool nulls,
                                 size_t bound, size_t *count);
bool prn_read_time(prn_json_reader *reader, const prn_json_value *object, prony_time_stats *out);
const prony_value *const *prn_read_values(prn_json_reader *reader, const prn_json_value *object, const char *key,
                                          size_t *count);
/* What runs in subgraphs; after layers and operators. */
void prn_read_nested(prn_report_reader *reader, const prn_json_value *root);
/* Where messages are to point: "memory"; "" is the top. */
void prn_read_enter(prn_json_reader *reader, const char *where);
/* An array of strings; *out ends with NULL. `out_count` may be NULL. */
void prn_read_strings(prn_json_reader *reader, const prn_json_value *object, const char *key, const char *const **out,
                      size_t *out_count);
/* model, config, system and roof. */
void prn_read_manifest(prn_report_reader *reader, const prn_json_value *object);
/* totals to output_sha256. */
void prn_read_figures(prn_report_reader *reader, const prn_json_value *root);
/* layers, operators, modules, weights, composites. */
void prn_read_rows(prn_report_reader *reader, const prn_json_value *root);

#endif
