/* Option structs of the public headers, which come from programs that were compiled with other versions of them.
 *
 * A field is added at the end only, and never into padding that an older version had there: a shorter struct means that
 * the rest has its default. */
#ifndef PRN_BASE_OPTION_STRUCT_H
#define PRN_BASE_OPTION_STRUCT_H

#include "base/status.h"

/* Copies what `given` has (its first size_t is its size; NULL: nothing) over `own`, which holds `size` bytes of
 * defaults. PRONY_INVALID_ARGUMENT: no size is set. PRONY_UNSUPPORTED: it is longer than what this version knows, and
 * something beyond is not zero. `what` names it in messages. */
PRN_MUST_USE prony_status prn_options_read(void *own, size_t size, const void *given, const char *what,
                                           prony_error *error);

#endif
