/* What a file is that is no ONNX model, told by its first bytes, for messages. */
#ifndef PRN_LOADERS_ONNX_FILE_KIND_H
#define PRN_LOADERS_ONNX_FILE_KIND_H

#include "base/status.h"

/* Rewrites the message of a failed read, if the file is of a kind that is known here, into what it is and what to do;
 * else leaves it alone. `name` is the file's. */
void prn_file_kind_explain(prony_error *error, const char *name, const void *data, size_t size);
/* Whether it is the text that Git LFS leaves in the place of a file. */
bool prn_file_is_lfs_pointer(const void *data, size_t size);

#endif
