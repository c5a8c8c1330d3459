/* The folder where this machine's measurements are kept, and names of files in it. */
#ifndef PRN_PROFILER_MEASURE_CACHE_PATH_H
#define PRN_PROFILER_MEASURE_CACHE_PATH_H

#include "profiler/json/json_read.h"

/* $XDG_CACHE_HOME/prony if that is an absolute path, as the specification requires; else ~/.cache/prony. */
PRN_MUST_USE prony_status prn_cache_folder(char *path, size_t size, prony_error *error);
/* Creates the folders of the file. `path` is changed meanwhile and restored unless the call fails. */
PRN_MUST_USE prony_status prn_cache_make_folders(char *path, prony_error *error);
/* Letters and digits of `text`, everything between them as one '-'. */
void prn_cache_slug(char *out, size_t size, const char *text);
/* Checks that a file's key has the value by which the file is looked up. */
void prn_cache_read_same(prn_json_reader *reader, const prn_json_value *root, const char *key, const char *wanted);

#endif
