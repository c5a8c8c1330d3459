/* Reads option structs of the public headers from programs that were compiled with other versions of them.
 *
 * Fields are added at the end only, never into padding of an older version. In a shorter struct the rest has its
 * default. */
#ifndef PRN_BASE_OPTION_STRUCT_H
#define PRN_BASE_OPTION_STRUCT_H

#include "base/status.h"

/* Copies `given` (its first size_t is its size; NULL: nothing) over `own`, which holds `size` bytes of defaults.
 * PRONY_INVALID_ARGUMENT: no size is set. PRONY_UNSUPPORTED: it is longer than this version's struct, and a byte beyond
 * is not zero. `what` names it in messages. */
PRN_MUST_USE prony_status prn_options_read(void *own, size_t size, const void *given, const char *what,
                                           prony_error *error);

#endif
