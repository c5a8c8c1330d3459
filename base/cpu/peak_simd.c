/* The loops that measure a machine's peaks, compiled once per instruction set with PRN_SIMD naming the table.
 * Invariant: every result reaches the caller, so the compiler cannot remove a loop; values stay near 1, so denormals do
 * not slow a loop. */
#include "base/cpu/peak.h"
#include "base/cpu/simd.h"

/* Independent sums: enough to hide the latency of two units, few enough to stay in registers. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
enum { CHAIN_COUNT = 12, FLOPS_PER_STEP = 2 };

#define START(c) v[c] = one * (real)(1.001 + 0.001 * c);
#define STEP(c) v[c] = v[c] * slope + offset;
#define ADD(c) sum += v[c];

/* v = v * a + b tends to b / (1 - a) = 1. No chain may begin at 1: the compiler would remove it, but it would be
 * counted. */
#define COMPUTE(name, type)                                                                                            \
    typedef type name##_vector __attribute__((vector_size(PRN_SIMD_BYTES)));                                           \
    static double name(int64_t rounds, double *flops)                                                                  \
    {                                                                                                                  \
        typedef type real;                                                                                             \
        enum { LANES = PRN_SIMD_BYTES / (int)sizeof(type) };                                                           \
        const name##_vector one = (name##_vector){0} + (real)1, slope = one * (real)0.75, offset = one * (real)0.25;   \
        name##_vector v[CHAIN_COUNT], sum = one;                                                                       \
        CHAINS(START)                                                                                                  \
        for (int64_t r = 0; r < rounds; r++) {                                                                         \
            CHAINS(STEP)                                                                                               \
        }                                                                                                              \
        CHAINS(ADD)                                                                                                    \
        *flops = (double)rounds * CHAIN_COUNT * LANES * FLOPS_PER_STEP;                                                \
        return (double)sum[0];                                                                                         \
    }

COMPUTE(compute_f32, float)
COMPUTE(compute_f64, double)

/* Memory is moved as integers, because no bit pattern is slow then. */
typedef uint64_t words __attribute__((vector_size(PRN_SIMD_BYTES), may_alias));
#define PARTS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
enum { PART_COUNT = 8 }; /* vectors per round; buffers hold whole rounds */

#define DECLARE(k) words sum_##k = {0};
#define READ(k) sum_##k ^= p[i + k];
#define JOINED(k) all ^= sum_##k;
#define WRITE(k) p[i + k] = v;
#define COPY(k) p[i + k] = q[i + k];

static uint64_t peak_simd_read_memory(const void *from, size_t bytes)
{
    const words *p = from;
    words all = {0};
    PARTS(DECLARE)
    for (size_t i = 0; i < bytes / sizeof *p; i += PART_COUNT) {
        PARTS(READ)
    }
    PARTS(JOINED)
    return all[0] ^ all[1];
}

static void write_memory(void *to, size_t bytes, uint64_t value)
{
    words *p = to;
    const words v = (words){0} + value;
    for (size_t i = 0; i < bytes / sizeof *p; i += PART_COUNT) {
        PARTS(WRITE)
        __asm__ volatile("" ::: "memory"); /* keeps the loop from becoming a call of memset */
    }
}

static void copy_memory(void *to, const void *from, size_t bytes)
{
    words *p = to;
    const words *q = from;
    for (size_t i = 0; i < bytes / sizeof *p; i += PART_COUNT) {
        PARTS(COPY)
        __asm__ volatile("" ::: "memory"); /* keeps the loop from becoming a call of memcpy */
    }
}

const prn_peak_loops PRN_SIMD_TABLE(prn_peak_loops_) = {.compute_f32 = compute_f32,
                                                        .compute_f64 = compute_f64,
                                                        .read = peak_simd_read_memory,
                                                        .write = write_memory,
                                                        .copy = copy_memory};
