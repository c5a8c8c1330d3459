/* An Einsum's equation as a space of indices, and what of it is a matrix product. */
#include "ops/math/einsum.h"

#include <string.h>

enum { MAX_OPERANDS = PRN_EINSUM_OPERANDS, MAX_AXES = PRN_EINSUM_AXES, LETTERS = 52 };
/* Axis names: letters, then the ellipsis' dimensions counted from its last one. */
enum { ELLIPSIS = LETTERS, MAX_LABELS = LETTERS + PRONY_MAX_RANK };

typedef prn_einsum_space space;

prony_status prn_einsum_refuse(const prony_context *context, const char *what)
{
    const prn_einsum_params *params = context->params;
    return prony_fail(context, PRONY_INVALID_MODEL, "equation '%s' %s", params->equation, what);
}

/* The labels of one term, expanded: an ellipsis stands for as many labels as the operand's rank leaves to it. */
typedef struct term {
    int labels[PRONY_MAX_RANK];
    int count;
} term;

typedef struct equation {
    term inputs[MAX_OPERANDS], output;
    int64_t extent[MAX_LABELS]; /* 0 uses: not in the equation */
    int uses[MAX_LABELS];
    int ellipsis_rank;
} equation;

static int label_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    return -1;
}

/* Reads a term up to ',', '-' or the end; `ellipsis` is the number of dimensions that "..." stands for, -1 if it is to
 * be found from `rank`. */
static prony_status parse_term(const prony_context *context, const char **text, int rank, int ellipsis, term *out)
{
    int letters = 0;
    bool dots = false;
    for (const char *c = *text; *c && *c != ',' && *c != '-'; c++) letters += label_of(*c) >= 0;
    if (ellipsis < 0) ellipsis = rank - letters;
    out->count = 0;
    for (; **text && **text != ',' && **text != '-'; (*text)++) {
        const char *c = *text;
        if (*c == ' ') continue;
        const bool is_dots = strncmp(c, "...", 3) == 0;
        if (!is_dots && label_of(*c) < 0) return prn_einsum_refuse(context, "has a character that is not a letter");
        if (is_dots && dots) return prn_einsum_refuse(context, "has a term with two ellipses");
        const int room = PRONY_MAX_RANK - out->count, wanted = is_dots ? ellipsis : 1;
        if (wanted < 0 || wanted > room) return prn_einsum_refuse(context, "does not fit its operands' ranks");
        if (is_dots) {
            for (int d = ellipsis - 1; d >= 0; d--) out->labels[out->count++] = ELLIPSIS + d;
            *text += 2;
            dots = true;
        } else {
            out->labels[out->count++] = label_of(*c);
        }
    }
    if (rank >= 0 && out->count != rank) return prn_einsum_refuse(context, "does not fit its operands' ranks");
    return PRONY_OK;
}

/* Notes the extents of an input's labels; 1 gives way to others, as in broadcasting. */
static prony_status note_extents(const prony_context *context, equation *eq, const term *t, const prony_shape *shape)
{
    for (int d = 0; d < t->count; d++) {
        const int label = t->labels[d];
        int64_t *extent = &eq->extent[label];
        if (label >= ELLIPSIS && label - ELLIPSIS >= eq->ellipsis_rank) eq->ellipsis_rank = label - ELLIPSIS + 1;
        if (eq->uses[label]++ == 0 || *extent == 1) {
            *extent = shape->dim[d];
        } else if (shape->dim[d] != *extent && shape->dim[d] != 1) {
            const prn_einsum_params *params = context->params;
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "equation '%s': one index is both %lld and %lld",
                              params->equation, (long long)*extent, (long long)shape->dim[d]);
        }
    }
    return PRONY_OK;
}

/* Without "->": the ellipsis, then every letter that occurs once, in alphabetical order. */
static prony_status implied_output(const prony_context *context, equation *eq)
{
    term *out = &eq->output;
    for (int d = eq->ellipsis_rank - 1; d >= 0; d--) out->labels[out->count++] = ELLIPSIS + d;
    for (int label = 0; label < LETTERS; label++) {
        if (eq->uses[label] != 1) continue;
        if (out->count == PRONY_MAX_RANK) return prn_einsum_refuse(context, "has too many output dimensions");
        out->labels[out->count++] = label;
    }
    return PRONY_OK;
}

/* Reads one term per input and the output's, explicit or implied; output indices are distinct and each stands in an
 * input. */
static prony_status parse_equation(const prony_context *context, equation *eq)
{
    const prn_einsum_params *params = context->params;
    const char *text = params->equation;
    *eq = (equation){0};
    if (context->input_count > MAX_OPERANDS) return prn_einsum_refuse(context, "has more operands than are supported");
    for (size_t i = 0; i < context->input_count; i++) {
        const prony_shape *shape = &context->inputs[i]->shape;
        PRN_TRY(parse_term(context, &text, shape->rank, -1, &eq->inputs[i]));
        PRN_TRY(note_extents(context, eq, &eq->inputs[i], shape));
        const bool last = i + 1 == context->input_count;
        if (last ? *text == ',' : *text != ',') return prn_einsum_refuse(context, "does not have one term per input");
        text += !last;
    }
    if (!*text) return implied_output(context, eq);
    if (strncmp(text, "->", 2) != 0) return prn_einsum_refuse(context, "has a '-' that is not an arrow");
    text += 2;
    PRN_TRY(parse_term(context, &text, -1, eq->ellipsis_rank, &eq->output));
    if (*text) return prn_einsum_refuse(context, "has text after its output");
    for (int d = 0; d < eq->output.count; d++) {
        const int label = eq->output.labels[d];
        if (eq->uses[label] == 0) return prn_einsum_refuse(context, "has an output index that is in no input");
        for (int e = 0; e < d; e++) {
            if (eq->output.labels[e] == label) return prn_einsum_refuse(context, "repeats an output index");
        }
    }
    return PRONY_OK;
}

/* True if axis `a` is to be outside of `b`: the first operand that has one of them steps further along it. */
static bool is_outer(const space *s, int a, int b)
{
    for (int i = 0; i < s->operands; i++)
        if (s->stride[i][a] != s->stride[i][b]) return s->stride[i][a] > s->stride[i][b];
    return false;
}

static void swap_axes(space *s, int a, int b)
{
    const int64_t extent = s->extent[a];
    s->extent[a] = s->extent[b];
    s->extent[b] = extent;
    for (int i = 0; i < s->operands; i++) {
        const int64_t stride = s->stride[i][a];
        s->stride[i][a] = s->stride[i][b];
        s->stride[i][b] = stride;
    }
}

/* Summed axes as they lie in memory, so that those which follow each other there can be walked as one. */
static void order_sums(space *s)
{
    for (int axis = s->output_axes + 1; axis < s->axes; axis++)
        for (int at = axis; at > s->output_axes && is_outer(s, at, at - 1); at--) swap_axes(s, at, at - 1);
}

/* The loop nest of the equation: output axes first, then summed ones, with each operand's stride per axis. A repeated
 * index adds its strides; an extent of 1 broadcasts. */
prony_status prn_einsum_space_of(const prony_context *context, prn_einsum_space *out)
{
    equation eq;
    int axis_of[MAX_LABELS];
    PRN_TRY(parse_equation(context, &eq));
    memset(out, 0, sizeof *out);
    memset(axis_of, -1, sizeof axis_of);
    out->operands = (int)context->input_count;
    out->dtype = context->inputs[0]->dtype;
    prony_shape y = {.rank = eq.output.count};
    for (int d = 0; d < eq.output.count; d++) {
        y.dim[d] = out->extent[d] = eq.extent[eq.output.labels[d]];
        axis_of[eq.output.labels[d]] = out->axes++;
    }
    out->output_axes = out->axes;
    if (!prn_matmul_countable(&y)) return prn_einsum_refuse(context, "has too large an output");
    prn_shape_strides(&y, out->output_stride);
    for (int label = 0; label < MAX_LABELS; label++) {
        if (eq.uses[label] == 0 || axis_of[label] >= 0) continue;
        if (out->axes == MAX_AXES) return prn_einsum_refuse(context, "has more indices than are supported");
        out->extent[out->axes] = eq.extent[label];
        axis_of[label] = out->axes++;
    }
    for (int i = 0; i < out->operands; i++) {
        int64_t stride[PRONY_MAX_RANK];
        const prony_value *in = context->inputs[i];
        prn_shape_strides(&in->shape, stride);
        for (int d = 0; d < in->shape.rank; d++) {
            const int axis = axis_of[eq.inputs[i].labels[d]];
            if (in->shape.dim[d] == out->extent[axis]) out->stride[i][axis] += stride[d];
        }
    }
    order_sums(out);
    return PRONY_OK;
}

/* ---- as a matrix product */

/* A run of axes that one extent and one stride per array describe. */
typedef struct run {
    int64_t extent, a, b, c;
} run;

/* Joins `axis` to the run before it where every array steps evenly over both; `run` holds the outer axes. */
static bool einsum_space_join(run *run, const space *s, int a, int b, int axis)
{
    const int64_t extent = s->extent[axis];
    const int64_t step[3] = {s->stride[a][axis], s->stride[b][axis], s->output_stride[axis]};
    if (run->extent != 1 && extent != 1 &&
        (run->a != step[0] * extent || run->b != step[1] * extent || run->c != step[2] * extent)) {
        return false;
    }
    if (extent == 1) return true;
    run->extent *= extent;
    run->a = step[0];
    run->b = step[1];
    run->c = step[2];
    return true;
}

/* With `a` giving the rows and `b` the columns. The columns are the output's last axes; of the axes that `a` alone has,
 * the last joined run are the rows, the others batch. false: no such product. */
static bool einsum_space_product_of(const space *s, int a, int b, prn_matmul_desc *out)
{
    run columns = {1, 0, 0, 0}, rows = columns, inner = columns;
    int column_axis = s->output_axes;
    while (column_axis > 0 && s->stride[a][column_axis - 1] == 0) column_axis--;
    for (int axis = column_axis; axis < s->output_axes; axis++) {
        if (!einsum_space_join(&columns, s, a, b, axis)) return false;
    }
    for (int axis = s->output_axes; axis < s->axes; axis++) {
        if (!einsum_space_join(&inner, s, a, b, axis)) return false;
    }
    int row_axis = -1;
    for (int axis = 0; axis < column_axis; axis++) {
        if (s->stride[b][axis] == 0 && s->extent[axis] > 1) row_axis = axis;
    }
    if (row_axis >= 0) einsum_space_join(&rows, s, a, b, row_axis);
    *out = prn_matmul_make(s->dtype, rows.extent, columns.extent, inner.extent);
    for (int axis = 0; axis < column_axis; axis++) {
        if (axis == row_axis || s->extent[axis] == 1) continue;
        if (out->batch_rank == PRONY_MAX_RANK) return false;
        prn_matmul_batch(out, s->extent[axis], s->stride[a][axis], s->stride[b][axis], s->output_stride[axis]);
    }
    out->a_input = a;
    out->b_input = b;
    out->rs_a = rows.a;
    out->cs_a = inner.a;
    out->rs_b = inner.b;
    out->cs_b = columns.b;
    out->rs_c = rows.extent > 1 ? rows.c : columns.extent;
    if (out->n == 1) out->cs_b = 1;
    prn_matmul_fold(out);
    return true;
}

bool prn_einsum_product(const prn_einsum_space *s, prn_matmul_desc *out)
{
    prn_matmul_desc other;
    const bool first = einsum_space_product_of(s, 0, 1, out), second = einsum_space_product_of(s, 1, 0, &other);
    if (!first && !second) return false;
    if (!first || (second && other.n > out->n)) *out = other;
    return true;
}
