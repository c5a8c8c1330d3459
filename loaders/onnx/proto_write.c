/* Implements proto_write.h. */
#include "loaders/onnx/proto_write.h"
#include "loaders/onnx/reader.h"

#include <string.h>

static void put_raw(prn_proto *b, const void *data, size_t size)
{
    if (b->failed || !size) return;
    b->failed =
        size > SIZE_MAX / 2 - b->size || (!b->counts && (!data || !PRN_GROW(b->data, b->capacity, b->size + size)));
    if (b->failed) return;
    if (!b->counts) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void put_varint(prn_proto *b, uint64_t value)
{
    uint8_t out[10];
    size_t n = 0;
    for (; value > 127; value >>= 7) out[n++] = (uint8_t)(value & 127) | 128;
    out[n++] = (uint8_t)value;
    put_raw(b, out, n);
}

void prn_proto_put_int(prn_proto *b, uint32_t field, int64_t value)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)value);
}

void prn_proto_put_bytes(prn_proto *b, uint32_t field, const void *data, size_t size)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, size);
    put_raw(b, data, size);
}

void prn_proto_put_text(prn_proto *b, uint32_t field, const char *text)
{
    prn_proto_put_bytes(b, field, text, strlen(text));
}

void prn_proto_put_message(prn_proto *to, uint32_t field, prn_proto *message)
{
    to->failed = to->failed || message->failed;
    prn_proto_put_bytes(to, field, message->data, message->size);
    prn_free(message->data);
    *message = (prn_proto){0};
}

void prn_proto_put_tensor(prn_proto *graph, uint32_t field, const char *name, prony_dtype dtype,
                          const prony_shape *shape, const void *data, size_t bytes)
{
    prn_proto b = {.counts = graph->counts};
    for (int d = 0; d < shape->rank; d++) prn_proto_put_int(&b, PRN_TENSOR_DIMS, shape->dim[d]);
    prn_proto_put_int(&b, PRN_TENSOR_TYPE, dtype);
    prn_proto_put_text(&b, PRN_TENSOR_NAME, name);
    prn_proto_put_bytes(&b, PRN_TENSOR_RAW, data, bytes);
    prn_proto_put_message(graph, field, &b);
}

void prn_proto_put_vector(prn_proto *graph, const char *name, prony_dtype dtype, int64_t count, const void *data)
{
    const prony_shape shape = {1, {count}};
    prn_proto_put_tensor(graph, PRN_GRAPH_INITIALIZER, name, dtype, &shape, data, prony_dtype_bytes(dtype, count));
}

void prn_proto_put_field(prn_proto *b, const prn_field *field)
{
    put_varint(b, (uint64_t)field->number << 3 | (uint64_t)field->type);
    if (field->type == PRN_WIRE_VARINT) put_varint(b, field->bits);
    if (field->type == PRN_WIRE_BYTES) put_varint(b, field->bytes.size);
    if (field->type != PRN_WIRE_VARINT) put_raw(b, field->bytes.data, field->bytes.size);
}

void prn_proto_put_attribute_int(prn_proto *node, const char *name, int64_t value)
{
    enum { NAME = 1, INT = 3, TYPE = 20 };
    prn_proto attribute = {0};
    prn_proto_put_text(&attribute, NAME, name);
    prn_proto_put_int(&attribute, INT, value);
    prn_proto_put_int(&attribute, TYPE, PRN_ATTR_INT);
    prn_proto_put_message(node, PRN_NODE_ATTRIBUTE, &attribute);
}

void prn_proto_put_opset(prn_proto *model, const char *domain, int64_t version)
{
    prn_proto opset = {0};
    prn_proto_put_text(&opset, 1, domain);
    prn_proto_put_int(&opset, 2, version);
    prn_proto_put_message(model, PRN_MODEL_OPSET, &opset);
}

prony_status prn_proto_put_initializer(prn_proto *graph, const prn_initializer *tensor, prony_error *error)
{
    if (tensor->value.dtype == PRONY_STRING)
        return prn_fail(error, PRONY_UNSUPPORTED, "weight " PRN_NAME ": strings in a file of their own", tensor->name);
    prn_proto_put_tensor(graph, PRN_GRAPH_INITIALIZER, tensor->name, tensor->value.dtype, &tensor->value.shape,
                         tensor->value.data, (size_t)tensor->bytes);
    return PRONY_OK;
}
