/* Shared libraries that few commands need, loaded when one of them begins. */
#ifndef PRN_BENCH_PROCESS_LATE_LIBRARY_H
#define PRN_BENCH_PROCESS_LATE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Loads the library of the name that it has for the system (its SONAME), and stores `count` functions in `functions`, a
 * struct of as many function pointers in the order of `names`. The library stays. Does nothing if they are there
 * already. false: *why says the reason, until the next call of dlerror. */
bool late_library_load(const char *soname, const char *const *names, size_t count, void *functions, const char **why);

#endif
