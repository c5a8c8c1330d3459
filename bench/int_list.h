/* Lists of numbers on the command line: "1,2,4-8". */
#ifndef PRN_BENCH_INT_LIST_H
#define PRN_BENCH_INT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INT_LIST_MOST 256

typedef struct int_list {
    int64_t values[INT_LIST_MOST];
    size_t count;
} int_list;

/* Numbers from `min` to `max` and ascending ranges, comma-separated, each value once and in the order given;
 * `automatic` (may be NULL) is a word that stands for 0. false: not such a list, or more than INT_LIST_MOST. */
bool int_list_parse(int_list *list, const char *text, int64_t min, int64_t max, const char *automatic);

#endif
