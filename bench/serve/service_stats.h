/* Counts and times of one served model: totals since the start for /metrics, and the last 60 seconds, second by second,
 * for the live page and alerts. Thread-safe. */
#ifndef PRN_BENCH_SERVE_SERVICE_STATS_H
#define PRN_BENCH_SERVE_SERVICE_STATS_H

#include "prony_serve.h"

#include <pthread.h>

enum {
    STATS_BOUNDS = 18,     /* upper bounds of the histograms of times */
    STATS_SIZES = 12,      /* of batch sizes: 1, 2, 4, ... 2048 */
    STATS_STATUSES = 11,   /* statuses of HTTP that are counted apart; the last one: others */
    STATS_SECONDS = 60,    /* of the window */
    STATS_FINE = 28 * 32,  /* fine buckets: 32 to a power of two, from 1 us to 137 s; 3 % wide */
    STATS_OPERATORS = 512, /* rows of operators that are kept */
    STATS_NAME = 96
};

extern const double stats_bounds[STATS_BOUNDS]; /* seconds */
extern const int stats_statuses[STATS_STATUSES];

typedef struct stats_histogram {
    uint64_t buckets[STATS_BOUNDS + 1];
    uint64_t count;
    double sum; /* seconds */
} stats_histogram;

typedef struct stats_second {
    int64_t second; /* of the monotonic clock; 0: unused */
    uint32_t requests, failed, samples, runs, run_requests;
    int64_t run_ns, latency_sum_ns, latency_max_ns;
    uint32_t latency[STATS_FINE], queue[STATS_FINE];
} stats_second;

/* An operator's share of the run's time: a moving average over profiled runs. */
typedef struct stats_operator {
    char name[STATS_NAME], op[32], kernel[48];
    double share, time_ns;
} stats_operator;

typedef struct service_stats {
    pthread_mutex_t lock;
    uint64_t statuses[STATS_STATUSES];
    stats_histogram latency, queue, run;
    uint64_t sizes[STATS_SIZES + 1], size_sum, runs; /* of runs */
    uint64_t samples, reloads, reload_failures, sampled;
    stats_second seconds[STATS_SECONDS];
    stats_operator operators[STATS_OPERATORS];
    size_t operator_count;
    uint64_t arena_bytes;
    double monitor_overhead;
} service_stats;

/* Latencies of one version of a model, since it was loaded. Under the lock of the model's statistics. */
typedef struct stats_totals {
    uint64_t answered; /* requests with status 200 */
    double sum_ns;
    int64_t least_ns, most_ns;
    uint64_t latency[STATS_FINE];
} stats_totals;

/* A request that was answered. Times and samples count with status 200 only. */
typedef struct stats_request {
    int status;
    int64_t latency_ns, queue_ns, run_ns, samples;
    stats_totals *totals; /* of its version; NULL: no version has seen it */
} stats_request;

/* Figures of the last seconds. Times are ns; -1: no request. */
typedef struct stats_summary {
    uint64_t requests, failed, samples, runs;
    double seconds, rate, samples_rate, failed_share, mean_batch, busy; /* busy: sessions in runs, on average */
    int64_t p50, p90, p95, p99, mean, max, queue_p50, queue_p99;
} stats_summary;

service_stats *stats_create(void); /* NULL: out of memory */
void stats_free(service_stats *stats);
/* `now_ns`: of prony_now_ns. */
void stats_add_request(service_stats *stats, const stats_request *request, int64_t now_ns);
void stats_add_run(service_stats *stats, int64_t batch, int64_t run_ns, int64_t now_ns);
void stats_add_sample(service_stats *stats, const prony_sample *sample);
void stats_add_reload(service_stats *stats, bool worked);
/* The last `seconds` whole seconds before `now_ns`. */
stats_summary stats_summarize(service_stats *stats, int seconds, int64_t now_ns);
/* A consistent copy. */
stats_totals stats_copy_totals(service_stats *stats, const stats_totals *totals);
/* A quantile of at least one latency, 0 < part < 1: interpolated within its fine bucket. ns. */
double stats_totals_quantile(const stats_totals *totals, double part);
/* Copies the `most` operators with the largest shares, largest first; returns how many. */
size_t stats_top_operators(service_stats *stats, stats_operator *out, size_t most);
/* One second, `ago` whole seconds before now. */
stats_summary stats_of_second(service_stats *stats, int ago, int64_t now_ns);

#endif
