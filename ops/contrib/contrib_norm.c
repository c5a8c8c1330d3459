/* Normalisation as ONNX Runtime fuses it: SimplifiedLayerNormalization (which it files under ai.onnx) and, of
 * com.microsoft, SkipLayerNormalization, SkipSimplifiedLayerNormalization and EmbedLayerNormalization.
 *
 * All add rows up, then normalise the sum:  y = norm(part + part + … + bias) gamma + beta.  A part says where its row
 * is: the residual's repeat, an embedding's are looked up. Invariant: a row is one task's, its parts are added in
 * order. */
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/copy/indexing.h"
#include "ops/kernels/vector/vec.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_rows.h"

typedef struct norm_params {
    float epsilon;
    int64_t axis, stash_type, mask_index_type;
} norm_params;

enum { MOST_PARTS = 3 };

/* Row r of the sum takes row (index ? index[r mod repeat] : r mod repeat) of `value`. */
typedef struct part {
    const prony_value *value, *index;
    int64_t repeat;
} part;

typedef struct row_sum {
    part parts[MOST_PARTS];
    int part_count;
    const prony_value *bias, *gamma, *beta; /* along the row, or NULL */
    const prony_value *y, *sum, *mean, *inverse;
    int64_t rows, length;
    float epsilon;
    bool rms; /* no mean is taken away */
} row_sum;

static void contrib_norm_add_part(row_sum *s, const prony_value *value, const prony_value *index, int64_t repeat)
{
    if (value) s->parts[s->part_count++] = (part){value, index, repeat};
}

static int64_t part_row(const part *p, int64_t row)
{
    row %= p->repeat;
    return p->index ? prn_index_read(p->index, row) : row;
}

/* ---- kernels */

static double sum_at(const row_sum *s, int64_t row, int64_t i)
{
    double sum = s->bias ? prn_get_f64(s->bias->data, s->bias->dtype, i) : 0.0;
    for (int k = 0; k < s->part_count; k++) {
        const prony_value *value = s->parts[k].value;
        sum += prn_get_f64(value->data, value->dtype, part_row(&s->parts[k], row) * s->length + i);
    }
    return sum;
}

static void contrib_norm_put(const prony_value *to, int64_t at, double x)
{
    if (to) prn_put_f64(to->data, to->dtype, at, x);
}

static void contrib_norm_reference_rows(void *argument, int64_t begin, int64_t end)
{
    const row_sum *s = argument;
    for (int64_t row = begin; row < end; row++) {
        double mean = 0.0, squares = 0.0;
        for (int64_t i = 0; i < s->length && !s->rms && !prn_cancelled_at(i); i++)
            mean += sum_at(s, row, i) / (double)s->length;
        for (int64_t i = 0; i < s->length && !prn_cancelled_at(i); i++) {
            const double deviation = sum_at(s, row, i) - mean;
            squares += deviation * deviation;
        }
        const double inverse = 1.0 / sqrt(squares / (double)s->length + (double)s->epsilon);
        for (int64_t i = 0; i < s->length && !prn_cancelled_at(i); i++) {
            const double sum = sum_at(s, row, i);
            double y = (sum - mean) * inverse;
            if (s->gamma) y *= prn_get_f64(s->gamma->data, s->gamma->dtype, i);
            if (s->beta) y += prn_get_f64(s->beta->data, s->beta->dtype, i);
            contrib_norm_put(s->sum, row * s->length + i, sum);
            contrib_norm_put(s->y, row * s->length + i, y);
        }
        contrib_norm_put(s->mean, row, mean);
        contrib_norm_put(s->inverse, row, inverse);
    }
}

static const float *contrib_norm_floats(const prony_value *value)
{
    return value ? value->data : NULL;
}

/* Rows [begin, end): sums the parts and the bias, in the sum's output or in y, then normalises the row. */
static void contrib_norm_native_rows(void *argument, int64_t begin, int64_t end)
{
    const row_sum *s = argument;
    const prn_vec_table *vec = prn_vec();
    const int64_t n = s->length;
    for (int64_t row = begin; row < end; row++) {
        float *y = (float *)s->y->data + row * n, *sum = s->sum ? (float *)s->sum->data + row * n : y;
        float mean = 0.0f, inverse = 0.0f;
        const float *first = (const float *)s->parts[0].value->data + part_row(&s->parts[0], row) * n;
        for (int k = 1; k < s->part_count; k++) {
            prn_long_vv(PRN_BINARY_ADD, sum, first,
                        (const float *)s->parts[k].value->data + part_row(&s->parts[k], row) * n, n);
            first = sum;
        }
        if (s->bias) {
            prn_long_vv(PRN_BINARY_ADD, sum, first, s->bias->data, n);
            first = sum;
        }
        if (s->sum && first != sum) prn_long_map(PRN_MAP_COPY, sum, first, n, 0.0f, 0.0f);
        if (s->rms && s->inverse)
            inverse = (float)(1.0 / sqrt(vec->sum_squares(first, n) / (double)n + (double)s->epsilon));
        if (s->rms)
            vec->rms_norm(y, first, contrib_norm_floats(s->gamma), n, s->epsilon);
        else
            vec->layer_norm(y, first, contrib_norm_floats(s->gamma), contrib_norm_floats(s->beta), n, s->epsilon, &mean,
                            &inverse);
        if (s->mean) ((float *)s->mean->data)[row] = mean;
        if (s->inverse) ((float *)s->inverse->data)[row] = inverse;
    }
}

/* A row's variant: how its node is read, and what else a run checks or makes. */
typedef struct norm_kind {
    prony_status (*read)(const prony_context *context, row_sum *out);
    prony_status (*begin)(const prony_context *context, const row_sum *s); /* NULL: nothing */
    bool rms;
} norm_kind;

static prony_status contrib_norm_read_node(const prony_context *context, row_sum *out)
{
    return ((const norm_kind *)prn_variant(context))->read(context, out);
}

static prony_status contrib_norm_run_rows(const prony_context *context,
                                          void (*fn)(void *argument, int64_t begin, int64_t end))
{
    const norm_kind *kind = prn_variant(context);
    row_sum s;
    PRN_TRY(kind->read(context, &s));
    if (kind->begin) PRN_TRY(kind->begin(context, &s));
    if (s.length == 0) return PRONY_OK;
    prn_parallel_items(context->threads, s.rows, (s.part_count + 1) * (int64_t)prn_value_bytes(s.y), fn, &s);
    return PRONY_OK;
}

static prony_status contrib_norm_run_native(const prony_context *context)
{
    return contrib_norm_run_rows(context, contrib_norm_native_rows);
}

static prony_status contrib_norm_run_reference(const prony_context *context)
{
    return contrib_norm_run_rows(context, contrib_norm_reference_rows);
}

static prony_status contrib_norm_cost(const prony_context *context, prony_cost *out)
{
    row_sum s;
    PRN_TRY(contrib_norm_read_node(context, &s));
    const uint64_t n = (uint64_t)(s.rows * s.length), rows = n ? (uint64_t)s.rows : 0;
    const uint64_t added = (uint64_t)s.part_count - 1 + (s.bias != NULL);
    const uint64_t affine = (uint64_t)(s.gamma != NULL) + (uint64_t)(s.beta != NULL);
    prn_cost_fact(out, "rows", s.rows);
    prn_cost_fact(out, "axis_length", s.length);
    prn_cost_fact(out, "affine", s.gamma != NULL);
    prn_cost_fact(out, "bias", s.beta != NULL);
    if (affine == 2) out->madds += n;
    /* The first input may be one of indices; what is computed on never is. */
    out->flops += n * ((s.rms ? 3 : 5) + affine + added) + 2 * rows;
    out->special += n + (s.rms ? 2 : 3) * rows;
    return PRONY_OK;
}

/* ---- reading nodes */

static prony_status check_vector(const prony_context *context, size_t input, int64_t length)
{
    const prony_value *value = prn_input(context, input);
    char text[PRN_SHAPE_TEXT_BYTES];
    if (!value) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, PRN_TYPES_FLOAT));
    if (prony_shape_numel(&value->shape) == length) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %lld elements", input,
                      prn_value_text(value, text), (long long)length);
}

/* Sum and normalisation of input 0 from `axis` on. */
static prony_status contrib_norm_begin_rows(const prony_context *context, int64_t axis, row_sum *out)
{
    const prony_value *x = context->inputs[0];
    *out = (row_sum){0};
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, 0, 1, PRONY_MAX_RANK));
    if (!prn_axis_normalize(&axis, x->shape.rank))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis,
                          x->shape.rank);
    *out = (row_sum){.y = context->outputs[0],
                     .rows = prn_shape_count(&x->shape, 0, (int)axis),
                     .length = prn_shape_count(&x->shape, (int)axis, x->shape.rank),
                     .epsilon = ((const norm_params *)context->params)->epsilon};
    contrib_norm_add_part(out, x, NULL, out->rows ? out->rows : 1);
    return PRONY_OK;
}

static prony_status read_simplified(const prony_context *context, row_sum *out)
{
    PRN_TRY(contrib_norm_begin_rows(context, ((const norm_params *)context->params)->axis, out));
    out->rms = true;
    out->gamma = context->inputs[1];
    out->inverse = prn_output(context, 1);
    return check_vector(context, 1, out->length);
}

/* input, skip, gamma, beta (not simplified), bias; y, mean, inverse deviation, sum. */
static prony_status read_skip(const prony_context *context, row_sum *out)
{
    const bool rms = ((const norm_kind *)prn_variant(context))->rms;
    char text[PRN_SHAPE_TEXT_BYTES];
    const prony_value *skip = context->inputs[1];
    PRN_TRY(contrib_norm_begin_rows(context, -1, out));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(context->inputs[0]->dtype)));
    for (size_t i = 2; i < context->input_count; i++) PRN_TRY(check_vector(context, i, out->length));
    const int64_t elements = prony_shape_numel(&skip->shape), rows = out->length > 0 ? elements / out->length : 0;
    const bool fits = skip->shape.rank > 0 && skip->shape.dim[skip->shape.rank - 1] == out->length &&
                      (rows > 0 ? out->rows % rows == 0 : out->rows * out->length == 0);
    if (!fits)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input 1 is %s, wanted rows of %lld that repeat in %lld",
                          prn_value_text(skip, text), (long long)out->length, (long long)out->rows);
    contrib_norm_add_part(out, skip, NULL, rows > 0 ? rows : 1);
    out->rms = rms;
    out->gamma = context->inputs[2];
    out->beta = rms ? NULL : prn_input(context, 3);
    out->bias = prn_input(context, rms ? 3 : 4);
    out->mean = prn_output(context, 1);
    out->inverse = prn_output(context, 2);
    out->sum = prn_output(context, 3);
    return PRONY_OK;
}

/* input_ids, segment_ids, word, position, segment embeddings, gamma, beta, mask, position_ids. */
enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_WORDS, GAMMA, BETA, MASK, POSITION_IDS };

static prony_status check_ids(const prony_context *context, size_t input, bool may_be_one_row)
{
    char text[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
    const prony_value *ids = prn_input(context, input);
    const prony_shape *shape = &context->inputs[IDS]->shape;
    if (!ids) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64)));
    PRN_TRY(prn_check_rank(context, input, 2, 2));
    if (ids->shape.dim[1] == shape->dim[1] &&
        (ids->shape.dim[0] == shape->dim[0] || (may_be_one_row && ids->shape.dim[0] == 1)))
        return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted shape %s", input,
                      prn_value_text(ids, text), prn_shape_text(shape, wanted));
}

static prony_status check_table(const prony_context *context, size_t input, int64_t length, int64_t rows)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    const prony_value *table = prn_input(context, input);
    if (!table) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, input, 2, 2));
    if (table->shape.dim[1] == length && table->shape.dim[0] >= rows) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted at least %lld rows of %lld", input,
                      prn_value_text(table, text), (long long)rows, (long long)length);
}

/* EmbedLayerNormalization as a sum of table rows: words, positions and segments, each with its ids. Ids are checked
 * when they are read. */
static prony_status read_embed(const prony_context *context, row_sum *out)
{
    static const size_t required[] = {IDS, WORDS, POSITIONS, GAMMA, BETA};
    *out = (row_sum){0};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (!prn_input(context, required[i]))
            return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", required[i]);
    }
    const prony_value *ids = context->inputs[IDS], *words = context->inputs[WORDS];
    const prony_value *position_ids = prn_input(context, POSITION_IDS), *segments = prn_input(context, SEGMENTS);
    PRN_TRY(check_ids(context, IDS, false));
    PRN_TRY(check_ids(context, SEGMENTS, false));
    PRN_TRY(check_ids(context, POSITION_IDS, true));
    PRN_TRY(check_ids(context, MASK, false));
    PRN_TRY(prn_check_rank(context, WORDS, 2, 2));
    if (!segments != !prn_input(context, SEGMENT_WORDS))
        return prony_fail(context, PRONY_INVALID_MODEL, "segment_ids and segment_embedding must be given together");
    *out = (row_sum){.y = context->outputs[0],
                     .sum = prn_output(context, 2),
                     .rows = prony_shape_numel(&ids->shape),
                     .length = words->shape.dim[1],
                     .gamma = context->inputs[GAMMA],
                     .beta = context->inputs[BETA],
                     .epsilon = ((const norm_params *)context->params)->epsilon};
    PRN_TRY(check_table(context, WORDS, out->length, 0));
    PRN_TRY(check_table(context, POSITIONS, out->length, position_ids ? 0 : ids->shape.dim[1]));
    PRN_TRY(check_table(context, SEGMENT_WORDS, out->length, 0));
    PRN_TRY(check_vector(context, GAMMA, out->length));
    PRN_TRY(check_vector(context, BETA, out->length));
    const int64_t rows = out->rows > 0 ? out->rows : 1, columns = ids->shape.dim[1] > 0 ? ids->shape.dim[1] : 1;
    contrib_norm_add_part(out, words, ids, rows);
    contrib_norm_add_part(out, context->inputs[POSITIONS], position_ids,
                          position_ids && position_ids->shape.dim[0] != 1 ? rows : columns);
    if (segments) contrib_norm_add_part(out, context->inputs[SEGMENT_WORDS], segments, rows);
    return PRONY_OK;
}

/* ---- OpenCL: all but EmbedLayerNormalization */

#ifdef PRN_HAVE_OPENCL
static int contrib_norm_input_of(const prony_context *context, const prony_value *value)
{
    for (size_t i = 0; i < context->input_count; i++)
        if (value && context->inputs[i] == value) return (int)i;
    return PRN_OPENCL_NONE;
}

static int contrib_norm_output_of(const prony_context *context, const prony_value *value)
{
    for (size_t k = 0; k < context->output_count; k++)
        if (value && context->outputs[k] == value) return (int)k;
    return PRN_OPENCL_NONE;
}

static prony_status contrib_norm_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    row_sum s;
    PRN_TRY(contrib_norm_read_node(context, &s));
    return prn_opencl_norm_prepare(
        context, out,
        &(prn_opencl_norm){.length = s.length,
                           .run = 1,
                           .period = s.length,
                           .skip_rows = s.part_count > 1 ? s.parts[1].repeat : 0,
                           .epsilon = s.epsilon,
                           .rms = s.rms,
                           .skip = s.part_count > 1 ? 1 : PRN_OPENCL_NONE,
                           .added = contrib_norm_input_of(context, s.bias),
                           .scale = contrib_norm_input_of(context, s.gamma),
                           .bias = contrib_norm_input_of(context, s.beta),
                           .mean_output = s.rms ? PRN_OPENCL_NONE : contrib_norm_output_of(context, s.mean),
                           .inverse_output = contrib_norm_output_of(context, s.inverse),
                           .sum_output = contrib_norm_output_of(context, s.sum)});
}

/* The mean of a norm without one is 0. */
static bool contrib_norm_opencl_supported(const prony_context *context)
{
    row_sum s;
    return contrib_norm_read_node(context, &s) == PRONY_OK && !(s.rms && s.mean) && prn_opencl_rows_supported(context);
}
#endif

/* ---- shapes */

/* y like input 0; statistics with extent 1 from `axis` on; the sum like y. */
static prony_status infer_rows(const prony_context *context)
{
    row_sum s;
    PRN_TRY(contrib_norm_read_node(context, &s));
    const prony_value *x = context->inputs[0];
    prony_shape reduced = x->shape;
    int64_t count = 1;
    for (int d = reduced.rank - 1; d >= 0 && count < s.length; d--) {
        count *= reduced.dim[d];
        reduced.dim[d] = 1;
    }
    if (s.length == 1) reduced.dim[reduced.rank - 1] = 1;
    prn_set_output(context, 0, x->dtype, &x->shape);
    for (size_t k = 1; k < 3; k++) prn_set_output(context, k, PRONY_FLOAT32, &reduced);
    prn_set_output(context, 3, x->dtype, &x->shape);
    return PRONY_OK;
}

static prony_status infer_embed(const prony_context *context)
{
    row_sum s;
    PRN_TRY(read_embed(context, &s));
    const prony_shape *ids = &context->inputs[IDS]->shape;
    const prony_shape shape = {3, {ids->dim[0], ids->dim[1], s.length}};
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the output is too large");
    prn_set_output(context, 0, context->inputs[WORDS]->dtype, &shape);
    prn_set_output(context, 1, PRONY_INT32, &(prony_shape){1, {ids->dim[0]}});
    prn_set_output(context, 2, context->inputs[WORDS]->dtype, &shape);
    return PRONY_OK;
}

/* ---- EmbedLayerNormalization: indices within their tables, and how many words of a row the mask leaves */

static prony_status check_indices(const prony_context *context, const row_sum *s)
{
    for (int k = 0; k < s->part_count; k++) {
        const part *p = &s->parts[k];
        const int64_t dim = p->value->shape.dim[0];
        for (int64_t i = 0; p->index && i < prony_shape_numel(&p->index->shape); i++) {
            const int64_t at = prn_index_read(p->index, i);
            if (at < 0 || at >= dim)
                return prony_fail(context, PRONY_OUT_OF_RANGE, "index %lld of an embedding of %lld rows", (long long)at,
                                  (long long)dim);
        }
    }
    return PRONY_OK;
}

static void count_mask(const prony_context *context)
{
    const prony_value *mask = prn_input(context, MASK), *out = prn_output(context, 1);
    const prony_shape *ids = &context->inputs[IDS]->shape;
    for (int64_t b = 0; out && b < ids->dim[0]; b++) {
        int32_t count = 0;
        for (int64_t t = 0; mask && t < ids->dim[1]; t++) count += prn_index_read(mask, b * ids->dim[1] + t) == 1;
        ((int32_t *)out->data)[b] = count;
    }
}

static prony_status begin_embed(const prony_context *context, const row_sum *s)
{
    PRN_TRY(check_indices(context, s));
    count_mask(context);
    return PRONY_OK;
}

/* ---- rows */

static const prn_param simplified_params[] = {
    PRN_FLOAT(norm_params, epsilon, 1e-5f), PRN_INT(norm_params, axis, -1), PRN_INT(norm_params, stash_type, 1), {0}};
static const prn_param skip_params[] = {PRN_FLOAT(norm_params, epsilon, 1e-12f), {0}};
static const prn_param embed_params[] = {
    PRN_FLOAT(norm_params, epsilon, 1e-12f), PRN_INT(norm_params, mask_index_type, 1), {0}};

// clang-format off
static const prn_kernel simplified_kernels[] = {
    PRN_OPENCL_ROW("simplified_norm_f32_opencl", PRN_TYPE_F32, contrib_norm_opencl_supported, contrib_norm_opencl_prepare)
    {.name = "simplified_norm_f32_native", .backend = "native", .float_types = PRN_TYPE_F32, .run = contrib_norm_run_native},
    {.name = "simplified_norm_reference", .backend = "reference", .run = contrib_norm_run_reference},
    {0}};
static const prn_kernel skip_kernels[] = {
    PRN_OPENCL_ROW("skip_norm_f32_opencl", PRN_TYPE_F32, contrib_norm_opencl_supported, contrib_norm_opencl_prepare)
    {.name = "skip_norm_f32_native", .backend = "native", .float_types = PRN_TYPE_F32, .run = contrib_norm_run_native},
    {.name = "skip_norm_reference", .backend = "reference", .run = contrib_norm_run_reference},
    {0}};
static const prn_kernel skip_simplified_kernels[] = {
    PRN_OPENCL_ROW("skip_simplified_norm_f32_opencl", PRN_TYPE_F32, contrib_norm_opencl_supported, contrib_norm_opencl_prepare)
    {.name = "skip_simplified_norm_f32_native", .backend = "native", .float_types = PRN_TYPE_F32, .run = contrib_norm_run_native},
    {.name = "skip_simplified_norm_reference", .backend = "reference", .run = contrib_norm_run_reference},
    {0}};
// clang-format on
static const prn_kernel embed_kernels[] = {
    {.name = "embed_norm_f32_native", .backend = "native", .float_types = PRN_TYPE_F32, .run = contrib_norm_run_native},
    {.name = "embed_norm_reference", .backend = "reference", .run = contrib_norm_run_reference},
    {0}};

// clang-format off
const prn_op prn_ops_contrib_norm[] = {
    {.name = "SimplifiedLayerNormalization", .since_opset = 1, .inputs = {2, 2}, .outputs = {1, 2},
     .params = simplified_params, .params_bytes = sizeof(norm_params),
     .variant = &(const norm_kind){read_simplified, NULL, true},
     .infer = infer_rows, .cost = contrib_norm_cost, .cost_text = "4 n + 2 r; special n + 2 r", .kernels = simplified_kernels},
    {.name = "SkipLayerNormalization", .domain = "com.microsoft", .since_opset = 1, .inputs = {3, 5},
     .outputs = {1, 4},
     .params = skip_params, .params_bytes = sizeof(norm_params), .variant = &(const norm_kind){read_skip, NULL, false},
     .infer = infer_rows, .cost = contrib_norm_cost,
     .cost_text = "n per sum; then 5 n + 2 r, + n with gamma, + n with beta; madds n if both; special n + 3 r",
     .kernels = skip_kernels},
    {.name = "SkipSimplifiedLayerNormalization", .domain = "com.microsoft", .since_opset = 1, .inputs = {3, 4},
     .outputs = {1, 4},
     .params = skip_params, .params_bytes = sizeof(norm_params),
     .variant = &(const norm_kind){read_skip, NULL, true},
     .infer = infer_rows, .cost = contrib_norm_cost, .cost_text = "n per sum; then 4 n + 2 r; special n + 2 r",
     .kernels = skip_simplified_kernels},
    {.name = "EmbedLayerNormalization", .domain = "com.microsoft", .since_opset = 1, .inputs = {1, 9},
     .outputs = {1, 3},
     .params = embed_params, .params_bytes = sizeof(norm_params),
     .variant = &(const norm_kind){read_embed, begin_embed, false},
     .infer = infer_embed, .cost = contrib_norm_cost,
     .cost_text = "n per sum; then 5 n + 2 r, + n with gamma, + n with beta; madds n if both; special n + 3 r",
     .kernels = embed_kernels},
    {0}};
// clang-format on
