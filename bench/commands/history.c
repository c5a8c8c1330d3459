/* prony history FILE.db [ACTION ...]: shows and judges the runs that --history kept, and imports reports.
 *
 *   list              groups of comparable runs, and the newest runs (the default)
 *   trend METRIC      a metric over time: levels, changes, layers that moved
 *   check             the newest run beside the trend; status 3 if it is worse
 *   import FILE...    reports and other documents as runs */
#include "bench/history/history.h"
#include "bench/options/option_table.h"
#include "bench/session/document.h"
#include "bench/session/judge.h"
#include "bench/terminal/whole_file.h"

#include <stdlib.h>
#include <string.h>

typedef struct history_job {
    const options *o;
    prony_history *runs;
    prony_history_options how;
    prony_history_view view;
} history_job;

static prony_history_options history_how(const options *o)
{
    prony_history_options how = PRONY_HISTORY_OPTIONS_INIT;
    const char *slash = strrchr(o->arguments[0], '/');
    how.name = slash && slash[1] ? slash + 1 : o->arguments[0];
    how.model = o->history.model;
    how.metrics = o->shown.metrics;
    how.across = o->history.across;
    how.ignore_load = o->verdict.ignore_load;
    how.noise = o->verdict.noise;
    how.last = o->history.last;
    how.strict = o->verdict.strict;
    return how;
}

static int read_history(history_job *job, bool all)
{
    prony_error error = {0};
    history_store *store = NULL;
    const store_wanted wanted = {.model = job->o->history.model, .metric = all ? NULL : "latency", .layers = all};
    if (prony_history_create(&job->runs, &error) != PRONY_OK) return report_error(job->o, &error);
    int code = store_open_to_read(&store, job->o, job->o->arguments[0]);
    if (code == EXIT_DONE) code = store_read(store, job->runs, &wanted);
    store_close(store);
    return code;
}

/* ---- showing ---- */

static int write_view(const history_job *job, prony_format format, FILE *to)
{
    prony_error error = {0};
    const prony_write_options w = write_options(job->o);
    const prony_status status =
        prony_history_write(job->runs, job->view, &job->how, format, &w, write_to_stream, to, &error);
    return status == PRONY_OK ? EXIT_DONE : report_error(job->o, &error);
}

/* The dashboard is made of the runs, the other formats of the JSON document. */
static int write_dashboard(const history_job *job, const char *file)
{
    options own = *job->o;
    json_file page = {0};
    own.files.json = file;
    int code = json_open(&page, &own);
    if (code == EXIT_DONE) {
        history_job list = *job;
        list.view = PRONY_HISTORY_LIST;
        code = json_close(&page, &own, write_view(&list, PRONY_FORMAT_HTML, page.stream));
    }
    return code;
}

/* Text, JSON with its tables, and the dashboard, as options say. */
static int show_view(const history_job *job)
{
    const options *o = job->o;
    int code = EXIT_DONE;
    document json;
    options tables = *o;
    export_file *kept = calloc(o->files.export_count + 1, sizeof *kept);
    if (!kept) return fail(o, "out of memory");
    tables.files.exports = kept;
    tables.files.export_count = 0;
    for (size_t i = 0; i < o->files.export_count; i++)
        if (o->files.exports[i].format != PRONY_FORMAT_HTML) kept[tables.files.export_count++] = o->files.exports[i];
    if (!o->terminal.quiet && !stdout_taken(o)) code = write_view(job, PRONY_FORMAT_TEXT, stdout);
    if (code == EXIT_DONE) code = document_open(&json, &tables);
    if (code == EXIT_DONE) {
        if (json.stream) code = write_view(job, PRONY_FORMAT_JSON, json.stream);
        code = document_close(&json, &tables, code);
    }
    for (size_t i = 0; i < o->files.export_count && code == EXIT_DONE; i++)
        if (o->files.exports[i].format == PRONY_FORMAT_HTML) code = write_dashboard(job, o->files.exports[i].file);
    free(kept);
    return code;
}

static int history_check_newest(const history_job *job)
{
    prony_error error = {0};
    prony_history_verdict verdict;
    const options *o = job->o;
    if (prony_history_count(job->runs) == 0)
        return fail(o, "'%s': no run%s%s to check", o->arguments[0], o->history.model ? " of " : "",
                    o->history.model ? o->history.model : "");
    int code = show_view(job);
    if (code != EXIT_DONE) return code;
    if (prony_history_check(&verdict, job->runs, &job->how, &error) != PRONY_OK) return report_error(o, &error);
    if (verdict.regressions)
        fail(o, "'%s': the newest run is worse than the trend in %zu of %zu metrics", o->arguments[0],
             verdict.regressions, verdict.checked);
    else if (verdict.checked == 0)
        return fail(o, "'%s': the newest run has none of these metrics", o->arguments[0]);
    else if (verdict.undecided)
        fail(o, "'%s': %zu of %zu metrics cannot be judged (busy machine, or fewer than five runs before); %s",
             o->arguments[0], verdict.undecided, verdict.checked,
             o->verdict.strict ? "--strict counts that as a failure" : "they pass without --strict");
    return verdict.regressions || (o->verdict.strict && verdict.undecided) ? EXIT_VERDICT : EXIT_DONE;
}

/* ---- import ---- */

/* A transaction for each file: what a line says to be stored is stored. A file without a run does not stop the
 * others. */
static int history_import(const options *o, const char *const *files, size_t file_count)
{
    history_store *store = NULL;
    store_count count = {0};
    const char *commit = o->history.commit ? o->history.commit : ""; /* reports may come from any project */
    int code = store_open(&store, o, o->arguments[0]), result = code;
    for (size_t i = 0; i < file_count && code == EXIT_DONE; i++) {
        prony_error error = {0};
        prony_history *runs = NULL;
        size_t size;
        char *text = whole_file(o, files[i], &size); /* NULL after a message */
        store_count before = count;
        prony_status status = text ? prony_history_create(&runs, &error) : PRONY_IO_ERROR;
        if (status == PRONY_OK) status = prony_history_add_document(runs, files[i], text, size, &error);
        if (status == PRONY_OK)
            code = store_add(store, runs, commit, &count);
        else
            result = text ? report_error(o, &error) : EXIT_FAILED;
        if (status == PRONY_OK && code == EXIT_DONE && !o->terminal.quiet) {
            put_text(stdout, files[i]);
            printf(": %zu stored, %zu known already\n", count.stored - before.stored, count.known - before.known);
            fflush(stdout);
        }
        free(text);
        prony_history_release(runs);
    }
    store_close(store);
    return code == EXIT_DONE ? result : code;
}

/* ---- the command ---- */

int command_history(const options *o)
{
    history_job job = {.o = o, .how = history_how(o)};
    const char *action = o->argument_count > 1 ? o->arguments[1] : "list";
    const bool list = strcmp(action, "list") == 0, trend = strcmp(action, "trend") == 0,
               check = strcmp(action, "check") == 0, import = strcmp(action, "import") == 0;
    int code = history_refuse(o);
    if (code != EXIT_DONE) return code;
    if (!list && !trend && !check && !import)
        return usage(o, "unknown action '%s': wanted list, trend METRIC, check or import FILE...", action);
    if (import && o->argument_count == 2) return usage(o, "import needs files: prony history FILE.db import *.json");
    if (import) return history_import(o, o->arguments + 2, o->argument_count - 2);
    if (o->history.label || o->history.commit || o->history.keep_seconds > 0)
        return usage(o, "--label, --commit and --history-keep belong to import, not to %s", action);
    if (o->argument_count > (trend ? 3U : 2U))
        return usage(o, "'%s' is one argument too many", o->arguments[o->argument_count - 1]);
    if (trend && o->argument_count == 3) job.how.metrics = o->arguments[2];
    job.view = trend ? PRONY_HISTORY_TREND : check ? PRONY_HISTORY_CHECK : PRONY_HISTORY_LIST;
    const bool all = !list || o->files.json || o->files.export_count;
    code = read_history(&job, all);
    if (code == EXIT_DONE && o->history.model && prony_history_count(job.runs) == 0)
        code = fail(o, "'%s': no run of the model '%s'; prony history %s lists the models", o->arguments[0],
                    o->history.model, o->arguments[0]);
    if (code == EXIT_DONE) code = check ? history_check_newest(&job) : show_view(&job);
    prony_history_release(job.runs);
    return code;
}
