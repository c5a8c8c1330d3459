/* prony_session_bind_input and prony_session_bind_output: user-bound bytes, read and written in place.
 *
 * A tensor of numbers that is aligned for its elements is read in place. An output is written in place if it is the
 * only graph output in a buffer of the arena and fills it. It is copied after the run if it is a view of an input or
 * constant, shares bytes with another output, gets its shape in the run, or is bound onto bytes of an input. An
 * operator that updates a cache (prn_op.cache_input) writes its present rows to the bytes of the past ones, if both are
 * bound to them. Two outputs never share bytes. */
#include "engine/session/session.h"

#include "base/memory/alloc.h"

#include <string.h>

static bool user_buffers_aligned(const void *bytes, prony_dtype dtype)
{
    size_t element = prony_dtype_bytes(dtype, 1);
    return element == 0 || (uintptr_t)bytes % element == 0;
}

static prony_status user_buffers_bind_input(prony_session *session, const char *name, const prony_value *value,
                                            prony_error *error)
{
    size_t index;
    PRN_TRY(prn_session_accept(session, name, value, &index, error));
    prn_session_input *input = &session->inputs[index];
    if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING)
        return prn_fail(error, PRONY_UNSUPPORTED, "%s: input '%s': only numeric tensors can be bound; set it instead",
                        session->model->file->name, name);
    if (!value->data || !user_buffers_aligned(value->data, value->dtype)) {
        void *room;
        PRN_TRY(prn_session_input_room(session, index, value, &room, error));
    } else {
        bool moved = input->value.data != value->data;
        if (moved) prn_session_input_drop(input);
        if (moved) prn_session_inputs_moved(session);
        input->value = (prony_value){.dtype = value->dtype, .shape = value->shape, .data = value->data};
        input->set = true;
    }
    input->user_bytes = value->data;
    return PRONY_OK;
}

bool prn_session_rebind(prony_session *session, size_t index, const prony_value *value)
{
    prn_session_input *input = &session->inputs[index];
    if (!input->set || input->user_bytes != value->data || input->value.data != value->data || !value->data ||
        input->value.dtype != value->dtype || input->value.shape.rank != value->shape.rank)
        return false;
    input->value.shape = value->shape;
    return true;
}

prony_status prony_session_bind_input(prony_session *session, const char *name, const prony_value *value,
                                      prony_error *error)
{
    if (!session || !name || !value)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_bind_input: an argument is NULL");
    PRN_TRY(prn_session_lock(session, error));
    return prn_session_unlock(session, user_buffers_bind_input(session, name, value, error));
}

static prony_status bind_output(prony_session *session, size_t index, void *data, size_t bytes, prony_error *error)
{
    const size_t count = session->model->file->graph.output_count;
    if (index >= count)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: output %zu does not exist; the model has %zu",
                        session->model->file->name, index, count);
    if (!session->outputs) session->outputs = prn_calloc(count, sizeof *session->outputs);
    if (!session->outputs) return prn_no_memory(error);
    prn_session_output *output = &session->outputs[index];
    if (output->user_bytes != data || output->bytes != bytes) prn_session_inputs_moved(session);
    *output = (prn_session_output){.user_bytes = data, .bytes = bytes};
    return PRONY_OK;
}

prony_status prony_session_bind_output(prony_session *session, size_t index, void *data, size_t bytes,
                                       prony_error *error)
{
    if (!session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_bind_output: session is NULL");
    PRN_TRY(prn_session_lock(session, error));
    return prn_session_unlock(session, bind_output(session, index, data, bytes, error));
}

prony_status prony_session_planned_output(const prony_session *session, size_t index, prony_value *out,
                                          prony_error *error)
{
    if (!session || !out)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_planned_output: an argument is NULL");
    const prn_cached_plan *current = session->current;
    const char *file = session->model->file->name;
    if (!current) return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: no plan exists yet", file);
    if (index >= current->program->output_count)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: output %zu does not exist; the model has %zu", file, index,
                        current->program->output_count);
    const prn_plan_value *planned = current->plan->values[current->plan->outputs[index]];
    *out = (prony_value){.kind = planned->value.kind, .dtype = planned->value.dtype, .shape = planned->value.shape};
    if (planned->dynamic) out->shape = (prony_shape){.rank = -1};
    return PRONY_OK;
}

/* ---- bytes that a generator bound */

prony_status prn_session_unbind_input(prony_session *session, size_t input, const void *bytes, prony_error *error)
{
    if (!bytes || session->inputs[input].user_bytes != bytes) return PRONY_OK;
    return prony_session_reset_input(session, session->model->file->graph.inputs[input].name, error);
}

void prn_session_leave_generator(prony_session *session)
{
    const size_t count = session->outputs ? session->model->file->graph.output_count : 0;
    prn_session_set_growth(session, PRN_GROWTH_NONE);
    for (size_t k = 0; k < count; k++) {
        if (!session->outputs[k].of_generator) continue;
        session->outputs[k] = (prn_session_output){0};
        prn_session_inputs_moved(session);
    }
}

/* ---- bytes that are bound twice */

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a && b && a_bytes && b_bytes && (x < y ? y - x < a_bytes : x - y < b_bytes);
}

static bool is_on_an_input(const prony_session *session, const void *data, size_t bytes)
{
    for (size_t i = 0; i < session->input_count + session->optional_count; i++) {
        const prn_session_input *input = &session->inputs[i];
        if (overlap(data, bytes, input->user_bytes, input->bound_bytes)) return true;
    }
    return false;
}

/* Bytes that a run writes to output k's bound memory: those of its planned shape, or all bound bytes. */
static size_t user_buffers_written_bytes(const prony_session *session, size_t k)
{
    const prn_plan_value *value = session->current->plan->values[session->current->plan->outputs[k]];
    return value->dynamic || value->bytes > session->outputs[k].bytes ? session->outputs[k].bytes : value->bytes;
}

prony_status prn_user_buffer_check(const prony_session *session, prony_error *error)
{
    const size_t count = session->outputs ? session->current->program->output_count : 0;
    for (size_t k = 1; k < count; k++) {
        for (size_t j = 0; j < k && session->outputs[k].user_bytes; j++) {
            if (!overlap(session->outputs[j].user_bytes, user_buffers_written_bytes(session, j),
                         session->outputs[k].user_bytes, user_buffers_written_bytes(session, k)))
                continue;
            const prony_value_info *outputs = session->model->file->graph.outputs;
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "outputs '%s' and '%s' are bound to bytes that overlap",
                            outputs[j].name, outputs[k].name);
        }
    }
    return PRONY_OK;
}

/* The root that output k alone fills; PRN_NO_VALUE: none. */
static uint32_t own_root(const prn_plan *plan, size_t outputs, size_t k)
{
    const prn_plan_value *value = plan->values[plan->outputs[k]];
    uint64_t offset;
    uint32_t root = prn_plan_root(plan, plan->outputs[k], &offset);
    const prn_plan_value *owner = plan->values[root];
    bool whole = offset == 0 && owner->buffer != PRN_NO_BUFFER && owner->bytes == value->bytes && !owner->dynamic;
    for (size_t other = 0; other < outputs && whole; other++)
        whole = other == k || prn_plan_root(plan, plan->outputs[other], NULL) != root;
    return whole ? root : PRN_NO_VALUE;
}

/* true: the operator that makes output k updates a cache, and reads the bound bytes as its past rows; nothing reads
 * them later. Inputs point at their bytes already. */
static bool user_buffers_update_cache(const prony_session *session, const prn_plan *plan, size_t k)
{
    const uint32_t output = plan->outputs[k];
    const prn_plan_value *made = plan->values[output];
    void *bytes = session->outputs[k].user_bytes;
    if (plan->parallel.workers > 1 || made->defined == PRN_NO_STEP || made->defined >= plan->step_count) return false;
    const prn_step *step = plan->steps[made->defined];
    const size_t first = step->node->binding.op ? step->node->binding.op->cache_input : 0;
    for (uint32_t o = 1; first && o <= 2 && o < step->node->output_count; o++) {
        const uint32_t i = (uint32_t)first + o - 1;
        if (step->outputs[o] != output || i >= step->node->input_count || step->inputs[i] == PRN_NO_VALUE) continue;
        const prn_plan_value *past = plan->values[step->inputs[i]];
        size_t others = 0;
        for (size_t n = 0; n < session->input_count + session->optional_count; n++) {
            const prn_session_input *input = &session->inputs[n];
            others += overlap(bytes, made->bytes, input->user_bytes, input->bound_bytes);
        }
        return past->input && past->value.data == bytes && past->bytes == made->bytes &&
               past->last_use == made->defined && others == 1;
    }
    return false;
}

void prn_user_buffer_point(prony_session *session, prn_cached_plan *cached)
{
    const size_t count = session->outputs ? cached->program->output_count : 0;
    prn_plan *plan = cached->plan;
    for (size_t i = 0; count && i < session->input_count + session->optional_count; i++) {
        prn_session_input *input = &session->inputs[i];
        input->bound_bytes = input->user_bytes ? prn_value_bytes(&input->value) : 0;
    }
    for (size_t k = 0; k < count; k++) plan->values[prn_plan_root(plan, plan->outputs[k], NULL)]->user_bytes = NULL;
    for (size_t k = 0; k < count; k++) {
        const prn_session_output *output = &session->outputs[k];
        const prn_plan_value *value = plan->values[plan->outputs[k]];
        if (!output->user_bytes || output->bytes < value->bytes ||
            !user_buffers_aligned(output->user_bytes, value->value.dtype))
            continue;
        if (is_on_an_input(session, output->user_bytes, value->bytes) && !user_buffers_update_cache(session, plan, k))
            continue; /* steps may still read these bytes */
        uint32_t root = own_root(plan, count, k);
        if (root != PRN_NO_VALUE) plan->values[root]->user_bytes = output->user_bytes;
    }
}

void prn_user_buffer_read(prony_session *session)
{
    for (size_t i = 0; i < session->input_count + session->optional_count; i++) {
        prn_session_input *input = &session->inputs[i];
        if (input->user_bytes && input->user_bytes != input->value.data)
            memcpy(input->value.data, input->user_bytes, prn_value_bytes(&input->value));
    }
}

/* An output that is copied to bound bytes. */
typedef struct lent_copy {
    void *to;
    const void *from;
    size_t bytes;
} lent_copy;

/* *needed false: output k is already in place, or not bound. */
static prony_status user_buffers_copy_of(const prony_session *session, size_t k, lent_copy *copy, bool *needed,
                                         prony_error *error)
{
    const prn_cached_plan *cached = session->current;
    const prn_session_output *output = &session->outputs[k];
    const prony_value *value = &cached->plan->values[cached->plan->outputs[k]]->value;
    *needed = output->user_bytes && value->data != output->user_bytes;
    if (!*needed) return PRONY_OK;
    const char *name = session->model->file->graph.outputs[k].name;
    if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING)
        return prn_fail(error, PRONY_UNSUPPORTED, "output '%s': only numeric tensors can be written to bound bytes",
                        name);
    *copy = (lent_copy){output->user_bytes, value->data, prn_value_bytes(value)};
    if (copy->bytes > output->bytes)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "output '%s' has %zu bytes, but %zu are bound to it", name,
                        copy->bytes, output->bytes);
    return PRONY_OK;
}

/* Refuses copies onto an input's bytes while another output is still a view of them. */
static prony_status check_views(const prony_session *session, const lent_copy *copies, size_t count, prony_error *error)
{
    const prn_cached_plan *cached = session->current;
    for (size_t k = 0; count && k < cached->program->output_count; k++) {
        const prony_value *value = &cached->plan->values[cached->plan->outputs[k]]->value;
        const size_t bytes = value->kind == PRONY_TENSOR && value->dtype != PRONY_STRING ? prn_value_bytes(value) : 0;
        if (session->outputs[k].user_bytes && session->outputs[k].user_bytes != value->data)
            continue; /* has its own copy */
        for (size_t c = 0; c < count; c++)
            if (overlap(value->data, bytes, copies[c].to, copies[c].bytes))
                return prn_fail(error, PRONY_INVALID_ARGUMENT,
                                "output '%s' overlaps an input that another output is bound onto",
                                session->model->file->graph.outputs[k].name);
    }
    return PRONY_OK;
}

/* One copy may overwrite bytes that another copy still has to read (an output is a view of an input that another output
 * is bound to). Then all sources are saved first. */
static prony_status run_copies(lent_copy *copies, size_t count, prony_error *error)
{
    size_t bytes = 0;
    bool aside = false;
    for (size_t k = 0; k < count; k++) {
        bytes += copies[k].bytes;
        for (size_t j = k + 1; j < count; j++)
            aside = aside || overlap(copies[k].to, copies[k].bytes, copies[j].from, copies[j].bytes);
    }
    char *room = aside ? prn_alloc(bytes) : NULL;
    if (aside && !room) return prn_no_memory(error);
    size_t used = 0;
    for (size_t k = 0; aside && k < count; k++) {
        memcpy(room + used, copies[k].from, copies[k].bytes);
        copies[k].from = room + used;
        used += copies[k].bytes;
    }
    for (size_t k = 0; k < count; k++)
        if (copies[k].bytes) memmove(copies[k].to, copies[k].from, copies[k].bytes);
    prn_free(room);
    return PRONY_OK;
}

prony_status prn_user_buffer_write(prony_session *session, prony_error *error)
{
    const size_t outputs = session->outputs ? session->current->program->output_count : 0;
    if (outputs == 0) return PRONY_OK;
    lent_copy few[8], *copies = outputs <= 8 ? few : prn_calloc(outputs, sizeof *copies);
    size_t count = 0;
    if (!copies) return prn_no_memory(error);
    prony_status status = PRONY_OK;
    for (size_t k = 0; k < outputs && status == PRONY_OK; k++) {
        bool needed;
        status = user_buffers_copy_of(session, k, &copies[count], &needed, error);
        count += needed;
    }
    if (status == PRONY_OK) status = check_views(session, copies, count, error);
    if (status == PRONY_OK) status = run_copies(copies, count, error);
    if (copies != few) prn_free(copies);
    return status;
}
