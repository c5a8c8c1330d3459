/* prony::Reorder between every two layouts: each element lands where ops/layout.h says, padding lanes are zero, and any
 * thread count gives the same bytes. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "ops/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const prn_layout layouts[] = {PRN_PLAIN, PRN_NHWC, PRN_BLOCKED8, PRN_BLOCKED16};

/* Index of (n, c, s), from the header's definition of the layouts. */
static int64_t index_of(const prony_shape *shape, prn_layout layout, int64_t n, int64_t c, int64_t s)
{
    int64_t channels = shape->dim[1], spatial = 1;
    for (int i = 2; i < shape->rank; i++) spatial *= shape->dim[i];
    switch (layout) {
    case PRN_NHWC:
        return (n * spatial + s) * channels + c;
    case PRN_BLOCKED8:
        return ((n * ((channels + 7) / 8) + c / 8) * spatial + s) * 8 + c % 8;
    case PRN_BLOCKED16:
        return ((n * ((channels + 15) / 16) + c / 16) * spatial + s) * 16 + c % 16;
    default:
        return (n * channels + c) * spatial + s;
    }
}

static void fill(prony_value *value, const prony_shape *shape, prony_dtype dtype, prn_layout layout, int byte)
{
    *value = (prony_value){.kind = PRONY_TENSOR, .dtype = dtype, .shape = *shape, .layout = (uint8_t)layout};
    value->data = prn_alloc_aligned(64, prn_layout_bytes(value));
    assert_non_null(value->data);
    memset(value->data, byte, prn_layout_bytes(value));
}

/* Every element is its own number, in as many bytes as it has. */
static void number(prony_value *value)
{
    size_t size = prony_dtype_bytes(value->dtype, 1);
    int64_t spatial = 1, next = 1;
    memset(value->data, 0, prn_layout_bytes(value));
    for (int i = 2; i < value->shape.rank; i++) spatial *= value->shape.dim[i];
    for (int64_t n = 0; n < value->shape.dim[0]; n++) {
        for (int64_t c = 0; c < value->shape.dim[1]; c++) {
            for (int64_t s = 0; s < spatial; s++, next++) {
                int64_t at = index_of(&value->shape, (prn_layout)value->layout, n, c, s);
                memcpy((char *)value->data + (size_t)at * size, &next, size);
            }
        }
    }
}

static void check_pair(const prony_shape *shape, prony_dtype dtype, prn_layout from, prn_layout to,
                       const prn_kernel *kernel)
{
    prony_value x, y, expected;
    fill(&x, shape, dtype, from, 0);
    fill(&expected, shape, dtype, to, 0);
    number(&x);
    number(&expected);
    for (int threads = 1; threads <= 4; threads++) {
        fill(&y, shape, dtype, to, 0xa5);
        const prony_value *inputs[] = {&x};
        prony_value *outputs[] = {&y};
        prony_context context = {
            .inputs = inputs, .outputs = outputs, .input_count = 1, .output_count = 1, .threads = threads};
        assert_int_equal(kernel->run(&context), PRONY_OK);
        if (memcmp(y.data, expected.data, prn_layout_bytes(&y)))
            fail_msg("%s: %s to %s, %lld channels, %d threads", kernel->name, prn_layout_name(from),
                     prn_layout_name(to), (long long)shape->dim[1], threads);
        prn_free_aligned(y.data);
    }
    prn_free_aligned(x.data);
    prn_free_aligned(expected.data);
}

static void test_every_pair_of_layouts(void **state)
{
    static const prony_shape shapes[] = {{4, {1, 16, 8, 8}},    {4, {2, 20, 5, 7}}, {3, {1, 3, 600}},
                                         {5, {1, 33, 2, 3, 4}}, {2, {3, 9}},        {4, {2, 8, 1, 1}}};
    static const prony_dtype dtypes[] = {PRONY_FLOAT32, PRONY_INT64, PRONY_FLOAT16};
    const prn_op *op = prn_op_find("prony", "Reorder", 1);
    (void)state;
    assert_non_null(op);
    for (const prn_kernel *kernel = op->kernels; kernel->name; kernel++) {
        for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
            SCENARIO(shape);
            for (size_t pair = 0; pair < 16 * 3; pair++)
                check_pair(&shapes[shape], dtypes[pair / 16], layouts[pair / 4 % 4], layouts[pair % 4], kernel);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_pair_of_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
