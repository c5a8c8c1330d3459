/* RotaryEmbedding of ai.onnx and of com.microsoft: turns pairs of elements of each head by angles that depend on the
 * position in the sequence; the cosines and sines come as inputs.
 *
 * X is [B, S, H D] or [B, H, S, D]; the caches are [positions, D'/2] with position ids, [B, S, D'/2] without.
 * com.microsoft's always has position ids, of which one alone is that of the first row, and finds the heads' size from
 * the caches where nothing is said. Invariant: a position is checked before it is used. */
#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/copy/rotate.h"
#include "ops/kernels/vector/widen.h"
#include "ops/vendor/opencl/opencl_attention.h"

typedef struct rotary_params {
    int64_t interleaved, num_heads, rotary_embedding_dim, is_packed_batching;
    float scale;
} rotary_params;

/* A row's variant: which input is what, and whose rules hold. */
typedef struct rotary_kind {
    size_t cosines, sines, positions;
    bool contrib;
} rotary_kind;

enum { X };

typedef struct rotary {
    const prony_value *x, *cosines, *sines, *positions;
    prony_value *y;
    int64_t batch, rows, heads, size, turned; /* B, S, H, D, D' */
    bool packed, interleaved;
    bool first_only; /* one position, of each sequence's first row */
    const rotary_kind *kind;
} rotary;

static prony_status rotary_mismatch(const prony_context *context, size_t input)
{
    char text[PRN_SHAPE_TEXT_BYTES], x[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, which does not fit %s", input,
                      prn_value_text(context->inputs[input], text), prn_value_text(context->inputs[X], x));
}

/* Of a row [H D]. */
static int64_t packed_heads(const rotary *job, const rotary_params *params)
{
    const prony_shape *cache = &job->cosines->shape;
    if (!job->packed || params->num_heads != 0 || !job->kind->contrib) return params->num_heads;
    return cache->rank == 2 && cache->dim[1] > 0 ? job->x->shape.dim[2] / (2 * cache->dim[1]) : 0;
}

static prony_status check_contrib(const prony_context *context)
{
    const rotary_params *params = context->params;
    if (params->scale != 1.0f)
        return prony_fail(context, PRONY_UNSUPPORTED, "scale is %g: only 1 is supported", (double)params->scale);
    if (params->rotary_embedding_dim <= 0 || params->num_heads > 0) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "rotary_embedding_dim is %lld, but num_heads is missing",
                      (long long)params->rotary_embedding_dim);
}

static void rotary_take_operands(const prony_context *context, rotary *job)
{
    const rotary_kind *kind = prn_variant(context);
    job->x = context->inputs[X];
    job->cosines = context->inputs[kind->cosines];
    job->sines = context->inputs[kind->sines];
    job->positions = prn_input(context, kind->positions);
    job->y = context->outputs[0];
}

static prony_status rotary_read_node(const prony_context *context, rotary *job)
{
    const rotary_params *params = context->params;
    const rotary_kind *kind = prn_variant(context);
    const prony_shape *shape = &context->inputs[X]->shape;
    *job = (rotary){
        .kind = kind, .batch = shape->dim[0], .packed = shape->rank == 3, .interleaved = params->interleaved != 0};
    rotary_take_operands(context, job);
    const int64_t heads = packed_heads(job, params);
    if (job->packed && (heads < 1 || shape->dim[2] % heads != 0))
        return prony_fail(context, PRONY_INVALID_MODEL, "num_heads %lld does not divide %lld", (long long)heads,
                          (long long)shape->dim[2]);
    job->heads = job->packed ? heads : shape->dim[1];
    job->rows = shape->dim[job->packed ? 1 : 2];
    job->size = job->packed ? shape->dim[2] / heads : shape->dim[3];
    job->first_only = kind->contrib && prony_shape_numel(&job->positions->shape) == 1 && job->positions->shape.rank < 2;
    job->turned = params->rotary_embedding_dim > 0 ? params->rotary_embedding_dim : job->size;
    if (params->rotary_embedding_dim < 0 || job->turned > job->size || job->turned % 2 != 0)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "%lld of %lld elements of a head cannot be turned in pairs",
                          (long long)job->turned, (long long)job->size);
    return PRONY_OK;
}

static prony_status check_cache(const prony_context *context, const rotary *job, size_t input)
{
    const prony_shape *shape = &context->inputs[input]->shape;
    const prony_shape whole = {3, {job->batch, job->rows, job->turned / 2}};
    const bool fits = job->positions ? shape->rank == 2 && shape->dim[1] == job->turned / 2 &&
                                           shape->dim[0] == job->cosines->shape.dim[0]
                                     : prn_shape_equal(shape, &whole);
    return fits ? PRONY_OK : rotary_mismatch(context, input);
}

static prony_status rotary_infer(const prony_context *context)
{
    rotary job;
    const rotary_kind *kind = prn_variant(context);
    for (size_t i = 0; i < 4; i++) {
        if (!prn_input(context, i) && (i < 3 || kind->contrib))
            return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
    }
    PRN_TRY(prn_check_type(context, X, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, X, 3, 4));
    PRN_TRY(prn_check_type(context, kind->cosines, PRN_TYPE(context->inputs[X]->dtype)));
    PRN_TRY(prn_check_type(context, kind->sines, PRN_TYPE(context->inputs[X]->dtype)));
    PRN_TRY(prn_check_type(context, kind->positions, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(rotary_read_node(context, &job));
    PRN_TRY(check_cache(context, &job, kind->cosines));
    PRN_TRY(check_cache(context, &job, kind->sines));
    const prony_shape ids = {2, {job.batch, job.rows}};
    if (job.positions && !job.first_only && !prn_shape_equal(&job.positions->shape, &ids))
        return rotary_mismatch(context, kind->positions);
    return prn_infer_same(context);
}

/* Two products and a sum for each of the elements turned. */
static prony_status rotary_cost(const prony_context *context, prony_cost *cost)
{
    rotary job;
    PRN_TRY(rotary_read_node(context, &job));
    return prn_cost_elementwise(context, cost, (uint64_t)(job.batch * job.rows * job.heads * job.turned), 3, 0);
}

/* Row of the caches for row s of sequence b. */
static int64_t rotary_place_of(const rotary *job, int64_t b, int64_t s)
{
    if (!job->positions) return b * job->rows + s;
    const int64_t *ids = job->positions->data;
    return job->first_only ? ids[0] + s : ids[b * job->rows + s];
}

/* Head row i, counted by sequence, row and head: where it begins in X, and its angles in the caches. */
static int64_t rotary_row_of(const rotary *job, int64_t i, int64_t *angle)
{
    const int64_t h = i % job->heads, s = i / job->heads % job->rows, b = i / job->heads / job->rows;
    *angle = rotary_place_of(job, b, s) * (job->turned / 2);
    return (job->packed ? i : (b * job->heads + h) * job->rows + s) * job->size;
}

static void turn_rows_f32(void *argument, int64_t begin, int64_t end)
{
    const rotary *job = argument;
    const float *cosines = job->cosines->data, *sines = job->sines->data;
    const int64_t half = job->turned / 2;
    const prn_pairs pairs = prn_pairs_of(half, job->interleaved);
    for (int64_t i = begin, angle; i < end; i++) {
        const int64_t row = rotary_row_of(job, i, &angle);
        const float *x = (const float *)job->x->data + row;
        float *y = (float *)job->y->data + row;
        prn_rotate_f32(y, x, cosines + angle, sines + angle, half, pairs);
        if (y != x && job->size > job->turned)
            memcpy(y + job->turned, x + job->turned, (size_t)(job->size - job->turned) * sizeof *y);
    }
}

/* Heads of no more than PRN_BLOCK elements, by way of float32. */
static void turn_rows_half(void *argument, int64_t begin, int64_t end)
{
    const rotary *job = argument;
    const prony_dtype dtype = job->x->dtype;
    const int64_t half = job->turned / 2;
    float row[PRN_BLOCK], cosine[PRN_BLOCK / 2], sine[PRN_BLOCK / 2];
    for (int64_t i = begin, angle; i < end; i++) {
        const int64_t at = rotary_row_of(job, i, &angle);
        prn_convert(row, PRONY_FLOAT32, prn_block_at(job->x->data, dtype, at), dtype, job->size);
        prn_convert(cosine, PRONY_FLOAT32, prn_block_at(job->cosines->data, dtype, angle), dtype, half);
        prn_convert(sine, PRONY_FLOAT32, prn_block_at(job->sines->data, dtype, angle), dtype, half);
        prn_rotate_f32(row, row, cosine, sine, half, prn_pairs_of(half, job->interleaved));
        prn_convert((char *)job->y->data + prony_dtype_bytes(dtype, at), dtype, row, PRONY_FLOAT32, job->size);
    }
}

static void rotary_rotate_rows(void *argument, int64_t begin, int64_t end)
{
    const rotary *job = argument;
    const prony_dtype dtype = job->x->dtype;
    const int64_t half = job->turned / 2, step = job->interleaved ? 2 : 1, apart = job->interleaved ? 1 : half;
    for (int64_t i = begin, angle; i < end; i++) {
        const int64_t row = rotary_row_of(job, i, &angle);
        for (int64_t k = 0; k < half; k++) {
            const double cosine = prn_get_f64(job->cosines->data, dtype, angle + k);
            const double sine = prn_get_f64(job->sines->data, dtype, angle + k);
            const double first = prn_get_f64(job->x->data, dtype, row + k * step);
            const double second = prn_get_f64(job->x->data, dtype, row + k * step + apart);
            prn_put_f64(job->y->data, dtype, row + k * step, cosine * first - sine * second);
            prn_put_f64(job->y->data, dtype, row + k * step + apart, sine * first + cosine * second);
        }
        const size_t rest = prony_dtype_bytes(dtype, job->size - job->turned);
        const size_t at = prony_dtype_bytes(dtype, row + job->turned);
        if (job->y->data != job->x->data && rest > 0)
            memcpy((char *)job->y->data + at, (const char *)job->x->data + at, rest);
    }
}

static prony_status rotary_prepare(const prony_context *context, prn_prepared *out)
{
    rotary job;
    PRN_TRY(rotary_read_node(context, &job));
    return prn_prepared_keep(context, &job, sizeof job, out);
}

/* Positions that a run reads. */
static int64_t rotary_ids(const rotary *job)
{
    return !job->positions ? 0 : job->first_only ? 1 : job->batch * job->rows;
}

static prony_status rotary_check_ids(const prony_context *context, const rotary *job)
{
    const int64_t known = job->cosines->shape.dim[0], ids = rotary_ids(job);
    for (int64_t i = 0; i < ids; i++) {
        const int64_t id = ((const int64_t *)job->positions->data)[i];
        if (id >= 0 && id < known && (!job->first_only || job->rows <= known - id)) continue;
        return prony_fail(context, PRONY_OUT_OF_RANGE, "position %lld at %lld is outside of %lld cached ones",
                          (long long)id, (long long)i, (long long)known);
    }
    return PRONY_OK;
}

static prony_status rotary_run_rows(const prony_context *context,
                                    void (*fn)(void *argument, int64_t begin, int64_t end))
{
    rotary job = *(const rotary *)context->state;
    rotary_take_operands(context, &job);
    PRN_TRY(rotary_check_ids(context, &job));
    prn_parallel_items(context->threads, job.batch * job.rows * job.heads, 16 * prony_shape_numel(&job.x->shape), fn,
                       &job);
    return PRONY_OK;
}

static prony_status rotary_run_native(const prony_context *context)
{
    return rotary_run_rows(context, turn_rows_f32);
}

static bool rotary_half_supported(const prony_context *context)
{
    rotary job;
    return rotary_read_node(context, &job) == PRONY_OK && job.size <= PRN_BLOCK;
}

static prony_status rotary_run_half(const prony_context *context)
{
    return rotary_run_rows(context, turn_rows_half);
}

static prony_status rotary_run(const prony_context *context)
{
    return rotary_run_rows(context, rotary_rotate_rows);
}

#ifdef PRN_HAVE_OPENCL
static bool rotary_opencl_supported(const prony_context *context)
{
    rotary job;
    const rotary_kind *kind = prn_variant(context);
    return rotary_read_node(context, &job) == PRONY_OK && job.turned > 0 &&
           prn_opencl_rotate_supported(context, kind->cosines, kind->sines);
}

static prony_status rotary_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    rotary job;
    PRN_TRY(rotary_read_node(context, &job));
    const prn_opencl_rotation rotation = {
        .angles = {job.turned / 2, job.interleaved, job.kind->cosines, job.kind->sines},
        .rows = job.rows,
        .heads = job.heads,
        .size = job.size,
        .packed = job.packed,
        .ids = rotary_ids(&job),
        .first_only = job.first_only};
    return prn_opencl_rotate_prepare(context, &rotation, out);
}

/* Positions are the host's, which checks them. */
static prony_status rotary_opencl_run(const prony_context *context)
{
    rotary job;
    PRN_TRY(rotary_read_node(context, &job));
    PRN_TRY(rotary_check_ids(context, &job));
    return prn_opencl_rotate_run(context, job.positions ? job.positions->data : NULL);
}
#endif

static const prn_param params[] = {PRN_INT(rotary_params, interleaved, 0),
                                   PRN_INT(rotary_params, num_heads, 0),
                                   PRN_INT(rotary_params, rotary_embedding_dim, 0),
                                   {0}};

static const prn_param contrib_params[] = {
    PRN_INT(rotary_params, interleaved, 0),          PRN_INT(rotary_params, num_heads, 0),
    PRN_INT(rotary_params, rotary_embedding_dim, 0), PRN_INT(rotary_params, is_packed_batching, 0),
    PRN_FLOAT(rotary_params, scale, 1.0f),           {0}};

// clang-format off
#define ROTARY_KERNELS(POSITIONS)                                                                                      \
    PRN_OPENCL_ROW_RUN("rotary_f32_opencl", PRN_TYPE_F32, rotary_opencl_supported, rotary_opencl_prepare, rotary_opencl_run, .host_inputs = 1 << POSITIONS) \
    {.name = "rotary_f32_native", .backend = "native", .types = PRN_TYPE_F32, .prepare = rotary_prepare, .run = rotary_run_native, \
     .release = prn_free, .inplace = 1}, \
    {.name = "rotary_half_native", .backend = "native", .types = PRN_TYPES_HALF, .supported = rotary_half_supported, .prepare = rotary_prepare, \
     .run = rotary_run_half, .release = prn_free, .inplace = 1}, \
    {.name = "rotary_reference", .backend = "reference", .prepare = rotary_prepare, .run = rotary_run, .release = prn_free, .inplace = 1}, \
    {0}
static const prn_kernel kernels[] = {ROTARY_KERNELS(3)};
static const prn_kernel contrib_kernels[] = {ROTARY_KERNELS(1)};

const prn_op prn_ops_rotary[] = {
    {.name = "RotaryEmbedding", .since_opset = 23, .inputs = {3, 4}, .non_weight_inputs = 0xe,
     .params = params, .params_bytes = sizeof(rotary_params), .variant = &(const rotary_kind){1, 2, 3, false},
     .infer = rotary_infer, .cost = rotary_cost, .cost_text = "3 per element turned", .kernels = kernels},
    {.name = "RotaryEmbedding", .domain = "com.microsoft", .since_opset = 1, .inputs = {4, 4}, .non_weight_inputs = 0xe,
     .params = contrib_params, .params_bytes = sizeof(rotary_params), .check = check_contrib,
     .variant = &(const rotary_kind){2, 3, 1, true},
     .infer = rotary_infer, .cost = rotary_cost, .cost_text = "3 per element turned", .kernels = contrib_kernels},
    {0}};
// clang-format on
