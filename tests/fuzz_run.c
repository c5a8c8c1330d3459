/* libFuzzer target: any bytes as a model, taken all the way: inspected, reported, bound, planned, run twice, its outputs
 * read. Models that would only be slow or large are left out, so that what remains is worth its time. */
#include "tests/onnx_mutate.h"

#include "prony.h"

#include <stdlib.h>
#include <string.h>

#define MOST_INPUT_BYTES ((size_t)1 << 20)
#define MOST_MEMORY_BYTES ((uint64_t)1 << 24)
#define MOST_WORK ((uint64_t)20000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* Mostly models that still parse: bytes at random hardly get past the loader, which has a target of its own. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    size_t result = seed % 16 ? onnx_mutate(data, size, most, seed) : 0;
    return result ? result : LLVMFuzzerMutate(data, size, most);
}

static void expect(bool holds)
{
    if (!holds) abort();
}

/* A failure has a status and a message, and that message ends. */
static bool ok(prony_status status, const prony_error *error)
{
    if (status == PRONY_OK) return true;
    expect(error->status == status && *error->message && memchr(error->message, 0, sizeof error->message));
    expect(status != PRONY_INTERNAL);
    return false;
}

static int swallow(void *user, const char *data, size_t size)
{
    size_t *sum = user;
    for (size_t i = 0; i < size; i++) *sum += (unsigned char)data[i];
    return 0;
}

static bool inputs_are_small(const prony_model *model)
{
    size_t left = MOST_INPUT_BYTES;
    for (size_t i = 0; i < prony_model_input_count(model); i++) {
        const prony_port *port = prony_model_input(model, i);
        prony_shape shape = port->shape;
        for (int d = 0; d < shape.rank; d++)
            if (shape.dim[d] < 0) shape.dim[d] = 1;
        int64_t count = shape.rank < 0 ? 0 : prony_shape_numel(&shape);
        size_t bytes = count < 0 ? SIZE_MAX : prony_dtype_bytes(port->dtype, count);
        if (bytes > left) return false;
        left -= bytes;
    }
    return true;
}

/* Whether the model is worth running; its report is written on the way. */
static bool inspect(prony_model *model, size_t *sum)
{
    prony_error error = {0};
    prony_report *report = NULL;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    if (!ok(prony_inspect(&report, model, NULL, &error), &error)) return false;
    (void)ok(prony_report_write(report, PRONY_FORMAT_TEXT, &options, swallow, sum, &error), &error);
    (void)ok(prony_report_write(report, PRONY_FORMAT_JSON, &options, swallow, sum, &error), &error);
    const prony_cost *cost = &prony_report_totals(report)->cost;
    bool small = cost->flops <= MOST_WORK && cost->int_ops <= MOST_WORK && cost->bytes_read <= MOST_WORK &&
                 cost->bytes_written <= MOST_WORK;
    prony_report_release(report);
    return small;
}

static void read_value(const prony_value *value, size_t *sum)
{
    for (size_t i = 0; i < value->count && value->kind != PRONY_TENSOR; i++) read_value(&value->items[i], sum);
    int64_t count = value->kind == PRONY_TENSOR ? prony_shape_numel(&value->shape) : 0;
    expect(count >= 0);
    if (count == 0) return;
    expect(value->data != NULL);
    if (value->dtype != PRONY_STRING) {
        swallow(sum, value->data, prony_dtype_bytes(value->dtype, count));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const prony_string *text = (const prony_string *)value->data + i;
        swallow(sum, text->data, text->size);
    }
}

static void run(prony_model *model, bool rewrites, size_t *sum)
{
    prony_error error = {0};
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    options.max_loop_trips = 16;
    options.memory_limit_bytes = MOST_MEMORY_BYTES;
    options.no_rewrites = !rewrites;
    if (!ok(prony_session_create(&session, model, &options, &error), &error)) return;
    bool going = ok(prony_session_generate_inputs(session, 0, &error), &error);
    for (int turn = 0; going && turn < 2; turn++) {
        going = ok(prony_session_run(session, &error), &error);
        for (size_t k = 0; going && k < prony_model_output_count(model); k++) {
            const prony_value *value;
            expect(prony_session_output(session, k, &value, &error) == PRONY_OK);
            read_value(value, sum);
        }
    }
    prony_session_release(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile size_t sink;
    prony_error error = {0};
    prony_model *model = NULL;
    size_t sum = 0;
    if (!ok(prony_model_load_memory(&model, "fuzz", data, size, NULL, &error), &error)) return 0;
    if (inspect(model, &sum) && inputs_are_small(model)) {
        run(model, true, &sum);
        run(model, false, &sum);
    }
    prony_model_release(model);
    sink = sink + sum;
    return 0;
}
