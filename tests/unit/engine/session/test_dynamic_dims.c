/* One plan for the largest of dimensions that change from run to run: the same results as a separate session for
 * each size, one bind and plan, the same fused operators; and models that do not allow it. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "base/shape.h"
#include "engine/bind/dynamic_dims_parts.h"
#include "engine/session/session.h"
#include "tests/support/model_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WIDTH = 8, HEADS = 2, HEAD = WIDTH / HEADS, MOST = 96 };

/* ---- models ---- */

static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 24) - 0.5f;
}

static void weights(model_builder *m, const char *name, const char *dims, size_t count, uint32_t seed)
{
    float *data = malloc(count * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) data[i] = number(&seed);
    mb_initializer(m, name, PRONY_FLOAT32, dims, data);
    free(data);
}

static void scalar(model_builder *m, const char *name, float value)
{
    mb_initializer(m, name, PRONY_FLOAT32, "", &value);
}

static void numbers(model_builder *m, const char *name, const char *dims, const int64_t *values)
{
    mb_initializer(m, name, PRONY_INT64, dims, values);
}

static void heads_of(model_builder *m, const char *weight, const char *out)
{
    char flat[32], apart[32], inputs[96];
    snprintf(flat, sizeof flat, "%s_flat", out);
    snprintf(apart, sizeof apart, "%s_apart", out);
    snprintf(inputs, sizeof inputs, "x %s", weight);
    mb_node(m, "MatMul", inputs, flat, "");
    snprintf(inputs, sizeof inputs, "%s heads_shape", flat);
    mb_node(m, "Reshape", inputs, apart, "");
    mb_node(m, "Transpose", apart, out, "perm=[0,2,1,3]");
}

/* y = x + gelu(layer_norm(attention(x, past and present)) W), as exporters write it: in primitives, with shapes
 * computed. */
static const void *decoder(model_builder *m, size_t *size)
{
    float *mask = malloc(sizeof *mask * 128 * 128);
    assert_non_null(mask);
    for (int i = 0; i < 128 * 128; i++) mask[i] = i % 128 > i / 128 ? -1e9f : 0.0f;
    mb_input(m, "x", PRONY_FLOAT32, "1,1,8");
    mb_input(m, "past_k", PRONY_FLOAT32, "1,2,past,4");
    mb_input(m, "past_v", PRONY_FLOAT32, "1,2,past,4");
    mb_initializer(m, "mask", PRONY_FLOAT32, "1,1,128,128", mask);
    free(mask);
    weights(m, "wq", "8,8", 64, 1);
    weights(m, "wk", "8,8", 64, 2);
    weights(m, "wv", "8,8", 64, 3);
    weights(m, "wo", "8,8", 64, 4);
    numbers(m, "heads_shape", "4", (int64_t[]){0, 0, HEADS, HEAD});
    numbers(m, "zero", "1", (int64_t[]){0});
    numbers(m, "one", "1", (int64_t[]){1});
    numbers(m, "two", "1", (int64_t[]){2});
    numbers(m, "three", "1", (int64_t[]){3});
    numbers(m, "minus", "1", (int64_t[]){-1});
    scalar(m, "half", 0.5f);
    scalar(m, "ones", 1.0f);
    scalar(m, "square", 2.0f);
    scalar(m, "epsilon", 1e-5f);
    scalar(m, "root", 1.41421356f);
    heads_of(m, "wq", "q");
    heads_of(m, "wk", "k");
    heads_of(m, "wv", "v");
    mb_node(m, "Concat", "past_k k", "present_k", "axis=2");
    mb_node(m, "Concat", "past_v v", "present_v", "axis=2");
    mb_node(m, "Transpose", "present_k", "kt", "perm=[0,1,3,2]");
    mb_node(m, "MatMul", "q kt", "products", "");
    mb_node(m, "Shape", "present_k", "k_shape", "");
    mb_node(m, "Gather", "k_shape two", "total", "axis=0");
    mb_node(m, "Gather", "k_shape three", "head", "axis=0"); /* follows from the extents, and is always the same */
    mb_node(m, "Cast", "head", "head_number", "to=1");
    mb_node(m, "Sqrt", "head_number", "head_root", "");
    mb_node(m, "Div", "products head_root", "scores", "");
    mb_node(m, "Sub", "total one", "first_row", "");
    mb_node(m, "Slice", "mask first_row total two", "mask_row", "");
    mb_node(m, "Slice", "mask_row zero total three", "mask_here", "");
    mb_node(m, "Add", "scores mask_here", "masked", "");
    mb_node(m, "Softmax", "masked", "shares", "axis=-1");
    mb_node(m, "MatMul", "shares present_v", "mixed", "");
    mb_node(m, "Transpose", "mixed", "mixed_apart", "perm=[0,2,1,3]");
    mb_node(m, "Shape", "x", "x_shape", "");
    mb_node(m, "Slice", "x_shape zero two zero", "x_rows", "");
    mb_node(m, "Concat", "x_rows minus", "joined_shape", "axis=0");
    mb_node(m, "Reshape", "mixed_apart joined_shape", "joined", "");
    mb_node(m, "ReduceMean", "joined", "mean", "axes=[-1]");
    mb_node(m, "Sub", "joined mean", "deviation", "");
    mb_node(m, "Pow", "deviation square", "squares", "");
    mb_node(m, "ReduceMean", "squares", "variance", "axes=[-1]");
    mb_node(m, "Add", "variance epsilon", "variance_up", "");
    mb_node(m, "Sqrt", "variance_up", "spread", "");
    mb_node(m, "Div", "deviation spread", "normal", "");
    mb_node(m, "MatMul", "normal wo", "out", "");
    mb_node(m, "Div", "out root", "out_scaled", "");
    mb_node(m, "Erf", "out_scaled", "erf", "");
    mb_node(m, "Add", "erf ones", "gate", "");
    mb_node(m, "Mul", "out gate", "gated", "");
    mb_node(m, "Mul", "gated half", "gelu", "");
    mb_node(m, "Add", "x gelu", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,1,8");
    mb_output(m, "present_k", PRONY_FLOAT32, "1,2,total,4");
    mb_output(m, "present_v", PRONY_FLOAT32, "1,2,total,4");
    return mb_finish(m, size);
}

/* Positions by Range, a table cut to length, everything added up: y[rows, 8] of x[rows, 8]. */
static const void *positions(model_builder *m, size_t *size)
{
    mb_input(m, "x", PRONY_FLOAT32, "rows,8");
    weights(m, "table", "128,8", 128 * 8, 5);
    numbers(m, "zero", "", (int64_t[]){0});
    numbers(m, "one", "", (int64_t[]){1});
    mb_node(m, "Shape", "x", "shape", "");
    mb_node(m, "Gather", "shape zero", "rows", "axis=0");
    mb_node(m, "Range", "zero rows one", "place", "");
    mb_node(m, "Gather", "table place", "known", "axis=0");
    mb_node(m, "Add", "x known", "placed", "");
    mb_node(m, "CumSum", "placed zero", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "rows,8");
    return mb_finish(m, size);
}

/* An image of any height, normalised in groups of channels, as tokens and back: y[1, 6, rows, 5] of x[1, 12, rows,
 * 5]. */
static const void *tokens(model_builder *m, size_t *size)
{
    static const float ones[3] = {1.0f, 1.0f, 1.0f}, zeros[3] = {0.0f, 0.0f, 0.0f};
    mb_input(m, "x", PRONY_FLOAT32, "1,12,rows,5");
    weights(m, "w", "12,12,3,3", 12 * 12 * 9, 3);
    weights(m, "v", "12,12", 144, 4);
    weights(m, "u", "6,12,3,3", 6 * 12 * 9, 5);
    mb_initializer(m, "ones", PRONY_FLOAT32, "3", ones);
    mb_initializer(m, "zeros", PRONY_FLOAT32, "3", zeros);
    numbers(m, "groups", "3", (int64_t[]){0, 3, -1});
    numbers(m, "flat", "3", (int64_t[]){1, 12, -1});
    mb_node(m, "Conv", "x w", "c", "pads=[1,1,1,1]");
    mb_node(m, "Shape", "c", "shape", "");
    mb_node(m, "Reshape", "c groups", "g", "");
    mb_node(m, "InstanceNormalization", "g ones zeros", "n", "");
    mb_node(m, "Reshape", "n shape", "d", "");
    mb_node(m, "Reshape", "d flat", "f", "");
    mb_node(m, "Transpose", "f", "t", "perm=[0,2,1]");
    mb_node(m, "MatMul", "t v", "q", "");
    mb_node(m, "Transpose", "q", "r", "perm=[0,2,1]");
    mb_node(m, "Reshape", "r shape", "i", "");
    mb_node(m, "Conv", "i u", "y", "pads=[1,1,1,1]");
    mb_output(m, "y", PRONY_FLOAT32, "1,6,rows,5");
    return mb_finish(m, size);
}

/* Another operator beyond 20 rows: a condition that depends on the size. */
static const void *branches(model_builder *m, size_t *size)
{
    mb_input(m, "x", PRONY_FLOAT32, "rows,8");
    numbers(m, "zero", "", (int64_t[]){0});
    numbers(m, "bound", "", (int64_t[]){20});
    mb_node(m, "Shape", "x", "shape", "");
    mb_node(m, "Gather", "shape zero", "rows", "axis=0");
    mb_node(m, "Greater", "rows bound", "many", "");
    mb_node(m, "If", "many", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Sigmoid", "x", "a", "");
    mb_output(m, "a", PRONY_FLOAT32, "rows,8");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Tanh", "x", "b", "");
    mb_output(m, "b", PRONY_FLOAT32, "rows,8");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "rows,8");
    return mb_finish(m, size);
}

/* Rows in fours: fits multiples alone. */
static const void *fours(model_builder *m, size_t *size)
{
    mb_input(m, "x", PRONY_FLOAT32, "rows,8");
    numbers(m, "shape", "3", (int64_t[]){-1, 4, 8});
    numbers(m, "back", "2", (int64_t[]){-1, 8});
    mb_node(m, "Reshape", "x shape", "apart", "");
    mb_node(m, "Softmax", "apart", "shares", "axis=1");
    mb_node(m, "Reshape", "shares back", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "rows,8");
    return mb_finish(m, size);
}

/* The first 50 rows: all of them, up to there. */
static const void *cut(model_builder *m, size_t *size)
{
    mb_input(m, "x", PRONY_FLOAT32, "rows,8");
    numbers(m, "zero", "1", (int64_t[]){0});
    numbers(m, "end", "1", (int64_t[]){50});
    mb_node(m, "Exp", "x", "e", "");
    mb_node(m, "Slice", "e zero end", "first", "");
    mb_node(m, "Tanh", "first", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "few,8");
    return mb_finish(m, size);
}

/* Layers that are alike but for one: each halves its rows, keeps at most eight of the rest from behind, and repeats a
 * row as often as there are rows squared; no extent but the first is an affine function of the input's. */
static const void *layers(model_builder *m, size_t *size)
{
    enum { LAYERS = 4 };
    numbers(m, "zero", "1", (int64_t[]){0});
    numbers(m, "scalar_zero", "", (int64_t[]){0});
    numbers(m, "one", "1", (int64_t[]){1});
    numbers(m, "two", "1", (int64_t[]){2});
    numbers(m, "behind", "1", (int64_t[]){-8});
    numbers(m, "far", "1", (int64_t[]){INT64_MAX});
    for (int l = 0; l < LAYERS; l++) {
        static const char *const nodes[][4] = {
            {"Shape", "x%d", "shape%d", ""},
            {"Slice", "shape%d zero one", "rows%d", ""},
            {"Div", "rows%d two", "half%d", ""},
            {"Slice", "x%d half%d far zero", "rest%d", ""},
            {"Slice", "rest%d behind far zero", "last%d", ""},
            {"Softmax", "last%d", "shares%d", "axis=0"},
            {"Mul", "rows%d rows%d", "square%d", ""},
            {"Concat", "square%d one", "tall%d", "axis=0"},
            {"ReduceSum", "shares%d", "sum%d", "keepdims=1"},
            {"Expand", "sum%d tall%d", "many%d", ""},
            {"Concat", "last%d many%d", "y%d", "axis=0"},
        };
        char text[2][64];
        snprintf(text[0], sizeof text[0], "x%d", l);
        mb_input(m, text[0], PRONY_FLOAT32, "rows,1");
        for (size_t n = 0; n < sizeof nodes / sizeof *nodes; n++) {
            char inputs[64], outputs[64];
            snprintf(inputs, sizeof inputs, nodes[n][1], l, l);
            snprintf(outputs, sizeof outputs, nodes[n][2], l);
            mb_node(m, nodes[n][0], inputs, outputs, l == 2 && *nodes[n][3] == 'a' && n == 5 ? "axis=1" : nodes[n][3]);
        }
        snprintf(text[1], sizeof text[1], "y%d", l);
        mb_output(m, text[1], PRONY_FLOAT32, "some,1");
    }
    return mb_finish(m, size);
}

/* Two inputs with rows of their own, and the same nodes behind them. */
static const void *twins(model_builder *m, size_t *size)
{
    weights(m, "w", "8,8", 64, 6);
    for (int l = 0; l < 2; l++) {
        mb_input(m, l ? "b" : "a", PRONY_FLOAT32, l ? "right,8" : "left,8");
        mb_node(m, "MatMul", l ? "b w" : "a w", l ? "bw" : "aw", "");
        mb_node(m, "Softmax", l ? "bw" : "aw", l ? "bs" : "as", "axis=0");
        mb_node(m, "Transpose", l ? "bs" : "as", l ? "bt" : "at", "perm=[1,0]");
        mb_output(m, l ? "bt" : "at", PRONY_FLOAT32, l ? "8,right" : "8,left");
    }
    return mb_finish(m, size);
}

typedef const void *(*maker)(model_builder *m, size_t *size);

static prony_model *load(model_builder *m, maker make)
{
    size_t size;
    prony_error error = {0};
    prony_model *model = NULL;
    const void *bytes = make(m, &size);
    if (prony_model_load_memory(&model, "m.onnx", bytes, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    return model;
}

static prony_session *open_session(prony_model *model, const char *dim, int64_t most, bool no_rewrites)
{
    prony_error error = {0};
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    const prony_dim largest = {dim, most};
    options.intra_op_threads = 1;
    options.no_rewrites = no_rewrites;
    options.max_dims = &largest;
    options.max_dim_count = dim != NULL;
    if (prony_session_create(&session, model, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return session;
}

/* Every input with size `extent` for its free dimensions. */
static prony_status set_inputs(prony_session *session, const prony_model *model, int64_t extent, prony_error *error)
{
    for (size_t i = 0; i < prony_model_input_count(model); i++) {
        const prony_value_info *port = prony_model_input(model, i);
        prony_value value = {.dtype = PRONY_FLOAT32, .shape = port->shape};
        uint32_t seed = (uint32_t)(100 * i + 7 + (size_t)extent);
        for (int d = 0; d < value.shape.rank; d++)
            if (value.shape.dim[d] < 0) value.shape.dim[d] = extent;
        const int64_t count = prony_shape_numel(&value.shape);
        float *data = malloc((size_t)count * sizeof *data + 1);
        assert_non_null(data);
        for (int64_t k = 0; k < count; k++) data[k] = number(&seed);
        value.data = data;
        prony_status status = prony_session_set_input(session, port->name, &value, error);
        free(data);
        if (status != PRONY_OK) return status;
    }
    return PRONY_OK;
}

static prony_status run_at(prony_session *session, const prony_model *model, int64_t extent, prony_error *error)
{
    prony_status status = set_inputs(session, model, extent, error);
    return status == PRONY_OK ? prony_session_run(session, error) : status;
}

static void check_same(const prony_session *a, const prony_session *b, const prony_model *model, int64_t extent)
{
    for (size_t k = 0; k < prony_model_output_count(model); k++) {
        const prony_value *one, *other;
        prony_error error = {0};
        assert_int_equal(prony_session_output(a, k, &one, &error), PRONY_OK);
        assert_int_equal(prony_session_output(b, k, &other, &error), PRONY_OK);
        assert_true(prn_shape_equal(&one->shape, &other->shape));
        if (memcmp(one->data, other->data, prn_value_bytes(one)) != 0)
            fail_msg("extent %d, output %zu differs", (int)extent, k);
    }
}

/* Runs at every size of the list, and compares outputs and operators with a separate session. */
static prony_preparations run_all(maker make, const char *dim, int64_t most, const int64_t *extents, bool no_rewrites)
{
    prony_error error = {0};
    model_builder *m = mb_begin(12);
    prony_model *model = load(m, make);
    prony_session *session = open_session(model, dim, most, no_rewrites);
    for (; *extents; extents++) {
        prony_session *fresh = open_session(model, NULL, 0, no_rewrites);
        if (run_at(session, model, *extents, &error) != PRONY_OK || run_at(fresh, model, *extents, &error) != PRONY_OK)
            fail_msg("extent %d: %s", (int)*extents, error.message);
        check_same(session, fresh, model, *extents);
        prony_session_release(fresh);
    }
    const prony_preparations made = prony_session_preparations(session);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
    return made;
}

/* ---- tests ---- */

static void test_cache_grows(void **state)
{
    (void)state;
    static const int64_t extents[] = {3, 4, 5, 37, 38, 1, 8, 2, MOST, 41, 3, 0};
    for (int bare = 0; bare < 2; bare++) {
        SCENARIO(bare);
        const prony_preparations made = run_all(decoder, "past", MOST, extents, bare);
        assert_int_equal(made.bound, 1);
        assert_int_equal(made.planned, 1);
        assert_int_equal(made.respecialized, 11);
    }
}

static void test_positions(void **state)
{
    (void)state;
    static const int64_t extents[] = {3, 128, 64, 37, 1, 2, 0};
    const prony_preparations made = run_all(positions, "rows", 128, extents, false);
    assert_int_equal(made.bound, 1);
    assert_int_equal(made.planned, 1);
    assert_int_equal(made.respecialized, 6);
}

static void test_tokens(void **state)
{
    (void)state;
    static const int64_t extents[] = {7, 30, 9, 2, 64, 31, 0};
    const prony_preparations made = run_all(tokens, "rows", 64, extents, false);
    assert_int_equal(made.bound, 1);
}

static size_t operators_at(prony_session *session, const prony_model *model, int64_t extent)
{
    prony_error error = {0};
    assert_int_equal(run_at(session, model, extent, &error), PRONY_OK);
    return session->current->plan->step_count;
}

static bool has_operator(const prony_session *session, const char *op)
{
    const prn_plan *plan = session->current->plan;
    for (size_t s = 0; s < plan->step_count; s++)
        if (strcmp(plan->steps[s]->node->info.op_type, op) == 0) return true;
    return false;
}

/* The same nodes are fused as in fresh sessions, and costs are those of the run's extents. */
static void test_rewritten(void **state)
{
    (void)state;
    model_builder *m = mb_begin(12);
    prony_model *model = load(m, decoder);
    prony_session *session = open_session(model, "past", MOST, false), *fresh = open_session(model, NULL, 0, false);
    const size_t open = operators_at(session, model, 10), own = operators_at(fresh, model, 10);
    assert_true(has_operator(session, "Attention"));
    assert_true(has_operator(session, "LayerNormalization"));
    assert_true(has_operator(fresh, "Attention"));
    assert_true(open <= own + 2); /* the mask is cut in the run */
    (void)operators_at(session, model, 50);
    const prn_program *a = session->current->program, *b = fresh->current->program;
    (void)operators_at(session, model, 10);
    assert_int_equal(a->layer_count, b->layer_count);
    uint64_t here = 0, there = 0;
    for (size_t l = 0; l < a->layer_count; l++) {
        SCENARIO(l);
        here += a->layers[l].cost.parameters;
        there += b->layers[l].cost.parameters;
        if (a->layers[l].folded || b->layers[l].folded) continue;
        assert_int_equal(a->layers[l].cost.flops, b->layers[l].cost.flops);
        assert_int_equal(a->layers[l].cost.bytes_read, b->layers[l].cost.bytes_read);
    }
    assert_int_equal(here, there);
    prony_session_release(session);
    prony_session_release(fresh);
    prony_model_release(model);
    mb_free(m);
}

/* A branch that depends on the size: sizes that choose another branch have plans of their own. */
static void test_branches(void **state)
{
    (void)state;
    static const int64_t extents[] = {3, 40, 20, 21, 3, 0};
    const prony_preparations made = run_all(branches, "rows", 64, extents, false);
    assert_int_equal(made.respecialized, 2); /* 40 and 21 */
    assert_int_equal(made.bound, 3);         /* for them, for 3, for 20 */
}

/* If the model rejects the sizes chosen for binding, others are tried. */
static void test_multiples(void **state)
{
    (void)state;
    static const int64_t few[] = {4, 8, 12, 16, 20, 0}, across[] = {8, 48, 64, 24, 16, 0};
    assert_int_equal(run_all(fours, "rows", 20, few, false).respecialized, 5);
    assert_int_equal(run_all(fours, "rows", 64, across, false).respecialized, 5);
}

/* Extents that a rewrite found equal differ at larger sizes, which get plans of their own. */
static void test_equal_no_more(void **state)
{
    (void)state;
    static const int64_t extents[] = {40, 64, 50, 51, 3, 0};
    const prony_preparations made = run_all(cut, "rows", 96, extents, false);
    assert_int_equal(made.bound, 3);         /* for up to 50, for 64, for 51 */
    assert_int_equal(made.planned, 4);       /* 96 does not fit; 40 does, and then 50 */
    assert_int_equal(made.respecialized, 1); /* 3 */
}

/* A size of 0, and a dimension that changes without being named. */
static void test_others(void **state)
{
    (void)state;
    prony_error error = {0};
    model_builder *m = mb_begin(12);
    prony_model *model = load(m, decoder);
    prony_session *session = open_session(model, "past", MOST, false), *fresh = open_session(model, NULL, 0, false);
    static const int64_t extents[] = {0, 5, 0, 6};
    for (size_t i = 0; i < 4; i++) {
        SCENARIO(i);
        assert_int_equal(run_at(session, model, extents[i], &error), PRONY_OK);
        assert_int_equal(run_at(fresh, model, extents[i], &error), PRONY_OK);
        check_same(session, fresh, model, extents[i]);
    }
    assert_int_equal(prony_session_preparations(session).respecialized, 2);
    prony_session_release(session);
    prony_session_release(fresh);
    prony_model_release(model);
    mb_free(m);
}

/* Nothing is left behind by a run at other extents, and weights are packed once. */
static void test_memory_stays(void **state)
{
    (void)state;
    prony_error error = {0};
    model_builder *m = mb_begin(12);
    prony_model *model = load(m, decoder);
    prony_session *session = open_session(model, "past", MOST, false);
    uint64_t held = 0, shared = 0;
    for (int64_t extent = 1; extent <= 2 * MOST; extent++) {
        SCENARIO(extent);
        assert_int_equal(run_at(session, model, (extent - 1) % MOST + 1, &error), PRONY_OK);
        if (extent == MOST) {
            held = prony_memory_in_use();
            shared = prn_weight_cache_bytes(model->shared);
        }
    }
    assert_int_equal(prony_memory_in_use(), held);
    assert_int_equal(prn_weight_cache_bytes(model->shared), shared);
    assert_int_equal(prony_session_preparations(session).bound, 1);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

static void test_too_large(void **state)
{
    (void)state;
    float data[1] = {0};
    prony_error error = {0};
    model_builder *m = mb_begin(12);
    prony_model *model = load(m, decoder);
    prony_session *session = open_session(model, "past", 16, false);
    assert_int_equal(set_inputs(session, model, 17, &error), PRONY_OUT_OF_RANGE);
    assert_string_equal(error.message,
                        "m.onnx: input 'past_k': dimension 'past' (axis 2) is 17, but its maximum is 16");
    const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {4, {1, 2, 40, 4}}, .data = data};
    assert_int_equal(prony_session_bind_input(session, "past_v", &value, &error), PRONY_OUT_OF_RANGE);
    assert_non_null(strstr(error.message, "'past_v': dimension 'past' (axis 2) is 40, but its maximum is 16"));
    assert_int_equal(run_at(session, model, 16, &error), PRONY_OK);
    prony_session_release(session);

    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    const prony_dim most = {"past_k.2", 16}, given = {"past", 20};
    options.max_dims = &most;
    options.max_dim_count = 1;
    options.dims = &given;
    options.dim_count = 1;
    assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_OK);
    assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_OUT_OF_RANGE);
    assert_non_null(strstr(error.message, "dimension 'past' (axis 2) is 20, but its maximum is 16"));
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

static void test_options(void **state)
{
    (void)state;
    static const prony_dim wrong[] = {{"future", 4}, {"past", 0}, {"past", -3}, {"*", 5}, {NULL, 5}};
    prony_error error = {0};
    model_builder *m = mb_begin(12);
    prony_model *model = load(m, decoder);
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        SCENARIO(i);
        prony_session *session = NULL;
        options.max_dims = &wrong[i];
        options.max_dim_count = 1;
        assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_INVALID_ARGUMENT);
        assert_null(session);
    }
    options.max_dims = NULL;
    prony_session *session = NULL;
    assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_session_preparations(NULL).bound, 0);
    prony_model_release(model);
    mb_free(m);
}

/* Allocation n fails while sizes change: the run says so, and the next one is right. */
static void test_faults(void **state)
{
    (void)state;
    static const int64_t extents[] = {5, 9, 4};
    model_builder *m = mb_begin(12);
    prony_model *model = load(m, decoder);
    prony_session *fresh = open_session(model, NULL, 0, false);
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        SCENARIO(failed);
        prony_session *session = open_session(model, "past", MOST, false);
        failed = false;
        for (int turn = 0; turn < 3; turn++) {
            prony_error error = {0};
            if (!failed) prn_alloc_fail_at(n);
            prony_status status = run_at(session, model, extents[turn], &error);
            failed |= prn_alloc_failed();
            prn_alloc_fail_at(0);
            if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY)
                fail_msg("allocation %d: %s", (int)n, error.message);
            if (status != PRONY_OK) assert_int_equal(run_at(session, model, extents[turn], &error), PRONY_OK);
            assert_int_equal(run_at(fresh, model, extents[turn], &error), PRONY_OK);
            check_same(session, fresh, model, extents[turn]);
        }
        prony_session_release(session);
    }
    assert_true(n > 100);
    prony_session_release(fresh);
    prony_model_release(model);
    mb_free(m);
}

/* Extents that are not an affine function of the input's, nodes that stop moving and move again, and sizes in any
 * order. */
static void test_layers_alike(void **state)
{
    (void)state;
    static const int64_t extents[] = {30, 31, 32, 33, 34, 20, 21, 22, 5,  6,  23, 24,
                                      16, 15, 14, 40, 40, 41, 1,  42, 17, 18, 0};
    for (int bare = 0; bare < 2; bare++) {
        SCENARIO(bare);
        const prony_preparations made = run_all(layers, "rows", 48, extents, bare);
        assert_true(made.respecialized >= 10);
    }
}

/* Nodes of layers that are alike are inferred once; the costs of all are those of a session of its own. */
static void test_layers_linked(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    prony_model *model = load(m, layers);
    prony_session *session = open_session(model, "rows", 48, true);
    for (int64_t extent = 30; extent < 36; extent++) (void)operators_at(session, model, extent);
    const prn_dynamic_dims *x = session->open.extents;
    size_t followers = 0;
    for (size_t n = 0; n < x->count; n++) followers += x->nodes[n].follows;
    assert_int_equal(x->count, 44);
    assert_int_equal(followers, 32); /* all nodes of three layers, but for the Softmax of layer 2 */
    assert_true(x->active_count <= x->count - followers);
    for (int64_t extent = 36; extent > 20; extent -= 3) {
        prony_session *fresh = open_session(model, NULL, 0, true);
        (void)operators_at(session, model, extent);
        (void)operators_at(fresh, model, extent);
        const prn_program *a = session->current->program, *b = fresh->current->program;
        assert_int_equal(a->layer_count, b->layer_count);
        for (size_t l = 0; l < a->layer_count; l++) {
            if (a->layers[l].folded || b->layers[l].folded) continue;
            assert_int_equal(a->layers[l].cost.flops, b->layers[l].cost.flops);
            assert_int_equal(a->layers[l].cost.bytes_read, b->layers[l].cost.bytes_read);
            assert_int_equal(a->layers[l].cost.bytes_written, b->layers[l].cost.bytes_written);
        }
        prony_session_release(fresh);
    }
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

/* Inputs that are declared apart may have the same size in one run and not in the next. */
static void test_twins(void **state)
{
    (void)state;
    static const int64_t extents[][2] = {{9, 9}, {9, 10}, {10, 10}, {11, 10}, {11, 12}, {30, 3}, {3, 30}, {12, 12}};
    model_builder *m = mb_begin(13);
    prony_model *model = load(m, twins);
    prony_error error = {0};
    const prony_dim most[] = {{"left", 40}, {"right", 40}};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.max_dims = most;
    options.max_dim_count = 2;
    prony_session *session = NULL, *fresh = open_session(model, NULL, 0, false);
    assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_OK);
    for (size_t k = 0; k < sizeof extents / sizeof *extents; k++) {
        SCENARIO(k);
        float data[2][40 * 8];
        uint32_t seed = (uint32_t)k;
        for (int l = 0; l < 2; l++) {
            for (int i = 0; i < 40 * 8; i++) data[l][i] = number(&seed);
            const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {2, {extents[k][l], 8}}, .data = data[l]};
            assert_int_equal(prony_session_set_input(session, l ? "b" : "a", &value, &error), PRONY_OK);
            assert_int_equal(prony_session_set_input(fresh, l ? "b" : "a", &value, &error), PRONY_OK);
        }
        assert_int_equal(prony_session_run(session, &error), PRONY_OK);
        assert_int_equal(prony_session_run(fresh, &error), PRONY_OK);
        check_same(session, fresh, model, (int64_t)k);
    }
    prony_session_release(session);
    prony_session_release(fresh);
    prony_model_release(model);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_alike),  cmocka_unit_test(test_layers_linked), cmocka_unit_test(test_twins),
        cmocka_unit_test(test_cache_grows),   cmocka_unit_test(test_positions),     cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_rewritten),     cmocka_unit_test(test_branches),      cmocka_unit_test(test_multiples),
        cmocka_unit_test(test_equal_no_more), cmocka_unit_test(test_others),        cmocka_unit_test(test_memory_stays),
        cmocka_unit_test(test_too_large),     cmocka_unit_test(test_options),       cmocka_unit_test(test_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
