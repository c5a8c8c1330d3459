/* Models that an OpenCL device does not hold as a whole, and chains of operators whose copies do not pay: a part of the
 * operators stays on the host, results stay, and the report says where and why. Skipped without OpenCL. */
#include "failure_trace.h"
#include "engine/plan/device_split.h"
#include "engine/session/session.h"
#include "profiler/statistics/statistics.h"
#include "prony_analysis.h"
#include "prony_device.h"
#include "tests/support/device_here.h"
#include "tests/support/model_run.h"
#include "tests/support/text_sink.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef PRN_HAVE_OPENCL
#include "tests/support/cache_folder.h"

/* ---- memory ---- */

enum { LAYERS = 6, WIDTH = 64, ROWS = 3, WEIGHT_BYTES = WIDTH * WIDTH * (int)sizeof(float) };
static float weights[LAYERS][WIDTH * WIDTH], image[ROWS * WIDTH], wanted[ROWS * WIDTH];

/* LAYERS products, each with a Tanh, whose weights differ. */
static model_builder *products(void)
{
    char name[16], in[32], out[16], last[16] = "x";
    uint64_t seed = 7;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "3,64");
    for (int l = 0; l < LAYERS; l++) {
        for (int i = 0; i < WIDTH * WIDTH; i++) weights[l][i] = 0.2f * (float)prn_random_normal(&seed);
        snprintf(name, sizeof name, "w%d", l);
        snprintf(in, sizeof in, "%s %s", last, name);
        snprintf(out, sizeof out, "p%d", l);
        mb_initializer(m, name, PRONY_FLOAT32, "64,64", weights[l]);
        mb_node(m, "MatMul", in, out, "");
        snprintf(last, sizeof last, "t%d", l);
        mb_node(m, "Tanh", out, last, "");
    }
    for (int i = 0; i < ROWS * WIDTH; i++) image[i] = (float)prn_random_normal(&seed);
    mb_output(m, last, PRONY_FLOAT32, "3,64");
    return m;
}

static void open_products(model_run *r, const char *device)
{
    r->options.device = device;
    mr_open(r, products());
    mr_set(r, "x", PRONY_FLOAT32, "3,64", image);
}

static void expect_wanted(const float *got)
{
    for (int i = 0; i < ROWS * WIDTH; i++)
        if (!(fabsf(got[i] - wanted[i]) < 1e-4f)) fail_msg("element %d: %g, %g", i, (double)got[i], (double)wanted[i]);
}

static const prn_plan *plan_of(const model_run *r)
{
    return r->session->current->plan;
}

static size_t steps_with_kernel(const model_run *r, const char *start, bool on_device)
{
    size_t count = 0;
    for (size_t s = 0; s < plan_of(r)->step_count; s++) {
        const prn_step *step = plan_of(r)->steps[s];
        if (step->kernel && strcmp(step->node->info.op_type, start) == 0)
            count += (step->kernel->memory_space != NULL) == on_device;
    }
    return count;
}

/* Room for every number of products: results stay, the device's memory stays within the limit, and what does not fit is
 * one run of operators at the end. */
static void room_for_some(void **state)
{
    (void)state;
    model_run host = {0};
    open_products(&host, NULL);
    memcpy(wanted, mr_run(&host, 0)->data, sizeof wanted);
    mr_close(&host);
    for (size_t room = 1; room <= LAYERS; room++) {
        model_run r = {.options.device_memory_limit_bytes = room * WEIGHT_BYTES + 8192};
        SCENARIO(room);
        open_products(&r, "opencl");
        expect_wanted(mr_run(&r, 0)->data);
        expect_wanted(mr_run(&r, 0)->data);
        assert_int_equal(steps_with_kernel(&r, "MatMul", true), room);
        assert_int_equal(steps_with_kernel(&r, "Copy", false), 2); /* in and out */
        assert_true(prn_device_usage(r.session->device).bytes <= r.options.device_memory_limit_bytes);
        const prn_device_split *split = plan_of(&r)->split;
        assert_true((room < LAYERS) == (split != NULL));
        if (split) {
            assert_int_equal(split->weight_bytes, (LAYERS - room) * WEIGHT_BYTES);
            assert_int_equal(split->for_copies, 0);
        }
        mr_close(&r);
    }
}

/* No room for a single product: Tanh still fits. No room for anything: refused, as everything is with "none". */
static void too_little_room(void **state)
{
    (void)state;
    model_run nothing = {.options.device_memory_limit_bytes = 100};
    open_products(&nothing, "opencl");
    mr_refused(&nothing, PRONY_LIMIT, "no room for a single operator");
    mr_close(&nothing);
    model_run all = {.options.device_memory_limit_bytes = 3 * WEIGHT_BYTES,
                     .options.device_split = PRONY_DEVICE_SPLIT_NONE};
    open_products(&all, "opencl");
    mr_refused(&all, PRONY_LIMIT, "of the device");
    mr_close(&all);
    model_run some = {.options.device_memory_limit_bytes = 3 * WEIGHT_BYTES,
                      .options.device_split = PRONY_DEVICE_SPLIT_MEMORY};
    open_products(&some, "opencl");
    expect_wanted(mr_run(&some, 0)->data);
    assert_true(steps_with_kernel(&some, "MatMul", true) > 0);
    mr_close(&some);
    model_run invalid = {.options.device_split = (prony_device_split)3};
    assert_int_equal(mr_try_open(&invalid, products()), PRONY_INVALID_ARGUMENT);
    mr_close(&invalid);
}

/* A second session of the model finds the weights of the first on the device; they take no room again. */
static void sessions_share_the_room(void **state)
{
    (void)state;
    model_run r = {.options.device_memory_limit_bytes = 4 * WEIGHT_BYTES + 3 * 4096};
    prony_session *second = NULL;
    prony_error error = {0};
    open_products(&r, "opencl");
    mr_run(&r, 0);
    const size_t alone = steps_with_kernel(&r, "MatMul", true);
    assert_int_equal(alone, 4);
    assert_int_equal(prony_session_create(&second, r.model, &r.options, &error), PRONY_OK);
    const prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("3,64"), .data = image};
    assert_int_equal(prony_session_set_input(second, "x", &x, &error), PRONY_OK);
    if (prony_session_run(second, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(second->current->plan->split->weight_bytes, 2 * WEIGHT_BYTES);
    assert_true(prn_device_usage(second->device).bytes <= r.options.device_memory_limit_bytes);
    prony_session_release(second);
    mr_close(&r);
}

/* The limit leaves nothing beside the first session's plan: the second one runs on the host, and says so. */
static void others_have_the_memory(void **state)
{
    (void)state;
    model_run r = {.options.device_memory_limit_bytes = WEIGHT_BYTES}, late = {0};
    model_builder *m = mb_begin(17);
    r.options.device = "opencl";
    mb_input(m, "x", PRONY_FLOAT32, "3,64");
    mb_node(m, "Tanh", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "3,64");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3,64", image);
    mr_run(&r, 0);
    late = (model_run){.options.device_memory_limit_bytes = prn_device_usage(r.session->device).bytes + 64};
    open_products(&late, "opencl");
    expect_wanted(mr_run(&late, 0)->data);
    assert_int_equal(steps_with_kernel(&late, "MatMul", false), LAYERS);
    assert_int_equal(plan_of(&late)->split->for_memory, plan_of(&late)->step_count);
    assert_int_equal(plan_of(&late)->split->room_bytes, 64);
    mr_close(&late);
    mr_close(&r);
}

static bool text_contains(const prony_report *report, const char *words)
{
    sink text = {0};
    prony_write_options o = PRONY_WRITE_OPTIONS_INIT;
    assert_int_equal(prony_report_write(report, PRONY_FORMAT_TEXT, &o, sink_write, &text, NULL), PRONY_OK);
    const bool found = strstr(text.text, words) != NULL;
    prn_free(text.text);
    return found;
}

static size_t rows_with(const prony_device_report *d, const char *reason)
{
    size_t count = 0;
    for (size_t i = 0; i < d->host_operator_count; i++) count += strcmp(d->host_operators[i].reason, reason) == 0;
    return count;
}

static void the_report_says_why(void **state)
{
    (void)state;
    model_run r = {.options.device_memory_limit_bytes = 2 * WEIGHT_BYTES + 8192};
    open_products(&r, "opencl");
    prony_report *report = mr_profile(&r);
    const prony_device_report *d = prony_report_device(report);
    assert_true(d->is_split);
    assert_int_equal(d->split.weight_bytes, 4 * WEIGHT_BYTES);
    assert_int_equal(d->split.memory_operators, rows_with(d, "memory"));
    assert_int_equal(rows_with(d, "memory"), d->operators_on_host);
    assert_true(d->split.room_bytes <= r.options.device_memory_limit_bytes);
    uint64_t bytes = 0;
    for (size_t i = 0; i < d->host_operator_count; i++) bytes += d->host_operators[i].weight_bytes;
    assert_int_equal(bytes, d->split.weight_bytes);
    assert_true(text_contains(report, "split: "));
    assert_true(text_contains(report, "operators that the split leaves on the host"));
    prony_report_release(report);
    mr_close(&r);
    model_run whole = {0};
    open_products(&whole, "opencl");
    report = mr_profile(&whole);
    assert_false(prony_report_device(report)->is_split);
    assert_false(text_contains(report, "split: "));
    prony_report_release(report);
    mr_close(&whole);
}

static void memory_that_fails(void **state)
{
    (void)state;
    model_run r = {.options.device_memory_limit_bytes = 2 * WEIGHT_BYTES + 8192};
    open_products(&r, "opencl");
    mr_run(&r, 0);
    mr_survives_faults(&r);
    mr_close(&r);
}

/* ---- copies ---- */

static void keep_peaks(double rates, double copies, int64_t launch_ns)
{
    const prony_device_info *info = NULL;
    model_run r = {0};
    open_products(&r, "opencl");
    for (size_t i = 0; prony_device_at(&info, i, NULL) == PRONY_OK && strcmp(info->id, r.session->options.device) != 0;)
        i++;
    prony_device_peaks peaks = PRONY_DEVICE_PEAKS_INIT;
    peaks.flops_per_second = peaks.bytes_per_second = rates;
    peaks.to_device_bytes_per_second = peaks.from_device_bytes_per_second = copies;
    peaks.launch_ns = launch_ns;
    assert_int_equal(prony_device_peaks_save(info, &peaks, NULL), PRONY_OK);
    mr_close(&r);
}

enum { LONG_CHAIN = PRN_PARTITION_CHAIN + 1 };

/* `length` operators with a kernel between two that only the host has. */
static model_builder *chain(int length)
{
    static const char *const ops[] = {"Tanh", "Sigmoid", "Softplus"};
    static const int64_t axis = 1;
    char in[16] = "s", out[16];
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "3,64");
    mb_initializer(m, "axis", PRONY_INT64, "", &axis);
    mb_node(m, "CumSum", "x axis", "s", "");
    for (int i = 0; i < length; i++) {
        snprintf(out, sizeof out, "v%d", i);
        mb_node(m, ops[i % 3], in, out, "");
        snprintf(in, sizeof in, "%s", out);
    }
    snprintf(out, sizeof out, "%s axis", in);
    mb_node(m, "CumSum", out, "z", "");
    mb_output(m, "z", PRONY_FLOAT32, "3,64");
    return m;
}

static void expect_chain(int length, prony_device_split mode, bool on_host)
{
    model_run r = {.options = {.device = "opencl", .device_split = mode, .no_rewrites = true}};
    mr_open(&r, chain(length));
    mr_set(&r, "x", PRONY_FLOAT32, "3,64", image);
    prony_report *report = mr_profile(&r);
    const prony_device_report *d = prony_report_device(report);
    assert_int_equal(rows_with(d, "copies"), on_host ? length : 0);
    assert_int_equal(d->operators_on_device, on_host ? 0 : length);
    assert_int_equal(d->split.copies_operators, on_host ? length : 0);
    assert_int_equal(d->copy_count, on_host ? 0 : 2);
    for (size_t i = 0; i < d->host_operator_count; i++)
        if (strcmp(d->host_operators[i].reason, "copies") == 0)
            assert_true(d->host_operators[i].copies_ns > d->host_operators[i].saved_ns);
    if (on_host) assert_true(text_contains(report, "stay on the host, since copies would"));
    prony_report_release(report);
    mr_close(&r);
}

static void short_chains_that_do_not_pay(void **state)
{
    (void)state;
    expect_chain(3, PRONY_DEVICE_SPLIT_AUTO, false); /* no peaks are kept */
    keep_peaks(1e12, 1e9, 5000);                     /* two copies of 768 bytes, of 5.8 us each */
    expect_chain(3, PRONY_DEVICE_SPLIT_AUTO, true);
    expect_chain(PRN_PARTITION_CHAIN, PRONY_DEVICE_SPLIT_AUTO, true);
    expect_chain(LONG_CHAIN, PRONY_DEVICE_SPLIT_AUTO, false);
    expect_chain(3, PRONY_DEVICE_SPLIT_MEMORY, false);
    expect_chain(3, PRONY_DEVICE_SPLIT_NONE, false);
    keep_peaks(1e15, 1e15, 1); /* copies and launches that cost nothing */
    expect_chain(3, PRONY_DEVICE_SPLIT_AUTO, false);
}

/* A model whose ends alone are on the host has no operator there that a chain could join: it stays. */
static void whole_models_stay(void **state)
{
    (void)state;
    keep_peaks(1e12, 1e6, 1000000);
    model_run r = {0};
    model_builder *m = mb_begin(17);
    r.options.device = "opencl";
    mb_input(m, "x", PRONY_FLOAT32, "3,64");
    mb_node(m, "Tanh", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "3,64");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3,64", image);
    mr_run(&r, 0);
    assert_int_equal(steps_with_kernel(&r, "Tanh", true), 1);
    assert_null(plan_of(&r)->split);
    mr_close(&r);
}

/* ---- predictions beside plans ---- */

/* Weights are predicted exactly; values at least as the least that the order of steps allows. */
static void predicted_memory(void **state)
{
    (void)state;
    prn_partition_graph g;
    prn_partition_memory need;
    model_run r = {0};
    const prn_partition_rates guessed = {0};
    bool all[4 * LAYERS] = {false};
    open_products(&r, "opencl");
    mr_run(&r, 0);
    assert_int_equal(prn_partition_graph_create(&g, plan_of(&r), &guessed, NULL), PRONY_OK);
    assert_true(g.unit_count <= sizeof all);
    for (size_t i = 0; i < g.tensor_count; i++) {
        assert_int_equal(g.tensors[i].resident, g.tensors[i].constant);
        g.tensors[i].resident = false;
    }
    for (size_t u = 0; u < g.unit_count; u++) all[u] = g.units[u].can;
    assert_int_equal(prn_partition_graph_memory(&g, all, &need, NULL), PRONY_OK);
    assert_int_equal(need.weights, prn_device_usage(r.session->device).constant_bytes);
    assert_true(need.values >= plan_of(&r)->memory.spaces[0].figures.lower_bound_bytes);
    prn_partition_graph_release(&g);
    mr_close(&r);
}

int main(void)
{
    enum { SKIPPED = 77 };
    if (!device_here()) return SKIPPED;
    cache_folder_make(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_for_some),           cmocka_unit_test(too_little_room),
        cmocka_unit_test(sessions_share_the_room), cmocka_unit_test(others_have_the_memory),
        cmocka_unit_test(the_report_says_why),     cmocka_unit_test(memory_that_fails),
        cmocka_unit_test(predicted_memory),        cmocka_unit_test(short_chains_that_do_not_pay),
        cmocka_unit_test(whole_models_stay)};
    return cmocka_run_group_tests(tests, NULL, cache_folder_remove);
}
#else
int main(void)
{
    print_message("skipped: no OpenCL\n");
    return 77;
}
#endif
