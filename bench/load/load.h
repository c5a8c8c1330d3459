/* prony bench --scenario: service loads modelled on MLPerf's LoadGen. load.c selects the scenario, load_issue.c issues
 * requests and collects their times, load_search.c searches the largest rate, load_figures.c computes statistics,
 * load_write.c shows them. */
#ifndef PRN_BENCH_LOAD_LOAD_H
#define PRN_BENCH_LOAD_LOAD_H

#include "bench/command.h"
#include "bench/load/rate_search.h"
#include "prony_serve.h"

#include <pthread.h>

typedef enum scenario { SCENARIO_SINGLE, SCENARIO_MULTI, SCENARIO_SERVER, SCENARIO_OFFLINE } scenario;
/* "single", "multi", "server", "offline"; NULL ends the list. */
extern const char *const scenario_names[];

/* A query: one request, or in `multi` several that are issued together. */
typedef struct query {
    int64_t scheduled_ns; /* its planned time of issue; latency counts from here */
    int64_t issued_ns, finished_ns;
    int64_t started_ns; /* of its first run */
    int64_t batch;      /* requests in the run that ended it */
    int left, failed;   /* its requests in flight; its failed requests */
    struct load *load;
} query;

/* The results of one phase of load. Times are ns. */
typedef struct load_result {
    scenario scenario;
    double rate; /* requested rate of arrivals; 0: none */
    size_t queries, failed;
    int64_t samples;     /* of all queries */
    double seconds;      /* from the first query's schedule to the last one's end */
    int64_t *latency_ns; /* [queries], in order of issue; of those that did not fail */
    size_t latency_count;
    prony_time_stats latency, queue, run, lag; /* lag: issued behind schedule */
    double mean_batch;
    int64_t quantile_ns, quantile_bound_ns; /* of the judged percentile; bound: with 99 % confidence, -1: too few */
    bool quantile_valid;
    size_t over_bound; /* queries later than the latency bound, failed ones included */
    bool met;          /* the bound, with 99 % confidence */
    bool likely_met;   /* by these queries alone, without confidence */
    bool cut_short;    /* ended early: the bound was out of reach */
} load_result;

/* One rank of several that issue loads at once. */
typedef struct load_rank {
    const char *node;
    size_t queries;
    int64_t span_ns; /* from the common beginning to its last query's end */
} load_rank;

/* Calls by which a program with several ranks shares a load; they return EXIT_DONE or an exit status. */
typedef struct load_ranks {
    int rank, count;
    load_rank *rows;          /* [count], filled by `gather` on rank 0 */
    int (*begin)(void *user); /* before the measured phase: waits for all ranks */
    bool (*stop)(void *user); /* during it, a few times per second: true ends the load */
    /* After it: on rank 0 the queries of all ranks take the place of its own, in the order of their schedule. */
    int (*gather)(void *user, query **queries, size_t *count);
    void *user;
} load_ranks;

/* State shared by all phases. */
typedef struct load {
    const options *o;
    const load_ranks *ranks; /* NULL: one process */
    prony_model *model;
    prony_session *session; /* binds the inputs, and runs `single` */
    prony_batcher *batcher; /* NULL for `single` */
    const prony_value **inputs;
    size_t input_count;
    int64_t samples_per_request;
    scenario scenario;
    int streams, threads, requests_per_query;
    double percentile; /* 0.99 */
    int64_t bound_ns;  /* 0: none */
    prony_batch_trial trial;
    int background_threads;
    pthread_mutex_t lock;
    pthread_cond_t change;
    size_t in_progress; /* queries */
    size_t over;        /* of the phase: later than bound_ns, or failed */
    char failure[256];  /* of the first request that failed */
} load;

/* The plan of a phase: at least `seconds` and `least` queries, but at most `most` queries (0: no limit) and `longest`
 * seconds. */
typedef struct load_plan {
    double seconds, longest;
    size_t least, most;
    double rate;  /* server: arrivals per second */
    bool give_up; /* server: ends when the bound is missed beyond doubt */
    bool shared;  /* the phase is one of all ranks */
    uint64_t seed;
} load_plan;

/* 0, or EXIT_FAILED after a message. The result is to be freed with load_result_free. */
int load_issue(load *l, const load_plan *plan, load_result *out);
void load_result_free(load_result *result);

/* For qsort: ascending times. */
int load_figures_compare_times(const void *left, const void *right);
/* Computes the statistics of `out`, whose scenario and rate are set, from `queries`. */
int load_figures(const load *l, const query *queries, size_t count, load_result *out);

/* All phases of a search, in order, and the result. Zero-initialise; the caller frees `steps`. */
typedef struct load_searched {
    load_result *steps; /* without their latencies */
    size_t count;
    rate_found found;
} load_searched;
/* The largest rate that meets the bound. `out` is the whole phase that met the bound, or the last one that missed
 * it. */
int load_search(load *l, load_result *out, load_searched *searched);

/* Writes text on stdout and JSON to --json's file. */
int load_write(const load *l, const load_result *result, const load_searched *searched);

int command_bench_load(const options *o);
/* `ranks` NULL: this process alone. Rank 0 writes the results. */
int bench_load(const options *o, const load_ranks *ranks);

/* ---- --with-load ---- */

/* A child process with a busy thread pinned to each processor that this process may use; it ends with its parent. */
typedef struct busy {
    int child, pipe, threads;
} busy;
/* Called before sessions exist: no thread may hold a lock at the fork, because the child does not inherit threads. */
int busy_start(busy *b, const options *o);
void busy_stop(busy *b);

#endif
