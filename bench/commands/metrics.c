/* prony metrics TARGET: all metrics of a report, or of a model that is profiled first. */
#include "bench/terminal/json_file.h"
#include "bench/session/judge.h"
#include "prony_analysis.h"

static int write_metrics(const options *o, const target *measured, const prony_metrics *metrics)
{
    prony_error error = {0};
    json_file json;
    prony_write_options w = write_options(o);
    prony_status status = PRONY_OK;
    int code = json_open(&json, o);
    if (code != EXIT_DONE) return code;
    const prony_report *report = measured->report;
    say_assumed(o, &measured, 1);
    if (!o->terminal.quiet && !stdout_taken(o))
        status = prony_metrics_write(metrics, report, o->shown.metrics, o->shown.detailed, PRONY_FORMAT_TEXT, &w,
                                     write_to_stream, stdout, &error);
    if (status == PRONY_OK && json.stream)
        status = prony_metrics_write(metrics, report, o->shown.metrics, true, PRONY_FORMAT_JSON, &w, write_to_stream,
                                     json.stream, &error);
    return json_close(&json, o, status == PRONY_OK ? EXIT_DONE : report_error(o, &error));
}

int command_metrics(const options *o)
{
    target measured = {0};
    target *const all[] = {&measured};
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    int code = refuse_run_options(o, 1);
    if (code == EXIT_DONE) code = target_open(o, 0, &measured);
    if (code == EXIT_DONE) code = targets_measure(o, all, 1);
    if (code == EXIT_DONE) code = apply_count(o, measured.report);
    if (code == EXIT_DONE && prony_metrics_create(&metrics, &error) != PRONY_OK) code = report_error(o, &error);
    if (code == EXIT_DONE) code = write_metrics(o, &measured, metrics);
    prony_metrics_release(metrics);
    target_close(&measured);
    return code;
}
