/* Error metrics of a tensor against its reference. */
#ifndef PRN_PROFILER_ACCURACY_ERROR_METRICS_H
#define PRN_PROFILER_ACCURACY_ERROR_METRICS_H

#include "profiler/accuracy/f64_tensor.h"
#include "prony_report.h"

/* Scale and zero point of quantised values: a code means (code - zero) scale. */
typedef struct prn_qint8_meaning {
    bool known;
    double scale, zero;
} prn_qint8_meaning;

/* Compares `measured` with `reference`, of one shape. Units in the last place are those of the model's type of
 * `measured`. */
prony_error_metrics prn_error_figures(const prn_f64_tensor *measured, const prn_f64_tensor *reference,
                                      const prn_qint8_meaning *codes, double tolerance);
/* The worse of two, figure by figure; shares by elements. */
prony_error_metrics prn_error_worse(const prony_error_metrics *a, const prony_error_metrics *b);
/* Distance from abs(x) to the next number of the type; 1 for integers. */
double prn_ulp(double x, prony_dtype type);

#endif
