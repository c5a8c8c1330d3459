/* Intra-op threads: tasks go to the calling thread's thread pool (thread_pool.c). OpenMP's thread count is only limited
 * for the libraries that use it. */
#include "base/threads/parallel.h"
#include "base/integers.h"
#include "base/threads/cancel.h"
#include "base/threads/thread_pool.h"

#include <stdatomic.h>

#ifdef PRN_HAVE_OPENMP
#include <omp.h>

int prn_openmp_limit(int threads)
{
    int former = omp_get_max_threads();
    if (omp_get_dynamic()) omp_set_dynamic(0);
    if (omp_get_max_active_levels() < 1) omp_set_max_active_levels(1);
    if (former != threads) omp_set_num_threads(threads);
    return former;
}

void prn_openmp_restore(int former)
{
    if (omp_get_max_threads() != former) omp_set_num_threads(former);
}
#else
int prn_openmp_limit(int threads)
{
    (void)threads;
    return 1;
}

void prn_openmp_restore(int former)
{
    (void)former;
}
#endif

void prn_parallel_tasks(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument)
{
    prn_thread_pool_run(threads, tasks, fn, argument);
}

/* Chosen without measurement. MOST_PIECES bounds tasks for every number of threads, so results do not depend on it. */
enum { MOST_PIECES = 64, PIECE_MULTIPLE = 64, LOOK_UP = 1 << 16 };

typedef struct range {
    void (*fn)(void *argument, int64_t begin, int64_t end);
    void *argument;
    int64_t count, piece, pieces;
    int64_t step; /* elements between two tests for cancellation */
} range;

static void run_steps(const range *range, int64_t begin, int64_t end)
{
    while (begin < end && !prn_cancelled()) {
        int64_t to = end - begin < 2 * range->step ? end : begin + range->step;
        range->fn(range->argument, begin, to);
        begin = to;
    }
}

static void parallel_run_piece(void *argument, int64_t task)
{
    const range *range = argument;
    int64_t begin = task * range->piece;
    run_steps(range, begin, task + 1 == range->pieces ? range->count : begin + range->piece);
}

void prn_parallel_range(int threads, int64_t count, int64_t grain,
                        void (*fn)(void *argument, int64_t begin, int64_t end), void *argument)
{
    if (count <= 0) return;
    if (grain < 1) grain = 1;
    if (count <= grain || count <= PIECE_MULTIPLE) {
        fn(argument, 0, count);
        return;
    }
    int64_t piece = (count - 1) / MOST_PIECES + 1;
    if (piece < grain) piece = grain;
    piece = ((piece - 1) / PIECE_MULTIPLE + 1) * PIECE_MULTIPLE;
    range range = {fn, argument, count, piece, (count - 1) / piece + 1, 0};
    range.step = grain > LOOK_UP ? ((grain - 1) / PIECE_MULTIPLE + 1) * PIECE_MULTIPLE : LOOK_UP;
    int64_t last = count - (range.pieces - 1) * piece;
    if (range.pieces > 1 && last < grain) range.pieces--;
    prn_parallel_tasks(threads, range.pieces, parallel_run_piece, &range);
}

#define ITEM_BYTES (64 * 1024)           /* traffic of a task; chosen without measurement */
#define LOOK_UP_ITEM_BYTES (1024 * 1024) /* traffic between two tests for cancellation */

typedef struct items_work {
    int64_t items, per_task;
    int64_t step; /* items between two tests */
    void (*fn)(void *argument, int64_t begin, int64_t end);
    void *argument;
} items_work;

static void items_task(void *argument, int64_t task)
{
    const items_work *work = argument;
    int64_t begin = task * work->per_task;
    int64_t end = begin + work->per_task < work->items ? begin + work->per_task : work->items;
    while (begin < end && !prn_cancelled()) {
        int64_t to = end - begin < work->step ? end : begin + work->step;
        work->fn(work->argument, begin, to);
        begin = to;
    }
}

void prn_parallel_items(int threads, int64_t items, int64_t bytes,
                        void (*fn)(void *argument, int64_t begin, int64_t end), void *argument)
{
    if (items <= 0) return;
    int64_t tasks = bytes / ITEM_BYTES + 1;
    if (tasks > MOST_PIECES) tasks = MOST_PIECES;
    if (tasks > items) tasks = items;
    items_work work = {items, prn_ceil_div(items, tasks), 1, fn, argument};
    work.step += LOOK_UP_ITEM_BYTES / (bytes / items + 1);
    prn_parallel_tasks(threads, prn_ceil_div(items, work.per_task), items_task, &work);
}

/* Chosen without measurement. */
enum { MOST_RUNS = 32 };

typedef struct slot_run {
    _Alignas(64) atomic_int_fast64_t next;
    int64_t end;
} slot_run;

typedef struct prn_slot_work {
    void (*fn)(void *argument, prn_slot *slot);
    void *argument;
    int64_t runs; /* slot i begins with run i % runs */
    slot_run run[MOST_RUNS];
} slot_work;

static void parallel_run_slot(void *argument, int64_t index)
{
    slot_work *work = argument;
    prn_slot slot = {.index = index, .work = work};
    work->fn(work->argument, &slot);
}

int64_t prn_slot_next(prn_slot *slot)
{
    slot_work *work = slot->work;
    for (; slot->at < work->runs && !prn_cancelled(); slot->at++) {
        slot_run *run = &work->run[(slot->index + slot->at) % work->runs];
        const int64_t task = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (task < run->end) return task;
    }
    return -1;
}

void prn_parallel_slots(int threads, int64_t slots, int64_t tasks, void (*fn)(void *argument, prn_slot *slot),
                        void *argument)
{
    slot_work work;
    work.fn = fn;
    work.argument = argument;
    work.runs = slots < MOST_RUNS ? slots : MOST_RUNS;
    for (int64_t i = 0; i < work.runs; i++) {
        atomic_init(&work.run[i].next, i * tasks / work.runs);
        work.run[i].end = (i + 1) * tasks / work.runs;
    }
    prn_parallel_tasks(threads, slots, parallel_run_slot, &work);
}

static void do_nothing(void *argument, int64_t task)
{
    (void)argument;
    (void)task;
}

void prn_thread_pool_warm(int threads)
{
    prn_parallel_tasks(threads, threads, do_nothing, 0);
}
