/* Read-only file maps and whole-file writes. */
#ifndef PRN_BASE_OS_FILE_H
#define PRN_BASE_OS_FILE_H

#include "base/status.h"

typedef struct prn_map {
    const uint8_t *data; /* NULL for an empty file */
    size_t size;
    /* What the file was like when it was opened. */
    int64_t modified_s, modified_ns;
    uint64_t device, node;
    bool copied;
} prn_map;

/* Maps a regular file. The map stays valid after the file is removed; of one that shrinks meanwhile, reading what it
 * lost is SIGBUS. */
PRN_MUST_USE prony_status prn_map_open(prn_map *map, const char *path, prony_error *error);
/* The same of a copy in memory, which nobody else can change. A file that changes while it is read is an error. */
PRN_MUST_USE prony_status prn_map_read(prn_map *map, const char *path, prony_error *error);
/* PRONY_IO_ERROR if the file that is mapped stands at `path` and has another size or time of modification than when it
 * was opened. One that was replaced, or removed, still is what was mapped. */
PRN_MUST_USE prony_status prn_map_check(const prn_map *map, const char *path, prony_error *error);
/* Gives the memory back that holds these bytes, if they are mapped; whoever reads them again has them read again. */
void prn_map_forget(const prn_map *map, const void *data, size_t bytes);
/* Whether `data` lies in it. */
bool prn_map_has(const prn_map *map, const void *data);
void prn_map_close(prn_map *map);

/* Collects output and gives it the final name only when everything was written. */
typedef struct prn_file_writer prn_file_writer;
PRN_MUST_USE prony_status prn_file_create(prn_file_writer **out, const char *path, prony_error *error);
/* Signature of prony_write_fn; `user` is the prn_file_writer. */
int prn_file_write(void *user, const char *data, size_t size);
/* Commits (fsync, rename) and frees. On failure nothing is left behind and an old file is untouched. */
PRN_MUST_USE prony_status prn_file_commit(prn_file_writer *writer, prony_error *error);
void prn_file_abandon(prn_file_writer *writer);

#endif
