/* prony_model_save: writes a model in memory as one file, or as a file with external weights. */
#include "base/os/file.h"
#include "engine/bind/engine_model.h"
#include "loaders/onnx/proto_write.h"
#include "loaders/onnx/wire.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Smaller tensors stay in the model file; chosen without measurement. */
enum { LEAST_EXTERNAL = 1024, ALIGNMENT = 64 };

typedef struct saver {
    prn_file_writer *weights; /* NULL: everything in one file */
    const char *location;     /* of the weights, as named in the model */
    uint64_t offset;
} saver;

/* ---- a tensor with external data ---- */

static void put_entry(prn_proto *tensor, const char *key, const char *value)
{
    prn_proto entry = {0};
    prn_proto_put_text(&entry, 1, key);
    prn_proto_put_text(&entry, 2, value);
    prn_proto_put_message(tensor, PRN_TENSOR_EXTERNAL, &entry);
}

static void put_bytes(saver *s, prn_span raw)
{
    static const char zeros[ALIGNMENT];
    const size_t gap = (ALIGNMENT - s->offset % ALIGNMENT) % ALIGNMENT;
    (void)prn_file_write(s->weights, zeros, gap); /* the commit reports a failure */
    (void)prn_file_write(s->weights, (const char *)raw.data, raw.size);
    s->offset += gap;
}

/* Copies a tensor into the message; large raw data goes to the external file, with its location, offset and length. */
static void put_tensor(saver *s, prn_proto *graph, const prn_field *field, prn_wire tensor)
{
    prn_wire walk = tensor;
    prn_proto out = {0};
    prn_span raw = {0};
    char text[32];
    for (prn_field inner; prn_wire_next(&walk, &inner);)
        if (inner.number == PRN_TENSOR_RAW) raw = prn_wire_span(&walk, &inner);
    if (raw.size < LEAST_EXTERNAL) {
        prn_proto_put_bytes(graph, field->number, field->bytes.data, field->bytes.size);
        return;
    }
    for (prn_field inner; prn_wire_next(&tensor, &inner);) {
        if (inner.number == PRN_TENSOR_RAW || inner.number == PRN_TENSOR_LOCATION) continue;
        prn_proto_put_field(&out, &inner);
    }
    put_bytes(s, raw);
    put_entry(&out, "location", s->location);
    snprintf(text, sizeof text, "%llu", (unsigned long long)s->offset);
    put_entry(&out, "offset", text);
    snprintf(text, sizeof text, "%zu", raw.size);
    put_entry(&out, "length", text);
    prn_proto_put_int(&out, PRN_TENSOR_LOCATION, 1);
    prn_proto_put_message(graph, field->number, &out);
    s->offset += raw.size;
}

/* Writes the message, with large initializers of its graph moved to the external file. */
static void model_save_put_model(saver *s, prn_proto *out, prn_wire model)
{
    for (prn_field field; prn_wire_next(&model, &field);) {
        if (field.number != PRN_MODEL_GRAPH) {
            prn_proto_put_field(out, &field);
            continue;
        }
        prn_proto graph = {0};
        prn_wire wire = prn_wire_enter(&model, &field);
        for (prn_field inner; prn_wire_next(&wire, &inner);) {
            if (inner.number == PRN_GRAPH_INITIALIZER)
                put_tensor(s, &graph, &inner, prn_wire_enter(&wire, &inner));
            else
                prn_proto_put_field(&graph, &inner);
        }
        prn_proto_put_message(out, PRN_MODEL_GRAPH, &graph);
    }
}

/* ---- files ---- */

static prony_status write_file(const char *path, const void *data, size_t size, prony_error *error)
{
    prn_file_writer *writer;
    PRN_TRY(prn_file_create(&writer, path, error));
    (void)prn_file_write(writer, data, size);
    return prn_file_commit(writer, error);
}

/* Writes PATH.data first and the model second, so that no model refers to missing data. A failure removes PATH.data. */
static prony_status save_external(const prony_model *model, const char *path, prony_error *error)
{
    const size_t length = strlen(path) + sizeof ".data";
    char *beside = prn_alloc(length);
    prn_proto out = {0};
    saver s = {0};
    if (!beside) return prn_no_memory(error);
    snprintf(beside, length, "%s.data", path);
    const char *slash = strrchr(beside, '/');
    s.location = slash ? slash + 1 : beside;
    prony_status status = prn_file_create(&s.weights, beside, error);
    if (status == PRONY_OK) {
        model_save_put_model(&s, &out, prn_wire_make(model->file->data, (size_t)model->file->file_bytes));
        if (out.failed) {
            prn_file_abandon(s.weights);
            status = prn_no_memory(error);
        } else {
            status = prn_file_commit(s.weights, error);
        }
    }
    if (status == PRONY_OK) {
        status = write_file(path, out.data, out.size, error);
        if (status != PRONY_OK) (void)unlink(beside);
    }
    prn_free(out.data);
    prn_free(beside);
    return status;
}

prony_status prony_model_save(const prony_model *model, const char *path, bool external, prony_error *error)
{
    if (!model || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_model_save: an argument is NULL");
    if (!model->owned)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%.300s: the model was not made in memory", model->file->name);
    if (external) return save_external(model, path, error);
    return write_file(path, model->file->data, (size_t)model->file->file_bytes, error);
}

bool prony_model_is_external(const prony_model *model)
{
    return model && model->file->external;
}
