/* Checks that a report's totals, layers and operators sum to the same counts, and that its figures are finite. */
#ifndef PRN_TESTS_SUPPORT_REPORT_COUNTS_H
#define PRN_TESTS_SUPPORT_REPORT_COUNTS_H

#include "prony_report.h"

#include <stddef.h>

/* false: `text` names the different count, the non-finite value, or the report's own fault. */
bool report_counts_agree(const prony_report *report, char *text, size_t size);

#endif
