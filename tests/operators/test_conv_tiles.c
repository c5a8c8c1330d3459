/* Convolutions that are cut into tiles because one call would take long: equal, to the bit, to convolutions of parts
 * of the image that need no tiles. Also tests the tiling itself. */
#include "failure_trace.h"
#include "ops/vendor/dnnl_tiles.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* x [1, in, extents...], weights [out, in / group, kernel...]; the tiling cuts the first spatial axis. */
typedef struct conv_case {
    const char *name;
    int axes;
    int64_t in, out, group, extent[3], kernel[3], stride, dilation, pad;
    const char *after; /* "": nothing; "sigmoid"; "add": a residual, then Relu; "relu add": the other way round */
} conv_case;

static float *numbers(int64_t count, uint32_t seed)
{
    float *data = malloc((size_t)count * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
    return data;
}

static int64_t volume(const conv_case *c, const int64_t *extent, int first)
{
    int64_t product = 1;
    for (int a = first; a < c->axes; a++) product *= extent[a];
    return product;
}

static int64_t reach(const conv_case *c, int a)
{
    return (c->kernel[a] - 1) * c->dilation + 1;
}

static void shape_text(char *text, size_t size, int64_t n, int64_t channels, const conv_case *c, const int64_t *extent)
{
    size_t used = (size_t)snprintf(text, size, "%lld,%lld", (long long)n, (long long)channels);
    for (int a = 0; a < c->axes; a++) used += (size_t)snprintf(text + used, size - used, ",%lld", (long long)extent[a]);
}

static model_builder *build(const conv_case *c, const int64_t *in, const int64_t *out, int64_t begin, int64_t end,
                            const float *weights)
{
    char x[64], y[64], w[64], attributes[160];
    int64_t pads[6];
    for (int a = 0; a < c->axes; a++) {
        pads[a] = a ? c->pad : begin;
        pads[c->axes + a] = a ? c->pad : end;
    }
    shape_text(x, sizeof x, 1, c->in, c, in);
    shape_text(y, sizeof y, 1, c->out, c, out);
    shape_text(w, sizeof w, c->out, c->in / c->group, c, c->kernel);
    size_t used = (size_t)snprintf(attributes, sizeof attributes, "group=%lld pads=[", (long long)c->group);
    for (int i = 0; i < 2 * c->axes; i++)
        used +=
            (size_t)snprintf(attributes + used, sizeof attributes - used, "%s%lld", i ? "," : "", (long long)pads[i]);
    used += (size_t)snprintf(attributes + used, sizeof attributes - used, "] strides=[");
    for (int a = 0; a < c->axes; a++)
        used +=
            (size_t)snprintf(attributes + used, sizeof attributes - used, "%s%lld", a ? "," : "", (long long)c->stride);
    used += (size_t)snprintf(attributes + used, sizeof attributes - used, "] dilations=[");
    for (int a = 0; a < c->axes; a++)
        used += (size_t)snprintf(attributes + used, sizeof attributes - used, "%s%lld", a ? "," : "",
                                 (long long)c->dilation);
    snprintf(attributes + used, sizeof attributes - used, "]");
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, x);
    if (strstr(c->after, "add")) mb_input(m, "r", PRONY_FLOAT32, y);
    mb_initializer(m, "w", PRONY_FLOAT32, w, weights);
    mb_node(m, "Conv", "x w", *c->after ? "c" : "y", attributes);
    if (strcmp(c->after, "sigmoid") == 0) mb_node(m, "Sigmoid", "c", "y", "");
    if (strcmp(c->after, "add") == 0) {
        mb_node(m, "Add", "c r", "s", "");
        mb_node(m, "Relu", "s", "y", "");
    }
    if (strcmp(c->after, "relu add") == 0) {
        mb_node(m, "Relu", "c", "s", "");
        mb_node(m, "Add", "s r", "y", "");
    }
    mb_output(m, "y", PRONY_FLOAT32, y);
    return m;
}

/* Rows [begin, begin + rows) of the first spatial axis, of every channel. */
static float *cut_rows(const float *data, int64_t channels, int64_t extent, int64_t inner, int64_t begin, int64_t rows)
{
    float *part = malloc((size_t)(channels * rows * inner) * sizeof *part);
    assert_non_null(part);
    for (int64_t k = 0; k < channels; k++)
        memcpy(part + k * rows * inner, data + (k * extent + begin) * inner, (size_t)(rows * inner) * sizeof *part);
    return part;
}

typedef struct operands {
    float *x, *r, *weights;
    const float *y; /* of the whole */
    int64_t out[3];
} operands;

static void check_part(const conv_case *c, const operands *o, int64_t first, int64_t rows)
{
    const int64_t before = first * c->stride - c->pad, behind = before + (rows - 1) * c->stride + reach(c, 0);
    const int64_t begin = before < 0 ? 0 : before, end = behind > c->extent[0] ? c->extent[0] : behind;
    int64_t in[3], out[3];
    memcpy(in, c->extent, sizeof in);
    memcpy(out, o->out, sizeof out);
    in[0] = end - begin;
    out[0] = rows;
    const int64_t x_inner = volume(c, in, 1), y_inner = volume(c, out, 1);
    float *x = cut_rows(o->x, c->in, c->extent[0], x_inner, begin, in[0]);
    float *r = cut_rows(o->r, c->out, o->out[0], y_inner, first, rows);
    float *y = cut_rows(o->y, c->out, o->out[0], y_inner, first, rows);
    char dims[64];
    model_run run = {0};
    mr_open(&run, build(c, in, out, begin - before, behind - end, o->weights));
    shape_text(dims, sizeof dims, 1, c->in, c, in);
    mr_set(&run, "x", PRONY_FLOAT32, dims, x);
    shape_text(dims, sizeof dims, 1, c->out, c, out);
    if (strstr(c->after, "add")) mr_set(&run, "r", PRONY_FLOAT32, dims, r);
    const prony_value *got = mr_run(&run, 0);
    if (memcmp(got->data, y, (size_t)(c->out * rows * y_inner) * sizeof *y) != 0)
        fail_msg("%s: rows from %lld on differ", c->name, (long long)first);
    mr_close(&run);
    free(x);
    free(r);
    free(y);
}

static void check(const conv_case *c)
{
    operands o = {0};
    char dims[64];
    for (int a = 0; a < c->axes; a++) o.out[a] = (c->extent[a] + 2 * c->pad - reach(c, a)) / c->stride + 1;
    o.x = numbers(c->in * volume(c, c->extent, 0), 1);
    o.r = numbers(c->out * volume(c, o.out, 0), 2);
    o.weights = numbers(c->out * c->in / c->group * volume(c, c->kernel, 0), 3);
    for (int threads = 1; threads <= 2; threads++) {
        model_run run = {.options = PRONY_SESSION_OPTIONS_INIT};
        run.options.intra_op_threads = threads;
        mr_open(&run, build(c, c->extent, o.out, c->pad, c->pad, o.weights));
        shape_text(dims, sizeof dims, 1, c->in, c, c->extent);
        mr_set(&run, "x", PRONY_FLOAT32, dims, o.x);
        shape_text(dims, sizeof dims, 1, c->out, c, o.out);
        if (strstr(c->after, "add")) mr_set(&run, "r", PRONY_FLOAT32, dims, o.r);
        o.y = mr_run(&run, 0)->data;
        const int64_t rows = o.out[0] / 3;
        check_part(c, &o, 0, rows);
        check_part(c, &o, rows, rows);
        check_part(c, &o, 2 * rows, o.out[0] - 2 * rows);
        mr_close(&run);
    }
    free(o.x);
    free(o.r);
    free(o.weights);
}

static void tiles_give_the_same_bits(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {"stem", 2, 3, 16, 1, {801, 803}, {7, 7}, 1, 1, 3, ""},
        {"stem of steps", 2, 3, 32, 1, {1203, 1205}, {3, 3}, 2, 1, 1, ""},
        {"one channel", 2, 1, 1, 1, {803, 800}, {9, 9}, 1, 1, 4, "sigmoid"},
        {"wide gaps", 2, 3, 24, 1, {700, 702}, {3, 3}, 1, 9, 9, "add"},
        {"depthwise", 2, 16, 16, 16, {800, 805}, {5, 5}, 1, 1, 2, "relu add"},
        {"1x1", 2, 32, 64, 1, {420, 417}, {1, 1}, 1, 1, 0, "relu add"},
        {"1x1 of steps", 2, 32, 64, 1, {840, 833}, {1, 1}, 2, 1, 0, "add"},
        {"groups", 2, 32, 128, 2, {420, 417}, {3, 3}, 1, 1, 1, ""},
        {"3-d", 3, 16, 32, 1, {20, 130, 131}, {3, 3, 3}, 1, 1, 1, "add"},
        {"1-d", 1, 3, 16, 1, {650000}, {5}, 1, 1, 2, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(&cases[i]);
}

/* ---- the cut ---- */

static const prn_window image = {.axes = 2,
                                 .in = {1, 9000, 9000},
                                 .out = {1, 4500, 4500},
                                 .kernel = {1, 7, 7},
                                 .stride = {1, 2, 2},
                                 .dilation = {1, 1, 1},
                                 .pad_begin = {0, 3, 3},
                                 .pad_end = {0, 2, 2}};

/* Tiles fill the output without gap or overlap, and each sees what its outputs need. */
static void tiles_fill_the_output(void **state)
{
    (void)state;
    prn_dnnl_tiling tiling;
    const prn_dnnl_piece_size piece = {.seconds = 1.0, .x_channels = 3, .y_channels = 16, .x_block = 1, .y_block = 8};
    assert_true(prn_dnnl_tiles_cut(&image, &piece, &tiling));
    assert_true(tiling.total > 100);
    assert_int_equal(tiling.count[2], 1);
    assert_int_equal(prn_dnnl_tile_shapes(&tiling), 3);
    int64_t next = 0;
    for (int64_t i = 0; i < tiling.total; i++) {
        SCENARIO(i);
        const prn_dnnl_tile tile = prn_dnnl_tile_at(&image, &tiling, i);
        const prn_window part = prn_dnnl_tile_window(&image, &tiling, tile.shape);
        assert_int_equal(tile.out_at[1], next);
        assert_int_equal(tile.in_at[1], i == 0 ? 0 : 2 * next - 3);
        assert_int_equal(part.pad_begin[1], i == 0 ? 3 : 0);
        assert_int_equal(part.pad_end[1], i == tiling.total - 1 ? 2 : 0);
        assert_int_equal(part.in[1] + part.pad_begin[1] + part.pad_end[1], 2 * (part.out[1] - 1) + 7);
        assert_int_equal(part.in[2], 9000);
        next += part.out[1];
    }
    assert_int_equal(next, 4500);
}

static void what_is_short_stays_whole(void **state)
{
    (void)state;
    prn_dnnl_tiling tiling;
    prn_window small = image;
    small.in[1] = small.in[2] = 448;
    small.out[1] = small.out[2] = 224;
    const prn_dnnl_piece_size piece = {.seconds = 0.03, .x_channels = 3, .y_channels = 64, .x_block = 1, .y_block = 16};
    assert_true(prn_dnnl_tiles_cut(&small, &piece, &tiling));
    assert_int_equal(tiling.total, 0);
}

/* One row per tile if a row takes long; no tile consists of padding alone. */
static void rows_are_cut_too(void **state)
{
    (void)state;
    prn_dnnl_tiling tiling;
    const prn_dnnl_piece_size piece = {.seconds = 1000.0, .x_channels = 8, .y_channels = 8, .x_block = 8, .y_block = 8};
    assert_true(prn_dnnl_tiles_cut(&image, &piece, &tiling));
    assert_int_equal(tiling.extent[1], 1);
    assert_true(tiling.count[2] > 1);
    prn_window padded = image;
    padded.pad_begin[1] = 3000;
    padded.out[1] = 4500 + 1500;
    assert_false(prn_dnnl_tiles_cut(&padded, &piece, &tiling));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_fill_the_output),
                                       cmocka_unit_test(what_is_short_stays_whole), cmocka_unit_test(rows_are_cut_too),
                                       cmocka_unit_test(tiles_give_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
