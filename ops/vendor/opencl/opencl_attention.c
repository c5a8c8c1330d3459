/* Implements opencl_attention.h. */
#include "ops/vendor/opencl/opencl_attention.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_launch.h"

/* LOCAL_FLOATS: 32 KiB, the least that OpenCL devices have; the tiles follow from it, not from the device. */
enum { GROUP = 128, ACROSS = 8, ROWS = GROUP / ACROSS, MOST_KEYS = 32, LEAST_KEYS = 8, LOCAL_FLOATS = 8192 };

/* As attention.cl has it. */
typedef struct attend {
    cl_int heads, shared, rows, keys;
    cl_int q[4], k[4], v[4], y[3], mask[4];
    cl_int mask_keys, kept, causal;
    cl_float scale, fill, cap, alone;
} attend;

static int64_t tile_floats(const prn_attend *at, int64_t keys)
{
    const int64_t longest = at->depth + 1 > at->width ? at->depth + 1 : at->width;
    return ROWS * (at->depth + 1) + keys * longest + ROWS * (keys + 1);
}

/* Keys of a tile; 0: a row of Q, K or V is too long. */
static int64_t tile_keys(const prn_attend *at)
{
    for (int64_t keys = MOST_KEYS; keys >= LEAST_KEYS; keys /= 2)
        if (at->depth < LOCAL_FLOATS && at->width < LOCAL_FLOATS && tile_floats(at, keys) <= LOCAL_FLOATS) return keys;
    return 0;
}

bool prn_opencl_attend_supported(const prony_context *context, const prn_attend *at)
{
    for (size_t i = 0; i < 3; i++)
        if (context->inputs[i]->dtype != PRONY_FLOAT32) return false;
    return prn_opencl_takes(context, false) && at->keys > 0 && tile_keys(at) > 0 &&
           prn_opencl_group_fits(context, GROUP, LOCAL_FLOATS * sizeof(float));
}

static void copy_strides(cl_int *to, const int64_t *from, int count)
{
    for (int d = 0; d < count; d++) to[d] = (cl_int)from[d];
}

prony_status prn_opencl_attend_prepare(const prony_context *context, const prn_opencl_attend *problem,
                                       prn_prepared *out)
{
    static const char *const masks[] = {[PRN_OPENCL_NO_MASK] = "NO_MASK",
                                        [PRN_OPENCL_MASK_ADDED] = "MASK",
                                        [PRN_OPENCL_MASK_CHOOSES] = "CHOICE",
                                        [PRN_OPENCL_MASK_LEAVES] = "CHOICE_ADDED"};
    const prn_attend *at = problem->at;
    attend p = {.heads = (cl_int)at->heads,
                .shared = (cl_int)(at->heads / at->key_heads),
                .rows = (cl_int)at->rows,
                .keys = (cl_int)at->keys,
                .mask_keys = (cl_int)problem->mask_keys,
                .kept = at->kept,
                .causal = problem->causal,
                .scale = at->scale,
                .fill = at->fill,
                .cap = problem->cap,
                .alone = problem->alone};
    copy_strides(p.q, at->q.stride, 4);
    copy_strides(p.k, at->k.stride, 4);
    copy_strides(p.v, at->v.stride, 4);
    copy_strides(p.y, at->y_stride, 3);
    copy_strides(p.mask, problem->mask_stride, 4);
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define DEPTH %d\n#define WIDTH %d\n#define KEYS %d\n#define %s\n", (int)at->depth,
                      (int)at->width, (int)tile_keys(at), masks[problem->mask]);
    prn_opencl_launch(&b, &prn_opencl_attention, &defines, "attend_rows");
    for (size_t i = 0; i < 3; i++) prn_opencl_input(&b, i, 0);
    if (problem->mask != PRN_OPENCL_NO_MASK) prn_opencl_input(&b, 3, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_work(&b, (size_t)(at->rows + ROWS - 1) / ROWS * GROUP, (size_t)(at->batch * at->heads), 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}
#endif
