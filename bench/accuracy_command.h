#ifndef PRN_BENCH_ACCURACY_COMMAND_H
#define PRN_BENCH_ACCURACY_COMMAND_H

#include "bench/command.h"

/* What --accuracy and --against ask for, into the report of the session; nothing without them. */
int add_accuracy(const options *o, const prony_model *model, prony_session *session, prony_report *report);

#endif
