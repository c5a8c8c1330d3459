/* Shared libraries that are loaded when they are asked for, and never linked. They stay loaded. Thread-safe. */
#ifndef PRN_BASE_OS_SHARED_LIBRARY_H
#define PRN_BASE_OS_SHARED_LIBRARY_H

#include "base/status.h"

/* A path, or a name that the system finds. PRONY_UNSUPPORTED: it cannot be loaded; the message has the system's
 * reason. */
PRN_MUST_USE prony_status prn_library_open(void **out, const char *path, prony_error *error);
/* Stores the function in *out, a pointer to a function of its type. PRONY_UNSUPPORTED: the library lacks it. */
PRN_MUST_USE prony_status prn_library_function(void *out, void *library, const char *path, const char *name,
                                               prony_error *error);

#endif
