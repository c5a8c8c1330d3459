/* Questions to a report: analyses, metrics; and one call per question. Conventions: prony.h. */
#ifndef PRONY_ANALYSIS_H
#define PRONY_ANALYSIS_H

#include "prony_report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- analysis of a report, live or read back ---- */

/* Sums by operator type, over the operators if they were measured, otherwise over the layers; largest share first. */
typedef struct prony_type_row {
    const char *op; /* borrowed from the report */
    uint64_t count, macs, flops, parameters;
    int64_t time_ns;
    double share; /* of the time; of the FLOPs if nothing was measured */
    double cumulative;
} prony_type_row;
/* *rows receives *count rows, a row per operator type. Released by prony_rows_release; the texts stay the
 * report's. */
PRONY_API PRONY_MUST_USE prony_status prony_report_types(prony_type_row **rows, size_t *count,
                                                         const prony_report *report, prony_error *error);

/* Each layer's or operator's share of a quantity: `level` is PRONY_LEVEL_LAYER or PRONY_LEVEL_OPERATOR, `key` one of
 * the sort keys that are numbers and sum up ("time", "macs", "madds", "flops", "special", "int_ops", "parameters",
 * "bytes", "memory", "count"), `filter` KEY=GLOB or NULL, `top` 0 for all. Largest first. */
typedef struct prony_impact_row {
    uint32_t index; /* of the layer or operator */
    double value;
    double share;      /* of the whole model's, 0..1 */
    double cumulative; /* of the rows up to this one */
} prony_impact_row;
/* *rows receives *count rows, at most `top`. Released by prony_rows_release. */
PRONY_API PRONY_MUST_USE prony_status prony_report_impact(prony_impact_row **rows, size_t *count,
                                                          const prony_report *report, unsigned level, const char *key,
                                                          const char *filter, size_t top, prony_error *error);

/* The critical path: the longest chain of operators that wait for one another. `operators` are
 * indices in order of execution; *time_ns is their summed mean time. PRONY_UNSUPPORTED if the report has no times or
 * does not know what reads what. */
PRONY_API PRONY_MUST_USE prony_status prony_report_critical_path(uint32_t **operators, size_t *count, int64_t *time_ns,
                                                                 const prony_report *report, prony_error *error);

/* The bound of an operator's speed, by the roofline of this machine. */
typedef enum prony_bound {
    PRONY_BOUND_UNKNOWN, /* not measured, `prony machine` has not been run, or products of integers */
    PRONY_BOUND_COMPUTE, /* the arithmetic takes longer than the traffic */
    PRONY_BOUND_MEMORY,  /* the other way round */
    PRONY_BOUND_OVERHEAD /* neither explains a tenth of the time */
} prony_bound;
/* *share_of_roof (may be NULL): the time that the roof allows over the measured time; negative: unknown. */
PRONY_API prony_bound prony_report_bound(const prony_report *report, size_t operator_index, double *share_of_roof);
PRONY_API const char *prony_bound_name(prony_bound bound); /* "unknown", "compute", "memory", "overhead" */

typedef struct prony_histogram_bin {
    int64_t from_ns, to_ns; /* [from, to); the last one includes its end */
    uint64_t count;
} prony_histogram_bin;
/* Equal bins over the latencies; `bins` 0: as many as Freedman and Diaconis advise, at most 100. */
PRONY_API PRONY_MUST_USE prony_status prony_report_histogram(prony_histogram_bin **rows, size_t *count,
                                                             const prony_report *report, size_t bins,
                                                             prony_error *error);

typedef struct prony_outlier {
    uint64_t run; /* from 0 */
    int64_t latency_ns;
    bool severe;       /* beyond 3 interquartile ranges, else beyond 1.5 (Tukey's fences) */
    double modified_z; /* 0.6745 (x - median) / median absolute deviation; above 3.5 in size is an outlier by itself */
} prony_outlier;
/* Runs outside of Tukey's inner fences or with a modified z-score above 3.5, in order of time. They stay in all
 * statistics. */
PRONY_API PRONY_MUST_USE prony_status prony_report_outliers(prony_outlier **rows, size_t *count,
                                                            const prony_report *report, prony_error *error);

/* The use of the machine by others while the runs were measured. Shares; negative: not known. */
typedef enum prony_load { PRONY_LOAD_UNKNOWN, PRONY_LOAD_QUIET, PRONY_LOAD_BUSY } prony_load;
typedef struct prony_disturbance {
    double others_share; /* of the time of all usable processors: other processes, and what the hypervisor took */
    double steal_share;  /* the latter alone */
    double waited_share; /* threads ready to run that did not, over the wall time */
    int64_t involuntary_switches;
    prony_load verdict;
    char text[160]; /* one sentence about a busy machine, otherwise "" */
} prony_disturbance;
/* false: nothing was measured, or the report's version did not record it. */
PRONY_API bool prony_report_disturbance(prony_disturbance *out, const prony_report *report);
/* The same for a measurement of the caller, between begin and end. `end` releases the watch; `out` may be NULL. */
typedef struct prony_load_watch prony_load_watch;
/* Begins a watch of this process and machine. *out belongs to the caller until prony_load_watch_end. */
PRONY_API PRONY_MUST_USE prony_status prony_load_watch_begin(prony_load_watch **out, prony_error *error);
/* Ends the watch, writes what it saw to *out (may be NULL), and releases it. NULL `watch` is accepted. */
PRONY_API void prony_load_watch_end(prony_load_watch *watch, prony_disturbance *out);

typedef struct prony_steady_state {
    bool known;   /* there were 10 runs or more */
    bool steady;  /* no significant trend (Mann-Kendall, 5 %) of more than 1 % of the median */
    bool unsure;  /* a trend is not excluded either: the level moved by more than 2 %, perhaps by chance */
    double drift; /* (median of the last third - median of the first) / median */
    double p;     /* two-sided, of the trend */
} prony_steady_state;
/* Tests the report's latencies for a trend. `known` is false in a report with fewer than 10 runs. */
PRONY_API PRONY_MUST_USE prony_status prony_report_steady_state(prony_steady_state *out, const prony_report *report,
                                                                prony_error *error);

/* A layer's time in each measured run, in order, if the profile kept samples: writes at most `capacity` of them and
 * returns how many there are; 0: none were kept, or no operator executed the layer. */
PRONY_API size_t prony_report_layer_samples(const prony_report *report, size_t layer, int64_t *samples_ns,
                                            size_t capacity);

/* ---- metrics ---- */

/* The text of a value: a prefix, then the unit. */
typedef enum prony_scale {
    PRONY_SCALE_NONE,   /* 17.5 FLOP/byte */
    PRONY_SCALE_SI,     /* 4.09 GMACs */
    PRONY_SCALE_BINARY, /* bytes: 97.5 MiB */
    PRONY_SCALE_TIME,   /* nanoseconds: 1.23 ms */
    PRONY_SCALE_PERCENT /* a fraction: 12.3 % */
} prony_scale;

typedef enum prony_direction {
    PRONY_SMALLER_IS_BETTER = -1,
    PRONY_NO_DIRECTION = 0,
    PRONY_LARGER_IS_BETTER = 1
} prony_direction;

typedef struct prony_metric {
    const char *key; /* a to z, 0 to 9 and _ */
    const char *name;
    const char *description;
    const char *unit; /* "MACs"; "" for bytes, times and fractions, which have theirs by scale */
    prony_scale scale;
    prony_direction direction;
} prony_metric;

typedef struct prony_metric_value {
    const prony_metric *metric; /* borrowed from the registry */
    bool known;                 /* false: the report has not what it needs */
    double value;
    char text[64]; /* "4.09 GMACs"; "-" if not known */
} prony_metric_value;

/* Sets values[i] for the i-th metric it was registered with; NaN: not known. Both arrive as NaN. */
typedef prony_status (*prony_metric_fn)(double *values, const prony_report *report, void *user, prony_error *error);

/* A registry of metrics: the built-in ones and the user's. Not to be changed while another thread reads it. */
typedef struct prony_metrics prony_metrics;
/* A registry with the built-in metrics. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_create(prony_metrics **out, prony_error *error);
/* Frees the registry; values and thresholds that refer to its metrics become invalid. NULL is accepted. */
PRONY_API void prony_metrics_release(prony_metrics *metrics);
/* One function that yields `count` metrics; descriptions are copied. A key of a built-in metric overrides it, in its
 * place; a second definition of a key by the user is PRONY_INVALID_ARGUMENT, and nothing is added. */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_add(prony_metrics *metrics, const prony_metric *definitions,
                                                        size_t count, prony_metric_fn compute, void *user,
                                                        prony_error *error);
/* Metrics in the registry. */
PRONY_API size_t prony_metrics_count(const prony_metrics *metrics);
/* Metric `index`, built-in ones first, in order of registration. Borrowed; NULL: no such index. */
PRONY_API const prony_metric *prony_metrics_at(const prony_metrics *metrics, size_t index);
PRONY_API const prony_metric *prony_metrics_find(const prony_metrics *metrics, const char *key); /* NULL: none */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_compute(const prony_metrics *metrics, const prony_report *report,
                                                            const char *key, prony_metric_value *out,
                                                            prony_error *error);
/* `values` has prony_metrics_count entries; each function is called once. */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_compute_all(const prony_metrics *metrics,
                                                                const prony_report *report, prony_metric_value *values,
                                                                prony_error *error);
/* PRONY_FORMAT_TEXT or PRONY_FORMAT_JSON ("prony.metrics/1"), of the metrics that `keys` names, comma-separated (NULL:
 * all). Text: a line per known metric with its key; `detailed`: all of them, with direction and description. Colour and
 * width count. */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_write(const prony_metrics *metrics, const prony_report *report,
                                                          const char *keys, bool detailed, prony_format format,
                                                          const prony_write_options *options, prony_write_fn write,
                                                          void *user, prony_error *error);
/* As text of all, 100 columns wide. */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_print(const prony_metrics *metrics, const prony_report *report,
                                                          bool detailed, prony_write_fn write, void *user,
                                                          prony_error *error);
/* Writes `value` with its unit to `text`, at most `size` bytes with the terminating NUL; NaN: "-". */
PRONY_API void prony_metric_format(const prony_metric *metric, double value, char *text, size_t size);
/* "100ms", "2 GiB", "1000samples/s", "95 %". A value without the metric's unit is PRONY_INVALID_ARGUMENT; prefixes may
 * stand before any unit. */
PRONY_API PRONY_MUST_USE prony_status prony_metric_parse(const prony_metric *metric, const char *text, double *out,
                                                         prony_error *error);

/* ---- one call per question ---- */

/* All take a model and the options of a session, which give free dimensions, input shapes and threads (NULL: defaults).
 * Inputs are generated. Rows are released by prony_rows_release; the first one is the whole model, "__root__". */

typedef struct prony_quantity {
    uint64_t value;
    char text[48]; /* "4.09 GMACs", "97.5 MiB", "12.3 ms" */
} prony_quantity;

/* Multiply-accumulates of one run of the whole model. Nothing runs. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_macs(prony_quantity *out, prony_model *model,
                                                         const prony_session_options *options, prony_error *error);
/* Multiply-accumulates and scale-and-shift pairs of one run of the whole model. Nothing runs. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_madds(prony_quantity *out, prony_model *model,
                                                          const prony_session_options *options, prony_error *error);
/* Floating-point operations of one run of the whole model; a multiply-accumulate counts 2. Nothing runs. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_flops(prony_quantity *out, prony_model *model,
                                                          const prony_session_options *options, prony_error *error);
/* Elements of the model's weights and buffers. Nothing runs. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_params(prony_quantity *out, prony_model *model,
                                                           const prony_session_options *options, prony_error *error);
/* Weights, packed weights and the planned arena, bytes; runs the model once. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_memory(prony_quantity *out, prony_model *model,
                                                           const prony_session_options *options, prony_error *error);
/* Median latency, ns. `runs` NULL: until it is known to 1 %. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_runtime(prony_quantity *out, prony_model *model,
                                                            const prony_session_options *options,
                                                            const prony_profile_options *runs, prony_error *error);
/* Every metric of the registry; it must outlive the values. NULL: the built-in ones. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_metrics(prony_metric_value **values, size_t *count,
                                                            prony_model *model, const prony_session_options *options,
                                                            const prony_profile_options *runs,
                                                            const prony_metrics *metrics, prony_error *error);

typedef struct prony_params_row {
    uint32_t layer; /* PRONY_NO_INDEX: the whole model */
    const char *name, *op;
    const char *types;  /* of its tensors, comma-separated */
    uint64_t trainable; /* weights, elements */
    uint64_t buffers;   /* not trainable: running statistics */
    uint64_t bits;      /* of both */
    double share;       /* of the model's elements, 0..1 */
} prony_params_row;
/* Layers that hold none are left out. */
PRONY_API PRONY_MUST_USE prony_status prony_count_params(prony_params_row **rows, size_t *count, prony_model *model,
                                                         const prony_session_options *options, prony_error *error);

typedef struct prony_io_row {
    uint32_t layer;
    const char *name, *op;
    bool output;
    uint32_t position;
    prony_dtype dtype;
    prony_shape shape;
    uint64_t elements, bits; /* 0 where the shape is not known */
} prony_io_row;
/* Inputs, weights among them, and outputs of every layer; no row for the whole model. */
PRONY_API PRONY_MUST_USE prony_status prony_trace_io_sizes(prony_io_row **rows, size_t *count, prony_model *model,
                                                           const prony_session_options *options, prony_error *error);

typedef struct prony_ops_row {
    uint32_t layer; /* PRONY_NO_INDEX: the whole model */
    const char *name, *op;
    uint64_t macs, madds, flops, special, int_ops;
    bool counted; /* by the preset */
    uint64_t count;
    double share; /* of the model's FLOPs and integer operations, 0..1 */
} prony_ops_row;
/* `preset` may be NULL. */
PRONY_API PRONY_MUST_USE prony_status prony_estimate_ops(prony_ops_row **rows, size_t *count, prony_model *model,
                                                         const prony_session_options *options, const char *preset,
                                                         prony_error *error);

typedef struct prony_timing_options {
    size_t struct_size;
    int64_t iterations; /* 0: 1000 */
    int64_t dropped;    /* first ones that are not counted; -1: 100, or a tenth of fewer than 1000 iterations */
    bool every_sample;  /* `samples_ns` of the rows is set */
} prony_timing_options;
#define PRONY_TIMING_OPTIONS_INIT PRONY_INIT_WITH(prony_timing_options, dropped, -1)

typedef struct prony_timing_row {
    uint32_t layer; /* PRONY_NO_INDEX: the whole model */
    const char *name, *op;
    bool attributed; /* its operator stands for several layers: the time is an estimate of its part */
    int64_t mean_ns, median_ns, min_ns, max_ns, std_ns;
    const int64_t *samples_ns; /* in order; NULL unless asked for, or the layer runs nothing */
    size_t sample_count;       /* iterations that counted */
} prony_timing_row;
/* Times each layer over `timing` iterations (NULL: 1,000, of which the first 100 do not count). *rows receives
 * *count rows, the whole model first. */
PRONY_API PRONY_MUST_USE prony_status prony_estimate_inference_time(prony_timing_row **rows, size_t *count,
                                                                    prony_model *model,
                                                                    const prony_session_options *options,
                                                                    const prony_timing_options *timing,
                                                                    prony_error *error);
/* Of the whole model alone, without stamps inside. */
PRONY_API PRONY_MUST_USE prony_status prony_estimate_total_inference_time(prony_time_stats *out, prony_model *model,
                                                                          const prony_session_options *options,
                                                                          const prony_timing_options *timing,
                                                                          prony_error *error);

#ifdef __cplusplus
}
#endif
#endif
