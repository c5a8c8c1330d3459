/* Reading by positions that are known when a step is prepared, on an OpenCL device: they are copied there once. */
#ifndef PRN_OPS_VENDOR_OPENCL_INDEX_H
#define PRN_OPS_VENDOR_OPENCL_INDEX_H

#include "ops/vendor/opencl/opencl_map.h"

/* Output 0 consists of blocks of `block` elements. Block i begins at element
 * i / count * part + table[i % count] * unit of input 0. */
typedef struct prn_opencl_blocks {
    const int32_t *table;
    int64_t count, block, unit, part;
} prn_opencl_blocks;
prony_status prn_opencl_blocks_prepare(const prony_context *context, prn_prepared *out,
                                       const prn_opencl_blocks *blocks);

/* Input 0 is the device's, and the host reads input 1 in the run. */
bool prn_opencl_indexed_supported(const prony_context *context);
/* The same with a table that each run fills: `table` is NULL, prn_opencl_blocks_table is its memory, of `count` ints,
 * which stays as it is until the run has waited. */
int32_t *prn_opencl_blocks_table(const prony_context *context);
prony_status prn_opencl_blocks_run(const prony_context *context);

/* Inputs 0 and 2 are the device's, input 1 is a constant on the host. */
bool prn_opencl_scatter_supported(const prony_context *context);
/* Output 0 = input 0, and block i of `block` elements of input 2 from element table[i] on. Blocks are `count`, and meet
 * whole or not at all; a table's entry below 0 leaves out its block. */
prony_status prn_opencl_scatter_prepare(const prony_context *context, prn_prepared *out, const int32_t *table,
                                        int64_t count, int64_t block);

/* Interpolation along the axes of float32 input 0. Position p of an axis whose `first` is not below 0 is the weighted sum
 * of `taps` elements: entries (first + p) * taps and up of both tables. At most PRN_OPENCL_RESIZED axes have one. */
enum { PRN_OPENCL_RESIZED = 3 };
typedef struct prn_opencl_taps {
    const int32_t *index;
    const float *weight;
    int64_t entries; /* of each table */
    int taps;
    int64_t first[PRONY_MAX_RANK];
} prn_opencl_taps;
prony_status prn_opencl_taps_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_taps *taps);

#endif
