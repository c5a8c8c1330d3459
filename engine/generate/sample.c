/* The choice of the next id. Every step is in double precision and in an order that logits and ids decide, so the same
 * logits give the same id everywhere. */
#include "engine/generate/generator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest first; the smaller id at a tie. */
static int sample_order(const void *a, const void *b)
{
    const prn_candidate *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool sample_penalises(const prony_generator *g)
{
    return g->sampling.repetition_penalty > 0 && g->sampling.repetition_penalty != 1;
}

/* The logits with those of ids in the sequence made less, each id once. */
static const float *sample_penalise(const prony_generator *g, int64_t sequence, const float *scores)
{
    const double penalty = g->sampling.repetition_penalty;
    const int64_t *ids = g->ids + sequence * g->max_length;
    memcpy(g->penalised, scores, g->score_count * sizeof *scores);
    memset(g->marks, 0, g->score_count);
    for (int64_t t = 0; t < g->lengths[sequence]; t++) {
        if (ids[t] < 0 || (size_t)ids[t] >= g->score_count || g->marks[ids[t]]) continue;
        float *score = &g->penalised[ids[t]];
        *score = (float)(*score > 0 ? (double)*score / penalty : (double)*score * penalty);
        g->marks[ids[t]] = 1;
    }
    return g->penalised;
}

static int64_t sample_largest(const float *scores, size_t count)
{
    int64_t best = -1;
    for (size_t k = 0; k < count; k++)
        if (scores[k] == scores[k] && (best < 0 || scores[k] > scores[best])) best = (int64_t)k;
    return best;
}

/* Sorts the candidates, cuts them by top_k, min_p and top_p, and returns how many stay; their weights are
 * probabilities that sum to *sum. */
static size_t sample_cut(const prony_generator *g, size_t count, double *sum)
{
    prn_candidate *list = g->candidates;
    const prony_sampling *by = &g->sampling;
    qsort(list, count, sizeof *list, sample_order);
    if (by->top_k > 0 && (size_t)by->top_k < count) count = (size_t)by->top_k;
    const double highest = list[0].weight;
    *sum = 0;
    for (size_t k = 0; k < count; k++) *sum += list[k].weight = exp((list[k].weight - highest) / by->temperature);
    double part = 0;
    size_t kept = 0;
    const double wanted = by->top_p > 0 && by->top_p < 1 ? by->top_p * *sum : INFINITY;
    while (kept < count && part < wanted && (kept == 0 || list[kept].weight >= by->min_p)) part += list[kept++].weight;
    *sum = part;
    return kept;
}

/* Draws an id by the candidates' probabilities, from the stream of this sequence and position. */
static int64_t sample_draw(const prony_generator *g, int64_t sequence, const float *scores)
{
    size_t count = 0;
    for (size_t k = 0; k < g->score_count; k++)
        if (scores[k] == scores[k]) g->candidates[count++] = (prn_candidate){(double)scores[k], (int64_t)k};
    double sum, part = 0;
    const size_t kept = sample_cut(g, count, &sum);
    uint64_t state = g->sampling.seed + (uint64_t)sequence * UINT64_C(0x9e3779b97f4a7c15) +
                     (uint64_t)g->lengths[sequence] * UINT64_C(0xd1342543de82ef95);
    (void)prn_random_fraction(&state); /* neighbouring states give like numbers at first */
    const double draw = prn_random_fraction(&state) * sum;
    size_t k = 0;
    while (k + 1 < kept && (part += g->candidates[k].weight) <= draw) k++;
    return g->candidates[k].id;
}

prony_status prn_generator_choose(prony_generator *generator, int64_t sequence, int64_t *id, prony_error *error)
{
    const prony_generator *g = generator;
    const float *scores = g->scores + (size_t)sequence * g->score_count;
    if (sample_penalises(g)) scores = sample_penalise(g, sequence, scores);
    *id = sample_largest(scores, g->score_count);
    if (*id < 0)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: output '%s': the logits of sequence %lld are not numbers",
                        g->file, g->graph->outputs[g->logits].name, (long long)sequence);
    if (g->sampling.temperature > 0) *id = sample_draw(g, sequence, scores);
    return PRONY_OK;
}
