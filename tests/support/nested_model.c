#include "tests/support/nested_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void node(model_builder *m, const char *op, const char *name, const char *inputs, const char *outputs,
                 const char *attributes)
{
    mb_node(m, op, inputs, outputs, attributes);
    mb_node_name(m, name);
}

static void inner_branches(model_builder *m)
{
    mb_graph_begin(m, "then_branch");
    node(m, "MatMul", "/inner/MatMul", "carried w", "product", "");
    node(m, "Relu", "/inner/Relu", "product", "positive", "");
    mb_output(m, "positive", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    node(m, "Abs", "/inner/Abs", "carried", "absolute", "");
    mb_output(m, "absolute", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
}

static void loop_body(model_builder *m)
{
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "on", PRONY_BOOL, "");
    mb_input(m, "carried", PRONY_FLOAT32, "4,8");
    node(m, "Identity", "/loop/Keep", "on", "still", "");
    node(m, "Less", "/loop/Less", "i few", "early", "");
    node(m, "If", "/inner", "early", "made", "");
    inner_branches(m);
    node(m, "NonZero", "/loop/NonZero", "made", "places", "");
    node(m, "Shape", "/loop/Shape", "places", "size", "");
    node(m, "Add", "/loop/Add", "made carried", "next", "");
    mb_output(m, "still", PRONY_BOOL, "");
    mb_output(m, "next", PRONY_FLOAT32, "4,8");
    mb_output(m, "size", PRONY_INT64, "2");
    mb_graph_end(m);
}

model_builder *nested_model(void)
{
    static const int64_t few = 3;
    static float w[64];
    model_builder *m = mb_begin(16);
    for (int i = 0; i < 64; i++) w[i] = (float)(i % 7) * 0.01f;
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "trips", PRONY_INT64, "");
    mb_input(m, "x", PRONY_FLOAT32, "4,8");
    mb_initializer(m, "w", PRONY_FLOAT32, "8,8", w);
    mb_initializer(m, "few", PRONY_INT64, "", &few);
    node(m, "Sqrt", "/begin", "x", "y", "");
    node(m, "If", "/outer", "go", "z", "");
    mb_graph_begin(m, "then_branch");
    node(m, "Loop", "/loop", "trips ? y", "last sizes", "");
    loop_body(m);
    mb_output(m, "last", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    node(m, "Tanh", "/calm/Tanh", "y", "calm", "");
    node(m, "Neg", "/calm/Neg", "calm", "calmer", "");
    mb_output(m, "calmer", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
    mb_output(m, "z", PRONY_FLOAT32, "4,8");
    return m;
}

void nested_set(model_run *r, bool go, int64_t trips)
{
    static float x[32];
    static const uint8_t flags[] = {0, 1};
    static int64_t counts[4];
    static int next;
    int64_t *count = &counts[next++ % 4]; /* stays, as mr_set wants it */
    for (int i = 0; i < 32; i++) x[i] = 0.5f + (float)i * 0.125f;
    *count = trips;
    mr_set(r, "go", PRONY_BOOL, "", &flags[go]);
    mr_set(r, "trips", PRONY_INT64, "", count);
    mr_set(r, "x", PRONY_FLOAT32, "4,8", x);
}

void nested_open(model_run *r, bool go, int64_t trips)
{
    mr_open(r, nested_model());
    nested_set(r, go, trips);
}

prony_report *nested_profile(model_run *r, int64_t runs)
{
    prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
    prony_report *report = NULL;
    profile.runs = runs;
    profile.warmup_runs = 1;
    if (prony_session_profile(&report, r->session, &profile, &r->error) != PRONY_OK) fail_msg("%s", r->error.message);
    return report;
}

const prony_nested_row *nested_row(const prony_report *report, unsigned level, const char *name)
{
    size_t count;
    const prony_nested_row *rows = prony_report_nested(report, level, &count), *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        assert_null(found);
        found = &rows[i];
    }
    if (!found) fail_msg("no row '%s'", name);
    return found;
}

prony_cost nested_sum(const prony_report *report, unsigned level, uint32_t owner, uint32_t parent)
{
    prony_cost sum = {0};
    size_t count;
    const prony_nested_row *rows = prony_report_nested(report, level, &count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].owner != owner || rows[i].parent != parent) continue;
        sum.macs += rows[i].cost.macs;
        sum.madds += rows[i].cost.madds;
        sum.flops += rows[i].cost.flops;
        sum.special += rows[i].cost.special;
        sum.int_ops += rows[i].cost.int_ops;
        sum.bytes_read += rows[i].cost.bytes_read;
        sum.bytes_written += rows[i].cost.bytes_written;
    }
    return sum;
}

void nested_expect_counts(const prony_cost *a, const prony_cost *b)
{
    assert_int_equal(a->macs, b->macs);
    assert_int_equal(a->madds, b->madds);
    assert_int_equal(a->flops, b->flops);
    assert_int_equal(a->special, b->special);
    assert_int_equal(a->int_ops, b->int_ops);
}
