/* Values in files of their own: .pb (TensorProto, and SequenceProto, OptionalProto by `kind`), .npy, an .npz's only
 * array, raw. */
#ifndef PRN_LOADERS_TENSORS_TENSOR_FILE_H
#define PRN_LOADERS_TENSORS_TENSOR_FILE_H

#include "loaders/onnx/owned_value.h"

/* By the name's ending (.npy, .npz or .pb; anything else is PRONY_INVALID_ARGUMENT). For .pb `kind` gives the kind,
 * because ONNX test data does not name the message; usually PRONY_TENSOR. */
PRN_MUST_USE prony_status prn_value_file_load(prony_value **out, const char *path, prony_kind kind, prony_error *error);
PRN_MUST_USE prony_status prn_value_file_load_raw(prony_value **out, const char *path, prony_dtype dtype,
                                                  const prony_shape *shape, prony_error *error);
/* .npy 1.0, text as <U; bfloat16 and other types that NumPy lacks are refused by name. */
PRN_MUST_USE prony_status prn_value_file_save_npy(const prony_value *value, const char *path, prony_error *error);

#endif
