/* The runs of a batcher: combines requests along the first dimension, splits outputs again, and makes the trial that
 * compares combined with separate results. */
#include "base/os/clock.h"
#include "engine/session/batcher.h"
#include "loaders/tensors/tensor_file.h"
#include "ops/kernels/vector/number.h"

#include <math.h>
#include <string.h>

prony_status prn_server_create(prn_server *server, prony_model *model, const prony_session_options *options, int index,
                               int sharers, prony_error *error)
{
    prony_session_options own = *options;
    own.no_profile = true;
    server->input_count = prony_model_input_count(model);
    server->output_count = prony_model_output_count(model);
    server->views = prn_calloc(server->output_count + 1, sizeof *server->views);
    server->outputs = prn_calloc(server->output_count + 1, sizeof *server->outputs);
    if (!server->views || !server->outputs) return prn_no_memory(error);
    return prn_session_create_among(&server->session, model, &own, index, sharers, error);
}

void prn_server_release(prn_server *server)
{
    prony_session_release(server->session);
    prn_free(server->views);
    prn_free(server->outputs);
}

bool prn_requests_alike(const prn_request *a, const prn_request *b, size_t input_count)
{
    if (a->alone || b->alone) return false;
    for (size_t i = 0; i < input_count; i++)
        if (a->inputs[i]->dtype != b->inputs[i]->dtype || !prn_shape_equal(&a->inputs[i]->shape, &b->inputs[i]->shape))
            return false;
    return true;
}

static prony_status check_port(const prony_model *model, const prony_value_info *port, const char *what, bool strings,
                               int64_t max_batch, prony_error *error)
{
    const char *name = model->file->name;
    if (port->kind != PRONY_TENSOR || (port->dtype == PRONY_STRING && !strings))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "%s: %s '%s' is not a numeric tensor, so requests cannot be combined (batches of up to %lld)",
                        name, what, port->name, (long long)max_batch);
    if (port->shape.rank == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "%s: %s '%s' has no dimension, so requests cannot be combined (batches of up to %lld)", name,
                        what, port->name, (long long)max_batch);
    if (port->shape.rank > 0 && port->shape.dim[0] >= 0)
        return prn_fail(
            error, PRONY_INVALID_ARGUMENT,
            "%s: %s '%s' has a first dimension fixed to %lld, so requests cannot be combined (batches of up to "
            "%lld)",
            name, what, port->name, (long long)port->shape.dim[0], (long long)max_batch);
    return PRONY_OK;
}

prony_status prn_batch_check_model(const prony_model *model, int64_t max_batch, prony_error *error)
{
    if (prony_model_input_count(model) == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: a model without inputs has nothing to combine",
                        model->file->name);
    for (size_t i = 0; i < prony_model_input_count(model); i++)
        PRN_TRY(check_port(model, prony_model_input(model, i), "input", false, max_batch, error));
    for (size_t i = 0; i < prony_model_output_count(model); i++)
        PRN_TRY(check_port(model, prony_model_output(model, i), "output", true, max_batch, error));
    return PRONY_OK;
}

/* ---- one run ---- */

/* Copies the requests' samples one after another into the session's input buffers. */
static prony_status batcher_serve_bind(prn_server *server, const prn_request *requests, int64_t count,
                                       prony_error *error)
{
    prony_session *session = server->session;
    for (size_t i = 0; i < server->input_count; i++) {
        if (count == 1) {
            const char *name = session->model->file->graph.inputs[i].name;
            PRN_TRY(prony_session_set_input(session, name, requests->inputs[i], error));
            continue;
        }
        prony_value like = *requests->inputs[i];
        size_t bytes = prn_value_bytes(&like);
        void *data;
        like.shape.dim[0] = count;
        PRN_TRY(prn_session_input_room(session, i, &like, &data, error));
        uint8_t *to = data;
        for (const prn_request *r = requests; r; r = r->next, to += bytes)
            if (bytes) memcpy(to, r->inputs[i]->data, bytes);
    }
    return PRONY_OK;
}

/* Refuses an output that cannot be split into whole bytes per request. */
static prony_status check_cut(const prn_server *server, const prony_value *value, size_t index, int64_t count,
                              prony_error *error)
{
    const prn_model_file *file = server->session->model->file;
    char shape[PRN_SHAPE_TEXT_BYTES];
    if (value->kind == PRONY_TENSOR && value->shape.rank > 0 && value->shape.dim[0] == count &&
        (uint64_t)prony_shape_numel(&value->shape) / (uint64_t)count * prn_dtype_bits(value->dtype) % 8 == 0)
        return PRONY_OK;
    return prn_fail(error, PRONY_SHAPE_MISMATCH,
                    "%s: output '%s' of %lld samples together is %s, which is not a row per sample", file->name,
                    file->graph.outputs[index].name, (long long)count, prn_value_text(value, shape));
}

static prony_status batcher_serve_cut(const prn_server *server, int64_t count, prony_error *error)
{
    for (size_t k = 0; k < server->output_count && count > 1; k++) {
        const prony_value *whole;
        PRN_TRY(prony_session_output(server->session, k, &whole, error));
        PRN_TRY(check_cut(server, whole, k, count, error));
    }
    return PRONY_OK;
}

/* Views of row `row` of the session's outputs. */
static prony_status batcher_serve_show(prn_server *server, int64_t row, int64_t count, prony_error *error)
{
    for (size_t k = 0; k < server->output_count; k++) {
        const prony_value *whole;
        PRN_TRY(prony_session_output(server->session, k, &whole, error));
        server->views[k] = *whole;
        if (count > 1) {
            server->views[k].shape.dim[0] = 1;
            size_t bytes = prn_value_bytes(&server->views[k]);
            if (whole->data) server->views[k].data = (uint8_t *)whole->data + (size_t)row * bytes;
        }
        server->outputs[k] = &server->views[k];
    }
    return PRONY_OK;
}

static void batcher_serve_finish(prn_server *server, prn_request *requests, int64_t count, prony_batch_result result)
{
    prony_error error = {0};
    for (int64_t row = 0; requests; row++) {
        prn_request *next = requests->next;
        prony_batch_result own = result;
        if (own.status == PRONY_OK) own.status = batcher_serve_show(server, row, count, &error);
        own.message = own.status == PRONY_OK ? "" : result.status != PRONY_OK ? result.message : error.message;
        own.outputs = own.status == PRONY_OK ? server->outputs : NULL;
        own.output_count = own.status == PRONY_OK ? server->output_count : 0;
        own.submitted_ns = requests->submitted_ns;
        own.index = row;
        requests->done(requests->user, &own);
        prn_free(requests);
        requests = next;
    }
}

void prn_server_serve(prn_server *server, prn_request *requests, int64_t count)
{
    prony_error error = {0};
    int64_t started = prn_now_ns();
    prony_status status = batcher_serve_bind(server, requests, count, &error);
    if (status == PRONY_OK) status = prony_session_run(server->session, &error);
    if (status == PRONY_OK) status = batcher_serve_cut(server, count, &error);
    if (status != PRONY_OK && count > 1) {
        while (requests) {
            prn_request *next = requests->next;
            requests->next = NULL;
            prn_server_serve(server, requests, 1);
            requests = next;
        }
        return;
    }
    prony_batch_result result = {
        .status = status, .message = error.message, .batch = count, .started_ns = started, .finished_ns = prn_now_ns()};
    batcher_serve_finish(server, requests, count, result);
}

/* ---- the trial ---- */

/* Generated samples: [inputs], each of `count` rows; a free first dimension is 1. */
typedef struct samples {
    prony_value *values;
    size_t inputs;
} samples;

static void samples_free(samples *s)
{
    for (size_t i = 0; s->values && i < s->inputs; i++) prn_free_aligned(s->values[i].data);
    prn_free(s->values);
}

/* Draws rows one by one, so that they differ; `count` 1: the same as prony_session_generate_inputs. */
static prony_status samples_make(samples *s, const prn_server *server, int64_t count, prony_error *error)
{
    const prony_session *session = server->session;
    const prn_model_file *file = session->model->file;
    prn_input_shapes shapes;
    s->inputs = server->input_count;
    s->values = prn_calloc(s->inputs + 1, sizeof *s->values);
    if (!s->values) return prn_no_memory(error);
    prony_status status = prn_input_shapes_init(&shapes, session->model, error);
    if (status == PRONY_OK) status = prn_input_shapes_resolve(&shapes, session->model, &session->options, error);
    if (status == PRONY_OK) status = prn_input_shapes_closed(&shapes, session->model, error);
    for (size_t i = 0; i < s->inputs && status == PRONY_OK; i++) {
        const prony_value_info *port = &file->graph.inputs[i];
        prony_value *value = &s->values[i];
        *value = (prony_value){.kind = port->kind, .dtype = port->dtype, .shape = shapes.shapes[i]};
        if (port->kind != PRONY_TENSOR || port->dtype == PRONY_STRING || value->shape.rank < 0)
            status = prn_fail(error, PRONY_UNSUPPORTED, "%s: input '%s' cannot be generated", file->name, port->name);
        if (status == PRONY_OK && count > 1) value->shape.dim[0] = 1;
        size_t bytes = status == PRONY_OK ? prn_value_bytes(value) : 0;
        if (bytes == SIZE_MAX || (bytes && (uint64_t)count > SIZE_MAX / bytes))
            status = prn_fail(error, PRONY_LIMIT, "%s: input '%s' is too large: its size in bytes does not fit 64 bits",
                              file->name, port->name);
        uint8_t *data = status == PRONY_OK ? prn_alloc_aligned(64, bytes * (size_t)count + 1) : NULL;
        if (status == PRONY_OK && !data) status = prn_no_memory(error);
        for (int64_t row = 0; status == PRONY_OK && row < count; row++) {
            value->data = data + (size_t)row * bytes;
            prn_random_fill(value, (uint64_t)row, port->name);
        }
        value->data = data;
    }
    prn_input_shapes_free(&shapes);
    return status;
}

/* Rows [row, row + count) as the session's inputs, and a run. */
static prony_status batcher_serve_run_rows(prn_server *server, const samples *s, int64_t row, int64_t count,
                                           prony_error *error)
{
    for (size_t i = 0; i < s->inputs; i++) {
        prony_value like = s->values[i];
        size_t bytes = prn_value_bytes(&like);
        void *data;
        if (count > 1) like.shape.dim[0] = count;
        PRN_TRY(prn_session_input_room(server->session, i, &like, &data, error));
        if (bytes) memcpy(data, (const uint8_t *)s->values[i].data + (size_t)row * bytes, bytes * (size_t)count);
    }
    return prony_session_run(server->session, error);
}

static double batcher_serve_element(const prony_value *value, size_t index)
{
    if (value->dtype == PRONY_FLOAT32) return ((const float *)value->data)[index];
    if (value->dtype == PRONY_FLOAT64) return ((const double *)value->data)[index];
    if (value->dtype == PRONY_FLOAT16) return prn_f16_to_f32(((const uint16_t *)value->data)[index]);
    return prn_bf16_to_f32(((const uint16_t *)value->data)[index]);
}

/* Largest difference over the largest magnitude; other types than floats differ by 1 or not at all. */
static double difference(const prony_value *a, const prony_value *b)
{
    size_t bytes = prn_value_bytes(a);
    if (a->kind != b->kind || a->dtype != b->dtype || !prn_shape_equal(&a->shape, &b->shape)) return 1;
    if (bytes == 0 || memcmp(a->data, b->data, bytes) == 0) return 0;
    bool floats = a->dtype == PRONY_FLOAT32 || a->dtype == PRONY_FLOAT64 || a->dtype == PRONY_FLOAT16 ||
                  a->dtype == PRONY_BFLOAT16;
    if (!floats) return 1;
    double most = 0, scale = 0;
    for (size_t i = 0; i < (size_t)prony_shape_numel(&a->shape); i++) {
        double x = batcher_serve_element(a, i), y = batcher_serve_element(b, i);
        if (isnan(x) && isnan(y)) continue;
        if (x != y && !(fabs(x - y) <= most)) most = fabs(x - y);
        if (fabs(x) > scale) scale = fabs(x);
    }
    return scale > 0 && most / scale < 1 ? most / scale : 1;
}

/* The outputs of `count` samples together against those of each alone. */
static prony_status compare_rows(prn_server *server, const samples *s, int64_t count, prony_batch_trial *trial,
                                 prony_error *error)
{
    size_t outputs = server->output_count;
    prony_value *together = prn_calloc(outputs + 1, sizeof *together);
    if (!together) return prn_no_memory(error);
    prony_status status = PRONY_OK;
    for (size_t k = 0; k < outputs && status == PRONY_OK; k++) {
        const prony_value *whole;
        status = prony_session_output(server->session, k, &whole, error);
        if (status == PRONY_OK) status = prn_value_copy(&together[k], whole, error);
    }
    for (int64_t row = 0; row < count && status == PRONY_OK; row++) {
        status = batcher_serve_run_rows(server, s, row, 1, error);
        for (size_t k = 0; k < outputs && status == PRONY_OK; k++) {
            const prony_value *alone;
            prony_value part = together[k];
            if (part.dtype == PRONY_STRING) continue;
            status = prony_session_output(server->session, k, &alone, error);
            part.shape.dim[0] = 1;
            if (part.data) part.data = (uint8_t *)part.data + (size_t)row * prn_value_bytes(&part);
            double d = status == PRONY_OK ? difference(alone, &part) : 0;
            if (d > trial->largest) trial->largest = d;
        }
    }
    for (size_t k = 0; k < outputs; k++) prn_value_free_parts(&together[k]);
    prn_free(together);
    return status;
}

static prony_status try_size(prn_server *server, int64_t size, prony_batch_trial *trial, prony_error *error)
{
    samples s = {0};
    prony_status status = samples_make(&s, server, size, error);
    if (status == PRONY_OK) status = batcher_serve_run_rows(server, &s, 0, size, error);
    if (status == PRONY_OK && size > 1) status = batcher_serve_cut(server, size, error);
    if (status == PRONY_OK && size > 1) status = compare_rows(server, &s, size, trial, error);
    samples_free(&s);
    return status;
}

prony_status prn_server_try(prn_server *server, const int64_t *sizes, int count, prony_batch_trial *trial,
                            prony_error *error)
{
    for (int i = 0; i < count; i++) {
        prony_error own = {0};
        prony_status status = try_size(server, sizes[i], trial, &own);
        if (status == PRONY_OK) continue;
        trial->known = false;
        bool apart = i > 0 && status == PRONY_SHAPE_MISMATCH; /* runs alone, but not combined */
        if (!apart && status != PRONY_OUT_OF_MEMORY && status != PRONY_LIMIT) return PRONY_OK; /* requests will fail */
        if (error) *error = own;
        return status;
    }
    trial->known = count > 1;
    trial->identical = trial->known && trial->largest == 0;
    return PRONY_OK;
}
