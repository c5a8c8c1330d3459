/* Counts every call of malloc and its relatives in the process, libraries included, and passes it on to the GNU C
 * library. Linked into the command and the tests, never into the library; sanitizers have their own hooks, so this file
 * is then empty. Must not allocate, and must work before any constructor has run. */
#include "prony.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)
#include <errno.h>
#include <stdatomic.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

#define VISIBLE __attribute__((visibility("default")))

static _Atomic uint64_t calls;

static void heap_hooks_count(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

static uint64_t calls_so_far(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

__attribute__((constructor)) static void install(void)
{
    prony_heap_hook_install(calls_so_far);
}

VISIBLE void *malloc(size_t size)
{
    heap_hooks_count();
    return __libc_malloc(size);
}

VISIBLE void *calloc(size_t number, size_t size)
{
    heap_hooks_count();
    return __libc_calloc(number, size);
}

VISIBLE void *realloc(void *block, size_t size)
{
    heap_hooks_count();
    return __libc_realloc(block, size);
}

VISIBLE void free(void *block)
{
    if (block) heap_hooks_count();
    __libc_free(block);
}

VISIBLE void *memalign(size_t alignment, size_t size)
{
    heap_hooks_count();
    return __libc_memalign(alignment, size);
}

VISIBLE void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

VISIBLE int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
    void *block = memalign(alignment, size);
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}
#endif
