/* Products whose constant operand has fewer bits (ops/kernels/gemm/lowbit_weights.h), against float64: the error is
 * at most that of rounding the weights once, for every shape, and every number of threads gives the same bits. */
#include "failure_trace.h"
#include "base/cpu/simd.h"
#include "ops/kernels/gemm/lowbit_weights.h"
#include "prony_report.h"
#include "tests/support/model_run.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const precisions[] = {"int8-weights", "int4-weights", "fp16", "bf16", "fast"};
enum { INT8, INT4, FP16, BF16, FAST, PRECISIONS, GROUP = 32, MOST_THREADS = 4 };

typedef struct problem {
    int m, k, n;
    bool transposed, gemm;
    float *a, *b, *bias;
} problem;

static float *random_floats(int count, uint32_t seed)
{
    float *out = malloc(((size_t)count + 1) * sizeof *out);
    assert_non_null(out);
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
    return out;
}

static problem make(int m, int k, int n, bool transposed, bool gemm)
{
    problem p = {m, k, n, transposed, gemm, random_floats(m * k, 1), random_floats(k * n, 2), random_floats(n, 3)};
    return p;
}

static void release(problem *p)
{
    free(p->a);
    free(p->b);
    free(p->bias);
}

static float weight(const problem *p, int k, int n)
{
    return p->transposed ? p->b[n * p->k + k] : p->b[k * p->n + n];
}

static model_builder *build(const problem *p)
{
    char a[32], b[32], bias[32], y[32];
    snprintf(a, sizeof a, "%d,%d", p->m, p->k);
    snprintf(b, sizeof b, "%d,%d", p->transposed ? p->n : p->k, p->transposed ? p->k : p->n);
    snprintf(bias, sizeof bias, "%d", p->n);
    snprintf(y, sizeof y, "%d,%d", p->m, p->n);
    model_builder *m = mb_begin(13);
    mb_input(m, "a", PRONY_FLOAT32, a);
    mb_initializer(m, "b", PRONY_FLOAT32, b, p->b);
    mb_initializer(m, "c", PRONY_FLOAT32, bias, p->bias);
    if (p->gemm) {
        mb_node(m, "Gemm", "a b c", "s", p->transposed ? "transB=1 alpha=0.5" : "alpha=0.5");
    } else {
        mb_node(m, "MatMul", "a b", "t", "");
        mb_node(m, "Add", "t c", "s", "");
    }
    mb_node(m, "LeakyRelu", "s", "y", "alpha=0.25");
    mb_output(m, "y", PRONY_FLOAT32, y);
    return m;
}

static void run(const problem *p, const char *precision, int threads, float *out)
{
    char a[32];
    model_run r = {0};
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.precision = precision;
    r.options.intra_op_threads = threads;
    mr_open(&r, build(p));
    snprintf(a, sizeof a, "%d,%d", p->m, p->k);
    mr_set(&r, "a", PRONY_FLOAT32, a, p->a);
    const prony_value *y = mr_run(&r, 0);
    assert_int_equal(prony_shape_numel(&y->shape), p->m * p->n);
    memcpy(out, y->data, (size_t)(p->m * p->n) * sizeof *out);
    mr_close(&r);
}

/* The largest change of weight (k, n) by rounding. */
static double rounding(const problem *p, int precision, int k, int n)
{
    const double size = fabs((double)weight(p, k, n));
    if (precision == FP16) return fmax(size * 0x1p-11, 0x1p-25);
    if (precision == BF16) return size * 0x1p-9;
    if (precision == FAST) return size * 0x1p-17;
    const int first = precision == INT8 ? 0 : k / GROUP * GROUP,
              end = precision == INT8 || first + GROUP > p->k ? p->k : first + GROUP;
    double largest = 0;
    for (int i = first; i < end; i++) largest = fmax(largest, fabs((double)weight(p, i, n)));
    return largest / (precision == INT8 ? 127 : 7) * 0.5 + 0x1p-149; /* a scale may be subnormal */
}

/* Largest error relative to the allowed one; `plain`: relative to the sum of the magnitudes. */
static double worst(const problem *p, int precision, const float *y, double *plain)
{
    double most = 0;
    *plain = 0;
    double *allowed_of = malloc((size_t)(p->k * p->n) * sizeof *allowed_of);
    assert_non_null(allowed_of);
    for (int i = 0; i < p->k * p->n; i++) allowed_of[i] = rounding(p, precision, i / p->n, i % p->n);
    for (int i = 0; i < p->m; i++) {
        for (int j = 0; j < p->n; j++) {
            double sum = 0, sizes = fabs((double)p->bias[j]), allowed = 0;
            for (int k = 0; k < p->k; k++) {
                const double x = (double)p->a[i * p->k + k], w = (double)weight(p, k, j);
                sum += x * w;
                sizes += fabs(x * w);
                allowed += fabs(x) * allowed_of[k * p->n + j];
                if (precision == BF16) allowed += fabs(x * w) * 0x1.1p-9; /* tiles round activations too */
                if (precision == FAST)
                    allowed += fabs(x * w) * 0x1.8p-16; /* and leave out the product of the second split terms */
            }
            double want = (p->gemm ? 0.5 : 1.0) * sum + (double)p->bias[j];
            if (want < 0) want *= 0.25;
            const double error = fabs((double)y[i * p->n + j] - want);
            *plain = fmax(*plain, error / sizes);
            most = fmax(most, error / (allowed + sizes * 0x1p-20));
        }
    }
    free(allowed_of);
    return most;
}

/* `rounds`: some error must be larger than float32's, because the weights are rounded. */
static void check(const problem *p, bool rounds)
{
    float *y = malloc(((size_t)(p->m * p->n) + 1) * sizeof *y),
          *again = malloc(((size_t)(p->m * p->n) + 1) * sizeof *again);
    assert_true(y && again);
    for (int precision = 0; precision < PRECISIONS; precision++) {
        double plain;
        run(p, precisions[precision], 1, y);
        const double error = worst(p, precision, y, &plain);
        if (!(error <= 1))
            fail_msg("%s: %d x %d x %d: %g of what is allowed", precisions[precision], p->m, p->k, p->n, error);
        if (rounds && p->m > 0 && precision != FAST) assert_true(plain > 1e-6);
        for (int threads = 2; threads <= MOST_THREADS; threads++) {
            run(p, precisions[precision], threads, again);
            assert_memory_equal(y, again, (size_t)(p->m * p->n) * sizeof *y);
        }
    }
    free(y);
    free(again);
}

static void shapes_of_all_kinds(void **state)
{
    static const struct {
        int m, k, n;
        bool rounds;
    } shapes[] = {{1, 256, 96, true},   {1, 100, 48, true},  {2, 77, 80, true},   {3, 2100, 40, true},
                  {4, 129, 33, true},   {7, 64, 100, true},  {8, 333, 64, true},  {9, 96, 50, true},
                  {15, 200, 65, true},  {40, 160, 70, true}, {130, 97, 96, true}, {33, 4100, 32, true},
                  {1, 1, 5000, false},  {5, 5000, 1, false}, {1, 31, 140, true},  {0, 128, 64, false},
                  {300, 48, 128, true}, {17, 17, 300, true}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        SCENARIO(i);
        for (int form = 0; form < 3; form++) {
            problem p = make(shapes[i].m, shapes[i].k, shapes[i].n, form == 2, form > 0);
            check(&p, shapes[i].rounds);
            release(&p);
        }
    }
}

static void weights_that_are_zero_or_tiny(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        SCENARIO(form);
        problem p = make(3, 160, 64, form, form);
        for (int n = 0; n < p.n; n++) {
            for (int k = 0; k < p.k; k++) {
                float *w = form ? &p.b[n * p.k + k] : &p.b[k * p.n + n];
                if (n % 4 == 0 || k / GROUP == 1) *w = 0.0f;
                if (n % 4 == 1) *w *= 1e-40f;
                if (n % 4 == 2) *w *= 1e-7f;
            }
        }
        check(&p, false);
        release(&p);
    }
}

/* Weights without a code in a format: the product is float32's, in every column. */
static void weights_beyond_the_range_stay(void **state)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, 1e6f};
    (void)state;
    for (int m = 1; m <= 40; m += 39) {
        SCENARIO(m);
        problem p = make(m, 96, 64, false, false);
        float *want = malloc((size_t)(p.m * p.n) * sizeof *want), *y = malloc((size_t)(p.m * p.n) * sizeof *y);
        assert_true(want && y);
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            SCENARIO(i);
            p.b[40 * p.n + 5] = odd[i];
            run(&p, "fp32", 1, want);
            for (int precision = 0; precision < PRECISIONS; precision++) {
                if (isfinite(odd[i]) && precision != FP16) continue;
                run(&p, precisions[precision], 1, y);
                for (int j = 0; j < p.m * p.n; j++) {
                    if (isnan(want[j]))
                        assert_true(isnan(y[j]));
                    else
                        assert_true(y[j] == want[j] || fabsf(y[j] - want[j]) <= 1e-5f * (1.0f + fabsf(want[j])));
                }
            }
        }
        free(want);
        free(y);
        release(&p);
    }
}

/* Activations may hold anything. */
static void infinite_activations(void **state)
{
    static const float odd[] = {INFINITY, NAN, 1e36f}; /* codes of up to 127 are multiplied before they are scaled */
    (void)state;
    for (int m = 2; m <= 40; m += 38) {
        SCENARIO(m);
        problem p = make(m, 96, 64, false, false);
        float *y = malloc((size_t)(p.m * p.n) * sizeof *y);
        assert_non_null(y);
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            SCENARIO(i);
            p.a[p.k + 3] = odd[i];
            for (int precision = 0; precision < PRECISIONS; precision++) {
                run(&p, precisions[precision], 1, y);
                for (int j = 0; j < p.m * p.n; j++) {
                    const bool touched = j / p.n == 1;
                    if (!touched) assert_true(fabsf(y[j]) < 100.0f);
                    if (touched && isinf(odd[i])) assert_true(!isfinite(y[j]) || fabsf(weight(&p, 3, j % p.n)) < 0.1f);
                    if (touched && isnan(odd[i])) assert_true(isnan(y[j]));
                    if (touched && isfinite(odd[i]) && fabsf(weight(&p, 3, j % p.n)) < 0.25f)
                        assert_true(isfinite(y[j]));
                }
            }
        }
        free(y);
        release(&p);
    }
}

static int64_t fact(const prony_operator_row *row, const char *key)
{
    for (size_t i = 0; i < row->kernel_fact_count; i++)
        if (strcmp(row->kernel_facts[i].key, key) == 0) return row->kernel_facts[i].value;
    return -1;
}

static bool says(const prony_operator_row *row, const char *word)
{
    for (size_t i = 0; i < row->reason_count; i++)
        if (strcmp(row->reasons[i].reason, word) == 0) return true;
    return false;
}

/* A report of the first operator, made of one measured run. */
static prony_report *measure(model_run *r, const char *precision, model_builder *m, const char *dims, const float *a)
{
    prony_report *report = NULL;
    r->options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r->options.precision = precision;
    mr_open(r, m);
    mr_set(r, "a", PRONY_FLOAT32, dims, a);
    prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
    options.runs = 2;
    assert_int_equal(prony_session_profile(&report, r->session, &options, &r->error), PRONY_OK);
    return report;
}

static void reports_say_what_ran_in_which_type(void **state)
{
    static const int bits[] = {8, 4, 16, 16};
    static const char *const names[] = {"gemm_int8_weights", "gemm_int4_weights", "gemm_fp16_native",
                                        "gemm_bf16_native"};
    (void)state;
    size_t count;
    for (int precision = 0; precision < FAST; precision++) {
        SCENARIO(precision);
        for (int infinite = 0; infinite < 2; infinite++) {
            problem p = make(2, 128, 96, true, true);
            if (infinite) p.b[7] = INFINITY;
            model_run r = {0};
            prony_report *report = measure(&r, precisions[precision], build(&p), "2,128", p.a);
            const prony_operator_row *row = prony_report_operators(report, &count);
            assert_string_equal(row->kernel, names[precision]);
            assert_int_equal(fact(row, "weight_bits"), infinite ? -1 : bits[precision]);
            assert_int_equal(fact(row, "weight_group"), !infinite && precision == INT4 ? GROUP : -1);
            assert_true(says(row, "stays in fp32") == infinite);
            const int64_t scales = precision == INT8 ? 96 * 4 : precision == INT4 ? 128 / GROUP * 96 * 4 : 0;
            if (!infinite) assert_int_equal(fact(row, "weight_bytes"), 128 * 96 * bits[precision] / 8 + scales);
            prony_report_release(report);
            mr_close(&r);
            release(&p);
        }
    }
}

/* Two computed operands, weights of a few elements, an operator without such a kernel. */
static void what_stays_in_float32_says_so(void **state)
{
    static const float ones[32 * 32] = {1.0f};
    static const char *const nodes[][2] = {{"MatMul", "a t"}, {"MatMul", "a small"}, {"Einsum", "a large"}};
    (void)state;
    size_t count;
    float *a = random_floats(32 * 32, 5), *large = random_floats(32 * 4096, 6);
    for (size_t i = 0; i < 3; i++) {
        SCENARIO(i);
        model_builder *m = mb_begin(13);
        mb_input(m, "a", PRONY_FLOAT32, "32,32");
        mb_initializer(m, "small", PRONY_FLOAT32, "32,32", ones);
        mb_initializer(m, "large", PRONY_FLOAT32, "32,4096", large);
        if (i == 0) mb_node(m, "Transpose", "a", "t", "");
        mb_node(m, nodes[i][0], nodes[i][1], "y", i == 2 ? "equation='ij,jk->ik'" : "");
        mb_output(m, "y", PRONY_FLOAT32, i == 2 ? "32,4096" : "32,32");
        model_run r = {0};
        prony_report *report = measure(&r, "int8-weights", m, "32,32", a);
        const prony_operator_row *rows = prony_report_operators(report, &count);
        assert_true(count > 0);
        assert_true(says(&rows[count - 1], "stays in fp32"));
        assert_int_equal(fact(&rows[count - 1], "stays_in_fp32"), i == 0 ? 2 : i == 1 ? 3 : 4);
        prony_report_release(report);
        mr_close(&r);
    }
    free(a);
    free(large);
}

PRN_SIMD_VARIANTS(PRN_SIMD_DECLARE_, prn_lowbit_isa_table, prn_lowbit_isa_)
#define ADD_FUSED(variant, needs, name)                                                                                \
    if ((needs) && prn_isa_has(needs)) fused[fused_count++] = &name##variant;

/* Few rows are summed in one order by every instruction set that multiplies and adds at once. */
static void few_rows_have_the_same_bits_everywhere(void **state)
{
    (void)state;
    enum { DEPTH = 200, MOST = 1 << 15 };
    const prn_lowbit_isa_table *fused[2] = {NULL};
    int fused_count = 0;
    PRN_SIMD_VARIANTS(ADD_FUSED, prn_lowbit_isa_)
    if (fused_count < 2) skip();
    float *a = random_floats(PRN_LOWBIT_ROWS * DEPTH, 5), *numbers = random_floats(MOST / 4, 6);
    for (int kind = 0; kind < PRN_LOWBIT_PAIRS; kind++) {
        SCENARIO(kind);
        const bool scaled = prn_lowbit_scaled((prn_lowbit_kind)kind),
                   grouped = kind == PRN_LOWBIT_INT4 || kind == PRN_LOWBIT_INT2;
        for (int offsets = 0; offsets <= scaled; offsets++) {
            const prn_lowbit s = {.kind = (prn_lowbit_kind)kind,
                                  .k = DEPTH,
                                  .n = PRN_LOWBIT_COLUMNS,
                                  .group = grouped ? PRN_LOWBIT_GROUP : DEPTH,
                                  .offsets = offsets};
            const int64_t bytes = prn_lowbit_group_bytes(&s), groups = prn_lowbit_panel_bytes(&s) / bytes;
            _Alignas(64) static char panel[2 * MOST]; /* behind its end lines may be fetched */
            assert_true(groups * bytes <= MOST);
            for (int64_t i = 0; i < groups * bytes; i++)
                panel[i] = (char)(i * i % 55 + 5); /* halves and the upper ones of floats: small numbers */
            for (int64_t g = 0; g < groups && scaled; g++)
                memcpy(panel + g * bytes, numbers, (size_t)(1 + offsets) * PRN_LOWBIT_COLUMNS * sizeof *numbers);
            prn_lowbit packed = s;
            packed.panels = panel;
            for (int rows = 1; rows <= PRN_LOWBIT_ROWS; rows++) {
                float c[2][PRN_LOWBIT_ROWS * PRN_LOWBIT_COLUMNS];
                for (int t = 0; t < 2; t++) fused[t]->rows(&packed, 0, a, DEPTH, rows, c[t]);
                assert_memory_equal(c[0], c[1], (size_t)(rows * PRN_LOWBIT_COLUMNS) * sizeof **c);
                assert_true(isfinite(c[0][0]) && c[0][0] != c[0][1]);
            }
        }
    }
    free(a);
    free(numbers);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int precision = 0; precision < PRECISIONS; precision++) {
        SCENARIO(precision);
        problem p = make(2, 64, 96, true, true);
        model_run r = {0};
        r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
        r.options.precision = precisions[precision];
        mr_open(&r, build(&p));
        mr_set(&r, "a", PRONY_FLOAT32, "2,64", p.a);
        mr_survives_faults(&r);
        mr_close(&r);
        release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes_of_all_kinds),
                                       cmocka_unit_test(weights_that_are_zero_or_tiny),
                                       cmocka_unit_test(weights_beyond_the_range_stay),
                                       cmocka_unit_test(infinite_activations),
                                       cmocka_unit_test(reports_say_what_ran_in_which_type),
                                       cmocka_unit_test(what_stays_in_float32_says_so),
                                       cmocka_unit_test(few_rows_have_the_same_bits_everywhere),
                                       cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
