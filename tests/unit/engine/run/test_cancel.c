/* Cancels a session from another thread: while it binds, packs, loops or is inside one operator that takes minutes.
 * The tests require the answer and its content, not its speed; without the cancellation each run would take far
 * longer than a test may. Afterwards the session gives right results. */
#include "failure_trace.h"
#include "tests/support/model_run.h"
#include "prony_operator.h"
#include "prony_report.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void wait_ms(int64_t ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

typedef struct canceller {
    prony_session *session;
    int64_t after_ms;
} canceller;

static void *cancel_soon(void *argument)
{
    const canceller *c = argument;
    wait_ms(c->after_ms);
    prony_session_cancel(c->session);
    return NULL;
}

/* Runs until cancelled; the message is in *error, and names `where`. On a busy machine the cancellation may come
 * before the run: then the next attempt delays it. */
static void run_and_cancel(prony_session *session, const char *where, prony_error *error)
{
    canceller c = {session, 20};
    do {
        pthread_t other;
        const prony_value *output;
        *error = (prony_error){0};
        assert_int_equal(pthread_create(&other, NULL, cancel_soon, &c), 0);
        assert_int_equal(prony_session_run(session, error), PRONY_CANCELLED);
        pthread_join(other, NULL);
        assert_int_equal(error->status, PRONY_CANCELLED);
        assert_int_equal(prony_session_output(session, 0, &output, NULL), PRONY_INVALID_ARGUMENT);
        c.after_ms *= 2;
    } while (!strstr(error->message, where) && c.after_ms < 10000);
}

static prony_session *open_built(model_builder *m, prony_model **model, int threads)
{
    size_t size;
    prony_error error = {0};
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = threads;
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(model, "m", bytes, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    if (prony_session_create(&session, *model, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return session;
}

static void expect_text(const prony_error *error, const char *text)
{
    if (!strstr(error->message, text)) fail_msg("'%s' is not in: %s", text, error->message);
}

/* x grows by 1 in each of n trips, inside an If inside the body. */
static model_builder *counting(void)
{
    model_builder *m = mb_begin(16);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_node(m, "Loop", "n ? x", "y", "");
    mb_node_name(m, "outer");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "sum", PRONY_FLOAT32, "2");
    mb_initializer(m, "one", PRONY_FLOAT32, "1", &(float){1});
    mb_node(m, "Identity", "go", "again", "");
    mb_node(m, "If", "go", "next", "");
    mb_node_name(m, "choice");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Add", "sum one", "more", "");
    mb_node_name(m, "step");
    mb_output(m, "more", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Neg", "sum", "less", "");
    mb_output(m, "less", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_output(m, "again", PRONY_BOOL, "");
    mb_output(m, "next", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "2");
    return m;
}

static void set_counting(prony_session *session, int64_t n)
{
    float x[2] = {0, 10};
    prony_value trips = {.dtype = PRONY_INT64, .data = &n},
                start = {.dtype = PRONY_FLOAT32, .shape = {1, {2}}, .data = x};
    assert_int_equal(prony_session_set_input(session, "n", &trips, NULL), PRONY_OK);
    assert_int_equal(prony_session_set_input(session, "x", &start, NULL), PRONY_OK);
}

static void a_loop_is_left_and_the_session_goes_on(void **state)
{
    (void)state;
    prony_model *model = NULL;
    model_builder *m = counting();
    prony_session *session = open_built(m, &model, 1);
    for (int round = 0; round < 3; round++) {
        SCENARIO(round);
        prony_error error = {0};
        const prony_value *y = NULL;
        set_counting(session, INT64_C(1) << 30);
        run_and_cancel(session, "node 'outer'", &error);
        expect_text(&error, "node 'outer' (Loop)");
        set_counting(session, 5);
        assert_int_equal(prony_session_run(session, NULL), PRONY_OK);
        assert_int_equal(prony_session_output(session, 0, &y, NULL), PRONY_OK);
        assert_float_equal(((const float *)y->data)[0], 5, 0);
        assert_float_equal(((const float *)y->data)[1], 15, 0);
    }
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

/* One operator of many minutes: an Einsum of six letters that are all summed, a k of millions, a heap of strings … */
static void einsum(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT64, "300");
    mb_node(m, "Einsum", "x x x x x", "y", "equation='a,b,c,d,e->'");
    mb_output(m, "y", PRONY_FLOAT64, "");
}

static void matmul(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT32, "6000,6000");
    mb_node(m, "MatMul", "x x", "y1", "");
    mb_node(m, "MatMul", "y1 x", "y2", "");
    mb_node(m, "MatMul", "y2 x", "y3", "");
    mb_node(m, "MatMul", "y3 x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "6000,6000");
}

static void integer_matmul(model_builder *m)
{
    mb_input(m, "x", PRONY_INT64, "5000,5000");
    mb_node(m, "MatMul", "x x", "y", "");
    mb_output(m, "y", PRONY_INT64, "5000,5000");
}

static void suppression(model_builder *m)
{
    mb_input(m, "boxes", PRONY_FLOAT32, "1,400000,4");
    mb_input(m, "scores", PRONY_FLOAT32, "1,1,400000");
    mb_initializer(m, "most", PRONY_INT64, "", &(int64_t){1000000});
    mb_node(m, "NonMaxSuppression", "boxes scores most", "y", "");
    mb_output(m, "y", PRONY_INT64, "N,3");
}

static void convolution(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT32, "1,256,200,200");
    mb_input(m, "w", PRONY_FLOAT32, "2048,256,7,7");
    mb_node(m, "Conv", "x w", "y", "pads=[3,3,3,3]");
    mb_output(m, "y", PRONY_FLOAT32, "1,2048,200,200");
}

static void recurrence(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT32, "20000,1,512");
    mb_input(m, "w", PRONY_FLOAT32, "1,2048,512");
    mb_input(m, "r", PRONY_FLOAT32, "1,2048,512");
    mb_node(m, "LSTM", "x w r", "y", "hidden_size=512");
    mb_output(m, "y", PRONY_FLOAT32, "20000,1,1,512");
}

static void fourier(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT32, "1,4000037,1");
    mb_node(m, "DFT", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,4000037,2");
}

static void determinant(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT32, "4000,4000");
    mb_node(m, "Det", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "");
}

/* Nodes that are evaluated while binding: the product of constants that ConstantOfShape makes. */
static void folding(model_builder *m)
{
    mb_initializer(m, "shape", PRONY_INT64, "2", (int64_t[]){5000, 5000});
    mb_node(m, "ConstantOfShape", "shape", "a", "");
    mb_tensor(m, "value", PRONY_INT64, "1", &(int64_t){3});
    mb_node(m, "MatMul", "a a", "b", "");
    mb_input(m, "x", PRONY_INT64, "1");
    mb_node(m, "Add", "b x", "y", "");
    mb_output(m, "y", PRONY_INT64, "5000,5000");
}

/* Cancels in every phase and at every thread count; the second time as the first. */
static void one_operator_is_left(void **state)
{
    (void)state;
    static const struct {
        void (*build)(model_builder *m);
        const char *named;
    } rows[] = {{einsum, "(Einsum)"},
                {matmul, "(MatMul)"},
                {integer_matmul, "(MatMul)"},
                {suppression, "(NonMaxSuppression)"},
                {convolution, ""},
                {recurrence, "(LSTM)"},
                {fourier, "(DFT)"},
                {determinant, "(Det)"},
                {folding, "m: node "}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        SCENARIO(r);
        for (int threads = 1; threads <= 2; threads++) {
            prony_model *model = NULL;
            model_builder *m = mb_begin(17);
            rows[r].build(m);
            prony_session *session = open_built(m, &model, threads);
            assert_int_equal(prony_session_generate_inputs(session, 0, NULL), PRONY_OK);
            for (int round = 0; round < 2; round++) {
                prony_error error = {0};
                run_and_cancel(session, rows[r].named, &error);
                expect_text(&error, rows[r].named);
                expect_text(&error, "cancelled");
            }
            prony_session_release(session);
            prony_model_release(model);
            mb_free(m);
        }
    }
}

static void a_request_is_used_once(void **state)
{
    (void)state;
    prony_model *model = NULL;
    model_builder *m = counting();
    prony_session *session = open_built(m, &model, 1);
    set_counting(session, 3);
    prony_session_cancel(session);
    assert_int_equal(prony_session_run(session, NULL), PRONY_CANCELLED);
    assert_int_equal(prony_session_run(session, NULL), PRONY_OK);
    prony_session_cancel(session);
    assert_int_equal(prony_session_uncancel(session, NULL), PRONY_OK);
    assert_int_equal(prony_session_run(session, NULL), PRONY_OK);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

static void cancel_after(void *user, int64_t runs, double seconds, double relative_error)
{
    (void)runs, (void)seconds, (void)relative_error;
    prony_session_cancel(user);
}

/* A profile that is cancelled between or in the measured runs still reports the finished ones. */
static void a_profile_reports_what_it_has(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = NULL;
    model_builder *m = counting();
    prony_session *session = open_built(m, &model, 1);
    prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
    prony_report *report = NULL;
    options.runs = 100000000;
    options.max_seconds = 3600;
    options.progress = cancel_after;
    options.progress_user = session;
    set_counting(session, 5);
    assert_int_equal(prony_session_profile(&report, session, &options, &error), PRONY_CANCELLED);
    assert_non_null(report);
    assert_true(prony_report_latency(report)->count >= 1);
    prony_report_release(report);
    report = NULL;
    prony_session_cancel(session); /* before anything is measured */
    assert_int_equal(prony_session_profile(&report, session, &options, &error), PRONY_CANCELLED);
    assert_null(report);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

/* ---- cancellation as a custom operator sees it ---- */

static prony_status copy_type(const prony_context *context)
{
    context->outputs[0]->dtype = context->inputs[0]->dtype;
    context->outputs[0]->shape = context->inputs[0]->shape;
    return PRONY_OK;
}

static prony_status no_cost(const prony_context *context, prony_cost *cost)
{
    (void)context, (void)cost;
    return PRONY_OK;
}

static void count_piece(void *argument, int64_t begin, int64_t end)
{
    _Atomic int64_t *sum = argument;
    *sum += end - begin;
}

/* Cancels its own session and checks: no task is left out. */
static prony_status look(const prony_context *context)
{
    _Atomic int64_t sum = 0;
    prony_session **session = context->user;
    prony_session_cancel(*session);
    prony_parallel_for(context, 1000000, 1, count_piece, &sum);
    return prony_cancelled(context) && sum == 1000000 ? PRONY_OK : PRONY_INTERNAL;
}

static void custom_operators_can_look(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_registry *registry = NULL;
    prony_session *session = NULL;
    prony_model *model = NULL;
    prony_operator definition = PRONY_OPERATOR_INIT;
    definition.domain = "mine";
    definition.name = "Look";
    definition.infer = copy_type;
    definition.cost = no_cost;
    definition.run = look;
    definition.user = &session;
    assert_int_equal(prony_registry_create(&registry, NULL), PRONY_OK);
    assert_int_equal(prony_registry_add(registry, &definition, NULL), PRONY_OK);
    model_builder *m = mb_begin(16);
    mb_opset(m, "mine", 1);
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_node(m, "mine::Look", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "2");
    size_t size;
    const void *bytes = mb_finish(m, &size);
    prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
    options.registry = registry;
    assert_int_equal(prony_model_load_memory(&model, "m", bytes, size, &options, &error), PRONY_OK);
    assert_int_equal(prony_session_create(&session, model, NULL, &error), PRONY_OK);
    assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_OK);
    assert_int_equal(prony_session_run(session, &error), PRONY_CANCELLED);
    expect_text(&error, "(mine::Look): cancelled");
    prony_session_release(session);
    prony_model_release(model);
    prony_registry_release(registry);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_is_left_and_the_session_goes_on),
        cmocka_unit_test(one_operator_is_left),
        cmocka_unit_test(a_request_is_used_once),
        cmocka_unit_test(a_profile_reports_what_it_has),
        cmocka_unit_test(custom_operators_can_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
