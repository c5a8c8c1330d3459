/* The executor under C11's memory model (weak_memory.h), by base/threads/executor.c and thread_pool.c themselves: its
 * caller waits for steps that a worker has begun, wakes, and sees what they wrote. */
#include "weak_source.h"

#include "base/threads/thread_pool.c"
#include "base/threads/executor.c"

static prn_thread_pool *pool;
static prn_executor *executor;
static _Atomic int next_step, left;
static int results[2], taken_by[2];

/* As engine/plan/schedule.c: a step is claimed once; the last one to end wakes the caller. */
static bool take_step(void *argument, int number)
{
    (void)argument;
    taken_by[number]++; /* a worker's own state */
    const int step = atomic_fetch_add(&next_step, 1);
    if (step >= 2) return false;
    results[step]++;
    if (atomic_fetch_sub(&left, 1) == 1) prn_executor_announce(executor);
    return true;
}

static bool steps_are_over(void *argument)
{
    (void)argument;
    return atomic_load(&left) == 0;
}

static void one_executor(void)
{
    memset(results, 0, sizeof results);
    memset(taken_by, 0, sizeof taken_by);
    atomic_init(&next_step, 0);
    atomic_init(&left, 2);
    pool = make_pool(true);
    pool->slot_count = 1;
    atomic_init(&pool->threads, 1);
    if (prn_executor_create(&executor, pool, 2, 1, false, NULL) != PRONY_OK) abort();
    weak_label(&pool->epoch, sizeof pool->epoch, "epoch");
    weak_label(&pool->sleepers, sizeof pool->sleepers, "sleepers");
    weak_label(&pool->owners_waiting, sizeof pool->owners_waiting, "owners_waiting");
    weak_label(&pool->slots[0].latch, sizeof pool->slots[0].latch, "latch");
    weak_label(&executor->worker_taken[1], sizeof executor->worker_taken[1], "worker_taken");
    weak_label(&left, sizeof left, "left");
    weak_label(&next_step, sizeof next_step, "next_step");
    weak_pin(&pool->spins, 0);
    weak_pin(&pool->quit, 0);
    for (int w = 0; w < 2; w++) {
        weak_pin(&executor->slots[w].width, 0); /* no step has tasks */
    }
}

static void run_steps(void)
{
    const prn_executor_work work = {take_step, steps_are_over, NULL};
    prn_executor_run(executor, &work);
    weak_require(results[0] == 1 && results[1] == 1, "each step ran once");
}

static void enter_once(void)
{
    prn_job_slot *slot = &pool->slots[0];
    weak_may_wait();
    if (!prn_job_slot_enter(slot)) return;
    slot->enter(slot->argument, 1);
    prn_job_slot_leave(slot);
}

static void two_entries(void)
{
    one_executor();
    executor->threads = 2; /* both threads may enter; there is one worker */
}

static const weak_program run = {one_executor, {run_steps, enter_once}, NULL};
static const weak_program entries = {two_entries, {run_steps, enter_once, enter_once}, NULL};

static void the_executor_is_correct(void **state)
{
    (void)state;
    weak_assert_correct("an executor of two threads", &run);
}

/* Takes a minute: a test of its own. */
static void two_entries_are_correct(void **state)
{
    (void)state;
    weak_assert_correct("three threads, two workers", &entries);
}

static void weaker_orders_are_faults(void **state)
{
    static const weak_needed rows[] = {
        {&run, {"epoch", WEAK_LOAD, __ATOMIC_ACQUIRE}, WEAK_WAITS_FOREVER},
        {&run, {"epoch", WEAK_ADD, __ATOMIC_ACQ_REL}, WEAK_WAITS_FOREVER},
        {&run, {"sleepers", WEAK_LOAD, __ATOMIC_ACQUIRE}, WEAK_WAITS_FOREVER},
        {&run, {"sleepers", WEAK_ADD, __ATOMIC_ACQ_REL}, WEAK_WAITS_FOREVER},
        {&entries, {"worker_taken", WEAK_STORE, __ATOMIC_RELAXED}, WEAK_RACE},
        {&entries, {"worker_taken", WEAK_COMPARE, __ATOMIC_RELAXED}, WEAK_RACE},
    };
    (void)state;
    weak_assert_needed(rows, sizeof rows / sizeof rows[0]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest large[] = {cmocka_unit_test(two_entries_are_correct)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_executor_is_correct),
        cmocka_unit_test(weaker_orders_are_faults),
    };
    if (argc > 1 && strcmp(argv[1], "large") == 0) return cmocka_run_group_tests(large, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
