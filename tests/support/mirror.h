/* A memory space for tests: a "mirror" of the host's memory with addresses that the host cannot read. So a missing copy
 * ends the test. Also operators of the domain "test" with kernels that work there. */
#ifndef PRN_TESTS_SUPPORT_MIRROR_H
#define PRN_TESTS_SUPPORT_MIRROR_H

#include "prony_operator.h"

#include <stdatomic.h>

/* Allocations and copies since mirror_reset. */
typedef struct mirror_figures {
    size_t taken, given, bytes; /* blocks; bytes of the last one */
    size_t room;                /* a larger block is refused */
    atomic_int in, out;         /* copies */
    atomic_bool fails;          /* copying to it */
} mirror_figures;
extern mirror_figures mirror_use;
void mirror_reset(void);

/* Far: -x, in the mirror, or on the host if required. Other: -x, in a second mirror. Text: takes any type, in the
 * mirror alone. Sum: a + b in the mirror. Scale: x in the mirror times a factor on the host; output 1, the sum of
 * output 0, is on the host. The caller releases the registry. */
prony_registry *mirror_registry(void);

#endif
