/* The ready set, the counters of a run, and the work of an executor's workers. */
#include "engine/plan/schedule.h"
#include "engine/plan/step_graph.h"

#include "base/os/clock.h"
#include "base/threads/cancel.h"

#include <stdatomic.h>

#define NONE UINT32_MAX

struct prn_schedule {
    prn_plan *plan;
    prn_executor *executor; /* NULL: the caller alone */

    /* The ready set: bit r of `ready` is the step of rank r; bit w of `summary`: word w may have ready steps. */
    _Atomic uint64_t *ready, *summary;
    size_t words, summary_words;

    _Atomic uint32_t *left;  /* [steps] open edges that lead to the step */
    uint32_t *dynamic;       /* values of the dynamic region that steps make and no output keeps */
    uint32_t *touching;      /* of each, steps that touch it */
    _Atomic uint32_t *alive; /* of each, steps that have not ended */
    uint32_t dynamic_count;
    uint32_t *touch_begin, *touch; /* [steps + 1], into indices of `dynamic` */

    prony_error *errors;  /* [workers] of the first step that failed there */
    prony_error *said;    /* [workers] error of the current step */
    uint32_t *held;       /* [workers] rank of the step that a worker runs next; NONE */
    uint32_t *error_step; /* [workers] NONE: no error */
    prony_status *error_status;

    prn_trace *trace;           /* of the current run */
    _Atomic uint32_t failed_at; /* the first step known to fail; NONE */

    /* Fields that every step writes are on another cache line than fields that all threads read. */
    _Alignas(64) _Atomic uint32_t unfinished; /* steps */
    _Atomic size_t events;
};

/* ---- the ready set ---- */

static void ready_add(prn_schedule *s, uint32_t rank)
{
    atomic_fetch_or(&s->ready[rank / 64], UINT64_C(1) << rank % 64);
    atomic_fetch_or(&s->summary[rank / 4096], UINT64_C(1) << rank / 64 % 64);
}

/* Removes an empty word from the summary, unless it got a step meanwhile. */
static void close_word(prn_schedule *s, size_t word)
{
    atomic_fetch_and(&s->summary[word / 64], ~(UINT64_C(1) << word % 64));
    if (atomic_load(&s->ready[word])) atomic_fetch_or(&s->summary[word / 64], UINT64_C(1) << word % 64);
}

static uint32_t take_from_word(prn_schedule *s, size_t word)
{
    uint64_t bits = atomic_load(&s->ready[word]);
    while (bits) {
        uint64_t first = bits & -bits;
        bits = atomic_fetch_and(&s->ready[word], ~first);
        if (bits & first) return (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(first);
    }
    return NONE;
}

/* Takes the most urgent step and returns its rank. `held` is the caller's already (NONE: none); it returns to the set
 * if another step is more urgent. */
static uint32_t ready_take(prn_schedule *s, uint32_t held)
{
    for (size_t i = 0; i < s->summary_words; i++) {
        for (uint64_t words; (words = atomic_load(&s->summary[i]));) {
            size_t word = i * 64 + (size_t)__builtin_ctzll(words);
            if (held / 64 < word) return held;
            uint32_t rank = take_from_word(s, word);
            if (rank != NONE && held != NONE) ready_add(s, held < rank ? rank : held);
            if (rank != NONE) return held < rank ? held : rank;
            close_word(s, word);
        }
    }
    return held;
}

static bool ready_any(prn_schedule *s)
{
    for (size_t i = 0; i < s->summary_words; i++)
        for (uint64_t words = atomic_load(&s->summary[i]); words; words &= words - 1)
            if (atomic_load(&s->ready[i * 64 + (size_t)__builtin_ctzll(words)])) return true;
    return false;
}

/* ---- steps ---- */

static void schedule_give_back(prn_schedule *s, uint32_t step)
{
    for (uint32_t t = s->touch_begin[step]; t < s->touch_begin[step + 1]; t++) {
        uint32_t d = s->touch[t];
        if (atomic_fetch_sub(&s->alive[d], 1) == 1) prn_plan_give_back(s->plan, s->dynamic[d], step);
    }
}

/* Ends a step. Returns the rank of the most urgent step that became ready, which is not put into the ready set; NONE:
 * no step did. */
static uint32_t schedule_end_step(prn_schedule *s, uint32_t step)
{
    const prn_step_graph *g = s->plan->parallel.graph;
    uint32_t held = NONE;
    schedule_give_back(s, step);
    for (uint32_t e = g->next_begin[step]; e < g->next_begin[step + 1]; e++) {
        uint32_t rank = g->rank[g->next[e]];
        if (atomic_fetch_sub(&s->left[g->next[e]], 1) != 1) continue;
        if (held != NONE) ready_add(s, held < rank ? rank : held);
        held = held < rank ? held : rank;
    }
    if (atomic_fetch_sub(&s->unfinished, 1) == 1 && s->executor) prn_executor_announce(s->executor);
    return held;
}

void prn_schedule_end(prn_schedule *s, uint32_t step)
{
    uint32_t rank = schedule_end_step(s, step);
    if (rank != NONE) ready_add(s, rank);
}

static void note_failure(prn_schedule *s, uint32_t step, int worker, prony_status status)
{
    uint32_t first = atomic_load(&s->failed_at);
    if (step > s->error_step[worker]) return;
    s->error_step[worker] = step;
    s->error_status[worker] = status;
    s->errors[worker] = s->said[worker];
    while (step < first && !atomic_compare_exchange_weak(&s->failed_at, &first, step)) {
    }
    if (s->executor) prn_executor_announce(s->executor);
}

static prony_status schedule_run_stamped(prn_schedule *s, uint32_t step, int worker, prony_error *error)
{
    prn_trace *trace = s->trace;
    size_t event = atomic_fetch_add(&s->events, 1);
    if (trace->shares) {
        bool room = step < trace->share_steps;
        prn_thread_pool_watch(room ? &trace->shares[step * (size_t)trace->members] : NULL, room ? trace->members : 0);
    }
    int64_t start = prn_now_ns();
    prony_status status = prn_plan_step(s->plan, step, error);
    int64_t end = prn_now_ns();
    if (trace->shares) prn_thread_pool_watch(NULL, 0);
    if (event < trace->capacity) trace->events[event] = (prn_event){start, end, step, (uint16_t)worker, 0};
    return status;
}

/* A worker's turn: see prn_executor_work. A worker that ends a step continues with the step made ready, unless another
 * is more urgent. So a chain stays in one thread's caches, and no other thread can begin one of its steps and fall
 * asleep. */
static bool schedule_take(void *argument, int worker)
{
    prn_schedule *s = argument;
    uint32_t rank = ready_take(s, s->held[worker]);
    s->held[worker] = NONE;
    if (rank == NONE) return false;
    uint32_t step = s->plan->parallel.graph->by_rank[rank];
    uint32_t failed_at = atomic_load(&s->failed_at);
    if (step > failed_at || (failed_at != NONE && prn_cancelled())) return true;
    if (s->executor && ready_any(s)) prn_executor_announce(s->executor);
    prony_error *error = &s->said[worker];
    prony_status status = s->trace ? schedule_run_stamped(s, step, worker, error) : prn_plan_step(s->plan, step, error);
    if (status == PRONY_OK)
        s->held[worker] = schedule_end_step(s, step);
    else
        note_failure(s, step, worker, status);
    return true;
}

static bool schedule_over(void *argument)
{
    prn_schedule *s = argument;
    return atomic_load(&s->unfinished) == 0 || atomic_load(&s->failed_at) != NONE;
}

/* ---- runs ---- */

void prn_schedule_begin(prn_schedule *s)
{
    const prn_step_graph *g = s->plan->parallel.graph;
    for (size_t w = 0; w < s->words; w++) atomic_store_explicit(&s->ready[w], 0, memory_order_relaxed);
    for (size_t w = 0; w < s->summary_words; w++) atomic_store_explicit(&s->summary[w], 0, memory_order_relaxed);
    for (uint32_t d = 0; d < s->dynamic_count; d++)
        atomic_store_explicit(&s->alive[d], s->touching[d], memory_order_relaxed);
    for (int w = 0; w < s->plan->parallel.workers; w++) s->error_step[w] = s->held[w] = NONE;
    atomic_store_explicit(&s->unfinished, g->step_count, memory_order_relaxed);
    atomic_store_explicit(&s->failed_at, NONE, memory_order_relaxed);
    atomic_store_explicit(&s->events, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < g->step_count; i++) {
        atomic_store_explicit(&s->left[i], g->before_count[i], memory_order_relaxed);
        if (g->before_count[i] == 0) ready_add(s, g->rank[i]);
    }
}

static prony_status first_failure(const prn_schedule *s, prony_error *error)
{
    uint32_t step = atomic_load(&s->failed_at);
    for (int w = 0; step != NONE && w < s->plan->parallel.workers; w++) {
        if (s->error_step[w] != step) continue;
        if (error) *error = s->errors[w];
        return s->error_status[w];
    }
    return PRONY_OK;
}

prony_status prn_schedule_run(prn_schedule *s, prn_trace *trace, prony_error *error)
{
    const prn_executor_work work = {schedule_take, schedule_over, s};
    s->trace = trace;
    prn_schedule_begin(s);
    s->held[0] = ready_take(s, NONE); /* no other thread can begin a chain */
    if (s->executor)
        prn_executor_run(s->executor, &work);
    else
        while (schedule_take(s, 0)) {
        }
    if (trace) {
        size_t events = atomic_load(&s->events);
        trace->count = events < trace->capacity ? events : trace->capacity;
        trace->dropped += events - trace->count;
    }
    s->plan->run.stopped_at = atomic_load(&s->failed_at); /* NONE is PRN_NO_STEP */
    return first_failure(s, error);
}

uint32_t prn_schedule_take(prn_schedule *s, uint32_t n)
{
    uint32_t taken[64], count = 0, rank = NONE;
    while (count <= n && count < 64 && (rank = ready_take(s, NONE)) != NONE) taken[count++] = rank;
    bool found = count == n + 1;
    for (uint32_t i = 0; i < count - (found ? 1 : 0); i++) ready_add(s, taken[i]);
    return found ? s->plan->parallel.graph->by_rank[rank] : NONE;
}

/* ---- creation ---- */

/* Adds the value to the step's touched values, once. */
static void touch(prn_schedule *s, const uint32_t *index, uint32_t *seen, uint32_t value, uint32_t step,
                  uint32_t *count)
{
    if (value == PRN_NO_VALUE || index[value] == NONE || seen[index[value]] == step) return;
    seen[index[value]] = step;
    if (s->touch) {
        s->touch[*count] = index[value];
        s->touching[index[value]]++;
    }
    ++*count;
}

static void touch_all(prn_schedule *s, const uint32_t *index, uint32_t *seen, uint32_t *count)
{
    const prn_plan *plan = s->plan;
    for (uint32_t d = 0; d < s->dynamic_count; d++) seen[d] = NONE;
    *count = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const prn_step *step = plan->steps[i];
        s->touch_begin[i] = *count;
        for (size_t k = 0; k < step->context.input_count; k++) touch(s, index, seen, step->inputs[k], i, count);
        for (size_t k = 0; k < step->context.output_count; k++) touch(s, index, seen, step->outputs[k], i, count);
        for (uint32_t c = 0; c < step->node->child_count; c++)
            for (uint32_t k = 0; k < step->node->children[c].captured_count; k++)
                touch(s, index, seen, prn_plan_plain(plan, step->node->children[c].captured[k]), i, count);
    }
    s->touch_begin[plan->step_count] = *count;
}

static prony_status find_touches(prn_schedule *s, prony_error *error)
{
    const prn_plan *plan = s->plan;
    uint32_t *index = prn_calloc(plan->value_count + 1, sizeof *index), count = 0;
    uint32_t *seen = prn_calloc(plan->value_count + 1, sizeof *seen);
    prony_status status = PRONY_OK;
    for (uint32_t v = 0; index && v < plan->value_count; v++) {
        const prn_plan_value *value = plan->values[v];
        bool dies = value->dynamic && value->defined != PRN_NO_STEP && value->last_use < plan->step_count;
        index[v] = dies ? s->dynamic_count : NONE;
        if (dies) s->dynamic[s->dynamic_count++] = v;
    }
    if (index && seen) touch_all(s, index, seen, &count);
    if (index && seen) s->touch = prn_calloc(count + (size_t)1, sizeof *s->touch);
    if (s->touch)
        touch_all(s, index, seen, &count);
    else
        status = prn_no_memory(error);
    prn_free(index);
    prn_free(seen);
    return status;
}

/* Allocates everything that runs need, so that a run makes no heap call. */
prony_status prn_schedule_create(prn_schedule **out, prn_plan *plan, prony_error *error)
{
    prn_schedule *s = prn_alloc_aligned(64, sizeof *s);
    if (!s) return prn_no_memory(error);
    *s = (prn_schedule){0};
    size_t steps = plan->step_count + 1, values = plan->value_count + 1, workers = (size_t)plan->parallel.workers;
    s->plan = plan;
    s->words = steps / 64 + 1;
    s->summary_words = s->words / 64 + 1;
    s->ready = prn_calloc(s->words, sizeof *s->ready);
    s->summary = prn_calloc(s->summary_words, sizeof *s->summary);
    s->left = prn_calloc(steps, sizeof *s->left);
    s->dynamic = prn_calloc(values, sizeof *s->dynamic);
    s->touching = prn_calloc(values, sizeof *s->touching);
    s->alive = prn_calloc(values, sizeof *s->alive);
    s->touch_begin = prn_calloc(steps + 1, sizeof *s->touch_begin);
    s->errors = prn_calloc(workers, sizeof *s->errors);
    s->held = prn_calloc(workers, sizeof *s->held);
    s->said = prn_calloc(workers, sizeof *s->said);
    s->error_step = prn_calloc(workers, sizeof *s->error_step);
    s->error_status = prn_calloc(workers, sizeof *s->error_status);
    bool ok = s->ready && s->summary && s->left && s->dynamic && s->touching && s->alive && s->touch_begin &&
              s->errors && s->said && s->held && s->error_step && s->error_status;
    prony_status status = ok ? find_touches(s, error) : prn_no_memory(error);
    if (status == PRONY_OK)
        *out = s;
    else
        prn_schedule_release(s);
    return status;
}

void prn_schedule_release(prn_schedule *s)
{
    if (!s) return;
    prn_executor_release(s->executor);
    prn_free(s->ready);
    prn_free(s->summary);
    prn_free(s->left);
    prn_free(s->dynamic);
    prn_free(s->touching);
    prn_free(s->alive);
    prn_free(s->touch_begin);
    prn_free(s->touch);
    prn_free(s->errors);
    prn_free(s->said);
    prn_free(s->held);
    prn_free(s->error_step);
    prn_free(s->error_status);
    prn_free_aligned(s);
}

prony_status prn_schedule_staff(prn_schedule *s, prn_thread_pool *pool, prony_error *error)
{
    prn_executor *executor = NULL;
    if (pool) {
        PRN_TRY(prn_executor_create(&executor, pool, s->plan->parallel.workers, s->plan->parallel.threads,
                                    !s->plan->options.no_work_stealing, error));
    }
    prn_executor_release(s->executor);
    s->executor = executor;
    return PRONY_OK;
}
