/* GroupQueryAttention: weights from a row of products. */
#include "ops/attention/group_query.h"

#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/vec.h"

#include <math.h>
#include <string.h>

/* Addend of key t in a row: the bias. NULL data: none. */
static double group_query_bias_of(const prn_gqa *g, int64_t b, int64_t h, int64_t s, int64_t t)
{
    const prony_value *bias = prn_input(g->context, PRN_GQA_BIAS);
    if (!bias) return 0.0;
    const int64_t *dim = bias->shape.dim;
    const int64_t row = ((dim[0] > 1 ? b : 0) * dim[1] + (dim[1] > 1 ? h : 0)) * dim[2] + s;
    return prn_get_f64(bias->data, bias->dtype, row * dim[3] + t);
}

/* True if a further term, exp(*extra), stands in the softmax's denominator. */
static bool group_query_has_sink(const prn_gqa *g, int64_t h, double *extra)
{
    const prony_value *sink = prn_input(g->context, PRN_GQA_SINK);
    *extra = sink ? prn_get_f64(sink->data, sink->dtype, h) : 0.0;
    return sink || g->params->smooth_softmax == 1;
}

static void group_query_softmax(const prn_gqa *g, int64_t h, float *x, int64_t n)
{
    const prn_vec_table *vec = prn_vec();
    double extra;
    if (!group_query_has_sink(g, h, &extra)) {
        vec->softmax(x, x, n);
        return;
    }
    const float highest = vec->max(x, n), top = highest > (float)extra ? highest : (float)extra;
    const double sum = vec->exp_sum(x, x, n, top) + exp(extra - (double)top);
    vec->vs[PRN_BINARY_MUL](x, x, (float)(1.0 / sum), n);
}

void prn_gqa_weigh_f32(const prn_gqa *g, int64_t b, int64_t h, int64_t s, float *scores)
{
    const prn_vec_table *vec = prn_vec();
    const float cap = g->params->softcap;
    const prony_value *bias = prn_input(g->context, PRN_GQA_BIAS);
    int64_t first, end;
    prn_gqa_span(g, b, s, &first, &end);
    float *x = scores + first;
    const int64_t n = end - first;
    vec->map[PRN_MAP_AFFINE](x, x, n, (float)g->scale, 0.0f);
    if (cap > 0.0f) {
        vec->vs[PRN_BINARY_DIV](x, x, cap, n);
        vec->map[PRN_MAP_TANH](x, x, n, 0.0f, 0.0f);
        vec->map[PRN_MAP_AFFINE](x, x, n, cap, 0.0f);
    }
    for (int64_t t = 0; bias && t < n; t++) x[t] += (float)group_query_bias_of(g, b, h, s, first + t);
    group_query_softmax(g, h, x, n);
    memset(scores, 0, (size_t)first * sizeof *scores);
    memset(scores + end, 0, (size_t)(g->total - end) * sizeof *scores);
}

void prn_gqa_weigh_f64(const prn_gqa *g, int64_t b, int64_t h, int64_t s, double *scores)
{
    const double cap = (double)g->params->softcap;
    int64_t first, end;
    double extra, top = -(double)INFINITY, sum = 0.0;
    prn_gqa_span(g, b, s, &first, &end);
    for (int64_t t = first; t < end && !prn_cancelled_at(t); t++) {
        scores[t] *= g->scale;
        if (cap > 0.0) scores[t] = cap * tanh(scores[t] / cap);
        scores[t] += group_query_bias_of(g, b, h, s, t);
        top = scores[t] > top || scores[t] != scores[t] ? scores[t] : top;
    }
    const bool sink = group_query_has_sink(g, h, &extra);
    if (sink && extra > top) top = extra;
    for (int64_t t = 0; t < g->total && !prn_cancelled_at(t); t++)
        sum += scores[t] = t >= first && t < end ? exp(scores[t] - top) : 0.0;
    if (sink) sum += exp(extra - top);
    for (int64_t t = first; t < end && !prn_cancelled_at(t); t++) scores[t] /= sum;
}
