/* SparseTensorProto -> dense prn_initializer. The values' indices are either linear, [NNZ], or coordinates, [NNZ,
 * rank]; they ascend strictly, so no element is given twice. */
#include "loaders/onnx/reader.h"

#include "base/shape.h"

#include <string.h>

typedef struct sparse {
    prn_initializer values, indices;
    prony_shape shape;
    bool has_values, has_indices;
} sparse;

static prony_status parts_read(prn_reader *reader, prn_wire wire, sparse *parts)
{
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == 1) {
            PRN_TRY(prn_tensor_read(reader, prn_wire_enter(&wire, &field), &parts->values));
            parts->has_values = true;
        } else if (field.number == 2) {
            PRN_TRY(prn_tensor_read(reader, prn_wire_enter(&wire, &field), &parts->indices));
            PRN_TRY(prn_tensor_align(reader, &parts->indices));
            parts->has_indices = true;
        } else if (field.number == 3) {
            size_t count;
            prn_span dims = prn_wire_numbers(&wire, &field, PRN_WIRE_VARINT, &count);
            for (uint64_t dim; prn_span_take(&dims, PRN_WIRE_VARINT, &dim);) {
                PRN_TRY(prn_dim_append(&parts->shape, (int64_t)dim, reader->error));
            }
        }
    }
    return prn_wire_check(&wire, reader->error);
}

/* Position of the k-th value in the dense tensor; -1 if outside. */
static int64_t position(const sparse *parts, int64_t k, int64_t numel)
{
    const int64_t *indices = parts->indices.value.data;
    int32_t rank = parts->shape.rank;
    if (parts->indices.value.shape.rank == 1) return indices[k] >= 0 && indices[k] < numel ? indices[k] : -1;
    int64_t linear = 0;
    if (!numel) return -1; /* the other dimensions' product may overflow */
    for (int32_t d = 0; d < rank; d++) {
        int64_t at = indices[k * rank + d];
        if (at < 0 || at >= parts->shape.dim[d]) return -1;
        linear = linear * parts->shape.dim[d] + at;
    }
    return linear;
}

static prony_status check_parts(const sparse *parts, prony_error *error)
{
    const prony_value *values = &parts->values.value, *indices = &parts->indices.value;
    if (!parts->has_values) return prn_fail(error, PRONY_INVALID_MODEL, "it has no values");
    if (values->dtype == PRONY_STRING || prn_dtype_bits(values->dtype) < 8) {
        return prn_fail(error, PRONY_UNSUPPORTED, "sparse tensors of %s are not supported",
                        prony_dtype_name(values->dtype));
    }
    if (values->shape.rank != 1) {
        return prn_fail(error, PRONY_INVALID_MODEL, "its values have rank %d, wanted 1", values->shape.rank);
    }
    if (!parts->has_indices && values->shape.dim[0] == 0) return PRONY_OK;
    bool fits = parts->has_indices && indices->dtype == PRONY_INT64 && indices->shape.rank >= 1 &&
                indices->shape.rank <= 2 && indices->shape.dim[0] == values->shape.dim[0] &&
                (indices->shape.rank == 1 || indices->shape.dim[1] == parts->shape.rank);
    if (fits) return PRONY_OK;
    char text[PRN_SHAPE_TEXT_BYTES];
    return prn_fail(error, PRONY_INVALID_MODEL, "its indices %s do not fit %lld values in %d dimensions",
                    parts->has_indices ? prn_value_text(indices, text) : "(none)", (long long)values->shape.dim[0],
                    parts->shape.rank);
}

static prony_status sparse_tensor_scatter(const sparse *parts, prn_initializer *out, prony_error *error)
{
    size_t width = prony_dtype_bytes(out->value.dtype, 1);
    int64_t numel = prony_shape_numel(&out->value.shape), last = -1;
    uint8_t *to = out->value.data;
    const uint8_t *from = parts->values.value.data;
    for (int64_t k = 0; k < parts->values.value.shape.dim[0]; k++) {
        int64_t at = position(parts, k, numel);
        if (at < 0) return prn_fail(error, PRONY_INVALID_MODEL, "index %lld lies outside the shape", (long long)k);
        if (at <= last) return prn_fail(error, PRONY_INVALID_MODEL, "index %lld is out of order", (long long)k);
        last = at;
        memcpy(to + (size_t)at * width, from + (size_t)k * width, width);
    }
    return PRONY_OK;
}

static prony_status sparse_tensor_read_checked(prn_reader *reader, prn_wire wire, prn_initializer *out)
{
    prony_error *error = reader->error;
    sparse parts = {0};
    PRN_TRY(parts_read(reader, wire, &parts));
    if (parts.has_values) out->name = parts.values.name;
    PRN_TRY(check_parts(&parts, error));
    out->value = (prony_value){.kind = PRONY_TENSOR, .dtype = parts.values.value.dtype, .shape = parts.shape};
    out->bytes = prn_value_bytes(&out->value);
    out->aligned = true;
    if (out->bytes > PRN_SPARSE_LIMIT_BYTES - reader->sparse_bytes) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prn_fail(error, PRONY_LIMIT, "%s makes the model's sparse tensors exceed %llu dense bytes",
                        prn_value_text(&out->value, text), (unsigned long long)PRN_SPARSE_LIMIT_BYTES);
    }
    reader->sparse_bytes += out->bytes;
    out->value.data = PRN_NEW(reader, out->bytes, uint8_t);
    if (!out->value.data) return prn_no_memory(error);
    return sparse_tensor_scatter(&parts, out, error);
}

prony_status prn_sparse_tensor_read(prn_reader *reader, prn_wire wire, prn_initializer *out)
{
    out->name = "";
    prony_status status = sparse_tensor_read_checked(reader, wire, out);
    if (status != PRONY_OK) prn_error_prefix(reader->error, "sparse tensor " PRN_NAME, out->name);
    return status;
}
