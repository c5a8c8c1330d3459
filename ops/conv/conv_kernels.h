/* The functions of the float kernels of Conv and ConvTranspose, by the names of their rows (conv.c, conv_transpose.c).
 * Each file has its drawing. Kernels on blocked layouts share prn_conv_blocked_layouts; those whose state is one block
 * have prn_free as their release. */
#ifndef PRN_OPS_CONV_CONV_KERNELS_H
#define PRN_OPS_CONV_CONV_KERNELS_H

#include "ops/op.h"

/* Both of a row's own layouts are blocks of a vector's channels, as are operands of its sums. */
void prn_conv_blocked_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
/* Facts of tiles of so many positions and channels (prn_kernel.facts): products [rows, depth] x [depth, columns]. */
void prn_conv_tile_facts(prony_cost *facts, int64_t rows, int64_t columns, int64_t depth, int64_t tile_rows,
                         int64_t tile_columns);
/* The end of a prepare: *out holds the state, or, after a failure, the state is released. */
prony_status prn_conv_prepared(prony_status status, void *state, prn_prepared *out);

#define PRN_CONV_RUNS(name)                                                                                            \
    bool prn_conv_##name##_supported(const prony_context *context);                                                    \
    prony_status prn_conv_##name##_prepare(const prony_context *context, prn_prepared *out);                           \
    prony_status prn_conv_##name##_run(const prony_context *context);
#define PRN_CONV_PREDICTS(name)                                                                                        \
    PRN_CONV_RUNS(name)                                                                                                \
    double prn_conv_##name##_predict(const prony_context *context);                                                    \
    void prn_conv_##name##_facts(const prony_context *context, prony_cost *facts);

PRN_CONV_PREDICTS(winograd)   /* 3 x 3 taps in steps of one, constant weights, blocked layouts */
PRN_CONV_PREDICTS(row_direct) /* few channels and small images: plain layouts, constant weights, any groups */
PRN_CONV_PREDICTS(depthwise)  /* a filter for each channel, blocked layouts */
PRN_CONV_RUNS(native)         /* every float32 Conv, all operands plain */

/* The first convolution of a network: few channels of a plain image into channel blocks. Run and released as the direct
 * one. */
bool prn_conv_first_layer_supported(const prony_context *context);
double prn_conv_first_layer_predict(const prony_context *context);
prony_status prn_conv_first_layer_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_first_layer_facts(const prony_context *context, prony_cost *facts);
void prn_conv_first_layer_layouts(const prony_context *context, prn_layout *in, prn_layout *out);

/* Tiles of bfloat16, constant weights, blocks of 16 channels. */
PRN_CONV_PREDICTS(bf16x3)
void prn_conv_bf16x3_layouts(const prony_context *context, prn_layout *in, prn_layout *out);

/* Blocked direct convolution; groups of whole blocks of channels; weights that are known in the run alone. */
PRN_CONV_PREDICTS(direct)
bool prn_conv_direct_groups_supported(const prony_context *context);
bool prn_conv_direct_variable_supported(const prony_context *context);
void prn_conv_direct_release(void *state);

/* ConvTranspose on the direct kernel's tiles, run and released by its functions; of one filter for each channel, by the
 * depthwise kernel's. */
bool prn_conv_transpose_direct_supported(const prony_context *context);
bool prn_conv_transpose_direct_profitable(const prony_context *context);
prony_status prn_conv_transpose_direct_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_transpose_direct_facts(const prony_context *context, prony_cost *facts);
bool prn_conv_transpose_depthwise_supported(const prony_context *context);
prony_status prn_conv_transpose_depthwise_prepare(const prony_context *context, prn_prepared *out);

#endif
