/* Selects and orders the rows of a table: `sort` and `filter` of prony_write_options. */
#ifndef PRN_PROFILER_REPORT_REPORT_SELECT_H
#define PRN_PROFILER_REPORT_REPORT_SELECT_H

#include "profiler/report/report.h"

typedef enum prn_row_key {
    PRN_KEY_INDEX,
    PRN_KEY_TIME,
    PRN_KEY_MACS,
    PRN_KEY_FLOPS,
    PRN_KEY_PARAMETERS,
    PRN_KEY_BYTES,
    PRN_KEY_MADDS,
    PRN_KEY_SPECIAL,
    PRN_KEY_INT_OPS,
    PRN_KEY_MEMORY,    /* bytes of the outputs */
    PRN_KEY_COUNT,     /* by the counting preset; of layers */
    PRN_KEY_RATE,      /* FLOP/s */
    PRN_KEY_INTENSITY, /* FLOP per byte */
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
    const char *glob;    /* borrowed from the options */
    bool with_subgraphs; /* only rows with subgraphs */
} prn_selection;

/* Refuses an unknown key, naming it and the known ones. */
PRN_MUST_USE prony_status prn_select_init(prn_selection *selection, const prony_report *report,
                                          const prony_write_options *options, prony_error *error);
/* Numbers descend, names ascend, equal rows keep the model's order. The caller releases *rows by prn_free. */
PRN_MUST_USE prony_status prn_select_layers(const prn_selection *selection, uint32_t **rows, size_t *count,
                                            prony_error *error);
PRN_MUST_USE prony_status prn_select_operators(const prn_selection *selection, uint32_t **rows, size_t *count,
                                               prony_error *error);

/* true: the filter selects the row, or the nested row; without a filter every row. */
bool prn_select_passes(const prn_selection *selection, bool layer, uint32_t row);
bool prn_select_nested_passes(const prn_selection *selection, bool layer, const prony_nested_row *row);
/* The sort key's quantity of a row in a subgraph. */
double prn_select_nested_value(const prn_selection *selection, const prony_nested_row *row);

/* true: the key is a quantity that can be summed over rows. */
bool prn_select_sums_up(prn_row_key key);
/* The sort key's quantity of a layer or operator; 0: not known. */
double prn_select_value(const prn_selection *selection, bool layer, uint32_t row);

/* The nested rows of `owner`: the first, and how many. Rows ascend by owner. */
size_t prn_nested_of(const prony_nested_row *rows, size_t count, uint32_t owner, size_t *first);

#endif
