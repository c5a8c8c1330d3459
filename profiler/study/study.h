/* A scaling study in memory, shared by study_plan.c (the plan), study_sample.c (a process's results), study_analyse.c
 * and related files, and the readers and writers. Its pool owns everything except growing arrays, which
 * prony_study_release frees.
 *
 * Invariant: blocks stay in the order of measurement, also failed and disturbed ones; no measurement is ever removed. A
 * study of one machine has no nodes, and all of its blocks have node 0.
 */
#ifndef PRN_PROFILER_STUDY_STUDY_H
#define PRN_PROFILER_STUDY_STUDY_H

#include "base/cpu/node_facts.h"
#include "profiler/statistics/statistics.h"
#include "profiler/json/json_write.h"
#include "profiler/report/report.h"
#include "prony_judge.h"

#define PRN_STUDY_SCHEMA "prony.study/1"
#define PRN_STUDY_MOST_CONFIGURATIONS 256
#define PRN_STUDY_MOST_PROCESSES 1000
#define PRN_STUDY_EQUAL 0.05     /* margin of "same" */
#define PRN_STUDY_FEWEST_QUIET 3 /* fewest undisturbed processes for results without disturbed ones */
#define PRN_STUDY_REPEATS 4      /* one block in so many may be measured again */
#define PRN_STUDY_MOST_NODES 1024
#define PRN_STUDY_MOST_REPLICAS 1024
#define PRN_STUDY_ALL_NODES SIZE_MAX
#define PRN_STUDY_FEWEST_NODES 3 /* fewest nodes that bootstraps draw; with fewer they draw processes alone */

/* Facts of an operator that do not depend on the thread count. */
typedef struct prn_study_operator {
    const char *name, *op, *kernel;
    uint64_t flops, bytes;
    uint64_t bf16_products; /* bf16 products per float32 product of its kernel; 0: none */
    bool on_path;           /* on the critical path */
} prn_study_operator;

/* One process's measurement of an operator. */
typedef struct prn_study_operator_time {
    int64_t time_ns;    /* median */
    int64_t tasks;      /* tasks in the last run; 0: not split */
    int64_t members;    /* threads that took part */
    int64_t busy_ns;    /* of all of them */
    int64_t longest_ns; /* of the busiest */
    int64_t wake_ns;    /* mean time until the others began */
} prn_study_operator_time;

typedef struct prn_study_configuration {
    int intra_op, inter_op;
    int replicas;  /* processes at once; 0: one */
    int64_t batch; /* 0: not given */
    const char *precision;
    size_t group;        /* configurations that share a baseline */
    bool baseline;       /* serial: 1 thread, 1 worker */
    bool again;          /* the repeated baseline */
    bool beyond;         /* more processors than the quota */
    const char *refused; /* the reason why it cannot run; NULL: it can */
    int64_t samples;     /* samples of a run: the model's batch; 0: not known yet */
    prn_study_operator *operators;
    size_t operator_count;
} prn_study_configuration;

/* A node of the cluster that takes part. */
typedef struct prn_study_node {
    const char *host;
    int usable; /* processors within the quota */
    prn_node_facts facts;
    const uint64_t *numa_memory_bytes; /* as read from a document; `facts` is what is written */
    size_t numa_count;
    prony_report *manifest; /* its fields lie in the study's pool */
    size_t lane;            /* nodes of one host share a lane, in which one block runs at a time */
} prn_study_node;

typedef struct prn_study_block {
    size_t configuration;
    size_t node;
    int replica; /* the blocks of replicas that ran at once follow one another, from 0 */
    int process;
    bool again; /* repeated because a block was disturbed */
    prony_machine_state before, after;
    int64_t cpu_ns;
    const char *failure; /* NULL: it has samples */
    int64_t *samples_ns;
    size_t sample_count;
    int64_t warmup_runs;
    bool warmup_detected;
    int64_t involuntary_switches;
    size_t changes; /* of level among the samples */
    double others;  /* share of the processors that other processes took; NaN: not known */
    double steal;
    const char *disturbed;          /* the reason; NULL: not disturbed, or failed */
    prn_study_operator_time *parts; /* [operator_count of the configuration]; NULL: none */
} prn_study_block;

typedef struct prn_study_fit {
    size_t group;
    prn_law law;
    bool inter; /* over workers; else over threads inside operators */
    prn_law_fit fit;
    const char *reason; /* reason for a missing fit */
} prn_study_fit;

/* An operator's loss at a thread count, against the baseline. */
typedef struct prn_study_loss {
    size_t configuration, operator;
    double time_ns, serial_ns, lost_ns, efficiency;
    const char *reason;
} prn_study_loss;

/* The throughput of replicas against one process: a configuration and the single one that it repeats. */
typedef struct prn_study_replication {
    size_t configuration, single;
    prony_study_replica_result result;
    bool over_nodes; /* the result has figures of all nodes together */
} prn_study_replication;

/* A law of throughput over replicas of a configuration. */
typedef struct prn_study_replica_fit {
    size_t configuration; /* the single one */
    prn_law law;
    prn_law_fit fit;
} prn_study_replica_fit;

/* Bytes that one replica of a configuration moves, and the number of replicas that fill the memory bandwidth. */
typedef struct prn_study_replica_bandwidth {
    size_t configuration;    /* the single one */
    double bytes_per_second; /* of one replica */
    double roof_bytes_per_second;
    int64_t full_at; /* replicas; 0: none, the processors' own caches hold the data of each operator */
} prn_study_replica_bandwidth;

/* An upper bound of the speed-up on this machine. */
typedef struct prn_study_limit {
    size_t group;
    int processors;
    double speedup;
    const char *why;
} prn_study_limit;

typedef struct prn_study_quality {
    const char *verdict;         /* "good", "fair", "poor" */
    double aa_ratio, aa_ci95[2]; /* second baseline over the first; NaN: not measured */
    const char *aa;              /* "same", "different", "cannot tell" */
    size_t disturbed, failed, blocks;
    double widest; /* relative half width of an interval */
    const char *const *notes;
    size_t note_count;
} prn_study_quality;

typedef struct prn_study_difference {
    size_t configuration;
    double earlier_ns, ratio, interval[2], p;
    double within; /* the smallest margin within which it is the same; NaN: not known */
    const char *verdict, *why;
} prn_study_difference;

/* A node compared with all others. Times are relative to the other nodes' median of the same configuration. */
typedef struct prn_study_node_difference {
    size_t node;
    double ratio, interval[2], p;
    size_t worst; /* configuration that deviates most; PRONY_NO_INDEX: not measured */
    double worst_ratio;
    const char *verdict;         /* "slower", "faster", "same", "cannot tell" */
    const char *const *manifest; /* facts in which the node differs from most others */
    size_t manifest_count;
} prn_study_node_difference;

typedef struct prn_study_environment {
    bool known;                   /* studies of older versions have none */
    const char *model_path;       /* absolute; NULL: not a file */
    const char *const *variables; /* "OMP_NUM_THREADS=4", sorted */
    size_t variable_count;
    char smt[32], microcode[32];
    char huge_pages[16]; /* transparent ones: always, madvise, never */
    char container[32];
    const uint64_t *numa_memory_bytes;
    size_t numa_count;
} prn_study_environment;

struct prony_study {
    prn_bump pool;
    prony_report *manifest;
    prn_study_environment environment;
    uint64_t seed;
    bool weak;
    int processes, usable; /* usable: processors within the quota */
    int64_t runs, warmup_runs;
    double seconds, budget_seconds;
    const char *const *arguments;
    size_t argument_count;
    prn_study_configuration *configurations;
    size_t configuration_count;
    uint32_t *order; /* configurations, one per block */
    size_t order_count;
    bool over_nodes;
    prn_study_node *nodes; /* NULL: one machine */
    size_t node_count;
    uint32_t *order_nodes; /* [order_count]; NULL: one machine */
    size_t order_node_count;

    prn_study_block *blocks;
    size_t block_count, block_capacity;

    /* By prony_study_analyse, in `results_pool`. */
    prn_bump results_pool;
    bool analysed;
    prony_study_result *results;
    prony_study_result *node_results; /* [node_count * configuration_count], node by node */
    size_t node_result_count;
    prn_study_node_difference *node_differences;
    size_t node_difference_count;
    prn_study_replication *replications;
    size_t replication_count;
    prn_study_replica_fit *replica_fits;
    size_t replica_fit_count;
    prn_study_replica_bandwidth *replica_bandwidths;
    size_t replica_bandwidth_count;
    prn_study_fit *fits;
    size_t fit_count;
    prn_study_loss *losses;
    size_t loss_count;
    prn_study_limit *limits;
    size_t limit_count;
    prn_study_quality quality;
    prn_study_difference *differences;
    size_t difference_count;
    bool compared;
    const char *const *manifest_differences;
    size_t manifest_difference_count;
};

/* study_environment.c. `model` is a path, or NULL. */
PRN_MUST_USE prony_status prn_study_environment_read(prony_study *study, const char *model, prony_error *error);
/* All variables in one line, "" without any. NULL: out of memory. */
const char *prn_study_variables(const prn_study_environment *environment, prn_bump *pool);

/* study_plan.c and study_blocks.c. `usable` processors; the manifest is taken over. */
PRN_MUST_USE prony_status prn_study_plan(prony_study **out, prony_report *manifest, const prony_study_options *options,
                                         int usable, prony_error *error);
PRN_MUST_USE prony_status prn_study_plan_again(prony_study **out, prony_report *manifest, const prony_study *earlier,
                                               int usable, prony_error *error);
int prn_study_threads(const prn_study_configuration *c);
/* 1 or more. */
int prn_study_replicas(const prn_study_configuration *c);
/* Threads of all replicas. */
int prn_study_processors(const prn_study_configuration *c);
/* Rounds done: blocks that begin a round, as counted by the plan. */
size_t prn_study_rounds_done(const prony_study *study);
/* Blocks of this configuration with samples: the undisturbed ones if they are 3 or more, else all. `out` may be
 * NULL. */
size_t prn_study_blocks_of(const prony_study *study, size_t configuration, const prn_study_block **out);
double prn_study_block_median(const prn_study_block *block);
/* The same for one node, or for PRN_STUDY_ALL_NODES. */
size_t prn_study_blocks_on(const prony_study *s, size_t node, size_t configuration, const prn_study_block **out);
/* Medians of the processes of `of`, in the results' pool of `s`; of replicas, the median of each round's. */
PRN_MUST_USE prony_status prn_study_medians(prony_study *s, const prony_study *of, size_t node, size_t configuration,
                                            prn_processes *out, prony_error *error);
/* PRONY_NO_INDEX: the group has no baseline. */
size_t prn_study_baseline(const prony_study *study, size_t group);
/* Judges what disturbed a block from its states; study_sample.c. */
void prn_study_judge_block(prn_study_block *block);
/* "4 threads", "3 x 2 threads, batch 8, bf16" (intra-op x inter-op): the label that is unique in this plan. */
#define PRN_STUDY_LABEL_BYTES 96
const char *prn_study_label(const prony_study *study, size_t configuration, char text[PRN_STUDY_LABEL_BYTES]);
size_t prn_study_groups(const prony_study *study);
/* Draws the order of the blocks from the seed. */
PRN_MUST_USE prony_status prn_study_make_order(prony_study *study, prony_error *error);

/* study_nodes.c: the nodes of a study; study_set_nodes.c sets them. */
size_t prn_study_node_total(const prony_study *study); /* 1 of one machine */
size_t prn_study_lane_of(const prony_study *study, size_t node);
size_t prn_study_lanes(const prony_study *study);
/* Nodes in a lane. */
size_t prn_study_lane_nodes(const prony_study *study, size_t lane);
/* "host", or "host, rank 3" if several nodes have that name. */
#define PRN_STUDY_NODE_BYTES 160
const char *prn_study_node_label(const prony_study *study, size_t node, char text[PRN_STUDY_NODE_BYTES]);
/* Finds the lanes, after the nodes were read or set. */
void prn_study_find_lanes(prony_study *study);

/* ---- study_replicas.c ---- */

/* Samples per second of each round, all replicas together. */
PRN_MUST_USE prony_status prn_study_rates(prony_study *s, size_t node, size_t configuration, prn_processes *out,
                                          prony_error *error);
prony_status prn_study_find_replications(prony_study *s, prony_error *error);
/* False: without roofs, or without the operators of the configuration. (study_bandwidth.c) */
bool prn_study_replica_bandwidth_of(const prony_study *s, size_t single, prn_study_replica_bandwidth *out);
/* true: all replicas of the round follow the block that begins it. */
bool prn_study_round_is_whole(const prony_study *s, size_t block);

/* study_over_nodes.c: results over nodes. Ratios base / of are paired by rounds on each node. */
PRN_MUST_USE prony_status prn_study_time_over_nodes(prony_study *s, size_t configuration, prony_study_result *r,
                                                    prony_error *error);
PRN_MUST_USE prony_status prn_study_speedup_over_nodes(prony_study *s, size_t base, size_t of, prony_study_result *r,
                                                       prony_error *error);
/* One median per node. */
PRN_MUST_USE prony_status prn_study_node_levels(prony_study *s, size_t configuration, prn_processes *out,
                                                prony_error *error);
PRN_MUST_USE prony_status prn_study_compare_nodes(prony_study *s, prony_error *error);
/* study_blocks.c: ratios base / of by rounds on a node. */
PRN_MUST_USE prony_status prn_study_pair_rounds(prony_study *s, size_t node, size_t base, size_t of, prn_processes *out,
                                                bool *paired, prony_error *error);

/* ---- study_quality.c ---- */

/* The configuration of `s` that is the same as `configuration` of `of`; PRONY_NO_INDEX: it has none. */
size_t prn_study_match(const prony_study *s, const prony_study *of, size_t configuration);
/* As prony_study_compare, of studies with any plans: configurations that both have are compared. */
PRN_MUST_USE prony_status prn_study_compare_any(prony_study *s, const prony_study *earlier, size_t *different,
                                                prony_error *error);

/* study_scaling.c, study_quality.c: parts of prony_study_analyse. */
prony_status prn_study_fit_laws(prony_study *study, prony_error *error);
prony_status prn_study_find_losses(prony_study *study, prony_error *error);
prony_status prn_study_find_limits(prony_study *study, prony_error *error);
prony_status prn_study_judge_data(prony_study *study, prony_error *error);

/* study_read.c */
PRN_MUST_USE prony_status prn_study_read(prony_study **out, const char *file, const char *text, size_t size,
                                         prony_error *error);

/* Writers behind prony_study_write. */
typedef prony_status prn_study_writer(const prony_study *study, const prony_write_options *options,
                                      prony_write_fn write, void *user, prony_error *error);
PRN_MUST_USE prn_study_writer prn_study_write_json, prn_study_write_csv, prn_study_write_text, prn_study_write_svg,
    prn_study_write_html;
/* A description of the study's method, in sentences for a paper. */
const char *prn_study_statement(const prony_study *study, prn_bump *pool);

/* CSS of the pages of studies; tables scroll beyond `height`. */
#define PRN_STUDY_STYLE(height)                                                                                        \
    "td.n{text-align:right;font-variant-numeric:tabular-nums}svg{max-width:100%;height:auto}\n"                        \
    "table{width:100%;table-layout:auto}th,td{white-space:normal;max-width:none}"                                      \
    "th{text-align:left;padding:.2rem .5rem}.scroller{height:auto;max-height:" height "}\n"

#endif
