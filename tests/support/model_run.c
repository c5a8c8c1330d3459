/* The tests' way from a builder to outputs. It owns the builder and everything it opens. */
#include "tests/support/model_run.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "engine/session/session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

prony_shape mr_shape(const char *dims)
{
    prony_shape shape = {0};
    while (*dims) {
        char *end;
        shape.dim[shape.rank++] = strtoll(dims, &end, 10);
        dims = *end == ',' ? end + 1 : end;
    }
    return shape;
}

static prony_status load(const model_run *r, const void *bytes, size_t size, prony_model **out, prony_error *error)
{
    prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
    options.registry = r->registry;
    return prony_model_load_memory(out, "built", bytes, size, &options, error);
}

prony_status mr_try_open(model_run *r, model_builder *m)
{
    size_t size;
    const void *bytes = mb_finish(m, &size);
    r->builder = m;
    r->options.struct_size = sizeof r->options;
    prony_status status = load(r, bytes, size, &r->model, &r->error);
    if (status == PRONY_OK) status = prony_session_create(&r->session, r->model, &r->options, &r->error);
    return status;
}

void mr_open(model_run *r, model_builder *m)
{
    if (mr_try_open(r, m) != PRONY_OK) fail_msg("%s", r->error.message);
}

void mr_set_value(model_run *r, const char *name, const prony_value *value)
{
    size_t k = 0;
    while (k < r->input_count && strcmp(r->inputs[k].name, name) != 0) k++;
    assert_true(k < MR_MAX_INPUTS);
    r->inputs[k] = (mr_input){name, *value};
    if (k == r->input_count) r->input_count++;
    if (prony_session_set_input(r->session, name, value, &r->error) != PRONY_OK) fail_msg("%s", r->error.message);
}

void mr_set(model_run *r, const char *name, prony_dtype dtype, const char *dims, const void *data)
{
    prony_value value = {.dtype = dtype, .shape = mr_shape(dims), .data = (void *)(uintptr_t)data};
    mr_set_value(r, name, &value);
}

const prony_value *mr_output(model_run *r, size_t index)
{
    const prony_value *value = NULL;
    if (prony_session_output(r->session, index, &value, &r->error) != PRONY_OK) fail_msg("%s", r->error.message);
    return value;
}

const prony_value *mr_run(model_run *r, size_t index)
{
    if (prony_session_run(r->session, &r->error) != PRONY_OK) fail_msg("%s", r->error.message);
    return mr_output(r, index);
}

prony_report *mr_profile(model_run *r)
{
    prony_report *report = NULL;
    prony_profile_options once = PRONY_PROFILE_OPTIONS_INIT;
    once.warmup_runs = 0;
    once.runs = 1;
    if (prony_session_profile(&report, r->session, &once, &r->error) != PRONY_OK) fail_msg("%s", r->error.message);
    return report;
}

void mr_refused(model_run *r, prony_status status, const char *text)
{
    memset(&r->error, 0, sizeof r->error);
    assert_int_equal(prony_session_run(r->session, &r->error), status);
    if (!strstr(r->error.message, text)) fail_msg("'%s' does not say '%s'", r->error.message, text);
}

void mr_expect(const prony_value *got, prony_dtype dtype, const char *dims, const void *wanted)
{
    prony_value want = {.dtype = dtype, .shape = mr_shape(dims)};
    char came[PRN_SHAPE_TEXT_BYTES], text[PRN_SHAPE_TEXT_BYTES];
    assert_int_equal(got->kind, PRONY_TENSOR);
    if (got->dtype != dtype || !prn_shape_equal(&got->shape, &want.shape))
        fail_msg("got %s, wanted %s", prn_value_text(got, came), prn_value_text(&want, text));
    if (prn_value_bytes(&want)) assert_memory_equal(got->data, wanted, prn_value_bytes(&want));
}

void mr_expect_near(const prony_value *got, const char *dims, const double *wanted)
{
    const prony_shape shape = mr_shape(dims);
    assert_int_equal(got->dtype, PRONY_FLOAT32);
    assert_true(prn_shape_equal(&got->shape, &shape));
    for (int64_t i = 0; i < prony_shape_numel(&shape); i++) {
        const double is = (double)((const float *)got->data)[i];
        if (!(fabs(is - wanted[i]) <= 1e-5 * (1 + fabs(wanted[i]))))
            fail_msg("element %d is %g, wanted %g", (int)i, is, wanted[i]);
    }
}

void mr_expect_text(const prony_value *got, const char *dims, const char *wanted)
{
    prony_shape shape = mr_shape(dims);
    assert_int_equal(got->dtype, PRONY_STRING);
    assert_true(prn_shape_equal(&got->shape, &shape));
    const prony_string *strings = got->data;
    for (int64_t i = 0; i < prony_shape_numel(&shape); i++) {
        size_t size = strcspn(wanted, "|");
        if (strings[i].size != size || memcmp(strings[i].data, wanted, size) != 0)
            fail_msg("string %lld is '%.*s', wanted '%.*s'", (long long)i, (int)strings[i].size, strings[i].data,
                     (int)size, wanted);
        wanted += size + (wanted[size] == '|');
    }
}

static prn_arena_figures figures_of(const model_run *r)
{
    prn_arena_figures figures;
    prn_arena_read(r->session->current->plan->memory.arena, &figures);
    return figures;
}

uint64_t mr_live_bytes(const model_run *r)
{
    return figures_of(r).live_bytes;
}

uint64_t mr_peak_bytes(const model_run *r)
{
    return figures_of(r).peak_live_bytes;
}

uint64_t mr_asked_bytes(const model_run *r)
{
    return figures_of(r).asked_bytes;
}

void mr_close(model_run *r)
{
    prony_session_release(r->session);
    prony_model_release(r->model);
    mb_free(r->builder);
    *r = (model_run){0};
}

static prony_status life(const model_run *r, prony_error *error)
{
    size_t size;
    prony_model *model = NULL;
    prony_session *session = NULL;
    const void *bytes = mb_finish(r->builder, &size);
    prony_status status = load(r, bytes, size, &model, error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &r->options, error);
    for (size_t i = 0; i < r->input_count && status == PRONY_OK; i++)
        status = prony_session_set_input(session, r->inputs[i].name, &r->inputs[i].value, error);
    for (int run = 0; run < 2 && status == PRONY_OK; run++) status = prony_session_run(session, error);
    prony_session_release(session);
    prony_model_release(model);
    return status;
}

void mr_survives_faults(model_run *r)
{
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        prony_error error = {0};
        prn_alloc_fail_at(n);
        prony_status status = life(r, &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (status != (failed ? PRONY_OUT_OF_MEMORY : PRONY_OK))
            fail_msg("allocation %llu: status %d, %s", (unsigned long long)n, (int)status, error.message);
    }
    assert_true(n > 20);
}
