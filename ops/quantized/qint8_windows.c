/* Windows of codes as the rows of a product (qint8_windows.h). */
#include "ops/quantized/qint8_windows.h"

#include "base/threads/cancel.h"

#include <string.h>

/* Shared by the windows of successive output positions of a row. */
typedef struct segment {
    const uint8_t *image; /* channels of the group */
    int64_t row;          /* of the output */
    int64_t from, to;     /* positions */
    uint8_t *rows;        /* of the product, that of position `from` first */
    int64_t row_bytes;    /* from one to the next */
} segment;

/* Output positions [*first, *last) of a row at which `taps` taps from number `tap` on are inside the image. */
static void qint8_windows_inside(const prn_window *w, int64_t tap, int64_t taps, int64_t *first, int64_t *last)
{
    int64_t unused;
    prn_window_outputs(w, tap, first, &unused);
    prn_window_outputs(w, tap + taps - 1, &unused, last);
}

prn_qint8_windows prn_qint8_windows_make(const prn_conv *conv, const void *x, uint8_t flip, uint8_t zero)
{
    prn_qint8_windows of = {.conv = conv, .dot = prn_qint8_dot_table(), .x = x, .flip = flip, .zero = zero};
    of.together = conv->window.dilation[2] == 1 && conv->groups == 1;
    qint8_windows_inside(&conv->window, 0, conv->window.kernel[2], &of.whole_first, &of.whole_last);
    return of;
}

bool prn_qint8_windows_lie(const prn_qint8_windows *of)
{
    const prn_window *w = &of->conv->window;
    bool lie = of->conv->groups == 1 && of->flip == 0;
    for (int a = 0; a < PRN_WINDOW_AXES; a++)
        lie = lie && w->kernel[a] == 1 && w->stride[a] == 1 && w->pad_begin[a] == 0 && w->out[a] == w->in[a];
    return lie;
}

/* The taps of one position, one by one. */
static void fetch_edge(const prn_qint8_windows *of, const uint8_t *row, int64_t at, int64_t taps, uint8_t *to)
{
    const prn_window *w = &of->conv->window;
    const int64_t width = of->conv->group_in;
    for (int64_t t = 0; t < taps; t++, at += w->dilation[2], to += width) {
        if (at >= 0 && at < w->in[2])
            of->dot->copy(to, 0, row + at * of->conv->in_channels, 0, 1, width, of->flip);
        else
            memset(to, of->zero, (size_t)width);
    }
}

/* `taps` taps from number `tap` on, side by side in the input, of every position of the segment. */
static void fetch_taps(const prn_qint8_windows *of, const segment *s, const uint8_t *row, int64_t tap, int64_t taps,
                       int64_t offset)
{
    const prn_window *w = &of->conv->window;
    const int64_t channels = of->conv->in_channels, stride = w->stride[2];
    const int64_t shift = tap * w->dilation[2] - w->pad_begin[2];
    int64_t first = of->whole_first, last = of->whole_last;
    if (!of->together) qint8_windows_inside(w, tap, taps, &first, &last);
    if (first < s->from) first = s->from;
    if (last > s->to) last = s->to;
    if (first > last) first = last = s->to;
    for (int64_t x = s->from; x < s->to; x++) {
        if (x == first && first < last) x = last;
        if (x == s->to) break;
        fetch_edge(of, row, x * stride + shift, taps, s->rows + (x - s->from) * s->row_bytes + offset);
    }
    if (first < last)
        of->dot->copy(s->rows + (first - s->from) * s->row_bytes + offset, s->row_bytes,
                      row + (first * stride + shift) * channels, stride * channels, last - first,
                      taps * of->conv->group_in, of->flip);
}

static void fetch_segment(const prn_qint8_windows *of, const segment *s)
{
    const prn_window *w = &of->conv->window;
    const prn_conv *conv = of->conv;
    const int64_t taps = of->together ? w->kernel[2] : 1, bytes = taps * conv->group_in;
    const int64_t z = s->row / w->out[1] * w->stride[0] - w->pad_begin[0];
    const int64_t y = s->row % w->out[1] * w->stride[1] - w->pad_begin[1];
    int64_t offset = 0;
    for (int64_t i = 0; i < w->kernel[0] * w->kernel[1]; i++) {
        const int64_t in_z = z + i / w->kernel[1] * w->dilation[0], in_y = y + i % w->kernel[1] * w->dilation[1];
        const bool outside = in_z < 0 || in_z >= w->in[0] || in_y < 0 || in_y >= w->in[1];
        const int64_t start = outside ? 0 : (in_z * w->in[1] + in_y) * w->in[2];
        for (int64_t kx = 0; kx < w->kernel[2]; kx += taps, offset += bytes) {
            if (!outside) {
                fetch_taps(of, s, s->image + start * conv->in_channels, kx, taps, offset);
                continue;
            }
            for (int64_t x = 0; x < s->to - s->from; x++)
                memset(s->rows + x * s->row_bytes + offset, of->zero, (size_t)bytes);
        }
    }
}

void prn_qint8_windows_fetch(const void *argument, int64_t group, int64_t row, int64_t rows, uint8_t *to,
                             int64_t to_row)
{
    const prn_qint8_windows *of = argument;
    const prn_conv *conv = of->conv;
    const int64_t width = of->conv->window.out[2], end = row + rows;
    while (row < end && !prn_cancelled()) {
        const int64_t image = row / conv->out_spatial, p = row % conv->out_spatial;
        const int64_t from = p % width, left = width - from, n = left < end - row ? left : end - row;
        const segment s = {.image = of->x + image * conv->in_spatial * conv->in_channels + group * conv->group_in,
                           .row = p / width,
                           .from = from,
                           .to = from + n,
                           .rows = to,
                           .row_bytes = to_row};
        fetch_segment(of, &s);
        row += n;
        to += n * to_row;
    }
}
