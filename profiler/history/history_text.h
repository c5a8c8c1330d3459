/* Shared by the texts of a history. */
#ifndef PRN_PROFILER_HISTORY_HISTORY_TEXT_H
#define PRN_PROFILER_HISTORY_HISTORY_TEXT_H

#include "profiler/exporters/text_cell.h"
#include "profiler/history/history.h"
#include "profiler/text/number_text.h"
#include "profiler/text/text_out.h"

enum { PRN_HISTORY_ROWS = 20 };

/* NULL: out of memory, as in `error`. prn_history_text_end releases it. */
prn_text *prn_history_text_begin(const prony_write_options *options, prony_write_fn write, void *user,
                                 prony_error *error);
PRN_MUST_USE prony_status prn_history_text_end(prn_text *text);

#endif
