/* Convolution by oneDNN 2.6-2.7: the one file that knows its API.
 *
 * A problem is given to oneDNN with its channels rounded up to whole blocks (weights and bias padded with zeros when
 * they are packed), so that oneDNN sees no padded memory and a handle can be set without its clearing of lanes.
 * Post-operations that do not keep zero at zero have the output's last lanes cleared behind them.
 *
 * The primitive, its memory objects and its stream belong to the plan step (conv_state); packed weights and bias belong
 * to the model; the engine object is one per process. A primitive fixes its thread count when it is created, so the
 * team size is set around every call that creates or runs one.
 *
 * Invariant: implementation, formats and packing depend on problem and ISA alone, and only implementations whose
 * outputs are the same bits for every thread count are used (see `allowed`). */
#include "ops/dnnl.h"

#ifndef PRN_HAVE_DNNL
const char *prn_dnnl_version(void)
{
    return "";
}
#else

#include "base/alloc.h"
#include "base/isa.h"
#include "base/parallel.h"
#include "ops/conv.h"

#include <dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if DNNL_VERSION_MAJOR != 2 || DNNL_VERSION_MINOR < 6
#error "oneDNN 2.6 or 2.7 is needed"
#endif

/* ---- process */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine; /* NULL: not usable */
static char version_text[32];

static void start(void)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(version_text, sizeof version_text, "%d.%d.%d", version->major, version->minor, version->patch);
    prn_isa isa = prn_isa_level();
    if (isa < PRN_ISA_AVX2) return;
    if (isa < PRN_ISA_AMX) {
        /* Refused if the program used oneDNN before: then what it uses must lie within our cap anyway. */
        dnnl_cpu_isa_t cap = isa == PRN_ISA_AVX2 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_avx512_core_bf16;
        if (dnnl_set_max_cpu_isa(cap) != dnnl_success && ((unsigned)dnnl_get_effective_cpu_isa() & ~(unsigned)cap))
            return;
    }
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
}

static bool started(void)
{
    pthread_once(&once, start);
    return engine != NULL;
}

const char *prn_dnnl_version(void)
{
    pthread_once(&once, start);
    return version_text;
}

static prony_status failed(const prony_context *context, dnnl_status_t status, const char *what)
{
    if (status == dnnl_out_of_memory)
        return prony_fail(context, PRONY_OUT_OF_MEMORY, "oneDNN: %s: out of memory", what);
    return prony_fail(context, PRONY_INTERNAL, "oneDNN: %s: status %d", what, (int)status);
}

/* ---- problem */

/* Direct implementations only: Winograd rounds otherwise, gemm and reference ones have not been compared. The AVX2 ones
 * were compared bit by bit at 1 to 4 threads, with ReLU, with an added residual and with SiLU, over the 347
 * convolutions of 18 common CNNs that they take; the AVX-512 and brgconv ones are compared by the operator cases
 * wherever those run on such a processor. One that differs is to be taken out here. */
static bool allowed(const char *name)
{
    static const char *const names[] = {"jit:avx2",
                                        "jit_1x1:avx2",
                                        "jit_dw:avx2",
                                        "jit:avx512_core",
                                        "jit_1x1:avx512_core",
                                        "jit_dw:avx512_core",
                                        "brgconv:avx512_core",
                                        "brgconv_1x1:avx512_core"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return false;
}

/* The problem in whole channel blocks. */
typedef struct padded {
    int64_t groups, group_in, group_out; /* channels per group */
    bool grouped;                        /* weights have a group axis */
    prn_layout in, out;
} padded;

static int64_t round_up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* false: groups that do not fall on whole blocks. */
static bool pad_channels(const prn_conv *conv, prn_layout layout, bool plain_input, padded *out)
{
    int64_t block = prn_layout_block(layout);
    *out = (padded){conv->groups, conv->group_in, conv->group_out, conv->groups > 1, plain_input ? PRN_PLAIN : layout,
                    layout};
    if (conv->groups == 1) {
        if (!plain_input) out->group_in = round_up(conv->group_in, block);
        out->group_out = round_up(conv->group_out, block);
        return true;
    }
    if (plain_input) return false;
    if (conv->group_in == 1 && conv->group_out == 1) {
        out->groups = round_up(conv->groups, block);
        return true;
    }
    return conv->group_in % block == 0 && conv->group_out % block == 0;
}

static dnnl_format_tag_t layout_tag(prn_layout layout, int axes)
{
    static const dnnl_format_tag_t tags[3][3] = {{dnnl_ncw, dnnl_nchw, dnnl_ncdhw},
                                                 {dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c},
                                                 {dnnl_nCw16c, dnnl_nChw16c, dnnl_nCdhw16c}};
    return tags[layout == PRN_BLOCKED8 ? 1 : layout == PRN_BLOCKED16 ? 2 : 0][axes - 1];
}

static dnnl_status_t tensor_desc(dnnl_memory_desc_t *desc, const prn_conv *conv, int64_t channels,
                                 const int64_t *extent, prn_layout layout)
{
    int axes = conv->window.axes;
    dnnl_dims_t dims = {conv->batch, channels};
    for (int i = 0; i < axes; i++) dims[2 + i] = extent[PRN_WINDOW_AXES - axes + i];
    return dnnl_memory_desc_init_by_tag(desc, axes + 2, dims, dnnl_f32, layout_tag(layout, axes));
}

/* Axes of the padded weights: [groups,] out, in, spatial … */
static int weight_dims(const prn_conv *conv, const padded *padded, dnnl_dims_t dims)
{
    int count = 0;
    if (padded->grouped) dims[count++] = padded->groups;
    dims[count++] = padded->group_out;
    dims[count++] = padded->group_in;
    for (int i = PRN_WINDOW_AXES - conv->window.axes; i < PRN_WINDOW_AXES; i++) dims[count++] = conv->window.kernel[i];
    return count;
}

/* ---- post-operations */

/* The first residual is read from the output itself if nothing comes before it. Whether that or a buffer of its own is
 * summed must not depend on where the plan puts buffers: the rounding differs. */
static bool summed_in_place(const prn_post_ops *post_ops, size_t index)
{
    return index == 0 && post_ops->op[0].kind == PRN_POST_ADD;
}

static bool keeps_zero(const prn_post_op *op)
{
    switch (op->kind) {
    case PRN_POST_CLIP:
        return op->a <= 0.0f && op->b >= 0.0f;
    case PRN_POST_SIGMOID:
        return false;
    case PRN_POST_HARD_SIGMOID:
        return op->b <= 0.0f;
    default:
        return true;
    }
}

static dnnl_status_t append_eltwise(dnnl_post_ops_t ops, const prn_post_op *op)
{
    dnnl_alg_kind_t kind = dnnl_eltwise_relu;
    float a = 0.0f, b = 0.0f;
    switch (op->kind) {
    case PRN_POST_RELU:
    case PRN_POST_ADD:
        break;
    case PRN_POST_LEAKY_RELU:
        a = op->a;
        break;
    case PRN_POST_CLIP:
        kind = dnnl_eltwise_clip;
        a = op->a;
        b = op->b;
        break;
    case PRN_POST_SIGMOID:
        kind = dnnl_eltwise_logistic;
        break;
    case PRN_POST_TANH:
        kind = dnnl_eltwise_tanh;
        break;
    case PRN_POST_HARD_SIGMOID: {
        dnnl_status_t status = dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_linear, op->a, op->b);
        if (status != dnnl_success) return status;
        kind = dnnl_eltwise_clip;
        b = 1.0f;
        break;
    }
    case PRN_POST_HARD_SWISH:
        kind = dnnl_eltwise_hardswish;
        break;
    case PRN_POST_SILU:
        kind = dnnl_eltwise_swish;
        a = 1.0f;
        break;
    case PRN_POST_GELU_ERF:
        kind = dnnl_eltwise_gelu_erf;
        break;
    }
    return dnnl_post_ops_append_eltwise(ops, 1.0f, kind, a, b);
}

static dnnl_status_t make_attributes(const prn_post_ops *post_ops, const dnnl_memory_desc_t *y,
                                     dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status != dnnl_success) return status;
    status = dnnl_post_ops_create(&ops);
    for (size_t i = 0; status == dnnl_success && post_ops && i < post_ops->count; i++) {
        if (summed_in_place(post_ops, i))
            status = dnnl_post_ops_append_sum(ops, 1.0f);
        else if (post_ops->op[i].kind == PRN_POST_ADD)
            status = dnnl_post_ops_append_binary(ops, dnnl_binary_add, y);
        else
            status = append_eltwise(ops, &post_ops->op[i]);
    }
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(*out, ops);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_fpmath_mode(*out, dnnl_fpmath_mode_strict);
    dnnl_post_ops_destroy(ops);
    if (status != dnnl_success) dnnl_primitive_attr_destroy(*out);
    return status;
}

/* ---- primitive descriptor */

static dnnl_status_t describe(const prn_conv *conv, const padded *padded, dnnl_memory_desc_t *y,
                              dnnl_convolution_desc_t *out)
{
    const prn_window *window = &conv->window;
    int axes = window->axes, skip = PRN_WINDOW_AXES - axes;
    dnnl_memory_desc_t x, weights, bias;
    dnnl_dims_t dims, bias_dims = {padded->groups * padded->group_out};
    dnnl_dims_t stride, dilation, pad_begin, pad_end;
    int count = weight_dims(conv, padded, dims);
    dnnl_status_t status = tensor_desc(&x, conv, padded->groups * padded->group_in, window->in, padded->in);
    if (status == dnnl_success) status = tensor_desc(y, conv, bias_dims[0], window->out, padded->out);
    if (status == dnnl_success)
        status = dnnl_memory_desc_init_by_tag(&weights, count, dims, dnnl_f32, dnnl_format_tag_any);
    if (status == dnnl_success) status = dnnl_memory_desc_init_by_tag(&bias, 1, bias_dims, dnnl_f32, dnnl_a);
    if (status != dnnl_success) return status;
    for (int i = 0; i < axes; i++) {
        stride[i] = window->stride[skip + i];
        dilation[i] = window->dilation[skip + i] - 1;
        pad_begin[i] = window->pad_begin[skip + i];
        pad_end[i] = window->pad_end[skip + i];
    }
    return dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_inference, dnnl_convolution_direct, &x,
                                                      &weights, conv->bias ? &bias : NULL, y, stride, dilation,
                                                      pad_begin, pad_end);
}

/* The first allowed implementation for this padding and layout; NULL if there is none. */
static dnnl_primitive_desc_t find_with(const prony_context *context, const prn_conv *conv, const padded *padded)
{
    dnnl_memory_desc_t y;
    dnnl_convolution_desc_t problem;
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_iterator_t each;
    dnnl_primitive_desc_t found = NULL;
    if (describe(conv, padded, &y, &problem) != dnnl_success) return NULL;
    if (make_attributes(context->post_ops, &y, &attributes) != dnnl_success) return NULL;
    if (dnnl_primitive_desc_iterator_create(&each, &problem, attributes, engine, NULL) == dnnl_success) {
        do {
            const char *name = "";
            dnnl_primitive_desc_t candidate = dnnl_primitive_desc_iterator_fetch(each);
            if (!candidate) break;
            dnnl_primitive_desc_query(candidate, dnnl_query_impl_info_str, 0, &name);
            if (allowed(name))
                found = candidate;
            else
                dnnl_primitive_desc_destroy(candidate);
        } while (!found && dnnl_primitive_desc_iterator_next(each) == dnnl_success);
        dnnl_primitive_desc_iterator_destroy(each);
    }
    dnnl_primitive_attr_destroy(attributes);
    return found;
}

/* Layouts are a matter of ISA and channel counts: whole blocks, or plain images with up to three channels. */
static dnnl_primitive_desc_t find(const prony_context *context, const prn_conv *conv, padded *padded)
{
    prn_layout layout = prn_isa_level() >= PRN_ISA_AVX512 ? PRN_BLOCKED16 : PRN_BLOCKED8;
    dnnl_primitive_desc_t found = NULL;
    int former = prn_team_set(context->threads);
    if (conv->in_channels <= 3 && pad_channels(conv, layout, true, padded)) found = find_with(context, conv, padded);
    if (!found && pad_channels(conv, layout, false, padded)) found = find_with(context, conv, padded);
    prn_team_restore(former);
    return found;
}

bool prn_dnnl_conv_usable(const prony_context *context)
{
    prn_conv conv;
    padded padded;
    if (!started() || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    if (conv.batch < 1 || conv.in_channels < 1 || conv.out_channels < 1) return false;
    dnnl_primitive_desc_t found = find(context, &conv, &padded);
    if (found) dnnl_primitive_desc_destroy(found);
    return found != NULL;
}

void prn_dnnl_conv_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    prn_conv conv;
    padded padded;
    if (prn_conv_read(context, &conv) != PRONY_OK) return;
    dnnl_primitive_desc_t found = find(context, &conv, &padded);
    if (!found) return;
    dnnl_primitive_desc_destroy(found);
    in[0] = padded.in;
    out[0] = padded.out;
    const prn_post_ops *post_ops = context->post_ops;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        if (post_ops->op[i].kind == PRN_POST_ADD) in[post_ops->op[i].input] = padded.out;
    }
}

/* ---- weights */

typedef struct packing {
    const prn_conv *conv;
    const padded *padded;
    const dnnl_memory_desc_t *format;
} packing;

/* Rows of the model's weights into rows of the padded ones. */
static void copy_padded(const packing *packing, float *to)
{
    const prn_conv *conv = packing->conv;
    const padded *padded = packing->padded;
    const float *from = conv->weights->data;
    size_t row = (size_t)(conv->group_in * conv->kernel_volume);
    for (int64_t g = 0; g < conv->groups; g++) {
        for (int64_t k = 0; k < conv->group_out; k++) {
            memcpy(to + (g * padded->group_out + k) * padded->group_in * conv->kernel_volume, from, row * sizeof *to);
            from += row;
        }
    }
}

static dnnl_status_t reorder(const dnnl_memory_desc_t *from, void *source, const dnnl_memory_desc_t *to, void *target)
{
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_memory_t source_memory = NULL, target_memory = NULL;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&desc, from, engine, to, engine, NULL);
    if (status == dnnl_success) status = dnnl_primitive_create(&primitive, desc);
    if (status == dnnl_success) status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (status == dnnl_success) status = dnnl_memory_create(&source_memory, from, engine, source);
    if (status == dnnl_success) status = dnnl_memory_create(&target_memory, to, engine, target);
    if (status == dnnl_success) {
        dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, source_memory}, {DNNL_ARG_TO, target_memory}};
        status = dnnl_primitive_execute(primitive, stream, 2, arguments);
    }
    if (status == dnnl_success) status = dnnl_stream_wait(stream);
    dnnl_memory_destroy(target_memory);
    dnnl_memory_destroy(source_memory);
    dnnl_stream_destroy(stream);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
    return status;
}

static prony_status build_weights(const prony_context *context, void *argument, void *packed)
{
    static const dnnl_format_tag_t plain[] = {dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    const packing *packing = argument;
    dnnl_memory_desc_t from;
    dnnl_dims_t dims;
    int count = weight_dims(packing->conv, packing->padded, dims);
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&from, count, dims, dnnl_f32, plain[count - 3]);
    if (status != dnnl_success) return failed(context, status, "weights");
    size_t bytes = dnnl_memory_desc_get_size(&from);
    void *source = packing->conv->weights->data, *copy = NULL;
    if (bytes != prn_layout_bytes(packing->conv->weights)) {
        copy = prn_alloc_aligned(64, bytes);
        if (!copy) return prn_no_memory(context->error);
        memset(copy, 0, bytes);
        copy_padded(packing, copy);
        source = copy;
    }
    int former = prn_team_set(context->threads);
    status = reorder(&from, source, packing->format, packed);
    prn_team_restore(former);
    prn_free_aligned(copy);
    return status == dnnl_success ? PRONY_OK : failed(context, status, "packing weights");
}

static prony_status build_bias(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const packing *packing = argument;
    int64_t count = packing->padded->groups * packing->padded->group_out;
    memset(packed, 0, (size_t)count * sizeof(float));
    memcpy(packed, packing->conv->bias->data, (size_t)packing->conv->out_channels * sizeof(float));
    return PRONY_OK;
}

/* Spells out everything that the packed bytes depend on. */
static void weights_tag(const packing *packing, char *tag, size_t size)
{
    const dnnl_memory_desc_t *format = packing->format;
    const dnnl_blocking_desc_t *blocking = &format->format_desc.blocking;
    size_t used =
        (size_t)snprintf(tag, size, "dnnl %s conv groups %lld dims", version_text, (long long)packing->conv->groups);
    for (int i = 0; i < format->ndims && used < size; i++)
        used += (size_t)snprintf(tag + used, size - used, " %lld/%lld", (long long)format->dims[i],
                                 (long long)blocking->strides[i]);
    for (int i = 0; i < blocking->inner_nblks && used < size; i++)
        used += (size_t)snprintf(tag + used, size - used, " %lld%c", (long long)blocking->inner_blks[i],
                                 (char)('a' + blocking->inner_idxs[i]));
}

static prony_status packed_operands(const prony_context *context, packing *packing, const void **weights,
                                    const void **bias)
{
    char tag[512];
    const prn_conv *conv = packing->conv;
    weights_tag(packing, tag, sizeof tag);
    PRN_TRY(context->host->packed(context, conv->weights->data, tag, dnnl_memory_desc_get_size(packing->format),
                                  build_weights, packing, weights));
    *bias = conv->bias ? conv->bias->data : NULL;
    int64_t channels = packing->padded->groups * packing->padded->group_out;
    if (!conv->bias || channels == conv->out_channels) return PRONY_OK;
    snprintf(tag, sizeof tag, "bias padded to %lld", (long long)channels);
    return context->host->packed(context, conv->bias->data, tag, (size_t)channels * sizeof(float), build_bias, packing,
                                 bias);
}

/* ---- step */

enum { MOST_ARGUMENTS = 5 + PRN_MAX_POST_OPS };

typedef struct conv_state {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_exec_arg_t arguments[MOST_ARGUMENTS];
    int count;
    dnnl_memory_t x, y, scratch;
    dnnl_memory_t residual[PRN_MAX_POST_OPS]; /* NULL: not a residual, or summed in place */
    size_t y_bytes, copy_offset;              /* where in the scratch a residual can be kept */
    int64_t batch, blocks, block, spatial;    /* of the output */
    int64_t lanes_to_clear;                   /* in the last block of every image */
} conv_state;

void prn_dnnl_conv_release(void *opaque)
{
    conv_state *state = opaque;
    if (!state) return;
    for (int i = 0; i < state->count; i++) dnnl_memory_destroy(state->arguments[i].memory);
    dnnl_stream_destroy(state->stream);
    dnnl_primitive_destroy(state->primitive);
    prn_free(state);
}

static dnnl_status_t add_argument(conv_state *state, int kind, const dnnl_memory_desc_t *desc, const void *data,
                                  dnnl_memory_t *out)
{
    dnnl_memory_t memory = NULL;
    dnnl_status_t status = dnnl_memory_create(&memory, desc, engine, (void *)(uintptr_t)data);
    if (status != dnnl_success) return status;
    state->arguments[state->count++] = (dnnl_exec_arg_t){kind, memory};
    if (out) *out = memory;
    return dnnl_success;
}

static dnnl_status_t add_residuals(conv_state *state, const prn_post_ops *post_ops, const dnnl_memory_desc_t *y)
{
    int position = 0;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        if (post_ops->op[i].kind == PRN_POST_ADD && !summed_in_place(post_ops, i)) {
            int kind = DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1;
            dnnl_status_t status = add_argument(state, kind, y, NULL, &state->residual[i]);
            if (status != dnnl_success) return status;
        }
        position += post_ops->op[i].kind == PRN_POST_HARD_SIGMOID ? 2 : 1;
    }
    return dnnl_success;
}

static dnnl_status_t fill_state(conv_state *state, const prony_context *context, dnnl_primitive_desc_t desc,
                                const void *weights, const void *bias)
{
    const dnnl_memory_desc_t *y = dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0);
    dnnl_status_t status = dnnl_primitive_create(&state->primitive, desc);
    if (status == dnnl_success) status = dnnl_stream_create(&state->stream, engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = add_argument(state, DNNL_ARG_SRC, dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0), NULL,
                              &state->x);
    if (status == dnnl_success)
        status = add_argument(state, DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0),
                              weights, NULL);
    if (status == dnnl_success && bias)
        status = add_argument(state, DNNL_ARG_BIAS, dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 1), bias,
                              NULL);
    if (status == dnnl_success) status = add_argument(state, DNNL_ARG_DST, y, NULL, &state->y);
    if (status == dnnl_success)
        status = add_argument(state, DNNL_ARG_SCRATCHPAD,
                              dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0), NULL, &state->scratch);
    return status == dnnl_success ? add_residuals(state, context->post_ops, y) : status;
}

/* Sizes that run needs, and the scratch. */
static void fill_sizes(conv_state *state, const prony_context *context, const prn_conv *conv,
                       dnnl_primitive_desc_t desc, prn_layout layout, prn_prepared *out)
{
    const dnnl_memory_desc_t *y = dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0);
    size_t scratch = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0));
    state->y_bytes = dnnl_memory_desc_get_size(y);
    state->batch = conv->batch;
    state->block = prn_layout_block(layout);
    state->blocks = y->dims[1] / state->block;
    state->spatial = conv->out_spatial;
    state->copy_offset = (scratch + 63) / 64 * 64;
    out->scratch_bytes = scratch;
    bool zero = true;
    const prn_post_ops *post_ops = context->post_ops;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        if (state->residual[i]) out->scratch_bytes = state->copy_offset + state->y_bytes;
        zero = zero && keeps_zero(&post_ops->op[i]);
    }
    if (!zero) state->lanes_to_clear = y->dims[1] - conv->out_channels;
}

prony_status prn_dnnl_conv_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    padded padded;
    const void *weights, *bias;
    PRN_TRY(prn_conv_read(context, &conv));
    dnnl_primitive_desc_t desc = find(context, &conv, &padded);
    if (!desc) return prony_fail(context, PRONY_INTERNAL, "oneDNN has no direct convolution for this problem any more");
    packing packing = {&conv, &padded, dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0)};
    conv_state *state = NULL;
    prony_status status = packed_operands(context, &packing, &weights, &bias);
    if (status == PRONY_OK) {
        state = prn_calloc(1, sizeof *state);
        status = state ? PRONY_OK : prn_no_memory(context->error);
    }
    if (status == PRONY_OK) {
        int former = prn_team_set(context->threads);
        dnnl_status_t filled = fill_state(state, context, desc, weights, bias);
        prn_team_restore(former);
        if (filled != dnnl_success) status = failed(context, filled, "creating the primitive");
    }
    if (status == PRONY_OK) {
        fill_sizes(state, context, &conv, desc, padded.out, out);
        out->state = state;
    } else {
        prn_dnnl_conv_release(state);
    }
    dnnl_primitive_desc_destroy(desc);
    return status;
}

typedef struct copy {
    char *to;
    const char *from;
} copy;

static void copy_piece(void *argument, int64_t begin, int64_t end)
{
    const copy *copy = argument;
    memcpy(copy->to + begin, copy->from + begin, (size_t)(end - begin));
}

static void copy_bytes(const prony_context *context, void *to, const void *from, size_t bytes)
{
    copy copy = {to, from};
    prn_parallel_range(context->threads, (int64_t)bytes, 1 << 18, copy_piece, &copy);
}

static void clear_lanes(const conv_state *state, float *y)
{
    int64_t image = state->blocks * state->spatial * state->block;
    for (int64_t n = 0; n < state->batch; n++) {
        float *last = y + (n + 1) * image - state->lanes_to_clear;
        for (int64_t p = 0; p < state->spatial; p++)
            memset(last - p * state->block, 0, (size_t)state->lanes_to_clear * sizeof *last);
    }
}

/* Where the residuals are: one that lies in the output is moved to scratch before the output is written. */
static dnnl_status_t place_residuals(const prony_context *context, const conv_state *state, void *y)
{
    const prn_post_ops *post_ops = context->post_ops;
    dnnl_status_t status = dnnl_success;
    for (size_t i = 0; i < post_ops->count && status == dnnl_success; i++) {
        if (!state->residual[i]) continue;
        void *data = context->inputs[post_ops->op[i].input]->data;
        if (data == y) {
            data = (char *)context->scratch + state->copy_offset;
            copy_bytes(context, data, y, state->y_bytes);
        }
        status = dnnl_memory_set_data_handle_v2(state->residual[i], data, state->stream);
    }
    if (summed_in_place(post_ops, 0)) {
        const void *data = context->inputs[post_ops->op[0].input]->data;
        if (data != y) copy_bytes(context, y, data, state->y_bytes);
    }
    return status;
}

prony_status prn_dnnl_conv_run(const prony_context *context)
{
    const conv_state *state = context->state;
    void *y = context->outputs[0]->data;
    dnnl_status_t status = dnnl_success;
    if (context->post_ops && context->post_ops->count) status = place_residuals(context, state, y);
    int former = prn_team_set(context->threads);
    if (status == dnnl_success)
        status = dnnl_memory_set_data_handle_v2(state->x, context->inputs[0]->data, state->stream);
    if (status == dnnl_success) status = dnnl_memory_set_data_handle_v2(state->y, y, state->stream);
    if (status == dnnl_success)
        status = dnnl_memory_set_data_handle_v2(state->scratch, context->scratch, state->stream);
    if (status == dnnl_success)
        status = dnnl_primitive_execute(state->primitive, state->stream, state->count, state->arguments);
    if (status == dnnl_success) status = dnnl_stream_wait(state->stream);
    prn_team_restore(former);
    if (status != dnnl_success) return failed(context, status, "running the convolution");
    if (state->lanes_to_clear) clear_lanes(state, y);
    return PRONY_OK;
}

#endif
