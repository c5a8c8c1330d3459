/* Profiling and reports: costs and times of a model, counting presets, formats. Conventions: prony.h. */
#ifndef PRONY_REPORT_H
#define PRONY_REPORT_H

#include "prony.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- report ---- */

/* Statistics of a set of times, ns. Quantiles: nearest rank. `valid` flags say whether the sample count supports them
 * (p90: 64, p95: 130, p99: 662, p99.9: 6636 samples for 99 % confidence). */
typedef struct prony_time_stats {
    uint64_t count;
    int64_t mean_ns, median_ns, min_ns, max_ns, std_ns;
    int64_t p50_ns, p90_ns, p95_ns, p99_ns, p999_ns;
    int64_t median_ci95_ns[2]; /* bootstrap interval of the median */
    bool p90_valid, p95_valid, p99_valid, p999_valid;
} prony_time_stats;

/* Computes statistics of times in any unit, in their order; `samples_ns` is not changed. */
PRONY_API PRONY_MUST_USE prony_status prony_time_stats_compute(prony_time_stats *out, const int64_t *samples_ns,
                                                               size_t count, prony_error *error);

#define PRONY_NO_INDEX UINT32_MAX

/* One original node of the model. Pointers are owned by the report. */
typedef struct prony_layer_row {
    uint32_t index;          /* position in the model */
    uint32_t operator_index; /* operator that executed it; PRONY_NO_INDEX: folded, or a view without an operator */
    const char *name;
    const char *module; /* path of the module it belongs to, "" for the root */
    const char *op;
    bool folded;                      /* evaluated at bind time */
    bool dynamic;                     /* shapes, and so the cost, are known to a run only */
    const prony_value *const *inputs; /* type and shape only; NULL where omitted */
    const prony_value *const *outputs;
    size_t input_count, output_count;
    prony_cost cost;
    bool measured;        /* time_ns and share below are set */
    bool time_attributed; /* an estimate: its operator runs several layers, which share its time by what each kind of
                             work costs on this machine (docs/internals/measurement.md) */
    prony_time_stats time;
    double share; /* of the operators' summed mean time, 0..1 */
    uint64_t output_bytes;
    const uint32_t *sources; /* per input the layer that makes it; PRONY_NO_INDEX: model input, weight or omitted.
                                NULL: not known */
    bool counted;            /* `count` is set: a counting preset was chosen and counts this operator */
    uint64_t count;          /* what the preset's tool says of it */
    bool removed; /* returns its input unchanged, or was folded into weights: it does not execute and has no time */
    double operator_share; /* of its operator's time, 0..1; worth about one digit where time_attributed */
} prony_layer_row;

/* The work of one thread of a thread pool on an operator, in the last run. */
typedef struct prony_thread_share {
    int thread;               /* 0: the one that called */
    int64_t start_ns, end_ns; /* of its first and last task, from the run's entry */
    int64_t busy_ns;          /* less than end_ns - start_ns where the operator calls its thread pool several times */
    int64_t tasks;            /* pieces of the work */
} prony_thread_share;

/* Use of the threads: means of the runs in which they were traced. Tasks of the thread pool are work; an operator
 * without such tasks is work of the calling thread. */
typedef struct prony_parallel {
    double threads_used;   /* threads that had work; 0: not known, and the rest is not set */
    int64_t busy_ns;       /* at work, all threads together */
    int64_t wait_ns;       /* the operator's time, once for each thread that it may use, minus busy_ns */
    double imbalance;      /* busiest thread over the mean of the threads with work, minus 1; 0: even */
    double achieved_cores; /* busy_ns over the operator's time */
    double efficiency;     /* achieved_cores over the threads it may use */
} prony_parallel;

/* Why an operator does not reach its roof: a word that programs know (docs/guides/find_a_bottleneck.md), and a sentence
 * with the numbers. */
typedef struct prony_reason {
    const char *reason, *text;
} prony_reason;

/* One executed kernel. */
typedef struct prony_operator_row {
    uint32_t index;
    const char *name;
    const char *op;
    const char *kernel;
    const char *backend;
    const uint32_t *layers;
    size_t layer_count;
    prony_cost cost; /* macs … parameters: the layers' sum; bytes: external inputs and outputs only */
    bool measured;
    prony_time_stats time;
    double share;
    int threads;
    uint64_t offset_bytes; /* of output 0 in the arena; UINT64_MAX: not in the arena */
    uint64_t output_bytes;
    uint64_t scratch_bytes;
    uint64_t library_heap_calls;          /* heap calls per run of libraries inside this operator; 0: not counted */
    bool traced;                          /* the three below are set */
    int worker;                           /* worker that executed it in the last run, from 0 */
    int64_t trace_start_ns, trace_end_ns; /* in that run, from its entry */
    /* Threads that took part in that run, by number; NULL: not requested, or one thread. */
    const prony_thread_share *thread_shares;
    size_t thread_share_count;
    prony_parallel parallel;       /* if threads were traced */
    const int64_t *thread_busy_ns; /* [thread_busy_count] means per run, by number; NULL: not known */
    size_t thread_busy_count;
    bool counted; /* the three below are set: hardware counters, mean per run, of all threads, user space
                                    only */
    uint64_t cycles, instructions, cache_misses;
    const prony_fact *kernel_facts; /* facts that the kernel states; docs/reference/report.md has the keys */
    size_t kernel_fact_count;
    const prony_reason *reasons; /* what explains most surely first */
    size_t reason_count;
    double kernel_best; /* highest share of the roof that an operator with this kernel reaches here; 0: not
                                    known */
    uint32_t kernel_best_operator;
} prony_operator_row;

/* A node inside of a subgraph, which an If, Loop, Scan, SequenceMap or another operator with subgraphs runs. It
 * explains the rows around it and stands in no total: the figures of its owner and parents include it. Of the layers,
 * those of a parent's subgraphs sum to the parent's cost without what it does itself; of the operators likewise, but
 * for their bytes, which are external traffic only. */
typedef struct prony_nested_row {
    uint32_t index;       /* position in its list; a row follows the row that contains it */
    uint32_t owner;       /* the model's own row around it all, in the list of the same level: layers or operators */
    uint32_t parent;      /* row of this list whose subgraph it stands in; PRONY_NO_INDEX: the owner's */
    uint32_t depth;       /* subgraphs around it, from 1 */
    const char *subgraph; /* "then_branch", "body" */
    const char *path;     /* nodes and subgraphs around it: "decode > body > Cond_3 > then_branch" */
    const char *name, *op;
    const char *module;           /* as of a layer */
    const char *kernel, *backend; /* what ran it; "": nothing did, or it is a view */
    bool folded, dynamic;
    const prony_value *const *inputs, *const *outputs; /* layers: type and shape only; NULL: omitted. Operators: NULL */
    size_t input_count, output_count;
    const uint32_t *sources; /* layers: per input the row of this list that makes it; PRONY_NO_INDEX: it comes from
                                elsewhere. NULL: not known */
    uint32_t operator_index; /* layers: row among the operators in subgraphs; PRONY_NO_INDEX: none ran it */
    const uint32_t *layers;  /* operators: rows among the layers in subgraphs */
    size_t layer_count;
    bool executed;       /* `executions` is known: something ran */
    uint64_t executions; /* in the last run; 0: a branch that was not taken */
    prony_cost cost;     /* of all executions in the last run; where nothing ran, of one. parameters: once */
    bool measured;
    prony_time_stats time;  /* per run, all executions together */
    double share;           /* of the operators' summed mean time, as of an operator */
    bool time_attributed;   /* as of a layer */
    bool traced;            /* the two below are set: the last run */
    int64_t trace_start_ns; /* when it began the last time, from the run's entry */
    int64_t trace_ns;       /* all executions together */
    bool cancelled;         /* the run was cancelled inside this row */
} prony_nested_row;

typedef struct prony_totals {
    prony_cost cost; /* fact_count 0 */
    uint32_t layers, folded_layers, operators;
    bool counted; /* a counting preset was chosen: `count` is the sum over the layers */
    uint64_t count;
} prony_totals;

/* A weight tensor, or a buffer such as the running statistics of a BatchNormalization. */
typedef struct prony_parameter_row {
    const char *name; /* "": the weight is inside a subgraph or an attribute */
    uint32_t layer;   /* the first that uses it */
    prony_dtype dtype;
    prony_shape shape;
    uint64_t elements, bytes; /* bytes: 0 where the type is not known */
    uint64_t bits;            /* as above, exact for types narrower than a byte */
    bool trainable;           /* false: a buffer */
    double share;             /* of all rows' elements, 0..1 */
} prony_parameter_row;

/* A module: an inner vertex of the tree that node names such as /layer1/layer1.0/conv1/Conv spell. Sums include all
 * modules below. */
typedef struct prony_module_row {
    const char *path; /* "layer1/layer1.0"; the root is "" and shown as __root__ */
    const char *type; /* last part without trailing digits or index; a guess from the name */
    uint64_t macs, flops, parameters;
    int64_t time_ns; /* mean per run; -1: not measured */
    double share;
    uint32_t parent; /* PRONY_NO_INDEX for the root */
    uint32_t depth;
    uint32_t layers;        /* in it and below */
    uint64_t count;         /* by the counting preset; 0 without one */
    uint32_t nested_layers; /* in subgraphs of those layers: what they cost and take is in the layers' figures. A module
                               below that of the layer around it, and named by such nodes alone, has 0 `layers` and the
                               figures of these nodes */
} prony_module_row;

/* An arena allocation or release. */
typedef struct prony_memory_event {
    bool release;
    const char *owner; /* value or operator name */
    const char *tag;   /* "activation", "scratch", "dynamic" */
    uint64_t asked_bytes, given_bytes, offset_bytes;
    uint32_t step; /* operator index */
} prony_memory_event;

typedef struct prony_memory_point {
    uint32_t step;
    uint64_t live_bytes;
} prony_memory_point;

/* Memory of the process when its runs are done; the parts add up to resident_bytes. Anonymous memory that was never
 * touched is not resident: then `other_bytes` is 0 and the parts are what was asked for. */
typedef struct prony_memory_held {
    uint64_t resident_bytes;
    uint64_t file_bytes;    /* pages of the model file and of other mapped files */
    uint64_t packed_bytes;  /* packed and folded weights, constants made at bind time */
    uint64_t arena_bytes;   /* planned and dynamic region */
    uint64_t input_bytes;   /* copies of the inputs */
    uint64_t library_bytes; /* pages of the program and of shared libraries */
    uint64_t other_bytes;   /* graphs, plans, the profiler's samples, the program's own heap, stacks */
} prony_memory_held;

typedef struct prony_memory_report {
    uint64_t weight_bytes, packed_weight_bytes;
    uint64_t planned_bytes;     /* arena bytes the plan needs */
    uint64_t lower_bound_bytes; /* largest sum of aligned live bytes at any step */
    double plan_gap;            /* 1 - lower_bound / planned */
    uint64_t peak_live_bytes, average_live_bytes, scratch_bytes;
    double internal_fragmentation; /* 1 - asked / given */
    double external_fragmentation; /* 1 - largest free block / free bytes, at its worst step */
    uint64_t allocations, releases;
    uint64_t heap_calls_per_run, library_heap_calls_per_run;
    bool heap_calls_known, library_heap_calls_known;
    uint64_t peak_rss_bytes;
    bool held_known;
    prony_memory_held held;
    const prony_memory_point *timeline;
    size_t timeline_count;
    const prony_memory_event *events;
    size_t event_count;
} prony_memory_report;

typedef struct prony_report prony_report;

/* Static report: parameters, shapes, counts; nothing runs, weights are not read. `options` gives free dimensions and
 * says what becomes of the others (NULL: PRONY_FREE_ONE). Operators that cannot run are listed in the report and make
 * the affected shapes unknown. */
PRONY_API PRONY_MUST_USE prony_status prony_inspect(prony_report **out, prony_model *model,
                                                    const prony_session_options *options, prony_error *error);

typedef struct prony_profile_options {
    size_t struct_size;
    int64_t warmup_runs; /* -1: detected */
    int64_t runs;        /* 0: until the median is known to 1 %, or max_seconds have passed */
    double max_seconds;  /* 0: 5 s, or as long as `runs` takes; of warm-up, measuring the cost and runs together: a run
                            that has begun is finished */
    /* May be NULL. `relative_error`: of the median; NaN while it is not known. */
    void (*progress)(void *user, int64_t runs_done, double seconds, double relative_error);
    void *progress_user;
    bool keep_samples; /* each operator's time in each run, for prony_report_layer_samples */
    /* Called before and after every run, warm-up included; either may be NULL. They bind inputs and read outputs of the
     * session, and are timed as phases of their own: the latency stays that of the run. A failure ends the profile. */
    prony_status (*preprocess)(void *user, prony_session *session, prony_error *error);
    prony_status (*postprocess)(void *user, prony_session *session, prony_error *error);
    void *phase_user;
    bool trace_threads;  /* what each thread does of each operator: means (prony_parallel), and the last run's for
                           PRONY_FORMAT_TRACE; in up to 50 more runs after those that count, in a tenth of the time */
    bool measure_cost;   /* what profiling costs: pairs of runs with and without it before those that count, for a fifth
                           of the time, or a fifth of `runs` (11 pairs at least, but not more than `runs`); one session
                           only */
    bool count_hardware; /* processor cycles, instructions and cache misses per operator, where the kernel gives them:
                            two system calls more per thread and operator, which the report states */
} prony_profile_options;
#define PRONY_PROFILE_OPTIONS_INIT PRONY_INIT_WITH(prony_profile_options, warmup_runs, -1)

/* Runs one session repeatedly on its bound inputs and reports; prony_profile_interleaved measures several. `options`
 * NULL: the defaults. The caller owns *out. PRONY_CANCELLED may come with a report, of the runs that
 * were finished by then; the caller releases it as any. */
PRONY_API PRONY_MUST_USE prony_status prony_session_profile(prony_report **out, prony_session *session,
                                                            const prony_profile_options *options, prony_error *error);
/* Profiles several sessions in turns, for comparisons: each warms up, then they take turns of a few runs, in an order
 * drawn anew for each round, until all medians are known or `count` times max_seconds is up. The first run of a turn is
 * not counted: the others have driven its data out of the caches. All get the same number of runs. reports[i] is that
 * of sessions[i]; on failure all are NULL, but for PRONY_CANCELLED: reports of the runs that were finished by then come
 * with it if every session has any, and say so in their stop reason. Sessions may share a model, but none may stand
 * there twice. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_interleaved(prony_report **reports, prony_session *const *sessions,
                                                                size_t count, const prony_profile_options *options,
                                                                prony_error *error);
/* Frees the report and every row and text borrowed from it. NULL is accepted. */
PRONY_API void prony_report_release(prony_report *report);
/* Adds the runs of `count` other processes of the same model and configuration, each in a report of its own (as
 * prony_report_load_memory reads it), to those of `into`. Processes of one model differ by more than the runs within
 * each show; with 4 and more of them, intervals and prony_compare draw processes. Sums of processor use and the load
 * are those of all, layers and operators stay those of `into`, best the process with the middle median.
 * PRONY_INVALID_ARGUMENT where they differ in model, threads, batch or precision, and where one was joined before;
 * `into` is then as it was. */
PRONY_API PRONY_MUST_USE prony_status prony_report_join(prony_report *into, const prony_report *const *others,
                                                        size_t count, prony_error *error);
/* Runs of each process, in the order of the samples; NULL and 0: all are of one. */
PRONY_API const uint64_t *prony_report_process_runs(const prony_report *report, size_t *count);
/* Labels the report: this many threads of another process kept processors busy during the measurement. */
PRONY_API void prony_report_set_background(prony_report *report, int threads);
/* Preprocessing, run and postprocessing together, where prony_profile_options gave such callbacks; else NULL. */
PRONY_API const prony_time_stats *prony_report_end_to_end(const prony_report *report);

/* ---- generation: a decoder's speed, measured by prony_generation_measure (prony_generate.h) ---- */

typedef struct prony_generation {
    int64_t batch, prompt_tokens, new_tokens;          /* sequences; tokens of each */
    int64_t warmup_repetitions, repetitions;           /* a repetition: the prompt, then the new tokens one by one */
    const char *cache;                                 /* "none", "growing", "shared" */
    const char *convention;                            /* prony_generator_info.convention */
    double prefill_tokens_per_second, prefill_ci95[2]; /* of all sequences; prompt_tokens in one run */
    double decode_tokens_per_second, decode_ci95[2];   /* of all sequences; from the second new token on */
    prony_time_stats ttft;                             /* from the prompt to the first new token */
    prony_time_stats step;                             /* between two new tokens; count 0: new_tokens is 1 */
    double step_growth_ns;      /* by which a step takes longer for each token before it (Theil: median slope) */
    const int64_t *position_ns; /* [position_count] median step by position, the second new token first */
    size_t position_count;
    uint64_t cache_tensors, cache_bytes, cache_live_bytes; /* held; rows of tokens, at the last position */
    uint64_t cache_copied_bytes;                           /* rows of earlier tokens that the last step copied */
    uint64_t weight_bytes;                                 /* that a step reads, in the layouts that kernels read */
    double bandwidth_share; /* weight_bytes over the step's time, over the DRAM bandwidth; negative: not known */
    uint64_t prefill_flops, decode_flops; /* a token: mean of the prompt; at the last position */
    double computed_tokens;               /* that a step computes for each new token: 1 with a cache */
    const char *cache_type;               /* of a growing cache's elements: "fp32", "fp16", "int8" */
    /* Logits beside those of a float32 cache, over so many tokens (prony_report_set_cache_error); negative: not
     * measured. */
    int64_t cache_error_tokens;
    double cache_error_max, cache_error_rms, cache_error_equal_ids; /* largest and root-mean-square difference; share of
                                                                       tokens with the same greedy id */
} prony_generation;

/* NULL: the report is of no generation. Owned by the report. */
PRONY_API const prony_generation *prony_report_generation(const prony_report *report);
/* Notes the error of a cache in fewer bits, in a report with a generation. */
PRONY_API void prony_report_set_cache_error(prony_report *report, int64_t tokens, double max, double rms,
                                            double equal_ids);

/* ---- counting presets: the numbers of other tools, beside the native ones ---- */

typedef struct prony_count_rule {
    const char *operators; /* operator types, separated by blanks */
    const char *formula;
} prony_count_rule;

typedef struct prony_count_preset {
    const char *name;   /* "fvcore" */
    const char *source; /* the tool's own file */
    const char *pin;    /* commit or release of the tool with these numbers */
    const char *note;   /* how a MAC counts, what it leaves out */
    const prony_count_rule *rules;
    size_t rule_count;
} prony_count_preset;

/* Counting presets of this build. */
PRONY_API size_t prony_count_preset_count(void);
/* Counting preset `index`. Static; NULL: no such index. */
PRONY_API const prony_count_preset *prony_count_preset_at(size_t index);
/* Fills `count` of layers, modules and totals, and what the preset leaves out; of a live report as of one read back.
 * NULL takes the counts away. An unknown name is PRONY_INVALID_ARGUMENT and names those there are. */
PRONY_API PRONY_MUST_USE prony_status prony_report_set_count(prony_report *report, const char *preset,
                                                             prony_error *error);
/* Operator types that the preset leaves out although they compute, those that take longest first; and the share of the
 * operators' time spent in them (negative: not measured). */
PRONY_API const char *const *prony_report_uncounted(const prony_report *report, size_t *count, double *time_share);

/* Sums over the whole model. Owned by the report. */
PRONY_API const prony_totals *prony_report_totals(const prony_report *report);
/* *count rows, a row per node of the model, in the order of execution. Owned by the report. */
PRONY_API const prony_layer_row *prony_report_layers(const prony_report *report, size_t *count);
/* *count rows, a row per executed kernel, in the order of execution. Owned by the report; NULL and 0: an
 * inspection, in which nothing ran. */
PRONY_API const prony_operator_row *prony_report_operators(const prony_report *report, size_t *count);
/* Rows of subgraphs: `level` is PRONY_LEVEL_LAYER (nodes of the model) or PRONY_LEVEL_OPERATOR (executed kernels, in a
 * measured report). *count rows, owned by the report; NULL and 0: the model has no subgraphs. */
PRONY_API const prony_nested_row *prony_report_nested(const prony_report *report, unsigned level, size_t *count);
/* The module tree, parents before children; the root is first. */
PRONY_API const prony_module_row *prony_report_modules(const prony_report *report, size_t *count);
/* Weights and buffers in the order of the layers that first use them. */
PRONY_API const prony_parameter_row *prony_report_parameters(const prony_report *report, size_t *count);
/* Weights, plan and process memory. Owned by the report; NULL: nothing ran. */
PRONY_API const prony_memory_report *prony_report_memory(const prony_report *report);

/* A processor that the measured runs could use; all processes on it count. */
typedef struct prony_core_row {
    int core;
    double mean;       /* busy, 0..1, over the measured runs */
    const double *use; /* in each interval */
} prony_core_row;
/* Use of each processor over time. *times_ns (may be NULL) gets the ends of the *points intervals, from the first run's
 * start. NULL: not measured, or too short a measurement for the kernel's clock. */
PRONY_API const prony_core_row *prony_report_cores(const prony_report *report, size_t *cores, const int64_t **times_ns,
                                                   size_t *points);
/* A free dimension of the inputs that the caller did not fix, and its value. */
typedef struct prony_assumed_dim {
    const char *name; /* as prony_dim takes it */
    int64_t value;
    /* "batch", "tree features", "window size", "metadata imgsz", "declared shapes", "nothing reads it"; "": simply
     * 1. */
    const char *reason;
} prony_assumed_dim;
/* *count rows, a row per free dimension that neither options nor inputs fixed. Owned by the report. */
PRONY_API const prony_assumed_dim *prony_report_assumed_dims(const prony_report *report, size_t *count);
/* The reason for missing hardware counters; "": they are there. NULL: not requested. */
PRONY_API const char *prony_report_counters_missing(const prony_report *report);
/* A kernel that was tried for an operator. */
typedef struct prony_tune_trial {
    const char *kernel;
    int64_t time_ns;     /* of one run, the median; -1: it failed */
    int64_t reorder_ns;  /* time to bring values to its layouts, and its result to the default kernel's layout */
    const char *failure; /* "": it did not fail */
} prony_tune_trial;

/* An operator that several kernels can run. */
typedef struct prony_tuned_operator {
    uint32_t index;                      /* of the operator */
    const char *kernel, *default_kernel; /* taken; taken without measuring */
    bool cached;                         /* measured by an earlier process */
    const prony_tune_trial *trials;
    size_t trial_count;
} prony_tuned_operator;

/* Kernels chosen by measurement (prony_session_options.tune). */
typedef struct prony_tuning {
    uint64_t operators, changed;   /* operators with a choice; operators with another kernel than the default */
    uint64_t measured, cached;     /* problems, equal operators once: measured by this process; taken from the file. Of
                                    all plans of the session */
    uint64_t untried;              /* operators that keep the default kernel because the time for measuring ran out */
    int64_t measuring_ns, file_ns; /* time for measuring, and for reading and writing the file, in this session */
    const char *file;              /* file of the measurements; "": none */
    const char *note;              /* remark, such as the reason for a missing file; "": none */
    const prony_tuned_operator *choices; /* not those in subgraphs */
    size_t choice_count;
    bool reverted; /* the default kernels stay: as a whole the other ones were no faster, or a run
                                    failed */
    int64_t default_run_ns, tuned_run_ns; /* of one run of each plan, medians of runs in turns; -1: nothing was to be
                                             judged, or a run failed */
} prony_tuning;
/* NULL: it was not asked for. */
PRONY_API const prony_tuning *prony_report_tuning(const prony_report *report);

/* NULL if the report measured nothing. */
PRONY_API const prony_time_stats *prony_report_latency(const prony_report *report);
/* Operators without a kernel, as "domain::Op-opset (n nodes)"; borrowed. */
PRONY_API const char *const *prony_report_unsupported(const prony_report *report, size_t *count);
/* Share of a run's wall time that lies inside operators, 0..1; negative if not measured. */
PRONY_API double prony_report_time_coverage(const prony_report *report);

/* Stands in the report's `evaluation`, for labelled data that the caller evaluated, in place of what stood there.
 * `metric` is copied. */
PRONY_API PRONY_MUST_USE prony_status prony_report_set_evaluation(prony_report *report, const char *metric,
                                                                  double value, int64_t samples, prony_error *error);
/* A further figure of the same samples. */
PRONY_API PRONY_MUST_USE prony_status prony_report_add_evaluation(prony_report *report, const char *metric,
                                                                  double value, prony_error *error);

typedef struct prony_evaluation_row {
    const char *metric; /* "top1_accuracy" */
    double value;
    int64_t samples;
} prony_evaluation_row;
/* Results of evaluations; the first one is the metric `evaluation`. *count rows, owned by the report; NULL: no
 * evaluation. */
PRONY_API const prony_evaluation_row *prony_report_evaluations(const prony_report *report, size_t *count);

/* ---- accuracy: every operator beside a float64 reference ---- */

/* The distance of values y from their reference r, over the elements in which both are finite. Quantised values with
 * one scale are compared as the numbers that they stand for. */
typedef struct prony_error_metrics {
    bool known;     /* false: not measured, and the rest is not set */
    double max_abs; /* max |y - r| */
    double max_rel; /* max_abs over the range of r, max r - min r; where r is one number throughout, over |r|; where
                           it is 0 throughout, 1 if there is any error */
    double ulp;     /* max |y - r| in units in the last place of the larger of both, in y's type; of codes in steps
                           of the scale, of integers in 1 */
    double snr_db;  /* 10 log10(sum r^2 / sum (y - r)^2); NaN: no error, or nothing to compare it with */
    double over_tolerance; /* share of elements with |y - r| above the tolerance times the range, 0..1 */
    double range;          /* of r */
    uint64_t nonfinite;    /* elements of y that are infinite or no number where r is not the same */
    uint64_t elements;
} prony_error_metrics;

/* Of a layer or an operator. `own`: the operator ran on inputs i, the reference on the same i. `accumulated`: the
 * reference ran on its own inputs from the model's inputs on. Of several outputs the worse figure each. */
typedef struct prony_accuracy_row {
    uint32_t index; /* of the layer or operator */
    prony_error_metrics own, accumulated;
    const char *not_compared; /* reason why both are unknown; NULL: at least one is known */
    const char *note;         /* remark on the errors, such as an operator without float64 reference; NULL: none */
} prony_accuracy_row;

/* Of a whole output of the model. */
typedef struct prony_accuracy_output {
    const char *name;
    const char *against;       /* file of another runtime's output; NULL: the reference */
    prony_error_metrics error; /* accumulated */
} prony_accuracy_output;

typedef struct prony_accuracy {
    const char *reference;                 /* what values are compared with */
    double tolerance;                      /* of prony_error_metrics.over_tolerance */
    uint64_t operators, compared, sampled; /* of the plan; with figures; whose own error was asked for */
    uint64_t without_reference;            /* operators whose own error has no float64 reference */
    int64_t run_ns, reference_ns;          /* the run that was observed, everything included; of it the reference and
                                              comparisons */
    uint64_t peak_bytes;                   /* most bytes of reference tensors at a time */
    const prony_accuracy_output *outputs;
    size_t output_count;
} prony_accuracy;

/* Another runtime's value of an output; borrowed. */
typedef struct prony_accuracy_expected {
    const char *output;       /* name; NULL: the only output */
    const prony_value *value; /* a tensor of numbers */
    const char *source;       /* that messages and reports name: a file */
} prony_accuracy_expected;

typedef struct prony_accuracy_options {
    size_t struct_size;
    int64_t samples;  /* operators whose own error is measured, spread evenly over the plan; 0: all */
    double tolerance; /* 0: 1e-3 */
    const prony_accuracy_expected *against;
    size_t against_count;
    bool outputs_only;        /* `against` alone: no reference runs */
    const prony_model *model; /* accumulated errors and those of the outputs are beside this model in float64, such as
                                 the one that the session's was quantized from; operators are found by the names of
                                 their layers, inputs by name, else by position. NULL: beside the session's own */
} prony_accuracy_options;
#define PRONY_ACCURACY_OPTIONS_INIT PRONY_INIT(prony_accuracy_options)

/* Runs the session once more on its bound inputs, with a float64 reference of the model's own nodes beside it, and puts
 * the figures into the report, which is of this session and its present input shapes. Only tensors that are still to be
 * read are held in float64. PRONY_SHAPE_MISMATCH, PRONY_INVALID_ARGUMENT: `against` does not fit the outputs;
 * PRONY_UNSUPPORTED: nothing in the model can be compared. The report is then as it was. One thread at a time. */
PRONY_API PRONY_MUST_USE prony_status prony_session_accuracy(prony_report *report, prony_session *session,
                                                             const prony_accuracy_options *options, prony_error *error);
/* The accuracy profile, owned by the report; NULL: prony_session_accuracy was not called. */
PRONY_API const prony_accuracy *prony_report_accuracy(const prony_report *report);
/* *count rows, one per layer (PRONY_LEVEL_LAYER) or operator (PRONY_LEVEL_OPERATOR), in the same order. NULL: no
 * accuracy profile. */
PRONY_API const prony_accuracy_row *prony_report_accuracy_rows(const prony_report *report, unsigned level,
                                                               size_t *count);
/* Operators that lose most, worst first, by what they add themselves: `own.max_rel`, non-finite elements before
 * anything else. Fills `indices` with up to `capacity`; returns how many have any error. */
PRONY_API size_t prony_report_accuracy_worst(const prony_report *report, uint32_t *indices, size_t capacity);
/* The verdict in one sentence, owned by the report. NULL: no accuracy profile. */
PRONY_API const char *prony_report_accuracy_verdict(const prony_report *report);

typedef enum prony_format {
    PRONY_FORMAT_TEXT,
    PRONY_FORMAT_JSON,
    PRONY_FORMAT_CSV,      /* one level: the single bit of options->levels; 0: layers */
    PRONY_FORMAT_LATEX,    /* tables for booktabs, to be included in a document */
    PRONY_FORMAT_TRACE,    /* Chrome trace events of the last run, for Perfetto */
    PRONY_FORMAT_FOLDED,   /* module;...;layer and nanoseconds, for flame graphs */
    PRONY_FORMAT_DOT,      /* the graph, coloured by time (by FLOPs where nothing was measured), for Graphviz */
    PRONY_FORMAT_SVG,      /* the chart that options->chart names */
    PRONY_FORMAT_HTML,     /* one file that needs no network */
    PRONY_FORMAT_MARKDOWN, /* tables for a job summary; 20 rows each */
    PRONY_FORMAT_JUNIT     /* of thresholds: a test case each (prony_document_write) */
} prony_format;

enum {
    PRONY_LEVEL_MODEL = 1,
    PRONY_LEVEL_LAYER = 2,
    PRONY_LEVEL_OPERATOR = 4,
    PRONY_LEVEL_MODULE = 8,
    PRONY_LEVEL_NESTED = 16 /* what runs in subgraphs, in a table of its own */
};

typedef struct prony_write_options {
    size_t struct_size;
    bool color;         /* text: ANSI colours */
    int width;          /* text: columns; 0: 80 */
    unsigned levels;    /* text: PRONY_LEVEL_* bits; 0: model and layers, with `all` operators too */
    int64_t top;        /* text: rows per table; 0: the 20 that take longest, with `all` every one */
    const char *sort;   /* text: "index" (default with `all` and no `top`), "time" (default otherwise; where nothing was
                           measured "flops"), "macs", "madds", "special", "int_ops", "parameters", "bytes", "memory" (of
                           the outputs), "count", "rate" (FLOP/s), "intensity", "name" */
    const char *filter; /* text: KEY=GLOB with KEY name, op, module or kernel; NULL: none */
    bool memory;        /* JSON: timeline and events as well; text: the memory table */
    const char *chart;  /* SVG: a name from prony_chart_names */
    int64_t module_depth; /* text and CSV: levels of the module tree below the root; 0: all */
    bool all;             /* text: everything that is known, not what a first look needs */
    int64_t whole_names;  /* text: not 0: tables do not cut their names, however long the lines become */
} prony_write_options;
#define PRONY_WRITE_OPTIONS_INIT PRONY_INIT(prony_write_options)

/* Charts that PRONY_FORMAT_SVG draws, ending with NULL. */
PRONY_API const char *const *prony_chart_names(void);

/* Bytes of the UTF-8 character that `text` (zero-terminated) begins with, if it may be shown as it is. 0: it is
 * invalid, controls a terminal, ends a line or paragraph, or changes the direction of text; show '?' and go on with the
 * next byte. For names that come from a file. */
PRONY_API size_t prony_text_printable(const char *text);

/* Writes the report through `write`, in pieces. `options` NULL: the defaults. A format that the report lacks the
 * data for (a trace without a run) is PRONY_UNSUPPORTED; a failing `write` PRONY_IO_ERROR. */
PRONY_API PRONY_MUST_USE prony_status prony_report_write(const prony_report *report, prony_format format,
                                                         const prony_write_options *options, prony_write_fn write,
                                                         void *user, prony_error *error);
/* To a temporary name, then renamed, so that a failure leaves an old file intact. */
PRONY_API PRONY_MUST_USE prony_status prony_report_save(const prony_report *report, prony_format format,
                                                        const prony_write_options *options, const char *path,
                                                        prony_error *error);

/* Reads a "prony.report/1" JSON report back. A report of another version, damaged JSON, a value of the wrong type and
 * an integer above 2^53 are errors that name the file and the key. Unknown keys are skipped. */
PRONY_API PRONY_MUST_USE prony_status prony_report_load(prony_report **out, const char *path, prony_error *error);
/* As above from `size` bytes; `name` appears in messages. */
PRONY_API PRONY_MUST_USE prony_status prony_report_load_memory(prony_report **out, const char *name, const char *data,
                                                               size_t size, prony_error *error);

#ifdef __cplusplus
}
#endif
#endif
