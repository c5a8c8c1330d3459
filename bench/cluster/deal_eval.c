/* prony-mpi eval: each rank evaluates a part of the batches, and rank 0 adds the counts of right answers. Counts are
 * whole numbers, so the accuracy is that of one process to the last digit. */
#include "bench/cluster/deal.h"

#include "bench/process/interrupt.h"
#include "bench/session/judge.h"
#include "bench/session/labelled_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FIGURES = 8, TELL_NS = 1000000000 };

/* The result of one rank. */
typedef struct part {
    prony_report *report;
    int64_t samples, done; /* scored in the end; as the rank says meanwhile */
    int64_t right[MOST_FIGURES];
    size_t figures;
    double heard; /* when the rank last said something */
    bool ended;
} part;

typedef struct deal_eval {
    sharded *s;
    prony_model *model; /* quantized where the options say so */
    prony_session *session;
    prony_dataset *data;
    part *parts;                    /* [ranks] on rank 0 */
    int64_t told_ns, samples, hash; /* hash: of the data's file; 0: a folder */
} deal_eval;

/* ---- the same data on every rank ---- */

static bool deal_eval_take_data(sharded *s, int rank, message *m)
{
    const int64_t count = message_take_number(m), hash = message_take_number(m);
    const deal_eval *d = s->deal;
    if (m->bad || count != prony_dataset_count(d->data))
        snprintf(s->pipe.failure, sizeof s->pipe.failure,
                 "rank %d (%.120s) has %lld samples in '%.400s', rank 0 has %lld", rank, s->hellos[rank].host,
                 (long long)count, s->o->arguments[1], (long long)prony_dataset_count(d->data));
    else if (hash != d->hash)
        snprintf(s->pipe.failure, sizeof s->pipe.failure, "rank %d (%.120s) has another file '%.400s' than rank 0",
                 rank, s->hellos[rank].host, s->o->arguments[1]);
    else
        return true;
    return false;
}

static int deal_eval_open(deal_eval *d)
{
    sharded *s = d->s;
    prony_error error = {0};
    const prony_session_options session = session_options(s->o);
    d->model = s->model;
    s->model = NULL;
    int code = quantize_in_place(s->o, &d->model);
    if (code != EXIT_DONE) return code;
    prony_status status = session_create(&d->session, d->model, &session, &error);
    interrupt_at_once(true);
    if (status == PRONY_OK) status = open_labelled_data(s->o, &d->data, d->model, &error);
    interrupt_at_once(false);
    if (status == PRONY_OK) return EXIT_DONE;
    if (s->pipe.rank == 0) return report_error(s->o, &error);
    pipeline_fail(&s->pipe, *error.message ? error.message : prony_status_text(status));
    return EXIT_FAILED;
}

static bool deal_eval_agree(deal_eval *d)
{
    sharded *s = d->s;
    message m = {0};
    int rank;
    d->hash = file_hash(s->o->arguments[1]);
    if (s->pipe.rank == 0)
        return shard_hear_all(s, TAG_DATA, cluster_limit(s->o, HELLO_SECONDS), deal_eval_take_data) &&
               shard_tell_all(s, TAG_PLAN, NULL);
    message_put_number(&m, prony_dataset_count(d->data));
    message_put_number(&m, d->hash);
    bool fine = cluster_send(0, TAG_DATA, &m, cluster_limit(s->o, HELLO_SECONDS));
    message_free(&m);
    fine = fine && shard_wait(s, TAG_PLAN, &rank, &m, cluster_limit(s->o, HELLO_SECONDS));
    message_free(&m);
    return fine;
}

/* ---- results ---- */

static void take_figures(part *p, const prony_report *report)
{
    size_t count = 0;
    const prony_evaluation_row *rows = prony_report_evaluations(report, &count);
    p->figures = count < MOST_FIGURES ? count : MOST_FIGURES;
    p->samples = p->figures ? rows[0].samples : 0;
    /* Each value is a quotient of whole numbers below 2^51, so rounding gives the count back. */
    for (size_t i = 0; i < p->figures; i++) p->right[i] = llround(rows[i].value * (double)p->samples);
}

static int deal_eval_put_json(void *user, const char *data, size_t size)
{
    message_put(user, data, size);
    return ((message *)user)->bad ? -1 : 0;
}

static bool send_result(const deal_eval *d, const prony_report *report)
{
    message m = {0};
    prony_error error = {0};
    const prony_write_options w = PRONY_WRITE_OPTIONS_INIT;
    bool sent = prony_report_write(report, PRONY_FORMAT_JSON, &w, deal_eval_put_json, &m, &error) == PRONY_OK &&
                cluster_send(0, TAG_RESULT, &m, cluster_limit(d->s->o, HELLO_SECONDS));
    message_free(&m);
    if (!sent) pipeline_fail(&d->s->pipe, "the result could not be sent");
    return sent;
}

/* The wait for a sign of each rank is bounded. */
static void find_silent(deal_eval *d)
{
    sharded *s = d->s;
    const double limit = cluster_limit(s->o, SILENCE_SECONDS), now = cluster_now();
    for (int r = 1; r < s->pipe.ranks && !*s->pipe.failure; r++)
        if (!d->parts[r].ended && now > d->parts[r].heard + limit)
            snprintf(s->pipe.failure, sizeof s->pipe.failure,
                     "rank %d (%.120s) did not answer within %.0f s (--timeout) while it evaluated: ended", r,
                     s->hellos[r].host, limit);
}

/* Rank 0: messages that have come. False: the run is over. */
static bool deal_eval_receive(deal_eval *d)
{
    static const int tags[] = {TAG_ALIVE, TAG_RESULT};
    sharded *s = d->s;
    message m;
    int rank, tag;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        while (cluster_receive_of(tags[i], &rank, &tag, &m)) {
            prony_error error = {0};
            part *p = &d->parts[rank];
            p->heard = cluster_now();
            if (tag == TAG_ALIVE) p->done = message_take_number(&m);
            if (tag == TAG_RESULT && !p->ended) {
                p->ended = true;
                if (prony_report_load_memory(&p->report, "result", m.data, m.size, &error) != PRONY_OK)
                    snprintf(s->pipe.failure, sizeof s->pipe.failure, "rank %d: %.900s", rank, error.message);
            }
            message_free(&m);
        }
    if (pipeline_stopped(&s->pipe)) return false;
    find_silent(d);
    return !*s->pipe.failure;
}

static void show_samples(const deal_eval *d)
{
    char text[80];
    int64_t done = 0;
    for (int r = 0; r < d->s->pipe.ranks; r++) done += d->parts[r].done;
    if (!want_progress(d->s->o)) return;
    snprintf(text, sizeof text, "%lld of %lld samples on %d ranks", (long long)done, (long long)d->samples,
             d->s->pipe.ranks);
    show_progress_text(text);
}

/* Between batches, on every rank: a rank says that it lives, and hears of the end. */
static void deal_eval_progress(void *user, int64_t done, int64_t samples)
{
    deal_eval *d = user;
    const int64_t now = prony_now_ns();
    message m = {0};
    (void)samples;
    if (d->s->pipe.rank == 0) {
        d->parts[0].done = done;
        if (!deal_eval_receive(d)) prony_session_cancel(d->session);
        show_samples(d);
        return;
    }
    if (pipeline_stopped(&d->s->pipe)) prony_session_cancel(d->session);
    if (now - d->told_ns < TELL_NS || d->s->pipe.lost) return;
    d->told_ns = now;
    message_put_number(&m, done);
    (void)cluster_send(0, TAG_ALIVE, &m, 1);
    message_free(&m);
}

/* Waits for the other ranks. */
static int deal_eval_hear(deal_eval *d)
{
    sharded *s = d->s;
    for (int missing = 1; missing;) {
        if (!deal_eval_receive(d)) return EXIT_FAILED;
        missing = 0;
        for (int r = 1; r < s->pipe.ranks; r++) missing += !d->parts[r].ended;
        show_samples(d);
        if (missing) cluster_rest();
    }
    clear_progress();
    return EXIT_DONE;
}

/* ---- one report ---- */

/* Reports that cannot be joined (a node of another kind runs other kernels) leave rank 0's times alone. */
static int deal_eval_join(const deal_eval *d, prony_report *report)
{
    const sharded *s = d->s;
    prony_error error = {0};
    size_t count = 0;
    const prony_report **others = calloc((size_t)s->pipe.ranks, sizeof *others);
    if (!others) return fail(s->o, "out of memory");
    for (int r = 1; r < s->pipe.ranks; r++) others[count++] = d->parts[r].report;
    if (prony_report_join(report, others, count, &error) != PRONY_OK)
        fail(s->o, "times are those of rank 0 alone: %s", error.message);
    free(others);
    part all = {0};
    take_figures(&d->parts[0], report);
    for (int r = 0; r < s->pipe.ranks; r++) {
        if (r) take_figures(&d->parts[r], d->parts[r].report);
        all.samples += d->parts[r].samples;
        all.figures = r && d->parts[r].figures < all.figures ? all.figures : d->parts[r].figures;
        for (size_t i = 0; i < d->parts[r].figures; i++) all.right[i] += d->parts[r].right[i];
    }
    const prony_evaluation_row *rows = prony_report_evaluations(report, &count);
    char names[MOST_FIGURES][64];
    if (all.samples != d->samples || all.figures != count)
        return fail(s->o, "the ranks scored %lld of %lld samples", (long long)all.samples, (long long)d->samples);
    for (size_t i = 0; i < count; i++) snprintf(names[i], sizeof names[i], "%.63s", rows[i].metric);
    for (size_t i = 0; i < count; i++) {
        const double value = (double)all.right[i] / (double)all.samples;
        const prony_status status = i == 0 ? prony_report_set_evaluation(report, names[i], value, all.samples, &error)
                                           : prony_report_add_evaluation(report, names[i], value, &error);
        if (status != PRONY_OK) return report_error(s->o, &error);
    }
    return EXIT_DONE;
}

static void print_parts(const deal_eval *d)
{
    const sharded *s = d->s;
    printf("\n%4s  %-20s %9s %9s\n", "rank", "node", "samples", "right");
    for (int r = 0; r < s->pipe.ranks; r++)
        printf("%4d  %-20.20s %9lld %9lld\n", r, s->hellos[r].host, (long long)d->parts[r].samples,
               (long long)d->parts[r].right[0]);
}

static int deal_eval_show(const deal_eval *d, prony_report *report)
{
    const sharded *s = d->s;
    options shown = *s->o;
    if (!shown.shown.levels) shown.shown.levels = PRONY_LEVEL_MODEL;
    int code = deal_eval_join(d, report);
    if (code == EXIT_DONE) code = write_report(&shown, report);
    if (code == EXIT_DONE && !shown.terminal.quiet && !stdout_taken(&shown)) print_parts(d);
    return check_after_report(s->o, report, code);
}

static int deal_eval_measure(deal_eval *d, prony_report **report)
{
    sharded *s = d->s;
    prony_error error = {0};
    for (int r = 0; r < s->pipe.ranks; r++) d->parts[r].heard = cluster_now();
    prony_evaluate_options e = evaluate_options(s->o);
    e.part = s->pipe.rank;
    e.parts = s->pipe.ranks;
    e.progress = deal_eval_progress;
    e.progress_user = d;
    const prony_status status = prony_evaluate(report, d->session, d->data, &e, &error);
    clear_progress();
    if (interrupted() || s->pipe.lost || *s->pipe.failure) return EXIT_FAILED;
    if (status == PRONY_OK) return EXIT_DONE;
    if (s->pipe.rank == 0) return report_error(s->o, &error);
    pipeline_fail(&s->pipe, *error.message ? error.message : prony_status_text(status));
    return EXIT_FAILED;
}

int deal_eval_run(sharded *s)
{
    prony_report *report = NULL;
    deal_eval d = {.s = s, .parts = calloc((size_t)s->pipe.ranks, sizeof *d.parts)};
    int code = d.parts ? EXIT_DONE : fail(s->o, "out of memory");
    s->deal = &d;
    s->works = true;
    if (code == EXIT_DONE) code = deal_eval_open(&d);
    if (code == EXIT_DONE && !deal_eval_agree(&d)) code = EXIT_FAILED;
    if (code == EXIT_DONE) d.samples = prony_dataset_count(d.data);
    if (code == EXIT_DONE) code = deal_eval_measure(&d, &report);
    if (code == EXIT_DONE && s->pipe.rank != 0) code = send_result(&d, report) ? EXIT_DONE : EXIT_FAILED;
    if (code == EXIT_DONE && s->pipe.rank == 0) code = deal_eval_hear(&d);
    if (code == EXIT_DONE && s->pipe.rank == 0) code = deal_eval_show(&d, report);
    for (int r = 0; d.parts && r < s->pipe.ranks; r++) prony_report_release(d.parts[r].report);
    prony_report_release(report);
    prony_dataset_release(d.data);
    session_release(d.session);
    prony_model_release(d.model);
    free(d.parts);
    s->deal = NULL;
    return code;
}
