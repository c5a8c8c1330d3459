/* Read-only file maps and whole-file writes. */
#ifndef PRN_BASE_OS_FILE_H
#define PRN_BASE_OS_FILE_H

#include "base/status.h"

typedef struct prn_map {
    const uint8_t *data; /* NULL for an empty file */
    size_t size;
    /* State of the file when it was opened. */
    int64_t modified_s, modified_ns;
    uint64_t device, node;
    bool copied;
} prn_map;

/* Maps a regular file. The map stays valid after the file is removed; if the file shrinks, reading the lost part raises
 * SIGBUS. */
PRN_MUST_USE prony_status prn_map_open(prn_map *map, const char *path, prony_error *error);
/* The same with a private copy in memory. A file that changes while it is read is an error. */
PRN_MUST_USE prony_status prn_map_read(prn_map *map, const char *path, prony_error *error);
/* PRONY_IO_ERROR if `path` is the mapped file and its size or modification time has changed since it was opened. A
 * replaced or removed file still has the mapped contents. */
PRN_MUST_USE prony_status prn_map_check(const prn_map *map, const char *path, prony_error *error);
/* Releases the memory of these bytes, if they are mapped; later reads load them from the file again. */
void prn_map_forget(const prn_map *map, const void *data, size_t bytes);
/* true: `data` lies in the map. */
bool prn_map_has(const prn_map *map, const void *data);
void prn_map_close(prn_map *map);

/* Collects output and gives it the final name only when everything was written. */
typedef struct prn_file_writer prn_file_writer;
PRN_MUST_USE prony_status prn_file_create(prn_file_writer **out, const char *path, prony_error *error);
/* Signature of prony_write_fn; `user` is the prn_file_writer. */
int prn_file_write(void *user, const char *data, size_t size);
/* Commits (fsync, rename) and frees. On failure no new file remains and an old file is untouched. */
PRN_MUST_USE prony_status prn_file_commit(prn_file_writer *writer, prony_error *error);
void prn_file_abandon(prn_file_writer *writer);

#endif
