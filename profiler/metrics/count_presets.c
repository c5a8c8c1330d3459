/* The tables of the counting presets. A rule is a linear form in few quantities of an operator, or a function if the
 * tool's formula is not linear. Sources are the tools' own files, at the commits named in each preset. */
#include "profiler/metrics/count_presets.h"

#include <string.h>

typedef struct terms {
    int macs;                                      /* M */
    int outputs, outputs_biased, outputs_unbiased; /* o; with a bias; without a bias */
    int inputs, inputs_affine, inputs_biased;      /* n; with a scale; with a bias */
    int rows, channels;
    int windows; /* o K */
    int steps;   /* o (operands - 1) */
} terms;

typedef bool (*count_fn)(const prn_count_node *node, __int128 *out);

typedef struct rule {
    terms terms;
    count_fn special;
    bool weighted; /* only if the operator has parameters */
} rule;

struct prn_count_table {
    prony_count_preset preset;
    const rule *rules; /* beside preset.rules */
    bool composites;
};

static int64_t fact(const prn_count_node *node, const char *key, int64_t absent)
{
    for (uint32_t f = 0; f < node->cost->fact_count; f++)
        if (strcmp(node->cost->facts[f].key, key) == 0) return node->cost->facts[f].value;
    return absent;
}

static __int128 linear(const terms *t, const prn_count_node *node)
{
    bool bias = fact(node, "bias", 0) > 0, affine = fact(node, "affine", 0) > 0;
    __int128 n = node->inputs, o = node->outputs, sum = (__int128)node->cost->macs * t->macs;
    sum += o * (t->outputs + (bias ? t->outputs_biased : t->outputs_unbiased));
    sum += n * (t->inputs + (affine ? t->inputs_affine : 0) + (bias ? t->inputs_biased : 0));
    sum += (__int128)fact(node, "rows", 0) * t->rows;
    sum += (__int128)fact(node, "channels", 0) * t->channels;
    sum += o * fact(node, "kernel_volume", 1) * t->windows;
    sum += o * (node->operands > 1 ? (int64_t)node->operands - 1 : 1) * t->steps;
    return sum;
}

/* ---- formulas that are not linear ---- */

/* Facts of a report read back can have any value; counts that could exceed 128 bits are refused. */
static const __int128 too_large = (__int128)1 << 100;

enum { NEAREST, LINEAR, CUBIC }; /* the fact "mode" of Resize */

static bool fvcore_resize(const prn_count_node *node, __int128 *out)
{
    int64_t mode = fact(node, "mode", -1);
    *out = (__int128)node->outputs * (mode == LINEAR ? 4 : 1);
    return mode == NEAREST || (mode == LINEAR && node->rank == 4);
}

static bool thop_resize(const prn_count_node *node, __int128 *out)
{
    static const int linear_per_element[] = {[3] = 5, [4] = 11}; /* the hook refuses trilinear */
    int64_t mode = fact(node, "mode", -1), per_element = 1;
    if (mode == LINEAR) per_element = node->rank == 3 || node->rank == 4 ? linear_per_element[node->rank] : 0;
    if (mode == CUBIC) per_element = 224 + 35;
    *out = (__int128)node->outputs * per_element;
    return mode >= NEAREST && mode <= CUBIC && per_element > 0;
}

static bool thop_transposed(const prn_count_node *node, __int128 *out)
{
    int64_t groups = fact(node, "groups", 1), channels = fact(node, "in_channels", 0);
    int64_t volume = fact(node, "kernel_volume", 1);
    *out = too_large;
    if (channels <= INT32_MAX && volume <= INT32_MAX)
        *out = (__int128)node->outputs * (channels / (groups > 0 ? groups : 1)) * volume;
    return true;
}

typedef struct recurrence {
    int64_t cells; /* steps, batch and directions */
    int64_t steps_batch, directions;
    int64_t input, hidden, gates;
    bool bias;
} recurrence;

/* false, with *out too large, if a fact is too large. */
static bool recurrence_of(const prn_count_node *node, recurrence *r, __int128 *out)
{
    static const char *const keys[] = {"steps", "batch", "input_size", "hidden_size"};
    *out = too_large;
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        if (fact(node, keys[k], 0) < 0 || fact(node, keys[k], 0) > 1 << 24) return false;
    *r = (recurrence){.steps_batch = fact(node, "steps", 0) * fact(node, "batch", 0),
                      .directions = fact(node, "directions", 1) == 2 ? 2 : 1,
                      .input = fact(node, "input_size", 0),
                      .hidden = fact(node, "hidden_size", 0),
                      .gates = fact(node, "gates", 1),
                      .bias = fact(node, "bias", 0) > 0};
    r->cells = r->steps_batch * r->directions;
    return r->gates >= 1 && r->gates <= 4;
}

static bool deepspeed_recurrent(const prn_count_node *node, __int128 *out)
{
    recurrence r;
    if (!recurrence_of(node, &r, out)) return true;
    int64_t width = r.gates * r.hidden, pointwise = r.gates == 4 ? 10 : r.gates == 3 ? 7 : 1;
    __int128 cell = (__int128)2 * width * (r.input + r.hidden) - 2 * width + pointwise * r.hidden;
    *out = (cell + (r.bias ? 2 * width : 0)) * r.cells;
    return true;
}

/* The gates' own arithmetic counts once for any number of directions. */
static bool onnx_tool_recurrent(const prn_count_node *node, __int128 *out)
{
    recurrence r;
    if (!recurrence_of(node, &r, out)) return true;
    __int128 weights = (__int128)r.directions * r.gates * r.hidden * (r.input + r.hidden);
    __int128 biases = r.bias ? (__int128)r.directions * 2 * r.gates * r.hidden : 0;
    *out = (weights + biases) * r.steps_batch + (__int128)(r.gates == 4 ? 180 : 110) * r.steps_batch * r.hidden;
    return r.gates == 3 || r.gates == 4;
}

/* Counts each output with all taps of the kernel, for the channels in the weight's second dimension. */
static bool onnx_tool_transposed(const prn_count_node *node, __int128 *out)
{
    int64_t groups = fact(node, "groups", 1), channels = fact(node, "out_channels", 0);
    int64_t volume = fact(node, "kernel_volume", 1);
    *out = too_large;
    if (channels <= INT32_MAX && volume <= INT32_MAX)
        *out = (__int128)node->outputs * (channels / (groups > 0 ? groups : 1) * volume + (fact(node, "bias", 0) > 0));
    return channels > 0;
}

/* 8 T B H (in + H + 3.875) for an LSTM with biases, 2.875 without; 6 and 3.5, 2.5 for a GRU. */
static bool moduleprofiler_recurrent(const prn_count_node *node, __int128 *out)
{
    recurrence r;
    if (!recurrence_of(node, &r, out)) return true;
    int64_t matrices = 2 * r.gates, rest = r.gates == 4 ? (r.bias ? 31 : 23) : r.bias ? 21 : 15;
    *out = ((__int128)matrices * (r.input + r.hidden) + rest) * r.hidden * r.cells;
    return r.gates == 3 || r.gates == 4;
}

static bool thop_recurrent(const prn_count_node *node, __int128 *out)
{
    recurrence r;
    if (!recurrence_of(node, &r, out)) return true;
    int64_t pointwise = r.gates == 1 ? 0 : 4;
    __int128 gate = (__int128)r.hidden * (r.input + r.hidden) + r.hidden + (r.bias ? 2 * r.hidden : 0);
    *out = (gate * r.gates + pointwise * r.hidden) * r.cells;
    return true;
}

/* ---- the tables ---- */

#define CONVOLUTIONS "Conv ConvInteger QLinearConv FusedConv"
#define PRODUCTS "MatMul MatMulInteger QLinearMatMul FusedMatMul"
#define NORMS "LayerNormalization InstanceNormalization GroupNormalization"
#define GELUS "Gelu FastGelu QuickGelu BiasGelu"
#define SILUS "SiLU Swish"

/* Two arrays with the same rows: the public one holds texts, the other counts. */
#define RULE_WORDS(operators, formula, ...) {operators, formula},
#define RULE_TERMS(operators, formula, ...) {__VA_ARGS__},
#define COUNT(...) .terms = {__VA_ARGS__}

#define FVCORE(X)                                                                                                      \
    X(CONVOLUTIONS " ConvTranspose", "M", COUNT(.macs = 1))                                                            \
    X("Gemm " PRODUCTS " Einsum", "M", COUNT(.macs = 1))                                                               \
    X("BatchNormalization", "2n, n without scale", COUNT(.inputs = 1, .inputs_affine = 1))                             \
    X(NORMS, "5n, 4n without scale", COUNT(.inputs = 4, .inputs_affine = 1))                                           \
    X("GlobalAveragePool", "n", COUNT(.inputs = 1))                                                                    \
    X("Resize Upsample", "o nearest, 4o bilinear", .special = fvcore_resize)

#define DEEPSPEED(X)                                                                                                   \
    X(CONVOLUTIONS " ConvTranspose", "2M, + o with bias", COUNT(.macs = 2, .outputs_biased = 1))                       \
    X("Gemm " PRODUCTS " Einsum", "2M", COUNT(.macs = 2))                                                              \
    X("BatchNormalization", "2n, n without scale", COUNT(.inputs = 1, .inputs_affine = 1))                             \
    X(NORMS, "5n, 4n without scale", COUNT(.inputs = 4, .inputs_affine = 1))                                           \
    X("Softmax Relu LeakyRelu PRelu Elu Clip " GELUS " " SILUS, "n", COUNT(.inputs = 1))                               \
    X("MaxPool AveragePool GlobalMaxPool GlobalAveragePool", "n", COUNT(.inputs = 1))                                  \
    X("Add Mul", "o", COUNT(.outputs = 1))                                                                             \
    X("LSTM GRU RNN", "per direction, step and sample 2 (W + R) - 2 gates + 10H (LSTM), 7H (GRU), H (RNN), + biases",  \
      .special = deepspeed_recurrent)

#define ONNX_TOOL(X)                                                                                                   \
    X(CONVOLUTIONS, "M, + o with bias", COUNT(.macs = 1, .outputs_biased = 1))                                         \
    X("Gemm", "M, + o with 3 inputs", COUNT(.macs = 1, .outputs_biased = 1))                                           \
    X(PRODUCTS, "M", COUNT(.macs = 1))                                                                                 \
    X("BatchNormalization", "31 o", COUNT(.outputs = 31))                                                              \
    X("LayerNormalization", "7n + 29 rows", COUNT(.inputs = 7, .rows = 29))                                            \
    X("Softmax", "36n", COUNT(.inputs = 36))                                                                           \
    X("Relu", "n", COUNT(.inputs = 1))                                                                                 \
    X("LeakyRelu PRelu Clip", "2n", COUNT(.inputs = 2))                                                                \
    X("Sigmoid", "32n", COUNT(.inputs = 32))                                                                           \
    X("Tanh", "38n", COUNT(.inputs = 38))                                                                              \
    X("Elu", "35n", COUNT(.inputs = 35))                                                                               \
    X("Gelu", "34n", COUNT(.inputs = 34))                                                                              \
    X("MaxPool AveragePool", "o K", COUNT(.windows = 1))                                                               \
    X("GlobalAveragePool", "n + 4o", COUNT(.inputs = 1, .outputs = 4))                                                 \
    X("Add Sub Mul Min Max Sum Neg Abs", "o per step", COUNT(.steps = 1))                                              \
    X("Div", "4o", COUNT(.outputs = 4))                                                                                \
    X("Exp Pow", "32o", COUNT(.outputs = 32))                                                                          \
    X("Log", "43o", COUNT(.outputs = 43))                                                                              \
    X("Sqrt", "24o", COUNT(.outputs = 24))                                                                             \
    X("ConvTranspose", "o (Cout / g) K, + o with bias", .special = onnx_tool_transposed)                               \
    X("LSTM GRU", "(W + R + B) batch T + 180 batch T H, GRU 110 batch T H", .special = onnx_tool_recurrent)

#define MODULEPROFILER(X)                                                                                              \
    X(CONVOLUTIONS, "2M, - o without bias", COUNT(.macs = 2, .outputs_unbiased = -1))                                  \
    X("Gemm", "2M, - o without bias", COUNT(.macs = 2, .outputs_unbiased = -1))                                        \
    X(PRODUCTS, "2M - o by a weight; two activations: not counted", COUNT(.macs = 2, .outputs_unbiased = -1),          \
      .weighted = true)                                                                                                \
    X("BatchNormalization", "C (7N + 4), C (5N + 4) without scale",                                                    \
      COUNT(.inputs = 5, .inputs_affine = 2, .channels = 4))                                                           \
    X("LayerNormalization", "rows (7d + 4), (6d + 4) without bias, (5d + 4) without scale",                            \
      COUNT(.inputs = 5, .inputs_affine = 1, .inputs_biased = 1, .rows = 4))                                           \
    X("Softmax", "rows (4d - 1)", COUNT(.inputs = 4, .rows = -1))                                                      \
    X("Relu", "n", COUNT(.inputs = 1))                                                                                 \
    X("LeakyRelu PRelu " SILUS, "4n", COUNT(.inputs = 4))                                                              \
    X("Sigmoid Elu", "3n", COUNT(.inputs = 3))                                                                         \
    X("Tanh Selu", "7n", COUNT(.inputs = 7))                                                                           \
    X("Softplus", "5n", COUNT(.inputs = 5))                                                                            \
    X("MaxPool GlobalMaxPool GlobalAveragePool", "o", COUNT(.outputs = 1))                                             \
    X("AveragePool", "o K", COUNT(.windows = 1))                                                                       \
    X("LSTM GRU", "8 T B H (in + H + 3.875), 2.875 without bias; GRU 6 T B H (in + H + 3.5), 2.5",                     \
      .special = moduleprofiler_recurrent)

#define THOP(X)                                                                                                        \
    X(CONVOLUTIONS, "M", COUNT(.macs = 1))                                                                             \
    X("ConvTranspose", "o (Cin / g) K", .special = thop_transposed)                                                    \
    X("Gemm", "M", COUNT(.macs = 1))                                                                                   \
    X(PRODUCTS, "M by a weight; two activations: not seen", COUNT(.macs = 1), .weighted = true)                        \
    X("BatchNormalization LayerNormalization InstanceNormalization", "4n, 2n without scale",                           \
      COUNT(.inputs = 2, .inputs_affine = 2))                                                                          \
    X("Softmax", "rows (3d - 1)", COUNT(.inputs = 3, .rows = -1))                                                      \
    X("Relu Clip LeakyRelu PRelu MaxPool GlobalMaxPool", "0", COUNT(.macs = 0))                                        \
    X("AveragePool", "o", COUNT(.outputs = 1))                                                                         \
    X("GlobalAveragePool", "n + o", COUNT(.inputs = 1, .outputs = 1))                                                  \
    X("Resize Upsample", "o nearest, 5o linear, 11o bilinear, 259o cubic", .special = thop_resize)                     \
    X("LSTM GRU RNN", "T B per gate H (in + H) + H, + 2H with bias; + 4H (LSTM, GRU)", .special = thop_recurrent)

#define TORCH(X)                                                                                                       \
    X(CONVOLUTIONS " ConvTranspose", "2M", COUNT(.macs = 2))                                                           \
    X("Gemm " PRODUCTS " Einsum", "2M", COUNT(.macs = 2))                                                              \
    X("Attention MultiHeadAttention", "2M", COUNT(.macs = 2))

#define DEEPLITE(X)                                                                                                    \
    X(CONVOLUTIONS " ConvTranspose", "M", COUNT(.macs = 1))                                                            \
    X("Gemm", "M", COUNT(.macs = 1))                                                                                   \
    X(PRODUCTS, "M by a weight; two activations: not seen", COUNT(.macs = 1), .weighted = true)                        \
    X("BatchNormalization", "2o", COUNT(.outputs = 2))

#define TABLE(NAME, LIST)                                                                                              \
    static const prony_count_rule NAME##_words[] = {LIST(RULE_WORDS)};                                                 \
    static const rule NAME##_rules[] = {LIST(RULE_TERMS)};

TABLE(fvcore, FVCORE)
TABLE(deepspeed, DEEPSPEED)
TABLE(onnx_tool, ONNX_TOOL)
TABLE(moduleprofiler, MODULEPROFILER)
TABLE(thop, THOP)
TABLE(torch, TORCH)
TABLE(deeplite, DEEPLITE)

#define PRESET(title, file, commit, text, NAME, sees)                                                                  \
    {{title, file, commit, text, NAME##_words, sizeof NAME##_words / sizeof NAME##_words[0]}, NAME##_rules, sees}

static const prn_count_table tables[] = {
    PRESET("fvcore", "fvcore nn/jit_handles.py", "3378afe",
           "1 per MAC; activations, elementwise operators, softmax and recurrent layers are not counted", fvcore, true),
    PRESET("deepspeed", "DeepSpeed flops_profiler/profiler.py", "edaa722",
           "2 per MAC; sigmoid, tanh and elementwise operators other than add and mul are not counted", deepspeed,
           true),
    PRESET("onnx-tool", "onnx_tool/node.py", "00f5f0a",
           "1 per MAC; reads the model's own nodes, so operators written out in primitives count as those", onnx_tool,
           false),
    PRESET(
        "moduleprofiler", "moduleprofiler ops.py", "071b9f8",
        "2 per MAC, less one addition per output without bias; functional products, transposed convolutions, GELU and "
        "elementwise operators are not counted",
        moduleprofiler, true),
    PRESET("thop", "thop vision/basic_hooks.py, vision/calc_func.py, rnn_hooks.py", "9e106f3, 8f115d4, 0afd8aa",
           "1 per MAC; hooks see modules only: functional products and elementwise operators are not counted", thop,
           true),
    PRESET("torch", "torch/utils/flop_counter.py", "0140b62",
           "2 per MAC over matrix products, convolutions and attention; nothing else", torch, true),
    PRESET(
        "deeplite", "deeplite-profiler thirdparty/ptflops.py", "188f96d",
        "MACs of convolutions and linear layers, without their biases, and 2 per output of a BatchNorm; activations, "
        "pools and resizing as functions, which its hooks do not see",
        deeplite, true),
};

size_t prony_count_preset_count(void)
{
    return sizeof tables / sizeof tables[0];
}

const prony_count_preset *prony_count_preset_at(size_t index)
{
    return index < prony_count_preset_count() ? &tables[index].preset : NULL;
}

const prn_count_table *prn_count_find(const char *name)
{
    for (size_t i = 0; i < prony_count_preset_count(); i++)
        if (strcmp(tables[i].preset.name, name) == 0) return &tables[i];
    return NULL;
}

bool prn_count_sees_composites(const prn_count_table *table)
{
    return table->composites;
}

/* true: the blank-separated list contains `word`. */
static bool names(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; *at;) {
        size_t span = strcspn(at, " ");
        if (span == length && memcmp(at, word, length) == 0) return true;
        at += span + (at[span] == ' ');
    }
    return false;
}

bool prn_count_operator(const prn_count_table *table, const prn_count_node *node, uint64_t *out, prony_status *status)
{
    *status = PRONY_OK;
    for (size_t r = 0; r < table->preset.rule_count; r++) {
        const rule *rule = &table->rules[r];
        if (!names(table->preset.rules[r].operators, node->op)) continue;
        if (rule->weighted && !node->weighted) return false;
        __int128 count = 0;
        if (!rule->special)
            count = linear(&rule->terms, node);
        else if (!rule->special(node, &count))
            return false;
        if (count < 0) count = 0;
        if (count > UINT64_MAX) {
            *status = PRONY_OUT_OF_RANGE;
            return false;
        }
        *out = (uint64_t)count;
        return true;
    }
    return false;
}
