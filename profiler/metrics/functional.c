/* One call per question, single values: a report is made, read and released. */
#include "profiler/metrics/functional.h"

#include "profiler/metrics/metrics.h"
#include "base/option_struct.h"
#include "base/memory/row_block.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_ITERATIONS 1000
#define DEFAULT_DROPPED 100

prony_status prn_functional_profile(prony_report **out, prony_model *model, const prony_session_options *options,
                                    const prony_profile_options *runs, bool stamps, prony_error *error)
{
    prony_session *session = NULL;
    prony_session_options own = PRONY_SESSION_OPTIONS_INIT;
    PRN_TRY(prn_options_read(&own, sizeof own, options, "session options", error));
    if (!stamps) own.no_profile = true;
    prony_status status = prony_session_create(&session, model, &own, error);
    if (status == PRONY_OK) status = prony_session_generate_inputs(session, 0, error);
    if (status == PRONY_OK) status = prony_session_profile(out, session, runs, error);
    prony_session_release(session);
    return status;
}

prony_status prn_functional_timing(prony_profile_options *out, const prony_timing_options *timing, prony_error *error)
{
    prony_timing_options own = PRONY_TIMING_OPTIONS_INIT;
    PRN_TRY(prn_options_read(&own, sizeof own, timing, "timing options", error));
    timing = &own;
    if (timing->iterations < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "timing options: counts must not be negative");
    int64_t iterations = timing->iterations ? timing->iterations : DEFAULT_ITERATIONS, dropped = timing->dropped;
    if (dropped < 0) dropped = iterations < DEFAULT_ITERATIONS ? iterations / 10 : DEFAULT_DROPPED;
    if (dropped >= iterations)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "%" PRId64 " iterations with %" PRId64 " dropped leave nothing to measure", iterations,
                        dropped);
    *out = (prony_profile_options)PRONY_PROFILE_OPTIONS_INIT;
    out->warmup_runs = dropped;
    out->runs = iterations - dropped;
    out->keep_samples = timing->every_sample;
    return PRONY_OK;
}

static void functional_put_figure(prony_quantity *out, const char *key, uint64_t value)
{
    for (size_t i = 0; i < prn_metric_builtin_count; i++) {
        if (strcmp(prn_metric_builtins[i].metric.key, key) != 0) continue;
        prony_metric_value text = prn_metric_value_of(&prn_metric_builtins[i].metric, (double)value);
        *out = (prony_quantity){.value = value};
        snprintf(out->text, sizeof out->text, "%.47s", text.text);
    }
}

static prony_status functional_figure_of(prony_quantity *out, prony_model *model, const prony_session_options *options,
                                         const char *key, size_t offset, prony_error *error)
{
    prony_report *report = NULL;
    uint64_t value;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_profile_%s: an argument is NULL", key);
    PRN_TRY(prony_inspect(&report, model, options, error));
    memcpy(&value, (const char *)&report->totals.cost + offset, sizeof value);
    functional_put_figure(out, key, value);
    prony_report_release(report);
    return PRONY_OK;
}

prony_status prony_profile_macs(prony_quantity *out, prony_model *model, const prony_session_options *options,
                                prony_error *error)
{
    return functional_figure_of(out, model, options, "macs", offsetof(prony_cost, macs), error);
}

prony_status prony_profile_madds(prony_quantity *out, prony_model *model, const prony_session_options *options,
                                 prony_error *error)
{
    return functional_figure_of(out, model, options, "madds", offsetof(prony_cost, madds), error);
}

prony_status prony_profile_flops(prony_quantity *out, prony_model *model, const prony_session_options *options,
                                 prony_error *error)
{
    return functional_figure_of(out, model, options, "flops", offsetof(prony_cost, flops), error);
}

prony_status prony_profile_params(prony_quantity *out, prony_model *model, const prony_session_options *options,
                                  prony_error *error)
{
    return functional_figure_of(out, model, options, "parameters", offsetof(prony_cost, parameters), error);
}

prony_status prony_profile_memory(prony_quantity *out, prony_model *model, const prony_session_options *options,
                                  prony_error *error)
{
    prony_report *report = NULL;
    prony_profile_options once = PRONY_PROFILE_OPTIONS_INIT;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_profile_memory: an argument is NULL");
    once.warmup_runs = 0;
    once.runs = 1;
    PRN_TRY(prn_functional_profile(&report, model, options, &once, true, error));
    const prony_memory_report *m = &report->memory;
    functional_put_figure(out, "memory", m->weight_bytes + m->packed_weight_bytes + m->planned_bytes);
    prony_report_release(report);
    return PRONY_OK;
}

prony_status prony_profile_runtime(prony_quantity *out, prony_model *model, const prony_session_options *options,
                                   const prony_profile_options *runs, prony_error *error)
{
    prony_report *report = NULL;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_profile_runtime: an argument is NULL");
    PRN_TRY(prn_functional_profile(&report, model, options, runs, false, error));
    functional_put_figure(out, "latency", (uint64_t)report->latency.median_ns);
    prony_report_release(report);
    return PRONY_OK;
}

prony_status prony_profile_metrics(prony_metric_value **values, size_t *count, prony_model *model,
                                   const prony_session_options *options, const prony_profile_options *runs,
                                   const prony_metrics *metrics, prony_error *error)
{
    prony_report *report = NULL;
    if (!values || !count || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_profile_metrics: an argument is NULL");
    PRN_TRY(prn_functional_profile(&report, model, options, runs, true, error));
    *count = metrics ? prony_metrics_count(metrics) : prn_metric_builtin_count;
    prony_metric_value *rows = prn_rows_create(*count, sizeof *rows);
    prony_status status = rows ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK && metrics) status = prony_metrics_compute_all(metrics, report, rows, error);
    for (size_t i = 0; status == PRONY_OK && !metrics && i < *count; i++)
        rows[i] = prn_metric_value_of(&prn_metric_builtins[i].metric, prn_metric_builtins[i].read(report));
    prony_report_release(report);
    if (status == PRONY_OK)
        *values = rows;
    else
        prony_rows_release(rows);
    return status;
}

prony_status prony_estimate_total_inference_time(prony_time_stats *out, prony_model *model,
                                                 const prony_session_options *options,
                                                 const prony_timing_options *timing, prony_error *error)
{
    prony_report *report = NULL;
    prony_profile_options runs;
    if (!out || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_estimate_total_inference_time: an argument is NULL");
    PRN_TRY(prn_functional_timing(&runs, timing, error));
    runs.keep_samples = false;
    PRN_TRY(prn_functional_profile(&report, model, options, &runs, false, error));
    *out = report->latency;
    prony_report_release(report);
    return PRONY_OK;
}
