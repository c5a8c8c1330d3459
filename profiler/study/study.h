/* A scaling study in memory; between study_plan.c (what to measure), study_sample.c (what a process found),
 * study_analyse.c and its parts, and the readers and writers. Owned whole by its pool and, for what grows, by
 * prony_study_release.
 *
 * Invariant: blocks are kept in the order in which they were measured, also those that failed or were disturbed;
 * nothing that was measured is ever taken away.
 */
#ifndef PRN_PROFILER_STUDY_STUDY_H
#define PRN_PROFILER_STUDY_STUDY_H

#include "profiler/statistics/statistics.h"
#include "profiler/json/json_write.h"
#include "profiler/report/report.h"
#include "prony_judge.h"

#define PRN_STUDY_SCHEMA "prony.study/1"
#define PRN_STUDY_MOST_CONFIGURATIONS 256
#define PRN_STUDY_MOST_PROCESSES 1000
#define PRN_STUDY_EQUAL 0.05     /* margin of "same" */
#define PRN_STUDY_FEWEST_QUIET 3 /* undisturbed processes that results may rest on alone */
#define PRN_STUDY_REPEATS 4      /* one block in so many may be measured again */

/* What is the same for an operator at every thread count. */
typedef struct prn_study_operator {
    const char *name, *op, *kernel;
    uint64_t flops, bytes;
    uint64_t bf16_products; /* that its kernel makes a product of float32 of; 0: none */
    bool on_path;           /* of the longest chain */
} prn_study_operator;

/* What a process saw of an operator. */
typedef struct prn_study_part {
    int64_t time_ns;    /* median */
    int64_t tasks;      /* pieces of work in the last run; 0: not cut */
    int64_t members;    /* threads that took part */
    int64_t busy_ns;    /* of all of them */
    int64_t longest_ns; /* of the busiest */
    int64_t wake_ns;    /* mean time until the others began */
} prn_study_part;

typedef struct prn_study_configuration {
    int intra_op, inter_op;
    int64_t batch; /* 0: not given */
    const char *precision;
    size_t group;        /* configurations that share a baseline */
    bool baseline;       /* serial: 1 thread, 1 worker */
    bool again;          /* the baseline's second time */
    bool beyond;         /* of the quota */
    const char *refused; /* why it cannot run; NULL: it can */
    int64_t samples;     /* of a run: its batch as the model has it; 0: not known yet */
    prn_study_operator *operators;
    size_t operator_count;
} prn_study_configuration;

typedef struct prn_study_block {
    size_t configuration;
    int process;
    bool again; /* measured once more, because one was disturbed */
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
    const char *disturbed; /* why; NULL: it was not, or it failed */
    prn_study_part *parts; /* [operator_count of the configuration]; NULL: none */
} prn_study_block;

typedef struct prn_study_fit {
    size_t group;
    prn_law law;
    bool inter; /* over workers; else over threads inside operators */
    prn_law_fit fit;
    const char *reason; /* why there is none */
} prn_study_fit;

/* An operator at a thread count, beside the baseline. */
typedef struct prn_study_loss {
    size_t configuration, operator;
    double time_ns, serial_ns, lost_ns, efficiency;
    const char *reason;
} prn_study_loss;

/* What no number of this machine's processors gets beyond. */
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
    double within; /* the smallest margin by which it is the same; NaN: none is known */
    const char *verdict, *why;
} prn_study_difference;

struct prony_study {
    prn_bump pool;
    prony_report *manifest;
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

    prn_study_block *blocks;
    size_t block_count, block_capacity;

    /* By prony_study_analyse, in `results_pool`. */
    prn_bump results_pool;
    bool analysed;
    prony_study_result *results;
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

/* study_plan.c and study_blocks.c. `usable` processors; the manifest is taken over. */
PRN_MUST_USE prony_status prn_study_plan(prony_study **out, prony_report *manifest, const prony_study_options *options,
                                         int usable, prony_error *error);
PRN_MUST_USE prony_status prn_study_plan_again(prony_study **out, prony_report *manifest, const prony_study *earlier,
                                               int usable, prony_error *error);
int prn_study_threads(const prn_study_configuration *c);
/* Blocks of this configuration that gave samples; undisturbed ones if there are 3 or more of them, else all. `out` may
 * be NULL. */
size_t prn_study_blocks_of(const prony_study *study, size_t configuration, const prn_study_block **out);
double prn_study_block_median(const prn_study_block *block);
/* PRONY_NO_INDEX: the group has none. */
size_t prn_study_baseline(const prony_study *study, size_t group);
/* Judges what disturbed a block from its states; study_sample.c. */
void prn_study_judge_block(prn_study_block *block);
/* "4 threads", "2 x 2 threads, batch 8, bf16": what sets it apart in this plan. */
#define PRN_STUDY_LABEL_BYTES 96
const char *prn_study_label(const prony_study *study, size_t configuration, char text[PRN_STUDY_LABEL_BYTES]);
size_t prn_study_groups(const prony_study *study);

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
/* How the study was made, in sentences for a paper. */
const char *prn_study_statement(const prony_study *study, prn_bump *pool);

#endif
