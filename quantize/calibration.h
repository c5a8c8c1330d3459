/* Results of calibration: for each value stored in 8 bits, the range seen, and the scale and zero point that follow
 * from it; and the file that keeps them, "prony.calibration/1". */
#ifndef PRN_QUANTIZE_CALIBRATION_H
#define PRN_QUANTIZE_CALIBRATION_H

#include "base/memory/alloc.h"
#include "prony_quantize.h"
#include "quantize/quantize_plan.h"

typedef struct prn_calibrated {
    const char *name;
    double low, high; /* as the method has them; zero lies between */
    double scale;     /* of a code; a float32 above 0 */
    int64_t zero_point;
} prn_calibrated;

struct prony_calibration {
    prn_bump pool;
    char sha256[65];  /* of the model's file */
    const char *file; /* it was read from; NULL: it was measured */
    prony_calibration_method method;
    int64_t samples;
    prn_calibrated *rows; /* by name */
    size_t count;
};

/* NULL: no such value. */
const prn_calibrated *prn_calibration_find(const prony_calibration *calibration, const char *name);
/* The scale and zero point of codes 0 to 255 that cover the row's range. */
void prn_calibrated_resolve(prn_calibrated *row);
void prn_calibration_sort(prony_calibration *calibration);
/* PRONY_INVALID_ARGUMENT, naming both, if it is of another model. */
PRN_MUST_USE prony_status prn_calibration_check(const prony_calibration *calibration, const prony_model *model,
                                                prony_error *error);

/* The observations of one value. */
typedef struct prn_observed {
    double low, high;
    uint64_t *bins; /* PRN_OBSERVED_BINS of sizes up to `top`; NULL: min-max */
    double top;
} prn_observed;

#define PRN_OBSERVED_BINS 2048

/* Takes elements into the range. false: one of them is not finite. */
bool prn_observe_range(prn_observed *o, const float *x, int64_t count);
/* Takes elements into the bins, once the range is known. */
void prn_observe_bins(prn_observed *o, const float *x, int64_t count);
/* The range by the method; `share`: of the elements that a percentile keeps. */
void prn_observed_range(const prn_observed *o, prony_calibration_method method, double share, double *low,
                        double *high);

#endif
