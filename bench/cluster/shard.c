/* The steps of each rank, in order. All ranks load the model, and rank 0 compares their builds and models. Neighbours
 * measure their links. Rank 0 cuts the model, and sends names of tensors and input shapes; every rank makes the same
 * plan of them, and the session of its stage. Runs are counted beforehand, so that every rank profiles as many
 * micro-batches. */
#include "bench/cluster/shard.h"

#include "bench/process/interrupt.h"
#include "bench/session/judge.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Runs if -t, not -r, says how long; chosen without measurement. MEASURED_BATCHES of an evaluation are stamped. */
enum { LEAST_RUNS = 5, MOST_RUNS = 2000, USUAL_WARMUP = 3, MEASURED_BATCHES = 1000 };

#define USUAL_SECONDS 3.0
#define ANSWER_SECONDS 0.5 /* Open MPI's launcher kills a second after its SIGTERM */

bool shard_wait(sharded *s, int tag, int *rank, message *m, double seconds)
{
    const double end = cluster_now() + seconds;
    pipeline *p = &s->pipe;
    for (;;) {
        int got;
        while (cluster_receive(rank, &got, m)) {
            if (got == tag) return true;
            if (got == TAG_STOP) s->code = (int)message_take_number(m), p->lost = true;
            if (got == TAG_FAILED) pipeline_hear_failure(p, *rank, m);
            if (got == TAG_INTERRUPTED && !*p->failure) {
                snprintf(p->failure, sizeof p->failure, "rank %d got a signal: ended", *rank);
                p->lost = true;
            }
            message_free(m);
            if (p->lost) return false;
        }
        if (interrupted() || p->lost) return false;
        if (cluster_now() > end) return false;
        sched_yield();
        cluster_rest();
    }
}

bool shard_tell_all(const sharded *s, message_tag tag, const message *m)
{
    bool sent = true;
    for (int r = 1; r < s->pipe.ranks; r++) sent = cluster_send(r, tag, m, cluster_limit(s->o, GRACE_SECONDS)) && sent;
    return sent;
}

bool shard_hear_all(sharded *s, message_tag tag, double seconds, bool (*take)(sharded *s, int rank, message *m))
{
    bool *heard = calloc((size_t)s->pipe.ranks + 1, sizeof *heard);
    const double end = cluster_now() + seconds;
    bool fine = heard != NULL;
    for (int missing = s->pipe.ranks - 1; fine && missing > 0;) {
        message m;
        int rank;
        fine = shard_wait(s, (int)tag, &rank, &m, end - cluster_now());
        if (!fine) break;
        if (!heard[rank]) missing--;
        heard[rank] = true;
        if (take) fine = take(s, rank, &m);
        message_free(&m);
    }
    for (int r = 1; heard && !fine && r < s->pipe.ranks && !*s->pipe.failure && !interrupted(); r++)
        if (!heard[r])
            snprintf(s->pipe.failure, sizeof s->pipe.failure, "rank %d did not answer within %.0f s (--timeout): ended",
                     r, seconds);
    free(heard);
    return fine;
}

/* ---- who is there ---- */

static bool take_hello(sharded *s, int rank, message *m)
{
    hello_read(&s->hellos[rank], m);
    return true;
}

static int shard_check_usage(const sharded *s)
{
    const options *o = s->o;
    if (o->shard.stages > s->pipe.ranks || o->shard.stages < s->pipe.ranks)
        return fail(o, "--shard %lld takes %lld ranks, one a stage, and %d run: mpirun -n %lld",
                    (long long)o->shard.stages, (long long)o->shard.stages, s->pipe.ranks, (long long)o->shard.stages),
               EXIT_USAGE;
    if (strcmp(o->command, "eval") == 0 && o->argument_count < 2)
        return fail(o, "eval needs MODEL and DATA"), EXIT_USAGE;
    if (o->shard.micro_batch && (!o->model.batch || o->model.batch % o->shard.micro_batch))
        return fail(o, "--micro-batch %lld does not divide the batch, %lld (-b)", (long long)o->shard.micro_batch,
                    (long long)o->model.batch),
               EXIT_USAGE;
    if (o->model.max_dim_count || o->model.from_count || o->model.to_count || o->measuring.processes > 1 ||
        o->load.scenario || o->accuracy.enabled || o->accuracy.against_count || o->model.batches.count > 1 ||
        o->precision.count > 1 || o->shown.topk || o->plan.tune)
        return fail(o, "--shard goes without --max-dim, --from, --to, --processes, --scenario, --accuracy, --against, "
                       "--topk, --tune and lists of configurations"),
               EXIT_USAGE;
    return o->argument_count ? EXIT_DONE : (fail(o, "--shard needs a MODEL"), EXIT_USAGE);
}

/* All ranks call it. Each sends its build and model to rank 0, which answers with TAG_PLAN once they agree and `check`
 * passes. No rank loads weights or measures before the answer. Every wait has a limit, so a missing rank ends the
 * others. */
int shard_meet(sharded *s, int (*check)(const sharded *s))
{
    message own = {0};
    int code = EXIT_DONE;
    if (!model_share(s->o)) {
        if (s->pipe.rank == 0 && !interrupted())
            fail(s->o, "--send-model: a rank did not answer within %.0f s (--timeout)",
                 cluster_limit(s->o, HELLO_SECONDS));
        return EXIT_FAILED;
    }
    hello_make(&own, s->o, &s->model);
    if (s->pipe.rank != 0) {
        int rank;
        message m;
        bool sent = cluster_send(0, TAG_HELLO, &own, cluster_limit(s->o, HELLO_SECONDS));
        message_free(&own);
        if (!sent || !shard_wait(s, TAG_PLAN, &rank, &m, cluster_limit(s->o, HELLO_SECONDS))) return EXIT_FAILED;
        message_free(&m);
        return EXIT_DONE;
    }
    hello_read(&s->hellos[0], &own);
    (void)shard_hear_all(s, TAG_HELLO, cluster_limit(s->o, HELLO_SECONDS), take_hello);
    *s->pipe.failure = '\0'; /* hello_check names who is missing */
    code = interrupted() ? EXIT_FAILED : hello_check(s->o, s->hellos, s->pipe.ranks);
    if (code == EXIT_DONE) code = check(s);
    if (code == EXIT_DONE && s->o->shard.stages && wants_codes(s->o, s->model))
        code = fail(s->o, "--shard takes a model that is quantized already: prony quantize writes one");
    if (code == EXIT_DONE && !shard_tell_all(s, TAG_PLAN, NULL)) code = EXIT_FAILED;
    return code;
}

/* ---- the interconnect ---- */

static void keep_slowest(sharded *s, const link_figures *link)
{
    if (link->latency_ns > s->slowest.latency_ns) s->slowest.latency_ns = link->latency_ns;
    if (link->bytes_per_ns > 0 && (!(s->slowest.bytes_per_ns > 0) || link->bytes_per_ns < s->slowest.bytes_per_ns))
        s->slowest.bytes_per_ns = link->bytes_per_ns;
}

static bool take_link(sharded *s, int rank, message *m)
{
    link_figures link;
    prony_link_row row;
    (void)rank;
    message_take(m, &link, sizeof link);
    keep_slowest(s, &link);
    for (int64_t left = message_take_number(m); !m->bad && left > 0; left--) {
        message_take(m, &row, sizeof row);
        if (!m->bad && !links_add(&s->links, &row)) return false;
    }
    return !m->bad;
}

static bool measure_links(sharded *s)
{
    message m = {0};
    if (!links_measure(&s->pipe, &s->link, &s->links)) {
        s->works = true; /* a rank is silent: MPI_Finalize would wait for it */
        return false;
    }
    if (s->pipe.rank == 0) return shard_hear_all(s, TAG_LINK, cluster_limit(s->o, GRACE_SECONDS), take_link);
    message_put(&m, &s->link, sizeof s->link);
    message_put_number(&m, (int64_t)s->links.count);
    message_put(&m, s->links.rows, s->links.count * sizeof *s->links.rows);
    bool sent = !m.bad && cluster_send(0, TAG_LINK, &m, cluster_limit(s->o, GRACE_SECONDS));
    message_free(&m);
    return sent;
}

/* ---- runs ---- */

prony_status shard_run_unmeasured(sharded *s, int64_t runs, prony_error *error)
{
    pipeline *p = &s->pipe;
    prony_status status = PRONY_OK;
    for (int64_t i = 0; status == PRONY_OK && i < runs * p->micro_batches; i++) {
        status = pipeline_before(p, p->session, error);
        if (status == PRONY_OK) status = prony_session_run(p->session, error);
        if (status == PRONY_OK) status = pipeline_after(p, p->session, error);
    }
    pipeline_progress_end(p);
    return status;
}

static int64_t warmup_runs(const options *o)
{
    if (strcmp(o->command, "run") == 0) return 0;
    if (strcmp(o->command, "eval") == 0) return o->measuring.warmup >= 0 ? o->measuring.warmup : 1;
    return o->measuring.warmup >= 0 ? o->measuring.warmup : USUAL_WARMUP;
}

/* Rank 0: as -r says, or as many as the time allows by what the last run of the warm-up took. */
static int64_t decide_runs(const options *o, double run_seconds)
{
    if (strcmp(o->command, "run") == 0) return 1;
    if (o->measuring.runs) return o->measuring.runs;
    const double seconds = o->measuring.seconds > 0 ? o->measuring.seconds : USUAL_SECONDS;
    const double runs = run_seconds > 0 ? seconds / run_seconds : LEAST_RUNS;
    return runs < LEAST_RUNS ? LEAST_RUNS : runs > MOST_RUNS ? MOST_RUNS : (int64_t)runs;
}

static bool agree_on_runs(sharded *s, double run_seconds)
{
    message m = {0};
    int rank;
    bool fine;
    if (s->pipe.rank == 0) {
        s->runs = s->data ? shard_eval_begin(s) : decide_runs(s->o, run_seconds);
        if (s->data && s->runs > MEASURED_BATCHES) s->rest = s->runs - MEASURED_BATCHES, s->runs = MEASURED_BATCHES;
        message_put_number(&m, s->runs);
        message_put_number(&m, s->rest);
        fine = !m.bad && shard_tell_all(s, TAG_PLAN, &m);
        s->pipe.sample_capacity = (size_t)s->runs;
        s->pipe.samples_ns = calloc((size_t)s->runs + 1, sizeof *s->pipe.samples_ns);
        fine = fine && s->pipe.samples_ns;
    } else {
        fine = shard_wait(s, TAG_PLAN, &rank, &m, cluster_limit(s->o, HELLO_SECONDS));
        if (fine) s->runs = message_take_number(&m), s->rest = message_take_number(&m);
        fine = fine && !m.bad && s->runs > 0 && s->rest >= 0;
    }
    message_free(&m);
    return fine;
}

static prony_status run_measured(sharded *s, prony_error *error)
{
    pipeline *p = &s->pipe;
    prony_profile_options o = PRONY_PROFILE_OPTIONS_INIT;
    o.warmup_runs = 0;
    o.runs = s->runs * p->micro_batches;
    o.preprocess = pipeline_before;
    o.postprocess = pipeline_after;
    o.phase_user = p;
    p->counts = true;
    const prony_status status = prony_session_profile(&s->report, p->session, &o, error);
    pipeline_progress_end(p);
    p->counts = false;
    return status;
}

static int measure(sharded *s)
{
    prony_error error = {0};
    pipeline *p = &s->pipe;
    const int64_t warm = warmup_runs(s->o);
    (void)pipeline_progress_start(p);
    prony_status status = shard_run_unmeasured(s, warm, &error);
    const double last = p->rank == 0 && warm ? (double)(prony_now_ns() - p->run_began_ns) * 1e-9 : 0;
    if (status == PRONY_OK && !agree_on_runs(s, last)) {
        pipeline_progress_stop(p);
        return EXIT_FAILED;
    }
    if (status == PRONY_OK) status = run_measured(s, &error);
    if (status == PRONY_OK) status = shard_run_unmeasured(s, s->rest, &error);
    pipeline_progress_stop(p);
    if (status == PRONY_OK) return EXIT_DONE;
    if (!p->lost) {
        pipeline_fail(p, *error.message ? error.message : prony_status_text(status));
        if (p->rank == 0 && !*p->failure) snprintf(p->failure, sizeof p->failure, "rank 0: %.900s", error.message);
    }
    return EXIT_FAILED;
}

/* ---- */

/* Of a rank other than 0: waits for rank 0's last word, the exit status. */
int shard_take_last_word(sharded *s)
{
    int rank;
    message m;
    if (s->code >= 0) return s->code;
    if (interrupted()) {
        (void)cluster_send(0, TAG_INTERRUPTED, NULL, 1);
        /* A rank that exits now has the launcher end rank 0 before it speaks. */
        const double end = cluster_now() + 4 * ANSWER_SECONDS;
        for (int tag; cluster_now() < end && !cluster_receive_of(TAG_STOP, &rank, &tag, &m);) cluster_rest();
        return EXIT_FAILED;
    }
    s->pipe.lost = false;
    /* Rank 0 may wait for its own limit and collect reports then (pipeline_give_up), before it speaks. */
    if (shard_wait(s, TAG_STOP, &rank, &m, 2 * cluster_limit(s->o, HELLO_SECONDS))) {
        s->code = (int)message_take_number(&m);
        message_free(&m);
    }
    return s->code >= 0 ? s->code : EXIT_FAILED;
}

static int run_rank(sharded *s)
{
    int code = shard_meet(s, shard_check_usage);
    if (code == EXIT_DONE && !measure_links(s)) code = EXIT_FAILED;
    if (code == EXIT_DONE) code = shard_prepare(s);
    if (code == EXIT_DONE && shard_is_by(s->o, "measured")) code = shard_balance(s);
    if (code == EXIT_DONE) code = measure(s);
    if (s->pipe.rank == 0) {
        if (code == EXIT_DONE) code = shard_join_reports(s);
        if (code == EXIT_DONE && s->data) code = shard_eval_finish(s);
        if (code == EXIT_DONE) code = shard_show(s);
        return code;
    }
    if (code == EXIT_DONE && !shard_send_report(s)) code = EXIT_FAILED;
    return shard_take_last_word(s);
}

/* After a signal to rank 0: it came from the user, and every rank got it, or from the launcher, because a rank died.
 * The rank that says nothing is named. */
static void say_interrupted(void *user)
{
    sharded *s = user;
    if (s->said) return;
    s->said = true;
    bool *heard = calloc((size_t)s->pipe.ranks + 1, sizeof *heard);
    const double end = cluster_now() + ANSWER_SECONDS;
    int missing = s->pipe.ranks - 1;
    while (heard && missing > 0 && cluster_now() < end) {
        message m;
        int rank, tag;
        if (cluster_receive(&rank, &tag, &m)) {
            missing -= !heard[rank];
            heard[rank] = true;
            message_free(&m);
        } else {
            cluster_rest();
        }
    }
    int gone = 0;
    for (int r = 1; heard && missing > 0 && r < s->pipe.ranks && !gone; r++)
        if (!heard[r]) gone = r;
    free(heard);
    if (!gone) {
        fail(s->o, "%s", interrupted());
        return;
    }
    fail(s->o, "%s, or the launcher ended it: rank %d%s%s%s is gone", interrupted(), gone,
         s->hellos && s->hellos[gone].known ? " (" : "", s->hellos && s->hellos[gone].known ? s->hellos[gone].host : "",
         s->hellos && s->hellos[gone].known ? ")" : "");
}

/* Rank 0 says once why the run ended, and tells the others. Tensors may be in transit then: no rank waits for them. */
static int end_all(sharded *s, int code, bool *together)
{
    message m = {0};
    if (interrupted()) {
        say_interrupted(s);
        code = EXIT_FAILED;
    } else if (*s->pipe.failure) {
        code = fail(s->o, "%s", s->pipe.failure);
    }
    *together = code == EXIT_DONE || code == EXIT_VERDICT || !(s->pipe.session || s->works);
    message_put_number(&m, code);
    for (int r = 1; r < s->pipe.ranks; r++) *together = cluster_send(r, TAG_STOP, &m, 1) && *together;
    message_free(&m);
    return code;
}

/* Sets *together where all ranks leave at the same point, so that MPI may be finalised. Otherwise tensors may be in
 * transit: nothing is freed, since a pending request may still write into its buffer, and the process ends at once. */
int shard_run_ranks(const options *o, int (*run)(sharded *s), bool *together)
{
    sharded s = {.o = o, .code = -1, .pipe = {.o = o, .rank = cluster_rank(), .ranks = cluster_size()}};
    *together = true;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &s.pipe.tensors) != MPI_SUCCESS) return fail(o, "MPI gives no communicator");
    MPI_Comm_set_errhandler(s.pipe.tensors, MPI_ERRORS_RETURN);
    s.pipe.say_interrupted = s.pipe.rank == 0 ? say_interrupted : NULL;
    s.pipe.say_user = &s;
    s.hellos = calloc((size_t)s.pipe.ranks, sizeof *s.hellos);
    s.pipe.hellos = s.hellos;
    int code = s.hellos ? run(&s) : EXIT_FAILED;
    if (s.pipe.rank == 0)
        code = end_all(&s, code, together);
    else
        *together = s.code == EXIT_DONE || s.code == EXIT_VERDICT || (s.code > 0 && !s.pipe.session && !s.works);
    if (!*together) return code; /* the process ends at once */
    pipeline_end(&s.pipe);
    prony_report_release(s.report);
    shard_eval_close(&s);
    session_release(s.pipe.session);
    session_release(s.whole);
    prony_shard_plan_release(s.plan);
    free(s.layer_ns);
    free(s.links.rows);
    prony_model_release(s.model);
    for (int r = 0; r < s.pipe.ranks; r++) message_free(&s.hellos[r].from);
    free(s.hellos);
    MPI_Comm_free(&s.pipe.tensors);
    return code;
}

int shard_run(const options *o, bool *together)
{
    return shard_run_ranks(o, run_rank, together);
}
