/* prony_evaluate: every sample of labelled data through a session. The first batches run as a profile, with the data
 * bound before and scored after each run; the others follow without stamps. An evaluation owns its feed and its counts.
 */
#include "base/integers.h"
#include "base/os/clock.h"
#include "base/option_struct.h"
#include "base/shape.h"
#include "engine/session/session.h"
#include "evaluate/class_scores.h"
#include "evaluate/dataset.h"
#include "profiler/report/report.h"

#include <math.h>
#include <string.h>

/* Batches that are profiled, and the time between two reports of progress; chosen without measurement. */
#define MEASURED_RUNS 1000
#define PROGRESS_NS 100000000
enum { TOP_CLASSES = 5 };

typedef struct prony_evaluation {
    const prony_dataset *data;
    prony_evaluate_options options;
    prony_session *session; /* whose inputs are bound */
    prn_feed *feed;
    int64_t batch, warmups;   /* runs to come that do not count */
    int64_t first, done, end; /* samples of the part; `done` is the next one */
    int64_t right[2];         /* label is the best one, is among the best five */
    int64_t classes;          /* 0: not known yet */
    bool by_class;            /* the output is the class itself, without a top five */
    const prony_value **outputs;
    prony_value *views;
    size_t output_count;
    int64_t progress_ns;
} evaluation;

static int64_t evaluate_scored(const evaluation *e)
{
    return e->done - e->first;
}

/* ---- labels ---- */

/* Element `index` of a tensor of labels. false: its type holds no class number; uint64 is not one of them, since its
 * values may exceed *out. */
static bool integer_at(const prony_value *value, int64_t index, int64_t *out)
{
    const void *data = value->data;
    switch (value->dtype) {
    case PRONY_INT64:
        *out = ((const int64_t *)data)[index];
        return true;
    case PRONY_INT32:
        *out = ((const int32_t *)data)[index];
        return true;
    case PRONY_INT16:
        *out = ((const int16_t *)data)[index];
        return true;
    case PRONY_UINT16:
        *out = ((const uint16_t *)data)[index];
        return true;
    case PRONY_INT8:
        *out = ((const int8_t *)data)[index];
        return true;
    case PRONY_UINT8:
    case PRONY_BOOL:
        *out = ((const uint8_t *)data)[index];
        return true;
    case PRONY_UINT32:
        *out = ((const uint32_t *)data)[index];
        return true;
    default:
        return false;
    }
}

static prony_status check_labels(const prony_value *labels, prony_error *error)
{
    int64_t first;
    char text[PRN_SHAPE_TEXT_BYTES];
    if (prony_shape_numel(&labels->shape) == labels->shape.dim[0] && integer_at(labels, 0, &first)) return PRONY_OK;
    return prn_fail(error, PRONY_SHAPE_MISMATCH,
                    "labels are %s, but top-1 needs a class number per sample; other metrics need the library",
                    prn_value_text(labels, text));
}

/* ---- scores ---- */

static prony_status bad_label(const evaluation *e, int64_t sample, int64_t label, int64_t classes, prony_error *error)
{
    const char *file = e->data->files ? e->data->files[sample] : "";
    return prn_fail(error, PRONY_OUT_OF_RANGE, "sample %lld%s%.300s%s has label %lld, but the model has %lld classes",
                    (long long)sample, *file ? " ('" : "", file, *file ? "')" : "", (long long)label,
                    (long long)classes);
}

static prony_status score_classes(evaluation *e, const prony_value *output, int64_t samples, prony_error *error)
{
    prn_scores scores;
    PRN_TRY(prn_scores_of(&scores, output, samples, error));
    e->by_class = scores.classes == 1 && !prn_dtype_is_float(output->dtype);
    if (scores.classes == 1 && !e->by_class)
        return prn_fail(error, PRONY_SHAPE_MISMATCH,
                        "the output is one number per sample, so it ranks no classes; other metrics need the library");
    e->classes = scores.classes;
    for (int64_t i = 0; i < samples; i++) {
        int64_t label = 0, sample = e->done + i, rank;
        (void)integer_at(e->data->labels, sample, &label);
        if (e->by_class) {
            e->right[0] += prn_score_at(&scores, i, 0) == (double)label;
            continue;
        }
        if (label < 0 || label >= scores.classes) return bad_label(e, sample, label, scores.classes, error);
        rank = prn_score_rank(&scores, i, label);
        e->right[0] += rank == 0;
        e->right[1] += rank < TOP_CLASSES;
    }
    return PRONY_OK;
}

/* The first `samples` of a value; itself, where its first dimension is not the batch. */
static prony_value evaluate_cut(const prony_value *value, int64_t batch, int64_t samples)
{
    prony_value view = *value;
    if (view.kind == PRONY_TENSOR && view.shape.rank > 0 && view.shape.dim[0] == batch) view.shape.dim[0] = samples;
    return view;
}

static prony_status score_by_user(evaluation *e, int64_t samples, prony_error *error)
{
    const prony_evaluate_options *o = &e->options;
    prony_value labels = *e->data->labels;
    size_t bytes = prn_value_bytes(&labels) / (size_t)labels.shape.dim[0];
    labels.data = (char *)labels.data + (size_t)e->done * bytes;
    labels.shape.dim[0] = samples;
    return prn_status_known(o->score(o->user, e->outputs, e->output_count, &labels, samples, error));
}

/* Also while the evaluation warms up: a caller may wait for a sign of it. */
static void say_progress(evaluation *e)
{
    const int64_t now = prn_now_ns();
    if (!e->options.progress || (now - e->progress_ns <= PROGRESS_NS && e->done < e->end)) return;
    e->options.progress(e->options.progress_user, evaluate_scored(e), e->end - e->first);
    e->progress_ns = now;
}

/* Scores e->views, the outputs of one batch. */
static prony_status score_batch(evaluation *e, prony_error *error)
{
    int64_t left = e->end - e->done, samples = left < e->batch ? left : e->batch;
    for (size_t k = 0; k < e->output_count; k++) e->views[k] = evaluate_cut(&e->views[k], e->batch, samples);
    PRN_TRY(e->options.metric ? score_by_user(e, samples, error)
                              : score_classes(e, &e->views[e->options.output], samples, error));
    e->done += samples;
    say_progress(e);
    return PRONY_OK;
}

/* ---- runs ---- */

static prony_status before_run(void *user, prony_session *session, prony_error *error)
{
    evaluation *e = user;
    return prn_feed_bind(e->feed, session, e->done, error);
}

static prony_status after_run(void *user, prony_session *session, prony_error *error)
{
    evaluation *e = user;
    if (e->warmups > 0) {
        e->warmups--;
        say_progress(e);
        return PRONY_OK;
    }
    for (size_t k = 0; k < e->output_count; k++) {
        const prony_value *output;
        PRN_TRY(prony_session_output(session, k, &output, error));
        e->views[k] = *output;
    }
    return score_batch(e, error);
}

static prony_status run_all(prony_report **out, evaluation *e, prony_session *session, prony_error *error)
{
    int64_t batches = prn_ceil_div(e->end - e->first, e->batch);
    int64_t measured = e->options.measured_runs > 0 ? e->options.measured_runs : MEASURED_RUNS;
    prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
    profile.warmup_runs = e->warmups;
    profile.runs = measured < batches ? measured : batches;
    profile.preprocess = before_run;
    profile.postprocess = after_run;
    profile.phase_user = e;
    prony_status status = prony_session_profile(out, session, &profile, error);
    while (status == PRONY_OK && e->done < e->end) {
        status = before_run(e, session, error);
        if (status == PRONY_OK) status = prony_session_run(session, error);
        if (status == PRONY_OK) status = after_run(e, session, error);
    }
    return status;
}

static prony_status set_figures(prony_report *report, const evaluation *e, prony_error *error)
{
    const int64_t scored = evaluate_scored(e);
    const double count = (double)scored;
    if (e->options.metric) {
        double value = NAN;
        PRN_TRY(prn_status_known(e->options.value(e->options.user, &value, error)));
        if (!isfinite(value))
            return prn_fail(error, PRONY_OUT_OF_RANGE, "the metric '%s' gave no number", e->options.metric);
        return prony_report_set_evaluation(report, e->options.metric, value, scored, error);
    }
    PRN_TRY(prony_report_set_evaluation(report, "top1_accuracy", (double)e->right[0] / count, scored, error));
    if (e->by_class || e->classes <= TOP_CLASSES) return PRONY_OK;
    return prony_report_add_evaluation(report, "top5_accuracy", (double)e->right[1] / count, error);
}

/* A part is whole batches, so that a batch holds the same samples as in an evaluation of everything. */
static prony_status choose_part(evaluation *e, prony_error *error)
{
    const int64_t count = e->data->count, batches = prn_ceil_div(count, e->batch);
    const int64_t parts = e->options.parts > 0 ? e->options.parts : 1, part = e->options.part;
    if (parts > batches)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%lld samples are %lld batches of %lld, too few for %lld parts",
                        (long long)count, (long long)batches, (long long)e->batch, (long long)parts);
    const int64_t each = batches / parts, more = batches % parts; /* the first parts have one more */
    const int64_t from = part * each + (part < more ? part : more), to = from + each + (part < more);
    e->first = e->done = from * e->batch;
    e->end = to * e->batch < count ? to * e->batch : count;
    return PRONY_OK;
}

static prony_status evaluate_prepare(evaluation *e, prony_error *error)
{
    e->output_count = prony_model_output_count(e->session->model);
    if (!e->options.metric) PRN_TRY(check_labels(e->data->labels, error));
    if (e->options.output >= e->output_count)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "output %zu does not exist; the model has %zu", e->options.output,
                        e->output_count);
    e->outputs = prn_calloc(e->output_count, sizeof *e->outputs);
    e->views = prn_calloc(e->output_count, sizeof *e->views);
    if (!e->outputs || !e->views) return prn_no_memory(error);
    for (size_t k = 0; k < e->output_count; k++) e->outputs[k] = &e->views[k];
    PRN_TRY(prn_feed_create(&e->feed, e->data, e->session, &e->batch, error));
    return choose_part(e, error);
}

void prony_evaluation_release(prony_evaluation *e)
{
    if (!e) return;
    prn_feed_release(e->feed);
    prn_free(e->outputs);
    prn_free(e->views);
    prn_free(e);
}

prony_status prony_evaluation_create(prony_evaluation **out, prony_session *session, const prony_dataset *data,
                                     const prony_evaluate_options *options, prony_error *error)
{
    prony_evaluate_options own = PRONY_EVALUATE_OPTIONS_INIT;
    if (!out || !session || !data)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_evaluate: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "evaluate options", error));
    if (!data->labels) return prn_fail(error, PRONY_INVALID_ARGUMENT, "the data have no labels");
    if (own.batch < 0 || own.warmup_runs < 0 || (own.metric && (!own.score || !own.value)))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "evaluate options: counts must not be negative, and metrics need their functions");
    if (own.part < 0 || own.parts < 0 || (own.parts ? own.part >= own.parts : own.part > 0))
        return prn_fail(error, PRONY_OUT_OF_RANGE, "evaluate options: part %lld of %lld", (long long)own.part,
                        (long long)own.parts);
    evaluation *e = prn_calloc(1, sizeof *e);
    if (!e) return prn_no_memory(error);
    e->data = data;
    e->options = own;
    e->session = session;
    e->batch = own.batch;
    e->warmups = own.warmup_runs;
    prony_status status = evaluate_prepare(e, error);
    if (status == PRONY_OK)
        *out = e;
    else
        prony_evaluation_release(e);
    return status;
}

int64_t prony_evaluation_batches(const prony_evaluation *e)
{
    return e ? prn_ceil_div(e->end - e->done, e->batch) : 0;
}

prony_status prony_evaluation_bind(prony_evaluation *e, prony_error *error)
{
    if (!e) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_evaluation_bind: an argument is NULL");
    if (e->done >= e->end) return prn_fail(error, PRONY_OUT_OF_RANGE, "every sample was scored");
    return prn_feed_bind(e->feed, e->session, e->done, error);
}

prony_status prony_evaluation_score(prony_evaluation *e, const prony_value *const *outputs, size_t count,
                                    prony_error *error)
{
    if (!e || !outputs) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_evaluation_score: an argument is NULL");
    if (count != e->output_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%zu outputs, but the model has %zu", count, e->output_count);
    if (e->done >= e->end) return prn_fail(error, PRONY_OUT_OF_RANGE, "every sample was scored");
    for (size_t k = 0; k < count; k++) {
        if (!outputs[k]) return prn_fail(error, PRONY_INVALID_ARGUMENT, "output %zu is missing", k);
        e->views[k] = *outputs[k];
    }
    return score_batch(e, error);
}

prony_status prony_evaluation_finish(const prony_evaluation *e, prony_report *report, prony_error *error)
{
    if (!e || !report) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_evaluation_finish: an argument is NULL");
    if (evaluate_scored(e) == 0) return prn_fail(error, PRONY_INVALID_ARGUMENT, "no sample was scored");
    return set_figures(report, e, error);
}

prony_status prony_evaluate(prony_report **out, prony_session *session, const prony_dataset *data,
                            const prony_evaluate_options *options, prony_error *error)
{
    evaluation *e = NULL;
    prony_report *report = NULL;
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_evaluate: an argument is NULL");
    PRN_TRY(prony_evaluation_create(&e, session, data, options, error));
    prony_status status = run_all(&report, e, session, error);
    bool partial = status == PRONY_CANCELLED && report && evaluate_scored(e) > 0;
    if (partial) report->stop_reason = "cancelled";
    if (partial && set_figures(report, e, NULL) != PRONY_OK) partial = false;
    if (status == PRONY_OK) status = set_figures(report, e, error);
    if (status == PRONY_OK || partial)
        *out = report;
    else
        prony_report_release(report);
    prony_evaluation_release(e);
    return status;
}
