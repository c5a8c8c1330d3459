/* Implements opencl_pool.h. */
#include "ops/vendor/opencl/opencl_pool.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_gemm.h"
#include "ops/vendor/opencl/opencl_launch.h"

enum { GROUP = 64 }; /* work items */

/* As window.cl has it. */
typedef struct window {
    cl_int in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], plane;
} window;

bool prn_opencl_pool_supported(const prony_context *context, const prn_window *from)
{
    return prn_opencl_window_fits(from) && prn_opencl_takes(context, true);
}

/* One work item computes one element of the result. Codes of 8 bits begin at the lowest one of their type, so a window
 * without elements gives that. */
prony_status prn_opencl_pool_prepare(const prony_context *context, const prn_window *from, const prn_opencl_pool *pool,
                                     prn_prepared *out)
{
    const int64_t count = prony_shape_numel(&context->outputs[0]->shape);
    window p = {.plane = (cl_int)prn_window_volume(from->in)};
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        p.in[a] = (cl_int)from->in[a];
        p.out[a] = (cl_int)from->out[a];
        p.kernel[a] = (cl_int)from->kernel[a];
        p.stride[a] = (cl_int)from->stride[a];
        p.dilation[a] = (cl_int)from->dilation[a];
        p.pad[a] = (cl_int)from->pad_begin[a];
    }
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    const bool indices = prn_output(context, 1);
    prn_opencl_define(&defines, "#define POOL %s\n", pool->average ? "AVERAGE" : "MAXIMUM");
    if (context->inputs[0]->dtype == PRONY_INT8)
        prn_opencl_define(&defines, "#define POOLED char\n#define LOWEST -128\n");
    if (context->inputs[0]->dtype == PRONY_UINT8)
        prn_opencl_define(&defines, "#define POOLED uchar\n#define LOWEST 0\n");
    if (indices) prn_opencl_define(&defines, "#define INDICES %d\n", pool->column_major ? 2 : 1);
    prn_opencl_launch(&b, &prn_opencl_window, &defines, "pool");
    prn_opencl_input(&b, 0, 0);
    prn_opencl_output(&b, 0, 0);
    if (indices) prn_opencl_output(&b, 1, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_int(&b, count);
    prn_opencl_int(&b, pool->padding);
    for (int a = 0; a < PRN_WINDOW_AXES; a++) prn_opencl_int(&b, from->pad_end[a]);
    prn_opencl_work(&b, (size_t)count, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}
#endif
