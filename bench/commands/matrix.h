/* prony bench over several configurations. */
#ifndef PRN_BENCH_COMMANDS_MATRIX_H
#define PRN_BENCH_COMMANDS_MATRIX_H

#include "bench/command.h"

/* Whether the options name more than one configuration. */
bool is_matrix(const options *o);
/* `background_threads` of another process are busy meanwhile. */
int command_bench_matrix(const options *o, int background_threads);

#endif
