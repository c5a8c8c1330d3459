/* Pools, normalisations, softmax, reductions and attention on an OpenCL device beside the host's kernels: the rows of
 * tests/operators/cases, and shapes of their own. Without a device there is nothing to compare. */
#include "tests/support/device_here.h"
#include "tests/support/model_run.h"
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
    for (size_t i = 0; i < plan->step_count; i++)
        count += plan->steps[i]->kernel && plan->steps[i]->kernel->memory_space;
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
        if (want->dtype != PRONY_FLOAT32 && memcmp(got->data, want->data, prn_value_bytes(want)) != 0)
            fail_msg("%s:%d: %s %s: other bits", row->file, row->line, row->op, row->inputs);
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
                                       "Attention",
                                       "LRN",
                                       "MeanVarianceNormalization",
                                       "RotaryEmbedding",
                                       "com.microsoft::GroupQueryAttention",
                                       "com.microsoft::MultiHeadAttention",
                                       "com.microsoft::MatMulNBits"};
enum { FAMILIES = sizeof families / sizeof *families };

static void rows_of_operators_agree(void **state)
{
    (void)state;
    if (!device_here()) skip();
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

#define CASE(op, opset, attributes, inputs) {__FILE__, __LINE__, false, op, attributes, inputs, opset}
static const op_case own[] = {
    CASE("MaxPool", 12, "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]", "f32[2,3,17,65]~-9:9@nan"),
    CASE("MaxPool", 12, "kernel_shape=[2,3] dilations=[3,2] ceil_mode=1", "f32[1,1,65,17]~-9:9@inf"),
    CASE("MaxPool", 12, "kernel_shape=[257] pads=[256,256]", "f32[1,3,17]"),
    CASE("MaxPool", 12, "kernel_shape=[2,2,2] strides=[1,2,3] auto_pad='SAME_UPPER'", "f32[1,2,5,6,7]"),
    CASE("AveragePool", 19, "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] ceil_mode=1", "f32[1,3,18,17]"),
    CASE("AveragePool", 19, "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] ceil_mode=1 count_include_pad=1",
         "f32[1,3,18,17]"),
    CASE("AveragePool", 19, "kernel_shape=[3,2] dilations=[2,3] pads=[2,1,0,3] count_include_pad=1", "f32[2,1,9,11]"),
    CASE("AveragePool", 19, "kernel_shape=[65] strides=[3] pads=[64,0]", "f32[1,257,65]~-1:1@inf"),
    CASE("GlobalAveragePool", 1, "", "f32[3,17,1,1]"),
    CASE("GlobalAveragePool", 1, "", "f32[1,3,17,65]"),
    CASE("GlobalAveragePool", 1, "", "f32[2,65,257]~-1:1@nan"),
    CASE("GlobalMaxPool", 1, "", "f32[1,257,3,1,5]~-9:9@nan"),
    CASE("Softmax", 13, "axis=-1", "f32[257,3]"),
    CASE("Softmax", 13, "axis=-1", "f32[3,1]"),
    CASE("Softmax", 13, "axis=0", "f32[257]~-90:90"),
    CASE("Softmax", 13, "axis=0", "f32[65,17]@inf"),
    CASE("Softmax", 13, "axis=1", "f32[3,17,5]~-9:9@nan"),
    CASE("Softmax", 13, "axis=1", "f32[2,129,257]"),
    CASE("Softmax", 13, "axis=-1", "f32[2,4]={-inf,-inf,-inf,-inf,-inf,1,2,-inf}"),
    CASE("Softmax", 11, "axis=1", "f32[3,17,5]"),
    CASE("Softmax", 11, "axis=0", "f32[3,17,5]"),
    CASE("LogSoftmax", 13, "axis=1", "f32[3,257,2]~-50:50"),
    CASE("LogSoftmax", 11, "axis=2", "f32[3,17,5]"),
    CASE("LogSoftmax", 13, "axis=-1", "f32[65,1000]"),
    CASE("LayerNormalization", 17, "", "f32[3,17,257] f32[257] f32[257]"),
    CASE("LayerNormalization", 17, "axis=1", "f32[3,17,5] f32[17,5] f32[17,5] ->3"),
    CASE("LayerNormalization", 17, "", "f32[65,1] f32[1]"),
    CASE("LayerNormalization", 17, "", "f32[1,768]~100:101 !f32[768] !f32[768]"),
    CASE("LayerNormalization", 17, "", "f32[3,65]@nan f32[65]"),
    CASE("InstanceNormalization", 6, "", "f32[2,3,17,5] f32[3] f32[3]"),
    CASE("InstanceNormalization", 6, "epsilon=0.1", "f32[1,65,257]~5:6 f32[65] f32[65]"),
    CASE("GroupNormalization", 18, "num_groups=3", "f32[2,9,17] f32[3] f32[3]"),
    CASE("GroupNormalization", 21, "num_groups=3", "f32[2,9,17] f32[9] f32[9]"),
    CASE("GroupNormalization", 21, "num_groups=1", "f32[1,1,1] f32[1] f32[1]"),
    CASE("BatchNormalization", 15, "", "f32[2,3,17,65] f32[3] f32[3] f32[3] f32[3]~0:2"),
    CASE("BatchNormalization", 15, "", "f32[257] f32[1] f32[1] f32[1] f32[1]~0:2"),
    CASE("BatchNormalization", 15, "epsilon=0.0", "f32[2,3] f32[3] f32[3] f32[3] f32[3]={0,1,inf}"),
    CASE("BatchNormalization", 7, "spatial=0", "f32[2,3,5] f32[3,5] f32[3,5] f32[3,5] f32[3,5]~0:2"),
    CASE("RMSNormalization", 23, "axis=1", "f32[3,17,5] f32[17,5]"),
    CASE("RMSNormalization", 23, "", "f32[257,129] f32[129]"),
    CASE("LpNormalization", 22, "axis=1 p=1", "f32[3,17,5]"),
    CASE("LpNormalization", 22, "axis=0 p=2", "f32[2,3]={0,1,2,0,3,4}"),
    CASE("SimplifiedLayerNormalization", 1, "", "f32[3,17,257] f32[257] ->2"),
    CASE("com.microsoft::SkipLayerNormalization", 1, "", "f32[3,17,65] f32[3,17,65] f32[65] f32[65] f32[65]"),
    CASE("com.microsoft::SkipLayerNormalization", 1, "", "f32[3,17,65] f32[17,65] f32[65]"),
    CASE("com.microsoft::SkipSimplifiedLayerNormalization", 1, "", "f32[1,17,65] f32[17,65] f32[65] f32[65]"),
    CASE("ReduceSum", 13, "", "f32[3,17,65] !i64[1]={2}"),
    CASE("ReduceSum", 13, "keepdims=0", "f32[3,17,65] !i64[2]={0,2}"),
    CASE("ReduceSum", 13, "", "f32[257,65] !i64[1]={0}"),
    CASE("ReduceSum", 13, "", "f32[3,257,17]"),
    CASE("ReduceSum", 13, "", "f32[100000]~0:1"),
    CASE("ReduceSum", 13, "", "f32[2,3,2,3,2,3,2,3,2,3] !i64[5]={0,2,4,6,8}"),
    CASE("ReduceSum", 13, "", "f32[1,1,1]"),
    CASE("ReduceMean", 18, "", "f32[3,17,65]@inf !i64[1]={1}"),
    CASE("ReduceMean", 13, "axes=[2,3]", "f32[2,3,7,7]"),
    CASE("ReduceMax", 13, "axes=[1]", "f32[65,257]~-9:9@nan"),
    CASE("ReduceMin", 13, "axes=[0]", "f32[65,257]~-9:9@nan"),
    CASE("ReduceProd", 13, "axes=[1]", "f32[17,65]~0.9:1.1"),
    CASE("ReduceL1", 13, "axes=[0,2]", "f32[17,3,65]"),
    CASE("ReduceL2", 13, "axes=[0]", "f32[17,3,65]"),
    CASE("ReduceSumSquare", 13, "axes=[-1]", "f32[17,3,65]"),
    CASE("ReduceLogSum", 13, "axes=[1]", "f32[17,3,65]~0:3"),
    CASE("ReduceLogSumExp", 13, "axes=[1]", "f32[17,257,3]~-90:90"),
    CASE("ReduceLogSumExp", 13, "axes=[1]", "f32[3,2]={-inf,-inf,inf,1,nan,1}"),
    CASE("ArgMax", 13, "axis=1", "f32[65,257]~-9:9@nan"),
    CASE("ArgMax", 13, "axis=0", "f32[65,257]~-9:9@inf"),
    CASE("ArgMax", 13, "axis=1 keepdims=0 select_last_index=1", "f32[2,6]={1,3,2,3,3,0,nan,1,nan,1,inf,0}"),
    CASE("ArgMin", 13, "axis=1", "f32[2,6]={1,0,2,0,0,1,nan,1,nan,1,-inf,0}"),
    CASE("ArgMin", 13, "axis=1", "f32[3,1000,2]~-9:9"),
    CASE("Attention", 23, "", "f32[1,3,17,5] f32[1,3,65,5] f32[1,3,65,7]"),
    CASE("Attention", 23, "", "f32[2,4,1,64] f32[2,4,257,64] f32[2,4,257,64]"),
    CASE("Attention", 23, "is_causal=1", "f32[2,6,33,64] f32[2,2,33,64] f32[2,2,33,64]"),
    CASE("Attention", 23, "q_num_heads=4 kv_num_heads=2", "f32[2,17,260] f32[2,40,130] f32[2,40,6]"),
    CASE("Attention", 23, "softcap=2.0 scale=0.5", "f32[1,2,17,65]~-3:3 f32[1,2,17,65] f32[1,2,17,3] f32[17,17]"),
    CASE("Attention", 23, "", "f32[1,2,3,16] f32[1,2,40,16] f32[1,2,40,16] bool[2,3,40]"),
    CASE("Attention", 23, "", "f32[1,2,3,16] f32[1,2,40,16] f32[1,2,40,16] f32[2,1,1]={-inf,0}"),
    CASE("Attention", 23, "", "f32[1,2,3,16] f32[1,2,40,16] f32[1,2,40,16] f32[3,33]"),
    CASE("Attention", 23, "", "f32[1,1,3,256] f32[1,1,40,256]@nan f32[1,1,40,200]"),
    CASE("Attention", 23, "", "f32[1,1,1,1] f32[1,1,1,1] f32[1,1,1,1]"),
    CASE("MaxPool", 12, "kernel_shape=[3,2] strides=[2,1] pads=[1,1,1,0]", "f32[2,3,17,13]~-9:9@nan ->2"),
    CASE("MaxPool", 12, "kernel_shape=[3,3] dilations=[2,3] storage_order=1", "f32[1,2,19,23]~-9:9@inf ->2"),
    CASE("MaxPool", 12, "kernel_shape=[2,2,2] pads=[1,0,1,0,1,0]", "f32[1,2,5,6,7]~-1:1 ->2"),
    CASE("MaxPool", 12, "kernel_shape=[3] strides=[3] pads=[2,2]",
         "f32[1,2,7]={0,0,0,5,5,nan,nan,1,2,3,3,2,1,inf} ->2"),
    CASE("LRN", 13, "size=5 alpha=0.5", "f32[2,7,17,3]~-3:3"),
    CASE("LRN", 13, "size=4 beta=1.5 bias=2.0 alpha=0.1", "f32[1,65,9]"),
    CASE("LRN", 13, "size=300", "f32[2,17,5]"),
    CASE("MeanVarianceNormalization", 13, "", "f32[2,3,17,5]~4:5"),
    CASE("MeanVarianceNormalization", 13, "axes=[0]", "f32[257,3,2]"),
    CASE("MeanVarianceNormalization", 13, "axes=[0,1,2,3]", "f32[3,2,5,129]"),
    CASE("MeanVarianceNormalization", 13, "axes=[1,3]", "f32[3,17,5,9]"),
    CASE("Gather", 13, "axis=1", "f32[3,17,5] i64[2,4]={0,-1,16,3,3,-17,2,9}"),
    CASE("Gather", 13, "axis=0", "f32[65,7] i32[]={-2}"),
    CASE("Gather", 13, "axis=-1", "bool[2,3,9] i64[3]={8,0,-9}"),
    CASE("Gather", 13, "axis=0", "!f32[5,3] i64[9]={4,3,2,1,0,-1,-2,-3,-5}"),
    CASE("GatherElements", 13, "axis=1", "f32[2,5,3] i64[2,2,3]={0,1,2,3,4,-1,-2,-3,-4,-5,0,1}"),
    CASE("GatherND", 13, "", "f32[3,4,5] i64[2,2]={0,-1,2,3}"),
    CASE("GatherND", 13, "batch_dims=1", "f32[2,4,5] i64[2,3,1]={0,1,2,3,-1,-4}"),
    CASE("RotaryEmbedding", 23, "",
         "f32[2,3,17,8] f32[40,4] f32[40,4] "
         "i64[2,17]={0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,39,38,37,36,35,34,33,32,31,"
         "30,29,28,27,26,25,24,23}"),
    CASE("RotaryEmbedding", 23, "num_heads=3 interleaved=1 rotary_embedding_dim=4",
         "f32[2,5,24] f32[2,5,2] f32[2,5,2]"),
    CASE("com.microsoft::RotaryEmbedding", 1, "", "f32[1,2,5,6] i64[1]={3} f32[9,3] f32[9,3]"),
    CASE("com.microsoft::GroupQueryAttention", 1, "num_heads=4 kv_num_heads=2",
         "f32[2,37,256] f32[2,37,128] f32[2,37,128] ? ? i32[2]={36,20} !i32[1]={37} ->3"),
    CASE("com.microsoft::GroupQueryAttention", 1, "num_heads=8 kv_num_heads=1 do_rotary=1 local_window_size=7",
         "f32[2,1,640] ? ? f32[2,1,70,64] f32[2,1,70,64] i32[2]={69,3} !i32[1]={70} f32[80,32] f32[80,32] ->3"),
    CASE("com.microsoft::GroupQueryAttention", 1, "num_heads=4 kv_num_heads=4 smooth_softmax=1 softcap=1.5",
         "f32[1,3,80] f32[1,3,80] f32[1,3,80] f32[1,4,9,20] f32[1,4,9,20] i32[1]={8} !i32[1]={9} ? ? ? f32[1,4,3,9] "
         "->3"),
    CASE("com.microsoft::GroupQueryAttention", 1, "num_heads=6 kv_num_heads=2",
         "f32[3,1,96] f32[3,1,32] f32[3,1,32] f32[3,2,5,16] f32[3,2,5,16] i32[3]={4,0,2} !i32[1]={5} ? ? ? "
         "f32[3,6,1,5] f32[6] ->3"),
    CASE("com.microsoft::MultiHeadAttention", 1, "num_heads=4", "f32[2,7,24] f32[2,9,24] f32[2,9,16] f32[64]"),
    CASE("com.microsoft::MultiHeadAttention", 1, "num_heads=2",
         "f32[2,33,64] f32[2,65,64] f32[2,65,64] f32[192] "
         "i32[2]={65,20}"),
    CASE("com.microsoft::MultiHeadAttention", 1, "num_heads=3 mask_filter_value=-50.0",
         "f32[1,4,3,3,6] ? ? !f32[54] i32[1,4]={1,0,1,1}"),
    CASE("com.microsoft::MultiHeadAttention", 1, "num_heads=2 unidirectional=1", "f32[1,17,12] f32[1,17,2,2,6]"),
    CASE("com.microsoft::MultiHeadAttention", 1, "num_heads=2 scale=0.3",
         "f32[2,4,12] f32[2,2,5,6] f32[2,2,5,6] f32[36] ? f32[1,2,4,5]"),
    CASE("com.microsoft::MatMulNBits", 1, "K=65 N=9 bits=4 block_size=16",
         "f32[3,65] !u8[9,5,8]~0:255 !f32[9,5]~0.001:0.01 !u8[9,3]~0:255 ? f32[9]"),
    CASE("com.microsoft::MatMulNBits", 1, "K=64 N=5 bits=8 block_size=32",
         "f32[2,17,64] !u8[5,2,32]~0:255 !f32[5,2]~0.0001:0.001"),
    CASE("com.microsoft::MatMulNBits", 1, "K=100 N=33 bits=2 block_size=16",
         "f32[1,100] !u8[33,7,4]~0:255 !f32[33,7]~0.001:0.01 !f32[33,7]"),
    CASE("MatMulInteger", 10, "", "u8[3,37]~0:255 i8[37,65]~-128:127 u8[]={130} i8[65]~-128:127"),
    CASE("MatMulInteger", 10, "", "i8[2,3,129]~-128:127 u8[2,129,33]~0:255 i8[]={-5}"),
    CASE("MatMulInteger", 10, "", "u8[33,1000]~0:255 !u8[1000,2]~0:255"),
    CASE("QLinearMatMul", 10, "",
         "u8[3,37]~0:255 !f32[]={0.02} !u8[]={120} i8[37,65]~-128:127 !f32[65]~0.001:0.05 !i8[65]~-9:9 !f32[]={0.9} "
         "!u8[]={7}"),
    CASE("QLinearMatMul", 10, "",
         "i8[2,4,300]~-128:127 !f32[]={0.02} !i8[]={-3} u8[2,300,33]~0:255 !f32[]={0.01} !u8[]={100} !f32[]={0.7} "
         "!i8[]={0}"),
    CASE("com.microsoft::QGemm", 1, "transB=1 alpha=0.5",
         "u8[9,65]~0:255 !f32[]={0.02} !u8[]={120} !i8[40,65]~-128:127 !f32[40]~0.001:0.05 !i8[40]~-9:9 "
         "!i32[40]~-9000:9000 !f32[]={0.3} !i8[]={5}"),
    CASE("com.microsoft::QGemm", 1, "transA=1",
         "u8[65,9]~0:255 !f32[]={0.02} !u8[]={120} !u8[65,7]~0:255 !f32[]={0.004} !u8[]={90}"),
    CASE("com.microsoft::MatMulIntegerToFloat", 1, "",
         "u8[2,3,70]~0:255 i8[70,33]~-128:127 !f32[]={0.03} !f32[33]~0.001:0.02 u8[]={9} i8[33]~-3:3 f32[33]"),
    CASE("MatMul", 13, "", "f32[1,257] f32[257,129]"),
    CASE("MatMul", 13, "", "f32[3,4,5,17] f32[3,1,17,33]"),
    CASE("MatMul", 13, "", "f32[8,3] f32[3,1]"),
    CASE("Gemm", 13, "transB=1 alpha=0.5 beta=2.0", "f32[1,300] f32[65,300] f32[65]"),
    CASE("Gemm", 13, "transA=1 transB=1", "f32[33,7] f32[9,33] f32[7,1]"),
    CASE("Gemm", 13, "", "f32[5,33] f32[33,100]"),
};

static void own_shapes_agree(void **state)
{
    (void)state;
    if (!device_here()) skip();
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (check_case(&own[i]) == 0)
            fail_msg("%s:%d: %s %s ran on the host", own[i].file, own[i].line, own[i].op, own[i].inputs);
}

/* ---- models that rewrites change ---- */

enum { MOST_ELEMENTS = 1 << 16 };
static float numbers[4][MOST_ELEMENTS];

static void fill_numbers(void)
{
    uint32_t seed = 11;
    for (int i = 0; i < 4; i++)
        for (int e = 0; e < MOST_ELEMENTS; e++) {
            seed = seed * 1664525u + 1013904223u;
            numbers[i][e] = (float)(seed >> 8) / 8388608.0f - 1.0f;
        }
}

/* Attention written out: softmax(q k^T / 2 + mask) v, or Where(mask > 0, scores, -1e4) in place of the sum. */
typedef struct attention_case {
    const char *q, *k, *v, *mask; /* NULL: none */
    bool chosen;
    int dark; /* of the mask's elements, those from here on are -infinity, but for the last one; -1: none */
} attention_case;

static model_builder *attention_of(const attention_case *of)
{
    const float half = 0.5f, low = -1e4f, zero = 0.0f;
    model_builder *m = mb_begin(17);
    mb_input(m, "q", PRONY_FLOAT32, of->q);
    mb_input(m, "k", PRONY_FLOAT32, of->k);
    mb_input(m, "v", PRONY_FLOAT32, of->v);
    if (of->mask) mb_input(m, "mask", PRONY_FLOAT32, of->mask);
    mb_initializer(m, "half", PRONY_FLOAT32, "", &half);
    mb_initializer(m, "low", PRONY_FLOAT32, "", &low);
    mb_initializer(m, "zero", PRONY_FLOAT32, "", &zero);
    mb_node(m, "Transpose", "k", "kt", "perm=[0,1,3,2]");
    mb_node(m, "MatMul", "q kt", "s", "");
    mb_node(m, "Mul", "s half", "c", "");
    if (of->chosen) mb_node(m, "Greater", "mask zero", "b", "");
    if (of->mask) mb_node(m, of->chosen ? "Where" : "Add", of->chosen ? "b c low" : "c mask", "a", "");
    mb_node(m, "Softmax", of->mask ? "a" : "c", "p", "axis=-1");
    mb_node(m, "MatMul", "p v", "y", "");
    mb_output(m, "y", PRONY_UNDEFINED, NULL);
    return m;
}

static bool ran(const model_run *r, const char *kernel)
{
    const prn_plan *plan = r->session->current->plan;
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i]->kernel && strcmp(plan->steps[i]->kernel->name, kernel) == 0) return true;
    return false;
}

static void expect_equal_results(model_run *host, model_run *device)
{
    const prony_value *want = mr_run(host, 0), *got = mr_run(device, 0);
    assert_true(prn_shape_equal(&want->shape, &got->shape));
    for (int64_t i = 0; i < prony_shape_numel(&want->shape); i++)
        if (!is_near((double)((const float *)got->data)[i], (double)((const float *)want->data)[i]))
            fail_msg("element %lld is %.9g, wanted %.9g", (long long)i, (double)((const float *)got->data)[i],
                     (double)((const float *)want->data)[i]);
}

static void attention_agrees(void **state)
{
    static const attention_case of[] = {{"1,2,17,5", "1,2,17,5", "1,2,17,3", NULL, false, -1},
                                        {"2,3,65,64", "2,3,257,64", "2,3,257,64", NULL, false, -1},
                                        {"1,2,17,16", "1,2,65,16", "1,2,65,1", "1,1,17,65", false, -1},
                                        {"1,2,3,16", "1,2,65,16", "1,2,65,8", "1,1,1,65", false, 1},
                                        {"2,1,3,16", "2,1,40,16", "2,1,40,8", "2,1,3,40", false, 7},
                                        {"1,2,1,128", "1,2,100,128", "1,2,100,128", "1,2,1,100", true, -1},
                                        {"1,1,1,1", "1,1,1,1", "1,1,1,1", NULL, false, -1},
                                        {"1,1,9,256", "1,1,33,256", "1,1,33,200", "33", true, 5}};
    (void)state;
    if (!device_here()) skip();
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        model_run runs[2] = {{.options = {.device = NULL}}, {.options = {.device = "opencl"}}};
        fill_numbers();
        if (of[i].mask) {
            const prony_shape shape = mr_shape(of[i].mask);
            const int64_t count = prony_shape_numel(&shape);
            for (int64_t e = of[i].dark; of[i].dark >= 0 && e < count - 1; e++) numbers[3][e] = -INFINITY;
        }
        for (int d = 0; d < 2; d++) {
            mr_open(&runs[d], attention_of(&of[i]));
            mr_set(&runs[d], "q", PRONY_FLOAT32, of[i].q, numbers[0]);
            mr_set(&runs[d], "k", PRONY_FLOAT32, of[i].k, numbers[1]);
            mr_set(&runs[d], "v", PRONY_FLOAT32, of[i].v, numbers[2]);
            if (of[i].mask) mr_set(&runs[d], "mask", PRONY_FLOAT32, of[i].mask, numbers[3]);
        }
        print_message("attention %zu\n", i);
        expect_equal_results(&runs[0], &runs[1]);
        assert_true(ran(&runs[1], "attention_f32_opencl"));
        mr_close(&runs[0]);
        mr_close(&runs[1]);
    }
}

/* Two post-operations of a normalisation. */
static void post_operations_agree(void **state)
{
    static const struct {
        const char *op, *attributes, *kernel;
    } of[] = {{"InstanceNormalization", "", "instance_norm_f32_opencl"},
              {"GroupNormalization", "num_groups=1", "group_norm_f32_opencl"}};
    (void)state;
    if (!device_here()) skip();
    fill_numbers();
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        model_run runs[2] = {{.options = {.device = NULL}}, {.options = {.device = "opencl"}}};
        for (int d = 0; d < 2; d++) {
            model_builder *m = mb_begin(21);
            mb_input(m, "x", PRONY_FLOAT32, "2,3,17,5");
            mb_input(m, "r", PRONY_FLOAT32, "2,3,17,5");
            mb_initializer(m, "scale", PRONY_FLOAT32, "3", numbers[2]);
            mb_initializer(m, "bias", PRONY_FLOAT32, "3", numbers[3]);
            mb_node(m, of[i].op, "x scale bias", "n", of[i].attributes);
            mb_node(m, "Add", "n r", "s", "");
            mb_node(m, "Relu", "s", "y", "");
            mb_output(m, "y", PRONY_FLOAT32, "2,3,17,5");
            mr_open(&runs[d], m);
            mr_set(&runs[d], "x", PRONY_FLOAT32, "2,3,17,5", numbers[0]);
            mr_set(&runs[d], "r", PRONY_FLOAT32, "2,3,17,5", numbers[1]);
        }
        expect_equal_results(&runs[0], &runs[1]);
        assert_true(ran(&runs[1], of[i].kernel));
        mr_close(&runs[0]);
        mr_close(&runs[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention_agrees), cmocka_unit_test(post_operations_agree),
                                       cmocka_unit_test(own_shapes_agree), cmocka_unit_test(rows_of_operators_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
