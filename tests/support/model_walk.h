/* Reads everything in a loaded model: every name, number, shape and byte of data. */
#ifndef PRN_TESTS_SUPPORT_MODEL_WALK_H
#define PRN_TESTS_SUPPORT_MODEL_WALK_H

#include "loaders/onnx/model.h"

/* Returns a checksum, so that no read can be optimised away; a sanitizer finds wild pointers and wrong lengths. Also
 * checks (by abort) order, alignment and names as promised in model.h. */
uint64_t model_walk(const prn_model_file *file);
/* The same for one value. */
uint64_t value_walk(const prony_value *value);

#endif
