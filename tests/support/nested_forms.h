/* Reports as text, for tests of subgraphs in them. A failure ends the test. */
#ifndef PRN_TESTS_SUPPORT_NESTED_FORMS_H
#define PRN_TESTS_SUPPORT_NESTED_FORMS_H

#include "prony_report.h"

/* The caller frees the text with prn_free. `options` NULL: the defaults. */
char *nested_write(const prony_report *report, prony_format format, const prony_write_options *options);
/* `part` is in the text. */
void nested_expect(const char *text, const char *part);
void nested_expect_same(const char *a, const char *b);
/* Checks that a report written as JSON and read back is the same in every format. */
void nested_round_trip(const prony_report *report);

#endif
