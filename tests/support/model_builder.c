/* The ONNX writer of the tests. It uses the C library's heap, so that allocation failures asked of the library under
 * test do not hit it. Every message is written into a buffer of its own and copied into the enclosing one when it
 * closes. */
#include "tests/support/model_builder.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- protobuf ---- */

void mb_put_raw(mb_bytes *to, const void *data, size_t size)
{
    if (size > to->capacity - to->size) {
        to->capacity = 2 * (to->size + size) + 64;
        to->data = realloc(to->data, to->capacity);
        if (!to->data) abort();
    }
    if (size) memcpy(to->data + to->size, data, size);
    to->size += size;
}

void mb_put_varint(mb_bytes *to, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = 0;
    do {
        bytes[size++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    mb_put_raw(to, bytes, size);
}

void mb_put_int(mb_bytes *to, uint32_t field, int64_t value)
{
    mb_put_varint(to, (uint64_t)field << 3);
    mb_put_varint(to, (uint64_t)value);
}

void mb_put_float(mb_bytes *to, uint32_t field, float value)
{
    mb_put_varint(to, (uint64_t)field << 3 | 5);
    mb_put_raw(to, &value, sizeof value);
}

void mb_put_bytes(mb_bytes *to, uint32_t field, const void *data, size_t size)
{
    mb_put_varint(to, (uint64_t)field << 3 | 2);
    mb_put_varint(to, size);
    mb_put_raw(to, data, size);
}

void mb_put_text(mb_bytes *to, uint32_t field, const char *text)
{
    mb_put_bytes(to, field, text, strlen(text));
}

void mb_put_message(mb_bytes *to, uint32_t field, mb_bytes *message)
{
    mb_put_bytes(to, field, message->data, message->size);
    message->size = 0;
}

void mb_release(mb_bytes *bytes)
{
    free(bytes->data);
    *bytes = (mb_bytes){0};
}

/* ---- models ---- */

enum { MAX_DEPTH = 128 };

typedef struct frame {
    mb_bytes graph, node;
    bool has_node;
    bool function;         /* the message is a FunctionProto */
    const char *attribute; /* of the outer node that this graph belongs to */
} frame;

struct model_builder {
    mb_bytes model;
    frame frames[MAX_DEPTH];
    size_t depth; /* of the current frame; 0 is the model's graph */
    bool finished;
};

static frame *current(model_builder *m)
{
    return &m->frames[m->depth];
}

static void close_node(frame *f)
{
    if (f->has_node) mb_put_message(&f->graph, f->function ? 7 : 1, &f->node);
    f->has_node = false;
}

void mb_opset(model_builder *m, const char *domain, int64_t version)
{
    mb_bytes opset = {0};
    mb_put_text(&opset, 1, domain);
    mb_put_int(&opset, 2, version);
    mb_put_message(&m->model, 8, &opset);
    mb_release(&opset);
}

model_builder *mb_begin(int64_t opset)
{
    model_builder *m = calloc(1, sizeof *m);
    if (!m) abort();
    mb_put_int(&m->model, 1, 8);
    mb_opset(m, "", opset);
    mb_put_text(&m->frames[0].graph, 2, "test");
    return m;
}

/* The next item of a list and the rest; false at its end. */
static bool next_item(const char **list, char separator, char item[256])
{
    while (**list == ' ') ++*list;
    if (!**list) return false;
    size_t size = 0;
    for (; **list && **list != separator; ++*list) {
        if (size + 1 >= 256) abort();
        item[size++] = **list;
    }
    item[size] = '\0';
    if (**list) ++*list;
    return true;
}

void mb_container(model_builder *m, bool output, const char *name, prony_kind kind, prony_dtype dtype)
{
    mb_bytes port = {0}, type = {0}, outer = {0}, tensor = {0};
    mb_put_int(&tensor, 1, dtype);
    mb_put_message(&type, 1, &tensor);
    mb_put_message(&outer, 1, &type);
    mb_put_message(&type, kind == PRONY_SEQUENCE ? 4 : 9, &outer);
    mb_put_text(&port, 1, name);
    mb_put_message(&port, 2, &type);
    mb_put_message(&current(m)->graph, output ? 12 : 11, &port);
    mb_release(&port);
    mb_release(&type);
    mb_release(&outer);
    mb_release(&tensor);
}

static void put_port(model_builder *m, uint32_t field, const char *name, prony_dtype dtype, const char *dims)
{
    mb_bytes port = {0}, type = {0}, tensor = {0}, shape = {0}, dim = {0};
    char item[256];
    mb_put_int(&tensor, 1, dtype);
    for (const char *rest = dims; rest && next_item(&rest, ',', item);) {
        if (isdigit((unsigned char)item[0]) || item[0] == '-') {
            mb_put_int(&dim, 1, strtoll(item, NULL, 10));
        } else if (strcmp(item, "?") != 0) {
            mb_put_text(&dim, 2, item);
        }
        mb_put_message(&shape, 1, &dim);
    }
    if (dims) mb_put_message(&tensor, 2, &shape);
    mb_put_message(&type, 1, &tensor);
    mb_put_text(&port, 1, name);
    mb_put_message(&port, 2, &type);
    mb_put_message(&current(m)->graph, field, &port);
    mb_release(&port);
    mb_release(&type);
    mb_release(&tensor);
    mb_release(&shape);
    mb_release(&dim);
}

void mb_input(model_builder *m, const char *name, prony_dtype dtype, const char *dims)
{
    put_port(m, 11, name, dtype, dims);
}

void mb_output(model_builder *m, const char *name, prony_dtype dtype, const char *dims)
{
    put_port(m, 12, name, dtype, dims);
}

static void put_tensor(mb_bytes *to, uint32_t field, const char *name, prony_dtype dtype, const char *dims,
                       const void *data)
{
    mb_bytes tensor = {0};
    char item[256];
    int64_t count = 1;
    while (next_item(&dims, ',', item)) {
        int64_t dim = strtoll(item, NULL, 10);
        mb_put_int(&tensor, 1, dim);
        if (__builtin_mul_overflow(count, dim, &count)) count = 0; /* no data then */
    }
    mb_put_int(&tensor, 2, dtype);
    mb_put_text(&tensor, 8, name);
    mb_put_bytes(&tensor, 9, data, prony_dtype_bytes(dtype, count));
    mb_put_message(to, field, &tensor);
    mb_release(&tensor);
}

void mb_initializer(model_builder *m, const char *name, prony_dtype dtype, const char *dims, const void *data)
{
    put_tensor(&current(m)->graph, 5, name, dtype, dims, data);
}

/* ---- nodes ---- */

enum {
    ATTR_FLOAT = 1,
    ATTR_INT = 2,
    ATTR_STRING = 3,
    ATTR_TENSOR = 4,
    ATTR_GRAPH = 5,
    ATTR_LIST = 5 /* FLOATS - FLOAT */
};

/* "type:name", an attribute of the function around the node; returns the type. */
static int put_reference(mb_bytes *attr, const char **text)
{
    static const char *const types[] = {"", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings"};
    const char *colon = strchr(*text, ':'), *end = *text + strcspn(*text, " ");
    if (!colon || colon > end) abort();
    mb_put_bytes(attr, 21, colon + 1, (size_t)(end - colon - 1));
    for (int k = 1; k < 9; k++) {
        if (strlen(types[k]) != (size_t)(colon - *text) || strncmp(types[k], *text, strlen(types[k])) != 0) continue;
        *text = end;
        return k;
    }
    abort();
}

/* One number or quoted text; returns its type (ATTR_FLOAT, ATTR_INT, ATTR_STRING). With `list` into the list's field.
 */
static int put_value(mb_bytes *attr, const char **text, bool list)
{
    const char *start = *text;
    if (*start == '\'') {
        const char *end = strchr(start + 1, '\'');
        if (!end) abort();
        mb_put_bytes(attr, list ? 9 : 4, start + 1, (size_t)(end - start - 1));
        *text = end + 1;
        return ATTR_STRING;
    }
    char *end, *float_end;
    int64_t integer = strtoll(start, &end, 10);
    float real = strtof(start, &float_end);
    if (float_end == start) abort();
    *text = float_end;
    if (end == float_end) {
        mb_put_int(attr, list ? 8 : 3, integer);
        return ATTR_INT;
    }
    mb_put_float(attr, list ? 7 : 2, real);
    return ATTR_FLOAT;
}

static void put_attributes(mb_bytes *node, uint32_t field, const char *text)
{
    mb_bytes attr = {0};
    for (;;) {
        while (*text == ' ') text++;
        if (!*text) break;
        const char *equals = strchr(text, '=');
        if (!equals) abort();
        mb_put_bytes(&attr, 1, text, (size_t)(equals - text));
        text = equals + 1;
        int type = ATTR_INT;
        bool list = *text == '[';
        if (*text == '@') {
            text++;
            type = put_reference(&attr, &text);
        } else if (list) {
            for (text++; *text != ']'; text += *text == ',') type = put_value(&attr, &text, true);
            text++;
        } else {
            type = put_value(&attr, &text, false);
        }
        mb_put_int(&attr, 20, list ? type + ATTR_LIST : type);
        mb_put_message(node, field, &attr);
    }
    mb_release(&attr);
}

void mb_node(model_builder *m, const char *op, const char *inputs, const char *outputs, const char *attributes)
{
    frame *f = current(m);
    char item[256];
    close_node(f);
    f->has_node = true;
    while (next_item(&inputs, ' ', item)) mb_put_text(&f->node, 1, strcmp(item, "?") == 0 ? "" : item);
    while (next_item(&outputs, ' ', item)) mb_put_text(&f->node, 2, strcmp(item, "?") == 0 ? "" : item);
    const char *domain_end = strstr(op, "::");
    mb_put_text(&f->node, 4, domain_end ? domain_end + 2 : op);
    put_attributes(&f->node, 5, attributes);
    if (domain_end) mb_put_bytes(&f->node, 7, op, (size_t)(domain_end - op));
}

mb_bytes *mb_raw_node(model_builder *m)
{
    if (!current(m)->has_node) abort();
    return &current(m)->node;
}

void mb_node_name(model_builder *m, const char *name)
{
    mb_put_text(mb_raw_node(m), 3, name);
}

void mb_tensor(model_builder *m, const char *attribute, prony_dtype dtype, const char *dims, const void *data)
{
    mb_bytes attr = {0};
    mb_put_text(&attr, 1, attribute);
    put_tensor(&attr, 5, "", dtype, dims, data);
    mb_put_int(&attr, 20, ATTR_TENSOR);
    mb_put_message(mb_raw_node(m), 5, &attr);
    mb_release(&attr);
}

void mb_graph_begin(model_builder *m, const char *attribute)
{
    if (!current(m)->has_node || m->depth + 1 >= MAX_DEPTH) abort();
    frame *f = &m->frames[++m->depth];
    f->attribute = attribute;
    mb_put_text(&f->graph, 2, attribute);
}

void mb_graph_end(model_builder *m)
{
    frame *f = current(m);
    if (!m->depth) abort();
    close_node(f);
    mb_bytes attr = {0};
    mb_put_text(&attr, 1, f->attribute);
    mb_put_message(&attr, 6, &f->graph);
    mb_put_int(&attr, 20, ATTR_GRAPH);
    m->depth--;
    mb_put_message(mb_raw_node(m), 5, &attr);
    mb_release(&attr);
}

void mb_function_begin(model_builder *m, const char *function, const char *inputs, const char *outputs,
                       const char *attributes, const char *defaults, int64_t opset)
{
    const char *domain_end = strstr(function, "::");
    mb_bytes import = {0};
    char item[256];
    if (!domain_end || m->depth + 1 >= MAX_DEPTH) abort();
    close_node(current(m));
    frame *f = &m->frames[++m->depth];
    f->function = true;
    mb_put_text(&f->graph, 1, domain_end + 2);
    mb_put_bytes(&f->graph, 10, function, (size_t)(domain_end - function));
    while (next_item(&inputs, ' ', item)) mb_put_text(&f->graph, 4, item);
    while (next_item(&outputs, ' ', item)) mb_put_text(&f->graph, 5, item);
    while (next_item(&attributes, ' ', item)) mb_put_text(&f->graph, 6, item);
    put_attributes(&f->graph, 11, defaults);
    mb_put_text(&import, 1, "");
    mb_put_int(&import, 2, opset);
    mb_put_message(&f->graph, 9, &import);
    mb_put_bytes(&import, 1, function, (size_t)(domain_end - function));
    mb_put_int(&import, 2, 1);
    mb_put_message(&f->graph, 9, &import);
    mb_release(&import);
}

void mb_function_end(model_builder *m)
{
    frame *f = current(m);
    if (!f->function) abort();
    close_node(f);
    mb_put_message(&m->model, 25, &f->graph);
    f->function = false;
    m->depth--;
}

mb_bytes *mb_raw_graph(model_builder *m)
{
    return &current(m)->graph;
}

mb_bytes *mb_raw_model(model_builder *m)
{
    return &m->model;
}

/* The models of all tests are seeds for tests/fuzz/fuzz_run.c: PRN_TEST_MODELS names a folder to keep each in. */
static void keep(const mb_bytes *model)
{
    const char *folder = getenv("PRN_TEST_MODELS");
    char path[1024];
    uint64_t hash = 0xcbf29ce484222325u;
    if (!folder) return;
    for (size_t i = 0; i < model->size; i++) hash = (hash ^ model->data[i]) * 0x100000001b3u;
    snprintf(path, sizeof path, "%s/%016llx.onnx", folder, (unsigned long long)hash);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(model->data, 1, model->size, file) != model->size || fclose(file) != 0) abort();
}

const void *mb_finish(model_builder *m, size_t *size)
{
    while (m->depth) mb_graph_end(m);
    if (!m->finished) {
        close_node(current(m));
        mb_put_message(&m->model, 7, &current(m)->graph);
        m->finished = true;
        keep(&m->model);
    }
    *size = m->model.size;
    return m->model.data;
}

void mb_free(model_builder *m)
{
    if (!m) return;
    for (size_t i = 0; i < MAX_DEPTH; i++) {
        mb_release(&m->frames[i].graph);
        mb_release(&m->frames[i].node);
    }
    mb_release(&m->model);
    free(m);
}
