/* Histories of runs that differ in what a test varies. The caller releases a history, and prn_free()s a text. */
#ifndef PRN_TESTS_SUPPORT_HISTORY_RUNS_H
#define PRN_TESTS_SUPPORT_HISTORY_RUNS_H

#include "prony_history.h"

#include <stddef.h>
#include <stdint.h>

prony_history *history_new(void);

/* The description that tests vary; runs are two hours apart. */
prony_history_run history_plain_run(size_t number);

/* Adds the run with a latency in ms, throughput, and layers of which the second has `second_ms`. */
void history_add_times(prony_history *h, const prony_history_run *run, double ms, double second_ms);

/* `count` runs around 10 ms with 1 % noise; run i is slower by `slower(i)`. NULL: none is. */
prony_history *history_series(size_t count, double (*slower)(size_t run), uint64_t seed);

/* 6 % from run 40 on. */
double history_late_step(size_t run);

prony_history_verdict history_verdict_of(const prony_history *h, const prony_history_options *options);

/* The view in the format; the test fails where it cannot be written. */
char *history_written(const prony_history *h, prony_history_view view, const prony_history_options *options,
                      prony_format format);

prony_history_options history_latency_alone(void);

#endif
