/* Bounds on what a model file can cost: stack, and quadratic time (memory: test_memory_bounds.c). Time needs no clock:
 * at these sizes a quadratic walk takes many minutes, and the test's time limit is far above a linear one. */
#include "failure_trace.h"
#include "base/memory/stack.h"
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
    uint64_t hash; /* of output 0 */
} deep_run;
static uint64_t last_hash; /* of the last on_stack */

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
    const prony_value *y = NULL;
    if (d->status == PRONY_OK) d->status = prony_session_output(session, 0, &y, &d->error);
    const size_t out_bytes = y ? prony_dtype_bytes(y->dtype, prony_shape_numel(&y->shape)) : 0;
    for (size_t i = 0; i < out_bytes; i++)
        d->hash = (d->hash ^ ((const uint8_t *)y->data)[i]) * UINT64_C(0x100000001b3);
    prony_session_release(session);
    prony_model_release(model);
    return NULL;
}

/* With this much of the thread's stack left; 0: all of it. */
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
    deep_run d = {.builder = m, .left = left, .hash = 1};
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, thread_bytes), 0);
    assert_int_equal(pthread_create(&thread, &attributes, load_and_run_deep, &d), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    mb_free(m);
    *error = d.error;
    last_hash = d.hash;
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
    mb_node(m, "And", "b nb", "c", ""); /* false, known at run time only */
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

/* Matrix products, with and without constants, large enough for all of their kernels, in the branch of an If that
 * runs. */
static model_builder *products(bool quantized)
{
    enum { DEPTH = 128, COLUMNS = 96 };
    static float weights[DEPTH * COLUMNS];
    for (int i = 0; i < DEPTH * COLUMNS; i++) weights[i] = (float)(i * 7 % 31 - 15) / 16.1f;
    model_builder *m = mb_begin(13);
    mb_input(m, "a", PRONY_FLOAT32, "300,128");
    mb_input(m, "v", PRONY_FLOAT32, "128,96");
    mb_input(m, "b", PRONY_BOOL, "");
    mb_initializer(m, "w", PRONY_FLOAT32, "128,96", weights);
    mb_node(m, "Not", "b", "nb", "");
    mb_node(m, "And", "b nb", "c", "");
    mb_node(m, "If", "c", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "MatMul", "a v", "p", "");
    mb_output(m, "p", PRONY_FLOAT32, "300,96");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    if (quantized) {
        mb_node(m, "DynamicQuantizeLinear", "a", "qa sa za", "");
        mb_node(m, "DynamicQuantizeLinear", "w", "qw sw zw", "");
        mb_node(m, "MatMulInteger", "qa qw za zw", "q", "");
        mb_node(m, "Cast", "q", "y2", "to=1");
    } else {
        mb_node(m, "MatMul", "a w", "x", "");
        mb_node(m, "MatMul", "a v", "z", "");
        mb_node(m, "Add", "x z", "y2", "");
    }
    mb_output(m, "y2", PRONY_FLOAT32, "300,96");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "300,96");
    return m;
}

/* Blocks of products take no more of the caller's stack than the check requires. With any remaining stack they run,
 * to the same bits, or are refused. */
static void test_products_on_small_stacks(void **state)
{
    (void)state;
    for (int quantized = 0; quantized < 2; quantized++) {
        SCENARIO(quantized);
        prony_error error = {0};
        assert_int_equal(on_stack(products(quantized), LARGE_STACK, 0, &error), PRONY_OK);
        const uint64_t wanted = last_hash;
        prony_status status = on_stack(products(quantized), ((size_t)256 << 10) * STACK_SCALE, 0, &error);
        if (status != PRONY_OK) fail_msg("256 KiB: %s", error.message);
        assert_true(last_hash == wanted);
        for (size_t left = PRN_STACK_NEEDED; left < 2 * PRN_STACK_NEEDED; left += (size_t)4 << 10) {
            status = on_stack(products(quantized), LARGE_STACK, left, &error);
            if (status != PRONY_OK && !strstr(error.message, "stack are left"))
                fail_msg("%zu bytes: %s", left, error.message);
            if (status == PRONY_OK) assert_true(last_hash == wanted);
        }
        assert_int_equal(status, PRONY_OK);
    }
}

static void test_small_stack(void **state)
{
    (void)state;
    size_t bytes = ((size_t)256 << 10) * STACK_SCALE;
    prony_error error = {0};
    model_builder *(*const build[])(int) = {nested_ifs, nested_loops, nested_calls};
    for (size_t i = 0; i < sizeof build / sizeof *build; i++) {
        SCENARIO(i);
        for (int depth = 1; depth <= 63; depth += depth < 4 ? 1 : 12) {
            prony_status status = on_stack(build[i](depth), LARGE_STACK, bytes, &error);
            if (status != PRONY_OK) fail_msg("%zu, %d deep: %s", i, depth, error.message);
            /* The thread-local variables of every library come out of a thread's stack first. */
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

/* Split into many slices and Concat of many, in and out of order. */
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

/* Many nodes read one value, and all their results live to the end. Each node has an unaligned constant. */
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

/* Bytes per node that a session of a long chain holds; a report holds as much again. */
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

/* Nodes that rewrites remove far from their readers, and nodes that differ in one attribute. */
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
    assert_int_equal(prony_model_load(&model, PRN_SOURCE_DIR "/tests/data/constant_without_output.onnx", NULL, &error),
                     PRONY_OK);
    assert_int_equal(prony_inspect(&report, model, NULL, &error), PRONY_INVALID_MODEL);
    assert_non_null(strstr(error.message, "output 0 is required"));
    prony_model_release(model);
}

/* No elements, but other large dimensions that no loop may walk along. */
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
        SCENARIO_NAMED(i, of[i].op);
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
        cmocka_unit_test(test_small_stack),
        cmocka_unit_test(test_smaller_stack),
        cmocka_unit_test(test_products_on_small_stacks),
        cmocka_unit_test(test_many_operands),
        cmocka_unit_test(test_many_outputs),
        cmocka_unit_test(test_bytes_of_a_node),
        cmocka_unit_test(test_many_rewrites),
        cmocka_unit_test(test_many_functions),
        cmocka_unit_test(test_many_symbols),
        cmocka_unit_test(test_nothing_of_great_extent),
        cmocka_unit_test(test_constant_without_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
