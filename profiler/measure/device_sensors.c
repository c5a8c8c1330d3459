/* Implements device_sensors.h. Types and numbers are those of nvml.h. */
#include "profiler/measure/device_sensors.h"

#include "base/memory/alloc.h"
#include "base/os/shared_library.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INTERVAL_MS = 100, CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0, SUCCESS = 0 };

typedef void *nvml_device;
typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;
typedef struct nvml_utilisation {
    unsigned gpu, memory; /* percent of the last sample period, which the driver chooses */
} nvml_utilisation;

typedef struct nvml_functions {
    int (*init)(void);
    int (*count)(unsigned *out);
    int (*by_index)(unsigned index, nvml_device *out);
    int (*by_bus)(const char *bus, nvml_device *out);
    int (*power)(nvml_device device, unsigned *milliwatts);
    int (*clock)(nvml_device device, int which, unsigned *mhz);
    int (*temperature)(nvml_device device, int sensor, unsigned *celsius);
    int (*memory)(nvml_device device, nvml_memory *out);
    int (*utilisation)(nvml_device device, nvml_utilisation *out);
} nvml_functions;

static const char *const nvml_names[] = {"nvmlInit_v2",
                                         "nvmlDeviceGetCount_v2",
                                         "nvmlDeviceGetHandleByIndex_v2",
                                         "nvmlDeviceGetHandleByPciBusId_v2",
                                         "nvmlDeviceGetPowerUsage",
                                         "nvmlDeviceGetClockInfo",
                                         "nvmlDeviceGetTemperature",
                                         "nvmlDeviceGetMemoryInfo",
                                         "nvmlDeviceGetUtilizationRates"};

/* Readings of a sensor that can be read. */
typedef struct sensor_sum {
    double sum, least, most;
    size_t count;
} sensor_sum;

struct prn_sensors {
    nvml_device device;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ending; /* under the lock; the rest is the thread's until it ends */
    sensor_sum power_w, sm_mhz, memory_mhz, celsius, used_bytes, busy;
    size_t samples;
};

/* ---- NVML ---- */

static nvml_functions nvml;
static bool nvml_ready;
static pthread_mutex_t nvml_lock = PTHREAD_MUTEX_INITIALIZER;

static prony_status nvml_open(void)
{
    const char *path = getenv("PRONY_NVML_LIB");
    nvml_functions found;
    void *library;
    if (!path || !*path) path = "libnvidia-ml.so.1";
    PRN_TRY(prn_library_open(&library, path, NULL));
    for (size_t i = 0; i < sizeof nvml_names / sizeof *nvml_names; i++)
        PRN_TRY(prn_library_function((char *)&found + i * sizeof(void *), library, path, nvml_names[i], NULL));
    if (found.init() != SUCCESS) return PRONY_UNSUPPORTED;
    nvml = found;
    nvml_ready = true;
    return PRONY_OK;
}

static bool nvml_load(void)
{
    pthread_mutex_lock(&nvml_lock);
    const bool ready = nvml_ready || nvml_open() == PRONY_OK;
    pthread_mutex_unlock(&nvml_lock);
    return ready;
}

static bool nvml_find(const prony_device_info *device, nvml_device *out)
{
    unsigned count = 0;
    if (*device->pci_bus_id) return nvml.by_bus(device->pci_bus_id, out) == SUCCESS;
    return nvml.count(&count) == SUCCESS && count == 1 && nvml.by_index(0, out) == SUCCESS;
}

/* ---- samples ---- */

static void sensor_add(sensor_sum *s, int code, double value)
{
    if (code != SUCCESS) return; /* the device lacks the sensor, or this user may not read it */
    s->least = s->count ? fmin(s->least, value) : value;
    s->most = s->count ? fmax(s->most, value) : value;
    s->sum += value;
    s->count++;
}

static void read_sensors(prn_sensors *s)
{
    unsigned value = 0;
    nvml_memory memory = {0};
    nvml_utilisation use = {0};
    int code = nvml.power(s->device, &value);
    sensor_add(&s->power_w, code, value * 1e-3);
    code = nvml.clock(s->device, CLOCK_SM, &value);
    sensor_add(&s->sm_mhz, code, value);
    code = nvml.clock(s->device, CLOCK_MEMORY, &value);
    sensor_add(&s->memory_mhz, code, value);
    code = nvml.temperature(s->device, SENSOR_GPU, &value);
    sensor_add(&s->celsius, code, value);
    code = nvml.memory(s->device, &memory);
    sensor_add(&s->used_bytes, code, (double)memory.used);
    code = nvml.utilisation(s->device, &use);
    sensor_add(&s->busy, code, use.gpu * 1e-2);
    s->samples++;
}

/* Waits before it reads, because the first moments are those of an idle device; reads at least once. */
static void *sensors_work(void *argument)
{
    prn_sensors *s = argument;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&s->lock);
    for (bool last = false; !last; last = s->ending) {
        next.tv_nsec += INTERVAL_MS * 1000000L;
        next.tv_sec += next.tv_nsec / 1000000000L;
        next.tv_nsec %= 1000000000L;
        while (!s->ending && pthread_cond_timedwait(&s->wake, &s->lock, &next) == 0) {
        }
        read_sensors(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool sensors_start(prn_sensors *s)
{
    pthread_condattr_t clock;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&s->thread, NULL, sensors_work, s) == 0) return true;
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    return false;
}

prn_sensors *prn_sensors_begin(const prony_device_info *device)
{
    nvml_device found = NULL;
    if (!strstr(device->vendor, "NVIDIA") || !nvml_load() || !nvml_find(device, &found)) return NULL;
    prn_sensors *s = prn_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->device = found;
    if (sensors_start(s)) return s;
    prn_free(s);
    return NULL;
}

static double sensor_mean(const sensor_sum *s)
{
    return s->count ? s->sum / (double)s->count : NAN;
}

static double sensor_most(const sensor_sum *s)
{
    return s->count ? s->most : NAN;
}

bool prn_sensors_end(prn_sensors *s, prony_device_sensors *out)
{
    if (!s) return false;
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    *out = (prony_device_sensors){.samples = s->samples,
                                  .power_mean_w = sensor_mean(&s->power_w),
                                  .power_max_w = sensor_most(&s->power_w),
                                  .clock_mean_mhz = sensor_mean(&s->sm_mhz),
                                  .clock_min_mhz = s->sm_mhz.count ? s->sm_mhz.least : NAN,
                                  .clock_max_mhz = sensor_most(&s->sm_mhz),
                                  .memory_clock_mean_mhz = sensor_mean(&s->memory_mhz),
                                  .temperature_max_c = sensor_most(&s->celsius),
                                  .memory_used_bytes = s->used_bytes.count ? (uint64_t)s->used_bytes.most : UINT64_MAX,
                                  .utilisation = sensor_mean(&s->busy)};
    const bool any = s->power_w.count + s->sm_mhz.count + s->memory_mhz.count + s->celsius.count + s->used_bytes.count +
                         s->busy.count >
                     0;
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    prn_free(s);
    return any;
}
