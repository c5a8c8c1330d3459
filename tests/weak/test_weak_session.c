/* A session's lock and a memory budget's references under C11's memory model (weak_memory.h), by
 * engine/session/session_lock.c and base/memory/budget.c themselves. */
#include "weak_source.h"

#include "engine/session/session_lock.c"

#undef prn_no_memory
#include "base/memory/budget.c"

static prony_session session;
static prn_model_file file = {.name = "model"};
static prony_model model = {.file = &file};
static int used, calls;

/* ---- one call at a time ---- */

static void free_session(void)
{
    memset(&session, 0, sizeof session);
    session.model = &model;
    atomic_flag_clear(&session.busy);
    used = 0;
    weak_label(&session.busy, sizeof session.busy, "busy");
    weak_label(&used, sizeof used, "the session's state");
}

static void call_session(void)
{
    if (prn_session_lock(&session, NULL) != PRONY_OK) return;
    used++;
    (void)prn_session_unlock(&session, PRONY_OK);
}

static const weak_program two_calls = {free_session, {call_session, call_session}, NULL};

/* ---- the last block or owner frees a budget ---- */

static prn_budget *budget;

static void one_budget(void)
{
    calls = 0;
    budget = prn_budget_create(NULL, 100);
    (void)prn_budget_book(budget, 10);
    (void)prn_budget_book(budget, 20);
    weak_label(&budget->references, sizeof budget->references, "references");
    weak_label(&budget->held, sizeof budget->held, "held");
    weak_label(&budget->outer, sizeof budget->outer, "outer");
}

static void release_owner(void)
{
    prn_budget_release(budget);
}

static void free_block(void)
{
    prn_budget_unbook(budget, 10);
}

static void free_other_block(void)
{
    if (prn_budget_book_more(budget, 5)) prn_budget_return(budget, 5);
    prn_budget_unbook(budget, 20);
}

static const weak_program blocks = {one_budget, {release_owner, free_block, free_other_block}, NULL};

static void locks_and_references_are_correct(void **state)
{
    (void)state;
    weak_assert_correct("two calls of a session", &two_calls);
    weak_assert_correct("an owner and two blocks of a budget", &blocks);
}

static void weaker_orders_are_faults(void **state)
{
    static const weak_needed rows[] = {
        {&two_calls, {"busy", WEAK_EXCHANGE, __ATOMIC_RELAXED}, WEAK_RACE},
        {&two_calls, {"busy", WEAK_STORE, __ATOMIC_RELAXED}, WEAK_RACE},
        {&blocks, {"references", WEAK_SUB, __ATOMIC_RELAXED}, WEAK_RACE},
    };
    (void)state;
    weak_assert_needed(rows, sizeof rows / sizeof rows[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_and_references_are_correct),
        cmocka_unit_test(weaker_orders_are_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
