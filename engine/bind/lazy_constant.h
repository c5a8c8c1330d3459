/* How a large constant is made from other constant bytes: again and again, whenever somebody reads it.
 *
 * Recipes are pure: the same bytes for any number of threads. They own nothing but the scale. */
#ifndef PRN_ENGINE_BIND_LAZY_CONSTANT_H
#define PRN_ENGINE_BIND_LAZY_CONSTANT_H

#include "loaders/onnx/model.h"

/* Constants of fewer bytes are made once and kept: what is left of a page would be lost many times over. */
#define PRN_DEFER_BYTES ((size_t)16 << 10)
/* What counts instead, for tests; 0: PRN_DEFER_BYTES. */
extern size_t prn_defer_bytes;

typedef enum prn_lazy_constant_kind {
    PRN_LAZY_COPY,      /* of bytes that lie at an address their type may not have */
    PRN_LAZY_TRANSPOSE, /* of `rows` times `columns` elements */
    PRN_LAZY_SCALE      /* float32: each element times its channel's scale, in double, rounded once */
} prn_lazy_constant_kind;

typedef struct prn_lazy_constant {
    prn_lazy_constant_kind kind;
    size_t width; /* bytes of an element: 1, 2, 4 or 8 */
    int64_t count;
    const void *source;         /* any alignment */
    const prn_model_file *file; /* whose memory is given back once it is read; NULL: somebody else's */
    int64_t rows, columns;
    /* Element e belongs to channel e / block * modulus + e / inner % modulus. */
    int64_t inner, modulus, block, channels;
    double *scale;
} prn_lazy_constant;

/* Whether a constant of this type is worth deferring: a large tensor of floats. Nothing of rank 0 or 1 or of one
 * element is: scales, bounds and the like are read wherever shapes are inferred. */
bool prn_lazy_constant_profitable(const prony_value *value);
size_t prn_lazy_constant_bytes(const prn_lazy_constant *recipe);
bool prn_lazy_constant_same(const prn_lazy_constant *a, const prn_lazy_constant *b);
uint64_t prn_lazy_constant_hash(const prn_lazy_constant *recipe);
/* All of it; garbage once the work is called off. false: PRN_LAZY_SCALE, and something is not finite. */
bool prn_lazy_constant_make(const prn_lazy_constant *recipe, int threads, void *to);
/* What PRN_LAZY_SCALE would say, with nothing kept. */
bool prn_lazy_constant_finite(const prn_lazy_constant *recipe);

#endif
