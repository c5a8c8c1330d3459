/* The maker of near misses: values, common nodes, and the frame around the patterns. */
#include "tests/support/near_miss.h"
#include "tests/support/near_miss_maker.h"

#include "engine/rewrites/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

int64_t nm_extent(nm_maker *m)
{
    return 2 + rg_below(&m->k, 5);
}

bool nm_either(nm_maker *m)
{
    return rg_chance(&m->k, 50);
}

int nm_input(nm_maker *m, prony_shape shape)
{
    random_graph *g = m->k.g;
    const int id = rg_add_value(
        g, (rg_value){.dtype = PRONY_FLOAT32, .shape = shape, .input = true, .low = -2, .high = 2, .most = 2});
    int *ids = rg_copy_ids(g, g->main.inputs, g->main.input_count);
    ids[g->main.input_count++] = id;
    g->main.inputs = ids;
    return id;
}

int nm_constant(nm_maker *m, prony_shape shape, double low, double high)
{
    return rg_constant(&m->k, PRONY_FLOAT32, &shape, low, high);
}

int nm_number(nm_maker *m, double x)
{
    const prony_shape one = {rg_chance(&m->k, 20) ? 1 : 0, {1}};
    return rg_constant(&m->k, PRONY_FLOAT32, &one, x, x);
}

int nm_before(nm_maker *m, prony_shape shape)
{
    static const char *const ops[] = {"Tanh", "Exp", "Abs", "Neg"};
    const int x = nm_input(m, shape);
    return nm_either(m) ? x : NM_NODE(m, ops[rg_below(&m->k, 4)], "", x);
}

int nm_along(nm_maker *m, int rank, int axis, int64_t extent, double low, double high)
{
    const int first = nm_either(m) ? axis : 0;
    prony_shape shape = {rank - first, {0}};
    for (int d = first; d < rank; d++) shape.dim[d - first] = d == axis ? extent : 1;
    return nm_constant(m, shape, low, high);
}

/* ---- nodes ---- */

int nm_node(nm_maker *m, const char *op, const char *attributes, const int *in, size_t count)
{
    random_graph *g = m->k.g;
    const int id = rg_add_value(g, (rg_value){.dtype = PRONY_FLOAT32, .shape = {.rank = -1}});
    rg_node *node = rg_add_node(g, &g->main, op, in, count, attributes);
    node->out[node->out_count++] = id;
    return id;
}

int nm_pair(nm_maker *m, const char *op, int a, int b)
{
    const bool turned = nm_either(m);
    return NM_NODE(m, op, "", turned ? b : a, turned ? a : b);
}

int nm_times(nm_maker *m, int x, double number)
{
    if (rg_chance(&m->k, 40)) return NM_NODE(m, "Div", "", x, nm_number(m, 1 / number));
    return nm_pair(m, "Mul", x, nm_number(m, number));
}

int nm_clip(nm_maker *m, int x, const double *low, const double *high)
{
    char text[64] = "";
    if (m->k.g->opset < 11) {
        if (low) snprintf(text, sizeof text, "min=%.9e", *low);
        if (high) snprintf(text + strlen(text), sizeof text - strlen(text), " max=%.9e", *high);
        return NM_NODE(m, "Clip", text, x);
    }
    const prony_shape none = {0};
    const int a = low ? rg_constant(&m->k, PRONY_FLOAT32, &none, *low, *low) : -1;
    if (!high) return a < 0 ? NM_NODE(m, "Clip", "", x) : NM_NODE(m, "Clip", "", x, a);
    return NM_NODE(m, "Clip", "", x, a, rg_constant(&m->k, PRONY_FLOAT32, &none, *high, *high));
}

int nm_mean(nm_maker *m, int x, int axis)
{
    char text[32];
    if (m->k.g->opset >= 18) return NM_NODE(m, "ReduceMean", "keepdims=1", x, NM_LIST(m, axis));
    snprintf(text, sizeof text, "axes=[%d]", axis);
    return NM_NODE(m, "ReduceMean", text, x);
}

/* " name=[v,v]" */
static size_t put_list(char *text, size_t size, const char *name, int count, int64_t value)
{
    size_t used = (size_t)snprintf(text, size, " %s=[", name);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d", i ? "," : "", (int)value);
    return used + (size_t)snprintf(text + used, size - used, "]");
}

nm_contraction nm_same_conv(nm_maker *m, int x, int rank, int64_t in, int64_t out, int64_t kernel)
{
    char text[96];
    prony_shape weights = {rank, {out, in}};
    for (int d = 2; d < rank; d++) weights.dim[d] = kernel;
    (void)put_list(text, sizeof text, "pads", 2 * (rank - 2), kernel / 2);
    const int w = nm_constant(m, weights, -0.6, 0.6);
    const int b = nm_either(m) ? nm_constant(m, NM_SHAPE(out), -1, 1) : -1;
    const int y = b < 0 ? NM_NODE(m, "Conv", text, x, w) : NM_NODE(m, "Conv", text, x, w, b);
    return (nm_contraction){.x = x, .y = y, .channels = out, .rank = rank, .axis = 1};
}

static nm_contraction matrix_product(nm_maker *m)
{
    const int64_t rows = nm_extent(m), depth = nm_extent(m), columns = nm_extent(m);
    nm_contraction c = {.channels = columns, .rank = 2, .axis = 1};
    if (nm_either(m)) {
        const bool stacked = nm_either(m);
        c.rank = stacked ? 3 : 2;
        c.axis = c.rank - 1;
        c.x = nm_before(m, stacked ? NM_SHAPE(2, rows, depth) : NM_SHAPE(rows, depth));
        c.y = NM_NODE(m, "MatMul", "", c.x, nm_constant(m, NM_SHAPE(depth, columns), -0.6, 0.6));
        return c;
    }
    const bool turned = nm_either(m);
    c.x = nm_before(m, NM_SHAPE(rows, depth));
    const int w = nm_constant(m, turned ? NM_SHAPE(columns, depth) : NM_SHAPE(depth, columns), -0.6, 0.6);
    const prony_shape biases[] = {NM_SHAPE(columns), NM_SHAPE(1, columns), NM_SHAPE(1), {0}, NM_SHAPE(rows, 1)};
    const int64_t bias = rg_below(&m->k, 7);
    const char *attributes = turned ? "transB=1" : "";
    c.y = bias < 5 ? NM_NODE(m, "Gemm", attributes, c.x, w, nm_constant(m, biases[bias], -1, 1))
                   : NM_NODE(m, "Gemm", attributes, c.x, w);
    return c;
}

nm_contraction nm_contract(nm_maker *m)
{
    if (rg_chance(&m->k, 35)) return matrix_product(m);
    const int rank = 3 + (int)rg_below(&m->k, rg_chance(&m->k, 20) ? 3 : 2);
    const int64_t groups = 1 + rg_below(&m->k, 2), in = groups * (1 + rg_below(&m->k, 3)),
                  out = groups * (1 + rg_below(&m->k, 3)), kernel = 1 + rg_below(&m->k, 3);
    const bool transposed = rg_chance(&m->k, 30);
    prony_shape shape = {rank, {1 + rg_below(&m->k, 2), in}};
    prony_shape weights = {rank, {transposed ? in : out, transposed ? out / groups : in / groups}};
    char text[160];
    size_t used = 0;
    text[0] = '\0';
    for (int d = 2; d < rank; d++) {
        shape.dim[d] = nm_extent(m) + 1;
        weights.dim[d] = kernel;
    }
    if (groups > 1) used += (size_t)snprintf(text, sizeof text, "group=%d", (int)groups);
    if (nm_either(m)) used += put_list(text + used, sizeof text - used, "pads", 2 * (rank - 2), kernel / 2);
    if (rg_chance(&m->k, 30)) (void)put_list(text + used, sizeof text - used, "strides", rank - 2, 2);
    nm_contraction c = {.x = nm_before(m, shape), .channels = out, .rank = rank, .axis = 1};
    const int w = nm_constant(m, weights, -0.6, 0.6), b = nm_either(m) ? nm_constant(m, NM_SHAPE(out), -1, 1) : -1;
    const char *op = transposed ? "ConvTranspose" : "Conv";
    c.y = b < 0 ? NM_NODE(m, op, text, c.x, w) : NM_NODE(m, op, text, c.x, w, b);
    return c;
}

int nm_batch_norm(nm_maker *m, int x, int64_t channels)
{
    const int scale = nm_constant(m, NM_SHAPE(channels), 0.5, 2), shift = nm_constant(m, NM_SHAPE(channels), -1, 1),
              mean = nm_constant(m, NM_SHAPE(channels), -1, 1), variance = nm_constant(m, NM_SHAPE(channels), 0.1, 2);
    return NM_NODE(m, "BatchNormalization", nm_either(m) ? "epsilon=0.001" : "", x, scale, shift, mean, variance);
}

/* ---- the frame ---- */

/* Quantized values: tests/support/random_qdq.h. */
static const nm_pattern quantized[] = {
    {"quantize_contraction", NULL}, {"quantize_sum", NULL},  {"attach_quantized_residual", NULL},
    {"quantize_moves", NULL},       {"quantize_maps", NULL}, {NULL, NULL}};

/* For a generator's sessions only: tests/unit/engine/generate/. */
static const nm_pattern generated[] = {{"append_cache", NULL}, {NULL, NULL}};

static const nm_pattern *const lists[] = {nm_move_patterns, nm_match_patterns, nm_fold_patterns, quantized, generated};
enum { LISTS = sizeof lists / sizeof *lists };

/* Pattern `index` of those that have a maker, or NULL behind the last. */
static const nm_pattern *pattern_at(uint64_t index)
{
    for (size_t l = 0; l < LISTS; l++)
        for (const nm_pattern *p = lists[l]; p->rewrite; p++)
            if (p->make && index-- == 0) return p;
    return NULL;
}

static uint64_t pattern_count(void)
{
    uint64_t count = 0;
    while (pattern_at(count)) count++;
    return count;
}

const char *near_miss_without_pattern(void)
{
    for (size_t k = 0; k < prn_rewrite_count(); k++) {
        /* Needs the caches of a generator, which a graph alone does not have: test_generate.c has its near misses. */
        bool found = strcmp(prn_rewrite_name(k), "append_cache") == 0;
        for (size_t l = 0; l < LISTS; l++)
            for (const nm_pattern *p = lists[l]; p->rewrite; p++)
                found = found || strcmp(p->rewrite, prn_rewrite_name(k)) == 0;
        if (!found) return prn_rewrite_name(k);
    }
    for (size_t l = 0; l < LISTS; l++)
        for (const nm_pattern *p = lists[l]; p->rewrite; p++) {
            size_t k = 0;
            while (k < prn_rewrite_count() && strcmp(p->rewrite, prn_rewrite_name(k)) != 0) k++;
            if (k == prn_rewrite_count()) return p->rewrite;
        }
    return NULL;
}

/* The last value, or an operator on it, becomes the graph's output. */
static void add_output(nm_maker *m, int last)
{
    static const char *const ops[] = {"Relu", "Tanh", "Neg", "Sigmoid"};
    if (rg_chance(&m->k, 40)) last = NM_NODE(m, ops[rg_below(&m->k, 4)], "", last);
    m->k.g->main.outputs = rg_copy_ids(m->k.g, &last, 1);
    m->k.g->main.output_count = 1;
}

random_graph *near_miss_make(uint64_t seed, near_miss_info *info)
{
    static const int changes[] = {0, 1, 1, 1, 2, 2};
    static const int64_t opsets[] = {11, 12, 13, 13, 14, 16, 17, 17, 17, 18, 20, 21};
    random_graph *g = calloc(1, sizeof *g);
    if (!g) abort();
    g->seed = seed;
    nm_maker m = {.k = {.g = g, .graph = &g->main, .state = seed * UINT64_C(0x9e3779b97f4a7c15) + 7}};
    near_miss_info made = {0};
    const uint64_t count = pattern_count();
    const nm_pattern *pattern = pattern_at(seed % count);
    rg_below(&m.k, 1);
    g->opset = opsets[rg_below(&m.k, 12)];
    made.rewrite = pattern->rewrite;
    add_output(&m, pattern->make(&m));
    for (int i = changes[seed / count % 6]; i > 0; i--) {
        const char *what = nm_change(&m);
        if (what) made.change[made.changes++] = what;
    }
    if (info) *info = made;
    return g;
}
