/* The maximum-weight antichain of buffers (no buffer is before another). By Dilworth's theorem with weights its weight
 * is the sum of all bytes minus the maximum flow from buffers to later ones, where each gives and takes at most its
 * bytes:
 *
 *             given[i]   i before j   taken[j]
 *     source ---------> i ---------> j ---------> sink          heaviest = sum - maximum flow
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
    uint64_t *later;         /* [count][words] bit j of row i: i is before j */
    uint64_t *handed;        /* [count][count] from i to j */
    uint64_t *given, *taken; /* [count] bytes that i can still give, and j can still take */
    uint32_t *from_giver;    /* [count] giver that reached taker j in this search */
    uint32_t *from_taker;    /* [count] which taker gave back to giver i; count: i is where the path begins */
    uint64_t *fresh;         /* [words] takers not reached yet */
    uint32_t *queue;         /* of givers */
    bool *reached;           /* [count] givers */
    uint64_t visits;
} flow;

static void antichain_release(flow *f)
{
    prn_free(f->later);
    prn_free(f->handed);
    prn_free(f->given);
    prn_free(f->taken);
    prn_free(f->from_giver);
    prn_free(f->from_taker);
    prn_free(f->fresh);
    prn_free(f->queue);
    prn_free(f->reached);
}

static bool antichain_reserve(flow *f)
{
    size_t n = f->count;
    f->later = prn_calloc(n * f->words, sizeof *f->later);
    f->handed = prn_calloc(n * n, sizeof *f->handed);
    f->given = prn_calloc(n, sizeof *f->given);
    f->taken = prn_calloc(n, sizeof *f->taken);
    f->from_giver = prn_calloc(n, sizeof *f->from_giver);
    f->from_taker = prn_calloc(n, sizeof *f->from_taker);
    f->fresh = prn_calloc(f->words, sizeof *f->fresh);
    f->queue = prn_calloc(n, sizeof *f->queue);
    f->reached = prn_calloc(n, sizeof *f->reached);
    return f->later && f->handed && f->given && f->taken && f->from_giver && f->from_taker && f->fresh && f->queue &&
           f->reached;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A greedy start: every giver gives to the first takers with room. Returns the flow. */
static uint64_t antichain_hand_on(flow *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->count; i++) {
        for (size_t j = 0; j < f->count && f->given[i]; j++) {
            if (!(f->later[i * f->words + j / 64] >> j % 64 & 1)) continue;
            uint64_t bytes = least(f->given[i], f->taken[j]);
            f->handed[i * f->count + j] = bytes;
            f->given[i] -= bytes;
            f->taken[j] -= bytes;
            sum += bytes;
        }
    }
    return sum;
}

/* Finds a taker with room, reached from givers with bytes left; count: none. */
static size_t antichain_search(flow *f)
{
    size_t head = 0, tail = 0;
    memset(f->fresh, 0xff, f->words * sizeof *f->fresh);
    for (uint32_t i = 0; i < f->count; i++) {
        f->reached[i] = f->given[i] > 0;
        f->from_taker[i] = (uint32_t)f->count;
        if (f->reached[i]) f->queue[tail++] = i;
    }
    while (head < tail) {
        uint32_t i = f->queue[head++];
        f->visits += f->words;
        for (size_t w = 0; w < f->words; w++) {
            for (uint64_t bits = f->later[i * f->words + w] & f->fresh[w]; bits; bits &= bits - 1) {
                size_t j = w * 64 + (size_t)__builtin_ctzll(bits);
                f->fresh[w] &= ~(bits & -bits);
                f->from_giver[j] = i;
                if (f->taken[j]) return j;
                f->visits += f->count;
                for (uint32_t back = 0; back < f->count; back++) {
                    if (f->reached[back] || !f->handed[back * f->count + j]) continue;
                    f->reached[back] = true;
                    f->from_taker[back] = (uint32_t)j;
                    f->queue[tail++] = back;
                }
            }
        }
    }
    return f->count;
}

static uint64_t augment(flow *f, size_t end)
{
    uint64_t bytes = f->taken[end];
    size_t j = end;
    for (;;) {
        uint32_t i = f->from_giver[j];
        if (f->from_taker[i] == f->count) {
            bytes = least(bytes, f->given[i]);
            break;
        }
        j = f->from_taker[i];
        bytes = least(bytes, f->handed[i * f->count + j]);
    }
    f->taken[end] -= bytes;
    for (j = end;;) {
        uint32_t i = f->from_giver[j];
        f->handed[i * f->count + j] += bytes;
        if (f->from_taker[i] == f->count) {
            f->given[i] -= bytes;
            return bytes;
        }
        j = f->from_taker[i];
        f->handed[i * f->count + j] -= bytes;
    }
}

prony_status prn_max_weight_antichain(const uint64_t *bytes, const uint32_t *buffer, size_t count,
                                      const prn_buffer_order *order, uint64_t *heaviest, prony_error *error)
{
    flow f = {.count = count, .words = (count + 63) / 64};
    uint64_t sum = 0, handed;
    *heaviest = 0;
    if (count == 0 || count > PRN_MOST_EXACT) return PRONY_OK;
    if (!antichain_reserve(&f)) {
        antichain_release(&f);
        return prn_no_memory(error);
    }
    for (size_t i = 0; i < count && !prn_cancelled(); i++) {
        sum += f.given[i] = f.taken[i] = bytes[i];
        for (size_t j = 0; j < count; j++)
            if (i != j && order->before(order->argument, buffer[i], buffer[j]))
                f.later[i * f.words + j / 64] |= UINT64_C(1) << j % 64;
    }
    handed = antichain_hand_on(&f);
    size_t end;
    while ((end = antichain_search(&f)) < count && f.visits < MOST_VISITS && !prn_cancelled())
        handed += augment(&f, end);
    if (end == count) *heaviest = sum - handed;
    antichain_release(&f);
    return prn_cancel_check(error);
}
