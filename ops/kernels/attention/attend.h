/* The attention that operators share:
 *
 *   Y = weights V,  weights = softmax(scale Q K^T + mask)        Q [B, H, S, D], K [B, Hk, T, D], V [B, Hk, T, E]
 *
 * of float32 with any strides, or with K and V in fewer bits, which are read in parts of a few rows; H / Hk heads of Q
 * share one of K and V. Rows are taken in blocks whose scores stay in the second-level cache and never leave the stack;
 * for many rows, K and V are packed first. Results do not depend on the number of threads: blocks depend on shapes
 * alone. The caller owns everything. */
#ifndef PRN_OPS_KERNELS_ATTENTION_ATTEND_H
#define PRN_OPS_KERNELS_ATTENTION_ATTEND_H

#include "ops/kernels/attention/attend_cache.h"
#include "ops/kernels/gemm/gemm_kernel.h"

/* Of most keys a row of scores has room for. */
#define PRN_ATTEND_MOST_KEYS 24576

/* A tensor seen as [batch, head, row, column]: strides in elements. */
typedef struct prn_attend_view {
    const float *data;
    int64_t stride[4];
} prn_attend_view;

typedef struct prn_attend {
    int64_t batch, heads, key_heads, rows, keys, depth, width; /* B, H, Hk, S, T, D, E */
    prn_attend_view q, k, v;
    prn_attend_view mask; /* [B, H, S, T], added; no data: none */
    /* Instead of that: where a truth value of [B, H, S, T] is not `kept`, a scaled score is `fill`. NULL: none. */
    const uint8_t *choice;
    int64_t choice_stride[4];
    bool kept;
    float fill;
    float *y;
    int64_t y_stride[3]; /* of batch, head and row; columns are contiguous */
    float scale;
    /* Not PRN_CACHE_FLOAT32: k.data and v.data are a cache's blocks, one for each batch and key head, with room for
     * cache_rows rows; strides do not count. Only prn_attend_run takes such. */
    prn_cache_type stored;
    int64_t cache_rows;
    /* If given, makes weights of a row's products by itself, in place, instead of scale, mask and softmax. */
    void (*weigh)(const void *argument, int64_t batch, int64_t head, int64_t row, float *scores);
    const void *argument;
} prn_attend;

/* True if the problem has the extents for it: some, and not too many keys. */
bool prn_attend_fits(const prn_attend *at);
/* Floats of working space, aligned to 64 bytes; false: too many to count. */
bool prn_attend_space(const prn_attend *at, int64_t *floats);
void prn_attend_run(int threads, const prn_attend *at, float *space);

/* Weights of a row, in place of its products. */
void prn_attend_weigh(const prn_attend *at, float *scores, int64_t batch, int64_t head, int64_t row);
/* Rows [first, first + rows) of a head, K and V read where they lie; scores [rows][score_row >= keys] are the
 * caller's. */
void prn_attend_rows(const prn_attend *at, int64_t batch, int64_t head, int64_t first, int64_t rows, float *scores,
                     int64_t score_row);

#endif
