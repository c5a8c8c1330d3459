/* The meaning of a quantized tensor: value = scale (code - zero point), and how the parameters of a tensor are found.
 *
 *   per tensor   one scale
 *   per axis     scale[a] for index a on the axis
 *   blocked      the scale has the tensor's shape, but ceil(extent / block) on the axis
 *
 * Zero points have the scale's count, or are left out (0). Nothing here owns memory.
 */
#ifndef PRN_OPS_KERNELS_INT8_QUANTIZED_H
#define PRN_OPS_KERNELS_INT8_QUANTIZED_H

#include "ops/kernels/lowbit/narrow_types.h"
#include "ops/kernels/int8/quant_simd.h"
#include "ops/op.h"

#define PRN_TYPES_8_BIT (PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8))
#define PRN_TYPES_SCALE (PRN_TYPE(PRONY_FLOAT32) | PRN_TYPE(PRONY_FLOAT16) | PRN_TYPE(PRONY_BFLOAT16))

enum { PRN_QUANT_CHUNK = 256, PRN_QUANT_GRAIN = 8192 };

typedef struct prn_quant {
    const prony_value *scale, *zero; /* zero NULL: no_zero everywhere */
    float no_zero;                   /* 0, or -0: what leaves the sign of a zero alone when it is added */
    int64_t axis, inner;             /* extents: of the axis, of what lies below it */
    int64_t block, blocks;           /* blocks 0: not blocked */
    bool uniform;                    /* per tensor */
} prn_quant;

/* The parameters of a tensor of shape `shape`, inputs `scale` and `zero` of the node. `block` 0: not blocked. */
prony_status prn_quant_read(const prony_context *context, const prony_shape *shape, size_t scale, size_t zero,
                            int64_t axis, int64_t block, prn_quant *out);
/* Scales and zero points of elements [first, first + n). */
void prn_quant_fill(const prn_quant *quant, int64_t first, int64_t n, float *scale, float *zero);
/* Counts the elements, of n from `first` on, that have the first one's scale and zero point, which it gives. */
int64_t prn_quant_run(const prn_quant *quant, int64_t first, int64_t n, float *scale, float *zero);

/* One scale and zero point per tensor, as the QLinear operators have them. */
typedef struct prn_quant_scalar {
    float scale, zero;
} prn_quant_scalar;
/* Checks that input `scale` is one float and input `zero`, if it is there, one of `types`. */
prony_status prn_quant_scalar_check(const prony_context *context, size_t scale, size_t zero, uint32_t types);
prn_quant_scalar prn_quant_scalar_get(const prony_context *context, size_t scale, size_t zero);

/* Scales or zero points of the rows or columns of a stack of matrices: one for all, one per line, or one per line of
 * each matrix. */
typedef struct prn_quant_lines {
    const prony_value *value; /* NULL: all 0 */
    int64_t step, matrix_step;
} prn_quant_lines;
/* Input `input` for the lines along dimension `dim` (one of the last two) of `shape`. */
prony_status prn_quant_lines_read(const prony_context *context, size_t input, uint32_t types, const prony_shape *shape,
                                  int dim, prn_quant_lines *out);
/* Entry of line `line` in matrix `matrix`. */
float prn_quant_lines_at(const prn_quant_lines *lines, int64_t matrix, int64_t line);

/* a / y and a b / y, as requantising multiplies by them: rounded as float32 rounds one operation after another, but
 * where a product would leave the range of normal numbers on the way. A result beyond the range is the largest number,
 * so that 0 times it is 0 and everything else saturates. */
float prn_quant_ratio(float a, float y);
float prn_quant_factor(float a, float b, float y);

/* Element `index` of a float tensor or a tensor of zero points, as a float. */
float prn_quant_get(const prony_value *value, int64_t index);

/* Codes [at, at + n) of y = v rounded half to even + zero, kept in range; floats are not rounded first. */
void prn_quantize_run(void *y, prony_dtype type, int64_t at, const float *v, const float *zero, int64_t n,
                      const prn_cast_rule *rule);
/* y = (codes [at, at + n) of x - zero) scale */
void prn_dequantize_run(float *y, const void *x, prony_dtype type, int64_t at, const float *zero, const float *scale,
                        int64_t n);
/* The same with one zero point and scale for all. */
void prn_dequantize_flat(float *y, const void *x, prony_dtype type, int64_t at, float zero, float scale, int64_t n);
/* The same for one element, in plain C; what the runs above are tested against. */
void prn_quantize_one(void *y, prony_dtype type, int64_t at, float v, float zero, const prn_cast_rule *rule);
float prn_dequantize_one(const void *x, prony_dtype type, int64_t at, float zero, float scale);

/* Scale and zero point with which DynamicQuantizeLinear stores float32 data as uint8, and the codes. The extremes are
 * widened to take 0 in; NaN is passed over. */
prn_quant_scalar prn_quantize_dynamic_parameters(int threads, const float *x, int64_t count);
void prn_quantize_dynamic_codes(int threads, const float *x, int64_t count, prn_quant_scalar quant, uint8_t *y);

/* Bounds of codes of an 8-bit type that attributes name: [low, high] within the type. An error if no code is left. */
prony_status prn_quant_bounds(const prony_context *context, prony_dtype type, int64_t low, int64_t high, int32_t *least,
                              int32_t *most);

/* A 256-entry table from codes to codes: y = requantized f(value); `map` NULL: identity. 8-bit types only. */
typedef void (*prn_quant_map_fn)(const void *argument, float *values, int64_t n);
void prn_quant_table_build(uint8_t table[256], prony_dtype type, prn_quant_scalar from, prony_dtype to_type,
                           prn_quant_scalar to, prn_quant_map_fn map, const void *argument);

#endif
