/* Generators on an OpenCL device beside the host: caches stay there, and a step copies its new rows alone. Skipped without a
 * device. */
#include "base/memory/alloc.h"
#include "decoder_model.h"
#include "engine/session/session.h"
#include "ops/device.h"
#include "tests/support/device_here.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_library.h"
#endif

/* A generator on the host and one on the device, which must agree. */
typedef struct pair {
    generation host, device;
    size_t batch;
} pair;

static void pair_begin(pair *p, const decoder_style *style, const prony_generator_options *options)
{
    p->batch = options->batch ? (size_t)options->batch : 1;
    generation_begin_on(&p->host, NULL, style, options);
    generation_begin_on(&p->device, "opencl", style, options);
}

static void pair_end(pair *p)
{
    generation_end(&p->host);
    generation_end(&p->device);
}

static void pair_prompt(pair *p, const int64_t *ids, const size_t *lengths)
{
    generation_prompt(&p->host, ids, lengths);
    generation_prompt(&p->device, ids, lengths);
}

/* `count` times the next ids, with the logits that they were chosen by. */
static void pair_next(pair *p, size_t count)
{
    int64_t wanted[4], got[4];
    for (size_t n = 0; n < count; n++) {
        generation_next(&p->host, wanted, 1, p->batch);
        generation_next(&p->device, got, 1, p->batch);
        for (size_t b = 0; b < p->batch; b++) {
            size_t scores, others;
            const float *x = prony_generator_logits(p->host.generator, (int64_t)b, &scores),
                        *y = prony_generator_logits(p->device.generator, (int64_t)b, &others);
            assert_int_equal(scores, others);
            for (size_t i = 0; i < scores; i++)
                if (!(fabsf(x[i] - y[i]) <= 2e-5f * fmaxf(1.0f, fabsf(x[i]))))
                    fail_msg("token %zu, sequence %zu: logit %zu is %g on the host, %g on the device", n, b, i,
                             (double)x[i], (double)y[i]);
            assert_int_equal(got[b], wanted[b]);
        }
    }
}

/* The plan that steps share. */
static const prn_plan *step_plan(const generation *g)
{
    assert_ptr_equal(g->session->current, &g->session->open);
    return g->session->open.plan;
}

static size_t steps_with(const prn_plan *plan, const char *kernel)
{
    size_t count = 0;
    for (size_t s = 0; s < plan->step_count; s++)
        count += plan->steps[s]->kernel && strcmp(plan->steps[s]->kernel->name, kernel) == 0;
    return count;
}

/* No step copies a cache. */
static void expect_no_cache_copied(const generation *g)
{
    const prn_plan *plan = g->session->current->plan;
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        if (step->kernel && strncmp(step->kernel->name, "copy_", 5) == 0)
            assert_false(plan->program->values[plan->values[step->inputs[0]]->source]->input &&
                         plan->values[step->inputs[0]]->value.shape.rank == 4);
    }
}

static const int64_t both[] = {3, 1, 4, 1, 5, 9, 3, 1, 4};
static const size_t both_lengths[] = {6, 3};

static void steps_append_on_the_device(void **state)
{
    (void)state;
    static const struct {
        const decoder_style *style;
        const char *kernel;
    } of[] = {{&decoder_optimum, "attention_cache_f32_opencl"},
              {&decoder_grouped, "group_query_f32_opencl"},
              {&decoder_lengths, NULL}}; /* the length comes with the run, so the host attends */
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        for (int batch = 1; batch <= 2; batch++) {
            pair p;
            prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
            options.batch = batch;
            pair_begin(&p, of[k].style, &options);
            pair_prompt(&p, both, both_lengths);
            pair_next(&p, NEW);
            if (of[k].kernel) assert_int_equal(steps_with(step_plan(&p.device), of[k].kernel), 1);
            expect_no_cache_copied(&p.device);
            prony_generator_info host, device;
            prony_generator_get_info(p.host.generator, &host);
            prony_generator_get_info(p.device.generator, &device);
            assert_int_equal(device.cache_copied_bytes, host.cache_copied_bytes);
            pair_end(&p);
        }
    }
}

/* Rows that other plans write, and rows that are written again, reach the device. */
static void caches_change_elsewhere(void **state)
{
    (void)state;
    const decoder_style *const styles[] = {&decoder_optimum, &decoder_grouped};
    for (size_t k = 0; k < 2; k++) {
        for (int64_t chunk = 0; chunk <= 3; chunk += 3) {
            pair p;
            prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
            const size_t five = 5, two = 2, four = 4;
            options.chunk = chunk;
            pair_begin(&p, styles[k], &options);
            pair_prompt(&p, decoder_words, &five);
            pair_next(&p, 4);
            for (int64_t length = 7; length >= 3; length -= 2) {
                prony_error error = {0};
                assert_int_equal(prony_generator_rewind(p.host.generator, length, &error), PRONY_OK);
                assert_int_equal(prony_generator_rewind(p.device.generator, length, &error), PRONY_OK);
                pair_prompt(&p, decoder_words + length % 3, length == 5 ? &two : &four);
                pair_next(&p, 3);
            }
            pair_end(&p);
        }
    }
}

/* One plan for all lengths; nothing of the caches is left behind. */
static void steps_share_a_plan(void **state)
{
    (void)state;
    const size_t five = 5;
    generation keeper; /* keeps the device open, so that its counts stay comparable */
    generation_begin_on(&keeper, "opencl", &decoder_optimum, NULL);
    generation_prompt(&keeper, decoder_words, &five);
    int64_t ids[NEW];
    generation_next(&keeper, ids, 2, 1);
    const prn_device_use before = prn_device_usage(keeper.session->device);
    generation g;
    generation_begin_on(&g, "opencl", &decoder_optimum, NULL);
    generation_prompt(&g, decoder_words, &five);
    generation_next(&g, ids, 2, 1);
    const prn_plan *plan = step_plan(&g);
    const uint64_t bound = g.session->preparations.bound;
    const prn_device_use two = prn_device_usage(g.session->device);
    generation_next(&g, ids, NEW - 2, 1);
    assert_ptr_equal(step_plan(&g), plan);
    assert_int_equal(g.session->preparations.bound, bound);
    assert_true(g.session->preparations.respecialized >= NEW - 3);
    const prn_device_use all = prn_device_usage(g.session->device);
    assert_int_equal(all.bytes, two.bytes);
    assert_int_equal(all.kernels, two.kernels);
    generation_end(&g);
    const prn_device_use after = prn_device_usage(keeper.session->device);
    assert_int_equal(after.bytes, before.bytes);
    assert_int_equal(after.buffers, before.buffers);
    generation_end(&keeper);
}

#ifdef PRN_HAVE_OPENCL
/* Lets the n-th call of OpenCL, or the n-th allocation, fail; 0: none. */
typedef struct failing {
    void (*fail_at)(uint64_t n);
    bool (*failed)(void);
    const char *message; /* part of it */
} failing;

/* A step of which something fails says so; the next one gives the ids that it would have given. */
static void steps_that_fail(const failing *of)
{
    const decoder_style *const styles[] = {&decoder_optimum, &decoder_grouped};
    for (size_t k = 0; k < 2; k++) {
        pair p;
        const prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
        const size_t five = 5;
        size_t failures = 0;
        pair_begin(&p, styles[k], &options);
        pair_prompt(&p, decoder_words, &five);
        pair_next(&p, 2);
        for (uint64_t n = 1;; n++) {
            prony_error error = {0};
            int64_t id;
            of->fail_at(n);
            const prony_status status = prony_generator_next(p.device.generator, &id, NULL, &error);
            const bool failed = of->failed();
            of->fail_at(0);
            if (status == PRONY_OK) {
                int64_t wanted;
                generation_next(&p.host, &wanted, 1, 1);
                assert_int_equal(id, wanted);
            } else {
                assert_true(failed && strstr(error.message, of->message) != NULL);
                failures++;
            }
            if (!failed) break;
            pair_next(&p, 2);
            assert_int_equal(prony_generator_rewind(p.host.generator, 7, &error), PRONY_OK);
            assert_int_equal(prony_generator_rewind(p.device.generator, 7, &error), PRONY_OK);
        }
        assert_true(failures > 0);
        pair_end(&p);
    }
}

static void calls_that_fail(void **state)
{
    (void)state;
    steps_that_fail(&(failing){prn_opencl_fail_at, prn_opencl_failed, "opencl"});
}

static void memory_that_fails(void **state)
{
    (void)state;
    steps_that_fail(&(failing){prn_alloc_fail_at, prn_alloc_failed, "memory"});
}
#endif

/* GroupQueryAttention whose present rows are the past ones' bytes, as a program binds them. */
enum { GQA_ROWS = 8, GQA_SIZE = 8, GQA_PAST = 4 };
static float gqa_q[2 * GQA_SIZE], gqa_kv[2][GQA_SIZE];

static void gqa_open(model_run *r, const char *device, float (*cache)[GQA_ROWS * GQA_SIZE])
{
    model_builder *m = mb_begin(17);
    mb_input(m, "q", PRONY_FLOAT32, "1,1,16");
    mb_input(m, "k", PRONY_FLOAT32, "1,1,8");
    mb_input(m, "v", PRONY_FLOAT32, "1,1,8");
    mb_input(m, "pk", PRONY_FLOAT32, "1,1,8,8");
    mb_input(m, "pv", PRONY_FLOAT32, "1,1,8,8");
    mb_initializer(m, "lengths", PRONY_INT32, "1", &(const int32_t){GQA_PAST});
    mb_initializer(m, "total", PRONY_INT32, "1", &(const int32_t){GQA_PAST + 1});
    mb_node(m, "com.microsoft::GroupQueryAttention", "q k v pk pv lengths total", "y nk nv",
            "num_heads=2 kv_num_heads=1");
    mb_output(m, "y", PRONY_FLOAT32, "1,1,16");
    mb_output(m, "nk", PRONY_FLOAT32, "1,1,8,8");
    mb_output(m, "nv", PRONY_FLOAT32, "1,1,8,8");
    *r = (model_run){.options = {.device = device}};
    mr_open(r, m);
    mr_set(r, "q", PRONY_FLOAT32, "1,1,16", gqa_q);
    mr_set(r, "k", PRONY_FLOAT32, "1,1,8", gqa_kv[0]);
    mr_set(r, "v", PRONY_FLOAT32, "1,1,8", gqa_kv[1]);
    for (size_t i = 0; i < 2; i++) {
        const size_t bytes = sizeof cache[i];
        const prony_value past = {.dtype = PRONY_FLOAT32, .shape = mr_shape("1,1,8,8"), .data = cache[i]};
        assert_int_equal(prony_session_bind_input(r->session, i ? "pv" : "pk", &past, &r->error), PRONY_OK);
        assert_int_equal(prony_session_bind_output(r->session, 1 + i, cache[i], bytes, &r->error), PRONY_OK);
    }
}

/* Announced rows stay on the device until their host bytes change; others come with every run. New rows reach the host. */
static void announced_rows_stay(void **state)
{
    (void)state;
    static float host[2][GQA_ROWS * GQA_SIZE], device[2][GQA_ROWS * GQA_SIZE];
    for (size_t i = 0; i < 2 * GQA_SIZE; i++) gqa_q[i] = (float)i / 7 - 1;
    for (size_t i = 0; i < GQA_SIZE; i++) gqa_kv[0][i] = gqa_kv[1][i] = 1 - (float)i / 5;
    for (size_t i = 0; i < GQA_PAST * GQA_SIZE; i++) host[0][i] = host[1][i] = (float)(i * 7 % 11) / 5 - 1;
    memcpy(device, host, sizeof device);
    model_run a, b;
    gqa_open(&a, NULL, host);
    gqa_open(&b, "opencl", device);
    float first[2 * GQA_SIZE];
    memcpy(first, mr_run(&b, 0)->data, sizeof first);
    mr_run(&a, 0);
    assert_memory_equal(device, host, sizeof device);
    prony_error error = {0};
    for (size_t i = 0; i < 2; i++) {
        const prn_device_cache cache = {device[i], sizeof device[i], 0};
        assert_int_equal(prn_device_cache_open(b.session->device, &cache, &error), PRONY_OK);
    }
    assert_memory_equal(mr_run(&b, 0)->data, first, sizeof first);
    host[0][1] = device[0][1] = host[1][1] = device[1][1] = 3.0f;
    assert_memory_equal(mr_run(&b, 0)->data, first, sizeof first); /* not told */
    for (size_t i = 0; i < 2; i++) prn_device_cache_changed(b.session->device, device[i]);
    for (int told = 0; told < 2; told++) {
        const float *wanted = mr_run(&a, 0)->data, *got = mr_run(&b, 0)->data;
        assert_true(memcmp(got, first, sizeof first) != 0);
        for (size_t i = 0; i < 2 * GQA_SIZE; i++) assert_true(fabsf(got[i] - wanted[i]) < 1e-5f);
        for (size_t i = 0; i < 2; i++) prn_device_cache_close(b.session->device, device[i]); /* comes with every run */
    }
    mr_close(&a);
    mr_close(&b);
}

/* A generator on the device of this limit. The session's options are read when it plans. */
static void limited_begin(generation *g, const decoder_style *style, uint64_t limit, prony_device_split split)
{
    *g = (generation){0};
    generation_load_on(g, "opencl", decoder_model(style), 1);
    g->session->options.device_memory_limit_bytes = limit;
    g->session->options.device_split = split;
    assert_int_equal(prony_generator_create(&g->generator, g->session, NULL, &g->error), PRONY_OK);
}

/* Without a split, a limit of the device's memory that leaves no room for a cache ends a step, which says so. */
static void limits(void **state)
{
    (void)state;
    const size_t five = 5;
    int64_t ids[NEW];
    generation whole, g;
    generation_begin_on(&whole, "opencl", &decoder_optimum, NULL);
    generation_prompt(&whole, decoder_words, &five);
    generation_next(&whole, ids, 1, 1);
    const uint64_t plan_bytes = prn_device_usage(whole.session->device).bytes; /* of the prompt's */
    generation_end(&whole);
    limited_begin(&g, &decoder_optimum, plan_bytes + 1024, PRONY_DEVICE_SPLIT_NONE);
    generation_prompt(&g, decoder_words, &five);
    prony_status status = PRONY_OK;
    for (int n = 0; n < 3 && status == PRONY_OK; n++) status = prony_generator_next(g.generator, ids, NULL, &g.error);
    assert_int_equal(status, PRONY_LIMIT);
    assert_non_null(strstr(g.error.message, "of the device"));
    generation_end(&g);
}

static uint64_t most_bytes(const decoder_style *style)
{
    const size_t five = 5;
    int64_t ids[NEW];
    generation g;
    generation_begin_on(&g, "opencl", style, NULL);
    generation_prompt(&g, decoder_words, &five);
    generation_next(&g, ids, 4, 1);
    const uint64_t bytes = prn_device_usage(g.session->device).peak_bytes;
    generation_end(&g);
    return bytes;
}

/* Prompt and steps under a limit, with rows that are written again: the host's ids, or a refusal before the first run.
 * Returns true if the device ran an attention step that keeps its cache there. */
static bool generate_within(const decoder_style *style, const char *kernel, uint64_t limit)
{
    const size_t five = 5, two = 2;
    const prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    pair p = {.batch = 1};
    prony_error error = {0};
    bool kept = false;
    generation_begin_on(&p.host, NULL, style, &options);
    limited_begin(&p.device, style, limit, PRONY_DEVICE_SPLIT_AUTO);
    pair_prompt(&p, decoder_words, &five);
    int64_t wanted, got;
    const prony_status status = prony_generator_next(p.device.generator, &got, NULL, &error);
    if (status == PRONY_OK) {
        generation_next(&p.host, &wanted, 1, 1);
        assert_int_equal(got, wanted);
        pair_next(&p, 3);
        kept = steps_with(step_plan(&p.device), kernel) > 0;
        assert_true(prn_device_usage(p.device.session->device).bytes <= limit);
        assert_int_equal(prony_generator_rewind(p.host.generator, 4, &error), PRONY_OK);
        assert_int_equal(prony_generator_rewind(p.device.generator, 4, &error), PRONY_OK);
        pair_prompt(&p, decoder_words + 2, &two);
        pair_next(&p, 3);
    } else {
        assert_int_equal(status, PRONY_LIMIT);
        assert_non_null(strstr(error.message, "no room for a single operator"));
    }
    pair_end(&p);
    return kept;
}

/* Under any limit the steps run, with attention on the host where its cache does not fit. */
static void limits_that_split(void **state)
{
    (void)state;
    static const struct {
        const decoder_style *style;
        const char *kernel;
    } of[] = {{&decoder_optimum, "attention_cache_f32_opencl"}, {&decoder_grouped, "group_query_f32_opencl"}};
    enum { LIMITS = 6 };
    for (size_t k = 0; k < 2; k++) {
        const uint64_t most = most_bytes(of[k].style);
        size_t kept = 0;
        for (uint64_t i = 1; i <= LIMITS; i++)
            kept += generate_within(of[k].style, of[k].kernel, most * i / LIMITS + 64);
        assert_true(kept > 0 && kept < LIMITS);
    }
}

int main(void)
{
    enum { SKIPPED = 77 };
    if (!device_here()) return SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_append_on_the_device),
                                       cmocka_unit_test(caches_change_elsewhere),
                                       cmocka_unit_test(steps_share_a_plan),
#ifdef PRN_HAVE_OPENCL
                                       cmocka_unit_test(calls_that_fail),
                                       cmocka_unit_test(memory_that_fails),
#endif
                                       cmocka_unit_test(announced_rows_stay),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(limits_that_split)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
