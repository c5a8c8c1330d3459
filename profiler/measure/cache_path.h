/* Names and checks of the files that keep measurements (base/os/cache_folder.h). */
#ifndef PRN_PROFILER_MEASURE_CACHE_PATH_H
#define PRN_PROFILER_MEASURE_CACHE_PATH_H

#include "base/os/cache_folder.h"
#include "profiler/json/json_read.h"

/* Letters and digits of `text`, everything between them as one '-'. */
void prn_cache_slug(char *out, size_t size, const char *text);
/* Checks that a file's key has the value by which the file is looked up. */
void prn_cache_read_same(prn_json_reader *reader, const prn_json_value *root, const char *key, const char *wanted);

#endif
