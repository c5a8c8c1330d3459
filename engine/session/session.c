/* prony_session_*: creation, cancellation, runs. */
#include "engine/session/session.h"

#include "base/os/clock.h"
#include "base/cpu/machine.h"
#include "base/option_struct.h"
#include "engine/bind/random_outputs.h"
#include "engine/session/precision.h"
#include "engine/session/shared_pool.h"

#include <stdio.h>
#include <string.h>

/* ---- creation ---- */

static prony_status session_check_options(const prony_model *model, const prony_session_options *options,
                                          prony_error *error)
{
    PRN_TRY(prn_precision_check(model, options->precision, error));
    int intra = options->intra_op_threads, inter = options->inter_op_threads;
    if (intra < 0 || intra > PRN_MOST_THREADS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%d intra-op threads: wanted 1 to %d, or 0 (auto)", intra,
                        PRN_MOST_THREADS);
    if ((inter < 0 && inter != PRONY_INTER_OP_AUTO) || inter > PRN_MOST_THREADS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "%d inter-op threads: wanted 0 or 1 (one worker) to %d, or %d (auto)", inter, PRN_MOST_THREADS,
                        PRONY_INTER_OP_AUTO);
    if (inter > 1 && intra > 1 && inter * intra > PRN_MOST_THREADS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "%d inter-op workers of %d intra-op threads: at most %d together", inter, intra,
                        PRN_MOST_THREADS);
    if ((int)options->tune < PRONY_TUNE_OFF || options->tune > PRONY_TUNE_NO_CACHE)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "session options: invalid prony_tune %d", (int)options->tune);
    if ((int)options->device_split < PRONY_DEVICE_SPLIT_AUTO || options->device_split > PRONY_DEVICE_SPLIT_NONE)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "session options: invalid prony_device_split %d",
                        (int)options->device_split);
    return PRONY_OK;
}

static prony_status copy_dims(prony_session *session, const prony_dim *given, size_t count, const prony_dim **out,
                              prony_error *error)
{
    prony_dim *dims = prn_bump_alloc(&session->pool, count + 1, sizeof *dims);
    if (!dims) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        dims[i] = given[i];
        dims[i].name = prn_bump_strndup(&session->pool, given[i].name, strlen(given[i].name));
        if (!dims[i].name) return prn_no_memory(error);
    }
    *out = dims;
    return PRONY_OK;
}

static prony_status copy_options(prony_session *session, const prony_session_options *given, prony_error *error)
{
    prony_session_options *options = &session->options;
    *options = *given;
    prony_named_shape *shapes = prn_bump_alloc(&session->pool, given->shape_count + 1, sizeof *shapes);
    if (!shapes) return prn_no_memory(error);
    PRN_TRY(copy_dims(session, given->dims, given->dim_count, &options->dims, error));
    PRN_TRY(copy_dims(session, given->max_dims, given->max_dim_count, &options->max_dims, error));
    for (size_t i = 0; i < given->shape_count; i++) {
        shapes[i] = given->shapes[i];
        shapes[i].name = prn_bump_strndup(&session->pool, given->shapes[i].name, strlen(given->shapes[i].name));
        if (!shapes[i].name) return prn_no_memory(error);
    }
    options->shapes = shapes;
    session->precision = prn_precision_find(given->precision, &options->precision);
    if (given->device) {
        PRN_TRY(prn_device_open(&session->device, given->device, session->model->file->name, error));
        options->device = prn_device_description(session->device)->id;
    }
    if (given->affinity) {
        options->affinity = prn_bump_strndup(&session->pool, given->affinity, strlen(given->affinity));
        if (!options->affinity) return prn_no_memory(error);
    }
    return PRONY_OK;
}

/* Lists all unsupported operators of the model in one message. */
static prony_status check_supported(const prony_session *session, prony_error *error)
{
    prn_bump pool = {0};
    prn_model_gaps gaps = {0};
    prony_status status = prn_model_find_gaps(session->model, &pool, &gaps, error);
    const size_t count = gaps.unsupported_count;
    if (status == PRONY_OK && count > 0) {
        char list[PRONY_ERROR_MESSAGE_BYTES - 200] = "";
        size_t used = 0;
        for (size_t i = 0; i < count && used < sizeof list; i++)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", gaps.unsupported[i]);
        status = prn_fail(error, PRONY_UNSUPPORTED, "%s: %zu operator%s not supported: %s", session->model->file->name,
                          count, count == 1 ? " is" : "s are", list);
    }
    prn_bump_release(&pool);
    return status;
}

prony_status prony_session_create(prony_session **out, prony_model *model, const prony_session_options *options,
                                  prony_error *error)
{
    return prn_session_create_among(out, model, options, 0, 1, error);
}

/* Copies the options and counts threads. Plans are made later, when input shapes are known. */
static bool session_same_name(const char *a, const char *b)
{
    const bool left = a && *a, right = b && *b;
    return left == right && (!left || strcmp(a, b) == 0);
}

static bool session_declared_alike(const prony_value_info *a, const prony_value_info *b)
{
    bool same = a->kind == b->kind && a->dtype == b->dtype && prn_shape_equal(&a->shape, &b->shape);
    for (int d = 0; d < a->shape.rank && same; d++) same = session_same_name(a->dim_names[d], b->dim_names[d]);
    return same;
}

/* Finds inputs that are declared like an earlier one, such as a decoder's caches. A few are remembered, so that many
 * inputs cost no square of their number. */
static void session_note_alike(prony_session *session)
{
    enum { MOST_FIRSTS = 16 };
    const prony_value_info *inputs = session->model->file->graph.inputs;
    uint32_t firsts[MOST_FIRSTS], count = 0;
    for (uint32_t i = 0; i < session->input_count + session->optional_count; i++) {
        uint32_t k = 0;
        while (k < count && !session_declared_alike(&inputs[firsts[k]], &inputs[i])) k++;
        if (k < count)
            session->inputs[i].like = firsts[k] + 1;
        else if (count < MOST_FIRSTS)
            firsts[count++] = i;
    }
}

/* A session is complete before it is returned: prony_session_release takes one at any point from here on. Threads are
 * counted, not started, until the first run. The affinity list is split among the `sharers`: this session's threads
 * begin at position index * threads. */
prony_status prn_session_create_among(prony_session **out, prony_model *model, const prony_session_options *options,
                                      int index, int sharers, prony_error *error)
{
    prony_session_options own = PRONY_SESSION_OPTIONS_INIT;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_create: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "session options", error));
    options = &own;
    PRN_TRY(session_check_options(model, options, error));
    PRN_TRY(prn_ports_check_options(model->file, options, error));
    prony_session *session = prn_calloc(1, sizeof *session);
    if (!session) return prn_no_memory(error);
    session->model = model;
    session->graph = &model->file->graph;
    prn_model_retain(model);
    atomic_flag_clear(&session->busy);
    atomic_init(&session->stop.requested, false);
    session->budget = prn_budget_create(model->budget, options->memory_limit_bytes);
    session->input_count = model->file->graph.input_count;
    session->optional_count = model->file->graph.optional_count;
    session->inputs = prn_calloc(session->input_count + session->optional_count + 1, sizeof *session->inputs);
    bool made = session->budget && session->inputs;
    if (made) session_note_alike(session);
    prony_status status = made ? copy_options(session, options, error) : prn_no_memory(error);
    if (status == PRONY_OK) status = prn_open_dims_find(session, error);
    if (status == PRONY_OK) status = check_supported(session, error);
    if (status == PRONY_OK && options->affinity)
        status = prn_affinity_create(&session->affinity, options->affinity, error);
    if (status == PRONY_OK) {
        int workers = options->inter_op_threads > 1 ? options->inter_op_threads : 1;
        session->workers = 1;
        session->asked_threads = options->intra_op_threads
                                     ? options->intra_op_threads
                                     : prn_machine_auto_threads(sharers * workers, prn_session_mask(session));
        session->threads = session->asked_threads;
        if (session->affinity) {
            session->affinity->threads = session->threads * workers;
            session->affinity->first = index * session->affinity->threads;
        }
        if (options->thread_pool) {
            session->team = options->thread_pool->team;
            prn_thread_pool_retain(session->team);
        }
        session->options.thread_pool = NULL;
        *out = session;
    } else {
        prony_session_release(session);
    }
    return status;
}

void prony_session_release(prony_session *session)
{
    if (!session) return;
    if (session->affinity && prn_affinity_current() == session->affinity) prony_session_unpin(session);
    for (size_t i = 0; i < PRN_PLAN_CACHE; i++) prn_cached_release(&session->cache[i]);
    prn_cached_release(&session->open);
    prn_cached_release(&session->parked.open);
    prn_tuning_release(session->tuning);
    prn_thread_pool_release(session->team);
    for (size_t i = 0; session->inputs && i < session->input_count + session->optional_count; i++) {
        prn_session_input_drop(&session->inputs[i]);
        prn_free_aligned(session->inputs[i].room);
    }
    prn_free(session->inputs);
    prn_free(session->outputs);
    prn_free(session->trace.events);
    if (session->watcher.release) session->watcher.release(session->watcher.data);
    prn_dims_free(&session->dims);
    prn_free(session->assumed.items);
    prn_bump_release(&session->pool);
    prn_affinity_release(session->affinity);
    prony_model_release(session->model);
    prn_device_release(session->device);
    prn_budget_release(session->budget);
    prn_free(session);
}

/* A call in progress may already have skipped work; then the request stays. */
prony_status prony_session_uncancel(prony_session *session, prony_error *error)
{
    if (!session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_uncancel: session is NULL");
    PRN_TRY(prn_session_lock(session, error));
    (void)prn_session_unlock(session, PRONY_CANCELLED);
    return PRONY_OK;
}

void prony_session_cancel(prony_session *session)
{
    if (session) atomic_store_explicit(&session->stop.requested, true, memory_order_relaxed);
}

/* ---- runs ---- */

int prony_session_threads(const prony_session *session)
{
    return session ? session->threads : 0;
}

prony_preparations prony_session_preparations(const prony_session *session)
{
    return session ? session->preparations : (prony_preparations){0};
}

int prony_session_workers(const prony_session *session)
{
    return session ? session->workers : 1;
}

prony_status prn_session_run_once(prony_session *session, prn_trace *trace, prony_error *error)
{
    PRN_TRY(prn_session_plan(session, error));
    prn_cached_plan *cached = session->current;
    cached->used = ++session->runs;
    int64_t start = cached->first_run_ns < 0 ? prn_now_ns() : 0;
    PRN_TRY(prn_user_buffer_check(session, error));
    prn_user_buffer_read(session);
    prony_status status = prn_session_run_plan(session, cached->plan, trace, error);
    if (status == PRONY_OK) {
        status = prn_user_buffer_write(session, error);
        if (status != PRONY_OK) prn_plan_forget(cached->plan);
    }
    if (status != PRONY_OK) {
        prn_session_name_failure(session, status, error);
        prn_arena_run_end(cached->plan->memory.arena);
        session->current = NULL;
        return status;
    }
    if (cached->first_run_ns < 0) cached->first_run_ns = prn_now_ns() - start;
    return PRONY_OK;
}

prony_status prony_session_run(prony_session *session, prony_error *error)
{
    if (!session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_run: session is NULL");
    prn_pin pin;
    PRN_TRY(prn_session_lock(session, error));
    prn_trace *trace = session->options.no_profile ? NULL : &session->trace;
    prn_pin_begin(&pin, session->affinity);
    prony_status status =
        session->watcher.run ? session->watcher.run(session, error) : prn_session_run_once(session, trace, error);
    prn_pin_end(&pin);
    return prn_session_unlock(session, status);
}

static prony_status session_check_output(const prony_session *session, size_t index, prony_error *error)
{
    const prn_cached_plan *current = session->current;
    if (!current || current->first_run_ns < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: no run has finished yet", session->model->file->name);
    if (index >= current->program->output_count)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: output %zu does not exist; the model has %zu",
                        session->model->file->name, index, current->program->output_count);
    return PRONY_OK;
}

prony_status prony_session_output(const prony_session *session, size_t index, const prony_value **out,
                                  prony_error *error)
{
    if (!session || !out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_output: an argument is NULL");
    PRN_TRY(session_check_output(session, index, error));
    const prn_plan *plan = session->current->plan;
    *out = &plan->values[plan->outputs[index]]->value;
    return PRONY_OK;
}

prony_status prony_session_output_random(const prony_session *session, size_t index, bool *random,
                                         prony_random_range *range, prony_error *error)
{
    if (!session || !random || !range)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_output_random: an argument is NULL");
    PRN_TRY(session_check_output(session, index, error));
    return prn_program_output_random(session->current->program, index, random, range, error);
}
