/* Which rows a table shows and in which order: the `sort` and `filter` of prony_write_options. */
#ifndef PRN_PROFILER_REPORT_SELECT_H
#define PRN_PROFILER_REPORT_SELECT_H

#include "profiler/report.h"

typedef enum prn_row_key {
    PRN_KEY_INDEX,
    PRN_KEY_TIME,
    PRN_KEY_MACS,
    PRN_KEY_FLOPS,
    PRN_KEY_PARAMETERS,
    PRN_KEY_BYTES,
    PRN_KEY_NAME,
    PRN_KEY_OP,
    PRN_KEY_MODULE,
    PRN_KEY_KERNEL
} prn_row_key;

typedef struct prn_selection {
    const prony_report *report;
    prn_row_key sort;
    bool filtered;
    prn_row_key filter;
    const char *glob; /* borrowed from the options */
} prn_selection;

/* Refuses an unknown key, naming it and those there are. */
PRN_MUST_USE prony_status prn_select_init(prn_selection *selection, const prony_report *report,
                                          const prony_write_options *options, prony_error *error);
/* Numbers descend, names ascend, equal rows keep the model's order. The caller releases *rows by prn_free. */
PRN_MUST_USE prony_status prn_select_layers(const prn_selection *selection, uint32_t **rows, size_t *count,
                                            prony_error *error);
PRN_MUST_USE prony_status prn_select_operators(const prn_selection *selection, uint32_t **rows, size_t *count,
                                               prony_error *error);

#endif
