/* prony check TARGET --threshold METRIC:VALUE...: a report, or a model that is profiled first, against limits. */
#include "bench/history/history.h"
#include "bench/session/document.h"
#include "bench/session/judge.h"

int command_check(const options *o)
{
    target checked = {0};
    target *const all[] = {&checked};
    document json = {0};
    if (o->verdict.threshold_count == 0) {
        fail(o, "--threshold METRIC:VALUE is missing, such as --threshold latency:100ms");
        return EXIT_USAGE;
    }
    int code = refuse_run_options(o, 1);
    if (code == EXIT_DONE) code = target_open(o, 0, &checked);
    if (code == EXIT_DONE) code = targets_measure(o, all, 1);
    options shown = *o, kept = *o;
    if (!checked.model && !o->history.commit) kept.history.commit = ""; /* a report of any day, and of any project */
    shown.history.file = NULL; /* the history keeps the report, not the document of thresholds */
    if (code == EXIT_DONE) code = document_open(&json, &shown);
    if (code == EXIT_DONE) {
        say_assumed(o, (const target *const *)all, 1);
        FILE *table = o->terminal.quiet || stdout_taken(o) ? NULL : stdout;
        code = document_close(&json, &shown,
                              check_thresholds(o, checked.report, o->arguments[0], table, json.stream, code));
        code = history_keep_report(&kept, checked.report, code);
    }
    target_close(&checked);
    return code;
}
