/* Devices beside the processor that a session can run operators on (prony_session_options.device).
 * Conventions: prony.h. Functions may be called from several threads. */
#ifndef PRONY_DEVICE_H
#define PRONY_DEVICE_H

#include "prony.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device. Texts live as long as the process. */
typedef struct prony_device_info {
    size_t struct_size;
    const char *id;   /* "opencl:0": the session option that chooses it */
    const char *kind; /* "gpu", "cpu", "accelerator" */
    const char *name, *vendor, *platform, *driver, *version;
    uint32_t compute_units;
    uint32_t clock_mhz; /* the highest that the driver states; 0: unknown */
    uint64_t memory_bytes, largest_buffer_bytes, local_memory_bytes;
    uint64_t largest_work_group; /* work items */
    bool fp16, fp64;             /* it computes in these types */
    uint32_t subgroup_size;      /* preferred multiple of a work group's size; 0: unknown */
} prony_device_info;
#define PRONY_DEVICE_INFO_INIT PRONY_INIT(prony_device_info)

/* Device number `index`, from 0. PRONY_OUT_OF_RANGE: there are not so many. PRONY_UNSUPPORTED: there are none, and the message says why (no
 * OpenCL in this build, no library, no driver). */
PRONY_API prony_status prony_device_at(prony_device_info *out, size_t index, prony_error *error);

#ifdef __cplusplus
}
#endif
#endif
