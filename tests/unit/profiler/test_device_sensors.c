/* The sensors of an NVIDIA device, by a library in place of NVML (tests/support/fake_nvml/fake_nvml.c): which device is
 * chosen, sums of readings, sensors that a device lacks, libraries that are missing or fail. */
#include "failure_trace.h"
#include "profiler/measure/device_sensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define BUS "0000:3b:00.0"

static prony_device_info nvidia(const char *bus)
{
    return (prony_device_info){.vendor = "NVIDIA Corporation", .name = "a device", .pci_bus_id = bus};
}

static bool reads(const char *bus, prony_device_sensors *out)
{
    const prony_device_info info = nvidia(bus);
    return prn_sensors_end(prn_sensors_begin(&info), out);
}

/* First, because a library that was loaded stays. */
static void without_a_library(void **state)
{
    (void)state;
    prony_device_sensors s;
    setenv("FAKE_NVML_BUS", BUS, 1);
    setenv("PRONY_NVML_LIB", "./libnowhere.so", 1);
    assert_false(reads(BUS, &s));
    setenv("PRONY_NVML_LIB", "libm.so.6", 1);
    assert_false(reads(BUS, &s));
    setenv("PRONY_NVML_LIB", "./libfake_nvml.so", 1);
    setenv("FAKE_NVML_FAILS", "1", 1);
    assert_false(reads(BUS, &s));
    unsetenv("FAKE_NVML_FAILS");
    assert_true(reads(BUS, &s));
}

static void the_device_by_its_address(void **state)
{
    (void)state;
    prony_device_sensors s;
    const prony_device_info other = {.vendor = "GenuineIntel", .pci_bus_id = BUS};
    assert_true(reads(BUS, &s));
    assert_false(reads("0000:5e:00.0", &s));
    assert_null(prn_sensors_begin(&other));
    assert_true(reads("", &s)); /* the only one */
    setenv("FAKE_NVML_COUNT", "2", 1);
    assert_false(reads("", &s));
    assert_true(reads(BUS, &s));
    setenv("FAKE_NVML_COUNT", "0", 1);
    assert_false(reads("", &s));
    unsetenv("FAKE_NVML_COUNT");
    assert_false(prn_sensors_end(NULL, &s));
}

static void readings(void **state)
{
    (void)state;
    prony_device_sensors s;
    const prony_device_info info = nvidia(BUS);
    prn_sensors *sensors = prn_sensors_begin(&info);
    assert_non_null(sensors);
    nanosleep(&(struct timespec){.tv_nsec = 350000000}, NULL);
    assert_true(prn_sensors_end(sensors, &s));
    assert_in_range(s.samples, 2, 6);
    assert_float_equal(s.power_max_w, 250, 1e-9);
    assert_true(s.power_mean_w > 150 && s.power_mean_w < 250);
    assert_float_equal(s.clock_mean_mhz, 1755, 1e-9);
    assert_float_equal(s.clock_min_mhz, 1755, 1e-9);
    assert_float_equal(s.clock_max_mhz, 1755, 1e-9);
    assert_float_equal(s.memory_clock_mean_mhz, 2619, 1e-9);
    assert_float_equal(s.temperature_max_c, 61, 1e-9);
    assert_float_equal(s.utilisation, 0.8, 1e-9);
    assert_true(s.memory_used_bytes == UINT64_C(3) << 30);
}

static void missing_sensors(void **state)
{
    (void)state;
    prony_device_sensors s;
    setenv("FAKE_NVML_LACKS", "pcm", 1);
    assert_true(reads(BUS, &s));
    assert_int_equal(s.samples, 1);
    assert_true(isnan(s.power_mean_w) && isnan(s.power_max_w) && isnan(s.clock_mean_mhz) && isnan(s.clock_min_mhz));
    assert_true(s.memory_used_bytes == UINT64_MAX);
    assert_float_equal(s.temperature_max_c, 61, 1e-9);
    setenv("FAKE_NVML_LACKS", "pctmu", 1);
    assert_false(reads(BUS, &s));
    unsetenv("FAKE_NVML_LACKS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_library),
        cmocka_unit_test(the_device_by_its_address),
        cmocka_unit_test(readings),
        cmocka_unit_test(missing_sensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
