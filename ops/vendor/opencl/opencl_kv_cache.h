/* Copies on an OpenCL device of caches of keys and values (prn_device_cache_open): which rows are there, and the copies of
 * rows in both directions. */
#ifndef PRN_OPS_VENDOR_OPENCL_KV_CACHE_H
#define PRN_OPS_VENDOR_OPENCL_KV_CACHE_H

#include "ops/vendor/opencl/opencl_device.h"

/* Blocks of rows on the host, one behind the other. */
typedef struct prn_opencl_kv_cache {
    void *host;
    size_t blocks, block_bytes, row_bytes;
} prn_opencl_kv_cache;

/* The address on the device of a copy of `cache` that has rows [0, rows) of each block. *kept false: the caller gives it back
 * to prn_opencl_space behind the last command that uses it. */
PRN_MUST_USE prony_status prn_opencl_kv_cache_read(const prony_context *context, const prn_opencl_kv_cache *cache,
                                                   size_t rows, void **address, bool *kept);
/* Queues a copy of rows [first, first + count) of `blocks` blocks from block `block` on to the host; the run waits for it. */
PRN_MUST_USE prony_status prn_opencl_kv_cache_write(const prony_context *context, const prn_opencl_kv_cache *cache,
                                                    const void *address, size_t block, size_t blocks, size_t first,
                                                    size_t count);
/* Queues a copy of host bytes, which stay as they are until the run has waited. */
PRN_MUST_USE prony_status prn_opencl_queue_write(const prony_context *context, const void *address, const void *data,
                                                 size_t bytes);
/* Rows [0, rows) of each block are the host's once the run has waited. */
void prn_opencl_kv_cache_holds(prn_device *device, const void *host, size_t rows);

#endif
