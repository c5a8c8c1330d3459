/* Kernels on an OpenCL device, as families bind them: a row for each, which asks for the plan's device in `supported`.
 * A build without OpenCL has none of the rows. Shapes, attributes and post-operations are the operator's; all elements
 * are plain, and results depend neither on the queue nor on the run. */
#ifndef PRN_OPS_VENDOR_OPENCL_OPENCL_H
#define PRN_OPS_VENDOR_OPENCL_OPENCL_H

#include "ops/op.h"

#ifdef PRN_HAVE_OPENCL
extern const prn_memory_space prn_opencl_space;

prony_status prn_opencl_run(const prony_context *context);
void prn_opencl_release(void *state);

/* `types` is a mask of PRN_TYPE; further members of prn_kernel may follow. Not for fp32-strict: another order of sums. */
#define PRN_OPENCL_ROW(NAME, TYPES, SUPPORTED, PREPARE, ...)                                                           \
    PRN_OPENCL_ROW_RUN(NAME, TYPES, SUPPORTED, PREPARE, prn_opencl_run, __VA_ARGS__)
/* The same with a function of its own that runs the launches. */
#define PRN_OPENCL_ROW_RUN(NAME, TYPES, SUPPORTED, PREPARE, RUN, ...)                                                  \
    {.name = NAME,                                                                                                     \
     .backend = "opencl",                                                                                              \
     .types = TYPES,                                                                                                   \
     .precisions = ~PRN_PRECISION(FP32_STRICT),                                                                        \
     .supported = SUPPORTED,                                                                                           \
     .prepare = PREPARE,                                                                                               \
     .run = RUN,                                                                                                       \
     .release = prn_opencl_release,                                                                                    \
     .memory_space = &prn_opencl_space,                                                                                \
     __VA_ARGS__},
#else
#define PRN_OPENCL_ROW(...)
#define PRN_OPENCL_ROW_RUN(...)
#endif

#endif
