/* A comparison in memory; made by comparison*.c, written by comparison_write.c. */
#ifndef PRN_PROFILER_COMPARE_COMPARISON_H
#define PRN_PROFILER_COMPARE_COMPARISON_H

#include "profiler/statistics/statistics.h"
#include "profiler/report/report.h"
#include "prony_judge.h"

#define PRN_COMPARE_ALPHA 0.05

/* Facts shown for one side. */
typedef struct prn_compare_side {
    const char *name, *model, *sha256; /* sha256 NULL: not known */
    int64_t batch;                     /* -1: none */
    int threads;
    uint64_t runs;           /* 0: not measured */
    const char *const *only; /* layers that the other side lacks */
    size_t only_count;
} prn_compare_side;

struct prony_comparison {
    prn_bump pool;
    prony_metrics *own_metrics; /* if the caller gave none */
    double noise;
    prn_compare_side side[2];
    prony_compare_metric *metrics;
    bool *decides; /* [metrics] */
    size_t metric_count;
    prony_compare_row *layers, *types, *nested;
    size_t layer_count, type_count, nested_count;
    const char **notes;
    size_t note_count;
    size_t regressions, undecided; /* deciding metrics that are worse; deciding metrics that look worse but are
                                      inconclusive */
};

/* The state while a comparison is made. */
typedef struct prn_comparing {
    prony_comparison *out;
    const prony_report *report[2];
    const prony_metrics *metrics;
    double noise;
    const char *keys; /* NULL: all */
    bool sampled;     /* both have latencies: `intervals` are set */
    double intervals[PRN_STATISTIC_COUNT][2];
    double memory[2]; /* of the runs of each: prn_series_memory */
    /* Relative deviation between processes that these reports cannot show, of latencies and of layers and types (each
     * of one process); 0: the reports show it, or were interleaved. */
    double deviation, part_deviation;
    bool by_processes; /* both sides have enough processes for the rank test on processes */
    size_t withheld;   /* verdicts withheld because processes may differ by as much */
    bool loads_differ; /* other processes took different shares of the machine, so times cannot be compared */
    prony_error *error;
} prn_comparing;

/* true: other processes took different shares of the machine in the two reports. */
bool prn_loads_differ(const prony_report *a, const prony_report *b);
/* The verdict on times whose ratio lies in `interval`. It is withheld if the loads of the machine differ, or if it does
 * not hold for the interval widened by the deviation between processes. Widens the interval. */
prony_verdict prn_verdict_on_times(prn_comparing *c, prony_direction direction, double ratio, double interval[2],
                                   double deviation);

/* `low` and `high` are the ends of the ratio's interval. */
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

/* A metric by its key, or by a short name of thresholds; NULL: unknown. */
const prony_metric *prn_threshold_metric(const prony_metrics *metrics, const char *key);

#endif
