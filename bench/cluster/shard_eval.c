/* Labelled data through a model that is cut into stages: rank 0 binds each batch before a run, and scores the outputs
 * that the run brought. */
#include "bench/cluster/shard.h"

#include "bench/process/interrupt.h"
#include "bench/session/labelled_data.h"

#include <stdlib.h>

typedef struct shard_data {
    prony_dataset *data;
    prony_evaluation *evaluation;
    const pipeline *pipe;
    bool counts;
} shard_data;

static prony_status shard_eval_begin_run(void *user, prony_error *error)
{
    return prony_evaluation_bind(((shard_data *)user)->evaluation, error);
}

static prony_status shard_eval_end_run(void *user, prony_error *error)
{
    const shard_data *d = user;
    if (!d->counts) return PRONY_OK;
    return prony_evaluation_score(d->evaluation, (const prony_value *const *)d->pipe->outputs, d->pipe->model_outputs,
                                  error);
}

int shard_eval_open(sharded *s)
{
    prony_error error = {0};
    shard_data *d = s->data = calloc(1, sizeof *d);
    const prony_evaluate_options options = evaluate_options(s->o);
    if (!d) return fail(s->o, "out of memory");
    d->pipe = &s->pipe;
    interrupt_at_once(true);
    prony_status status = open_labelled_data(s->o, &d->data, s->model, &error);
    interrupt_at_once(false);
    if (status == PRONY_OK) status = prony_evaluation_create(&d->evaluation, s->whole, d->data, &options, &error);
    if (status == PRONY_OK) status = prony_evaluation_bind(d->evaluation, &error);
    if (status != PRONY_OK) return report_error(s->o, &error);
    s->pipe.begin_run = shard_eval_begin_run;
    s->pipe.end_run = shard_eval_end_run;
    s->pipe.run_user = d;
    return EXIT_DONE;
}

int64_t shard_eval_begin(sharded *s)
{
    s->data->counts = true;
    return prony_evaluation_batches(s->data->evaluation);
}

int shard_eval_finish(sharded *s)
{
    prony_error error = {0};
    if (prony_evaluation_finish(s->data->evaluation, s->report, &error) != PRONY_OK) return report_error(s->o, &error);
    return EXIT_DONE;
}

void shard_eval_close(sharded *s)
{
    if (!s->data) return;
    prony_evaluation_release(s->data->evaluation);
    prony_dataset_release(s->data->data);
    free(s->data);
    s->data = NULL;
}
