/* The loops of ops/pool/pool_simd.h for one instruction set (PRN_SIMD names it).
 *
 * With channel lanes, an output's window is combined in registers. Without, the rows are combined into one line with
 * room for the padding, a piece of the row at a time, and then the taps of neighbouring outputs from the line.
 * Invariants: the order of an output's sum depends on the window and on the number of lanes alone. A maximum takes the
 * columns of its window from top to bottom, one after the other, with and without lanes: of zeros of both signs it
 * keeps the first, of NaNs the last, the same ones in every layout. */
#include "ops/pool/pool_simd.h"
#include "base/integers.h"
#include "base/cpu/simd.h"

#include "base/threads/cancel.h"
#include "ops/kernels/vector/vec_math.h"

#include <stdbool.h>

enum {
    LINE = PRN_POOL_LINE,
    LONGEST_REACH = 512,
    LOOK_UP = 1 << 14 /* vectors between two tests of cancellation */
};

VEC_INLINE vf combined(vf a, vf b, bool average)
{
    return average ? a + b : v_larger_or_nan(a, b);
}

/* Taps [first, last) of the window that begins at `start` lie in the input. */
static inline void clip_taps(const prn_bump_row *row, int64_t start, int64_t *first, int64_t *last)
{
    *first = start < 0 ? (row->dilation - 1 - start) / row->dilation : 0;
    *last = row->taps;
    if (start + (row->taps - 1) * row->dilation >= row->in)
        *last = (row->in - start + row->dilation - 1) / row->dilation;
}

/* One vector of a window's lanes, of which `lanes` are there, the taps [first, end) of row `j` of plane `z` added to
 * `result`. */
VEC_INLINE vf window_taps(vf result, const float *window, const prn_bump_row *row, int64_t z, int64_t j, int64_t first,
                          int64_t end, int64_t lanes, bool average)
{
    const int64_t apart = row->dilation * row->lanes;
    const float *x = window + z * row->depth_step + j * row->height_step + first * apart;
    for (int64_t t = first; t < end; t++, x += apart)
        result = combined(result, lanes >= VEC_LANES ? v_load(x) : v_load_part(x, lanes, 0.0f), average);
    return result;
}

/* The result of one vector of a window's lanes, of which `lanes` are there. Sums go along the rows. */
VEC_INLINE vf pool_simd_sum(const float *window, const prn_bump_row *row, int64_t taps, int64_t lanes, float empty)
{
    const bool large = row->height * taps > LOOK_UP;
    vf result = v_splat(empty);
    for (int64_t z = 0; z < row->depth; z++)
        for (int64_t j = 0; j < row->height && !(large && prn_cancelled()); j++)
            for (int64_t from = 0; from < taps && !(from && prn_cancelled()); from += LOOK_UP)
                result = window_taps(result, window, row, z, j, from, taps - from < LOOK_UP ? taps : from + LOOK_UP,
                                     lanes, true);
    return result;
}

/* As pool_simd_sum; a maximum goes along the columns. */
VEC_INLINE vf pool_simd_max(const float *window, const prn_bump_row *row, int64_t taps, int64_t lanes, float empty)
{
    const bool large = row->height * taps > LOOK_UP;
    vf result = v_splat(empty);
    for (int64_t t = 0; t < taps && !(large && prn_cancelled()); t++)
        for (int64_t z = 0; z < row->depth; z++)
            for (int64_t j = 0; j < row->height && !(j && j % LOOK_UP == 0 && prn_cancelled()); j++)
                result = window_taps(result, window, row, z, j, t, t + 1, lanes, false);
    return result;
}

VEC_INLINE vf window_vector(const float *window, const prn_bump_row *row, int64_t taps, int64_t lanes, bool average,
                            float empty)
{
    return average ? pool_simd_sum(window, row, taps, lanes, empty) : pool_simd_max(window, row, taps, lanes, empty);
}

VEC_INLINE void one_window(float *y, const float *window, const prn_bump_row *row, int64_t taps, bool average,
                           float empty)
{
    int64_t l = 0;
    for (; l + VEC_LANES <= row->lanes; l += VEC_LANES)
        v_store(y + l, window_vector(window + l, row, taps, VEC_LANES, average, empty));
    if (l < row->lanes)
        v_store_part(y + l, window_vector(window + l, row, taps, row->lanes - l, average, empty), row->lanes - l);
}

/* The largest of `height` elements below each other. */
VEC_INLINE vf column_max(const float *x, int64_t below, const int64_t height)
{
    vf result = v_load(x);
    PRN_UNROLL
    for (int64_t j = 1; j < height; j++) result = v_larger_or_nan(result, v_load(x + j * below));
    return result;
}

/* Maxima of outputs [begin, end) of a row, none of whose windows meets padding on its left or right, `size` taps wide
 * and `height` high. Each column of the image is reduced once: neighbouring windows share size - stride of them. size,
 * height, stride (0: no columns are shared) and lanes where it is that of a vector are constants after inlining. */
VEC_INLINE void max_inside(float *y, const prn_bump_row *row, int64_t begin, int64_t end, const int64_t size,
                           const int64_t height, const int64_t stride, const int64_t lanes)
{
    const int64_t shared = stride && size > stride ? size - stride : 0, below = row->height_step;
    for (int64_t l = 0; l < lanes; l += VEC_LANES) {
        const float *x = row->x + (begin * row->stride - row->pad) * lanes + l;
        vf column[3];
        PRN_UNROLL
        for (int64_t t = 0; t < shared && begin < end; t++) column[t] = column_max(x + t * lanes, below, height);
        for (int64_t i = begin; i < end; i++, x += row->stride * lanes) {
            PRN_UNROLL
            for (int64_t t = shared; t < size; t++) column[t] = column_max(x + t * lanes, below, height);
            vf result = column[0];
            PRN_UNROLL
            for (int64_t t = 1; t < size; t++) result = v_larger_or_nan(result, column[t]);
            v_store(y + i * lanes + l, result);
            PRN_UNROLL
            for (int64_t t = 0; t < shared; t++) column[t] = column[t + stride];
        }
    }
}

/* As max_inside: sums. */
VEC_INLINE void sum_inside(float *y, const prn_bump_row *row, int64_t begin, int64_t end, const int64_t size,
                           const int64_t height, const int64_t lanes, float empty)
{
    const int64_t step = row->stride * lanes, below = row->height_step;
    const float *x = row->x + (begin * row->stride - row->pad) * lanes;
    for (int64_t i = begin; i < end; i++, x += step) {
        for (int64_t l = 0; l < lanes; l += VEC_LANES) {
            vf result = v_splat(empty);
            PRN_UNROLL
            for (int64_t j = 0; j < height; j++) {
                PRN_UNROLL
                for (int64_t t = 0; t < size; t++) result += v_load(x + j * below + t * lanes + l);
            }
            v_store(y + i * lanes + l, result);
        }
    }
}

VEC_INLINE void windows_inside(float *y, const prn_bump_row *row, int64_t begin, int64_t end, const int64_t size,
                               const int64_t height, const int64_t lanes, bool average, float empty)
{
    if (average)
        sum_inside(y, row, begin, end, size, height, lanes, empty);
    else if (row->stride == 1)
        max_inside(y, row, begin, end, size, height, 1, lanes);
    else if (row->stride == 2)
        max_inside(y, row, begin, end, size, height, 2, lanes);
    else
        max_inside(y, row, begin, end, size, height, 0, lanes);
}

/* At an image's upper and lower edge windows are less high than wide. */
VEC_INLINE void some_inside(float *y, const prn_bump_row *row, int64_t begin, int64_t end, const int64_t size,
                            bool average, float empty)
{
    if (row->height == 1)
        windows_inside(y, row, begin, end, size, 1, row->lanes, average, empty);
    else if (row->height == 2 && row->lanes == VEC_LANES)
        windows_inside(y, row, begin, end, size, 2, VEC_LANES, average, empty);
    else if (row->height == 2)
        windows_inside(y, row, begin, end, size, 2, row->lanes, average, empty);
    else if (row->lanes == VEC_LANES)
        windows_inside(y, row, begin, end, size, 3, VEC_LANES, average, empty);
    else
        windows_inside(y, row, begin, end, size, 3, row->lanes, average, empty);
}

/* Outputs [begin, end) of a row with channel lanes: windows of 2 or 3 taps inside the image by the unrolled loop, the
 * others one by one. */
VEC_INLINE void some_with_lanes(float *y, const prn_bump_row *row, int64_t begin, int64_t end, bool average,
                                float empty)
{
    int64_t first = begin, last = begin; /* those inside */
    const bool narrow = row->depth == 1 && row->height <= 3 && (row->taps == 2 || row->taps == 3);
    if (narrow && row->dilation == 1 && row->lanes % VEC_LANES == 0) {
        const int64_t room = row->in - row->taps + row->pad, inside = room < 0 ? 0 : room / row->stride + 1;
        first = prn_ceil_div(row->pad, row->stride);
        if (first < begin) first = begin;
        last = inside < end ? inside : end;
        if (last < first) first = last = begin;
        if (row->taps == 2)
            some_inside(y, row, first, last, 2, average, empty);
        else
            some_inside(y, row, first, last, 3, average, empty);
    }
    for (int64_t i = begin; i < end; i++) {
        if (i == first && last > first) {
            i = last - 1;
            continue;
        }
        const int64_t start = i * row->stride - row->pad;
        int64_t from, to;
        clip_taps(row, start, &from, &to);
        one_window(y + i * row->lanes, row->x + (start + from * row->dilation) * row->lanes, row, to - from, average,
                   empty);
    }
}

VEC_INLINE void with_lanes(float *y, const prn_bump_row *row, bool average, float empty)
{
    const int64_t vectors = row->depth * row->height * row->taps * (row->lanes / VEC_LANES + 1);
    const int64_t run = vectors > 0 ? LOOK_UP / vectors + 1 : row->out;
    for (int64_t i = 0; i < row->out && !(i && prn_cancelled()); i += run)
        some_with_lanes(y, row, i, row->out - i < run ? row->out : i + run, average, empty);
}

/* The part of fill_line between `left` and `right`, for so many rows that it looks whether to go on. */
static __attribute__((noinline)) void fill_from_many(float *line, int64_t left, int64_t right, int64_t begin,
                                                     const prn_bump_row *row, bool average, float empty)
{
    for (int64_t k = left; k < right && !prn_cancelled(); k += VEC_LANES) {
        vf result = v_splat(empty);
        for (int64_t z = 0; z < row->depth; z++) {
            for (int64_t j = 0; j < row->height && !prn_cancelled_at(j); j++) {
                const float *x = row->x + z * row->depth_step + j * row->height_step + begin + k;
                result = combined(result, v_load_part(x, right - k, 0.0f), average);
            }
        }
        v_store_part(line + k, result, right - k);
    }
}

/* line[k] = the rows' elements at column `begin` + k combined, `empty` outside of the input */
VEC_INLINE void fill_line(float *line, int64_t begin, int64_t n, const prn_bump_row *row, bool average, float empty)
{
    int64_t left = begin < 0 ? -begin : 0, right = begin + n > row->in ? row->in - begin : n;
    if (left > n) left = n;
    if (right < left) right = left;
    for (int64_t k = 0; k < left; k++) line[k] = empty;
    for (int64_t k = right; k < n; k++) line[k] = empty;
    if (row->depth * row->height > LOOK_UP / LINE) {
        fill_from_many(line, left, right, begin, row, average, empty);
        return;
    }
    for (int64_t k = left; k < right; k += VEC_LANES) {
        vf result = v_splat(empty);
        for (int64_t z = 0; z < row->depth; z++) {
            for (int64_t j = 0; j < row->height; j++) {
                const float *x = row->x + z * row->depth_step + j * row->height_step + begin + k;
                result = combined(result, v_load_part(x, right - k, 0.0f), average);
            }
        }
        v_store_part(line + k, result, right - k);
    }
}

/* Every second element of the two. */
VEC_INLINE vf v_evens(vf low, vf high)
{
#if VEC_LANES == 4
    return __builtin_shufflevector(low, high, 0, 2, 4, 6);
#elif VEC_LANES == 8
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#endif
}

/* Every second of the 2 VEC_LANES elements from p on. */
VEC_INLINE vf v_load_even(const float *p)
{
    return v_evens(v_load(p), v_load(p + VEC_LANES));
}

VEC_INLINE vf v_load_steps(const float *p, int64_t stride)
{
    if (stride == 1) return v_load(p);
    if (stride == 2) return v_load_even(p);
    vf x = {0};
    for (int k = 0; k < VEC_LANES; k++) x[k] = p[k * stride];
    return x;
}

VEC_INLINE void take_taps(float *y, int64_t n, const float *line, const prn_bump_row *row, int64_t stride, bool average)
{
    for (int64_t i = 0; i < n; i += VEC_LANES) {
        vf result = v_load_steps(line + i * stride, stride);
        for (int64_t t = 1; t < row->taps; t++)
            result = combined(result, v_load_steps(line + i * stride + t * row->dilation, stride), average);
        v_store_part(y + i, result, n - i);
    }
}

VEC_INLINE vf v_odds(vf low, vf high)
{
#if VEC_LANES == 4
    return __builtin_shufflevector(low, high, 1, 3, 5, 7);
#elif VEC_LANES == 8
    return __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    return __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#endif
}

/* The columns of two vectors of elements from x on combined, of which `left` are there (none, and one row's elements
 * are not read). */
VEC_INLINE void columns(const float *x, int64_t left, int64_t step, const int64_t height, bool average, float empty,
                        vf *low, vf *high)
{
    *low = *high = v_splat(empty);
    PRN_UNROLL
    for (int64_t j = 0; j < height && left > 0; j++)
        *low = combined(*low, v_load_part(x + j * step, left, 0.0f), average);
    PRN_UNROLL
    for (int64_t j = 0; j < height && left > VEC_LANES; j++)
        *high = combined(*high, v_load_part(x + j * step + VEC_LANES, left - VEC_LANES, 0.0f), average);
}

/* A row without padding, of windows of 2 x 2 or 3 x 3 in steps of two, from where its elements lie. Rows first, as with
 * a line. */
VEC_INLINE void pool_simd_inside(float *y, const prn_bump_row *row, const int64_t size, bool average, float empty)
{
    for (int64_t i = 0; i < row->out && !prn_cancelled_at(i / VEC_LANES); i += VEC_LANES) {
        vf low, high;
        columns(row->x + 2 * i, row->in - 2 * i, row->height_step, size, average, empty, &low, &high);
        vf result = combined(v_evens(low, high), v_odds(low, high), average);
        if (size == 3) {
            columns(row->x + 2 * i + 2, row->in - 2 * i - 2, row->height_step, size, average, empty, &low, &high);
            result = combined(result, v_evens(low, high), average);
        }
        v_store_part(y + i, result, row->out - i);
    }
}

VEC_INLINE bool pool_simd_is_inside(const prn_bump_row *row, int64_t size)
{
    return row->depth == 1 && row->height == size && row->taps == size && row->stride == 2 && row->dilation == 1 &&
           row->pad == 0 && (row->out - 1) * 2 + size <= row->in;
}

/* A row of a plain plane: common windows directly, others over a padded copy of a piece of the row, so that vectors
 * need no edge cases. */
VEC_INLINE void without_lanes(float *y, const prn_bump_row *row, bool average, float empty)
{
    if (pool_simd_is_inside(row, 2)) {
        pool_simd_inside(y, row, 2, average, empty);
        return;
    }
    if (pool_simd_is_inside(row, 3)) {
        pool_simd_inside(y, row, 3, average, empty);
        return;
    }
    float line[LINE + 2 * VEC_LANES];
    const int64_t reach = (row->taps - 1) * row->dilation + 1;
    int64_t piece = (LINE - reach - VEC_LANES * row->stride) / row->stride;
    piece -= piece % VEC_LANES;
    for (int64_t i = 0; i < row->out && (i == 0 || !prn_cancelled()); i += piece) {
        const int64_t n = row->out - i < piece ? row->out - i : piece;
        const int64_t width = (n - 1) * row->stride + reach;
        const int64_t whole = prn_ceil_div(n, VEC_LANES) * VEC_LANES * row->stride + reach + VEC_LANES;
        fill_line(line, i * row->stride - row->pad, width, row, average, empty);
        for (int64_t k = width; k < whole; k++) line[k] = empty; /* what the last vector reads beyond */
        if (row->stride == 1)
            take_taps(y + i, n, line, row, 1, average);
        else if (row->stride == 2)
            take_taps(y + i, n, line, row, 2, average);
        else
            take_taps(y + i, n, line, row, row->stride, average);
    }
}

VEC_INLINE void each_row(float *y, const prn_bump_row *rows, bool average, float empty)
{
    prn_bump_row row = *rows;
    const bool plain =
        row.lanes == 1 && row.stride * VEC_LANES <= LONGEST_REACH && (row.taps - 1) * row.dilation < LONGEST_REACH;
    for (int64_t r = 0; r < rows->rows && !(r && prn_cancelled());
         r++, y += row.out * row.lanes, row.x += row.row_step) {
        if (plain)
            without_lanes(y, &row, average, empty);
        else
            with_lanes(y, &row, average, empty);
    }
}

#define DEFINE_POOL(name, average, empty)                                                                              \
    static void name(float *y, const prn_bump_row *rows)                                                               \
    {                                                                                                                  \
        each_row(y, rows, average, empty);                                                                             \
    }
DEFINE_POOL(max_row, false, -INFINITY)
DEFINE_POOL(pool_simd_sum_row, true, 0.0f)

/* The rows [*begin, *end) of a window that lie in the input. */
static inline void clip_rows(const prn_pool_plane *plane, int64_t top, int64_t *begin, int64_t *end)
{
    const int64_t apart = plane->dilation[0];
    *begin = 0;
    *end = plane->taps[0];
    while (*begin < *end && top + *begin * apart < 0) ++*begin;
    while (*begin < *end && top + (*end - 1) * apart >= plane->height) --*end;
}

/* line[k] = the elements of column k of the window's rows from `x` on combined. */
VEC_INLINE void pool_simd_combine_rows(float *line, const float *x, int64_t rows, int64_t apart, int64_t columns,
                                       const bool average, const float empty)
{
    for (int64_t k = 0; k < columns; k += VEC_LANES) {
        const int64_t left = columns - k;
        const float *at = x + k;
        vf result = v_splat(empty);
        if (left >= VEC_LANES) {
            for (int64_t j = 0; j < rows; j++, at += apart) result = combined(result, v_load(at), average);
            v_store(line + k, result);
        } else {
            for (int64_t j = 0; j < rows; j++, at += apart)
                result = combined(result, v_load_part(at, left, 0.0f), average);
            v_store_part(line + k, result, left);
        }
    }
}

/* Rows first, then columns; `stride` (0: any) is a constant after inlining. The line's ends, which lie in the padding,
 * are the same for all rows of outputs. */
VEC_INLINE void pool_plane(const prn_pool_plane *plane, const int64_t stride, const bool average, const float empty)
{
    float line[PRN_POOL_LINE];
    const int64_t step = stride ? stride : plane->stride[1], reach = (plane->taps[1] - 1) * plane->dilation[1] + 1,
                  pad = plane->pad[1];
    const int64_t seen = (plane->out - 1) * step + reach - pad, columns = seen < plane->width ? seen : plane->width;
    const int64_t whole = prn_ceil_div(plane->out, VEC_LANES) * VEC_LANES * step + reach + VEC_LANES;
    for (int64_t k = 0; k < pad; k++) line[k] = empty;
    for (int64_t k = pad + columns; k < whole; k++) line[k] = empty;
    float *y = plane->y;
    for (int64_t r = 0; r < plane->rows && !prn_cancelled_at(r); r++, y += plane->out) {
        const int64_t top = (plane->first + r) * plane->stride[0] - plane->pad[0],
                      apart = plane->dilation[0] * plane->width;
        int64_t begin, end;
        clip_rows(plane, top, &begin, &end);
        pool_simd_combine_rows(line + pad, plane->x + top * plane->width + begin * apart, end - begin, apart, columns,
                               average, empty);
        for (int64_t i = 0; i < plane->out; i += VEC_LANES) {
            const float *tap = line + i * step;
            vf result = v_load_steps(tap, step);
            for (int64_t t = 1; t < plane->taps[1]; t++)
                result = combined(result, v_load_steps(tap + t * plane->dilation[1], step), average);
            if (average)
                result /= v_splat(plane->row_counts[r]) * v_load_part(plane->column_counts + i, plane->out - i, 1.0f);
            v_store_part(y + i, result, plane->out - i);
        }
    }
}

#define DEFINE_PLANE(name, average, empty)                                                                             \
    static void name(const prn_pool_plane *plane)                                                                      \
    {                                                                                                                  \
        if (plane->stride[1] == 1)                                                                                     \
            pool_plane(plane, 1, average, empty);                                                                      \
        else if (plane->stride[1] == 2)                                                                                \
            pool_plane(plane, 2, average, empty);                                                                      \
        else                                                                                                           \
            pool_plane(plane, 0, average, empty);                                                                      \
    }
DEFINE_PLANE(max_plane, false, -INFINITY)
DEFINE_PLANE(average_plane, true, 0.0f)

/* `planes` and `sums` are constants after inlining. */
VEC_INLINE void combine_runs(const prn_pool_runs *runs, const bool average, const int planes, const int sums)
{
    enum { MOST = PRN_POOL_PARTIALS / VEC_LANES };
    const int vectors = sums / VEC_LANES;
    const float *x = runs->x;
    const int64_t count = runs->count;
    vf result[2][MOST];
    for (int p = 0; p < planes; p++) PRN_UNROLL
    for (int v = 0; v < vectors; v++) result[p][v] = v_load(runs->partial[p] + v * VEC_LANES);
    int64_t i = 0;
    for (; i + sums <= count && !prn_cancelled_at(i / sums); i += sums) {
        PRN_UNROLL
        for (int p = 0; p < planes; p++) PRN_UNROLL
        for (int v = 0; v < vectors; v++)
            result[p][v] = combined(result[p][v], v_load(x + p * count + i + v * VEC_LANES), average);
    }
    for (int p = 0; p < planes; p++) PRN_UNROLL
    for (int v = 0; v < vectors; v++) v_store(runs->partial[p] + v * VEC_LANES, result[p][v]);
    for (int64_t j = 0; i + j < count && count - i < sums; j++) { /* none of it where the work is cancelled */
        for (int p = 0; p < planes; p++) {
            float *to = &runs->partial[p][j];
            const float from = x[p * count + i + j];
            *to = average ? *to + from : from > *to || from != from ? from : *to;
        }
    }
}

VEC_INLINE void combine_each(const prn_pool_runs *runs, const bool average)
{
    const bool half = runs->sums < PRN_POOL_PARTIALS;
#if VEC_LANES == 4 /* as many as blocks have */
    if (runs->sums == 2 * VEC_LANES) {
        if (runs->planes == 2)
            combine_runs(runs, average, 2, 2 * VEC_LANES);
        else
            combine_runs(runs, average, 1, 2 * VEC_LANES);
        return;
    }
#endif
    if (runs->planes == 2 && half)
        combine_runs(runs, average, 2, PRN_POOL_PARTIALS / 2);
    else if (runs->planes == 2)
        combine_runs(runs, average, 2, PRN_POOL_PARTIALS);
    else if (half)
        combine_runs(runs, average, 1, PRN_POOL_PARTIALS / 2);
    else
        combine_runs(runs, average, 1, PRN_POOL_PARTIALS);
}

static void max_runs(const prn_pool_runs *runs)
{
    combine_each(runs, false);
}

static void sum_runs(const prn_pool_runs *runs)
{
    combine_each(runs, true);
}

const prn_pool_simd PRN_SIMD_TABLE(prn_pool_simd_) = {.max = max_row,
                                                      .sum = pool_simd_sum_row,
                                                      .max_plane = max_plane,
                                                      .average_plane = average_plane,
                                                      .max_runs = max_runs,
                                                      .sum_runs = sum_runs};
