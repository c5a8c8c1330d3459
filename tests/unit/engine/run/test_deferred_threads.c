/* Sessions of one model on separate threads, with changing shapes: the model makes, packs and releases weights
 * meanwhile. ThreadSanitizer runs this too. */
#include "failure_trace.h"
#include "prony.h"

#include "tests/support/weights_model.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 4, ROUNDS = 6, BATCHES = 3, SCORES = 4 * 96 };

typedef struct worker {
    prony_model *model;
    int first;
    float scores[BATCHES][BATCHES * SCORES];
    prony_status status;
    prony_error error;
} worker;

static prony_status run(prony_session *session, int64_t batch, float *scores, prony_error *error)
{
    int64_t *ids = weights_model_ids(batch, 3);
    float *image = weights_model_image(batch, 4);
    const prony_value *out = NULL;
    const prony_value in[] = {{.dtype = PRONY_INT64, .shape = {.rank = 2, .dim = {batch, 4}}, .data = ids},
                              {.dtype = PRONY_FLOAT32, .shape = {.rank = 4, .dim = {batch, 16, 6, 6}}, .data = image}};
    prony_status status = prony_session_set_input(session, "ids", &in[0], error);
    if (status == PRONY_OK) status = prony_session_set_input(session, "image", &in[1], error);
    if (status == PRONY_OK) status = prony_session_run(session, error);
    if (status == PRONY_OK) status = prony_session_output(session, 0, &out, error);
    if (status == PRONY_OK) memcpy(scores, out->data, (size_t)batch * SCORES * sizeof *scores);
    free(ids);
    free(image);
    return status;
}

static void *work(void *argument)
{
    worker *w = argument;
    for (int round = 0; round < ROUNDS && w->status == PRONY_OK; round++) {
        prony_session *session = NULL;
        prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
        options.intra_op_threads = 1 + round % 2;
        w->status = prony_session_create(&session, w->model, &options, &w->error);
        for (int k = 0; k < BATCHES && w->status == PRONY_OK; k++) {
            const int b = (w->first + round + k) % BATCHES;
            w->status = run(session, b + 1, w->scores[b], &w->error);
        }
        prony_session_release(session);
    }
    return NULL;
}

static void sessions_come_and_go(void **state)
{
    (void)state;
    size_t size;
    prony_error error = {0};
    prony_model *model = NULL;
    pthread_t thread[THREADS];
    static worker workers[THREADS];
    model_builder *m = weights_model(1);
    const void *bytes = mb_finish(m, &size);
    assert_int_equal(prony_model_load_memory(&model, "weights", bytes, size, NULL, &error), PRONY_OK);
    for (int i = 0; i < THREADS; i++) {
        SCENARIO(i);
        workers[i].model = model;
        workers[i].first = i;
        assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        SCENARIO(i);
        if (workers[i].status != PRONY_OK) fail_msg("%s", workers[i].error.message);
        assert_memory_equal(workers[0].scores, workers[i].scores, sizeof workers[0].scores);
    }
    prony_model_release(model);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_come_and_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
