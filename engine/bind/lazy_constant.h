/* A recipe that makes a large constant from other constant bytes, again whenever it is read.
 *
 * Recipes are pure: the same bytes for any number of threads. They own only the scale. */
#ifndef PRN_ENGINE_BIND_LAZY_CONSTANT_H
#define PRN_ENGINE_BIND_LAZY_CONSTANT_H

#include "loaders/onnx/model.h"

/* Constants of fewer bytes are made once and kept, because each deferred one wastes the rest of a page. Chosen without
 * measurement. */
#define PRN_DEFER_BYTES ((size_t)16 << 10)
/* The limit that tests set instead; 0: PRN_DEFER_BYTES. */
extern size_t prn_defer_bytes;

typedef enum prn_lazy_constant_kind {
    PRN_LAZY_COPY,      /* of bytes that are not aligned for their type */
    PRN_LAZY_TRANSPOSE, /* of `rows` times `columns` elements */
    PRN_LAZY_SCALE      /* float32: each element times its channel's scale, in double, rounded once */
} prn_lazy_constant_kind;

typedef struct prn_lazy_constant {
    prn_lazy_constant_kind kind;
    size_t width; /* bytes of an element: 1, 2, 4 or 8 */
    int64_t count;
    const void *source;         /* any alignment */
    const prn_model_file *file; /* its pages are released once they are read; NULL: not bytes of a file */
    int64_t rows, columns;
    /* Element e belongs to channel e / block * modulus + e / inner % modulus. */
    int64_t inner, modulus, block, channels;
    double *scale;
} prn_lazy_constant;

/* true: a constant of this type is worth deferring: a large tensor of floats. Constants of rank 0 or 1, or of one
 * element, are not: shape inference reads scales, bounds and the like everywhere. */
bool prn_lazy_constant_profitable(const prony_value *value);
size_t prn_lazy_constant_bytes(const prn_lazy_constant *recipe);
bool prn_lazy_constant_same(const prn_lazy_constant *a, const prn_lazy_constant *b);
uint64_t prn_lazy_constant_hash(const prn_lazy_constant *recipe);
/* Makes all elements; garbage once the work is cancelled. false: PRN_LAZY_SCALE made an element that is not finite. */
bool prn_lazy_constant_make(const prn_lazy_constant *recipe, int threads, void *to);
/* The result that prn_lazy_constant_make would return for PRN_LAZY_SCALE, without writing the elements. */
bool prn_lazy_constant_finite(const prn_lazy_constant *recipe);

#endif
