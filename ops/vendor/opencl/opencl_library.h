/* OpenCL's functions, loaded when a device is first asked for: a session without one never loads a driver. Any vendor's
 * library serves, through the loader libOpenCL.so.1. */
#ifndef PRN_OPS_VENDOR_OPENCL_LIBRARY_H
#define PRN_OPS_VENDOR_OPENCL_LIBRARY_H

#include "base/status.h"

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#define PRN_OPENCL_FUNCTIONS(X)                                                                                        \
    X(clGetPlatformIDs)                                                                                                \
    X(clGetPlatformInfo)                                                                                               \
    X(clGetDeviceIDs)                                                                                                  \
    X(clGetDeviceInfo)                                                                                                 \
    X(clCreateContext)                                                                                                 \
    X(clReleaseContext)                                                                                                \
    X(clCreateCommandQueue)                                                                                            \
    X(clReleaseCommandQueue)                                                                                           \
    X(clCreateBuffer)                                                                                                  \
    X(clRetainMemObject)                                                                                               \
    X(clReleaseMemObject)                                                                                              \
    X(clCreateProgramWithSource)                                                                                       \
    X(clCreateProgramWithBinary)                                                                                       \
    X(clGetProgramInfo)                                                                                                \
    X(clBuildProgram)                                                                                                  \
    X(clGetProgramBuildInfo)                                                                                           \
    X(clReleaseProgram)                                                                                                \
    X(clCreateKernel)                                                                                                  \
    X(clReleaseKernel)                                                                                                 \
    X(clSetKernelArg)                                                                                                  \
    X(clEnqueueNDRangeKernel)                                                                                          \
    X(clEnqueueReadBuffer)                                                                                             \
    X(clEnqueueWriteBuffer)                                                                                            \
    X(clEnqueueReadBufferRect)                                                                                         \
    X(clEnqueueWriteBufferRect)                                                                                        \
    X(clFinish)                                                                                                        \
    X(clFlush)                                                                                                         \
    X(clWaitForEvents)                                                                                                 \
    X(clGetEventProfilingInfo)                                                                                         \
    X(clReleaseEvent)

#define X(function) __typeof__(function) *function;
typedef struct prn_opencl_functions {
    PRN_OPENCL_FUNCTIONS(X)
} prn_opencl_functions;
#undef X
extern prn_opencl_functions prn_opencl;

/* Loads the library once. NULL: it is there; else why it is not, static. Thread-safe. */
const char *prn_opencl_load(void);

/* Tests: the n-th call from now on of those that can fail (PRN_CL, PRN_CL_NEW) is refused, as if the device were lost;
 * 0: none. prn_opencl_failed: one was. */
void prn_opencl_fail_at(uint64_t n);
bool prn_opencl_failed(void);
bool prn_opencl_refuses(void);

/* A call that returns a code, and one that makes an object and writes its code into `code`, a cl_int variable. */
#define PRN_CL(function, ...) (prn_opencl_refuses() ? CL_OUT_OF_RESOURCES : prn_opencl.function(__VA_ARGS__))
#define PRN_CL_NEW(code, function, ...)                                                                                \
    (prn_opencl_refuses() ? ((code) = CL_OUT_OF_RESOURCES, NULL) : prn_opencl.function(__VA_ARGS__, &(code)))

/* OpenCL's name of a code: "CL_OUT_OF_RESOURCES". */
const char *prn_opencl_code(cl_int code);
/* PRONY_OK for CL_SUCCESS; else PRONY_OUT_OF_MEMORY or PRONY_IO_ERROR with a message of the device, `what` failed, and
 * the code. */
PRN_MUST_USE prony_status prn_opencl_status(cl_int code, const char *device, const char *what, prony_error *error);

#endif
