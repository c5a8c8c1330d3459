/* Resize where it is common: nearest neighbours of any type, and linear float32 and bytes over the last two axes, in
 * plain, channels-last and blocked layouts alike. The result is seen as rows of [columns][lanes]: the lanes (one
 * element, all channels, or a block of them) share their coordinates. Invariant: a row depends on its number alone.
 * Padding lanes are zero because they are made of padding lanes. */
#include "ops/vision/resize.h"

#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/vision/resize_simd.h"

#include <string.h>

PRN_SIMD_PICK(prn_resize_simd, prn_resize_simd_, static const prn_resize_simd *resize_native_simd_table)

#define COLUMNS 1024 /* of a table of coordinates on the stack */
#define FEW_LANES 64
#define BLENDED 4096                          /* elements of them, of a source row on the stack */
#define LOOK_UP (1 << 18)                     /* elements between two looks at whether to go on */
#define LONGEST (INT32_MAX / PRN_RESIZE_WIDE) /* columns of a source row whose places are int32 */
#define KEPT (1 << 16) /* entries of a table that lasts; those of longer axes are made again in every task */

/* The source of a row along the row axis. */
typedef struct row_taps {
    int64_t low, high;
    double weight[2];
} row_taps;

typedef struct row_work {
    prn_resize resize;
    int column_axis;                                     /* of the shape */
    int rank;                                            /* axes of a row's number; the last one is the row axis */
    int logical[PRONY_MAX_RANK];                         /* their places in the shape */
    int64_t dim[PRONY_MAX_RANK], stride[PRONY_MAX_RANK]; /* in rows of the result; source stride in lanes groups */
    int64_t in_columns, out_columns, lanes;
    size_t lane_bytes;
    const row_taps *rows; /* of the row axis; NULL: not kept */
    prn_resize_line line; /* of linear float32; tables NULL: not kept */
    const char *in;       /* in a run */
    char *out;
    bool is_signed; /* bytes */
} row_work;

bool prn_resize_known(const prony_context *context, prn_resize *resize)
{
    bool known;
    prony_context quiet = *context;
    quiet.error = NULL;
    return prn_resize_read(&quiet, resize, &known) == PRONY_OK && known && resize->rank > 0 &&
           resize->coordinate != PRN_RESIZE_TF_CROP_AND_RESIZE;
}

/* The axes behind it are lanes in a plain tensor. */
static int last_resized(const prn_resize *resize)
{
    int axis = resize->rank - 1;
    while (axis > 1 && resize->axis[axis].same) axis--;
    return axis;
}

bool prn_resize_nearest_supported(const prony_context *context)
{
    prn_resize resize;
    return prn_resize_known(context, &resize) && resize.mode == PRN_RESIZE_NEAREST;
}

bool prn_resize_linear_supported(const prony_context *context)
{
    prn_resize resize;
    if (!prn_resize_known(context, &resize) || resize.mode != PRN_RESIZE_LINEAR || resize.antialias || resize.rank < 2)
        return false;
    for (int i = 0; i < last_resized(&resize) - 1; i++) {
        if (!resize.axis[i].same) return false;
    }
    return resize.axis[last_resized(&resize)].in <= LONGEST && resize.axis[resize.rank - 1].in <= LONGEST;
}

void prn_resize_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prony_value *value = context->inputs[0];
    prn_resize resize;
    if (value->shape.rank < 4 || value->shape.rank >= PRONY_MAX_RANK || !prn_resize_known(context, &resize)) return;
    if (resize.axis[1].same) in[0] = out[0] = (prn_layout)value->layout;
}

/* In other layouts than the plain one columns are the last axis, and rows, which alone are blended, the one before. */
void prn_resize_linear_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    prn_resize resize;
    prn_resize_layouts(context, in, out);
    if (in[0] == PRN_PLAIN || !prn_resize_known(context, &resize)) return;
    for (int i = 0; i < resize.rank - 2; i++)
        if (!resize.axis[i].same) in[0] = out[0] = PRN_PLAIN;
}

/* The sources of rows, asked for one after another. */
typedef struct row_source {
    const row_work *work;
    int64_t first_row, plane_offset; /* of the plane of the last row that was asked for: what stands before the row
                                        axis */
    int64_t low, high;               /* offsets of the source rows, in groups of lanes; the same one where nothing is
                                    blended */
    double weight[2];                /* of both */
} row_source;

static row_source row_source_of(const row_work *work)
{
    return (row_source){.work = work, .first_row = -1};
}

static void find_plane(row_source *source, int64_t plane)
{
    const row_work *work = source->work;
    source->plane_offset = 0;
    for (int i = work->rank - 2; i >= 0; i--) {
        const int64_t position = plane % work->dim[i];
        plane /= work->dim[i];
        const bool same = work->resize.axis[work->logical[i]].same;
        const int64_t at =
            same ? position : prn_resize_taps_at(&work->resize, work->logical[i], position, NULL).index[0];
        source->plane_offset += at * work->stride[i];
    }
}

static row_taps resize_native_find_row(const row_work *work, int64_t position)
{
    const int axis = work->rank - 1;
    const prn_taps taps = prn_resize_taps_at(&work->resize, work->logical[axis], position, NULL);
    row_taps found = {taps.index[0] * work->stride[axis], taps.index[taps.count - 1] * work->stride[axis], {1.0, 0.0}};
    if (taps.count == 2) memcpy(found.weight, taps.weight, sizeof found.weight);
    return found;
}

/* Of linear kernels the row axis alone is blended. */
static void find_source(row_source *source, int64_t row)
{
    const row_work *work = source->work;
    const int axis = work->rank - 1;
    const int64_t rows = axis < 0 ? 1 : work->dim[axis];
    int64_t position = row - source->first_row;
    if (source->first_row < 0 || position >= rows) {
        source->first_row = row / rows * rows;
        position = row - source->first_row;
        find_plane(source, row / rows);
    }
    const row_taps at = axis < 0 ? (row_taps){.weight = {1.0, 0.0}}
                                 : (work->rows ? work->rows[position] : resize_native_find_row(work, position));
    source->low = source->plane_offset + at.low;
    source->high = source->plane_offset + at.high;
    memcpy(source->weight, at.weight, sizeof source->weight);
}

/* Entries [first, first + count) of a result's row, and what is to stand behind them. */
static void find_entries(const row_work *work, int64_t first, int64_t count, int32_t *low, int32_t *high, float *ratio)
{
    const int64_t each = work->lanes < PRN_RESIZE_WIDE ? work->lanes : 1;
    prn_taps taps = {0};
    for (int64_t i = 0; i < count; i++) {
        const int64_t column = (first + i) / each, lane = (first + i) % each;
        if (i == 0 || lane == 0) taps = prn_resize_taps_at(&work->resize, work->column_axis, column, NULL);
        low[i] = (int32_t)(taps.index[0] * each + lane);
        high[i] = (int32_t)(taps.index[taps.count - 1] * each + lane);
        ratio[i] = taps.count == 2 ? (float)taps.weight[1] : 0.0f;
    }
    for (int64_t i = count; i < count + PRN_RESIZE_BEHIND && count > 0; i++) {
        low[i] = low[count - 1];
        high[i] = high[count - 1];
        ratio[i] = ratio[count - 1];
    }
}

/* A problem with what is kept of its tables behind it. */
static prony_status keep_work(const prony_context *context, const row_work *work, int64_t rows, int64_t entries,
                              prn_prepared *prepared)
{
    const int64_t places = entries > 0 ? entries + PRN_RESIZE_BEHIND : 0;
    row_work *kept = prn_alloc(sizeof *kept + (size_t)rows * sizeof(row_taps) +
                               (size_t)places * (2 * sizeof(int32_t) + sizeof(float)));
    if (!kept) return prn_no_memory(context->error);
    *kept = *work;
    row_taps *taps = (row_taps *)(void *)(kept + 1);
    int32_t *low = (int32_t *)(void *)(taps + rows), *high = low + places;
    float *ratio = (float *)(void *)(high + places);
    if (rows > 0) kept->rows = taps;
    for (int64_t i = 0; i < rows; i++) taps[i] = resize_native_find_row(work, i);
    if (entries > 0) {
        find_entries(work, 0, entries, low, high, ratio);
        kept->line.low = low;
        kept->line.high = high;
        kept->line.ratio = ratio;
    }
    prepared->state = kept;
    return PRONY_OK;
}

/* Plans rows: the axis along which a row is resized, strides of the others in the layout, and tables of indices where
 * they are short enough to keep. */
prony_status prn_resize_rows_prepare(const prony_context *context, prn_prepared *prepared)
{
    const prony_value *in = context->inputs[0], *out = context->outputs[0];
    row_work made = {.is_signed = in->dtype == PRONY_INT8}, *work = &made;
    prn_layout layout = (prn_layout)in->layout;
    prony_shape from = prn_lowbit_shape(&in->shape, layout), to = prn_lowbit_shape(&out->shape, layout);
    bool known;
    PRN_TRY(prn_resize_read(context, &work->resize, &known));
    const int rank = in->shape.rank;
    work->column_axis = layout == PRN_PLAIN ? last_resized(&work->resize) : rank - 1;
    const int column = prn_lowbit_axis(rank, layout, work->column_axis);
    work->rank = column;
    work->in_columns = from.dim[column];
    work->out_columns = to.dim[column];
    work->lanes = prn_shape_count(&to, column + 1, to.rank);
    work->lane_bytes = (size_t)work->lanes * prn_copy_width(in->dtype);
    for (int i = 0; i < column; i++) {
        work->logical[i] = layout == PRN_NHWC && i > 0 ? i + 1 : i;
        work->dim[i] = to.dim[i];
        work->stride[i] = prn_shape_count(&from, i + 1, column + 1);
    }
    const bool wide = work->lanes >= PRN_RESIZE_WIDE;
    work->line.lanes = work->lanes;
    work->line.width = wide ? work->in_columns : work->in_columns * work->lanes;
    work->line.count = wide ? work->out_columns : work->out_columns * work->lanes;
    const bool blends = work->resize.mode == PRN_RESIZE_LINEAR && in->dtype != PRONY_INT8 && in->dtype != PRONY_UINT8;
    const int64_t rows = work->rank > 0 ? work->dim[work->rank - 1] : 0;
    return keep_work(context, work, rows <= KEPT ? rows : 0, blends && work->line.count <= KEPT ? work->line.count : 0,
                     prepared);
}

/* ---- nearest */

#define COPY_COLUMNS(type)                                                                                             \
    for (int64_t x = 0; x < count; x++)                                                                                \
    memcpy(to + (size_t)x * sizeof(type), from + index[x] * sizeof(type), sizeof(type))

/* Copies column index[x] to column x; the common widths have loops of their own. */
static void copy_columns(const char *from, char *to, const size_t *index, int64_t count, size_t bytes)
{
    typedef struct block8 {
        float lane[8];
    } block8;
    typedef struct block16 {
        float lane[16];
    } block16;
    switch (bytes) {
    case 1:
        COPY_COLUMNS(uint8_t);
        break;
    case 4:
        COPY_COLUMNS(uint32_t);
        break;
    case sizeof(block8):
        COPY_COLUMNS(block8);
        break;
    case sizeof(block16):
        COPY_COLUMNS(block16);
        break;
    default:
        for (int64_t x = 0; x < count; x++) {
            if (bytes < LOOK_UP)
                memcpy(to + (size_t)x * bytes, from + index[x] * bytes, bytes);
            else
                prn_cancellable_copy(to + (size_t)x * bytes, from + index[x] * bytes, bytes);
        }
        break;
    }
}

static void nearest_rows(void *argument, int64_t begin, int64_t end)
{
    const row_work *work = argument;
    size_t index[COLUMNS], bytes = work->lane_bytes;
    for (int64_t first = 0; first < work->out_columns && (first == 0 || !prn_cancelled()); first += COLUMNS) {
        int64_t count = work->out_columns - first < COLUMNS ? work->out_columns - first : COLUMNS;
        for (int64_t x = 0; x < count; x++) {
            index[x] = (size_t)prn_resize_taps_at(&work->resize, work->column_axis, first + x, NULL).index[0];
        }
        row_source source = row_source_of(work);
        for (int64_t row = begin; row < end; row++) {
            find_source(&source, row);
            copy_columns(work->in + (size_t)source.low * bytes,
                         work->out + (size_t)(row * work->out_columns + first) * bytes, index, count, bytes);
        }
    }
}

static prony_status resize_native_run_rows(const prony_context *context,
                                           void (*rows)(void *argument, int64_t begin, int64_t end),
                                           int64_t bytes_per_byte)
{
    row_work work = *(const row_work *)context->state;
    int64_t count = 1;
    work.in = context->inputs[0]->data;
    work.out = context->outputs[0]->data;
    for (int i = 0; i < work.rank; i++) count *= work.dim[i];
    int64_t bytes = count * work.out_columns * (int64_t)work.lane_bytes;
    if (bytes > 0) prn_parallel_items(context->threads, count, bytes * bytes_per_byte, rows, &work);
    return PRONY_OK;
}

prony_status prn_resize_nearest_native(const prony_context *context)
{
    return resize_native_run_rows(context, nearest_rows, 2);
}

/* ---- linear */

/* True if source rows are blended one by one and kept. Columns of whole vectors are sooner blended in one go: the rows
 * would be stored and loaded again for little. */
static bool blends_rows(const row_work *work)
{
    return work->lanes <= FEW_LANES && work->lanes % 16 != 0;
}

/* A source row that was blended along its columns serves every row that is made of it. `first`: the line's first
 * entry. */
static void rows_one_by_one(const row_work *work, const prn_resize_line *line, int64_t first, int64_t begin,
                            int64_t end)
{
    float blended[2][BLENDED + PRN_RESIZE_BEHIND];
    int64_t held[2] = {-1, -1}; /* source rows that they are of */
    const prn_resize_simd *with = resize_native_simd_table();
    const bool wide = work->lanes >= PRN_RESIZE_WIDE;
    const int64_t elements = wide ? line->count * work->lanes : line->count;
    const float *in = (const float *)(const void *)work->in;
    float *out = (float *)(void *)work->out + (wide ? first * work->lanes : first);
    row_source source = row_source_of(work);
    for (int64_t row = begin; row < end; row++) {
        find_source(&source, row);
        const int64_t at[2] = {source.low, source.high};
        const int top = held[1] == at[0];
        for (int k = 0; k < 2; k++) {
            const int place = k ? !top : top;
            if (held[place] == at[k] || (k && at[1] == at[0])) continue;
            (wide ? with->across_columns : with->across)(line, in + at[k] * work->lanes, blended[place]);
            held[place] = at[k];
        }
        with->down(blended[top], blended[at[1] == at[0] ? top : !top], (float)source.weight[1], elements,
                   out + row * work->out_columns * work->lanes);
    }
}

static void rows_in_pairs(const row_work *work, const prn_resize_line *line, int64_t first, int64_t begin, int64_t end)
{
    const int64_t run = LOOK_UP / COLUMNS, lanes = work->lanes;
    const prn_resize_simd *with = resize_native_simd_table();
    const float *in = (const float *)(const void *)work->in;
    float *out = (float *)(void *)work->out;
    row_source source = row_source_of(work);
    for (int64_t row = begin; row < end; row++) {
        find_source(&source, row);
        const float *top = in + source.low * lanes, *bottom = in + source.high * lanes;
        float *to = out + (row * work->out_columns + first) * lanes;
        for (int64_t k = 0; k < lanes && (k == 0 || !prn_cancelled()); k += run)
            with->lanes(line, top, bottom, (float)source.weight[1], to, k, lanes - k < run ? lanes : k + run);
    }
}

/* Rows [begin, end), in stretches of columns whose indices and ratios fit on the stack, from the kept tables or made
 * here. */
static void resize_native_linear_rows(void *argument, int64_t begin, int64_t end)
{
    const row_work *work = argument;
    const int64_t entries = work->line.count, each = work->lanes < PRN_RESIZE_WIDE ? 1 : work->lanes;
    const int64_t most = blends_rows(work) && BLENDED / each < COLUMNS ? BLENDED / each : COLUMNS;
    int32_t low[COLUMNS + PRN_RESIZE_BEHIND], high[COLUMNS + PRN_RESIZE_BEHIND];
    float ratio[COLUMNS + PRN_RESIZE_BEHIND];
    prn_resize_line line = work->line;
    for (int64_t first = 0; first < entries && (first == 0 || !prn_cancelled()); first += most) {
        line.count = entries - first < most ? entries - first : most;
        if (work->line.low) {
            line.low = work->line.low + first;
            line.high = work->line.high + first;
            line.ratio = work->line.ratio + first;
        } else {
            find_entries(work, first, line.count, low, high, ratio);
            line.low = low;
            line.high = high;
            line.ratio = ratio;
        }
        if (blends_rows(work))
            rows_one_by_one(work, &line, first, begin, end);
        else
            rows_in_pairs(work, &line, first, begin, end);
    }
}

prony_status prn_resize_linear_native(const prony_context *context)
{
    return resize_native_run_rows(context, resize_native_linear_rows, 4);
}

/* ---- linear on bytes, in double and in the reference's order, which cuts the result off: a number that is whole but
 * for its last place would be another one otherwise. A source row that was blended along the columns serves every row
 * that is made of it. */

typedef struct byte_columns {
    int64_t low[COLUMNS], high[COLUMNS]; /* in elements */
    double first[COLUMNS], second[COLUMNS];
    int64_t count;
} byte_columns;

#define DEFINE_BYTES(name, type)                                                                                       \
    static void blend_across_##name(const byte_columns *c, const type *row, double *to)                                \
    {                                                                                                                  \
        for (int64_t x = 0; x < c->count; x++)                                                                         \
            to[x] = c->first[x] * (double)row[c->low[x]] + c->second[x] * (double)row[c->high[x]];                     \
    }                                                                                                                  \
    static void blend_down_##name(const double weight[2], const double *top, const double *bottom, type *to,           \
                                  int64_t n)                                                                           \
    {                                                                                                                  \
        for (int64_t x = 0; x < n; x++) to[x] = (type)(int32_t)(weight[0] * top[x] + weight[1] * bottom[x]);           \
    }                                                                                                                  \
    static void rows_##name(const row_work *work, const byte_columns *c, int64_t first, int64_t begin, int64_t end)    \
    {                                                                                                                  \
        double blended[2][COLUMNS];                                                                                    \
        int64_t held[2] = {-1, -1}; /* source rows that they are of */                                                 \
        row_source source = row_source_of(work);                                                                       \
        for (int64_t row = begin; row < end; row++) {                                                                  \
            find_source(&source, row);                                                                                 \
            const int64_t at[2] = {source.low, source.high};                                                           \
            const int top = held[1] == at[0];                                                                          \
            for (int k = 0; k < 2; k++) {                                                                              \
                const int place = k ? !top : top;                                                                      \
                if (held[place] == at[k] || (k && at[1] == at[0])) continue;                                           \
                blend_across_##name(c, (const type *)(const void *)work->in + at[k] * work->lanes, blended[place]);    \
                held[place] = at[k];                                                                                   \
            }                                                                                                          \
            blend_down_##name(source.weight, blended[top], blended[at[1] == at[0] ? top : !top],                       \
                              (type *)(void *)work->out + row * work->out_columns * work->lanes + first, c->count);    \
        }                                                                                                              \
    }
DEFINE_BYTES(u8, uint8_t)
DEFINE_BYTES(i8, int8_t)

/* Elements of a row, lanes of all columns, a table full at a time. */
static void linear_byte_rows(void *argument, int64_t begin, int64_t end)
{
    const row_work *work = argument;
    const int64_t elements = work->out_columns * work->lanes;
    byte_columns c;
    for (int64_t first = 0; first < elements && (first == 0 || !prn_cancelled()); first += COLUMNS) {
        c.count = elements - first < COLUMNS ? elements - first : COLUMNS;
        for (int64_t i = 0; i < c.count; i++) {
            const int64_t lane = (first + i) % work->lanes;
            const prn_taps taps = prn_resize_taps_at(&work->resize, work->column_axis, (first + i) / work->lanes, NULL);
            c.low[i] = taps.index[0] * work->lanes + lane;
            c.high[i] = taps.index[taps.count - 1] * work->lanes + lane;
            c.first[i] = taps.count == 2 ? taps.weight[0] : 1.0;
            c.second[i] = taps.count == 2 ? taps.weight[1] : 0.0;
        }
        if (work->is_signed)
            rows_i8(work, &c, first, begin, end);
        else
            rows_u8(work, &c, first, begin, end);
    }
}

prony_status prn_resize_linear_bytes(const prony_context *context)
{
    return resize_native_run_rows(context, linear_byte_rows, 16);
}
