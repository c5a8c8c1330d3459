/* Shared by subcommands: the session of the one model argument, reports, outputs. */
#include "bench/command.h"
#include "bench/process/interrupt.h"
#include "bench/session/submodel.h"

#include <stdlib.h>
#include <string.h>

int open_session(const options *o, prony_model **model, prony_session **session, bool profile)
{
    prony_error error = {0};
    if (load_model(o, model, o->arguments[0], &error) != PRONY_OK) return report_error(o, &error);
    int quantized = quantize_in_place(o, model);
    if (quantized != EXIT_DONE) return quantized;
    if (!is_submodel(o)) return make_session(o, *model, session, profile);
    prony_model *part = NULL;
    int code = open_submodel(o, *model, &part, session, profile);
    prony_model_release(*model);
    *model = part;
    return code;
}

void put_assumed(const prony_report *report, int column)
{
    size_t count;
    const prony_assumed_dim *rows = prony_report_assumed_dims(report, &count);
    for (size_t i = 0; i < count; i++) {
        bool say = *rows[i].reason && strcmp(rows[i].reason, "batch") != 0;
        const char *by = say ? " by " : "", *reason = say ? rows[i].reason : "", *before = i ? "" : "(assumed: ";
        int length = snprintf(NULL, 0, "%s%s=%lld%s%s,", before, rows[i].name, (long long)rows[i].value, by, reason);
        bool next_line = column + 1 + length > terminal_width();
        fputs(next_line ? "\n  " : " ", stdout);
        column = (next_line ? 2 : column + 1) + length;
        fputs(before, stdout);
        put_text(stdout, rows[i].name);
        printf("=%lld%s%s%s", (long long)rows[i].value, by, reason, i + 1 < count ? "," : ")");
    }
}

static int command_session_write_stdout(void *user, const char *data, size_t size)
{
    (void)user;
    return fwrite(data, 1, size, stdout) == size ? 0 : -1;
}

int apply_count(const options *o, prony_report *report)
{
    prony_error error = {0};
    if (!o->shown.count || prony_report_set_count(report, o->shown.count, &error) == PRONY_OK) return EXIT_DONE;
    return report_error(o, &error);
}

int write_report(const options *o, prony_report *report)
{
    prony_error error = {0};
    prony_write_options w = write_options(o);
    bool json_stdout = o->files.json && strcmp(o->files.json, "-") == 0;
    clear_progress();
    prony_status status = PRONY_OK;
    if (apply_count(o, report) != EXIT_DONE) return EXIT_FAILED;
    if (status == PRONY_OK && !stdout_taken(o) && !o->terminal.quiet)
        status = prony_report_write(report, PRONY_FORMAT_TEXT, &w, command_session_write_stdout, NULL, &error);
    if (status == PRONY_OK && o->files.json)
        status = json_stdout
                     ? prony_report_write(report, PRONY_FORMAT_JSON, &w, command_session_write_stdout, NULL, &error)
                     : prony_report_save(report, PRONY_FORMAT_JSON, &w, o->files.json, &error);
    return status == PRONY_OK ? write_forms(o, report) : report_error(o, &error);
}

/* PATH.npy; the elements of a sequence as PATH_0.npy, PATH_1.npy and so on; an empty optional has no file. A value that
 * cannot be saved does not stop the others. */
int save_value(const options *o, const char *name, const prony_value *value, const char *path)
{
    prony_error error = {0};
    int status = EXIT_DONE;
    if (value->kind == PRONY_OPTIONAL) return value->count ? save_value(o, name, &value->items[0], path) : EXIT_DONE;
    size_t size = strlen(path) + 32;
    char *file = malloc(size);
    if (!file) return fail(o, "out of memory");
    if (value->kind == PRONY_SEQUENCE) {
        for (size_t i = 0; i < value->count; i++) {
            snprintf(file, size, "%s_%zu", path, i);
            if (save_value(o, name, &value->items[i], file) != EXIT_DONE) status = EXIT_FAILED;
        }
    } else {
        snprintf(file, size, "%s.npy", path);
        if (prony_value_save_npy(value, file, &error) != PRONY_OK)
            status = fail(o, "output '%s': %s", name, error.message);
    }
    free(file);
    return status;
}

int save_outputs(const options *o, const prony_model *model, const prony_session *session)
{
    if (!o->files.output_dir) return EXIT_DONE;
    int status = make_output_dir(o);
    if (status != EXIT_DONE) return status;
    size_t size = strlen(o->files.output_dir) + 64;
    char *path = malloc(size);
    if (!path) return fail(o, "out of memory");
    for (size_t k = 0; k < prony_model_output_count(model); k++) {
        prony_error error = {0};
        const prony_value *value;
        snprintf(path, size, "%s/output_%zu", o->files.output_dir, k);
        if (prony_session_output(session, k, &value, &error) != PRONY_OK)
            status = report_error(o, &error);
        else if (save_value(o, prony_model_output(model, k)->name, value, path) != EXIT_DONE)
            status = EXIT_FAILED;
    }
    free(path);
    return status;
}
