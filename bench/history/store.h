/* Shared by the files that open, write and read a history. Only they include SQLite. */
#ifndef PRN_BENCH_HISTORY_STORE_H
#define PRN_BENCH_HISTORY_STORE_H

#include "bench/history/history.h"

#include "bench/history/sqlite_library.h"

struct history_store {
    sqlite3 *db;
    const options *o;
    const char *file;
};

/* Says the reason of the last failure, with the file's name; returns EXIT_FAILED. */
int store_fail(const history_store *s, const char *action);
bool store_exec(const history_store *s, const char *sql);
/* "unknown", "quiet", "busy"; other words are unknown. */
const char *store_load_name(prony_load load);
prony_load store_load(const char *name);
/* The first column of the first row; false: a failure. */
bool store_number(const history_store *s, const char *sql, int64_t *out);

#endif
