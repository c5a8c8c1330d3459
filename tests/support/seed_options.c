/* The command line of tests that make random models from seeds. */
#include "tests/support/seed_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double seed_options_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool seed_options_include(const seed_options *options, uint64_t seed, double start)
{
    return options->seconds > 0 ? seed_options_now() - start < options->seconds
                                : seed - options->first < options->count;
}

static int save_graph(random_graph *g, const char *path)
{
    model_builder *m = random_graph_build(g);
    size_t size;
    const void *bytes = mb_finish(m, &size);
    FILE *to = fopen(path, "wb");
    const bool good = to && fwrite(bytes, 1, size, to) == size;
    if (to) fclose(to);
    mb_free(m);
    random_graph_free(g);
    return !good;
}

int seed_options_read(seed_options *options, int argc, char **argv, int (*print)(uint64_t seed),
                      random_graph *(*make)(uint64_t seed))
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        const uint64_t number = strtoull(value, NULL, 10);
        if (*value && strcmp(argv[i], "--seed") == 0) {
            options->first = number;
        } else if (number > 0 && strcmp(argv[i], "--count") == 0) {
            options->count = number;
        } else if (*value && strcmp(argv[i], "--seconds") == 0) {
            options->seconds = strtod(value, NULL);
        } else if (*value && strcmp(argv[i], "--only") == 0) {
            options->only = value;
        } else if (*value && print && strcmp(argv[i], "--print") == 0) {
            return print(number);
        } else if (i + 2 < argc && make && strcmp(argv[i], "--save") == 0) {
            return save_graph(make(number), argv[i + 2]);
        } else {
            fprintf(stderr, "unknown option, or one without a value: %s\n", argv[i]);
            return 2;
        }
    }
    return -1;
}
