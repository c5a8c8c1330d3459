/* A plain tensor as a chain of kept and reduced axes, and the walk over the elements behind one output element.
 */
#ifndef PRN_OPS_KERNELS_VECTOR_CHAIN_H
#define PRN_OPS_KERNELS_VECTOR_CHAIN_H

#include "prony.h"

/* Axes of extent 1 are left out and neighbours of the same fate are one. Zero-initialise it. */
typedef struct prn_chain {
    int rank;
    int64_t dim[PRONY_MAX_RANK];
    bool reduced[PRONY_MAX_RANK];
} prn_chain;

static inline void prn_chain_add(prn_chain *chain, int64_t dim, bool reduced)
{
    if (dim == 1) return;
    if (chain->rank > 0 && chain->reduced[chain->rank - 1] == reduced) {
        chain->dim[chain->rank - 1] *= dim;
        return;
    }
    chain->dim[chain->rank] = dim;
    chain->reduced[chain->rank++] = reduced;
}

/* `offset` is that of the element to visit; elements come in memory order. */
typedef struct prn_cursor {
    int64_t index[PRONY_MAX_RANK], stride[PRONY_MAX_RANK];
    int64_t offset;
} prn_cursor;

static inline void prn_cursor_start(prn_cursor *cursor, const prn_chain *chain, int64_t output)
{
    int64_t step = 1;
    cursor->offset = 0;
    for (int d = chain->rank - 1; d >= 0; d--) {
        cursor->index[d] = 0;
        cursor->stride[d] = step;
        if (!chain->reduced[d]) {
            cursor->offset += output % chain->dim[d] * step;
            output /= chain->dim[d];
        }
        step *= chain->dim[d];
    }
}

/* After the last element it is back at the first. */
static inline void prn_cursor_next(prn_cursor *cursor, const prn_chain *chain)
{
    for (int d = chain->rank - 1; d >= 0; d--) {
        if (!chain->reduced[d]) continue;
        cursor->offset += cursor->stride[d];
        if (++cursor->index[d] < chain->dim[d]) return;
        cursor->offset -= chain->dim[d] * cursor->stride[d];
        cursor->index[d] = 0;
    }
}

#endif
