/* Issues queries and records their times.
 *
 * An open-loop scenario (`server`) issues at times drawn beforehand, independent of the service, and latency counts
 * from these times. So a late or waiting generator hides nothing (no coordinated omission). Its lateness is reported as
 * lag. The others are closed loops: `single` and `multi` issue the next query when the one before is done; `offline`
 * keeps enough requests in flight that no session waits.
 *
 * Queries lie in blocks that never move, because requests in flight point at them. */
#include "bench/process/interrupt.h"
#include "bench/load/load.h"
#include "bench/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Requests in flight per session and largest batch; SPIN_NS before a query is due the thread stops sleeping, since a
 * sleep ends late; NAP_NS is the longest delay of an interruption. Chosen without measurement. */
enum { BLOCK_QUERIES = 4096, OFFLINE_DEPTH = 4, SPIN_NS = 50000, NAP_NS = 50000000 };

typedef struct query_list {
    query **blocks;
    size_t block_count, count;
} query_list;

static query *add_query(load *l, query_list *list)
{
    if (list->count == list->block_count * BLOCK_QUERIES) {
        query **blocks = realloc(list->blocks, (list->block_count + 1) * sizeof *blocks);
        if (!blocks) return NULL;
        list->blocks = blocks;
        blocks[list->block_count] = calloc(BLOCK_QUERIES, sizeof **blocks);
        if (!blocks[list->block_count]) return NULL;
        list->block_count++;
    }
    query *q = &list->blocks[list->count / BLOCK_QUERIES][list->count % BLOCK_QUERIES];
    *q = (query){.load = l, .left = l->requests_per_query, .started_ns = INT64_MAX};
    list->count++;
    return q;
}

/* All queries in one array, which the caller frees; NULL: out of memory. */
static query *load_issue_flatten(query_list *list)
{
    query *all = malloc((list->count + 1) * sizeof *all);
    for (size_t i = 0; all && i < list->count; i++) all[i] = list->blocks[i / BLOCK_QUERIES][i % BLOCK_QUERIES];
    for (size_t b = 0; b < list->block_count; b++) free(list->blocks[b]);
    free(list->blocks);
    return all;
}

/* A request of `q` is done; under the lock. */
static void end_request(query *q, prony_status status, const char *message, int64_t started, int64_t finished,
                        int64_t batch)
{
    load *l = q->load;
    if (status != PRONY_OK) {
        if (!l->failure[0]) snprintf(l->failure, sizeof l->failure, "%.255s", message);
        q->failed++;
    }
    if (started < q->started_ns) q->started_ns = started;
    if (finished > q->finished_ns) {
        q->finished_ns = finished;
        q->batch = batch > 0 ? batch : 1;
    }
    if (--q->left > 0) return;
    l->in_progress--;
    if (q->failed || (l->bound_ns && q->finished_ns - q->scheduled_ns > l->bound_ns)) l->over++;
    pthread_cond_signal(&l->change);
}

static void done(void *user, const prony_batch_result *result)
{
    query *q = user;
    load *l = q->load;
    pthread_mutex_lock(&l->lock);
    end_request(q, result->status, result->message, result->started_ns, result->finished_ns, result->batch);
    pthread_mutex_unlock(&l->lock);
}

/* Submits to the batcher or, without one, runs in the calling thread at once. */
static void issue(load *l, query *q)
{
    prony_error error = {0};
    pthread_mutex_lock(&l->lock);
    l->in_progress++;
    pthread_mutex_unlock(&l->lock);
    q->issued_ns = prony_now_ns();
    if (!q->scheduled_ns) q->scheduled_ns = q->issued_ns;
    for (int i = 0; i < l->requests_per_query; i++) {
        int64_t now = prony_now_ns();
        prony_status status = l->batcher ? prony_batcher_submit(l->batcher, l->inputs, l->input_count, done, q, &error)
                                         : prony_session_run(l->session, &error);
        if (l->batcher && status == PRONY_OK) continue;
        pthread_mutex_lock(&l->lock);
        end_request(q, status, error.message, now, prony_now_ns(), 1);
        pthread_mutex_unlock(&l->lock);
    }
}

/* Waits until at most `most` queries are in progress. After an interruption the batcher drops the requests that wait,
 * so that at most the requests in its sessions are still served. */
static void await_queries(load *l, size_t most)
{
    bool dropped = false;
    pthread_mutex_lock(&l->lock);
    while (l->in_progress > most) {
        struct timespec until;
        if (l->batcher && !dropped && interrupted()) {
            dropped = true;
            pthread_mutex_unlock(&l->lock); /* the dropped requests' callbacks take the lock */
            prony_batcher_close(l->batcher, true);
            pthread_mutex_lock(&l->lock);
            continue;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += NAP_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&l->change, &l->lock, &until);
    }
    pthread_mutex_unlock(&l->lock);
}

/* Sleeps, then spins at the end, because waking takes longer than a small query. false: interrupted. */
static bool wait_until(int64_t ns)
{
    int64_t early = ns - SPIN_NS;
    for (int64_t now = prony_now_ns(); now < early; now = prony_now_ns()) {
        int64_t next = early - now > NAP_NS ? now + NAP_NS : early;
        struct timespec t = {next / 1000000000, next % 1000000000};
        if (interrupted()) return false;
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    }
    while (prony_now_ns() < ns) continue;
    return true;
}

/* A draw of an exponential of mean 1. */
static double next_gap(uint64_t *state)
{
    return -log(((double)(random_bits(state) >> 11) + 0.5) * 0x1p-53);
}

/* true: the bound is missed for any result of the remaining queries. */
static bool hopeless(load *l, size_t planned)
{
    pthread_mutex_lock(&l->lock);
    size_t over = l->over;
    pthread_mutex_unlock(&l->lock);
    return load_verdict((rate_count){planned, over}, l->percentile) == RATE_MISSED;
}

/* true: a closed loop ends with the first failure. */
static bool has_failed(load *l)
{
    pthread_mutex_lock(&l->lock);
    bool failed = l->failure[0] != '\0';
    pthread_mutex_unlock(&l->lock);
    return failed;
}

static void show_state(const load *l, size_t queries, double seconds, double rate)
{
    char text[128];
    if (!want_progress(l->o)) return;
    if (rate > 0)
        snprintf(text, sizeof text, "%s at %.3g queries/s: %zu queries, %.1f s", scenario_names[l->scenario], rate,
                 queries, seconds);
    else
        snprintf(text, sizeof text, "%s: %zu queries, %.1f s", scenario_names[l->scenario], queries, seconds);
    show_progress_text(text);
}

/* true: issue more queries. */
static bool load_issue_go_on(const load_plan *plan, size_t queries, double seconds)
{
    if (interrupted() || (plan->most && queries >= plan->most)) return false;
    if (plan->longest > 0 && seconds >= plan->longest && queries > 0) return false;
    return seconds < plan->seconds || queries < plan->least;
}

/* Issues queries until the plan ends, a closed loop fails or the user interrupts; false: out of memory. `due` advances
 * by exponential gaps from the seed alone, so one seed gives one schedule. The display, the other ranks and `hopeless`
 * are looked at every 100 ms; chosen without measurement. */
static bool run_queries(load *l, const load_plan *plan, query_list *list, load_result *out)
{
    uint64_t random = plan->seed;
    int64_t begin = prony_now_ns(), due = begin, shown = begin;
    size_t depth = l->scenario == SCENARIO_OFFLINE
                       ? (size_t)OFFLINE_DEPTH * (size_t)l->streams *
                             (size_t)(l->trial.sizes_count ? l->trial.sizes[l->trial.sizes_count - 1] : 1)
                       : 1;
    double planned = plan->rate * plan->seconds;
    size_t wanted = planned > (double)plan->least ? (size_t)planned : plan->least;
    while (load_issue_go_on(plan, list->count, (double)((plan->rate > 0 ? due : prony_now_ns()) - begin) / 1e9)) {
        if (plan->rate > 0) {
            due += (int64_t)(next_gap(&random) / plan->rate * 1e9);
            if (!wait_until(due)) break;
        } else {
            await_queries(l, depth - 1);
        }
        query *q = add_query(l, list);
        if (!q) return false;
        if (plan->rate > 0) q->scheduled_ns = due;
        issue(l, q);
        int64_t now = prony_now_ns();
        if (plan->rate <= 0 && has_failed(l)) break;
        if (now - shown > 100000000) {
            show_state(l, list->count, (double)(now - begin) / 1e9, plan->rate);
            shown = now;
            if (l->ranks && l->ranks->stop(l->ranks->user)) break;
            if (plan->give_up && hopeless(l, wanted)) {
                out->cut_short = true;
                break;
            }
        }
    }
    return true;
}

int load_issue(load *l, const load_plan *plan, load_result *out)
{
    query_list list = {0};
    *out = (load_result){.scenario = l->scenario, .rate = plan->rate};
    l->in_progress = l->over = 0;
    l->failure[0] = '\0';
    int code = l->ranks && plan->shared ? l->ranks->begin(l->ranks->user) : EXIT_DONE;
    if (code != EXIT_DONE) return code;
    bool room = run_queries(l, plan, &list, out);
    await_queries(l, 0);
    query *all = load_issue_flatten(&list);
    if (!room || !all) {
        free(all);
        return fail(l->o, "out of memory");
    }
    /* Queries without memory are not in `count`; all others have ended, or were dropped by an interruption, which ends
     * the load of every rank. */
    if (l->ranks && plan->shared && (interrupted() || !has_failed(l)))
        code = l->ranks->gather(l->ranks->user, &all, &list.count);
    if (code == EXIT_DONE) code = load_figures(l, all, list.count, out);
    free(all);
    return code;
}
