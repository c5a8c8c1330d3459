/* A session's inputs: copied, user-bound or generated, and their shapes. */
#include "base/threads/parallel.h"
#include "engine/session/session.h"
#include "loaders/tensors/tensor_file.h"

void prn_session_inputs_moved(prony_session *session)
{
    for (size_t i = 0; i < PRN_PLAN_CACHE; i++) session->cache[i].pointed = false;
    session->open.pointed = session->parked.open.pointed = false;
}

void prn_session_input_drop(prn_session_input *input)
{
    if (input->value.data == input->room || input->value.data == input->user_bytes) input->value.data = NULL;
    prn_value_free_parts(&input->value);
    input->value = (prony_value){0};
    input->user_bytes = NULL;
}

/* Bytes for a tensor of numbers; kept from one run to the next. */
static prony_status session_inputs_reserve(prony_session *session, prn_session_input *input, const prony_value *like,
                                           prony_error *error)
{
    size_t bytes = prn_value_bytes(like);
    if (bytes == SIZE_MAX)
        return prn_fail(error, PRONY_LIMIT, "%s: input '%s' is too large: its size in bytes does not fit 64 bits",
                        session->model->file->name, session->model->file->graph.inputs[input - session->inputs].name);
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
    input->user_bytes = NULL;
    input->value = (prony_value){.kind = PRONY_TENSOR, .dtype = like->dtype, .shape = like->shape, .data = input->room};
    return PRONY_OK;
}

prony_status prn_session_input_room(prony_session *session, size_t index, const prony_value *like, void **data,
                                    prony_error *error)
{
    prn_session_input *input = &session->inputs[index];
    PRN_TRY(session_inputs_reserve(session, input, like, error));
    input->set = true;
    *data = input->value.data;
    return PRONY_OK;
}

/* Copies strings, sequences and optionals each time. */
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

/* Drops the assumptions about an input that the caller now gives. */
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
        return prn_fail(
            error, PRONY_INVALID_ARGUMENT,
            "%s: input '%s': invalid value: its kind, type, rank or an extent is invalid, or its items are missing",
            file->name, name);
    prony_status status = prn_port_accept(&file->graph.inputs[*index], value, &own, file->name, error);
    prn_dims_free(&own);
    if (status == PRONY_OK) status = prn_open_dims_check(session, *index, &value->shape, error);
    if (status == PRONY_OK && value->kind == PRONY_TENSOR && value->dtype != PRONY_STRING && !value->data &&
        prony_shape_numel(&value->shape) != 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: input '%s' has no data", file->name, name);
    if (status == PRONY_OK) forget_assumed(session, *index);
    return status;
}

static prony_status session_inputs_set_input(prony_session *session, const char *name, const prony_value *value,
                                             prony_error *error)
{
    size_t index;
    PRN_TRY(prn_ports_find(&index, session->model->file, name, error));
    prony_value full = {.kind = PRONY_OPTIONAL, .dtype = value->dtype, .shape = prn_shape_unknown(), .count = 1};
    bool wraps = session->model->file->graph.inputs[index].kind == PRONY_OPTIONAL && value->kind != PRONY_OPTIONAL;
    if (wraps && prn_value_valid(value)) { /* an optional may also be given by its element */
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
    PRN_TRY(session_inputs_reserve(session, input, value, error));
    size_t bytes = prn_value_bytes(value);
    prn_cancellable_copy(input->value.data, value->data, bytes);
    input->set = !prn_cancelled(); /* an incomplete input is not set */
    return prn_cancel_check(error);
}

prony_status prony_session_set_input(prony_session *session, const char *name, const prony_value *value,
                                     prony_error *error)
{
    if (!session || !name || !value)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_set_input: an argument is NULL");
    PRN_TRY(prn_session_lock(session, error));
    return prn_session_unlock(session, session_inputs_set_input(session, name, value, error));
}

static prony_status reset_input(prony_session *session, const char *name, prony_error *error)
{
    size_t index;
    PRN_TRY(prn_ports_find(&index, session->model->file, name, error));
    prn_session_input *input = &session->inputs[index];
    prn_session_input_drop(input);
    input->set = false;
    prn_session_inputs_moved(session);
    return PRONY_OK;
}

prony_status prony_session_reset_input(prony_session *session, const char *name, prony_error *error)
{
    if (!session || !name)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_reset_input: an argument is NULL");
    PRN_TRY(prn_session_lock(session, error));
    return prn_session_unlock(session, reset_input(session, name, error));
}

const prony_value *prony_session_input_value(const prony_session *session, size_t index)
{
    const size_t count = session ? session->input_count + session->optional_count : 0;
    return index < count && session->inputs[index].set ? &session->inputs[index].value : NULL;
}

/* The current value of an optional input: its own, or the model's default. */
static const prony_value *optional_value(const prony_session *session, size_t index)
{
    const prn_graph *graph = &session->model->file->graph;
    const prn_session_input *input = &session->inputs[index];
    return input->set ? &input->value : &graph->initializers[graph->defaults[index - graph->input_count]].value;
}

/* The shapes of all inputs for a run now. `s` has to be freed, also after a failure. */
static prony_status resolve_shapes(prony_session *session, prn_input_shapes *s, prony_error *error)
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
    if (status == PRONY_OK) status = prn_input_shapes_resolve(s, session->model, &session->options, error);
    s->bound = NULL;
    prn_free(bound);
    return status;
}

static prony_status generate_input(prony_session *session, size_t index, const prony_shape *shape, uint64_t seed,
                                   prony_error *error)
{
    const prn_model_file *file = session->model->file;
    const prony_value_info *port = &file->graph.inputs[index];
    prn_session_input *input = &session->inputs[index];
    prony_value like = {.kind = port->kind, .dtype = port->dtype, .shape = *shape};
    if (port->kind != PRONY_TENSOR || port->dtype == PRONY_STRING)
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "%s: input '%s': values can be generated for numeric tensors only; set one", file->name,
                        port->name);
    if (shape->rank < 0)
        return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: input '%s' declares no shape; set one (--shape %s=…)",
                        file->name, port->name, port->name);
    PRN_TRY(prn_open_dims_check(session, index, shape, error));
    PRN_TRY(session_inputs_reserve(session, input, &like, error));
    prn_random_fill(&input->value, seed, port->name);
    PRN_TRY(prn_cancel_check(error));
    input->set = true;
    session->seed = seed;
    session->seed_known = true;
    return PRONY_OK;
}

static prony_status session_inputs_generate(prony_session *session, uint64_t seed, prony_error *error)
{
    prn_input_shapes s;
    prony_status status = resolve_shapes(session, &s, error);
    if (status == PRONY_OK) status = prn_input_shapes_closed(&s, session->model, error);
    for (size_t i = 0; i < session->input_count && status == PRONY_OK; i++)
        if (!session->inputs[i].set) status = generate_input(session, i, &s.shapes[i], seed, error);
    if (status == PRONY_OK && s.assumed.count) { /* moved to the session; a later call without assumptions leaves it */
        prn_free(session->assumed.items);
        session->assumed = s.assumed;
        s.assumed = (prn_assumed_list){0};
    }
    prn_input_shapes_free(&s);
    return status;
}

prony_status prony_session_input(const prony_session *session, const char *name, prony_value_info *out,
                                 prony_error *error)
{
    if (!session || !name || !out)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_input: an argument is NULL");
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
    if (status == PRONY_OK && index < session->input_count)
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
    if (index >= session->input_count) {
        *out = optional_value(session, index)->shape;
        return prn_session_unlock(session, PRONY_OK);
    }
    prony_status status = resolve_shapes(session, &s, error);
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
    return prn_session_unlock(session, session_inputs_generate(session, seed, error));
}
