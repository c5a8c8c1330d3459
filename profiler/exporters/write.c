/* prony_report_write, prony_report_save: a report in one of its formats. */
#include "base/os/file.h"
#include "base/option_struct.h"
#include "engine/bind/engine_model.h"
#include "profiler/documents/document.h"
#include "profiler/report/report.h"
#include "prony_judge.h"

#include <string.h>

/* Hashing reads the whole model file, so the hash is made only for formats that show it. */
static prony_report with_hash(const prony_report *report, char text[65])
{
    prony_report copy = *report;
    if (report->source && !report->model.sha256) {
        prn_model_hash(report->source->file, text);
        copy.model.sha256 = text;
    }
    return copy;
}

static prony_status write_markdown(const prony_report *report, const prony_write_options *options, prony_write_fn write,
                                   void *user, prony_error *error)
{
    prn_document_json json = {0};
    prony_status status = prn_report_write_json(report, options, prn_document_collect, &json, error);
    if (status == PRONY_OK)
        status = prony_document_write(report->model.name ? report->model.name : "report", json.data, json.size,
                                      PRONY_FORMAT_MARKDOWN, NULL, write, user, error);
    prn_free(json.data);
    return status;
}

prony_status prony_report_write(const prony_report *report, prony_format format, const prony_write_options *options,
                                prony_write_fn write, void *user, prony_error *error)
{
    prony_write_options own = PRONY_WRITE_OPTIONS_INIT;
    if (!report || !write) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_write: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "write options", error));
    options = &own;
    static prony_status (*const writers[])(const prony_report *, const prony_write_options *, prony_write_fn, void *,
                                           prony_error *) = {
        [PRONY_FORMAT_TEXT] = prn_report_write_text,   [PRONY_FORMAT_JSON] = prn_report_write_json,
        [PRONY_FORMAT_CSV] = prn_report_write_csv,     [PRONY_FORMAT_LATEX] = prn_report_write_latex,
        [PRONY_FORMAT_TRACE] = prn_report_write_trace, [PRONY_FORMAT_FOLDED] = prn_report_write_folded,
        [PRONY_FORMAT_DOT] = prn_report_write_dot,     [PRONY_FORMAT_SVG] = prn_report_write_svg,
        [PRONY_FORMAT_HTML] = prn_report_write_html,   [PRONY_FORMAT_MARKDOWN] = write_markdown,
    };
    if ((size_t)format >= sizeof writers / sizeof writers[0] || !writers[format])
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "unknown report format %d", (int)format);
    if (format != PRONY_FORMAT_JSON && format != PRONY_FORMAT_HTML)
        return writers[format](report, options, write, user, error);
    char text[65];
    prony_report copy = with_hash(report, text);
    return writers[format](&copy, options, write, user, error);
}

prony_status prony_report_save(const prony_report *report, prony_format format, const prony_write_options *options,
                               const char *path, prony_error *error)
{
    if (!report || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_save: an argument is NULL");
    prn_file_writer *file = NULL;
    PRN_TRY(prn_file_create(&file, path, error));
    prony_status status = prony_report_write(report, format, options, prn_file_write, file, error);
    /* After a failed write, committing reports the file and reason, and leaves the old file unchanged. */
    if (status == PRONY_OK || status == PRONY_IO_ERROR) return prn_file_commit(file, error);
    prn_file_abandon(file);
    return status;
}
