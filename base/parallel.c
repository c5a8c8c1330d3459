/* Intra-op threads over OpenMP, or a plain loop where the build has none. Tasks are claimed from an atomic counter, so
 * a late or missing team member costs balance, never results. Regions always ask for the caller's full budget: libgomp
 * rebuilds a team that changes size, and members that find no task return at once.
 * Settings that OMP_* variables give a thread are put right before each region; OMP_THREAD_LIMIT alone cannot be
 * overruled at run time, and then tasks are claimed by fewer threads. */
#include "base/parallel.h"

#include <stdbool.h>

#ifdef PRN_HAVE_OPENMP
#include <omp.h>
#endif

typedef struct job {
    void (*fn)(void *argument, int64_t task);
    void *argument;
    int64_t tasks;
    int64_t next;
} job;

#ifdef PRN_HAVE_OPENMP
static void claim_tasks(job *job)
{
    for (;;) {
        int64_t task = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (task >= job->tasks) return;
        job->fn(job->argument, task);
    }
}

static void overrule_environment(void)
{
    if (omp_get_dynamic()) omp_set_dynamic(0);
    if (omp_get_max_active_levels() < 1) omp_set_max_active_levels(1);
}

static bool run_in_team(int threads, job *job)
{
    if (threads <= 1 || job->tasks <= 1 || omp_in_parallel()) return false;
    overrule_environment();
#pragma omp parallel num_threads(threads)
    claim_tasks(job);
    return true;
}

int prn_team_set(int threads)
{
    int former = omp_get_max_threads();
    overrule_environment();
    if (former != threads) omp_set_num_threads(threads);
    return former;
}

void prn_team_restore(int former)
{
    if (omp_get_max_threads() != former) omp_set_num_threads(former);
}
#else
static bool run_in_team(int threads, job *job)
{
    (void)threads;
    (void)job;
    return false;
}

int prn_team_set(int threads)
{
    (void)threads;
    return 1;
}

void prn_team_restore(int former)
{
    (void)former;
}
#endif

void prn_parallel_tasks(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument)
{
    job job = {fn, argument, tasks, 0};
    if (run_in_team(threads, &job)) return;
    for (int64_t task = 0; task < tasks; task++) fn(argument, task);
}

enum { MOST_PIECES = 64, PIECE_MULTIPLE = 64 };

typedef struct range {
    void (*fn)(void *argument, int64_t begin, int64_t end);
    void *argument;
    int64_t count, piece, pieces;
} range;

static void run_piece(void *argument, int64_t task)
{
    const range *range = argument;
    int64_t begin = task * range->piece;
    range->fn(range->argument, begin, task + 1 == range->pieces ? range->count : begin + range->piece);
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
    range range = {fn, argument, count, piece, (count - 1) / piece + 1};
    int64_t last = count - (range.pieces - 1) * piece;
    if (range.pieces > 1 && last < grain) range.pieces--;
    prn_parallel_tasks(threads, range.pieces, run_piece, &range);
}

static void do_nothing(void *argument, int64_t task)
{
    (void)argument;
    (void)task;
}

void prn_team_warm(int threads)
{
    prn_parallel_tasks(threads, threads, do_nothing, 0);
}
