/* See the header. Histograms want the range first, so methods that need them run the data twice. */
#include "quantize/calibrate.h"

#include "evaluate/dataset.h"

#include <math.h>
#include <string.h>

prony_status prn_run_samples(prony_session *session, const prony_dataset *data, int64_t most, prn_each_batch each,
                             void *user, prony_error *error)
{
    prn_feed *feed = NULL;
    int64_t batch = 0, count = prony_dataset_count(data);
    if (count < 1) return prn_fail(error, PRONY_INVALID_ARGUMENT, "the data have no samples");
    if (most > 0 && most < count) count = most;
    prony_status status = prn_feed_create(&feed, data, session, &batch, error);
    for (int64_t first = 0; status == PRONY_OK && first < count; first += batch) {
        status = prn_feed_bind(feed, session, first, error);
        if (status == PRONY_OK) status = prony_session_run(session, error);
        if (status == PRONY_OK)
            status = each(user, session, first, count - first < batch ? count - first : batch, error);
    }
    prn_feed_release(feed);
    return status;
}

typedef struct watching {
    const prn_quant_plan *plan;
    const prn_watched *watched;
    size_t count;
    prn_observed *seen;
    bool bins;
    int64_t done, samples; /* of all passes */
    const prony_calibrate_options *options;
} watching;

static prony_status watch_value(const watching *w, size_t k, const prony_value *value, int64_t first, int64_t samples,
                                prony_error *error)
{
    const int64_t count = prony_shape_numel(&value->shape);
    if (value->dtype != PRONY_FLOAT32 || !value->data)
        return prn_fail(error, PRONY_INTERNAL, PRN_NAME " is not a float32 tensor",
                        w->plan->values[w->watched[k].value].name);
    if (w->bins) {
        prn_observe_bins(&w->seen[k], value->data, count);
        return PRONY_OK;
    }
    if (prn_observe_range(&w->seen[k], value->data, count)) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "%.300s: %s " PRN_NAME " holds NaN or infinity with samples %lld to %lld",
                    w->plan->model->file->name, w->watched[k].input ? "input" : "value",
                    w->plan->values[w->watched[k].value].name, (long long)first, (long long)(first + samples - 1));
}

/* Inputs first: what is wrong with the data shows there. */
static prony_status watch_batch(void *user, prony_session *session, int64_t first, int64_t samples, prony_error *error)
{
    watching *w = user;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = 0; k < w->count; k++) {
            const prony_value *value = NULL;
            if (w->watched[k].input != (pass == 0)) continue;
            if (w->watched[k].input)
                value = prony_session_input_value(session, w->watched[k].port);
            else
                PRN_TRY(prony_session_output(session, w->watched[k].port, &value, error));
            if (!value) return prn_fail(error, PRONY_INTERNAL, "an input is not bound");
            PRN_TRY(watch_value(w, k, value, first, samples, error));
        }
    }
    w->done += samples;
    if (w->options->progress) w->options->progress(w->options->progress_user, w->done, w->samples);
    return PRONY_OK;
}

static prony_status watch_all(watching *w, prony_session *probe, const prony_dataset *data, prony_error *error)
{
    const bool twice = w->options->method != PRONY_CALIBRATE_MINMAX;
    w->samples = prony_dataset_count(data) * (twice ? 2 : 1);
    PRN_TRY(prn_run_samples(probe, data, 0, watch_batch, w, error));
    w->bins = true;
    return twice ? prn_run_samples(probe, data, 0, watch_batch, w, error) : PRONY_OK;
}

/* Values of one group have one range. */
static void calibrate_settle(prony_calibration *c, const watching *w)
{
    const double share = w->options->percentile > 0 ? w->options->percentile : 0.9999;
    for (size_t k = 0; k < w->count; k++) {
        prn_observed_range(&w->seen[k], c->method, share, &c->rows[k].low, &c->rows[k].high);
        c->rows[k].name = w->plan->values[w->watched[k].value].name;
    }
    prn_calibration_sort(c);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = 0; k < w->count; k++) {
            const prn_quant_value *values = w->plan->values, *value = &values[w->watched[k].value];
            prn_calibrated *row = (prn_calibrated *)(uintptr_t)prn_calibration_find(c, value->name);
            prn_calibrated *root = (prn_calibrated *)(uintptr_t)prn_calibration_find(c, values[value->group].name);
            prn_calibrated *from = pass ? root : row, *to = pass ? row : root;
            to->low = fmin(to->low, from->low);
            to->high = fmax(to->high, from->high);
        }
    }
    for (size_t k = 0; k < c->count; k++) prn_calibrated_resolve(&c->rows[k]);
}

static prony_status keep_names(prony_calibration *c, prony_error *error)
{
    for (size_t k = 0; k < c->count; k++) {
        c->rows[k].name = prn_bump_strndup(&c->pool, c->rows[k].name, strlen(c->rows[k].name));
        if (!c->rows[k].name) return prn_no_memory(error);
    }
    return PRONY_OK;
}

prony_status prn_calibrate_run(prony_calibration *c, const prn_quant_plan *plan, prony_session *probe,
                               const prn_watched *watched, size_t count, const prony_dataset *data,
                               const prony_calibrate_options *options, prony_error *error)
{
    prn_bump room = {0};
    watching w = {.plan = plan, .watched = watched, .count = count, .options = options};
    c->method = options->method;
    c->samples = prony_dataset_count(data);
    c->rows = prn_bump_alloc(&c->pool, count + 1, sizeof *c->rows);
    w.seen = prn_bump_alloc(&room, count + 1, sizeof *w.seen);
    prony_status status = c->rows && w.seen ? PRONY_OK : prn_no_memory(error);
    for (size_t k = 0; status == PRONY_OK && options->method != PRONY_CALIBRATE_MINMAX && k < count; k++) {
        w.seen[k].bins = prn_bump_alloc(&room, PRN_OBSERVED_BINS, sizeof *w.seen[k].bins);
        if (!w.seen[k].bins) status = prn_no_memory(error);
    }
    if (status == PRONY_OK) status = watch_all(&w, probe, data, error);
    if (status == PRONY_OK) {
        c->count = count;
        calibrate_settle(c, &w);
        status = keep_names(c, error);
    }
    prn_bump_release(&room);
    return status;
}
