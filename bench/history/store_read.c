/* Reads runs back, with the values and layers that are wanted. */
#include "bench/history/history.h"

#ifdef PRN_HAVE_SQLITE

#include "bench/history/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct row_lists {
    prony_history_value *values;
    prony_history_layer *layers;
    size_t value_capacity, layer_capacity;
    char **texts; /* of the run, freed with the next one */
    size_t text_count, text_capacity;
    bool no_memory; /* a failure that SQLite does not know */
} row_lists;

static bool grow_list(row_lists *l, void **list, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity) return true;
    const size_t wanted = need * 2 + 16;
    void *larger = realloc(*list, wanted * size);
    l->no_memory = l->no_memory || !larger;
    if (!larger) return false;
    *list = larger;
    *capacity = wanted;
    return true;
}

/* A copy of a column's text that lives until the next run; "" of NULL. NULL: out of memory. */
static const char *column_text(row_lists *l, sqlite3_stmt *query, int column)
{
    const bool null = sqlite3_column_type(query, column) == SQLITE_NULL;
    const char *text = null ? "" : (const char *)sqlite3_column_text(query, column);
    l->no_memory = l->no_memory || !text;
    if (!text) return NULL;
    if (!grow_list(l, (void **)&l->texts, &l->text_capacity, l->text_count + 1, sizeof *l->texts)) return NULL;
    char *copy = strdup(text);
    l->no_memory = l->no_memory || !copy;
    if (copy) l->texts[l->text_count++] = copy;
    return copy;
}

static void forget_texts(row_lists *l)
{
    while (l->text_count) free(l->texts[--l->text_count]);
}

static double column_number(sqlite3_stmt *query, int column)
{
    return sqlite3_column_type(query, column) == SQLITE_NULL ? NAN : sqlite3_column_double(query, column);
}

/* Reads values (or layers) of a run; false: a failure, or out of memory. */
static bool read_rows(sqlite3_stmt *query, int64_t id, row_lists *l, prony_history_run *run, bool layers,
                      const char *metric)
{
    int code;
    sqlite3_bind_int64(query, 1, id);
    while ((code = sqlite3_step(query)) == SQLITE_ROW) {
        if (layers) {
            if (!grow_list(l, (void **)&l->layers, &l->layer_capacity, run->layer_count + 1, sizeof *l->layers)) break;
            prony_history_layer *layer = &l->layers[run->layer_count];
            *layer = (prony_history_layer){column_text(l, query, 0), column_text(l, query, 1), column_number(query, 2)};
            if (!layer->name || !layer->op) break;
            run->layer_count++;
        } else {
            const char *key = (const char *)sqlite3_column_text(query, 0);
            if (metric && (!key || strcmp(key, metric) != 0)) continue;
            if (!grow_list(l, (void **)&l->values, &l->value_capacity, run->value_count + 1, sizeof *l->values)) break;
            prony_history_value *value = &l->values[run->value_count];
            *value = (prony_history_value){
                column_text(l, query, 0), column_number(query, 1), {column_number(query, 2), column_number(query, 3)}};
            if (!value->metric) break;
            run->value_count++;
        }
    }
    return sqlite3_reset(query) == SQLITE_OK && code == SQLITE_DONE;
}

static bool read_run(sqlite3_stmt *const queries[3], row_lists *l, prony_history_run *run, const store_wanted *wanted)
{
    sqlite3_stmt *q = queries[0];
    const char **texts[] = {&run->model,  &run->sha256, &run->machine, &run->fingerprint, &run->configuration,
                            &run->commit, &run->label,  &run->prony,   &run->document};
    *run = (prony_history_run){.command = sqlite3_column_int64(q, 1), .time_s = sqlite3_column_int64(q, 2)};
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        *texts[i] = column_text(l, q, 3 + i);
        if (!*texts[i]) return false;
    }
    run->load = store_load((const char *)sqlite3_column_text(q, 12));
    const double others = column_number(q, 13);
    run->others_share = isnan(others) ? -1 : others;
    const int64_t id = sqlite3_column_int64(q, 0);
    if (!read_rows(queries[1], id, l, run, false, wanted->metric)) return false;
    if (wanted->layers && !read_rows(queries[2], id, l, run, true, NULL)) return false;
    run->values = l->values;
    run->layers = l->layers;
    return true;
}

/* Reads within one transaction, so that all runs are of one moment. */
int store_read(history_store *s, prony_history *to, const store_wanted *wanted)
{
    static const char runs_sql[] =
        "SELECT runs.id, command, time, models.name, sha256, machines.text, fingerprint, configurations.text, "
        "project_commit, label, prony, document, load, others_share FROM runs JOIN models ON models.id = runs.model "
        "JOIN machines ON machines.id = runs.machine JOIN configurations ON configurations.id = runs.configuration "
        "WHERE ?1 IS NULL OR models.name = ?1 OR (length(?1) >= 6 AND substr(sha256, 1, length(?1)) = ?1) "
        "ORDER BY time, runs.id";
    static const char values_sql[] = "SELECT key, value, low, high FROM run_values JOIN metrics ON metrics.id = metric "
                                     "WHERE run = ? ORDER BY metric";
    static const char layers_sql[] =
        "SELECT name, op, time_ns FROM run_layers JOIN layers ON layers.id = layer WHERE run = ? ORDER BY position";
    const char *const sql[] = {runs_sql, values_sql, layers_sql};
    sqlite3_stmt *queries[3] = {NULL};
    row_lists lists = {0};
    prony_error error = {0};
    prony_status status = PRONY_OK;
    bool done = store_exec(s, "BEGIN");
    for (int i = 0; done && i < 3; i++) done = sqlite3_prepare_v2(s->db, sql[i], -1, &queries[i], NULL) == SQLITE_OK;
    if (done && wanted->model) sqlite3_bind_text(queries[0], 1, wanted->model, -1, SQLITE_STATIC);
    int code = SQLITE_DONE;
    while (done && status == PRONY_OK && (code = sqlite3_step(queries[0])) == SQLITE_ROW) {
        prony_history_run run;
        done = read_run(queries, &lists, &run, wanted);
        if (done) status = prony_history_add(to, &run, &error);
        forget_texts(&lists);
    }
    if (done && status == PRONY_OK) done = code == SQLITE_DONE;
    const int result = status != PRONY_OK ? report_error(s->o, &error)
                       : lists.no_memory  ? fail(s->o, "'%s': out of memory", s->file)
                       : done             ? EXIT_DONE
                                          : store_fail(s, "read");
    for (int i = 0; i < 3; i++) sqlite3_finalize(queries[i]);
    store_exec(s, "COMMIT");
    forget_texts(&lists);
    free(lists.texts);
    free(lists.values);
    free(lists.layers);
    return result;
}

#else /* without SQLite */

int store_read(history_store *store, prony_history *to, const store_wanted *wanted)
{
    (void)store, (void)to, (void)wanted;
    return EXIT_FAILED;
}

#endif
