/* The arena's two regions: one aligned block for the plan's buffers, and chunks for values sized at run time.
 *
 * A chunk is cut into blocks without holes; each block starts with a 64-byte header and knows its neighbours:
 *
 *   chunk | head | starts | block: 64-byte header | payload, multiple of 64 | header | payload | ... |
 *
 * `starts` has one bit per 64 bytes, set where a live block's payload begins. So the test for a block's pointer never
 * reads memory that a model can write.
 *
 * `given_bytes` is a whole block, header included. Free blocks form one list over all chunks, in order of size and then
 * of offset, so the first that is large enough is the best fit, the last is the largest, and neither addresses nor the
 * heap influence the choice. Two free blocks are never neighbours.
 *
 * The arena owns chunks and the event list. Taking a block reserves room for its release in the event list, so
 * releasing allocates nothing and cannot fail. */
#include "engine/memory/arena.h"

#include "base/memory/alloc.h"
#include "base/memory/budget.h"
#include "base/memory/poison.h"
#include "base/os/clock.h"
#include "base/shape.h"

#include <pthread.h>
#include <stdalign.h>
#include <string.h>

#define SMALLEST_CHUNK ((uint64_t)256 << 10)
#define TRIMMED_BYTES ((uint64_t)1 << 20)       /* smaller blocks are not worth a system call; not measured */
#define ADDRESS_SPACE_BYTES (UINT64_C(1) << 47) /* largest address space of a process */

typedef struct block block;
struct block {
    alignas(PRN_ARENA_ALIGNMENT) uint64_t bytes; /* header included */
    uint64_t asked;
    uint64_t offset;       /* in the arena */
    block *before, *after; /* neighbours in the chunk */
    union {
        struct {
            block *smaller, *larger; /* free list */
        };
        uint64_t filled; /* live: what its taker noted */
    };
    uint32_t owner;
    uint32_t live; /* holders; 0: free */
};
_Static_assert(sizeof(block) == PRN_ARENA_ALIGNMENT, "a block's header takes one cache line");

typedef struct chunk {
    alignas(PRN_ARENA_ALIGNMENT) struct chunk *older;
    block *first;
    uint64_t bytes; /* of all blocks */
    uint8_t starts[];
} chunk;

struct prn_arena {
    uint8_t *base;
    chunk *newest;
    block *smallest, *largest; /* ends of the free list */
    uint64_t free_bytes;
    size_t live_count;
    prn_arena_figures figures;
    bool record, fill_dead;
    prn_arena_event *events;
    size_t event_count, event_capacity;
    bool shared_out; /* used by several threads; `turn` is their lock */
    pthread_mutex_t turn;
};

const char *prn_arena_tag_name(prn_arena_tag tag)
{
    static const char *const names[] = {"activation", "scratch", "dynamic"};
    return (size_t)tag < sizeof names / sizeof names[0] ? names[tag] : "unknown";
}

prony_status prn_arena_create(prn_arena **out, uint64_t planned_bytes, bool record, prony_error *error)
{
    *out = NULL;
    prn_arena *arena = prn_calloc(1, sizeof *arena);
    if (!arena) return prn_no_memory(error);
    arena->base = planned_bytes <= SIZE_MAX ? prn_alloc_aligned(PRN_ARENA_ALIGNMENT, (size_t)planned_bytes) : NULL;
    if (!arena->base) {
        prony_status status = prn_no_memory(error);
        prn_error_prefix(error, "the plan's arena");
        prn_free(arena);
        return status;
    }
    arena->record = record;
    arena->figures.planned_bytes = planned_bytes;
    *out = arena;
    return PRONY_OK;
}

void prn_arena_release(prn_arena *arena)
{
    if (!arena) return;
    for (chunk *c = arena->newest; c;) {
        chunk *older = c->older;
        prn_free_aligned(c);
        c = older;
    }
    if (arena->shared_out) pthread_mutex_destroy(&arena->turn);
    prn_free_aligned(arena->base);
    prn_free(arena->events);
    prn_free(arena);
}

prony_status prn_arena_share_out(prn_arena *arena, prony_error *error)
{
    if (arena->shared_out) return PRONY_OK;
    if (pthread_mutex_init(&arena->turn, NULL) != 0) return prn_no_memory(error);
    arena->shared_out = true;
    return PRONY_OK;
}

void prn_arena_lock(prn_arena *arena)
{
    if (arena->shared_out) pthread_mutex_lock(&arena->turn);
}

void prn_arena_unlock(prn_arena *arena)
{
    if (arena->shared_out) pthread_mutex_unlock(&arena->turn);
}

void prn_arena_fill_unused(prn_arena *arena)
{
    arena->fill_dead = true;
}

uint8_t *prn_arena_base(prn_arena *arena)
{
    return arena->base;
}

static bool arena_goes_before(const block *a, const block *b)
{
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->offset < b->offset;
}

static void free_list_insert(prn_arena *arena, block *b)
{
    block *larger = arena->smallest;
    while (larger && arena_goes_before(larger, b)) larger = larger->larger;
    b->larger = larger;
    b->smaller = larger ? larger->smaller : arena->largest;
    *(b->smaller ? &b->smaller->larger : &arena->smallest) = b;
    *(larger ? &larger->smaller : &arena->largest) = b;
    arena->free_bytes += b->bytes;
}

static void free_list_remove(prn_arena *arena, block *b)
{
    *(b->smaller ? &b->smaller->larger : &arena->smallest) = b->larger;
    *(b->larger ? &b->larger->smaller : &arena->largest) = b->smaller;
    b->smaller = b->larger = NULL;
    arena->free_bytes -= b->bytes;
}

static void note_fragmentation(prn_arena *arena)
{
    if (arena->free_bytes == 0) return;
    double now = 1.0 - (double)arena->largest->bytes / (double)arena->free_bytes;
    if (now > arena->figures.external_fragmentation) arena->figures.external_fragmentation = now;
}

static uint64_t head_bytes(uint64_t chunk_bytes)
{
    return (sizeof(chunk) + chunk_bytes / (8 * PRN_ARENA_ALIGNMENT) + PRN_ARENA_ALIGNMENT) &
           ~(uint64_t)(PRN_ARENA_ALIGNMENT - 1);
}

/* Grows by half of the present size, so that a model with slowly growing needs stops growing after a few runs. Close to
 * the memory limit it takes only the needed bytes. */
static prony_status add_chunk(prn_arena *arena, uint64_t need, prony_error *error)
{
    if (need > ADDRESS_SPACE_BYTES)
        return prn_fail(error, PRONY_LIMIT, "%llu bytes at run time exceed the address space",
                        (unsigned long long)need);
    uint64_t held = arena->figures.planned_bytes + arena->figures.dynamic_bytes;
    uint64_t wanted = arena->figures.dynamic_bytes / 2 & ~(uint64_t)(PRN_ARENA_ALIGNMENT - 1), room = prn_budget_room();
    if (wanted < SMALLEST_CHUNK) wanted = SMALLEST_CHUNK;
    if (wanted < need || wanted + head_bytes(wanted) + 2 * PRN_ARENA_ALIGNMENT > room) wanted = need;
    uint64_t head = head_bytes(wanted);
    chunk *c = prn_alloc_aligned(PRN_ARENA_ALIGNMENT, (size_t)(head + wanted));
    if (!c) {
        prony_status status = prn_no_memory(error);
        prn_error_prefix(error, "%llu bytes at run time", (unsigned long long)need);
        return status;
    }
    block *b = (block *)((uint8_t *)c + head);
    *b = (block){.bytes = wanted, .offset = held};
    c->older = arena->newest;
    c->first = b;
    c->bytes = wanted;
    memset(c->starts, 0, (size_t)(wanted / (8 * PRN_ARENA_ALIGNMENT) + 1));
    arena->newest = c;
    arena->figures.dynamic_bytes += wanted;
    arena->figures.growths++;
    free_list_insert(arena, b);
    return PRONY_OK;
}

/* The chunk that contains this address, and the index of the address's 64-byte line; NULL: not in the arena. */
static chunk *chunk_around(const prn_arena *arena, const void *payload, uint64_t *line)
{
    for (chunk *c = arena->newest; c; c = c->older) {
        uintptr_t distance = (uintptr_t)payload - (uintptr_t)c->first;
        if ((uintptr_t)payload < (uintptr_t)c->first || distance >= c->bytes) continue;
        *line = distance / PRN_ARENA_ALIGNMENT;
        return distance % PRN_ARENA_ALIGNMENT ? NULL : c;
    }
    return NULL;
}

static void mark_start(const prn_arena *arena, const block *b, bool live)
{
    uint64_t line = 0;
    chunk *c = chunk_around(arena, b + 1, &line);
    if (live)
        c->starts[line / 8] |= (uint8_t)(1u << line % 8);
    else
        c->starts[line / 8] &= (uint8_t)~(1u << line % 8);
}

static block *arena_block_of(const prn_arena *arena, const void *payload)
{
    uint64_t line = 0;
    const chunk *c = chunk_around(arena, payload, &line);
    return c && (c->starts[line / 8] >> line % 8 & 1) ? (block *)(uintptr_t)payload - 1 : NULL;
}

/* Leaves the rest as a free block if a header and one line of payload fit into it. */
static void arena_cut(prn_arena *arena, block *b, uint64_t need)
{
    if (b->bytes - need < sizeof(block) + PRN_ARENA_ALIGNMENT) return;
    block *rest = (block *)((uint8_t *)b + need);
    if (arena->fill_dead) prn_bytes_unpoison(rest, sizeof *rest);
    *rest = (block){.bytes = b->bytes - need, .offset = b->offset + need, .before = b, .after = b->after};
    if (b->after) b->after->before = rest;
    b->after = rest;
    b->bytes = need;
    free_list_insert(arena, rest);
}

static void record_event(prn_arena *arena, const block *b, bool release, uint32_t step)
{
    if (!arena->record) return;
    arena->events[arena->event_count++] = (prn_arena_event){.release = release,
                                                            .owner = b->owner,
                                                            .tag = PRN_TAG_DYNAMIC,
                                                            .asked_bytes = b->asked,
                                                            .given_bytes = b->bytes,
                                                            .offset_bytes = b->offset,
                                                            .step = step,
                                                            .time_ns = prn_now_ns()};
}

/* Takes the best fit, grows the region if nothing fits, and cuts off the rest. Reserves the event of the release. */
prony_status prn_arena_take(prn_arena *arena, uint64_t bytes, uint32_t owner, uint32_t step, void **out,
                            prony_error *error)
{
    *out = NULL;
    uint64_t need;
    if (!prn_add_u64(&need, bytes ? bytes : 1, sizeof(block) + PRN_ARENA_ALIGNMENT - 1) || need > INT64_MAX)
        return prn_fail(error, PRONY_LIMIT, "the arena cannot provide %llu bytes at run time",
                        (unsigned long long)bytes);
    need &= ~(uint64_t)(PRN_ARENA_ALIGNMENT - 1);
    if (arena->record && !PRN_GROW(arena->events, arena->event_capacity, arena->event_count + arena->live_count + 2))
        return prn_no_memory(error);
    if (!arena->largest || arena->largest->bytes < need) PRN_TRY(add_chunk(arena, need, error));
    block *b = arena->smallest;
    while (b->bytes < need) b = b->larger;
    free_list_remove(arena, b);
    arena_cut(arena, b, need);
    b->asked = bytes;
    b->owner = owner;
    b->live = 1;
    b->filled = 0;
    mark_start(arena, b, true);
    arena->live_count++;
    prn_arena_figures *f = &arena->figures;
    f->live_bytes += b->bytes;
    if (f->live_bytes > f->peak_live_bytes) f->peak_live_bytes = f->live_bytes;
    f->allocations++;
    f->asked_bytes += bytes;
    f->given_bytes += b->bytes;
    note_fragmentation(arena);
    record_event(arena, b, false, step);
    if (arena->fill_dead) prn_bytes_unpoison(b + 1, (size_t)bytes);
    *out = b + 1;
    return PRONY_OK;
}

/* Merges `left` with its right neighbour; neither is in the free list. */
static block *arena_merge(block *left)
{
    block *right = left->after;
    left->bytes += right->bytes;
    left->after = right->after;
    if (left->after) left->after->before = left;
    return left;
}

static void give_block(prn_arena *arena, block *b, uint32_t step)
{
    record_event(arena, b, true, step);
    if (arena->fill_dead) prn_bytes_poison(b + 1, (size_t)(b->bytes - sizeof *b));
    b->live = 0;
    mark_start(arena, b, false);
    arena->live_count--;
    arena->figures.live_bytes -= b->bytes;
    arena->figures.releases++;
    if (b->after && !b->after->live) {
        free_list_remove(arena, b->after);
        arena_merge(b);
    }
    if (b->before && !b->before->live) {
        free_list_remove(arena, b->before);
        b = arena_merge(b->before);
    }
    free_list_insert(arena, b);
    note_fragmentation(arena);
}

void prn_arena_give(prn_arena *arena, void *payload, uint32_t step)
{
    block *b = payload ? (block *)payload - 1 : NULL;
    if (b && b->live > 1)
        b->live--;
    else if (b)
        give_block(arena, b, step);
}

bool prn_arena_share(prn_arena *arena, const void *payload)
{
    block *b = arena_block_of(arena, payload);
    if (!b || b->live == UINT32_MAX) return false;
    b->live++;
    return true;
}

uint32_t prn_arena_holders(const prn_arena *arena, const void *payload)
{
    const block *b = arena_block_of(arena, payload);
    return b ? b->live : 0;
}

uint64_t prn_arena_room(const prn_arena *arena, const void *payload, uint64_t *filled)
{
    const block *b = arena_block_of(arena, payload);
    *filled = b ? b->filled : 0;
    return b ? b->asked : 0;
}

void prn_arena_note(prn_arena *arena, const void *payload, uint64_t filled)
{
    block *b = arena_block_of(arena, payload);
    if (b) b->filled = filled;
}

void prn_arena_trim(prn_arena *arena)
{
    for (block *b = arena->largest; b && b->bytes >= TRIMMED_BYTES && !arena->fill_dead; b = b->smaller)
        prn_bytes_forget(b + 1, (size_t)(b->bytes - sizeof *b));
}

void prn_arena_run_begin(prn_arena *arena)
{
    prn_arena_figures *f = &arena->figures;
    f->allocations = f->releases = f->asked_bytes = f->given_bytes = 0;
    f->peak_live_bytes = f->live_bytes;
    f->external_fragmentation = 0;
    arena->event_count = 0;
}

uint64_t prn_arena_run_end(prn_arena *arena)
{
    uint64_t left = arena->figures.live_bytes;
    while (arena->live_count > 0)
        for (chunk *c = arena->newest; c; c = c->older) {
            block *b = c->first;
            while (b && !b->live) b = b->after;
            if (b) give_block(arena, b, UINT32_MAX);
        }
    return left;
}

void prn_arena_read(const prn_arena *arena, prn_arena_figures *figures)
{
    *figures = arena->figures;
}

const prn_arena_event *prn_arena_events(const prn_arena *arena, size_t *count)
{
    *count = arena->event_count;
    return arena->events;
}
