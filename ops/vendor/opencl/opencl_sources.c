#include "ops/vendor/opencl/opencl_sources.h"

#ifdef PRN_HAVE_OPENCL
#define SOURCE(name)                                                                                                   \
    extern const char prn_cl_##name[], prn_cl_##name##_end[];                                                          \
    const prn_opencl_source prn_opencl_##name = {prn_cl_##name, prn_cl_##name##_end};
SOURCE(common)
SOURCE(map)
SOURCE(gemm)
SOURCE(window)
SOURCE(rows)
SOURCE(attention)
SOURCE(index)
SOURCE(lowbit)
SOURCE(codes)
SOURCE(quantize)
SOURCE(peaks)
#endif
