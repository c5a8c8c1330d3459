/* Every row of tests/operators/cases as a model on an OpenCL device, beside the same model on the host: as it is written, and
 * with other shapes and attributes. Operators without a kernel of the device run on the host in both. Skipped where no device
 * is found. Rows of quantized operators run once more with constant scales and zero points, which their kernels ask for.
 *
 *     test_op_device                          what `make check-all` runs
 *     test_op_device --seed 7 --count 20      variations 7 to 26 of every row
 *     … --only WORD                           of the operators whose name contains WORD */
#include "tests/support/device_here.h"
#include "tests/support/seed_options.h"
#include "tests/support/op_case_model.h"
#include "tests/support/op_vary.h"

#include "base/shape.h"
#include "engine/session/session.h"
#include "prony_device.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Of the largest finite element of an output, at least 1: sums of the cases have a few hundred terms. */
#define TOLERANCE 2e-5

static op_case_list cases;
static seed_options options = {.first = 1, .count = 1};
static const char *only = "";

typedef struct opened {
    prony_model *model;
    prony_session *session;
    prony_error error;
    prony_status status;
} opened;

static void open_row(opened *o, const op_case_node *row, const char *device)
{
    prony_session_options session = PRONY_SESSION_OPTIONS_INIT;
    size_t size;
    uint8_t *bytes = op_case_model(row, OP_CASE_AS_WRITTEN, &size);
    session.intra_op_threads = 1;
    session.max_loop_trips = 1000;
    session.memory_limit_bytes = (uint64_t)64 << 20;
    session.device = device;
    *o = (opened){0};
    o->status = prony_model_load_memory(&o->model, "case", bytes, size, NULL, &o->error);
    if (o->status == PRONY_OK) o->status = prony_session_create(&o->session, o->model, &session, &o->error);
    for (size_t i = 0; i < row->input_count && o->status == PRONY_OK; i++) {
        char name[24];
        snprintf(name, sizeof name, "x%zu", i);
        if (row->inputs[i] && !row->constant[i])
            o->status = prony_session_set_input(o->session, name, row->inputs[i], &o->error);
    }
    if (o->status == PRONY_OK) o->status = prony_session_run(o->session, &o->error);
    free(bytes);
}

static void close_row(opened *o)
{
    prony_session_release(o->session);
    prony_model_release(o->model);
}

static double largest_of(const float *x, size_t count)
{
    double largest = 1.0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(x[i]) && fabs((double)x[i]) > largest) largest = fabs((double)x[i]);
    return largest;
}

static bool same_output(const prony_value *host, const prony_value *device, char *message, size_t size)
{
    if (host->kind != device->kind || host->dtype != device->dtype || !prn_shape_equal(&host->shape, &device->shape)) {
        snprintf(message, size, "another type or shape");
        return false;
    }
    if (host->kind != PRONY_TENSOR || host->dtype == PRONY_STRING) return true;
    if (host->dtype != PRONY_FLOAT32) {
        if (memcmp(host->data, device->data, prn_value_bytes(host)) == 0) return true;
        snprintf(message, size, "other %s", prony_dtype_name(host->dtype));
        return false;
    }
    const float *wanted = host->data, *got = device->data;
    const size_t count = (size_t)prony_shape_numel(&host->shape);
    const double bound = TOLERANCE * largest_of(wanted, count);
    for (size_t i = 0; i < count; i++) {
        const bool numbers = isfinite(wanted[i]) && isfinite(got[i]);
        if (numbers ? fabs((double)wanted[i] - (double)got[i]) <= bound
                    : wanted[i] == got[i] || (isnan(wanted[i]) && isnan(got[i])))
            continue;
        snprintf(message, size, "element %zu is %.9g on the host, %.9g on the device", i, (double)wanted[i],
                 (double)got[i]);
        return false;
    }
    return true;
}

static uint64_t on_device, quantized_on_device; /* rows of which a step ran there; of quantized ones, once more */

static bool has_device_step(const prony_session *session)
{
    const prn_plan *plan = session->current->plan;
    for (size_t s = 0; s < plan->step_count; s++)
        if (plan->steps[s]->kernel && plan->steps[s]->kernel->memory_space) return true;
    return false;
}

static bool same_run(const op_case_node *row, char *message, size_t size)
{
    opened host, device;
    open_row(&host, row, NULL);
    open_row(&device, row, "opencl");
    bool same = host.status == device.status;
    if (!same) snprintf(message, size, "host '%.200s', device '%.200s'", host.error.message, device.error.message);
    on_device += device.status == PRONY_OK && has_device_step(device.session);
    for (size_t k = 0; same && host.status == PRONY_OK; k++) {
        const prony_value *left = NULL, *right = NULL;
        if (prony_session_output(host.session, k, &left, NULL) != PRONY_OK) break;
        same = prony_session_output(device.session, k, &right, NULL) == PRONY_OK &&
               same_output(left, right, message, size);
    }
    close_row(&host);
    close_row(&device);
    return same;
}

/* Scales and zero points become constants: one number, or a row behind the first input. false: the operator is not a
 * quantized one. */
static bool fix_parameters(op_case_node *row)
{
    const prn_op *op = prn_op_find(row->node.domain, row->node.op_type, row->node.opset);
    if (!op || !(op->flags & PRN_OP_INT_WEIGHTS || strstr(op->name, "QLinear"))) return false;
    for (size_t i = 0; i < row->input_count; i++) {
        const prony_value *value = row->inputs[i];
        if (value) row->constant[i] |= prony_shape_numel(&value->shape) == 1 || (i > 0 && value->shape.rank <= 1);
    }
    return true;
}

static bool same_runs(op_case_node *row, char *message, size_t size)
{
    if (!same_run(row, message, size)) return false;
    const uint64_t before = on_device;
    if (!fix_parameters(row)) return true;
    const bool same = same_run(row, message, size);
    quantized_on_device += on_device - before;
    on_device = before;
    return same;
}

/* Numbers that are drawn differ from run to run. */
static bool is_random(const char *op)
{
    return strstr(op, "Random") || strstr(op, "Bernoulli") || strstr(op, "Multinomial") || strstr(op, "Dropout");
}

static void test_rows(void **state)
{
    uint64_t ran = 0, failed = 0;
    char message[1024];
    (void)state;
    if (!device_here()) skip();
    for (size_t i = 0; i < cases.count; i++) {
        const op_case *c = &cases.items[i];
        op_case_node node;
        if (c->refused || is_random(c->op) || !strstr(c->op, only)) continue;
        if (!op_case_parse(&node, c, message, sizeof message)) fail_msg("%s", message);
        ran++;
        if (!same_runs(&node, message, sizeof message)) {
            failed++;
            printf("%s:%d: %s (%s; %s): %s\n", c->file, c->line, c->op, c->attributes, c->inputs, message);
        }
        op_case_node_release(&node);
    }
    printf("%" PRIu64 " rows, %" PRIu64 " with steps on the device, %" PRIu64 " quantized ones, %" PRIu64 " differ\n",
           ran, on_device, quantized_on_device, failed);
    assert_int_equal(failed, 0);
    assert_true(*only || (on_device > 400 && quantized_on_device > 100));
}

static void test_varied_rows(void **state)
{
    uint64_t ran = 0, failed = 0;
    char message[1024];
    static op_varied varied;
    const double start = seed_options_now();
    (void)state;
    if (!device_here()) skip();
    for (uint64_t seed = options.first; seed_options_include(&options, seed, start); seed++) {
        for (size_t i = 0; i < cases.count; i++) {
            op_case_node node;
            if (is_random(cases.items[i].op) || !strstr(cases.items[i].op, only)) continue;
            if (!op_vary(&varied, &cases, i, seed)) continue;
            if (!op_case_parse(&node, &varied.row, message, sizeof message)) continue;
            ran++;
            if (!same_runs(&node, message, sizeof message)) {
                failed++;
                printf("seed %" PRIu64 ", %s:%d: %s (%s; %s): %s\n", seed, varied.row.file, varied.row.line,
                       varied.row.op, varied.attributes, varied.inputs, message);
            }
            op_case_node_release(&node);
        }
    }
    printf("%" PRIu64 " varied rows, %" PRIu64 " differ\n", ran, failed);
    assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
    char message[512] = "";
    const int status = seed_options_read(&options, argc, argv, NULL, NULL);
    if (status >= 0) return status;
    if (options.only) only = options.only;
    if (!op_cases_load(&cases, PRN_SOURCE_DIR "/tests/operators/cases", message, sizeof message)) {
        print_error("%s\n", message);
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_varied_rows)};
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    op_cases_release(&cases);
    return failures;
}
