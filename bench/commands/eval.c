/* prony eval MODEL DATA: runs every labelled sample; prints top-1, top-5 and the runs' times. With several precisions,
 * a line for each. With --token-ids: perplexity (bench/generate/perplexity.c). */
#include "bench/generate/generate.h"
#include "bench/options/option_table.h"
#include "bench/session/accuracy.h"
#include "bench/session/inputs.h"
#include "bench/session/labelled_data.h"
#include "bench/process/interrupt.h"
#include "bench/session/document.h"
#include "bench/session/judge.h"
#include "prony_analysis.h"

#include <stdlib.h>
#include <string.h>

static prony_status run_data(const options *o, prony_report **report, prony_model *model, prony_session **session,
                             prony_dataset **data, prony_error *error)
{
    prony_session_options s = session_options(o);
    prony_evaluate_options e = evaluate_options(o);
    prony_status status = session_create(session, model, &s, error);
    interrupt_at_once(true);
    if (status == PRONY_OK) status = open_labelled_data(o, data, model, error);
    interrupt_at_once(false);
    if (status == PRONY_OK) status = prony_evaluate(report, *session, *data, &e, error);
    return status;
}

/* Evaluates in the options' precision. *report may be set also after a failure. */
static int eval_command_evaluate(const options *o, prony_report **report)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_dataset *data = NULL;
    if (load_model(o, &model, o->arguments[0], &error) != PRONY_OK) return report_error(o, &error);
    int code = quantize_in_place(o, &model);
    if (code == EXIT_DONE) {
        prony_status status = run_data(o, report, model, &session, &data, &error);
        clear_progress();
        code = status == PRONY_NEEDS_DIMENSION ? report_session_error(o, model, &error)
                                               : measured(o, status, *report, &error);
    }
    if (code == EXIT_DONE)
        code = add_accuracy(o, model, session, *report); /* on the last batch, which is still
                                                                               bound */
    prony_dataset_release(data);
    session_release(session);
    prony_model_release(model);
    return code;
}

static int evaluate_one(const options *o)
{
    prony_report *report = NULL;
    options shown = *o;
    if (!shown.shown.levels) shown.shown.levels = PRONY_LEVEL_MODEL;
    int code = eval_command_evaluate(o, &report);
    if (code == EXIT_DONE) code = write_report(&shown, report);
    code = check_after_report(o, report, code);
    prony_report_release(report);
    return code;
}

/* ---- several precisions ---- */

/* A line per precision. The column "points" is top-1 accuracy minus that of the first precision, in percentage points;
 * the first line has none. */
static int print_rows(const options *o, prony_report *const *reports)
{
    static const char *const keys[] = {"top1_accuracy", "top5_accuracy", "latency", "model_size", "memory"};
    enum { KEYS = sizeof keys / sizeof *keys };
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    prony_metric_value value;
    double first = 0;
    if (prony_metrics_create(&metrics, &error) != PRONY_OK) return report_error(o, &error);
    size_t samples = 0;
    const prony_evaluation_row *rows = prony_report_evaluations(reports[0], &samples);
    put_text(stdout, o->arguments[0]);
    printf(", %lld labelled samples\n\n", rows && samples ? (long long)rows->samples : 0);
    printf("%-10s %9s %9s  %8s  %11s %11s %11s\n", "precision", "top 1", "top 5", "points", "latency", "weights",
           "memory");
    for (size_t i = 0; i < o->precision.count; i++) {
        printf("%-10s", o->precision.names[i]);
        for (size_t k = 0; k < KEYS; k++) {
            if (prony_metrics_compute(metrics, reports[i], keys[k], &value, &error) != PRONY_OK) continue;
            printf(k < 2 ? " %9s" : " %11s", value.text);
            if (k == 0 && i == 0) first = value.value;
            if (k == 1) {
                prony_metric_value top = {0};
                (void)!prony_metrics_compute(metrics, reports[i], keys[0], &top, &error);
                if (i == 0)
                    printf("  %8s ", "");
                else
                    printf("  %+8.2f ", 100 * (top.value - first));
            }
        }
        putchar('\n');
    }
    prony_metrics_release(metrics);
    return EXIT_DONE;
}

static int eval_command_write_rows(const options *o, prony_report *const *reports)
{
    prony_error error = {0};
    prony_write_options w = write_options(o);
    document json;
    int code = document_open(&json, o);
    if (code != EXIT_DONE || !json.stream) return code;
    json_begin(json.stream, "prony.evaluations/1");
    fputs(",\n  \"reports\": [\n", json.stream);
    for (size_t i = 0; i < o->precision.count && code == EXIT_DONE; i++) {
        if (prony_report_write(reports[i], PRONY_FORMAT_JSON, &w, write_to_stream, json.stream, &error) != PRONY_OK)
            code = report_error(o, &error);
        if (i + 1 < o->precision.count) fputs(",\n", json.stream);
    }
    fprintf(json.stream, "  ]\n}\n");
    return document_close(&json, o, code);
}

static int evaluate_list(const options *o)
{
    if (o->verdict.threshold_count || o->files.export_count)
        return fail(o, "thresholds and formats other than JSON need one precision"), EXIT_USAGE;
    prony_report **reports = calloc(o->precision.count, sizeof *reports);
    if (!reports) return fail(o, "out of memory");
    int code = EXIT_DONE;
    for (size_t i = 0; i < o->precision.count && code == EXIT_DONE; i++) {
        options one = *o;
        one.precision.name = o->precision.names[i];
        code = eval_command_evaluate(&one, &reports[i]);
    }
    if (code == EXIT_DONE && !o->terminal.quiet && !stdout_taken(o)) code = print_rows(o, reports);
    if (code == EXIT_DONE) code = eval_command_write_rows(o, reports);
    for (size_t i = 0; i < o->precision.count; i++) prony_report_release(reports[i]);
    free(reports);
    return code;
}

int command_eval(const options *o)
{
    if (o->generate.token_ids && o->argument_count > 1)
        return usage(o, "--token-ids takes the place of DATA: 'prony eval MODEL --token-ids F'");
    if (o->generate.token_ids && (o->verdict.threshold_count || o->files.export_count))
        return usage(o, "--token-ids does not go with thresholds and formats other than JSON");
    if (o->generate.token_ids) return command_eval_tokens(o);
    if (o->argument_count < 2) return usage(o, "eval needs MODEL DATA, or MODEL --token-ids F");
    if (o->generate.cache_type) return usage(o, "--kv-cache needs --token-ids");
    return o->precision.count > 1 ? evaluate_list(o) : evaluate_one(o);
}
