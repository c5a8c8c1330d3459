/* Rank 0: checks the ranks, holds the study and its file, and hands its blocks out. It measures on its own node like
 * any other rank, in a thread beside.
 *
 * Ranks of one host take turns, so that they do not disturb one another; ranks of several hosts measure at the same
 * time. Replicas begin together on all hosts: once every host is idle, one rank of each starts them, and they begin
 * when all are ready. A rank whose result does not come within the process's limit and a grace is lost: the run ends
 * then. So it does when a rank gets a signal, or this one. Whatever ends the run, the file is written first. */
#include "bench/cluster/cluster.h"
#include "bench/cluster/runner.h"

#include "bench/process/interrupt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 700, ENDED_BYTES = 400 }; /* Open MPI's launcher kills a second after its SIGTERM */

typedef struct rank_state {
    size_t node; /* of the study */
    bool busy, silenced, finished;
    bool together, ready; /* its replicas wait for those of other hosts; they have loaded the model */
    prony_study_task task;
    double deadline, told; /* told: when it last got a message */
} rank_state;

typedef struct coordinator {
    const options *o;
    scale_job job;
    int count;
    hello *hellos;
    rank_state *ranks;
    char ended[ENDED_BYTES];
    bool lost; /* a rank that cannot end with the others */
} coordinator;

/* ---- who is there ---- */

static void wait_for_hellos(coordinator *c)
{
    const double end = cluster_now() + cluster_limit(c->o, HELLO_SECONDS);
    int missing = c->count - 1;
    while (missing > 0 && cluster_now() < end && !interrupted()) {
        int rank, tag;
        message m;
        if (!cluster_receive(&rank, &tag, &m)) {
            cluster_rest();
            continue;
        }
        if (tag == TAG_HELLO && !c->hellos[rank].known) hello_read(&c->hellos[rank], &m), missing--;
        if (tag == TAG_INTERRUPTED) c->ranks[rank].silenced = true;
        message_free(&m);
    }
    c->lost = c->lost || missing > 0;
}

static int gather_ranks(coordinator *c)
{
    message own = {0};
    hello_make(&own, c->o, &c->job.model);
    hello_read(&c->hellos[0], &own);
    wait_for_hellos(c);
    if (interrupted()) return EXIT_FAILED;
    return hello_check(c->o, c->hellos, c->count);
}

/* The nodes of a study that is taken up are found by their hosts. */
static int find_nodes(coordinator *c)
{
    const options *o = c->o;
    const prony_study *study = c->job.study;
    const size_t nodes = prony_study_node_count(study);
    if (nodes == 0)
        return fail(o, "'%s' is a study of one machine; continue it with prony scale --resume", o->files.json);
    bool *taken = calloc((size_t)c->count, sizeof *taken);
    int code = taken ? EXIT_DONE : fail(o, "out of memory");
    for (size_t node = 0; code == EXIT_DONE && node < nodes; node++) {
        int rank = 0;
        while (rank < c->count &&
               (taken[rank] || strcmp(c->hellos[rank].host, prony_study_node_host(study, node)) != 0))
            rank++;
        if (rank == c->count) {
            code = fail(o, "'%s': node %zu of the study is '%s', but no rank runs there", o->files.json, node,
                        prony_study_node_host(study, node));
            break;
        }
        taken[rank] = true;
        c->ranks[rank].node = node;
    }
    for (int rank = 0; code == EXIT_DONE && rank < c->count; rank++)
        if (!taken[rank])
            code = fail(o, "rank %d runs on '%s', but '%s' studies %zu nodes without it", rank, c->hellos[rank].host,
                        o->files.json, nodes);
    free(taken);
    return code;
}

static int set_nodes(coordinator *c)
{
    prony_error error = {0};
    const char **texts = calloc((size_t)c->count, sizeof *texts);
    size_t *sizes = calloc((size_t)c->count, sizeof *sizes);
    for (int rank = 0; texts && sizes && rank < c->count; rank++) {
        texts[rank] = c->hellos[rank].description;
        sizes[rank] = c->hellos[rank].description_bytes;
        c->ranks[rank].node = (size_t)rank;
    }
    int code = EXIT_DONE;
    if (!texts || !sizes)
        code = fail(c->o, "out of memory");
    else if (prony_study_set_nodes(c->job.study, texts, sizes, (size_t)c->count, &error) != PRONY_OK)
        code = report_error(c->o, &error);
    free(texts);
    free(sizes);
    return code;
}

/* ---- handing out ---- */

static bool host_is_busy(const coordinator *c, int of)
{
    for (int rank = 0; rank < c->count; rank++)
        if (c->ranks[rank].busy && strcmp(c->hellos[rank].host, c->hellos[of].host) == 0) return true;
    return false;
}

/* Of the ranks on idle hosts, the one with the earliest next block of the plan; -1: no such rank. */
static int choose_rank(const coordinator *c, prony_study_task *task)
{
    size_t first = 0;
    int chosen = -1;
    for (int rank = 0; rank < c->count; rank++) {
        prony_study_task next;
        size_t position;
        if (c->ranks[rank].finished || host_is_busy(c, rank)) continue;
        if (!prony_study_next_on(c->job.study, c->ranks[rank].node, &next, &position)) {
            c->ranks[rank].finished = true;
            continue;
        }
        if (chosen >= 0 && position >= first) continue;
        first = position;
        chosen = rank;
        *task = next;
    }
    return chosen;
}

static bool make_task(const coordinator *c, const prony_study_task *task, bool together, double limit, message *out)
{
    scale_arguments w;
    scale_make_words(&w, c->o, c->job.study, task);
    *out = (message){.bad = w.no_memory};
    message_put_number(out, prony_study_replicas(c->job.study, task->configuration));
    message_put_number(out, together);
    message_put_number(out, (int64_t)w.count);
    for (size_t i = 0; i < w.count; i++) message_put_text(out, w.list[i]);
    message_put_number(out, (int64_t)(limit * 1000));
    free(w.list);
    return !out->bad;
}

static const char *task_text(const prony_study_task *task, char text[120])
{
    snprintf(text, 120, "process %d of %d x %d threads, %.20s%s", task->process + 1, task->inter_op_threads,
             task->intra_op_threads, task->precision, task->repeated ? ", again" : "");
    return text;
}

static void lose(coordinator *c, int rank, const char *how)
{
    char text[120];
    const rank_state *r = &c->ranks[rank];
    if (!c->lost)
        snprintf(c->ended, sizeof c->ended, "rank %d (%.120s) %s%s%s: ended", rank, c->hellos[rank].host, how,
                 r->busy ? " while it measured " : " while it was idle", r->busy ? task_text(&r->task, text) : "");
    c->lost = true;
}

static bool anything_runs(const coordinator *c)
{
    for (int rank = 0; rank < c->count; rank++)
        if (c->ranks[rank].busy) return true;
    return false;
}

static int hand_to(coordinator *c, int rank, const prony_study_task *task, bool together)
{
    message m;
    rank_state *r = &c->ranks[rank];
    const double limit = scale_limit(c->o, task);
    if (!make_task(c, task, together, limit, &m)) {
        message_free(&m);
        return fail(c->o, "out of memory");
    }
    r->task = *task;
    r->busy = true;
    r->together = together;
    r->ready = false;
    r->told = cluster_now();
    r->deadline = r->told + limit + cluster_limit(c->o, GRACE_SECONDS);
    bool given = rank == 0 ? runner_start(&m) : cluster_send(rank, TAG_TASK, &m, cluster_limit(c->o, GRACE_SECONDS));
    message_free(&m);
    if (!given) lose(c, rank, "did not accept a task");
    return EXIT_DONE;
}

static bool has_other_hosts(const coordinator *c)
{
    for (int rank = 1; rank < c->count; rank++)
        if (strcmp(c->hellos[rank].host, c->hellos[0].host) != 0) return true;
    return false;
}

/* The replicas of a configuration on one rank of each host that has such a block left; `first` is one of them. */
static int hand_out_together(coordinator *c, int first, const prony_study_task *task)
{
    int code = hand_to(c, first, task, true);
    for (int rank = 0; code == EXIT_DONE && !c->lost && rank < c->count; rank++) {
        prony_study_task own;
        if (host_is_busy(c, rank) || !prony_study_next_of(c->job.study, c->ranks[rank].node, task->configuration, &own))
            continue;
        code = hand_to(c, rank, &own, true);
    }
    return code;
}

static int hand_out(coordinator *c)
{
    prony_study_task task;
    int code = EXIT_DONE;
    for (int rank; code == EXIT_DONE && !c->lost && (rank = choose_rank(c, &task)) >= 0;) {
        const bool replicas = prony_study_replicas(c->job.study, task.configuration) > 1;
        if (!replicas || task.repeated || !has_other_hosts(c)) {
            code = hand_to(c, rank, &task, false);
            continue;
        }
        /* Until the other hosts are idle, this one waits. */
        return anything_runs(c) ? EXIT_DONE : hand_out_together(c, rank, &task);
    }
    return code;
}

/* Lets replicas begin once those of all hosts are ready. A rank whose replicas failed before is not waited for. Returns
 * whether any wait. */
static bool begin_together(coordinator *c)
{
    bool any = false;
    if (c->ranks[0].together && runner_ready()) c->ranks[0].ready = true;
    for (int rank = 0; rank < c->count; rank++) {
        const rank_state *r = &c->ranks[rank];
        if (!r->busy || !r->together) continue;
        if (!r->ready) return true;
        any = true;
    }
    for (int rank = c->count - 1; any && rank >= 0; rank--) {
        rank_state *r = &c->ranks[rank];
        if (!r->busy || !r->together) continue;
        r->together = false;
        if (rank == 0)
            runner_go();
        else if (!cluster_send(rank, TAG_GO, NULL, cluster_limit(c->o, GRACE_SECONDS)))
            lose(c, rank, "did not begin");
    }
    return false;
}

/* ---- results ---- */

static void take_process(message *m, prony_study_process *p, int64_t shift)
{
    p->cpu_ns = message_take_number(m);
    p->refused = message_take_number(m) != 0;
    message_take(m, &p->before, sizeof p->before);
    message_take(m, &p->after, sizeof p->after);
    const char *failure = message_take_text(m, NULL);
    p->sample = message_take_text(m, &p->sample_bytes);
    p->failure = *failure ? failure : NULL;
    p->before.time_ns += shift;
    p->after.time_ns += shift;
}

/* Moves a rank's times to the clock of this one, so that the file has one clock. The message took some milliseconds. */
static int take_result(coordinator *c, int rank, message *m)
{
    prony_error error = {0};
    rank_state *r = &c->ranks[rank];
    const int64_t shift = rank ? prony_now_ns() - message_take_number(m) : (message_take_number(m), 0);
    const int64_t count = message_take_number(m);
    if (!r->busy || interrupted()) return EXIT_DONE;
    prony_study_process *processes =
        !m->bad && count > 0 && count <= 1024 ? calloc((size_t)count, sizeof *processes) : NULL;
    for (int64_t i = 0; processes && i < count; i++) take_process(m, &processes[i], shift);
    if (m->bad || !processes) {
        free(processes);
        lose(c, rank, "sent a damaged result");
        return EXIT_DONE;
    }
    r->busy = false;
    prony_status status = prony_study_add_replicas(c->job.study, r->node, &r->task, processes, (size_t)count, &error);
    free(processes);
    if (status != PRONY_OK) return report_error(c->o, &error);
    for (int i = 0; i < c->count; i++) c->ranks[i].finished = false; /* what one node refuses, no other measures */
    scale_save_in_turn(&c->job);
    return EXIT_DONE;
}

static int receive(coordinator *c)
{
    message m;
    int rank, tag, code = EXIT_DONE;
    if (runner_result(&m)) {
        code = take_result(c, 0, &m);
        message_free(&m);
    }
    while (code == EXIT_DONE && cluster_receive(&rank, &tag, &m)) {
        if (tag == TAG_RESULT) code = take_result(c, rank, &m);
        if (tag == TAG_READY) c->ranks[rank].ready = true;
        if (tag == TAG_INTERRUPTED) {
            c->ranks[rank].silenced = true;
            if (!interrupted() && !cluster_warned() && !*c->ended)
                snprintf(c->ended, sizeof c->ended, "rank %d (%.120s) received a signal: ended", rank,
                         c->hellos[rank].host);
        }
        message_free(&m);
    }
    return code;
}

/* Signs of life to idle ranks; a rank that is beyond its limit is lost. */
static void coordinator_watch(coordinator *c)
{
    const double now = cluster_now();
    for (int rank = 1; rank < c->count; rank++) {
        rank_state *r = &c->ranks[rank];
        if (r->busy && now > r->deadline) lose(c, rank, "did not answer");
        if (r->busy || r->silenced || now < r->told + ALIVE_SECONDS) continue;
        r->told = now;
        if (!cluster_send(rank, TAG_ALIVE, NULL, 1)) lose(c, rank, "does not answer");
    }
}

static int coordinator_measure(coordinator *c)
{
    int code = EXIT_DONE;
    while (code == EXIT_DONE && !interrupted() && !cluster_warned() && !c->lost && !*c->ended) {
        code = hand_out(c);
        if (code != EXIT_DONE || c->lost || !anything_runs(c)) break;
        scale_say_progress(&c->job);
        if (begin_together(c))
            cluster_rest_briefly();
        else
            cluster_rest();
        code = receive(c);
        coordinator_watch(c);
    }
    clear_progress();
    return code;
}

/* ---- the end ---- */

static bool ask_to_stop(int rank, int code, bool together)
{
    message m = {0};
    message_put_number(&m, code);
    message_put_number(&m, together);
    bool sent = cluster_send(rank, TAG_STOP, &m, 0.2);
    message_free(&m);
    return sent;
}

/* After a signal: it came from the user, and every rank got it, or from the launcher, because a rank died. Ranks that
 * say nothing within ANSWER_MS are named. */
static void find_lost(coordinator *c)
{
    int silent;
    for (int rank = 1; rank < c->count; rank++)
        if (!c->ranks[rank].silenced) (void)cluster_send(rank, TAG_CALL, NULL, 0.05);
    const double end = cluster_now() + ANSWER_MS / 1000.0;
    do {
        (void)receive(c);
        silent = 0;
        for (int rank = 1; rank < c->count; rank++)
            if (!c->ranks[rank].silenced) silent = rank;
        if (silent) cluster_rest();
    } while (silent && cluster_now() < end);
    for (int rank = 1; rank < c->count; rank++)
        if (!c->ranks[rank].silenced) lose(c, rank, "is gone");
}

/* Measures and shows. The file comes first where the run ended early, since the launcher may leave little time. */
static int run_study(coordinator *c)
{
    int code = coordinator_measure(c);
    if (interrupted() || cluster_warned() || *c->ended) {
        prony_study_progress done;
        prony_study_progress_of(c->job.study, &done);
        if (done.done) scale_save(&c->job);
        if (!c->lost) find_lost(c);
        if (!*c->ended && !interrupted()) snprintf(c->ended, sizeof c->ended, "received SIGUSR1: ended");
        c->job.ended = *c->ended ? c->ended : NULL;
    }
    if (code == EXIT_DONE) code = scale_finish(&c->job);
    return code;
}

static int coordinator_prepare(coordinator *c)
{
    int code = scale_check(c->o);
    if (code == EXIT_DONE) code = gather_ranks(c);
    if (code == EXIT_DONE) code = scale_open(&c->job);
    if (code == EXIT_DONE) code = c->o->files.resume ? find_nodes(c) : set_nodes(c);
    return code;
}

int coordinator_run(const options *o, bool *together)
{
    coordinator c = {.o = o, .job = {.o = o}, .count = cluster_size()};
    c.hellos = calloc((size_t)c.count, sizeof *c.hellos);
    c.ranks = calloc((size_t)c.count, sizeof *c.ranks);
    int code = c.hellos && c.ranks ? EXIT_DONE : fail(o, "out of memory");
    if (code == EXIT_DONE && !model_share(o) && !interrupted())
        code =
            fail(o, "--send-model: a rank did not answer within %.0f s (--timeout)", cluster_limit(o, HELLO_SECONDS));
    if (code == EXIT_DONE) code = coordinator_prepare(&c);
    if (code == EXIT_DONE) code = run_study(&c);
    for (int rank = 1; rank < c.count; rank++)
        if (!ask_to_stop(rank, code, !c.lost)) c.lost = true;
    runner_end();
    *together = !c.lost;
    scale_release(&c.job);
    for (int rank = 0; c.hellos && rank < c.count; rank++) message_free(&c.hellos[rank].from);
    free(c.hellos);
    free(c.ranks);
    return code;
}
