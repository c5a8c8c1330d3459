/* Resize where it is common: nearest neighbours of any type, and linear float32 and bytes over the last two axes, in plain,
 * channels-last and blocked layouts alike. The result is seen as rows of [columns][lanes]: the lanes (one element, all
 * channels, or a block of them) share their coordinates.
 * Invariant: a row depends on its number alone. Padding lanes are zero because they are made of padding lanes. */
#include "ops/vision/resize.h"

#include "base/stop.h"
#include "base/parallel.h"
#include "ops/loops/copy_nd.h"

#include <string.h>

#define COLUMNS 1024      /* of a table of coordinates on the stack */
#define FEW_LANES 16      /* one, or a block of channels */
#define BLENDED 4096      /* elements of them, of a source row on the stack */
#define LOOK_UP (1 << 18) /* elements between two looks at whether to go on */

typedef struct row_work {
    prn_resize resize;
    int column_axis;                                     /* of the shape */
    int rank;                                            /* axes of a row's number; the last one is the row axis */
    int logical[PRONY_MAX_RANK];                         /* their places in the shape */
    int64_t dim[PRONY_MAX_RANK], stride[PRONY_MAX_RANK]; /* in rows of the result; source stride in lanes groups */
    int64_t in_columns, out_columns, lanes;
    size_t lane_bytes;
    const char *in; /* in a run */
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

bool prn_resize_nearest_usable(const prony_context *context)
{
    prn_resize resize;
    return prn_resize_known(context, &resize) && resize.mode == PRN_RESIZE_NEAREST;
}

bool prn_resize_linear_usable(const prony_context *context)
{
    prn_resize resize;
    if (!prn_resize_known(context, &resize) || resize.mode != PRN_RESIZE_LINEAR || resize.antialias || resize.rank < 2)
        return false;
    for (int i = 0; i < last_resized(&resize) - 1; i++) {
        if (!resize.axis[i].same) return false;
    }
    return true;
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

prony_status prn_resize_rows_prepare(const prony_context *context, prn_prepared *prepared)
{
    const prony_value *in = context->inputs[0], *out = context->outputs[0];
    row_work made = {.is_signed = in->dtype == PRONY_INT8}, *work = &made;
    prn_layout layout = (prn_layout)in->layout;
    prony_shape from = prn_stored_shape(&in->shape, layout), to = prn_stored_shape(&out->shape, layout);
    bool known;
    PRN_TRY(prn_resize_read(context, &work->resize, &known));
    const int rank = in->shape.rank;
    work->column_axis = layout == PRN_PLAIN ? last_resized(&work->resize) : rank - 1;
    const int column = prn_stored_axis(rank, layout, work->column_axis);
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
    return prn_prepared_keep(context, work, sizeof *work, prepared);
}

/* Where rows come from, asked for one after another. */
typedef struct row_source {
    const row_work *work;
    int64_t plane, plane_offset; /* of the last row that was asked for: what stands before the row axis */
    int64_t low, high;           /* offsets of the source rows, in groups of lanes; the same one where nothing is blended */
    double weight[2];            /* of both */
} row_source;

static row_source row_source_of(const row_work *work)
{
    return (row_source){.work = work, .plane = -1};
}

static void find_plane(row_source *source, int64_t plane)
{
    const row_work *work = source->work;
    source->plane = plane;
    source->plane_offset = 0;
    for (int i = work->rank - 2; i >= 0; i--) {
        const int64_t position = plane % work->dim[i];
        plane /= work->dim[i];
        source->plane_offset += prn_resize_taps_at(&work->resize, work->logical[i], position, NULL).index[0] * work->stride[i];
    }
}

/* Of linear kernels the row axis alone is blended. */
static void find_source(row_source *source, int64_t row)
{
    const row_work *work = source->work;
    const int axis = work->rank - 1;
    const int64_t rows = axis < 0 ? 1 : work->dim[axis], plane = row / rows;
    source->weight[0] = 1.0;
    source->weight[1] = 0.0;
    if (plane != source->plane) find_plane(source, plane);
    source->low = source->high = source->plane_offset;
    if (axis < 0) return;
    const prn_taps taps = prn_resize_taps_at(&work->resize, work->logical[axis], row - plane * rows, NULL);
    source->low += taps.index[0] * work->stride[axis];
    source->high += taps.index[taps.count - 1] * work->stride[axis];
    if (taps.count == 2) memcpy(source->weight, taps.weight, sizeof source->weight);
}

/* ---- nearest */

#define COPY_COLUMNS(type)                                                                                             \
    for (int64_t x = 0; x < count; x++)                                                                                \
    memcpy(to + (size_t)x * sizeof(type), from + index[x] * sizeof(type), sizeof(type))

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
                prn_stop_copy(to + (size_t)x * bytes, from + index[x] * bytes, bytes);
        }
        break;
    }
}

static void nearest_rows(void *argument, int64_t begin, int64_t end)
{
    const row_work *work = argument;
    size_t index[COLUMNS], bytes = work->lane_bytes;
    for (int64_t first = 0; first < work->out_columns && (first == 0 || !prn_stopped()); first += COLUMNS) {
        int64_t count = work->out_columns - first < COLUMNS ? work->out_columns - first : COLUMNS;
        for (int64_t x = 0; x < count; x++) {
            index[x] = (size_t)prn_resize_taps_at(&work->resize, work->column_axis, first + x, NULL).index[0];
        }
        row_source source = row_source_of(work);
        for (int64_t row = begin; row < end; row++) {
            find_source(&source, row);
            copy_columns(work->in + (size_t)source.low * bytes, work->out + (size_t)(row * work->out_columns + first) * bytes, index, count, bytes);
        }
    }
}

static prony_status run_rows(const prony_context *context, void (*rows)(void *argument, int64_t begin, int64_t end),
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
    return run_rows(context, nearest_rows, 2);
}

/* ---- linear */

typedef struct columns {
    int64_t low[COLUMNS], high[COLUMNS]; /* in elements */
    float ratio[COLUMNS];
    int64_t count;
} columns;

static void blend_across(const columns *c, const float *row, int64_t lanes, float *to)
{
    for (int64_t x = 0; x < c->count; x++) {
        const float *a = row + c->low[x], *b = row + c->high[x], ratio = c->ratio[x];
        for (int64_t k = 0; k < lanes; k++) to[x * lanes + k] = a[k] + ratio * (b[k] - a[k]);
    }
}

static void blend_down(const float *above, const float *below, float down, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++) to[i] = above[i] + down * (below[i] - above[i]);
}

/* A source row that was blended along the columns serves every row that is made of it. */
static void rows_of_few_lanes(const row_work *work, const columns *c, int64_t first, int64_t begin, int64_t end)
{
    float blended[2][BLENDED];
    int64_t held[2] = {-1, -1}; /* source rows that they are of */
    const int64_t lanes = work->lanes;
    const float *in = (const float *)(const void *)work->in;
    float *out = (float *)(void *)work->out;
    row_source source = row_source_of(work);
    for (int64_t row = begin; row < end; row++) {
        find_source(&source, row);
        const int64_t at[2] = {source.low, source.high};
        const int top = held[1] == at[0];
        for (int k = 0; k < 2; k++) {
            const int place = k ? !top : top;
            if (held[place] == at[k] || (k && at[1] == at[0])) continue;
            if (lanes == 1)
                blend_across(c, in + at[k], 1, blended[place]);
            else
                blend_across(c, in + at[k] * lanes, lanes, blended[place]);
            held[place] = at[k];
        }
        blend_down(blended[top], blended[at[1] == at[0] ? top : !top], (float)source.weight[1], c->count * lanes,
                   out + (row * work->out_columns + first) * lanes);
    }
}

/* Lanes [begin, end) of every column. */
static void blend_some_lanes(const columns *c, const float *top, const float *bottom, float down, float *to, int64_t lanes,
                             int64_t begin, int64_t end)
{
    for (int64_t x = 0; x < c->count; x++) {
        const float *a = top + c->low[x], *b = top + c->high[x], *d = bottom + c->low[x], *e = bottom + c->high[x];
        float ratio = c->ratio[x];
        for (int64_t k = begin; k < end; k++) {
            float above = a[k] + ratio * (b[k] - a[k]), below = d[k] + ratio * (e[k] - d[k]);
            to[x * lanes + k] = above + down * (below - above);
        }
    }
}

static void rows_of_many_lanes(const row_work *work, const columns *c, int64_t first, int64_t begin, int64_t end)
{
    const int64_t run = LOOK_UP / COLUMNS, lanes = work->lanes;
    const float *in = (const float *)(const void *)work->in;
    float *out = (float *)(void *)work->out;
    row_source source = row_source_of(work);
    for (int64_t row = begin; row < end; row++) {
        find_source(&source, row);
        const float *top = in + source.low * lanes, *bottom = in + source.high * lanes;
        float *to = out + (row * work->out_columns + first) * lanes;
        for (int64_t k = 0; k < lanes && (k == 0 || !prn_stopped()); k += run)
            blend_some_lanes(c, top, bottom, (float)source.weight[1], to, lanes, k, lanes - k < run ? lanes : k + run);
    }
}

static void linear_rows(void *argument, int64_t begin, int64_t end)
{
    const row_work *work = argument;
    const int64_t lanes = work->lanes, fitting = lanes <= FEW_LANES ? BLENDED / lanes : COLUMNS, most = fitting < COLUMNS ? fitting : COLUMNS;
    columns c;
    for (int64_t first = 0; first < work->out_columns && (first == 0 || !prn_stopped()); first += most) {
        c.count = work->out_columns - first < most ? work->out_columns - first : most;
        for (int64_t x = 0; x < c.count; x++) {
            prn_taps taps = prn_resize_taps_at(&work->resize, work->column_axis, first + x, NULL);
            c.low[x] = taps.index[0] * lanes;
            c.high[x] = taps.index[taps.count - 1] * lanes;
            c.ratio[x] = taps.count == 2 ? (float)taps.weight[1] : 0.0f;
        }
        if (lanes <= FEW_LANES)
            rows_of_few_lanes(work, &c, first, begin, end);
        else
            rows_of_many_lanes(work, &c, first, begin, end);
    }
}

prony_status prn_resize_linear_native(const prony_context *context)
{
    return run_rows(context, linear_rows, 4);
}

/* ---- linear on bytes, in double and in the reference's order, which cuts the result off: a number that is whole but for its last place
 * would be another one otherwise. A source row that was blended along the columns serves every row that is made of it. */

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
    static void blend_down_##name(const double weight[2], const double *top, const double *bottom, type *to, int64_t n) \
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
            blend_down_##name(source.weight, blended[top], blended[at[1] == at[0] ? top : !top],                              \
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
    for (int64_t first = 0; first < elements && (first == 0 || !prn_stopped()); first += COLUMNS) {
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
    return run_rows(context, linear_byte_rows, 16);
}
