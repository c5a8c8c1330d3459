/* prony_session_*: options, inputs, plans, runs. */
#include "engine/session/session.h"

#include "base/clock.h"
#include "base/machine.h"
#include "base/option_struct.h"
#include "base/parallel.h"
#include "engine/bind/random_outputs.h"
#include "engine/plan/planner.h"
#include "engine/rewrites/rewrite.h"
#include "engine/run/schedule.h"
#include "engine/session/precision.h"
#include "engine/session/thread_pool.h"
#include "loaders/tensors/tensor_file.h"

#include <stdio.h>
#include <string.h>

/* ---- creation ---- */

static prony_status check_options(const prony_model *model, const prony_session_options *options, prony_error *error)
{
    PRN_TRY(prn_precision_check(model, options->precision, error));
    int intra = options->intra_op_threads, inter = options->inter_op_threads;
    if (intra < 0 || intra > PRN_MOST_THREADS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%d intra-op threads: 1 to %d, or 0 (auto)", intra, PRN_MOST_THREADS);
    if ((inter < 0 && inter != PRONY_INTER_OP_AUTO) || inter > PRN_MOST_THREADS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%d inter-op threads: 0 and 1 (one worker) to %d, or %d (auto)", inter,
                        PRN_MOST_THREADS, PRONY_INTER_OP_AUTO);
    if (inter > 1 && intra > 1 && inter * intra > PRN_MOST_THREADS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%d inter-op workers of %d intra-op threads: together at most %d", inter,
                        intra, PRN_MOST_THREADS);
    return PRONY_OK;
}

static prony_status copy_options(prony_session *session, const prony_session_options *given, prony_error *error)
{
    prony_session_options *options = &session->options;
    *options = *given;
    prony_dim *dims = prn_pool_alloc(&session->pool, given->dim_count + 1, sizeof *dims);
    prony_named_shape *shapes = prn_pool_alloc(&session->pool, given->shape_count + 1, sizeof *shapes);
    if (!dims || !shapes) return prn_no_memory(error);
    for (size_t i = 0; i < given->dim_count; i++) {
        dims[i] = given->dims[i];
        dims[i].name = prn_pool_strndup(&session->pool, given->dims[i].name, strlen(given->dims[i].name));
        if (!dims[i].name) return prn_no_memory(error);
    }
    for (size_t i = 0; i < given->shape_count; i++) {
        shapes[i] = given->shapes[i];
        shapes[i].name = prn_pool_strndup(&session->pool, given->shapes[i].name, strlen(given->shapes[i].name));
        if (!shapes[i].name) return prn_no_memory(error);
    }
    options->dims = dims;
    options->shapes = shapes;
    session->precision = prn_precision_find(given->precision, &options->precision);
    if (given->affinity) {
        options->affinity = prn_pool_strndup(&session->pool, given->affinity, strlen(given->affinity));
        if (!options->affinity) return prn_no_memory(error);
    }
    return PRONY_OK;
}

/* Everything the model wants and this build has not, in one message. */
static prony_status check_supported(const prony_session *session, prony_error *error)
{
    prn_pool pool = {0};
    const char *const *names;
    size_t count;
    prony_status status = prn_model_unsupported(session->model, &pool, &names, &count, error);
    if (status == PRONY_OK && count > 0) {
        char list[PRONY_ERROR_MESSAGE_BYTES - 200] = "";
        size_t used = 0;
        for (size_t i = 0; i < count && used < sizeof list; i++)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
        status = prn_fail(error, PRONY_UNSUPPORTED, "%s: %zu operator%s not supported: %s",
                          session->model->file->name, count, count == 1 ? " is" : "s are", list);
    }
    prn_pool_release(&pool);
    return status;
}

prony_status prony_session_create(prony_session **out, prony_model *model, const prony_session_options *options,
                                  prony_error *error)
{
    return prn_session_create_among(out, model, options, 0, 1, error);
}

prony_status prn_session_create_among(prony_session **out, prony_model *model, const prony_session_options *options,
                                      int index, int sharers, prony_error *error)
{
    prony_session_options own = PRONY_SESSION_OPTIONS_INIT;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_create: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "session options", error));
    options = &own;
    PRN_TRY(check_options(model, options, error));
    PRN_TRY(prn_ports_check_options(model->file, options, error));
    prony_session *session = prn_calloc(1, sizeof *session);
    if (!session) return prn_no_memory(error);
    session->model = model;
    prn_model_retain(model);
    atomic_flag_clear(&session->busy);
    atomic_init(&session->stop.requested, false);
    session->budget = prn_budget_create(model->budget, options->memory_limit_bytes);
    session->input_count = model->file->graph.input_count;
    session->inputs = prn_calloc(session->input_count + 1, sizeof *session->inputs);
    bool made = session->budget && session->inputs;
    prony_status status = made ? copy_options(session, options, error) : prn_no_memory(error);
    if (status == PRONY_OK) status = check_supported(session, error);
    if (status == PRONY_OK && options->affinity)
        status = prn_placement_create(&session->placement, options->affinity, error);
    if (status == PRONY_OK) {
        int workers = options->inter_op_threads > 1 ? options->inter_op_threads : 1;
        session->workers = 1;
        session->asked_threads = options->intra_op_threads
                                     ? options->intra_op_threads
                                     : prn_machine_auto_threads(sharers * workers, prn_session_mask(session));
        session->threads = session->asked_threads;
        if (session->placement) {
            session->placement->threads = session->threads * workers;
            session->placement->first = index * session->placement->threads;
        }
        if (options->pool) {
            session->team = options->pool->team;
            prn_team_retain(session->team);
        }
        session->options.pool = NULL;
        *out = session;
    } else {
        prony_session_release(session);
    }
    return status;
}

static void cached_release(prn_cached_plan *cached)
{
    prn_plan_release(cached->plan);
    prn_program_release(cached->program);
    prn_free(cached->inputs);
    *cached = (prn_cached_plan){0};
}

void prony_session_release(prony_session *session)
{
    if (!session) return;
    if (session->placement && prn_placement_current() == session->placement) prony_session_unpin(session);
    for (size_t i = 0; i < PRN_PLAN_CACHE; i++) cached_release(&session->cache[i]);
    prn_team_release(session->team);
    for (size_t i = 0; session->inputs && i < session->input_count; i++) {
        prn_session_input_drop(&session->inputs[i]);
        prn_free_aligned(session->inputs[i].room);
    }
    prn_free(session->inputs);
    prn_free(session->outputs);
    prn_free(session->trace.events);
    if (session->watcher.release) session->watcher.release(session->watcher.data);
    prn_dims_free(&session->dims);
    prn_free(session->assumed.items);
    prn_pool_release(&session->pool);
    prn_placement_release(session->placement);
    prony_model_release(session->model);
    prn_budget_release(session->budget);
    prn_free(session);
}

prony_status prn_session_lock(prony_session *session, prony_error *error)
{
    if (atomic_flag_test_and_set_explicit(&session->busy, memory_order_acquire))
        return prn_fail(error, PRONY_BUSY, "%s: this session is running already; use a session per thread",
                        session->model->file->name);
    session->outer_stop = prn_stop_enter(&session->stop);
    session->former = prn_budget_enter(session->budget);
    return PRONY_OK;
}

prony_status prn_session_unlock(prony_session *session, prony_status status)
{
    prn_budget_enter(session->former);
    (void)prn_stop_enter(session->outer_stop);
    if (status == PRONY_CANCELLED) atomic_store_explicit(&session->stop.requested, false, memory_order_relaxed);
    atomic_flag_clear_explicit(&session->busy, memory_order_release);
    return status;
}

/* Under way, a call may have left something out already: then the request stands. */
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

/* ---- inputs ---- */

void prn_session_inputs_moved(prony_session *session)
{
    for (size_t i = 0; i < PRN_PLAN_CACHE; i++) session->cache[i].pointed = false;
}

void prn_session_input_drop(prn_session_input *input)
{
    if (input->value.data == input->room || input->value.data == input->lent) input->value.data = NULL;
    prn_value_free_parts(&input->value);
    input->value = (prony_value){0};
    input->lent = NULL;
}

/* Bytes for a tensor of numbers; kept from one run to the next. */
static prony_status reserve(prony_session *session, prn_session_input *input, const prony_value *like,
                            prony_error *error)
{
    size_t bytes = prn_value_bytes(like);
    if (bytes == SIZE_MAX) return prn_fail(error, PRONY_LIMIT, "%s: an input is too large", session->model->file->name);
    if (bytes > input->capacity || !input->room) {
        void *room = prn_alloc_aligned(64, bytes ? bytes : 1);
        if (!room) return prn_no_memory(error);
        prn_session_input_drop(input);
        prn_free_aligned(input->room);
        input->room = room;
        input->capacity = bytes;
    }
    if (input->value.data != input->room) {
        prn_session_input_drop(input);
        prn_session_inputs_moved(session);
    }
    input->lent = NULL;
    input->value = (prony_value){.kind = PRONY_TENSOR, .dtype = like->dtype, .shape = like->shape, .data = input->room};
    return PRONY_OK;
}

prony_status prn_session_input_room(prony_session *session, size_t index, const prony_value *like, void **data,
                                    prony_error *error)
{
    prn_session_input *input = &session->inputs[index];
    PRN_TRY(reserve(session, input, like, error));
    input->set = true;
    *data = input->value.data;
    return PRONY_OK;
}

/* Strings, sequences and optionals: a copy of its own each time. */
static prony_status adopt_copy(prony_session *session, prn_session_input *input, const prony_value *value,
                               const char *name, prony_error *error)
{
    prony_value copy;
    prony_status status = prn_value_copy(&copy, value, error);
    if (status != PRONY_OK) {
        prn_error_prefix(error, "%s: input '%s'", session->model->file->name, name);
        return status;
    }
    prn_session_input_drop(input);
    input->value = copy;
    prn_session_inputs_moved(session);
    return PRONY_OK;
}

/* Dims of all bound inputs, so that a symbol cannot mean two extents in one run. */
static prony_status collect_dims(prony_session *session, prony_error *error)
{
    const prn_model_file *file = session->model->file;
    prn_dims_clear(&session->dims);
    for (size_t i = 0; i < session->input_count; i++)
        if (session->inputs[i].set)
            PRN_TRY(prn_port_accept(&file->graph.inputs[i], &session->inputs[i].value, &session->dims, file->name, error));
    return PRONY_OK;
}

/* What was assumed of an input that the caller gives now. */
static void forget_assumed(prony_session *session, size_t input)
{
    size_t kept = 0;
    for (size_t k = 0; k < session->assumed.count; k++)
        if (session->assumed.items[k].input != input) session->assumed.items[kept++] = session->assumed.items[k];
    session->assumed.count = kept;
}

prony_status prn_session_accept(prony_session *session, const char *name, const prony_value *value, size_t *index,
                                prony_error *error)
{
    const prn_model_file *file = session->model->file;
    prn_dims own = {0};
    PRN_TRY(prn_ports_find(index, file, name, error));
    if (!prn_value_valid(value))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: input '%s': not a value: a kind, type, rank or extent that there "
                        "is none of, or items without any", file->name, name);
    prony_status status = prn_port_accept(&file->graph.inputs[*index], value, &own, file->name, error);
    prn_dims_free(&own);
    if (status == PRONY_OK && value->kind == PRONY_TENSOR && value->dtype != PRONY_STRING && !value->data &&
        prony_shape_numel(&value->shape) != 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: input '%s' has no data", file->name, name);
    if (status == PRONY_OK) forget_assumed(session, *index);
    return status;
}

static prony_status set_input(prony_session *session, const char *name, const prony_value *value, prony_error *error)
{
    size_t index;
    PRN_TRY(prn_ports_find(&index, session->model->file, name, error));
    prony_value full = {.kind = PRONY_OPTIONAL, .dtype = value->dtype, .shape = prn_shape_unknown(), .count = 1};
    bool wraps = session->model->file->graph.inputs[index].kind == PRONY_OPTIONAL && value->kind != PRONY_OPTIONAL;
    if (wraps && prn_value_valid(value)) { /* an optional is given by what it holds, too */
        full.items = (prony_value *)(uintptr_t)value;
        value = &full;
    }
    PRN_TRY(prn_session_accept(session, name, value, &index, error));
    prn_session_input *input = &session->inputs[index];
    if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING) {
        PRN_TRY(adopt_copy(session, input, value, name, error));
        input->set = true;
        return PRONY_OK;
    }
    PRN_TRY(reserve(session, input, value, error));
    size_t bytes = prn_value_bytes(value);
    prn_stop_copy(input->value.data, value->data, bytes);
    input->set = !prn_stopped(); /* half of it is none */
    return prn_stop_check(error);
}

prony_status prony_session_set_input(prony_session *session, const char *name, const prony_value *value,
                                     prony_error *error)
{
    if (!session || !name || !value)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_set_input: an argument is NULL");
    PRN_TRY(prn_session_lock(session, error));
    return prn_session_unlock(session, set_input(session, name, value, error));
}

const prony_value *prony_session_input_value(const prony_session *session, size_t index)
{
    return session && index < session->input_count && session->inputs[index].set ? &session->inputs[index].value : NULL;
}

/* The shapes of all inputs as they would be for a run now. `s` is to be freed whatever comes of it. */
static prony_status settle_shapes(prony_session *session, prn_input_shapes *s, prony_error *error)
{
    const prn_model_file *file = session->model->file;
    PRN_TRY(prn_input_shapes_init(s, session->model, error));
    bool *bound = prn_calloc(session->input_count + 1, sizeof *bound);
    if (!bound) return prn_no_memory(error);
    prony_status status = PRONY_OK;
    for (size_t i = 0; i < session->input_count && status == PRONY_OK; i++) {
        const prn_session_input *input = &session->inputs[i];
        bound[i] = input->set;
        if (!input->set) continue;
        s->shapes[i] = input->value.shape;
        status = prn_port_accept(&file->graph.inputs[i], &input->value, &s->dims, file->name, error);
    }
    s->bound = bound;
    if (status == PRONY_OK) status = prn_input_shapes_settle(s, session->model, &session->options, error);
    s->bound = NULL;
    prn_free(bound);
    return status;
}

static prony_status generate_input(prony_session *session, size_t index, const prony_shape *shape, uint64_t seed,
                                   prony_error *error)
{
    const prn_model_file *file = session->model->file;
    const prony_port *port = &file->graph.inputs[index];
    prn_session_input *input = &session->inputs[index];
    prony_value like = {.kind = port->kind, .dtype = port->dtype, .shape = *shape};
    if (port->kind != PRONY_TENSOR || port->dtype == PRONY_STRING)
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "%s: input '%s': values are generated for tensors of numbers only; give one", file->name,
                        port->name);
    if (shape->rank < 0)
        return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: input '%s' declares no shape; give one (--shape %s=…)",
                        file->name, port->name, port->name);
    PRN_TRY(reserve(session, input, &like, error));
    prn_random_fill(&input->value, seed, port->name);
    PRN_TRY(prn_stop_check(error));
    input->set = true;
    session->seed = seed;
    session->seed_known = true;
    return PRONY_OK;
}

static prony_status generate(prony_session *session, uint64_t seed, prony_error *error)
{
    prn_input_shapes s;
    prony_status status = settle_shapes(session, &s, error);
    if (status == PRONY_OK) status = prn_input_shapes_closed(&s, session->model, error);
    for (size_t i = 0; i < session->input_count && status == PRONY_OK; i++)
        if (!session->inputs[i].set) status = generate_input(session, i, &s.shapes[i], seed, error);
    if (status == PRONY_OK && s.assumed.count) { /* handed over; a later call that has nothing to assume leaves it */
        prn_free(session->assumed.items);
        session->assumed = s.assumed;
        s.assumed = (prn_assumed_list){0};
    }
    prn_input_shapes_free(&s);
    return status;
}

prony_status prony_session_input(const prony_session *session, const char *name, prony_port *out, prony_error *error)
{
    if (!session || !name || !out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_input: an argument is NULL");
    const prn_model_file *file = session->model->file;
    prn_dims dims = {0};
    size_t index;
    PRN_TRY(prn_ports_find(&index, file, name, error));
    prony_status status = PRONY_OK;
    for (size_t i = 0; i < session->input_count && status == PRONY_OK; i++)
        status = session->inputs[i].set
                     ? prn_port_accept(&file->graph.inputs[i], &session->inputs[i].value, &dims, file->name, error)
                     : prn_port_given(&file->graph.inputs[i], &session->options, &dims, file->name, error);
    *out = file->graph.inputs[index];
    if (status == PRONY_OK)
        status = prn_port_fix(&out->shape, &file->graph.inputs[index], &session->options, &dims, file->name, error);
    prn_dims_free(&dims);
    return status;
}

prony_status prony_session_input_shape(prony_session *session, const char *name, prony_shape *out, prony_error *error)
{
    if (!session || !name || !out)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_input_shape: an argument is NULL");
    size_t index;
    prn_input_shapes s;
    PRN_TRY(prn_ports_find(&index, session->model->file, name, error));
    PRN_TRY(prn_session_lock(session, error));
    prony_status status = settle_shapes(session, &s, error);
    if (status == PRONY_OK && !prn_shape_known(&s.shapes[index]) && s.shapes[index].rank >= 0)
        status = prn_input_shapes_closed(&s, session->model, error);
    if (status == PRONY_OK) *out = s.shapes[index];
    prn_input_shapes_free(&s);
    return prn_session_unlock(session, status);
}

prony_status prony_session_generate_inputs(prony_session *session, uint64_t seed, prony_error *error)
{
    if (!session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_generate_inputs: session is NULL");
    PRN_TRY(prn_session_lock(session, error));
    return prn_session_unlock(session, generate(session, seed, error));
}

/* ---- plans ---- */

static bool fits(const prony_session *session, const prn_cached_plan *cached)
{
    if (!cached->plan) return false;
    for (size_t i = 0; i < session->input_count; i++)
        if (cached->inputs[i].kind != session->inputs[i].value.kind ||
            cached->inputs[i].dtype != session->inputs[i].value.dtype ||
            !prn_shape_equal(&cached->inputs[i].shape, &session->inputs[i].value.shape))
            return false;
    return true;
}

static prony_status reserve_trace(prony_session *session, const prn_plan *plan, prony_error *error)
{
    if (session->options.no_profile || session->trace.capacity >= plan->step_count) return PRONY_OK;
    prn_event *events = prn_realloc(session->trace.events, plan->step_count, sizeof *events);
    if (!events) return prn_no_memory(error);
    session->trace.events = events;
    session->trace.capacity = plan->step_count;
    return PRONY_OK;
}

/* Threads for a plan of several workers: the pool's, or the session's own, which are made for the most that any of its plans
 * can ask for. */
static prony_status staff(prony_session *session, prn_plan *plan, prony_error *error)
{
    if (!plan->schedule) return PRONY_OK;
    if (!session->team) {
        int cores = prn_machine_auto_threads(1, prn_session_mask(session)), most = plan->workers * plan->threads;
        if (session->options.inter_op_threads < 0 && most < cores) most = cores;
        PRN_TRY(prn_team_create(&session->team, most - 1, false, error));
    }
    return prn_schedule_staff(plan->schedule, session->team, error);
}

static prony_status try_plan(prony_session *session, prn_cached_plan *cached, prony_error *error)
{
    cached->inputs = prn_calloc(session->input_count + 1, sizeof *cached->inputs);
    if (!cached->inputs) return prn_no_memory(error);
    for (size_t i = 0; i < session->input_count; i++) {
        cached->inputs[i] = session->inputs[i].value;
        cached->inputs[i].data = NULL;
        cached->inputs[i].items = NULL;
        cached->inputs[i].count = 0;
    }
    prn_bind_options bind = {.inputs = cached->inputs, .input_count = session->input_count};
    int64_t start = prn_now_ns();
    PRN_TRY(prn_model_unchanged(session->model->file, error));
    PRN_TRY(prn_program_bind(&cached->program, session->model, &session->model->file->graph, NULL, NULL, &bind, error));
    int64_t bound = prn_now_ns();
    if (!session->options.no_rewrites) PRN_TRY(prn_program_rewrite(cached->program, error));
    if (!prn_program_trim(cached->program)) return prn_no_memory(error);
    int64_t rewritten = prn_now_ns();
    int workers = session->options.inter_op_threads;
    prn_plan_options options = {.precision = session->precision,
                                .threads = workers < 0 ? session->options.intra_op_threads : session->asked_threads,
                                .workers = workers,
                                .cores = prn_machine_auto_threads(1, prn_session_mask(session)),
                                .no_help = session->options.no_help,
                                .record_memory = session->options.record_memory,
                                .max_loop_trips = session->options.max_loop_trips,
                                .no_reuse = session->options.no_reuse};
    if ((workers < 0 || workers > 1) && session->model->find_rates) session->model->find_rates(&options.rates);
    PRN_TRY(prn_plan_create(&cached->plan, cached->program, NULL, &options, error));
    PRN_TRY(staff(session, cached->plan, error));
    cached->bind_ns = bound - start;
    cached->rewrite_ns = rewritten - bound;
    cached->plan_ns = prn_now_ns() - rewritten;
    cached->first_run_ns = -1;
    if (cached->plan->workers == 1 && !session->team) prn_team_warm(cached->plan->threads);
    return PRONY_OK;
}

/* Again if a scaled weight was not finite after all. */
static prony_status make_plan(prony_session *session, prn_cached_plan *cached, prony_error *error)
{
    const bool looked = prn_shared_looks_first(session->model->shared);
    prony_status status = try_plan(session, cached, error);
    if (status != PRONY_INTERNAL || looked || !prn_shared_looks_first(session->model->shared)) return status;
    cached_release(cached);
    if (error) *error = (prony_error){0};
    return try_plan(session, cached, error);
}

static void point_inputs(prony_session *session, prn_cached_plan *cached)
{
    const prn_program *program = cached->program;
    for (size_t i = 0; i < session->input_count; i++) {
        prony_value *value = &cached->plan->values[program->inputs[i]]->value;
        const prony_value *given = &session->inputs[i].value;
        value->data = given->data;
        value->items = given->items;
        value->count = given->count;
        if (given->kind != PRONY_TENSOR) value->dtype = given->dtype;
    }
    prn_lent_point(session, cached);
    prn_plan_point(cached->plan, cached->plan->base);
    cached->pointed = true;
}

/* The file in front of the message; behind it, where shapes do not fit, the free dimensions, of which that may come. */
static void name_failure(const prony_session *session, prony_status status, prony_error *error)
{
    prony_value *inputs = prn_is_shape_failure(status) ? prn_calloc(session->input_count + 1, sizeof *inputs) : NULL;
    prn_error_prefix(error, "%s", session->model->file->name);
    for (size_t i = 0; inputs && i < session->input_count; i++) inputs[i] = session->inputs[i].value;
    if (inputs) prn_error_name_dims(error, session->model, inputs, &session->assumed);
    prn_free(inputs);
}

prony_status prn_session_plan(prony_session *session, prony_error *error)
{
    prn_cached_plan *found = NULL, *oldest = &session->cache[0];
    for (size_t i = 0; i < session->input_count; i++)
        if (!session->inputs[i].set)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: input '%s' is not set", session->model->file->name,
                            session->model->file->graph.inputs[i].name);
    if (session->current && session->current->pointed && fits(session, session->current)) return PRONY_OK;
    PRN_TRY(collect_dims(session, error));
    for (size_t i = 0; i < PRN_PLAN_CACHE; i++) {
        if (fits(session, &session->cache[i])) found = &session->cache[i];
        if (session->cache[i].used < oldest->used) oldest = &session->cache[i];
    }
    if (!found) {
        session->current = NULL;
        cached_release(oldest);
        prony_status status = make_plan(session, oldest, error);
        if (status == PRONY_OK) status = reserve_trace(session, oldest->plan, error);
        if (status != PRONY_OK) {
            name_failure(session, status, error);
            cached_release(oldest);
            return status;
        }
        found = oldest;
    }
    if (!found->pointed) point_inputs(session, found);
    session->current = found;
    session->threads = found->plan->threads;
    session->workers = found->plan->workers;
    return PRONY_OK;
}

int prony_session_threads(const prony_session *session)
{
    return session ? session->threads : 0;
}

int prony_session_workers(const prony_session *session)
{
    return session ? session->workers : 1;
}

prony_status prony_session_prepare(prony_session *session, prony_error *error)
{
    if (!session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_prepare: session is NULL");
    prn_pin pin;
    PRN_TRY(prn_session_lock(session, error));
    prn_pin_begin(&pin, session->placement);
    prony_status status = prn_session_plan(session, error);
    prn_pin_end(&pin);
    return prn_session_unlock(session, status);
}

/* ---- runs ---- */

/* Several workers go to their team by themselves; one worker has a pool's help. */
static prony_status run_plan(prony_session *session, prn_plan *plan, prn_trace *trace, prony_error *error)
{
    if (plan->workers > 1 || !session->team) return prn_plan_run(plan, trace, error);
    prn_place former = prn_team_join(session->team);
    prony_status status = prn_plan_run(plan, trace, error);
    prn_team_leave(former);
    return status;
}

prony_status prn_session_run_once(prony_session *session, prn_trace *trace, prony_error *error)
{
    PRN_TRY(prn_session_plan(session, error));
    prn_cached_plan *cached = session->current;
    cached->used = ++session->runs;
    prn_plan_forget(cached->plan);
    prn_arena_run_end(cached->plan->arena); /* the text of the last run's string outputs */
    prn_arena_run_begin(cached->plan->arena);
    int64_t start = cached->first_run_ns < 0 ? prn_now_ns() : 0;
    prn_lent_read(session);
    prony_status status = run_plan(session, cached->plan, trace, error);
    if (status == PRONY_OK) {
        status = prn_lent_write(session, error);
        if (status != PRONY_OK) prn_plan_forget(cached->plan);
    }
    if (status != PRONY_OK) {
        name_failure(session, status, error);
        prn_arena_run_end(cached->plan->arena);
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
    prn_pin_begin(&pin, session->placement);
    prony_status status =
        session->watcher.run ? session->watcher.run(session, error) : prn_session_run_once(session, trace, error);
    prn_pin_end(&pin);
    return prn_session_unlock(session, status);
}

static prony_status check_output(const prony_session *session, size_t index, prony_error *error)
{
    const prn_cached_plan *current = session->current;
    if (!current || current->first_run_ns < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: no run has finished yet", session->model->file->name);
    if (index >= current->program->output_count)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: there is no output %zu; the model has %zu",
                        session->model->file->name, index, current->program->output_count);
    return PRONY_OK;
}

prony_status prony_session_output(const prony_session *session, size_t index, const prony_value **out,
                                  prony_error *error)
{
    if (!session || !out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_output: an argument is NULL");
    PRN_TRY(check_output(session, index, error));
    const prn_plan *plan = session->current->plan;
    *out = &plan->values[plan->outputs[index]]->value;
    return PRONY_OK;
}

prony_status prony_session_output_random(const prony_session *session, size_t index, bool *random,
                                         prony_random_range *range, prony_error *error)
{
    if (!session || !random || !range)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_output_random: an argument is NULL");
    PRN_TRY(check_output(session, index, error));
    return prn_program_output_random(session->current->program, index, random, range, error);
}
