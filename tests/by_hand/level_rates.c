/* The rates of docs/internals/history.md: level_rates [HISTORIES]. False alarms in quiet histories of 50 runs; a step
 * of 5 % found any number of runs after it, and within 3 runs of its place; shapes of a week told apart. */
#include "profiler/statistics/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 50, WEEK = 84, MOST_CHANGES = 20 };
static const char *const noises[] = {"normal", "lognormal", "normal and 5 % outliers"};

static double level_rates_noise(uint64_t *random, int kind, double sd)
{
    const double z = prn_random_normal(random);
    if (kind == 1) return sd * (exp(0.8 * z) - exp(0.32)) / (exp(0.32) * sqrt(exp(0.64) - 1));
    const double outlier = kind == 2 && prn_random_unit(random) < 0.05 ? 0.05 + 0.15 * prn_random_unit(random) : 0;
    return sd * z + outlier;
}

/* Shares of histories of RUNS + `after` runs with any change, and with one within 3 runs of RUNS. */
static void rates(int kind, double sd, size_t after, int histories, double *any, double *near)
{
    uint64_t random = 1;
    int found_any = 0, found_near = 0;
    for (int h = 0; h < histories; h++) {
        double x[RUNS + 20];
        size_t at[MOST_CHANGES], found;
        bool close = false;
        for (size_t i = 0; i < RUNS + after; i++)
            x[i] = log((i >= RUNS ? 1.05 : 1) + level_rates_noise(&random, kind, sd));
        if (prn_level_changes(at, MOST_CHANGES, &found, x, RUNS + after, NULL) != PRONY_OK) exit(1);
        for (size_t k = 0; k < found; k++) close |= labs((long)at[k] - RUNS) <= 3;
        found_any += found > 0;
        found_near += close;
    }
    *any = 100.0 * found_any / histories;
    *near = 100.0 * found_near / histories;
}

static double shape(int kind, size_t run)
{
    const double at = (double)run;
    if (kind == 0) return run >= 40 ? 0.06 : 0;
    if (kind == 1) return 0.1 * at / WEEK;
    return (run >= 24 ? 0.06 : 0) + (run < 48 ? 0 : 0.12 * (at - 48) / 36);
}

static void shapes(int kind, double sd, int histories)
{
    static const char *const names[] = {"a step of 6 %", "a drift of 10 %", "a step, then a drift"};
    uint64_t random = 3;
    int steps = 0, drifts = 0, both = 0;
    for (int h = 0; h < histories; h++) {
        double x[WEEK];
        prn_level_piece pieces[PRN_LEVEL_PIECES];
        size_t count, drifting = 0;
        for (size_t i = 0; i < WEEK; i++) x[i] = shape(kind, i) + sd * prn_random_normal(&random);
        if (prn_level_pieces(pieces, &count, x, WEEK, NULL) != PRONY_OK) exit(1);
        for (size_t k = 0; k < count; k++) drifting += pieces[k].drift;
        steps += count == 2 && drifting == 0;
        drifts += count == 1 && drifting == 1;
        both += count > 1 && drifting > 0;
    }
    printf("| %s | %.0f %% | %.1f %% | %.1f %% | %.1f %% |\n", names[kind], 100 * sd, 100.0 * steps / histories,
           100.0 * drifts / histories, 100.0 * both / histories);
}

int main(int argc, char **argv)
{
    const int histories = argc > 1 ? atoi(argv[1]) : 1000;
    static const size_t after[] = {0, 3, 5, 10};
    printf("%d histories each\n\n| noise | deviation | false alarms | found after 3 | after 5 | after 10 | located, "
           "after 10 |\n"
           "|---|--:|--:|--:|--:|--:|--:|\n",
           histories);
    for (int kind = 0; kind < 3; kind++)
        for (int sd = 2; sd <= 4; sd++) {
            double any[4], near[4];
            for (int i = 0; i < 4; i++) rates(kind, 0.005 * sd, after[i], histories, &any[i], &near[i]);
            printf("| %s | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", noises[kind], 0.5 * sd,
                   any[0], any[1], any[2], any[3], near[3]);
        }
    printf("\n| a week of 84 runs | noise | one step | one drift | drift and levels |\n|---|--:|--:|--:|--:|\n");
    for (int kind = 0; kind < 3; kind++)
        for (int sd = 1; sd <= 2; sd++) shapes(kind, 0.01 * sd, histories);
    return 0;
}
