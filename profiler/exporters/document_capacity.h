/* The chart of a prony.capacity/1 document. */
#ifndef PRN_PROFILER_EXPORTERS_DOCUMENT_CAPACITY_H
#define PRN_PROFILER_EXPORTERS_DOCUMENT_CAPACITY_H

#include "profiler/documents/document.h"
#include "profiler/exporters/export_out.h"

/* A panel of a page; `rows` are those of the document's frontier. */
void prn_document_capacity_chart(prn_document *document, const prn_document_rows *rows, prn_out *out);

#endif
