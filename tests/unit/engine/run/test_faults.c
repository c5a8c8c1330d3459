/* Fault injection: the n-th allocation fails, for every n, through load, plan, run, profile and report. Each time a
 * status comes back (out of memory, never a crash), and a leak checker sees nothing left behind. */
#include "base/memory/alloc.h"
#include "prony_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int discard(void *user, const char *data, size_t size)
{
    (void)data;
    *(size_t *)user += size;
    return 0;
}

/* One whole life of a model. */
static prony_status life(const char *path, bool inspect, prony_error *error)
{
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
    prony_write_options write = PRONY_WRITE_OPTIONS_INIT;
    size_t bytes = 0;
    options.record_memory = write.memory = true;
    options.intra_op_threads = 2;
    options.affinity = "0";
    profile.trace_threads = true;
    profile.runs = 2;
    profile.warmup_runs = 1;
    prony_status status = prony_model_load(&model, path, NULL, error);
    if (inspect) {
        if (status == PRONY_OK) status = prony_inspect(&report, model, NULL, error);
    } else {
        if (status == PRONY_OK) status = prony_session_create(&session, model, &options, error);
        if (status == PRONY_OK) status = prony_session_generate_inputs(session, 0, error);
        if (status == PRONY_OK) status = prony_session_run(session, error);
        if (status == PRONY_OK) status = prony_session_profile(&report, session, &profile, error);
    }
    if (status == PRONY_OK) status = prony_report_write(report, PRONY_FORMAT_JSON, &write, discard, &bytes, error);
    if (status == PRONY_OK) status = prony_report_write(report, PRONY_FORMAT_TEXT, &write, discard, &bytes, error);
    prony_report_release(report);
    prony_session_release(session);
    prony_model_release(model);
    return status;
}

static void fail_everywhere(const char *path, bool inspect)
{
    prony_error error = {0};
    if (life(path, inspect, &error) != PRONY_OK) fail_msg("%s: %s", path, error.message);
    uint64_t n = 1;
    for (;; n++) {
        memset(&error, 0, sizeof error);
        prn_alloc_fail_at(n);
        prony_status status = life(path, inspect, &error);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (!failed) {
            assert_int_equal(status, PRONY_OK);
            break;
        }
        /* A sample buffer that cannot grow ends the measurement early instead of failing it. */
        if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY)
            fail_msg("%s: allocation %llu: status %d, %s", path, (unsigned long long)n, (int)status, error.message);
    }
    assert_true(n > 20);
}

static void lenet5(void **state)
{
    (void)state;
    fail_everywhere(PRN_SOURCE_DIR "/tests/data/lenet5.onnx", false);
    fail_everywhere(PRN_SOURCE_DIR "/tests/data/lenet5.onnx", true);
}

static void if_two_branch(void **state)
{
    (void)state;
    fail_everywhere(PRN_SOURCE_DIR "/tests/data/if_two_branch.onnx", false);
    fail_everywhere(PRN_SOURCE_DIR "/tests/data/if_two_branch.onnx", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lenet5), cmocka_unit_test(if_two_branch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
