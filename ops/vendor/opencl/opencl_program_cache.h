/* Compiled programs, kept in the user's cache folder from one process to the next: $XDG_CACHE_HOME/prony/opencl or
 * ~/.cache/prony/opencl, a file per program. The files are not trusted: a damaged or foreign one counts as missing. No
 * failure here is an error; the program is then compiled. PRONY_DEVICE_CACHE=off keeps and loads nothing. */
#ifndef PRN_OPS_VENDOR_OPENCL_PROGRAM_CACHE_H
#define PRN_OPS_VENDOR_OPENCL_PROGRAM_CACHE_H

#include "ops/vendor/opencl/opencl_device.h"

enum { PRN_OPENCL_KEY_BYTES = 65 };

/* All that decides the binary: the source's texts, the compiler's options, device, driver and platform. */
typedef struct opencl_recipe {
    const char *const *texts;
    const size_t *sizes;
    size_t count;
    const char *options;
    char key[PRN_OPENCL_KEY_BYTES]; /* SHA-256 of the rest; "": nothing is kept */
} opencl_recipe;

/* Fills recipe->key. */
void prn_opencl_program_cache_key(opencl_recipe *recipe, const prn_device *device);
/* The program of the recipe, built for the device; the caller owns it. NULL: none is kept. */
cl_program prn_opencl_program_cache_load(const prn_device *device, const opencl_recipe *recipe);
/* Keeps the program that was built from the source. If all files exceed `most` bytes, those that were used the longest ago
 * are removed. */
void prn_opencl_program_cache_keep(const opencl_recipe *recipe, cl_program program, uint64_t most);
#define PRN_OPENCL_PROGRAM_CACHE_BYTES (UINT64_C(256) << 20)

#endif
