/* The labelled data of `eval`, and how they are evaluated. */
#ifndef PRN_BENCH_SESSION_LABELLED_DATA_H
#define PRN_BENCH_SESSION_LABELLED_DATA_H

#include "bench/command.h"

/* Opens the second argument as data for `model`. */
prony_status open_labelled_data(const options *o, prony_dataset **data, const prony_model *model, prony_error *error);
prony_evaluate_options evaluate_options(const options *o);

#endif
