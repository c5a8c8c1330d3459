/* TreeEnsembleRegressor, TreeEnsembleClassifier (versions 1 and 3), TreeEnsemble (5).
 *
 * Every tree sends a row to one of its leaves; the leaves' weights are aggregated per target, base values added, and
 * the scores transformed. The trees are the kernel's state, made when the plan is. A row is one task, so its sums have
 * one order; they are formed in double. */
#include "ops/ml/ml_tree.h"

#include "ops/kernels/vector/number.h"

typedef enum aggregate { AVERAGE, SUM, MINIMUM, MAXIMUM } aggregate;

/* A row's variant. */
typedef enum form { REGRESSOR, CLASSIFIER, FLAT } form;

static form ml_tree_ensemble_form_of(const prony_context *context)
{
    return *(const form *)prn_variant(context);
}

/* The values beside the trees. */
typedef struct setting {
    form form;
    aggregate aggregate;
    prn_ml_transform transform;
    prony_value base;
    prony_value labels; /* classifier */
    bool one_class;     /* two classes, of which one alone has weights */
    bool positive;      /* no weight is negative */
} setting;

/* ---- setting */

static prony_status read_aggregate(const prony_context *context, const char *name, aggregate *out)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    for (int i = 0; i < 4; i++) {
        *out = (aggregate)i;
        if (strcmp(names[i], name) == 0) return PRONY_OK;
    }
    return prony_fail(context, PRONY_INVALID_MODEL, "aggregate_function '%s' is unknown", name);
}

static void look_at_weights(const prn_tree_params *p, setting *out)
{
    const prony_value weights = p->leaf_values_as_tensor ? *p->leaf_values_as_tensor : prn_ml_floats(&p->leaf_values);
    out->one_class = prn_ml_count(&out->labels) == 2 && p->leaf_ids.count > 0;
    out->positive = true;
    for (size_t i = 0; i < p->leaf_ids.count; i++) {
        out->one_class = out->one_class && p->leaf_ids.v[i] == p->leaf_ids.v[0];
        out->positive = out->positive && prn_get_f64(weights.data, weights.dtype, (int64_t)i) >= 0.0;
    }
}

/* The trees must have been read once before a classifier's weights are looked at. */
static prony_status read_setting(const prony_context *context, setting *out)
{
    const form form = ml_tree_ensemble_form_of(context);
    const prn_tree_params *p = context->params;
    *out = (setting){.form = form, .aggregate = SUM};
    if (form == FLAT) {
        if (p->aggregate_number < 0 || p->aggregate_number > MAXIMUM || p->transform_number < 0 ||
            p->transform_number >= PRN_ML_TRANSFORM_COUNT)
            return prony_fail(context, PRONY_INVALID_MODEL, "aggregate_function %lld, post_transform %lld",
                              (long long)p->aggregate_number, (long long)p->transform_number);
        out->aggregate = (aggregate)p->aggregate_number;
        out->transform = (prn_ml_transform)p->transform_number;
        return PRONY_OK;
    }
    out->base = p->base_values_as_tensor ? *p->base_values_as_tensor : prn_ml_floats(&p->base_values);
    if (out->base.dtype != PRONY_UNDEFINED && !prn_dtype_is_number(out->base.dtype))
        return prony_fail(context, PRONY_INVALID_MODEL, "base_values holds %s", prony_dtype_name(out->base.dtype));
    PRN_TRY(prn_ml_transform_read(context, p->post_transform, &out->transform));
    if (form == REGRESSOR) return read_aggregate(context, p->aggregate_function, &out->aggregate);
    return prn_ml_ints_or_strings(context, &p->classlabels_int64s, "classlabels_strings", &out->labels);
}

static prony_status read_trees(const prony_context *context, const setting *set, prn_tree_ensemble *out)
{
    if (set->form == FLAT) return prn_tree_read_flat(context, out);
    return prn_tree_read(context,
                         set->form == REGRESSOR ? ((const prn_tree_params *)context->params)->n_targets
                                                : prn_ml_count(&set->labels),
                         out);
}

static prony_status check_setting(const prony_context *context, const setting *set, const prn_tree_ensemble *trees)
{
    const int64_t base = prn_ml_count(&set->base);
    if (trees->targets < 1)
        return prony_fail(context, PRONY_INVALID_MODEL, "%lld targets or classes", (long long)trees->targets);
    if (base > 1 && base != trees->targets) return prn_ml_check_count(context, "base_values", base, trees->targets);
    return PRONY_OK;
}

static prony_status ml_tree_ensemble_check(const prony_context *context)
{
    setting set;
    prn_tree_ensemble trees;
    PRN_TRY(read_setting(context, &set));
    prony_status status = read_trees(context, &set, &trees);
    if (status == PRONY_OK) status = check_setting(context, &set, &trees);
    prn_tree_release(&trees);
    return status;
}

/* ---- shapes and cost */

static prony_status ml_tree_ensemble_infer(const prony_context *context)
{
    setting set;
    const form form = ml_tree_ensemble_form_of(context);
    const uint32_t flat_types = PRN_TYPE_F32 | PRN_TYPE(PRONY_FLOAT64) | PRN_TYPE(PRONY_FLOAT16);
    PRN_TRY(prn_ml_check_rows(context, form == FLAT ? flat_types : PRN_ML_TYPES));
    PRN_TRY(read_setting(context, &set));
    const int64_t rows = prn_ml_rows_of(context).rows;
    if (form != CLASSIFIER)
        return prn_ml_set_output(context, 0, form == FLAT ? context->inputs[0]->dtype : PRONY_FLOAT32, rows,
                                 ((const prn_tree_params *)context->params)->n_targets);
    const prony_shape labels = {1, {rows}};
    prn_set_output(context, 0, set.labels.dtype, &labels);
    return prn_ml_set_output(context, 1, PRONY_FLOAT32, rows, prn_ml_count(&set.labels));
}

static prony_status ml_tree_ensemble_cost(const prony_context *context, prony_cost *out)
{
    setting set;
    prn_tree_ensemble trees;
    PRN_TRY(read_setting(context, &set));
    prony_status status = read_trees(context, &set, &trees);
    const int64_t rows = prn_ml_rows_of(context).rows;
    if (status == PRONY_OK) {
        prn_cost_fact(out, "rows", rows);
        prn_cost_fact(out, "trees", trees.root_count);
        prn_cost_fact(out, "nodes", trees.node_count);
        prn_cost_fact(out, "depth", (int64_t)trees.depth);
        prn_cost_fact(out, "targets", trees.targets);
        /* A split of each inner node, and the leaves' weights. */
        for (int64_t n = 0; n < trees.node_count; n++) out->parameters += trees.nodes[n].mode != PRN_TREE_LEAF;
        out->parameters += (uint64_t)trees.weight_count;
        status = prn_cost_floats(context, out, (uint64_t)rows, trees.depth + trees.leaf_weights, 0);
    }
    if (status == PRONY_OK) status = prn_ml_transform_cost(context, out, set.transform, rows, trees.targets);
    prn_tree_release(&trees);
    return status;
}

/* ---- running */

typedef struct state {
    prn_tree_ensemble trees;
    setting set;
} state;

static void ml_tree_ensemble_release(void *argument)
{
    state *made = argument;
    if (!made) return;
    prn_tree_release(&made->trees);
    prn_free(made);
}

/* Scratch: a score for every row and target, then whether it has any. */
static prony_status ml_tree_ensemble_prepare(const prony_context *context, prn_prepared *out)
{
    state *made = prn_calloc(1, sizeof *made);
    if (!made) return prn_no_memory(context->error);
    prony_status status = read_setting(context, &made->set);
    if (status == PRONY_OK) status = read_trees(context, &made->set, &made->trees);
    if (status == PRONY_OK) status = check_setting(context, &made->set, &made->trees);
    const prn_ml_rows at = prn_ml_rows_of(context);
    if (status == PRONY_OK && at.features < made->trees.features)
        status = prony_fail(context, PRONY_SHAPE_MISMATCH, "rows of %lld features, a tree looks at number %lld",
                            (long long)at.features, (long long)made->trees.features - 1);
    int64_t bytes;
    if (status == PRONY_OK && (__builtin_mul_overflow(at.rows, made->trees.targets, &bytes) ||
                               __builtin_mul_overflow(bytes, (int64_t)sizeof(double) + 1, &bytes)))
        status = prony_fail(context, PRONY_LIMIT, "the scores do not fit in memory");
    if (status != PRONY_OK) {
        ml_tree_ensemble_release(made);
        return status;
    }
    if (made->set.form == CLASSIFIER) look_at_weights(context->params, &made->set);
    *out = (prn_prepared){made, (size_t)bytes};
    return PRONY_OK;
}

typedef struct job {
    const prony_context *context;
    const state *state;
    int64_t features;
    double *scores;
    bool *scored;
} job;

static void ml_tree_ensemble_add_weight(aggregate how, double value, double *score, bool *scored)
{
    if (how == AVERAGE || how == SUM)
        *score += value;
    else if (!*scored || (how == MINIMUM ? value < *score : value > *score))
        *score = value;
    *scored = true;
}

static void score_row(const job *job, int64_t row, double *scores, bool *scored)
{
    const prn_tree_ensemble *trees = &job->state->trees;
    const aggregate how = job->state->set.aggregate;
    for (int64_t t = 0; t < trees->targets; t++) {
        scores[t] = 0.0;
        scored[t] = false;
    }
    for (int64_t tree = 0; tree < trees->root_count; tree++) {
        const prn_tree_node *leaf = prn_tree_walk(trees, tree, job->context->inputs[0], row * job->features);
        for (int32_t w = 0; w < leaf->weights.count; w++) {
            const prn_tree_weight *weight = &trees->weights[leaf->weights.first + w];
            ml_tree_ensemble_add_weight(how, weight->value, &scores[weight->target], &scored[weight->target]);
        }
    }
    if (how != AVERAGE) return;
    for (int64_t t = 0; t < trees->targets; t++) scores[t] /= (double)trees->root_count;
}

static double ml_tree_ensemble_base_of(const prony_value *base, int64_t target)
{
    return prn_get_f64(base->data, base->dtype, target);
}

static void put_scores(const prony_value *out, int64_t row, const double *scores, int64_t count)
{
    if (!out) return;
    for (int64_t t = 0; t < count; t++) prn_put_f64(out->data, out->dtype, row * count + t, scores[t]);
}

static void finish_targets(const job *job, int64_t row, double *scores)
{
    const setting *set = &job->state->set;
    const int64_t targets = job->state->trees.targets;
    if (prn_ml_count(&set->base) == targets) {
        for (int64_t t = 0; t < targets; t++) scores[t] += ml_tree_ensemble_base_of(&set->base, t);
    }
    prn_ml_transform_row(set->transform, scores, targets);
    put_scores(job->context->outputs[0], row, scores, targets);
}

/* Two classes. If both have a score, of leaves or of two base values, the larger decides and the first wins a tie.
 * An only score decides by its sign, or against 1/2 if weights are like probabilities, and the other score is made from
 * it. Returns the class. */
static int64_t finish_two(const setting *set, double scores[2], bool scored[2])
{
    const int64_t base = prn_ml_count(&set->base);
    const bool single = base != 2 && !scored[1], both = base == 2 || (scored[0] && scored[1]);
    for (int64_t k = 0; k < base; k++) {
        if (scored[k] || single || base == 2) scores[k] += ml_tree_ensemble_base_of(&set->base, k);
    }
    const double decisive = scored[1] ? scores[1] : scores[0];
    const int64_t label = both ? scores[1] > scores[0] : decisive > (set->one_class && set->positive ? 0.5 : 0.0);
    if (single)
        prn_ml_pair_scores(set->transform, set->one_class && set->positive ? PRN_ML_COMPLEMENT : PRN_ML_MIRROR,
                           scores[0], scores);
    else
        prn_ml_transform_row(set->transform, scores, 2);
    return label;
}

static int64_t finish_many(const setting *set, double *scores, bool *scored, int64_t classes)
{
    const int64_t base = prn_ml_count(&set->base);
    int64_t best = -1;
    for (int64_t k = 0; k < classes; k++) {
        if (k < base) {
            scores[k] += ml_tree_ensemble_base_of(&set->base, k);
            scored[k] = true;
        }
        if (scored[k] && (best < 0 || scores[k] > scores[best])) best = k;
    }
    prn_ml_transform_row(set->transform, scores, classes);
    return best < 0 ? 0 : best;
}

static void ml_tree_ensemble_rows(void *argument, int64_t begin, int64_t end)
{
    const job *job = argument;
    const setting *set = &job->state->set;
    const int64_t targets = job->state->trees.targets;
    for (int64_t row = begin; row < end; row++) {
        double *scores = job->scores + row * targets;
        bool *scored = job->scored + row * targets;
        score_row(job, row, scores, scored);
        if (set->form != CLASSIFIER) {
            finish_targets(job, row, scores);
            continue;
        }
        const int64_t label =
            targets == 2 ? finish_two(set, scores, scored) : finish_many(set, scores, scored, targets);
        const prony_value *labels = prn_output(job->context, 0);
        if (labels) prn_ml_copy(labels, row, &set->labels, label);
        put_scores(prn_output(job->context, 1), row, scores, targets);
    }
}

static prony_status ml_tree_ensemble_run(const prony_context *context)
{
    const state *made = context->state;
    const prn_ml_rows at = prn_ml_rows_of(context);
    if (at.rows == 0) return PRONY_OK;
    double *scores = context->scratch;
    job job = {context, made, at.features, scores, (bool *)(scores + at.rows * made->trees.targets)};
    prn_ml_parallel_rows(context, at.rows, 32 * (int64_t)made->trees.depth, ml_tree_ensemble_rows, &job);
    return PRONY_OK;
}

/* ---- rows */

#define LIST(key, type, field) {key, type, offsetof(prn_tree_params, field), false, 0, 0, NULL}
#define TEXT(key, field, value) {key, PRN_PARAM_STRING, offsetof(prn_tree_params, field), false, 0, 0, value}
#define NUMBER(key, field, value) {key, PRN_PARAM_INT, offsetof(prn_tree_params, field), false, value, 0, NULL}
#define NAMED_NODES(leaf, ids)                                                                                         \
    PRN_INTS(prn_tree_params, nodes_treeids), PRN_INTS(prn_tree_params, nodes_nodeids),                                \
        PRN_INTS(prn_tree_params, nodes_featureids), PRN_INTS(prn_tree_params, nodes_truenodeids),                     \
        PRN_INTS(prn_tree_params, nodes_falsenodeids), PRN_INTS(prn_tree_params, nodes_missing_value_tracks_true),     \
        PRN_FLOATS(prn_tree_params, nodes_values), PRN_TENSOR(prn_tree_params, nodes_values_as_tensor),                \
        PRN_FLOATS(prn_tree_params, base_values), PRN_TENSOR(prn_tree_params, base_values_as_tensor),                  \
        TEXT("post_transform", post_transform, "NONE"), LIST(leaf "_treeids", PRN_PARAM_INTS, leaf_treeids),           \
        LIST(leaf "_nodeids", PRN_PARAM_INTS, leaf_nodeids), LIST(ids, PRN_PARAM_INTS, leaf_ids),                      \
        LIST(leaf "_weights", PRN_PARAM_FLOATS, leaf_values),                                                          \
        LIST(leaf "_weights_as_tensor", PRN_PARAM_TENSOR, leaf_values_as_tensor)

static const prn_param regressor_params[] = {NAMED_NODES("target", "target_ids"),
                                             TEXT("aggregate_function", aggregate_function, "SUM"),
                                             PRN_INT(prn_tree_params, n_targets, 1),
                                             {0}};
static const prn_param classifier_params[] = {
    NAMED_NODES("class", "class_ids"), PRN_INTS(prn_tree_params, classlabels_int64s), {0}};
// clang-format off
static const prn_param flat_params[] = {
    PRN_INTS(prn_tree_params, nodes_featureids), PRN_INTS(prn_tree_params, nodes_truenodeids),
    PRN_INTS(prn_tree_params, nodes_falsenodeids), PRN_INTS(prn_tree_params, nodes_trueleafs),
    PRN_INTS(prn_tree_params, nodes_falseleafs), PRN_INTS(prn_tree_params, nodes_missing_value_tracks_true),
    PRN_INTS(prn_tree_params, tree_roots), PRN_INTS(prn_tree_params, leaf_targetids),
    PRN_TENSOR(prn_tree_params, nodes_splits), PRN_TENSOR(prn_tree_params, nodes_modes),
    PRN_TENSOR(prn_tree_params, leaf_weights), PRN_TENSOR(prn_tree_params, membership_values),
    PRN_INT(prn_tree_params, n_targets, 1), NUMBER("aggregate_function", aggregate_number, SUM),
    NUMBER("post_transform", transform_number, PRN_ML_NONE), {0}};
// clang-format on

#define COST_TEXT                                                                                                      \
    "rows times (depths of all trees, summed, + most weights of a leaf of each); then the transform: SOFTMAX 5 d - 2 " \
    "per row, LOGISTIC 4, PROBIT 10 per score"

static const prn_kernel regressor_kernels[] = {{.name = "tree_regressor_reference",
                                                .backend = "reference",
                                                .prepare = ml_tree_ensemble_prepare,
                                                .run = ml_tree_ensemble_run,
                                                .release = ml_tree_ensemble_release},
                                               {0}};
static const prn_kernel classifier_kernels[] = {{.name = "tree_classifier_reference",
                                                 .backend = "reference",
                                                 .prepare = ml_tree_ensemble_prepare,
                                                 .run = ml_tree_ensemble_run,
                                                 .release = ml_tree_ensemble_release},
                                                {0}};
static const prn_kernel flat_kernels[] = {{.name = "tree_flat_reference",
                                           .backend = "reference",
                                           .prepare = ml_tree_ensemble_prepare,
                                           .run = ml_tree_ensemble_run,
                                           .release = ml_tree_ensemble_release},
                                          {0}};

// clang-format off
const prn_op prn_ops_ml_tree_ensemble[] = {
    {.name = "TreeEnsembleRegressor", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = regressor_params, .params_bytes = sizeof(prn_tree_params), .check = ml_tree_ensemble_check,
     .variant = &(const form){REGRESSOR},
     .infer = ml_tree_ensemble_infer, .cost = ml_tree_ensemble_cost, .cost_text = COST_TEXT, .kernels = regressor_kernels},
    {.name = "TreeEnsembleClassifier", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1}, .outputs = {2, 2},
     .params = classifier_params, .params_bytes = sizeof(prn_tree_params), .check = ml_tree_ensemble_check,
     .variant = &(const form){CLASSIFIER},
     .infer = ml_tree_ensemble_infer, .cost = ml_tree_ensemble_cost, .cost_text = COST_TEXT, .kernels = classifier_kernels},
    {.name = "TreeEnsemble", .domain = "ai.onnx.ml", .since_opset = 5, .inputs = {1, 1},
     .params = flat_params, .params_bytes = sizeof(prn_tree_params), .check = ml_tree_ensemble_check, .variant = &(const form){FLAT},
     .infer = ml_tree_ensemble_infer, .cost = ml_tree_ensemble_cost, .cost_text = COST_TEXT, .kernels = flat_kernels},
    {0}};
// clang-format on
