/* The charts behind prn_report_write_svg, one file per kind. Each draws a whole picture; its `lacks` checks the needed
 * data before. */
#ifndef PRN_PROFILER_EXPORTERS_SVG_REPORT_SVG_H
#define PRN_PROFILER_EXPORTERS_SVG_REPORT_SVG_H

#include "profiler/exporters/svg/svg.h"
#include "profiler/report/report.h"

PRN_MUST_USE prony_status prn_svg_layers(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_types(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_latency(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_runs(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_cores(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_roofline(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_memory(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_modules(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_graph(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_accuracy(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_pipeline(prn_out *out, const prony_report *report, prony_error *error);
PRN_MUST_USE prony_status prn_svg_generation(prn_out *out, const prony_report *report, prony_error *error);

#endif
