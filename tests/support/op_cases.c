/* Runs one row: infer, cost, then every usable kernel, in every layout it accepts, against the last (reference) kernel.
 * Each tensor is a block of its own, outputs and scratch are filled with a pattern before each run, and a run at one to
 * four threads must give the same bytes, as must a kernel that is layout_invariant in every layout. Invariant: a case
 * passes only if every kernel ran. */
#include "tests/support/op_cases.h"

#include "engine/run/services.h"
#include "tests/support/op_case_layouts.h"
#include "tests/support/op_case_values.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BLOCKS 256
#define MOST_THREADS 4
#define MOST_TERMS 1024
#define LONG_REFERENCE_MACS 100000
#define MOST_ELEMENTS (1 << 18) /* of what a doubtful row makes */

/* One row under test. `in` and `out` are what context points to; their data comes and goes with each kernel run. */
typedef struct bench {
    op_case_node row;
    const prn_op *op;
    prony_error error;
    char *message;
    size_t message_bytes;
    char at[160]; /* kernel, layouts, threads: where a message comes from */
    prony_value in[OP_CASE_MAX_VALUES], out[OP_CASE_MAX_VALUES];
    const prony_value *inputs[OP_CASE_MAX_VALUES];
    prony_value *outputs[OP_CASE_MAX_VALUES];
    prony_context context;
    prn_post_ops post_ops;
    bool exact;
    bool doubtful, refused; /* an arbitrary row; it was refused */
    bool long_reference;    /* the reference takes long: it is run once, as smaller rows show that it ignores threads
                               and places */
    bool deep;              /* sums of so many terms that an activation after them shows more of their rounding than
                               allowed */
    prony_value expected[OP_CASE_MAX_VALUES]; /* the reference's outputs, plain */
    prony_value
        first[OP_CASE_MAX_VALUES]; /* the tested kernel's in the first layout, plain, if it is layout_invariant */
    void *packed[MAX_BLOCKS];
    size_t packed_count;
} bench;

static bool complain(bench *b, const char *format, ...) PRN_PRINTF(2, 3);
static bool complain(bench *b, const char *format, ...)
{
    int wrote = snprintf(b->message, b->message_bytes, "%s%s: ", b->at, b->post_ops.count ? ", post-operations" : "");
    if (wrote < 0 || (size_t)wrote >= b->message_bytes) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(b->message + wrote, b->message_bytes - (size_t)wrote, format, args);
    va_end(args);
    return false;
}

/* ---- the host a kernel sees */

static prony_status host_packed(const prony_context *context, const void *source, const prn_pack_key *key, size_t bytes,
                                void *argument, const void **out)
{
    bench *b = context->services_data;
    (void)source;
    if (b->packed_count == MAX_BLOCKS) return prony_fail(context, PRONY_LIMIT, "too many packed forms");
    void *block = op_case_bytes(bytes);
    b->packed[b->packed_count++] = block;
    *out = block;
    return key->build(context, argument, block);
}

static prony_status host_infer(const prony_context *context, const struct prn_graph *graph,
                               const prony_value *const *inputs, size_t input_count, prony_value *outputs,
                               size_t output_count)
{
    (void)graph, (void)inputs, (void)input_count, (void)outputs, (void)output_count;
    return prony_fail(context, PRONY_UNSUPPORTED, "cases have no subgraphs");
}

static prony_status host_cost(const prony_context *context, const struct prn_graph *graph,
                              const prony_value *const *inputs, size_t input_count, prony_cost *cost)
{
    (void)cost;
    return host_infer(context, graph, inputs, input_count, NULL, 0);
}

static prony_status host_output_alloc(const prony_context *context, size_t index)
{
    prony_value *out = context->outputs[index];
    size_t bytes = prn_value_bytes(out);
    if (bytes == SIZE_MAX) return prony_fail(context, PRONY_LIMIT, "output %zu has no size", index);
    prn_free_aligned(out->data);
    out->data = op_case_bytes(bytes);
    memset(out->data, 0xa5, bytes);
    return PRONY_OK;
}

static prony_status host_image_decode(const prony_context *context, const void *bytes, size_t size, prn_pixels *out)
{
    return prn_engine_services.image_decode(context, bytes, size, out);
}

static void host_image_drop(prn_pixels *image)
{
    prn_engine_services.image_drop(image);
}

static const prn_services test_host = {.packed = host_packed,
                                       .subgraph_infer = host_infer,
                                       .subgraph_cost = host_cost,
                                       .subgraph_run = host_infer,
                                       .output_alloc = host_output_alloc,
                                       .image_decode = host_image_decode,
                                       .image_drop = host_image_drop};

/* ---- comparing */

static double tolerance(prony_dtype dtype)
{
    switch (dtype) {
    case PRONY_FLOAT32:
        return 1e-4;
    case PRONY_FLOAT64:
        return 1e-9;
    case PRONY_FLOAT16:
        return 2e-3;
    case PRONY_BFLOAT16:
        return 1.6e-2;
    default:
        return 0;
    }
}

static bool agree(bench *b, size_t k, const prony_value *got)
{
    const prony_value *want = &b->expected[k];
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    if (got->dtype != want->dtype || !prn_shape_equal(&got->shape, &want->shape)) {
        return complain(b, "output %zu is %s, the reference says %s", k, prn_value_text(got, left),
                        prn_value_text(want, right));
    }
    int64_t count = prony_shape_numel(&want->shape);
    double scale = 1, bound = b->exact ? 0 : tolerance(want->dtype);
    for (int64_t i = 0; i < count; i++) {
        double x = fabs(op_case_get(want, i));
        if (isfinite(x)) scale = fmax(scale, x);
    }
    for (int64_t i = 0; i < count; i++) {
        double x = op_case_get(got, i), y = op_case_get(want, i);
        bool same = isnan(x) ? isnan(y) : (x == y || (isfinite(x) && isfinite(y) && fabs(x - y) <= bound * scale));
        if (!same) {
            return complain(b, "output %zu element %lld is %.9g, the reference says %.9g", k, (long long)i, x, y);
        }
    }
    return true;
}

/* ---- one kernel */

static void drop_outputs(bench *b)
{
    for (size_t k = 0; k < b->context.output_count; k++) {
        prn_free_aligned(b->out[k].data);
        b->out[k].data = NULL;
    }
}

/* Copies of the inputs in the layouts of `layouts`. */
static void make_inputs(bench *b, const prn_layout *layouts)
{
    for (size_t i = 0; i < b->context.input_count; i++) {
        if (!b->inputs[i]) continue;
        b->in[i] = b->row.values[i];
        b->in[i].layout = (uint8_t)layouts[i];
        b->in[i].data = op_case_bytes(prn_layout_bytes(&b->in[i]));
        op_case_convert(&b->in[i], &b->row.values[i]);
    }
}

static void drop_inputs(bench *b)
{
    for (size_t i = 0; i < b->context.input_count; i++) {
        if (b->inputs[i]) prn_free_aligned(b->in[i].data);
        b->in[i].data = NULL;
    }
}

static prony_status prepare(bench *b, const prn_kernel *kernel, prn_prepared *prepared)
{
    void *data[OP_CASE_MAX_VALUES];
    if (!kernel->prepare) return PRONY_OK;
    b->context.threads = MOST_THREADS; /* scratch may depend on it */
    for (size_t i = 0; i < b->context.input_count; i++) {
        data[i] = b->in[i].data;
        if (!b->row.constant[i]) b->in[i].data = NULL;
    }
    prony_status status = kernel->prepare(&b->context, prepared);
    for (size_t i = 0; i < b->context.input_count; i++) b->in[i].data = data[i];
    return status;
}

static prony_status run_once(bench *b, const prn_kernel *kernel, int threads, int inplace)
{
    void *input = NULL;
    drop_outputs(b);
    for (size_t k = 0; k < b->context.output_count; k++) {
        size_t bytes = prn_layout_bytes(&b->out[k]);
        if (b->out[k].shape.rank < 0) continue; /* the kernel asks output_alloc */
        b->out[k].data = op_case_bytes(bytes);
        memset(b->out[k].data, 0xa5, bytes);
    }
    if (inplace >= 0) {
        input = b->in[inplace].data;
        memcpy(b->out[0].data, input, prn_layout_bytes(&b->in[inplace]));
        b->in[inplace].data = b->out[0].data;
    }
    b->context.scratch = op_case_bytes(b->context.scratch_bytes);
    memset(b->context.scratch, 0x5a + threads, b->context.scratch_bytes);
    b->context.threads = threads;
    prony_status status = kernel->run(&b->context);
    prn_free_aligned(b->context.scratch);
    b->context.scratch = NULL;
    if (inplace >= 0) b->in[inplace].data = input;
    return status;
}

static bool same_bytes(bench *b, prony_value *first)
{
    for (size_t k = 0; k < b->context.output_count; k++) {
        size_t bytes = prn_layout_bytes(&b->out[k]);
        if (!prn_shape_equal(&first[k].shape, &b->out[k].shape) || memcmp(first[k].data, b->out[k].data, bytes) != 0) {
            return complain(b, "output %zu differs from the run at one thread", k);
        }
    }
    return true;
}

/* Takes over `plain`, output k in one more layout. */
static bool check_bits(bench *b, size_t k, const prony_value *plain)
{
    if (!b->first[k].data) {
        b->first[k] = *plain;
        return true;
    }
    const int64_t at = op_case_other_bits(&b->first[k], plain);
    prn_free_aligned(plain->data);
    return at < 0 || complain(b, "output %zu element %lld has other bits than in another layout", k, (long long)at);
}

static void drop_first(bench *b)
{
    for (size_t k = 0; k < OP_CASE_MAX_VALUES; k++) prn_free_aligned(b->first[k].data);
    memset(b->first, 0, sizeof b->first);
}

static bool check_outputs(bench *b, const prn_kernel *kernel)
{
    for (size_t k = 0; k < b->context.output_count; k++) {
        prony_value plain = b->out[k];
        if (!op_case_padding_is_zero(&plain))
            return complain(b, "output %zu leaves padding lanes that are not zero", k);
        plain.layout = PRN_PLAIN;
        plain.data = op_case_bytes(prn_value_bytes(&plain));
        op_case_convert(&plain, &b->out[k]);
        if (!b->expected[k].data) {
            b->expected[k] = plain;
            continue;
        }
        bool ok = agree(b, k, &plain);
        if (ok && kernel->layout_invariant)
            ok = check_bits(b, k, &plain);
        else
            prn_free_aligned(plain.data);
        if (!ok) return false;
    }
    return true;
}

/* true: the kernel supports inputs that are slices of the output, and outputs that are slices of the input, as it
 * declares. */
static bool check_places(bench *b, const prn_kernel *kernel, const prony_value *outputs)
{
    uint64_t at = 0;
    for (size_t i = 0; kernel->concat_alias && i < b->context.input_count; i++) {
        if (!b->inputs[i] || !kernel->concat_alias(&b->context, i, &at)) continue;
        size_t bytes = prn_layout_bytes(&b->in[i]);
        if (at + bytes > prn_layout_bytes(&outputs[0]) || memcmp((char *)outputs[0].data + at, b->in[i].data, bytes)) {
            return complain(b, "input %zu is not the output's bytes from %llu on", i, (unsigned long long)at);
        }
    }
    at = 0;
    for (size_t k = 0; kernel->split_alias && k < b->context.output_count; k++) {
        if (!kernel->split_alias(&b->context, k, &at)) continue;
        size_t bytes = prn_layout_bytes(&outputs[k]);
        if (at + bytes > prn_layout_bytes(&b->in[0]) || memcmp((char *)b->in[0].data + at, outputs[k].data, bytes)) {
            return complain(b, "output %zu is not the input's bytes from %llu on", k, (unsigned long long)at);
        }
    }
    return true;
}

/* At one to four threads, and in place where the kernel says so. Outputs hold shapes and layouts. */
static bool run_all(bench *b, const prn_kernel *kernel, const char *layouts)
{
    prony_value first[OP_CASE_MAX_VALUES], shapes[OP_CASE_MAX_VALUES];
    memcpy(shapes, b->out, sizeof shapes);
    bool ok = true, have_first = false;
    const bool once = b->long_reference && strcmp(kernel->backend, "reference") == 0;
    const int rounds = once ? 1 : MOST_THREADS + (int)b->context.input_count;
    for (int round = 0; round < rounds && ok; round++) {
        int inplace = round < MOST_THREADS ? -1 : round - MOST_THREADS, threads = round < MOST_THREADS ? round + 1 : 2;
        if (inplace >= 0 && (!prn_kernel_may_overwrite(kernel, b->context.post_ops, (size_t)inplace) ||
                             !b->inputs[inplace] || b->row.constant[inplace] || shapes[0].shape.rank < 0 ||
                             prn_layout_bytes(&b->in[inplace]) != prn_layout_bytes(&shapes[0]))) {
            continue;
        }
        snprintf(b->at, sizeof b->at, "kernel %s, %s, %d threads%s", kernel->name, layouts, threads,
                 inplace >= 0 ? ", in place" : "");
        drop_outputs(b);
        memcpy(b->out, shapes, sizeof shapes);
        prony_status status = run_once(b, kernel, threads, inplace);
        if (status != PRONY_OK) {
            b->refused = !b->expected[0].data && status != PRONY_INTERNAL;
            ok = complain(b, "%s", b->error.message);
        } else if (!have_first) {
            ok = check_outputs(b, kernel) && check_places(b, kernel, b->out);
            memcpy(first, b->out, sizeof first);
            have_first = true;
            for (size_t k = 0; k < b->context.output_count; k++) b->out[k].data = NULL;
        } else {
            ok = same_bytes(b, first);
        }
    }
    drop_outputs(b);
    memcpy(b->out, shapes, sizeof shapes);
    for (size_t k = 0; k < b->context.output_count && have_first; k++) prn_free_aligned(first[k].data);
    return ok;
}

static bool run_in_layouts(bench *b, const prn_kernel *kernel, const prn_layout *in, const prn_layout *out,
                           const char *layouts)
{
    make_inputs(b, in);
    for (size_t k = 0; k < b->context.output_count; k++) b->out[k].layout = (uint8_t)out[k];
    prn_prepared prepared = {0};
    snprintf(b->at, sizeof b->at, "kernel %s, %s, prepare", kernel->name, layouts);
    prony_status status = prepare(b, kernel, &prepared);
    bool ok = status == PRONY_OK || complain(b, "%s", b->error.message);
    if (!ok) b->refused = !b->expected[0].data && status != PRONY_INTERNAL;
    if (ok) {
        b->context.state = prepared.state;
        b->context.scratch_bytes = prepared.scratch_bytes;
        ok = run_all(b, kernel, layouts);
    }
    if (kernel->release) kernel->release(prepared.state);
    b->context.state = NULL;
    b->context.scratch_bytes = 0;
    for (size_t k = 0; k < b->context.output_count; k++) b->out[k].layout = PRN_PLAIN;
    drop_inputs(b);
    return ok;
}

/* Data that the kernel's predicates may read: constants only. */
static void plan_inputs(bench *b, prn_layout offered)
{
    for (size_t i = 0; i < b->context.input_count; i++) {
        if (!b->inputs[i]) continue;
        b->in[i] = b->row.values[i];
        if (!b->row.constant[i]) b->in[i].data = NULL;
        b->in[i].layout = (uint8_t)(b->row.constant[i] || b->in[i].shape.rank < 3 ? PRN_PLAIN : offered);
    }
}

/* A Winograd tile makes NaN of an infinity (docs/internals/accuracy_contract.md, "NaN and infinities"). */
static bool spreads_infinity(const bench *b, const prn_kernel *kernel)
{
    if (!strstr(kernel->name, "winograd")) return false;
    for (size_t i = 0; i < b->context.input_count; i++) {
        const prony_value *value = &b->row.values[i];
        const float *elements = value->data;
        if (!b->inputs[i] || value->dtype != PRONY_FLOAT32 || !elements) continue;
        for (int64_t k = 0; k < prony_shape_numel(&value->shape); k++)
            if (isinf(elements[k])) return true;
    }
    return false;
}

static bool run_kernel(bench *b, const prn_kernel *kernel)
{
    static const prn_layout offers[] = {PRN_PLAIN, PRN_NHWC, PRN_BLOCKED8, PRN_BLOCKED16};
    prn_layout seen[4][2 * OP_CASE_MAX_VALUES];
    size_t seen_count = 0;
    plan_inputs(b, PRN_PLAIN);
    if (!prn_kernel_takes_types(kernel, &b->context) || (b->post_ops.count && !kernel->post_ops)) return true;
    if (kernel->supported && !kernel->supported(&b->context)) return true;
    if (spreads_infinity(b, kernel)) return true;
    bool ok = true;
    for (size_t offer = 0; offer < (kernel->layouts ? 4 : 1) && ok; offer++) {
        prn_layout *asked = seen[seen_count];
        memset(asked, 0, sizeof seen[0]);
        plan_inputs(b, offers[offer]);
        if (kernel->layouts) kernel->layouts(&b->context, asked, asked + OP_CASE_MAX_VALUES);
        for (size_t p = 0; p < b->post_ops.count; p++) { /* an added value has the output's layout */
            if (b->post_ops.op[p].kind == PRN_POST_ADD) asked[b->post_ops.op[p].input] = asked[OP_CASE_MAX_VALUES];
        }
        bool repeated = false;
        for (size_t s = 0; s < seen_count; s++) repeated |= memcmp(seen[s], asked, sizeof seen[0]) == 0;
        if (repeated) continue;
        seen_count++;
        char layouts[64];
        snprintf(layouts, sizeof layouts, "offered %s", prn_layout_name(offers[offer]));
        ok = run_in_layouts(b, kernel, asked, asked + OP_CASE_MAX_VALUES, layouts);
    }
    drop_first(b);
    return ok;
}

/* ---- the row */

/* Infers with the information before a run, and with all of it. Both must agree on everything that the first one
 * determines. */
static bool infer_outputs(bench *b)
{
    prony_value early[OP_CASE_MAX_VALUES];
    snprintf(b->at, sizeof b->at, "infer");
    plan_inputs(b, PRN_PLAIN);
    if (b->op->infer(&b->context) != PRONY_OK) return complain(b, "%s", b->error.message);
    memcpy(early, b->out, sizeof early);
    memcpy(b->in, b->row.values, sizeof b->in);
    if (b->op->infer(&b->context) != PRONY_OK) return complain(b, "%s", b->error.message);
    for (size_t k = 0; k < b->context.output_count; k++) {
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        if (b->out[k].dtype == PRONY_UNDEFINED) return complain(b, "output %zu has no type", k);
        if (early[k].shape.rank >= 0 &&
            (early[k].dtype != b->out[k].dtype || !prn_shape_equal(&early[k].shape, &b->out[k].shape))) {
            return complain(b, "output %zu is %s without data and %s with data", k, prn_value_text(&early[k], left),
                            prn_value_text(&b->out[k], right));
        }
    }
    return true;
}

static bool check_cost(bench *b)
{
    prony_cost cost = {0};
    snprintf(b->at, sizeof b->at, "cost");
    if (b->op->cost(&b->context, &cost) != PRONY_OK) return complain(b, "%s", b->error.message);
    b->exact = cost.flops == 0;
    b->long_reference = cost.macs > LONG_REFERENCE_MACS;
    b->deep =
        cost.macs >
        MOST_TERMS * (uint64_t)(prony_shape_numel(&b->out[0].shape) > 0 ? prony_shape_numel(&b->out[0].shape) : 1);
    if (cost.madds < cost.macs)
        return complain(b, "%llu madds but %llu macs", (unsigned long long)cost.madds, (unsigned long long)cost.macs);
    if (cost.flops > INT64_MAX || cost.int_ops > INT64_MAX)
        return complain(b, "more operations than 2^63: a count fell below zero");
    if (cost.special > cost.flops) return complain(b, "more special operations than flops");
    return true;
}

/* true: the kernel and cost that a dynamic step retains do not depend on the elements. */
static bool check_values(bench *b)
{
    snprintf(b->at, sizeof b->at, "values");
    const int input = op_case_value_that_matters(b->op, &b->context, b->in);
    return input < 0 ||
           complain(b, "kernels or cost follow from the elements of input %d: PRN_OP_BY_VALUE is missing", input);
}

static bool run_kernels(bench *b)
{
    const prn_kernel *last = b->op->kernels;
    while (last[1].name) last++;
    bool ok = run_kernel(b, last);
    if (ok && b->context.output_count && !b->expected[0].data) {
        snprintf(b->at, sizeof b->at, "kernel %s", last->name);
        ok = complain(b, "the reference is not usable");
    }
    for (const prn_kernel *kernel = b->op->kernels; kernel != last && ok; kernel++) ok = run_kernel(b, kernel);
    for (size_t k = 0; k < OP_CASE_MAX_VALUES; k++) {
        prn_free_aligned(b->expected[k].data);
        b->expected[k] = (prony_value){0};
    }
    return ok;
}

/* Attaches one chain to the row; false: no chain is left. An added value goes after every input the operator has.
 */
static bool attach_post_ops(bench *b, size_t chain)
{
    static const prn_post_op chains[][3] = {
        {{PRN_POST_ADD, 0, 0, 0}, {PRN_POST_RELU, 0, 0, 0}, {PRN_POST_RELU, 0, 0, 0}},
        {{PRN_POST_LEAKY_RELU, 0.1f, 0, 0}, {PRN_POST_ADD, 0, 0, 0}, {PRN_POST_CLIP, -0.75f, 1.5f, 0}},
        {{PRN_POST_HARD_SWISH, 0, 0, 0}, {PRN_POST_SILU, 0, 0, 0}, {PRN_POST_ADD, 0, 0, 0}},
        {{PRN_POST_SIGMOID, 0, 0, 0}, {PRN_POST_HARD_SIGMOID, 0.3f, 0.4f, 0}, {PRN_POST_TANH, 0, 0, 0}},
        {{PRN_POST_ADD, 0, 0, 0}, {PRN_POST_GELU_ERF, 0, 0, 0}, {PRN_POST_RELU, 0, 0, 0}},
        {{PRN_POST_ADD, 0, 0, 0}, {PRN_POST_CLIP, -0.75f, 1.5f, 0}, {PRN_POST_HARD_SWISH, 0, 0, 0}},
        {{PRN_POST_CLIP, 0.25f, 1.5f, 0}, {PRN_POST_SILU, 0, 0, 0}, {PRN_POST_RELU, 0, 0, 0}},
        {{PRN_POST_HARD_SWISH, 0, 0, 0}, {PRN_POST_AFFINE, 1.5f, -0.25f, 0}, {PRN_POST_ADD, 0, 0, 0}},
    };
    if (chain == sizeof chains / sizeof *chains) return false;
    size_t added = b->op->inputs.most > (int)b->row.input_count ? (size_t)b->op->inputs.most : b->row.input_count;
    prony_value *value = &b->row.values[added];
    if (!value->data) {
        *value = b->out[0];
        value->data = op_case_bytes(prn_value_bytes(value));
        op_case_fill(value, -2, 2, 77);
        b->inputs[added] = &b->in[added];
        b->context.input_count = added + 1;
    }
    b->post_ops.count = 3;
    for (size_t p = 0; p < 3; p++) {
        b->post_ops.op[p] = chains[chain][p];
        b->post_ops.op[p].input = added;
    }
    b->context.post_ops = &b->post_ops;
    return true;
}

static bool too_large(const bench *b)
{
    int64_t elements = 0;
    for (size_t k = 0; k < b->context.output_count; k++) {
        int64_t count = b->out[k].shape.rank < 0 ? 0 : prony_shape_numel(&b->out[k].shape);
        if (count < 0 || count > MOST_ELEMENTS) return true;
        elements += count;
    }
    return elements > MOST_ELEMENTS;
}

static bool run_row(bench *b)
{
    if (!infer_outputs(b)) {
        b->refused = true;
        return false;
    }
    if (b->doubtful && too_large(b)) {
        b->refused = true;
        return complain(b, "too large");
    }
    if (!check_cost(b) || !check_values(b) || !run_kernels(b)) return false;
    bool chains = (b->op->flags & PRN_OP_POST_OPS) && !(b->doubtful && b->deep) && b->out[0].dtype == PRONY_FLOAT32 &&
                  b->out[0].shape.rank >= 0;
    b->exact = false;
    for (size_t chain = 0; chains && attach_post_ops(b, chain); chain++) {
        if (!run_kernels(b)) return false;
    }
    return true;
}

static bool set_up(bench *b, void *params)
{
    const prn_op *op = b->op;
    op_case_node *row = &b->row;
    const prn_arity outputs = prn_op_outputs(op);
    if (row->output_count == 0) row->output_count = outputs.least > 1 ? (size_t)outputs.least : 1;
    for (size_t i = 0; i < row->input_count; i++) b->inputs[i] = row->inputs[i] ? &b->in[i] : NULL;
    for (size_t k = 0; k < row->output_count; k++) b->outputs[k] = &b->out[k];
    b->context = (prony_context){.node = &row->node,
                                 .params = params,
                                 .user = (void *)(uintptr_t)op->variant,
                                 .input_count = row->input_count,
                                 .output_count = row->output_count,
                                 .inputs = b->inputs,
                                 .outputs = b->outputs,
                                 .threads = 1,
                                 .services = &test_host,
                                 .services_data = b,
                                 .error = &b->error};
    snprintf(b->at, sizeof b->at, "set-up");
    if ((int)row->input_count < op->inputs.least || (op->inputs.most >= 0 && (int)row->input_count > op->inputs.most)) {
        return complain(b, "%zu inputs", row->input_count);
    }
    if (outputs.most >= 0 && (int)row->output_count > outputs.most) {
        return complain(b, "%zu outputs", row->output_count);
    }
    plan_inputs(b, PRN_PLAIN);
    if (prn_params_parse(op, &row->node, params, &b->error) != PRONY_OK) return complain(b, "%s", b->error.message);
    if (op->check && op->check(&b->context) != PRONY_OK) return complain(b, "%s", b->error.message);
    return true;
}

/* A model whose node lacks a required input is refused before the operator is asked (engine/bind/bind.c). */
static bool takes_missing(bench *b)
{
    const prn_arity inputs = b->op->inputs;
    const size_t required = inputs.most < 0 && inputs.least > 0 ? b->row.input_count : (size_t)inputs.least;
    for (size_t i = 0; i < required; i++) {
        if (i >= b->row.input_count || !b->row.inputs[i])
            return complain(b, "the operator's row says that input %zu is required", i);
    }
    return true;
}

static op_case_outcome run(const op_case *row, bool doubtful, char *message, size_t message_bytes)
{
    bench *b = prn_calloc(1, sizeof *b);
    if (!b) return OP_CASE_FAILED;
    b->message = message;
    b->message_bytes = message_bytes;
    b->doubtful = doubtful;
    bool ok = op_case_parse(&b->row, row, message, message_bytes);
    b->refused = !ok;
    if (ok) {
        b->op = prn_op_find(b->row.node.domain, b->row.node.op_type, row->opset);
        ok = b->op != NULL || complain(b, "no such operator");
    }
    if (ok) {
        void *params = op_case_bytes(b->op->params_bytes);
        ok = set_up(b, params);
        b->refused = !ok;
        if (ok && !row->refused && !doubtful) ok = takes_missing(b);
        if (row->refused) {
            ok = (!ok || !infer_outputs(b)) && (b->error.message[0] || complain(b, "refused without a message"));
            if (!ok && !message[0]) complain(b, "accepted, but should be refused");
        } else {
            ok = ok && run_row(b);
        }
        prn_free_aligned(params);
    }
    for (size_t i = 0; i < b->packed_count; i++) prn_free_aligned(b->packed[i]);
    op_case_node_release(&b->row);
    op_case_outcome outcome = ok ? OP_CASE_PASSED : b->refused ? OP_CASE_REFUSED : OP_CASE_FAILED;
    prn_free(b);
    return outcome;
}

bool op_case_run(const op_case *row, char *message, size_t message_bytes)
{
    return run(row, false, message, message_bytes) == OP_CASE_PASSED;
}

op_case_outcome op_case_try_any(const op_case *row, char *message, size_t message_bytes)
{
    return run(row, true, message, message_bytes);
}
