/* A folder of the test's own as the user's cache folder (XDG_CACHE_HOME): a fixture of a group of tests. */
#ifndef PRN_TESTS_SUPPORT_CACHE_FOLDER_H
#define PRN_TESTS_SUPPORT_CACHE_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static char cache_folder[200];

static inline int cache_folder_make(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    snprintf(cache_folder, sizeof cache_folder, "%s/prony-test-cache-XXXXXX", temporary ? temporary : "/tmp");
    assert_non_null(mkdtemp(cache_folder));
    return setenv("XDG_CACHE_HOME", cache_folder, 1);
}

static inline int cache_folder_remove(void **state)
{
    (void)state;
    char command[400];
    snprintf(command, sizeof command, "rm -r '%s'", cache_folder);
    return system(command);
}

#endif
