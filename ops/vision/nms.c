/* NonMaxSuppression: of every class of every image the boxes in the order of their scores, those left out that overlap
 * one taken before.
 *
 * Each class has a stretch of scratch of one int32 per box: in front a heap of the boxes not yet looked at, at the end,
 * which the heap has left by then, the boxes taken, last one first. The native kernel has in addition the sides of the
 * first boxes taken, field by field, for vectors of them. Invariant: a class is one task; equal scores are taken in the
 * order of the boxes, so the result does not depend on the thread count. */
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/op.h"
#include "ops/vision/nms_simd.h"

PRN_SIMD_PICK(prn_nms_simd, prn_nms_simd_, static const prn_nms_simd *nms_simd_table)

enum { BOXES, SCORES, MOST, OVERLAP, LEAST_SCORE };

typedef struct nms_params {
    int64_t center_point_box;
} nms_params;

typedef struct nms {
    const float *boxes, *scores;
    int64_t images, classes, count; /* boxes of an image */
    int64_t most;                   /* boxes taken of a class */
    float overlap, least;
    bool centers, filtered;
    int32_t *order; /* [images, classes, count] */
    int64_t *taken; /* [images, classes] */
    float *sides;   /* [images, classes, PRN_NMS_FIELDS, room] */
    int64_t room;
    const prn_nms_simd *simd; /* NULL: box by box */
} nms;

/* Boxes taken whose sides are kept: of a class, and of all classes. */
enum { ROOM_OF_CLASS = 1 << 10, ROOM_OF_ALL = 1 << 16 };

/* ---- shapes */

static prony_status nms_check(const prony_context *context)
{
    const int64_t form = ((const nms_params *)context->params)->center_point_box;
    if (form == 0 || form == 1) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "center_point_box is %lld, wanted 0 or 1", (long long)form);
}

static prony_status check_scalar(const prony_context *context, size_t input, uint32_t type)
{
    const prony_value *in = prn_input(context, input);
    PRN_TRY(prn_check_type(context, input, type));
    if (!in || prony_shape_numel(&in->shape) == 1) return PRONY_OK;
    char text[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted one element", input,
                      prn_value_text(in, text));
}

static prony_status nms_infer(const prony_context *context)
{
    const prony_shape *boxes = &context->inputs[BOXES]->shape, *scores = &context->inputs[SCORES]->shape;
    PRN_TRY(prn_check_type(context, BOXES, PRN_TYPE_F32));
    PRN_TRY(prn_check_type(context, SCORES, PRN_TYPE_F32));
    PRN_TRY(prn_check_rank(context, BOXES, 3, 3));
    PRN_TRY(prn_check_rank(context, SCORES, 3, 3));
    PRN_TRY(check_scalar(context, MOST, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(check_scalar(context, OVERLAP, PRN_TYPE_F32));
    PRN_TRY(check_scalar(context, LEAST_SCORE, PRN_TYPE_F32));
    if (boxes->dim[2] != 4 || boxes->dim[0] != scores->dim[0] || boxes->dim[1] != scores->dim[2] ||
        boxes->dim[1] > INT32_MAX) {
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "boxes %s and scores %s do not fit each other",
                          prn_shape_text(boxes, left), prn_shape_text(scores, right));
    }
    prony_shape shape = prn_shape_unknown();
    if (!prn_input(context, MOST) || prony_shape_numel(scores) == 0) shape = (prony_shape){2, {0, 3}};
    prn_set_output(context, 0, PRONY_INT64, &shape);
    return PRONY_OK;
}

static prony_status nms_cost(const prony_context *context, prony_cost *out)
{
    const prony_shape *scores = &context->inputs[SCORES]->shape;
    const int64_t count = prony_shape_numel(scores);
    prn_cost_fact(out, "boxes", scores->dim[2]);
    prn_cost_fact(out, "classes", scores->dim[1]);
    if (!prn_input(context, LEAST_SCORE) || count < 0) return PRONY_OK;
    return prn_cost_elementwise(context, out, (uint64_t)count, 1, 0);
}

/* ---- overlap */

typedef struct span {
    float low, high;
} span;

/* Axis 0 is x, 1 is y. */
static span box_span(const nms *job, const float *box, int axis)
{
    if (job->centers) {
        const float half = box[2 + axis] / 2.0f;
        return (span){box[axis] - half, box[axis] + half};
    }
    const float a = box[1 - axis], b = box[3 - axis];
    return a < b ? (span){a, b} : (span){b, a};
}

static bool nms_overlaps(const nms *job, const float *one, const float *other)
{
    float shared = 1.0f, area_one = 1.0f, area_other = 1.0f;
    for (int axis = 0; axis < 2; axis++) {
        const span a = box_span(job, one, axis), b = box_span(job, other, axis);
        const float low = a.low > b.low ? a.low : b.low, high = a.high < b.high ? a.high : b.high;
        if (!(high > low)) return false;
        shared *= high - low;
        area_one *= a.high - a.low;
        area_other *= b.high - b.low;
    }
    const float all = area_one + area_other - shared;
    if (!(shared > 0.0f) || !(area_one > 0.0f) || !(area_other > 0.0f) || !(all > 0.0f)) return false;
    return shared / all > job->overlap;
}

static void nms_measure(const nms *job, const float *box, float *fields)
{
    const span x = box_span(job, box, 0), y = box_span(job, box, 1);
    fields[PRN_NMS_LOW_X] = x.low;
    fields[PRN_NMS_HIGH_X] = x.high;
    fields[PRN_NMS_LOW_Y] = y.low;
    fields[PRN_NMS_HIGH_Y] = y.high;
    fields[PRN_NMS_AREA] = (x.high - x.low) * (y.high - y.low);
}

/* ---- one class */

static bool nms_goes_before(const float *scores, int32_t a, int32_t b)
{
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
}

static void sink(const float *scores, int32_t *heap, int64_t size, int64_t at)
{
    for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && nms_goes_before(scores, heap[child + 1], heap[child])) child++;
        if (!nms_goes_before(scores, heap[child], heap[at])) return;
        const int32_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

/* True if box `next` of the class overlaps one of those taken; if not, its sides are kept if there is room. */
static bool is_suppressed(const nms *job, const float *boxes, const int32_t *last, int64_t taken, int32_t next,
                          float *sides)
{
    const float *box = boxes + 4 * (int64_t)next;
    int64_t from = 0;
    float fields[PRN_NMS_FIELDS];
    if (job->simd) {
        from = taken < job->room ? taken : job->room;
        nms_measure(job, box, fields);
        if (job->simd->overlaps(fields, sides, job->room, from, job->overlap)) return true;
    }
    for (int64_t t = from; t < taken && !prn_cancelled_at(t); t++) {
        if (nms_overlaps(job, box, boxes + 4 * (int64_t)last[-t])) return true;
    }
    for (int k = 0; job->simd && taken < job->room && k < PRN_NMS_FIELDS; k++) sides[k * job->room + taken] = fields[k];
    return false;
}

static void suppress_class(void *argument, int64_t task)
{
    const nms *job = argument;
    const float *boxes = job->boxes + task / job->classes * job->count * 4, *scores = job->scores + task * job->count;
    int32_t *heap = job->order + task * job->count, *last = heap + job->count - 1;
    float *sides = job->simd ? job->sides + task * PRN_NMS_FIELDS * job->room : NULL;
    int64_t size = 0, taken = 0;
    for (int64_t i = 0; i < job->count && !prn_cancelled_at(i); i++) {
        if (!job->filtered || scores[i] > job->least) heap[size++] = (int32_t)i;
    }
    for (int64_t at = size / 2 - 1; at >= 0 && !prn_cancelled_at(at); at--) sink(scores, heap, size, at);
    while (size > 0 && taken < job->most && !prn_cancelled()) {
        const int32_t next = heap[0];
        heap[0] = heap[--size];
        sink(scores, heap, size, 0);
        if (!is_suppressed(job, boxes, last, taken, next, sides)) last[-taken++] = next;
    }
    job->taken[task] = taken;
}

/* ---- kernel */

static prony_status nms_prepare(const prony_context *context, prn_prepared *out)
{
    const prony_shape *scores = &context->inputs[SCORES]->shape;
    const uint64_t tasks = (uint64_t)prn_shape_count(scores, 0, 2), boxes = (uint64_t)scores->dim[2];
    uint64_t bytes;
    if (!prn_mul_u64(&bytes, tasks, boxes * sizeof(int32_t) + sizeof(int64_t)) || bytes > SIZE_MAX / 2)
        return prony_fail(context, PRONY_LIMIT, "the order of the boxes does not fit in memory");
    out->scratch_bytes = (size_t)bytes;
    return PRONY_OK;
}

/* No more than there are boxes, and so little that it does not count beside their order. */
static int64_t room_of_class(const prony_shape *scores)
{
    const int64_t tasks = prn_shape_count(scores, 0, 2), boxes = scores->dim[2];
    const int64_t room = tasks > ROOM_OF_ALL / ROOM_OF_CLASS ? ROOM_OF_CLASS : tasks ? ROOM_OF_ALL / tasks : 0;
    return boxes < room ? boxes : room;
}

static prony_status nms_prepare_native(const prony_context *context, prn_prepared *out)
{
    const prony_shape *scores = &context->inputs[SCORES]->shape;
    PRN_TRY(nms_prepare(context, out));
    const uint64_t sides = (uint64_t)prn_shape_count(scores, 0, 2) * (uint64_t)room_of_class(scores);
    out->scratch_bytes += (size_t)sides * PRN_NMS_FIELDS * sizeof(float);
    return PRONY_OK;
}

static prony_status write_taken(const prony_context *context, const nms *job)
{
    const int64_t tasks = job->images * job->classes;
    prony_value *out = context->outputs[0];
    int64_t rows = 0;
    for (int64_t task = 0; task < tasks; task++) rows += job->taken[task];
    if (out->shape.rank < 0) {
        out->shape = (prony_shape){2, {rows, 3}};
        PRN_TRY(context->services->output_alloc(context, 0));
    }
    int64_t *to = out->data;
    for (int64_t task = 0; task < tasks; task++) {
        const int32_t *last = job->order + (task + 1) * job->count - 1;
        for (int64_t t = 0; t < job->taken[task] && !prn_cancelled_at(t); t++) {
            *to++ = task / job->classes;
            *to++ = task % job->classes;
            *to++ = last[-t];
        }
    }
    return PRONY_OK;
}

/* Suppresses boxes per image and class in parallel, then writes the kept ones in the order of images and classes. */
static prony_status nms_run_with(const prony_context *context, const prn_nms_simd *table)
{
    const prony_shape *scores = &context->inputs[SCORES]->shape;
    const prony_value *most = prn_input(context, MOST), *overlap = prn_input(context, OVERLAP);
    const prony_value *least = prn_input(context, LEAST_SCORE);
    if (!most || prony_shape_numel(scores) == 0) return PRONY_OK;
    nms job = {.boxes = context->inputs[BOXES]->data,
               .scores = context->inputs[SCORES]->data,
               .images = scores->dim[0],
               .classes = scores->dim[1],
               .count = scores->dim[2],
               .most = *(const int64_t *)most->data,
               .overlap = overlap ? *(const float *)overlap->data : 0.0f,
               .least = least ? *(const float *)least->data : 0.0f,
               .centers = ((const nms_params *)context->params)->center_point_box == 1,
               .filtered = least != NULL,
               .taken = context->scratch};
    const int64_t tasks = job.images * job.classes;
    job.order = (int32_t *)(void *)(job.taken + tasks);
    job.simd = table;
    job.room = room_of_class(scores);
    job.sides = table ? (float *)(void *)(job.order + tasks * job.count) : NULL;
    prn_parallel_tasks(context->threads, tasks, suppress_class, &job);
    if (prn_cancelled()) return PRONY_OK; /* not every class has its count */
    return write_taken(context, &job);
}

static prony_status nms_run(const prony_context *context)
{
    return nms_run_with(context, NULL);
}

static prony_status nms_run_native(const prony_context *context)
{
    return nms_run_with(context, nms_simd_table());
}

/* ---- descriptor */

static const prn_param params[] = {PRN_INT(nms_params, center_point_box, 0), {0}};

static const prn_kernel kernels[] = {
    {.name = "nms_f32_native",
     .backend = "native",
     .types = PRN_TYPE_F32,
     .prepare = nms_prepare_native,
     .run = nms_run_native},
    {.name = "nms_reference", .backend = "reference", .types = PRN_TYPE_F32, .prepare = nms_prepare, .run = nms_run},
    {0}};

// clang-format off
const prn_op prn_ops_nms[] = {
    {.name = "NonMaxSuppression", .since_opset = 10, .inputs = {2, 5}, .flags = PRN_OP_DATA_SHAPE,
     .non_weight_inputs = 0x1c, .params = params, .params_bytes = sizeof(nms_params), .check = nms_check,
     .infer = nms_infer, .cost = nms_cost, .kernels = kernels,
     .cost_text = "one comparison per score with a threshold; overlaps depend on data, not counted"},
    {0}};
// clang-format on
