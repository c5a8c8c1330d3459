/* prony scale: between scale.c (the command), scale_processes.c (its processes) and worker.c (what such a process does).
 */
#ifndef PRN_BENCH_COMMANDS_SCALE_H
#define PRN_BENCH_COMMANDS_SCALE_H

#include "bench/command.h"
#include "prony_judge.h"

/* Runs one task in a process of its own and adds what came of it to the study. EXIT_DONE also where the process failed,
 * which is kept; nothing is added after an interruption. `seconds_limit`: when a process that does not answer is ended.
 */
int scale_run_task(const options *o, prony_study *study, const prony_study_task *task, double seconds_limit);

#endif
