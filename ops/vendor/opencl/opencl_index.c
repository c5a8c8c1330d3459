/* Implements opencl_index.h. */
#include "ops/vendor/opencl/opencl_index.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_kv_cache.h"
#include "ops/vendor/opencl/opencl_launch.h"

enum { RANKS = 18, GROUP = 64 };

/* What a step whose table comes with the run keeps. */
typedef struct blocks_state {
    void *table; /* its address on the device */
    size_t count;
    int32_t values[];
} blocks_state;

bool prn_opencl_indexed_supported(const prony_context *context)
{
    return prn_opencl_is_copied(context->inputs[0]) && prn_opencl_takes_inputs(context, 1);
}

int32_t *prn_opencl_blocks_table(const prony_context *context)
{
    return ((blocks_state *)prn_opencl_kept(context->state))->values;
}

prony_status prn_opencl_blocks_run(const prony_context *context)
{
    const blocks_state *kept = prn_opencl_kept(context->state);
    PRN_TRY(prn_opencl_queue_write(context, kept->table, kept->values, kept->count * sizeof *kept->values));
    return prn_opencl_run(context);
}

prony_status prn_opencl_blocks_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_blocks *blocks)
{
    const int64_t total = prony_shape_numel(&context->outputs[0]->shape);
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define GATHER %s\n",
                      prn_copy_width(context->inputs[0]->dtype) == 1 ? "uchar" : "uint");
    prn_opencl_launch(&b, &prn_opencl_index, &defines, "gather");
    prn_opencl_input(&b, 0, 0);
    const size_t bytes = (size_t)blocks->count * sizeof *blocks->table;
    blocks_state *kept = blocks->table ? NULL : prn_opencl_keep(&b, sizeof *kept + bytes);
    void *table = prn_opencl_table(&b, kept ? kept->values : blocks->table, bytes);
    if (kept) *kept = (blocks_state){.table = table, .count = (size_t)blocks->count};
    prn_opencl_output(&b, 0, 0);
    prn_opencl_int(&b, total);
    prn_opencl_int(&b, blocks->count);
    prn_opencl_int(&b, blocks->block);
    prn_opencl_int(&b, blocks->unit);
    prn_opencl_int(&b, blocks->part);
    prn_opencl_work(&b, (size_t)total, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}

bool prn_opencl_scatter_supported(const prony_context *context)
{
    return (context->constant_inputs >> 1 & 1) && prn_opencl_takes_inputs(context, 5);
}

prony_status prn_opencl_scatter_prepare(const prony_context *context, prn_prepared *out, const int32_t *table,
                                        int64_t count, int64_t block)
{
    const int64_t all = prony_shape_numel(&context->outputs[0]->shape), total = count * block;
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 2);
    prn_opencl_define(&defines, "#define UNARY x\n");
    prn_opencl_launch(&b, &prn_opencl_map, &defines, "map");
    prn_opencl_input(&b, 0, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_int(&b, all);
    prn_opencl_float(&b, 0.0f);
    prn_opencl_float(&b, 0.0f);
    prn_opencl_work(&b, (size_t)all, 1, 1, GROUP, 1, 1);
    defines = (opencl_defines){0};
    prn_opencl_define(&defines, "#define SCATTER uint\n");
    prn_opencl_launch(&b, &prn_opencl_index, &defines, "scatter");
    prn_opencl_input(&b, 2, 0);
    prn_opencl_table(&b, table, (size_t)count * sizeof *table);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_int(&b, total);
    prn_opencl_int(&b, block);
    prn_opencl_work(&b, (size_t)total, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}

/* As index.cl has it. */
typedef struct resized {
    cl_int rank, count;
    cl_int extent[RANKS], stride[RANKS], first[RANKS];
} resized;

prony_status prn_opencl_taps_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_taps *taps)
{
    const prony_shape *in = &context->inputs[0]->shape, *y = &context->outputs[0]->shape;
    resized p = {.rank = y->rank, .count = (cl_int)prony_shape_numel(y)};
    int64_t stride[PRONY_MAX_RANK];
    prn_shape_strides(in, stride);
    for (int d = 0; d < y->rank; d++) {
        p.extent[d] = (cl_int)y->dim[d];
        p.stride[d] = (cl_int)stride[d];
        p.first[d] = (cl_int)taps->first[d];
    }
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define TAPS %d\n", taps->taps);
    prn_opencl_launch(&b, &prn_opencl_index, &defines, "resize");
    prn_opencl_input(&b, 0, 0);
    prn_opencl_table(&b, taps->index, (size_t)taps->entries * sizeof *taps->index);
    prn_opencl_table(&b, taps->weight, (size_t)taps->entries * sizeof *taps->weight);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_work(&b, (size_t)p.count, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}
#endif
