#ifndef PRN_BENCH_SESSION_ACCURACY_H
#define PRN_BENCH_SESSION_ACCURACY_H

#include "bench/session/judge.h"

/* What --accuracy and --against ask for, into the report of the session; nothing without them. */
int add_accuracy(const options *o, const prony_model *model, prony_session *session, prony_report *report);
/* --accuracy of compare: each report gets the errors of its session beside the first model in float64. */
int add_accuracy_of_both(const options *o, const target *first, const target *second);
/* What a report's accuracy profile says first, and the operators that lose most; nothing where it has none. */
void print_accuracy(const char *name, const prony_report *report);

#endif
