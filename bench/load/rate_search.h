/* The largest rate of arrivals that keeps a latency bound: where to try, and what follows. Knows no clock and no
 * server; load_search.c has both, tests/unit/bench/test_rate_search.c simulates them. */
#ifndef PRN_BENCH_LOAD_RATE_SEARCH_H
#define PRN_BENCH_LOAD_RATE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATE_PRECISION 0.05

typedef struct rate_count {
    size_t queries, late; /* late ones among them */
} rate_count;

/* Makes a phase at a rate, a short one or a whole one. Anything but 0 ends the search. */
typedef int (*rate_try_fn)(void *user, double rate, bool whole, rate_count *out);

typedef struct rate_search {
    double top;        /* no rate above it is tried */
    double percentile; /* of the queries that have to be in time: 0.99 */
    double precision;  /* relative, of the rate */
    rate_try_fn phase;
    void *user;
} rate_search;

typedef struct rate_found {
    double rate;        /* at which just as many are late as may be; `top` where none up to it is too many; 0: none was
                           found */
    double interval[2]; /* 95 %; its upper end is infinite where no rate was too many */
    double kept;        /* the largest that a whole phase kept, by load_verdict; 0: none */
    bool precise;       /* the interval is within the precision */
} rate_found;

/* 0, or what a phase ended with; `out` then has what was found until then. */
int rate_search_run(const rate_search *search, rate_found *out);

/* Queries that may be late among `count` so that, with 99 % confidence, at most 1 - percentile of all are; -1: too few
 * queries for any statement. This is LoadGen's early stopping. */
int64_t load_allowed_late(size_t count, double percentile);
/* The fewest queries for which load_allowed_late is at least 1. */
size_t load_fewest_queries(double percentile);

typedef enum rate_verdict { RATE_KEPT, RATE_MISSED, RATE_UNDECIDED } rate_verdict;
/* What a phase says of a bound: kept with 99 % confidence, missed where more than 1 - percentile are late, undecided
 * between the two and where there are too few to say. */
rate_verdict load_verdict(rate_count phase, double percentile);

#endif
