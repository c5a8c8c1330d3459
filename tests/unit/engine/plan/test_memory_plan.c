/* The memory planner: plans never overlap, known optima are found, network-like instances reach the lower bound. */
#include "failure_trace.h"
#include "engine/memory/memory_plan.h"

#include "base/memory/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t random_state = 1;

static uint32_t draw(uint32_t bound)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(((random_state >> 33) * bound) >> 31);
}

/* Checks the plan against the definitions in the header, in the slow and obvious way. */
static void check_plan(const prn_buffer *buffers, size_t count, uint32_t steps, uint64_t alignment,
                       const prn_memory_plan_figures *figures)
{
    uint64_t top = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t size = (buffers[i].bytes + alignment - 1) / alignment * alignment;
        assert_int_equal(buffers[i].offset % alignment, 0);
        if (size && buffers[i].offset + size > top) top = buffers[i].offset + size;
        for (size_t j = 0; j < i; j++) {
            uint64_t other = (buffers[j].bytes + alignment - 1) / alignment * alignment;
            bool together = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
            bool apart =
                buffers[i].offset + size <= buffers[j].offset || buffers[j].offset + other <= buffers[i].offset;
            if (together && size && other && !apart) fail_msg("buffers %zu and %zu overlap", j, i);
        }
    }
    assert_int_equal(figures->planned_bytes, top);
    uint64_t bound = 0;
    for (uint32_t s = 0; s < steps; s++) {
        uint64_t live = 0;
        for (size_t i = 0; i < count; i++)
            if (buffers[i].first <= s && s <= buffers[i].last)
                live += (buffers[i].bytes + alignment - 1) / alignment * alignment;
        if (live > bound) bound = live;
    }
    assert_int_equal(figures->lower_bound_bytes, bound);
    assert_true(figures->planned_bytes >= bound);
    assert_true(figures->average_live_bytes <= bound);
    assert_true(figures->external_fragmentation >= 0 && figures->external_fragmentation <= 1);
    assert_true(figures->internal_fragmentation >= 0 && figures->internal_fragmentation < 1);
}

static void plan(prn_buffer *buffers, size_t count, uint32_t steps, prn_memory_plan_figures *figures)
{
    prony_error error = {0};
    prony_status status = prn_memory_plan(buffers, count, steps, 64, figures, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    check_plan(buffers, count, steps, 64, figures);
}

static void test_figures_by_hand(void **state)
{
    (void)state;
    prn_buffer b[] = {{100, 0, 1, 7}, {64, 1, 2, 7}, {0, 0, 2, 7}, {10, 2, 3, 7}};
    prn_memory_plan_figures f;
    plan(b, 4, 4, &f);
    assert_int_equal(f.lower_bound_bytes, 192);
    assert_int_equal(f.planned_bytes, 192);
    assert_int_equal(f.peak_step, 1);
    assert_int_equal(f.average_live_bytes, (128 + 192 + 128 + 64) / 4);
    assert_int_equal(b[2].offset, 0);
    assert_true(f.internal_fragmentation > 0.3203 && f.internal_fragmentation < 0.3204); /* 1 - 174/256 */
}

static void test_external_fragmentation_by_hand(void **state)
{
    (void)state;
    /* Step 0 fills three blocks of 64; at step 1 only one of them lives: in the middle it splits the free 128 bytes in
     * halves (0.5), at an edge it does not (0). */
    prn_buffer b[] = {{64, 0, 0, 0}, {64, 0, 1, 0}, {64, 0, 0, 0}};
    prn_memory_plan_figures f;
    plan(b, 3, 2, &f);
    assert_int_equal(f.planned_bytes, 192);
    double expected = b[1].offset == 64 ? 0.5 : 0.0;
    assert_true(f.external_fragmentation == expected);
}

static void test_empty(void **state)
{
    (void)state;
    prn_memory_plan_figures f;
    plan(NULL, 0, 0, &f);
    assert_int_equal(f.planned_bytes, 0);
    prn_buffer nothing = {0, 0, 0, 5};
    plan(&nothing, 1, 1, &f);
    assert_int_equal(nothing.offset, 0);
    assert_int_equal(f.planned_bytes, 0);
}

/* Placed in order of size the two small ones fragment the space; only a cleverer order reaches the bound. */
static void test_known_optimum(void **state)
{
    (void)state;
    prn_buffer b[] = {{64 * 4, 0, 1, 0}, {64 * 2, 1, 2, 0}, {64 * 4, 2, 3, 0}, {64 * 2, 3, 4, 0}, {64 * 4, 4, 5, 0}};
    prn_memory_plan_figures f;
    plan(b, 5, 6, &f);
    assert_int_equal(f.lower_bound_bytes, 64 * 6);
    assert_int_equal(f.planned_bytes, f.lower_bound_bytes);
}

/* Cuts a rectangle of time x bytes into bricks at random: the bound is attainable by construction. */
static size_t brick_wall(prn_buffer *b, uint32_t steps, uint64_t units, size_t cuts)
{
    typedef struct brick {
        uint32_t first, last;
        uint64_t units;
    } brick;
    static brick bricks[512];
    size_t count = 1;
    bricks[0] = (brick){0, steps - 1, units};
    for (size_t c = 0; c < cuts; c++) {
        brick *chosen = &bricks[draw((uint32_t)count)];
        brick second = *chosen;
        if (draw(2) && chosen->first < chosen->last) {
            uint32_t at = chosen->first + draw(chosen->last - chosen->first);
            chosen->last = at;
            second.first = at + 1;
        } else if (chosen->units > 1) {
            uint64_t low = 1 + draw((uint32_t)(chosen->units - 1));
            second.units = chosen->units - low;
            chosen->units = low;
        } else {
            continue;
        }
        bricks[count++] = second;
    }
    for (size_t i = 0; i < count; i++) b[i] = (prn_buffer){bricks[i].units * 64, bricks[i].first, bricks[i].last, 0};
    return count;
}

static void test_brick_walls(void **state)
{
    (void)state;
    random_state = 3;
    prn_buffer b[512];
    for (int round = 0; round < 20; round++) {
        SCENARIO(round);
        size_t count = brick_wall(b, 40, 1000, 24);
        prn_memory_plan_figures f;
        plan(b, count, 40, &f);
        assert_int_equal(f.lower_bound_bytes, 64000);
        assert_true((double)f.planned_bytes <= 1.05 * (double)f.lower_bound_bytes);
    }
}

static void test_random_instances(void **state)
{
    (void)state;
    random_state = 11;
    prn_buffer b[200];
    for (int round = 0; round < 60; round++) {
        uint32_t steps = 1 + draw(80);
        size_t count = draw(200);
        for (size_t i = 0; i < count; i++) {
            uint32_t first = draw(steps), length = draw(round % 2 ? 4 : steps);
            uint32_t last = first + length < steps ? first + length : steps - 1;
            b[i] = (prn_buffer){draw(10) ? draw(100000) : 0, first, last, 0};
        }
        prn_memory_plan_figures f;
        plan(b, count, steps, &f);
    }
}

static void test_same_input_same_plan(void **state)
{
    (void)state;
    random_state = 5;
    prn_buffer a[150], b[150];
    for (size_t i = 0; i < 150; i++) {
        uint32_t first = draw(60);
        a[i] = (prn_buffer){draw(5000), first, first + draw(60 - first), 0};
    }
    memcpy(b, a, sizeof a);
    prn_memory_plan_figures fa, fb;
    plan(a, 150, 60, &fa);
    plan(b, 150, 60, &fb);
    assert_memory_equal(a, b, sizeof a);
}

typedef struct net {
    prn_buffer buffers[2048];
    size_t count;
    uint32_t step;
} net;

/* Output of the step just made; it lives until a later step reads it. */
static size_t produce(net *n, uint64_t bytes)
{
    n->buffers[n->count] = (prn_buffer){bytes, n->step, n->step, 0};
    n->step++;
    return n->count++;
}

static void consume(net *n, size_t buffer)
{
    n->buffers[buffer].last = n->step;
}

static void scratch(net *n, uint64_t bytes)
{
    n->buffers[n->count++] = (prn_buffer){bytes, n->step, n->step, 0};
}

static size_t convolve(net *n, size_t from, uint64_t bytes)
{
    consume(n, from);
    return produce(n, bytes);
}

static void assert_tight(net *n)
{
    consume(n, n->count - 1);
    prn_memory_plan_figures f;
    plan(n->buffers, n->count, n->step + 1, &f);
    assert_int_equal(f.planned_bytes, f.lower_bound_bytes);
}

/* Bottleneck blocks with a projection at the head of every stage, as in resnet50. */
static void test_residual_network(void **state)
{
    (void)state;
    static net n;
    n = (net){0};
    static const uint64_t side[] = {56, 28, 14, 7}, width[] = {64, 128, 256, 512}, blocks[] = {3, 4, 6, 3};
    size_t x = produce(&n, 4 * 3 * 224 * 224);
    x = convolve(&n, x, 4 * 64 * 112 * 112);
    x = convolve(&n, x, 4 * 64 * 56 * 56);
    for (int stage = 0; stage < 4; stage++) {
        uint64_t area = 4 * side[stage] * side[stage];
        for (uint64_t block = 0; block < blocks[stage]; block++) {
            size_t shortcut = block == 0 ? convolve(&n, x, area * width[stage] * 4) : x;
            size_t y = convolve(&n, x, area * width[stage] * (block == 0 && stage ? 4 : 1));
            y = convolve(&n, y, area * width[stage]);
            scratch(&n, area * 3);
            consume(&n, shortcut);
            x = convolve(&n, y, area * width[stage] * 4);
        }
    }
    convolve(&n, x, 4 * 1000);
    assert_tight(&n);
}

/* Encoder layers whose queries, keys and values are cut from one product, as in vit_b_16. */
static void test_transformer(void **state)
{
    (void)state;
    static net n;
    n = (net){0};
    const uint64_t rows = 197 * 768 * 4;
    size_t x = produce(&n, rows);
    for (int layer = 0; layer < 12; layer++) {
        size_t all = convolve(&n, convolve(&n, x, rows), 3 * rows), part[3];
        for (int k = 0; k < 3; k++) part[k] = convolve(&n, all, rows);
        for (int k = 0; k < 3; k++) consume(&n, part[k]);
        scratch(&n, 1293312);
        size_t y = convolve(&n, produce(&n, rows), rows);
        consume(&n, x);
        n.step++; /* the sum with the residual, in place */
        size_t hidden = convolve(&n, convolve(&n, y, rows), 4 * rows);
        consume(&n, y);
        x = convolve(&n, hidden, rows);
    }
    convolve(&n, x, 4 * 1000);
    assert_tight(&n);
}

/* The same with working space in every product: step after step as wide as the widest, in each of the layers. */
static void test_transformer_with_scratch(void **state)
{
    (void)state;
    static net n;
    n = (net){0};
    const uint64_t rows = 197 * 768 * 4;
    size_t x = produce(&n, rows);
    for (int layer = 0; layer < 12; layer++) {
        const size_t normed = convolve(&n, x, rows);
        scratch(&n, 823296);
        size_t all = convolve(&n, normed, 3 * rows), part[3];
        for (int k = 0; k < 3; k++) part[k] = convolve(&n, all, rows);
        for (int k = 0; k < 3; k++) consume(&n, part[k]);
        scratch(&n, 1293312);
        size_t y = produce(&n, rows);
        scratch(&n, 737280);
        y = convolve(&n, y, rows);
        consume(&n, x);
        n.step++; /* the sum with the residual, in place */
        size_t hidden = convolve(&n, y, rows);
        scratch(&n, 851968);
        hidden = convolve(&n, hidden, 4 * rows);
        consume(&n, y);
        scratch(&n, 1081344);
        x = convolve(&n, hidden, rows);
    }
    convolve(&n, x, 4 * 1000);
    assert_tight(&n);
}

/* Blocks of windows, as in swin_t at two threads: queries, keys and values are transposed before they are split, and
 * the first block's input remains in the first layer's output. */
static void test_windowed_transformer(void **state)
{
    (void)state;
    static net n;
    n = (net){0};
    const uint64_t rows = 3136 * 96 * 4;
    size_t x = convolve(&n, convolve(&n, produce(&n, rows), rows), rows);
    for (int layer = 0; layer < 2; layer++) {
        size_t y = convolve(&n, convolve(&n, x, rows), rows), part[3];
        scratch(&n, 786432);
        size_t all = convolve(&n, convolve(&n, y, 3 * rows), 3 * rows);
        for (int k = 0; k < 3; k++) part[k] = convolve(&n, all, rows);
        for (int k = 0; k < 3; k++) consume(&n, part[k]);
        scratch(&n, 2777088);
        y = produce(&n, rows);
        scratch(&n, 589824);
        y = convolve(&n, convolve(&n, y, rows), rows);
        consume(&n, x);
        n.step++; /* the sum, in place */
        y = convolve(&n, x, rows);
        scratch(&n, 884736);
        y = convolve(&n, y, 4 * rows);
        consume(&n, x);
        scratch(&n, 1081344);
        x = convolve(&n, y, rows);
    }
    convolve(&n, x, rows / 2);
    assert_tight(&n);
}

/* Every layer of a block reads all former outputs of the block through a Concat, as in densenet121. */
static void test_concatenating_network(void **state)
{
    (void)state;
    static net n;
    n = (net){0};
    static const uint64_t side[] = {56, 28, 14, 7}, layers[] = {6, 12, 24, 16};
    uint64_t channels = 64;
    size_t x = produce(&n, 4 * channels * 56 * 56);
    for (int stage = 0; stage < 4; stage++) {
        uint64_t area = 4 * side[stage] * side[stage];
        size_t kept[32] = {x};
        size_t kept_count = 1;
        for (uint64_t l = 0; l < layers[stage]; l++) {
            for (size_t k = 0; k < kept_count; k++) consume(&n, kept[k]);
            size_t y = produce(&n, area * channels);
            y = convolve(&n, y, area * channels);
            y = convolve(&n, y, area * 128);
            kept[kept_count++] = convolve(&n, y, area * 32);
            channels += 32;
        }
        for (size_t k = 0; k < kept_count; k++) consume(&n, kept[k]);
        x = produce(&n, area * channels);
        channels /= 2;
        x = convolve(&n, x, area * channels);
        x = convolve(&n, x, area / 4 * channels);
    }
    assert_tight(&n);
}

/* Inverted bottlenecks: wide in the middle, narrow residual ends, as in mobilenet_v2. */
static void test_inverted_bottlenecks(void **state)
{
    (void)state;
    static net n;
    n = (net){0};
    static const uint64_t width[] = {16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320};
    static const uint64_t side[] = {112, 56, 56, 28, 28, 28, 14, 14, 14, 14, 14, 14, 14, 7, 7, 7, 7};
    size_t x = produce(&n, 4 * 3 * 224 * 224);
    x = convolve(&n, x, 4 * 32 * 112 * 112);
    uint64_t in = 32, in_side = 112;
    for (size_t b = 0; b < sizeof width / sizeof width[0]; b++) {
        bool residual = in == width[b] && in_side == side[b];
        size_t y = convolve(&n, x, 4 * in * 6 * in_side * in_side);
        y = convolve(&n, y, 4 * in * 6 * side[b] * side[b]);
        if (residual) consume(&n, x);
        x = convolve(&n, y, 4 * width[b] * side[b] * side[b]);
        in = width[b];
        in_side = side[b];
    }
    assert_tight(&n);
}

/* Encoder outputs wait for the decoder, as in a U-Net. */
static void test_skip_connections(void **state)
{
    (void)state;
    static net n;
    n = (net){0};
    size_t skip[5];
    uint64_t side = 256, channels = 32;
    size_t x = produce(&n, 4 * 3 * side * side);
    for (int level = 0; level < 5; level++, side /= 2, channels *= 2) {
        x = convolve(&n, x, 4 * channels * side * side);
        skip[level] = x = convolve(&n, x, 4 * channels * side * side);
        if (level < 4) x = convolve(&n, x, channels * side * side);
    }
    for (int level = 3; level >= 0; level--) {
        side = (uint64_t)256 >> level;
        channels = (uint64_t)32 << level;
        size_t up = convolve(&n, x, 4 * channels * side * side);
        consume(&n, skip[level]);
        x = convolve(&n, up, 4 * 2 * channels * side * side);
        x = convolve(&n, x, 4 * channels * side * side);
        x = convolve(&n, x, 4 * channels * side * side);
    }
    assert_tight(&n);
}

/* Four branches of several steps that meet in a Concat, as in googlenet. */
static void test_branches(void **state)
{
    (void)state;
    static net n;
    n = (net){0};
    static const uint64_t widths[][6] = {{64, 96, 128, 16, 32, 32},    {128, 128, 192, 32, 96, 64},
                                         {192, 96, 208, 16, 48, 64},   {160, 112, 224, 24, 64, 64},
                                         {128, 128, 256, 24, 64, 64},  {112, 144, 288, 32, 64, 64},
                                         {256, 160, 320, 32, 128, 128}};
    uint64_t channels = 192;
    size_t x = produce(&n, 4 * channels * 28 * 28);
    for (size_t m = 0; m < sizeof widths / sizeof widths[0]; m++) {
        uint64_t area = m < 2 ? 4 * 28 * 28 : 4 * 14 * 14;
        const uint64_t *w = widths[m];
        if (m == 2) x = convolve(&n, x, area * channels);
        size_t a = convolve(&n, x, area * w[0]);
        size_t b = convolve(&n, convolve(&n, x, area * w[1]), area * w[2]);
        size_t c = convolve(&n, convolve(&n, x, area * w[3]), area * w[4]);
        size_t d = convolve(&n, convolve(&n, x, area * channels), area * w[5]);
        size_t ends[] = {a, b, c, d};
        for (size_t k = 0; k < 4; k++) consume(&n, ends[k]);
        channels = w[0] + w[2] + w[4] + w[5];
        x = produce(&n, area * channels);
    }
    assert_tight(&n);
}

static void test_many_buffers(void **state)
{
    (void)state;
    random_state = 17;
    size_t count = 10000;
    prn_buffer *b = calloc(count, sizeof *b);
    assert_non_null(b);
    for (size_t i = 0; i < count; i++) {
        uint32_t first = (uint32_t)i;
        uint32_t last = first + (i % 50 == 0 ? draw(400) : draw(4));
        b[i] = (prn_buffer){1 + draw(1000000), first, last < count ? last : (uint32_t)count - 1, 0};
    }
    prn_memory_plan_figures f;
    plan(b, count, (uint32_t)count, &f);
    assert_true((double)f.planned_bytes <= 1.05 * (double)f.lower_bound_bytes);
    for (size_t i = 0; i < count; i++) {
        b[i].first = draw(200);
        b[i].last = 9000 + draw(1000);
    }
    plan(b, count, (uint32_t)count, &f);
    free(b);
}

/* The search must not take longer than a few runs: few bytes are worth few visits. The buffers do not reach the
 * bound. */
static void test_search_follows_bytes(void **state)
{
    (void)state;
    enum { COUNT = 150, STEPS = 60 };
    random_state = 5;
    prn_buffer small[COUNT], large[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        uint32_t first = draw(STEPS);
        small[i] = (prn_buffer){64 * (uint64_t)draw(80), first, first + draw(STEPS - first), 0};
        large[i] = small[i];
        large[i].bytes *= 64;
    }
    prn_memory_plan_figures f, g;
    plan(small, COUNT, STEPS, &f);
    plan(large, COUNT, STEPS, &g);
    assert_true(f.planned_bytes > f.lower_bound_bytes);
    assert_true(f.visits > (1 << 20) && f.visits < (2 << 20));
    assert_true(g.visits > 2 * f.visits && g.visits < (14 << 20));
    assert_true(g.planned_bytes <= 64 * f.planned_bytes);
}

static void test_refusals(void **state)
{
    (void)state;
    prn_memory_plan_figures f;
    prony_error error = {0};
    prn_buffer backwards = {1, 2, 1, 0}, late = {1, 0, 4, 0};
    assert_int_equal(prn_memory_plan(&backwards, 1, 4, 64, &f, &error), PRONY_INTERNAL);
    assert_int_equal(prn_memory_plan(&late, 1, 4, 64, &f, &error), PRONY_INTERNAL);
    assert_int_equal(prn_memory_plan(&late, 1, 5, 48, &f, &error), PRONY_INTERNAL);
    prn_buffer huge[] = {{UINT64_MAX, 0, 0, 0}};
    assert_int_equal(prn_memory_plan(huge, 1, 1, 64, &f, &error), PRONY_LIMIT);
    prn_buffer sum[] = {{INT64_MAX - 63, 0, 0, 0}, {INT64_MAX - 63, 1, 1, 0}, {INT64_MAX - 63, 2, 2, 0}};
    assert_int_equal(prn_memory_plan(sum, 3, 3, 64, &f, &error), PRONY_LIMIT);
    assert_non_null(strstr(error.message, "overflow"));
}

static void test_allocation_failures(void **state)
{
    (void)state;
    prn_buffer b[] = {{64 * 4, 0, 1, 0}, {64 * 2, 1, 2, 0}, {64 * 4, 2, 3, 0}};
    prn_memory_plan_figures f;
    for (uint64_t n = 1;; n++) {
        prn_alloc_fail_at(n);
        prony_status status = prn_memory_plan(b, 3, 4, 64, &f, NULL);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        if (!failed) {
            assert_true(n > 8);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_by_hand),
        cmocka_unit_test(test_external_fragmentation_by_hand),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_known_optimum),
        cmocka_unit_test(test_brick_walls),
        cmocka_unit_test(test_random_instances),
        cmocka_unit_test(test_same_input_same_plan),
        cmocka_unit_test(test_residual_network),
        cmocka_unit_test(test_transformer),
        cmocka_unit_test(test_transformer_with_scratch),
        cmocka_unit_test(test_windowed_transformer),
        cmocka_unit_test(test_concatenating_network),
        cmocka_unit_test(test_inverted_bottlenecks),
        cmocka_unit_test(test_skip_connections),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_many_buffers),
        cmocka_unit_test(test_search_follows_bytes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
