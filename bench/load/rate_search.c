/* First a bracket: the rate is halved until one meets the bound. Then short phases bisect the bracket on a logarithmic
 * scale. Near the end each is random, so two of three phases decide. This is rough: late queries come in bunches, and a
 * short phase begins with an empty queue. So whole phases follow, alternately a little below and above the rate found.
 * Near it the logarithm of the share of late queries is linear in the logarithm of the rate. The line is a Poisson
 * regression, which fits expected numbers, not their logarithms, to the counted ones; the rate is where it reaches the
 * allowed share. Its interval comes from the scatter of the phases around the line, bunches included (R. W. M.
 * Wedderburn's quasi-likelihood, 1974). Last, a reliable rate: from the interval's lower end down until a whole phase
 * meets the bound.
 *
 * A query is late with an unknown probability. With t late ones of n queries, the probability is below 1 - p with 99 %
 * confidence if P(Bin(n, 1 - p) <= t) <= 1 %. LoadGen calls the largest such t early stopping; the sample with t larger
 * ones is then an upper bound of the quantile. */
#include "bench/load/rate_search.h"

#include <math.h>

/* The complement of the 99 % confidence above. */
#define DOUBT 0.01
#define LEAST_PART 1e-4  /* of the top: rates below are not tried */
#define LEAST_SLOPE 2.0  /* least slope of the line: near its capacity every service is steeper */
#define MOST_SLOPE 400.0 /* largest slope: a service that misses all queries at once has no finite one */
/* Largest share of late queries used, as a multiple of the allowed share: the line holds only near the rate. */
#define MOST_LATE 5.0
#define BUNCH 5.0 /* assumed least size of bunches of late queries, because few phases may show less */
enum { MOST_SHORT = 48, LINE_PHASES = 8, MOST_CONFIRMATIONS = 6 };

typedef struct searching {
    const rate_search *search;
    double low, high; /* by short phases: a rate that meets the bound, and one that misses it */
    double kept;
    double x[LINE_PHASES + MOST_CONFIRMATIONS + 1]; /* whole phases: logarithm of the rate over `low` */
    double n[LINE_PHASES + MOST_CONFIRMATIONS + 1], late[LINE_PHASES + MOST_CONFIRMATIONS + 1];
    size_t points;
    int short_phases, code;
} searching;

static bool in_time(const searching *s, rate_count c)
{
    return (double)c.late <= (1 - s->search->percentile) * (double)c.queries;
}

/* Two of three short phases decide. */
static bool keeps(searching *s, double rate)
{
    int kept = 0, missed = 0;
    while (kept < 2 && missed < 2 && s->code == 0) {
        rate_count c = {0, 0};
        s->code = s->search->phase(s->search->user, rate, false, &c);
        s->short_phases++;
        if (s->code == 0 && in_time(s, c))
            kept++;
        else
            missed++;
    }
    return kept > missed;
}

static void bracket(searching *s)
{
    double rate = s->search->top;
    for (; rate > s->search->top * LEAST_PART && s->code == 0; rate /= 2) {
        if (keeps(s, rate)) {
            s->low = rate;
            return;
        }
        s->high = rate;
    }
}

static void narrow(searching *s)
{
    while (s->low > 0 && s->high > s->low * (1 + s->search->precision) && isfinite(s->high) &&
           s->short_phases < MOST_SHORT && s->code == 0) {
        double middle = sqrt(s->low * s->high);
        if (keeps(s, middle))
            s->low = middle;
        else
            s->high = middle;
    }
}

static rate_verdict try_whole(searching *s, double rate)
{
    rate_count c = {0, 0};
    s->code = s->search->phase(s->search->user, rate, true, &c);
    if (s->code || c.queries == 0) return RATE_UNDECIDED;
    s->x[s->points] = log(rate / s->low);
    s->n[s->points] = (double)c.queries;
    s->late[s->points++] = fmin((double)c.late, MOST_LATE * (1 - s->search->percentile) * (double)c.queries);
    rate_verdict verdict = load_verdict(c, s->search->percentile);
    if (verdict == RATE_KEPT && rate > s->kept) s->kept = rate;
    return verdict;
}

typedef struct line {
    double at, deviation; /* logarithm of the rate with the allowed share; infinite deviation: too few points */
} line;

/* Mean of x, weighted by the numbers that a slope expects (up to a factor). */
static double expected_mean(const searching *s, double slope)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < s->points; i++) {
        double w = s->n[i] * exp(slope * s->x[i]);
        sum += w * s->x[i];
        weight += w;
    }
    return sum / weight;
}

/* The slope whose expected numbers have the mean of the counted ones; it grows with that mean. */
static double find_slope(const searching *s, double counted_mean)
{
    double low = LEAST_SLOPE, high = MOST_SLOPE;
    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2;
        if (expected_mean(s, middle) < counted_mean)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static line rate_search_fit(const searching *s)
{
    /* Adds half a late query, spread evenly, in case no query is late. */
    double queries = 0, late = 0.5, x = 0, base = 0, off = 0, spread = 0;
    for (size_t i = 0; i < s->points; i++) queries += s->n[i];
    for (size_t i = 0; i < s->points; i++) late += s->late[i];
    for (size_t i = 0; i < s->points; i++) x += (s->late[i] + 0.5 * s->n[i] / queries) * s->x[i] / late;
    double slope = find_slope(s, x), mean = expected_mean(s, slope);
    for (size_t i = 0; i < s->points; i++) base += s->n[i] * exp(slope * s->x[i]);
    line l = {(log(1 - s->search->percentile) - log(late / base)) / slope, INFINITY};
    if (s->points < 3) return l;
    for (size_t i = 0; i < s->points; i++) {
        double expected = late / base * s->n[i] * exp(slope * s->x[i]), difference = s->late[i] - expected;
        off += difference * difference / (expected + 0.5) / (double)(s->points - 2);
        spread += expected * (s->x[i] - mean) * (s->x[i] - mean);
    }
    l.deviation = sqrt(fmax(off, BUNCH) * (1 / late + (l.at - mean) * (l.at - mean) / fmax(spread, 1e-9))) / slope;
    return l;
}

/* Student's 97.5 % by degrees of freedom, from 1. */
static const double student[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                 2.306,  2.262, 2.228, 2.201, 2.179, 2.160};

static void conclude(const searching *s, rate_found *out)
{
    line l = rate_search_fit(s);
    double half = s->points >= 3 ? l.deviation * student[s->points - 3] : INFINITY;
    double top = s->search->top;
    out->rate = fmin(top, s->low * exp(l.at));
    out->interval[0] = fmin(top, s->low * exp(l.at - half));
    out->interval[1] = s->low * exp(l.at + half);
    out->precise = exp(half) <= 1 + s->search->precision;
}

/* Each phase lies by the precision, later by half of it, below or above the present estimate. */
static void draw_line(searching *s)
{
    double middle = isfinite(s->high) ? sqrt(s->low * s->high) : s->low, aside = s->search->precision,
           top = s->search->top;
    for (int i = 0; i < LINE_PHASES && s->code == 0; i++) {
        if (i == LINE_PHASES / 2) aside /= 2;
        double rate = i % 2 ? middle * (1 + aside) : middle / (1 + aside);
        try_whole(s, fmin(rate, top));
        /* Stays near the bracket of the short phases, because a line through two points may be far off. */
        if (s->points >= 2) middle = fmax(middle / 1.2, fmin(s->low * exp(rate_search_fit(s).at), middle * 1.2));
    }
}

int rate_search_run(const rate_search *search, rate_found *out)
{
    searching s = {.search = search, .high = INFINITY};
    *out = (rate_found){.interval = {0, INFINITY}};
    bracket(&s);
    narrow(&s);
    if (s.low > 0 && !isfinite(s.high) && s.code == 0 && try_whole(&s, search->top) == RATE_KEPT) {
        *out = (rate_found){search->top, {search->top, INFINITY}, search->top, true};
        return 0;
    }
    if (s.low > 0 && s.code == 0) draw_line(&s);
    if (s.points >= 2) conclude(&s, out);
    double rate = fmin(out->interval[0], out->rate), step = search->precision / 2;
    for (int i = 0; i < MOST_CONFIRMATIONS && s.code == 0 && rate > s.kept && s.points >= 2; i++, step *= 2) {
        if (try_whole(&s, rate) == RATE_KEPT) break;
        rate /= 1 + step;
    }
    out->kept = s.kept;
    return s.code;
}

int64_t load_allowed_late(size_t count, double percentile)
{
    double n = (double)count, late = 1 - percentile;
    double term = n * log(percentile), sum = term; /* logarithms of P(X = k) and P(X <= k) */
    int64_t allowed = -1;
    for (int64_t k = 0; (size_t)k <= count && sum <= log(DOUBT); k++) {
        allowed = k;
        term += log((n - (double)k) / ((double)k + 1)) + log(late / percentile);
        double larger = sum > term ? sum : term, smaller = sum > term ? term : sum;
        sum = larger + log1p(exp(smaller - larger));
    }
    return allowed;
}

size_t load_fewest_queries(double percentile)
{
    size_t low = 1, high = 2;
    while (load_allowed_late(high, percentile) < 1) high *= 2;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (load_allowed_late(middle, percentile) < 1)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

rate_verdict load_verdict(rate_count phase, double percentile)
{
    int64_t allowed = load_allowed_late(phase.queries, percentile);
    if (allowed >= 1 && (int64_t)phase.late <= allowed) return RATE_KEPT;
    return (double)phase.late > (1 - percentile) * (double)phase.queries ? RATE_MISSED : RATE_UNDECIDED;
}
