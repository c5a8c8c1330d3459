/* Memory that a model file can make the library allocate: each limit refuses it, and the message names the requester
 * and the size. */
#include "failure_trace.h"
#include "tests/support/model_run.h"
#include "prony_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

static const int64_t huge = INT64_C(1) << 36;

static model_builder *doubled_text(void)
{
    model_builder *m = mb_begin(20);
    char in[32], out[16];
    mb_input(m, "s0", PRONY_STRING, "1");
    for (int i = 0; i < 70; i++) {
        snprintf(in, sizeof in, "s%d s%d", i, i);
        snprintf(out, sizeof out, "s%d", i + 1);
        mb_node(m, "StringConcat", in, out, "");
    }
    mb_output(m, "s70", PRONY_STRING, "1");
    return m;
}

/* Split at every second blank, joined again with itself: the text and its pieces grow together. */
static model_builder *split_text(void)
{
    model_builder *m = doubled_text();
    mb_node(m, "StringSplit", "s14", "parts count", "delimiter='b'");
    mb_output(m, "count", PRONY_INT64, "1");
    return m;
}

static void loop_head(model_builder *m, const char *outer)
{
    static const int64_t trips = 1000000;
    mb_initializer(m, "trips", PRONY_INT64, "", &trips);
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_node(m, "Loop", outer, "y", "");
    mb_node_name(m, "grows");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "on", PRONY_BOOL, "");
}

static model_builder *doubled_in_loop(void)
{
    model_builder *m = mb_begin(13);
    loop_head(m, "trips ? x");
    mb_input(m, "b", PRONY_FLOAT32, NULL);
    mb_node(m, "Identity", "on", "still", "");
    mb_node(m, "Concat", "b b", "more", "axis=0");
    mb_node_name(m, "twice");
    mb_output(m, "still", PRONY_BOOL, "");
    mb_output(m, "more", PRONY_FLOAT32, NULL);
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    return m;
}

static model_builder *sequence_in_loop(void)
{
    model_builder *m = mb_begin(13);
    mb_node(m, "SequenceEmpty", "", "none", "dtype=1");
    loop_head(m, "trips ? none");
    mb_container(m, false, "list", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_node(m, "Identity", "on", "still", "");
    mb_node(m, "Expand", "x size", "wide", "");
    mb_node(m, "SequenceInsert", "list wide", "longer", "");
    mb_output(m, "still", PRONY_BOOL, "");
    mb_container(m, true, "longer", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_graph_end(m);
    static const int64_t size[] = {1024, 4};
    mb_initializer(m, "size", PRONY_INT64, "2", size);
    mb_container(m, true, "y", PRONY_SEQUENCE, PRONY_FLOAT32);
    return m;
}

/* Constants and run-time values alike: the chain starts at a constant or at an input. */
static model_builder *doubled_tensor(bool constant)
{
    static const float start[1024];
    model_builder *m = mb_begin(13);
    char in[32], out[16];
    mb_input(m, "x", PRONY_FLOAT32, "1024");
    if (constant) mb_initializer(m, "c", PRONY_FLOAT32, "1024", start);
    mb_node(m, "Identity", constant ? "c" : "x", "s0", "");
    for (int i = 0; i < 24; i++) {
        snprintf(in, sizeof in, "s%d s%d", i, i);
        snprintf(out, sizeof out, "s%d", i + 1);
        mb_node(m, "Concat", in, out, "axis=0");
    }
    mb_node(m, "ReduceSum", "s24", "sum", "");
    mb_node(m, "Add", "x sum", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    return m;
}

static model_builder *doubled_constant(void)
{
    return doubled_tensor(true);
}

static model_builder *doubled_input(void)
{
    return doubled_tensor(false);
}

/* One operator asks for much memory: the size is an input that only the run knows, or a constant. */
static model_builder *one_huge(const char *op, bool constant)
{
    static const float one = 1;
    model_builder *m = mb_begin(13);
    static const int64_t pads[] = {0, INT64_C(1) << 36};
    bool pad = strcmp(op, "Pad") == 0, fill = strcmp(op, "ConstantOfShape") == 0;
    mb_initializer(m, "c", PRONY_FLOAT32, "1", &one);
    mb_initializer(m, "zero", PRONY_INT64, "", (const int64_t[]){0});
    mb_initializer(m, "step", PRONY_INT64, "", (const int64_t[]){1});
    if (constant)
        mb_initializer(m, "n", PRONY_INT64, strcmp(op, "Range") == 0 ? "" : pad ? "2" : "1", pad ? pads : &huge);
    else
        mb_input(m, "n", PRONY_INT64, strcmp(op, "Range") == 0 ? "" : pad ? "2" : "1");
    if (strcmp(op, "Range") == 0)
        mb_node(m, op, "zero n step", "y", "");
    else
        mb_node(m, op, fill ? "n" : "c n", "y", "");
    mb_output(m, "y", PRONY_UNDEFINED, NULL);
    return m;
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *node;
        model_builder *(*build)(void);
    } rows[] = {
        {"StringConcat", doubled_text}, {"(StringConcat)", split_text}, {"node 'twice' (Concat)", doubled_in_loop},
        {"node '", sequence_in_loop},   {"(Concat)", doubled_constant}, {"(Concat)", doubled_input}};
    static const prony_string word = {"abcdefgh", 8};
    static const float x[1024];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCENARIO_NAMED(i, rows[i].node);
        uint64_t held = prony_memory_in_use();
        model_run r = {.options = PRONY_SESSION_OPTIONS_INIT};
        r.options.memory_limit_bytes = 16 * MIB;
        mr_open(&r, rows[i].build());
        if (strcmp(prony_model_input(r.model, 0)->name, "s0") == 0)
            mr_set(&r, "s0", PRONY_STRING, "1", &word);
        else
            mr_set(&r, "x", PRONY_FLOAT32, prony_model_input(r.model, 0)->shape.dim[0] == 4 ? "4" : "1024", x);
        mr_refused(&r, PRONY_LIMIT, rows[i].node);
        assert_non_null(strstr(r.error.message, "memory limit"));
        assert_true(prony_memory_in_use() - held < 20 * MIB);
        mr_close(&r);
        assert_true(prony_memory_in_use() <= held + 65536); /* the thread's thread pool stays */
    }
}

static void test_one_huge_output(void **state)
{
    (void)state;
    static const char *const ops[] = {"ConstantOfShape", "Expand", "Tile", "Range", "Pad"};
    static const int64_t pads[] = {0, INT64_C(1) << 36};
    for (size_t i = 0; i < 2 * sizeof ops / sizeof *ops; i++) {
        SCENARIO(i);
        const char *op = ops[i / 2];
        model_run r = {.options = PRONY_SESSION_OPTIONS_INIT};
        r.options.memory_limit_bytes = 16 * MIB;
        mr_open(&r, one_huge(op, i % 2));
        bool pad = strcmp(op, "Pad") == 0;
        if (i % 2 == 0)
            mr_set(&r, "n", PRONY_INT64, strcmp(op, "Range") == 0 ? "" : pad ? "2" : "1", pad ? pads : &huge);
        mr_refused(&r, PRONY_LIMIT, op);
        mr_close(&r);
    }
}

/* The limits of process, model and session are nested, and everything counts: a packed weight too. */
static void test_whose_limit(void **state)
{
    (void)state;
    static float weights[512 * 512];
    prony_error error = {0};
    for (int who = 0; who < 4; who++) {
        SCENARIO(who);
        model_builder *m = mb_begin(13);
        mb_input(m, "x", PRONY_FLOAT32, "1,512");
        mb_initializer(m, "w", PRONY_FLOAT32, "512,512", weights);
        mb_node(m, "MatMul", "x w", "y", "");
        mb_output(m, "y", PRONY_FLOAT32, "1,512");
        size_t size;
        const void *bytes = mb_finish(m, &size);
        uint64_t low = 1600 << 10; /* room for the weights as they are, not for a second form */
        prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
        prony_session_options session_options = PRONY_SESSION_OPTIONS_INIT;
        if (who == 1) options.memory_limit_bytes = low;
        if (who == 2) session_options.memory_limit_bytes = low;
        prony_model *model = NULL;
        prony_session *session = NULL;
        if (who == 3) prony_memory_set_limit(prony_memory_in_use() + low);
        prony_status status = prony_model_load_memory(&model, "w", bytes, size, &options, &error);
        if (status == PRONY_OK) status = prony_session_create(&session, model, &session_options, &error);
        if (status == PRONY_OK) status = prony_session_generate_inputs(session, 0, &error);
        if (status == PRONY_OK) status = prony_session_run(session, &error);
        prony_memory_set_limit(0);
        prony_session_release(session);
        prony_model_release(model);
        mb_free(m);
        assert_int_equal(status, who == 0 ? PRONY_OK : PRONY_LIMIT);
        if (who == 0) continue;
        if (!strstr(error.message, "node 'MatMul_0' (MatMul)")) fail_msg("%s", error.message);
        assert_non_null(strstr(error.message, "memory limit"));
    }
}

static void test_loading_counts(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = NULL;
    prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
    options.memory_limit_bytes = 4096;
    uint64_t held = prony_memory_in_use();
    size_t size;
    model_builder *m = doubled_text();
    const void *bytes = mb_finish(m, &size);
    assert_int_equal(prony_model_load_memory(&model, "small", bytes, size, &options, &error), PRONY_LIMIT);
    assert_non_null(strstr(error.message, "small"));
    assert_non_null(strstr(error.message, "memory limit is 4096"));
    assert_int_equal(prony_memory_in_use(), held);
    mb_free(m);
}

/* Few nodes, but each has the long names of its callers in front of its own. */
static void test_unfolding_counts_bytes(void **state)
{
    (void)state;
    enum { NAME = 1 << 20, CALLS = 30 };
    char *name = malloc(NAME + 1), in[16], out[16];
    memset(name, 'n', NAME);
    name[NAME] = '\0';
    model_builder *m = mb_begin(13);
    mb_opset(m, "f", 1);
    for (int level = 0; level < 2; level++) {
        mb_function_begin(m, level ? "f::outer" : "f::inner", "v0", "v30", "", "", 13);
        for (int i = 0; i < CALLS; i++) {
            snprintf(in, sizeof in, "v%d", i);
            snprintf(out, sizeof out, "v%d", i + 1);
            mb_node(m, level ? "f::inner" : "Relu", in, out, "");
        }
        if (level) mb_node_name(m, "last");
        mb_function_end(m);
    }
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_node(m, "f::outer", "x", "y", "");
    mb_node_name(m, name);
    mb_output(m, "y", PRONY_FLOAT32, "4");
    free(name);
    model_run r = {0};
    mr_open(&r, m);
    assert_int_equal(prony_session_generate_inputs(r.session, 0, &r.error), PRONY_OK);
    mr_refused(&r, PRONY_LIMIT, "unfold to more than 512 MiB");
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_one_huge_output),
        cmocka_unit_test(test_whose_limit),
        cmocka_unit_test(test_loading_counts),
        cmocka_unit_test(test_unfolding_counts_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
