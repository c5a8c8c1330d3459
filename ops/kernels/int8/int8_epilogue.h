/* From sums to codes (prn_qint8_epilogue), for one instruction set; for ops/kernels/int8/int8_dot_simd.c alone. Each
 * float operation is rounded on its own: where a product meets a sum, ROUNDED or APART keeps the compiler from joining
 * them into one operation on processors that have it. */
#ifndef PRN_OPS_KERNELS_INT8_INT8_EPILOGUE_H
#define PRN_OPS_KERNELS_INT8_INT8_EPILOGUE_H

#include "ops/kernels/int8/int16_dot.h"

#if WIDE

#define ROUNDED(x) __asm__("" : "+v"(x))

typedef struct limits {
    __m512 high, middle_low, middle_high, middle_factor, residual_factor;
    __m512i zero, residual_zero, low_steps, zero_words, low_codes;
} limits;

static inline limits int8_epilogue_limits_of(const prn_qint8_epilogue *f)
{
    return (limits){.high = _mm512_set1_ps(f->high),
                    .middle_low = _mm512_set1_ps(f->middle_low),
                    .middle_high = _mm512_set1_ps(f->middle_high),
                    .middle_factor = _mm512_set1_ps(f->middle_factor),
                    .residual_factor = _mm512_set1_ps(f->residual_factor),
                    .zero = _mm512_set1_epi32(f->zero),
                    .residual_zero = _mm512_set1_epi32(f->residual_zero),
                    .low_steps = _mm512_set1_epi32((int32_t)f->low),
                    .zero_words = _mm512_set1_epi16((short)f->zero),
                    .low_codes = _mm512_set1_epi8((char)((int32_t)f->low + f->zero))};
}

/* NaN is low. */
static inline __m512 int8_epilogue_kept(__m512 v, __m512 low, __m512 high)
{
    return _mm512_min_ps(_mm512_max_ps(v, low), high);
}

/* Whole steps from the zero point for a vector of sums, no more than `high`; what is too low, or NaN, is any low
 * number. `residual`: widened codes. has_residual is a constant after inlining. */
static inline __attribute__((always_inline)) __m512i int8_epilogue_steps_of(const prn_qint8_epilogue *f,
                                                                            const limits *l, __m512i sum, __m512 scale,
                                                                            const bool has_residual, __m512i residual)
{
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
    if (has_residual) {
        if (f->rounds) v = _mm512_roundscale_ps(int8_epilogue_kept(v, l->middle_low, l->middle_high), 8);
        v = _mm512_mul_ps(v, l->middle_factor);
        ROUNDED(v);
        __m512 r = _mm512_cvtepi32_ps(_mm512_sub_epi32(residual, l->residual_zero));
        r = _mm512_mul_ps(r, l->residual_factor);
        ROUNDED(r);
        v = _mm512_add_ps(v, r);
    }
    return _mm512_cvtps_epi32(_mm512_min_ps(l->high, v)); /* NaN is the second operand's */
}

/* Codes of a vector. */
static inline __attribute__((always_inline)) __m512i codes_of(const prn_qint8_epilogue *f, const limits *l, __m512i sum,
                                                              __m512 scale, const bool has_residual, __m512i residual)
{
    const __m512i steps = int8_epilogue_steps_of(f, l, sum, scale, has_residual, residual);
    return _mm512_add_epi32(_mm512_max_epi32(steps, l->low_steps), l->zero);
}

/* The codes of four vectors of steps as bytes, packed lane by lane: four of each vector. */
static inline __m512i int8_epilogue_packed(const prn_qint8_epilogue *f, const limits *l, const __m512i step[4])
{
    const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(step[0], step[1]), l->zero_words);
    const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(step[2], step[3]), l->zero_words);
    if (f->y_signed) return _mm512_max_epi8(_mm512_packs_epi16(low, high), l->low_codes);
    return _mm512_max_epu8(_mm512_packus_epi16(low, high), l->low_codes);
}

static inline __m512i widened(__m128i codes, bool is_signed)
{
    return is_signed ? _mm512_cvtepi8_epi32(codes) : _mm512_cvtepu8_epi32(codes);
}

/* Two rows of a whole panel: codes are packed within lanes, so that their words of four columns need one permutation.
 */
static inline __attribute__((always_inline)) void finish_pair(const prn_qint8_epilogue *f, const limits *l,
                                                              const int32_t *sums, const __m512i bias[2],
                                                              const __m512 scale[2], uint8_t *y, int64_t y_row,
                                                              const bool has_residual, const uint8_t *residual,
                                                              int64_t residual_row)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i step[4];
    PRN_UNROLL
    for (int i = 0; i < 4; i++) {
        const int r = i / 2, j = i % 2;
        __m512i other = bias[0];
        if (has_residual)
            other = widened(_mm_loadu_si128((const void *)(residual + r * residual_row + 16 * j)), f->residual_signed);
        const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums + r * COLUMNS + 16 * j), bias[j]);
        step[i] = int8_epilogue_steps_of(f, l, sum, scale[j], has_residual, other);
    }
    const __m512i bytes = _mm512_permutexvar_epi32(order, int8_epilogue_packed(f, l, step));
    _mm256_storeu_si256((void *)y, _mm512_castsi512_si256(bytes));
    _mm256_storeu_si256((void *)(y + y_row), _mm512_extracti64x4_epi64(bytes, 1));
}

static void finish_panel(const prn_qint8_epilogue *f, const limits *l, const int32_t *sums, int64_t rows,
                         int64_t column, uint8_t *y, int64_t y_row, const uint8_t *residual, int64_t residual_row)
{
    const __m512i bias[2] = {_mm512_loadu_si512(f->bias + column), _mm512_loadu_si512(f->bias + column + 16)};
    const __m512 scale[2] = {_mm512_loadu_ps(f->scale + column), _mm512_loadu_ps(f->scale + column + 16)};
    for (int64_t r = 0; r < rows; r += 2, sums += 2 * COLUMNS, y += 2 * y_row) {
        if (residual)
            finish_pair(f, l, sums, bias, scale, y, y_row, true, residual + r * residual_row, residual_row);
        else
            finish_pair(f, l, sums, bias, scale, y, y_row, false, NULL, 0);
    }
}

/* Requantises a panel of sums: bias, scale, residual, activation, rounding to codes. Columns past `columns` are
 * neither read nor written. */
static void int8_epilogue_finish(const prn_qint8_epilogue *f, const int32_t *sums, int64_t rows, int64_t column,
                                 int64_t columns, uint8_t *y, int64_t y_row, const uint8_t *residual,
                                 int64_t residual_row)
{
    const limits l = int8_epilogue_limits_of(f);
    int64_t done = 0;
    if (columns == COLUMNS) {
        done = rows - rows % 2;
        finish_panel(f, &l, sums, done, column, y, y_row, residual, residual_row);
    }
    for (int64_t j = 0; j < columns && done < rows; j += 16) {
        const __mmask16 mask = (__mmask16)(columns - j >= 16 ? 0xffff : (1u << (columns - j)) - 1);
        const __m512i bias = _mm512_maskz_loadu_epi32(mask, f->bias + column + j);
        const __m512 scale = _mm512_maskz_loadu_ps(mask, f->scale + column + j);
        for (int64_t r = done; r < rows; r++) {
            const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums + r * COLUMNS + j), bias);
            __m512i code;
            if (residual) {
                const __m128i other = _mm_maskz_loadu_epi8(mask, residual + r * residual_row + j);
                code = codes_of(f, &l, sum, scale, true, widened(other, f->residual_signed));
            } else {
                code = codes_of(f, &l, sum, scale, false, sum);
            }
            _mm_mask_storeu_epi8(y + r * y_row + j, mask, _mm512_cvtepi32_epi8(code));
        }
    }
}

static void int8_epilogue_add(const prn_qint8_epilogue *f, bool a_signed, const uint8_t *a, const uint8_t *b,
                              uint8_t *y, int64_t n)
{
    const limits l = int8_epilogue_limits_of(f);
    const __m512i bias = _mm512_set1_epi32(f->bias[0]);
    const __m512 scale = _mm512_set1_ps(f->scale[0]);
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 mask = (__mmask16)(n - i >= 16 ? 0xffff : (1u << (n - i)) - 1);
        const __m512i left = widened(_mm_maskz_loadu_epi8(mask, a + i), a_signed);
        const __m512i right = widened(_mm_maskz_loadu_epi8(mask, b + i), f->residual_signed);
        const __m512i code = codes_of(f, &l, _mm512_add_epi32(left, bias), scale, true, right);
        _mm_mask_storeu_epi8(y + i, mask, _mm512_cvtepi32_epi8(code));
    }
}

/* Both factors are within 255 of 0: the low half of one times the other, of which nothing else is left. */
static void int8_epilogue_multiply(const prn_qint8_epilogue *f, bool a_signed, const uint8_t *a, const uint8_t *b,
                                   uint8_t *y, int64_t n)
{
    const limits l = int8_epilogue_limits_of(f);
    const __m512i bias = _mm512_set1_epi32(f->bias[0]), low_half = _mm512_set1_epi32(0xffff);
    const __m512 scale = _mm512_set1_ps(f->scale[0]);
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 mask = (__mmask16)(n - i >= 16 ? 0xffff : (1u << (n - i)) - 1);
        const __m512i left = _mm512_add_epi32(widened(_mm_maskz_loadu_epi8(mask, a + i), a_signed), bias);
        const __m512i right =
            _mm512_sub_epi32(widened(_mm_maskz_loadu_epi8(mask, b + i), f->residual_signed), l.residual_zero);
        const __m512i product = _mm512_madd_epi16(left, _mm512_and_si512(right, low_half));
        _mm_mask_storeu_epi8(y + i, mask, _mm512_cvtepi32_epi8(codes_of(f, &l, product, scale, false, product)));
    }
}

/* Rows of 16 to 64 bytes as two halves that may overlap: cheaper than masks. */
static void copy_halves(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row, int64_t rows, int64_t n,
                        uint8_t flip)
{
    const __m256i sign = _mm256_set1_epi8((char)flip);
    if (n <= 32) {
        const __m128i narrow = _mm256_castsi256_si128(sign);
        for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row) {
            const __m128i first = _mm_loadu_si128((const void *)from),
                          last = _mm_loadu_si128((const void *)(from + n - 16));
            _mm_storeu_si128((void *)to, _mm_xor_si128(first, narrow));
            _mm_storeu_si128((void *)(to + n - 16), _mm_xor_si128(last, narrow));
        }
        return;
    }
    for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row) {
        const __m256i first = _mm256_loadu_si256((const void *)from),
                      last = _mm256_loadu_si256((const void *)(from + n - 32));
        _mm256_storeu_si256((void *)to, _mm256_xor_si256(first, sign));
        _mm256_storeu_si256((void *)(to + n - 32), _mm256_xor_si256(last, sign));
    }
}

static void int8_epilogue_copy(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row, int64_t rows,
                               int64_t n, uint8_t flip)
{
    const __m512i sign = _mm512_set1_epi8((char)flip);
    if (n <= 0) return;
    if (n >= 16 && n < 64) {
        copy_halves(to, to_row, from, from_row, rows, n, flip);
        return;
    }
    const __mmask16 few = (__mmask16)((1u << (n & 15)) - 1);
    for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row) {
        if (n < 16) {
            const __m128i part = _mm_maskz_loadu_epi8(few, from);
            _mm_mask_storeu_epi8(to, few, _mm_xor_si128(part, _mm512_castsi512_si128(sign)));
            continue;
        }
        for (int64_t i = 0; i + 64 <= n; i += 64)
            _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), sign));
        if (n % 64) _mm512_storeu_si512(to + n - 64, _mm512_xor_si512(_mm512_loadu_si512(from + n - 64), sign));
    }
}

#elif defined(__AVX2__)

#define ROUNDED(x) __asm__("" : "+x"(x))

typedef struct limits {
    __m256 low, high, middle_low, middle_high, middle_factor, residual_factor;
    __m256i residual_zero, zero_words;
} limits;

static inline limits int8_epilogue_limits_of(const prn_qint8_epilogue *f)
{
    return (limits){.low = _mm256_set1_ps(f->low),
                    .high = _mm256_set1_ps(f->high),
                    .middle_low = _mm256_set1_ps(f->middle_low),
                    .middle_high = _mm256_set1_ps(f->middle_high),
                    .middle_factor = _mm256_set1_ps(f->middle_factor),
                    .residual_factor = _mm256_set1_ps(f->residual_factor),
                    .residual_zero = _mm256_set1_epi32(f->residual_zero),
                    .zero_words = _mm256_set1_epi16((short)f->zero)};
}

/* NaN is low. */
static inline __m256 int8_epilogue_kept(__m256 v, __m256 low, __m256 high)
{
    return _mm256_min_ps(_mm256_max_ps(v, low), high);
}

static inline __m256i widened(const uint8_t *codes, bool is_signed)
{
    const __m128i bytes = _mm_loadl_epi64((const void *)codes);
    return is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}

/* Whole steps from the zero point for 8 sums. `residual`: widened codes. has_residual is a constant after inlining. */
static inline __attribute__((always_inline)) __m256i int8_epilogue_steps_of(const prn_qint8_epilogue *f,
                                                                            const limits *l, __m256i sum, __m256 scale,
                                                                            const bool has_residual, __m256i residual)
{
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale);
    if (has_residual) {
        if (f->rounds) v = _mm256_round_ps(int8_epilogue_kept(v, l->middle_low, l->middle_high), 8);
        v = _mm256_mul_ps(v, l->middle_factor);
        ROUNDED(v);
        __m256 r = _mm256_cvtepi32_ps(_mm256_sub_epi32(residual, l->residual_zero));
        r = _mm256_mul_ps(r, l->residual_factor);
        ROUNDED(r);
        v = _mm256_add_ps(v, r);
    }
    return _mm256_cvtps_epi32(int8_epilogue_kept(v, l->low, l->high));
}

/* The codes of four vectors of steps as bytes, packed lane by lane: four of each vector. */
static inline __m256i int8_epilogue_packed(const prn_qint8_epilogue *f, const limits *l, const __m256i step[4])
{
    const __m256i low = _mm256_add_epi16(_mm256_packs_epi32(step[0], step[1]), l->zero_words);
    const __m256i high = _mm256_add_epi16(_mm256_packs_epi32(step[2], step[3]), l->zero_words);
    return f->y_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
}

/* 32 codes of four vectors of steps that follow one another. */
static inline void store_codes(const prn_qint8_epilogue *f, const limits *l, const __m256i step[4], uint8_t *y)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((void *)y, _mm256_permutevar8x32_epi32(int8_epilogue_packed(f, l, step), order));
}

static inline __attribute__((always_inline)) void finish_row(const prn_qint8_epilogue *f, const limits *l,
                                                             const int32_t *sums, const int32_t *bias,
                                                             const float *scale, uint8_t *y, const uint8_t *residual)
{
    __m256i step[4];
    PRN_UNROLL
    for (int v = 0; v < 4; v++) {
        const __m256i sum = _mm256_add_epi32(load_8(sums + 8 * v), load_8(bias + 8 * v));
        const __m256 factor = _mm256_loadu_ps(scale + 8 * v);
        step[v] = residual
                      ? int8_epilogue_steps_of(f, l, sum, factor, true, widened(residual + 8 * v, f->residual_signed))
                      : int8_epilogue_steps_of(f, l, sum, factor, false, sum);
    }
    store_codes(f, l, step, y);
}

/* Requantises a panel of sums: bias, scale, residual, activation, rounding to codes. Columns past `columns` are
 * neither read nor written. */
static void int8_epilogue_finish(const prn_qint8_epilogue *f, const int32_t *sums, int64_t rows, int64_t column,
                                 int64_t columns, uint8_t *y, int64_t y_row, const uint8_t *residual,
                                 int64_t residual_row)
{
    const limits l = int8_epilogue_limits_of(f);
    if (columns == COLUMNS) {
        for (int64_t r = 0; r < rows; r++, sums += COLUMNS, y += y_row) {
            if (residual)
                finish_row(f, &l, sums, f->bias + column, f->scale + column, y, residual + r * residual_row);
            else
                finish_row(f, &l, sums, f->bias + column, f->scale + column, y, NULL);
        }
        return;
    }
    int32_t bias[COLUMNS] = {0};
    float scale[COLUMNS] = {0};
    uint8_t codes[COLUMNS], other[COLUMNS] = {0};
    memcpy(bias, f->bias + column, (size_t)columns * sizeof *bias);
    memcpy(scale, f->scale + column, (size_t)columns * sizeof *scale);
    for (int64_t r = 0; r < rows; r++) {
        if (residual) memcpy(other, residual + r * residual_row, (size_t)columns);
        finish_row(f, &l, sums + r * COLUMNS, bias, scale, codes, residual ? other : NULL);
        memcpy(y + r * y_row, codes, (size_t)columns);
    }
}

/* 32 codes. Both factors are within 255 of 0: the low half of one times the other, of which nothing else is left. */
static inline void multiply_codes(const prn_qint8_epilogue *f, const limits *l, bool a_signed, const uint8_t *a,
                                  const uint8_t *b, uint8_t *y)
{
    __m256i step[4];
    PRN_UNROLL
    for (int v = 0; v < 4; v++) {
        const __m256i left = _mm256_add_epi32(widened(a + 8 * v, a_signed), _mm256_set1_epi32(f->bias[0]));
        const __m256i right = _mm256_sub_epi32(widened(b + 8 * v, f->residual_signed), l->residual_zero);
        const __m256i product = _mm256_madd_epi16(left, _mm256_and_si256(right, _mm256_set1_epi32(0xffff)));
        step[v] = int8_epilogue_steps_of(f, l, product, _mm256_set1_ps(f->scale[0]), false, product);
    }
    store_codes(f, l, step, y);
}

/* 32 codes. */
static inline void int8_epilogue_add_codes(const prn_qint8_epilogue *f, const limits *l, bool a_signed,
                                           const uint8_t *a, const uint8_t *b, uint8_t *y)
{
    __m256i step[4];
    PRN_UNROLL
    for (int v = 0; v < 4; v++) {
        const __m256i left = _mm256_add_epi32(widened(a + 8 * v, a_signed), _mm256_set1_epi32(f->bias[0]));
        step[v] = int8_epilogue_steps_of(f, l, left, _mm256_set1_ps(f->scale[0]), true,
                                         widened(b + 8 * v, f->residual_signed));
    }
    store_codes(f, l, step, y);
}

#define BY_32(name, codes_of_32)                                                                                       \
    static void name(const prn_qint8_epilogue *f, bool a_signed, const uint8_t *a, const uint8_t *b, uint8_t *y,       \
                     int64_t n)                                                                                        \
    {                                                                                                                  \
        const limits l = int8_epilogue_limits_of(f);                                                                   \
        int64_t i = 0;                                                                                                 \
        for (; i + COLUMNS <= n; i += COLUMNS) codes_of_32(f, &l, a_signed, a + i, b + i, y + i);                      \
        if (i < n) {                                                                                                   \
            uint8_t left[COLUMNS] = {0}, right[COLUMNS] = {0}, codes[COLUMNS];                                         \
            memcpy(left, a + i, (size_t)(n - i));                                                                      \
            memcpy(right, b + i, (size_t)(n - i));                                                                     \
            codes_of_32(f, &l, a_signed, left, right, codes);                                                          \
            memcpy(y + i, codes, (size_t)(n - i));                                                                     \
        }                                                                                                              \
    }
BY_32(int8_epilogue_add, int8_epilogue_add_codes)
BY_32(int8_epilogue_multiply, multiply_codes)

#else

/* Adding it to a number below 2^22 leaves a whole one, rounded half to even. */
#define ROUNDING 12582912.0f
/* All stores before it happen before all loads behind it. */
#define APART __asm__ volatile("" ::: "memory")

static inline float int8_epilogue_kept(float v, float low, float high)
{
    v = v > low ? v : low; /* NaN is low */
    return v < high ? v : high;
}

/* Codes of n <= 32 columns whose values, in steps of the output, stand in v. */
static void store_codes(const prn_qint8_epilogue *f, const float *v, int64_t n, uint8_t *y)
{
    int32_t codes[COLUMNS];
    for (int64_t j = 0; j < n; j++)
        codes[j] = (int32_t)((int8_epilogue_kept(v[j], f->low, f->high) + ROUNDING) - ROUNDING) + f->zero;
    for (int64_t j = 0; j < n; j++) y[j] = (uint8_t)codes[j];
}

/* v = v middle_factor + (residual - its zero point) residual_factor */
static void add_residual(const prn_qint8_epilogue *f, float *v, const uint8_t *residual, int64_t n)
{
    float other[COLUMNS];
    if (f->rounds) {
        for (int64_t j = 0; j < n; j++)
            v[j] = (int8_epilogue_kept(v[j], f->middle_low, f->middle_high) + ROUNDING) - ROUNDING;
    }
    for (int64_t j = 0; j < n; j++) v[j] *= f->middle_factor;
    for (int64_t j = 0; j < n; j++) {
        const int32_t code = f->residual_signed ? (int8_t)residual[j] : residual[j];
        other[j] = (float)(code - f->residual_zero) * f->residual_factor;
    }
    APART;
    for (int64_t j = 0; j < n; j++) v[j] += other[j];
}

static void int8_epilogue_finish(const prn_qint8_epilogue *f, const int32_t *sums, int64_t rows, int64_t column,
                                 int64_t columns, uint8_t *y, int64_t y_row, const uint8_t *residual,
                                 int64_t residual_row)
{
    const int32_t *bias = f->bias + column;
    const float *scale = f->scale + column;
    for (int64_t r = 0; r < rows; r++) {
        float v[COLUMNS];
        for (int64_t j = 0; j < columns; j++)
            v[j] = (float)(int32_t)((uint32_t)sums[r * COLUMNS + j] + (uint32_t)bias[j]) * scale[j];
        APART;
        if (residual) add_residual(f, v, residual + r * residual_row, columns);
        store_codes(f, v, columns, y + r * y_row);
    }
}

static void int8_epilogue_add(const prn_qint8_epilogue *f, bool a_signed, const uint8_t *a, const uint8_t *b,
                              uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += COLUMNS) {
        const int64_t count = n - i < COLUMNS ? n - i : COLUMNS;
        float v[COLUMNS];
        for (int64_t j = 0; j < count; j++) {
            const int32_t code = a_signed ? (int8_t)a[i + j] : a[i + j];
            v[j] = (float)(code + f->bias[0]) * f->scale[0];
        }
        APART;
        add_residual(f, v, b + i, count);
        store_codes(f, v, count, y + i);
    }
}

static void int8_epilogue_multiply(const prn_qint8_epilogue *f, bool a_signed, const uint8_t *a, const uint8_t *b,
                                   uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += COLUMNS) {
        const int64_t count = n - i < COLUMNS ? n - i : COLUMNS;
        float v[COLUMNS];
        for (int64_t j = 0; j < count; j++) {
            const int32_t left = (a_signed ? (int8_t)a[i + j] : a[i + j]) + f->bias[0];
            const int32_t right = (f->residual_signed ? (int8_t)b[i + j] : b[i + j]) - f->residual_zero;
            v[j] = (float)(left * right) * f->scale[0];
        }
        APART;
        store_codes(f, v, count, y + i);
    }
}

#endif

#if !WIDE

static void int8_epilogue_copy(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row, int64_t rows,
                               int64_t n, uint8_t flip)
{
    for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row) {
        if (flip == 0) {
            memcpy(to, from, (size_t)n);
        } else {
            for (int64_t i = 0; i < n; i++) to[i] = from[i] ^ flip;
        }
    }
}

#endif

#endif
