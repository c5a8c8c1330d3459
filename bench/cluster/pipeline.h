/* Tensors between the stages of a sharded model: what a rank waits for, what it sends, and for how long. */
#ifndef PRN_BENCH_CLUSTER_PIPELINE_H
#define PRN_BENCH_CLUSTER_PIPELINE_H

#include "bench/cluster/cluster.h"

#include "prony_shard.h"

#include <mpi.h>
#include <pthread.h>

/* An action of a rank in the last measured run, by its own clock. `tag`: of the tensor, an input of the stage that
 * reads it; OUTPUTS_TAG: the model's outputs. */
typedef enum span_kind { SPAN_COMPUTE, SPAN_WAIT, SPAN_SEND, SPAN_RECEIVE } span_kind;
enum { OUTPUTS_TAG = -1 };

typedef struct pipeline_span {
    int32_t kind, peer, tag, at; /* at: micro-batch */
    int64_t start_ns, end_ns;
} pipeline_span;

/* Messages of one tensor, of all measured runs. */
typedef struct pipeline_total {
    int32_t kind, peer, tag, unused;
    int64_t messages, bytes, time_ns;
} pipeline_total;

typedef struct outgoing {
    MPI_Request request;
    char *bytes;
    size_t size;
    int64_t began_ns;
    int64_t run; /* 0: does not count */
    int32_t to, tag, at;
} outgoing;

/* The message that brings an input of the stage, or outputs of the model. */
typedef struct incoming {
    MPI_Request request;
    char *bytes;
    size_t size;
    bool begun;
    int from; /* of outputs */
    int64_t began_ns, ended_ns;
} incoming;

/* A tensor that grows by its first dimension. `value` points into `bytes`. */
typedef struct kept_tensor {
    prony_value value;
    char *bytes;
    size_t size, room;
} kept_tensor;

/* The thread of progress.c; the pipeline's messages are its own while `computes`. */
typedef struct progress {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool runs, computes, asleep, ends;
} progress;

typedef struct pipeline {
    const options *o;
    MPI_Comm tensors; /* messages of tensors alone */
    int rank, ranks;  /* rank r runs stage r */
    const prony_shard_stage *rows;
    size_t stage_count;
    prony_session *session;
    const prony_session *whole; /* rank 0: the model's inputs */
    int64_t micro_batches, at;  /* of a run; the next one */
    outgoing *sending;
    size_t sending_count, sending_capacity;
    incoming *inputs;      /* [of the stage] */
    prony_value **outputs; /* rank 0, [of the model]: of one run; they lie in `kept` */
    kept_tensor *kept;
    incoming outputs_in; /* rank 0: the message that arrives now */
    size_t model_outputs;
    int64_t run_began_ns, *samples_ns; /* rank 0: of each run */
    size_t sample_count, sample_capacity, ended;
    int64_t sent_bytes, received_bytes, sending_ns, steps;
    int64_t computing_ns, computing_since_ns;
    pipeline_span *spans;
    pipeline_total *totals;
    size_t span_count, total_count;
    int64_t run, spans_from_ns;          /* the number of the last measured run; when it began */
    bool counts;                         /* runs that count have begun */
    bool bound;                          /* the tensors of the next micro-batch are */
    bool has_ended[1025];                /* rank 0: by rank, its part of the run */
    void (*say_interrupted)(void *user); /* rank 0: at once, since the launcher leaves a second; may be NULL */
    void *say_user;
    /* Rank 0, around each run; NULL: the inputs of `whole` stay as they are. */
    prony_status (*begin_run)(void *user, prony_error *error);
    prony_status (*end_run)(void *user, prony_error *error);
    void *run_user;
    progress progress;
    bool lost; /* another rank failed, is silent, or this one was told to stop */
    char failure[PRONY_ERROR_MESSAGE_BYTES];
    const hello *hellos; /* rank 0: of all ranks */
    /* Rank 0: by rank, it told of a failure, so it answers; the first report about a rank that answers. Of the most
     * ranks and one more. */
    bool reported[1025];
    char doubtful[PRONY_ERROR_MESSAGE_BYTES];
} pipeline;

/* Around one micro-batch: waits for its tensors and binds them; sends what others need. */
prony_status pipeline_before(void *user, prony_session *session, prony_error *error);
prony_status pipeline_after(void *user, prony_session *session, prony_error *error);
/* Begins what can begin, and returns whether all tensors of the next micro-batch are there. */
bool pipeline_advance(pipeline *p);
/* true: a message of this rank is in flight, or one of the next micro-batch is missing. */
bool pipeline_outstanding(const pipeline *p);

/* ---- progress.c ---- */

/* Starts the thread that moves messages while the stage computes. False: MPI allows one thread alone, or no thread
 * could start; messages then move between micro-batches. */
bool pipeline_progress_start(pipeline *p);
/* Around the time in which the main thread computes. Between begin and end the main thread must not call MPI. */
void pipeline_progress_begin(pipeline *p);
void pipeline_progress_end(pipeline *p);
void pipeline_progress_stop(pipeline *p);

/* Waits until everything is sent. */
prony_status pipeline_drain(pipeline *p, prony_error *error);
/* Notes what happened, while runs count. `bytes`: of a message. spans.c */
void pipeline_note(pipeline *p, pipeline_span span, int64_t run, size_t bytes);
void pipeline_begin_spans(pipeline *p);
/* Waits until everything is sent, and gives all up. */
void pipeline_end(pipeline *p);
/* ---- tensors.c ---- */
/* A value as a message and back; the caller frees it by free(). NULL: out of memory, or no tensor of numbers. */
char *tensor_pack(const prony_value *value, size_t *size);
/* `out` points into `bytes`. False: damaged. */
bool tensor_unpack(prony_value *out, const char *bytes, size_t size);
size_t tensor_bytes(const prony_value *value);
/* Keeps a copy, behind the one before along the first dimension unless it is the first of `parts`. False: another type
 * or shape than before, no tensor of numbers, or out of memory. */
bool tensor_keep(kept_tensor *k, const prony_value *value, bool first, int64_t parts);
/* A short sleep of a rank that waits for others. */
void pipeline_pause(void);

/* ---- failures.c ---- */

/* Tells rank 0 why this rank cannot go on. */
void pipeline_fail(pipeline *p, const char *text);
/* Tells rank 0 that rank `silent` did not answer. Ranks that wait for each other give up together, so rank 0 collects
 * their reports for two seconds and leaves out those about a rank that reports itself. */
void pipeline_give_up(pipeline *p, int silent, const char *text);
/* Rank 0: takes a TAG_FAILED message of `rank`. A report about a rank that answers does not end the run: another
 * report, or rank 0's own limit, will. */
void pipeline_hear_failure(pipeline *p, int rank, message *m);
/* true: the run is over for this rank, because of a signal, or of a message of rank 0 or of a rank that failed. */
bool pipeline_stopped(pipeline *p);

#endif
