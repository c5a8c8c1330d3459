/* Cutting a convolution's output into tiles, each of them a convolution of its own part of the input:
 *
 *     input    pad | ........................... | pad          kernel of 3, stride 1, pad 1
 *     tile 0   pad | .........                                  sees one row more than it makes, and the pad
 *     tile 1              ...........                           rows are seen twice where tiles meet, no pad
 *     tile 2                      ............... | pad
 *
 * Every output is summed as in one piece: a tile is padded only where the image is, and reads real elements beyond a
 * cut. Tiles depend on the problem alone. */
#include "ops/vendor/dnnl_tiles.h"

#include <string.h>

/* A call expected to exceed LONG_SECONDS is cut into calls of SHORT_SECONDS, because oneDNN's call cannot be cancelled.
 * The rates are those of one thread on a slow machine, which may write to an output page for the first time, so that
 * the system must clear it. */
#define LONG_SECONDS 0.075
#define SHORT_SECONDS 0.02
#define BYTES_READ_PER_SECOND 5e9
#define BYTES_WRITTEN_PER_SECOND 5e8
/* Most bytes of a tile that is copied to contiguous memory, so that the copy stays in a cache. */
#define COPIED_BYTES 4e6

static double seconds(const prn_dnnl_piece_size *piece, double in, double out)
{
    return piece->seconds + in * (double)piece->x_channels * sizeof(float) / BYTES_READ_PER_SECOND +
           out * (double)piece->y_channels * sizeof(float) / BYTES_WRITTEN_PER_SECOND;
}

/* Positions of a tile; the axes behind the first one of several positions stay whole as long as that suffices. */
static void choose_extents(const prn_window *window, double positions, prn_dnnl_tiling *tiling)
{
    double inner = (double)prn_window_volume(window->out);
    tiling->total = 1;
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        int64_t whole = window->out[a];
        inner /= (double)whole;
        int64_t most = positions / inner < (double)whole ? (int64_t)(positions / inner) : whole;
        tiling->extent[a] = most < 1 ? 1 : most;
        tiling->count[a] = (whole + tiling->extent[a] - 1) / tiling->extent[a];
        tiling->total *= tiling->count[a];
    }
}

/* false: all that the tile sees is padding. */
static bool dnnl_tiles_span_of(const prn_window *window, const prn_dnnl_tiling *tiling, int a, int64_t index,
                               prn_dnnl_span *span, int64_t *in_at)
{
    int64_t first = index * tiling->extent[a], left = window->out[a] - first;
    span->out = left < tiling->extent[a] ? left : tiling->extent[a];
    int64_t begin = first * window->stride[a] - window->pad_begin[a];
    int64_t end = begin + (span->out - 1) * window->stride[a] + prn_window_reach(window, a);
    span->pad_begin = begin < 0 ? -begin : 0;
    span->pad_end = end > window->in[a] ? end - window->in[a] : 0;
    span->in = end - begin - span->pad_begin - span->pad_end;
    *in_at = begin + span->pad_begin;
    return span->in > 0;
}

static int span_number(const prn_dnnl_tiling *tiling, int a, const prn_dnnl_span *span)
{
    for (int i = 0; i < tiling->spans[a]; i++) {
        const prn_dnnl_span *other = &tiling->span[a][i];
        if (span->out == other->out && span->in == other->in && span->pad_begin == other->pad_begin &&
            span->pad_end == other->pad_end)
            return i;
    }
    return -1;
}

static bool find_spans(const prn_window *window, prn_dnnl_tiling *tiling)
{
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        for (int64_t i = 0; i < tiling->count[a]; i++) {
            prn_dnnl_span span;
            int64_t at;
            if (!dnnl_tiles_span_of(window, tiling, a, i, &span, &at)) return false;
            if (span_number(tiling, a, &span) >= 0) continue;
            if (tiling->spans[a] == PRN_DNNL_MOST_SPANS) return false;
            tiling->span[a][tiling->spans[a]++] = span;
        }
    }
    return prn_dnnl_tile_shapes(tiling) <= PRN_DNNL_MOST_SHAPES;
}

bool prn_dnnl_box_is_run(const int64_t box[PRN_WINDOW_AXES], const int64_t image[PRN_WINDOW_AXES])
{
    bool several = false;
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        if (several && box[a] != image[a]) return false;
        several = several || box[a] != 1;
    }
    return true;
}

/* Bytes of the whole that tiles have to be copied from and to. */
static double copied_bytes(const prn_window *window, const prn_dnnl_piece_size *piece, const prn_dnnl_tiling *tiling)
{
    const prn_window tile = prn_dnnl_tile_window(window, tiling, 0);
    double bytes = 0;
    if (piece->x_channels > piece->x_block || !prn_dnnl_box_is_run(tile.in, window->in))
        bytes += (double)prn_window_volume(window->in) * (double)piece->x_channels * sizeof(float);
    if (piece->y_channels > piece->y_block || !prn_dnnl_box_is_run(tile.out, window->out))
        bytes += (double)prn_window_volume(window->out) * (double)piece->y_channels * sizeof(float);
    return bytes;
}

bool prn_dnnl_tiles_cut(const prn_window *window, const prn_dnnl_piece_size *piece, prn_dnnl_tiling *out)
{
    const double in = (double)prn_window_volume(window->in), positions = (double)prn_window_volume(window->out);
    const double all = seconds(piece, in, positions);
    memset(out, 0, sizeof *out);
    if (all <= LONG_SECONDS) return true;
    choose_extents(window, positions * SHORT_SECONDS / all, out);
    if (!find_spans(window, out)) return false;
    const double bytes = copied_bytes(window, piece, out);
    if (bytes * SHORT_SECONDS / all <= COPIED_BYTES) return true;
    memset(out, 0, sizeof *out);
    choose_extents(window, positions * COPIED_BYTES / bytes, out);
    return find_spans(window, out);
}

int prn_dnnl_tile_shapes(const prn_dnnl_tiling *tiling)
{
    return tiling->spans[0] * tiling->spans[1] * tiling->spans[2];
}

prn_dnnl_tile prn_dnnl_tile_at(const prn_window *window, const prn_dnnl_tiling *tiling, int64_t index)
{
    prn_dnnl_tile tile = {.shape = 0};
    int64_t place[PRN_WINDOW_AXES];
    for (int a = PRN_WINDOW_AXES - 1; a >= 0; a--) {
        place[a] = index % tiling->count[a];
        index /= tiling->count[a];
    }
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        prn_dnnl_span span;
        (void)dnnl_tiles_span_of(window, tiling, a, place[a], &span, &tile.in_at[a]);
        tile.out_at[a] = place[a] * tiling->extent[a];
        tile.shape = tile.shape * tiling->spans[a] + span_number(tiling, a, &span);
    }
    return tile;
}

prn_window prn_dnnl_tile_window(const prn_window *window, const prn_dnnl_tiling *tiling, int shape)
{
    prn_window tile = *window;
    for (int a = PRN_WINDOW_AXES - 1; a >= 0; a--) {
        const prn_dnnl_span *span = &tiling->span[a][shape % tiling->spans[a]];
        shape /= tiling->spans[a];
        tile.in[a] = span->in;
        tile.out[a] = span->out;
        tile.pad_begin[a] = span->pad_begin;
        tile.pad_end[a] = span->pad_end;
    }
    return tile;
}
