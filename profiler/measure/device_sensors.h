/* Power, clocks, temperature, memory and use of an NVIDIA device while runs are measured, by NVML (libnvidia-ml.so.1).
 * The library is loaded if the session's device is NVIDIA's, and never linked. */
#ifndef PRN_PROFILER_MEASURE_DEVICE_SENSORS_H
#define PRN_PROFILER_MEASURE_DEVICE_SENSORS_H

#include "prony_device.h"

#include <stdbool.h>

typedef struct prn_sensors prn_sensors;

/* Starts a thread that reads the sensors ten times a second. NULL: the device is not NVIDIA's, NVML is missing, does not
 * know the device, or no thread starts. The device is known by its PCI address, else as the only one of NVML. */
prn_sensors *prn_sensors_begin(const prony_device_info *device);
/* Reads once more, ends the thread, and frees. false: nothing was read. `sensors` NULL: does nothing. */
bool prn_sensors_end(prn_sensors *sensors, prony_device_sensors *out);

#endif
