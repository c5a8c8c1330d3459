/* A recording of runs; measure.c fills it, measure_report.c makes the report of it. */
#ifndef PRN_PROFILER_MEASURE_MEASURE_H
#define PRN_PROFILER_MEASURE_MEASURE_H

#include "base/os/disturbance.h"
#include "base/cpu/machine.h"
#include "engine/run/nested.h"
#include "engine/session/session.h"
#include "profiler/measure/core_use.h"
#include "profiler/measure/device_use.h"
#include "profiler/measure/thread_use.h"

typedef struct prn_recording {
    prony_session *session;
    const prony_profile_options *options;
    int64_t *latency_ns;
    int64_t *durations_ns; /* runs x operators; NULL without stamps */
    prn_nested *nested;    /* work in subgraphs in the last counted run */
    int64_t *nested_ns;    /* runs x steps of subgraphs; NULL without stamps or subgraphs */
    int64_t *sorted_ns;
    int64_t *before_ns, *after_ns; /* the caller's phases around each run; NULL: none */
    int64_t *worker_busy_ns;       /* of all recorded runs, by worker */
    int64_t covered_ns;            /* of all recorded runs: some operator ran */
    prn_event *in_order;           /* scratch: a run's events by their start */
    prn_thread_pool_share *shares; /* lent to the session's trace once all runs are counted; NULL: not asked for */
    prn_thread_use *team_use;      /* sums of those; NULL likewise */
    prn_device_sums *device_sums;  /* of the counted runs; NULL: no device, or no stamps */
    bool has_sensors;              /* `sensors` were read while the runs were counted */
    prony_device_sensors sensors;
    prn_cached_plan *cached; /* that all runs have in common */
    size_t runs, capacity, operators;
    int64_t warmup_runs;
    bool warmup_detected;
    const char *stop_reason;
    double max_seconds;
    int64_t begin_ns;                        /* start of the first session's time, warm-up included */
    int64_t expected_ns;                     /* duration of a run, from the last of the warm-up; 0: no warm-up */
    prn_usage usage;                         /* of the measured runs; time_ns is their wall time */
    prn_disturbance disturbance;             /* over all interleaved sessions of the measurement */
    prn_core_recorder cores;                 /* if one session has the process to itself */
    prn_report_cost cost;                    /* of profiling; pairs 0: not measured */
    size_t turn;                             /* scratch of run_round: the session at this position of the round */
    int64_t last_run_ns;                     /* when the last run was entered */
    int64_t traced_run_ns;                   /* its duration, if threads were traced; 0: it is the last sample */
    uint64_t own_heap_calls, all_heap_calls; /* in the runs of the recording */
    bool all_heap_known;
} prn_recording;

/* Times the session's run alone; times one of the caller's phases, 0 ns without one. */
prony_status prn_recording_timed(prn_recording *r, int64_t *latency_ns, prony_error *error);
prony_status prn_recording_phase(const prn_recording *r,
                                 prony_status (*phase)(void *user, prony_session *session, prony_error *error),
                                 int64_t *ns, prony_error *error);
/* A run that is not recorded, with the caller's phases around it. */
prony_status prn_recording_run(prn_recording *r, int64_t *latency_ns, prony_error *error);
/* Measures the cost of profiling, by at most as many pairs of runs as requested runs. */
prony_status prn_recording_cost(prn_recording *r, prony_error *error);
/* Counts hardware events per operator in additional runs, if requested; called after the report is made
 * (measure_counters.c). */
prony_status prn_recording_count(prony_report *report, prn_recording *r, prony_error *error);
prony_status prn_recording_report(prony_report **out, prn_recording *r, prony_error *error);

#endif
