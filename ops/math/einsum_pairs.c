/* An Einsum of several operands as contractions of two at a time, and of two whose axes no product walks as they lie.
 *
 * The pair that takes the fewest multiplications is contracted first; its result, in the scratch, takes the place of
 * both. It keeps the axes that the output or another operand has: those of both operands, then those of the first
 * alone, then those of the second, so that they are a product's items, rows and columns. If an operand's axes do not
 * lie so, it is copied so first. Invariant: the order follows from the extents alone. */
#include "ops/math/einsum.h"

#include "base/integers.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/vec.h"

#include <string.h>

enum {
    LINE = 16,               /* floats of a cache line */
    SCALED_LEAST = 4,        /* columns of a row that is worth a call */
    LARGEST_RESULT = 1 << 24 /* floats between two pairs; of more the whole space is walked */
};

/* The place of an operand, and its strides over the axes of the whole space. */
typedef struct operand {
    int input;      /* -1: in the scratch */
    int64_t offset; /* there, in floats */
    int64_t stride[PRN_EINSUM_AXES];
} operand;

/* An operand copied into the scratch before its pair is contracted. */
typedef struct layout {
    prn_copy copy; /* rank 0: it is read where it is */
    int input;
    int64_t offset, to;
} layout;

typedef struct pair {
    layout layout[2];
    prn_matmul_desc product; /* without data */
    int input[2];            /* its A and B, as an operand has them */
    int64_t offset[2];
    int64_t to; /* in the scratch; -1: the output */
} pair;

typedef struct pairs {
    pair pair[PRN_EINSUM_OPERANDS - 1];
    int count;
    bool copied; /* the last result lies in the scratch, in another order */
    prn_copy copy;
    int64_t floats; /* of the scratch */
} pairs;

static bool einsum_pairs_has(const prn_einsum_space *s, const operand *o, int axis)
{
    return o->stride[axis] != 0 && s->extent[axis] > 1;
}

static double multiplications(const prn_einsum_space *s, const operand *a, const operand *b)
{
    double volume = 1.0;
    for (int axis = 0; axis < s->axes; axis++)
        if (einsum_pairs_has(s, a, axis) || einsum_pairs_has(s, b, axis)) volume *= (double)s->extent[axis];
    return volume;
}

static bool einsum_pairs_is_kept(const prn_einsum_space *s, const operand *others, int count, int axis)
{
    bool kept = axis < s->output_axes;
    for (int i = 0; i < count; i++) kept = kept || einsum_pairs_has(s, &others[i], axis);
    return kept;
}

static void add_axis(prn_einsum_space *to, const prn_einsum_space *s, const operand *a, const operand *b, int axis)
{
    to->extent[to->axes] = s->extent[axis];
    to->stride[0][to->axes] = a->stride[axis];
    to->stride[1][to->axes++] = b->stride[axis];
}

/* The summed axes, behind the others. */
static void add_sums(prn_einsum_space *to, const prn_einsum_space *s, const operand *a, const operand *b,
                     const operand *others, int count)
{
    to->output_axes = to->axes;
    for (int axis = 0; axis < s->axes; axis++)
        if ((einsum_pairs_has(s, a, axis) || einsum_pairs_has(s, b, axis)) &&
            !einsum_pairs_is_kept(s, others, count, axis))
            add_axis(to, s, a, b, axis);
}

/* The last pair, laid out as the output is. */
static bool contract_to_output(const prn_einsum_space *s, const operand *a, const operand *b, prn_matmul_desc *product)
{
    prn_einsum_space t = {.dtype = s->dtype, .operands = 2};
    for (int axis = 0; axis < s->output_axes; axis++) {
        t.output_stride[axis] = s->output_stride[axis];
        add_axis(&t, s, a, b, axis);
    }
    add_sums(&t, s, a, b, NULL, 0);
    return prn_einsum_product(&t, product);
}

/* Into the scratch. false: too large, or no product. */
static bool contract_to_scratch(const prn_einsum_space *s, const operand *a, const operand *b, const operand *others,
                                int count, prn_matmul_desc *product, operand *result, double *floats)
{
    prn_einsum_space t = {.dtype = s->dtype, .operands = 2};
    int axis_of[PRN_EINSUM_AXES];
    for (int kind = 0; kind < 3; kind++) {
        const bool in_a = kind != 2, in_b = kind != 1;
        for (int axis = 0; axis < s->axes; axis++) {
            if (einsum_pairs_has(s, a, axis) != in_a || einsum_pairs_has(s, b, axis) != in_b ||
                !einsum_pairs_is_kept(s, others, count, axis))
                continue;
            axis_of[t.axes] = axis;
            add_axis(&t, s, a, b, axis);
        }
    }
    const int kept = t.axes;
    *floats = 1.0;
    for (int i = 0; i < kept; i++) *floats *= (double)t.extent[i];
    if (*floats > LARGEST_RESULT) return false;
    int64_t stride = 1;
    *result = (operand){.input = -1};
    for (int i = kept - 1; i >= 0; i--) {
        result->stride[axis_of[i]] = t.output_stride[i] = stride;
        stride *= t.extent[i];
    }
    add_sums(&t, s, a, b, others, count);
    return prn_einsum_product(&t, product);
}

static int64_t einsum_pairs_room_for(pairs *out, double floats)
{
    const int64_t at = out->floats;
    out->floats += prn_ceil_div((int64_t)floats, LINE) * LINE;
    return at;
}

static double elements(const prn_einsum_space *s, const operand *o)
{
    return multiplications(s, o, o);
}

/* Copies `o`, one of a pair, so that what follows each other in memory are the axes that both have and that are kept,
 * its own of these, and the summed ones. false: too large. */
static bool einsum_pairs_lay_out(const prn_einsum_space *s, const operand *partner, const operand *others, int count,
                                 operand *o, layout *layout, pairs *out)
{
    int order[PRN_EINSUM_AXES], axes = 0;
    double floats = 1.0;
    for (int kind = 0; kind < 3; kind++) {
        for (int axis = 0; axis < s->axes; axis++) {
            const bool own = einsum_pairs_has(s, o, axis), both = own && einsum_pairs_has(s, partner, axis),
                       kept = einsum_pairs_is_kept(s, others, count, axis);
            const bool summed = (own || einsum_pairs_has(s, partner, axis)) && !kept;
            if (kind == 0 ? !(both && kept) : kind == 1 ? !(own && !both && kept) : !summed) continue;
            floats *= (double)s->extent[axis];
            order[axes++] = axis;
        }
    }
    if (axes == 0 || axes > PRN_COPY_MAX_RANK || floats > LARGEST_RESULT) return false;
    operand copied = {.input = -1, .offset = einsum_pairs_room_for(out, floats)};
    int64_t stride = 1;
    for (int i = axes - 1; i >= 0; i--) {
        copied.stride[order[i]] = stride;
        stride *= s->extent[order[i]];
    }
    layout->input = o->input;
    layout->offset = o->offset;
    layout->to = copied.offset;
    for (int i = 0; i < axes; i++)
        prn_copy_axis(&layout->copy, s->extent[order[i]], o->stride[order[i]], copied.stride[order[i]]);
    *o = copied;
    return true;
}

/* Which two are next; the others are moved to the front. */
static void einsum_pairs_choose(const prn_einsum_space *s, operand *left, int count, operand *a, operand *b)
{
    int first = 0, second = 1;
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (multiplications(s, &left[i], &left[j]) < multiplications(s, &left[first], &left[second])) {
                first = i;
                second = j;
            }
    *a = left[first];
    *b = left[second];
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (i != first && i != second) left[kept++] = left[i];
}

/* Plans the product of the two operands that are cheapest to contract now, with at most one copy of each, and puts its
 * result in their place. false: no product can express it. */
static bool einsum_pairs_add_pair(const prn_einsum_space *s, pairs *out, operand *left, int count)
{
    operand a, b;
    double floats;
    einsum_pairs_choose(s, left, count, &a, &b);
    pair *pair = &out->pair[out->count++];
    pair->to = -1;
    const bool last = count == 2, direct = last && contract_to_output(s, &a, &b, &pair->product);
    operand *result = &left[count - 2];
    const int smaller = elements(s, &b) < elements(s, &a);
    for (int copies = 0; !direct && !contract_to_scratch(s, &a, &b, left, count - 2, &pair->product, result, &floats);
         copies++) {
        const int which = copies == 0 ? smaller : !smaller;
        if (copies == 2 ||
            !einsum_pairs_lay_out(s, which ? &a : &b, left, count - 2, which ? &b : &a, &pair->layout[copies], out))
            return false;
    }
    if (!direct) {
        pair->to = result->offset = einsum_pairs_room_for(out, floats);
        out->copied = last;
    }
    const operand *const operands[2] = {&a, &b};
    const int from[2] = {pair->product.a_input, pair->product.b_input};
    for (int i = 0; i < 2; i++) {
        pair->input[i] = operands[from[i]]->input;
        pair->offset[i] = operands[from[i]]->offset;
    }
    return true;
}

static bool einsum_pairs_find(const prony_context *context, pairs *out)
{
    prn_einsum_space s;
    operand left[PRN_EINSUM_OPERANDS];
    if (prn_einsum_space_of(context, &s) != PRONY_OK || s.operands < 2) return false;
    for (int axis = 0; axis < s.axes; axis++)
        if (s.extent[axis] == 0) return false;
    *out = (pairs){0};
    for (int i = 0; i < s.operands; i++) {
        left[i] = (operand){.input = i};
        memcpy(left[i].stride, s.stride[i], sizeof left[i].stride);
    }
    for (int count = s.operands; count > 1; count--)
        if (!einsum_pairs_add_pair(&s, out, left, count)) return false;
    for (int axis = 0; out->copied && axis < s.output_axes; axis++)
        prn_copy_axis(&out->copy, s.extent[axis], left[0].stride[axis], s.output_stride[axis]);
    return true;
}

bool prn_einsum_pairs_supported(const prony_context *context)
{
    pairs pairs;
    return einsum_pairs_find(context, &pairs);
}

prony_status prn_einsum_pairs_prepare(const prony_context *context, prn_prepared *out)
{
    pairs pairs;
    if (!einsum_pairs_find(context, &pairs)) return prony_fail(context, PRONY_INTERNAL, "no products of pairs");
    out->scratch_bytes = prony_dtype_bytes(PRONY_FLOAT32, pairs.floats);
    return prn_prepared_keep(context, &pairs, sizeof pairs, out);
}

void prn_einsum_pairs_facts(const prony_context *context, prony_cost *facts)
{
    const pairs *pairs = context->state;
    int64_t flops = 0;
    for (int i = 0; i < pairs->count; i++) {
        const prn_matmul_desc *p = &pairs->pair[i].product;
        flops += p->items * p->m * p->n * (p->k == 1 ? 1 : 2 * p->k);
    }
    prn_cost_fact(facts, "product_flops", flops);
}

static bool scales_rows(const prn_matmul_desc *p)
{
    return p->k == 1 && p->cs_b == 1 && p->n >= SCALED_LEAST;
}

/* Without a sum: each row is B's, scaled by an element of A. */
static void scale_rows(void *argument, int64_t begin, int64_t end)
{
    const prn_matmul_desc *p = argument;
    for (int64_t row = begin; row < end; row++) {
        int64_t a, b, c;
        prn_matmul_offsets(p, row / p->m, &a, &b, &c);
        const int64_t i = row % p->m;
        prn_long_vs(PRN_BINARY_MUL, (float *)p->c + c + i * p->rs_c, (const float *)p->b + b,
                    ((const float *)p->a)[a + i * p->rs_a], p->n);
    }
}

/* Runs the planned pairs in order: copies of operands, the product, then a copy to the output where the last product
 * has another order. */
prony_status prn_einsum_pairs_run(const prony_context *context)
{
    const pairs *pairs = context->state;
    float *const scratch = context->scratch;
    for (int i = 0; i < pairs->count; i++) {
        const pair *pair = &pairs->pair[i];
        prn_matmul_desc p = pair->product;
        for (int k = 0; k < 2; k++) {
            const layout *l = &pair->layout[k];
            const float *from = l->input < 0 ? scratch + l->offset : (const float *)context->inputs[l->input]->data;
            if (l->copy.rank) prn_copy_native(context->threads, sizeof(float), &l->copy, from, scratch + l->to);
        }
        p.a = pair->input[0] < 0 ? scratch + pair->offset[0] : context->inputs[pair->input[0]]->data;
        p.b = pair->input[1] < 0 ? scratch + pair->offset[1] : context->inputs[pair->input[1]]->data;
        p.c = pair->to < 0 ? context->outputs[0]->data : scratch + pair->to;
        if (scales_rows(&p))
            prn_parallel_items(context->threads, p.items * p.m, p.items * p.m * (p.n + 32), scale_rows, &p);
        else
            prn_matmul_native_run_unpacked(context, &p);
    }
    if (pairs->copied)
        prn_copy_native(context->threads, sizeof(float), &pairs->copy, scratch + pairs->pair[pairs->count - 1].to,
                        context->outputs[0]->data);
    return PRONY_OK;
}
