/* Shared by batcher.c (the queue and the threads) and batcher_serve.c (the runs).
 *
 * Ownership: the batcher owns its workers, each worker its session. A request belongs to the queue, then to the worker
 * that took it, which calls `done` and frees it. */
#ifndef PRN_ENGINE_SESSION_BATCHER_H
#define PRN_ENGINE_SESSION_BATCHER_H

#include "engine/session/batch_rules.h"
#include "engine/session/session.h"
#include "prony_serve.h"

_Static_assert((int)PRN_BATCH_SIZES == (int)PRN_PLAN_CACHE, "one plan for each size, so no plan is evicted");

typedef struct prn_request {
    struct prn_request *next;
    prony_batch_done done;
    void *user;
    int64_t submitted_ns;
    int64_t deadline_ns;         /* 0: none */
    bool alone;                  /* not one sample of tensors; never combined */
    const prony_value *inputs[]; /* one per model input; borrowed */
} prn_request;

/* The session and output arrays of one worker. */
typedef struct prn_server {
    prony_session *session;
    size_t input_count, output_count;
    prony_value *views;          /* [output_count]: outputs of one request */
    const prony_value **outputs; /* [output_count]: pointers to them */
} prn_server;

PRN_MUST_USE prony_status prn_server_create(prn_server *server, prony_model *model,
                                            const prony_session_options *options, int index, int sharers,
                                            prony_error *error);
void prn_server_release(prn_server *server);

/* Runs `count` requests, linked by `next`, in one run, and calls each one's `done`. */
void prn_server_serve(prn_server *server, prn_request *requests, int64_t count);

/* true: two requests may share a run: neither is alone, types and all dimensions agree. */
bool prn_requests_alike(const prn_request *a, const prn_request *b, size_t input_count);

/* Refuses a model whose inputs or outputs have a fixed first dimension, or no tensors. */
PRN_MUST_USE prony_status prn_batch_check_model(const prony_model *model, int64_t max_batch, prony_error *error);

/* One run of each size on generated inputs; compares samples combined with the same samples alone into *trial. A model
 * that does not run on such inputs leaves trial->known false. */
PRN_MUST_USE prony_status prn_server_try(prn_server *server, const int64_t *sizes, int count, prony_batch_trial *trial,
                                         prony_error *error);

/* The session of worker `index`; NULL: no such worker. Owned by the batcher. */
prony_session *prn_batcher_session(const prony_batcher *batcher, int index);

#endif
