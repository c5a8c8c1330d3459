/* Parts of the terminal report, between report_text.c (options, model summary) and report_text_layers.c,
 * report_text_tables.c (the tables). */
#ifndef PRN_PROFILER_EXPORTERS_REPORT_TEXT_H
#define PRN_PROFILER_EXPORTERS_REPORT_TEXT_H

#include "profiler/text/text_out.h"
#include "profiler/report/report_select.h"

/* A blank line and a heading; `note` stands behind it. */
void prn_text_heading(prn_text *text, const char *title, const char *note);

/* Rows of a table that `top` leaves, 0 meaning all; and the line that says how many it hides. */
size_t prn_text_shown_rows(size_t count, size_t top);
void prn_text_hidden_rows(prn_text *text, size_t hidden, const char *noun);

/* That other processes disturbed the runs, if they did. */
void prn_text_busy(prn_text *text, const prony_report *report);
/* What dominates and why, in three sentences; in one where nothing was measured. */
PRN_MUST_USE prony_status prn_text_in_short(prn_text *text, const prony_report *report, prony_error *error);
/* The memory that the process holds, as one sum; false: it is not known, and nothing was written. */
bool prn_text_held(prn_text *text, const prony_report *report);
/* `top` 0 shows all types. */
PRN_MUST_USE prony_status prn_text_types(prn_text *text, const prony_report *report, size_t top, prony_error *error);
/* What dominates and why, by the roofline; nothing where no operator was stamped. */
PRN_MUST_USE prony_status prn_text_roof(prn_text *text, const prony_report *report, prony_error *error);
/* Behind the latency's figures, with `all` steady state, outliers and histogram; else only that the state was not
 * steady. */
PRN_MUST_USE prony_status prn_text_latency(prn_text *text, const prony_report *report, bool all, prony_error *error);
/* Critical path and use of the processors, behind the figures of trust. */
PRN_MUST_USE prony_status prn_text_holdups(prn_text *text, const prony_report *report, prony_error *error);
/* The module tree down to `depth` levels below the root; 0: all of it. */
PRN_MUST_USE prony_status prn_text_modules(prn_text *text, const prony_report *report, int64_t depth, size_t top,
                                           prony_error *error);
/* Hardware counters, where they were asked for. */
PRN_MUST_USE prony_status prn_text_counters(prn_text *text, const prony_report *report, size_t top, prony_error *error);
/* What kernels by measurement changed, where they were asked for. */
void prn_text_tuning(prn_text *text, const prony_report *report);
/* Which operators lose accuracy, where that was measured; `top` 0: all that lose any. */
PRN_MUST_USE prony_status prn_text_accuracy(prn_text *text, const prony_report *report, size_t top, prony_error *error);
PRN_MUST_USE prony_status prn_text_layers(prn_text *text, const prn_selection *selection, size_t top,
                                          prony_error *error);
PRN_MUST_USE prony_status prn_text_operators(prn_text *text, const prn_selection *selection, size_t top,
                                             prony_error *error);
PRN_MUST_USE prony_status prn_text_memory_table(prn_text *text, const prn_selection *selection, size_t top,
                                                prony_error *error);

#endif
