/* The plans of a session: found by the shapes of its inputs, or made. */
#include "base/os/clock.h"
#include "base/cpu/machine.h"
#include "base/threads/parallel.h"
#include "engine/plan/planner.h"
#include "engine/rewrites/rewrite.h"
#include "engine/plan/schedule.h"
#include "engine/session/session.h"
#include "engine/session/shard.h"

/* true: an input of this type and shape was accepted already, for a declaration like this input's. */
static bool accepted_alike(const prony_session *session, const prn_session_input *input)
{
    if (!input->like) return false;
    const prn_session_input *other = &session->inputs[input->like - 1];
    return other->set && other->value.kind == input->value.kind && other->value.dtype == input->value.dtype &&
           input->value.kind == PRONY_TENSOR && prn_shape_equal(&other->value.shape, &input->value.shape);
}

/* Dims of all bound inputs, so that a symbol cannot mean two extents in one run. */
static prony_status collect_dims(prony_session *session, prony_error *error)
{
    const prn_model_file *file = session->model->file;
    prn_dims_clear(&session->dims);
    for (size_t i = 0; i < session->input_count + session->optional_count; i++)
        if (session->inputs[i].set && !accepted_alike(session, &session->inputs[i]))
            PRN_TRY(
                prn_port_accept(&file->graph.inputs[i], &session->inputs[i].value, &session->dims, file->name, error));
    return PRONY_OK;
}

static prony_status plans_try_plan(prony_session *session, prn_cached_plan *cached, prony_error *error)
{
    PRN_TRY(prn_cached_inputs(session, cached, error));
    prn_bind_options bind = {.inputs = cached->inputs, .input_count = session->input_count};
    if (prn_session_overrides(session)) bind.optional = cached->inputs + session->input_count;
    int64_t start = prn_now_ns();
    session->preparations.bound++;
    PRN_TRY(prn_model_unchanged(session->model->file, error));
    const prn_stage *stage = session->model->stage;
    if (stage)
        PRN_TRY(prn_stage_bind(&cached->program, stage, !session->options.no_rewrites, error));
    else
        PRN_TRY(prn_program_bind(&cached->program, session->model, session->graph, NULL, NULL, &bind, error));
    int64_t bound = prn_now_ns();
    if (!session->options.no_rewrites && !stage) PRN_TRY(prn_program_rewrite(cached->program, error));
    if (!prn_program_trim(cached->program, NULL)) return prn_no_memory(error);
    cached->bind_ns = bound - start;
    cached->rewrite_ns = prn_now_ns() - bound;
    return prn_cached_plan_program(session, cached, error);
}

/* Makes a plan; once more if a scaled weight was not finite. */
static prony_status plans_make_plan(prony_session *session, prn_cached_plan *cached, prony_error *error)
{
    const bool looked = prn_weight_cache_looks_first(session->model->shared);
    prony_status status = plans_try_plan(session, cached, error);
    if (status != PRONY_INTERNAL || looked || !prn_weight_cache_looks_first(session->model->shared)) return status;
    prn_cached_release(cached);
    if (error) *error = (prony_error){0};
    return plans_try_plan(session, cached, error);
}

bool prn_session_overrides(const prony_session *session)
{
    for (size_t i = 0; i < session->optional_count; i++)
        if (session->inputs[session->input_count + i].set) return true;
    return false;
}

static void plans_point_inputs(prony_session *session, prn_cached_plan *cached)
{
    const prn_program *program = cached->program;
    size_t next = 0; /* index among the program's inputs, which exclude optional ones that are not given */
    for (size_t i = 0; i < session->input_count + session->optional_count; i++) {
        if (i >= session->input_count && !session->inputs[i].set) continue;
        prony_value *value = &cached->plan->values[program->inputs[next++]]->value;
        const prony_value *given = &session->inputs[i].value;
        value->data = given->data;
        value->items = given->items;
        value->count = given->count;
        if (given->kind != PRONY_TENSOR) value->dtype = given->dtype;
        if (!session->model->stage) continue;
        value->dtype = given->dtype; /* an earlier stage's run may have decided both */
        value->shape = given->shape;
    }
    prn_user_buffer_point(session, cached);
    prn_plan_point(cached->plan, cached->plan->memory.base);
    cached->pointed = true;
}

void prn_session_name_failure(const prony_session *session, prony_status status, prony_error *error)
{
    prony_value *inputs = prn_is_shape_failure(status) ? prn_calloc(session->input_count + 1, sizeof *inputs) : NULL;
    prn_error_prefix(error, "%s", session->model->file->name);
    for (size_t i = 0; inputs && i < session->input_count; i++) inputs[i] = session->inputs[i].value;
    if (inputs) prn_error_name_dims(error, session->model, inputs, &session->assumed);
    prn_free(inputs);
}

/* Takes the current plan, the open plan, a cached one that fits, or makes one in place of the least recently used. */
prony_status prn_session_plan(prony_session *session, prony_error *error)
{
    prn_cached_plan *found = NULL, *oldest = &session->cache[0];
    for (size_t i = 0; i < session->input_count; i++)
        if (!session->inputs[i].set)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: input '%s' is not set", session->model->file->name,
                            session->model->file->graph.inputs[i].name);
    if (session->generator && !session->generator_runs) prn_session_leave_generator(session);
    if (session->current && session->current->pointed && prn_cached_fits(session, session->current)) return PRONY_OK;
    PRN_TRY(collect_dims(session, error));
    if (session->open_count && !session->open_refused && !prn_session_overrides(session)) {
        prony_status status = prn_open_plan(session, &found, error);
        if (status != PRONY_OK) {
            session->current = NULL;
            prn_session_name_failure(session, status, error);
            return status;
        }
    }
    for (size_t i = 0; i < PRN_PLAN_CACHE && !found; i++) {
        if (prn_cached_fits(session, &session->cache[i])) found = &session->cache[i];
        if (session->cache[i].used < oldest->used) oldest = &session->cache[i];
    }
    if (!found) {
        session->current = NULL;
        prn_cached_release(oldest);
        prony_status status = plans_make_plan(session, oldest, error);
        if (status != PRONY_OK) {
            prn_session_name_failure(session, status, error);
            prn_cached_release(oldest);
            return status;
        }
        found = oldest;
    }
    if (!found->pointed) plans_point_inputs(session, found);
    session->current = found;
    session->threads = found->plan->parallel.threads;
    session->workers = found->plan->parallel.workers;
    return PRONY_OK;
}

prony_status prony_session_prepare(prony_session *session, prony_error *error)
{
    if (!session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_prepare: session is NULL");
    prn_pin pin;
    PRN_TRY(prn_session_lock(session, error));
    prn_pin_begin(&pin, session->affinity);
    prony_status status = prn_session_plan(session, error);
    prn_pin_end(&pin);
    return prn_session_unlock(session, status);
}
