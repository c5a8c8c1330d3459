/* The execution graph of weak_memory.h: events, where each reads from, each object's modification order, and
 * happens-before as vector clocks. Knows no threads of execution. */
#ifndef PRN_TESTS_WEAK_WEAK_GRAPH_H
#define PRN_TESTS_WEAK_WEAK_GRAPH_H

#include "weak_memory.h"

enum { WEAK_EVENTS = 400, WEAK_OBJECTS = 96, WEAK_INITIAL = -1 /* instead of an event: the value before all events */ };

/* clock[t]: so many events of thread t happened before, the first ones. */
typedef struct weak_clock {
    uint16_t of[WEAK_THREADS];
} weak_clock;

typedef struct weak_event {
    int thread, index; /* index in its thread */
    int object;        /* WEAK_INITIAL: none */
    int from;          /* the event that it reads from */
    bool reads, writes, sequential;
    uint64_t value;      /* that it writes */
    weak_clock clock;    /* behind it, itself included */
    weak_clock released; /* what a thread that acquires from it gets */
    int position;        /* in the modification order; 0 is the initial value's */
} weak_event;

typedef struct weak_object {
    const volatile void *address;
    uint64_t initial;
    int bytes, writes;
    int order[WEAK_EVENTS]; /* modification order; entry 0 is WEAK_INITIAL */
} weak_object;

typedef struct weak_graph {
    weak_event events[WEAK_EVENTS];
    int count, by_thread[WEAK_THREADS][WEAK_EVENTS], thread_count[WEAK_THREADS];
    weak_object objects[WEAK_OBJECTS];
    int object_count;
    weak_clock clock[WEAK_THREADS]; /* of each thread now */
} weak_graph;

void weak_graph_clear(weak_graph *g);
/* The object at the address, made where it is missing. */
int weak_graph_object(weak_graph *g, const volatile void *address, int bytes);
/* The thread's plain store of [address, address + bytes) ends the objects there: later operations see a new object.
 * Returns a thread whose operation on such an object did not happen before; -1: none. */
int weak_graph_forget(weak_graph *g, int thread, const volatile void *address, size_t bytes);

/* The least position that the thread's next access of the object may read from or write behind. */
int weak_graph_least(const weak_graph *g, int thread, int object);
uint64_t weak_graph_value(const weak_graph *g, int object, int position);
/* true: the write behind this position is an update that read it, so that nothing may come between. */
bool weak_graph_is_updated(const weak_graph *g, int object, int position);

/* Appends an event of the thread, with its clock; orders are __ATOMIC_ values. `position`: read from, and written
 * behind. */
weak_event *weak_graph_add(weak_graph *g, int thread, int object, bool reads, bool writes, int position, uint64_t value,
                           int order);
void weak_clock_join(weak_clock *to, const weak_clock *from);
/* false: the newest event makes a cycle of psc. */
bool weak_graph_is_consistent(const weak_graph *g);
/* A key of the graph that does not depend on the order in which its events were added. */
void weak_graph_key(const weak_graph *g, uint64_t key[2]);

#endif
