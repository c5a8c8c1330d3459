/* Measures how far an operator continues after a cancellation. One page of its input is unreadable at first, and
 * reading it cancels the run. Bytes more than BOUND behind stay unreadable, so reading them shows that the operator
 * tested too seldom. Uses no clock. */
#include "failure_trace.h"
#include "tests/support/large_node.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define BOUND ((size_t)16 << 20)

static prony_session *session;
static uint8_t *volatile closed, *closed_end; /* of what cannot be read; whole pages */
static volatile sig_atomic_t touched, went_on;

static void open_pages(uint8_t *end)
{
    (void)!mprotect(closed, (size_t)(end - closed), PROT_READ | PROT_WRITE);
    closed = end;
}

static void on_access(int signal, siginfo_t *info, void *context)
{
    uint8_t *at = info->si_addr;
    (void)context;
    if (!closed || at < closed || at >= closed_end) { /* a fault outside the protected pages */
        struct sigaction none = {.sa_handler = SIG_DFL};
        sigaction(signal, &none, NULL);
        return;
    }
    prony_session_cancel(session);
    bool first = !touched;
    touched = 1;
    went_on = !first;
    open_pages(first && (size_t)(closed_end - at) > BOUND
                   ? at - (uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE) + BOUND
                   : closed_end);
}

/* The last three quarters of the session's input `index`. */
static void close_input(size_t index)
{
    const prony_value *value = prony_session_input_value(session, index);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = prony_dtype_bytes(value->dtype, prony_shape_numel(&value->shape));
    uint8_t *data = value->data;
    assert_true(bytes > 4 * BOUND);
    closed = data + bytes / 4 + page - (uintptr_t)(data + bytes / 4) % page;
    closed_end = data + bytes - (uintptr_t)(data + bytes) % page;
    touched = went_on = 0;
    assert_int_equal(mprotect(closed, (size_t)(closed_end - closed), PROT_NONE), 0);
}

/* Makes the session; returns the block to free after it. */
static model_builder *open_node(const large_node *node, prony_model **model)
{
    prony_error error = {0};
    large_input inputs[LARGE_MOST_INPUTS] = {0};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    size_t size;
    options.intra_op_threads = 1; /* each of several reads at its own position */
    int count = large_inputs_make(node, inputs);
    model_builder *m = large_model(node, inputs, count);
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(model, node->name, bytes, size, NULL, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    if (prony_session_create(&session, *model, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    for (int i = 0; i < count; i++) {
        if (!inputs[i].constant && inputs[i].name[0] != '?' &&
            prony_session_set_input(session, inputs[i].name, &inputs[i].value, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        free(inputs[i].value.data);
    }
    return m;
}

static void check(const large_node *node, size_t closed_input)
{
    prony_error error = {0};
    prony_model *model = NULL;
    model_builder *m = open_node(node, &model);
    if (prony_session_prepare(session, &error) != PRONY_OK) fail_msg("%s", error.message);
    struct sigaction action = {.sa_sigaction = on_access, .sa_flags = SA_SIGINFO | SA_NODEFER}, former; /* cmocka's */
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &former);
    close_input(closed_input);
    prony_status status = prony_session_run(session, &error);
    sigaction(SIGSEGV, &former, NULL);
    if (closed < closed_end) open_pages(closed_end);
    closed = NULL;
    if (!touched) fail_msg("%s: never read its input", node->name);
    if (went_on) fail_msg("%s: read on for more than %zu MiB", node->name, BOUND >> 20);
    if (status != PRONY_CANCELLED) fail_msg("%s: status %d, %s", node->name, (int)status, error.message);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

/* ---- pages written for the first time, each of which the system may have to clear: 2 MiB for large pages */

enum { MOST_PAGES = 64 };
static volatile sig_atomic_t pages;

static void on_page(int signal, siginfo_t *info, void *context)
{
    uint8_t *at = info->si_addr;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)context;
    if (!closed || at < closed || at >= closed_end) { /* a fault outside the protected pages */
        struct sigaction none = {.sa_handler = SIG_DFL};
        sigaction(signal, &none, NULL);
        return;
    }
    prony_session_cancel(session);
    pages++;
    (void)!mprotect(at - (uintptr_t)at % page, page, PROT_READ | PROT_WRITE);
}

/* Planes of several pages, written a few elements at a time. */
static void few_planes_are_touched(void **state)
{
    (void)state;
    static const large_node nodes[] = {
        {"GridSample in pieces", "GridSample", 16, "f1,1000,4,4 f1,64,64,2", "", 0, 0},
        {"GridSample of one point by one", "GridSample", 16, "d1,1000,4,4 d1,64,64,2", "mode='bicubic'", 0, 0},
        {"GridSample from outside", "GridSample", 16, "f1,1000,1,1 f1,64,64,2", "mode='bicubic'", 0, 0},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        SCENARIO(i);
        prony_error error = {0};
        prony_model *model = NULL;
        model_builder *m = open_node(&nodes[i], &model);
        const size_t bytes = (size_t)1000 * 64 * 64 * (nodes[i].inputs[0] == 'd' ? sizeof(double) : sizeof(float));
        uint8_t *y = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(y != MAP_FAILED);
        if (prony_session_bind_output(session, 0, y, bytes, &error) != PRONY_OK) fail_msg("%s", error.message);
        if (prony_session_prepare(session, &error) != PRONY_OK) fail_msg("%s", error.message);
        struct sigaction action = {.sa_sigaction = on_page, .sa_flags = SA_SIGINFO | SA_NODEFER}, former;
        sigemptyset(&action.sa_mask);
        sigaction(SIGSEGV, &action, &former);
        closed = y;
        closed_end = y + bytes;
        pages = 0;
        prony_status status = prony_session_run(session, &error);
        closed = NULL;
        sigaction(SIGSEGV, &former, NULL);
        if (status != PRONY_CANCELLED) fail_msg("%s: status %d, %s", nodes[i].name, (int)status, error.message);
        if (pages < 1 || pages > MOST_PAGES) fail_msg("%s: wrote to %d pages", nodes[i].name, (int)pages);
        prony_session_release(session);
        prony_model_release(model);
        mb_free(m);
        munmap(y, bytes);
    }
}

/* One row, window or sum of 80 MiB each, read from its beginning to its end. */
static void long_rows_are_left(void **state)
{
    (void)state;
    static const struct {
        large_node node;
        size_t closed;
    } rows[] = {
        {{"Softmax", "Softmax", 13, "f1,20000000", "", 0, 0}, 0},
        {{"QLinearSoftmax", "com.microsoft::QLinearSoftmax", 1, "u1,80000000 !f1=1 ? !f1=1", "opset=13", 0, 0}, 0},
        {{"QLinearReduceMean", "com.microsoft::QLinearReduceMean", 1, "u1,80000000 !f1=1 ? !f1=1", "axes=[1]", 0, 0},
         0},
        {{"LogSoftmax", "LogSoftmax", 13, "f1,20000000", "", 0, 0}, 0},
        {{"Hardmax", "Hardmax", 13, "f1,20000000", "", 0, 0}, 0},
        {{"LayerNormalization", "LayerNormalization", 17, "f1,20000000 f20000000", "", 0, 0}, 0},
        {{"LayerNormalization scale", "LayerNormalization", 17, "f1,20000000 f20000000", "", 0, 0}, 1},
        {{"RMSNormalization", "RMSNormalization", 23, "f1,20000000 f20000000", "", 0, 0}, 0},
        {{"InstanceNormalization", "InstanceNormalization", 11, "f1,1,20000000 f1 f1", "", 0, 0}, 0},
        {{"BatchNormalization", "BatchNormalization", 15, "f1,1,20000000 f1 f1 f1 f1", "", 0, 0}, 0},
        {{"LpNormalization", "LpNormalization", 1, "f1,20000000", "p=1", 0, 0}, 0},
        {{"SkipLayerNormalization", "com.microsoft::SkipLayerNormalization", 17,
          "f1,1,20000000 f1,1,20000000 f20000000 f20000000", "", 0, 0},
         1},
        {{"ReduceSum", "ReduceSum", 13, "f20000000", "", 0, 0}, 0},
        {{"ReduceMax", "ReduceMax", 13, "f20000000", "", 0, 0}, 0},
        {{"ReduceMin of bytes", "ReduceMin", 13, "u80000000", "", 0, 0}, 0},
        {{"ReduceL2 in double", "ReduceL2", 13, "d10000000", "", 0, 0}, 0},
        {{"ArgMax", "ArgMax", 13, "f1,20000000", "axis=1", "i", 0}, 0},
        {{"CumSum", "CumSum", 14, "f20000000 !i=0", "", 0, 0}, 0},
        {{"Transpose", "Transpose", 13, "f10000000,2", "perm=[1,0]", 0, 0}, 0},
        {{"Resize linear", "Resize", 13, "f1,1,1,20000000 ? !f4=1,1,1,2", "mode='linear'", 0, 0}, 0},
        {{"Resize nearest", "Resize", 13, "f1,1,1,20000000 ? !f4=1,1,1,2", "mode='nearest'", 0, 0}, 0},
        {{"Resize cubic", "Resize", 13, "f1,1,1,20000000 ? !f4=1,1,1,2", "mode='cubic'", 0, 0}, 0},
        {{"Attention keys", "Attention", 23, "f1,1,1,1 f1,1,20000000,1 f1,1,20000000,1", "", 0, 0}, 1},
        {{"Attention values", "Attention", 23, "f1,1,1,1 f1,1,20000000,1 f1,1,20000000,1", "", 0, 0}, 2},
        {{"MatMul of a row", "MatMul", 13, "f1,20000000 f20000000,1", "", 0, 0}, 0},
        {{"MatMul in double", "MatMul", 13, "d1,10000000 d10000000,1", "", 0, 0}, 0},
        {{"MatMul of half precision", "MatMul", 13, "h1,40000000 h40000000,1", "", 0, 0}, 0},
        {{"MatMul of integers", "MatMul", 13, "j1,20000000 j20000000,1", "", 0, 0}, 0},
        {{"MatMulInteger", "MatMulInteger", 13, "u1,80000000 u80000000,1", "", "j", 0}, 0},
        {{"Conv that packs its weights", "Conv", 13, "f1,256,10,10 f2048,256,7,7", "pads=[3,3,3,3]", 0, 0}, 1},
        {{"Conv of one output", "Conv", 13, "f1,1,20000000 f1,1,20000000", "", 0, 0}, 1},
        {{"Conv of one large image", "Conv", 13, "f1,1,4400,4400 !f1,1,9,9", "pads=[4,4,4,4] strides=[2,2]", 0, 0}, 0},
        {{"MaxPool", "MaxPool", 12, "f1,1,20000000", "kernel_shape=[20000000]", 0, 0}, 0},
        {{"AveragePool", "AveragePool", 12, "f1,1,4000,5000", "kernel_shape=[4000,5000]", 0, 0}, 0},
        {{"GlobalAveragePool", "GlobalAveragePool", 1, "f1,1,20000000", "", 0, 0}, 0},
        {{"Gather of one block", "Gather", 13, "f1,20000000 i1=0", "", 0, 0}, 0},
        {{"Pad", "Pad", 13, "f20000000 !i2=5,5", "mode='edge'", 0, 0}, 0},
        {{"NonZero", "NonZero", 13, "f20000000", "", "i", 0}, 0},
        {{"NonZero of bytes", "NonZero", 13, "u80000000", "", "i", 0}, 0},
        {{"Trilu", "Trilu", 14, "f1,20000000", "", 0, 0}, 0},
        {{"SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyLoss", 13, "f1,20000000 i1%2", "", 0, 0}, 0},
        {{"Multinomial", "Multinomial", 7, "f1,20000000", "sample_size=10", "j", 0}, 0},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) check(&rows[r].node, rows[r].closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_planes_are_touched), cmocka_unit_test(long_rows_are_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
