/* prony_value_parse: tensors written as text; literal_text.c reads strings. Numbers are read independently of the
 * locale; a list's numbers are kept in one growing array until the shape is known. */
#include "api/literal_text.h"
#include "base/shape.h"
#include "engine/session/session.h"
#include "loaders/onnx/owned_value.h"
#include "loaders/tensors/tensor_file.h"
#include "ops/kernels/vector/number.h"
#include "profiler/text/number_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* A number as written: exact where it is whole. */
typedef struct number {
    double real;
    int64_t whole;
    bool is_whole;
} number;

typedef struct list {
    number *items;
    size_t count, capacity;
    prony_shape shape;
    int leaf; /* depth of the numbers, from 1; 0: none was seen */
    bool no_memory;
    prn_literal_texts *texts; /* which take the place of the numbers; NULL: numbers */
} list;

static const char *literal_skip(const char *text)
{
    while (isspace((unsigned char)*text)) text++;
    return text;
}

static bool starts(const char **text, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*text, word, n) != 0 || isalnum((unsigned char)(*text)[n])) return false;
    *text += n;
    return true;
}

static const char *read_one(const char *text, number *out)
{
    text = literal_skip(text);
    if (starts(&text, "true") || starts(&text, "false")) {
        bool is = text[-2] == 'u';
        *out = (number){is, is, true};
        return text;
    }
    const char *rest = prn_number_read(text, &out->real);
    char *end;
    errno = 0;
    out->whole = strtoll(text, &end, 10);
    out->is_whole = rest && end == rest && errno == 0;
    return rest;
}

/* ---- lists ---- */

/* A number or a string of the list. */
static const char *read_item(const char *text, list *out)
{
    if (out->texts) {
        text = prn_literal_text_read(out->texts, text);
        out->no_memory = out->texts->no_memory;
        out->count += text != NULL;
        return text;
    }
    out->no_memory = !PRN_GROW(out->items, out->capacity, out->count + 1);
    return out->no_memory ? NULL : read_one(text, &out->items[out->count++]);
}

/* One list with what is nested in it; every list of a depth has the length of the first one there. */
static const char *literal_read_list(const char *text, list *out, int depth)
{
    int64_t count = 0;
    text = literal_skip(text + 1);
    if (depth == PRONY_MAX_RANK || (out->leaf && depth >= out->leaf)) return NULL;
    bool first = out->shape.rank <= depth;
    if (first) out->shape.rank = depth + 1;
    while (*text && *text != ']') {
        if (*text == '[') {
            text = literal_read_list(text, out, depth + 1);
        } else {
            out->leaf = depth + 1;
            if (out->shape.rank != depth + 1) return NULL;
            text = read_item(text, out);
        }
        if (!text) return NULL;
        count++;
        text = literal_skip(text);
        if (*text == ',')
            text = literal_skip(text + 1);
        else if (*text != ']')
            return NULL;
    }
    if (*text != ']' || (!first && out->shape.dim[depth] != count)) return NULL;
    out->shape.dim[depth] = count;
    return text + 1;
}

/* ---- storing ---- */

static bool fits_integer(const number *n, double low, double high)
{
    return n->is_whole ? (double)n->whole >= low && (double)n->whole <= high
                       : n->real == (double)(int64_t)n->real && n->real >= low && n->real <= high;
}

static bool store_integer(uint8_t *to, prony_dtype dtype, const number *n)
{
    static const struct {
        prony_dtype dtype;
        double low, high;
    } ranges[] = {{PRONY_BOOL, 0, 1},
                  {PRONY_INT8, -128, 127},
                  {PRONY_UINT8, 0, 255},
                  {PRONY_INT16, -32768, 32767},
                  {PRONY_UINT16, 0, 65535},
                  {PRONY_INT32, INT32_MIN, INT32_MAX},
                  {PRONY_UINT32, 0, UINT32_MAX},
                  {PRONY_INT64, -0x1p63, 0x1p62},
                  {PRONY_UINT64, 0, 0x1p62}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].dtype != dtype) continue;
        bool wide = dtype == PRONY_INT64 && n->is_whole;
        if (!wide && !fits_integer(n, ranges[i].low, ranges[i].high)) return false;
        int64_t v = n->is_whole ? n->whole : (int64_t)n->real;
        memcpy(to, &v, prony_dtype_bytes(dtype, 1)); /* little-endian */
        return true;
    }
    return false;
}

static bool literal_store(uint8_t *to, prony_dtype dtype, const number *n)
{
    switch (dtype) {
    case PRONY_FLOAT32:
        memcpy(to, &(float){(float)n->real}, 4);
        return true;
    case PRONY_FLOAT64:
        memcpy(to, &n->real, 8);
        return true;
    case PRONY_FLOAT16:
        memcpy(to, &(uint16_t){prn_f32_to_f16(prn_f64_to_f32_odd(n->real))}, 2);
        return true;
    case PRONY_BFLOAT16:
        memcpy(to, &(uint16_t){prn_f32_to_bf16(prn_f64_to_f32_odd(n->real))}, 2);
        return true;
    default:
        return store_integer(to, dtype, n);
    }
}

static bool can_store(prony_dtype dtype)
{
    uint8_t scratch[16];
    return literal_store(scratch, dtype, &(number){0, 0, true});
}

/* ---- shapes ---- */

/* Own extents where the input leaves them free, ones in front, as in broadcasting; or any shape of as many elements. */
static bool fit_list(prony_shape *out, const prony_shape *want, const list *l)
{
    if (want->rank < 0) {
        *out = l->shape;
        return true;
    }
    *out = *want;
    if (prn_shape_known(want)) return prony_shape_numel(want) == (int64_t)l->count;
    int ahead = want->rank - l->shape.rank;
    for (int d = 0; d < want->rank; d++) {
        int64_t extent = d < ahead ? 1 : l->shape.dim[d - ahead];
        if (want->dim[d] >= 0 && want->dim[d] != extent) return false;
        out->dim[d] = extent;
    }
    return ahead >= 0;
}

static prony_status need_shape(const prony_shape *shape, const char *text, prony_error *error)
{
    char shown[PRN_SHAPE_TEXT_BYTES];
    if (prn_shape_known(shape)) return PRONY_OK;
    return prn_fail(error, PRONY_NEEDS_DIMENSION, "'%.60s' cannot fill an input whose shape %s is not fully known",
                    text, shape->rank < 0 ? "(not declared)" : prn_shape_text(shape, shown));
}

/* ---- the forms ---- */

static prony_status literal_refuse(const char *text, prony_dtype dtype, prony_error *error)
{
    if (dtype == PRONY_STRING)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "'%.80s' is not a string value: wanted \"x\" or [\"x\", \"y\"], its quotes behind the shell's",
                        text);
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "'%.80s' is not a value of type %s: wanted a number, [1, 2, 3], zeros, ones or uniform:LOW:HIGH",
                    text, prony_dtype_name(dtype));
}

static prony_status parse_list(prony_value *out, const char *text, const prony_shape *shape, prony_error *error)
{
    prn_literal_texts texts = {0};
    list l = {.texts = out->dtype == PRONY_STRING ? &texts : NULL};
    const char *rest = literal_read_list(text, &l, 0);
    prony_status status = PRONY_OK;
    prony_shape own;
    char want[PRN_SHAPE_TEXT_BYTES], got[PRN_SHAPE_TEXT_BYTES];
    if (l.no_memory)
        status = prn_no_memory(error);
    else if (!rest || *literal_skip(rest))
        status = literal_refuse(text, out->dtype, error);
    else if (!fit_list(&own, shape, &l))
        status = prn_fail(error, PRONY_SHAPE_MISMATCH, "the list has shape %s, wanted %s",
                          prn_shape_text(&l.shape, got), prn_shape_text(shape, want));
    if (status == PRONY_OK)
        status = l.texts ? prn_literal_text_tensor(out, &texts, &own, error)
                         : prn_owned_tensor(out, out->dtype, &own, 0, error);
    size_t width = prony_dtype_bytes(out->dtype, 1);
    for (size_t i = 0; status == PRONY_OK && !l.texts && i < l.count; i++)
        if (!literal_store((uint8_t *)out->data + i * width, out->dtype, &l.items[i]))
            status = prn_fail(error, PRONY_INVALID_ARGUMENT, "element %zu of the list is not a valid %s", i,
                              prony_dtype_name(out->dtype));
    prn_free(l.items);
    prn_literal_text_free(&texts);
    return status;
}

/* One string, which fills the input. */
static prony_status literal_fill_text(prony_value *out, const char *text, const prony_shape *shape, prony_error *error)
{
    prn_literal_texts texts = {0};
    const char *rest = prn_literal_text_read(&texts, text);
    prony_status status = need_shape(shape, text, error);
    if (texts.no_memory)
        status = prn_no_memory(error);
    else if (!rest || *literal_skip(rest))
        status = literal_refuse(text, PRONY_STRING, error);
    if (status == PRONY_OK) status = prn_literal_text_tensor(out, &texts, shape, error);
    prn_literal_text_free(&texts);
    return status;
}

static prony_status literal_fill(prony_value *out, const number *n, const char *text, const prony_shape *shape,
                                 prony_error *error)
{
    PRN_TRY(need_shape(shape, text, error));
    PRN_TRY(prn_owned_tensor(out, out->dtype, shape, 0, error));
    int64_t count = prony_shape_numel(shape);
    size_t width = prony_dtype_bytes(out->dtype, 1);
    for (int64_t i = 0; i < count; i++)
        if (!literal_store((uint8_t *)out->data + (size_t)i * width, out->dtype, n))
            return literal_refuse(text, out->dtype, error);
    return PRONY_OK;
}

static prony_status parse_uniform(prony_value *out, const char *text, const prony_shape *shape, uint64_t seed,
                                  prony_error *error)
{
    number low, high;
    const char *at = read_one(text + strlen("uniform:"), &low);
    if (at && *at == ':')
        at = read_one(at + 1, &high);
    else
        at = NULL;
    if (!at || *at || !(low.real <= high.real)) return literal_refuse(text, out->dtype, error);
    PRN_TRY(literal_fill(out, &low, text, shape, error));
    bool whole = !prn_dtype_is_float(out->dtype);
    if (whole && (!low.is_whole || !high.is_whole)) return literal_refuse(text, out->dtype, error);
    size_t width = prony_dtype_bytes(out->dtype, 1);
    for (int64_t i = 0, count = prony_shape_numel(shape); i < count; i++) {
        double part = prn_random_fraction(&seed);
        number n = {low.real + (high.real - low.real) * part, 0, whole};
        if (whole) n.whole = low.whole + (int64_t)(part * ((double)(high.whole - low.whole) + 1));
        if (!literal_store((uint8_t *)out->data + (size_t)i * width, out->dtype, &n))
            return literal_refuse(text, out->dtype, error);
    }
    return PRONY_OK;
}

static prony_status literal_parse(prony_value *out, const char *text, const prony_shape *shape, uint64_t seed,
                                  prony_error *error)
{
    number n = {0, 0, true};
    const char *rest = "";
    text = literal_skip(text);
    if (out->dtype == PRONY_STRING)
        return *text == '[' ? parse_list(out, text, shape, error) : literal_fill_text(out, text, shape, error);
    if (!can_store(out->dtype))
        return prn_fail(error, PRONY_UNSUPPORTED, "values of type %s cannot be read from text; give a file",
                        prony_dtype_name(out->dtype));
    if (*text == '[') return parse_list(out, text, shape, error);
    if (strncmp(text, "uniform:", 8) == 0) return parse_uniform(out, text, shape, seed, error);
    if (strcmp(text, "ones") == 0)
        n = (number){1, 1, true};
    else if (strcmp(text, "zeros") != 0)
        rest = read_one(text, &n);
    if (!rest || *literal_skip(rest)) return literal_refuse(text, out->dtype, error);
    return literal_fill(out, &n, text, shape, error);
}

prony_status prony_value_parse(prony_value **out, const char *text, prony_dtype dtype, const prony_shape *shape,
                               uint64_t seed, prony_error *error)
{
    if (!out || !text || !shape)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_value_parse: an argument is NULL");
    prony_value *value = prn_calloc(1, sizeof *value);
    if (!value) return prn_no_memory(error);
    value->dtype = dtype;
    prony_status status = literal_parse(value, text, shape, seed, error);
    if (status == PRONY_OK)
        *out = value;
    else
        prn_value_free(value);
    return status;
}

bool prony_value_is_literal(const char *text)
{
    number n;
    text = literal_skip(text);
    if (*text == '[' || *text == '"' || *text == '\'' || strcmp(text, "zeros") == 0 || strcmp(text, "ones") == 0 ||
        strncmp(text, "uniform:", 8) == 0)
        return true;
    const char *rest = read_one(text, &n);
    return rest && !*literal_skip(rest);
}
