/* Where a machine's peaks are kept, and how: JSON, "prony.machine/1", one file per processor, instruction set and
 * version of Prony. Nothing in the file is trusted; a file that was made for another machine is damaged. */
#define _GNU_SOURCE
#include "base/file.h"
#include "profiler/measure/machine_peaks.h"
#include "profiler/report/json_read.h"
#include "profiler/report/json_write.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA "prony.machine/1"

/* ---- the path ---- */

/* Letters and digits of `text`, everything between them as one '-'. */
static void slug(char *out, size_t size, const char *text)
{
    size_t used = 0;
    for (; *text && used + 2 < size; text++) {
        if (isalnum((unsigned char)*text) || *text == '.')
            out[used++] = (char)tolower((unsigned char)*text);
        else if (used && out[used - 1] != '-')
            out[used++] = '-';
    }
    while (used && out[used - 1] == '-') used--;
    out[used] = '\0';
}

/* $XDG_CACHE_HOME if it is an absolute path, as its specification wants; else ~/.cache. */
static prony_status cache_folder(char *path, size_t size, prony_error *error)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length;
    if (xdg && *xdg == '/')
        length = snprintf(path, size, "%s/prony", xdg);
    else if (home && *home == '/')
        length = snprintf(path, size, "%s/.cache/prony", home);
    else
        return prn_fail(error, PRONY_IO_ERROR, "no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path");
    if (length < 0 || (size_t)length >= size)
        return prn_fail(error, PRONY_LIMIT, "the cache folder's path is too long");
    return PRONY_OK;
}

static prony_status file_of(char *path, size_t size, const prony_machine_info *info, prony_error *error)
{
    char folder[PATH_MAX], model[160];
    PRN_TRY(cache_folder(folder, sizeof folder, error));
    slug(model, sizeof model, info->cpu_model);
    int length = snprintf(path, size, "%s/machine-%s-%s-%s.json", folder, model, info->isa, info->prony_version);
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

/* ---- writing ---- */

static void write_compute(prn_json *j, const prony_machine *m)
{
    prn_json_open(j, "compute", '[', false);
    for (size_t i = 0; i < m->compute_count; i++) {
        const prony_peak_compute *c = &m->compute[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "precision", c->precision);
        prn_json_int(j, "threads", c->threads);
        prn_json_double(j, "flops_per_second", c->flops_per_second);
        prn_json_int(j, "trials", c->trials);
        prn_json_int(j, "trial_ns", c->trial_ns);
        if (c->doubtful) prn_json_bool(j, "doubtful", true);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_bandwidth(prn_json *j, const prony_machine *m)
{
    prn_json_open(j, "bandwidth", '[', false);
    for (size_t i = 0; i < m->bandwidth_count; i++) {
        const prony_peak_bandwidth *b = &m->bandwidth[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "level", b->level);
        prn_json_string(j, "access", b->access);
        prn_json_int(j, "threads", b->threads);
        prn_json_double(j, "bytes_per_second", b->bytes_per_second);
        prn_json_uint(j, "thread_bytes", b->thread_bytes);
        prn_json_int(j, "trials", b->trials);
        prn_json_int(j, "trial_ns", b->trial_ns);
        if (b->doubtful) prn_json_bool(j, "doubtful", true);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_work(prn_json *j, const prony_machine *m)
{
    if (m->work_count == 0) return;
    prn_json_open(j, "work", '[', false);
    for (size_t i = 0; i < m->work_count; i++) {
        const prony_work_rate *w = &m->work[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "work", w->work);
        prn_json_int(j, "threads", w->threads);
        prn_json_double(j, "per_second", w->per_second);
        prn_json_int(j, "trials", w->trials);
        prn_json_int(j, "trial_ns", w->trial_ns);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

prony_status prony_machine_write(const prony_machine *machine, prony_write_fn write, void *user, prony_error *error)
{
    if (!machine || !write) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_machine_write: an argument is NULL");
    prn_json *j = prn_alloc(sizeof *j);
    if (!j) return prn_no_memory(error);
    const prony_machine_info *info = &machine->info;
    prn_json_begin(j, write, user, error);
    prn_json_open(j, NULL, '{', false);
    prn_json_string(j, "schema", SCHEMA);
    prn_json_string(j, "cpu_model", info->cpu_model);
    prn_json_string(j, "isa", info->isa);
    prn_json_string(j, "prony_version", info->prony_version);
    prn_json_int(j, "cores", info->cores);
    prn_json_int(j, "measured_at", info->measured_at);
    prn_json_double(j, "seconds", info->seconds);
    if (info->load_avg_1min >= 0) prn_json_double(j, "load_avg_1min", info->load_avg_1min);
    prn_json_string(j, "method", PRN_MACHINE_METHOD);
    write_compute(j, machine);
    write_bandwidth(j, machine);
    write_work(j, machine);
    prn_json_close(j, '}');
    prony_status status = prn_json_end(j);
    prn_free(j);
    return status;
}

static prony_status make_folders(char *path, prony_error *error)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        char reason[128];
        *slash = '\0';
        int made = mkdir(path, 0700), code = errno;
        if (made != 0 && code != EEXIST)
            return prn_fail(error, PRONY_IO_ERROR, "'%s': cannot make the folder: %s", path,
                            strerror_r(code, reason, sizeof reason));
        *slash = '/';
    }
    return PRONY_OK;
}

prony_status prony_machine_save(const prony_machine *machine, prony_error *error)
{
    char path[PATH_MAX];
    prn_file_writer *writer;
    if (!machine) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_machine_save: machine is NULL");
    PRN_TRY(file_of(path, sizeof path, &machine->info, error));
    PRN_TRY(make_folders(path, error));
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

static void read_compute(prn_json_reader *j, const prn_json_value *root, prony_machine *m)
{
    size_t count = 0;
    const prn_json_value *array = prn_json_get_array(j, root, "compute", true, &count);
    m->compute = prn_json_room(j, count, sizeof *m->compute);
    for (const prn_json_value *e = prn_json_first(array); m->compute && e; e = prn_json_next(e)) {
        prony_peak_compute *c = &m->compute[m->compute_count];
        if (!prn_json_element_is_object(j, e, "compute")) return;
        prn_json_get_string(j, e, "precision", true, &c->precision);
        prn_json_get_int(j, e, "threads", true, &c->threads);
        prn_json_get_double(j, e, "flops_per_second", true, &c->flops_per_second);
        prn_json_get_int(j, e, "trials", true, &c->trials);
        prn_json_get_i64(j, e, "trial_ns", true, &c->trial_ns);
        prn_json_get_bool(j, e, "doubtful", false, &c->doubtful);
        check_row(j, "compute", c->threads, c->flops_per_second);
        m->compute_count++;
    }
}

static void read_bandwidth(prn_json_reader *j, const prn_json_value *root, prony_machine *m)
{
    size_t count = 0;
    const prn_json_value *array = prn_json_get_array(j, root, "bandwidth", true, &count);
    m->bandwidth = prn_json_room(j, count, sizeof *m->bandwidth);
    for (const prn_json_value *e = prn_json_first(array); m->bandwidth && e; e = prn_json_next(e)) {
        prony_peak_bandwidth *b = &m->bandwidth[m->bandwidth_count];
        if (!prn_json_element_is_object(j, e, "bandwidth")) return;
        prn_json_get_string(j, e, "level", true, &b->level);
        prn_json_get_string(j, e, "access", true, &b->access);
        prn_json_get_int(j, e, "threads", true, &b->threads);
        prn_json_get_double(j, e, "bytes_per_second", true, &b->bytes_per_second);
        prn_json_get_u64(j, e, "thread_bytes", true, &b->thread_bytes);
        prn_json_get_int(j, e, "trials", true, &b->trials);
        prn_json_get_i64(j, e, "trial_ns", true, &b->trial_ns);
        prn_json_get_bool(j, e, "doubtful", false, &b->doubtful);
        check_row(j, "bandwidth", b->threads, b->bytes_per_second);
        m->bandwidth_count++;
    }
}

static void read_work(prn_json_reader *j, const prn_json_value *root, prony_machine *m)
{
    size_t count = 0;
    const prn_json_value *array = prn_json_get_array(j, root, "work", false, &count);
    m->work = prn_json_room(j, count, sizeof *m->work);
    for (const prn_json_value *e = prn_json_first(array); m->work && e; e = prn_json_next(e)) {
        prony_work_rate *w = &m->work[m->work_count];
        if (!prn_json_element_is_object(j, e, "work")) return;
        prn_json_get_string(j, e, "work", true, &w->work);
        prn_json_get_int(j, e, "threads", true, &w->threads);
        prn_json_get_double(j, e, "per_second", true, &w->per_second);
        prn_json_get_int(j, e, "trials", true, &w->trials);
        prn_json_get_i64(j, e, "trial_ns", true, &w->trial_ns);
        check_row(j, "work", w->threads, w->per_second);
        m->work_count++;
    }
}

/* What the file says it was made for must be what it is looked up by. */
static void read_same(prn_json_reader *j, const prn_json_value *root, const char *key, const char *wanted)
{
    const char *text = NULL;
    if (prn_json_get_string(j, root, key, true, &text) && strcmp(text, wanted) != 0)
        prn_json_bad(j, key, "\"%.100s\", not \"%.100s\"", text, wanted);
}

static prony_status read_machine(prony_machine *m, const char *path, const prn_map *map, prony_error *error)
{
    prn_json_value *root;
    PRN_TRY(prn_json_document_parse(&root, path, (const char *)map->data, map->size, error));
    prn_json_reader reader = {.pool = &m->pool, .file = path, .error = error}, *j = &reader;
    read_same(j, root, "schema", SCHEMA);
    read_same(j, root, "cpu_model", m->info.cpu_model);
    read_same(j, root, "isa", m->info.isa);
    read_same(j, root, "prony_version", m->info.prony_version);
    read_same(j, root, "method", PRN_MACHINE_METHOD);
    prn_json_get_int(j, root, "cores", true, &m->info.cores);
    prn_json_get_i64(j, root, "measured_at", true, &m->info.measured_at);
    prn_json_get_double(j, root, "seconds", true, &m->info.seconds);
    prn_json_get_double(j, root, "load_avg_1min", false, &m->info.load_avg_1min);
    read_compute(j, root, m);
    read_bandwidth(j, root, m);
    read_work(j, root, m);
    if (j->status == PRONY_OK && (m->compute_count == 0 || m->bandwidth_count == 0))
        prn_json_bad(j, m->compute_count ? "bandwidth" : "compute", "no rows");
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
