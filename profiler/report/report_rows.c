/* prony_report_*: public access to a report's values. */
#include "engine/bind/engine_model.h"
#include "profiler/report/report.h"

void prony_report_release(prony_report *report)
{
    if (!report) return;
    prony_model_release(report->source);
    prn_bump_release(&report->pool);
    prn_free(report);
}

const prony_totals *prony_report_totals(const prony_report *report)
{
    return report ? &report->totals : NULL;
}

const prony_layer_row *prony_report_layers(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->layer_count : 0;
    return report ? report->layers : NULL;
}

const prony_operator_row *prony_report_operators(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->operator_count : 0;
    return report ? report->operators : NULL;
}

const prony_nested_row *prony_report_nested(const prony_report *report, unsigned level, size_t *count)
{
    bool layers = level == PRONY_LEVEL_LAYER, operators = level == PRONY_LEVEL_OPERATOR;
    size_t rows = !report ? 0 : layers ? report->nested_layer_count : operators ? report->nested_operator_count : 0;
    if (count) *count = rows;
    if (!rows) return NULL;
    return layers ? report->nested_layers : report->nested_operators;
}

const prony_module_row *prony_report_modules(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->module_count : 0;
    return report ? report->modules : NULL;
}

const prony_parameter_row *prony_report_parameters(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->parameter_count : 0;
    return report ? report->parameters : NULL;
}

const prony_core_row *prony_report_cores(const prony_report *report, size_t *cores, const int64_t **times_ns,
                                         size_t *points)
{
    static const prony_report nothing;
    if (!report) report = &nothing;
    if (cores) *cores = report->core_count;
    if (times_ns) *times_ns = report->core_times_ns;
    if (points) *points = report->core_points;
    return report->cores;
}

const prony_memory_report *prony_report_memory(const prony_report *report)
{
    return report && report->has_memory ? &report->memory : NULL;
}

const prony_tuning *prony_report_tuning(const prony_report *report)
{
    return report && report->has_tuning ? &report->tuning : NULL;
}

const char *prony_report_counters_missing(const prony_report *report)
{
    return report->counters_missing;
}

const prony_assumed_dim *prony_report_assumed_dims(const prony_report *report, size_t *count)
{
    *count = report->config.assumed_count;
    return report->config.assumed;
}

const prony_time_stats *prony_report_latency(const prony_report *report)
{
    return report && report->latency.count ? &report->latency : NULL;
}

const prony_time_stats *prony_report_end_to_end(const prony_report *report)
{
    return report && report->has_around ? &report->around.end_to_end : NULL;
}

const prony_device_report *prony_report_device(const prony_report *report)
{
    return report && report->has_device ? &report->device : NULL;
}

const prony_generation *prony_report_generation(const prony_report *report)
{
    return report && report->has_generation ? &report->generation : NULL;
}

void prony_report_set_cache_error(prony_report *report, int64_t tokens, double max, double rms, double equal_ids)
{
    if (!report || !report->has_generation) return;
    report->generation.cache_error_tokens = tokens;
    report->generation.cache_error_max = max;
    report->generation.cache_error_rms = rms;
    report->generation.cache_error_equal_ids = equal_ids;
}

const char *const *prony_report_unsupported(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->unsupported_count : 0;
    return report ? report->unsupported : NULL;
}

double prony_report_time_coverage(const prony_report *report)
{
    return report ? report->time_share : -1;
}

void prony_report_set_background(prony_report *report, int threads)
{
    if (report) report->config.background_threads = threads > 0 ? threads : 0;
}

prony_status prony_report_set_evaluation(prony_report *report, const char *metric, double value, int64_t samples,
                                         prony_error *error)
{
    if (!report || !metric)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_set_evaluation: an argument is NULL");
    report->evaluation_count = 0;
    return prn_report_add_evaluation(report, metric, value, samples, error);
}

prony_status prony_report_add_evaluation(prony_report *report, const char *metric, double value, prony_error *error)
{
    if (!report || !metric || !report->evaluation_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_report_add_evaluation: an argument is NULL, or no evaluation was set");
    return prn_report_add_evaluation(report, metric, value, report->evaluations[0].samples, error);
}

const prony_evaluation_row *prony_report_evaluations(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->evaluation_count : 0;
    return report && report->evaluation_count ? report->evaluations : NULL;
}
