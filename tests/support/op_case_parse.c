/* Reads the rows of tests/operators/cases: files into rows, and a row into a node with attributes and input tensors.
 * A parsed node owns its tensors' data; everything else lies in its pool. */
#include "tests/support/op_cases.h"

#include "base/attr.h"
#include "ops/kernels/lowbit/narrow_types.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    prn_bump *pool;
    const char *at;
    char *message;
    size_t message_bytes;
} reader;

static bool refuse(reader *r, const char *format, ...) PRN_PRINTF(2, 3);
static bool refuse(reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(r->message, r->message_bytes, format, args);
    va_end(args);
    if (wrote > 0 && (size_t)wrote < r->message_bytes) {
        snprintf(r->message + wrote, r->message_bytes - (size_t)wrote, " at \"%.40s\"", r->at);
    }
    return false;
}

static bool take(reader *r, const char *text)
{
    size_t size = strlen(text);
    if (strncmp(r->at, text, size) != 0) return false;
    r->at += size;
    return true;
}

/* ---- files into rows */

static void skip_space(reader *r, int *line)
{
    for (;;) {
        if (isspace((unsigned char)*r->at)) {
            *line += *r->at++ == '\n';
        } else if (strncmp(r->at, "/*", 2) == 0) {
            while (*r->at && strncmp(r->at, "*/", 2) != 0) *line += *r->at++ == '\n';
            take(r, "*/");
        } else if (strncmp(r->at, "//", 2) == 0) {
            while (*r->at && *r->at != '\n') r->at++;
        } else {
            return;
        }
    }
}

/* Adjacent C string literals, joined. */
static bool read_literal(reader *r, int *line, const char **out)
{
    char text[4096];
    size_t used = 0;
    if (*r->at != '"') return refuse(r, "wanted a string");
    while (*r->at == '"') {
        r->at++;
        while (*r->at && *r->at != '"') {
            if (used + 1 >= sizeof text) return refuse(r, "string is too long");
            text[used++] = *r->at++;
        }
        if (!take(r, "\"")) return refuse(r, "unterminated string");
        skip_space(r, line);
    }
    *out = prn_bump_strndup(r->pool, text, used);
    return *out || refuse(r, "out of memory");
}

#ifdef PRN_HAVE_PNG
static const bool have_png = true;
#else
static const bool have_png = false;
#endif

/* *needs_png: PNG_CASE, left out of builds without libpng. */
static bool read_row(reader *r, int *line, op_case *row, bool *needs_png)
{
    row->line = *line;
    row->refused = take(r, "REFUSED");
    *needs_png = !row->refused && take(r, "PNG_CASE");
    if (!row->refused && !*needs_png && !take(r, "CASE")) return refuse(r, "wanted CASE, PNG_CASE or REFUSED");
    if (!take(r, "(")) return refuse(r, "wanted (");
    skip_space(r, line);
    if (!read_literal(r, line, &row->op) || !take(r, ",")) return refuse(r, "wanted the operator");
    char *end;
    row->opset = strtoll(r->at, &end, 10);
    if (end == r->at) return refuse(r, "wanted the opset");
    r->at = end;
    const char **fields[] = {&row->attributes, &row->inputs};
    for (size_t i = 0; i < 2; i++) {
        skip_space(r, line);
        if (!take(r, ",")) return refuse(r, "wanted a comma");
        skip_space(r, line);
        if (!read_literal(r, line, fields[i])) return false;
    }
    return take(r, ")") || refuse(r, "wanted )");
}

static char *read_file(prn_bump *pool, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        text = size >= 0 ? prn_bump_alloc(pool, (size_t)size + 1, 1) : NULL;
        if (text && fread(text, 1, (size_t)size, file) != (size_t)size) text = NULL;
    }
    fclose(file);
    return text;
}

static bool load_file(op_case_list *list, const char *path, char *message, size_t message_bytes)
{
    const char *slash = strrchr(path, '/');
    const char *name = prn_bump_printf(&list->pool, "%s", slash ? slash + 1 : path);
    reader r = {&list->pool, read_file(&list->pool, path), message, message_bytes};
    if (!r.at || !name) {
        snprintf(message, message_bytes, "%s cannot be read: %s", path, strerror(errno));
        return false;
    }
    int line = 1;
    for (skip_space(&r, &line); *r.at; skip_space(&r, &line)) {
        op_case row = {.file = name};
        bool needs_png = false;
        if (!read_row(&r, &line, &row, &needs_png)) {
            char text[256];
            snprintf(text, sizeof text, "%s", message);
            snprintf(message, message_bytes, "%s:%d: %s", name, line, text);
            return false;
        }
        take(&r, ",");
        if (needs_png && !have_png) {
            printf("%s:%d: left out, it needs libpng\n", name, row.line);
            continue;
        }
        if (!PRN_GROW(list->items, list->capacity, list->count + 1)) return refuse(&r, "out of memory");
        list->items[list->count++] = row;
    }
    return true;
}

bool op_cases_load(op_case_list *list, const char *folder, char *message, size_t message_bytes)
{
    char pattern[1024];
    snprintf(pattern, sizeof pattern, "%s/*/*.inc", folder);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) {
        snprintf(message, message_bytes, "no files match %s", pattern);
        return false;
    }
    bool ok = true;
    for (size_t i = 0; i < found.gl_pathc && ok; i++) ok = load_file(list, found.gl_pathv[i], message, message_bytes);
    globfree(&found);
    return ok;
}

void op_cases_release(op_case_list *list)
{
    prn_free(list->items);
    prn_bump_release(&list->pool);
    *list = (op_case_list){0};
}

/* ---- elements */

static uint16_t half_from(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double a = fabs(x);
    if (isnan(x)) return 0x7e00;
    if (a >= 65520.0) return sign | 0x7c00;
    if (a < ldexp(1.0, -14)) return (uint16_t)(sign | (uint16_t)nearbyint(ldexp(a, 24)));
    int e = ilogb(a);
    return (uint16_t)(sign + ((e + 15) << 10) + (int)nearbyint((ldexp(a, -e) - 1.0) * 1024.0));
}

static double half_to(uint16_t bits)
{
    int e = bits >> 10 & 31, m = bits & 1023;
    double a = e == 0 ? ldexp(m, -24) : (e == 31 ? (m ? (double)NAN : (double)INFINITY) : ldexp(1024 + m, e - 25));
    return bits & 0x8000 ? -a : a;
}

static uint16_t bfloat_from(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double bfloat_to(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

/* X(dtype, C type) where a cast is the conversion. */
#define SMALL_TYPES(X)                                                                                                 \
    X(PRONY_FLOAT32, float)                                                                                            \
    X(PRONY_FLOAT64, double)                                                                                           \
    X(PRONY_INT8, int8_t)                                                                                              \
    X(PRONY_UINT8, uint8_t)                                                                                            \
    X(PRONY_INT16, int16_t)                                                                                            \
    X(PRONY_UINT16, uint16_t)                                                                                          \
    X(PRONY_INT32, int32_t)                                                                                            \
    X(PRONY_UINT32, uint32_t)                                                                                          \
    X(PRONY_BOOL, uint8_t)

#define PLAIN_TYPES(X)                                                                                                 \
    SMALL_TYPES(X)                                                                                                     \
    X(PRONY_INT64, int64_t)                                                                                            \
    X(PRONY_UINT64, uint64_t)

double op_case_get(const prony_value *value, int64_t index)
{
    switch (value->dtype) {
#define GET(dtype, type)                                                                                               \
    case dtype:                                                                                                        \
        return (double)((const type *)value->data)[index];
        PLAIN_TYPES(GET)
#undef GET
    case PRONY_FLOAT16:
        return half_to(((const uint16_t *)value->data)[index]);
    case PRONY_BFLOAT16:
        return bfloat_to(((const uint16_t *)value->data)[index]);
    default:
        if (!prn_dtype_is_narrow(value->dtype)) return (double)NAN;
        double x;
        prn_cast(&x, PRONY_FLOAT64, 0, value->data, value->dtype, index, 1, &(prn_cast_rule){.saturate = true});
        return x;
    }
}

/* The largest 64-bit integers are not doubles: cases write 2^63 or 2^64 for them, which are converted here. */
static int64_t to_int64(double x)
{
    return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

static uint64_t to_uint64(double x)
{
    return x >= 0x1p64 ? UINT64_MAX : x < 0 ? (uint64_t)to_int64(x) : (uint64_t)x;
}

static void set_element(prony_value *value, int64_t index, double x)
{
    switch (value->dtype) {
    case PRONY_INT64:
        ((int64_t *)value->data)[index] = to_int64(x);
        return;
    case PRONY_UINT64:
        ((uint64_t *)value->data)[index] = to_uint64(x);
        return;
#define SET(dtype, type)                                                                                               \
    case dtype:                                                                                                        \
        ((type *)value->data)[index] = (type)x;                                                                        \
        break;
        SMALL_TYPES(SET)
#undef SET
    case PRONY_FLOAT16:
        ((uint16_t *)value->data)[index] = half_from(x);
        break;
    case PRONY_BFLOAT16:
        ((uint16_t *)value->data)[index] = bfloat_from((float)x);
        break;
    default: /* in ascending order: the first element of a byte clears those behind it */
        prn_cast(value->data, value->dtype, index, &x, PRONY_FLOAT64, 0, 1, &(prn_cast_rule){.saturate = true});
        break;
    }
}

void op_case_fill(prony_value *value, double lo, double hi, uint64_t seed)
{
    int64_t count = prony_shape_numel(&value->shape);
    bool whole = !prn_dtype_is_float(value->dtype);
    for (int64_t i = 0; i < count; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        double unit = (double)((z ^ z >> 31) >> 11) * 0x1p-53;
        set_element(value, i, whole ? floor(lo + unit * (hi - lo + 1.0)) : lo + unit * (hi - lo));
    }
}

void *op_case_bytes(size_t bytes)
{
    void *block = prn_alloc_aligned(64, bytes ? bytes : 1);
    if (!block) abort();
    return block;
}

/* ---- a row into a node */

static const struct {
    const char *name;
    prony_dtype dtype;
    double lo, hi;
} dtypes[] = {{"bf16", PRONY_BFLOAT16, -2, 2},
              {"f16", PRONY_FLOAT16, -2, 2},
              {"f32", PRONY_FLOAT32, -2, 2},
              {"f64", PRONY_FLOAT64, -2, 2},
              {"i8", PRONY_INT8, -128, 127},
              {"u8", PRONY_UINT8, 0, 255},
              {"i16", PRONY_INT16, -300, 300},
              {"u16", PRONY_UINT16, 0, 600},
              {"i32", PRONY_INT32, -100, 100},
              {"u32", PRONY_UINT32, 0, 200},
              {"i64", PRONY_INT64, -100, 100},
              {"u64", PRONY_UINT64, 0, 200},
              {"bool", PRONY_BOOL, 0, 1},
              {"i4", PRONY_INT4, -8, 7},
              {"u4", PRONY_UINT4, 0, 15},
              {"i2", PRONY_INT2, -2, 1},
              {"u2", PRONY_UINT2, 0, 3},
              {"f4e2m1", PRONY_FLOAT4E2M1, -6, 6},
              {"f8e4m3fn", PRONY_FLOAT8E4M3FN, -9, 9},
              {"f8e4m3fnuz", PRONY_FLOAT8E4M3FNUZ, -9, 9},
              {"f8e5m2", PRONY_FLOAT8E5M2, -9, 9},
              {"f8e5m2fnuz", PRONY_FLOAT8E5M2FNUZ, -9, 9},
              {"f8e8m0", PRONY_FLOAT8E8M0, 0.125, 8}};
#define DTYPE_COUNT (sizeof dtypes / sizeof *dtypes)

/* Index into dtypes of the type name that a "[" follows; DTYPE_COUNT: none. */
static size_t peek_dtype(const reader *r)
{
    for (size_t i = 0; i < DTYPE_COUNT; i++) {
        size_t size = strlen(dtypes[i].name);
        if (strncmp(r->at, dtypes[i].name, size) == 0 && r->at[size] == '[') return i;
    }
    return DTYPE_COUNT;
}

static bool read_double(reader *r, double *out)
{
    char *end;
    *out = strtod(r->at, &end);
    if (end == r->at) return refuse(r, "wanted a number");
    r->at = end;
    return true;
}

static bool read_elements(reader *r, prony_value *value, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const char *start = r->at;
        double x;
        if ((i && !take(r, ",")) || (start = r->at, !read_double(r, &x))) return refuse(r, "wanted more data");
        set_element(value, i, x);
        /* A double does not hold every 64-bit integer. */
        if (value->dtype == PRONY_INT64) ((int64_t *)value->data)[i] = strtoll(start, NULL, 10);
        if (value->dtype == PRONY_UINT64) ((uint64_t *)value->data)[i] = strtoull(start, NULL, 10);
    }
    return take(r, "}") || refuse(r, "wanted }");
}

/* The element in the middle, and about one of 61 others. */
static void strew(prony_value *value, int64_t count, double x)
{
    for (int64_t i = 0; i < count; i++)
        if (i == count / 2 || (uint64_t)i * UINT64_C(2654435761) % 61 == 3) set_element(value, i, x);
}

static bool read_tensor(reader *r, prony_value *value, uint64_t seed)
{
    size_t kind = peek_dtype(r);
    if (kind == DTYPE_COUNT) return refuse(r, "wanted a type and [dims]");
    r->at += strlen(dtypes[kind].name) + 1;
    *value = (prony_value){.dtype = dtypes[kind].dtype};
    while (!take(r, "]")) {
        char *end;
        if (value->shape.rank == PRONY_MAX_RANK) return refuse(r, "rank is too large");
        int64_t dim = strtoll(r->at, &end, 10);
        if (end == r->at || dim < 0) return refuse(r, "wanted a dimension");
        r->at = end;
        value->shape.dim[value->shape.rank++] = dim;
        take(r, ",");
    }
    int64_t count = prony_shape_numel(&value->shape);
    if (count < 0 || count > 1 << 26) return refuse(r, "tensor is too large");
    value->data = op_case_bytes(prony_dtype_bytes(value->dtype, count));
    double lo = dtypes[kind].lo, hi = dtypes[kind].hi;
    if (take(r, "~") && (!read_double(r, &lo) || !take(r, ":") || !read_double(r, &hi))) {
        return refuse(r, "wanted lo:hi");
    }
    op_case_fill(value, lo, hi, seed);
    if (take(r, "@")) {
        if (!read_double(r, &lo)) return false;
        strew(value, count, lo);
    }
    return !take(r, "={") || read_elements(r, value, count);
}

static bool read_scalar(reader *r, prn_attr *attr)
{
    char *end;
    const char *start = r->at;
    if (take(r, "'")) {
        const char *close = strchr(r->at, '\'');
        if (!close) return refuse(r, "unterminated text");
        attr->type = PRN_ATTR_STRING;
        attr->s.size = (size_t)(close - r->at);
        attr->s.data = prn_bump_strndup(r->pool, r->at, attr->s.size);
        r->at = close + 1;
        return true;
    }
    attr->f = strtof(start, &end);
    if (end == start) return refuse(r, "wanted a value");
    attr->type = PRN_ATTR_INT;
    for (const char *c = start; c < end; c++) {
        if (*c == '.' || isalpha((unsigned char)*c)) attr->type = PRN_ATTR_FLOAT;
    }
    if (attr->type == PRN_ATTR_INT) attr->i = strtoll(start, &end, 10);
    r->at = end;
    return true;
}

static bool read_list(reader *r, prn_attr *attr)
{
    enum { CAPACITY = 256 };
    int64_t *ints = prn_bump_alloc(r->pool, CAPACITY, sizeof *ints);
    float *floats = prn_bump_alloc(r->pool, CAPACITY, sizeof *floats);
    prony_string *strings = prn_bump_alloc(r->pool, CAPACITY, sizeof *strings);
    if (!ints || !floats || !strings) return refuse(r, "out of memory");
    prn_attr_type type = PRN_ATTR_INT;
    while (!take(r, "]")) {
        prn_attr item = {0};
        if (attr->count == CAPACITY) return refuse(r, "list is too long");
        if (!read_scalar(r, &item)) return false;
        type = item.type;
        ints[attr->count] = item.i;
        floats[attr->count] = item.f;
        strings[attr->count++] = item.s;
        take(r, ",");
    }
    attr->ints = ints;
    attr->floats = floats;
    attr->strings = strings;
    attr->type = type == PRN_ATTR_INT ? PRN_ATTR_INTS : (type == PRN_ATTR_FLOAT ? PRN_ATTR_FLOATS : PRN_ATTR_STRINGS);
    return true;
}

static bool read_attributes(reader *r, op_case_node *out)
{
    enum { CAPACITY = 32 };
    prn_attr *items = prn_bump_alloc(r->pool, CAPACITY, sizeof *items);
    if (!items) return refuse(r, "out of memory");
    size_t count = 0;
    for (; *r->at; r->at += strspn(r->at, " ")) {
        size_t size = strcspn(r->at, "= ");
        if (count == CAPACITY || r->at[size] != '=') return refuse(r, "wanted name=value");
        prn_attr *attr = &items[count++];
        attr->name = prn_bump_strndup(r->pool, r->at, size);
        r->at += size + 1;
        if (take(r, "[")) {
            if (!read_list(r, attr)) return false;
        } else if (peek_dtype(r) < DTYPE_COUNT) {
            prony_value *value = prn_bump_alloc(r->pool, 1, sizeof *value);
            if (!value || !read_tensor(r, value, count)) return false;
            /* The pool owns attribute tensors: they outlive every kernel's use of them. */
            size_t bytes = prn_value_bytes(value);
            void *data = prn_bump_alloc(r->pool, bytes ? bytes : 1, 1);
            if (!data) return refuse(r, "out of memory");
            memcpy(data, value->data, bytes);
            prn_free_aligned(value->data);
            value->data = data;
            attr->tensor = value;
            attr->type = PRN_ATTR_TENSOR;
        } else if (!read_scalar(r, attr)) {
            return false;
        }
    }
    out->attributes = (prn_attr_list){items, count};
    out->node.attributes = &out->attributes;
    return true;
}

static bool read_inputs(reader *r, op_case_node *out, uint64_t seed)
{
    for (; *r->at; r->at += strspn(r->at, " ")) {
        if (take(r, "->")) {
            char *end;
            out->output_count = strtoull(r->at, &end, 10);
            if (end == r->at || out->output_count > OP_CASE_MAX_VALUES) return refuse(r, "wanted the output count");
            r->at = end;
            continue;
        }
        size_t i = out->input_count++;
        if (i + 1 >= OP_CASE_MAX_VALUES) return refuse(r, "too many inputs");
        if (take(r, "?")) continue;
        out->constant[i] = take(r, "!");
        out->inputs[i] = &out->values[i];
        if (!read_tensor(r, &out->values[i], seed + i * 1000003)) return false;
    }
    return true;
}

bool op_case_parse(op_case_node *out, const op_case *row, char *message, size_t message_bytes)
{
    *out = (op_case_node){0};
    const char *colons = strstr(row->op, "::");
    uint64_t seed = UINT64_C(14695981039346656037);
    const char *parts[] = {row->op, row->attributes, row->inputs};
    for (size_t k = 0; k < 3; k++) {
        for (const char *c = parts[k]; *c; c++) seed = (seed ^ (unsigned char)*c) * UINT64_C(1099511628211);
    }
    out->node.name = prn_bump_printf(&out->pool, "%s:%d", row->file, row->line);
    out->node.op_type = colons ? colons + 2 : row->op;
    out->node.domain = colons ? prn_bump_strndup(&out->pool, row->op, (size_t)(colons - row->op)) : "";
    out->node.opset = row->opset;
    reader attributes = {&out->pool, row->attributes, message, message_bytes};
    reader inputs = {&out->pool, row->inputs, message, message_bytes};
    return read_attributes(&attributes, out) && read_inputs(&inputs, out, seed);
}

void op_case_node_release(op_case_node *node)
{
    for (size_t i = 0; i < OP_CASE_MAX_VALUES; i++) prn_free_aligned(node->values[i].data);
    prn_bump_release(&node->pool);
}
