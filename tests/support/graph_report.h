/* The report of one run of a random graph. */
#ifndef PRN_TESTS_SUPPORT_GRAPH_REPORT_H
#define PRN_TESTS_SUPPORT_GRAPH_REPORT_H

#include "prony_report.h"
#include "tests/support/graph_run.h"

/* The counts that rewrites must not change. */
typedef struct graph_counts {
    prony_cost cost;
    size_t layers;
} graph_counts;

/* Profiles one run of the model. Checks that the report's sums agree, its values are finite, and its text and JSON have
 * neither NaN nor a request to report a fault. false: `text` has the reason. `counts` may be NULL. */
bool graph_report_agrees(const graph_model *m, graph_counts *counts, char *text, size_t size);

#endif
