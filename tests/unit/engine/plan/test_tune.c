/* Kernels chosen by measurement: stored choices, and obstacles to storing them. No assertion depends on a time: any
 * kernel may win, but each must be tried. */
#define _GNU_SOURCE
#include "failure_trace.h"
#include "base/cpu/isa.h"
#include "engine/plan/tune.h"
#include "ops/op.h"
#include "prony_operator.h"
#include "prony_report.h"
#include "tests/support/model_run.h"
#include "tests/support/twice_operator.h"

#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHANNELS = 32, EXTENT = 12, ELEMENTS = CHANNELS * EXTENT * EXTENT };

static float x[ELEMENTS], w[CHANNELS * CHANNELS * 9], first_out[ELEMENTS], second_out[ELEMENTS];
static char folder[64], file[4200];

static void fill(float *data, int count, uint32_t seed)
{
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *at)
{
    (void)facts;
    (void)kind;
    (void)at;
    return remove(path);
}

static int set_up(void **state)
{
    (void)state;
    fill(x, ELEMENTS, 1);
    fill(w, CHANNELS * CHANNELS * 9, 2);
    strcpy(folder, "/tmp/prony_tune_XXXXXX");
    return mkdtemp(folder) && setenv("XDG_CACHE_HOME", folder, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* true: a convolution has more than one kernel here. Scalar loops alone leave no choice, and oneDNN is used from AVX2
 * on. */
static bool has_choice(void)
{
    return prn_isa_has(PRN_HAS_FMA);
}

/* Two equal convolutions, which are one problem, and a Relu between them that no rewrite can attach twice. */
static model_builder *build(void)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,32,12,12");
    mb_initializer(m, "w", PRONY_FLOAT32, "32,32,3,3", w);
    mb_node(m, "Conv", "x w", "a", "pads=[1,1,1,1]");
    mb_node(m, "Tanh", "a", "b", "");
    mb_node(m, "Conv", "b w", "y", "pads=[1,1,1,1]");
    mb_output(m, "y", PRONY_FLOAT32, "1,32,12,12");
    return m;
}

typedef struct asked {
    prony_tune tune;
    int threads;
    const char *precision;
} asked;

/* The report of two runs, which the caller releases; the output in *out. */
static prony_report *profile(const asked *how, float *out)
{
    model_run r = {0};
    prony_report *report = NULL;
    prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.tune = how->tune;
    r.options.intra_op_threads = how->threads;
    r.options.precision = how->precision;
    options.runs = 2;
    options.warmup_runs = 1;
    mr_open(&r, build());
    mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
    if (prony_session_profile(&report, r.session, &options, &r.error) != PRONY_OK) fail_msg("%s", r.error.message);
    memcpy(out, mr_output(&r, 0)->data, sizeof first_out);
    mr_close(&r);
    return report;
}

static const prony_tuning *tuning_of(const prony_report *report)
{
    const prony_tuning *tuning = prony_report_tuning(report);
    assert_non_null(tuning);
    snprintf(file, sizeof file, "%s", tuning->file);
    for (size_t i = 0; i < tuning->choice_count; i++) {
        const prony_tuned_operator *c = &tuning->choices[i];
        bool tried = false;
        for (size_t k = 0; k < c->trial_count; k++)
            tried |= strcmp(c->trials[k].kernel, c->kernel) == 0 && c->trials[k].time_ns >= 0;
        assert_true(c->trial_count >= 2);
        assert_string_equal(c->trials[0].kernel, c->default_kernel);
        assert_true(tried);
    }
    return tuning;
}

static void profile_expecting(const asked *how, bool measures, const char *note)
{
    prony_report *report = profile(how, second_out);
    const prony_tuning *tuning = tuning_of(report);
    assert_true(tuning->operators >= 2);
    assert_int_equal(tuning->measured > 0, measures);
    assert_int_equal(tuning->cached > 0, !measures);
    if (note)
        assert_non_null(strstr(tuning->note, note));
    else
        assert_string_equal(tuning->note, "");
    prony_report_release(report);
}

static size_t read_file(char **out)
{
    FILE *from = fopen(file, "rb");
    assert_non_null(from);
    assert_int_equal(fseek(from, 0, SEEK_END), 0);
    const long size = ftell(from);
    assert_true(size > 0);
    rewind(from);
    *out = malloc((size_t)size + 1);
    assert_non_null(*out);
    assert_int_equal(fread(*out, 1, (size_t)size, from), size);
    (*out)[size] = '\0';
    fclose(from);
    return (size_t)size;
}

static void write_file(const char *data, size_t size)
{
    FILE *to = fopen(file, "wb");
    assert_non_null(to);
    assert_int_equal(fwrite(data, 1, size, to), size);
    assert_int_equal(fclose(to), 0);
}

/* ---- what is kept */

static void test_kept(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    const asked off = {PRONY_TUNE_OFF, 1, NULL}, on = {PRONY_TUNE, 1, NULL}, again = {PRONY_TUNE_NO_CACHE, 1, NULL};
    float plain[ELEMENTS];
    prony_report *report = profile(&off, plain);
    assert_null(prony_report_tuning(report));
    prony_report_release(report);

    report = profile(&on, first_out);
    const prony_tuning *tuning = tuning_of(report);
    assert_true(tuning->operators >= 2 && tuning->measured >= 1 && tuning->cached == 0);
    assert_true(tuning->measuring_ns > 0);
    assert_true(access(file, R_OK) == 0 && strncmp(file, folder, strlen(folder)) == 0);
    for (size_t i = 0; i < ELEMENTS; i++) assert_true(fabsf(first_out[i] - plain[i]) < 1e-4f);

    prony_report *other = profile(&on, second_out);
    const prony_tuning *from_file = tuning_of(other);
    assert_int_equal(from_file->measured, 0);
    assert_int_equal(from_file->cached, tuning->measured);
    assert_int_equal(from_file->choice_count, tuning->choice_count);
    for (size_t i = 0; i < tuning->choice_count; i++) {
        SCENARIO(i);
        assert_true(from_file->choices[i].cached && !tuning->choices[i].cached);
        assert_string_equal(from_file->choices[i].kernel, tuning->choices[i].kernel);
    }
    assert_memory_equal(first_out, second_out, sizeof first_out); /* the same kernels, the same bits */
    prony_report_release(other);
    prony_report_release(report);

    profile_expecting(&again, true, NULL);
    profile_expecting(&on, false, NULL);
}

static void test_threads_apart(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    const asked one = {PRONY_TUNE, 1, NULL}, two = {PRONY_TUNE, 2, NULL}, fast = {PRONY_TUNE, 1, "fast"};
    profile_expecting(&one, true, NULL);
    profile_expecting(&two, true, NULL);
    profile_expecting(&fast, true, NULL);
    profile_expecting(&one, false, NULL);
    profile_expecting(&two, false, NULL);
}

static void test_other_model(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    const asked on = {PRONY_TUNE, 1, NULL};
    char *data, path[sizeof file];
    profile_expecting(&on, true, NULL);
    const size_t size = read_file(&data);
    w[0] += 1;
    profile_expecting(&on, true, NULL);
    strcpy(path, file);
    write_file(data, size); /* the first model's under the second one's name */
    profile_expecting(&on, true, "model_sha256");
    assert_string_equal(path, file);
    profile_expecting(&on, false, NULL);
    free(data);
}

/* ---- what nothing can be kept or read for */

static void test_damaged(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    const asked on = {PRONY_TUNE, 1, NULL};
    char *data;
    profile_expecting(&on, true, NULL);
    const size_t size = read_file(&data);
    const size_t cuts[] = {0, 1, size / 3, size / 2, size - 3};
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        SCENARIO(c);
        write_file(data, cuts[c]);
        profile_expecting(&on, true, "measured again");
        profile_expecting(&on, false, NULL);
    }
    write_file("\xff\xfe[[[[[[{{{{", 12);
    profile_expecting(&on, true, "measured again");
    uint32_t seed = 7;
    for (int round = 0; round < 30; round++) { /* whatever stands there, runs go well */
        char *hurt = malloc(size);
        assert_non_null(hurt);
        memcpy(hurt, data, size);
        for (int k = 0; k < 3; k++) {
            seed = seed * 1664525u + 1013904223u;
            hurt[(seed >> 8) % size] ^= (char)(1 << (seed >> 5 & 7));
        }
        write_file(hurt, size);
        free(hurt);
        prony_report_release(profile(&on, second_out));
        for (size_t i = 0; i < ELEMENTS; i++) assert_true(isfinite(second_out[i]));
    }
    free(data);
}

static void replace(const char *was, const char *with)
{
    char *data, *at;
    const size_t size = read_file(&data);
    assert_int_equal(strlen(was), strlen(with));
    assert_non_null(strstr(data, was));
    while ((at = strstr(data, was))) memcpy(at, with, strlen(with));
    write_file(data, size);
    free(data);
}

static void test_other_machine(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    const asked on = {PRONY_TUNE, 1, NULL};
    profile_expecting(&on, true, NULL);
    replace("\"cpu_model\": \"", "\"cpu_model\": #");
    profile_expecting(&on, true, "measured again");
    replace("\"threads\": 1", "\"threads\": 2");
    profile_expecting(&on, true, "threads: found 2, wanted 1");
    replace("\"kernel\": \"conv", "\"kernel\": \"none"); /* a kernel that there is not: its problem alone is measured */
    profile_expecting(&on, true, NULL);
    profile_expecting(&on, false, NULL);
}

static void test_nowhere(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    const asked on = {PRONY_TUNE, 1, NULL};
    char home[4096];
    snprintf(home, sizeof home, "%s", getenv("HOME") ? getenv("HOME") : "");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    profile_expecting(&on, true, "XDG_CACHE_HOME");
    assert_string_equal(file, "");
    setenv("XDG_CACHE_HOME", "/dev/null", 1); /* no folder can be made there */
    profile_expecting(&on, true, "measurements are not saved");
    assert_string_equal(file, "");
    if (*home) setenv("HOME", home, 1);
    setenv("XDG_CACHE_HOME", folder, 1);
}

/* With one kernel per step, the plan takes it and measures nothing. */
static void test_without_choice(void **state)
{
    (void)state;
    if (has_choice()) skip();
    const asked off = {PRONY_TUNE_OFF, 1, NULL}, on = {PRONY_TUNE, 1, NULL};
    prony_report_release(profile(&off, first_out));
    prony_report *report = profile(&on, second_out);
    const prony_tuning *tuning = tuning_of(report);
    assert_true(tuning->operators == 0 && tuning->measured == 0);
    assert_memory_equal(first_out, second_out, sizeof first_out);
    prony_report_release(report);
}

static void test_strict(void **state)
{
    (void)state;
    if (!prn_isa_has(PRN_HAS_FMA)) skip(); /* refused without fused multiply-add, which test_precision tests */
    const asked off = {PRONY_TUNE_OFF, 1, "fp32-strict"}, on = {PRONY_TUNE, 1, "fp32-strict"};
    prony_report *report = profile(&off, first_out);
    prony_report_release(report);
    report = profile(&on, second_out);
    const prony_tuning *tuning = tuning_of(report);
    assert_true(tuning->operators == 0 && tuning->measured == 0);
    assert_non_null(strstr(tuning->note, "fp32-strict"));
    assert_memory_equal(first_out, second_out, sizeof first_out);
    prony_report_release(report);
}

static void test_wrong_option(void **state)
{
    (void)state;
    model_run r = {0};
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.tune = (prony_tune)7;
    assert_int_equal(mr_try_open(&r, build()), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(r.error.message, "tune"));
    mr_close(&r);
}

/* ---- what users registered is not tried */

static void test_custom(void **state)
{
    (void)state;
    model_run r = {0};
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.tune = PRONY_TUNE;
    r.registry = twice_registry();
    model_builder *m = mb_begin(13);
    mb_opset(m, "test", 1);
    mb_input(m, "x", PRONY_FLOAT32, "1,32,12,12");
    mb_node(m, "test::Twice", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,32,12,12");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
    twice_calls = 0;
    const float *out = mr_run(&r, 0)->data;
    assert_true(out[5] == 2 * x[5]);
    assert_int_equal(twice_calls, 1);
    prony_registry *registry = r.registry; /* closing forgets it */
    mr_close(&r);
    prony_registry_release(registry);
}

/* Lists of kernels have room for the kernels of every operator: the measured list, and the shown one. */
static void test_room_for_kernels(void **state)
{
    (void)state;
    assert_int_equal(prony_operator_count(), prn_op_count() + 1); /* and Gradient */
    for (size_t i = 0; i < prn_op_count(); i++) {
        SCENARIO(i);
        const prn_op *op = prn_op_at(i);
        const prony_operator_info *shown = prony_operator_at(i);
        size_t count = 0;
        for (; op->kernels[count].name; count++) assert_string_equal(shown->kernels[count], op->kernels[count].name);
        assert_int_equal(shown->kernel_count, count);
        if (count > PRN_TUNE_MOST_KERNELS) fail_msg("%s has %zu kernels; tuning tries fewer", op->name, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nowhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_choice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_strict, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_option, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_custom, set_up, tear_down),
        cmocka_unit_test(test_room_for_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
