/* Accuracy profiles of profile, bench and compare: --accuracy, --against. */
#ifndef PRN_BENCH_SESSION_ACCURACY_H
#define PRN_BENCH_SESSION_ACCURACY_H

#include "bench/session/judge.h"

/* Adds the results of --accuracy and --against to the session's report; does nothing without these options. */
int add_accuracy(const options *o, const prony_model *model, prony_session *session, prony_report *report);
/* --accuracy of compare: adds to each report the errors of its session against the first model in float64. */
int add_accuracy_of_both(const options *o, const target *first, const target *second);
/* Prints the verdict of a report's accuracy profile, and the operators that lose most; nothing without a profile. */
void print_accuracy(const char *name, const prony_report *report);

#endif
