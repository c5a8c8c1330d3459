/* Targets of the subcommands that compare and check, and thresholds. */
#include "bench/history/history.h"
#include "bench/process/interrupt.h"
#include "bench/session/judge.h"
#include "prony_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int write_to_stream(void *user, const char *data, size_t size)
{
    return fwrite(data, 1, size, user) == size ? 0 : -1;
}

/* ---- targets ---- */

bool is_report_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    int c = ' ';
    while (file && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) c = getc(file);
    if (file) fclose(file);
    return c == '{';
}

int target_open(const options *o, size_t index, target *out)
{
    prony_error error = {0};
    if (is_report_file(o->arguments[index]))
        return prony_report_load(&out->report, o->arguments[index], &error) == PRONY_OK ? EXIT_DONE
                                                                                        : report_error(o, &error);
    options own = *o;
    own.arguments = o->arguments + index;
    return open_session(&own, &out->model, &out->session, true);
}

int refuse_run_options(const options *o, size_t count)
{
    bool given = o->threads.intra_op || o->threads.inter_op || o->threads.affinity || o->model.batch ||
                 o->model.dim_count || o->model.shape_count || o->model.input_count || o->measuring.runs ||
                 o->measuring.warmup >= 0 || o->measuring.seconds > 0 || o->precision.name || o->plan.no_rewrites ||
                 o->plan.no_reuse || o->threads.no_work_stealing || o->plan.tune || o->model.seed;
    for (size_t i = 0; i < count; i++)
        if (!is_report_file(o->arguments[i])) return EXIT_DONE;
    if (!given) return EXIT_DONE;
    fail(o, "'%s' is a report, so options for runs do not apply", o->arguments[0]);
    return EXIT_USAGE;
}

int targets_measure(const options *o, target *const *targets, size_t count)
{
    prony_error error = {0};
    prony_profile_options p = profile_options(o);
    prony_session **sessions = calloc(count, sizeof *sessions);
    prony_report **reports = calloc(count, sizeof *reports);
    size_t to_measure = 0;
    int code = sessions && reports ? EXIT_DONE : fail(o, "out of memory");
    for (size_t i = 0; code == EXIT_DONE && i < count; i++)
        if (!targets[i]->report) sessions[to_measure++] = targets[i]->session;
    if (to_measure) {
        prony_status status = prony_profile_interleaved(reports, sessions, to_measure, &p, &error);
        code = measured(o, status, reports[0], &error);
    }
    clear_progress();
    for (size_t i = 0, next = 0; code == EXIT_DONE && i < count; i++)
        if (!targets[i]->report) targets[i]->report = reports[next++];
    free(sessions);
    free(reports);
    return code;
}

void say_assumed(const options *o, const target *const *targets, size_t count)
{
    if (o->terminal.quiet || stdout_taken(o)) return;
    for (size_t i = 0; i < count; i++) {
        size_t dims = 0;
        prony_report_assumed_dims(targets[i]->report, &dims);
        if (!dims) continue;
        put_text(stdout, o->arguments[i]);
        put_assumed(targets[i]->report, (int)strlen(o->arguments[i]));
        putchar('\n');
    }
}

void target_close(target *t)
{
    prony_report_release(t->report);
    session_release(t->session);
    prony_model_release(t->model);
    *t = (target){0};
}

/* ---- thresholds ---- */

static void judge_interval_text(const prony_check_row *row, char *text, size_t size)
{
    char low[64] = "", high[64] = "";
    prony_metric_format(row->threshold.metric, row->interval[0], low, sizeof low);
    prony_metric_format(row->threshold.metric, row->interval[1], high, sizeof high);
    snprintf(text, size, isfinite(row->interval[0]) && isfinite(row->interval[1]) ? "%s to %s" : "too few runs", low,
             high);
}

/* The exit status after a row; prints a line on stderr unless the limit is met. */
static int say_outcome(const options *o, const prony_check_row *row)
{
    const prony_metric *metric = row->threshold.metric;
    const char *bound = metric->direction == PRONY_LARGER_IS_BETTER ? "at least" : "at most";
    const char *value = row->value.text, *limit = row->threshold.text;
    char interval[160];
    if (row->outcome == PRONY_OUTCOME_MET) return EXIT_DONE;
    if (row->outcome == PRONY_OUTCOME_UNKNOWN)
        return fail(o, "%s is unknown, so its threshold cannot be checked (%s)", metric->key, metric->description);
    if (row->outcome == PRONY_OUTCOME_WITHHELD && !o->verdict.ignore_load) {
        fail(o, "%s is %s, wanted %s %s, but the machine was busy: cannot tell; --ignore-load judges anyway",
             metric->key, value, bound, limit);
        return o->verdict.strict ? EXIT_VERDICT : EXIT_FAILED;
    }
    if (row->outcome == PRONY_OUTCOME_OPEN) {
        judge_interval_text(row, interval, sizeof interval);
        fail(o, "%s is %s, wanted %s %s: within noise (%s), so undecided; %s", metric->key, value, bound, limit,
             interval, o->verdict.strict ? "--strict counts it as missed" : "it passes without --strict");
        return o->verdict.strict ? EXIT_VERDICT : EXIT_DONE;
    }
    fail(o, "%s is %s, wanted %s %s", metric->key, value, bound, limit);
    return EXIT_VERDICT;
}

static int say_misses(const options *o, const prony_check_row *rows, size_t count, int code)
{
    bool missed = false, unknown = false;
    for (size_t i = 0; i < count; i++) {
        int outcome = say_outcome(o, &rows[i]);
        missed |= outcome == EXIT_VERDICT;
        unknown |= outcome == EXIT_FAILED;
    }
    return missed ? EXIT_VERDICT : unknown ? EXIT_FAILED : code;
}

static prony_status judge_check_rows(const options *o, const prony_metrics *metrics, const prony_report *report,
                                     prony_check_row *rows, prony_error *error)
{
    prony_status status = PRONY_OK;
    for (size_t i = 0; i < o->verdict.threshold_count && status == PRONY_OK; i++) {
        prony_threshold threshold;
        status = prony_threshold_parse(&threshold, metrics, o->verdict.thresholds[i], error);
        if (status == PRONY_OK) status = prony_check(&rows[i], report, metrics, &threshold, 1, error);
    }
    return status;
}

int check_thresholds(const options *o, const prony_report *report, const char *name, FILE *table, FILE *json, int code)
{
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    size_t count = o->verdict.threshold_count;
    if (count == 0) return code;
    prony_write_options w = write_options(o);
    prony_check_row *rows = calloc(count, sizeof *rows);
    prony_status status = rows ? prony_metrics_create(&metrics, &error) : PRONY_OUT_OF_MEMORY;
    if (status == PRONY_OK) status = judge_check_rows(o, metrics, report, rows, &error);
    if (status == PRONY_OK && table)
        status = prony_check_write(rows, count, name, PRONY_FORMAT_TEXT, &w, write_to_stream, table, &error);
    if (status == PRONY_OK && json)
        status = prony_check_write(rows, count, name, PRONY_FORMAT_JSON, &w, write_to_stream, json, &error);
    fflush(stdout);
    code = status == PRONY_OK ? say_misses(o, rows, count, code) : report_error(o, &error);
    prony_metrics_release(metrics);
    free(rows);
    return code;
}

int check_after_report(const options *o, const prony_report *report, int code)
{
    bool show = !o->terminal.quiet && !stdout_taken(o);
    if (code != EXIT_DONE) return code;
    if (show && o->verdict.threshold_count) putchar('\n');
    code = check_thresholds(o, report, NULL, show ? stdout : NULL, NULL, code);
    return history_keep_report(o, report, code);
}
