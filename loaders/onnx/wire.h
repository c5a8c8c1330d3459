/* Protocol-buffer wire format, read from memory without copying.
 *
 * A prn_wire walks the fields of one message. It never reads outside [cursor, end) and stops for good at the first
 * damage: the getters then return zeros and prn_wire_next false, so a loop over fields needs one check (prn_wire_check)
 * after it. Unknown fields are skipped by not looking at them. Group wire types are damage, so the reader does not
 * recurse. */
#ifndef PRN_LOADERS_ONNX_WIRE_H
#define PRN_LOADERS_ONNX_WIRE_H

#include "base/status.h"

typedef enum prn_wire_type {
    PRN_WIRE_VARINT = 0,
    PRN_WIRE_FIXED64 = 1,
    PRN_WIRE_BYTES = 2, /* length-delimited: string, bytes, message, packed numbers */
    PRN_WIRE_FIXED32 = 5
} prn_wire_type;

typedef struct prn_span {
    const uint8_t *data;
    size_t size;
} prn_span;

typedef struct prn_wire {
    const uint8_t *cursor, *end;
    const uint8_t *origin; /* of the file, so that messages can name a byte offset */
    const char *damage;    /* NULL while sound; static text */
    const uint8_t *damage_at;
    uint32_t damage_field;
} prn_wire;

typedef struct prn_field {
    uint32_t number;
    prn_wire_type type;
    uint64_t bits;  /* of a varint or fixed-width field */
    prn_span bytes; /* content of a length-delimited field, else the value as it is encoded */
} prn_field;

prn_wire prn_wire_make(const void *data, size_t size);
/* Next field, its payload checked to lie inside the message. false at the end and on damage. */
bool prn_wire_next(prn_wire *wire, prn_field *field);
/* PRONY_INVALID_MODEL with field number and byte offset if the walk met damage. */
PRN_MUST_USE prony_status prn_wire_check(const prn_wire *wire, prony_error *error);

/* The field's value; a wire type other than the expected one is damage. */
int64_t prn_wire_int(prn_wire *wire, const prn_field *field);
float prn_wire_float(prn_wire *wire, const prn_field *field);
prn_span prn_wire_span(prn_wire *wire, const prn_field *field);
/* The field as a message. Damage inside it does not mark the outer walk; a field that is not a message gives a walk
 * with the outer one's damage. */
prn_wire prn_wire_enter(prn_wire *wire, const prn_field *field);

/* Repeated numbers: one occurrence of the field, packed or not, as a run of `element`-encoded numbers; *count of them.
 */
prn_span prn_wire_numbers(prn_wire *wire, const prn_field *field, prn_wire_type element, size_t *count);
/* Takes the next number off such a run; false at its end or if a varint is too long. */
bool prn_span_take(prn_span *numbers, prn_wire_type element, uint64_t *bits);

/* Occurrences of each field below PRN_WIRE_CENSUS in what is left of the message. Bounds every list by the bytes
 * present: claimed lengths allocate nothing. */
#define PRN_WIRE_CENSUS 32
PRN_MUST_USE prony_status prn_wire_census(prn_wire wire, size_t counts[PRN_WIRE_CENSUS], prony_error *error);

#endif
