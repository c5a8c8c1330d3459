/* prony_session_bind_input and prony_session_bind_output: bytes of the caller's, read and written where they lie.
 *
 * A tensor of numbers that is aligned for its elements is read in place. An output is made in place if it is the only graph
 * output in a buffer of the arena, and all of it; what is a view of an input or a constant, shares bytes with another
 * output, or gets its shape in the run, is copied behind the run. */
#include "engine/session/session.h"

#include <string.h>

static bool aligned(const void *bytes, prony_dtype dtype)
{
    size_t element = prony_dtype_bytes(dtype, 1);
    return element == 0 || (uintptr_t)bytes % element == 0;
}

static prony_status bind_input(prony_session *session, const char *name, const prony_value *value, prony_error *error)
{
    size_t index;
    PRN_TRY(prn_session_accept(session, name, value, &index, error));
    prn_session_input *input = &session->inputs[index];
    if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING)
        return prn_fail(error, PRONY_UNSUPPORTED, "%s: input '%s': only tensors of numbers can be bound; set it",
                        session->model->file->name, name);
    if (!value->data || !aligned(value->data, value->dtype)) {
        void *room;
        PRN_TRY(prn_session_input_room(session, index, value, &room, error));
    } else {
        bool moved = input->value.data != value->data;
        if (moved) prn_session_input_drop(input);
        if (moved) prn_session_inputs_moved(session);
        input->value = (prony_value){.dtype = value->dtype, .shape = value->shape, .data = value->data};
        input->set = true;
    }
    input->lent = value->data;
    return PRONY_OK;
}

prony_status prony_session_bind_input(prony_session *session, const char *name, const prony_value *value,
                                      prony_error *error)
{
    if (!session || !name || !value)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_bind_input: an argument is NULL");
    PRN_TRY(prn_session_lock(session, error));
    return prn_session_unlock(session, bind_input(session, name, value, error));
}

static prony_status bind_output(prony_session *session, size_t index, void *data, size_t bytes, prony_error *error)
{
    const size_t count = session->model->file->graph.output_count;
    if (index >= count)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: there is no output %zu; the model has %zu",
                        session->model->file->name, index, count);
    if (!session->outputs) session->outputs = prn_calloc(count, sizeof *session->outputs);
    if (!session->outputs) return prn_no_memory(error);
    prn_session_output *output = &session->outputs[index];
    if (output->lent != data || output->bytes != bytes) prn_session_inputs_moved(session);
    *output = (prn_session_output){data, bytes};
    return PRONY_OK;
}

prony_status prony_session_bind_output(prony_session *session, size_t index, void *data, size_t bytes,
                                       prony_error *error)
{
    if (!session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_bind_output: session is NULL");
    PRN_TRY(prn_session_lock(session, error));
    return prn_session_unlock(session, bind_output(session, index, data, bytes, error));
}

prony_status prony_session_planned_output(const prony_session *session, size_t index, prony_value *out, prony_error *error)
{
    if (!session || !out)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_planned_output: an argument is NULL");
    const prn_cached_plan *current = session->current;
    const char *file = session->model->file->name;
    if (!current) return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: nothing is planned yet", file);
    if (index >= current->program->output_count)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: there is no output %zu; the model has %zu", file, index,
                        current->program->output_count);
    const prn_plan_value *planned = current->plan->values[current->plan->outputs[index]];
    *out = (prony_value){.kind = planned->value.kind, .dtype = planned->value.dtype, .shape = planned->value.shape};
    if (planned->dynamic) out->shape = (prony_shape){.rank = -1};
    return PRONY_OK;
}

/* The root that output k is all of, alone; PRN_NO_VALUE: there is none. */
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

void prn_lent_point(prony_session *session, prn_cached_plan *cached)
{
    const size_t count = session->outputs ? cached->program->output_count : 0;
    prn_plan *plan = cached->plan;
    for (size_t k = 0; k < count; k++) plan->values[prn_plan_root(plan, plan->outputs[k], NULL)]->lent = NULL;
    for (size_t k = 0; k < count; k++) {
        const prn_session_output *output = &session->outputs[k];
        const prn_plan_value *value = plan->values[plan->outputs[k]];
        if (!output->lent || output->bytes < value->bytes || !aligned(output->lent, value->value.dtype)) continue;
        uint32_t root = own_root(plan, count, k);
        if (root != PRN_NO_VALUE) plan->values[root]->lent = output->lent;
    }
}

void prn_lent_read(prony_session *session)
{
    for (size_t i = 0; i < session->input_count + session->optional_count; i++) {
        prn_session_input *input = &session->inputs[i];
        if (input->lent && input->lent != input->value.data)
            memcpy(input->value.data, input->lent, prn_value_bytes(&input->value));
    }
}

prony_status prn_lent_write(prony_session *session, prony_error *error)
{
    const prn_cached_plan *cached = session->current;
    for (size_t k = 0; session->outputs && k < cached->program->output_count; k++) {
        const prn_session_output *output = &session->outputs[k];
        const prony_value *value = &cached->plan->values[cached->plan->outputs[k]]->value;
        if (!output->lent || value->data == output->lent) continue;
        const char *name = session->model->file->graph.outputs[k].name;
        if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING)
            return prn_fail(error, PRONY_UNSUPPORTED, "output '%s': only tensors of numbers can be written to bound bytes", name);
        size_t bytes = prn_value_bytes(value);
        if (bytes > output->bytes)
            return prn_fail(error, PRONY_OUT_OF_RANGE, "output '%s' has %zu bytes; %zu are bound to it", name, bytes,
                            output->bytes);
        if (bytes) memcpy(output->lent, value->data, bytes);
    }
    return PRONY_OK;
}
