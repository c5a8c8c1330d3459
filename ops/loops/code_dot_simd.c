/* The loops of ops/loops/code_dot.h for one instruction set (PRN_SIMD names it).
 *
 * Sums are whole numbers and wrap around, so tiles, vectors and plain loops give the same bits. What follows them is a
 * few float operations, each rounded on its own: where a product meets a sum, ROUNDED keeps the compiler from joining
 * them into one operation on processors that have it. */
#include "ops/loops/code_dot.h"
#include "base/simd.h"

#include <string.h>

#if defined(__AVX512BW__)
#include <immintrin.h>
#define WIDE 1
#else
#define WIDE 0
#endif

enum { ROWS = PRN_CODE_ROWS, COLUMNS = PRN_CODE_COLUMNS, CHANNELS = PRN_CODE_CHANNELS };

/* Adding it to a number below 2^22 leaves a whole one, rounded half to even. */
#define ROUNDING 12582912.0f
/* All stores before it happen before all loads behind it. */
#define APART __asm__ volatile("" ::: "memory")

/* ---- blocks of sums */

#if defined(__AMX_INT8__)

typedef struct tile_config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* Tiles 0 to 3 are sums, 4 and 5 rows of A, 6 and 7 columns of B. Static: compilers are not told that all of it is read. */
static const tile_config config = {.palette = 1,
                                   .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                   .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

static void begin(void)
{
    _tile_loadconfig(&config);
}

static void end(void)
{
    _tile_release();
}

#else

static void begin(void)
{
}

static void end(void)
{
}

#endif

#if defined(__AVX512VNNI__)

static inline __m512i four_of(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

/* `rows` is a constant after inlining. */
static inline __attribute__((always_inline)) void rows_of(const uint8_t *a, int64_t a_row, const int rows,
                                                          const int8_t *b, int64_t depth, int32_t *sums, bool add)
{
    enum { MOST = 12 };
    __m512i left[MOST], right[MOST];
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        left[r] = add ? _mm512_loadu_si512(sums + r * COLUMNS) : _mm512_setzero_si512();
        right[r] = add ? _mm512_loadu_si512(sums + r * COLUMNS + 16) : _mm512_setzero_si512();
    }
    for (int64_t k = 0; k < depth; k += 4, b += 4 * COLUMNS) {
        const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m512i x = four_of(a + r * a_row + k);
            left[r] = _mm512_dpbusd_epi32(left[r], x, b0);
            right[r] = _mm512_dpbusd_epi32(right[r], x, b1);
        }
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm512_storeu_si512(sums + r * COLUMNS, left[r]);
        _mm512_storeu_si512(sums + r * COLUMNS + 16, right[r]);
    }
}

static void vector_block(const uint8_t *a, int64_t a_row, int64_t rows, const int8_t *b, int64_t depth, int32_t *sums,
                         bool add)
{
    for (; rows >= 12; rows -= 12, a += 12 * a_row, sums += 12 * COLUMNS) rows_of(a, a_row, 12, b, depth, sums, add);
    for (; rows >= 8; rows -= 8, a += 8 * a_row, sums += 8 * COLUMNS) rows_of(a, a_row, 8, b, depth, sums, add);
    for (; rows >= 4; rows -= 4, a += 4 * a_row, sums += 4 * COLUMNS) rows_of(a, a_row, 4, b, depth, sums, add);
    for (; rows >= 2; rows -= 2, a += 2 * a_row, sums += 2 * COLUMNS) rows_of(a, a_row, 2, b, depth, sums, add);
    if (rows > 0) rows_of(a, a_row, 1, b, depth, sums, add);
}

#endif

#if defined(__AMX_INT8__)

/* Up to which vectors do less work than tiles of 16 rows. */
enum { FEW_ROWS = 4 };

static void tiles_16(const uint8_t *a, int64_t a_row, const int8_t *b, int64_t depth, int32_t *sums, bool add)
{
    if (add) {
        _tile_loadd(0, sums, 4 * COLUMNS);
        _tile_loadd(1, sums + 16, 4 * COLUMNS);
    } else {
        _tile_zero(0);
        _tile_zero(1);
    }
    for (int64_t k = 0; k < depth; k += 64, b += 64 * COLUMNS) {
        _tile_loadd(4, a + k, (long)a_row);
        _tile_loadd(6, b, 4 * COLUMNS);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(7, b + 64, 4 * COLUMNS);
        _tile_dpbusd(1, 4, 7);
    }
    _tile_stored(0, sums, 4 * COLUMNS);
    _tile_stored(1, sums + 16, 4 * COLUMNS);
}

static void tiles_32(const uint8_t *a, int64_t a_row, const int8_t *b, int64_t depth, int32_t *sums, bool add)
{
    int32_t *lower = sums + 16 * COLUMNS;
    if (add) {
        _tile_loadd(0, sums, 4 * COLUMNS);
        _tile_loadd(1, sums + 16, 4 * COLUMNS);
        _tile_loadd(2, lower, 4 * COLUMNS);
        _tile_loadd(3, lower + 16, 4 * COLUMNS);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t k = 0; k < depth; k += 64, b += 64 * COLUMNS) {
        _tile_loadd(4, a + k, (long)a_row);
        _tile_loadd(6, b, 4 * COLUMNS);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(7, b + 64, 4 * COLUMNS);
        _tile_dpbusd(1, 4, 7);
        _tile_loadd(5, a + 16 * a_row + k, (long)a_row);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_stored(0, sums, 4 * COLUMNS);
    _tile_stored(1, sums + 16, 4 * COLUMNS);
    _tile_stored(2, lower, 4 * COLUMNS);
    _tile_stored(3, lower + 16, 4 * COLUMNS);
}

static void block(const uint8_t *a, int64_t a_row, int64_t rows, const int8_t *b, int64_t depth, int32_t *sums,
                  bool add, bool narrow)
{
    (void)narrow;
    if (rows <= FEW_ROWS) {
        vector_block(a, a_row, rows, b, depth, sums, add);
    } else if (rows <= 16) {
        tiles_16(a, a_row, b, depth, sums, add);
    } else {
        tiles_32(a, a_row, b, depth, sums, add);
    }
}

#elif defined(__AVX512VNNI__)

static void block(const uint8_t *a, int64_t a_row, int64_t rows, const int8_t *b, int64_t depth, int32_t *sums,
                  bool add, bool narrow)
{
    (void)narrow;
    vector_block(a, a_row, rows, b, depth, sums, add);
}

#else

/* Both operands are widened to 16 bits, a piece of the depth at a time: then pairs of products fit every sum. */

#if WIDE
enum { LANES = 16, TILE_ROWS = 12 };
#elif defined(__AVX2__)
enum { LANES = 8, TILE_ROWS = 6 };
#else
enum { LANES = 4, TILE_ROWS = 4 };
#endif
enum { PIECE = 128, PAIR_ROW = 2 * COLUMNS };

#ifdef __AVX2__
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

typedef uint32_t vec __attribute__((vector_size(LANES * 4)));
typedef uint32_t vec_unaligned __attribute__((vector_size(LANES * 4), aligned(2), may_alias));

static inline vec load(const void *p)
{
    return *(const vec_unaligned *)p;
}

static inline void store(void *p, vec x)
{
    *(vec_unaligned *)p = x;
}

/* Each lane is a pair of signed 16-bit numbers; the sum of the two products of a lane. */
static inline vec multiply_pairs(vec a, vec b)
{
#if WIDE
    return (vec)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (vec)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vec)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    typedef int32_t svec __attribute__((vector_size(LANES * 4)));
    const vec low = (vec)((svec)(a << 16) >> 16) * (vec)((svec)(b << 16) >> 16);
    return low + (vec)((svec)a >> 16) * (vec)((svec)b >> 16);
#endif
}

static inline vec pair_of(const int16_t *p)
{
    uint32_t pair;
    memcpy(&pair, p, sizeof pair);
    return pair - (vec){0};
}

/* `rows` rows and two vectors' columns. */
static inline __attribute__((always_inline)) void tile(const int16_t *a, const int rows, const int16_t *b,
                                                       int64_t pairs, int32_t *sums, bool add)
{
    vec left[TILE_ROWS], right[TILE_ROWS];
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        left[r] = add ? load(sums + r * COLUMNS) : (vec){0};
        right[r] = add ? load(sums + r * COLUMNS + LANES) : (vec){0};
    }
    for (int64_t p = 0; p < pairs; p++, b += PAIR_ROW) {
        const vec b0 = load(b), b1 = load(b + 2 * LANES);
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            const vec pair = pair_of(a + r * PIECE + 2 * p);
            left[r] += multiply_pairs(pair, b0);
            right[r] += multiply_pairs(pair, b1);
        }
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        store(sums + r * COLUMNS, left[r]);
        store(sums + r * COLUMNS + LANES, right[r]);
    }
}

static void widen_rows(const uint8_t *a, int64_t a_row, int64_t rows, int64_t depth, int16_t *to)
{
    for (int64_t r = 0; r < rows; r++) {
        const uint8_t *from = a + r * a_row;
        for (int64_t k = 0; k < depth; k++) to[r * PIECE + k] = from[k];
    }
}

/* Four depths of a column are one word of a panel; pairs of them go to two rows. */
static void widen_panel(const int8_t *b, int64_t depth, int16_t *to)
{
    for (int64_t k = 0; k < depth; k += 4, b += 4 * COLUMNS, to += 2 * PAIR_ROW) {
        int32_t words[COLUMNS], pairs[2][COLUMNS];
        memcpy(words, b, sizeof words);
        for (int c = 0; c < COLUMNS; c++) {
            const uint32_t w = (uint32_t)words[c];
            const int32_t b0 = (int32_t)(w << 24) >> 24, b1 = (int32_t)(w << 16) >> 24, b2 = (int32_t)(w << 8) >> 24;
            pairs[0][c] = (int32_t)(((uint32_t)b0 & 0xffff) | (uint32_t)b1 << 16);
            pairs[1][c] = (int32_t)(((uint32_t)b2 & 0xffff) | ((uint32_t)((int32_t)w >> 24) << 16));
        }
        memcpy(to, pairs, sizeof pairs);
    }
}

#if defined(__AVX2__) && !WIDE

static inline __m256i four_of(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}

/* `rows` rows and 32 columns: products of two depths are added in 16 bits, which they fit. */
static inline __attribute__((always_inline)) void narrow_rows(const uint8_t *a, int64_t a_row, const int rows,
                                                              const int8_t *b, int64_t depth, int32_t *sums, bool add)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum[3][4];
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        PRN_UNROLL
        for (int v = 0; v < 4; v++)
            sum[r][v] = add ? _mm256_loadu_si256((const void *)(sums + r * COLUMNS + 8 * v)) : _mm256_setzero_si256();
    }
    for (int64_t k = 0; k < depth; k += 4, b += 4 * COLUMNS) {
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256i x = four_of(a + r * a_row + k);
            PRN_UNROLL
            for (int v = 0; v < 4; v++) {
                const __m256i pairs = _mm256_maddubs_epi16(x, _mm256_loadu_si256((const void *)(b + 32 * v)));
                sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(pairs, ones));
            }
        }
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        PRN_UNROLL
        for (int v = 0; v < 4; v++) _mm256_storeu_si256((void *)(sums + r * COLUMNS + 8 * v), sum[r][v]);
    }
}

static void narrow_block(const uint8_t *a, int64_t a_row, int64_t rows, const int8_t *b, int64_t depth, int32_t *sums,
                         bool add)
{
    for (; rows >= 3; rows -= 3, a += 3 * a_row, sums += 3 * COLUMNS) narrow_rows(a, a_row, 3, b, depth, sums, add);
    if (rows == 2) narrow_rows(a, a_row, 2, b, depth, sums, add);
    if (rows == 1) narrow_rows(a, a_row, 1, b, depth, sums, add);
}

#endif

static void block(const uint8_t *a, int64_t a_row, int64_t rows, const int8_t *b, int64_t depth, int32_t *sums,
                  bool add, bool narrow)
{
#if defined(__AVX2__) && !WIDE
    if (narrow) {
        narrow_block(a, a_row, rows, b, depth, sums, add);
        return;
    }
#endif
    (void)narrow;
    int16_t wide_a[ROWS * PIECE], wide_b[PIECE * COLUMNS];
    for (int64_t k = 0, n; k < depth; k += n) {
        n = depth - k < PIECE ? depth - k : PIECE;
        const bool more = add || k > 0;
        widen_rows(a + k, a_row, rows, n, wide_a);
        widen_panel(b + k * COLUMNS, n, wide_b);
        for (int64_t j = 0; j < COLUMNS; j += 2 * LANES) {
            int64_t r = 0;
            for (; r + TILE_ROWS <= rows; r += TILE_ROWS)
                tile(wide_a + r * PIECE, TILE_ROWS, wide_b + 2 * j, n / 2, sums + r * COLUMNS + j, more);
            for (; r + 2 <= rows; r += 2)
                tile(wide_a + r * PIECE, 2, wide_b + 2 * j, n / 2, sums + r * COLUMNS + j, more);
            if (r < rows) tile(wide_a + r * PIECE, 1, wide_b + 2 * j, n / 2, sums + r * COLUMNS + j, more);
        }
    }
}

#endif

/* ---- from sums to codes */

#if WIDE

#define ROUNDED(x) __asm__("" : "+v"(x))

typedef struct limits {
    __m512 high, middle_low, middle_high, middle_factor, residual_factor;
    __m512i zero, residual_zero, low_steps, zero_words, low_codes;
} limits;

static inline limits limits_of(const prn_code_finish *f)
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
static inline __m512 kept(__m512 v, __m512 low, __m512 high)
{
    return _mm512_min_ps(_mm512_max_ps(v, low), high);
}

/* Whole steps from the zero point for a vector of sums, no more than `high`; what is too low, or NaN, is any low number.
 * `residual`: widened codes. has_residual is a constant after inlining. */
static inline __attribute__((always_inline)) __m512i steps_of(const prn_code_finish *f, const limits *l, __m512i sum,
                                                              __m512 scale, const bool has_residual, __m512i residual)
{
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
    if (has_residual) {
        if (f->rounds) v = _mm512_roundscale_ps(kept(v, l->middle_low, l->middle_high), 8);
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
static inline __attribute__((always_inline)) __m512i codes_of(const prn_code_finish *f, const limits *l, __m512i sum,
                                                              __m512 scale, const bool has_residual, __m512i residual)
{
    const __m512i steps = steps_of(f, l, sum, scale, has_residual, residual);
    return _mm512_add_epi32(_mm512_max_epi32(steps, l->low_steps), l->zero);
}

/* The codes of four vectors of steps as bytes, packed lane by lane: four of each vector. */
static inline __m512i packed(const prn_code_finish *f, const limits *l, const __m512i step[4])
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

/* Two rows of a whole panel: codes are packed within lanes, so that their words of four columns need one permutation. */
static inline __attribute__((always_inline)) void finish_pair(const prn_code_finish *f, const limits *l,
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
        step[i] = steps_of(f, l, sum, scale[j], has_residual, other);
    }
    const __m512i bytes = _mm512_permutexvar_epi32(order, packed(f, l, step));
    _mm256_storeu_si256((void *)y, _mm512_castsi512_si256(bytes));
    _mm256_storeu_si256((void *)(y + y_row), _mm512_extracti64x4_epi64(bytes, 1));
}

static void finish_panel(const prn_code_finish *f, const limits *l, const int32_t *sums, int64_t rows, int64_t column,
                         uint8_t *y, int64_t y_row, const uint8_t *residual, int64_t residual_row)
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

static void finish(const prn_code_finish *f, const int32_t *sums, int64_t rows, int64_t column, int64_t columns,
                   uint8_t *y, int64_t y_row, const uint8_t *residual, int64_t residual_row)
{
    const limits l = limits_of(f);
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

static void add(const prn_code_finish *f, bool a_signed, const uint8_t *a, const uint8_t *b, uint8_t *y, int64_t n)
{
    const limits l = limits_of(f);
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

/* Rows of 16 to 64 bytes as two halves that may overlap: cheaper than masks. */
static void copy_halves(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row, int64_t rows, int64_t n,
                        uint8_t flip)
{
    const __m256i sign = _mm256_set1_epi8((char)flip);
    if (n <= 32) {
        const __m128i narrow = _mm256_castsi256_si128(sign);
        for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row) {
            const __m128i first = _mm_loadu_si128((const void *)from), last = _mm_loadu_si128((const void *)(from + n - 16));
            _mm_storeu_si128((void *)to, _mm_xor_si128(first, narrow));
            _mm_storeu_si128((void *)(to + n - 16), _mm_xor_si128(last, narrow));
        }
        return;
    }
    for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row) {
        const __m256i first = _mm256_loadu_si256((const void *)from), last = _mm256_loadu_si256((const void *)(from + n - 32));
        _mm256_storeu_si256((void *)to, _mm256_xor_si256(first, sign));
        _mm256_storeu_si256((void *)(to + n - 32), _mm256_xor_si256(last, sign));
    }
}

static void copy(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row, int64_t rows, int64_t n,
                 uint8_t flip)
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

#else

static inline float kept(float v, float low, float high)
{
    v = v > low ? v : low; /* NaN is low */
    return v < high ? v : high;
}

/* Codes of n <= 32 columns whose values, in steps of the output, stand in v. */
static void store_codes(const prn_code_finish *f, const float *v, int64_t n, uint8_t *y)
{
    int32_t codes[COLUMNS];
    for (int64_t j = 0; j < n; j++)
        codes[j] = (int32_t)((kept(v[j], f->low, f->high) + ROUNDING) - ROUNDING) + f->zero;
    for (int64_t j = 0; j < n; j++) y[j] = (uint8_t)codes[j];
}

/* v = v middle_factor + (residual - its zero point) residual_factor */
static void add_residual(const prn_code_finish *f, float *v, const uint8_t *residual, int64_t n)
{
    float other[COLUMNS];
    if (f->rounds) {
        for (int64_t j = 0; j < n; j++)
            v[j] = (kept(v[j], f->middle_low, f->middle_high) + ROUNDING) - ROUNDING;
    }
    for (int64_t j = 0; j < n; j++) v[j] *= f->middle_factor;
    for (int64_t j = 0; j < n; j++) {
        const int32_t code = f->residual_signed ? (int8_t)residual[j] : residual[j];
        other[j] = (float)(code - f->residual_zero) * f->residual_factor;
    }
    APART;
    for (int64_t j = 0; j < n; j++) v[j] += other[j];
}

static void finish(const prn_code_finish *f, const int32_t *sums, int64_t rows, int64_t column, int64_t columns,
                   uint8_t *y, int64_t y_row, const uint8_t *residual, int64_t residual_row)
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

static void add(const prn_code_finish *f, bool a_signed, const uint8_t *a, const uint8_t *b, uint8_t *y, int64_t n)
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

static void copy(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row, int64_t rows, int64_t n,
                 uint8_t flip)
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

/* ---- depthwise */

#if defined(__AVX512VNNI__)

/* Bytes of four taps are interleaved within lanes of 16 channels, so a vector has four channels of each lane, with four
 * taps each: block of 64 channels, four taps, vector, lane, channel, tap. Packing codes undoes the order. Where the last
 * block has no more than 32 or 16 channels, lanes take several positions, and its weights stand there as often. */
static int64_t width_of(int64_t left)
{
    return left > 32 ? 64 : left > 16 ? 32 : 16;
}

/* Channel of number `i` of a block: vectors, then lanes, then four. */
static int64_t channel_of(int64_t i, int64_t width)
{
    return 16 * (i / 4 % 4) % width + 4 * (i / 16) + i % 4;
}

static void depthwise_pack(int8_t *to, const int8_t *w, int64_t channels, int64_t taps, int64_t padded_taps)
{
    for (int64_t block_at = 0; block_at < channels; block_at += CHANNELS) {
        const int64_t width = width_of(channels - block_at);
        for (int64_t t = 0; t < padded_taps; t += 4) {
            for (int64_t i = 0; i < 4 * CHANNELS; i++) {
                const int64_t c = block_at + channel_of(i / 4, width), tap = t + i % 4;
                *to++ = c < channels && tap < taps ? w[c * taps + tap] : 0;
            }
        }
    }
}

static void depthwise_order(void *to, const void *from, int64_t channels)
{
    const char *numbers = from;
    char *ordered = to;
    for (int64_t block_at = 0; block_at < channels; block_at += CHANNELS) {
        for (int64_t i = 0; i < CHANNELS; i++, ordered += 4) {
            const int64_t c = block_at + channel_of(i, width_of(channels - block_at));
            if (c < channels)
                memcpy(ordered, numbers + 4 * c, 4);
            else
                memset(ordered, 0, 4);
        }
    }
}

/* The residual's codes of vector `vector`, widened. */
static inline __m512i residual_part(__m512i codes, int vector, bool is_signed)
{
    /* Bring the four bytes of each lane to its front, then widen lane by lane. */
    const __m512i from = _mm512_add_epi32(_mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12),
                                          _mm512_set1_epi32(vector));
    return widened(_mm512_castsi512_si128(_mm512_permutexvar_epi32(from, codes)), is_signed);
}

/* Where the bytes of a vector stand: 64 / width positions (`apart` bytes from each other; those that there are none of
 * point to the first) of `width` channels, of which `mask` says which there are. */
typedef struct spread {
    int64_t at[4];
    __mmask64 mask;
} spread;

static inline __attribute__((always_inline)) __m512i gathered(const uint8_t *p, const spread *s, const int64_t width)
{
    if (width == 64) return _mm512_maskz_loadu_epi8(s->mask, p + s->at[0]);
    if (width == 32) {
        const __mmask32 mask = (__mmask32)s->mask;
        const __m256i low = _mm256_maskz_loadu_epi8(mask, p + s->at[0]), high = _mm256_maskz_loadu_epi8(mask, p + s->at[1]);
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    const __mmask16 mask = (__mmask16)s->mask;
    __m512i v = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(mask, p + s->at[0]));
    v = _mm512_inserti32x4(v, _mm_maskz_loadu_epi8(mask, p + s->at[1]), 1);
    v = _mm512_inserti32x4(v, _mm_maskz_loadu_epi8(mask, p + s->at[2]), 2);
    return _mm512_inserti32x4(v, _mm_maskz_loadu_epi8(mask, p + s->at[3]), 3);
}

static inline __attribute__((always_inline)) void scatter(uint8_t *p, const spread *s, const int64_t width,
                                                          int64_t positions, __m512i bytes)
{
    if (width == 64) {
        _mm512_mask_storeu_epi8(p + s->at[0], s->mask, bytes);
    } else if (width == 32) {
        const __mmask32 mask = (__mmask32)s->mask;
        _mm256_mask_storeu_epi8(p + s->at[0], mask, _mm512_castsi512_si256(bytes));
        if (positions > 1) _mm256_mask_storeu_epi8(p + s->at[1], mask, _mm512_extracti64x4_epi64(bytes, 1));
    } else {
        const __mmask16 mask = (__mmask16)s->mask;
        _mm_mask_storeu_epi8(p + s->at[0], mask, _mm512_castsi512_si128(bytes));
        if (positions > 1) _mm_mask_storeu_epi8(p + s->at[1], mask, _mm512_extracti32x4_epi32(bytes, 1));
        if (positions > 2) _mm_mask_storeu_epi8(p + s->at[2], mask, _mm512_extracti32x4_epi32(bytes, 2));
        if (positions > 3) _mm_mask_storeu_epi8(p + s->at[3], mask, _mm512_extracti32x4_epi32(bytes, 3));
    }
}

/* Adds the taps of a block of channels, four at a time. Constants after inlining: taps, or d->taps; width. */
static inline __attribute__((always_inline)) void depthwise_sums(const int8_t *w, const uint8_t *const *tap,
                                                                 const int64_t taps, const spread *s,
                                                                 const int64_t width, __m512i sign, __m512i sum[4])
{
    for (int64_t t = 0; t < taps; t += 4, w += 4 * CHANNELS) {
        const __m512i x0 = _mm512_xor_si512(gathered(tap[t], s, width), sign);
        const __m512i x1 = _mm512_xor_si512(gathered(tap[t + 1], s, width), sign);
        const __m512i x2 = _mm512_xor_si512(gathered(tap[t + 2], s, width), sign);
        const __m512i x3 = _mm512_xor_si512(gathered(tap[t + 3], s, width), sign);
        const __m512i low01 = _mm512_unpacklo_epi8(x0, x1), high01 = _mm512_unpackhi_epi8(x0, x1);
        const __m512i low23 = _mm512_unpacklo_epi8(x2, x3), high23 = _mm512_unpackhi_epi8(x2, x3);
        sum[0] = _mm512_dpbusd_epi32(sum[0], _mm512_unpacklo_epi16(low01, low23), _mm512_loadu_si512(w));
        sum[1] = _mm512_dpbusd_epi32(sum[1], _mm512_unpackhi_epi16(low01, low23), _mm512_loadu_si512(w + 64));
        sum[2] = _mm512_dpbusd_epi32(sum[2], _mm512_unpacklo_epi16(high01, high23), _mm512_loadu_si512(w + 128));
        sum[3] = _mm512_dpbusd_epi32(sum[3], _mm512_unpackhi_epi16(high01, high23), _mm512_loadu_si512(w + 192));
    }
}

/* The block of channels from number c on, at `count` positions. */
static inline __attribute__((always_inline)) void depthwise_block(const prn_code_depthwise *d, const limits *l,
                                                                  const uint8_t *const *tap, int64_t c,
                                                                  const int64_t taps, const int64_t width, int64_t step,
                                                                  int64_t count, uint8_t flip, uint8_t *y,
                                                                  const uint8_t *residual)
{
    const prn_code_finish *f = &d->finish;
    const __m512i sign = _mm512_set1_epi8((char)flip);
    const int64_t left = d->channels - c, together = CHANNELS / width;
    const __mmask64 mask = left >= CHANNELS ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
    for (int64_t p = 0; p < count; p += together) {
        const int64_t positions = count - p < together ? count - p : together;
        spread in = {.mask = mask}, out = {.mask = mask};
        PRN_UNROLL
        for (int64_t i = 0; i < together; i++) {
            const int64_t at = i < positions ? p + i : p;
            in.at[i] = at * step + c;
            out.at[i] = at * d->channels + c;
        }
        __m512i sum[4], step_of[4];
        PRN_UNROLL
        for (int v = 0; v < 4; v++) sum[v] = _mm512_loadu_si512(f->bias + c + 16 * v);
        depthwise_sums(d->weights + c * taps, tap, taps, &in, width, sign, sum);
        const __m512i other = residual ? gathered(residual, &out, width) : sign;
        PRN_UNROLL
        for (int v = 0; v < 4; v++) {
            const __m512 scale = _mm512_loadu_ps(f->scale + c + 16 * v);
            step_of[v] = residual ? steps_of(f, l, sum[v], scale, true, residual_part(other, v, f->residual_signed))
                                  : steps_of(f, l, sum[v], scale, false, sum[v]);
        }
        scatter(y, &out, width, positions, packed(f, l, step_of));
    }
}

static inline __attribute__((always_inline)) void depthwise_of(const prn_code_depthwise *d, const uint8_t *const *tap,
                                                               const int64_t taps, int64_t step, int64_t count,
                                                               uint8_t flip, uint8_t *y, const uint8_t *residual)
{
    const limits l = limits_of(&d->finish);
    for (int64_t c = 0; c < d->channels; c += CHANNELS) {
        const int64_t width = width_of(d->channels - c);
        if (width == 64)
            depthwise_block(d, &l, tap, c, taps, 64, step, count, flip, y, residual);
        else if (width == 32)
            depthwise_block(d, &l, tap, c, taps, 32, step, count, flip, y, residual);
        else
            depthwise_block(d, &l, tap, c, taps, 16, step, count, flip, y, residual);
    }
}

static void depthwise(const prn_code_depthwise *d, const uint8_t *const *tap, int64_t step, int64_t count, uint8_t flip,
                      uint8_t *y, const uint8_t *residual)
{
    if (d->taps == 12)
        depthwise_of(d, tap, 12, step, count, flip, y, residual);
    else
        depthwise_of(d, tap, d->taps, step, count, flip, y, residual);
}

#else

#ifdef __AVX2__

/* Pairs of taps: block of 64 channels, two taps, channel, tap. */
static void depthwise_pack(int8_t *to, const int8_t *w, int64_t channels, int64_t taps, int64_t padded_taps)
{
    for (int64_t c = 0; c < channels; c += CHANNELS) {
        for (int64_t i = 0; i < padded_taps * CHANNELS; i++) {
            const int64_t tap = i / (2 * CHANNELS) * 2 + i % 2, channel = c + i / 2 % CHANNELS;
            *to++ = channel < channels && tap < taps ? w[channel * taps + tap] : 0;
        }
    }
}

/* Sums of 16 channels; weights of the next two taps are 2 * CHANNELS further. */
static inline void sums_of_16(const uint8_t *const *tap, int64_t at, int64_t taps, const int8_t *w, __m128i sign,
                              int32_t *sums)
{
    __m256i low = _mm256_setzero_si256(), high = low;
    for (int64_t t = 0; t < taps; t += 2, w += 2 * CHANNELS) {
        const __m128i x0 = _mm_xor_si128(_mm_loadu_si128((const void *)(tap[t] + at)), sign);
        const __m128i x1 = _mm_xor_si128(_mm_loadu_si128((const void *)(tap[t + 1] + at)), sign);
        const __m256i w0 = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)w));
        const __m256i w1 = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(w + 16)));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x0, x1)), w0));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(x0, x1)), w1));
    }
    _mm256_storeu_si256((void *)sums, low);
    _mm256_storeu_si256((void *)(sums + 8), high);
}

static void depthwise_block(const uint8_t *const *tap, int64_t at, int64_t taps, const int8_t *w, int64_t count,
                            uint8_t flip, int32_t *sums)
{
    const __m128i sign = _mm_set1_epi8((char)flip);
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) sums_of_16(tap, at + i, taps, w + 2 * i, sign, sums + i);
    for (; i < count; i++) {
        sums[i] = 0;
        for (int64_t t = 0; t < taps; t++)
            sums[i] += (tap[t][at + i] ^ flip) * w[t / 2 * 2 * CHANNELS + 2 * i + t % 2];
    }
}

#else

/* Tap by tap, channels side by side. */
static void depthwise_pack(int8_t *to, const int8_t *w, int64_t channels, int64_t taps, int64_t padded_taps)
{
    for (int64_t c = 0; c < channels; c += CHANNELS) {
        for (int64_t i = 0; i < padded_taps * CHANNELS; i++) {
            const int64_t tap = i / CHANNELS, channel = c + i % CHANNELS;
            *to++ = channel < channels && tap < taps ? w[channel * taps + tap] : 0;
        }
    }
}

static void depthwise_block(const uint8_t *const *tap, int64_t at, int64_t taps, const int8_t *w, int64_t count,
                            uint8_t flip, int32_t *sums)
{
    memset(sums, 0, CHANNELS * sizeof *sums);
    for (int64_t t = 0; t < taps; t++, w += CHANNELS) {
        const uint8_t *x = tap[t] + at;
        for (int64_t i = 0; i < count; i++) sums[i] += (x[i] ^ flip) * w[i];
    }
}

#endif

static void depthwise_order(void *to, const void *from, int64_t channels)
{
    const int64_t padded = (channels + CHANNELS - 1) / CHANNELS * CHANNELS;
    memcpy(to, from, (size_t)channels * 4);
    memset((char *)to + channels * 4, 0, (size_t)(padded - channels) * 4);
}

static void depthwise_position(const prn_code_depthwise *d, const uint8_t *const *tap, int64_t at, uint8_t flip,
                               uint8_t *y, const uint8_t *residual)
{
    for (int64_t c = 0; c < d->channels; c += CHANNELS) {
        const int64_t count = d->channels - c < CHANNELS ? d->channels - c : CHANNELS;
        int32_t sums[CHANNELS];
        depthwise_block(tap, at + c, d->taps, d->weights + c * d->taps, count, flip, sums);
        for (int64_t i = 0; i < count; i += COLUMNS) {
            const int64_t n = count - i < COLUMNS ? count - i : COLUMNS;
            finish(&d->finish, sums + i, 1, c + i, n, y + c + i, 0, residual ? residual + c + i : NULL, 0);
        }
    }
}

static void depthwise(const prn_code_depthwise *d, const uint8_t *const *tap, int64_t step, int64_t count, uint8_t flip,
                      uint8_t *y, const uint8_t *residual)
{
    for (int64_t p = 0; p < count; p++) {
        depthwise_position(d, tap, p * step, flip, y + p * d->channels,
                           residual ? residual + p * d->channels : NULL);
    }
}

#endif

/* ---- windows */

#if WIDE

static inline __attribute__((always_inline)) void largest_of(const uint8_t *const *tap, int64_t taps, int64_t channels,
                                                             const bool is_signed, uint8_t *y)
{
    for (int64_t c = 0; c < channels; c += CHANNELS) {
        const __mmask64 mask = channels - c >= CHANNELS ? ~UINT64_C(0) : (UINT64_C(1) << (channels - c)) - 1;
        __m512i best = _mm512_maskz_loadu_epi8(mask, tap[0] + c);
        for (int64_t t = 1; t < taps; t++) {
            const __m512i x = _mm512_maskz_loadu_epi8(mask, tap[t] + c);
            best = is_signed ? _mm512_max_epi8(best, x) : _mm512_max_epu8(best, x);
        }
        _mm512_mask_storeu_epi8(y + c, mask, best);
    }
}

static void largest_u8(const uint8_t *const *tap, int64_t taps, int64_t channels, uint8_t *y)
{
    largest_of(tap, taps, channels, false, y);
}

static void largest_i8(const uint8_t *const *tap, int64_t taps, int64_t channels, uint8_t *y)
{
    largest_of(tap, taps, channels, true, y);
}

#else

#define LARGEST(name, type)                                                                                            \
    static void largest_##name(const uint8_t *const *tap, int64_t taps, int64_t channels, uint8_t *y)                  \
    {                                                                                                                  \
        for (int64_t c = 0; c < channels; c += CHANNELS) {                                                             \
            const int64_t count = channels - c < CHANNELS ? channels - c : CHANNELS;                                   \
            type best[CHANNELS];                                                                                       \
            memcpy(best, tap[0] + c, (size_t)count);                                                                   \
            for (int64_t t = 1; t < taps; t++) {                                                                       \
                const type *x = (const type *)(tap[t] + c);                                                            \
                if (count == CHANNELS) {                                                                               \
                    for (int i = 0; i < CHANNELS; i++) best[i] = best[i] < x[i] ? x[i] : best[i];                      \
                } else {                                                                                               \
                    for (int64_t i = 0; i < count; i++) best[i] = best[i] < x[i] ? x[i] : best[i];                     \
                }                                                                                                      \
            }                                                                                                          \
            memcpy(y + c, best, (size_t)count);                                                                        \
        }                                                                                                              \
    }
LARGEST(u8, uint8_t)
LARGEST(i8, int8_t)

#endif

static void largest(const uint8_t *const *tap, int64_t taps, int64_t channels, bool is_signed, uint8_t *y)
{
    if (is_signed)
        largest_i8(tap, taps, channels, y);
    else
        largest_u8(tap, taps, channels, y);
}

const prn_code_dot PRN_SIMD_TABLE(prn_code_dot_) = {.name = PRN_SIMD_NAME,
                                                    .begin = begin,
                                                    .end = end,
                                                    .block = block,
                                                    .finish = finish,
                                                    .copy = copy,
                                                    .depthwise_pack = depthwise_pack,
                                                    .depthwise_order = depthwise_order,
                                                    .depthwise = depthwise,
                                                    .add = add,
                                                    .largest = largest};
