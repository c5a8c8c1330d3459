/* Searches the largest rate of arrivals that meets a latency bound: the next rate to try, and the result. Uses neither
 * clock nor server; load_search.c provides both, tests/unit/bench/test_rate_search.c simulates them. */
#ifndef PRN_BENCH_LOAD_RATE_SEARCH_H
#define PRN_BENCH_LOAD_RATE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATE_PRECISION 0.05

typedef struct rate_count {
    size_t queries, late; /* late ones among them */
} rate_count;

/* Runs a short or a whole phase at a rate. A result other than 0 ends the search. */
typedef int (*rate_try_fn)(void *user, double rate, bool whole, rate_count *out);

typedef struct rate_search {
    double top;        /* no rate above it is tried */
    double percentile; /* fraction of queries that have to be in time: 0.99 */
    double precision;  /* relative, of the rate */
    rate_try_fn phase;
    void *user;
} rate_search;

typedef struct rate_found {
    double rate;        /* rate with exactly the allowed number of late queries; `top` if no tried rate is too high; 0:
                           not found */
    double interval[2]; /* 95 %; its upper end is infinite if no rate was too high */
    double kept;        /* the largest rate of a whole phase that met the bound, by load_verdict; 0: none */
    bool precise;       /* the interval is within the precision */
} rate_found;

/* 0, or the result of the phase that ended the search; `out` then holds the findings so far. */
int rate_search_run(const rate_search *search, rate_found *out);

/* Queries that may be late among `count` so that, with 99 % confidence, at most 1 - percentile of all are; -1: too few
 * queries for any statement. This is LoadGen's early stopping. */
int64_t load_allowed_late(size_t count, double percentile);
/* The fewest queries for which load_allowed_late is at least 1. */
size_t load_fewest_queries(double percentile);

typedef enum rate_verdict { RATE_KEPT, RATE_MISSED, RATE_UNDECIDED } rate_verdict;
/* A phase's verdict on a bound: kept with 99 % confidence; missed if more than 1 - percentile are late; undecided
 * between the two or with too few queries. */
rate_verdict load_verdict(rate_count phase, double percentile);

#endif
