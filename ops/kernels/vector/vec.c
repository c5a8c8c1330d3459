/* Picks the vector table for this processor. */
#include "ops/kernels/vector/vec.h"

#include "base/cpu/simd.h"
#include "base/threads/cancel.h"

PRN_SIMD_PICK(prn_vec_table, prn_vec_, const prn_vec_table *prn_vec)

enum { LOOK_UP = 1 << 18 };

/* Elements from `i` on until the next look; 0: none. */
static int64_t vec_run_length(int64_t i, int64_t n)
{
    if (n <= LOOK_UP) return n - i;
    if (prn_cancelled()) return 0;
    return n - i < LOOK_UP ? n - i : LOOK_UP;
}

void prn_long_map(prn_map_id map, float *y, const float *x, int64_t n, float a, float b)
{
    for (int64_t i = 0, run; i < n && (run = vec_run_length(i, n)) > 0; i += run)
        prn_vec()->map[map](y + i, x + i, run, a, b);
}

void prn_long_vv(prn_binary_id op, float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0, run; i < n && (run = vec_run_length(i, n)) > 0; i += run)
        prn_vec()->vv[op](y + i, a + i, b + i, run);
}

void prn_long_vs(prn_binary_id op, float *y, const float *a, float b, int64_t n)
{
    for (int64_t i = 0, run; i < n && (run = vec_run_length(i, n)) > 0; i += run)
        prn_vec()->vs[op](y + i, a + i, b, run);
}
