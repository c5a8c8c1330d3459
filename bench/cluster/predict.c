/* The time of a run by the plan's compute times and the measured links. A rank computes one micro-batch at a time, and
 * one message at a time leaves it; the message arrives after the link's latency. Messages move while ranks compute. */
#include "bench/cluster/shard.h"

#include <math.h>
#include <stdlib.h>

typedef struct prediction {
    const sharded *s;
    double *begun, *ended; /* [ranks] of the current micro-batch */
    double *leaves;        /* [ranks] when the last message has left */
    double finish;
} prediction;

void links_between(const link_table *table, uint32_t a, uint32_t b, link_figures *out)
{
    uint64_t smallest = UINT64_MAX, largest = 0;
    double short_ns = 0, long_ns = 0;
    for (size_t i = 0; i < table->count; i++) {
        const prony_link_row *row = &table->rows[i];
        if (!(row->rank == a && row->peer == b) && !(row->rank == b && row->peer == a)) continue;
        if (row->bytes < smallest) smallest = row->bytes, short_ns = (double)row->time_ns;
        if (row->bytes > largest) largest = row->bytes, long_ns = (double)row->time_ns;
    }
    if (largest <= smallest) return;
    out->latency_ns = short_ns;
    if (long_ns > short_ns) out->bytes_per_ns = (double)(largest - smallest) / (long_ns - short_ns);
}

/* When a message that is ready at `at` is there. */
static double predict_arrival(prediction *p, size_t from, size_t to, uint64_t bytes, double at)
{
    link_figures link = {p->s->slowest.latency_ns, p->s->slowest.bytes_per_ns, 0, 0};
    links_between(&p->s->links, (uint32_t)from, (uint32_t)to, &link);
    p->leaves[from] = fmax(p->leaves[from], at) + (link.bytes_per_ns > 0 ? (double)bytes / link.bytes_per_ns : 0);
    return p->leaves[from] + link.latency_ns;
}

static void predict_stage(prediction *p, size_t stage)
{
    const prony_shard_stage *row = &p->s->pipe.rows[stage];
    double begins = p->ended[stage];
    for (size_t i = 0; i < row->input_count; i++) {
        const prony_shard_tensor *t = &row->inputs[i];
        const bool given = t->from == PRONY_SHARD_MODEL;
        if (given && stage == 0) continue;
        const size_t from = given ? 0 : t->from;
        begins = fmax(begins, predict_arrival(p, from, stage, t->bytes, given ? p->begun[0] : p->ended[from]));
    }
    p->begun[stage] = begins;
    p->ended[stage] = begins + (double)row->compute_ns;
}

/* Outputs of the model go to rank 0; a stage without outputs tells it that the run has ended. */
static void predict_end(prediction *p, size_t stage, bool last)
{
    const prony_shard_stage *row = &p->s->pipe.rows[stage];
    uint64_t bytes = 0;
    bool any = last;
    for (size_t k = 0; k < row->output_count; k++) {
        if (row->model_outputs[k] == PRONY_SHARD_MODEL) continue;
        bytes += row->outputs[k].bytes;
        any = true;
    }
    if (stage == 0)
        p->finish = fmax(p->finish, p->ended[0]);
    else if (any)
        p->finish = fmax(p->finish, predict_arrival(p, stage, 0, bytes, p->ended[stage]));
}

int64_t predicted_step_ns(const sharded *s)
{
    const size_t stages = s->pipe.stage_count;
    double *times = calloc(3 * stages + 1, sizeof *times);
    if (!times) return prony_shard_plan_step_ns(s->plan, s->pipe.micro_batches);
    prediction p = {.s = s, .begun = times, .ended = times + stages, .leaves = times + 2 * stages};
    for (int64_t m = 0; m < s->pipe.micro_batches; m++)
        for (size_t stage = 0; stage < stages; stage++) {
            predict_stage(&p, stage);
            predict_end(&p, stage, m + 1 == s->pipe.micro_batches);
        }
    free(times);
    return (int64_t)p.finish;
}
