/* The file that keeps a device's peaks: JSON, "prony.device/1", one file per device name, driver and version of Prony. The
 * file is not trusted; a file made for another device counts as damaged. */
#define _GNU_SOURCE
#include "base/os/file.h"
#include "base/memory/alloc.h"
#include "profiler/measure/cache_path.h"
#include "profiler/measure/machine_peaks.h"
#include "profiler/json/keys.h"
#include "prony_device.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA "prony.device/1"

typedef struct peaks_file {
    const char *name, *driver, *platform, *prony_version;
    prony_device_peaks peaks;
} peaks_file;

#define F peaks_file
// clang-format off
static const prn_key peaks_file_keys[] = {
    {"name", PRN_AT(F, name), PRN_ALWAYS, "Of the device."},
    {"driver", PRN_AT(F, driver), PRN_ALWAYS, "Version of the driver."},
    {"platform", PRN_AT(F, platform), PRN_ALWAYS, NULL},
    {"prony_version", PRN_AT(F, prony_version), PRN_ALWAYS, "That measured."},
    {"flops_per_second", PRN_AT(F, peaks.flops_per_second), PRN_LEAST_0, NULL},
    {"bytes_per_second", PRN_AT(F, peaks.bytes_per_second), PRN_LEAST_0, NULL},
    {"to_device_bytes_per_second", PRN_AT(F, peaks.to_device_bytes_per_second), PRN_LEAST_0, NULL},
    {"from_device_bytes_per_second", PRN_AT(F, peaks.from_device_bytes_per_second), PRN_LEAST_0, NULL},
    {"launch_ns", PRN_AT(F, peaks.launch_ns), PRN_LEAST_0, NULL},
    {0}};
// clang-format on

static prony_status peaks_file_path(char *path, size_t size, const prony_device_info *device, prony_error *error)
{
    char folder[PATH_MAX], name[120], driver[80];
    PRN_TRY(prn_cache_folder(folder, sizeof folder, error));
    prn_cache_slug(name, sizeof name, device->name);
    prn_cache_slug(driver, sizeof driver, device->driver);
    const int length = snprintf(path, size, "%s/device-%s-%s-%s.json", folder, name, driver, PRONY_VERSION);
    if (length < 0 || (size_t)length >= size) return prn_fail(error, PRONY_LIMIT, "the cache file's path is too long");
    return PRONY_OK;
}

static bool is_rate(double rate)
{
    return rate > 0 && !isinf(rate);
}

static bool are_peaks(const prony_device_peaks *p)
{
    return is_rate(p->flops_per_second) && is_rate(p->bytes_per_second) && is_rate(p->to_device_bytes_per_second) &&
           is_rate(p->from_device_bytes_per_second) && p->launch_ns > 0;
}

prony_status prony_device_peaks_save(const prony_device_info *device, const prony_device_peaks *peaks,
                                     prony_error *error)
{
    char path[PATH_MAX];
    prn_file_writer *writer;
    if (!device || !peaks || peaks->struct_size < sizeof *peaks || !are_peaks(peaks))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_device_peaks_save: an argument is NULL, or the peaks are not measured");
    peaks_file file = {device->name, device->driver, device->platform, PRONY_VERSION, *peaks};
    PRN_TRY(peaks_file_path(path, sizeof path, device, error));
    PRN_TRY(prn_cache_make_folders(path, error));
    PRN_TRY(prn_file_create(&writer, path, error));
    prony_status status = prn_keys_write_document(SCHEMA, peaks_file_keys, &(prn_at){.root = &file, .row = &file},
                                                  prn_file_write, writer, error);
    if (status == PRONY_OK) return prn_file_commit(writer, error);
    prn_file_abandon(writer);
    return status;
}

static prony_status peaks_file_read(peaks_file *file, prn_bump *pool, const prony_device_info *device, const char *path,
                                    const prn_map *map, prony_error *error)
{
    prn_json_value *root;
    PRN_TRY(prn_json_document_parse(&root, path, (const char *)map->data, map->size, error));
    prn_json_reader reader = {.pool = pool, .file = path, .error = error}, *j = &reader;
    prn_cache_read_same(j, root, "schema", SCHEMA);
    prn_cache_read_same(j, root, "name", device->name);
    prn_cache_read_same(j, root, "driver", device->driver);
    prn_cache_read_same(j, root, "platform", device->platform);
    prn_cache_read_same(j, root, "prony_version", PRONY_VERSION);
    prn_keys_read(j, root, peaks_file_keys, &(prn_at){.root = file, .row = file});
    if (j->status == PRONY_OK && !are_peaks(&file->peaks))
        prn_json_bad(j, "flops_per_second", "%g, with %g bytes per second", file->peaks.flops_per_second,
                     file->peaks.bytes_per_second);
    prn_json_document_release(root);
    return j->status;
}

prony_status prony_device_peaks_load(prony_device_peaks *out, bool *known, const prony_device_info *device,
                                     prony_error *error)
{
    char path[PATH_MAX];
    prn_map map;
    prn_bump pool = {0};
    peaks_file file = {.peaks = PRONY_DEVICE_PEAKS_INIT};
    if (!out || !known || !device || out->struct_size == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_device_peaks_load: an argument is NULL, or `out` has no size");
    *known = false;
    PRN_TRY(peaks_file_path(path, sizeof path, device, error));
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return PRONY_OK;
    PRN_TRY(prn_map_read(&map, path, error));
    prony_status status = peaks_file_read(&file, &pool, device, path, &map, error);
    prn_map_close(&map);
    prn_bump_release(&pool);
    if (status != PRONY_OK) return status;
    file.peaks.struct_size = out->struct_size; /* of the program's version */
    memcpy(out, &file.peaks, out->struct_size < sizeof file.peaks ? out->struct_size : sizeof file.peaks);
    *known = true;
    return PRONY_OK;
}

prony_status prn_device_find_peaks(prony_device_peaks *peaks, bool *known, const prony_device_info *device,
                                   prony_error *error)
{
    *peaks = (prony_device_peaks)PRONY_DEVICE_PEAKS_INIT;
    const prony_status status = prony_device_peaks_load(peaks, known, device, error);
    if (status != PRONY_OK) *known = false;
    return status == PRONY_OUT_OF_MEMORY ? status : PRONY_OK;
}
