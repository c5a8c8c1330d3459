#include "base/memory/poison.h"

#include <string.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define POISON_IS_REPORTED 1
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define POISON_IS_REPORTED 0
#endif

enum { PATTERN = 0xff };

void prn_bytes_unpoison(void *bytes, size_t count)
{
    ASAN_UNPOISON_MEMORY_REGION(bytes, count);
}

void prn_bytes_poison(void *bytes, size_t count)
{
    prn_bytes_unpoison(bytes, count);
    if (count) memset(bytes, PATTERN, count);
    ASAN_POISON_MEMORY_REGION(bytes, count);
}

void prn_bytes_forbid(void *bytes, size_t count)
{
    if (POISON_IS_REPORTED) prn_bytes_poison(bytes, count);
}
