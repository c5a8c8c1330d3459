/* Range hooks: a range per run and per operator on the thread that executes it, balanced on every thread, also with
 * several workers, subgraphs, and runs that fail. Runs under ThreadSanitizer as well. */
#include "failure_trace.h"
#include "prony_ranges.h"
#include "tests/support/nested_model.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANGES = 4000, MOST_DEPTH = 16, MOST_THREADS = 8, TEXT = 60 };

/* A range that ended, or has not yet. */
typedef struct range {
    char name[TEXT], type[TEXT];
    int thread, depth;
    int outer; /* index; -1: none on its thread */
    bool ended;
} range;

static struct {
    pthread_mutex_t lock;
    range ranges[MOST_RANGES];
    int count, threads;
    int stacks[MOST_THREADS][MOST_DEPTH], depths[MOST_THREADS];
    bool bad;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int me = -1;
static _Thread_local int my_generation;
static int generation;

static void seen_push(void *user, const char *name, const char *type)
{
    pthread_mutex_lock(&seen.lock);
    if (me < 0 || my_generation != generation) {
        me = seen.threads++;
        my_generation = generation;
    }
    seen.bad |= user != &seen || seen.count == MOST_RANGES || me >= MOST_THREADS || seen.depths[me] == MOST_DEPTH;
    if (!seen.bad) {
        range *r = &seen.ranges[seen.count];
        int *depth = &seen.depths[me];
        *r = (range){.thread = me, .depth = *depth, .outer = *depth ? seen.stacks[me][*depth - 1] : -1};
        snprintf(r->name, sizeof r->name, "%s", name);
        snprintf(r->type, sizeof r->type, "%s", type);
        seen.stacks[me][(*depth)++] = seen.count++;
    }
    pthread_mutex_unlock(&seen.lock);
}

static void seen_pop(void *user)
{
    pthread_mutex_lock(&seen.lock);
    seen.bad |= user != &seen || me < 0 || my_generation != generation || seen.depths[me] == 0;
    if (!seen.bad) seen.ranges[seen.stacks[me][--seen.depths[me]]].ended = true;
    pthread_mutex_unlock(&seen.lock);
}

static const prony_range_hooks hooks = {sizeof hooks, seen_push, seen_pop, &seen};

static void seen_begin(void)
{
    generation++;
    seen.count = seen.threads = 0;
    seen.bad = false;
    memset(seen.depths, 0, sizeof seen.depths);
    assert_int_equal(prony_range_hooks_install(&hooks, NULL), PRONY_OK);
}

/* All ranges have ended; the only one of type "run" is the calling thread's outermost. */
static void seen_end(void)
{
    assert_int_equal(prony_range_hooks_install(NULL, NULL), PRONY_OK);
    assert_false(seen.bad);
    int runs = 0;
    for (int i = 0; i < seen.count; i++) {
        assert_true(seen.ranges[i].ended);
        runs += strcmp(seen.ranges[i].type, "run") == 0;
    }
    assert_int_equal(runs, 1);
    assert_string_equal(seen.ranges[0].type, "run");
    assert_int_equal(seen.ranges[0].thread, 0);
    for (int t = 0; t < seen.threads; t++) assert_int_equal(seen.depths[t], 0);
}

static int seen_named(const char *name)
{
    int count = 0;
    for (int i = 0; i < seen.count; i++) count += strcmp(seen.ranges[i].name, name) == 0;
    return count;
}

/* Path of the range from the outermost: "a/b/c". */
static const char *seen_path(int index, char text[400])
{
    char inner[400] = "";
    for (text[0] = '\0'; index >= 0; index = seen.ranges[index].outer) {
        snprintf(inner, sizeof inner, "%s", text);
        snprintf(text, 400, "%.60s>%.300s", seen.ranges[index].type, inner);
    }
    return text;
}

static void nothing_without_hooks(void **state)
{
    (void)state;
    model_run r = {0};
    nested_open(&r, false, 1);
    mr_run(&r, 0);
    seen_begin();
    mr_run(&r, 0);
    seen_end();
    const int with = seen.count;
    mr_run(&r, 0);
    assert_int_equal(seen.count, with);
    assert_int_equal(with, 5); /* run, /begin, /outer, /calm/Tanh, /calm/Neg */
    assert_string_equal(seen.ranges[1].name, "/begin");
    assert_string_equal(seen.ranges[1].type, "Sqrt");
    mr_close(&r);
}

static void subgraphs_lie_in_their_operator(void **state)
{
    (void)state;
    char path[400];
    model_run r = {0};
    nested_open(&r, true, 5);
    mr_run(&r, 0);
    for (int stamped = 0; stamped < 2; stamped++) {
        seen_begin();
        if (stamped) {
            prony_report_release(mr_profile(&r));
        } else {
            mr_run(&r, 0);
        }
        seen_end();
        assert_int_equal(seen_named("/loop/Add"), 5);
        assert_int_equal(seen_named("/inner/MatMul"), 3);
        assert_int_equal(seen_named("/inner/Abs"), 2);
        assert_int_equal(seen_named("/calm/Tanh"), 0);
        for (int i = 0; i < seen.count; i++)
            if (strcmp(seen.ranges[i].name, "/inner/Abs") == 0)
                assert_string_equal(seen_path(i, path), "run>If>Loop>If>Abs>");
    }
    mr_close(&r);
}

/* Chains of one input, joined. */
static model_builder *chains(int count)
{
    model_builder *m = mb_begin(13);
    char inputs[200] = "", from[32], to[32];
    mb_input(m, "x", PRONY_FLOAT32, "64,64");
    for (int c = 0; c < count; c++) {
        snprintf(to, sizeof to, "a%d", c);
        mb_node(m, "CumSum", "x axis", to, c % 2 ? "reverse=1" : "exclusive=1");
        mb_node_name(m, to);
        snprintf(from, sizeof from, "a%d axis", c);
        snprintf(to, sizeof to, "b%d", c);
        mb_node(m, "CumSum", from, to, c / 2 ? "" : "reverse=1");
        mb_node_name(m, to);
        snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%sb%d", c ? " " : "", c);
    }
    mb_initializer(m, "axis", PRONY_INT64, "", &(const int64_t){0});
    mb_node(m, "Sum", inputs, "y", "");
    mb_node_name(m, "sum");
    mb_output(m, "y", PRONY_FLOAT32, "64,64");
    return m;
}

static void workers_have_ranges_of_their_own(void **state)
{
    (void)state;
    static float x[64 * 64];
    model_run r = {.options = {.inter_op_threads = 3, .intra_op_threads = 1, .no_rewrites = true}};
    mr_open(&r, chains(4));
    mr_set(&r, "x", PRONY_FLOAT32, "64,64", x);
    mr_run(&r, 0);
    assert_int_equal(prony_session_workers(r.session), 3);
    for (int run = 0; run < 50; run++) {
        SCENARIO(run);
        seen_begin();
        mr_run(&r, 0);
        seen_end();
        assert_int_equal(seen.count, 1 + 4 * 2 + 1);
        assert_int_equal(seen_named("a3"), 1);
        assert_int_equal(seen_named("sum"), 1);
        for (int i = 1; i < seen.count; i++) /* in the run on its thread, alone on the others */
            assert_int_equal(seen.ranges[i].depth, seen.ranges[i].thread == 0);
    }
    mr_close(&r);
}

static void failing_runs_are_balanced(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 2; workers++) {
        SCENARIO(workers);
        model_builder *m = mb_begin(13);
        const int64_t index = 9;
        const float x[2] = {1, 2};
        model_run r = {.options = {.inter_op_threads = workers, .intra_op_threads = 1}};
        mb_input(m, "x", PRONY_FLOAT32, "2");
        mb_input(m, "i", PRONY_INT64, "1");
        mb_node(m, "Relu", "x", "r", "");
        mb_node(m, "Gather", "r i", "y", "");
        mb_node_name(m, "bad");
        mb_node(m, "Neg", "y", "z", "");
        mb_node_name(m, "never");
        mb_output(m, "z", PRONY_FLOAT32, "1");
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "2", x);
        mr_set(&r, "i", PRONY_INT64, "1", &index);
        seen_begin();
        mr_refused(&r, PRONY_OUT_OF_RANGE, "bad");
        seen_end();
        assert_int_equal(seen_named("bad"), 1);
        assert_int_equal(seen_named("never"), 0);
        mr_close(&r);
    }
}

static void hooks_are_checked(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_range_hooks wrong = {.push = seen_push, .pop = seen_pop};
    assert_int_equal(prony_range_hooks_install(&wrong, &error), PRONY_INVALID_ARGUMENT);
    wrong = (prony_range_hooks){.struct_size = sizeof wrong, .push = seen_push};
    assert_int_equal(prony_range_hooks_install(&wrong, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "push or pop is missing"));
    struct {
        prony_range_hooks known;
        void *more;
    } later = {{sizeof later, seen_push, seen_pop, &seen}, &seen};
    assert_int_equal(prony_range_hooks_install(&later.known, &error), PRONY_UNSUPPORTED);
    assert_int_equal(prony_ranges_open("gprof", &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "use nvtx or itt"));
    assert_int_equal(prony_ranges_open(NULL, &error), PRONY_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_without_hooks),
        cmocka_unit_test(subgraphs_lie_in_their_operator),
        cmocka_unit_test(workers_have_ranges_of_their_own),
        cmocka_unit_test(failing_runs_are_balanced),
        cmocka_unit_test(hooks_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
