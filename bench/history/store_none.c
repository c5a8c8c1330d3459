/* The same functions in a build without SQLite. */
#include "bench/history/history.h"

#ifndef PRN_HAVE_SQLITE

const char *history_library(void)
{
    return "";
}

int history_refuse(const options *o)
{
    fail(o, "this build has no SQLite, so it keeps no history; install libsqlite3-dev and build again");
    return EXIT_USAGE;
}

int store_open(history_store **out, const options *o, const char *file)
{
    (void)file;
    *out = NULL;
    return history_refuse(o);
}

int store_open_to_read(history_store **out, const options *o, const char *file)
{
    return store_open(out, o, file);
}

void store_close(history_store *store)
{
    (void)store;
}

int store_add(history_store *store, const prony_history *runs, store_count *count)
{
    (void)store, (void)runs, (void)count;
    return EXIT_FAILED;
}

int store_read(history_store *store, prony_history *to, const store_wanted *wanted)
{
    (void)store, (void)to, (void)wanted;
    return EXIT_FAILED;
}

#endif
