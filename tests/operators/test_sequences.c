/* Sequences and optionals in whole models: as inputs and outputs, through every operator on them, in branches and
 * loops. */
#include "failure_trace.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const float a[2] = {1, 2}, b[3] = {3, 4, 5}, c[1] = {6};

static prony_value tensor(const char *dims, const float *data)
{
    return (prony_value){.dtype = PRONY_FLOAT32, .shape = mr_shape(dims), .data = (void *)(uintptr_t)data};
}

static prony_value container(prony_kind kind, prony_value *items, size_t count)
{
    return (prony_value){.kind = kind, .dtype = PRONY_FLOAT32, .shape = {.rank = -1}, .items = items, .count = count};
}

static void expect_items(const prony_value *got, size_t count, const prony_value *const *wanted)
{
    assert_int_equal(got->kind, PRONY_SEQUENCE);
    assert_int_equal(got->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(got->items[i].shape.rank, wanted[i]->shape.rank);
        assert_int_equal(prony_shape_numel(&got->items[i].shape), prony_shape_numel(&wanted[i]->shape));
        assert_memory_equal(got->items[i].data, wanted[i]->data,
                            (size_t)prony_shape_numel(&wanted[i]->shape) * sizeof(float));
    }
}

/* x, y -> [x, y]; insert z at `place`; erase `gone`; read the element at `at`. */
static model_builder *editing(void)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_input(m, "y", PRONY_FLOAT32, "3");
    mb_input(m, "z", PRONY_FLOAT32, "1");
    mb_input(m, "place", PRONY_INT64, "");
    mb_input(m, "gone", PRONY_INT32, "");
    mb_input(m, "at", PRONY_INT64, "");
    mb_node(m, "SequenceConstruct", "x y", "pair", "");
    mb_node(m, "SequenceInsert", "pair z place", "three", "");
    mb_node(m, "SequenceErase", "three gone", "two", "");
    mb_node(m, "SequenceLength", "two", "length", "");
    mb_node(m, "SequenceAt", "two at", "one", "");
    mb_node(m, "Neg", "one", "n", "");
    mb_container(m, true, "three", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_container(m, true, "two", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_output(m, "length", PRONY_INT64, "");
    mb_output(m, "n", PRONY_FLOAT32, "N");
    return m;
}

static void sequences_are_edited(void **state)
{
    (void)state;
    static const float minus_c[1] = {-6}, minus_b[3] = {-3, -4, -5};
    const prony_value x = tensor("2", a), y = tensor("3", b), z = tensor("1", c);
    const prony_value *three[3] = {&x, &z, &y}, *two[2] = {&z, &y};
    static const int64_t length = 2;
    int64_t place = -1, at = 0;
    int32_t gone = -3;
    model_run r = {0};
    mr_open(&r, editing());
    mr_set(&r, "x", PRONY_FLOAT32, "2", a);
    mr_set(&r, "y", PRONY_FLOAT32, "3", b);
    mr_set(&r, "z", PRONY_FLOAT32, "1", c);
    mr_set(&r, "place", PRONY_INT64, "", &place);
    mr_set(&r, "gone", PRONY_INT32, "", &gone);
    mr_set(&r, "at", PRONY_INT64, "", &at);
    uint64_t live = 0;
    for (int k = 0; k < 4; k++) {
        SCENARIO(k);
        expect_items(mr_run(&r, 0), 3, three);
        expect_items(mr_output(&r, 1), 2, two);
        mr_expect(mr_output(&r, 2), PRONY_INT64, "", &length);
        mr_expect(mr_output(&r, 3), PRONY_FLOAT32, "1", minus_c);
        if (k == 0) live = mr_live_bytes(&r);
        assert_int_equal(mr_live_bytes(&r), live);
    }
    mr_survives_faults(&r);
    at = -1;
    mr_set(&r, "at", PRONY_INT64, "", &at);
    mr_expect(mr_run(&r, 3), PRONY_FLOAT32, "3", minus_b);
    at = 2;
    mr_set(&r, "at", PRONY_INT64, "", &at);
    mr_refused(&r, PRONY_OUT_OF_RANGE, "position 2");
    at = 0;
    gone = 3;
    mr_set(&r, "at", PRONY_INT64, "", &at);
    mr_set(&r, "gone", PRONY_INT32, "", &gone);
    mr_refused(&r, PRONY_OUT_OF_RANGE, "position 3");
    gone = 0;
    place = 3;
    mr_set(&r, "gone", PRONY_INT32, "", &gone);
    mr_set(&r, "place", PRONY_INT64, "", &place);
    mr_refused(&r, PRONY_OUT_OF_RANGE, "position 3");
    place = 2;
    mr_set(&r, "place", PRONY_INT64, "", &place);
    const prony_value *last[2] = {&y, &z};
    expect_items(mr_run(&r, 1), 2, last);
    mr_close(&r);
}

static void inputs_may_be_sequences(void **state)
{
    (void)state;
    static const float joined[6] = {6, 1, 2, 3, 4, 5};
    prony_value items[2] = {tensor("2", a), tensor("3", b)}, sequence = container(PRONY_SEQUENCE, items, 2);
    model_builder *m = mb_begin(13);
    static const int64_t zero = 0;
    mb_container(m, false, "s", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_input(m, "z", PRONY_FLOAT32, "1");
    mb_initializer(m, "zero", PRONY_INT64, "", &zero);
    mb_node(m, "Identity", "s", "same", "");
    mb_node(m, "SequenceInsert", "same z zero", "longer", "");
    mb_node(m, "ConcatFromSequence", "longer", "joined", "axis=0");
    mb_output(m, "joined", PRONY_FLOAT32, "N");
    mb_container(m, true, "s", PRONY_SEQUENCE, PRONY_FLOAT32);
    model_run r = {0};
    mr_open(&r, m);
    mr_set_value(&r, "s", &sequence);
    mr_set(&r, "z", PRONY_FLOAT32, "1", c);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "6", joined);
    assert_int_equal(mr_output(&r, 1)->count, 2);
    mr_survives_faults(&r);
    sequence = container(PRONY_SEQUENCE, items, 0); /* shorter than before, of no type of its own */
    sequence.dtype = PRONY_UNDEFINED;
    mr_set_value(&r, "s", &sequence);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1", c);
    items[0].dtype = PRONY_INT32;
    sequence = container(PRONY_SEQUENCE, items, 2);
    assert_int_equal(prony_session_set_input(r.session, "s", &sequence, &r.error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_session_set_input(r.session, "s", &items[1], &r.error), PRONY_SHAPE_MISMATCH);
    assert_int_equal(prony_session_generate_inputs(r.session, 0, &r.error), PRONY_OK); /* all are set */
    mr_close(&r);
}

static void parts_along_an_axis(void **state)
{
    (void)state;
    static const float x[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const int64_t one = 1, two = 2, uneven[3] = {1, 0, 4}, ones[5] = {1, 1, 1, 1, 1};
    static const float stacked[10] = {0, 5, 1, 6, 2, 7, 3, 8, 4, 9};
    static const char *const dims[5][5] = {{"2,1", "2,0", "2,4"},
                                           {"2,2", "2,2", "2,1"},
                                           {"2", "2", "2", "2", "2"},
                                           {"2", "2", "2", "2", "2"}, /* unbind, as it is exported */
                                           {"2,1", "2,1", "2,1", "2,1", "2,1"}};
    model_builder *m = mb_begin(11);
    mb_input(m, "x", PRONY_FLOAT32, "2,5");
    mb_initializer(m, "one", PRONY_INT64, "", &one);
    mb_initializer(m, "two", PRONY_INT64, "", &two);
    mb_initializer(m, "ones", PRONY_INT64, "5", ones);
    mb_initializer(m, "uneven", PRONY_INT64, "3", uneven);
    mb_node(m, "SplitToSequence", "x uneven", "a", "axis=1");
    mb_node(m, "SplitToSequence", "x two", "b", "axis=-1 keepdims=0");
    mb_node(m, "SplitToSequence", "x", "c", "axis=1 keepdims=0");
    mb_node(m, "SplitToSequence", "x one", "d", "axis=1 keepdims=0");
    mb_node(m, "SplitToSequence", "x ones", "e", "axis=1 keepdims=0");
    mb_node(m, "ConcatFromSequence", "a", "a_again", "axis=1");
    mb_node(m, "ConcatFromSequence", "b", "b_again", "axis=-1");
    mb_node(m, "ConcatFromSequence", "c", "c_stacked", "axis=0 new_axis=1");
    mb_container(m, true, "a", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_container(m, true, "b", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_container(m, true, "c", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_container(m, true, "d", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_container(m, true, "e", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_output(m, "a_again", PRONY_FLOAT32, NULL);
    mb_output(m, "b_again", PRONY_FLOAT32, NULL);
    mb_output(m, "c_stacked", PRONY_FLOAT32, NULL);
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "2,5", x);
    (void)mr_run(&r, 0);
    for (size_t k = 0; k < 5; k++) {
        SCENARIO(k);
        const prony_value *s = mr_output(&r, k);
        assert_int_equal(s->count, k >= 2 ? 5 : 3);
        for (size_t i = 0; i < s->count; i++) {
            prony_shape shape = mr_shape(dims[k][i]);
            assert_int_equal(s->items[i].shape.rank, shape.rank);
            assert_int_equal(prony_shape_numel(&s->items[i].shape), prony_shape_numel(&shape));
        }
    }
    mr_expect(mr_output(&r, 5), PRONY_FLOAT32, "2,5", x);
    mr_expect(mr_output(&r, 6), PRONY_FLOAT32, "2,5", x);
    mr_expect(mr_output(&r, 7), PRONY_FLOAT32, "5,2", stacked);
    mr_survives_faults(&r);
    mr_close(&r);
}

/* A list grown in a loop, and a branch that returns one of two sequences. */
static void sequences_in_loops_and_branches(void **state)
{
    (void)state;
    static const int64_t zero = 0;
    static const float x[3] = {1, 2, 4}, joined[6] = {0, 0, 2, 0, 2, 4};
    static const uint8_t truth[2] = {0, 1};
    model_builder *m = mb_begin(16);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "whole", PRONY_BOOL, "");
    mb_input(m, "x", PRONY_FLOAT32, "3");
    mb_initializer(m, "zero", PRONY_INT64, "1", &zero);
    static const int64_t one = 1;
    mb_initializer(m, "one", PRONY_INT64, "1", &one);
    mb_node(m, "SequenceEmpty", "", "none", "");
    mb_node(m, "Loop", "n ? none", "list", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_container(m, false, "before", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_node(m, "Unsqueeze", "i zero", "end", "");
    mb_node(m, "Add", "end one", "behind", "");
    mb_node(m, "Slice", "x zero behind", "head", "");
    mb_node(m, "Sub", "head x_first", "moved", "");
    mb_node(m, "SequenceInsert", "before moved", "after", "");
    mb_output(m, "go", PRONY_BOOL, "");
    mb_container(m, true, "after", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_graph_end(m);
    mb_node(m, "Slice", "x zero one", "x_first", "");
    mb_node(m, "If", "whole", "chosen", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Identity", "list", "p", "");
    mb_container(m, true, "p", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "SequenceConstruct", "x", "q", "");
    mb_container(m, true, "q", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_graph_end(m);
    mb_node(m, "ConcatFromSequence", "chosen", "y", "axis=0");
    mb_output(m, "y", PRONY_FLOAT32, "N");
    model_run r = {0};
    int64_t n = 3;
    uint64_t live[2] = {0};
    float moved[6];
    for (int i = 0; i < 6; i++) moved[i] = joined[i] > 0 ? joined[i] - 1 : 0;
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3", x);
    mr_set(&r, "n", PRONY_INT64, "", &n);
    for (int k = 0; k < 6; k++) {
        SCENARIO(k);
        mr_set(&r, "whole", PRONY_BOOL, "", &truth[k % 2]);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, k % 2 ? "6" : "3", k % 2 ? moved : x);
        if (k < 2) live[k] = mr_live_bytes(&r);
        assert_int_equal(mr_live_bytes(&r), live[k % 2]);
    }
    mr_survives_faults(&r);
    mr_close(&r);
}

/* ---- sequences that grow and shrink at their end ---- */

enum { MANY = 3000 };

/* `op` with the carried sequence, `rest` behind it, in every one of n trips. */
static void add_loop(model_builder *m, const char *from, const char *to, const char *op, const char *rest)
{
    char inputs[32], outputs[32], before[16], after[16];
    snprintf(inputs, sizeof inputs, "n ? %s", from);
    snprintf(before, sizeof before, "%s_before", to);
    snprintf(after, sizeof after, "%s_after", to);
    mb_node(m, "Loop", inputs, to, "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_container(m, false, before, PRONY_SEQUENCE, PRONY_FLOAT32);
    snprintf(outputs, sizeof outputs, "%s %s", before, rest);
    mb_node(m, op, outputs, after, "");
    mb_output(m, "go", PRONY_BOOL, "");
    mb_container(m, true, after, PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_graph_end(m);
}

/* A run's allocations in the arena are proportional to the trips: copies in each trip would be MANY * MANY / 2
 * items. */
static void growing_and_shrinking_copy_seldom(void **state)
{
    (void)state;
    static const int64_t n = MANY, left = 1;
    model_builder *m = mb_begin(13);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_node(m, "SequenceConstruct", "x", "one", "");
    add_loop(m, "one", "many", "SequenceInsert", "x");
    add_loop(m, "many", "few", "SequenceErase", "");
    mb_node(m, "SequenceLength", "few", "length", "");
    mb_output(m, "length", PRONY_INT64, "");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "n", PRONY_INT64, "", &n);
    mr_set(&r, "x", PRONY_FLOAT32, "2", a);
    for (int k = 0; k < 2; k++) {
        SCENARIO(k);
        mr_expect(mr_run(&r, 0), PRONY_INT64, "", &left);
        assert_true(mr_asked_bytes(&r) < 10 * MANY * sizeof(prony_value));
        assert_true(mr_peak_bytes(&r) < 10 * MANY * sizeof(prony_value));
    }
    mr_close(&r);
}

/* Several sequences grow from one, and from one that became shorter, while others with the same items stay live. */
static void sequences_that_share_items_differ(void **state)
{
    (void)state;
    const prony_value x = tensor("2", a), y = tensor("3", b), z = tensor("1", c);
    const prony_value *wanted[][6] = {
        {&x, &x, &y, &z}, {&x, &x, &y, &x}, {&x, &x, &y, &z, &y}, {&x, &x, &y, &x, &z},
        {&x, &x, &y},     {&x, &x, &y, &y}, {&x, &x, &y, &x, &x}, {&x, &x, &y, &z, &y, &z}};
    static const char *const outputs[] = {"p", "q", "pp", "qq", "pop", "again", "qx", "ppp"};
    static const size_t counts[] = {4, 4, 5, 5, 3, 4, 5, 6};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_input(m, "y", PRONY_FLOAT32, "3");
    mb_input(m, "z", PRONY_FLOAT32, "1");
    mb_node(m, "SequenceConstruct", "x", "s1", "");
    mb_node(m, "SequenceInsert", "s1 x", "s2", "");
    mb_node(m, "SequenceInsert", "s2 y", "s3", "");
    mb_node(m, "SequenceInsert", "s3 z", "p", "");
    mb_node(m, "SequenceInsert", "s3 x", "q", "");
    mb_node(m, "SequenceInsert", "p y", "pp", "");
    mb_node(m, "SequenceInsert", "q z", "qq", "");
    mb_node(m, "SequenceInsert", "q x", "qx", "");
    mb_node(m, "SequenceErase", "p", "pop", "");
    mb_node(m, "SequenceInsert", "pop y", "again", "");
    mb_node(m, "SequenceInsert", "pp z", "ppp", "");
    for (size_t k = 0; k < 8; k++) mb_container(m, true, outputs[k], PRONY_SEQUENCE, PRONY_FLOAT32);
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "2", a);
    mr_set(&r, "y", PRONY_FLOAT32, "3", b);
    mr_set(&r, "z", PRONY_FLOAT32, "1", c);
    uint64_t live = 0;
    for (int k = 0; k < 3; k++) {
        SCENARIO(k);
        for (size_t i = 0; i < 8; i++) expect_items(i ? mr_output(&r, i) : mr_run(&r, 0), counts[i], wanted[i]);
        if (k == 0) live = mr_live_bytes(&r);
        assert_int_equal(mr_live_bytes(&r), live);
    }
    mr_survives_faults(&r);
    mr_close(&r);
}

/* A sequence shrinks and grows again while no other holds its items: items of the longer one alone are released. */
static void the_end_is_replaced(void **state)
{
    (void)state;
    const prony_value x = tensor("2", a), z = tensor("1", c), *wanted[] = {&x, &x, &z};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_input(m, "y", PRONY_FLOAT32, "3");
    mb_input(m, "z", PRONY_FLOAT32, "1");
    mb_node(m, "SequenceConstruct", "x x", "s", "");
    mb_node(m, "SequenceInsert", "s y", "t", "");
    mb_node(m, "SequenceErase", "t", "u", "");
    mb_node(m, "SequenceInsert", "u z", "v", "");
    mb_container(m, true, "v", PRONY_SEQUENCE, PRONY_FLOAT32);
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "2", a);
    mr_set(&r, "y", PRONY_FLOAT32, "3", b);
    mr_set(&r, "z", PRONY_FLOAT32, "1", c);
    for (int k = 0; k < 3; k++) expect_items(mr_run(&r, 0), 3, wanted);
    mr_survives_faults(&r);
    mr_close(&r);
}

static void maps_run_on_every_item(void **state)
{
    (void)state;
    static const float sums[3] = {9, 10, 11}, first[2] = {7, 8};
    prony_value items[2] = {tensor("2", a), tensor("3", b)}, sequence = container(PRONY_SEQUENCE, items, 2);
    model_builder *m = mb_begin(17);
    mb_container(m, false, "s", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_input(m, "z", PRONY_FLOAT32, "1");
    mb_node(m, "SequenceMap", "s z", "t shapes", "");
    mb_graph_begin(m, "body");
    mb_input(m, "item", PRONY_FLOAT32, NULL);
    mb_input(m, "more", PRONY_FLOAT32, "1");
    mb_node(m, "Add", "item more", "sum", "");
    mb_node(m, "Shape", "item", "shape", "");
    mb_output(m, "sum", PRONY_FLOAT32, NULL);
    mb_output(m, "shape", PRONY_INT64, "1");
    mb_graph_end(m);
    mb_container(m, true, "t", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_container(m, true, "shapes", PRONY_SEQUENCE, PRONY_INT64);
    model_run r = {0};
    mr_open(&r, m);
    mr_set_value(&r, "s", &sequence);
    mr_set(&r, "z", PRONY_FLOAT32, "1", c);
    const prony_value *t = mr_run(&r, 0), x = tensor("2", first), y = tensor("3", sums), *wanted[2] = {&x, &y};
    expect_items(t, 2, wanted);
    assert_int_equal(((const int64_t *)mr_output(&r, 1)->items[1].data)[0], 3);
    mr_survives_faults(&r);
    sequence.count = 0;
    mr_set_value(&r, "s", &sequence);
    assert_int_equal(mr_run(&r, 0)->count, 0);
    mr_close(&r);
}

static void optionals_are_there_or_not(void **state)
{
    (void)state;
    static const float minus[2] = {-1, -2}, empty[1] = {0};
    prony_value item = tensor("2", a), full = container(PRONY_OPTIONAL, &item, 1);
    model_builder *m = mb_begin(18);
    mb_container(m, false, "o", PRONY_OPTIONAL, PRONY_FLOAT32);
    mb_node(m, "OptionalHasElement", "o", "there", "");
    mb_node(m, "OptionalHasElement", "", "never", "");
    mb_node(m, "If", "there", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "OptionalGetElement", "o", "value", "");
    mb_node(m, "Neg", "value", "n", "");
    mb_output(m, "n", PRONY_FLOAT32, "K");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Constant", "", "z", "value_floats=[0.0]");
    mb_output(m, "z", PRONY_FLOAT32, "1");
    mb_graph_end(m);
    mb_node(m, "Optional", "y", "wrapped", "");
    mb_node(m, "OptionalGetElement", "wrapped", "again", "");
    mb_output(m, "y", PRONY_FLOAT32, "N");
    mb_output(m, "there", PRONY_BOOL, "");
    mb_output(m, "never", PRONY_BOOL, "");
    mb_container(m, true, "wrapped", PRONY_OPTIONAL, PRONY_FLOAT32);
    mb_output(m, "again", PRONY_FLOAT32, "N");
    model_run r = {0};
    mr_open(&r, m);
    mr_set_value(&r, "o", &full);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", minus);
    mr_expect(&mr_output(&r, 3)->items[0], PRONY_FLOAT32, "2", minus);
    mr_expect(mr_output(&r, 4), PRONY_FLOAT32, "2", minus);
    assert_int_equal(*(const uint8_t *)mr_output(&r, 1)->data, 1);
    assert_int_equal(*(const uint8_t *)mr_output(&r, 2)->data, 0);
    mr_survives_faults(&r);
    full.count = 0;
    mr_set_value(&r, "o", &full);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1", empty);
    mr_set_value(&r, "o", &item); /* what it holds, without its wrapping */
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", minus);
    mr_close(&r);
}

static void what_is_no_tensor_is_kept_from_other_operators(void **state)
{
    (void)state;
    prony_value items[1] = {tensor("2", a)}, sequence = container(PRONY_SEQUENCE, items, 1), none = sequence;
    none.count = 0;
    none.kind = PRONY_OPTIONAL;
    model_builder *m = mb_begin(18);
    mb_container(m, false, "s", PRONY_SEQUENCE, PRONY_FLOAT32);
    mb_node(m, "Relu", "s", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N");
    model_run r = {0};
    mr_open(&r, m);
    mr_set_value(&r, "s", &sequence);
    mr_refused(&r, PRONY_SHAPE_MISMATCH, "is a sequence, wanted a tensor");
    mr_close(&r);
    m = mb_begin(18); /* only the run knows the optional's contents */
    mb_container(m, false, "o", PRONY_OPTIONAL, PRONY_FLOAT32);
    mb_node(m, "OptionalGetElement", "o", "v", "");
    mb_node(m, "Relu", "v", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N");
    mr_open(&r, m);
    prony_value wrapped = container(PRONY_OPTIONAL, &sequence, 1);
    mr_set_value(&r, "o", &wrapped);
    mr_refused(&r, PRONY_SHAPE_MISMATCH, "is a sequence, wanted a tensor");
    mr_set_value(&r, "o", &none);
    mr_refused(&r, PRONY_OUT_OF_RANGE, "empty");
    mr_set_value(&r, "o", &items[0]);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", a);
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_are_edited),
        cmocka_unit_test(inputs_may_be_sequences),
        cmocka_unit_test(parts_along_an_axis),
        cmocka_unit_test(sequences_in_loops_and_branches),
        cmocka_unit_test(growing_and_shrinking_copy_seldom),
        cmocka_unit_test(sequences_that_share_items_differ),
        cmocka_unit_test(the_end_is_replaced),
        cmocka_unit_test(maps_run_on_every_item),
        cmocka_unit_test(optionals_are_there_or_not),
        cmocka_unit_test(what_is_no_tensor_is_kept_from_other_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
