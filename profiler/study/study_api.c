/* Connects studies with models, files and the machine. */
#include "base/os/clock.h"
#include "base/os/core_times.h"
#include "base/os/file.h"
#include "base/os/machine_state.h"
#include "base/option_struct.h"
#include "engine/bind/engine_model.h"
#include "profiler/documents/document.h"
#include "profiler/measure/machine_peaks.h"
#include "profiler/study/study_keys.h"

#include <math.h>
#include <string.h>

void prony_machine_state_read(prony_machine_state *out)
{
    prn_machine_state_read(out);
}

static prony_status study_api_hash_of(prony_report *report, const prony_model *model, prony_error *error)
{
    char text[65];
    prn_model_hash(model->file, text);
    report->model.sha256 = prn_bump_strndup(&report->pool, text, strlen(text));
    return report->model.sha256 ? PRONY_OK : prn_no_memory(error);
}

/* Model, machine and roof. A study does not use the rows, which stay in the report's pool. */
static prony_status make_manifest(prony_report **out, prony_model *model, const prony_session_options *options,
                                  prony_error *error)
{
    PRN_TRY(prony_inspect(out, model, options, error));
    prony_status status = study_api_hash_of(*out, model, error);
    if (status == PRONY_OK && !(*out)->has_roof) status = prn_report_fill_roof(*out, error);
    if (status == PRONY_OK) return status;
    prony_report_release(*out);
    *out = NULL;
    return status;
}

static prony_status study_with_environment(prony_study **out, prony_study *study, const prony_model *model,
                                           prony_error *error)
{
    prony_status status = prn_study_environment_read(study, model->file->name, error);
    if (status == PRONY_OK)
        *out = study;
    else
        prony_study_release(study);
    return status;
}

prony_status prony_study_create(prony_study **out, prony_model *model, const prony_study_options *options,
                                prony_error *error)
{
    prony_study_options own = PRONY_STUDY_OPTIONS_INIT;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_create: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "study options", error));
    options = &own;
    prony_report *manifest = NULL;
    PRN_TRY(make_manifest(&manifest, model, options->session, error));
    manifest->config.seed = options->seed;
    manifest->config.seed_known = true;
    prony_study *study = NULL;
    prony_status status = prn_study_plan(&study, manifest, options, prn_machine_auto_threads(1, NULL), error);
    if (status != PRONY_OK) {
        prony_report_release(manifest);
        return status;
    }
    return study_with_environment(out, study, model, error);
}

prony_status prony_study_node_write(prony_model *model, const prony_session_options *session, prony_write_fn write,
                                    void *user, prony_error *error)
{
    prn_study_node node = {.usable = prn_machine_auto_threads(1, NULL)};
    if (!model || !write) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_node_write: an argument is NULL");
    PRN_TRY(make_manifest(&node.manifest, model, session, error));
    prn_node_facts_read(&node.facts);
    node.host = node.manifest->system.machine.host_name;
    node.numa_memory_bytes = node.facts.numa_memory_bytes;
    node.numa_count = node.facts.numa_count;
    prony_status status = prn_keys_write_document(PRN_STUDY_SCHEMA, prn_study_node_keys,
                                                  &(prn_at){.root = NULL, .row = &node}, write, user, error);
    prony_report_release(node.manifest);
    return status;
}

static prony_status check_model(const prony_study *study, const char *path, const prony_model *model,
                                prony_error *error)
{
    char text[65];
    const char *was = study->manifest->model.sha256;
    if (!model || !was) return PRONY_OK;
    prn_model_hash(model->file, text);
    if (strcmp(text, was) == 0) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "%s studies another model: %s with SHA-256 %.16s..., but %s has %.16s...", path,
                    prn_report_title(study->manifest), was, model->file->name, text);
}

prony_status prony_study_load(prony_study **out, const char *path, const prony_model *model, prony_error *error)
{
    if (!out || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_load: an argument is NULL");
    prn_map map;
    prony_study *study = NULL;
    PRN_TRY(prn_map_open(&map, path, error));
    prony_status status = prn_study_read(&study, path, (const char *)map.data, map.size, error);
    prn_map_close(&map);
    if (status == PRONY_OK) status = check_model(study, path, model, error);
    if (status == PRONY_OK)
        *out = study;
    else
        prony_study_release(study);
    return status;
}

prony_status prony_study_repeat(prony_study **out, const prony_study *earlier, prony_model *model, prony_error *error)
{
    if (!out || !earlier || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_repeat: an argument is NULL");
    prony_report *manifest = NULL;
    PRN_TRY(make_manifest(&manifest, model, NULL, error));
    manifest->config.seed = earlier->seed;
    manifest->config.seed_known = true;
    prony_study *study = NULL;
    prony_status status = prn_study_plan_again(&study, manifest, earlier, prn_machine_auto_threads(1, NULL), error);
    if (status != PRONY_OK) {
        prony_report_release(manifest);
        return status;
    }
    return study_with_environment(out, study, model, error);
}

prony_status prony_study_set_budget(prony_study *study, double seconds, prony_error *error)
{
    if (!study || !(seconds > 0) || !isfinite(seconds))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_set_budget: no study, or no time above 0");
    if (study->block_count) return prn_fail(error, PRONY_INVALID_ARGUMENT, "the study has begun: its budget is fixed");
    study->budget_seconds = seconds;
    return PRONY_OK;
}

static prony_status study_markdown(const prony_study *study, const prony_write_options *options, prony_write_fn write,
                                   void *user, prony_error *error)
{
    prn_document_json json = {0};
    prony_status status = prn_study_write_json(study, options, prn_document_collect, &json, error);
    if (status == PRONY_OK)
        status = prony_document_write("study", json.data, json.size, PRONY_FORMAT_MARKDOWN, NULL, write, user, error);
    prn_free(json.data);
    return status;
}

prony_status prony_study_write(const prony_study *study, prony_format format, const prony_write_options *options,
                               prony_write_fn write, void *user, prony_error *error)
{
    prony_write_options own = PRONY_WRITE_OPTIONS_INIT;
    if (!study || !write) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_write: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "write options", error));
    options = &own;
    if (!study->analysed && format != PRONY_FORMAT_JSON && format != PRONY_FORMAT_CSV)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "the study was not analysed; call prony_study_analyse first");
    switch (format) {
    case PRONY_FORMAT_TEXT:
        return prn_study_write_text(study, options, write, user, error);
    case PRONY_FORMAT_JSON:
        return prn_study_write_json(study, options, write, user, error);
    case PRONY_FORMAT_CSV:
        return prn_study_write_csv(study, options, write, user, error);
    case PRONY_FORMAT_SVG:
        return prn_study_write_svg(study, options, write, user, error);
    case PRONY_FORMAT_HTML:
        return prn_study_write_html(study, options, write, user, error);
    case PRONY_FORMAT_MARKDOWN:
        return study_markdown(study, options, write, user, error);
    default:
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "a study can be written as text, JSON, CSV, SVG, HTML or Markdown only");
    }
}

prony_status prony_study_save(const prony_study *study, prony_format format, const prony_write_options *options,
                              const char *path, prony_error *error)
{
    if (!study || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_save: an argument is NULL");
    prn_file_writer *file = NULL;
    PRN_TRY(prn_file_create(&file, path, error));
    prony_status status = prony_study_write(study, format, options, prn_file_write, file, error);
    if (status == PRONY_OK || status == PRONY_IO_ERROR) return prn_file_commit(file, error);
    prn_file_abandon(file);
    return status;
}
