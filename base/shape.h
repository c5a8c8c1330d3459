/* Shapes and element types: checked arithmetic, broadcasting, printing. Thread-safe. */
#ifndef PRN_BASE_SHAPE_H
#define PRN_BASE_SHAPE_H

#include "base/status.h"

/* true: rank and dims are valid; dims may be unknown. For shapes from a caller. */
bool prn_shape_valid(const prony_shape *shape);
/* The same for kind, element type and items, recursively. Does not read tensor data. */
bool prn_value_valid(const prony_value *value);

/* Every dim >= 0. */
bool prn_shape_known(const prony_shape *shape);
bool prn_shape_equal(const prony_shape *a, const prony_shape *b);
prony_shape prn_shape_make(int rank, const int64_t *dims);
prony_shape prn_shape_scalar(void);
prony_shape prn_shape_unknown(void); /* rank -1 */

/* Elements over dims [begin, end); 1 for an empty range; -1 on overflow or unknown. */
int64_t prn_shape_count(const prony_shape *shape, int begin, int end);

/* ONNX multidirectional broadcasting; false if the shapes do not fit. */
bool prn_shape_broadcast(prony_shape *out, const prony_shape *a, const prony_shape *b);
/* Row-major element strides. stride has at least rank entries. */
void prn_shape_strides(const prony_shape *shape, int64_t *stride);
/* Strides of `in` seen through the (broadcast) shape `out`: 0 where `in` is broadcast. */
void prn_shape_broadcast_strides(const prony_shape *in, const prony_shape *out, int64_t *stride);

/* axis in [-rank, rank) to [0, rank); false if outside. */
bool prn_axis_normalize(int64_t *axis, int rank);

/* "[1, 3, 224, 224]", unknown dims as "?". Returns `buffer`. */
#define PRN_SHAPE_TEXT_BYTES 384
const char *prn_shape_text(const prony_shape *shape, char buffer[PRN_SHAPE_TEXT_BYTES]);
/* "float32[1, 3, 224, 224]" */
const char *prn_value_text(const prony_value *value, char buffer[PRN_SHAPE_TEXT_BYTES]);

bool prn_dtype_is_float(prony_dtype dtype);   /* float16 … float64, bfloat16, float8, complex */
bool prn_dtype_is_integer(prony_dtype dtype); /* signed and unsigned; not bool */
size_t prn_dtype_bits(prony_dtype dtype);     /* 0 for undefined and string */

/* Bytes of a plain tensor of this type and shape; SIZE_MAX if unknown or too large. */
size_t prn_value_bytes(const prony_value *value);

/* Checked unsigned arithmetic for costs and sizes: saturates nothing, returns false on overflow. */
bool prn_mul_u64(uint64_t *out, uint64_t a, uint64_t b);
bool prn_add_u64(uint64_t *out, uint64_t a, uint64_t b);

#endif
