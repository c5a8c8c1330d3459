/* Recognises files that are not ONNX models by their first bytes, for messages. */
#ifndef PRN_LOADERS_ONNX_FILE_KIND_H
#define PRN_LOADERS_ONNX_FILE_KIND_H

#include "base/status.h"

/* If the file's kind is known, replaces the message of a failed read by the kind and a remedy; else leaves it alone.
 * `name` is the file's. */
void prn_file_kind_explain(prony_error *error, const char *name, const void *data, size_t size);
/* true: the data is the pointer text of Git LFS. */
bool prn_file_is_lfs_pointer(const void *data, size_t size);

#endif
