/* A comparison in memory; between comparison.c, which judges, and comparison_write.c. */
#ifndef PRN_PROFILER_COMPARISON_H
#define PRN_PROFILER_COMPARISON_H

#include "profiler/report.h"

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
    prn_pool pool;
    prony_metrics *own_metrics; /* where the caller gave none */
    double noise;
    prn_compare_side side[2];
    prony_compare_metric *metrics;
    size_t metric_count;
    prony_compare_part *layers, *types;
    size_t layer_count, type_count;
    const char **notes;
    size_t note_count;
    size_t regressions;
};

/* "~", "better", "worse", "" for none. */
const char *prn_verdict_mark(prony_verdict verdict);

#endif
