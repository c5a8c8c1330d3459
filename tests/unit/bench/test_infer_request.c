/* Requests of the Open Inference Protocol: the scanner of JSON, narrow types against their exact values, random
 * bodies. */
#include "failure_trace.h"
#include "bench/serve/datatypes.h"
#include "bench/serve/infer_request.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_json(const char *text)
{
    json_scan scan = {.text = text, .size = strlen(text)};
    return json_value(&scan, NULL) && json_end(&scan);
}

static void json_is_what_the_standard_says(void **state)
{
    (void)state;
    static const char *const good[] = {
        "0",         "-0.5e+10",          "[]", "{}", " [1 , {\"a\" : [ ] } ] ", "\"\\u00e9\\\"\\n\"", "true", "null",
        "[[[[1]]]]", "{\"a\":{\"b\":{}}}"};
    static const char *const bad[] = {"",
                                      "[",
                                      "]",
                                      "[1,]",
                                      "[,1]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{a:1}",
                                      "{\"a\":1,}",
                                      "01",
                                      "1.",
                                      ".5",
                                      "+1",
                                      "1e",
                                      "-",
                                      "nul",
                                      "NaN",
                                      "\"\\x\"",
                                      "\"\\u12g4\"",
                                      "\"",
                                      "\"\n\"",
                                      "[1 2]",
                                      "{\"a\":1 \"b\":2}",
                                      "1 2",
                                      "[}",
                                      "{]",
                                      "[1}",
                                      "tru",
                                      "\"\\\""};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!is_json(good[i])) fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (is_json(bad[i])) fail_msg("accepted: %s", bad[i]);
}

static void escapes_become_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *raw, *text;
    } rows[] = {{"a\\u0041\\/", "aA/"},
                {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
                {"\\ud83dx", "\xef\xbf\xbdx"},
                {"\\ude00", "\xef\xbf\xbd"},
                {"\\u20ac\\t", "\xe2\x82\xac\t"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCENARIO(i);
        char out[64];
        size_t size = json_unescape((json_slice){rows[i].raw, strlen(rows[i].raw)}, out);
        assert_int_equal(size, strlen(rows[i].text));
        assert_memory_equal(out, rows[i].text, size);
    }
    text_buffer to = {0};
    buffer_json(&to, "a\"\\\n<\xff\xed\xa0\x80\xe2\x82\xac", 12);
    assert_string_equal(to.data, "\"a\\\"\\\\\\u000a\\u003c\\ufffd\\ufffd\\ufffd\\ufffd\xe2\x82\xac\"");
    buffer_free(&to);
}

/* Every code of the narrow types comes back from its value, and a value between two codes takes the even one. */
static void narrow_floats_round_to_nearest_even(void **state)
{
    (void)state;
    static const struct {
        prony_dtype dtype;
        unsigned codes, wide;
    } types[] = {{PRONY_FLOAT16, 1U << 16, 2},   {PRONY_BFLOAT16, 1U << 16, 2}, {PRONY_FLOAT8E4M3FN, 256, 1},
                 {PRONY_FLOAT8E4M3FNUZ, 256, 1}, {PRONY_FLOAT8E5M2, 256, 1},    {PRONY_FLOAT8E5M2FNUZ, 256, 1},
                 {PRONY_FLOAT4E2M1, 16, 1},      {PRONY_FLOAT8E8M0, 256, 1}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        SCENARIO(t);
        double before = NAN;
        for (unsigned code = 0; code < types[t].codes; code++) {
            uint16_t in = (uint16_t)code, out = 0;
            text_buffer text = {0};
            datatype_put(&text, types[t].dtype, &in, 0);
            bool number = strcmp(text.data, "null") != 0;
            double value = number ? strtod(text.data, NULL) : NAN;
            buffer_free(&text);
            bool minus_zero = value == 0 && code != 0;
            if (number && !minus_zero) {
                assert_true(datatype_set_float(types[t].dtype, &out, 0, value));
                assert_int_equal(out, code);
            }
            double middle = (before + value) / 2; /* of two neighbours of one sign */
            if (number && !isnan(before) && code < types[t].codes / 2 && types[t].dtype != PRONY_FLOAT8E8M0 &&
                types[t].dtype != PRONY_BFLOAT16 && types[t].dtype != PRONY_FLOAT16) {
                out = 0;
                assert_true(datatype_set_float(types[t].dtype, &out, 0, middle));
                assert_int_equal(out, code & 1 ? code - 1 : code);
            }
            before = value;
        }
    }
    uint16_t half;
    assert_false(datatype_set_float(PRONY_FLOAT16, &half, 0, 65520));
    assert_true(datatype_set_float(PRONY_FLOAT16, &half, 0, 65519.9));
    assert_false(datatype_set_float(PRONY_FLOAT8E4M3FN, &half, 0, 1e300));
    assert_false(datatype_set_float(PRONY_FLOAT8E8M0, &half, 0, 3));
    assert_false(datatype_set_float(PRONY_BFLOAT16, &half, 0, INFINITY));
}

static const prony_value_info image = {.name = "image", .dtype = PRONY_FLOAT32, .shape = {2, {-1, 2}}};
static const prony_value_info answer = {.name = "y", .dtype = PRONY_FLOAT32, .shape = {2, {-1, 2}}};

static int parse(const char *body, size_t size, infer_request *request, char message[INFER_MESSAGE])
{
    static const prony_value_info *inputs[] = {&image}, *outputs[] = {&answer};
    const infer_signature signature = {"m", inputs, outputs, 1, 1};
    return infer_parse(request, &signature, body, size, SIZE_MAX, message);
}

#define BODY                                                                                                           \
    "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[1.5,-2,[3e-1,"                   \
    "1234567890123456789]]}]}"

static void numbers_are_exact(void **state)
{
    (void)state;
    infer_request request;
    char message[INFER_MESSAGE] = "";
    assert_int_equal(parse(BODY, sizeof BODY - 1, &request, message), 0);
    const float *data = request.values[0].data;
    assert_true(data[0] == 1.5F && data[1] == -2 && data[2] == 0.3F && data[3] == 1234567890123456789.0F);
    assert_int_equal(request.samples, 2);
    infer_request_free(&request);
}

/* Cut and damaged bodies: a message or a request, and nothing else; valgrind and the sanitizers watch. */
static void damaged_bodies_are_refused(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        char *body = malloc(sizeof BODY), message[INFER_MESSAGE] = "";
        infer_request request;
        assert_non_null(body);
        memcpy(body, BODY, sizeof BODY);
        size_t size = sizeof BODY - 1;
        for (int k = 0; k < 1 + i % 3; k++) {
            random = random * 1664525u + 1013904223u;
            body[(random >> 8) % size] = i % 2 ? (char)(random >> 24) : "[]{}\",:0-e\\"[(random >> 24) % 11];
        }
        if (i % 5 == 0) size = (random >> 10) % size;
        char *exact = malloc(size + 1); /* so that reads beyond the end are seen */
        assert_non_null(exact);
        memcpy(exact, body, size);
        exact[size] = '\0';
        int status = parse(exact, size, &request, message);
        assert_true(status == 0 || (status == 400 && *message));
        infer_request_free(&request);
        free(exact);
        free(body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_what_the_standard_says),      cmocka_unit_test(escapes_become_utf8),
        cmocka_unit_test(narrow_floats_round_to_nearest_even), cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(damaged_bodies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
