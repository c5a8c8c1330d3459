/* Lists the contents of a folder. */
#ifndef PRN_BASE_OS_FOLDER_H
#define PRN_BASE_OS_FOLDER_H

#include "base/memory/alloc.h"
#include "base/status.h"

typedef struct prn_folder_entry {
    const char *name;
    bool folder; /* else a regular file; links are followed */
} prn_folder_entry;

typedef struct prn_folder {
    prn_folder_entry *entries;
    size_t count;
} prn_folder;

/* Its folders and regular files in byte order of their names, without names that begin with a dot. Entries live in the
 * pool. */
PRN_MUST_USE prony_status prn_folder_read(prn_folder *out, prn_bump *pool, const char *path, prony_error *error);
/* true: a folder of that name exists. */
bool prn_is_folder(const char *path);

#endif
