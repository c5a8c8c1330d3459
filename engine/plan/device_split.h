/* Operators that stay on the host though the plan's device has a kernel for them, and why: copies that take longer than the
 * device saves, or memory that does not suffice. */
#ifndef PRN_ENGINE_PLAN_DEVICE_SPLIT_H
#define PRN_ENGINE_PLAN_DEVICE_SPLIT_H

#include "engine/plan/split_graph.h"

/* The most operators of a chain that stays on the host for its copies. A longer one is the reason for which the user asked
 * for the device. Chosen without measurement. */
enum { PRN_PARTITION_CHAIN = 8 };

typedef enum prn_partition_reason {
    PRN_PARTITION_RUNS_THERE,
    PRN_PARTITION_FOR_MEMORY,
    PRN_PARTITION_FOR_COPIES
} prn_partition_reason;

typedef struct prn_partition_row {
    uint8_t reason; /* prn_partition_reason */
    uint64_t weight_bytes;
    double copies_ns, saved_ns; /* for copies: of the whole chain, by the device's peaks */
} prn_partition_row;

typedef struct prn_device_split {
    prn_partition_row *rows; /* by node of the program */
    size_t count;
    uint64_t room_bytes;   /* the device's memory for this plan, with what it shares; where memory was the reason */
    uint64_t weight_bytes; /* constants that only units read which stay for memory */
    uint32_t for_memory, for_copies; /* operators */
    uint32_t on_device;              /* units that are left there */
} prn_device_split;

PRN_MUST_USE prony_status prn_device_split_create(prn_device_split **out, size_t node_count, prony_error *error);
void prn_device_split_release(prn_device_split *split); /* NULL: does nothing */

/* Leaves chains of at most PRN_PARTITION_CHAIN operators on the host that lie between operators of the host and whose copies
 * take longer than the device saves. `on_device` arrives as the units that can run there. */
PRN_MUST_USE prony_status prn_partition_for_copies(prn_device_split *split, const prn_partition_graph *graph,
                                                   bool *on_device, prony_error *error);

/* Leaves units on the host until the others fit `room` bytes. Of the choices that fit it looks for one with the least
 * time. Decisions for memory that `split` had are forgotten. */
PRN_MUST_USE prony_status prn_partition_for_memory(prn_device_split *split, const prn_partition_graph *graph,
                                                   uint64_t room, bool *on_device, prony_error *error);

/* The plan of a program: with a device as a whole if that fits, else split, as options->device_split allows. */
PRN_MUST_USE prony_status prn_plan_create_split(prn_plan **out, prn_program *program, const prn_plan_options *options,
                                                prony_error *error);

#endif
