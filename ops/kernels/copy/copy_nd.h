/* The one loop of data movement: an N-dimensional copy between two strided views. The
 * outcome does not depend on the thread count. */
#ifndef PRN_OPS_KERNELS_COPY_COPY_ND_H
#define PRN_OPS_KERNELS_COPY_COPY_ND_H

#include "ops/op.h"

#define PRN_COPY_MAX_RANK (2 * PRONY_MAX_RANK)

/* Axes outermost first, in the order in which the result is written. Strides count elements; `from` may be 0 or
 * negative, `to` is positive and no two positions share an element of the result. Zero-initialise it. */
typedef struct prn_copy {
    int rank;
    int64_t dim[PRN_COPY_MAX_RANK], from[PRN_COPY_MAX_RANK], to[PRN_COPY_MAX_RANK];
} prn_copy;

static inline void prn_copy_axis(prn_copy *copy, int64_t dim, int64_t from, int64_t to)
{
    copy->dim[copy->rank] = dim;
    copy->from[copy->rank] = from;
    copy->to[copy->rank++] = to;
}

/* Copies elements of `width` (1, 2, 4, 8 or 16) bytes; both pointers are those of index 0 of every axis. */
typedef void (*prn_copy_fn)(int threads, size_t width, const prn_copy *copy, const void *from, void *to);
/* Merges axes, copies rows, transposes in tiles, uses threads. */
void prn_copy_native(int threads, size_t width, const prn_copy *copy, const void *from, void *to);
/* Element by element. */
void prn_copy_reference(int threads, size_t width, const prn_copy *copy, const void *from, void *to);

/* The same for the types of less than a byte, into a result without gaps. */
void prn_copy_packed(prony_dtype dtype, const prn_copy *copy, const void *from, void *to);

/* `bytes` consecutive bytes; nothing if both pointers are equal. */
void prn_copy_bytes(int threads, const void *from, void *to, size_t bytes);

/* Bytes of one element that can be moved by itself, or 0 (4-bit types, undefined). Strings move as prony_string. */
size_t prn_copy_width(prony_dtype dtype);
/* Refuses an input that is not a tensor, or has elements below a byte. */
prony_status prn_check_movable(const prony_context *context, size_t input);

#endif
