/* Implements conv_cost_model.h.
 *
 *     cycles = vector multiply-adds x rate  beside  weights read from memory     products and memory overlap
 *              + transforms, reordering, maps of post-operations, a start
 *
 * A rate is the cycles of one vector multiply-add on the lanes that a kernel fills, the unused ones included. Rates and
 * starts come from three sources: measured (the machine is named), crossover (both sides took the same time at the
 * threshold that an earlier release had, whose measurement is named), unproven (no measurement covers it; the kernel is
 * kept behind the one that was in use). tests/by_hand/conv_times.c -g 300 compares choice and fastest kernel. */
#include "ops/conv/conv_cost_model.h"

#include "base/cpu/isa.h"
#include "base/integers.h"
#include "ops/conv/conv_direct_plan.h"

#include <math.h>

enum {
    LINE = 16,      /* floats of a cache line */
    FAR_APART = 6,  /* taps: positions of a tile of the direct kernel */
    FIRST_LAYER = 3 /* input channels of an image */
};

/* ---- rates, in cycles of a vector multiply-add ---- */

/* Full tiles of products. Measured on Sapphire Rapids with AVX-512. */
static const double product_rate = 0.63;
/* Filters from memory, a line. Measured on Sapphire Rapids; the quick one on Zen 5. */
static const double line_cycles = 17.0, quick_line_cycles = 9.0;
/* A product that runs in halves (Zen 4) takes so many times as long; memory runs at the same speed. */
static const double halves = 5.0 / 3.0;
/* First layer and row-vectorised direct, of 4 to 15 input channels on large images. Crossover: the direct kernel's full
 * blocks, where 13 of 16 lanes are channels (first layers on Sapphire Rapids). */
static const double few_channels_rate = 0.63 * 16 / 13;

/* AVX2; AArch64 takes the same rates, unproven. "Measured" is by conv_times -g 300 on Zen 4 held to AVX2.
 *
 * Row-vectorised direct of more channels. Crossover with oneDNN. */
static const double narrow_rows_rate = 0.64;
/* First layer of an image, and oneDNN's: measured on images of 35 x 35 and 224 x 224. */
static const double narrow_image_rate = 0.66, dnnl_narrow_image_rate = 0.63;
/* oneDNN's other windows: measured. */
static const double dnnl_narrow_rate = 0.64;
/* The direct kernel with one block of outputs, whose sums are too few for two multiply-adds a cycle; and with empty
 * lanes in its only block of inputs. Measured. */
static const double direct_one_block_rate = 1.65, direct_empty_inputs = 2.0;
/* Groups on direct tiles, ahead of oneDNN's. Measured. */
static const double direct_narrow_groups_rate = 0.60;
/* Depthwise windows of oneDNN. Measured, beside depthwise_rate. */
static const double dnnl_narrow_depthwise = 1.3;

/* AVX-512. oneDNN: crossover of an earlier release at 300,000 multiply-adds of several taps (resnet50, mobilenet_v2,
 * shufflenet on Sapphire Rapids), which counted no start of it. Its groups, and the direct kernel's behind them:
 * unproven. */
static const double dnnl_wide_rate = 0.693, dnnl_groups_rate = 0.66, direct_groups_rate = 0.90;
/* Depthwise rows load an input for each product: unproven but for AVX2's proportion. */
static const double depthwise_rate = 1.0, dnnl_wide_depthwise = 1.1;
/* bf16 split terms: three terms beside Winograd's tiles of 32 input channels, which they beat, and of 64, which beat
 * them (crossover: densenet121 took 0.90, resnet50 0.95 of its time with AMX); fewer terms on AMX; dot products of
 * AVX512_BF16, which Winograd's tiles beat wherever they beat the direct kernel. */
static const double amx_f32_rate = 0.38, amx_pointwise_rate = 0.30, amx_fast_rate = 0.15, bf16_dot_rate = 0.56;

/* ---- starts and steps ---- */

/* oneDNN's own start, about 4 us. Measured on Zen 4, with AVX2 and AVX-512. */
static const double dnnl_start = 15000.0;
/* Tiles begin and end: sums of fewer than 64 products. Crossover of an earlier release, which counted no start of
 * oneDNN's, at 1,500,000 multiply-adds (first layers on Sapphire Rapids: resnet50's at two threads 1164 to 665 us). */
enum { SHORT_SUM = 64 };
static const double short_sum_start = 5906.0;
/* An element reordered between plain and blocked layouts, in the caches and beyond. Came with conv_f32_flat, by which
 * lenet5 took 10.8 us instead of 21.5. */
static const double near_reorder = 0.33, far_reorder = 0.66;
/* A Reorder is a step of its own: about 300 ns. Like every start it counts for each image, so that small problems take
 * the same kernel, and give the same bits, for every batch. */
static const double reorder_start = 1000.0;
/* A vector of outputs through maps (Silu, HardSwish, ...) in oneDNN's kernels with AVX2, beyond vec.h's. Crossover:
 * maps decide for every convolution of one tap (efficientnet_b0, mobilenet_v3_large: above). */
static const double dnnl_maps = 30.0;

/* ---- limits of kernels that a prediction would not find ---- */

enum {
    /* Row-vectorised direct: floats of copied planes that stay in the second-level cache; of groups. */
    MOST_COPIED = 1 << 18,
    MOST_GROUPS_COPIED = 1 << 22,
    FEW_CHANNELS = 16, /* of plain images whose every position is a product of its own */
    /* Direct, with weights that each run packs: channels of a group. No measurement recorded. */
    LEAST_VARIABLE_CHANNELS = 8,
    /* bf16 split terms: multiply-adds of all images; and with three terms tiles have to be full, each row that is split
     * has to meet many columns or taps, each weight many rows. Sapphire Rapids: densenet121, resnet50 (above); of one
     * tap no figures are recorded. */
    BF16_LEAST_WORK = 1000000,
    F32_LEAST_CHANNELS = 128,
    F32_LEAST_OUTPUTS = 196,
    F32_LEAST_OUTPUTS_OF_TAPS = 784, /* an image's edges are padding in every tap */
    F32_LEAST_COLUMNS = 4,
    F32_LEAST_TAPS = 9,
    POINTWISE_LEAST_IN = 64, /* one tap: the rest of a step or of a tile is empty */
    POINTWISE_LEAST_OUT = 64,
    POINTWISE_LEAST_EITHER = 96,
    POINTWISE_LEAST_POSITIONS = 49,
    POINTWISE_SOME_POSITIONS = 169, /* with fewer, the weights' way from memory counts: six bytes each, and a strip is
                                       split for all outputs at once */
    POINTWISE_SOME_OUT = 128,
    POINTWISE_SOME_WEIGHTS = 1 << 19,
    BF16_LANES = 16, /* channels of a block, of a step of depth, of a column */
    BF16_DEPTH = 32,
    BF16_COLUMNS = 32
};

/* ---- parts of every prediction ---- */

static int64_t conv_cost_model_whole(int64_t channels, int64_t lanes)
{
    return prn_ceil_div(channels, lanes) * lanes;
}

static bool is_strict(const prony_context *context)
{
    return context->precision == PRONY_PRECISION_FP32_STRICT;
}

/* fp32-strict takes the same kernel on every processor: the widest vectors' prediction, without memory and starts. */
static int64_t model_lanes(const prony_context *context)
{
    return is_strict(context) ? PRN_DIRECT_UNIT : prn_direct_tiles()->lanes;
}

/* Two things at the same time take the longer of the two, and some of the other. */
static double overlapped(double a, double b)
{
    return a > b ? a + b / 4 : b + a / 4;
}

/* Weights of one tap, in whole blocks of channels. */
static double channel_pairs(const prn_conv *conv, int64_t lanes)
{
    return (double)conv_cost_model_whole(conv->in_channels, lanes) *
           (double)conv_cost_model_whole(conv->out_channels, lanes);
}

/* Cycles that reading so many floats of filters takes, `times` times, in the unit of those of products. Those of
 * networks so small that they stay in the second-level cache from run to run take none. */
static double read_cycles(const prn_conv *conv, int64_t lanes, double filters, double times)
{
    enum { SMALL_FILTERS = 1 << 15, SMALLEST_TILE = 16 };
    const bool in_halves = lanes == 16 && prn_isa_has(PRN_HALVES_AVX512);
    const double line = prn_isa_has(PRN_QUICK_MEMORY) ? quick_line_cycles
                        : in_halves                   ? line_cycles / halves
                                                      : line_cycles;
    return SMALLEST_TILE * channel_pairs(conv, lanes) > SMALL_FILTERS ? times * filters / LINE * line : 0.0;
}

/* The share of an axis' taps that are not padding, if they lie so far apart that whole tiles of the direct kernel
 * leave the others out. */
static double taps_inside(const prn_window *window, int axis)
{
    int64_t inside = 0;
    if (window->dilation[axis] < FAR_APART) return 1.0;
    for (int64_t tap = 0; tap < window->kernel[axis]; tap++) {
        const int64_t first = tap * window->dilation[axis] - window->pad_begin[axis]; /* what the first output reads */
        const int64_t begin = first < 0 ? -first : 0, end = prn_least(window->out[axis], window->in[axis] - first);
        inside += end > begin ? end - begin : 0;
    }
    return (double)inside / (double)(window->kernel[axis] * window->out[axis]);
}

/* Vector multiply-adds of all images, on blocks of channels. */
static double block_products(const prn_conv *conv, int64_t lanes)
{
    return (double)conv->batch * (double)conv->out_spatial * taps_inside(&conv->window, 1) *
           taps_inside(&conv->window, 2) * (double)conv->kernel_volume * channel_pairs(conv, lanes) / (double)lanes;
}

/* Cycles that filters from memory add to products: `sets` of them, one for each group. They do not grow with the batch,
 * so all kernels but Winograd's have the same: their predictions differ by parts that do, and the batch does not decide
 * among kernels that give other bits. */
static double memory_cycles(const prn_conv *conv, int64_t lanes, int64_t sets)
{
    const double products = block_products(conv, lanes) * product_rate;
    const double filters = (double)(sets * conv->kernel_volume) * channel_pairs(conv, lanes);
    return overlapped(products, read_cycles(conv, lanes, filters, 1.0)) - products;
}

/* Products on blocks of channels, beside the filters from memory. */
static double product_cycles(const prn_conv *conv, int64_t lanes, int64_t sets, double rate)
{
    return block_products(conv, lanes) * rate + memory_cycles(conv, lanes, sets);
}

double prn_conv_product_cycles(const prn_conv *conv, int64_t lanes)
{
    return product_cycles(conv, lanes, 1, product_rate);
}

/* Cycles to reorder the input for a kernel that takes blocks and gets a plain image of one tap, whose products do not
 * hide it. Those of more taps hide it (first layers and small images alone come plain). */
static double reordered_input(const prn_conv *conv)
{
    const bool plain = conv->x->layout == PRN_PLAIN && conv->kernel_volume == 1 && conv->in_channels > FIRST_LAYER;
    return plain ? (double)conv->batch *
                       (reorder_start + near_reorder * (double)conv->in_channels * (double)conv->in_spatial)
                 : 0.0;
}

static double vectors_of_outputs(const prn_conv *conv, int64_t lanes)
{
    return (double)conv->batch * (double)conv->out_spatial * (double)conv_cost_model_whole(conv->out_channels, lanes) /
           (double)lanes;
}

static bool is_depthwise(const prn_conv *conv)
{
    return conv->groups > 1 && conv->group_in == 1 && conv->group_out == 1;
}

/* ---- direct ---- */

static double narrow_direct_rate(const prn_conv *conv, int64_t lanes)
{
    return (conv->out_channels <= lanes ? direct_one_block_rate : product_rate) *
           (conv->in_channels < lanes ? direct_empty_inputs : 1.0);
}

double prn_conv_direct_cycles(const prony_context *context, const prn_conv *conv)
{
    const int64_t lanes = model_lanes(context);
    const bool variable = !conv->weights->data, wide = lanes == 16;
    if (variable && conv->group_in < LEAST_VARIABLE_CHANNELS) return INFINITY;
    const prn_conv one = conv->groups > 1 ? prn_direct_of_groups(conv) : *conv;
    if (is_strict(context)) return block_products(&one, lanes) * product_rate;
    if (conv->groups > 1)
        return product_cycles(&one, lanes, conv->groups, wide ? direct_groups_rate : direct_narrow_groups_rate);
    return product_cycles(conv, lanes, 1, wide ? product_rate : narrow_direct_rate(conv, lanes)) +
           reordered_input(conv);
}

/* ---- first layer ---- */

/* Of more than three channels, which mostly come in blocks: plain ones, or small images. */
double prn_conv_first_layer_cycles(const prony_context *context, const prn_conv *conv)
{
    const int64_t lanes = model_lanes(context), out = conv_cost_model_whole(conv->out_channels, lanes);
    const bool image = conv->in_channels <= FIRST_LAYER,
               many_taps = conv->in_channels * conv->kernel_volume >= SHORT_SUM;
    const double products =
        (double)conv->out_spatial * (double)conv->kernel_volume * (double)(conv->in_channels * out) / (double)lanes;
    if (is_strict(context)) return image ? (double)conv->batch * products * product_rate : INFINITY;
    if (!image && !(many_taps && prn_conv_is_small(conv)) && conv->x->layout != PRN_PLAIN) return INFINITY;
    const double rate = image                     ? (lanes == 16 ? product_rate : narrow_image_rate)
                        : prn_conv_is_small(conv) ? product_rate
                                                  : few_channels_rate;
    const double reordered = image || conv->x->layout == PRN_PLAIN
                                 ? 0.0
                                 : reorder_start + near_reorder * (double)(conv->in_channels * conv->in_spatial);
    return (double)conv->batch * (products * rate + (many_taps ? 0.0 : short_sum_start) + reordered) +
           memory_cycles(conv, lanes, 1);
}

/* ---- row-vectorised direct ---- */

/* Groups that no kernel on blocks takes: the ones below are compared with plain products. */
static bool fills_blocks(const prn_conv *conv)
{
#ifdef PRN_HAVE_DNNL
    const int64_t unit = prn_direct_tiles()->lanes;
#else
    const int64_t unit = PRN_DIRECT_UNIT;
#endif
    return conv->group_in % unit == 0 && conv->group_out % unit == 0;
}

double prn_conv_row_direct_cycles(const prony_context *context, const prn_conv *conv, int64_t positions, double copied)
{
    const int64_t lanes = model_lanes(context);
    const bool first = conv->in_channels <= FIRST_LAYER, small = prn_conv_is_small(conv);
    const bool few = !first && !small && conv->in_channels < lanes && conv->kernel_volume > 1;
    const double products = (double)conv_cost_model_whole(positions, lanes) * (double)conv->kernel_volume *
                            (double)conv->group_in * (double)conv->out_channels / (double)lanes *
                            (few                                               ? few_channels_rate
                             : lanes == 16 || conv->in_channels < FEW_CHANNELS ? product_rate
                                                                               : narrow_rows_rate);
    const double reordered = (double)conv->out_spatial * (double)conv->out_channels +
                             (first ? 0.0 : (double)conv->in_spatial * (double)conv->in_channels);
    const prn_conv one = conv->groups > 1 ? prn_direct_of_groups(conv) : *conv;
    const double all = (double)conv->batch * products + memory_cycles(&one, lanes, conv->groups);
    if (conv->groups > 1)
        return is_depthwise(conv) || copied > MOST_GROUPS_COPIED || fills_blocks(conv) ? INFINITY : all;
    if (copied >= MOST_COPIED) return INFINITY;
    if (conv->kernel_volume == 1 && !first) {
        if (conv->x->layout != PRN_PLAIN || conv->in_channels > FEW_CHANNELS || conv->out_channels > FEW_CHANNELS)
            return INFINITY;
        return all;
    }
    return all + (double)conv->batch * (small ? near_reorder : far_reorder) * reordered;
}

/* ---- depthwise ---- */

static double depthwise_products(const prn_conv *conv, int64_t lanes)
{
    return vectors_of_outputs(conv, lanes) * (double)conv->kernel_volume;
}

double prn_conv_depthwise_cycles(const prony_context *context, const prn_conv *conv)
{
    return depthwise_products(conv, model_lanes(context)) * depthwise_rate;
}

/* ---- bf16 split terms ---- */

/* One tap: rows of tiles are whole images' positions in a line, so that few are empty. */
static bool suits_pointwise(const prn_conv *conv)
{
    if (conv->kernel_volume != 1 || conv->in_channels < POINTWISE_LEAST_IN || conv->out_channels < POINTWISE_LEAST_OUT)
        return false;
    if (conv->in_channels < POINTWISE_LEAST_EITHER && conv->out_channels < POINTWISE_LEAST_EITHER) return false;
    if (conv->out_spatial >= POINTWISE_SOME_POSITIONS) return true;
    return conv->out_spatial >= POINTWISE_LEAST_POSITIONS && conv->out_channels >= POINTWISE_SOME_OUT &&
           conv->in_channels * conv->out_channels <= POINTWISE_SOME_WEIGHTS;
}

/* Three terms: six products of bfloat16 leave little to gain. One step of channels (32) suits any number of outputs. */
static bool suits_three_terms(const prn_conv *conv, int64_t columns)
{
    if (conv->in_channels % BF16_DEPTH || conv->out_channels % BF16_LANES) return false;
    if (conv->out_spatial < (conv->kernel_volume > 1 ? F32_LEAST_OUTPUTS_OF_TAPS : F32_LEAST_OUTPUTS)) return false;
    if (conv->in_channels == BF16_DEPTH && conv->kernel_volume >= F32_LEAST_TAPS) return true;
    return conv->out_channels % BF16_COLUMNS == 0 && conv->out_channels >= F32_LEAST_CHANNELS &&
           columns * conv->kernel_volume >= F32_LEAST_COLUMNS;
}

double prn_conv_bf16x3_cycles(const prony_context *context, const prn_conv *conv, int64_t columns)
{
    const double all = prn_conv_image_work(conv) * (double)conv->batch;
    const bool f32 = context->precision == PRONY_PRECISION_FP32, pointwise = suits_pointwise(conv);
    if (all < BF16_LEAST_WORK || (f32 && !pointwise && !suits_three_terms(conv, columns))) return INFINITY;
    const double rate = f32                        ? (pointwise ? amx_pointwise_rate : amx_f32_rate)
                        : prn_isa_has(PRN_HAS_AMX) ? amx_fast_rate
                                                   : bf16_dot_rate;
    return (double)conv->batch * (double)conv->out_spatial * (double)conv->kernel_volume *
           channel_pairs(conv, BF16_LANES) / BF16_LANES * rate;
}

/* ---- oneDNN ---- */

static double dnnl_rate(const prn_conv *conv, bool wide)
{
    if (conv->groups > 1) return dnnl_groups_rate;
    if (wide) return dnnl_wide_rate;
    if (conv->in_channels <= FIRST_LAYER) return dnnl_narrow_image_rate;
    return dnnl_narrow_rate;
}

double prn_conv_dnnl_cycles(const prony_context *context)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK || !conv.weights->data || conv.batch < 1 || conv.in_channels < 1 ||
        conv.out_channels < 1)
        return INFINITY;
    const int64_t lanes = prn_direct_tiles()->lanes;
    const bool wide = lanes == 16;
    const double beside =
        (!wide && prn_direct_epilogue_has_maps(context) ? dnnl_maps * vectors_of_outputs(&conv, lanes) : 0.0) +
        (double)conv.batch * dnnl_start;
    if (is_depthwise(&conv))
        return depthwise_products(&conv, lanes) * (wide ? dnnl_wide_depthwise : dnnl_narrow_depthwise) + beside;
    if (conv.groups > 1 && (conv.group_in % lanes || conv.group_out % lanes)) return INFINITY;
    const double rate = dnnl_rate(&conv, wide);
    if (conv.groups == 1 && conv.in_channels <= FIRST_LAYER)
        return vectors_of_outputs(&conv, lanes) * (double)(conv.in_channels * conv.kernel_volume) * rate +
               memory_cycles(&conv, lanes, 1) + beside;
    const prn_conv one = conv.groups > 1 ? prn_direct_of_groups(&conv) : conv;
    return product_cycles(&one, lanes, conv.groups, rate) + reordered_input(&conv) + beside;
}

/* ---- Winograd ---- */

/* WEIGHTY_...: filters made in each run, where that costs 0 to 5 % of the time and saves memory (SSD300 holds 241 MiB
 * instead of 336). */
enum {
    LARGE_FILTERS = 1 << 23,   /* floats that show in the process's memory */
    WEIGHTY_MODEL = 5 << 20,   /* floats of a model's weights, and */
    WEIGHTY_FILTERS = 1 << 17, /* those that a layer adds, which are worth time */
};

/* Runs of fewer channels than a tile's long ones take so many times as long. Measured as product_rate. */
static const double short_runs = 1.08;
/* By how much it has to be faster than the direct kernel to be worth larger filters. */
const double prn_winograd_filters_gain = 1.1;
/* By how much larger filters have to be faster than smaller ones, and those of 32 MB. */
static const double memory_gain = 1.08, large_memory_gain = 1.2;
/* The share that kept filters take of the cycles that the model gives them, as their memory is read ahead; and the
 * part of a layer's time that is worth a part of the model's weights in memory. (Measured on Zen 4, with either
 * vectors.) */
static const double read_ahead = 0.91, memory_gain_weight = 2.5;

/* Cycles of a tile of a block of channels, and of the filters of an input channel and a block of output channels that a
 * run transforms. Measured as product_rate. */
static const struct {
    double forward, inverse, filters;
} transforms[PRN_WINOGRAD_KINDS] = {
    [PRN_WINOGRAD_2X2] = {110, 60, 45}, [PRN_WINOGRAD_2X4] = {190, 140, 50}, [PRN_WINOGRAD_4X4] = {380, 270, 68}};

static double filter_floats(const prn_conv *conv, int64_t lanes, const prn_winograd_tiling *cut)
{
    return (double)cut->points * channel_pairs(conv, lanes);
}

double prn_winograd_cycles(const prn_conv *conv, int64_t lanes, const prn_winograd_tiling *cut)
{
    const double tiles = (double)(cut->rows_in_all * cut->tile_columns);
    const double products = tiles * (double)(cut->points * cut->in_blocks * lanes) * (double)cut->blocks *
                            product_rate *
                            (conv->in_channels < prn_winograd_tiles[cut->kind].long_channels ? short_runs : 1.0);
    const double batches = (double)(cut->batches_down * cut->batches_across);
    const double read =
        cut->u_point ? (double)conv->kernel_volume * channel_pairs(conv, lanes) : filter_floats(conv, lanes, cut);
    return overlapped(products, read_cycles(conv, lanes, read, cut->far ? batches : 1.0)) +
           (cut->u_point ? batches * channel_pairs(conv, lanes) / (double)lanes * transforms[cut->kind].filters : 0.0) +
           tiles * ((double)cut->in_blocks * transforms[cut->kind].forward +
                    (double)cut->blocks * transforms[cut->kind].inverse);
}

static bool find_fastest(const prn_conv *conv, const prn_winograd_simd *simd, bool in_run, prn_winograd_tiling *out)
{
    bool found = false;
    for (int kind = 0; kind < PRN_WINOGRAD_KINDS; kind++) {
        prn_winograd_tiling cut;
        if (conv->in_channels < prn_winograd_tiles[kind].least_channels) continue;
        prn_winograd_tiling_as(conv, simd, (prn_winograd_kind)kind, in_run, &cut);
        cut.cycles = prn_winograd_cycles(conv, simd->lanes, &cut);
        const double threshold = cut.u_point                                              ? 1.0
                                 : filter_floats(conv, simd->lanes, &cut) > LARGE_FILTERS ? large_memory_gain
                                                                                          : memory_gain;
        if (found && cut.cycles * threshold > out->cycles) continue;
        *out = cut;
        found = true;
    }
    return found;
}

/* `share`: of what keeping adds in all weights. */
static bool is_cheap_in_run(const prn_winograd_tiling *in_run, const prn_winograd_tiling *kept, double share)
{
    return in_run->u_point && in_run->cycles < kept->cycles * (read_ahead + memory_gain_weight * share);
}

bool prn_winograd_tiling_best(const prn_conv *conv, const prn_winograd_simd *simd, prn_winograd_filters filters,
                              double weights, prn_winograd_tiling *out)
{
    prn_winograd_tiling in_run;
    if (!find_fastest(conv, simd, filters == PRN_WINOGRAD_IN_RUN, out)) return false;
    const double added =
        filter_floats(conv, simd->lanes, out) - (double)conv->kernel_volume * channel_pairs(conv, simd->lanes);
    if (filters == PRN_WINOGRAD_EITHER && weights > WEIGHTY_MODEL && added > WEIGHTY_FILTERS &&
        find_fastest(conv, simd, true, &in_run) && is_cheap_in_run(&in_run, out, added / weights))
        *out = in_run;
    return true;
}
