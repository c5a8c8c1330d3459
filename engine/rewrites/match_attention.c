/*   q ── MatMul(kᵀ) ── Mul(c) ── Add(mask) ── Softmax ── MatMul(v) ── y          q, k, v, mask ── Attention(c) ── y
 *
 * Also with Where(mask, ., fill) or Where(mask, fill, .) for the Add. For stacks of matrices of rank 3 or 4 without
 * broadcasting between q, k and v; scale and mask may be missing, and the scale may be a division. widen_attention
 * handles scaled and transposed operands. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

/* More keys than this do not fit the kernel's block of scores and would run in the reference kernel. */
enum { MAX_KEYS = 16384 };

typedef struct written_attention {
    prn_node_def *scores; /* q kᵀ */
    double scale;
    uint32_t mask;
    float fill;
    bool kept;
} written_attention;

static bool plain_matmul(const prn_node_def *node)
{
    return prn_node_is(node, "MatMul") && node->input_count == 2 && !node->post_ops;
}

/* value = scale * (q kᵀ), with one reader. */
static bool read_scaled(const prn_rewriter *r, uint32_t value, written_attention *out, prn_pattern *pattern)
{
    prn_factor_product product = {.constant = 1.0};
    if (!prn_rewrite_used_once(r, value) || !prn_rewrite_product_of_value(r, value, &product, pattern) ||
        product.count != 1)
        return false;
    out->scores = prn_rewrite_inner(r, product.factors[0], "MatMul");
    out->scale = product.constant;
    return out->scores && plain_matmul(out->scores) && prn_rewrite_same_shape(r, product.factors[0], value) &&
           prn_pattern_add(pattern, out->scores);
}

/* value = Where(mask, scale * (q k), fill), or the other way round. */
static bool read_chosen(const prn_rewriter *r, uint32_t value, written_attention *out, prn_pattern *pattern)
{
    prn_node_def *where = prn_rewrite_inner(r, value, "Where");
    if (!where || r->program->values[where->inputs[0]]->info.shape.rank > 4 || !prn_pattern_add(pattern, where))
        return false;
    for (uint32_t i = 1; i <= 2; i++) {
        double fill;
        prn_pattern trial = *pattern;
        if (!prn_rewrite_scalar(r, where->inputs[3 - i], &fill) ||
            !prn_rewrite_same_shape(r, where->inputs[i], value) || !read_scaled(r, where->inputs[i], out, &trial))
            continue;
        out->mask = where->inputs[0];
        out->fill = (float)fill;
        out->kept = i == 1;
        *pattern = trial;
        return true;
    }
    return false;
}

static bool read_scores(const prn_rewriter *r, uint32_t value, written_attention *out, prn_pattern *pattern)
{
    out->mask = PRN_NO_VALUE;
    out->fill = 0.0f;
    out->kept = true;
    prn_pattern chosen = *pattern;
    if (read_chosen(r, value, out, &chosen)) {
        *pattern = chosen;
        return true;
    }
    prn_node_def *add = prn_rewrite_inner(r, value, "Add");
    if (!add || add->input_count != 2) return read_scaled(r, value, out, pattern);
    if (!prn_pattern_add(pattern, add)) return false;
    for (uint32_t i = 0; i < 2; i++) {
        prn_pattern trial = *pattern;
        if (!prn_rewrite_same_shape(r, add->inputs[i], value) || !prn_rewrite_is_f32(r, add->inputs[1 - i]) ||
            !read_scaled(r, add->inputs[i], out, &trial))
            continue;
        out->mask = add->inputs[1 - i];
        *pattern = trial;
        return true;
    }
    return false;
}

static bool over_last_axis(const prn_rewriter *r, const prn_node_def *softmax)
{
    int64_t axis = prn_node_int(softmax, "axis", softmax->info.opset < 13 ? 1 : -1);
    return axis == -1 || axis == r->program->values[softmax->inputs[0]]->info.shape.rank - 1;
}

/* q [.., S, D], kᵀ [.., D, T] and v [.., T, E] with the same leading dimensions. */
static bool shapes_fit(const prn_rewriter *r, uint32_t q, uint32_t k, uint32_t v)
{
    if (!prn_rewrite_is_f32(r, q) || !prn_rewrite_is_f32(r, k) || !prn_rewrite_is_f32(r, v)) return false;
    const prony_shape *a = &r->program->values[q]->info.shape, *b = &r->program->values[k]->info.shape,
                      *c = &r->program->values[v]->info.shape;
    int rank = a->rank;
    if (rank < 3 || rank > 4 || b->rank != rank || c->rank != rank) return false;
    for (int i = 0; i < rank - 2; i++)
        if (a->dim[i] != b->dim[i] || a->dim[i] != c->dim[i]) return false;
    const bool changes = prn_dynamic_dims_affect(r->program->values[k]->extents);
    const int64_t keys = changes && r->program->largest > b->dim[rank - 1] ? r->program->largest : b->dim[rank - 1];
    return b->dim[rank - 1] > 0 && keys <= MAX_KEYS;
}

prony_status prn_rewrite_match_attention(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if (!plain_matmul(node) || !prn_rewrite_has("Attention")) return PRONY_OK;
    prn_node_def *softmax = prn_rewrite_inner(r, node->inputs[0], "Softmax");
    prn_pattern pattern = {{softmax}, 1};
    written_attention found;
    if (!softmax || !over_last_axis(r, softmax) || !read_scores(r, softmax->inputs[0], &found, &pattern))
        return PRONY_OK;
    uint32_t inputs[] = {found.scores->inputs[0], found.scores->inputs[1], node->inputs[1], found.mask};
    if (!shapes_fit(r, inputs[0], inputs[1], inputs[2])) return PRONY_OK;
    prn_attention attention = {.scale = found.scale,
                               .fill = found.fill,
                               .kept = found.kept,
                               .rank = r->program->values[inputs[0]]->info.shape.rank};
    for (int operand = 0; operand < 4; operand++)
        for (int i = 0; i < attention.rank; i++) attention.perm[operand][i] = i;
    attention.perm[1][attention.rank - 1] = attention.rank - 2;
    attention.perm[1][attention.rank - 2] = attention.rank - 1;
    return prn_attention_write(r, node, &attention, inputs, found.mask == PRN_NO_VALUE ? 3 : 4, &pattern);
}
