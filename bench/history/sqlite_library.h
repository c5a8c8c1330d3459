/* SQLite, loaded by sqlite_load. Linking it would load it at every start. */
#ifndef PRN_BENCH_HISTORY_SQLITE_LIBRARY_H
#define PRN_BENCH_HISTORY_SQLITE_LIBRARY_H

#include <sqlite3.h>
#include <stdbool.h>

#define SQLITE_FUNCTIONS(X)                                                                                            \
    X(sqlite3_bind_double)                                                                                             \
    X(sqlite3_bind_int64)                                                                                              \
    X(sqlite3_bind_null)                                                                                               \
    X(sqlite3_bind_text)                                                                                               \
    X(sqlite3_busy_timeout)                                                                                            \
    X(sqlite3_close)                                                                                                   \
    X(sqlite3_column_double)                                                                                           \
    X(sqlite3_column_int64)                                                                                            \
    X(sqlite3_column_text)                                                                                             \
    X(sqlite3_column_type)                                                                                             \
    X(sqlite3_db_readonly)                                                                                             \
    X(sqlite3_errcode)                                                                                                 \
    X(sqlite3_errmsg)                                                                                                  \
    X(sqlite3_exec)                                                                                                    \
    X(sqlite3_extended_errcode)                                                                                        \
    X(sqlite3_finalize)                                                                                                \
    X(sqlite3_get_autocommit)                                                                                          \
    X(sqlite3_last_insert_rowid)                                                                                       \
    X(sqlite3_libversion)                                                                                              \
    X(sqlite3_open_v2)                                                                                                 \
    X(sqlite3_prepare_v2)                                                                                              \
    X(sqlite3_reset)                                                                                                   \
    X(sqlite3_step)                                                                                                    \
    X(sqlite3_system_errno)

#define X(function) __typeof__(function) *function;
typedef struct sqlite_functions {
    SQLITE_FUNCTIONS(X)
} sqlite_functions;
#undef X
extern sqlite_functions sqlite;

/* Loads the library. false: *why says the reason; it is static. Not for several threads at once. */
bool sqlite_load(const char **why);

#ifndef SQLITE_NAMES /* calls go to the functions loaded */
#define sqlite3_bind_double sqlite.sqlite3_bind_double
#define sqlite3_bind_int64 sqlite.sqlite3_bind_int64
#define sqlite3_bind_null sqlite.sqlite3_bind_null
#define sqlite3_bind_text sqlite.sqlite3_bind_text
#define sqlite3_busy_timeout sqlite.sqlite3_busy_timeout
#define sqlite3_close sqlite.sqlite3_close
#define sqlite3_column_double sqlite.sqlite3_column_double
#define sqlite3_column_int64 sqlite.sqlite3_column_int64
#define sqlite3_column_text sqlite.sqlite3_column_text
#define sqlite3_column_type sqlite.sqlite3_column_type
#define sqlite3_db_readonly sqlite.sqlite3_db_readonly
#define sqlite3_errcode sqlite.sqlite3_errcode
#define sqlite3_errmsg sqlite.sqlite3_errmsg
#define sqlite3_exec sqlite.sqlite3_exec
#define sqlite3_extended_errcode sqlite.sqlite3_extended_errcode
#define sqlite3_finalize sqlite.sqlite3_finalize
#define sqlite3_get_autocommit sqlite.sqlite3_get_autocommit
#define sqlite3_last_insert_rowid sqlite.sqlite3_last_insert_rowid
#define sqlite3_libversion sqlite.sqlite3_libversion
#define sqlite3_open_v2 sqlite.sqlite3_open_v2
#define sqlite3_prepare_v2 sqlite.sqlite3_prepare_v2
#define sqlite3_reset sqlite.sqlite3_reset
#define sqlite3_step sqlite.sqlite3_step
#define sqlite3_system_errno sqlite.sqlite3_system_errno
#endif

#endif
