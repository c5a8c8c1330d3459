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

enum { MOST_DEVICES = 32, MOST_PLATFORMS = 16, TEXT = 256 };
/* cl_khr_pci_bus_info and cl_nv_device_attribute_query, which older headers lack */
enum { PCI_BUS_INFO_KHR = 0x410F, PCI_BUS_ID_NV = 0x4008, PCI_SLOT_ID_NV = 0x4009, PCI_DOMAIN_ID_NV = 0x400A };
typedef struct pci_bus_info {
    cl_uint domain, bus, device, function;
} pci_bus_info;

/* ---- the list of devices, made once ---- */

static prn_device devices[MOST_DEVICES]; /* opened ones have a context */
static size_t device_count;
static pthread_once_t list_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static char list_reason[TEXT];

/* The text's length is the driver's: a GPU's extensions take a few thousand bytes. NULL: it has none, or memory is
 * missing. */
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

/* The address in the form of Linux and NVML; "": unknown. NVIDIA's drivers before 510 know their own extension alone. */
static const char *pci_address(cl_device_id id)
{
    char text[32];
    pci_bus_info pci = {0};
    cl_uint slot = 0;
    bool known = has_extension(id, "cl_khr_pci_bus_info") &&
                 prn_opencl.clGetDeviceInfo(id, PCI_BUS_INFO_KHR, sizeof pci, &pci, NULL) == CL_SUCCESS;
    if (!known && has_extension(id, "cl_nv_device_attribute_query")) {
        known = prn_opencl.clGetDeviceInfo(id, PCI_BUS_ID_NV, sizeof(cl_uint), &pci.bus, NULL) == CL_SUCCESS &&
                prn_opencl.clGetDeviceInfo(id, PCI_SLOT_ID_NV, sizeof slot, &slot, NULL) == CL_SUCCESS;
        pci.device = slot >> 3;
        pci.function = slot & 7;
        if (prn_opencl.clGetDeviceInfo(id, PCI_DOMAIN_ID_NV, sizeof(cl_uint), &pci.domain, NULL) != CL_SUCCESS)
            pci.domain = 0;
    }
    if (!known) return "";
    snprintf(text, sizeof text, "%04x:%02x:%02x.%x", pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0x1f,
             pci.function & 7);
    const char *kept = prn_strdup(text);
    return kept ? kept : "";
}

/* Fills d->info with the driver's answers; a number that the driver does not tell is 0. d owns the texts but `platform`,
 * which outlives it. */
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
                            .fp64 = device_number(of, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(cl_device_fp_config)) != 0,
                            .pci_bus_id = pci_address(of)};
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->build_lock, NULL);
    pthread_mutex_init(&d->constant_lock, NULL);
    pthread_mutex_init(&d->settle_lock, NULL);
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

void prn_device_release(prn_device *d)
{
    if (!d) return;
    pthread_mutex_lock(&open_lock);
    if (--d->sessions == 0) {
        if (d->release_caches) d->release_caches(d);
        prn_opencl_drop_programs(d);
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

prn_device_use prn_device_usage(prn_device *device)
{
    (void)device;
    return (prn_device_use){0};
}
#endif
