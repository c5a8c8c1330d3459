/* Recipes of operators on tensors of any rank: elementwise ones, views, joins and parts, reductions, other types. */
#include "tests/support/random_graph_maker.h"

#include "base/shape.h"

#include <string.h>

enum { SMOOTH = RG_SMOOTH, EVERYWHERE = RG_SMOOTH | RG_BATCHED };

/* The first axis that may be cut, joined or moved. */
static int first_axis(const rg_maker *k)
{
    return k->kinds & RG_BATCHED ? 1 : 0;
}

/* -1: none. */
int64_t rg_pick_axis(rg_maker *k, int id)
{
    int first = first_axis(k), rank = rg_rank(k, id);
    return rank > first ? first + rg_below(k, rank - first) : -1;
}

/* ---- elementwise ---- */

static int unary(rg_maker *k, int x)
{
    static const struct {
        const char *op, *attributes;
        double most; /* 0: as the input's */
    } smooth[] = {{"Relu", "", 0},      {"Neg", "", 0},      {"Abs", "", 0},
                  {"Sigmoid", "", 1},   {"Tanh", "", 1},     {"LeakyRelu", "alpha=0.2", 0},
                  {"Elu", "", 0},       {"Softsign", "", 1}, {"HardSigmoid", "", 1},
                  {"HardSwish", "", 0}, {"Erf", "", 1},      {"Sin", "", 1},
                  {"Cos", "", 1},       {"Identity", "", 0}, {"Dropout", "", 0},
                  {"Identity", "", 0},  {"Selu", "", 0},     {"Atan", "", 2}};
    static const char *const steps[] = {"Floor", "Ceil", "Round", "Sign"};
    x = rg_tame(k, x);
    const rg_value value = *rg_of(k, x);
    if (value.dtype == PRONY_BOOL) return rg_same(k, rg_chance(k, 70) ? "Not" : "Identity", &x, 1, x, "%s", "");
    if (value.dtype == PRONY_INT64 || value.dtype == PRONY_INT32 || value.dtype == PRONY_INT8)
        return rg_same(k, rg_chance(k, 40) ? "Neg" : rg_chance(k, 50) ? "Abs" : "Identity", &x, 1, x, "%s", "");
    if (value.dtype != PRONY_FLOAT32 && value.dtype != PRONY_FLOAT64) return rg_same(k, "Identity", &x, 1, x, "%s", "");
    if (!(k->kinds & RG_SMOOTH) && rg_chance(k, 10)) return rg_same(k, steps[rg_below(k, 4)], &x, 1, x, "%s", "");
    if (value.dtype == PRONY_FLOAT32 && rg_chance(k, 10)) {
        prony_shape scalar = {0};
        int in[3] = {x, rg_constant(k, value.dtype, &scalar, -0.9, -0.2), rg_constant(k, value.dtype, &scalar, 0.3, 6)};
        return rg_same(k, "Clip", in, rg_chance(k, 80) ? 3 : 2, x, "%s", "");
    }
    size_t which = (size_t)rg_below(k, sizeof smooth / sizeof *smooth);
    int y = rg_same(k, smooth[which].op, &x, 1, x, "%s", smooth[which].attributes);
    if (smooth[which].most > 0) k->g->values[y].most = smooth[which].most;
    return y;
}

/* A second operand that broadcasts to `x` without changing its shape. */
int rg_partner(rg_maker *k, int x)
{
    const rg_value value = *rg_of(k, x);
    if (rg_chance(k, 45)) return rg_tame(k, rg_pick_like(k, x));
    if (!(k->kinds & RG_BATCHED) && rg_chance(k, 50)) {
        for (int attempt = 0; attempt < 10; attempt++) {
            prony_shape shape;
            int other = k->visible[rg_below(k, (int64_t)k->visible_count)];
            if (rg_of(k, other)->dtype == value.dtype && rg_broadcast(k, x, other, &shape) &&
                prn_shape_equal(&shape, &value.shape))
                return rg_tame(k, other);
        }
    }
    prony_shape shape = value.shape;
    int keep = (int)rg_below(k, shape.rank + 1);
    if (k->kinds & RG_BATCHED && keep == shape.rank && keep) keep--;
    memmove(shape.dim, shape.dim + (shape.rank - keep), (size_t)keep * sizeof *shape.dim);
    shape.rank = keep;
    for (int d = 0; d < keep; d++)
        if (rg_chance(k, 35)) shape.dim[d] = 1;
    return rg_constant(k, value.dtype, &shape, value.dtype == PRONY_BOOL || value.dtype == PRONY_UINT8 ? 0 : -1, 1);
}

static int binary(rg_maker *k, int x)
{
    static const char *const numbers[] = {"Add", "Add", "Mul", "Sub", "Max", "Min"};
    static const char *const logic[] = {"And", "Or", "Xor"};
    x = rg_tame(k, x);
    prony_dtype dtype = rg_of(k, x)->dtype;
    int y = rg_partner(k, x), in[2] = {x, y};
    if (rg_chance(k, 40)) in[0] = y, in[1] = x;
    if (dtype == PRONY_BOOL) return rg_same(k, logic[rg_below(k, 3)], in, 2, x, "%s", "");
    if (dtype == PRONY_FLOAT32 && rg_chance(k, 8) && in[0] == x && rg_rank(k, y) <= rg_rank(k, x))
        return rg_same(k, "PRelu", in, 2, x, "%s", "");
    const char *op = numbers[rg_below(k, 6)];
    if ((dtype == PRONY_INT8 || dtype == PRONY_UINT8) && op[0] == 'M' && op[1] == 'u') op = "Max";
    double a = rg_of(k, x)->most, b = rg_of(k, y)->most;
    int z = rg_same(k, op, in, 2, x, "%s", "");
    k->g->values[z].most = strcmp(op, "Mul") == 0 ? a * b : a + b;
    return z;
}

static void make_unary(rg_maker *k)
{
    int x = rg_pick(k, RG_ALL | RG_OPEN, 0, 6);
    if (x >= 0) unary(k, x);
}

static void make_binary(rg_maker *k)
{
    int x = rg_pick(k, RG_ALL, 0, 6);
    if (x >= 0) binary(k, x);
}

/* Both operands broadcast, so the result is larger than either. */
static void make_outer(rg_maker *k)
{
    prony_shape shape;
    for (int attempt = 0; attempt < 20; attempt++) {
        int a = rg_pick(k, RG_NUMBERS, 0, 5), b = rg_pick(k, RG_NUMBERS, 0, 5), in[2];
        if (a < 0 || b < 0 || rg_of(k, a)->dtype != rg_of(k, b)->dtype || !rg_broadcast(k, a, b, &shape)) continue;
        in[0] = rg_tame(k, a);
        in[1] = rg_tame(k, b);
        rg_node1(k, rg_chance(k, 50) ? "Add" : "Sub", in, 2, rg_of(k, a)->dtype, &shape, 32, "%s", "");
        return;
    }
}

/* Several reads of a new value without other readers: at once and far behind, or anywhere. */
static void make_wide(rg_maker *k)
{
    static const char *const ops[] = {"Sum", "Mean", "Max", "Min"};
    static const int64_t most[] = {4, 8, 34, 40, 66, 70};
    int x = rg_pick(k, RG_F32, 0, 5), in[RG_MOST_OPERANDS];
    if (x < 0) return;
    x = rg_tame(k, x);
    bool fresh = rg_chance(k, 50);
    if (fresh) {
        x = rg_same(k, "Neg", &x, 1, x, "%s", "");
        k->visible_count--;
    }
    int64_t limit = most[rg_below(k, 6)], repeated = rg_chance(k, 50) ? 30 : 0;
    size_t count = 1 + (size_t)(rg_chance(k, 50) ? limit - 1 - rg_below(k, 3) : rg_below(k, limit));
    for (size_t i = 0; i < count; i++) in[i] = rg_chance(k, (int)repeated) ? x : rg_partner(k, x);
    in[repeated ? rg_below(k, (int64_t)count) : rg_below(k, count > 1 ? 2 : 1)] = x;
    if (rg_chance(k, 70)) in[count - 1] = x;
    size_t op = (size_t)rg_below(k, 4);
    int y = rg_same(k, ops[op], in, count, x, "%s", "");
    k->g->values[y].most = op == 0 ? 16.0 * (double)count : 16;
}

static void make_chain(rg_maker *k)
{
    int x = rg_pick(k, RG_ALL, 0, 5);
    for (int64_t turns = x < 0 ? 0 : 2 + rg_below(k, 6); turns > 0; turns--)
        x = rg_chance(k, 60) ? unary(k, x) : binary(k, x);
}

/* ---- views ---- */

static int reshape(rg_maker *k, int x, const prony_shape *to)
{
    const rg_value value = *rg_of(k, x);
    int64_t dims[PRONY_MAX_RANK];
    if (k->kinds & RG_BATCHED && prony_shape_numel(to) == 0) return x; /* 0 means as many as the input has */
    memcpy(dims, to->dim, sizeof dims);
    if (k->kinds & RG_BATCHED && to->rank) dims[0] = 0;
    int in[2] = {x, rg_ints(k, dims, (size_t)to->rank)};
    bool empty = prony_shape_numel(&value.shape) == 0;
    return rg_node1(k, "Reshape", in, 2, value.dtype, to, value.most, "%s",
                    empty && !(k->kinds & RG_BATCHED) ? "allowzero=1" : "");
}

/* Other dims with as many elements. */
static prony_shape regroup(rg_maker *k, const prony_shape *from)
{
    prony_shape to = *from;
    int first = first_axis(k);
    for (int64_t turns = 1 + rg_below(k, 3); turns > 0; turns--) {
        if (to.rank > first + 1 && rg_chance(k, 50)) { /* merge two neighbours */
            int d = first + (int)rg_below(k, to.rank - first - 1);
            to.dim[d] *= to.dim[d + 1];
            memmove(&to.dim[d + 1], &to.dim[d + 2], (size_t)(to.rank - d - 2) * sizeof *to.dim);
            to.rank--;
        } else if (to.rank < 6 && to.rank > first) { /* split one */
            int d = first + (int)rg_below(k, to.rank - first);
            int64_t factor = to.dim[d] % 4 == 0 && to.dim[d] ? 4 : to.dim[d] % 2 == 0 && to.dim[d] ? 2 : 1;
            memmove(&to.dim[d + 1], &to.dim[d], (size_t)(to.rank - d) * sizeof *to.dim);
            to.dim[d] = factor;
            to.dim[d + 1] /= factor;
            to.rank++;
        }
    }
    return to;
}

static void make_view(rg_maker *k)
{
    int x = rg_pick(k, RG_ALL, 0, 5);
    if (x < 0) return;
    const rg_value value = *rg_of(k, x);
    prony_shape to = value.shape;
    int64_t axis = rg_pick_axis(k, x);
    switch (rg_below(k, 4)) {
    case 0:
        if (value.shape.rank < 1 || (k->kinds & RG_BATCHED)) break;
        axis = rg_below(k, value.shape.rank + 1);
        to = (prony_shape){
            2,
            {prn_shape_count(&value.shape, 0, (int)axis), prn_shape_count(&value.shape, (int)axis, value.shape.rank)}};
        rg_node1(k, "Flatten", &x, 1, value.dtype, &to, value.most, "axis=%d", (int)axis);
        return;
    case 1:
        if (axis < 0) break;
        memmove(&to.dim[axis + 1], &to.dim[axis], (size_t)(to.rank - axis) * sizeof *to.dim);
        to.dim[axis] = 1;
        to.rank++;
        rg_node1(k, "Unsqueeze", (int[]){x, rg_ints(k, &axis, 1)}, 2, value.dtype, &to, value.most, "%s", "");
        return;
    case 2:
        if (axis < 0 || to.dim[axis] != 1) break;
        memmove(&to.dim[axis], &to.dim[axis + 1], (size_t)(to.rank - axis - 1) * sizeof *to.dim);
        to.rank--;
        rg_node1(k, "Squeeze", (int[]){x, rg_ints(k, &axis, 1)}, 2, value.dtype, &to, value.most, "%s", "");
        return;
    default:
        break;
    }
    to = rg_chance(k, 15) ? value.shape : regroup(k, &value.shape);
    reshape(k, x, &to);
}

static int transpose(rg_maker *k, int x, int64_t *perm)
{
    const rg_value value = *rg_of(k, x);
    prony_shape to = value.shape;
    char text[128] = "";
    for (int d = 0; d < to.rank; d++) {
        to.dim[d] = value.shape.dim[perm[d]];
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", d ? "," : "", (long long)perm[d]);
    }
    return rg_node1(k, "Transpose", &x, 1, value.dtype, &to, value.most, "perm=[%s]", text);
}

static void shuffle(rg_maker *k, int64_t *perm, int rank)
{
    for (int d = 0; d < rank; d++) perm[d] = d;
    for (int d = rank - 1; d > first_axis(k); d--) {
        int with = first_axis(k) + (int)rg_below(k, d - first_axis(k) + 1);
        int64_t held = perm[d];
        perm[d] = perm[with];
        perm[with] = held;
    }
}

static void make_transpose(rg_maker *k)
{
    int64_t perm[PRONY_MAX_RANK], back[PRONY_MAX_RANK];
    int x = rg_pick(k, RG_ALL, 1, 5);
    if (x < 0) return;
    shuffle(k, perm, rg_rank(k, x));
    for (int d = 0; d < rg_rank(k, x); d++) back[perm[d]] = d;
    x = transpose(k, x, perm);
    if (rg_chance(k, 40)) transpose(k, unary(k, x), back);
}

/* ---- joins and parts ---- */

static int join(rg_maker *k, const int *in, size_t count, int64_t axis)
{
    const rg_value first = *rg_of(k, in[0]);
    prony_shape to = first.shape;
    double most = first.most;
    for (size_t i = 1; i < count; i++) {
        to.dim[axis] += rg_of(k, in[i])->shape.dim[axis];
        if (rg_of(k, in[i])->most > most) most = rg_of(k, in[i])->most;
    }
    int given = (int)axis - (rg_chance(k, 20) ? to.rank : 0);
    return rg_node1(k, "Concat", in, count, first.dtype, &to, most, "axis=%d", given);
}

/* true: the shape differs from `x` along the axis at most. */
static bool fits_along(const rg_maker *k, int x, int other, int64_t axis)
{
    const rg_value *a = rg_of(k, x), *b = rg_of(k, other);
    if (a->dtype != b->dtype || a->shape.rank != b->shape.rank || !rg_known(b)) return false;
    for (int d = 0; d < a->shape.rank; d++)
        if (d != axis && a->shape.dim[d] != b->shape.dim[d]) return false;
    return true;
}

static void make_join(rg_maker *k)
{
    static const int64_t most[] = {2, 3, 3, 5, 40, 70};
    int x = rg_pick(k, RG_ALL, 1, 5), in[RG_MOST_OPERANDS];
    int64_t axis = x < 0 ? -1 : rg_chance(k, 30) ? first_axis(k) : rg_pick_axis(k, x);
    if (axis < 0 || axis >= rg_rank(k, x)) return;
    size_t wanted = 1 + (size_t)rg_below(k, most[rg_below(k, 6)]), count = 0;
    int64_t elements = 0;
    while (count < wanted && elements < RG_MOST_ELEMENTS) {
        int next = x;
        for (int attempt = 0; attempt < 6; attempt++) {
            int other = k->visible[rg_below(k, (int64_t)k->visible_count)];
            if (fits_along(k, x, other, axis)) next = other;
        }
        if (!(k->kinds & RG_BATCHED) && rg_chance(k, 8))
            next = rg_constant(k, rg_of(k, x)->dtype, &rg_of(k, x)->shape, 0, 1);
        in[count++] = next;
        elements += rg_elements(k, next);
    }
    if (count) join(k, in, count, axis);
}

/* Halves (or uneven parts) along an axis; returns how many. */
static size_t split(rg_maker *k, int x, int64_t axis, int out[RG_MOST_RESULTS])
{
    const rg_value value = *rg_of(k, x);
    int64_t extent = value.shape.dim[axis], sizes[RG_MOST_RESULTS], left = extent;
    size_t count = 2 + (size_t)rg_below(k, RG_MOST_RESULTS - 1);
    for (size_t i = 0; i < count; i++) {
        sizes[i] = i + 1 == count ? left : rg_below(k, left / (int64_t)(count - i) * 2 + 1);
        if (sizes[i] > left) sizes[i] = left;
        left -= sizes[i];
    }
    bool even = extent % (int64_t)count == 0 && rg_chance(k, 50);
    for (size_t i = 0; even && i < count; i++) sizes[i] = extent / (int64_t)count;
    char attributes[32];
    snprintf(attributes, sizeof attributes, "axis=%d", (int)axis);
    int in[2] = {x, even ? -1 : rg_ints(k, sizes, count)};
    rg_node *node = rg_add_node(k->g, k->graph, "Split", in, even ? 1 : 2, attributes);
    for (size_t i = 0; i < count; i++) {
        prony_shape shape = value.shape;
        shape.dim[axis] = sizes[i];
        out[i] = node->out[i] =
            rg_add_value(k->g, (rg_value){.dtype = value.dtype, .shape = shape, .most = value.most});
        rg_show(k, out[i]);
    }
    node->out_count = count;
    return count;
}

static void make_split(rg_maker *k)
{
    int x = rg_pick(k, RG_ALL, 1, 5), parts[RG_MOST_RESULTS];
    int64_t axis = x < 0 ? -1 : rg_chance(k, 40) ? first_axis(k) : rg_pick_axis(k, x);
    if (axis < 0 || axis >= rg_rank(k, x)) return;
    size_t count = split(k, x, axis, parts);
    for (size_t i = 0; i < count; i++)
        if (rg_chance(k, 40)) parts[i] = rg_chance(k, 50) ? unary(k, parts[i]) : binary(k, parts[i]);
    if (rg_chance(k, 50)) join(k, parts, count, axis);
}

/* A dense block: every part reads the join of all before it. */
static void make_dense(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 1, 5);
    int64_t axis = x < 0 ? -1 : rg_pick_axis(k, x);
    if (axis < 0) return;
    for (int64_t turns = 2 + rg_below(k, 3); turns > 0 && rg_elements(k, x) < RG_MOST_ELEMENTS / 2; turns--) {
        int y = unary(k, x);
        if (rg_chance(k, 50)) y = binary(k, y);
        x = join(k, rg_chance(k, 70) ? (int[]){x, y} : (int[]){y, x}, 2, axis);
    }
}

static int slice(rg_maker *k, int x, int64_t axis, int64_t from, int64_t to, int64_t step)
{
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape;
    shape.dim[axis] = to > from ? (to - from - 1) / step + 1 : 0;
    int in[5] = {x, rg_ints(k, &from, 1), rg_ints(k, &to, 1), rg_ints(k, &axis, 1), rg_ints(k, &step, 1)};
    return rg_node1(k, "Slice", in, step == 1 ? 4 : 5, value.dtype, &shape, value.most, "%s", "");
}

static void make_slice(rg_maker *k)
{
    int x = rg_pick(k, RG_ALL, 1, 5);
    int64_t axis = x < 0 ? -1 : rg_pick_axis(k, x);
    if (axis < 0) return;
    int64_t extent = rg_of(k, x)->shape.dim[axis], from = rg_below(k, extent + 1),
            to = from + rg_below(k, extent - from + 1);
    if (rg_chance(k, 40)) from = 0;
    slice(k, x, axis, from, to, rg_chance(k, 75) ? 1 : 2);
}

static void make_pad(rg_maker *k)
{
    int x = rg_pick(k, RG_FLOATS, 1, 4);
    if (x < 0 || rg_elements(k, x) > RG_MOST_ELEMENTS / 8) return;
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape;
    int64_t pads[2 * PRONY_MAX_RANK] = {0};
    for (int d = first_axis(k); d < shape.rank; d++) {
        pads[d] = rg_below(k, 3);
        pads[shape.rank + d] = rg_below(k, 3);
        shape.dim[d] += pads[d] + pads[shape.rank + d];
    }
    rg_node1(k, "Pad", (int[]){x, rg_ints(k, pads, 2 * (size_t)shape.rank)}, 2, value.dtype, &shape, value.most, "%s",
             "");
}

static void make_expand(rg_maker *k)
{
    int x = rg_pick(k, RG_ALL, 1, 4);
    if (x < 0 || rg_elements(k, x) > RG_MOST_ELEMENTS / 16) return;
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape;
    int64_t repeats[PRONY_MAX_RANK];
    bool tile = rg_chance(k, 50);
    for (int d = 0; d < shape.rank; d++) {
        repeats[d] = 1 + rg_below(k, 3);
        if (!tile && shape.dim[d] != 1) repeats[d] = 1;
        shape.dim[d] *= repeats[d];
    }
    int in[2] = {x, rg_ints(k, tile ? repeats : shape.dim, (size_t)shape.rank)};
    rg_node1(k, tile ? "Tile" : "Expand", in, 2, value.dtype, &shape, value.most, "%s", "");
}

static void make_gather(rg_maker *k)
{
    int x = rg_pick(k, RG_ALL, 1, 4);
    int64_t axis = x < 0 ? -1 : rg_pick_axis(k, x), indices[8];
    if (axis < 0 || rg_of(k, x)->shape.dim[axis] == 0) return;
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape;
    shape.dim[axis] = 1 + rg_below(k, 7);
    for (int64_t i = 0; i < shape.dim[axis]; i++) indices[i] = rg_below(k, value.shape.dim[axis]);
    int in[2] = {x, rg_ints(k, indices, (size_t)shape.dim[axis])};
    if (rg_elements(k, x) < RG_MOST_ELEMENTS / 8)
        rg_node1(k, "Gather", in, 2, value.dtype, &shape, value.most, "axis=%d", (int)axis);
}

/* Hides values made since `mark`: they get no further readers, so they are released early. */
static void hide(rg_maker *k, size_t mark)
{
    k->visible_count = mark;
}

/* A view or part of `x`, perhaps of the same bytes, that broadcasts to it. */
static int derive(rg_maker *k, int x)
{
    int64_t axis = rg_pick_axis(k, x), extent = axis < 0 ? 0 : rg_of(k, x)->shape.dim[axis], from;
    if (rg_chance(k, 25) || extent == 0) return x;
    switch (rg_below(k, 4)) {
    case 0:
        return rg_same(k, "Identity", &x, 1, x, "%s", "");
    case 1:
        return slice(k, x, axis, 0, 1, 1);
    case 2:
        from = rg_below(k, extent);
        return slice(k, x, axis, from, from + 1, 1);
    default:
        return slice(k, x, axis, 0, extent, 1);
    }
}

/* Several readers of one short-lived buffer in one node. */
static void make_overlap(rg_maker *k)
{
    static const char *const ops[] = {"Add", "Sub", "Max", "Sum", "Min"};
    int x = rg_pick(k, RG_FLOATS, 1, 5);
    if (x < 0) return;
    size_t mark = k->visible_count;
    x = unary(k, x);
    int in[4] = {derive(k, x), derive(k, x), derive(k, x), rg_partner(k, x)};
    size_t op = (size_t)rg_below(k, 5), count = op == 3 || op == 2 ? 2 + (size_t)rg_below(k, 3) : 2;
    if (rg_chance(k, 40)) in[1] = in[3];
    if (rg_chance(k, 70)) in[rg_below(k, 2)] = rg_chance(k, 50) ? x : in[3];
    prony_shape shape = rg_of(k, in[0])->shape, both;
    int large = in[0];
    for (size_t i = 1; i < count; i++) {
        if (!rg_broadcast(k, large, in[i], &both)) return;
        if (prn_shape_equal(&both, &rg_of(k, in[i])->shape))
            large = in[i];
        else if (!prn_shape_equal(&both, &rg_of(k, large)->shape))
            return;
        shape = both;
    }
    hide(k, mark);
    rg_node1(k, ops[op], in, count, rg_of(k, large)->dtype, &shape, 64, "%s", "");
}

/* ---- for bodies ---- */

int rg_step(rg_maker *k, int x)
{
    int parts[RG_MOST_RESULTS];
    int64_t perm[PRONY_MAX_RANK], back[PRONY_MAX_RANK], axis = rg_pick_axis(k, x);
    prony_shape shape = rg_of(k, x)->shape, other;
    switch (axis < 0 ? 0 : rg_below(k, 9)) {
    case 0:
    case 1:
        return unary(k, x);
    case 2:
    case 3:
        return binary(k, x);
    case 4: {
        size_t count = split(k, x, axis, parts);
        parts[0] = unary(k, parts[0]);
        return join(k, parts, count, axis);
    }
    case 5:
        other = regroup(k, &shape);
        return reshape(k, unary(k, reshape(k, x, &other)), &shape);
    case 6:
        shuffle(k, perm, shape.rank);
        for (int d = 0; d < shape.rank; d++) back[perm[d]] = d;
        return transpose(k, unary(k, transpose(k, x, perm)), back);
    case 7:
        return slice(k, join(k, (int[]){x, unary(k, x)}, 2, axis), axis, 0, shape.dim[axis], 1);
    default:
        x = rg_tame(k, x);
        return rg_same(k, "Identity", &x, 1, x, "%s", "");
    }
}

const rg_recipe rg_plain_recipes[] = {{make_unary, 14, EVERYWHERE},
                                      {make_binary, 14, EVERYWHERE},
                                      {make_outer, 3, SMOOTH},
                                      {make_overlap, 8, EVERYWHERE},
                                      {make_wide, 6, EVERYWHERE},
                                      {make_chain, 4, EVERYWHERE},
                                      {make_view, 12, EVERYWHERE},
                                      {make_transpose, 5, EVERYWHERE},
                                      {make_join, 10, EVERYWHERE},
                                      {make_split, 8, EVERYWHERE},
                                      {make_dense, 3, EVERYWHERE},
                                      {make_slice, 8, EVERYWHERE},
                                      {make_pad, 2, EVERYWHERE},
                                      {make_expand, 2, SMOOTH},
                                      {make_gather, 3, EVERYWHERE},
                                      {rg_make_reduce, 4, EVERYWHERE},
                                      {rg_make_softmax, 3, EVERYWHERE},
                                      {rg_make_layer_norm, 3, EVERYWHERE},
                                      {rg_make_cast, 4, 0},
                                      {rg_make_compare, 3, 0},
                                      {rg_make_where, 4, 0},
                                      {rg_make_quantized, 3, 0},
                                      {rg_make_topk, 2, 0},
                                      {rg_make_shape, 1, SMOOTH},
                                      {NULL, 0, 0}};
