/* Every row of tests/operators/cases as a model, on the processor and on an OpenCL device: the same statuses, and the same
 * outputs within the contract of fp32. `test_op_device WORD`: operators whose name contains WORD. */
#include "failure_trace.h"
#include "tests/support/op_case_model.h"

#include "base/shape.h"
#include "prony_device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static op_case_list cases;
static const char *only = "";

enum { OUTPUTS = 64, DEVICE_KERNELS_AT_LEAST = 300 };
#define LIMIT 2e-5 /* of the output's range, as in test_op_float64.c */

typedef struct outputs {
    prony_dtype dtype[OUTPUTS];
    int64_t count[OUTPUTS]; /* -1: no tensor of numbers */
    double *values[OUTPUTS];
} outputs;

static void keep_output(void *argument, size_t index, const prony_value *value)
{
    outputs *o = argument;
    assert_true(index < OUTPUTS);
    o->dtype[index] = value->dtype;
    o->count[index] = -1;
    if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING) return;
    const int64_t count = o->count[index] = prony_shape_numel(&value->shape);
    o->values[index] = malloc((size_t)count * sizeof(double) + 1);
    assert_non_null(o->values[index]);
    for (int64_t i = 0; i < count; i++) o->values[index][i] = op_case_get(value, i);
}

static void drop_outputs(outputs *o)
{
    for (size_t k = 0; k < OUTPUTS; k++) free(o->values[k]);
}

static bool agree(const outputs *host, const outputs *device, char *message, size_t bytes)
{
    for (size_t k = 0; k < OUTPUTS; k++) {
        double range = 0;
        if (host->dtype[k] != device->dtype[k] || host->count[k] != device->count[k]) {
            snprintf(message, bytes, "output %zu has another type or extent", k);
            return false;
        }
        for (int64_t i = 0; host->values[k] && i < host->count[k]; i++)
            if (isfinite(host->values[k][i]) && fabs(host->values[k][i]) > range) range = fabs(host->values[k][i]);
        for (int64_t i = 0; host->values[k] && i < host->count[k]; i++) {
            const double a = host->values[k][i], b = device->values[k][i];
            const bool alike = isnan(a) ? isnan(b) : isinf(a) ? a == b : fabs(a - b) <= LIMIT * range;
            if (alike) continue;
            snprintf(message, bytes, "output %zu, element %lld: %.9g on the device, %.9g on the host", k, (long long)i,
                     b, a);
            return false;
        }
    }
    return true;
}

static bool check(const op_case *row, uint64_t *kernels, char *message, size_t bytes)
{
    op_case_node node;
    outputs host = {0}, device = {0};
    prony_error error = {0}, device_error = {0};
    uint64_t own = 0;
    if (!op_case_parse(&node, row, message, bytes)) return false;
    const prony_status status = op_case_show(&node, OP_CASE_AS_WRITTEN, keep_output, &host, &error),
                       other = op_case_show_on("opencl", &node, OP_CASE_AS_WRITTEN, keep_output, &device, &own,
                                               &device_error);
    bool ok = status == other;
    if (!ok)
        snprintf(message, bytes, "status %d on the device, %d on the host: %s", (int)other, (int)status,
                 other ? device_error.message : error.message);
    else if (status == PRONY_OK && own)
        ok = agree(&host, &device, message, bytes);
    *kernels += own;
    drop_outputs(&host);
    drop_outputs(&device);
    op_case_node_release(&node);
    return ok;
}

static void device_agrees_with_host(void **state)
{
    (void)state;
    size_t failed = 0;
    uint64_t kernels = 0;
    for (size_t i = 0; i < cases.count; i++) {
        SCENARIO(i);
        char message[2048] = "";
        if (cases.items[i].refused || !strstr(cases.items[i].op, only)) continue;
        if (check(&cases.items[i], &kernels, message, sizeof message)) continue;
        failed++;
        print_error("%s:%d: %s %s | %s: %s\n", cases.items[i].file, cases.items[i].line, cases.items[i].op,
                    cases.items[i].attributes, cases.items[i].inputs, message);
    }
    print_message("%llu operators ran on the device\n", (unsigned long long)kernels);
    assert_int_equal(failed, 0);
    assert_true(*only ? kernels > 0 : kernels >= DEVICE_KERNELS_AT_LEAST);
}

int main(int argc, char **argv)
{
    enum { SKIPPED = 77 };
    prony_device_info info;
    prony_error error = {0};
    char message[512];
    const struct CMUnitTest tests[] = {cmocka_unit_test(device_agrees_with_host)};
    if (prony_device_at(&info, 0, &error) != PRONY_OK) {
        print_message("skipped: %s\n", error.message);
        return SKIPPED;
    }
    if (argc > 1) only = argv[1];
    if (!op_cases_load(&cases, PRN_SOURCE_DIR "/tests/operators/cases", message, sizeof message)) {
        print_error("%s\n", message);
        return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    op_cases_release(&cases);
    return failed;
}
