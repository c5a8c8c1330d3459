/* Devices beside the processor that a session can run operators on (prony_session_options.device).
 * Conventions: prony.h. Functions may be called from several threads. */
#ifndef PRONY_DEVICE_H
#define PRONY_DEVICE_H

#include "prony_report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device. Texts live as long as the process. */
typedef struct prony_device_info {
    const char *id;   /* "opencl:0": the session option that chooses it */
    const char *kind; /* "gpu", "cpu", "accelerator" */
    const char *name, *vendor, *platform, *driver, *version;
    uint32_t compute_units;
    uint32_t clock_mhz; /* the highest that the driver states; 0: unknown */
    uint64_t memory_bytes, largest_buffer_bytes, local_memory_bytes;
    uint64_t largest_work_group; /* work items */
    bool fp16, fp64;             /* it computes in these types */
    uint32_t subgroup_size;      /* preferred multiple of a work group's size; 0: unknown */
    const char *pci_bus_id;      /* "0000:3b:00.0"; "": not a PCI device, or the driver does not tell */
} prony_device_info;

/* Device number `index`, from 0; *out lives as long as the process. PRONY_OUT_OF_RANGE: there are not so many.
 * PRONY_UNSUPPORTED: no device was found; the message says why (no OpenCL in this build, no library, no driver). */
PRONY_API PRONY_MUST_USE prony_status prony_device_at(const prony_device_info **out, size_t index, prony_error *error);

/* Measured rates of a device, each the best of five trials. */
typedef struct prony_device_peaks {
    size_t struct_size;
    double flops_per_second;                                         /* fp32, multiply-adds in registers */
    double bytes_per_second;                                         /* its memory, read and written */
    double to_device_bytes_per_second, from_device_bytes_per_second; /* copies */
    int64_t launch_ns; /* a kernel that does nothing, of many queued one behind the other */
} prony_device_peaks;
#define PRONY_DEVICE_PEAKS_INIT PRONY_INIT(prony_device_peaks)

/* Measures the device of this name (prony_session_options.device); takes about a second. `out` arrives as
 * PRONY_DEVICE_PEAKS_INIT. PRONY_INVALID_ARGUMENT: the name is unknown, or `out` has no size. PRONY_UNSUPPORTED: no
 * device was found. */
PRONY_API PRONY_MUST_USE prony_status prony_device_measure(prony_device_peaks *out, const char *device,
                                                           prony_error *error);

/* Stores the peaks in $XDG_CACHE_HOME/prony or ~/.cache/prony, for reports of runs on this device: one file for each
 * device name, driver and version of Prony. `prony devices` calls it. */
PRONY_API PRONY_MUST_USE prony_status prony_device_peaks_save(const prony_device_info *device,
                                                              const prony_device_peaks *peaks, prony_error *error);
/* Loads the stored peaks of the device. `out` arrives as PRONY_DEVICE_PEAKS_INIT. *known false: none are stored. A
 * damaged file is an error that names it. */
PRONY_API PRONY_MUST_USE prony_status prony_device_peaks_load(prony_device_peaks *out, bool *known,
                                                              const prony_device_info *device, prony_error *error);

/* ---- the device in a report ---- */

/* An operator that ran on the device. Times are means of the stamped runs, in which the host waits for every
 * operator. */
typedef struct prony_device_operator_row {
    uint32_t operator_index;              /* of prony_report_operators */
    const char *kernels;                  /* names, "first, second" */
    uint32_t launches;                    /* of a run */
    int64_t busy_ns;                      /* kernels execute, by the device's clock; -1: not measured */
    int64_t wait_ns;                      /* from queueing the first kernel to its start; -1: not measured */
    uint64_t global[3], local[3];         /* work items of the first kernel; local 0: the driver chooses */
    int64_t trace_start_ns, trace_end_ns; /* in the last run, from its begin; both 0: not measured */
    /* Over busy_ns: the operator's FLOPs, and the bytes that it must read and write. NaN: not measured. */
    double flops_per_second, bytes_per_second;
    const char *bound; /* "compute", "memory", or "overhead" below a tenth of the roof; NULL: no peaks are stored */
    double percent_of_roof; /* the device's roof time over busy_ns; NaN: likewise */
} prony_device_operator_row;

/* A copy between host and device. */
typedef struct prony_device_copy_row {
    uint32_t operator_index;
    const char *value;
    bool to_device;
    const char *reason; /* "graph input", "made by /a/Relu (Relu) on the host", "read by …", "graph output" */
    uint64_t bytes;
    int64_t busy_ns; /* -1: not measured */
    int64_t trace_start_ns, trace_end_ns;
} prony_device_copy_row;

/* An operator that ran on the host. */
typedef struct prony_device_host_row {
    uint32_t operator_index;
    /* "no kernel": the device has none for these types and shapes. "memory": it does not fit beside the others.
     * "copies": the copies of a short chain between operators of the host take longer than the device saves. */
    const char *reason;
    uint64_t weight_bytes;       /* "memory": constants that it reads */
    int64_t copies_ns, saved_ns; /* "copies": of its whole chain, by the stored peaks; otherwise -1 */
} prony_device_host_row;

/* Operators that the device has a kernel for and that stay on the host (prony_session_options.device_split). */
typedef struct prony_device_split_totals {
    uint64_t memory_operators, copies_operators;
    uint64_t weight_bytes; /* constants that are not on the device for want of memory */
    uint64_t room_bytes;   /* memory there that the plan could have when it was made, with weights that others share */
} prony_device_split_totals;

/* The device's sensors while runs were measured, ten readings a second: NVIDIA's NVML. NaN: the device lacks the sensor.
 * Other processes that use the device count as well. */
typedef struct prony_device_sensors {
    uint64_t samples;
    double power_mean_w, power_max_w;
    double clock_mean_mhz, clock_min_mhz, clock_max_mhz; /* of the multiprocessors */
    double memory_clock_mean_mhz;
    double temperature_max_c;
    double utilisation;         /* mean share of time in which a kernel ran, 0 to 1, as the driver samples it */
    uint64_t memory_used_bytes; /* the most, of all processes; UINT64_MAX: unknown */
} prony_device_sensors;

/* A session's device: the whole run. Shares are of the mean latency of the stamped runs; negative: not measured. */
typedef struct prony_device_report {
    prony_device_info info;
    uint64_t runs;                                         /* that the times are means of; 0: nothing was stamped */
    uint64_t operators_on_device, operators_on_host;       /* copies belong to neither */
    int64_t busy_ns, copy_ns, wait_ns;                     /* kernels; copies; launches that wait to start */
    double busy_share, copy_share, wait_share, idle_share; /* idle: the rest, the device waits for the host */
    uint64_t to_device_bytes, from_device_bytes;           /* copied in a run */
    /* On the device: the plan's block, and the least it could have; constants of all sessions; the most so far. */
    uint64_t values_bytes, values_lower_bound_bytes, constants_bytes, peak_bytes;
    uint32_t programs, kernels; /* compiled or loaded, created */
    const prony_device_operator_row *operators;
    size_t operator_count;
    const prony_device_copy_row *copies;
    size_t copy_count;
    bool has_peaks; /* prony_device_peaks_save was called for this device */
    prony_device_peaks peaks;
    bool has_sensors; /* the device is NVIDIA's, and NVML knows it */
    prony_device_sensors sensors;
    uint32_t programs_loaded; /* of `programs`: from the user's cache folder */
    bool is_split;            /* `split` has operators */
    prony_device_split_totals split;
    const prony_device_host_row *host_operators;
    size_t host_operator_count;
} prony_device_report;

/* NULL: the session had no device. Owned by the report. */
PRONY_API const prony_device_report *prony_report_device(const prony_report *report);

#ifdef __cplusplus
}
#endif
#endif
