/* Tensors as bytes: a header of the type and shape, and the elements. */
#include "bench/cluster/pipeline.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_NUMBERS = 2 + PRONY_MAX_RANK };

size_t tensor_bytes(const prony_value *value)
{
    const int64_t count = prony_shape_numel(&value->shape);
    return count < 0 ? 0 : prony_dtype_bytes(value->dtype, count);
}

char *tensor_pack(const prony_value *value, size_t *size)
{
    int64_t header[HEADER_NUMBERS] = {value->dtype, value->shape.rank};
    const size_t bytes = tensor_bytes(value);
    if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING || value->dtype == PRONY_UNDEFINED) return NULL;
    for (int d = 0; d < value->shape.rank; d++) header[2 + d] = value->shape.dim[d];
    char *out = malloc(sizeof header + bytes);
    if (!out) return NULL;
    memcpy(out, header, sizeof header);
    if (bytes) memcpy(out + sizeof header, value->data, bytes);
    *size = sizeof header + bytes;
    return out;
}

bool tensor_unpack(prony_value *out, const char *bytes, size_t size)
{
    int64_t header[HEADER_NUMBERS];
    if (size < sizeof header) return false;
    memcpy(header, bytes, sizeof header);
    if (header[1] < 0 || header[1] > PRONY_MAX_RANK) return false;
    *out = (prony_value){.dtype = (prony_dtype)header[0], .shape = {.rank = (int)header[1]}};
    for (int d = 0; d < out->shape.rank; d++) out->shape.dim[d] = header[2 + d];
    out->data = (void *)(uintptr_t)(bytes + sizeof header);
    return tensor_bytes(out) == size - sizeof header;
}

/* Has `value` another type, or another shape behind the first dimension? */
static bool tensor_differs(const prony_value *kept, const prony_value *value)
{
    if (kept->dtype != value->dtype || kept->shape.rank != value->shape.rank) return true;
    for (int d = 1; d < value->shape.rank; d++)
        if (kept->shape.dim[d] != value->shape.dim[d]) return true;
    return false;
}

bool tensor_keep(kept_tensor *k, const prony_value *value, bool first, int64_t parts)
{
    const size_t bytes = tensor_bytes(value), before = first ? 0 : k->size;
    if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING || value->dtype == PRONY_UNDEFINED) return false;
    if (!first && (!k->bytes || tensor_differs(&k->value, value))) return false;
    if (!first && value->shape.rank < 1) return true;
    if (before + bytes > k->room || !k->bytes) {
        const size_t room = first ? (size_t)(parts > 0 ? parts : 1) * bytes : 2 * (before + bytes);
        char *more = realloc(k->bytes, room + 1);
        if (!more) return false;
        k->bytes = more;
        k->room = room;
    }
    if (bytes) memcpy(k->bytes + before, value->data, bytes);
    k->size = before + bytes;
    const int64_t rows = first ? 0 : k->value.shape.dim[0];
    k->value = *value;
    k->value.data = k->bytes;
    if (value->shape.rank > 0) k->value.shape.dim[0] += rows;
    return true;
}
