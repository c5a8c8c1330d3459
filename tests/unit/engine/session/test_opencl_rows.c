/* Pools, normalisations, softmax, reductions and attention on an OpenCL device beside the host's kernels: the rows of
 * tests/operators/cases, and shapes of their own. Without a device there is nothing to compare. */
#include "tests/support/op_case_model.h"

#include "base/shape.h"
#include "engine/session/session.h"
#include "ops/device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_OUTPUTS = 4 };

static bool has_device(void)
{
    prony_device_info info = PRONY_DEVICE_INFO_INIT;
    prony_error error;
    if (prony_device_at(&info, 0, &error) == PRONY_OK) return true;
    print_message("skipped: %s\n", error.message);
    return false;
}

/* Copies of a run's outputs, and the steps that ran on the device. */
typedef struct result {
    prony_status status;
    prony_error error;
    prony_value outputs[MOST_OUTPUTS];
    size_t output_count, device_steps;
} result;

static void keep_output(result *r, const prony_value *from)
{
    prony_value *to = &r->outputs[r->output_count++];
    const size_t bytes = prn_value_bytes(from);
    *to = *from;
    to->data = malloc(bytes + 1);
    assert_non_null(to->data);
    if (bytes) memcpy(to->data, from->data, bytes);
}

static void drop(result *r)
{
    for (size_t k = 0; k < r->output_count; k++) free(r->outputs[k].data);
    r->output_count = 0;
}

static size_t count_device_steps(const prony_session *session)
{
    const prn_plan *plan = session->current->plan;
    size_t count = 0;
    for (size_t i = 0; i < plan->step_count; i++) count += plan->steps[i]->kernel && plan->steps[i]->kernel->place;
    return count;
}

static prony_status run_session(prony_session *session, const op_case_node *row, result *out)
{
    char name[24];
    for (size_t i = 0; i < row->input_count; i++) {
        snprintf(name, sizeof name, "x%zu", i);
        if (!row->inputs[i] || row->constant[i]) continue;
        prony_status status = prony_session_set_input(session, name, row->inputs[i], &out->error);
        if (status != PRONY_OK) return status;
    }
    prony_status status = prony_session_run(session, &out->error);
    if (status != PRONY_OK) return status;
    const size_t outputs = row->output_count ? row->output_count : 1;
    for (size_t k = 0; k < outputs && k < MOST_OUTPUTS; k++) {
        const prony_value *value = NULL;
        status = prony_session_output(session, k, &value, &out->error);
        if (status != PRONY_OK) return status;
        keep_output(out, value);
    }
    out->device_steps = count_device_steps(session);
    return PRONY_OK;
}

static result run_case(const op_case_node *row, const char *device)
{
    result out = {0};
    size_t size;
    uint8_t *bytes = op_case_model(row, OP_CASE_AS_WRITTEN, &size);
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    options.device = device;
    out.status = prony_model_load_memory(&model, "case", bytes, size, NULL, &out.error);
    if (out.status == PRONY_OK) out.status = prony_session_create(&session, model, &options, &out.error);
    if (out.status == PRONY_OK) out.status = run_session(session, row, &out);
    prony_session_release(session);
    prony_model_release(model);
    free(bytes);
    return out;
}

static bool is_near(double got, double want)
{
    if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= 1e-5 * fmax(fabs(want), 1.0);
}

static void compare(const op_case *row, const result *host, const result *device)
{
    if (host->status != device->status)
        fail_msg("%s:%d: %s %s: '%s' on the host, '%s' on the device", row->file, row->line, row->op, row->inputs,
                 host->error.message, device->error.message);
    for (size_t k = 0; k < host->output_count; k++) {
        const prony_value *want = &host->outputs[k], *got = &device->outputs[k];
        assert_int_equal(got->dtype, want->dtype);
        assert_true(prn_shape_equal(&got->shape, &want->shape));
        for (int64_t i = 0; i < prony_shape_numel(&want->shape); i++)
            if (!is_near(op_case_get(got, i), op_case_get(want, i)))
                fail_msg("%s:%d: %s %s %s: element %lld of output %zu is %.9g, wanted %.9g", row->file, row->line,
                         row->op, row->attributes, row->inputs, (long long)i, k, op_case_get(got, i),
                         op_case_get(want, i));
    }
}

/* The steps that ran on the device; the same bits in a second run. */
static size_t check_case(const op_case *row)
{
    op_case_node node;
    char message[512] = "";
    if (!op_case_parse(&node, row, message, sizeof message)) fail_msg("%s:%d: %s", row->file, row->line, message);
    result host = run_case(&node, NULL), device = run_case(&node, "opencl");
    compare(row, &host, &device);
    if (device.device_steps > 0) {
        result again = run_case(&node, "opencl");
        assert_int_equal(again.output_count, device.output_count);
        for (size_t k = 0; k < device.output_count; k++)
            assert_memory_equal(again.outputs[k].data, device.outputs[k].data, prn_value_bytes(&device.outputs[k]));
        drop(&again);
    }
    const size_t steps = device.device_steps;
    drop(&host);
    drop(&device);
    op_case_node_release(&node);
    return steps;
}

/* ---- the rows of the operators' tests ---- */

static const char *const families[] = {"MaxPool",
                                       "AveragePool",
                                       "GlobalAveragePool",
                                       "GlobalMaxPool",
                                       "Softmax",
                                       "LogSoftmax",
                                       "LayerNormalization",
                                       "InstanceNormalization",
                                       "GroupNormalization",
                                       "BatchNormalization",
                                       "RMSNormalization",
                                       "LpNormalization",
                                       "SimplifiedLayerNormalization",
                                       "com.microsoft::SkipLayerNormalization",
                                       "com.microsoft::SkipSimplifiedLayerNormalization",
                                       "ReduceSum",
                                       "ReduceMean",
                                       "ReduceMax",
                                       "ReduceMin",
                                       "ReduceProd",
                                       "ReduceL1",
                                       "ReduceL2",
                                       "ReduceSumSquare",
                                       "ReduceLogSum",
                                       "ReduceLogSumExp",
                                       "ArgMax",
                                       "ArgMin",
                                       "Attention"};
enum { FAMILIES = sizeof families / sizeof *families };

static void rows_of_operators_agree(void **state)
{
    (void)state;
    if (!has_device()) return;
    op_case_list list = {0};
    char message[512] = "";
    size_t ran[FAMILIES] = {0}, all[FAMILIES] = {0};
    if (!op_cases_load(&list, PRN_SOURCE_DIR "/tests/operators/cases", message, sizeof message))
        fail_msg("%s", message);
    for (size_t i = 0; i < list.count; i++) {
        const op_case *row = &list.items[i];
        size_t f = 0;
        while (f < FAMILIES && strcmp(families[f], row->op) != 0) f++;
        if (f == FAMILIES || row->refused) continue;
        all[f]++;
        ran[f] += check_case(row) > 0;
    }
    for (size_t f = 0; f < FAMILIES; f++) {
        print_message("%s: %zu of %zu on the device\n", families[f], ran[f], all[f]);
        assert_true(ran[f] > 0 || all[f] == 0);
    }
    op_cases_release(&list);
}

/* ---- shapes of their own: all of them run on the device ---- */

#define CASE(op, opset, attributes, inputs) {__FILE__, __LINE__, false, op, attributes, inputs, opset},
static const op_case own[] =
    {CASE("MaxPool", 12, "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]", "f32[2,3,17,65]~-9:9@nan") CASE(
        "MaxPool", 12, "kernel_shape=[2,3] dilations=[3,2] ceil_mode=1",
        "f32[1,1,65,17]~-9:9@inf") CASE("MaxPool", 12, "kernel_shape=[257] pads=[256,256]", "f32[1,3,17]")
         CASE("MaxPool", 12, "kernel_shape=[2,2,2] strides=[1,2,3] auto_pad='SAME_UPPER'", "f32[1,2,5,6,7]") CASE(
             "AveragePool", 19, "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] ceil_mode=1",
             "f32[1,3,18,17]") CASE("AveragePool", 19,
                                    "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] ceil_mode=1 count_include_pad=1",
                                    "f32[1,3,18,17]") CASE("AveragePool", 19,
                                                           "kernel_shape=[3,2] dilations=[2,3] pads=[2,1,0,3] "
                                                           "count_include_pad=1",
                                                           "f32[2,1,9,11]") CASE("AveragePool",
                                                                                 19, "kernel_shape=[65] strides=[3] pads=[64,0]", "f32[1,257,65]~-1:1@inf")
             CASE("GlobalAveragePool", 1, "", "f32[3,17,1,1]") CASE("GlobalAveragePool", 1, "", "f32[1,3,17,65]") CASE(
                 "GlobalAveragePool",
                 1,
                 "",
                 "f32[2,65,257]~-1:1@nan") CASE("GlobalMaxPool", 1, "", "f32[1,257,3,1,5]~-9:9@nan")
                 CASE("Softmax", 13, "axis=-1", "f32[257,3]") CASE("Softmax", 13, "axis=-1", "f32[3,1]") CASE(
                     "Softmax",
                     13,
                     "axis=0", "f32[257]~-90:90") CASE("Softmax", 13, "axis=0", "f32[65,17]@inf")
                     CASE("Softmax", 13, "axis=1", "f32[3,17,5]~-9:9@nan") CASE("Softmax", 13, "axis=1", "f32[2,129,257]") CASE("Softmax", 13, "axis=-1", "f32[2,4]={-inf,-inf,-inf,-inf,-inf,1,2,-inf}") CASE(
                         "Softmax",
                         11,
                         "axis=1", "f32[3,17,5]") CASE("Softmax", 11, "axis=0", "f32[3,17,5]")
                         CASE("LogSoftmax", 13, "axis=1", "f32[3,257,2]~-50:50") CASE("LogSoftmax", 11, "axis=2", "f32[3,17,5]") CASE(
                             "LogSoftmax", 13, "axis=-1",
                             "f32[65,1000]") CASE("LayerNormalization", 17, "", "f32[3,17,257] f32[257] f32[257]")
                             CASE("LayerNormalization", 17, "axis=1", "f32[3,17,5] f32[17,5] f32[17,5] ->3") CASE(
                                 "LayerNormalization", 17, "",
                                 "f32[65,1] f32[1]") CASE("LayerNormalization", 17, "", "f32[1,768]~100:101 !f32[768] !f32[768]")
                                 CASE("LayerNormalization", 17, "", "f32[3,65]@nan f32[65]") CASE(
                                     "InstanceNormalization",
                                     6,
                                     "",
                                     "f32[2,3,17,5] f32[3] f32[3]") CASE("InstanceNormalization", 6, "epsilon=0.1", "f32[1,65,257]~5:6 f32[65] f32[65]")
                                     CASE("GroupNormalization", 18, "num_groups=3", "f32[2,9,17] f32[3] f32[3]") CASE(
                                         "GroupNormalization", 21, "num_groups=3",
                                         "f32[2,9,17] f32[9] f32[9]") CASE("GroupNormalization", 21, "num_groups=1",
                                                                           "f32[1,1,1] f32[1] f32[1]")
                                         CASE("BatchNormalization", 15, "", "f32[2,3,17,65] f32[3] f32[3] f32[3] f32[3]~0:2") CASE(
                                             "BatchNormalization", 15, "",
                                             "f32[257] f32[1] f32[1] f32[1] f32[1]~0:2")
                                             CASE("BatchNormalization", 15, "epsilon=0.0", "f32[2,3] f32[3] f32[3] f32[3] f32[3]={0,1,inf}") CASE(
                                                 "BatchNormalization", 7,
                                                 "spatial=0",
                                                 "f32[2,3,5] f32[3,5] f32[3,5] f32[3,5] f32[3,5]~0:2")
                                                 CASE("RMSNormalization", 23, "axis=1", "f32[3,17,5] f32[17,5]") CASE("RMSNormalization", 23, "", "f32[257,129] f32[129]") CASE(
                                                     "LpNormalization",
                                                     22,
                                                     "axis=1 p=1",
                                                     "f32[3,17,5]") CASE("LpNormalization", 22, "axis=0 p=2", "f32[2,3]={0,1,2,0,3,4}")
                                                     CASE("SimplifiedLayerNormalization", 1, "", "f32[3,17,257] f32[257] ->2") CASE(
                                                         "com.microsoft::SkipLayerNormalization",
                                                         1, "",
                                                         "f32[3,17,65] f32[3,17,65] f32[65] f32[65] f32[65]")
                                                         CASE("com.microsoft::SkipLayerNormalization", 1, "",
                                                              "f32[3,17,65] f32[17,65] f32[65]") CASE("com.microsoft::"
                                                                                                      "SkipSimplifiedLa"
                                                                                                      "yerNormalizatio"
                                                                                                      "n",
                                                                                                      1,
                                                                                                      "", "f32[1,17,65] f32[17,65] f32[65] f32[65]")
                                                             CASE("ReduceSum", 13, "", "f32[3,17,65] !i64[1]={2}") CASE(
                                                                 "ReduceSum", 13, "keepdims=0",
                                                                 "f32[3,17,65] !i64[2]={0,2}")
                                                                 CASE("ReduceSum", 13, "", "f32[257,65] !i64[1]={0}") CASE(
                                                                     "ReduceSum", 13, "",
                                                                     "f32[3,257,17]") CASE("ReduceSum", 13, "",
                                                                                           "f32[100000]~0:1") CASE("Red"
                                                                                                                   "uce"
                                                                                                                   "Su"
                                                                                                                   "m",
                                                                                                                   13,
                                                                                                                   "", "f32[2,3,2,3,2,3,2,3,2,3] !i64[5]={0,2,4,6,8}")
                                                                     CASE(
                                                                         "ReduceSum",
                                                                         13,
                                                                         "",
                                                                         "f32[1,1,1]") CASE("ReduceMean", 18, "", "f32[3,17,65]@inf !i64[1]={1}")
                                                                         CASE("ReduceMean", 13, "axes=[2,3]",
                                                                              "f32[2,3,7,7]") CASE("ReduceMax", 13,
                                                                                                   "axes=[1]", "f32[65,257]~-9:9@nan")
                                                                             CASE("ReduceMin", 13, "axes=[0]", "f32[65,257]~-9:9@nan") CASE(
                                                                                 "ReduceProd", 13, "axes=[1]",
                                                                                 "f32[17,65]~0.9:1.1")
                                                                                 CASE(
                                                                                     "ReduceL1",
                                                                                     13,
                                                                                     "axes=[0,2]",
                                                                                     "f32[17,3,65]") CASE("ReduceL2", 13, "axes=[0]", "f32[17,3,65]")
                                                                                     CASE("ReduceSumSquare", 13, "axes=[-1]", "f32[17,3,65]") CASE(
                                                                                         "ReduceLogSum",
                                                                                         13,
                                                                                         "axes=[1]",
                                                                                         "f32[17,3,65]~0:3")
                                                                                         CASE("ReduceLogSumExp", 13, "axes=[1]", "f32[17,257,3]~-90:90") CASE(
                                                                                             "ReduceLogSumExp",
                                                                                             13,
                                                                                             "axes=[1]",
                                                                                             "f32[3,2]={-inf,-inf,inf,"
                                                                                             "1,nan,1}") CASE("ArgMax", 13, "axis=1", "f32[65,257]~-9:9@nan")
                                                                                             CASE("ArgMax", 13,
                                                                                                  "axis=0",
                                                                                                  "f32[65,257]~-9:9@"
                                                                                                  "inf") CASE("ArgMax", 13, "axis=1 keepdims=0 select_last_index=1", "f32[2,6]={1,3,2,3,3,0,nan,1,nan,1,inf,0}")
                                                                                                 CASE("ArgMin", 13, "axis=1", "f32[2,6]={1,0,2,0,0,1,nan,1,nan,1,-inf,0}") CASE(
                                                                                                     "ArgMin", 13,
                                                                                                     "axis=1",
                                                                                                     "f32[3,1000,2]~-9:"
                                                                                                     "9") CASE("Attenti"
                                                                                                               "on",
                                                                                                               23, "",
                                                                                                               "f32[1,"
                                                                                                               "3,17,5]"
                                                                                                               " f32[1,"
                                                                                                               "3,65,5]"
                                                                                                               " f32[1,"
                                                                                                               "3,65,"
                                                                                                               "7]") CASE("Attention", 23, "", "f32[2,4,1,64] f32[2,4,257,64] f32[2,4,257,64]")
                                                                                                     CASE(
                                                                                                         "Attention",
                                                                                                         23, "is_causal=1",
                                                                                                         "f32[2,6,33,"
                                                                                                         "64] "
                                                                                                         "f32[2,2,33,"
                                                                                                         "64] "
                                                                                                         "f32[2,2,33,"
                                                                                                         "64]")
                                                                                                         CASE(
                                                                                                             "Attentio"
                                                                                                             "n",
                                                                                                             23,
                                                                                                             "q_num_"
                                                                                                             "heads=4 "
                                                                                                             "kv_num_"
                                                                                                             "heads=2",
                                                                                                             "f32[2,17,"
                                                                                                             "260] "
                                                                                                             "f32[2,40,"
                                                                                                             "130] "
                                                                                                             "f32[2,40,"
                                                                                                             "6]") CASE("Attention",
                                                                                                                        23,
                                                                                                                        "softcap=2.0 scale=0.5",
                                                                                                                        "f32[1,2,17,65]~-3:3 f32[1,2,17,65] f32[1,2,17,3] f32[17,17]")
                                                                                                             CASE(
                                                                                                                 "Atten"
                                                                                                                 "tion",
                                                                                                                 23,
                                                                                                                 "",
                                                                                                                 "f32["
                                                                                                                 "1,2,"
                                                                                                                 "3,16]"
                                                                                                                 " f32["
                                                                                                                 "1,2,"
                                                                                                                 "40,"
                                                                                                                 "16] "
                                                                                                                 "f32["
                                                                                                                 "1,2,"
                                                                                                                 "40,"
                                                                                                                 "16] "
                                                                                                                 "bool["
                                                                                                                 "2,3,"
                                                                                                                 "40]")
                                                                                                                 CASE(
                                                                                                                     "A"
                                                                                                                     "t"
                                                                                                                     "t"
                                                                                                                     "e"
                                                                                                                     "n"
                                                                                                                     "t"
                                                                                                                     "i"
                                                                                                                     "o"
                                                                                                                     "n",
                                                                                                                     23,
                                                                                                                     "",
                                                                                                                     "f"
                                                                                                                     "3"
                                                                                                                     "2"
                                                                                                                     "["
                                                                                                                     "1"
                                                                                                                     ","
                                                                                                                     "2"
                                                                                                                     ","
                                                                                                                     "3"
                                                                                                                     ","
                                                                                                                     "1"
                                                                                                                     "6"
                                                                                                                     "]"
                                                                                                                     " "
                                                                                                                     "f"
                                                                                                                     "3"
                                                                                                                     "2"
                                                                                                                     "["
                                                                                                                     "1"
                                                                                                                     ","
                                                                                                                     "2"
                                                                                                                     ","
                                                                                                                     "4"
                                                                                                                     "0"
                                                                                                                     ","
                                                                                                                     "1"
                                                                                                                     "6"
                                                                                                                     "]"
                                                                                                                     " "
                                                                                                                     "f"
                                                                                                                     "3"
                                                                                                                     "2"
                                                                                                                     "["
                                                                                                                     "1"
                                                                                                                     ","
                                                                                                                     "2"
                                                                                                                     ","
                                                                                                                     "4"
                                                                                                                     "0"
                                                                                                                     ","
                                                                                                                     "1"
                                                                                                                     "6"
                                                                                                                     "]"
                                                                                                                     " "
                                                                                                                     "f"
                                                                                                                     "3"
                                                                                                                     "2"
                                                                                                                     "["
                                                                                                                     "2"
                                                                                                                     ","
                                                                                                                     "1"
                                                                                                                     ","
                                                                                                                     "1"
                                                                                                                     "]"
                                                                                                                     "="
                                                                                                                     "{"
                                                                                                                     "-"
                                                                                                                     "i"
                                                                                                                     "n"
                                                                                                                     "f"
                                                                                                                     ","
                                                                                                                     "0"
                                                                                                                     "}") CASE("Attention",
                                                                                                                               23,
                                                                                                                               "",
                                                                                                                               "f32[1,2,3,16] f32[1,2,40,16] f32[1,2,40,16] f32[3,33]")
                                                                                                                     CASE(
                                                                                                                         "Attention",
                                                                                                                         23,
                                                                                                                         "",
                                                                                                                         "f32[1,1,3,256] f32[1,1,40,256]@nan f32[1,1,40,200]")
                                                                                                                         CASE(
                                                                                                                             "Attention",
                                                                                                                             23,
                                                                                                                             "",
                                                                                                                             "f32[1,1,1,1] f32[1,1,1,1] f32[1,1,1,1]")};

static void own_shapes_agree(void **state)
{
    (void)state;
    if (!has_device()) return;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (check_case(&own[i]) == 0)
            fail_msg("%s:%d: %s %s ran on the host", own[i].file, own[i].line, own[i].op, own[i].inputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_shapes_agree), cmocka_unit_test(rows_of_operators_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
