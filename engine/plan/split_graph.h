/* A plan with a device as a graph of operators and tensors: the time that each operator needs on the device and on the
 * host, the copies in between, and the memory on the device, for any choice of operators that run there. Made from a plan
 * with kernels alone (prn_plan_options.kernels_only). Times are predictions from rates, never measurements of a run. */
#ifndef PRN_ENGINE_PLAN_SPLIT_GRAPH_H
#define PRN_ENGINE_PLAN_SPLIT_GRAPH_H

#include "engine/plan/plan.h"

#define PRN_NO_UNIT UINT32_MAX

/* A step of the plan, except copies and reorders. */
typedef struct prn_partition_unit {
    uint32_t node;             /* of the program */
    bool can;                  /* the device has a kernel for it, or for operators of its subgraphs */
    double host_ns, device_ns; /* device_ns <= host_ns: copies and memory alone speak against the device */
    uint64_t own_bytes;        /* on the device beside tensors: its caches, its subgraphs */
} prn_partition_unit;

/* Elements in all their layouts and views. */
typedef struct prn_partition_tensor {
    uint32_t maker;      /* unit; PRN_NO_UNIT: an input of the graph, or a constant */
    bool made_on_device; /* if its maker runs there */
    bool constant;
    bool resident; /* a constant that another plan has copied to the device already */
    bool given;    /* to the caller: the host reads it behind the last unit */
    uint64_t bytes;
    uint32_t first_use, use_count;
} prn_partition_tensor;

typedef struct prn_partition_use {
    uint32_t tensor, unit;
    bool on_device; /* if the unit runs there; false: its kernel reads the tensor on the host even so */
} prn_partition_use;

typedef struct prn_partition_graph {
    prn_partition_unit *units; /* in the order of the plan */
    prn_partition_tensor *tensors;
    prn_partition_use *uses; /* by tensor, then by unit */
    size_t unit_count, tensor_count, use_count, use_capacity;
    bool keep_all;           /* values live for the whole run */
    uint64_t largest_buffer; /* bytes of one buffer of the device: a constant, or all values */
    double to_device_bytes_per_ns, from_device_bytes_per_ns, launch_ns;
} prn_partition_graph;

/* Rates of both sides. Zero: the guesses of the file. */
typedef struct prn_partition_rates {
    prn_step_rates host; /* of one thread */
    int threads;
    bool known; /* `peaks` were measured */
    prony_device_peaks peaks;
} prn_partition_rates;

PRN_MUST_USE prony_status prn_partition_graph_create(prn_partition_graph *graph, const prn_plan *plan,
                                                     const prn_partition_rates *rates, prony_error *error);
void prn_partition_graph_release(prn_partition_graph *graph);

#define PRN_PARTITION_NEVER_FITS (UINT64_MAX / 2)

/* Rows of keys and values that an attention step of the device has on the host, as inputs or as outputs; a copy of them
 * may be on the device (prn_device_cache in ops/device.h). 0: a step of the host. */
uint64_t prn_partition_caches(const prn_plan *plan, const prn_step *step);

/* Bytes on the device. */
typedef struct prn_partition_memory {
    uint64_t
        weights; /* constants, without resident ones, and the units' own bytes; PRN_PARTITION_NEVER_FITS: one exceeds
                         the largest buffer */
    uint64_t values; /* most that live at once */
} prn_partition_memory;

/* Both for the units u with on_device[u]. */
PRN_MUST_USE prony_status prn_partition_graph_memory(const prn_partition_graph *graph, const bool *on_device,
                                                     prn_partition_memory *out, prony_error *error);
double prn_partition_graph_ns(const prn_partition_graph *graph, const bool *on_device);

/* The time of a copy of the tensor. */
double prn_partition_copy_ns(const prn_partition_graph *graph, const prn_partition_tensor *tensor, bool to_device);
/* true: the tensor is copied in that direction. */
bool prn_partition_copied(const prn_partition_graph *graph, const prn_partition_tensor *tensor, const bool *on_device,
                          bool to_device);

#endif
