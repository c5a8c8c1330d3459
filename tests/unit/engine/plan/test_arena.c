/* The arena: separate and aligned blocks, coalescing, best fit, growth, statistics, events, limit, allocation
 * failure. */
#include "failure_trace.h"
#include "engine/memory/arena.h"

#include "base/memory/alloc.h"
#include "base/memory/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define HEADER 64 /* of a dynamic block; counted in given_bytes */

static prn_arena *create(uint64_t planned, bool record)
{
    prn_arena *arena = NULL;
    prony_error error = {0};
    if (prn_arena_create(&arena, planned, record, &error) != PRONY_OK) fail_msg("%s", error.message);
    return arena;
}

static void *take(prn_arena *arena, uint64_t bytes, uint32_t owner, uint32_t step)
{
    void *block = NULL;
    prony_error error = {0};
    if (prn_arena_take(arena, bytes, owner, step, &block, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 64, 0);
    return block;
}

static prn_arena_figures figures_of(const prn_arena *arena)
{
    prn_arena_figures f;
    prn_arena_read(arena, &f);
    return f;
}

static void test_planned_region(void **state)
{
    (void)state;
    prn_arena *arena = create(1000, false);
    uint8_t *base = prn_arena_base(arena);
    assert_int_equal((uintptr_t)base % 64, 0);
    memset(base, 0xab, 1000);
    prn_arena_figures f = figures_of(arena);
    assert_int_equal(f.planned_bytes, 1000);
    assert_int_equal(f.dynamic_bytes, 0);
    assert_int_equal(f.growths, 0);
    prn_arena_release(arena);
    arena = create(0, false);
    assert_non_null(prn_arena_base(arena));
    prn_arena_release(arena);
    prn_arena_release(NULL);
}

/* A remainder that is too small for another block counts as part of the block. */
static void test_whole_blocks_are_given(void **state)
{
    (void)state;
    prn_arena *arena = create(0, false);
    prn_arena_run_begin(arena);
    void *a = take(arena, 128, 1, 0), *b = take(arena, 64, 2, 0);
    prn_arena_give(arena, a, 1);
    prn_arena_run_begin(arena);
    void *c = take(arena, 64, 3, 2);
    prn_arena_figures f = figures_of(arena);
    assert_ptr_equal(a, c);
    assert_int_equal(f.asked_bytes, 64);
    assert_int_equal(f.given_bytes, 128 + HEADER);
    assert_int_equal(f.live_bytes, 128 + 64 + 2 * HEADER);
    prn_arena_give(arena, b, 3);
    prn_arena_give(arena, c, 3);
    assert_int_equal(figures_of(arena).live_bytes, 0);
    prn_arena_release(arena);
}

static void test_figures(void **state)
{
    (void)state;
    prn_arena *arena = create(640, false);
    prn_arena_run_begin(arena);
    void *a = take(arena, 100, 1, 0); /* 128 + header */
    void *b = take(arena, 64, 2, 1);  /* 64 + header */
    void *c = take(arena, 0, 3, 1);   /* 64 + header */
    memset(a, 1, 100);
    memset(b, 2, 64);
    prn_arena_figures f = figures_of(arena);
    assert_int_equal(f.live_bytes, 128 + 64 + 64 + 3 * HEADER);
    assert_int_equal(f.asked_bytes, 164);
    assert_int_equal(f.given_bytes, f.live_bytes);
    assert_int_equal(f.allocations, 3);
    assert_int_equal(f.releases, 0);
    assert_int_equal(f.growths, 1);
    assert_true(f.external_fragmentation == 0);
    prn_arena_give(arena, a, 2);
    f = figures_of(arena);
    double free_bytes = (double)(f.dynamic_bytes - 2 * (64 + HEADER)), hole = 128 + HEADER;
    assert_true(f.external_fragmentation == 1.0 - (free_bytes - hole) / free_bytes);
    prn_arena_give(arena, b, 2);
    prn_arena_give(arena, c, 3);
    prn_arena_give(arena, NULL, 3);
    f = figures_of(arena);
    assert_int_equal(f.live_bytes, 0);
    assert_int_equal(f.peak_live_bytes, 128 + 64 + 64 + 3 * HEADER);
    assert_int_equal(f.releases, 3);
    assert_int_equal(prn_arena_run_end(arena), 0);
    prn_arena_run_begin(arena);
    f = figures_of(arena);
    assert_int_equal(f.allocations + f.releases + f.asked_bytes + f.given_bytes + f.peak_live_bytes, 0);
    assert_true(f.external_fragmentation == 0);
    assert_int_equal(f.growths, 1);
    prn_arena_release(arena);
}

/* After any order of releases the whole chunk is one free block: a request for nearly all of it does not grow the
 * arena. */
static void test_coalescing(void **state)
{
    (void)state;
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}, {2, 0, 3, 1}};
    prn_arena *arena = create(64, false);
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
        SCENARIO(o);
        void *blocks[4];
        for (uint32_t i = 0; i < 4; i++) blocks[i] = take(arena, 5000 + i, i, 0);
        for (int i = 0; i < 4; i++) prn_arena_give(arena, blocks[orders[o][i]], 1);
        void *whole = take(arena, figures_of(arena).dynamic_bytes - HEADER, 9, 2);
        assert_int_equal(figures_of(arena).growths, 1);
        assert_int_equal(figures_of(arena).live_bytes, figures_of(arena).dynamic_bytes);
        prn_arena_give(arena, whole, 3);
    }
    prn_arena_release(arena);
}

static void test_best_fit(void **state)
{
    (void)state;
    prn_arena *arena = create(64, false);
    void *large = take(arena, 1024, 0, 0);
    void *wall = take(arena, 64, 1, 0);
    void *small = take(arena, 512, 2, 0);
    void *wall_too = take(arena, 64, 3, 0);
    prn_arena_give(arena, large, 1);
    prn_arena_give(arena, small, 1);
    assert_ptr_equal(take(arena, 512, 4, 2), small);
    assert_ptr_equal(take(arena, 600, 5, 2), large);
    prn_arena_give(arena, wall, 3);
    prn_arena_give(arena, wall_too, 3);
    prn_arena_release(arena);
}

static void test_growth_is_kept(void **state)
{
    (void)state;
    prn_arena *arena = create(64, false);
    for (int run = 0; run < 3; run++) {
        SCENARIO(run);
        prn_arena_run_begin(arena);
        void *a = take(arena, 100, 0, 0);
        void *b = take(arena, 3 << 20, 1, 0);
        memset(b, run, 3 << 20);
        prn_arena_give(arena, b, 1);
        prn_arena_give(arena, a, 1);
        assert_int_equal(prn_arena_run_end(arena), 0);
        assert_int_equal(figures_of(arena).growths, 2);
    }
    uint64_t held = figures_of(arena).dynamic_bytes, calls = prn_heap_calls();
    void *again = take(arena, 3 << 20, 1, 0);
    prn_arena_give(arena, again, 0);
    assert_int_equal(prn_heap_calls(), calls);
    assert_int_equal(figures_of(arena).dynamic_bytes, held);
    prn_arena_release(arena);
}

/* Live blocks keep their bytes, free ones give up their pages (which read as zeros then) and can be taken again. */
static void test_trimming(void **state)
{
    (void)state;
    enum { LARGE = 4 << 20 };
    prn_arena *arena = create(64, false);
    uint8_t *large = take(arena, LARGE, 0, 0), *kept = take(arena, 1000, 1, 0);
    memset(large, 0xab, LARGE);
    memset(kept, 0xcd, 1000);
    prn_arena_give(arena, large, 0);
    const prn_arena_figures before = figures_of(arena);
    prn_arena_trim(arena);
    const prn_arena_figures after = figures_of(arena);
    assert_memory_equal(&before, &after, sizeof before);
    uint8_t *again = take(arena, LARGE, 2, 0);
    assert_ptr_equal(again, large);
    assert_int_equal(again[LARGE / 2], 0);
    memset(again, 0xef, LARGE);
    for (int i = 0; i < 1000; i++) assert_int_equal(kept[i], 0xcd);
    prn_arena_give(arena, again, 0);
    prn_arena_give(arena, kept, 0);
    prn_arena_release(arena);
}

static void test_forgotten_blocks(void **state)
{
    (void)state;
    prn_arena *arena = create(64, true);
    prn_arena_run_begin(arena);
    take(arena, 64, 0, 0);
    void *b = take(arena, 1 << 20, 1, 0);
    take(arena, 300, 2, 0);
    prn_arena_give(arena, b, 1);
    assert_int_equal(prn_arena_run_end(arena), 64 + 320 + 2 * HEADER);
    assert_int_equal(figures_of(arena).live_bytes, 0);
    size_t count;
    prn_arena_events(arena, &count);
    assert_int_equal(count, 6);
    prn_arena_release(arena);
}

static void test_events(void **state)
{
    (void)state;
    prn_arena *arena = create(128, true);
    prn_arena_run_begin(arena);
    void *a = take(arena, 100, 7, 3);
    void *b = take(arena, 10, 8, 4);
    prn_arena_give(arena, a, 5);
    prn_arena_give(arena, b, 6);
    size_t count;
    const prn_arena_event *e = prn_arena_events(arena, &count);
    assert_int_equal(count, 4);
    static const bool release[] = {false, false, true, true};
    static const uint32_t owner[] = {7, 8, 7, 8}, step[] = {3, 4, 5, 6};
    static const uint64_t asked[] = {100, 10, 100, 10}, given[] = {192, 128, 192, 128}, offset[] = {128, 320, 128, 320};
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        assert_int_equal(e[i].release, release[i]);
        assert_int_equal(e[i].owner, owner[i]);
        assert_int_equal(e[i].step, step[i]);
        assert_int_equal(e[i].asked_bytes, asked[i]);
        assert_int_equal(e[i].given_bytes, given[i]);
        assert_int_equal(e[i].offset_bytes, offset[i]);
        assert_string_equal(prn_arena_tag_name((prn_arena_tag)e[i].tag), "dynamic");
        assert_true(i == 0 || e[i].time_ns >= e[i - 1].time_ns);
    }
    prn_arena_run_begin(arena);
    prn_arena_events(arena, &count);
    assert_int_equal(count, 0);
    prn_arena_release(arena);
}

static void test_limit(void **state)
{
    (void)state;
    enum { LIMIT = 16384 };
    prn_arena *arena = NULL;
    prony_error error = {0};
    prn_budget *budget = prn_budget_create(NULL, LIMIT), *former = prn_budget_enter(budget);
    assert_int_equal(prn_arena_create(&arena, LIMIT, false, &error), PRONY_LIMIT);
    assert_null(arena);
    assert_non_null(strstr(error.message, "16384"));
    assert_int_equal(prn_budget_held(budget), 0);
    arena = create(4096, false);
    void *fits = take(arena, 4096 - HEADER, 0, 0), *more = NULL;
    assert_int_equal(prn_arena_take(arena, 8192, 1, 0, &more, &error), PRONY_LIMIT);
    assert_null(more);
    assert_non_null(strstr(error.message, "8256 bytes at run time"));
    assert_non_null(strstr(error.message, "the memory limit is 16384"));
    prn_arena_give(arena, fits, 1);
    prn_arena_give(arena, take(arena, 1000, 2, 2), 2);
    assert_int_equal(prn_arena_take(arena, UINT64_MAX, 1, 0, &more, &error), PRONY_LIMIT);
    assert_int_equal(prn_arena_take(arena, UINT64_C(1) << 50, 1, 0, &more, &error), PRONY_LIMIT);
    assert_non_null(strstr(error.message, "exceed the address space"));
    prn_arena_release(arena);
    assert_int_equal(prn_budget_held(budget), 0);
    prn_budget_enter(former);
    prn_budget_release(budget);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        prn_arena *arena = NULL;
        void *block = NULL;
        prn_alloc_fail_at(n);
        prony_status status = prn_arena_create(&arena, 4096, true, NULL);
        if (status == PRONY_OK) status = prn_arena_take(arena, 1 << 20, 0, 0, &block, NULL);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        if (arena && failed) { /* still usable */
            assert_int_equal(figures_of(arena).live_bytes, 0);
            block = take(arena, 1 << 20, 0, 0);
        }
        if (arena) prn_arena_give(arena, block, 1);
        prn_arena_release(arena);
        if (!failed) {
            assert_int_equal(n, 5); /* arena, planned region, events, chunk */
            break;
        }
    }
}

/* A long random run against a record of the live blocks: contents survive, nothing overlaps, all is released. */
static void test_random_use(void **state)
{
    (void)state;
    typedef struct held {
        uint8_t *data;
        size_t size;
        uint8_t mark;
    } held;
    held live[64] = {0};
    uint64_t random = 42;
    prn_arena *arena = create(64, true);
    prn_arena_run_begin(arena);
    for (uint32_t round = 0; round < 5000; round++) {
        SCENARIO(round);
        random = random * 6364136223846793005U + 1442695040888963407U;
        held *h = &live[random >> 58];
        if (h->data) {
            for (size_t i = 0; i < h->size; i++) assert_int_equal(h->data[i], h->mark);
            prn_arena_give(arena, h->data, round);
            h->data = NULL;
        } else {
            h->size = (random >> 20) % (round % 7 ? 3000 : 60000);
            h->mark = (uint8_t)round;
            h->data = take(arena, h->size, round, round);
            memset(h->data, h->mark, h->size);
        }
    }
    uint64_t given = 0;
    for (size_t i = 0; i < 64; i++) {
        if (!live[i].data) continue;
        given += ((live[i].size ? live[i].size : 1) + 63) / 64 * 64 + HEADER;
    }
    uint64_t reported = figures_of(arena).live_bytes; /* a remainder too small to cut stays with its block */
    assert_true(reported >= given && reported <= given + 64 * 64);
    assert_int_equal(prn_arena_run_end(arena), reported);
    assert_int_equal(figures_of(arena).allocations, figures_of(arena).releases);
    prn_arena_release(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planned_region),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_whole_blocks_are_given),
        cmocka_unit_test(test_coalescing),
        cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_growth_is_kept),
        cmocka_unit_test(test_trimming),
        cmocka_unit_test(test_forgotten_blocks),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_random_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
