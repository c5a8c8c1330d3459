/*   x ── Conv(W, b) ── Mul(s) ── y          x ── Conv(sW, sb) ── y
 *   x ── Conv(W, b) ── Add(t) ── y          x ── Conv(W, b + t) ── y
 *   x ── MatMul(W) ── Add(t) ── y           x ── MatMul(W, t) ── y
 *
 * Also for Sub, Div, ConvTranspose and Gemm. The constant has one element, or one per output channel. A Transpose
 * between the two stays; it only moves the channel axis. */
#include "engine/rewrites/pass.h"

#include <string.h>

typedef struct scale_shift {
    uint32_t x;
    uint32_t constant;
    const float *data; /* its data, readable while it is pinned */
    int axis;          /* of the output along which the constant varies; -1: one element */
    int64_t count;     /* elements of the constant */
    char kind;         /* '*' and '/': x by the constant; '+' and '-': x and the constant; 'r': the constant minus x */
} scale_shift;

/* The axis of `whole` along which a constant of this shape varies. */
static bool varying_axis(const prony_shape *shape, const prony_shape *whole, scale_shift *out)
{
    out->axis = -1;
    out->count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] == 1) continue;
        if (out->axis >= 0) return false;
        out->axis = whole->rank - shape->rank + i;
        out->count = shape->dim[i];
    }
    return true;
}

static bool fold_scale_shift_read_node(const prn_rewriter *r, const prn_node_def *node, scale_shift *out)
{
    if (node->input_count != 2 || node->info.opset < 7) return false;
    static const char *const names[] = {"Mul", "Div", "Add", "Sub"};
    size_t k = 0;
    while (k < 4 && !prn_node_is(node, names[k])) k++;
    if (k == 4) return false;
    const prony_shape *shape;
    int constant = prn_rewrite_constant(r, node->inputs[1], &out->data, &shape) ? 1 : 0;
    if (constant == 0 && (k == 1 || !prn_rewrite_constant(r, node->inputs[0], &out->data, &shape))) return false;
    out->x = node->inputs[1 - constant];
    out->constant = node->inputs[constant];
    out->kind = k == 3 && constant == 0 ? 'r' : "*/+-"[k];
    const prony_shape *whole = &r->program->values[node->outputs[0]]->info.shape;
    return prn_rewrite_is_f32(r, out->x) && prn_rewrite_same_shape(r, out->x, node->outputs[0]) &&
           prn_rewrite_used_once(r, out->x) && varying_axis(shape, whole, out);
}

static void fold_scale_shift_fill(const scale_shift *s, int64_t channels, double *scale, double *shift)
{
    for (int64_t c = 0; c < channels; c++) {
        double v = (double)s->data[s->count == 1 ? 0 : c];
        scale[c] = s->kind == '*' ? v : s->kind == '/' ? 1.0 / v : s->kind == 'r' ? -1.0 : 1.0;
        shift[c] = s->kind == '-' ? -v : v;
    }
}

/* Folds node `n` into the contraction before it, seen through a Transpose. The constant has one element, or varies
 * along the channel axis alone. */
prony_status prn_rewrite_fold_scale_shift(prn_rewriter *r, uint32_t n)
{
    scale_shift s;
    if (!fold_scale_shift_read_node(r, r->program->nodes[n], &s)) return PRONY_OK;
    prn_node_def *last = prn_rewrite_producer(r, s.x), *before = last;
    int axis = s.axis;
    if (last && prn_node_is(last, "Transpose") && prn_rewrite_used_once(r, last->inputs[0])) {
        int64_t perm[PRONY_MAX_RANK];
        prn_rewrite_permutation(r, last, perm);
        if (axis >= 0) axis = (int)perm[axis];
        before = prn_rewrite_producer(r, last->inputs[0]);
    }
    prn_contraction contraction;
    if (!before || !prn_contraction_read(r, before, &contraction)) return PRONY_OK;
    if (axis >= 0 && (axis != contraction.axis || s.count != contraction.channels)) return PRONY_OK;
    PRN_TRY(prn_program_hold(r->program, s.constant, r->error));
    double *scale = prn_calloc((size_t)contraction.channels, 2 * sizeof *scale);
    if (!scale) return prn_no_memory(r->error);
    fold_scale_shift_fill(&s, contraction.channels, scale, scale + contraction.channels);
    bool scales = s.kind == '*' || s.kind == '/' || s.kind == 'r', shifts = s.kind != '*' && s.kind != '/', done;
    prony_status status = prn_contraction_fold(r, &contraction, scales ? scale : NULL,
                                               shifts ? scale + contraction.channels : NULL, &done);
    prn_free(scale);
    if (status != PRONY_OK || !done) return status;
    if (scales) prn_rewrite_mark_removed(r, r->program->nodes[n]); /* a shift is still executed, as the bias */
    PRN_TRY(prn_rewrite_absorb(r, before, r->program->nodes[n]));
    return prn_rewrite_take_place(r, last, n);
}
