/* Tensors of strings in whole models: as inputs, constants and outputs, through the operators on them and those that
 * only move them. */
#include "failure_trace.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S(text) {text, sizeof text - 1}

static void one_operator(model_run *r, int64_t opset, const char *op, const char *attributes, const char *dims,
                         const prony_string *strings)
{
    model_builder *m = mb_begin(opset);
    mb_input(m, "x", PRONY_STRING, NULL);
    mb_node(m, op, "x", "y", attributes);
    mb_output(m, "y", PRONY_STRING, NULL);
    mr_open(r, m);
    mr_set(r, "x", PRONY_STRING, dims, strings);
}

static void normalizer(void **state)
{
    (void)state;
    static const prony_string x[5] = {S("Monday"), S("tuesday"), S("\xc3\x84RGER"), S(""), S("MONDAY")};
    static const struct {
        const char *attributes, *dims, *wanted;
    } rows[] = {
        {"", "5", "Monday|tuesday|\xc3\x84RGER||MONDAY"},
        {"case_change_action='LOWER'", "5", "monday|tuesday|\xc3\xa4rger||monday"},
        {"case_change_action='UPPER' is_case_sensitive=1 stopwords=['MONDAY']", "4", "MONDAY|TUESDAY|\xc3\x84RGER|"},
        {"stopwords=['monday','\xc3\xa4rger']", "2", "tuesday|"},
        {"stopwords=['monday','TUESDAY','\xc3\xa4rger','']", "1", ""},
        {"case_change_action='LOWER' locale='no_SUCH.locale'", "5", "monday|tuesday|\xc3\xa4rger||monday"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        SCENARIO_NAMED(k, rows[k].attributes);
        model_run r = {0};
        one_operator(&r, 10, "StringNormalizer", rows[k].attributes, "5", x);
        mr_expect_text(mr_run(&r, 0), rows[k].dims, rows[k].wanted);
        if (k == 2) mr_survives_faults(&r);
        mr_close(&r);
    }
    model_run r = {0};
    one_operator(&r, 10, "StringNormalizer", "stopwords=['tuesday']", "1,5", x);
    mr_expect_text(mr_run(&r, 0), "1,4", "Monday|\xc3\x84RGER||MONDAY");
    mr_set(&r, "x", PRONY_STRING, "5,1", x);
    mr_refused(&r, PRONY_SHAPE_MISMATCH, "wanted 1");
    mr_close(&r);
}

static void concat(void **state)
{
    (void)state;
    static const prony_string x[2] = {S("a"), S("bc")}, y[3] = {S(""), S("d"), S("e\0f")};
    model_builder *m = mb_begin(20);
    mb_input(m, "x", PRONY_STRING, "2,1");
    mb_input(m, "y", PRONY_STRING, "3");
    mb_node(m, "StringConcat", "x y", "z", "");
    mb_node(m, "StringConcat", "z x", "w", "");
    mb_output(m, "z", PRONY_STRING, "2,3");
    mb_output(m, "w", PRONY_STRING, "2,3");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_STRING, "2,1", x);
    mr_set(&r, "y", PRONY_STRING, "3", y);
    uint64_t live = 0;
    for (int k = 0; k < 3; k++) {
        SCENARIO(k);
        const prony_value *z = mr_run(&r, 0);
        assert_int_equal(((const prony_string *)z->data)[2].size, 4);
        assert_memory_equal(((const prony_string *)z->data)[2].data, "ae\0f", 4);
        assert_memory_equal(((const prony_string *)mr_output(&r, 1)->data)[5].data, "bce\0fbc", 7);
        if (k == 0) live = mr_live_bytes(&r);
        assert_int_equal(mr_live_bytes(&r), live);
    }
    mr_survives_faults(&r);
    mr_close(&r);
}

static void split(void **state)
{
    (void)state;
    static const prony_string x[3] = {S("a,b,,c"), S(""), S("  d e\t f ")};
    static const struct {
        const char *attributes, *dims, *wanted;
        int64_t counts[3];
    } rows[] = {
        {"delimiter=','", "3,4", "a|b||c|||||  d e\t f |||", {4, 1, 1}},
        {"delimiter=',' maxsplit=1", "3,2", "a|b,,c|||  d e\t f |", {2, 1, 1}},
        {"", "3,3", "a,b,,c||||||d|e|f", {1, 0, 3}},
        {"maxsplit=1", "3,2", "a,b,,c||||d|e\t f ", {1, 0, 2}},
        {"delimiter=',,'", "3,2", "a,b|c|||  d e\t f |", {2, 1, 1}},
        {"maxsplit=0", "3,1", "a,b,,c||d e\t f ", {1, 0, 1}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        SCENARIO_NAMED(k, rows[k].attributes);
        model_builder *m = mb_begin(20);
        mb_input(m, "x", PRONY_STRING, "N");
        mb_node(m, "StringSplit", "x", "y n", rows[k].attributes);
        mb_output(m, "y", PRONY_STRING, NULL);
        mb_output(m, "n", PRONY_INT64, "N");
        model_run r = {0};
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_STRING, "3", x);
        mr_expect_text(mr_run(&r, 0), rows[k].dims, rows[k].wanted);
        mr_expect(mr_output(&r, 1), PRONY_INT64, "3", rows[k].counts);
        if (k == 0) mr_survives_faults(&r);
        mr_set(&r, "x", PRONY_STRING, "0", x);
        mr_expect_text(mr_run(&r, 0), "0,0", "");
        mr_close(&r);
    }
}

static void match(void **state)
{
    (void)state;
    static const prony_string x[4] = {S("www.google.com"), S("www.bbc.co.uk"), S(""), S("www.x.com")};
    static const uint8_t wanted[4] = {1, 0, 0, 1};
    model_builder *m = mb_begin(20);
    mb_input(m, "x", PRONY_STRING, "2,2");
    mb_node(m, "RegexFullMatch", "x", "y", "pattern='www\\.[\\w.-]+\\.\\bcom\\b'");
    mb_output(m, "y", PRONY_BOOL, "2,2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_STRING, "2,2", x);
    mr_expect(mr_run(&r, 0), PRONY_BOOL, "2,2", wanted);
    mr_survives_faults(&r);
    mr_close(&r);
    one_operator(&r, 20, "RegexFullMatch", "pattern='(a'", "4", x);
    mr_refused(&r, PRONY_INVALID_MODEL, "an open (");
    mr_close(&r);
}

static void tfidf(void **state)
{
    (void)state;
    static const prony_string x[6] = {S("a"), S("b"), S("a"), S("c"), S("b"), S("b")};
    static const float wanted[8] = {2, 1, 1, 0, 0, 2, 0, 0}; /* rows "a b a" and "c b b": a, b, a b, a _ a */
    model_builder *m = mb_begin(9);
    mb_input(m, "x", PRONY_STRING, "2,3");
    mb_node(m, "TfIdfVectorizer", "x", "y",
            "mode='TF' min_gram_length=1 max_gram_length=2 max_skip_count=1 ngram_counts=[0,2] ngram_indexes=[0,1,2,3] "
            "pool_strings=['a','b','a','b','b','c']");
    mb_output(m, "y", PRONY_FLOAT32, "2,4");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_STRING, "2,3", x);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2,4", wanted);
    mr_survives_faults(&r);
    mr_close(&r);
}

/* Operators that move elements also move strings; the text itself is not copied. */
static void movers(void **state)
{
    (void)state;
    static const prony_string x[4] = {S("a"), S("bb"), S(""), S("dddd")};
    static const int64_t index[2] = {3, 0}, shape[2] = {2, 2}, zero = 0;
    static const uint8_t equal[4] = {0, 1, 0, 0};
    model_builder *m = mb_begin(19);
    mb_input(m, "x", PRONY_STRING, "4");
    mb_initializer(m, "index", PRONY_INT64, "2", index);
    mb_initializer(m, "shape", PRONY_INT64, "2", shape);
    mb_initializer(m, "zero", PRONY_INT64, "1", &zero);
    mb_node(m, "Constant", "", "word", "value_strings=['bb']");
    mb_node(m, "Equal", "x word", "same", "");
    mb_node(m, "Where", "same word x", "kept", "");
    mb_node(m, "Gather", "x index", "picked", "");
    mb_node(m, "Concat", "picked word", "longer", "axis=0");
    mb_node(m, "Reshape", "x shape", "square", "");
    mb_node(m, "Transpose", "square", "turned", "");
    mb_node(m, "Unsqueeze", "turned zero", "deep", "");
    mb_node(m, "Expand", "word shape", "many", "");
    mb_node(m, "Identity", "longer", "copy", "");
    mb_output(m, "same", PRONY_BOOL, "4");
    mb_output(m, "kept", PRONY_STRING, "4");
    mb_output(m, "copy", PRONY_STRING, "3");
    mb_output(m, "deep", PRONY_STRING, "1,2,2");
    mb_output(m, "many", PRONY_STRING, "2,2");
    mb_output(m, "x", PRONY_STRING, "4");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_STRING, "4", x);
    mr_expect(mr_run(&r, 0), PRONY_BOOL, "4", equal);
    mr_expect_text(mr_output(&r, 1), "4", "a|bb||dddd");
    mr_expect_text(mr_output(&r, 2), "3", "dddd|a|bb");
    mr_expect_text(mr_output(&r, 3), "1,2,2", "a||bb|dddd");
    mr_expect_text(mr_output(&r, 4), "2,2", "bb|bb|bb|bb");
    mr_expect_text(mr_output(&r, 5), "4", "a|bb||dddd");
    mr_survives_faults(&r);
    mr_close(&r);
}

/* Strings carried through a loop that composes them. */
static void strings_in_a_loop(void **state)
{
    (void)state;
    static const prony_string x[2] = {S("a"), S("b")};
    int64_t n = 3;
    model_builder *m = mb_begin(20);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "x", PRONY_STRING, "2");
    mb_node(m, "Loop", "n ? x", "y all", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "s", PRONY_STRING, "2");
    mb_node(m, "StringConcat", "s x", "t", "");
    mb_node(m, "Identity", "t", "u", "");
    mb_output(m, "go", PRONY_BOOL, "");
    mb_output(m, "t", PRONY_STRING, "2");
    mb_output(m, "u", PRONY_STRING, "2");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_STRING, "2");
    mb_output(m, "all", PRONY_STRING, "T,2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "n", PRONY_INT64, "", &n);
    mr_set(&r, "x", PRONY_STRING, "2", x);
    mr_expect_text(mr_run(&r, 0), "2", "aaaa|bbbb");
    mr_expect_text(mr_output(&r, 1), "3,2", "aa|bb|aaa|bbb|aaaa|bbbb");
    mr_survives_faults(&r);
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalizer),
        cmocka_unit_test(concat),
        cmocka_unit_test(split),
        cmocka_unit_test(match),
        cmocka_unit_test(tfidf),
        cmocka_unit_test(movers),
        cmocka_unit_test(strings_in_a_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
