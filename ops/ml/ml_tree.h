/* An ensemble of decision trees in the form in which it is walked. */
#ifndef PRN_OPS_ML_ML_TREE_H
#define PRN_OPS_ML_ML_TREE_H

#include "ops/ml/ml.h"

#include "base/memory/alloc.h"

typedef enum prn_tree_mode { /* numbers of TreeEnsemble's nodes_modes, and a leaf */
                             PRN_TREE_LEQ,
                             PRN_TREE_LT,
                             PRN_TREE_GTE,
                             PRN_TREE_GT,
                             PRN_TREE_EQ,
                             PRN_TREE_NEQ,
                             PRN_TREE_MEMBER,
                             PRN_TREE_LEAF
} prn_tree_mode;

typedef struct prn_tree_range {
    int32_t first, count;
} prn_tree_range;

typedef struct prn_tree_node {
    union {
        double split;
        prn_tree_range members; /* MEMBER: in `members` of the ensemble */
        prn_tree_range weights; /* LEAF: in `weights` */
    };
    int32_t feature, yes, no;
    uint8_t mode;
    bool missing_yes; /* NaN goes the way of yes */
} prn_tree_node;

typedef struct prn_tree_weight {
    int64_t target;
    double value;
} prn_tree_weight;

/* Invariant once read: every index is in range, no walk meets a node twice. */
typedef struct prn_tree_ensemble {
    prn_bump pool;
    prn_tree_node *nodes;
    prn_tree_weight *weights;
    double *members;
    int32_t *roots;
    int64_t node_count, weight_count, member_count, root_count;
    int64_t targets;
    int64_t features;      /* that a row must have */
    uint64_t depth;        /* comparisons on the longest way, summed over trees */
    uint64_t leaf_weights; /* most weights of a leaf, summed over trees */
} prn_tree_ensemble;

/* Which attributes the node has, version by version. */
typedef struct prn_tree_params {
    prn_ints nodes_treeids, nodes_nodeids, nodes_featureids, nodes_truenodeids, nodes_falsenodeids;
    prn_ints nodes_missing_value_tracks_true;
    prn_floats nodes_values, leaf_values, base_values;
    const prony_value *nodes_values_as_tensor, *leaf_values_as_tensor, *base_values_as_tensor;
    prn_ints leaf_treeids, leaf_nodeids, leaf_ids; /* target_ or class_ */
    prn_ints classlabels_int64s;
    const char *aggregate_function, *post_transform;
    int64_t n_targets;
    /* TreeEnsemble 5 */
    prn_ints nodes_trueleafs, nodes_falseleafs, tree_roots, leaf_targetids;
    const prony_value *nodes_splits, *nodes_modes, *leaf_weights, *membership_values;
    int64_t aggregate_number, transform_number;
} prn_tree_params;

/* Reads and checks the attributes of versions 1 and 3 (targets: how many there are), or of TreeEnsemble 5. `out` is
 * released by prn_tree_release, also after a failure. */
prony_status prn_tree_read(const prony_context *context, int64_t targets, prn_tree_ensemble *out);
prony_status prn_tree_read_flat(const prony_context *context, prn_tree_ensemble *out);
void prn_tree_release(prn_tree_ensemble *ensemble);

/* The leaf that the row of features at element `first` of x ends in. */
const prn_tree_node *prn_tree_walk(const prn_tree_ensemble *ensemble, int64_t tree, const prony_value *x,
                                   int64_t first);

#endif
