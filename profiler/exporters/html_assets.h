/* Files compiled into the library for HTML reports (profiler/exporters/html/), each from its first byte up to, not
 * including, its _end symbol. The chart library is empty in a build without one (CMake: PRONY_CHARTS). */
#ifndef PRN_PROFILER_EXPORTERS_HTML_ASSETS_H
#define PRN_PROFILER_EXPORTERS_HTML_ASSETS_H

#include <stdint.h>

#define PRN_HTML_ASSET(name) extern const char prn_html_##name[], prn_html_##name##_end[]

PRN_HTML_ASSET(page);          /* the body */
PRN_HTML_ASSET(style);         /* CSS */
PRN_HTML_ASSET(page_script);   /* the report, numbers, theme, cards */
PRN_HTML_ASSET(charts_script); /* charts drawn by the chart library */
PRN_HTML_ASSET(tables_script);
PRN_HTML_ASSET(chart_library); /* Chart.js, with its licence at its head */
/* Tells if the chart library is empty. Comparing the two symbols would not: compilers assume that objects never share
 * an address. */
extern const uint64_t prn_html_chart_library_bytes;

#endif
