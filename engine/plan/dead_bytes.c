/* Fills and poisons what is dead. Owns nothing; a plan that does not ask for it (`fill_dead`) never comes here. */
#include "engine/plan/dead_bytes.h"
#include "engine/plan/plan.h"

#include <string.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum { PATTERN = 0xff };

void prn_bytes_wake(void *bytes, size_t count)
{
    ASAN_UNPOISON_MEMORY_REGION(bytes, count);
}

void prn_bytes_bury(void *bytes, size_t count)
{
    prn_bytes_wake(bytes, count);
    if (count) memset(bytes, PATTERN, count);
    ASAN_POISON_MEMORY_REGION(bytes, count);
}

void prn_dead_begin(const prn_plan *plan)
{
    prn_bytes_bury(plan->base, (size_t)plan->figures.planned_bytes);
}

void prn_dead_wake(const prn_plan *plan, uint32_t step)
{
    for (size_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].first == step)
            prn_bytes_wake(plan->base + plan->buffers[b].offset, (size_t)plan->buffers[b].bytes);
}

void prn_dead_bury(const prn_plan *plan, uint32_t step)
{
    for (size_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].last == step)
            prn_bytes_bury(plan->base + plan->buffers[b].offset, (size_t)plan->buffers[b].bytes);
}
