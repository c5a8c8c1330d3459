/* Implements late_library.h. */
#include "bench/process/late_library.h"

#include <dlfcn.h>
#include <string.h>

bool late_library_load(const char *soname, const char *const *names, size_t count, void *functions, const char **why)
{
    void *last = NULL;
    char *to = functions;
    memcpy(&last, to + (count - 1) * sizeof last, sizeof last);
    if (last) return true;
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < count; i++) {
        void *function = dlsym(library, names[i]); /* POSIX: it has the size of a pointer to a function */
        if (!function) library = NULL;
        memcpy(to + i * sizeof function, &function, sizeof function);
    }
    if (!library) *why = dlerror();
    return library != NULL;
}
