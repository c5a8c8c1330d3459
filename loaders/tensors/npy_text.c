/* Text in .npy files. Bytes that are not UTF-8 become U+DC80 to U+DCFF and back, as with Python's surrogateescape, so
 * that every string comes back as it was. */
#include "loaders/tensors/npy_text.h"

#include "base/shape.h"
#include "loaders/onnx/owned_value.h"

#include <string.h>

enum { FIRST_ESCAPE = 0xdc80, LAST_ESCAPE = 0xdcff, LAST_CODE_POINT = 0x10ffff, MOST_OF_WIDTH_0 = 4096 };

/* ---- reading ---- */

static uint32_t code_point_at(const uint8_t *data)
{
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

/* Characters of an element without the zeros behind them. */
static size_t element_length(prn_npy_text type, const uint8_t *data)
{
    size_t length = type.width;
    if (type.letter == 'S') {
        while (length && !data[length - 1]) length--;
    } else {
        while (length && !code_point_at(data + 4 * (length - 1))) length--;
    }
    return length;
}

/* Writes the UTF-8 form to `to` (4 bytes, or NULL) and returns its bytes; 0: no character has this code point. */
static size_t npy_text_encode(char *to, uint32_t code)
{
    char bytes[4];
    size_t count = 0;
    if (code < 0x80) {
        bytes[count++] = (char)code;
    } else if (code >= FIRST_ESCAPE && code <= LAST_ESCAPE) {
        bytes[count++] = (char)(code - FIRST_ESCAPE + 0x80);
    } else if (code < 0x800) {
        bytes[count++] = (char)(0xc0 | code >> 6);
    } else if (code < 0x10000) {
        if (code >= 0xd800 && code <= 0xdfff) return 0;
        bytes[count++] = (char)(0xe0 | code >> 12);
        bytes[count++] = (char)(0x80 | (code >> 6 & 0x3f));
    } else if (code <= LAST_CODE_POINT) {
        bytes[count++] = (char)(0xf0 | code >> 18);
        bytes[count++] = (char)(0x80 | (code >> 12 & 0x3f));
        bytes[count++] = (char)(0x80 | (code >> 6 & 0x3f));
    } else {
        return 0;
    }
    if (code >= 0x80 && !(code >= FIRST_ESCAPE && code <= LAST_ESCAPE)) bytes[count++] = (char)(0x80 | (code & 0x3f));
    if (to) memcpy(to, bytes, count);
    return count;
}

/* Writes an element in UTF-8 to `to`, or counts only (NULL). SIZE_MAX: a code point is invalid. */
static size_t npy_text_read_element(char *to, prn_npy_text type, const uint8_t *data)
{
    size_t length = element_length(type, data), used = 0;
    if (type.letter == 'S') {
        if (to && length) memcpy(to, data, length);
        return length;
    }
    for (size_t i = 0; i < length; i++) {
        size_t bytes = npy_text_encode(to ? to + used : NULL, code_point_at(data + 4 * i));
        if (!bytes) return SIZE_MAX;
        used += bytes;
    }
    return used;
}

/* Counts the UTF-8 bytes first, so that elements and text share one allocation. */
prony_status prn_npy_text_parse(prony_value *out, prn_npy_text type, const prony_shape *shape, const uint8_t *data,
                                size_t size, prony_error *error)
{
    prony_value tensor = {.dtype = PRONY_STRING, .shape = *shape};
    int64_t count = prony_shape_numel(shape);
    size_t each, total, text_bytes = 0;
    bool fits = count >= 0 && !__builtin_mul_overflow(type.width, type.letter == 'U' ? 4 : 1, &each) &&
                !__builtin_mul_overflow(each, (size_t)count, &total) && total == size;
    /* Elements of width 0 take no bytes, so the file's size does not bound their number. */
    if (!fits || (type.width == 0 && count > MOST_OF_WIDTH_0)) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%zu bytes of data do not fit %s of %zu characters", size,
                        prn_value_text(&tensor, text), type.width);
    }
    for (int64_t i = 0; i < count; i++) {
        size_t bytes = npy_text_read_element(NULL, type, data + (size_t)i * each);
        if (bytes == SIZE_MAX)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "element %lld holds an invalid code point", (long long)i);
        text_bytes += bytes;
    }
    PRN_TRY(prn_owned_tensor(out, PRONY_STRING, shape, text_bytes, error));
    prony_string *elements = out->data;
    char *to = (char *)(elements + count);
    for (int64_t i = 0; i < count; i++) {
        elements[i] = (prony_string){to, npy_text_read_element(to, type, data + (size_t)i * each)};
        to += elements[i].size;
    }
    return PRONY_OK;
}

/* ---- writing ---- */

/* The code point at the begin of `left` bytes; *used: its bytes. A byte that does not begin a valid sequence becomes an
 * escape. */
static uint32_t npy_text_decode(const uint8_t *text, size_t left, size_t *used)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t lead = text[0], code;
    size_t bytes = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0;
    *used = 1;
    if (bytes == 1) return lead;
    if (!bytes || bytes > left) return FIRST_ESCAPE + lead - 0x80;
    code = lead & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80) return FIRST_ESCAPE + lead - 0x80;
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < smallest[bytes] || code > LAST_CODE_POINT || (code >= 0xd800 && code <= 0xdfff))
        return FIRST_ESCAPE + lead - 0x80;
    *used = bytes;
    return code;
}

prony_status prn_npy_text_width(size_t *width, const prony_value *value, prony_error *error)
{
    const prony_string *elements = value->data;
    *width = 1; /* as NumPy has it for empty strings */
    for (int64_t i = 0, count = prony_shape_numel(&value->shape); i < count; i++) {
        const uint8_t *text = (const uint8_t *)elements[i].data;
        size_t length = 0;
        for (size_t at = 0, used; at < elements[i].size; at += used, length++)
            (void)npy_text_decode(text + at, elements[i].size - at, &used);
        if (length && !text[elements[i].size - 1])
            return prn_fail(error, PRONY_UNSUPPORTED, "element %lld ends with a NUL character, which .npy cannot hold",
                            (long long)i);
        if (length > *width) *width = length;
    }
    return PRONY_OK;
}

static void put_code_point(prn_file_writer *writer, uint32_t code)
{
    char bytes[4];
    for (unsigned i = 0; i < 4; i++) bytes[i] = (char)(code >> 8 * i & 0xff);
    (void)prn_file_write(writer, bytes, sizeof bytes);
}

void prn_npy_text_write(prn_file_writer *writer, const prony_value *value, size_t width)
{
    const prony_string *elements = value->data;
    for (int64_t i = 0, count = prony_shape_numel(&value->shape); i < count; i++) {
        const uint8_t *text = (const uint8_t *)elements[i].data;
        size_t length = 0;
        for (size_t at = 0, used; at < elements[i].size; at += used, length++)
            put_code_point(writer, npy_text_decode(text + at, elements[i].size - at, &used));
        for (; length < width; length++) put_code_point(writer, 0);
    }
}
