/* Serving: requests of many threads combined into runs, and watching the runs of a session. Conventions: prony.h. */
#ifndef PRONY_SERVE_H
#define PRONY_SERVE_H

#include "prony_report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- batching ---- */

/* Serves requests of many threads with a few sessions on one model's weights, and combines requests into one run along
 * the first dimension of inputs and outputs.
 *
 * A run takes 1, max_batch, or one of two sizes between (powers of two), so that each session keeps its plans; of the
 * requests that wait it takes the largest such number, oldest first. Requests are combined if each is one sample (first
 * dimension 1 of every input) and their types and other dimensions agree; every other request runs alone. If a combined
 * run fails, each of its requests runs again alone, so that a bad request fails alone.
 *
 * Combining is right for models that treat the samples of a batch apart, which a model file does not tell:
 * normalisation or quantisation over the batch is not. Even then a sample's result may differ in the last bits from
 * that of its run alone, because kernels are chosen by shape; at one place in runs of one size it does not depend on
 * the samples beside it. prony_batcher_trial says what held for this model. */
typedef struct prony_batcher prony_batcher;

typedef struct prony_batcher_options {
    size_t struct_size;
    int sessions;      /* sessions that run at the same time, each on a thread of its own; 0: 1 */
    int64_t max_batch; /* samples in one run, at most 65536; 0 and 1: requests are not combined */
    /* Longest wait of a request for others, from its submission. 0: only waiting requests are combined. INT64_MAX:
     * until the batch is full or the batcher is closed. */
    int64_t max_wait_ns;
    size_t max_queue; /* requests that may wait; 0: 65536 */
} prony_batcher_options;
#define PRONY_BATCHER_OPTIONS_INIT PRONY_INIT(prony_batcher_options)

/* Starts the threads and makes one run of every batch size on generated inputs in each session, so that no request pays
 * for planning. `session` may be NULL; auto threads are the machine's over `sessions`, and sessions share its affinity
 * list one after another. With max_batch above 1, an input or output whose first dimension is fixed, or that is not a
 * tensor of numbers (outputs: not a tensor), is PRONY_INVALID_ARGUMENT. */
PRONY_API PRONY_MUST_USE prony_status prony_batcher_create(prony_batcher **out, prony_model *model,
                                                           const prony_session_options *session,
                                                           const prony_batcher_options *options, prony_error *error);
/* Accepts no more requests: prony_batcher_submit fails with PRONY_CANCELLED from now on. Waiting requests are
 * served; with `drop` the calling thread ends them with PRONY_CANCELLED at once. Runs that have begun are finished.
 * The function returns before they end. */
PRONY_API void prony_batcher_close(prony_batcher *batcher, bool drop);
/* Closes without dropping, waits until every request is done, and frees. Not to be called from a `done` function, nor
 * while another thread may still use the batcher. */
PRONY_API void prony_batcher_release(prony_batcher *batcher);

/* Borrowed: valid during the call of `done`. Times are of the library's monotonic clock. */
typedef struct prony_batch_result {
    prony_status status;
    const char *message;               /* what went wrong; "" */
    const prony_value *const *outputs; /* outputs of this request, in model order; NULL: it failed */
    size_t output_count;
    int64_t batch; /* requests in the run that served it */
    /* started_ns: start of the run; minus submitted_ns: time in the queue. */
    int64_t submitted_ns, started_ns, finished_ns;
    int64_t index; /* of this request in its run, from 0; `done` is called in this order. 0: also without a run */
} prony_batch_result;

/* Called once for every accepted request, by a thread of the batcher or of prony_batcher_close, or by a submission that
 * finds the queue full of requests past their deadline. It may submit. */
typedef void (*prony_batch_done)(void *user, const prony_batch_result *result);

/* Submits a request: a value per model input, in model order. The batcher borrows the values and their data until
 * `done` returns. Values that do not fit the model's inputs are refused here; a full queue is PRONY_LIMIT.
 * Thread-safe. */
PRONY_API PRONY_MUST_USE prony_status prony_batcher_submit(prony_batcher *batcher, const prony_value *const *inputs,
                                                           size_t count, prony_batch_done done, void *user,
                                                           prony_error *error);
/* As prony_batcher_submit, with a deadline on prony_now_ns's clock (0: none). A request whose run has not begun by then
 * ends with PRONY_CANCELLED and does not run. A deadline never delays a request; every request's deadline shortens the
 * wait of all for others, to half of the time that is left. */
PRONY_API PRONY_MUST_USE prony_status prony_batcher_submit_until(prony_batcher *batcher,
                                                                 const prony_value *const *inputs, size_t count,
                                                                 int64_t deadline_ns, prony_batch_done done, void *user,
                                                                 prony_error *error);
/* Requests that wait now. Thread-safe. */
PRONY_API size_t prony_batcher_waiting(prony_batcher *batcher);
/* Submits and waits. outputs[i] of `output_count` (the model's) are copies that the caller releases; on failure all are
 * NULL. Thread-safe. */
PRONY_API PRONY_MUST_USE prony_status prony_batcher_run(prony_batcher *batcher, const prony_value *const *inputs,
                                                        size_t count, prony_value **outputs, size_t output_count,
                                                        prony_error *error);

/* Result of the runs of prony_batcher_create: samples run alone against the same samples combined. */
typedef struct prony_batch_trial {
    bool known;      /* false: requests are not combined, or the model did not run on generated inputs */
    bool identical;  /* bit for bit */
    double largest;  /* difference over the largest magnitude in the output; 1: values other than floats differ */
    int sizes_count; /* that runs have, ascending */
    int64_t sizes[4];
    int threads; /* of each session */
} prony_batch_trial;
/* Result of the runs that prony_batcher_create made. Thread-safe. */
PRONY_API prony_batch_trial prony_batcher_trial(const prony_batcher *batcher);

/* ---- simulation of a batcher ---- */

/* Measured times of runs of `batch` requests; a simulated run draws one of them. */
typedef struct prony_service_times {
    int64_t batch;
    const int64_t *samples_ns;
    size_t count; /* at least 1 */
} prony_service_times;

/* A load on a batcher. The first four fields mean the same as in prony_batcher_options. */
typedef struct prony_batch_load {
    size_t struct_size;
    int sessions;
    int64_t max_batch, max_wait_ns;
    size_t max_queue;
    const prony_service_times *times; /* one row for each size of a run (prony_batch_run_sizes) */
    size_t times_count;
    int64_t dispatch_ns; /* from a request's submission to the start of its run, if a session is idle */
    double rate;         /* arrivals per second, of a Poisson process */
    uint64_t requests;   /* 0: 100000 */
    uint64_t seed;
    double percentile;     /* 0: 0.99 */
    int64_t give_up_queue; /* the simulation ends early if so many requests wait; 0: never */
} prony_batch_load;
#define PRONY_BATCH_LOAD_INIT PRONY_INIT(prony_batch_load)

/* Latencies count from a request's arrival to the end of its run. */
typedef struct prony_batch_forecast {
    uint64_t served, refused; /* refused: the queue was full */
    bool gave_up;             /* give_up_queue was reached: the load is beyond what the sessions can serve */
    int64_t median_ns, quantile_ns, max_ns;
    double mean_batch;  /* requests per run */
    double utilisation; /* share of the sessions' time inside runs */
    size_t longest_queue;
} prony_batch_forecast;

/* Discrete-event simulation of a batcher under this load, by the batcher's own rules; all requests can be combined. */
PRONY_API PRONY_MUST_USE prony_status prony_batcher_simulate(prony_batch_forecast *out, const prony_batch_load *load,
                                                             prony_error *error);
/* The numbers of requests that runs take with this max_batch, ascending; returns how many, at most 4. */
PRONY_API int prony_batch_run_sizes(int64_t max_batch, int64_t sizes[4]);

/* ---- watching a service ---- */

typedef struct prony_sample_row {
    uint32_t index;
    const char *name, *op, *kernel;
    int64_t time_ns; /* in the sampled run */
} prony_sample_row;

/* One run in N, whose operators were timed. Borrowed: valid during the callback. */
typedef struct prony_sample {
    uint64_t run;             /* number of the run since the monitor was set, from 1 */
    int64_t latency_ns;       /* of this run */
    prony_time_stats latency; /* statistics of the runs since the previous sample, at most the last 1024 */
    const prony_sample_row *operators;
    size_t operator_count;
    uint64_t arena_bytes;    /* planned for the session's buffers */
    uint64_t resident_bytes; /* of the process; 0: not known */
    double overhead;         /* cost of monitoring so far, over the time of all runs; without callbacks */
} prony_sample;

typedef enum prony_alert_kind { PRONY_ALERT_LATENCY, PRONY_ALERT_MEMORY } prony_alert_kind;
typedef struct prony_alert {
    prony_alert_kind kind;
    uint64_t run;
    uint64_t value, threshold; /* ns, or bytes */
} prony_alert;

typedef struct prony_monitor_options {
    size_t struct_size;
    uint64_t every;                                         /* one run in `every` is profiled; at least 1 */
    void (*sample)(void *user, const prony_sample *sample); /* may be NULL */
    int64_t latency_above_ns;                               /* asked of every run; 0: no alert */
    uint64_t memory_above_bytes;                            /* of the process, asked of sampled runs; 0: no alert */
    void (*alert)(void *user, const prony_alert *alert);    /* may be NULL */
    void *user;
} prony_monitor_options;
#define PRONY_MONITOR_OPTIONS_INIT PRONY_INIT_WITH(prony_monitor_options, every, 1000)

/* From now on prony_session_run takes two clock readings, and one run in `every` also times its operators, whatever
 * `no_profile` says; other runs do not. Callbacks are called by the running thread and may not use the session
 * but for its outputs. NULL ends it. Not for use together with prony_session_profile (PRONY_INVALID_ARGUMENT). */
PRONY_API PRONY_MUST_USE prony_status prony_session_monitor(prony_session *session,
                                                            const prony_monitor_options *options, prony_error *error);
/* As above for every session of a batcher; callbacks come from the batcher's threads, several at once. Not while a
 * request waits or runs: call it before the first one. */
PRONY_API PRONY_MUST_USE prony_status prony_batcher_monitor(prony_batcher *batcher,
                                                            const prony_monitor_options *options, prony_error *error);

#ifdef __cplusplus
}
#endif
#endif
