/* The heap. Every block comes from the C library; a request for no bytes still gives a block, so that NULL always means
 * failure. The counters are relaxed atomics: they order nothing, they only count. */
#include "base/memory/alloc.h"

#include "base/memory/budget.h"
#include "base/memory/poison.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static _Atomic uint64_t heap_calls;
static _Atomic uint64_t fail_countdown; /* 0: off */
static _Atomic bool fail_happened;

static bool must_fail(void)
{
    uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    do {
        if (left == 0) return false;
    } while (!atomic_compare_exchange_weak(&fail_countdown, &left, left - 1));
    if (left > 1) return false;
    atomic_store(&fail_happened, true);
    return true;
}

static void count_call(void)
{
    atomic_fetch_add_explicit(&heap_calls, 1, memory_order_relaxed);
}

void prn_alloc_fail_at(uint64_t n)
{
    atomic_store(&fail_happened, false);
    atomic_store(&fail_countdown, n);
}

bool prn_alloc_failed(void)
{
    return atomic_load(&fail_happened);
}

uint64_t prn_heap_calls(void)
{
    return atomic_load_explicit(&heap_calls, memory_order_relaxed);
}

/* In front of every block, so that its release finds its budget:
 *
 *   from the C library | room for the alignment | header | the caller's bytes
 *
 * The room is 2^shift bytes, header included. */
typedef struct header {
    prn_budget *budget;
    uint64_t size_shift; /* charged bytes << 8 | shift */
} header;

#define PLAIN_SHIFT 4
#define LARGEST_BYTES ((size_t)1 << 55)
_Static_assert(sizeof(header) == 1 << PLAIN_SHIFT, "a header keeps the alignment of malloc");

static header *header_of(void *block)
{
    return (header *)block - 1;
}

static size_t booked_bytes(const header *h)
{
    return (size_t)(h->size_shift >> 8);
}

static void *raw_block(void *block)
{
    return (char *)block - ((size_t)1 << (header_of(block)->size_shift & 255));
}

/* Makes the header; NULL from the C library takes the charge back. */
static void *make_block(void *raw, prn_budget *budget, size_t bytes, unsigned shift)
{
    if (!raw) {
        prn_budget_unbook(budget, bytes);
        return NULL;
    }
    void *block = (char *)raw + ((size_t)1 << shift);
    *header_of(block) = (header){budget, (uint64_t)bytes << 8 | shift};
    return block;
}

bool prn_alloc_refused(size_t bytes)
{
    return bytes > LARGEST_BYTES || must_fail();
}

static bool alloc_may_take(size_t bytes)
{
    return bytes <= LARGEST_BYTES && !must_fail();
}

/* ---- blocks that wait */

/* All spare blocks of a thread, at most; chosen without measurement. */
#define SPARE_LARGEST_BYTES ((size_t)4 << 20)
enum { SPARE_FIRST_SHIFT = 6 };

static _Thread_local prn_spare_blocks *spare_current;

/* The class of blocks of this many charged bytes; PRN_SPARE_CLASSES: they do not wait. */
static unsigned spare_class(size_t bytes)
{
    unsigned k = 0;
    while (k < PRN_SPARE_CLASSES && (size_t)1 << (k + SPARE_FIRST_SHIFT) < bytes) k++;
    return k;
}

/* Charged bytes that the calling thread takes for a block of `bytes`: those of its class, so that it can wait. */
static size_t spare_round(size_t bytes)
{
    const unsigned k = spare_current ? spare_class(bytes) : PRN_SPARE_CLASSES;
    return k < PRN_SPARE_CLASSES ? (size_t)1 << (k + SPARE_FIRST_SHIFT) : bytes;
}

/* The row of `first` for blocks of this shift; -1: they do not wait. */
static int spare_row(unsigned shift)
{
    return shift == PLAIN_SHIFT ? 0 : shift == SPARE_FIRST_SHIFT ? 1 : -1;
}

/* A block of at least `bytes` charged bytes; NULL: the heap's turn. */
static void *spare_take(size_t bytes, unsigned shift)
{
    prn_spare_blocks *spare = spare_current;
    const int row = spare_row(shift);
    const unsigned k = spare_class(bytes);
    if (!spare || row < 0 || k == PRN_SPARE_CLASSES || !(spare->filled[row] >> k)) return NULL;
    const unsigned at = k + (unsigned)__builtin_ctz(spare->filled[row] >> k);
    void *block = spare->first[row][at];
    const header *h = header_of(block);
    if (h->budget != prn_budget_current()) return NULL;
    prn_bytes_unpoison(block, booked_bytes(h) - ((size_t)1 << shift));
    memcpy(&spare->first[row][at], block, sizeof block);
    if (!spare->first[row][at]) spare->filled[row] &= ~(UINT32_C(1) << at);
    spare->bytes -= booked_bytes(h);
    return block;
}

/* true: the block waits; its bytes hold the next one's address and may not be read meanwhile. */
static bool spare_put(void *block)
{
    prn_spare_blocks *spare = spare_current;
    const header *h = header_of(block);
    const unsigned shift = h->size_shift & 255;
    const size_t bytes = booked_bytes(h);
    const int row = spare ? spare_row(shift) : -1;
    const unsigned k = row < 0 ? PRN_SPARE_CLASSES : spare_class(bytes);
    if (k == PRN_SPARE_CLASSES || bytes != (size_t)1 << (k + SPARE_FIRST_SHIFT) ||
        bytes < ((size_t)1 << shift) + sizeof block || bytes > SPARE_LARGEST_BYTES - spare->bytes)
        return false;
    memcpy(block, &spare->first[row][k], sizeof block);
    spare->first[row][k] = block;
    spare->filled[row] |= UINT32_C(1) << k;
    spare->bytes += bytes;
    prn_bytes_forbid((char *)block + sizeof block, bytes - ((size_t)1 << shift) - sizeof block);
    return true;
}

prn_spare_blocks *prn_spare_blocks_enter(prn_spare_blocks *spare)
{
    prn_spare_blocks *former = spare_current;
    spare_current = spare;
    return former;
}

void prn_spare_blocks_release(prn_spare_blocks *spare)
{
    for (unsigned row = 0; row < 2; row++)
        for (unsigned k = 0; k < PRN_SPARE_CLASSES; k++)
            while (spare->first[row][k]) {
                void *block = spare->first[row][k];
                memcpy(&spare->first[row][k], block, sizeof block);
                prn_bytes_unpoison(block, booked_bytes(header_of(block)) -
                                              ((size_t)1 << (row ? SPARE_FIRST_SHIFT : PLAIN_SHIFT)));
                prn_free(block);
            }
    *spare = (prn_spare_blocks){0};
}

/* ---- the heap */

void *prn_alloc(size_t bytes)
{
    if (!alloc_may_take(bytes)) return NULL;
    void *spare = spare_take(bytes + sizeof(header), PLAIN_SHIFT);
    if (spare) return spare;
    prn_budget *budget = prn_budget_current();
    bytes = spare_round(bytes + sizeof(header));
    if (!prn_budget_book(budget, bytes)) return NULL;
    count_call();
    return make_block(malloc(bytes), budget, bytes, PLAIN_SHIFT);
}

void *prn_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !alloc_may_take(bytes)) return NULL;
    void *spare = spare_take(bytes + sizeof(header), PLAIN_SHIFT);
    if (spare) return memset(spare, 0, bytes);
    prn_budget *budget = prn_budget_current();
    bytes = spare_round(bytes + sizeof(header));
    if (!prn_budget_book(budget, bytes)) return NULL;
    count_call();
    return make_block(calloc(1, bytes), budget, bytes, PLAIN_SHIFT);
}

void *prn_realloc(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    if (!block) return prn_alloc(bytes);
    if (!alloc_may_take(bytes)) return NULL;
    const header former = *header_of(block);
    size_t held = booked_bytes(&former);
    bytes = spare_round(bytes + sizeof(header));
    if (spare_current && bytes == held) return block;
    if (bytes > held && !prn_budget_book_more(former.budget, bytes - held)) return NULL;
    count_call();
    void *raw = realloc(raw_block(block), bytes);
    if (!raw) {
        if (bytes > held) prn_budget_return(former.budget, bytes - held);
        return NULL;
    }
    if (bytes < held) prn_budget_return(former.budget, held - bytes);
    return make_block(raw, former.budget, bytes, PLAIN_SHIFT);
}

void prn_free(void *block)
{
    if (!block || spare_put(block)) return;
    const header h = *header_of(block);
    void *raw = raw_block(block);
    count_call();
    free(raw);
    prn_budget_unbook(h.budget, booked_bytes(&h));
}

char *prn_strndup(const char *text, size_t size)
{
    char *copy = size < PTRDIFF_MAX ? prn_alloc(size + 1) : NULL;
    if (!copy) return NULL;
    if (size) memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

char *prn_strdup(const char *text)
{
    return prn_strndup(text, strlen(text));
}

/* Weights and activations are read with strides over many pages; huge pages reduce their number. Only whole huge pages
 * of the block are requested, so none is partly unused. */
static void *alloc_huge(size_t bytes)
{
    void *block; /* aligned_alloc wants whole multiples */
    if (posix_memalign(&block, HUGE_PAGE_BYTES, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(block, bytes & ~(HUGE_PAGE_BYTES - 1), MADV_HUGEPAGE);
#endif
    return block;
}

void *prn_alloc_aligned(size_t alignment, size_t bytes)
{
    if (alignment > LARGEST_BYTES || !alloc_may_take(bytes)) return NULL;
    if (alignment < sizeof(header)) alignment = sizeof(header);
    const unsigned shift = (unsigned)__builtin_ctzll(alignment);
    void *spare = spare_take((bytes + 2 * alignment - 1) & ~(alignment - 1), shift);
    if (spare) return spare;
    prn_budget *budget = prn_budget_current();
    size_t whole = (bytes + 2 * alignment - 1) & ~(alignment - 1);
    if (spare_row(shift) >= 0) whole = spare_round(whole);
    if (!prn_budget_book(budget, whole)) return NULL;
    count_call();
    bool huge = whole >= HUGE_PAGE_BYTES && alignment <= HUGE_PAGE_BYTES;
    void *raw = huge ? alloc_huge(whole) : aligned_alloc(alignment, whole);
    return make_block(raw, budget, whole, shift);
}

void prn_free_aligned(void *block)
{
    prn_free(block);
}

void prn_bytes_forget(void *bytes, size_t count)
{
#ifdef MADV_DONTNEED
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)bytes + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)bytes + count) & ~(page - 1);
    if (first < end) (void)madvise((void *)first, end - first, MADV_DONTNEED);
#else
    (void)bytes;
    (void)count;
#endif
}

void *prn_no_bytes(void)
{
    static const _Alignas(64) char nothing[64];
    return (void *)(uintptr_t)nothing;
}

bool prn_grow(void **array, size_t *capacity, size_t need, size_t element_size)
{
    if (need <= *capacity) return true;
    size_t wanted = *capacity > SIZE_MAX / 2 ? need : *capacity * 2;
    if (wanted < need) wanted = need;
    if (wanted < 8) wanted = 8;
    void *grown = prn_realloc(*array, wanted, element_size);
    if (!grown) return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

/* Blocks form a list, newest first. Objects larger than the usual block size get their own block. */
struct prn_bump_block {
    struct prn_bump_block *next;
    size_t used, capacity; /* of the bytes that follow this header */
};

enum {
    POOL_HEADER_BYTES = (sizeof(struct prn_bump_block) + 15) / 16 * 16,
    POOL_FIRST_BYTES = 4096 - POOL_HEADER_BYTES
};
/* Largest block of a pool; chosen without measurement. */
#define POOL_LARGEST_BYTES ((size_t)1 << 20)

static struct prn_bump_block *pool_block(size_t capacity, struct prn_bump_block *next)
{
    struct prn_bump_block *block = prn_calloc(1, POOL_HEADER_BYTES + capacity);
    if (!block) return NULL;
    block->next = next;
    block->capacity = capacity;
    return block;
}

/* NULL: not enough room. */
static void *pool_take(struct prn_bump_block *block, size_t bytes, size_t alignment)
{
    const size_t start = (block->used + alignment - 1) & ~(alignment - 1);
    if (start > block->capacity || bytes > block->capacity - start) return NULL;
    block->used = start + bytes;
    return (char *)block + POOL_HEADER_BYTES + start;
}

static void *pool_alloc(prn_bump *pool, size_t bytes, size_t alignment)
{
    if (bytes > PTRDIFF_MAX - 2 * POOL_HEADER_BYTES) return NULL;
    struct prn_bump_block *top = pool->block;
    void *taken = top ? pool_take(top, bytes, alignment) : NULL;
    if (taken) return taken;

    size_t usual = POOL_FIRST_BYTES;
    if (top) usual = top->capacity < POOL_LARGEST_BYTES / 2 ? top->capacity * 2 : POOL_LARGEST_BYTES;
    if (top && bytes > usual / 4) { /* is inserted below the top block, which stays in use */
        struct prn_bump_block *own = pool_block(bytes, top->next);
        if (!own) return NULL;
        top->next = own;
        pool->bytes += bytes;
        return pool_take(own, bytes, alignment);
    }
    struct prn_bump_block *fresh = pool_block(bytes > usual ? bytes : usual, top);
    if (!fresh) return NULL;
    pool->block = fresh;
    pool->bytes += fresh->capacity;
    return pool_take(fresh, bytes, alignment);
}

void *prn_bump_alloc(prn_bump *pool, size_t count, size_t size)
{
    size_t bytes, alignment = size > 1 ? size & -size : 16; /* a type's size is a multiple of its alignment */
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    return pool_alloc(pool, bytes ? bytes : 1, alignment < 16 ? alignment : 16);
}

char *prn_bump_strndup(prn_bump *pool, const char *text, size_t size)
{
    char *copy = size < PTRDIFF_MAX ? pool_alloc(pool, size + 1, 1) : NULL;
    if (copy && size) memcpy(copy, text, size);
    return copy;
}

char *prn_bump_printf(prn_bump *pool, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : pool_alloc(pool, (size_t)length + 1, 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void prn_bump_release(prn_bump *pool)
{
    for (struct prn_bump_block *block = pool->block; block;) {
        struct prn_bump_block *next = block->next;
        prn_free(block);
        block = next;
    }
    *pool = (prn_bump){0};
}
