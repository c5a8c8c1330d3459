/* The strided copy behind Transpose, Slice, Concat, Split, Expand, Tile and their kin.
 * Invariant: work is cut by the shape of the copy alone, and every element of the result is written once.
 */
#include "ops/kernels/copy/copy_nd.h"
#include "base/integers.h"

#include "ops/kernels/lowbit/narrow_types.h"

#include "base/threads/parallel.h"
#include "base/threads/cancel.h"

#include <string.h>

#define PIECE_BYTES (64 * 1024)
#define MOST_UNIT 16 /* bytes that are copied at once */
#define LOOK_UP_ELEMENTS 65536

/* ---- two axes at once */

/* `rows` rows of `count` elements; strides in elements. */
typedef struct plane {
    int64_t rows, count;
    int64_t from_row, to_row, from, to;
} plane;

/* Some elements may be one unit: it is aligned as they are. */
typedef uint8_t __attribute__((may_alias)) unit1;
typedef uint16_t __attribute__((may_alias, aligned(1))) unit2;
typedef uint32_t __attribute__((may_alias, aligned(1))) unit4;
typedef uint64_t __attribute__((may_alias, aligned(1))) unit8;
typedef struct __attribute__((may_alias, packed)) unit16 {
    uint64_t low, high;
} unit16;
typedef uint32_t quad __attribute__((vector_size(16), aligned(1), may_alias));

#define TILE 16

#define DEFINE_PLANE_COPIES(width)                                                                                     \
    static void strided##width(const plane *p, const char *source, char *target)                                       \
    {                                                                                                                  \
        for (int64_t r = 0; r < p->rows; r++) {                                                                        \
            const unit##width *from = (const unit##width *)(const void *)source + r * p->from_row;                     \
            unit##width *to = (unit##width *)(void *)target + r * p->to_row;                                           \
            for (int64_t i = 0; i < p->count; i++) to[i * p->to] = from[i * p->from];                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void tile##width(const unit##width *from, int64_t from_step, unit##width *to, int64_t to_row, int64_t rows, \
                            int64_t count)                                                                             \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            for (int64_t i = 0; i < count; i++) to[r * to_row + i] = from[r + i * from_step];                          \
        }                                                                                                              \
    }

DEFINE_PLANE_COPIES(1)
DEFINE_PLANE_COPIES(2)
DEFINE_PLANE_COPIES(4)
DEFINE_PLANE_COPIES(8)
DEFINE_PLANE_COPIES(16)

static void quad_tile(const unit4 *from, int64_t from_step, unit4 *to, int64_t to_row)
{
    quad a = *(const quad *)(const void *)from, b = *(const quad *)(const void *)(from + from_step);
    quad c = *(const quad *)(const void *)(from + 2 * from_step);
    quad d = *(const quad *)(const void *)(from + 3 * from_step);
    quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad *)(void *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(quad *)(void *)(to + to_row) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(quad *)(void *)(to + 2 * to_row) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(quad *)(void *)(to + 3 * to_row) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/* A tile of 32-bit elements by quads of quads, the rest one by one. */
static void tile_by_quads(const unit4 *from, int64_t from_step, unit4 *to, int64_t to_row, int64_t rows, int64_t count)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        int64_t i = 0;
        for (; i + 4 <= count; i += 4) quad_tile(from + r + i * from_step, from_step, to + r * to_row + i, to_row);
        tile4(from + r + i * from_step, from_step, to + r * to_row + i, to_row, 4, count - i);
    }
    tile4(from + r, from_step, to + r * to_row, to_row, rows - r, count);
}

/* Every second 32-bit element of 2 `count`, the last of which may not be there, and those between them: NULL: they are
 * not wanted. */
static inline __attribute__((always_inline)) void unzip(const unit4 *from, int64_t count, unit4 *even, unit4 *odd)
{
    int64_t i = 0;
    for (; i + 4 < count; i += 4) {
        const quad a = *(const quad *)(const void *)(from + 2 * i), b = *(const quad *)(const void *)(from + 2 * i + 4);
        *(quad *)(void *)(even + i) = __builtin_shufflevector(a, b, 0, 2, 4, 6);
        if (odd) *(quad *)(void *)(odd + i) = __builtin_shufflevector(a, b, 1, 3, 5, 7);
    }
    for (; i < count; i++) {
        even[i] = from[2 * i];
        if (odd) odd[i] = from[2 * i + 1];
    }
}

/* Square tiles whose side fills a vector: of rows a and b, half a side apart, the elements are interleaved, and that as
 * often as the side is halved. */
typedef uint8_t bytes16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t pairs8 __attribute__((vector_size(16), aligned(1), may_alias));

#define DEFINE_SQUARE(width, side, rounds, vector, low, high)                                                          \
    static void square##width(const unit##width *from, int64_t from_step, unit##width *to, int64_t to_row)             \
    {                                                                                                                  \
        vector a[side], b[side];                                                                                       \
        for (int i = 0; i < side; i++) a[i] = *(const vector *)(const void *)(from + i * from_step);                   \
        for (int round = 0; round < rounds; round++) {                                                                 \
            for (int i = 0; i < side / 2; i++) {                                                                       \
                b[2 * i] = __builtin_shufflevector(a[i], a[i + side / 2], low);                                        \
                b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + side / 2], high);                                   \
            }                                                                                                          \
            memcpy(a, b, sizeof a);                                                                                    \
        }                                                                                                              \
        for (int i = 0; i < side; i++) *(vector *)(void *)(to + i * to_row) = a[i];                                    \
    }                                                                                                                  \
    static void tile_by_squares##width(const unit##width *from, int64_t from_step, unit##width *to, int64_t to_row,    \
                                       int64_t rows, int64_t count)                                                    \
    {                                                                                                                  \
        int64_t r = 0;                                                                                                 \
        for (; r + side <= rows; r += side) {                                                                          \
            int64_t i = 0;                                                                                             \
            for (; i + side <= count; i += side)                                                                       \
                square##width(from + r + i * from_step, from_step, to + r * to_row + i, to_row);                       \
            tile##width(from + r + i * from_step, from_step, to + r * to_row + i, to_row, side, count - i);            \
        }                                                                                                              \
        tile##width(from + r, from_step, to + r * to_row, to_row, rows - r, count);                                    \
    }
#define LIST(...) __VA_ARGS__
DEFINE_SQUARE(1, 16, 4, bytes16, LIST(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
              LIST(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))
DEFINE_SQUARE(2, 8, 3, pairs8, LIST(0, 8, 1, 9, 2, 10, 3, 11), LIST(4, 12, 5, 13, 6, 14, 7, 15))

/* Rows are neighbours in the source, elements of a row in the result. */
#define EACH_TILE(width, copy_tile)                                                                                    \
    do {                                                                                                               \
        const unit##width *from = (const unit##width *)(const void *)source;                                           \
        unit##width *to = (unit##width *)(void *)target;                                                               \
        for (int64_t i = 0; i < p->count; i += TILE) {                                                                 \
            int64_t count = p->count - i < TILE ? p->count - i : TILE;                                                 \
            copy_tile(from + i * p->from, p->from, to + i, p->to_row, p->rows, count);                                 \
        }                                                                                                              \
    } while (0)

/* A plane whose source and target run along different axes, tile by tile; `width` is one of 1, 2, 4, 8, 16 bytes. */
static void transpose_plane(const plane *p, size_t width, const char *source, char *target)
{
    if (width == 4 && p->rows == 2 && p->from == 2) {
        unzip((const unit4 *)(const void *)source, p->count, (unit4 *)(void *)target,
              (unit4 *)(void *)target + p->to_row);
        return;
    }
    switch (width) {
    case 1:
        EACH_TILE(1, tile_by_squares1);
        break;
    case 2:
        EACH_TILE(2, tile_by_squares2);
        break;
    case 4:
        EACH_TILE(4, tile_by_quads);
        break;
    case 8:
        EACH_TILE(8, tile8);
        break;
    default:
        EACH_TILE(16, tile16);
        break;
    }
}

/* A plane with any strides, row by row; `width` is one of 1, 2, 4, 8, 16 bytes. */
static void strided_plane(const plane *p, size_t width, const char *source, char *target)
{
    if (width == 4 && p->from == 2 && p->to == 1) {
        for (int64_t r = 0; r < p->rows; r++)
            unzip((const unit4 *)(const void *)source + r * p->from_row, p->count,
                  (unit4 *)(void *)target + r * p->to_row, NULL);
        return;
    }
    switch (width) {
    case 1:
        strided1(p, source, target);
        break;
    case 2:
        strided2(p, source, target);
        break;
    case 4:
        strided4(p, source, target);
        break;
    case 8:
        strided8(p, source, target);
        break;
    default:
        strided16(p, source, target);
        break;
    }
}

/* Rows of 8 to 64 bytes without a call for each: their two ends, `end` bytes of each, and for long ones what is
 * between; ends may overlap. `end` and `pieces` are constants after inlining. */
static inline __attribute__((always_inline)) void copy_ends(const plane *p, size_t width, const char *source,
                                                            char *target, const size_t end, const int pieces)
{
    const size_t last = (size_t)p->count * width - end;
    const int64_t from_row = p->from_row * (int64_t)width, to_row = p->to_row * (int64_t)width;
    for (int64_t r = 0; r < p->rows; r++, source += from_row, target += to_row) {
        for (int i = 0; i < pieces; i++) {
            memcpy(target + (size_t)i * end, source + (size_t)i * end, end);
            memcpy(target + last - (size_t)i * end, source + last - (size_t)i * end, end);
        }
    }
}

static void copy_nd_rows(const plane *p, size_t width, const char *source, char *target)
{
    const size_t bytes = (size_t)p->count * width;
    if (bytes >= 8 && bytes <= 16) {
        copy_ends(p, width, source, target, 8, 1);
    } else if (bytes > 16 && bytes <= 32) {
        copy_ends(p, width, source, target, 16, 1);
    } else if (bytes > 32 && bytes <= 64) {
        copy_ends(p, width, source, target, 16, 2);
    } else {
        for (int64_t r = 0; r < p->rows; r++)
            memcpy(target + r * p->to_row * (int64_t)width, source + r * p->from_row * (int64_t)width, bytes);
    }
}

/* ---- N axes */

/* Nothing to copy. The product of the other extents may then overflow. */
static bool is_empty(const prn_copy *copy)
{
    for (int i = 0; i < copy->rank; i++)
        if (copy->dim[i] == 0) return true;
    return false;
}

/* Drops axes of extent 1 and merges neighbours that are one axis in both views. */
static prn_copy merged(const prn_copy *copy)
{
    prn_copy out = {0};
    for (int i = 0; i < copy->rank; i++) {
        int last = out.rank - 1;
        if (copy->dim[i] == 1) continue;
        if (last >= 0 && out.from[last] == copy->from[i] * copy->dim[i] && out.to[last] == copy->to[i] * copy->dim[i]) {
            out.dim[last] *= copy->dim[i];
            out.from[last] = copy->from[i];
            out.to[last] = copy->to[i];
        } else {
            prn_copy_axis(&out, copy->dim[i], copy->from[i], copy->to[i]);
        }
    }
    return out;
}

/* A short run of elements at the end of both views becomes one unit, where everything is a whole number of them. */
static void copy_nd_widen(prn_copy *copy, size_t *width)
{
    const int last = copy->rank - 1;
    if (last < 1 || copy->from[last] != 1 || copy->to[last] != 1 || copy->dim[last] > (int64_t)(MOST_UNIT / *width))
        return;
    const int64_t run = copy->dim[last];
    if (run & (run - 1) || *width & (*width - 1)) return;
    for (int i = 0; i < last; i++)
        if (copy->from[i] % run || copy->to[i] % run) return;
    for (int i = 0; i < last; i++) {
        copy->from[i] /= run;
        copy->to[i] /= run;
    }
    copy->rank = last;
    *width *= (size_t)run;
}

static void take_axis(prn_copy *copy, int axis, int64_t *dim, int64_t *from, int64_t *to)
{
    *dim = copy->dim[axis];
    *from = copy->from[axis];
    *to = copy->to[axis];
    copy->rank--;
    for (int i = axis; i < copy->rank; i++) {
        copy->dim[i] = copy->dim[i + 1];
        copy->from[i] = copy->from[i + 1];
        copy->to[i] = copy->to[i + 1];
    }
}

typedef struct copy_work {
    prn_copy outer;
    plane plane;           /* `rows` is that of a whole plane */
    int64_t rows_per_item; /* a plane is cut into items of so many rows */
    int64_t items_per_plane;
    size_t width;
    const char *from;
    char *to;
    void (*copy_plane)(const plane *p, size_t width, const char *source, char *target);
} copy_work;

static void copy_nd_items(void *argument, int64_t begin, int64_t end)
{
    const copy_work *work = argument;
    const prn_copy *outer = &work->outer;
    for (int64_t item = begin; item < end; item++) {
        int64_t rest = item / work->items_per_plane, row = item % work->items_per_plane * work->rows_per_item;
        int64_t from = row * work->plane.from_row, to = row * work->plane.to_row;
        for (int axis = outer->rank - 1; axis >= 0; axis--) {
            int64_t index = rest % outer->dim[axis];
            rest /= outer->dim[axis];
            from += index * outer->from[axis];
            to += index * outer->to[axis];
        }
        plane part = work->plane;
        part.rows = part.rows - row < work->rows_per_item ? part.rows - row : work->rows_per_item;
        for (int64_t at = 0; at < work->plane.count && (at == 0 || !prn_cancelled()); at += LOOK_UP_ELEMENTS) {
            part.count = work->plane.count - at < LOOK_UP_ELEMENTS ? work->plane.count - at : LOOK_UP_ELEMENTS;
            work->copy_plane(&part, work->width, work->from + (from + at * part.from) * (int64_t)work->width,
                             work->to + (to + at * part.to) * (int64_t)work->width);
        }
    }
}

/* Merges axes, picks the two that make the planes (the contiguous one of the target, and of the source where it
 * differs), and copies planes in parallel. */
void prn_copy_native(int threads, size_t width, const prn_copy *copy, const void *from, void *to)
{
    if (is_empty(copy)) return;
    copy_work work = {.outer = merged(copy), .width = width, .from = from, .to = to};
    plane *p = &work.plane;
    int64_t total = (int64_t)width;
    *p = (plane){.rows = 1, .count = 1};
    for (int i = 0; i < copy->rank; i++) total *= copy->dim[i];
    copy_nd_widen(&work.outer, &work.width);
    width = work.width;
    int rank = work.outer.rank;
    if (rank == 1 && work.outer.from[0] == 1 && work.outer.to[0] == 1) {
        prn_copy_bytes(threads, from, to, (size_t)total);
        return;
    }
    if (rank > 0) take_axis(&work.outer, rank - 1, &p->count, &p->from, &p->to);
    int row_axis = rank - 2;
    work.copy_plane = p->from == 1 && p->to == 1 ? copy_nd_rows : strided_plane;
    for (int i = 0; i < rank - 1 && p->from != 1 && p->to == 1; i++) {
        if (work.outer.from[i] != 1) continue;
        row_axis = i;
        work.copy_plane = transpose_plane;
    }
    if (row_axis >= 0) take_axis(&work.outer, row_axis, &p->rows, &p->from_row, &p->to_row);
    int64_t row_bytes = p->count * (int64_t)width;
    work.rows_per_item = row_bytes < PIECE_BYTES / TILE ? PIECE_BYTES / 4 / row_bytes : 1;
    if (work.copy_plane == transpose_plane)
        work.rows_per_item = p->rows * row_bytes <= PIECE_BYTES / 4 ? p->rows : TILE;
    work.items_per_plane = prn_ceil_div(p->rows, work.rows_per_item);
    int64_t items = work.items_per_plane;
    for (int i = 0; i < work.outer.rank; i++) items *= work.outer.dim[i];
    prn_parallel_items(threads, items, total, copy_nd_items, &work);
}

/* Elements of `width` bytes, or of `bits` bits where that is 0. */
static void copy_elements(size_t width, unsigned bits, const prn_copy *copy, const void *from, void *to)
{
    int64_t total = 1;
    if (is_empty(copy)) return;
    for (int i = 0; i < copy->rank; i++) total *= copy->dim[i];
    for (int64_t element = 0; element < total; element++) {
        if (element % LOOK_UP_ELEMENTS == 0 && prn_cancelled()) return;
        int64_t rest = element, f = 0, t = 0;
        for (int axis = copy->rank - 1; axis >= 0; axis--) {
            int64_t index = rest % copy->dim[axis];
            rest /= copy->dim[axis];
            f += index * copy->from[axis];
            t += index * copy->to[axis];
        }
        if (width > 0) {
            memcpy((char *)to + t * (int64_t)width, (const char *)from + f * (int64_t)width, width);
        } else {
            prn_qint8_put(to, bits, t, prn_qint8_get(from, bits, f));
        }
    }
}

void prn_copy_reference(int threads, size_t width, const prn_copy *copy, const void *from, void *to)
{
    (void)threads;
    copy_elements(width, 0, copy, from, to);
}

void prn_copy_packed(prony_dtype dtype, const prn_copy *copy, const void *from, void *to)
{
    copy_elements(0, (unsigned)prn_dtype_bits(dtype), copy, from, to);
}

typedef struct bytes_work {
    const char *from;
    char *to;
    size_t bytes;
} bytes_work;

static void copy_pieces(void *argument, int64_t begin, int64_t end)
{
    const bytes_work *work = argument;
    size_t first = (size_t)begin * PIECE_BYTES, last = (size_t)end * PIECE_BYTES;
    if (last > work->bytes) last = work->bytes;
    memcpy(work->to + first, work->from + first, last - first);
}

void prn_copy_bytes(int threads, const void *from, void *to, size_t bytes)
{
    if (from == to || bytes == 0) return;
    bytes_work work = {from, to, bytes};
    prn_parallel_items(threads, (int64_t)((bytes - 1) / PIECE_BYTES + 1), (int64_t)bytes, copy_pieces, &work);
}

/* ---- types */

size_t prn_copy_width(prony_dtype dtype)
{
    if (dtype == PRONY_STRING) return sizeof(prony_string);
    return prn_dtype_bits(dtype) / 8;
}

prony_status prn_check_movable(const prony_context *context, size_t input)
{
    const prony_value *in = prn_input(context, input);
    char text[PRN_SHAPE_TEXT_BYTES];
    PRN_TRY(prn_check_tensor(context, input));
    if (!in || prn_copy_width(in->dtype)) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "input %zu is %s; elements below one byte are not supported here",
                      input, prn_value_text(in, text));
}
