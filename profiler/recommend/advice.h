/* The list of advice to which every topic adds rows. */
#ifndef PRN_PROFILER_RECOMMEND_ADVICE_H
#define PRN_PROFILER_RECOMMEND_ADVICE_H

#include "profiler/report/report.h"
#include "prony_judge.h"

typedef struct prn_adviser {
    const prony_report *report;
    const prony_report *const *variants;
    size_t variant_count;
    prony_advice *rows;
    size_t count;
    prony_error *error;
    bool failed; /* no memory for a string */
} prn_adviser;

/* Adds a topic without advice, and the finding. */
void prn_advise_nothing(prn_adviser *a, const char *topic, const char *format, ...) PRN_PRINTF(3, 4);
/* The action; reason and gain_text are left to the caller. */
prony_advice *prn_advise(prn_adviser *a, const char *topic, const char *metric, bool measured, double gain,
                         const char *format, ...) PRN_PRINTF(6, 7);
void prn_advise_because(prn_adviser *a, prony_advice *row, const char *format, ...) PRN_PRINTF(3, 4);
/* "at most 12.3 % of the latency" */
void prn_advise_gain(prony_advice *row, const char *before, const char *behind);

/* The only configuration in which a variant differs. */
typedef enum prn_changed {
    PRN_CHANGED_BATCH,
    PRN_CHANGED_THREADS,
    PRN_CHANGED_REWRITES,
    PRN_CHANGED_PRECISION,
    PRN_CHANGED_OTHER
} prn_changed;

prn_changed prn_what_changed(const prony_report *report, const prony_report *variant);

typedef struct prn_found {
    const prony_report *variant;
    prony_compare_metric row;
} prn_found;

/* Compares one metric of both. *out has no definition of the metric; *known: both reports have it. */
prony_status prn_compare_key(prn_adviser *a, const prony_report *variant, const char *key, prony_compare_metric *out,
                             bool *known);
/* The variant with the best significant gain in `key`; best->variant NULL: none. *tried: number of variants. */
prony_status prn_best_variant(prn_adviser *a, prn_changed kind, const char *key, bool larger, prn_found *best,
                              size_t *tried);
void prn_ratio_text(char *text, size_t size, const prony_compare_metric *row);

prony_status prn_advise_batch(prn_adviser *a);
prony_status prn_advise_threads(prn_adviser *a);
prony_status prn_advise_fusion(prn_adviser *a);
prony_status prn_advise_precision(prn_adviser *a);
prony_status prn_advise_precision_computed(prn_adviser *a);
void prn_advise_overhead(prn_adviser *a);
void prn_advise_memory(prn_adviser *a);
void prn_advise_device(prn_adviser *a);

#endif
