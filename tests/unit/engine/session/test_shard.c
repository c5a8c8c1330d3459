/* Stages of a model, run one after the other in one process: the bits of the model in one piece, for any number of
 * stages. Random models, the models of this repository, and those of ONNX's test data that have several nodes. */
#include "failure_trace.h"
#include "prony_shard.h"
#include "tests/support/graph_run.h"
#include "tests/support/loader_checks.h"
#include "tests/support/model_run.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4, RANDOM_MODELS = 250 };

/* Inputs are already bound, or generated. Returns false without a result to compare with. */
static bool run_whole(prony_model *model, const prony_session_options *options, prony_session **session,
                      prony_error *error)
{
    if (prony_session_create(session, model, options, error) != PRONY_OK) return false;
    if (prony_session_generate_inputs(*session, 3, error) != PRONY_OK) return false;
    return prony_session_run(*session, error) == PRONY_OK;
}

static void set_inputs(prony_session *stage, const prony_shard_stage *row, prony_session *const *before,
                       const prony_session *whole)
{
    prony_error error = {0};
    for (size_t i = 0; i < row->input_count; i++) {
        const prony_shard_tensor *t = &row->inputs[i];
        const prony_value *value = NULL;
        if (t->from == PRONY_SHARD_MODEL)
            value = prony_session_input_value(whole, t->port);
        else if (prony_session_output(before[t->from], t->port, &value, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        if (prony_session_set_input(stage, t->name, value, &error) != PRONY_OK) fail_msg("%s", error.message);
    }
}

static void same_value(const prony_value *a, const prony_value *b, const char *name, int stages)
{
    if (a->kind != b->kind || a->dtype != b->dtype || !prn_shape_equal(&a->shape, &b->shape))
        fail_msg("%s, %d stages: another type or shape", name, stages);
    if (a->kind != PRONY_TENSOR || a->dtype == PRONY_STRING) return;
    const size_t bytes = prn_value_bytes(a);
    if (bytes && memcmp(a->data, b->data, bytes) != 0) fail_msg("%s, %d stages: other bits", name, stages);
}

static void compare(const prony_shard_stage *row, const prony_session *stage, const prony_session *whole,
                    const char *name, int stages)
{
    prony_error error = {0};
    for (size_t k = 0; k < row->output_count; k++) {
        const prony_value *got, *want;
        if (row->model_outputs[k] == PRONY_SHARD_MODEL) continue;
        if (prony_session_output(stage, k, &got, &error) != PRONY_OK) fail_msg("%s: %s", name, error.message);
        if (prony_session_output(whole, row->model_outputs[k], &want, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        same_value(got, want, name, stages);
    }
}

/* Every layer that was not evaluated at bind time is in one stage at most; MACs of the stages are those of the
 * model. */
static void check_layers(prony_model *model, const prony_session_options *options, const prony_shard_stage *rows,
                         size_t count)
{
    prony_error error = {0};
    prony_report *report = NULL;
    uint64_t macs = 0;
    if (prony_inspect(&report, model, options, &error) != PRONY_OK) return;
    size_t layer_count;
    const prony_layer_row *layers = prony_report_layers(report, &layer_count);
    int *seen = calloc(layer_count + 1, sizeof *seen);
    for (size_t s = 0; s < count; s++)
        for (size_t l = 0; l < rows[s].layer_count; l++) {
            assert_true(rows[s].layers[l] < layer_count);
            assert_int_equal(seen[rows[s].layers[l]]++, 0);
            macs += layers[rows[s].layers[l]].cost.macs;
        }
    for (size_t s = 0; s < count; s++) macs -= rows[s].macs;
    assert_int_equal(macs, 0);
    free(seen);
    prony_report_release(report);
}

/* 0: the model cannot be cut into so many. */
static int run_stages(prony_model *model, const prony_session_options *options, const prony_session *whole,
                      const char *name, int stages)
{
    prony_error error = {0};
    prony_shard_options o = PRONY_SHARD_OPTIONS_INIT;
    prony_shard_plan *plan = NULL;
    prony_session *sessions[MOST] = {0};
    o.stages = stages;
    o.session = options;
    prony_status status = prony_shard_plan_create(&plan, model, &o, &error);
    if (status == PRONY_INVALID_ARGUMENT &&
        (strstr(error.message, "stages need") || strstr(error.message, "may change bits")))
        return 0;
    if (status != PRONY_OK) fail_msg("%s, %d stages: %s", name, stages, error.message);
    size_t count;
    const prony_shard_stage *rows = prony_shard_plan_stages(plan, &count);
    assert_int_equal(count, stages);
    check_layers(model, options, rows, count);
    for (int s = 0; s < stages; s++) {
        prony_model *stage = NULL;
        prony_session_options own = PRONY_SESSION_OPTIONS_INIT;
        own.intra_op_threads = options->intra_op_threads;
        own.max_loop_trips = options->max_loop_trips;
        assert_int_equal(prony_shard_stage_model(&stage, plan, (size_t)s, &error), PRONY_OK);
        if (prony_session_create(&sessions[s], stage, &own, &error) != PRONY_OK) fail_msg("%s", error.message);
        prony_model_release(stage);
        set_inputs(sessions[s], &rows[s], sessions, whole);
        if (prony_session_run(sessions[s], &error) != PRONY_OK)
            fail_msg("%s, stage %d of %d: %s", name, s, stages, error.message);
        compare(&rows[s], sessions[s], whole, name, stages);
    }
    prony_shard_plan_release(plan); /* sessions keep what they need */
    for (int s = 0; s < stages; s++) {
        assert_int_equal(prony_session_run(sessions[s], &error), PRONY_OK);
        prony_session_release(sessions[s]);
    }
    return stages;
}

/* The most stages that were run. */
static int run_model(prony_model *model, const prony_session_options *options, const char *name)
{
    prony_error error = {0};
    prony_session *whole = NULL;
    int most = 0;
    if (run_whole(model, options, &whole, &error))
        for (int stages = 1; stages <= MOST; stages++) {
            const int ran = run_stages(model, options, whole, name, stages);
            most = ran > most ? ran : most;
        }
    prony_session_release(whole);
    return most;
}

static bool is_random(const prony_session *session, size_t outputs)
{
    for (size_t k = 0; k < outputs; k++) {
        bool random = false;
        prony_random_range range;
        if (prony_session_output_random(session, k, &random, &range, NULL) == PRONY_OK && random) return true;
    }
    return false;
}

static void random_models(void **state)
{
    (void)state;
    int cut[MOST + 1] = {0};
    for (uint64_t seed = 1; seed <= RANDOM_MODELS; seed++) {
        random_graph *g = random_graph_make(seed, 0);
        model_builder *m = random_graph_build(g);
        prony_model *model = NULL;
        prony_error error = {0};
        prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
        char name[64];
        size_t size;
        const void *bytes = mb_finish(m, &size);
        options.intra_op_threads = 1;
        snprintf(name, sizeof name, "random model %d", (int)seed);
        if (prony_model_load_memory(&model, name, bytes, size, NULL, &error) == PRONY_OK)
            cut[run_model(model, &options, name)]++;
        prony_model_release(model);
        mb_free(m);
        random_graph_free(g);
    }
    print_message("random models by stages: 1: %d, 2: %d, 3: %d, 4: %d\n", cut[1], cut[2], cut[3], cut[4]);
    assert_true(cut[4] > RANDOM_MODELS / 4);
}

static int run_file(const char *path, int64_t batch)
{
    prony_model *model = NULL;
    prony_error error = {0};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 2;
    options.max_loop_trips = 1000; /* generated bounds of a Loop may be none */
    options.batch = batch;
    if (prony_model_load(&model, path, NULL, &error) != PRONY_OK) return 0;
    prony_session *whole = NULL;
    const bool random = run_whole(model, &options, &whole, &error) && is_random(whole, prony_model_output_count(model));
    prony_session_release(whole);
    const int most = random ? 0 : run_model(model, &options, path);
    prony_model_release(model);
    return most;
}

static void models_of_this_repository(void **state)
{
    (void)state;
    assert_int_equal(run_file(PRN_SOURCE_DIR "/models/digits.onnx", 3), MOST);
    assert_int_equal(run_file(PRN_SOURCE_DIR "/tests/data/lenet5.onnx", 0), MOST);
}

static void models_of_onnx(void **state)
{
    (void)state;
    int ran = 0, cut = 0;
    DIR *folder = opendir(TEST_DATA "/node");
    if (!folder) skip();
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        if (!strstr(entry->d_name, "expanded") && !strstr(entry->d_name, "loop") && !strstr(entry->d_name, "sce_"))
            continue;
        snprintf(path, sizeof path, TEST_DATA "/node/%.300s/model.onnx", entry->d_name);
        const int most = run_file(path, 0);
        ran += most > 0;
        cut += most > 1;
    }
    closedir(folder);
    print_message("%d models ran, %d of them in several stages\n", ran, cut);
    assert_true(cut >= 20);
}

/* x -> NonZero -> ... : the shape at the cut is known to a run only, and changes from run to run. */
static void shapes_that_a_run_decides(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "3,4");
    mb_node(m, "NonZero", "x", "at", "");
    mb_node(m, "Cast", "at", "f", "to=1");
    mb_node(m, "Exp", "f", "e", "");
    mb_node(m, "Sqrt", "e", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "2,M");
    size_t size;
    const void *bytes = mb_finish(m, &size);
    prony_model *model = NULL;
    prony_error error = {0};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    assert_int_equal(prony_model_load_memory(&model, "nonzero", bytes, size, NULL, &error), PRONY_OK);
    prony_shard_options o = PRONY_SHARD_OPTIONS_INIT;
    prony_shard_plan *plan = NULL;
    const char *cuts[] = {"f"};
    o.stages = 2;
    o.cuts = cuts;
    o.cut_count = 1;
    o.session = &options;
    if (prony_shard_plan_create(&plan, model, &o, &error) != PRONY_OK) fail_msg("%s", error.message);
    const prony_shard_stage *rows = prony_shard_plan_stages(plan, NULL);
    prony_session *whole = NULL, *stages[2] = {0};
    assert_int_equal(prony_session_create(&whole, model, &options, &error), PRONY_OK);
    for (int s = 0; s < 2; s++) {
        SCENARIO(s);
        prony_model *stage = NULL;
        assert_int_equal(prony_shard_stage_model(&stage, plan, (size_t)s, &error), PRONY_OK);
        assert_int_equal(prony_session_create(&stages[s], stage, NULL, &error), PRONY_OK);
        prony_model_release(stage);
    }
    for (int zeros = 0; zeros <= 12; zeros += 3) {
        SCENARIO(zeros);
        float x[12];
        for (int i = 0; i < 12; i++) x[i] = i < zeros ? 0 : (float)i + 1;
        const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {2, {3, 4}}, .data = x};
        assert_int_equal(prony_session_set_input(whole, "x", &value, &error), PRONY_OK);
        assert_int_equal(prony_session_run(whole, &error), PRONY_OK);
        for (int s = 0; s < 2; s++) {
            set_inputs(stages[s], &rows[s], stages, whole);
            if (prony_session_run(stages[s], &error) != PRONY_OK) fail_msg("%d zeros: %s", zeros, error.message);
            compare(&rows[s], stages[s], whole, "nonzero", 2);
        }
    }
    prony_session_release(whole);
    for (int s = 0; s < 2; s++) prony_session_release(stages[s]);
    prony_shard_plan_release(plan);
    prony_model_release(model);
    mb_free(m);
}

/* DenseNet's pattern: each block concatenates the results of all before it. In the whole model they are blocked by
 * channels, and a cut has many of them, which it makes plain. */
static void dense_blocks(void **state)
{
    (void)state;
    enum { BLOCKS = 40, GROWTH = 16, WINDOW = 9 };
    static float weights[GROWTH * GROWTH * BLOCKS * WINDOW];
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) weights[i] = (float)(i % 13) / 40 - 0.15f;
    model_builder *m = mb_begin(13);
    char all[8 * BLOCKS] = "x", conv[32], sum[16], active[16] = "x", dims[32];
    mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
    for (int i = 0; i < BLOCKS; i++) {
        snprintf(dims, sizeof dims, "%d,%d,3,3", GROWTH, GROWTH * (i + 1));
        snprintf(conv, sizeof conv, "w%d", i);
        mb_initializer(m, conv, PRONY_FLOAT32, dims, weights);
        snprintf(conv, sizeof conv, "%s w%d", active, i);
        const size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, " c%d", i);
        mb_node(m, "Conv", conv, all + length + 1, "pads=[1,1,1,1]");
        snprintf(sum, sizeof sum, "s%d", i);
        mb_node(m, "Concat", all, sum, "axis=1");
        snprintf(active, sizeof active, "p%d", i);
        if (i % 4 == 3)
            mb_node(m, "MaxPool", sum, active, "kernel_shape=[3,3] pads=[1,1,1,1]");
        else
            mb_node(m, "Relu", sum, active, "");
    }
    mb_output(m, active, PRONY_FLOAT32, "1,656,4,4");
    size_t size;
    const void *bytes = mb_finish(m, &size);
    prony_model *model = NULL;
    prony_error error = {0};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    assert_int_equal(prony_model_load_memory(&model, "dense", bytes, size, NULL, &error), PRONY_OK);
    assert_int_equal(run_model(model, &options, "dense"), MOST);
    prony_model_release(model);
    mb_free(m);
}

static prony_status plan_digits(prony_shard_plan **plan, const prony_shard_options *o, prony_error *error)
{
    prony_model *model = NULL;
    *error = (prony_error){0};
    assert_int_equal(prony_model_load(&model, PRN_SOURCE_DIR "/models/digits.onnx", NULL, error), PRONY_OK);
    prony_status status = prony_shard_plan_create(plan, model, o, error);
    prony_model_release(model);
    return status;
}

static void refusals(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_shard_plan *plan = NULL;
    prony_shard_options o = PRONY_SHARD_OPTIONS_INIT;
    assert_int_equal(prony_shard_plan_create(NULL, NULL, &o, &error), PRONY_INVALID_ARGUMENT);
    o.stages = 0;
    assert_int_equal(plan_digits(&plan, &o, &error), PRONY_INVALID_ARGUMENT);
    o.stages = 900;
    assert_int_equal(plan_digits(&plan, &o, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "the model can be cut at"));
    o.stages = 2;
    o.cuts = (const char *const[]){"no such tensor"};
    o.cut_count = 1;
    assert_int_equal(plan_digits(&plan, &o, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "no such tensor"));
    o.stages = 3;
    assert_int_equal(plan_digits(&plan, &o, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "3 stages need 2 cuts, and 1 are given"));
    o.cut_count = 0;
    o.memory_limit_bytes = 100;
    assert_int_equal(plan_digits(&plan, &o, &error), PRONY_LIMIT);
    assert_non_null(strstr(error.message, "100 bytes a stage"));
    assert_null(plan);
}

/* Measured times move the cut: a layer with nearly all of the time gets its own stage. */
static void balance(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    static const char *const names[] = {"x", "a", "b", "c", "d", "y"};
    static const char *const ops[] = {"Exp", "Sin", "Sqrt", "Cos", "Tanh"};
    mb_input(m, "x", PRONY_FLOAT32, "8,8");
    for (int i = 0; i < 5; i++) mb_node(m, ops[i], names[i], names[i + 1], "");
    mb_output(m, "y", PRONY_FLOAT32, "8,8");
    size_t size;
    const void *bytes = mb_finish(m, &size);
    prony_model *model = NULL;
    prony_error error = {0};
    assert_int_equal(prony_model_load_memory(&model, "chain", bytes, size, NULL, &error), PRONY_OK);
    for (size_t slow = 1; slow < 5; slow++) {
        SCENARIO(slow);
        double times[5] = {1, 1, 1, 1, 1};
        times[slow] = 1000;
        prony_shard_options o = PRONY_SHARD_OPTIONS_INIT;
        prony_shard_plan *plan = NULL;
        o.stages = 2;
        o.layer_ns = times;
        o.layer_count = 5;
        o.latency_ns = 10;
        o.bytes_per_ns = 1000;
        assert_int_equal(prony_shard_plan_create(&plan, model, &o, &error), PRONY_OK);
        const prony_shard_stage *rows = prony_shard_plan_stages(plan, NULL);
        assert_int_equal(rows[0].layer_count + rows[1].layer_count, 5);
        assert_int_equal(rows[0].compute_ns + rows[1].compute_ns, 1004);
        assert_int_equal(rows[1].received_bytes, 8 * 8 * sizeof(float));
        assert_int_equal(rows[0].sent_bytes, rows[1].received_bytes);
        assert_string_equal(prony_shard_plan_basis(plan), "measured");
        assert_int_equal(rows[1].transfer_ns, 10);
        const int64_t one = prony_shard_plan_step_ns(plan, 1), ten = prony_shard_plan_step_ns(plan, 10);
        assert_int_equal(one, 1004 + 10);
        assert_true(ten >= 10 * 1000 && ten < 10 * one);
        prony_shard_plan_release(plan);
    }
    prony_model_release(model);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_of_this_repository),
                                       cmocka_unit_test(shapes_that_a_run_decides),
                                       cmocka_unit_test(dense_blocks),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(balance),
                                       cmocka_unit_test(random_models),
                                       cmocka_unit_test(models_of_onnx)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
