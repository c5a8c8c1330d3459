/* The choice of the next id. Every step is in double precision and in an order that logits and ids decide, so the same
 * logits give the same id everywhere. */
#include "engine/generate/generator.h"

#include <math.h>
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

/* Candidates in sample_order, sorted only as far as a draw looks: [0, left) is a heap, behind it stand the first
 * count - left candidates, the first one last. */
typedef struct sample_queue {
    prn_candidate *list;
    size_t count, left;
} sample_queue;

/* Moves list[at] down until no child of it comes first. */
static void sample_sift(sample_queue *q, size_t at)
{
    const prn_candidate moved = q->list[at];
    for (size_t child; (child = 2 * at + 1) < q->left; at = child) {
        if (child + 1 < q->left && sample_order(&q->list[child + 1], &q->list[child]) < 0) child++;
        if (sample_order(&moved, &q->list[child]) < 0) break;
        q->list[at] = q->list[child];
    }
    q->list[at] = moved;
}

/* All logits that are numbers; the first candidate is at the root. */
static sample_queue sample_queue_fill(const prony_generator *g, const float *scores)
{
    sample_queue q = {.list = g->candidates};
    for (size_t k = 0; k < g->score_count; k++)
        if (scores[k] == scores[k]) q.list[q.count++] = (prn_candidate){(double)scores[k], (int64_t)k};
    q.left = q.count;
    for (size_t k = q.count / 2; k-- > 0;) sample_sift(&q, k);
    return q;
}

/* Candidate k in order; k is at most one more than in earlier calls. */
static const prn_candidate *sample_queue_at(sample_queue *q, size_t k)
{
    if (q->count - q->left <= k) {
        const prn_candidate first = q->list[0];
        q->list[0] = q->list[--q->left];
        if (q->left) sample_sift(q, 0);
        q->list[q->left] = first;
    }
    return &q->list[q->count - 1 - k];
}

/* Draws an id by the candidates' probabilities, from the stream of this sequence and position: of the top_k first ones,
 * cut where they sum to top_p, or before a probability below min_p of the first one's. */
static int64_t sample_draw(const prony_generator *g, int64_t sequence, const float *scores)
{
    const prony_sampling *by = &g->sampling;
    sample_queue q = sample_queue_fill(g, scores);
    const double highest = q.list[0].weight;
    size_t most = by->top_k > 0 && (size_t)by->top_k < q.count ? (size_t)by->top_k : q.count;
    double sum = 0, part = 0;
#define WEIGHT(candidate) exp(((candidate)->weight - highest) / by->temperature)
    for (size_t k = 0; k < most; k++) sum += WEIGHT(most < q.count ? sample_queue_at(&q, k) : &q.list[k]);
    const double wanted = by->top_p > 0 && by->top_p < 1 ? by->top_p * sum : INFINITY;
    if (wanted < INFINITY || by->min_p > 0) {
        size_t kept = 0;
        for (; kept < most && part < wanted; kept++) {
            const double weight = WEIGHT(sample_queue_at(&q, kept));
            if (kept > 0 && weight < by->min_p) break;
            part += weight;
        }
        most = kept;
        sum = part;
    }
    uint64_t state = g->sampling.seed + (uint64_t)sequence * UINT64_C(0x9e3779b97f4a7c15) +
                     (uint64_t)g->lengths[sequence] * UINT64_C(0xd1342543de82ef95);
    (void)prn_random_fraction(&state); /* neighbouring states give like numbers at first */
    const double draw = prn_random_fraction(&state) * sum;
    size_t k = 0;
    for (part = WEIGHT(sample_queue_at(&q, 0)); k + 1 < most && part <= draw; part += WEIGHT(sample_queue_at(&q, k)))
        k++;
    return sample_queue_at(&q, k)->id;
#undef WEIGHT
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
