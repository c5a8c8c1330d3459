/* prony_report_*: reading rows, writing forms, releasing. */
#include "base/file.h"
#include "base/sha256.h"
#include "engine/bind/engine_model.h"
#include "profiler/report/report.h"

#include <string.h>

void prony_report_release(prony_report *report)
{
    if (!report) return;
    prony_model_release(report->source);
    prn_pool_release(&report->pool);
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
                        "prony_report_add_evaluation: an argument is NULL, or no evaluation is set");
    return prn_report_add_evaluation(report, metric, value, report->evaluations[0].samples, error);
}

const prony_evaluation_row *prony_report_evaluations(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->evaluation_count : 0;
    return report && report->evaluation_count ? report->evaluations : NULL;
}

/* The hash of the model file reads all of it, so it is made only where it is shown. */
static prony_report with_hash(const prony_report *report, char text[65])
{
    prony_report copy = *report;
    if (report->source && !report->model.sha256) {
        const prn_model_file *file = report->source->file;
        prn_sha256 hash;
        prn_sha256_init(&hash);
        prn_sha256_add(&hash, file->data, (size_t)file->file_bytes);
        prn_sha256_text(&hash, text);
        copy.model.sha256 = text;
    }
    return copy;
}

prony_status prony_report_write(const prony_report *report, prony_format format, const prony_write_options *options,
                                prony_write_fn write, void *user, prony_error *error)
{
    static const prony_write_options defaults = PRONY_WRITE_OPTIONS_INIT;
    if (!report || !write)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_write: an argument is NULL");
    if (!options) options = &defaults;
    if (options->struct_size < sizeof *options)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "write options: struct_size is not set");
    static prony_status (*const writers[])(const prony_report *, const prony_write_options *, prony_write_fn, void *,
                                           prony_error *) = {
        [PRONY_FORMAT_TEXT] = prn_report_write_text,     [PRONY_FORMAT_JSON] = prn_report_write_json,
        [PRONY_FORMAT_CSV] = prn_report_write_csv,       [PRONY_FORMAT_LATEX] = prn_report_write_latex,
        [PRONY_FORMAT_TRACE] = prn_report_write_trace,   [PRONY_FORMAT_FOLDED] = prn_report_write_folded,
        [PRONY_FORMAT_DOT] = prn_report_write_dot,       [PRONY_FORMAT_SVG] = prn_report_write_svg,
        [PRONY_FORMAT_HTML] = prn_report_write_html,
    };
    if ((size_t)format >= sizeof writers / sizeof writers[0])
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "report format %d is not known", (int)format);
    if (format != PRONY_FORMAT_JSON && format != PRONY_FORMAT_HTML)
        return writers[format](report, options, write, user, error);
    char text[65];
    prony_report copy = with_hash(report, text);
    return writers[format](&copy, options, write, user, error);
}

prony_status prony_report_save(const prony_report *report, prony_format format, const prony_write_options *options,
                               const char *path, prony_error *error)
{
    if (!report || !path)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_save: an argument is NULL");
    prn_file_writer *file = NULL;
    PRN_TRY(prn_file_create(&file, path, error));
    prony_status status = prony_report_write(report, format, options, prn_file_write, file, error);
    /* After a write that failed, committing says which file and why, and leaves the old one as it was. */
    if (status == PRONY_OK || status == PRONY_IO_ERROR) return prn_file_commit(file, error);
    prn_file_abandon(file);
    return status;
}
