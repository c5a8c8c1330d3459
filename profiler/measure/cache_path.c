#define _GNU_SOURCE
#include "profiler/measure/cache_path.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void prn_cache_slug(char *out, size_t size, const char *text)
{
    size_t used = 0;
    for (; *text && used + 2 < size; text++) {
        if (isalnum((unsigned char)*text) || *text == '.')
            out[used++] = (char)tolower((unsigned char)*text);
        else if (used && out[used - 1] != '-')
            out[used++] = '-';
    }
    while (used && out[used - 1] == '-') used--;
    out[used] = '\0';
}

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

void prn_cache_read_same(prn_json_reader *j, const prn_json_value *root, const char *key, const char *wanted)
{
    const char *text = NULL;
    if (prn_json_get_string(j, root, key, true, &text) && strcmp(text, wanted) != 0)
        prn_json_bad(j, key, "found \"%.100s\", wanted \"%.100s\"", text, wanted);
}
