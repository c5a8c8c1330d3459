/* Values in a memory space other than the host's, the mirror of tests/support/mirror.h: positions of copies, their
 * cost, and their report. */
#include "failure_trace.h"
#include "engine/session/session.h"
#include "prony_report.h"
#include "tests/support/mirror.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- running ---- */

static int reset(void **state)
{
    (void)state;
    mirror_reset();
    return 0;
}

static model_builder *begin(void)
{
    model_builder *m = mb_begin(13);
    mb_opset(m, "test", 1);
    mb_input(m, "x", PRONY_FLOAT32, "4");
    return m;
}

static const float X[4] = {1, -2, 3, 4}, MINUS_X[4] = {-1, 2, -3, -4}, TWICE_X[4] = {2, -4, 6, 8};

static void open_with(model_run *r, model_builder *m)
{
    r->registry = mirror_registry();
    mr_open(r, m);
    mr_set(r, "x", PRONY_FLOAT32, "4", X);
}

static void close_all(model_run *r)
{
    prony_registry *made = r->registry;
    mr_close(r);
    prony_registry_release(made);
    assert_int_equal(mirror_use.taken, mirror_use.given);
}

static const prn_plan *plan_of(const model_run *r)
{
    return r->session->current->plan;
}

/* The plan's steps by operator, in order. */
static void expect_steps(const model_run *r, const char *wanted)
{
    char text[512] = "";
    const prn_plan *plan = plan_of(r);
    for (size_t s = 0; s < plan->step_count; s++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", s ? " " : "",
                 plan->steps[s]->node->info.op_type);
    assert_string_equal(text, wanted);
}

static void expect_copies(int in, int out)
{
    assert_int_equal(mirror_use.in, in);
    assert_int_equal(mirror_use.out, out);
    mirror_use.in = mirror_use.out = 0;
}

/* ---- what is copied ---- */

static void there_and_back(void **state)
{
    (void)state;
    model_builder *m = begin();
    mb_node(m, "Neg", "x", "a", "");
    mb_node(m, "test::Far", "a", "b", "");
    mb_node(m, "test::Far", "b", "c", "");
    mb_node(m, "Neg", "c", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    model_run r = {0};
    open_with(&r, m);
    for (int run = 0; run < 3; run++) {
        SCENARIO(run);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", X);
        expect_copies(1, 1);
    }
    expect_steps(&r, "Neg Copy Far Far Copy Neg");
    assert_string_equal(plan_of(&r)->steps[1]->node->info.name, "copy of a to mirror");
    assert_string_equal(plan_of(&r)->steps[4]->node->info.name, "copy of c to the host");
    mr_survives_faults(&r);
    close_all(&r);
}

/* A graph's inputs and outputs are on the host, user-bound buffers too. */
static void graphs_begin_and_end_on_the_host(void **state)
{
    (void)state;
    float own[4] = {0};
    model_builder *m = begin();
    mb_node(m, "test::Far", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    model_run r = {0};
    open_with(&r, m);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", MINUS_X);
    expect_steps(&r, "Copy Far Copy");
    prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("4"), .data = (void *)(uintptr_t)TWICE_X};
    assert_int_equal(prony_session_bind_input(r.session, "x", &x, NULL), PRONY_OK);
    assert_int_equal(prony_session_bind_output(r.session, 0, own, sizeof own, NULL), PRONY_OK);
    assert_ptr_equal(mr_run(&r, 0)->data, own);
    for (int i = 0; i < 4; i++) assert_true(own[i] == -TWICE_X[i]);
    close_all(&r);
}

/* Several steps in each memory space read the value: one copy serves them. */
static void one_copy_for_all_readers(void **state)
{
    (void)state;
    model_builder *m = begin();
    mb_node(m, "Neg", "x", "a", "");
    mb_node(m, "test::Far", "a", "b", "");
    mb_node(m, "test::Far", "a", "c", "");
    mb_node(m, "Mul", "a a", "d", "");
    mb_node(m, "test::Sum", "b c", "e", "");
    mb_node(m, "Neg", "e", "f", "");
    mb_node(m, "Mul", "e d", "g", "");
    mb_output(m, "e", PRONY_FLOAT32, "4");
    mb_output(m, "f", PRONY_FLOAT32, "4");
    mb_output(m, "g", PRONY_FLOAT32, "4");
    model_run r = {0};
    open_with(&r, m);
    const float f[4] = {-2, 4, -6, -8}, g[4] = {2, -16, 54, 128};
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", TWICE_X);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "4", f);
    mr_expect(mr_output(&r, 2), PRONY_FLOAT32, "4", g);
    expect_copies(1, 1);
    close_all(&r);
}

/* Operands that a kernel's row requires on the host are not copied. */
static void operands_stay_where_the_row_says(void **state)
{
    (void)state;
    const float two = 2, sum = 12;
    model_builder *m = begin();
    mb_input(m, "two", PRONY_FLOAT32, "");
    mb_node(m, "Abs", "two", "factor", "");
    mb_node(m, "test::Far", "x", "a", "");
    mb_node(m, "test::Scale", "a factor", "b s", "");
    mb_node(m, "test::Far", "b", "y", "");
    mb_node(m, "Neg", "s", "t", "");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    mb_output(m, "t", PRONY_FLOAT32, "");
    model_run r = {0};
    open_with(&r, m);
    mr_set(&r, "two", PRONY_FLOAT32, "", &two);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", TWICE_X);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "", &sum);
    expect_copies(1, 1);
    close_all(&r);
}

/* A view needs no copy and stays; without sharing it becomes a copy on the host. */
static void views_stay(void **state)
{
    (void)state;
    const int64_t square[2] = {2, 2};
    for (int apart = 0; apart < 2; apart++) {
        SCENARIO(apart);
        model_builder *m = begin();
        mb_initializer(m, "square", PRONY_INT64, "2", square);
        mb_node(m, "test::Far", "x", "a", "");
        mb_node(m, "Reshape", "a square", "b", "");
        mb_node(m, "test::Far", "b", "y", "");
        mb_output(m, "y", PRONY_FLOAT32, "2,2");
        model_run r = {0};
        r.options.no_reuse = apart;
        r.options.no_rewrites = true;
        open_with(&r, m);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2,2", X);
        expect_steps(&r, apart ? "Copy Far Copy Reshape Copy Far Copy" : "Copy Far Far Copy");
        expect_copies(1 + apart, 1 + apart);
        close_all(&r);
    }
}

/* Neither slices nor joins extend from one memory space to another. */
static void joins_and_parts_are_the_hosts(void **state)
{
    (void)state;
    const float wanted[4] = {-1, 2, 3, 4};
    model_builder *m = begin();
    mb_node(m, "test::Far", "x", "a", "");
    mb_node(m, "Split", "a", "b c", "axis=0");
    mb_node(m, "test::Far", "c", "d", "");
    mb_node(m, "Concat", "b d", "y", "axis=0");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    model_run r = {0};
    open_with(&r, m);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", wanted);
    expect_copies(2, 2);
    close_all(&r);
}

/* A value in a blocked layout becomes plain once, on the host, before the copy. */
static void layouts_and_places_are_one_key(void **state)
{
    (void)state;
    enum { CHANNELS = 16, COUNT = CHANNELS * 16 };
    static float unit[CHANNELS * CHANNELS], x[COUNT], turned[COUNT];
    for (int c = 0; c < CHANNELS; c++) unit[c * CHANNELS + c] = 1;
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i + 1);
    for (int i = 0; i < COUNT; i++) turned[i % 16 * CHANNELS + i / 16] = -x[i];
    model_builder *m = mb_begin(13);
    mb_opset(m, "test", 1);
    mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
    mb_initializer(m, "unit", PRONY_FLOAT32, "16,16,1,1", unit);
    mb_node(m, "Conv", "x unit", "c", "");
    mb_node(m, "test::Far", "c", "d", "");
    mb_node(m, "Transpose", "d", "y", "perm=[0,2,3,1]");
    mb_node(m, "Conv", "d unit", "z", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,4,4,16");
    mb_output(m, "c", PRONY_FLOAT32, "1,16,4,4");
    mb_output(m, "z", PRONY_FLOAT32, "1,16,4,4");
    model_run r = {.registry = mirror_registry()};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,16,4,4", x);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,4,4,16", turned);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "1,16,4,4", x);
    for (int i = 0; i < COUNT; i++) assert_true(((const float *)mr_output(&r, 2)->data)[i] == -x[i]);
    expect_copies(1, 1);
    int reorders = 0, of_c = 0;
    const prn_plan *plan = plan_of(&r);
    for (size_t s = 0; s < plan->step_count; s++) {
        if (strcmp(plan->steps[s]->node->info.op_type, "Reorder") == 0) reorders++;
        if (strcmp(plan->steps[s]->node->info.name, "reorder of c") == 0) of_c++;
    }
    if (reorders) assert_int_equal(of_c, 1);
    close_all(&r);
}

/* Memory spaces exchange values through the host alone. */
static void from_place_to_place_by_the_host(void **state)
{
    (void)state;
    model_builder *m = begin();
    mb_node(m, "test::Far", "x", "a", "");
    mb_node(m, "test::Other", "a", "b", "");
    mb_node(m, "test::Far", "b", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    model_run r = {0};
    open_with(&r, m);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", MINUS_X);
    expect_steps(&r, "Copy Far Copy Copy Other Copy Copy Far Copy");
    assert_int_equal(mirror_use.taken, 2);
    close_all(&r);
}

/* ---- where it may and may not be ---- */

static void subgraphs_read_on_the_host(void **state)
{
    (void)state;
    const bool yes = true;
    model_builder *m = begin();
    mb_input(m, "cond", PRONY_BOOL, "");
    mb_node(m, "test::Far", "x", "a", "");
    mb_node(m, "If", "cond", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Neg", "a", "t", "");
    mb_node(m, "test::Far", "t", "u", "");
    mb_output(m, "u", PRONY_FLOAT32, "4");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Neg", "a", "e", "");
    mb_output(m, "e", PRONY_FLOAT32, "4");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "4");
    model_run r = {0};
    open_with(&r, m);
    mr_set(&r, "cond", PRONY_BOOL, "", &yes);
    for (int run = 0; run < 2; run++) {
        SCENARIO(run);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", MINUS_X);
        expect_copies(2, 2);
    }
    assert_int_equal(mirror_use.taken, 2); /* a block for the plan, one for the branch's */
    mr_survives_faults(&r);
    close_all(&r);
}

/* Steps with shapes known at run time take a kernel on the host; without one, planning fails with a message. */
static void shapes_of_the_run_stay_on_the_host(void **state)
{
    (void)state;
    const float wanted[3] = {-1, -3, -4};
    model_builder *m = begin();
    mb_node(m, "Relu", "x", "a", "");
    mb_node(m, "Greater", "x zero", "b", "");
    mb_initializer(m, "zero", PRONY_FLOAT32, "", &(const float){0});
    mb_node(m, "Compress", "a b", "c", "");
    mb_node(m, "test::Far", "c", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N");
    model_run r = {0};
    open_with(&r, m);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "3", wanted);
    expect_copies(0, 0);
    close_all(&r);

    m = mb_begin(13);
    mb_opset(m, "test", 1);
    mb_input(m, "words", PRONY_STRING, "2");
    mb_node(m, "test::Text", "words", "y", "");
    mb_output(m, "y", PRONY_STRING, "2");
    r = (model_run){.registry = mirror_registry()};
    mr_open(&r, m);
    prony_string words[2] = {{"a", 1}, {"b", 1}};
    mr_set(&r, "words", PRONY_STRING, "2", words);
    mr_refused(&r, PRONY_UNSUPPORTED, "value 'words' cannot be at mirror");
    close_all(&r);
}

/* A plan for the largest sizes is made anew for other sizes if values are in another memory space. */
static void largest_extents(void **state)
{
    (void)state;
    const prony_dim most = {"N", 4};
    model_builder *m = mb_begin(13);
    mb_opset(m, "test", 1);
    mb_input(m, "x", PRONY_FLOAT32, "N");
    mb_node(m, "test::Far", "x", "a", "");
    mb_node(m, "Neg", "a", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N");
    model_run r = {.registry = mirror_registry()};
    r.options.max_dims = &most;
    r.options.max_dim_count = 1;
    mr_open(&r, m);
    for (int n = 4; n > 0; n--) {
        SCENARIO(n);
        const char dims[2] = {(char)('0' + n), 0};
        mr_set(&r, "x", PRONY_FLOAT32, dims, X);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, dims, X);
    }
    close_all(&r);
}

/* ---- memory ---- */

/* Values in the mirror take no bytes of the arena, and live as briefly as in an arena. */
static void memory_is_counted_where_it_is(void **state)
{
    (void)state;
    for (int variant = 0; variant < 2; variant++) {
        SCENARIO(variant);
        enum { COUNT = 1000, BYTES = (4 * COUNT + 63) / 64 * 64 };
        static float x[COUNT];
        char from[8] = "x", to[8];
        model_builder *m = mb_begin(13);
        mb_opset(m, "test", 1);
        mb_input(m, "x", PRONY_FLOAT32, "1000");
        for (int i = 0; i < 10; i++) {
            snprintf(to, sizeof to, "v%d", i);
            mb_node(m, "test::Far", from, to, "");
            memcpy(from, to, sizeof from);
        }
        mb_output(m, "v9", PRONY_FLOAT32, "1000");
        model_run r = {.registry = mirror_registry()};
        r.options.no_reuse = variant;
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "1000", x);
        (void)mr_run(&r, 0);
        assert_int_equal(plan_of(&r)->memory.figures.planned_bytes, BYTES);
        assert_int_equal(plan_of(&r)->memory.spaces[0].figures.planned_bytes, (variant ? 11 : 2) * BYTES);
        assert_int_equal(mirror_use.bytes, (variant ? 11 : 2) * BYTES);
        close_all(&r);
    }
}

static void no_room_and_no_way(void **state)
{
    (void)state;
    model_builder *m = begin();
    mb_node(m, "Neg", "x", "a", "");
    mb_node(m, "test::Far", "a", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    model_run r = {0};
    open_with(&r, m);
    mirror_use.room = 127;
    mr_refused(&r, PRONY_OUT_OF_MEMORY, "no room for 128 bytes at mirror");
    mirror_use.room = 128;
    mirror_use.fails = true;
    mr_refused(&r, PRONY_IO_ERROR, "node 'copy of a to mirror' (prony::Copy): the mirror is broken");
    mirror_use.fails = false;
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", X);
    close_all(&r);
}

/* Parallel workers: some branches in the mirror, some on the host. */
static void several_workers(void **state)
{
    (void)state;
    enum { COUNT = 4096 };
    static float x[COUNT], wanted[COUNT];
    model_builder *m = mb_begin(13);
    mb_opset(m, "test", 1);
    mb_input(m, "x", PRONY_FLOAT32, "4096");
    for (int branch = 0; branch < 4; branch++) {
        char from[8] = "x", to[8], sum[8], before[24];
        for (int i = 0; i < 4; i++) {
            snprintf(to, sizeof to, "b%d%d", branch, i);
            mb_node(m, (i + branch) % 2 ? "test::Far" : "Neg", from, to, "");
            memcpy(from, to, sizeof from);
        }
        snprintf(sum, sizeof sum, "s%d", branch);
        if (branch)
            snprintf(before, sizeof before, "s%d %s", branch - 1, from);
        else
            snprintf(before, sizeof before, "x %s", from);
        mb_node(m, "Add", before, sum, "");
    }
    mb_output(m, "s3", PRONY_FLOAT32, "4096");
    for (int i = 0; i < COUNT; i++) x[i] = (float)i, wanted[i] = (float)(5 * i);
    model_run r = {.registry = mirror_registry()};
    r.options.inter_op_threads = 2;
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4096", x);
    for (int run = 0; run < 20; run++) mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4096", wanted);
    assert_non_null(plan_of(&r)->parallel.graph);
    close_all(&r);
}

/* ---- what a report says ---- */

static void reports_show_copies(void **state)
{
    (void)state;
    model_builder *m = begin();
    mb_node(m, "Neg", "x", "a", "");
    mb_node(m, "test::Far", "a", "b", "");
    mb_node(m, "Neg", "b", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    model_run r = {0};
    open_with(&r, m);
    prony_report *report = mr_profile(&r);
    size_t count = 0;
    const prony_operator_row *rows = prony_report_operators(report, &count);
    static const char *const wanted[][2] = {
        {"Neg", NULL}, {"Copy", "copy_from_host"}, {"Far", "negate_mirror"}, {"Copy", "copy_to_host"}, {"Neg", NULL}};
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        assert_string_equal(rows[i].op, wanted[i][0]);
        if (wanted[i][1]) assert_string_equal(rows[i].kernel, wanted[i][1]);
        assert_int_equal(rows[i].output_bytes, 16);
        assert_int_equal(rows[i].layer_count, strcmp(rows[i].op, "Copy") != 0);
    }
    assert_true(rows[1].offset_bytes == UINT64_MAX && rows[2].offset_bytes == UINT64_MAX &&
                rows[3].offset_bytes != UINT64_MAX);
    const prony_memory_report *memory = prony_report_memory(report);
    assert_int_equal(memory->planned_bytes, plan_of(&r)->memory.figures.planned_bytes);

    /* The accuracy profile reads values in every memory space. */
    prony_accuracy_options all = PRONY_ACCURACY_OPTIONS_INIT;
    assert_int_equal(prony_session_accuracy(report, r.session, &all, &r.error), PRONY_OK);
    const prony_accuracy_row *errors = prony_report_accuracy_rows(report, PRONY_LEVEL_OPERATOR, &count);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        const bool copy = wanted[i][1] && i != 2;
        if (errors[i].own.known == copy) fail_msg("%zu: %s; %s", i, errors[i].not_compared, errors[i].note);
        if (copy)
            assert_string_equal(errors[i].not_compared, "moves a value between layouts or memory spaces");
        else
            assert_true(errors[i].own.max_abs == 0 && errors[i].accumulated.known);
    }
    prony_report_release(report);
    close_all(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(there_and_back, reset),
        cmocka_unit_test_setup(graphs_begin_and_end_on_the_host, reset),
        cmocka_unit_test_setup(one_copy_for_all_readers, reset),
        cmocka_unit_test_setup(operands_stay_where_the_row_says, reset),
        cmocka_unit_test_setup(views_stay, reset),
        cmocka_unit_test_setup(joins_and_parts_are_the_hosts, reset),
        cmocka_unit_test_setup(layouts_and_places_are_one_key, reset),
        cmocka_unit_test_setup(from_place_to_place_by_the_host, reset),
        cmocka_unit_test_setup(subgraphs_read_on_the_host, reset),
        cmocka_unit_test_setup(shapes_of_the_run_stay_on_the_host, reset),
        cmocka_unit_test_setup(largest_extents, reset),
        cmocka_unit_test_setup(memory_is_counted_where_it_is, reset),
        cmocka_unit_test_setup(no_room_and_no_way, reset),
        cmocka_unit_test_setup(several_workers, reset),
        cmocka_unit_test_setup(reports_show_copies, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
