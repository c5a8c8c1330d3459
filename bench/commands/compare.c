/* prony compare A B: compares two reports, or two models measured interleaved in this process. A is the baseline. */
#include "bench/commands/studies.h"
#include "bench/session/accuracy.h"
#include "bench/session/document.h"
#include "bench/session/judge.h"
#include "prony_judge.h"

#include <float.h>

static int write_comparison(const options *o, const prony_comparison *comparison, const target *first,
                            const target *second)
{
    prony_error error = {0};
    document json;
    prony_write_options w = write_options(o);
    int code = document_open(&json, o);
    if (code != EXIT_DONE) return code;
    prony_status status = PRONY_OK;
    say_assumed(o, (const target *const[]){first, second}, 2);
    if (!o->terminal.quiet && !stdout_taken(o))
        status = prony_comparison_write(comparison, PRONY_FORMAT_TEXT, &w, write_to_stream, stdout, &error);
    if (status == PRONY_OK && !o->terminal.quiet && !stdout_taken(o)) {
        print_accuracy("A", first->report);
        print_accuracy("B", second->report);
    }
    if (status == PRONY_OK && json.stream)
        status = prony_comparison_write(comparison, PRONY_FORMAT_JSON, &w, write_to_stream, json.stream, &error);
    return document_close(&json, o, status == PRONY_OK ? EXIT_DONE : report_error(o, &error));
}

static int compare_command_compare(const options *o, const target *first, const target *second)
{
    if (apply_count(o, first->report) != EXIT_DONE || apply_count(o, second->report) != EXIT_DONE) return EXIT_FAILED;
    prony_error error = {0};
    prony_comparison *comparison = NULL;
    prony_compare_options c = PRONY_COMPARE_OPTIONS_INIT;
    c.noise = o->verdict.noise > 0 ? o->verdict.noise : DBL_MIN; /* 0 is the library's default */
    c.ignore_load = o->verdict.ignore_load;
    c.keys = o->shown.metrics;
    c.first_name = o->arguments[0];
    c.second_name = o->arguments[1];
    if (prony_compare(&comparison, first->report, second->report, &c, &error) != PRONY_OK)
        return report_error(o, &error);
    int code = write_comparison(o, comparison, first, second);
    size_t worse =
        prony_comparison_regressions(comparison) + (o->verdict.strict ? prony_comparison_undecided(comparison) : 0);
    if (code == EXIT_DONE && worse) code = EXIT_VERDICT;
    prony_comparison_release(comparison);
    return code;
}

static int compare_studies(const options *o)
{
    size_t different;
    for (size_t i = 0; i < 2; i++)
        if (!is_study_file(o->arguments[i]))
            return fail(o, "'%s' is a study, but '%s' is not", o->arguments[!i], o->arguments[i]), EXIT_USAGE;
    const int code = show_studies(o, &different);
    return code == EXIT_DONE && different ? EXIT_VERDICT : code;
}

int command_compare(const options *o)
{
    if (is_study_file(o->arguments[0]) || is_study_file(o->arguments[1])) return compare_studies(o);
    target first = {0}, second = {0};
    target *const both[] = {&first, &second};
    int code = refuse_run_options(o, 2);
    if (code == EXIT_DONE) code = target_open(o, 0, &first);
    if (code == EXIT_DONE) code = target_open(o, 1, &second);
    if (code == EXIT_DONE) code = targets_measure(o, both, 2);
    if (code == EXIT_DONE) code = add_accuracy_of_both(o, &first, &second);
    if (code == EXIT_DONE) code = compare_command_compare(o, &first, &second);
    target_close(&first);
    target_close(&second);
    return code;
}
