/* Parts of the terminal report, between report_text.c (options, model summary) and report_text_layers.c,
 * report_text_tables.c (the tables). */
#ifndef PRN_PROFILER_EXPORTERS_REPORT_TEXT_H
#define PRN_PROFILER_EXPORTERS_REPORT_TEXT_H

#include "profiler/text/text_out.h"
#include "profiler/report/report_select.h"

/* A blank line and a heading, followed by `note`. */
void prn_text_heading(prn_text *text, const char *title, const char *note);

/* Number of rows that `top` shows (0: all), and the line with the number of hidden ones. */
size_t prn_text_shown_rows(size_t count, size_t top);
void prn_text_hidden_rows(prn_text *text, size_t hidden, const char *noun);

/* A warning if other processes disturbed the runs. */
void prn_text_busy(prn_text *text, const prony_report *report);
/* The bottleneck and its reason, in three sentences; in one sentence if nothing was measured. */
PRN_MUST_USE prony_status prn_text_in_short(prn_text *text, const prony_report *report, prony_error *error);
/* The memory that the process holds, as one sum; false: not known, and nothing was written. */
bool prn_text_held(prn_text *text, const prony_report *report);
/* `top` 0 shows all types. */
PRN_MUST_USE prony_status prn_text_types(prn_text *text, const prony_report *report, size_t top, prony_error *error);
/* The bottleneck by the roofline; nothing without stamps. */
PRN_MUST_USE prony_status prn_text_roof(prn_text *text, const prony_report *report, prony_error *error);
/* After the latency: with `all` steady state, outliers and histogram; else only a warning if the state was not
 * steady. */
PRN_MUST_USE prony_status prn_text_latency(prn_text *text, const prony_report *report, bool all, prony_error *error);
/* Critical path and use of the processors, after the measurement quality. */
PRN_MUST_USE prony_status prn_text_holdups(prn_text *text, const prony_report *report, prony_error *error);
/* The module tree down to `depth` levels below the root; 0: all of it. */
PRN_MUST_USE prony_status prn_text_modules(prn_text *text, const prony_report *report, int64_t depth, size_t top,
                                           prony_error *error);
/* Hardware counters, if they were requested. */
PRN_MUST_USE prony_status prn_text_counters(prn_text *text, const prony_report *report, size_t top, prony_error *error);
/* The effect of kernels chosen by measurement, if they were requested. */
void prn_text_tuning(prn_text *text, const prony_report *report);
/* The device's part of a run; nothing without one. `all`: every copy. */
PRN_MUST_USE prony_status prn_text_device(prn_text *text, const prony_report *report, bool all, prony_error *error);
/* The operators that lose accuracy, if that was measured; `top` 0: all of them. */
PRN_MUST_USE prony_status prn_text_accuracy(prn_text *text, const prony_report *report, size_t top, prony_error *error);
PRN_MUST_USE prony_status prn_text_layers(prn_text *text, const prn_selection *selection, size_t top,
                                          prony_error *error);
PRN_MUST_USE prony_status prn_text_operators(prn_text *text, const prn_selection *selection, size_t top,
                                             prony_error *error);
PRN_MUST_USE prony_status prn_text_memory_table(prn_text *text, const prn_selection *selection, size_t top,
                                                prony_error *error);

/* Marks of tables, collected in prn_text's `marks`. */
enum {
    PRN_MARK_ESTIMATED = 1 << 0,
    PRN_MARK_REMOVED = 1 << 1,
    PRN_MARK_FOLDED = 1 << 2,
    PRN_MARK_DYNAMIC = 1 << 3,
    PRN_MARK_CANCELLED = 1 << 4,
    PRN_MARK_FEW_RUNS = 1 << 5
};

/* The report's legend: a line for each mark that occurred. */
void prn_text_marks(prn_text *text, const prony_report *report);

#endif
