/* TypeProto and ValueInfoProto -> prn_port. A dimension is a number, a symbol or nothing; exporters also write -1 for
 * "nothing", any other negative number is damage. */
#include "loaders/onnx/reader.h"

#include "base/shape.h"

#include <string.h>

/* The members of TypeProto's `value` have numbers from 1 to 9; those not named here do not describe tensors. */
enum { TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, TYPE_DENOTATION = 6, TYPE_OPTIONAL = 9 };

static prony_status dim_read(prn_reader *reader, prn_wire wire, prn_port *out)
{
    int64_t dim = -1;
    const char *symbol = NULL;
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == 1) {
            dim = prn_wire_int(&wire, &field);
            symbol = NULL;
        } else if (field.number == 2) {
            dim = -1;
            PRN_TRY(prn_name_read(reader, &symbol, prn_wire_span(&wire, &field), "dimension symbol"));
        }
    }
    PRN_TRY(prn_wire_check(&wire, reader->error));
    PRN_TRY(prn_dim_append(&out->shape, dim == -1 ? 0 : dim, reader->error));
    out->shape.dim[out->shape.rank - 1] = dim;
    out->dim_names[out->shape.rank - 1] = symbol && symbol[0] ? symbol : NULL;
    return PRONY_OK;
}

static prony_status shape_read(prn_reader *reader, prn_wire wire, prn_port *out)
{
    out->shape = prn_shape_scalar();
    memset(out->dim_names, 0, sizeof out->dim_names);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == 1) PRN_TRY(dim_read(reader, prn_wire_enter(&wire, &field), out));
    }
    return prn_wire_check(&wire, reader->error);
}

static prony_status tensor_type_read(prn_reader *reader, prn_wire wire, prn_port *out)
{
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == 1) {
            int64_t dtype = prn_wire_int(&wire, &field);
            if (dtype < 0 || dtype >= PRONY_DTYPE_COUNT) {
                return prn_fail(reader->error, PRONY_UNSUPPORTED, "unknown element type %lld", (long long)dtype);
            }
            out->dtype = (prony_dtype)dtype;
        } else if (field.number == 2) {
            PRN_TRY(shape_read(reader, prn_wire_enter(&wire, &field), out));
        }
    }
    return prn_wire_check(&wire, reader->error);
}

/* The element type of a sequence or optional; an empty message if it is missing. */
static prony_status element_type(prn_wire wire, prn_wire *out, prony_error *error)
{
    *out = prn_wire_make(NULL, 0);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == 1) *out = prn_wire_enter(&wire, &field);
    }
    return prn_wire_check(&wire, error);
}

prony_status prn_type_read(prn_reader *reader, prn_wire wire, prn_port *out)
{
    out->kind = PRONY_TENSOR;
    out->dtype = PRONY_UNDEFINED;
    out->shape = prn_shape_unknown();
    for (int depth = 0; depth < PRN_MAX_NESTING; depth++) {
        prn_wire inner = {0};
        uint32_t which = 0;
        for (prn_field field; prn_wire_next(&wire, &field);) {
            if (field.number < TYPE_TENSOR || field.number > TYPE_OPTIONAL || field.number == TYPE_DENOTATION) continue;
            which = field.number;
            inner = prn_wire_enter(&wire, &field);
        }
        PRN_TRY(prn_wire_check(&wire, reader->error));
        if (which == TYPE_TENSOR) return tensor_type_read(reader, inner, out);
        if (which != TYPE_SEQUENCE && which != TYPE_OPTIONAL) return PRONY_OK;
        if (depth == 0) out->kind = which == TYPE_SEQUENCE ? PRONY_SEQUENCE : PRONY_OPTIONAL;
        PRN_TRY(element_type(inner, &wire, reader->error));
    }
    return prn_fail(reader->error, PRONY_LIMIT, "types are nested more than %d deep", PRN_MAX_NESTING);
}

prony_status prn_port_read(prn_reader *reader, prn_wire wire, prn_port *out)
{
    out->name = "";
    out->shape = prn_shape_unknown();
    prony_status status = PRONY_OK;
    prn_field field;
    while (status == PRONY_OK && prn_wire_next(&wire, &field)) {
        if (field.number == 1) {
            status = prn_name_read(reader, &out->name, prn_wire_span(&wire, &field), "value name");
        } else if (field.number == 2) {
            status = prn_type_read(reader, prn_wire_enter(&wire, &field), out);
        }
    }
    if (status == PRONY_OK) status = prn_wire_check(&wire, reader->error);
    if (status == PRONY_OK && !out->name[0]) status = prn_fail(reader->error, PRONY_INVALID_MODEL, "it has no name");
    if (status != PRONY_OK) prn_error_prefix(reader->error, "value " PRN_NAME, out->name);
    return status;
}
