/* Elements of tensors: JSON arrays, flat or nested, and the binary tensor extension. */
#include "bench/serve/datatypes.h"
#include "bench/serve/infer_request.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40, BAD = 400, NO_MEMORY = 503 };

typedef struct elements {
    prony_value *value;
    const char *model, *input;
    char *message;
    size_t count, index; /* wanted, and read so far */
    char *strings;       /* room for the next string */
} elements;

static int data_refuse(const elements *e, json_slice text, const char *what)
{
    int shown = text.size > SHOWN ? SHOWN : (int)text.size;
    return infer_fail(e->message, BAD, "model '%s': input '%s': element %zu, %.*s%s, %s %s", e->model, e->input,
                      e->index, shown, text.text, text.size > SHOWN ? "..." : "", what, datatype_name(e->value->dtype));
}

/* A decimal number of at most 15 digits and a small power of ten is one exact operation; strtod reads the others. */
static double data_number(json_slice text)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { EXACT_DIGITS = 15 };
    bool minus = text.text[0] == '-';
    uint64_t digits = 0;
    int count = 0, scale = 0;
    size_t i = minus;
    for (bool fraction = false; i < text.size; i++) {
        char c = text.text[i];
        if (c == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (c < '0' || c > '9') break;
        if (count || c != '0') count++;
        if (count > EXACT_DIGITS) break;
        digits = digits * 10 + (unsigned)(c - '0');
        scale += fraction;
    }
    if (i == text.size && scale <= 22) return (minus ? -(double)digits : (double)digits) / powers[scale];
    return strtod(text.text, NULL); /* ends at the comma or bracket behind the number */
}

/* Stores one JSON integer as element e->index, or refuses what [least, most] does not hold. `value` has every negative
 * number and `large` every other one, since uint64 exceeds the range of `value`. A cast to the unsigned type of the
 * same width keeps the bits of a negative value. */
static int data_put_integer(elements *e, json_slice text, int64_t least, uint64_t most)
{
    int64_t value;
    uint64_t large;
    char *end;
    bool fits = json_integer(text, &value);
    large = fits && value >= 0 ? (uint64_t)value : 0;
    if (!fits && most == UINT64_MAX && text.text[0] != '-') {
        errno = 0;
        large = strtoull(text.text, &end, 10);
        fits = errno == 0 && end == text.text + text.size;
        value = 0;
    }
    if (!fits || value < least || large > most) return data_refuse(e, text, "is not a value of");
    void *data = e->value->data;
    switch (prony_dtype_bytes(e->value->dtype, 1)) {
    case 1:
        ((uint8_t *)data)[e->index] = (uint8_t)(value < 0 ? (uint64_t)value : large);
        break;
    case 2:
        ((uint16_t *)data)[e->index] = (uint16_t)(value < 0 ? (uint64_t)value : large);
        break;
    case 4:
        ((uint32_t *)data)[e->index] = (uint32_t)(value < 0 ? (uint64_t)value : large);
        break;
    default:
        ((uint64_t *)data)[e->index] = value < 0 ? (uint64_t)value : large;
    }
    return 0;
}

static int data_put_float(elements *e, json_slice text)
{
    if (text.text[0] != '-' && (text.text[0] < '0' || text.text[0] > '9'))
        return data_refuse(e, text, "is not a value of");
    double value = data_number(text);
    bool fits = isfinite(value);
    if (e->value->dtype == PRONY_FLOAT32) {
        fits = fabs(value) <= FLT_MAX;
        if (fits) ((float *)e->value->data)[e->index] = (float)value;
    } else if (e->value->dtype == PRONY_FLOAT64) {
        ((double *)e->value->data)[e->index] = value;
    } else {
        fits = datatype_set_float(e->value->dtype, e->value->data, e->index, value);
    }
    return fits ? 0 : data_refuse(e, text, "is beyond the range of");
}

static int data_put_packed(elements *e, json_slice text)
{
    int64_t value;
    if (json_integer(text, &value) && datatype_set_packed(e->value->dtype, e->value->data, e->index, value)) return 0;
    return data_refuse(e, text, "is not a value of");
}

static int data_put_bool(elements *e, json_slice text)
{
    bool set = json_equals(text, "true") || json_equals(text, "1");
    if (!set && !json_equals(text, "false") && !json_equals(text, "0"))
        return data_refuse(e, text, "is not a value of");
    ((uint8_t *)e->value->data)[e->index] = set;
    return 0;
}

static int data_put_string(elements *e, json_slice text)
{
    if (text.text[0] != '"') return data_refuse(e, text, "is not a value of");
    json_slice raw = {text.text + 1, text.size - 2};
    size_t size = json_unescape(raw, e->strings);
    ((prony_string *)e->value->data)[e->index] = (prony_string){e->strings, size};
    e->strings += size;
    return 0;
}

static int data_put(elements *e, json_slice text)
{
    int64_t least;
    uint64_t most;
    if (e->index >= e->count)
        return infer_fail(e->message, BAD, "model '%s': input '%s': data has more than the %zu elements of its shape",
                          e->model, e->input, e->count);
    int status;
    if (datatype_integer(e->value->dtype, &least, &most))
        status = data_put_integer(e, text, least, most);
    else if (e->value->dtype == PRONY_BOOL)
        status = data_put_bool(e, text);
    else if (e->value->dtype == PRONY_STRING)
        status = data_put_string(e, text);
    else if (datatype_is_packed(e->value->dtype))
        status = data_put_packed(e, text);
    else
        status = data_put_float(e, text);
    e->index++;
    return status;
}

/* Leaves of nested arrays in order. The caller has checked that the text is JSON, so only its kinds matter here. */
static int data_leaves(elements *e, json_slice data)
{
    json_scan scan = {.text = data.text, .size = data.size};
    for (char next; (next = json_peek(&scan));) {
        json_slice leaf;
        if (next == '[' || next == ']' || next == ',') {
            scan.at++;
            continue;
        }
        if (next == '{' || !json_value(&scan, &leaf))
            return infer_fail(e->message, BAD, "model '%s': input '%s': data has an object", e->model, e->input);
        int status = data_put(e, leaf);
        if (status) return status;
    }
    if (e->index == e->count) return 0;
    return infer_fail(e->message, BAD, "model '%s': input '%s': data has %zu elements, its shape has %zu", e->model,
                      e->input, e->index, e->count);
}

int infer_read_data(prony_value *value, void *owned[2], size_t *allocated, json_slice data, const char *model,
                    const char *input, char message[INFER_MESSAGE])
{
    elements e = {.value = value, .model = model, .input = input, .message = message};
    int64_t count = prony_shape_numel(&value->shape);
    if (data.text[0] != '[')
        return infer_fail(message, BAD, "model '%s': input '%s': data is not an array", model, input);
    if (count < 0 ||
        (uint64_t)count > data.size) /* every element takes a byte or more: nothing is allocated for fewer */
        return infer_fail(message, BAD, "model '%s': input '%s': data has fewer elements than its shape", model, input);
    e.count = (size_t)count;
    if (value->dtype == PRONY_COMPLEX64 || value->dtype == PRONY_COMPLEX128)
        return infer_fail(message, BAD, "model '%s': input '%s': %s needs binary data (binary_data_size)", model, input,
                          datatype_name(value->dtype));
    size_t bytes = prony_dtype_bytes(value->dtype, count) + 1;
    owned[0] = calloc(1, bytes);
    if (value->dtype == PRONY_STRING) owned[1] = malloc(data.size + 1);
    *allocated += bytes + (owned[1] ? data.size + 1 : 0);
    if (!owned[0] || (value->dtype == PRONY_STRING && !owned[1]))
        return infer_fail(message, NO_MEMORY, "out of memory");
    value->data = owned[0];
    e.strings = owned[1];
    return data_leaves(&e, data);
}

/* ---- binary ---- */

/* Strings: four bytes of length, low first, and the bytes, one after another. */
static int binary_strings(prony_value *value, void *owned[2], size_t *allocated, const unsigned char *data, size_t size,
                          const char *model, const char *input, char message[INFER_MESSAGE])
{
    int64_t count = prony_shape_numel(&value->shape);
    size_t at = 0;
    if (count < 0 || (uint64_t)count > size / 4)
        return infer_fail(message, BAD, "model '%s': input '%s': %zu bytes hold fewer strings than its shape", model,
                          input, size);
    prony_string *strings = owned[0] = malloc((size_t)count * sizeof *strings + 1);
    if (!strings) return infer_fail(message, NO_MEMORY, "out of memory");
    *allocated += (size_t)count * sizeof *strings + 1;
    for (int64_t i = 0; i < count; i++) {
        if (size - at < 4) break;
        size_t length = data[at] | (size_t)data[at + 1] << 8 | (size_t)data[at + 2] << 16 | (size_t)data[at + 3] << 24;
        if (length > size - at - 4)
            return infer_fail(message, BAD,
                              "model '%s': input '%s': string %lld has %zu bytes, beyond the end of the data", model,
                              input, (long long)i, length);
        strings[i] = (prony_string){(const char *)data + at + 4, length};
        at += 4 + length;
        if (i == count - 1 && at == size) return value->data = strings, 0;
    }
    if (count == 0 && size == 0) return value->data = strings, 0;
    return infer_fail(message, BAD, "model '%s': input '%s': %zu bytes do not hold the %lld strings of its shape",
                      model, input, size, (long long)count);
}

int infer_read_binary(prony_value *value, void *owned[2], size_t *allocated, const char *data, size_t size,
                      const char *model, const char *input, char message[INFER_MESSAGE])
{
    if (value->dtype == PRONY_STRING)
        return binary_strings(value, owned, allocated, (const unsigned char *)data, size, model, input, message);
    size_t bytes = prony_dtype_bytes(value->dtype, prony_shape_numel(&value->shape));
    if (bytes != size)
        return infer_fail(message, BAD, "model '%s': input '%s': binary_data_size is %zu, its shape has %zu bytes",
                          model, input, size, bytes);
    for (size_t i = 0; value->dtype == PRONY_BOOL && i < size; i++)
        if ((unsigned char)data[i] > 1)
            return infer_fail(message, BAD, "model '%s': input '%s': byte %zu is %u, not a value of BOOL", model, input,
                              i, (unsigned char)data[i]);
    if ((uintptr_t)data % 16 == 0) {
        value->data = (void *)(uintptr_t)data;
        return 0;
    }
    owned[0] = malloc(size + 1);
    if (!owned[0]) return infer_fail(message, NO_MEMORY, "out of memory");
    *allocated += size + 1;
    if (size) memcpy(owned[0], data, size);
    value->data = owned[0];
    return 0;
}
