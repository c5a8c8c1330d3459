/* The cost model of Conv's kernels: cycles that one core takes for a problem, by each of them. The plan takes the
 * kernel with the fewest (prn_kernel.predict in ops/op.h).
 *
 * A cycle is that of a core which starts two vector multiply-adds in it, so that a vector multiply-add takes half of
 * one at best. Problem, post-operations, layout of the input, instruction set and kind of memory decide, never a
 * measurement or a thread count: a result's bits must not depend on them. Reports turn cycles into time by the measured
 * peak. */
#ifndef PRN_OPS_CONV_CONV_COST_MODEL_H
#define PRN_OPS_CONV_CONV_COST_MODEL_H

#include "ops/kernels/window/conv_problem.h"
#include "ops/conv/conv_winograd_tiling.h"

/* Blocked direct convolution, of groups and of weights made in the run too. */
double prn_conv_direct_cycles(const prony_context *context, const prn_conv *conv);
/* First layer: few channels, read where they lie. */
double prn_conv_first_layer_cycles(const prony_context *context, const prn_conv *conv);
/* Row-vectorised direct convolution, with so many positions of an image's row and floats of copied planes. */
double prn_conv_row_direct_cycles(const prony_context *context, const prn_conv *conv, int64_t positions, double copied);
double prn_conv_depthwise_cycles(const prony_context *context, const prn_conv *conv);
/* bf16 split terms; `columns`: of 32 output channels, that a task makes. */
double prn_conv_bf16x3_cycles(const prony_context *context, const prn_conv *conv, int64_t columns);
/* Row of conv_f32_dnnl, of problems that oneDNN may take (prn_dnnl_conv_supported is asked afterwards). */
double prn_conv_dnnl_cycles(const prony_context *context);

/* ---- Winograd */

/* The source of filters that the second-level cache does not hold. */
typedef enum prn_winograd_filters {
    PRN_WINOGRAD_KEPT,   /* they are kept transformed */
    PRN_WINOGRAD_IN_RUN, /* they are transformed in each run */
    PRN_WINOGRAD_EITHER  /* in each run, if they would be a good part of the model's weights and that costs little */
} prn_winograd_filters;

double prn_winograd_cycles(const prn_conv *conv, int64_t lanes, const prn_winograd_tiling *cut);
/* The tiling with the fewest cycles, of the tiles that are exact enough. `weights`: floats of all the model's; of use
 * for PRN_WINOGRAD_EITHER. false: no tiling fits. */
bool prn_winograd_tiling_best(const prn_conv *conv, const prn_winograd_simd *simd, prn_winograd_filters filters,
                              double weights, prn_winograd_tiling *out);
/* The factor of the cycles of kept filters where kernels are compared: they have to be worth their memory. */
extern const double prn_winograd_filters_gain;
/* The direct kernel's cycles without a start, on vectors of so many lanes. */
double prn_conv_product_cycles(const prn_conv *conv, int64_t lanes);

#endif
