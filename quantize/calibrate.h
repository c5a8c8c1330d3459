/* Data through a model, and what is seen of it on the way. */
#ifndef PRN_QUANTIZE_CALIBRATE_H
#define PRN_QUANTIZE_CALIBRATE_H

#include "quantize/calibration.h"

/* Called after each batch, which holds `samples` samples from number `first` on. */
typedef prony_status (*prn_each_batch)(void *user, prony_session *session, int64_t first, int64_t samples,
                                       prony_error *error);

/* Runs the first `most` samples (0: all) through a session of the model that the data were opened for, or of one with
 * the same inputs. */
PRN_MUST_USE prony_status prn_run_samples(prony_session *session, const prony_dataset *data, int64_t most,
                                          prn_each_batch each, void *user, prony_error *error);

/* The values whose ranges are wanted: those that a settled plan stores. */
typedef struct prn_watched {
    size_t value; /* of the plan */
    size_t port;  /* output of the probe, or its input */
    bool input;
} prn_watched;

/* Fills the rows of a calibration from runs of `probe`, whose ports `watched` names. */
PRN_MUST_USE prony_status prn_calibrate_run(prony_calibration *calibration, const prn_quant_plan *plan,
                                            prony_session *probe, const prn_watched *watched, size_t count,
                                            const prony_dataset *data, const prony_calibrate_options *options,
                                            prony_error *error);

#endif
