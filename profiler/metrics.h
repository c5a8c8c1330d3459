/* The registry of metrics: built-in definitions, between metrics.c (the registry), metrics_builtin.c and metric_text.c.
 */
#ifndef PRN_PROFILER_METRICS_H
#define PRN_PROFILER_METRICS_H

#include "profiler/report.h"

/* A built-in metric and how it is read off a report; NaN: not known. */
typedef struct prn_metric_builtin {
    prony_metric metric;
    double (*read)(const prony_report *report);
} prn_metric_builtin;

extern const prn_metric_builtin prn_metric_builtins[];
extern const size_t prn_metric_builtin_count;

/* Whether prony_metrics_at(metrics, index) is built in and not overridden. */
bool prn_metrics_is_builtin(const prony_metrics *metrics, size_t index);

/* Value and text of one metric. */
prony_metric_value prn_metric_value_of(const prony_metric *metric, double value);

#endif
