/* The narrow types against their definition: every code, every half-way point, and numbers beyond the range; numbers
 * as text; quantized runs against their elements one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "failure_trace.h"
#include "ops/kernels/copy/cast_text.h"
#include "ops/kernels/int8/quantized.h"

static const prn_cast_rule saturating = {.saturate = true}, overflowing = {.saturate = false};

/* Largest finite value, smallest value, smallest normal value, as the specification's table has them. */
static const struct {
    prony_dtype type;
    int codes;
    float largest, smallest, normal;
    bool infinite;
} formats[] = {
    {PRONY_FLOAT8E4M3FN, 256, 448.0f, 0x1p-9f, 0x1p-6f, false},
    {PRONY_FLOAT8E4M3FNUZ, 256, 240.0f, 0x1p-10f, 0x1p-7f, false},
    {PRONY_FLOAT8E5M2, 256, 57344.0f, 0x1p-16f, 0x1p-14f, true},
    {PRONY_FLOAT8E5M2FNUZ, 256, 57344.0f, 0x1p-17f, 0x1p-15f, false},
    {PRONY_FLOAT4E2M1, 16, 6.0f, 0.5f, 1.0f, false},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static float decode(prony_dtype type, int code)
{
    const uint8_t byte = (uint8_t)code;
    float x;
    prn_cast(&x, PRONY_FLOAT32, 0, &byte, type, 0, 1, &saturating);
    return x;
}

static int encode(prony_dtype type, float x, const prn_cast_rule *rule)
{
    uint8_t byte = 0;
    prn_cast(&byte, type, 0, &x, PRONY_FLOAT32, 0, 1, rule);
    return byte;
}

static void test_ranges(void **state)
{
    (void)state;
    for (size_t f = 0; f < FORMATS; f++) {
        SCENARIO(f);
        const prony_dtype type = formats[f].type;
        float largest = 0, smallest = INFINITY;
        for (int code = 0; code < formats[f].codes; code++) {
            const float x = fabsf(decode(type, code));
            if (!isfinite(x)) continue;
            if (x > largest) largest = x;
            if (x > 0 && x < smallest) smallest = x;
        }
        assert_true(largest == formats[f].largest);
        assert_true(smallest == formats[f].smallest);
        assert_true(decode(type, encode(type, formats[f].normal, &saturating)) == formats[f].normal);
        assert_true(decode(type, encode(type, INFINITY, &saturating)) == largest);
        assert_true(decode(type, encode(type, -1e9f, &saturating)) == -largest);
    }
}

static void test_every_code_is_kept(void **state)
{
    (void)state;
    for (size_t f = 0; f < FORMATS; f++) {
        SCENARIO(f);
        for (int code = 0; code < formats[f].codes; code++) {
            const float x = decode(formats[f].type, code);
            if (isnan(x)) {
                assert_true(isnan(decode(formats[f].type, encode(formats[f].type, x, &overflowing))));
            } else {
                assert_int_equal(encode(formats[f].type, x, &overflowing), code);
            }
        }
    }
}

/* Between two neighbours lies their middle: just below it rounds down, just above up, and itself to the even code. */
static void test_rounding(void **state)
{
    (void)state;
    for (size_t f = 0; f < FORMATS; f++) {
        SCENARIO(f);
        const prony_dtype type = formats[f].type;
        for (int code = 0; code + 1 < formats[f].codes / 2; code++) {
            const float low = decode(type, code), high = decode(type, code + 1);
            if (!isfinite(low) || !isfinite(high)) continue;
            const float middle = (low + high) / 2;
            assert_int_equal(encode(type, nextafterf(middle, 0.0f), &overflowing), code);
            assert_int_equal(encode(type, nextafterf(middle, INFINITY), &overflowing), code + 1);
            assert_int_equal(encode(type, middle, &overflowing), code + (code & 1));
            double nearly = nextafter((double)middle, INFINITY);
            uint8_t byte = 0;
            prn_cast(&byte, type, 0, &nearly, PRONY_FLOAT64, 0, 1, &overflowing);
            assert_int_equal(byte, code + 1);
        }
    }
}

static void test_beyond_the_range(void **state)
{
    (void)state;
    for (size_t f = 0; f < FORMATS; f++) {
        SCENARIO(f);
        const prony_dtype type = formats[f].type;
        const float x = decode(type, encode(type, 1e6f, &overflowing));
        if (type == PRONY_FLOAT4E2M1) {
            assert_true(x == 6.0f);
        } else {
            assert_true(formats[f].infinite ? isinf(x) : isnan(x));
            assert_true(isnan(decode(type, encode(type, NAN, &saturating))));
        }
    }
    assert_int_equal(encode(PRONY_FLOAT8E4M3FNUZ, -1e-9f, &saturating), 0);
    assert_int_equal(encode(PRONY_FLOAT8E4M3FN, -1e-9f, &saturating), 0x80);
    assert_int_equal(encode(PRONY_FLOAT8E4M3FN, 464.0f, &overflowing), 0x7e);
    assert_int_equal(encode(PRONY_FLOAT8E4M3FN, 465.0f, &overflowing), 0x7f);
}

static void test_powers_of_two(void **state)
{
    (void)state;
    const prn_cast_rule up = {.saturate = true, .rounding = PRN_E8M0_UP};
    const prn_cast_rule down = {.saturate = true, .rounding = PRN_E8M0_DOWN};
    const prn_cast_rule nearest = {.saturate = true, .rounding = PRN_E8M0_NEAREST};
    assert_int_equal(encode(PRONY_FLOAT8E8M0, 1.0f, &up), 127);
    assert_int_equal(encode(PRONY_FLOAT8E8M0, 1.1f, &up), 128);
    assert_int_equal(encode(PRONY_FLOAT8E8M0, 1.375f, &up), 128);
    assert_int_equal(encode(PRONY_FLOAT8E8M0, 1.9f, &down), 127);
    assert_int_equal(encode(PRONY_FLOAT8E8M0, 1.49f, &nearest), 127);
    assert_int_equal(encode(PRONY_FLOAT8E8M0, 1.5f, &nearest), 128);
    assert_int_equal(encode(PRONY_FLOAT8E8M0, 0.0f, &up), 0);
    assert_int_equal(encode(PRONY_FLOAT8E8M0, 3.4e38f, &up), 254);
    assert_int_equal(encode(PRONY_FLOAT8E8M0, 3.4e38f, &overflowing), 255);
    assert_int_equal(encode(PRONY_FLOAT8E8M0, INFINITY, &up), 255);
    for (int code = 0; code < 255; code++) {
        SCENARIO(code);
        assert_true(decode(PRONY_FLOAT8E8M0, code) == ldexpf(1.0f, code - 127));
        assert_int_equal(encode(PRONY_FLOAT8E8M0, decode(PRONY_FLOAT8E8M0, code > 0 ? code : 1), &up),
                         code > 0 ? code : 1);
    }
    assert_true(isnan(decode(PRONY_FLOAT8E8M0, 255)));
}

static void test_packed_integers(void **state)
{
    (void)state;
    const int32_t values[] = {-9, -8, -1, 7, 8, 15, 16};
    const int32_t as_int4[] = {7, -8, -1, 7, -8, -1, 0}, as_uint4[] = {7, 8, 15, 7, 8, 15, 0};
    const int32_t as_int2[] = {-1, 0, -1, -1, 0, -1, 0}, as_uint2[] = {3, 0, 3, 3, 0, 3, 0};
    const struct {
        prony_dtype type;
        const int32_t *wanted;
        size_t bytes;
    } rows[] = {
        {PRONY_INT4, as_int4, 4}, {PRONY_UINT4, as_uint4, 4}, {PRONY_INT2, as_int2, 2}, {PRONY_UINT2, as_uint2, 2}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        SCENARIO(r);
        uint8_t packed[5];
        int32_t back[7];
        memset(packed, 0xa5, sizeof packed);
        prn_cast(packed, rows[r].type, 0, values, PRONY_INT32, 0, 7, &saturating);
        assert_int_equal(packed[rows[r].bytes], 0xa5);
        prn_cast(back, PRONY_INT32, 0, packed, rows[r].type, 0, 7, &saturating);
        assert_memory_equal(back, rows[r].wanted, sizeof back);
        prn_cast(back, PRONY_INT32, 0, packed, rows[r].type, 3, 1, &saturating);
        assert_int_equal(back[0], rows[r].wanted[3]);
    }
    assert_int_equal(prony_dtype_bytes(PRONY_UINT2, 7), 2);
}

/* ---- text */

static void check_text(double x, prony_dtype type, const char *wanted)
{
    char text[PRN_NUMBER_TEXT_BYTES];
    uint64_t element = 0, back = 0;
    prn_cast(&element, type, 0, &x, PRONY_FLOAT64, 0, 1, &saturating);
    const size_t size = prn_number_to_text(text, &element, type, 0);
    assert_string_equal(text, wanted);
    assert_int_equal(size, strlen(wanted));
    const prony_string string = {text, size};
    assert_true(prn_text_to_number(&string, &back, type, 0, &saturating));
    assert_memory_equal(&back, &element, prony_dtype_bytes(type, 1));
}

static void test_text(void **state)
{
    (void)state;
    check_text(0.1, PRONY_FLOAT32, "0.1");
    check_text(0.9767611, PRONY_FLOAT32, "0.9767611");
    check_text(0.1, PRONY_FLOAT64, "0.1");
    check_text(1.0 / 3.0, PRONY_FLOAT64, "0.3333333333333333");
    check_text(1.0 / 3.0, PRONY_FLOAT16, "0.3333");
    check_text(-3.0, PRONY_FLOAT32, "-3.0");
    check_text(-0.0, PRONY_FLOAT32, "-0.0");
    check_text(123456.0, PRONY_FLOAT32, "123456.0");
    check_text(1e15, PRONY_FLOAT64, "1000000000000000.0");
    check_text(1e16, PRONY_FLOAT64, "1e+16");
    check_text(1.5e-5, PRONY_FLOAT64, "1.5e-05");
    check_text(0.0001, PRONY_FLOAT64, "0.0001");
    check_text(314.15926, PRONY_FLOAT64, "314.15926");
    check_text(-1.7976931348623157e308, PRONY_FLOAT64, "-1.7976931348623157e+308");
    check_text((double)INFINITY, PRONY_FLOAT32, "INF");
    check_text(-(double)INFINITY, PRONY_FLOAT64, "-INF");
    check_text(-128, PRONY_INT8, "-128");
    check_text(7, PRONY_UINT64, "7");
    check_text(1, PRONY_BOOL, "True");
    check_text(448, PRONY_FLOAT8E4M3FN, "448.0");
}

static bool reads(const char *text, prony_dtype type, void *out)
{
    const prony_string string = {text, strlen(text)};
    return prn_text_to_number(&string, out, type, 0, &saturating);
}

static void test_reading(void **state)
{
    (void)state;
    double x = 0;
    int64_t i = 0;
    assert_true(reads(" +INF ", PRONY_FLOAT64, &x) && isinf(x));
    assert_true(reads("nAn", PRONY_FLOAT64, &x) && isnan(x));
    assert_true(reads("1E8", PRONY_FLOAT64, &x) && x == 1e8);
    assert_true(reads("100.5", PRONY_INT64, &i) && i == 100);
    assert_true(reads("-9223372036854775808", PRONY_INT64, &i) && i == INT64_MIN);
    assert_true(reads("18446744073709551615", PRONY_UINT64, &i) && (uint64_t)i == UINT64_MAX);
    assert_false(reads("9223372036854775808", PRONY_INT64, &i));
    assert_false(reads("nan", PRONY_INT64, &i));
    assert_false(reads("Hello World!", PRONY_FLOAT64, &x));
    assert_false(reads("1.5x", PRONY_FLOAT64, &x));
    assert_false(reads("", PRONY_FLOAT64, &x));
    assert_false(reads("   ", PRONY_FLOAT64, &x));
}

/* ---- runs */

static void test_runs_are_their_elements(void **state)
{
    (void)state;
    enum { N = 611 };
    static const prony_dtype types[] = {PRONY_UINT8, PRONY_INT8, PRONY_UINT16, PRONY_INT16, PRONY_UINT4, PRONY_INT4};
    float values[N], zero[N], scale[N], back[N];
    for (int i = 0; i < N; i++) {
        values[i] = (float)((i * 7919) % 2003 - 1000) / 4.0f; /* a quarter of them half-way */
        zero[i] = (float)(i % 7);
        scale[i] = 0.25f * (float)(i % 5 + 1);
    }
    values[3] = NAN;
    values[4] = INFINITY;
    values[5] = -INFINITY;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        SCENARIO(t);
        uint8_t run[2 * N] = {0}, one[2 * N] = {0};
        prn_quantize_run(run, types[t], 0, values, zero, N, &saturating);
        for (int i = 0; i < N; i++) prn_quantize_one(one, types[t], i, values[i], zero[i], &saturating);
        assert_memory_equal(run, one, prony_dtype_bytes(types[t], N));
        prn_dequantize_run(back, run, types[t], 0, zero, scale, N);
        for (int i = 0; i < N; i++) assert_true(back[i] == prn_dequantize_one(run, types[t], i, zero[i], scale[i]));
    }
    uint8_t code;
    prn_quantize_one(&code, PRONY_UINT8, 0, 2.5f, 1.0f, &saturating);
    assert_int_equal(code, 3);
    prn_quantize_one(&code, PRONY_UINT8, 0, 3.5f, 1.0f, &saturating);
    assert_int_equal(code, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_every_code_is_kept),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_beyond_the_range),
        cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_packed_integers),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_runs_are_their_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
