/* A model checker for small concurrent programs under C11's memory model: it runs compiled code, not a copy of it.
 *
 * A source is compiled with -fsanitize=thread, which turns every atomic operation into a call with its memory order,
 * and every plain access of memory into a call. weak_tsan.c answers these calls instead of ThreadSanitizer's library.
 * Threads are coroutines. The checker visits every execution of the program that RC11 allows (Lahav et al., "Repairing
 * Sequential Consistency in C/C++11", PLDI 2017):
 *
 *   reads    take any value that coherence allows, not the newest alone
 *   writes   enter the modification order of their object at any position that coherence allows
 *   seq_cst  the order psc is acyclic; psc is not the order in which the checker runs the threads
 *
 * As in RC11, happens-before and reads-from have no cycle: a load never reads from a store that comes later in its own
 * thread's order. Fences are not modelled; the checker ends the program if it meets one. Weak compare-exchange does not
 * fail spuriously. Mutexes and conditions order as C11's; conditions do not wake spuriously.
 *
 * Reported faults: a data race of plain accesses, a thread that waits forever, a failed requirement, and more events
 * than the checker holds. */
#ifndef PRN_TESTS_WEAK_WEAK_MEMORY_H
#define PRN_TESTS_WEAK_WEAK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEAK_THREADS = 4, WEAK_OUTCOMES = 64 };

typedef struct weak_program {
    void (*reset)(void);                 /* makes the state before the first event; called before each execution */
    void (*threads[WEAK_THREADS])(void); /* up to the first NULL */
    void (*finished)(void);              /* NULL or called after each complete execution, outside of the threads */
} weak_program;

typedef enum weak_operation {
    WEAK_LOAD,
    WEAK_STORE,
    WEAK_EXCHANGE,
    WEAK_ADD,
    WEAK_SUB,
    WEAK_AND,
    WEAK_OR,
    WEAK_XOR,
    WEAK_COMPARE
} weak_operation;

/* One operation of the source on one object gets a weaker order, to show that the program needs its own. */
typedef struct weak_weakening {
    const char *label; /* of the atomic object, see weak_label */
    weak_operation operation;
    int order; /* a __ATOMIC_ value */
} weak_weakening;

typedef enum weak_fault { WEAK_CORRECT, WEAK_RACE, WEAK_WAITS_FOREVER, WEAK_REQUIREMENT, WEAK_TOO_LARGE } weak_fault;

typedef struct weak_result {
    weak_fault fault;  /* of the first faulty execution, which ends the search */
    char message[200]; /* that describes it */
    long executions;   /* complete ones */
    long graphs;       /* distinct execution graphs, complete or not */
    uint64_t outcomes; /* bit n: an execution called weak_outcome(n) */
    bool weakened;     /* the weakening met its operation */
} weak_result;

weak_result weak_explore(const weak_program *program, const weak_weakening *weakening);

/* ---- called by reset ---- */

/* Names an object, or an array of objects, in messages and weakenings. */
void weak_label(const void *address, size_t bytes, const char *label);
/* Loads of this object return `value` without an event. */
void weak_pin(const void *address, uint64_t value);

/* ---- called by threads ---- */

void weak_require(bool holds, const char *text);
void weak_outcome(unsigned number);
/* The calling thread may wait when the others have ended. */
void weak_may_wait(void);
/* Memory of this execution, which no execution reuses. Freeing is a write of all bytes. */
void *weak_alloc(size_t alignment, size_t bytes);
void *weak_grow(void *memory, size_t bytes);
void weak_free(void *memory);

/* Instead of the functions of POSIX threads that the programs use. */
int weak_thread_create(int *out, void *(*fn)(void *argument), void *argument);
int weak_thread_join(int thread);
int weak_mutex_lock(void *mutex);
int weak_mutex_unlock(void *mutex);
int weak_cond_wait(void *condition, void *mutex);
int weak_cond_broadcast(void *condition);

/* ---- called by weak_tsan.c ---- */

uint64_t weak_load(const volatile void *address, int bytes, int order);
void weak_store(volatile void *address, int bytes, uint64_t value, int order);
/* Returns the value before. WEAK_COMPARE stores `value` if this value is `expected`. */
uint64_t weak_change(volatile void *address, int bytes, weak_operation update, uint64_t value, uint64_t expected,
                     int order, int failure_order);
void weak_plain(const volatile void *address, size_t bytes, bool writes);
void weak_not_modelled(const char *what);

#endif
