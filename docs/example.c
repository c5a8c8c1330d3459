/* A worked example: loads a model, puts an operator of its own in place of a built-in one, sets an input, runs, reads
 * the output, profiles, and writes the report.
 *
 *     cc example.c $(pkg-config --cflags --libs prony) -o example
 *     ./example models/digits.onnx report.json
 *
 * The tests compile this file and run it. */
#include <prony_operator.h>
#include <prony_report.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- an operator: Relu, written by the user. Every operator states its output's type and shape, what it costs, and
 * how it is computed. */

static uint64_t relu_runs;

static prony_status relu_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    if (in->dtype != PRONY_FLOAT32)
        return prony_fail(context, PRONY_UNSUPPORTED, "element type %s", prony_dtype_name(in->dtype));
    context->outputs[0]->dtype = in->dtype;
    context->outputs[0]->shape = in->shape;
    return PRONY_OK;
}

/* Bytes and parameters are filled already; one comparison per element is counted as one operation. */
static prony_status relu_cost(const prony_context *context, prony_cost *cost)
{
    int64_t count = prony_shape_numel(&context->outputs[0]->shape);
    if (count > 0) cost->flops = (uint64_t)count;
    return PRONY_OK;
}

typedef struct relu_work {
    const float *in;
    float *out;
} relu_work;

static void relu_piece(void *argument, int64_t begin, int64_t end)
{
    const relu_work *work = argument;
    for (int64_t i = begin; i < end; i++) work->out[i] = work->in[i] > 0 ? work->in[i] : 0;
}

static prony_status relu_run(const prony_context *context)
{
    relu_work work = {context->inputs[0]->data, context->outputs[0]->data};
    prony_parallel_for(context, prony_shape_numel(&context->inputs[0]->shape), 4096, relu_piece, &work);
    ++*(uint64_t *)context->user;
    return PRONY_OK;
}

/* ---- steps of the program; each hands a failure up, with the message in `error` */

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        prony_status status_ = (expression);                                                                           \
        if (status_ != PRONY_OK) return status_;                                                                       \
    } while (0)

static prony_status load(prony_model **model, const char *path, prony_error *error)
{
    prony_registry *registry = NULL;
    prony_operator relu = PRONY_OPERATOR_INIT;
    relu.name = "Relu";
    relu.since_opset = 6;
    relu.infer = relu_infer;
    relu.cost = relu_cost;
    relu.run = relu_run;
    relu.user = &relu_runs;
    TRY(prony_registry_create(&registry, error));
    prony_status status = prony_registry_add(registry, &relu, error);
    if (status == PRONY_OK) {
        prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
        options.registry = registry;
        status = prony_model_load(model, path, &options, error);
    }
    prony_registry_release(registry); /* the model keeps a reference of its own */
    return status;
}

/* Draws a "1" of 8x8 pixels as the model's input: float32 [1, 1, 8, 8], 0 (white) to 1 (black). */
static prony_status set_input(prony_session *session, const prony_model *model, prony_error *error)
{
    float pixels[64] = {0};
    for (int y = 0; y < 8; y++) pixels[8 * y + 3] = pixels[8 * y + 4] = 1.0f;
    prony_value image = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .data = pixels};
    image.shape = (prony_shape){.rank = 4, .dim = {1, 1, 8, 8}};
    return prony_session_set_input(session, prony_model_input(model, 0)->name, &image, error);
}

static prony_status print_output(const prony_session *session, prony_error *error)
{
    const prony_value *output = NULL;
    TRY(prony_session_output(session, 0, &output, error));
    const float *score = output->data;
    int64_t best = 0, count = prony_shape_numel(&output->shape);
    for (int64_t i = 1; i < count; i++) {
        if (score[i] > score[best]) best = i;
    }
    printf("recognised: %" PRId64 "\n", best);
    return PRONY_OK;
}

static prony_status profile(prony_session *session, const char *path, prony_error *error)
{
    prony_report *report = NULL;
    prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
    options.runs = 100;
    TRY(prony_session_profile(&report, session, &options, error));

    const prony_totals *totals = prony_report_totals(report);
    const prony_time_stats *latency = prony_report_latency(report);
    printf("%" PRIu64 " MACs, %" PRIu64 " parameters, median latency %" PRId64 " ns\n", totals->cost.macs,
           totals->cost.parameters, latency->median_ns);
    size_t count = 0;
    const prony_operator_row *rows = prony_report_operators(report, &count);
    for (size_t i = 0; i < count; i++)
        printf("  %-42s %-20s %5.1f %%\n", rows[i].name, rows[i].kernel, 100 * rows[i].share);

    prony_status status = prony_report_save(report, PRONY_FORMAT_JSON, NULL, path, error);
    prony_report_release(report);
    return status;
}

/* Each step runs only if those before it succeeded, so `error` holds the first failure. Both handles are released on
 * every path. */
int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.onnx REPORT.json\n", argv[0]);
        return 2;
    }
    prony_error error = {.status = PRONY_OK};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;

    prony_status status = load(&model, argv[1], &error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, &error);
    if (status == PRONY_OK) status = set_input(session, model, &error);
    if (status == PRONY_OK) status = prony_session_run(session, &error);
    if (status == PRONY_OK) status = print_output(session, &error);
    if (status == PRONY_OK) status = profile(session, argv[2], &error);
    if (status != PRONY_OK) fprintf(stderr, "%s: %s\n", prony_status_text(status), error.message);

    prony_session_release(session); /* each accepts NULL */
    prony_model_release(model);
    if (status == PRONY_OK && relu_runs == 0) {
        fprintf(stderr, "the model has no Relu\n");
        return EXIT_FAILURE;
    }
    return status == PRONY_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
