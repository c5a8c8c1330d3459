/* Histories of runs: groups of comparable runs, levels, changes of level, and a verdict on the newest run. The caller
 * stores runs where it likes; `prony --history` uses SQLite. Conventions: prony.h. */
#ifndef PRONY_HISTORY_H
#define PRONY_HISTORY_H

#include "prony_judge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A metric of a run, by the key of the registry (prony_metric). */
typedef struct prony_history_value {
    const char *metric;
    double value;
    double interval[2]; /* 95 %; NaN: not known */
} prony_history_value;

typedef struct prony_history_layer {
    const char *name, *op;
    double time_ns; /* median of the runs */
} prony_history_layer;

/* Strings are never NULL unless a comment says so; "" is unknown. */
typedef struct prony_history_run {
    int64_t time_s;             /* since 1970, UTC: when the document was made; 0: unknown, before all others */
    int64_t command;            /* runs with one number were stored by one command; 0: unknown */
    const char *document;       /* schema that the run was read from */
    const char *model, *sha256; /* name without folders; hash of the file */
    const char *machine;        /* "host: processor, 8 cores" */
    const char *fingerprint;    /* of host, processor, cores, quota, memory and instruction set */
    const char *configuration;  /* "profile, 2 x 1 threads, batch 1, fp32" */
    const char *commit, *label; /* of the user's project */
    const char *prony;          /* version and commit that measured */
    prony_load load;            /* what other processes took of the machine */
    double others_share;        /* negative: unknown */
    const prony_history_value *values;
    size_t value_count;
    const prony_history_layer *layers; /* in the model's order */
    size_t layer_count;
} prony_history_run;

/* Runs in memory. Not thread-safe. */
typedef struct prony_history prony_history;
/* The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_history_create(prony_history **out, prony_error *error);
/* Frees the history and its runs. NULL is accepted. */
PRONY_API void prony_history_release(prony_history *history);
/* Adds a copy of `run`. Runs may come in any order; they are judged by `time_s`, and by order of adding within a
 * second. */
PRONY_API PRONY_MUST_USE prony_status prony_history_add(prony_history *history, const prony_history_run *run,
                                                        prony_error *error);
/* Adds the runs that a JSON document of the command holds: "prony.report/1", "prony.matrix/1", "prony.evaluations/1",
 * "prony.load/1" or "prony.study/1". Commit, label and `command` stay unknown. Another document, or one without a
 * measurement, is PRONY_UNSUPPORTED. `name` stands in messages. After a failure nothing is added. */
PRONY_API PRONY_MUST_USE prony_status prony_history_add_document(prony_history *history, const char *name,
                                                                 const char *json, size_t size, prony_error *error);
/* SHA-256, in hexadecimal digits, of the contents of `run` without commit, label and layers: equal for a document that
 * is read again, so that a store keeps each run once. */
PRONY_API void prony_history_digest(const prony_history_run *run, char text[65]);
/* Adds a copy of `run` with the model, its hash, the machine, its fingerprint and Prony's version from `report`, which
 * need not be measured (prony_inspect). For programs that measure runs of their own. */
PRONY_API PRONY_MUST_USE prony_status prony_history_add_described(prony_history *history, const prony_report *report,
                                                                  const prony_history_run *run, prony_error *error);
/* Runs in the order of adding. */
PRONY_API size_t prony_history_count(const prony_history *history);
/* NULL: no such run. Owned by the history. */
PRONY_API const prony_history_run *prony_history_at(const prony_history *history, size_t index);

/* Properties in which runs of one group may differ, as bits. */
enum { PRONY_ACROSS_MODEL_FILE = 1, PRONY_ACROSS_MACHINE = 2, PRONY_ACROSS_CONFIGURATION = 4 };

typedef enum prony_history_view {
    PRONY_HISTORY_LIST,  /* groups and runs */
    PRONY_HISTORY_TREND, /* one metric of each group: levels and changes */
    PRONY_HISTORY_CHECK, /* the newest run beside its group */
} prony_history_view;

typedef struct prony_history_options {
    size_t struct_size;
    const char *name;    /* of the history in titles; NULL: "history" */
    const char *model;   /* only models with this name, or whose hash begins so; NULL: all */
    const char *metrics; /* keys or short names of thresholds, comma-separated. NULL: of a trend latency; of a check
                            latency, throughput, memory and accuracy */
    unsigned across;     /* PRONY_ACROSS_*: runs that differ in these properties are one group */
    bool ignore_load;    /* runs on a busy machine count as well */
    double noise;        /* part of the level below which a difference does not count; negative: 0.01 of measured
                            metrics, 0 of exact ones such as accuracy and memory */
    int64_t last;        /* newest runs of a group that are looked at, at most 2000; 0: 500 */
    bool strict;         /* metrics without a verdict do not pass */
} prony_history_options;
#define PRONY_HISTORY_OPTIONS_INIT PRONY_INIT_WITH(prony_history_options, noise, -1)

/* PRONY_FORMAT_TEXT, PRONY_FORMAT_JSON ("prony.history/1", "prony.trend/1" or "prony.trend_check/1"), and of the list
 * PRONY_FORMAT_HTML: the dashboard of all groups. Colour, width and top (newest runs of each table; 0: 20) count. */
PRONY_API PRONY_MUST_USE prony_status prony_history_write(const prony_history *history, prony_history_view view,
                                                          const prony_history_options *options, prony_format format,
                                                          const prony_write_options *write_options,
                                                          prony_write_fn write, void *user, prony_error *error);

typedef struct prony_history_verdict {
    size_t checked;     /* metrics of groups that were judged */
    size_t regressions; /* newest run beyond the trend, on the worse side, or a drift to it */
    size_t undecided;   /* busy machine, or too few runs */
} prony_history_verdict;
/* The verdict that PRONY_HISTORY_CHECK shows. `options` NULL: the defaults. */
PRONY_API PRONY_MUST_USE prony_status prony_history_check(prony_history_verdict *out, const prony_history *history,
                                                          const prony_history_options *options, prony_error *error);

#ifdef __cplusplus
}
#endif
#endif
