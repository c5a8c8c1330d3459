/* Values in separate files: .npy in both directions, .pb, raw; damaged files; allocation failures. */
#include "failure_trace.h"
#include "tests/support/loader_checks.h"
#include "tests/support/model_walk.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "loaders/tensors/tensor_file.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int setup(void **state)
{
    (void)state;
    folder_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    folder_remove();
    return 0;
}

static prony_value *must_read(const char *path, prony_kind kind)
{
    prony_value *value = NULL;
    prony_error error = {0};
    if (prn_value_file_load(&value, path, kind, &error) != PRONY_OK) fail_msg("%s", error.message);
    (void)value_walk(value);
    return value;
}

static void must_not_read(const char *name, const void *data, size_t size, prony_kind kind, prony_status status,
                          const char *text)
{
    prony_value *value = NULL;
    prony_error error = {0};
    if (data) folder_write(name, data, size);
    prony_status got = prn_value_file_load(&value, folder_path(name), kind, &error);
    if (got != status || !strstr(error.message, text) || !strstr(error.message, name)) {
        fail_msg("wanted '%s', got %s: %s", text, prony_status_text(got), error.message);
    }
    assert_null(value);
}

/* ---- .npy ---- */

static void test_npy_round_trip(void **state)
{
    (void)state;
    static const prony_dtype types[] = {
        PRONY_FLOAT32, PRONY_FLOAT64, PRONY_FLOAT16, PRONY_INT64, PRONY_INT32, PRONY_INT16,     PRONY_INT8,
        PRONY_UINT64,  PRONY_UINT32,  PRONY_UINT16,  PRONY_UINT8, PRONY_BOOL,  PRONY_COMPLEX64, PRONY_COMPLEX128,
    };
    static const prony_shape shapes[] = {
        {0, {0}}, {1, {5}}, {3, {2, 1, 3}}, {2, {0, 4}}, {16, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}}};
    uint8_t data[96];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 37 + 5);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        SCENARIO(t);
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            SCENARIO(s);
            prony_value value = {.dtype = types[t], .shape = shapes[s], .data = data};
            if (types[t] == PRONY_BOOL) value.data = "\0\1\1\0\1\0";
            assert_int_equal(prn_value_file_save_npy(&value, folder_path("a.npy"), NULL), PRONY_OK);
            prony_value *back = must_read(folder_path("a.npy"), PRONY_TENSOR);
            assert_int_equal(back->dtype, types[t]);
            assert_true(prn_shape_equal(&back->shape, &shapes[s]));
            assert_int_equal((uintptr_t)back->data % 64, 0);
            if (prn_value_bytes(back)) assert_memory_equal(back->data, value.data, prn_value_bytes(back));
            prn_value_free(back);
        }
    }
}

/* The bytes of np.save for np.arange(3, dtype=np.int16). */
static void test_npy_is_numpys(void **state)
{
    (void)state;
    const int16_t data[] = {0, 1, 2};
    char expected[134];
    prony_value value = {.dtype = PRONY_INT16, .shape = {1, {3}}, .data = (void *)(uintptr_t)data};
    memset(expected, ' ', 128);
    memcpy(expected, "\x93NUMPY\x01\x00\x76\x00", 10);
    const char *text = "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
    memcpy(expected + 10, text, strlen(text));
    expected[127] = '\n';
    memcpy(expected + 128, data, sizeof data);
    assert_int_equal(prn_value_file_save_npy(&value, folder_path("a.npy"), NULL), PRONY_OK);
    char got[256];
    FILE *file = fopen(folder_path("a.npy"), "rb");
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), sizeof expected);
    fclose(file);
    assert_memory_equal(got, expected, sizeof expected);
}

/* An .npy of the given version with this dictionary and data. */
static size_t make_npy(uint8_t *out, int version, const char *dictionary, const void *data, size_t size)
{
    size_t begin = version == 1 ? 10 : 12, length = strlen(dictionary);
    memcpy(out, "\x93NUMPY", 6);
    memset(out + 6, 0, 6);
    out[6] = (uint8_t)version;
    out[8] = (uint8_t)length;
    memcpy(out + begin, dictionary, length);
    if (size) memcpy(out + begin + length, data, size);
    return begin + length + size;
}

static void test_npy_variants(void **state)
{
    (void)state;
    uint8_t bytes[512];
    const int32_t columns[] = {1, 4, 2, 5, 3, 6}, rows[] = {1, 2, 3, 4, 5, 6};
    size_t size = make_npy(bytes, 2, "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"=i4\"}\n", columns, 24);
    folder_write("f.npy", bytes, size);
    prony_value *value = must_read(folder_path("f.npy"), PRONY_TENSOR);
    assert_memory_equal(value->data, rows, sizeof rows);
    prn_value_free(value);

    size = make_npy(bytes, 3, "{'descr': '|b1', 'fortran_order': True, 'shape': (2, 2), }", "\x00\x02\x01\x00", 4);
    folder_write("b.npy", bytes, size);
    value = must_read(folder_path("b.npy"), PRONY_TENSOR);
    assert_memory_equal(value->data, "\x00\x01\x01\x00", 4);
    prn_value_free(value);

    size = make_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 4, 8), }", "", 0);
    folder_write("e.npy", bytes, size);
    value = must_read(folder_path("e.npy"), PRONY_TENSOR);
    assert_int_equal(value->shape.rank, 3);
    prn_value_free(value);
}

static void test_npy_damage(void **state)
{
    (void)state;
    static const struct {
        const char *dictionary;
        prony_status status;
        const char *text;
    } rows[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", PRONY_UNSUPPORTED, "NumPy type '>f4'"},
        {"{'descr': '>U1', 'fortran_order': False, 'shape': (1,), }", PRONY_UNSUPPORTED, "NumPy type '>U1'"},
        {"{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", PRONY_INVALID_ARGUMENT, "4 bytes of data"},
        {"{'descr': '<U4611686018427387905', 'fortran_order': False, 'shape': (1,), }", PRONY_INVALID_ARGUMENT,
         "4 bytes of data"},
        {"{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", PRONY_INVALID_ARGUMENT, "invalid code point"},
        {"{'descr': '|S0', 'fortran_order': False, 'shape': (999999999999,), }", PRONY_INVALID_ARGUMENT,
         "4 bytes of data"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", PRONY_UNSUPPORTED, "astype(str)"},
        {"{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (1,), }", PRONY_UNSUPPORTED,
         "with fields"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", PRONY_INVALID_ARGUMENT,
         "4 bytes of data do not fit"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", PRONY_INVALID_ARGUMENT, "header near '-1"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", PRONY_INVALID_ARGUMENT,
         "near"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775800,2), }", PRONY_INVALID_ARGUMENT,
         "near"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4), }", PRONY_INVALID_ARGUMENT,
         "do not fit"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,4611686018427387904,4), }", PRONY_INVALID_ARGUMENT,
         "do not fit"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), }", PRONY_LIMIT,
         "rank"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", PRONY_INVALID_ARGUMENT, "near 'Maybe"},
        {"{'descr': '<f4', 'fortran_order': False, }", PRONY_INVALID_ARGUMENT, "needs descr"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", PRONY_INVALID_ARGUMENT, "'more'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", PRONY_INVALID_ARGUMENT, "header"},
        {"{'descr': '<f4", PRONY_INVALID_ARGUMENT, "header"},
        {"", PRONY_INVALID_ARGUMENT, "header"},
    };
    uint8_t bytes[512];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = make_npy(bytes, 1, rows[i].dictionary, "\0\0\x80\x3f", 4);
        must_not_read("d.npy", bytes, size, PRONY_TENSOR, rows[i].status, rows[i].text);
    }
    size_t size = make_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "\0\0\x80\x3f", 4);
    for (size_t length = 0; length < size; length++) {
        must_not_read("d.npy", bytes, length, PRONY_TENSOR, PRONY_INVALID_ARGUMENT, "d.npy");
    }
    bytes[6] = 4;
    must_not_read("d.npy", bytes, size, PRONY_TENSOR, PRONY_UNSUPPORTED, "version 4.0");
    bytes[6] = 2;
    bytes[11] = 0xff;
    must_not_read("d.npy", bytes, size, PRONY_TENSOR, PRONY_INVALID_ARGUMENT, "past the end");
}

/* Strings come back as they were, also those that are not UTF-8; the file is what np.save writes. */
static void test_npy_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "a",
                                        "\xc3\xa9",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80",
                                        "z",
                                        "\xff\xc3",
                                        "\xc0\x80",
                                        "\xed\xa0\x80 cut",
                                        "\xe2\x82",
                                        "b",
                                        "\xf5\x80\x80\x80"};
    enum { COUNT = sizeof texts / sizeof *texts };
    prony_string elements[COUNT];
    for (size_t i = 0; i < COUNT; i++) elements[i] = (prony_string){texts[i], strlen(texts[i])};
    prony_value value = {.dtype = PRONY_STRING, .shape = {2, {3, COUNT / 3}}, .data = elements};
    prony_error error = {0};
    if (prn_value_file_save_npy(&value, folder_path("t.npy"), &error) != PRONY_OK) fail_msg("%s", error.message);
    prony_value *back = must_read(folder_path("t.npy"), PRONY_TENSOR);
    assert_int_equal(back->dtype, PRONY_STRING);
    assert_true(prn_shape_equal(&back->shape, &value.shape));
    for (size_t i = 0; i < COUNT; i++) {
        SCENARIO(i);
        const prony_string *got = (const prony_string *)back->data + i;
        assert_int_equal(got->size, elements[i].size);
        if (got->size) assert_memory_equal(got->data, texts[i], got->size);
    }
    prn_value_free(back);

    value.shape = (prony_shape){1, {0}};
    assert_int_equal(prn_value_file_save_npy(&value, folder_path("t.npy"), NULL), PRONY_OK);
    back = must_read(folder_path("t.npy"), PRONY_TENSOR);
    assert_int_equal(back->shape.dim[0], 0);
    prn_value_free(back);

    elements[1] = (prony_string){"x\0", 2};
    value.shape = (prony_shape){1, {2}};
    assert_int_equal(prn_value_file_save_npy(&value, folder_path("nul.npy"), &error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(error.message, "nul.npy': element 1 ends with a NUL"));
    assert_int_not_equal(access(folder_path("nul.npy"), F_OK), 0);
}

/* Types that NumPy lacks are widened; every value stays. */
static void test_npy_of_narrow_types(void **state)
{
    (void)state;
    static const struct {
        prony_dtype dtype, wide;
        const char *data;
        double values[3];
    } rows[] = {{PRONY_BFLOAT16, PRONY_FLOAT32, "\xc0\x3f\x00\xc0\x01\x00", {1.5, -2, 0x1p-133}},
                {PRONY_FLOAT8E4M3FN, PRONY_FLOAT32, "\x7e\xb8\x01", {448, -1, 0x1p-9}},
                {PRONY_FLOAT8E4M3FNUZ, PRONY_FLOAT32, "\x7f\xc0\x00", {240, -1, 0}},
                {PRONY_FLOAT8E5M2, PRONY_FLOAT32, "\x7c\xbc\x01", {INFINITY, -1, 0x1p-16}},
                {PRONY_FLOAT8E5M2FNUZ, PRONY_FLOAT32, "\x7f\xc0\x00", {57344, -1, 0}},
                {PRONY_FLOAT8E8M0, PRONY_FLOAT32, "\x00\x7f\xfe", {0x1p-127, 1, 0x1p127}},
                {PRONY_FLOAT4E2M1, PRONY_FLOAT32, "\xf7\x01", {6, -6, 0.5}},
                {PRONY_INT4, PRONY_INT8, "\x87\x0f", {7, -8, -1}},
                {PRONY_UINT4, PRONY_UINT8, "\x87\x0f", {7, 8, 15}},
                {PRONY_INT2, PRONY_INT8, "\x39", {1, -2, -1}},
                {PRONY_UINT2, PRONY_UINT8, "\x39", {1, 2, 3}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCENARIO(i);
        prony_value value = {.dtype = rows[i].dtype, .shape = {1, {3}}, .data = (void *)(uintptr_t)rows[i].data};
        assert_int_equal(prony_value_save_npy(&value, folder_path("n.npy"), NULL), PRONY_OK);
        prony_value *back = must_read(folder_path("n.npy"), PRONY_TENSOR);
        assert_int_equal(back->dtype, rows[i].wide);
        for (size_t k = 0; k < 3; k++) {
            const double got = back->dtype == PRONY_FLOAT32 ? (double)((const float *)back->data)[k]
                               : back->dtype == PRONY_INT8  ? ((const int8_t *)back->data)[k]
                                                            : ((const uint8_t *)back->data)[k];
            if (got != rows[i].values[k]) fail_msg("%s: %g", prony_dtype_name(rows[i].dtype), got);
        }
        prn_value_free(back);
    }
}

static void test_npy_refusals(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_value value = {.dtype = PRONY_BFLOAT16, .shape = {1, {1}}, .data = "ab"};
    assert_int_equal(prn_value_file_save_npy(&value, folder_path("refused.npy"), &error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(error.message, "bfloat16"));
    value = (prony_value){.kind = PRONY_SEQUENCE};
    assert_int_equal(prn_value_file_save_npy(&value, folder_path("refused.npy"), NULL), PRONY_UNSUPPORTED);
    value = (prony_value){.dtype = PRONY_FLOAT32, .shape = {1, {1}}};
    assert_int_equal(prn_value_file_save_npy(&value, folder_path("refused.npy"), NULL), PRONY_INVALID_ARGUMENT);
    assert_int_not_equal(access(folder_path("refused.npy"), F_OK), 0);
    float one = 1;
    value.data = &one;
    assert_int_equal(prn_value_file_save_npy(&value, folder_path("absent/a.npy"), &error), PRONY_IO_ERROR);
    assert_non_null(strstr(error.message, "absent/a.npy"));
}

/* ---- raw ---- */

static void test_raw(void **state)
{
    (void)state;
    prony_value *value = NULL;
    prony_error error = {0};
    prony_shape shape = {2, {1, 2}}, free_shape = {1, {-1}};
    folder_write("x.bin", "\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
    assert_int_equal(prn_value_file_load_raw(&value, folder_path("x.bin"), PRONY_FLOAT32, &shape, &error), PRONY_OK);
    assert_true(((const float *)value->data)[1] == 2.0f);
    prn_value_free(value);
    assert_int_equal(prn_value_file_load_raw(&value, folder_path("x.bin"), PRONY_INT64, &shape, &error),
                     PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "has 8 bytes, but int64[1, 2] needs 16"));
    assert_null(value);
    assert_int_equal(prn_value_file_load_raw(&value, folder_path("x.bin"), PRONY_INT8, &free_shape, &error),
                     PRONY_INVALID_ARGUMENT);
    assert_int_equal(prn_value_file_load_raw(&value, folder_path("x.bin"), PRONY_STRING, &shape, &error),
                     PRONY_INVALID_ARGUMENT);
    must_not_read("x.bin", NULL, 0, PRONY_TENSOR, PRONY_INVALID_ARGUMENT, "neither .npy, .npz nor .pb");
    must_not_read("absent.npy", NULL, 0, PRONY_TENSOR, PRONY_IO_ERROR, "absent.npy");
}

/* ---- .pb ---- */

/* Reads FOLDER/test_data_set_0/NAME_K.pb for every port; each must have the kind and type that the model declares. */
static size_t check_data_set(const char *folder, const char *name, const prn_port *ports, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        char path[512];
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%zu.pb", folder, name, k);
        prony_value *value = must_read(path, ports[k].kind);
        bool empty = ports[k].kind != PRONY_TENSOR && value->count == 0;
        assert_int_equal(value->kind, ports[k].kind);
        prony_dtype declared = empty ? PRONY_UNDEFINED : ports[k].dtype;
        if (declared == PRONY_BFLOAT16) declared = PRONY_UINT16; /* NumPy wrote these files and has no bfloat16 */
        if (value->dtype != declared) fail_msg("%s: %s", path, prony_dtype_name(value->dtype));
        prn_value_free(value);
    }
    return count;
}

static void test_every_real_value(void **state)
{
    (void)state;
    skip_without_test_data();
    glob_t found;
    size_t values = 0;
    assert_int_equal(glob(TEST_DATA "/node/test_*", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        SCENARIO(i);
        char path[512];
        prn_model_file *file = NULL;
        snprintf(path, sizeof path, "%s/model.onnx", found.gl_pathv[i]);
        assert_int_equal(prn_model_open(&file, path, NULL, false, NULL), PRONY_OK);
        values += check_data_set(found.gl_pathv[i], "input", file->graph.inputs, file->graph.input_count);
        values += check_data_set(found.gl_pathv[i], "output", file->graph.outputs, file->graph.output_count);
        prn_model_close(file);
    }
    globfree(&found);
    assert_true(values > 2000);
}

static void test_real_sequence_and_optional(void **state)
{
    (void)state;
    skip_without_test_data();
    prony_value *value =
        must_read(TEST_DATA "/node/test_sequence_insert_at_back/test_data_set_0/input_0.pb", PRONY_SEQUENCE);
    assert_int_equal(value->kind, PRONY_SEQUENCE);
    assert_true(value->count > 1);
    assert_int_equal(value->items[0].dtype, PRONY_INT64);
    assert_int_equal(value->dtype, PRONY_INT64);
    assert_int_equal(value->shape.rank, -1);
    prn_value_free(value);

    /* ONNX 1.13 gave the case that has an optional another name. */
    static const char newer[] =
        TEST_DATA "/node/test_optional_get_element_optional_sequence/test_data_set_0/input_0.pb";
    value = must_read(access(newer, R_OK) == 0 ? newer
                                               : TEST_DATA
                          "/node/test_optional_get_element_sequence/test_data_set_0/input_0.pb",
                      PRONY_OPTIONAL);
    assert_int_equal(value->kind, PRONY_OPTIONAL);
    assert_int_equal(value->count, 1);
    assert_int_equal(value->items[0].kind, PRONY_SEQUENCE);
    assert_int_equal(value->items[0].items[0].dtype, PRONY_INT32);
    prn_value_free(value);
}

static void test_strings_own_their_bytes(void **state)
{
    (void)state;
    mb_bytes tensor = {0};
    mb_put_int(&tensor, 1, 2);
    mb_put_int(&tensor, 2, PRONY_STRING);
    mb_put_text(&tensor, 6, "monday");
    mb_put_text(&tensor, 6, "tue");
    folder_write("s.pb", tensor.data, tensor.size);
    mb_release(&tensor);
    prony_value *value = must_read(folder_path("s.pb"), PRONY_TENSOR);
    folder_write("s.pb", "", 0);
    const prony_string *strings = value->data;
    assert_int_equal(strings[1].size, 3);
    assert_memory_equal(strings[0].data, "monday", 6);
    assert_memory_equal(strings[1].data, "tue", 3);
    prn_value_free(value);
}

static void test_pb_damage(void **state)
{
    (void)state;
    mb_bytes tensor = {0}, sequence = {0}, optional = {0};
    mb_put_int(&tensor, 1, 2);
    mb_put_int(&tensor, 2, PRONY_FLOAT32);
    mb_put_text(&tensor, 9, "12345678");
    for (size_t length = 0; length < tensor.size; length++) {
        must_not_read("t.pb", tensor.data, length, PRONY_TENSOR, PRONY_INVALID_MODEL, "tensor ''");
    }
    mb_put_text(&tensor, 13, "");
    mb_put_int(&tensor, 14, 1);
    must_not_read("t.pb", tensor.data, tensor.size, PRONY_TENSOR, PRONY_UNSUPPORTED, "external data");

    mb_put_text(&optional, 3, "");
    mb_put_text(&optional, 3, "");
    must_not_read("o.pb", optional.data, optional.size, PRONY_OPTIONAL, PRONY_INVALID_MODEL, "holds 2 values");
    mb_put_text(&optional, 5, "");
    must_not_read("o.pb", optional.data, optional.size, PRONY_OPTIONAL, PRONY_INVALID_MODEL, "mixes kinds");
    mb_put_text(&sequence, 6, "");
    must_not_read("s.pb", sequence.data, sequence.size, PRONY_SEQUENCE, PRONY_UNSUPPORTED, "maps");
    sequence.size = 0;
    for (int i = 0; i < 10000; i++) {
        mb_bytes outer = {0};
        mb_put_message(&outer, 5, &sequence);
        mb_release(&sequence);
        sequence = outer;
    }
    must_not_read("s.pb", sequence.data, sequence.size, PRONY_SEQUENCE, PRONY_LIMIT, "nested more than 64");
    mb_bytes *all[] = {&tensor, &sequence, &optional};
    for (size_t i = 0; i < 3; i++) mb_release(all[i]);
}

/* Makes every allocation of the reader fail in turn; each failure is PRONY_OUT_OF_MEMORY and leaves no value. */
static void fail_every_allocation(const char *path, prony_kind kind)
{
    for (uint64_t n = 1;; n++) {
        prony_value *value = NULL;
        prn_alloc_fail_at(n);
        const prony_status status = prn_value_file_load(&value, path, kind, NULL);
        const bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        prn_value_free(value);
        if (!failed) {
            assert_true(n > 2);
            return;
        }
        assert_null(value);
    }
}

static void test_npy_allocation_failures(void **state)
{
    (void)state;
    uint8_t bytes[512];
    const size_t size =
        make_npy(bytes, 1, "{'descr': '|S2', 'fortran_order': True, 'shape': (2, 2), }", "abc\0de\0\0", 8);
    folder_write("text.npy", bytes, size);
    fail_every_allocation(folder_path("text.npy"), PRONY_TENSOR);
    fail_every_allocation(PRN_SOURCE_DIR "/models/digits_labels.npy", PRONY_TENSOR);
}

static void test_pb_allocation_failures(void **state)
{
    (void)state;
    skip_without_test_data();
    fail_every_allocation(TEST_DATA "/node/test_sequence_insert_at_back/test_data_set_0/input_0.pb", PRONY_SEQUENCE);
    fail_every_allocation(TEST_DATA "/node/test_add/test_data_set_0/input_0.pb", PRONY_TENSOR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy_round_trip),
        cmocka_unit_test(test_npy_is_numpys),
        cmocka_unit_test(test_npy_variants),
        cmocka_unit_test(test_npy_damage),
        cmocka_unit_test(test_npy_text),
        cmocka_unit_test(test_npy_of_narrow_types),
        cmocka_unit_test(test_npy_refusals),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_every_real_value),
        cmocka_unit_test(test_real_sequence_and_optional),
        cmocka_unit_test(test_strings_own_their_bytes),
        cmocka_unit_test(test_pb_damage),
        cmocka_unit_test(test_npy_allocation_failures),
        cmocka_unit_test(test_pb_allocation_failures),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
