/* prony_batcher: one queue, a few workers. At any time one idle worker is the collector. It waits for a full batch or
 * for the end of a window, takes the requests, passes the role on and serves them. The others sleep
 * until there are requests but no collector.
 *
 * `lock` guards all fields that change after the workers have started. */
#include "engine/session/batcher.h"
#include "base/os/clock.h"
#include "base/option_struct.h"
#include "loaders/tensors/tensor_file.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define PAST_DEADLINE "the request's deadline passed while it waited"

typedef struct worker {
    prony_batcher *batcher;
    prn_server server;
    pthread_t thread;
    bool started;
    prony_batch_trial trial;
    prony_status status; /* of its start */
    prony_error error;
} worker;

struct prony_batcher {
    prony_model *model;
    prony_batcher_options options;
    int64_t sizes[PRN_BATCH_SIZES];
    int size_count;
    size_t input_count;
    worker *workers;
    int worker_count;
    prony_batch_trial trial;

    pthread_mutex_t lock;
    pthread_cond_t work;          /* requests without a collector; or the end */
    pthread_cond_t window;        /* of the collector: the queue has grown to a full batch; or the end */
    pthread_cond_t ready;         /* a worker has made its first runs */
    prn_request *first, **last;   /* the queue, oldest first */
    size_t queued, with_deadline; /* with_deadline: those of the queue */
    int ready_count;
    int64_t window_end_ns; /* while collecting: the earliest end of a window of the queue */
    bool collecting, closed;
};

/* ---- the queue, under its lock ---- */

/* Number of requests for the next run: the largest available size, of requests like the oldest. */
static int64_t next_size(const prony_batcher *b)
{
    int64_t alike = 0, max = b->sizes[b->size_count - 1];
    for (const prn_request *r = b->first; r && alike < max; r = r->next) {
        if (alike > 0 && !prn_requests_alike(b->first, r, b->input_count)) break;
        alike++;
    }
    return prn_batch_next_size(b->sizes, b->size_count, alike);
}

static prn_request *batcher_take(prony_batcher *b, int64_t count)
{
    prn_request *taken = b->first, *end = taken;
    for (int64_t i = 1; i < count; i++) end = end->next;
    b->first = end->next;
    end->next = NULL;
    if (!b->first) b->last = &b->first;
    b->queued -= (size_t)count;
    for (const prn_request *r = taken; r; r = r->next) b->with_deadline -= r->deadline_ns != 0;
    return taken;
}

/* Takes the requests whose deadline has passed out of the queue. */
static prn_request *take_expired(prony_batcher *b)
{
    prn_request *expired = NULL, **end = &expired;
    if (!b->with_deadline) return NULL;
    int64_t now = prn_now_ns();
    for (prn_request **at = &b->first; *at;) {
        prn_request *r = *at;
        if (!r->deadline_ns || r->deadline_ns > now) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        if (!*at) b->last = at;
        r->next = NULL;
        *end = r;
        end = &r->next;
        b->queued--;
        b->with_deadline--;
    }
    return expired;
}

static int64_t window_end(const prony_batcher *b, const prn_request *r)
{
    return prn_batch_window_end(r->submitted_ns, b->options.max_wait_ns, r->deadline_ns);
}

/* Waits for a full batch, or for the earliest end of a window: the oldest request's, or that of a request whose
 * deadline is near. `enqueue` moves the end forward meanwhile. */
static void await_window(prony_batcher *b)
{
    int64_t max = b->sizes[b->size_count - 1];
    b->window_end_ns = window_end(b, b->first);
    for (const prn_request *r = b->with_deadline ? b->first->next : NULL; r; r = r->next)
        if (window_end(b, r) < b->window_end_ns) b->window_end_ns = window_end(b, r);
    while (!b->closed && (int64_t)b->queued < max && prn_now_ns() < b->window_end_ns) {
        struct timespec end = {b->window_end_ns / 1000000000, b->window_end_ns % 1000000000};
        pthread_cond_timedwait(&b->window, &b->lock, &end);
    }
}

/* The next requests for the calling worker, and in *expired those whose deadline has passed; both NULL: the batcher
 * ends, or another worker took them. */
static prn_request *batcher_collect(prony_batcher *b, int64_t *count, prn_request **expired)
{
    pthread_mutex_lock(&b->lock);
    while (b->collecting || (!b->first && !b->closed)) pthread_cond_wait(&b->work, &b->lock);
    prn_request *taken = NULL;
    if (b->first) {
        b->collecting = true;
        if (b->options.max_wait_ns > 0) await_window(b);
        b->collecting = false;
        *expired = take_expired(b);
        *count = b->first ? next_size(b) : 0;
        if (*count) taken = batcher_take(b, *count);
    }
    if (b->first || b->closed) pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->lock);
    return taken;
}

/* ---- workers ---- */

static bool at_end(prony_batcher *b)
{
    pthread_mutex_lock(&b->lock);
    bool end = b->closed && !b->first;
    pthread_mutex_unlock(&b->lock);
    return end;
}

static void cancel(prn_request *requests, const char *message)
{
    while (requests) {
        prn_request *next = requests->next;
        int64_t now = prn_now_ns();
        prony_batch_result result = {.status = PRONY_CANCELLED,
                                     .message = message,
                                     .submitted_ns = requests->submitted_ns,
                                     .started_ns = now,
                                     .finished_ns = now};
        requests->done(requests->user, &result);
        prn_free(requests);
        requests = next;
    }
}

static void *batcher_work(void *argument)
{
    worker *w = argument;
    prony_batcher *b = w->batcher;
    prn_pin pin;
    prn_pin_begin(&pin, w->server.session->affinity);
    w->status = prn_server_try(&w->server, b->sizes, b->size_count, &w->trial, &w->error);
    pthread_mutex_lock(&b->lock);
    b->ready_count++;
    pthread_cond_signal(&b->ready);
    pthread_mutex_unlock(&b->lock);
    while (!at_end(b)) {
        int64_t count = 0;
        prn_request *expired = NULL, *requests = batcher_collect(b, &count, &expired);
        cancel(expired, PAST_DEADLINE);
        if (requests) prn_server_serve(&w->server, requests, count);
    }
    prn_pin_end(&pin);
    return NULL;
}

/* Creates all sessions before the first thread, then waits until every worker has made its trial. The first failure is
 * returned. */
static prony_status batcher_start(prony_batcher *b, const prony_session_options *session, prony_error *error)
{
    int sessions = b->options.sessions;
    b->workers = prn_calloc((size_t)sessions, sizeof *b->workers);
    if (!b->workers) return prn_no_memory(error);
    b->worker_count = sessions;
    for (int i = 0; i < sessions; i++) {
        b->workers[i].batcher = b;
        PRN_TRY(prn_server_create(&b->workers[i].server, b->model, session, i, sessions, error));
    }
    for (int i = 0; i < sessions; i++) {
        int code = pthread_create(&b->workers[i].thread, NULL, batcher_work, &b->workers[i]);
        if (code != 0) return prn_fail(error, PRONY_LIMIT, "thread %d of %d: %s", i + 1, sessions, strerror(code));
        b->workers[i].started = true;
    }
    pthread_mutex_lock(&b->lock);
    while (b->ready_count < sessions) pthread_cond_wait(&b->ready, &b->lock);
    pthread_mutex_unlock(&b->lock);
    b->trial = b->workers[0].trial;
    for (int i = 0; i < b->size_count; i++) b->trial.sizes[i] = b->sizes[i];
    b->trial.sizes_count = b->size_count;
    b->trial.threads = b->workers[0].server.session->threads;
    for (int i = 0; i < sessions; i++) {
        if (b->workers[i].status == PRONY_OK) continue;
        if (error) *error = b->workers[i].error;
        return b->workers[i].status;
    }
    return PRONY_OK;
}

/* ---- public ---- */

static prony_status batcher_check_options(const prony_batcher_options *o, prony_error *error)
{
    if (o->sessions < 0 || o->sessions > PRN_BATCH_MOST_SESSIONS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "batcher options: %d sessions; wanted 1 to %d", o->sessions,
                        PRN_BATCH_MOST_SESSIONS);
    if (o->max_batch < 0 || o->max_batch > PRN_BATCH_MOST || o->max_wait_ns < 0)
        return prn_fail(
            error, PRONY_INVALID_ARGUMENT,
            "batcher options: batches of up to %lld (wanted 1 to %d), %lld ns of waiting (wanted 0 or more)",
            (long long)o->max_batch, PRN_BATCH_MOST, (long long)o->max_wait_ns);
    return PRONY_OK;
}

static bool make_conditions(prony_batcher *b)
{
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&b->lock, NULL) != 0) return false;
    if (pthread_condattr_init(&attributes) != 0) return pthread_mutex_destroy(&b->lock), false;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&b->work, NULL); /* these calls cannot fail on the supported systems */
    pthread_cond_init(&b->window, &attributes);
    pthread_cond_init(&b->ready, NULL);
    pthread_condattr_destroy(&attributes);
    return true;
}

/* Once the conditions exist, prony_batcher_release undoes a failed start. */
prony_status prony_batcher_create(prony_batcher **out, prony_model *model, const prony_session_options *session,
                                  const prony_batcher_options *options, prony_error *error)
{
    prony_session_options each = PRONY_SESSION_OPTIONS_INIT;
    prony_batcher_options own = PRONY_BATCHER_OPTIONS_INIT;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_batcher_create: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "batcher options", error));
    PRN_TRY(prn_options_read(&each, sizeof each, session, "session options", error));
    options = &own;
    PRN_TRY(batcher_check_options(options, error));
    if (options->max_batch > 1) PRN_TRY(prn_batch_check_model(model, options->max_batch, error));
    prony_batcher *b = prn_calloc(1, sizeof *b);
    if (!b) return prn_no_memory(error);
    b->model = model;
    b->options = *options;
    if (b->options.sessions == 0) b->options.sessions = 1;
    if (b->options.max_queue == 0) b->options.max_queue = PRN_BATCH_DEFAULT_QUEUE;
    b->size_count = prn_batch_sizes(b->sizes, options->max_batch);
    b->input_count = prony_model_input_count(model);
    b->last = &b->first;
    if (!make_conditions(b)) {
        prn_free(b);
        return prn_no_memory(error);
    }
    prn_model_retain(model);
    prony_status status = batcher_start(b, &each, error);
    if (status == PRONY_OK)
        *out = b;
    else
        prony_batcher_release(b);
    return status;
}

void prony_batcher_close(prony_batcher *b, bool drop)
{
    prn_request *dropped = NULL;
    if (!b) return;
    pthread_mutex_lock(&b->lock);
    b->closed = true;
    if (drop) {
        dropped = b->first;
        b->first = NULL;
        b->last = &b->first;
        b->queued = b->with_deadline = 0;
    }
    pthread_cond_broadcast(&b->work);
    pthread_cond_broadcast(&b->window);
    pthread_mutex_unlock(&b->lock);
    cancel(dropped, "the batcher was closed before this request was served");
}

void prony_batcher_release(prony_batcher *b)
{
    if (!b) return;
    prony_batcher_close(b, false);
    for (int i = 0; i < b->worker_count; i++)
        if (b->workers[i].started) pthread_join(b->workers[i].thread, NULL);
    for (int i = 0; i < b->worker_count; i++) prn_server_release(&b->workers[i].server);
    pthread_cond_destroy(&b->ready);
    pthread_cond_destroy(&b->window);
    pthread_cond_destroy(&b->work);
    pthread_mutex_destroy(&b->lock);
    prn_free(b->workers);
    prony_model_release(b->model);
    prn_free(b);
}

prony_batch_trial prony_batcher_trial(const prony_batcher *b)
{
    return b->trial;
}

/* Checks that the model accepts these values; *alone: they cannot be combined with others. */
static prony_status accept(const prony_batcher *b, const prony_value *const *inputs, bool *alone, prony_error *error)
{
    const prn_model_file *file = b->model->file;
    prn_dims dims = {0};
    prony_status status = PRONY_OK;
    *alone = false;
    for (size_t i = 0; i < b->input_count && status == PRONY_OK; i++) {
        const prony_value *value = inputs[i];
        if (!value) {
            status = prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: input '%s' is NULL", file->name,
                              file->graph.inputs[i].name);
            break;
        }
        status = prn_port_accept(&file->graph.inputs[i], value, &dims, file->name, error);
        bool tensor = value->kind == PRONY_TENSOR && value->dtype != PRONY_STRING;
        if (status == PRONY_OK && tensor && !value->data && prony_shape_numel(&value->shape) != 0)
            status = prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: input '%s' has no data", file->name,
                              file->graph.inputs[i].name);
        *alone = *alone || !tensor || value->shape.rank < 1 || value->shape.dim[0] != 1;
    }
    prn_dims_free(&dims);
    return status;
}

/* Puts the request behind the others, wakes a worker for it, and moves the collector's end forward if the request's own
 * window ends earlier. Requests past their deadline make room in a full queue. */
static prony_status enqueue(prony_batcher *b, prn_request *request, prony_error *error)
{
    prn_request *expired = NULL;
    pthread_mutex_lock(&b->lock);
    if (!b->closed && b->queued >= b->options.max_queue) expired = take_expired(b);
    bool closed = b->closed, full = b->queued >= b->options.max_queue;
    if (!closed && !full) {
        request->submitted_ns = prn_now_ns();
        *b->last = request;
        b->last = &request->next;
        b->queued++;
        b->with_deadline += request->deadline_ns != 0;
        bool sooner = b->collecting && window_end(b, request) < b->window_end_ns;
        if (sooner) b->window_end_ns = window_end(b, request);
        if (!b->collecting)
            pthread_cond_signal(&b->work);
        else if (sooner || (int64_t)b->queued >= b->sizes[b->size_count - 1])
            pthread_cond_signal(&b->window);
    }
    pthread_mutex_unlock(&b->lock);
    cancel(expired, PAST_DEADLINE);
    if (closed) return prn_fail(error, PRONY_CANCELLED, "%s: the batcher is closed", b->model->file->name);
    if (full)
        return prn_fail(error, PRONY_LIMIT, "%s: %zu requests are waiting already", b->model->file->name,
                        b->options.max_queue);
    return PRONY_OK;
}

prony_status prony_batcher_submit(prony_batcher *b, const prony_value *const *inputs, size_t count,
                                  prony_batch_done done, void *user, prony_error *error)
{
    return prony_batcher_submit_until(b, inputs, count, 0, done, user, error);
}

size_t prony_batcher_waiting(prony_batcher *b)
{
    if (!b) return 0;
    pthread_mutex_lock(&b->lock);
    size_t waiting = b->queued;
    pthread_mutex_unlock(&b->lock);
    return waiting;
}

prony_session *prn_batcher_session(const prony_batcher *b, int index)
{
    return index < b->worker_count ? b->workers[index].server.session : NULL;
}

prony_status prony_batcher_submit_until(prony_batcher *b, const prony_value *const *inputs, size_t count,
                                        int64_t deadline_ns, prony_batch_done done, void *user, prony_error *error)
{
    bool alone;
    if (!b || (!inputs && count) || !done)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_batcher_submit: an argument is NULL");
    if (count != b->input_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: %zu inputs were given, but the model has %zu",
                        b->model->file->name, count, b->input_count);
    PRN_TRY(accept(b, inputs, &alone, error));
    prn_request *request = prn_calloc(1, sizeof *request + count * sizeof *request->inputs);
    if (!request) return prn_no_memory(error);
    request->done = done;
    request->user = user;
    request->alone = alone;
    request->deadline_ns = deadline_ns > 0 ? deadline_ns : 0;
    if (count) memcpy(request->inputs, inputs, count * sizeof *inputs);
    prony_status status = enqueue(b, request, error);
    if (status != PRONY_OK) prn_free(request);
    return status;
}

/* ---- submit and wait ---- */

typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
    prony_value **outputs;
    size_t output_count;
    prony_status status;
    prony_error error;
} waiter;

static prony_status copy_outputs(waiter *w, const prony_batch_result *result)
{
    for (size_t i = 0; i < w->output_count && i < result->output_count; i++) {
        w->outputs[i] = prn_calloc(1, sizeof **w->outputs);
        if (!w->outputs[i]) return prn_no_memory(&w->error);
        prony_status status = prn_value_copy(w->outputs[i], result->outputs[i], &w->error);
        if (status == PRONY_OK) continue;
        prn_free(w->outputs[i]);
        w->outputs[i] = NULL;
        return status;
    }
    return PRONY_OK;
}

static void wake(void *user, const prony_batch_result *result)
{
    waiter *w = user;
    w->status = result->status == PRONY_OK ? copy_outputs(w, result)
                                           : prn_fail(&w->error, result->status, "%s", result->message);
    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->over);
    pthread_mutex_unlock(&w->lock);
}

/* Submits the request and waits for it. After a failure all outputs are NULL. */
prony_status prony_batcher_run(prony_batcher *b, const prony_value *const *inputs, size_t count, prony_value **outputs,
                               size_t output_count, prony_error *error)
{
    if (!b || (!outputs && output_count))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_batcher_run: an argument is NULL");
    if (output_count != prony_model_output_count(b->model))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: room for %zu outputs was given, but the model has %zu",
                        b->model->file->name, output_count, prony_model_output_count(b->model));
    waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER,
                .over = PTHREAD_COND_INITIALIZER,
                .outputs = outputs,
                .output_count = output_count};
    for (size_t i = 0; i < output_count; i++) outputs[i] = NULL;
    prony_status status = prony_batcher_submit(b, inputs, count, wake, &w, error);
    if (status == PRONY_OK) {
        pthread_mutex_lock(&w.lock);
        while (!w.done) pthread_cond_wait(&w.over, &w.lock);
        pthread_mutex_unlock(&w.lock);
        status = w.status;
        if (status != PRONY_OK && error) *error = w.error;
    }
    pthread_mutex_destroy(&w.lock);
    pthread_cond_destroy(&w.over);
    for (size_t i = 0; i < output_count && status != PRONY_OK; i++) {
        prony_value_release(outputs[i]);
        outputs[i] = NULL;
    }
    return status;
}
