/* Judgement: comparing reports, checking limits, advice, thread-scaling studies. Conventions: prony.h. */
#ifndef PRONY_JUDGE_H
#define PRONY_JUDGE_H

#include "prony_analysis.h"
#include "prony_machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- judgement: comparing, checking, advising ---- */

typedef enum prony_verdict {
    PRONY_VERDICT_NONE,   /* nothing to judge by: measured once, known on one side alone, or neither way is better */
    PRONY_VERDICT_SAME,   /* "~": within the noise threshold, or not significant */
    PRONY_VERDICT_BETTER, /* the second one */
    PRONY_VERDICT_WORSE,
    PRONY_VERDICT_UNSURE /* better or worse, but one of the two had less of its machine than the other */
} prony_verdict;
PRONY_API const char *prony_verdict_name(prony_verdict verdict); /* "none", "same", "better", "worse", "cannot tell" */

/* The basis of a verdict. */
typedef enum prony_basis {
    PRONY_BASIS_NONE,     /* a single measurement: shown, not judged */
    PRONY_BASIS_EXACT,    /* follows from model and configuration: any difference beyond the noise threshold counts */
    PRONY_BASIS_RUNS,     /* Mann-Whitney's p below 0.05 and the bootstrap interval beyond the noise threshold */
    PRONY_BASIS_INTERVAL, /* the bootstrap interval alone: quantiles */
    PRONY_BASIS_MEANS     /* Welch's p, adjusted by Holm for the number of rows, and the interval of the ratio of
                                means */
} prony_basis;
PRONY_API const char *prony_basis_name(prony_basis basis); /* "single", "exact", "runs", "interval", "means" */

typedef struct prony_compare_options {
    size_t struct_size;
    double noise; /* part of the first value (of fractions: absolute) below which two values are the same; 0: 0.01 */
    const prony_metrics *metrics; /* NULL: the built-in ones; else it must outlive the comparison. A metric that the
                                     user defined is judged as exact. */
    const char *first_name, *second_name; /* as shown; NULL: the models' names */
    const char *keys;                     /* only these metrics, comma-separated, all of which decide; "all": every one;
                                             NULL: all are compared, and latency, throughput, memory and accuracy
                                             decide */
    bool ignore_load;                     /* judge times although the reports differ in what others took of the machine
                         (prony_disturbance) */
} prony_compare_options;
#define PRONY_COMPARE_OPTIONS_INIT PRONY_INIT(prony_compare_options)

/* A metric that both reports know. NaN: does not apply. */
typedef struct prony_compare_metric {
    prony_metric_value first, second;
    double difference; /* second - first */
    double ratio;      /* second / first; NaN where first is 0 */
    double ratio_ci95[2];
    double p; /* two-sided */
    prony_basis basis;
    prony_verdict verdict;
} prony_compare_metric;

/* Mean time of a layer that both have, or of all operators of a type. */
typedef struct prony_compare_row {
    const char *name; /* of the layer; the type's for types */
    const char *op;
    double first_ns, second_ns, difference_ns, ratio, ratio_ci95[2], p;
    uint64_t first_flops, second_flops;
    prony_verdict verdict;
    uint64_t first_executions, second_executions; /* of what runs in subgraphs, in one run; 0 otherwise */
} prony_compare_row;

/* Two reports side by side; the first one is the baseline. Holds copies of all it shows but metric definitions. */
typedef struct prony_comparison prony_comparison;
/* Compares two reports; both may be released afterwards. `options` NULL: the defaults. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_compare(prony_comparison **out, const prony_report *first,
                                                    const prony_report *second, const prony_compare_options *options,
                                                    prony_error *error);
/* Frees the comparison and its rows. NULL is accepted. */
PRONY_API void prony_comparison_release(prony_comparison *comparison);
/* Metrics that both know, in the order of the registry. Owned by the comparison, their definitions by the registry. */
PRONY_API const prony_compare_metric *prony_comparison_metrics(const prony_comparison *comparison, size_t *count);
/* Layers measured in both and matched by name, in the first one's order. Owned by the comparison. */
PRONY_API const prony_compare_row *prony_comparison_layers(const prony_comparison *comparison, size_t *count);
/* Sums by operator type, of types that both reports measured. Owned by the comparison. */
PRONY_API const prony_compare_row *prony_comparison_types(const prony_comparison *comparison, size_t *count);
/* Layers in subgraphs, named by their whole path ("decode > body > Add_3"), likewise; their times are part of those of
 * the layers around them. Owned by the comparison. */
PRONY_API const prony_compare_row *prony_comparison_nested(const prony_comparison *comparison, size_t *count);
/* Differences in model, configuration and machine, and reasons that weaken the verdict; each a sentence. Owned
 * by the comparison. */
PRONY_API const char *const *prony_comparison_notes(const prony_comparison *comparison, size_t *count);
/* Deciding metrics whose verdict is PRONY_VERDICT_WORSE: latency, throughput, memory held, those that the user defined;
 * accuracy; or those of `keys`. */
PRONY_API size_t prony_comparison_regressions(const prony_comparison *comparison);
/* Deciding metrics that look worse, with a verdict of PRONY_VERDICT_UNSURE. */
PRONY_API size_t prony_comparison_undecided(const prony_comparison *comparison);
/* PRONY_FORMAT_TEXT or PRONY_FORMAT_JSON ("prony.comparison/1"); colour, width, top (rows of each table; 0: ten) and
 * all (every row, and metrics of one ratio apart) count. */
PRONY_API PRONY_MUST_USE prony_status prony_comparison_write(const prony_comparison *comparison, prony_format format,
                                                             const prony_write_options *options, prony_write_fn write,
                                                             void *user, prony_error *error);

/* A limit on a metric: at most where smaller is better, at least where larger is. */
typedef struct prony_threshold {
    const prony_metric *metric; /* of the registry that it was read with */
    double limit;
    char text[64]; /* "100 ms" */
} prony_threshold;
/* "latency:100ms", "throughput:1000samples/s", "memory:64MiB": a metric's key or one of the short names p50, p90, p95,
 * p99, p999, mean, min, max, time, fps, rss, params, size, accuracy, top1, top5. An unknown metric, one without a
 * direction, and a value that lacks the metric's unit are PRONY_INVALID_ARGUMENT. */
PRONY_API PRONY_MUST_USE prony_status prony_threshold_parse(prony_threshold *out, const prony_metrics *metrics,
                                                            const char *text, prony_error *error);

typedef enum prony_outcome {
    PRONY_OUTCOME_MET,
    PRONY_OUTCOME_MISSED,
    PRONY_OUTCOME_UNKNOWN,  /* the report does not know the metric */
    PRONY_OUTCOME_WITHHELD, /* a time or rate beyond the limit, of which others that had the machine may be the cause:
                               the report's disturbance is busy, and the fastest run meets the limit */
    PRONY_OUTCOME_OPEN /* beyond the limit, but the interval reaches to it: nothing tells it from a value that meets
                              it */
} prony_outcome;

typedef struct prony_check_row {
    prony_threshold threshold;
    prony_metric_value value;
    prony_outcome outcome;
    double margin; /* part of the limit that is left, negative if it is missed; NaN where it is unknown or the limit is
                      0 */
    double interval[2]; /* of latencies and rates whose runs the report holds; NaN: the value is taken as it is. 99 %,
                           as the limit may come from a measurement like this one */
} prony_check_row;
/* Checks the report against `count` thresholds, which come from `metrics`. rows[count] is the caller's: rows[i] is of
 * thresholds[i], and valid as long as `metrics`. */
PRONY_API PRONY_MUST_USE prony_status prony_check(prony_check_row *rows, const prony_report *report,
                                                  const prony_metrics *metrics, const prony_threshold *thresholds,
                                                  size_t count, prony_error *error);
/* PRONY_FORMAT_TEXT or PRONY_FORMAT_JSON ("prony.check/1"); colour and width count. `target` names what was checked. */
PRONY_API PRONY_MUST_USE prony_status prony_check_write(const prony_check_row *rows, size_t count, const char *target,
                                                        prony_format format, const prony_write_options *options,
                                                        prony_write_fn write, void *user, prony_error *error);

typedef struct prony_advice {
    const char *topic;  /* "batch", "threads", "fusion", "precision", "overhead", "memory", "device" */
    bool applies;       /* false: was looked at, and `reason` says why nothing is recommended; the rest is not set */
    const char *action; /* what to change */
    const char *reason; /* the figures that it rests on */
    const char *metric; /* key of what gains */
    bool measured;      /* in a variant that was given; false: computed from the report, and the most there is to
                           gain */
    double gain; /* fraction of the metric's value: 0.25 is a quarter less latency, or a quarter more throughput */
    char gain_text[96];
} prony_advice;
/* Proposed changes, each with its measured or computed reason. `variants` are reports of the same model with another
 * batch, another number of threads, or rewrites on, measured beside `report` (prony_profile_interleaved); without them
 * the advice omits batch and threads. At least one row per topic; those that apply come first. prony_rows_release frees
 * *rows, texts included. */
PRONY_API PRONY_MUST_USE prony_status prony_recommend(prony_advice **rows, size_t *count, const prony_report *report,
                                                      const prony_report *const *variants, size_t variant_count,
                                                      prony_error *error);
/* PRONY_FORMAT_TEXT or PRONY_FORMAT_JSON ("prony.recommendation/1"); colour and width count. */
PRONY_API PRONY_MUST_USE prony_status prony_advice_write(const prony_advice *rows, size_t count, const char *target,
                                                         prony_format format, const prony_write_options *options,
                                                         prony_write_fn write, void *user, prony_error *error);

/* ---- documents as tables ----------------------------------------------------------------------------------------- */

/* Writes a JSON document of Prony as tables: PRONY_FORMAT_CSV (one table: options->chart names it; NULL: the first),
 * PRONY_FORMAT_MARKDOWN, PRONY_FORMAT_HTML, and of "prony.check/1" PRONY_FORMAT_JUNIT. The schemas are
 * "prony.comparison/1", "prony.check/1", "prony.versus/1", "prony.recommendation/1", "prony.load/1", "prony.matrix/1",
 * "prony.study/1", "prony.capacity/1" and "prony.report/1". `name` stands in messages. */
PRONY_API PRONY_MUST_USE prony_status prony_document_write(const char *name, const char *json, size_t size,
                                                           prony_format format, const prony_write_options *options,
                                                           prony_write_fn write, void *user, prony_error *error);
/* Writes by way of a temporary name, so that a failure leaves an old file intact. */
PRONY_API PRONY_MUST_USE prony_status prony_document_save(const char *name, const char *json, size_t size,
                                                          prony_format format, const prony_write_options *options,
                                                          const char *path, prony_error *error);
/* The name of a schema's table; NULL after the last one. */
PRONY_API const char *prony_document_table_name(const char *schema, size_t index);

/* ---- beside another engine ---- */

/* Two engines on one model and machine, "prony.versus/1". The caller measures both in turns, each time in
 * a fresh process with the same inputs (`prony versus` does), and adds what each found. Not thread-safe. */
typedef struct prony_versus prony_versus;

typedef struct prony_versus_process {
    int intra_op_threads;
    uint64_t runs;
    int64_t median_ns;      /* of their latencies */
    int64_t start_ns;       /* from the file to a session that can run; -1: not known */
    int64_t peak_rss_bytes; /* of the process; -1: not known */
    prony_load load;        /* while it measured */
    double others_share;    /* share of the processors that other processes took; negative: not known */
} prony_versus_process;

/* `profile`: report of this engine with stamps, for its operators, the model and the machine; it must outlive *out.
 * `peer` is the other engine's name and version, `library` its file. */
PRONY_API PRONY_MUST_USE prony_status prony_versus_create(prony_versus **out, const prony_report *profile,
                                                          const char *peer, const char *library, prony_error *error);
/* Frees the comparison of engines. NULL is accepted. */
PRONY_API void prony_versus_release(prony_versus *versus);
/* The measurement of a process of this engine, by its report; loading, binding, rewriting and planning are its
 * start. */
PRONY_API PRONY_MUST_USE prony_status prony_versus_process_of(prony_versus_process *out, const prony_report *report,
                                                              int64_t peak_rss_bytes, prony_error *error);
/* A process of this engine or of the other one: the k-th of each with one number of threads are a pair. */
PRONY_API PRONY_MUST_USE prony_status prony_versus_add(prony_versus *versus, bool peer,
                                                       const prony_versus_process *process, prony_error *error);
/* An output of both, by its name: whether they agree, and the largest difference as part of the output's range (NaN:
 * there is no such number). `reason`: what does not fit; may be NULL. */
PRONY_API PRONY_MUST_USE prony_status prony_versus_add_output(prony_versus *versus, const char *name, bool agrees,
                                                              double difference, const char *reason,
                                                              prony_error *error);
/* ONNX Runtime's own profile of some runs, as it writes it (JSON): nodes are joined with this engine's operators by the
 * names of the layers. `name` stands for it in messages. */
PRONY_API PRONY_MUST_USE prony_status prony_versus_add_peer_profile(prony_versus *versus, const char *name,
                                                                    const char *text, size_t size, prony_error *error);

/* From now on busy pairs count like quiet ones. */
PRONY_API void prony_versus_ignore_load(prony_versus *versus);
/* A verdict takes this many pairs: the range of fewer holds the median with less than 95 %. */
enum { PRONY_VERSUS_LEAST_PAIRS = 6 };
typedef struct prony_versus_result {
    int intra_op_threads;
    size_t pairs;           /* pairs behind the values: the quiet ones, or all if fewer than six are quiet */
    double own_ns, peer_ns; /* medians over the processes of these pairs */
    double ratio;           /* peer / own: above 1 this engine is faster; the median over the pairs */
    double ratio_ci95[2];   /* between two of the ratios, whatever their distribution; infinite: fewer than six pairs
                               give no interval of 95 % */
    prony_verdict verdict;  /* PRONY_VERDICT_BETTER: this engine is faster; UNSURE: the interval reaches to both sides
                               of 1, or `withheld` */
    double own_start_ns, peer_start_ns, own_peak_rss_bytes, peer_peak_rss_bytes; /* medians; negative: not known */
    size_t measured_pairs, busy_pairs; /* pairs during which other processes used the machine */
    bool withheld;                     /* fewer than six pairs are quiet, so the verdict is UNSURE */
    double ratio_least, ratio_most;    /* of the pairs */
    double others_share;               /* largest value of the processes of these pairs; negative: not known */
} prony_versus_result;
/* One row for each number of threads, in the order of their first processes. Owned by `versus`, and valid until its
 * next addition. */
PRONY_API PRONY_MUST_USE prony_status prony_versus_results(const prony_versus_result **rows, size_t *count,
                                                           prony_versus *versus, prony_error *error);
/* "faster", "slower", "as fast", "cannot tell", "not judged" or "undecided", said of this engine. */
PRONY_API const char *prony_versus_verdict_text(const prony_versus_result *row);

typedef struct prony_versus_operator {
    const char *name, *kernel; /* of this engine's operator; of what the peer has alone its operator type, and "" */
    double own_ns, peer_ns;    /* negative: no operator of that name */
    size_t nodes;              /* of the peer */
} prony_versus_operator;
/* Operators on which the peer is ahead come first; those without a counterpart come last, by their time. NULL without a
 * profile of the peer. Owned by `versus`. */
PRONY_API const prony_versus_operator *prony_versus_operators(const prony_versus *versus, size_t *count);

/* PRONY_FORMAT_TEXT or PRONY_FORMAT_JSON; colour, width and top (rows of operators) count. */
PRONY_API PRONY_MUST_USE prony_status prony_versus_write(prony_versus *versus, prony_format format,
                                                         const prony_write_options *options, prony_write_fn write,
                                                         void *user, prony_error *error);

/* ---- thread-scaling studies ---- */

/* An experiment that others can repeat, "prony.study/1": a plan of configurations in a random order from a stated
 * seed, several fresh processes for each, and their results. The caller starts the processes (`prony scale` does).
 * Each process measures, and writes its results by prony_study_sample_write. Not thread-safe. */
typedef struct prony_study prony_study;

typedef struct prony_study_options {
    size_t struct_size;
    const int64_t *intra_op, *inter_op; /* thread counts; 0 among intra_op: `-x auto`. None: 1, 2, 4 … usable; 1 */
    size_t intra_op_count, inter_op_count;
    const int64_t *batches; /* none: the model's own, or what `session` says */
    size_t batch_count;
    const char *const *precisions; /* none: fp32 */
    size_t precision_count;
    bool weak;                    /* the batch grows with the threads: the batch times intra-op times inter-op */
    uint64_t seed;                /* of the order, and of generated inputs */
    int processes;                /* of each configuration; 0: 10 */
    int64_t runs;                 /* measured runs of a process; 0: as many as `seconds` allow */
    double seconds;               /* of a process's measurement; 0: 1 */
    int64_t warmup_runs;          /* -1: detected */
    double budget_seconds;        /* of the whole study: `seconds`, then `processes` follow from it; 0: none */
    const char *const *arguments; /* further options of the processes, for the record and for repeating */
    size_t argument_count;
    const prony_session_options *session; /* for the manifest; NULL: defaults */
    const int64_t *replicas;              /* independent processes at once; none: 1 */
    size_t replica_count;
} prony_study_options;
#define PRONY_STUDY_OPTIONS_INIT PRONY_INIT_WITH(prony_study_options, warmup_runs, -1)

/* Plans; nothing runs. A serial baseline (1 thread, 1 worker) is in every plan, and once more, to show the
 * difference of the machine to itself. */
PRONY_API PRONY_MUST_USE prony_status prony_study_create(prony_study **out, prony_model *model,
                                                         const prony_study_options *options, prony_error *error);
/* Damaged files, other versions and studies of another model (where `model` is given) are errors that say so. */
PRONY_API PRONY_MUST_USE prony_status prony_study_load(prony_study **out, const char *path, const prony_model *model,
                                                       prony_error *error);
/* Takes the plan of `earlier`, to measure it here on the same model. */
PRONY_API PRONY_MUST_USE prony_status prony_study_repeat(prony_study **out, const prony_study *earlier,
                                                         prony_model *model, prony_error *error);
/* Limits the whole study to `seconds`, as budget_seconds does; a replication may be cheaper. Must be called before the
 * first block. */
PRONY_API PRONY_MUST_USE prony_status prony_study_set_budget(prony_study *study, double seconds, prony_error *error);
/* The model's file when the study was planned: an absolute path, unless an older version planned it. Lives with the
 * study. */
PRONY_API const char *prony_study_model_path(const prony_study *study);
/* Frees the study and its results. NULL is accepted. */
PRONY_API void prony_study_release(prony_study *study);

typedef struct prony_study_task {
    size_t block; /* its number in the file */
    size_t configuration;
    int process;   /* of this configuration, from 0 */
    bool repeated; /* a block of this configuration was disturbed */
    int intra_op_threads, inter_op_threads;
    int64_t batch; /* 0: not given */
    const char *precision;
    int64_t runs, warmup_runs;
    double seconds;
} prony_study_task;

/* The next measurement; false: the study is complete. */
PRONY_API bool prony_study_next(const prony_study *study, prony_study_task *out);
/* Writes a process's measurement: `latency` of a session without stamps, `operators` (may be NULL) of one with
 * trace_threads. */
PRONY_API PRONY_MUST_USE prony_status prony_study_sample_write(const prony_report *latency,
                                                               const prony_report *operators, prony_write_fn write,
                                                               void *user, prony_error *error);

typedef struct prony_study_process {
    const char *sample; /* what prony_study_sample_write wrote */
    size_t sample_bytes;
    const char *failure; /* instead of a sample: what happened */
    bool refused;        /* the process reported that this configuration cannot run: it is not tried again */
    int64_t cpu_ns;      /* that the process took */
    prony_machine_state before, after;
} prony_study_process;
/* Adds the block that `task` (from prony_study_next) asked for; the process's texts are copied. A sample of another
 * version or model is PRONY_INVALID_ARGUMENT. */
PRONY_API PRONY_MUST_USE prony_status prony_study_add(prony_study *study, const prony_study_task *task,
                                                      const prony_study_process *process, prony_error *error);

/* ---- replicas ---- */

/* Processes of a configuration that run at once, from one start: 1 where it has no replicas. */
PRONY_API int prony_study_replicas(const prony_study *study, size_t configuration);
/* As prony_study_add_on, of `count` processes that ran at once: as many as the configuration has replicas. Each one's
 * cpu_ns is that of all, and so are the states of the machine. A failure of one is the block's. */
PRONY_API PRONY_MUST_USE prony_status prony_study_add_replicas(prony_study *study, size_t node,
                                                               const prony_study_task *task,
                                                               const prony_study_process *processes, size_t count,
                                                               prony_error *error);
/* Throughput of all replicas together beside that of one, after prony_study_analyse. Efficiency is the speed-up over
 * the number of replicas. */
typedef struct prony_study_replica_result {
    int replicas;
    size_t rounds;
    double samples_per_second, ci95[2], speedup, speedup_ci95[2], efficiency, efficiency_ci95[2];
    /* Over nodes: of all nodes together, in the rounds that each of them has, and their efficiency against one replica
     * on each node. all_nodes_rounds 0: one machine, or no such round. */
    size_t all_nodes_rounds;
    double all_nodes_samples_per_second, all_nodes_ci95[2], all_nodes_efficiency;
} prony_study_replica_result;
/* Writes the result of `configuration` to *out, after prony_study_analyse. false: the configuration has no
 * replicas, or was not measured. */
PRONY_API bool prony_study_replica_result_of(const prony_study *study, size_t configuration,
                                             prony_study_replica_result *out);

/* The next block of `configuration` on a node, so that all nodes can measure it at once, whatever the plan has before
 * it. False: the plan has no such block left. */
PRONY_API bool prony_study_next_of(const prony_study *study, size_t node, size_t configuration, prony_study_task *out);

/* ---- studies over the nodes of a cluster ---- */

/* Each node writes its description (manifest, processors, NUMA, microcode, network) for prony_study_set_nodes. `model`
 * is the study's model; `session` may be NULL. */
PRONY_API PRONY_MUST_USE prony_status prony_study_node_write(prony_model *model, const prony_session_options *session,
                                                             prony_write_fn write, void *user, prony_error *error);
/* Makes a study that has no blocks yet one over these nodes: each round then holds every configuration once on every
 * node. nodes[i], of sizes[i] bytes, is what prony_study_node_write wrote on node i. A node with another model is an
 * error that names it. */
PRONY_API PRONY_MUST_USE prony_status prony_study_set_nodes(prony_study *study, const char *const *nodes,
                                                            const size_t *sizes, size_t count, prony_error *error);
/* Number of nodes; 0: a study of one machine. */
PRONY_API size_t prony_study_node_count(const prony_study *study);
/* Host name of a node; NULL: the study has no such node. */
PRONY_API const char *prony_study_node_host(const prony_study *study, size_t node);
/* As prony_study_next and prony_study_add, on one node. *position (may be NULL): of the block in the plan's order,
 * PRONY_NO_INDEX where a disturbed block is measured again. Nodes may measure at the same time, one block each. */
PRONY_API bool prony_study_next_on(const prony_study *study, size_t node, prony_study_task *out, size_t *position);
/* As prony_study_add, of a block that `node` measured. */
PRONY_API PRONY_MUST_USE prony_status prony_study_add_on(prony_study *study, size_t node, const prony_study_task *task,
                                                         const prony_study_process *process, prony_error *error);

typedef struct prony_study_progress {
    size_t done, planned; /* blocks */
    size_t failed, disturbed;
    double seconds_left; /* by the blocks so far */
    double half_width;   /* of the widest interval at the end, relative, by the processes so far; NaN: not known
                              yet */
} prony_study_progress;
/* Writes the study's progress to *out. */
PRONY_API void prony_study_progress_of(const prony_study *study, prony_study_progress *out);

/* Results, fits, operators and the verdict on the data, of what was measured so far. */
PRONY_API PRONY_MUST_USE prony_status prony_study_analyse(prony_study *study, prony_error *error);
/* Compares an analysed study with an earlier one of the same plan. *different (may be NULL): number of
 * configurations that differ. */
PRONY_API PRONY_MUST_USE prony_status prony_study_compare(prony_study *study, const prony_study *earlier,
                                                          size_t *different, prony_error *error);

typedef struct prony_study_result {
    int intra_op_threads, inter_op_threads;
    int64_t batch;
    const char *precision;
    bool is_duplicate;   /* the baseline's second time */
    bool oversubscribed; /* more threads than processors, or than the quota allows */
    size_t processes;    /* that count */
    double median_ns, ci95_ns[2];
    double samples_per_second, speedup, speedup_ci95[2], efficiency, efficiency_ci95[2];
    double karp_flatt; /* NaN: one thread, or weak scaling */
} prony_study_result;
/* One per configuration, after prony_study_analyse. Over nodes: the median of the nodes' medians; intervals draw nodes,
 * then processes. NULL: not analysed. Owned by the study, and valid until it is analysed again. */
PRONY_API const prony_study_result *prony_study_results(const prony_study *study, size_t *count);
/* The results of one node, owned likewise; NULL: the study has no such node, or was not analysed. */
PRONY_API const prony_study_result *prony_study_results_on(const prony_study *study, size_t node, size_t *count);
/* A node's times beside those of all others, after prony_study_analyse. */
typedef struct prony_study_node_verdict {
    const char *verdict; /* "slower", "faster", "same" or "cannot tell" */
    double ratio;        /* of the node's times to the others'; NaN: not measured */
    double interval[2];  /* 95 % */
} prony_study_node_verdict;
/* Writes the verdict on `node` to *out, after prony_study_analyse. false: no such node, or fewer than two nodes
 * were measured. */
PRONY_API bool prony_study_node_verdict_of(const prony_study *study, size_t node, prony_study_node_verdict *out);
/* Arguments of the plan, and its options as they were given. Owned by the study. */
PRONY_API const char *const *prony_study_arguments(const prony_study *study, size_t *count);
/* Seed of the random order of blocks and of generated inputs. */
PRONY_API uint64_t prony_study_seed(const prony_study *study);

/* PRONY_FORMAT_TEXT, JSON, CSV (a row a sample), MARKDOWN, HTML or SVG (options->chart: "speedup", "efficiency",
 * "operators" or "timeline"). */
PRONY_API PRONY_MUST_USE prony_status prony_study_write(const prony_study *study, prony_format format,
                                                        const prony_write_options *options, prony_write_fn write,
                                                        void *user, prony_error *error);
/* Writes by way of a temporary name, so that a failure leaves an old file intact. */
PRONY_API PRONY_MUST_USE prony_status prony_study_save(const prony_study *study, prony_format format,
                                                       const prony_write_options *options, const char *path,
                                                       prony_error *error);
/* Studies side by side, each analysed. The first one is the baseline, with which every other one is compared by the
 * configurations that both have; their plans may differ. `names` label the studies. PRONY_FORMAT_TEXT, JSON
 * ("prony.studies/1"), CSV (a row a result), HTML or SVG (options->chart: "throughput" or "speedup"). */
PRONY_API PRONY_MUST_USE prony_status prony_studies_write(prony_study *const *studies, const char *const *names,
                                                          size_t count, prony_format format,
                                                          const prony_write_options *options, prony_write_fn write,
                                                          void *user, prony_error *error);
/* Configurations that differ from the study with which this one was compared last. */
PRONY_API size_t prony_study_differences(const prony_study *study);
/* Charts that prony_study_write draws as SVG, ending with NULL. Static. */
PRONY_API const char *const *prony_study_chart_names(void);

#ifdef __cplusplus
}
#endif
#endif
