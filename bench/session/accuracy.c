/* --accuracy and --against: errors of the operators and outputs, put into a report. */
#include "bench/session/accuracy.h"
#include "bench/process/interrupt.h"

#include <stdlib.h>
#include <string.h>

typedef struct loaded {
    prony_accuracy_expected *rows;
    prony_value **values;
    size_t count;
} loaded;

static bool is_npz(const char *file)
{
    const size_t length = strlen(file);
    return length > 4 && strcmp(file + length - 4, ".npz") == 0;
}

static int accuracy_add(const options *o, loaded *l, const char *output, prony_value *value, const char *file)
{
    prony_accuracy_expected *rows = realloc(l->rows, (l->count + 1) * sizeof *rows);
    if (rows) l->rows = rows;
    prony_value **values = realloc(l->values, (l->count + 1) * sizeof *values);
    if (values) l->values = values;
    if (!rows || !values) {
        prony_value_release(value);
        return fail(o, "out of memory");
    }
    l->values[l->count] = value;
    l->rows[l->count++] = (prony_accuracy_expected){output, value, file};
    return EXIT_DONE;
}

/* An archive without a name: compares every output with an array in it. */
static int add_archive(const options *o, const prony_model *model, loaded *l, const char *file)
{
    prony_error first = {0};
    size_t found = 0;
    int code = EXIT_DONE;
    for (size_t k = 0; k < prony_model_output_count(model) && code == EXIT_DONE; k++) {
        prony_error error = {0};
        prony_value *value = NULL;
        const char *name = prony_model_output(model, k)->name;
        if (prony_value_load_array(&value, file, name, &error) == PRONY_OK) {
            code = accuracy_add(o, l, name, value, file);
            found++;
        } else if (!first.status) {
            first = error;
        }
    }
    return code != EXIT_DONE || found ? code : report_error(o, &first);
}

static bool names_output(const void *model, const char *name, const char *file)
{
    (void)file;
    for (size_t k = 0; k < prony_model_output_count(model); k++)
        if (strcmp(prony_model_output(model, k)->name, name) == 0) return true;
    return false;
}

static int accuracy_load(const options *o, const prony_model *model, loaded *l)
{
    int code = EXIT_DONE;
    for (size_t i = 0; i < o->accuracy.against_count && code == EXIT_DONE; i++) {
        named_file *from = &o->accuracy.against[i];
        cut_name_where(from, names_output, model);
        prony_error error = {0};
        prony_value *value = NULL;
        if (is_npz(from->file) && !from->name) {
            code = add_archive(o, model, l, from->file);
            continue;
        }
        prony_status status = is_npz(from->file) ? prony_value_load_array(&value, from->file, from->name, &error)
                                                 : prony_value_load(&value, from->file, &error);
        code = status == PRONY_OK ? accuracy_add(o, l, from->name, value, from->file) : report_error(o, &error);
    }
    return code;
}

/* After a cancellation the report has no accuracy profile. */
static int accuracy_observe(const options *o, prony_session *session, prony_report *report,
                            const prony_accuracy_options *a)
{
    prony_error error = {0};
    if (want_progress(o) && o->accuracy.enabled) show_progress_text("running with the float64 reference");
    const prony_status status = prony_session_accuracy(report, session, a, &error);
    clear_progress();
    if (status == PRONY_OK) return EXIT_DONE;
    if (status != PRONY_CANCELLED) return report_error(o, &error);
    fail(o, "%s; the report has no accuracy profile", interrupted() ? interrupted() : "cancelled");
    return EXIT_DONE;
}

int add_accuracy(const options *o, const prony_model *model, prony_session *session, prony_report *report)
{
    prony_error error = {0};
    prony_accuracy_options a = PRONY_ACCURACY_OPTIONS_INIT;
    prony_model *reference = NULL;
    loaded l = {0};
    if (!o->accuracy.enabled && (o->accuracy.reference || o->accuracy.samples))
        return fail(o, "%s needs --accuracy", o->accuracy.reference ? "--reference" : "--accuracy-samples");
    if ((!o->accuracy.enabled && !o->accuracy.against_count) || interrupted()) return EXIT_DONE;
    int code = accuracy_load(o, model, &l);
    if (code == EXIT_DONE && o->accuracy.reference &&
        load_model(o, &reference, o->accuracy.reference, &error) != PRONY_OK)
        code = report_error(o, &error);
    a.model = reference;
    a.samples = o->accuracy.samples;
    a.outputs_only = !o->accuracy.enabled;
    a.against = l.rows;
    a.against_count = l.count;
    if (code == EXIT_DONE) code = accuracy_observe(o, session, report, &a);
    for (size_t i = 0; i < l.count; i++) prony_value_release(l.values[i]);
    prony_model_release(reference);
    free(l.values);
    free(l.rows);
    return code;
}

int add_accuracy_of_both(const options *o, const target *first, const target *second)
{
    const target *const both[] = {first, second};
    if (!o->accuracy.enabled || interrupted()) return EXIT_DONE;
    int code = EXIT_DONE;
    for (size_t i = 0; i < 2 && code == EXIT_DONE; i++) {
        prony_accuracy_options a = PRONY_ACCURACY_OPTIONS_INIT;
        a.samples = o->accuracy.samples;
        a.model = i ? first->model : NULL;
        if (!both[i]->session)
            code = (fail(o, "'%s' is a report; --accuracy needs a model", o->arguments[i]), EXIT_USAGE);
        else
            code = accuracy_observe(o, both[i]->session, both[i]->report, &a);
    }
    return code;
}

void print_accuracy(const char *name, const prony_report *report)
{
    enum { SHOWN = 5 };
    uint32_t worst[SHOWN];
    const char *verdict = prony_report_accuracy_verdict(report);
    size_t rows = 0, operators = 0, found = prony_report_accuracy_worst(report, worst, SHOWN);
    const prony_accuracy_row *row = prony_report_accuracy_rows(report, PRONY_LEVEL_OPERATOR, &rows);
    const prony_operator_row *of = prony_report_operators(report, &operators);
    if (!verdict || !row || !of) return;
    putchar('\n');
    put_text(stdout, name);
    fputs(": ", stdout);
    put_wrapped(verdict, (int)strlen(name) + 2, 2);
    for (size_t i = 0; i < found && i < SHOWN; i++) {
        const prony_accuracy_row *r = &row[worst[i]];
        printf("  own %8.2g  accumulated ", r->own.max_rel);
        if (r->accumulated.known)
            printf("%8.2g  ", r->accumulated.max_rel);
        else
            printf("%8s  ", "-");
        put_text(stdout, of[worst[i]].name);
        putchar('\n');
    }
}
