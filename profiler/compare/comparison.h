/* A comparison in memory; between comparison*.c, which judge, and comparison_write.c. */
#ifndef PRN_PROFILER_COMPARE_COMPARISON_H
#define PRN_PROFILER_COMPARE_COMPARISON_H

#include "profiler/statistics/statistics.h"
#include "profiler/report/report.h"
#include "prony_judge.h"

#define PRN_COMPARE_ALPHA 0.05

/* What is shown of a side. */
typedef struct prn_compare_side {
    const char *name, *model, *sha256; /* sha256 NULL: not known */
    int64_t batch;                     /* -1: none */
    int threads;
    uint64_t runs;           /* 0: not measured */
    const char *const *only; /* layers that the other one has not */
    size_t only_count;
} prn_compare_side;

struct prony_comparison {
    prn_bump pool;
    prony_metrics *own_metrics; /* where the caller gave none */
    double noise;
    prn_compare_side side[2];
    prony_compare_metric *metrics;
    size_t metric_count;
    prony_compare_part *layers, *types, *nested;
    size_t layer_count, type_count, nested_count;
    const char **notes;
    size_t note_count;
    size_t regressions;
};

/* While it is made. */
typedef struct prn_comparing {
    prony_comparison *out;
    const prony_report *report[2];
    const prony_metrics *metrics;
    double noise;
    const char *keys; /* NULL: all */
    bool sampled;     /* both have latencies: `intervals` are set */
    double intervals[PRN_STATISTIC_COUNT][2];
    double memory[2]; /* of the runs of each: prn_series_memory */
    /* Relative, of what processes differ by and these reports do not show, in their latencies and (layers and types are
     * of one process each) in their parts; 0: they do, or they were measured in turns. */
    double deviation, part_deviation;
    bool by_processes; /* each knows enough processes for the rank test to take those */
    size_t withheld;   /* verdicts on times that processes may differ by */
    bool loads_differ; /* what others took of the machine: times tell nothing of the models */
    prony_error *error;
} prn_comparing;

/* Whether others took a different part of the machine in the two. */
bool prn_loads_differ(const prony_report *a, const prony_report *b);
/* The verdict on times whose ratio lies in `interval`, as far as the runs show: withheld where others had different
 * parts of the machine, and where it does not hold for an interval that allows for what processes differ by. Widens the
 * interval. */
prony_verdict prn_verdict_on_times(prn_comparing *c, prony_direction direction, double ratio, double interval[2],
                                   double deviation);

/* `low` and `high` are the ends of what the ratio may be. */
prony_verdict prn_verdict_of(prony_direction direction, double low, double high, double noise);
typedef enum prn_compare_by { PRN_BY_LAYER, PRN_BY_TYPE, PRN_BY_NESTED } prn_compare_by;
prony_status prn_compare_parts(prn_comparing *c, prn_compare_by by);
prony_status prn_compare_notes(prn_comparing *c);

static inline const char *prn_text_or_empty(const char *text)
{
    return text ? text : "";
}

/* "~", "better", "worse", "" for none. */
const char *prn_verdict_mark(prony_verdict verdict);

#endif
