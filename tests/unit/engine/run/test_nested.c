/* Rows of subgraphs in the report: their positions, executions and sums, which equal their parents'. Counting them
 * takes no memory and changes nothing else. */
#include "failure_trace.h"
#include "tests/support/nested_model.h"

#include "profiler/report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LAYER = PRONY_LEVEL_LAYER, OPERATOR = PRONY_LEVEL_OPERATOR };

/* The model's own row of this name. */
static const prony_operator_row *own_operator(const prony_report *report, const char *name)
{
    size_t count;
    const prony_operator_row *rows = prony_report_operators(report, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    fail_msg("no operator '%s'", name);
    return NULL;
}

static const prony_layer_row *own_layer(const prony_report *report, const char *name)
{
    size_t count;
    const prony_layer_row *rows = prony_report_layers(report, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    fail_msg("no layer '%s'", name);
    return NULL;
}

static void expect_row(const prony_report *report, const char *name, const char *path, uint32_t depth,
                       uint64_t executions)
{
    const prony_nested_row *layer = nested_row(report, LAYER, name);
    assert_string_equal(layer->path, path);
    assert_int_equal(layer->depth, depth);
    assert_true(layer->executed);
    assert_int_equal(layer->executions, executions);
    assert_int_equal(layer->owner, own_layer(report, "/outer")->index);
    if (layer->operator_index == PRONY_NO_INDEX) return;
    size_t count;
    const prony_nested_row *operators = prony_report_nested(report, OPERATOR, &count);
    assert_true(layer->operator_index < count);
    const prony_nested_row *row = &operators[layer->operator_index];
    assert_string_equal(row->path, path);
    assert_int_equal(row->depth, depth);
    assert_int_equal(row->executions, executions);
    assert_int_equal(row->owner, own_operator(report, "/outer")->index);
    assert_true(*row->kernel && *row->backend);
    assert_string_equal(layer->kernel, row->kernel);
}

#define THEN "/outer > then_branch"
#define BODY THEN " > /loop > body"

static void rows_stand_where_they_are(void **state)
{
    (void)state;
    model_run r = {0};
    nested_open(&r, true, 10);
    prony_report *report = nested_profile(&r, 3);
    expect_row(report, "/loop", THEN, 1, 1);
    expect_row(report, "/loop/Less", BODY, 2, 10);
    expect_row(report, "/loop/NonZero", BODY, 2, 10);
    expect_row(report, "/inner", BODY, 2, 10);
    expect_row(report, "/inner/MatMul", BODY " > /inner > then_branch", 3, 3);
    expect_row(report, "/inner/Relu", BODY " > /inner > then_branch", 3, 3);
    expect_row(report, "/inner/Abs", BODY " > /inner > else_branch", 3, 7);
    expect_row(report, "/calm/Tanh", "/outer > else_branch", 1, 0);
    size_t count;
    const prony_nested_row *rows = prony_report_nested(report, LAYER, &count);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        assert_int_equal(rows[i].index, i);
        assert_true(rows[i].parent == PRONY_NO_INDEX
                        ? rows[i].depth == 1
                        : rows[i].parent < i && rows[rows[i].parent].depth + 1 == rows[i].depth);
        assert_true(rows[i].sources || rows[i].input_count == 0);
    }
    const prony_nested_row *relu = nested_row(report, LAYER, "/inner/Relu");
    assert_int_equal(relu->sources[0], nested_row(report, LAYER, "/inner/MatMul")->index);
    assert_int_equal(nested_row(report, LAYER, "/inner/MatMul")->sources[0], PRONY_NO_INDEX); /* captured */
    assert_string_equal(relu->module, "inner");
    assert_true(nested_row(report, LAYER, "/loop/NonZero")->dynamic);
    assert_null(prony_report_nested(report, PRONY_LEVEL_MODEL, &count));
    assert_int_equal(count, 0);
    prony_report_release(report);
    mr_close(&r);
}

/* Every parent has the sum of its rows, at every level; layers also to the byte. */
static void expect_sums(const prony_report *report)
{
    const prony_operator_row *outer = own_operator(report, "/outer");
    const prony_layer_row *outer_layer = own_layer(report, "/outer");
    prony_cost sum = nested_sum(report, OPERATOR, outer->index, PRONY_NO_INDEX);
    nested_expect_counts(&outer->cost, &sum);
    sum = nested_sum(report, LAYER, outer_layer->index, PRONY_NO_INDEX);
    nested_expect_counts(&outer_layer->cost, &sum);
    assert_int_equal(sum.bytes_read, outer_layer->cost.bytes_read);
    assert_int_equal(sum.bytes_written, outer_layer->cost.bytes_written);
    for (unsigned level = LAYER; level <= OPERATOR; level <<= 1) {
        for (const char *const *name = (const char *const[]){"/loop", "/inner", NULL}; *name; name++) {
            const prony_nested_row *row = nested_row(report, level, *name);
            sum = nested_sum(report, level, row->owner, row->index);
            nested_expect_counts(&row->cost, &sum);
            if (level == LAYER) assert_int_equal(sum.bytes_read, row->cost.bytes_read);
        }
    }
    assert_true(report->conserved);
}

static void sums_are_their_parents(void **state)
{
    (void)state;
    model_run r = {0};
    nested_open(&r, true, 10);
    prony_report *report = nested_profile(&r, 3);
    expect_sums(report);
    assert_int_equal(nested_row(report, LAYER, "/inner/MatMul")->cost.macs, 3 * 4 * 8 * 8);
    assert_int_equal(nested_row(report, LAYER, "/inner/Abs")->cost.flops, 7 * 32);
    assert_int_equal(nested_row(report, LAYER, "/calm/Tanh")->cost.flops, 0);
    /* Totals have the outer If once. */
    const prony_totals *totals = prony_report_totals(report);
    assert_int_equal(totals->cost.macs, 3 * 4 * 8 * 8);
    assert_int_equal(totals->cost.flops,
                     own_layer(report, "/outer")->cost.flops + own_layer(report, "/begin")->cost.flops);
    assert_int_equal(totals->layers, 2);
    assert_int_equal(totals->operators, 2);
    prony_report_release(report);
    nested_set(&r, false, 10); /* the other branch, of the same plan */
    report = nested_profile(&r, 2);
    prony_cost sum = nested_sum(report, OPERATOR, own_operator(report, "/outer")->index, PRONY_NO_INDEX);
    nested_expect_counts(&own_operator(report, "/outer")->cost, &sum);
    assert_int_equal(nested_row(report, LAYER, "/calm/Tanh")->executions, 1);
    assert_int_equal(nested_row(report, LAYER, "/inner/MatMul")->executions, 0);
    assert_int_equal(nested_row(report, OPERATOR, "/loop/NonZero")->time.max_ns, 0);
    prony_report_release(report);
    mr_close(&r);
}

/* Nested rows take a share of their row's time. */
static void times_fit_into_their_parents(void **state)
{
    (void)state;
    model_run r = {0};
    nested_open(&r, true, 20);
    prony_report *report = nested_profile(&r, 5);
    size_t count;
    const prony_nested_row *rows = prony_report_nested(report, OPERATOR, &count);
    int64_t owners_rest = own_operator(report, "/outer")->time.min_ns;
    assert_true(own_operator(report, "/outer")->time.mean_ns > 0);
    int64_t *rest = calloc(count, sizeof *rest);
    assert_non_null(rest);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        assert_true(rows[i].measured);
        assert_true((rows[i].executions > 0) == rows[i].traced);
        rest[i] = rows[i].trace_ns;
        if (rows[i].parent != PRONY_NO_INDEX) rest[rows[i].parent] -= rows[i].trace_ns;
        if (rows[i].executions == 1)
            assert_true(rows[i].trace_start_ns >= own_operator(report, "/outer")->trace_start_ns);
    }
    for (size_t i = 0; i < count; i++) assert_true(rest[i] >= 0);
    assert_true(nested_row(report, OPERATOR, "/loop")->time.min_ns <= owners_rest);
    /* Layers of one operator share its time. */
    const prony_nested_row *relu = nested_row(report, LAYER, "/inner/Relu");
    int64_t together = 0;
    for (size_t k = 0; k < rows[relu->operator_index].layer_count; k++)
        together += report->nested_layers[rows[relu->operator_index].layers[k]].time.mean_ns;
    assert_int_equal(together, rows[relu->operator_index].time.mean_ns);
    free(rest);
    prony_report_release(report);
    mr_close(&r);
}

/* Rows without stamps: counts alone. */
static void without_stamps_there_are_counts(void **state)
{
    (void)state;
    model_run r = {.options = {.no_profile = true}};
    nested_open(&r, true, 10);
    prony_report *report = nested_profile(&r, 2);
    expect_sums(report);
    const prony_nested_row *row = nested_row(report, OPERATOR, "/inner/Abs");
    assert_int_equal(row->executions, 7);
    assert_false(row->measured);
    assert_false(row->traced);
    prony_report_release(report);
    mr_close(&r);
}

static void inspect_has_one_execution_of_each(void **state)
{
    (void)state;
    model_run r = {0};
    prony_report *report = NULL;
    size_t count;
    nested_open(&r, true, 10);
    assert_int_equal(prony_inspect(&report, r.model, NULL, &r.error), PRONY_OK);
    const prony_nested_row *matmul = nested_row(report, LAYER, "/inner/MatMul");
    assert_false(matmul->executed);
    assert_false(matmul->measured);
    assert_int_equal(matmul->cost.macs, 4 * 8 * 8);
    assert_string_equal(matmul->path, BODY " > /inner > then_branch");
    assert_string_equal(matmul->kernel, "");
    assert_null(prony_report_nested(report, OPERATOR, &count));
    /* One trip is the Loop; of an If it is the larger branch. */
    const prony_nested_row *loop = nested_row(report, LAYER, "/loop");
    prony_cost sum = nested_sum(report, LAYER, loop->owner, loop->index);
    nested_expect_counts(&loop->cost, &sum);
    assert_int_equal(own_layer(report, "/outer")->cost.macs, loop->cost.macs);
    prony_report_release(report);
    mr_close(&r);
}

/* x += 1, n times. */
static model_builder *long_loop(void)
{
    static const float one[2] = {1, 1};
    model_builder *m = mb_begin(16);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_initializer(m, "one", PRONY_FLOAT32, "2", one);
    mb_node(m, "Loop", "n ? x", "y", "");
    mb_node_name(m, "loop");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "on", PRONY_BOOL, "");
    mb_input(m, "before", PRONY_FLOAT32, "2");
    mb_node(m, "Add", "before one", "after", "");
    mb_node_name(m, "add");
    mb_output(m, "on", PRONY_BOOL, "");
    mb_output(m, "after", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "2");
    return m;
}

static void many_trips_take_no_memory(void **state)
{
    (void)state;
    static const int64_t counts[2] = {10, 100000};
    static const float x[2] = {0, 0};
    uint64_t heap_calls[2];
    size_t rows[2];
    for (int k = 0; k < 2; k++) {
        SCENARIO(k);
        model_run r = {0};
        mr_open(&r, long_loop());
        mr_set(&r, "n", PRONY_INT64, "", &counts[k]);
        mr_set(&r, "x", PRONY_FLOAT32, "2", x);
        prony_report *report = nested_profile(&r, 2);
        const prony_nested_row *add = nested_row(report, OPERATOR, "add");
        assert_int_equal(add->executions, counts[k]);
        assert_int_equal(add->cost.flops, 2 * counts[k]);
        assert_int_equal(prony_report_totals(report)->cost.flops, 2 * counts[k]);
        heap_calls[k] = prony_report_memory(report)->heap_calls_per_run;
        (void)prony_report_nested(report, OPERATOR, &rows[k]);
        assert_int_equal(report->dropped_events, 0);
        prony_report_release(report);
        mr_close(&r);
    }
    assert_int_equal(heap_calls[0], heap_calls[1]);
    assert_int_equal(rows[0], rows[1]);
}

/* Two parallel Ifs: each counts its own, on any worker. */
static model_builder *two_ifs(void)
{
    model_builder *m = mb_begin(16);
    mb_input(m, "a", PRONY_BOOL, "");
    mb_input(m, "b", PRONY_BOOL, "");
    mb_input(m, "x", PRONY_FLOAT32, "64");
    for (int k = 0; k < 2; k++) {
        mb_node(m, "If", k ? "b" : "a", k ? "right" : "left", "");
        mb_node_name(m, k ? "Right" : "Left");
        for (int branch = 0; branch < 2; branch++) {
            mb_graph_begin(m, branch ? "else_branch" : "then_branch");
            mb_node(m, branch ? "Neg" : "Exp", "x", branch ? "n" : "e", "");
            mb_node_name(m, k ? branch ? "right_neg" : "right_exp" : branch ? "left_neg" : "left_exp");
            mb_output(m, branch ? "n" : "e", PRONY_FLOAT32, "64");
            mb_graph_end(m);
        }
    }
    mb_node(m, "Add", "left right", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "64");
    return m;
}

static void workers_count_alike(void **state)
{
    (void)state;
    static const uint8_t yes = 1, no = 0;
    static const float x[64] = {0.25f};
    for (int workers = 1; workers <= 2; workers++) {
        SCENARIO(workers);
        model_run r = {.options = {.inter_op_threads = workers, .intra_op_threads = 1}};
        mr_open(&r, two_ifs());
        mr_set(&r, "a", PRONY_BOOL, "", &yes);
        mr_set(&r, "b", PRONY_BOOL, "", &no);
        mr_set(&r, "x", PRONY_FLOAT32, "64", x);
        prony_report *report = nested_profile(&r, 20);
        assert_true(report->conserved);
        assert_int_equal(nested_row(report, OPERATOR, "left_exp")->executions, 1);
        assert_int_equal(nested_row(report, OPERATOR, "left_neg")->executions, 0);
        assert_int_equal(nested_row(report, OPERATOR, "right_exp")->executions, 0);
        assert_int_equal(nested_row(report, OPERATOR, "right_neg")->executions, 1);
        assert_int_equal(nested_row(report, OPERATOR, "right_neg")->cost.flops, 64);
        assert_true(nested_row(report, OPERATOR, "left_exp")->owner !=
                    nested_row(report, OPERATOR, "right_neg")->owner);
        prony_report_release(report);
        mr_close(&r);
    }
}

/* Sessions of one model have plans, and so counts, of their own. */
static void sessions_count_for_themselves(void **state)
{
    (void)state;
    model_run first = {0};
    nested_open(&first, true, 5);
    model_run second = {.model = first.model};
    assert_int_equal(prony_session_create(&second.session, first.model, NULL, &second.error), PRONY_OK);
    nested_set(&second, false, 5);
    prony_session *both[2] = {first.session, second.session};
    prony_report *reports[2] = {NULL, NULL};
    prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
    profile.runs = 6;
    profile.warmup_runs = 1;
    if (prony_profile_interleaved(reports, both, 2, &profile, &first.error) != PRONY_OK)
        fail_msg("%s", first.error.message);
    assert_int_equal(nested_row(reports[0], LAYER, "/loop/Add")->executions, 5);
    assert_int_equal(nested_row(reports[1], LAYER, "/loop/Add")->executions, 0);
    assert_int_equal(nested_row(reports[0], LAYER, "/calm/Neg")->executions, 0);
    assert_int_equal(nested_row(reports[1], LAYER, "/calm/Neg")->executions, 1);
    for (int k = 0; k < 2; k++) prony_report_release(reports[k]);
    prony_session_release(second.session);
    mr_close(&first);
}

static void scan_and_sequence_map_have_rows(void **state)
{
    (void)state;
    static const float x[6] = {1, 2, 3, 4, 5, 6}, start[2] = {0, 0};
    model_builder *m = mb_begin(17);
    mb_input(m, "start", PRONY_FLOAT32, "2");
    mb_input(m, "x", PRONY_FLOAT32, "3,2");
    mb_node(m, "Scan", "start x", "last all", "num_scan_inputs=1");
    mb_node_name(m, "scan");
    mb_graph_begin(m, "body");
    mb_input(m, "sum", PRONY_FLOAT32, "2");
    mb_input(m, "row", PRONY_FLOAT32, "2");
    mb_node(m, "Add", "sum row", "next", "");
    mb_node_name(m, "scan_add");
    mb_node(m, "Neg", "next", "negative", "");
    mb_node_name(m, "scan_neg");
    mb_output(m, "next", PRONY_FLOAT32, "2");
    mb_output(m, "negative", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_node(m, "SplitToSequence", "all", "rows", "axis=0");
    mb_node(m, "SequenceMap", "rows", "mapped", "");
    mb_node_name(m, "map");
    mb_graph_begin(m, "body");
    mb_input(m, "one", PRONY_FLOAT32, NULL);
    mb_node(m, "Abs", "one", "size", "");
    mb_node_name(m, "map_abs");
    mb_output(m, "size", PRONY_FLOAT32, NULL);
    mb_graph_end(m);
    mb_node(m, "ConcatFromSequence", "mapped", "y", "axis=0");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "start", PRONY_FLOAT32, "2", start);
    mr_set(&r, "x", PRONY_FLOAT32, "3,2", x);
    prony_report *report = nested_profile(&r, 2);
    assert_true(report->conserved);
    assert_int_equal(nested_row(report, LAYER, "scan_neg")->executions, 3);
    assert_int_equal(nested_row(report, LAYER, "scan_neg")->cost.flops, 6);
    assert_int_equal(nested_row(report, LAYER, "map_abs")->executions, 3);
    assert_int_equal(nested_row(report, LAYER, "map_abs")->cost.flops, 6);
    assert_string_equal(nested_row(report, LAYER, "map_abs")->path, "map > body");
    assert_int_equal(own_layer(report, "map")->cost.flops, 6);
    prony_report_release(report);
    mr_close(&r);
}

/* An operator that computes beside its subgraph: the remainder of its cost is its own. */
static void an_operator_has_work_of_its_own(void **state)
{
    (void)state;
    static const float q[2] = {1, 2}, half = 0.5f;
    for (int open = 0; open < 2; open++) { /* a shape that only a run knows, and one that is known */
        const char *extent = open ? "1,1,L,1" : "1,1,2,1";
        model_builder *m = mb_begin(21);
        mb_opset(m, "ai.onnx.preview", 1);
        mb_input(m, "q", PRONY_FLOAT32, extent);
        mb_initializer(m, "half", PRONY_FLOAT32, "", &half);
        mb_node(m, "ai.onnx.preview::FlexAttention", "q q q", "y", "scale=1.0");
        mb_node_name(m, "attention");
        mb_graph_begin(m, "prob_mod");
        mb_input(m, "weights", PRONY_FLOAT32, "B,H,L,S");
        mb_node(m, "Mul", "weights half", "less", "");
        mb_node_name(m, "halve");
        mb_output(m, "less", PRONY_FLOAT32, "B,H,L,S");
        mb_graph_end(m);
        mb_output(m, "y", PRONY_FLOAT32, extent);
        model_run r = {0};
        mr_open(&r, m);
        mr_set(&r, "q", PRONY_FLOAT32, "1,1,2,1", q);
        prony_report *report = nested_profile(&r, 2);
        assert_true(report->conserved);
        assert_int_equal(nested_row(report, LAYER, "halve")->executions, 1);
        assert_string_equal(nested_row(report, LAYER, "halve")->path, "attention > prob_mod");
        assert_int_equal(nested_row(report, LAYER, "halve")->cost.flops, 4);
        assert_int_equal(own_layer(report, "attention")->cost.flops,
                         16 + 4 * 6 - 2 * 2 + 4); /* as test_control_flow.c has it */
        assert_int_equal(own_layer(report, "attention")->cost.macs, 8);
        prony_report_release(report);
        mr_close(&r);
    }
}

/* Reports are requested while allocations fail: each call returns a status, and nothing is lost. */
static void profiling_survives_faults(void **state)
{
    (void)state;
    model_run r = {0};
    nested_open(&r, true, 5);
    (void)mr_run(&r, 0);
    for (uint64_t n = 1;; n++) {
        prony_report *report = NULL;
        prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
        prony_error error = {0};
        profile.runs = 2;
        profile.warmup_runs = 0;
        prn_alloc_fail_at(n);
        prony_status status = prony_session_profile(&report, r.session, &profile, &error);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        prony_report_release(report);
        if (!failed) {
            assert_int_equal(status, PRONY_OK);
            break;
        }
        if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY) fail_msg("%d: %s", (int)status, error.message);
    }
    mr_close(&r);
}

/* Two NonZero of one value, outside and in a body, become one operator each; either layer has what the operator
 * read. */
static void what_is_written_twice_is_counted_twice(void **state)
{
    (void)state;
    static const int64_t trips = 5;
    static float x[32];
    for (int i = 0; i < 32; i++) x[i] = (float)(i % 3);
    model_builder *m = mb_begin(16);
    mb_input(m, "trips", PRONY_INT64, "");
    mb_input(m, "x", PRONY_FLOAT32, "4,8");
    for (int k = 0; k < 2; k++) {
        mb_node(m, "NonZero", "x", k ? "b" : "a", "");
        mb_node_name(m, k ? "/second" : "/first");
    }
    mb_node(m, "Concat", "a b", "y", "axis=0");
    mb_node(m, "Loop", "trips ? x", "last sizes", "");
    mb_node_name(m, "/loop");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "on", PRONY_BOOL, "");
    mb_input(m, "carried", PRONY_FLOAT32, "4,8");
    mb_node(m, "Identity", "on", "still", "");
    for (int k = 0; k < 2; k++) {
        mb_node(m, "NonZero", "carried", k ? "d" : "c", "");
        mb_node_name(m, k ? "/loop/second" : "/loop/first");
    }
    mb_node(m, "Concat", "c d", "places", "axis=1");
    mb_node(m, "Shape", "places", "size", "");
    mb_node(m, "Abs", "carried", "next", "");
    mb_output(m, "still", PRONY_BOOL, "");
    mb_output(m, "next", PRONY_FLOAT32, "4,8");
    mb_output(m, "size", PRONY_INT64, "2");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_INT64, "4,n");
    mb_output(m, "last", PRONY_FLOAT32, "4,8");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "trips", PRONY_INT64, "", &trips);
    mr_set(&r, "x", PRONY_FLOAT32, "4,8", x);
    prony_report *report = nested_profile(&r, 2);

    const prony_operator_row *outside = own_operator(report, "/first");
    assert_int_equal(outside->layer_count, 2);
    assert_int_equal(outside->cost.bytes_read, sizeof x);
    assert_int_equal(own_layer(report, "/first")->operator_index, outside->index);
    assert_int_equal(own_layer(report, "/second")->operator_index, outside->index);
    assert_int_equal(own_layer(report, "/first")->cost.bytes_read, sizeof x);
    assert_int_equal(own_layer(report, "/second")->cost.bytes_read, sizeof x);
    const prony_nested_row *inside = nested_row(report, OPERATOR, "/loop/first");
    assert_int_equal(inside->layer_count, 2);
    assert_int_equal(inside->cost.bytes_read, trips * (int64_t)sizeof x);
    assert_int_equal(nested_row(report, LAYER, "/loop/first")->cost.bytes_read, trips * (int64_t)sizeof x);
    assert_int_equal(nested_row(report, LAYER, "/loop/second")->cost.bytes_read, trips * (int64_t)sizeof x);
    assert_true(report->conserved);
    prony_report_release(report);
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stand_where_they_are),
        cmocka_unit_test(sums_are_their_parents),
        cmocka_unit_test(times_fit_into_their_parents),
        cmocka_unit_test(without_stamps_there_are_counts),
        cmocka_unit_test(inspect_has_one_execution_of_each),
        cmocka_unit_test(many_trips_take_no_memory),
        cmocka_unit_test(workers_count_alike),
        cmocka_unit_test(sessions_count_for_themselves),
        cmocka_unit_test(scan_and_sequence_map_have_rows),
        cmocka_unit_test(an_operator_has_work_of_its_own),
        cmocka_unit_test(profiling_survives_faults),
        cmocka_unit_test(what_is_written_twice_is_counted_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
