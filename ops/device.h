/* Devices that run kernels beside the host: the part of one that the engine sees. A session opens its device by name, the
 * plan gives it to its steps, and kernels whose row has a memory space (ops/memory_space.h) launch their work there.
 * ops/vendor/opencl/ implements it; a build without OpenCL knows no device. */
#ifndef PRN_OPS_DEVICE_H
#define PRN_OPS_DEVICE_H

#include "base/status.h"
#include "ops/memory_space.h"
#include "prony_device.h"

/* The device's own times of one step in one run, on the host's clock (prn_now_ns). */
typedef struct prn_device_times {
    int64_t queued_ns, submitted_ns; /* of the first launch or copy */
    int64_t started_ns, ended_ns;    /* of the first and of the last */
    int64_t busy_ns;                 /* sum over launches or copies */
    uint32_t launches;               /* 0: nothing ran on the device */
} prn_device_times;

/* A step's share of its plan's device; its context points here. */
typedef struct prony_device_step { /* the name that prony_operator.h declares */
    prn_device *device;
    bool stays_on_host;     /* no kernel of the device is supported, though the plan has a device */
    bool timed;             /* the run is stamped: the step waits for its launches, and writes `times` */
    prn_device_times times; /* of the last stamped run */
} prn_device_step;

/* Opens a device by the name that prony_session_options.device describes; `file` names the model in messages. Several
 * sessions share one device; each opens it. Safe to call from several threads. */
PRN_MUST_USE prony_status prn_device_open(prn_device **out, const char *name, const char *file, prony_error *error);
void prn_device_release(prn_device *device); /* NULL: does nothing */
const prony_device_info *prn_device_description(const prn_device *device);

/* Waits until the device has finished what steps launched. A failed launch is reported here at the latest. */
PRN_MUST_USE prony_status prn_device_finish(prn_device *device, prony_error *error);

/* Bytes of a constant on the device, copied once for all plans that name the same `source`; the caller drops them.
 * `source` is an identity, `data` the bytes. */
PRN_MUST_USE prony_status prn_device_constant(prn_device *device, const void *source, const void *data, size_t bytes,
                                              void **out, prony_error *error);
void prn_device_constant_drop(prn_device *device, void *constant);
/* true: the bytes of `source` are on the device already. */
bool prn_device_constant_known(prn_device *device, const void *source);

/* Waits for copies to host bytes that steps queued without waiting. The plan asks before each step on the host and at the
 * end of a run. */
PRN_MUST_USE prony_status prn_device_settle(prn_device *device, prony_error *error);

/* Caches of keys and values: the bytes are the host's, and rows that steps of the device have read or appended stay there
 * too, so that no step copies all of them. `host` is their identity. Announced bytes change by steps of the device only,
 * or prn_device_cache_changed follows; others are copied in every run. Safe to call from several threads. */
typedef struct prn_device_cache {
    const void *host;
    size_t bytes;
    uint64_t limit; /* of the device's memory, in bytes; 0: none */
} prn_device_cache;
/* Takes no memory: a step does when it first reads the cache. Announcing it again changes nothing. */
PRN_MUST_USE prony_status prn_device_cache_open(prn_device *device, const prn_device_cache *cache, prony_error *error);
/* Both: bytes that were not announced and device NULL are nothing to do. */
void prn_device_cache_changed(prn_device *device, const void *host);
void prn_device_cache_close(prn_device *device, const void *host);

/* Bytes of announced caches that no step has read yet. */
uint64_t prn_device_cache_pending(prn_device *device);

/* Bytes on the device now and at most, of all sessions; buffers and programs that exist (tests). */
typedef struct prn_device_use {
    uint64_t bytes, peak_bytes, constant_bytes;
    size_t buffers, programs, kernels;
    size_t loaded;   /* of the programs: from the user's cache; the others were compiled */
    size_t refusals; /* buffers that the driver had no memory for, so far */
} prn_device_use;
prn_device_use prn_device_usage(prn_device *device);

/* A launch of a prepared kernel of the device, for reports: name and sizes of number `index`. false: there are not so
 * many. `state` is the step's, of a kernel whose `place` is a device's. */
typedef struct prn_device_launch {
    const char *kernel;
    size_t global[3], local[3]; /* work items; local 0: the device chooses */
} prn_device_launch;
bool prn_device_launch_at(const void *state, size_t index, prn_device_launch *out);

#endif
