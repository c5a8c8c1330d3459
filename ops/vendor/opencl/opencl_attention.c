/* Implements opencl_attention.h. */
#include "ops/vendor/opencl/opencl_attention.h"

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "ops/vendor/opencl/opencl_kv_cache.h"
#include "ops/vendor/opencl/opencl_launch.h"

#include <string.h>

/* LOCAL_FLOATS: 32 KiB, the least that OpenCL devices have; the tiles follow from it, not from the device. */
enum { GROUP = 128, ACROSS = 8, ROWS = GROUP / ACROSS, MOST_KEYS = 32, LEAST_KEYS = 8, LOCAL_FLOATS = 8192 };

/* As attention.cl has it. */
typedef struct attend {
    cl_int heads, shared, rows, keys;
    cl_int q[4], k[4], v[4], y[3], mask[4];
    cl_int mask_keys, kept, causal, before, batches, fresh, window, as_rows;
    cl_float scale, fill, cap, alone;
} attend;

typedef struct appended {
    cl_int count, heads, rows, size, batch, head, row, capacity, past;
} appended;

static int64_t tile_floats(const prn_attend *at, int64_t keys)
{
    const int64_t longest = at->depth + 1 > at->width ? at->depth + 1 : at->width;
    return ROWS * (at->depth + 1) + keys * longest + ROWS * (keys + 1);
}

/* Keys of a tile; 0: a row of Q, K or V is too long. */
static int64_t tile_keys(const prn_attend *at)
{
    for (int64_t keys = MOST_KEYS; keys >= LEAST_KEYS; keys /= 2)
        if (at->depth < LOCAL_FLOATS && at->width < LOCAL_FLOATS && tile_floats(at, keys) <= LOCAL_FLOATS) return keys;
    return 0;
}

bool prn_opencl_attend_supported(const prony_context *context, const prn_attend *at)
{
    for (size_t i = 0; i < 3; i++)
        if (context->inputs[i] && context->inputs[i]->dtype != PRONY_FLOAT32) return false;
    return prn_opencl_takes(context, false) && at->keys > 0 && tile_keys(at) > 0 &&
           prn_opencl_group_fits(context, GROUP, LOCAL_FLOATS * sizeof(float));
}

static void copy_strides(cl_int *to, const int64_t *from, int count)
{
    for (int d = 0; d < count; d++) to[d] = (cl_int)from[d];
}

static attend attend_of(const prn_opencl_attend *problem)
{
    const prn_attend *at = problem->at;
    attend p = {.heads = (cl_int)at->heads,
                .shared = (cl_int)(at->heads / at->key_heads),
                .rows = (cl_int)at->rows,
                .keys = (cl_int)at->keys,
                .mask_keys = (cl_int)problem->mask_keys,
                .kept = at->kept,
                .causal = problem->causal,
                .before = (cl_int)problem->before,
                .scale = at->scale,
                .fill = at->fill,
                .cap = problem->cap,
                .alone = problem->alone};
    copy_strides(p.q, at->q.stride, 4);
    copy_strides(p.k, at->k.stride, 4);
    copy_strides(p.v, at->v.stride, 4);
    copy_strides(p.y, at->y_stride, 3);
    copy_strides(p.mask, problem->mask_stride, 4);
    return p;
}

static void attend_define(opencl_defines *defines, const prn_opencl_attend *problem)
{
    static const char *const masks[] = {[PRN_OPENCL_NO_MASK] = "NO_MASK",
                                        [PRN_OPENCL_MASK_ADDED] = "MASK",
                                        [PRN_OPENCL_MASK_CHOOSES] = "CHOICE",
                                        [PRN_OPENCL_MASK_LEAVES] = "CHOICE_ADDED"};
    const prn_attend *at = problem->at;
    prn_opencl_define(defines, "#define DEPTH %d\n#define WIDTH %d\n#define KEYS %d\n#define %s\n", (int)at->depth,
                      (int)at->width, (int)tile_keys(at), masks[problem->mask]);
}

static void attend_work(opencl_builder *b, const prn_attend *at)
{
    prn_opencl_work(b, (size_t)(at->rows + ROWS - 1) / ROWS * GROUP, (size_t)(at->batch * at->heads), 1, GROUP, 1, 1);
}

prony_status prn_opencl_attend_prepare(const prony_context *context, const prn_opencl_attend *problem,
                                       prn_prepared *out)
{
    const attend p = attend_of(problem);
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    attend_define(&defines, problem);
    prn_opencl_launch(&b, &prn_opencl_attention, &defines, "attend_rows");
    for (size_t i = 0; i < 3; i++) prn_opencl_input(&b, i, 0);
    if (problem->mask != PRN_OPENCL_NO_MASK) prn_opencl_input(&b, 3, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    attend_work(&b, problem->at);
    return prn_opencl_end(&b, out);
}

/* ---- from other operands ---- */

/* A mask of the run: its address on the device, and its host bytes. */
typedef struct projected_state {
    void *table; /* NULL: none */
    size_t bytes;
    float mask[];
} projected_state;

prony_status prn_opencl_projected_prepare(const prony_context *context, const prn_opencl_attend *problem,
                                          const prn_opencl_projected *projected, prn_prepared *out)
{
    const attend p = attend_of(problem);
    const size_t bytes = (size_t)projected->mask_count * sizeof(float);
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    projected_state *kept = prn_opencl_keep(&b, sizeof *kept + bytes);
    attend_define(&defines, problem);
    if (projected->biased) prn_opencl_define(&defines, "#define BIASED %u\n", projected->biased);
    prn_opencl_launch(&b, &prn_opencl_attention, &defines, "attend_rows");
    for (size_t i = 0; i < 3; i++)
        prn_opencl_input(&b, projected->input[i], (uint64_t)projected->from[i] * sizeof(float));
    void *table = bytes && kept ? prn_opencl_table(&b, kept->mask, bytes) : NULL;
    if (!bytes && problem->mask != PRN_OPENCL_NO_MASK) prn_opencl_input(&b, projected->mask, 0);
    if (kept) {
        kept->table = table;
        kept->bytes = bytes;
    }
    if (projected->biased) prn_opencl_input(&b, projected->bias, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    attend_work(&b, problem->at);
    return prn_opencl_end(&b, out);
}

float *prn_opencl_projected_mask(const prony_context *context)
{
    projected_state *kept = prn_opencl_kept(context->state);
    return kept->table ? kept->mask : NULL;
}

prony_status prn_opencl_projected_run(const prony_context *context)
{
    const projected_state *kept = prn_opencl_kept(context->state);
    if (kept->table) PRN_TRY(prn_opencl_queue_write(context, kept->table, kept->mask, kept->bytes));
    return prn_opencl_run(context);
}

/* ---- with caches ---- */

/* What the step keeps beside its launches. */
typedef struct append_state {
    prn_opencl_kv_cache cache[2]; /* of keys and values; the host's addresses are the run's */
    size_t batch, past, rows;
    void *table; /* of groups: its address on the device; NULL: none */
    size_t count;
    int32_t values[]; /* its host bytes: they stay as they are until the run has waited */
} append_state;

bool prn_opencl_append_supported(const prony_context *context, const prn_attend *at, int64_t capacity)
{
    const int64_t longest = at->depth > at->width ? at->depth : at->width;
    int64_t all;
    return prn_opencl_attend_supported(context, at) &&
           !__builtin_mul_overflow(at->batch * at->key_heads * capacity, longest, &all) && all < INT32_MAX;
}

static void define_angles(opencl_defines *defines, const prn_opencl_angles *angles)
{
    if (angles->half > 0)
        prn_opencl_define(defines, "#define TURN\n#define HALF %d\n#define INTERLEAVED %d\n", (int)angles->half,
                          angles->interleaved);
}

static void angle_inputs(opencl_builder *b, const prn_opencl_angles *angles)
{
    if (angles->half == 0) return;
    prn_opencl_input(b, angles->cosines, 0);
    prn_opencl_input(b, angles->sines, 0);
}

/* The table comes into being with the first launch that reads it. */
static void add_table(opencl_builder *b, append_state *kept)
{
    enum { TABLE = 2 }; /* address beside the values, behind K and V */
    if (!kept || kept->count == 0) return;
    if (kept->table)
        prn_opencl_beside(b, TABLE, 0);
    else
        kept->table = prn_opencl_table(b, kept->values, kept->count * sizeof *kept->values);
}

static void launch_append(opencl_builder *b, const prn_attend *at, const prn_opencl_append *append, append_state *kept,
                          bool keys)
{
    enum { ITEMS = 64 };
    static const prn_opencl_angles none = {0};
    const prn_opencl_fresh *fresh = keys ? &append->k : &append->v;
    const prn_opencl_angles *angles = append->groups && keys ? &append->groups->angles : &none;
    const int64_t size = keys ? at->depth : at->width;
    const appended p = {.count = (cl_int)(at->batch * at->key_heads * append->rows * size),
                        .heads = (cl_int)at->key_heads,
                        .rows = (cl_int)append->rows,
                        .size = (cl_int)size,
                        .batch = (cl_int)fresh->batch,
                        .head = (cl_int)fresh->head,
                        .row = (cl_int)fresh->row,
                        .capacity = (cl_int)append->capacity,
                        .past = (cl_int)append->past};
    opencl_defines defines = {0};
    prn_opencl_define(&defines, "#define APPEND\n%s", append->groups ? "#define GROUPED\n" : "");
    define_angles(&defines, angles);
    prn_opencl_launch(b, &prn_opencl_attention, &defines, "append_rows");
    prn_opencl_input(b, fresh->input, (uint64_t)fresh->from * sizeof(float));
    prn_opencl_beside(b, keys ? 0 : 1, 0);
    add_table(b, kept);
    angle_inputs(b, angles);
    prn_opencl_argument(b, &p, sizeof p);
    prn_opencl_work(b, (size_t)p.count, 1, 1, ITEMS, 1, 1);
}

static void launch_attend(opencl_builder *b, const prn_opencl_attend *problem, const prn_opencl_append *append,
                          append_state *kept)
{
    const prn_opencl_groups *groups = append->groups;
    attend p = attend_of(problem);
    opencl_defines defines = {0};
    attend_define(&defines, problem);
    if (groups) {
        p.batches = (cl_int)problem->at->batch;
        p.fresh = (cl_int)append->rows;
        p.window = (cl_int)groups->window;
        p.as_rows = groups->as_rows;
        prn_opencl_define(&defines, "#define GROUPED\n%s%s", groups->sink ? "#define SINK\n" : "",
                          groups->smooth ? "#define SMOOTH\n" : "");
        define_angles(&defines, &groups->angles);
    }
    prn_opencl_launch(b, &prn_opencl_attention, &defines, "attend_rows");
    prn_opencl_input(b, 0, 0);
    for (size_t i = 0; i < 2; i++) prn_opencl_beside(b, i, 0);
    if (problem->mask != PRN_OPENCL_NO_MASK) prn_opencl_input(b, append->mask, 0);
    add_table(b, kept);
    if (groups) angle_inputs(b, &groups->angles);
    if (groups && groups->sink) prn_opencl_input(b, groups->sink, 0);
    prn_opencl_output(b, 0, 0);
    prn_opencl_argument(b, &p, sizeof p);
    attend_work(b, problem->at);
}

prony_status prn_opencl_append_prepare(const prony_context *context, const prn_opencl_attend *problem,
                                       const prn_opencl_append *append, prn_prepared *out)
{
    const prn_attend *at = problem->at;
    const size_t count = append->groups ? (size_t)at->batch * (size_t)(1 + append->rows) : 0,
                 blocks = (size_t)(at->batch * at->key_heads), capacity = (size_t)append->capacity,
                 k_row = (size_t)at->depth * sizeof(float), v_row = (size_t)at->width * sizeof(float);
    opencl_builder b = prn_opencl_begin(context, 3);
    append_state *kept = prn_opencl_keep(&b, sizeof *kept + count * sizeof *kept->values);
    if (kept) {
        *kept =
            (append_state){.cache = {{NULL, blocks, capacity * k_row, k_row}, {NULL, blocks, capacity * v_row, v_row}},
                           .batch = (size_t)at->batch,
                           .past = (size_t)append->past,
                           .rows = (size_t)append->rows,
                           .count = count};
    }
    launch_append(&b, at, append, kept, true);
    launch_append(&b, at, append, kept, false);
    launch_attend(&b, problem, append, kept);
    return prn_opencl_end(&b, out);
}

int32_t *prn_opencl_append_table(const prony_context *context)
{
    return ((append_state *)prn_opencl_kept(context->state))->values;
}

/* Rows of sequence b before this run. */
static size_t past_of(const append_state *kept, size_t b)
{
    return kept->count ? (size_t)kept->values[b] : kept->past;
}

/* New rows of one cache to the host: one copy for neighbours of one length. */
static prony_status write_back(const prony_context *context, const append_state *kept, const prn_opencl_kv_cache *cache,
                               const void *address)
{
    const size_t each = cache->blocks / kept->batch;
    prony_status status = PRONY_OK;
    for (size_t b = 0, end; b < kept->batch && status == PRONY_OK; b = end) {
        for (end = b + 1; end < kept->batch && past_of(kept, end) == past_of(kept, b);) end++;
        status = prn_opencl_kv_cache_write(context, cache, address, b * each, (end - b) * each, past_of(kept, b),
                                           kept->rows);
    }
    return status;
}

static prony_status run_on_caches(const prony_context *context, const append_state *kept, void *k, void *v)
{
    void *const beside[] = {k, v, kept->table};
    if (kept->table)
        PRN_TRY(prn_opencl_queue_write(context, kept->table, kept->values, kept->count * sizeof *kept->values));
    PRN_TRY(prn_opencl_run_beside(context, beside));
    PRN_TRY(write_back(context, kept, &kept->cache[0], k));
    return write_back(context, kept, &kept->cache[1], v);
}

/* A failure leaves the copies of the caches without valid rows. */
prony_status prn_opencl_append_run(const prony_context *context, void *host_k, void *host_v)
{
    append_state *kept = prn_opencl_kept(context->state);
    prn_device *device = context->device->device;
    size_t shortest = past_of(kept, 0), longest = shortest;
    for (size_t b = 1; b < kept->batch; b++) {
        shortest = past_of(kept, b) < shortest ? past_of(kept, b) : shortest;
        longest = past_of(kept, b) > longest ? past_of(kept, b) : longest;
    }
    void *const host[] = {host_k, host_v};
    void *address[2] = {NULL, NULL};
    bool keeps[2];
    prony_status status = PRONY_OK;
    for (size_t i = 0; i < 2 && status == PRONY_OK; i++) {
        kept->cache[i].host = host[i];
        status = prn_opencl_kv_cache_read(context, &kept->cache[i], longest, &address[i], &keeps[i]);
    }
    if (status == PRONY_OK) status = run_on_caches(context, kept, address[0], address[1]);
    for (size_t i = 0; i < 2; i++) {
        if (status == PRONY_OK)
            prn_opencl_kv_cache_holds(device, host[i], shortest + kept->rows);
        else
            prn_device_cache_changed(device, host[i]);
        if (address[i] && !keeps[i]) prn_opencl_space.give(device, address[i]);
    }
    return status;
}

/* ---- RotaryEmbedding ---- */

typedef struct rotate_state {
    void *table; /* of positions; NULL: none */
    size_t bytes;
} rotate_state;

bool prn_opencl_rotate_supported(const prony_context *context, size_t cosines, size_t sines)
{
    return prn_opencl_takes_inputs(context, 1u | 1u << cosines | 1u << sines);
}

/* One work item turns one element. Positions that come with the run stand in a table, which begins as zeros and is filled by
 * prn_opencl_rotate_run; without them row s takes angle s. */
prony_status prn_opencl_rotate_prepare(const prony_context *context, const prn_opencl_rotation *rotation,
                                       prn_prepared *out)
{
    enum { ITEMS = 64 };
    const int64_t count = prony_shape_numel(&context->inputs[0]->shape);
    const size_t bytes = (size_t)rotation->ids * sizeof(int64_t);
    int64_t *zeros = bytes ? prn_calloc(1, bytes) : NULL;
    if (bytes && !zeros) return prn_no_memory(context->error);
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    rotate_state *kept = prn_opencl_keep(&b, sizeof *kept);
    prn_opencl_define(&defines, "#define ROTATE\n#define PACKED %d\n#define POSITIONS %d\n", rotation->packed,
                      !bytes                 ? 0
                      : rotation->first_only ? 2
                                             : 1);
    define_angles(&defines, &rotation->angles);
    prn_opencl_launch(&b, &prn_opencl_attention, &defines, "rotate_rows");
    prn_opencl_input(&b, 0, 0);
    prn_opencl_output(&b, 0, 0);
    angle_inputs(&b, &rotation->angles);
    void *table = bytes ? prn_opencl_table(&b, zeros, bytes) : NULL;
    if (kept) *kept = (rotate_state){table, bytes};
    prn_opencl_int(&b, count);
    prn_opencl_int(&b, rotation->rows);
    prn_opencl_int(&b, rotation->heads);
    prn_opencl_int(&b, rotation->size);
    prn_opencl_work(&b, (size_t)count, 1, 1, ITEMS, 1, 1);
    prn_free(zeros);
    return prn_opencl_end(&b, out);
}

prony_status prn_opencl_rotate_run(const prony_context *context, const int64_t *ids)
{
    const rotate_state *kept = prn_opencl_kept(context->state);
    if (kept->table) PRN_TRY(prn_opencl_queue_write(context, kept->table, ids, kept->bytes));
    return prn_opencl_run(context);
}
#endif
