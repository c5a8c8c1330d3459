/* FlexAttention of ai.onnx.preview: softmax(score_mod(scale Q K^T)) V, with a second subgraph, prob_mod, between
 * softmax and V. Q is [B, Hq, L, E], K [B, Hk, S, E], V [B, Hk, S, D]; a head of K and V serves Hq / Hk heads of Q in a
 * row.
 *
 * The scores are one tensor [B, Hq, L, S] in scratch, so that a subgraph sees them whole. Invariant: rows are
 * independent and products have one order. */
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/gemm/matmul.h"
#include "ops/kernels/subgraph.h"

#include <math.h>

enum { Q, K, V };

typedef struct flex_params {
    const struct prn_graph *score_mod, *prob_mod;
    int64_t softmax_precision; /* PRN_ABSENT, or the element type of the scores as a subgraph sees them */
    float scale;
} flex_params;

static const prn_param flex_attributes[] = {PRN_GRAPH(flex_params, score_mod),
                                            PRN_GRAPH(flex_params, prob_mod),
                                            PRN_INT(flex_params, softmax_precision, PRN_ABSENT),
                                            PRN_FLOAT(flex_params, scale, NAN), /* absent: 1 / sqrt(E) */
                                            {0}};

static prony_status flex_check(const prony_context *context)
{
    const int64_t precision = ((const flex_params *)context->params)->softmax_precision;
    if (precision == PRN_ABSENT) return PRONY_OK;
    if (precision > 0 && precision < PRONY_DTYPE_COUNT && (PRN_TYPES_FLOAT & PRN_TYPE(precision))) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "softmax_precision %lld is not a floating-point type",
                      (long long)precision);
}

/* ---- shapes: an input may not be known yet, wholly or in its extents */

static bool flex_attention_is_known(const prony_context *context)
{
    for (size_t i = Q; i <= V; i++)
        if (context->inputs[i]->dtype == PRONY_UNDEFINED || !prn_shape_known(&context->inputs[i]->shape)) return false;
    return true;
}

static prony_status check_shapes(const prony_context *context)
{
    const int64_t *q = context->inputs[Q]->shape.dim, *k = context->inputs[K]->shape.dim;
    const int64_t *v = context->inputs[V]->shape.dim;
    char text[PRN_SHAPE_TEXT_BYTES], query[PRN_SHAPE_TEXT_BYTES];
    size_t odd = Q;
    if (k[0] != q[0] || k[3] != q[3] || (k[1] < 1 ? q[1] > 0 : q[1] % k[1] != 0)) odd = K;
    if (v[0] != k[0] || v[1] != k[1] || v[2] != k[2]) odd = V;
    if (odd == Q) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, which does not fit the query %s", odd,
                      prn_value_text(context->inputs[odd], text), prn_value_text(context->inputs[Q], query));
}

static prony_status infer_mod(const prony_context *context, const struct prn_graph *graph, const prony_value *scores)
{
    prony_value made = {0};
    if (!graph) return PRONY_OK;
    PRN_TRY(context->services->subgraph_infer(context, graph, &scores, 1, &made, 1));
    if (prn_type_open(scores) || prn_type_open(&made)) return PRONY_OK;
    if (made.kind == PRONY_TENSOR && made.dtype == scores->dtype) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "a subgraph makes %s of scores of %s",
                      prony_dtype_name(made.dtype), prony_dtype_name(scores->dtype));
}

/* The scores as a subgraph sees them. */
static prony_value scores_type(const prony_context *context)
{
    const prony_shape *q = &context->inputs[Q]->shape;
    const int64_t given = ((const flex_params *)context->params)->softmax_precision;
    const prony_dtype dtype = context->inputs[Q]->dtype;
    const prony_dtype usual = dtype == PRONY_UNDEFINED || dtype == PRONY_FLOAT64 ? dtype : PRONY_FLOAT32;
    return (prony_value){.dtype = given == PRN_ABSENT ? usual : (prony_dtype)given,
                         .shape = {4, {q->dim[0], q->dim[1], q->dim[2], context->inputs[K]->shape.dim[2]}}};
}

/* The output is Q with V's width. The subgraphs score_mod and prob_mod are bound for the scores' type, whose shape may
 * still be unknown. */
static prony_status flex_infer(const prony_context *context)
{
    const flex_params *params = context->params;
    const prony_dtype dtype = context->inputs[Q]->dtype;
    prony_value scores = scores_type(context);
    prony_shape y = prn_shape_unknown();
    for (size_t i = Q; i <= V; i++) {
        const prony_value *in = context->inputs[i];
        if (prn_type_open(in)) continue;
        PRN_TRY(prn_check_type(context, i, dtype == PRONY_UNDEFINED || i == Q ? PRN_TYPES_FLOAT : PRN_TYPE(dtype)));
        if (in->shape.rank >= 0) PRN_TRY(prn_check_rank(context, i, 4, 4));
    }
    if (flex_attention_is_known(context)) {
        PRN_TRY(check_shapes(context));
        y = context->inputs[Q]->shape;
        y.dim[3] = context->inputs[V]->shape.dim[3];
        if (prony_shape_numel(&y) < 0 || prony_shape_numel(&scores.shape) < 0)
            return prony_fail(context, PRONY_LIMIT, "the scores are too large");
    } else {
        scores.shape = prn_shape_unknown();
    }
    PRN_TRY(infer_mod(context, params->score_mod, &scores));
    PRN_TRY(infer_mod(context, params->prob_mod, &scores));
    prn_set_output(context, 0, dtype, &y);
    return PRONY_OK;
}

/* ---- cost */

/* Without the subgraphs. Scaling; per row of S scores S - 1 maxima, S differences, S exp, S - 1 sums, S divisions. */
static prony_status own_cost(const prony_context *context, prony_cost *cost)
{
    const prony_shape *q = &context->inputs[Q]->shape, *v = &context->inputs[V]->shape;
    const uint64_t rows = (uint64_t)prn_shape_count(q, 0, 3), keys = (uint64_t)v->dim[2];
    uint64_t scores, macs;
    if (!prn_mul_u64(&scores, rows, keys) || !prn_mul_u64(&macs, scores, (uint64_t)q->dim[3] + (uint64_t)v->dim[3]))
        return prony_fail(context, PRONY_LIMIT, "the number of MACs does not fit 64 bits");
    PRN_TRY(prn_cost_macs(context, cost, macs, false));
    PRN_TRY(prn_cost_elementwise(context, cost, scores, 6, 2));
    if (scores > 0) cost->flops -= 2 * rows;
    return PRONY_OK;
}

static prony_status flex_cost(const prony_context *context, prony_cost *cost)
{
    const flex_params *params = context->params;
    const struct prn_graph *mods[] = {params->score_mod, params->prob_mod};
    PRN_TRY(own_cost(context, cost));
    prn_cost_fact(cost, "axis_length", context->inputs[K]->shape.dim[2]);
    prn_cost_fact(cost, "rows", prn_shape_count(&context->inputs[Q]->shape, 0, 3));
    for (size_t i = 0; i < 2; i++) {
        prony_cost mod = {0};
        if (!mods[i]) continue;
        PRN_TRY(context->services->subgraph_cost(context, mods[i], NULL, 0, &mod));
        if (!prn_cost_add(cost, &mod)) return prony_fail(context, PRONY_LIMIT, "the cost does not fit into 64 bits");
    }
    return PRONY_OK;
}

/* Work besides the subgraphs is told to the engine, which books what they do. */
static prony_status book_own_work(const prony_context *context)
{
    const flex_params *params = context->params;
    prony_cost cost = {0};
    if (!params->score_mod && !params->prob_mod) return PRONY_OK;
    PRN_TRY(own_cost(context, &cost));
    for (size_t i = Q; i <= V; i++) cost.bytes_read += prn_value_bytes(context->inputs[i]);
    cost.bytes_written = prn_value_bytes(context->outputs[0]);
    return context->services->work_add(context, &cost);
}

/* ---- running */

/* 16-bit inputs are computed with as float32. Scratch holds, in this order: the scores [B, Hq, L, S] in the work type;
 * the scores as a subgraph sees them, if that is another type; for 16-bit inputs Q, K, V and Y in the work type. */
typedef struct flex {
    const prony_context *context;
    prony_dtype dtype, work;
    prony_value scores, seen;
    const void *in[3]; /* Q, K, V of the work type */
    void *y;
} flex;

static size_t whole_lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Lays the arrays out from `space` on, which may be NULL, and returns the bytes that they take. */
static size_t flex_attention_lay_out(const prony_context *context, flex *at, char *space)
{
    *at = (flex){.context = context, .dtype = context->inputs[Q]->dtype, .seen = scores_type(context)};
    const bool wide = at->dtype == PRONY_FLOAT32 || at->dtype == PRONY_FLOAT64;
    const int64_t count = prony_shape_numel(&at->seen.shape);
    at->work = wide ? at->dtype : PRONY_FLOAT32;
    at->scores = at->seen;
    at->scores.dtype = at->work;
    at->scores.data = at->seen.data = space;
    size_t used = whole_lines(prony_dtype_bytes(at->work, count));
    if (at->seen.dtype != at->work) {
        at->seen.data = space ? space + used : NULL;
        used += whole_lines(prony_dtype_bytes(at->seen.dtype, count));
    }
    for (size_t i = Q; i <= V && wide; i++) at->in[i] = context->inputs[i]->data;
    at->y = context->outputs[0]->data;
    if (wide) return used;
    for (size_t i = Q; i <= V; i++) {
        const int64_t size = prony_shape_numel(&context->inputs[i]->shape);
        if (space) prn_convert(space + used, at->work, context->inputs[i]->data, at->dtype, size);
        at->in[i] = space ? space + used : NULL;
        used += whole_lines(prony_dtype_bytes(at->work, size));
    }
    at->y = space ? space + used : NULL;
    return used + whole_lines(prony_dtype_bytes(at->work, prony_shape_numel(&context->outputs[0]->shape)));
}

static prony_status flex_prepare(const prony_context *context, prn_prepared *out)
{
    flex at;
    out->scratch_bytes = flex_attention_lay_out(context, &at, NULL);
    return PRONY_OK;
}

/* The heads of one batch as [Hk, Hq / Hk] items; `b_step` elements of the second factor belong to a head of K and V. */
static void each_head(const flex *at, prn_matmul_desc *product, int64_t b_step)
{
    const int64_t *q = at->context->inputs[Q]->shape.dim, heads = at->context->inputs[K]->shape.dim[1];
    const int64_t group = heads > 0 ? q[1] / heads : 0, a_step = product->m * product->k;
    const int64_t c_step = product->m * product->n;
    product->rs_a = product->k;
    product->cs_a = 1;
    prn_matmul_batch(product, q[0], q[1] * a_step, heads * b_step, q[1] * c_step);
    prn_matmul_batch(product, heads, group * a_step, b_step, group * c_step);
    prn_matmul_batch(product, group, a_step, 0, c_step);
}

static prony_status make_scores(const flex *at)
{
    const int64_t *scores = at->scores.shape.dim, depth = at->context->inputs[Q]->shape.dim[3];
    const float given = ((const flex_params *)at->context->params)->scale;
    prn_matmul_desc product = prn_matmul_make(at->work, scores[2], scores[3], depth);
    product.alpha = !isnan(given) ? given : depth > 0 ? (float)(1.0 / sqrt((double)depth)) : 1.0f;
    product.a = at->in[Q];
    product.b = at->in[K];
    product.c = at->scores.data;
    product.rs_b = 1;
    product.cs_b = depth;
    each_head(at, &product, product.n * depth);
    return prn_matmul_reference_run_at(at->context, &product);
}

static prony_status weigh_values(const flex *at)
{
    const int64_t *scores = at->scores.shape.dim;
    const prony_value *y = at->context->outputs[0];
    prn_matmul_desc product = prn_matmul_make(at->work, scores[2], y->shape.dim[3], scores[3]);
    product.a = at->scores.data;
    product.b = at->in[V];
    product.c = at->y;
    product.rs_b = product.n;
    product.cs_b = 1;
    each_head(at, &product, product.n * product.k);
    PRN_TRY(prn_matmul_reference_run_at(at->context, &product));
    if (at->y != y->data) prn_convert(y->data, at->dtype, at->y, at->work, prony_shape_numel(&y->shape));
    return PRONY_OK;
}

static void make_softmax(void *argument, int64_t begin, int64_t end)
{
    const prony_value *scores = argument;
    const int64_t length = scores->shape.dim[3];
    for (int64_t first = begin * length; first < end * length && !prn_cancelled(); first += length) {
        double highest = -(double)INFINITY, total = 0.0;
        for (int64_t i = 0; i < length; i++)
            highest = fmax(highest, prn_get_f64(scores->data, scores->dtype, first + i));
        for (int64_t i = 0; i < length; i++)
            total += exp(prn_get_f64(scores->data, scores->dtype, first + i) - highest);
        for (int64_t i = first; i < first + length; i++)
            prn_put_f64(scores->data, scores->dtype, i,
                        exp(prn_get_f64(scores->data, scores->dtype, i) - highest) / total);
    }
}

/* The scores become what the subgraph, if there is one, makes of them. */
static prony_status flex_attention_run_mod(const flex *at, const struct prn_graph *graph)
{
    const int64_t count = prony_shape_numel(&at->scores.shape);
    const prony_value *in = &at->seen;
    prony_value made = {0};
    char came[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
    if (!graph) return PRONY_OK;
    if (in->dtype != at->work) prn_convert(in->data, in->dtype, at->scores.data, at->work, count);
    PRN_TRY(at->context->services->subgraph_run(at->context, graph, &in, 1, &made, 1));
    if (!prn_type_equal(&made, in))
        return prony_fail(at->context, PRONY_SHAPE_MISMATCH, "a subgraph makes %s of scores %s",
                          prn_value_text(&made, came), prn_value_text(in, wanted));
    prn_convert(at->scores.data, at->work, made.data, made.dtype, count);
    return PRONY_OK;
}

static prony_status flex_run(const prony_context *context)
{
    const flex_params *params = context->params;
    flex at;
    PRN_TRY(check_shapes(context));
    if (!context->outputs[0]->data) PRN_TRY(context->services->output_alloc(context, 0));
    flex_attention_lay_out(context, &at, context->scratch);
    PRN_TRY(make_scores(&at));
    PRN_TRY(flex_attention_run_mod(&at, params->score_mod));
    const int64_t grain = 1 + 4096 / (at.scores.shape.dim[3] + 1);
    prn_parallel_range(context->threads, prn_shape_count(&at.scores.shape, 0, 3), grain, make_softmax, &at.scores);
    PRN_TRY(flex_attention_run_mod(&at, params->prob_mod));
    PRN_TRY(weigh_values(&at));
    return book_own_work(context);
}

static const prn_kernel flex_kernels[] = {
    {.name = "flex_attention_reference", .backend = "reference", .prepare = flex_prepare, .run = flex_run}, {0}};

// clang-format off
const prn_op prn_ops_flex_attention[] = {
    {.name = "FlexAttention", .domain = "ai.onnx.preview", .since_opset = 1, .inputs = {3, 3}, .flags = PRN_OP_OPEN,
     .params = flex_attributes, .params_bytes = sizeof(flex_params), .check = flex_check,
     .infer = flex_infer, .cost = flex_cost, .kernels = flex_kernels,
     .cost_text = "r rows of d scores: MACs M = r d (E + D); FLOPs 2M + r(6d-2); special 2 r d; and what the "
                  "subgraphs do"},
    {0}};
// clang-format on
