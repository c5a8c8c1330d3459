/* Splitting of weights, and the list's product for few rows.
 *
 * Invariant: weight = rest + excess, and of the weights that meet in 16 bits the positive rests sum to at most 128, the
 * negative ones to at least -128. */
#include "ops/kernels/int8/int8_outliers.h"

#include <string.h>

enum {
    COLUMNS = PRN_QINT8_COLUMNS,
    MEET = 128, /* largest sum of weights that meet */
    MOST = 64,  /* of an excess: two of a group meet in 16 bits too */
    STEPS = 4,  /* largest number of them */
    LANES = 2 * COLUMNS,
    GROUP = 4, /* entries of a prn_qint8_outliers */
    /* Instructions for 32 rows: of a step's depths by one column of vectors, of a group, of having a list at all. */
    GROUP_WORK = 28,
    LIST_WORK = 1000
};

/* Weights that meet: `count` of them, those of one column in successive steps, two of each. */
static int8_t *int8_outliers_weight_at(int8_t *panel, int64_t step, int lane, int i)
{
    return panel + (step + i / 2) * 4 * COLUMNS + 2 * lane + i % 2;
}

/* Takes the excess out of weights that sum to `sum`, those with the sign `sign` counted and as positive numbers, from
 * the largest on. Returns the entries that it makes. */
static uint32_t int8_outliers_take(int *weight, int count, int sign, int sum)
{
    uint32_t entries = 0;
    while (sum > MEET) {
        int largest = 0;
        for (int i = 1; i < count; i++) largest = sign * weight[i] > sign * weight[largest] ? i : largest;
        const int size = sign * weight[largest], excess = size < sum - MEET ? size : sum - MEET;
        weight[largest] -= sign * excess;
        sum -= excess;
        entries += excess > MOST ? 2 : 1;
    }
    return entries;
}

/* The lane whose weights begin at `step`, of which the positive ones and the negative ones have these sums; writes the
 * rests where `apply` says so. */
static uint32_t split_lane(int8_t *panel, int64_t step, int lane, int steps, int positive, int negative, bool apply)
{
    int weight[2 * STEPS];
    for (int i = 0; i < 2 * steps; i++) weight[i] = *int8_outliers_weight_at(panel, step, lane, i);
    const uint32_t entries =
        int8_outliers_take(weight, 2 * steps, 1, positive) + int8_outliers_take(weight, 2 * steps, -1, -negative);
    for (int i = 0; i < 2 * steps && apply; i++) *int8_outliers_weight_at(panel, step, lane, i) = (int8_t)weight[i];
    return entries;
}

/* Sums of the positive and of the negative weights of all lanes. */
static void sums_of_lanes(const int8_t *panel, int64_t step, int steps, int16_t positive[LANES],
                          int16_t negative[LANES])
{
    memset(positive, 0, LANES * sizeof *positive);
    memset(negative, 0, LANES * sizeof *negative);
    for (int s = 0; s < steps; s++) {
        const int8_t *from = panel + (step + s) * 4 * COLUMNS;
        for (int lane = 0; lane < LANES; lane++) {
            const int first = from[2 * lane], second = from[2 * lane + 1];
            positive[lane] = (int16_t)(positive[lane] + (first > 0 ? first : 0) + (second > 0 ? second : 0));
            negative[lane] = (int16_t)(negative[lane] + (first < 0 ? first : 0) + (second < 0 ? second : 0));
        }
    }
}

/* Entries of every column, up to `limit` in all (then the rest is not looked at). */
static int64_t int8_outliers_entries_of(int8_t *panel, int64_t depth, int steps, bool apply, int64_t limit,
                                        uint32_t entries[COLUMNS])
{
    int16_t positive[LANES], negative[LANES];
    int64_t all = 0;
    memset(entries, 0, COLUMNS * sizeof *entries);
    for (int64_t step = 0; step < depth / 4 && all <= limit; step += steps) {
        sums_of_lanes(panel, step, steps, positive, negative);
        for (int lane = 0; lane < LANES; lane++) {
            if (positive[lane] <= MEET && negative[lane] >= -MEET) continue;
            const uint32_t more = split_lane(panel, step, lane, steps, positive[lane], negative[lane], apply);
            entries[lane / 2] += more;
            all += more;
        }
    }
    return all;
}

static uint32_t int8_outliers_groups_of(const uint32_t entries[COLUMNS])
{
    uint32_t groups = 0;
    for (int j = 0; j < COLUMNS; j++) groups += (entries[j] + GROUP - 1) / GROUP;
    return groups;
}

/* Instructions of a panel's product by 32 rows, without its list: two for each step and one to add up in each lane's
 * vector. */
static int64_t product_work(int64_t depth, int steps)
{
    return 32 * 4 * (depth / 4) * (2 * steps + 1) / steps;
}

int prn_qint8_outliers_split(int8_t *panel, int64_t depth, uint32_t *groups)
{
    uint32_t entries[COLUMNS];
    int best = 1;
    int64_t least = INT64_MAX;
    for (int steps = STEPS; steps >= 1; steps /= 2) {
        const int64_t product = product_work(depth, steps);
        /* No more than would make another number of steps the better one. */
        const int64_t limit = steps == 1 ? INT64_MAX : (product_work(depth, steps / 2) - product) * GROUP / GROUP_WORK;
        const int64_t all = int8_outliers_entries_of(panel, depth, steps, false, limit, entries);
        if (all > limit) continue;
        const int64_t work =
            product + (all > 0 ? LIST_WORK + GROUP_WORK * (int64_t)int8_outliers_groups_of(entries) : 0);
        if (work >= least) continue;
        least = work;
        best = steps;
        if (all == 0) break;
    }
    int8_outliers_entries_of(panel, depth, best, true, INT64_MAX, entries);
    *groups = int8_outliers_groups_of(entries);
    return best;
}

/* Entries of a column. */
static prn_qint8_outliers *list_column(const int8_t *whole, const int8_t *rest, int64_t depth, int column,
                                       prn_qint8_outliers *to)
{
    int entry = GROUP; /* of the last group; GROUP: it is full */
    for (int64_t k = 0; k < depth; k++) {
        const int64_t at = k / 4 * 4 * COLUMNS + 4 * column + k % 4;
        for (int left = whole[at] - rest[at], part; left != 0; left -= part, entry++) {
            part = left > MOST ? MOST : left < -MOST ? -MOST : left;
            if (entry == GROUP) {
                *to++ = (prn_qint8_outliers){.column = (uint32_t)column};
                entry = 0;
            }
            to[-1].depth[entry] = (uint32_t)k;
            to[-1].weight[entry] = (int8_t)part;
        }
    }
    return to;
}

uint32_t prn_qint8_outliers_list(const int8_t *whole, const int8_t *rest, int64_t depth, prn_qint8_outliers *to)
{
    prn_qint8_outliers *end = to;
    for (int j = 0; j < COLUMNS; j++) end = list_column(whole, rest, depth, j, end);
    return (uint32_t)(end - to);
}

void prn_qint8_outliers_rows(const uint8_t *a, int64_t rs_a, int64_t rows, const prn_qint8_outliers *from,
                             const prn_qint8_outliers *to, int32_t *sums)
{
    for (const prn_qint8_outliers *group = from; group < to; group++) {
        for (int64_t r = 0; r < rows; r++) {
            uint32_t sum = (uint32_t)sums[r * COLUMNS + group->column];
            for (int e = 0; e < GROUP; e++) sum += (uint32_t)(a[r * rs_a + group->depth[e]] * group->weight[e]);
            sums[r * COLUMNS + group->column] = (int32_t)sum;
        }
    }
}
