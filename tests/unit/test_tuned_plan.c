/* Plans of measured kernels beside the default ones, as wholes: which of them stays, that it is kept, and what stands
 * in the way. Times are told by a clock of the test's own, and rows are changed so that kernels differ from the default
 * ones. */
#define _GNU_SOURCE
#include "base/isa.h"
#include "engine/plan/tune.h"
#include "engine/session/session.h"
#include "profiler/measure/tune_file.h"
#include "prony_operator.h"
#include "prony_report.h"
#include "tests/support/model_run.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHANNELS = 32, EXTENT = 12, ELEMENTS = CHANNELS * EXTENT * EXTENT };

static float x[ELEMENTS], w[CHANNELS * CHANNELS * 9], plain[ELEMENTS], first_out[ELEMENTS], second_out[ELEMENTS];
static char folder[64];

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *at)
{
    (void)facts;
    (void)kind;
    (void)at;
    return remove(path);
}

/* Whether a convolution has more than one kernel here: scalar loops alone leave nothing to choose. */
static bool has_choice(void)
{
    return prn_isa_has(PRN_HAS_AVX2) || strstr(prony_build_info()->libraries, "onednn");
}

/* ---- a clock and rows of the test's own ---- */

static struct {
    int64_t now, default_ns, tuned_ns;
    int calls, cancel_at; /* cancel_at 0: never */
    prony_session *session;
} fake;

/* Read before and after each timed run: one of the default plan, one of the other, and so on. */
static int64_t fake_now(void)
{
    const int call = fake.calls++;
    if (call % 2) fake.now += call / 2 % 2 ? fake.tuned_ns : fake.default_ns;
    if (fake.cancel_at && call + 1 == fake.cancel_at) prony_session_cancel(fake.session);
    return fake.now;
}

static enum { AS_KEPT, OTHERS, STANDARD } rows; /* what rows read from the file are made to name */
static bool forgets, saves;

static void load(prn_tuning *tuning, const prn_tune_key *key, bool again)
{
    prn_tune_cache.load(tuning, key, again);
    tuning->now_ns = fake_now;
    if (forgets) tuning->verdict_count = 0;
    for (size_t r = 0; r < tuning->count && rows != AS_KEPT; r++) {
        prn_tune_row *row = tuning->rows[r];
        row->kernel = row->standard;
        for (size_t k = 0; k < row->trial_count && rows == OTHERS; k++)
            if (strcmp(row->trials[k].kernel, row->standard) != 0 && row->trials[k].time_ns >= 0)
                row->kernel = row->trials[k].kernel;
    }
}

static void save(prn_tuning *tuning, const prn_tune_key *key)
{
    if (saves) prn_tune_cache.save(tuning, key);
}

static const prn_tune_files files = {load, save};

static void clock_says(int64_t default_ns, int64_t tuned_ns)
{
    memset(&fake, 0, sizeof fake);
    fake.default_ns = default_ns;
    fake.tuned_ns = tuned_ns;
}

/* ---- models ---- */

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

static model_run r;

static void open_model(model_builder *m)
{
    mr_open(&r, m);
    r.model->tune_files = &files;
    fake.session = r.session;
}

static void open_tuned(model_builder *m)
{
    prony_registry *registry = r.registry;
    const prony_session_options options = r.options;
    r = (model_run){.registry = registry, .options = options};
    if (!options.struct_size) r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    if (!r.options.intra_op_threads) r.options.intra_op_threads = 1;
    r.options.tune = PRONY_TUNE;
    open_model(m);
}

static void close_model(void)
{
    mr_close(&r);
    r = (model_run){0};
}

static int set_up(void **state)
{
    (void)state;
    uint32_t seed = 3;
    for (int i = 0; i < ELEMENTS; i++) x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
    for (int i = 0; i < CHANNELS * CHANNELS * 9; i++)
        w[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
    strcpy(folder, "/tmp/prony_tuned_XXXXXX");
    r = (model_run){0};
    rows = AS_KEPT;
    forgets = false;
    saves = true;
    clock_says(100, 100);
    return mkdtemp(folder) && setenv("XDG_CACHE_HOME", folder, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The report of two runs of `build`, which the caller releases. */
static prony_report *profile(float *out)
{
    prony_report *report = NULL;
    prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
    options.runs = 2;
    open_tuned(build());
    mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
    if (prony_session_profile(&report, r.session, &options, &r.error) != PRONY_OK) fail_msg("%s", r.error.message);
    memcpy(out, mr_output(&r, 0)->data, sizeof first_out);
    close_model();
    return report;
}

/* Rows are measured and kept; from the next session on they name kernels that are not the default ones. With another kernel in front, layouts
 * and so the problems behind are others, which are measured then. */
static void measure(void)
{
    bool any = true;
    for (int session = 0; any && session < 5; session++) {
        prony_report *report = profile(first_out);
        any = prony_report_tuning(report)->measured > 0;
        prony_report_release(report);
        rows = OTHERS;
        forgets = true;
    }
    assert_false(any);
}

static void run_untuned(float *out)
{
    model_run u = {0};
    u.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    u.options.intra_op_threads = 1;
    mr_open(&u, build());
    mr_set(&u, "x", PRONY_FLOAT32, "1,32,12,12", x);
    memcpy(out, mr_run(&u, 0)->data, sizeof plain);
    mr_close(&u);
}

/* What the report says; with `judged`, by runs of this process. */
static void expect(prony_report *report, bool judged, bool taken_back, int64_t default_ns, int64_t tuned_ns)
{
    const prony_tuning *tuning = prony_report_tuning(report);
    assert_non_null(tuning);
    assert_string_equal(tuning->note, "");
    assert_int_equal(tuning->measured, 0);
    assert_int_equal(fake.calls > 0, judged);
    assert_int_equal(tuning->taken_back, taken_back);
    assert_int_equal(tuning->default_run_ns, default_ns);
    assert_int_equal(tuning->tuned_run_ns, tuned_ns);
    assert_int_equal(tuning->operators, 2);
    assert_int_equal(tuning->choice_count, 2);
    if (taken_back || default_ns < 0)
        assert_int_equal(tuning->changed, 0);
    else
        assert_int_equal(tuning->changed, 2);
    for (size_t i = 0; i < tuning->choice_count; i++)
        assert_int_equal(strcmp(tuning->choices[i].kernel, tuning->choices[i].standard) == 0, tuning->changed == 0);
    prony_report_release(report);
}

/* ---- which stays */

typedef struct script {
    int64_t default_ns[30], tuned_ns[30];
    int runs, fails_at; /* fails_at 0: never */
} script;

static prony_status play(void *data, bool tuned, int64_t *time_ns, prony_error *error)
{
    script *s = data;
    const int turn = s->runs++;
    assert_int_equal(turn % 2, tuned);
    if (s->fails_at && turn + 1 == s->fails_at) return prn_fail(error, PRONY_SHAPE_MISMATCH, "it does not fit");
    *time_ns = (tuned ? s->tuned_ns : s->default_ns)[turn / 2];
    return PRONY_OK;
}

static prn_tune_verdict judge(script *s)
{
    prn_tune_verdict verdict = {.default_ns = -1, .tuned_ns = -1};
    s->runs = 0;
    assert_int_equal(prn_tune_judge(&verdict, play, s, NULL), PRONY_OK);
    return verdict;
}

static void fill_script(script *s, int64_t default_ns, int64_t tuned_ns)
{
    *s = (script){0};
    for (int i = 0; i < 30; i++) {
        s->default_ns[i] = default_ns;
        s->tuned_ns[i] = tuned_ns;
    }
}

static void test_judge(void **state)
{
    (void)state;
    script s;
    fill_script(&s, 10000, 9901); /* within one per cent */
    assert_true(judge(&s).taken_back);
    assert_int_equal(s.runs, 2 * (1 + PRN_TUNE_MOST_ROUNDS));
    fill_script(&s, 10000, 9900);
    assert_false(judge(&s).taken_back);
    s.default_ns[0] = 1; /* of the warm-up nothing follows */
    assert_false(judge(&s).taken_back);
    for (int i = 1; i <= 6; i++) s.tuned_ns[i] = 10001; /* fifteen wins of twenty-one */
    assert_int_equal(judge(&s).tuned_ns, 9900);
    assert_true(judge(&s).taken_back);
    s.tuned_ns[6] = 9900;
    assert_false(judge(&s).taken_back);
    fill_script(&s, 10000, 20000);
    assert_true(judge(&s).taken_back);
    assert_int_equal(judge(&s).default_ns, 10000);
    assert_int_equal(judge(&s).tuned_ns, 20000);
}

static void test_judge_long_runs(void **state)
{
    (void)state;
    script s;
    fill_script(&s, INT64_C(300000000), INT64_C(200000000));
    assert_false(judge(&s).taken_back);
    assert_int_equal(s.runs, 2 * (1 + PRN_TUNE_LEAST_ROUNDS));
    fill_script(&s, INT64_C(30000000000), INT64_C(20000000000));
    assert_false(judge(&s).taken_back);
    assert_int_equal(s.runs, 2 * (1 + 1));
}

static void test_judge_failing(void **state)
{
    (void)state;
    for (int at = 1; at <= 7; at++) {
        prn_tune_verdict verdict = {.default_ns = -1, .tuned_ns = -1};
        prony_error error = {0};
        script s;
        fill_script(&s, 100, 50);
        s.fails_at = at;
        assert_int_equal(prn_tune_judge(&verdict, play, &s, &error), PRONY_SHAPE_MISMATCH);
        assert_string_equal(error.message, "it does not fit");
        assert_int_equal(s.runs, at);
    }
}

/* ---- what is kept */

static void test_loses(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    run_untuned(plain);
    measure();
    clock_says(1000, 2000);
    expect(profile(first_out), true, true, 1000, 2000);
    assert_memory_equal(first_out, plain, sizeof plain); /* the default kernels, the same bits */
    rows = AS_KEPT;
    forgets = false;
    clock_says(1, 1);
    expect(profile(second_out), false, true, 1000, 2000);
    assert_memory_equal(second_out, plain, sizeof plain);
}

static void test_wins(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    measure();
    clock_says(2000, 1000);
    expect(profile(first_out), true, false, 2000, 1000);
    rows = AS_KEPT;
    forgets = false;
    clock_says(1, 1);
    expect(profile(second_out), false, false, 2000, 1000);
    assert_memory_equal(first_out, second_out, sizeof first_out);
}

static void test_nothing_to_judge(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    measure();
    rows = STANDARD;
    clock_says(2000, 1000);
    expect(profile(first_out), false, false, -1, -1);
}

static char *cache_file(char path[4200])
{
    prony_report *report = profile(first_out);
    snprintf(path, 4200, "%s", prony_report_tuning(report)->file);
    prony_report_release(report);
    return path;
}

/* Replaces `was` by as many other bytes. */
static void edit(const char *path, const char *was, const char *with)
{
    static char data[1 << 16];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(data, 1, sizeof data - 1, file);
    fclose(file);
    data[size] = '\0';
    char *at = strstr(data, was);
    assert_non_null(at);
    assert_int_equal(strlen(was), strlen(with));
    memcpy(at, with, strlen(with));
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void test_older_file(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    static const char *const edits[][2] = {{"\"plans\"", "\"plane\""},
                                           {"prony.tune/2", "prony.tune/1"},
                                           {"\"taken_back\"", "\"taken_away\""},
                                           {"\"default_run_ns\": 1", "\"default_run_ns\": x"}};
    char path[4200];
    for (size_t e = 0; e < sizeof edits / sizeof *edits; e++) {
        rows = AS_KEPT;
        forgets = false;
        measure();
        clock_says(1000, 2000);
        cache_file(path);
        forgets = false;
        edit(path, edits[e][0], edits[e][1]);
        prony_report *report = profile(first_out);
        assert_true(prony_report_tuning(report)->measured > 0);
        assert_non_null(strstr(prony_report_tuning(report)->note, "measured anew"));
        prony_report_release(report);
    }
}

/* A verdict about rows of which one is gone: it is measured, and the whole is judged anew. */
static void test_row_gone(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    char path[4200];
    for (int wins = 0; wins < 2; wins++) {
        rows = AS_KEPT;
        forgets = false;
        measure();
        clock_says(1000, wins ? 500 : 2000);
        cache_file(path);
        rows = AS_KEPT;
        forgets = false;
        edit(path, "\"kernel\": \"conv", "\"kernel\": \"none");
        clock_says(3000, 1000);
        prony_report *report = profile(first_out);
        const prony_tuning *tuning = prony_report_tuning(report);
        assert_true(tuning->measured > 0);
        assert_false(tuning->taken_back);
        assert_int_equal(tuning->default_run_ns, tuning->changed ? 3000 : -1);
        assert_int_equal(fake.calls > 0, tuning->changed > 0);
        prony_report_release(report);
        assert_int_equal(remove(path), 0);
    }
}

/* ---- what stands in the way */

static void test_cancelled(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    measure();
    for (int at = 1; at <= 9; at += 4) {
        clock_says(2000, 1000);
        fake.cancel_at = at;
        open_tuned(build());
        fake.session = r.session;
        mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
        assert_int_equal(prony_session_prepare(r.session, &r.error), PRONY_CANCELLED);
        clock_says(2000, 1000);
        assert_int_equal(prony_session_prepare(r.session, &r.error), PRONY_OK);
        assert_true(fake.calls > 0); /* judged then */
        mr_run(&r, 0);
        close_model();
    }
}

/* A tensor that is not rank 0 to take elements of, and the index of the element to take. */
static model_builder *build_with_index(void)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,32,12,12");
    mb_input(m, "i", PRONY_INT64, "1");
    mb_initializer(m, "w", PRONY_FLOAT32, "32,32,3,3", w);
    mb_node(m, "Conv", "x w", "a", "pads=[1,1,1,1]");
    mb_node(m, "Tanh", "a", "b", "");
    mb_node(m, "Gather", "b i", "y", "axis=1");
    mb_output(m, "y", PRONY_FLOAT32, "1,1,12,12");
    return m;
}

static void set_index(int64_t index)
{
    mr_set(&r, "i", PRONY_INT64, "1", &index);
    r.input_count = 0; /* the value was copied */
}

static void test_failing_run(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    for (int pass = 0; pass < 3; pass++) { /* measured; judged; read */
        clock_says(2000, 1000);
        open_tuned(build_with_index());
        mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
        set_index(pass == 1 ? 40 : 3);
        assert_int_equal(prony_session_prepare(r.session, &r.error), PRONY_OK);
        if (pass) {
            assert_true(r.session->current->plan->verdict->taken_back);
            assert_int_equal(r.session->current->plan->verdict->tuned_ns, -1);
            assert_non_null(strstr(r.session->tuning->note, "taken back, a run failed: "));
            assert_int_equal(r.session->tuning->measured, 0);
        }
        if (pass == 2) assert_int_equal(fake.calls, 0);
        set_index(5);
        mr_run(&r, 0);
        close_model();
        rows = pass ? AS_KEPT : OTHERS;
        forgets = pass == 0;
    }
}

/* Bytes of the caller's that nothing was written to are not read for judging. */
static void test_bound_index(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    int64_t index = 4000;
    const prony_value value = {.dtype = PRONY_INT64, .shape = {1, {1}}, .data = &index};
    for (int pass = 0; pass < 2; pass++) {
        clock_says(2000, 1000);
        open_tuned(build_with_index());
        mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
        assert_int_equal(prony_session_bind_input(r.session, "i", &value, &r.error), PRONY_OK);
        assert_int_equal(prony_session_prepare(r.session, &r.error), PRONY_OK);
        if (pass) assert_false(r.session->current->plan->verdict->taken_back);
        assert_string_equal(r.session->tuning->note, "");
        index = 2;
        mr_run(&r, 0);
        index = 4000;
        close_model();
        rows = OTHERS;
        forgets = true;
    }
}

/* Shapes that follow from the data, which each run takes from the dynamic region. */
static void test_dynamic_shapes(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    int64_t wanted = -1;
    for (int pass = 0; pass < 3; pass++) {
        clock_says(2000, pass == 2 ? 3000 : 1000);
        model_builder *m = mb_begin(13);
        mb_input(m, "x", PRONY_FLOAT32, "1,32,12,12");
        mb_initializer(m, "w", PRONY_FLOAT32, "32,32,3,3", w);
        mb_node(m, "Conv", "x w", "a", "pads=[1,1,1,1]");
        mb_node(m, "Relu", "a", "b", "");
        mb_node(m, "NonZero", "b", "y", "");
        mb_output(m, "y", PRONY_INT64, "4,n");
        open_tuned(m);
        mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
        assert_int_equal(prony_session_prepare(r.session, &r.error), PRONY_OK);
        if (pass) assert_int_equal(r.session->current->plan->verdict->taken_back, pass == 2);
        assert_int_equal(mr_live_bytes(&r), 0);
        const int64_t count = mr_run(&r, 0)->shape.dim[1];
        assert_true(wanted < 0 || count == wanted);
        assert_true(count > 0);
        wanted = count;
        close_model();
        rows = OTHERS;
        forgets = true;
    }
}

static prony_status prepare_within(uint64_t limit)
{
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.memory_limit_bytes = limit;
    open_tuned(build());
    mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
    return prony_session_prepare(r.session, &r.error);
}

/* In the least memory that a plan fits into there cannot be two. */
static void test_no_room(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    uint64_t least = sizeof x + 100000, most = 64 << 20;
    measure();
    saves = false;
    assert_int_equal(prepare_within(most), PRONY_OK);
    assert_non_null(r.session->current->plan->verdict);
    close_model();
    while (most - least > 1024) {
        const uint64_t limit = (least + most) / 2;
        clock_says(2000, 1000);
        const prony_status status = prepare_within(limit);
        assert_true(status == PRONY_OK || status == PRONY_LIMIT);
        close_model();
        *(status == PRONY_OK ? &most : &least) = limit;
    }
    clock_says(2000, 1000);
    assert_int_equal(prepare_within(most), PRONY_OK);
    assert_null(r.session->current->plan->verdict);
    assert_true(prn_plan_tune_changes(r.session->current->plan) > 0); /* they stay */
    assert_non_null(strstr(r.session->tuning->note, "not judged as a whole"));
    assert_int_equal(fake.calls, 0);
    close_model();
}

/* The plan that is given up leaves nothing behind. */
static void test_gives_back(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    measure();
    for (int loses = 0; loses < 2; loses++) {
        uint64_t held[2];
        for (int kept = 0; kept < 2; kept++) {
            forgets = !kept;
            rows = kept ? AS_KEPT : OTHERS;
            clock_says(1000, loses ? 2000 : 500);
            assert_int_equal(prepare_within(0), PRONY_OK);
            assert_int_equal(r.session->current->plan->verdict->taken_back, loses);
            prn_tuning_release(r.session->tuning);
            r.session->tuning = NULL;
            held[kept] = prn_budget_held(r.session->budget);
            close_model();
        }
        assert_int_equal(held[0], held[1]);
    }
}

/* ---- operators of users' */

static int calls;

static prony_status twice_infer(const prony_context *context)
{
    *context->outputs[0] = (prony_value){.dtype = context->inputs[0]->dtype, .shape = context->inputs[0]->shape};
    return PRONY_OK;
}

static prony_status twice_run(const prony_context *context)
{
    const float *in = context->inputs[0]->data;
    float *out = context->outputs[0]->data;
    calls++;
    for (int64_t i = 0; i < prony_shape_numel(&context->inputs[0]->shape); i++) out[i] = 2 * in[i];
    return PRONY_OK;
}

static prony_status twice_cost(const prony_context *context, prony_cost *cost)
{
    cost->flops = (uint64_t)prony_shape_numel(&context->inputs[0]->shape);
    return PRONY_OK;
}

static void test_registered(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    prony_operator twice = PRONY_OPERATOR_INIT;
    prony_registry *registry;
    prony_error error = {0};
    twice.domain = "test";
    twice.name = "Twice";
    twice.infer = twice_infer;
    twice.cost = twice_cost;
    twice.run = twice_run;
    assert_int_equal(prony_registry_create(&registry, &error), PRONY_OK);
    assert_int_equal(prony_registry_add(registry, &twice, &error), PRONY_OK);
    calls = 0;
    for (int pass = 0; pass < 2; pass++) {
        clock_says(2000, 1000);
        model_builder *m = mb_begin(13);
        mb_opset(m, "test", 1);
        mb_input(m, "x", PRONY_FLOAT32, "1,32,12,12");
        mb_initializer(m, "w", PRONY_FLOAT32, "32,32,3,3", w);
        mb_node(m, "Conv", "x w", "a", "pads=[1,1,1,1]");
        mb_node(m, "test::Twice", "a", "y", "");
        mb_output(m, "y", PRONY_FLOAT32, "1,32,12,12");
        r.registry = registry;
        open_tuned(m);
        mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
        assert_int_equal(prony_session_prepare(r.session, &r.error), PRONY_OK);
        assert_int_equal(calls, 0);
        if (pass) assert_non_null(strstr(r.session->tuning->note, "registered"));
        assert_int_equal(fake.calls, 0);
        close_model();
        rows = OTHERS;
        forgets = true;
    }
    prony_registry_release(registry);
}

/* Workers, and threads of a pool: both plans are run as the one that stays will be. */
static void test_threads(void **state)
{
    (void)state;
    if (!has_choice()) skip();
    prony_pool *pool;
    prony_error error = {0};
    assert_int_equal(prony_pool_create(&pool, 1, &error), PRONY_OK);
    for (int way = 0; way < 2; way++) {
        rows = AS_KEPT;
        forgets = false;
        for (int pass = 0; pass < 3; pass++) {
            clock_says(2000, pass == 2 ? 3000 : 1000);
            r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
            r.options.intra_op_threads = way ? 2 : 1;
            r.options.inter_op_threads = way ? 1 : 2;
            r.options.pool = way ? pool : NULL;
            open_tuned(build());
            mr_set(&r, "x", PRONY_FLOAT32, "1,32,12,12", x);
            assert_int_equal(prony_session_prepare(r.session, &r.error), PRONY_OK);
            if (pass) assert_int_equal(r.session->current->plan->verdict->taken_back, pass == 2);
            mr_run(&r, 0);
            close_model();
            rows = OTHERS;
            forgets = true;
        }
    }
    prony_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_judge_long_runs),
        cmocka_unit_test(test_judge_failing),
        cmocka_unit_test_setup_teardown(test_loses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_to_judge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_older_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_row_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cancelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failing_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bound_index, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dynamic_shapes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gives_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_registered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
