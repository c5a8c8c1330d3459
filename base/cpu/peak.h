/* The machine's peak rates: arithmetic and memory traffic for any number of threads, measured by loops that do nothing
 * else. */
#ifndef PRN_BASE_CPU_PEAK_H
#define PRN_BASE_CPU_PEAK_H

#include "base/status.h"

typedef enum prn_peak_kind {
    PRN_PEAK_F32, /* multiply and add of vectors: FLOP/s */
    PRN_PEAK_F64,
    PRN_PEAK_BF16, /* products of bfloat16 summed in float32, on tiles; only if prn_peak_has_bf16 */
    PRN_PEAK_READ, /* bytes/s; each byte read or written counts once */
    PRN_PEAK_WRITE,
    PRN_PEAK_COPY /* half of the bytes read, half written */
} prn_peak_kind;

typedef struct prn_peak {
    double per_second;     /* of the best trial: all threads' work over the time in which any of them worked */
    double together;       /* share of that time in which all of them worked */
    uint64_t thread_bytes; /* bytes that each thread read or wrote; 0 for arithmetic */
    int64_t trial_ns;      /* duration of the best trial */
    int trials;
} prn_peak;

struct prn_peak_tools;

/* The best of `trials` trials of each kind, about `trial_ns` each. All threads are awake before a trial starts.
 * `tools`: NULL for this machine's loops and clock. `thread_bytes` is rounded down to whole blocks; the kinds of one
 * call share the buffers, and are all arithmetic (0 bytes) or all memory. PRONY_LIMIT: the threads cannot be
 * created. */
PRN_MUST_USE prony_status prn_peak_measure(prn_peak *out, const prn_peak_kind *kinds, size_t count, int threads,
                                           uint64_t thread_bytes, int trials, int64_t trial_ns,
                                           const struct prn_peak_tools *tools, prony_error *error);

typedef struct prn_peak_interval {
    int64_t start_ns, end_ns;
} prn_peak_interval;

/* The time in which at least one interval lasted, and the time in which all did. Sorts the intervals. */
void prn_peak_overlap(prn_peak_interval *intervals, int count, int64_t *any_ns, int64_t *all_ns);

/* The loops of one instruction set; sizes are multiples of PRN_PEAK_BLOCK_BYTES, addresses aligned to 64. */
#define PRN_PEAK_BLOCK_BYTES 1024
typedef struct prn_peak_loops {
    double (*compute_f32)(int64_t rounds, double *flops);
    double (*compute_f64)(int64_t rounds, double *flops);
    uint64_t (*read)(const void *from, size_t bytes);
    void (*write)(void *to, size_t bytes, uint64_t value);
    void (*copy)(void *to, const void *from, size_t bytes);
} prn_peak_loops;

/* Likewise, on tiles (base/cpu/peak_dot_simd.c). */
typedef struct prn_peak_tiles {
    double (*bf16)(int64_t rounds, double *flops); /* NULL: not available */
} prn_peak_tiles;

bool prn_peak_has_bf16(void);

typedef struct prn_peak_tools {
    const prn_peak_loops *loops;
    int64_t (*now_ns)(void);
} prn_peak_tools;

#endif
