/* The loops of ops/kernels/vector/number_simd.h for one instruction set (PRN_SIMD names it). If the processor
 * converts half precision itself, whole and partial vectors pass the same instruction, so that an element's result
 * does not depend on where it stands. Invariant: every conversion is defined for every value (see number.h). */
#include "ops/kernels/vector/number_simd.h"
#include "base/cpu/simd.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

#define DEFINE_LOAD(DTYPE, name, storage, work, load)                                                                  \
    static void load_##name(void *to_, const void *from_, int64_t n)                                                   \
    {                                                                                                                  \
        work *to = to_;                                                                                                \
        const storage *from = from_;                                                                                   \
        for (int64_t i = 0; i < n; i++) to[i] = load(from[i]);                                                         \
    }
PRN_OTHER_WORK_FORMS(DEFINE_LOAD)

#define DEFINE_STORE(suffix, storage, work, expression)                                                                \
    static void store_##suffix(void *to_, const void *from_, int64_t n)                                                \
    {                                                                                                                  \
        storage *to = to_;                                                                                             \
        const work *from = from_;                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const work x = from[i];                                                                                    \
            to[i] = expression;                                                                                        \
        }                                                                                                              \
    }
#define DEFINE_STORE_FLOAT(DTYPE, name, storage, from_float, from_double, from_integer)                                \
    DEFINE_STORE(name##_float, storage, float, from_float)
#define DEFINE_STORES(DTYPE, name, storage, from_float, from_double, from_integer)                                     \
    DEFINE_STORE(name##_double, storage, double, from_double)                                                          \
    DEFINE_STORE(name##_int32_t, storage, int32_t, from_integer)                                                       \
    DEFINE_STORE(name##_int64_t, storage, int64_t, from_integer)                                                       \
    DEFINE_STORE(name##_uint64_t, storage, uint64_t, from_integer)
PRN_OTHER_TARGETS(DEFINE_STORE_FLOAT)
PRN_OTHER_TARGETS(DEFINE_STORES)
PRN_HALF_TARGET(DEFINE_STORES)

#if defined(__F16C__)
enum { LANES = 8 };

static void load_f16(void *to_, const void *from_, int64_t n)
{
    float *to = to_;
    const uint16_t *from = from_;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    }
    if (i == n) return;
    uint16_t halves[LANES] = {0};
    float wide[LANES];
    memcpy(halves, from + i, (size_t)(n - i) * sizeof *from);
    _mm256_storeu_ps(wide, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)halves)));
    memcpy(to + i, wide, (size_t)(n - i) * sizeof *to);
}

/* NaN loses its payload, as in prn_f32_to_f16. */
static inline __m128i number_simd_narrowed(__m256 x)
{
    const __m256 other = _mm256_cmp_ps(x, x, _CMP_UNORD_Q), sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0f));
    x = _mm256_blendv_ps(x, _mm256_or_ps(sign, _mm256_set1_ps(NAN)), other);
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static void store_f16_float(void *to_, const void *from_, int64_t n)
{
    uint16_t *to = to_;
    const float *from = from_;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        _mm_storeu_si128((__m128i *)(void *)(to + i), number_simd_narrowed(_mm256_loadu_ps(from + i)));
    }
    if (i == n) return;
    float wide[LANES] = {0.0f};
    uint16_t halves[LANES];
    memcpy(wide, from + i, (size_t)(n - i) * sizeof *from);
    _mm_storeu_si128((__m128i *)(void *)halves, number_simd_narrowed(_mm256_loadu_ps(wide)));
    memcpy(to + i, halves, (size_t)(n - i) * sizeof *to);
}
#else
PRN_HALF_WORK_FORM(DEFINE_LOAD)
PRN_HALF_TARGET(DEFINE_STORE_FLOAT)
#endif

const prn_number_simd PRN_SIMD_TABLE(prn_number_simd_) = {
    .load =
        {
#define LOAD_ROW(DTYPE, name, storage, work, load) [PRONY_##DTYPE] = load_##name,
            PRN_OTHER_WORK_FORMS(LOAD_ROW) PRN_HALF_WORK_FORM(LOAD_ROW)},
    .store =
        {
#define STORE_ROW(DTYPE, name, storage, from_float, from_double, from_integer)                                         \
    [PRONY_##DTYPE] = {store_##name##_float, store_##name##_double, store_##name##_int32_t, store_##name##_int64_t,    \
                       store_##name##_uint64_t},
            PRN_OTHER_TARGETS(STORE_ROW) PRN_HALF_TARGET(STORE_ROW)},
};
