/* The memory that holds the bytes of a value. NULL is the host's memory, where inputs, outputs and constants of a
 * graph are and every kernel works that does not say otherwise (prn_kernel in ops/op.h). Another place, the memory
 * of a device say, is one constant row of functions, known by its address; the plan has one block of bytes there,
 * and Copy steps where a value is at one place and read at another. */
#ifndef PRN_OPS_MEMORY_SPACE_H
#define PRN_OPS_MEMORY_SPACE_H

#include "prony.h"

struct prony_device_step;             /* ops/device.h */
typedef struct prn_device prn_device; /* the plan's, see ops/device.h; NULL: it has none */

typedef struct prn_memory_space {
    const char *name; /* for names of steps and messages */
    /* At least `bytes` bytes, aligned to 64, not counted in any budget. Its result may be added to, and is an address
     * at this place alone. NULL: not enough memory. */
    void *(*take)(prn_device *device, size_t bytes);
    void (*give)(prn_device *device, void *block);
    /* Between the host and this place; complete on return. Steps that run side by side may call them at once.
     * `times` receives the device's own times of the copy; NULL: they are not wanted. */
    prony_status (*copy_in)(prn_device *device, void *to, const void *from, size_t bytes,
                            struct prony_device_step *times, prony_error *error);
    prony_status (*copy_out)(prn_device *device, void *to, const void *from, size_t bytes,
                             struct prony_device_step *times, prony_error *error);
} prn_memory_space;

#endif
