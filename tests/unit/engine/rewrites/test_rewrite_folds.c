/* Rewrites that fold scales, shifts and pads into weights and attributes: each fires where it should and nowhere
 * else. */
#include "failure_trace.h"
#include "base/shape.h"
#include "engine/rewrites/rewrite.h"
#include "rewrite_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- folding into weights ---- */

static void fold_batch_norm(void **state)
{
    (void)state;
    static const struct {
        const char *op, *x, *w, *b, *attributes, *channels;
    } cases[] = {
        {"Conv", "2,4,5,5", "6,2,3,3", NULL, "group=2 strides=[2,2]", "6"},
        {"Conv", "2,4,9", "4,1,3", "4", "group=4", "4"},
        {"Conv", "1,2,4,4,4", "3,2,2,2,2", "3", "", "3"},
        {"ConvTranspose", "1,4,5,5", "4,3,2,2", "6", "group=2 strides=[2,2]", "6"},
        {"ConvTranspose", "1,4,5,5", "4,3,3,3", NULL, "", "3"},
        {"Gemm", "5,4", "6,4", "1,6", "transB=1 alpha=0.5", "6"},
        {"Gemm", "5,4", "4,6", "", "", "6"},
        {"MatMul", "5,4", "4,6", NULL, "", "6"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].op);
        rc_seed((uint32_t)k);
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, cases[k].x);
        rc_weights(m, "w", cases[k].w);
        if (cases[k].b) rc_weights(m, "b", cases[k].b);
        mb_node(m, cases[k].op, cases[k].b ? "x w b" : "x w", "c", cases[k].attributes);
        rc_batch_norm(m, "c", "y", cases[k].channels);
        rc_output(m, "y");
        rc_expect(m, cases[k].op);
    }
}

static void keep_batch_norm(void **state)
{
    (void)state;
    model_builder *m = rc_begin(); /* the convolution has another reader */
    rc_conv(m, "x w b", "c");
    rc_batch_norm(m, "c", "n", "4");
    mb_node(m, "Mul", "n c", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv BatchNormalization Mul");

    m = rc_begin(); /* the convolution is an output of the graph */
    rc_conv(m, "x w b", "c");
    rc_batch_norm(m, "c", "y", "4");
    rc_output(m, "c");
    rc_output(m, "y");
    rc_expect(m, "Conv BatchNormalization");

    m = rc_begin(); /* weights come at run time */
    mb_input(m, "w2", PRONY_FLOAT32, "4,4,3,3");
    rc_conv(m, "x w2 b", "c");
    rc_batch_norm(m, "c", "y", "4");
    rc_output(m, "y");
    rc_expect(m, "Conv BatchNormalization");

    m = rc_begin(); /* so do statistics */
    mb_input(m, "shift", PRONY_FLOAT32, "4");
    rc_weights_in(m, "v", "4", 0.5f, 1.5f);
    rc_conv(m, "x w b", "c");
    mb_node(m, "BatchNormalization", "c v shift b v", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv BatchNormalization");

    m = rc_begin(); /* before the convolution, padding would see the shift */
    rc_batch_norm(m, "x", "n", "4");
    rc_conv(m, "n w b", "y");
    rc_output(m, "y");
    rc_expect(m, "BatchNormalization Conv");

    m = mb_begin(17); /* channels are not the columns of the product */
    mb_input(m, "x", PRONY_FLOAT32, "2,4,4");
    rc_weights(m, "w", "4,4");
    mb_node(m, "MatMul", "x w", "c", "");
    rc_batch_norm(m, "c", "y", "4");
    rc_output(m, "y");
    rc_expect(m, "MatMul BatchNormalization");

    m = mb_begin(17); /* C is scaled by beta, so nothing can be added to it */
    mb_input(m, "x", PRONY_FLOAT32, "5,4");
    rc_weights(m, "w", "4,4");
    rc_weights(m, "b", "4");
    mb_node(m, "Gemm", "x w b", "c", "beta=0.5");
    rc_batch_norm(m, "c", "y", "4");
    rc_output(m, "y");
    rc_expect(m, "Gemm BatchNormalization");
}

static void fold_scale_and_shift(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    rc_weights(m, "scale", "4,1,1");
    rc_weights(m, "shift", "1,4,1,1");
    rc_weights_in(m, "divisor", "1,4,1,1", 1.0f, 2.0f);
    rc_scalar(m, "half", 0.5f);
    rc_conv(m, "x w", "c0");
    mb_node(m, "Mul", "scale c0", "c1", "");
    mb_node(m, "Add", "c1 shift", "c2", "");
    mb_node(m, "Div", "c2 divisor", "c3", "");
    mb_node(m, "Sub", "c3 half", "c4", "");
    mb_node(m, "Sub", "shift c4", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,3,4");
    rc_weights(m, "w", "4,5");
    rc_weights(m, "b", "5");
    rc_weights(m, "g", "1,1,5");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "b p", "q", "");
    mb_node(m, "Mul", "q g", "y", "");
    rc_output(m, "y");
    rc_expect(m, "MatMul");

    m = mb_begin(17); /* the channels went elsewhere in between */
    mb_input(m, "x", PRONY_FLOAT32, "2,3,4");
    rc_weights(m, "w", "4,5");
    rc_weights(m, "g", "5,1");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Transpose", "p", "t", "perm=[0,2,1]");
    mb_node(m, "Mul", "t g", "y", "");
    rc_output(m, "y");
    rc_expect(m, "MatMul Transpose");
}

static void keep_scale_and_shift(void **state)
{
    (void)state;
    static const struct {
        const char *dims, *op, *inputs, *wanted;
    } cases[] = {
        {"5", "Mul", "c k", "Conv Mul"},         /* along an axis other than the channels */
        {"4,1,5", "Add", "c k", "Conv Add"},     /* along two axes */
        {"3,1,1,1,1", "Add", "c k", "Conv Add"}, /* makes the output larger */
        {"4,1,1", "Div", "k c", "Conv Div"},     /* not linear */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCENARIO_NAMED(i, cases[i].op);
        model_builder *m = rc_begin();
        rc_weights(m, "k", cases[i].dims);
        rc_conv(m, "x w b", "c");
        mb_node(m, cases[i].op, cases[i].inputs, "y", "");
        rc_output(m, "y");
        rc_expect(m, cases[i].wanted);
    }
    model_builder *m = rc_begin(); /* would leave float32's range */
    rc_weights_in(m, "large", "4,4,3,3", 1e20f, 2e20f);
    rc_scalar(m, "huge", 1e30f);
    rc_scalar(m, "tiny", 1e-30f);
    mb_node(m, "Mul", "x tiny", "s", "");
    rc_conv(m, "s large", "c");
    mb_node(m, "Mul", "c huge", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Mul Conv Mul");

    m = rc_begin(); /* would make the weights subnormal */
    rc_scalar(m, "faint", 1e-40f);
    rc_conv(m, "x w b", "c");
    mb_node(m, "Mul", "c faint", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Mul");

    static const struct {
        float weight, scale;
        const char *wanted;
    } small[] = {{1e-25f, 1e-20f, "Conv Mul"}, /* the product would be subnormal */
                 {1e-25f, 1e-7f, "Conv"},      /* it stays an ordinary number */
                 {1e-25f, 1e20f, "Conv"},
                 {1e-31f, 1e-7f, "Conv"}}; /* weights of decayed channels, which are nearly 0 already */
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        SCENARIO(i);
        m = rc_begin();
        rc_weights_in(m, "small", "4,4,3,3", small[i].weight, 2.0f * small[i].weight);
        rc_scalar(m, "scale", small[i].scale);
        rc_conv(m, "x small", "c");
        mb_node(m, "Mul", "c scale", "y", "");
        rc_output(m, "y");
        rc_expect(m, small[i].wanted);
    }

    m = rc_begin(); /* the same, next to an ordinary bias */
    rc_weights_in(m, "scale", "4", 1e-36f, 2e-36f);
    rc_weights_in(m, "shift", "4", 0.5f, 1.0f);
    rc_weights_in(m, "mean", "4", 0.5f, 1.0f);
    rc_weights_in(m, "variance", "4", 0.5f, 1.0f);
    rc_conv(m, "x w b", "c");
    mb_node(m, "BatchNormalization", "c scale shift mean variance", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv");

    m = mb_begin(17); /* both factors come at run time */
    mb_input(m, "x", PRONY_FLOAT32, "3,4");
    mb_input(m, "w", PRONY_FLOAT32, "4,5");
    rc_weights(m, "b", "5");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "p b", "y", "");
    rc_output(m, "y");
    rc_expect(m, "MatMul Add");

    m = mb_begin(17); /* another type */
    double doubles[20] = {0.5, 1, 1.5, 2};
    mb_input(m, "x", PRONY_FLOAT64, "3,4");
    mb_initializer(m, "w", PRONY_FLOAT64, "4,5", doubles);
    mb_initializer(m, "b", PRONY_FLOAT64, "5", doubles);
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "p b", "y", "");
    mb_output(m, "y", PRONY_FLOAT64, NULL);
    rc_expect(m, "MatMul Add");
}

/* ---- padding ---- */

/* Pads x by `pads` (in front and behind: all eight numbers), of `value` unless it is NULL, into p. */
static model_builder *padded(const int64_t *pads, const float *value, const char *attributes)
{
    model_builder *m = rc_begin();
    rc_ints(m, "pads", "8", pads);
    if (value) rc_scalar(m, "value", *value);
    mb_node(m, "Pad", value ? "x pads value" : "x pads", "p", attributes);
    return m;
}

static void expect_pad(model_builder *m, const char *op, const char *inputs, const char *attributes, const char *wanted)
{
    mb_node(m, op, inputs, "y", attributes);
    rc_output(m, "y");
    rc_expect(m, wanted);
}

static void fold_pads(void **state)
{
    (void)state;
    static const int64_t uneven[] = {0, 0, 1, 2, 0, 0, 0, 3}, even[] = {0, 0, 1, 1, 0, 0, 1, 1};
    static const float zero = 0.0f;
    expect_pad(padded(uneven, NULL, ""), "Conv", "p w b", "", "Conv");
    expect_pad(padded(uneven, &zero, ""), "Conv", "p w b", "pads=[0,1,2,0] strides=[2,1]", "Conv");
    expect_pad(padded(uneven, NULL, ""), "Conv", "p w b", "auto_pad='VALID' kernel_shape=[3,3]", "Conv");
    expect_pad(padded(even, NULL, ""), "AveragePool", "p", "kernel_shape=[3,3]", "AveragePool");
    expect_pad(padded(even, NULL, ""), "AveragePool", "p",
               "kernel_shape=[3,3] pads=[1,0,0,1] count_include_pad=1 strides=[2,2]", "AveragePool");
}

static void keep_pads(void **state)
{
    (void)state;
    static const int64_t even[] = {0, 0, 1, 1, 0, 0, 1, 1}, channels[] = {0, 0, 1, 1, 0, 1, 1, 1},
                         less[] = {0, 0, -1, 0, 0, 0, 0, 1}, wide[] = {0, 0, 3, 0, 0, 0, 0, 0};
    static const float one = 1.0f;
    expect_pad(padded(even, &one, ""), "Conv", "p w b", "", "Pad Conv");
    expect_pad(padded(even, NULL, "mode='edge'"), "Conv", "p w b", "", "Pad Conv");
    expect_pad(padded(less, NULL, ""), "Conv", "p w b", "", "Pad Conv");
    expect_pad(padded(even, NULL, ""), "Conv", "p w b", "auto_pad='SAME_UPPER' strides=[2,2]", "Pad Conv");
    expect_pad(padded(channels, NULL, ""), "AveragePool", "p", "kernel_shape=[3,3]", "Pad AveragePool");
    expect_pad(padded(wide, NULL, ""), "AveragePool", "p", "kernel_shape=[3,3]", "Pad AveragePool");
    expect_pad(padded(even, NULL, ""), "AveragePool", "p", "kernel_shape=[2,2] pads=[1,0,0,0]", "Pad AveragePool");
    expect_pad(padded(even, NULL, ""), "AveragePool", "p", "kernel_shape=[2,2] strides=[2,2] ceil_mode=1",
               "Pad AveragePool");
    expect_pad(padded(even, NULL, ""), "MaxPool", "p", "kernel_shape=[2,2]", "Pad MaxPool");
    model_builder *m = padded(even, NULL, ""); /* the padded value has another reader */
    rc_output(m, "p");
    expect_pad(m, "Conv", "p w b", "", "Pad Conv");
}

/* Statistics and a scale after one convolution: the first folding's constants have no reader. */
static void trim_what_is_folded(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    rc_conv(m, "x w b", "c");
    rc_batch_norm(m, "c", "n", "4");
    rc_weights(m, "s", "4,1,1");
    mb_node(m, "Mul", "n s", "y", "");
    rc_output(m, "y");
    rc_model l;
    rc_load(&l, m, NULL);
    prn_program *before, *after;
    assert_int_equal(rc_bind(&l, &before), PRONY_OK);
    assert_int_equal(rc_bind(&l, &after), PRONY_OK);
    uint64_t bound = prn_weight_cache_bytes(l.model.shared);
    assert_int_equal(prn_program_rewrite(after, &l.error), PRONY_OK);
    uint64_t weights = 4 * (4 * 4 * 3 * 3 + 4);
    assert_int_equal(prn_weight_cache_bytes(l.model.shared), bound + 2 * weights);
    for (uint64_t n = 1;; n++) {
        prn_alloc_fail_at(n);
        bool done = prn_program_trim(after, NULL), failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(done, !failed);
        if (done) break;
        assert_int_equal(prn_weight_cache_bytes(l.model.shared), bound + 2 * weights);
    }
    assert_int_equal(prn_weight_cache_bytes(l.model.shared), bound + weights);
    rc_check_runs(before, after);
    prn_program_release(before);
    prn_program_release(after);
    assert_int_equal(prn_weight_cache_bytes(l.model.shared), 0);
    rc_unload(&l);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_batch_norm),
        cmocka_unit_test(keep_batch_norm),
        cmocka_unit_test(fold_scale_and_shift),
        cmocka_unit_test(keep_scale_and_shift),
        cmocka_unit_test(fold_pads),
        cmocka_unit_test(keep_pads),
        cmocka_unit_test(trim_what_is_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
