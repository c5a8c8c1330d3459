/* Reading decision trees from attributes, and walking them.
 *
 * Versions 1 and 3 list nodes of all trees by (tree, node) names, leaves among them, and weights by the name of their
 * leaf; version 5 has positions, and leaves apart. Both become one array of nodes with indices. Nothing in the
 * attributes is trusted: reading fails on a missing node, on lists of unequal length, and on nodes that form a cycle.
 */
#include "ops/ml/ml_tree.h"

#include "ops/kernels/vector/number.h"

#include <stdlib.h>

static prony_status ml_tree_no_memory(const prony_context *context)
{
    return prn_no_memory(context->error);
}

/* Room in the pool for `count` elements; at least one byte. */
#define MAKE(out, list, wanted)                                                                                        \
    (((out)->list = prn_bump_alloc(&(out)->pool, (size_t)(wanted) + 1, sizeof *(out)->list)) != NULL)

static prony_status check_int32(const prony_context *context, const char *name, int64_t count)
{
    if (count <= INT32_MAX / 2) return PRONY_OK;
    return prony_fail(context, PRONY_LIMIT, "%s has %lld entries", name, (long long)count);
}

/* Element i of a list that is a tensor or floats. */
static prony_value ml_tree_numbers_of(const prony_value *tensor, const prn_floats *floats)
{
    return tensor ? *tensor : prn_ml_floats(floats);
}

static double number_at(const prony_value *list, int64_t i)
{
    return prn_get_f64(list->data, list->dtype, i);
}

static prony_status check_numbers(const prony_context *context, const char *name, const prony_value *list)
{
    if (list->dtype == PRONY_UNDEFINED || (prn_dtype_is_number(list->dtype) && list->kind == PRONY_TENSOR))
        return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "%s holds %s", name, prony_dtype_name(list->dtype));
}

/* ---- what both forms share */

/* Depths bottom up by an explicit stack, so that neither a long tree nor a cycle does harm. */
typedef struct measure {
    int64_t *depth; /* -1: not seen yet, -2: on the way down */
    int64_t *leaf;  /* most weights of a leaf below */
    int32_t *stack;
} measure;

/* Depth and largest leaf below each node, with a stack instead of recursion. false: the nodes form a cycle (depth -2
 * marks those on the stack). */
static bool measure_tree(const prn_tree_ensemble *in, measure *m, int32_t root)
{
    int64_t top = 0;
    m->stack[top++] = root;
    while (top > 0) {
        const int32_t n = m->stack[top - 1];
        const prn_tree_node *node = &in->nodes[n];
        if (m->depth[n] >= 0) {
            top--;
            continue;
        }
        if (node->mode == PRN_TREE_LEAF) {
            m->depth[n] = 0;
            m->leaf[n] = node->weights.count;
            continue;
        }
        const int64_t yes = m->depth[node->yes], no = m->depth[node->no];
        if (yes >= 0 && no >= 0) {
            m->depth[n] = 1 + (yes > no ? yes : no);
            m->leaf[n] = m->leaf[node->yes] > m->leaf[node->no] ? m->leaf[node->yes] : m->leaf[node->no];
            continue;
        }
        if (yes == -2 || no == -2) return false;
        m->depth[n] = -2;
        m->stack[top++] = yes < 0 ? node->yes : node->no;
    }
    return true;
}

static prony_status ml_tree_finish(const prony_context *context, prn_tree_ensemble *out)
{
    measure m = {prn_calloc((size_t)out->node_count + 1, sizeof *m.depth),
                 prn_calloc((size_t)out->node_count + 1, sizeof *m.leaf),
                 prn_calloc((size_t)out->node_count + 1, sizeof *m.stack)};
    prony_status status = m.depth && m.leaf && m.stack ? PRONY_OK : ml_tree_no_memory(context);
    for (int64_t n = 0; status == PRONY_OK && n < out->node_count; n++) m.depth[n] = -1;
    for (int64_t t = 0; status == PRONY_OK && t < out->root_count; t++) {
        if (!measure_tree(out, &m, out->roots[t])) {
            status = prony_fail(context, PRONY_INVALID_MODEL, "the nodes of tree %lld form a cycle", (long long)t);
        } else {
            out->depth += (uint64_t)m.depth[out->roots[t]];
            out->leaf_weights += (uint64_t)m.leaf[out->roots[t]];
        }
    }
    prn_free(m.depth);
    prn_free(m.leaf);
    prn_free(m.stack);
    return status;
}

static prony_status set_feature(const prony_context *context, int64_t feature, prn_tree_ensemble *out,
                                prn_tree_node *node)
{
    if (feature < 0 || feature >= INT32_MAX)
        return prony_fail(context, PRONY_INVALID_MODEL, "feature %lld", (long long)feature);
    node->feature = (int32_t)feature;
    if (feature >= out->features) out->features = feature + 1;
    return PRONY_OK;
}

static prony_status check_target(const prony_context *context, int64_t target, int64_t targets)
{
    if (target >= 0 && target < targets) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "a leaf's weight is for target %lld of %lld", (long long)target,
                      (long long)targets);
}

/* ---- versions 1 and 3: nodes by name */

typedef struct name {
    int64_t tree, node;
    int64_t index;
} name;

static int ml_tree_compare_names(const void *left, const void *right)
{
    const name *a = left, *b = right;
    if (a->tree != b->tree) return a->tree < b->tree ? -1 : 1;
    if (a->node != b->node) return a->node < b->node ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* The first entry of that name; -1: none. */
static int64_t ml_tree_find_name(const name *names, int64_t count, int64_t tree, int64_t node)
{
    const name key = {tree, node, -1};
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (ml_tree_compare_names(&names[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && names[low].tree == tree && names[low].node == node ? low : -1;
}

static name *sorted_names(const prn_ints *trees, const prn_ints *nodes)
{
    const size_t count = nodes->count;
    name *names = prn_calloc(count + 1, sizeof *names);
    if (!names) return NULL;
    for (size_t i = 0; i < count; i++) names[i] = (name){trees->v[i], nodes->v[i], (int64_t)i};
    qsort(names, count, sizeof *names, ml_tree_compare_names);
    return names;
}

static prony_status parse_mode(const prony_context *context, const prony_string *text, uint8_t *out)
{
    static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        *out = (uint8_t)i;
        if (i != PRN_TREE_MEMBER && text->size == strlen(modes[i]) && memcmp(text->data, modes[i], text->size) == 0)
            return PRONY_OK;
    }
    return prony_fail(context, PRONY_INVALID_MODEL, "nodes_modes has '%.*s'", (int)(text->size < 40 ? text->size : 40),
                      text->data);
}

static prony_status check_lists(const prony_context *context, const prony_value *modes, const prony_value *values,
                                const prony_value *weights)
{
    const prn_tree_params *p = context->params;
    const int64_t nodes = (int64_t)p->nodes_nodeids.count, leaves = (int64_t)p->leaf_nodeids.count;
    const size_t missing = p->nodes_missing_value_tracks_true.count;
    PRN_TRY(check_int32(context, "nodes_nodeids", nodes));
    PRN_TRY(check_int32(context, "the list of weights", leaves));
    PRN_TRY(check_numbers(context, "nodes_values", values));
    PRN_TRY(check_numbers(context, "the list of weights", weights));
    PRN_TRY(prn_ml_check_count(context, "nodes_treeids", (int64_t)p->nodes_treeids.count, nodes));
    PRN_TRY(prn_ml_check_count(context, "nodes_featureids", (int64_t)p->nodes_featureids.count, nodes));
    PRN_TRY(prn_ml_check_count(context, "nodes_truenodeids", (int64_t)p->nodes_truenodeids.count, nodes));
    PRN_TRY(prn_ml_check_count(context, "nodes_falsenodeids", (int64_t)p->nodes_falsenodeids.count, nodes));
    PRN_TRY(prn_ml_check_count(context, "nodes_modes", prn_ml_count(modes), nodes));
    PRN_TRY(prn_ml_check_count(context, "nodes_values", prn_ml_count(values), nodes));
    if (missing) PRN_TRY(prn_ml_check_count(context, "nodes_missing_value_tracks_true", (int64_t)missing, nodes));
    PRN_TRY(prn_ml_check_count(context, "the weights' tree ids", (int64_t)p->leaf_treeids.count, leaves));
    PRN_TRY(prn_ml_check_count(context, "the weights' targets", (int64_t)p->leaf_ids.count, leaves));
    return prn_ml_check_count(context, "the list of weights", prn_ml_count(weights), leaves);
}

static prony_status link_nodes(const prony_context *context, const prony_value *modes, const prony_value *values,
                               const name *names, prn_tree_ensemble *out)
{
    const prn_tree_params *p = context->params;
    const prn_ints *missing = &p->nodes_missing_value_tracks_true;
    for (int64_t i = 0; i < out->node_count; i++) {
        prn_tree_node *node = &out->nodes[i];
        PRN_TRY(parse_mode(context, &((const prony_string *)modes->data)[i], &node->mode));
        if (node->mode == PRN_TREE_LEAF) continue;
        PRN_TRY(set_feature(context, p->nodes_featureids.v[i], out, node));
        node->split = number_at(values, i);
        node->missing_yes = missing->count && missing->v[i];
        const int64_t tree = p->nodes_treeids.v[i];
        const int64_t yes = ml_tree_find_name(names, out->node_count, tree, p->nodes_truenodeids.v[i]);
        const int64_t no = ml_tree_find_name(names, out->node_count, tree, p->nodes_falsenodeids.v[i]);
        if (yes < 0 || no < 0)
            return prony_fail(context, PRONY_INVALID_MODEL, "tree %lld has no node %lld", (long long)tree,
                              (long long)(yes < 0 ? p->nodes_truenodeids : p->nodes_falsenodeids).v[i]);
        node->yes = (int32_t)names[yes].index;
        node->no = (int32_t)names[no].index;
    }
    return PRONY_OK;
}

/* Weights in the order of their leaves; those of inner nodes and of no node are never met. */
static prony_status link_weights(const prony_context *context, const prony_value *weights, const name *leaves,
                                 prn_tree_ensemble *out)
{
    const prn_tree_params *p = context->params;
    for (int64_t w = 0; w < out->weight_count; w++) {
        const int64_t from = leaves[w].index;
        PRN_TRY(check_target(context, p->leaf_ids.v[from], out->targets));
        out->weights[w] = (prn_tree_weight){p->leaf_ids.v[from], number_at(weights, from)};
    }
    for (int64_t i = 0; i < out->node_count; i++) {
        if (out->nodes[i].mode != PRN_TREE_LEAF) continue;
        const int64_t tree = p->nodes_treeids.v[i], node = p->nodes_nodeids.v[i];
        const int64_t first = ml_tree_find_name(leaves, out->weight_count, tree, node);
        int64_t last = first;
        while (first >= 0 && last < out->weight_count && leaves[last].tree == tree && leaves[last].node == node) last++;
        out->nodes[i].weights = (prn_tree_range){first < 0 ? 0 : (int32_t)first, (int32_t)(last - first)};
    }
    return PRONY_OK;
}

/* The first node listed for a tree is its root. */
static void find_roots(const name *names, prn_tree_ensemble *out)
{
    for (int64_t i = 0; i < out->node_count; i++) {
        if (i == 0 || names[i].tree != names[i - 1].tree) out->roots[out->root_count++] = INT32_MAX;
        int32_t *root = &out->roots[out->root_count - 1];
        if (names[i].index < *root) *root = (int32_t)names[i].index;
    }
}

static prony_status link_named(const prony_context *context, const prony_value *modes, const prony_value *values,
                               const prony_value *weights, prn_tree_ensemble *out)
{
    const prn_tree_params *p = context->params;
    name *names = sorted_names(&p->nodes_treeids, &p->nodes_nodeids);
    name *leaves = sorted_names(&p->leaf_treeids, &p->leaf_nodeids);
    prony_status status = names && leaves ? PRONY_OK : ml_tree_no_memory(context);
    if (status == PRONY_OK) status = link_nodes(context, modes, values, names, out);
    if (status == PRONY_OK) status = link_weights(context, weights, leaves, out);
    if (status == PRONY_OK) find_roots(names, out);
    prn_free(names);
    prn_free(leaves);
    return status;
}

prony_status prn_tree_read(const prony_context *context, int64_t targets, prn_tree_ensemble *out)
{
    const prn_tree_params *p = context->params;
    const prony_value values = ml_tree_numbers_of(p->nodes_values_as_tensor, &p->nodes_values);
    const prony_value weights = ml_tree_numbers_of(p->leaf_values_as_tensor, &p->leaf_values);
    prony_value modes;
    *out = (prn_tree_ensemble){.targets = targets};
    PRN_TRY(prn_ml_strings(context, "nodes_modes", &modes));
    PRN_TRY(check_lists(context, &modes, &values, &weights));
    out->node_count = (int64_t)p->nodes_nodeids.count;
    out->weight_count = (int64_t)p->leaf_nodeids.count;
    if (!MAKE(out, nodes, out->node_count) || !MAKE(out, weights, out->weight_count) ||
        !MAKE(out, roots, out->node_count))
        return ml_tree_no_memory(context);
    PRN_TRY(link_named(context, &modes, &values, &weights, out));
    return ml_tree_finish(context, out);
}

/* ---- version 5: nodes by position, leaves behind them */

static prony_status flat_child(const prony_context *context, const prn_tree_ensemble *out, int64_t inner, int64_t id,
                               int64_t is_leaf, int32_t *child)
{
    const int64_t leaves = out->node_count - inner;
    if (id < 0 || id >= (is_leaf ? leaves : inner))
        return prony_fail(context, PRONY_INVALID_MODEL, "a node leads to %s %lld of %lld", is_leaf ? "leaf" : "node",
                          (long long)id, (long long)(is_leaf ? leaves : inner));
    *child = (int32_t)(is_leaf ? inner + id : id);
    return PRONY_OK;
}

static prony_status flat_lists(const prony_context *context, int64_t inner, int64_t leaves)
{
    const prn_tree_params *p = context->params;
    const size_t missing = p->nodes_missing_value_tracks_true.count;
    PRN_TRY(check_int32(context, "nodes_featureids", inner));
    PRN_TRY(check_int32(context, "leaf_targetids", leaves));
    if (!p->nodes_splits || !p->nodes_modes || !p->leaf_weights)
        return prony_fail(context, PRONY_INVALID_MODEL, "nodes_splits, nodes_modes or leaf_weights is missing");
    PRN_TRY(check_numbers(context, "nodes_splits", p->nodes_splits));
    PRN_TRY(check_numbers(context, "nodes_modes", p->nodes_modes));
    PRN_TRY(check_numbers(context, "leaf_weights", p->leaf_weights));
    PRN_TRY(prn_ml_check_count(context, "nodes_splits", prn_ml_count(p->nodes_splits), inner));
    PRN_TRY(prn_ml_check_count(context, "nodes_modes", prn_ml_count(p->nodes_modes), inner));
    PRN_TRY(prn_ml_check_count(context, "nodes_truenodeids", (int64_t)p->nodes_truenodeids.count, inner));
    PRN_TRY(prn_ml_check_count(context, "nodes_falsenodeids", (int64_t)p->nodes_falsenodeids.count, inner));
    PRN_TRY(prn_ml_check_count(context, "nodes_trueleafs", (int64_t)p->nodes_trueleafs.count, inner));
    PRN_TRY(prn_ml_check_count(context, "nodes_falseleafs", (int64_t)p->nodes_falseleafs.count, inner));
    PRN_TRY(prn_ml_check_count(context, "leaf_weights", prn_ml_count(p->leaf_weights), leaves));
    if (missing) PRN_TRY(prn_ml_check_count(context, "nodes_missing_value_tracks_true", (int64_t)missing, inner));
    return p->membership_values ? check_numbers(context, "membership_values", p->membership_values) : PRONY_OK;
}

/* The sets of member nodes follow each other, a NaN after each. */
static prony_status next_set(const prony_context *context, const prn_tree_ensemble *out, int64_t *at,
                             prn_tree_range *set)
{
    set->first = (int32_t)*at;
    while (*at < out->member_count && !isnan(out->members[*at])) ++*at;
    if (*at >= out->member_count && set->first == *at)
        return prony_fail(context, PRONY_INVALID_MODEL, "membership_values has fewer sets than there are member nodes");
    set->count = (int32_t)(*at - set->first);
    ++*at;
    return PRONY_OK;
}

static prony_status flat_nodes(const prony_context *context, int64_t inner, prn_tree_ensemble *out)
{
    const prn_tree_params *p = context->params;
    const prn_ints *missing = &p->nodes_missing_value_tracks_true;
    int64_t set = 0;
    for (int64_t i = 0; i < inner; i++) {
        prn_tree_node *node = &out->nodes[i];
        const double mode = number_at(p->nodes_modes, i);
        if (!(mode >= 0.0 && mode <= PRN_TREE_MEMBER))
            return prony_fail(context, PRONY_INVALID_MODEL, "nodes_modes[%lld] is %g", (long long)i, mode);
        PRN_TRY(set_feature(context, p->nodes_featureids.v[i], out, node));
        node->mode = (uint8_t)mode;
        node->missing_yes = missing->count && missing->v[i];
        if (node->mode == PRN_TREE_MEMBER) {
            PRN_TRY(next_set(context, out, &set, &node->members));
        } else {
            node->split = number_at(p->nodes_splits, i);
        }
        PRN_TRY(flat_child(context, out, inner, p->nodes_truenodeids.v[i], p->nodes_trueleafs.v[i], &node->yes));
        PRN_TRY(flat_child(context, out, inner, p->nodes_falsenodeids.v[i], p->nodes_falseleafs.v[i], &node->no));
    }
    return PRONY_OK;
}

static prony_status flat_leaves(const prony_context *context, int64_t inner, prn_tree_ensemble *out)
{
    const prn_tree_params *p = context->params;
    for (int64_t w = 0; w < out->weight_count; w++) {
        PRN_TRY(check_target(context, p->leaf_targetids.v[w], out->targets));
        out->weights[w] = (prn_tree_weight){p->leaf_targetids.v[w], number_at(p->leaf_weights, w)};
        out->nodes[inner + w] = (prn_tree_node){.weights = {(int32_t)w, 1}, .mode = PRN_TREE_LEAF};
    }
    for (int64_t t = 0; t < out->root_count; t++)
        PRN_TRY(flat_child(context, out, inner, p->tree_roots.v[t], 0, &out->roots[t]));
    return PRONY_OK;
}

prony_status prn_tree_read_flat(const prony_context *context, prn_tree_ensemble *out)
{
    const prn_tree_params *p = context->params;
    const int64_t inner = (int64_t)p->nodes_featureids.count, leaves = (int64_t)p->leaf_targetids.count;
    *out = (prn_tree_ensemble){.targets = p->n_targets};
    PRN_TRY(flat_lists(context, inner, leaves));
    out->node_count = inner + leaves;
    out->weight_count = leaves;
    out->root_count = (int64_t)p->tree_roots.count;
    out->member_count = p->membership_values ? prn_ml_count(p->membership_values) : 0;
    PRN_TRY(check_int32(context, "membership_values", out->member_count));
    if (!MAKE(out, nodes, out->node_count) || !MAKE(out, weights, leaves) || !MAKE(out, roots, out->root_count) ||
        !MAKE(out, members, out->member_count))
        return ml_tree_no_memory(context);
    for (int64_t i = 0; i < out->member_count; i++) out->members[i] = number_at(p->membership_values, i);
    PRN_TRY(flat_nodes(context, inner, out));
    PRN_TRY(flat_leaves(context, inner, out));
    return ml_tree_finish(context, out);
}

void prn_tree_release(prn_tree_ensemble *ensemble)
{
    prn_bump_release(&ensemble->pool);
}

/* ---- walking */

static bool is_member(const prn_tree_ensemble *ensemble, const prn_tree_range *set, double x)
{
    for (int32_t i = 0; i < set->count; i++) {
        if (ensemble->members[set->first + i] == x) return true;
    }
    return false;
}

static bool goes_yes(const prn_tree_ensemble *ensemble, const prn_tree_node *node, double x)
{
    switch ((prn_tree_mode)node->mode) {
    case PRN_TREE_LEQ:
        return x <= node->split;
    case PRN_TREE_LT:
        return x < node->split;
    case PRN_TREE_GTE:
        return x >= node->split;
    case PRN_TREE_GT:
        return x > node->split;
    case PRN_TREE_EQ:
        return x == node->split;
    case PRN_TREE_NEQ:
        return x != node->split;
    case PRN_TREE_MEMBER:
        return is_member(ensemble, &node->members, x);
    case PRN_TREE_LEAF:
        break;
    }
    return false;
}

const prn_tree_node *prn_tree_walk(const prn_tree_ensemble *ensemble, int64_t tree, const prony_value *x, int64_t first)
{
    const prn_tree_node *node = &ensemble->nodes[ensemble->roots[tree]];
    while (node->mode != PRN_TREE_LEAF) {
        const int64_t at = first + node->feature;
        const double feature =
            x->dtype == PRONY_FLOAT32 ? (double)((const float *)x->data)[at] : prn_get_f64(x->data, x->dtype, at);
        const bool yes = goes_yes(ensemble, node, feature) || (node->missing_yes && isnan(feature));
        node = &ensemble->nodes[yes ? node->yes : node->no];
    }
    return node;
}
