/* For each number of processors: the configuration whose simulation keeps the bound at the largest rate. */
#include "bench/load/capacity.h"
#include "bench/process/interrupt.h"

#include <math.h>
#include <string.h>

/* HALVINGS place a rate to 1/512 of the first interval. COARSE and FINE are simulated requests, GIVE_UP waiting
 * ones. A rate that FINE does not confirm falls by CONFIRM_STEP. Chosen without measurement. */
enum { HALVINGS = 9, COARSE = 12000, FINE = 60000, GIVE_UP = 20000, CONFIRMATIONS = 40 };
#define CONFIRM_STEP 0.95

/* The cell for this many sessions: the nearest measured number that is not below, or the largest. */
static const capacity_cell *find_cell(const capacity *c, int threads, int sessions, int64_t batch)
{
    const capacity_cell *found = NULL;
    for (size_t i = 0; i < c->cell_count; i++) {
        const capacity_cell *cell = &c->cells[i];
        if (cell->threads != threads || cell->batch != batch) continue;
        bool enough = cell->sessions >= sessions, had = found && found->sessions >= sessions;
        if (!found || (enough ? !had || cell->sessions < found->sessions : !had && cell->sessions > found->sessions))
            found = cell;
    }
    return found;
}

static prony_status simulate(const capacity *c, const capacity_row *row, double rate, uint64_t requests,
                             prony_batch_forecast *out, prony_error *error)
{
    prony_service_times times[CAPACITY_SIZES];
    prony_batch_load load = PRONY_BATCH_LOAD_INIT;
    int64_t sizes[CAPACITY_SIZES];
    int count = prony_batch_run_sizes(row->max_batch, sizes);
    for (int i = 0; i < count; i++) {
        const capacity_cell *cell = find_cell(c, row->threads, row->sessions, sizes[i]);
        times[i] = (prony_service_times){sizes[i], cell->samples_ns, cell->count};
    }
    load.sessions = row->sessions;
    load.max_batch = row->max_batch;
    load.max_wait_ns = row->max_batch > 1 && c->o->load.batch_window_ns > 0 ? c->o->load.batch_window_ns : 0;
    load.times = times;
    load.times_count = (size_t)count;
    load.dispatch_ns = c->dispatch_ns;
    load.rate = rate;
    load.requests = requests;
    load.seed = c->o->model.seed + 1;
    load.percentile = c->percentile;
    load.give_up_queue = GIVE_UP;
    return prony_batcher_simulate(out, &load, error);
}

static bool keeps_bound(const capacity *c, const prony_batch_forecast *f)
{
    return !f->gave_up && !f->refused && f->quantile_ns <= c->o->load.latency_bound_ns;
}

/* Halves the interval between a rate that keeps the bound and one that cannot: more than all sessions serve when they
 * run full batches without a pause. */
static prony_status find_largest(const capacity *c, capacity_row *row, prony_error *error)
{
    const capacity_cell *full = find_cell(c, row->threads, row->sessions, row->max_batch);
    prony_batch_forecast f;
    double low = 0, high = (double)row->max_batch * row->sessions / ((double)full->median_ns * 1e-9) * 1.1;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        prony_status status = simulate(c, row, middle, COARSE, &f, error);
        if (status != PRONY_OK) return status;
        if (keeps_bound(c, &f))
            low = middle;
        else
            high = middle;
    }
    row->largest_rate = low;
    return PRONY_OK;
}

/* A percentile of fewer runs than this is their maximum, so outliers are missing in it. */
size_t capacity_wanted_samples(const capacity *c)
{
    return (size_t)ceil(1 / (1 - c->percentile) - 1e-6);
}

static size_t fewest_samples(const capacity *c, const capacity_row *row)
{
    size_t fewest = SIZE_MAX;
    int64_t sizes[CAPACITY_SIZES];
    int count = prony_batch_run_sizes(row->max_batch, sizes);
    for (int i = 0; i < count; i++) {
        const capacity_cell *cell = find_cell(c, row->threads, row->sessions, sizes[i]);
        if (cell && cell->count < fewest) fewest = cell->count;
    }
    return fewest;
}

/* The sizes that a batcher of this max_batch runs must have been measured. */
static bool was_measured(const capacity *c, int threads, int64_t max_batch)
{
    int64_t sizes[CAPACITY_SIZES];
    int count = prony_batch_run_sizes(max_batch, sizes);
    for (int i = 0; i < count; i++)
        if (!find_cell(c, threads, 1, sizes[i])) return false;
    return true;
}

/* Longer simulations than those of the search: the rate falls until one keeps the bound. */
static prony_status confirm_largest(const capacity *c, capacity_row *row, prony_error *error)
{
    prony_batch_forecast f;
    for (int i = 0; i < CONFIRMATIONS && row->largest_rate > 0; i++) {
        prony_status status = simulate(c, row, row->largest_rate, FINE, &f, error);
        if (status != PRONY_OK || keeps_bound(c, &f)) return status;
        row->largest_rate *= CONFIRM_STEP;
    }
    row->largest_rate = 0;
    return PRONY_OK;
}

/* The wanted rate is one more simulated rate: largest_rate is not below it where it keeps the bound, and below it where
 * it does not. */
static prony_status try_wanted_rate(const capacity *c, capacity_row *row, prony_error *error)
{
    prony_status status = simulate(c, row, c->o->load.rate, FINE, &row->at_rate, error);
    if (status != PRONY_OK) return status;
    row->keeps = keeps_bound(c, &row->at_rate);
    if (row->keeps && row->largest_rate < c->o->load.rate) row->largest_rate = c->o->load.rate;
    if (row->keeps || row->largest_rate < c->o->load.rate) return PRONY_OK;
    row->largest_rate = c->o->load.rate * CONFIRM_STEP;
    return confirm_largest(c, row, error);
}

/* The best configuration for `cores` processors, among those that use all of them but for a rest. */
static prony_status fill_row(capacity *c, int cores, capacity_row *best, prony_error *error)
{
    *best = (capacity_row){.cores = cores};
    for (int threads = 1; threads <= cores && threads <= c->machine_cores;
         threads = threads < c->machine_cores && threads * 2 > c->machine_cores ? c->machine_cores : threads * 2) {
        for (int b = 0; b < c->size_count; b++) {
            capacity_row row = {.cores = cores,
                                .sessions = cores / threads,
                                .threads = threads,
                                .max_batch = c->sizes[b],
                                .beyond = cores > c->machine_cores};
            if (!was_measured(c, threads, row.max_batch)) continue;
            if (interrupted()) return error->status = PRONY_CANCELLED;
            prony_status status = find_largest(c, &row, error);
            if (status != PRONY_OK) return status;
            if (row.largest_rate > best->largest_rate * 1.02 || !best->sessions) *best = row;
        }
    }
    prony_status status = confirm_largest(c, best, error);
    if (status == PRONY_OK) status = try_wanted_rate(c, best, error);
    const capacity_row *before = c->row_count ? &c->rows[c->row_count - 1] : NULL;
    if (status == PRONY_OK && before && before->largest_rate > best->largest_rate) { /* one more processor idles */
        *best = *before;
        best->cores = cores;
        best->beyond = cores > c->machine_cores;
        return PRONY_OK;
    }
    best->samples = fewest_samples(c, best);
    return status;
}

/* 1 to 8 one by one, then four to a doubling, and the last. */
static int next_cores(int cores, int most)
{
    int step = 1;
    while (step * 8 <= cores) step *= 2;
    return cores + step > most && cores < most ? most : cores + step;
}

int capacity_search(capacity *c)
{
    c->answer = c->doubling = -1;
    for (int cores = 1; cores <= c->cores && c->row_count < CAPACITY_ROWS; cores = next_cores(cores, c->cores)) {
        prony_error error = {0};
        char text[64];
        snprintf(text, sizeof text, "simulating %d processor%s", cores, cores == 1 ? "" : "s");
        if (want_progress(c->o)) show_progress_text(text);
        capacity_row *row = &c->rows[c->row_count];
        if (fill_row(c, cores, row, &error) != PRONY_OK) return report_error(c->o, &error);
        int index = (int)c->row_count++;
        if (c->answer < 0 && row->keeps) c->answer = index;
        if (c->doubling < 0 && row->largest_rate >= 2 * c->o->load.rate) c->doubling = index;
    }
    clear_progress();
    return EXIT_DONE;
}
