/* In place of NVIDIA's libnvidia-ml.so.1. The environment says which devices it has and what they cannot read:
 * FAKE_NVML_BUS: the PCI address that it knows; FAKE_NVML_COUNT: devices (1); FAKE_NVML_LACKS: letters of the sensors
 * that are not supported (p, c, t, m, u); FAKE_NVML_FAILS: nvmlInit fails. */
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, UNKNOWN = 999 };

static int the_device;
static unsigned power_reads;

static int fake_nvml_has(char sensor, const void *device)
{
    const char *lacks = getenv("FAKE_NVML_LACKS");
    if (device != &the_device) abort();
    return !lacks || !strchr(lacks, sensor);
}

EXPORTED int nvmlInit_v2(void)
{
    return getenv("FAKE_NVML_FAILS") ? UNKNOWN : SUCCESS;
}

EXPORTED int nvmlDeviceGetCount_v2(unsigned *out)
{
    const char *count = getenv("FAKE_NVML_COUNT");
    *out = count ? (unsigned)atoi(count) : 1;
    return SUCCESS;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    *out = &the_device;
    return index == 0 ? SUCCESS : NOT_FOUND;
}

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out)
{
    const char *known = getenv("FAKE_NVML_BUS");
    *out = &the_device;
    return known && strcmp(known, bus) == 0 ? SUCCESS : NOT_FOUND;
}

/* 150 W, 250 W, 150 W, ... */
EXPORTED int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = power_reads++ % 2 ? 250000 : 150000;
    return fake_nvml_has('p', device) ? SUCCESS : NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    if (which != 1 && which != 2) abort();
    *mhz = which == 1 ? 1755 : 2619;
    return fake_nvml_has('c', device) ? SUCCESS : NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    if (sensor != 0) abort();
    *celsius = 61;
    return fake_nvml_has('t', device) ? SUCCESS : NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetMemoryInfo(void *device, unsigned long long out[3])
{
    out[0] = 80ULL << 30;
    out[1] = 77ULL << 30;
    out[2] = 3ULL << 30;
    return fake_nvml_has('m', device) ? SUCCESS : NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2])
{
    out[0] = 80;
    out[1] = 30;
    return fake_nvml_has('u', device) ? SUCCESS : NOT_SUPPORTED;
}
