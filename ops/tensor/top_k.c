/* TopK: the largest or smallest along an axis, with their positions.
 * Every element becomes a 64-bit key whose order is that of the values (NaN above all, zeros alike), so that one loop
 * serves every type. Invariant: order is total, by key and then by position, hence results do not depend on how they
 * are found. */
#include "base/integers.h"
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

/* Larger key: comes first. */
static inline int64_t key_at(const prony_value *value, int64_t at, bool largest)
{
    int64_t key;
    if (value->dtype == PRONY_FLOAT32) {
        float x = ((const float *)value->data)[at] + 0.0f; /* one zero */
        int32_t bits = (int32_t)prn_f32_bits(x);
        key = x != x ? INT64_MAX : (bits < 0 ? (int64_t)INT32_MIN - bits : bits);
    } else if (prn_dtype_is_float(value->dtype)) {
        double x = prn_get_f64(value->data, value->dtype, at) + 0.0;
        memcpy(&key, &x, sizeof key);
        key = x != x ? INT64_MAX : (key < 0 ? INT64_MIN - key : key);
    } else {
        key = prn_get_i64(value->data, value->dtype, at);
        if (value->dtype == PRONY_UINT64) key ^= INT64_MIN;
    }
    return largest ? key : ~key;
}

/* A line of elements along the axis. */
typedef struct line {
    const prony_value *value;
    int64_t first, step, count;
    bool largest;
} line;

static inline int64_t line_key(const line *l, int64_t i)
{
    return key_at(l->value, l->first + i * l->step, l->largest);
}

/* [outer, extent, inner] around an axis. */
typedef struct axis_view {
    int64_t outer, extent, inner;
} axis_view;

static axis_view view_axis(const prony_shape *shape, int64_t axis)
{
    int at = (int)(axis < 0 ? axis + shape->rank : axis);
    return (axis_view){prn_shape_count(shape, 0, at), shape->dim[at], prn_shape_count(shape, at + 1, shape->rank)};
}

static line line_of(const prony_value *value, const axis_view *view, int64_t number, bool largest)
{
    int64_t first = number / view->inner * view->extent * view->inner + number % view->inner;
    return (line){value, first, view->inner, view->extent, largest};
}

typedef struct top_k_params {
    int64_t axis, k, largest, sorted;
} top_k_params;

static const prn_param top_k_attributes[] = {PRN_INT(top_k_params, axis, -1),
                                             PRN_INT(top_k_params, k, PRN_ABSENT),
                                             PRN_INT(top_k_params, largest, 1),
                                             PRN_INT(top_k_params, sorted, 1),
                                             {0}};

/* Values and indices have the input's shape with k on the axis; k is an input since opset 10. */
static prony_status top_k_infer(const prony_context *context)
{
    const top_k_params *params = context->params;
    const prony_value *in = context->inputs[0];
    int64_t axis = params->axis, k = params->k;
    bool known = true;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    if (!prn_axis_normalize(&axis, in->shape.rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis,
                          in->shape.rank);
    }
    if (context->node->opset >= 10) {
        size_t count;
        PRN_TRY(prn_input_ints(context, 1, &k, 1, &count, &known));
        if (count != 1) return prony_fail(context, PRONY_SHAPE_MISMATCH, "k has %zu entries, wanted one", count);
    }
    prony_shape shape = in->shape;
    if (!known) {
        shape = prn_shape_unknown();
    } else {
        if (k < 0 || k > shape.dim[axis]) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "k is %lld, the axis has %lld entries", (long long)k,
                              (long long)shape.dim[axis]);
        }
        shape.dim[axis] = k;
    }
    prn_set_output(context, 0, in->dtype, &shape);
    prn_set_output(context, 1, PRONY_INT64, &shape);
    return PRONY_OK;
}

/* One comparison per element for every level of a heap of k. */
static prony_status top_k_cost(const prony_context *context, prony_cost *cost)
{
    int64_t count = prony_shape_numel(&context->inputs[0]->shape);
    const prony_value *out = prn_output(context, 0) ? prn_output(context, 0) : prn_output(context, 1);
    if (count <= 0 || !out || prony_shape_numel(&out->shape) <= 0) return PRONY_OK;
    uint64_t levels = 0;
    for (int64_t k = view_axis(&out->shape, ((const top_k_params *)context->params)->axis).extent; k > 0; k >>= 1) {
        levels++;
    }
    return prn_cost_elementwise(context, cost, (uint64_t)count, levels, 0);
}

typedef struct top_k_work {
    const prony_value *in;
    prony_value *values, *indices;
    axis_view from, to;
    bool largest;
} top_k_work;

/* True if element i of the line comes before element j. */
static inline bool top_k_comes_before(const line *l, int64_t i, int64_t j)
{
    int64_t a = line_key(l, i), b = line_key(l, j);
    return a != b ? a > b : i < j;
}

/* Restores a heap of `count` positions, `step` apart, whose root is the last in order, after its entry `at` changed. */
static void sift_down(const line *l, int64_t *heap, int64_t step, int64_t count, int64_t at)
{
    int64_t moving = heap[at * step];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && top_k_comes_before(l, heap[child * step], heap[(child + 1) * step])) child++;
        if (!top_k_comes_before(l, moving, heap[child * step])) break;
        heap[at * step] = heap[child * step];
        at = child;
    }
    heap[at * step] = moving;
}

/* The first position from i on whose element may come before that at `last`: neighbours in float32 are passed over in
 * pieces that hold none. */
static int64_t next_above(const line *l, int64_t i, int64_t last)
{
    enum { PIECE = 32 };
    if (l->value->dtype != PRONY_FLOAT32 || l->step != 1) return i;
    const float *x = (const float *)l->value->data + l->first, limit = x[last];
    while (i + PIECE <= l->count) {
        int above = 0;
        for (int k = 0; k < PIECE; k++) above |= l->largest ? !(x[i + k] <= limit) : !(x[i + k] >= limit);
        if (above) break;
        i += PIECE;
    }
    for (; i < l->count; i++) {
        if (l->largest ? !(x[i] <= limit) : !(x[i] >= limit)) break;
    }
    return i;
}

enum { NEAR = 2048, NEAR_LINES = 8, FEW_MARKS = 512 };

/* A copy of a line of float32 with its elements side by side, if it is short. */
static void bring_near(line *l, prony_value *value, float *room)
{
    if (l->value->dtype != PRONY_FLOAT32 || l->step == 1 || l->count > NEAR) return;
    const float *x = (const float *)l->value->data + l->first;
    for (int64_t i = 0; i < l->count; i++) room[i] = x[i * l->step];
    *value = *l->value;
    value->data = room;
    *l = (line){value, 0, 1, l->count, l->largest};
}

/* Per line, a heap of the k best so far with the worst on top, then sorted in place. Of equal elements the one with
 * the lower index comes first. */
static void top_k_lines(void *argument, int64_t begin, int64_t end)
{
    const top_k_work *work = argument;
    prony_value near;
    float room[NEAR];
    int64_t k = work->to.extent, step = work->to.inner;
    size_t width = prn_copy_width(work->in->dtype);
    for (int64_t number = begin; number < end; number++) {
        line l = line_of(work->in, &work->from, number, work->largest);
        bring_near(&l, &near, room);
        int64_t target = number / step * k * step + number % step;
        int64_t *heap = (int64_t *)work->indices->data + target;
        for (int64_t i = 0; i < k; i++) heap[i * step] = i;
        for (int64_t i = k / 2 - 1; i >= 0; i--) {
            if (prn_cancelled_at(i)) return;
            sift_down(&l, heap, step, k, i);
        }
        int64_t limit = line_key(&l, heap[0]), sifted = 0;
        for (int64_t i = next_above(&l, k, heap[0]); i < l.count; i = next_above(&l, i + 1, heap[0])) {
            if (line_key(&l, i) <= limit) continue; /* of equals the first one stays */
            if (prn_cancelled_at(sifted++)) return;
            heap[0] = i;
            sift_down(&l, heap, step, k, 0);
            limit = line_key(&l, heap[0]);
        }
        for (int64_t i = k - 1; i > 0; i--) {
            if (prn_cancelled_at(i)) return;
            int64_t last = heap[0];
            heap[0] = heap[i * step];
            heap[i * step] = last;
            sift_down(&l, heap, step, i, 0);
        }
        for (int64_t i = 0; work->values && i < k; i++) {
            memcpy((char *)work->values->data + (size_t)(target + i * step) * width,
                   (const char *)l.value->data + (size_t)(l.first + heap[i * step] * l.step) * width, width);
        }
    }
}

/* ---- float32 and integers of which 32 bits hold the order: key and position are one number, and comparing takes one
 * instruction */

/* The element that sorts first is smallest. Positions are below 2^32; of 32 bits, NaN's place is that of a key that
 * no other value has. */
static inline uint64_t mark_of(const line *l, int64_t i)
{
    const int64_t key = line_key(l, i);
    const uint32_t bits = key > INT32_MAX ? UINT32_MAX : key < INT32_MIN ? 0 : (uint32_t)key ^ UINT32_C(0x80000000);
    return (uint64_t)~bits << 32 | (uint64_t)i;
}

static void sink_mark(uint64_t *heap, int64_t count, int64_t at)
{
    const uint64_t moving = heap[at];
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && heap[child] < heap[child + 1];
        if (moving >= heap[child]) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

enum { RANKED_MARKS = 64, RANK_STEP = 16 };

/* Few marks in order: a mark's place is how many come before it. That takes the square of their number, but several at
 * a time and no branch. */
static void rank_marks(uint64_t *marks, int64_t count)
{
    int32_t key[RANKED_MARKS], position[RANKED_MARKS];
    uint64_t sorted[RANKED_MARKS];
    const int64_t end = prn_ceil_div(count, RANK_STEP) * RANK_STEP;
    for (int64_t i = 0; i < end; i++) { /* those beyond come before none */
        key[i] = i < count ? (int32_t)((uint32_t)(marks[i] >> 32) ^ UINT32_C(0x80000000)) : INT32_MAX;
        position[i] = i < count ? (int32_t)((uint32_t)marks[i] ^ UINT32_C(0x80000000)) : INT32_MAX;
    }
    for (int64_t i = 0; i < count; i++) {
        const int32_t own_key = key[i], own_position = position[i];
        int32_t before = 0;
        for (int64_t j = 0; j < end; j++)
            before += (key[j] < own_key) | ((key[j] == own_key) & (position[j] < own_position));
        sorted[before] = marks[i];
    }
    memcpy(marks, sorted, (size_t)count * sizeof *marks);
}

/* The k smallest marks of a line in order; false: cancelled. */
static bool collect_marks(const line *l, uint64_t *heap, int64_t k)
{
    for (int64_t i = 0; i < k; i++) heap[i] = mark_of(l, i);
    for (int64_t i = k < l->count || k > RANKED_MARKS ? k / 2 - 1 : -1; i >= 0; i--) {
        if (prn_cancelled_at(i)) return false;
        sink_mark(heap, k, i);
    }
    int64_t sifted = 0;
    for (int64_t i = next_above(l, k, (int64_t)(uint32_t)heap[0]); i < l->count;
         i = next_above(l, i + 1, (int64_t)(uint32_t)heap[0])) {
        const uint64_t mark = mark_of(l, i);
        if (prn_cancelled_at(sifted++)) return false;
        if (mark >= heap[0]) continue;
        heap[0] = mark;
        sink_mark(heap, k, 0);
    }
    if (k <= RANKED_MARKS) {
        rank_marks(heap, k);
        return true;
    }
    for (int64_t i = k - 1; i > 0; i--) {
        const uint64_t last = heap[0];
        if (prn_cancelled_at(i)) return false;
        heap[0] = heap[i];
        heap[i] = last;
        sink_mark(heap, i, 0);
    }
    return true;
}

#define MARKED_TYPES                                                                                                   \
    (PRN_TYPE_F32 | PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_INT16) | PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_UINT8) |     \
     PRN_TYPE(PRONY_UINT16))

/* Float32 lines that lie side by side, `count` of them from `number` on, each in a stretch of `room`; 0: they are no
 * such lines. */
static int64_t bring_lines_near(const top_k_work *work, int64_t number, int64_t end, float *room)
{
    const int64_t inner = work->from.inner, extent = work->from.extent;
    if (work->in->dtype != PRONY_FLOAT32 || inner == 1 || extent > NEAR) return 0;
    int64_t count = inner - number % inner;
    if (count > end - number) count = end - number;
    if (count > NEAR_LINES) count = NEAR_LINES;
    const line first = line_of(work->in, &work->from, number, work->largest);
    const float *x = (const float *)work->in->data + first.first;
    for (int64_t i = 0; i < extent; i++) {
        for (int64_t j = 0; j < count; j++) room[j * extent + i] = x[i * inner + j];
    }
    return count;
}

/* Marks stay on the stack where they are few, else they take the places of the indices, which lie side by side then. */
static void top_k_marked_lines(void *argument, int64_t begin, int64_t end)
{
    const top_k_work *work = argument;
    float room[NEAR_LINES * NEAR];
    uint64_t few[FEW_MARKS];
    const int64_t k = work->to.extent, step = work->to.inner;
    const size_t width = prn_copy_width(work->in->dtype);
    int64_t near_begin = begin, near_end = begin;
    for (int64_t number = begin; number < end; number++) {
        line l = line_of(work->in, &work->from, number, work->largest);
        if (number >= near_end) {
            near_begin = number;
            near_end = number + bring_lines_near(work, number, end, room);
        }
        const prony_value near = {.dtype = PRONY_FLOAT32, .data = room + (number - near_begin) * work->from.extent};
        if (number < near_end) l = (line){&near, 0, 1, l.count, l.largest};
        const int64_t target = number / step * k * step + number % step;
        int64_t *indices = (int64_t *)work->indices->data + target;
        uint64_t *heap = k <= FEW_MARKS ? few : (uint64_t *)(void *)indices;
        if (!collect_marks(&l, heap, k)) return;
        for (int64_t i = 0; i < k; i++) {
            const int64_t position = (int64_t)(uint32_t)heap[i];
            indices[i * step] = position;
            if (work->values)
                memcpy((char *)work->values->data + (size_t)(target + i * step) * width,
                       (const char *)l.value->data + (size_t)(l.first + position * l.step) * width, width);
        }
    }
}

/* ---- lines that lie side by side: eight at a time, so that every row that is read gives a piece to each */

enum { LANES = 8, CHUNK = 256, LANE_MARKS = 256 };

typedef struct ranked {
    int64_t key, position; /* larger key first, of equal ones the lower position */
} ranked;

static inline bool ranks_before(ranked a, ranked b)
{
    return a.key != b.key ? a.key > b.key : a.position < b.position;
}

/* A heap whose root is the last in order. */
static void sink_ranked(ranked *heap, int64_t count, int64_t at)
{
    const ranked moving = heap[at];
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && ranks_before(heap[child], heap[child + 1])) child++;
        if (!ranks_before(moving, heap[child])) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

/* Takes `count` more keys of a line, at positions from `first` on, into its heap, which has entries for the k first in
 * order. */
static void take_keys(ranked *heap, int64_t k, const int64_t *keys, int64_t first, int64_t count)
{
    enum { PIECE = 16 };
    int64_t i = 0;
    for (; i < count && first + i < k; i++) {
        heap[first + i] = (ranked){keys[i], first + i};
        if (first + i == k - 1)
            for (int64_t at = k / 2 - 1; at >= 0; at--) sink_ranked(heap, k, at);
    }
    while (i < count) {
        int above = 0;
        const int64_t limit = heap[0].key, end = i + PIECE < count ? i + PIECE : count;
        for (int64_t n = i; n < end; n++) above |= keys[n] > limit;
        for (; above && i < end; i++) {
            if (keys[i] <= heap[0].key) continue; /* of equals the first one stays */
            heap[0] = (ranked){keys[i], first + i};
            sink_ranked(heap, k, 0);
        }
        i = end;
    }
}

/* Keys of `count` elements of `lanes` lines from element `at` on, a row of CHUNK for each line. */
static void gather_keys(const top_k_work *work, int64_t at, int64_t lanes, int64_t count, int64_t (*keys)[CHUNK])
{
    const int64_t inner = work->from.inner;
    if (work->in->dtype == PRONY_INT64) {
        const int64_t *x = (const int64_t *)work->in->data + at, flip = work->largest ? 0 : -1;
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < lanes; j++) keys[j][i] = x[i * inner + j] ^ flip;
        return;
    }
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < lanes; j++) keys[j][i] = key_at(work->in, at + i * inner + j, work->largest);
}

/* The lines of one heap each, in order, as values and indices. */
static void put_ranked(const top_k_work *work, int64_t number, int64_t lanes, ranked (*heaps)[LANE_MARKS])
{
    const int64_t k = work->to.extent, inner = work->to.inner, outer = number / inner, lane = number % inner;
    const int64_t to = outer * k * inner + lane, from = outer * work->from.extent * inner + lane;
    const size_t width = prn_copy_width(work->in->dtype);
    for (int64_t j = 0; j < lanes; j++) {
        for (int64_t i = k - 1; i > 0; i--) {
            const ranked last = heaps[j][0];
            heaps[j][0] = heaps[j][i];
            heaps[j][i] = last;
            sink_ranked(heaps[j], i, 0);
        }
    }
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < lanes; j++) {
            const int64_t position = heaps[j][i].position, place = to + i * inner + j;
            if (work->indices) ((int64_t *)work->indices->data)[place] = position;
            if (work->values)
                memcpy((char *)work->values->data + (size_t)place * width,
                       (const char *)work->in->data + (size_t)(from + position * inner + j) * width, width);
        }
    }
}

static void top_k_lanes(void *argument, int64_t begin, int64_t end)
{
    const top_k_work *work = argument;
    ranked heaps[LANES][LANE_MARKS];
    int64_t keys[LANES][CHUNK];
    const int64_t inner = work->from.inner, extent = work->from.extent;
    for (int64_t number = begin, lanes; number < end; number += lanes) {
        lanes = inner - number % inner;
        if (lanes > end - number) lanes = end - number;
        if (lanes > LANES) lanes = LANES;
        const int64_t first = number / inner * extent * inner + number % inner;
        for (int64_t at = 0; at < extent; at += CHUNK) {
            const int64_t count = extent - at < CHUNK ? extent - at : CHUNK;
            if (prn_cancelled()) return;
            gather_keys(work, first + at * inner, lanes, count, keys);
            for (int64_t j = 0; j < lanes; j++) take_keys(heaps[j], work->to.extent, keys[j], at, count);
        }
        put_ranked(work, number, lanes, heaps);
    }
}

/* Without storage: each place takes the first element, in order, after the one before it. */
static void top_k_lines_reference(void *argument, int64_t begin, int64_t end)
{
    const top_k_work *work = argument;
    int64_t k = work->to.extent, step = work->to.inner;
    size_t width = prn_copy_width(work->in->dtype);
    for (int64_t number = begin; number < end; number++) {
        line l = line_of(work->in, &work->from, number, work->largest);
        int64_t target = number / step * k * step + number % step, previous = -1;
        for (int64_t place = 0; place < k; place++) {
            int64_t best = -1;
            for (int64_t i = 0; i < l.count; i++) {
                if (prn_cancelled_at(i)) return;
                if (previous >= 0 && !top_k_comes_before(&l, previous, i)) continue;
                if (best < 0 || top_k_comes_before(&l, i, best)) best = i;
            }
            previous = best;
            if (work->indices) ((int64_t *)work->indices->data)[target + place * step] = best;
            if (work->values) {
                memcpy((char *)work->values->data + (size_t)(target + place * step) * width,
                       (const char *)work->in->data + (size_t)(l.first + best * l.step) * width, width);
            }
        }
    }
}

static prony_status top_k_run(const prony_context *context, void (*lines)(void *argument, int64_t begin, int64_t end))
{
    int64_t axis = ((const top_k_params *)context->params)->axis;
    top_k_work work = {.in = context->inputs[0],
                       .values = prn_output(context, 0),
                       .indices = prn_output(context, 1),
                       .largest = ((const top_k_params *)context->params)->largest != 0};
    const prony_value *out = work.values ? work.values : work.indices;
    if (!out || prony_shape_numel(&out->shape) == 0) return PRONY_OK;
    work.from = view_axis(&work.in->shape, axis);
    work.to = view_axis(&out->shape, axis);
    prn_parallel_items(context->threads, work.from.outer * work.from.inner, prony_shape_numel(&work.in->shape) * 16,
                       lines, &work);
    return PRONY_OK;
}

static prony_status top_k_marked(const prony_context *context)
{
    return top_k_run(context, top_k_marked_lines);
}

static prony_status top_k_side_by_side(const prony_context *context)
{
    return top_k_run(context, top_k_lanes);
}

static bool lanes_fit(const prony_context *context)
{
    const prony_value *out = prn_output(context, 0) ? prn_output(context, 0) : prn_output(context, 1);
    const int64_t axis = ((const top_k_params *)context->params)->axis;
    return out && prn_shape_known(&out->shape) && view_axis(&out->shape, axis).extent <= LANE_MARKS &&
           view_axis(&context->inputs[0]->shape, axis).inner > 1;
}

/* With its position an element's key fits into 64 bits, and there is room for as many as are wanted. */
static bool marks_fit(const prony_context *context)
{
    const prony_value *in = context->inputs[0], *indices = prn_output(context, 1);
    const int64_t axis = ((const top_k_params *)context->params)->axis;
    if (!indices) return false;
    const axis_view from = view_axis(&in->shape, axis);
    if (from.extent > UINT32_MAX) return false;
    return from.inner == 1 ||
           (prn_shape_known(&indices->shape) && view_axis(&indices->shape, axis).extent <= FEW_MARKS);
}

static prony_status top_k_native(const prony_context *context)
{
    return top_k_run(context, top_k_lines);
}

static prony_status top_k_reference(const prony_context *context)
{
    return top_k_run(context, top_k_lines_reference);
}

/* The heap lives in the indices. */
static bool wants_indices(const prony_context *context)
{
    return prn_output(context, 1) != NULL;
}

// clang-format off
static const prn_kernel top_k_kernels[] = {
    {.name = "top_k_32_native", .backend = "native", .types = MARKED_TYPES, .supported = marks_fit, .run = top_k_marked},
    {.name = "top_k_lanes_native", .backend = "native", .types = PRN_TYPES_NUMBER, .supported = lanes_fit, .run = top_k_side_by_side},
    {.name = "top_k_native", .backend = "native", .types = PRN_TYPES_NUMBER, .supported = wants_indices,
     .run = top_k_native},
    {.name = "top_k_reference", .backend = "reference", .types = PRN_TYPES_NUMBER, .run = top_k_reference},
    {0}};
// clang-format on

static prony_status top_k_check(const prony_context *context)
{
    if (context->node->opset >= 10 && !prn_input(context, 1)) {
        return prony_fail(context, PRONY_INVALID_MODEL, "input 'K' is missing");
    }
    if (context->node->opset < 10 && ((const top_k_params *)context->params)->k == PRN_ABSENT) {
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'k' is missing");
    }
    return PRONY_OK;
}

// clang-format off
const prn_op prn_ops_top_k[] = {
    {.name = "TopK", .since_opset = 1, .inputs = {1, 2}, .outputs = {1, 2}, .non_weight_inputs = 2,
     .params = top_k_attributes, .params_bytes = sizeof(top_k_params), .check = top_k_check, .infer = top_k_infer,
     .cost = top_k_cost, .cost_text = "input elements * (floor(log2 k) + 1)", .kernels = top_k_kernels},
    {0}};
// clang-format on
