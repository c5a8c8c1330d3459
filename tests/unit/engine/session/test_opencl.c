/* Sessions on an OpenCL device: results beside the processor's, the same bits in every run, weights that sessions
 * share, calls of OpenCL that fail one after another, memory that fails, names of devices. Skipped without OpenCL. */
#include "failure_trace.h"
#include "engine/session/session.h"
#include "ops/device.h"
#include "profiler/statistics/statistics.h"
#include "prony_device.h"
#include "tests/support/device_here.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_library.h"

enum { CHANNELS = 5, SIDE = 9, FILTERS = 7, PIXELS = SIDE * SIDE };
static float image[CHANNELS * PIXELS], filters[FILTERS * CHANNELS * 9], bias[FILTERS], dense[FILTERS * PIXELS * 3];

static int fill(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof image / sizeof *image; i++) image[i] = (float)prn_random_normal(&seed);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) filters[i] = (float)prn_random_normal(&seed);
    for (size_t i = 0; i < FILTERS; i++) bias[i] = (float)prn_random_normal(&seed);
    for (size_t i = 0; i < sizeof dense / sizeof *dense; i++) dense[i] = (float)prn_random_normal(&seed);
    return 0;
}

/* Conv, Relu, an operator that only the host has, a residual Add, Flatten, MatMul. */
static model_builder *small_network(void)
{
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "1,5,9,9");
    mb_initializer(m, "w", PRONY_FLOAT32, "7,5,3,3", filters);
    mb_initializer(m, "b", PRONY_FLOAT32, "7", bias);
    mb_initializer(m, "d", PRONY_FLOAT32, "567,3", dense);
    mb_node(m, "Conv", "x w b", "c", "pads=[1,1,1,1]");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "CumSum", "r axis", "s", "");
    mb_initializer(m, "axis", PRONY_INT64, "", &(const int64_t){1});
    mb_node(m, "Add", "s c", "a", "");
    mb_node(m, "Flatten", "a", "f", "");
    mb_node(m, "MatMul", "f d", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,3");
    mb_output(m, "a", PRONY_FLOAT32, "1,7,9,9");
    return m;
}

static void open_on(model_run *r, const char *device)
{
    r->options.device = device;
    mr_open(r, small_network());
    mr_set(r, "x", PRONY_FLOAT32, "1,5,9,9", image);
}

static size_t steps_at(const model_run *r, bool device)
{
    const prn_plan *plan = r->session->current->plan;
    size_t count = 0;
    for (size_t s = 0; s < plan->step_count; s++)
        count += (plan->steps[s]->kernel && plan->steps[s]->kernel->memory_space) == device;
    return count;
}

static void the_same_as_on_the_host(void **state)
{
    (void)state;
    model_run host = {0}, device = {0};
    open_on(&host, NULL);
    open_on(&device, "opencl");
    float first[3];
    for (int run = 0; run < 3; run++) {
        SCENARIO(run);
        for (size_t k = 0; k < 2; k++) {
            const float *a = mr_run(&host, k)->data, *b = mr_run(&device, k)->data;
            for (int i = 0; i < (k ? FILTERS * PIXELS : 3); i++)
                if (fabsf(a[i] - b[i]) > 2e-5f * 200)
                    fail_msg("output %zu, element %d: %g and %g", k, i, (double)a[i], (double)b[i]);
        }
        const void *y = mr_run(&device, 0)->data;
        if (run) assert_memory_equal(first, y, sizeof first); /* the same bits */
        memcpy(first, y, sizeof first);
    }
    assert_true(steps_at(&device, true) >= 3);
    assert_int_equal(steps_at(&host, true), 0);
    mr_close(&host);
    mr_close(&device);
}

static prn_device_use use_now(const model_run *r)
{
    return prn_device_usage(r->session->device);
}

static void sessions_share_weights(void **state)
{
    (void)state;
    prony_session *second = NULL;
    prony_error error = {0};
    model_run r = {0};
    open_on(&r, "opencl");
    mr_run(&r, 0);
    const prn_device_use alone = use_now(&r);
    prony_session_options o = PRONY_SESSION_OPTIONS_INIT;
    o.device = "opencl";
    assert_int_equal(prony_session_create(&second, r.model, &o, &error), PRONY_OK);
    const prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("1,5,9,9"), .data = image};
    assert_int_equal(prony_session_set_input(second, "x", &x, &error), PRONY_OK);
    assert_int_equal(prony_session_run(second, &error), PRONY_OK);
    const prn_device_use both = use_now(&r);
    assert_true(alone.constant_bytes >= sizeof filters + sizeof dense);
    assert_int_equal(both.constant_bytes, alone.constant_bytes);
    assert_true(both.bytes > alone.bytes); /* the second plan's values */
    prony_session_release(second);
    const prn_device_use after = use_now(&r);
    assert_int_equal(after.bytes, alone.bytes);
    assert_int_equal(after.buffers, alone.buffers);
    assert_int_equal(after.kernels, alone.kernels);
    mr_close(&r);
}

/* Every call of OpenCL fails once: a status with the device's name, nothing left behind, and the next try works. */
static void calls_that_fail(void **state)
{
    (void)state;
    model_run keeper = {0}; /* keeps the device open, so that its counts stay comparable */
    open_on(&keeper, "opencl");
    mr_run(&keeper, 0);
    const prn_device_use before = use_now(&keeper);
    size_t failures = 0;
    for (uint64_t n = 1;; n++) {
        prony_session *session = NULL;
        prony_error error = {0};
        prony_session_options o = PRONY_SESSION_OPTIONS_INIT;
        SCENARIO(n);
        o.device = "opencl";
        prn_opencl_fail_at(n);
        prony_status status = prony_session_create(&session, keeper.model, &o, &error);
        const prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("1,5,9,9"), .data = image};
        if (status == PRONY_OK) status = prony_session_set_input(session, "x", &x, &error);
        if (status == PRONY_OK) status = prony_session_run(session, &error);
        const bool failed = prn_opencl_failed();
        prn_opencl_fail_at(0);
        if (failed && status != PRONY_OK) {
            failures++;
            assert_true(status == PRONY_IO_ERROR || status == PRONY_OUT_OF_MEMORY);
            assert_true(strstr(error.message, "opencl") != NULL);
            if (session) { /* it stays usable */
                if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
            }
        }
        prony_session_release(session);
        const prn_device_use after = use_now(&keeper);
        assert_int_equal(after.buffers, before.buffers);
        assert_int_equal(after.bytes, before.bytes);
        assert_int_equal(after.kernels, before.kernels);
        if (!failed) break;
    }
    assert_true(failures > 20);
    mr_close(&keeper);
}

static void memory_that_fails(void **state)
{
    (void)state;
    model_run r = {0};
    open_on(&r, "opencl");
    mr_run(&r, 0);
    mr_survives_faults(&r);
    mr_close(&r);
}

static const char *kernel_of(const model_run *r, const char *op)
{
    const prn_plan *plan = r->session->current->plan;
    for (size_t s = 0; s < plan->step_count; s++)
        if (plan->steps[s]->kernel && strcmp(plan->steps[s]->node->info.op_type, op) == 0)
            return plan->steps[s]->kernel->name;
    return "";
}

enum { HALF_ROWS = 3, HALF_DEPTH = 81, HALF_COLUMNS = 65, HALF_WEIGHTS = HALF_DEPTH * HALF_COLUMNS };

/* x W and x W^T, as fp16 stores W on the host and on the device. */
static void run_halves(const float *w, const char *op, const char *device, const char *precision, float *y,
                       const char **kernel, uint64_t *constant_bytes)
{
    model_run r = {.options = {.device = device, .precision = precision}};
    model_builder *m = mb_begin(17);
    const bool gemm = strcmp(op, "Gemm") == 0;
    mb_input(m, "x", PRONY_FLOAT32, "3,81");
    mb_initializer(m, "w", PRONY_FLOAT32, gemm ? "65,81" : "81,65", w);
    mb_node(m, op, "x w", "y", gemm ? "transB=1" : "");
    mb_output(m, "y", PRONY_FLOAT32, "3,65");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3,81", image);
    memcpy(y, mr_run(&r, 0)->data, HALF_ROWS * HALF_COLUMNS * sizeof *y);
    *kernel = kernel_of(&r, op);
    if (device) *constant_bytes = use_now(&r).constant_bytes;
    mr_close(&r);
}

/* Weights take half the bytes there, and give what the host's halves give; those beyond the range stay as they are. */
static void weights_as_halves(void **state)
{
    (void)state;
    static float w[HALF_WEIGHTS];
    static const char *const ops[][2] = {{"MatMul", "matmul_fp16_opencl"}, {"Gemm", "gemm_fp16_opencl"}};
    for (int k = 0; k < 4; k++) {
        float wide[HALF_ROWS * HALF_COLUMNS], host[HALF_ROWS * HALF_COLUMNS], got[HALF_ROWS * HALF_COLUMNS];
        const char *kernel;
        uint64_t bytes = 0;
        uint64_t seed = 5;
        for (size_t i = 0; i < HALF_WEIGHTS; i++) w[i] = (float)prn_random_normal(&seed);
        if (k >= 2) w[17] = 1e6f; /* beyond the largest half */
        run_halves(w, ops[k % 2][0], NULL, "fp32", wide, &kernel, &bytes);
        run_halves(w, ops[k % 2][0], NULL, "fp16", host, &kernel, &bytes);
        run_halves(w, ops[k % 2][0], "opencl", "fp16", got, &kernel, &bytes);
        assert_string_equal(kernel, ops[k % 2][1]);
        assert_int_equal(bytes, HALF_WEIGHTS * (k < 2 ? sizeof(uint16_t) : sizeof(float)));
        float largest = 1.0f, rounded = 0.0f;
        for (int i = 0; i < HALF_ROWS * HALF_COLUMNS; i++) {
            largest = fmaxf(largest, fabsf(host[i]));
            rounded = fmaxf(rounded, fabsf(got[i] - wide[i]));
        }
        for (int i = 0; i < HALF_ROWS * HALF_COLUMNS; i++) assert_true(fabsf(got[i] - host[i]) <= 2e-6f * largest);
        if (k < 2) assert_true(rounded > 1e-4f); /* the weights were rounded */
    }
}

/* A limit names what does not fit; the session runs with room. */
static void limits(void **state)
{
    (void)state;
    model_run r = {.options.device_memory_limit_bytes = 1024};
    open_on(&r, "opencl");
    mr_refused(&r, PRONY_LIMIT, "of the device");
    mr_close(&r);
    model_run fits = {.options.device_memory_limit_bytes = 1 << 20};
    open_on(&fits, "opencl");
    mr_run(&fits, 0);
    mr_close(&fits);
}

static void names(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "cuda", "opencl:", "opencl:99", "opencl:no such device", "opencl:-1"};
    const prony_device_info *info;
    prony_error error = {0};
    assert_int_equal(prony_device_at(&info, 0, &error), PRONY_OK);
    assert_string_equal(info->id, "opencl:0");
    assert_true(info->compute_units > 0 && info->memory_bytes > 0);
    assert_int_equal(prony_device_at(&info, 1000, &error), PRONY_OUT_OF_RANGE);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        model_run r = {.options.device = wrong[i]};
        SCENARIO((int)i);
        assert_int_equal(mr_try_open(&r, small_network()), PRONY_INVALID_ARGUMENT);
        assert_non_null(strstr(r.error.message, "is unknown"));
        mr_close(&r);
    }
    char name[300];
    snprintf(name, sizeof name, "opencl:%.200s", info->name);
    model_run r = {0};
    open_on(&r, name);
    assert_string_equal(r.session->options.device, "opencl:0");
    mr_close(&r);
}

/* Times of the device lie within the operator's, shares add up to the run, copies name their reason. */
static void the_report(void **state)
{
    (void)state;
    model_run r = {0};
    open_on(&r, "opencl");
    prony_report *report = mr_profile(&r);
    const prony_device_report *d = prony_report_device(report);
    assert_non_null(d);
    assert_int_equal(d->runs, 1);
    assert_true(d->operator_count >= 3 && d->copy_count >= 4);
    assert_int_equal(d->operators_on_device + d->operators_on_host + d->copy_count,
                     (prony_report_operators(report, &(size_t){0}), r.session->current->plan->step_count));
    assert_true(fabs(d->busy_share + d->copy_share + d->wait_share + d->idle_share - 1) < 1e-6 || d->idle_share == 0);
    size_t count;
    const prony_operator_row *operators = prony_report_operators(report, &count);
    for (size_t i = 0; i < d->operator_count; i++) {
        const prony_device_operator_row *o = &d->operators[i];
        assert_true(o->operator_index < count);
        assert_true(o->launches >= 1 && o->busy_ns > 0);
        assert_true(o->busy_ns <= operators[o->operator_index].time.mean_ns);
        assert_string_equal(operators[o->operator_index].backend, "opencl");
    }
    uint64_t in = 0, out = 0;
    for (size_t i = 0; i < d->copy_count; i++) {
        *(d->copies[i].to_device ? &in : &out) += d->copies[i].bytes;
        assert_true(strstr(d->copies[i].reason, "on the host") || strstr(d->copies[i].reason, "graph"));
    }
    assert_int_equal(in, d->to_device_bytes);
    assert_int_equal(out, d->from_device_bytes);
    prony_report_release(report);
    mr_close(&r);
}
#else
static void names(void **state)
{
    (void)state;
    const prony_device_info *info;
    prony_error error = {0};
    assert_int_equal(prony_device_at(&info, 0, &error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(error.message, "this build has no OpenCL"));
}
#endif

int main(void)
{
#ifdef PRN_HAVE_OPENCL
    enum { SKIPPED = 77 };
    if (!device_here()) return SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_as_on_the_host),
                                       cmocka_unit_test(sessions_share_weights),
                                       cmocka_unit_test(calls_that_fail),
                                       cmocka_unit_test(memory_that_fails),
                                       cmocka_unit_test(names),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(weights_as_halves),
                                       cmocka_unit_test(the_report)};
    return cmocka_run_group_tests(tests, fill, NULL);
#else
    const struct CMUnitTest tests[] = {cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
