/* Levels of a series of independent measurements, such as the medians of one benchmark over months: constant pieces,
 * which steps part, and pieces that drift.
 *
 * Steps are found by E-divisive (D. S. Matteson and N. A. James, "A nonparametric approach for multiple change point
 * analysis of multivariate data", JASA 109, 2014): the split with the largest energy distance between both sides,
 * tested by permutations of the piece. The newest values are tested by their ranks besides. The tests assume no
 * distribution: under exchangeable noise of any kind they report a change in at most PRN_LEVEL_FALSE_ALARMS of the
 * series without one. Pieces that a step parts are searched again. */
#include "profiler/statistics/statistics.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVEL_PERMUTATIONS = 499,
    LEVEL_SEED = 20140101,
    LEVEL_BOUNDED = 1000, /* longest piece that is searched for hidden levels: memory is quadratic */
    LEVEL_YOUNG = 6,      /* most values behind a change that only the young split finds */
};
/* Shares of PRN_LEVEL_FALSE_ALARMS; the rest is the bounded split's. */
#define PLAIN_RATE 0.016
#define YOUNG_RATE 0.024

/* ---- E-divisive ---- */

/* The energy statistic m n / (m + n) * (2 E|X - Y| - E|X - X'| - E|Y - Y'|) of m values beside n, by sums of distances
 * across both sides and within each. */
static double energy(double m, double n, double across, double left, double right)
{
    return m * n / (m + n) * (2 * across / (m * n) - 2 * left / (m * (m - 1)) - 2 * right / (n * (n - 1)));
}

/* The split of `count` values with the largest statistic, both sides with at least PRN_LEVEL_FEWEST values. `room`
 * holds `count` values. */
static double best_split(const double *x, size_t count, double *room, size_t *at_split)
{
    double all = 0, left = 0, right, best = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (size_t j = 0; j < i; j++) sum += fabs(x[i] - x[j]);
        room[i] = sum;
        all += sum;
    }
    right = all;
    for (size_t i = 0; i + PRN_LEVEL_FEWEST < count; i++) {
        double sum_right = 0;
        for (size_t j = i + 1; j < count; j++) sum_right += fabs(x[i] - x[j]);
        left += room[i];
        right -= sum_right;
        if (i + 1 < PRN_LEVEL_FEWEST) continue;
        const double statistic = energy((double)(i + 1), (double)(count - i - 1), all - left - right, left, right);
        if (statistic > best) {
            best = statistic;
            *at_split = i + 1;
        }
    }
    return best;
}

/* The same where the right side may end anywhere: finds a level that a later one hides, such as a regression that was
 * mended. `room` holds count * count values: row j has the sums of |x_j - x_a| over a < i, for each i <= j. */
static double best_bounded_split(const double *x, size_t count, double *room, size_t *at_split)
{
    double best = -INFINITY, left = 0;
    for (size_t j = 0; j < count; j++) {
        double sum = 0, *row = room + j * count;
        for (size_t i = 0; i < j; i++) {
            row[i] = sum;
            sum += fabs(x[j] - x[i]);
        }
        row[j] = sum;
    }
    for (size_t split = 1; split + PRN_LEVEL_FEWEST <= count; split++) {
        double across = 0, right = 0;
        left += room[(split - 1) * count + split - 1];
        if (split < PRN_LEVEL_FEWEST) continue;
        for (size_t j = split; j < count; j++) {
            const double *row = room + j * count;
            const size_t n = j + 1 - split;
            across += row[split];
            right += row[j] - row[split];
            if (n < PRN_LEVEL_FEWEST) continue;
            const double statistic = energy((double)split, (double)n, across, left, right);
            if (statistic > best) {
                best = statistic;
                *at_split = split;
            }
        }
    }
    return best;
}

/* Rank-sum statistic of the last PRN_LEVEL_FEWEST values beside all others: one place to look at, so a change as young
 * as that is found at a rate at which the search of all places still misses it. `ranks`: midranks of the piece. */
static double young_split(const double *ranks, size_t count, double *room, size_t *at_split)
{
    double sum = 0;
    (void)room;
    *at_split = count - PRN_LEVEL_FEWEST;
    for (size_t i = *at_split; i < count; i++) sum += ranks[i] - (double)(count - 1) / 2;
    return fabs(sum);
}

/* The likeliest place of a young change: the largest standardised rank sum of the last values. */
static size_t young_place(const double *ranks, size_t count)
{
    double sum = 0, best = 0;
    size_t place = count - PRN_LEVEL_FEWEST;
    for (size_t n = 1; n <= LEVEL_YOUNG && n + PRN_LEVEL_FEWEST <= count; n++) {
        sum += ranks[count - n] - (double)(count - 1) / 2;
        const double statistic = fabs(sum) / sqrt((double)n * (double)(count - n));
        if (n < PRN_LEVEL_FEWEST || !(statistic > best)) continue;
        best = statistic;
        place = count - n;
    }
    return place;
}

static void midranks(const double *x, size_t count, double *ranks)
{
    for (size_t i = 0; i < count; i++) {
        size_t below = 0, equal = 0;
        for (size_t j = 0; j < count; j++) {
            below += x[j] < x[i];
            equal += !(x[j] < x[i]) && !(x[i] < x[j]);
        }
        ranks[i] = (double)below + (double)(equal - 1) / 2;
    }
}

typedef double level_statistic(const double *x, size_t count, double *room, size_t *at_split);

typedef struct level_search {
    const double *values;
    double *shuffled, *room, *ranks;
    size_t *at;
    size_t count, capacity, found;
    uint64_t random;
} level_search;

/* True if fewer permutations of the piece than `rate` allows reach its best statistic. Ends as soon as the answer is
 * certain. */
static bool split_is_significant(level_search *s, level_statistic *best, double rate, const double *x, size_t count,
                                 size_t *split)
{
    const size_t allowed = (size_t)(rate * (LEVEL_PERMUTATIONS + 1) + 0.5) - 1;
    size_t reached = 0, ignored;
    const double statistic = best(x, count, s->room, split);
    if (!(statistic > 0)) return false;
    memcpy(s->shuffled, x, count * sizeof *x);
    for (int p = 0; p < LEVEL_PERMUTATIONS; p++) {
        for (size_t i = count - 1; i > 0; i--) {
            const size_t j = prn_random_below(&s->random, i + 1);
            const double kept = s->shuffled[i];
            s->shuffled[i] = s->shuffled[j];
            s->shuffled[j] = kept;
        }
        /* Ties, as of exact metrics, must count as reached in spite of rounding. */
        reached += best(s->shuffled, count, s->room, &ignored) >= statistic * (1 - 1e-9);
        if (reached > allowed) return false;
    }
    return true;
}

/* True if the last values of the series differ from the others of the piece. */
static bool young_is_significant(level_search *s, const double *x, size_t count, size_t *split)
{
    midranks(x, count, s->ranks);
    if (!split_is_significant(s, young_split, YOUNG_RATE, s->ranks, count, split)) return false;
    *split = young_place(s->ranks, count);
    return true;
}

/* The split of [begin, end) that one of the tests finds, in their order: the plain one places a change best. */
static bool level_split(level_search *s, size_t begin, size_t end, size_t *split)
{
    const size_t count = end - begin;
    const double *x = s->values + begin;
    return split_is_significant(s, best_split, PLAIN_RATE, x, count, split) ||
           (count <= LEVEL_BOUNDED &&
            split_is_significant(s, best_bounded_split, PRN_LEVEL_FALSE_ALARMS - PLAIN_RATE - YOUNG_RATE, x, count,
                                 split)) ||
           (end == s->count && young_is_significant(s, x, count, split));
}

/* Adds the changes of [begin, end), the newest first. If there are more than `capacity`, the oldest are left out. */
static void split_levels(level_search *s, size_t begin, size_t end, int depth)
{
    size_t split = 0;
    const size_t count = end - begin;
    if (count < 2 * PRN_LEVEL_FEWEST || depth == 0 || s->found == s->capacity) return;
    if (!level_split(s, begin, end, &split)) return;
    split_levels(s, begin + split, end, depth - 1);
    if (s->found < s->capacity) s->at[s->found++] = begin + split;
    split_levels(s, begin, begin + split, depth - 1);
}

prony_status prn_level_changes(size_t *at, size_t capacity, size_t *found, const double *values, size_t count,
                               prony_error *error)
{
    level_search s = {.values = values, .count = count, .at = at, .capacity = capacity, .random = LEVEL_SEED};
    const size_t bounded = count < LEVEL_BOUNDED ? count : LEVEL_BOUNDED;
    *found = 0;
    if (count < 2 * PRN_LEVEL_FEWEST) return PRONY_OK;
    s.shuffled = prn_calloc(count, sizeof *s.shuffled);
    s.room = prn_calloc(bounded * bounded > count ? bounded * bounded : count, sizeof *s.room);
    s.ranks = prn_calloc(count, sizeof *s.ranks);
    const prony_status status = s.shuffled && s.room && s.ranks ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) split_levels(&s, 0, count, 32);
    *found = s.found;
    for (size_t i = 0; i < s.found / 2; i++) {
        const size_t kept = at[i];
        at[i] = at[s.found - 1 - i];
        at[s.found - 1 - i] = kept;
    }
    prn_free(s.shuffled);
    prn_free(s.room);
    prn_free(s.ranks);
    return status;
}

/* ---- steps and drifts ---- */

/* A robust line through the values: the median of slopes, then the median of the rest. `room` has the piece's size. */
static void fit_line(const double *x, size_t count, bool drift, double *room, double *first, double *slope)
{
    *slope = 0;
    if (drift) { /* Theil's incomplete method: pairs half the piece apart */
        const size_t apart = count / 2;
        for (size_t i = 0; i + apart < count; i++) room[i] = (x[i + apart] - x[i]) / (double)apart;
        *slope = prn_median(room, count - apart);
    }
    for (size_t i = 0; i < count; i++) room[i] = x[i] - *slope * (double)i;
    *first = prn_median(room, count);
}

/* The piece [begin, end) with its line, and the normal-consistent median absolute deviation around it. */
static prn_level_piece piece_of(const double *x, size_t begin, size_t end, bool drift, double *room)
{
    double slope, first;
    const size_t count = end - begin;
    fit_line(x + begin, count, drift, room, &first, &slope);
    for (size_t i = 0; i < count; i++) room[i] = fabs(x[begin + i] - first - slope * (double)i);
    return (prn_level_piece){.begin = begin,
                             .end = end,
                             .drift = drift,
                             .first = first,
                             .last = first + slope * (double)(count - 1),
                             .slope = slope,
                             .spread = 1.4826 * prn_median(room, count)};
}

/* Misfit of a piece in units of the noise: twice the negative log-likelihood under Laplace noise of scale `noise`. */
static double misfit(const double *x, const prn_level_piece *p, double noise)
{
    double sum = 0;
    for (size_t i = p->begin; i < p->end; i++) sum += fabs(x[i] - p->first - p->slope * (double)(i - p->begin));
    return 2 * sum / noise;
}

/* Scale of the noise by differences of neighbours, which neither a step nor a drift moves much. Exact metrics repeat
 * their values, so most differences are 0: the scale is at least 1e-6 of the range, and above 0 if two values
 * differ. */
static double noise_scale(const double *x, size_t count, double *room)
{
    double low = x[0], high = x[0];
    for (size_t i = 1; i < count; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
        room[i - 1] = fabs(x[i] - x[i - 1]);
    }
    const double scale = 0.836 * prn_median(room, count - 1); /* E|r| of normal r, by the median of differences */
    return fmax(scale, 1e-6 * (high - low));
}

/* The cheapest cover of the segments between changes: each segment as a constant level, or several neighbours as one
 * line. A constant costs three parameters (a level, and two for its position, which the data chose), a line four (BIC).
 * With these costs none of 500 simulated drifts became a single step, and 92 % of the steps stayed steps. Segment k
 * lies between bounds[k] and bounds[k + 1]. The constant is tried first and always taken, so last[j] is set at any
 * cost. */
static void cover_segments(const double *x, const size_t *bounds, size_t segments, double *room,
                           prn_level_piece *pieces, size_t *count)
{
    double cost[PRN_LEVEL_PIECES + 1] = {0};
    prn_level_piece last[PRN_LEVEL_PIECES + 1];
    const double noise = noise_scale(x, bounds[segments], room), parameter = log((double)bounds[segments]);
    for (size_t j = 1; j <= segments; j++) {
        cost[j] = INFINITY;
        for (size_t i = j; i-- > 0;) {
            const prn_level_piece piece = piece_of(x, bounds[i], bounds[j], i + 1 < j, room);
            const double all = cost[i] + misfit(x, &piece, noise) + (piece.drift ? 4 : 3) * parameter;
            if (piece.drift && !(all < cost[j])) continue;
            cost[j] = all;
            last[j] = piece;
        }
    }
    *count = 0;
    for (size_t end = bounds[segments], j = segments; end > 0; (*count)++) {
        while (bounds[j] != end) j--;
        pieces[*count] = last[j];
        end = last[j].begin;
    }
    for (size_t i = 0; i < *count / 2; i++) {
        const prn_level_piece kept = pieces[i];
        pieces[i] = pieces[*count - 1 - i];
        pieces[*count - 1 - i] = kept;
    }
}

prony_status prn_level_pieces(prn_level_piece pieces[PRN_LEVEL_PIECES], size_t *count, const double *values, size_t n,
                              prony_error *error)
{
    size_t bounds[PRN_LEVEL_PIECES + 1] = {0}, found = 0;
    *count = 0;
    if (n == 0) return PRONY_OK;
    PRN_TRY(prn_level_changes(bounds + 1, PRN_LEVEL_PIECES - 1, &found, values, n, error));
    bounds[found + 1] = n;
    double *room = prn_calloc(n, sizeof *room);
    if (!room) return prn_no_memory(error);
    if (found == 0) {
        pieces[0] = piece_of(values, 0, n, false, room);
        *count = 1;
    } else
        cover_segments(values, bounds, found + 1, room, pieces, count);
    prn_free(room);
    return PRONY_OK;
}
