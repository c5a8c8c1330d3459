/* Building, checking and running the small programs of the rewrite tests. An unexpected result fails the running
 * test. */
#include "rewrite_check.h"

#include "base/shape.h"
#include "engine/plan/planner.h"
#include "engine/rewrites/rewrite.h"
#include "engine/run/services.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- models ---- */

static uint32_t state;

void rc_seed(uint32_t seed)
{
    state = seed;
}

static float next_float(float low, float high)
{
    state = state * 1664525u + 1013904223u;
    return low + (high - low) * (float)(state >> 8) / 16777216.0f;
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

void rc_weights_in(model_builder *m, const char *name, const char *dims, float low, float high)
{
    float data[4096];
    int64_t count = elements_of(dims);
    assert_true(count <= 4096);
    for (int64_t i = 0; i < count; i++) data[i] = next_float(low, high);
    mb_initializer(m, name, PRONY_FLOAT32, dims, data);
}

void rc_weights(model_builder *m, const char *name, const char *dims)
{
    rc_weights_in(m, name, dims, -1.0f, 1.0f);
}

void rc_scalar(model_builder *m, const char *name, float value)
{
    mb_initializer(m, name, PRONY_FLOAT32, "", &value);
}

void rc_ints(model_builder *m, const char *name, const char *dims, const int64_t *values)
{
    mb_initializer(m, name, PRONY_INT64, dims, values);
}

model_builder *rc_begin(void)
{
    rc_seed(1);
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,4,5,5");
    rc_weights(m, "w", "4,4,3,3");
    rc_weights(m, "b", "4");
    return m;
}

void rc_output(model_builder *m, const char *name)
{
    mb_output(m, name, PRONY_FLOAT32, NULL);
}

void rc_conv(model_builder *m, const char *inputs, const char *output)
{
    mb_node(m, "Conv", inputs, output, "pads=[1,1,1,1]");
}

void rc_batch_norm(model_builder *m, const char *x, const char *y, const char *channels)
{
    rc_weights_in(m, "gamma", channels, 0.5f, 2.0f);
    rc_weights(m, "beta", channels);
    rc_weights(m, "mean", channels);
    rc_weights_in(m, "var", channels, 0.1f, 2.0f);
    char inputs[64];
    snprintf(inputs, sizeof inputs, "%s gamma beta mean var", x);
    mb_node(m, "BatchNormalization", inputs, y, "epsilon=0.001");
}

void rc_steps(model_builder *m, const rc_step *steps)
{
    for (; steps->op; steps++)
        mb_node(m, steps->op, steps->inputs, steps->output, steps->attributes ? steps->attributes : "");
}

/* ---- programs ---- */

void rc_load(rc_model *l, model_builder *m, prony_registry *registry)
{
    size_t size;
    const void *bytes = mb_finish(m, &size);
    *l = (rc_model){.model = {.registry = registry}};
    l->model.services = &prn_engine_services;
    if (prn_model_parse(&l->model.file, "case.onnx", bytes, size, &l->error) != PRONY_OK)
        fail_msg("%s", l->error.message);
    if (prn_weight_cache_create(&l->model.shared, &l->error) != PRONY_OK) fail_msg("%s", l->error.message);
}

void rc_unload(rc_model *l)
{
    prn_weight_cache_release(l->model.shared);
    prn_model_close(l->model.file);
}

prony_status rc_bind(rc_model *l, prn_program **out)
{
    prony_value inputs[8] = {0};
    const prn_graph *graph = &l->model.file->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        inputs[i].dtype = graph->inputs[i].dtype;
        inputs[i].shape = graph->inputs[i].shape;
    }
    prn_bind_options options = {.inputs = inputs, .input_count = graph->input_count};
    return prn_program_bind(out, &l->model, graph, NULL, NULL, &options, &l->error);
}

void rc_describe(const prn_program *program, char *text, size_t size)
{
    static const char *const kinds[] = {
        [PRN_POST_RELU] = "relu",
        [PRN_POST_CLIP] = "clip",
        [PRN_POST_LEAKY_RELU] = "leaky",
        [PRN_POST_SIGMOID] = "sigmoid",
        [PRN_POST_TANH] = "tanh",
        [PRN_POST_HARD_SIGMOID] = "hardsigmoid",
        [PRN_POST_HARD_SWISH] = "hardswish",
        [PRN_POST_SILU] = "silu",
        [PRN_POST_GELU_ERF] = "gelu",
        [PRN_POST_AFFINE] = "affine",
        [PRN_POST_ADD] = "add",
    };
    size_t used = 0;
    *text = 0;
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        if (node->dead) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", node->info.op_type);
        for (size_t k = 0; node->post_ops && k < node->post_ops->count; k++)
            used +=
                (size_t)snprintf(text + used, size - used, "%c%s", k ? ',' : '[', kinds[node->post_ops->op[k].kind]);
        if (node->post_ops) used += (size_t)snprintf(text + used, size - used, "]");
        assert_true(used < size);
    }
}

void rc_check_well_formed(const prn_program *p)
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
            const prony_cost cost = prn_layer_cost(&p->layers[node->layers[l]]);
            assert_true(prn_cost_add(&sum, &cost));
        }
    }
    free(seen);
    return sum;
}

void rc_check_conserved(const prn_program *before, const prn_program *after)
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
    rc_seed(7);
    for (size_t i = 0; i < program->input_count; i++) {
        prony_value *value = &plan->values[program->inputs[i]]->value;
        data[i] = calloc(prn_value_bytes(value) + 1, 1);
        assert_non_null(data[i]);
        fill_input(value, program->values[program->inputs[i]]->name, data[i]);
        value->data = data[i];
    }
    prn_plan_point(plan, plan->memory.base);
    prn_arena_run_begin(plan->memory.arena);
    if (prn_plan_run(plan, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    for (size_t k = 0; k < program->output_count; k++) {
        outputs[k] = plan->values[plan->outputs[k]]->value;
        size_t bytes = prn_value_bytes(&outputs[k]);
        void *copy = malloc(bytes + 1);
        assert_non_null(copy);
        memcpy(copy, outputs[k].data, bytes);
        outputs[k].data = copy;
    }
    prn_arena_run_end(plan->memory.arena);
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
        if (isinf(x) && x == y) {
            largest = fmax(largest, DBL_MIN);
            continue;
        }
        assert_true(isfinite(x) && isfinite(y));
        largest = fmax(largest, fabs(x));
        difference = fmax(difference, fabs(x - y));
    }
    assert_true(largest > 0);
    if (difference > 2e-6 * largest) fail_msg("outputs differ by %g, the largest is %g", difference, largest);
}

void rc_check_runs(prn_program *before, prn_program *after)
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

void rc_expect_with(prony_registry *registry, model_builder *m, const char *wanted)
{
    rc_model l;
    rc_load(&l, m, registry);
    prn_program *before = NULL, *after = NULL;
    if (rc_bind(&l, &before) != PRONY_OK || rc_bind(&l, &after) != PRONY_OK ||
        prn_program_rewrite(after, &l.error) != PRONY_OK)
        fail_msg("%s", l.error.message);
    char text[512];
    rc_describe(after, text, sizeof text);
    assert_string_equal(text, wanted);
    rc_check_well_formed(after);
    rc_check_conserved(before, after);
    assert_true(prn_program_trim(after, NULL));
    rc_check_runs(before, after);
    prn_program_release(before);
    prn_program_release(after);
    rc_unload(&l);
    mb_free(m);
}

void rc_expect(model_builder *m, const char *wanted)
{
    rc_expect_with(NULL, m, wanted);
}
