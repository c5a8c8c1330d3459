/* One block of memory per session and plan: the planned region, and behind it the dynamic region for values sized at
 * run time. Records every allocation with its owner.
 *
 *   +---------------------- planned_bytes ---------------------+------------- dynamic -------------+
 *   | buffers at the plan's offsets                            | best fit over a free list         |
 *   +----------------------------------------------------------+-----------------------------------+
 *
 * The dynamic region grows by a chunk when it is too small (a heap call, counted) and keeps what it has; frees
 * coalesce. A block may have several holders (a tensor in two sequences); the last holder's release frees it. Live
 * dynamic bytes return to zero after every run (prn_arena_run_end checks it). Not thread-safe: one session; its workers
 * serialise by prn_arena_lock. */
#ifndef PRN_ENGINE_MEMORY_ARENA_H
#define PRN_ENGINE_MEMORY_ARENA_H

#include "base/status.h"

/* Of planned buffers, dynamic blocks and their headers: a cache line, and the vector of AVX-512. The bitmap `starts` of
 * arena.c has one bit per such unit. */
#define PRN_ARENA_ALIGNMENT 64

typedef struct prn_arena prn_arena;

typedef struct prn_arena_event {
    bool release;
    uint32_t owner; /* value id in the plan */
    uint8_t tag;    /* prn_arena_tag */
    uint64_t asked_bytes, given_bytes, offset_bytes;
    uint32_t step;
    int64_t time_ns;
} prn_arena_event;

typedef enum prn_arena_tag { PRN_TAG_ACTIVATION, PRN_TAG_SCRATCH, PRN_TAG_DYNAMIC } prn_arena_tag;
const char *prn_arena_tag_name(prn_arena_tag tag);

typedef struct prn_arena_figures {
    uint64_t planned_bytes, dynamic_bytes; /* held */
    uint64_t live_bytes, peak_live_bytes;  /* dynamic region only; planned lifetimes are the plan's */
    uint64_t allocations, releases;        /* dynamic, this run */
    uint64_t asked_bytes, given_bytes;     /* dynamic, this run */
    double external_fragmentation;         /* of the dynamic region, at its worst in this run */
    uint64_t growths;                      /* heap calls made by the dynamic region since creation */
} prn_arena_figures;

/* The bytes are charged to the calling thread's budget. */
PRN_MUST_USE prony_status prn_arena_create(prn_arena **out, uint64_t planned_bytes, bool record, prony_error *error);
void prn_arena_release(prn_arena *arena);
/* From now on several threads of one run allocate and release: between lock and unlock a thread is alone. Without this
 * call the arena has no lock, and lock and unlock do nothing. */
PRN_MUST_USE prony_status prn_arena_share_out(prn_arena *arena, prony_error *error);
void prn_arena_lock(prn_arena *arena);
void prn_arena_unlock(prn_arena *arena);
/* For tests: unused bytes of the dynamic region hold a pattern, see engine/plan/buffer_poison.h. Called before the
 * first prn_arena_take. */
void prn_arena_fill_unused(prn_arena *arena);
/* Aligned start of the planned region. */
uint8_t *prn_arena_base(prn_arena *arena);
PRN_MUST_USE prony_status prn_arena_take(prn_arena *arena, uint64_t bytes, uint32_t owner, uint32_t step, void **out,
                                         prony_error *error);
void prn_arena_give(prn_arena *arena, void *block, uint32_t step);
/* Adds a holder to the block that starts at `block`; it needs one more release. false: no live block of the dynamic
 * region starts there (a planned buffer, an input, a constant, or the middle of a block). */
PRN_MUST_USE bool prn_arena_share(prn_arena *arena, const void *block);
/* Holders of a block; 0 if no block starts there. */
uint32_t prn_arena_holders(const prn_arena *arena, const void *block);
/* Bytes asked for a block, and the fill that its holders noted (0 at first); 0 if no block starts there. */
uint64_t prn_arena_room(const prn_arena *arena, const void *block, uint64_t *filled);
void prn_arena_note(prn_arena *arena, const void *block, uint64_t filled);
/* Returns the pages of large free blocks to the system until they are allocated again. */
void prn_arena_trim(prn_arena *arena);
void prn_arena_run_begin(prn_arena *arena);
/* Releases blocks that are still live (there should be none) and returns their bytes. */
uint64_t prn_arena_run_end(prn_arena *arena);
void prn_arena_read(const prn_arena *arena, prn_arena_figures *figures);
/* Events of the last run, if recording; borrowed until the next run. */
const prn_arena_event *prn_arena_events(const prn_arena *arena, size_t *count);

#endif
