/* The folder of this user in which Prony keeps what is expensive to make again: measurements, compiled programs. */
#ifndef PRN_BASE_OS_CACHE_FOLDER_H
#define PRN_BASE_OS_CACHE_FOLDER_H

#include "base/status.h"

/* $XDG_CACHE_HOME/prony if that is an absolute path, as the specification requires; else ~/.cache/prony. */
PRN_MUST_USE prony_status prn_cache_folder(char *path, size_t size, prony_error *error);
/* Creates the folders of the file. `path` is changed meanwhile and restored unless the call fails. */
PRN_MUST_USE prony_status prn_cache_make_folders(char *path, prony_error *error);

#endif
