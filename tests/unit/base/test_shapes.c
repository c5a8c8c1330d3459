/* Status, shapes, attributes and hashes of base/. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "base/attr.h"
#include "base/hash/sha256.h"
#include "base/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- status */

static void messages_are_prefixed_and_cut(void **state)
{
    (void)state;
    prony_error error = {0};
    assert_int_equal(prn_fail(&error, PRONY_LIMIT, "value %d", 5), PRONY_LIMIT);
    prn_error_prefix(&error, "file '%s'", "a.onnx");
    assert_string_equal(error.message, "file 'a.onnx': value 5");

    char longer[2 * PRONY_ERROR_MESSAGE_BYTES];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)prn_fail(&error, PRONY_LIMIT, "%s", longer);
    assert_int_equal(strlen(error.message), PRONY_ERROR_MESSAGE_BYTES - 1);
    prn_error_prefix(&error, "p");
    assert_int_equal(strlen(error.message), PRONY_ERROR_MESSAGE_BYTES - 1);
    assert_memory_equal(error.message, "p: ...xx", 8); /* the end says what is the matter */
    prn_error_prefix(NULL, "p");
    assert_int_equal(prn_no_memory(NULL), PRONY_OUT_OF_MEMORY);

    prony_node node = {"conv1", "Conv", "", 13, NULL, NULL};
    prony_context context = {.node = &node, .error = &error};
    assert_int_equal(prony_fail(&context, PRONY_UNSUPPORTED, "group %d", 3), PRONY_UNSUPPORTED);
    assert_string_equal(error.message, "node 'conv1' (Conv): group 3");
    node.domain = "my.ops";
    (void)prony_fail(&context, PRONY_UNSUPPORTED, "no");
    assert_string_equal(error.message, "node 'conv1' (my.ops::Conv): no");
    assert_string_equal(prony_status_text(PRONY_BUSY), "session is already running");
}

/* ---- shapes */

static prony_shape shape3(int64_t a, int64_t b, int64_t c)
{
    return prn_shape_make(3, (const int64_t[]){a, b, c});
}

static void shapes_broadcast_as_onnx_says(void **state)
{
    (void)state;
    prony_shape out, a = shape3(2, 1, 4), b = prn_shape_make(2, (const int64_t[]){3, 1});
    assert_true(prn_shape_broadcast(&out, &a, &b));
    prony_shape expected = shape3(2, 3, 4);
    assert_true(prn_shape_equal(&out, &expected));
    int64_t stride[3];
    prn_shape_broadcast_strides(&b, &out, stride);
    assert_true(stride[0] == 0 && stride[1] == 1 && stride[2] == 0);
    prn_shape_broadcast_strides(&a, &out, stride);
    assert_true(stride[0] == 4 && stride[1] == 0 && stride[2] == 1);

    prony_shape scalar = prn_shape_scalar(), unknown = prn_shape_unknown();
    assert_true(prn_shape_broadcast(&out, &scalar, &a) && prn_shape_equal(&out, &a));
    assert_true(prn_shape_broadcast(&out, &unknown, &a) && out.rank == -1);
    b = prn_shape_make(1, (const int64_t[]){3});
    out = scalar;
    assert_false(prn_shape_broadcast(&out, &a, &b));
    assert_int_equal(out.rank, 0);
    b.dim[0] = 0;
    a.dim[2] = 1;
    assert_true(prn_shape_broadcast(&out, &a, &b) && out.dim[2] == 0);
    b.dim[0] = -1;
    a.dim[2] = 5;
    assert_true(prn_shape_broadcast(&out, &a, &b) && out.dim[2] == 5);
    a.dim[2] = 1;
    assert_true(prn_shape_broadcast(&a, &a, &b) && a.dim[2] == -1);
}

static void products_are_checked(void **state)
{
    (void)state;
    prony_shape shape = shape3(2, 3, 4);
    assert_int_equal(prony_shape_numel(&shape), 24);
    assert_int_equal(prn_shape_count(&shape, 1, 3), 12);
    assert_int_equal(prn_shape_count(&shape, 1, 1), 1);
    shape = shape3(INT64_MAX, 2, 2);
    assert_int_equal(prony_shape_numel(&shape), -1);
    shape.dim[2] = 0; /* the product without the empty dimension must fit too: kernels multiply parts of a shape */
    assert_int_equal(prony_shape_numel(&shape), -1);
    shape.dim[0] = 5;
    assert_int_equal(prony_shape_numel(&shape), 0);
    shape.dim[0] = -1;
    assert_int_equal(prony_shape_numel(&shape), -1);
    assert_false(prn_shape_known(&shape));

    assert_int_equal(prony_dtype_bytes(PRONY_FLOAT32, 5), 20);
    assert_int_equal(prony_dtype_bytes(PRONY_INT4, 5), 3);
    assert_int_equal(prony_dtype_bytes(PRONY_COMPLEX128, 2), 32);
    assert_int_equal(prony_dtype_bytes(PRONY_STRING, 2), 2 * sizeof(prony_string));
    assert_true(prony_dtype_bytes(PRONY_FLOAT64, INT64_MAX) == SIZE_MAX);
    assert_true(prony_dtype_bytes(PRONY_FLOAT32, -1) == SIZE_MAX);
    assert_true(prony_dtype_bytes((prony_dtype)99, 1) == SIZE_MAX);

    uint64_t out;
    assert_true(prn_mul_u64(&out, UINT32_MAX, UINT32_MAX) && out == 0xfffffffe00000001u);
    assert_false(prn_mul_u64(&out, UINT64_MAX, 2));
    assert_false(prn_add_u64(&out, UINT64_MAX, 1));
}

static void shapes_and_axes_print_and_normalize(void **state)
{
    (void)state;
    char text[PRN_SHAPE_TEXT_BYTES];
    prony_value value = {.dtype = PRONY_FLOAT32, .shape = shape3(1, -1, 224)};
    assert_string_equal(prn_value_text(&value, text), "float32[1, ?, 224]");
    value.shape = prn_shape_scalar();
    assert_string_equal(prn_value_text(&value, text), "float32[]");
    value.shape.rank = PRONY_MAX_RANK;
    for (int d = 0; d < PRONY_MAX_RANK; d++) value.shape.dim[d] = INT64_MAX;
    prn_value_text(&value, text);
    assert_int_equal(text[strlen(text) - 1], ']');
    value.shape = prn_shape_unknown();
    value.kind = PRONY_SEQUENCE;
    assert_string_equal(prn_value_text(&value, text), "sequence(float32)");

    int64_t axis = -1;
    assert_true(prn_axis_normalize(&axis, 4) && axis == 3);
    axis = 4;
    assert_false(prn_axis_normalize(&axis, 4));
    axis = -5;
    assert_false(prn_axis_normalize(&axis, 4));
    axis = 0;
    assert_false(prn_axis_normalize(&axis, 0));

    int64_t stride[3];
    prony_shape shape = shape3(2, 3, 4);
    prn_shape_strides(&shape, stride);
    assert_true(stride[0] == 12 && stride[1] == 4 && stride[2] == 1);
}

static void attributes_are_found_by_name_and_type(void **state)
{
    (void)state;
    const int64_t pads[] = {1, 2};
    const prn_attr items[] = {{.name = "axis", .type = PRN_ATTR_INT, .i = -1},
                              {.name = "pads", .type = PRN_ATTR_INTS, .ints = pads, .count = 2},
                              {.name = "alpha", .type = PRN_ATTR_FLOAT, .f = 0.5f}};
    const prn_attr_list list = {items, 3};
    const prony_node node = {"n", "Op", "", 13, &list, NULL};
    int64_t i = 7;
    float f = 7;
    const int64_t *ints = NULL;
    size_t count = 7;
    assert_true(prony_node_int(&node, "axis", &i) && i == -1);
    assert_true(prony_node_ints(&node, "pads", &ints, &count) && ints == pads && count == 2);
    assert_true(prony_node_float(&node, "alpha", &f) && f == 0.5f);
    i = 7;
    assert_false(prony_node_int(&node, "alpha", &i) || prony_node_int(&node, "missing", &i));
    assert_int_equal(i, 7);
    const prony_node bare = {"n", "Op", "", 13, NULL, NULL};
    assert_false(prony_node_int(&bare, "axis", &i));
}

/* ---- hashes: the examples of FIPS 180-4 */

static void sha256_gives_the_published_digests(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char text[65];
    prn_sha256 hash;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        SCENARIO_NAMED(i, known[i].text);
        prn_sha256_init(&hash);
        prn_sha256_add(&hash, known[i].text, strlen(known[i].text));
        prn_sha256_text(&hash, text);
        assert_string_equal(text, known[i].digest);
    }
    char piece[997]; /* a million letters in uneven pieces */
    memset(piece, 'a', sizeof piece);
    prn_sha256_init(&hash);
    for (size_t done = 0; done < 1000000;) {
        size_t size = 1000000 - done < sizeof piece ? 1000000 - done : sizeof piece;
        prn_sha256_add(&hash, piece, size);
        done += size;
    }
    prn_sha256_text(&hash, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_prefixed_and_cut),
        cmocka_unit_test(shapes_broadcast_as_onnx_says),
        cmocka_unit_test(products_are_checked),
        cmocka_unit_test(shapes_and_axes_print_and_normalize),
        cmocka_unit_test(attributes_are_found_by_name_and_type),
        cmocka_unit_test(sha256_gives_the_published_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
