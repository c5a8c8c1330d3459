/* Plans of measured kernels beside the default ones: obstacles to running both. */
#include "failure_trace.h"
#include "engine/plan/tune.h"
#include "prony_operator.h"
#include "tests/support/tuned_case.h"
#include "tests/support/twice_operator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_cancelled(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    tc_measure();
    for (int at = 1; at <= 9; at += 4) {
        SCENARIO(at);
        tc_clock_says(2000, 1000);
        tc_clock.cancel_at = at;
        tc_open(tc_build());
        tc_clock.session = tc_run.session;
        mr_set(&tc_run, "x", PRONY_FLOAT32, "1,32,12,12", tc_x);
        assert_int_equal(prony_session_prepare(tc_run.session, &tc_run.error), PRONY_CANCELLED);
        tc_clock_says(2000, 1000);
        assert_int_equal(prony_session_prepare(tc_run.session, &tc_run.error), PRONY_OK);
        assert_true(tc_clock.calls > 0); /* judged then */
        mr_run(&tc_run, 0);
        tc_close();
    }
}

/* A tensor that is not rank 0 to take elements from, and the index of the element. */
static model_builder *build_with_index(void)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,32,12,12");
    mb_input(m, "i", PRONY_INT64, "1");
    mb_initializer(m, "w", PRONY_FLOAT32, "32,32,3,3", tc_w);
    mb_node(m, "Conv", "x w", "a", "pads=[1,1,1,1]");
    mb_node(m, "Tanh", "a", "b", "");
    mb_node(m, "Gather", "b i", "y", "axis=1");
    mb_output(m, "y", PRONY_FLOAT32, "1,1,12,12");
    return m;
}

static void set_index(int64_t index)
{
    mr_set(&tc_run, "i", PRONY_INT64, "1", &index);
    tc_run.input_count = 0; /* the value was copied */
}

static void test_failing_run(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    for (int pass = 0; pass < 3; pass++) { /* measured; judged; read */
        tc_clock_says(2000, 1000);
        tc_open(build_with_index());
        mr_set(&tc_run, "x", PRONY_FLOAT32, "1,32,12,12", tc_x);
        set_index(pass == 1 ? 40 : 3);
        assert_int_equal(prony_session_prepare(tc_run.session, &tc_run.error), PRONY_OK);
        if (pass) {
            assert_true(tc_run.session->current->plan->verdict->reverted);
            assert_int_equal(tc_run.session->current->plan->verdict->tuned_ns, -1);
            assert_non_null(strstr(tc_run.session->tuning->note, "dropped because a run failed: "));
            assert_int_equal(tc_run.session->tuning->measured, 0);
        }
        if (pass == 2) assert_int_equal(tc_clock.calls, 0);
        set_index(5);
        mr_run(&tc_run, 0);
        tc_close();
        tc_rows = pass ? TC_AS_KEPT : TC_OTHERS;
        tc_forgets = pass == 0;
    }
}

/* Judging does not read bytes of the caller that no run has written. */
static void test_bound_index(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    int64_t index = 4000;
    const prony_value value = {.dtype = PRONY_INT64, .shape = {1, {1}}, .data = &index};
    for (int pass = 0; pass < 2; pass++) {
        SCENARIO(pass);
        tc_clock_says(2000, 1000);
        tc_open(build_with_index());
        mr_set(&tc_run, "x", PRONY_FLOAT32, "1,32,12,12", tc_x);
        assert_int_equal(prony_session_bind_input(tc_run.session, "i", &value, &tc_run.error), PRONY_OK);
        assert_int_equal(prony_session_prepare(tc_run.session, &tc_run.error), PRONY_OK);
        if (pass) assert_false(tc_run.session->current->plan->verdict->reverted);
        assert_string_equal(tc_run.session->tuning->note, "");
        index = 2;
        mr_run(&tc_run, 0);
        index = 4000;
        tc_close();
        tc_rows = TC_OTHERS;
        tc_forgets = true;
    }
}

/* Data-dependent shapes, which each run allocates in the dynamic region. */
static void test_dynamic_shapes(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    int64_t wanted = -1;
    for (int pass = 0; pass < 3; pass++) {
        SCENARIO(pass);
        tc_clock_says(2000, pass == 2 ? 3000 : 1000);
        model_builder *m = mb_begin(13);
        mb_input(m, "x", PRONY_FLOAT32, "1,32,12,12");
        mb_initializer(m, "w", PRONY_FLOAT32, "32,32,3,3", tc_w);
        mb_node(m, "Conv", "x w", "a", "pads=[1,1,1,1]");
        mb_node(m, "Relu", "a", "b", "");
        mb_node(m, "NonZero", "b", "y", "");
        mb_output(m, "y", PRONY_INT64, "4,n");
        tc_open(m);
        mr_set(&tc_run, "x", PRONY_FLOAT32, "1,32,12,12", tc_x);
        assert_int_equal(prony_session_prepare(tc_run.session, &tc_run.error), PRONY_OK);
        if (pass) assert_int_equal(tc_run.session->current->plan->verdict->reverted, pass == 2);
        assert_int_equal(mr_live_bytes(&tc_run), 0);
        const int64_t count = mr_run(&tc_run, 0)->shape.dim[1];
        assert_true(wanted < 0 || count == wanted);
        assert_true(count > 0);
        wanted = count;
        tc_close();
        tc_rows = TC_OTHERS;
        tc_forgets = true;
    }
}

static prony_status prepare_within(uint64_t limit)
{
    tc_run.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    tc_run.options.memory_limit_bytes = limit;
    tc_open(tc_build());
    mr_set(&tc_run, "x", PRONY_FLOAT32, "1,32,12,12", tc_x);
    return prony_session_prepare(tc_run.session, &tc_run.error);
}

/* The least memory that fits one plan cannot hold two. */
static void test_no_room(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    uint64_t least = sizeof tc_x + 100000, most = 64 << 20;
    tc_measure();
    tc_saves = false;
    assert_int_equal(prepare_within(most), PRONY_OK);
    assert_non_null(tc_run.session->current->plan->verdict);
    tc_close();
    while (most - least > 1024) {
        const uint64_t limit = (least + most) / 2;
        tc_clock_says(2000, 1000);
        const prony_status status = prepare_within(limit);
        assert_true(status == PRONY_OK || status == PRONY_LIMIT);
        tc_close();
        *(status == PRONY_OK ? &most : &least) = limit;
    }
    tc_clock_says(2000, 1000);
    assert_int_equal(prepare_within(most), PRONY_OK);
    assert_null(tc_run.session->current->plan->verdict);
    assert_true(prn_plan_tune_changes(tc_run.session->current->plan) > 0); /* they stay */
    assert_non_null(strstr(tc_run.session->tuning->note, "not compared as a whole"));
    assert_int_equal(tc_clock.calls, 0);
    tc_close();
}

/* The discarded plan leaves nothing behind. */
static void test_gives_back(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    tc_measure();
    for (int loses = 0; loses < 2; loses++) {
        SCENARIO(loses);
        uint64_t held[2];
        for (int kept = 0; kept < 2; kept++) {
            tc_forgets = !kept;
            tc_rows = kept ? TC_AS_KEPT : TC_OTHERS;
            tc_clock_says(1000, loses ? 2000 : 500);
            assert_int_equal(prepare_within(0), PRONY_OK);
            assert_int_equal(tc_run.session->current->plan->verdict->reverted, loses);
            prn_tuning_release(tc_run.session->tuning);
            tc_run.session->tuning = NULL;
            held[kept] = prn_budget_held(tc_run.session->budget);
            tc_close();
        }
        assert_int_equal(held[0], held[1]);
    }
}

/* ---- operators of users' */

static void test_registered(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    prony_registry *registry = twice_registry();
    twice_calls = 0;
    for (int pass = 0; pass < 2; pass++) {
        SCENARIO(pass);
        tc_clock_says(2000, 1000);
        model_builder *m = mb_begin(13);
        mb_opset(m, "test", 1);
        mb_input(m, "x", PRONY_FLOAT32, "1,32,12,12");
        mb_initializer(m, "w", PRONY_FLOAT32, "32,32,3,3", tc_w);
        mb_node(m, "Conv", "x w", "a", "pads=[1,1,1,1]");
        mb_node(m, "test::Twice", "a", "y", "");
        mb_output(m, "y", PRONY_FLOAT32, "1,32,12,12");
        tc_run.registry = registry;
        tc_open(m);
        mr_set(&tc_run, "x", PRONY_FLOAT32, "1,32,12,12", tc_x);
        assert_int_equal(prony_session_prepare(tc_run.session, &tc_run.error), PRONY_OK);
        assert_int_equal(twice_calls, 0);
        if (pass) assert_non_null(strstr(tc_run.session->tuning->note, "registered"));
        assert_int_equal(tc_clock.calls, 0);
        tc_close();
        tc_rows = TC_OTHERS;
        tc_forgets = true;
    }
    prony_registry_release(registry);
}

/* Workers, and threads of a pool: both plans run with the configuration of the final one. */
static void test_threads(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    prony_thread_pool *pool;
    prony_error error = {0};
    assert_int_equal(prony_thread_pool_create(&pool, 1, &error), PRONY_OK);
    for (int way = 0; way < 2; way++) {
        SCENARIO(way);
        tc_rows = TC_AS_KEPT;
        tc_forgets = false;
        for (int pass = 0; pass < 3; pass++) {
            tc_clock_says(2000, pass == 2 ? 3000 : 1000);
            tc_run.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
            tc_run.options.intra_op_threads = way ? 2 : 1;
            tc_run.options.inter_op_threads = way ? 1 : 2;
            tc_run.options.thread_pool = way ? pool : NULL;
            tc_open(tc_build());
            mr_set(&tc_run, "x", PRONY_FLOAT32, "1,32,12,12", tc_x);
            assert_int_equal(prony_session_prepare(tc_run.session, &tc_run.error), PRONY_OK);
            if (pass) assert_int_equal(tc_run.session->current->plan->verdict->reverted, pass == 2);
            mr_run(&tc_run, 0);
            tc_close();
            tc_rows = TC_OTHERS;
            tc_forgets = true;
        }
    }
    prony_thread_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cancelled, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_failing_run, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_bound_index, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_dynamic_shapes, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_no_room, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_gives_back, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_registered, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_threads, tc_set_up, tc_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
