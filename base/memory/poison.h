/* Bytes that nobody may touch: they hold a pattern, and a build with the address sanitizer refuses them. */
#ifndef PRN_BASE_MEMORY_POISON_H
#define PRN_BASE_MEMORY_POISON_H

#include <stddef.h>

/* Bytes that are nobody's, or somebody's again. */
void prn_bytes_poison(void *bytes, size_t count);
void prn_bytes_unpoison(void *bytes, size_t count);

#endif
