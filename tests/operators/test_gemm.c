/* The native matrix product against sums in double: every edge of a tile, every operand layout, and the same bits
 * for any number of threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "base/cpu/isa.h"
#include "ops/kernels/gemm/gemm_kernel.h"

static uint32_t random_state = 1;

/* Multiples of 1/8 in [-1, 1]: sums of fewer than 2^17 products are exact in float32, so any order must agree to the
 * bit. */
static float random_eighth(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)((int)(random_state >> 16) % 17 - 8) / 8.0f;
}

static float *random_floats(int64_t count)
{
    float *out = prn_alloc_aligned(64, (size_t)(count > 0 ? count : 1) * sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < count; i++) out[i] = random_eighth();
    return out;
}

typedef struct problem {
    int64_t m, n, k, items;
    bool a_transposed, b_transposed, packed, bias;
    float alpha;
} problem;

typedef struct step {
    int64_t a, b, c;
} step;

static void step_offsets(const void *argument, int64_t item, int64_t *a, int64_t *b, int64_t *c)
{
    const step *s = argument;
    *a = item * s->a;
    *b = item * s->b;
    *c = item * s->c;
}

static void check(const problem *p, const prn_gemm *gemm, const step *s, const float *c)
{
    for (int64_t item = 0; item < p->items; item++) {
        for (int64_t i = 0; i < p->m; i++) {
            for (int64_t j = 0; j < p->n; j++) {
                double sum = 0;
                for (int64_t k = 0; k < p->k; k++)
                    sum += (double)gemm->a[item * s->a + i * gemm->rs_a + k * gemm->cs_a] *
                           (double)gemm->b[item * s->b + k * gemm->rs_b + j * gemm->cs_b];
                sum = (double)p->alpha * sum + (p->bias ? (double)gemm->bias[j] : 0.0);
                const float got = c[item * s->c + i * p->n + j];
                if (got == (float)sum) continue;
                fail_msg("%lld items of [%lld, %lld] x [%lld, %lld]%s%s%s: C[%lld, %lld, %lld] is %.9g, not %.9g",
                         (long long)p->items, (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n,
                         p->a_transposed ? " A^T" : "", p->b_transposed ? " B^T" : "", p->packed ? " packed" : "",
                         (long long)item, (long long)i, (long long)j, (double)got, sum);
            }
        }
    }
}

static void run(const problem *p)
{
    const step s = {p->m * p->k, p->packed ? 0 : p->k * p->n, p->m * p->n};
    float *a = random_floats(p->items * s.a), *b = random_floats((p->packed ? 1 : p->items) * p->k * p->n);
    float *c = random_floats(p->items * s.c), *again = random_floats(p->items * s.c), *bias = random_floats(p->n);
    prn_gemm gemm = {.m = p->m, .n = p->n, .k = p->k, .a = a, .b = b, .c = c, .rs_c = p->n, .alpha = p->alpha};
    gemm.rs_a = p->a_transposed ? 1 : p->k;
    gemm.cs_a = p->a_transposed ? p->m : 1;
    gemm.rs_b = p->b_transposed ? 1 : p->n;
    gemm.cs_b = p->b_transposed ? p->k : 1;
    gemm.beta = 1.0f;
    gemm.bias = p->bias ? bias : NULL;
    gemm.bias_col = 1;
    float *packed = NULL, *scratch = NULL;
    if (p->packed) {
        packed = random_floats(prn_gemm_packed_count(p->k, p->n));
        prn_gemm_pack(2, &gemm, packed);
        gemm.packed = packed;
    }
    if (prn_gemm_scratch_bytes(&gemm)) scratch = random_floats(prn_gemm_packed_count(p->k, p->n));
    const prn_gemm_batch batch = {p->items, step_offsets, &s};
    prn_gemm_run(1, &gemm, &batch, scratch);
    check(p, &gemm, &s, c);
    gemm.c = again;
    for (int threads = 2; threads <= 4; threads++) {
        memset(again, 0xa5, (size_t)(p->items * s.c) * sizeof *again);
        prn_gemm_run(threads, &gemm, &batch, scratch);
        assert_memory_equal(c, again, (size_t)(p->items * s.c) * sizeof *again);
    }
    float *const all[] = {a, b, c, again, bias, packed, scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) prn_free_aligned(all[i]);
}

/* All m, n, k below 9, which cover every edge, and a selection up to 70. */
static void test_every_edge(void **state)
{
    (void)state;
    for (int64_t m = 1; m <= 70; m += m < 9 ? 1 : 7) {
        for (int64_t n = 1; n <= 70; n += n < 9 ? 1 : 5) {
            for (int64_t k = 0; k <= 70; k += k < 9 ? 1 : 13) {
                const unsigned kind = (unsigned)(m * 31 + n * 17 + k);
                run(&(problem){m, n, k, 1, kind & 1, kind & 2, kind & 4, kind & 8, kind & 16 ? 0.5f : 1.0f});
            }
        }
    }
}

static void test_every_kind(void **state)
{
    static const int64_t shapes[][4] = {{1, 37, 41, 1}, {37, 1, 41, 1}, {13, 35, 29, 1}, {5, 64, 17, 1},
                                        {7, 19, 23, 5}, {1, 30, 70, 3}, {30, 1, 70, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (unsigned kind = 0; kind < 32; kind++) {
            const int64_t *s = shapes[i];
            run(&(problem){s[0], s[1], s[2], s[3], kind & 1, kind & 2, kind & 4, kind & 8, kind & 16 ? 0.5f : 1.0f});
        }
    }
}

/* Several blocks in each direction, and each way to cut. */
static void test_large(void **state)
{
    static const problem problems[] = {
        {300, 530, 800, 1, false, false, true, true, 1.0f},   {300, 300, 400, 1, false, false, false, false, 1.0f},
        {530, 70, 500, 2, false, false, false, true, 1.0f},   {530, 70, 390, 1, true, true, false, false, 1.0f},
        {1, 700, 900, 1, false, true, false, true, 0.5f},     {1, 3000, 400, 1, false, false, true, false, 1.0f},
        {1500, 1, 300, 1, false, false, false, false, 1.0f},  {6, 600, 1200, 1, false, false, false, true, 1.0f},
        {40, 40, 64, 24, false, true, false, false, 1.0f},    {4, 5, 6, 700, false, false, false, false, 1.0f},
        {2000, 20, 400, 1, false, false, false, false, 1.0f},
    };
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) run(&problems[i]);
}

/* The scratch size decides the blocks, their order, the position of partial sums and of A's rows; threads split the
 * columns. Sums depend on neither. */
static void test_space_changes_no_bit(void **state)
{
    static const int64_t shapes[][3] = {{197, 256, 300},  {300, 150, 333},  {128, 96, 128},   {600, 70, 200},
                                        {99, 130, 784},   {100, 40, 129},   {120, 1030, 260}, {100, 3 * 128 + 5, 700},
                                        {197, 300, 1024}, {1030, 256, 1024}}; /* rows that share a cache's sets */
    (void)state;
    for (size_t i = 0; i < 3 * sizeof shapes / sizeof shapes[0]; i++) {
        SCENARIO(i);
        const int64_t m = shapes[i / 3][0], n = shapes[i / 3][1], k = shapes[i / 3][2];
        float *a = random_floats(m * k), *b = random_floats(k * n), *bias = random_floats(n);
        float *c = random_floats(m * n), *again = random_floats(m * n),
              *packed = random_floats(prn_gemm_packed_count(k, n));
        for (int64_t j = 0; j < m * k; j++) a[j] += 0.0137f * random_eighth();
        for (int64_t j = 0; j < k * n; j++) b[j] += 0.0071f * random_eighth();
        if (i % 3 == 1) a[(m - 1) * k + k - 1] = INFINITY; /* no split terms in intermediate values */
        if (i % 3 == 2) b[k * n - 1] = NAN;
        prn_gemm gemm = {.m = m,
                         .n = n,
                         .k = k,
                         .a = a,
                         .rs_a = k,
                         .cs_a = 1,
                         .b = b,
                         .rs_b = n,
                         .cs_b = 1,
                         .c = c,
                         .rs_c = n,
                         .alpha = 1.0f,
                         .beta = 1.0f,
                         .bias = bias,
                         .bias_col = 1};
        prn_gemm_pack(2, &gemm, packed);
        gemm.packed = packed;
        prn_gemm_run(1, &gemm, NULL, NULL);
        gemm.space_bytes = prn_gemm_space_bytes(2, &gemm, 1);
        if (prn_isa_has(PRN_HAS_AMX | PRN_HAS_AVX512)) assert_true(gemm.space_bytes > 0);
        /* A's rows share the caches' sets, which matters to tiles of more rows than a set has lines. */
        if (k == 1024 && prn_gemm_isa()->tile_rows > 8) assert_true(gemm.space_bytes > 0);
        char *space = gemm.space_bytes ? prn_alloc_aligned(64, gemm.space_bytes) : NULL;
        gemm.space = space;
        gemm.c = again;
        for (int threads = 1; threads <= 4; threads++) {
            if (space) memset(space, 0xff, gemm.space_bytes);
            memset(again, 0xa5, (size_t)(m * n) * sizeof *again);
            prn_gemm_run(threads, &gemm, NULL, NULL);
            assert_memory_equal(c, again, (size_t)(m * n) * sizeof *again);
        }
        float *const all[] = {a, b, bias, c, again, packed, (float *)(void *)space};
        for (size_t f = 0; f < sizeof all / sizeof all[0]; f++) prn_free_aligned(all[f]);
    }
}

static void test_nothing_to_do(void **state)
{
    (void)state;
    run(&(problem){0, 5, 6, 1, false, false, false, false, 1.0f});
    run(&(problem){5, 0, 6, 1, false, false, false, false, 1.0f});
    run(&(problem){5, 6, 7, 0, false, false, false, false, 1.0f});
}

static void test_the_table_fits_the_processor(void **state)
{
    (void)state;
    const char *name = prn_isa_name();
    const bool dots = strcmp(name, "dotprod") == 0 || strcmp(name, "i8mm") == 0; /* levels of products of bytes */
    assert_string_equal(prn_gemm_isa()->name, strcmp(name, "amx") == 0 ? "avx512" : dots ? "neon" : name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_edge),    cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_large),         cmocka_unit_test(test_space_changes_no_bit),
        cmocka_unit_test(test_nothing_to_do), cmocka_unit_test(test_the_table_fits_the_processor),
    };
    return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}
