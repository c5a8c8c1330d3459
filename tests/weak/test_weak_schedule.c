/* The ready set of a run under C11's memory model (weak_memory.h), by engine/plan/schedule.c itself: two workers run
 * each step once, behind the steps that it waits for, and the last step that uses a value gives its memory back. */
#include "weak_source.h"

#include "engine/plan/plan.h"

static prony_status run_step(uint32_t step);
static void give_back(uint32_t step);
#define prn_plan_step(plan, step, error) run_step(step)
#define prn_plan_give_back(plan, value, step) give_back(step)

#include "engine/plan/schedule.c"

enum { STEPS = 3 };

static uint32_t order[STEPS] = {0, 1, 2}, touch_begin[STEPS + 1] = {0, 1, 2, 3}, touched[STEPS], touching[1] = {STEPS};

/* Step 0 makes what steps 1 and 2 read. */
static uint32_t fork_before[STEPS] = {0, 1, 1}, fork_begin[STEPS + 1] = {0, 2, 2, 2}, fork_next[] = {1, 2};
/* Steps 0 and 1 make what step 2 reads. */
static uint32_t join_before[STEPS] = {0, 0, 2}, join_begin[STEPS + 1] = {0, 1, 2, 2}, join_next[] = {2, 2};
static prn_step_graph step_graph = {.step_count = STEPS, .by_rank = order, .rank = order};
static prn_plan plan;
static prn_schedule *schedule;
static int values[STEPS], given_back;

/* A step reads what the steps before it wrote, and writes its own value once. */
static prony_status run_step(uint32_t step)
{
    for (uint32_t from = 0; from < STEPS; from++)
        for (uint32_t e = step_graph.next_begin[from]; e < step_graph.next_begin[from + 1]; e++)
            if (step_graph.next[e] == step) weak_require(values[from] == 1, "the step before has ended");
    values[step]++;
    return PRONY_OK;
}

/* All steps use the memory of one value: their values stand for it. */
static void give_back(uint32_t step)
{
    (void)step;
    for (int i = 0; i < STEPS; i++) weak_require(values[i] == 1, "each step ran once");
    memset(values, 0, sizeof values);
    given_back++;
}

static void begin_run(void)
{
    prn_schedule *s;
    plan.parallel.workers = 2;
    plan.parallel.graph = &step_graph;
    given_back = 0;
    memset(values, 0, sizeof values);
    s = schedule = weak_alloc(64, sizeof *s);
    s->plan = &plan;
    s->words = s->summary_words = 1;
    s->ready = weak_alloc(8, sizeof *s->ready);
    s->summary = weak_alloc(8, sizeof *s->summary);
    s->left = weak_alloc(8, STEPS * sizeof *s->left);
    s->alive = weak_alloc(8, sizeof *s->alive);
    s->dynamic = weak_alloc(8, sizeof *s->dynamic);
    s->dynamic_count = 1;
    s->touching = touching;
    s->touch_begin = touch_begin;
    s->touch = touched;
    s->errors = weak_alloc(8, 2 * sizeof *s->errors);
    s->said = weak_alloc(8, 2 * sizeof *s->said);
    s->held = weak_alloc(8, 2 * sizeof *s->held);
    s->error_step = weak_alloc(8, 2 * sizeof *s->error_step);
    s->error_status = weak_alloc(8, 2 * sizeof *s->error_status);
    weak_label(s->ready, sizeof *s->ready, "ready");
    weak_label(s->summary, sizeof *s->summary, "summary");
    weak_label((void *)s->left, STEPS * sizeof *s->left, "left");
    weak_label((void *)s->alive, sizeof *s->alive, "alive");
    weak_label(&s->unfinished, sizeof s->unfinished, "unfinished");
    weak_label(&s->failed_at, sizeof s->failed_at, "failed_at");
    weak_label(values, sizeof values, "values");
    prn_schedule_begin(s);
}

static void begin_fork(void)
{
    step_graph.before_count = fork_before;
    step_graph.next_begin = fork_begin;
    step_graph.next = fork_next;
    begin_run();
}

static void begin_join(void)
{
    step_graph.before_count = join_before;
    step_graph.next_begin = join_begin;
    step_graph.next = join_next;
    begin_run();
}

static void take_as_caller(void)
{
    while (schedule_take(schedule, 0)) {
    }
}

static void take_as_worker(void)
{
    while (schedule_take(schedule, 1)) {
    }
}

/* A worker may have left before a step was ready; the caller goes on until all are finished. */
static void all_ran(void)
{
    while (!schedule_over(schedule)) weak_require(schedule_take(schedule, 0), "a ready step is found");
    weak_require(given_back == 1, "the value was given back once");
}

static const weak_program fork_of_steps = {begin_fork, {take_as_caller, take_as_worker}, all_ran};
static const weak_program join_of_steps = {begin_join, {take_as_caller, take_as_worker}, all_ran};

static void the_schedule_is_correct(void **state)
{
    (void)state;
    weak_assert_correct("two steps behind one", &fork_of_steps);
    weak_assert_correct("a step behind two", &join_of_steps);
}

static void weaker_orders_are_faults(void **state)
{
    static const weak_needed rows[] = {
        {&join_of_steps, {"left", WEAK_SUB, __ATOMIC_RELAXED}, WEAK_RACE},
        {&fork_of_steps, {"alive", WEAK_SUB, __ATOMIC_RELAXED}, WEAK_RACE},
        {&fork_of_steps, {"ready", WEAK_OR, __ATOMIC_RELAXED}, WEAK_RACE},
    };
    (void)state;
    weak_assert_needed(rows, sizeof rows / sizeof rows[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schedule_is_correct),
        cmocka_unit_test(weaker_orders_are_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
