/* Files that the command reads as a whole. */
#ifndef PRN_BENCH_TERMINAL_WHOLE_FILE_H
#define PRN_BENCH_TERMINAL_WHOLE_FILE_H

#include "bench/command.h"

/* All bytes of a file or pipe; the caller frees them. NULL after a message that names the file. */
char *whole_file(const options *o, const char *path, size_t *size);

#endif
