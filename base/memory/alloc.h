/* The only way to the heap for Prony's own code. Thread-safe. Every function that allocates returns NULL on failure, on
 * size overflow, or if the calling thread's budget (base/memory/budget.h) has no room. Tests can make the n-th call
 * fail. */
#ifndef PRN_BASE_MEMORY_ALLOC_H
#define PRN_BASE_MEMORY_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *prn_alloc(size_t bytes);
void *prn_calloc(size_t count, size_t size);
/* As realloc for count * size bytes; the old block stays valid on failure. */
void *prn_realloc(void *block, size_t count, size_t size);
void prn_free(void *block);
char *prn_strdup(const char *text);
char *prn_strndup(const char *text, size_t size);

/* `alignment` is a power of two >= sizeof(void *); contents undefined; released by prn_free_aligned. */
void *prn_alloc_aligned(size_t alignment, size_t bytes);
void prn_free_aligned(void *block);
/* Returns whole pages among these bytes to the system until they are written again; the contents are undefined
 * afterwards. */
void prn_bytes_forget(void *bytes, size_t count);
/* A pointer for zero bytes. Arithmetic with it is defined, unlike with a null pointer (C17 6.5.6). It is 64-byte
 * aligned, has no owner and must not be written. */
void *prn_no_bytes(void);

/* Makes room for at least `need` elements in a growing array; doubles. false: out of memory, array unchanged. */
bool prn_grow(void **array, size_t *capacity, size_t need, size_t element_size);
#define PRN_GROW(array, capacity, need) prn_grow((void **)&(array), &(capacity), (need), sizeof *(array))

/* The n-th allocation from now (1-based) fails, once; 0 switches off. Process-wide; tests only. */
void prn_alloc_fail_at(uint64_t n);
/* true: the requested failure has happened. */
bool prn_alloc_failed(void);
/* For other allocators: true if a request of this size must fail, by its size or by prn_alloc_fail_at. */
bool prn_alloc_refused(size_t bytes);
/* Calls into this file that reached the heap since the process started (allocations and releases). */
uint64_t prn_heap_calls(void);

/* Blocks that were released and wait to be taken again, so that work which repeats makes no heap calls. They stay
 * charged to their budget. Zero-initialise it. */
enum { PRN_SPARE_CLASSES = 15 }; /* of 64 bytes to 1 MiB; larger blocks do not wait */
typedef struct prn_spare_blocks {
    void *first[2][PRN_SPARE_CLASSES]; /* plain ones, and those aligned to 64 bytes */
    uint32_t filled[2];                /* bits of classes that have a block */
    size_t bytes;
} prn_spare_blocks;
/* The calling thread's releases go to `spare` and its allocations come from there if a block fits; NULL: to the heap.
 * Returns the former one. A `spare` belongs to one thread at a time. */
prn_spare_blocks *prn_spare_blocks_enter(prn_spare_blocks *spare);
/* Gives its blocks to the heap. No thread may be in it. */
void prn_spare_blocks_release(prn_spare_blocks *spare);

/* Bump allocator for many small objects with one lifetime (names, nodes, dims). Not thread-safe. Zero-initialise it. */
typedef struct prn_bump {
    struct prn_bump_block *block;
    size_t bytes; /* of its blocks */
} prn_bump;
/* Zeroed; aligned for objects of `size` bytes, bytes (size 1) to 16. */
void *prn_bump_alloc(prn_bump *pool, size_t count, size_t size);
char *prn_bump_strndup(prn_bump *pool, const char *text, size_t size);
char *prn_bump_printf(prn_bump *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void prn_bump_release(prn_bump *pool);

#endif
