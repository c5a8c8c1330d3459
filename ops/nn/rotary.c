/* RotaryEmbedding: turns pairs of elements of each head by angles that depend on the position in the sequence; the
 * cosines and sines come as inputs.
 *
 * X is [B, S, H D] or [B, H, S, D]; the caches are [positions, D'/2] with position ids, [B, S, D'/2] without.
 * Invariant: a position is checked before it is used. */
#include "ops/loops/copy_nd.h"
#include "ops/loops/number.h"

enum { X, COSINES, SINES, POSITIONS };

typedef struct rotary_params {
    int64_t interleaved, num_heads, rotary_embedding_dim;
} rotary_params;

typedef struct rotary {
    const prony_value *x, *cosines, *sines, *positions;
    prony_value *y;
    int64_t batch, rows, heads, size, turned; /* B, S, H, D, D' */
    bool packed, interleaved;
} rotary;

static prony_status mismatch(const prony_context *context, size_t input)
{
    char text[PRN_SHAPE_TEXT_BYTES], x[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, which does not fit %s", input,
                      prn_value_text(context->inputs[input], text), prn_value_text(context->inputs[X], x));
}

static prony_status read_node(const prony_context *context, rotary *job)
{
    const rotary_params *params = context->params;
    const prony_shape *shape = &context->inputs[X]->shape;
    *job = (rotary){.x = context->inputs[X],
                    .cosines = context->inputs[COSINES],
                    .sines = context->inputs[SINES],
                    .positions = prn_input(context, POSITIONS),
                    .y = context->outputs[0],
                    .batch = shape->dim[0],
                    .packed = shape->rank == 3,
                    .interleaved = params->interleaved != 0};
    if (job->packed && (params->num_heads < 1 || shape->dim[2] % params->num_heads != 0))
        return prony_fail(context, PRONY_INVALID_MODEL, "num_heads %lld does not divide %lld",
                          (long long)params->num_heads, (long long)shape->dim[2]);
    job->heads = job->packed ? params->num_heads : shape->dim[1];
    job->rows = shape->dim[job->packed ? 1 : 2];
    job->size = job->packed ? shape->dim[2] / params->num_heads : shape->dim[3];
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
                                           shape->dim[0] == context->inputs[COSINES]->shape.dim[0]
                                     : prn_shape_equal(shape, &whole);
    return fits ? PRONY_OK : mismatch(context, input);
}

static prony_status infer(const prony_context *context)
{
    rotary job;
    PRN_TRY(prn_check_type(context, X, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, X, 3, 4));
    PRN_TRY(prn_check_type(context, COSINES, PRN_TYPE(context->inputs[X]->dtype)));
    PRN_TRY(prn_check_type(context, SINES, PRN_TYPE(context->inputs[X]->dtype)));
    PRN_TRY(prn_check_type(context, POSITIONS, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(read_node(context, &job));
    PRN_TRY(check_cache(context, &job, COSINES));
    PRN_TRY(check_cache(context, &job, SINES));
    const prony_shape ids = {2, {job.batch, job.rows}};
    if (job.positions && !prn_shape_equal(&job.positions->shape, &ids)) return mismatch(context, POSITIONS);
    return prn_infer_same(context);
}

/* Two products and a sum for each of the elements turned. */
static prony_status cost(const prony_context *context, prony_cost *cost)
{
    rotary job;
    PRN_TRY(read_node(context, &job));
    return prn_cost_elementwise(context, cost, (uint64_t)(job.batch * job.rows * job.heads * job.turned), 3, 0);
}

static void turn_rows(void *argument, int64_t begin, int64_t end)
{
    const rotary *job = argument;
    const prony_dtype dtype = job->x->dtype;
    const int64_t half = job->turned / 2, step = job->interleaved ? 2 : 1, apart = job->interleaved ? 1 : half;
    for (int64_t i = begin; i < end; i++) {
        const int64_t h = i % job->heads, s = i / job->heads % job->rows, b = i / job->heads / job->rows;
        const int64_t row = (job->packed ? i : (b * job->heads + h) * job->rows + s) * job->size;
        const int64_t place = b * job->rows + s;
        const int64_t angle = (job->positions ? ((const int64_t *)job->positions->data)[place] : place) * half;
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

static prony_status run(const prony_context *context)
{
    rotary job;
    PRN_TRY(read_node(context, &job));
    const int64_t known = job.cosines->shape.dim[0], ids = job.positions ? job.batch * job.rows : 0;
    for (int64_t i = 0; i < ids; i++) {
        const int64_t id = ((const int64_t *)job.positions->data)[i];
        if (id >= 0 && id < known) continue;
        return prony_fail(context, PRONY_OUT_OF_RANGE, "position %lld at %lld is outside of %lld cached ones",
                          (long long)id, (long long)i, (long long)known);
    }
    prn_parallel_items(context->threads, job.batch * job.rows * job.heads, 16 * prony_shape_numel(&job.x->shape),
                       turn_rows, &job);
    return PRONY_OK;
}

static const prn_param params[] = {PRN_INT(rotary_params, interleaved, 0),
                                   PRN_INT(rotary_params, num_heads, 0),
                                   PRN_INT(rotary_params, rotary_embedding_dim, 0),
                                   {0}};

static const prn_kernel kernels[] = {
    {.name = "rotary_reference", .backend = "reference", .run = run, .inplace = 1}, {0}};

const prn_op prn_ops_rotary[] = {
    {.name = "RotaryEmbedding", .since_opset = 23, .inputs = {3, 4}, .non_weight_inputs = 0xe,
     .params = params, .params_bytes = sizeof(rotary_params),
     .infer = infer, .cost = cost, .cost_text = "3 per element turned", .kernels = kernels},
    {0}};
