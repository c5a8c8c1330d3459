/* prony capacity: measured times of runs by threads, sessions and batch size, and simulations of a batcher with them.
 * capacity_measure.c measures, capacity_search.c simulates, capacity_write.c shows. */
#ifndef PRN_BENCH_LOAD_CAPACITY_H
#define PRN_BENCH_LOAD_CAPACITY_H

#include "bench/command.h"
#include "prony_serve.h"

enum { CAPACITY_CELLS = 256, CAPACITY_SAMPLES = 1000, CAPACITY_ROWS = 64, CAPACITY_SIZES = 4 };

/* Runs of `batch` requests by `sessions` sessions of `threads` threads, all busy. */
typedef struct capacity_cell {
    int threads, sessions;
    int64_t batch;
    int64_t samples_ns[CAPACITY_SAMPLES];
    size_t count;
    int64_t median_ns, p99_ns;
} capacity_cell;

/* The best configuration of a machine with this many processors: never worse than that of a smaller one. */
typedef struct capacity_row {
    int cores, sessions, threads; /* of the configuration: it may leave processors idle */
    int64_t max_batch;
    double largest_rate; /* that keeps the bound; 0: none does */
    bool keeps;          /* the wanted rate */
    prony_batch_forecast at_rate;
    size_t samples; /* measured runs of the configuration's size with the fewest */
    bool beyond;    /* this machine has fewer processors: times are those of the most sessions measured */
} capacity_row;

typedef struct capacity {
    const options *o;
    prony_model *model;
    prony_session *session; /* binds the inputs */
    const prony_value **inputs;
    size_t input_count;
    int machine_cores, cores; /* of this machine; considered */
    int64_t max_batch, sizes[CAPACITY_SIZES];
    int size_count;
    bool combines; /* the model's requests can be combined */
    double percentile;
    int64_t dispatch_ns;
    double other_cpus; /* processors that other processes used while it measured; -1: not known */
    capacity_cell *cells;
    size_t cell_count;
    capacity_row rows[CAPACITY_ROWS];
    size_t row_count;
    int answer, doubling; /* rows that keep the rate and its double; -1: none */
} capacity;

/* EXIT_DONE, or an exit status after a message. */
int capacity_measure(capacity *c);
int capacity_search(capacity *c);
int capacity_write(const capacity *c);
/* Runs that a measured percentile needs, so that it is not just their maximum. */
size_t capacity_wanted_samples(const capacity *c);

#endif
