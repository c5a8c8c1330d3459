/* Convolutions with --precision fast: within 1e-5 of the output's range of float64 on difficult data, and the same
 * bits for every number of threads. */
#include "failure_trace.h"
#include "ops/kernels/gemm/bf16x3_product.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { IMAGES = 2, MOST_THREADS = 4 };

typedef enum kind {
    NORMAL,
    RECTIFIED,
    POSITIVE,
    ALTERNATING,   /* positive, signs of the weights changing from channel to channel */
    WIDE_CHANNELS, /* each channel scaled, 2^-6 to 2^6 */
    LAST_DIGITS,   /* the worst case for two split terms: second and third terms are as large as possible */
    POOLED,        /* far from 0 beside their spread, as behind a MaxPool; the bias removes the offset */
    KINDS
} kind;

static const char *const kind_names[] = {"normal",        "rectified",   "positive", "alternating",
                                         "wide channels", "last digits", "pooled"};

typedef struct problem {
    int in, out, size, kernel, stride, pad, places; /* channels, image, window; extent of the output */
    float *x, *w, *bias;
    double *want;
} problem;

static uint64_t state = 1;

static double fraction(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2.0 * log(1.0 - fraction())) * cos(6.283185307179586 * fraction());
}

static float input(kind kind, int channel)
{
    switch (kind) {
    case RECTIFIED:
        return (float)fmax(normal(), 0.0);
    case POSITIVE:
    case ALTERNATING:
        return (float)fraction();
    case WIDE_CHANNELS:
        return (float)ldexp(normal(), channel * 5 % 13 - 6);
    case LAST_DIGITS:
        return (float)((fraction() < 0.5 ? -1.0 : 1.0) * (1.0 + 0x1p-8 - 0x1p-17 - 0x1p-20 * fraction()));
    case POOLED:
        return (float)(3.0 + 0.3 * normal());
    default:
        return (float)normal();
    }
}

static float weight(kind kind, int channel)
{
    if (kind == ALTERNATING) return (float)((channel % 2 ? -1.0 : 1.0) * fraction());
    if (kind == POSITIVE) return (float)fraction();
    return kind == LAST_DIGITS ? input(kind, channel) : (float)normal();
}

/* Sums in float64, of output channel `o` of image `n` at one place. */
static double sum_at(const problem *p, int n, int o, int row, int place)
{
    double sum = 0;
    for (int c = 0; c < p->in; c++) {
        for (int ky = 0; ky < p->kernel; ky++) {
            for (int kx = 0; kx < p->kernel; kx++) {
                const int y = row * p->stride - p->pad + ky, x = place * p->stride - p->pad + kx;
                if (y < 0 || y >= p->size || x < 0 || x >= p->size) continue;
                sum += (double)p->x[((n * p->in + c) * p->size + y) * p->size + x] *
                       (double)p->w[((o * p->in + c) * p->kernel + ky) * p->kernel + kx];
            }
        }
    }
    return sum;
}

static void make(problem *p, kind kind)
{
    const int plane = p->size * p->size, window = p->kernel * p->kernel, places = p->places * p->places;
    p->x = malloc((size_t)(IMAGES * p->in * plane) * sizeof *p->x);
    p->w = malloc((size_t)(p->out * p->in * window) * sizeof *p->w);
    p->bias = malloc((size_t)p->out * sizeof *p->bias);
    p->want = malloc((size_t)(IMAGES * p->out * places) * sizeof *p->want);
    assert_true(p->x && p->w && p->bias && p->want);
    for (int i = 0; i < IMAGES * p->in * plane; i++) p->x[i] = input(kind, i / plane % p->in);
    for (int i = 0; i < p->out * p->in * window; i++) p->w[i] = weight(kind, i / window % p->in);
    for (int o = 0; o < p->out; o++) {
        double mean = 0;
        for (int n = 0; n < IMAGES; n++) {
            for (int i = 0; i < places; i++) {
                double *want = &p->want[(n * p->out + o) * places + i];
                *want = sum_at(p, n, o, i / p->places, i % p->places);
                mean += *want / (IMAGES * places);
            }
        }
        p->bias[o] = (float)(kind == POOLED ? -mean : normal());
    }
    for (int i = 0; i < IMAGES * p->out * places; i++)
        p->want[i] = fmax(p->want[i] + (double)p->bias[i / places % p->out], 0.0);
}

static void release(problem *p)
{
    free(p->x);
    free(p->w);
    free(p->bias);
    free(p->want);
}

static void run(const problem *p, int threads, float *out)
{
    char x[64], w[64], bias[32], y[64], attributes[64];
    snprintf(x, sizeof x, "%d,%d,%d,%d", IMAGES, p->in, p->size, p->size);
    snprintf(w, sizeof w, "%d,%d,%d,%d", p->out, p->in, p->kernel, p->kernel);
    snprintf(bias, sizeof bias, "%d", p->out);
    snprintf(y, sizeof y, "%d,%d,%d,%d", IMAGES, p->out, p->places, p->places);
    snprintf(attributes, sizeof attributes, "pads=[%d,%d,%d,%d] strides=[%d,%d]", p->pad, p->pad, p->pad, p->pad,
             p->stride, p->stride);
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, x);
    mb_initializer(m, "w", PRONY_FLOAT32, w, p->w);
    mb_initializer(m, "b", PRONY_FLOAT32, bias, p->bias);
    mb_node(m, "Conv", "x w b", "s", attributes);
    mb_node(m, "Relu", "s", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, y);
    model_run r = {0};
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.precision = "fast";
    r.options.intra_op_threads = threads;
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, x, p->x);
    const prony_value *got = mr_run(&r, 0);
    memcpy(out, got->data, (size_t)(IMAGES * p->out * p->places * p->places) * sizeof *out);
    mr_close(&r);
}

/* Largest error of elements [from, end), relative to the range of the expected values. */
static double error_of(const problem *p, const float *y, int from, int end)
{
    double error = 0, low = p->want[from], high = p->want[from];
    for (int i = from; i < end; i++) {
        error = fmax(error, fabs((double)y[i] - p->want[i]));
        low = fmin(low, p->want[i]);
        high = fmax(high, p->want[i]);
    }
    return error / (high - low);
}

static const problem shapes[] = {
    {64, 64, 14, 1, 1, 0, 14, NULL, NULL, NULL, NULL},  {256, 32, 9, 1, 1, 0, 9, NULL, NULL, NULL, NULL},
    {32, 48, 20, 3, 1, 1, 20, NULL, NULL, NULL, NULL},  {144, 160, 8, 3, 2, 1, 4, NULL, NULL, NULL, NULL},
    {512, 256, 7, 1, 1, 0, 7, NULL, NULL, NULL, NULL},  {48, 80, 12, 5, 1, 2, 12, NULL, NULL, NULL, NULL},
    {1040, 288, 4, 1, 1, 0, 4, NULL, NULL, NULL, NULL},
};

static void errors_are_within_the_contract(void **unused)
{
    (void)unused;
    if (!prn_bf16x3_there(2)) skip();
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        SCENARIO(s);
        for (int kind = 0; kind < KINDS; kind++) {
            problem p = shapes[s];
            const int count = IMAGES * p.out * p.places * p.places;
            make(&p, (enum kind)kind);
            float *y = malloc((size_t)count * sizeof *y), *again = malloc((size_t)count * sizeof *again);
            assert_true(y && again);
            run(&p, 1, y);
            const double error = error_of(&p, y, 0, count);
            if (getenv("PRONY_TEST_SHOW"))
                printf("%d channels, window of %d, %s: %.2g\n", p.in, p.kernel, kind_names[kind], error);
            if (!(error <= 1e-5))
                fail_msg("%d channels, window of %d, %s: %g of the range", p.in, p.kernel, kind_names[kind], error);
            for (int threads = 2; threads <= MOST_THREADS; threads++) {
                run(&p, threads, again);
                assert_memory_equal(y, again, (size_t)count * sizeof *y);
            }
            free(y);
            free(again);
            release(&p);
        }
    }
}

/* Infinities cannot be split; they are computed by plain sums and do not affect the other image. */
static void infinities_stay_where_they_are(void **unused)
{
    (void)unused;
    if (!prn_bf16x3_there(2)) skip();
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        SCENARIO(s);
        problem p = shapes[s];
        const int count = p.out * p.places * p.places;
        make(&p, POOLED);
        float *y = malloc((size_t)(IMAGES * count) * sizeof *y);
        assert_non_null(y);
        p.x[p.in * p.size * p.size] = INFINITY; /* the second image's first element */
        run(&p, 2, y);
        assert_true(error_of(&p, y, 0, count) <= 1e-5);
        bool infinite = false;
        for (int i = count; i < IMAGES * count; i++) infinite = infinite || !isfinite(y[i]);
        assert_true(infinite);
        /* The last row's windows do not reach the first one. */
        for (int o = 0; o < p.out && p.kernel < p.size / 2; o++) {
            const int last = count + (o + 1) * p.places * p.places - 1;
            assert_true(fabs((double)y[last] - p.want[last]) <= 1e-4 * (fabs(p.want[last]) + 10.0));
        }
        free(y);
        release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_within_the_contract),
        cmocka_unit_test(infinities_stay_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
