/* Stores runs: all of one command in one transaction, each once. */
#include "bench/history/history.h"

#ifdef PRN_HAVE_SQLITE

#include "bench/history/store.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* The statements of one transaction. */
typedef struct store_statements {
    sqlite3_stmt *known, *run, *metric, *metric_id, *value, *layer, *layer_id, *run_layer;
} store_statements;

static void finalize_all(store_statements *t)
{
    sqlite3_stmt **all = (sqlite3_stmt **)t;
    for (size_t i = 0; i < sizeof *t / sizeof *all; i++) sqlite3_finalize(all[i]);
}

static bool prepare_all(const history_store *s, store_statements *t)
{
    const struct {
        sqlite3_stmt **statement;
        const char *sql;
    } all[] = {
        {&t->known, "SELECT 1 FROM runs WHERE digest = ?"},
        {&t->run,
         "INSERT INTO runs(command, time, model, machine, configuration, project_commit, label, prony, document, "
         "load, others_share, digest) SELECT ?, ?, models.id, machines.id, configurations.id, ?, ?, ?, ?, ?, ?, ? "
         "FROM models, machines, configurations WHERE models.name = ? AND models.sha256 = ? AND "
         "machines.fingerprint = ? AND configurations.text = ?"},
        {&t->metric, "INSERT OR IGNORE INTO metrics(key) VALUES(?)"},
        {&t->metric_id, "SELECT id FROM metrics WHERE key = ?"},
        {&t->value, "INSERT OR REPLACE INTO run_values VALUES(?, ?, ?, ?, ?)"},
        {&t->layer, "INSERT OR IGNORE INTO layers(name, op) VALUES(?, ?)"},
        {&t->layer_id, "SELECT id FROM layers WHERE name = ? AND op = ?"},
        {&t->run_layer, "INSERT INTO run_layers VALUES(?, ?, ?, ?)"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (sqlite3_prepare_v2(s->db, all[i].sql, -1, all[i].statement, NULL) != SQLITE_OK) return false;
    return true;
}

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

static void bind_known(sqlite3_stmt *statement, int index, double value)
{
    if (isfinite(value))
        sqlite3_bind_double(statement, index, value);
    else
        sqlite3_bind_null(statement, index);
}

/* Runs a statement to its end and makes it ready for the next row. */
static bool step_done(sqlite3_stmt *statement)
{
    const int code = sqlite3_step(statement);
    return sqlite3_reset(statement) == SQLITE_OK && code == SQLITE_DONE;
}

/* Looks an id up; inserts the row first if need be. Both statements take the same texts. */
static bool store_id(sqlite3_stmt *insert, sqlite3_stmt *find, const char *const *texts, int count, int64_t *id)
{
    for (int tries = 0; tries < 2; tries++) {
        for (int i = 0; i < count; i++) bind_text(find, i + 1, texts[i]);
        const int code = sqlite3_step(find);
        if (code == SQLITE_ROW) *id = sqlite3_column_int64(find, 0);
        if (sqlite3_reset(find) != SQLITE_OK) return false;
        if (code == SQLITE_ROW) return true;
        for (int i = 0; i < count; i++) bind_text(insert, i + 1, texts[i]);
        if (!step_done(insert)) return false;
    }
    return false;
}

/* Rows of tables that runs refer to. */
static bool add_names(const history_store *s, const prony_history_run *run)
{
    static const char *const sql[] = {"INSERT OR IGNORE INTO models(name, sha256) VALUES(?, ?)",
                                      "INSERT OR IGNORE INTO machines(fingerprint, text) VALUES(?, ?)",
                                      "INSERT OR IGNORE INTO configurations(text) VALUES(?)"};
    const char *const texts[][2] = {
        {run->model, run->sha256}, {run->fingerprint, run->machine}, {run->configuration, NULL}};
    for (size_t i = 0; i < sizeof sql / sizeof *sql; i++) {
        sqlite3_stmt *insert = NULL;
        if (sqlite3_prepare_v2(s->db, sql[i], -1, &insert, NULL) != SQLITE_OK) return false;
        bind_text(insert, 1, texts[i][0]);
        if (texts[i][1]) bind_text(insert, 2, texts[i][1]);
        const int code = sqlite3_step(insert);
        if (sqlite3_finalize(insert) != SQLITE_OK || code != SQLITE_DONE) return false;
    }
    return true;
}

static bool add_run_row(store_statements *t, const prony_history_run *run, int64_t command, const char *commit,
                        const char *label, const char *digest)
{
    sqlite3_bind_int64(t->run, 1, command);
    sqlite3_bind_int64(t->run, 2, run->time_s);
    bind_text(t->run, 3, commit);
    bind_text(t->run, 4, label);
    bind_text(t->run, 5, run->prony);
    bind_text(t->run, 6, run->document);
    bind_text(t->run, 7, store_load_name(run->load));
    bind_known(t->run, 8, run->others_share >= 0 ? run->others_share : NAN);
    bind_text(t->run, 9, digest);
    bind_text(t->run, 10, run->model);
    bind_text(t->run, 11, run->sha256);
    bind_text(t->run, 12, run->fingerprint);
    bind_text(t->run, 13, run->configuration);
    return step_done(t->run);
}

static bool store_run_rows(store_statements *t, const prony_history_run *run, int64_t id)
{
    for (size_t i = 0; i < run->value_count; i++) {
        const prony_history_value *v = &run->values[i];
        int64_t metric;
        if (!store_id(t->metric, t->metric_id, &v->metric, 1, &metric)) return false;
        sqlite3_bind_int64(t->value, 1, id);
        sqlite3_bind_int64(t->value, 2, metric);
        sqlite3_bind_double(t->value, 3, v->value);
        bind_known(t->value, 4, v->interval[0]);
        bind_known(t->value, 5, v->interval[1]);
        if (!step_done(t->value)) return false;
    }
    for (size_t i = 0; i < run->layer_count; i++) {
        const char *const texts[] = {run->layers[i].name, run->layers[i].op};
        int64_t layer;
        if (!store_id(t->layer, t->layer_id, texts, 2, &layer)) return false;
        sqlite3_bind_int64(t->run_layer, 1, id);
        sqlite3_bind_int64(t->run_layer, 2, (int64_t)i);
        sqlite3_bind_int64(t->run_layer, 3, layer);
        sqlite3_bind_double(t->run_layer, 4, run->layers[i].time_ns);
        if (!step_done(t->run_layer)) return false;
    }
    return true;
}

/* Stores a run unless the file has it. *command is the first stored run's id: all runs of a command share it. */
static bool add_run(const history_store *s, store_statements *t, const prony_history_run *run, const char *commit,
                    int64_t *command, store_count *count)
{
    char digest[65];
    prony_history_digest(run, digest);
    bind_text(t->known, 1, digest);
    const int known = sqlite3_step(t->known);
    if (sqlite3_reset(t->known) != SQLITE_OK) return false;
    if (known == SQLITE_ROW) {
        count->known++;
        return true;
    }
    if (!*command) {
        if (!store_number(s, "SELECT coalesce(max(id), 0) + 1 FROM runs", command)) return false;
    }
    const char *label = s->o->history.label ? s->o->history.label : run->label;
    if (!add_names(s, run) || !add_run_row(t, run, *command, *run->commit ? run->commit : commit, label, digest))
        return false;
    count->stored++;
    return store_run_rows(t, run, sqlite3_last_insert_rowid(s->db));
}

/* Removes runs older than --history-keep, counted from now. Runs without a date are kept. */
static bool remove_old(const history_store *s)
{
    char sql[100];
    if (!(s->o->history.keep_seconds > 0)) return true;
    snprintf(sql, sizeof sql, "DELETE FROM runs WHERE time > 0 AND time < %lld",
             (long long)(time(NULL) - (int64_t)s->o->history.keep_seconds));
    return store_exec(s, sql);
}

int store_add(history_store *s, const prony_history *runs, const char *commit, store_count *count)
{
    store_statements t = {0};
    store_count own = {0};
    int64_t command = 0;
    bool done = store_exec(s, "BEGIN IMMEDIATE") && prepare_all(s, &t);
    for (size_t i = 0; done && i < prony_history_count(runs); i++)
        done = add_run(s, &t, prony_history_at(runs, i), commit, &command, &own);
    done = done && remove_old(s) && store_exec(s, "COMMIT");
    const int code = done ? EXIT_DONE : store_fail(s, "write");
    finalize_all(&t);
    if (!done && !sqlite3_get_autocommit(s->db)) store_exec(s, "ROLLBACK");
    /* Gives pages of removed runs back. A failure changes nothing that is stored. */
    if (done && s->o->history.keep_seconds > 0) store_exec(s, "PRAGMA incremental_vacuum");
    if (done && count) *count = (store_count){count->stored + own.stored, count->known + own.known};
    return code;
}

#else /* without SQLite */

int store_add(history_store *store, const prony_history *runs, const char *commit, store_count *count)
{
    (void)store, (void)runs, (void)commit, (void)count;
    return EXIT_FAILED;
}

#endif
