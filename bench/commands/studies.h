/* Studies side by side. */
#ifndef PRN_BENCH_COMMANDS_STUDIES_H
#define PRN_BENCH_COMMANDS_STUDIES_H

#include "bench/command.h"

bool is_study_file(const char *path);
/* Compares all arguments, which are studies, with the first one, and shows them as options say. *different:
 * configurations that differ. */
int show_studies(const options *o, size_t *different);

#endif
