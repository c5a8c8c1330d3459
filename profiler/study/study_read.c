/* A study read back from its JSON. Only measurements and the plan are read; results are computed again. The file is not
 * trusted: indices and numbers are checked before they are used.
 */
#include "profiler/study/study_keys.h"

static void check_plan(prn_json_reader *j, const prony_study *s)
{
    prn_where where = prn_json_enter(j, "plan", PRN_NO_ELEMENT);
    if (s->configuration_count == 0 || s->configuration_count > PRN_STUDY_MOST_CONFIGURATIONS)
        prn_json_bad(j, "configurations", "%zu elements; wanted 1 to %d", s->configuration_count,
                     PRN_STUDY_MOST_CONFIGURATIONS);
    if (s->processes < 1 || s->processes > PRN_STUDY_MOST_PROCESSES || s->usable < 1 || s->runs < 0 ||
        !(s->seconds > 0) || !(s->budget_seconds >= 0))
        prn_json_bad(j, "processes", "a number of the plan is out of range");
    for (size_t i = 0; i < s->configuration_count && j->status == PRONY_OK; i++) {
        const prn_study_configuration *c = &s->configurations[i];
        prn_where row = prn_json_enter(j, "configurations", i);
        if (c->intra_op < 1 || c->intra_op > 1024 || c->inter_op < 1 || c->inter_op > 1024 || c->batch < 0 ||
            c->replicas < 0 || c->replicas > PRN_STUDY_MOST_REPLICAS || c->samples < 0 ||
            c->group >= PRN_STUDY_MOST_CONFIGURATIONS)
            prn_json_bad(j, "intra_op_threads", "invalid configuration: %d x %d threads, batch %lld", c->inter_op,
                         c->intra_op, (long long)c->batch);
        prn_json_leave(j, row);
    }
    for (size_t i = 0; i < s->order_count && j->status == PRONY_OK; i++)
        if (s->order[i] >= s->configuration_count) prn_json_bad(j, "order", "unknown configuration %u", s->order[i]);
    prn_json_leave(j, where);
}

static void check_nodes(prn_json_reader *j, const prony_study *s)
{
    if (s->node_count > PRN_STUDY_MOST_NODES)
        prn_json_bad(j, "nodes", "%zu elements; wanted at most %d", s->node_count, PRN_STUDY_MOST_NODES);
    for (size_t i = 0; i < s->node_count && j->status == PRONY_OK; i++)
        if (s->nodes[i].usable < 1) prn_json_bad(j, "nodes", "node %zu has no usable processors", i);
    if (j->status == PRONY_OK && s->order_node_count != (s->node_count ? s->order_count : 0))
        prn_json_bad(j, "plan.order_nodes", "%zu elements, but the order has %zu", s->order_node_count, s->order_count);
    for (size_t i = 0; i < s->order_node_count && j->status == PRONY_OK; i++)
        if (s->order_nodes[i] >= s->node_count)
            prn_json_bad(j, "plan.order_nodes", "unknown node %u", s->order_nodes[i]);
}

static void check_blocks(prn_json_reader *j, prony_study *s)
{
    for (size_t i = 0; i < s->block_count && j->status == PRONY_OK; i++) {
        prn_study_block *b = &s->blocks[i];
        prn_where where = prn_json_enter(j, "blocks", i);
        if (b->node >= prn_study_node_total(s))
            prn_json_bad(j, "node", "unknown node %zu", b->node);
        else if (b->configuration >= s->configuration_count)
            prn_json_bad(j, "configuration", "unknown configuration %zu", b->configuration);
        else if (!prn_study_round_is_whole(s, i))
            prn_json_bad(j, "replica", "this block's round is incomplete: replica %d", b->replica);
        else if (!b->failure && b->sample_count == 0)
            prn_json_bad(j, "samples_ns", "a block without samples must say why it failed");
        else
            prn_study_judge_block(b);
        prn_json_leave(j, where);
    }
}

prony_status prn_study_read(prony_study **out, const char *file, const char *text, size_t size, prony_error *error)
{
    prn_json_value *root = NULL;
    PRN_TRY(prn_json_document_parse(&root, file, text, size, error));
    prony_study *s = prn_calloc(1, sizeof *s);
    if (s) s->manifest = prn_calloc(1, sizeof *s->manifest);
    if (!s || !s->manifest) {
        prn_json_document_release(root);
        prn_free(s);
        return prn_no_memory(error);
    }
    prn_json_reader j = {.pool = &s->pool, .file = file, .error = error};
    prn_json_check_schema(&j, root, PRN_STUDY_SCHEMA, "study");
    prn_keys_read(&j, root, prn_study_keys, &(prn_at){.root = s, .row = s});
    if (j.status == PRONY_OK) check_plan(&j, s);
    if (j.status == PRONY_OK) check_nodes(&j, s);
    if (j.status == PRONY_OK) check_blocks(&j, s);
    prn_json_document_release(root);
    if (j.status == PRONY_OK)
        *out = s;
    else
        prony_study_release(s);
    return j.status;
}
