/* Reads folders by the system call, because readdir allocates without base/memory/alloc.h. */
#define _GNU_SOURCE
#include "base/os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct listing {
    prn_bump *pool;
    prn_folder_entry *entries; /* of the heap, while they grow */
    size_t count, capacity;
    int fd;
} listing;

/* A record written by getdents64. */
typedef struct record {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
} record;

bool prn_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static prony_status folder_add(listing *l, const record *r, prony_error *error)
{
    struct stat info;
    bool folder = r->type == DT_DIR, file = r->type == DT_REG;
    if (r->name[0] == '.') return PRONY_OK;
    if (!folder && !file && fstatat(l->fd, r->name, &info, 0) == 0) {
        folder = S_ISDIR(info.st_mode);
        file = S_ISREG(info.st_mode);
    }
    if (!folder && !file) return PRONY_OK;
    if (!PRN_GROW(l->entries, l->capacity, l->count + 1)) return prn_no_memory(error);
    const char *name = prn_bump_strndup(l->pool, r->name, strlen(r->name));
    if (!name) return prn_no_memory(error);
    l->entries[l->count++] = (prn_folder_entry){name, folder};
    return PRONY_OK;
}

static prony_status read_all(listing *l, prony_error *error)
{
    _Alignas(record) char buffer[8192];
    for (;;) {
        long got = syscall(SYS_getdents64, l->fd, buffer, sizeof buffer);
        if (got == 0) return PRONY_OK;
        if (got < 0) return prn_fail(error, PRONY_IO_ERROR, "cannot read the folder: %s", strerrordesc_np(errno));
        for (long at = 0; at < got;) {
            const record *r = (const record *)(const void *)(buffer + at);
            PRN_TRY(folder_add(l, r, error));
            at += r->bytes;
        }
    }
}

static int folder_by_name(const void *a, const void *b)
{
    return strcmp(((const prn_folder_entry *)a)->name, ((const prn_folder_entry *)b)->name);
}

prony_status prn_folder_read(prn_folder *out, prn_bump *pool, const char *path, prony_error *error)
{
    listing l = {.pool = pool};
    *out = (prn_folder){0};
    l.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l.fd < 0) return prn_fail(error, PRONY_IO_ERROR, "'%.400s': cannot open: %s", path, strerrordesc_np(errno));
    prony_status status = read_all(&l, error);
    close(l.fd);
    if (status == PRONY_OK) {
        if (l.count) qsort(l.entries, l.count, sizeof *l.entries, folder_by_name);
        out->entries = prn_bump_alloc(pool, l.count + 1, sizeof *out->entries);
        out->count = l.count;
        if (out->entries && l.count) memcpy(out->entries, l.entries, l.count * sizeof *l.entries);
        if (!out->entries) status = prn_no_memory(error);
    } else {
        prn_error_prefix(error, "'%.400s'", path);
    }
    prn_free(l.entries);
    return status;
}
