/* The search (weak_memory.h). Each execution begins anew and repeats the choices of the one before it up to the last
 * that has another alternative. An execution whose graph was visited before ends there: what a thread does next depends
 * on the values that it has read alone.
 *
 * Invariant: between two steps of the search every thread has stopped in front of its next event. Plain accesses and
 * unlocking are done at once, as no other thread's choices depend on when. */
#define _GNU_SOURCE
#include "weak_graph.h"
#include "weak_shadow.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK_BYTES = 1 << 17, ARENA_BYTES = 1 << 20, LABELS = 48, MUTEXES = 4, BLOCKS = 32 };

typedef enum action { LOAD, STORE, UPDATE, START, JOIN, LOCK, WAIT, ENDED } action;

typedef struct thread {
    ucontext_t first; /* the beginning of its function */
    jmp_buf context;  /* where it has stopped; a jump needs no system call */
    bool begun;
    void *(*fn)(void *);
    void (*plain_fn)(void);
    void *argument;
    action next; /* the event in front of which it has stopped */
    const volatile void *address;
    int bytes, order, failure_order, other; /* other: the thread to join, or the mutex */
    weak_operation update;
    uint64_t value, expected, result;
    const void *condition; /* WAIT */
    bool may_wait;
    char locals[512]; /* its _Thread_local variables */
} thread;

typedef struct mutex {
    const void *address;
    int owner; /* -1: free */
} mutex;

typedef struct choice {
    int at, count;
} choice;

typedef struct label {
    const char *text;
    uintptr_t begin, end;
    bool pinned;
    uint64_t value;
} label;

typedef struct block {
    char *memory;
    size_t bytes;
    bool freed;
} block;

static weak_graph graph;
static thread threads[WEAK_THREADS];
static _Alignas(64) char stacks[WEAK_THREADS][STACK_BYTES];
static _Alignas(64) char arena[ARENA_BYTES];
static size_t arena_used;
static block blocks[BLOCKS];
static int block_count;
static int thread_count, self;
static bool running; /* a thread, not the search */
static jmp_buf search;
static mutex mutexes[MUTEXES];
static int mutex_count;
static label labels[LABELS];
static int label_count;
static choice path[WEAK_EVENTS];
static int path_length;
static weak_result result;
static weak_weakening weakened;

/* Variables that weak_source.h puts into this section are a thread's own. */
extern char __start_weak_tls[] __attribute__((weak)), __stop_weak_tls[] __attribute__((weak));
static char first_locals[512];

static size_t local_bytes(void)
{
    return (size_t)(__stop_weak_tls - __start_weak_tls);
}

/* ---- faults ---- */

static const label *label_of(const volatile void *address)
{
    for (int i = 0; i < label_count; i++)
        if ((uintptr_t)address >= labels[i].begin && (uintptr_t)address < labels[i].end) return &labels[i];
    return NULL;
}

static const char *name_of(const volatile void *address)
{
    const label *l = label_of(address);
    return l ? l->text : "an object without a label";
}

static void report(weak_fault fault, const char *text)
{
    if (result.fault != WEAK_CORRECT) return;
    result.fault = fault;
    snprintf(result.message, sizeof result.message, "%s", text);
}

void weak_not_modelled(const char *what)
{
    fprintf(stderr, "weak_memory: %s is not modelled\n", what);
    abort();
}

/* ---- threads ---- */

static void resume(int number)
{
    memcpy(__start_weak_tls, threads[number].locals, local_bytes());
    self = number;
    running = true;
    if (_setjmp(search) == 0) {
        if (threads[number].begun) _longjmp(threads[number].context, 1);
        threads[number].begun = true;
        setcontext(&threads[number].first);
    }
    running = false;
    memcpy(threads[self].locals, __start_weak_tls, local_bytes());
}

/* Stops the calling thread in front of its next event, until the search has chosen the event. */
static void stop_before(action next)
{
    threads[self].next = next;
    if (_setjmp(threads[self].context) == 0) _longjmp(search, 1);
}

static void thread_main(void)
{
    thread *t = &threads[self];
    if (t->plain_fn)
        t->plain_fn();
    else
        t->fn(t->argument);
    weak_graph_add(&graph, self, WEAK_INITIAL, false, false, 0, 0, __ATOMIC_RELAXED);
    stop_before(ENDED);
}

static int add_thread(void (*plain_fn)(void), void *(*fn)(void *), void *argument)
{
    if (thread_count == WEAK_THREADS) weak_not_modelled("a fifth thread");
    thread *t = &threads[thread_count];
    *t = (thread){.plain_fn = plain_fn, .fn = fn, .argument = argument, .next = START};
    memcpy(t->locals, first_locals, local_bytes());
    getcontext(&t->first);
    t->first.uc_stack.ss_sp = stacks[thread_count];
    t->first.uc_stack.ss_size = STACK_BYTES;
    t->first.uc_link = NULL;
    makecontext(&t->first, thread_main, 0);
    return thread_count++;
}

/* ---- choices ---- */

static int object_of(const thread *t)
{
    const int object = weak_graph_object(&graph, t->address, t->bytes);
    if (object < 0) weak_not_modelled("so many objects");
    return object;
}

static uint64_t changed(const thread *t, uint64_t before)
{
    switch (t->update) {
    case WEAK_LOAD:
        return before;
    case WEAK_STORE:
    case WEAK_EXCHANGE:
    case WEAK_COMPARE:
        return t->value;
    case WEAK_ADD:
        return before + t->value;
    case WEAK_SUB:
        return before - t->value;
    case WEAK_AND:
        return before & t->value;
    case WEAK_OR:
        return before | t->value;
    case WEAK_XOR:
        return before ^ t->value;
    }
    return 0;
}

static uint64_t cut(uint64_t value, int bytes)
{
    return bytes == 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

/* The event may use this position: a write comes behind it, an update must be the only one to read it. */
static bool position_fits(const thread *t, int object, int position)
{
    if (t->next == LOAD) return true;
    const bool taken = weak_graph_is_updated(&graph, object, position);
    if (t->next == UPDATE && t->update == WEAK_COMPARE && weak_graph_value(&graph, object, position) != t->expected)
        return true;
    return !taken;
}

/* The n-th position, from the newest; -1: there are fewer. *count: how many there are up to it. */
static int position_number(int number, int n, int *count)
{
    const thread *t = &threads[number];
    const int object = object_of(t), least = weak_graph_least(&graph, number, object);
    *count = 0;
    for (int p = graph.objects[object].writes - 1; p >= least; p--)
        if (position_fits(t, object, p) && (*count)++ == n) return p;
    return -1;
}

static int choices_of(int number)
{
    const thread *t = &threads[number];
    int count = 0;
    switch (t->next) {
    case LOAD:
    case STORE:
    case UPDATE:
        (void)position_number(number, WEAK_EVENTS, &count);
        return count;
    case START:
        return 1;
    case JOIN:
        return threads[t->other].next == ENDED;
    case LOCK:
        return mutexes[t->other].owner < 0;
    case WAIT:
    case ENDED:
        break;
    }
    return 0;
}

/* ---- events ---- */

static void check_life(const volatile void *address)
{
    const char *at = (const char *)(uintptr_t)address;
    for (int b = 0; b < block_count; b++)
        if (blocks[b].freed && at >= blocks[b].memory && at < blocks[b].memory + blocks[b].bytes)
            report(WEAK_RACE, "an access of memory that a thread has freed");
}

static int order_of(weak_operation operation, const volatile void *address, int order)
{
    const label *l = label_of(address);
    if (!weakened.label || !l || strcmp(l->text, weakened.label) != 0 || weakened.operation != operation) return order;
    result.weakened = true;
    return weakened.order;
}

/* Adds the event in front of which the thread stands, by its n-th choice. */
static void perform(int number, int n)
{
    thread *t = &threads[number];
    int count;
    if (t->next == START || t->next == JOIN) {
        if (t->next == JOIN) weak_clock_join(&graph.clock[number], &graph.clock[t->other]);
        weak_graph_add(&graph, number, WEAK_INITIAL, false, false, 0, 0, __ATOMIC_RELAXED);
        return;
    }
    check_life(t->address);
    const int object = object_of(t),
              position = t->next == LOCK ? graph.objects[object].writes - 1 : position_number(number, n, &count);
    const uint64_t before = weak_graph_value(&graph, object, position);
    t->result = before;
    if (t->next == LOCK) {
        mutexes[t->other].owner = number;
        weak_graph_add(&graph, number, object, true, true, position, 0, __ATOMIC_ACQUIRE);
    } else if (t->next == LOAD) {
        weak_graph_add(&graph, number, object, true, false, position, 0, order_of(WEAK_LOAD, t->address, t->order));
    } else if (t->next == STORE) {
        weak_graph_add(&graph, number, object, false, true, position, t->value,
                       order_of(WEAK_STORE, t->address, t->order));
    } else if (t->update == WEAK_COMPARE && before != t->expected) {
        weak_graph_add(&graph, number, object, true, false, position, 0,
                       order_of(t->update, t->address, t->failure_order));
    } else {
        weak_graph_add(&graph, number, object, true, true, position, cut(changed(t, before), t->bytes),
                       order_of(t->update, t->address, t->order));
    }
}

/* ---- visited graphs ---- */

static uint64_t (*visited)[2];
static size_t visited_size;

static void visit_grow(void)
{
    const size_t former = visited_size;
    uint64_t(*old)[2] = visited;
    visited_size = former ? 2 * former : 1 << 16;
    visited = calloc(visited_size, sizeof *visited);
    if (!visited) weak_not_modelled("a search that needs so much memory");
    for (size_t i = 0; i < former; i++) {
        if (!old[i][0]) continue;
        size_t at = old[i][0] % visited_size;
        while (visited[at][0]) at = (at + 1) % visited_size;
        memcpy(visited[at], old[i], sizeof *visited);
    }
    free(old);
}

/* true: for the first time. */
static bool visit(void)
{
    uint64_t key[2];
    weak_graph_key(&graph, key);
    key[0] |= 1;
    if ((size_t)result.graphs * 2 >= visited_size) visit_grow();
    size_t at = key[0] % visited_size;
    for (; visited[at][0]; at = (at + 1) % visited_size)
        if (visited[at][0] == key[0] && visited[at][1] == key[1]) return false;
    memcpy(visited[at], key, sizeof key);
    result.graphs++;
    return true;
}

/* ---- executions ---- */

static void begin_execution(const weak_program *program)
{
    weak_graph_clear(&graph);
    weak_shadow_clear();
    thread_count = mutex_count = label_count = block_count = 0;
    arena_used = 0;
    memcpy(__start_weak_tls, first_locals, local_bytes());
    program->reset();
    for (int t = 0; t < WEAK_THREADS && program->threads[t]; t++) add_thread(program->threads[t], NULL, NULL);
}

/* No thread can go on: a complete execution, or one in which a thread waits forever. */
static void end_execution(const weak_program *program)
{
    result.executions++;
    for (int t = 0; t < thread_count; t++) {
        char text[160];
        if (threads[t].next == ENDED || (threads[t].next == WAIT && threads[t].may_wait)) continue;
        snprintf(text, sizeof text, "thread %d waits forever: %s", t,
                 threads[t].next == WAIT ? "for a condition" : "for another thread, or a lock");
        report(WEAK_WAITS_FOREVER, text);
    }
    for (int o = 0; o < graph.object_count; o++) {
        const weak_object *object = &graph.objects[o];
        const uint64_t value = weak_graph_value(&graph, o, object->writes - 1);
        if (object->address && object->bytes) memcpy((void *)(uintptr_t)object->address, &value, (size_t)object->bytes);
    }
    if (program->finished && result.fault == WEAK_CORRECT) program->finished();
}

/* Starting and joining are the same before and after any other thread's event: one order of them is enough. */
static int choose_independent(int *counts, int total)
{
    for (int t = 0; t < thread_count; t++) {
        if (!counts[t] || (threads[t].next != START && threads[t].next != JOIN)) continue;
        for (int u = 0; u < thread_count; u++) counts[u] = u == t;
        return 1;
    }
    return total;
}

/* One execution: repeats `path`, and goes on by first choices. */
static void execute(const weak_program *program)
{
    begin_execution(program);
    for (int depth = 0; result.fault == WEAK_CORRECT; depth++) {
        int counts[WEAK_THREADS], total = 0, number = 0;
        for (int t = 0; t < thread_count; t++) total += counts[t] = choices_of(t);
        total = choose_independent(counts, total);
        if (total == 0) {
            if (depth == path_length) end_execution(program);
            return;
        }
        if (depth == path_length) {
            if (depth > 0 && !visit()) return;
            if (graph.count >= WEAK_EVENTS - 8) {
                report(WEAK_TOO_LARGE, "an execution has too many events");
                return;
            }
            path[path_length++] = (choice){0, total};
        }
        int n = path[depth].at;
        for (; n >= counts[number]; number++) n -= counts[number];
        perform(number, n);
        if (!weak_graph_is_consistent(&graph)) return;
        resume(number);
    }
}

weak_result weak_explore(const weak_program *program, const weak_weakening *weakening)
{
    result = (weak_result){.fault = WEAK_CORRECT};
    weakened = weakening ? *weakening : (weak_weakening){0};
    path_length = 0;
    if (local_bytes() > sizeof first_locals) weak_not_modelled("so many _Thread_local variables");
    memcpy(first_locals, __start_weak_tls, local_bytes());
    do {
        execute(program);
        while (path_length && path[path_length - 1].at + 1 >= path[path_length - 1].count) path_length--;
        if (path_length) path[path_length - 1].at++;
    } while (path_length && result.fault == WEAK_CORRECT);
    memcpy(__start_weak_tls, first_locals, local_bytes());
    free(visited);
    visited = NULL;
    visited_size = 0;
    return result;
}

/* ---- what programs call ---- */

void weak_label(const void *address, size_t bytes, const char *text)
{
    if (label_count == LABELS) weak_not_modelled("so many labels");
    labels[label_count++] = (label){.text = text, .begin = (uintptr_t)address, .end = (uintptr_t)address + bytes};
}

void weak_pin(const void *address, uint64_t value)
{
    weak_label(address, 1, "pinned");
    labels[label_count - 1].pinned = true;
    labels[label_count - 1].value = value;
}

void weak_require(bool holds, const char *text)
{
    if (!holds) report(WEAK_REQUIREMENT, text);
}

void weak_outcome(unsigned number)
{
    result.outcomes |= UINT64_C(1) << number;
}

void weak_may_wait(void)
{
    threads[self].may_wait = true;
}

/* ---- memory ---- */

void *weak_alloc(size_t alignment, size_t bytes)
{
    arena_used = (arena_used + alignment - 1) / alignment * alignment;
    if (bytes > ARENA_BYTES - arena_used) weak_not_modelled("so much memory");
    if (block_count == BLOCKS) weak_not_modelled("so many blocks of memory");
    char *memory = arena + arena_used;
    arena_used += bytes;
    memset(memory, 0, bytes);
    blocks[block_count++] = (block){memory, bytes, false};
    return memory;
}

void *weak_grow(void *memory, size_t bytes)
{
    char *grown = weak_alloc(16, bytes);
    for (int b = 0; b < block_count; b++)
        if (memory && blocks[b].memory == memory) memcpy(grown, memory, blocks[b].bytes);
    weak_free(memory);
    return grown;
}

void weak_free(void *memory)
{
    for (int b = 0; b < block_count; b++) {
        if (blocks[b].memory != memory || !running) continue;
        weak_plain(memory, blocks[b].bytes, true);
        blocks[b].freed = true;
    }
}

int weak_thread_create(int *out, void *(*fn)(void *argument), void *argument)
{
    const int number = add_thread(NULL, fn, argument);
    if (running) {
        weak_graph_add(&graph, self, WEAK_INITIAL, false, false, 0, 0, __ATOMIC_RELAXED);
        graph.clock[number] = graph.clock[self];
    }
    *out = number;
    return 0;
}

int weak_thread_join(int number)
{
    threads[self].other = number;
    stop_before(JOIN);
    return 0;
}

static int mutex_number(const void *address)
{
    for (int m = 0; m < mutex_count; m++)
        if (mutexes[m].address == address) return m;
    if (mutex_count == MUTEXES) weak_not_modelled("so many mutexes");
    mutexes[mutex_count] = (mutex){address, -1};
    return mutex_count++;
}

int weak_mutex_lock(void *address)
{
    if (!running) return 0;
    threads[self].other = mutex_number(address);
    threads[self].address = address;
    threads[self].bytes = 0;
    stop_before(LOCK);
    return 0;
}

int weak_mutex_unlock(void *address)
{
    if (!running) return 0;
    const int m = mutex_number(address), object = weak_graph_object(&graph, address, 0);
    if (mutexes[m].owner != self) weak_not_modelled("unlocking another thread's mutex");
    mutexes[m].owner = -1;
    weak_graph_add(&graph, self, object, false, true, graph.objects[object].writes - 1, 0, __ATOMIC_RELEASE);
    return 0;
}

int weak_cond_wait(void *condition, void *address)
{
    threads[self].condition = condition;
    weak_mutex_unlock(address);
    threads[self].other = mutex_number(address);
    stop_before(WAIT);
    return 0;
}

/* Waiters are found at once, so the caller must hold their mutex: then the order of locking decides who waits. */
int weak_cond_broadcast(void *condition)
{
    if (!running) return 0;
    for (int t = 0; t < thread_count; t++) {
        if (threads[t].next != WAIT || threads[t].condition != condition) continue;
        const int m = threads[t].other;
        if (mutexes[m].owner != self) weak_not_modelled("a broadcast without the waiters' mutex");
        threads[t].next = LOCK;
        threads[t].address = mutexes[m].address;
        threads[t].bytes = 0;
    }
    return 0;
}

/* ---- what compiled code calls ---- */

static void put(volatile void *address, int bytes, uint64_t value)
{
    memcpy((void *)(uintptr_t)address, &value, (size_t)bytes);
}

static uint64_t get(const volatile void *address, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)address, (size_t)bytes);
    return value;
}

uint64_t weak_load(const volatile void *address, int bytes, int order)
{
    const label *l = label_of(address);
    if (l && l->pinned) return l->value;
    if (!running) return get(address, bytes);
    thread *t = &threads[self];
    t->address = address;
    t->bytes = bytes;
    t->order = order;
    stop_before(LOAD);
    return t->result;
}

void weak_store(volatile void *address, int bytes, uint64_t value, int order)
{
    const label *l = label_of(address);
    if (l && l->pinned) return;
    if (!running) {
        put(address, bytes, value);
        return;
    }
    thread *t = &threads[self];
    t->address = address;
    t->bytes = bytes;
    t->order = order;
    t->value = cut(value, bytes);
    stop_before(STORE);
}

uint64_t weak_change(volatile void *address, int bytes, weak_operation update, uint64_t value, uint64_t expected,
                     int order, int failure_order)
{
    thread outside, *t = running ? &threads[self] : &outside;
    t->address = address;
    t->bytes = bytes;
    t->order = order;
    t->failure_order = failure_order;
    t->update = update;
    t->value = cut(value, bytes);
    t->expected = cut(expected, bytes);
    if (running) {
        stop_before(UPDATE);
        return t->result;
    }
    const uint64_t before = get(address, bytes);
    if (update != WEAK_COMPARE || before == t->expected) put(address, bytes, changed(t, before));
    return before;
}

/* A race is reported at the later of two accesses in any order of visiting, as happens-before does not depend on it. */
void weak_plain(const volatile void *address, size_t bytes, bool writes)
{
    char text[160];
    if (!running ||
        ((uintptr_t)address >= (uintptr_t)__start_weak_tls && (uintptr_t)address < (uintptr_t)__stop_weak_tls))
        return;
    check_life(address);
    int other = weak_shadow_access((uintptr_t)address, bytes, self, &graph.clock[self], writes);
    if (writes && other < 0) other = weak_graph_forget(&graph, self, address, bytes);
    if (other < 0) return;
    snprintf(text, sizeof text,
             "a data race: thread %d %s %s after thread %d accessed it, with nothing between that orders them", self,
             writes ? "writes" : "reads", name_of(address), other);
    report(WEAK_RACE, text);
}
