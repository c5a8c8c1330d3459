/* Makes lazy constants. Tasks depend on the result's size, never on threads. Source bytes may be unaligned, so they are
 * read with memcpy. Pages of a mapped source are released piece by piece, so a large weight is never in memory
 * twice. */
#include "engine/bind/lazy_constant.h"

#include "base/integers.h"
#include "base/hash/keyed_hash.h"
#include "base/threads/parallel.h"
#include "base/shape.h"
#include "base/threads/cancel.h"

#include <stdatomic.h>
#include <string.h>

enum {
    PIECE_BYTES = 1 << 20, /* of one task */
    TILE = 16,             /* side of a tile in elements: a cache line of four-byte elements */
    SCALE_RUN = 2048,      /* elements; a divisor of a piece's */
    STRIP = 64             /* rows transposed one after another, so that results are written sequentially */
};

size_t prn_defer_bytes;

bool prn_lazy_constant_profitable(const prony_value *value)
{
    const bool number = value->dtype == PRONY_FLOAT32 || value->dtype == PRONY_FLOAT16 ||
                        value->dtype == PRONY_BFLOAT16 || value->dtype == PRONY_FLOAT64;
    const size_t bytes = prn_value_bytes(value), least = prn_defer_bytes ? prn_defer_bytes : PRN_DEFER_BYTES;
    const bool several = value->shape.rank >= 2 && prony_shape_numel(&value->shape) > 1;
    return value->kind == PRONY_TENSOR && several && number && bytes != SIZE_MAX && bytes >= least;
}

size_t prn_lazy_constant_bytes(const prn_lazy_constant *recipe)
{
    return recipe->width * (size_t)recipe->count;
}

bool prn_lazy_constant_same(const prn_lazy_constant *a, const prn_lazy_constant *b)
{
    if (a->kind != b->kind || a->width != b->width || a->count != b->count || a->source != b->source ||
        a->rows != b->rows || a->columns != b->columns || a->inner != b->inner || a->modulus != b->modulus ||
        a->block != b->block || a->channels != b->channels)
        return false;
    return a->channels == 0 || memcmp(a->scale, b->scale, (size_t)a->channels * sizeof *a->scale) == 0;
}

uint64_t prn_lazy_constant_hash(const prn_lazy_constant *recipe)
{
    const int64_t numbers[] = {(int64_t)recipe->kind, (int64_t)recipe->width, recipe->count,   recipe->rows,
                               recipe->columns,       recipe->inner,          recipe->modulus, recipe->block};
    prn_keyed_hash hash;
    prn_keyed_hash_init(&hash);
    prn_keyed_hash_word(&hash, (uint64_t)(uintptr_t)recipe->source);
    prn_keyed_hash_bytes(&hash, numbers, sizeof numbers);
    if (recipe->channels) prn_keyed_hash_bytes(&hash, recipe->scale, (size_t)recipe->channels * sizeof *recipe->scale);
    return prn_keyed_hash_end(&hash);
}

typedef struct make_job {
    const prn_lazy_constant *recipe;
    char *to;
    int64_t piece; /* elements of a task, or rows */
    atomic_bool overflowed;
} make_job;

static void forget(const prn_lazy_constant *recipe, int64_t first, int64_t count)
{
    if (recipe->file)
        prn_model_forget(recipe->file, (const char *)recipe->source + (size_t)first * recipe->width,
                         (size_t)count * recipe->width);
}

static void lazy_constant_copy_piece(void *argument, int64_t task)
{
    const make_job *job = argument;
    const prn_lazy_constant *r = job->recipe;
    const int64_t first = task * job->piece, count = prn_least(job->piece, r->count - first);
    memcpy(job->to + (size_t)first * r->width, (const char *)r->source + (size_t)first * r->width,
           (size_t)count * r->width);
    forget(r, first, count);
}

/* ---- transposing */

/* Columns [c, c + columns) of rows [row, row + rows), at most TILE of either. */
#define DEFINE_TILE(type)                                                                                              \
    static void tile_##type(const prn_lazy_constant *r, int64_t row, int64_t rows, int64_t c, int64_t columns,         \
                            char *to)                                                                                  \
    {                                                                                                                  \
        type in[TILE][TILE], out[TILE];                                                                                \
        for (int64_t i = 0; i < rows; i++)                                                                             \
            memcpy(in[i], (const char *)r->source + (size_t)((row + i) * r->columns + c) * sizeof(type),               \
                   (size_t)columns * sizeof(type));                                                                    \
        for (int64_t k = 0; k < columns; k++) {                                                                        \
            for (int64_t i = 0; i < rows; i++) out[i] = in[i][k];                                                      \
            memcpy(to + (size_t)((c + k) * r->rows + row) * sizeof(type), out, (size_t)rows * sizeof(type));           \
        }                                                                                                              \
    }
DEFINE_TILE(uint8_t)
DEFINE_TILE(uint16_t)
DEFINE_TILE(uint32_t)
DEFINE_TILE(uint64_t)

static void transpose_strip(const prn_lazy_constant *r, int64_t row, int64_t rows, char *to)
{
    for (int64_t c = 0; c < r->columns; c += TILE) {
        const int64_t columns = prn_least(TILE, r->columns - c);
        for (int64_t i = row; i < row + rows; i += TILE) {
            const int64_t high = prn_least(TILE, row + rows - i);
            if (r->width == 4)
                tile_uint32_t(r, i, high, c, columns, to);
            else if (r->width == 2)
                tile_uint16_t(r, i, high, c, columns, to);
            else if (r->width == 8)
                tile_uint64_t(r, i, high, c, columns, to);
            else
                tile_uint8_t(r, i, high, c, columns, to);
        }
    }
}

static void transpose_piece(void *argument, int64_t task)
{
    const make_job *job = argument;
    const prn_lazy_constant *r = job->recipe;
    const int64_t first = task * job->piece, end = prn_least(first + job->piece, r->rows);
    for (int64_t row = first; row < end && !prn_cancelled(); row += STRIP) {
        const int64_t rows = prn_least(STRIP, end - row);
        transpose_strip(r, row, rows, job->to);
        forget(r, row * r->columns, rows * r->columns);
    }
}

/* ---- scaling */

static int64_t lazy_constant_channel_of(const prn_lazy_constant *r, int64_t element)
{
    return element / r->block * r->modulus + element / r->inner % r->modulus;
}

/* `count` elements from `first` on, no more than PIECE_BYTES. */
static void lazy_constant_scale_run(const prn_lazy_constant *r, int64_t first, int64_t count, float *to)
{
    const char *from = (const char *)r->source + (size_t)first * sizeof(float);
    memcpy(to, from, (size_t)count * sizeof *to);
    for (int64_t done = 0; done < count;) {
        const int64_t element = first + done, channel = lazy_constant_channel_of(r, element);
        if (r->inner == 1) { /* successive elements belong to successive channels */
            const int64_t run = prn_least(r->modulus - element % r->modulus, count - done);
            const double *scale = r->scale + channel;
            for (int64_t i = 0; i < run; i++) to[done + i] = (float)((double)to[done + i] * scale[i]);
            done += run;
            continue;
        }
        const int64_t run = prn_least(r->inner - element % r->inner, count - done);
        const double scale = r->scale[channel];
        for (int64_t i = 0; i < run; i++) to[done + i] = (float)((double)to[done + i] * scale);
        done += run;
    }
}

/* Bits of infinity and NaN are greater than those of finite numbers. */
static bool is_finite(const float *made, int64_t count)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &made[i], sizeof bits);
        bits &= UINT32_C(0x7fffffff);
        largest = bits > largest ? bits : largest;
    }
    return largest < UINT32_C(0x7f800000);
}

/* Scales in runs that fit the first-level cache. */
static void scale_piece(void *argument, int64_t task)
{
    make_job *job = argument;
    const prn_lazy_constant *r = job->recipe;
    const int64_t begin = task * job->piece, end = prn_least(begin + job->piece, r->count);
    bool finite = true;
    for (int64_t first = begin; first < end; first += SCALE_RUN) {
        const int64_t count = prn_least(SCALE_RUN, end - first);
        float *to = (float *)(void *)job->to + first;
        lazy_constant_scale_run(r, first, count, to);
        finite = is_finite(to, count) && finite;
    }
    if (!finite) atomic_store_explicit(&job->overflowed, true, memory_order_relaxed);
    forget(r, begin, end - begin);
}

bool prn_lazy_constant_finite(const prn_lazy_constant *recipe)
{
    float made[SCALE_RUN];
    const int64_t piece = PIECE_BYTES / (int64_t)sizeof(float);
    bool finite = true;
    for (int64_t first = 0; first < recipe->count && finite && !prn_cancelled(); first += SCALE_RUN) {
        const int64_t count = prn_least(SCALE_RUN, recipe->count - first);
        lazy_constant_scale_run(recipe, first, count, made);
        finite = is_finite(made, count);
        if ((first + count) % piece == 0 || first + count == recipe->count)
            forget(recipe, first / piece * piece, first + count - first / piece * piece);
    }
    return finite;
}

bool prn_lazy_constant_make(const prn_lazy_constant *recipe, int threads, void *to)
{
    make_job job = {.recipe = recipe, .to = to, .piece = PIECE_BYTES / (int64_t)recipe->width};
    if (recipe->kind == PRN_LAZY_TRANSPOSE) {
        job.piece = prn_ceil_div(job.piece / STRIP, recipe->columns) * STRIP;
        prn_parallel_tasks(threads, prn_ceil_div(recipe->rows, job.piece), transpose_piece, &job);
        return true;
    }
    void (*piece)(void *, int64_t) = recipe->kind == PRN_LAZY_COPY ? lazy_constant_copy_piece : scale_piece;
    prn_parallel_tasks(threads, prn_ceil_div(recipe->count, job.piece), piece, &job);
    return !atomic_load_explicit(&job.overflowed, memory_order_relaxed);
}
