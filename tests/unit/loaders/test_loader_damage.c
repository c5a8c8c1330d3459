/* The loader on damaged and hostile models: each is refused with a status and a message that names the place; nothing
 * crashes, hangs or allocates more than the bytes at hand justify. */
#include "failure_trace.h"
#include "tests/support/loader_checks.h"
#include "tests/support/model_walk.h"

#include "base/memory/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAD PRONY_INVALID_MODEL

static model_builder *small_model(void)
{
    const float weights[4] = {1, 2, 3, 4};
    const int64_t shape[1] = {4};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "N,4");
    mb_input(m, "flag", PRONY_BOOL, "");
    mb_initializer(m, "w", PRONY_FLOAT32, "4", weights);
    mb_node(m, "Add", "x w", "a", "ints=[1,2] floats=[1.0] name='text'");
    mb_tensor(m, "t", PRONY_INT64, "1", shape);
    mb_node(m, "If", "flag", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Relu", "a", "r", "");
    mb_output(m, "r", PRONY_FLOAT32, NULL);
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "N,4");
    return m;
}

/* Any bytes load and can be read, or the loader refuses them with a message. */
static prony_status load_any(const void *data, size_t size)
{
    /* A block of its own size, so that the address sanitizer sees a read past the end. */
    void *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    if (size) memcpy(copy, data, size);
    prn_model_file *file = NULL;
    prony_error error = {0};
    prony_status status = prn_model_parse(&file, "any", copy, size, &error);
    if (status == PRONY_OK) {
        (void)model_walk(file);
        prn_model_close(file);
    } else {
        assert_null(file);
        assert_int_equal(error.status, status);
        assert_true(status == BAD || status == PRONY_UNSUPPORTED || status == PRONY_LIMIT);
        assert_true(strncmp(error.message, "any: ", 5) == 0 && error.message[5]);
    }
    free(copy);
    return status;
}

/* ---- bytes ---- */

static void test_every_truncation(void **state)
{
    (void)state;
    size_t size;
    model_builder *m = small_model();
    const uint8_t *data = mb_finish(m, &size);
    for (size_t length = 0; length < size; length++) assert_int_equal(load_any(data, length), BAD);
    assert_int_equal(load_any(data, size), PRONY_OK);
    mb_free(m);
}

static void test_every_bit_flipped(void **state)
{
    (void)state;
    size_t size, refused = 0;
    model_builder *m = small_model();
    uint8_t *data = (uint8_t *)(uintptr_t)mb_finish(m, &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        refused += load_any(data, size) != PRONY_OK;
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(refused > size);
    mb_free(m);
}

static void test_every_byte_replaced(void **state)
{
    (void)state;
    static const uint8_t values[] = {0x00, 0x7f, 0x80, 0xff};
    size_t size;
    model_builder *m = small_model();
    uint8_t *data = (uint8_t *)(uintptr_t)mb_finish(m, &size);
    for (size_t i = 0; i < size; i++) {
        uint8_t old = data[i];
        for (size_t v = 0; v < sizeof values; v++) {
            data[i] = values[v];
            (void)load_any(data, size);
        }
        data[i] = old;
    }
    assert_int_equal(load_any(data, size), PRONY_OK);
    mb_free(m);
}

static void test_wire_damage(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } rows[] = {
        {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, "varint"}, /* eleven bytes */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "varint"},     /* 65 bits */
        {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "length"},     /* 2^64 - 1 bytes */
        {"\x3a\xff\xff\xff\xff\x0f", 6, "length"},
        {"\x00\x00", 2, "field tag"}, /* field 0 */
        {"\x0b\x0c", 2, "group"},
        {"\x0f", 1, "wire type"},
        {"\x0d\x01\x02", 3, "fixed-width"},
        {"\x09\x01\x02\x03\x04", 5, "fixed-width"},
        {"\x0a\x00", 2, "unexpected wire type"}, /* ir_version as bytes */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        must_refuse_bytes(rows[i].bytes, rows[i].size, BAD, rows[i].text);
    }
    must_refuse_bytes("", 0, BAD, "is empty");
    must_refuse_bytes("not a model at all", 18, BAD, "text");
}

/* Every known field of the messages with each wrong wire type. */
static void test_wrong_wire_types(void **state)
{
    (void)state;
    static const uint32_t node_fields[] = {1, 2, 3, 4, 5, 7, 8}, graph_fields[] = {1, 2, 5, 11, 12, 15};
    for (size_t i = 0; i < sizeof node_fields / sizeof node_fields[0]; i++) {
        model_builder *m = mb_begin(13);
        mb_node(m, "Op", "", "y", "");
        mb_put_int(mb_raw_node(m), node_fields[i], 1);
        must_refuse(m, BAD, "unexpected wire type");
    }
    for (size_t i = 0; i < sizeof graph_fields / sizeof graph_fields[0]; i++) {
        model_builder *m = mb_begin(13);
        mb_put_float(mb_raw_graph(m), graph_fields[i], 1);
        must_refuse(m, BAD, "unexpected wire type");
    }
}

/* ---- the model message ---- */

static void test_model_message(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_put_int(mb_raw_model(m), 1, 2);
    must_refuse(m, PRONY_UNSUPPORTED, "IR version 2");

    m = mb_begin(13);
    mb_put_int(mb_raw_model(m), 1, -1);
    must_refuse(m, BAD, "IR version -1");

    m = mb_begin(13);
    mb_put_text(mb_raw_model(m), 7, "");
    must_refuse(m, BAD, "has 2 graphs");

    m = mb_begin(13);
    mb_opset(m, "ai.onnx", 14);
    must_refuse(m, BAD, "opset 13 and 14");

    m = mb_begin(0);
    must_refuse(m, BAD, "opset version 0");

    m = mb_begin(13); /* one without a version is not of the version before it */
    mb_put_text(mb_raw_model(m), 8, "");
    must_refuse(m, BAD, "opset version 0");

    mb_bytes model = {0};
    mb_put_int(&model, 1, 8);
    must_refuse_bytes(model.data, model.size, BAD, "0 graphs");
    mb_put_text(&model, 7, "");
    must_refuse_bytes(model.data, model.size, BAD, "no opset");
    mb_release(&model);
}

static void test_functions(void **state)
{
    (void)state;
    mb_bytes function = {0}, node = {0};
    model_builder *m = mb_begin(13);
    mb_put_text(&function, 10, "d");
    mb_put_message(mb_raw_model(m), 25, &function);
    must_refuse(m, BAD, "function '': it has no name");

    m = mb_begin(13);
    for (int i = 0; i < 2; i++) {
        mb_put_text(&function, 1, "f");
        mb_put_text(&function, 10, "d");
        mb_put_message(mb_raw_model(m), 25, &function);
    }
    must_refuse(m, BAD, "function 'f' of domain 'd' is defined twice");

    m = mb_begin(13);
    mb_put_text(&function, 1, "f");
    mb_put_text(&node, 1, "ghost");
    mb_put_text(&node, 4, "Relu");
    mb_put_message(&function, 7, &node);
    mb_put_message(mb_raw_model(m), 25, &function);
    must_refuse(m, BAD, "function 'f': node 0 '' (Relu) uses value 'ghost'");
    mb_release(&function);
    mb_release(&node);
}

/* ---- names ---- */

static void test_names(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_node(m, "Relu", "ghost", "y", "");
    mb_node_name(m, "the node");
    must_refuse(m, BAD, "node 0 'the node' (Relu) uses value 'ghost', which nothing produces");

    m = mb_begin(13);
    mb_output(m, "ghost", PRONY_FLOAT32, "");
    must_refuse(m, BAD, "output 'ghost'");

    m = mb_begin(13);
    mb_input(m, "c", PRONY_BOOL, "");
    mb_node(m, "If", "c", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Relu", "ghost", "r", "");
    mb_graph_end(m);
    must_refuse(m, BAD, "in its graph then_branch uses value 'ghost'");

    m = mb_begin(13); /* values of a branch are not visible outside it */
    mb_input(m, "c", PRONY_BOOL, "");
    mb_node(m, "If", "c", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Relu", "c", "r", "");
    mb_graph_end(m);
    mb_node(m, "Neg", "r", "z", "");
    must_refuse(m, BAD, "(Neg) uses value 'r'");

    m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "");
    mb_node(m, "A", "x", "y", "");
    mb_node(m, "B", "x", "y", "");
    must_refuse(m, BAD, "'y' is defined twice, by a node and by node 1 '' (B)");

    m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "");
    mb_node(m, "A", "x", "x", "");
    must_refuse(m, BAD, "'x' is defined twice, by an input");

    m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "");
    mb_input(m, "x", PRONY_FLOAT32, "");
    must_refuse(m, BAD, "'x' is defined twice");

    const float one = 1;
    m = mb_begin(13);
    mb_initializer(m, "w", PRONY_FLOAT32, "", &one);
    mb_initializer(m, "w", PRONY_FLOAT32, "", &one);
    must_refuse(m, BAD, "'w' is defined twice");

    m = mb_begin(13);
    mb_input(m, "", PRONY_FLOAT32, "");
    must_refuse(m, BAD, "no name");

    m = mb_begin(13);
    mb_initializer(m, "", PRONY_FLOAT32, "", &one);
    must_refuse(m, BAD, "initializer has no name");

    m = mb_begin(13);
    mb_node(m, "", "", "y", "");
    must_refuse(m, BAD, "no operator type");

    m = mb_begin(13);
    mb_node(m, "Op", "", "y", "");
    mb_put_bytes(mb_raw_node(m), 3, "a\0b", 3);
    must_refuse(m, BAD, "contains a NUL");
}

static void test_cycles(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_node(m, "A", "c", "a", "");
    mb_node(m, "B", "a", "b", "");
    mb_node(m, "C", "b", "c", "");
    must_refuse(m, BAD, "cycle");

    m = mb_begin(13);
    mb_node(m, "A", "a", "a", "");
    must_refuse(m, BAD, "node 0 '' (A) depends on its own output 'a'");

    m = mb_begin(13); /* through a capture */
    mb_input(m, "c", PRONY_BOOL, "");
    mb_node(m, "If", "c", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Relu", "z", "r", "");
    mb_graph_end(m);
    mb_node(m, "Neg", "y", "z", "");
    must_refuse(m, BAD, "cycle");
}

/* A long chain in reverse order: sorting must neither recurse nor be quadratic. */
static void test_long_reversed_chain(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    model_builder *m = mb_begin(13);
    mb_input(m, "v0", PRONY_FLOAT32, "");
    for (int i = COUNT; i > 0; i--) {
        char from[16], to[16];
        snprintf(from, sizeof from, "v%d", i - 1);
        snprintf(to, sizeof to, "v%d", i);
        mb_node(m, "Relu", from, to, "");
    }
    prn_model_file *file = must_load(m);
    assert_int_equal(file->graph.node_count, COUNT);
    assert_string_equal(file->graph.nodes[0].inputs[0], "v0");
    assert_int_equal(file->graph.nodes[0].file_index, COUNT - 1);
    prn_model_close(file);
    mb_free(m);
}

/* ---- attributes ---- */

static void test_attributes(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_node(m, "Op", "", "y", "a=1 b=2 a=3");
    must_refuse(m, BAD, "attribute 'a' is given twice");

    m = mb_begin(13);
    mb_node(m, "Op", "", "y", "=1");
    must_refuse(m, BAD, "no name");

    static const struct {
        int64_t type;
        const char *text;
    } rows[] = {
        {99, "attribute type 99"},
        {-1, "attribute type -1"},
        {PRN_ATTR_UNDEFINED, "attribute type 0"},
        {PRN_ATTR_TENSOR, "its tensor is missing"},
        {PRN_ATTR_GRAPH, "its graph is missing"},
    };
    mb_bytes attr = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        m = mb_begin(13);
        mb_node(m, "Op", "", "y", "");
        mb_put_text(&attr, 1, "a");
        mb_put_int(&attr, 20, rows[i].type);
        mb_put_message(mb_raw_node(m), 5, &attr);
        must_refuse(m, BAD, rows[i].text);
    }
    m = mb_begin(13);
    mb_node(m, "Op", "", "y", "");
    mb_put_text(&attr, 1, "a");
    mb_put_text(&attr, 21, "b");
    mb_put_int(&attr, 20, PRN_ATTR_INT);
    mb_put_message(mb_raw_node(m), 5, &attr);
    must_refuse(m, BAD, "outside of a function");
    mb_release(&attr);
}

/* Graphs in attributes and types in types, `depth` deep, written from the inside out. */
static void nest_graphs(model_builder *m, int depth)
{
    mb_bytes graph = {0}, node = {0}, attr = {0};
    for (int i = 0; i < depth; i++) {
        mb_put_text(&attr, 1, "g");
        mb_put_int(&attr, 20, PRN_ATTR_GRAPH);
        mb_put_message(&attr, 6, &graph);
        mb_put_text(&node, 4, "If");
        mb_put_message(&node, 5, &attr);
        mb_put_message(&graph, 1, &node);
    }
    mb_put_raw(mb_raw_graph(m), graph.data, graph.size);
    mb_release(&graph);
    mb_release(&node);
    mb_release(&attr);
}

static void test_nesting(void **state)
{
    (void)state;
    static const int depths[] = {65, 1000, 10000};
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        model_builder *m = mb_begin(13);
        nest_graphs(m, depths[i]);
        must_refuse(m, PRONY_LIMIT, "graph");
    }
    model_builder *m = mb_begin(13);
    nest_graphs(m, 64);
    prn_model_file *file = must_load(m);
    prn_model_close(file);
    mb_free(m);

    mb_bytes type = {0}, sequence = {0}, port = {0};
    for (int i = 0; i < 10000; i++) {
        mb_put_message(&sequence, 1, &type);
        mb_put_message(&type, 4, &sequence);
    }
    mb_put_text(&port, 1, "x");
    mb_put_message(&port, 2, &type);
    m = mb_begin(13);
    mb_put_message(mb_raw_graph(m), 11, &port);
    must_refuse(m, PRONY_LIMIT, "types are nested");
    mb_release(&type);
    mb_release(&sequence);
    mb_release(&port);
}

/* ---- claims ---- */

/* Lengths that claim 10^9 nodes, dims that claim exabytes: refused before anything of that size is allocated. The calls
 * are few because nothing beyond the header is built. */
static void test_claims_allocate_nothing(void **state)
{
    (void)state;
    mb_bytes model = {0};
    mb_put_int(&model, 1, 8);
    mb_put_varint(&model, 7 << 3 | 2);
    mb_put_varint(&model, 3000000000u);
    mb_put_raw(&model, "\x0a\x00\x0a\x00", 4); /* the first of them */
    uint64_t before = prn_heap_calls();
    must_refuse_bytes(model.data, model.size, BAD, "length reaches past the end");
    assert_true(prn_heap_calls() - before < 8);
    mb_release(&model);

    static const char *const dims[] = {"1000000000,1000000000,1000000000", "4611686018427387904,4", "1000000000",
                                       "9223372036854775807"};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        SCENARIO_NAMED(i, dims[i]);
        mb_bytes tensor = {0};
        model_builder *m = mb_begin(13);
        for (const char *at = dims[i]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
            mb_put_int(&tensor, 1, strtoll(at, NULL, 10));
        }
        mb_put_int(&tensor, 2, PRONY_FLOAT32);
        mb_put_text(&tensor, 8, "w");
        mb_put_message(mb_raw_graph(m), 5, &tensor);
        before = prn_heap_calls();
        must_refuse(m, BAD, "tensor 'w'");
        assert_true(prn_heap_calls() - before < 8);
        mb_release(&tensor);
    }
}

/* ---- tensors ---- */

static void refuse_tensor(void (*fill)(mb_bytes *tensor), prony_status status, const char *text)
{
    mb_bytes tensor = {0};
    model_builder *m = mb_begin(13);
    mb_put_text(&tensor, 8, "w");
    fill(&tensor);
    mb_put_message(mb_raw_graph(m), 5, &tensor);
    mb_release(&tensor);
    must_refuse(m, status, text);
}

static void negative_dim(mb_bytes *t)
{
    mb_put_int(t, 1, -2);
    mb_put_int(t, 2, PRONY_FLOAT32);
}

static void too_many_dims(mb_bytes *t)
{
    for (int i = 0; i < 17; i++) mb_put_int(t, 1, 1);
    mb_put_int(t, 2, PRONY_FLOAT32);
}

static void no_type(mb_bytes *t)
{
    mb_put_float(t, 4, 1);
}

static void unknown_type(mb_bytes *t)
{
    mb_put_int(t, 2, 77);
}

static void segmented(mb_bytes *t)
{
    mb_put_text(t, 3, "");
}

static void raw_too_short(mb_bytes *t)
{
    mb_put_int(t, 1, 2);
    mb_put_int(t, 2, PRONY_FLOAT32);
    mb_put_text(t, 9, "1234567");
}

static void typed_too_short(mb_bytes *t)
{
    mb_put_int(t, 1, 2);
    mb_put_int(t, 2, PRONY_FLOAT32);
    mb_put_float(t, 4, 1);
}

static void typed_in_the_wrong_field(mb_bytes *t)
{
    mb_put_int(t, 2, PRONY_FLOAT32);
    mb_put_int(t, 5, 1);
}

static void raw_and_typed(mb_bytes *t)
{
    mb_put_int(t, 2, PRONY_FLOAT32);
    mb_put_float(t, 4, 1);
    mb_put_text(t, 9, "1234");
}

static void raw_strings(mb_bytes *t)
{
    mb_put_int(t, 2, PRONY_STRING);
    mb_put_text(t, 9, "1234567890123456");
}

static void value_out_of_range(mb_bytes *t)
{
    mb_put_int(t, 2, PRONY_INT8);
    mb_put_int(t, 5, 128);
}

static void packed_ends_inside(mb_bytes *t)
{
    mb_put_int(t, 2, PRONY_FLOAT32);
    mb_put_text(t, 4, "12345");
}

static void packed_varint_ends_inside(mb_bytes *t)
{
    mb_put_int(t, 2, PRONY_INT64);
    mb_put_text(t, 7, "\x01\x80");
}

static void packed_varint_too_long(mb_bytes *t)
{
    mb_put_int(t, 2, PRONY_INT64);
    mb_put_text(t, 7, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
}

static void test_tensors(void **state)
{
    (void)state;
    refuse_tensor(negative_dim, BAD, "tensor 'w': dimension 0 is -2");
    refuse_tensor(too_many_dims, PRONY_LIMIT, "rank is above 16");
    refuse_tensor(no_type, BAD, "no element type");
    refuse_tensor(unknown_type, PRONY_UNSUPPORTED, "element type 77");
    refuse_tensor(segmented, PRONY_UNSUPPORTED, "segmented");
    refuse_tensor(raw_too_short, BAD, "raw_data has 7 bytes, but type and shape need 8");
    refuse_tensor(typed_too_short, BAD, "float_data has 1 entries, but type and shape need 2");
    refuse_tensor(typed_in_the_wrong_field, BAD, "float_data has 0 entries");
    refuse_tensor(raw_and_typed, BAD, "both raw_data and float_data");
    refuse_tensor(raw_strings, BAD, "strings cannot be raw");
    refuse_tensor(value_out_of_range, BAD, "int32_data entry 128 does not fit int8");
    refuse_tensor(packed_ends_inside, BAD, "end inside a number");
    refuse_tensor(packed_varint_ends_inside, BAD, "end inside a number");
    refuse_tensor(packed_varint_too_long, BAD, "too long");

    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "3,-2");
    must_refuse(m, BAD, "value 'x': dimension 1 is -2");

    m = mb_begin(13);
    mb_input(m, "x", (prony_dtype)55, "3");
    must_refuse(m, PRONY_UNSUPPORTED, "element type 55");
}

/* ---- sparse tensors ---- */

typedef struct sparse_row {
    int64_t dim, nnz, index_rank;
    int64_t indices[4];
    prony_status status;
    const char *text;
} sparse_row;

static void test_sparse_tensors(void **state)
{
    (void)state;
    static const sparse_row rows[] = {
        {4, 2, 1, {3, 1}, BAD, "out of order"},
        {4, 2, 1, {1, 1}, BAD, "out of order"},
        {4, 2, 1, {1, 4}, BAD, "outside the shape"},
        {4, 1, 1, {-1}, BAD, "outside the shape"},
        {4, 2, 2, {1, 0, 2, 0}, BAD, "do not fit"},
        {0, 1, 1, {0}, BAD, "outside the shape"},
        {(int64_t)1 << 40, 1, 1, {0}, PRONY_LIMIT, "dense bytes"},
        {INT64_MAX, 1, 1, {0}, PRONY_LIMIT, "dense bytes"},
        {-1, 1, 1, {0}, BAD, "dimension 0 is -1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sparse_row *row = &rows[i];
        const float values[4] = {1, 2, 3, 4};
        mb_bytes sparse = {0}, tensor = {0};
        model_builder *m = mb_begin(13);
        mb_put_int(&tensor, 1, row->nnz);
        mb_put_int(&tensor, 2, PRONY_FLOAT32);
        mb_put_text(&tensor, 8, "s");
        mb_put_bytes(&tensor, 9, values, (size_t)row->nnz * 4);
        mb_put_message(&sparse, 1, &tensor);
        mb_put_int(&tensor, 1, row->nnz);
        if (row->index_rank == 2) mb_put_int(&tensor, 1, 2);
        mb_put_int(&tensor, 2, PRONY_INT64);
        mb_put_bytes(&tensor, 9, row->indices, (size_t)(row->nnz * row->index_rank) * 8);
        mb_put_message(&sparse, 2, &tensor);
        mb_put_int(&sparse, 3, row->dim);
        mb_put_message(mb_raw_graph(m), 15, &sparse);
        mb_release(&sparse);
        mb_release(&tensor);
        must_refuse(m, row->status, row->text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_every_bit_flipped),
        cmocka_unit_test(test_every_byte_replaced),
        cmocka_unit_test(test_wire_damage),
        cmocka_unit_test(test_wrong_wire_types),
        cmocka_unit_test(test_model_message),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_long_reversed_chain),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_claims_allocate_nothing),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_sparse_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
