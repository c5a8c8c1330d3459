/* One walk over the message collects its fields, nested ones included; a second one writes it again with one of them
 * changed and every length around it put right. Bytes that parse as a message are taken for one: a name that does so by
 * chance is only mutated differently. */
#include "tests/support/onnx_mutate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 12, MOST_FIELDS = 4096 };

typedef struct span {
    const uint8_t *data;
    size_t size;
} span;

typedef struct field {
    uint32_t number, wire;
    span whole, payload; /* with and without the tag (and length) */
    uint64_t value;      /* of a varint */
} field;

typedef struct mutation {
    unsigned seed;
    field list[MOST_FIELDS];
    size_t count;
    const uint8_t *target; /* the field to be changed: where it starts */
    uint8_t *out;
    size_t used, most;
    bool full;
} mutation;

static unsigned pick(mutation *m, size_t count)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return count ? (unsigned)((m->seed >> 8) % count) : 0;
}

static bool read_varint(span *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && in->size > 0; shift += 7) {
        uint8_t byte = *in->data++;
        in->size--;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

static bool read_field(span *in, field *out)
{
    uint64_t tag, length;
    const uint8_t *start = in->data;
    if (!read_varint(in, &tag) || tag < 8 || tag >> 3 > 4096) return false;
    *out = (field){.number = (uint32_t)(tag >> 3), .wire = tag & 7};
    out->payload.data = in->data;
    switch (out->wire) {
    case 0:
        if (!read_varint(in, &out->value)) return false;
        out->payload.size = (size_t)(in->data - out->payload.data);
        break;
    case 2:
        if (!read_varint(in, &length) || length > in->size) return false;
        out->payload = (span){in->data, (size_t)length};
        break;
    case 1:
    case 5:
        out->payload.size = out->wire == 1 ? 8 : 4;
        if (out->payload.size > in->size) return false;
        break;
    default:
        return false;
    }
    if (out->wire != 0) {
        in->data += out->payload.size;
        in->size -= out->payload.size;
    }
    out->whole = (span){start, (size_t)(in->data - start)};
    return true;
}

static bool is_message(span data)
{
    field f;
    if (data.size < 2) return false;
    while (data.size > 0)
        if (!read_field(&data, &f)) return false;
    return true;
}

static void collect(mutation *m, span message, int depth)
{
    field f;
    while (message.size > 0 && m->count < MOST_FIELDS && read_field(&message, &f)) {
        m->list[m->count++] = f;
        if (f.wire == 2 && depth < DEEPEST && is_message(f.payload)) collect(m, f.payload, depth + 1);
    }
}

/* ---- writing ---- */

static void put(mutation *m, const void *data, size_t size)
{
    if (size > m->most - m->used) {
        m->full = true;
        return;
    }
    memmove(m->out + m->used, data, size);
    m->used += size;
}

static size_t encode(uint64_t value, uint8_t out[10])
{
    size_t size = 0;
    while (value > 127) {
        out[size++] = (uint8_t)(value | 128);
        value >>= 7;
    }
    out[size++] = (uint8_t)value;
    return size;
}

static void put_varint(mutation *m, uint64_t value)
{
    uint8_t bytes[10];
    put(m, bytes, encode(value, bytes));
}

static void put_bytes(mutation *m, const field *f, span payload)
{
    put_varint(m, (uint64_t)f->number << 3 | 2);
    put_varint(m, payload.size);
    put(m, payload.data, payload.size);
}

static uint64_t other_integer(mutation *m, uint64_t old)
{
    static const int64_t odd[] = {0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  5,
                                  6,
                                  7,
                                  8,
                                  9,
                                  10,
                                  11,
                                  13,
                                  16,
                                  17,
                                  -1,
                                  -2,
                                  -3,
                                  -8,
                                  64,
                                  100,
                                  255,
                                  256,
                                  1000,
                                  4096,
                                  65536,
                                  INT32_MAX,
                                  INT32_MIN,
                                  (int64_t)1 << 32,
                                  INT64_MAX,
                                  INT64_MIN,
                                  INT64_MAX / 2};
    switch (pick(m, 4)) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return m->list[pick(m, m->count)].value;
    default:
        return (uint64_t)odd[pick(m, sizeof odd / sizeof *odd)];
    }
}

static void put_other_number(mutation *m, const field *f)
{
    static const float odd[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 1e-40f, 3.4e38f, -3.4e38f, 1e10f};
    float value = odd[pick(m, sizeof odd / sizeof *odd)];
    double wide = (double)value;
    put_varint(m, (uint64_t)f->number << 3 | f->wire);
    if (f->wire == 5)
        put(m, &value, sizeof value);
    else
        put(m, &wide, sizeof wide);
}

/* Another field's bytes, of the same number if possible: exchanges names, operators, types and tensors. */
static span other_bytes(mutation *m, const field *f)
{
    span found = f->payload;
    for (int attempt = 0; attempt < 32; attempt++) {
        const field *other = &m->list[pick(m, m->count)];
        if (other->wire != 2) continue;
        found = other->payload;
        if (other->number == f->number) break;
    }
    return found;
}

static void put_shorter(mutation *m, const field *f)
{
    span cut = f->payload;
    if (cut.size) cut.size = pick(m, cut.size);
    put_bytes(m, f, cut);
}

static void put_changed(mutation *m, const field *f)
{
    unsigned choice = pick(m, 8);
    if (choice == 0) return;
    if (choice == 1) {
        put(m, f->whole.data, f->whole.size);
        put(m, f->whole.data, f->whole.size);
    } else if (f->wire == 0) {
        put_varint(m, (uint64_t)f->number << 3);
        put_varint(m, other_integer(m, f->value));
    } else if (f->wire != 2) {
        put_other_number(m, f);
    } else if (choice == 2) {
        put_shorter(m, f);
    } else {
        put_bytes(m, f, other_bytes(m, f));
    }
}

static void write_again(mutation *m, span message)
{
    field f;
    while (message.size > 0 && !m->full && read_field(&message, &f)) {
        bool inside = m->target > f.whole.data && m->target < f.whole.data + f.whole.size;
        if (f.whole.data == m->target) {
            put_changed(m, &f);
        } else if (!inside) {
            put(m, f.whole.data, f.whole.size);
        } else {
            /* The length is not known yet: it is written after its content, then moved in front of it. */
            put_varint(m, (uint64_t)f.number << 3 | 2);
            size_t at = m->used;
            write_again(m, f.payload);
            uint8_t bytes[10];
            size_t size = m->used - at, head = encode(size, bytes);
            if (head > m->most - m->used) m->full = true;
            if (m->full) return;
            memmove(m->out + at + head, m->out + at, size);
            memcpy(m->out + at, bytes, head);
            m->used += head;
        }
    }
}

size_t onnx_mutate(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    mutation *m = calloc(1, sizeof *m);
    uint8_t *out = malloc(most ? most : 1);
    size_t result = 0;
    if (m && out) {
        m->seed = seed;
        m->out = out;
        m->most = most;
        if (is_message((span){data, size})) collect(m, (span){data, size}, 0);
        if (m->count > 0) {
            m->target = m->list[pick(m, m->count)].whole.data;
            write_again(m, (span){data, size});
            if (!m->full) result = m->used;
        }
        if (result) memcpy(data, out, result);
    }
    free(m);
    free(out);
    return result;
}
