/* Kinds of resident memory of this process. */
#ifndef PRN_BASE_OS_RESIDENT_H
#define PRN_BASE_OS_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that are in memory now. */
typedef struct prn_resident {
    uint64_t library_bytes;   /* pages of the program and of shared libraries, their variables included */
    uint64_t mapped_bytes;    /* pages of other files: models, external data */
    uint64_t anonymous_bytes; /* heap, stacks */
} prn_resident;

/* From /proc/self/smaps; a few milliseconds. false: it cannot be read. */
bool prn_resident_read(prn_resident *out);

#endif
