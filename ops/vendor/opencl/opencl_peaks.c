/* prony_device_measure: the device's arithmetic, its memory, copies, and the time of a launch. */
#include "prony_device.h"

#include "ops/device.h"

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "base/os/clock.h"
#include "ops/vendor/opencl/opencl_launch.h"

#include <string.h>

enum { TRIALS = 5, LAUNCHES = 200, CHAINS = 8, STEPS = 256, VECTOR = 8, GROUP = 64 };
#define STREAM_BYTES ((size_t)64 << 20) /* beyond the caches of most devices; halved until the device has room */

typedef struct trial {
    prn_device *device;
    cl_kernel kernel;
    void *blocks[2];
    size_t bytes;
} trial;

static prony_status set_buffer(const trial *t, cl_uint argument, const void *address, prony_error *error)
{
    size_t offset = 0;
    cl_mem memory = prn_opencl_find(t->device, address, &offset);
    const cl_ulong at = offset;
    cl_int code = PRN_CL(clSetKernelArg, t->kernel, argument, sizeof(cl_mem), &memory);
    if (code == CL_SUCCESS) code = PRN_CL(clSetKernelArg, t->kernel, argument + 1, sizeof at, &at);
    return prn_opencl_status(code, t->device->info.id, "setting an argument", error);
}

/* The shortest time of the trials, by the device's clock. */
static prony_status best_time(const trial *t, size_t items, int64_t *best_ns, prony_error *error)
{
    const size_t local = GROUP;
    for (int i = 0; i < TRIALS; i++) {
        prn_device_step step = {.device = t->device, .timed = true};
        cl_event event = NULL;
        const cl_int code =
            PRN_CL(clEnqueueNDRangeKernel, t->device->queue, t->kernel, 1, NULL, &items, &local, 0, NULL, &event);
        PRN_TRY(prn_opencl_status(code, t->device->info.id, "launching a kernel", error));
        PRN_TRY(prn_opencl_timed(t->device, event, &step, error));
        if (i == 0 || step.times.busy_ns < *best_ns) *best_ns = step.times.busy_ns;
    }
    return PRONY_OK;
}

static double per_second(double amount, int64_t ns)
{
    return ns > 0 ? amount / ((double)ns * 1e-9) : 0;
}

static prony_status begin_kernel(trial *t, const char *name, prony_error *error)
{
    return prn_opencl_kernel(t->device, &prn_opencl_peaks, "", name, &t->kernel, error);
}

static prony_status measure_flops(trial *t, prony_device_peaks *out, prony_error *error)
{
    const size_t items = (size_t)t->device->info.compute_units * GROUP * 32;
    const float x = 0.999f;
    int64_t ns = 0;
    PRN_TRY(begin_kernel(t, "flops", error));
    prony_status status = items * sizeof(float) <= t->bytes ? set_buffer(t, 0, t->blocks[0], error) : PRONY_OK;
    if (status == PRONY_OK)
        status = prn_opencl_status(PRN_CL(clSetKernelArg, t->kernel, 2, sizeof x, &x), t->device->info.id,
                                   "setting an argument", error);
    if (status == PRONY_OK) status = best_time(t, items, &ns, error);
    if (status == PRONY_OK) out->flops_per_second = per_second(2.0 * CHAINS * STEPS * VECTOR * (double)items, ns);
    prn_opencl_kernel_release(t->device, t->kernel);
    return status;
}

static prony_status measure_stream(trial *t, prony_device_peaks *out, prony_error *error)
{
    int64_t ns = 0;
    PRN_TRY(begin_kernel(t, "stream", error));
    prony_status status = set_buffer(t, 0, t->blocks[0], error);
    if (status == PRONY_OK) status = set_buffer(t, 2, t->blocks[1], error);
    if (status == PRONY_OK) status = best_time(t, t->bytes / sizeof(cl_float4), &ns, error);
    if (status == PRONY_OK) out->bytes_per_second = per_second(2.0 * (double)t->bytes, ns);
    prn_opencl_kernel_release(t->device, t->kernel);
    return status;
}

/* Mean time of a launch by the host's clock, of many that are queued one behind the other. */
static prony_status measure_launch(trial *t, prony_device_peaks *out, prony_error *error)
{
    const size_t items = GROUP;
    PRN_TRY(begin_kernel(t, "nothing", error));
    prony_status status = set_buffer(t, 0, t->blocks[0], error);
    for (int trial_of = 0; trial_of < TRIALS && status == PRONY_OK; trial_of++) {
        const int64_t begin = prn_now_ns();
        for (int i = 0; i < LAUNCHES && status == PRONY_OK; i++)
            status = prn_opencl_status(
                PRN_CL(clEnqueueNDRangeKernel, t->device->queue, t->kernel, 1, NULL, &items, &items, 0, NULL, NULL),
                t->device->info.id, "launching a kernel", error);
        if (status == PRONY_OK) status = prn_device_finish(t->device, error);
        const int64_t ns = (prn_now_ns() - begin) / LAUNCHES;
        if (trial_of == 0 || ns < out->launch_ns) out->launch_ns = ns;
    }
    prn_opencl_kernel_release(t->device, t->kernel);
    return status;
}

static prony_status measure_copies(trial *t, prony_device_peaks *out, prony_error *error)
{
    void *host = prn_alloc_aligned(4096, t->bytes);
    if (!host) return prn_no_memory(error);
    memset(host, 0, t->bytes);
    prony_status status = PRONY_OK;
    int64_t in = INT64_MAX, back = INT64_MAX;
    for (int i = 0; i < TRIALS && status == PRONY_OK; i++) {
        const int64_t begin = prn_now_ns();
        status = prn_opencl_space.copy_in(t->device, t->blocks[0], host, t->bytes, NULL, error);
        const int64_t between = prn_now_ns();
        if (status == PRONY_OK)
            status = prn_opencl_space.copy_out(t->device, host, t->blocks[0], t->bytes, NULL, error);
        const int64_t end = prn_now_ns();
        if (between - begin < in) in = between - begin;
        if (end - between < back) back = end - between;
    }
    prn_free_aligned(host);
    out->to_device_bytes_per_second = per_second((double)t->bytes, in);
    out->from_device_bytes_per_second = per_second((double)t->bytes, back);
    return status;
}

static bool opencl_peaks_take_blocks(trial *t)
{
    for (t->bytes = STREAM_BYTES; t->bytes >= 1 << 20; t->bytes /= 2) {
        t->blocks[0] = prn_opencl_space.take(t->device, t->bytes);
        t->blocks[1] = t->blocks[0] ? prn_opencl_space.take(t->device, t->bytes) : NULL;
        if (t->blocks[1]) return true;
        if (t->blocks[0]) prn_opencl_space.give(t->device, t->blocks[0]);
    }
    return false;
}

static prony_status opencl_peaks_measure(trial *t, prony_device_peaks *peaks, prony_error *error)
{
    PRN_TRY(measure_copies(t, peaks, error));
    PRN_TRY(measure_stream(t, peaks, error));
    PRN_TRY(measure_flops(t, peaks, error));
    return measure_launch(t, peaks, error);
}

prony_status prony_device_measure(prony_device_peaks *out, const char *device, prony_error *error)
{
    trial t = {0};
    prony_device_peaks peaks = PRONY_DEVICE_PEAKS_INIT;
    if (!out || !device || out->struct_size == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_device_measure: an argument is NULL, or `out` has no size");
    PRN_TRY(prn_device_open(&t.device, device, "prony_device_measure", error));
    prony_status status = opencl_peaks_take_blocks(&t)
                              ? PRONY_OK
                              : prn_fail(error, PRONY_OUT_OF_MEMORY, "%s: no room to measure", device);
    if (status == PRONY_OK) status = opencl_peaks_measure(&t, &peaks, error);
    for (int i = 0; i < 2; i++)
        if (t.blocks[1]) prn_opencl_space.give(t.device, t.blocks[i]);
    prn_device_release(t.device);
    peaks.struct_size = out->struct_size; /* of the program's version */
    if (status == PRONY_OK) memcpy(out, &peaks, out->struct_size < sizeof peaks ? out->struct_size : sizeof peaks);
    return status;
}
#else
prony_status prony_device_measure(prony_device_peaks *out, const char *device, prony_error *error)
{
    (void)out;
    return prn_fail(error, PRONY_UNSUPPORTED, "device '%.60s': this build has no OpenCL (Debian: opencl-c-headers)",
                    device ? device : "");
}
#endif
