/* Implements cache_folder.h. */
#define _GNU_SOURCE
#include "base/os/cache_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

prony_status prn_cache_folder(char *path, size_t size, prony_error *error)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length;
    if (xdg && *xdg == '/')
        length = snprintf(path, size, "%s/prony", xdg);
    else if (home && *home == '/')
        length = snprintf(path, size, "%s/.cache/prony", home);
    else
        return prn_fail(error, PRONY_IO_ERROR, "no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path");
    if (length < 0 || (size_t)length >= size)
        return prn_fail(error, PRONY_LIMIT, "the cache folder's path is too long");
    return PRONY_OK;
}

prony_status prn_cache_make_folders(char *path, prony_error *error)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        char reason[128];
        *slash = '\0';
        int made = mkdir(path, 0700), code = errno;
        if (made != 0 && code != EEXIST)
            return prn_fail(error, PRONY_IO_ERROR, "'%s': cannot make the folder: %s", path,
                            strerror_r(code, reason, sizeof reason));
        *slash = '/';
    }
    return PRONY_OK;
}
