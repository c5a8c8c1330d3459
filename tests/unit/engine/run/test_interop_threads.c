/* Several workers: results of a failing branch, of a thread pool and of sharing a model; the number of threads, and
 * the number of workers of a plan. Random models are in test_interop_random_threads.c. Runs under ThreadSanitizer as
 * well. */
#include "failure_trace.h"
#include "base/threads/thread_pool.h"
#include "engine/plan/planner.h"
#include "engine/plan/step_graph.h"
#include "engine/plan/schedule.h"
#include "engine/session/session.h"
#include "tests/support/graph_run.h"
#include "tests/support/model_run.h"
#include "tests/support/plan_replay.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- threads ---- */

static int running_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (const struct dirent *e; (e = readdir(folder));) count += e->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* `branches` convolutions and products of one input, joined. */
static model_builder *wide(int branches)
{
    static float kernel[16 * 8 * 3 * 3], matrix[64 * 64];
    for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++) kernel[i] = (float)(i % 13) / 13 - 0.4f;
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++) matrix[i] = (float)(i % 7) / 7 - 0.3f;
    model_builder *m = mb_begin(13);
    char inputs[16 * 40] = "", name[32];
    const int64_t rows[2] = {-1, 64};
    mb_input(m, "x", PRONY_FLOAT32, "1,8,H,32");
    mb_initializer(m, "k", PRONY_FLOAT32, "16,8,3,3", kernel);
    mb_initializer(m, "w", PRONY_FLOAT32, "64,64", matrix);
    mb_initializer(m, "rows", PRONY_INT64, "2", rows);
    for (int b = 0; b < branches; b++) {
        char from[32], to[32];
        snprintf(to, sizeof to, "c%d", b);
        mb_node(m, "Conv", "x k", to, "pads=[1,1,1,1]");
        snprintf(from, sizeof from, "c%d rows", b);
        snprintf(to, sizeof to, "r%d", b);
        mb_node(m, "Reshape", from, to, "");
        snprintf(from, sizeof from, "r%d w", b);
        snprintf(to, sizeof to, "p%d", b);
        mb_node(m, "MatMul", from, to, "");
        snprintf(name, sizeof name, " y%d", b);
        snprintf(to, sizeof to, "y%d", b);
        snprintf(from, sizeof from, "p%d", b);
        mb_node(m, b % 2 ? "Sigmoid" : "Tanh", from, to, "");
        strcat(inputs, name);
    }
    mb_node(m, "Sum", inputs + 1, "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "256,64");
    return m;
}

static float picture[8 * 32 * 32];

static void fill_picture(void)
{
    for (size_t i = 0; i < sizeof picture / sizeof *picture; i++) picture[i] = (float)(i % 101) / 101 - 0.5f;
}

static void *nothing(void *argument)
{
    return argument;
}

/* The thread sanitizer starts its own thread with the program's first one: start one before counting. */
static void start_first_thread(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* oneDNN's and OpenBLAS's own among them: they have none. */
static void no_more_threads_than_asked_for(void **state)
{
    (void)state;
    static const struct {
        int workers, threads;
    } of[] = {{1, 1}, {2, 1}, {2, 2}, {3, 2}};
    fill_picture();
    start_first_thread();
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        SCENARIO(i);
        int before = running_threads(), most = 0;
        for (int wait = 0; before > 1 && wait < 2000; wait++, usleep(1000)) before = running_threads();
        model_run r = {.options = {.inter_op_threads = of[i].workers, .intra_op_threads = of[i].threads}};
        mr_open(&r, wide(8));
        mr_set(&r, "x", PRONY_FLOAT32, "1,8,32,32", picture);
        for (int run = 0; run < 20; run++) {
            mr_run(&r, 0);
            int now = running_threads();
            if (now > most) most = now;
        }
        assert_int_equal(prony_session_workers(r.session), of[i].workers);
        assert_int_equal(prony_session_threads(r.session), of[i].threads);
        assert_in_range(most, 1, before - 1 + of[i].workers * of[i].threads);
        mr_close(&r);
        prn_thread_pool_shut_down();
    }
}

/* ---- what fails ---- */

/* The first branch fails in Gather, and the last; one worker meets the first. */
static model_builder *failing(void)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,8,32,32");
    mb_input(m, "at", PRONY_INT64, "1");
    for (int b = 0; b < 6; b++) {
        char to[32], from[32];
        snprintf(to, sizeof to, "g%d", b);
        mb_node(m, "Gather", b == 1 || b == 4 ? "x at" : "x zero", to, "axis=1");
        mb_node_name(m, to);
        snprintf(from, sizeof from, "g%d", b);
        snprintf(to, sizeof to, "y%d", b);
        mb_node(m, "Tanh", from, to, "");
        mb_output(m, to, PRONY_FLOAT32, NULL);
    }
    const int64_t zero = 0;
    mb_initializer(m, "zero", PRONY_INT64, "1", &zero);
    return m;
}

static void the_first_failure_in_the_plan_is_reported(void **state)
{
    (void)state;
    fill_picture();
    const int64_t bad = 99, good = 3;
    for (int workers = 1; workers <= 4; workers++) {
        SCENARIO(workers);
        model_run r = {.options = {.inter_op_threads = workers, .intra_op_threads = 1}};
        mr_open(&r, failing());
        mr_set(&r, "x", PRONY_FLOAT32, "1,8,32,32", picture);
        for (int run = 0; run < 30; run++) {
            mr_set(&r, "at", PRONY_INT64, "1", &bad);
            mr_refused(&r, PRONY_OUT_OF_RANGE, "'g1'");
            mr_set(&r, "at", PRONY_INT64, "1", &good);
            mr_run(&r, 0);
        }
        mr_close(&r);
    }
}

static void *cancel_soon(void *session)
{
    usleep(300);
    prony_session_cancel(session);
    return NULL;
}

/* Wherever the cancellation meets the workers, the run ends, and the next run is complete. */
static void a_run_of_several_workers_is_called_off(void **state)
{
    (void)state;
    fill_picture();
    static float wanted[256 * 64];
    model_run r = {.options = {.inter_op_threads = 3, .intra_op_threads = 1}};
    mr_open(&r, wide(8));
    mr_set(&r, "x", PRONY_FLOAT32, "1,8,32,32", picture);
    memcpy(wanted, mr_run(&r, 0)->data, sizeof wanted);
    for (int run = 0; run < 60; run++) {
        SCENARIO(run);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, r.session), 0);
        prony_status status = prony_session_run(r.session, &r.error);
        pthread_join(thread, NULL);
        if (status != PRONY_OK) assert_int_equal(status, PRONY_CANCELLED);
        status = prony_session_run(r.session, &r.error); /* takes a cancellation that came too late before */
        assert_true(status == PRONY_OK || status == PRONY_CANCELLED);
        assert_memory_equal(mr_run(&r, 0)->data, wanted, sizeof wanted);
    }
    mr_close(&r);
}

/* Parallel branches of several kinds: shapes that only a run knows, an If and a Loop that read values of other
 * branches. */
static model_builder *changing(void)
{
    const int64_t trips = 3, axis = 1;
    const float one = 1;
    const uint8_t yes = 1;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "4,6");
    mb_initializer(m, "one", PRONY_FLOAT32, "", &one);
    mb_initializer(m, "trips", PRONY_INT64, "", &trips);
    mb_initializer(m, "yes", PRONY_BOOL, "", &yes);
    mb_initializer(m, "axis", PRONY_INT64, "1", &axis);
    for (int b = 0; b < 3; b++) {
        char a[9][40];
        const char *const names[] = {"n%d", "f%d", "s%d", "c%d", "i%d", "l%d", "q%d", "t%d", "u%d"};
        for (int k = 0; k < 9; k++) snprintf(a[k], sizeof a[k], names[k], b);
        char text[100];
        mb_node(m, b ? "Sin" : "Cos", "x", a[8], "");
        mb_node(m, "NonZero", a[8], a[0], "");
        mb_node(m, "Cast", a[0], a[1], "to=1");
        snprintf(text, sizeof text, "%s axis", a[1]);
        mb_node(m, "ReduceSum", text, a[2], "keepdims=0");
        mb_node(m, "ReduceMax", a[8], a[3], "keepdims=0");
        snprintf(text, sizeof text, "%s one", a[3]);
        mb_node(m, "Less", text, a[6], "");
        mb_node(m, "If", a[6], a[4], "");
        mb_graph_begin(m, "then_branch");
        mb_node(m, "Tanh", a[8], "inner", "");
        mb_output(m, "inner", PRONY_FLOAT32, "4,6");
        mb_graph_end(m);
        mb_graph_begin(m, "else_branch");
        mb_node(m, "Neg", a[8], "inner2", "");
        mb_output(m, "inner2", PRONY_FLOAT32, "4,6");
        mb_graph_end(m);
        snprintf(text, sizeof text, "trips yes %s", a[4]);
        mb_node(m, "Loop", text, a[5], "");
        mb_graph_begin(m, "body");
        mb_input(m, "i", PRONY_INT64, "");
        mb_input(m, "on", PRONY_BOOL, "");
        mb_input(m, "v", PRONY_FLOAT32, "4,6");
        snprintf(text, sizeof text, "v %s", a[8]);
        mb_node(m, "Add", text, "v2", "");
        mb_node(m, "Sigmoid", "v2", "v3", "");
        mb_node(m, "Identity", "on", "on2", "");
        mb_output(m, "on2", PRONY_BOOL, "");
        mb_output(m, "v3", PRONY_FLOAT32, "4,6");
        mb_graph_end(m);
        mb_output(m, a[2], PRONY_FLOAT32, NULL);
        mb_output(m, a[5], PRONY_FLOAT32, "4,6");
    }
    return m;
}

static const float small[24] = {0.5f, -1,     2, 0, 3, -0.25f, 1, 0, 0, 4, -2, 1,
                                7,    0.125f, 0, 1, 1, -3,     2, 0, 5, 6, -1, 0};

static void branches_that_change_run_side_by_side(void **state)
{
    (void)state;
    float wanted[3][24];
    for (int workers = 1; workers <= 4; workers++) {
        SCENARIO(workers);
        model_run r = {.options = {.inter_op_threads = workers, .intra_op_threads = 2}};
        mr_open(&r, changing());
        mr_set(&r, "x", PRONY_FLOAT32, "4,6", small);
        for (int run = 0; run < 50; run++) {
            mr_run(&r, 0);
            for (size_t b = 0; b < 3; b++) {
                const prony_value *got = mr_output(&r, 2 * b + 1);
                if (workers == 1) memcpy(wanted[b], got->data, sizeof wanted[b]);
                assert_memory_equal(got->data, wanted[b], sizeof wanted[b]);
            }
        }
        mr_close(&r);
    }
}

/* true: the n-th allocation was reached. A thread that cannot be created is not a failure: others do its work. */
static bool fails_or_runs(int workers, uint64_t n)
{
    model_run r = {.options = {.inter_op_threads = workers, .intra_op_threads = 1}};
    prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("4,6"), .data = (void *)(uintptr_t)small};
    prn_alloc_fail_at(n);
    prony_status status = mr_try_open(&r, changing());
    if (status == PRONY_OK) status = prony_session_set_input(r.session, "x", &x, &r.error);
    for (int run = 0; run < 2 && status == PRONY_OK; run++) status = prony_session_run(r.session, &r.error);
    bool failed = prn_alloc_failed();
    prn_alloc_fail_at(0);
    if (status != PRONY_OK && (status != PRONY_OUT_OF_MEMORY || !failed))
        fail_msg("allocation %d: %s", (int)n, r.error.message);
    mr_close(&r);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int workers = -1; workers <= 2; workers += 3) {
        for (uint64_t n = 1;; n++)
            if (!fails_or_runs(workers, n)) break;
    }
    for (uint64_t n = 1;; n++) {
        prony_thread_pool *pool = NULL;
        prony_error error = {0};
        prn_alloc_fail_at(n);
        prony_status status = prony_thread_pool_create(&pool, 2, &error);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        prony_thread_pool_release(pool);
        if (!failed) break;
        assert_true(status == PRONY_OK || status == PRONY_OUT_OF_MEMORY);
    }
}

/* ---- sharing ---- */

typedef struct sharer {
    prony_model *model;
    prony_thread_pool *pool;
    int workers;
    float first[256 * 64];
    prony_status status;
    prony_error error;
} sharer;

static void *run_many(void *argument)
{
    sharer *s = argument;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("1,8,32,32"), .data = picture};
    const prony_value *y = NULL;
    options.intra_op_threads = 1;
    options.inter_op_threads = s->workers;
    options.thread_pool = s->pool;
    s->status = prony_session_create(&session, s->model, &options, &s->error);
    if (s->status == PRONY_OK) s->status = prony_session_set_input(session, "x", &x, &s->error);
    for (int run = 0; run < 12 && s->status == PRONY_OK; run++) {
        s->status = prony_session_run(session, &s->error);
        if (s->status == PRONY_OK) s->status = prony_session_output(session, 0, &y, &s->error);
        if (s->status != PRONY_OK) break;
        if (run == 0) memcpy(s->first, y->data, sizeof s->first);
        if (memcmp(s->first, y->data, sizeof s->first) != 0) s->status = PRONY_INTERNAL;
    }
    prony_session_release(session);
    return NULL;
}

static void share_with(int sharers, int pool_threads, int workers)
{
    static sharer all[8];
    pthread_t threads[8];
    prony_error error = {0};
    prony_thread_pool *pool = NULL;
    model_builder *m = wide(8);
    size_t size;
    const void *bytes = mb_finish(m, &size);
    prony_model *model = NULL;
    if (prony_model_load_memory(&model, "wide", bytes, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    if (pool_threads) assert_int_equal(prony_thread_pool_create(&pool, pool_threads, &error), PRONY_OK);
    if (pool_threads) assert_int_equal(prony_thread_pool_threads(pool), pool_threads);
    for (int i = 0; i < sharers; i++) {
        all[i].model = model;
        all[i].pool = pool;
        all[i].workers = i % 2 ? 1 : workers;
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &all[i]), 0);
    }
    for (int i = 0; i < sharers; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < sharers; i++) {
        if (all[i].status != PRONY_OK) fail_msg("%d: %s", all[i].status, all[i].error.message);
        assert_memory_equal(all[i].first, all[0].first, sizeof all[0].first);
    }
    prony_thread_pool_release(pool);
    prony_model_release(model);
    mb_free(m);
}

static void sessions_share_a_model(void **state)
{
    (void)state;
    fill_picture();
    share_with(4, 0, 2);
}

static void sessions_share_a_pool(void **state)
{
    (void)state;
    fill_picture();
    share_with(8, 1, 2);
    share_with(8, 2, 3);
}

static void a_pool_outlives_its_handle(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_thread_pool *pool = NULL;
    fill_picture();
    assert_int_equal(prony_thread_pool_create(&pool, -1, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_thread_pool_create(&pool, 100000, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_thread_pool_create(&pool, 1, &error), PRONY_OK);
    model_run r = {.options = {.inter_op_threads = 2, .intra_op_threads = 2, .thread_pool = pool}};
    mr_open(&r, wide(4));
    prony_thread_pool_release(pool);
    mr_set(&r, "x", PRONY_FLOAT32, "1,8,32,32", picture);
    mr_run(&r, 0);
    mr_run(&r, 0);
    mr_close(&r);
}

/* ---- the choice ---- */

static void auto_says_why(void **state)
{
    (void)state;
    static const struct {
        int branches, cores, threads, least, most;
        const char *why;
    } of[] = {{1, 4, 0, 1, 1, "critical path"},
              {16, 1, 0, 1, 1, "leaves no room for more"},
              {16, 2, 2, 1, 1, "no room for more"},
              {16, 4, 1, 2, 4, "critical path"}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        SCENARIO(i);
        model_builder *builder = wide(of[i].branches);
        size_t size;
        const void *bytes = mb_finish(builder, &size);
        prony_model *model = NULL;
        prony_error error = {0};
        prn_program *program = NULL;
        prn_plan *plan = NULL;
        assert_int_equal(prony_model_load_memory(&model, "wide", bytes, size, NULL, &error), PRONY_OK);
        prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("1,8,32,32")};
        prn_bind_options bind = {.inputs = &x, .input_count = 1};
        assert_int_equal(prn_program_bind(&program, model, &model->file->graph, NULL, NULL, &bind, &error), PRONY_OK);
        prn_plan_options options = {.threads = of[i].threads, .workers = PRN_WORKERS_AUTO, .cores = of[i].cores};
        assert_int_equal(prn_plan_create(&plan, program, NULL, &options, &error), PRONY_OK);
        if (plan->parallel.workers < of[i].least || plan->parallel.workers > of[i].most)
            fail_msg("%zu: %s", i, plan->parallel.note);
        if (!strstr(plan->parallel.note, of[i].why))
            fail_msg("%zu: '%s' does not say '%s'", i, plan->parallel.note, of[i].why);
        prn_plan_release(plan);
        prn_program_release(program);
        prony_model_release(model);
        mb_free(builder);
    }
}

/* One branch: no two operators can run side by side, so its plan has no schedule and the threads work inside of
 * them. */
static void a_chain_is_not_scheduled(void **state)
{
    (void)state;
    fill_picture();
    for (int no_work_stealing = 0; no_work_stealing < 2; no_work_stealing++) {
        SCENARIO(no_work_stealing);
        model_run r = {
            .options = {.inter_op_threads = 2, .intra_op_threads = 2, .no_work_stealing = no_work_stealing == 1}};
        mr_open(&r, wide(1));
        for (int batch = 1; batch < 3; batch++) { /* another plan for another shape */
            mr_set(&r, "x", PRONY_FLOAT32, batch == 1 ? "1,8,32,32" : "1,8,16,32", picture);
            mr_run(&r, 0);
            assert_int_equal(prony_session_workers(r.session), 1);
            assert_int_equal(prony_session_threads(r.session), no_work_stealing ? 2 : 4);
            assert_null(r.session->current->plan->parallel.schedule);
            assert_non_null(strstr(r.session->current->plan->parallel.note, "so none run side by side"));
        }
        mr_close(&r);
    }
}

/* Working space of the steps, one per thread. */
static size_t scratch_of_steps(prn_program *program, const prn_plan_options *options)
{
    prony_error error = {0};
    prn_plan *plan = NULL;
    size_t bytes = 0;
    if (prn_plan_create(&plan, program, NULL, options, &error) != PRONY_OK) fail_msg("%s", error.message);
    for (size_t s = 0; s < plan->step_count; s++) bytes += plan->steps[s]->context.scratch_bytes;
    prn_plan_release(plan);
    return bytes;
}

/* One worker's threads or several workers that help each other: a convolution has room for as many threads. */
static void there_is_room_for_those_that_help(void **state)
{
    (void)state;
    float *weights = calloc((size_t)64 * 64 * 9, sizeof *weights);
    model_builder *builder = mb_begin(13);
    mb_input(builder, "x", PRONY_FLOAT32, "1,64,56,56");
    mb_initializer(builder, "w", PRONY_FLOAT32, "64,64,3,3", weights);
    mb_node(builder, "Conv", "x w", "c", "pads=[1,1,1,1]");
    mb_node(builder, "Sigmoid", "c", "left", "");
    mb_node(builder, "Tanh", "c", "right", "");
    mb_output(builder, "left", PRONY_FLOAT32, NULL);
    mb_output(builder, "right", PRONY_FLOAT32, NULL);
    size_t size;
    const void *bytes = mb_finish(builder, &size);
    prony_model *model = NULL;
    prony_error error = {0};
    prn_program *program = NULL;
    assert_int_equal(prony_model_load_memory(&model, "room", bytes, size, NULL, &error), PRONY_OK);
    prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("1,64,56,56")};
    prn_bind_options bind = {.inputs = &x, .input_count = 1};
    assert_int_equal(prn_program_bind(&program, model, &model->file->graph, NULL, NULL, &bind, &error), PRONY_OK);
    const prn_plan_options one = {.threads = 1, .cores = 2}, two = {.threads = 2, .cores = 2};
    const prn_plan_options help = {.threads = 1, .workers = 2, .cores = 2},
                           automatic = {.workers = PRN_WORKERS_AUTO, .cores = 2};
    const prn_plan_options alone = {.threads = 1, .workers = 2, .cores = 2, .no_work_stealing = true};
    const size_t room = scratch_of_steps(program, &two);
    assert_int_equal(scratch_of_steps(program, &help), room);
    assert_int_equal(scratch_of_steps(program, &automatic), room);
    assert_int_equal(scratch_of_steps(program, &alone), scratch_of_steps(program, &one));
    prn_program_release(program);
    prony_model_release(model);
    mb_free(builder);
    free(weights);
}

/* ---- many steps ---- */

/* Longer than two windows: lanes of a few values each, which join now and then. */
static model_builder *long_graph(int steps)
{
    enum { LANES = 5 };
    char at[LANES][24], to[24], in[100];
    uint64_t random = 11;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "4,6");
    for (int l = 0; l < LANES; l++) strcpy(at[l], "x");
    for (int s = 0; s < steps; s++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        int lane = (int)((random >> 33) % LANES), other = (int)((random >> 40) % LANES);
        bool mix = (random >> 50) % 8 == 0;
        snprintf(in, sizeof in, mix ? "%.40s %.40s" : "%.40s", at[lane], at[other]);
        snprintf(to, sizeof to, "v%d", s);
        mb_node(m, mix ? "Max" : s % 3 ? "Tanh" : "Abs", in, to, "");
        strcpy(at[lane], to);
    }
    for (int l = 0; l < LANES; l++) {
        snprintf(to, sizeof to, "y%d", l);
        snprintf(in, sizeof in, "%.40s %.40s", at[l], at[(l + 1) % LANES]);
        mb_node(m, "Add", in, to, "");
        mb_output(m, to, PRONY_FLOAT32, "4,6");
    }
    return m;
}

static void plans_of_several_windows_agree(void **state)
{
    (void)state;
    float wanted[24];
    for (int workers = 1; workers <= 3; workers++) {
        SCENARIO(workers);
        model_run r = {.options = {.inter_op_threads = workers, .intra_op_threads = 1, .no_rewrites = true}};
        mr_open(&r, long_graph(2 * (int)PRN_WINDOW_STEPS + 700));
        mr_set(&r, "x", PRONY_FLOAT32, "4,6", small);
        const prony_value *y = mr_run(&r, 2);
        if (workers == 1) memcpy(wanted, y->data, sizeof wanted);
        assert_memory_equal(y->data, wanted, sizeof wanted);
        prn_plan *plan = r.session->current->plan;
        if (workers > 1) {
            assert_non_null(plan->parallel.graph);
            for (uint32_t s = PRN_WINDOW_STEPS; s < plan->step_count; s++)
                assert_true(plan->parallel.graph->before_count[s] > 0);
        }
        for (uint64_t seed = 1; workers > 1 && seed < 6; seed++) {
            if (plan_replay(plan, seed, &r.error) != PRONY_OK) fail_msg("%s", r.error.message);
            assert_memory_equal(plan->values[plan->outputs[2]]->value.data, wanted, sizeof wanted);
        }
        mr_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_threads_than_asked_for),
        cmocka_unit_test(the_first_failure_in_the_plan_is_reported),
        cmocka_unit_test(a_run_of_several_workers_is_called_off),
        cmocka_unit_test(branches_that_change_run_side_by_side),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(sessions_share_a_model),
        cmocka_unit_test(sessions_share_a_pool),
        cmocka_unit_test(a_pool_outlives_its_handle),
        cmocka_unit_test(auto_says_why),
        cmocka_unit_test(a_chain_is_not_scheduled),
        cmocka_unit_test(there_is_room_for_those_that_help),
        cmocka_unit_test(plans_of_several_windows_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
