/* A machine's peaks in memory. Its pool owns everything; immutable once made. */
#ifndef PRN_PROFILER_MEASURE_MACHINE_PEAKS_H
#define PRN_PROFILER_MEASURE_MACHINE_PEAKS_H

#include "base/memory/alloc.h"
#include "base/cpu/peak.h"
#include "base/status.h"
#include "profiler/json/keys.h"
#include "profiler/report/report.h"

struct prony_machine {
    prn_bump pool;
    prony_machine_info info;
    prony_peak_compute *compute;
    size_t compute_count;
    prony_peak_bandwidth *bandwidth;
    size_t bandwidth_count;
    prony_work_rate *work;
    size_t work_count; /* 0: kept by a version that did not measure them */
};

/* Keys of the file, after "schema". */
#define PRN_MACHINE_SCHEMA "prony.machine/1"
extern const prn_key prn_machine_keys[];

/* A description of the method. */
#define PRN_MACHINE_METHOD                                                                                             \
    "Compute: 12 independent chains of vector multiply-add per thread; bf16: sums of products on tiles. "              \
    "Memory: vector loads, stores or both over each thread's own buffer; traffic counts bytes read and "               \
    "written, without the lines that a store fetches first. Threads are awake before a trial. Its rate is the "        \
    "work of all threads over the time in which any of them worked; the best trial counts. A rate that does "          \
    "not grow with the threads as expected is measured again, and marked if it still does not."

/* prony_machine_measure by `peak` in place of prn_peak_measure. */
typedef prony_status (*prn_peak_fn)(prn_peak *out, const prn_peak_kind *kinds, size_t count, int threads,
                                    uint64_t thread_bytes, int trials, int64_t trial_ns, const prn_peak_tools *tools,
                                    prony_error *error);
PRN_MUST_USE prony_status prn_machine_measure_by(prony_machine **out, const prony_machine_options *options,
                                                 prn_peak_fn peak, prony_error *error);

/* One more row for every kind of work, at that many threads; machine_work.c. */
PRN_MUST_USE prony_status prn_machine_add_work(prony_machine *machine, int threads, int64_t trial_ns, prn_peak_fn peak,
                                               prony_error *error);

/* An empty one, of this processor, instruction set and version. */
PRN_MUST_USE prony_status prn_machine_create(prony_machine **out, prony_error *error);

/* Makes the peaks kept for this machine the roof of a report; leaves it empty if no peaks are kept or the file is
 * damaged. A thread count between two measured ones lies on the line between them. */
PRN_MUST_USE prony_status prn_report_fill_roof(prony_report *report, prony_error *error);

/* Rates of one thread, for the schedule of several workers and the split of a plan between host and device; unchanged
 * if this machine was not measured, or the file is damaged. */
struct prn_step_rates;
struct prony_device_peaks;
struct prony_device_info;
PRN_MUST_USE prony_status prn_machine_find_rates(struct prn_step_rates *rates, prony_error *error);

/* The kept peaks of a device. *known false: none are kept, or the file is damaged, which `prony devices` mends. */
PRN_MUST_USE prony_status prn_device_find_peaks(struct prony_device_peaks *peaks, bool *known,
                                                const struct prony_device_info *device, prony_error *error);

#endif
