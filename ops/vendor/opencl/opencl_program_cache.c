/* Implements opencl_program_cache.h.
 *
 * A file: "prony.program/1", the key, the SHA-256 of the binary, a line each, and the binary. Its name is the key. It gets
 * that name when it is whole, so other processes never see a part of it. */
#define _GNU_SOURCE
#include "ops/op.h"

#ifdef PRN_HAVE_OPENCL
#include "base/hash/sha256.h"
#include "base/memory/alloc.h"
#include "base/os/cache_folder.h"
#include "base/os/file.h"
#include "base/os/folder.h"
#include "ops/vendor/opencl/opencl_program_cache.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "prony.program/1\n"
enum { HEAD_BYTES = sizeof HEAD - 1 + 2 * 65 };

static bool cache_is_off(void)
{
    const char *choice = getenv("PRONY_DEVICE_CACHE");
    return choice && strcmp(choice, "off") == 0;
}

/* With its length, so that no two lists of texts are the same bytes. */
static void hash_text(prn_sha256 *hash, const char *text, size_t size)
{
    const uint64_t length = size;
    prn_sha256_add(hash, &length, sizeof length);
    prn_sha256_add(hash, text, size);
}

static void hash_string(prn_sha256 *hash, const char *text)
{
    hash_text(hash, text, strlen(text));
}

static void hash_platform(prn_sha256 *hash, cl_device_id device)
{
    cl_platform_id platform = NULL;
    char version[256] = "";
    if (prn_opencl.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, NULL) == CL_SUCCESS)
        (void)prn_opencl.clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version - 1, version, NULL);
    hash_string(hash, version);
}

void prn_opencl_program_cache_key(opencl_recipe *recipe, const prn_device *device)
{
    prn_sha256 hash;
    recipe->key[0] = '\0';
    if (cache_is_off()) return;
    prn_sha256_init(&hash);
    hash_string(&hash, device->info.name);
    hash_string(&hash, device->info.vendor);
    hash_string(&hash, device->info.driver);
    hash_string(&hash, device->info.version);
    hash_string(&hash, device->info.platform);
    hash_platform(&hash, device->id);
    hash_string(&hash, recipe->options);
    for (size_t i = 0; i < recipe->count; i++) hash_text(&hash, recipe->texts[i], recipe->sizes[i]);
    prn_sha256_text(&hash, recipe->key);
}

static bool cache_path(char path[PATH_MAX], const char *name)
{
    char folder[PATH_MAX];
    if (prn_cache_folder(folder, sizeof folder, NULL) != PRONY_OK) return false;
    const int length = snprintf(path, PATH_MAX, "%s/opencl/%s", folder, name);
    return length > 0 && length < PATH_MAX;
}

static void file_head(char head[HEAD_BYTES + 1], const char *key, const void *binary, size_t size)
{
    prn_sha256 hash;
    char sum[65];
    prn_sha256_init(&hash);
    prn_sha256_add(&hash, binary, size);
    prn_sha256_text(&hash, sum);
    snprintf(head, HEAD_BYTES + 1, HEAD "%s\n%s\n", key, sum);
}

/* ---- loading ---- */

static cl_program load_binary(const prn_device *d, const unsigned char *binary, size_t size, const char *options)
{
    cl_int code = CL_SUCCESS, binary_code = CL_SUCCESS;
    cl_program program =
        prn_opencl.clCreateProgramWithBinary(d->context, 1, &d->id, &size, &binary, &binary_code, &code);
    if (code != CL_SUCCESS || !program) return NULL;
    if (binary_code == CL_SUCCESS && prn_opencl.clBuildProgram(program, 1, &d->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    prn_opencl.clReleaseProgram(program); /* another driver's, say */
    return NULL;
}

cl_program prn_opencl_program_cache_load(const prn_device *d, const opencl_recipe *recipe)
{
    char path[PATH_MAX], head[HEAD_BYTES + 1];
    prn_map map;
    cl_program program = NULL;
    if (!*recipe->key || !cache_path(path, recipe->key) || access(path, R_OK) != 0) return NULL;
    if (prn_map_read(&map, path, NULL) != PRONY_OK) return NULL;
    if (map.size > HEAD_BYTES) {
        const unsigned char *binary = map.data + HEAD_BYTES;
        file_head(head, recipe->key, binary, map.size - HEAD_BYTES);
        if (memcmp(map.data, head, HEAD_BYTES) == 0)
            program = load_binary(d, binary, map.size - HEAD_BYTES, recipe->options);
    }
    prn_map_close(&map);
    if (program) (void)utimensat(AT_FDCWD, path, NULL, 0); /* the oldest go first */
    return program;
}

/* ---- keeping ---- */

typedef struct kept_file {
    const char *name;
    uint64_t bytes;
    struct timespec used;
} kept_file;

static int oldest_first(const void *left, const void *right)
{
    const kept_file *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec) return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void remove_oldest(kept_file *files, size_t count, uint64_t bytes, uint64_t most)
{
    char path[PATH_MAX];
    qsort(files, count, sizeof *files, oldest_first);
    for (size_t i = 0; i < count && bytes > most; i++) {
        if (cache_path(path, files[i].name)) (void)unlink(path);
        bytes -= files[i].bytes;
    }
}

/* Files of other names are not this cache's, and stay. */
static void bound_cache(uint64_t most)
{
    char folder[PATH_MAX], path[PATH_MAX];
    prn_bump pool = {0};
    prn_folder all;
    uint64_t bytes = 0;
    size_t count = 0;
    if (!cache_path(folder, "") || prn_folder_read(&all, &pool, folder, NULL) != PRONY_OK) {
        prn_bump_release(&pool);
        return;
    }
    kept_file *files = prn_calloc(all.count + 1, sizeof *files);
    for (size_t i = 0; files && i < all.count; i++) {
        struct stat is;
        if (all.entries[i].folder || strlen(all.entries[i].name) != PRN_OPENCL_KEY_BYTES - 1) continue;
        if (!cache_path(path, all.entries[i].name) || stat(path, &is) != 0) continue;
        files[count++] = (kept_file){all.entries[i].name, (uint64_t)is.st_size, is.st_mtim};
        bytes += (uint64_t)is.st_size;
    }
    if (files) remove_oldest(files, count, bytes, most);
    prn_free(files);
    prn_bump_release(&pool);
}

static bool opencl_program_cache_write(const char *path, const char *key, const unsigned char *binary, size_t size)
{
    char head[HEAD_BYTES + 1];
    prn_file_writer *writer;
    if (prn_file_create(&writer, path, NULL) != PRONY_OK) return false;
    file_head(head, key, binary, size);
    if (prn_file_write(writer, head, HEAD_BYTES) == 0 && prn_file_write(writer, (const char *)binary, size) == 0)
        return prn_file_commit(writer, NULL) == PRONY_OK;
    prn_file_abandon(writer);
    return false;
}

void prn_opencl_program_cache_keep(const opencl_recipe *recipe, cl_program program, uint64_t most)
{
    char path[PATH_MAX];
    size_t size = 0;
    if (!*recipe->key || !cache_path(path, recipe->key)) return;
    if (prn_opencl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS) return;
    if (size == 0 || size > most) return;
    unsigned char *binary = prn_alloc(size);
    if (binary &&
        prn_opencl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(unsigned char *), &binary, NULL) ==
            CL_SUCCESS &&
        prn_cache_make_folders(path, NULL) == PRONY_OK && opencl_program_cache_write(path, recipe->key, binary, size))
        bound_cache(most);
    prn_free(binary);
}
#endif
