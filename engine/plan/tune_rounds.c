/* Shared by trials of kernels and of whole plans: their data, and decisions from their times. */
#include "engine/plan/tune.h"

#include <stdlib.h>
#include <string.h>

/* Time for rounds of whole plans beyond the least number. Chosen without measurement. */
#define WHOLE_NS INT64_C(2000000000)
/* Time for rounds beyond the first, if runs are long. Chosen without measurement. */
#define LONG_WHOLE_NS INT64_C(10000000000)

/* ---- data ---- */

static uint32_t tune_rounds_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Data for a trial: floats of both signs of at most 1, never NaN, infinite or subnormal, which are slow on some
 * processors. The masks of the 16-bit types fix the exponent: every pattern is in [0.5, 1) or [-1, -0.5). Other types
 * stay 0: random indices and lengths could be invalid. */
void prn_tune_fill(void *data, size_t bytes, prony_dtype dtype)
{
    uint64_t state = 0x9e3779b97f4a7c15;
    memset(data, 0, bytes);
    switch (dtype) {
    case PRONY_FLOAT32:
        for (size_t i = 0; i < bytes / 4; i++)
            ((float *)data)[i] = (float)tune_rounds_next(&state) / 1073741824.0F - 1.0F;
        break;
    case PRONY_FLOAT64:
        for (size_t i = 0; i < bytes / 8; i++)
            ((double *)data)[i] = (double)tune_rounds_next(&state) / 1073741824.0 - 1.0;
        break;
    case PRONY_FLOAT16:
        for (size_t i = 0; i < bytes / 2; i++)
            ((uint16_t *)data)[i] = (uint16_t)(0x3800U | (tune_rounds_next(&state) & 0x83ffU));
        break;
    case PRONY_BFLOAT16:
        for (size_t i = 0; i < bytes / 2; i++)
            ((uint16_t *)data)[i] = (uint16_t)(0x3f00U | (tune_rounds_next(&state) & 0x807fU));
        break;
    case PRONY_INT8:
    case PRONY_UINT8:
        for (size_t i = 0; i < bytes; i++) ((uint8_t *)data)[i] = (uint8_t)tune_rounds_next(&state);
        break;
    default:
        break;
    }
}

/* ---- kernels ---- */

static int tune_rounds_compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t prn_tune_median(const int64_t *times, size_t count)
{
    int64_t sorted[PRN_TUNE_MOST_ROUNDS];
    memcpy(sorted, times, count * sizeof *times);
    qsort(sorted, count, sizeof *sorted, tune_rounds_compare_times);
    return sorted[count / 2];
}

size_t prn_tune_choose(const int64_t *times, size_t most, const size_t *rounds, size_t count)
{
    size_t best = 0;
    if (rounds[0] == 0 || rounds[0] > PRN_TUNE_MOST_ROUNDS) return 0;
    const int64_t standard = prn_tune_median(times, rounds[0]);
    int64_t least = standard - standard / 20;
    for (size_t k = 1; k < count; k++) {
        if (rounds[k] != rounds[0]) continue;
        size_t wins = 0;
        for (size_t r = 0; r < rounds[0]; r++) wins += times[k * most + r] < times[r];
        const int64_t middle = prn_tune_median(times + k * most, rounds[k]);
        if (4 * wins < 3 * rounds[0] || middle >= least) continue;
        best = k;
        least = middle;
    }
    return best;
}

/* ---- whole plans ---- */

enum { BY_DEFAULT, TUNED, BOTH };

/* The tuned plan tune_rounds_loses unless it is 1 % faster: a smaller gain of a whole run is not worth kernels that
 * depend on a measurement. */
static bool tune_rounds_loses(const int64_t times[BOTH][PRN_TUNE_MOST_ROUNDS], size_t rounds,
                              const prn_tune_verdict *verdict)
{
    size_t wins = 0;
    for (size_t r = 0; r < rounds; r++) wins += times[TUNED][r] < times[BY_DEFAULT][r];
    return 4 * wins < 3 * rounds || verdict->tuned_ns > verdict->default_ns - (verdict->default_ns + 99) / 100;
}

prony_status prn_tune_judge(prn_tune_verdict *verdict, prn_tune_run run, void *data, prony_error *error)
{
    int64_t times[BOTH][PRN_TUNE_MOST_ROUNDS], spent = 0;
    size_t rounds = 0;
    for (int plan = BY_DEFAULT; plan < BOTH; plan++) PRN_TRY(run(data, plan == TUNED, &times[plan][0], error));
    while (rounds < PRN_TUNE_MOST_ROUNDS) {
        if (rounds >= PRN_TUNE_LEAST_ROUNDS && spent > WHOLE_NS) break;
        if (rounds > 0 && spent > LONG_WHOLE_NS) break;
        for (int plan = BY_DEFAULT; plan < BOTH; plan++) {
            PRN_TRY(run(data, plan == TUNED, &times[plan][rounds], error));
            spent += times[plan][rounds];
        }
        rounds++;
    }
    verdict->default_ns = prn_tune_median(times[BY_DEFAULT], rounds);
    verdict->tuned_ns = prn_tune_median(times[TUNED], rounds);
    verdict->reverted = tune_rounds_loses(times, rounds, verdict);
    return PRONY_OK;
}
