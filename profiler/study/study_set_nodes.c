/* Makes a study span nodes, from the nodes' descriptions, before it has blocks. */
#include "profiler/study/study_keys.h"

#include <stdio.h>
#include <string.h>

static prony_status study_nodes_read_node(prony_study *s, size_t index, const char *text, size_t size,
                                          prony_error *error)
{
    prn_json_value *root = NULL;
    prn_study_node *node = &s->nodes[index];
    char file[64];
    snprintf(file, sizeof file, "the description of node %zu", index);
    PRN_TRY(prn_json_document_parse(&root, file, text, size, error));
    prn_json_reader j = {.pool = &s->pool, .file = file, .error = error};
    prn_keys_read(&j, root, prn_study_node_keys, &(prn_at){.root = s, .row = node});
    prn_json_document_release(root);
    PRN_TRY(j.status);
    const char *wanted = s->manifest->model.sha256, *found = node->manifest->model.sha256;
    if (!wanted || !found || strcmp(wanted, found) == 0) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "node %zu (%.120s) has another model file: SHA-256 %.16s..., but the study has %.16s...", index,
                    node->host, found, wanted);
}

prony_status prony_study_set_nodes(prony_study *s, const char *const *nodes, const size_t *sizes, size_t count,
                                   prony_error *error)
{
    if (!s || !nodes || !sizes || count < 1 || count > PRN_STUDY_MOST_NODES)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_set_nodes: invalid arguments; wanted 1 to %d nodes",
                        PRN_STUDY_MOST_NODES);
    if (s->block_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_set_nodes: the study has blocks already");
    s->node_count = 0;
    s->nodes = prn_bump_alloc(&s->pool, count, sizeof *s->nodes);
    if (!s->nodes) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) PRN_TRY(study_nodes_read_node(s, i, nodes[i], sizes[i], error));
    s->node_count = count;
    s->over_nodes = true;
    prn_study_find_lanes(s);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || s->nodes[i].usable < s->usable) s->usable = s->nodes[i].usable;
    for (size_t i = 0; i < s->configuration_count; i++)
        s->configurations[i].beyond = prn_study_processors(&s->configurations[i]) > s->usable;
    return prn_study_make_order(s, error);
}
