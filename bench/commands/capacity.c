/* prony capacity: the least processors that keep a latency bound at a rate. */
#include "bench/load/capacity.h"
#include "bench/options/option_table.h"
#include "bench/process/interrupt.h"

#include <stdlib.h>

static int capacity_check_options(const options *o)
{
    if (!(o->load.rate > 0)) return usage(o, "needs --rate, requests per second");
    if (!o->load.latency_bound_ns) return usage(o, "needs --latency-bound, such as 20ms");
    return EXIT_DONE;
}

/* Only requests of one sample are combined. */
static prony_status check_samples(const capacity *c, prony_error *error)
{
    for (size_t i = 0; i < c->input_count; i++) {
        const prony_shape *shape = &c->inputs[i]->shape;
        if (shape->rank < 1 || shape->dim[0] == 1) continue;
        error->status = PRONY_INVALID_ARGUMENT;
        snprintf(error->message, sizeof error->message,
                 "%.200s: input '%.200s' has %lld samples: only requests of one sample are combined (--max-batch 1)",
                 c->o->arguments[0], prony_model_input(c->model, i)->name, (long long)shape->dim[0]);
        return error->status;
    }
    return PRONY_OK;
}

/* Inputs of one sample, and the sizes of runs. A model whose requests cannot be combined has one size, unless
 * --max-batch asks for more: then the batcher says why not. */
static int capacity_set_up(capacity *c)
{
    const options *o = c->o;
    prony_error error = {0};
    if (load_model(o, &c->model, o->arguments[0], &error) != PRONY_OK) return report_error(o, &error);
    int code = make_session(o, c->model, &c->session, false);
    if (code != EXIT_DONE) return code;
    if (prony_session_prepare(c->session, &error) != PRONY_OK) return report_error(o, &error);
    c->machine_cores = prony_session_threads(c->session);
    c->cores = o->capacity.cores ? (int)o->capacity.cores : c->machine_cores;
    if (c->cores < c->machine_cores) c->machine_cores = c->cores;
    c->input_count = prony_model_input_count(c->model);
    c->inputs = calloc(c->input_count + 1, sizeof *c->inputs);
    if (!c->inputs) return fail(o, "out of memory");
    for (size_t i = 0; i < c->input_count; i++) c->inputs[i] = prony_session_input_value(c->session, i);
    c->max_batch = o->load.max_batch ? o->load.max_batch : DEFAULT_CAPACITY_BATCH;
    prony_batcher *trial = NULL;
    prony_session_options session = session_options(o);
    prony_batcher_options b = PRONY_BATCHER_OPTIONS_INIT;
    b.max_batch = c->max_batch;
    prony_status status = c->max_batch > 1 ? check_samples(c, &error) : PRONY_OK;
    if (status == PRONY_OK) status = prony_batcher_create(&trial, c->model, &session, &b, &error);
    if (status == PRONY_OK) {
        /* a model that fails on generated inputs may run on those of --input: --max-batch tries it */
        c->combines = c->max_batch > 1 && (o->load.max_batch || prony_batcher_trial(trial).known);
        prony_batcher_release(trial);
    }
    if (status != PRONY_OK && (o->load.max_batch > 1 || status == PRONY_OUT_OF_MEMORY)) return report_error(o, &error);
    if (!c->combines) c->max_batch = 1;
    c->size_count = prony_batch_run_sizes(c->max_batch, c->sizes);
    return EXIT_DONE;
}

int command_capacity(const options *o)
{
    int code = capacity_check_options(o);
    if (code != EXIT_DONE) return code;
    capacity *c = calloc(1, sizeof *c);
    if (!c) return fail(o, "out of memory");
    c->o = o;
    c->percentile = o->load.percentile > 0 ? o->load.percentile : 0.99;
    code = capacity_set_up(c);
    if (code == EXIT_DONE) code = capacity_measure(c);
    if (code == EXIT_DONE) code = capacity_search(c);
    if (code == EXIT_DONE) code = capacity_write(c);
    if (code == EXIT_DONE && c->answer < 0) code = EXIT_VERDICT;
    session_release(c->session);
    prony_model_release(c->model);
    free(c->inputs);
    free(c->cells);
    free(c);
    return code;
}
