/* Implements opencl_device.h, and ops/device.h with it. */
#include "ops/device.h"
#include "ops/vendor/opencl/opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "base/os/clock.h"
#include "ops/vendor/opencl/opencl_device.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MOST_DEVICES = 32, MOST_PLATFORMS = 16, TEXT = 256 };

/* ---- the list of devices, made once ---- */

static prn_device devices[MOST_DEVICES]; /* opened ones have a context */
static size_t device_count;
static pthread_once_t list_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static char list_reason[TEXT];

/* The text's length is the driver's: a GPU's extensions take a few thousand bytes. NULL: it has none, or memory is missing. */
static char *device_text_of(cl_device_id id, cl_device_info what)
{
    size_t size = 0;
    if (prn_opencl.clGetDeviceInfo(id, what, 0, NULL, &size) != CL_SUCCESS || size == 0) return NULL;
    char *text = prn_calloc(size + 1, 1);
    if (!text || prn_opencl.clGetDeviceInfo(id, what, size, text, NULL) == CL_SUCCESS) return text;
    prn_free(text);
    return NULL;
}

/* Kept as long as the process. */
static const char *device_text(cl_device_id id, cl_device_info what)
{
    const char *text = device_text_of(id, what);
    return text ? text : "";
}

static bool has_extension(cl_device_id id, const char *name)
{
    char *all = device_text_of(id, CL_DEVICE_EXTENSIONS);
    const bool has = all && strstr(all, name);
    prn_free(all);
    return has;
}

static uint64_t device_number(cl_device_id id, cl_device_info what, size_t size)
{
    uint64_t number = 0;
    return prn_opencl.clGetDeviceInfo(id, what, size, &number, NULL) == CL_SUCCESS ? number : 0;
}

static void describe_device(prn_device *d, const char *platform, size_t number)
{
    char id[32];
    cl_device_id of = d->id;
    snprintf(id, sizeof id, "opencl:%zu", number);
    const char *kept = prn_strdup(id);
    const uint64_t type = device_number(of, CL_DEVICE_TYPE, sizeof(cl_device_type));
    d->info =
        (prony_device_info){.id = kept ? kept : "",
                            .kind = type & CL_DEVICE_TYPE_GPU   ? "gpu"
                                    : type & CL_DEVICE_TYPE_CPU ? "cpu"
                                                                : "accelerator",
                            .name = device_text(of, CL_DEVICE_NAME),
                            .vendor = device_text(of, CL_DEVICE_VENDOR),
                            .platform = platform,
                            .driver = device_text(of, CL_DRIVER_VERSION),
                            .version = device_text(of, CL_DEVICE_VERSION),
                            .compute_units = (uint32_t)device_number(of, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint)),
                            .clock_mhz = (uint32_t)device_number(of, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(cl_uint)),
                            .memory_bytes = device_number(of, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong)),
                            .largest_buffer_bytes = device_number(of, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong)),
                            .local_memory_bytes = device_number(of, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong)),
                            .largest_work_group = device_number(of, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t)),
                            .fp16 = has_extension(of, "cl_khr_fp16"),
                            .fp64 = device_number(of, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(cl_device_fp_config)) != 0};
    pthread_mutex_init(&d->lock, NULL);
}

static const char *platform_name(cl_platform_id platform)
{
    char text[TEXT] = "";
    (void)prn_opencl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text - 1, text, NULL);
    const char *kept = prn_strdup(text);
    return kept ? kept : "";
}

static void list_devices(void)
{
    const char *why = prn_opencl_load();
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint platform_count = 0;
    if (!why &&
        (prn_opencl.clGetPlatformIDs(MOST_PLATFORMS, platforms, &platform_count) != CL_SUCCESS || !platform_count))
        why = "OpenCL finds no driver (Debian: pocl-opencl-icd for the processor, or the GPU vendor's)";
    for (cl_uint p = 0; !why && p < platform_count && p < MOST_PLATFORMS; p++) {
        cl_device_id ids[MOST_DEVICES];
        cl_uint count = 0;
        if (prn_opencl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST_DEVICES, ids, &count) != CL_SUCCESS)
            continue;
        const char *name = platform_name(platforms[p]);
        for (cl_uint i = 0; i < count && i < MOST_DEVICES && device_count < MOST_DEVICES; i++) {
            devices[device_count].id = ids[i];
            describe_device(&devices[device_count], name, device_count);
            device_count++;
        }
    }
    if (!why && device_count == 0) why = "OpenCL's drivers find no device";
    if (why) snprintf(list_reason, sizeof list_reason, "%s", why);
}

prony_status prony_device_at(const prony_device_info **out, size_t index, prony_error *error)
{
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_device_at: out is NULL");
    pthread_once(&list_once, list_devices);
    if (device_count == 0) return prn_fail(error, PRONY_UNSUPPORTED, "no device: %s", list_reason);
    if (index >= device_count)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "device %zu: there %s %zu", index, device_count == 1 ? "is" : "are",
                        device_count);
    *out = &devices[index].info;
    return PRONY_OK;
}

/* ---- opening ---- */

static prony_status make_queue(prn_device *d, prony_error *error)
{
    cl_int code = CL_SUCCESS;
    d->context = PRN_CL_NEW(code, clCreateContext, NULL, 1, &d->id, NULL, NULL);
    PRN_TRY(prn_opencl_status(code, d->info.id, "creating a context", error));
    d->queue = PRN_CL_NEW(code, clCreateCommandQueue, d->context, d->id, CL_QUEUE_PROFILING_ENABLE);
    prony_status status = prn_opencl_status(code, d->info.id, "creating a queue", error);
    if (status != PRONY_OK) prn_opencl.clReleaseContext(d->context);
    return status;
}

static bool equal_but_for_case(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!a[i] || (a[i] | 32) != (b[i] | 32)) return false;
    return true;
}

static bool contains_name(const char *text, const char *part)
{
    const size_t length = strlen(part);
    for (; *text; text++)
        if (equal_but_for_case(text, part, length)) return true;
    return false;
}

/* "opencl": a GPU if there is one, else the first; "opencl:1" by number, "opencl:NAME" by a part of its name. */
static prn_device *device_named(const char *name)
{
    char *end;
    if (strcmp(name, "opencl") == 0) {
        for (size_t i = 0; i < device_count; i++)
            if (strcmp(devices[i].info.kind, "gpu") == 0) return &devices[i];
        return &devices[0];
    }
    if (strncmp(name, "opencl:", 7) != 0 || !name[7]) return NULL;
    const unsigned long number = strtoul(name + 7, &end, 10);
    if (!*end) return number < device_count ? &devices[number] : NULL;
    for (size_t i = 0; i < device_count; i++)
        if (contains_name(devices[i].info.name, name + 7)) return &devices[i];
    return NULL;
}

prony_status prn_device_open(prn_device **out, const char *name, const char *file, prony_error *error)
{
    *out = NULL;
    pthread_once(&list_once, list_devices);
    if (device_count == 0) return prn_fail(error, PRONY_UNSUPPORTED, "%s: device '%.60s': %s", file, name, list_reason);
    prn_device *d = device_named(name);
    if (!d)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "%s: device '%.60s' is unknown: use opencl, opencl:NUMBER below %zu or opencl:NAME", file, name,
                        device_count);
    pthread_mutex_lock(&open_lock);
    prony_status status = d->sessions ? PRONY_OK : make_queue(d, error);
    if (status == PRONY_OK) {
        d->sessions++;
        *out = d;
    }
    pthread_mutex_unlock(&open_lock);
    if (status != PRONY_OK) prn_error_prefix(error, "%s", file);
    return status;
}

static void drop_programs(prn_device *d)
{
    for (opencl_program *p = d->programs, *next; p; p = next) {
        next = p->next;
        prn_opencl.clReleaseProgram(p->program);
        prn_free(p->defines);
        prn_free(p);
    }
    d->programs = NULL;
    d->use.programs = 0;
}

void prn_device_release(prn_device *d)
{
    if (!d) return;
    pthread_mutex_lock(&open_lock);
    if (--d->sessions == 0) {
        if (d->release_caches) d->release_caches(d);
        drop_programs(d);
        prn_opencl.clFinish(d->queue);
        prn_opencl.clReleaseCommandQueue(d->queue);
        prn_opencl.clReleaseContext(d->context);
        prn_free(d->blocks);
        prn_free(d->constants);
        d->blocks = NULL;
        d->constants = NULL;
        d->block_capacity = d->constant_capacity = 0;
    }
    pthread_mutex_unlock(&open_lock);
}

const prony_device_info *prn_device_description(const prn_device *d)
{
    return &d->info;
}

prony_status prn_device_finish(prn_device *d, prony_error *error)
{
    return prn_opencl_status(PRN_CL(clFinish, d->queue), d->info.id, "waiting for the queue", error);
}

prn_device_use prn_device_usage(prn_device *d)
{
    pthread_mutex_lock(&d->lock);
    prn_device_use use = d->use;
    pthread_mutex_unlock(&d->lock);
    return use;
}

/* ---- buffers ---- */

/* The first block behind `address`. */
static size_t block_above(const prn_device *d, const void *address)
{
    size_t low = 0, high = d->block_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((uintptr_t)d->blocks[middle].address <= (uintptr_t)address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

cl_mem prn_opencl_find(prn_device *d, const void *address, size_t *offset)
{
    cl_mem memory = NULL;
    pthread_mutex_lock(&d->lock);
    const size_t above = block_above(d, address);
    if (above > 0) {
        const opencl_block *b = &d->blocks[above - 1];
        *offset = (size_t)((const char *)address - (const char *)b->address);
        if (*offset < b->bytes) memory = b->memory;
    }
    pthread_mutex_unlock(&d->lock);
    return memory;
}

static bool block_add(prn_device *d, const opencl_block *block)
{
    if (!PRN_GROW(d->blocks, d->block_capacity, d->block_count + 1)) return false;
    const size_t at = block_above(d, block->address);
    memmove(&d->blocks[at + 1], &d->blocks[at], (d->block_count - at) * sizeof *d->blocks);
    d->blocks[at] = *block;
    d->block_count++;
    d->use.buffers++;
    d->use.bytes += block->bytes;
    if (d->use.bytes > d->use.peak_bytes) d->use.peak_bytes = d->use.bytes;
    return true;
}

static void *opencl_take(prn_device *d, size_t bytes)
{
    cl_int code = CL_SUCCESS;
    opencl_block block = {.bytes = bytes};
    block.address = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block.address == MAP_FAILED) return NULL;
    block.memory = PRN_CL_NEW(code, clCreateBuffer, d->context, CL_MEM_READ_WRITE, bytes, NULL);
    bool added = false;
    if (code == CL_SUCCESS) {
        pthread_mutex_lock(&d->lock);
        added = block_add(d, &block);
        pthread_mutex_unlock(&d->lock);
        if (!added) prn_opencl.clReleaseMemObject(block.memory);
    }
    if (added) return block.address;
    munmap(block.address, bytes);
    return NULL;
}

static void opencl_give(prn_device *d, void *address)
{
    pthread_mutex_lock(&d->lock);
    const size_t at = block_above(d, address) - 1;
    const opencl_block block = d->blocks[at];
    memmove(&d->blocks[at], &d->blocks[at + 1], (d->block_count - at - 1) * sizeof *d->blocks);
    d->block_count--;
    d->use.buffers--;
    d->use.bytes -= block.bytes;
    pthread_mutex_unlock(&d->lock);
    prn_opencl.clReleaseMemObject(block.memory);
    munmap(block.address, block.bytes);
}

/* ---- copies ---- */

static prony_status end_copy(prn_device *d, cl_int code, const char *what, cl_event event, prn_device_step *step,
                             prony_error *error)
{
    PRN_TRY(prn_opencl_status(code, d->info.id, what, error));
    return event ? prn_opencl_timed(d, event, step, error) : PRONY_OK;
}

static prony_status opencl_copy_in(prn_device *d, void *to, const void *from, size_t bytes, prn_device_step *step,
                                   prony_error *error)
{
    size_t offset = 0;
    cl_event event = NULL, *timed = step && step->timed ? &event : NULL;
    cl_mem memory = prn_opencl_find(d, to, &offset);
    const cl_int code = PRN_CL(clEnqueueWriteBuffer, d->queue, memory, CL_TRUE, offset, bytes, from, 0, NULL, timed);
    return end_copy(d, code, "copying to the device", event, step, error);
}

static prony_status opencl_copy_out(prn_device *d, void *to, const void *from, size_t bytes, prn_device_step *step,
                                    prony_error *error)
{
    size_t offset = 0;
    cl_event event = NULL, *timed = step && step->timed ? &event : NULL;
    cl_mem memory = prn_opencl_find(d, from, &offset);
    const cl_int code = PRN_CL(clEnqueueReadBuffer, d->queue, memory, CL_TRUE, offset, bytes, to, 0, NULL, timed);
    return end_copy(d, code, "copying from the device", event, step, error);
}

const prn_memory_space prn_opencl_space = {"opencl", opencl_take, opencl_give, opencl_copy_in, opencl_copy_out};

/* ---- constants ---- */

/* Invariant: a constant is known by its source; the bytes behind one source never change while it has users. */
prony_status prn_device_constant(prn_device *d, const void *source, const void *data, size_t bytes, void **out,
                                 prony_error *error)
{
    pthread_mutex_lock(&open_lock); /* one copy at a time */
    prony_status status = PRONY_OK;
    *out = NULL;
    for (size_t i = 0; i < d->constant_count && !*out; i++) {
        if (d->constants[i].source != source) continue;
        d->constants[i].users++;
        *out = d->constants[i].address;
    }
    if (!*out) {
        void *address =
            PRN_GROW(d->constants, d->constant_capacity, d->constant_count + 1) ? opencl_take(d, bytes) : NULL;
        status = address ? opencl_copy_in(d, address, data, bytes, NULL, error)
                         : prn_fail(error, PRONY_OUT_OF_MEMORY, "%s: no room for a constant of %zu bytes", d->info.id,
                                    bytes);
        if (status == PRONY_OK) {
            d->constants[d->constant_count++] = (opencl_constant){source, address, 1};
            pthread_mutex_lock(&d->lock);
            d->use.constant_bytes += bytes;
            pthread_mutex_unlock(&d->lock);
            *out = address;
        } else if (address) {
            opencl_give(d, address);
        }
    }
    pthread_mutex_unlock(&open_lock);
    return status;
}

void prn_device_constant_drop(prn_device *d, void *constant)
{
    if (!constant) return;
    pthread_mutex_lock(&open_lock);
    for (size_t i = 0; i < d->constant_count; i++) {
        if (d->constants[i].address != constant) continue;
        if (--d->constants[i].users == 0) {
            const uint64_t before = d->use.bytes;
            opencl_give(d, constant);
            d->use.constant_bytes -= before - d->use.bytes;
            d->constants[i] = d->constants[--d->constant_count];
        }
        break;
    }
    pthread_mutex_unlock(&open_lock);
}

/* ---- programs ---- */

static void first_lines(char *log)
{
    for (int lines = 0; *log; log++)
        if (*log == '\n' && ++lines == 3) *log = '\0';
}

static prony_status build_program(prn_device *d, const prn_opencl_source *source, const char *defines, cl_program *out,
                                  prony_error *error)
{
    const char *texts[] = {defines, prn_opencl_common.text, source->text};
    const size_t sizes[] = {strlen(defines), (size_t)(prn_opencl_common.end - prn_opencl_common.text),
                            (size_t)(source->end - source->text)};
    cl_int code = CL_SUCCESS;
    *out = PRN_CL_NEW(code, clCreateProgramWithSource, d->context, 3, texts, sizes);
    PRN_TRY(prn_opencl_status(code, d->info.id, "creating a program", error));
    code = PRN_CL(clBuildProgram, *out, 1, &d->id, "-cl-std=CL1.2", NULL, NULL);
    if (code == CL_SUCCESS) return PRONY_OK;
    char log[1200] = "";
    (void)prn_opencl.clGetProgramBuildInfo(*out, d->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    first_lines(log);
    prn_opencl.clReleaseProgram(*out);
    return prn_fail(error, PRONY_IO_ERROR, "%s: building a program failed: %s (%d)%s%s", d->info.id,
                    prn_opencl_code(code), (int)code, *log ? ": " : "", log);
}

/* `d->lock` is held. */
static prony_status find_program(prn_device *d, const prn_opencl_source *source, const char *defines, cl_program *out,
                                 prony_error *error)
{
    for (const opencl_program *p = d->programs; p; p = p->next)
        if (p->source == source && strcmp(p->defines, defines) == 0) return *out = p->program, PRONY_OK;
    opencl_program *made = prn_calloc(1, sizeof *made);
    char *kept = made ? prn_strdup(defines) : NULL;
    prony_status status = kept ? build_program(d, source, defines, out, error) : prn_no_memory(error);
    if (status != PRONY_OK) {
        prn_free(kept);
        prn_free(made);
        return status;
    }
    *made = (opencl_program){source, kept, *out, d->programs};
    d->programs = made;
    d->use.programs++;
    return PRONY_OK;
}

prony_status prn_opencl_kernel(prn_device *d, const prn_opencl_source *source, const char *defines, const char *name,
                               cl_kernel *out, prony_error *error)
{
    cl_program program = NULL;
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&d->lock);
    prony_status status = find_program(d, source, defines, &program, error);
    if (status == PRONY_OK) {
        *out = PRN_CL_NEW(code, clCreateKernel, program, name);
        status = prn_opencl_status(code, d->info.id, "creating a kernel", error);
        if (status == PRONY_OK) d->use.kernels++;
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

void prn_opencl_kernel_release(prn_device *d, cl_kernel kernel)
{
    prn_opencl.clReleaseKernel(kernel);
    pthread_mutex_lock(&d->lock);
    d->use.kernels--;
    pthread_mutex_unlock(&d->lock);
}

/* ---- times ---- */

static int64_t event_ns(cl_event event, cl_profiling_info what)
{
    cl_ulong ns = 0;
    return prn_opencl.clGetEventProfilingInfo(event, what, sizeof ns, &ns, NULL) == CL_SUCCESS ? (int64_t)ns : 0;
}

/* The host sees the end of an event at least as late as it is: the least difference of both clocks is the closest. */
static int64_t clock_ahead(prn_device *d, int64_t ended_ns)
{
    const int64_t ahead = prn_now_ns() - ended_ns;
    pthread_mutex_lock(&d->lock);
    if (!d->clock_known || ahead < d->clock_ahead_ns) d->clock_ahead_ns = ahead;
    d->clock_known = true;
    const int64_t least = d->clock_ahead_ns;
    pthread_mutex_unlock(&d->lock);
    return least;
}

prony_status prn_opencl_timed(prn_device *d, cl_event event, prn_device_step *step, prony_error *error)
{
    const cl_int code = PRN_CL(clWaitForEvents, 1, &event);
    prony_status status = prn_opencl_status(code, d->info.id, "waiting for a kernel", error);
    if (status == PRONY_OK) {
        prn_device_times *t = &step->times;
        const int64_t started = event_ns(event, CL_PROFILING_COMMAND_START),
                      ended = event_ns(event, CL_PROFILING_COMMAND_END), ahead = clock_ahead(d, ended);
        if (t->launches == 0) {
            t->queued_ns = event_ns(event, CL_PROFILING_COMMAND_QUEUED) + ahead;
            t->submitted_ns = event_ns(event, CL_PROFILING_COMMAND_SUBMIT) + ahead;
            t->started_ns = started + ahead;
        }
        t->ended_ns = ended + ahead;
        t->busy_ns += ended - started;
        t->launches++;
    }
    prn_opencl.clReleaseEvent(event);
    return status;
}

#else /* no OpenCL */

struct prn_device {
    prony_device_info info;
};

prony_status prony_device_at(const prony_device_info **out, size_t index, prony_error *error)
{
    (void)out, (void)index;
    return prn_fail(error, PRONY_UNSUPPORTED, "no device: this build has no OpenCL (Debian: opencl-c-headers)");
}

prony_status prn_device_open(prn_device **out, const char *name, const char *file, prony_error *error)
{
    *out = NULL;
    return prn_fail(error, PRONY_UNSUPPORTED, "%s: device '%.60s': this build has no OpenCL (Debian: opencl-c-headers)",
                    file, name);
}

void prn_device_release(prn_device *device)
{
    (void)device;
}

const prony_device_info *prn_device_description(const prn_device *device)
{
    return &device->info;
}

prony_status prn_device_finish(prn_device *device, prony_error *error)
{
    (void)device, (void)error;
    return PRONY_OK;
}

prony_status prn_device_constant(prn_device *device, const void *source, const void *data, size_t bytes, void **out,
                                 prony_error *error)
{
    (void)device, (void)source, (void)data, (void)bytes;
    *out = NULL;
    return prn_fail(error, PRONY_UNSUPPORTED, "this build has no OpenCL");
}

void prn_device_constant_drop(prn_device *device, void *constant)
{
    (void)device, (void)constant;
}

prn_device_use prn_device_usage(prn_device *device)
{
    (void)device;
    return (prn_device_use){0};
}
#endif
