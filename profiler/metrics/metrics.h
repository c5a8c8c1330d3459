/* The registry of metrics and built-in definitions; shared by metrics.c (the registry), metrics_builtin.c and
 * metric_text.c.
 */
#ifndef PRN_PROFILER_METRICS_METRICS_H
#define PRN_PROFILER_METRICS_METRICS_H

#include "profiler/statistics/statistics.h"
#include "profiler/report/report.h"
#include "prony_judge.h"

/* A built-in metric with the function that reads it from a report; NaN: not known. */
typedef struct prn_metric_builtin {
    prony_metric metric;
    double (*read)(const prony_report *report);
    prony_basis basis;       /* PRONY_BASIS_NONE: measured once */
    prn_statistic statistic; /* of the latencies, if runs or an interval are the basis */
    bool rate;               /* goes with 1 / statistic */
    bool decides;            /* decides a comparison by default: latency, throughput, memory held, and accuracy if the
                                reports have it */
} prn_metric_builtin;

/* true: the metric follows from the latencies, by `statistic` and `rate`. `metric` may be NULL. */
static inline bool prn_metric_samples(const prn_metric_builtin *metric)
{
    return metric && (metric->basis == PRONY_BASIS_RUNS || metric->basis == PRONY_BASIS_INTERVAL);
}

extern const prn_metric_builtin prn_metric_builtins[];
extern const size_t prn_metric_builtin_count;

/* The built-in definition of prony_metrics_at(metrics, index); NULL: not built in, or overridden. */
const prn_metric_builtin *prn_metrics_builtin(const prony_metrics *metrics, size_t index);

/* Comma-separated lists of keys. named: true if the list contains `key` (NULL and "all" contain every key). check:
 * refuses keys that are not metrics. */
bool prn_metrics_named(const char *keys, const char *key);
prony_status prn_metrics_check_keys(const prony_metrics *metrics, const char *keys, prony_error *error);

/* The unit of its unscaled values: "ns", "B", "fraction", or its own. */
const char *prn_metric_unit(const prony_metric *metric);
/* "smaller", "none", "larger" */
const char *prn_direction_name(prony_direction direction);

/* Value and text of one metric. */
prony_metric_value prn_metric_value_of(const prony_metric *metric, double value);

#endif
