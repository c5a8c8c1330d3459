/* Keeps measured kernels as JSON, "prony.tune/2": one file per model, processor identity, instruction set, threads,
 * precision and build of Prony. The file is not trusted: a damaged or foreign one is measured again and replaced. It is
 * written under another name and renamed, so with two processes one complete file remains. */
#define _GNU_SOURCE
#include "profiler/measure/tune_file.h"
#include "base/os/clock.h"
#include "base/os/file.h"
#include "base/cpu/isa.h"
#include "base/cpu/machine.h"
#include "base/cpu/processor_id.h"
#include "engine/plan/tune.h"
#include "profiler/measure/cache_path.h"
#include "profiler/json/keys.h"
#include "prn_build_info.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA "prony.tune/2"
enum { MOST_FILE_BYTES = 16 << 20 };

/* The identity stored in a file. */
typedef struct tune_file {
    const char *model_sha256, *cpu_model, *processor, *isa, *prony_version, *git_commit, *precision;
    int cores, threads, workers;
    prn_tune_row *rows;
    size_t row_count;
    prn_tune_verdict *verdicts;
    size_t verdict_count;
} tune_file;

/* ---- keys ---- */

static const prn_key trial_keys[] = {
    {"kernel", PRN_AT(prn_tune_trial, kernel), PRN_ALWAYS, "Kernels that were tried, the default first."},
    {"time_ns", PRN_AT(prn_tune_trial, time_ns), PRN_IF_FROM_0 | PRN_OR_NULL,
     "Median time of one run; null: it failed."},
    {"reorder_ns", PRN_AT(prn_tune_trial, reorder_ns), PRN_LEAST_0, "Time of the Reorders that it needs."},
    {"failure", PRN_AT(prn_tune_trial, failure), PRN_IF_SET, "Reason why it failed."},
    {0}};

static const prn_key row_keys[] = {
    {"op", PRN_AT(prn_tune_row, op), PRN_ALWAYS, "Operator type."},
    {"inputs", PRN_AT(prn_tune_row, about), PRN_ALWAYS, "Types and shapes of the first two."},
    {"kernel", PRN_AT(prn_tune_row, kernel), PRN_ALWAYS, "The fastest kernel."},
    {"default", PRN_AT(prn_tune_row, standard), PRN_ALWAYS, "The kernel without measuring."},
    {"problem", PRN_AT(prn_tune_row, problem), PRN_HASH, "SHA-256 of everything that distinguishes problems."},
    {"tried", PRN_ROWS(prn_tune_row, trials, trial_count, trial_keys), PRN_ROW_DIRECT_ROWS, NULL},
    {0}};

static const prn_key verdict_keys[] = {
    {"program", PRN_AT(prn_tune_verdict, program), PRN_HASH, "SHA-256 of everything that distinguishes plans."},
    {"taken_back", PRN_AT(prn_tune_verdict, reverted), PRN_ALWAYS, "true: the default kernels stay."},
    {"default_run_ns", PRN_AT(prn_tune_verdict, default_ns), PRN_IF_FROM_0 | PRN_OR_NULL,
     "Median time of one run; null: it failed."},
    {"tuned_run_ns", PRN_AT(prn_tune_verdict, tuned_ns), PRN_IF_FROM_0 | PRN_OR_NULL, "Likewise."},
    {"failure", PRN_AT(prn_tune_verdict, failure), PRN_IF_SET, "Reason why it failed."},
    {0}};

#define F tune_file
static const prn_key file_keys[] = {
    {"model_sha256", PRN_AT(F, model_sha256), PRN_HASH, "Of the model's file."},
    {"cpu_model", PRN_AT(F, cpu_model), PRN_ALWAYS, "As the kernel says."},
    {"processor", PRN_AT(F, processor), PRN_ALWAYS,
     "Family, model, stepping, microcode, logical processors and a checksum."},
    {"isa", PRN_AT(F, isa), PRN_ALWAYS, "Highest instruction set used."},
    {"cores", PRN_AT(F, cores), PRN_LEAST_0, "Logical processors online."},
    {"threads", PRN_AT(F, threads), PRN_LEAST_0, "Inside an operator."},
    {"workers", PRN_AT(F, workers), PRN_ALWAYS, "As the session was asked for."},
    {"precision", PRN_AT(F, precision), PRN_ALWAYS, "Of the session."},
    {"prony_version", PRN_AT(F, prony_version), PRN_ALWAYS, "That measured."},
    {"git_commit", PRN_AT(F, git_commit), PRN_ALWAYS, "Of its build."},
    {"problems", PRN_ROWS(F, rows, row_count, row_keys), PRN_ALWAYS, NULL},
    {"plans", PRN_ROWS(F, verdicts, verdict_count, verdict_keys), PRN_ROW_DIRECT_ROWS, NULL},
    {0}};

/* ---- the file's identity ---- */

typedef struct identity {
    tune_file is;
    char model_sha256[65], processor[PRN_PROCESSOR_ID_BYTES];
    prn_machine machine;
} identity;

static void identify(identity *id, const prn_tune_key *key)
{
    prn_machine_read(&id->machine, NULL);
    prn_processor_id(id->processor, &id->machine);
    prn_model_hash(key->model->file, id->model_sha256);
    id->is = (tune_file){.model_sha256 = id->model_sha256,
                         .cpu_model = id->machine.cpu_model[0] ? id->machine.cpu_model : "unknown processor",
                         .processor = id->processor,
                         .isa = prn_isa_name(),
                         .prony_version = PRONY_VERSION,
                         .git_commit = PRN_BUILD_GIT_COMMIT,
                         .precision = key->precision,
                         .cores = id->machine.cpu_count,
                         .threads = key->threads,
                         .workers = key->workers};
}

static prony_status tune_file_path_of(const tune_file *is, char *path, size_t size, prony_error *error)
{
    char folder[PATH_MAX], processor[100], precision[32], commit[16];
    PRN_TRY(prn_cache_folder(folder, sizeof folder, error));
    prn_cache_slug(processor, sizeof processor, is->cpu_model);
    prn_cache_slug(precision, sizeof precision, is->precision);
    prn_cache_slug(commit, sizeof commit, is->git_commit);
    const int length =
        snprintf(path, size, "%s/tune/%.16s-%s-%s-%s-%dt%dw-%s-%s-%s.json", folder, is->model_sha256, processor,
                 is->processor, is->isa, is->threads, is->workers, precision, is->prony_version, commit);
    if (length < 0 || (size_t)length >= size) return prn_fail(error, PRONY_LIMIT, "the cache file's path is too long");
    return PRONY_OK;
}

/* ---- reading ---- */

static void check_number(prn_json_reader *j, const char *key, int found, int wanted)
{
    if (j->status == PRONY_OK && found != wanted) prn_json_bad(j, key, "found %d, wanted %d", found, wanted);
}

static void tune_file_check_rows(prn_json_reader *j, const tune_file *file)
{
    for (size_t r = 0; r < file->row_count && j->status == PRONY_OK; r++) {
        const prn_tune_row *row = &file->rows[r];
        if (strlen(row->problem) != PRN_TUNE_PROBLEM_BYTES - 1 || !*row->kernel || !*row->standard ||
            row->trial_count > PRN_TUNE_MOST_KERNELS)
            prn_json_bad(j, "problems", "row %zu is invalid", r);
        for (size_t k = 0; k < row->trial_count && j->status == PRONY_OK; k++)
            if (row->trials[k].time_ns < -1 || row->trials[k].reorder_ns < 0)
                prn_json_bad(j, "problems", "row %zu has a negative time", r);
    }
}

static void check_verdicts(prn_json_reader *j, const tune_file *file)
{
    for (size_t v = 0; v < file->verdict_count && j->status == PRONY_OK; v++) {
        const prn_tune_verdict *verdict = &file->verdicts[v];
        const bool failed = verdict->failure && verdict->reverted;
        if (strlen(verdict->program) != PRN_TUNE_PROBLEM_BYTES - 1 ||
            (!failed && (verdict->default_ns < 0 || verdict->tuned_ns < 0)))
            prn_json_bad(j, "plans", "row %zu is invalid", v);
    }
}

static prony_status tune_file_read(prn_tuning *tuning, const identity *id, const prn_map *map, tune_file *file,
                                   prony_error *error)
{
    prn_json_value *root;
    if (map->size > MOST_FILE_BYTES) return prn_fail(error, PRONY_LIMIT, "%s: %zu bytes", tuning->file, map->size);
    PRN_TRY(prn_json_document_parse(&root, tuning->file, (const char *)map->data, map->size, error));
    prn_json_reader reader = {.pool = &tuning->pool, .file = tuning->file, .error = error}, *j = &reader;
    prn_cache_read_same(j, root, "schema", SCHEMA);
    prn_cache_read_same(j, root, "model_sha256", id->is.model_sha256);
    prn_cache_read_same(j, root, "cpu_model", id->is.cpu_model);
    prn_cache_read_same(j, root, "processor", id->is.processor);
    prn_cache_read_same(j, root, "isa", id->is.isa);
    prn_cache_read_same(j, root, "prony_version", id->is.prony_version);
    prn_cache_read_same(j, root, "git_commit", id->is.git_commit);
    prn_cache_read_same(j, root, "precision", id->is.precision);
    prn_keys_read(j, root, file_keys, &(prn_at){.root = file, .row = file});
    check_number(j, "cores", file->cores, id->is.cores);
    check_number(j, "threads", file->threads, id->is.threads);
    check_number(j, "workers", file->workers, id->is.workers);
    tune_file_check_rows(j, file);
    check_verdicts(j, file);
    prn_json_document_release(root);
    return j->status;
}

static prony_status load_rows(prn_tuning *tuning, const identity *id, prony_error *error)
{
    prn_map map;
    tune_file file = {0};
    if (access(tuning->file, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return PRONY_OK;
    PRN_TRY(prn_map_read(&map, tuning->file, error));
    prony_status status = tune_file_read(tuning, id, &map, &file, error);
    prn_map_close(&map);
    for (size_t r = 0; r < file.row_count && status == PRONY_OK; r++) {
        file.rows[r].kept = true;
        if (!prn_tuning_add(tuning, &file.rows[r])) status = prn_no_memory(error);
    }
    for (size_t v = 0; v < file.verdict_count && status == PRONY_OK; v++) {
        if (!prn_tuning_set_verdict(tuning, &file.verdicts[v])) status = prn_no_memory(error);
        if (file.verdicts[v].failure) prn_tuning_add_note(tuning, PRN_TUNE_FAILED, file.verdicts[v].failure);
    }
    return status;
}

static void tune_file_load(prn_tuning *tuning, const prn_tune_key *key, bool again)
{
    char path[PATH_MAX];
    identity id;
    prony_error error = {0};
    const int64_t start = prn_now_ns();
    identify(&id, key);
    prony_status status = tune_file_path_of(&id.is, path, sizeof path, &error);
    if (status == PRONY_OK) {
        tuning->file = prn_bump_strndup(&tuning->pool, path, strlen(path));
        if (!tuning->file) status = prn_no_memory(&error);
    }
    if (status != PRONY_OK)
        prn_tuning_add_note(tuning, "measurements are not saved: %.200s", error.message);
    else if (!again && load_rows(tuning, &id, &error) != PRONY_OK)
        prn_tuning_add_note(tuning, "measured again: %.260s", error.message);
    tuning->file_ns += prn_now_ns() - start;
}

/* ---- writing ---- */

static prony_status tune_file_write_rows(const prn_tuning *tuning, const tune_file *file, prony_error *error)
{
    char path[PATH_MAX];
    prn_file_writer *writer;
    snprintf(path, sizeof path, "%s", tuning->file);
    PRN_TRY(prn_cache_make_folders(path, error));
    PRN_TRY(prn_file_create(&writer, path, error));
    prony_status status = prn_keys_write_document(
        SCHEMA, file_keys, &(prn_at){.root = (void *)(uintptr_t)file, .row = (void *)(uintptr_t)file}, prn_file_write,
        writer, error);
    if (status == PRONY_OK) return prn_file_commit(writer, error);
    prn_file_abandon(writer);
    return status;
}

static void tune_file_save(prn_tuning *tuning, const prn_tune_key *key)
{
    identity id;
    prony_error error = {0};
    const int64_t start = prn_now_ns();
    if (!tuning->file) return;
    identify(&id, key);
    id.is.rows = prn_calloc(tuning->count + 1, sizeof *id.is.rows);
    id.is.verdicts = prn_calloc(tuning->verdict_count + 1, sizeof *id.is.verdicts);
    prony_status status = id.is.rows && id.is.verdicts ? PRONY_OK : prn_no_memory(&error);
    for (size_t r = 0; r < tuning->count && status == PRONY_OK; r++) id.is.rows[id.is.row_count++] = *tuning->rows[r];
    for (size_t v = 0; v < tuning->verdict_count && status == PRONY_OK; v++)
        id.is.verdicts[id.is.verdict_count++] = *tuning->verdicts[v];
    if (status == PRONY_OK) status = tune_file_write_rows(tuning, &id.is, &error);
    prn_free(id.is.rows);
    prn_free(id.is.verdicts);
    if (status == PRONY_OK) {
        tuning->unsaved = false;
    } else {
        tuning->file = NULL;
        prn_tuning_add_note(tuning, "measurements are not saved: %.260s", error.message);
    }
    tuning->file_ns += prn_now_ns() - start;
}

const prn_tune_files prn_tune_cache = {tune_file_load, tune_file_save};
