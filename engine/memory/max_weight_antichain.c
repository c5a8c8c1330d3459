/* The maximum-weight antichain of buffers (no buffer is before another). By Dilworth's theorem with weights its weight
 * is the sum of all bytes minus the maximum flow from buffers to later ones, where each gives and takes at most its
 * bytes:
 *
 *       source_left[i]    i before j    sink_left[j]
 *     s ---------------> i ----------> j -------------> t      weight = sum - maximum flow
 *
 * The flow is found by shortest augmenting paths. Owns its arrays for the length of one call. */
#include "engine/memory/memory_plan.h"

#include "base/memory/alloc.h"
#include "base/threads/cancel.h"

#include <string.h>

/* Bound on the visits of all searches, chosen without measurement; beyond it the result is unknown. */
#define MOST_VISITS ((uint64_t)1 << 28)

typedef struct flow {
    size_t count, words;
    uint64_t *later;                   /* [count][words] bit j of row i: i is before j */
    uint64_t *carried;                 /* [count][count] from i to j */
    uint64_t *source_left, *sink_left; /* [count] bytes that i can still give, and j can still take */
    uint32_t *sink_parent;             /* [count] source that reached sink j in this search */
    uint32_t *source_parent;           /* [count] which sink gave back to source i; count: i is where the path begins */
    uint64_t *unreached;               /* [words] sinks not reached yet */
    uint32_t *queue;                   /* of sources */
    bool *reached;                     /* [count] sources */
    uint64_t visits;
} flow;

static void antichain_release(flow *f)
{
    prn_free(f->later);
    prn_free(f->carried);
    prn_free(f->source_left);
    prn_free(f->sink_left);
    prn_free(f->sink_parent);
    prn_free(f->source_parent);
    prn_free(f->unreached);
    prn_free(f->queue);
    prn_free(f->reached);
}

static bool antichain_reserve(flow *f)
{
    size_t n = f->count;
    f->later = prn_calloc(n * f->words, sizeof *f->later);
    f->carried = prn_calloc(n * n, sizeof *f->carried);
    f->source_left = prn_calloc(n, sizeof *f->source_left);
    f->sink_left = prn_calloc(n, sizeof *f->sink_left);
    f->sink_parent = prn_calloc(n, sizeof *f->sink_parent);
    f->source_parent = prn_calloc(n, sizeof *f->source_parent);
    f->unreached = prn_calloc(f->words, sizeof *f->unreached);
    f->queue = prn_calloc(n, sizeof *f->queue);
    f->reached = prn_calloc(n, sizeof *f->reached);
    return f->later && f->carried && f->source_left && f->sink_left && f->sink_parent && f->source_parent &&
           f->unreached && f->queue && f->reached;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A greedy start: every source gives to the first sinks with room. Returns the flow. */
static uint64_t antichain_start_flow(flow *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->count; i++) {
        for (size_t j = 0; j < f->count && f->source_left[i]; j++) {
            if (!(f->later[i * f->words + j / 64] >> j % 64 & 1)) continue;
            uint64_t bytes = least(f->source_left[i], f->sink_left[j]);
            f->carried[i * f->count + j] = bytes;
            f->source_left[i] -= bytes;
            f->sink_left[j] -= bytes;
            sum += bytes;
        }
    }
    return sum;
}

/* Finds a sink with room, reached from sources with bytes left; count: none. */
static size_t antichain_search(flow *f)
{
    size_t head = 0, tail = 0;
    memset(f->unreached, 0xff, f->words * sizeof *f->unreached);
    for (uint32_t i = 0; i < f->count; i++) {
        f->reached[i] = f->source_left[i] > 0;
        f->source_parent[i] = (uint32_t)f->count;
        if (f->reached[i]) f->queue[tail++] = i;
    }
    while (head < tail) {
        uint32_t i = f->queue[head++];
        f->visits += f->words;
        for (size_t w = 0; w < f->words; w++) {
            for (uint64_t bits = f->later[i * f->words + w] & f->unreached[w]; bits; bits &= bits - 1) {
                size_t j = w * 64 + (size_t)__builtin_ctzll(bits);
                f->unreached[w] &= ~(bits & -bits);
                f->sink_parent[j] = i;
                if (f->sink_left[j]) return j;
                f->visits += f->count;
                for (uint32_t back = 0; back < f->count; back++) {
                    if (f->reached[back] || !f->carried[back * f->count + j]) continue;
                    f->reached[back] = true;
                    f->source_parent[back] = (uint32_t)j;
                    f->queue[tail++] = back;
                }
            }
        }
    }
    return f->count;
}

/* Moves as many bytes as the path that the search found to sink `end` has room for. Returns their number. */
static uint64_t augment_path(flow *f, size_t end)
{
    uint64_t bytes = f->sink_left[end];
    size_t j = end;
    for (;;) {
        uint32_t i = f->sink_parent[j];
        if (f->source_parent[i] == f->count) {
            bytes = least(bytes, f->source_left[i]);
            break;
        }
        j = f->source_parent[i];
        bytes = least(bytes, f->carried[i * f->count + j]);
    }
    f->sink_left[end] -= bytes;
    for (j = end;;) {
        uint32_t i = f->sink_parent[j];
        f->carried[i * f->count + j] += bytes;
        if (f->source_parent[i] == f->count) {
            f->source_left[i] -= bytes;
            return bytes;
        }
        j = f->source_parent[i];
        f->carried[i * f->count + j] -= bytes;
    }
}

prony_status prn_max_weight_antichain(const uint64_t *bytes, const uint32_t *buffer, size_t count,
                                      const prn_buffer_order *order, uint64_t *heaviest, prony_error *error)
{
    flow f = {.count = count, .words = (count + 63) / 64};
    uint64_t sum = 0, moved;
    *heaviest = 0;
    if (count == 0 || count > PRN_MOST_EXACT) return PRONY_OK;
    if (!antichain_reserve(&f)) {
        antichain_release(&f);
        return prn_no_memory(error);
    }
    for (size_t i = 0; i < count && !prn_cancelled(); i++) {
        sum += f.source_left[i] = f.sink_left[i] = bytes[i];
        for (size_t j = 0; j < count; j++)
            if (i != j && order->before(order->argument, buffer[i], buffer[j]))
                f.later[i * f.words + j / 64] |= UINT64_C(1) << j % 64;
    }
    moved = antichain_start_flow(&f);
    size_t end;
    while ((end = antichain_search(&f)) < count && f.visits < MOST_VISITS && !prn_cancelled())
        moved += augment_path(&f, end);
    if (end == count) *heaviest = sum - moved;
    antichain_release(&f);
    return prn_cancel_check(error);
}
