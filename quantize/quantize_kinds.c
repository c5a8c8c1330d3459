/* The kind that each node of a graph could have; see quantize_plan.h. Invariant: a node that another one takes along
 * (norm_of, clamp_of) reads that node's result, and no other node reads it. */
#include "quantize/quantize_plan.h"

#include "base/shape.h"

#include <string.h>

/* Operands of a Concat, as in engine/rewrites/quantize_moves.c, and nodes of a function; chosen without
 * measurement. */
enum { MOST_OPERANDS = 32, MOST_PARTS = 16 };

/* ---- looking ---- */

static double quantize_kinds_attribute(const prn_model_node *node, const char *name, double absent)
{
    const prn_attr *a = prn_attr_find(&node->attributes, name);
    if (!a) return absent;
    return a->type == PRN_ATTR_FLOAT ? (double)a->f : (double)a->i;
}

/* A float32 tensor of known shape that only a run knows. */
static bool is_activation(const prn_quant_plan *plan, const char *name)
{
    const prn_quant_value *v = prn_quant_value_of(plan, name);
    return v && !v->constant && v->info.kind == PRONY_TENSOR && v->info.dtype == PRONY_FLOAT32 &&
           v->info.shape.rank >= 0 && prn_shape_known(&v->info.shape);
}

/* The float32 constant of an input, with its elements; NULL: something else. */
static const prn_quant_value *quantize_kinds_weights_of(const prn_quant_plan *plan, const prn_model_node *node,
                                                        size_t input)
{
    const prn_quant_value *v = input < node->input_count ? prn_quant_value_of(plan, node->inputs[input]) : NULL;
    return v && v->constant && v->info.data && v->info.dtype == PRONY_FLOAT32 ? v : NULL;
}

static bool quantize_kinds_has_input(const prn_model_node *node, size_t input)
{
    return input < node->input_count && *node->inputs[input];
}

static bool rest_is_constant(const prn_quant_plan *plan, const prn_model_node *node, size_t from)
{
    for (size_t i = from; i < node->input_count; i++) {
        const prn_quant_value *v = prn_quant_value_of(plan, node->inputs[i]);
        if (*node->inputs[i] && (!v || !v->constant)) return false;
    }
    return true;
}

/* The only reader of a value that is not a graph output; PRN_QUANT_NONE: not exactly one. */
static size_t only_reader(const prn_quant_plan *plan, const char *name)
{
    const prn_quant_value *v = prn_quant_value_of(plan, name);
    return v && !v->outside && v->use_count == 1 && v->uses[0].input == 0 ? v->uses[0].node : PRN_QUANT_NONE;
}

/* ---- kinds ---- */

/* A bias is left out, or one number for each channel. */
static bool bias_fits(const prn_quant_plan *plan, const prn_model_node *node, int64_t channels)
{
    if (!quantize_kinds_has_input(node, 2)) return true;
    const prn_quant_value *bias = quantize_kinds_weights_of(plan, node, 2);
    if (!bias) return false;
    const prony_shape *shape = &bias->info.shape;
    const int64_t count = prony_shape_numel(shape);
    return count == channels && shape->rank >= 1 && shape->dim[shape->rank - 1] == channels;
}

/* Fills kind and channels of a contraction that can be quantized. NULL: it can; "": another node, or one without
 * constant weights; else the reason why it cannot. */
static const char *quantize_kinds_contraction(const prn_quant_plan *plan, const prn_model_node *node,
                                              prn_quant_node *out)
{
    const bool transposed = prn_quant_is_op(node, "ConvTranspose");
    const bool conv = prn_quant_is_op(node, "Conv") || transposed, gemm = prn_quant_is_op(node, "Gemm"),
               matmul = prn_quant_is_op(node, "MatMul");
    const prn_quant_value *w = node->input_count > 1 ? prn_quant_value_of(plan, node->inputs[1]) : NULL;
    if ((!conv && !gemm && !matmul) || !w || !w->constant) return "";
    if (w->info.dtype != PRONY_FLOAT32) return "its weights are not float32";
    if (!w->info.data) return "its weights are made by other nodes";
    if (!is_activation(plan, node->inputs[0]) || !is_activation(plan, node->outputs[0]))
        return "its input or output is not float32 of a known shape";
    const int rank = w->info.shape.rank, operand = prn_quant_value_of(plan, node->inputs[0])->info.shape.rank;
    if (conv && (rank < 3 || rank > 5)) return "its weights have another rank than 3 to 5";
    if (!conv && (rank != 2 || operand < 2)) return "its weights have another rank than 2, or its input has 1";
    /* Scales of the outputs are those of groups together. */
    if (transposed && quantize_kinds_attribute(node, "group", 1) != 1) return "it has groups";
    if (gemm && (quantize_kinds_attribute(node, "alpha", 1) != 1 || quantize_kinds_attribute(node, "beta", 1) != 1))
        return "alpha or beta is not 1";
    if (gemm && quantize_kinds_attribute(node, "transA", 0) != 0) return "transA is 1, wanted 0";
    out->channel_axis = (conv && !transposed) || (gemm && quantize_kinds_attribute(node, "transB", 0) != 0) ? 0 : 1;
    out->channels = w->info.shape.dim[out->channel_axis];
    if (prony_shape_numel(&w->info.shape) < 1) return "its weights are empty";
    if (!matmul && !bias_fits(plan, node, out->channels)) return "its bias is not one constant for each output channel";
    out->kind = conv ? PRN_QUANT_CONV : gemm ? PRN_QUANT_GEMM : PRN_QUANT_MATMUL;
    return NULL;
}

static bool is_sum(const prn_quant_plan *plan, const prn_model_node *node)
{
    if (!prn_quant_is_op(node, "Add") || node->input_count != 2) return false;
    if (!is_activation(plan, node->inputs[0]) || !is_activation(plan, node->inputs[1])) return false;
    return prn_shape_equal(&prn_quant_value_of(plan, node->inputs[0])->info.shape,
                           &prn_quant_value_of(plan, node->inputs[1])->info.shape);
}

static bool is_product_of_values(const prn_quant_plan *plan, const prn_model_node *node)
{
    return prn_quant_is_op(node, "Mul") && node->input_count == 2 && is_activation(plan, node->inputs[0]) &&
           is_activation(plan, node->inputs[1]);
}

static bool is_average(const prn_quant_plan *plan, const prn_model_node *node)
{
    if (!prn_quant_is_op(node, "GlobalAveragePool") && !prn_quant_is_op(node, "AveragePool")) return false;
    if (prn_attr_find(&node->attributes, "dilations") || !is_activation(plan, node->inputs[0])) return false;
    const int rank = prn_quant_value_of(plan, node->inputs[0])->info.shape.rank;
    return rank >= 3 && rank <= 5;
}

static bool is_move(const prn_quant_plan *plan, const prn_model_node *node)
{
    static const char *const movers[] = {"MaxPool",   "Reshape", "Flatten", "Transpose", "Squeeze",
                                         "Unsqueeze", "Slice",   "Concat",  "Expand",    "Identity"};
    bool is = false;
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++) is = is || prn_quant_is_op(node, movers[i]);
    if (!is || node->input_count == 0 || node->input_count > MOST_OPERANDS || node->output_count != 1) return false;
    if (!prn_quant_is_op(node, "Concat"))
        return is_activation(plan, node->inputs[0]) && rest_is_constant(plan, node, 1);
    for (size_t i = 0; i < node->input_count; i++)
        if (!is_activation(plan, node->inputs[i])) return false;
    return true;
}

static bool is_clamp(const prn_quant_plan *plan, const prn_model_node *node)
{
    return prn_quant_is_op(node, "Relu") || (prn_quant_is_op(node, "Clip") && rest_is_constant(plan, node, 1));
}

/* Statistics that are constants, one for each channel. */
static bool is_norm(const prn_quant_plan *plan, const prn_model_node *node, int64_t channels)
{
    if (!prn_quant_is_op(node, "BatchNormalization") || node->input_count != 5 || node->output_count != 1 ||
        quantize_kinds_attribute(node, "training_mode", 0) != 0)
        return false;
    for (size_t i = 1; i < 5; i++) {
        const prn_quant_value *v = quantize_kinds_weights_of(plan, node, i);
        if (!v || prony_shape_numel(&v->info.shape) != channels) return false;
    }
    return true;
}

const prn_quant_value *prn_quant_bias_of(const prn_quant_plan *plan, const prn_model_node *add, int64_t channels)
{
    for (size_t i = 0; i < 2 && prn_quant_is_op(add, "Add") && add->input_count == 2; i++) {
        const prn_quant_value *bias = quantize_kinds_weights_of(plan, add, i),
                              *sum = prn_quant_value_of(plan, add->outputs[0]),
                              *product = prn_quant_value_of(plan, add->inputs[1 - i]);
        if (!bias || !sum || !product || prony_shape_numel(&bias->info.shape) != channels) continue;
        const prony_shape *shape = &bias->info.shape;
        if (shape->rank >= 1 && shape->dim[shape->rank - 1] == channels &&
            prn_shape_equal(&product->info.shape, &sum->info.shape))
            return bias;
    }
    return NULL;
}

/* ---- functions of each element ---- */

static bool quantize_kinds_is_scalar(const prn_quant_plan *plan, const char *name)
{
    const prn_quant_value *v = prn_quant_value_of(plan, name);
    return !*name || (v && v->constant && prn_shape_known(&v->info.shape) && prony_shape_numel(&v->info.shape) == 1);
}

/* Functions that rewriting computes by a table (engine/rewrites/quantize_maps.c); Relu and Clip are taken along if
 * possible. */
static bool is_elementwise(const prn_quant_plan *plan, const prn_model_node *node)
{
    static const char *const names[] = {
        "Sigmoid",  "Tanh",     "HardSigmoid", "HardSwish", "Swish", "Gelu", "LeakyRelu",      "Elu", "Selu", "Celu",
        "Softplus", "Softsign", "Mish",        "Erf",       "Exp",   "Sqrt", "Reciprocal",     "Abs", "Neg",  "Pow",
        "Relu",     "Clip",     "Add",         "Sub",       "Mul",   "Div",  "ThresholdedRelu"};
    bool is = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) is = is || prn_quant_is_op(node, names[i]);
    if (!is || node->output_count != 1 || !is_activation(plan, node->outputs[0])) return false;
    const prony_shape *shape = &prn_quant_value_of(plan, node->outputs[0])->info.shape;
    for (size_t i = 0; i < node->input_count; i++) {
        const bool same = is_activation(plan, node->inputs[i]) &&
                          prn_shape_equal(&prn_quant_value_of(plan, node->inputs[i])->info.shape, shape);
        if (!same && !quantize_kinds_is_scalar(plan, node->inputs[i])) return false;
    }
    return true;
}

/* An Add of a constant, not of one element, behind a MatMul. */
static bool is_biased_product(const prn_quant_plan *plan, const prn_model_node *node)
{
    for (size_t i = 0; i < 2 && prn_quant_is_op(node, "Add") && node->input_count == 2; i++) {
        const prn_quant_value *v = prn_quant_value_of(plan, node->inputs[i]);
        if (v && v->producer != PRN_QUANT_NONE && prn_quant_is_op(&plan->graph->nodes[v->producer], "MatMul") &&
            quantize_kinds_weights_of(plan, node, 1 - i) && !quantize_kinds_is_scalar(plan, node->inputs[1 - i]))
            return true;
    }
    return false;
}

/* true: the Relu or Clip bounds the stored result of a contraction, sum or product before it. */
static bool bounds_another(const prn_quant_plan *plan, const prn_model_node *node)
{
    static const char *const names[] = {"Conv", "ConvTranspose", "BatchNormalization", "Gemm", "MatMul"};
    const prn_quant_value *v = prn_quant_value_of(plan, node->inputs[0]);
    if (!is_clamp(plan, node) || !v || v->producer == PRN_QUANT_NONE || v->outside || v->use_count != 1) return false;
    const prn_model_node *maker = &plan->graph->nodes[v->producer];
    bool bounds = is_sum(plan, maker) || is_product_of_values(plan, maker) || is_biased_product(plan, maker);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) bounds = bounds || prn_quant_is_op(maker, names[i]);
    return bounds;
}

/* A function that is being looked for: its nodes, the last one first. */
typedef struct function {
    size_t nodes[MOST_PARTS];
    size_t count, root;
} function;

static bool quantize_kinds_is_part(const function *f, size_t n)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->nodes[i] == n) return true;
    return false;
}

/* true: only nodes of the function read the value. */
static bool quantize_kinds_is_inside(const function *f, const prn_quant_value *v)
{
    bool inside = !v->outside && v->use_count > 0;
    for (size_t u = 0; u < v->use_count && inside; u++) inside = quantize_kinds_is_part(f, v->uses[u].node);
    return inside;
}

/* Adds the producers of its nodes' operands that no other node reads. true: it added one. */
static bool quantize_kinds_grow(const prn_quant_plan *plan, function *f)
{
    const size_t before = f->count;
    for (size_t k = 0; k < f->count; k++) {
        const prn_model_node *node = &plan->graph->nodes[f->nodes[k]];
        for (size_t i = 0; i < node->input_count && f->count < MOST_PARTS; i++) {
            const prn_quant_value *v = prn_quant_value_of(plan, node->inputs[i]);
            const size_t maker = v ? v->producer : PRN_QUANT_NONE;
            if (maker == PRN_QUANT_NONE || quantize_kinds_is_part(f, maker) ||
                plan->nodes[maker].map_of != PRN_QUANT_NONE)
                continue;
            const prn_model_node *made_by = &plan->graph->nodes[maker];
            if (quantize_kinds_is_inside(f, v) && is_elementwise(plan, made_by) && !bounds_another(plan, made_by))
                f->nodes[f->count++] = maker;
        }
    }
    return f->count > before;
}

static bool is_made_inside(const prn_quant_plan *plan, const function *f, size_t v)
{
    return plan->values[v].producer != PRN_QUANT_NONE && quantize_kinds_is_part(f, plan->values[v].producer);
}

/* The one value that its nodes read from outside. false: they read no value from outside, or several. */
static bool find_root(const prn_quant_plan *plan, function *f)
{
    f->root = PRN_QUANT_NONE;
    for (size_t k = 0; k < f->count; k++) {
        const prn_model_node *node = &plan->graph->nodes[f->nodes[k]];
        for (size_t i = 0; i < node->input_count; i++) {
            const size_t v = prn_quant_value_find(plan, node->inputs[i]);
            if (quantize_kinds_is_scalar(plan, node->inputs[i])) continue;
            if (is_made_inside(plan, f, v)) continue;
            if (f->root != PRN_QUANT_NONE && f->root != v) return false;
            f->root = v;
        }
    }
    return f->root != PRN_QUANT_NONE;
}

/* Readers are asked before those that make what they read, so that a function is as long as it can be. */
static void find_function(prn_quant_plan *plan, size_t last)
{
    const prn_model_node *node = &plan->graph->nodes[last];
    function f = {.nodes = {last}, .count = 1};
    if (plan->nodes[last].map_of != PRN_QUANT_NONE || !is_elementwise(plan, node) || bounds_another(plan, node)) return;
    while (quantize_kinds_grow(plan, &f)) continue;
    if (!find_root(plan, &f)) return;
    plan->nodes[last].root = f.root;
    for (size_t k = 0; k < f.count; k++) plan->nodes[f.nodes[k]].map_of = last;
}

/* The only reader of a value that is not a graph output, as any of its inputs; PRN_QUANT_NONE: not exactly one. */
static size_t sole_reader(const prn_quant_plan *plan, const char *name)
{
    const prn_quant_value *v = prn_quant_value_of(plan, name);
    return v && !v->outside && v->use_count == 1 ? v->uses[0].node : PRN_QUANT_NONE;
}

/* The node that contraction n takes along in front of a clamp, because weights and bias stand for it. */
static size_t behind(const prn_quant_plan *plan, size_t n)
{
    const prn_model_node *node = &plan->graph->nodes[n];
    const prn_quant_node *q = &plan->nodes[n];
    const size_t reader = sole_reader(plan, node->outputs[0]);
    if (reader == PRN_QUANT_NONE) return PRN_QUANT_NONE;
    const prn_model_node *next = &plan->graph->nodes[reader];
    const bool is = q->kind == PRN_QUANT_CONV
                        ? is_norm(plan, next, q->channels) && strcmp(next->inputs[0], node->outputs[0]) == 0
                        : q->kind == PRN_QUANT_MATMUL && prn_quant_bias_of(plan, next, q->channels);
    return is ? reader : PRN_QUANT_NONE;
}

/* Decides node n's kind and the nodes that it takes along. A contraction's reason not to be quantized is noted even if
 * another kind fits. Nodes taken along are a norm or bias directly behind, then a clamp behind that: q->result is the
 * value after the last of them. */
static void classify(prn_quant_plan *plan, size_t n)
{
    const prn_model_node *node = &plan->graph->nodes[n];
    prn_quant_node *q = &plan->nodes[n];
    if (node->output_count == 0 || node->input_count == 0) return;
    const char *reason = quantize_kinds_contraction(plan, node, q);
    q->reason = reason && *reason ? reason : NULL;
    if (!is_activation(plan, node->outputs[0])) return;
    if (reason)
        q->kind = q->map_of == n                     ? PRN_QUANT_MAP
                  : q->map_of != PRN_QUANT_NONE      ? PRN_QUANT_OTHER
                  : is_sum(plan, node)               ? PRN_QUANT_ADD
                  : is_product_of_values(plan, node) ? PRN_QUANT_MUL
                  : is_average(plan, node)           ? PRN_QUANT_AVERAGE
                  : is_move(plan, node)              ? PRN_QUANT_MOVE
                                                     : PRN_QUANT_OTHER;
    if (q->kind == PRN_QUANT_OTHER) return;
    const char *result = node->outputs[0];
    q->norm = behind(plan, n);
    if (q->norm != PRN_QUANT_NONE) {
        plan->nodes[q->norm].norm_of = n;
        result = plan->graph->nodes[q->norm].outputs[0];
    }
    const size_t reader = only_reader(plan, result);
    /* Averages and moves keep what they read. */
    const bool bounded = prn_quant_is_contraction(q) || q->kind == PRN_QUANT_ADD || q->kind == PRN_QUANT_MUL;
    if (bounded && reader != PRN_QUANT_NONE && is_clamp(plan, &plan->graph->nodes[reader]) &&
        is_activation(plan, plan->graph->nodes[reader].outputs[0])) {
        q->clamp = reader;
        plan->nodes[reader].clamp_of = n;
        result = plan->graph->nodes[reader].outputs[0];
    }
    q->result = prn_quant_value_find(plan, result);
}

void prn_quant_classify(prn_quant_plan *plan)
{
    for (size_t n = plan->graph->node_count; n-- > 0;) find_function(plan, n);
    for (size_t n = 0; n < plan->graph->node_count; n++) classify(plan, n);
}
