#include "bench/session/labelled_data.h"

static void labelled_data_show_samples(void *user, int64_t done, int64_t samples)
{
    (void)user;
    char text[64];
    snprintf(text, sizeof text, "%lld of %lld samples", (long long)done, (long long)samples);
    show_progress_text(text);
}

prony_evaluate_options evaluate_options(const options *o)
{
    prony_evaluate_options e = PRONY_EVALUATE_OPTIONS_INIT;
    e.batch = o->model.batch;
    e.warmup_runs = o->measuring.warmup;
    if (want_progress(o)) e.progress = labelled_data_show_samples;
    return e;
}

prony_status open_labelled_data(const options *o, prony_dataset **data, const prony_model *model, prony_error *error)
{
    prony_dataset_options d = PRONY_DATASET_OPTIONS_INIT;
    d.classes = o->shown.labels;
    d.image = image_options(o);
    return prony_dataset_open(data, o->arguments[1], model, &d, error);
}
