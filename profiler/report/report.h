/* The report in memory: the only input of writers and analyses. Plain data, filled by the engine and api; JSON key
 * names are those of the interface (docs/reference/report.md). Its pool owns everything. Immutable once built, so
 * readers need no lock. */
#ifndef PRN_PROFILER_REPORT_REPORT_H
#define PRN_PROFILER_REPORT_REPORT_H

#include "base/os/clock.h"
#include "base/memory/alloc.h"
#include "base/os/disturbance.h"
#include "base/cpu/machine.h"
#include "base/status.h"
#include "profiler/statistics/statistics.h"
#include "prony_analysis.h"
#include "prony_device.h"
#include "prony_shard.h"

typedef struct prn_report_model {
    const char *name, *sha256, *producer; /* sha256 NULL: not computed */
    uint64_t file_bytes;
    int64_t ir_version, opset;                                   /* of ai.onnx */
    uint64_t nodes, parameters, parameter_bytes, parameter_bits; /* bytes: as stored; bits: of the elements */
    const prony_value_info *inputs, *outputs;                    /* shapes as bound; dim_names keep the symbols */
    size_t input_count, output_count;
} prn_report_model;

typedef struct prn_report_config {
    int intra_op_threads, inter_op_threads;
    const char *inter_op_reason;  /* the reason for the number of workers, if the plan chose it; NULL or "": as
                                     requested */
    const char *affinity;         /* "" : mask left alone */
    const char *affinity_used;    /* processors in the order of the threads; "": no list, or not known */
    const char *affinity_failure; /* unusable processors of the list; "": none */
    const char *device;           /* "opencl:0 NAME"; "": the processor alone */
    int64_t batch;                /* first dimension of the first input; -1: rank 0 */
    const prony_dim *dims;
    size_t dim_count;
    const prony_assumed_dim *assumed;
    size_t assumed_count;
    const char *precision;
    int64_t warmup_runs, runs; /* -1: not measured */
    uint64_t seed;
    bool seed_known;
    const char *count_preset; /* NULL: none */
    bool rewrites, reuse;
    int background_threads; /* of another process that kept processors busy meanwhile (--with-load) */
} prn_report_config;

typedef struct prn_report_system {
    prn_machine machine;
    const char *const *isa; /* NULL-terminated */
    const char *isa_used;   /* after the cap */
    const char *libraries;  /* "onednn 2.6.3, openblas 0.3.21, …"; "name version" pairs, comma-separated */
    const char *git_commit, *compiler, *compiler_flags;
    const char *prony_version; /* that made the report; NULL: the one that is running */
} prn_report_system;

/* The caller's phases around every run; medians of the measured runs, -1: none. */
typedef struct prn_report_around {
    int64_t preprocess_ns, postprocess_ns;
    prony_time_stats end_to_end; /* with the run between them */
} prn_report_around;

/* -1: not measured. */
typedef struct prn_report_phases {
    int64_t load_ns, bind_ns, rewrite_ns, plan_ns, first_run_ns;
} prn_report_phases;

/* The mean time of one of several workers in a run. Outside of its operators it waits or steals work. */
typedef struct prn_worker_row {
    int64_t busy_ns, wait_ns; /* in operators of its own; outside of them */
} prn_worker_row;

typedef struct prn_report_cpu {
    double utilisation; /* CPU time of the measured runs over their wall time and threads, 0..1 */
    int64_t user_ns, system_ns, voluntary_switches, involuntary_switches;
    uint64_t read_bytes, written_bytes, read_calls, write_calls;
    const prn_worker_row *workers; /* by number; none with one worker */
    size_t worker_count;
} prn_report_cpu;

typedef prony_module_row prn_module_row;

/* Layers that together are one operator written out in primitives (GELU, LayerNormalization, a linear layer as MatMul
 * and Add), as counting presets see them. The last layer carries the composite's count. */
typedef struct prn_composite_row {
    const char *op;
    const uint32_t *layers; /* ascending */
    size_t layer_count;
    prony_cost cost; /* of the one operator: its facts, and macs */
} prn_composite_row;

/* Work per second of latency; negative: does not apply to this model. */
typedef struct prn_report_rates {
    double samples, images, tokens, requests;
} prn_report_rates;

/* The machine's peaks, for the roofline. Arrays in the report's pool; counts 0: not measured. */
typedef struct prn_roof_compute {
    const char *precision; /* "fp32" */
    int threads;
    double flops_per_second;
} prn_roof_compute;

typedef struct prn_roof_memory {
    const char *level; /* "L1", "L2", "L3", "DRAM" */
    int threads;
    double bytes_per_second;
} prn_roof_memory;

/* The rate of one kind of work (profiler/report/work.h). */
typedef struct prn_roof_work {
    const char *work;
    int threads;
    double per_second;
} prn_roof_work;

typedef struct prn_report_roof {
    const prn_roof_compute *compute;
    size_t compute_count;
    const prn_roof_memory *memory;
    size_t memory_count;
    const char *method;        /* how they were measured; may be NULL */
    const prn_roof_work *work; /* none: kept by a version that did not measure them */
    size_t work_count;
    bool busy; /* other processes used the machine while the peaks were measured */
} prn_report_roof;

/* The cost of profiling: runs with and without it, in pairs. pairs 0: not measured. */
typedef struct prn_report_cost {
    uint64_t pairs;
    int64_t on_ns, off_ns;       /* medians */
    double share, share_ci95[2]; /* median of the pairs' differences, over off_ns */
} prn_report_cost;

/* Subgraphs inside of one another, at most. */
#define PRN_NESTED_DEPTH 64

/* The time that the cost model of an operator's kernels predicts (prn_kernel.predict in ops/op.h). */
typedef struct prn_kernel_choice {
    double cycles;      /* of the chosen kernel; below 0: it predicts none */
    const char *next;   /* the kernel that predicts the fewest cycles besides; NULL: no other predicts any */
    double next_cycles; /* of `next` */
} prn_kernel_choice;

struct prony_report {
    prn_bump pool;
    prony_model *source;         /* reference held by api, to compute the hash on demand; NULL: read back */
    char created[PRN_UTC_CHARS]; /* when it was made, in UTC; empty: unknown (read back from an older document) */
    prn_report_model model;
    prn_report_config config;
    prn_report_system system;
    prony_totals totals;
    prn_report_phases phases;

    bool measured; /* latency, cpu; with time_share >= 0 also coverage, overhead and the rows' times */
    prony_time_stats latency;
    int64_t *samples_ns;          /* raw, in order of time; latency.count of them */
    const uint64_t *process_runs; /* samples of each process, one process after the other; NULL: all are of one */
    size_t process_count;
    uint64_t turns;     /* reports with the same number were interleaved in one process; 0: alone, or read back */
    bool measured_here; /* by this process; not read back */
    bool has_around;
    prn_report_around around;
    int64_t traced_run_ns;   /* latency of the run with the rows' traces; 0: the last sample */
    bool warmup_detected;    /* steady state was found by the detector, not assumed */
    const char *stop_reason; /* "runs", "median known to 1 %", "time is up" */
    prn_report_cpu cpu;
    bool has_disturbance;
    prn_disturbance disturbance;
    const prony_core_row *cores;
    size_t core_count;
    const int64_t *core_times_ns;
    size_t core_points;
    double time_share;                            /* of wall time inside operators; negative: no stamps were taken */
    double overhead_ns_per_event, overhead_share; /* computed: cost of an event, times the number of events */
    prn_report_cost cost;                         /* measured */
    uint64_t dropped_events;
    const char *counters_missing; /* NULL: not requested; "": operators have hardware counters; else the reason for
                                     missing ones */
    uint64_t counter_runs;
    int64_t counter_read_ns; /* duration of two readings around an operator */

    bool has_memory;
    prony_memory_report memory;

    prony_layer_row *layers;
    size_t layer_count;
    const prn_kernel_choice *choices; /* [operator_count]; NULL: not known (a report that was read) */
    prony_operator_row *operators;
    size_t operator_count;
    prony_nested_row *nested_layers; /* in subgraphs, after the row that contains them; not included in any sum */
    size_t nested_layer_count;
    prony_nested_row *nested_operators;
    size_t nested_operator_count;
    const char *stopped_at;  /* nodes and subgraphs in which the run was cancelled; NULL: not cancelled */
    prn_module_row *modules; /* parents before children */
    size_t module_count;
    prony_parameter_row *parameters;
    size_t parameter_count;
    prn_composite_row *composites;
    size_t composite_count;
    const int64_t *operator_samples_ns; /* runs x operators; NULL unless the profile keeps them */

    const char *const *uncounted; /* operator types that the counting preset leaves out */
    size_t uncounted_count;
    double uncounted_time_share; /* of the operators' time; meaningful with stamps and a preset */

    const char *const *unsupported;
    size_t unsupported_count;
    const char *const *assumed_imports; /* "domain version" each, which the model uses without importing it */
    size_t assumed_import_count;
    bool conserved; /* totals = sum of layers = sum of operators, exactly */

    bool has_tuning; /* kernels were to be chosen by measurement */
    prony_tuning tuning;

    bool has_roof; /* `prony machine` has been run here */
    prn_report_roof roof;

    prony_evaluation_row *evaluations; /* the first one is the metric `evaluation`, the others are of the same
                                          samples */
    size_t evaluation_count;
    const char *output_sha256; /* NULL: nothing ran */

    prony_rank_row *ranks; /* of a sharded run, by stage */
    size_t rank_count;
    prony_link_row *links;
    size_t link_count;
    prony_transfer_row *transfers;
    size_t transfer_count;
    prony_pipeline_event *pipeline_events; /* of the last run */
    size_t pipeline_event_count;
    bool has_pipeline;
    prony_pipeline pipeline;

    bool has_device;
    prony_device_report device;

    bool has_generation;
    prony_generation generation;

    bool has_accuracy;
    prony_accuracy accuracy;
    prony_accuracy_row *layer_errors, *operator_errors; /* as many as layers and operators; NULL: nothing but outputs
                                                           was compared */
    const char *accuracy_verdict;
};

/* Threads of all workers that may work at once. */
static inline int prn_report_threads(const prony_report *report)
{
    const prn_report_config *c = &report->config;
    return c->intra_op_threads * (c->inter_op_threads > 1 ? c->inter_op_threads : 1);
}

/* true: operators were stamped. Rows have times; coverage and overhead are known. */
static inline bool prn_report_stamped(const prony_report *report)
{
    return report->measured && report->time_share >= 0;
}

/* Fills layers' and operators' times and shares, modules and coverage from traces. `durations` holds runs x operators
 * times in ns (run-major), `latency_ns` one latency per run. A fused operator's time is shared among its layers by the
 * cost of their work on this machine (profiler/report/work.h) and marked. Needs rows, costs and the roof, if known. */
PRN_MUST_USE prony_status prn_report_fill_times(prony_report *report, const int64_t *durations,
                                                const int64_t *latency_ns, size_t runs, prony_error *error);
/* Fills the times of rows in subgraphs: `durations` holds runs x nested operators. Needs the operators' times. */
PRN_MUST_USE prony_status prn_report_fill_nested_times(prony_report *report, const int64_t *durations, size_t runs,
                                                       prony_error *error);
/* The samples in the form of the statistics functions. */
prn_times prn_report_times(const prony_report *report);
/* Fills only the latency, of runs without stamps; time_share stays negative. */
PRN_MUST_USE prony_status prn_report_fill_latency(prony_report *report, const int64_t *latency_ns, size_t runs,
                                                  prony_error *error);
/* Histogram rows: equal bins up to the 99th percentile, or up to eight interquartile ranges above the upper quartile if
 * that is less. `bins` 0: the width of Freedman and Diaconis, 5 to 60 bins. If longer runs exist, *beyond is true and
 * the last row holds them. The caller releases *rows by prony_rows_release. Needs latencies. */
PRN_MUST_USE prony_status prn_report_latency_bins(prony_histogram_bin **rows, size_t *count, bool *beyond,
                                                  const prony_report *report, size_t bins, prony_error *error);
/* Builds modules[] from the layers' names; call after the layers (and times, if any) are filled. */
PRN_MUST_USE prony_status prn_report_fill_modules(prony_report *report, prony_error *error);
/* Sums layers into totals and checks the conservation invariant; sets report->conserved. PRONY_INTERNAL on overflow. */
PRN_MUST_USE prony_status prn_report_fill_totals(prony_report *report, prony_error *error);

/* Appends a value to `evaluations`; `metric` is copied. */
PRN_MUST_USE prony_status prn_report_add_evaluation(prony_report *report, const char *metric, double value,
                                                    int64_t samples, prony_error *error);
/* NULL: no evaluation by that metric. */
const prony_evaluation_row *prn_report_find_evaluation(const prony_report *report, const char *metric);

/* Makes the verdict sentence from an accuracy profile's rows, measured or read back. */
PRN_MUST_USE prony_status prn_report_judge_accuracy(prony_report *report, prony_error *error);

/* The model's name without the folders before it. */
const char *prn_report_title(const prony_report *report);
/* Peak FLOP/s of a precision at the report's thread count (the nearest count at or below it); 0: not known. */
double prn_report_roof_flops(const prony_report *report, const char *precision);
/* The highest peak that applies to one of the report's operators. */
double prn_report_highest_peak(const prony_report *report);
/* Bandwidth of a level, likewise. */
double prn_report_roof_bandwidth(const prony_report *report, const char *level);

/* FLOPs that an operator's kernel executes, if it states them (prn_kernel.facts, product_flops); else its layers'
 * FLOPs. */
double prn_operator_flops(const prony_operator_row *row);
/* The same for all operators; without operators the model's FLOPs. */
double prn_report_executed_flops(const prony_report *report);
/* External traffic of an operator. Costs belong to layers; a copy between layouts has no layer and counts its output
 * twice, in and out. */
double prn_operator_bytes(const prony_operator_row *row);
/* A fact that a kernel states about its work (prn_kernel.facts); 0: no such fact. */
int64_t prn_operator_fact(const prony_operator_row *row, const char *key);
/* true: its matmul multiplies 8-bit values, whatever its layers count. */
bool prn_operator_multiplies_bytes(const prony_operator_row *row);
/* true: a device ran it, so roofs and threads of the processor say nothing of it. */
bool prn_operator_on_device(const prony_operator_row *row);
/* Fills the row's rates, and its share of the device's roofs where its peaks are known. `row`: of the report. */
void prn_device_operator_roof(const prony_device_report *device, const prony_operator_row *row,
                              prony_device_operator_row *out);
/* The operator's time by the longer of compute and memory roof, ns; 0: not known. *compute_bound (may be NULL): the
 * compute roof is longer. */
double prn_operator_roof_ns(const prony_report *report, const prony_operator_row *row, bool *compute_bound);

/* A layer's share of its operator's time in every run. Returns the number of runs, or 0. */
size_t prn_report_layer_samples(const prony_report *report, size_t layer, int64_t *out, size_t capacity);

/* From the mean latency, the batch and the inputs: images have 4 dimensions, 1 to 4 channels first or last; tokens are
 * integers [batch, sequence]. Needs report->measured. */
prn_report_rates prn_report_rates_of(const prony_report *report);

/* The writers behind prony_report_write. */
typedef prony_status prn_report_writer(const prony_report *report, const prony_write_options *options,
                                       prony_write_fn write, void *user, prony_error *error);
PRN_MUST_USE prn_report_writer prn_report_write_text, prn_report_write_json, prn_report_write_csv,
    prn_report_write_latex, prn_report_write_trace, prn_report_write_folded, prn_report_write_dot, prn_report_write_svg,
    prn_report_write_html, prn_report_write_pictures;

#endif
