/* Inference: a job between a suspended connection and the batcher. */
#include "bench/serve/service.h"
#include "bench/serve/microhttpd_library.h"

#include <stdlib.h>
#include <string.h>

enum { TOTAL_BODIES = 4 }; /* requests hold at most so many bodies of the largest size together */
#define LEAST_TOTAL ((size_t)256 << 20)

bool service_count_bytes(service *s, size_t *counted, size_t bytes)
{
    size_t most = TOTAL_BODIES * (size_t)s->o->serve.body_limit;
    if (most < LEAST_TOTAL) most = LEAST_TOTAL;
    pthread_mutex_lock(&s->lock);
    bool fits = s->body_bytes + bytes <= most || s->body_bytes == *counted;
    if (fits) {
        s->body_bytes += bytes;
        *counted += bytes;
    }
    pthread_mutex_unlock(&s->lock);
    return fits;
}

void service_uncount_bytes(service *s, size_t *counted)
{
    pthread_mutex_lock(&s->lock);
    s->body_bytes -= *counted;
    pthread_mutex_unlock(&s->lock);
    *counted = 0;
}

void service_job_release(service_job *job)
{
    if (atomic_fetch_sub(&job->references, 1) > 1) return;
    infer_request_free(&job->request);
    buffer_free(&job->body);
    buffer_free(&job->answer.body);
    service_uncount_bytes(job->service, &job->counted);
    served_put(job->version);
    free(job);
}

static void count_job(const service_job *job, int status, const prony_batch_result *r)
{
    stats_request request = {.status = status, .samples = job->request.samples, .totals = &job->version->totals};
    int64_t now = prony_now_ns();
    request.latency_ns = now - job->received_ns;
    if (r && r->status == PRONY_OK) {
        request.queue_ns = r->started_ns - r->submitted_ns;
        request.run_ns = r->finished_ns - r->started_ns;
    }
    stats_add_request(job->version->slot->stats, &request, now);
}

/* Takes the answer if the job has none yet, counts it, and resumes the connection: nothing is sent before. `r` (may be
 * NULL) is the batcher's result. The first call also ends the job's stay in the list of waiting ones. */
static void job_answer(service_job *job, service_answer *answer, const prony_batch_result *r)
{
    service *s = job->service;
    pthread_mutex_lock(&s->lock);
    bool first = !job->answered;
    if (first) {
        job->answered = true;
        *job->link = job->next;
        if (job->next) job->next->link = job->link;
        s->job_count--;
    }
    pthread_mutex_unlock(&s->lock);
    if (!first) {
        buffer_free(&answer->body);
        return;
    }
    job->answer = *answer;
    count_job(job, answer->status, r);
    MHD_resume_connection(job->connection);
}

static int status_of(prony_status status)
{
    switch (status) {
    case PRONY_INVALID_ARGUMENT:
    case PRONY_SHAPE_MISMATCH:
    case PRONY_OUT_OF_RANGE:
    case PRONY_NEEDS_DIMENSION:
        return 400;
    case PRONY_CANCELLED:
    case PRONY_OUT_OF_MEMORY:
    case PRONY_LIMIT:
        return 503;
    default:
        return 500;
    }
}

/* A thread of the batcher: the outputs are valid during this call alone. */
static void job_done(void *user, const prony_batch_result *r)
{
    service_job *job = user;
    service_answer answer = {.status = 200, .header_size = SIZE_MAX};
    bool expired = job->deadline_ns && r->status == PRONY_CANCELLED && prony_now_ns() >= job->deadline_ns;
    if (r->status == PRONY_OK && r->index == 0) /* the first request of a run counts the run */
        stats_add_run(job->version->slot->stats, r->batch, r->finished_ns - r->started_ns, r->finished_ns);
    if (r->status == PRONY_OK) {
        if (!infer_respond(&answer.body, &job->version->signature, &job->request, job->version->text, r->outputs,
                           &answer.header_size)) {
            buffer_free(&answer.body);
            answer_error(&answer, 503, "out of memory");
        }
    } else if (expired) {
        answer_error(&answer, 504, "model '%s': the deadline passed while the request waited",
                     job->version->slot->name);
    } else {
        answer_error(&answer, status_of(r->status), "model '%s': %s", job->version->slot->name, r->message);
    }
    job_answer(job, &answer, r);
    service_job_release(job);
}

/* Puts the job on the list and wakes the main thread if its deadline is the next one. */
static void job_list(service_job *job)
{
    service *s = job->service;
    pthread_mutex_lock(&s->lock);
    job->next = s->jobs;
    job->link = &s->jobs;
    if (job->next) job->next->link = &job->next;
    s->jobs = job;
    s->job_count++;
    if (job->deadline_ns && job->deadline_ns < s->wake_ns) pthread_cond_signal(&s->change);
    pthread_mutex_unlock(&s->lock);
}

static void refuse_submission(service_job *job, const prony_error *error)
{
    service_answer answer = {.header_size = SIZE_MAX};
    const char *name = job->version->slot->name;
    if (error->status == PRONY_LIMIT)
        answer_error(&answer, 429, "model '%s': the queue is full: %lld requests wait (--max-queue)", name,
                     (long long)job->service->o->serve.max_queue);
    else
        answer_error(&answer, error->status == PRONY_CANCELLED ? 503 : status_of(error->status), "model '%s': %s", name,
                     error->message);
    job_answer(job, &answer, NULL);
}

/* The job has two references once it is submitted: the exchange's and the batcher's. The connection is suspended before
 * the submission, because job_done, which resumes it, may run on another thread before the submission returns. A
 * refused submission releases the batcher's reference here. */
service_job *infer_start(service *s, struct MHD_Connection *connection, served_model *slot, text_buffer *body,
                         size_t *counted, size_t header_size, int64_t timeout_ns, service_answer *answer)
{
    char message[INFER_MESSAGE] = "";
    int64_t now_ns = prony_now_ns();
    if (atomic_load(&s->draining)) return answer_error(answer, 503, "the service is ending"), NULL;
    service_job *job = calloc(1, sizeof *job);
    if (!job) return answer_error(answer, 503, "out of memory"), NULL;
    job->service = s;
    job->connection = connection;
    job->received_ns = now_ns;
    job->deadline_ns = timeout_ns ? now_ns + timeout_ns : 0;
    job->version = served_get(slot);
    atomic_init(&job->references, 1);
    job->body = *body;
    *body = (text_buffer){0};
    job->counted = *counted;
    *counted = 0;
    int status = infer_parse(&job->request, &job->version->signature, job->body.data ? job->body.data : "",
                             job->body.size, header_size, message);
    if (!status && !service_count_bytes(s, &job->counted, job->request.allocated))
        status = infer_fail(message, 503, "too many bytes of requests are in progress");
    if (status) {
        answer_error(answer, status, "%s", message);
        service_job_release(job);
        return NULL;
    }
    prony_error error = {0};
    atomic_store(&job->references, 2);
    MHD_suspend_connection(connection);
    job_list(job);
    if (prony_batcher_submit_until(job->version->batcher, job->request.inputs, job->request.input_count,
                                   job->deadline_ns, job_done, job, &error) != PRONY_OK) {
        refuse_submission(job, &error);
        service_job_release(job);
    }
    return job;
}

void service_expire(service *s, int64_t now_ns)
{
    for (;;) {
        service_job *late = NULL;
        pthread_mutex_lock(&s->lock);
        for (service_job *job = s->jobs; job && !late; job = job->next) {
            if (now_ns == INT64_MAX || (job->deadline_ns && job->deadline_ns <= now_ns)) {
                late = job;
                atomic_fetch_add(&late->references, 1);
            }
        }
        pthread_mutex_unlock(&s->lock);
        if (!late) return;
        service_answer answer = {.header_size = SIZE_MAX};
        if (now_ns == INT64_MAX)
            answer_error(&answer, 503, "the service is ending");
        else
            answer_error(&answer, 504, "model '%s': no result within the request's time", late->version->slot->name);
        job_answer(late, &answer, NULL);
        service_job_release(late);
    }
}
