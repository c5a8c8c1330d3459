/* prony bench over several configurations. */
#ifndef PRN_BENCH_COMMANDS_MATRIX_H
#define PRN_BENCH_COMMANDS_MATRIX_H

#include "bench/command.h"

/* true: the options name more than one configuration. */
bool is_matrix(const options *o);
/* `background_threads`: busy threads of another process meanwhile. */
int command_bench_matrix(const options *o, int background_threads);

#endif
