/* The changes that make a near miss of a pattern, one thing each. */
#include "tests/support/near_miss_maker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- looking ---- */

static int *operands(rg_node *node)
{
    return (int *)(uintptr_t)node->in; /* every node has a copy of its own */
}

static rg_node *any_node(nm_maker *m)
{
    rg_graph *graph = &m->k.g->main;
    return &graph->nodes[rg_below(&m->k, (int64_t)graph->node_count)];
}

static const char *keep_text(nm_maker *m, const char *text)
{
    const char *kept = prn_bump_strndup(&m->k.g->pool, text, strlen(text));
    if (!kept) abort();
    return kept;
}

static bool is_output(const rg_graph *graph, int id)
{
    for (size_t k = 0; k < graph->output_count; k++)
        if (graph->outputs[k] == id) return true;
    return false;
}

/* A result that is not an output yet; -1: not found. */
static int inner_value(nm_maker *m)
{
    for (int attempt = 0; attempt < 8; attempt++) {
        const int id = any_node(m)->out[0];
        if (!is_output(&m->k.g->main, id)) return id;
    }
    return -1;
}

/* A float32 constant, or with `inputs` a graph input too; -1: not found. */
static int any_constant(nm_maker *m, bool inputs)
{
    for (int attempt = 0; attempt < 40; attempt++) {
        const int id = (int)rg_below(&m->k, (int64_t)m->k.g->value_count);
        const rg_value *v = rg_of(&m->k, id);
        if ((v->constant || (inputs && v->input)) && v->dtype == PRONY_FLOAT32) return id;
    }
    return -1;
}

/* Moves the node added last to place `at`. */
static void move_last(rg_graph *graph, size_t at)
{
    const rg_node last = graph->nodes[graph->node_count - 1];
    memmove(&graph->nodes[at + 1], &graph->nodes[at], (graph->node_count - 1 - at) * sizeof last);
    graph->nodes[at] = last;
}

static void add_output(nm_maker *m, int id)
{
    rg_graph *graph = &m->k.g->main;
    int *ids = rg_copy_ids(m->k.g, graph->outputs, graph->output_count);
    ids[graph->output_count++] = id;
    graph->outputs = ids;
}

/* The elements without a change, in a new list. */
static double *own_elements(nm_maker *m, int id)
{
    const int64_t count = rg_elements(&m->k, id);
    double *reals = prn_bump_alloc(&m->k.g->pool, (size_t)count + 1, sizeof *reals);
    if (!reals) abort();
    for (int64_t i = 0; i < count; i++) reals[i] = random_graph_element(m->k.g, id, i);
    m->k.g->values[id].reals = reals;
    return reals;
}

/* ---- readers ---- */

static bool show_inner(nm_maker *m)
{
    const int id = inner_value(m);
    if (id >= 0) add_output(m, id);
    return id >= 0;
}

static bool read_inner(nm_maker *m)
{
    static const char *const ops[] = {"Neg", "Tanh", "Abs"};
    const int id = inner_value(m);
    if (id < 0 || rg_of(&m->k, id)->dtype != PRONY_FLOAT32) return false;
    add_output(m, NM_NODE(m, ops[rg_below(&m->k, 3)], "", id));
    return true;
}

/* ---- in between ---- */

static int one_between(nm_maker *m, int id)
{
    switch (rg_below(&m->k, 7)) {
    case 0:
        return NM_NODE(m, "Identity", "", id);
    case 1:
        return NM_NODE(m, "Cast", "to=1", id);
    case 2:
        return NM_NODE(m, "Dropout", "", id);
    case 3:
        return NM_NODE(m, "Neg", "", id);
    case 4:
        return nm_pair(m, "Mul", id, nm_number(m, 1));
    case 5:
        return NM_NODE(m, "Relu", "", id);
    default:
        return NM_NODE(m, "Cast", "to=11", id);
    }
}

static bool put_between(nm_maker *m)
{
    rg_graph *graph = &m->k.g->main;
    const size_t n = (size_t)rg_below(&m->k, (int64_t)graph->node_count);
    if (!graph->nodes[n].in_count) return false;
    const size_t i = (size_t)rg_below(&m->k, (int64_t)graph->nodes[n].in_count);
    const int id = graph->nodes[n].in[i];
    if (id < 0 || rg_of(&m->k, id)->dtype != PRONY_FLOAT32) return false;
    const bool all = nm_either(m);
    int between = one_between(m, id);
    size_t at = n;
    move_last(graph, at++);
    if (strcmp(graph->nodes[n].attributes, "to=11") == 0) {
        m->k.g->values[between].dtype = PRONY_FLOAT64;
        if (nm_either(m)) {
            between = NM_NODE(m, "Neg", "", between);
            m->k.g->values[between].dtype = PRONY_FLOAT64;
            move_last(graph, at++);
        }
        between = NM_NODE(m, "Cast", "to=1", between);
        move_last(graph, at++);
    }
    operands(&graph->nodes[at])[i] = between;
    for (size_t other = at; all && other < graph->node_count; other++)
        for (size_t k = 0; k < graph->nodes[other].in_count; k++)
            if (graph->nodes[other].in[k] == id) operands(&graph->nodes[other])[k] = between;
    return true;
}

/* ---- constants ---- */

static bool change_elements(nm_maker *m)
{
    const double odd[] = {0,    -0.0, 1,     -1,    2,     0.5,   INFINITY, -INFINITY, NAN,
                          1e30, 3e38, 1e-30, 1e-40, -3e38, 1e-45, 1e20,     -1e-20,    16777216};
    const int id = any_constant(m, true);
    if (id < 0 || rg_elements(&m->k, id) < 1) return false;
    double *reals = own_elements(m, id);
    const int64_t count = rg_elements(&m->k, id), one = nm_either(m) ? rg_below(&m->k, count) : -1;
    const int64_t what = rg_below(&m->k, 24);
    for (int64_t i = 0; i < count; i++) {
        if (one >= 0 && i != one) continue;
        if (what < 18)
            reals[i] = odd[what];
        else if (what < 20)
            reals[i] = -reals[i];
        else if (what < 22)
            reals[i] *= 1 + 1e-6;
        else
            reals[i] += 1;
    }
    return true;
}

/* Another number of elements, or the same ones in another shape. */
static bool change_shape(nm_maker *m)
{
    const int id = any_constant(m, false);
    if (id < 0) return false;
    rg_value *v = &m->k.g->values[id];
    const int from = (int)rg_below(&m->k, (int64_t)m->k.g->value_count);
    const prony_shape *some = &rg_of(&m->k, from)->shape;
    const int64_t c = some->rank > 0 ? some->dim[rg_below(&m->k, some->rank)] : 1;
    const prony_shape shapes[] = {{0},
                                  NM_SHAPE(1),
                                  NM_SHAPE(1, 1),
                                  NM_SHAPE(1, 1, 1, 1),
                                  NM_SHAPE(1, 1, 1, 1, 1),
                                  NM_SHAPE(c),
                                  NM_SHAPE(c, 1),
                                  NM_SHAPE(c, 1, 1),
                                  NM_SHAPE(1, c),
                                  NM_SHAPE(1, c, 1),
                                  NM_SHAPE(1, c, 1, 1),
                                  NM_SHAPE(1, 1, c)};
    prony_shape shape = shapes[rg_below(&m->k, 12)];
    if (v->shape.rank < PRONY_MAX_RANK && rg_chance(&m->k, 25)) { /* one more axis in front, or behind */
        const bool front = nm_either(m);
        shape = (prony_shape){v->shape.rank + 1, {1}};
        for (int d = 0; d < v->shape.rank; d++) shape.dim[d + front] = v->shape.dim[d];
        if (!front) shape.dim[shape.rank - 1] = 1;
    }
    if (prony_shape_numel(&shape) != prony_shape_numel(&v->shape)) v->reals = NULL;
    v->shape = shape;
    return true;
}

/* Returns true if a node makes the value or the caller provides it. */
static bool change_origin(nm_maker *m)
{
    random_graph *g = m->k.g;
    const int id = any_constant(m, false);
    if (id < 0) return false;
    (void)own_elements(m, id);
    g->values[id].constant = false;
    const int64_t what = rg_below(&m->k, 3);
    if (what == 0) {
        int *ids = rg_copy_ids(g, g->main.inputs, g->main.input_count);
        ids[g->main.input_count++] = id;
        g->main.inputs = ids;
        g->values[id].input = true;
        return true;
    }
    const double *reals = g->values[id].reals;
    if (what == 1 && rg_of(&m->k, id)->shape.rank == 0 && isfinite(reals[0])) {
        char text[48];
        snprintf(text, sizeof text, "value_float=%.9e", reals[0]);
        rg_node *node = rg_add_node(g, &g->main, "Constant", NULL, 0, text);
        node->out[node->out_count++] = id;
    } else {
        rg_value held = g->values[id];
        held.constant = true;
        const int from = rg_add_value(g, held);
        rg_node *node = rg_add_node(g, &g->main, nm_either(m) ? "Identity" : "Abs", &from, 1, "");
        node->out[node->out_count++] = id;
        if (*node->op == 'A') { /* so that it makes the same */
            bool negative = false;
            for (int64_t i = 0; i < rg_elements(&m->k, id); i++) negative = negative || signbit(reals[i]);
            if (negative) node->op = "Identity";
        }
    }
    g->values[id].reals = NULL;
    move_last(&g->main, 0);
    return true;
}

/* ---- attributes ---- */

enum { MOST_WORDS = 12 };

/* Cuts at spaces. */
static size_t words_of(char *text, char *words[MOST_WORDS])
{
    size_t count = 0;
    for (char *word = strtok(text, " "); word && count < MOST_WORDS; word = strtok(NULL, " ")) words[count++] = word;
    return count;
}

static void join_words(nm_maker *m, rg_node *node, char *const *words, size_t count, const char *more)
{
    char text[512];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        if (words[i]) used += (size_t)snprintf(text + used, sizeof text - used, "%s ", words[i]);
    (void)snprintf(text + used, sizeof text - used, "%s", more);
    node->attributes = keep_text(m, text);
}

/* Another number for the one at `at`, which ends at `end`, in `word`; written to `out`. */
static void other_number(nm_maker *m, const char *word, const char *at, const char *end, char *out, size_t size)
{
    const bool real = memchr(at, '.', (size_t)(end - at)) || memchr(at, 'e', (size_t)(end - at));
    const double x = strtod(at, NULL);
    const double reals[] = {0, -x, 2 * x, 1, x * (1 + 1e-6), x + 1};
    const int64_t whole = (int64_t)x, wholes[] = {whole + 1, whole - 1, 0, 1, -1, 2, 3};
    const int head = (int)(at - word);
    if (real)
        (void)snprintf(out, size, "%.*s%.9e%s", head, word, reals[rg_below(&m->k, 6)], end);
    else
        (void)snprintf(out, size, "%.*s%lld%s", head, word, (long long)wholes[rg_below(&m->k, 7)], end);
}

static bool change_attribute(nm_maker *m)
{
    char text[512], changed[256], *words[MOST_WORDS];
    rg_node *node = any_node(m);
    if (strcmp(node->op, "Cast") == 0 || strcmp(node->op, "Constant") == 0) return false;
    snprintf(text, sizeof text, "%s", node->attributes);
    const size_t count = words_of(text, words);
    if (!count) return false;
    const size_t which = (size_t)rg_below(&m->k, (int64_t)count);
    char *value = strchr(words[which], '=');
    if (rg_chance(&m->k, 30) || !value || strchr(value, '\'')) {
        words[which] = NULL;
        join_words(m, node, words, count, "");
        return true;
    }
    const char *starts[32], *ends[32];
    size_t numbers = 0;
    for (char *at = value + 1; *at && numbers < 32;) {
        char *end;
        (void)strtod(at, &end);
        if (end == at) {
            at++;
            continue;
        }
        starts[numbers] = at;
        ends[numbers++] = end;
        at = end;
    }
    if (!numbers) return false;
    const size_t number = (size_t)rg_below(&m->k, (int64_t)numbers);
    other_number(m, words[which], starts[number], ends[number], changed, sizeof changed);
    words[which] = changed;
    join_words(m, node, words, count, "");
    return true;
}

static bool add_attribute(nm_maker *m)
{
    static const char *const more[][2] = {
        {"Conv", "auto_pad='SAME_UPPER'"},
        {"Conv", "auto_pad='VALID'"},
        {"Conv", "auto_pad='NOTSET'"},
        {"Conv", "strides=[2,2]"},
        {"Conv", "dilations=[2,2]"},
        {"Conv", "group=2"},
        {"ConvTranspose", "output_padding=[1,1]"},
        {"ConvTranspose", "dilations=[2,2]"},
        {"Gemm", "alpha=0.5"},
        {"Gemm", "alpha=1.0"},
        {"Gemm", "beta=0.5"},
        {"Gemm", "beta=0.0"},
        {"Gemm", "transA=1"},
        {"BatchNormalization", "epsilon=0.1"},
        {"BatchNormalization", "training_mode=1"},
        {"BatchNormalization", "momentum=0.5"},
        {"Softmax", "axis=1"},
        {"Softmax", "axis=0"},
        {"Softmax", "axis=-1"},
        {"ReduceMean", "keepdims=0"},
        {"ReduceMean", "noop_with_empty_axes=1"},
        {"LayerNormalization", "axis=1"},
        {"LayerNormalization", "axis=0"},
        {"LayerNormalization", "stash_type=1"},
        {"LayerNormalization", "epsilon=0.5"},
        {"InstanceNormalization", "epsilon=0.5"},
        {"HardSigmoid", "alpha=0.2"},
        {"HardSigmoid", "alpha=-0.2"},
        {"LeakyRelu", "alpha=-1.0"},
        {"LeakyRelu", "alpha=2.0"},
        {"Gelu", "approximate='tanh'"},
        {"AveragePool", "ceil_mode=1"},
        {"AveragePool", "count_include_pad=0"},
        {"AveragePool", "strides=[2,2]"},
        {"AveragePool", "auto_pad='SAME_LOWER'"},
        {"Reshape", "allowzero=1"},
        {"Pad", "mode='edge'"},
        {"Pad", "mode='reflect'"},
        {"Dropout", "ratio=0.5"},
        {"Dropout", "seed=3"},
        {"Flatten", "axis=2"},
    };
    rg_node *node = any_node(m);
    const size_t first = (size_t)rg_below(&m->k, sizeof more / sizeof *more);
    const char *found = NULL;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        const size_t at = (first + i) % (sizeof more / sizeof *more);
        if (strcmp(node->op, more[at][0]) == 0) found = more[at][1];
    }
    if (!found || rg_chance(&m->k, 20)) found = "unknown=[1,2]";
    char name[32] = "";
    snprintf(name, sizeof name, "%.*s", (int)(strchr(found, '=') + 1 - found), found);
    if (strstr(node->attributes, name)) return false;
    char text[512];
    snprintf(text, sizeof text, "%s %s", node->attributes, found);
    node->attributes = keep_text(m, text);
    return true;
}

/* ---- operands and operators ---- */

static bool swap_operands(nm_maker *m)
{
    rg_node *node = any_node(m);
    if (node->in_count < 2) return false;
    int *in = operands(node);
    const size_t i = (size_t)rg_below(&m->k, (int64_t)node->in_count - 1);
    const int kept = in[i];
    in[i] = in[i + 1];
    in[i + 1] = kept;
    return true;
}

/* A float32 value that exists before node n. */
static int earlier(nm_maker *m, size_t n)
{
    const rg_graph *graph = &m->k.g->main;
    const size_t choices = n + graph->input_count, at = (size_t)rg_below(&m->k, (int64_t)choices);
    return at < n ? graph->nodes[at].out[0] : graph->inputs[at - n];
}

static bool change_operand(nm_maker *m)
{
    rg_graph *graph = &m->k.g->main;
    const size_t n = (size_t)rg_below(&m->k, (int64_t)graph->node_count);
    rg_node *node = &graph->nodes[n];
    if (!node->in_count) return false;
    const size_t i = (size_t)rg_below(&m->k, (int64_t)node->in_count);
    const int id = node->in[i], other = earlier(m, n);
    if (id < 0 || other == id || rg_of(&m->k, id)->dtype != rg_of(&m->k, other)->dtype) return false;
    if (rg_of(&m->k, id)->constant && nm_either(m)) return false;
    operands(node)[i] = other;
    return true;
}

static bool drop_operand(nm_maker *m)
{
    rg_node *node = any_node(m);
    if (node->in_count < 2) return false;
    if (nm_either(m))
        node->in_count--;
    else
        operands(node)[1 + rg_below(&m->k, (int64_t)node->in_count - 1)] = -1;
    return true;
}

static bool change_operator(nm_maker *m)
{
    static const char *const kin[][2] = {
        {"Add", "Sub"},
        {"Sub", "Add"},
        {"Mul", "Div"},
        {"Div", "Mul"},
        {"Relu", "LeakyRelu"},
        {"Sigmoid", "Tanh"},
        {"Tanh", "Sigmoid"},
        {"Erf", "Tanh"},
        {"ReduceMean", "ReduceSum"},
        {"ReduceMean", "ReduceMax"},
        {"Softmax", "LogSoftmax"},
        {"Sum", "Max"},
        {"Sum", "Mean"},
        {"AveragePool", "MaxPool"},
        {"Add", "Mul"},
        {"Mul", "Add"},
        {"Sqrt", "Abs"},
        {"Max", "Sum"},
        {"Softmax", "Hardmax"},
        {"HardSigmoid", "Sigmoid"},
    };
    rg_node *node = any_node(m);
    const size_t count = sizeof kin / sizeof *kin, first = (size_t)rg_below(&m->k, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(node->op, kin[(first + i) % count][0]) != 0) continue;
        node->op = kin[(first + i) % count][1];
        return true;
    }
    return false;
}

/* A second node of the same kind, which half of the readers read. */
static bool add_twin(nm_maker *m)
{
    rg_graph *graph = &m->k.g->main;
    const size_t n = (size_t)rg_below(&m->k, (int64_t)graph->node_count);
    const rg_node node = graph->nodes[n];
    if (node.out_count != 1 || strcmp(node.op, "Constant") == 0) return false;
    const int twin = nm_node(m, node.op, node.attributes, node.in, node.in_count);
    m->k.g->values[twin].dtype = rg_of(&m->k, node.out[0])->dtype;
    move_last(graph, n + 1);
    bool read = false;
    for (size_t other = n + 2; other < graph->node_count; other++)
        for (size_t i = 0; i < graph->nodes[other].in_count; i++)
            if (graph->nodes[other].in[i] == node.out[0] && nm_either(m))
                operands(&graph->nodes[other])[i] = twin, read = true;
    if (!read) add_output(m, twin);
    return true;
}

/* ---- the whole graph ---- */

/* One dimension becomes 0, 1 or another number, in every tensor that has it, or in one value alone. */
static bool change_extent(nm_maker *m)
{
    random_graph *g = m->k.g;
    const int from = g->main.inputs[rg_below(&m->k, (int64_t)g->main.input_count)];
    const prony_shape shape = rg_of(&m->k, from)->shape;
    if (shape.rank < 1) return false;
    const int axis = (int)rg_below(&m->k, shape.rank);
    const int64_t old = shape.dim[axis], new = rg_chance(&m->k, 40)   ? 1
                                               : rg_chance(&m->k, 40) ? 0
                                                                      : 1 + rg_below(&m->k, 18);
    const bool all = rg_chance(&m->k, 75);
    for (size_t v = 0; v < g->value_count; v++) {
        rg_value *value = &g->values[v];
        if (!value->constant && !value->input) continue;
        if (!all && (int)v != from) continue;
        if (value->ints && value->shape.rank == 1 && rg_chance(&m->k, 90)) { /* shapes */
            int64_t *ints = prn_bump_alloc(&g->pool, (size_t)value->shape.dim[0] + 1, sizeof *ints);
            if (!ints) abort();
            for (int64_t i = 0; i < value->shape.dim[0]; i++) ints[i] = value->ints[i] == old ? new : value->ints[i];
            value->ints = ints;
        } else if (!value->ints) {
            for (int d = 0; d < value->shape.rank; d++)
                if (value->shape.dim[d] == old && (all || d == axis)) value->shape.dim[d] = new, value->reals = NULL;
        }
    }
    return true;
}

static bool change_types(nm_maker *m)
{
    random_graph *g = m->k.g;
    const prony_dtype to = nm_either(m) ? PRONY_FLOAT64 : PRONY_FLOAT16;
    for (size_t n = 0; n < g->main.node_count; n++)
        if (strcmp(g->main.nodes[n].op, "Cast") == 0 || strcmp(g->main.nodes[n].op, "Constant") == 0) return false;
    for (size_t v = 0; v < g->value_count; v++)
        if (g->values[v].dtype == PRONY_FLOAT32) g->values[v].dtype = to;
    return true;
}

static bool change_opset(nm_maker *m)
{
    static const int64_t opsets[] = {6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    m->k.g->opset = opsets[rg_below(&m->k, sizeof opsets / sizeof *opsets)];
    return true;
}

/* ---- one of them ---- */

const char *nm_change(nm_maker *m)
{
    static const struct {
        const char *name;
        bool (*make)(nm_maker *m);
        int weight;
    } changes[] = {{"output in the middle", show_inner, 8},
                   {"shared intermediate", read_inner, 10},
                   {"operator in between", put_between, 14},
                   {"other elements", change_elements, 22},
                   {"other shape of a constant", change_shape, 14},
                   {"other origin of a constant", change_origin, 10},
                   {"other attribute", change_attribute, 14},
                   {"one more attribute", add_attribute, 10},
                   {"operands swapped", swap_operands, 6},
                   {"other operand", change_operand, 8},
                   {"operand missing", drop_operand, 4},
                   {"other operator", change_operator, 8},
                   {"the same node twice", add_twin, 6},
                   {"other extent", change_extent, 14},
                   {"other type", change_types, 4},
                   {"other opset", change_opset, 6}};
    for (int attempt = 0; attempt < 40; attempt++) {
        int64_t at = rg_below(&m->k, 158);
        size_t i = 0;
        while ((at -= changes[i].weight) >= 0) i++;
        if (changes[i].make(m)) return changes[i].name;
    }
    return NULL;
}
