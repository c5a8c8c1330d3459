/* How long each kernel of Conv takes on a convolution of 3 x 3 taps, for a person to read: it measures time, so it is no test.
 *
 *     conv_times [-t THREADS] [-r ROUNDS] [-k KERNEL] [-c] CHANNELSxHEIGHTxWIDTHxOUT[xBATCH]...
 *
 * Kernels whose name contains KERNEL are run in turn, ROUNDS times; printed is the least time of a call in microseconds (of one
 * thread: processor time) and the multiply-adds of the convolution per nanosecond. With -c other memory is read before each
 * call, so that no cache of the core's own holds anything of it. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "tests/support/op_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_KERNELS = 8, OTHER_FLOATS = 1 << 24 };

static double now(int threads)
{
    struct timespec t;
    clock_gettime(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static prony_status host_packed(const prony_context *context, const void *source, const char *tag, size_t bytes,
                                prony_status (*build)(const prony_context *context, void *argument, void *packed),
                                void *argument, const void **out)
{
    (void)source, (void)tag;
    void *block = prn_alloc_aligned(64, bytes);
    if (!block) exit(1);
    *out = block;
    return build(context, argument, block);
}

typedef struct problem {
    op_case_node node;
    const prn_op *op;
    char params[1024];
    prony_value in[3], out;
    const prony_value *inputs[3];
    prony_value *outputs[1];
    prony_error error;
    prony_context context;
} problem;

static void check(const problem *p, prony_status status)
{
    if (status == PRONY_OK) return;
    printf("%s\n", p->error.message);
    exit(1);
}

typedef struct candidate {
    const prn_kernel *kernel;
    prn_prepared prepared;
    prony_value x, y; /* in its layouts */
    void *scratch;
    double least;
} candidate;

static bool open_candidate(problem *p, const prn_kernel *kernel, candidate *c)
{
    prn_layout in[3] = {PRN_PLAIN}, out[1] = {PRN_PLAIN};
    p->in[0].layout = PRN_BLOCKED16;
    p->in[0].data = NULL;
    if (kernel->usable && !kernel->usable(&p->context)) return false;
    if (kernel->layouts) kernel->layouts(&p->context, in, out);
    *c = (candidate){.kernel = kernel, .x = p->in[0], .y = p->out, .least = 1e30};
    c->x.layout = (uint8_t)in[0];
    c->y.layout = (uint8_t)out[0];
    c->x.data = prn_alloc_aligned(64, prn_layout_bytes(&c->x));
    c->y.data = prn_alloc_aligned(64, prn_layout_bytes(&c->y));
    for (size_t i = 0; i < prn_layout_bytes(&c->x) / 4; i++) ((float *)c->x.data)[i] = (float)(i % 17) / 17.0f - 0.4f;
    memset(c->y.data, 0, prn_layout_bytes(&c->y));
    p->inputs[0] = &c->x;
    p->outputs[0] = &c->y;
    if (kernel->prepare) check(p, kernel->prepare(&p->context, &c->prepared));
    c->scratch = prn_alloc_aligned(64, c->prepared.scratch_bytes + 64);
    return true;
}

static float other[OTHER_FLOATS];

static void run(problem *p, candidate *c, int threads, bool cold)
{
    p->inputs[0] = &c->x;
    p->outputs[0] = &c->y;
    p->context.state = c->prepared.state;
    p->context.scratch = c->scratch;
    p->context.scratch_bytes = c->prepared.scratch_bytes;
    for (int call = 0; call < 3; call++) {
        float sum = 0;
        for (int i = 0; i < OTHER_FLOATS && cold; i += 16) sum += other[i];
        other[0] = sum;
        const double start = now(threads);
        check(p, c->kernel->run(&p->context));
        const double took = now(threads) - start;
        if (took < c->least) c->least = took;
    }
}

static void measure(const char *text, int threads, int rounds, bool cold, const char *only)
{
    long channels, height, width, out, batch = 1;
    char inputs[160], message[256];
    if (sscanf(text, "%ldx%ldx%ldx%ldx%ld", &channels, &height, &width, &out, &batch) < 4) exit(1);
    snprintf(inputs, sizeof inputs, "f32[%ld,%ld,%ld,%ld] !f32[%ld,%ld,3,3] !f32[%ld]", batch, channels, height, width, out, channels,
             out);
    const op_case row = {.op = "Conv", .opset = 13, .attributes = "kernel_shape=[3,3] pads=[1,1,1,1]", .inputs = inputs};
    static const prn_host host = {.packed = host_packed};
    problem *p = calloc(1, sizeof *p);
    if (!op_case_parse(&p->node, &row, message, sizeof message)) exit(1);
    p->op = prn_op_find("", "Conv", 13);
    check(p, prn_params_parse(p->op, &p->node.node, p->params, &p->error));
    static prn_post_ops relu = {.op = {{.kind = PRN_POST_RELU}}, .count = 1};
    p->context = (prony_context){.node = &p->node.node, .params = p->params, .inputs = p->inputs, .input_count = 3,
                                 .outputs = p->outputs, .output_count = 1, .host = &host, .threads = threads, .error = &p->error,
                                 .post_ops = &relu};
    p->outputs[0] = &p->out;
    for (int i = 0; i < 3; i++) {
        p->in[i] = p->node.values[i];
        p->inputs[i] = &p->in[i];
    }
    check(p, p->op->infer(&p->context));
    candidate candidates[MOST_KERNELS];
    int count = 0;
    for (const prn_kernel *kernel = p->op->kernels; kernel->name; kernel++) {
        p->inputs[0] = &p->in[0];
        p->outputs[0] = &p->out;
        if (strcmp(kernel->backend, "reference") == 0 || !strstr(kernel->name, only)) continue;
        count += open_candidate(p, kernel, &candidates[count]);
    }
    for (int round = 0; round < rounds; round++) {
        for (int k = 0; k < count; k++) run(p, &candidates[k], threads, cold);
    }
    const double macs = (double)batch * (double)height * (double)width * (double)out * (double)channels * 9;
    printf("%-18s", text);
    for (int k = 0; k < count; k++)
        printf("  %s %8.1f us %6.1f", candidates[k].kernel->name + 9, candidates[k].least, macs / candidates[k].least / 1e3);
    printf("\n");
    fflush(stdout);
}

int main(int count, char **arguments)
{
    int threads = 1, rounds = 20;
    bool cold = false;
    const char *only = "";
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "-t") == 0 && i + 1 < count)
            threads = atoi(arguments[++i]);
        else if (strcmp(arguments[i], "-r") == 0 && i + 1 < count)
            rounds = atoi(arguments[++i]);
        else if (strcmp(arguments[i], "-k") == 0 && i + 1 < count)
            only = arguments[++i];
        else if (strcmp(arguments[i], "-c") == 0)
            cold = true;
        else
            measure(arguments[i], threads, rounds, cold, only);
    }
    return 0;
}
