/* prony_machine_measure: chooses loops, bytes and threads so that each level of the memory hierarchy is measured within
 * a few seconds. */
#include "profiler/measure/machine_peaks.h"
#include "base/os/clock.h"
#include "base/os/disturbance.h"
#include "base/cpu/isa.h"
#include "base/cpu/machine.h"
#include "base/option_struct.h"
#include "base/cpu/peak.h"
#include "base/cpu/processor_id.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DEFAULT_SECONDS 2.0
/* Long compared with the time in which threads meet; short enough that some trials fall between two interruptions on a
 * used machine. */
#define SHORTEST_TRIAL_NS 500000
#define LONGEST_TRIAL_NS 2000000
enum { TRIALS = 20, DRAM_TRIALS = 4, MOST_LEVELS = 4, MOST_THREADS = 1024, ATTEMPTS = 3 };
/* Cores have their own arithmetic units, L1 and L2: T threads reach T times the rate of one, less the drop of the clock
 * rate. Shared levels give all threads together no less than one. A result below this share, or with threads that
 * overlapped less than half of the time, is doubtful. */
#define LIKELY_SHARE 0.6
#define LIKELY_TOGETHER 0.5
/* DRAM is measured over several times the caches' size. */
enum { DRAM_OVER_CACHE = 4 };
/* Bounds of the buffers for DRAM; chosen without measurement. */
#define LEAST_DRAM_BYTES (UINT64_C(64) << 20)
#define MOST_DRAM_BYTES (UINT64_C(1) << 30)

static const prn_peak_kind arithmetic[] = {PRN_PEAK_F32, PRN_PEAK_F64, PRN_PEAK_BF16};
static const char *const precisions[] = {"fp32", "fp64", "bf16"};
static const prn_peak_kind accesses[] = {PRN_PEAK_READ, PRN_PEAK_WRITE, PRN_PEAK_COPY};
static const char *const access_names[] = {"read", "write", "copy"};
enum { PRECISIONS = 3, ACCESSES = 3 };

/* The number of precisions that this processor has: the first ones of the list. */
static int precision_count(void)
{
    return prn_peak_has_bf16() ? PRECISIONS : PRECISIONS - 1;
}

typedef struct cache {
    uint64_t bytes;
    int shared_by;
} cache;

/* Caches for data, by level from 1; a level that the system does not name has 0 bytes. */
static void data_caches(const prn_machine *m, cache caches[MOST_LEVELS])
{
    memset(caches, 0, MOST_LEVELS * sizeof *caches);
    for (int i = 0; i < m->cache_count; i++) {
        const prn_cache_level *c = &m->caches[i];
        if (strcmp(c->type, "instruction") != 0 && c->level >= 1 && c->level <= MOST_LEVELS)
            caches[c->level - 1] = (cache){c->bytes, c->shared_by};
    }
}

/* Half of a thread's share of the level, and more than the level before it holds; 0: no such size. */
static uint64_t level_bytes(const cache caches[MOST_LEVELS], int level, int threads)
{
    const cache *c = &caches[level];
    int sharing = c->shared_by > 0 && c->shared_by < threads ? c->shared_by : threads;
    if (level < 2) sharing = 1;
    uint64_t bytes = c->bytes / 2 / (uint64_t)sharing, below = level > 0 ? caches[level - 1].bytes : 0;
    if (bytes < below + below / 2) bytes = below + below / 2;
    return bytes <= c->bytes / (uint64_t)sharing ? bytes : 0;
}

static uint64_t dram_bytes(const cache caches[MOST_LEVELS], uint64_t memory)
{
    uint64_t bytes = LEAST_DRAM_BYTES;
    for (int l = 0; l < MOST_LEVELS; l++)
        if (caches[l].bytes * DRAM_OVER_CACHE > bytes) bytes = caches[l].bytes * DRAM_OVER_CACHE;
    if (bytes > MOST_DRAM_BYTES) bytes = MOST_DRAM_BYTES;
    return memory && bytes > memory / 4 ? memory / 4 : bytes;
}

/* ---- the rows ---- */

typedef struct measuring {
    prony_machine *machine;
    cache caches[MOST_LEVELS];
    uint64_t memory;
    int threads;
    int64_t trial_ns;
    prn_peak_fn peak;
} measuring;

static bool is_doubtful(const measuring *m, const prn_peak *peak, double one_thread, bool own_to_cores)
{
    const int cores = m->machine->info.usable_cores, at_once = m->threads < cores ? m->threads : cores;
    if (m->threads < 2 || at_once < 2) return false;
    if (m->threads <= cores && peak->together < LIKELY_TOGETHER) return true;
    return peak->per_second < LIKELY_SHARE * one_thread * (own_to_cores ? at_once : 1);
}

/* Measures until no result is doubtful, at most ATTEMPTS times, and keeps the best of each kind. one_thread[k]: the
 * rate of one thread. */
static prony_status measure_peaks(const measuring *m, prn_peak *best, bool *doubtful, const prn_peak_kind *kinds,
                                  size_t count, uint64_t bytes, int trials, const double *one_thread, bool own_to_cores,
                                  prony_error *error)
{
    prn_peak peaks[ACCESSES];
    bool again = true;
    for (int attempt = 0; attempt < ATTEMPTS && again; attempt++) {
        PRN_TRY(m->peak(peaks, kinds, count, m->threads, bytes, trials, m->trial_ns, NULL, error));
        again = false;
        for (size_t k = 0; k < count; k++) {
            const int before = attempt ? best[k].trials : 0;
            if (attempt == 0 || peaks[k].per_second > best[k].per_second) best[k] = peaks[k];
            best[k].trials = before + peaks[k].trials;
            doubtful[k] = is_doubtful(m, &best[k], one_thread[k], own_to_cores);
            again = again || doubtful[k];
        }
    }
    return PRONY_OK;
}

static double compute_of_one(const prony_machine *machine, const char *precision)
{
    for (size_t i = 0; i < machine->compute_count; i++) {
        const prony_peak_compute *c = &machine->compute[i];
        if (c->threads == 1 && strcmp(c->precision, precision) == 0) return c->flops_per_second;
    }
    return 0;
}

static double bandwidth_of_one(const prony_machine *machine, const char *level, const char *access)
{
    for (size_t i = 0; i < machine->bandwidth_count; i++) {
        const prony_peak_bandwidth *b = &machine->bandwidth[i];
        if (b->threads == 1 && strcmp(b->level, level) == 0 && strcmp(b->access, access) == 0)
            return b->bytes_per_second;
    }
    return 0;
}

static prony_status machine_peaks_add_compute(const measuring *m, prony_error *error)
{
    prony_machine *machine = m->machine;
    prn_peak peaks[PRECISIONS];
    double one[PRECISIONS];
    bool doubtful[PRECISIONS];
    for (int k = 0; k < precision_count(); k++) one[k] = compute_of_one(machine, precisions[k]);
    PRN_TRY(measure_peaks(m, peaks, doubtful, arithmetic, (size_t)precision_count(), 0, TRIALS, one, true, error));
    for (int k = 0; k < precision_count(); k++)
        machine->compute[machine->compute_count++] = (prony_peak_compute){
            precisions[k], m->threads, peaks[k].per_second, peaks[k].trials, peaks[k].trial_ns, doubtful[k]};
    return PRONY_OK;
}

static prony_status add_bandwidth(const measuring *m, const char *level, uint64_t bytes, int trials, bool own_to_cores,
                                  prony_error *error)
{
    prony_machine *machine = m->machine;
    prn_peak peaks[ACCESSES];
    double one[ACCESSES];
    bool doubtful[ACCESSES];
    for (int k = 0; k < ACCESSES; k++) one[k] = bandwidth_of_one(machine, level, access_names[k]);
    PRN_TRY(measure_peaks(m, peaks, doubtful, accesses, ACCESSES, bytes, trials, one, own_to_cores, error));
    for (int k = 0; k < ACCESSES; k++)
        machine->bandwidth[machine->bandwidth_count++] = (prony_peak_bandwidth){
            level,           access_names[k],   m->threads, peaks[k].per_second, peaks[k].thread_bytes,
            peaks[k].trials, peaks[k].trial_ns, doubtful[k]};
    return PRONY_OK;
}

static prony_status measure_threads(const measuring *m, prony_error *error)
{
    static const char *const levels[MOST_LEVELS] = {"L1", "L2", "L3", "L4"};
    PRN_TRY(machine_peaks_add_compute(m, error));
    for (int l = 0; l < MOST_LEVELS; l++) {
        uint64_t bytes = level_bytes(m->caches, l, m->threads);
        if (bytes) PRN_TRY(add_bandwidth(m, levels[l], bytes, TRIALS, l < 2, error));
    }
    uint64_t bytes = dram_bytes(m->caches, m->memory) / (uint64_t)m->threads;
    return add_bandwidth(m, "DRAM", bytes, DRAM_TRIALS, false, error);
}

/* Every count up to 8, then about five per doubling, and the last. */
static int next_threads(int threads, int last)
{
    int next = threads < 8 ? threads + 1 : threads + threads / 6;
    return next < last || threads == last ? next : last;
}

/* Divides the time among all trials, measures every thread count, and records the load of the machine meanwhile. */
static prony_status machine_peaks_measure(prony_machine *machine, const prony_machine_options *options,
                                          prn_peak_fn peak, prony_error *error)
{
    prn_machine facts;
    prn_machine_read(&facts, NULL);
    int last = options->threads ? options->threads : machine->info.usable_cores, counts = 0;
    for (int t = 1; t <= last; t = next_threads(t, last)) counts++;
    size_t rows = (size_t)counts;
    machine->compute = prn_bump_alloc(&machine->pool, rows * PRECISIONS, sizeof *machine->compute);
    machine->bandwidth =
        prn_bump_alloc(&machine->pool, rows * ACCESSES * (MOST_LEVELS + 1), sizeof *machine->bandwidth);
    if (!machine->compute || !machine->bandwidth) return prn_no_memory(error);
    double seconds = options->seconds > 0 ? options->seconds : DEFAULT_SECONDS;
    double trial = seconds * 1e9 / (double)(rows * (PRECISIONS + ACCESSES * MOST_LEVELS) * (TRIALS + 1));
    measuring m = {.machine = machine, .memory = facts.total_memory_bytes, .peak = peak};
    m.trial_ns = trial < SHORTEST_TRIAL_NS  ? SHORTEST_TRIAL_NS
                 : trial > LONGEST_TRIAL_NS ? LONGEST_TRIAL_NS
                                            : (int64_t)trial;
    data_caches(&facts, m.caches);
    prn_load_state before, after;
    prn_disturbance load;
    prn_load_state_read(&before, NULL);
    int64_t begin = prn_now_ns();
    machine->info.measured_at = (int64_t)time(NULL);
    machine->info.load_avg_1min = facts.load_avg_1min;
    machine->info.cores = last;
    for (m.threads = 1; m.threads <= last; m.threads = next_threads(m.threads, last))
        PRN_TRY(measure_threads(&m, error));
    PRN_TRY(prn_machine_add_work(machine, 1, m.trial_ns, peak, error));
    if (last > 1) PRN_TRY(prn_machine_add_work(machine, last, m.trial_ns, peak, error));
    machine->info.seconds = (double)(prn_now_ns() - begin) * 1e-9;
    prn_load_state_read(&after, NULL);
    prn_disturbance_between(&load, &before, &after);
    machine->info.busy = load.verdict == PRN_LOAD_BUSY;
    return PRONY_OK;
}

prony_status prn_machine_create(prony_machine **out, prony_error *error)
{
    prn_machine facts;
    prony_machine *machine = prn_calloc(1, sizeof *machine);
    if (!machine) return prn_no_memory(error);
    prn_machine_read(&facts, NULL);
    const char *model = facts.cpu_model[0] ? facts.cpu_model : "unknown processor";
    machine->info.cpu_model = prn_bump_strndup(&machine->pool, model, strlen(model));
    machine->info.isa = prn_isa_name();
    machine->info.prony_version = PRONY_VERSION;
    machine->info.load_avg_1min = -1;
    machine->info.usable_cores = prn_machine_auto_threads(1, NULL);
    char processor[PRN_PROCESSOR_ID_BYTES];
    prn_processor_id(processor, &facts);
    machine->info.processor = prn_bump_strndup(&machine->pool, processor, strlen(processor));
    if (!machine->info.cpu_model || !machine->info.processor) {
        prony_machine_release(machine);
        return prn_no_memory(error);
    }
    *out = machine;
    return PRONY_OK;
}

prony_status prn_machine_measure_by(prony_machine **out, const prony_machine_options *options, prn_peak_fn peak,
                                    prony_error *error)
{
    prony_machine_options own = PRONY_MACHINE_OPTIONS_INIT;
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_machine_measure: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "machine options", error));
    options = &own;
    if (options->threads < 0 || options->threads > MOST_THREADS || !(options->seconds >= 0) || isinf(options->seconds))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "machine options: threads must be 0 (auto) to %d, and seconds not negative", MOST_THREADS);
    prony_machine *machine;
    PRN_TRY(prn_machine_create(&machine, error));
    prony_status status = machine_peaks_measure(machine, options, peak, error);
    if (status == PRONY_OK)
        *out = machine;
    else
        prony_machine_release(machine);
    return status;
}

prony_status prony_machine_measure(prony_machine **out, const prony_machine_options *options, prony_error *error)
{
    return prn_machine_measure_by(out, options, prn_peak_measure, error);
}

void prony_machine_release(prony_machine *machine)
{
    if (!machine) return;
    prn_bump_release(&machine->pool);
    prn_free(machine);
}

const prony_machine_info *prony_machine_get_info(const prony_machine *machine)
{
    return machine ? &machine->info : NULL;
}

const prony_peak_compute *prony_machine_compute(const prony_machine *machine, size_t *count)
{
    if (count) *count = machine ? machine->compute_count : 0;
    return machine ? machine->compute : NULL;
}

const prony_peak_bandwidth *prony_machine_bandwidth(const prony_machine *machine, size_t *count)
{
    if (count) *count = machine ? machine->bandwidth_count : 0;
    return machine ? machine->bandwidth : NULL;
}
