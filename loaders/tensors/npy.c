/* NumPy's .npy: a magic, a version, a Python dictionary with element type, order and shape, then the elements. Versions
 * 1 to 3 are read, version 1.0 is written. Column-major arrays are transposed on reading; big-endian ones are refused.
 * Text stands in npy_text.c. */
#include "loaders/onnx/owned_value.h"
#include "loaders/tensors/npy_text.h"
#include "loaders/tensors/tensor_file.h"

#include "base/memory/alloc.h"
#include "base/os/file.h"
#include "base/shape.h"

#include <stdio.h>
#include <string.h>

static const char npy_magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

/* The types both sides have. The first letter of a descr is the byte order. */
static const struct {
    prony_dtype dtype;
    char descr[5];
} types[] = {
    {PRONY_FLOAT32, "<f4"},   {PRONY_FLOAT64, "<f8"},     {PRONY_FLOAT16, "<f2"}, {PRONY_INT64, "<i8"},
    {PRONY_INT32, "<i4"},     {PRONY_INT16, "<i2"},       {PRONY_INT8, "|i1"},    {PRONY_UINT64, "<u8"},
    {PRONY_UINT32, "<u4"},    {PRONY_UINT16, "<u2"},      {PRONY_UINT8, "|u1"},   {PRONY_BOOL, "|b1"},
    {PRONY_COMPLEX64, "<c8"}, {PRONY_COMPLEX128, "<c16"},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

/* ---- reading ---- */

typedef struct header {
    const char *cursor, *end; /* in the dictionary's text */
    prony_dtype dtype;
    prn_npy_text text; /* of PRONY_STRING */
    bool column_major;
    prony_shape shape;
    bool has_type, has_order, has_shape;
} header;

static void npy_skip_space(header *h)
{
    while (h->cursor < h->end && strchr(" \t\r\n", *h->cursor) && *h->cursor) h->cursor++;
}

static bool npy_take(header *h, char wanted)
{
    npy_skip_space(h);
    if (h->cursor == h->end || *h->cursor != wanted) return false;
    h->cursor++;
    return true;
}

static bool take_word(header *h, const char *word)
{
    npy_skip_space(h);
    size_t size = strlen(word);
    if ((size_t)(h->end - h->cursor) < size || memcmp(h->cursor, word, size) != 0) return false;
    h->cursor += size;
    return true;
}

/* A quoted string without escapes, cut to fit. */
static bool take_string(header *h, char *text, size_t capacity)
{
    char quote = npy_take(h, '\'') ? '\'' : npy_take(h, '"') ? '"' : '\0';
    if (!quote) return false;
    size_t used = 0;
    for (; h->cursor < h->end && *h->cursor != quote; h->cursor++) {
        if (used + 1 < capacity) text[used++] = *h->cursor;
    }
    text[used] = '\0';
    return npy_take(h, quote);
}

static bool npy_take_number(header *h, int64_t *out)
{
    npy_skip_space(h);
    const char *start = h->cursor;
    int64_t value = 0;
    for (; h->cursor < h->end && *h->cursor >= '0' && *h->cursor <= '9'; h->cursor++) {
        if (value > (INT64_MAX - 9) / 10) return false;
        value = value * 10 + (*h->cursor - '0');
    }
    *out = value;
    return h->cursor > start;
}

static prony_status bad_header(const header *h, prony_error *error)
{
    int left = (int)(h->end - h->cursor < 20 ? h->end - h->cursor : 20);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "damaged .npy header near '%.*s'", left, h->cursor);
}

/* "<U12" and "|S12". */
static bool parse_text_type(header *h, const char *text)
{
    if (strlen(text) < 3) return false;
    header digits = {.cursor = text + 2, .end = text + strlen(text)};
    int64_t width;
    bool order = text[1] == 'U' ? text[0] == '<' || text[0] == '=' : text[1] == 'S';
    if (!order || !npy_take_number(&digits, &width) || digits.cursor != digits.end) return false;
    h->dtype = PRONY_STRING;
    h->text = (prn_npy_text){text[1], (size_t)width};
    return h->has_type = true;
}

static prony_status parse_type(header *h, prony_error *error)
{
    char text[32] = "";
    if (npy_take(h, '['))
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "NumPy types with fields are not supported; save each field as an array");
    if (!take_string(h, text, sizeof text)) return bad_header(h, error);
    if (parse_text_type(h, text)) return PRONY_OK;
    if (strcmp(text, "|O") == 0)
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "NumPy type '|O' (Python objects) is not supported; save text as array.astype(str)");
    for (int i = 0; i < TYPE_COUNT; i++) {
        bool order = text[0] == '<' || text[0] == '=' || (text[0] == '|' && types[i].descr[0] == '|');
        if (!order || strcmp(text + 1, types[i].descr + 1) != 0) continue;
        h->dtype = types[i].dtype;
        h->has_type = true;
        return PRONY_OK;
    }
    return prn_fail(error, PRONY_UNSUPPORTED, "NumPy type '%s' is not supported", text);
}

static prony_status npy_parse_shape(header *h, prony_error *error)
{
    h->shape = prn_shape_scalar();
    if (!npy_take(h, '(')) return bad_header(h, error);
    while (!npy_take(h, ')')) {
        int64_t dim;
        if (!npy_take_number(h, &dim)) return bad_header(h, error);
        if (h->shape.rank == PRONY_MAX_RANK) return prn_fail(error, PRONY_LIMIT, "rank is above %d", PRONY_MAX_RANK);
        h->shape.dim[h->shape.rank++] = dim;
        if (npy_take(h, ',')) continue;
        if (!npy_take(h, ')')) return bad_header(h, error);
        break;
    }
    h->has_shape = true;
    return PRONY_OK;
}

static prony_status parse_dictionary(header *h, prony_error *error)
{
    if (!npy_take(h, '{')) return bad_header(h, error);
    while (!npy_take(h, '}')) {
        char key[32];
        if (!take_string(h, key, sizeof key) || !npy_take(h, ':')) return bad_header(h, error);
        if (strcmp(key, "descr") == 0) {
            PRN_TRY(parse_type(h, error));
        } else if (strcmp(key, "shape") == 0) {
            PRN_TRY(npy_parse_shape(h, error));
        } else if (strcmp(key, "fortran_order") == 0) {
            h->column_major = take_word(h, "True");
            if (!h->column_major && !take_word(h, "False")) return bad_header(h, error);
            h->has_order = true;
        } else {
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "unknown key '%s' in the .npy header", key);
        }
        (void)npy_take(h, ',');
    }
    if (h->has_type && h->has_order && h->has_shape) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "the .npy header needs descr, fortran_order and shape");
}

/* Column-major elements into the row-major value. */
static void fill_transposed(prony_value *value, const uint8_t *from)
{
    size_t width = prony_dtype_bytes(value->dtype, 1);
    int64_t count = prony_shape_numel(&value->shape), at[PRONY_MAX_RANK] = {0}, stride[PRONY_MAX_RANK] = {0};
    int32_t rank = value->shape.rank;
    if (!count) return;
    for (int64_t d = 0, step = 1; d < rank; step *= value->shape.dim[d++]) stride[d] = step;
    uint8_t *to = value->data;
    for (int64_t i = 0, offset = 0; i < count; i++) {
        memcpy(to + (size_t)i * width, from + (size_t)offset * width, width);
        for (int32_t d = rank - 1; d >= 0; d--) {
            offset += stride[d];
            if (++at[d] < value->shape.dim[d]) break;
            offset -= at[d] * stride[d];
            at[d] = 0;
        }
    }
    if (value->dtype == PRONY_BOOL) prn_owned_fill(value, value->data);
}

/* Text, row-major whatever its order in the file. */
static prony_status npy_fill_text(prony_value *out, const header *h, const uint8_t *data, size_t size,
                                  prony_error *error)
{
    PRN_TRY(prn_npy_text_parse(out, h->text, &h->shape, data, size, error));
    size_t bytes = prn_value_bytes(out);
    if (!h->column_major || h->shape.rank < 2 || !bytes) return PRONY_OK;
    uint8_t *columns = prn_alloc(bytes);
    if (!columns) {
        prn_value_free_parts(out);
        return prn_no_memory(error);
    }
    memcpy(columns, out->data, bytes);
    fill_transposed(out, columns);
    prn_free(columns);
    return PRONY_OK;
}

/* Checks that the data has exactly the bytes of type and shape before anything is allocated. */
prony_status prn_npy_parse(prony_value *out, const uint8_t *data, size_t size, prony_error *error)
{
    if (size < 10 || memcmp(data, npy_magic, sizeof npy_magic) != 0) {
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "not an .npy file");
    }
    if (data[6] < 1 || data[6] > 3)
        return prn_fail(error, PRONY_UNSUPPORTED, ".npy version %d.%d is not supported", data[6], data[7]);
    size_t begin = data[6] == 1 ? 10 : 12, length = data[8] | (size_t)data[9] << 8;
    if (begin == 12 && size >= begin) length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (size < begin || length > size - begin) {
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "the .npy header reaches past the end of the file");
    }
    header h = {.cursor = (const char *)data + begin, .end = (const char *)data + begin + length};
    PRN_TRY(parse_dictionary(&h, error));
    size_t left = size - begin - length;
    if (h.dtype == PRONY_STRING) return npy_fill_text(out, &h, data + begin + length, left, error);
    prony_value type = {.dtype = h.dtype, .shape = h.shape};
    if (prn_value_bytes(&type) != left) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%zu bytes of data do not fit %s", left,
                        prn_value_text(&type, text));
    }
    PRN_TRY(prn_owned_tensor(out, h.dtype, &h.shape, 0, error));
    const uint8_t *from = data + begin + length;
    if (h.column_major && h.shape.rank > 1) {
        fill_transposed(out, from);
    } else {
        prn_owned_fill(out, from);
    }
    return PRONY_OK;
}

/* ---- writing ---- */

/* Dictionary and padding; the elements start at a multiple of 64 bytes. */
static size_t format_header(char text[1024], const char *descr, const prony_shape *shape)
{
    int used = snprintf(text + 10, 1000, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t d = 0; d < shape->rank; d++) {
        used += snprintf(text + 10 + used, (size_t)(1000 - used), d ? ", %lld" : "%lld", (long long)shape->dim[d]);
    }
    used += snprintf(text + 10 + used, (size_t)(1000 - used), shape->rank == 1 ? ",), }" : "), }");
    size_t total = (10 + (size_t)used + 1 + 63) / 64 * 64;
    memset(text + 10 + used, ' ', total - 10 - (size_t)used);
    text[total - 1] = '\n';
    memcpy(text, npy_magic, sizeof npy_magic);
    text[6] = 1;
    text[7] = 0;
    text[8] = (char)((total - 10) & 0xff);
    text[9] = (char)((total - 10) >> 8);
    return total;
}

/* Writes version 1.0. Refuses types without a NumPy equivalent before the file is created. */
prony_status prn_value_file_save_npy(const prony_value *value, const char *path, prony_error *error)
{
    if (value->kind != PRONY_TENSOR) {
        return prn_fail(error, PRONY_UNSUPPORTED, "'%.400s': only tensors can be saved as .npy", path);
    }
    size_t bytes = prn_value_bytes(value);
    if (value->layout || bytes == SIZE_MAX || (bytes && !value->data)) {
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%.400s': the tensor has no data in plain layout", path);
    }
    char text_descr[32];
    const char *descr = NULL;
    size_t width = 0;
    for (int i = 0; i < TYPE_COUNT; i++) {
        if (types[i].dtype == value->dtype) descr = types[i].descr;
    }
    if (value->dtype == PRONY_STRING) {
        prony_status status = prn_npy_text_width(&width, value, error);
        if (status != PRONY_OK) return prn_error_prefix(error, "'%.400s'", path), status;
        snprintf(text_descr, sizeof text_descr, "<U%zu", width);
        descr = text_descr;
    }
    if (!descr) {
        return prn_fail(error, PRONY_UNSUPPORTED, "'%.400s': NumPy has no type for %s", path,
                        prony_dtype_name(value->dtype));
    }
    char text[1024];
    size_t size = format_header(text, descr, &value->shape);
    prn_file_writer *writer;
    PRN_TRY(prn_file_create(&writer, path, error));
    /* A write that fails is remembered by the writer and reported when it commits. */
    (void)prn_file_write(writer, text, size);
    if (value->dtype == PRONY_STRING) {
        prn_npy_text_write(writer, value, width);
    } else if (bytes) {
        (void)prn_file_write(writer, value->data, bytes);
    }
    return prn_file_commit(writer, error);
}
