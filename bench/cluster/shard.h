/* Commands with --shard: one stage of the model on each rank. shard.c (who does what), shard_stages.c (the stages),
 * predict.c (a run's time), pipeline.c (tensors between ranks), tensors.c (as bytes), progress.c (messages while a
 * stage computes), links.c (the interconnect), shard_report.c (one report of all), shard_eval.c (labelled data).
 * Commands that deal data to ranks (deal.c) meet, wait and end as these do; their pipeline has no stages. */
#ifndef PRN_BENCH_CLUSTER_SHARD_H
#define PRN_BENCH_CLUSTER_SHARD_H

#include "bench/cluster/links.h"

typedef struct sharded {
    const options *o;
    prony_model *model;   /* whole */
    prony_session *whole; /* rank 0: its inputs alone; it is never planned */
    prony_shard_plan *plan;
    pipeline pipe;
    link_figures link, slowest; /* of this rank; rank 0: of all */
    link_table links;           /* of this rank; rank 0: of all */
    hello *hellos;              /* rank 0 */
    int64_t runs, rest;         /* measured; of eval: that follow, without times */
    double *layer_ns;           /* measured, of one micro-batch; on rank 0 in the end of all layers */
    size_t layer_count;
    bool balanced;        /* the stages were cut by measured times */
    prony_report *report; /* of this rank's stage; in the end, on rank 0, of all */
    int code;
    bool said;               /* that a signal ended the run */
    struct shard_data *data; /* rank 0 of eval: labelled samples; NULL: another command */
    void *deal;              /* of deal_eval.c or deal_load.c */
    bool works;              /* ranks have begun: after a failure no rank waits for the others in MPI_Finalize */
} sharded;

int shard_run(const options *o, bool *together);

/* ---- of every command whose ranks begin and end together ---- */

/* Runs `run` on each rank; rank 0 then says once why it failed, and ends all ranks. */
int shard_run_ranks(const options *o, int (*run)(sharded *s), bool *together);
/* All ranks load the model; rank 0 compares builds and models, and checks the usage. */
int shard_meet(sharded *s, int (*check)(const sharded *s));
/* From rank 0. */
bool shard_tell_all(const sharded *s, message_tag tag, const message *m);
/* One message of this tag from each other rank. `take` may be NULL. Names the first rank that did not answer. */
bool shard_hear_all(sharded *s, message_tag tag, double seconds, bool (*take)(sharded *s, int rank, message *m));
int shard_take_last_word(sharded *s);

/* From a rank to rank 0, and there: reports and figures of all stages become one report. */
bool shard_send_report(sharded *s);
int shard_join_reports(sharded *s);
int shard_show(sharded *s);
/* Rank 0: a run's time by the plan and the links. predict.c */
int64_t predicted_step_ns(const sharded *s);

/* Waits for a message of this tag, from any rank. False: failure, stop, a signal, or the limit. */
bool shard_wait(sharded *s, int tag, int *rank, message *m, double seconds);

/* Runs without times: before the measured ones, and the batches of eval behind them. */
prony_status shard_run_unmeasured(sharded *s, int64_t runs, prony_error *error);

/* ---- shard_stages.c ---- */

/* --shard-by KEY was given. */
bool shard_is_by(const options *o, const char *key);
/* Cuts the model and makes the session of this rank's stage. */
int shard_prepare(sharded *s);
/* Runs the stages for a moment, and prepares them anew by the measured times. */
int shard_balance(sharded *s);

/* ---- shard_eval.c: on rank 0 ---- */

/* Opens the data and binds the first batch to s->whole. */
int shard_eval_open(sharded *s);
/* Runs are scored from now on. Returns how many there are. */
int64_t shard_eval_begin(sharded *s);
/* Writes the accuracy into the report. */
int shard_eval_finish(sharded *s);
void shard_eval_close(sharded *s);

#endif
