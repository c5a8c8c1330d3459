/* Shared by conv_f32_direct and conv_f32_stem: their tiles, the groups of output blocks, and how sums end. */
#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/conv/conv_direct_plan.h"
#include "ops/conv/conv_kernels.h"

#include <math.h>
#include <string.h>

PRN_SIMD_PICK(prn_direct_simd, prn_direct_simd_, const prn_direct_simd *prn_direct_tiles)

void prn_conv_blocked_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    in[0] = out[0] = prn_layout_blocked();
    prn_post_ops_ask_layout(context->post_ops, out[0], in);
}

void prn_conv_tile_facts(prony_cost *facts, int64_t rows, int64_t columns, int64_t depth, int64_t tile_rows,
                         int64_t tile_columns)
{
    prn_cost_fact(facts, "product_rows", rows);
    prn_cost_fact(facts, "product_columns", columns);
    prn_cost_fact(facts, "product_depth", depth);
    prn_cost_fact(facts, "tile_rows", tile_rows);
    prn_cost_fact(facts, "tile_columns", tile_columns);
}

prony_status prn_conv_prepared(prony_status status, void *state, prn_prepared *out)
{
    if (status == PRONY_OK)
        out->state = state;
    else
        prn_free(state);
    return status;
}

int64_t prn_direct_first_block(int64_t blocks, int64_t group)
{
    return group * blocks / prn_ceil_div(blocks, PRN_DIRECT_MOST_BLOCKS);
}

bool prn_direct_can_fuse(const prony_context *context, int64_t out_channels)
{
    /* The same kernels everywhere, which is by the shape alone. */
    const bool strict = context->precision == PRONY_PRECISION_FP32_STRICT;
    return !strict || out_channels % PRN_DIRECT_UNIT == 0 || prn_post_ops_keep_zero(context->post_ops);
}

/* A residual that is added first becomes part of the sum, and a clamp behind that the tiles' end; what is left is done
 * where they have been stored. */
prn_direct_epilogue prn_direct_find_epilogue(const prn_post_ops *post_ops, int64_t out_channels)
{
    const int64_t lanes = prn_direct_tiles()->lanes;
    prn_direct_epilogue end = {.blocks = prn_ceil_div(out_channels, lanes)};
    size_t i = 0, count = post_ops ? post_ops->count : 0;
    if (i < count && post_ops->op[i].kind == PRN_POST_ADD) end.added = post_ops->op[i++].input;
    if (i < count && (post_ops->op[i].kind == PRN_POST_RELU || post_ops->op[i].kind == PRN_POST_CLIP)) {
        const bool relu = post_ops->op[i].kind == PRN_POST_RELU;
        end.clamped = true;
        end.low = relu ? 0.0f : post_ops->op[i].a;
        end.high = relu ? INFINITY : post_ops->op[i].b;
        i++;
    }
    if (!prn_post_ops_keep_zero(post_ops)) end.kept_lanes = out_channels % lanes;
    while (i < count) end.rest.op[end.rest.count++] = post_ops->op[i++];
    return end;
}

bool prn_direct_epilogue_has_maps(const prony_context *context)
{
    return prn_direct_find_epilogue(context->post_ops, 1).rest.count > 0;
}

void prn_direct_copy_bias(const prony_value *from, int64_t channels, int64_t set, int64_t first, int64_t width,
                          float *bias)
{
    const int64_t left = channels - first, count = !from ? 0 : left < width ? left : width;
    if (count > 0) memcpy(bias, (const float *)from->data + set * channels + first, (size_t)count * sizeof *bias);
    for (int64_t i = count; i < width; i++) bias[i] = 0.0f;
}

void prn_direct_apply_epilogue(const prony_context *context, const prn_direct_epilogue *end, float *y,
                               int64_t first_plane, int64_t planes, int64_t spatial, int64_t from, int64_t to)
{
    const int64_t lanes = prn_direct_tiles()->lanes;
    prony_context rest = *context;
    rest.post_ops = &end->rest;
    for (int64_t plane = first_plane; plane < first_plane + planes && prn_direct_has_rest(end); plane++) {
        const int64_t first = (plane * spatial + from) * lanes;
        prn_post_ops_apply_vec(&rest, y + first, first, (to - from) * lanes);
        if (!end->kept_lanes || (plane + 1) % end->blocks) continue;
        for (int64_t i = 0; i < to - from; i++)
            memset(y + first + i * lanes + end->kept_lanes, 0, (size_t)(lanes - end->kept_lanes) * sizeof *y);
    }
}
