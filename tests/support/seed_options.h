/* The command line of tests that make random models from seeds:
 *
 *     --seed FIRST --count N      N of them, from seed FIRST on
 *     --seconds S                 for so long, instead of a count
 *     --only NAME                 tests or operators of that name
 *     --print SEED                the model of a seed as text
 *     --save SEED FILE            and as ONNX */
#ifndef PRN_TESTS_SUPPORT_SEED_OPTIONS_H
#define PRN_TESTS_SUPPORT_SEED_OPTIONS_H

#include "tests/support/random_graph.h"

typedef struct seed_options {
    uint64_t first, count;
    double seconds;   /* 0: `count` decides */
    const char *only; /* NULL: all */
} seed_options;

/* Reads the command line. Returns -1 when the tests are to run; otherwise the exit status: of --print, which `print`
 * serves, of --save, for which `make` makes the graph, or 2 for an unknown option. A program without these functions
 * passes NULL and does not know the option. */
int seed_options_read(seed_options *options, int argc, char **argv, int (*print)(uint64_t seed),
                      random_graph *(*make)(uint64_t seed));
/* Seconds of a monotonic clock. */
double seed_options_now(void);
/* true: `seed` is a requested one; `start` is the time of the first one. */
bool seed_options_include(const seed_options *options, uint64_t seed, double start);

#endif
