/* A history as a SQLite file. Several processes may write at once: the write-ahead log keeps readers apart from the one
 * writer, and a writer waits up to BUSY_MS for another one. A transaction holds all runs of a command, so a killed
 * process leaves either all of them or none. */
#include "bench/history/history.h"

#ifdef PRN_HAVE_SQLITE

#include "bench/history/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    APPLICATION_ID = 0x50524e48, /* "PRNH" */
    SCHEMA_VERSION = 1,
    BUSY_MS = 60000, /* longest wait for another writer; chosen without measurement */
};

/* Step k makes version k + 1 of version k. Only the last step changes; a released one never does. */
static const char *const migrations[SCHEMA_VERSION] = {
    "CREATE TABLE models(id INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, UNIQUE(name, sha256));"
    "CREATE TABLE machines(id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, text TEXT NOT NULL);"
    "CREATE TABLE configurations(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, command INTEGER NOT NULL, time INTEGER NOT NULL,"
    "  model INTEGER NOT NULL REFERENCES models(id), machine INTEGER NOT NULL REFERENCES machines(id),"
    "  configuration INTEGER NOT NULL REFERENCES configurations(id), project_commit TEXT NOT NULL, label TEXT NOT NULL,"
    "  prony TEXT NOT NULL, document TEXT NOT NULL, load TEXT NOT NULL CHECK(load IN ('unknown', 'quiet', 'busy')),"
    "  others_share REAL, digest TEXT NOT NULL UNIQUE);"
    "CREATE INDEX runs_time ON runs(time);"
    "CREATE TABLE metrics(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);"
    "CREATE TABLE run_values(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    "  metric INTEGER NOT NULL REFERENCES metrics(id), value REAL NOT NULL, low REAL, high REAL,"
    "  PRIMARY KEY(run, metric)) WITHOUT ROWID;"
    "CREATE TABLE layers(id INTEGER PRIMARY KEY, name TEXT NOT NULL, op TEXT NOT NULL, UNIQUE(name, op));"
    "CREATE TABLE run_layers(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, position INTEGER NOT NULL,"
    "  layer INTEGER NOT NULL REFERENCES layers(id), time_ns REAL NOT NULL, PRIMARY KEY(run, position)) WITHOUT "
    "ROWID;"};

int history_refuse(const options *o)
{
    (void)o;
    return EXIT_DONE;
}

/* ---- messages ---- */

/* SQLite does not keep the reason why a file cannot be opened, so the file is opened once more, but not created. */
static const char *open_reason(const history_store *s)
{
    const int file = open(s->file, O_RDWR | O_CLOEXEC);
    const int failure = errno;
    if (file >= 0) close(file);
    if (file < 0 && failure != ENOENT) return strerror(failure);
    if (file < 0) {
        char folder[PATH_MAX];
        const char *slash = strrchr(s->file, '/');
        const size_t length = slash ? (size_t)(slash - s->file) + (slash == s->file) : 0;
        if (length >= sizeof folder) return strerror(ENAMETOOLONG);
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)length : 1, slash ? s->file : ".");
        if (access(folder, W_OK | X_OK) != 0) return strerror(errno);
    }
    return sqlite3_errmsg(s->db);
}

/* SQLite loses the reason of a failed write to its log. */
static bool hits_file_limit(const history_store *s)
{
    struct rlimit limit;
    return sqlite3_extended_errcode(s->db) == SQLITE_IOERR_WRITE && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           limit.rlim_cur != RLIM_INFINITY;
}

/* Reports the connection's last error with the file's name, and returns EXIT_FAILED. `action` completes "cannot ...".
 * Callers call no other function of SQLite in between, because that would replace the error. Without a database,
 * opening had no memory. */
int store_fail(const history_store *s, const char *action)
{
    const int code = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM, system = s->db ? sqlite3_system_errno(s->db) : 0;
    switch (code) {
    case SQLITE_NOTADB:
        return fail(s->o, "'%s': not a history: the file is not an SQLite database", s->file);
    case SQLITE_CORRUPT:
        return fail(s->o, "'%s': the database is damaged: %s; restore a copy, or import the reports into a new file",
                    s->file, sqlite3_errmsg(s->db));
    case SQLITE_READONLY:
        return fail(s->o, "'%s': cannot %s: the file or its folder is read-only", s->file, action);
    case SQLITE_FULL:
        return fail(s->o, "'%s': cannot %s: the disk is full", s->file, action);
    case SQLITE_BUSY:
        return fail(s->o, "'%s': cannot %s: another process holds the file for more than %d s", s->file, action,
                    BUSY_MS / 1000);
    case SQLITE_IOERR:
        return fail(s->o, "'%s': cannot %s: %s", s->file, action,
                    system == EFBIG || system == EDQUOT || hits_file_limit(s) ? "the file may not grow (limit or quota)"
                    : system                                                  ? strerror(system)
                                                                              : sqlite3_errmsg(s->db));
    case SQLITE_CANTOPEN:
        return fail(s->o, "'%s': cannot open the history: %s", s->file, open_reason(s));
    case SQLITE_NOMEM:
        return fail(s->o, "'%s': out of memory", s->file);
    default:
        return fail(s->o, "'%s': cannot %s: %s", s->file, action, s->db ? sqlite3_errmsg(s->db) : "unknown failure");
    }
}

static const char *const load_names[] = {
    [PRONY_LOAD_UNKNOWN] = "unknown", [PRONY_LOAD_QUIET] = "quiet", [PRONY_LOAD_BUSY] = "busy"};

const char *store_load_name(prony_load load)
{
    return load_names[load];
}

prony_load store_load(const char *name)
{
    for (int load = PRONY_LOAD_UNKNOWN; load <= PRONY_LOAD_BUSY; load++)
        if (name && strcmp(name, load_names[load]) == 0) return (prony_load)load;
    return PRONY_LOAD_UNKNOWN;
}

bool store_exec(const history_store *s, const char *sql)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

bool store_number(const history_store *s, const char *sql, int64_t *out)
{
    sqlite3_stmt *query = NULL;
    bool done = sqlite3_prepare_v2(s->db, sql, -1, &query, NULL) == SQLITE_OK && sqlite3_step(query) == SQLITE_ROW;
    if (done) *out = sqlite3_column_int64(query, 0);
    return sqlite3_finalize(query) == SQLITE_OK && done;
}

/* ---- opening ---- */

/* Refuses files that are not histories, and histories of a later version. *version: 0 of an empty database. */
static int check_kind(const history_store *s, int64_t *version)
{
    int64_t application, tables;
    /* Tables first: another writer that makes the history now commits them together with its id. */
    if (!store_number(s, "SELECT count(*) FROM sqlite_master", &tables) ||
        !store_number(s, "PRAGMA application_id", &application) || !store_number(s, "PRAGMA user_version", version))
        return store_fail(s, "read");
    if (application != APPLICATION_ID && (application || tables))
        return fail(s->o, "'%s': not a history: the SQLite database belongs to another program", s->file);
    if (*version > SCHEMA_VERSION)
        return fail(s->o,
                    "'%s': the history has version %lld, and this prony reads up to version %d; use a later prony",
                    s->file, (long long)*version, SCHEMA_VERSION);
    return EXIT_DONE;
}

/* Brings the tables to the present version in one transaction. Another process may do the same at this moment, so the
 * version is read again inside. */
static int migrate(const history_store *s)
{
    char sql[80];
    int64_t version;
    if (!store_exec(s, "BEGIN IMMEDIATE")) return store_fail(s, "write");
    int code = check_kind(s, &version);
    for (; code == EXIT_DONE && version < SCHEMA_VERSION; version++)
        if (!store_exec(s, migrations[version])) code = store_fail(s, "write");
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION_ID, SCHEMA_VERSION);
    if (code == EXIT_DONE && (!store_exec(s, sql) || !store_exec(s, "COMMIT"))) code = store_fail(s, "write");
    if (code != EXIT_DONE) store_exec(s, "ROLLBACK");
    return code;
}

/* The change of mode needs the file alone for a moment and does not wait by itself. */
static int use_write_ahead_log(const history_store *s)
{
    for (int tries = 0; tries < BUSY_MS / 10; tries++) {
        if (store_exec(s, "PRAGMA journal_mode = WAL")) return EXIT_DONE;
        if (sqlite3_errcode(s->db) != SQLITE_BUSY) break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return store_fail(s, "write");
}

static int check_path(const options *o, const char *file, bool must_exist)
{
    struct stat info;
    if (stat(file, &info) != 0)
        return must_exist ? fail(o, "'%s': cannot open the history: %s", file, strerror(errno)) : EXIT_DONE;
    if (S_ISDIR(info.st_mode)) return fail(o, "'%s': not a history: it is a folder", file);
    return EXIT_DONE;
}

static int store_connect(history_store **out, const options *o, const char *file, const char *name, int flags)
{
    history_store *s = calloc(1, sizeof *s);
    *out = s;
    if (!s) return fail(o, "out of memory");
    *s = (history_store){.o = o, .file = file};
    const char *why;
    if (!sqlite_load(&why)) return fail(o, "SQLite cannot be loaded: %s", why);
    if (sqlite3_open_v2(name, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return store_fail(s, "open the file");
    sqlite3_busy_timeout(s->db, BUSY_MS);
    return EXIT_DONE;
}

int store_open(history_store **out, const options *o, const char *file)
{
    int64_t version = 0;
    *out = NULL;
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of the write, with a message */
    int code = check_path(o, file, false);
    if (code == EXIT_DONE) code = store_connect(out, o, file, file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (code == EXIT_DONE && sqlite3_db_readonly((*out)->db, "main"))
        code = fail(o, "'%s': cannot write: the file or its folder is read-only", file);
    if (code == EXIT_DONE) code = check_kind(*out, &version);
    /* synchronous FULL: a committed run also survives a power failure. auto_vacuum counts before the first table. */
    if (code == EXIT_DONE && !store_exec(*out, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA foreign_keys = ON"))
        code = store_fail(*out, "write");
    if (code == EXIT_DONE) code = use_write_ahead_log(*out);
    if (code == EXIT_DONE && !store_exec(*out, "PRAGMA synchronous = FULL")) code = store_fail(*out, "write");
    if (code == EXIT_DONE && version < SCHEMA_VERSION) code = migrate(*out);
    if (code == EXIT_DONE) return code;
    store_close(*out);
    *out = NULL;
    return code;
}

/* "file:PATH?immutable=1" with the path's special characters escaped; the caller frees it. */
static char *immutable_name(const char *file)
{
    char *name = malloc(3 * strlen(file) + 32), *to = name;
    if (!name) return NULL;
    to += sprintf(to, "file:");
    for (const char *at = file; *at; at++)
        to += strchr("?#%", *at) ? sprintf(to, "%%%02X", (unsigned char)*at) : sprintf(to, "%c", *at);
    sprintf(to, "?immutable=1");
    return name;
}

/* A read-only file in a read-only folder has no room for the index of the write-ahead log. Without a log beside it, the
 * file is complete and is read as it lies there. */
static int reopen_immutable(history_store **out, const options *o, const char *file)
{
    char *name = immutable_name(file);
    if (!name) return fail(o, "out of memory");
    store_close(*out);
    const int code = store_connect(out, o, file, name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    free(name);
    return code;
}

static bool has_log(const char *file)
{
    char log[PATH_MAX + 8];
    struct stat info;
    snprintf(log, sizeof log, "%s-wal", file);
    return stat(log, &info) == 0 && info.st_size > 0;
}

int store_open_to_read(history_store **out, const options *o, const char *file)
{
    int64_t version = 0;
    *out = NULL;
    int code = check_path(o, file, true);
    if (code == EXIT_DONE) code = store_connect(out, o, file, file, SQLITE_OPEN_READONLY);
    if (code == EXIT_DONE && !store_number(*out, "PRAGMA user_version", &version)) {
        const int failure = sqlite3_errcode((*out)->db);
        const bool cannot_log = failure == SQLITE_CANTOPEN || failure == SQLITE_READONLY;
        code = cannot_log && !has_log(file) ? reopen_immutable(out, o, file) : store_fail(*out, "read");
    }
    if (code == EXIT_DONE) code = check_kind(*out, &version);
    if (code == EXIT_DONE && version == 0) code = fail(o, "'%s': not a history: the file is empty", file);
    if (code == EXIT_DONE) return code;
    store_close(*out);
    *out = NULL;
    return code;
}

void store_close(history_store *store)
{
    if (!store) return;
    if (store->db) sqlite3_close(store->db); /* NULL: the library could not be loaded */
    free(store);
}

#else /* without SQLite */

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

#endif
