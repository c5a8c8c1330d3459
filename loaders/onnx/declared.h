/* Declarations of a model file that running does not need: metadata, and types of tensors inside of the graph. Read
 * from the file's bytes on request. Damaged entries are skipped, because nothing depends on them. */
#ifndef PRN_LOADERS_ONNX_DECLARED_H
#define PRN_LOADERS_ONNX_DECLARED_H

#include "loaders/onnx/model.h"

/* Value of the model's metadata entry `key`, copied into the pool; NULL: not present, or out of memory. */
const char *prn_declared_metadata(const prn_model_file *file, prn_bump *pool, const char *key);

/* The value_info entries and outputs of the main graph that are tensors of a declared rank. */
PRN_MUST_USE prony_status prn_declared_values(const prn_model_file *file, prn_bump *pool, const prn_port **out,
                                              size_t *count, prony_error *error);

#endif
