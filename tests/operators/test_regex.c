/* The regular expressions of RegexFullMatch: full matches, refused patterns, and bounded time for every pattern. */
#include "failure_trace.h"
#include "ops/text/regex.h"

#include "base/memory/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool matches(const char *pattern, const char *text, size_t size)
{
    prony_error error = {0};
    prn_regex *regex = NULL;
    if (prn_regex_compile(&regex, pattern, strlen(pattern), &error) != PRONY_OK) fail_msg("%s", error.message);
    void *scratch = malloc(prn_regex_scratch(regex));
    assert_non_null(scratch);
    bool result = prn_regex_matches(regex, text, size, scratch);
    free(scratch);
    prn_regex_release(regex);
    return result;
}

static void whole_texts_match(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *yes[5], *no[5];
    } rows[] = {
        {"", {""}, {"a"}},
        {"abc", {"abc"}, {"ab", "abcd", "xabc", "ABC", ""}},
        {"a|b|cd", {"a", "b", "cd"}, {"c", "ab", ""}},
        {"a||b", {"a", "", "b"}, {"ab"}},
        {"a*", {"", "a", "aaaa"}, {"b", "aab"}},
        {"a+b?", {"a", "aab"}, {"b", "", "abb"}},
        {"(ab)*c", {"c", "abc", "ababc"}, {"ab", "abac"}},
        {"a{2}", {"aa"}, {"a", "aaa"}},
        {"a{2,}", {"aa", "aaaaa"}, {"a", ""}},
        {"a{1,3}b", {"ab", "aab", "aaab"}, {"b", "aaaab"}},
        {"a{0,2}b", {"b", "ab", "aab"}, {"aaab"}},
        {"a{0}", {""}, {"a"}},
        {"(a|b){2,3}", {"ab", "bba"}, {"a", "abab"}},
        {"x{,2}", {"x{,2}"}, {"xx"}},
        {"a*?b+?", {"aab", "b"}, {"aa"}},
        {"[a-c]+", {"abc", "c"}, {"d", "a-c", ""}},
        {"[^a-c]+", {"xyz", "\n"}, {"xay", ""}},
        {"[]x]+", {"]", "x]"}, {"[", ""}},
        {"[a\\-z]+", {"a-z"}, {"b"}},
        {"[[:digit:]x]+", {"12x"}, {"a"}},
        {"[[:^digit:]]+", {"abc"}, {"a1"}},
        {"\\d+\\.\\d*", {"12.", "3.25"}, {"12", ".5", "a.1"}},
        {"\\w+\\W\\s\\S", {"ab. c"}, {"ab.c"}},
        {"[\\w.-]+", {"a_b-c.d"}, {"a b"}},
        {".*", {"abc", ""}, {"a\nb"}},
        {"(?s).*", {"abc", "a\nb"}, {NULL}},
        {"(?i)straSSe", {"Strasse", "STRASSE"}, {"strase"}},
        {"a(?i:b)c", {"abc", "aBc"}, {"aBC", "Abc"}},
        {"(?i)[a-f]+", {"AbF"}, {"g"}},
        {"\\Qa.b*\\Ec", {"a.b*c"}, {"axbbc", "a.bc"}},
        {"(\\Q(|\\E)+x", {"(|x", "(|(|x"}, {"x", "(x"}},
        {"\\Qab\\E*|\\Q[", {"a", "abb", "["}, {"abab"}},
        {"^a$", {"a"}, {"ba", ""}},
        {"(^|x)a(x|$)", {"a", "xa", "ax", "xax"}, {"ya"}},
        {"(?m)a$.^b", {NULL}, {"a\nb"}},
        {"(?ms)a$.^b", {"a\nb"}, {"axb"}},
        {"\\bfoo\\b.*", {"foo", "foo bar"}, {"food"}},
        {"foo\\B.*", {"food"}, {"foo d", "foo"}},
        {"\\Aab\\z", {"ab"}, {"abc"}},
        {"\\x41\\x{e9}\\t", {"A\xc3\xa9\t"}, {"A\xe9\t"}},
        {"\\**\\(\\)", {"**()", "()"}, {"*("}},
        {"(?P<name>a)(?:b)(?<other>c)", {"abc"}, {"ab"}},
        {".", {"\xe2\x82\xac", "\xf0\x9f\x98\x80", "a"}, {"ab", "\xe2\x82\xac\xe2\x82\xac", ""}},
        {"[\xce\xb1-\xcf\x89]+", {"\xce\xb2\xcf\x80"}, {"b"}},
        {"(a*)*", {"", "aaa"}, {"b"}},
        {"(a|a)*b", {"aaab"}, {"aaa"}},
        {"((a{0,5}){0,5}){0,5}", {"", "aaaaaaaaaa"}, {"b"}},
        {"www\\.[\\w.-]+\\.\\bcom\\b", {"www.google.com", "www.facebook.com"}, {"www.bbc.co.uk"}},
        {"(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)",
         {"account@gmail.com", "account2@yahoo.com"},
         {"account@hotmail.com", "not email"}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        SCENARIO_NAMED(k, rows[k].pattern);
        for (int wanted = 0; wanted < 2; wanted++) {
            const char *const *texts = wanted ? rows[k].yes : rows[k].no;
            for (int t = 0; t < 5 && texts[t]; t++)
                if (matches(rows[k].pattern, texts[t], strlen(texts[t])) != wanted)
                    fail_msg("'%s' on '%s': wanted %d", rows[k].pattern, texts[t], wanted);
        }
    }
}

static void zero_bytes_are_text(void **state)
{
    (void)state;
    assert_true(matches("a.b", "a\0b", 3));
    assert_true(matches("a[^x]b", "a\0b", 3));
    assert_false(matches("ab", "a\0b", 3));
}

static void what_is_no_expression_is_refused(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "(",          "a)",      "[a",          "[z-a]",
        "*a",         "a{3,2}",  "a{1001}",     "\\",
        "(?=a)b",     "(?<!a)b", "(a)\\1",      "\\pN",
        "[[:nope:]]", "(?x)a",   "\\x{110000}", "((((a{1,1000}){1,1000}){1,1000}){1,1000})"};
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        SCENARIO_NAMED(k, patterns[k]);
        prony_error error = {0};
        prn_regex *regex = NULL;
        prony_status status = prn_regex_compile(&regex, patterns[k], strlen(patterns[k]), &error);
        if (status != PRONY_INVALID_MODEL) fail_msg("'%s' gives %d", patterns[k], (int)status);
        assert_non_null(strstr(error.message, "at byte"));
    }
    char deep[2001];
    memset(deep, '(', sizeof deep);
    prn_regex *regex = NULL;
    assert_int_equal(prn_regex_compile(&regex, deep, sizeof deep, NULL), PRONY_INVALID_MODEL);
}

/* Patterns that take backtracking matchers exponential time. */
static void nothing_takes_long(void **state)
{
    (void)state;
    enum { SIZE = 20000 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, 'a', SIZE);
    assert_false(matches("(a+)+b", text, SIZE));
    assert_false(matches("(a|aa)+b", text, SIZE));
    assert_true(matches("(a?){100}a*", text, SIZE));
    free(text);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    static const char pattern[] = "(?i)(ab|[c-f]+){2,40}\\b(x|y{0,9}|z)*";
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        SCENARIO(n);
        prn_regex *regex = NULL;
        prn_alloc_fail_at(n);
        prony_status status = prn_regex_compile(&regex, pattern, strlen(pattern), NULL);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        if (!failed) prn_regex_release(regex);
        assert_true(!failed || n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_texts_match),
        cmocka_unit_test(zero_bytes_are_text),
        cmocka_unit_test(what_is_no_expression_is_refused),
        cmocka_unit_test(nothing_takes_long),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
