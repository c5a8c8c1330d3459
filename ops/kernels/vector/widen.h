/* Running a float32 kernel on float16 and bfloat16: its inputs are converted into scratch, its outputs back from there,
 * and constants that it packs are packed once. The one pattern for every operator whose fast kernel knows float32
 * alone.
 *
 *   static const prn_kernel native = {…};                  the float32 kernel, plain layouts
 *   PRN_WIDENED(lrn_half, &native)                         defines lrn_half_supported, lrn_half_prepare, lrn_half_run
 *   … PRN_WIDENED_ROW(lrn_half, "lrn_half_native") …       a row of the kernel list */
#ifndef PRN_OPS_KERNELS_VECTOR_WIDEN_H
#define PRN_OPS_KERNELS_VECTOR_WIDEN_H

#include "ops/op.h"

#define PRN_TYPES_HALF (PRN_TYPE(PRONY_FLOAT16) | PRN_TYPE(PRONY_BFLOAT16))

/* True if `inner` can run the node widened; asked without the constants' data. */
bool prn_widen_supported(const prony_context *context, const prn_kernel *inner);
/* `inner` may read constants in its own prepare only where it packs them. */
prony_status prn_widen_prepare(const prony_context *context, const prn_kernel *inner, prn_prepared *out);
prony_status prn_widen_run(const prony_context *context, const prn_kernel *inner);
void prn_widen_release(void *state, const prn_kernel *inner);

#define PRN_WIDENED(symbol, inner)                                                                                     \
    static bool symbol##_supported(const prony_context *context)                                                       \
    {                                                                                                                  \
        return prn_widen_supported(context, inner);                                                                    \
    }                                                                                                                  \
    static prony_status symbol##_prepare(const prony_context *context, prn_prepared *out)                              \
    {                                                                                                                  \
        return prn_widen_prepare(context, inner, out);                                                                 \
    }                                                                                                                  \
    static prony_status symbol##_run(const prony_context *context)                                                     \
    {                                                                                                                  \
        return prn_widen_run(context, inner);                                                                          \
    }                                                                                                                  \
    static void symbol##_release(void *state)                                                                          \
    {                                                                                                                  \
        prn_widen_release(state, inner);                                                                               \
    }
/* Of an operator that neither takes post-operations nor packs. */
#define PRN_WIDENED_PLAIN_ROW(symbol, kernel_name)                                                                     \
    {.name = kernel_name,                                                                                              \
     .backend = "native",                                                                                              \
     .types = PRN_TYPES_HALF,                                                                                          \
     .supported = symbol##_supported,                                                                                  \
     .prepare = symbol##_prepare,                                                                                      \
     .run = symbol##_run,                                                                                              \
     .release = symbol##_release}
#define PRN_WIDENED_ROW(symbol, kernel_name)                                                                           \
    {.name = kernel_name,                                                                                              \
     .backend = "native",                                                                                              \
     .types = PRN_TYPES_HALF,                                                                                          \
     .supported = symbol##_supported,                                                                                  \
     .prepare = symbol##_prepare,                                                                                      \
     .run = symbol##_run,                                                                                              \
     .release = symbol##_release,                                                                                      \
     .post_ops = true,                                                                                                 \
     .packs = 2}

#endif
