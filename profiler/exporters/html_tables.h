/* The part of an HTML report that needs no script. */
#ifndef PRN_PROFILER_EXPORTERS_HTML_TABLES_H
#define PRN_PROFILER_EXPORTERS_HTML_TABLES_H

#include "profiler/exporters/export_out.h"
#include "profiler/report/report.h"

/* Figures, types and layers as plain tables, within <noscript>: a browser with scripts does not show them. */
PRN_MUST_USE prony_status prn_html_plain_tables(prn_out *out, const prony_report *report, prony_error *error);

#endif
