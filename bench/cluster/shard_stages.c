/* The stages of a sharded run. Rank 0 cuts the model, and sends names of tensors and input shapes; every rank makes the
 * same plan of them, and the session of its stage. With --shard-by measured the stages then run for a moment, rank 0
 * cuts again by the times of their layers, and every rank makes its new stage. */
#include "bench/cluster/shard.h"

#include "bench/process/interrupt.h"
#include "bench/session/inputs.h"
#include "bench/session/judge.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SHAPES = 4096, TRIAL_WARMUP = 3, TRIAL_MICRO_BATCHES = 12 };

/* Rank 0's decision, from which all ranks make the same plan. */
typedef struct decision {
    message from;
    const char **cuts;
    size_t cut_count;
    prony_named_shape *shapes;
    size_t shape_count;
    const double *layer_ns; /* measured times of the model's layers; NULL: times are predicted */
    size_t layer_count;
} decision;

bool shard_is_by(const options *o, const char *key)
{
    return o->shard.by && strcmp(o->shard.by, key) == 0;
}

static void decision_free(decision *d)
{
    message_free(&d->from);
    free(d->cuts);
    free(d->shapes);
}

static bool is_trial(const sharded *s)
{
    return shard_is_by(s->o, "measured") && !s->balanced;
}

/* `trial`: the stages are to be measured, and cut again. */
static prony_session_options stage_options(const options *o, const decision *d, bool trial)
{
    prony_session_options options = session_options(o);
    options.dims = NULL;
    options.dim_count = 0;
    options.batch = 0;
    options.shapes = d ? d->shapes : NULL;
    options.shape_count = d ? d->shape_count : 0;
    options.no_profile = strcmp(o->command, "bench") == 0 && !trial;
    return options;
}

static prony_status make_plan(sharded *s, const decision *d, bool given, prony_error *error)
{
    const prony_session_options session = stage_options(s->o, d, is_trial(s));
    prony_shard_options o = PRONY_SHARD_OPTIONS_INIT;
    o.stages = (int)s->o->shard.stages;
    o.by = shard_is_by(s->o, "memory") ? PRONY_SHARD_BY_MEMORY : PRONY_SHARD_BY_TIME;
    o.layer_ns = d->layer_ns;
    o.layer_count = d->layer_count;
    o.session = &session;
    o.cuts = d->cuts;
    o.cut_count = d->cut_count;
    o.latency_ns = s->slowest.latency_ns;
    o.bytes_per_ns = s->slowest.bytes_per_ns;
    o.memory_limit_bytes = given ? 0 : given_memory_limit(s->o);
    prony_status status = prony_shard_plan_create(&s->plan, s->model, &o, error);
    if (status != PRONY_LIMIT || !o.memory_limit_bytes) return status;
    /* The prediction is more than a stage may need: the smallest stages are tried. */
    o.memory_limit_bytes = 0;
    o.by = PRONY_SHARD_BY_MEMORY;
    return prony_shard_plan_create(&s->plan, s->model, &o, error);
}

/* Shapes of one micro-batch, by the inputs that rank 0 has bound. */
static int decide_shapes(sharded *s, decision *d)
{
    const size_t count = prony_model_input_count(s->model);
    const int64_t parts = s->pipe.micro_batches;
    d->shapes = calloc(count + 1, sizeof *d->shapes);
    if (!d->shapes) return fail(s->o, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const prony_value_info *port = prony_model_input(s->model, i);
        const prony_value *value = prony_session_input_value(s->whole, i);
        if (!value || value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING)
            return fail(s->o, "--shard: input '%s' is not a tensor of numbers", port->name);
        d->shapes[i] = (prony_named_shape){port->name, value->shape};
        if (parts == 1) continue;
        if (value->shape.rank < 1 || value->shape.dim[0] != s->o->model.batch || port->shape.rank < 1 ||
            port->shape.dim[0] >= 0)
            return fail(s->o, "--micro-batch: input '%s' has no free first dimension of %lld", port->name,
                        (long long)s->o->model.batch);
        d->shapes[i].shape.dim[0] /= parts;
    }
    d->shape_count = count;
    return EXIT_DONE;
}

/* --shard-cut a,b */
static int take_given_cuts(const options *o, decision *d)
{
    const char *text = o->shard.cut ? o->shard.cut : "";
    d->cuts = calloc((size_t)o->shard.stages + 1 + strlen(text), sizeof *d->cuts);
    message_put_text(&d->from, text);
    if (!d->cuts || d->from.bad) return fail(o, "out of memory");
    for (char *at = d->from.data + sizeof(int64_t); *at;) {
        d->cuts[d->cut_count++] = at;
        at += strcspn(at, ",");
        if (*at) *at++ = '\0';
    }
    return EXIT_DONE;
}

/* Rank 0's session of the whole model, which holds its inputs alone. */
static int shard_bind_whole(sharded *s)
{
    prony_error error = {0};
    const prony_session_options options = session_options(s->o);
    s->pipe.micro_batches = s->o->shard.micro_batch ? s->o->model.batch / s->o->shard.micro_batch : 1;
    if (session_create(&s->whole, s->model, &options, &error) != PRONY_OK)
        return report_session_error(s->o, s->model, &error);
    s->pipe.whole = s->whole;
    return strcmp(s->o->command, "eval") == 0 ? shard_eval_open(s) : bind_inputs(s->o, s->model, s->whole);
}

static int shard_decide(sharded *s, decision *d)
{
    prony_error error = {0};
    int code = s->whole ? EXIT_DONE : shard_bind_whole(s);
    if (code == EXIT_DONE) code = decide_shapes(s, d);
    if (code == EXIT_DONE) code = take_given_cuts(s->o, d);
    if (code == EXIT_DONE && make_plan(s, d, false, &error) != PRONY_OK) code = report_error(s->o, &error);
    return code;
}

static bool send_decision(const sharded *s, const decision *d)
{
    message m = {0};
    size_t count;
    const prony_shard_stage *rows = prony_shard_plan_stages(s->plan, &count);
    message_put(&m, &s->slowest, sizeof s->slowest);
    message_put_number(&m, s->pipe.micro_batches);
    message_put_number(&m, (int64_t)count - 1);
    for (size_t i = 0; i + 1 < count; i++) message_put_text(&m, rows[i].cut);
    message_put_number(&m, (int64_t)d->shape_count);
    for (size_t i = 0; i < d->shape_count; i++) {
        message_put_text(&m, d->shapes[i].name);
        message_put(&m, &d->shapes[i].shape, sizeof d->shapes[i].shape);
    }
    message_put_text(&m, prony_shard_plan_digest(s->plan));
    const bool sent = !m.bad && shard_tell_all(s, TAG_PLAN, &m);
    message_free(&m);
    return sent;
}

/* Ranks other than 0. *digest points into `d`. */
static bool take_decision(sharded *s, decision *d, const char **digest)
{
    int rank;
    if (!shard_wait(s, TAG_PLAN, &rank, &d->from, cluster_limit(s->o, HELLO_SECONDS))) return false;
    message_take(&d->from, &s->slowest, sizeof s->slowest);
    s->pipe.micro_batches = message_take_number(&d->from);
    const int64_t cuts = message_take_number(&d->from);
    if (d->from.bad || cuts < 0 || cuts > s->pipe.ranks) return false;
    d->cuts = calloc((size_t)cuts + 1, sizeof *d->cuts);
    for (int64_t i = 0; d->cuts && i < cuts; i++) d->cuts[d->cut_count++] = message_take_text(&d->from, NULL);
    const int64_t shapes = message_take_number(&d->from);
    if (d->from.bad || shapes < 0 || shapes > MOST_SHAPES) return false;
    d->shapes = calloc((size_t)shapes + 1, sizeof *d->shapes);
    for (int64_t i = 0; d->shapes && i < shapes; i++) {
        d->shapes[i].name = message_take_text(&d->from, NULL);
        message_take(&d->from, &d->shapes[i].shape, sizeof d->shapes[i].shape);
        d->shape_count++;
    }
    *digest = message_take_text(&d->from, NULL);
    return !d->from.bad && d->cuts && d->shapes;
}

/* The stage of this rank, ready to run. */
static prony_status make_stage(sharded *s, prony_error *error)
{
    pipeline *p = &s->pipe;
    prony_model *stage = NULL;
    const prony_session_options options = stage_options(s->o, NULL, is_trial(s));
    prony_status status = prony_shard_stage_model(&stage, s->plan, (size_t)p->rank, error);
    if (status == PRONY_OK) status = session_create(&p->session, stage, &options, error);
    prony_model_release(stage);
    p->rows = prony_shard_plan_stages(s->plan, &p->stage_count);
    p->model_outputs = prony_model_output_count(s->model);
    p->inputs = calloc(p->rows[p->rank].input_count + 1, sizeof *p->inputs);
    p->outputs = calloc(p->model_outputs + 1, sizeof(void *));
    p->kept = calloc(p->model_outputs + 1, sizeof *p->kept);
    if (status == PRONY_OK && (!p->inputs || !p->outputs || !p->kept)) status = PRONY_OUT_OF_MEMORY;
    for (size_t i = 0; p->inputs && i < p->rows[p->rank].input_count; i++) p->inputs[i].request = MPI_REQUEST_NULL;
    return status;
}

/* Rank 0: cuts, tells all ranks, makes its own stage, and waits for theirs. */
static int shard_prepare_all(sharded *s, decision *d)
{
    prony_error error = {0};
    int code = shard_decide(s, d);
    if (code == EXIT_DONE && !send_decision(s, d)) code = EXIT_FAILED;
    if (code == EXIT_DONE && make_stage(s, &error) != PRONY_OK) code = report_error(s->o, &error);
    if (code == EXIT_DONE && !shard_hear_all(s, TAG_RESULT, cluster_limit(s->o, HELLO_SECONDS), NULL))
        code = EXIT_FAILED;
    return code;
}

static int prepare_own(sharded *s, decision *d)
{
    prony_error error = {0};
    const char *digest = "";
    if (!take_decision(s, d, &digest)) return EXIT_FAILED;
    prony_status status = make_plan(s, d, true, &error);
    if (status == PRONY_OK && strcmp(digest, prony_shard_plan_digest(s->plan)) != 0) {
        status = PRONY_INTERNAL;
        snprintf(error.message, sizeof error.message, "this rank cuts the model otherwise than rank 0");
    }
    if (status == PRONY_OK) status = make_stage(s, &error);
    if (status != PRONY_OK)
        pipeline_fail(&s->pipe, *error.message ? error.message : prony_status_text(status));
    else if (!cluster_send(0, TAG_RESULT, NULL, cluster_limit(s->o, GRACE_SECONDS)))
        status = PRONY_CANCELLED;
    return status == PRONY_OK ? EXIT_DONE : EXIT_FAILED;
}

static int prepare(sharded *s, const double *layer_ns, size_t layer_count)
{
    decision d = {.layer_ns = layer_ns, .layer_count = layer_count};
    const int code = s->pipe.rank == 0 ? shard_prepare_all(s, &d) : prepare_own(s, &d);
    decision_free(&d);
    return code;
}

int shard_prepare(sharded *s)
{
    return prepare(s, NULL, 0);
}

/* ---- --shard-by measured ---- */

/* Mean times of this rank's layers, one micro-batch; -1: it runs elsewhere, or has no time of its own. The caller frees
 * them. */
static double *measure_layers(sharded *s, size_t *count, prony_error *error)
{
    pipeline *p = &s->pipe;
    prony_report *report = NULL;
    prony_profile_options o = PRONY_PROFILE_OPTIONS_INIT;
    const int64_t runs = (TRIAL_MICRO_BATCHES + p->micro_batches - 1) / p->micro_batches;
    o.warmup_runs = 0;
    o.runs = runs * p->micro_batches;
    o.preprocess = pipeline_before;
    o.postprocess = pipeline_after;
    o.phase_user = p;
    prony_status status = shard_run_unmeasured(s, TRIAL_WARMUP, error);
    if (status == PRONY_OK) status = prony_session_profile(&report, p->session, &o, error);
    pipeline_progress_end(p);
    const prony_layer_row *rows = status == PRONY_OK ? prony_report_layers(report, count) : NULL;
    double *times = rows ? calloc(*count + 1, sizeof *times) : NULL;
    for (size_t i = 0; times && i < *count; i++) times[i] = rows[i].measured ? (double)rows[i].time.median_ns : -1;
    prony_report_release(report);
    return times;
}

/* Rank 0: `s->layer_ns` are the times of all layers; each layer is measured on one rank. */
static bool shard_take_layers(sharded *s, int rank, message *m)
{
    (void)rank;
    for (size_t i = 0; i < s->layer_count; i++) {
        double time;
        message_take(m, &time, sizeof time);
        if (time > s->layer_ns[i]) s->layer_ns[i] = time;
    }
    return !m->bad;
}

static void give_up_stage(sharded *s)
{
    pipeline *p = &s->pipe;
    session_release(p->session);
    prony_shard_plan_release(s->plan);
    for (size_t k = 0; p->kept && k < p->model_outputs; k++) free(p->kept[k].bytes);
    free(p->kept);
    free(p->outputs);
    free(p->inputs);
    p->session = NULL;
    s->plan = NULL;
    p->kept = NULL;
    p->outputs = NULL;
    p->inputs = NULL;
    p->rows = NULL;
    p->stage_count = 0;
}

/* Every rank measures its layers; rank 0 then cuts again, by these times. A rank that cannot go on has told rank 0. */
int shard_balance(sharded *s)
{
    prony_error error = {0};
    pipeline *p = &s->pipe;
    (void)pipeline_progress_start(p);
    s->layer_ns = measure_layers(s, &s->layer_count, &error);
    bool fine = s->layer_ns != NULL && pipeline_drain(p, &error) == PRONY_OK;
    pipeline_progress_stop(p);
    if (!fine && !p->lost) {
        const char *text = *error.message ? error.message : "out of memory";
        pipeline_fail(p, text);
        if (p->rank == 0 && !*p->failure) snprintf(p->failure, sizeof p->failure, "rank 0: %.900s", text);
    }
    if (fine && p->rank == 0) {
        fine = shard_hear_all(s, TAG_RESULT, cluster_limit(s->o, HELLO_SECONDS), shard_take_layers);
    } else if (fine) {
        message m = {0};
        message_put(&m, s->layer_ns, s->layer_count * sizeof *s->layer_ns);
        fine = !m.bad && cluster_send(0, TAG_RESULT, &m, cluster_limit(s->o, GRACE_SECONDS));
        message_free(&m);
    }
    if (!fine) return EXIT_FAILED;
    give_up_stage(s);
    s->balanced = true;
    return prepare(s, p->rank ? NULL : s->layer_ns, p->rank ? 0 : s->layer_count);
}
