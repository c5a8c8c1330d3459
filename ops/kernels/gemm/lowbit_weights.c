/* Rounding and packing, once per model; rows by panels. Invariant: what is packed does not depend on threads. */
#include "ops/kernels/gemm/lowbit_weights.h"

#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/gemm/bf16x3_product.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    COLUMNS = PRN_LOWBIT_COLUMNS,
    CHUNK = 128,      /* depths that are gathered at once */
    HEADER_BYTES = 64 /* in front of the panels: whether all elements are within the kind's range */
};

PRN_SIMD_PICK(prn_lowbit_isa_table, prn_lowbit_isa_, const prn_lowbit_isa_table *prn_lowbit_isa)

/* ---- the form */

int64_t prn_lowbit_unit(prn_lowbit_kind kind)
{
    static const int64_t units[] = {[PRN_LOWBIT_INT8] = 4,  [PRN_LOWBIT_INT4] = 8, [PRN_LOWBIT_INT2] = 16,
                                    [PRN_LOWBIT_BF16] = 32, [PRN_LOWBIT_FP16] = 4, [PRN_LOWBIT_PAIRS] = 32};
    return units[kind];
}

int prn_lowbit_bits(prn_lowbit_kind kind)
{
    static const int bits[] = {[PRN_LOWBIT_INT8] = 8,  [PRN_LOWBIT_INT4] = 4,  [PRN_LOWBIT_INT2] = 2,
                               [PRN_LOWBIT_BF16] = 16, [PRN_LOWBIT_FP16] = 16, [PRN_LOWBIT_PAIRS] = 32};
    return bits[kind];
}

int64_t prn_lowbit_unit_bytes(prn_lowbit_kind kind)
{
    return prn_lowbit_unit(kind) * prn_lowbit_bits(kind) * COLUMNS / 8;
}

bool prn_lowbit_scaled(prn_lowbit_kind kind)
{
    return prn_lowbit_bits(kind) <= 8;
}

int64_t prn_lowbit_group_bytes(const prn_lowbit *s)
{
    const int64_t numbers = (prn_lowbit_scaled(s->kind) + s->offsets) * COLUMNS * (int64_t)sizeof(float);
    return numbers + prn_ceil_div(s->group, prn_lowbit_unit(s->kind)) * prn_lowbit_unit_bytes(s->kind);
}

int64_t prn_lowbit_panel_bytes(const prn_lowbit *s)
{
    return prn_ceil_div(s->k, s->group) * prn_lowbit_group_bytes(s);
}

size_t prn_lowbit_bytes(const prn_lowbit *s)
{
    return (size_t)prn_ceil_div(s->n, COLUMNS) * (size_t)prn_lowbit_panel_bytes(s);
}

bool prn_lowbit_for(prony_precision precision, int64_t k, int64_t n, prn_lowbit *out)
{
    *out = (prn_lowbit){.k = k, .n = n, .group = k};
    switch (precision) {
    case PRONY_PRECISION_INT8_WEIGHTS:
        out->kind = PRN_LOWBIT_INT8;
        return true;
    case PRONY_PRECISION_INT4_WEIGHTS:
        out->kind = PRN_LOWBIT_INT4;
        out->group = PRN_LOWBIT_GROUP;
        return true;
    case PRONY_PRECISION_FAST:
        out->kind = PRN_LOWBIT_PAIRS;
        return true;
    case PRONY_PRECISION_BF16:
        out->kind = PRN_LOWBIT_BF16;
        return true;
    case PRONY_PRECISION_FP16:
        out->kind = PRN_LOWBIT_FP16;
        return true;
    default:
        return false;
    }
}

/* ---- packing */

static void put_float(prn_lowbit_kind kind, char *codes, int64_t d, int64_t column, float x, prn_bf16x3_digits *digits)
{
    uint16_t *to = (uint16_t *)(void *)codes;
    if (kind == PRN_LOWBIT_FP16) {
        to[d * COLUMNS + column] = prn_f32_to_f16(x);
        return;
    }
    const int64_t part = 32 * COLUMNS, step = kind == PRN_LOWBIT_PAIRS ? 2 * part : part;
    to += d / 32 * step + column / 16 * (part / 2) + d % 16 * 32 + column % 16 * 2 + d % 32 / 16;
    to[0] = prn_f32_to_bf16(x);
    if (kind == PRN_LOWBIT_PAIRS) {
        const float second = x - prn_bf16_to_f32(to[0]);
        to[part] = prn_f32_to_bf16(second);
        prn_bf16x3_note(digits, x, second);
    }
}

void prn_lowbit_put_code(prn_lowbit_kind kind, char *codes, int64_t d, int64_t column, int32_t code)
{
    if (kind == PRN_LOWBIT_INT8) {
        ((int8_t *)(void *)codes)[d * COLUMNS + column] = (int8_t)code;
        return;
    }
    const int bits = prn_lowbit_bits(kind);
    const int64_t unit = prn_lowbit_unit(kind);
    const int shift = (int)(d % unit) * bits;
    uint32_t *word = (uint32_t *)(void *)codes + d / unit * COLUMNS + column;
    *word |= ((uint32_t)code & ((1u << bits) - 1)) << shift;
}

typedef struct pack_job {
    const prn_gemm *gemm;
    const prn_lowbit *stored;
    char *panels;
    atomic_bool beyond; /* something is not within the kind's range */
} pack_job;

/* Depths [k0, k0 + count) of 32 columns from j on. */
static void lowbit_weights_gather(const prn_gemm *gemm, int64_t j, int64_t k0, int64_t count, float (*to)[COLUMNS])
{
    const float *b = gemm->b + k0 * gemm->rs_b + j * gemm->cs_b;
    const int64_t width = prn_least(gemm->n - j, COLUMNS);
    if (width < COLUMNS) memset(to, 0, (size_t)count * sizeof *to);
    if (gemm->cs_b == 1) {
        for (int64_t d = 0; d < count; d++) memcpy(to[d], b + d * gemm->rs_b, (size_t)width * sizeof *b);
        return;
    }
    for (int64_t c = 0; c < width; c++) {
        for (int64_t d = 0; d < count; d++) to[d][c] = b[c * gemm->cs_b + d * gemm->rs_b];
    }
}

static bool pack_floats(const pack_job *job, int64_t j, char *codes)
{
    const prn_lowbit *s = job->stored;
    const float largest = s->kind == PRN_LOWBIT_FP16 ? 65504.0f : prn_bf16_to_f32(0x7f7f);
    float chunk[CHUNK][COLUMNS];
    prn_bf16x3_digits digits = {0};
    bool fits = true;
    for (int64_t k0 = 0; k0 < s->k && !prn_cancelled(); k0 += CHUNK) {
        const int64_t count = prn_least(s->k - k0, CHUNK);
        lowbit_weights_gather(job->gemm, j, k0, count, chunk);
        for (int64_t d = 0; d < count; d++) {
            for (int64_t c = 0; c < COLUMNS; c++) {
                fits = fits && fabsf(chunk[d][c]) <= largest; /* what is beyond it may round to infinity; NaN is beyond
                                                                 it */
                put_float(s->kind, codes, k0 + d, c, chunk[d][c], &digits);
            }
        }
    }
    return fits && (s->kind != PRN_LOWBIT_PAIRS || prn_bf16x3_two_will_do(&digits));
}

/* One group: scales that put each column's largest element at the largest code. */
static bool lowbit_weights_pack_group(const pack_job *job, int64_t j, int64_t k0, int64_t depths, char *to)
{
    const prn_lowbit *s = job->stored;
    const double most = (double)((1 << (prn_lowbit_bits(s->kind) - 1)) - 1);
    float *scales = (float *)(void *)to, largest[COLUMNS] = {0}, chunk[CHUNK][COLUMNS];
    char *codes = to + COLUMNS * sizeof(float);
    double inverse[COLUMNS];
    bool fits = true;
    for (int64_t at = 0; at < depths && !prn_cancelled(); at += CHUNK) {
        const int64_t count = prn_least(depths - at, CHUNK);
        lowbit_weights_gather(job->gemm, j, k0 + at, count, chunk);
        for (int64_t d = 0; d < count; d++) {
            for (int64_t c = 0; c < COLUMNS; c++) {
                const float size = fabsf(chunk[d][c]);
                fits = fits && size <= 3.4028234e38f;
                if (size > largest[c]) largest[c] = size;
            }
        }
    }
    if (!fits) return false;
    for (int64_t c = 0; c < COLUMNS; c++) {
        scales[c] = (float)((double)largest[c] / most);
        if (!(scales[c] > 0.0f) && largest[c] > 0.0f) scales[c] = FLT_TRUE_MIN; /* not zeros */
        inverse[c] = scales[c] > 0.0f ? 1.0 / (double)scales[c] : 0.0;
    }
    for (int64_t at = 0; at < depths && !prn_cancelled(); at += CHUNK) {
        const int64_t count = prn_least(depths - at, CHUNK);
        if (depths > CHUNK) lowbit_weights_gather(job->gemm, j, k0 + at, count, chunk);
        for (int64_t d = 0; d < count; d++) {
            for (int64_t c = 0; c < COLUMNS; c++) {
                const double code = (double)chunk[d][c] * inverse[c];
                const double kept = code > most    ? most
                                    : code < -most ? -most
                                                   : code; /* scales of few bits are rounded
                                                                                         far */
                prn_lowbit_put_code(s->kind, codes, at + d, c, (int32_t)lrint(kept));
            }
        }
    }
    return true;
}

static void lowbit_weights_pack_panel(void *argument, int64_t panel)
{
    pack_job *job = argument;
    const prn_lowbit *s = job->stored;
    const size_t bytes = (size_t)prn_lowbit_panel_bytes(s);
    char *to = job->panels + panel * (int64_t)bytes;
    bool fits = true;
    memset(to, 0, bytes);
    if (!prn_lowbit_scaled(s->kind)) {
        fits = pack_floats(job, panel * COLUMNS, to);
    } else {
        for (int64_t k0 = 0; k0 < s->k && fits && !prn_cancelled(); k0 += s->group, to += prn_lowbit_group_bytes(s))
            fits = lowbit_weights_pack_group(job, panel * COLUMNS, k0, prn_least(s->k - k0, s->group), to);
    }
    if (!fits) atomic_store_explicit(&job->beyond, true, memory_order_relaxed);
}

static prony_status lowbit_weights_build(const prony_context *context, void *argument, void *packed)
{
    pack_job *job = argument;
    job->panels = (char *)packed + HEADER_BYTES;
    atomic_init(&job->beyond, false);
    prn_parallel_tasks(context->threads, prn_ceil_div(job->stored->n, COLUMNS), lowbit_weights_pack_panel, job);
    memset(packed, 0, HEADER_BYTES);
    *(char *)packed = !atomic_load_explicit(&job->beyond, memory_order_relaxed);
    return PRONY_OK;
}

prony_status prn_lowbit_pack_shared(const prony_context *context, const prn_gemm *gemm, prn_lowbit *stored)
{
    pack_job job = {.gemm = gemm, .stored = stored};
    const void *out = NULL;
    const prn_pack_key key = {
        .build = lowbit_weights_build,
        .size = {stored->kind, stored->group, stored->offsets, gemm->k, gemm->n, gemm->rs_b, gemm->cs_b}};
    PRN_TRY(context->services->packed(context, gemm->b, &key, HEADER_BYTES + prn_lowbit_bytes(stored), &job, &out));
    stored->panels = *(const char *)out ? (const char *)out + HEADER_BYTES : NULL;
    return PRONY_OK;
}

/* ---- few rows */

void prn_lowbit_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    const prn_lowbit_isa_table *isa = prn_lowbit_isa();
    float sums[PRN_LOWBIT_ROWS * COLUMNS];
    for (int64_t j = j0; j < j1 && !prn_cancelled(); j += COLUMNS) {
        const int64_t width = prn_least(j1 - j, COLUMNS);
        isa->rows(gemm->stored, j / COLUMNS, gemm->a + i0 * gemm->rs_a, gemm->rs_a, i1 - i0, sums);
        for (int64_t r = 0; r < i1 - i0; r++)
            memcpy(gemm->c + (i0 + r) * gemm->rs_c + j, sums + r * COLUMNS, (size_t)width * sizeof *sums);
    }
}
