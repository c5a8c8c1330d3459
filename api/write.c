/* prony_report_*: reading rows, writing forms, releasing. */
#include "base/file.h"
#include "base/sha256.h"
#include "engine/engine_model.h"
#include "profiler/report.h"

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
    return &report->totals;
}

const prony_layer_row *prony_report_layers(const prony_report *report, size_t *count)
{
    if (count) *count = report->layer_count;
    return report->layers;
}

const prony_operator_row *prony_report_operators(const prony_report *report, size_t *count)
{
    if (count) *count = report->operator_count;
    return report->operators;
}

const prony_memory_report *prony_report_memory(const prony_report *report)
{
    return report->has_memory ? &report->memory : NULL;
}

const prony_time_stats *prony_report_latency(const prony_report *report)
{
    return report->latency.count ? &report->latency : NULL;
}

const char *const *prony_report_unsupported(const prony_report *report, size_t *count)
{
    if (count) *count = report->unsupported_count;
    return report->unsupported;
}

double prony_report_time_coverage(const prony_report *report)
{
    return report->time_share;
}

prony_status prony_report_set_evaluation(prony_report *report, const char *metric, double value, int64_t samples,
                                         prony_error *error)
{
    if (!report || !metric)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_set_evaluation: an argument is NULL");
    const char *copy = prn_pool_strndup(&report->pool, metric, strlen(metric));
    if (!copy) return prn_no_memory(error);
    report->has_evaluation = true;
    report->evaluation_metric = copy;
    report->evaluation_value = value;
    report->evaluation_samples = samples;
    return PRONY_OK;
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
    if (format == PRONY_FORMAT_TEXT) return prn_report_write_text(report, options, write, user, error);
    if (format != PRONY_FORMAT_JSON)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "report format %d is not known", (int)format);
    char text[65];
    prony_report copy = with_hash(report, text);
    return prn_report_write_json(&copy, options, write, user, error);
}

prony_status prony_report_save(const prony_report *report, prony_format format, const prony_write_options *options,
                               const char *path, prony_error *error)
{
    if (!report || !path)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_save: an argument is NULL");
    prn_file_writer *file = NULL;
    PRN_TRY(prn_file_create(&file, path, error));
    prony_status status = prony_report_write(report, format, options, prn_file_write, file, error);
    if (status == PRONY_OK) return prn_file_commit(file, error);
    prn_file_abandon(file);
    return status;
}
