/* Measures the speed of Conv's kernels on shapes of known networks. Run by hand, because it measures time.
 *
 *     conv_times [-t THREADS] [-r ROUNDS] [-w] [-l] [-g COUNT | -s ROW | TEXT]
 *
 * For every shape whose name contains TEXT, or for the one in ROW ("C,H,W K,C/g,kh,kw attributes"): one line, with the
 * best rate of each kernel in multiply-adds a nanosecond, and the rate of bare multiply-adds measured between them.
 * Kernels take turns. Before each run the caches see other data, then the input again, as in a network, where a layer's
 * weights have not been read for a while. With -w they stay as a run leaves them, as in a network that fits into
 * them.
 *
 * Each line ends with the kernel that the plan chooses for a blocked input and its time beside the fastest kernel's;
 * the last line counts the choices within 5 %. -g COUNT: so many generated shapes, the same in each call, in 8 rounds.
 * -l: lists the choices alone, for plain and blocked input, each without and with Silu, and for fp32-strict. */
#include "base/cpu/isa.h"
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

/* A shape as a node. */
typedef struct problem {
    op_case_node row;
    const prn_op *op;
    prn_conv_params params;
    prony_error error;
    prony_value in, out; /* the image as a neighbour offers it */
    const prony_value *inputs[3];
    prony_value *outputs[1];
    prony_context context;
    prony_cost cost;
} problem;

static void open_problem(problem *p, const shape *s, int threads)
{
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
    memset(p, 0, sizeof *p);
    if (!op_case_parse(&p->row, &one, message, sizeof message)) fail(message);
    p->op = prn_op_find("", "Conv", 13);
    if (prn_params_parse(p->op, &p->row.node, &p->params, &p->error) != PRONY_OK) fail(p->error.message);
    p->in = p->row.values[0];
    p->in.data = NULL;
    p->inputs[0] = &p->in;
    for (int i = 1; i < 3; i++) p->inputs[i] = p->row.inputs[i];
    p->outputs[0] = &p->out;
    p->context = (prony_context){.error = &p->error,
                                 .node = &p->row.node,
                                 .params = &p->params,
                                 .inputs = p->inputs,
                                 .input_count = 3,
                                 .constant_inputs = 6,
                                 .outputs = p->outputs,
                                 .output_count = 1,
                                 .threads = threads,
                                 .services = &host};
    if (p->op->infer(&p->context) != PRONY_OK) fail(p->error.message);
    if (p->op->cost(&p->context, &p->cost) != PRONY_OK) fail(p->error.message);
}

static const prn_kernel *choose(problem *p, prn_layout layout)
{
    p->in.layout = (uint8_t)layout;
    return prn_op_kernel(p->op, &p->context, false, NULL);
}

static void list_choices(const shape *s)
{
    static problem p;
    static const prn_post_ops silu = {.op = {{.kind = PRN_POST_SILU}}, .count = 1};
    open_problem(&p, s, 1);
    const prn_layout blocked = prn_isa_has(PRN_HAS_AVX512) ? PRN_BLOCKED16 : PRN_BLOCKED8;
    printf("%s | %s | %s |", s->name, s->sizes, s->attributes);
    for (int ops = 0; ops < 2; ops++) {
        p.context.post_ops = ops ? &silu : NULL;
        printf(" %s %s", choose(&p, PRN_PLAIN)->name, choose(&p, blocked)->name);
    }
    p.context.post_ops = NULL;
    p.context.precision = PRONY_PRECISION_FP32_STRICT;
    printf(" strict %s\n", choose(&p, PRN_PLAIN)->name);
    op_case_node_release(&p.row);
}

static int measured, near_best;
static double worst = 1;
static char worst_name[160];

/* The choice for an input that comes from a convolution, beside the fastest kernel. */
static void note_choice(const prn_kernel *chosen, const shape *s, const tried *tries, int count)
{
    double best = 1e18, own = 0;
    for (int i = 0; i < count; i++) {
        if (tries[i].best_ns < best) best = tries[i].best_ns;
        if (tries[i].kernel == chosen) own = tries[i].best_ns;
    }
    if (own <= 0) return;
    measured++;
    near_best += own <= 1.05 * best;
    printf("  choice %s %.2f of the best", chosen->name, own / best);
    if (own / best < worst) return;
    worst = own / best;
    snprintf(worst_name, sizeof worst_name, "%s (%s): %s", s->name, s->sizes, chosen->name);
}

static void measure(const shape *s, int threads, int rounds)
{
    static problem p;
    open_problem(&p, s, threads);
    prony_context context = p.context;
    prony_value *outputs[1] = {&p.out};
    tried tries[MOST_KERNELS] = {0};
    int count = 0;
    for (const prn_kernel *kernel = p.op->kernels; kernel->name && count < MOST_KERNELS; kernel++) {
        context.outputs = outputs;
        if (!strstr(kernel->name, "f32")) continue;
        count += try_kernel(&tries[count], kernel, &context, &p.row);
    }
    double bare = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) run(&tries[i], &context);
#ifdef __x86_64__
        double rate = __builtin_cpu_supports("avx512f") ? bare_rate() : 0;
        if (rate > bare) bare = rate;
#endif
    }
    printf("%-34s %7.1fM  bare %5.1f", s->name, (double)p.cost.macs / 1e6, bare);
    for (int i = 0; i < count; i++) {
        tried *t = &tries[i];
        context.inputs = (const prony_value *const[]){&t->in[0], &t->in[1], &t->in[2]};
        context.outputs = (prony_value *const[]){&t->out};
        const bool profitable = !t->kernel->profitable || t->kernel->profitable(&context);
        printf("  %s%s %7.1f us %6.1f", t->kernel->name, profitable ? "" : "(-)", t->best_ns / 1e3,
               (double)p.cost.macs / t->best_ns);
        if (t->kernel->release) t->kernel->release(t->prepared.state);
        prn_free_aligned(t->in[0].data);
        prn_free_aligned(t->out.data);
        prn_free_aligned(t->scratch);
    }
    note_choice(choose(&p, prn_isa_has(PRN_HAS_AVX512) ? PRN_BLOCKED16 : PRN_BLOCKED8), s, tries, count);
    puts("");
    fflush(stdout);
    for (size_t i = 0; i < packed_count; i++) prn_free_aligned(packed[i]);
    packed_count = 0;
    op_case_node_release(&p.row);
}

/* ---- generated shapes */

static uint64_t drawn;

static int64_t draw(int64_t most)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((drawn >> 33) % (uint64_t)most);
}

#define DRAW(...) ((const int64_t[]){__VA_ARGS__})[draw(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))]

/* Shape `index` of the corpus: channels, images and windows of the kinds that networks have, of 0.1 to 150 MMAC. */
static shape generated(int index, char name[80], char sizes[200], char attributes[200])
{
    for (;;) {
        const int64_t kind = draw(10), k = kind < 3 ? 1 : DRAW(3, 3, 3, 5, 7), stride = DRAW(1, 1, 1, 2);
        const int64_t size = DRAW(4, 7, 7, 8, 13, 14, 14, 17, 19, 26, 28, 28, 35, 40, 52, 56, 56, 80, 112, 160, 224);
        const int64_t c = kind == 3 ? DRAW(1, 3, 3, 4)
                          : kind == 4
                              ? 1 + draw(15)
                              : DRAW(16, 24, 32, 40, 48, 64, 64, 80, 96, 128, 128, 160, 192, 256, 320, 384, 512, 960);
        const int64_t out =
            kind == 4 ? 1 + draw(24) : DRAW(12, 16, 24, 32, 48, 64, 64, 96, 100, 128, 160, 192, 256, 384, 512, 1000);
        const int64_t dilation = k > 1 && stride == 1 && draw(12) == 0 ? 2 : 1, pad = (k - 1) * dilation / 2;
        int64_t groups = 1, outs = out, kh = k, kw = k;
        if (kind == 5) groups = outs = c; /* depthwise */
        if (kind == 6 && c % 16 == 0) {   /* groups of 8, 16 or 32 channels */
            const int64_t of = DRAW(8, 16, 16, 32);
            groups = c / of > 0 && c % of == 0 ? c / of : 1;
            outs = c;
        }
        if (kind == 7) { /* 1 x 7, 7 x 1, 1 x 3, 1 x 5 */
            kh = 1;
            kw = DRAW(3, 5, 7);
            if (draw(2)) {
                kh = kw;
                kw = 1;
            }
        }
        const int64_t high = (size + stride - 1) / stride;
        const double macs = (double)high * (double)high * (double)(kh * kw) * (double)(c / groups) * (double)outs;
        if (macs < 1e5 || macs > 1.5e8 || (double)c * (double)(size * size) > 4e6 || kh > size || kw > size) continue;
        snprintf(sizes, 200, "%lld,%lld,%lld %lld,%lld,%lld,%lld", (long long)c, (long long)size, (long long)size,
                 (long long)outs, (long long)(c / groups), (long long)kh, (long long)kw);
        const long long py = kh == 1 ? 0 : (long long)(kh == k ? pad : kh / 2),
                        px = kw == 1 ? 0 : (long long)(kw == k ? pad : kw / 2);
        const int64_t d = kind == 7 ? 1 : dilation;
        snprintf(attributes, 200, "strides=[%lld,%lld] dilations=[%lld,%lld] pads=[%lld,%lld,%lld,%lld] group=%lld",
                 (long long)stride, (long long)stride, (long long)d, (long long)d, py, px, py, px, (long long)groups);
        snprintf(name, 80, "%d: %.48s /%lld g%lld", index, sizes, (long long)stride, (long long)groups);
        return (shape){name, sizes, attributes};
    }
}

static void show(const shape *s, bool list, int threads, int rounds)
{
    if (list)
        list_choices(s);
    else
        measure(s, threads, rounds);
}

int main(int argc, char **argv)
{
    int threads = 1, rounds = 0, count = 0;
    bool list = false;
    const char *text = "", *own = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-t") == 0 && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "-r") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
            own = argv[++i];
        else if (strcmp(argv[i], "-g") == 0 && i + 1 < argc)
            count = atoi(argv[++i]);
        else if (strcmp(argv[i], "-l") == 0)
            list = true;
        else if (strcmp(argv[i], "-w") == 0)
            warm_runs = 30;
        else
            text = argv[i];
    }
    if (!rounds) rounds = count ? 8 : 60; /* 300 shapes take a minute */
    other = prn_alloc_aligned(64, OTHER_BYTES);
    memset(other, 0, OTHER_BYTES);
    for (int i = 0; i < count; i++) {
        char name[80], sizes[200], attributes[200];
        const shape s = generated(i, name, sizes, attributes);
        show(&s, list, threads, rounds);
    }
    if (own) {
        char sizes[256];
        const char *attributes = strchr(own, ' ') ? strchr(strchr(own, ' ') + 1, ' ') : NULL;
        snprintf(sizes, sizeof sizes, "%.*s", attributes ? (int)(attributes - own) : 255, own);
        show(&(shape){own, sizes, attributes ? attributes + 1 : ""}, list, threads, rounds);
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !own && !count; i++)
        if (strstr(shapes[i].name, text)) show(&shapes[i], list, threads, rounds);
    if (measured)
        printf("%d of %d choices are within 5 %% of the fastest kernel; the worst takes %.2f of its time: %s\n",
               near_best, measured, worst, worst_name);
    prn_free_aligned(other);
    return 0;
}
