/* --history of the commands that measure: the run's JSON is read as `prony history import` reads a file, so that both
 * store the same. A failure is a message and the exit status; the report is written before. */
#define _GNU_SOURCE /* open_memstream */
#include "bench/history/history.h"

#include <stdlib.h>

void history_commit(const options *o, char text[72])
{
    if (o->history.commit)
        snprintf(text, 72, "%.64s", o->history.commit);
    else
        project_commit(text);
}

int history_keep_document(const options *o, const char *json, size_t size, int code)
{
    prony_error error = {0};
    prony_history *runs = NULL;
    history_store *store = NULL;
    char commit[72] = "";
    if (!o->history.file) return code;
    history_commit(o, commit);
    prony_status status = prony_history_create(&runs, &error);
    if (status == PRONY_OK) status = prony_history_add_document(runs, o->command, json, size, &error);
    int kept = status == PRONY_OK ? store_open(&store, o, o->history.file) : report_error(o, &error);
    if (kept == EXIT_DONE) kept = store_add(store, runs, commit, NULL);
    store_close(store);
    prony_history_release(runs);
    if (kept != EXIT_DONE) fail(o, "'%s': the run is not in the history; the report is complete", o->history.file);
    return code == EXIT_DONE ? kept : code;
}

/* The text of a report or study on its way into the history. */
typedef struct kept_text {
    FILE *stream;
    char *text;
    size_t size;
} kept_text;

static int keep_write(void *user, const char *data, size_t size)
{
    return fwrite(data, 1, size, user) == size ? 0 : -1;
}

/* false after a message: out of memory. */
static bool kept_open(kept_text *k, const options *o)
{
    *k = (kept_text){0};
    k->stream = open_memstream(&k->text, &k->size);
    if (!k->stream) fail(o, "out of memory");
    return k->stream != NULL;
}

/* Stores the text after its writer returned `status`. */
static int kept_store(kept_text *k, const options *o, prony_status status, const prony_error *error, int code)
{
    const bool closed = fclose(k->stream) == 0;
    const int kept = status != PRONY_OK ? report_error(o, error)
                     : closed           ? history_keep_document(o, k->text, k->size, code)
                                        : fail(o, "out of memory");
    free(k->text);
    return code == EXIT_DONE ? kept : code;
}

int history_keep_report(const options *o, const prony_report *report, int code)
{
    prony_error error = {0};
    prony_write_options w = PRONY_WRITE_OPTIONS_INIT;
    kept_text kept;
    if (!o->history.file || !report) return code;
    if (!kept_open(&kept, o)) return code == EXIT_DONE ? EXIT_FAILED : code;
    const prony_status status = prony_report_write(report, PRONY_FORMAT_JSON, &w, keep_write, kept.stream, &error);
    return kept_store(&kept, o, status, &error, code);
}

int history_keep_study(const options *o, const prony_study *study, int code)
{
    prony_error error = {0};
    kept_text kept;
    if (!o->history.file) return code;
    if (!kept_open(&kept, o)) return code == EXIT_DONE ? EXIT_FAILED : code;
    const prony_status status = prony_study_write(study, PRONY_FORMAT_JSON, NULL, keep_write, kept.stream, &error);
    return kept_store(&kept, o, status, &error, code);
}
