/* The maker of random graphs: numbers, choosing operands, and the frame around the recipes. */
#include "tests/support/random_graph_maker.h"

#include "base/shape.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

int64_t rg_below(rg_maker *k, int64_t limit)
{
    k->state = k->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return limit > 0 ? (int64_t)((k->state >> 33) % (uint64_t)limit) : 0;
}

bool rg_chance(rg_maker *k, int percent)
{
    return rg_below(k, 100) < percent;
}

/* ---- values ---- */

const rg_value *rg_of(const rg_maker *k, int id)
{
    return &k->g->values[id];
}

int rg_rank(const rg_maker *k, int id)
{
    return rg_of(k, id)->shape.rank;
}

int64_t rg_elements(const rg_maker *k, int id)
{
    return prony_shape_numel(&rg_of(k, id)->shape);
}

void rg_show(rg_maker *k, int id)
{
    if (!PRN_GROW(k->visible, k->visible_capacity, k->visible_count + 1)) abort();
    k->visible[k->visible_count++] = id;
}

static unsigned type_bit(prony_dtype dtype)
{
    switch (dtype) {
    case PRONY_FLOAT32:
        return RG_F32 | RG_FLOATS;
    case PRONY_FLOAT64:
        return RG_FLOATS;
    case PRONY_INT64:
    case PRONY_INT32:
        return RG_WHOLE;
    case PRONY_BOOL:
        return RG_BOOLS;
    case PRONY_INT8:
    case PRONY_UINT8:
        return RG_BYTES;
    default:
        return 0;
    }
}

static bool suits(const rg_maker *k, int id, unsigned types, int low, int high)
{
    const rg_value *value = rg_of(k, id);
    return (type_bit(value->dtype) & types) && value->shape.rank >= low && value->shape.rank <= high &&
           ((types & RG_OPEN) || rg_known(value));
}

int rg_pick(rg_maker *k, unsigned types, int low, int high)
{
    int64_t window = rg_chance(k, 60) && k->visible_count > 6 ? 6 : (int64_t)k->visible_count;
    for (int attempt = 0; attempt < 40; attempt++) {
        if (attempt == 12) window = (int64_t)k->visible_count;
        int id = k->visible[(int64_t)k->visible_count - 1 - rg_below(k, window)];
        if (suits(k, id, types, low, high)) return id;
    }
    return -1;
}

int rg_pick_like(rg_maker *k, int like)
{
    const rg_value *value = rg_of(k, like);
    for (int attempt = 0; attempt < 12; attempt++) {
        int id = k->visible[rg_below(k, (int64_t)k->visible_count)];
        if (rg_of(k, id)->dtype == value->dtype && prn_shape_equal(&rg_of(k, id)->shape, &value->shape)) return id;
    }
    return like;
}

int rg_constant(rg_maker *k, prony_dtype dtype, const prony_shape *shape, double low, double high)
{
    double most = high > -low ? high : -low;
    return rg_add_value(
        k->g, (rg_value){.dtype = dtype, .shape = *shape, .constant = true, .low = low, .high = high, .most = most});
}

static int ints_of(rg_maker *k, const int64_t *ints, size_t count, int rank)
{
    int64_t *copy = prn_bump_alloc(&k->g->pool, count + 1, sizeof *copy);
    if (!copy) abort();
    if (count) memcpy(copy, ints, count * sizeof *copy);
    return rg_add_value(
        k->g, (rg_value){.dtype = PRONY_INT64, .shape = {rank, {(int64_t)count}}, .constant = true, .ints = copy});
}

int rg_ints(rg_maker *k, const int64_t *ints, size_t count)
{
    return ints_of(k, ints, count, 1);
}

int rg_int_scalar(rg_maker *k, int64_t value)
{
    int id = ints_of(k, &value, 1, 0);
    k->g->values[id].shape = (prony_shape){0};
    return id;
}

/* ---- nodes ---- */

static int add_result(rg_maker *k, rg_node *node, prony_dtype dtype, const prony_shape *shape, double most)
{
    int id = rg_add_value(k->g, (rg_value){.dtype = dtype, .shape = *shape, .most = most});
    node->out[node->out_count++] = id;
    rg_show(k, id);
    return id;
}

int rg_node1(rg_maker *k, const char *op, const int *in, size_t count, prony_dtype dtype, const prony_shape *shape,
             double most, const char *format, ...)
{
    char attributes[256];
    const prony_shape own = *shape; /* adding moves the values */
    va_list args;
    va_start(args, format);
    vsnprintf(attributes, sizeof attributes, format, args);
    va_end(args);
    return add_result(k, rg_add_node(k->g, k->graph, op, in, count, attributes), dtype, &own, most);
}

int rg_same(rg_maker *k, const char *op, const int *in, size_t count, int like, const char *format, ...)
{
    char attributes[256];
    const rg_value value = *rg_of(k, like);
    va_list args;
    va_start(args, format);
    vsnprintf(attributes, sizeof attributes, format, args);
    va_end(args);
    return add_result(k, rg_add_node(k->g, k->graph, op, in, count, attributes), value.dtype, &value.shape, value.most);
}

int rg_tame(rg_maker *k, int value)
{
    const rg_value *v = rg_of(k, value);
    if (v->most <= 16 || !(type_bit(v->dtype) & RG_FLOATS)) return value;
    int tame = rg_same(k, rg_chance(k, 50) ? "Tanh" : "Softsign", &value, 1, value, "%s", "");
    k->g->values[tame].most = 1;
    return tame;
}

bool rg_broadcast(const rg_maker *k, int a, int b, prony_shape *out)
{
    const prony_shape *x = &rg_of(k, a)->shape, *y = &rg_of(k, b)->shape;
    if (!rg_known(rg_of(k, a)) || !rg_known(rg_of(k, b))) return false;
    out->rank = x->rank > y->rank ? x->rank : y->rank;
    for (int d = 0; d < out->rank; d++) {
        int i = d - (out->rank - x->rank), j = d - (out->rank - y->rank);
        int64_t m = i < 0 ? 1 : x->dim[i], n = j < 0 ? 1 : y->dim[j];
        if (m != n && m != 1 && n != 1) return false;
        out->dim[d] = m == 1 ? n : m;
    }
    int64_t count = prony_shape_numel(out);
    return count >= 0 && count <= RG_MOST_ELEMENTS;
}

/* ---- the frame ---- */

static int total(const rg_recipe *list, unsigned kinds)
{
    int sum = 0;
    for (; list->make; list++)
        if ((list->kinds & kinds) == kinds) sum += list->weight;
    return sum;
}

void rg_make_one(rg_maker *k)
{
    static const rg_recipe *const lists[] = {rg_plain_recipes, rg_image_recipes, rg_control_recipes};
    int sum = 0;
    for (size_t l = 0; l < 3; l++) sum += total(lists[l], k->kinds);
    int64_t at = rg_below(k, sum);
    for (size_t l = 0; l < 3; l++) {
        for (const rg_recipe *r = lists[l]; r->make; r++) {
            if ((r->kinds & k->kinds) != k->kinds) continue;
            at -= r->weight;
            if (at >= 0) continue;
            r->make(k);
            return;
        }
    }
}

static prony_shape random_shape(rg_maker *k)
{
    static const int64_t channels[] = {1, 2, 3, 4, 8, 8, 16, 16, 17, 24, 32};
    prony_shape shape = {(int)rg_below(k, 6), {0}};
    if (rg_chance(k, 50)) shape.rank = 4;
    for (int d = 0; d < shape.rank; d++) shape.dim[d] = 1 + rg_below(k, 7);
    if (shape.rank == 4) shape.dim[1] = channels[rg_below(k, 11)];
    if (shape.rank && rg_chance(k, 4)) shape.dim[rg_below(k, shape.rank)] = 0;
    return shape;
}

static void add_inputs(rg_maker *k)
{
    static const prony_dtype others[] = {PRONY_FLOAT64, PRONY_INT64, PRONY_INT32, PRONY_INT8, PRONY_UINT8, PRONY_BOOL};
    random_graph *g = k->g;
    int64_t batch = 1 + rg_below(k, 3);
    size_t count = 1 + (size_t)rg_below(k, 5);
    int ids[8];
    for (size_t i = 0; i < count; i++) {
        prony_shape shape = i && rg_chance(k, 40) ? rg_of(k, ids[rg_below(k, (int64_t)i)])->shape : random_shape(k);
        bool other = i > 0 && !(k->kinds & (RG_SMOOTH | RG_BATCHED)) && rg_chance(k, 30);
        rg_value value = {
            .dtype = other ? others[rg_below(k, 6)] : PRONY_FLOAT32, .input = true, .low = -1, .high = 1, .most = 1};
        if (k->kinds & RG_BATCHED) {
            if (shape.rank < 2) shape = (prony_shape){2 + (int)rg_below(k, 3), {1, 4, 5, 6}};
            for (int d = 1; d < shape.rank; d++) shape.dim[d] += shape.dim[d] == 0;
            shape.dim[0] = batch;
        }
        if (value.dtype == PRONY_BOOL || value.dtype == PRONY_UINT8) value.low = 0;
        if (value.dtype == PRONY_INT64 || value.dtype == PRONY_INT32 || value.dtype == PRONY_INT8)
            value.low = -4, value.high = 4;
        value.shape = shape;
        ids[i] = rg_add_value(g, value);
        rg_show(k, ids[i]);
    }
    g->main.inputs = rg_copy_ids(g, ids, count);
    g->main.input_count = count;
}

static bool is_used(const rg_graph *graph, int id)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        for (size_t i = 0; i < graph->nodes[n].in_count; i++)
            if (graph->nodes[n].in[i] == id) return true;
        for (size_t b = 0; b < RG_MOST_BODIES; b++)
            if (graph->nodes[n].body[b] && is_used(graph->nodes[n].body[b], id)) return true;
    }
    return false;
}

/* Outputs: most unread values, some read ones, now and then an input. */
static void add_outputs(rg_maker *k)
{
    rg_graph *graph = &k->g->main;
    int *ids = prn_bump_alloc(&k->g->pool, 2 * k->visible_count + 1, sizeof *ids);
    size_t count = 0;
    if (!ids) abort();
    for (size_t v = 0; v < k->visible_count; v++) {
        int id = k->visible[v];
        int percent = rg_of(k, id)->input ? 3 : is_used(graph, id) ? 4 : 85;
        if (!rg_chance(k, percent)) continue;
        ids[count++] = id;
        if (rg_chance(k, 3)) ids[count++] = id;
    }
    if (!count) ids[count++] = k->visible[k->visible_count - 1];
    graph->outputs = ids;
    graph->output_count = count;
}

random_graph *random_graph_make(uint64_t seed, unsigned kinds)
{
    random_graph *g = calloc(1, sizeof *g);
    if (!g) abort();
    g->seed = seed;
    g->smooth = kinds & RG_SMOOTH;
    g->batched = kinds & RG_BATCHED;
    rg_maker k = {.g = g, .graph = &g->main, .state = seed * UINT64_C(0x9e3779b97f4a7c15) + kinds, .kinds = kinds};
    rg_below(&k, 1);
    add_inputs(&k);
    int64_t size = rg_chance(&k, 15) ? 200 : rg_chance(&k, 40) ? 40 : 12;
    if (kinds & RG_SMOOTH) size = 40;
    size_t wanted = 1 + (size_t)rg_below(&k, size);
    for (int turn = 0; turn < 400 && random_graph_nodes(g) < wanted; turn++) rg_make_one(&k);
    add_outputs(&k);
    prn_free(k.visible);
    return g;
}
