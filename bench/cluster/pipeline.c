/* See the header. A message is a header of the type and shape, and the elements: each tensor may have another shape
 * in each micro-batch. Receives begin as soon as a message is there, and sends end, while the stage computes
 * (progress.c). */
#include "bench/cluster/pipeline.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* MOST_SENDING messages are in transit before the stage waits, and SPINS looks come before the thread sleeps; both
 * chosen without measurement. TAG_OUTPUTS is above the index of any input; MPI allows tags to 32767. */
enum { MOST_SENDING = 16, TAG_OUTPUTS = 20000, SPINS = 2000 };
enum { RUN_GOES_ON = -1, RUN_ENDED = -2 }; /* behind the outputs of a micro-batch */

#define NOT_SENT "is not a tensor of numbers and cannot be sent"
#define NOT_KEPT "has another shape in each micro-batch, or memory is missing"
#define WAIT_SECONDS 120.0 /* for another rank, where --timeout says nothing else */

/* ---- waiting ---- */

static void end_sent(pipeline *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->sending_count; i++) {
        int done = 0;
        outgoing *s = &p->sending[i];
        if (MPI_Test(&s->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) {
            const int64_t now = prony_now_ns();
            if (p->counts) p->sending_ns += now - s->began_ns;
            pipeline_note(p, (pipeline_span){SPAN_SEND, s->to, s->tag, s->at, s->began_ns, now}, s->run, s->size);
            free(s->bytes);
        } else {
            p->sending[kept++] = *s;
        }
    }
    p->sending_count = kept;
}

static int pipeline_source_of(const prony_shard_tensor *tensor)
{
    return tensor->from == PRONY_SHARD_MODEL ? 0 : (int)tensor->from;
}

static bool is_local(const pipeline *p, const prony_shard_tensor *tensor)
{
    return tensor->from == PRONY_SHARD_MODEL && p->rank == 0;
}

/* On rank 0: an output of micro-batch `at`, behind those of the micro-batches before. */
static bool keep_output(pipeline *p, size_t of, int64_t at, const prony_value *value)
{
    const bool kept = tensor_keep(&p->kept[of], value, at == 0, p->micro_batches);
    p->outputs[of] = kept ? &p->kept[of].value : NULL;
    return kept;
}

/* Rank 0: the outputs of a micro-batch that a stage sent. *ended: with the last one. */
static bool read_model_outputs(pipeline *p, message *m, bool *ended)
{
    const int64_t at = message_take_number(m);
    int64_t k;
    while ((k = message_take_number(m)) >= 0 && !m->bad) {
        size_t count;
        const char *text = message_take_text(m, &count);
        prony_value value;
        char *copy = malloc(count + 1); /* aligned for the header */
        if (copy) memcpy(copy, text, count);
        const bool kept = copy && (uint64_t)k < p->model_outputs && tensor_unpack(&value, copy, count) &&
                          keep_output(p, (size_t)k, at, &value);
        free(copy);
        if (!kept) return false;
    }
    *ended = k == RUN_ENDED;
    return !m->bad;
}

/* Rank 0: the outputs whose message has come whole. */
static void end_outputs(pipeline *p)
{
    incoming *in = &p->outputs_in;
    bool ended = false;
    message m = {.data = in->bytes, .size = in->size, .capacity = in->size};
    if (!read_model_outputs(p, &m, &ended) && !*p->failure)
        snprintf(p->failure, sizeof p->failure, "outputs of rank %d: a tensor %s", in->from, NOT_KEPT);
    message_free(&m);
    if (ended && !p->has_ended[in->from]) p->ended += p->has_ended[in->from] = true;
    *in = (incoming){.request = MPI_REQUEST_NULL};
}

/* Rank 0: takes outputs as they arrive, one message at a time, also while it has micro-batches of its own to
 * compute. */
static void take_model_outputs(pipeline *p)
{
    incoming *in = &p->outputs_in;
    for (int there = 1; p->rank == 0;) {
        MPI_Status status;
        int size = 0;
        if (in->begun) {
            if (MPI_Test(&in->request, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || !there) return;
            end_outputs(p);
        }
        if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_OUTPUTS, p->tensors, &there, &status) != MPI_SUCCESS || !there) return;
        if (MPI_Get_count(&status, MPI_BYTE, &size) != MPI_SUCCESS || !(in->bytes = malloc((size_t)size + 1))) return;
        in->size = (size_t)size;
        in->from = status.MPI_SOURCE;
        in->begun =
            MPI_Irecv(in->bytes, size, MPI_BYTE, in->from, TAG_OUTPUTS, p->tensors, &in->request) == MPI_SUCCESS;
    }
}

/* true: the tensor has arrived, to its last byte. */
static bool has_arrived(const incoming *in)
{
    return in->begun && in->request == MPI_REQUEST_NULL;
}

bool pipeline_outstanding(const pipeline *p)
{
    const prony_shard_stage *row = &p->rows[p->rank];
    if (p->sending_count || p->outputs_in.begun) return true;
    for (size_t i = 0; i < row->input_count; i++)
        if (!is_local(p, &row->inputs[i]) && !has_arrived(&p->inputs[i])) return true;
    return false;
}

/* Never blocks: it probes, receives and tests once for each input of the stage. A message's tag is the index of its
 * input, so inputs may arrive in any order. A receive begins when its message has arrived, because MPI_Iprobe alone
 * tells the size. `inputs` owns the bytes until the micro-batch is bound. */
bool pipeline_advance(pipeline *p)
{
    const prony_shard_stage *row = &p->rows[p->rank];
    bool all = true;
    end_sent(p);
    take_model_outputs(p);
    for (size_t i = 0; i < row->input_count; i++) {
        incoming *in = &p->inputs[i];
        int there = 0, size = 0;
        MPI_Status status;
        if (is_local(p, &row->inputs[i])) continue;
        if (!in->begun) {
            const int source = pipeline_source_of(&row->inputs[i]);
            if (MPI_Iprobe(source, (int)i, p->tensors, &there, &status) == MPI_SUCCESS && there &&
                MPI_Get_count(&status, MPI_BYTE, &size) == MPI_SUCCESS &&
                (in->bytes = malloc((size_t)size + 1)) != NULL) {
                in->size = (size_t)size;
                in->began_ns = prony_now_ns();
                in->begun =
                    MPI_Irecv(in->bytes, size, MPI_BYTE, source, (int)i, p->tensors, &in->request) == MPI_SUCCESS;
            }
        }
        int done = 0;
        if (in->begun && in->request != MPI_REQUEST_NULL) {
            (void)MPI_Test(&in->request, &done, MPI_STATUS_IGNORE);
            in->ended_ns = prony_now_ns();
        }
        all = all && has_arrived(in);
    }
    return all;
}

void pipeline_pause(void)
{
    nanosleep(&(struct timespec){0, 50000}, NULL);
}

/* Of several ranks on one processor, the one that waits gives way. */
static void pause_briefly(int *spins)
{
    if ((*spins)++ < SPINS)
        sched_yield();
    else
        pipeline_pause();
}

static prony_status pipeline_lost(prony_error *error, const char *text)
{
    if (error) {
        error->status = PRONY_CANCELLED;
        snprintf(error->message, sizeof error->message, "%s", text);
    }
    return PRONY_CANCELLED;
}

/* The rank that this one waits for: the sender of a tensor that has not arrived, or the receiver of the oldest message.
 * Rank 0, which sends to all, waits for the first rank that neither ended nor told of a failure. */
static int missing_rank(const pipeline *p)
{
    const prony_shard_stage *row = &p->rows[p->rank];
    for (size_t i = 0; !p->bound && i < row->input_count; i++)
        if (!is_local(p, &row->inputs[i]) && !has_arrived(&p->inputs[i])) return pipeline_source_of(&row->inputs[i]);
    if (p->rank != 0 && p->sending_count) return p->sending[0].to;
    int behind = p->rank;
    for (int r = p->ranks - 1; p->rank == 0 && r > 0; r--)
        if (!p->has_ended[r] && (behind == p->rank || !p->reported[r])) behind = r;
    return behind;
}

/* Until `done` holds. Failures of other ranks and the limit end it. */
static prony_status pipeline_wait_until(pipeline *p, bool (*done)(pipeline *p), const char *what, prony_error *error)
{
    const double limit = cluster_limit(p->o, WAIT_SECONDS), end = cluster_now() + limit;
    int spins = 0;
    while (!done(p)) {
        if (pipeline_stopped(p)) return pipeline_lost(error, "the run was ended");
        if (cluster_now() > end) {
            char text[200];
            const int silent = missing_rank(p);
            snprintf(text, sizeof text, "waited %.0f s for %s rank %d, which did not answer (--timeout): ended", limit,
                     what, silent);
            pipeline_give_up(p, silent, text);
            return pipeline_lost(error, text);
        }
        pause_briefly(&spins);
    }
    return PRONY_OK;
}

/* ---- sending ---- */

static bool few_left(pipeline *p)
{
    end_sent(p);
    return p->sending_count < MOST_SENDING;
}

static bool none_left(pipeline *p)
{
    end_sent(p);
    return p->sending_count == 0;
}

static prony_status pipeline_refuse(prony_error *error, const char *name, const char *text)
{
    if (error) {
        error->status = PRONY_UNSUPPORTED;
        snprintf(error->message, sizeof error->message, "tensor '%.200s' at a cut %s", name, text);
    }
    return PRONY_UNSUPPORTED;
}

static prony_status reserve(pipeline *p)
{
    if (p->sending_count < p->sending_capacity) return PRONY_OK;
    outgoing *list = realloc(p->sending, (2 * p->sending_capacity + 8) * sizeof *list);
    if (!list) return PRONY_OUT_OF_MEMORY;
    p->sending = list;
    p->sending_capacity = 2 * p->sending_capacity + 8;
    return PRONY_OK;
}

/* Begins to send. The bytes are freed once they have left, or at once if they cannot be sent. */
static prony_status hand_over(pipeline *p, const outgoing *given, int tag, const char *name, prony_error *error)
{
    outgoing s = *given;
    prony_status status = reserve(p);
    if (status == PRONY_OK &&
        MPI_Isend(s.bytes, (int)s.size, MPI_BYTE, s.to, tag, p->tensors, &s.request) != MPI_SUCCESS)
        status = pipeline_refuse(error, name, "could not be sent");
    if (status == PRONY_OK)
        p->sending[p->sending_count++] = s;
    else
        free(s.bytes);
    return status;
}

static prony_status send_value(pipeline *p, const prony_value *value, const char *name, int to, int tag,
                               prony_error *error)
{
    outgoing s = {
        .began_ns = prony_now_ns(), .to = to, .tag = tag, .at = (int32_t)p->at, .run = p->counts ? p->run : 0};
    s.bytes = tensor_pack(value, &s.size);
    if (!s.bytes) return pipeline_refuse(error, name, NOT_SENT);
    if (s.size > INT_MAX) {
        free(s.bytes);
        return pipeline_refuse(error, name, "has 2 GiB or more, and is not sent");
    }
    const prony_status status = hand_over(p, &s, tag, name, error);
    if (status == PRONY_OK && p->counts) p->sent_bytes += (int64_t)tensor_bytes(value);
    return status;
}

/* Takes the message over. */
static prony_status send_message(pipeline *p, message *m, prony_error *error)
{
    const outgoing s = {.bytes = m->data,
                        .size = m->size,
                        .began_ns = prony_now_ns(),
                        .tag = OUTPUTS_TAG,
                        .at = (int32_t)p->at,
                        .run = p->counts ? p->run : 0};
    if (!m->bad && m->size <= INT_MAX) return hand_over(p, &s, TAG_OUTPUTS, "outputs", error);
    message_free(m);
    return pipeline_refuse(error, "outputs", "have 2 GiB or more, or memory is missing");
}

/* The rows of a value that a micro-batch takes; the whole value where there is one. */
static prony_value slice(const pipeline *p, const prony_value *value)
{
    prony_value out = *value;
    if (p->micro_batches == 1 || value->shape.rank < 1) return out;
    out.shape.dim[0] /= p->micro_batches;
    out.data = (char *)value->data + (size_t)p->at * tensor_bytes(&out);
    return out;
}

/* Rank 0 hands the model's inputs to the stages that read them. */
static prony_status send_inputs(pipeline *p, prony_error *error)
{
    for (size_t s = 1; s < p->stage_count; s++)
        for (size_t i = 0; i < p->rows[s].input_count; i++) {
            const prony_shard_tensor *t = &p->rows[s].inputs[i];
            if (t->from != PRONY_SHARD_MODEL) continue;
            const prony_value part = slice(p, prony_session_input_value(p->whole, t->port));
            const prony_status status = send_value(p, &part, t->name, (int)s, (int)i, error);
            if (status != PRONY_OK) return status;
        }
    return PRONY_OK;
}

/* ---- a micro-batch ---- */

/* The time until the tensors are there is waiting (a span of its own), the rest is computing. A profile binds its
 * first micro-batch before it plans, and calls this again for its run. `bound` tells the second call, which receives
 * nothing. */
prony_status pipeline_before(void *user, prony_session *session, prony_error *error)
{
    pipeline *p = user;
    const prony_shard_stage *row = &p->rows[p->rank];
    prony_status status = PRONY_OK;
    if (p->begin_run && p->at == 0 && !p->bound) status = p->begin_run(p->run_user, error);
    if (status != PRONY_OK) return status;
    if (p->rank == 0 && p->at == 0) p->run_began_ns = prony_now_ns();
    p->computing_since_ns = prony_now_ns();
    if (p->bound) {
        pipeline_progress_begin(p);
        return PRONY_OK; /* a profile binds once before it plans */
    }
    if (p->at == 0) pipeline_begin_spans(p);
    if (p->rank == 0) status = send_inputs(p, error);
    const int64_t waits_ns = prony_now_ns(), run = p->counts ? p->run : 0;
    const int32_t at = (int32_t)p->at;
    if (status == PRONY_OK) status = pipeline_wait_until(p, pipeline_advance, "tensors of", error);
    pipeline_note(p, (pipeline_span){SPAN_WAIT, p->rank, 0, at, waits_ns, prony_now_ns()}, run, 0);
    for (size_t i = 0; status == PRONY_OK && i < row->input_count; i++) {
        const prony_shard_tensor *t = &row->inputs[i];
        incoming *in = &p->inputs[i];
        prony_value value;
        if (is_local(p, t)) {
            value = slice(p, prony_session_input_value(p->whole, t->port));
        } else if (!tensor_unpack(&value, in->bytes, in->size)) {
            return pipeline_refuse(error, t->name, "arrived damaged");
        }
        status = prony_session_set_input(session, t->name, &value, error);
        if (is_local(p, t)) continue;
        if (p->counts) p->received_bytes += (int64_t)tensor_bytes(&value);
        pipeline_note(p,
                      (pipeline_span){SPAN_RECEIVE, pipeline_source_of(t), (int32_t)i, at, in->began_ns, in->ended_ns},
                      run, in->size);
        free(in->bytes);
        *in = (incoming){.request = MPI_REQUEST_NULL};
    }
    (void)pipeline_advance(p); /* what is there for the next one comes in meanwhile */
    p->bound = status == PRONY_OK;
    if (p->bound) pipeline_progress_begin(p);
    p->computing_since_ns = prony_now_ns();
    return status;
}

/* Outputs of the model that a stage has made of this micro-batch, for rank 0. The message of the last micro-batch also
 * says that the stage's run has ended; a stage without outputs sends it alone. */
static prony_status send_model_outputs(pipeline *p, const prony_session *session, prony_error *error)
{
    const prony_shard_stage *row = &p->rows[p->rank];
    const bool last = p->at + 1 == p->micro_batches;
    const prony_value *value;
    prony_status status = PRONY_OK;
    message m = {0};
    bool any = last;
    message_put_number(&m, p->at);
    for (size_t k = 0; status == PRONY_OK && k < row->output_count; k++) {
        size_t size;
        if (row->model_outputs[k] == PRONY_SHARD_MODEL) continue;
        any = true;
        status = prony_session_output(session, k, &value, error);
        char *bytes = status == PRONY_OK ? tensor_pack(value, &size) : NULL;
        if (status == PRONY_OK && !bytes) status = pipeline_refuse(error, row->outputs[k].name, NOT_SENT);
        message_put_number(&m, row->model_outputs[k]);
        if (bytes) message_put_bytes(&m, bytes, size);
        free(bytes);
    }
    message_put_number(&m, last ? RUN_ENDED : RUN_GOES_ON);
    if (status == PRONY_OK && any) return send_message(p, &m, error);
    message_free(&m);
    return status;
}

/* Rank 0's own part of it. */
static prony_status keep_model_outputs(pipeline *p, const prony_session *session, prony_error *error)
{
    const prony_shard_stage *row = &p->rows[p->rank];
    const prony_value *value;
    prony_status status = PRONY_OK;
    for (size_t k = 0; status == PRONY_OK && k < row->output_count; k++) {
        if (row->model_outputs[k] == PRONY_SHARD_MODEL) continue;
        status = prony_session_output(session, k, &value, error);
        if (status == PRONY_OK && !keep_output(p, row->model_outputs[k], p->at, value))
            status = pipeline_refuse(error, row->outputs[k].name, NOT_KEPT);
    }
    return status;
}

/* To each stage that reads it once per port, as the plan lists them. */
static prony_status send_outputs(pipeline *p, const prony_session *session, prony_error *error)
{
    const prony_shard_stage *row = &p->rows[p->rank];
    const prony_value *value;
    prony_status status = PRONY_OK;
    for (size_t s = (size_t)p->rank + 1; s < p->stage_count; s++)
        for (size_t i = 0; status == PRONY_OK && i < p->rows[s].input_count; i++) {
            const prony_shard_tensor *t = &p->rows[s].inputs[i];
            if (t->from != row->index) continue;
            status = prony_session_output(session, t->port, &value, error);
            if (status == PRONY_OK) status = send_value(p, value, t->name, (int)s, (int)i, error);
        }
    if (status != PRONY_OK) return status;
    return p->rank ? send_model_outputs(p, session, error) : keep_model_outputs(p, session, error);
}

/* ---- the end of a run ---- */

static bool all_ended(pipeline *p)
{
    end_sent(p);
    take_model_outputs(p);
    return p->ended + 1 >= p->stage_count || *p->failure;
}

static prony_status end_run(pipeline *p, prony_error *error)
{
    const int64_t waits_ns = prony_now_ns();
    p->at = 0;
    if (p->rank != 0) return PRONY_OK;
    prony_status status = pipeline_wait_until(p, all_ended, "the end of the run on", error);
    if (*p->failure && status == PRONY_OK) status = pipeline_lost(error, p->failure);
    pipeline_note(p, (pipeline_span){SPAN_WAIT, 0, 0, (int32_t)p->micro_batches - 1, waits_ns, prony_now_ns()},
                  p->counts ? p->run : 0, 0);
    p->ended = 0;
    memset(p->has_ended, 0, sizeof p->has_ended);
    if (status == PRONY_OK && p->counts && p->sample_count < p->sample_capacity)
        p->samples_ns[p->sample_count++] = prony_now_ns() - p->run_began_ns;
    return status == PRONY_OK && p->end_run ? p->end_run(p->run_user, error) : status;
}

prony_status pipeline_after(void *user, prony_session *session, prony_error *error)
{
    pipeline *p = user;
    const int64_t now = prony_now_ns();
    pipeline_progress_end(p);
    if (p->counts) p->computing_ns += now - p->computing_since_ns;
    pipeline_note(p, (pipeline_span){SPAN_COMPUTE, p->rank, 0, (int32_t)p->at, p->computing_since_ns, now},
                  p->counts ? p->run : 0, 0);
    p->bound = false;
    prony_status status = pipeline_wait_until(p, few_left, "messages to be taken by", error);
    if (status == PRONY_OK) status = send_outputs(p, session, error);
    if (status == PRONY_OK && ++p->at == p->micro_batches) status = end_run(p, error);
    return status;
}

prony_status pipeline_drain(pipeline *p, prony_error *error)
{
    return pipeline_wait_until(p, none_left, "messages to be taken by", error);
}

void pipeline_end(pipeline *p)
{
    prony_error error;
    if (!p->lost) (void)pipeline_drain(p, &error);
    for (size_t k = 0; p->kept && k < p->model_outputs; k++) free(p->kept[k].bytes);
    /* Messages that are still being sent belong to MPI until the process ends. */
    if (!p->sending_count) free(p->sending);
    free(p->kept);
    free(p->outputs);
    free(p->inputs);
    free(p->samples_ns);
    free(p->spans);
    free(p->totals);
}
