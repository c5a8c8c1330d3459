/* The shared attention kernel against sums in double: few and many rows, key counts that fill vectors and others,
 * shared heads, every layout of masks and operands, and the same bytes for any number of threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "ops/kernels/attention/attend.h"
#include "ops/kernels/attention/attend_tiles.h"
#include "ops/kernels/vector/vec.h"

static uint32_t random_state = 1;

static float random_float(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(int)(random_state >> 8) * 0x1p-23f - 1.0f;
}

static float *random_floats(int64_t count)
{
    float *out = prn_alloc_aligned(64, (size_t)(count > 0 ? count : 1) * sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < count; i++) out[i] = random_float();
    return out;
}

enum { NO_MASK, PER_KEY, PER_ROW, PER_SCORE, OWN_WEIGHTS, KINDS };

static float at_view(const prn_attend_view *v, int64_t b, int64_t h, int64_t r, int64_t c)
{
    return v->data[b * v->stride[0] + h * v->stride[1] + r * v->stride[2] + c * v->stride[3]];
}

/* Half of each product, the first key twice as heavy: no softmax. */
static void weigh(const void *argument, int64_t batch, int64_t head, int64_t row, float *scores)
{
    const prn_attend *at = argument;
    for (int64_t t = 0; t < at->keys; t++) scores[t] *= 0.5f;
    scores[0] *= (float)(2 + batch + head + row);
}

/* sizes: magnitudes that the error of a weight is proportional to. */
static void weights_of(const prn_attend *at, int64_t b, int64_t h, int64_t s, double *weights, double *sizes)
{
    const int64_t kh = h / (at->heads / at->key_heads);
    double top = -INFINITY, total = 0;
    for (int64_t t = 0; t < at->keys; t++) {
        double sum = 0, size = 0;
        for (int64_t d = 0; d < at->depth; d++) {
            const double term = (double)at_view(&at->q, b, h, s, d) * (double)at_view(&at->k, b, kh, t, d);
            sum += term;
            size += fabs(term);
        }
        if (at->weigh) {
            const double factor = 0.5 * (double)(t == 0 ? 2 + b + h + s : 1);
            weights[t] = sum * factor;
            sizes[t] = size * factor;
            continue;
        }
        weights[t] = sum * (double)at->scale + (at->mask.data ? (double)at_view(&at->mask, b, h, s, t) : 0.0);
        top = fmax(top, weights[t]);
    }
    if (at->weigh) return;
    for (int64_t t = 0; t < at->keys; t++) total += weights[t] = exp(weights[t] - top);
    for (int64_t t = 0; t < at->keys; t++) sizes[t] = weights[t] /= total;
}

static void check(const prn_attend *at, double tolerance)
{
    double *weights = prn_alloc(2 * (size_t)at->keys * sizeof *weights), *sizes = weights + at->keys;
    assert_non_null(weights);
    for (int64_t i = 0; i < at->batch * at->heads * at->rows; i++) {
        const int64_t s = i % at->rows, h = i / at->rows % at->heads, b = i / at->rows / at->heads;
        weights_of(at, b, h, s, weights, sizes);
        for (int64_t e = 0; e < at->width; e++) {
            double sum = 0, size = 0;
            for (int64_t t = 0; t < at->keys; t++) {
                const double value = (double)at_view(&at->v, b, h / (at->heads / at->key_heads), t, e);
                sum += weights[t] * value;
                size += sizes[t] * fabs(value);
            }
            const float got = at->y[b * at->y_stride[0] + h * at->y_stride[1] + s * at->y_stride[2] + e];
            if (fabs((double)got - sum) <= tolerance * size) continue;
            fail_msg("[%lld, %lld, %lld, %lld] of %lld keys, depth %lld: %.9g, not %.9g", (long long)b, (long long)h,
                     (long long)s, (long long)e, (long long)at->keys, (long long)at->depth, (double)got, sum);
        }
    }
    prn_free(weights);
}

/* [B, H, rows, columns], or [B, rows, H, columns] as projections leave it. */
static prn_attend_view view_of(const float *data, int64_t heads, int64_t rows, int64_t columns, bool heads_inside)
{
    if (heads_inside) return (prn_attend_view){data, {heads * rows * columns, columns, heads * columns, 1}};
    return (prn_attend_view){data, {heads * rows * columns, rows * columns, columns, 1}};
}

/* The operands that tiles multiply. */
static float *rounded(const float *from, int64_t count)
{
    float *out = random_floats(count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        bits = (bits + 0x8000) & UINT32_C(0xffff0000);
        memcpy(out + i, &bits, sizeof bits);
    }
    return out;
}

/* On tiles of bfloat16: beside sums in double of rounded operands only the weights are rounded. */
static void run_on_tiles(prn_attend at, int64_t q_count, int64_t k_count, int64_t v_count)
{
    const int64_t y_count = at.batch * at.heads * at.rows * at.width;
    float *y = random_floats(y_count), *again = random_floats(y_count);
    prn_attend exact = at;
    float *const operands[] = {rounded(at.q.data, q_count), rounded(at.k.data, k_count), rounded(at.v.data, v_count)};
    exact.q.data = operands[0];
    exact.k.data = operands[1];
    exact.v.data = operands[2];
    for (int threads = 1; threads <= 4; threads++) {
        size_t bytes = 0;
        assert_true(prn_attend_tiles_space(threads, &at, &bytes));
        char *space = prn_alloc_aligned(64, bytes);
        assert_non_null(space);
        memset(space, 0xff, bytes);
        memset(again, 0xa5, (size_t)y_count * sizeof *again);
        at.y = threads == 1 ? y : again;
        prn_attend_tiles_run(threads, &at, space);
        if (threads > 1) assert_memory_equal(y, again, (size_t)y_count * sizeof *y);
        prn_free_aligned(space);
    }
    exact.y = y;
    check(&exact, 0x1p-8);
    float *const all[] = {y, again, operands[0], operands[1], operands[2]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) prn_free_aligned(all[i]);
}

static void run(prn_attend at, int kind, bool inside)
{
    const int64_t q_count = at.batch * at.heads * at.rows * at.depth, k_count = at.batch * at.key_heads * at.keys;
    const int64_t y_count = at.batch * at.heads * at.rows * at.width;
    float *q = random_floats(q_count), *k = random_floats(k_count * at.depth), *v = random_floats(k_count * at.width);
    float *mask = random_floats(at.heads * at.rows * at.keys), *y = random_floats(y_count),
          *again = random_floats(y_count);
    at.q = view_of(q, at.heads, at.rows, at.depth, inside);
    at.k = view_of(k, at.key_heads, at.keys, at.depth, inside);
    at.v = view_of(v, at.key_heads, at.keys, at.width, inside);
    at.scale = 0.5f;
    for (int64_t i = 0; i < at.heads * at.rows * at.keys; i++) {
        if (i % 7 == 3) mask[i] = i % at.keys == 0 ? 2.0f : -INFINITY;
    }
    if (kind == PER_KEY) at.mask = (prn_attend_view){mask, {0, 0, 0, 1}};
    if (kind == PER_ROW) at.mask = (prn_attend_view){mask, {0, 0, at.keys, 0}};
    if (kind == PER_SCORE) at.mask = (prn_attend_view){mask, {0, at.rows * at.keys, at.keys, 1}};
    if (kind == PER_ROW) {
        for (int64_t i = 0; i < at.rows; i++) mask[i * at.keys] = (float)i;
    }
    if (kind == OWN_WEIGHTS) at.weigh = weigh, at.argument = &at;
    at.y = y;
    at.y_stride[0] = at.heads * at.rows * at.width;
    at.y_stride[1] = inside ? at.width : at.rows * at.width;
    at.y_stride[2] = inside ? at.heads * at.width : at.width;
    assert_true(prn_attend_fits(&at));
    int64_t floats = -1;
    assert_true(prn_attend_space(&at, &floats));
    float *space = random_floats(floats);
    prn_attend_run(1, &at, space);
    check(&at, 4e-6);
    at.y = again;
    for (int threads = 2; threads <= 4; threads++) {
        memset(again, 0xa5, (size_t)y_count * sizeof *again);
        prn_attend_run(threads, &at, space);
        assert_memory_equal(y, again, (size_t)y_count * sizeof *again);
    }
    if (prn_attend_tiles_fit(&at)) run_on_tiles(at, q_count, k_count * at.depth, k_count * at.width);
    float *const all[] = {q, k, v, mask, y, again, space};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) prn_free_aligned(all[i]);
}

static void test_every_shape(void **state)
{
    static const int64_t rows[] = {1, 2, 6, 14, 15, 40}, keys[] = {1, 5, 16, 31, 50}, depths[] = {1, 8, 13};
    (void)state;
    for (int i = 0; i < 6 * 5 * 3; i++) {
        for (int kind = 0; kind < KINDS; kind++)
            run((prn_attend){.batch = 2,
                             .heads = 4,
                             .key_heads = i % 3 ? 4 : 2,
                             .rows = rows[i % 6],
                             .keys = keys[i / 6 % 5],
                             .depth = depths[i / 30],
                             .width = i % 2 ? 16 : 5},
                kind, i % 4 < 2);
    }
}

/* Several blocks of rows, several blocks of the product, and a row that fills the space for scores. */
static void test_large(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        run((prn_attend){.batch = 1, .heads = 2, .key_heads = 2, .rows = 197, .keys = 197, .depth = 64, .width = 64},
            kind, true);
        run((prn_attend){.batch = 1, .heads = 2, .key_heads = 1, .rows = 30, .keys = 1500, .depth = 32, .width = 40},
            kind, false);
    }
    run(
        (prn_attend){
            .batch = 1, .heads = 1, .key_heads = 1, .rows = 15, .keys = PRN_ATTEND_MOST_KEYS, .depth = 4, .width = 3},
        NO_MASK, false);
    run((prn_attend){.batch = 1,
                     .heads = 1,
                     .key_heads = 1,
                     .rows = 16,
                     .keys = PRN_ATTEND_MOST_KEYS - 1,
                     .depth = 4,
                     .width = 3},
        PER_KEY, false);
}

/* Weighted means of values whose sum leaves the range of float32, with a mask and without. */
static void test_large_values(void **state)
{
    enum { MOST = 40, KEYS = 300, DEPTH = 16 };
    (void)state;
    float *q = random_floats(MOST * DEPTH), *k = random_floats(KEYS * DEPTH), *v = random_floats(KEYS * DEPTH),
          *mask = random_floats(KEYS), *y = random_floats(MOST * DEPTH);
    for (int64_t i = 0; i < KEYS * DEPTH; i++) v[i] = i % DEPTH == 3 ? 1.0f : 2e38f;
    for (int64_t rows = 1; rows <= MOST; rows += 13) {
        SCENARIO(rows);
        for (int masked = 0; masked < 2; masked++) {
            prn_attend at = {.batch = 1,
                             .heads = 1,
                             .key_heads = 1,
                             .rows = rows,
                             .keys = KEYS,
                             .depth = DEPTH,
                             .width = DEPTH,
                             .scale = 0.3f,
                             .q = {q, {0, 0, DEPTH, 1}},
                             .k = {k, {0, 0, DEPTH, 1}},
                             .v = {v, {0, 0, DEPTH, 1}},
                             .y = y,
                             .y_stride = {0, 0, DEPTH}};
            int64_t floats = 0;
            if (masked) at.mask = (prn_attend_view){mask, {0, 0, 0, 1}};
            assert_true(prn_attend_space(&at, &floats));
            float *space = random_floats(floats);
            prn_attend_run(1, &at, space);
            for (int64_t i = 0; i < rows * DEPTH; i++) {
                const float wanted = v[i % DEPTH];
                assert_true(fabsf(y[i] / wanted - 1.0f) < 1e-5f);
            }
            prn_free_aligned(space);
        }
    }
    float *const all[] = {q, k, v, mask, y};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) prn_free_aligned(all[i]);
}

/* Cases without a bfloat16 kernel run in float32: one key per head, one row of Q, NaN weights. */
static void test_tiles_go_without(void **state)
{
    enum { HEADS = 2, ROWS = 48, KEYS = 40, DEPTH = 32, COUNT = HEADS * ROWS * DEPTH };
    (void)state;
    prn_attend at = {.batch = 1,
                     .heads = HEADS,
                     .key_heads = HEADS,
                     .rows = ROWS,
                     .keys = KEYS,
                     .depth = DEPTH,
                     .width = DEPTH,
                     .scale = 0x1p-60f,
                     .q = {NULL, {COUNT, ROWS * DEPTH, DEPTH, 1}},
                     .k = {NULL, {COUNT, KEYS * DEPTH, DEPTH, 1}},
                     .v = {NULL, {COUNT, KEYS * DEPTH, DEPTH, 1}},
                     .y_stride = {COUNT, ROWS * DEPTH, DEPTH}};
    if (!prn_attend_tiles_fit(&at)) skip(); /* a longjmp: the test allocates nothing before it */
    float *q = random_floats(COUNT), *k = random_floats(COUNT), *v = random_floats(COUNT), *y = random_floats(COUNT),
          *expected = random_floats(COUNT), *mask = random_floats(ROWS);
    at.q.data = q;
    at.k.data = k;
    at.v.data = v;
    at.y = expected;
    int64_t floats = 0;
    size_t bytes = 0;
    k[3] = 3.4e38f;          /* in the first head: rounds to infinity */
    q[COUNT - 1] = -3.4e38f; /* in the second one's last block of rows */
    memset(mask, 0, ROWS * sizeof *mask);
    mask[0] = NAN;
    at.mask = (prn_attend_view){mask, {0, 0, 1, 0}};
    assert_true(prn_attend_space(&at, &floats) && prn_attend_tiles_space(2, &at, &bytes));
    float *space = random_floats(floats > (int64_t)bytes ? floats : (int64_t)bytes);
    prn_attend_run(1, &at, space);
    at.y = y;
    prn_attend_tiles_run(2, &at, space);
    for (int i = 0; i < COUNT; i++) {
        SCENARIO(i);
        if (i % (ROWS * DEPTH) < DEPTH)
            assert_true(isnan(y[i]) && isnan(expected[i]));
        else
            assert_true(fabsf(y[i] - expected[i]) <= (i < ROWS * DEPTH ? 1e-5f : 1e-2f));
    }
    assert_true(y[COUNT - 1] != 0.0f);
    float *const all[] = {q, k, v, y, expected, mask, space};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) prn_free_aligned(all[i]);
}

static void test_what_does_not_fit(void **state)
{
    const prn_attend fits = {.batch = 1, .heads = 1, .key_heads = 1, .rows = 0, .keys = 1, .depth = 1, .width = 1};
    prn_attend at = fits;
    int64_t floats = -1;
    (void)state;
    assert_true(prn_attend_fits(&at));
    assert_true(prn_attend_space(&at, &floats));
    assert_int_equal(floats, 0);
    prn_attend_run(1, &at, NULL);
    at.keys = PRN_ATTEND_MOST_KEYS + 1;
    assert_false(prn_attend_fits(&at));
    at = fits, at.keys = 0;
    assert_false(prn_attend_fits(&at));
    at = fits, at.depth = 0;
    assert_false(prn_attend_fits(&at));
    at = fits, at.width = 0;
    assert_false(prn_attend_fits(&at));
    at = (prn_attend){.batch = INT64_C(1) << 40,
                      .heads = 1,
                      .key_heads = INT64_C(1) << 20,
                      .rows = 100,
                      .keys = 1,
                      .depth = 9,
                      .width = 1};
    assert_false(prn_attend_space(&at, &floats));
}

/* ---- keys and values in fewer bits ---- */

/* Blocks with room for more rows, and the numbers that they stand for, in `back`. */
static char *stored_of(prn_cache_type type, const float *from, int64_t items, int64_t keys, int64_t room, int64_t size,
                       float *back)
{
    const size_t bytes = prn_cache_block_bytes(type, room, size);
    char *blocks = prn_alloc_aligned(64, (size_t)items * bytes);
    assert_non_null(blocks);
    memset(blocks, 0xff, (size_t)items * bytes); /* rows that are not there read as NaN */
    for (int64_t i = 0; i < items; i++) {
        char *block = blocks + (size_t)i * bytes;
        const float *rows = from + i * keys * size;
        prn_cache_store(type, block, room, size, 0, keys / 2, rows);
        prn_cache_store(type, block, room, size, keys / 2, keys - keys / 2, rows + keys / 2 * size);
        prn_cache_load(type, block, room, size, 0, keys, back + i * keys * size);
        for (int64_t t = 0; t < keys; t++) {
            float most = 0;
            for (int64_t d = 0; d < size; d++) most = fmaxf(most, fabsf(rows[t * size + d]));
            const float allowed = type == PRN_CACHE_INT8 ? most / 127.0f * 0.50001f : most * 0x1p-11f;
            for (int64_t d = 0; d < size; d++)
                assert_true(fabsf(rows[t * size + d] - back[(i * keys + t) * size + d]) <= allowed);
        }
    }
    return blocks;
}

/* Rows of caches are those of attention on the numbers that they stand for, for any number of threads. */
static void test_stored(void **state)
{
    (void)state;
    static const int64_t shapes[][6] = {{1, 2, 1, 1, 1, 4},      {2, 4, 2, 1, 37, 32},  {1, 8, 2, 1, 300, 64},
                                        {1, 4, 4, 5, 129, 40},   {2, 6, 3, 70, 90, 64}, {1, 2, 1, 3, 2000, 7},
                                        {1, 1, 1, 300, 33, 128}, {1, 9, 3, 1, 513, 80}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        for (prn_cache_type type = PRN_CACHE_FLOAT16; type <= PRN_CACHE_INT8; type++) {
            SCENARIO(2 * k + type);
            const int64_t b = shapes[k][0], h = shapes[k][1], hk = shapes[k][2], rows = shapes[k][3],
                          keys = shapes[k][4], depth = shapes[k][5], width = k % 2 ? depth : depth + 3, room = keys + 9;
            const int64_t y_count = b * h * rows * width;
            float *q = random_floats(b * h * rows * depth), *key = random_floats(b * hk * keys * depth),
                  *v = random_floats(b * hk * keys * width), *y = random_floats(y_count),
                  *again = random_floats(y_count);
            char *key_blocks = stored_of(type, key, b * hk, keys, room, depth, key),
                 *v_blocks = stored_of(type, v, b * hk, keys, room, width, v);
            prn_attend at = {.batch = b,
                             .heads = h,
                             .key_heads = hk,
                             .rows = rows,
                             .keys = keys,
                             .depth = depth,
                             .width = width,
                             .q = view_of(q, h, rows, depth, k % 3 == 1),
                             .k = {(const float *)(const void *)key_blocks, {0}},
                             .v = {(const float *)(const void *)v_blocks, {0}},
                             .y = y,
                             .y_stride = {h * rows * width, rows * width, width},
                             .scale = 0.25f,
                             .stored = type,
                             .cache_rows = room};
            int64_t floats;
            assert_true(prn_attend_fits(&at));
            assert_true(prn_attend_space(&at, &floats));
            assert_int_equal(floats, 0);
            prn_attend_run(1, &at, NULL);
            prn_attend exact = at;
            exact.k = view_of(key, hk, keys, depth, false);
            exact.v = view_of(v, hk, keys, width, false);
            check(&exact, 0x1p-18);
            at.y = again;
            for (int threads = 2; threads <= 4; threads++) {
                memset(again, 0xa5, (size_t)y_count * sizeof *again);
                prn_attend_run(threads, &at, NULL);
                assert_memory_equal(y, again, (size_t)y_count * sizeof *y);
            }
            prn_free_aligned(q);
            prn_free_aligned(key);
            prn_free_aligned(v);
            prn_free_aligned(y);
            prn_free_aligned(again);
            prn_free_aligned(key_blocks);
            prn_free_aligned(v_blocks);
        }
    }
}

/* Values that neither form has: too large ones, tiny rows, and rows with no number. */
static void test_stored_limits(void **state)
{
    (void)state;
    const float rows[4][3] = {{1e6f, -1e6f, 2.0f}, {0.0f, 0.0f, 0.0f}, {1e-45f, 0.0f, -1e-45f}, {NAN, 1.0f, 2.0f}};
    float back[4][3];
    char block[128];
    prn_cache_store(PRN_CACHE_FLOAT16, block, 4, 3, 0, 4, rows[0]);
    prn_cache_load(PRN_CACHE_FLOAT16, block, 4, 3, 0, 4, back[0]);
    assert_true(back[0][0] == 65504.0f && back[0][1] == -65504.0f && back[0][2] == 2.0f);
    assert_true(back[1][0] == 0.0f && back[2][0] == 0.0f && isnan(back[3][0]) && back[3][1] == 1.0f);
    prn_cache_store(PRN_CACHE_INT8, block, 4, 3, 0, 4, rows[0]);
    prn_cache_load(PRN_CACHE_INT8, block, 4, 3, 0, 4, back[0]);
    assert_true(fabsf(back[0][0] - 1e6f) < 1.0f && fabsf(back[0][1] + 1e6f) < 1.0f && back[0][2] == 0.0f);
    assert_true(back[1][0] == 0.0f && back[2][0] == 0.0f && isnan(back[3][0]) && isnan(back[3][2]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shape),       cmocka_unit_test(test_large),
        cmocka_unit_test(test_large_values),      cmocka_unit_test(test_tiles_go_without),
        cmocka_unit_test(test_what_does_not_fit), cmocka_unit_test(test_stored),
        cmocka_unit_test(test_stored_limits),
    };
    return cmocka_run_group_tests_name("attend", tests, NULL, NULL);
}
