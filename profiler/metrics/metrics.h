/* The registry of metrics: built-in definitions, between metrics.c (the registry), metrics_builtin.c and metric_text.c.
 */
#ifndef PRN_PROFILER_METRICS_METRICS_H
#define PRN_PROFILER_METRICS_METRICS_H

#include "profiler/statistics/statistics.h"
#include "profiler/report/report.h"
#include "prony_judge.h"

/* A built-in metric and how it is read off a report; NaN: not known. */
typedef struct prn_metric_builtin {
    prony_metric metric;
    double (*read)(const prony_report *report);
    prony_basis evidence;    /* PRONY_BASIS_NONE: measured once */
    prn_statistic statistic; /* of the latencies, where runs or an interval are the evidence */
    bool rate;               /* goes with 1 / statistic */
} prn_metric_builtin;

/* Whether it goes with the latencies: `statistic` and `rate` say how. `metric` may be NULL. */
static inline bool prn_metric_samples(const prn_metric_builtin *metric)
{
    return metric && (metric->evidence == PRONY_BASIS_RUNS || metric->evidence == PRONY_BASIS_INTERVAL);
}

extern const prn_metric_builtin prn_metric_builtins[];
extern const size_t prn_metric_builtin_count;

/* What prony_metrics_at(metrics, index) is built in as; NULL: it is not, or was overridden. */
const prn_metric_builtin *prn_metrics_builtin(const prony_metrics *metrics, size_t index);

/* Lists of keys, comma-separated: whether `key` stands in one (NULL: all do), and that all of them are metrics. */
bool prn_metrics_named(const char *keys, const char *key);
prony_status prn_metrics_check_keys(const prony_metrics *metrics, const char *keys, prony_error *error);

/* The unit of its values, whatever they are scaled to in text: "ns", "B", "fraction", or its own. */
const char *prn_metric_unit(const prony_metric *metric);
/* "smaller", "none", "larger" */
const char *prn_direction_name(prony_direction direction);

/* Value and text of one metric. */
prony_metric_value prn_metric_value_of(const prony_metric *metric, double value);

#endif
