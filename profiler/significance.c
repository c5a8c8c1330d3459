/* Tests and intervals for two samples.
 *
 * The rank test follows H. B. Mann and D. R. Whitney (1947); its exact distribution comes from the generating function
 * of U, a Gaussian binomial coefficient. Ratios of statistics have a percentile bootstrap over circular blocks (D. N.
 * Politis and J. P. Romano, 1992): both samples are drawn anew with replacement, from one fixed seed, and a resample is
 * known by how often each sorted value was drawn, so nothing is sorted per draw. Student's distribution is the
 * regularised incomplete beta function, by its continued fraction. Working memory ends with each call.
 */
#include "profiler/significance.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_SMALLER 8  /* values in the smaller sample */
#define EXACT_PAIRS 4096 /* pairs that the exact distribution is counted for */
#define RESAMPLES_MOST 2000
#define RESAMPLES_LEAST 200
#define DRAWS 20000000 /* values that all resamples may draw together */
#define BOOTSTRAP_SEED 0x50524f4e59U

/* ---- ranks ---- */

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

static double normal_p(double u, double n, double m, double ties)
{
    double all = n + m, larger = fmax(u, n * m - u);
    double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
    if (variance <= 0) return 1;
    return fmin(1, erfc((larger - n * m / 2 - 0.5) / sqrt(variance) / sqrt(2)));
}

prony_status prn_rank_test_compute(prn_rank_test *out, const double *first, size_t n, const double *second, size_t m,
                                   prony_error *error)
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
        out->exact = ties <= 0 && smaller <= EXACT_SMALLER && larger <= EXACT_PAIRS / smaller;
        double least = fmin(out->u, (double)n * (double)m - out->u);
        out->p = out->exact ? fmin(1, 2 * exact_tail(ways, smaller, larger, (size_t)least))
                            : normal_p(out->u, (double)n, (double)m, ties);
    }
    prn_free(all);
    prn_free(ways);
    return status;
}

/* ---- bootstrap ---- */

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

typedef struct timed {
    int64_t value;
    size_t when;
} timed;

static int compare_timed(const void *left, const void *right)
{
    const timed *a = left, *b = right;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return (a->when > b->when) - (a->when < b->when);
}

typedef struct resampled {
    timed *sorted;
    size_t *rank; /* in `sorted`, by time */
    uint32_t *drawn;
    size_t count, block;
} resampled;

static const uint32_t quantiles[][2] = {
    {PRN_STATISTIC_P90, 900}, {PRN_STATISTIC_P95, 950}, {PRN_STATISTIC_P99, 990}, {PRN_STATISTIC_P999, 999}};

static void draw(resampled *r, double values[PRN_STATISTIC_COUNT], uint64_t *random)
{
    memset(r->drawn, 0, r->count * sizeof *r->drawn);
    for (size_t done = 0; done < r->count;) {
        size_t at = ((next_random(random) >> 32) * r->count) >> 32,
               end = done + r->block < r->count ? done + r->block : r->count;
        for (; done < end; done++) {
            r->drawn[r->rank[at]]++;
            if (++at == r->count) at = 0;
        }
    }
    /* Ranks from 0, ascending: both of the median, then the quantiles' nearest ranks. */
    size_t ranks[6] = {(r->count - 1) / 2, r->count / 2};
    double at[6];
    for (size_t q = 0; q < 4; q++) ranks[q + 2] = (r->count * quantiles[q][1] + 999) / 1000 - 1;
    double sum = 0;
    size_t seen = 0, next = 0;
    for (size_t i = 0; i < r->count; i++) {
        sum += (double)r->sorted[i].value * r->drawn[i];
        seen += r->drawn[i];
        for (; next < 6 && ranks[next] < seen; next++) at[next] = (double)r->sorted[i].value;
    }
    values[PRN_STATISTIC_MEDIAN] = (at[0] + at[1]) / 2;
    values[PRN_STATISTIC_MEAN] = sum / (double)r->count;
    for (size_t q = 0; q < 4; q++) values[quantiles[q][0]] = at[q + 2];
}

static bool sort_sample(resampled *r, const int64_t *samples, size_t count)
{
    *r = (resampled){.sorted = prn_calloc(count, sizeof *r->sorted),
                     .rank = prn_calloc(count, sizeof *r->rank),
                     .drawn = prn_calloc(count, sizeof *r->drawn),
                     .count = count,
                     .block = (size_t)floor(cbrt((double)count) + 1e-9)};
    if (!r->sorted || !r->rank || !r->drawn) return false;
    for (size_t i = 0; i < count; i++) r->sorted[i] = (timed){samples[i], i};
    qsort(r->sorted, count, sizeof *r->sorted, compare_timed);
    for (size_t i = 0; i < count; i++) r->rank[r->sorted[i].when] = i;
    return true;
}

static void free_sample(resampled *r)
{
    prn_free(r->sorted);
    prn_free(r->rank);
    prn_free(r->drawn);
}

prony_status prn_ratio_intervals(double intervals[PRN_STATISTIC_COUNT][2], const int64_t *first, size_t n,
                                 const int64_t *second, size_t m, prony_error *error)
{
    size_t resamples = DRAWS / (n + m);
    if (resamples > RESAMPLES_MOST) resamples = RESAMPLES_MOST;
    if (resamples < RESAMPLES_LEAST) resamples = RESAMPLES_LEAST;
    resampled a = {0}, b = {0};
    double *ratios = prn_calloc(resamples, PRN_STATISTIC_COUNT * sizeof *ratios);
    bool room = sort_sample(&a, first, n);
    room = sort_sample(&b, second, m) && room && ratios;
    uint64_t random = BOOTSTRAP_SEED;
    for (size_t r = 0; room && r < resamples; r++) {
        double of_a[PRN_STATISTIC_COUNT], of_b[PRN_STATISTIC_COUNT];
        draw(&a, of_a, &random);
        draw(&b, of_b, &random);
        for (size_t s = 0; s < PRN_STATISTIC_COUNT; s++)
            ratios[s * resamples + r] = of_a[s] > 0 ? of_b[s] / of_a[s] : INFINITY;
    }
    for (size_t s = 0; room && s < PRN_STATISTIC_COUNT; s++) {
        double *of = ratios + s * resamples;
        qsort(of, resamples, sizeof *of, compare_doubles);
        intervals[s][0] = of[(resamples * 25 + 999) / 1000 - 1];
        intervals[s][1] = of[(resamples * 975 + 999) / 1000 - 1];
    }
    free_sample(&a);
    free_sample(&b);
    prn_free(ratios);
    return room ? PRONY_OK : prn_no_memory(error);
}

/* ---- means ---- */

/* Continued fraction of the incomplete beta function, evaluated from the front (Lentz). */
static double beta_fraction(double x, double a, double b)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double fraction = d;
    for (int i = 1; i < 10000; i++) {
        double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
        double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
        double before = fraction;
        for (int half = 0; half < 2; half++) {
            double term = half ? odd : even;
            d = 1 + term * d;
            c = 1 + term / c;
            if (fabs(d) < tiny) d = tiny;
            if (fabs(c) < tiny) c = tiny;
            d = 1 / d;
            fraction *= c * d;
        }
        if (fabs(fraction - before) <= 1e-15 * fabs(fraction)) break;
    }
    return fraction;
}

/* I_x(a, b), the regularised incomplete beta function. */
static double beta(double x, double a, double b)
{
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    double scale = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return scale * beta_fraction(x, a, b) / a;
    return 1 - scale * beta_fraction(1 - x, b, a) / b;
}

double prn_student_p(double t, double degrees)
{
    return isfinite(t) ? beta(degrees / (degrees + t * t), degrees / 2, 0.5) : 0;
}

/* Welch and Satterthwaite's degrees of freedom for the two variances of a mean. */
static double degrees_of(double v1, double n1, double v2, double n2)
{
    double sum = v1 + v2;
    return sum * sum / (v1 * v1 / (n1 - 1) + v2 * v2 / (n2 - 1));
}

double prn_welch_p(prn_moments a, prn_moments b)
{
    if (a.count < 2 || b.count < 2) return NAN;
    double va = a.std * a.std / a.count, vb = b.std * b.std / b.count, difference = fabs(a.mean - b.mean);
    if (va + vb <= 0) return difference > 0 ? 0 : 1;
    return prn_student_p(difference / sqrt(va + vb), degrees_of(va, a.count, vb, b.count));
}

/* The t that |T| exceeds in 5 % of the cases, by bisection. */
static double student_bound(double degrees)
{
    double low = 1.9, high = 13;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (prn_student_p(middle, degrees) > 0.05)
            low = middle;
        else
            high = middle;
    }
    return high;
}

void prn_welch_ratio_interval(double interval[2], prn_moments a, prn_moments b)
{
    interval[0] = interval[1] = NAN;
    if (a.count < 2 || b.count < 2 || !(a.mean > 0) || !(b.mean > 0)) return;
    double ea = a.std / a.mean, eb = b.std / b.mean, va = ea * ea / a.count, vb = eb * eb / b.count;
    double half = va + vb > 0 ? student_bound(degrees_of(va, a.count, vb, b.count)) * sqrt(va + vb) : 0;
    interval[0] = b.mean / a.mean * exp(-half);
    interval[1] = b.mean / a.mean * exp(half);
}

static int compare_pointed(const void *left, const void *right)
{
    return compare_doubles(*(double *const *)left, *(double *const *)right);
}

prony_status prn_holm_adjust(double *p, size_t count, prony_error *error)
{
    double **order = prn_calloc(count + 1, sizeof *order);
    size_t known = 0;
    double floor = 0;
    if (!order) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++)
        if (!isnan(p[i])) order[known++] = &p[i];
    qsort(order, known, sizeof *order, compare_pointed);
    for (size_t i = 0; i < known; i++) {
        floor = fmax(floor, fmin(1, *order[i] * (double)(known - i)));
        *order[i] = floor;
    }
    prn_free(order);
    return PRONY_OK;
}
