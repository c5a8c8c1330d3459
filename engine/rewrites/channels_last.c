/*   x [N, L, C] ── Transpose(0, 2, 1) ── Reshape([N, C, H, W]) ── y
 *                                                             x ── Reshape([N, H, W, C]) ── Transpose(0, 3, 1, 2) ── y
 *   x [N, C, H, W] ── Reshape([N, C, L]) ── Transpose(0, 2, 1) ── y
 *                                                             x ── Transpose(0, 2, 3, 1) ── Reshape([N, L, C]) ── y
 *
 * The conversion between tokens and images is then a view of a channels-last tensor, if the image's neighbour takes any
 * layout: one reordering instead of two. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

static prony_shape *shape_of(const prn_rewriter *r, uint32_t value)
{
    return &r->program->values[value]->info.shape;
}

static bool swaps_last_two(const prn_rewriter *r, const prn_node_def *node)
{
    int64_t perm[PRONY_MAX_RANK];
    if (shape_of(r, node->inputs[0])->rank != 3) return false;
    prn_rewrite_permutation(r, node, perm);
    return perm[0] == 0 && perm[1] == 2 && perm[2] == 1;
}

/* true: an image [N, C, spatial …] with two or three spatial axes. */
static bool is_image_of(const prony_shape *image, int64_t batch, int64_t channels)
{
    return (image->rank == 4 || image->rank == 5) && image->dim[0] == batch && image->dim[1] == channels &&
           prony_shape_numel(image) > 0;
}

/* [N, spatial …, C] */
static prony_shape with_channels_last(const prony_shape *image)
{
    prony_shape last = *image;
    for (int i = 2; i < image->rank; i++) last.dim[i - 1] = image->dim[i];
    last.dim[image->rank - 1] = image->dim[1];
    return last;
}

static prony_status become_transpose(prn_rewriter *r, prn_node_def *node, int rank, bool to_last, uint32_t input)
{
    int64_t *perm = prn_bump_alloc(&r->program->pool, PRONY_MAX_RANK, sizeof *perm);
    if (!perm) return prn_no_memory(r->error);
    perm[0] = 0;
    for (int i = 1; i < rank; i++) perm[i] = to_last ? i % (rank - 1) + 1 : i == 1 ? rank - 1 : i - 1;
    const prn_attr attribute = {.name = "perm", .type = PRN_ATTR_INTS, .ints = perm, .count = (size_t)rank};
    return prn_rewrite_become(r, node, "Transpose", &attribute, 1, &input, 1, NULL);
}

/* Tokens become an image: `node` is the Reshape. */
static prony_status unfold(prn_rewriter *r, prn_node_def *node)
{
    prn_node_def *swap = prn_rewrite_inner(r, node->inputs[0], "Transpose");
    if (!swap || !swaps_last_two(r, swap)) return PRONY_OK;
    const prony_shape *tokens = shape_of(r, swap->inputs[0]), *image = shape_of(r, node->outputs[0]);
    if (!is_image_of(image, tokens->dim[0], tokens->dim[2])) return PRONY_OK;
    *shape_of(r, swap->outputs[0]) = with_channels_last(image);
    PRN_TRY(prn_rewrite_become_reshape(r, swap, swap->inputs[0], NULL));
    return become_transpose(r, node, image->rank, false, swap->outputs[0]);
}

/* An image becomes tokens: `node` is the Transpose. */
static prony_status channels_last_fold(prn_rewriter *r, prn_node_def *node)
{
    prn_node_def *flatten = swaps_last_two(r, node) ? prn_rewrite_inner(r, node->inputs[0], "Reshape") : NULL;
    if (!flatten) return PRONY_OK;
    const prony_shape *image = shape_of(r, flatten->inputs[0]), *flat = shape_of(r, node->inputs[0]);
    if (!is_image_of(image, flat->dim[0], flat->dim[1])) return PRONY_OK;
    *shape_of(r, flatten->outputs[0]) = with_channels_last(image);
    PRN_TRY(become_transpose(r, flatten, image->rank, true, flatten->inputs[0]));
    return prn_rewrite_become_reshape(r, node, flatten->outputs[0], NULL);
}

prony_status prn_rewrite_channels_last(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    const bool is_reshape = prn_node_is(node, "Reshape");
    if ((!is_reshape && !prn_node_is(node, "Transpose")) || !prn_rewrite_has("Reshape")) return PRONY_OK;
    /* With changing extents values keep their axes. */
    if (prn_dynamic_dims_affect(r->program->values[node->outputs[0]]->extents)) return PRONY_OK;
    return is_reshape ? unfold(r, node) : channels_last_fold(r, node);
}
