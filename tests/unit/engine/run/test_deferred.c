/* Large constants made on demand: results of lazy constants, the time and number of resident bytes, models that read
 * the same weights in many ways and shapes, and failing allocations. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "base/memory/budget.h"
#include "base/memory/reserve.h"
#include "base/os/resident.h"
#include "base/shape.h"
#include "engine/bind/weight_cache.h"
#include "engine/session/session.h"
#include "tests/support/model_run.h"
#include "tests/support/weights_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 1 << 19 };

static uint8_t source[MOST + 16], made[MOST], wanted[MOST];

static void fill_source(void)
{
    uint32_t state = 7;
    for (size_t i = 0; i < sizeof source; i++) source[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
}

static void check_made(const prn_lazy_constant *recipe)
{
    for (int threads = 1; threads <= 4; threads++) {
        memset(made, 0xA5, prn_lazy_constant_bytes(recipe));
        assert_true(prn_lazy_constant_make(recipe, threads, made));
        assert_memory_equal(made, wanted, prn_lazy_constant_bytes(recipe));
    }
}

static void copies_from_any_address(void **state)
{
    (void)state;
    fill_source();
    for (size_t shift = 0; shift < 4; shift++) {
        SCENARIO(shift);
        const prn_lazy_constant recipe = {
            .kind = PRN_LAZY_COPY, .width = 4, .count = MOST / 4, .source = source + shift};
        memcpy(wanted, source + shift, MOST);
        check_made(&recipe);
    }
}

static void transposes_every_width(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1},   {1, 300},  {300, 1},  {15, 17}, {16, 16},
                                       {64, 48}, {65, 129}, {200, 33}, {7, 4096}};
    fill_source();
    for (size_t width = 1; width <= 8; width *= 2) {
        SCENARIO(width);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            SCENARIO(s);
            const int64_t rows = sizes[s][0], columns = sizes[s][1];
            const prn_lazy_constant recipe = {.kind = PRN_LAZY_TRANSPOSE,
                                              .width = width,
                                              .count = rows * columns,
                                              .source = source + s % 3,
                                              .rows = rows,
                                              .columns = columns};
            for (int64_t r = 0; r < rows; r++)
                for (int64_t c = 0; c < columns; c++)
                    memcpy(wanted + (size_t)(c * rows + r) * width, source + s % 3 + (size_t)(r * columns + c) * width,
                           width);
            check_made(&recipe);
        }
    }
}

/* Channels in rows, in runs, and in several groups. */
static const prn_lazy_constant scalings[] = {
    {.count = 40 * 24, .inner = 24, .modulus = 40, .block = 40 * 24, .channels = 40},
    {.count = 30 * 50, .inner = 1, .modulus = 50, .block = 30 * 50, .channels = 50},
    {.count = 6 * 4 * 9, .inner = 9, .modulus = 4, .block = 3 * 4 * 9, .channels = 8},
    {.count = 512 * 200, .inner = 1, .modulus = 200, .block = 512 * 200, .channels = 200},
};

static void scales_each_channel(void **state)
{
    (void)state;
    static double scale[256];
    static float plain[512 * 200 + 1];
    char *odd = (char *)plain + 1; /* an address that floats do not have */
    for (size_t c = 0; c < 256; c++) scale[c] = 0.1 + (double)c / 7;
    for (size_t s = 0; s < sizeof scalings / sizeof *scalings; s++) {
        SCENARIO(s);
        prn_lazy_constant recipe = scalings[s];
        recipe.kind = PRN_LAZY_SCALE;
        recipe.width = sizeof(float);
        recipe.source = odd;
        recipe.scale = scale;
        for (int64_t e = 0; e < recipe.count; e++) {
            const float value = (float)e / 3 - 100,
                        result = (float)((double)value *
                                         scale[e / recipe.block * recipe.modulus + e / recipe.inner % recipe.modulus]);
            memcpy(odd + (size_t)e * sizeof value, &value, sizeof value);
            memcpy(wanted + (size_t)e * sizeof value, &result, sizeof result);
        }
        check_made(&recipe);
        assert_true(prn_lazy_constant_finite(&recipe));
        static const float bad[] = {INFINITY, -INFINITY, NAN, 3.4e38f};
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            SCENARIO(b);
            float kept;
            char *last = odd + (size_t)(recipe.count - 1) * sizeof kept;
            memcpy(&kept, last, sizeof kept);
            memcpy(last, &bad[b], sizeof kept);
            assert_false(prn_lazy_constant_finite(&recipe));
            for (int threads = 1; threads <= 3; threads++) assert_false(prn_lazy_constant_make(&recipe, threads, made));
            memcpy(last, &kept, sizeof kept);
        }
    }
}

static void tells_recipes_apart(void **state)
{
    (void)state;
    double ones[] = {1, 1}, twos[] = {1, 2};
    const prn_lazy_constant a = {.kind = PRN_LAZY_SCALE,
                                 .width = 4,
                                 .count = 4,
                                 .source = source,
                                 .inner = 2,
                                 .modulus = 2,
                                 .block = 4,
                                 .channels = 2,
                                 .scale = ones};
    prn_lazy_constant b = a;
    assert_true(prn_lazy_constant_same(&a, &b));
    b.scale = twos;
    assert_false(prn_lazy_constant_same(&a, &b));
    b = a;
    b.source = source + 1;
    assert_false(prn_lazy_constant_same(&a, &b));
    b = a;
    b.inner = 1;
    assert_false(prn_lazy_constant_same(&a, &b));
}

/* ---- entries ---- */

static bool is_there(const void *data)
{
    unsigned char page;
    return mincore((void *)((uintptr_t)data & ~(uintptr_t)4095), 1, &page) == 0 && (page & 1);
}

static void holds_and_lets_go(void **state)
{
    (void)state;
    prony_error error = {0};
    prn_weight_cache *shared = NULL;
    prn_weight_cache_refs refs = {0}, other = {0};
    prn_weight_cache_entry *turned = NULL, *again = NULL, *back = NULL;
    const prn_lazy_constant turn = {
        .kind = PRN_LAZY_TRANSPOSE, .width = 4, .count = 100 * 80, .source = source, .rows = 100, .columns = 80};
    fill_source();
    assert_int_equal(prn_weight_cache_create(&shared, &error), PRONY_OK);
    assert_int_equal(prn_weight_cache_defer(shared, &refs, &turn, NULL, &turned, &error), PRONY_OK);
    assert_int_equal(prn_weight_cache_defer(shared, &other, &turn, NULL, &again, &error), PRONY_OK);
    assert_ptr_equal(turned, again);
    assert_int_equal(prn_weight_cache_bytes(shared), 0);
    assert_false(is_there(prn_weight_cache_data(turned)));

    /* Transposed back, through a value without resident bytes at that time. */
    prn_lazy_constant twice = {.kind = PRN_LAZY_TRANSPOSE,
                               .width = 4,
                               .count = 100 * 80,
                               .source = prn_weight_cache_data(turned),
                               .rows = 80,
                               .columns = 100};
    prn_weight_cache_entry *from = prn_weight_cache_source(turned, &twice);
    assert_ptr_equal(from, turned);
    assert_int_equal(prn_weight_cache_defer(shared, &refs, &twice, from, &back, &error), PRONY_OK);
    prn_weight_cache_drop(shared, &other);
    assert_int_equal(prn_weight_cache_pin(shared, &refs, back, 2, &error), PRONY_OK);
    assert_memory_equal(prn_weight_cache_data(back), source, 100 * 80 * 4);
    assert_int_equal(prn_weight_cache_bytes(shared), 100 * 80 * 4);
    assert_true(is_there(prn_weight_cache_data(back)));
    assert_false(is_there(prn_weight_cache_data(turned)));

    /* Held twice, let go twice. */
    assert_int_equal(prn_weight_cache_pin(shared, &other, back, 1, &error), PRONY_OK);
    prn_weight_cache_unpin(shared, &refs, 0);
    assert_true(is_there(prn_weight_cache_data(back)));
    prn_weight_cache_drop(shared, &other);
    assert_false(is_there(prn_weight_cache_data(back)));
    assert_int_equal(prn_weight_cache_bytes(shared), 0);

    /* And made anew. */
    assert_int_equal(prn_weight_cache_pin(shared, &refs, back, 1, &error), PRONY_OK);
    assert_memory_equal(prn_weight_cache_data(back), source, 100 * 80 * 4);
    prn_weight_cache_drop(shared, &refs);
    prn_weight_cache_release(shared);
}

/* Releases whole pages only, and nothing for an empty range. */
static void drops_pages(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 5 * page + 100;
    prn_reserve reserve;
    assert_true(prn_reserve_open(&reserve, bytes));
    prn_reserve_drop(&reserve, reserve.data, bytes);
    assert_true(prn_reserve_fill(&reserve, NULL));
    uint8_t *data = reserve.data;
    memset(data, 1, bytes);
    prn_reserve_drop(&reserve, data + page - 1, 2 * page + 1); /* the second and the third */
    prn_reserve_drop(&reserve, data + 3 * page + 1, page);
    prn_reserve_drop(&reserve, data + 4 * page, page - 1);
    for (size_t i = 0; i < bytes; i++) assert_int_equal(data[i], i / page != 1 && i / page != 2);
    prn_reserve_close(&reserve);
}

/* Ranges of several sizes take over the spare in turn and in parallel; the account that they are charged to returns
 * to its start. */
static void lends_a_spare(void **state)
{
    (void)state;
    static const size_t sizes[] = {100, 4096, 300000, 5000000, 70000, 2097152, 9000000, 1};
    prn_budget *budget = prn_budget_create(NULL, 0), *former = prn_budget_enter(budget);
    const uint64_t before = prn_budget_held(budget);
    prn_spare spare = {0};
    for (int round = 0; round < 2; round++) {
        SCENARIO(round);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            SCENARIO(k);
            prn_reserve outer, inner;
            assert_true(prn_reserve_open(&outer, sizes[k]));
            assert_true(prn_reserve_open(&inner, 50000));
            assert_true(prn_reserve_fill(&outer, &spare));
            assert_ptr_equal(outer.spare, &spare);
            memset(outer.data, 1, outer.bytes);
            assert_true(prn_reserve_fill(&inner, &spare));
            assert_null(inner.spare); /* lent already */
            memset(inner.data, 2, inner.bytes);
            for (size_t i = 0; i < outer.bytes; i += 977) assert_int_equal(((uint8_t *)outer.data)[i], 1);
            prn_reserve_empty(&outer);
            prn_reserve_empty(&inner);
            assert_false(is_there(outer.data));
            assert_false(is_there(inner.data));
            /* Pages of the last one alone; 0: a system that cannot move pages. */
            assert_true(spare.bytes == 0 || (spare.bytes >= sizes[k] && spare.bytes < sizes[k] + 4096));
            prn_reserve_close(&outer);
            prn_reserve_close(&inner);
        }
    }
    prn_spare_release(&spare);
    assert_int_equal(prn_budget_held(budget), before);
    prn_budget_enter(former);
    prn_budget_release(budget);
}

static prony_status build_copy(void *argument, void *data)
{
    memcpy(data, argument, 100 * 80 * 4);
    return PRONY_OK;
}

/* Every allocation and every memory reservation fails once. */
static void survives_faults(void **state)
{
    (void)state;
    prony_error error = {0};
    const prn_lazy_constant turn = {
        .kind = PRN_LAZY_TRANSPOSE, .width = 4, .count = 100 * 80, .source = source, .rows = 100, .columns = 80};
    uint64_t n = 0;
    for (bool failed = true; failed;) {
        prn_weight_cache *shared = NULL;
        prn_weight_cache_refs refs = {0};
        prn_weight_cache_entry *turned = NULL;
        const void *packed = NULL;
        prn_alloc_fail_at(++n);
        prony_status status = prn_weight_cache_create(&shared, &error);
        if (status == PRONY_OK) status = prn_weight_cache_defer(shared, &refs, &turn, NULL, &turned, &error);
        if (status == PRONY_OK) {
            const prn_pack_key key = {.size = {100, 80}, .detail = "rows", .detail_bytes = 4};
            const prn_weight_cache_form form = {.source = prn_weight_cache_data(turned),
                                                .key = &key,
                                                .bytes = 100 * 80 * 4,
                                                .from = turned,
                                                .threads = 1,
                                                .build = build_copy,
                                                .argument = prn_weight_cache_data(turned)};
            status = prn_weight_cache_get(shared, &refs, &form, &packed, &error);
        }
        if (status == PRONY_OK) status = prn_weight_cache_pin(shared, &refs, turned, 1, &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        if (!failed) assert_memory_equal(packed, prn_weight_cache_data(turned), 100 * 80 * 4);
        prn_weight_cache_drop(shared, &refs);
        prn_weight_cache_release(shared);
    }
    assert_true(n > 8);
}

/* ---- models ---- */

enum { OUTPUTS = 4, BATCHES = 3 };

typedef struct results {
    float *values[OUTPUTS];
    size_t bytes[OUTPUTS];
} results;

static void results_free(results *r)
{
    for (size_t k = 0; k < OUTPUTS; k++) free(r->values[k]);
}

static results run_batch(prony_session *session, int64_t batch)
{
    prony_error error = {0};
    int64_t *ids = weights_model_ids(batch, 3);
    float *image = weights_model_image(batch, 4);
    results r = {0};
    const prony_value in[] = {{.dtype = PRONY_INT64, .shape = {.rank = 2, .dim = {batch, 4}}, .data = ids},
                              {.dtype = PRONY_FLOAT32, .shape = {.rank = 4, .dim = {batch, 16, 6, 6}}, .data = image}};
    assert_int_equal(prony_session_set_input(session, "ids", &in[0], &error), PRONY_OK);
    assert_int_equal(prony_session_set_input(session, "image", &in[1], &error), PRONY_OK);
    if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
    for (size_t k = 0; k < OUTPUTS; k++) {
        const prony_value *value = NULL;
        assert_int_equal(prony_session_output(session, k, &value, &error), PRONY_OK);
        r.bytes[k] = prn_value_bytes(value);
        r.values[k] = malloc(r.bytes[k]);
        assert_non_null(r.values[k]);
        memcpy(r.values[k], value->data, r.bytes[k]);
    }
    free(ids);
    free(image);
    return r;
}

static void check_same(const results *a, const results *b)
{
    for (size_t k = 0; k < OUTPUTS; k++) {
        assert_int_equal(a->bytes[k], b->bytes[k]);
        assert_memory_equal(a->values[k], b->values[k], a->bytes[k]);
    }
}

static prony_model *load(model_builder *m)
{
    size_t size;
    prony_model *model = NULL;
    prony_error error = {0};
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(&model, "weights", bytes, size, NULL, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return model;
}

static prony_session *open_session(prony_model *model, bool no_rewrites, bool no_reuse)
{
    prony_session *session = NULL;
    prony_error error = {0};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.no_rewrites = no_rewrites;
    options.no_reuse = no_reuse;
    if (prony_session_create(&session, model, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return session;
}

/* Results with constants of any size without deferral. */
static void plain_results(size_t shift, bool no_rewrites, results out[BATCHES])
{
    const size_t former = prn_defer_bytes;
    prn_defer_bytes = SIZE_MAX;
    model_builder *m = weights_model(shift);
    prony_model *model = load(m);
    prony_session *session = open_session(model, no_rewrites, false);
    for (int64_t b = 0; b < BATCHES; b++) out[b] = run_batch(session, b + 1);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
    prn_defer_bytes = former;
}

/* Changing shapes, sessions in parallel and in sequence, weights at every alignment: always the same bits. */
static void gives_the_same_results(void **state)
{
    (void)state;
    for (size_t shift = 1; shift <= 4; shift++) {
        SCENARIO(shift);
        for (int no_rewrites = 0; no_rewrites <= 1; no_rewrites++) {
            results plain[BATCHES];
            plain_results(shift, no_rewrites, plain);
            model_builder *m = weights_model(shift);
            prony_model *model = load(m);
            prony_session *first = open_session(model, no_rewrites, false),
                          *second = open_session(model, no_rewrites, true);
            for (int64_t round = 0; round < 2 * BATCHES; round++) {
                const int64_t b = round % BATCHES;
                results a = run_batch(first, b + 1), c = run_batch(second, BATCHES - b);
                check_same(&a, &plain[b]);
                check_same(&c, &plain[BATCHES - 1 - b]);
                results_free(&a);
                results_free(&c);
            }
            prony_session_release(first);
            prony_session *third = open_session(model, no_rewrites, false);
            results a = run_batch(third, 2), c = run_batch(second, 2);
            check_same(&a, &plain[1]);
            check_same(&c, &plain[1]);
            results_free(&a);
            results_free(&c);
            prony_session_release(second);
            prony_session_release(third);
            assert_int_equal(prn_weight_cache_bytes(model->shared), 0);
            prony_model_release(model);
            mb_free(m);
            for (size_t b = 0; b < BATCHES; b++) results_free(&plain[b]);
        }
    }
}

/* One copy of each weight, packed or plain; the processor determines the padding of panels. */
static void keeps_one_copy(void **state)
{
    (void)state;
    model_builder *m = weights_model(1);
    prony_model *model = load(m);
    prony_session *session = open_session(model, false, false);
    results r = run_batch(session, 1);
    assert_in_range(prn_weight_cache_bytes(model->shared), 1, weights_model_bytes() + weights_model_bytes() / 2);
    results_free(&r);
    prony_session_release(session);
    assert_int_equal(prn_weight_cache_bytes(model->shared), 0);
    prony_model_release(model);
    mb_free(m);
}

/* Weights that the statistics scale out of range stay as they are, which shows only when they are made. */
static void keeps_what_cannot_be_scaled(void **state)
{
    (void)state;
    enum { CHANNELS = 32, WEIGHTS = CHANNELS * 16 * 9 };
    static float weights[WEIGHTS], image[16 * 16];
    float ones[CHANNELS], zeros[CHANNELS] = {0}, tiny[CHANNELS];
    for (int i = 0; i < WEIGHTS; i++) weights[i] = 1e30f;
    for (int c = 0; c < CHANNELS; c++) {
        ones[c] = 1;
        tiny[c] = 1e-30f;
    }
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
    mb_initializer(m, "w", PRONY_FLOAT32, "32,16,3,3", weights);
    mb_initializer(m, "ones", PRONY_FLOAT32, "32", ones);
    mb_initializer(m, "zeros", PRONY_FLOAT32, "32", zeros);
    mb_initializer(m, "tiny", PRONY_FLOAT32, "32", tiny);
    mb_node(m, "Conv", "x w", "c", "pads=[1,1,1,1]");
    mb_node(m, "BatchNormalization", "c ones ones zeros tiny", "y", "epsilon=0.0");
    mb_output(m, "y", PRONY_FLOAT32, "1,32,4,4");
    prony_model *model = load(m);
    for (int round = 0; round < 2; round++) {
        SCENARIO(round);
        prony_session *session = open_session(model, false, false);
        prony_error error = {0};
        const prony_value *out = NULL;
        const prony_value x = {.dtype = PRONY_FLOAT32, .shape = {.rank = 4, .dim = {1, 16, 4, 4}}, .data = image};
        assert_int_equal(prony_session_set_input(session, "x", &x, &error), PRONY_OK);
        if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
        assert_true(prn_weight_cache_looks_first(model->shared));
        assert_int_equal(prony_session_output(session, 0, &out, &error), PRONY_OK);
        for (int i = 0; i < CHANNELS * 16; i++)
            assert_true(((const float *)out->data)[i] == 1.0f); /* 0 times anything, plus 1 */
        prony_session_release(session);
    }
    assert_int_equal(prn_weight_cache_bytes(model->shared), 0);
    prony_model_release(model);
    mb_free(m);
}

enum { MANY = 6, DEPTH = 64, WIDTH = 160 };

/* As many rows of x [6, 64] as `chosen` says, which only a run knows, times a packed matrix and a plain column. */
static model_builder *rows_model(size_t shift)
{
    static float matrix[DEPTH * WIDTH], column[DEPTH];
    const int64_t first = 0;
    const char *name = &"wwww"[3 - shift]; /* one letter more moves the bytes behind it to another address */
    char product[32];
    for (int i = 0; i < DEPTH * WIDTH; i++) matrix[i] = (float)(i * 7 % 23) - 11;
    for (int i = 0; i < DEPTH; i++) column[i] = (float)(i * 5 % 17) - 8;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "6,64");
    mb_input(m, "chosen", PRONY_FLOAT32, "6");
    mb_initializer(m, name, PRONY_FLOAT32, "64,160", matrix);
    mb_initializer(m, "column", PRONY_FLOAT32, "64,1", column);
    mb_initializer(m, "first", PRONY_INT64, "1", &first);
    snprintf(product, sizeof product, "rows %s", name);
    mb_node(m, "NonZero", "chosen", "places", "");
    mb_node(m, "Squeeze", "places first", "flat", "");
    mb_node(m, "Gather", "x flat", "rows", "axis=0");
    mb_node(m, "MatMul", product, "a", "");
    mb_node(m, "MatMul", "rows column", "b", "");
    mb_output(m, "a", PRONY_FLOAT32, "n,160");
    mb_output(m, "b", PRONY_FLOAT32, "n,1");
    return m;
}

static void check_product(const prony_value *got, const float *x, const float *chosen, int64_t columns, int64_t step,
                          int64_t modulus, int64_t less)
{
    const float *y = got->data;
    for (int64_t r = 0; r < MANY; r++) {
        if (chosen[r] == 0) continue;
        for (int64_t c = 0; c < columns; c++, y++) {
            double sum = 0;
            for (int64_t k = 0; k < DEPTH; k++)
                sum += (double)x[r * DEPTH + k] * (double)((k * columns + c) * step % modulus - less);
            assert_true(fabs((double)*y - sum) < 1e-2);
        }
    }
}

/* A product whose row count only a run knows keeps its packed weights, and no other copy. */
static void keeps_one_copy_of_what_runs_pack(void **state)
{
    (void)state;
    static const float chosen[4][MANY] = {
        {0, 1, 0, 1, 1, 1}, {0, 0, 0, 1, 0, 0}, {1, 1, 1, 1, 1, 1}, {0, 1, 0, 1, 1, 1}};
    static float x[MANY * DEPTH];
    const size_t former = prn_defer_bytes;
    prn_defer_bytes = DEPTH * sizeof(float);
    for (int i = 0; i < MANY * DEPTH; i++) x[i] = (float)(i % 19) / 8;
    for (size_t shift = 0; shift < 4; shift++) {
        SCENARIO(shift);
        model_run r = {0};
        mr_open(&r, rows_model(shift));
        for (int run = 0; run < 4; run++) {
            mr_set(&r, "x", PRONY_FLOAT32, "6,64", x);
            mr_set(&r, "chosen", PRONY_FLOAT32, "6", chosen[run]);
            check_product(mr_run(&r, 0), x, chosen[run], WIDTH, 7, 23, 11);
            check_product(mr_output(&r, 1), x, chosen[run], 1, 5, 17, 8);
            assert_in_range(prn_weight_cache_bytes(r.model->shared), 1,
                            (DEPTH * WIDTH + 2 * 16 * DEPTH) * sizeof(float) * 5 / 4);
        }
        mr_survives_faults(&r);
        mr_close(&r);
    }
    prn_defer_bytes = former;
}

enum { LONG_ROWS = 2100, LONG = 2048 };

static float long_element(int64_t i)
{
    return (float)(i * 13 % 29) / 16 - 0.8f;
}

static void check_long(const prony_value *got, const float *x, int64_t vectors, int64_t vector, int64_t element)
{
    const float *y = got->data;
    for (int64_t v = 0; v < vectors; v++) {
        for (int64_t n = 0; n < LONG_ROWS; n += 83) {
            double sum = 0;
            for (int64_t k = 0; k < LONG; k++)
                sum += (double)x[v * vector + k * element] * (double)long_element(n * LONG + k);
            assert_true(fabs((double)y[vector == 1 ? n * vectors + v : v * LONG_ROWS + n] - sum) < 1e-2);
        }
    }
}

/* Large weights whose source is released while they are packed, at every address; one of them has another reader. */
static void packs_piece_by_piece(void **state)
{
    (void)state;
    static const int64_t places[2] = {0, LONG_ROWS - 1};
    static float x[4 * LONG];
    float *weights = malloc((size_t)LONG_ROWS * LONG * sizeof *weights);
    assert_non_null(weights);
    for (int64_t i = 0; i < LONG_ROWS * LONG; i++) weights[i] = long_element(i);
    for (int i = 0; i < 4 * LONG; i++) x[i] = (float)(i % 37) / 32 - 0.5f;
    for (size_t shift = 0; shift < 4; shift++) {
        SCENARIO(shift);
        const char *first = &"wwww"[3 - shift];
        char inputs[32];
        model_run r = {0};
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, "4,2048");
        mb_input(m, "image", PRONY_FLOAT32, "1,2048,2,2");
        mb_initializer(m, first, PRONY_FLOAT32, "2100,2048", weights);
        mb_initializer(m, "filter", PRONY_FLOAT32, "2100,2048,1,1", weights);
        mb_initializer(m, "places", PRONY_INT64, "2", places);
        snprintf(inputs, sizeof inputs, "x %s", first);
        mb_node(m, "Gemm", inputs, "a", "transB=1");
        mb_node(m, "Conv", "image filter", "b", "");
        snprintf(inputs, sizeof inputs, "%s places", first);
        mb_node(m, "Gather", inputs, "c", "");
        mb_output(m, "a", PRONY_FLOAT32, "4,2100");
        mb_output(m, "b", PRONY_FLOAT32, "1,2100,2,2");
        mb_output(m, "c", PRONY_FLOAT32, "2,2048");
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "4,2048", x);
        mr_set(&r, "image", PRONY_FLOAT32, "1,2048,2,2", x);
        check_long(mr_run(&r, 0), x, 4, LONG, 1);
        check_long(mr_output(&r, 1), x, 4, 1, 4);
        assert_memory_equal(mr_output(&r, 2)->data, weights, LONG * sizeof *weights);
        assert_memory_equal((const float *)mr_output(&r, 2)->data + LONG, weights + places[1] * LONG,
                            LONG * sizeof *weights);
        mr_close(&r);
    }
    free(weights);
}

/* Convolutions of several sizes that share a weight keep one packed layout, whatever each would choose alone. */
static void keeps_one_form_for_all_extents(void **state)
{
    (void)state;
    enum { CHANNELS = 256, WEIGHTS = CHANNELS * CHANNELS * 9 };
    float *weights = malloc(WEIGHTS * sizeof *weights);
    assert_non_null(weights);
    for (int i = 0; i < WEIGHTS; i++) weights[i] = (float)(i % 31) / 64 - 0.2f;
    model_builder *m = mb_begin(17);
    mb_initializer(m, "w", PRONY_FLOAT32, "256,256,3,3", weights);
    mb_input(m, "a", PRONY_FLOAT32, "1,256,30,40");
    mb_input(m, "b", PRONY_FLOAT32, "1,256,8,10");
    mb_input(m, "c", PRONY_FLOAT32, "1,256,2,3");
    mb_node(m, "Conv", "a w", "p", "pads=[1,1,1,1]");
    mb_node(m, "Conv", "b w", "q", "pads=[1,1,1,1]");
    mb_node(m, "Conv", "c w", "r", "pads=[1,1,1,1]");
    mb_output(m, "p", PRONY_FLOAT32, "1,256,30,40");
    mb_output(m, "q", PRONY_FLOAT32, "1,256,8,10");
    mb_output(m, "r", PRONY_FLOAT32, "1,256,2,3");
    prony_model *model = load(m);
    prony_session *session = open_session(model, false, false);
    prony_error error = {0};
    assert_int_equal(prony_session_generate_inputs(session, 1, &error), PRONY_OK);
    if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_in_range(prn_weight_cache_bytes(model->shared), WEIGHTS, WEIGHTS * sizeof *weights + WEIGHTS);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
    free(weights);
}

static void survives_faults_in_a_model(void **state)
{
    (void)state;
    model_run r = {0};
    mr_open(&r, weights_model(1));
    int64_t *ids = weights_model_ids(1, 3);
    float *image = weights_model_image(1, 4);
    mr_set(&r, "ids", PRONY_INT64, "1,4", ids);
    mr_set(&r, "image", PRONY_FLOAT32, "1,16,6,6", image);
    mr_run(&r, 0);
    mr_survives_faults(&r);
    mr_close(&r);
    free(ids);
    free(image);
}

/* Packing releases the file's pages. */
static void gives_the_file_back(void **state)
{
    (void)state;
    enum { SIDE = 1024, LAYERS = 6 };
    static float weights[SIDE * SIDE];
    char path[64];
    snprintf(path, sizeof path, "deferred_%ld.onnx", (long)getpid());
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "8,1024");
    for (int k = 0; k < LAYERS; k++) {
        char name[16], in[40], out[16];
        for (size_t i = 0; i < SIDE * SIDE; i++) weights[i] = (float)((i * 7 + (size_t)k) % 13) / 100 - 0.06f;
        snprintf(name, sizeof name, "w%d", k);
        snprintf(in, sizeof in, k ? "y%d w%d" : "x w%d", k ? k - 1 : k, k);
        snprintf(out, sizeof out, "y%d", k);
        mb_initializer(m, name, PRONY_FLOAT32, "1024,1024", weights);
        mb_node(m, "MatMul", k ? in : "x w0", out, "");
    }
    mb_output(m, "y5", PRONY_FLOAT32, "8,1024");
    size_t size;
    const void *bytes = mb_finish(m, &size);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    mb_free(m);

    prony_model *model = NULL;
    prony_error error = {0};
    prn_resident resident;
    assert_int_equal(prony_model_load(&model, path, NULL, &error), PRONY_OK);
    prony_session *session = open_session(model, false, false);
    assert_int_equal(prony_session_generate_inputs(session, 1, &error), PRONY_OK);
    assert_int_equal(prony_session_run(session, &error), PRONY_OK);
    assert_true(prn_resident_read(&resident));
    assert_in_range(resident.mapped_bytes, 0, (uint64_t)SIDE * SIDE * sizeof(float) * 2);
    prony_session_release(session);
    prony_model_release(model);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_from_any_address),
                                       cmocka_unit_test(transposes_every_width),
                                       cmocka_unit_test(scales_each_channel),
                                       cmocka_unit_test(tells_recipes_apart),
                                       cmocka_unit_test(holds_and_lets_go),
                                       cmocka_unit_test(lends_a_spare),
                                       cmocka_unit_test(drops_pages),
                                       cmocka_unit_test(survives_faults),
                                       cmocka_unit_test(gives_the_same_results),
                                       cmocka_unit_test(keeps_one_copy),
                                       cmocka_unit_test(keeps_one_copy_of_what_runs_pack),
                                       cmocka_unit_test(keeps_one_form_for_all_extents),
                                       cmocka_unit_test(packs_piece_by_piece),
                                       cmocka_unit_test(keeps_what_cannot_be_scaled),
                                       cmocka_unit_test(survives_faults_in_a_model),
                                       cmocka_unit_test(gives_the_file_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
