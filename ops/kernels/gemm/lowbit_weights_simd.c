/* Codes to float32 in registers (compiled once per PRN_SIMD): products of few rows, and panels for the product core. */
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/gemm/lowbit_weights.h"

#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(PRN_NEON)
#include <arm_neon.h>
#endif

#define LANES (PRN_SIMD_BYTES / 4)
#define PANEL_VECS (PRN_LOWBIT_COLUMNS / LANES)
/* Vectors of columns and rows of A that are summed at once. */
#define MOST_VECS 8
#define MOST_SUMMED (LANES == 16 ? 8 : 4)
/* Depths between two looks at whether to go on; sums of so many are added to the total. A multiple of every unit. */
#define PIECE 2048
#define LONGEST_UNIT 32
/* Bytes of a panel that are on their way from memory. */
#define AHEAD 2048

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float vec_unaligned __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(LANES * 4)));
typedef int32_t ints_unaligned __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

static inline vec lowbit_weights_simd_splat(float x)
{
    return x - (vec){0};
}

static inline vec lowbit_weights_simd_load(const void *p)
{
    return *(const vec_unaligned *)p;
}

static inline void lowbit_weights_simd_store(float *p, vec x)
{
    *(vec_unaligned *)p = x;
}

/* prn_lowbit_unit and prn_lowbit_unit_bytes, as constants. */
#define UNIT(kind)                                                                                                     \
    ((kind) == PRN_LOWBIT_INT4                                 ? 8                                                     \
     : (kind) == PRN_LOWBIT_INT2                               ? 16                                                    \
     : (kind) == PRN_LOWBIT_BF16 || (kind) == PRN_LOWBIT_PAIRS ? 32                                                    \
                                                               : 4)
#define UNIT_BYTES(kind)                                                                                               \
    ((kind) == PRN_LOWBIT_PAIRS ? 4096 : (kind) == PRN_LOWBIT_BF16 ? 2048 : (kind) == PRN_LOWBIT_FP16 ? 256 : 128)

/* ---- one vector of weights, before scaling */

/* Signed numbers of `bits` bits, from bit `at` of each word. */
static inline __attribute__((always_inline)) vec lowbit_weights_simd_from_words(ints words, const int bits,
                                                                                const int at)
{
#if defined(__AVX512F__)
    /* Only an index' lowest four bits count. */
    const __m512 four = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    const __m512 two = _mm512_setr_ps(0, 1, -2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1, -2, -1);
    return (vec)_mm512_permutexvar_ps(_mm512_srli_epi32((__m512i)words, (unsigned)at), bits == 4 ? four : two);
#else
    return __builtin_convertvector((words << (32 - bits - at)) >> (32 - bits), vec);
#endif
}

static inline __attribute__((always_inline)) vec from_bytes(const char *p)
{
#if defined(__AVX512F__)
    return (vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
#elif defined(__AVX2__) && LANES == 8
    return (vec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
#elif defined(PRN_NEON)
    int32_t four;
    memcpy(&four, p, sizeof four);
    return (vec)vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
#else
    vec out;
    for (int i = 0; i < LANES; i++) out[i] = (float)((const int8_t *)(const void *)p)[i];
    return out;
#endif
}

static inline __attribute__((always_inline)) vec from_halves(const char *p)
{
#if defined(__AVX512F__)
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif defined(__AVX2__) && LANES == 8
    return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif defined(PRN_NEON)
    return (vec)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)(const void *)p)));
#else
    vec out;
    for (int i = 0; i < LANES; i++) out[i] = prn_f16_to_f32(((const uint16_t *)(const void *)p)[i]);
    return out;
#endif
}

/* Depth `d` of a unit, vector `v` of the panel's columns. */
static inline __attribute__((always_inline)) vec weights_at(const prn_lowbit_kind kind, const char *unit, const int d,
                                                            const int v)
{
    const int column = v * LANES;
    if (kind == PRN_LOWBIT_INT8) return from_bytes(unit + d * PRN_LOWBIT_COLUMNS + column);
    if (kind == PRN_LOWBIT_FP16) return from_halves(unit + (d * PRN_LOWBIT_COLUMNS + column) * 2);
    if (kind == PRN_LOWBIT_BF16) { /* a pair of depths, 64 bytes for each 16 columns */
        const ints pairs = *(const ints_unaligned *)(const void *)(unit + column / 16 * 1024 + column % 16 * 4);
        return d == 0 ? (vec)(pairs << 16) : (vec)(pairs & (int32_t)0xffff0000);
    }
    const int bits = kind == PRN_LOWBIT_INT4 ? 4 : 2;
    return lowbit_weights_simd_from_words(*(const ints_unaligned *)(const void *)(unit + column * 4), bits, d * bits);
}

/* ---- few rows */

typedef struct summed {
    vec sum[MOST_SUMMED][MOST_VECS], of_a[MOST_SUMMED]; /* of_a: the row's own sum, in every lane */
} summed;

#define EACH_SUM(r, v)                                                                                                 \
    PRN_UNROLL                                                                                                         \
    for (int r = 0; r < rows; r++) PRN_UNROLL                                                                          \
    for (int v = 0; v < vecs; v++)

/* One depth: `d` of what lies at `from`, element `at` of A's rows. */
#define ADD_DEPTH(from, d, at, chain)                                                                                  \
    do {                                                                                                               \
        vec w[MOST_VECS];                                                                                              \
        PRN_UNROLL                                                                                                     \
        for (int v = 0; v < vecs; v++) w[v] = weights_at(kind, (from), (d), first_vec + v);                            \
        PRN_UNROLL                                                                                                     \
        for (int r = 0; r < rows; r++) {                                                                               \
            const vec x = lowbit_weights_simd_splat(a[r * rs_a + (at)]);                                               \
            if (sums_of_a) of_a[r] += x;                                                                               \
            PRN_UNROLL                                                                                                 \
            for (int v = 0; v < vecs; v++) sum[(chain)][r][v] += x * w[v];                                             \
        }                                                                                                              \
    } while (0)

/* Products of `units` units; everything constant but the pointers and their count. Several chains of sums hide the
 * latency of the addition where there are few. */
static inline __attribute__((always_inline)) void sum_units(const prn_lowbit_kind kind, const int first_vec,
                                                            const int rows, const int vecs, const int chains,
                                                            const bool sums_of_a, const char *unit, int64_t units,
                                                            const float *a, int64_t rs_a, summed *out)
{
    const int depths = UNIT(kind);
    vec sum[4][MOST_SUMMED][MOST_VECS], of_a[MOST_SUMMED];
    PRN_UNROLL
    for (int chain = 0; chain < chains; chain++) {
        EACH_SUM(r, v) sum[chain][r][v] = (vec){0};
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) of_a[r] = (vec){0};
    for (; units > 0; units--, unit += UNIT_BYTES(kind), a += depths) {
        if (kind == PRN_LOWBIT_BF16) {
            for (int pair = 0; pair < 16; pair += 2) {
                const char *at = unit + pair * 64;
                if (first_vec == 0) __builtin_prefetch(at + AHEAD), __builtin_prefetch(at + AHEAD + 64);
                if (first_vec == 0) __builtin_prefetch(at + AHEAD + 1024), __builtin_prefetch(at + AHEAD + 1088);
                ADD_DEPTH(at, 0, pair, 0);
                ADD_DEPTH(at, 1, pair + 16, 1 % chains);
                ADD_DEPTH(at + 64, 0, pair + 1, 2 % chains);
                ADD_DEPTH(at + 64, 1, pair + 17, 3 % chains);
            }
        } else {
            if (first_vec == 0) {
                for (int line = 0; line < UNIT_BYTES(kind); line += 64) __builtin_prefetch(unit + AHEAD + line);
            }
            PRN_UNROLL
            for (int d = 0; d < depths; d++) ADD_DEPTH(unit, d, d, d % chains);
        }
    }
    PRN_UNROLL
    for (int chain = 1; chain < chains; chain++) {
        EACH_SUM(r, v) sum[0][r][v] += sum[chain][r][v];
    }
    EACH_SUM(r, v) out->sum[r][v] = sum[0][r][v];
    PRN_UNROLL
    for (int r = 0; r < rows; r++) out->of_a[r] = of_a[r];
}

typedef struct part {
    const prn_lowbit *stored;
    const char *panel;
    const float *a;
    int64_t rs_a;
    float *c; /* [rows][32] */
} part;

/* total += sums, scaled. */
#define ADD_SUMS                                                                                                       \
    EACH_SUM(r, v)                                                                                                     \
    {                                                                                                                  \
        total[r][v] +=                                                                                                 \
            kind <= PRN_LOWBIT_INT2 ? sums.sum[r][v] * lowbit_weights_simd_load(scale + v * LANES) : sums.sum[r][v];   \
        if (offsets) total[r][v] += sums.of_a[r] * lowbit_weights_simd_load(scale + PRN_LOWBIT_COLUMNS + v * LANES);   \
    }

/* Rows by some of a panel's columns; what of a group fills no unit is multiplied by way of a buffer. */
static inline __attribute__((always_inline)) void sum_part(const part *p, const prn_lowbit_kind kind,
                                                           const int first_vec, const int rows, const int vecs,
                                                           const int chains, const bool offsets)
{
    const prn_lowbit *s = p->stored;
    const int64_t unit = UNIT(kind), unit_bytes = UNIT_BYTES(kind), group_bytes = prn_lowbit_group_bytes(s), k = s->k;
    const int64_t numbers = ((kind <= PRN_LOWBIT_INT2) + offsets) * PRN_LOWBIT_COLUMNS * (int64_t)sizeof(float);
    const int64_t in_group = s->group, piece = in_group < PIECE ? in_group : PIECE;
    const char *group = p->panel;
    vec total[MOST_SUMMED][MOST_VECS];
    summed sums;
    EACH_SUM(r, v) total[r][v] = (vec){0};
    for (int64_t g0 = 0; g0 < k; g0 += in_group, group += group_bytes) {
        const int64_t end = k - g0 < in_group ? k : g0 + in_group;
        const float *scale = (const float *)(const void *)group + first_vec * LANES;
        const char *codes = group + numbers;
        for (int64_t at = g0; at < end && !(piece == PIECE && prn_cancelled()); at += piece) {
            const int64_t count = end - at < piece ? end - at : piece, units = count / unit, rest = count % unit;
            sum_units(kind, first_vec, rows, vecs, chains, offsets, codes, units, p->a + at, p->rs_a, &sums);
            ADD_SUMS;
            codes += units * unit_bytes;
            if (rest == 0) continue;
            float tail[MOST_SUMMED][LONGEST_UNIT] = {{0}};
            for (int r = 0; r < rows; r++)
                memcpy(tail[r], p->a + at + units * unit + r * p->rs_a, (size_t)rest * sizeof **tail);
            sum_units(kind, first_vec, rows, vecs, chains, offsets, codes, 1, tail[0], LONGEST_UNIT, &sums);
            ADD_SUMS;
        }
    }
    EACH_SUM(r, v) lowbit_weights_simd_store(p->c + r * PRN_LOWBIT_COLUMNS + (first_vec + v) * LANES, total[r][v]);
}

/* All columns of the panel, so many vectors at a time. */
static inline __attribute__((always_inline)) void lowbit_weights_simd_sum_all(const part *p, const prn_lowbit_kind kind,
                                                                              const int rows, const int vecs,
                                                                              const int chains, const bool offsets)
{
    sum_part(p, kind, 0, rows, vecs, chains, offsets);
    for (int v = vecs; v < PANEL_VECS; v += vecs) {
        part next = *p;
        sum_part(&next, kind, v, rows, vecs, chains, offsets);
    }
}

typedef void part_fn(const part *p);

/* Eight to sixteen sums in registers: 1, 2, 4 rows, and 8 where there are registers for them. The number of a sum's
 * chains follows from the rows alone, so that it is the same for every width of vectors. */
#define VECS(rows) (PRN_SIMD_BYTES == 64 || (rows) > 2 ? 2 : 4)
#define CHAINS(rows) ((rows) == 1 ? 2 : 1)

#define PART(name, kind, rows, offsets)                                                                                \
    static void part_##name##_##rows(const part *p)                                                                    \
    {                                                                                                                  \
        lowbit_weights_simd_sum_all(p, kind, rows, VECS(rows), CHAINS(rows), offsets);                                 \
    }
#if PRN_SIMD_BYTES == 64
#define PARTS(name, kind, offsets)                                                                                     \
    PART(name, kind, 1, offsets) PART(name, kind, 2, offsets) PART(name, kind, 4, offsets) PART(name, kind, 8, offsets)
#define PART_NAMES(name) {part_##name##_1, part_##name##_2, part_##name##_4, part_##name##_8}
#else
#define PARTS(name, kind, offsets)                                                                                     \
    PART(name, kind, 1, offsets) PART(name, kind, 2, offsets) PART(name, kind, 4, offsets)
#define PART_NAMES(name) {part_##name##_1, part_##name##_2, part_##name##_4, NULL}
#endif
PARTS(int8, PRN_LOWBIT_INT8, false)
PARTS(int4, PRN_LOWBIT_INT4, false)
PARTS(int2, PRN_LOWBIT_INT2, false)
PARTS(int8_offset, PRN_LOWBIT_INT8, true)
PARTS(int4_offset, PRN_LOWBIT_INT4, true)
PARTS(int2_offset, PRN_LOWBIT_INT2, true)
PARTS(bf16, PRN_LOWBIT_BF16, false)
PARTS(fp16, PRN_LOWBIT_FP16, false)

/* Of kind and offsets; 1, 2, 4 and 8 rows. */
static part_fn *const parts[5][2][4] = {[PRN_LOWBIT_INT8] = {PART_NAMES(int8), PART_NAMES(int8_offset)},
                                        [PRN_LOWBIT_INT4] = {PART_NAMES(int4), PART_NAMES(int4_offset)},
                                        [PRN_LOWBIT_INT2] = {PART_NAMES(int2), PART_NAMES(int2_offset)},
                                        [PRN_LOWBIT_BF16] = {PART_NAMES(bf16), PART_NAMES(bf16)},
                                        [PRN_LOWBIT_FP16] = {PART_NAMES(fp16), PART_NAMES(fp16)}};

static void lowbit_weights_simd_rows_of(const prn_lowbit *stored, int64_t panel, const float *a, int64_t rs_a,
                                        int64_t rows, float *c)
{
    part p = {stored, stored->panels + panel * prn_lowbit_panel_bytes(stored), a, rs_a, c};
    for (int64_t height; rows > 0; rows -= height, p.a += height * rs_a, p.c += height * PRN_LOWBIT_COLUMNS) {
        const int at = rows >= MOST_SUMMED ? (MOST_SUMMED == 8 ? 3 : 2) : rows >= 4 ? 2 : rows >= 2 ? 1 : 0;
        height = (int64_t)1 << at;
        parts[stored->kind][stored->offsets][at](&p);
    }
}

/* ---- panels for the product core */

/* Depth `d` of a unit of bfloat16. */
static inline __attribute__((always_inline)) vec of_pair(const char *unit, int d, int v)
{
    return d < 16 ? weights_at(PRN_LOWBIT_BF16, unit + d * 64, 0, v)
                  : weights_at(PRN_LOWBIT_BF16, unit + (d - 16) * 64, 1, v);
}

/* Depths [0, limit) of the units from `unit` on. */
static inline __attribute__((always_inline)) void unpack_units(const prn_lowbit_kind kind, const char *unit,
                                                               int64_t limit, int first_vec, const vec *scale,
                                                               const vec *offset, float *to)
{
    const int depths = UNIT(kind);
    for (; limit > 0; limit -= depths, unit += UNIT_BYTES(kind)) {
        for (int d = 0; d < depths && d < limit; d++, to += 2 * LANES) {
            for (int v = 0; v < 2; v++) {
                const bool floats = kind == PRN_LOWBIT_BF16 || kind == PRN_LOWBIT_PAIRS;
                vec w = floats ? of_pair(unit, d, first_vec + v) : weights_at(kind, unit, d, first_vec + v);
                if (kind == PRN_LOWBIT_PAIRS) w += of_pair(unit + UNIT_BYTES(PRN_LOWBIT_BF16), d, first_vec + v);
                lowbit_weights_simd_store(to + v * LANES, kind <= PRN_LOWBIT_INT2 ? w * scale[v] + offset[v] : w);
            }
        }
    }
}

static inline __attribute__((always_inline)) void unpack_kind(const prn_lowbit *s, const prn_lowbit_kind kind,
                                                              int64_t column, int64_t k0, int64_t count, float *to)
{
    const int64_t group_bytes = prn_lowbit_group_bytes(s), unit = UNIT(kind);
    const char *panel = s->panels + column / PRN_LOWBIT_COLUMNS * prn_lowbit_panel_bytes(s);
    const int first_vec = (int)(column % PRN_LOWBIT_COLUMNS / LANES);
    for (int64_t k = k0, next; k < k0 + count; to += (next - k) * 2 * LANES, k = next) {
        const int64_t group = k / s->group, in_group = k - group * s->group;
        const float *scale = (const float *)(const void *)(panel + group * group_bytes);
        const char *codes = (const char *)(scale + ((kind <= PRN_LOWBIT_INT2) + s->offsets) * PRN_LOWBIT_COLUMNS);
        next = (group + 1) * s->group < k0 + count ? (group + 1) * s->group : k0 + count;
        vec scales[2] = {{0}}, offsets[2] = {{0}};
        for (int v = 0; v < 2 && kind <= PRN_LOWBIT_INT2; v++) {
            scales[v] = lowbit_weights_simd_load(scale + (first_vec + v) * LANES);
            if (s->offsets) offsets[v] = lowbit_weights_simd_load(scale + PRN_LOWBIT_COLUMNS + (first_vec + v) * LANES);
        }
        unpack_units(kind, codes + in_group / unit * UNIT_BYTES(kind), next - k, first_vec, scales, offsets, to);
    }
}

#define UNPACK(name, kind)                                                                                             \
    static void unpack_##name(const prn_lowbit *s, int64_t column, int64_t k0, int64_t count, float *to)               \
    {                                                                                                                  \
        unpack_kind(s, kind, column, k0, count, to);                                                                   \
    }
UNPACK(int8, PRN_LOWBIT_INT8)
UNPACK(int4, PRN_LOWBIT_INT4)
UNPACK(int2, PRN_LOWBIT_INT2)
UNPACK(bf16, PRN_LOWBIT_BF16)
UNPACK(fp16, PRN_LOWBIT_FP16)
UNPACK(pairs, PRN_LOWBIT_PAIRS)

static void lowbit_weights_simd_unpack(const prn_lowbit *s, int64_t column, int64_t k0, int64_t count, float *to)
{
    static void (*const of_kind[])(const prn_lowbit *s, int64_t column, int64_t k0, int64_t count, float *to) = {
        [PRN_LOWBIT_INT8] = unpack_int8, [PRN_LOWBIT_INT4] = unpack_int4, [PRN_LOWBIT_INT2] = unpack_int2,
        [PRN_LOWBIT_BF16] = unpack_bf16, [PRN_LOWBIT_FP16] = unpack_fp16, [PRN_LOWBIT_PAIRS] = unpack_pairs};
    of_kind[s->kind](s, column, k0, count, to);
}

const prn_lowbit_isa_table PRN_SIMD_TABLE(prn_lowbit_isa_) = {lowbit_weights_simd_rows_of, lowbit_weights_simd_unpack};
