/* libFuzzer target: any bytes as a model, taken all the way: inspected, reported, bound, planned, run twice, its
 * outputs read. The target skips models that would only be slow or large. PRN_FUZZ_SEEDS names a folder; the target
 * first writes each row of tests/operators/cases to it as a model, so that the seeds cover all operators. */
#include "tests/support/onnx_mutate.h"
#include "tests/support/op_case_model.h"
#include "prony_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_INPUT_BYTES ((size_t)1 << 20)
#define MOST_MEMORY_BYTES ((uint64_t)1 << 24)
#define MOST_WORK ((uint64_t)20000000)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* Most mutated models still parse. Random bytes rarely pass the loader, which has a target of its own. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    size_t result = seed % 16 ? onnx_mutate(data, size, most, seed) : 0;
    return result ? result : LLVMFuzzerMutate(data, size, most);
}

static void expect(bool holds)
{
    if (!holds) abort();
}

static void write_seed(const char *folder, const op_case *row, op_case_form form)
{
    op_case_node node;
    char message[512] = "", path[1024];
    size_t size;
    expect(op_case_parse(&node, row, message, sizeof message));
    uint8_t *bytes = op_case_model(&node, form, &size);
    snprintf(path, sizeof path, "%s/%s_%d_%d.onnx", folder, node.node.op_type, row->line, (int)form);
    FILE *file = size < 16384 ? fopen(path, "wb") : NULL;
    if (file) {
        expect(fwrite(bytes, 1, size, file) == size);
        expect(fclose(file) == 0);
    }
    free(bytes);
    op_case_node_release(&node);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *folder = getenv("PRN_FUZZ_SEEDS");
    op_case_list cases = {0};
    char message[512] = "";
    (void)argc;
    (void)argv;
    if (!folder) return 0;
    expect(op_cases_load(&cases, PRN_SOURCE_DIR "/tests/operators/cases", message, sizeof message));
    for (size_t i = 0; i < cases.count; i++)
        write_seed(folder, &cases.items[i], i % 2 ? OP_CASE_NONE_CONSTANT : OP_CASE_AS_WRITTEN);
    op_cases_release(&cases);
    return 0;
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
        const prony_value_info *port = prony_model_input(model, i);
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

/* true: the model is worth running; also writes its report. */
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

/* Numbers for inputs that operators take as indices, sizes and the like, drawn from the model's bytes. */
static double odd_number(unsigned *seed)
{
    static const double odd[] = {0, 1, 2, -1, -2, 3, 5, -7, 100, 70000, 3e9, -3e9, 1e18, 0.5, 1e-40, 3e38};
    *seed = *seed * 1664525u + 1013904223u;
    unsigned k = *seed >> 8;
    return k % 64 == 63 ? NAN : k % 64 == 62 ? INFINITY : odd[k % (k & 128 ? 5 : sizeof odd / sizeof *odd)];
}

static void fill(prony_value *value, int64_t count, unsigned *seed)
{
    for (int64_t i = 0; i < count; i++) {
        double number = odd_number(seed);
        bool whole = fabs(number) < 2e18;
        switch (value->dtype) {
        case PRONY_FLOAT32:
            ((float *)value->data)[i] = (float)number;
            break;
        case PRONY_FLOAT64:
            ((double *)value->data)[i] = number;
            break;
        case PRONY_INT64:
            ((int64_t *)value->data)[i] = whole ? (int64_t)number : INT64_MIN;
            break;
        case PRONY_INT32:
            ((int32_t *)value->data)[i] = fabs(number) < 2e9 ? (int32_t)number : INT32_MIN;
            break;
        default:
            memset((uint8_t *)value->data + prony_dtype_bytes(value->dtype, i), (int)(*seed >> 24),
                   prony_dtype_bytes(value->dtype, 1));
        }
        if (value->dtype == PRONY_BOOL) ((uint8_t *)value->data)[i] &= 1;
    }
}

/* Strings and containers cannot be generated; half of the models get odd numbers as well. */
static bool set_inputs(prony_session *session, const prony_model *model, unsigned seed)
{
    static prony_string texts[] = {{"a", 1}, {"Ab c", 4}, {"", 0}, {"1.5", 3}, {"\xc3\xa9\xff", 3}, {"nan", 3}};
    prony_error error = {0};
    for (size_t i = 0; i < prony_model_input_count(model); i++) {
        const prony_value_info *port = prony_model_input(model, i);
        static float items[][2] = {{1, 2}, {-3, 4}};
        prony_value item[2] = {{.dtype = port->dtype, .shape = {.rank = 1, .dim = {2}}}}, value = {.kind = port->kind};
        item[1] = item[0];
        item[0].data = port->dtype == PRONY_STRING ? (void *)texts : (void *)items[0];
        item[1].data = port->dtype == PRONY_STRING ? (void *)(texts + 2) : (void *)items[0];
        value.dtype = port->dtype;
        value.shape = port->shape;
        for (int d = 0; d < value.shape.rank; d++)
            if (value.shape.dim[d] < 0) value.shape.dim[d] = 1;
        if (value.shape.rank < 0) value.shape.rank = 0;
        int64_t count = prony_shape_numel(&value.shape);
        void *data = NULL;
        if (port->kind != PRONY_TENSOR) {
            if (prony_dtype_bytes(port->dtype, 2) > sizeof items) continue;
            value.items = item;
            value.count = port->kind == PRONY_SEQUENCE ? 2 : 1;
        } else if (port->dtype == PRONY_STRING || seed % 2) {
            value.data = data = calloc(1, prony_dtype_bytes(port->dtype, count) + 16);
            if (port->dtype == PRONY_STRING)
                for (int64_t e = 0; e < count; e++) ((prony_string *)data)[e] = texts[(seed + (unsigned)e) % 6];
            else
                fill(&value, count, &seed);
        } else {
            continue;
        }
        (void)ok(prony_session_set_input(session, port->name, &value, &error), &error);
        free(data);
    }
    return ok(prony_session_generate_inputs(session, 0, &error), &error);
}

enum { MOST_OPEN = 4 };

/* Makes some of the free dimensions change from run to run. */
static size_t open_dims(const prony_model *model, unsigned seed, prony_dim *dims, char names[MOST_OPEN][64])
{
    size_t count = 0;
    for (size_t i = 0; i < prony_model_input_count(model); i++) {
        const prony_value_info *port = prony_model_input(model, i);
        for (int d = 0; d < port->shape.rank && count < MOST_OPEN; d++) {
            if (port->shape.dim[d] >= 0 || strlen(port->name) > 40) continue;
            snprintf(names[count], sizeof names[count], "%s.%d", port->name, d);
            dims[count] = (prony_dim){names[count], 1 + (int64_t)((seed >> count) % 60)};
            count++;
        }
    }
    return count;
}

static void run(prony_model *model, bool rewrites, unsigned seed, size_t *sum)
{
    prony_error error = {0};
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    options.max_loop_trips = 16;
    options.memory_limit_bytes = MOST_MEMORY_BYTES;
    options.no_rewrites = !rewrites;
    prony_dim dims[MOST_OPEN];
    char names[MOST_OPEN][64];
    options.max_dims = dims;
    if (seed & 4) options.max_dim_count = open_dims(model, seed >> 3, dims, names);
    if (!ok(prony_session_create(&session, model, &options, &error), &error)) return;
    bool going = set_inputs(session, model, seed);
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
        unsigned seed = 0;
        for (size_t i = 0; i < size; i++) seed = seed * 31 + data[i];
        run(model, true, seed >> 4, &sum);
        run(model, false, seed >> 4, &sum);
    }
    prony_model_release(model);
    sink = sink + sum;
    return 0;
}
