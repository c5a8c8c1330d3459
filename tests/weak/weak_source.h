/* Included before a source of the library that the model checker (weak_memory.h) runs: the source's threads, locks and
 * memory become the checker's. Atomic operations and plain accesses do by the compiler's option -fsanitize=thread. */
#ifndef PRN_TESTS_WEAK_WEAK_SOURCE_H
#define PRN_TESTS_WEAK_WEAK_SOURCE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "weak_memory.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory/alloc.h"

/* The checker keeps a copy of this section for each of its threads. */
#define _Thread_local __attribute__((section("weak_tls")))

static inline int weak_pthread_create(pthread_t *handle, void *(*fn)(void *), void *argument)
{
    int number = 0;
    const int code = weak_thread_create(&number, fn, argument);
    *handle = (pthread_t)number;
    return code;
}

static inline int weak_nothing(void)
{
    return 0;
}

#define pthread_create(handle, attributes, fn, argument) weak_pthread_create(handle, fn, argument)
#define pthread_join(handle, result) weak_thread_join((int)(handle))
#define pthread_detach(handle) ((void)(handle))
#define pthread_setspecific(key, value) weak_nothing()
#define pthread_setaffinity_np(handle, bytes, mask) weak_nothing()
#define pthread_mutex_init(mutex, attributes) weak_nothing()
#define pthread_mutex_destroy(mutex) ((void)(mutex))
#define pthread_mutex_lock(mutex) weak_mutex_lock(mutex)
#define pthread_mutex_unlock(mutex) weak_mutex_unlock(mutex)
#define pthread_cond_init(condition, attributes) ((void)(condition))
#define pthread_cond_destroy(condition) ((void)(condition))
#define pthread_cond_wait(condition, mutex) weak_cond_wait(condition, mutex)
#define pthread_cond_broadcast(condition) weak_cond_broadcast(condition)
#undef PRN_GROW
#define PRN_GROW(array, capacity, count) ((capacity) = (count), (array) = weak_grow(array, (count) * sizeof *(array)))
#define prn_alloc(bytes) weak_alloc(16, bytes)
#define prn_calloc(count, bytes) weak_alloc(16, (count) * (bytes))
#define prn_alloc_aligned(alignment, bytes) weak_alloc(alignment, bytes)
#define prn_free(memory) weak_free(memory)
#define prn_free_aligned(memory) weak_free(memory)

/* Explores the program, which must be correct; prints what was explored. */
static inline void weak_assert_correct(const char *name, const weak_program *program)
{
    const weak_result r = weak_explore(program, NULL);
    if (r.fault != WEAK_CORRECT) print_error("%s: %s\n", name, r.message);
    assert_int_equal(r.fault, WEAK_CORRECT);
    print_message("%s: %ld executions, %ld execution graphs\n", name, r.executions, r.graphs);
}

typedef struct weak_needed {
    const weak_program *program;
    weak_weakening weakening;
    weak_fault fault;
} weak_needed;

/* Explores each program with its one operation weakened, which must have the fault. */
static inline void weak_assert_needed(const weak_needed *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const weak_result r = weak_explore(rows[i].program, &rows[i].weakening);
        print_message("%s, weakened to order %d: %s\n", rows[i].weakening.label, rows[i].weakening.order,
                      r.fault ? r.message : "no fault");
        assert_true(r.weakened);
        assert_int_equal(r.fault, rows[i].fault);
    }
}

#endif
