/* The two sources of random numbers: the counting stream's moments and independence, and the Mersenne Twister against
 * published figures. */
#include "failure_trace.h"
#include "ops/kernels/random/mersenne.h"
#include "ops/kernels/random/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWS = 1 << 18 };

static uint64_t key_of(const char *name, bool seeded, uint64_t seed)
{
    const prony_node node = {.name = name};
    const prony_context context = {.node = &node};
    return prn_random_key(&context, seeded, seed);
}

static void test_keys(void **state)
{
    (void)state;
    assert_true(key_of("a", false, 0) == key_of("a", false, 1));
    assert_true(key_of("a", false, 0) != key_of("b", false, 0));
    assert_true(key_of("a", true, 7) == key_of("b", true, 7));
    assert_true(key_of("a", true, 7) != key_of("a", true, 8));
    assert_true(key_of("a", true, 0) != key_of("a", false, 0));
}

/* Bounds are six standard deviations of each statistic. */
static void check_moments(const double *draw)
{
    double sum = 0.0, squares = 0.0, products = 0.0;
    for (int i = 0; i < DRAWS; i++) {
        assert_true(draw[i] >= 0.0 && draw[i] < 1.0);
        const double centred = draw[i] - 0.5;
        sum += centred;
        squares += centred * centred;
        if (i > 0) products += centred * (draw[i - 1] - 0.5);
    }
    const double n = DRAWS;
    assert_true(fabs(sum / n) < 6.0 * sqrt(1.0 / 12.0 / n));
    assert_true(fabs(squares / n - 1.0 / 12.0) < 6.0 * sqrt(1.0 / 180.0 / n));
    assert_true(fabs(products / n) < 6.0 / 12.0 / sqrt(n));
}

static void test_counting_stream(void **state)
{
    static double draw[DRAWS];
    const uint64_t key = key_of("node", false, 0);
    (void)state;
    for (int i = 0; i < DRAWS; i++) draw[i] = prn_random_uniform(key, (uint64_t)i, 53);
    check_moments(draw);
    for (int i = 0; i < DRAWS; i++) draw[i] = prn_random_uniform(key_of("node", true, (uint64_t)i), 0, 53);
    check_moments(draw);
    for (int i = 0; i < 1000; i++) {
        SCENARIO(i);
        const double coarse = prn_random_uniform(key, (uint64_t)i, 8);
        assert_true(coarse * 256.0 == floor(coarse * 256.0) && coarse < 1.0);
    }
}

static void test_mersenne(void **state)
{
    /* numpy.random.RandomState(0).uniform(size=3) */
    static const double first[] = {0.5488135039273248, 0.7151893663724195, 0.6027633760716439};
    static double draw[DRAWS];
    prn_mersenne stream;
    (void)state;
    prn_mersenne_seed(&stream, 0);
    for (int i = 0; i < DRAWS; i++) draw[i] = prn_mersenne_uniform(&stream);
    assert_memory_equal(draw, first, sizeof first);
    check_moments(draw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys), cmocka_unit_test(test_counting_stream),
                                       cmocka_unit_test(test_mersenne)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
