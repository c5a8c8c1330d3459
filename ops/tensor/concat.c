/* Concat and Split: rows of one tensor against rows of several along an axis. Both see a tensor as [outer, axis, inner]
 * of its bytes in memory, in any layout; parts of the channels that begin or end inside a block are moved in runs of
 * lanes. Invariant: the parts' extents along the axis add up to the whole's. */
#include "base/integers.h"
#include "base/cpu/isa.h"
#include "base/memory/alloc.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/vendor/opencl/opencl_map.h"

/* Of a part that shares blocks with others, for which those are worth the lanes beyond them. */
enum { LEAST_CHANNELS = 8 };

/* ---- shared */

/* The place of a part in the whole: `outer` rows of `part_row` elements, `whole_row` apart, the first at `first`. */
typedef struct place {
    int64_t outer, part_row, whole_row, first;
} place;

/* `begin` is the part's first index along the axis; `shape` its shape. */
static place concat_find_place(const prony_value *whole, const prony_shape *shape, int axis, int64_t begin)
{
    prn_layout layout = (prn_layout)whole->layout;
    prony_shape w = prn_lowbit_shape(&whole->shape, layout), p = prn_lowbit_shape(shape, layout);
    int64_t block = axis == 1 ? prn_layout_block(layout) : 0;
    int at = prn_lowbit_axis(whole->shape.rank, layout, axis);
    int64_t inner = prn_shape_count(&w, at + 1, w.rank);
    return (place){.outer = prn_shape_count(&w, 0, at),
                   .part_row = p.dim[at] * inner,
                   .whole_row = w.dim[at] * inner,
                   .first = (block ? begin / block : begin) * inner};
}

/* True if the part has whole blocks of the whole's to itself: only the last one may end inside of one, where the
 * padding lanes lie as the whole has them. */
static bool has_own_blocks(const prony_value *whole, const prony_shape *shape, int axis, int64_t begin)
{
    const int64_t block = axis == 1 ? prn_layout_block((prn_layout)whole->layout) : 0, end = begin + shape->dim[axis];
    return block == 0 || (begin % block == 0 && (end % block == 0 || end == whole->shape.dim[axis]));
}

/* True if a part of so many channels from `begin` on has blocks to itself, or enough channels. */
static bool fits_blocks(int64_t block, int64_t begin, int64_t channels, bool last)
{
    return (begin % block == 0 && (last || channels % block == 0)) || channels >= LEAST_CHANNELS;
}

/* Channels of a part in blocks from or into their lanes in the whole: as many at a time as neither of them begins a
 * block in. */
static void move_lanes(const prony_context *context, const prony_value *whole, const prony_value *part, int64_t begin,
                       bool gather, prn_copy_fn execute)
{
    const int64_t block = prn_layout_block((prn_layout)whole->layout), channels = part->shape.dim[1];
    const int64_t pixels = prn_shape_count(&whole->shape, 2, whole->shape.rank), run = pixels * block;
    const int64_t whole_row = prn_ceil_div(whole->shape.dim[1], block) * run,
                  part_row = prn_ceil_div(channels, block) * run;
    const size_t width = prn_copy_width(whole->dtype);
    for (int64_t c = 0, count; c < channels; c += count) {
        const int64_t at = begin + c;
        count = prn_least(prn_least(block - c % block, block - at % block), channels - c);
        char *place = (char *)whole->data + (size_t)(at / block * run + at % block) * width;
        char *own = (char *)part->data + (size_t)(c / block * run + c % block) * width;
        prn_copy copy = {0};
        prn_copy_axis(&copy, whole->shape.dim[0], gather ? part_row : whole_row, gather ? whole_row : part_row);
        prn_copy_axis(&copy, pixels, block, block);
        prn_copy_axis(&copy, count, 1, 1);
        execute(context->threads, width, &copy, gather ? own : place, gather ? place : own);
    }
}

/* Copies a part from or into its place in the whole. */
static void concat_move_part(const prony_context *context, const prony_value *whole, const prony_value *part, int axis,
                             int64_t begin, bool gather, prn_copy_fn execute)
{
    size_t width = prn_copy_width(whole->dtype);
    if (prony_shape_numel(&part->shape) == 0) return;
    if (!has_own_blocks(whole, &part->shape, axis, begin)) {
        move_lanes(context, whole, part, begin, gather, execute);
        return;
    }
    place at = concat_find_place(whole, &part->shape, axis, begin);
    char *place = (char *)whole->data + (size_t)at.first * width;
    if (place == part->data) return; /* the part's producer wrote it there, or the part is a view */
    prn_copy copy = {0};
    prn_copy_axis(&copy, at.outer, gather ? at.part_row : at.whole_row, gather ? at.whole_row : at.part_row);
    prn_copy_axis(&copy, at.part_row, 1, 1);
    execute(context->threads, width, &copy, gather ? part->data : place, gather ? place : part->data);
}

#ifdef PRN_HAVE_OPENCL
/* Moves all parts to or from their places in the whole: inputs, or outputs, of which some may be missing. `extent` is
 * that of a part along the axis. */
static prony_status concat_opencl_moves(const prony_context *context, prn_prepared *out, const prony_value *whole,
                                        int axis, size_t count, bool gather,
                                        int64_t (*extent)(const prony_context *, size_t))
{
    prn_opencl_move *moves = prn_calloc(count, sizeof *moves);
    if (!moves) return prn_no_memory(context->error);
    size_t used = 0;
    int64_t begin = 0;
    for (size_t i = 0; i < count; begin += extent(context, i), i++) {
        const prony_value *part = gather ? context->inputs[i] : context->outputs[i];
        if (!part) continue;
        const place at = concat_find_place(whole, &part->shape, axis, begin);
        prn_opencl_move *move = &moves[used++];
        *(gather ? &move->input : &move->output) = i;
        *(gather ? &move->to : &move->from) = at.first;
        prn_copy_axis(&move->copy, at.outer, gather ? at.part_row : at.whole_row, gather ? at.whole_row : at.part_row);
        prn_copy_axis(&move->copy, at.part_row, 1, 1);
    }
    const prony_status status = prn_opencl_copy_prepare(context, out, moves, used, NULL);
    prn_free(moves);
    return status;
}
#endif

/* Behind a part that has no blocks of its own none is looked for. */
#define NOWHERE UINT64_MAX

/* True if the part behind `before` (NULL: the first) is exactly the bytes of the whole from *offset_bytes on, which is
 * the offset of the part before; they are asked for one after the other. `last`: it is the last one. */
static bool follows(const prony_value *whole, const prony_shape *before, const prony_shape *shape, int axis, bool last,
                    uint64_t *offset_bytes)
{
    const int64_t block = axis == 1 ? prn_layout_block((prn_layout)whole->layout) : 0;
    if (before && *offset_bytes != NOWHERE)
        *offset_bytes += (uint64_t)concat_find_place(whole, before, axis, 0).part_row * prn_copy_width(whole->dtype);
    if (before && block && before->dim[axis] % block) *offset_bytes = NOWHERE;
    if (*offset_bytes == NOWHERE || (block && !last && shape->dim[axis] % block)) return false;
    return concat_find_place(whole, shape, axis, 0).outer == 1;
}

/* ---- Concat */

typedef struct concat_params {
    int64_t axis;
} concat_params;

static const prn_param concat_attributes[] = {PRN_INT(concat_params, axis, PRN_ABSENT), {0}};

/* Opset 4 made the attribute required; it was 1 if absent. */
static int64_t axis_given(const prony_context *context)
{
    const int64_t axis = ((const concat_params *)context->params)->axis;
    return axis == PRN_ABSENT && context->node->opset < 4 ? 1 : axis;
}

static prony_status concat_check(const prony_context *context)
{
    if (axis_given(context) != PRN_ABSENT) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'axis' is missing");
}

static int concat_axis(const prony_context *context)
{
    int64_t axis = axis_given(context);
    return (int)(axis < 0 ? axis + context->inputs[0]->shape.rank : axis);
}

/* All inputs have one type and agree on every axis but the joined one, whose extents add up. */
static prony_status concat_infer(const prony_context *context)
{
    int64_t axis = axis_given(context);
    const prony_value *first = context->inputs[0];
    prony_shape shape = first->shape;
    if (!prn_axis_normalize(&axis, shape.rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis, shape.rank);
    }
    shape.dim[axis] = 0;
    for (size_t i = 0; i < context->input_count; i++) {
        const prony_value *in = context->inputs[i];
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        if (!in) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
        PRN_TRY(prn_check_movable(context, i));
        prony_shape other = in->shape;
        if (other.rank == shape.rank) other.dim[axis] = first->shape.dim[axis];
        if (in->dtype != first->dtype || !prn_shape_equal(&other, &first->shape)) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, which does not join %s on axis %lld", i,
                              prn_value_text(in, right), prn_value_text(first, left), (long long)axis);
        }
        if (__builtin_add_overflow(shape.dim[axis], in->shape.dim[axis], &shape.dim[axis])) {
            return prony_fail(context, PRONY_LIMIT, "the output is too large");
        }
    }
    prn_set_output(context, 0, first->dtype, &shape);
    return PRONY_OK;
}

static bool concat_joins(const prony_context *context, prn_layout layout)
{
    int axis = concat_axis(context);
    int64_t block = axis == 1 ? prn_layout_block(layout) : 0;
    if (!prn_layout_joins(context->inputs[0]->shape.rank, layout)) return false;
    int64_t begin = 0;
    for (size_t i = 0; block && i < context->input_count; i++) {
        const int64_t channels = context->inputs[i]->shape.dim[1];
        if (!fits_blocks(block, begin, channels, i + 1 == context->input_count)) return false;
        begin += channels;
    }
    return true;
}

/* Parts with channels last have to be copied for each position; reordered into blocks they are written to where they
 * are joined, as those who read images of many channels want them. */
static prn_layout joined_layout(const prony_context *context, prn_layout offered)
{
    const prn_layout blocked = prn_layout_blocked();
    const prony_value *first = context->inputs[0];
    const bool better =
        offered == PRN_NHWC && first->dtype == PRONY_FLOAT32 && concat_axis(context) == 1 && first->shape.dim[0] == 1;
    return better && concat_joins(context, blocked) ? blocked : offered;
}

/* The joinable layout in which most elements come, if that is more than half of them. */
static void concat_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    static const prn_layout candidates[] = {PRN_BLOCKED16, PRN_BLOCKED8, PRN_BLOCKED4, PRN_NHWC};
    int64_t total = 0;
    for (size_t i = 0; i < context->input_count; i++) total += prony_shape_numel(&context->inputs[i]->shape);
    for (size_t c = 0; c < sizeof candidates / sizeof *candidates; c++) {
        int64_t offered = 0;
        for (size_t i = 0; i < context->input_count; i++) {
            if ((prn_layout)context->inputs[i]->layout == candidates[c]) {
                offered += prony_shape_numel(&context->inputs[i]->shape);
            }
        }
        if (offered <= total / 2 || !concat_joins(context, candidates[c])) continue;
        out[0] = joined_layout(context, candidates[c]);
        for (size_t i = 0; i < context->input_count; i++) in[i] = out[0];
        return;
    }
}

static prony_status concat_run(const prony_context *context, prn_copy_fn execute)
{
    const prony_value *out = context->outputs[0];
    int axis = concat_axis(context);
    int64_t begin = 0;
    bool own = true; /* of the last part */
    for (size_t i = 0; i < context->input_count; i++) {
        concat_move_part(context, out, context->inputs[i], axis, begin, true, execute);
        own = has_own_blocks(out, &context->inputs[i]->shape, axis, begin);
        begin += context->inputs[i]->shape.dim[axis];
    }
    if (!own) prn_clear_padding(out);
    return PRONY_OK;
}

static prony_status concat_native(const prony_context *context)
{
    return concat_run(context, prn_copy_native);
}

static prony_status concat_reference(const prony_context *context)
{
    return concat_run(context, prn_copy_reference);
}

static bool concat_alias(const prony_context *context, size_t input, uint64_t *offset_bytes)
{
    const prony_shape *before = input > 0 ? &context->inputs[input - 1]->shape : NULL;
    return follows(context->outputs[0], before, &context->inputs[input]->shape, concat_axis(context),
                   input + 1 == context->input_count, offset_bytes);
}

#ifdef PRN_HAVE_OPENCL
static int64_t concat_extent(const prony_context *context, size_t i)
{
    return context->inputs[i]->shape.dim[concat_axis(context)];
}

static prony_status concat_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    return concat_opencl_moves(context, out, context->outputs[0], concat_axis(context), context->input_count, true,
                               concat_extent);
}
#endif

// clang-format off
static const prn_kernel concat_kernels[] = {
    PRN_OPENCL_ROW("concat_opencl", PRN_OPENCL_COPIED, prn_opencl_copy_supported, concat_opencl_prepare)
    {.name = "concat_native", .backend = "native", .layouts = concat_layouts, .layout_invariant = true, .run = concat_native,
     .concat_alias = concat_alias},
    {.name = "concat_reference", .backend = "reference", .run = concat_reference},
    {0}};
// clang-format on

/* ---- Split */

typedef struct split_params {
    int64_t axis;
    int64_t num_outputs;
    prn_ints split;
} split_params;

static const prn_param split_attributes[] = {
    PRN_INT(split_params, axis, 0), PRN_INT(split_params, num_outputs, PRN_ABSENT), PRN_INTS(split_params, split), {0}};

static prony_status split_check(const prony_context *context)
{
    const split_params *params = context->params;
    if (params->num_outputs != PRN_ABSENT && params->num_outputs != (int64_t)context->output_count) {
        return prony_fail(context, PRONY_INVALID_MODEL, "num_outputs is %lld but there are %zu outputs",
                          (long long)params->num_outputs, context->output_count);
    }
    return PRONY_OK;
}

/* Equal parts; from opset 18 on, the last one may be smaller. */
static prony_status split_equally(const prony_context *context, int64_t extent, int64_t *part)
{
    int64_t count = (int64_t)context->output_count;
    *part = extent / count + (extent % count != 0);
    if (extent % count == 0) return PRONY_OK;
    if (context->node->opset < 18) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "extent %lld does not divide into %lld parts",
                          (long long)extent, (long long)count);
    }
    if (*part * (count - 1) > extent) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "extent %lld cannot be split into %lld parts",
                          (long long)extent, (long long)count);
    }
    return PRONY_OK;
}

/* Length k of the given list: the attribute's or input 1's. */
static int64_t split_given(const prony_context *context, size_t k)
{
    const split_params *params = context->params;
    return params->split.present ? params->split.v[k] : ((const int64_t *)context->inputs[1]->data)[k];
}

static prony_status split_lengths(const prony_context *context, int64_t extent)
{
    const split_params *params = context->params;
    const prony_value *lengths = prn_input(context, 1);
    int64_t count = params->split.present ? (int64_t)params->split.count : prony_shape_numel(&lengths->shape);
    int64_t total = 0;
    if (count != (int64_t)context->output_count) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "split has %lld entries for %zu outputs", (long long)count,
                          context->output_count);
    }
    for (size_t k = 0; k < context->output_count; k++) {
        int64_t part = split_given(context, k);
        if (part < 0 || part > extent - total) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "split[%zu] = %lld does not fit into extent %lld", k,
                              (long long)part, (long long)extent);
        }
        total += part;
    }
    if (total == extent) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "split adds up to %lld, but the extent is %lld", (long long)total,
                      (long long)extent);
}

/* The slices' extents: given as input or attribute, or equal with a smaller last one. Unknown while the lengths have
 * no data. */
static prony_status concat_split_infer(const prony_context *context)
{
    const split_params *params = context->params;
    const prony_value *in = context->inputs[0], *lengths = prn_input(context, 1);
    int64_t axis = params->axis, part = 0;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(PRONY_INT64)));
    if (!prn_axis_normalize(&axis, in->shape.rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis,
                          in->shape.rank);
    }
    prony_shape shape = in->shape;
    int64_t rest = in->shape.dim[axis];
    bool given = params->split.present || lengths;
    bool known = !given || params->split.present || lengths->data;
    if (!given) {
        PRN_TRY(split_equally(context, rest, &part));
    } else if (known) {
        PRN_TRY(split_lengths(context, rest));
    } else {
        shape = prn_shape_unknown();
    }
    for (size_t k = 0; k < context->output_count; k++) {
        if (known) {
            shape.dim[axis] = given ? split_given(context, k) : (part < rest ? part : rest);
            rest -= shape.dim[axis];
        }
        prn_set_output(context, k, in->dtype, &shape);
    }
    return PRONY_OK;
}

static int split_axis(const prony_context *context)
{
    int64_t axis = ((const split_params *)context->params)->axis;
    return (int)(axis < 0 ? axis + context->inputs[0]->shape.rank : axis);
}

/* Extent of output k along the axis. The output itself may be omitted. */
static int64_t split_extent(const prony_context *context, size_t k)
{
    const split_params *params = context->params;
    if (context->outputs[k]) return context->outputs[k]->shape.dim[split_axis(context)];
    if (params->split.present || prn_input(context, 1)) return split_given(context, k);
    int64_t extent = context->inputs[0]->shape.dim[split_axis(context)], count = (int64_t)context->output_count;
    int64_t part = extent / count + (extent % count != 0);
    return part < extent - part * (int64_t)k ? part : extent - part * (int64_t)k;
}

static void split_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    prn_layout layout = (prn_layout)context->inputs[0]->layout;
    int axis = split_axis(context);
    int64_t block = axis == 1 ? prn_layout_block(layout) : 0;
    if (!prn_layout_joins(context->inputs[0]->shape.rank, layout)) return;
    int64_t begin = 0;
    for (size_t k = 0; k < context->output_count; k++) {
        if (context->outputs[k] && context->outputs[k]->shape.rank < 0) return;
        const int64_t channels = split_extent(context, k);
        if (block && !fits_blocks(block, begin, channels, k + 1 == context->output_count)) return;
        begin += channels;
    }
    in[0] = layout;
    for (size_t k = 0; k < context->output_count; k++) out[k] = layout;
}

static prony_status concat_split_run(const prony_context *context, prn_copy_fn execute)
{
    int64_t begin = 0;
    for (size_t k = 0; k < context->output_count; k++) {
        prony_value *part = context->outputs[k];
        if (part) {
            concat_move_part(context, context->inputs[0], part, split_axis(context), begin, false, execute);
            if (!has_own_blocks(context->inputs[0], &part->shape, split_axis(context), begin)) prn_clear_padding(part);
        }
        begin += split_extent(context, k);
    }
    return PRONY_OK;
}

static prony_status split_native(const prony_context *context)
{
    return concat_split_run(context, prn_copy_native);
}

static prony_status split_reference(const prony_context *context)
{
    return concat_split_run(context, prn_copy_reference);
}

static bool split_split_alias(const prony_context *context, size_t output, uint64_t *offset_bytes)
{
    const prony_value *in = context->inputs[0];
    const int axis = split_axis(context);
    prony_shape before = in->shape, shape = in->shape; /* an output's, except along the axis; outputs may be omitted */
    if (output > 0) before.dim[axis] = split_extent(context, output - 1);
    shape.dim[axis] = split_extent(context, output);
    return follows(in, output > 0 ? &before : NULL, &shape, axis, output + 1 == context->output_count, offset_bytes);
}

#ifdef PRN_HAVE_OPENCL
static prony_status split_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    return concat_opencl_moves(context, out, context->inputs[0], split_axis(context), context->output_count, false,
                               split_extent);
}
#endif

// clang-format off
static const prn_kernel split_kernels[] = {
    PRN_OPENCL_ROW("split_opencl", PRN_OPENCL_COPIED, prn_opencl_move_supported, split_opencl_prepare, .host_inputs = 2)
    {.name = "split_native", .backend = "native", .layouts = split_layouts, .run = split_native,
     .split_alias = split_split_alias},
    {.name = "split_reference", .backend = "reference", .run = split_reference},
    {0}};

const prn_op prn_ops_concat[] = {
    {.name = "Concat", .since_opset = 1, .inputs = {1, -1},
     .params = concat_attributes, .params_bytes = sizeof(concat_params), .check = concat_check,
     .infer = concat_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = concat_kernels},
    {.name = "Split", .since_opset = 1, .inputs = {1, 2}, .outputs = {1, -1}, .non_weight_inputs = 2,
     .params = split_attributes, .params_bytes = sizeof(split_params), .check = split_check,
     .infer = concat_split_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = split_kernels},
    {0}};
// clang-format on
