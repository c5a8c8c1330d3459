/*   q ── Transpose ── Mul(c) ──┐                                      q ──┐
 *   k ──────────── Transpose ──Attention ── Transpose ── y            k ──Attention(c, permutations) ── y
 *   v ──────────── Transpose ──┘                                      v ──┘
 *
 * Attention reads its operands and writes its result in permuted order, and has its own scale. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

#include <string.h>

static const char *const perm_names[4] = {"q_perm", "k_perm", "v_perm", "y_perm"};

prony_status prn_attention_write(prn_rewriter *r, prn_node_def *node, const prn_attention *attention,
                                 const uint32_t *inputs, uint32_t input_count, const prn_pattern *pattern)
{
    size_t count = (size_t)attention->rank;
    prn_attr attributes[7] = {{.name = "scale", .type = PRN_ATTR_FLOAT, .f = (float)attention->scale},
                              {.name = "fill", .type = PRN_ATTR_FLOAT, .f = attention->fill},
                              {.name = "kept", .type = PRN_ATTR_INT, .i = attention->kept}};
    for (int k = 0; k < 4; k++) {
        int64_t *perm = prn_bump_alloc(&r->program->pool, count, sizeof *perm);
        if (!perm) return prn_no_memory(r->error);
        memcpy(perm, attention->perm[k], count * sizeof *perm);
        attributes[k + 3] = (prn_attr){.name = perm_names[k], .type = PRN_ATTR_INTS, .ints = perm, .count = count};
    }
    return prn_rewrite_become(r, node, "Attention", attributes, 7, inputs, input_count, pattern);
}

static void read_attention(const prn_node_def *node, prn_attention *out)
{
    out->scale = prn_node_float(node, "scale", 1.0);
    out->fill = (float)prn_node_float(node, "fill", 0.0);
    out->kept = prn_node_int(node, "kept", 1);
    for (int k = 0; k < 4; k++) {
        const prn_attr *attr = prn_attr_find(node->info.attributes, perm_names[k]);
        out->rank = (int)attr->count;
        memcpy(out->perm[k], attr->ints, attr->count * sizeof *attr->ints);
    }
}

/* true: prony's Attention; ai.onnx has another operator of this name. */
static bool widen_attention_is_ours(const prn_node_def *node)
{
    return strcmp(node->info.domain, "prony") == 0;
}

/* y = Transpose(Attention) */
static prony_status widen_result(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n], *before = prn_rewrite_inner(r, node->inputs[0], "Attention");
    if (!before || !widen_attention_is_ours(before) || before->input_count > 4) return PRONY_OK;
    prn_attention attention, widened;
    read_attention(before, &attention);
    widened = attention;
    int64_t perm[PRONY_MAX_RANK];
    prn_rewrite_permutation(r, node, perm);
    for (int i = 0; i < attention.rank; i++) widened.perm[3][i] = attention.perm[3][perm[i]];
    if (widened.perm[3][attention.rank - 1] != attention.rank - 1) return PRONY_OK;
    PRN_TRY(prn_attention_write(r, before, &widened, before->inputs, before->input_count, NULL));
    return prn_rewrite_take_over(r, before, n);
}

/* Absorbs the producer of this operand, if it is a Transpose or (not for v) a scale. */
static bool widen_operand(prn_rewriter *r, uint32_t *value, int operand, prn_attention *attention, prn_pattern *pattern)
{
    prn_node_def *transpose = prn_rewrite_inner(r, *value, "Transpose");
    if (transpose) {
        int64_t before[PRONY_MAX_RANK], after[PRONY_MAX_RANK];
        prn_rewrite_permutation(r, transpose, before);
        memcpy(after, attention->perm[operand], sizeof after);
        for (int i = 0; i < attention->rank; i++) attention->perm[operand][i] = before[after[i]];
        *value = transpose->inputs[0];
        return prn_pattern_add(pattern, transpose);
    }
    prn_factor_product product = {.constant = 1.0};
    size_t seen = pattern->node_count;
    if (operand == 2 || !prn_rewrite_product_of_value(r, *value, &product, pattern) || pattern->node_count == seen ||
        product.count != 1 || !prn_rewrite_is_f32(r, product.factors[0]) ||
        !prn_rewrite_same_shape(r, product.factors[0], *value) ||
        !prn_rewrite_is_factor(attention->scale * product.constant)) {
        pattern->node_count = seen;
        return false;
    }
    attention->scale *= product.constant;
    *value = product.factors[0];
    return true;
}

prony_status prn_rewrite_widen_attention(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if (prn_node_is(node, "Transpose")) return widen_result(r, n);
    if (!prn_node_is(node, "Attention") || !widen_attention_is_ours(node) || node->input_count > 4) return PRONY_OK;
    prn_attention attention;
    read_attention(node, &attention);
    uint32_t inputs[4] = {PRN_NO_VALUE, PRN_NO_VALUE, PRN_NO_VALUE, PRN_NO_VALUE};
    memcpy(inputs, node->inputs, node->input_count * sizeof *inputs);
    prn_pattern pattern = {.node_count = 0};
    bool widened = false;
    for (int operand = 0; operand < 3; operand++) {
        prn_attention trial = attention;
        if (!widen_operand(r, &inputs[operand], operand, &trial, &pattern)) continue;
        attention = trial;
        widened = true;
    }
    return widened ? prn_attention_write(r, node, &attention, inputs, node->input_count, &pattern) : PRONY_OK;
}
