/* Several threads, each with a session of its own, share one model; ThreadSanitizer runs this too. A second run of a
 * session during the first one is refused. */
#include "failure_trace.h"
#include "prony_operator.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 4, RUNS = 8 };

typedef struct worker {
    prony_model *model;
    float output[10];
    prony_status status;
    prony_error error;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    const prony_value *output = NULL;
    options.intra_op_threads = 2;
    w->status = prony_session_create(&session, w->model, &options, &w->error);
    if (w->status == PRONY_OK) w->status = prony_session_generate_inputs(session, 7, &w->error);
    for (int i = 0; i < RUNS && w->status == PRONY_OK; i++) w->status = prony_session_run(session, &w->error);
    if (w->status == PRONY_OK) w->status = prony_session_output(session, 0, &output, &w->error);
    if (w->status == PRONY_OK) memcpy(w->output, output->data, sizeof w->output);
    prony_session_release(session);
    return NULL;
}

static void sessions_share_a_model(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = NULL;
    pthread_t thread[THREADS];
    static worker workers[THREADS];
    assert_int_equal(prony_model_load(&model, PRN_SOURCE_DIR "/models/digits.onnx", NULL, &error), PRONY_OK);
    for (int i = 0; i < THREADS; i++) {
        SCENARIO(i);
        workers[i].model = model;
        assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        SCENARIO(i);
        if (workers[i].status != PRONY_OK) fail_msg("%s", workers[i].error.message);
        assert_memory_equal(workers[0].output, workers[i].output, sizeof workers[0].output);
    }
    prony_model_release(model);
}

static prony_status same_shape(const prony_context *context)
{
    context->outputs[0]->dtype = context->inputs[0]->dtype;
    context->outputs[0]->shape = context->inputs[0]->shape;
    return PRONY_OK;
}

static prony_status no_cost(const prony_context *context, prony_cost *cost)
{
    (void)context;
    (void)cost;
    return PRONY_OK;
}

/* A run from inside a run of the same session is a second concurrent run. */
static prony_status run_again(const prony_context *context)
{
    prony_status *inner = context->user;
    prony_session *session = *(prony_session **)(inner + 2);
    prony_error error = {0};
    *inner = prony_session_run(session, &error);
    memset(context->outputs[0]->data, 0,
           prony_dtype_bytes(PRONY_FLOAT32, prony_shape_numel(&context->outputs[0]->shape)));
    return PRONY_OK;
}

static void a_busy_session_refuses(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_registry *registry = NULL;
    prony_model *model = NULL;
    struct {
        prony_status inner, unused;
        prony_session *session;
    } shared = {PRONY_OK, PRONY_OK, NULL};
    prony_operator op = PRONY_OPERATOR_INIT;
    prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
    op.name = "Tanh";
    op.infer = same_shape;
    op.cost = no_cost;
    op.run = run_again;
    op.user = &shared;
    assert_int_equal(prony_registry_create(&registry, &error), PRONY_OK);
    assert_int_equal(prony_registry_add(registry, &op, &error), PRONY_OK);
    options.registry = registry;
    assert_int_equal(prony_model_load(&model, PRN_SOURCE_DIR "/tests/data/lenet5.onnx", &options, &error), PRONY_OK);
    assert_int_equal(prony_session_create(&shared.session, model, NULL, &error), PRONY_OK);
    assert_int_equal(prony_session_generate_inputs(shared.session, 0, &error), PRONY_OK);
    assert_int_equal(prony_session_run(shared.session, &error), PRONY_OK);
    assert_int_equal(shared.inner, PRONY_BUSY);
    prony_session_release(shared.session);
    prony_model_release(model);
    prony_registry_release(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_share_a_model),
                                       cmocka_unit_test(a_busy_session_refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
