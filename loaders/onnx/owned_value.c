/* Values that own their data, from any kind of file. */
#include "loaders/onnx/owned_value.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "loaders/onnx/reader.h"

#include <string.h>

void prn_owned_fill(prony_value *value, const uint8_t *from)
{
    if (!from) return; /* an empty tensor may have no data */
    size_t bytes = prn_value_bytes(value);
    uint8_t *to = value->data;
    if (value->dtype == PRONY_BOOL) {
        for (size_t i = 0; i < bytes; i++) to[i] = from[i] != 0;
    } else if (bytes) {
        memcpy(to, from, bytes);
    }
}

prony_status prn_owned_tensor(prony_value *out, prony_dtype dtype, const prony_shape *shape, size_t extra,
                              prony_error *error)
{
    *out = (prony_value){.kind = PRONY_TENSOR, .dtype = dtype, .shape = *shape};
    size_t bytes = prn_value_bytes(out), total;
    if (bytes == SIZE_MAX || __builtin_add_overflow(bytes, extra, &total)) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s has no known size", prn_value_text(out, text));
    }
    out->data = prn_alloc_aligned(64, total);
    return out->data ? PRONY_OK : prn_no_memory(error);
}

void prn_value_free(prony_value *value)
{
    if (!value) return;
    prn_value_free_parts(value);
    prn_free(value);
}

void prn_value_free_parts(prony_value *value)
{
    for (size_t i = 0; i < value->count; i++) prn_value_free_parts(&value->items[i]);
    prn_free(value->items);
    prn_free_aligned(value->data);
    value->items = NULL;
    value->data = NULL;
    value->count = 0;
}

prony_status prn_owned_copy(const prony_value *from, prony_value *out, prony_error *error)
{
    if (!from->data && prony_shape_numel(&from->shape) != 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "a tensor has no data");
    if (from->dtype != PRONY_STRING) {
        PRN_TRY(prn_owned_tensor(out, from->dtype, &from->shape, 0, error));
        prn_owned_fill(out, from->data);
        return PRONY_OK;
    }
    const prony_string *strings = from->data;
    const int64_t count = strings ? prony_shape_numel(&from->shape) : 0;
    size_t text_bytes = 0;
    for (int64_t i = 0; i < count; i++) text_bytes += strings[i].size;
    PRN_TRY(prn_owned_tensor(out, PRONY_STRING, &from->shape, text_bytes, error));
    prony_string *copies = out->data;
    char *text = (char *)(copies + count);
    for (int64_t i = 0; i < count; i++) {
        copies[i] = (prony_string){text, strings[i].size};
        if (strings[i].size) memcpy(text, strings[i].data, strings[i].size);
        text += strings[i].size;
    }
    return PRONY_OK;
}

static prony_status copy_value(prony_value *out, const prony_value *from, int depth, prony_error *error)
{
    if (from->kind == PRONY_TENSOR) return prn_owned_copy(from, out, error);
    if (depth >= PRN_MAX_NESTING || (from->count && !from->items) ||
        (from->kind == PRONY_OPTIONAL && from->count > 1)) {
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "a sequence or optional has no items, or is nested too deep");
    }
    *out = (prony_value){.kind = from->kind, .dtype = from->dtype, .shape = prn_shape_unknown()};
    if (!from->count) return PRONY_OK;
    out->items = prn_calloc(from->count, sizeof *out->items);
    if (!out->items) return prn_no_memory(error);
    for (size_t i = 0; i < from->count; i++) {
        if (from->items[i].dtype != from->dtype) {
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "item %zu of a sequence or optional of %s is %s", i,
                            prony_dtype_name(from->dtype), prony_dtype_name(from->items[i].dtype));
        }
        out->count = i + 1;
        PRN_TRY(copy_value(&out->items[i], &from->items[i], depth + 1, error));
    }
    return PRONY_OK;
}

prony_status prn_value_copy(prony_value *out, const prony_value *from, prony_error *error)
{
    *out = (prony_value){0};
    prony_status status = copy_value(out, from, 0, error);
    if (status != PRONY_OK) prn_value_free_parts(out);
    return status;
}
