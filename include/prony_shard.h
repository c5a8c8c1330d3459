/* Sharded models: a model is cut into stages along its schedule, and each process holds one stage. Nothing here moves
 * bytes between processes: the caller's transport does (prony-mpi uses MPI). Conventions: prony.h. */
#ifndef PRONY_SHARD_H
#define PRONY_SHARD_H

#include "prony_report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

typedef enum prony_shard_by {
    PRONY_SHARD_BY_TIME,  /* the slowest stage is as fast as can be */
    PRONY_SHARD_BY_MEMORY /* the largest stage is as small as can be */
} prony_shard_by;

typedef struct prony_shard_options {
    size_t struct_size;
    int stages; /* 1 to 1024 */
    prony_shard_by by;
    /* Tensors of the model, one for each cut, in any order: each cut lies behind the node that makes the tensor. NULL:
     * the plan chooses. */
    const char *const *cuts;
    size_t cut_count;
    uint64_t memory_limit_bytes; /* of each stage, as prony_shard_stage.memory_bytes predicts it; 0: no bound */
    /* One message between two stages: latency_ns + bytes / bytes_per_ns. 0: transfers take no time. */
    double latency_ns, bytes_per_ns;
    /* Measured time of each layer of the model, in the order of its report, ns; negative: not measured. NULL: times
     * are predicted from costs. */
    const double *layer_ns;
    size_t layer_count;
    const prony_session_options *session; /* shapes and threads that the plan is for; NULL: the defaults */
} prony_shard_options;
#define PRONY_SHARD_OPTIONS_INIT {sizeof(prony_shard_options), 1, PRONY_SHARD_BY_TIME, 0, 0, 0, 0, 0, 0, 0, 0}

#define PRONY_SHARD_MODEL UINT32_MAX /* in place of a stage: the model's caller */

/* A tensor that enters or leaves a stage. Pointers are owned by the plan. */
typedef struct prony_shard_tensor {
    const char *name;
    prony_dtype dtype;
    prony_shape shape; /* rank -1, or dim -1: known at run time only */
    uint64_t bytes;    /* 0: known at run time only */
    uint32_t from;     /* stage that makes it; PRONY_SHARD_MODEL: it is an input of the model */
    uint32_t port;     /* its position among the outputs of `from`, or among the inputs of the model */
} prony_shard_tensor;

typedef struct prony_shard_stage {
    uint32_t index;
    const uint32_t *layers; /* of the model's report, ascending; those that were evaluated at bind time are in none */
    size_t layer_count;
    const prony_shard_tensor *inputs, *outputs; /* in the order of the stage's model; outputs: `from` is the stage */
    size_t input_count, output_count;
    const uint32_t *model_outputs;       /* [output_count] which output of the model it is; PRONY_SHARD_MODEL: none */
    uint64_t weight_bytes;               /* constants that its operators read */
    uint64_t live_bytes;                 /* largest sum of tensors alive at one operator */
    uint64_t memory_bytes;               /* predicted: packed weights, live tensors, copies of inputs */
    uint64_t sent_bytes, received_bytes; /* for one run, to and from other stages */
    int64_t compute_ns;                  /* predicted, or the sum of layer_ns */
    int64_t transfer_ns;                 /* predicted, of what it receives */
    uint64_t macs;
    const char *cut; /* a tensor behind whose node the stage ends, for prony_shard_options.cuts; NULL: the last stage */
} prony_shard_stage;

/* The stages of a model. Holds a reference to the model; immutable, so that threads may share it. */
typedef struct prony_shard_plan prony_shard_plan;

/* Cuts the model where no operator of the unsharded plan is cut, so that a sharded run has the bits of an unsharded
 * one. Needs the model's graph, but packs no weights. PRONY_INVALID_ARGUMENT: the model has fewer places to cut than
 * `stages` needs, or a given cut is not possible; the message has the number of places. PRONY_LIMIT: no stages fit
 * memory_limit_bytes. */
PRONY_API PRONY_MUST_USE prony_status prony_shard_plan_create(prony_shard_plan **out, prony_model *model,
                                                              const prony_shard_options *options, prony_error *error);
/* Frees the plan, its stages and texts. NULL is accepted. */
PRONY_API void prony_shard_plan_release(prony_shard_plan *plan);
/* The stages in order. Owned by the plan. */
PRONY_API const prony_shard_stage *prony_shard_plan_stages(const prony_shard_plan *plan, size_t *count);
/* Places where the model can be cut. */
PRONY_API size_t prony_shard_plan_places(const prony_shard_plan *plan);
/* "predicted from measured peaks of this machine", "predicted from assumed rates", "measured" */
PRONY_API const char *prony_shard_plan_basis(const prony_shard_plan *plan);
/* SHA-256 over stages and tensors: plans of two processes with the same text agree. */
PRONY_API const char *prony_shard_plan_digest(const prony_shard_plan *plan);
/* Time of one step of `micro_batches` runs that follow one another through the stages, ns: by compute and transfer
 * times of the plan. */
PRONY_API int64_t prony_shard_plan_step_ns(const prony_shard_plan *plan, int64_t micro_batches);

/* A stage as a model: its inputs and outputs are those of the plan's stage. A session of it binds and rewrites the
 * whole graph, but packs and holds the weights of the stage alone. Sessions take the options of the plan's, whose
 * shapes are fixed. The stage holds a reference to the model, and the plan may be released before it. */
PRONY_API PRONY_MUST_USE prony_status prony_shard_stage_model(prony_model **out, const prony_shard_plan *plan,
                                                              size_t stage, prony_error *error);

/* ---- one report of all stages ---- */

/* The work of one process. Times are means of one run (of all its micro-batches). */
typedef struct prony_rank_row {
    uint32_t rank, stage;
    const char *node; /* host name */
    const uint32_t *layers;
    size_t layer_count;
    uint64_t weight_bytes, arena_bytes, peak_rss_bytes;
    int64_t time_ns, waiting_ns; /* inside of the stage's runs; for tensors of other stages, and for the end of a run */
    uint64_t sent_bytes, received_bytes;     /* per run */
    double sent_bytes_per_second;            /* while messages were on their way; 0: none were */
    int64_t clock_offset_ns, clock_error_ns; /* to rank 0's clock, and half of the shortest answer's time */
    int64_t predicted_ns;                    /* compute time by the plan, of one run */
} prony_rank_row;

typedef struct prony_pipeline {
    uint32_t stages;
    int64_t micro_batches;
    double bubble_share; /* of the ranks' time that they did not compute, 0 to 1 */
    int64_t predicted_step_ns, measured_step_ns;
    const char *basis;                             /* of the prediction */
    double link_latency_ns, link_bytes_per_second; /* of the slowest link, as measured before; 0: not measured */
    /* bubble_share in parts: filling and draining (the other stages' times of one micro-batch), waiting for the slowest
     * stage, and the rest (messages, and times that vary). The rest is negative where micro-batches take turns with
     * others on a processor. */
    double fill_share, uneven_share, message_share;
} prony_pipeline;

/* Makes one report of those of all stages: `into` is that of stage 0, `others` those of the stages behind it. Operators
 * stand in the order of the stages. `rows`: one per stage. Latencies become `samples_ns`, of whole runs. `outputs`: the
 * model's, in order, for output_sha256; NULL elements are left out. Everything is copied. PRONY_INVALID_ARGUMENT: the
 * reports are not those of one model. */
PRONY_API PRONY_MUST_USE prony_status prony_report_join_stages(prony_report *into, const prony_report *const *others,
                                                               const prony_rank_row *rows, size_t count,
                                                               const prony_pipeline *pipeline,
                                                               const int64_t *samples_ns, size_t sample_count,
                                                               const prony_value *const *outputs, size_t output_count,
                                                               prony_error *error);
/* The messages of one tensor between two ranks, of a run. `kind`: "send" (from the handing over until the message has
 * left) or "receive" (from the message's arrival until its bytes are there). */
typedef struct prony_transfer_row {
    uint32_t rank, peer;
    const char *kind, *tensor;
    uint64_t messages, bytes;
    int64_t time_ns; /* of all messages of a run, mean */
} prony_transfer_row;

/* A part of the last run, on rank 0's clock from the beginning of the run: "compute", "wait", "send" or "receive". */
typedef struct prony_pipeline_event {
    uint32_t rank, peer, micro_batch;
    const char *kind, *tensor; /* tensor: NULL without a message */
    int64_t start_ns, end_ns;
} prony_pipeline_event;

/* A message of one size between two ranks, measured before the run: half of the shortest round trip. */
typedef struct prony_link_row {
    uint32_t rank, peer;
    uint64_t bytes;
    int64_t time_ns;
} prony_link_row;

/* Adds measurements of the interconnect to a joined report. The rows are copied. */
PRONY_API PRONY_MUST_USE prony_status prony_report_set_links(prony_report *report, const prony_link_row *rows,
                                                             size_t count, prony_error *error);
/* The rows of prony_report_set_links; NULL: none were set. Owned by the report. */
PRONY_API const prony_link_row *prony_report_links(const prony_report *report, size_t *count);

/* Adds messages and the last run's events to a joined report. Everything is copied. */
PRONY_API PRONY_MUST_USE prony_status prony_report_set_transfers(prony_report *report, const prony_transfer_row *rows,
                                                                 size_t count, const prony_pipeline_event *events,
                                                                 size_t event_count, prony_error *error);
/* The messages of prony_report_set_transfers; NULL: none were set. Owned by the report. */
PRONY_API const prony_transfer_row *prony_report_transfers(const prony_report *report, size_t *count);
/* The events of prony_report_set_transfers; NULL: none were set. Owned by the report. */
PRONY_API const prony_pipeline_event *prony_report_pipeline_events(const prony_report *report, size_t *count);
/* The ranks of a joined report, by stage; NULL: the report is of one process. Owned by the report. */
PRONY_API const prony_rank_row *prony_report_ranks(const prony_report *report, size_t *count);
/* The pipeline of a joined report; NULL: the report is of one process. Owned by the report. */
PRONY_API const prony_pipeline *prony_report_pipeline(const prony_report *report);

#ifdef __cplusplus
}
#endif
#endif
