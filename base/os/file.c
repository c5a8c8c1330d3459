/* Files: read-only maps, and complete writes or none. A writer owns its descriptor and its temporary file, which lies
 * beside the target so that the rename stays within one file system. Targets other than regular files (terminals,
 * pipes, /dev/null) are written in place. */
#define _GNU_SOURCE
#include "base/os/file.h"
#include "base/memory/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static prony_status fail_errno(prony_error *error, const char *path, const char *what, int code)
{
    char reason[128];
    return prn_fail(error, PRONY_IO_ERROR, "'%s': %s: %s", path, what, strerror_r(code, reason, sizeof reason));
}

static void file_remember(prn_map *map, const struct stat *info)
{
    map->size = (size_t)info->st_size;
    map->modified_s = (int64_t)info->st_mtim.tv_sec;
    map->modified_ns = (int64_t)info->st_mtim.tv_nsec;
    map->device = (uint64_t)info->st_dev;
    map->node = (uint64_t)info->st_ino;
}

static bool is_as_before(const prn_map *map, const struct stat *info)
{
    return (size_t)info->st_size == map->size && (int64_t)info->st_mtim.tv_sec == map->modified_s &&
           (int64_t)info->st_mtim.tv_nsec == map->modified_ns;
}

static prony_status map_file(prn_map *map, const char *path, int fd, prony_error *error)
{
    void *data = mmap(NULL, map->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return fail_errno(error, path, "cannot map", errno);
    map->data = data;
    return PRONY_OK;
}

static prony_status copy_file(prn_map *map, const char *path, int fd, prony_error *error)
{
    struct stat after;
    uint8_t *data = prn_alloc_aligned(64, map->size);
    if (!data) return prn_no_memory(error);
    map->data = data;
    map->copied = true;
    for (size_t at = 0; at < map->size;) {
        ssize_t got = read(fd, data + at, map->size - at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(error, path, "cannot read", errno);
        if (got == 0) break;
        at += (size_t)got;
    }
    if (fstat(fd, &after) == 0 && is_as_before(map, &after)) return PRONY_OK;
    return prn_fail(error, PRONY_IO_ERROR, "'%s': it changed while it was read", path);
}

static prony_status open_as(prn_map *map, const char *path,
                            prony_status (*take)(prn_map *map, const char *path, int fd, prony_error *error),
                            prony_error *error)
{
    *map = (prn_map){0};
    prony_status status = PRONY_OK;
    struct stat info;
    /* Without O_NONBLOCK opening a pipe would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_errno(error, path, "cannot open", errno);
    if (fstat(fd, &info) != 0) {
        status = fail_errno(error, path, "cannot read its size", errno);
    } else if (!S_ISREG(info.st_mode)) {
        status = prn_fail(error, PRONY_IO_ERROR, "'%s': not a regular file", path);
    } else if (info.st_size > 0) {
        file_remember(map, &info);
        status = take(map, path, fd, error);
        if (status != PRONY_OK) prn_map_close(map);
    }
    close(fd);
    return status;
}

prony_status prn_map_open(prn_map *map, const char *path, prony_error *error)
{
    return open_as(map, path, map_file, error);
}

prony_status prn_map_read(prn_map *map, const char *path, prony_error *error)
{
    return open_as(map, path, copy_file, error);
}

prony_status prn_map_check(const prn_map *map, const char *path, prony_error *error)
{
    struct stat now;
    if (!map->data || map->copied || stat(path, &now) != 0) return PRONY_OK;
    if ((uint64_t)now.st_dev != map->device || (uint64_t)now.st_ino != map->node || is_as_before(map, &now))
        return PRONY_OK;
    return prn_fail(error, PRONY_IO_ERROR, "'%s': it has changed since it was loaded (%zu bytes then, %lld now)", path,
                    map->size, (long long)now.st_size);
}

bool prn_map_has(const prn_map *map, const void *data)
{
    return map->data && (uintptr_t)data >= (uintptr_t)map->data && (uintptr_t)data - (uintptr_t)map->data < map->size;
}

/* Pages at the ends are shared with neighbours, whose later reads load them again. */
void prn_map_forget(const prn_map *map, const void *data, size_t bytes)
{
    if (map->copied || bytes == 0 || !prn_map_has(map, data)) return;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)data & ~(page - 1);
    (void)madvise((void *)first, (uintptr_t)data + bytes - first, MADV_DONTNEED); /* the kernel rounds the end up */
}

void prn_map_close(prn_map *map)
{
    void *data = (void *)(uintptr_t)map->data;
    if (data && map->copied)
        prn_free_aligned(data);
    else if (data)
        munmap(data, map->size);
    *map = (prn_map){0};
}

struct prn_file_writer {
    int fd;
    int failure; /* errno of the first write that failed */
    bool in_place;
    size_t used;
    char path[PATH_MAX], temporary[PATH_MAX + 48];
    char buffer[1 << 16];
};

/* A symbolic link stays; its target is replaced. */
static bool find_target(prn_file_writer *writer, const char *path)
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode) && realpath(path, writer->path)) return true;
    size_t length = strnlen(path, sizeof writer->path);
    if (length == sizeof writer->path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(writer->path, path, length + 1);
    return true;
}

static bool open_target(prn_file_writer *writer, const char *path)
{
    static _Atomic unsigned serial;
    struct stat info;
    if (!find_target(writer, path)) return false;
    if (stat(writer->path, &info) == 0 && !S_ISREG(info.st_mode)) {
        writer->in_place = true;
        writer->fd = open(writer->path, O_WRONLY | O_CLOEXEC);
        return writer->fd >= 0;
    }
    for (int attempt = 0; attempt < 100; attempt++) {
        snprintf(writer->temporary, sizeof writer->temporary, "%s.%ld-%u.tmp", writer->path, (long)getpid(),
                 atomic_fetch_add(&serial, 1));
        writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->fd >= 0 || errno != EEXIST) break;
    }
    return writer->fd >= 0;
}

prony_status prn_file_create(prn_file_writer **out, const char *path, prony_error *error)
{
    *out = NULL;
    prn_file_writer *writer = prn_calloc(1, sizeof *writer);
    if (!writer) return prn_no_memory(error);
    writer->fd = -1;
    if (!open_target(writer, path)) {
        prony_status status = fail_errno(error, path, "cannot create", errno);
        prn_free(writer);
        return status;
    }
    *out = writer;
    return PRONY_OK;
}

static void write_all(prn_file_writer *writer, const char *data, size_t size)
{
    while (size > 0 && !writer->failure) {
        ssize_t written = write(writer->fd, data, size);
        if (written >= 0) {
            data += written;
            size -= (size_t)written;
        } else if (errno != EINTR) {
            writer->failure = errno;
        }
    }
}

int prn_file_write(void *user, const char *data, size_t size)
{
    prn_file_writer *writer = user;
    if (size > sizeof writer->buffer - writer->used) {
        write_all(writer, writer->buffer, writer->used);
        writer->used = 0;
    }
    if (size >= sizeof writer->buffer) {
        write_all(writer, data, size);
    } else if (size) {
        memcpy(writer->buffer + writer->used, data, size);
        writer->used += size;
    }
    return writer->failure;
}

prony_status prn_file_commit(prn_file_writer *writer, prony_error *error)
{
    prony_status status = PRONY_OK;
    write_all(writer, writer->buffer, writer->used);
    if (!writer->failure && !writer->in_place && fsync(writer->fd) != 0) writer->failure = errno;
    if (close(writer->fd) != 0 && !writer->failure) writer->failure = errno;
    writer->fd = -1;
    if (!writer->failure && !writer->in_place && rename(writer->temporary, writer->path) != 0) writer->failure = errno;
    if (writer->failure)
        status = fail_errno(error, writer->path, "cannot write", writer->failure);
    else
        writer->temporary[0] = '\0';
    prn_file_abandon(writer);
    return status;
}

void prn_file_abandon(prn_file_writer *writer)
{
    if (!writer) return;
    if (writer->fd >= 0) close(writer->fd);
    if (writer->temporary[0]) unlink(writer->temporary);
    prn_free(writer);
}
