/* com.microsoft Attention and MultiHeadAttention, as adapters onto prony::Attention.
 *
 * Operands that have the form of ops/attention/contrib_attention.h are taken as they are; others are laid out in
 * scratch. Attention projects its input by one product first. Invariant: a row of heads is laid out by one task. */
#include "ops/attention/contrib_attention.h"

#include "base/memory/alloc.h"
#include "ops/delegate.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/vec.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/gemm/matmul.h"
#include "ops/vendor/opencl/opencl_attention.h"

#include <float.h>

/* A row's variant: how its node is read. */
typedef struct mha_kind {
    prony_status (*read)(const prony_context *context, prn_mha_node *out);
} mha_kind;

static prony_status contrib_attention_read_node(const prony_context *context, prn_mha_node *out)
{
    return ((const mha_kind *)prn_variant(context))->read(context, out);
}

/* ---- masks */

static bool counts(const prn_mha_node *n, int64_t b, int64_t s, int64_t t)
{
    const prony_value *mask = n->padding;
    const int32_t *at = mask->data;
    if (mask->shape.rank == 3) return at[(b * n->queries + s) * n->keys + t] != 0;
    if (mask->shape.rank == 2) return at[b * n->keys + t] != 0;
    const bool begun = mask->shape.dim[0] == n->batch || t >= at[n->batch + b];
    return begun && t < at[b];
}

/* Shape of the mask for prony::Attention; rank 0: no mask. */
static prony_shape mask_shape(const prn_mha_node *n)
{
    const bool causal = n->params->unidirectional != 0, per_query = n->padding && n->padding->shape.rank == 3;
    if (!n->padding && !n->added && !causal) return prn_shape_scalar();
    const int64_t *added = n->added ? n->added->shape.dim : (const int64_t[]){1, 1, 1, 1};
    return prn_shape_make(4, (const int64_t[]){n->padding ? n->batch : added[0], added[1],
                                               causal || per_query || n->added ? n->queries : 1, n->keys});
}

typedef struct mask_job {
    const prn_mha_node *node;
    prony_shape shape;
    float *mask;
} mask_job;

/* `unidirectional` as ONNX Runtime computes it on processors: query s sees the past and the keys up to its own number,
 * the last query sees every key. The two rules differ where there are more keys than queries. */
static void mask_rows(void *argument, int64_t begin, int64_t end)
{
    const mask_job *job = argument;
    const prn_mha_node *n = job->node;
    int64_t stride[PRONY_MAX_RANK] = {0};
    if (n->added) prn_shape_broadcast_strides(&n->added->shape, &job->shape, stride);
    for (int64_t r = begin; r < end; r++) {
        const int64_t s = r % job->shape.dim[2], head = r / job->shape.dim[2] % job->shape.dim[1];
        const int64_t b = r / job->shape.dim[2] / job->shape.dim[1];
        float *mask = job->mask + r * n->keys;
        for (int64_t t = 0; t < n->keys; t++) {
            float x =
                n->added ? ((const float *)n->added->data)[b * stride[0] + head * stride[1] + s * stride[2] + t] : 0.0f;
            if (n->padding && !counts(n, b, s, t)) x += n->params->mask_filter_value;
            if (n->params->unidirectional && t > n->past + s && s < n->queries - 1) x = -FLT_MAX;
            mask[t] = x;
        }
    }
}

/* ---- scratch */

/* Byte offsets in scratch, all multiples of 64. */
typedef struct space {
    size_t projected, q, k, v, mask, product, core, end;
} space;

static bool contrib_attention_reserve(size_t *end, size_t *at, size_t bytes)
{
    *at = *end;
    return bytes <= SIZE_MAX - 63 - *end && ((*end += (bytes + 63) & ~(size_t)63), true);
}

static size_t float_bytes(int64_t a, int64_t b, int64_t c, int64_t d)
{
    const prony_shape shape = {4, {a, b, c, d}};
    const int64_t count = prony_shape_numel(&shape);
    return count < 0 ? SIZE_MAX : prony_dtype_bytes(PRONY_FLOAT32, count);
}

/* True if the rows need a place of their own: elsewhere than [B, L, N, D], or with a bias, or joined to a past. */
static bool needs_place(const prn_mha_node *n, const prn_mha_rows *r, bool joins)
{
    const bool lies_right = r->head == r->depth && r->row == n->heads * r->depth && r->batch == r->length * r->row;
    return !r->settled && (joins || r->biased || !lies_right);
}

static bool reserve_rows(size_t *end, size_t *at, const prn_mha_node *n, const prn_mha_rows *r, int64_t length,
                         bool joins, bool elsewhere)
{
    const bool place = !elsewhere && needs_place(n, r, joins);
    return contrib_attention_reserve(end, at, place ? float_bytes(n->batch, length, n->heads, r->depth) : 0);
}

static bool plan_space(const prn_mha_node *n, size_t product_bytes, size_t core_bytes, space *out)
{
    const prony_shape mask = mask_shape(n);
    const size_t mask_bytes = mask.rank ? float_bytes(mask.dim[0], mask.dim[1], mask.dim[2], mask.dim[3]) : 0;
    *out = (space){0};
    return contrib_attention_reserve(&out->end, &out->projected,
                                     n->projected ? float_bytes(n->batch, n->queries, n->projected, 1) : 0) &&
           reserve_rows(&out->end, &out->q, n, &n->q, n->queries, false, false) &&
           reserve_rows(&out->end, &out->k, n, &n->k, n->keys, n->joined, n->k_given_out) &&
           reserve_rows(&out->end, &out->v, n, &n->v, n->keys, n->joined, n->v_given_out) &&
           contrib_attention_reserve(&out->end, &out->mask, mask_bytes) &&
           contrib_attention_reserve(&out->end, &out->product, product_bytes) &&
           contrib_attention_reserve(&out->end, &out->core, core_bytes);
}

/* ---- the operator that does the work */

typedef struct core {
    prony_value q, k, v, mask, y;
    const prony_value *inputs[4];
    prony_value *outputs[1];
    prn_attr attributes[5];
    prn_attr_list list;
    prony_node node;
    prony_context context;
} core;

static const int64_t heads_inside[4] = {0, 2, 1, 3};

static prony_value tensor(int64_t a, int64_t b, int64_t c, int64_t d, const void *data)
{
    return (prony_value){.dtype = PRONY_FLOAT32, .shape = {4, {a, b, c, d}}, .data = (void *)(uintptr_t)data};
}

static void add_perm(core *c, const char *name)
{
    c->attributes[c->list.count++] = (prn_attr){.name = name, .type = PRN_ATTR_INTS, .ints = heads_inside, .count = 4};
}

static prony_value keyed(const prn_mha_node *n, const prn_mha_rows *r, const float *data)
{
    return r->settled || n->joined ? tensor(n->batch, n->heads, n->keys, r->depth, data)
                                   : tensor(n->batch, n->keys, n->heads, r->depth, data);
}

static float contrib_attention_scale(const prn_mha_node *n)
{
    return n->params->scale != 0.0f ? n->params->scale : 1.0f / sqrtf((float)n->q.depth);
}

/* Fills the prony Attention node that does the work, on operands that are laid out already. `c` owns every value that
 * its context points at, so it may not move. */
static void make_core(const prony_context *context, const prn_mha_node *n, const float *q, const float *k,
                      const float *v, const float *mask, core *c)
{
    const prony_shape mask_dims = mask_shape(n);
    *c = (core){.node = *context->node, .context = *context};
    c->q = tensor(n->batch, n->queries, n->heads, n->q.depth, q);
    c->k = keyed(n, &n->k, k);
    c->v = keyed(n, &n->v, v);
    c->y = tensor(n->batch, n->queries, n->heads, n->v.depth, context->outputs[0]->data);
    c->mask = (prony_value){.dtype = PRONY_FLOAT32, .shape = mask_dims, .data = (void *)(uintptr_t)mask};
    c->list.items = c->attributes;
    c->attributes[c->list.count++] =
        (prn_attr){.name = "scale", .type = PRN_ATTR_FLOAT, .f = contrib_attention_scale(n)};
    add_perm(c, "q_perm");
    add_perm(c, "y_perm");
    if (!n->k.settled && !n->joined) add_perm(c, "k_perm");
    if (!n->v.settled && !n->joined) add_perm(c, "v_perm");
    c->node.attributes = &c->list;
    c->node.opset = 1;
    c->inputs[0] = &c->q;
    c->inputs[1] = &c->k;
    c->inputs[2] = &c->v;
    c->inputs[3] = &c->mask;
    c->outputs[0] = &c->y;
    c->context.node = &c->node;
    c->context.inputs = c->inputs;
    c->context.input_count = mask_dims.rank ? 4 : 3;
    c->context.outputs = c->outputs;
    c->context.output_count = 1;
}

/* Without data, for what is settled before a run. */
static prony_status open_core(const prony_context *context, const prn_mha_node *n, core *c, prn_delegate *to)
{
    make_core(context, n, NULL, NULL, NULL, NULL, c);
    return prn_delegate_open(to, &c->context, "prony", "Attention", 1);
}

/* ---- shapes and cost */

static prony_status contrib_attention_infer(const prony_context *context)
{
    prn_mha_node n;
    PRN_TRY(contrib_attention_read_node(context, &n));
    if (float_bytes(n.batch, n.heads, n.keys, n.k.depth) == SIZE_MAX ||
        float_bytes(n.batch, n.heads, n.queries, n.v.depth) == SIZE_MAX)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the output is too large");
    const prony_shape y = {3, {n.batch, n.queries, n.heads * n.v.depth}};
    prn_set_output(context, 0, PRONY_FLOAT32, &y);
    if (n.projected) {
        prn_set_output(context, 1, PRONY_FLOAT32, &(prony_shape){5, {2, n.batch, n.heads, n.keys, n.k.depth}});
    } else {
        prn_set_output(context, 1, PRONY_FLOAT32, &(prony_shape){4, {n.batch, n.heads, n.keys, n.k.depth}});
        prn_set_output(context, 2, PRONY_FLOAT32, &(prony_shape){4, {n.batch, n.heads, n.keys, n.v.depth}});
    }
    return PRONY_OK;
}

/* The projection of Attention, without data if the context has none yet. */
static prn_matmul_desc projection(const prony_context *context, const prn_mha_node *n, float *to)
{
    const prony_value *x = context->inputs[PRN_MHA_INPUT], *bias = prn_input(context, PRN_MHA_BIAS);
    prn_matmul_desc p = prn_matmul_make(PRONY_FLOAT32, n->batch * n->queries, n->projected, x->shape.dim[2]);
    p.a = x->data;
    p.b = context->inputs[PRN_MHA_WEIGHTS]->data;
    p.c = to;
    p.rs_a = p.k;
    p.rs_b = p.n;
    p.cs_a = p.cs_b = 1;
    p.bias = bias ? bias->data : NULL;
    p.bias_col = 1;
    return p;
}

static prony_status contrib_attention_cost(const prony_context *context, prony_cost *out)
{
    prn_mha_node n;
    core c;
    prn_delegate to;
    PRN_TRY(contrib_attention_read_node(context, &n));
    PRN_TRY(open_core(context, &n, &c, &to));
    PRN_TRY(to.op->cost(&c.context, out));
    const uint64_t rows = (uint64_t)(n.batch * n.queries);
    uint64_t outputs, macs;
    if (!prn_mul_u64(&outputs, rows, (uint64_t)n.projected) ||
        !prn_mul_u64(&macs, outputs, n.projected ? (uint64_t)context->inputs[PRN_MHA_INPUT]->shape.dim[2] : 0))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    PRN_TRY(prn_cost_macs(context, out, macs, false));
    if (n.projected) return prn_cost_elementwise(context, out, outputs, prn_input(context, PRN_MHA_BIAS) != NULL, 0);
    const int64_t biased =
        (n.q.length * n.q.depth + (n.k.settled ? 0 : n.k.length * n.k.depth + n.v.length * n.v.depth)) * n.heads;
    return prn_cost_elementwise(context, out, prn_input(context, PRN_MHA_MULTI_BIAS) ? (uint64_t)(n.batch * biased) : 0,
                                1, 0);
}

/* ---- kernels */

typedef struct state {
    void *product;
    size_t product_bytes;
    prn_delegate core;
    bool reference;
} state;

static void contrib_attention_release(void *argument)
{
    state *made = argument;
    if (made) {
        prn_delegate_release(&made->core);
        prn_free(made->product);
    }
    prn_free(made);
}

static prony_status contrib_attention_fill_state(const prony_context *context, const prn_mha_node *n, state *made)
{
    core c;
    prn_prepared part = {0};
    if (n->projected && !made->reference) {
        const prn_matmul_desc p = projection(context, n, NULL);
        PRN_TRY(prn_matmul_native_prepare(context, &p, &part));
        made->product = part.state;
        made->product_bytes = part.scratch_bytes;
    }
    PRN_TRY(open_core(context, n, &c, &made->core));
    prn_delegate_kernel(&made->core, &c.context, true, made->reference ? &prn_like_reference : NULL);
    return prn_delegate_prepare(&made->core, &c.context);
}

static prony_status prepare_node(const prony_context *context, prn_prepared *out, bool reference)
{
    prn_mha_node n;
    space at;
    PRN_TRY(contrib_attention_read_node(context, &n));
    state *made = prn_calloc(1, sizeof *made);
    if (!made) return prn_no_memory(context->error);
    made->reference = reference;
    prony_status status = contrib_attention_fill_state(context, &n, made);
    if (status == PRONY_OK && !plan_space(&n, made->product_bytes, made->core.prepared.scratch_bytes, &at))
        status = prony_fail(context, PRONY_LIMIT, "the working space does not fit in memory");
    if (status != PRONY_OK) {
        contrib_attention_release(made);
        return status;
    }
    *out = (prn_prepared){made, at.end};
    return PRONY_OK;
}

typedef struct settle_job {
    const prn_mha_rows *from;
    int64_t heads;
    float *to;
    int64_t batch, row, head; /* strides of `to` */
} settle_job;

static void settle_rows(void *argument, int64_t begin, int64_t end)
{
    const settle_job *job = argument;
    const prn_mha_rows *from = job->from;
    if (from->depth == 0) return;
    for (int64_t r = begin; r < end; r++) {
        const int64_t b = r / from->length, l = r % from->length;
        for (int64_t h = 0; h < job->heads; h++) {
            const float *x = from->data + b * from->batch + l * from->row + h * from->head;
            float *y = job->to + b * job->batch + l * job->row + h * job->head;
            if (from->biased)
                prn_vec()->vv[PRN_BINARY_ADD](y, x, from->bias + h * from->depth, from->depth);
            else
                memcpy(y, x, (size_t)from->depth * sizeof *y);
        }
    }
}

/* Lays rows out where they are wanted, behind the past if they join one. Returns where they are. */
static const float *contrib_attention_lay_rows(const prony_context *context, const prn_mha_node *n,
                                               const prn_mha_rows *from, const float *past, float *to, bool joins)
{
    if (!needs_place(n, from, joins)) return from->data;
    const int64_t d = from->depth, row = joins ? d : n->heads * d, head = joins ? n->keys * d : d;
    settle_job job = {from, n->heads, to, joins ? n->heads * head : from->length * row, row, head};
    const int64_t total = n->batch * from->length;
    if (joins && n->past > 0) {
        prn_copy copy = {0};
        prn_copy_axis(&copy, n->batch * n->heads, n->past * d, n->keys * d);
        prn_copy_axis(&copy, n->past * d, 1, 1);
        prn_copy_native(context->threads, sizeof *to, &copy, past, to);
        job.to += n->past * d;
    }
    prn_parallel_items(context->threads, total, 8 * total * n->heads * d, settle_rows, &job);
    return to;
}

/* Returns NULL if the node has no scratch. */
static void *contrib_attention_place(const prony_context *context, size_t offset)
{
    return context->scratch ? (char *)context->scratch + offset : NULL;
}

static prony_status run_projection(const prony_context *context, prn_mha_node *n, const space *at)
{
    const state *made = context->state;
    float *to = contrib_attention_place(context, at->projected);
    if (!to) return PRONY_OK; /* no row to project */
    const prn_matmul_desc p = projection(context, n, to);
    prony_context inner = *context;
    inner.state = made->product;
    inner.scratch = contrib_attention_place(context, at->product);
    inner.scratch_bytes = made->product_bytes;
    n->q.data = to;
    n->k.data = to + n->heads * n->q.depth;
    n->v.data = n->k.data + n->heads * n->k.depth;
    return made->reference ? prn_matmul_reference_run_at(&inner, &p) : prn_matmul_native_run_at(&inner, &p);
}

static prony_status contrib_attention_run(const prony_context *context)
{
    prn_mha_node n;
    core c;
    space at;
    const state *made = context->state;
    PRN_TRY(contrib_attention_read_node(context, &n));
    if (!plan_space(&n, made->product_bytes, made->core.prepared.scratch_bytes, &at) || at.end > context->scratch_bytes)
        return prony_fail(context, PRONY_INTERNAL, "the working space is too small");
    if (n.projected) PRN_TRY(run_projection(context, &n, &at));
    const int64_t half = n.batch * n.heads * n.past * n.k.depth; /* of Attention's past */
    float *k_place = n.k_given_out ? n.present_k : contrib_attention_place(context, at.k);
    float *v_place = n.v_given_out ? n.present_v : contrib_attention_place(context, at.v);
    const float *q = contrib_attention_lay_rows(context, &n, &n.q, NULL, contrib_attention_place(context, at.q), false);
    const float *k = contrib_attention_lay_rows(context, &n, &n.k, prn_mha_data(n.past_k, 0), k_place, n.joined);
    const float *v = contrib_attention_lay_rows(context, &n, &n.v, prn_mha_data(n.past_v, n.projected ? half : 0),
                                                v_place, n.joined);
    mask_job job = {&n, mask_shape(&n), contrib_attention_place(context, at.mask)};
    if (job.shape.rank && n.keys > 0)
        prn_parallel_items(context->threads, prn_shape_count(&job.shape, 0, 3), 8 * prony_shape_numel(&job.shape),
                           mask_rows, &job);
    make_core(context, &n, q, k, v, job.mask, &c);
    return prn_delegate_run(&made->core, &c.context, contrib_attention_place(context, at.core));
}

static prony_status contrib_attention_prepare_native(const prony_context *context, prn_prepared *out)
{
    return prepare_node(context, out, false);
}

static prony_status contrib_attention_prepare_reference(const prony_context *context, prn_prepared *out)
{
    return prepare_node(context, out, true);
}

/* ---- OpenCL: MultiHeadAttention without past and present. A mask of padding, or of `unidirectional`, is the
 * host's. */

#ifdef PRN_HAVE_OPENCL
enum { MULTI_PADDING = 4, MULTI_ADDED };

static bool has_own_mask(const prn_mha_node *n)
{
    return n->padding || n->params->unidirectional;
}

static prn_attend multi_attend_of(const prn_mha_node *n)
{
    const prn_mha_rows *const each[3] = {&n->q, &n->k, &n->v};
    prn_attend at = {.batch = n->batch,
                     .heads = n->heads,
                     .key_heads = n->heads,
                     .rows = n->queries,
                     .keys = n->keys,
                     .depth = n->k.depth,
                     .width = n->v.depth,
                     .y_stride = {n->queries * n->heads * n->v.depth, n->v.depth, n->heads * n->v.depth},
                     .scale = contrib_attention_scale(n)};
    prn_attend_view *const views[3] = {&at.q, &at.k, &at.v};
    for (int i = 0; i < 3; i++) *views[i] = (prn_attend_view){NULL, {each[i]->batch, each[i]->head, each[i]->row, 1}};
    return at;
}

static bool multi_opencl_supported(const prony_context *context)
{
    prn_mha_node n;
    if (prn_mha_read_multi(context, &n) != PRONY_OK || n.joined || (n.added && has_own_mask(&n))) return false;
    const prn_attend at = multi_attend_of(&n);
    return n.queries > 0 && at.depth > 0 && at.width > 0 && prn_opencl_attend_supported(context, &at);
}

/* Part i of queries, keys and values: of one tensor, of two, or of three. */
static void multi_place(const prony_context *context, const prn_mha_node *n, prn_opencl_projected *out)
{
    const bool keys = prn_input(context, 1), values = prn_input(context, 2);
    for (size_t i = 0; i < 3; i++) {
        out->input[i] = !keys ? 0 : i == 2 && !values ? 1 : i;
        out->from[i] = !keys ? (int64_t)i * n->q.depth : i == 2 && !values ? n->k.depth : 0;
    }
}

static prony_status multi_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    prn_mha_node n;
    PRN_TRY(prn_mha_read_multi(context, &n));
    const prn_attend at = multi_attend_of(&n);
    const prony_shape mask = mask_shape(&n), scores = {4, {n.batch, n.heads, n.queries, n.keys}};
    const bool own = has_own_mask(&n);
    prn_opencl_projected projected = {.bias = PRN_MHA_MULTI_BIAS,
                                      .biased =
                                          (uint32_t)n.q.biased | (uint32_t)n.k.biased << 1 | (uint32_t)n.v.biased << 2,
                                      .mask = MULTI_ADDED,
                                      .mask_count = own ? prony_shape_numel(&mask) : 0};
    prn_opencl_attend problem = {.at = &at,
                                 .mask = own || n.added ? PRN_OPENCL_MASK_ADDED : PRN_OPENCL_NO_MASK,
                                 .mask_keys = n.keys,
                                 .alone = NAN};
    multi_place(context, &n, &projected);
    if (problem.mask != PRN_OPENCL_NO_MASK)
        prn_shape_broadcast_strides(own ? &mask : &n.added->shape, &scores, problem.mask_stride);
    return prn_opencl_projected_prepare(context, &problem, &projected, out);
}

static prony_status multi_opencl_run(const prony_context *context)
{
    prn_mha_node n;
    PRN_TRY(prn_mha_read_multi(context, &n));
    mask_job job = {&n, mask_shape(&n), prn_opencl_projected_mask(context)};
    if (job.mask)
        prn_parallel_items(context->threads, prn_shape_count(&job.shape, 0, 3), 8 * prony_shape_numel(&job.shape),
                           mask_rows, &job);
    return prn_opencl_projected_run(context);
}
#endif

/* ---- rows */

static const prn_param params[] = {
    PRN_INT_REQUIRED(prn_mha_params, num_heads), PRN_INT(prn_mha_params, unidirectional, 0),
    PRN_INT(prn_mha_params, do_rotary, 0),       PRN_INT(prn_mha_params, past_present_share_buffer, 0),
    PRN_FLOAT(prn_mha_params, scale, 0.0f),      PRN_FLOAT(prn_mha_params, mask_filter_value, -10000.0f),
    PRN_INTS(prn_mha_params, qkv_hidden_sizes),  {0}};

// clang-format off
static const prn_kernel attention_kernels[] = {
    {.name = "contrib_attention_f32_native", .backend = "native", .types = PRN_TYPE_F32,
     .prepare = contrib_attention_prepare_native, .run = contrib_attention_run, .release = contrib_attention_release},
    {.name = "contrib_attention_ref", .backend = "reference", .types = PRN_TYPE_F32,
     .prepare = contrib_attention_prepare_reference, .run = contrib_attention_run, .release = contrib_attention_release},
    {0}};
static const prn_kernel multi_kernels[] = {
    PRN_OPENCL_ROW_RUN("contrib_multi_f32_opencl", PRN_TYPE_F32, multi_opencl_supported, multi_opencl_prepare, multi_opencl_run, .host_inputs = 1 << 4)
    {.name = "contrib_multi_f32_native", .backend = "native", .types = PRN_TYPE_F32,
     .prepare = contrib_attention_prepare_native, .run = contrib_attention_run, .release = contrib_attention_release},
    {.name = "contrib_multi_ref", .backend = "reference", .types = PRN_TYPE_F32,
     .prepare = contrib_attention_prepare_reference, .run = contrib_attention_run, .release = contrib_attention_release},
    {0}};

const prn_op prn_ops_contrib_attention[] = {
    {.name = "Attention", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 6}, .outputs = {1, 2},
     .params = params, .params_bytes = sizeof(prn_mha_params), .variant = &(const mha_kind){prn_mha_read_attention},
     .infer = contrib_attention_infer, .cost = contrib_attention_cost, .kernels = attention_kernels,
     .cost_text = "the projection, MACs M = B S C columns, FLOPs 2M, + one per column with bias; then prony::Attention's"},
    {.name = "MultiHeadAttention", .domain = "com.microsoft", .since_opset = 1, .inputs = {1, 8}, .outputs = {1, 3},
     .params = params, .params_bytes = sizeof(prn_mha_params), .variant = &(const mha_kind){prn_mha_read_multi},
     .infer = contrib_attention_infer, .cost = contrib_attention_cost, .kernels = multi_kernels,
     .cost_text = "prony::Attention's, + one per element of query, key and value with bias"},
    {0}};
// clang-format on
