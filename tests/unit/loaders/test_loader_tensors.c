/* Tensors in every encoding of TensorProto, sparse and external ones: the elements, the alignment and the owner of
 * the bytes. */
#include "failure_trace.h"
#include "tests/support/loader_checks.h"
#include "tests/support/model_walk.h"

#include "base/shape.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- typed fields ---- */

enum { FLOATS = 4, INT32S = 5, INT64S = 7, DOUBLES = 10, UINT64S = 11 };

/* Two elements of each type: entries as the field holds them and the bytes that they stand for. */
typedef struct encoding_row {
    prony_dtype dtype;
    int field;
    int64_t entries[4]; /* of float and double fields: the bits */
    size_t entry_count;
    uint8_t bytes[32];
} encoding_row;

static const encoding_row encoding_rows[] = {
    {PRONY_FLOAT32, FLOATS, {0x3f800000, 0xc0000000}, 2, {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
    {PRONY_COMPLEX64, FLOATS, {1, 2, 3, 4}, 4, {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}},
    {PRONY_FLOAT64, DOUBLES, {0x3ff0000000000000, 1}, 2, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 1}},
    {PRONY_COMPLEX128, DOUBLES, {1, 2, 3, 4}, 4, {[0] = 1, [8] = 2, [16] = 3, [24] = 4}},
    {PRONY_UINT8, INT32S, {0, 255}, 2, {0, 255}},
    {PRONY_INT8, INT32S, {-128, 127}, 2, {0x80, 0x7f}},
    {PRONY_UINT16, INT32S, {1, 65535}, 2, {1, 0, 0xff, 0xff}},
    {PRONY_INT16, INT32S, {-32768, 2}, 2, {0, 0x80, 2, 0}},
    {PRONY_INT32, INT32S, {-2, INT32_MAX}, 2, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
    {PRONY_INT64, INT64S, {-1, 1}, 2, {255, 255, 255, 255, 255, 255, 255, 255, 1}},
    {PRONY_UINT32, UINT64S, {UINT32_MAX, 7}, 2, {255, 255, 255, 255, 7}},
    {PRONY_UINT64, UINT64S, {-1, 7}, 2, {255, 255, 255, 255, 255, 255, 255, 255, 7}},
    {PRONY_BOOL, INT32S, {0, 7}, 2, {0, 1}},
    {PRONY_FLOAT16, INT32S, {0x3c00, 0xbc00}, 2, {0, 0x3c, 0, 0xbc}},
    {PRONY_BFLOAT16, INT32S, {0x3f80, 0xbf80}, 2, {0x80, 0x3f, 0x80, 0xbf}},
    {PRONY_FLOAT8E4M3FN, INT32S, {1, 0xff}, 2, {1, 0xff}},
    {PRONY_FLOAT8E4M3FNUZ, INT32S, {1, 0xff}, 2, {1, 0xff}},
    {PRONY_FLOAT8E5M2, INT32S, {1, 0xff}, 2, {1, 0xff}},
    {PRONY_FLOAT8E5M2FNUZ, INT32S, {1, 0xff}, 2, {1, 0xff}},
    {PRONY_UINT4, INT32S, {0xfe}, 1, {0xfe}},
    {PRONY_INT4, INT32S, {-2}, 1, {0xfe}},
    {PRONY_FLOAT4E2M1, INT32S, {0x21}, 1, {0x21}},
    {PRONY_FLOAT8E8M0, INT32S, {1, 0xff}, 2, {1, 0xff}},
    {PRONY_UINT2, INT32S, {0x0e}, 1, {0x0e}},
    {PRONY_INT2, INT32S, {-2}, 1, {0xfe}},
};

static void put_entry_bits(mb_bytes *to, int field, int64_t bits)
{
    if (field == FLOATS || field == DOUBLES) {
        mb_put_raw(to, &bits, field == FLOATS ? 4 : 8);
    } else {
        mb_put_varint(to, (uint64_t)bits);
    }
}

enum { PACKED, UNPACKED, MIXED };

static void put_entries(mb_bytes *tensor, const encoding_row *row, int how)
{
    static const uint32_t wire_types[] = {[FLOATS] = 5, [INT32S] = 0, [INT64S] = 0, [DOUBLES] = 1, [UINT64S] = 0};
    mb_bytes packed = {0};
    size_t alone = how == PACKED ? 0 : how == MIXED ? 1 : row->entry_count;
    for (size_t i = 0; i < alone; i++) {
        mb_put_varint(tensor, (uint32_t)row->field << 3 | wire_types[row->field]);
        put_entry_bits(tensor, row->field, row->entries[i]);
    }
    for (size_t i = alone; i < row->entry_count; i++) put_entry_bits(&packed, row->field, row->entries[i]);
    if (how != UNPACKED) mb_put_message(tensor, (uint32_t)row->field, &packed);
    mb_release(&packed);
}

/* One initializer "w" with these fields, loaded; the test owns the builder. */
static prn_model_file *load_tensor(model_builder *m, mb_bytes *tensor)
{
    mb_put_text(tensor, 8, "w");
    mb_put_message(mb_raw_graph(m), 5, tensor);
    mb_release(tensor);
    prn_model_file *file = must_load(m);
    assert_int_equal(file->graph.initializer_count, 1);
    (void)model_walk(file);
    return file;
}

static void check_row(const encoding_row *row, int how)
{
    mb_bytes tensor = {0};
    model_builder *m = mb_begin(13);
    mb_put_int(&tensor, 1, 2);
    mb_put_int(&tensor, 2, row->dtype);
    put_entries(&tensor, row, how);
    prn_model_file *file = load_tensor(m, &tensor);
    const prn_initializer *w = &file->graph.initializers[0];
    assert_int_equal(w->value.dtype, row->dtype);
    assert_int_equal(w->value.shape.rank, 1);
    assert_int_equal(w->bytes, prony_dtype_bytes(row->dtype, 2));
    assert_memory_equal(w->value.data, row->bytes, w->bytes);
    prn_model_close(file);
    mb_free(m);
}

static void test_typed_encodings(void **state)
{
    (void)state;
    bool seen[PRONY_DTYPE_COUNT] = {[PRONY_UNDEFINED] = true, [PRONY_STRING] = true};
    for (size_t i = 0; i < sizeof encoding_rows / sizeof encoding_rows[0]; i++) {
        SCENARIO(i);
        for (int how = PACKED; how <= MIXED; how++) check_row(&encoding_rows[i], how);
        seen[encoding_rows[i].dtype] = true;
    }
    for (int t = 0; t < PRONY_DTYPE_COUNT; t++) assert_true(seen[t]);
}

static void test_raw_encodings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof encoding_rows / sizeof encoding_rows[0]; i++) {
        SCENARIO(i);
        const encoding_row *row = &encoding_rows[i];
        size_t size;
        model_builder *m = mb_begin(13);
        mb_initializer(m, "w", row->dtype, "2", row->bytes);
        const uint8_t *begin = mb_finish(m, &size);
        prn_model_file *file = must_load(m);
        const prn_initializer *w = &file->graph.initializers[0];
        assert_memory_equal(w->value.data, row->bytes, w->bytes);
        const uint8_t *data = w->value.data;
        assert_true(data >= begin && data < begin + size);
        prn_model_close(file);
        mb_free(m);
    }
}

static void test_packed_floats_are_borrowed(void **state)
{
    (void)state;
    const float values[3] = {1, 2, 3};
    size_t size;
    mb_bytes tensor = {0};
    model_builder *m = mb_begin(13);
    mb_put_int(&tensor, 1, 3);
    mb_put_int(&tensor, 2, PRONY_FLOAT32);
    mb_put_bytes(&tensor, FLOATS, values, sizeof values);
    prn_model_file *file = load_tensor(m, &tensor);
    const uint8_t *begin = mb_finish(m, &size), *data = file->graph.initializers[0].value.data;
    assert_memory_equal(data, values, sizeof values);
    assert_true(data >= begin && data < begin + size);
    prn_model_close(file);
    mb_free(m);
}

/* All alignments that a tensor in the file can have: reported for initializers, mended for attributes. */
static void test_alignment(void **state)
{
    (void)state;
    const int64_t value = 42;
    size_t aligned = 0;
    for (int shift = 0; shift < 8; shift++) {
        SCENARIO(shift);
        model_builder *m = mb_begin(13);
        char name[16] = "1234567";
        name[shift] = '\0';
        mb_put_text(mb_raw_model(m), 2, name);
        mb_initializer(m, "w", PRONY_INT64, "1", &value);
        mb_node(m, "Constant", "", "c", "");
        mb_tensor(m, "value", PRONY_INT64, "1", &value);
        prn_model_file *file = must_load(m);
        assert_memory_equal(file->graph.initializers[0].value.data, &value, sizeof value);
        assert_int_equal(*(const int64_t *)file->graph.nodes[0].attributes.items[0].tensor->data, 42);
        aligned += file->graph.initializers[0].aligned;
        (void)model_walk(file);
        prn_model_close(file);
        mb_free(m);
    }
    assert_int_equal(aligned, 1);
}

static void test_raw_bools_are_normalised(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_initializer(m, "w", PRONY_BOOL, "4", "\x00\x01\x02\xff");
    prn_model_file *file = must_load(m);
    assert_memory_equal(file->graph.initializers[0].value.data, "\x00\x01\x01\x01", 4);
    prn_model_close(file);
    mb_free(m);
}

static void test_strings(void **state)
{
    (void)state;
    mb_bytes tensor = {0};
    model_builder *m = mb_begin(13);
    mb_put_int(&tensor, 1, 3);
    mb_put_int(&tensor, 2, PRONY_STRING);
    mb_put_text(&tensor, 6, "one");
    mb_put_text(&tensor, 6, "");
    mb_put_bytes(&tensor, 6, "a\0b", 3);
    prn_model_file *file = load_tensor(m, &tensor);
    const prony_string *strings = file->graph.initializers[0].value.data;
    assert_int_equal(strings[0].size, 3);
    assert_memory_equal(strings[0].data, "one", 3);
    assert_int_equal(strings[1].size, 0);
    assert_memory_equal(strings[2].data, "a\0b", 3);
    prn_model_close(file);
    mb_free(m);
}

static void test_empty_and_scalar(void **state)
{
    (void)state;
    const float one = 1;
    model_builder *m = mb_begin(13);
    mb_initializer(m, "empty", PRONY_INT64, "3,0,5", NULL);
    mb_initializer(m, "scalar", PRONY_FLOAT32, "", &one);
    mb_initializer(m, "odd", PRONY_INT4, "3", "\x21\x03");
    prn_model_file *file = must_load(m);
    const prn_initializer *w = file->graph.initializers;
    assert_non_null(w[0].value.data);
    assert_int_equal(w[0].bytes, 0);
    assert_int_equal(w[0].value.shape.rank, 3);
    assert_int_equal(w[1].value.shape.rank, 0);
    assert_int_equal(w[1].bytes, 4);
    assert_int_equal(w[2].bytes, 2);
    (void)model_walk(file);
    prn_model_close(file);
    mb_free(m);
}

/* ---- sparse ---- */

static void put_sparse(mb_bytes *sparse, bool coordinates)
{
    const float values[] = {1, 2};
    const int64_t linear[] = {1, 5}, pairs[] = {0, 1, 1, 2};
    mb_bytes tensor = {0};
    mb_put_int(&tensor, 1, 2);
    mb_put_int(&tensor, 2, PRONY_FLOAT32);
    mb_put_text(&tensor, 8, "s");
    mb_put_bytes(&tensor, 9, values, sizeof values);
    mb_put_message(sparse, 1, &tensor);
    mb_put_int(&tensor, 1, 2);
    if (coordinates) mb_put_int(&tensor, 1, 2);
    mb_put_int(&tensor, 2, PRONY_INT64);
    mb_put_bytes(&tensor, 9, coordinates ? pairs : linear, coordinates ? sizeof pairs : sizeof linear);
    mb_put_message(sparse, 2, &tensor);
    mb_put_int(sparse, 3, 2);
    mb_put_int(sparse, 3, 3);
    mb_release(&tensor);
}

static void test_sparse(void **state)
{
    (void)state;
    const float dense[] = {0, 1, 0, 0, 0, 2};
    for (int coordinates = 0; coordinates < 2; coordinates++) {
        SCENARIO(coordinates);
        mb_bytes sparse = {0}, attr = {0};
        model_builder *m = mb_begin(13);
        put_sparse(&sparse, coordinates);
        mb_put_message(mb_raw_graph(m), 15, &sparse);
        mb_node(m, "Constant", "", "c", "");
        mb_put_text(&attr, 1, "sparse_value");
        put_sparse(&sparse, coordinates);
        mb_put_message(&attr, 22, &sparse);
        mb_put_int(&attr, 20, PRN_ATTR_SPARSE_TENSOR);
        mb_put_message(mb_raw_node(m), 5, &attr);
        prn_model_file *file = must_load(m);
        const prn_initializer *s = &file->graph.initializers[0];
        assert_string_equal(s->name, "s");
        assert_int_equal(s->value.shape.rank, 2);
        assert_memory_equal(s->value.data, dense, sizeof dense);
        const prn_attr *value = &file->graph.nodes[0].attributes.items[0];
        assert_int_equal(value->type, PRN_ATTR_SPARSE_TENSOR);
        assert_memory_equal(value->tensor->data, dense, sizeof dense);
        (void)model_walk(file);
        prn_model_close(file);
        mb_release(&sparse);
        mb_release(&attr);
        mb_free(m);
    }
}

/* ---- external ---- */

static void put_external(model_builder *m, const char *name, const char *location, const char *offset,
                         const char *length)
{
    const char *const pairs[][2] = {{"location", location}, {"offset", offset}, {"length", length}, {"checksum", "x"}};
    mb_bytes tensor = {0}, entry = {0};
    mb_put_int(&tensor, 1, 2);
    mb_put_int(&tensor, 2, PRONY_FLOAT32);
    mb_put_text(&tensor, 8, name);
    for (size_t i = 0; i < 4; i++) {
        if (!pairs[i][1]) continue;
        mb_put_text(&entry, 1, pairs[i][0]);
        mb_put_text(&entry, 2, pairs[i][1]);
        mb_put_message(&tensor, 13, &entry);
    }
    mb_put_int(&tensor, 14, 1);
    mb_put_message(mb_raw_graph(m), 5, &tensor);
    mb_release(&tensor);
    mb_release(&entry);
}

static void check_external(const char *path)
{
    prn_model_file *file = NULL;
    prony_error error = {0};
    if (prn_model_open(&file, path, NULL, false, &error) != PRONY_OK) fail_msg("%s", error.message);
    const prn_initializer *w = file->graph.initializers;
    assert_int_equal(file->graph.initializer_count, 4);
    assert_memory_equal(w[0].value.data, "01234567", 8);
    assert_memory_equal(w[1].value.data, "3456789a", 8);
    assert_memory_equal(w[2].value.data, "89abcdef", 8);
    assert_memory_equal(w[3].value.data, "89abcdef", 8);
    assert_true(w[0].aligned && !w[1].aligned && w[2].aligned);
    assert_ptr_equal(w[2].value.data, (const char *)w[0].value.data + 8); /* one map for all */
    (void)model_walk(file);
    prn_model_close(file);
}

static void test_external(void **state)
{
    (void)state;
    size_t size;
    model_builder *m = mb_begin(13);
    put_external(m, "start", "data", NULL, NULL);
    put_external(m, "middle", "data", "3", "8");
    put_external(m, "end", "./data", "8", NULL);
    put_external(m, "linked", "inner_link", "8", NULL);
    const void *data = mb_finish(m, &size);
    folder_make();
    folder_write("model.onnx", data, size);
    folder_write("data", "0123456789abcdef", 16);
    mb_free(m);
    assert_int_equal(symlink("data", folder_path("inner_link")), 0);
    check_external(folder_path("model.onnx"));
    char here[512];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder_path("")), 0);
    check_external("model.onnx"); /* a path without a folder */
    assert_int_equal(chdir(here), 0);
    folder_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_typed_encodings),
        cmocka_unit_test(test_raw_encodings),
        cmocka_unit_test(test_packed_floats_are_borrowed),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_raw_bools_are_normalised),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_empty_and_scalar),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_external),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
