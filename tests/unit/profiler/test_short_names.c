/* Names of a table, cut to a width: different names stay different at every width; the distinguishing parts are
 * kept; names that fit stay whole. */
#include "failure_trace.h"
#include "profiler/text/short_names.h"
#include "profiler/text/text_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 400, BYTES = 160 };

typedef struct name_set {
    char text[MOST][BYTES];
    const char *names[MOST];
    size_t count;
} name_set;

static name_set set;

static void add_name(const char *name)
{
    assert_true(set.count < MOST);
    snprintf(set.text[set.count], BYTES, "%s", name);
    set.names[set.count] = set.text[set.count];
    set.count++;
}

/* As torch.onnx writes torchvision's ResNet and DenseNet, and a vision transformer. */
static void add_torchvision(void)
{
    static const char *const parts[] = {"conv1/Conv", "conv2/Conv", "conv3/Conv", "relu/Relu", "Add"};
    set.count = 0;
    for (int stage = 1; stage <= 4; stage++)
        for (int block = 0; block < 6; block++)
            for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
                char path[BYTES];
                snprintf(path, sizeof path, "/layer%d/layer%d.%d/%s", stage, stage, block, parts[p]);
                add_name(path);
            }
    for (int block = 0; block < 8; block++)
        for (int layer = 0; layer < 3; layer++) {
            char path[BYTES];
            snprintf(path, sizeof path, "/features/denseblock%d/denselayer%d/denselayer%d.norm/BatchNormalization",
                     block, layer, layer);
            add_name(path);
        }
    for (int block = 0; block < 12; block++) {
        char path[BYTES];
        snprintf(path, sizeof path, "/encoder/layers/encoder_layer_%d/self_attention/self_attention_%d/out_proj/Gemm",
                 block, block);
        add_name(path);
    }
}

/* No two different names look alike, none is wider than requested, and equal ones are equal. */
static void check_set(int columns)
{
    prn_short_names names;
    assert_true(prn_short_names_make(&names, set.names, set.count, columns));
    for (size_t i = 0; i < set.count; i++) {
        assert_true(prn_text_width(names.shown[i]) <= columns);
        assert_true(*names.shown[i] != '\0');
        for (size_t k = 0; k < i; k++)
            if ((strcmp(set.names[i], set.names[k]) == 0) != (strcmp(names.shown[i], names.shown[k]) == 0))
                fail_msg("%d columns: '%s' and '%s' are shown as '%s' and '%s'", columns, set.names[i], set.names[k],
                         names.shown[i], names.shown[k]);
    }
    prn_short_names_free(&names);
}

static void test_different_names_stay_different(void **state)
{
    (void)state;
    add_torchvision();
    set.names[set.count++] = set.names[3]; /* a name that occurs twice */
    for (int columns = 8; columns <= 90; columns++) check_set(columns);
}

static void expect(const char *const *given, size_t count, int columns, const char *const *wanted)
{
    prn_short_names names;
    assert_true(prn_short_names_make(&names, given, count, columns));
    for (size_t i = 0; i < count; i++) assert_string_equal(names.shown[i], wanted[i]);
    prn_short_names_free(&names);
}

static void test_steps(void **state)
{
    (void)state;
    const char *const blocks[] = {"block/block.0/block.0.0/Conv", "block/block.0/block.0.1/Conv",
                                  "block/block.1/block.1.0/Conv"};
    expect(blocks, 3, 30, blocks);
    expect(blocks, 3, 20, (const char *const[]){"block.0.0/Conv", "block.0.1/Conv", "block.1.0/Conv"});
    expect(blocks, 3, 4, (const char *const[]){"0.0", "0.1", "1.0"});
    const char *const middle[] = {"abcdefghijklmnopqrstuvwxyz1abcdefghijklmnopqrstuvwxyz",
                                  "abcdefghijklmnopqrstuvwxyz2abcdefghijklmnopqrstuvwxyz"};
    expect(middle, 2, 20, (const char *const[]){"abcd..wxyz1abc..wxyz", "abcd..wxyz2abc..wxyz"});
    const char *const indented[] = {"  model/body/a/Conv", "    model/body/b/Conv"};
    expect(indented, 2, 10, (const char *const[]){"  a", "    b"});
    const char *const one[] = {"a/long/name/of/one/layer/Conv"};
    expect(one, 1, 14, (const char *const[]){"a/lo..yer/Conv"});
    expect(NULL, 0, 10, NULL);
}

static void test_common_ends_are_reported(void **state)
{
    (void)state;
    const char *const given[] = {"model/encoder/first/MatMul", "model/encoder/second/MatMul"};
    prn_short_names names;
    assert_true(prn_short_names_make(&names, given, 2, 12));
    assert_string_equal(names.shown[0], "first");
    assert_string_equal(names.before, "model/encoder/");
    assert_string_equal(names.after, "/MatMul");
    prn_short_names_free(&names);
}

/* A number where nothing else is left. */
static void test_narrow(void **state)
{
    (void)state;
    const char *const given[] = {"aaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaab", "aaaaaaaaaaaaaaaaaaaaaaa"};
    for (int columns = 4; columns < 30; columns++) {
        SCENARIO(columns);
        set.count = 3;
        memcpy(set.names, given, sizeof given);
        check_set(columns);
    }
}

static void cell_of(const void *user, size_t row, int column, prn_cell *cell)
{
    (void)user;
    cell->string = column ? "1.23 ms of 5.67 ms" : set.names[row];
}

typedef struct page {
    char text[65536];
    size_t size;
} page;

static int page_write(void *user, const char *data, size_t size)
{
    page *p = user;
    assert_true(p->size + size < sizeof p->text);
    memcpy(p->text + p->size, data, size);
    p->size += size;
    p->text[p->size] = '\0';
    return 0;
}

/* Lines of a table at `width`; false: two of them are equal. */
static bool table_has_distinct_rows(int width, bool whole, bool *names_whole)
{
    static page p;
    static char *lines[MOST + 4];
    static const prn_column columns[] = {{"layer", false, false, 5, 10}, {"time", true, false, 0, 0}};
    prn_table table = {.columns = columns, .column_count = 2, .names = 1, .rows = set.count, .cell = cell_of};
    prn_text text;
    size_t count = 0;
    p.size = 0;
    prn_text_begin(&text, width, false, page_write, &p, NULL);
    text.whole_names = whole;
    prn_text_table(&text, &table);
    assert_int_equal(prn_text_end(&text), PRONY_OK);
    *names_whole = strstr(p.text, set.names[0]) != NULL;
    for (char *line = strtok(p.text, "\n"); line && count < MOST + 4; line = strtok(NULL, "\n")) {
        assert_true(whole || prn_text_width(line) <= width);
        for (size_t i = 0; i < count; i++)
            if (strcmp(lines[i], line) == 0) return false;
        lines[count++] = line;
    }
    return count > set.count;
}

static void test_table(void **state)
{
    (void)state;
    bool whole;
    add_torchvision();
    assert_true(table_has_distinct_rows(80, false, &whole));
    assert_true(table_has_distinct_rows(40, false, &whole));
    assert_false(whole);
    assert_true(table_has_distinct_rows(40, true, &whole));
    assert_true(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_different_names_stay_different),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_common_ends_are_reported),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
