/* Implements opencl_library.h. */
#include "ops/op.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

prn_opencl_functions prn_opencl;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char load_reason[200];

#define X(function) #function,
static const char *const function_names[] = {PRN_OPENCL_FUNCTIONS(X)};
#undef X

static void opencl_load(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(load_reason, sizeof load_reason, "libOpenCL.so.1 cannot be loaded (Debian: ocl-icd-libopencl1)");
        return;
    }
    for (size_t i = 0; i < sizeof function_names / sizeof *function_names; i++) {
        void *found = dlsym(library, function_names[i]);
        if (!found) {
            snprintf(load_reason, sizeof load_reason, "libOpenCL.so.1 lacks %s", function_names[i]);
            return;
        }
        memcpy((char *)&prn_opencl + i * sizeof found, &found, sizeof found);
    }
}

const char *prn_opencl_load(void)
{
    pthread_once(&load_once, opencl_load);
    return *load_reason ? load_reason : NULL;
}

/* ---- calls that fail ---- */

static _Atomic uint64_t fail_at;
static _Atomic bool failed;

void prn_opencl_fail_at(uint64_t n)
{
    atomic_store(&failed, false);
    atomic_store(&fail_at, n);
}

bool prn_opencl_failed(void)
{
    return atomic_load(&failed);
}

bool prn_opencl_refuses(void)
{
    if (atomic_load_explicit(&fail_at, memory_order_relaxed) == 0) return false;
    if (atomic_fetch_sub(&fail_at, 1) != 1) return false;
    atomic_store(&failed, true);
    return true;
}

/* Names alone: a driver's own codes, and those of extensions, are unknown here. */
const char *prn_opencl_code(cl_int code)
{
#define CODE(name)                                                                                                     \
    case name:                                                                                                         \
        return #name;
    switch (code) {
        CODE(CL_SUCCESS)
        CODE(CL_DEVICE_NOT_FOUND)
        CODE(CL_DEVICE_NOT_AVAILABLE)
        CODE(CL_COMPILER_NOT_AVAILABLE)
        CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE)
        CODE(CL_OUT_OF_RESOURCES)
        CODE(CL_OUT_OF_HOST_MEMORY)
        CODE(CL_PROFILING_INFO_NOT_AVAILABLE)
        CODE(CL_BUILD_PROGRAM_FAILURE)
        CODE(CL_INVALID_VALUE)
        CODE(CL_INVALID_DEVICE)
        CODE(CL_INVALID_CONTEXT)
        CODE(CL_INVALID_COMMAND_QUEUE)
        CODE(CL_INVALID_MEM_OBJECT)
        CODE(CL_INVALID_BUILD_OPTIONS)
        CODE(CL_INVALID_KERNEL_NAME)
        CODE(CL_INVALID_KERNEL)
        CODE(CL_INVALID_ARG_INDEX)
        CODE(CL_INVALID_ARG_VALUE)
        CODE(CL_INVALID_ARG_SIZE)
        CODE(CL_INVALID_KERNEL_ARGS)
        CODE(CL_INVALID_WORK_GROUP_SIZE)
        CODE(CL_INVALID_WORK_ITEM_SIZE)
        CODE(CL_INVALID_BUFFER_SIZE)
        CODE(CL_INVALID_GLOBAL_WORK_SIZE)
    default:
        return "an unknown code";
    }
#undef CODE
}

prony_status prn_opencl_status(cl_int code, const char *device, const char *what, prony_error *error)
{
    if (code == CL_SUCCESS) return PRONY_OK;
    const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
    return prn_fail(error, memory ? PRONY_OUT_OF_MEMORY : PRONY_IO_ERROR, "%s: %s failed: %s (%d)", device, what,
                    prn_opencl_code(code), (int)code);
}
#endif
