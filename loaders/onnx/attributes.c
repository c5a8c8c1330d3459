/* AttributeProto -> prn_attr. The first pass finds the type and the list lengths, the second decodes the fields of that
 * type only. Tensors of attributes are always aligned to their element: operators read them in place. */
#include "loaders/onnx/reader.h"

#include "base/memory/alloc.h"

#include <string.h>

enum { FIELD_NAME = 1, FIELD_TYPE = 20, FIELD_REFERENCE = 21 };

/* The field of AttributeProto that holds a value of each type, and whether it is a list. */
static const struct {
    uint8_t field;
    bool list;
} places[] = {
    [PRN_ATTR_FLOAT] = {2, false},
    [PRN_ATTR_INT] = {3, false},
    [PRN_ATTR_STRING] = {4, false},
    [PRN_ATTR_TENSOR] = {5, false},
    [PRN_ATTR_GRAPH] = {6, false},
    [PRN_ATTR_FLOATS] = {7, true},
    [PRN_ATTR_INTS] = {8, true},
    [PRN_ATTR_STRINGS] = {9, true},
    [PRN_ATTR_TENSORS] = {10, true},
    [PRN_ATTR_GRAPHS] = {11, true},
    [PRN_ATTR_SPARSE_TENSOR] = {22, false},
    [PRN_ATTR_SPARSE_TENSORS] = {23, true},
    [PRN_ATTR_TYPE_PROTO] = {14, false},
    [PRN_ATTR_TYPE_PROTOS] = {15, true},
};
#define TYPE_COUNT (sizeof places / sizeof places[0])

/* First pass: name, reference, and the type: the given one, or in files without types that of the only value.
 */
static prony_status attributes_head_read(prn_reader *reader, prn_wire wire, prn_attr *out)
{
    int64_t type = PRN_ATTR_UNDEFINED;
    size_t present[PRN_WIRE_CENSUS];
    PRN_TRY(prn_wire_census(wire, present, reader->error));
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == FIELD_NAME) {
            PRN_TRY(prn_name_read(reader, &out->name, prn_wire_span(&wire, &field), "attribute name"));
        } else if (field.number == FIELD_REFERENCE) {
            PRN_TRY(prn_name_read(reader, &out->reference, prn_wire_span(&wire, &field), "attribute reference"));
        } else if (field.number == FIELD_TYPE) {
            type = prn_wire_int(&wire, &field);
        }
    }
    PRN_TRY(prn_wire_check(&wire, reader->error));
    if (!out->name[0]) return prn_fail(reader->error, PRONY_INVALID_MODEL, "it has no name");
    for (size_t t = 1; type == PRN_ATTR_UNDEFINED && t < TYPE_COUNT; t++) {
        if (present[places[t].field]) type = (int64_t)t;
    }
    if (type <= PRN_ATTR_UNDEFINED || type >= (int64_t)TYPE_COUNT) {
        return prn_fail(reader->error, PRONY_INVALID_MODEL, "unknown attribute type %lld", (long long)type);
    }
    out->type = (prn_attr_type)type;
    if (out->reference && !out->reference[0]) out->reference = NULL;
    if (out->reference && !reader->in_function) {
        return prn_fail(reader->error, PRONY_INVALID_MODEL, "it refers to attribute " PRN_NAME " outside of a function",
                        out->reference);
    }
    out->count = present[places[type].field];
    bool message = type == PRN_ATTR_TENSOR || type == PRN_ATTR_GRAPH || type == PRN_ATTR_SPARSE_TENSOR ||
                   type == PRN_ATTR_TYPE_PROTO;
    if (message && !out->count && !out->reference) {
        return prn_fail(reader->error, PRONY_INVALID_MODEL, "its %s is missing", prn_attr_type_name(out->type));
    }
    if (message && out->count > 1) {
        return prn_fail(reader->error, PRONY_INVALID_MODEL, "it has more than one %s", prn_attr_type_name(out->type));
    }
    return PRONY_OK;
}

/* Counts in a first pass, so that one allocation bounded by the file's bytes holds the list; then decodes. */
static prony_status numbers_read(prn_reader *reader, prn_wire wire, prn_attr *out)
{
    bool floats = out->type == PRN_ATTR_FLOATS;
    prn_wire_type element = floats ? PRN_WIRE_FIXED32 : PRN_WIRE_VARINT;
    uint32_t number = places[out->type].field;
    size_t total = 0, count;
    prn_wire first = wire;
    for (prn_field field; prn_wire_next(&first, &field);) {
        if (field.number != number) continue;
        (void)prn_wire_numbers(&first, &field, element, &count);
        total += count;
    }
    PRN_TRY(prn_wire_check(&first, reader->error));
    float *f = floats ? PRN_NEW(reader, total, float) : NULL;
    int64_t *i = floats ? NULL : PRN_NEW(reader, total, int64_t);
    if (!f && !i) return prn_no_memory(reader->error);
    out->floats = f;
    out->ints = i;
    out->count = total;
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != number) continue;
        prn_span run = prn_wire_numbers(&wire, &field, element, &count);
        for (uint64_t bits; prn_span_take(&run, element, &bits);) {
            if (floats) {
                memcpy(f++, &bits, sizeof *f);
            } else {
                *i++ = (int64_t)bits;
            }
        }
        if (run.size) return prn_fail(reader->error, PRONY_INVALID_MODEL, "an integer is too long");
    }
    return PRONY_OK;
}

static prony_status string_read(prn_reader *reader, prn_span span, prony_string *out)
{
    out->data = prn_bump_strndup(reader->pool, (const char *)span.data, span.size);
    out->size = span.size;
    return out->data ? PRONY_OK : prn_no_memory(reader->error);
}

static prony_status subgraph_read(prn_reader *reader, prn_wire wire, prn_graph *out)
{
    if (reader->depth >= PRN_MAX_NESTING) {
        return prn_fail(reader->error, PRONY_LIMIT, "graphs are nested more than %d deep", PRN_MAX_NESTING);
    }
    reader->depth++;
    prony_status status = prn_graph_read(reader, wire, out);
    reader->depth--;
    return status;
}

static prony_status tensor_read(prn_reader *reader, prn_wire wire, prn_attr_type type, prony_value *out)
{
    if (type == PRN_ATTR_TYPE_PROTO || type == PRN_ATTR_TYPE_PROTOS) {
        prn_port port = {0};
        PRN_TRY(prn_type_read(reader, wire, &port));
        *out = (prony_value){.kind = port.kind, .dtype = port.dtype, .shape = port.shape};
        return PRONY_OK;
    }
    prn_initializer tensor = {0};
    if (type == PRN_ATTR_SPARSE_TENSOR || type == PRN_ATTR_SPARSE_TENSORS) {
        PRN_TRY(prn_sparse_tensor_read(reader, wire, &tensor));
    } else {
        PRN_TRY(prn_tensor_read(reader, wire, &tensor));
        PRN_TRY(prn_tensor_align(reader, &tensor));
    }
    *out = tensor.value;
    return PRONY_OK;
}

/* Second pass. out->count is the number of occurrences of the type's field. */
static prony_status attributes_value_read(prn_reader *reader, prn_wire wire, prn_attr *out)
{
    prn_attr_type type = out->type;
    if (type == PRN_ATTR_INTS || type == PRN_ATTR_FLOATS) return numbers_read(reader, wire, out);
    prony_string *strings = NULL;
    prony_value *tensors = NULL;
    prn_graph *graphs = NULL;
    if (type == PRN_ATTR_STRINGS) {
        out->strings = strings = PRN_NEW(reader, out->count, prony_string);
        if (!strings) return prn_no_memory(reader->error);
    } else if (type == PRN_ATTR_GRAPH || type == PRN_ATTR_GRAPHS) {
        out->graph = graphs = PRN_NEW(reader, out->count, prn_graph);
        if (!graphs) return prn_no_memory(reader->error);
    } else if (type != PRN_ATTR_INT && type != PRN_ATTR_FLOAT && type != PRN_ATTR_STRING) {
        out->tensor = tensors = PRN_NEW(reader, out->count, prony_value);
        if (!tensors) return prn_no_memory(reader->error);
    }
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != places[type].field) continue;
        if (type == PRN_ATTR_INT) {
            out->i = prn_wire_int(&wire, &field);
        } else if (type == PRN_ATTR_FLOAT) {
            out->f = prn_wire_float(&wire, &field);
        } else if (type == PRN_ATTR_STRING) {
            PRN_TRY(string_read(reader, prn_wire_span(&wire, &field), &out->s));
        } else if (strings) {
            PRN_TRY(string_read(reader, prn_wire_span(&wire, &field), strings++));
        } else if (graphs) {
            PRN_TRY(subgraph_read(reader, prn_wire_enter(&wire, &field), graphs++));
        } else {
            PRN_TRY(tensor_read(reader, prn_wire_enter(&wire, &field), type, tensors++));
        }
    }
    if (!places[type].list && !graphs && !tensors) out->count = 0;
    return prn_wire_check(&wire, reader->error);
}

static prony_status attr_read(prn_reader *reader, prn_wire wire, prn_attr *out)
{
    out->name = "";
    out->s = (prony_string){"", 0};
    prony_status status = attributes_head_read(reader, wire, out);
    if (status == PRONY_OK) status = attributes_value_read(reader, wire, out);
    if (status != PRONY_OK) prn_error_prefix(reader->error, "attribute " PRN_NAME, out->name);
    return status;
}

static prony_status refuse_doubles(prn_reader *reader, const prn_attr *items, size_t count)
{
    if (count < 2) return PRONY_OK;
    prn_name_entry *names = prn_calloc(count, sizeof *names);
    if (!names) return prn_no_memory(reader->error);
    for (size_t i = 0; i < count; i++) names[i].name = items[i].name;
    prn_name_entries_sort(names, count);
    prony_status status = PRONY_OK;
    for (size_t i = 1; status == PRONY_OK && i < count; i++) {
        if (strcmp(names[i - 1].name, names[i].name) == 0) {
            status =
                prn_fail(reader->error, PRONY_INVALID_MODEL, "attribute " PRN_NAME " is given twice", names[i].name);
        }
    }
    prn_free(names);
    return status;
}

prony_status prn_attr_list_read(prn_reader *reader, prn_wire wire, uint32_t number, size_t count, prn_attr_list *out)
{
    if (!count) return PRONY_OK;
    prn_attr *items = PRN_NEW(reader, count, prn_attr);
    if (!items) return prn_no_memory(reader->error);
    out->items = items;
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != number) continue;
        PRN_TRY(attr_read(reader, prn_wire_enter(&wire, &field), &items[out->count++]));
    }
    PRN_TRY(prn_wire_check(&wire, reader->error));
    return refuse_doubles(reader, items, count);
}
