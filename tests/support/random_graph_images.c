/* Recipes of operators with layouts (convolutions, pools), of products, and of the patterns that rewrites look for. */
#include "tests/support/random_graph_maker.h"

#include "base/shape.h"

#include <math.h>
#include <string.h>

enum { EVERYWHERE = RG_SMOOTH | RG_BATCHED };

static int weights(rg_maker *k, const prony_shape *shape, double terms)
{
    double bound = 1.5 / sqrt(terms < 1 ? 1 : terms);
    return rg_constant(k, PRONY_FLOAT32, shape, -bound, bound);
}

static int pick_image(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 4, 4);
    if (x < 0) x = rg_pick(k, RG_F32, 3, 5);
    if (x < 0 || rg_elements(k, x) == 0 || rg_of(k, x)->shape.dim[1] > 64) return -1;
    return rg_tame(k, x);
}

/* "1,2,…" of as many entries. */
static void list(char *text, size_t size, const int64_t *entries, int count)
{
    text[0] = '\0';
    for (int d = 0; d < count; d++)
        snprintf(text + strlen(text), size - strlen(text), "%s%lld", d ? "," : "", (long long)entries[d]);
}

/* ---- convolutions ---- */

/* `to` output channels, or -1: some number. With `same` the window leaves the extents. */
static int conv(rg_maker *k, int x, int64_t to, bool same)
{
    static const int64_t channels[] = {1, 2, 4, 8, 8, 16, 16, 24, 32, 5};
    const rg_value value = *rg_of(k, x);
    int64_t from = value.shape.dim[1], group = 1, window[3], stride[3], pads[6];
    prony_shape shape = value.shape, w = {value.shape.rank, {0}};
    int spatial = shape.rank - 2;
    if (to < 0) to = channels[rg_below(k, 10)];
    if (rg_chance(k, 20) && to == from)
        group = from;
    else if (rg_chance(k, 15) && from % 2 == 0 && to % 2 == 0)
        group = 2;
    bool point = rg_chance(k, 35);
    double terms = (double)(from / group);
    for (int d = 0; d < spatial; d++) {
        window[d] = point ? 1 : 1 + 2 * rg_below(k, 2);
        stride[d] = same || rg_chance(k, 75) ? 1 : 2;
        pads[d] = pads[spatial + d] = window[d] / 2;
        if (!same && rg_chance(k, 20)) pads[d] += rg_below(k, 2);
        w.dim[2 + d] = window[d];
        shape.dim[2 + d] = (shape.dim[2 + d] + pads[d] + pads[spatial + d] - window[d]) / stride[d] + 1;
        terms *= (double)window[d];
    }
    shape.dim[1] = w.dim[0] = to;
    w.dim[1] = from / group;
    char strides[64], padding[64];
    list(strides, sizeof strides, stride, spatial);
    list(padding, sizeof padding, pads, 2 * spatial);
    prony_shape bias = {1, {to}};
    int in[3] = {x, weights(k, &w, terms), rg_constant(k, PRONY_FLOAT32, &bias, -0.5, 0.5)};
    return rg_node1(k, "Conv", in, rg_chance(k, 70) ? 3 : 2, PRONY_FLOAT32, &shape, 16,
                    "group=%lld strides=[%s] pads=[%s]", (long long)group, strides, padding);
}

static int activation(rg_maker *k, int x)
{
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu"};
    size_t which = (size_t)rg_below(k, 8);
    if (which == 6) {
        prony_shape scalar = {0};
        int in[3] = {x, rg_constant(k, PRONY_FLOAT32, &scalar, 0, 0), rg_constant(k, PRONY_FLOAT32, &scalar, 6, 6)};
        return rg_same(k, "Clip", in, 3, x, "%s", "");
    }
    if (which == 7) { /* SiLU, written out */
        int s = rg_same(k, "Sigmoid", &x, 1, x, "%s", "");
        return rg_same(k, "Mul", (int[]){x, s}, 2, x, "%s", "");
    }
    return rg_same(k, ops[which], &x, 1, x, "%s", "");
}

static int batch_norm(rg_maker *k, int x)
{
    prony_shape c = {1, {rg_of(k, x)->shape.dim[1]}};
    int in[5] = {x};
    for (int i = 1; i < 5; i++)
        in[i] = rg_constant(k, PRONY_FLOAT32, &c, i == 1 || i == 4 ? 0.5 : -0.5, i == 1 || i == 4 ? 1.5 : 0.5);
    return rg_same(k, "BatchNormalization", in, 5, x, "%s", "epsilon=0.001");
}

static void make_conv(rg_maker *k)
{
    int x = pick_image(k);
    if (x < 0) return;
    x = conv(k, x, -1, rg_chance(k, 50));
    if (rg_elements(k, x) == 0) return;
    if (rg_chance(k, 30)) x = batch_norm(k, x);
    if (rg_chance(k, 50)) activation(k, x);
}

/* A block with a shortcut, or several sums after one convolution, some of whose operands go on living. */
static void make_residual(rg_maker *k)
{
    int x = pick_image(k);
    if (x < 0) return;
    int64_t channels = rg_of(k, x)->shape.dim[1];
    int y = conv(k, x, rg_chance(k, 50) ? -1 : channels, true);
    if (rg_chance(k, 70)) y = activation(k, y);
    y = conv(k, y, channels, true);
    if (rg_chance(k, 20)) y = batch_norm(k, y);
    for (int64_t sums = 1 + rg_below(k, 3); sums > 0; sums--) {
        int other = rg_chance(k, 40) ? rg_pick_like(k, x) : x;
        if (rg_chance(k, 30)) other = activation(k, rg_tame(k, other));
        if (rg_of(k, other)->most > 1e3) other = x;
        y = rg_same(k, "Add", rg_chance(k, 50) ? (int[]){y, other} : (int[]){other, y}, 2, y, "%s", "");
        k->g->values[y].most = 64;
    }
    if (rg_chance(k, 60)) activation(k, y);
}

/* Squeeze and excitation: a scale per channel from the mean of the channel. */
static void make_excite(rg_maker *k)
{
    int x = pick_image(k);
    if (x < 0 || rg_rank(k, x) != 4) return;
    const rg_value value = *rg_of(k, x);
    prony_shape one = {4, {value.shape.dim[0], value.shape.dim[1], 1, 1}};
    int s = rg_node1(k, "GlobalAveragePool", &x, 1, PRONY_FLOAT32, &one, value.most, "%s", "");
    s = conv(k, s, value.shape.dim[1], true);
    s = rg_same(k, "Sigmoid", &s, 1, s, "%s", "");
    rg_same(k, "Mul", (int[]){x, s}, 2, x, "%s", "");
}

/* A map of one channel that is broadcast over others of the same image. */
static void make_map(rg_maker *k)
{
    static const int64_t channels[] = {8, 16, 16, 17, 32};
    int x = pick_image(k);
    if (x < 0) return;
    int map = conv(k, x, 1, true);
    if (rg_chance(k, 40)) map = activation(k, map);
    k->visible_count--;                               /* dies with the sum, mostly */
    const int64_t filters = channels[rg_below(k, 5)]; /* drawn first: compilers evaluate arguments in either order */
    int wide = conv(k, rg_chance(k, 50) ? map : x, filters, true), in[3] = {map, wide, -1};
    size_t count = 2;
    if (rg_chance(k, 50)) {
        prony_shape row = {1, {rg_of(k, x)->shape.dim[rg_rank(k, x) - 1]}};
        in[2] = in[1];
        in[1] = rg_constant(k, PRONY_FLOAT32, &row, -1, 1);
        count = 3;
    } else if (rg_chance(k, 40)) {
        in[0] = wide, in[1] = map;
    }
    int y = rg_same(k, count == 3 ? "Sum" : rg_chance(k, 50) ? "Mul" : "Add", in, count, wide, "%s", "");
    k->g->values[y].most = 64;
    if (rg_chance(k, 70)) conv(k, rg_tame(k, y), -1, true);
}

/* Branches of one value, joined over channels; some branches are joined again. */
static void make_inception(rg_maker *k)
{
    int x = pick_image(k), branch[4];
    if (x < 0) return;
    prony_shape shape = rg_of(k, x)->shape;
    size_t count = 2 + (size_t)rg_below(k, 3);
    shape.dim[1] = 0;
    for (size_t i = 0; i < count; i++) {
        branch[i] = conv(k, x, rg_chance(k, 70) ? 8 * (1 + rg_below(k, 3)) : -1, true);
        if (rg_chance(k, 60)) branch[i] = activation(k, branch[i]);
        if (rg_chance(k, 10)) branch[i] = x;
        shape.dim[1] += rg_of(k, branch[i])->shape.dim[1];
    }
    x = rg_node1(k, "Concat", branch, count, PRONY_FLOAT32, &shape, 32, "axis=1");
    if (rg_chance(k, 60)) conv(k, x, -1, true);
}

static void make_pool(rg_maker *k)
{
    int x = pick_image(k);
    if (x < 0 || rg_rank(k, x) != 4) return;
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape;
    int64_t window = 2 + rg_below(k, 2), stride = 1 + rg_below(k, 2);
    for (int d = 2; d < 4; d++) {
        if (shape.dim[d] + 2 < window) return;
        shape.dim[d] = (shape.dim[d] + 2 - window) / stride + 1;
    }
    rg_node1(k, rg_chance(k, 50) ? "MaxPool" : "AveragePool", &x, 1, PRONY_FLOAT32, &shape, value.most,
             "kernel_shape=[%d,%d] strides=[%d,%d] pads=[1,1,1,1]", (int)window, (int)window, (int)stride, (int)stride);
}

static void make_resize(rg_maker *k)
{
    int x = pick_image(k);
    if (x < 0 || rg_rank(k, x) != 4 || rg_elements(k, x) > RG_MOST_ELEMENTS / 4) return;
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape;
    shape.dim[2] *= 2;
    shape.dim[3] *= 2;
    bool transposed = rg_chance(k, 40);
    if (transposed) {
        prony_shape w = {4, {value.shape.dim[1], value.shape.dim[1], 2, 2}};
        int in[2] = {x, weights(k, &w, (double)value.shape.dim[1])};
        rg_node1(k, "ConvTranspose", in, 2, PRONY_FLOAT32, &shape, 16, "strides=[2,2]");
    } else if (k->kinds & RG_BATCHED) {
        return;
    } else {
        int in[4] = {x, -1, -1, rg_ints(k, shape.dim, 4)};
        const char *position = rg_chance(k, 50) ? "" : " coordinate_transformation_mode='asymmetric'"; /* drawn first */
        rg_node1(k, "Resize", in, 4, PRONY_FLOAT32, &shape, value.most, "mode='%s'%s",
                 rg_chance(k, 50) ? "nearest" : "linear", position);
    }
}

static void make_instance_norm(rg_maker *k)
{
    int x = pick_image(k);
    if (x < 0) return;
    prony_shape c = {1, {rg_of(k, x)->shape.dim[1]}};
    int in[3] = {x, rg_constant(k, PRONY_FLOAT32, &c, 0.5, 1.5), rg_constant(k, PRONY_FLOAT32, &c, -1, 1)};
    int y = rg_chance(k, 50) ? rg_same(k, "InstanceNormalization", in, 3, x, "%s", "epsilon=0.1") : batch_norm(k, x);
    k->g->values[y].most = 16;
}

static void make_depth(rg_maker *k)
{
    int x = pick_image(k);
    if (x < 0 || rg_rank(k, x) != 4) return;
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape;
    if (shape.dim[1] % 4 == 0) {
        shape.dim[1] /= 4, shape.dim[2] *= 2, shape.dim[3] *= 2;
        rg_node1(k, "DepthToSpace", &x, 1, PRONY_FLOAT32, &shape, value.most, "blocksize=2 mode='%s'",
                 rg_chance(k, 50) ? "CRD" : "DCR");
    } else if (shape.dim[2] % 2 == 0 && shape.dim[3] % 2 == 0) {
        shape.dim[1] *= 4, shape.dim[2] /= 2, shape.dim[3] /= 2;
        rg_node1(k, "SpaceToDepth", &x, 1, PRONY_FLOAT32, &shape, value.most, "blocksize=2");
    }
}

/* ---- products ---- */

static void make_matmul(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 2, 4);
    if (x < 0) return;
    x = rg_tame(k, x);
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape, w = {2, {shape.dim[shape.rank - 1], 1 + rg_below(k, 20)}};
    shape.dim[shape.rank - 1] = w.dim[1];
    int in[2] = {x, weights(k, &w, (double)w.dim[0])};
    int y = rg_node1(k, "MatMul", in, 2, PRONY_FLOAT32, &shape, 16, "%s", "");
    if (rg_chance(k, 50)) {
        prony_shape bias = {1, {w.dim[1]}};
        y = rg_same(k, "Add", (int[]){y, rg_constant(k, PRONY_FLOAT32, &bias, -1, 1)}, 2, y, "%s", "");
    }
    if (rg_chance(k, 40)) activation(k, y);
}

static void make_gemm(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 2, 2);
    if (x < 0) return;
    x = rg_tame(k, x);
    const rg_value value = *rg_of(k, x);
    int64_t columns = 1 + rg_below(k, 20);
    bool turned = rg_chance(k, 50);
    prony_shape w = {2, {value.shape.dim[1], columns}}, shape = {2, {value.shape.dim[0], columns}},
                bias = {1, {columns}};
    if (turned) w = (prony_shape){2, {columns, value.shape.dim[1]}};
    int in[3] = {x, weights(k, &w, (double)value.shape.dim[1]), rg_constant(k, PRONY_FLOAT32, &bias, -1, 1)};
    int y = rg_node1(k, "Gemm", in, rg_chance(k, 70) ? 3 : 2, PRONY_FLOAT32, &shape, 16, "transB=%d", turned);
    if (rg_chance(k, 50)) activation(k, y);
}

/* Both operands computed: x times its own transpose, as attention has it, perhaps with softmax and the values after it.
 */
static void make_attention(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 2, 4);
    if (x < 0 || rg_elements(k, x) == 0) return;
    x = rg_tame(k, x);
    const rg_value value = *rg_of(k, x);
    int rank = value.shape.rank;
    prony_shape turned = value.shape, scores = value.shape, scalar = {0};
    int64_t rows = value.shape.dim[rank - 2], depth = value.shape.dim[rank - 1];
    if (k->kinds & RG_BATCHED && rank == 2) return;
    if (prn_shape_count(&value.shape, 0, rank - 2) * rows * rows > RG_MOST_ELEMENTS) return;
    turned.dim[rank - 2] = depth;
    turned.dim[rank - 1] = rows;
    scores.dim[rank - 1] = rows;
    static const char *const perms[] = {"1,0", "0,2,1", "0,1,3,2"};
    int q = rg_chance(k, 40) ? rg_tame(k, rg_pick_like(k, x)) : x,
        v = rg_chance(k, 40) ? rg_tame(k, rg_pick_like(k, x)) : x;
    int t = rg_node1(k, "Transpose", &x, 1, PRONY_FLOAT32, &turned, value.most, "perm=[%s]", perms[rank - 2]);
    int s = rg_node1(k, "MatMul", (int[]){q, t}, 2, PRONY_FLOAT32, &scores, 256, "%s", "");
    s = rg_same(k, "Mul", (int[]){s, rg_constant(k, PRONY_FLOAT32, &scalar, 0.1, 0.3)}, 2, s, "%s", "");
    s = rg_same(k, "Softmax", &s, 1, s, "axis=-1");
    if (rg_chance(k, 80)) rg_node1(k, "MatMul", (int[]){s, v}, 2, PRONY_FLOAT32, &value.shape, 16, "%s", "");
}

/* GELU and layer normalization, written out. */
static void make_written_out(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 1, 4);
    prony_shape scalar = {0};
    if (x < 0 || rg_elements(k, x) == 0) return;
    x = rg_tame(k, x);
    if (rg_chance(k, 50)) {
        int e =
            rg_same(k, "Div", (int[]){x, rg_constant(k, PRONY_FLOAT32, &scalar, 1.4142135, 1.4142135)}, 2, x, "%s", "");
        e = rg_same(k, "Erf", &e, 1, x, "%s", "");
        e = rg_same(k, "Add", (int[]){e, rg_constant(k, PRONY_FLOAT32, &scalar, 1, 1)}, 2, x, "%s", "");
        e = rg_same(k, "Mul", (int[]){x, e}, 2, x, "%s", "");
        rg_same(k, "Mul", (int[]){e, rg_constant(k, PRONY_FLOAT32, &scalar, 0.5, 0.5)}, 2, x, "%s", "");
        return;
    }
    if (k->kinds & RG_BATCHED && rg_rank(k, x) < 2) return;
    prony_shape one = rg_of(k, x)->shape;
    one.dim[one.rank - 1] = 1;
    int mean = rg_node1(k, "ReduceMean", &x, 1, PRONY_FLOAT32, &one, 16, "axes=[-1] keepdims=1");
    int d = rg_same(k, "Sub", (int[]){x, mean}, 2, x, "%s", "");
    int p = rg_same(k, "Pow", (int[]){d, rg_constant(k, PRONY_FLOAT32, &scalar, 2, 2)}, 2, x, "%s", "");
    int var = rg_node1(k, "ReduceMean", &p, 1, PRONY_FLOAT32, &one, 256, "axes=[-1] keepdims=1");
    var = rg_same(k, "Add", (int[]){var, rg_constant(k, PRONY_FLOAT32, &scalar, 0.1, 0.1)}, 2, var, "%s", "");
    var = rg_same(k, "Sqrt", &var, 1, var, "%s", "");
    int y = rg_same(k, "Div", (int[]){d, var}, 2, x, "%s", "");
    k->g->values[y].most = 8;
}

const rg_recipe rg_image_recipes[] = {{make_conv, 8, EVERYWHERE},        {make_residual, 6, EVERYWHERE},
                                      {make_excite, 2, EVERYWHERE},      {make_map, 3, EVERYWHERE},
                                      {make_inception, 4, EVERYWHERE},   {make_pool, 3, EVERYWHERE},
                                      {make_resize, 2, EVERYWHERE},      {make_instance_norm, 2, EVERYWHERE},
                                      {make_depth, 1, EVERYWHERE},       {make_matmul, 4, EVERYWHERE},
                                      {make_gemm, 3, EVERYWHERE},        {make_attention, 2, EVERYWHERE},
                                      {make_written_out, 3, EVERYWHERE}, {NULL, 0, 0}};
