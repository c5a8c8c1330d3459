/* PRONY_RANGES: ranges of runs and operators for another profiler (prony_ranges.h). */
#ifndef PRN_BENCH_PROCESS_RANGES_H
#define PRN_BENCH_PROCESS_RANGES_H

#include "bench/command.h"

/* EXIT_USAGE after a message: the variable names no tool. A tool that is missing gives a line on stderr if `tell`, and
 * the command goes on. */
int ranges_begin(const options *o, bool tell);

#endif
