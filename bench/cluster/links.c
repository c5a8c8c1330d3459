/* See the header. A ping is answered at once; half of the shortest of several round trips is the time of one message.
 * Sizes grow from 8 bytes to 1 MiB. The clock's offset follows from the shortest round trip of all: its error is at most
 * half of that. */
#include "bench/cluster/links.h"

#include "bench/process/interrupt.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_PING = 21000, SMALL = 8, LARGE = 1 << 20, SMALL_ROUNDS = 30, LARGE_ROUNDS = 6 };

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

static bool links_answer(pipeline *p, char *bytes, int to, double end)
{
    for (int i = 0; i < SMALL_ROUNDS + LARGE_ROUNDS; i++) {
        const int size = i < SMALL_ROUNDS ? SMALL : LARGE;
        if (!move(p, bytes, size, to, true, end)) return false;
        const int64_t now = prony_now_ns();
        memcpy(bytes, &now, sizeof now);
        if (!move(p, bytes, size, to, false, end)) return false;
    }
    return true;
}

/* Pings `to`. Its clock less this one's follows too. */
static bool ask(pipeline *p, char *bytes, int to, double end, link_figures *out)
{
    int64_t shortest[2] = {INT64_MAX, INT64_MAX};
    for (int i = 0; i < SMALL_ROUNDS + LARGE_ROUNDS; i++) {
        const bool large = i >= SMALL_ROUNDS;
        const int64_t began = prony_now_ns();
        if (!move(p, bytes, large ? LARGE : SMALL, to, false, end)) return false;
        if (!move(p, bytes, large ? LARGE : SMALL, to, true, end)) return false;
        const int64_t took = prony_now_ns() - began;
        int64_t theirs;
        memcpy(&theirs, bytes, sizeof theirs);
        if (took >= shortest[large]) continue;
        shortest[large] = took;
        if (large) continue;
        out->clock_offset_ns = theirs - (began + took / 2);
        out->clock_error_ns = (took + 1) / 2;
    }
    out->latency_ns = (double)shortest[0] / 2;
    const double rest = (double)shortest[1] / 2 - out->latency_ns;
    out->bytes_per_ns = rest > 0 ? LARGE / rest : 0;
    return true;
}

bool links_measure(pipeline *p, link_figures *own)
{
    const double end = cluster_now() + cluster_limit(p->o, GRACE_SECONDS);
    char *bytes = calloc(1, LARGE);
    link_figures to_first = {0};
    bool fine = bytes != NULL;
    *own = (link_figures){0};
    /* A chain: each rank asks the one before it, once that one has its own figures. */
    if (fine && p->rank > 0) fine = ask(p, bytes, p->rank - 1, end, own);
    if (fine && p->rank + 1 < p->ranks) fine = links_answer(p, bytes, p->rank + 1, end);
    /* Then each asks rank 0 for its clock, in turn. */
    for (int r = 1; fine && r < p->ranks; r++) {
        if (p->rank == 0) fine = links_answer(p, bytes, r, end);
        if (p->rank == r) fine = ask(p, bytes, 0, end, &to_first);
    }
    free(bytes);
    own->clock_offset_ns = -to_first.clock_offset_ns;
    own->clock_error_ns = to_first.clock_error_ns;
    return fine;
}
