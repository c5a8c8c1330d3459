/* A convolution computed tile by tile, so that it can be left between two of them.
 *
 *     task    = a lane: a run of the tiles of all pieces, one after another
 *     scratch = lanes times [oneDNN's working space][the tile's input][its output][its part of each residual]
 *
 * oneDNN takes dense tensors only: what a tile sees is copied together, and what it makes copied to its place, unless
 * it is one run of memory. Each lane has memory objects of its own, a set for every shape of tiles.
 *
 * Invariant: which tile is computed how does not depend on the number of threads. */
#include "ops/op.h"

#ifdef PRN_HAVE_DNNL

#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/vendor/dnnl_tiled.h"

#include <string.h>

enum { ALIGNMENT = 64, MOST_LANES = 16 };

/* Tiles of one shape in pieces of one size. */
typedef struct tile_form {
    dnnl_primitive_t primitive;
    prn_window window;
    int64_t x_planes, y_planes; /* channel blocks */
    int64_t y_count;            /* floats */
    bool x_run, y_run;          /* are one run of memory in the image */
} tile_form;

struct prn_dnnl_tiled {
    prn_dnnl_problem problem;
    prn_window window; /* of the whole */
    int64_t x_block, y_block;
    size_t weights_step;
    bool sums; /* the output is read too */
    int64_t items, lanes;
    size_t work_bytes, x_bytes, y_bytes, lane_bytes;
    int forms;
    dnnl_status_t status[MOST_LANES];         /* of the last run */
    tile_form form[2 * PRN_DNNL_MOST_SHAPES]; /* shape by shape, of a piece and of the last one */
    prn_dnnl_call call[];                     /* lane by lane */
};

static size_t dnnl_tiled_align(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t dnnl_tiled_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- made */

/* Makes the primitive of one tile shape, with a call per lane, and raises the room that a lane needs. */
static dnnl_status_t dnnl_tiled_make_form(prn_dnnl_tiled *tiled, int number, const prn_dnnl_operands *places)
{
    const prn_dnnl_problem *problem = &tiled->problem;
    const prn_dnnl_piece *piece = number % 2 ? &problem->last : &problem->piece;
    tile_form *form = &tiled->form[number];
    form->window = prn_dnnl_tile_window(&tiled->window, &problem->tiling, number / 2);
    form->x_planes = piece->groups * problem->group_in / tiled->x_block;
    form->y_planes = piece->groups * piece->out / tiled->y_block;
    form->y_count = form->y_planes * tiled->y_block * prn_window_volume(form->window.out);
    form->x_run = form->x_planes == 1 && prn_dnnl_box_is_run(form->window.in, tiled->window.in);
    form->y_run = form->y_planes == 1 && prn_dnnl_box_is_run(form->window.out, tiled->window.out);
    dnnl_primitive_desc_t desc = prn_dnnl_piece_desc(problem, piece, &form->window);
    if (!desc) return dnnl_unimplemented;
    prn_dnnl_desc_view x = dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0);
    prn_dnnl_desc_view y = dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0);
    prn_dnnl_desc_view work = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    tiled->work_bytes = dnnl_tiled_larger(tiled->work_bytes, dnnl_tiled_align(dnnl_memory_desc_get_size(work)));
    if (!form->x_run)
        tiled->x_bytes = dnnl_tiled_larger(tiled->x_bytes, dnnl_tiled_align(dnnl_memory_desc_get_size(x)));
    if (!form->y_run)
        tiled->y_bytes = dnnl_tiled_larger(tiled->y_bytes, dnnl_tiled_align(dnnl_memory_desc_get_size(y)));
    dnnl_status_t status = dnnl_primitive_create(&form->primitive, desc);
    for (int64_t lane = 0; lane < tiled->lanes && status == dnnl_success; lane++)
        status = prn_dnnl_call_make(&tiled->call[lane * tiled->forms + number], form->primitive, desc, &problem->head,
                                    places->bias != NULL,
                                    &(prn_dnnl_operands){.weights = places->weights, .bias = places->bias});
    dnnl_primitive_desc_destroy(desc);
    return status;
}

/* The output of a tile, and what is added to it. */
static int64_t y_copies(const prn_post_ops *post_ops)
{
    int64_t count = 1;
    for (size_t i = 0; post_ops && i < post_ops->count; i++)
        count += post_ops->op[i].kind == PRN_POST_ADD && !prn_dnnl_summed_in_place(post_ops, i);
    return count;
}

/* Makes every tile shape's primitives; *scratch is the room of all lanes. On failure *out is released by the caller. */
dnnl_status_t prn_dnnl_tiled_make(prn_dnnl_tiled **out, const prony_context *context, const prn_dnnl_problem *problem,
                                  const prn_dnnl_operands *places, size_t weights_step, size_t *scratch)
{
    const int forms = 2 * prn_dnnl_tile_shapes(&problem->tiling);
    const int64_t items = problem->conv.batch * prn_dnnl_channel_pieces(problem) * problem->tiling.total;
    const int64_t lanes = items < MOST_LANES ? items : MOST_LANES;
    prn_dnnl_tiled *tiled = prn_calloc(1, sizeof *tiled + (size_t)(lanes * forms) * sizeof tiled->call[0]);
    *out = tiled;
    if (!tiled) return dnnl_out_of_memory;
    tiled->problem = *problem;
    tiled->window = problem->conv.window;
    tiled->x_block = problem->in == PRN_PLAIN ? 1 : prn_layout_block(problem->in);
    tiled->y_block = prn_layout_block(problem->out);
    tiled->weights_step = weights_step;
    tiled->items = items;
    tiled->lanes = lanes;
    tiled->forms = forms;
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < forms && status == dnnl_success; i++) {
        if (i % 2 == 0 || problem->last.batch) status = dnnl_tiled_make_form(tiled, i, places);
    }
    const prn_post_ops *post_ops = context->post_ops;
    tiled->sums = post_ops && post_ops->count > 0 && prn_dnnl_summed_in_place(post_ops, 0);
    tiled->lane_bytes = tiled->work_bytes + tiled->x_bytes + (size_t)y_copies(post_ops) * tiled->y_bytes;
    *scratch = (size_t)lanes * tiled->lane_bytes;
    return status;
}

void prn_dnnl_tiled_drop(prn_dnnl_tiled *tiled)
{
    if (!tiled) return;
    for (int64_t i = 0; i < tiled->lanes * tiled->forms; i++) prn_dnnl_call_drop(&tiled->call[i]);
    for (int i = 0; i < tiled->forms; i++) dnnl_primitive_destroy(tiled->form[i].primitive);
    prn_free(tiled);
}

/* ---- run */

/* A box of some channel blocks inside of images, and the same as a dense tensor. */
typedef struct box {
    const int64_t *image, *extent, *at;
    int64_t planes, block;
} box;

static size_t box_offset(const box *box)
{
    return (size_t)(((box->at[0] * box->image[1] + box->at[1]) * box->image[2] + box->at[2]) * box->block);
}

/* Into the dense tensor, or out of it. `image` begins with the box's first plane. */
static void copy_box(const box *box, float *image, float *dense, bool out)
{
    const bool whole_rows = box->extent[2] == box->image[2];
    const int64_t rows = whole_rows ? 1 : box->extent[1];
    const size_t run = (size_t)((whole_rows ? box->extent[1] : 1) * box->extent[2] * box->block);
    const int64_t plane = prn_window_volume(box->image) * box->block;
    image += box_offset(box);
    for (int64_t p = 0; p < box->planes; p++) {
        for (int64_t i = 0; i < box->extent[0]; i++) {
            float *from = image + p * plane + i * box->image[1] * box->image[2] * box->block;
            for (int64_t j = 0; j < rows; j++, from += box->image[2] * box->block, dense += run)
                memcpy(out ? from : dense, out ? dense : from, run * sizeof *dense);
        }
    }
}

typedef struct tiled_job {
    prn_dnnl_tiled *tiled;
    dnnl_stream_t stream;
    const prn_dnnl_operands *places;
} tiled_job;

/* Runs one tile in its lane's room: boxes that are not contiguous are copied in before and out after. Tiles write
 * disjoint outputs. */
static dnnl_status_t dnnl_tiled_run_tile(const tiled_job *job, int64_t lane, int64_t item)
{
    prn_dnnl_tiled *tiled = job->tiled;
    const prn_dnnl_problem *problem = &tiled->problem;
    const int64_t number = item / problem->tiling.total;
    const prn_dnnl_place place = prn_dnnl_piece_place(problem, number);
    const prn_dnnl_tile tile = prn_dnnl_tile_at(&tiled->window, &problem->tiling, item % problem->tiling.total);
    const int form_number = 2 * tile.shape + place.last;
    const tile_form *form = &tiled->form[form_number];
    const box x = {tiled->window.in, form->window.in, tile.in_at, form->x_planes, tiled->x_block};
    const box y = {tiled->window.out, form->window.out, tile.out_at, form->y_planes, tiled->y_block};
    const int64_t channel = place.group * problem->group_out + place.out;
    const int64_t x_channel = (place.image * problem->groups + place.group) * problem->group_in;
    const int64_t y_channel = place.image * problem->groups * problem->group_out + channel;
    const int64_t x_first = x_channel * problem->conv.in_spatial, y_first = y_channel * problem->conv.out_spatial;
    float *x_image = (float *)(uintptr_t)job->places->x + x_first, *y_image = (float *)job->places->y + y_first;
    char *free_scratch = (char *)job->places->scratch + (size_t)lane * tiled->lane_bytes;
    prn_dnnl_operands at = {.scratch = free_scratch};
    float *x_dense = (float *)(void *)(free_scratch + tiled->work_bytes);
    char *y_dense = free_scratch + tiled->work_bytes + tiled->x_bytes;
    const char *weights = job->places->weights;
    at.weights = weights + (size_t)(number % prn_dnnl_channel_pieces(problem)) * tiled->weights_step;
    at.bias = job->places->bias ? (const float *)job->places->bias + channel : NULL;
    at.x = form->x_run ? x_image + box_offset(&x) : x_dense;
    at.y = form->y_run ? (void *)(y_image + box_offset(&y)) : (void *)y_dense;
    if (!form->x_run) copy_box(&x, x_image, x_dense, false);
    if (!form->y_run && tiled->sums) copy_box(&y, y_image, at.y, false);
    for (int i = 0; i < PRN_MAX_POST_OPS; i++) {
        if (!job->places->residual[i]) continue;
        float *image = (float *)(uintptr_t)job->places->residual[i] + y_first;
        y_dense += tiled->y_bytes;
        at.residual[i] = form->y_run ? image + box_offset(&y) : (float *)(void *)y_dense;
        if (!form->y_run) copy_box(&y, image, (float *)(void *)y_dense, false);
    }
    dnnl_status_t status = prn_dnnl_call_run(&tiled->call[lane * tiled->forms + form_number], job->stream, &at);
    if (status == dnnl_success) prn_dnnl_apply_tail(&problem->tail, at.y, form->y_count);
    if (status == dnnl_success && !form->y_run) copy_box(&y, y_image, at.y, true);
    return status;
}

static void run_lane(void *argument, int64_t lane)
{
    const tiled_job *job = argument;
    prn_dnnl_tiled *tiled = job->tiled;
    dnnl_status_t status = dnnl_success;
    const int64_t end = tiled->items * (lane + 1) / tiled->lanes;
    int former = prn_openmp_limit(1);
    for (int64_t item = tiled->items * lane / tiled->lanes; item < end && status == dnnl_success && !prn_cancelled();
         item++)
        status = dnnl_tiled_run_tile(job, lane, item);
    prn_openmp_restore(former);
    tiled->status[lane] = status;
}

dnnl_status_t prn_dnnl_tiled_run(prn_dnnl_tiled *tiled, int threads, dnnl_stream_t stream,
                                 const prn_dnnl_operands *places)
{
    tiled_job job = {tiled, stream, places};
    memset(tiled->status, 0, sizeof tiled->status);
    prn_parallel_tasks(threads, tiled->lanes, run_lane, &job);
    for (int64_t lane = 0; lane < tiled->lanes; lane++)
        if (tiled->status[lane] != dnnl_success) return tiled->status[lane];
    return dnnl_success;
}

#endif
