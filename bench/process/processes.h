/* Measuring in several fresh processes. */
#ifndef PRN_BENCH_PROCESS_PROCESSES_H
#define PRN_BENCH_PROCESS_PROCESSES_H

#include "bench/command.h"

/* EXIT_USAGE after a message if something is asked for that only a process with a session can do. */
int processes_refuse(const options *o);
/* Runs this command line o->measuring.processes times, one process after the other, and joins what they report. */
int processes_measure(const options *o, prony_report **out);

#endif
