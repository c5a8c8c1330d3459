/* Values that own their data. loaders/ makes them; the owner frees and copies them.
 *
 * The prony_value itself and `items` come from prn_calloc, `data` from prn_alloc_aligned(64, …). The bytes of a string
 * tensor stand in `data` too, behind the elements (prony_string). */
#ifndef PRN_LOADERS_ONNX_OWNED_VALUE_H
#define PRN_LOADERS_ONNX_OWNED_VALUE_H

#include "base/status.h"

/* Makes *out a tensor with room for its elements and `extra` bytes behind them. Checks that type and shape have a size.
 * On failure *out owns nothing. */
PRN_MUST_USE prony_status prn_owned_tensor(prony_value *out, prony_dtype dtype, const prony_shape *shape, size_t extra,
                                           prony_error *error);
/* Fills it from its plain little-endian bytes; a bool that is not 0 becomes 1. */
void prn_owned_fill(prony_value *value, const uint8_t *from);

/* Contents of an .npy file. */
PRN_MUST_USE prony_status prn_npy_parse(prony_value *out, const uint8_t *data, size_t size, prony_error *error);

/* Copies the tensor `from`, whose data is borrowed, with its data. */
PRN_MUST_USE prony_status prn_owned_copy(const prony_value *from, prony_value *out, prony_error *error);

/* Frees a value that owns its data: `data` from prn_alloc_aligned (a string tensor's bytes in the same block, behind
 * its elements), `items` and the value itself from prn_alloc or prn_calloc. Accepts NULL. */
void prn_value_free(prony_value *value);
/* Frees the contents of a value; the struct itself stays and is empty. */
void prn_value_free_parts(prony_value *value);
/* Makes *out own a deep copy of `from`, which may come from the user. Checks that it is complete: known shapes, data,
 * one element type. On failure *out owns nothing. */
PRN_MUST_USE prony_status prn_value_copy(prony_value *out, const prony_value *from, prony_error *error);

#endif
