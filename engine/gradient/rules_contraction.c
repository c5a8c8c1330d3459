/* Matrix products and sums of products by their letters. Convolutions are in rules_conv.c. */
#include "engine/gradient/rules.h"

#include <stdio.h>
#include <string.h>

#define X(i) prn_grad_in(g, i)
#define DY prn_grad_of(g, 0)

/* ---- MatMul ---- */

static uint32_t swap_last(prn_gradient *g, uint32_t value)
{
    int64_t perm[PRONY_MAX_RANK];
    const int rank = prn_grad_rank(g, value);
    if (rank < 2) return value;
    for (int d = 0; d < rank; d++) perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    return prn_grad_transpose(g, value, perm, (size_t)rank);
}

static uint32_t with_axis(prn_gradient *g, uint32_t value, int64_t axis)
{
    return prn_grad_2(g, "Unsqueeze", value, prn_grad_indices(g, &axis, 1));
}

/* Rows of one matrix: [-1, extent of the last axis]. */
static uint32_t as_rows(prn_gradient *g, uint32_t value)
{
    const int64_t rest = -1;
    const prn_attr axis = prn_grad_attr_int("axis", 0);
    const uint32_t parts[] = {prn_grad_indices(g, &rest, 1), prn_grad_extent(g, value, -1)};
    return prn_grad_2(g, "Reshape", value, prn_grad_op(g, "Concat", &axis, 1, parts, 2));
}

/* A vector is a row on the left and a column on the right. If many matrices meet one matrix on the right, one product
 * takes all rows. */
PRN_GRADIENT_RULE(matmul)
{
    const int left = prn_grad_rank(g, X(0)), right = prn_grad_rank(g, X(1));
    if (left < 1 || right < 1) return;
    uint32_t a = X(0), b = X(1), dy = DY;
    if (right == 1) b = with_axis(g, b, 1), dy = with_axis(g, dy, -1);
    if (left == 1) a = with_axis(g, a, 0), dy = with_axis(g, dy, -2);
    if (prn_grad_wants(g, 0)) {
        const uint32_t made = prn_grad_2(g, "MatMul", dy, swap_last(g, b));
        prn_grad_give(g, 0, prn_grad_reshape_like(g, prn_grad_unbroadcast(g, made, a), X(0)));
    }
    if (!prn_grad_wants(g, 1)) return;
    uint32_t made;
    if (right <= 2)
        made = prn_grad_2(g, "MatMul", swap_last(g, as_rows(g, a)), as_rows(g, dy));
    else
        made = prn_grad_unbroadcast(g, prn_grad_2(g, "MatMul", swap_last(g, a), dy), b);
    prn_grad_give(g, 1, prn_grad_reshape_like(g, made, X(1)));
}

/* ---- Gemm: alpha op(A) op(B) + beta C ---- */

static uint32_t gemm(prn_gradient *g, uint32_t a, uint32_t b, int64_t trans_a, int64_t trans_b, double alpha)
{
    const prn_attr attrs[] = {prn_grad_attr_int("transA", trans_a), prn_grad_attr_int("transB", trans_b),
                              prn_grad_attr_float("alpha", alpha)};
    return prn_grad_op(g, "Gemm", attrs, 3, (const uint32_t[]){a, b}, 2);
}

PRN_GRADIENT_RULE(gemm)
{
    const int64_t ta = prn_grad_int(g, "transA", 0) != 0, tb = prn_grad_int(g, "transB", 0) != 0;
    const double alpha = prn_grad_float(g, "alpha", 1), beta = prn_grad_float(g, "beta", 1);
    const uint32_t a = X(0), b = X(1), dy = DY;
    if (prn_grad_wants(g, 0)) prn_grad_give(g, 0, ta ? gemm(g, b, dy, tb, 1, alpha) : gemm(g, dy, b, 0, !tb, alpha));
    if (prn_grad_wants(g, 1)) prn_grad_give(g, 1, tb ? gemm(g, dy, a, 1, ta, alpha) : gemm(g, a, dy, !ta, 0, alpha));
    if (prn_grad_wants(g, 2)) {
        const uint32_t scaled = beta == 1.0 ? dy : prn_grad_mul(g, dy, prn_grad_number(g, dy, beta));
        prn_grad_give_summed(g, 2, scaled);
    }
}

/* ---- Einsum ---- */

enum { MOST_TERMS = 16, MOST_LETTERS = 64 };

/* An equation without blanks, taken apart; the last term is the output's. */
typedef struct equation {
    char terms[MOST_TERMS + 1][MOST_LETTERS];
    size_t inputs;
} equation;

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Without an arrow: the letters that occur once, in alphabetical order, after the dots. */
static void implicit_output(equation *e)
{
    char *out = e->terms[e->inputs];
    size_t used = 0;
    for (size_t t = 0; t < e->inputs && !used; t++)
        if (strstr(e->terms[t], "...")) used = (size_t)snprintf(out, MOST_LETTERS, "...");
    for (int c = 'A'; c <= 'z'; c++) {
        size_t times = 0;
        if (!is_letter((char)c)) continue;
        for (size_t t = 0; t < e->inputs; t++)
            for (const char *at = e->terms[t]; *at; at++) times += *at == c;
        if (times == 1 && used + 1 < MOST_LETTERS) out[used++] = (char)c;
    }
    out[used] = 0;
}

static bool einsum_parse(const char *text, equation *e)
{
    size_t term = 0, used = 0;
    bool arrow = false;
    *e = (equation){0};
    for (const char *c = text; *c; c++) {
        if (*c == ' ') continue;
        if (*c == ',' || (*c == '-' && c[1] == '>')) {
            arrow |= *c == '-';
            c += *c == '-';
            if (++term > MOST_TERMS) return false;
            used = 0;
        } else {
            if (used + 1 >= MOST_LETTERS) return false;
            e->terms[term][used++] = *c;
        }
    }
    e->inputs = arrow ? term : term + 1;
    if (e->inputs > MOST_TERMS) return false;
    if (!arrow) implicit_output(e);
    return true;
}

/* true: a letter occurs twice in one term: a diagonal. */
static bool rules_contraction_repeats(const char *term)
{
    for (const char *c = term; *c; c++)
        if (is_letter(*c) && strchr(c + 1, *c)) return true;
    return false;
}

/* true: the other operands of a gradient lack a letter of term i, which was summed over. Then a tensor of ones with
 * that letter is added. */
static bool lacks(const equation *e, size_t i)
{
    for (const char *c = e->terms[i]; *c; c++) {
        bool found = strchr(e->terms[e->inputs], *c) != NULL;
        for (size_t t = 0; t < e->inputs; t++) found |= t != i && strchr(e->terms[t], *c) != NULL;
        if (!found) return true;
    }
    return false;
}

static uint32_t einsum_of(prn_gradient *g, const equation *e, uint32_t i)
{
    char text[(MOST_TERMS + 2) * (MOST_LETTERS + 2)];
    uint32_t inputs[MOST_TERMS + 2];
    size_t count = 0, used = (size_t)snprintf(text, sizeof text, "%s", e->terms[e->inputs]);
    inputs[count++] = DY;
    for (uint32_t t = 0; t < e->inputs; t++) {
        if (t == i) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, ",%s", e->terms[t]);
        inputs[count++] = X(t);
    }
    if (lacks(e, i)) {
        used += (size_t)snprintf(text + used, sizeof text - used, ",%s", e->terms[i]);
        inputs[count++] = prn_grad_filled(g, X(i), 1);
    }
    snprintf(text + used, sizeof text - used, "->%s", e->terms[i]);
    const prn_attr attr = prn_grad_attr_text("equation", text);
    return prn_grad_op(g, "Einsum", &attr, 1, inputs, count);
}

PRN_GRADIENT_RULE(einsum)
{
    equation e;
    if (!einsum_parse(prn_grad_text(g, "equation", ""), &e) || e.inputs != g->node->input_count) {
        prn_grad_refuse(g, "no gradient rule exists for an equation of this length");
        return;
    }
    for (uint32_t i = 0; i < e.inputs; i++) {
        if (!prn_grad_wants(g, i)) continue;
        if (rules_contraction_repeats(e.terms[i])) {
            prn_grad_refuse(g, "no gradient rule exists for a letter that stands twice in one operand, as in '%s'",
                            e.terms[i]);
            return;
        }
        prn_grad_give_summed(g, i, einsum_of(g, &e, i));
    }
}
