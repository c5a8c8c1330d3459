/* UTF-8, as far as writers need it. Pure. */
#ifndef PRN_PROFILER_TEXT_UTF8_H
#define PRN_PROFILER_TEXT_UTF8_H

#include <stddef.h>

/* Bytes of the valid sequence at `text` (zero-terminated); 0: not valid. Rejects overlong forms and surrogates.
 */
size_t prn_utf8_sequence(const char *text);
/* Bytes of the valid sequence at `text`, or 1: the bytes that one '?' replaces. */
size_t prn_utf8_skip(const char *text);
/* Characters in `text`; a byte that starts no valid sequence counts as one. */
size_t prn_utf8_length(const char *text);

#endif
