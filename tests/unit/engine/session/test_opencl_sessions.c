/* Several sessions and threads on one OpenCL device at once: every run has the bits that it has alone, with calls that fail
 * in between, and nothing is left on the device. Skipped without OpenCL. */
#include "failure_trace.h"
#include "engine/session/session.h"
#include "ops/device.h"
#include "profiler/statistics/statistics.h"
#include "tests/support/decoder_model.h"
#include "tests/support/device_here.h"
#include "tests/support/model_run.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_library.h"

enum { THREADS = 4, SIDE = 48, LINES = 5, ELEMENTS = LINES * SIDE, RUNS = 8, SESSIONS = 3 };
static float weights[2][SIDE * SIDE], inputs[THREADS][ELEMENTS], wanted[THREADS][ELEMENTS];

/* Products on the device around an operator that only the host has. */
static model_builder *between(void)
{
    static const int64_t axis = 1;
    uint64_t seed = 5;
    model_builder *m = mb_begin(17);
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < SIDE * SIDE; i++) weights[w][i] = 0.1f * (float)prn_random_normal(&seed);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < ELEMENTS; i++) inputs[t][i] = (float)prn_random_normal(&seed);
    mb_input(m, "x", PRONY_FLOAT32, "5,48");
    mb_initializer(m, "v", PRONY_FLOAT32, "48,48", weights[0]);
    mb_initializer(m, "w", PRONY_FLOAT32, "48,48", weights[1]);
    mb_initializer(m, "axis", PRONY_INT64, "", &axis);
    mb_node(m, "MatMul", "x v", "p", "");
    mb_node(m, "CumSum", "p axis", "s", "");
    mb_node(m, "MatMul", "s w", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "5,48");
    return m;
}

typedef struct user {
    prony_model *model;
    int number;
    bool may_fail;       /* calls of OpenCL fail in this test */
    size_t good, failed; /* runs */
    char problem[PRONY_ERROR_MESSAGE_BYTES];
} user;

/* Makes a session and runs it RUNS times; every second one stamps its runs. */
static prony_status one_session(user *u, int number, prony_error *error)
{
    prony_session *session = NULL;
    prony_session_options o = PRONY_SESSION_OPTIONS_INIT;
    o.device = "opencl";
    o.no_profile = number % 2 == 0;
    o.intra_op_threads = 1;
    prony_status status = prony_session_create(&session, u->model, &o, error);
    const prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("5,48"), .data = inputs[u->number]};
    if (status == PRONY_OK) status = prony_session_set_input(session, "x", &x, error);
    for (int r = 0; status == PRONY_OK && r < RUNS; r++) {
        status = prony_session_run(session, error);
        if (status != PRONY_OK && u->may_fail) { /* the next run of the same session */
            u->failed++;
            status = prony_session_run(session, error);
        }
        if (status != PRONY_OK) break;
        const prony_value *y = NULL;
        status = prony_session_output(session, 0, &y, error);
        if (status != PRONY_OK || memcmp(y->data, wanted[u->number], sizeof wanted[0]) == 0) {
            u->good += status == PRONY_OK;
            continue;
        }
        snprintf(u->problem, sizeof u->problem, "session %d, run %d has other elements", number, r);
    }
    prony_session_release(session);
    return status;
}

static void *use_device(void *argument)
{
    user *u = argument;
    for (int s = 0; s < SESSIONS && !*u->problem; s++) {
        prony_error error = {0};
        if (one_session(u, s, &error) == PRONY_OK) continue;
        if (u->may_fail)
            u->failed++;
        else
            snprintf(u->problem, sizeof u->problem, "%s", error.message);
    }
    return NULL;
}

/* Runs all threads at once; returns the runs that were right. */
static size_t run_users(prony_model *model, bool may_fail, size_t *failed)
{
    static user users[THREADS];
    pthread_t threads[THREADS];
    size_t good = 0;
    for (int t = 0; t < THREADS; t++) {
        users[t] = (user){.model = model, .number = t, .may_fail = may_fail};
        assert_int_equal(pthread_create(&threads[t], NULL, use_device, &users[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_join(threads[t], NULL), 0);
    for (int t = 0; t < THREADS; t++) {
        if (*users[t].problem) fail_msg("thread %d: %s", t, users[t].problem);
        good += users[t].good;
        *failed += users[t].failed;
    }
    return good;
}

/* A session that keeps the device open, so that its counts stay comparable; and what each input gives alone. */
static void open_keeper(model_run *keeper)
{
    keeper->options.device = "opencl";
    mr_open(keeper, between());
    for (int t = 0; t < THREADS; t++) {
        keeper->input_count = 0;
        mr_set(keeper, "x", PRONY_FLOAT32, "5,48", inputs[t]);
        memcpy(wanted[t], mr_run(keeper, 0)->data, sizeof wanted[t]);
    }
}

static void expect_same_use(const model_run *keeper, const prn_device_use *before)
{
    const prn_device_use after = prn_device_usage(keeper->session->device);
    assert_int_equal(after.bytes, before->bytes);
    assert_int_equal(after.buffers, before->buffers);
    assert_int_equal(after.kernels, before->kernels);
    assert_int_equal(after.constant_bytes, before->constant_bytes);
}

static void threads_share_a_device(void **state)
{
    (void)state;
    model_run keeper = {0};
    size_t failed = 0;
    open_keeper(&keeper);
    const prn_device_use before = prn_device_usage(keeper.session->device);
    assert_int_equal(run_users(keeper.model, false, &failed), THREADS * SESSIONS * RUNS);
    expect_same_use(&keeper, &before);
    mr_close(&keeper);
}

/* A call of OpenCL fails in one of the threads. Each run is an error or right, and later ones are right. */
static void a_call_fails_beside_others(void **state)
{
    (void)state;
    model_run keeper = {0};
    size_t failures = 0, none = 0;
    open_keeper(&keeper);
    const prn_device_use before = prn_device_usage(keeper.session->device);
    for (uint64_t n = 1; n < 400; n += 1 + n / 3) {
        SCENARIO(n);
        prn_opencl_fail_at(n);
        (void)run_users(keeper.model, true, &failures);
        prn_opencl_fail_at(0);
        expect_same_use(&keeper, &before);
        assert_int_equal(run_users(keeper.model, false, &none), THREADS * SESSIONS * RUNS);
    }
    assert_true(failures > 0);
    assert_int_equal(none, 0);
    mr_close(&keeper);
}

/* ---- decoders ---- */

enum { STEPS = 10 };

typedef struct decoding {
    generation g;
    int64_t ids[2 * STEPS];
    bool failed;
} decoding;

/* Prompt, steps, rewound, steps: rows of caches come back from the device while other threads settle theirs. */
static void *decode(void *argument)
{
    decoding *d = argument;
    const size_t five = 5, two = 2;
    prony_error error = {0};
    d->failed = prony_generator_prompt(d->g.generator, decoder_words, &five, &error) != PRONY_OK;
    for (int n = 0; n < STEPS && !d->failed; n++)
        d->failed = prony_generator_next(d->g.generator, &d->ids[n], NULL, &error) != PRONY_OK;
    if (!d->failed) d->failed = prony_generator_rewind(d->g.generator, 4, &error) != PRONY_OK;
    if (!d->failed) d->failed = prony_generator_prompt(d->g.generator, decoder_words + 3, &two, &error) != PRONY_OK;
    for (int n = 0; n < STEPS && !d->failed; n++)
        d->failed = prony_generator_next(d->g.generator, &d->ids[STEPS + n], NULL, &error) != PRONY_OK;
    return NULL;
}

static void decoders_share_a_device(void **state)
{
    (void)state;
    static const decoder_style *const styles[] = {&decoder_optimum, &decoder_grouped};
    static decoding all[THREADS], host[2];
    pthread_t threads[THREADS];
    for (int k = 0; k < 2; k++) {
        generation_begin_on(&host[k].g, NULL, styles[k], NULL);
        decode(&host[k]);
        assert_false(host[k].failed);
        generation_end(&host[k].g);
    }
    for (int t = 0; t < THREADS; t++) generation_begin_on(&all[t].g, "opencl", styles[t % 2], NULL);
    for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_create(&threads[t], NULL, decode, &all[t]), 0);
    for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_join(threads[t], NULL), 0);
    for (int t = 0; t < THREADS; t++) {
        SCENARIO(t);
        assert_false(all[t].failed);
        assert_memory_equal(all[t].ids, host[t % 2].ids, sizeof all[t].ids);
        generation_end(&all[t].g);
    }
}

int main(void)
{
    if (!device_here()) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_share_a_device),
                                       cmocka_unit_test(a_call_fails_beside_others),
                                       cmocka_unit_test(decoders_share_a_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    print_message("skipped: no OpenCL\n");
    return 77;
}
#endif
