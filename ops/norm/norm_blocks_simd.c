/* The loops of ops/norm/norm_blocks_simd.h for one instruction set (PRN_SIMD names it).
 *
 * Invariant: a lane is summed pixel by pixel in four chains, which are joined and added to a sum in double every RUN
 * pixels: in one order whatever the lanes of a block or a vector. */
#include "ops/norm/norm_blocks_simd.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/vec_math.h"

#include <stdbool.h>

enum { CHAINS = 4, RUN = 256 };

VEC_INLINE vf term(vf x, vf center, const bool squares)
{
    const vf difference = x - center;
    return squares ? difference * difference : x;
}

/* `squares` is a constant after inlining. */
VEC_INLINE void sum_lanes(const prn_norm_block *block, double *to, const bool squares)
{
    const int64_t lanes = block->lanes, pixels = block->pixels;
    for (int64_t l = 0; l < lanes; l += VEC_LANES) {
        const vf center = squares ? v_load(block->center + l) : (vf){0};
        const float *x = block->x + l;
        for (int j = 0; j < VEC_LANES; j++) to[l + j] = 0.0;
        for (int64_t begin = 0; begin < pixels && !prn_cancelled(); begin += RUN) {
            const int64_t end = pixels - begin < RUN ? pixels : begin + RUN;
            vf sum[CHAINS] = {{0}};
            int64_t p = begin;
            for (; p + CHAINS <= end; p += CHAINS, x += CHAINS * lanes) {
                PRN_UNROLL
                for (int c = 0; c < CHAINS; c++) sum[c] += term(v_load(x + c * lanes), center, squares);
            }
            for (; p < end; p++, x += lanes) sum[0] += term(v_load(x), center, squares);
            const vf run = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            for (int j = 0; j < VEC_LANES; j++) to[l + j] += (double)run[j];
        }
    }
}

static void sums(const prn_norm_block *block, double *to)
{
    sum_lanes(block, to, false);
}

static void deviations(const prn_norm_block *block, double *to)
{
    sum_lanes(block, to, true);
}

static void normalise(const prn_norm_block *block)
{
    const int64_t lanes = block->lanes;
    for (int64_t l = 0; l < lanes; l += VEC_LANES) {
        const vf center = v_load(block->center + l), inverse = v_load(block->inverse + l);
        const vf scale = v_load(block->scale + l), shift = v_load(block->shift + l);
        const float *x = block->x + l;
        float *y = block->y + l;
        for (int64_t p = 0; p < block->pixels; p++, x += lanes, y += lanes)
            v_store(y, (v_load(x) - center) * inverse * scale + shift);
    }
}

const prn_norm_blocks_simd PRN_SIMD_TABLE(prn_norm_blocks_simd_) = {VEC_LANES, sums, deviations, normalise};
