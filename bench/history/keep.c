/* --history of the commands that measure: the run's JSON is read as `prony history import` reads a file, so that both
 * store the same. A failure is a message and the exit status; the report is written before. */
#define _GNU_SOURCE /* open_memstream */
#include "bench/history/history.h"

#include <stdlib.h>

int history_keep_document(const options *o, const char *json, size_t size, int code)
{
    prony_error error = {0};
    prony_history *runs = NULL;
    history_store *store = NULL;
    store_count count = {0};
    if (!o->history.file) return code;
    prony_status status = prony_history_create(&runs, &error);
    if (status == PRONY_OK) status = prony_history_add_document(runs, o->command, json, size, &error);
    int kept = status == PRONY_OK ? store_open(&store, o, o->history.file) : report_error(o, &error);
    if (kept == EXIT_DONE) kept = store_add(store, runs, &count);
    store_close(store);
    prony_history_release(runs);
    if (kept != EXIT_DONE) fail(o, "'%s': the run is not in the history; the report is complete", o->history.file);
    return kept == EXIT_DONE || code == EXIT_VERDICT ? code : kept;
}

static int keep_write(void *user, const char *data, size_t size)
{
    return fwrite(data, 1, size, user) == size ? 0 : -1;
}

int history_keep_report(const options *o, const prony_report *report, int code)
{
    prony_error error = {0};
    prony_write_options w = PRONY_WRITE_OPTIONS_INIT;
    char *text = NULL;
    size_t size = 0;
    if (!o->history.file || !report) return code;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return fail(o, "out of memory");
    const prony_status status = prony_report_write(report, PRONY_FORMAT_JSON, &w, keep_write, stream, &error);
    const bool closed = fclose(stream) == 0;
    int kept = status != PRONY_OK ? report_error(o, &error)
               : closed           ? history_keep_document(o, text, size, code)
                                  : fail(o, "out of memory");
    free(text);
    return kept;
}
