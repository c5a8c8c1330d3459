/* Counters along the chain from a budget to the process. A level is raised first and checked afterwards, so that two
 * threads never pass the limit together. The raise is taken back if an outer level refuses. */
#include "base/memory/budget.h"

#include "base/memory/alloc.h"
#include "base/status.h"

#include <stdatomic.h>

struct prn_budget {
    prn_budget *outer; /* NULL: the process */
    _Atomic uint64_t held, limit;
    _Atomic uint64_t references; /* of the owner, of inner budgets, and one for each block */
};

static prn_budget process = {.limit = UINT64_MAX, .references = 1};
static _Thread_local prn_budget *current; /* NULL: the process */
static _Thread_local prn_refusal refusal; /* asked_bytes 0: none */

static prn_budget *outer_of(const prn_budget *budget)
{
    if (budget == &process) return NULL;
    return budget->outer ? budget->outer : &process;
}

static void retain(prn_budget *budget)
{
    if (budget && budget != &process) atomic_fetch_add_explicit(&budget->references, 1, memory_order_relaxed);
}

prn_budget *prn_budget_create(prn_budget *outer, uint64_t limit_bytes)
{
    prn_budget *budget = prn_calloc(1, sizeof *budget);
    if (!budget) return NULL;
    retain(outer);
    budget->outer = outer;
    atomic_init(&budget->limit, limit_bytes ? limit_bytes : UINT64_MAX);
    atomic_init(&budget->references, 1);
    return budget;
}

void prn_budget_release(prn_budget *budget)
{
    while (budget && budget != &process) {
        prn_budget *outer = budget->outer;
        if (atomic_fetch_sub_explicit(&budget->references, 1, memory_order_acq_rel) != 1) return;
        prn_free(budget);
        budget = outer;
    }
}

prn_budget *prn_budget_enter(prn_budget *budget)
{
    prn_budget *former = current;
    current = budget;
    refusal.asked_bytes = 0;
    return former;
}

prn_budget *prn_budget_current(void)
{
    return current;
}

static uint64_t budget_room_of(const prn_budget *budget)
{
    uint64_t limit = atomic_load_explicit(&budget->limit, memory_order_relaxed);
    uint64_t held = atomic_load_explicit(&budget->held, memory_order_relaxed);
    if (limit == UINT64_MAX) return UINT64_MAX;
    return limit > held ? limit - held : 0;
}

uint64_t prn_budget_room(void)
{
    uint64_t least = UINT64_MAX;
    for (const prn_budget *b = current ? current : &process; b; b = outer_of(b))
        if (budget_room_of(b) < least) least = budget_room_of(b);
    return least;
}

uint64_t prn_budget_held(const prn_budget *budget)
{
    return atomic_load_explicit(budget ? &budget->held : &process.held, memory_order_relaxed);
}

void prn_budget_limit_process(uint64_t limit_bytes)
{
    atomic_store_explicit(&process.limit, limit_bytes ? limit_bytes : UINT64_MAX, memory_order_relaxed);
}

bool prn_budget_refused(prn_refusal *out)
{
    if (refusal.asked_bytes == 0) return false;
    *out = refusal;
    refusal.asked_bytes = 0;
    return true;
}

bool prn_budget_book_more(prn_budget *budget, size_t bytes)
{
    if (!budget) budget = &process;
    for (prn_budget *b = budget; b; b = outer_of(b)) {
        uint64_t before = atomic_fetch_add_explicit(&b->held, bytes, memory_order_relaxed);
        uint64_t limit = atomic_load_explicit(&b->limit, memory_order_relaxed);
        if (before <= limit && bytes <= limit - before) continue;
        refusal = (prn_refusal){.asked_bytes = bytes, .held_bytes = before, .limit_bytes = limit};
        for (prn_budget *raised = budget;; raised = outer_of(raised)) {
            atomic_fetch_sub_explicit(&raised->held, bytes, memory_order_relaxed);
            if (raised == b) return false;
        }
    }
    return true;
}

void prn_budget_return(prn_budget *budget, size_t bytes)
{
    for (prn_budget *b = budget ? budget : &process; b; b = outer_of(b))
        atomic_fetch_sub_explicit(&b->held, bytes, memory_order_relaxed);
}

bool prn_budget_book(prn_budget *budget, size_t bytes)
{
    if (!prn_budget_book_more(budget, bytes)) return false;
    retain(budget);
    return true;
}

void prn_budget_unbook(prn_budget *budget, size_t bytes)
{
    prn_budget_return(budget, bytes);
    prn_budget_release(budget);
}

prony_status(prn_no_memory)(prony_error *error)
{
    prn_refusal refusal;
    if (!prn_budget_refused(&refusal)) return prn_fail(error, PRONY_OUT_OF_MEMORY, "out of memory");
    return prn_fail(error, PRONY_LIMIT, "%llu bytes more are needed; %llu are held, and the memory limit is %llu",
                    (unsigned long long)refusal.asked_bytes, (unsigned long long)refusal.held_bytes,
                    (unsigned long long)refusal.limit_bytes);
}
