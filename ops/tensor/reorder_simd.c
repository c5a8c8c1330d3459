/* The inner loop of prony::Reorder: eight channels at a time (four on AArch64), transposed in tiles of as many
 * positions where one side has its positions next to each other. Compiled once per instruction set (PRN_SIMD names the
 * variant); below AVX2 and NEON a tile does not pay and elements are copied one by one. */
#include "ops/tensor/reorder_simd.h"
#include "base/cpu/simd.h"

#include <string.h>

enum { GROUP = PRN_REORDER_GROUP };

#if defined(__AVX2__) || defined(PRN_NEON)
typedef float vec __attribute__((vector_size(GROUP * sizeof(float)), aligned(4), may_alias));

#if defined(PRN_NEON)
/* Columns of `x` become rows of `y`. */
static inline void transpose(const float *x, int64_t x_row, float *y, int64_t y_row)
{
    vec a[GROUP], b[GROUP];
    for (int i = 0; i < GROUP; i++) a[i] = *(const vec *)(x + i * x_row);
    for (int i = 0; i < GROUP; i += 2) {
        b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 4, 2, 6);
        b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < GROUP / 2; i++) {
        *(vec *)(y + i * y_row) = __builtin_shufflevector(b[i], b[i + 2], 0, 1, 4, 5);
        *(vec *)(y + (i + 2) * y_row) = __builtin_shufflevector(b[i], b[i + 2], 2, 3, 6, 7);
    }
}
#else
/* Columns of `x` become rows of `y`. */
static inline void transpose(const float *x, int64_t x_row, float *y, int64_t y_row)
{
    vec a[GROUP], b[GROUP];
    for (int i = 0; i < GROUP; i++) a[i] = *(const vec *)(x + i * x_row);
    for (int i = 0; i < GROUP; i += 2) {
        b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int i = 0; i < GROUP; i += 4) {
        for (int j = i; j < i + 2; j++) {
            a[j] = __builtin_shufflevector(b[j], b[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[j + 2] = __builtin_shufflevector(b[j], b[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    for (int i = 0; i < GROUP / 2; i++) {
        *(vec *)(y + i * y_row) = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(vec *)(y + (i + 4) * y_row) = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

#endif

/* As many positions from the front as whole tiles hold. */
static int64_t move_tiles(const float *x, int64_t x_position, int64_t x_channel, float *y, int64_t y_position,
                          int64_t y_channel, int64_t count)
{
    int64_t p = 0;
    if (x_channel == 1 && y_channel == 1) {
        for (; p < count; p++) *(vec *)(y + p * y_position) = *(const vec *)(x + p * x_position);
    } else if (x_channel == 1) {
        for (; p + GROUP <= count; p += GROUP) transpose(x + p * x_position, x_position, y + p, y_channel);
    } else {
        for (; p + GROUP <= count; p += GROUP) transpose(x + p, x_channel, y + p * y_position, y_position);
    }
    return p;
}
#else
static int64_t move_tiles(const float *x, int64_t x_position, int64_t x_channel, float *y, int64_t y_position,
                          int64_t y_channel, int64_t count)
{
    int64_t p = 0;
    if (x_channel != 1 || y_channel != 1) return 0;
    for (; p < count; p++) {
        for (int64_t c = 0; c < GROUP; c++) y[p * y_position + c] = x[p * x_position + c];
    }
    return p;
}
#endif

static void move_group(const float *x, int64_t x_position, int64_t x_channel, float *y, int64_t y_position,
                       int64_t y_channel, int64_t count)
{
    int64_t p = move_tiles(x, x_position, x_channel, y, y_position, y_channel, count);
    for (; p < count; p++) {
        for (int64_t c = 0; c < GROUP; c++) y[p * y_position + c * y_channel] = x[p * x_position + c * x_channel];
    }
}

/* `block` is a constant after inlining. */
static inline __attribute__((always_inline)) void move_each_block(const float *x, int64_t x_position, int64_t x_block,
                                                                  float *y, int64_t y_position, int64_t y_block,
                                                                  int64_t count, int64_t blocks, const size_t block)
{
    for (int64_t p = 0; p < count; p++, x += x_position, y += y_position)
        for (int64_t b = 0; b < blocks; b++) memcpy(y + b * y_block, x + b * x_block, block * sizeof *y);
}

static void reorder_simd_move_blocks(const float *x, int64_t x_position, int64_t x_block, float *y, int64_t y_position,
                                     int64_t y_block, int64_t count, int64_t blocks, int64_t block)
{
    if (block == 16)
        move_each_block(x, x_position, x_block, y, y_position, y_block, count, blocks, 16);
    else if (GROUP == 4 && block == 4)
        move_each_block(x, x_position, x_block, y, y_position, y_block, count, blocks, 4);
    else
        move_each_block(x, x_position, x_block, y, y_position, y_block, count, blocks, 8);
}

static void join_3(const uint8_t *restrict x, int64_t plane, uint8_t *restrict y, int64_t count)
{
    const uint8_t *a = x, *b = x + plane, *c = x + 2 * plane;
    for (int64_t p = 0; p < count; p++) {
        y[3 * p] = a[p];
        y[3 * p + 1] = b[p];
        y[3 * p + 2] = c[p];
    }
}

const prn_reorder_simd PRN_SIMD_TABLE(prn_reorder_simd_) = {
    .move_group = move_group, .move_blocks = reorder_simd_move_blocks, .join_3 = join_3};
