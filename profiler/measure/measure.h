/* A recording of runs; measure.c fills it, measure_report.c makes the report of it. */
#ifndef PRN_PROFILER_MEASURE_MEASURE_H
#define PRN_PROFILER_MEASURE_MEASURE_H

#include "base/os/disturbance.h"
#include "base/cpu/machine.h"
#include "engine/run/nested.h"
#include "engine/session/session.h"
#include "profiler/measure/core_use.h"
#include "profiler/measure/thread_use.h"

typedef struct prn_recording {
    prony_session *session;
    const prony_profile_options *options;
    int64_t *latency_ns;
    int64_t *durations_ns; /* runs x operators; NULL without stamps */
    prn_nested *nested;    /* what ran in subgraphs in the last run that counted */
    int64_t *nested_ns;    /* runs x steps of subgraphs; NULL without stamps, or where there are none */
    int64_t *sorted_ns;
    int64_t *before_ns, *after_ns; /* the caller's phases around each run; NULL where it has none */
    int64_t *worker_busy_ns;       /* of all recorded runs, by worker */
    int64_t covered_ns;            /* of all recorded runs: some operator ran */
    prn_event *in_order;           /* scratch: a run's events by their start */
    prn_thread_pool_share *shares; /* lent to the session's trace once all runs are counted; NULL: not asked for */
    prn_thread_use *team_use;      /* sums of those; NULL likewise */
    prn_cached_plan *cached;       /* that all runs have in common */
    size_t runs, capacity, operators;
    int64_t warmup_runs;
    bool warmup_detected;
    const char *stop_reason;
    double max_seconds;
    int64_t begin_ns;                        /* of the first session's: when its time began, warm-up included */
    int64_t expected_ns;                     /* what a run takes, by the last of the warm-up; 0: there was none */
    prn_usage usage;                         /* of the measured runs; time_ns is their wall time */
    prn_disturbance disturbance;             /* while all sessions of the measurement took their turns */
    prn_core_recorder cores;                 /* where one session has the process to itself */
    prn_report_cost cost;                    /* of profiling; pairs 0: not measured */
    size_t turn;                             /* scratch of run_round: whose turn it is at this place */
    int64_t last_run_ns;                     /* when the last run was entered */
    int64_t traced_run_ns;                   /* how long it took, where threads were traced; 0: it is the last sample */
    uint64_t own_heap_calls, all_heap_calls; /* in the runs of the recording */
    bool all_heap_known;
} prn_recording;

/* The session's run alone; one of the caller's phases, 0 ns where there is none. */
prony_status prn_recording_timed(prn_recording *r, int64_t *latency_ns, prony_error *error);
prony_status prn_recording_phase(const prn_recording *r,
                                 prony_status (*phase)(void *user, prony_session *session, prony_error *error),
                                 int64_t *ns, prony_error *error);
/* A run that is not recorded, with the caller's phases around it. */
prony_status prn_recording_run(prn_recording *r, int64_t *latency_ns, prony_error *error);
/* Measures what profiling costs; where a number of runs was asked for, by no more pairs of runs than that. */
prony_status prn_recording_cost(prn_recording *r, prony_error *error);
/* Counts hardware events per operator in some more runs, if that was asked for; after the report
 * (measure_counters.c). */
prony_status prn_recording_count(prony_report *report, prn_recording *r, prony_error *error);
prony_status prn_recording_report(prony_report **out, prn_recording *r, prony_error *error);

#endif
