/* Chooses the number of workers: as requested, or automatically the one with the shortest run by analytic cost. The
 * time comes from simulated list scheduling, longest path first, where a step takes its cost divided by its threads. */
#include "engine/plan/workers.h"

#include "base/memory/alloc.h"
#include "base/threads/cancel.h"

#include <stdio.h>

/* Rates of one thread if this machine was not measured, and costs of sharing: estimates, chosen without measurement. */
#define GUESSED_FLOPS_PER_NS 32.0
#define GUESSED_BYTES_PER_NS 8.0

#define FORK_NS 3000.0                    /* cost of sharing a step among threads */
#define SHARE_NS 15000.0                  /* work below which no further thread takes part in a step */
#define SHARED_EFFICIENCY 0.93            /* of threads in one step, imbalance and shared caches included */
#define WORTH 0.95                        /* several workers may take at most this share of one worker's time */
#define MOST_MEMORY 1.5                   /* and at most this multiple of its arena, */
#define SMALL_MEMORY (UINT64_C(16) << 20) /* unless the difference is at most so many bytes */

/* ---- the schedule on paper ---- */

typedef struct paper {
    const prn_step_graph *graph;
    uint32_t *heap, *left; /* ranks of ready steps, the most urgent on top; open edges that lead to a step */
    uint32_t ready;
    double *end_ns; /* [workers] end of the step that each runs; < 0: idle */
    uint32_t *step;
    int workers, running;
} paper;

static void push(paper *p, uint32_t rank)
{
    uint32_t at = p->ready++;
    for (; at > 0 && p->heap[(at - 1) / 2] > rank; at = (at - 1) / 2) p->heap[at] = p->heap[(at - 1) / 2];
    p->heap[at] = rank;
}

static uint32_t pop(paper *p)
{
    uint32_t top = p->heap[0], last = p->heap[--p->ready], at = 0;
    for (uint32_t child; (child = 2 * at + 1) < p->ready; at = child) {
        if (child + 1 < p->ready && p->heap[child + 1] < p->heap[child]) child++;
        if (p->heap[child] >= last) break;
        p->heap[at] = p->heap[child];
    }
    p->heap[at] = last;
    return top;
}

static double workers_time_of(double cost_ns, int threads)
{
    int useful = (int)(cost_ns / SHARE_NS < threads ? cost_ns / SHARE_NS : threads);
    return useful > 1 ? FORK_NS + cost_ns / (useful * SHARED_EFFICIENCY) : cost_ns;
}

/* Gives ready steps to free workers; threads of idle workers help the others. */
static void start_steps(paper *p, double now, int threads)
{
    int busy = p->running + (int)(p->ready < (uint32_t)p->workers ? p->ready : (uint32_t)p->workers);
    if (busy > p->workers) busy = p->workers;
    for (int w = 0; w < p->workers && p->ready; w++) {
        if (p->end_ns[w] >= 0) continue;
        uint32_t s = p->graph->by_rank[pop(p)];
        p->step[w] = s;
        p->end_ns[w] = now + workers_time_of(p->graph->cost_ns[s], p->workers * threads / busy);
        p->running++;
    }
}

static double workers_end_step(paper *p)
{
    const prn_step_graph *g = p->graph;
    int first = -1;
    for (int w = 0; w < p->workers; w++)
        if (p->end_ns[w] >= 0 && (first < 0 || p->end_ns[w] < p->end_ns[first])) first = w;
    double now = p->end_ns[first];
    uint32_t s = p->step[first];
    p->end_ns[first] = -1;
    p->running--;
    for (uint32_t e = g->next_begin[s]; e < g->next_begin[s + 1]; e++)
        if (--p->left[g->next[e]] == 0) push(p, g->rank[g->next[e]]);
    return now;
}

prony_status prn_workers_time(const prn_step_graph *graph, int workers, int threads, double *ns, prony_error *error)
{
    paper p = {.graph = graph,
               .heap = prn_calloc(graph->step_count + (size_t)1, sizeof *p.heap),
               .left = prn_calloc(graph->step_count + (size_t)1, sizeof *p.left),
               .end_ns = prn_calloc((size_t)workers, sizeof *p.end_ns),
               .step = prn_calloc((size_t)workers, sizeof *p.step),
               .workers = workers};
    bool ok = p.heap && p.left && p.end_ns && p.step;
    *ns = 0;
    for (int w = 0; ok && w < workers; w++) p.end_ns[w] = -1;
    for (uint32_t s = 0; ok && s < graph->step_count; s++) {
        p.left[s] = graph->before_count[s];
        if (p.left[s] == 0) push(&p, graph->rank[s]);
    }
    while (ok && (p.ready || p.running) && !prn_cancelled()) {
        start_steps(&p, *ns, threads);
        *ns = workers_end_step(&p);
    }
    prn_free(p.heap);
    prn_free(p.left);
    prn_free(p.end_ns);
    prn_free(p.step);
    return ok ? prn_cancel_check(error) : prn_no_memory(error);
}

/* ---- the choice ---- */

static int threads_beside(const prn_plan_options *options, int workers)
{
    if (options->threads > 0) return options->threads;
    return options->cores > workers ? options->cores / workers : 1;
}

static int threads_of_all(int workers, int threads)
{
    return workers > PRN_MOST_THREADS / threads ? PRN_MOST_THREADS : workers * threads;
}

int prn_plan_most_threads(const prn_plan_options *options)
{
    if (options->workers == PRN_WORKERS_AUTO)
        return options->cores > options->threads ? options->cores : options->threads;
    const int workers = options->workers < 2                  ? 1
                        : options->workers < PRN_MOST_WORKERS ? options->workers
                                                              : PRN_MOST_WORKERS;
    const int threads = threads_beside(options, workers);
    return options->no_work_stealing ? threads : threads_of_all(workers, threads);
}

/* Takes the number of workers with the shortest simulated run, if that is below WORTH of one worker's, and writes the
 * note. */
static prony_status workers_choose(prn_plan *plan, prony_error *error)
{
    const prn_plan_options *o = &plan->options;
    const prn_step_graph *g = plan->parallel.graph;
    int most = o->cores / (o->threads > 0 ? o->threads : 1), best = 1;
    double one_ns = 0, best_ns;
    PRN_TRY(prn_workers_time(g, 1, threads_beside(o, 1), &one_ns, error));
    best_ns = one_ns * WORTH;
    for (int workers = 2; workers <= most && workers <= PRN_MOST_WORKERS; workers++) {
        double ns;
        PRN_TRY(prn_workers_time(g, workers, threads_beside(o, workers), &ns, error));
        if (ns >= best_ns) continue;
        best_ns = ns;
        best = workers;
    }
    double share = g->total_ns > 0 ? 100 * g->critical_ns / g->total_ns : 100;
    if (most < 2)
        snprintf(plan->parallel.note, sizeof plan->parallel.note,
                 "1 worker: %d thread%s of %d core%s leave%s no room for more", threads_beside(o, 1),
                 threads_beside(o, 1) == 1 ? "" : "s", o->cores, o->cores == 1 ? "" : "s",
                 threads_beside(o, 1) == 1 ? "s" : "");
    else if (best == 1)
        snprintf(plan->parallel.note, sizeof plan->parallel.note,
                 "1 worker: the critical path is %.0f %% of the work, so more workers gain less than 5 %%", share);
    else
        snprintf(plan->parallel.note, sizeof plan->parallel.note,
                 "%d workers: the critical path is %.0f %% of the work; estimated time %.0f %% of one worker's", best,
                 share, 100 * best_ns / one_ns);
    plan->parallel.workers = best;
    return PRONY_OK;
}

/* `most`: threads that may work on one step, stealing ones included; kernels split their work for so many. */
static void set_threads(prn_plan *plan, int threads, int most)
{
    plan->parallel.threads = threads;
    for (size_t s = 0; s < plan->step_count; s++) {
        prn_step *step = plan->steps[s];
        step->context.threads = most;
        for (uint32_t c = 0; step->children && c < step->node->child_count; c++)
            if (step->children[c]) set_threads(step->children[c], threads, most);
    }
}

/* Plans one worker, whose operators get `threads` threads. */
static void take_one_worker(prn_plan *plan, int threads)
{
    plan->parallel.workers = 1;
    prn_step_graph_release(plan->parallel.graph);
    plan->parallel.graph = NULL;
    set_threads(plan, threads, threads);
}

void prn_plan_drop_workers(prn_plan *plan)
{
    take_one_worker(plan, threads_beside(&plan->options, 1));
}

/* true: every step depends on the one before it. In a total order neighbours have a direct edge. */
static bool is_chain(const prn_step_graph *g)
{
    for (uint32_t s = 0; s + 1 < g->step_count; s++) {
        uint32_t e = g->next_begin[s];
        while (e < g->next_begin[s + 1] && g->next[e] != s + 1) e++;
        if (e == g->next_begin[s + 1]) return false;
    }
    return true;
}

/* Steps cannot run in parallel, so no schedule is made. Operators get the threads of all workers or, without work
 * stealing, of one. */
static void run_as_chain(prn_plan *plan, int workers)
{
    const int threads = threads_beside(&plan->options, workers);
    snprintf(plan->parallel.note, sizeof plan->parallel.note,
             "1 worker: every operator needs the one before it, so none run side by side%s",
             plan->options.no_work_stealing ? "" : "; the other threads help inside operators");
    take_one_worker(plan, plan->options.no_work_stealing ? threads : threads_of_all(workers, threads));
}

bool prn_plan_affords_workers(prn_plan *plan, uint64_t one_bytes, uint64_t bytes)
{
    if ((double)bytes <= MOST_MEMORY * (double)one_bytes || bytes <= one_bytes + SMALL_MEMORY) return true;
    snprintf(plan->parallel.note, sizeof plan->parallel.note,
             "1 worker: %d workers would need an arena of %.1f times the size", plan->parallel.workers,
             (double)bytes / (double)one_bytes);
    return false;
}

static prony_status make_graph(prn_plan *plan, const prn_makers *makers, prony_error *error)
{
    prn_step_rates rates = plan->options.rates;
    if (!(rates.flops_per_ns > 0)) rates.flops_per_ns = GUESSED_FLOPS_PER_NS;
    if (!(rates.bytes_per_ns > 0)) rates.bytes_per_ns = GUESSED_BYTES_PER_NS;
    return prn_step_graph_create(&plan->parallel.graph, plan, makers, &rates, error);
}

/* Makers have to be found before removed steps leave the plan, because those pass on makers. A graph with too many
 * edges means one worker. */
prony_status prn_plan_choose_workers(prn_plan *plan, void (*close_ranks)(prn_plan *plan), prony_error *error)
{
    int asked = plan->options.workers;
    plan->parallel.workers = 1;
    if (plan->nested.outer || asked == 0 || asked == 1) {
        close_ranks(plan);
        return PRONY_OK;
    }
    prn_makers makers = {0};
    prony_error edges = {0};
    prony_status status = prn_makers_find(&makers, plan, &edges);
    close_ranks(plan);
    if (status == PRONY_OK) status = make_graph(plan, &makers, &edges);
    prn_makers_free(&makers);
    if (status != PRONY_OK && status != PRONY_LIMIT && error) *error = edges;
    if (status == PRONY_LIMIT) { /* so dense a graph leaves no parallel work */
        snprintf(plan->parallel.note, sizeof plan->parallel.note, "1 worker: %.100s", edges.message);
        status = PRONY_OK;
    } else if (status == PRONY_OK && asked == PRN_WORKERS_AUTO) {
        status = workers_choose(plan, error);
    } else if (status == PRONY_OK && is_chain(plan->parallel.graph)) {
        run_as_chain(plan, asked < PRN_MOST_WORKERS ? asked : PRN_MOST_WORKERS);
        return PRONY_OK;
    } else if (status == PRONY_OK) {
        plan->parallel.workers = asked < PRN_MOST_WORKERS ? asked : PRN_MOST_WORKERS;
    }
    if (plan->parallel.workers == 1) {
        prn_plan_drop_workers(plan);
    } else {
        const int threads = threads_beside(&plan->options, plan->parallel.workers);
        set_threads(plan, threads,
                    plan->options.no_work_stealing ? threads : threads_of_all(plan->parallel.workers, threads));
    }
    return status;
}
