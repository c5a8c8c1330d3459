/* Marks bytes that must not be accessed: they hold a pattern, and builds with the address sanitizer report access to
 * them. */
#ifndef PRN_BASE_MEMORY_POISON_H
#define PRN_BASE_MEMORY_POISON_H

#include <stddef.h>

/* Marks bytes as unused, or as used again. */
void prn_bytes_poison(void *bytes, size_t count);
void prn_bytes_unpoison(void *bytes, size_t count);
/* As prn_bytes_poison in builds with the address sanitizer; does nothing in others. */
void prn_bytes_forbid(void *bytes, size_t count);

#endif
