/* Convolution problems in oneDNN's terms: padding, layouts, post-operations, the choice of implementation, and how a
 * problem is cut into pieces, each of them one primitive made for one thread.
 *
 * A problem is given to oneDNN with its channels rounded up to whole blocks, so that oneDNN sees no padded memory and a
 * handle can be set without its clearing of lanes. Pieces are whole images, whole groups or runs of a group's output
 * channels, because those are contiguous in output, weights and bias alike, and their inputs are too.
 *
 * Invariant: implementation, formats and pieces depend on problem and ISA alone, never on a thread count. */
#include "ops/kernels/window/conv_problem.h"
#include "base/integers.h"

#ifdef PRN_HAVE_DNNL

#include "base/cpu/isa.h"
#include "base/threads/parallel.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/vendor/dnnl_guard.h"
#include "ops/vendor/dnnl_problem.h"

#include <string.h>

/* Direct implementations only: Winograd rounds otherwise, gemm and reference ones take other layouts. */
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

/* ---- problem in whole blocks */

static int64_t round_up(int64_t value, int64_t multiple)
{
    return prn_ceil_div(value, multiple) * multiple;
}

static bool dnnl_problem_is_depthwise(const prn_dnnl_problem *problem)
{
    return problem->groups > 1 && problem->group_in == 1 && problem->group_out == 1;
}

/* false: groups that do not fall on whole blocks. */
static bool pad_channels(prn_dnnl_problem *problem, prn_layout layout, bool plain_input)
{
    const prn_conv *conv = &problem->conv;
    int64_t block = prn_layout_block(layout);
    problem->groups = conv->groups;
    problem->group_in = conv->group_in;
    problem->group_out = conv->group_out;
    problem->in = plain_input ? PRN_PLAIN : layout;
    problem->out = layout;
    if (conv->groups == 1) {
        if (!plain_input) problem->group_in = round_up(conv->group_in, block);
        problem->group_out = round_up(conv->group_out, block);
        return true;
    }
    if (plain_input) return false;
    if (conv->group_in == 1 && conv->group_out == 1) {
        problem->groups = round_up(conv->groups, block);
        return true;
    }
    return conv->group_in % block == 0 && conv->group_out % block == 0;
}

/* A 1x1 kernel that steps over positions sees a smaller image and no steps. oneDNN would thin its input out too, but
 * once for every piece. */
static void thin(prn_dnnl_problem *problem)
{
    prn_window *window = &problem->conv.window;
    bool steps = false;
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        if (window->kernel[a] != 1 || window->pad_begin[a] || window->pad_end[a]) return;
        steps = steps || window->stride[a] != 1;
    }
    if (!steps || dnnl_problem_is_depthwise(problem)) return;
    problem->thick = *window;
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        window->in[a] = window->out[a];
        window->stride[a] = 1;
    }
    problem->conv.in_spatial = problem->conv.out_spatial;
    problem->thinned = true;
}

/* ---- pieces */

/* Multiply-adds of a task, and from which on work is split at all: about 20 us, of a depthwise convolution 40 us. They
 * came with the split of convolutions into tasks, without a recorded measurement of other values. */
enum { TASK_WORK = 900000, FORK_WORK = 900000, MOST_PIECES = 12, MANY_IMAGES = 8 };
#define LONG_WORK 3e9 /* about 50 ms: a piece, or a tile of it, is not left before its end */

/* The largest divisor of `batch` that is at most `most`: pieces of whole images leave no remainder. */
static int64_t images_per_piece(int64_t batch, int64_t most)
{
    int64_t images = most < 1 ? 1 : prn_least(most, batch);
    while (batch % images) images--;
    return images;
}

/* Long enough a run of channels that the kernels' register tiles are full: those take three (1x1) or four blocks. */
static int64_t channels_per_piece(const prn_dnnl_problem *problem, int64_t pieces)
{
    int64_t block = prn_layout_block(problem->out);
    int64_t unit = problem->conv.kernel_volume == 1 ? 2 * block : 4 * block;
    int64_t channels = round_up(prn_ceil_div(problem->group_out, pieces), unit);
    /* Every piece reads the whole input again, which a 1x1 product has least work to hide behind. */
    int64_t fewest = (problem->conv.kernel_volume == 1 && problem->group_out > 8 * block ? 8 : 4) * block;
    return prn_least(channels < fewest ? fewest : channels, problem->group_out);
}

static double image_work(const prn_dnnl_problem *problem)
{
    const prn_conv *conv = &problem->conv;
    return (double)conv->out_spatial * (double)conv->kernel_volume * (double)problem->groups *
           (double)problem->group_in * (double)problem->group_out * (dnnl_problem_is_depthwise(problem) ? 2.0 : 1.0);
}

/* Splits the work into pieces of images, groups or output channels of about TASK_WORK each; `last` is the rest that is
 * smaller. Independent of the thread count. */
static void dnnl_problem_choose_tiling(prn_dnnl_problem *problem)
{
    const prn_conv *conv = &problem->conv;
    prn_dnnl_piece *piece = &problem->piece;
    double image = image_work(problem);
    *piece = (prn_dnnl_piece){conv->batch, problem->groups, problem->group_out};
    problem->last = (prn_dnnl_piece){0};
    if (image * (double)conv->batch < FORK_WORK) return;
    double images = TASK_WORK / image;
    piece->batch = images_per_piece(conv->batch, images < (double)conv->batch ? (int64_t)images : conv->batch);
    if (piece->batch > 1 || (conv->batch >= MANY_IMAGES && image < LONG_WORK)) return;
    double wanted = image / TASK_WORK;
    int64_t pieces = prn_ceil_div(wanted < MOST_PIECES ? (int64_t)wanted + 1 : MOST_PIECES, conv->batch);
    if (image > LONG_WORK * (double)pieces)
        pieces = image < 1e6 * LONG_WORK ? (int64_t)(image / LONG_WORK) + 1 : 1000000;
    if (dnnl_problem_is_depthwise(problem)) {
        piece->groups =
            prn_least(round_up(prn_ceil_div(problem->groups, pieces), prn_layout_block(problem->out)), piece->groups);
    } else if (problem->groups >= pieces) {
        piece->groups = prn_ceil_div(problem->groups, pieces);
    } else {
        piece->groups = 1;
        piece->out = channels_per_piece(problem, prn_ceil_div(pieces, problem->groups));
    }
    if (problem->groups % piece->groups) {
        problem->last = *piece;
        problem->last.groups = problem->groups % piece->groups;
    } else if (problem->group_out % piece->out) {
        problem->last = *piece;
        problem->last.out = problem->group_out % piece->out;
    }
}

int64_t prn_dnnl_channel_pieces(const prn_dnnl_problem *problem)
{
    return prn_ceil_div(problem->groups, problem->piece.groups) * prn_ceil_div(problem->group_out, problem->piece.out);
}

prn_dnnl_place prn_dnnl_piece_place(const prn_dnnl_problem *problem, int64_t index)
{
    const prn_dnnl_piece *piece = &problem->piece;
    int64_t outs = prn_ceil_div(problem->group_out, piece->out), channels = prn_dnnl_channel_pieces(problem);
    prn_dnnl_place place = {index / channels * piece->batch, index % channels / outs * piece->groups,
                            index % outs * piece->out, false};
    place.last = place.group + piece->groups > problem->groups || place.out + piece->out > problem->group_out;
    return place;
}

/* ---- descriptions */

static dnnl_format_tag_t layout_tag(prn_layout layout, int axes)
{
    static const dnnl_format_tag_t tags[3][3] = {{dnnl_ncw, dnnl_nchw, dnnl_ncdhw},
                                                 {dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c},
                                                 {dnnl_nCw16c, dnnl_nChw16c, dnnl_nCdhw16c}};
    return tags[layout == PRN_BLOCKED8 ? 1 : layout == PRN_BLOCKED16 ? 2 : 0][axes - 1];
}

static dnnl_status_t tensor_desc(prn_dnnl_desc *desc, int axes, int64_t batch, int64_t channels, const int64_t *extent,
                                 prn_layout layout)
{
    dnnl_dims_t dims = {batch, channels};
    for (int i = 0; i < axes; i++) dims[2 + i] = extent[PRN_WINDOW_AXES - axes + i];
    return prn_dnnl_desc_make(desc, axes + 2, dims, layout_tag(layout, axes));
}

int prn_dnnl_weight_dims(const prn_dnnl_problem *problem, const prn_dnnl_piece *piece, dnnl_dims_t dims)
{
    const prn_window *window = &problem->conv.window;
    int count = 0;
    if (piece->groups > 1) dims[count++] = piece->groups;
    dims[count++] = piece->out;
    dims[count++] = problem->group_in;
    for (int i = PRN_WINDOW_AXES - window->axes; i < PRN_WINDOW_AXES; i++) dims[count++] = window->kernel[i];
    return count;
}

/* Descriptors of a piece's tensors; dropped together. */
typedef struct piece_descs {
    prn_dnnl_desc x, weights, bias, y;
} piece_descs;

static void drop_descs(piece_descs *descs)
{
    prn_dnnl_desc_drop(&descs->x);
    prn_dnnl_desc_drop(&descs->weights);
    prn_dnnl_desc_drop(&descs->bias);
    prn_dnnl_desc_drop(&descs->y);
}

/* Fills the library's descriptors for one piece; the weights' layout is left to the library. `descs` owns what `out`
 * points at. */
static dnnl_status_t dnnl_problem_describe(const prn_dnnl_problem *problem, const prn_dnnl_piece *piece,
                                           const prn_window *window, piece_descs *descs, prn_dnnl_convolution *out)
{
    int axes = window->axes, skip = PRN_WINDOW_AXES - axes;
    dnnl_dims_t dims, bias_dims = {piece->groups * piece->out};
    int count = prn_dnnl_weight_dims(problem, piece, dims);
    dnnl_status_t status =
        tensor_desc(&descs->x, axes, piece->batch, piece->groups * problem->group_in, window->in, problem->in);
    if (status == dnnl_success)
        status = tensor_desc(&descs->y, axes, piece->batch, bias_dims[0], window->out, problem->out);
    if (status == dnnl_success) status = prn_dnnl_desc_make(&descs->weights, count, dims, dnnl_format_tag_any);
    if (status == dnnl_success && problem->conv.bias) status = prn_dnnl_desc_make(&descs->bias, 1, bias_dims, dnnl_a);
    if (status != dnnl_success) return status;
    out->x = prn_dnnl_desc_of(&descs->x);
    out->weights = prn_dnnl_desc_of(&descs->weights);
    out->bias = prn_dnnl_desc_of(&descs->bias);
    out->y = prn_dnnl_desc_of(&descs->y);
    for (int i = 0; i < axes; i++) {
        out->stride[i] = window->stride[skip + i];
        out->dilation[i] = window->dilation[skip + i] - 1;
        out->pad_begin[i] = window->pad_begin[skip + i];
        out->pad_end[i] = window->pad_end[skip + i];
    }
    return dnnl_success;
}

/* ---- post-operations */

bool prn_dnnl_summed_in_place(const prn_post_ops *post_ops, size_t index)
{
    return index == 0 && post_ops->op[0].kind == PRN_POST_ADD;
}

int prn_dnnl_post_op_count(const prn_post_op *op)
{
    static const int steps[] = {
#define STEP(algorithm, alpha, beta) +1
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
    [PRN_POST_##SYMBOL] = dnnl,
#include "ops/activations.inc"
#undef STEP
        [PRN_POST_AFFINE] = 1, [PRN_POST_ADD] = 1};
    return steps[op->kind];
}

/* oneDNN 2.6 gives every step of an algorithm the parameters of the first one: Relu behind LeakyRelu is a second
 * LeakyRelu. */
static dnnl_status_t append_step(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta)
{
    for (int i = 0, count = dnnl_post_ops_len(ops); i < count; i++) {
        float its_alpha, its_beta;
        dnnl_alg_kind_t its;
        if (dnnl_post_ops_get_kind(ops, i) != dnnl_eltwise) continue;
        dnnl_status_t status = prn_dnnl_get_eltwise(ops, i, &its, &its_alpha, &its_beta);
        if (status != dnnl_success) return status;
        if (its == algorithm && (its_alpha != alpha || its_beta != beta)) return dnnl_unimplemented;
    }
    return prn_dnnl_append_eltwise(ops, algorithm, alpha, beta);
}

static dnnl_status_t append_eltwise(dnnl_post_ops_t ops, const prn_post_op *op)
{
    const float a = op->a, b = op->b;
    dnnl_status_t status = dnnl_success;
    switch (op->kind) {
#define STEP(algorithm, alpha, beta)                                                                                   \
    if (status == dnnl_success) status = append_step(ops, dnnl_eltwise_##algorithm, alpha, beta);
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
    case PRN_POST_##SYMBOL:                                                                                            \
        dnnl break;
#include "ops/activations.inc"
#undef STEP
    case PRN_POST_AFFINE:
        status = append_step(ops, dnnl_eltwise_linear, a, b);
        break;
    case PRN_POST_ADD:
        break;
    }
    return status;
}

static dnnl_status_t make_attributes(const prn_post_ops *post_ops, prn_dnnl_desc_view y, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status != dnnl_success) return status;
    status = dnnl_post_ops_create(&ops);
    for (size_t i = 0; status == dnnl_success && post_ops && i < post_ops->count; i++) {
        if (prn_dnnl_summed_in_place(post_ops, i))
            status = prn_dnnl_append_sum(ops);
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

/* oneDNN's relu and clip take the larger of a number and a bound by an instruction that makes a bound of NaN. Its
 * gelu_erf makes NaN of infinity and infinity of 3.4e38 (3.7, its AVX-512 kernels). */
static bool dnnl_loses_special_values(const prn_post_op *op)
{
    return op->kind == PRN_POST_RELU || op->kind == PRN_POST_CLIP || op->kind == PRN_POST_HARD_SIGMOID ||
           op->kind == PRN_POST_GELU_ERF || (op->kind == PRN_POST_LEAKY_RELU && op->a == 0.0f);
}

/* false: an addition stands behind one that loses NaN or infinity, and its addend may lie where the piece is
 * written. */
static bool dnnl_problem_split_post_ops(const prn_post_ops *all, prn_dnnl_problem *problem)
{
    problem->head.count = problem->tail.count = 0;
    for (size_t i = 0; all && i < all->count; i++) {
        prn_post_ops *to =
            problem->tail.count || dnnl_loses_special_values(&all->op[i]) ? &problem->tail : &problem->head;
        if (to == &problem->tail && all->op[i].kind == PRN_POST_ADD) return false;
        to->op[to->count++] = all->op[i];
    }
    return true;
}

void prn_dnnl_apply_tail(const prn_post_ops *tail, float *y, int64_t count)
{
    enum { RUN = 4096 }; /* floats that stay in the first-level cache from one operation to the next */
    const prony_context context = {.post_ops = tail};
    for (int64_t i = 0; tail->count && i < count; i += RUN)
        prn_post_ops_apply_vec(&context, y + i, i, prn_least(RUN, count - i));
}

/* ---- implementations */

typedef struct piece_request {
    const prn_dnnl_problem *problem;
    const prn_dnnl_piece *piece;
    const prn_window *window;
    piece_descs descs;
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t found;
} piece_request;

static dnnl_status_t dnnl_problem_find_piece(void *argument)
{
    piece_request *request = argument;
    prn_dnnl_convolution described;
    dnnl_status_t status =
        dnnl_problem_describe(request->problem, request->piece, request->window, &request->descs, &described);
    if (status == dnnl_success) status = make_attributes(&request->problem->head, described.y, &request->attributes);
    if (status == dnnl_success)
        request->found = prn_dnnl_convolution_desc(&described, request->attributes, prn_dnnl_engine(), allowed);
    return status;
}

/* The first allowed implementation. */
dnnl_primitive_desc_t prn_dnnl_piece_desc(const prn_dnnl_problem *problem, const prn_dnnl_piece *piece,
                                          const prn_window *window)
{
    piece_request request = {.problem = problem, .piece = piece, .window = window};
    const dnnl_status_t status = prn_dnnl_guarded_creation(dnnl_problem_find_piece, &request);
    if (status == dnnl_success) dnnl_primitive_attr_destroy(request.attributes);
    drop_descs(&request.descs);
    return request.found;
}

void prn_dnnl_problem_drop(dnnl_primitive_desc_t desc[2])
{
    for (int i = 0; i < 2; i++) dnnl_primitive_desc_destroy(desc[i]);
    desc[0] = desc[1] = NULL;
}

/* Every shape of tiles reads the same packed weights. */
static bool all_shapes_found(const prn_dnnl_problem *problem, const dnnl_primitive_desc_t desc[2])
{
    bool found = true;
    for (int shape = 1; shape < prn_dnnl_tile_shapes(&problem->tiling) && found; shape++) {
        const prn_window window = prn_dnnl_tile_window(&problem->conv.window, &problem->tiling, shape);
        for (int last = 0; last < 2 && desc[last] && found; last++) {
            dnnl_primitive_desc_t other =
                prn_dnnl_piece_desc(problem, last ? &problem->last : &problem->piece, &window);
            found = other && dnnl_memory_desc_equal(dnnl_primitive_desc_query_md(other, dnnl_query_weights_md, 0),
                                                    dnnl_primitive_desc_query_md(desc[last], dnnl_query_weights_md, 0));
            dnnl_primitive_desc_destroy(other);
        }
    }
    return found;
}

static bool dnnl_problem_tile(prn_dnnl_problem *problem)
{
    const prn_conv *conv = &problem->conv;
    const prn_dnnl_piece *piece = &problem->piece;
    const int64_t channels = piece->groups * piece->out;
    const double rate = prn_isa_has(PRN_HAS_AVX512) ? 7.5e10 : 4e10; /* multiply-adds a second */
    const prn_dnnl_piece_size size = {.seconds = image_work(problem) / rate * (double)channels /
                                                 ((double)problem->groups * (double)problem->group_out),
                                      .x_channels = piece->groups * problem->group_in,
                                      .y_channels = channels,
                                      .x_block = problem->in == PRN_PLAIN ? 1 : prn_layout_block(problem->in),
                                      .y_block = prn_layout_block(problem->out)};
    return piece->batch != 1 || prn_dnnl_tiles_cut(&conv->window, &size, &problem->tiling);
}

static bool dnnl_problem_find_tiling(prn_dnnl_problem *problem, dnnl_primitive_desc_t desc[2])
{
    memset(&problem->tiling, 0, sizeof problem->tiling);
    dnnl_problem_choose_tiling(problem);
    if (!dnnl_problem_tile(problem)) return false;
    const prn_window window =
        problem->tiling.total ? prn_dnnl_tile_window(&problem->conv.window, &problem->tiling, 0) : problem->conv.window;
    desc[0] = prn_dnnl_piece_desc(problem, &problem->piece, &window);
    desc[1] = desc[0] && problem->last.batch ? prn_dnnl_piece_desc(problem, &problem->last, &window) : NULL;
    if (desc[0] && (desc[1] || !problem->last.batch) && all_shapes_found(problem, desc)) return true;
    prn_dnnl_problem_drop(desc);
    return false;
}

bool prn_dnnl_problem_find(const prony_context *context, prn_dnnl_problem *problem, dnnl_primitive_desc_t desc[2])
{
    prn_conv *conv = &problem->conv;
    memset(problem, 0, sizeof *problem);
    if (!prn_dnnl_engine() || prn_conv_read(context, conv) != PRONY_OK) return false;
    if (!conv->weights->data || (conv->bias && !conv->bias->data)) return false;
    if (!dnnl_problem_split_post_ops(context->post_ops, problem)) return false;
    if (conv->batch < 1 || conv->in_channels < 1 || conv->out_channels < 1) return false;
    /* Layouts are a matter of ISA and channel counts: whole blocks, or plain images with up to three channels. */
    prn_layout layout = prn_layout_blocked();
    int former = prn_openmp_limit(1);
    bool found =
        conv->in_channels <= 3 && pad_channels(problem, layout, true) && dnnl_problem_find_tiling(problem, desc);
    if (!found && pad_channels(problem, layout, false)) {
        thin(problem);
        found = dnnl_problem_find_tiling(problem, desc);
    }
    prn_openmp_restore(former);
    return found;
}

#endif
