/* Rewrites: each fires where it should and nowhere else; whatever fires leaves a program that is well formed, counts what the
 * model counted and computes what it computed. A case is a small model and the operators that must remain, in order of
 * execution, with what was attached to them in brackets. */
#include "base/shape.h"
#include "engine/plan.h"
#include "engine/rewrite.h"
#include "model_builder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- models ---- */

static uint32_t seed;

static float next_float(float low, float high)
{
    seed = seed * 1664525u + 1013904223u;
    return low + (high - low) * (float)(seed >> 8) / 16777216.0f;
}

static int64_t elements_of(const char *dims)
{
    int64_t count = 1;
    for (const char *at = dims; *at;) {
        char *end;
        count *= strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    return count;
}

static void weights_in(model_builder *m, const char *name, const char *dims, float low, float high)
{
    float data[4096];
    int64_t count = elements_of(dims);
    assert_true(count <= 4096);
    for (int64_t i = 0; i < count; i++) data[i] = next_float(low, high);
    mb_initializer(m, name, PRONY_FLOAT32, dims, data);
}

static void weights(model_builder *m, const char *name, const char *dims)
{
    weights_in(m, name, dims, -1.0f, 1.0f);
}

static void scalar(model_builder *m, const char *name, float value)
{
    mb_initializer(m, name, PRONY_FLOAT32, "", &value);
}

static void ints(model_builder *m, const char *name, const char *dims, const int64_t *values)
{
    mb_initializer(m, name, PRONY_INT64, dims, values);
}

/* Opset 17, input x [2, 4, 5, 5], Conv weights w [4, 4, 3, 3] and bias b. */
static model_builder *begin(void)
{
    seed = 1;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,4,5,5");
    weights(m, "w", "4,4,3,3");
    weights(m, "b", "4");
    return m;
}

static void conv(model_builder *m, const char *inputs, const char *output)
{
    mb_node(m, "Conv", inputs, output, "pads=[1,1,1,1]");
}

static void output(model_builder *m, const char *name)
{
    mb_output(m, name, PRONY_FLOAT32, NULL);
}

static void batch_norm(model_builder *m, const char *x, const char *y, const char *channels)
{
    weights_in(m, "gamma", channels, 0.5f, 2.0f);
    weights(m, "beta", channels);
    weights(m, "mean", channels);
    weights_in(m, "var", channels, 0.1f, 2.0f);
    char inputs[64];
    snprintf(inputs, sizeof inputs, "%s gamma beta mean var", x);
    mb_node(m, "BatchNormalization", inputs, y, "epsilon=0.001");
}

/* ---- programs ---- */

typedef struct loaded {
    prony_model model;
    prony_error error;
} loaded;

static void load(loaded *l, model_builder *m, prony_registry *registry)
{
    size_t size;
    const void *bytes = mb_finish(m, &size);
    *l = (loaded){.model = {.registry = registry}};
    if (prn_model_parse(&l->model.file, "case.onnx", bytes, size, &l->error) != PRONY_OK) fail_msg("%s", l->error.message);
    if (prn_shared_create(&l->model.shared, &l->error) != PRONY_OK) fail_msg("%s", l->error.message);
}

static void unload(loaded *l)
{
    prn_shared_release(l->model.shared);
    prn_model_close(l->model.file);
}

static prony_status bind(loaded *l, prn_program **out)
{
    prony_value inputs[8] = {0};
    const prn_graph *graph = &l->model.file->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        inputs[i].dtype = graph->inputs[i].dtype;
        inputs[i].shape = graph->inputs[i].shape;
    }
    prn_bind_options options = {inputs, graph->input_count, false};
    return prn_program_bind(out, &l->model, graph, NULL, NULL, &options, &l->error);
}

static void describe(const prn_program *program, char *text, size_t size)
{
    static const char *const kinds[] = {
        [PRN_POST_RELU] = "relu",       [PRN_POST_CLIP] = "clip",
        [PRN_POST_LEAKY_RELU] = "leaky", [PRN_POST_SIGMOID] = "sigmoid",
        [PRN_POST_TANH] = "tanh",       [PRN_POST_HARD_SIGMOID] = "hardsigmoid",
        [PRN_POST_HARD_SWISH] = "hardswish", [PRN_POST_SILU] = "silu",
        [PRN_POST_GELU_ERF] = "gelu",   [PRN_POST_ADD] = "add",
    };
    size_t used = 0;
    *text = 0;
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        if (node->dead) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", node->info.op_type);
        for (size_t k = 0; k < node->post_ops.count; k++)
            used += (size_t)snprintf(text + used, size - used, "%c%s", k ? ',' : '[', kinds[node->post_ops.op[k].kind]);
        if (node->post_ops.count) used += (size_t)snprintf(text + used, size - used, "]");
        assert_true(used < size);
    }
}

/* Every input is made before it is read; producers and the pointers that contexts use are right. */
static void check_well_formed(const prn_program *p)
{
    bool *made = calloc(p->value_count + 1, sizeof *made);
    assert_non_null(made);
    for (size_t v = 0; v < p->value_count; v++) made[v] = p->values[v]->constant;
    for (size_t i = 0; i < p->input_count; i++) made[p->inputs[i]] = true;
    for (size_t n = 0; n < p->node_count; n++) {
        const prn_node_def *node = p->nodes[n];
        for (uint32_t i = 0; i < node->input_count && !node->dead; i++) {
            if (node->inputs[i] == PRN_NO_VALUE) continue;
            assert_true(made[node->inputs[i]]);
            assert_ptr_equal(node->input_values[i], &p->values[node->inputs[i]]->info);
        }
        for (uint32_t k = 0; k < node->output_count && !node->dead; k++) {
            if (node->outputs[k] == PRN_NO_VALUE) continue;
            made[node->outputs[k]] = true;
            assert_int_equal(p->values[node->outputs[k]]->producer, n);
        }
    }
    for (size_t k = 0; k < p->output_count; k++) assert_true(made[p->outputs[k]]);
    free(made);
}

/* Sum over the layers of live nodes; each layer stands in one of them at most. */
static prony_cost total(const prn_program *p)
{
    prony_cost sum = {0};
    bool *seen = calloc(p->layer_count + 1, sizeof *seen);
    assert_non_null(seen);
    for (size_t n = 0; n < p->node_count; n++) {
        const prn_node_def *node = p->nodes[n];
        for (uint32_t l = 0; l < node->layer_count && !node->dead; l++) {
            assert_false(seen[node->layers[l]]);
            seen[node->layers[l]] = true;
            assert_true(prn_cost_add(&sum, &p->layers[node->layers[l]].cost));
        }
    }
    free(seen);
    return sum;
}

static void check_conserved(const prn_program *before, const prn_program *after)
{
    prony_cost a = total(before), b = total(after);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.bytes_read > 0);
}

/* ---- running ---- */

static void fill_input(const prony_value *info, const char *name, void *data)
{
    int64_t count = prony_shape_numel(&info->shape);
    for (int64_t i = 0; i < count; i++) {
        if (info->dtype == PRONY_FLOAT32)
            ((float *)data)[i] = next_float(-4.0f, 4.0f);
        else if (info->dtype == PRONY_FLOAT64)
            ((double *)data)[i] = (double)next_float(-4.0f, 4.0f);
        else if (info->dtype == PRONY_BOOL)
            ((uint8_t *)data)[i] = 1;
        else
            fail_msg("input %s has a type that is not filled", name);
    }
}

/* Outputs are copied; the caller frees their data. */
static void run(prn_program *program, prony_value *outputs)
{
    prony_error error = {0};
    prn_plan *plan;
    prn_plan_options options = {.threads = 1};
    if (prn_plan_create(&plan, program, NULL, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    void *data[8] = {0};
    seed = 7;
    for (size_t i = 0; i < program->input_count; i++) {
        prony_value *value = &plan->values[program->inputs[i]]->value;
        data[i] = calloc(prn_value_bytes(value) + 1, 1);
        assert_non_null(data[i]);
        fill_input(value, program->values[program->inputs[i]]->name, data[i]);
        value->data = data[i];
    }
    prn_plan_point(plan, plan->base);
    prn_arena_run_begin(plan->arena);
    if (prn_plan_run(plan, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    for (size_t k = 0; k < program->output_count; k++) {
        outputs[k] = plan->values[plan->outputs[k]]->value;
        size_t bytes = prn_value_bytes(&outputs[k]);
        void *copy = malloc(bytes + 1);
        assert_non_null(copy);
        memcpy(copy, outputs[k].data, bytes);
        outputs[k].data = copy;
    }
    prn_arena_run_end(plan->arena);
    prn_plan_release(plan);
    for (size_t i = 0; i < program->input_count; i++) free(data[i]);
}

/* Folding reorders roundings, so results agree to a few units in the last place of the largest term of a sum. */
static void check_equal(const prony_value *a, const prony_value *b)
{
    assert_true(prn_shape_equal(&a->shape, &b->shape));
    assert_int_equal(a->dtype, b->dtype);
    int64_t count = prony_shape_numel(&a->shape);
    assert_true(count > 0);
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < count; i++) {
        bool wide = a->dtype == PRONY_FLOAT64;
        double x = wide ? ((const double *)a->data)[i] : (double)((const float *)a->data)[i];
        double y = wide ? ((const double *)b->data)[i] : (double)((const float *)b->data)[i];
        assert_true(isfinite(x) && isfinite(y));
        largest = fmax(largest, fabs(x));
        difference = fmax(difference, fabs(x - y));
    }
    assert_true(largest > 0);
    if (difference > 2e-6 * largest) fail_msg("outputs differ by %g, the largest is %g", difference, largest);
}

static void check_runs(prn_program *before, prn_program *after)
{
    prony_value a[4], b[4];
    assert_true(before->output_count <= 4);
    run(before, a);
    run(after, b);
    for (size_t k = 0; k < before->output_count; k++) {
        check_equal(&a[k], &b[k]);
        free(a[k].data);
        free(b[k].data);
    }
}

static void expect_with(prony_registry *registry, model_builder *m, const char *wanted)
{
    loaded l;
    load(&l, m, registry);
    prn_program *before, *after;
    if (bind(&l, &before) != PRONY_OK || bind(&l, &after) != PRONY_OK ||
        prn_program_rewrite(after, &l.error) != PRONY_OK)
        fail_msg("%s", l.error.message);
    char text[512];
    describe(after, text, sizeof text);
    assert_string_equal(text, wanted);
    check_well_formed(after);
    check_conserved(before, after);
    check_runs(before, after);
    prn_program_release(before);
    prn_program_release(after);
    unload(&l);
    mb_free(m);
}

/* Takes the model over. */
static void expect(model_builder *m, const char *wanted)
{
    expect_with(NULL, m, wanted);
}

/* ---- folding into weights ---- */

static void fold_batch_norm(void **state)
{
    (void)state;
    static const struct {
        const char *op, *x, *w, *b, *attributes, *channels;
    } cases[] = {
        {"Conv", "2,4,5,5", "6,2,3,3", NULL, "group=2 strides=[2,2]", "6"},
        {"Conv", "2,4,9", "4,1,3", "4", "group=4", "4"},
        {"Conv", "1,2,4,4,4", "3,2,2,2,2", "3", "", "3"},
        {"ConvTranspose", "1,4,5,5", "4,3,2,2", "6", "group=2 strides=[2,2]", "6"},
        {"ConvTranspose", "1,4,5,5", "4,3,3,3", NULL, "", "3"},
        {"Gemm", "5,4", "6,4", "1,6", "transB=1 alpha=0.5", "6"},
        {"Gemm", "5,4", "4,6", "", "", "6"},
        {"MatMul", "5,4", "4,6", NULL, "", "6"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        seed = (uint32_t)k;
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, cases[k].x);
        weights(m, "w", cases[k].w);
        if (cases[k].b) weights(m, "b", cases[k].b);
        mb_node(m, cases[k].op, cases[k].b ? "x w b" : "x w", "c", cases[k].attributes);
        batch_norm(m, "c", "y", cases[k].channels);
        output(m, "y");
        expect(m, cases[k].op);
    }
}

static void keep_batch_norm(void **state)
{
    (void)state;
    model_builder *m = begin(); /* somebody else reads the convolution */
    conv(m, "x w b", "c");
    batch_norm(m, "c", "n", "4");
    mb_node(m, "Mul", "n c", "y", "");
    output(m, "y");
    expect(m, "Conv BatchNormalization Mul");

    m = begin(); /* the convolution is an output of the graph */
    conv(m, "x w b", "c");
    batch_norm(m, "c", "y", "4");
    output(m, "c");
    output(m, "y");
    expect(m, "Conv BatchNormalization");

    m = begin(); /* weights come at run time */
    mb_input(m, "w2", PRONY_FLOAT32, "4,4,3,3");
    conv(m, "x w2 b", "c");
    batch_norm(m, "c", "y", "4");
    output(m, "y");
    expect(m, "Conv BatchNormalization");

    m = begin(); /* so do statistics */
    mb_input(m, "shift", PRONY_FLOAT32, "4");
    weights_in(m, "v", "4", 0.5f, 1.5f);
    conv(m, "x w b", "c");
    mb_node(m, "BatchNormalization", "c v shift b v", "y", "");
    output(m, "y");
    expect(m, "Conv BatchNormalization");

    m = begin(); /* before the convolution, padding would see the shift */
    batch_norm(m, "x", "n", "4");
    conv(m, "n w b", "y");
    output(m, "y");
    expect(m, "BatchNormalization Conv");

    m = mb_begin(17); /* channels are not the columns of the product */
    mb_input(m, "x", PRONY_FLOAT32, "2,4,4");
    weights(m, "w", "4,4");
    mb_node(m, "MatMul", "x w", "c", "");
    batch_norm(m, "c", "y", "4");
    output(m, "y");
    expect(m, "MatMul BatchNormalization");

    m = mb_begin(17); /* C is scaled by beta, so nothing can be added to it */
    mb_input(m, "x", PRONY_FLOAT32, "5,4");
    weights(m, "w", "4,4");
    weights(m, "b", "4");
    mb_node(m, "Gemm", "x w b", "c", "beta=0.5");
    batch_norm(m, "c", "y", "4");
    output(m, "y");
    expect(m, "Gemm BatchNormalization");
}

static void fold_scale_and_shift(void **state)
{
    (void)state;
    model_builder *m = begin();
    weights(m, "scale", "4,1,1");
    weights(m, "shift", "1,4,1,1");
    weights_in(m, "divisor", "1,4,1,1", 1.0f, 2.0f);
    scalar(m, "half", 0.5f);
    conv(m, "x w", "c0");
    mb_node(m, "Mul", "scale c0", "c1", "");
    mb_node(m, "Add", "c1 shift", "c2", "");
    mb_node(m, "Div", "c2 divisor", "c3", "");
    mb_node(m, "Sub", "c3 half", "c4", "");
    mb_node(m, "Sub", "shift c4", "y", "");
    output(m, "y");
    expect(m, "Conv");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,3,4");
    weights(m, "w", "4,5");
    weights(m, "b", "5");
    weights(m, "g", "1,1,5");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "b p", "q", "");
    mb_node(m, "Mul", "q g", "y", "");
    output(m, "y");
    expect(m, "MatMul");

    m = mb_begin(17); /* the channels went elsewhere in between */
    mb_input(m, "x", PRONY_FLOAT32, "2,3,4");
    weights(m, "w", "4,5");
    weights(m, "g", "5,1");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Transpose", "p", "t", "perm=[0,2,1]");
    mb_node(m, "Mul", "t g", "y", "");
    output(m, "y");
    expect(m, "MatMul Transpose");
}

static void keep_scale_and_shift(void **state)
{
    (void)state;
    static const struct {
        const char *dims, *op, *inputs, *wanted;
    } cases[] = {
        {"5", "Mul", "c k", "Conv Mul"},            /* along an axis that is no channel */
        {"4,1,5", "Add", "c k", "Conv Add"},        /* along two axes */
        {"3,1,1,1,1", "Add", "c k", "Conv Add"},    /* makes the output larger */
        {"4,1,1", "Div", "k c", "Conv Div"},        /* not linear */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_builder *m = begin();
        weights(m, "k", cases[i].dims);
        conv(m, "x w b", "c");
        mb_node(m, cases[i].op, cases[i].inputs, "y", "");
        output(m, "y");
        expect(m, cases[i].wanted);
    }
    model_builder *m = begin(); /* would leave float32's range */
    weights_in(m, "large", "4,4,3,3", 1e20f, 2e20f);
    scalar(m, "huge", 1e30f);
    scalar(m, "tiny", 1e-30f);
    mb_node(m, "Mul", "x tiny", "s", "");
    conv(m, "s large", "c");
    mb_node(m, "Mul", "c huge", "y", "");
    output(m, "y");
    expect(m, "Mul Conv Mul");

    m = mb_begin(17); /* both factors come at run time */
    mb_input(m, "x", PRONY_FLOAT32, "3,4");
    mb_input(m, "w", PRONY_FLOAT32, "4,5");
    weights(m, "b", "5");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "p b", "y", "");
    output(m, "y");
    expect(m, "MatMul Add");

    m = mb_begin(17); /* another type */
    double doubles[20] = {0.5, 1, 1.5, 2};
    mb_input(m, "x", PRONY_FLOAT64, "3,4");
    mb_initializer(m, "w", PRONY_FLOAT64, "4,5", doubles);
    mb_initializer(m, "b", PRONY_FLOAT64, "5", doubles);
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "p b", "y", "");
    mb_output(m, "y", PRONY_FLOAT64, NULL);
    expect(m, "MatMul Add");
}

/* ---- attaching ---- */

static void attach_activations(void **state)
{
    (void)state;
    static const struct {
        const char *op, *inputs, *attributes, *wanted;
    } cases[] = {
        {"Relu", "c", "", "Conv[relu]"},
        {"Clip", "c zero six", "", "Conv[clip]"},
        {"Clip", "c zero", "", "Conv[relu]"},
        {"Clip", "c ? six", "", "Conv[clip]"},
        {"LeakyRelu", "c", "alpha=0.2", "Conv[leaky]"},
        {"PRelu", "c half", "", "Conv[leaky]"},
        {"PRelu", "c slopes", "", "Conv PRelu"},
        {"Sigmoid", "c", "", "Conv[sigmoid]"},
        {"Tanh", "c", "", "Conv[tanh]"},
        {"HardSigmoid", "c", "alpha=0.25 beta=0.4", "Conv[hardsigmoid]"},
        {"HardSwish", "c", "", "Conv[hardswish]"},
        {"Exp", "c", "", "Conv Exp"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        model_builder *m = begin();
        weights_in(m, "small", "4,4,3,3", -0.1f, 0.1f);
        scalar(m, "zero", 0.0f);
        scalar(m, "half", 0.5f);
        scalar(m, "six", 6.0f);
        weights(m, "slopes", "4,1,1");
        conv(m, "x small", "c");
        mb_node(m, cases[k].op, cases[k].inputs, "y", cases[k].attributes);
        output(m, "y");
        expect(m, cases[k].wanted);
    }
}

static void keep_activations(void **state)
{
    (void)state;
    model_builder *m = begin();
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Mul", "r c", "y", "");
    output(m, "y");
    expect(m, "Conv Relu Mul");

    m = begin();
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "y", "");
    output(m, "c");
    output(m, "y");
    expect(m, "Conv Relu");

    m = begin(); /* a bound that comes at run time */
    mb_input(m, "high", PRONY_FLOAT32, "");
    conv(m, "x w b", "c");
    mb_node(m, "Clip", "c ? high", "y", "");
    output(m, "y");
    expect(m, "Conv Clip");

    m = begin(); /* no room for a fifth */
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r1", "");
    mb_node(m, "Tanh", "r1", "r2", "");
    mb_node(m, "Sigmoid", "r2", "r3", "");
    mb_node(m, "LeakyRelu", "r3", "r4", "");
    mb_node(m, "Relu", "r4", "y", "");
    output(m, "y");
    expect(m, "Conv[relu,tanh,sigmoid,leaky] Relu");

    m = begin(); /* a constant behind an activation is no weight any more */
    scalar(m, "half", 0.5f);
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Mul", "r half", "y", "");
    output(m, "y");
    expect(m, "Conv[relu] Mul");
}

static void attach_residuals(void **state)
{
    (void)state;
    model_builder *m = begin();
    conv(m, "x w b", "c");
    mb_node(m, "Add", "c x", "s", "");
    mb_node(m, "Relu", "s", "y", "");
    output(m, "y");
    expect(m, "Conv[add,relu]");

    m = begin(); /* the later of two takes it */
    conv(m, "x w b", "c1");
    conv(m, "x w", "c2");
    mb_node(m, "Add", "c1 c2", "y", "");
    output(m, "y");
    expect(m, "Conv Conv[add]");

    m = begin(); /* the convolution waits for its residual */
    conv(m, "x w b", "c");
    mb_node(m, "Exp", "x", "e", "");
    mb_node(m, "Add", "c e", "y", "");
    output(m, "y");
    expect(m, "Exp Conv[add]");

    m = begin(); /* the residual is the convolution's own input */
    weights(m, "point", "4,4,1,1");
    mb_node(m, "Relu", "x", "r", "");
    mb_node(m, "Conv", "r point", "c", "");
    mb_node(m, "Add", "r c", "y", "");
    output(m, "y");
    expect(m, "Relu Conv[add]");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "3,4");
    weights(m, "w", "4,4");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "x p", "y", "");
    output(m, "y");
    expect(m, "MatMul[add]");
}

static void keep_residuals(void **state)
{
    (void)state;
    model_builder *m = begin(); /* broadcast */
    mb_input(m, "s", PRONY_FLOAT32, "1,4,1,1");
    conv(m, "x w b", "c");
    mb_node(m, "Add", "c s", "y", "");
    output(m, "y");
    expect(m, "Conv Add");

    m = begin(); /* twice the same */
    conv(m, "x w b", "c");
    mb_node(m, "Add", "c c", "y", "");
    output(m, "y");
    expect(m, "Conv Add");

    m = begin(); /* the sum is of what another node reads too */
    conv(m, "x w b", "c");
    mb_node(m, "Add", "c x", "s", "");
    mb_node(m, "Mul", "s c", "y", "");
    output(m, "y");
    expect(m, "Conv Add Mul");
}

/* ---- patterns ---- */

typedef struct step {
    const char *op, *inputs, *output, *attributes;
} step;

/* Constants by name: k3 k6 kone khalf ktwo sixth root (√2) root_half cube (0.044715) tanh_factor (√(2/π)) eps. */
static model_builder *pattern_model(const step *steps)
{
    seed = 3;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,3,8");
    scalar(m, "k3", 3.0f);
    scalar(m, "k6", 6.0f);
    scalar(m, "zero", 0.0f);
    scalar(m, "kone", 1.0f);
    scalar(m, "khalf", 0.5f);
    scalar(m, "ktwo", 2.0f);
    scalar(m, "sixth", 1.0f / 6.0f);
    scalar(m, "root", 1.41421356f);
    scalar(m, "root_half", 0.70710678f);
    scalar(m, "cube", 0.044715f);
    scalar(m, "tanh_factor", 0.79788456f);
    scalar(m, "eps", 1e-5f);
    weights(m, "gamma", "8");
    weights(m, "beta", "1,1,8");
    for (; steps->op; steps++) mb_node(m, steps->op, steps->inputs, steps->output, steps->attributes ? steps->attributes : "");
    output(m, "y");
    return m;
}

#define EXPECT_STEPS(wanted, ...) expect(pattern_model((const step[]){__VA_ARGS__, {0}}), wanted)

static void match_gated(void **state)
{
    (void)state;
    EXPECT_STEPS("SiLU", {"Sigmoid", "x", "s", 0}, {"Mul", "s x", "y", 0});
    EXPECT_STEPS("Sigmoid Mul", {"Sigmoid", "x", "s", 0}, {"Mul", "s s", "y", 0});
    EXPECT_STEPS("Sigmoid Exp Mul", {"Sigmoid", "x", "s", 0}, {"Exp", "x", "e", 0}, {"Mul", "s e", "y", 0});
    EXPECT_STEPS("Sigmoid Mul Mul", {"Sigmoid", "x", "s", 0}, {"Mul", "s x", "p", 0}, {"Mul", "p s", "y", 0});
    EXPECT_STEPS("HardSigmoid", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Div", "c k6", "y", 0});
    EXPECT_STEPS("HardSigmoid", {"Add", "k3 x", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Mul", "sixth c", "y", 0});
    EXPECT_STEPS("Add Clip Div", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Div", "c k3", "y", 0});
    EXPECT_STEPS("Add Clip Div", {"Add", "x k3", "a", 0}, {"Clip", "a kone k6", "c", 0}, {"Div", "c k6", "y", 0});
    EXPECT_STEPS("HardSwish", {"HardSigmoid", "x", "s", "alpha=0.16666667 beta=0.5"}, {"Mul", "x s", "y", 0});
    EXPECT_STEPS("HardSigmoid Mul", {"HardSigmoid", "x", "s", "alpha=0.2 beta=0.5"}, {"Mul", "x s", "y", 0});
    EXPECT_STEPS("HardSwish", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Mul", "x c", "p", 0},
                 {"Div", "p k6", "y", 0});
    EXPECT_STEPS("HardSwish", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Mul", "c sixth", "p", 0},
                 {"Mul", "p x", "y", 0});
    EXPECT_STEPS("Add Clip Mul Mul", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Mul", "x c", "p", 0},
                 {"Mul", "p khalf", "y", 0});
}

static void match_gelu(void **state)
{
    (void)state;
    EXPECT_STEPS("Gelu", {"Div", "x root", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Mul", "x a", "p", 0}, {"Mul", "p khalf", "y", 0});
    EXPECT_STEPS("Gelu", {"Mul", "x root_half", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "kone e", "a", 0},
                 {"Mul", "khalf x", "h", 0}, {"Mul", "h a", "y", 0});
    EXPECT_STEPS("Gelu", {"Div", "x root", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Div", "a ktwo", "h", 0}, {"Mul", "h x", "y", 0});
    EXPECT_STEPS("Div Erf Add Mul Mul", {"Div", "x ktwo", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Mul", "x a", "p", 0}, {"Mul", "p khalf", "y", 0});
    EXPECT_STEPS("Div Erf Add Mul Mul", {"Div", "x root", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Mul", "x a", "p", 0}, {"Mul", "p sixth", "y", 0});
    EXPECT_STEPS("Div Erf Add Mul Mul Add", {"Div", "x root", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Mul", "x a", "p", 0}, {"Mul", "p khalf", "g", 0}, {"Add", "g e", "y", 0});
    EXPECT_STEPS("Gelu", {"Pow", "x k3", "c", 0}, {"Mul", "c cube", "d", 0}, {"Add", "x d", "a", 0},
                 {"Mul", "a tanh_factor", "u", 0}, {"Tanh", "u", "t", 0}, {"Add", "t kone", "g", 0},
                 {"Mul", "x g", "p", 0}, {"Mul", "p khalf", "y", 0});
    EXPECT_STEPS("Gelu", {"Mul", "x x", "q", 0}, {"Mul", "q cube", "d", 0}, {"Add", "d kone", "a", 0},
                 {"Mul", "x tanh_factor", "v", 0}, {"Mul", "v a", "u", 0}, {"Tanh", "u", "t", 0},
                 {"Add", "t kone", "g", 0}, {"Mul", "x khalf", "h", 0}, {"Mul", "h g", "y", 0});
}

static void match_layer_norm(void **state)
{
    (void)state;
    EXPECT_STEPS("LayerNormalization", {"ReduceMean", "x", "m", "axes=[-1]"}, {"Sub", "x m", "d", 0},
                 {"Pow", "d ktwo", "q", 0}, {"ReduceMean", "q", "v", "axes=[2]"}, {"Add", "v eps", "a", 0},
                 {"Sqrt", "a", "s", 0}, {"Div", "d s", "n", 0}, {"Mul", "n gamma", "g", 0}, {"Add", "beta g", "y", 0});
    EXPECT_STEPS("LayerNormalization", {"ReduceMean", "x", "m", "axes=[-1]"}, {"Sub", "x m", "d", 0},
                 {"Mul", "d d", "q", 0}, {"ReduceMean", "q", "v", "axes=[-1]"}, {"Add", "eps v", "a", 0},
                 {"Sqrt", "a", "s", 0}, {"Div", "d s", "y", 0});
    /* Two equal deviations become one. */
    EXPECT_STEPS("LayerNormalization", {"ReduceMean", "x", "m", "axes=[-1]"}, {"Sub", "x m", "d", 0},
                 {"Sub", "x m", "d2", 0}, {"Mul", "d d", "q", 0}, {"ReduceMean", "q", "v", "axes=[-1]"},
                 {"Add", "eps v", "a", 0}, {"Sqrt", "a", "s", 0}, {"Div", "d2 s", "y", 0});
    /* Another axis; another power. */
    EXPECT_STEPS("ReduceMean Sub Mul ReduceMean Add Sqrt Div", {"ReduceMean", "x", "m", "axes=[1]"},
                 {"Sub", "x m", "d", 0}, {"Mul", "d d", "q", 0}, {"ReduceMean", "q", "v", "axes=[1]"},
                 {"Add", "eps v", "a", 0}, {"Sqrt", "a", "s", 0}, {"Div", "d s", "y", 0});
    EXPECT_STEPS("ReduceMean Sub Abs Pow ReduceMean Add Sqrt Div", {"ReduceMean", "x", "m", "axes=[-1]"},
                 {"Sub", "x m", "d", 0}, {"Abs", "d", "b", 0}, {"Pow", "b k3", "q", 0},
                 {"ReduceMean", "q", "v", "axes=[-1]"}, {"Add", "eps v", "a", 0}, {"Sqrt", "a", "s", 0},
                 {"Div", "d s", "y", 0});
    /* The scale was set already. */
    EXPECT_STEPS("LayerNormalization Mul", {"LayerNormalization", "x gamma", "n", "axis=-1"},
                 {"Mul", "n gamma", "y", 0});
    EXPECT_STEPS("LayerNormalization", {"LayerNormalization", "x gamma", "n", "axis=-1"}, {"Add", "n beta", "y", 0});
}

/* x [2, 5, 12] as three heads of 4 for q, k and v; opset 17 with a mask [2, 1, 1, 5]. */
static model_builder *attention_model(const step *steps)
{
    static const int64_t split[] = {2, 5, 3, 4}, joined[] = {2, 5, 12};
    seed = 5;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,5,12");
    mb_input(m, "mask", PRONY_FLOAT32, "2,1,1,5");
    ints(m, "split", "4", split);
    ints(m, "joined", "3", joined);
    scalar(m, "half", 0.5f);
    scalar(m, "two", 2.0f);
    for (const char *name = "qkv"; *name; name++) {
        char weight[] = {'w', *name, 0}, from[] = {'x', ' ', 'w', *name, 0}, flat[] = {'f', *name, 0};
        char reshape[] = {'f', *name, ' ', 's', 'p', 'l', 'i', 't', 0}, to[] = {*name, 0};
        weights_in(m, weight, "12,12", -0.3f, 0.3f);
        mb_node(m, "MatMul", from, flat, "");
        mb_node(m, "Reshape", reshape, to, "");
    }
    for (; steps->op; steps++) mb_node(m, steps->op, steps->inputs, steps->output, steps->attributes ? steps->attributes : "");
    output(m, "y");
    return m;
}

#define EXPECT_ATTENTION(wanted, ...)                                                                                  \
    expect(attention_model((const step[]){__VA_ARGS__, {0}}),                                                          \
           "MatMul Reshape MatMul Reshape MatMul Reshape " wanted)
#define HEADS {"Transpose", "q", "qt", "perm=[0,2,1,3]"}, {"Transpose", "k", "kt", "perm=[0,2,3,1]"},                  \
              {"Transpose", "v", "vt", "perm=[0,2,1,3]"}
#define JOIN {"Transpose", "o", "ot", "perm=[0,2,1,3]"}, {"Reshape", "ot joined", "y", 0}

static void match_attention(void **state)
{
    (void)state;
    EXPECT_ATTENTION("Attention Reshape", HEADS, {"MatMul", "qt kt", "s", 0}, {"Div", "s two", "c", 0},
                     {"Add", "c mask", "a", 0}, {"Softmax", "a", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0}, JOIN);
    EXPECT_ATTENTION("Attention Reshape", HEADS, {"MatMul", "qt kt", "s", 0}, {"Add", "mask s", "a", 0},
                     {"Softmax", "a", "p", "axis=3"}, {"MatMul", "p vt", "o", 0}, JOIN);
    /* Scales before the product, on either side of a Transpose. */
    EXPECT_ATTENTION("Attention Reshape", {"Mul", "q half", "qs", 0}, {"Transpose", "qs", "qt", "perm=[0,2,1,3]"},
                     {"Transpose", "k", "ku", "perm=[0,2,1,3]"}, {"Transpose", "ku", "kv", "perm=[0,1,3,2]"},
                     {"Div", "kv two", "kt", 0}, {"Transpose", "v", "vt", "perm=[0,2,1,3]"},
                     {"MatMul", "qt kt", "s", 0}, {"Softmax", "s", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0}, JOIN);
    /* The scale of v is not one of the scores'. */
    EXPECT_ATTENTION("Transpose Mul Attention Reshape", {"Transpose", "q", "qt", "perm=[0,2,1,3]"},
                     {"Transpose", "k", "kt", "perm=[0,2,3,1]"}, {"Transpose", "v", "vu", "perm=[0,2,1,3]"},
                     {"Mul", "vu half", "vt", 0}, {"MatMul", "qt kt", "s", 0}, {"Softmax", "s", "p", "axis=-1"},
                     {"MatMul", "p vt", "o", 0}, JOIN);
    /* The probabilities have another reader; the Softmax is over another axis. */
    EXPECT_ATTENTION("Transpose Transpose Transpose MatMul Softmax MatMul ReduceMean Add", HEADS,
                     {"MatMul", "qt kt", "s", 0}, {"Softmax", "s", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0},
                     {"ReduceMean", "p", "m", "axes=[-1]"}, {"Add", "o m", "y", 0});
    EXPECT_ATTENTION("Transpose Transpose Transpose MatMul Softmax MatMul Transpose Reshape", HEADS,
                     {"MatMul", "qt kt", "s", 0}, {"Softmax", "s", "p", "axis=2"}, {"MatMul", "p vt", "o", 0}, JOIN);
}

/* ---- less to look at ---- */

static void drop_identities(void **state)
{
    (void)state;
    static const int64_t shape[] = {2, 4, 5, 5}, zeros[8] = {0}, ends[] = {9, 9}, axes[] = {1, 2}, minus[] = {-1, -1},
                         begins[] = {-1, -1}, back[] = {-9, -9};
    model_builder *m = begin();
    scalar(m, "one", 1.0f);
    ints(m, "shape", "4", shape);
    ints(m, "zeros", "8", zeros);
    ints(m, "starts", "2", zeros);
    ints(m, "ends", "2", ends);
    ints(m, "axes", "2", axes);
    mb_node(m, "Identity", "x", "v0", "");
    mb_node(m, "Relu", "v0", "v1", "");
    mb_node(m, "Dropout", "v1", "v2", "");
    mb_node(m, "Cast", "v2", "v3", "to=1");
    mb_node(m, "Transpose", "v3", "v4", "perm=[0,1,2,3]");
    mb_node(m, "Reshape", "v4 shape", "v5", "");
    mb_node(m, "Concat", "v5", "v6", "axis=1");
    mb_node(m, "Pad", "v6 zeros", "v7", "");
    mb_node(m, "Slice", "v7 starts ends axes", "v8", "");
    mb_node(m, "Expand", "v8 shape", "v9", "");
    mb_node(m, "Mul", "one v9", "v10", "");
    mb_node(m, "Div", "v10 one", "v11", "");
    mb_node(m, "Exp", "v11", "v12", "");
    mb_node(m, "Identity", "v12", "y", "");
    output(m, "y");
    expect(m, "Relu Exp");

    m = begin(); /* backwards is not everything */
    ints(m, "begins", "2", begins);
    ints(m, "back", "2", back);
    ints(m, "axes", "2", axes);
    ints(m, "minus", "2", minus);
    mb_node(m, "Slice", "x begins back axes minus", "y", "");
    output(m, "y");
    expect(m, "Slice");

    m = begin(); /* -0 + 0 is 0 */
    scalar(m, "zero", 0.0f);
    mb_node(m, "Add", "x zero", "s", "");
    mb_node(m, "Relu", "s", "y", "");
    output(m, "y");
    expect(m, "Add Relu");

    m = begin(); /* between an input and an output of the graph there is nobody else to make it */
    mb_node(m, "Identity", "x", "y", "");
    output(m, "y");
    expect(m, "Identity");

    m = begin(); /* two outputs, one value */
    mb_node(m, "Relu", "x", "r", "");
    mb_node(m, "Identity", "r", "y", "");
    output(m, "r");
    output(m, "y");
    expect(m, "Relu Identity");
}

static void merge_moves(void **state)
{
    (void)state;
    static const int64_t flat[] = {2, -1}, front[] = {0};
    model_builder *m = begin();
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[1,0,3,2]");
    mb_node(m, "Relu", "u", "y", "");
    output(m, "y");
    expect(m, "Transpose Relu");

    m = begin(); /* and back again */
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[0,3,1,2]");
    mb_node(m, "Relu", "u", "y", "");
    output(m, "y");
    expect(m, "Relu");

    m = begin();
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[1,0,3,2]");
    mb_node(m, "Relu", "t", "r", "");
    output(m, "u");
    output(m, "r");
    expect(m, "Transpose Transpose Relu");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "1,4,1,6");
    mb_node(m, "Transpose", "x", "y", "perm=[1,0,3,2]");
    output(m, "y");
    expect(m, "Reshape");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "1,4,2,6");
    mb_node(m, "Transpose", "x", "y", "perm=[1,0,3,2]");
    output(m, "y");
    expect(m, "Transpose");

    m = begin();
    ints(m, "flat", "2", flat);
    ints(m, "front", "1", front);
    mb_node(m, "Reshape", "x flat", "f", "");
    mb_node(m, "Unsqueeze", "f front", "g", "");
    mb_node(m, "Flatten", "g", "h", "axis=0");
    mb_node(m, "Relu", "h", "y", "");
    output(m, "y");
    expect(m, "Reshape Relu");
}

static void share_subexpressions(void **state)
{
    (void)state;
    EXPECT_STEPS("Exp Add", {"Exp", "x", "a", 0}, {"Exp", "x", "b", 0}, {"Add", "a b", "y", 0});
    EXPECT_STEPS("LeakyRelu LeakyRelu Add", {"LeakyRelu", "x", "a", "alpha=0.1"}, {"LeakyRelu", "x", "b", "alpha=0.2"},
                 {"Add", "a b", "y", 0});
    EXPECT_STEPS("Sub Sub Mul", {"Sub", "x k3", "a", 0}, {"Sub", "k3 x", "b", 0}, {"Mul", "a b", "y", 0});
}

/* ---- what is around ---- */

static prony_status double_it(const prony_context *context)
{
    const float *x = context->inputs[0]->data;
    float *y = context->outputs[0]->data;
    for (int64_t i = 0; i < prony_shape_numel(&context->inputs[0]->shape); i++) y[i] = 2.0f * x[i];
    return PRONY_OK;
}

static prony_status no_cost(const prony_context *context, prony_cost *cost)
{
    (void)context;
    (void)cost;
    return PRONY_OK;
}

/* A user's operator called Relu is not Relu. */
static void leave_custom_operators(void **state)
{
    (void)state;
    prony_registry *registry;
    assert_int_equal(prony_registry_create(&registry, NULL), PRONY_OK);
    prony_operator relu = PRONY_OPERATOR_INIT;
    relu.name = "Relu";
    relu.infer = prn_infer_same;
    relu.cost = no_cost;
    relu.run = double_it;
    assert_int_equal(prony_registry_add(registry, &relu, NULL), PRONY_OK);
    model_builder *m = begin();
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Relu", "c", "s", "");
    mb_node(m, "Add", "r s", "y", "");
    output(m, "y");
    expect_with(registry, m, "Conv Relu Relu Add");
    prony_registry_release(registry);
}

/* The shape of what the convolution reads is known at run time only. */
static void leave_dynamic_nodes(void **state)
{
    (void)state;
    model_builder *m = begin();
    mb_input(m, "keep", PRONY_BOOL, "2");
    mb_node(m, "Exp", "x", "e", "");
    mb_node(m, "NonZero", "keep", "rows", "");
    static const int64_t flat[] = {-1};
    ints(m, "flat", "1", flat);
    mb_node(m, "Reshape", "rows flat", "index", "");
    mb_node(m, "Gather", "e index", "g", "axis=0");
    conv(m, "g w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Identity", "r", "y", "");
    output(m, "y");
    expect(m, "Exp NonZero Reshape Gather Conv Relu Identity");
}

/* A subgraph is rewritten as well; what it captures has a reader. */
static void rewrite_subgraphs(void **state)
{
    (void)state;
    model_builder *m = begin();
    mb_input(m, "cond", PRONY_BOOL, "");
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "If", "cond", "z", "");
    mb_graph_begin(m, "then_branch");
    conv(m, "c w", "t");
    mb_node(m, "Relu", "t", "u", "");
    output(m, "u");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Exp", "c", "v", "");
    output(m, "v");
    mb_graph_end(m);
    mb_node(m, "Add", "r z", "y", "");
    output(m, "y");

    loaded l;
    load(&l, m, NULL);
    prn_program *before, *after;
    assert_int_equal(bind(&l, &before), PRONY_OK);
    assert_int_equal(bind(&l, &after), PRONY_OK);
    assert_int_equal(prn_program_rewrite(after, &l.error), PRONY_OK);
    char text[256];
    describe(after, text, sizeof text);
    assert_string_equal(text, "Conv Relu If Add");
    const prn_node_def *branch = after->nodes[2];
    assert_int_equal(branch->child_count, 2);
    describe(branch->children[0].program, text, sizeof text);
    assert_string_equal(text, "Conv[relu]");
    check_well_formed(after);
    check_conserved(before, after);
    check_runs(before, after);
    prn_program_release(before);
    prn_program_release(after);
    unload(&l);
    mb_free(m);
}

/* Whichever allocation fails, the error says so and everything is given back. */
static void survive_no_memory(void **state)
{
    (void)state;
    model_builder *m = begin();
    conv(m, "x w", "c");
    batch_norm(m, "c", "n", "4");
    mb_node(m, "Sigmoid", "n", "s", "");
    mb_node(m, "Mul", "n s", "p", "");
    mb_node(m, "Add", "p x", "q", "");
    mb_node(m, "Transpose", "q", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[0,2,1,3]");
    output(m, "u");
    loaded l;
    load(&l, m, NULL);
    uint64_t failures = 0;
    for (bool failed = true; failed;) {
        prn_program *program;
        assert_int_equal(bind(&l, &program), PRONY_OK);
        prn_alloc_fail_at(failures + 1);
        prony_status status = prn_program_rewrite(program, &l.error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        failures += failed;
        prn_program_release(program);
    }
    assert_true(failures >= 4);
    unload(&l);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_batch_norm),
        cmocka_unit_test(keep_batch_norm),
        cmocka_unit_test(fold_scale_and_shift),
        cmocka_unit_test(keep_scale_and_shift),
        cmocka_unit_test(attach_activations),
        cmocka_unit_test(keep_activations),
        cmocka_unit_test(attach_residuals),
        cmocka_unit_test(keep_residuals),
        cmocka_unit_test(match_gated),
        cmocka_unit_test(match_gelu),
        cmocka_unit_test(match_layer_norm),
        cmocka_unit_test(match_attention),
        cmocka_unit_test(drop_identities),
        cmocka_unit_test(merge_moves),
        cmocka_unit_test(share_subexpressions),
        cmocka_unit_test(leave_custom_operators),
        cmocka_unit_test(leave_dynamic_nodes),
        cmocka_unit_test(rewrite_subgraphs),
        cmocka_unit_test(survive_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
