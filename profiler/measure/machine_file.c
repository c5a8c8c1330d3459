/* The file that keeps a machine's peaks: JSON, "prony.machine/1", one file per processor (its identity, since virtual
 * machines share names), instruction set and version of Prony. The file is not trusted; a file made for another machine
 * counts as damaged. */
#define _GNU_SOURCE
#include "base/os/file.h"
#include "profiler/measure/cache_path.h"
#include "profiler/measure/machine_peaks.h"
#include "profiler/json/keys.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* ---- the path ---- */

static prony_status file_of(char *path, size_t size, const prony_machine_info *info, prony_error *error)
{
    char folder[PATH_MAX], model[160];
    PRN_TRY(prn_cache_folder(folder, sizeof folder, error));
    prn_cache_slug(model, sizeof model, info->cpu_model);
    int length = snprintf(path, size, "%s/machine-%s-%s-%s-%s.json", folder, model, info->processor, info->isa,
                          info->prony_version);
    if (length < 0 || (size_t)length >= size) return prn_fail(error, PRONY_LIMIT, "the cache file's path is too long");
    return PRONY_OK;
}

prony_status prony_machine_path(char *path, size_t size, prony_error *error)
{
    prony_machine *here;
    if (!path || !size) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_machine_path: an argument is NULL");
    PRN_TRY(prn_machine_create(&here, error));
    prony_status status = file_of(path, size, &here->info, error);
    prony_machine_release(here);
    return status;
}

/* ---- keys ---- */

#define C prony_peak_compute
static const prn_key compute_keys[] = {
    {"precision", PRN_AT(C, precision), PRN_ALWAYS, "fp32, fp64, int8 and so on."},
    {"threads", PRN_AT(C, threads), PRN_LEAST_1, NULL},
    {"flops_per_second", PRN_AT(C, flops_per_second), PRN_LEAST_0,
     "Multiplications and additions per second, the best of the trials."},
    {"trials", PRN_AT(C, trials), PRN_LEAST_1, NULL},
    {"trial_ns", PRN_AT(C, trial_ns), PRN_LEAST_0, "Duration of the best trial."},
    {"doubtful", PRN_AT(C, doubtful), PRN_IF_SET,
     "true: repeated trials stayed far below the rate that one thread's rate suggests. Absent: false."},
    {0}};

#define B prony_peak_bandwidth
static const prn_key bandwidth_keys[] = {
    {"level", PRN_AT(B, level), PRN_ALWAYS, "L1, L2, L3 or DRAM."},
    {"access", PRN_AT(B, access), PRN_ALWAYS, "read, copy and so on."},
    {"threads", PRN_AT(B, threads), PRN_LEAST_1, NULL},
    {"bytes_per_second", PRN_AT(B, bytes_per_second), PRN_LEAST_0, "The best of the trials."},
    {"thread_bytes", PRN_AT(B, thread_bytes), PRN_ALWAYS, "Working set of each thread."},
    {"trials", PRN_AT(B, trials), PRN_LEAST_1, NULL},
    {"trial_ns", PRN_AT(B, trial_ns), PRN_LEAST_0, "Duration of the best trial."},
    {"doubtful", PRN_AT(B, doubtful), PRN_IF_SET,
     "true: repeated trials stayed far below the rate that one thread's rate suggests. Absent: false."},
    {0}};

#define W prony_work_rate
static const prn_key work_keys[] = {
    {"work", PRN_AT(W, work), PRN_ALWAYS, "product, simple, divide, sqrt, exp, log, erf, tanh, sin, pow, move."},
    {"threads", PRN_AT(W, threads), PRN_LEAST_1, NULL},
    {"per_second", PRN_AT(W, per_second), PRN_LEAST_0,
     "Best trial: FLOPs of product, bytes of move, results of the others."},
    {"trials", PRN_AT(W, trials), PRN_LEAST_1, NULL},
    {"trial_ns", PRN_AT(W, trial_ns), PRN_LEAST_0, "Duration of the best trial."},
    {0}};

static const char *method(const prn_at *at)
{
    (void)at;
    return PRN_MACHINE_METHOD;
}

#define M prony_machine
const prn_key prn_machine_keys[] = {
    {"cpu_model", PRN_AT(M, info.cpu_model), PRN_ALWAYS, "Name as the kernel reports it."},
    {"processor", PRN_AT(M, info.processor), PRN_ALWAYS,
     "Family, model, stepping, microcode, logical processors, and a checksum of features, caches and approximations."},
    {"isa", PRN_AT(M, info.isa), PRN_ALWAYS, "Instruction set that was measured: scalar, avx2, avx512."},
    {"prony_version", PRN_AT(M, info.prony_version), PRN_ALWAYS, "That measured."},
    {"cores", PRN_AT(M, info.cores), PRN_LEAST_1, "Most threads measured."},
    {"measured_at", PRN_AT(M, info.measured_at), PRN_LEAST_0, "Seconds since 1970, UTC."},
    {"seconds", PRN_AT(M, info.seconds), PRN_LEAST_0, "Duration of the measurement."},
    {"load_avg_1min", PRN_AT(M, info.load_avg_1min), PRN_IF_FROM_0, "Start of the measurement."},
    {"busy", PRN_AT(M, info.busy), PRN_IF_SET,
     "true: other processes used the machine meanwhile, so the rates are too low. Absent: false."},
    {"method", PRN_MADE(STRING), PRN_ALWAYS, "Method of measurement.", .word = method},
    {"compute", PRN_ROWS(M, compute, compute_count, compute_keys), PRN_ROW_DIRECT_ROWS, NULL},
    {"bandwidth", PRN_ROWS(M, bandwidth, bandwidth_count, bandwidth_keys), PRN_ROW_DIRECT_ROWS, NULL},
    {"work", PRN_ROWS(M, work, work_count, work_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS,
     "Rates of each kind of work. Absent: an older version measured."},
    {0}};

/* ---- writing ---- */

prony_status prony_machine_write(const prony_machine *machine, prony_write_fn write, void *user, prony_error *error)
{
    if (!machine || !write) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_machine_write: an argument is NULL");
    return prn_keys_write_document(PRN_MACHINE_SCHEMA, prn_machine_keys, &(prn_at){.row = (prony_machine *)machine},
                                   write, user, error);
}

/* true: a quiet measurement with as many threads is kept; a busy one must not replace it. */
static bool better_is_kept(const prony_machine *machine)
{
    prony_machine *kept = NULL;
    if (!machine->info.busy || prony_machine_load(&kept, NULL) != PRONY_OK || !kept) return false;
    const bool better = !kept->info.busy && kept->info.cores >= machine->info.cores;
    prony_machine_release(kept);
    return better;
}

prony_status prony_machine_save(const prony_machine *machine, prony_error *error)
{
    char path[PATH_MAX];
    prn_file_writer *writer;
    if (!machine) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_machine_save: machine is NULL");
    if (better_is_kept(machine)) return PRONY_OK;
    PRN_TRY(file_of(path, sizeof path, &machine->info, error));
    PRN_TRY(prn_cache_make_folders(path, error));
    PRN_TRY(prn_file_create(&writer, path, error));
    prony_status status = prony_machine_write(machine, prn_file_write, writer, error);
    if (status == PRONY_OK) return prn_file_commit(writer, error);
    prn_file_abandon(writer);
    return status;
}

/* ---- reading ---- */

static void check_row(prn_json_reader *j, const char *key, int threads, double rate)
{
    if (j->status == PRONY_OK && (threads < 1 || !(rate > 0) || isinf(rate)))
        prn_json_bad(j, key, "%d threads at %g per second", threads, rate);
}

static void machine_file_check_rows(prn_json_reader *j, const prony_machine *m)
{
    for (size_t i = 0; i < m->compute_count; i++)
        check_row(j, "compute", m->compute[i].threads, m->compute[i].flops_per_second);
    for (size_t i = 0; i < m->bandwidth_count; i++)
        check_row(j, "bandwidth", m->bandwidth[i].threads, m->bandwidth[i].bytes_per_second);
    for (size_t i = 0; i < m->work_count; i++) check_row(j, "work", m->work[i].threads, m->work[i].per_second);
    if (j->status == PRONY_OK && (m->compute_count == 0 || m->bandwidth_count == 0))
        prn_json_bad(j, m->compute_count ? "bandwidth" : "compute", "no rows");
}

static prony_status read_machine(prony_machine *m, const char *path, const prn_map *map, prony_error *error)
{
    prn_json_value *root;
    PRN_TRY(prn_json_document_parse(&root, path, (const char *)map->data, map->size, error));
    prn_json_reader reader = {.pool = &m->pool, .file = path, .error = error}, *j = &reader;
    prn_cache_read_same(j, root, "schema", PRN_MACHINE_SCHEMA);
    prn_cache_read_same(j, root, "cpu_model", m->info.cpu_model);
    prn_cache_read_same(j, root, "processor", m->info.processor);
    prn_cache_read_same(j, root, "isa", m->info.isa);
    prn_cache_read_same(j, root, "prony_version", m->info.prony_version);
    prn_cache_read_same(j, root, "method", PRN_MACHINE_METHOD);
    prn_keys_read(j, root, prn_machine_keys, &(prn_at){.row = m});
    if (j->status == PRONY_OK) machine_file_check_rows(j, m);
    prn_json_document_release(root);
    return j->status;
}

prony_status prony_machine_load(prony_machine **out, prony_error *error)
{
    char path[PATH_MAX];
    prn_map map;
    prony_machine *machine;
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_machine_load: an argument is NULL");
    *out = NULL;
    PRN_TRY(prony_machine_path(path, sizeof path, error));
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return PRONY_OK;
    PRN_TRY(prn_map_open(&map, path, error));
    prony_status status = prn_machine_create(&machine, error);
    if (status == PRONY_OK) {
        status = read_machine(machine, path, &map, error);
        if (status == PRONY_OK)
            *out = machine;
        else
            prony_machine_release(machine);
    }
    prn_map_close(&map);
    return status;
}
