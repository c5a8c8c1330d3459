/* Measures the speed of Conv's kernels on shapes of known networks. Run by hand, because it measures time.
 *
 *     conv_times [-t THREADS] [-r ROUNDS] [-w] [-s ROW] [TEXT]
 *
 * For every shape whose name contains TEXT, or for the one in ROW ("C,H,W K,C/g,kh,kw attributes"): one line, with the
 * best rate of each kernel in multiply-adds a nanosecond, and the rate of bare multiply-adds measured between them.
 * Kernels take turns. Before each run the caches see other data, then the input again, as in a network, where a layer's
 * weights have not been read for a while. With -w they stay as a run leaves them, as in a network that fits into
 * them. */
#include "base/os/clock.h"
#include "base/threads/parallel.h"
#include "ops/kernels/window/conv_problem.h"
#include "tests/support/op_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    const char *name, *sizes, *attributes; /* sizes: "C,H,W K,C/g,kh,kw" */
} shape;

static const shape shapes[] = {
#define CONV(name, sizes, attributes) {name, sizes, attributes},
#include "tests/by_hand/conv_shapes.inc"
#undef CONV
};

enum { MOST_KERNELS = 8, MOST_PACKED = 64, OTHER_BYTES = 96 << 20 };

typedef struct tried {
    const prn_kernel *kernel;
    prn_prepared prepared;
    prony_value in[3], out;
    void *scratch;
    double best_ns;
} tried;

static void *packed[MOST_PACKED];
static size_t packed_count;
static char *other;
static int warm_runs; /* 0: caches see other data before each run */

static prony_status host_packed(const prony_context *context, const void *source, const prn_pack_key *key, size_t bytes,
                                void *argument, const void **out)
{
    (void)source;
    if (packed_count == MOST_PACKED) return prony_fail(context, PRONY_LIMIT, "too many packed forms");
    *out = packed[packed_count++] = prn_alloc_aligned(64, bytes);
    return key->build(context, argument, packed[packed_count - 1]);
}

static const prn_services host = {.packed = host_packed};

static void fail(const char *what)
{
    printf("%s\n", what);
    exit(1);
}

/* Prepares the kernel as it requests; false: the kernel cannot run this shape. */
static bool try_kernel(tried *t, const prn_kernel *kernel, prony_context *context, const op_case_node *row)
{
    const prony_value *inputs[3];
    prony_value *outputs[1] = {&t->out};
    t->kernel = kernel;
    prony_value out = *context->outputs[0];
    t->out = out;
    for (size_t i = 0; i < 3; i++) {
        t->in[i] = row->values[i];
        if (i == 0) t->in[i].data = NULL;
        inputs[i] = &t->in[i];
    }
    context->inputs = inputs;
    context->outputs = outputs;
    if (kernel->supported && !kernel->supported(context)) return false;
    prn_layout in[3] = {PRN_PLAIN}, made[1] = {PRN_PLAIN};
    if (kernel->layouts) kernel->layouts(context, in, made);
    t->in[0].layout = (uint8_t)in[0];
    t->out.layout = (uint8_t)made[0];
    if (kernel->prepare && kernel->prepare(context, &t->prepared) != PRONY_OK) return false;
    t->in[0].data = prn_alloc_aligned(64, prn_layout_bytes(&t->in[0]));
    t->out.data = prn_alloc_aligned(64, prn_layout_bytes(&t->out));
    t->scratch = t->prepared.scratch_bytes ? prn_alloc_aligned(64, t->prepared.scratch_bytes) : NULL;
    float *x = t->in[0].data;
    for (size_t i = 0; i < prn_layout_bytes(&t->in[0]) / sizeof *x; i++) x[i] = (float)(i % 31) * 0.1f - 1.5f;
    t->best_ns = 1e18;
    return true;
}

static volatile float kept;

static void read_all(const void *bytes, size_t count)
{
    float sum = 0;
    for (size_t i = 0; i < count / sizeof sum; i += 16) sum += ((const float *)bytes)[i];
    kept = sum;
}

static void run(tried *t, prony_context *context)
{
    const prony_value *inputs[3] = {&t->in[0], &t->in[1], &t->in[2]};
    prony_value *outputs[1] = {&t->out};
    context->inputs = inputs;
    context->outputs = outputs;
    context->state = t->prepared.state;
    context->scratch = t->scratch;
    context->scratch_bytes = t->prepared.scratch_bytes;
    if (!warm_runs) read_all(other, OTHER_BYTES);
    read_all(t->in[0].data, prn_layout_bytes(&t->in[0]));
    prn_thread_pool_warm(context->threads);
    for (int i = 0; i < warm_runs || i == 0; i++) {
        int64_t from = prn_now_ns();
        if (t->kernel->run(context) != PRONY_OK) fail("a kernel failed");
        double ns = (double)(prn_now_ns() - from);
        if (ns < t->best_ns) t->best_ns = ns;
    }
}

#ifdef __x86_64__
/* Ten chains of multiply-adds, as wide as the processor has them. */
__attribute__((target("avx512f"))) static double bare_rate(void)
{
    typedef float vec __attribute__((vector_size(64)));
    enum { TURNS = 4000, CHAINS = 10 };
    vec a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0}, g = {0}, h = {0}, i = {0}, j = {0}, x = {0};
    int64_t from = prn_now_ns();
    for (int turn = 0; turn < TURNS; turn++)
        __asm__ volatile("vfmadd231ps %10,%10,%0\n\tvfmadd231ps %10,%10,%1\n\tvfmadd231ps %10,%10,%2\n\t"
                         "vfmadd231ps %10,%10,%3\n\tvfmadd231ps %10,%10,%4\n\tvfmadd231ps %10,%10,%5\n\t"
                         "vfmadd231ps %10,%10,%6\n\tvfmadd231ps %10,%10,%7\n\tvfmadd231ps %10,%10,%8\n\t"
                         "vfmadd231ps %10,%10,%9"
                         : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f), "+v"(g), "+v"(h), "+v"(i), "+v"(j)
                         : "v"(x));
    double ns = (double)(prn_now_ns() - from);
    kept = (a + b + c + d + e + f + g + h + i + j)[0];
    return (double)TURNS * CHAINS * 16 / ns;
}
#endif

static void measure(const shape *s, int threads, int rounds)
{
    static op_case_node row;
    char message[256] = "", inputs[256];
    int64_t c = 0, k = 0;
    char weights[128] = "";
    if (sscanf(s->sizes, "%lld", (long long *)&c) != 1 ||
        sscanf(strchr(s->sizes, ' ') + 1, "%lld", (long long *)&k) != 1)
        fail("sizes");
    snprintf(weights, sizeof weights, "%s", strchr(s->sizes, ' ') + 1);
    snprintf(inputs, sizeof inputs, "f32[1,%.*s] !f32[%s] !f32[%lld]", (int)(strchr(s->sizes, ' ') - s->sizes),
             s->sizes, weights, (long long)k);
    const op_case one = {.file = "", .op = "Conv", .opset = 13, .attributes = s->attributes, .inputs = inputs};
    memset(&row, 0, sizeof row);
    if (!op_case_parse(&row, &one, message, sizeof message)) fail(message);
    const prn_op *op = prn_op_find("", "Conv", 13);
    prn_conv_params params;
    prony_error error = {0};
    prony_value out = {0};
    prony_value *outputs[1] = {&out};
    if (prn_params_parse(op, &row.node, &params, &error) != PRONY_OK) fail(error.message);
    prony_context context = {.error = &error,
                             .node = &row.node,
                             .params = &params,
                             .inputs = row.inputs,
                             .input_count = 3,
                             .outputs = outputs,
                             .output_count = 1,
                             .threads = threads,
                             .services = &host};
    if (op->infer(&context) != PRONY_OK) fail(error.message);
    prony_cost cost = {0};
    if (op->cost(&context, &cost) != PRONY_OK) fail(error.message);
    tried tries[MOST_KERNELS] = {0};
    int count = 0;
    for (const prn_kernel *kernel = op->kernels; kernel->name && count < MOST_KERNELS; kernel++) {
        context.outputs = outputs;
        if (!strstr(kernel->name, "f32")) continue;
        count += try_kernel(&tries[count], kernel, &context, &row);
    }
    double bare = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) run(&tries[i], &context);
#ifdef __x86_64__
        double rate = __builtin_cpu_supports("avx512f") ? bare_rate() : 0;
        if (rate > bare) bare = rate;
#endif
    }
    printf("%-34s %7.1fM  bare %5.1f", s->name, (double)cost.macs / 1e6, bare);
    for (int i = 0; i < count; i++) {
        tried *t = &tries[i];
        context.inputs = (const prony_value *const[]){&t->in[0], &t->in[1], &t->in[2]};
        context.outputs = (prony_value *const[]){&t->out};
        const bool profitable = !t->kernel->profitable || t->kernel->profitable(&context);
        printf("  %s%s %7.1f us %6.1f", t->kernel->name, profitable ? "" : "(-)", t->best_ns / 1e3,
               (double)cost.macs / t->best_ns);
        if (t->kernel->release) t->kernel->release(t->prepared.state);
        prn_free_aligned(t->in[0].data);
        prn_free_aligned(t->out.data);
        prn_free_aligned(t->scratch);
    }
    puts("");
    fflush(stdout);
    for (size_t i = 0; i < packed_count; i++) prn_free_aligned(packed[i]);
    packed_count = 0;
    op_case_node_release(&row);
}

int main(int argc, char **argv)
{
    int threads = 1, rounds = 60;
    const char *text = "", *own = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-t") == 0 && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "-r") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
            own = argv[++i];
        else if (strcmp(argv[i], "-w") == 0)
            warm_runs = 30;
        else
            text = argv[i];
    }
    other = prn_alloc_aligned(64, OTHER_BYTES);
    memset(other, 0, OTHER_BYTES);
    if (own) {
        char sizes[256];
        const char *attributes = strchr(own, ' ') ? strchr(strchr(own, ' ') + 1, ' ') : NULL;
        snprintf(sizes, sizeof sizes, "%.*s", attributes ? (int)(attributes - own) : 255, own);
        measure(&(shape){own, sizes, attributes ? attributes + 1 : ""}, threads, rounds);
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !own; i++)
        if (strstr(shapes[i].name, text)) measure(&shapes[i], threads, rounds);
    prn_free_aligned(other);
    return 0;
}
