/* A device's roofs and sensors in reports of runs: rates of operators beside kept peaks, peaks that are missing or damaged,
 * sensors by a library in place of NVML, advice. Skipped without OpenCL. */
#include "failure_trace.h"
#include "prony_analysis.h"
#include "prony_device.h"
#include "prony_judge.h"
#include "tests/support/device_here.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef PRN_HAVE_OPENCL
#include "tests/support/cache_folder.h"
#include "profiler/report/report.h"
#include "tests/support/text_sink.h"

static prony_report *profile(void)
{
    static float x[8 * 64], w[64 * 32];
    model_builder *m = mb_begin(17);
    model_run r = {.options = {.device = "opencl"}};
    for (int i = 0; i < 64 * 32; i++) w[i] = (float)(i % 7) * 0.1f;
    mb_input(m, "x", PRONY_FLOAT32, "8,64");
    mb_initializer(m, "w", PRONY_FLOAT32, "64,32", w);
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node_name(m, "product");
    mb_node(m, "Softmax", "p", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "8,32");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "8,64", x);
    prony_report *report = mr_profile(&r);
    mr_close(&r);
    return report;
}

static const prony_device_info *first_device(void)
{
    const prony_device_info *info = NULL;
    prony_report *report = profile();
    const char *id = prony_report_device(report)->info.id;
    for (size_t i = 0; prony_device_at(&info, i, NULL) == PRONY_OK && strcmp(info->id, id) != 0;) i++;
    prony_report_release(report);
    return info;
}

static void save(const prony_device_info *info, double flops, double bytes)
{
    prony_device_peaks peaks = PRONY_DEVICE_PEAKS_INIT;
    peaks.flops_per_second = flops;
    peaks.bytes_per_second = bytes;
    peaks.to_device_bytes_per_second = peaks.from_device_bytes_per_second = 1e9;
    peaks.launch_ns = 5000;
    assert_int_equal(prony_device_peaks_save(info, &peaks, NULL), PRONY_OK);
}

static bool text_contains(const prony_report *report, const char *words)
{
    sink text = {0};
    prony_write_options o = PRONY_WRITE_OPTIONS_INIT;
    assert_int_equal(prony_report_write(report, PRONY_FORMAT_TEXT, &o, sink_write, &text, NULL), PRONY_OK);
    const bool found = strstr(text.text, words) != NULL;
    prn_free(text.text);
    return found;
}

/* Rates are those of the operator's counts over the device's time; the roof needs kept peaks. */
static void rates_without_peaks(void **state)
{
    (void)state;
    prony_report *report = profile();
    const prony_device_report *d = prony_report_device(report);
    assert_false(d->has_peaks);
    assert_true(d->operator_count >= 2);
    for (size_t i = 0; i < d->operator_count; i++) {
        const prony_device_operator_row *o = &d->operators[i];
        const prony_cost *cost = &report->operators[o->operator_index].cost;
        const double seconds = (double)o->busy_ns * 1e-9;
        assert_true(o->busy_ns > 0);
        assert_true(fabs(o->flops_per_second * seconds / (double)cost->flops - 1) < 1e-9);
        assert_true(fabs(o->bytes_per_second * seconds / (double)(cost->bytes_read + cost->bytes_written) - 1) < 1e-9);
        assert_null(o->bound);
        assert_true(isnan(o->percent_of_roof));
    }
    assert_true(text_contains(report, "run `prony devices` once"));
    prony_report_release(report);
}

static void shares_of_kept_peaks(void **state)
{
    (void)state;
    const prony_device_info *info = first_device();
    static const struct {
        double flops, bytes;
        const char *bound;
    } cases[] = {{1, 1e18, "compute"}, {1e18, 1, "memory"}, {1e18, 1e18, "overhead"}};
    for (size_t c = 0; c < 3; c++) {
        SCENARIO(c);
        save(info, cases[c].flops, cases[c].bytes);
        prony_report *report = profile();
        const prony_device_report *d = prony_report_device(report);
        assert_true(d->has_peaks);
        assert_float_equal(d->peaks.flops_per_second, cases[c].flops, 0);
        assert_int_equal(d->peaks.launch_ns, 5000);
        for (size_t i = 0; i < d->operator_count; i++) {
            const prony_device_operator_row *o = &d->operators[i];
            const double compute = o->flops_per_second / cases[c].flops, memory = o->bytes_per_second / cases[c].bytes;
            assert_true(fabs(o->percent_of_roof / (100 * fmax(compute, memory)) - 1) < 1e-9);
            assert_string_equal(o->bound, cases[c].bound);
        }
        assert_true(text_contains(report, "of the roof"));
        prony_report_release(report);
    }
}

static void damaged_peaks_are_missing(void **state)
{
    (void)state;
    char command[500];
    bool known = true;
    prony_error error = {0};
    prony_device_peaks peaks = PRONY_DEVICE_PEAKS_INIT;
    const prony_device_info *info = first_device();
    prony_device_info other = *info;
    assert_int_equal(prony_device_peaks_load(&peaks, &known, info, &error), PRONY_OK);
    assert_false(known);
    save(info, 1e12, 1e11);
    assert_int_equal(prony_device_peaks_load(&peaks, &known, info, &error), PRONY_OK);
    assert_true(known);
    assert_float_equal(peaks.bytes_per_second, 1e11, 0);
    other.platform = "another one"; /* its name and driver lead to the same file */
    assert_int_equal(prony_device_peaks_load(&peaks, &known, &other, &error), PRONY_IO_ERROR);
    assert_non_null(strstr(error.message, "platform"));
    snprintf(command, sizeof command,
             "sed -i 's/\"bytes_per_second\": 1/\"bytes_per_second\": -1/' '%s'/prony/device-*", cache_folder);
    assert_int_equal(system(command), 0);
    assert_int_not_equal(prony_device_peaks_load(&peaks, &known, info, &error), PRONY_OK);
    assert_false(known);
    prony_report *report = profile();
    assert_false(prony_report_device(report)->has_peaks);
    prony_report_release(report);
    peaks.flops_per_second = -1;
    assert_int_equal(prony_device_peaks_save(info, &peaks, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_device_peaks_load(NULL, &known, info, &error), PRONY_INVALID_ARGUMENT);
}

static void sensors_of_a_device_of_nvidia(void **state)
{
    (void)state;
    prony_device_info *info = (prony_device_info *)(uintptr_t)first_device();
    const prony_device_info was = *info;
    setenv("PRONY_NVML_LIB", "./libfake_nvml.so", 1);
    setenv("FAKE_NVML_BUS", "0000:3b:00.0", 1);
    prony_report *report = profile();
    assert_false(prony_report_device(report)->has_sensors); /* not NVIDIA's */
    assert_false(text_contains(report, "sensors"));
    prony_report_release(report);
    info->vendor = "NVIDIA Corporation";
    info->pci_bus_id = "0000:3b:00.0";
    report = profile();
    const prony_device_report *d = prony_report_device(report);
    assert_true(d->has_sensors);
    assert_true(d->sensors.samples >= 1);
    assert_float_equal(d->sensors.temperature_max_c, 61, 0);
    assert_true(text_contains(report, "61 C"));
    prony_report_release(report);
    info->pci_bus_id = "0000:ff:00.0";
    report = profile();
    assert_false(prony_report_device(report)->has_sensors);
    prony_report_release(report);
    *info = was;
}

static const prony_advice *advice_device(const prony_advice *rows, size_t count, const char *action)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].topic, "device") == 0 &&
            (action ? rows[i].applies && strstr(rows[i].action, action) : !rows[i].applies))
            return &rows[i];
    return NULL;
}

/* A report with a run of 1 ms: kernels, copies, and launches as given. */
static void advise(prony_report *report, prony_device_report *device, bool expected, const char *action)
{
    prony_advice *rows = NULL;
    size_t count = 0;
    report->has_device = true;
    report->device = *device;
    assert_int_equal(prony_recommend(&rows, &count, report, NULL, 0, NULL), PRONY_OK);
    assert_true((advice_device(rows, count, action) != NULL) == expected);
    prony_rows_release(rows);
}

static void advice_on_devices(void **state)
{
    (void)state;
    prony_report *report = profile();
    report->latency.mean_ns = 1000000;
    prony_device_operator_row rows[] = {{.launches = 1, .busy_ns = 900000, .bound = "memory"}};
    prony_device_copy_row copies[] = {{.value = "x", .reason = "graph input", .bytes = 4096, .busy_ns = 20000}};
    prony_device_report d = {.runs = 1,
                             .busy_ns = 900000,
                             .busy_share = 0.9,
                             .copy_ns = 20000,
                             .copy_share = 0.02,
                             .operators = rows,
                             .operator_count = 1,
                             .copies = copies,
                             .copy_count = 1,
                             .has_peaks = true,
                             .peaks = {.launch_ns = 10000}};
    advise(report, &d, true, NULL); /* nothing to change */
    advise(report, &d, false, "without --device");
    advise(report, &d, false, "-b");
    advise(report, &d, false, "fp16");
    d.info.fp16 = true;
    advise(report, &d, true, "fp16");
    d.info.fp16 = false;
    d.copy_ns = 300000;
    d.copy_share = 0.3;
    advise(report, &d, true, "stay on the device");
    advise(report, &d, false, "without --device");
    d.busy_ns = rows[0].busy_ns = 90000;
    d.busy_share = 0.09;
    advise(report, &d, true, "without --device");
    advise(report, &d, false, "-b");
    rows[0].launches = 20; /* 200 us of launches for 90 us of work */
    advise(report, &d, true, "larger batch");
    d.has_peaks = false;
    advise(report, &d, false, "larger batch");
    report->has_device = false;
    report->device = (prony_device_report){0};
    prony_report_release(report);
}

int main(void)
{
    if (!device_here()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rates_without_peaks, cache_folder_make, cache_folder_remove),
        cmocka_unit_test_setup_teardown(shares_of_kept_peaks, cache_folder_make, cache_folder_remove),
        cmocka_unit_test_setup_teardown(damaged_peaks_are_missing, cache_folder_make, cache_folder_remove),
        cmocka_unit_test_setup_teardown(sensors_of_a_device_of_nvidia, cache_folder_make, cache_folder_remove),
        cmocka_unit_test_setup_teardown(advice_on_devices, cache_folder_make, cache_folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    print_message("skipped: no OpenCL\n");
    return 77;
}
#endif
