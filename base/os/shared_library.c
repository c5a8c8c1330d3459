/* Implements shared_library.h. */
#include "base/os/shared_library.h"

#include <dlfcn.h>
#include <string.h>

prony_status prn_library_open(void **out, const char *path, prony_error *error)
{
    *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*out) return PRONY_OK;
    const char *why = dlerror();
    return prn_fail(error, PRONY_UNSUPPORTED, "'%.200s' cannot be loaded: %.200s", path, why ? why : "unknown reason");
}

prony_status prn_library_function(void *out, void *library, const char *path, const char *name, prony_error *error)
{
    void *found = dlsym(library, name);
    if (!found) return prn_fail(error, PRONY_UNSUPPORTED, "'%.200s' lacks the function %s", path, name);
    memcpy(out, &found, sizeof found); /* POSIX: a pointer to a function has the size of an object's */
    return PRONY_OK;
}
