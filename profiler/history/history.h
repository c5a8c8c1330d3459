/* Runs, their groups, and what a series of one metric shows. See prony_history.h. */
#ifndef PRN_PROFILER_HISTORY_HISTORY_H
#define PRN_PROFILER_HISTORY_HISTORY_H

#include "base/memory/alloc.h"
#include "base/status.h"
#include "profiler/metrics/metrics.h"
#include "profiler/statistics/statistics.h"
#include "prony_history.h"

/* Series whose pieces were searched: text, JSON and verdict of one check show the same ones. */
typedef struct prn_history_searches prn_history_searches;

struct prony_history {
    prn_bump pool;
    prony_history_run *runs;
    size_t count, capacity;
    prn_history_searches *searches; /* forgotten when a run is added */
};

/* ---- history.c ---- */

/* NULL: the run does not have the metric. */
const prony_history_value *prn_history_value(const prony_history_run *run, const char *metric);
double prn_history_number(const prony_history_run *run, const char *metric); /* NaN: as above */
/* Time of a layer, which may lie at `hint`; NaN: the run does not have it. */
double prn_history_layer_ns(const prony_history_run *run, size_t hint, const char *name);
const char *prn_history_date(int64_t seconds, char text[24]);                /* "2026-01-31 23:59", "unknown" of 0 */
const char *prn_history_load(const prony_history_run *run);                  /* "unknown", "quiet", "busy" */
const char *prn_history_commit(const prony_history_run *run, char text[16]); /* ten characters, or "-" */
/* The value as the metric writes it; `unknown` of NaN. */
const char *prn_history_value_text(const prony_metric *metric, double value, char *text, size_t size,
                                   const char *unknown);

/* ---- history_searches.c ---- */

/* prn_level_pieces, searched once for each series. */
PRN_MUST_USE prony_status prn_history_pieces(const prony_history *history, prn_level_piece pieces[PRN_LEVEL_PIECES],
                                             size_t *count, const double *values, size_t n, prony_error *error);
PRN_MUST_USE prn_history_searches *prn_history_searches_create(void); /* NULL: out of memory */
void prn_history_searches_forget(prn_history_searches *searches);
void prn_history_searches_release(prn_history_searches *searches); /* NULL is accepted */
/* Series searched since the history was created. */
size_t prn_history_searched(const prony_history *history);

/* ---- history_groups.c ---- */

/* Runs that may be compared, ascending by time: indices of the history. */
typedef struct prn_history_group {
    const prony_history_run *of; /* the newest run */
    size_t *runs, count, busy;
    bool differs[3]; /* joined runs differ in file, machine, configuration */
} prn_history_group;

typedef struct prn_history_groups {
    prn_bump pool;
    prn_history_group *groups; /* the one with the newest run first */
    size_t count;
    size_t shown; /* runs in all groups */
} prn_history_groups;

/* "several configurations" and "several machines" of joined runs that differ. */
const char *prn_history_group_configuration(const prn_history_group *group);
const char *prn_history_group_machine(const prn_history_group *group);

/* The history that one call looks at. */
typedef struct prn_history_writing {
    const prony_history *history;
    const prony_history_options *options;
    const prony_metrics *metrics;
    prn_history_groups groups;
} prn_history_writing;

/* ---- history_trend.c ---- */

/* The search for changes is quadratic in the runs: 2000 take seconds. */
enum { PRN_TREND_LAYERS = 5, PRN_TREND_SETTLED = 5, PRN_TREND_MOST_RUNS = 2000 };
#define PRN_TREND_NOISE 0.01 /* of metrics that are measured */

typedef struct prn_trend_layer {
    const char *name, *op;
    double before_ns, after_ns, share; /* share of the summed movement of all layers */
} prn_trend_layer;

/* A step between two pieces, or a piece that drifts. */
typedef struct prn_trend_change {
    bool drift;
    size_t before, first, last; /* points: the last quiet one before, the first after; of a drift its ends */
    double from, to;            /* levels */
    double ratio;
    int direction; /* 1: worse, -1: better, 0: neither */
    prn_trend_layer layers[PRN_TREND_LAYERS];
    size_t layer_count;
    bool layers_known;
} prn_trend_change;

typedef struct prn_trend_point {
    const prony_history_run *run;
    double value, interval[2];
    bool counted; /* not left out for a busy machine */
    size_t piece; /* of a counted one */
    double level; /* of its piece there; NaN: not counted */
} prn_trend_point;

typedef enum prn_trend_outcome {
    PRN_TREND_WITHIN,
    PRN_TREND_WORSE,
    PRN_TREND_DRIFTS, /* to the worse side */
    PRN_TREND_BETTER,
    PRN_TREND_BUSY,
    PRN_TREND_FEW,
} prn_trend_outcome;

/* One metric of one group. */
typedef struct prn_trend {
    const prn_history_group *group;
    const prony_metric *metric;
    prn_trend_point *points;
    size_t count, counted;
    prn_level_piece pieces[PRN_LEVEL_PIECES]; /* positions among the counted points */
    size_t piece_count;
    prn_trend_change changes[2 * PRN_LEVEL_PIECES];
    size_t change_count;
    /* Of the newest point beside the settled level. */
    prn_trend_outcome outcome;
    double expected, bounds[2];
} prn_trend;

/* The metrics of a list, by key or short name; "all": those with a direction. `otherwise`: the list if `keys` is
 * NULL. */
PRN_MUST_USE prony_status prn_trend_metrics(const prony_metric **out, size_t capacity, size_t *count,
                                            const prony_metrics *metrics, const char *keys, const char *otherwise,
                                            prony_error *error);
/* Analyses a metric; count is 0 if no run of the group has it. Release by prn_trend_release. */
PRN_MUST_USE prony_status prn_trend_make(prn_trend *out, const prn_history_writing *w, const prn_history_group *group,
                                         const prony_metric *metric, prony_error *error);
void prn_trend_release(prn_trend *trend);
/* True if the last point is the group's newest run: otherwise the outcome is that of an older one. */
bool prn_trend_has_newest(const prn_trend *trend);
/* True if that run is worse, or the level drifts to the worse side. */
bool prn_trend_is_bad(const prn_trend *trend);
const char *prn_trend_outcome_name(prn_trend_outcome outcome); /* "within", "worse", ... */
const char *prn_trend_verdict_name(const prn_trend *trend);    /* "passed", "regressed", "undecided" */
/* "step +5.2 %", "drift -3.0 %"; "step" alone if the level before is 0. */
const char *prn_trend_change_text(const prn_trend_change *change, char text[32]);
/* "3f2a91c0b1d2..77aa0de4c3f5"; "?" for an unknown commit, "-" if both are unknown. */
const char *prn_trend_commits(const prn_trend *trend, const prn_trend_change *change, char text[96]);

/* Metrics of the list that the check and the page take by default. */
#define PRN_TREND_CHECKED "latency,throughput,session_memory,top1_accuracy,evaluation,output_error"
enum { PRN_TREND_METRICS = 128 };

/* ---- writers ---- */

/* Reads options with their defaults and groups the runs. Also after a failure, prn_history_end releases. */
PRN_MUST_USE prony_status prn_history_begin(prn_history_writing *w, prony_history_options *own, prony_metrics **metrics,
                                            const prony_history *history, const prony_history_options *options,
                                            prony_error *error);
void prn_history_end(prn_history_writing *w, prony_metrics *metrics);

typedef prony_status prn_history_writer(const prn_history_writing *w, const prony_write_options *options,
                                        prony_write_fn write, void *user, prony_error *error);
PRN_MUST_USE prn_history_writer prn_history_list_text, prn_history_trend_text, prn_history_check_text,
    prn_history_list_json, prn_history_trend_json, prn_history_check_json, prn_history_page;
/* The groups of a check: those that hold a run of the newest command. */
bool prn_history_is_newest(const prn_history_writing *w, const prn_history_group *group);

#endif
