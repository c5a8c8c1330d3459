/* TensorProto -> prn_initializer. Memory is allocated only after the shape's element count was found in the file, so a
 * tensor takes at most a small multiple of its encoded bytes. Raw data, external data and packed little-endian data are
 * borrowed unless they are small, and their pages are not touched. Only bool data is read, because a bool other than 0
 * or 1 would be undefined behaviour in every reader. */
#include "loaders/onnx/reader.h"

#include "base/shape.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "borrowed tensors are little-endian"
#endif

/* The encoding of an element type outside of raw data. Values outside [low, high] are damage; a bool is 1 if it is not
 * 0. */
typedef struct encoding {
    uint8_t field; /* of TensorProto */
    uint8_t width; /* bytes that one entry of the field becomes */
    int64_t low, high;
} encoding;

enum { SMALL_BYTES = 16 << 10 };
enum { FLOAT_DATA = 4, INT32_DATA = 5, STRING_DATA = 6, INT64_DATA = 7, DOUBLE_DATA = 10, UINT64_DATA = 11 };

static const encoding encodings[PRONY_DTYPE_COUNT] = {
    [PRONY_FLOAT32] = {FLOAT_DATA, 4, 0, 0},
    [PRONY_UINT8] = {INT32_DATA, 1, 0, UINT8_MAX},
    [PRONY_INT8] = {INT32_DATA, 1, INT8_MIN, INT8_MAX},
    [PRONY_UINT16] = {INT32_DATA, 2, 0, UINT16_MAX},
    [PRONY_INT16] = {INT32_DATA, 2, INT16_MIN, INT16_MAX},
    [PRONY_INT32] = {INT32_DATA, 4, INT32_MIN, INT32_MAX},
    [PRONY_INT64] = {INT64_DATA, 8, INT64_MIN, INT64_MAX},
    [PRONY_STRING] = {STRING_DATA, sizeof(prony_string), 0, 0},
    [PRONY_BOOL] = {INT32_DATA, 1, INT32_MIN, INT32_MAX},
    [PRONY_FLOAT16] = {INT32_DATA, 2, 0, UINT16_MAX},
    [PRONY_FLOAT64] = {DOUBLE_DATA, 8, 0, 0},
    [PRONY_UINT32] = {UINT64_DATA, 4, 0, UINT32_MAX},
    [PRONY_UINT64] = {UINT64_DATA, 8, INT64_MIN, INT64_MAX},
    [PRONY_COMPLEX64] = {FLOAT_DATA, 4, 0, 0},
    [PRONY_COMPLEX128] = {DOUBLE_DATA, 8, 0, 0},
    [PRONY_BFLOAT16] = {INT32_DATA, 2, 0, UINT16_MAX},
    [PRONY_FLOAT8E4M3FN] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
    [PRONY_FLOAT8E4M3FNUZ] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
    [PRONY_FLOAT8E5M2] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
    [PRONY_FLOAT8E5M2FNUZ] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
    [PRONY_UINT4] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
    [PRONY_INT4] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
    [PRONY_FLOAT4E2M1] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
    [PRONY_FLOAT8E8M0] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
    [PRONY_UINT2] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
    [PRONY_INT2] = {INT32_DATA, 1, INT8_MIN, UINT8_MAX},
};

static prn_wire_type wire_type_of(uint8_t field)
{
    switch (field) {
    case FLOAT_DATA:
        return PRN_WIRE_FIXED32;
    case DOUBLE_DATA:
        return PRN_WIRE_FIXED64;
    case STRING_DATA:
        return PRN_WIRE_BYTES;
    default:
        return PRN_WIRE_VARINT;
    }
}

static const char *tensor_proto_name_of(uint8_t field)
{
    static const char *const names[] = {
        [FLOAT_DATA] = "float_data", [INT32_DATA] = "int32_data",   [STRING_DATA] = "string_data",
        [INT64_DATA] = "int64_data", [DOUBLE_DATA] = "double_data", [UINT64_DATA] = "uint64_data",
    };
    return names[field];
}

/* Results of the first pass over the message. */
typedef struct tensor_head {
    int64_t dtype;
    prony_shape shape;
    prn_span raw;
    bool external;
    size_t entries[UINT64_DATA + 1]; /* of each typed field */
    prn_span run[UINT64_DATA + 1];   /* its last occurrence */
    size_t runs[UINT64_DATA + 1];
} tensor_head;

prony_status prn_dim_append(prony_shape *shape, int64_t dim, prony_error *error)
{
    if (dim < 0) return prn_fail(error, PRONY_INVALID_MODEL, "dimension %d is %lld", shape->rank, (long long)dim);
    if (shape->rank >= PRONY_MAX_RANK) return prn_fail(error, PRONY_LIMIT, "rank is above %d", PRONY_MAX_RANK);
    shape->dim[shape->rank++] = dim;
    return PRONY_OK;
}

static prony_status head_dims(prn_wire *wire, const prn_field *field, tensor_head *head, prony_error *error)
{
    size_t count;
    prn_span dims = prn_wire_numbers(wire, field, PRN_WIRE_VARINT, &count);
    for (uint64_t dim; prn_span_take(&dims, PRN_WIRE_VARINT, &dim);) {
        PRN_TRY(prn_dim_append(&head->shape, (int64_t)dim, error));
    }
    if (dims.size) return prn_fail(error, PRONY_INVALID_MODEL, "a dimension's varint is too long");
    return PRONY_OK;
}

/* First pass: dims, type, and the number of entries of each typed field, without decoding any. */
static prony_status tensor_proto_head_read(prn_wire wire, tensor_head *head, prony_error *error)
{
    for (prn_field field; prn_wire_next(&wire, &field);) {
        switch (field.number) {
        case 1:
            PRN_TRY(head_dims(&wire, &field, head, error));
            break;
        case 2:
            head->dtype = prn_wire_int(&wire, &field);
            break;
        case 3:
            return prn_fail(error, PRONY_UNSUPPORTED, "segmented tensors are not supported");
        case FLOAT_DATA:
        case INT32_DATA:
        case STRING_DATA:
        case INT64_DATA:
        case DOUBLE_DATA:
        case UINT64_DATA: {
            size_t count = 1;
            prn_wire_type type = wire_type_of((uint8_t)field.number);
            head->run[field.number] =
                type == PRN_WIRE_BYTES ? prn_wire_span(&wire, &field) : prn_wire_numbers(&wire, &field, type, &count);
            head->entries[field.number] += count;
            head->runs[field.number]++;
            break;
        }
        case 9:
            head->raw = prn_wire_span(&wire, &field);
            break;
        case 14:
            head->external = prn_wire_int(&wire, &field) == 1;
            break;
        default:
            break;
        }
    }
    return prn_wire_check(&wire, error);
}

static prony_status decode_entry(uint8_t *to, uint64_t bits, prony_dtype dtype, prony_error *error)
{
    const encoding *how = &encodings[dtype];
    int64_t value = how->field == INT32_DATA ? (int32_t)(uint32_t)bits : (int64_t)bits;
    if (value < how->low || value > how->high) {
        return prn_fail(error, PRONY_INVALID_MODEL, "%s entry %lld does not fit %s", tensor_proto_name_of(how->field),
                        (long long)value, prony_dtype_name(dtype));
    }
    if (dtype == PRONY_BOOL) value = value != 0;
    memcpy(to, &value, how->width);
    return PRONY_OK;
}

/* Second pass: the typed field that holds `dtype` into `data`, whose size the first pass has checked. */
static prony_status tensor_proto_decode(prn_wire wire, prony_dtype dtype, uint8_t *data, prony_error *error)
{
    const encoding *how = &encodings[dtype];
    prn_wire_type type = wire_type_of(how->field);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != how->field) continue;
        if (type == PRN_WIRE_BYTES) {
            prony_string string = {(const char *)field.bytes.data, field.bytes.size};
            memcpy(data, &string, sizeof string);
            data += sizeof string;
            continue;
        }
        size_t count;
        prn_span run = prn_wire_numbers(&wire, &field, type, &count);
        if (type != PRN_WIRE_VARINT) {
            memcpy(data, run.data, run.size);
            data += run.size;
            continue;
        }
        for (uint64_t bits; prn_span_take(&run, type, &bits); data += how->width) {
            PRN_TRY(decode_entry(data, bits, dtype, error));
        }
        if (run.size)
            return prn_fail(error, PRONY_INVALID_MODEL, "an entry of %s is too long", tensor_proto_name_of(how->field));
    }
    return prn_wire_check(&wire, error);
}

static bool is_aligned(const void *data, prony_dtype dtype)
{
    size_t element = prony_dtype_bytes(dtype, 1);
    return (uintptr_t)data % (element < 8 ? element : 8) == 0;
}

static prony_status tensor_proto_copy_data(prn_reader *reader, prn_initializer *tensor)
{
    uint8_t *copy = PRN_NEW(reader, tensor->bytes, uint8_t);
    if (!copy) return prn_no_memory(reader->error);
    const uint8_t *from = tensor->value.data;
    if (tensor->value.dtype == PRONY_BOOL) {
        for (uint64_t i = 0; i < tensor->bytes; i++) copy[i] = from[i] != 0;
    } else {
        memcpy(copy, from, tensor->bytes);
    }
    tensor->value.data = copy;
    tensor->aligned = true;
    return PRONY_OK;
}

prony_status prn_tensor_align(prn_reader *reader, prn_initializer *tensor)
{
    return tensor->aligned ? PRONY_OK : tensor_proto_copy_data(reader, tensor);
}

static prony_status tensor_proto_borrow(prn_reader *reader, prn_initializer *tensor, prn_span span)
{
    static const max_align_t empty;
    tensor->value.data = span.size ? (void *)(uintptr_t)span.data : (void *)(uintptr_t)&empty;
    tensor->aligned = is_aligned(tensor->value.data, tensor->value.dtype);
    if (tensor->value.dtype != PRONY_BOOL) return PRONY_OK;
    for (size_t i = 0; i < span.size; i++) {
        if (span.data[i] > 1) return tensor_proto_copy_data(reader, tensor);
    }
    return PRONY_OK;
}

/* Takes data of the model file itself. Small data of a mapped file is copied: reading it makes the system load up to
 * megabytes around it. */
static prony_status tensor_proto_take(prn_reader *reader, prn_initializer *tensor, prn_span span)
{
    PRN_TRY(tensor_proto_borrow(reader, tensor, span));
    const bool mapped = reader->path && !reader->copy && tensor->value.data == (const void *)span.data;
    return mapped && span.size < SMALL_BYTES ? tensor_proto_copy_data(reader, tensor) : PRONY_OK;
}

/* The data of a tensor whose type, shape and size are known. */
static prony_status read_data(prn_reader *reader, prn_wire wire, const tensor_head *head, prn_initializer *out)
{
    prony_error *error = reader->error;
    prony_dtype dtype = out->value.dtype;
    const encoding *how = &encodings[dtype];
    size_t entries = head->entries[how->field];
    if ((head->external || head->raw.size) && dtype == PRONY_STRING) {
        return prn_fail(error, PRONY_INVALID_MODEL, "strings cannot be raw or external data");
    }
    if (head->external) {
        prn_span span;
        PRN_TRY(prn_external_read(reader, wire, out->bytes, &span));
        return tensor_proto_borrow(reader, out, span);
    }
    if (head->raw.size) {
        if (entries)
            return prn_fail(error, PRONY_INVALID_MODEL, "both raw_data and %s are given",
                            tensor_proto_name_of(how->field));
        if (head->raw.size != out->bytes) {
            return prn_fail(error, PRONY_INVALID_MODEL, "raw_data has %zu bytes, but type and shape need %llu",
                            head->raw.size, (unsigned long long)out->bytes);
        }
        return tensor_proto_take(reader, out, head->raw);
    }
    if (entries != out->bytes / how->width) {
        return prn_fail(error, PRONY_INVALID_MODEL, "%s has %zu entries, but type and shape need %llu",
                        tensor_proto_name_of(how->field), entries, (unsigned long long)(out->bytes / how->width));
    }
    bool plain = how->field == FLOAT_DATA || how->field == DOUBLE_DATA;
    if (!entries || (plain && head->runs[how->field] == 1))
        return tensor_proto_take(reader, out, head->run[how->field]);
    out->value.data = PRN_NEW(reader, out->bytes, uint8_t);
    if (!out->value.data) return prn_no_memory(error);
    out->aligned = true;
    return tensor_proto_decode(wire, dtype, out->value.data, error);
}

/* A separate pass, because messages about other fields need the name, which follows them in the file. */
static prony_status name_read(prn_reader *reader, prn_wire wire, const char **out)
{
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != 8) continue;
        PRN_TRY(prn_name_read(reader, out, prn_wire_span(&wire, &field), "tensor name"));
    }
    return prn_wire_check(&wire, reader->error);
}

static prony_status tensor_proto_read_checked(prn_reader *reader, prn_wire wire, prn_initializer *out)
{
    prony_error *error = reader->error;
    tensor_head head = {0};
    PRN_TRY(name_read(reader, wire, &out->name));
    PRN_TRY(tensor_proto_head_read(wire, &head, error));
    if (head.dtype == PRONY_UNDEFINED) return prn_fail(error, PRONY_INVALID_MODEL, "it has no element type");
    if (head.dtype < 0 || head.dtype >= PRONY_DTYPE_COUNT) {
        return prn_fail(error, PRONY_UNSUPPORTED, "unknown element type %lld", (long long)head.dtype);
    }
    out->value = (prony_value){.kind = PRONY_TENSOR, .dtype = (prony_dtype)head.dtype, .shape = head.shape};
    out->bytes = prn_value_bytes(&out->value);
    if (out->bytes > SIZE_MAX / 2) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prn_fail(error, PRONY_INVALID_MODEL, "the size of %s overflows", prn_value_text(&out->value, text));
    }
    return read_data(reader, wire, &head, out);
}

prony_status prn_tensor_read(prn_reader *reader, prn_wire wire, prn_initializer *out)
{
    out->name = "";
    prony_status status = tensor_proto_read_checked(reader, wire, out);
    if (status != PRONY_OK) prn_error_prefix(reader->error, "tensor " PRN_NAME, out->name);
    return status;
}
