/* Offline placement of a plan's buffers in one arena.
 *
 * Buffers are placed one by one in some order; each takes the smallest gap (or the lowest one) between placed buffers
 * that are alive together with it. Several orders are tried. A local search then improves the best order by moving a
 * buffer at the top to an earlier position. Everything has constant seeds and is bounded by visited buffers, never by
 * time, so a plan depends on its input alone.
 *
 * Owns its work arrays for the length of one call; writes into `buffers[i].offset` only once a plan is complete.
 * Invariant: placed items that may be alive together do not overlap.
 */
#include "engine/memory/memory_plan.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "base/threads/cancel.h"

#include <stdlib.h>
#include <string.h>

#define UNPLACED UINT64_MAX
/* Bounds on the local search, in visited buffers. A visit costs some 35 instructions; a run of the decoders that
 * models/export_decoders.py writes (llama 4 and 40, 128 tokens) costs 5 to 11 for each byte of its buffers. So with a
 * visit for every four bytes the search costs about as much as a run. The least number and the patience are the powers
 * of two with which no plan of these decoders, at 8 to 512 tokens, became larger than with 12 << 20 visits. */
#define SEARCH_VISITS_LEAST ((uint64_t)1 << 20)
#define SEARCH_VISITS_MOST ((uint64_t)12 << 20)
#define SEARCH_BYTES 4                      /* of all buffers together, for each visit */
#define SEARCH_PATIENCE ((uint64_t)4 << 20) /* since the excess fell last */
/* Bounds on the time of planning, chosen without measurement. */
#define MAX_EDGES ((size_t)1 << 22) /* of the conflict graph; a denser one is not stored */
#define SEARCH_ROUNDS 6000
#define SEARCH_STEPS ((uint64_t)1 << 28)   /* rounds x buffers */
#define ORDER_VISITS ((uint64_t)128 << 20) /* no further order is tried beyond */
#define MOST_VISITS ((uint64_t)512 << 20)  /* bound on one order; plans with more buffers are swept first */
#define MOST_STEPS ((uint64_t)1 << 27)     /* visited steps, over the lives of all buffers together */

typedef struct item {
    uint64_t size; /* aligned, > 0 */
    uint64_t key;  /* of the order being built; larger goes first */
    uint32_t first, last;
    uint32_t low, high; /* items whose [low, high] do not meet are in order */
    uint32_t buffer;    /* index in the caller's array */
} item;

typedef struct span {
    uint64_t begin, end;
} span;

typedef enum fit { FIT_SMALLEST, FIT_LOWEST, FIT_COUNT } fit;

typedef struct planner {
    item *items; /* in order of first use */
    size_t count;
    uint64_t *live; /* [steps] sum of aligned live bytes */
    uint32_t steps;
    uint64_t lower_bound;
    uint32_t peak_step;
    const prn_buffer_order *by; /* NULL: steps run one after another */

    uint32_t *edge_begin; /* [count + 1] into `edges`; NULL: the conflict graph is too dense to keep */
    uint32_t *edges;

    uint64_t *offset;      /* [count] of the placement being made */
    uint32_t *by_offset;   /* placed items in order of offset */
    span *conflicts;       /* [count] scratch */
    uint64_t *best_offset; /* [count] */
    uint32_t *order, *best_order;
    uint64_t best;
    fit best_fit;
    uint64_t visits;
    uint32_t stride; /* distance of visited steps, if visiting every step of every life is too much */
} planner;

static void memory_plan_release(planner *p)
{
    void *const owned[] = {p->items,     p->live,      p->edge_begin,  p->edges, p->offset,
                           p->by_offset, p->conflicts, p->best_offset, p->order, p->best_order};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) prn_free(owned[i]);
}

static int compare_first_use(const void *left, const void *right)
{
    const item *a = left, *b = right;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static prony_status memory_plan_collect(planner *p, const prn_buffer *buffers, size_t count, uint64_t alignment,
                                        prony_error *error)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const prn_buffer *b = &buffers[i];
        if (b->first > b->last || b->last >= p->steps)
            return prn_fail(error, PRONY_INTERNAL, "memory plan: buffer %zu lives from step %u to %u of %u", i,
                            b->first, b->last, p->steps);
        if (b->bytes == 0) continue;
        uint64_t size;
        if (!prn_add_u64(&size, b->bytes, alignment - 1) || !prn_add_u64(&sum, sum, size) || sum > INT64_MAX)
            return prn_fail(error, PRONY_LIMIT, "memory plan: buffer %zu of %llu bytes makes the sum overflow", i,
                            (unsigned long long)b->bytes);
        item *it = &p->items[p->count++];
        *it = (item){.size = size & ~(alignment - 1), .first = b->first, .last = b->last, .buffer = (uint32_t)i};
        it->low = p->by ? b->first / p->by->window : b->first;
        it->high = p->by ? b->last / p->by->window : b->last;
    }
    qsort(p->items, p->count, sizeof *p->items, compare_first_use);
    return PRONY_OK;
}

/* live[] holds differences (wrapping) until it is summed up. */
static void find_lower_bound(planner *p)
{
    for (size_t i = 0; i < p->count; i++) {
        p->live[p->items[i].first] += p->items[i].size;
        p->live[p->items[i].last + 1] -= p->items[i].size;
    }
    uint64_t sum = 0;
    for (uint32_t s = 0; s < p->steps; s++) {
        sum += p->live[s];
        p->live[s] = sum;
        if (sum > p->lower_bound) {
            p->lower_bound = sum;
            p->peak_step = s;
        }
    }
}

static bool together(const planner *p, const item *a, const item *b)
{
    if (a->low > b->high || b->low > a->high) return false;
    return !p->by || !(p->by->before(p->by->argument, a->buffer, b->buffer) ||
                       p->by->before(p->by->argument, b->buffer, a->buffer));
}

/* Calls for every pair alive together: counts edges, or stores them when `edges` is there. Items come in order of first
 * use, so those alive with i that start no earlier than i follow it directly. false: more than MAX_EDGES, or
 * cancelled. */
static bool walk_conflicts(planner *p, uint32_t *fill)
{
    size_t total = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (prn_cancelled()) return false;
        for (uint32_t j = i + 1; j < p->count && p->items[j].low <= p->items[i].high; j++) {
            if (!together(p, &p->items[i], &p->items[j])) continue;
            if (fill) {
                p->edges[fill[i]++] = j;
                p->edges[fill[j]++] = i;
            } else {
                p->edge_begin[i + 1]++;
                p->edge_begin[j + 1]++;
            }
            total += 2;
            if (total > MAX_EDGES) return false;
        }
    }
    return true;
}

static prony_status build_conflicts(planner *p, prony_error *error)
{
    p->edge_begin = prn_calloc(p->count + 1, sizeof *p->edge_begin);
    if (!p->edge_begin) return prn_no_memory(error);
    if (!walk_conflicts(p, NULL)) {
        prn_free(p->edge_begin);
        p->edge_begin = NULL;
        return PRONY_OK;
    }
    for (size_t i = 0; i < p->count; i++) p->edge_begin[i + 1] += p->edge_begin[i];
    p->edges = prn_calloc(p->edge_begin[p->count] + (size_t)1, sizeof *p->edges);
    uint32_t *fill = prn_calloc(p->count + 1, sizeof *fill);
    if (!p->edges || !fill) {
        prn_free(fill);
        return prn_no_memory(error);
    }
    memcpy(fill, p->edge_begin, p->count * sizeof *fill);
    bool complete = walk_conflicts(p, fill);
    prn_free(fill);
    PRN_TRY(prn_cancel_check(error));
    return complete ? PRONY_OK : prn_fail(error, PRONY_INTERNAL, "memory plan: conflict graph changed between passes");
}

/* Placed items alive together with `i`, in order of offset. */
static size_t gather_conflicts(planner *p, uint32_t i, size_t placed)
{
    const item *self = &p->items[i];
    size_t found = 0;
    size_t degree = p->edge_begin ? p->edge_begin[i + 1] - p->edge_begin[i] : p->count;
    if (p->edge_begin && degree * degree / 4 <= placed + 64) {
        for (uint32_t e = p->edge_begin[i]; e < p->edge_begin[i + 1]; e++) {
            uint32_t other = p->edges[e];
            if (p->offset[other] == UNPLACED) continue;
            span s = {p->offset[other], p->offset[other] + p->items[other].size};
            size_t at = found++;
            for (; at > 0 && p->conflicts[at - 1].begin > s.begin; at--) p->conflicts[at] = p->conflicts[at - 1];
            p->conflicts[at] = s;
        }
        p->visits += degree + 4;
        return found;
    }
    for (size_t k = 0; k < placed; k++) {
        const item *other = &p->items[p->by_offset[k]];
        if (!together(p, self, other)) continue;
        uint64_t begin = p->offset[p->by_offset[k]];
        p->conflicts[found++] = (span){begin, begin + other->size};
    }
    p->visits += placed + 4;
    return found;
}

static uint64_t choose_offset(const planner *p, size_t conflicts, uint64_t size, fit how)
{
    uint64_t top = 0, chosen = UNPLACED, chosen_gap = UINT64_MAX;
    for (size_t k = 0; k < conflicts; k++) {
        const span *s = &p->conflicts[k];
        if (s->begin > top && s->begin - top >= size && s->begin - top < chosen_gap) {
            chosen = top;
            chosen_gap = s->begin - top;
            if (how == FIT_LOWEST) return chosen;
        }
        if (s->end > top) top = s->end;
    }
    return chosen == UNPLACED ? top : chosen;
}

static void insert_by_offset(planner *p, uint32_t i, size_t placed)
{
    size_t low = 0, high = placed;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->offset[p->by_offset[middle]] <= p->offset[i])
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&p->by_offset[low + 1], &p->by_offset[low], (placed - low) * sizeof *p->by_offset);
    p->by_offset[low] = i;
}

/* Places all items in p->order. Gives up, with UINT64_MAX, as soon as more than `bound` bytes are needed, or once the
 * work is cancelled. */
static uint64_t place_all(planner *p, fit how, uint64_t bound)
{
    uint64_t planned = 0;
    for (size_t i = 0; i < p->count; i++) p->offset[i] = UNPLACED;
    for (size_t k = 0; k < p->count; k++) {
        uint32_t i = p->order[k];
        size_t conflicts = gather_conflicts(p, i, k);
        uint64_t offset = choose_offset(p, conflicts, p->items[i].size, how);
        if (offset + p->items[i].size > planned) planned = offset + p->items[i].size;
        if (planned > bound || prn_cancelled()) return UINT64_MAX;
        if (p->visits > MOST_VISITS) return UINT64_MAX;
        p->offset[i] = offset;
        insert_by_offset(p, i, k);
    }
    return planned;
}

static void keep_best(planner *p, uint64_t planned, fit how)
{
    p->best = planned;
    p->best_fit = how;
    memcpy(p->best_offset, p->offset, p->count * sizeof *p->best_offset);
    memcpy(p->best_order, p->order, p->count * sizeof *p->best_order);
}

static uint64_t life_steps(const planner *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->count; i++) sum += (uint64_t)p->items[i].last - p->items[i].first + 1;
    return sum;
}

typedef struct free_range {
    uint64_t size, offset;
    uint32_t next; /* of the same class; UINT32_MAX ends */
} free_range;

enum { SIZE_CLASSES = 64 };

/* The smallest power of two that takes it, as an exponent. */
static unsigned memory_plan_class_of(uint64_t size)
{
    return size <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(size - 1);
}

/* Places buffers in order of first use; a free range takes a later buffer of the same size class that fits. Linear, for
 * more buffers than orders can be tried on. */
static void sweep_steps(planner *p, free_range *ranges, uint32_t *death_begin, uint32_t *deaths)
{
    uint32_t head[SIZE_CLASSES + 1];
    for (int c = 0; c <= SIZE_CLASSES; c++) head[c] = UINT32_MAX;
    for (size_t i = 0; i < p->count; i++) death_begin[p->items[i].last + 1]++;
    for (uint32_t s = 0; s < p->steps; s++) death_begin[s + 1] += death_begin[s];
    for (size_t i = p->count; i-- > 0;) deaths[--death_begin[p->items[i].last + 1]] = (uint32_t)i;
    uint64_t top = 0;
    size_t i = 0;
    for (uint32_t s = 0; s < p->steps; s++) {
        for (; i < p->count && p->items[i].first == s; i++) {
            unsigned c = memory_plan_class_of(p->items[i].size);
            uint32_t free = head[c];
            ranges[i] = (free_range){p->items[i].size, top, UINT32_MAX};
            if (free != UINT32_MAX && ranges[free].size >= p->items[i].size) {
                head[c] = ranges[free].next;
                ranges[i] = (free_range){ranges[free].size, ranges[free].offset, UINT32_MAX};
            } else {
                top += p->items[i].size;
            }
            p->offset[i] = ranges[i].offset;
            p->order[i] = (uint32_t)i;
        }
        for (uint32_t d = death_begin[s + 1]; d < p->count && p->items[deaths[d]].last == s; d++) {
            unsigned c = memory_plan_class_of(ranges[deaths[d]].size);
            ranges[deaths[d]].next = head[c];
            head[c] = deaths[d];
        }
    }
    keep_best(p, top, FIT_SMALLEST);
}

static prony_status sweep(planner *p, prony_error *error)
{
    free_range *ranges = prn_calloc(p->count, sizeof *ranges);
    uint32_t *begin = prn_calloc((size_t)p->steps + 2, sizeof *begin), *deaths = prn_calloc(p->count, sizeof *deaths);
    bool ok = ranges && begin && deaths;
    prony_status status = ok ? PRONY_OK : prn_no_memory(error);
    if (ok) sweep_steps(p, ranges, begin, deaths);
    prn_free(ranges);
    prn_free(begin);
    prn_free(deaths);
    return status;
}

/* BY_BREADTH_LATE: among equals the last used goes first. A step's result then lies next to its scratch, where the
 * source of its inputs was, and buffers that live through the step lie above. Repeated blocks, as in a transformer,
 * then fit without a gap. */
typedef enum ordering {
    BY_SIZE,
    BY_AREA,
    BY_PEAK,
    BY_BREADTH,
    BY_LIFETIME,
    BY_FIRST_USE,
    BY_BREADTH_LATE,
    ORDERING_COUNT
} ordering;

static uint64_t distance_to(const item *it, uint32_t step)
{
    return step < it->first ? it->first - step : step > it->last ? step - it->last : 0;
}

static uint64_t order_key(const planner *p, const item *it, ordering how)
{
    uint64_t lifetime = (uint64_t)it->last - it->first + 1;
    switch (how) {
    case BY_AREA:
        return it->size / 64 > UINT64_MAX / lifetime ? UINT64_MAX : it->size / 64 * lifetime;
    case BY_PEAK:
        return UINT64_MAX - distance_to(it, p->peak_step);
    case BY_BREADTH:
    case BY_BREADTH_LATE: {
        uint64_t widest = 0;
        for (uint64_t s = it->first; s <= it->last; s += p->stride) widest = p->live[s] > widest ? p->live[s] : widest;
        return widest;
    }
    case BY_LIFETIME:
        return lifetime;
    case BY_FIRST_USE:
        return UINT64_MAX - it->first;
    case BY_SIZE:
    default:
        return it->size;
    }
}

typedef struct keyed {
    uint64_t key, size;
    uint32_t tie, item; /* the smaller goes first */
} keyed;

static int compare_keyed(const void *left, const void *right)
{
    const keyed *a = left, *b = right;
    if (a->key != b->key) return a->key > b->key ? -1 : 1;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    if (a->tie != b->tie) return a->tie < b->tie ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static prony_status try_orders(planner *p, prony_error *error)
{
    keyed *keys = prn_calloc(p->count, sizeof *keys);
    if (!keys) return prn_no_memory(error);
    for (int o = 0; o < ORDERING_COUNT && p->best > p->lower_bound; o++) {
        for (uint32_t i = 0; i < p->count; i++)
            keys[i] = (keyed){order_key(p, &p->items[i], (ordering)o), p->items[i].size,
                              o == BY_BREADTH_LATE ? UINT32_MAX - p->items[i].first : i, i};
        qsort(keys, p->count, sizeof *keys, compare_keyed);
        for (size_t k = 0; k < p->count; k++) p->order[k] = keys[k].item;
        for (int how = 0; how < FIT_COUNT && p->best > p->lower_bound; how++) {
            if (p->visits > ORDER_VISITS) break;
            uint64_t planned = place_all(p, (fit)how, p->best - 1);
            if (planned < p->best) keep_best(p, planned, (fit)how);
        }
    }
    prn_free(keys);
    return prn_cancel_check(error);
}

static uint32_t next_random(uint64_t *state, uint32_t bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(((*state >> 32) * bound) >> 32);
}

static void move_in_order(uint32_t *order, size_t from, size_t to)
{
    uint32_t moved = order[from];
    if (to <= from)
        memmove(&order[to + 1], &order[to], (from - to) * sizeof *order);
    else
        memmove(&order[from], &order[from + 1], (to - from) * sizeof *order);
    order[to] = moved;
}

/* The sum over all items of their reach beyond the lower bound. It falls with each improved block of a repeated
 * pattern, while the plan's size would only fall with the last one. *high: a random item beyond the bound. */
static uint64_t excess_of(const planner *p, const uint64_t *offset, uint64_t *random, uint32_t *high)
{
    uint64_t excess = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const uint64_t end = offset[i] + p->items[i].size;
        if (end <= p->lower_bound) continue;
        excess += end - p->lower_bound;
        if (next_random(random, ++found) == 0) *high = i;
    }
    return excess;
}

/* A random item that is alive together with `i`; `i` itself if no item is. */
static uint32_t memory_plan_beside(planner *p, uint32_t i, uint64_t *random)
{
    uint32_t found = 0, chosen = i;
    for (uint32_t j = 0; j < p->count; j++) {
        if (j == i || !together(p, &p->items[i], &p->items[j])) continue;
        if (next_random(random, ++found) == 0) chosen = j;
    }
    p->visits += p->count / 4;
    return chosen;
}

static uint64_t search_visits(const planner *p)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->count; i++) bytes += p->items[i].size;
    const uint64_t visits = bytes / SEARCH_BYTES;
    return visits < SEARCH_VISITS_LEAST  ? SEARCH_VISITS_LEAST
           : visits > SEARCH_VISITS_MOST ? SEARCH_VISITS_MOST
                                         : visits;
}

/* Accepts every order with no larger excess, so that plateaus are crossed; keeps the best. Of four moves, two bring
 * forward an item that reaches too high, one moves an item that is alive with it and may block it, and one moves any
 * item. */
static void memory_plan_search(planner *p)
{
    if (p->count < 2) return;
    uint64_t random = 0x9e3779b97f4a7c15U, stop = p->visits + search_visits(p);
    uint32_t n = (uint32_t)p->count, high = 0;
    uint64_t current = excess_of(p, p->best_offset, &random, &high), fallen = p->visits;
    memcpy(p->order, p->best_order, p->count * sizeof *p->order);
    for (int round = 0; round < SEARCH_ROUNDS && p->best > p->lower_bound && p->visits < stop; round++) {
        if ((uint64_t)round * n > SEARCH_STEPS || p->visits - fallen > SEARCH_PATIENCE || prn_cancelled()) return;
        bool anywhere = round % 4 >= 2;
        uint32_t from = 0;
        if (round % 4 == 3) {
            from = next_random(&random, n);
        } else {
            const uint32_t moved = anywhere ? memory_plan_beside(p, high, &random) : high;
            while (p->order[from] != moved) from++;
        }
        uint32_t to = next_random(&random, anywhere || from == 0 ? n : from);
        move_in_order(p->order, from, to);
        fit how = round % 8 == 7 ? (fit)(1 - (int)p->best_fit) : p->best_fit;
        uint64_t planned = place_all(p, how, p->best);
        uint32_t other = high;
        uint64_t excess = planned == UINT64_MAX ? UINT64_MAX : excess_of(p, p->offset, &random, &other);
        if (excess > current) {
            move_in_order(p->order, to, from);
            continue;
        }
        if (excess < current) fallen = p->visits;
        current = excess;
        high = other;
        if (planned < p->best) keep_best(p, planned, how);
    }
}

/* Follows free blocks per step: `top` is the end of the last live buffer, `largest` the widest hole so far. */
static prony_status memory_plan_external_fragmentation(planner *p, double *worst, prony_error *error)
{
    uint64_t *top = prn_calloc((size_t)p->steps + 1, sizeof *top);
    uint64_t *largest = prn_calloc((size_t)p->steps + 1, sizeof *largest);
    keyed *keys = prn_calloc(p->count, sizeof *keys);
    if (!top || !largest || !keys) {
        prn_free(top);
        prn_free(largest);
        prn_free(keys);
        return prn_no_memory(error);
    }
    for (uint32_t i = 0; i < p->count; i++) keys[i] = (keyed){UINT64_MAX - p->best_offset[i], p->items[i].size, i, i};
    qsort(keys, p->count, sizeof *keys, compare_keyed);
    for (size_t k = 0; k < p->count && !prn_cancelled(); k++) {
        const item *it = &p->items[keys[k].item];
        uint64_t offset = p->best_offset[keys[k].item];
        for (uint64_t s = ((uint64_t)it->first + p->stride - 1) / p->stride * p->stride; s <= it->last;
             s += p->stride) {
            if (offset - top[s] > largest[s]) largest[s] = offset - top[s];
            top[s] = offset + it->size;
        }
    }
    *worst = 0;
    for (uint64_t s = 0; s < p->steps; s += p->stride) {
        uint64_t room = p->best - p->live[s], tail = p->best - top[s];
        if (tail > largest[s]) largest[s] = tail;
        double here = room ? 1.0 - (double)largest[s] / (double)room : 0.0;
        if (here > *worst) *worst = here;
    }
    prn_free(top);
    prn_free(largest);
    prn_free(keys);
    return prn_cancel_check(error);
}

/* A set of buffers that can be live together in some order needs the sum of their bytes; sequential steps are such an
 * order. */
static prony_status raise_lower_bound(planner *p, prony_error *error)
{
    uint64_t *size = prn_calloc(p->count + 1, sizeof *size), heaviest = 0;
    uint32_t *buffer = prn_calloc(p->count + 1, sizeof *buffer);
    prony_status status = size && buffer ? PRONY_OK : prn_no_memory(error);
    for (size_t i = 0; status == PRONY_OK && i < p->count; i++) {
        size[i] = p->items[i].size;
        buffer[i] = p->items[i].buffer;
    }
    if (status == PRONY_OK) status = prn_max_weight_antichain(size, buffer, p->count, p->by, &heaviest, error);
    if (heaviest > p->lower_bound) p->lower_bound = heaviest;
    prn_free(size);
    prn_free(buffer);
    return status;
}

static prony_status memory_plan_place(planner *p, prony_error *error)
{
    size_t n = p->count;
    p->offset = prn_calloc(n, sizeof *p->offset);
    p->best_offset = prn_calloc(n, sizeof *p->best_offset);
    p->by_offset = prn_calloc(n, sizeof *p->by_offset);
    p->conflicts = prn_calloc(n, sizeof *p->conflicts);
    p->order = prn_calloc(n, sizeof *p->order);
    p->best_order = prn_calloc(n, sizeof *p->best_order);
    if (!p->offset || !p->best_offset || !p->by_offset || !p->conflicts || !p->order || !p->best_order)
        return prn_no_memory(error);
    PRN_TRY(build_conflicts(p, error));
    p->best = UINT64_MAX;
    if ((uint64_t)n * n > MOST_VISITS) PRN_TRY(sweep(p, error));
    p->stride = 1 + (uint32_t)(life_steps(p) / MOST_STEPS);
    PRN_TRY(try_orders(p, error));
    memory_plan_search(p);
    return prn_cancel_check(error);
}

static prony_status memory_plan_finish(planner *p, prn_buffer *buffers, size_t count, prn_memory_plan_figures *figures,
                                       prony_error *error)
{
    uint64_t asked = 0, given = 0;
    unsigned __int128 area = 0;
    for (size_t i = 0; i < p->count; i++) {
        asked += buffers[p->items[i].buffer].bytes;
        given += p->items[i].size;
    }
    for (uint32_t s = 0; s < p->steps; s++) area += p->live[s];
    figures->planned_bytes = p->best;
    figures->lower_bound_bytes = p->lower_bound;
    figures->peak_step = p->peak_step;
    figures->visits = p->visits;
    figures->average_live_bytes = p->steps ? (uint64_t)(area / p->steps) : 0;
    figures->internal_fragmentation = given ? 1.0 - (double)asked / (double)given : 0.0;
    if (p->count) PRN_TRY(memory_plan_external_fragmentation(p, &figures->external_fragmentation, error));
    for (size_t i = 0; i < count; i++) buffers[i].offset = 0;
    for (size_t i = 0; i < p->count; i++) buffers[p->items[i].buffer].offset = p->best_offset[i];
    return PRONY_OK;
}

prony_status prn_memory_plan(prn_buffer *buffers, size_t count, uint32_t steps, uint64_t alignment,
                             prn_memory_plan_figures *figures, prony_error *error)
{
    return prn_memory_plan_by(buffers, count, steps, alignment, NULL, figures, error);
}

prony_status prn_memory_plan_by(prn_buffer *buffers, size_t count, uint32_t steps, uint64_t alignment,
                                const prn_buffer_order *order, prn_memory_plan_figures *figures, prony_error *error)
{
    *figures = (prn_memory_plan_figures){0};
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return prn_fail(error, PRONY_INTERNAL, "memory plan: alignment %llu is not a power of two",
                        (unsigned long long)alignment);
    if (count > UINT32_MAX - 1 || steps == UINT32_MAX)
        return prn_fail(error, PRONY_LIMIT, "memory plan: %zu buffers over %u steps are too many", count, steps);
    planner p = {.steps = steps, .by = order};
    prony_status status = PRONY_OK;
    p.items = prn_calloc(count ? count : 1, sizeof *p.items);
    p.live = prn_calloc((size_t)steps + 1, sizeof *p.live);
    if (!p.items || !p.live) status = prn_no_memory(error);
    if (status == PRONY_OK) status = memory_plan_collect(&p, buffers, count, alignment, error);
    if (status == PRONY_OK) find_lower_bound(&p);
    if (status == PRONY_OK && order) status = raise_lower_bound(&p, error);
    if (status == PRONY_OK && p.count) status = memory_plan_place(&p, error);
    if (status == PRONY_OK) status = memory_plan_finish(&p, buffers, count, figures, error);
    memory_plan_release(&p);
    return status;
}
