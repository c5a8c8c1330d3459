/* Codes of few bits, one by one and into panels. */
#include "ops/kernels/lowbit/nbit_weights.h"

#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"

#include <stdio.h>
#include <string.h>

static int32_t code_in(const uint8_t *row, int64_t index, int64_t bits)
{
    const int64_t bit = index * bits;
    return row[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
}

int32_t prn_nbit_code(const prn_nbit_weights *b, int64_t n, int64_t k)
{
    return code_in(b->codes + n * b->row_bytes, k, b->bits);
}

double prn_nbit_scale(const prn_nbit_weights *b, int64_t n, int64_t block)
{
    return prn_get_f64(b->scales, b->scale_type, n * b->blocks + block);
}

double prn_nbit_zero(const prn_nbit_weights *b, int64_t n, int64_t block)
{
    if (!b->zeros) return (double)(1 << (b->bits - 1));
    if (b->zero_type != PRONY_UINT8) return prn_get_f64(b->zeros, b->zero_type, n * b->blocks + block);
    return (double)code_in((const uint8_t *)b->zeros + n * b->zero_bytes, b->zero_bytes ? block : n, b->bits);
}

/* The storage of constants of that kind (panels not yet there). */
static prn_lowbit stored_of(const prn_nbit_weights *b)
{
    return (prn_lowbit){.kind = b->bits == 8   ? PRN_LOWBIT_INT8
                                : b->bits == 4 ? PRN_LOWBIT_INT4
                                               : PRN_LOWBIT_INT2,
                        .k = b->k,
                        .n = b->n,
                        .group = b->block < b->k ? b->block : b->k,
                        .offsets = b->zeros != NULL};
}

size_t prn_nbit_item_bytes(const prn_lowbit *stored)
{
    return (prn_lowbit_bytes(stored) + 63) / 64 * 64;
}

typedef struct pack_job {
    const prn_nbit_weights *first;
    const prn_lowbit *stored;
    int64_t items, zero_step, panels;
    char *to;
} pack_job;

static prn_nbit_weights item_of(const pack_job *job, int64_t item)
{
    prn_nbit_weights b = *job->first;
    b.codes += item * b.n * b.row_bytes;
    b.scales = (const char *)b.scales + prony_dtype_bytes(b.scale_type, item * b.n * b.blocks);
    if (b.zeros) b.zeros = (const char *)b.zeros + item * job->zero_step;
    return b;
}

static void nbit_weights_pack_panel(void *argument, int64_t task)
{
    const pack_job *job = argument;
    const int64_t item = task / job->panels, panel = task % job->panels;
    const prn_nbit_weights b = item_of(job, item);
    const prn_lowbit *s = job->stored;
    const int32_t half = 1 << (b.bits - 1);
    const int64_t bytes = prn_lowbit_panel_bytes(s), first = panel * PRN_LOWBIT_COLUMNS;
    char *to = job->to + (size_t)item * prn_nbit_item_bytes(s) + panel * bytes;
    memset(to, 0, (size_t)bytes);
    for (int64_t block = 0; block < b.blocks && !prn_cancelled(); block++, to += prn_lowbit_group_bytes(s)) {
        float *scales = (float *)(void *)to;
        char *codes = to + (1 + s->offsets) * PRN_LOWBIT_COLUMNS * (int64_t)sizeof(float);
        const int64_t k0 = block * b.block, depths = b.k - k0 < b.block ? b.k - k0 : b.block;
        for (int64_t c = 0; c < PRN_LOWBIT_COLUMNS && first + c < b.n; c++) {
            const double scale = prn_nbit_scale(&b, first + c, block);
            scales[c] = (float)scale;
            if (s->offsets)
                scales[PRN_LOWBIT_COLUMNS + c] = (float)((half - prn_nbit_zero(&b, first + c, block)) * scale);
            for (int64_t d = 0; d < depths; d++)
                prn_lowbit_put_code(s->kind, codes, d, c, prn_nbit_code(&b, first + c, k0 + d) - half);
        }
    }
}

static prony_status nbit_weights_build(const prony_context *context, void *argument, void *packed)
{
    pack_job *job = argument;
    job->to = packed;
    prn_parallel_tasks(context->threads, job->items * job->panels, nbit_weights_pack_panel, job);
    return PRONY_OK;
}

prony_status prn_nbit_pack_shared(const prony_context *context, const prn_nbit_weights *b, int64_t items,
                                  int64_t zero_step, prn_lowbit *stored)
{
    const void *packed = NULL;
    size_t bytes;
    *stored = stored_of(b);
    if (__builtin_mul_overflow(prn_nbit_item_bytes(stored), (size_t)items, &bytes))
        return prony_fail(context, PRONY_LIMIT, "the packed weights do not fit in memory");
    pack_job job = {.first = b,
                    .stored = stored,
                    .items = items,
                    .zero_step = zero_step,
                    .panels = prn_ceil_div(b->n, PRN_LOWBIT_COLUMNS)};
    const prn_pack_key key = {.build = nbit_weights_build,
                              .size = {b->bits, items, b->n, b->k, b->block, b->row_bytes, b->scale_type, b->zero_type,
                                       b->zero_bytes, zero_step},
                              .constants = {b->scales, b->zeros}};
    PRN_TRY(context->services->packed(context, b->codes, &key, bytes, &job, &packed));
    stored->panels = packed;
    return PRONY_OK;
}
