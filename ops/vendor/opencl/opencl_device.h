/* An OpenCL device: its context, one queue in order, its buffers by address, and the programs built so far.
 *
 * A buffer of OpenCL has no address, and the plan counts in addresses: each buffer gets a range of addresses that holds no
 * memory, so that a host's access faults. prn_opencl_find turns an address into a buffer and an offset. */
#ifndef PRN_OPS_VENDOR_OPENCL_DEVICE_H
#define PRN_OPS_VENDOR_OPENCL_DEVICE_H

#include "ops/device.h"
#include "ops/op.h"
#include "ops/vendor/opencl/opencl_library.h"
#include "ops/vendor/opencl/opencl_sources.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct opencl_block {
    void *address;
    size_t bytes;
    cl_mem memory;
    bool counted; /* in `use`; of the blocks that share a buffer, one is */
} opencl_block;

typedef struct opencl_constant {
    const void *source;
    void *address;
    size_t users, bytes;
    uint64_t sample; /* of its bytes */
} opencl_constant;

typedef struct opencl_program {
    const prn_opencl_source *source;
    char *defines; /* the lines before it */
    cl_program program;
    struct opencl_program *next;
} opencl_program;

struct prn_device {
    prony_device_info info;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    size_t sessions;
    pthread_mutex_t build_lock; /* of `programs`; held while one is compiled, and taken before `lock` */
    opencl_program *programs;
    pthread_mutex_t constant_lock; /* of the constants; held while one is copied, and taken before `lock` */
    opencl_constant *constants;
    size_t constant_count, constant_capacity;
    pthread_mutex_t lock; /* of everything below */
    opencl_block *blocks; /* by address */
    size_t block_count, block_capacity;
    prn_device_use use;
    pthread_mutex_t settle_lock;    /* held while one thread waits for all of them, and taken before `lock` */
    _Atomic bool unsettled;         /* copies to host bytes were queued, and nothing has waited since */
    struct opencl_kv_cache *caches; /* opencl_kv_cache.c */
    void (*release_caches)(prn_device *device); /* NULL: there were none yet */
    int64_t clock_ahead_ns;                     /* the host's clock less the device's: the least seen */
    bool clock_known;
};

/* The buffer and the byte offset in it that an address of the device means. NULL: none. */
cl_mem prn_opencl_find(prn_device *device, const void *address, size_t *offset);

/* A kernel of its own from a source and the lines before it; the program is built once for each pair. Bad builds fail with
 * the compiler's first lines. The caller releases it. */
PRN_MUST_USE prony_status prn_opencl_kernel(prn_device *device, const prn_opencl_source *source, const char *defines,
                                            const char *name, cl_kernel *out, prony_error *error);
void prn_opencl_kernel_release(prn_device *device, cl_kernel kernel);
/* Releases all programs, when no session has the device. */
void prn_opencl_drop_programs(prn_device *device);

/* Waits for `event`, adds its times to step->times, and releases it. */
PRN_MUST_USE prony_status prn_opencl_timed(prn_device *device, cl_event event, prn_device_step *step,
                                           prony_error *error);

#endif
