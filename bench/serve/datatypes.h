/* Element types of the Open Inference Protocol v2. Types that the protocol does not name have names of the same kind:
 * BF16, FP8E4M3FN, INT4, COMPLEX64. */
#ifndef PRN_BENCH_SERVE_DATATYPES_H
#define PRN_BENCH_SERVE_DATATYPES_H

#include "bench/serve/text_buffer.h"
#include "prony_tensor.h"

/* "FP32"; NULL: not an element type. */
const char *datatype_name(prony_dtype dtype);
/* PRONY_UNDEFINED: unknown name. */
prony_dtype datatype_find(const char *name, size_t length);
/* Element `index` as JSON. Complex numbers are two numbers, [real, imaginary]. */
void datatype_put(text_buffer *to, prony_dtype dtype, const void *data, size_t index);
/* Sets element `index` of a float narrower than 32 bits to the nearest value, ties to even; false: beyond its range.
 * Elements of 4 bits are to be 0 before. */
bool datatype_set_float(prony_dtype dtype, void *data, size_t index, double value);
/* Sets element `index` of a packed integer, which is to be 0 before; false: beyond its range. */
bool datatype_set_packed(prony_dtype dtype, void *data, size_t index, int64_t value);
bool datatype_is_packed(prony_dtype dtype);
/* true: a signed or unsigned integer of whole bytes; its range. The largest uint64 stands in *most. */
bool datatype_integer(prony_dtype dtype, int64_t *least, uint64_t *most);

#endif
