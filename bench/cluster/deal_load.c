/* prony-mpi bench --scenario offline: every rank issues its own load, all from one moment, and rank 0 computes the
 * figures of all queries together. Times of a rank count from the moment at which it left the barrier, so no clocks are
 * compared. */
#include "bench/cluster/deal.h"

#include "bench/load/load.h"
#include "bench/process/interrupt.h"

#include <stdlib.h>
#include <string.h>

typedef struct deal_load {
    sharded *s;
    int64_t began_ns;
    query *all; /* rank 0 */
    size_t count;
    load_rank *rows; /* [ranks] on rank 0 */
} deal_load;

/* Every rank has warmed up and waits for the others. */
static int deal_load_begin(void *user)
{
    deal_load *d = user;
    pipeline *p = &d->s->pipe;
    const double limit = cluster_limit(d->s->o, HELLO_SECONDS), end = cluster_now() + limit;
    MPI_Request request;
    int done = 0;
    if (MPI_Ibarrier(p->tensors, &request) != MPI_SUCCESS) return EXIT_FAILED;
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        if (pipeline_stopped(p)) return EXIT_FAILED;
        if (cluster_now() > end) {
            char text[160];
            snprintf(text, sizeof text, "a rank did not begin its load within %.0f s (--timeout): ended", limit);
            if (p->rank == 0) snprintf(p->failure, sizeof p->failure, "%s", text);
            pipeline_fail(p, text);
            return EXIT_FAILED;
        }
        pipeline_pause();
    }
    d->began_ns = prony_now_ns();
    return EXIT_DONE;
}

/* While queries are issued: a failure of another rank ends this one's load. */
static bool deal_load_stop(void *user)
{
    return pipeline_stopped(&((deal_load *)user)->s->pipe);
}

/* Adds a rank's queries, with its times moved to rank 0's beginning. */
static bool add_queries(deal_load *d, int rank, const query *queries, size_t count, int64_t shift)
{
    query *all = realloc(d->all, (d->count + count + 1) * sizeof *all);
    if (!all) return false;
    d->all = all;
    for (size_t i = 0; i < count; i++) {
        query *q = &all[d->count + i];
        *q = queries[i];
        q->load = NULL;
        q->scheduled_ns += shift;
        q->issued_ns += shift;
        q->started_ns += q->started_ns == INT64_MAX ? 0 : shift;
        q->finished_ns += shift;
        if (q->finished_ns - d->began_ns > d->rows[rank].span_ns) d->rows[rank].span_ns = q->finished_ns - d->began_ns;
    }
    d->count += count;
    d->rows[rank].queries = count;
    return true;
}

static bool deal_load_take(sharded *s, int rank, message *m)
{
    deal_load *d = s->deal;
    const int64_t began = message_take_number(m), count = message_take_number(m);
    if (m->bad || count < 0 || (uint64_t)count > (m->size - m->at) / sizeof(query)) return false;
    query *queries = malloc((size_t)count * sizeof *queries + 1);
    if (queries) message_take(m, queries, (size_t)count * sizeof *queries);
    const bool fine = queries && !m->bad && add_queries(d, rank, queries, (size_t)count, d->began_ns - began);
    free(queries);
    if (!fine) snprintf(s->pipe.failure, sizeof s->pipe.failure, "rank %d: its queries arrived damaged", rank);
    return fine;
}

static int by_schedule(const void *left, const void *right)
{
    const int64_t a = ((const query *)left)->scheduled_ns, b = ((const query *)right)->scheduled_ns;
    return (a > b) - (a < b);
}

static int deal_load_gather(void *user, query **queries, size_t *count)
{
    deal_load *d = user;
    sharded *s = d->s;
    message m = {0};
    if (interrupted() || pipeline_stopped(&s->pipe)) return EXIT_FAILED;
    if (s->pipe.rank != 0) {
        message_put_number(&m, d->began_ns);
        message_put_number(&m, (int64_t)*count);
        message_put(&m, *queries, *count * sizeof **queries);
        const bool sent = cluster_send(0, TAG_RESULT, &m, cluster_limit(s->o, HELLO_SECONDS));
        message_free(&m);
        return sent ? EXIT_DONE : EXIT_FAILED;
    }
    if (!add_queries(d, 0, *queries, *count, 0)) return fail(s->o, "out of memory");
    if (!shard_hear_all(s, TAG_RESULT, cluster_limit(s->o, HELLO_SECONDS), deal_load_take)) return EXIT_FAILED;
    qsort(d->all, d->count, sizeof *d->all, by_schedule);
    free(*queries);
    *queries = d->all;
    *count = d->count;
    d->all = NULL;
    return EXIT_DONE;
}

int deal_load_run(sharded *s)
{
    deal_load d = {.s = s, .rows = calloc((size_t)s->pipe.ranks, sizeof *d.rows)};
    if (!d.rows) return fail(s->o, "out of memory");
    for (int r = 0; r < s->pipe.ranks; r++) d.rows[r].node = s->pipe.rank == 0 ? s->hellos[r].host : "";
    const load_ranks ranks = {.rank = s->pipe.rank,
                              .count = s->pipe.ranks,
                              .rows = d.rows,
                              .begin = deal_load_begin,
                              .stop = deal_load_stop,
                              .gather = deal_load_gather,
                              .user = &d};
    s->deal = &d;
    s->works = true;
    prony_model_release(s->model); /* the load loads its own */
    s->model = NULL;
    int code = bench_load(s->o, &ranks);
    free(d.all);
    free(d.rows);
    s->deal = NULL;
    return code;
}
