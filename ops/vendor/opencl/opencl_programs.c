/* Programs of an OpenCL device: loaded from the user's cache or compiled, and kept as long as the device is open. */
#include "ops/op.h"

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "ops/vendor/opencl/opencl_program_cache.h"
#include "ops/vendor/opencl/opencl_device.h"

#include <string.h>

static void first_lines(char *log)
{
    for (int lines = 0; *log; log++)
        if (*log == '\n' && ++lines == 3) *log = '\0';
}

static prony_status compile_program(prn_device *d, const opencl_recipe *recipe, cl_program *out, prony_error *error)
{
    cl_int code = CL_SUCCESS;
    *out = PRN_CL_NEW(code, clCreateProgramWithSource, d->context, (cl_uint)recipe->count, (const char **)recipe->texts,
                      recipe->sizes);
    PRN_TRY(prn_opencl_status(code, d->info.id, "creating a program", error));
    code = PRN_CL(clBuildProgram, *out, 1, &d->id, recipe->options, NULL, NULL);
    if (code == CL_SUCCESS) return PRONY_OK;
    char log[1200] = "";
    (void)prn_opencl.clGetProgramBuildInfo(*out, d->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    first_lines(log);
    prn_opencl.clReleaseProgram(*out);
    return prn_fail(error, PRONY_IO_ERROR, "%s: building a program failed: %s (%d)%s%s", d->info.id,
                    prn_opencl_code(code), (int)code, *log ? ": " : "", log);
}

/* From the user's cache, else compiled, and then kept there. */
static prony_status build_program(prn_device *d, const prn_opencl_source *source, const char *defines, cl_program *out,
                                  bool *loaded, prony_error *error)
{
    const char *const texts[] = {defines, prn_opencl_common.text, source->text};
    const size_t sizes[] = {strlen(defines), (size_t)(prn_opencl_common.end - prn_opencl_common.text),
                            (size_t)(source->end - source->text)};
    opencl_recipe recipe = {.texts = texts, .sizes = sizes, .count = 3, .options = "-cl-std=CL1.2"};
    prn_opencl_program_cache_key(&recipe, d);
    *out = prn_opencl_program_cache_load(d, &recipe);
    *loaded = *out != NULL;
    if (*loaded) return PRONY_OK;
    PRN_TRY(compile_program(d, &recipe, out, error));
    prn_opencl_program_cache_keep(&recipe, *out, PRN_OPENCL_PROGRAM_CACHE_BYTES);
    return PRONY_OK;
}

/* `d->build_lock` is held. */
static prony_status find_program(prn_device *d, const prn_opencl_source *source, const char *defines, cl_program *out,
                                 prony_error *error)
{
    bool loaded = false;
    for (const opencl_program *p = d->programs; p; p = p->next)
        if (p->source == source && strcmp(p->defines, defines) == 0) return *out = p->program, PRONY_OK;
    opencl_program *made = prn_calloc(1, sizeof *made);
    char *kept = made ? prn_strdup(defines) : NULL;
    prony_status status = kept ? build_program(d, source, defines, out, &loaded, error) : prn_no_memory(error);
    if (status != PRONY_OK) {
        prn_free(kept);
        prn_free(made);
        return status;
    }
    *made = (opencl_program){source, kept, *out, d->programs};
    d->programs = made;
    pthread_mutex_lock(&d->lock);
    d->use.programs++;
    d->use.loaded += loaded;
    pthread_mutex_unlock(&d->lock);
    return PRONY_OK;
}

static void count_kernels(prn_device *d, int change)
{
    pthread_mutex_lock(&d->lock);
    d->use.kernels += (size_t)change;
    pthread_mutex_unlock(&d->lock);
}

/* Runs of other sessions go on while a program is compiled: they need `lock` alone. */
prony_status prn_opencl_kernel(prn_device *d, const prn_opencl_source *source, const char *defines, const char *name,
                               cl_kernel *out, prony_error *error)
{
    cl_program program = NULL;
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&d->build_lock);
    prony_status status = find_program(d, source, defines, &program, error);
    if (status == PRONY_OK) {
        *out = PRN_CL_NEW(code, clCreateKernel, program, name);
        status = prn_opencl_status(code, d->info.id, "creating a kernel", error);
    }
    pthread_mutex_unlock(&d->build_lock);
    if (status == PRONY_OK) count_kernels(d, 1);
    return status;
}

void prn_opencl_kernel_release(prn_device *d, cl_kernel kernel)
{
    prn_opencl.clReleaseKernel(kernel);
    count_kernels(d, -1);
}

void prn_opencl_drop_programs(prn_device *d)
{
    for (opencl_program *p = d->programs, *next; p; p = next) {
        next = p->next;
        prn_opencl.clReleaseProgram(p->program);
        prn_free(p->defines);
        prn_free(p);
    }
    d->programs = NULL;
    d->use.programs = d->use.loaded = 0;
}
#endif
