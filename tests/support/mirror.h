/* A place for tests: a "mirror" of the host's memory, whose addresses the host cannot read through, so that whatever is
 * not copied there and back ends the test; and operators of the domain "test" with kernels that work there. */
#ifndef PRN_TESTS_SUPPORT_MIRROR_H
#define PRN_TESTS_SUPPORT_MIRROR_H

#include "prony_operator.h"

#include <stdatomic.h>

/* What was done with it since mirror_reset. */
typedef struct mirror_figures {
    size_t taken, given, bytes; /* blocks; bytes of the last one */
    size_t room;                /* a larger block is refused */
    atomic_int in, out;         /* copies */
    atomic_bool fails;          /* copying to it */
} mirror_figures;
extern mirror_figures mirror_use;
void mirror_reset(void);

/* Far: -x, in the mirror, or on the host where that must be. Other: -x, in a second mirror. Text: takes any type, in
 * the mirror alone. Sum: a + b in the mirror. Scale: x in the mirror times a factor on the host; output 1, the sum of
 * output 0, is on the host. The caller's. */
prony_registry *mirror_registry(void);

#endif
