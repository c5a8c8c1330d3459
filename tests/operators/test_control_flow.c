/* Loop, Scan and If in whole models: results, shapes that change from trip to trip, memory released, costs of the
 * executed nodes, limits. */
#include "failure_trace.h"
#include "tests/support/model_run.h"
#include "prony_report.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t yes = 1, no = 0;

/* ---- Loop ---- */

/* total += x, n times; every total is kept. `condition` is the body's: "same" or "small". */
static model_builder *sums(const char *condition)
{
    model_builder *m = mb_begin(16);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_input(m, "limit", PRONY_FLOAT32, "");
    mb_node(m, "Loop", "n go x", "total all", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go_in", PRONY_BOOL, "");
    mb_input(m, "sum", PRONY_FLOAT32, "2");
    mb_node(m, "Add", "sum x", "next", "");
    mb_node(m, "ReduceMax", "next", "most", "keepdims=0");
    mb_node(m, "Less", "most limit", "small", "");
    mb_node(m, "Identity", "go_in", "same", "");
    mb_node(m, "Identity", "next", "kept", "");
    mb_output(m, condition, PRONY_BOOL, "");
    mb_output(m, "next", PRONY_FLOAT32, "2");
    mb_output(m, "kept", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_output(m, "total", PRONY_FLOAT32, "2");
    mb_output(m, "all", PRONY_FLOAT32, "T,2");
    return m;
}

static void set_sums(model_run *r, const int64_t *n, const uint8_t *go, const float *x, const float *limit)
{
    mr_set(r, "n", PRONY_INT64, "", n);
    mr_set(r, "go", PRONY_BOOL, "", go);
    mr_set(r, "x", PRONY_FLOAT32, "2", x);
    mr_set(r, "limit", PRONY_FLOAT32, "", limit);
}

static void loop_counts_stops_and_keeps(void **state)
{
    (void)state;
    static const float x[2] = {1, 2}, limit = 7, total[2] = {4, 8}, all[6] = {2, 4, 3, 6, 4, 8}, none[1] = {0};
    int64_t n = 3;
    model_run r = {0};
    mr_open(&r, sums("same"));
    set_sums(&r, &n, &yes, x, &limit);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", total);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "3,2", all);
    set_sums(&r, &n, &no, x, &limit); /* no trip at all */
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", x);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "0,2", none);
    n = 0;
    set_sums(&r, &n, &yes, x, &limit);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", x);
    n = 3;
    set_sums(&r, &n, &yes, x, &limit);
    mr_survives_faults(&r);
    mr_close(&r);
    n = 100;
    mr_open(&r, sums("small"));
    set_sums(&r, &n, &yes, x, &limit); /* the third sum is not small any more */
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", total);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "3,2", all);
    mr_close(&r);
}

static void what_was_executed_is_counted(void **state)
{
    (void)state;
    static const float x[2] = {1, 2}, limit = 1e9f;
    model_run r = {0};
    mr_open(&r, sums("small"));
    uint64_t flops[2], bytes[2];
    for (int k = 0; k < 2; k++) {
        SCENARIO(k);
        int64_t n = k == 0 ? 5 : 20;
        set_sums(&r, &n, &yes, x, &limit);
        prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
        profile.runs = 2;
        profile.warmup_runs = 1;
        prony_report *report = NULL;
        if (prony_session_profile(&report, r.session, &profile, &r.error) != PRONY_OK) fail_msg("%s", r.error.message);
        const prony_totals *totals = prony_report_totals(report);
        flops[k] = totals->cost.flops;
        bytes[k] = totals->cost.bytes_read;
        size_t count;
        const prony_operator_row *rows = prony_report_operators(report, &count);
        assert_int_equal(count, 1);
        assert_int_equal(rows[0].cost.flops, flops[k]);
        prony_report_release(report);
    }
    /* per trip: Add 2, ReduceMax 1, Less 1 */
    assert_int_equal(flops[0], 5 * 4);
    assert_int_equal(flops[1], 20 * 4);
    assert_int_equal(bytes[1], 4 * bytes[0]);
    prony_report *report = NULL; /* nothing ran: one trip */
    assert_int_equal(prony_inspect(&report, r.model, NULL, &r.error), PRONY_OK);
    size_t count;
    const prony_layer_row *layers = prony_report_layers(report, &count);
    assert_int_equal(layers[0].cost.flops, 4);
    assert_string_equal(layers[0].cost.facts[0].key, "trips");
    assert_int_equal(layers[0].cost.facts[0].value, 1);
    prony_report_release(report);
    mr_close(&r);
}

static void a_loop_without_end_is_stopped(void **state)
{
    (void)state;
    static const float x[2] = {0, 0}, limit = 1;
    int64_t n = INT64_MAX;
    model_run r = {.options = {.max_loop_trips = 50}};
    mr_open(&r, sums("small"));
    set_sums(&r, &n, &yes, x, &limit);
    mr_refused(&r, PRONY_LIMIT, "50 trips");
    n = 50;
    set_sums(&r, &n, &yes, x, &limit);
    assert_int_equal(mr_run(&r, 1)->shape.dim[0], 50);
    mr_close(&r);
}

/* Trip i appends i to a list, which grows; NonZero of it is sized at run time. */
static model_builder *growing(void)
{
    static const int64_t flat[1] = {-1};
    model_builder *m = mb_begin(16);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "list", PRONY_INT64, "L");
    mb_initializer(m, "flat", PRONY_INT64, "1", flat);
    mb_node(m, "Loop", "n ? list", "longer places", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "before", PRONY_INT64, NULL);
    mb_node(m, "Reshape", "i flat", "item", "");
    mb_node(m, "Concat", "before item", "after", "axis=0");
    mb_node(m, "NonZero", "after", "where", "");
    mb_node(m, "Shape", "where", "size", "");
    mb_output(m, "go", PRONY_BOOL, "");
    mb_output(m, "after", PRONY_INT64, NULL);
    mb_output(m, "size", PRONY_INT64, "2");
    mb_graph_end(m);
    mb_output(m, "longer", PRONY_INT64, "M");
    mb_output(m, "places", PRONY_INT64, "T,2");
    return m;
}

static void carried_values_may_change_shape(void **state)
{
    (void)state;
    static const int64_t list[2] = {7, 8}, longer[5] = {7, 8, 0, 1, 2}, places[6] = {1, 2, 1, 3, 1, 4};
    int64_t n = 3;
    model_run r = {0};
    mr_open(&r, growing());
    mr_set(&r, "n", PRONY_INT64, "", &n);
    mr_set(&r, "list", PRONY_INT64, "2", list);
    mr_expect(mr_run(&r, 0), PRONY_INT64, "5", longer);
    mr_expect(mr_output(&r, 1), PRONY_INT64, "3,2", places);
    mr_survives_faults(&r);
    mr_close(&r);
}

/* A dynamic value per trip must not outlive it: the peak does not depend on the number of trips. */
static void memory_comes_back_after_every_trip_and_run(void **state)
{
    (void)state;
    static const float x[4] = {1, 0, 3, 4};
    model_builder *m = mb_begin(16);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_node(m, "Loop", "n ? x", "y", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "a", PRONY_FLOAT32, "4");
    mb_node(m, "NonZero", "a", "where", "");
    mb_node(m, "Transpose", "where", "index", "perm=[1,0]");
    mb_node(m, "GatherND", "a index", "values", "");
    mb_node(m, "ReduceSum", "values", "sum", "keepdims=0");
    mb_node(m, "Sub", "sum sum", "zero", "");
    mb_node(m, "Add", "a zero", "b", "");
    mb_output(m, "go", PRONY_BOOL, "");
    mb_output(m, "b", PRONY_FLOAT32, "4");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "4");
    model_run r = {0};
    uint64_t live = 0, peak = 0;
    int64_t n = 3;
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", x);
    for (int64_t k = 0; k < 6; k++, n += 50) {
        SCENARIO(k);
        mr_set(&r, "n", PRONY_INT64, "", &n);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", x);
        if (k == 0) {
            live = mr_live_bytes(&r);
            peak = mr_peak_bytes(&r);
        }
        assert_int_equal(mr_live_bytes(&r), live);
        assert_int_equal(mr_peak_bytes(&r), peak);
    }
    mr_survives_faults(&r);
    mr_close(&r);
}

/* A failed run leaves no live value, in whichever trip it failed. */
static void a_failed_trip_is_recovered_from(void **state)
{
    (void)state;
    static const float table[3] = {1, 2, 3}, picked[3] = {1, 2, 3};
    model_builder *m = mb_begin(16);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "table", PRONY_FLOAT32, "K");
    mb_node(m, "Loop", "n ?", "picked", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_node(m, "Gather", "table i", "one", "");
    mb_output(m, "go", PRONY_BOOL, "");
    mb_output(m, "one", PRONY_FLOAT32, "");
    mb_graph_end(m);
    mb_output(m, "picked", PRONY_FLOAT32, "T");
    model_run r = {0};
    int64_t n = 9;
    mr_open(&r, m);
    mr_set(&r, "table", PRONY_FLOAT32, "3", table);
    mr_set(&r, "n", PRONY_INT64, "", &n);
    mr_refused(&r, PRONY_OUT_OF_RANGE, "Gather");
    n = 3;
    mr_set(&r, "n", PRONY_INT64, "", &n);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "3", picked);
    mr_close(&r);
}

/* The body hands its inputs through, crosswise. */
static void carried_values_may_change_places(void **state)
{
    (void)state;
    static const float a[2] = {1, 2}, b[2] = {3, 4};
    model_builder *m = mb_begin(16);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "a", PRONY_FLOAT32, "2");
    mb_input(m, "b", PRONY_FLOAT32, "2");
    mb_node(m, "Loop", "n ? a b", "c d", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "p", PRONY_FLOAT32, "2");
    mb_input(m, "q", PRONY_FLOAT32, "2");
    mb_output(m, "go", PRONY_BOOL, "");
    mb_output(m, "q", PRONY_FLOAT32, "2");
    mb_output(m, "p", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_output(m, "c", PRONY_FLOAT32, "2");
    mb_output(m, "d", PRONY_FLOAT32, "2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "a", PRONY_FLOAT32, "2", a);
    mr_set(&r, "b", PRONY_FLOAT32, "2", b);
    for (int64_t n = 0; n < 5; n++) {
        SCENARIO(n);
        mr_set(&r, "n", PRONY_INT64, "", &n);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", n % 2 ? b : a);
        mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "2", n % 2 ? a : b);
    }
    mr_close(&r);
}

/* With constant trips and condition the planner plans everything: a Loop in a Loop; the inner one captures values of
 * the outer graph. */
static void known_trips_are_planned(void **state)
{
    (void)state;
    static const int64_t three = 3, two = 2;
    static const float x[2] = {1, 10};
    model_builder *m = mb_begin(16);
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_initializer(m, "three", PRONY_INT64, "", &three);
    mb_initializer(m, "two", PRONY_INT64, "", &two);
    mb_initializer(m, "true", PRONY_BOOL, "", &yes);
    mb_node(m, "Loop", "three true x", "last all", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "a", PRONY_FLOAT32, "2");
    mb_node(m, "Add", "a a", "double", "");
    mb_node(m, "Loop", "two true a", "b inner", "");
    mb_graph_begin(m, "body");
    mb_input(m, "j", PRONY_INT64, "");
    mb_input(m, "inner_go", PRONY_BOOL, "");
    mb_input(m, "c", PRONY_FLOAT32, "2");
    mb_node(m, "Add", "c double", "d", "");
    mb_node(m, "Identity", "true", "on", "");
    mb_output(m, "on", PRONY_BOOL, "");
    mb_output(m, "d", PRONY_FLOAT32, "2");
    mb_output(m, "d", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_node(m, "Identity", "true", "still", "");
    mb_node(m, "ReduceSum", "inner", "unused", "keepdims=0");
    mb_node(m, "Add", "b a", "next", "");
    mb_output(m, "still", PRONY_BOOL, "");
    mb_output(m, "next", PRONY_FLOAT32, "2");
    mb_output(m, "inner", PRONY_FLOAT32, "2,2");
    mb_graph_end(m);
    mb_output(m, "last", PRONY_FLOAT32, "2");
    mb_output(m, "all", PRONY_FLOAT32, "3,2,2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "2", x);
    /* a: 1 -> b = 1 + 2 + 2, next = 6; inner sums 3, 5 */
    const prony_value *got = mr_run(&r, 1);
    float a = 1, wanted[12];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 2; j++) {
            wanted[4 * i + 2 * j] = a + (float)(j + 1) * 2 * a;
            wanted[4 * i + 2 * j + 1] = 10 * wanted[4 * i + 2 * j];
        }
        a = wanted[4 * i + 2] + a;
    }
    mr_expect(got, PRONY_FLOAT32, "3,2,2", wanted);
    assert_int_equal(mr_live_bytes(&r), 0); /* the outputs have places in the plan */
    mr_survives_faults(&r);
    mr_close(&r);
}

static void bodies_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const float x[2] = {0};
    model_builder *m = mb_begin(16);
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_node(m, "Loop", "? ? x", "y", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_output(m, "go", PRONY_BOOL, "");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "2", x);
    mr_refused(&r, PRONY_INVALID_MODEL, "carried");
    mr_close(&r);
}

/* ---- If ---- */

/* An If whose condition depends on data in an If whose condition does, too. */
static void branches_that_differ_in_shape(void **state)
{
    (void)state;
    static const float x[3] = {1, -2, 3}, wide[6] = {1, -2, 3, 1, -2, 3}, narrow[2] = {1, 3}, empty[3] = {-1, -2, -3};
    model_builder *m = mb_begin(16);
    static const float zero = 0;
    mb_input(m, "x", PRONY_FLOAT32, "3");
    mb_input(m, "wide", PRONY_BOOL, "");
    mb_initializer(m, "zero", PRONY_FLOAT32, "", &zero);
    mb_node(m, "If", "wide", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Concat", "x x", "a", "axis=0");
    mb_output(m, "a", PRONY_FLOAT32, "6");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Greater", "x zero", "mask", "");
    mb_node(m, "Compress", "x mask", "b", "");
    mb_output(m, "b", PRONY_FLOAT32, "K");
    mb_graph_end(m);
    mb_node(m, "Neg", "y", "n", "");
    mb_node(m, "Neg", "n", "z", "");
    mb_output(m, "z", PRONY_FLOAT32, "N");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3", x);
    uint64_t live = 0;
    for (int k = 0; k < 6; k++) {
        SCENARIO(k);
        mr_set(&r, "x", PRONY_FLOAT32, "3", k > 3 ? empty : x);
        mr_set(&r, "wide", PRONY_BOOL, "", k % 2 ? &no : &yes);
        const prony_value *z = mr_run(&r, 0);
        if (k > 3)
            assert_int_equal(z->shape.dim[0], k % 2 ? 0 : 6);
        else
            mr_expect(z, PRONY_FLOAT32, k % 2 ? "2" : "6", k % 2 ? narrow : wide);
        if (k == 0) live = mr_live_bytes(&r);
        assert_int_equal(mr_live_bytes(&r), live); /* one small block either way */
    }
    mr_survives_faults(&r);
    mr_close(&r);
}

/* One branch is for another rank: its Squeeze, and a Gather from constants, fit no input of this one. */
static void a_branch_that_never_runs_need_not_fit(void **state)
{
    (void)state;
    static const float x[6] = {1, 2, 3, 4, 5, 6}, negative[6] = {-1, -2, -3, -4, -5, -6};
    static const int64_t one = 1, third = 3;
    model_builder *m = mb_begin(16);
    mb_input(m, "x", PRONY_FLOAT32, "3,2");
    mb_input(m, "deep", PRONY_BOOL, "");
    mb_initializer(m, "one", PRONY_INT64, "1", &one);
    mb_initializer(m, "third", PRONY_INT64, "", &third);
    mb_node(m, "If", "deep", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Squeeze", "x one", "flat", "");
    mb_node(m, "Shape", "x", "extents", "");
    mb_node(m, "Gather", "extents third", "extent", "");
    mb_node(m, "Cast", "extent", "scale", "to=1");
    mb_node(m, "Mul", "flat scale", "a", "");
    mb_output(m, "a", PRONY_FLOAT32, "A,B");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Neg", "x", "b", "");
    mb_output(m, "b", PRONY_FLOAT32, "A,B");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "A,B");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3,2", x);
    mr_set(&r, "deep", PRONY_BOOL, "", &no);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "3,2", negative);
    mr_set(&r, "deep", PRONY_BOOL, "", &yes);
    mr_refused(&r, PRONY_SHAPE_MISMATCH, "(Squeeze)");
    mr_set(&r, "deep", PRONY_BOOL, "", &no);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "3,2", negative);
    mr_survives_faults(&r);
    mr_close(&r);
}

/* ---- FlexAttention ---- */

/* One batch, one head, two queries and keys of depth 1. The scores are masked to the lower triangle,
 * the weights halved. */
static model_builder *flexible(const char *extent)
{
    static const float low = -INFINITY, half = 0.5f;
    static const int64_t column[4] = {1, 1, 2, 1}, row[4] = {1, 1, 1, 2}, places[2] = {0, 1};
    model_builder *m = mb_begin(21);
    mb_opset(m, "ai.onnx.preview", 1);
    mb_input(m, "q", PRONY_FLOAT32, extent);
    mb_input(m, "k", PRONY_FLOAT32, extent);
    mb_input(m, "v", PRONY_FLOAT32, extent);
    mb_initializer(m, "places", PRONY_INT64, "2", places);
    mb_initializer(m, "row", PRONY_INT64, "4", row);
    mb_initializer(m, "column", PRONY_INT64, "4", column);
    mb_initializer(m, "low", PRONY_FLOAT32, "", &low);
    mb_initializer(m, "half", PRONY_FLOAT32, "", &half);
    mb_node(m, "ai.onnx.preview::FlexAttention", "q k v", "y", "scale=1.0");
    mb_graph_begin(m, "score_mod");
    mb_input(m, "scores", PRONY_FLOAT32, "B,H,L,S");
    mb_node(m, "Reshape", "places column", "l", "");
    mb_node(m, "Reshape", "places row", "s", "");
    mb_node(m, "GreaterOrEqual", "l s", "seen", "");
    mb_node(m, "Where", "seen scores low", "masked", "");
    mb_output(m, "masked", PRONY_FLOAT32, "B,H,L,S");
    mb_graph_end(m);
    mb_graph_begin(m, "prob_mod");
    mb_input(m, "weights", PRONY_FLOAT32, "B,H,L,S");
    mb_node(m, "Mul", "weights half", "less", "");
    mb_output(m, "less", PRONY_FLOAT32, "B,H,L,S");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, extent);
    return m;
}

static void scores_and_weights_may_be_changed(void **state)
{
    (void)state;
    /* row 0 sees key 0 alone; row 1 has scores ln 3 and 0, so weights 3/4 and 1/4 */
    static const float q[2] = {5, 1.09861229f}, k[2] = {1, 0}, v[2] = {4, 8}, y[2] = {2, 2.5f};
    const char *extents[] = {"1,1,2,1", "1,1,L,1"};
    for (int open = 0; open < 2; open++) {
        SCENARIO(open);
        model_run r = {0};
        mr_open(&r, flexible(extents[open]));
        mr_set(&r, "q", PRONY_FLOAT32, "1,1,2,1", q);
        mr_set(&r, "k", PRONY_FLOAT32, "1,1,2,1", k);
        mr_set(&r, "v", PRONY_FLOAT32, "1,1,2,1", v);
        const prony_value *got = mr_run(&r, 0);
        for (int i = 0; i < 2; i++) assert_float_equal(((const float *)got->data)[i], y[i], 1e-5f);
        prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
        profile.runs = 1;
        prony_report *report = NULL;
        if (prony_session_profile(&report, r.session, &profile, &r.error) != PRONY_OK) fail_msg("%s", r.error.message);
        /* 4 scores of one product and their 4 products with V; softmax 6 a score less 2 a row; 4 halvings */
        assert_int_equal(prony_report_totals(report)->cost.macs, 8);
        assert_int_equal(prony_report_totals(report)->cost.flops, 16 + 4 * 6 - 2 * 2 + 4);
        prony_report_release(report);
        mr_survives_faults(&r);
        mr_close(&r);
    }
}

static void a_mod_of_another_shape_is_refused(void **state)
{
    (void)state;
    static const float one[2] = {1, 1};
    model_run r = {0};
    model_builder *m = mb_begin(21);
    mb_opset(m, "ai.onnx.preview", 1);
    for (int i = 0; i < 3; i++) mb_input(m, (const char *[]){"q", "k", "v"}[i], PRONY_FLOAT32, "1,1,2,1");
    mb_node(m, "ai.onnx.preview::FlexAttention", "q k v", "y", "");
    mb_graph_begin(m, "score_mod");
    mb_input(m, "scores", PRONY_FLOAT32, "B,H,L,S");
    mb_node(m, "ReduceMax", "scores", "most", "");
    mb_output(m, "most", PRONY_FLOAT32, NULL);
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "1,1,2,1");
    mr_open(&r, m);
    for (int i = 0; i < 3; i++) mr_set(&r, (const char *[]){"q", "k", "v"}[i], PRONY_FLOAT32, "1,1,2,1", one);
    mr_refused(&r, PRONY_SHAPE_MISMATCH, "a subgraph makes");
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_counts_stops_and_keeps),
        cmocka_unit_test(what_was_executed_is_counted),
        cmocka_unit_test(a_loop_without_end_is_stopped),
        cmocka_unit_test(carried_values_may_change_shape),
        cmocka_unit_test(memory_comes_back_after_every_trip_and_run),
        cmocka_unit_test(a_failed_trip_is_recovered_from),
        cmocka_unit_test(carried_values_may_change_places),
        cmocka_unit_test(known_trips_are_planned),
        cmocka_unit_test(bodies_that_do_not_fit_are_refused),
        cmocka_unit_test(branches_that_differ_in_shape),
        cmocka_unit_test(scores_and_weights_may_be_changed),
        cmocka_unit_test(a_mod_of_another_shape_is_refused),
        cmocka_unit_test(a_branch_that_never_runs_need_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
