/* The list of rewrites, and the loop that applies them.
 *
 * Invariant: a rewrite that fires lowers the number of live nodes, or turns a node into one that it does not fire on
 * again; the bound on rounds only guards against violations. */
#include "engine/rewrites/rewrite.h"

#include "base/threads/cancel.h"
#include "engine/rewrites/pass.h"

enum { MAX_ROUNDS = 16 };

/* In this order: first removal of nodes; then quantised operators (before anything is attached to them); then patterns
 * of primitives (before their pieces are folded); then folding into weights; last post-operations. */
// clang-format off
#define REWRITE(name) {#name, prn_rewrite_##name}
static const struct rewrite {
    const char *name;
    prn_rewrite_fn ask;
} rewrites[] = {
    REWRITE(drop_identity),          REWRITE(drop_expand),
    REWRITE(merge_transposes),       REWRITE(transpose_as_reshape),
    REWRITE(merge_reshapes),         REWRITE(channels_last),
    REWRITE(merge_constant_sums),    REWRITE(fold_pad),
    REWRITE(quantize_contraction),   REWRITE(quantize_sum),     REWRITE(attach_quantized_residual),
    REWRITE(quantize_moves),         REWRITE(match_silu),       REWRITE(match_hard_sigmoid),
    REWRITE(match_hard_swish),       REWRITE(match_gelu),       REWRITE(quantize_maps),
    REWRITE(match_layer_norm),       REWRITE(match_group_norm),
    REWRITE(fold_layer_norm_affine), REWRITE(fold_channel_norm_affine),
    REWRITE(match_attention),        REWRITE(widen_attention),  REWRITE(append_cache),
    REWRITE(fold_batch_norm),        REWRITE(merge_branches),   REWRITE(fold_scale_shift), REWRITE(pointwise_conv),
    REWRITE(attach_activation),      REWRITE(attach_residual),
};
#undef REWRITE
// clang-format on
enum { LISTED = sizeof rewrites / sizeof *rewrites };

/* The subexpressions come first, for the whole program at once. */
size_t prn_rewrite_count(void)
{
    return LISTED + 1;
}

const char *prn_rewrite_name(size_t k)
{
    return k ? rewrites[k - 1].name : "share_subexpressions";
}

/* Counts rewrite `k` if the program changed since `changed` was cleared; returns that. */
static bool note_change(prn_rewriter *r, size_t k, uint64_t *fired)
{
    const bool changed = r->changed;
    if (changed && fired) fired[k]++;
    r->changed = false;
    return changed;
}

static prony_status rewrite_run_round(prn_rewriter *r, uint64_t *fired)
{
    r->changed = false;
    PRN_TRY(prn_rewrite_share_subexpressions(r));
    bool changed = note_change(r, 0, fired);
    for (size_t k = 0; k < LISTED; k++) {
        for (uint32_t n = 0; n < r->program->node_count; n++) {
            const prn_node_def *node = r->program->nodes[n];
            if (!node->dead && !node->dynamic && node->binding.op) PRN_TRY(rewrites[k].ask(r, n));
            changed |= note_change(r, k + 1, fired);
            PRN_TRY(prn_cancel_check(r->error));
        }
    }
    r->changed = changed;
    return PRONY_OK;
}

static prony_status rewrite_children(prn_program *program, uint64_t *fired, prony_error *error)
{
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        for (uint32_t c = 0; c < node->child_count && !node->dead; c++) {
            if (!node->children[c].program) continue;
            prony_status status = prn_program_rewrite_counted(node->children[c].program, fired, error);
            if (status == PRONY_OK) continue;
            prn_error_name_part(error, &node->info, node->children[c].name);
            return status;
        }
    }
    return PRONY_OK;
}

prony_status prn_program_rewrite_counted(prn_program *program, uint64_t *fired, prony_error *error)
{
    if (program->static_only) return PRONY_OK;
    PRN_TRY(rewrite_children(program, fired, error));
    prn_rewriter r = {.program = program, .error = error, .changed = true};
    if (!PRN_GROW(r.uses, r.uses_capacity, program->value_count + 1)) return prn_no_memory(error);
    prn_program_count_uses(program, r.uses);
    prony_status status = PRONY_OK;
    for (int round = 0; round < MAX_ROUNDS && status == PRONY_OK && r.changed; round++) {
        status = rewrite_run_round(&r, fired);
    }
    if (status == PRONY_OK) status = prn_rewrite_say_floats(&r);
    prn_free(r.uses);
    prn_weight_cache_unpin(program->model->shared, &program->refs, 0);
    if (status == PRONY_OK && !prn_program_sweep(program)) status = prn_no_memory(error);
    return status;
}

prony_status prn_program_rewrite(prn_program *program, prony_error *error)
{
    return prn_program_rewrite_counted(program, NULL, error);
}
