/* The wire reader. It owns nothing; every pointer it hands out lies inside the bytes that it was given. */
#include "loaders/onnx/wire.h"

#include <string.h>

static void damage(prn_wire *wire, uint32_t field, const uint8_t *at, const char *text)
{
    if (wire->damage) return;
    wire->damage = text;
    wire->damage_at = at;
    wire->damage_field = field;
    wire->cursor = wire->end;
}

/* Length of the varint at `data`, 0 if it does not end within the bytes or within 64 bits. */
static size_t varint_read(const uint8_t *data, const uint8_t *end, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < 10 && data + i < end; i++) {
        uint8_t byte = data[i];
        if (i == 9 && byte > 1) return 0;
        result |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = result;
            return i + 1;
        }
    }
    return 0;
}

static uint64_t fixed_read(const uint8_t *data, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)data[i] << (8 * i);
    return value;
}

prn_wire prn_wire_make(const void *data, size_t size)
{
    static const uint8_t nothing;
    const uint8_t *bytes = size ? data : &nothing;
    return (prn_wire){.cursor = bytes, .end = bytes + size, .origin = bytes};
}

/* Invariant: the payload of a returned field lies inside the message; damage stops the walk for good. */
bool prn_wire_next(prn_wire *wire, prn_field *field)
{
    if (wire->cursor == wire->end) return false;
    const uint8_t *start = wire->cursor;
    uint64_t tag;
    size_t tag_size = varint_read(start, wire->end, &tag);
    if (!tag_size || tag > UINT32_MAX || tag >> 3 == 0) {
        damage(wire, 0, start, "bad field tag");
        return false;
    }
    *field = (prn_field){.number = (uint32_t)(tag >> 3), .type = (prn_wire_type)(tag & 7)};
    const uint8_t *payload = start + tag_size;
    size_t left = (size_t)(wire->end - payload), size = 0;
    switch (field->type) {
    case PRN_WIRE_VARINT:
        size = varint_read(payload, wire->end, &field->bits);
        if (!size) {
            damage(wire, field->number, payload, "truncated or over-long varint");
            return false;
        }
        break;
    case PRN_WIRE_FIXED32:
    case PRN_WIRE_FIXED64:
        size = field->type == PRN_WIRE_FIXED32 ? 4 : 8;
        if (size > left) {
            damage(wire, field->number, payload, "truncated fixed-width value");
            return false;
        }
        field->bits = fixed_read(payload, size);
        break;
    case PRN_WIRE_BYTES: {
        uint64_t length;
        size_t length_size = varint_read(payload, wire->end, &length);
        if (!length_size || length > left - length_size) {
            damage(wire, field->number, payload, "length reaches past the end of its message");
            return false;
        }
        payload += length_size;
        size = (size_t)length;
        break;
    }
    default:
        damage(wire, field->number, start, "group or unknown wire type");
        return false;
    }
    field->bytes = (prn_span){payload, size};
    wire->cursor = payload + size;
    return true;
}

prony_status prn_wire_check(const prn_wire *wire, prony_error *error)
{
    if (!wire->damage) return PRONY_OK;
    size_t offset = (size_t)(wire->damage_at - wire->origin);
    if (!wire->damage_field) return prn_fail(error, PRONY_INVALID_MODEL, "byte %zu: %s", offset, wire->damage);
    return prn_fail(error, PRONY_INVALID_MODEL, "byte %zu, field %u: %s", offset, wire->damage_field, wire->damage);
}

static bool expect(prn_wire *wire, const prn_field *field, prn_wire_type type)
{
    if (field->type == type) return true;
    damage(wire, field->number, field->bytes.data, "unexpected wire type");
    return false;
}

int64_t prn_wire_int(prn_wire *wire, const prn_field *field)
{
    return expect(wire, field, PRN_WIRE_VARINT) ? (int64_t)field->bits : 0;
}

float prn_wire_float(prn_wire *wire, const prn_field *field)
{
    uint32_t bits = expect(wire, field, PRN_WIRE_FIXED32) ? (uint32_t)field->bits : 0;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

prn_span prn_wire_span(prn_wire *wire, const prn_field *field)
{
    return expect(wire, field, PRN_WIRE_BYTES) ? field->bytes : (prn_span){wire->end, 0};
}

prn_wire prn_wire_enter(prn_wire *wire, const prn_field *field)
{
    prn_span span = prn_wire_span(wire, field);
    if (wire->damage) return *wire;
    return (prn_wire){.cursor = span.data, .end = span.data + span.size, .origin = wire->origin};
}

prn_span prn_wire_numbers(prn_wire *wire, const prn_field *field, prn_wire_type element, size_t *count)
{
    prn_span none = {wire->end, 0}, span = field->bytes;
    *count = 0;
    if (field->type != PRN_WIRE_BYTES && !expect(wire, field, element)) return none;
    if (element == PRN_WIRE_VARINT) {
        for (size_t i = 0; i < span.size; i++) *count += span.data[i] < 0x80;
        if (!span.size || span.data[span.size - 1] < 0x80) return span;
    } else {
        size_t width = element == PRN_WIRE_FIXED32 ? 4 : 8;
        *count = span.size / width;
        if (span.size % width == 0) return span;
    }
    *count = 0;
    damage(wire, field->number, span.data, "packed numbers end inside a number");
    return none;
}

bool prn_span_take(prn_span *numbers, prn_wire_type element, uint64_t *bits)
{
    size_t size;
    if (element == PRN_WIRE_VARINT) {
        size = varint_read(numbers->data, numbers->data + numbers->size, bits);
    } else {
        size = element == PRN_WIRE_FIXED32 ? 4 : 8;
        if (size > numbers->size) size = 0;
        *bits = fixed_read(numbers->data, size);
    }
    numbers->data += size;
    numbers->size -= size;
    return size > 0;
}

prony_status prn_wire_census(prn_wire wire, size_t counts[PRN_WIRE_CENSUS], prony_error *error)
{
    memset(counts, 0, PRN_WIRE_CENSUS * sizeof counts[0]);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number < PRN_WIRE_CENSUS) counts[field.number]++;
    }
    return prn_wire_check(&wire, error);
}
