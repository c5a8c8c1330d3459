/* prony_batcher: many threads, combined runs, errors of a single request, closing, and the sizes of batches.
 * ThreadSanitizer runs this too. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "engine/session/batcher.h"
#include "model_builder.h"
#include "prony.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LONG_NS INT64_C(60000000000) /* a window that no test waits for */

static prony_model *load(const char *path)
{
    prony_error error = {0};
    prony_model *model = NULL;
    if (prony_model_load(&model, path, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    return model;
}

/* The builder's bytes outlive the model. */
static prony_model *load_built(model_builder *m)
{
    prony_error error = {0};
    prony_model *model = NULL;
    size_t size;
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(&model, "built", bytes, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    return model;
}

static prony_batcher *make(prony_model *model, int sessions, int64_t max_batch, int64_t max_wait_ns, size_t max_queue)
{
    prony_error error = {0};
    prony_batcher *batcher = NULL;
    prony_session_options session = PRONY_SESSION_OPTIONS_INIT;
    session.intra_op_threads = sessions > 1 ? 1 : 2;
    prony_batcher_options options = {sizeof options, sessions, max_batch, max_wait_ns, max_queue};
    if (prony_batcher_create(&batcher, model, &session, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return batcher;
}

/* ---- many threads ---- */

enum { PIXELS = 64, CLASSES = 10, CLIENTS = 4, REQUESTS = 60 };

static void draw(float *pixels, int seed)
{
    uint32_t state = (uint32_t)seed * 2654435761u + 1;
    for (int i = 0; i < PIXELS; i++) {
        state = state * 1664525u + 1013904223u;
        pixels[i] = (float)(state >> 16) / 65536.0f;
    }
}

static prony_value image(float *pixels)
{
    return (prony_value){.dtype = PRONY_FLOAT32, .shape = {4, {1, 1, 8, 8}}, .data = pixels};
}

typedef struct client {
    prony_batcher *batcher;
    int first;
    float out[REQUESTS][CLASSES];
    prony_status status;
    prony_error error;
} client;

static void *ask(void *argument)
{
    client *c = argument;
    float pixels[PIXELS];
    for (int i = 0; i < REQUESTS && c->status == PRONY_OK; i++) {
        prony_value value = image(pixels), *output;
        const prony_value *inputs[] = {&value};
        draw(pixels, c->first + i);
        c->status = prony_batcher_run(c->batcher, inputs, 1, &output, 1, &c->error);
        if (c->status != PRONY_OK) break;
        if (output->shape.rank != 2 || output->shape.dim[0] != 1) c->status = PRONY_INTERNAL;
        memcpy(c->out[i], output->data, sizeof c->out[i]);
        prony_value_release(output);
    }
    return NULL;
}

static void alone(prony_model *model, int seed, float *out)
{
    static prony_session *session;
    prony_error error = {0};
    const prony_value *output;
    float pixels[PIXELS];
    prony_value value = image(pixels);
    if (!model) {
        prony_session_release(session);
        session = NULL;
        return;
    }
    draw(pixels, seed);
    if (!session) assert_int_equal(prony_session_create(&session, model, NULL, &error), PRONY_OK);
    assert_int_equal(prony_session_set_input(session, "image", &value, &error), PRONY_OK);
    assert_int_equal(prony_session_run(session, &error), PRONY_OK);
    assert_int_equal(prony_session_output(session, 0, &output, &error), PRONY_OK);
    memcpy(out, output->data, CLASSES * sizeof *out);
}

static void serve_clients(int sessions, int64_t max_batch, int64_t max_wait_ns)
{
    static client clients[CLIENTS];
    prony_model *model = load(PRN_SOURCE_DIR "/models/digits.onnx");
    prony_batcher *batcher = make(model, sessions, max_batch, max_wait_ns, 0);
    pthread_t thread[CLIENTS];
    float wanted[CLASSES];
    prony_batch_trial trial = prony_batcher_trial(batcher);
    assert_int_equal(trial.known, max_batch > 1);
    assert_true(trial.largest < 1e-5);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.batcher = batcher, .first = i * REQUESTS};
        assert_int_equal(pthread_create(&thread[i], NULL, ask, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i].status != PRONY_OK) fail_msg("%s", clients[i].error.message);
        for (int k = 0; k < REQUESTS; k++) {
            alone(model, i * REQUESTS + k, wanted);
            if (max_batch < 2 || trial.identical)
                assert_memory_equal(clients[i].out[k], wanted, sizeof wanted);
            else
                for (int j = 0; j < CLASSES; j++) assert_float_equal(clients[i].out[k][j], wanted[j], 1e-4);
        }
    }
    alone(NULL, 0, NULL);
    prony_batcher_release(batcher);
    prony_model_release(model);
}

static void every_thread_gets_its_own_results(void **state)
{
    (void)state;
    serve_clients(1, 8, 200000);
    serve_clients(3, 4, 0);
    serve_clients(2, 1, 0);
}

/* ---- what is combined ---- */

typedef struct record {
    pthread_mutex_t lock;
    pthread_cond_t change;
    int done, failed, cancelled;
    int64_t batches[64], indices[64];
    float first[64]; /* of the first output */
    prony_status status[64];
    bool times_hold;
} record;

typedef struct ticket {
    record *to;
    int number;
    int64_t index; /* the bytes of the request, and the value around them */
    prony_value value;
} ticket;

static void note(void *user, const prony_batch_result *r)
{
    ticket *t = user;
    record *to = t->to;
    pthread_mutex_lock(&to->lock);
    to->batches[t->number] = r->batch;
    to->indices[t->number] = r->index;
    to->status[t->number] = r->status;
    to->failed += r->status != PRONY_OK;
    to->cancelled += r->status == PRONY_CANCELLED;
    to->times_hold = to->times_hold && r->submitted_ns <= r->started_ns && r->started_ns <= r->finished_ns &&
                     r->finished_ns <= prony_now_ns() && (r->status == PRONY_OK) == (r->outputs != NULL) &&
                     (r->status == PRONY_OK) == (r->message[0] == '\0');
    if (r->status == PRONY_OK && r->outputs[0]->dtype == PRONY_FLOAT32)
        to->first[t->number] = *(const float *)r->outputs[0]->data;
    to->done++;
    pthread_cond_signal(&to->change);
    pthread_mutex_unlock(&to->lock);
}

static record new_record(void)
{
    return (record){.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER, .times_hold = true};
}

static void wait_for(record *r, int count)
{
    pthread_mutex_lock(&r->lock);
    while (r->done < count) pthread_cond_wait(&r->change, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

/* y = table[x], rows of two; fails for an index outside 0 … 3. */
static model_builder *lookup_model(const char *rows)
{
    static const float table[4][2] = {{0, 1}, {10, 11}, {20, 21}, {30, 31}};
    char out[16];
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_INT64, rows);
    mb_initializer(m, "table", PRONY_FLOAT32, "4,2", table);
    mb_node(m, "Gather", "table x", "y", "axis=0");
    snprintf(out, sizeof out, "%s,2", rows);
    mb_output(m, "y", PRONY_FLOAT32, out);
    return m;
}

static prony_status try_index(prony_batcher *batcher, ticket *t, record *to, int number, int64_t index,
                              prony_error *error)
{
    *t = (ticket){to, number, index, {.dtype = PRONY_INT64, .shape = {1, {1}}}};
    t->value.data = &t->index;
    const prony_value *inputs[] = {&t->value};
    return prony_batcher_submit(batcher, inputs, 1, note, t, error);
}

static void submit_index(prony_batcher *batcher, ticket *t, record *to, int number, int64_t index)
{
    prony_error error = {0};
    if (try_index(batcher, t, to, number, index, &error) != PRONY_OK) fail_msg("%s", error.message);
}

/* Four requests one by one; without the window the first would run alone. Then three that closing serves. */
static void fill_a_window_of(int64_t max_wait_ns)
{
    model_builder *m = lookup_model("N");
    prony_model *model = load_built(m);
    prony_batcher *batcher = make(model, 1, 4, max_wait_ns, 0);
    record r = new_record();
    ticket t[7];
    submit_index(batcher, &t[0], &r, 0, 0);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    for (int i = 1; i < 4; i++) submit_index(batcher, &t[i], &r, i, i % 4);
    wait_for(&r, 4);
    for (int i = 4; i < 7; i++) submit_index(batcher, &t[i], &r, i, 6 - i);
    prony_batcher_close(batcher, false); /* ends the window: what waits is served */
    prony_batcher_release(batcher);
    assert_int_equal(r.done, 7);
    assert_int_equal(r.failed, 0);
    assert_true(r.times_hold);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(r.batches[i], i < 4 ? 4 : i < 6 ? 2 : 1);
        assert_int_equal(r.indices[i], i < 4 ? i : i < 6 ? i - 4 : 0);
        assert_true(r.first[i] == (float)(10 * t[i].index));
    }
    prony_model_release(model);
    mb_free(m);
}

static void a_full_batch_waits_for_nobody_and_the_rest_goes_in_sizes(void **state)
{
    (void)state;
    fill_a_window_of(LONG_NS);
    fill_a_window_of(INT64_MAX); /* its end is beyond the clock's range */
    fill_a_window_of(INT64_MAX - prony_now_ns());
}

static void an_error_meets_its_own_request_alone(void **state)
{
    (void)state;
    model_builder *m = lookup_model("N");
    prony_model *model = load_built(m);
    prony_batcher *batcher = make(model, 1, 4, LONG_NS, 0);
    record r = new_record();
    ticket t[4];
    for (int i = 0; i < 4; i++) submit_index(batcher, &t[i], &r, i, i == 2 ? 9 : i);
    wait_for(&r, 4);
    for (int i = 0; i < 4; i++) {
        SCENARIO(i);
        assert_int_equal(r.status[i], i == 2 ? PRONY_OUT_OF_RANGE : PRONY_OK);
        assert_int_equal(r.batches[i], 1);
        assert_int_equal(r.indices[i], 0);
        if (i != 2) assert_true(r.first[i] == (float)(10 * i));
    }
    prony_value value = {.dtype = PRONY_INT64, .shape = {1, {1}}, .data = &(int64_t){-7}}, *output;
    const prony_value *inputs[] = {&value};
    prony_error error = {0};
    for (int i = 0; i < 3; i++) submit_index(batcher, &t[i], &r, i, i); /* with the fourth, a batch */
    assert_int_equal(prony_batcher_run(batcher, inputs, 1, &output, 1, &error), PRONY_OUT_OF_RANGE);
    assert_null(output);
    assert_non_null(strstr(error.message, "built"));
    prony_batcher_release(batcher);
    assert_int_equal(r.done, 7);
    assert_int_equal(r.failed, 1);
    prony_model_release(model);
    mb_free(m);
}

static void closing_serves_or_drops_what_waits(void **state)
{
    (void)state;
    prony_error error = {0};
    model_builder *m = lookup_model("N");
    prony_model *model = load_built(m);
    prony_batcher *batcher = make(model, 2, 8, LONG_NS, 3);
    record r = new_record();
    ticket t[4];
    for (int i = 0; i < 3; i++) submit_index(batcher, &t[i], &r, i, i);
    assert_int_equal(try_index(batcher, &t[3], &r, 3, 0, &error), PRONY_LIMIT); /* the queue is full */
    assert_non_null(strstr(error.message, "3 requests are waiting"));
    prony_batcher_close(batcher, true);
    assert_int_equal(r.done, 3);
    assert_int_equal(r.cancelled, 3);
    assert_true(r.times_hold);
    assert_int_equal(try_index(batcher, &t[3], &r, 3, 0, &error), PRONY_CANCELLED);
    prony_batcher_close(batcher, false);
    prony_batcher_release(batcher);
    assert_int_equal(r.done, 3);
    prony_batcher_release(NULL);
    prony_model_release(model);
    mb_free(m);
}

static void submit_until(prony_batcher *batcher, ticket *t, record *to, int number, int64_t deadline_ns)
{
    prony_error error = {0};
    *t = (ticket){to, number, number, {.dtype = PRONY_INT64, .shape = {1, {1}}}};
    t->value.data = &t->index;
    const prony_value *inputs[] = {&t->value};
    if (prony_batcher_submit_until(batcher, inputs, 1, deadline_ns, note, t, &error) != PRONY_OK)
        fail_msg("%s", error.message);
}

/* The window of a request without a deadline ends for one that comes later with a deadline, or that waits behind it. */
static void every_deadline_shortens_the_window(void **state)
{
    (void)state;
    model_builder *m = lookup_model("N");
    prony_model *model = load_built(m);
    for (int later = 0; later < 2; later++) {
        SCENARIO(later);
        prony_batcher *batcher = make(model, 1, 4, LONG_NS, 0);
        record r = new_record();
        ticket t[2];
        int64_t begin_ns = prony_now_ns(), deadline_ns = begin_ns + LONG_NS / 30;
        submit_until(batcher, &t[0], &r, 0, 0);
        if (later) nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* the worker collects by then */
        submit_until(batcher, &t[1], &r, 1, deadline_ns);
        wait_for(&r, 2);
        assert_true(prony_now_ns() - begin_ns < LONG_NS / 4);
        assert_int_equal(r.failed, 0);
        assert_int_equal(r.batches[0], 2);
        prony_batcher_release(batcher);
    }
    prony_model_release(model);
    mb_free(m);
}

/* Keeps the worker until another request is done. */
static void note_slowly(void *user, const prony_batch_result *r)
{
    ticket *t = user;
    while (prony_batcher_waiting(t->value.data) == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    pthread_mutex_lock(&t->to->lock);
    while (t->to->done < 1) pthread_cond_wait(&t->to->change, &t->to->lock);
    t->to->failed += r->status != PRONY_OK;
    pthread_mutex_unlock(&t->to->lock);
}

/* A full queue whose request is past its deadline takes another one in its place. */
static void expired_requests_make_room(void **state)
{
    (void)state;
    prony_error error = {0};
    model_builder *m = lookup_model("N");
    prony_model *model = load_built(m);
    prony_batcher *batcher = make(model, 1, 1, 0, 1);
    record r = new_record();
    ticket t[2], blocker = {.to = &r, .value = {.data = batcher}};
    prony_value value = {.dtype = PRONY_INT64, .shape = {1, {1}}, .data = &(int64_t){0}};
    const prony_value *inputs[] = {&value};
    assert_int_equal(prony_batcher_submit(batcher, inputs, 1, note_slowly, &blocker, &error), PRONY_OK);
    while (prony_batcher_waiting(batcher)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    submit_until(batcher, &t[0], &r, 0, prony_now_ns() - 1); /* the worker is still with the blocker */
    assert_int_equal(prony_batcher_waiting(batcher), 1);
    submit_until(batcher, &t[1], &r, 1, 0);
    prony_batcher_release(batcher);
    assert_int_equal(r.done, 2);
    assert_int_equal(r.status[0], PRONY_CANCELLED);
    assert_int_equal(r.status[1], PRONY_OK);
    prony_model_release(model);
    mb_free(m);
}

/* A request whose deadline passes while it waits does not run; the others do. */
static void a_request_past_its_deadline_does_not_run(void **state)
{
    (void)state;
    model_builder *m = lookup_model("N");
    prony_model *model = load_built(m);
    prony_batcher *batcher = make(model, 1, 4, LONG_NS, 0);
    record r = new_record();
    ticket t[4];
    assert_int_equal(prony_batcher_waiting(batcher), 0);
    for (int i = 0; i < 3; i++) {
        SCENARIO(i);
        int64_t deadline_ns = i == 1 ? prony_now_ns() + LONG_NS : i == 2 ? prony_now_ns() - 1 : 0;
        submit_until(batcher, &t[i], &r, i, deadline_ns);
    }
    wait_for(&r, 3); /* the passed deadline of the last request ends the window of all */
    submit_index(batcher, &t[3], &r, 3, 3);
    prony_batcher_close(batcher, false);
    wait_for(&r, 4);
    assert_int_equal(r.cancelled, 1);
    assert_int_equal(r.failed, 1);
    assert_int_equal(r.status[2], PRONY_CANCELLED);
    assert_true(r.first[0] == 0 && r.first[1] == 10 && r.first[3] == 30);
    assert_int_equal(r.batches[0], 2);
    assert_int_equal(prony_batcher_waiting(batcher), 0);
    prony_batcher_release(batcher);
    prony_model_release(model);
    mb_free(m);
}

/* ---- shapes ---- */

static void only_what_is_alike_is_combined(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "N,L");
    mb_node(m, "Neg", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N,L");
    prony_model *model = load_built(m);
    prony_batcher *batcher = make(model, 1, 4, LONG_NS, 0);
    record r = new_record();
    static float data[4] = {1, 2, 3, 4};
    prony_value values[5];
    ticket t[5];
    static const int64_t shapes[5][2] = {{1, 3}, {1, 3}, {1, 2}, {2, 2}, {1, 2}};
    for (int i = 0; i < 5; i++) {
        SCENARIO(i);
        prony_error error = {0};
        t[i] = (ticket){.to = &r, .number = i};
        values[i] = (prony_value){.dtype = PRONY_FLOAT32, .shape = {2, {shapes[i][0], shapes[i][1]}}, .data = data};
        const prony_value *inputs[] = {&values[i]};
        assert_int_equal(prony_batcher_submit(batcher, inputs, 1, note, &t[i], &error), PRONY_OK);
    }
    prony_batcher_release(batcher);
    assert_int_equal(r.done - r.failed, 5);
    for (int i = 0; i < 5; i++) {
        SCENARIO(i);
        assert_int_equal(r.batches[i], i < 2 ? 2 : 1);
        assert_true(r.first[i] == -1.0f);
    }
    prony_model_release(model);
    mb_free(m);
}

static void sizes_of_batches_fit_the_plan_cache(void **state)
{
    (void)state;
    static const struct {
        int64_t max;
        int count;
        int64_t sizes[4];
    } rows[] = {{0, 1, {1}},
                {1, 1, {1}},
                {2, 2, {1, 2}},
                {3, 3, {1, 2, 3}},
                {4, 3, {1, 2, 4}},
                {8, 4, {1, 2, 4, 8}},
                {16, 4, {1, 2, 8, 16}},
                {32, 4, {1, 4, 8, 32}},
                {6, 4, {1, 2, 4, 6}},
                {64, 4, {1, 4, 16, 64}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCENARIO(i);
        int64_t sizes[PRN_BATCH_SIZES];
        assert_int_equal(prn_batch_sizes(sizes, rows[i].max), rows[i].count);
        assert_memory_equal(sizes, rows[i].sizes, (size_t)rows[i].count * sizeof *sizes);
    }
}

static void copy_row(void *user, const prony_batch_result *r)
{
    ticket *t = user;
    float *to = t->value.data; /* the request's own pixels make room for its result */
    if (r->status == PRONY_OK && r->batch == 4) memcpy(to, r->outputs[0]->data, CLASSES * sizeof *to);
    note(user, r);
}

/* The results of one batch of four images. */
static void run_four(prony_batcher *batcher, const int seeds[4], float out[4][PIXELS])
{
    prony_error error = {0};
    record r = new_record();
    ticket t[4];
    for (int i = 0; i < 4; i++) {
        draw(out[i], seeds[i]);
        t[i] = (ticket){.to = &r, .number = i, .value = image(out[i])};
        const prony_value *inputs[] = {&t[i].value};
        assert_int_equal(prony_batcher_submit(batcher, inputs, 1, copy_row, &t[i], &error), PRONY_OK);
    }
    wait_for(&r, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(r.batches[i], 4);
}

static void bits_do_not_depend_on_the_samples_beside(void **state)
{
    (void)state;
    prony_model *model = load(PRN_SOURCE_DIR "/models/digits.onnx");
    prony_batcher *batcher = make(model, 1, 4, LONG_NS, 0);
    float first[4][PIXELS], second[4][PIXELS];
    run_four(batcher, (const int[]){1, 2, 3, 4}, first);
    run_four(batcher, (const int[]){5, 2, 6, 4}, second);
    assert_memory_not_equal(first[0], second[0], CLASSES * sizeof first[0][0]);
    assert_memory_equal(first[1], second[1], CLASSES * sizeof first[0][0]);
    assert_memory_equal(first[3], second[3], CLASSES * sizeof first[0][0]);
    prony_batcher_release(batcher);
    prony_model_release(model);
}

/* ---- refusals ---- */

static void refuse(model_builder *m, int64_t max_batch, prony_status status, const char *why)
{
    prony_error error = {0};
    prony_model *model = load_built(m);
    prony_batcher *batcher = NULL;
    prony_batcher_options options = PRONY_BATCHER_OPTIONS_INIT;
    options.max_batch = max_batch;
    assert_int_equal(prony_batcher_create(&batcher, model, NULL, &options, &error), status);
    if (!strstr(error.message, why)) fail_msg("%s", error.message);
    assert_null(batcher);
    prony_model_release(model);
    mb_free(m);
}

static void models_that_cannot_be_combined_are_refused(void **state)
{
    (void)state;
    refuse(lookup_model("1"), 8, PRONY_INVALID_ARGUMENT, "input 'x' has a first dimension fixed to 1");
    refuse(lookup_model("N"), -1, PRONY_INVALID_ARGUMENT, "-1");
    refuse(lookup_model("N"), 65537, PRONY_INVALID_ARGUMENT, "65537");
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "");
    mb_node(m, "Neg", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "");
    refuse(m, 2, PRONY_INVALID_ARGUMENT, "has no dimension");
    m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "N,3");
    mb_node(m, "Transpose", "x", "y", "perm=[1,0]");
    mb_output(m, "y", PRONY_FLOAT32, "M,K");
    refuse(m, 2, PRONY_SHAPE_MISMATCH, "not a row per sample");
    m = mb_begin(13);
    mb_container(m, false, "x", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_node(m, "ConcatFromSequence", "x", "y", "axis=0");
    mb_output(m, "y", PRONY_FLOAT32, "N");
    refuse(m, 2, PRONY_INVALID_ARGUMENT, "is not a numeric tensor");
}

static void a_model_that_mixes_samples_is_told_of(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "N,3");
    mb_node(m, "Softmax", "x", "y", "axis=0");
    mb_output(m, "y", PRONY_FLOAT32, "N,3");
    prony_model *model = load_built(m);
    prony_batcher *batcher = make(model, 1, 2, 0, 0);
    prony_batch_trial trial = prony_batcher_trial(batcher);
    assert_true(trial.known && !trial.identical && trial.largest > 0.1);
    assert_int_equal(trial.sizes_count, 2);
    prony_batcher_release(batcher);
    prony_model_release(model);
    mb_free(m);
}

static void requests_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    prony_error error = {0};
    model_builder *m = lookup_model("1");
    prony_model *model = load_built(m);
    prony_batcher *batcher = make(model, 1, 1, 0, 0);
    record r = new_record();
    ticket t = {.to = &r};
    int64_t data[2] = {1, 2};
    prony_value value = {.dtype = PRONY_INT64, .shape = {1, {2}}, .data = data}, *output;
    const prony_value *inputs[] = {&value, NULL};
    assert_int_equal(prony_batcher_submit(batcher, inputs, 1, note, &t, &error), PRONY_SHAPE_MISMATCH);
    assert_int_equal(prony_batcher_submit(batcher, inputs, 2, note, &t, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_batcher_submit(batcher, inputs + 1, 1, note, &t, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_batcher_submit(batcher, inputs, 1, NULL, &t, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_batcher_run(batcher, inputs, 1, &output, 2, &error), PRONY_INVALID_ARGUMENT);
    value.shape.dim[0] = 1;
    value.data = NULL;
    assert_int_equal(prony_batcher_submit(batcher, inputs, 1, note, &t, &error), PRONY_INVALID_ARGUMENT);
    value.data = data;
    assert_int_equal(prony_batcher_run(batcher, inputs, 1, &output, 1, &error), PRONY_OK);
    assert_true(((float *)output->data)[1] == 11);
    prony_value_release(output);
    prony_batcher_release(batcher);
    assert_int_equal(r.done, 0);
    prony_model_release(model);
    mb_free(m);
}

/* ---- a done function that submits ---- */

typedef struct chain {
    prony_batcher *batcher;
    record r;
    int64_t index;
    prony_value value;
    int left;
} chain;

static void go_on(void *user, const prony_batch_result *result)
{
    chain *c = user;
    prony_error error = {0};
    const prony_value *inputs[] = {&c->value};
    bool over = result->status != PRONY_OK || --c->left == 0 ||
                prony_batcher_submit(c->batcher, inputs, 1, go_on, c, &error) != PRONY_OK;
    pthread_mutex_lock(&c->r.lock);
    c->r.failed += result->status != PRONY_OK || error.status != PRONY_OK;
    c->r.done += over;
    pthread_cond_signal(&c->r.change);
    pthread_mutex_unlock(&c->r.lock);
}

static void done_functions_may_submit(void **state)
{
    (void)state;
    prony_error error = {0};
    model_builder *m = lookup_model("N");
    prony_model *model = load_built(m);
    chain c = {.batcher = make(model, 2, 4, 0, 0), .r = new_record(), .index = 3, .left = 500};
    c.value = (prony_value){.dtype = PRONY_INT64, .shape = {1, {1}}, .data = &c.index};
    const prony_value *inputs[] = {&c.value};
    assert_int_equal(prony_batcher_submit(c.batcher, inputs, 1, go_on, &c, &error), PRONY_OK);
    wait_for(&c.r, 1);
    prony_batcher_release(c.batcher);
    assert_int_equal(c.left, 0);
    assert_int_equal(c.r.failed, 0);
    prony_model_release(model);
    mb_free(m);
}

/* ---- memory that runs out ---- */

static void allocations_may_fail(void **state)
{
    (void)state;
    model_builder *m = lookup_model("N");
    prony_model *model = load_built(m);
    uint64_t n = 1;
    for (;; n++) {
        prony_error error = {0};
        prony_batcher *batcher = NULL;
        prony_batcher_options options = {sizeof options, 1, 2, 0, 0};
        prony_value value = {.dtype = PRONY_INT64, .shape = {1, {1}}, .data = &(int64_t){2}}, *output;
        const prony_value *inputs[] = {&value};
        prn_alloc_fail_at(n);
        prony_status status = prony_batcher_create(&batcher, model, NULL, &options, &error);
        if (status == PRONY_OK) status = prony_batcher_run(batcher, inputs, 1, &output, 1, &error);
        if (status == PRONY_OK) prony_value_release(output);
        prony_batcher_release(status == PRONY_OK || batcher ? batcher : NULL);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY) fail_msg("allocation %d: %s", (int)n, error.message);
        if (!failed) break;
    }
    assert_true(n > 20);
    prony_model_release(model);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_gets_its_own_results),
        cmocka_unit_test(a_full_batch_waits_for_nobody_and_the_rest_goes_in_sizes),
        cmocka_unit_test(an_error_meets_its_own_request_alone),
        cmocka_unit_test(closing_serves_or_drops_what_waits),
        cmocka_unit_test(a_request_past_its_deadline_does_not_run),
        cmocka_unit_test(every_deadline_shortens_the_window),
        cmocka_unit_test(expired_requests_make_room),
        cmocka_unit_test(only_what_is_alike_is_combined),
        cmocka_unit_test(bits_do_not_depend_on_the_samples_beside),
        cmocka_unit_test(sizes_of_batches_fit_the_plan_cache),
        cmocka_unit_test(models_that_cannot_be_combined_are_refused),
        cmocka_unit_test(a_model_that_mixes_samples_is_told_of),
        cmocka_unit_test(requests_that_do_not_fit_are_refused),
        cmocka_unit_test(done_functions_may_submit),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
