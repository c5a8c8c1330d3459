/* Execution graphs (weak_graph.h). */
#include "weak_graph.h"

#include <string.h>

void weak_graph_clear(weak_graph *g)
{
    g->count = g->object_count = 0;
    memset(g->thread_count, 0, sizeof g->thread_count);
    memset(g->clock, 0, sizeof g->clock);
}

static uint64_t stored_value(const volatile void *address, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)address, (size_t)bytes); /* both machines store the low byte first */
    return value;
}

int weak_graph_object(weak_graph *g, const volatile void *address, int bytes)
{
    for (int o = 0; o < g->object_count; o++)
        if (g->objects[o].address == address) return o;
    if (g->object_count == WEAK_OBJECTS) return WEAK_INITIAL;
    weak_object *object = &g->objects[g->object_count];
    object->address = address;
    object->bytes = bytes;
    object->initial = bytes ? stored_value(address, bytes) : 0;
    object->writes = 1;
    object->order[0] = WEAK_INITIAL;
    return g->object_count++;
}

static bool is_before(const weak_event *e, const weak_clock *clock)
{
    return e->index < clock->of[e->thread];
}

int weak_graph_forget(weak_graph *g, int thread, const volatile void *address, size_t bytes)
{
    int unordered = -1;
    for (int o = 0; o < g->object_count; o++) {
        const uintptr_t at = (uintptr_t)g->objects[o].address, begin = (uintptr_t)address;
        if (at < begin || at >= begin + bytes || !g->objects[o].bytes) continue;
        g->objects[o].address = NULL;
        for (int i = 0; i < g->count; i++)
            if (g->events[i].object == o && !is_before(&g->events[i], &g->clock[thread]))
                unordered = g->events[i].thread;
    }
    return unordered;
}

static int position_of(const weak_graph *g, int event)
{
    return event == WEAK_INITIAL ? 0 : g->events[event].position;
}

/* Coherence: no access takes a value that is older than one which happened before it wrote or read. */
int weak_graph_least(const weak_graph *g, int thread, int object)
{
    int least = 0;
    for (int i = 0; i < g->count; i++) {
        const weak_event *e = &g->events[i];
        if (e->object != object || !is_before(e, &g->clock[thread])) continue;
        const int position = e->writes ? e->position : position_of(g, e->from);
        if (position > least) least = position;
    }
    return least;
}

uint64_t weak_graph_value(const weak_graph *g, int object, int position)
{
    const int event = g->objects[object].order[position];
    return event == WEAK_INITIAL ? g->objects[object].initial : g->events[event].value;
}

bool weak_graph_is_updated(const weak_graph *g, int object, int position)
{
    const weak_object *o = &g->objects[object];
    return position + 1 < o->writes && g->events[o->order[position + 1]].reads;
}

void weak_clock_join(weak_clock *to, const weak_clock *from)
{
    for (int t = 0; t < WEAK_THREADS; t++)
        if (from->of[t] > to->of[t]) to->of[t] = from->of[t];
}

static void insert_write(weak_graph *g, weak_object *object, int event, int position)
{
    for (int p = object->writes++; p > position; p--) {
        object->order[p] = object->order[p - 1];
        g->events[object->order[p]].position = p;
    }
    object->order[position] = event;
    g->events[event].position = position;
}

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* A release sequence goes through updates alone, as in C++20: an update passes on what the write that it read
 * released. */
weak_event *weak_graph_add(weak_graph *g, int thread, int object, bool reads, bool writes, int position, uint64_t value,
                           int order)
{
    const int number = g->count++;
    weak_event *e = &g->events[number];
    weak_clock *now = &g->clock[thread];
    *e = (weak_event){.thread = thread,
                      .index = g->thread_count[thread],
                      .object = object,
                      .from = reads ? g->objects[object].order[position] : WEAK_INITIAL,
                      .reads = reads,
                      .writes = writes,
                      .sequential = order == __ATOMIC_SEQ_CST,
                      .value = value};
    g->by_thread[thread][g->thread_count[thread]++] = number;
    const weak_event *source = reads && e->from != WEAK_INITIAL ? &g->events[e->from] : NULL;
    if (source && acquires(order)) weak_clock_join(now, &source->released);
    now->of[thread] = (uint16_t)(e->index + 1);
    e->clock = *now;
    if (source && writes) e->released = source->released;
    if (writes && releases(order)) weak_clock_join(&e->released, now);
    if (writes) insert_write(g, &g->objects[object], number, position + 1);
    return e;
}

/* ---- the order of sequentially consistent accesses ---- */

/* c after a and d before b in their threads, both of other objects, and c happens before d. */
static bool ordered_around(const weak_graph *g, const weak_event *a, const weak_event *b)
{
    const weak_event *c = NULL, *d = NULL;
    for (int i = a->index + 1; i < g->thread_count[a->thread] && !c; i++) {
        const weak_event *e = &g->events[g->by_thread[a->thread][i]];
        if (e->object != a->object || e->object == WEAK_INITIAL) c = e;
    }
    for (int i = b->index - 1; i >= 0 && !d; i--) {
        const weak_event *e = &g->events[g->by_thread[b->thread][i]];
        if (e->object != b->object || e->object == WEAK_INITIAL) d = e;
    }
    return c && d && c != d && is_before(c, &d->clock);
}

/* RC11's psc without fences: [SC]; (sb | sb of other objects; hb; sb of other objects | hb of one object | mo | rb);
 * [SC] */
static bool psc_orders(const weak_graph *g, const weak_event *a, const weak_event *b)
{
    if (a->thread == b->thread) return a->index < b->index;
    if (a->object == b->object) {
        if (is_before(a, &b->clock)) return true;
        if (a->writes && b->writes && a->position < b->position) return true;
        if (a->reads && b->writes && position_of(g, a->from) < b->position) return true;
    }
    return ordered_around(g, a, b);
}

static bool reaches(const weak_graph *g, int from, int to, bool *seen)
{
    for (int i = 0; i < g->count; i++) {
        if (i == from || !g->events[i].sequential || seen[i] || !psc_orders(g, &g->events[from], &g->events[i]))
            continue;
        if (i == to) return true;
        seen[i] = true;
        if (reaches(g, i, to, seen)) return true;
    }
    return false;
}

bool weak_graph_is_consistent(const weak_graph *g)
{
    bool seen[WEAK_EVENTS] = {false};
    const int last = g->count - 1;
    return !g->events[last].sequential || !reaches(g, last, last, seen);
}

/* ---- keys ---- */

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

static uint64_t name_of(const weak_graph *g, int event)
{
    return event == WEAK_INITIAL ? 1 : (uint64_t)(g->events[event].thread + 2) << 16 | (uint64_t)g->events[event].index;
}

void weak_graph_key(const weak_graph *g, uint64_t key[2])
{
    key[0] = key[1] = 0;
    for (int i = 0; i < g->count; i++) {
        const weak_event *e = &g->events[i];
        const uint64_t before = e->writes ? name_of(g, g->objects[e->object].order[e->position - 1]) : 0;
        const uint64_t parts = mixed(name_of(g, i) << 40 | (e->reads ? name_of(g, e->from) : 0)) + before;
        key[0] += mixed(parts);
        key[1] += mixed(parts ^ UINT64_C(0x5851f42d4c957f2d));
    }
}
