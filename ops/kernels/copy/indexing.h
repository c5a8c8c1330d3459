/* Index tensors, as the gathering and scattering operators share them. Negative indices count from the end. */
#ifndef PRN_OPS_KERNELS_COPY_INDEXING_H
#define PRN_OPS_KERNELS_COPY_INDEXING_H

#include "ops/op.h"

static inline int64_t prn_index_read(const prony_value *indices, int64_t i)
{
    return indices->dtype == PRONY_INT64 ? ((const int64_t *)indices->data)[i] : ((const int32_t *)indices->data)[i];
}

/* Index i of the list for an axis of extent `dim`. */
static inline int64_t prn_index_wrapped(const prony_value *indices, int64_t i, int64_t dim)
{
    int64_t index = prn_index_read(indices, i);
    return index < 0 ? index + dim : index;
}

/* Input 0 can be moved, input 1 holds int32 or int64. */
prony_status prn_index_check_types(const prony_context *context);
/* Places are found for so many entries at a time. */
enum { PRN_INDEX_BLOCK = 256 };

/* At run: entry i lies within an axis of extent dim[i % period]. */
prony_status prn_index_check_range(const prony_context *context, const int64_t *dim, int64_t period);

/* Index tuples (GatherND, ScatterND): the last axis of input 1 holds a position in the first axes of input 0 after
 * `batch` shared ones, and selects the block below it. All sizes in bytes. */
typedef struct prn_index_tuples {
    const prony_value *indices;
    int64_t tuple;                                       /* indices per block */
    int64_t count;                                       /* tuples */
    int64_t block;                                       /* of what one tuple selects */
    int64_t batch_stride, per_batch;                     /* of input 0; tuples in a batch */
    int64_t dim[PRONY_MAX_RANK], stride[PRONY_MAX_RANK]; /* of the indexed axes */
} prn_index_tuples;

/* True if input 1 can index input 0 so. */
prony_status prn_index_check_tuples(const prony_context *context, int64_t batch);
prn_index_tuples prn_index_tuples_make(const prony_context *context, int batch);
/* Offsets in input 0 of what tuples [first, first + n) select. */
void prn_index_tuple_places(const prn_index_tuples *tuples, int64_t first, int64_t n, int64_t *places);

/* Element-wise indices (GatherElements, ScatterElements): an entry of input 1 replaces its own coordinate on `axis`.
 * Axes that lie in both as one are one here. */
typedef struct prn_index_elements {
    const prony_value *indices;
    int rank, axis;
    int64_t dim[PRONY_MAX_RANK];    /* of input 1 */
    int64_t stride[PRONY_MAX_RANK]; /* of input 0, in elements */
    int64_t extent, count;          /* of input 0 along the axis; entries */
} prn_index_elements;

prony_status prn_index_check_elements(const prony_context *context, int64_t axis);
prn_index_elements prn_index_elements_make(const prony_context *context, int64_t axis);
/* Elements of input 0 that entries [first, first + n) mean; of one outside, the place is that of index 0, and the
 * result is false. The extent is not 0. */
bool prn_index_element_places(const prn_index_elements *elements, int64_t first, int64_t n, int64_t *places);
/* True if entries [first, first + n) are the same. */
bool prn_index_elements_same(const prn_index_elements *elements, int64_t first, int64_t n);

/* ---- constant indices that are a grid, as slices and strided views are exported */

/* The places that entries [first, first + n) lead to. */
typedef void (*prn_index_find)(const void *argument, int64_t first, int64_t n, int64_t *places);
/* True if entry (i, j, …) of `shape`, which is not empty, leads to base + i step[0] + j step[1] + …; the step of an
 * extent of 1 is 0. */
bool prn_index_is_grid(const prony_shape *shape, prn_index_find find, const void *argument, int64_t *base,
                       int64_t *step);
/* True if input 1 is a constant whose entries, not none, lie within axes of extents dim[i % period]. */
bool prn_index_is_known(const prony_context *context, const int64_t *dim, int64_t period);

#endif
