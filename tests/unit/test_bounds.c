/* What a model file can make the library take: memory, stack, and time that grows with the square of something. The last
 * has no clock in it: at these sizes a quadratic walk takes many minutes, and the test's time limit is far above what a
 * linear one needs. */
#include "base/stack.h"
#include "tests/support/model_run.h"
#include "prony_report.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

/* ---- memory ---- */

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

/* Split at every second blank, joined again with itself: text and its cuts grow together. */
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

/* One operator that is asked for a lot: how much is an input that only the run knows, or a constant. */
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
    } rows[] = {{"StringConcat", doubled_text},      {"(StringConcat)", split_text},
                {"node 'twice' (Concat)", doubled_in_loop}, {"node '", sequence_in_loop},
                {"(Concat)", doubled_constant},      {"(Concat)", doubled_input}};
    static const prony_string word = {"abcdefgh", 8};
    static const float x[1024];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
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
        assert_true(prony_memory_in_use() <= held + 65536); /* the thread's team stays */
    }
}

static void test_one_huge_output(void **state)
{
    (void)state;
    static const char *const ops[] = {"ConstantOfShape", "Expand", "Tile", "Range", "Pad"};
    static const int64_t pads[] = {0, INT64_C(1) << 36};
    for (size_t i = 0; i < 2 * sizeof ops / sizeof *ops; i++) {
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

/* The limits of process, model and session are one inside of the other, and everything counts: a packed weight too. */
static void test_whose_limit(void **state)
{
    (void)state;
    static float weights[512 * 512];
    prony_error error = {0};
    for (int who = 0; who < 4; who++) {
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

/* Few nodes, but each with its callers' long names in front of its own. */
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

/* ---- stack ---- */

/* Sanitizers make frames several times as large. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_SCALE 12
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STACK_SCALE 12
#endif
#endif
#ifndef STACK_SCALE
#define STACK_SCALE 1
#endif

typedef struct deep_run {
    model_builder *builder;
    prony_status status;
    prony_error error;
    size_t left;
} deep_run;

static void *load_and_run(void *argument)
{
    deep_run *d = argument;
    size_t size;
    const void *bytes = mb_finish(d->builder, &size);
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    prony_model *model = NULL;
    prony_session *session = NULL;
    d->status = prony_model_load_memory(&model, "deep", bytes, size, NULL, &d->error);
    if (d->status == PRONY_OK) d->status = prony_session_create(&session, model, &options, &d->error);
    if (d->status == PRONY_OK) d->status = prony_session_generate_inputs(session, 0, &d->error);
    for (int run = 0; run < 2 && d->status == PRONY_OK; run++) d->status = prony_session_run(session, &d->error);
    prony_session_release(session);
    prony_model_release(model);
    return NULL;
}

/* With so much of the thread's stack left; 0: as much as there is. */
static void *load_and_run_deep(void *argument)
{
    deep_run *d = argument;
    volatile char *waste = NULL;
    if (d->left) {
        assert_true(prn_stack_left() > d->left && prn_stack_left() < (size_t)64 << 20);
        waste = __builtin_alloca(prn_stack_left() - d->left);
        waste[0] = 0;
    }
    return load_and_run(d);
}

static prony_status on_stack(model_builder *m, size_t thread_bytes, size_t left, prony_error *error)
{
    pthread_attr_t attributes;
    pthread_t thread;
    deep_run d = {.builder = m, .left = left};
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, thread_bytes), 0);
    assert_int_equal(pthread_create(&thread, &attributes, load_and_run_deep, &d), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    mb_free(m);
    *error = d.error;
    return d.status;
}

#define LARGE_STACK ((size_t)8 << 20)

/* Runs at all depths: both branches hold the next level, or one Relu. */
static void nest_if(model_builder *m, int depth)
{
    char name[16];
    snprintf(name, sizeof name, "y%d", depth);
    if (depth == 0) {
        mb_node(m, "Relu", "x", name, "");
    } else {
        mb_node(m, "If", "c", name, "");
        mb_graph_begin(m, "then_branch");
        mb_node(m, "Neg", "x", "n", "");
        mb_output(m, "n", PRONY_FLOAT32, "4");
        mb_graph_end(m);
        mb_graph_begin(m, "else_branch");
        nest_if(m, depth - 1);
        mb_graph_end(m);
    }
    mb_output(m, name, PRONY_FLOAT32, "4");
}

static model_builder *nested_ifs(int depth)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_input(m, "b", PRONY_BOOL, "");
    mb_node(m, "Not", "b", "nb", "");
    mb_node(m, "And", "b nb", "c", ""); /* false, and nobody knows before the run */
    nest_if(m, depth);
    return m;
}

static model_builder *nested_loops(int depth)
{
    model_builder *m = mb_begin(13);
    char in[32], state[16], made[16], trip[16], on[16], still[16];
    static const int64_t once = 1;
    mb_initializer(m, "once", PRONY_INT64, "", &once);
    mb_input(m, "a0", PRONY_FLOAT32, "4");
    for (int d = 0; d < depth; d++) {
        snprintf(in, sizeof in, "once ? a%d", d);
        snprintf(made, sizeof made, "m%d", d);
        snprintf(state, sizeof state, "a%d", d + 1);
        snprintf(trip, sizeof trip, "t%d", d);
        snprintf(on, sizeof on, "on%d", d);
        mb_node(m, "Loop", in, made, "");
        mb_graph_begin(m, "body");
        mb_input(m, trip, PRONY_INT64, "");
        mb_input(m, on, PRONY_BOOL, "");
        mb_input(m, state, PRONY_FLOAT32, "4");
    }
    snprintf(in, sizeof in, "a%d", depth);
    snprintf(made, sizeof made, "m%d", depth);
    mb_node(m, "Relu", in, made, "");
    for (int d = depth; d-- > 0;) {
        snprintf(on, sizeof on, "on%d", d);
        snprintf(still, sizeof still, "s%d", d);
        mb_node(m, "Identity", on, still, "");
        mb_output(m, still, PRONY_BOOL, "");
        snprintf(made, sizeof made, "m%d", d + 1);
        mb_output(m, made, PRONY_FLOAT32, "4");
        mb_graph_end(m);
    }
    mb_output(m, "m0", PRONY_FLOAT32, "4");
    return m;
}

static model_builder *nested_calls(int depth)
{
    model_builder *m = mb_begin(13);
    char name[16], op[16];
    mb_opset(m, "f", 1);
    for (int d = 0; d < depth; d++) {
        snprintf(name, sizeof name, "f::F%d", d);
        snprintf(op, sizeof op, "f::F%d", d - 1);
        mb_function_begin(m, name, "a", "b", "", "", 13);
        mb_node(m, d ? op : "Relu", "a", "b", "");
        mb_function_end(m);
    }
    mb_input(m, "x", PRONY_FLOAT32, "4");
    snprintf(op, sizeof op, "f::F%d", depth - 1);
    mb_node(m, op, "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    return m;
}

static void test_small_stack(void **state)
{
    (void)state;
    size_t bytes = ((size_t)256 << 10) * STACK_SCALE;
    prony_error error = {0};
    model_builder *(*const build[])(int) = {nested_ifs, nested_loops, nested_calls};
    for (size_t i = 0; i < sizeof build / sizeof *build; i++) {
        for (int depth = 1; depth <= 63; depth += depth < 4 ? 1 : 12) {
            prony_status status = on_stack(build[i](depth), LARGE_STACK, bytes, &error);
            if (status != PRONY_OK) fail_msg("%zu, %d deep: %s", i, depth, error.message);
            /* Of a thread's own stack the thread-local variables of every library are taken first. */
            status = on_stack(build[i](depth), bytes, 0, &error);
            if (status != PRONY_OK && (depth <= 16 || !strstr(error.message, "stack are left")))
                fail_msg("%zu, %d deep on a small thread: %s", i, depth, error.message);
        }
    }
}

/* On less, it says so. */
static void test_smaller_stack(void **state)
{
    (void)state;
    size_t bytes = PRN_STACK_NEEDED + ((size_t)32 << 10) * (STACK_SCALE > 1 ? 4 : 1); /* for a few levels, not for 60 */
    prony_error error = {0};
    assert_int_equal(on_stack(nested_ifs(60), LARGE_STACK, bytes, &error), PRONY_LIMIT);
    assert_non_null(strstr(error.message, "stack are left"));
    assert_non_null(strstr(error.message, "(If)"));
    assert_int_equal(on_stack(nested_ifs(2), LARGE_STACK, bytes, &error), PRONY_OK);
}

/* ---- growth ---- */

/* `count` names "p0 p1 …". */
static char *names(const char *prefix, int count)
{
    char *text = malloc((size_t)count * 12 + 1), *at = text;
    for (int i = 0; i < count; i++) at += sprintf(at, "%s%s%d", i ? " " : "", prefix, i);
    return text;
}

static void run_whole(model_builder *m)
{
    model_run r = {.options = PRONY_SESSION_OPTIONS_INIT};
    prony_report *report = NULL;
    r.options.intra_op_threads = 1;
    mr_open(&r, m);
    if (prony_session_generate_inputs(r.session, 0, &r.error) != PRONY_OK) fail_msg("%s", r.error.message);
    (void)mr_run(&r, 0);
    if (prony_inspect(&report, r.model, NULL, &r.error) != PRONY_OK) fail_msg("%s", r.error.message);
    prony_report_release(report);
    mr_close(&r);
}

/* Split into many and Concat of many, in and out of order. */
static void test_many_operands(void **state)
{
    (void)state;
    enum { MANY = 200000 };
    char dims[16], *parts = names("p", MANY);
    snprintf(dims, sizeof dims, "%d", MANY);
    for (int kind = 0; kind < 2; kind++) {
        model_builder *m = mb_begin(11);
        mb_input(m, "x", PRONY_FLOAT32, dims);
        mb_node(m, "Split", "x", parts, "axis=0");
        if (kind == 0)
            mb_node(m, "Sum", parts, "y", "");
        else
            mb_node(m, "Concat", parts, "y", "axis=0");
        mb_output(m, "y", PRONY_FLOAT32, NULL);
        run_whole(m);
    }
    free(parts);
}

/* Many nodes that read one value and whose results all live to the end; each with an unaligned constant of its own. */
static void test_many_outputs(void **state)
{
    (void)state;
    enum { MANY = 60000 };
    model_builder *m = mb_begin(13);
    char c[16], in[32], out[16];
    mb_input(m, "x", PRONY_FLOAT32, "4");
    for (int i = 0; i < MANY; i++) {
        float value = (float)i;
        snprintf(c, sizeof c, "c%d", i);
        snprintf(in, sizeof in, "x c%d", i);
        snprintf(out, sizeof out, "o%d", i);
        mb_initializer(m, c, PRONY_FLOAT32, "1", &value);
        mb_node(m, "Add", in, out, "");
        mb_output(m, out, PRONY_FLOAT32, "4");
    }
    run_whole(m);
}

/* What a session of a long chain holds for each node; a report holds as much again. */
static void test_bytes_of_a_node(void **state)
{
    (void)state;
    enum { MANY = 20000, MOST_BYTES = 2250 };
    const uint64_t before = prony_memory_in_use();
    model_builder *m = mb_begin(13);
    char in[32], out[16];
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_input(m, "v0", PRONY_FLOAT32, "4");
    for (int i = 0; i < MANY; i++) {
        snprintf(in, sizeof in, i % 2 ? "v%d x" : "v%d", i);
        snprintf(out, sizeof out, "v%d", i + 1);
        mb_node(m, i % 2 ? "Add" : "Relu", in, out, "");
    }
    mb_output(m, out, PRONY_FLOAT32, "4");
    model_run r = {.options = PRONY_SESSION_OPTIONS_INIT};
    r.options.intra_op_threads = 1;
    mr_open(&r, m);
    if (prony_session_generate_inputs(r.session, 0, &r.error) != PRONY_OK) fail_msg("%s", r.error.message);
    (void)mr_run(&r, 0);
    const uint64_t held = (prony_memory_in_use() - before) / MANY;
    if (held > MOST_BYTES) fail_msg("%llu bytes a node", (unsigned long long)held);
    mr_close(&r);
}

/* What rewrites take away far from where it is read, and nodes that differ in an attribute alone. */
static void test_many_rewrites(void **state)
{
    (void)state;
    enum { MANY = 60000 };
    model_builder *m = mb_begin(13);
    char in[16], out[16], attribute[32], *all = names("v", MANY);
    mb_input(m, "x", PRONY_FLOAT32, "4");
    for (int i = 0; i < MANY; i++) {
        snprintf(out, sizeof out, "a%d", i);
        snprintf(attribute, sizeof attribute, "alpha=0.%06d", i + 100);
        mb_node(m, "LeakyRelu", "x", out, attribute);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(in, sizeof in, "a%d", i);
        snprintf(out, sizeof out, "v%d", i);
        mb_node(m, "Identity", in, out, "");
    }
    mb_node(m, "Sum", all, "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    free(all);
    run_whole(m);
}

static void test_many_functions(void **state)
{
    (void)state;
    enum { MANY = 60000 };
    model_builder *m = mb_begin(13);
    char name[24], in[16], out[16];
    mb_opset(m, "f", 1);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "f::F%d", i);
        mb_function_begin(m, name, "a", "b", "", "", 13);
        mb_node(m, i % 2 ? "Relu" : "Sigmoid", "a", "b", "");
        mb_function_end(m);
    }
    mb_input(m, "v0", PRONY_FLOAT32, "4");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "f::F%d", i);
        snprintf(in, sizeof in, "v%d", i);
        snprintf(out, sizeof out, "v%d", i + 1);
        mb_node(m, name, in, out, "");
    }
    mb_output(m, "v60000", PRONY_FLOAT32, "4");
    run_whole(m);
}

/* A Constant whose output has no name. */
static void test_constant_without_output(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = NULL;
    prony_report *report = NULL;
    assert_int_equal(prony_model_load(&model, PRN_SOURCE_DIR "/tests/data/constant_without_output.onnx", NULL, &error), PRONY_OK);
    assert_int_equal(prony_inspect(&report, model, NULL, &error), PRONY_INVALID_MODEL);
    assert_non_null(strstr(error.message, "output 0 is required"));
    prony_model_release(model);
}

/* No elements, but other extents that no loop may walk along. */
static void test_nothing_of_great_extent(void **state)
{
    (void)state;
    static const struct {
        const char *op, *shape, *attributes;
        int opset;
    } of[] = {{"MeanVarianceNormalization", "3,3,3,0,4294967296,3", "", 13},
              {"Softmax", "4294967296,0,1024", "axis=1", 13},
              {"LpNormalization", "4294967296,0,1024", "axis=0", 13},
              {"CumSum", "0,4294967296,1024", "", 14},
              {"ReduceSum", "4294967296,0,1024", "keepdims=0", 11},
              {"ReduceMax", "1024,4294967296,0", "axes=[0,1,2]", 11},
              {"ReduceL2", "4294967296,0", "axes=[1,0]", 11},
              {"NonZero", "4294967296,0,1024", "", 13},
              {"Transpose", "4294967296,0,1024", "perm=[2,1,0]", 13},
              {"GlobalAveragePool", "0,4294967296,1024", "", 13},
              {"LayerNormalization", "4294967296,1024,0", "", 17},
              {"Unique", "0,4294967296", "", 13},
              {"Relu", "4294967296,0,1024", "", 13},
              {"DepthToSpace", "4294967296,4,0,3", "blocksize=2", 13},
              {"Hardmax", "4294967296,0", "axis=0", 13},
              {"InstanceNormalization", "4294967296,0,7", "", 13},
              {"LRN", "4294967296,3,0,5", "size=3", 13}};
    static const float none[1];
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        model_run r = {0};
        model_builder *m = mb_begin(of[i].opset);
        const int64_t axis = 1;
        mb_input(m, "x", PRONY_FLOAT32, of[i].shape);
        mb_initializer(m, "axis", PRONY_INT64, "", &axis);
        mb_initializer(m, "none", PRONY_FLOAT32, "0", none);
        const char *inputs = strcmp(of[i].op, "CumSum") == 0                  ? "x axis"
                             : strcmp(of[i].op, "LayerNormalization") == 0    ? "x none"
                             : strcmp(of[i].op, "InstanceNormalization") == 0 ? "x none none"
                                                                              : "x";
        mb_node(m, of[i].op, inputs, "y", of[i].attributes);
        mb_output(m, "y", strcmp(of[i].op, "NonZero") == 0 ? PRONY_INT64 : PRONY_FLOAT32, NULL);
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, of[i].shape, none);
        if (prony_session_run(r.session, &r.error) != PRONY_OK) fail_msg("%s: %s", of[i].op, r.error.message);
        mr_close(&r);
    }
}

static void test_many_symbols(void **state)
{
    (void)state;
    enum { MANY = 60000 };
    model_builder *m = mb_begin(13);
    char name[16], dim[16], *all = names("i", MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "i%d", i);
        snprintf(dim, sizeof dim, "d%d", i);
        mb_input(m, name, PRONY_FLOAT32, dim);
    }
    mb_node(m, "Sum", all, "y", "");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    free(all);
    run_whole(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_one_huge_output),
        cmocka_unit_test(test_whose_limit),    cmocka_unit_test(test_loading_counts),
        cmocka_unit_test(test_unfolding_counts_bytes),
        cmocka_unit_test(test_small_stack),    cmocka_unit_test(test_smaller_stack),
        cmocka_unit_test(test_many_operands),  cmocka_unit_test(test_many_outputs),
        cmocka_unit_test(test_bytes_of_a_node), cmocka_unit_test(test_many_rewrites),  cmocka_unit_test(test_many_functions),
        cmocka_unit_test(test_many_symbols),   cmocka_unit_test(test_nothing_of_great_extent),
        cmocka_unit_test(test_constant_without_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
