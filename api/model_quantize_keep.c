/* Which layers stay in float: each one is quantized alone and its error at the outputs measured; then the worst of them
 * stay, as few as it takes. */
#include "api/model_quantize.h"

#include "base/option_struct.h"
#include "base/shape.h"
#include "quantize/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Samples for a trial of the plan, and for one of each node alone, which there are more of; chosen without
 * measurement. */
enum { MOST_SAMPLES = 32, SAMPLES_ALONE = 8 };

/* One output over all samples of the float model. */
typedef struct reference {
    float *data;
    size_t count, capacity; /* elements */
    double low, high;
} reference;

typedef struct search {
    prn_quant_plan *plan;
    prony_model *model;
    const prony_quantize_options *options;
    prony_session_options session;
    reference *outputs; /* NaN and infinite ones are left out */
    size_t output_count;
    double *squares; /* of a trial, per output */
    size_t *at;      /* elements compared so far, per output */
    size_t *order;   /* contractions, the worst first */
    size_t count;
    int64_t tried, trials;
} search;

static prony_status keep_batch(void *user, prony_session *session, int64_t first, int64_t samples, prony_error *error)
{
    search *s = user;
    (void)first;
    (void)samples;
    for (size_t k = 0; k < s->output_count; k++) {
        const prony_value *value;
        reference *o = &s->outputs[k];
        PRN_TRY(prony_session_output(session, k, &value, error));
        if (value->kind != PRONY_TENSOR || value->dtype != PRONY_FLOAT32) continue;
        const size_t count = (size_t)prony_shape_numel(&value->shape);
        const float *x = value->data;
        if (!PRN_GROW(o->data, o->capacity, o->count + count)) return prn_no_memory(error);
        for (size_t i = 0; i < count; i++) {
            o->data[o->count++] = x[i];
            if (!isfinite(x[i])) continue;
            o->low = fmin(o->low, (double)x[i]);
            o->high = fmax(o->high, (double)x[i]);
        }
    }
    return PRONY_OK;
}

static prony_status compare_batch(void *user, prony_session *session, int64_t first, int64_t samples,
                                  prony_error *error)
{
    search *s = user;
    (void)first;
    (void)samples;
    for (size_t k = 0; k < s->output_count; k++) {
        const prony_value *value;
        const reference *o = &s->outputs[k];
        PRN_TRY(prony_session_output(session, k, &value, error));
        if (value->kind != PRONY_TENSOR || value->dtype != PRONY_FLOAT32) continue;
        const size_t count = (size_t)prony_shape_numel(&value->shape);
        const float *x = value->data;
        if (s->at[k] + count > o->count)
            return prn_fail(error, PRONY_UNSUPPORTED,
                            "the shape of output %zu depends on its data, so its loss is unknown", k);
        for (size_t i = 0; i < count; i++) {
            const double wanted = (double)o->data[s->at[k]++], off = (double)x[i] - wanted;
            if (isfinite(wanted)) s->squares[k] += isfinite(off) ? off * off : INFINITY;
        }
    }
    return PRONY_OK;
}

static prony_status model_quantize_keep_run(search *s, prony_model *model, int64_t samples, prn_each_batch each,
                                            prony_error *error)
{
    prony_session *session = NULL;
    PRN_TRY(prony_session_create(&session, model, &s->session, error));
    prony_status status = prn_run_samples(session, s->options->data, samples, each, s, error);
    prony_session_release(session);
    return status;
}

/* The error of the plan as its nodes are kept, over the first samples. */
static prony_status model_quantize_keep_try_plan(search *s, int64_t samples, double *out, prony_error *error)
{
    prony_model *made = NULL;
    prn_quant_plan_resolve(s->plan);
    for (size_t k = 0; k < s->output_count; k++) {
        s->squares[k] = 0;
        s->at[k] = 0;
    }
    PRN_TRY(prn_quantized_load(&made, s->plan, s->options, error));
    prony_status status = model_quantize_keep_run(s, made, samples, compare_batch, error);
    prony_model_release(made);
    *out = 0;
    for (size_t k = 0; k < s->output_count; k++) {
        const double span = s->outputs[k].high - s->outputs[k].low;
        if (s->at[k] && s->squares[k] > 0) *out = fmax(*out, sqrt(s->squares[k] / (double)s->at[k]) / span);
    }
    if (s->options->progress) s->options->progress(s->options->progress_user, ++s->tried, s->trials);
    return status;
}

static void keep_first(search *s, size_t kept)
{
    for (size_t i = 0; i < s->count; i++) s->plan->nodes[s->order[i]].kept = i < kept;
}

/* Insertion: an order that does not depend on the sort's. Layers of equal error stand as they are executed. */
static void order_by(search *s, const double *errors)
{
    for (size_t i = 1; i < s->count; i++) {
        const size_t n = s->order[i];
        size_t at = i;
        for (; at > 0 && errors[s->order[at - 1]] < errors[n]; at--) s->order[at] = s->order[at - 1];
        s->order[at] = n;
    }
}

static prony_status measure_alone(search *s, double *errors, prony_error *error)
{
    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < s->count; k++) s->plan->nodes[s->order[k]].kept = k != i;
        PRN_TRY(model_quantize_keep_try_plan(s, SAMPLES_ALONE, &errors[s->order[i]], error));
    }
    order_by(s, errors);
    return PRONY_OK;
}

static prony_status find_fewest(search *s, double all, prony_error *error)
{
    const double most = s->options->keep_accuracy;
    size_t low = 1, high = s->count; /* with all of them in float there is no error */
    double found, least = all;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        keep_first(s, middle);
        PRN_TRY(model_quantize_keep_try_plan(s, MOST_SAMPLES, &found, error));
        least = fmin(least, found);
        if (found <= most)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == s->count)
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "%.300s: no layer can be quantized within %.3g %% of the outputs' range; the smallest loss "
                        "found is %.3g %%",
                        s->model->file->name, 100 * most, 100 * least);
    keep_first(s, low);
    prn_quant_plan_resolve(s->plan);
    return PRONY_OK;
}

static prony_status decide(search *s, double *errors, prony_error *error)
{
    double all;
    PRN_TRY(model_quantize_keep_run(s, s->model, MOST_SAMPLES, keep_batch, error));
    PRN_TRY(model_quantize_keep_try_plan(s, MOST_SAMPLES, &all, error));
    if (all <= s->options->keep_accuracy) return PRONY_OK;
    PRN_TRY(measure_alone(s, errors, error));
    return find_fewest(s, all, error);
}

/* Keeps in float the fewest contractions that bring the loss down to options->keep_accuracy, a share of an output's
 * range. A plan that meets it as it is keeps none. errors [node_count]: the loss with one node alone quantized, NAN
 * where it was not measured. The trials run in float32 and unprofiled. s.trials scales the progress only; a halving
 * that rounds up takes one trial more than the loop counts. */
prony_status prn_quantize_keep(prn_quant_plan *plan, prony_model *model, const prony_quantize_options *options,
                               double *errors, prony_error *error)
{
    prn_bump pool = {0};
    search s = {.plan = plan,
                .model = model,
                .options = options,
                .session = PRONY_SESSION_OPTIONS_INIT,
                .output_count = prony_model_output_count(model)};
    PRN_TRY(prn_options_read(&s.session, sizeof s.session, options->session, "session options", error));
    s.session.precision = NULL;
    s.session.no_profile = true;
    s.outputs = prn_bump_alloc(&pool, s.output_count + 1, sizeof *s.outputs);
    s.squares = prn_bump_alloc(&pool, s.output_count + 1, sizeof *s.squares);
    s.at = prn_bump_alloc(&pool, s.output_count + 1, sizeof *s.at);
    s.order = prn_bump_alloc(&pool, plan->graph->node_count + 1, sizeof *s.order);
    prony_status status = s.outputs && s.squares && s.at && s.order ? PRONY_OK : prn_no_memory(error);
    for (size_t k = 0; status == PRONY_OK && k < s.output_count; k++) {
        s.outputs[k].low = INFINITY;
        s.outputs[k].high = -INFINITY;
    }
    for (size_t n = 0; status == PRONY_OK && n < plan->graph->node_count; n++) {
        errors[n] = NAN;
        if (prn_quant_is_contraction(&plan->nodes[n])) s.order[s.count++] = n;
    }
    s.trials = (int64_t)s.count + 2;
    for (size_t left = s.count; left > 1; left /= 2) s.trials++;
    if (status == PRONY_OK) status = decide(&s, errors, error);
    for (size_t k = 0; s.outputs && k < s.output_count; k++) prn_free(s.outputs[k].data);
    prn_bump_release(&pool);
    return status;
}
