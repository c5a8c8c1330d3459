/* Kernel times measured by sessions, kept in the user's cache folder. */
#ifndef PRN_PROFILER_MEASURE_TUNE_FILE_H
#define PRN_PROFILER_MEASURE_TUNE_FILE_H

struct prn_tune_files;
extern const struct prn_tune_files prn_tune_cache;

#endif
