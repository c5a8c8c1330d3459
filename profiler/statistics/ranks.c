/* Mann and Whitney's rank test (1947). Its exact distribution comes from the generating function of U, a Gaussian
 * binomial coefficient. Values of one process are correlated; they count as the equivalent number of independent ones.
 */
#include "profiler/statistics/statistics.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_SMALLER 8  /* values in the smaller sample */
#define EXACT_PAIRS 4096 /* pairs that the exact distribution is counted for */

typedef struct ranked {
    double value;
    bool first;
} ranked;

static int compare_ranked(const void *left, const void *right)
{
    double a = ((const ranked *)left)->value, b = ((const ranked *)right)->value;
    return (a > b) - (a < b);
}

/* Sum of the first sample's ranks, tied values sharing theirs; *ties: sum of t^3 - t over groups of t equal values. */
static double rank_sum(const ranked *sorted, size_t count, double *ties)
{
    double sum = 0;
    *ties = 0;
    for (size_t begin = 0, end; begin < count; begin = end) {
        size_t firsts = 0;
        for (end = begin; end < count && sorted[end].value <= sorted[begin].value; end++) firsts += sorted[end].first;
        double group = (double)(end - begin), rank = ((double)begin + 1 + (double)end) / 2;
        sum += rank * (double)firsts;
        *ties += group * group * group - group;
    }
    return sum;
}

/* P(U <= u) without ties. Coefficients of prod (1 - q^(larger + i)) / (1 - q^i) up to q^u, over their sum. */
static double exact_tail(double *ways, size_t smaller, size_t larger, size_t u)
{
    double all = 1, sum = 0;
    memset(ways, 0, (u + 1) * sizeof *ways);
    ways[0] = 1;
    for (size_t i = 1; i <= smaller; i++) {
        for (size_t k = u + 1; k-- > larger + i;) ways[k] -= ways[k - larger - i];
        for (size_t k = i; k <= u; k++) ways[k] += ways[k - i];
        all *= (double)(larger + i) / (double)i;
    }
    for (size_t k = 0; k <= u; k++) sum += ways[k];
    return sum / all;
}

typedef struct sample_size {
    double count, memory;
} sample_size;

/* Each sample adds memory / count to the variance of U; independent values add 1 / count. */
static double approximate_p(double u, sample_size a, sample_size b, double ties)
{
    double n = a.count, m = b.count, all = n + m, larger = fmax(u, n * m - u);
    double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1))) * (a.memory * m + b.memory * n) / all;
    if (variance <= 0) return 1;
    double z = (larger - n * m / 2 - 0.5) / sqrt(variance);
    if (a.memory <= 1 && b.memory <= 1) return fmin(1, erfc(z / sqrt(2)));
    return z <= 0 ? 1 : prn_student_p(z, fmax(1, n / a.memory + m / b.memory - 2));
}

prony_status prn_rank_test_compute(prn_rank_test *out, const double *first, size_t n, double first_memory,
                                   const double *second, size_t m, double second_memory, prony_error *error)
{
    *out = (prn_rank_test){.p = 1};
    if (n == 0 || m == 0) return PRONY_OK;
    ranked *all = prn_calloc(n + m, sizeof *all);
    double *ways = prn_calloc(EXACT_PAIRS + 1, sizeof *ways);
    prony_status status = all && ways ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        double ties, size = (double)n;
        for (size_t i = 0; i < n; i++) all[i] = (ranked){first[i], true};
        for (size_t i = 0; i < m; i++) all[n + i] = (ranked){second[i], false};
        qsort(all, n + m, sizeof *all, compare_ranked);
        out->u = rank_sum(all, n + m, &ties) - size * (size + 1) / 2;
        size_t smaller = n < m ? n : m, larger = n < m ? m : n;
        bool independent = first_memory <= 1 && second_memory <= 1;
        out->exact = independent && ties <= 0 && smaller <= EXACT_SMALLER && larger <= EXACT_PAIRS / smaller;
        double least = fmin(out->u, (double)n * (double)m - out->u);
        sample_size a = {(double)n, first_memory}, b = {(double)m, second_memory};
        out->p = out->exact ? fmin(1, 2 * exact_tail(ways, smaller, larger, (size_t)least))
                            : approximate_p(out->u, a, b, ties);
    }
    prn_free(all);
    prn_free(ways);
    return status;
}
