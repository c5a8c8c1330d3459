/* Lazy constants: their results, the cache's entries that make and release their bytes, the pages behind them, and lack
 * of memory meanwhile. Models with lazy constants are tested by test_deferred.c. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "base/memory/budget.h"
#include "base/memory/reserve.h"
#include "engine/bind/weight_cache.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_from_any_address),
                                       cmocka_unit_test(transposes_every_width),
                                       cmocka_unit_test(scales_each_channel),
                                       cmocka_unit_test(tells_recipes_apart),
                                       cmocka_unit_test(holds_and_lets_go),
                                       cmocka_unit_test(lends_a_spare),
                                       cmocka_unit_test(drops_pages),
                                       cmocka_unit_test(survives_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
