/* Reads everything a loaded model offers: every name, number, shape and byte of data. */
#ifndef PRN_TESTS_SUPPORT_MODEL_WALK_H
#define PRN_TESTS_SUPPORT_MODEL_WALK_H

#include "loaders/onnx/model.h"

/* A checksum over all of it, so that no read can be left out; with a sanitizer, wild pointers and wrong lengths show.
 * Also checks (by abort) what model.h promises of order, alignment and names. */
uint64_t model_walk(const prn_model_file *file);
/* The same for one value. */
uint64_t value_walk(const prony_value *value);

#endif
