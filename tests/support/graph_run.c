/* From a random graph to outputs, with the plan's options in the caller's hand. */
#include "tests/support/graph_run.h"
#include "tests/support/plan_replay.h"

#include "base/shape.h"
#include "engine/plan/planner.h"
#include "engine/rewrites/rewrite.h"
#include "engine/run/services.h"
#include "ops/kernels/vector/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIPS = 64 };

static void *must(void *block)
{
    if (!block) abort();
    return block;
}

prony_status graph_open(graph_model *m, const random_graph *g)
{
    size_t size;
    *m = (graph_model){.builder = random_graph_build(g)};
    const void *bytes = mb_finish(m->builder, &size);
    m->inputs = must(calloc(g->main.input_count + 1, sizeof *m->inputs));
    m->input_count = g->main.input_count;
    for (size_t i = 0; i < m->input_count; i++) {
        const rg_value *value = &g->values[g->main.inputs[i]];
        m->inputs[i] = (prony_value){.dtype = value->dtype, .shape = value->shape};
        m->inputs[i].data = must(malloc(prn_value_bytes(&m->inputs[i]) + 1));
        random_graph_fill(g, i, -1, m->inputs[i].data);
    }
    m->model.services = &prn_engine_services;
    prony_status status = prn_model_parse(&m->model.file, "random", bytes, size, &m->error);
    return status == PRONY_OK ? prn_weight_cache_create(&m->model.shared, &m->error) : status;
}

void graph_close(graph_model *m)
{
    for (size_t i = 0; i < m->input_count; i++) free(m->inputs[i].data);
    free(m->inputs);
    if (m->model.shared) prn_weight_cache_release(m->model.shared);
    if (m->model.file) prn_model_close(m->model.file);
    mb_free(m->builder);
}

void graph_outputs_free(graph_outputs *outputs)
{
    for (size_t k = 0; k < outputs->count; k++) free(outputs->values[k].data);
    free(outputs->values);
    *outputs = (graph_outputs){0};
}

static void copy_outputs(const prn_plan *plan, graph_outputs *out)
{
    out->count = plan->program->output_count;
    out->values = must(calloc(out->count + 1, sizeof *out->values));
    for (size_t k = 0; k < out->count; k++) {
        out->values[k] = plan->values[plan->outputs[k]]->value;
        size_t bytes = prn_value_bytes(&out->values[k]);
        void *copy = must(malloc(bytes + 1));
        if (bytes) memcpy(copy, out->values[k].data, bytes);
        out->values[k].data = copy;
    }
}

static prony_status run_once(graph_model *m, prn_plan *plan, uint64_t replay, graph_outputs *out)
{
    prn_arena_run_begin(plan->memory.arena);
    PRN_TRY(replay && plan->parallel.schedule ? plan_replay(plan, replay, &m->error)
                                              : prn_plan_run(plan, NULL, &m->error));
    copy_outputs(plan, out);
    prn_plan_forget(plan);
    uint64_t left = prn_arena_run_end(plan->memory.arena);
    if (left) return prn_fail(&m->error, PRONY_INTERNAL, "%llu dynamic bytes are left", (unsigned long long)left);
    return PRONY_OK;
}

static prony_status run_plan(graph_model *m, prn_plan *plan, const graph_way *way, graph_outputs *out)
{
    const prn_program *program = plan->program;
    for (size_t i = 0; i < m->input_count; i++) plan->values[program->inputs[i]]->value.data = m->inputs[i].data;
    prn_plan_point(plan, plan->memory.base);
    PRN_TRY(run_once(m, plan, way->replay, out));
    for (int again = 1; again < way->runs; again++) {
        graph_outputs next = {0};
        char text[PRONY_ERROR_MESSAGE_BYTES] = "";
        prony_status status = run_once(m, plan, way->replay ? way->replay + (uint64_t)again : 0, &next);
        if (status == PRONY_OK && !graph_same(out, &next, text, sizeof text))
            status = prn_fail(&m->error, PRONY_INTERNAL, "run %d of one plan differs: %s", again + 1, text);
        graph_outputs_free(&next);
        PRN_TRY(status);
    }
    return PRONY_OK;
}

static prony_status staff(prn_plan *plan, const graph_way *way, prony_error *error)
{
    prn_thread_pool *team = NULL;
    if (!plan->parallel.schedule || way->replay) return PRONY_OK;
    PRN_TRY(prn_thread_pool_create(&team, way->workers * way->threads - 1, false, error));
    prony_status status = prn_schedule_staff(plan->parallel.schedule, team, error);
    prn_thread_pool_release(team);
    return status;
}

static prony_status bind_and_run(graph_model *m, const graph_way *way, prn_program **program, prn_plan **plan,
                                 graph_outputs *out)
{
    prony_value *types = must(calloc(m->input_count + 1, sizeof *types));
    for (size_t i = 0; i < m->input_count; i++) {
        types[i] = m->inputs[i];
        types[i].data = NULL;
    }
    prn_bind_options bind = {.inputs = types, .input_count = m->input_count};
    prony_status status = prn_program_bind(program, &m->model, &m->model.file->graph, NULL, NULL, &bind, &m->error);
    free(types);
    PRN_TRY(status);
    if (!way->no_rewrites) PRN_TRY(prn_program_rewrite_counted(*program, way->fired, &m->error));
    if (!prn_program_trim(*program, NULL)) abort();
    prn_plan_options options = {.precision = way->precision,
                                .threads = way->threads,
                                .workers = way->workers,
                                .no_work_stealing = way->no_work_stealing,
                                .max_loop_trips = MOST_TRIPS,
                                .no_reuse = way->no_reuse,
                                .fill_dead = way->fill_dead};
    PRN_TRY(prn_plan_create(plan, *program, NULL, &options, &m->error));
    PRN_TRY(staff(*plan, way, &m->error));
    return run_plan(m, *plan, way, out);
}

void graph_run(graph_model *m, const graph_way *way, graph_outputs *out)
{
    prn_program *program = NULL;
    prn_plan *plan = NULL;
    *out = (graph_outputs){0};
    m->error.message[0] = '\0';
    out->status = bind_and_run(m, way, &program, &plan, out);
    snprintf(out->message, sizeof out->message, "%s", out->status == PRONY_OK ? "" : m->error.message);
    if (plan) {
        prn_plan_forget(plan);
        (void)prn_arena_run_end(plan->memory.arena);
    }
    prn_plan_release(plan);
    prn_program_release(program);
}

/* ---- comparing ---- */

static bool same_types(const graph_outputs *a, const graph_outputs *b, char *text, size_t size)
{
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    bool same = a->count == b->count;
    if (!same) snprintf(text, size, "%zu and %zu outputs", a->count, b->count);
    for (size_t k = 0; k < a->count && same; k++) {
        same = a->values[k].dtype == b->values[k].dtype && prn_shape_equal(&a->values[k].shape, &b->values[k].shape);
        if (!same)
            snprintf(text, size, "output %zu is %s and %s", k, prn_value_text(&a->values[k], left),
                     prn_value_text(&b->values[k], right));
    }
    return same;
}

double graph_element(const prony_value *value, size_t i)
{
    switch (value->dtype) {
    case PRONY_FLOAT32:
        return (double)((const float *)value->data)[i];
    case PRONY_FLOAT64:
        return ((const double *)value->data)[i];
    case PRONY_FLOAT16:
        return (double)prn_f16_to_f32(((const uint16_t *)value->data)[i]);
    case PRONY_INT64:
        return (double)((const int64_t *)value->data)[i];
    case PRONY_INT32:
        return ((const int32_t *)value->data)[i];
    case PRONY_INT16:
        return ((const int16_t *)value->data)[i];
    case PRONY_UINT16:
        return ((const uint16_t *)value->data)[i];
    case PRONY_INT8:
        return ((const int8_t *)value->data)[i];
    default:
        return ((const uint8_t *)value->data)[i];
    }
}

bool graph_same(const graph_outputs *a, const graph_outputs *b, char *text, size_t size)
{
    if (!same_types(a, b, text, size)) return false;
    for (size_t k = 0; k < a->count; k++) {
        size_t bytes = prn_value_bytes(&a->values[k]), width = prony_dtype_bytes(a->values[k].dtype, 1), at = 0;
        if (!bytes || memcmp(a->values[k].data, b->values[k].data, bytes) == 0) continue;
        while (memcmp((char *)a->values[k].data + at * width, (char *)b->values[k].data + at * width, width) == 0) at++;
        snprintf(text, size, "output %zu element %zu is %.9g and %.9g", k, at, graph_element(&a->values[k], at),
                 graph_element(&b->values[k], at));
        return false;
    }
    return true;
}

bool graph_near(const graph_outputs *a, const graph_outputs *b, double bound, char *text, size_t size)
{
    if (!same_types(a, b, text, size)) return false;
    for (size_t k = 0; k < a->count; k++) {
        size_t count = prn_value_bytes(&a->values[k]) / prony_dtype_bytes(a->values[k].dtype, 1);
        double scale = 1;
        for (size_t i = 0; i < count; i++) {
            double x = fabs(graph_element(&a->values[k], i));
            if (isfinite(x) && x > scale) scale = x;
        }
        for (size_t i = 0; i < count; i++) {
            double x = graph_element(&a->values[k], i), y = graph_element(&b->values[k], i);
            if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= bound * scale) continue;
            snprintf(text, size, "output %zu element %zu is %.9g and %.9g", k, i, x, y);
            return false;
        }
    }
    return true;
}
