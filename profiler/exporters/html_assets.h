/* Files compiled into the library for HTML reports (profiler/exporters/html/), each from its first byte up to, not
 * including, its _end symbol. */
#ifndef PRN_PROFILER_EXPORTERS_HTML_ASSETS_H
#define PRN_PROFILER_EXPORTERS_HTML_ASSETS_H

#define PRN_HTML_ASSET(name) extern const char prn_html_##name[], prn_html_##name##_end[]

PRN_HTML_ASSET(page);        /* the body */
PRN_HTML_ASSET(style);       /* CSS */
PRN_HTML_ASSET(page_script); /* the report, numbers, theme, cards */
PRN_HTML_ASSET(tables_script);

#endif
