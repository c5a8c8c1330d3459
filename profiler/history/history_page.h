/* The dashboard's pictures. */
#ifndef PRN_PROFILER_HISTORY_HISTORY_PAGE_H
#define PRN_PROFILER_HISTORY_HISTORY_PAGE_H

#include "profiler/exporters/export_out.h"
#include "profiler/history/history.h"

enum { PRN_PAGE_LAYERS = 8 };

/* The values of a trend with intervals, levels and changes. */
void prn_history_chart(prn_out *out, const prn_trend *trend);
bool prn_history_has_layers(const prn_trend *trend);
/* The layers that take longest in the newest run; nothing without layers. */
PRN_MUST_USE prony_status prn_history_layers_chart(prn_out *out, const prn_trend *trend, prony_error *error);

#endif
