/* The thread layer: every task once, the same pieces for every thread count, OMP_* variables without effect, callers on
 * several threads at once. Runs under ThreadSanitizer as well. */
#include "failure_trace.h"
#include "base/os/clock.h"
#include "base/threads/parallel.h"
#include "base/threads/thread_pool.h"
#include "prony.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TASKS = 1000, LENGTH = 100003 };

static void count_task(void *argument, int64_t task)
{
    int *runs = argument;
    runs[task]++;
}

/* Both tasks are in progress at once, so two threads take part. */
typedef struct pair {
    _Atomic int inside;
    int64_t around_ns[2];
} pair;

static void no_work(void *argument, int64_t task)
{
    (void)argument;
    (void)task;
}

static void pair_up(void *argument, int64_t task)
{
    pair *m = argument;
    (void)task;
    atomic_fetch_add(&m->inside, 1);
    while (atomic_load(&m->inside) % 2) sched_yield();
    prn_parallel_tasks(2, 5, no_work, NULL); /* part of the task */
}

static void check_share(const prn_thread_pool_share *share, const pair *m, int64_t tasks)
{
    assert_int_equal(share->tasks, tasks);
    assert_true(share->start_ns >= m->around_ns[0] && share->end_ns <= m->around_ns[1]);
    assert_true(share->busy_ns >= 0 && share->busy_ns <= share->end_ns - share->start_ns);
}

static void a_watched_team_tells_who_did_what(void **state)
{
    (void)state;
    pair m = {.around_ns = {prn_now_ns()}};
    prn_thread_pool_share shares[4] = {{0}}, none = {0};
    prn_thread_pool_watch(shares, 3);
    for (int i = 0; i < 10; i++) prn_parallel_tasks(2, 2, pair_up, &m);
    m.around_ns[1] = prn_now_ns();
    check_share(&shares[0], &m, 10);
    check_share(&shares[1], &m, 10);
    assert_memory_equal(&shares[2], &none, sizeof none);
    prn_parallel_tasks(1, 7, no_work, NULL); /* alone: the caller's */
    m.around_ns[1] = prn_now_ns();
    check_share(&shares[0], &m, 17);
    prn_thread_pool_watch(NULL, 0);
    prn_parallel_tasks(2, 2, pair_up, &m);
    prn_parallel_tasks(1, 7, no_work, NULL);
    assert_int_equal(shares[0].tasks + shares[1].tasks, 27);
    prn_thread_pool_watch(shares, 1); /* no room for the other one */
    prn_parallel_tasks(2, 2, pair_up, &m);
    prn_thread_pool_watch(NULL, 0);
    assert_int_equal(shares[0].tasks, 18);
    assert_int_equal(shares[1].tasks, 10);
}

static void every_task_runs_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        SCENARIO(threads);
        int runs[TASKS] = {0};
        prn_parallel_tasks(threads, TASKS, count_task, runs);
        for (int i = 0; i < TASKS; i++) assert_int_equal(runs[i], 1);
    }
    prn_parallel_tasks(4, 0, count_task, NULL);
}

enum { MOST_SLOTS = 70 };

typedef struct slot_counts {
    int runs[TASKS];
    _Atomic int inside[MOST_SLOTS];
    _Atomic int unordered; /* tasks that came before the one before them */
    _Atomic int more;      /* tasks behind the last one */
} slot_counts;

static void count_slot(void *argument, prn_slot *slot)
{
    slot_counts *counts = argument;
    atomic_fetch_add(&counts->inside[slot->index], 1);
    int64_t before = -1;
    for (int64_t task; (task = prn_slot_next(slot)) >= 0; before = task) {
        counts->runs[task]++;
        if (task <= before) atomic_fetch_add(&counts->unordered, 1);
    }
    if (prn_slot_next(slot) >= 0) atomic_fetch_add(&counts->more, 1);
}

static void slots_share_all_tasks(void **state)
{
    (void)state;
    static const int64_t slots[] = {1, 2, 3, MOST_SLOTS}, tasks[] = {0, 1, 5, TASKS};
    for (size_t i = 0; i < 64; i++) {
        SCENARIO(i);
        slot_counts counts = {.unordered = 0};
        const int64_t some = slots[i % 4], all = tasks[i / 4 % 4];
        prn_parallel_slots(1 + (int)i / 16, some, all, count_slot, &counts);
        for (int64_t task = 0; task < TASKS; task++) assert_int_equal(counts.runs[task], task < all);
        for (int64_t slot = 0; slot < MOST_SLOTS; slot++) assert_int_equal(counts.inside[slot], slot < some);
        assert_int_equal(counts.more, 0);
        if (some == 1) assert_int_equal(counts.unordered, 0);
    }
}

typedef struct pair_slots {
    _Atomic int inside;
    int64_t first[2];
} pair_slots;

static void meet_in_slot(void *argument, prn_slot *slot)
{
    pair_slots *both = argument;
    both->first[slot->index] = prn_slot_next(slot);
    atomic_fetch_add(&both->inside, 1);
    while (atomic_load(&both->inside) < 2) sched_yield();
}

static void a_slot_begins_with_its_own_run(void **state)
{
    (void)state;
    pair_slots both = {.first = {-1, -1}};
    prn_parallel_slots(2, 2, 9, meet_in_slot, &both);
    assert_int_equal(both.first[0], 0);
    assert_int_equal(both.first[1], 4);
}

typedef struct pieces {
    int64_t end_of[LENGTH + 1]; /* by begin; -1: no piece begins here */
} pieces;

static void note_piece(void *argument, int64_t begin, int64_t end)
{
    pieces *pieces = argument;
    pieces->end_of[begin] = end;
}

static void check_pieces(int64_t count, int64_t grain, pieces *one, pieces *four)
{
    memset(one, 0xff, sizeof *one);
    memset(four, 0xff, sizeof *four);
    prn_parallel_range(1, count, grain, note_piece, one);
    prn_parallel_range(4, count, grain, note_piece, four);
    assert_memory_equal(one, four, sizeof *one);
    int64_t at = 0;
    int number = 0;
    while (at < count) {
        int64_t end = one->end_of[at];
        assert_true(end > at && end <= count);
        assert_true(end == count || (end - at) % 64 == 0);
        assert_true(end - at >= grain || at == 0);
        at = end;
        number++;
    }
    assert_in_range(number, 1, 64);
}

static void pieces_depend_on_the_problem_alone(void **state)
{
    (void)state;
    static pieces one, four;
    static const int64_t counts[] = {1, 63, 64, 65, 127, 128, 1000, 4096, 4097, 65537, LENGTH};
    static const int64_t grains[] = {0, 1, 64, 100, 1000, 50000, 1000000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        SCENARIO(c);
        for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) check_pieces(counts[c], grains[g], &one, &four);
    }
    memset(&one, 0xff, sizeof one);
    prn_parallel_range(4, 0, 1, note_piece, &one);
    assert_true(one.end_of[0] == -1);
}

typedef struct sums {
    const float *values;
    double partial[64];
} sums;

static void sum_piece(void *argument, int64_t task)
{
    sums *sums = argument;
    double sum = 0;
    for (int64_t i = task * 1000; i < (task + 1) * 1000; i++) sum += (double)sums->values[i];
    sums->partial[task] = sum;
}

static double sum_of(const float *values, int threads)
{
    sums sums = {.values = values};
    prn_parallel_tasks(threads, 64, sum_piece, &sums);
    double total = 0;
    for (int i = 0; i < 64; i++) total += sums.partial[i];
    return total;
}

static void *sum_many(void *argument)
{
    const float *values = argument;
    double first = sum_of(values, 1);
    for (int i = 0; i < 50; i++) {
        double again = sum_of(values, 1 + i % 4);
        if (memcmp(&again, &first, sizeof first) != 0) return argument;
    }
    return NULL;
}

static void several_callers_each_have_a_team(void **state)
{
    (void)state;
    static float values[64000];
    for (int i = 0; i < 64000; i++) values[i] = 1.0f / (float)(i + 1);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, sum_many, values), 0);
    for (int i = 0; i < 3; i++) {
        SCENARIO(i);
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
}

static void nest(void *argument, int64_t task)
{
    int *runs = argument;
    prn_parallel_tasks(4, 10, count_task, runs + 10 * task);
}

static void a_task_may_ask_for_tasks(void **state)
{
    (void)state;
    int runs[100] = {0};
    prn_parallel_tasks(4, 10, nest, runs);
    for (int i = 0; i < 100; i++) assert_int_equal(runs[i], 1);
}

static void add_one(void *argument, int64_t task)
{
    (void)task;
    atomic_fetch_add((atomic_int *)argument, 1);
}

/* Many short jobs in a row, of changing width, with thread pools that come and go: a load test of the entry latch. */
static void short_jobs_in_a_row_lose_nothing(void **state)
{
    (void)state;
    atomic_int sum = 0;
    int expected = 0;
    for (int round = 0; round < 3000; round++) {
        SCENARIO(round);
        int tasks = 2 + round % 7;
        prn_thread_pool_run(1 + round % 4, tasks, add_one, &sum);
        expected += tasks;
        assert_int_equal(atomic_load(&sum), expected);
        if (round % 500 == 499) prn_thread_pool_shut_down();
    }
}

static void leave_quietly(void *argument, int64_t task)
{
    (void)argument, (void)task;
    prony_threads_shut_down(); /* a task belongs to the pool: nothing happens */
}

/* The last worker to leave frees the pool's memory, so memory that is back at once proves that no worker is left. */
static void shutting_down_waits_for_the_workers(void **state)
{
    (void)state;
    prony_threads_shut_down();
    /* Callers of earlier tests have ended without waiting for their workers, which free the pools of those callers. */
    const int64_t deadline = prn_now_ns() + 60 * INT64_C(1000000000);
    while (prony_memory_in_use() > 0 && prn_now_ns() < deadline) sched_yield();
    const uint64_t before = 0;
    for (int round = 0; round < 50; round++) {
        SCENARIO(round);
        atomic_int sum = 0;
        prn_thread_pool_run(4, 8, add_one, &sum);
        prn_thread_pool_run(4, 8, leave_quietly, NULL);
        assert_int_equal(atomic_load(&sum), 8);
        assert_true(prony_memory_in_use() > before);
        prony_threads_shut_down();
        assert_int_equal(prony_memory_in_use(), before);
        prony_threads_shut_down(); /* nothing is left to end */
    }
}

static void team_sizes_are_restored(void **state)
{
    (void)state;
    int former = prn_openmp_limit(3);
    int inner = prn_openmp_limit(2);
#ifdef PRN_HAVE_OPENMP
    assert_int_equal(inner, 3);
#else
    assert_int_equal(inner, 1);
#endif
    prn_openmp_restore(inner);
    prn_openmp_restore(former);
    assert_int_equal(prn_openmp_limit(former), former);
    prn_thread_pool_warm(4);
}

typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int here;
    int wanted;
} meeting;

/* Returns only when `wanted` threads are in it at once. */
static void meet(void *argument, int64_t task)
{
    (void)task;
    meeting *meeting = argument;
    pthread_mutex_lock(&meeting->lock);
    meeting->here++;
    pthread_cond_broadcast(&meeting->changed);
    while (meeting->here < meeting->wanted) pthread_cond_wait(&meeting->changed, &meeting->lock);
    pthread_mutex_unlock(&meeting->lock);
}

static void the_environment_takes_no_threads_away(void **state)
{
    (void)state;
    meeting meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 4};
    prn_parallel_tasks(4, 4, meet, &meeting);
    assert_int_equal(meeting.here, 4);
}

static void count_range(void *argument, int64_t begin, int64_t end)
{
    int *runs = argument;
    for (int64_t i = begin; i < end; i++) runs[i]++;
}

static void operators_reach_the_same_pieces(void **state)
{
    (void)state;
    static int runs[LENGTH];
    const prony_context context = {.threads = 3};
    prony_parallel_for(&context, LENGTH, 100, count_range, runs);
    for (int i = 0; i < LENGTH; i++) assert_int_equal(runs[i], 1);
}

int main(int argc, char **argv)
{
    /* libgomp reads its variables before main, so the program restarts itself with them. */
    if (argc == 1) {
        setenv("OMP_NUM_THREADS", "1", 1);
        setenv("OMP_DYNAMIC", "true", 1);
        setenv("OMP_MAX_ACTIVE_LEVELS", "0", 1);
        execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_takes_no_threads_away),
        cmocka_unit_test(a_watched_team_tells_who_did_what),
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(slots_share_all_tasks),
        cmocka_unit_test(a_slot_begins_with_its_own_run),
        cmocka_unit_test(pieces_depend_on_the_problem_alone),
        cmocka_unit_test(several_callers_each_have_a_team),
        cmocka_unit_test(a_task_may_ask_for_tasks),
        cmocka_unit_test(short_jobs_in_a_row_lose_nothing),
        cmocka_unit_test(shutting_down_waits_for_the_workers),
        cmocka_unit_test(team_sizes_are_restored),
        cmocka_unit_test(operators_reach_the_same_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
