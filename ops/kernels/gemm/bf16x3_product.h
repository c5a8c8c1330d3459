/* Products of float32 matrices as products of bfloat16, on tiles (AMX) or on vectors (AVX512_BF16).
 *
 * A float32 is the sum of three bfloat16 of eight bits each, exactly:
 *
 *     x = x1 + x2 + x3     each the rest, rounded to nearest: |x2| <= 2^-8 |x|, |x3| <= 2^-16 |x|
 *     x y ~ x1 y1 + (x1 y2 + x2 y1) + (x1 y3 + x2 y2 + x3 y1)
 *
 * The terms left out are below 2^-23 |x y|, of either sign, and below 2^-26 in the mean.
 *
 * Tiles add the products of 32 depths up before they add them to a float32 sum, so that a sum rounds 6 times in 32
 * depths where a plain one rounds 32 times: the result is nearer to the exact one than the plain sum's
 * (docs/internals/accuracy_contract.md). With fewer parts it is coarser: two leave out 2^-16 |x y|, one 2^-8 |x y|.
 *
 * Invariants: sums are formed in one order, whatever the number of rows. Nothing here owns memory. Values below 2^-102
 * lose their last parts, as tiles take subnormal numbers for 0. Infinities, NaN and what rounds to infinity have no
 * parts: who splits is told. */
#ifndef PRN_OPS_KERNELS_GEMM_BF16X3_PRODUCT_H
#define PRN_OPS_KERNELS_GEMM_BF16X3_PRODUCT_H

#include "prony_operator.h"

enum {
    PRN_BF16X3_DEPTH = 32,                      /* of a step */
    PRN_BF16X3_COLUMNS = 32,                    /* of a panel of B */
    PRN_BF16X3_ROWS = 16,                       /* of a tile; rows are given in whole ones */
    PRN_BF16X3_EDGE_ROWS = 2 * PRN_BF16X3_ROWS, /* that pass through a buffer at once, where tiles are not whole */
    PRN_BF16X3_PARTS = 3,                       /* at most */
    PRN_BF16X3_STEPS = 3, /* that are multiplied at once: the parts of their panel stay in the first-level cache */
    PRN_BF16X3_MOST_STEPS = 16, /* the same with one part, where panels are stored so */
    PRN_BF16X3_SOME_STEPS = 8,  /* the same where sums of some rows shall stay there, too */
    PRN_BF16X3_PANEL =
        PRN_BF16X3_STEPS * PRN_BF16X3_PARTS * PRN_BF16X3_DEPTH * PRN_BF16X3_COLUMNS /* parts of such a panel */
};

/* True if products of so many parts are faster here than those of float32: of up to three on tiles, of one on
 * vectors. */
bool prn_bf16x3_there(int parts);

#define PRN_BF16X3_NEVER (-1)

/* Parts for what a session admits. */
static inline int prn_bf16x3_parts(prony_precision precision)
{
    if (precision == PRONY_PRECISION_FP32_STRICT) return PRN_BF16X3_NEVER;
    return precision == PRONY_PRECISION_BF16 ? 1 : precision == PRONY_PRECISION_FAST ? 2 : PRN_BF16X3_PARTS;
}

/* Products of bfloat16 that one of float32 is made of. */
static inline int prn_bf16x3_products(int parts)
{
    return parts * (parts + 1) / 2;
}

/* The calling thread's tiles, around calls of prn_bf16x3_multiply. */
void prn_bf16x3_begin(void);
void prn_bf16x3_end(void);

/* Parts of `rows` rows of one step of A: depths 0 to 15 of row r at left + r * step, 16 to 31 at right + r * step, each
 * of which ends after `left_count` or `right_count` of them (NULL, 0: zeros). Part p of row r is at to + p * part_step
 * + 32 r. false: one of them has no parts. */
bool prn_bf16x3_rows(const float *left, int left_count, const float *right, int right_count, int64_t step, int64_t rows,
                     int parts, uint16_t *to, int64_t part_step);
/* The two parts of what each element, of 16 on either side, is above `center`; right NULL: of no meaning there. */
bool prn_bf16x3_rows_around(float center, const float *left, const float *right, int64_t step, int64_t rows,
                            uint16_t *to, int64_t part_step);
/* Squared sizes of some numbers' second parts, beside the squares of the numbers. Of most numbers that is about
 * 2^-18.6; where it is much more, as it may be where all are equal, what a product of second parts leaves out is
 * larger, and all of one sign. */
typedef struct prn_bf16x3_digits {
    double sizes, seconds;
} prn_bf16x3_digits;

static inline void prn_bf16x3_note(prn_bf16x3_digits *digits, float x, float second)
{
    digits->sizes += (double)x * (double)x;
    digits->seconds += (double)second * (double)second;
}

static inline bool prn_bf16x3_two_will_do(const prn_bf16x3_digits *digits)
{
    return digits->seconds <= 0x1.be8p-18 * digits->sizes; /* 2^-17.2 */
}

/* Parts of a panel of B, [depths][32 columns], its depths in whole steps but for the last. false as above. */
bool prn_bf16x3_panel(const float *panel, int64_t depths, int parts, uint16_t *to);

/* Parts of some rows of A that are made on the way: of `count` row after row of step after step, from row `row` of step
 * `step` on. */
typedef struct prn_bf16x3_left {
    const float *from;    /* row 0, first depth of step 0 */
    int64_t from_row;     /* elements from one row to the next */
    int64_t depths, rows; /* there are; of the last step may be fewer than 32 */
    int64_t step, row, count;
    uint16_t *to; /* parts of row r of step s at to + s * to_step + p * to_part + 32 r */
    int64_t to_step, to_part;
    int64_t ahead; /* elements from what is made to what is fetched meanwhile; 0: nothing */
} prn_bf16x3_left;

/* C [rows][16 or 32 columns] = sums + A B, for one panel. */
typedef struct prn_bf16x3_tiles {
    const uint16_t *a[PRN_BF16X3_MOST_STEPS]; /* first part of row 0 of each step, as prn_bf16x3_rows makes it */
    int64_t a_part;                           /* elements from one part to the next */
    const uint16_t *b;                        /* as prn_bf16x3_panel makes it */
    int steps, parts;
    int64_t rows; /* whole tiles */
    float *c;
    int64_t rs_c;      /* elements */
    const float *sums; /* of what was before, such as c itself; NULL: zeros */
    int64_t sums_row;
    bool wide; /* 32 columns */
    /* The next operands are split meanwhile, while the tiles leave vector units idle: a panel, as by
     * prn_bf16x3_panel(next, next_depths, parts, next_b), then rows of A. NULL: none. Memory behind the panel is
     * fetched. */
    const float *next;
    int64_t next_depths;
    uint16_t *next_b;
    const prn_bf16x3_left *left;
    /* Bytes to prefetch if no panel follows; NULL: none. */
    const char *ahead;
    int64_t ahead_bytes;
} prn_bf16x3_tiles;

/* false: the next panel, or rows, hold what has no parts. */
bool prn_bf16x3_multiply(const prn_bf16x3_tiles *tiles);

/* y[i] = c[i * 32 ...] + bias + added[i], kept within [low, high], each of 16 columns, for `rows` rows; y and added
 * without gaps. added NULL: none. NaN stays NaN. */
void prn_bf16x3_store(const float *c, int64_t rows, const float *bias, const float *added, float low, float high,
                      float *y);

/* All of these for one instruction set (ops/kernels/gemm/bf16x3_product_dot_simd.c). */
typedef struct prn_bf16x3_simd {
    int most_parts; /* that prn_bf16x3_there says yes to; 0: there is nothing */
    void (*begin)(void);
    void (*end)(void);
    bool (*rows)(const float *left, int left_count, const float *right, int right_count, int64_t step, int64_t rows,
                 int parts, uint16_t *to, int64_t part_step);
    bool (*rows_around)(float center, const float *left, const float *right, int64_t step, int64_t rows, uint16_t *to,
                        int64_t part_step);
    bool (*panel)(const float *panel, int64_t depths, int parts, uint16_t *to);
    bool (*multiply)(const prn_bf16x3_tiles *tiles);
    void (*store)(const float *c, int64_t rows, const float *bias, const float *added, float low, float high, float *y);
} prn_bf16x3_simd;

#endif
