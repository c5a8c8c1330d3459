/* The thread pool's protocols under C11's memory model (weak_memory.h), by base/threads/thread_pool.c itself: tasks see
 * what their caller wrote, the caller sees what tasks wrote, no wake-up is lost, and the last user frees the memory.
 * Then the same with one operation's order weakened, which must show. */
#include "weak_source.h"

#include "base/threads/thread_pool.c"

enum { TASKS = 2 };

static int given[TASKS], results[TASKS];
static int job_value, job_result;
static prn_thread_pool *pool;

static void work(void *argument, int64_t task)
{
    results[task] += *(int *)argument + given[task];
}

static void run_tasks(int value)
{
    for (int t = 0; t < TASKS; t++) given[t] = value;
    prn_thread_pool_run(2, TASKS, work, &value);
    for (int t = 0; t < TASKS; t++) weak_require(results[t] == 2 * value, "each task ran once");
    for (int t = 0; t < TASKS; t++) results[t] = 0;
}

/* ---- a caller with a thread pool of its own, from the first run to the end of its thread ---- */

static void label_pool(prn_thread_pool *t)
{
    weak_label(&t->epoch, sizeof t->epoch, "epoch");
    weak_label(&t->sleepers, sizeof t->sleepers, "sleepers");
    weak_label(&t->owners_waiting, sizeof t->owners_waiting, "owners_waiting");
    weak_label(&t->quit, sizeof t->quit, "quit");
    weak_label(&t->holders, sizeof t->holders, "holders");
    weak_label(&t->references, sizeof t->references, "references");
    weak_label(&t->threads, sizeof t->threads, "threads");
    weak_label(&t->slots[0].latch, sizeof t->slots[0].latch, "latch");
    weak_label(&t->slots[0].width, sizeof t->slots[0].width, "width");
    weak_pin(&t->spins, 0);
}

static void one_pool(void)
{
    memset(given, 0, sizeof given);
    memset(results, 0, sizeof results);
    job_value = job_result = 0;
    pool = make_pool(false);
    label_pool(pool);
}

static void own_pool_once(void)
{
    own_pool = pool;
    run_tasks(3);
    prn_thread_pool_release(own_pool); /* its last thread frees it */
    own_pool = NULL;
}

static const weak_program life = {one_pool, {own_pool_once}, NULL};

/* ---- two jobs in one slot, whose memory is reused ---- */

static void enter_job(void *argument, int thread)
{
    (void)thread;
    job_result = *(int *)argument;
}

static void run_job(int value)
{
    prn_job_slot *slot = &pool->slots[0];
    job_value = value;
    slot->enter = enter_job;
    slot->argument = &job_value;
    prn_job_slot_open(slot, 1);
    prn_job_slot_close(slot);
    weak_require(job_result == 0 || job_result == value, "the worker took part in this job");
    job_result = 0;
}

static void run_two_jobs(void)
{
    run_job(3);
    run_job(5);
}

static void run_one_job(void)
{
    run_job(3);
}

static void work_until_the_end(void)
{
    worker *w = weak_alloc(16, sizeof *w);
    *w = (worker){pool, 1};
    weak_may_wait();
    thread_pool_work(w);
}

/* Both find the latch open, but one at a time may enter. */
static void enter_once(void)
{
    prn_job_slot *slot = &pool->slots[0];
    if (!prn_job_slot_enter(slot)) return;
    slot->enter(slot->argument, 1);
    prn_job_slot_leave(slot);
}

static const weak_program jobs = {one_pool, {run_two_jobs, work_until_the_end}, NULL};
static const weak_program workers = {one_pool, {run_one_job, enter_once, enter_once}, NULL};

static void the_pool_is_correct(void **state)
{
    (void)state;
    weak_assert_correct("a run of two threads and the end of the pool", &life);
    weak_assert_correct("two jobs in one slot", &jobs);
    weak_assert_correct("one entry and two workers", &workers);
}

static void weaker_orders_are_faults(void **state)
{
    static const weak_needed rows[] = {
        {&life, {"latch", WEAK_STORE, __ATOMIC_RELAXED}, WEAK_RACE},
        {&life, {"latch", WEAK_LOAD, __ATOMIC_ACQUIRE}, WEAK_WAITS_FOREVER},
        {&life, {"latch", WEAK_SUB, __ATOMIC_ACQ_REL}, WEAK_WAITS_FOREVER},
        {&life, {"owners_waiting", WEAK_LOAD, __ATOMIC_ACQUIRE}, WEAK_WAITS_FOREVER},
        {&life, {"owners_waiting", WEAK_ADD, __ATOMIC_ACQ_REL}, WEAK_WAITS_FOREVER},
        {&life, {"references", WEAK_SUB, __ATOMIC_RELAXED}, WEAK_RACE},
        {&jobs, {"latch", WEAK_STORE, __ATOMIC_RELAXED}, WEAK_RACE},
    };
    (void)state;
    weak_assert_needed(rows, sizeof rows / sizeof rows[0]);
}

int main(void)
{

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pool_is_correct),
        cmocka_unit_test(weaker_orders_are_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
