/* See the header. A ping is answered at once; half of the shortest of several round trips is the time of one message.
 * Sizes grow from 8 bytes to 1 MiB. Pairs without a common rank may be measured at once. The clock's offset follows
 * from the shortest round trip of all: its error is at most half of that. */
#include "bench/cluster/links.h"

#include "bench/process/interrupt.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes and rounds of the pings; chosen without measurement. */
enum { TAG_PING = 21000, LARGE = 1 << 20, FEW_BYTES = 4096, SMALL_ROUNDS = 30, LARGE_ROUNDS = 6, FEW_RANKS = 8 };

static const int sizes[] = {8, 64, 512, 4096, 32768, 262144, LARGE};
#define SIZES (sizeof sizes / sizeof *sizes)

static bool finish(pipeline *p, MPI_Request *request, double end)
{
    for (int done = 0;;) {
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
        if (done) return true;
        if (cluster_now() > end || pipeline_stopped(p)) return false;
        sched_yield();
    }
}

static bool move(pipeline *p, char *bytes, int size, int rank, bool receives, double end)
{
    MPI_Request request;
    const int code = receives ? MPI_Irecv(bytes, size, MPI_BYTE, rank, TAG_PING, p->tensors, &request)
                              : MPI_Isend(bytes, size, MPI_BYTE, rank, TAG_PING, p->tensors, &request);
    if (code == MPI_SUCCESS && finish(p, &request, end)) return true;
    char text[120];
    snprintf(text, sizeof text, "the interconnect could not be measured with rank %d, which did not answer (--timeout)",
             rank);
    pipeline_give_up(p, rank, text);
    return false;
}

/* Of one size. */
static int link_rounds_of(int size)
{
    return size <= FEW_BYTES ? SMALL_ROUNDS : LARGE_ROUNDS;
}

static bool links_answer(pipeline *p, char *bytes, int to, double end)
{
    for (size_t k = 0; k < SIZES; k++)
        for (int i = 0; i < link_rounds_of(sizes[k]); i++) {
            if (!move(p, bytes, sizes[k], to, true, end)) return false;
            const int64_t now = prony_now_ns();
            memcpy(bytes, &now, sizeof now);
            if (!move(p, bytes, sizes[k], to, false, end)) return false;
        }
    return true;
}

/* Pings `to` with messages of each size. Its clock less this one's follows from the smallest ones. */
static bool ask(pipeline *p, char *bytes, int to, double end, link_figures *out, link_table *table)
{
    int64_t shortest = 0;
    for (size_t k = 0; k < SIZES; k++) {
        shortest = INT64_MAX;
        for (int i = 0; i < link_rounds_of(sizes[k]); i++) {
            const int64_t began = prony_now_ns();
            if (!move(p, bytes, sizes[k], to, false, end)) return false;
            if (!move(p, bytes, sizes[k], to, true, end)) return false;
            const int64_t took = prony_now_ns() - began;
            int64_t theirs;
            memcpy(&theirs, bytes, sizeof theirs);
            if (took >= shortest) continue;
            shortest = took;
            if (k > 0) continue;
            out->clock_offset_ns = theirs - (began + took / 2);
            out->clock_error_ns = (took + 1) / 2;
            out->latency_ns = (double)took / 2;
        }
        const prony_link_row row = {(uint32_t)p->rank, (uint32_t)to, (uint64_t)sizes[k], shortest / 2};
        if (!links_add(table, &row)) return false;
    }
    const double rest = (double)shortest / 2 - out->latency_ns;
    out->bytes_per_ns = rest > 0 ? LARGE / rest : 0;
    return true;
}

bool links_add(link_table *t, const prony_link_row *row)
{
    if (t->count == t->capacity) {
        prony_link_row *more = realloc(t->rows, (2 * t->capacity + 16) * sizeof *more);
        if (!more) return false;
        t->rows = more;
        t->capacity = 2 * t->capacity + 16;
    }
    t->rows[t->count++] = *row;
    return true;
}

/* All pairs of a few ranks; of many, those that a pipeline uses most: neighbours, and rank 0 with each. */
static bool links_measures(int ranks, int before, int rank)
{
    return ranks <= FEW_RANKS || before == 0 || before + 1 == rank;
}

/* Every rank meets its pairs in the same order, so that no two wait for each other. */
bool links_measure(pipeline *p, link_figures *own, link_table *table)
{
    const double end = cluster_now() + cluster_limit(p->o, GRACE_SECONDS);
    char *bytes = calloc(1, LARGE);
    link_figures to_first = {0};
    bool fine = bytes != NULL;
    *own = (link_figures){0};
    for (int before = 0; fine && before < p->ranks; before++)
        for (int rank = before + 1; fine && rank < p->ranks; rank++) {
            link_figures figures = {0};
            if (!links_measures(p->ranks, before, rank)) continue;
            if (p->rank == before) fine = links_answer(p, bytes, rank, end);
            if (p->rank != rank) continue;
            fine = ask(p, bytes, before, end, &figures, table);
            if (before + 1 == rank) *own = figures;
            if (before == 0) to_first = figures;
        }
    free(bytes);
    own->clock_offset_ns = -to_first.clock_offset_ns;
    own->clock_error_ns = to_first.clock_error_ns;
    return fine;
}
