/* Measures in several fresh processes. */
#ifndef PRN_BENCH_PROCESS_PROCESSES_H
#define PRN_BENCH_PROCESS_PROCESSES_H

#include "bench/command.h"

/* EXIT_USAGE after a message if an option needs a session in this process. */
int processes_refuse(const options *o);
/* Runs this command line o->processes times, one process after the other, and joins their reports. */
int processes_measure(const options *o, prony_report **out);

#endif
