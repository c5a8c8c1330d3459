/* The report as JSON, schema "prony.report/1". The tables of profiler/report/report_keys.h say which keys there are,
 * docs/reference/report.md what they mean and docs/schemas/report.schema.json the same for programs; a test holds the
 * three together.
 *
 * A key is left out where its value is unknown or was not measured; null says that there is no such value here. */
#include "profiler/report/report_keys.h"

prony_status prn_report_write_json(const prony_report *report, const prony_write_options *options, prony_write_fn write,
                                   void *user, prony_error *error)
{
    prn_at at = {.root = (prony_report *)report, .row = (prony_report *)report, .detail = options && options->memory};
    return prn_keys_write_document(PRN_REPORT_SCHEMA, prn_report_keys, &at, write, user, error);
}
