/* Early ends of a sharded run: a rank that cannot go on, one that is silent, a signal, and rank 0's word. */
#include "bench/cluster/pipeline.h"

#include "bench/process/interrupt.h"

#include <sched.h>

/* `silent`: the rank that did not answer; -1: the failure is this rank's own. */
static void pipeline_report(pipeline *p, int silent, const char *text)
{
    message m = {0};
    if (p->rank != 0 && !p->lost && !interrupted()) {
        message_put_number(&m, silent);
        message_put_text(&m, text);
        (void)cluster_send(0, TAG_FAILED, &m, cluster_limit(p->o, 10));
        message_free(&m);
    }
    p->lost = true;
}

void pipeline_fail(pipeline *p, const char *text)
{
    pipeline_report(p, -1, text);
}

/* Rank 0: notes a failure once, with the hosts of the rank that tells of it and of the one that is silent. */
static void pipeline_note_failure(const pipeline *p, char *to, int rank, int64_t silent, const char *text)
{
    const bool named = p->hellos && rank < p->ranks && p->hellos[rank].known;
    const bool both = p->hellos && silent >= 0 && silent < p->ranks && silent != rank && p->hellos[silent].known;
    char tail[160] = "";
    if (*to) return;
    if (both) snprintf(tail, sizeof tail, "; rank %d runs on %.120s", (int)silent, p->hellos[silent].host);
    snprintf(to, sizeof p->failure, "rank %d%s%.120s%s: %.600s%s", rank, named ? " (" : "",
             named ? p->hellos[rank].host : "", named ? ")" : "", text, tail);
}

void pipeline_hear_failure(pipeline *p, int rank, message *m)
{
    const int64_t silent = message_take_number(m);
    const char *text = message_take_text(m, NULL);
    const bool answers = silent == 0 || (silent > 0 && silent < p->ranks && p->reported[silent]);
    if (rank < p->ranks) p->reported[rank] = true;
    char *to = answers ? p->doubtful : p->failure;
    pipeline_note_failure(p, to, rank, silent, text);
    p->lost = p->lost || !answers;
}

void pipeline_give_up(pipeline *p, int silent, const char *text)
{
    enum { REPORT_SECONDS = 2 };
    if (p->lost) return;
    if (p->rank != 0) {
        pipeline_report(p, silent, text);
        return;
    }
    for (const double end = cluster_now() + REPORT_SECONDS; !pipeline_stopped(p) && cluster_now() < end;) sched_yield();
    if (!*p->failure && *p->doubtful && (silent == 0 || p->reported[silent]))
        snprintf(p->failure, sizeof p->failure, "%s", p->doubtful);
    pipeline_note_failure(p, p->failure, 0, silent, text);
    p->lost = true;
}

/* Control messages: rank 0 hears of failures, the others of the end. */
bool pipeline_stopped(pipeline *p)
{
    int rank, tag;
    message m;
    static const int ends[] = {TAG_FAILED, TAG_STOP, TAG_INTERRUPTED};
    if (interrupted()) {
        p->lost = true;
        if (p->say_interrupted) p->say_interrupted(p->say_user);
    }
    for (size_t i = 0; !p->lost && i < sizeof ends / sizeof *ends; i++) {
        if (!cluster_receive_of(ends[i], &rank, &tag, &m)) continue;
        if (tag == TAG_FAILED) {
            pipeline_hear_failure(p, rank, &m);
        } else {
            if (tag == TAG_INTERRUPTED) snprintf(p->failure, sizeof p->failure, "rank %d got a signal: ended", rank);
            p->lost = true;
        }
        message_free(&m);
    }
    return p->lost;
}
