/* The list of rewrites, and the loop that asks them.
 *
 * Invariant: a rewrite that fires lowers the number of live nodes, or turns a node into one that it does not fire on
 * again; the bound on rounds is only for the case that somebody breaks this. */
#include "engine/rewrites/rewrite.h"

#include "base/threads/cancel.h"
#include "engine/rewrites/pass.h"

enum { MAX_ROUNDS = 16 };

/* In this order: first less to look at, then what is quantized already (nothing may be attached to it before), then
 * patterns written out in primitives (their pieces must not be folded away before), then what disappears into weights,
 * last what is attached to a contraction. */
// clang-format off
static const prn_rewrite_fn rewrites[] = {
    prn_rewrite_drop_identity,          prn_rewrite_drop_expand,
    prn_rewrite_merge_transposes,       prn_rewrite_transpose_as_reshape,
    prn_rewrite_merge_reshapes,         prn_rewrite_channels_last,
    prn_rewrite_merge_constant_sums,    prn_rewrite_fold_pad,
    prn_rewrite_quantize_contraction,         prn_rewrite_quantize_sum,        prn_rewrite_attach_quantized_residual,
    prn_rewrite_quantize_moves,             prn_rewrite_match_silu,       prn_rewrite_match_hard_sigmoid,
    prn_rewrite_match_hard_swish,       prn_rewrite_match_gelu,       prn_rewrite_quantize_maps,
    prn_rewrite_match_layer_norm,       prn_rewrite_match_group_norm,
    prn_rewrite_fold_layer_norm_affine, prn_rewrite_fold_channel_norm_affine,
    prn_rewrite_match_attention,        prn_rewrite_widen_attention,
    prn_rewrite_fold_batch_norm,        prn_rewrite_merge_branches,   prn_rewrite_fold_scale_shift, prn_rewrite_pointwise_conv,
    prn_rewrite_attach_activation,      prn_rewrite_attach_residual,
};
// clang-format on

static prony_status run_round(prn_rewriter *r)
{
    PRN_TRY(prn_rewrite_share_subexpressions(r));
    for (size_t k = 0; k < sizeof rewrites / sizeof *rewrites; k++) {
        for (uint32_t n = 0; n < r->program->node_count; n++) {
            const prn_node_def *node = r->program->nodes[n];
            if (!node->dead && !node->dynamic && node->binding.op) PRN_TRY(rewrites[k](r, n));
            PRN_TRY(prn_cancel_check(r->error));
        }
    }
    return PRONY_OK;
}

static prony_status rewrite_children(prn_program *program, prony_error *error)
{
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        for (uint32_t c = 0; c < node->child_count && !node->dead; c++) {
            if (!node->children[c].program) continue;
            prony_status status = prn_program_rewrite(node->children[c].program, error);
            if (status == PRONY_OK) continue;
            prn_error_name_part(error, &node->info, node->children[c].name);
            return status;
        }
    }
    return PRONY_OK;
}

prony_status prn_program_rewrite(prn_program *program, prony_error *error)
{
    if (program->static_only) return PRONY_OK;
    PRN_TRY(rewrite_children(program, error));
    prn_rewriter r = {.program = program, .error = error, .changed = true};
    if (!PRN_GROW(r.uses, r.uses_capacity, program->value_count + 1)) return prn_no_memory(error);
    prn_program_count_uses(program, r.uses);
    prony_status status = PRONY_OK;
    for (int round = 0; round < MAX_ROUNDS && status == PRONY_OK && r.changed; round++) {
        r.changed = false;
        status = run_round(&r);
    }
    if (status == PRONY_OK) status = prn_rewrite_say_floats(&r);
    prn_free(r.uses);
    prn_weight_cache_unpin(program->model->shared, &program->refs, 0);
    if (status == PRONY_OK && !prn_program_sweep(program)) status = prn_no_memory(error);
    return status;
}
