/* Einsum: the sum over every index that the output does not name of the product of the inputs.
 *
 * The equation becomes an index space: output axes first, then the summed ones, with one stride per operand and axis
 * (repeated letters add their strides up, an axis that an operand lacks or broadcasts has stride 0). Two-operand
 * contractions whose axes fall into rows, columns, inner and batch ones run as a batched matrix product, more operands as
 * several (einsum_pairs.c); the reference walks the whole space. A kernel's prepare reads the equation; its runs have what came of it. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "ops/loops/copy_nd.h"
#include "ops/math/einsum.h"
#include "ops/loops/widen.h"

#include <string.h>

enum { MAX_OPERANDS = PRN_EINSUM_OPERANDS, MAX_AXES = PRN_EINSUM_AXES, LETTERS = 52 };
/* Axis names: letters, then the ellipsis' dimensions counted from its last one. */
enum { ELLIPSIS = LETTERS, MAX_LABELS = LETTERS + PRONY_MAX_RANK };

typedef struct einsum_params {
    const char *equation;
} einsum_params;

typedef prn_einsum_space space;

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

static prony_status refuse(const prony_context *context, const char *what)
{
    const einsum_params *params = context->params;
    return prony_fail(context, PRONY_INVALID_MODEL, "equation '%s' %s", params->equation, what);
}

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
        if (!is_dots && label_of(*c) < 0) return refuse(context, "has a character that is no letter");
        if (is_dots && dots) return refuse(context, "has a term with two ellipses");
        const int room = PRONY_MAX_RANK - out->count, wanted = is_dots ? ellipsis : 1;
        if (wanted < 0 || wanted > room) return refuse(context, "does not fit its operands' ranks");
        if (is_dots) {
            for (int d = ellipsis - 1; d >= 0; d--) out->labels[out->count++] = ELLIPSIS + d;
            *text += 2;
            dots = true;
        } else {
            out->labels[out->count++] = label_of(*c);
        }
    }
    if (rank >= 0 && out->count != rank) return refuse(context, "does not fit its operands' ranks");
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
            const einsum_params *params = context->params;
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
        if (out->count == PRONY_MAX_RANK) return refuse(context, "has too many output dimensions");
        out->labels[out->count++] = label;
    }
    return PRONY_OK;
}

static prony_status parse_equation(const prony_context *context, equation *eq)
{
    const einsum_params *params = context->params;
    const char *text = params->equation;
    *eq = (equation){0};
    if (context->input_count > MAX_OPERANDS) return refuse(context, "has more operands than are supported");
    for (size_t i = 0; i < context->input_count; i++) {
        const prony_shape *shape = &context->inputs[i]->shape;
        PRN_TRY(parse_term(context, &text, shape->rank, -1, &eq->inputs[i]));
        PRN_TRY(note_extents(context, eq, &eq->inputs[i], shape));
        const bool last = i + 1 == context->input_count;
        if (last ? *text == ',' : *text != ',') return refuse(context, "does not have one term per input");
        text += !last;
    }
    if (!*text) return implied_output(context, eq);
    if (strncmp(text, "->", 2) != 0) return refuse(context, "has a '-' that is no arrow");
    text += 2;
    PRN_TRY(parse_term(context, &text, -1, eq->ellipsis_rank, &eq->output));
    if (*text) return refuse(context, "has more after its output");
    for (int d = 0; d < eq->output.count; d++) {
        const int label = eq->output.labels[d];
        if (eq->uses[label] == 0) return refuse(context, "has an output index that no input has");
        for (int e = 0; e < d; e++) {
            if (eq->output.labels[e] == label) return refuse(context, "repeats an output index");
        }
    }
    return PRONY_OK;
}

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
    if (!prn_product_countable(&y)) return refuse(context, "has too large an output");
    prn_shape_strides(&y, out->output_stride);
    for (int label = 0; label < MAX_LABELS; label++) {
        if (eq.uses[label] == 0 || axis_of[label] >= 0) continue;
        if (out->axes == MAX_AXES) return refuse(context, "has more indices than are supported");
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
    return PRONY_OK;
}

static prony_status infer(const prony_context *context)
{
    for (size_t i = 0; i < context->input_count; i++) {
        if (!context->inputs[i]) return refuse(context, "has an input that is not there");
        if (!prn_product_countable(&context->inputs[i]->shape)) return refuse(context, "has too large an input");
        PRN_TRY(prn_check_type(context, i, i == 0 ? PRN_PRODUCT_TYPES : PRN_TYPE(context->inputs[0]->dtype)));
    }
    space s;
    PRN_TRY(prn_einsum_space_of(context, &s));
    const prony_shape y = prn_shape_make(s.output_axes, s.extent);
    prn_set_output(context, 0, s.dtype, &y);
    return PRONY_OK;
}

static prony_status cost(const prony_context *context, prony_cost *out)
{
    space s;
    PRN_TRY(prn_einsum_space_of(context, &s));
    uint64_t volume = 1, outputs = 1;
    for (int axis = 0; axis < s.axes; axis++) {
        if (!prn_mul_u64(&volume, volume, (uint64_t)s.extent[axis]))
            return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of operations does not fit 64 bits");
        if (axis < s.output_axes) outputs *= (uint64_t)s.extent[axis];
    }
    const uint64_t products = (uint64_t)s.operands - 1;
    prn_cost_fact(out, "output_elements", (int64_t)outputs);
    prn_cost_fact(out, "index_volume", (int64_t)volume);
    if (s.operands == 1) return prn_cost_elementwise(context, out, volume - (volume ? outputs : 0), 1, 0);
    if (s.axes == s.output_axes) return prn_cost_elementwise(context, out, volume, products, 0);
    uint64_t macs;
    if (!prn_mul_u64(&macs, volume, products))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    return prn_cost_macs(context, out, macs, prn_dtype_is_integer(s.dtype));
}

/* ---- as a matrix product */

/* A run of axes that one extent and one stride per array describe. */
typedef struct run {
    int64_t extent, a, b, c;
} run;

/* Joins `axis` to the run before it where every array steps evenly over both; `run` holds the outer axes. */
static bool join(run *run, const space *s, int a, int b, int axis)
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
static bool product_of(const space *s, int a, int b, prn_product *out)
{
    run columns = {1, 0, 0, 0}, rows = columns, inner = columns;
    int column_axis = s->output_axes;
    while (column_axis > 0 && s->stride[a][column_axis - 1] == 0) column_axis--;
    for (int axis = column_axis; axis < s->output_axes; axis++) {
        if (!join(&columns, s, a, b, axis)) return false;
    }
    for (int axis = s->output_axes; axis < s->axes; axis++) {
        if (!join(&inner, s, a, b, axis)) return false;
    }
    int row_axis = -1;
    for (int axis = 0; axis < column_axis; axis++) {
        if (s->stride[b][axis] == 0 && s->extent[axis] > 1) row_axis = axis;
    }
    if (row_axis >= 0) join(&rows, s, a, b, row_axis);
    *out = prn_product_make(s->dtype, rows.extent, columns.extent, inner.extent);
    for (int axis = 0; axis < column_axis; axis++) {
        if (axis == row_axis || s->extent[axis] == 1) continue;
        if (out->batch_rank == PRONY_MAX_RANK) return false;
        prn_product_batch(out, s->extent[axis], s->stride[a][axis], s->stride[b][axis], s->output_stride[axis]);
    }
    out->a_input = a;
    out->b_input = b;
    out->a_row = rows.a;
    out->a_col = inner.a;
    out->b_row = inner.b;
    out->b_col = columns.b;
    out->c_row = rows.extent > 1 ? rows.c : columns.extent;
    if (out->n == 1) out->b_col = 1;
    prn_product_fold(out);
    return true;
}

bool prn_einsum_product(const prn_einsum_space *s, prn_product *out)
{
    prn_product other;
    const bool first = product_of(s, 0, 1, out), second = product_of(s, 1, 0, &other);
    if (!first && !second) return false;
    if (!first || (second && other.n > out->n)) *out = other;
    return true;
}

static bool describe(const prony_context *context, prn_product *out)
{
    space s;
    if (prn_einsum_space_of(context, &s) != PRONY_OK || s.operands != 2) return false;
    for (int axis = 0; axis < s.axes; axis++) {
        if (s.extent[axis] == 0) return false;
    }
    if (!prn_einsum_product(&s, out)) return false;
    prn_product_place(context, out);
    return true;
}

static bool native_usable(const prony_context *context)
{
    prn_product product;
    return describe(context, &product);
}

static prony_status native_prepare(const prony_context *context, prn_prepared *out)
{
    prn_product product;
    if (!describe(context, &product)) return refuse(context, "is no matrix product");
    return prn_product_native_prepare(context, &product, out);
}

/* ---- one operand, no sum: a copy */

static bool copy_usable(const prony_context *context)
{
    space s;
    return prn_einsum_space_of(context, &s) == PRONY_OK && s.operands == 1 && s.axes == s.output_axes;
}

static prony_status prepare_copy(const prony_context *context, prn_prepared *out)
{
    space s;
    prn_copy copy = {0};
    PRN_TRY(prn_einsum_space_of(context, &s));
    for (int axis = 0; axis < s.axes; axis++)
        prn_copy_axis(&copy, s.extent[axis], s.stride[0][axis], s.output_stride[axis]);
    return prn_prepared_keep(context, &copy, sizeof copy, out);
}

static prony_status run_copy(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prn_copy_native(context->threads, prn_copy_width(in->dtype), context->state, in->data, context->outputs[0]->data);
    return PRONY_OK;
}

/* ---- reference */

enum { MANY_TERMS = 64 };

typedef struct reference_job {
    const space *s;
    const prony_value *const *in;
    void *y;
} reference_job;

/* The sum, of type P, for the output element at which the operands start. */
#define SUM(P, DTYPE, name, storage, work, load, store)                                                                \
    static void sum_##name(const reference_job *job, const int64_t *start, int64_t at)                                 \
    {                                                                                                                  \
        const space *s = job->s;                                                                                       \
        int64_t index[MAX_AXES] = {0}, offset[MAX_OPERANDS];                                                           \
        memcpy(offset, start, sizeof offset);                                                                          \
        P sum = 0;                                                                                                     \
        int64_t terms = 0;                                                                                             \
        for (bool more = true; more;) {                                                                                \
            if (prn_stopped_at(terms++)) return;                                                                       \
            P product = (P)load(((const storage *)job->in[0]->data)[offset[0]]);                                       \
            for (int i = 1; i < s->operands; i++) product *= (P)load(((const storage *)job->in[i]->data)[offset[i]]);  \
            sum += product;                                                                                            \
            more = advance(s, index, offset);                                                                          \
        }                                                                                                              \
        ((storage *)job->y)[at] = store((work)sum);                                                                    \
    }

/* Next point of the summed axes; false after the last. */
static bool advance(const space *s, int64_t *index, int64_t *offset)
{
    for (int axis = s->axes - 1; axis >= s->output_axes; axis--) {
        const int64_t steps = ++index[axis] < s->extent[axis] ? 1 : 1 - s->extent[axis];
        for (int i = 0; i < s->operands; i++) offset[i] += steps * s->stride[i][axis];
        if (steps == 1) return true;
        index[axis] = 0;
    }
    return false;
}

PRN_FLOAT_TYPES(SUM, double)
PRN_INTEGER_TYPES(SUM, uint64_t)

static void (*sum_of(prony_dtype dtype))(const reference_job *, const int64_t *, int64_t)
{
    switch (dtype) {
#define SUM_CASE(P, DTYPE, name, storage, work, load, store)                                                           \
    case PRONY_##DTYPE:                                                                                                \
        return sum_##name;
        PRN_NUMBER_TYPES(SUM_CASE, )
    default:
        return NULL;
    }
}

static void reference_range(void *argument, int64_t begin, int64_t end)
{
    const reference_job *job = argument;
    const space *s = job->s;
    void (*sum)(const reference_job *, const int64_t *, int64_t) = sum_of(s->dtype);
    int64_t terms = 1;
    for (int axis = s->output_axes; axis < s->axes && terms < MANY_TERMS; axis++) terms *= s->extent[axis];
    for (int64_t at = begin; at < end && !(terms < MANY_TERMS ? prn_stopped_at(at) : prn_stopped()); at++) {
        int64_t start[MAX_OPERANDS] = {0}, rest = at;
        for (int axis = s->output_axes - 1; axis >= 0; axis--) {
            for (int i = 0; i < s->operands; i++) start[i] += rest % s->extent[axis] * s->stride[i][axis];
            rest /= s->extent[axis];
        }
        sum(job, start, at);
    }
}

static prony_status prepare_reference(const prony_context *context, prn_prepared *out)
{
    space s;
    PRN_TRY(prn_einsum_space_of(context, &s));
    return prn_prepared_keep(context, &s, sizeof s, out);
}

static prony_status run_reference(const prony_context *context)
{
    const space *s = context->state;
    const prony_value *y = context->outputs[0];
    const int64_t outputs = prony_shape_numel(&y->shape);
    for (int axis = s->output_axes; axis < s->axes; axis++) {
        if (s->extent[axis] > 0) continue;
        prn_stop_clear(y->data, prn_value_bytes(y)); /* an empty sum */
        return PRONY_OK;
    }
    reference_job job = {s, context->inputs, y->data};
    prn_parallel_range(context->threads, outputs, 256, reference_range, &job);
    return PRONY_OK;
}

static const prn_param params[] = {
    {.name = "equation", .type = PRN_PARAM_STRING, .offset = offsetof(einsum_params, equation), .required = true}, {0}};

static const prn_kernel native = {
    .usable = native_usable, .prepare = native_prepare, .run = prn_product_native_run, .release = prn_free};
PRN_WIDENED(half, &native)

static const prn_kernel kernels[] = {
    {.name = "einsum_f32_native", .backend = "native", .types = PRN_TYPE_F32, .usable = native_usable,
     .prepare = native_prepare, .run = prn_product_native_run, .release = prn_free},
    {.name = "einsum_f32_pairs", .backend = "native", .types = PRN_TYPE_F32, .usable = prn_einsum_pairs_usable,
     .facts = prn_einsum_pairs_facts, .prepare = prn_einsum_pairs_prepare, .run = prn_einsum_pairs_run, .release = prn_free},
    PRN_WIDENED_ROW(half, "einsum_half_native"),
    {.name = "einsum_copy", .backend = "native", .types = PRN_PRODUCT_TYPES, .usable = copy_usable,
     .prepare = prepare_copy, .run = run_copy, .release = prn_free},
    {.name = "einsum_ref", .backend = "reference", .types = PRN_PRODUCT_TYPES, .prepare = prepare_reference,
     .run = run_reference, .release = prn_free},
    {0}};

const prn_op prn_ops_einsum[] = {
    {.name = "Einsum", .since_opset = 12, .inputs = {1, -1}, .flags = PRN_OP_INT_WEIGHTS,
     .params = params, .params_bytes = sizeof(einsum_params), .infer = infer, .cost = cost,
     .cost_text = "v extents of all indices multiplied, o operands: MACs v (o - 1) where an index is summed, else "
                  "FLOPs v (o - 1); one operand: v - n additions",
     .kernels = kernels},
    {0}};
