/* conv_f32_dnnl: a float32 convolution as tasks, each of them one oneDNN primitive that runs on one thread.
 *
 *     task = one piece of the problem: images x groups x a run of output channels
 *     scratch = [thinned input][working space of each piece][copy of a residual that lies in the output]
 *
 * oneDNN's own threads would share each primitive evenly and wait for the slowest; tasks are claimed as threads get to
 * them. A long call is split into many (dnnl_tiled.c). Primitives, memory objects and the stream belong to the
 * plan step (conv_state); a task touches only its own piece's objects. Packed weights, one run of bytes for each piece
 * of the channels, and the bias belong to the model.
 *
 * Invariant: pieces depend on the problem alone, so a result's bits do not depend on the number of threads. */
#include "ops/vendor/dnnl.h"
#include "ops/vendor/dnnl_guard.h"

#ifdef PRN_HAVE_DNNL

#include "base/integers.h"
#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/broadcast.h"
#include "base/threads/cancel.h"
#include "ops/vendor/dnnl_tiled.h"

#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static size_t dnnl_conv_align(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

bool prn_dnnl_conv_supported(const prony_context *context)
{
    prn_dnnl_problem problem;
    dnnl_primitive_desc_t desc[2];
    if (!prn_dnnl_problem_find(context, &problem, desc)) return false;
    prn_dnnl_problem_drop(desc);
    return true;
}

void prn_dnnl_conv_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    prn_dnnl_problem problem;
    dnnl_primitive_desc_t desc[2];
    if (!prn_dnnl_problem_find(context, &problem, desc)) return;
    prn_dnnl_problem_drop(desc);
    in[0] = problem.in;
    out[0] = problem.out;
    prn_post_ops_ask_layout(context->post_ops, problem.out, in);
}

/* ---- weights */

typedef struct packing {
    const prn_dnnl_problem *problem;
    prn_dnnl_desc_view format[2]; /* of a piece and of the last one */
    size_t step;                  /* bytes from one channel piece's weights to the next one's */
} packing;

/* Rows of the model's weights into rows of the padded ones. */
static void copy_padded(const prn_dnnl_problem *problem, float *to)
{
    const prn_conv *conv = &problem->conv;
    const float *from = conv->weights->data;
    size_t row = (size_t)(conv->group_in * conv->kernel_volume);
    for (int64_t g = 0; g < conv->groups; g++) {
        for (int64_t k = 0; k < conv->group_out; k++) {
            memcpy(to + (g * problem->group_out + k) * problem->group_in * conv->kernel_volume, from, row * sizeof *to);
            from += row;
        }
    }
}

typedef struct reordering {
    prn_dnnl_desc_view from, to;
    const void *source;
    void *target;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_memory_t source_memory, target_memory;
} reordering;

static dnnl_status_t make_and_run(void *argument)
{
    reordering *r = argument;
    dnnl_engine_t engine = prn_dnnl_engine();
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&r->desc, r->from, engine, r->to, engine, NULL);
    if (status == dnnl_success) status = dnnl_primitive_create(&r->primitive, r->desc);
    if (status == dnnl_success) status = dnnl_stream_create(&r->stream, engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = dnnl_memory_create(&r->source_memory, r->from, engine, (void *)(uintptr_t)r->source);
    if (status == dnnl_success) status = dnnl_memory_create(&r->target_memory, r->to, engine, r->target);
    if (status == dnnl_success) {
        dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, r->source_memory}, {DNNL_ARG_TO, r->target_memory}};
        status = dnnl_primitive_execute(r->primitive, r->stream, 2, arguments);
    }
    return status == dnnl_success ? dnnl_stream_wait(r->stream) : status;
}

static dnnl_status_t dnnl_conv_reorder(prn_dnnl_desc_view from, const void *source, prn_dnnl_desc_view to, void *target)
{
    reordering r = {.from = from, .to = to, .source = source, .target = target};
    dnnl_status_t status = prn_dnnl_guarded_creation(make_and_run, &r);
    dnnl_memory_destroy(r.target_memory);
    dnnl_memory_destroy(r.source_memory);
    dnnl_stream_destroy(r.stream);
    dnnl_primitive_destroy(r.primitive);
    dnnl_primitive_desc_destroy(r.desc);
    return status;
}

/* The weights of every channel piece from `source`, which is plain and padded. */
static dnnl_status_t pack_pieces(const packing *packing, const float *source, char *packed)
{
    static const dnnl_format_tag_t plain[] = {dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    const prn_dnnl_problem *problem = packing->problem;
    int64_t row = problem->group_in * problem->conv.kernel_volume;
    dnnl_status_t status = dnnl_success;
    for (int64_t i = 0; i < prn_dnnl_channel_pieces(problem) && status == dnnl_success && !prn_cancelled(); i++) {
        prn_dnnl_place place = prn_dnnl_piece_place(problem, i);
        prn_dnnl_desc from = {0};
        dnnl_dims_t dims;
        int count = prn_dnnl_weight_dims(problem, place.last ? &problem->last : &problem->piece, dims);
        const float *rows = source + (place.group * problem->group_out + place.out) * row;
        status = prn_dnnl_desc_make(&from, count, dims, plain[count - 3]);
        if (status == dnnl_success)
            status = dnnl_conv_reorder(prn_dnnl_desc_of(&from), rows, packing->format[place.last],
                                       packed + (size_t)i * packing->step);
        prn_dnnl_desc_drop(&from);
    }
    return status;
}

static prony_status dnnl_conv_build_weights(const prony_context *context, void *argument, void *packed)
{
    const packing *packing = argument;
    const prn_dnnl_problem *problem = packing->problem;
    const prony_value *weights = problem->conv.weights;
    int64_t elements = problem->groups * problem->group_out * problem->group_in * problem->conv.kernel_volume;
    size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, elements);
    const float *source = weights->data;
    float *copy = NULL;
    if (bytes != prn_layout_bytes(weights)) {
        copy = prn_alloc_aligned(ALIGNMENT, bytes);
        if (!copy) return prn_no_memory(context->error);
        memset(copy, 0, bytes);
        copy_padded(problem, copy);
        source = copy;
    }
    int former = prn_openmp_limit(1);
    dnnl_status_t status = pack_pieces(packing, source, packed);
    prn_openmp_restore(former);
    prn_free_aligned(copy);
    return status == dnnl_success ? PRONY_OK : prn_dnnl_failed(context, status, "packing weights");
}

static prony_status build_bias(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const prn_dnnl_problem *problem = ((const packing *)argument)->problem;
    size_t bytes = (size_t)(problem->groups * problem->group_out) * sizeof(float);
    memset(packed, 0, bytes);
    memcpy(packed, problem->conv.bias->data, (size_t)problem->conv.out_channels * sizeof(float));
    return PRONY_OK;
}

/* The packed weights and the padded bias, from the weight cache: keys hold everything that their bytes depend on. */
static prony_status packed_operands(const prony_context *context, packing *packing, const void **weights,
                                    const void **bias)
{
    int64_t layouts[2 * PRN_DNNL_DESC_NUMBERS];
    size_t count = 0;
    const prn_dnnl_problem *problem = packing->problem;
    const prn_conv *conv = &problem->conv;
    int64_t channels = problem->groups * problem->group_out;
    packing->step = dnnl_conv_align(dnnl_memory_desc_get_size(packing->format[0]));
    for (int i = 0; i < 2 && packing->format[i]; i++)
        count += prn_dnnl_desc_numbers(packing->format[i], layouts + count);
    const prn_pack_key key = {.build = dnnl_conv_build_weights,
                              .size = {conv->groups, prn_dnnl_channel_pieces(problem), problem->groups,
                                       problem->group_out, problem->group_in, conv->kernel_volume},
                              .detail = layouts,
                              .detail_bytes = count * sizeof *layouts};
    PRN_TRY(context->services->packed(context, conv->weights->data, &key,
                                      (size_t)prn_dnnl_channel_pieces(problem) * packing->step, packing, weights));
    *bias = conv->bias ? conv->bias->data : NULL;
    if (!conv->bias || channels == conv->out_channels) return PRONY_OK;
    const prn_pack_key padded = {.build = build_bias, .size = {conv->groups, problem->group_out, channels}};
    return context->services->packed(context, conv->bias->data, &padded, (size_t)channels * sizeof(float), packing,
                                     bias);
}

/* ---- state */

typedef struct conv_piece {
    prn_dnnl_call call;
    size_t x_offset, y_offset, scratch_offset;
    int64_t y_count;      /* floats */
    dnnl_status_t status; /* of the last run */
} conv_piece;

typedef struct conv_state {
    dnnl_primitive_t primitive[2];
    dnnl_stream_t stream;
    prn_post_ops tail;
    bool thinned;
    prn_window thick;           /* before it was thinned */
    int64_t x_planes, y_planes; /* channel blocks of all images */
    int64_t x_block, y_block;
    int64_t batch, y_spatial;
    int64_t lanes_to_clear; /* in the last block of every image */
    size_t y_bytes, copy_offset;
    bool copies;                 /* some residual may have to be kept in scratch */
    prn_dnnl_operands constants; /* weights and bias, where there are tiles */
    size_t tiles_offset;
    prn_dnnl_tiled *tiled;
    int64_t count; /* 0: there are tiles */
    conv_piece piece[];
} conv_state;

void prn_dnnl_conv_release(void *opaque)
{
    conv_state *state = opaque;
    if (!state) return;
    for (int64_t p = 0; p < state->count; p++) prn_dnnl_call_drop(&state->piece[p].call);
    prn_dnnl_tiled_drop(state->tiled);
    dnnl_stream_destroy(state->stream);
    for (int i = 0; i < 2; i++) dnnl_primitive_destroy(state->primitive[i]);
    prn_free(state);
}

typedef struct operands {
    const char *weights;
    const float *bias; /* NULL: none */
    size_t weights_step;
} operands;

/* Piece `index`; its part of the scratch begins at *scratch, which moves on. */
static dnnl_status_t fill_piece(conv_state *state, const prn_dnnl_problem *problem,
                                const dnnl_primitive_desc_t descs[2], const operands *operands, int64_t index,
                                size_t *scratch)
{
    conv_piece *piece = &state->piece[index];
    prn_dnnl_place place = prn_dnnl_piece_place(problem, index);
    const prn_dnnl_piece *size = place.last ? &problem->last : &problem->piece;
    const dnnl_primitive_desc_t desc = descs[place.last];
    prn_dnnl_desc_view work = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    int64_t channel = place.group * problem->group_out + place.out;
    int64_t y_plane = place.image * problem->groups * problem->group_out + channel;
    int64_t x_plane = (place.image * problem->groups + place.group) * problem->group_in;
    const prn_dnnl_operands places = {
        .weights = operands->weights + (size_t)(index % prn_dnnl_channel_pieces(problem)) * operands->weights_step,
        .bias = operands->bias ? operands->bias + channel : NULL};
    piece->x_offset = (size_t)(x_plane * problem->conv.in_spatial) * sizeof(float);
    piece->y_offset = (size_t)(y_plane * problem->conv.out_spatial) * sizeof(float);
    piece->y_count = size->batch * size->groups * size->out * problem->conv.out_spatial;
    piece->scratch_offset = *scratch;
    *scratch += dnnl_conv_align(dnnl_memory_desc_get_size(work));
    return prn_dnnl_call_make(&piece->call, state->primitive[place.last], desc, &problem->head, places.bias != NULL,
                              &places);
}

/* The whole problem, as run needs it, the output's last lanes included: post-operations that do not keep zero at zero
 * have them cleared. */
static void fill_sizes(conv_state *state, const prony_context *context, const prn_dnnl_problem *problem)
{
    const prn_conv *conv = &problem->conv;
    int64_t channels = problem->groups * problem->group_out;
    state->tail = problem->tail;
    state->thinned = problem->thinned;
    state->thick = problem->thick;
    state->batch = conv->batch;
    state->y_block = prn_layout_block(problem->out);
    state->x_block = state->thinned ? prn_layout_block(problem->in) : 1;
    state->x_planes = conv->batch * problem->groups * problem->group_in / state->x_block;
    state->y_planes = conv->batch * channels / state->y_block;
    state->y_spatial = conv->out_spatial;
    state->y_bytes = (size_t)(conv->batch * channels * conv->out_spatial) * sizeof(float);
    const prn_post_ops *post_ops = context->post_ops;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        bool add = post_ops->op[i].kind == PRN_POST_ADD;
        state->copies = state->copies || (add && !prn_dnnl_summed_in_place(post_ops, i));
    }
    if (!prn_post_ops_keep_zero(post_ops)) state->lanes_to_clear = channels - conv->out_channels;
}

/* Makes primitives, stream and pieces, and lays out the scratch. On failure the state holds what was made so far, and
 * its release frees it. */
static dnnl_status_t dnnl_conv_fill_state(conv_state *state, const prony_context *context,
                                          const prn_dnnl_problem *problem, const dnnl_primitive_desc_t descs[2],
                                          const operands *operands, size_t *scratch)
{
    dnnl_status_t status = dnnl_success;
    fill_sizes(state, context, problem);
    *scratch = 0;
    if (state->thinned)
        *scratch =
            dnnl_conv_align((size_t)(state->x_planes * state->x_block * problem->conv.in_spatial) * sizeof(float));
    for (int i = 0; i < 2 && descs[i] && !problem->tiling.total && status == dnnl_success; i++)
        status = dnnl_primitive_create(&state->primitive[i], descs[i]);
    if (status == dnnl_success)
        status = dnnl_stream_create(&state->stream, prn_dnnl_engine(), dnnl_stream_default_flags);
    if (status == dnnl_success && problem->tiling.total) {
        size_t bytes = 0;
        state->constants = (prn_dnnl_operands){.weights = operands->weights, .bias = operands->bias};
        state->tiles_offset = *scratch;
        status =
            prn_dnnl_tiled_make(&state->tiled, context, problem, &state->constants, operands->weights_step, &bytes);
        *scratch += dnnl_conv_align(bytes);
    }
    for (int64_t i = 0; i < state->count && status == dnnl_success; i++)
        status = fill_piece(state, problem, descs, operands, i, scratch);
    state->copy_offset = *scratch;
    if (state->copies) *scratch += state->y_bytes;
    return status;
}

typedef struct state_request {
    conv_state *state;
    const prony_context *context;
    const prn_dnnl_problem *problem;
    const dnnl_primitive_desc_t *descs;
    const operands *operands;
    size_t *scratch;
} state_request;

static dnnl_status_t fill_requested(void *argument)
{
    const state_request *r = argument;
    return dnnl_conv_fill_state(r->state, r->context, r->problem, r->descs, r->operands, r->scratch);
}

/* Packs the operands, then makes the state with OpenMP limited to one thread and the library's exceptions caught. */
static prony_status dnnl_conv_prepare(const prony_context *context, const prn_dnnl_problem *problem,
                                      const dnnl_primitive_desc_t descs[2], prn_prepared *out)
{
    packing packing = {.problem = problem};
    const void *weights, *bias;
    for (int i = 0; i < 2 && descs[i]; i++)
        packing.format[i] = dnnl_primitive_desc_query_md(descs[i], dnnl_query_weights_md, 0);
    PRN_TRY(packed_operands(context, &packing, &weights, &bias));
    int64_t count =
        problem->tiling.total ? 0 : problem->conv.batch / problem->piece.batch * prn_dnnl_channel_pieces(problem);
    conv_state *state = prn_calloc(1, sizeof *state + (size_t)count * sizeof *state->piece);
    if (!state) return prn_no_memory(context->error);
    state->count = count;
    operands operands = {weights, bias, packing.step};
    int former = prn_openmp_limit(1);
    state_request request = {state, context, problem, descs, &operands, &out->scratch_bytes};
    dnnl_status_t status = prn_dnnl_guarded_creation(fill_requested, &request);
    prn_openmp_restore(former);
    if (status != dnnl_success) {
        prn_dnnl_conv_release(state);
        return prn_dnnl_failed(context, status, "creating the primitive");
    }
    out->state = state;
    return PRONY_OK;
}

prony_status prn_dnnl_conv_prepare(const prony_context *context, prn_prepared *out)
{
    prn_dnnl_problem problem;
    dnnl_primitive_desc_t descs[2];
    if (!prn_dnnl_problem_find(context, &problem, descs)) /* It was there when the kernel was chosen. */
        return prn_dnnl_failed(context, dnnl_out_of_memory, "describing the convolution");
    /* Layouts were assigned by an earlier search, which fails where memory is short. */
    const bool same = context->inputs[0]->layout == problem.in && context->outputs[0]->layout == problem.out;
    prony_status status = same ? dnnl_conv_prepare(context, &problem, descs, out)
                               : prn_dnnl_failed(context, dnnl_out_of_memory, "describing the convolution");
    prn_dnnl_problem_drop(descs);
    return status;
}

/* ---- run */

typedef struct copy {
    char *to;
    const char *from;
} copy;

static void dnnl_conv_copy_piece(void *argument, int64_t begin, int64_t end)
{
    const copy *copy = argument;
    memcpy(copy->to + begin, copy->from + begin, (size_t)(end - begin));
}

static void dnnl_conv_copy_bytes(const prony_context *context, void *to, const void *from, size_t bytes)
{
    copy copy = {to, from};
    prn_parallel_range(context->threads, (int64_t)bytes, 1 << 18, dnnl_conv_copy_piece, &copy);
}

typedef struct job {
    conv_state *state;
    const char *x;
    char *y, *scratch;
    const char *residual[PRN_MAX_POST_OPS];
    const float *thick; /* the input before thinning */
} job;

/* The residuals: one that lies in the output is moved to scratch before anything is written there, which the
 * first residual may be: so that comes last. */
static void place_residuals(const prony_context *context, job *job)
{
    const conv_state *state = job->state;
    const prn_post_ops *post_ops = context->post_ops;
    for (size_t i = post_ops ? post_ops->count : 0; i-- > 0;) {
        if (post_ops->op[i].kind != PRN_POST_ADD) continue;
        const char *data = context->inputs[post_ops->op[i].input]->data;
        if (prn_dnnl_summed_in_place(post_ops, i)) {
            if (data != job->y) dnnl_conv_copy_bytes(context, job->y, data, state->y_bytes);
        } else if (data == job->y) {
            job->residual[i] = job->scratch + state->copy_offset;
            dnnl_conv_copy_bytes(context, job->scratch + state->copy_offset, data, state->y_bytes);
        } else {
            job->residual[i] = data;
        }
    }
}

static void thin_row(const prn_window *window, int64_t block, const float *from, float *to)
{
    int64_t step = block * window->stride[2];
    if (block == 8) { /* of known size: no call */
        for (int64_t x = 0; x < window->out[2]; x++) memcpy(to + x * 8, from + x * step, 8 * sizeof *to);
    } else {
        for (int64_t x = 0; x < window->out[2]; x++)
            memcpy(to + x * block, from + x * step, (size_t)block * sizeof *to);
    }
}

enum { PLANES_PER_TASK = 8, LOOK_FLOATS = 1 << 18 };

/* Keeps the positions of some channel blocks that the steps of the kernel meet. */
static void thin_task(void *argument, int64_t task)
{
    const job *job = argument;
    const conv_state *state = job->state;
    const prn_window *window = &state->thick;
    int64_t block = state->x_block, row_size = window->out[2] * block;
    int64_t whole = prn_window_volume(window->in) * block, kept = prn_window_volume(window->out) * block;
    int64_t end = (task + 1) * PLANES_PER_TASK, rows_per_look = LOOK_FLOATS / row_size + 1;
    for (int64_t plane = task * PLANES_PER_TASK; plane < end && plane < state->x_planes; plane++) {
        float *to = (float *)job->scratch + plane * kept;
        for (int64_t row = 0; row < window->out[0] * window->out[1] && !(row % rows_per_look == 0 && prn_cancelled());
             row++)
            thin_row(window, block, job->thick + plane * whole + prn_window_row(window, row, 0, 0) * block,
                     to + row * row_size);
    }
}

static void dnnl_conv_run_piece(void *argument, int64_t task)
{
    const job *job = argument;
    conv_piece *piece = &job->state->piece[task];
    prn_dnnl_operands places = {
        .x = job->x + piece->x_offset, .y = job->y + piece->y_offset, .scratch = job->scratch + piece->scratch_offset};
    for (int i = 0; i < PRN_MAX_POST_OPS; i++)
        if (job->residual[i]) places.residual[i] = job->residual[i] + piece->y_offset;
    int former = prn_openmp_limit(1);
    piece->status = prn_dnnl_call_run(&piece->call, job->state->stream, &places);
    if (piece->status == dnnl_success) prn_dnnl_apply_tail(&job->state->tail, places.y, piece->y_count);
    prn_openmp_restore(former);
}

static prony_status run_tiled(const prony_context *context, const job *job)
{
    conv_state *state = job->state;
    prn_dnnl_operands places = state->constants;
    places.x = job->x;
    places.y = job->y;
    places.scratch = job->scratch + state->tiles_offset;
    for (int i = 0; i < PRN_MAX_POST_OPS; i++) places.residual[i] = job->residual[i];
    dnnl_status_t status = prn_dnnl_tiled_run(state->tiled, context->threads, state->stream, &places);
    return status == dnnl_success ? PRONY_OK : prn_dnnl_failed(context, status, "running a tile of the convolution");
}

static void clear_lanes(const conv_state *state, float *y)
{
    int64_t image = state->y_planes / state->batch * state->y_spatial * state->y_block;
    for (int64_t n = 0; n < state->batch; n++) {
        float *last = y + (n + 1) * image - state->lanes_to_clear;
        for (int64_t p = 0; p < state->y_spatial && !prn_cancelled_at(p); p++)
            memset(last - p * state->y_block, 0, (size_t)state->lanes_to_clear * sizeof *last);
    }
}

prony_status prn_dnnl_conv_run(const prony_context *context)
{
    conv_state *state = context->state;
    job job = {.state = state, .x = context->inputs[0]->data, .y = context->outputs[0]->data};
    static char nothing; /* base of zero offsets if the step has no scratch */
    job.scratch = context->scratch ? context->scratch : &nothing;
    place_residuals(context, &job);
    if (state->thinned) {
        job.thick = context->inputs[0]->data;
        job.x = job.scratch;
        prn_parallel_tasks(context->threads, prn_ceil_div(state->x_planes, PLANES_PER_TASK), thin_task, &job);
    }
    if (state->tiled)
        PRN_TRY(run_tiled(context, &job));
    else
        prn_parallel_tasks(context->threads, state->count, dnnl_conv_run_piece, &job);
    for (int64_t i = 0; i < state->count; i++) {
        if (state->piece[i].status != dnnl_success)
            return prn_dnnl_failed(context, state->piece[i].status, "running the convolution");
    }
    if (state->lanes_to_clear)
        clear_lanes(state, context->outputs[0]->data);
    else
        prn_clear_spoiled_padding(context, context->outputs[0]);
    return PRONY_OK;
}

#endif
