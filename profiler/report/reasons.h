/* Explains why an operator takes longer than it could, from measurements of its threads, facts of its kernel and the
 * roofs. Used by reports of one configuration and by studies of many.
 *
 * Facts that kernels state (prn_kernel.facts), of the matrix products that they compute:
 *   product_rows, product_columns, product_depth   of one product
 *   tile_rows, tile_columns                        of the tile computed at once, in registers
 *   product_flops                                  executed for the products, if that is not 2 for each MAC
 *   bf16_products                                  bfloat16 products for each float32 product
 *   packs_in_run                                   1: an operand is packed in every run
 *   filters_in_run                                 1: weights are transformed in every run, because several extents
 *                                                  share them or the transforms would be much larger than all weights
 *   byte_products                                  1: its products are of 8-bit values, summed in 32 bits
 *   weight_bits, weight_bytes, weight_group        of a constant operand: bits per element, bytes with scales, and the
 *                                                  depths that share a scale, if not all
 *   stays_in_fp32                                  why the session's precision does not apply (prn_stays_in_fp32 in
 *                                                  ops/op.h)
 *
 * And a fact that rewrites state about an operator with dequantized operands (prn_stays_in_float in
 * engine/bind/program.h):
 *   stays_in_float                                 why it does not run on their codes */
#ifndef PRN_PROFILER_REPORT_REASONS_H
#define PRN_PROFILER_REPORT_REASONS_H

#include "profiler/report/report.h"

/* Measurements of an operator's threads; below 0: not known. */
typedef struct prn_thread_facts {
    int threads;               /* that it may use */
    double tasks, members;     /* pieces of work; threads that took part */
    double busy_ns;            /* of all of them */
    double longest_ns;         /* of the busiest */
    double wake_ns;            /* until the others began */
    double time_ns, serial_ns; /* with these threads; with one */
    double lost_ns;            /* against an even share */
    double bandwidth_ns;       /* time by the memory roof; 0: not known, or not the longer roof */
    double clock_ratio;        /* clock rate over that with one thread; 0: not known */
    double others;             /* share of the processors that other processes took */
} prn_thread_facts;

/* The most certain explanation of the loss, tested in this order: "scales", "one thread inside of it", "serial kernel",
 * "too few tasks", "bandwidth roof", "frequency", "other processes", "wake-up", "imbalance", "shared caches or memory",
 * "overhead of sharing". */
const char *prn_thread_reason(const prn_thread_facts *facts);

/* Fills every operator's reasons and its kernel's best rate in this report; needs times, thread pools and roof. */
PRN_MUST_USE prony_status prn_report_fill_reasons(prony_report *report, prony_error *error);

/* "tiles of 14 x 32: 23 % empty; …": the first `most` of an operator's reasons; false: no reason. */
bool prn_reasons_text(const prony_operator_row *row, size_t most, char *out, size_t size);
/* "the kernel reaches 61 % at best here, in /a/b"; false: not known, or this is that operator. */
bool prn_kernel_best_text(const prony_report *report, const prony_operator_row *row, char *out, size_t size);

#endif
