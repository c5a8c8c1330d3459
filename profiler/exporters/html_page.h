/* The head that all pages without scripts share. */
#ifndef PRN_PROFILER_EXPORTERS_HTML_PAGE_H
#define PRN_PROFILER_EXPORTERS_HTML_PAGE_H

#include "profiler/exporters/export_out.h"

/* A page's title is `title` followed by `name`. */
typedef struct prn_page_head {
    const char *title, *name;
    const char *heading;  /* NULL: the title */
    const char *subtitle; /* below the heading; NULL: none */
    const char *style;    /* CSS behind the report's own */
} prn_page_head;

/* Writes everything up to and including the opening tag of <main>; all texts but the style are escaped. */
void prn_page_begin(prn_out *out, const prn_page_head *page);

#endif
