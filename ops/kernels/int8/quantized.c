/* Quantization parameters and the conversion of runs of elements; see quantized.h. Invariant: a run and its elements
 * one by one give the same codes, wherever the run is cut. */
#include "ops/kernels/int8/quantized.h"
#include "ops/kernels/vector/number.h"

#include "base/cpu/simd.h"
#include "ops/kernels/vector/vec.h"

#include <float.h>
#include <math.h>

PRN_SIMD_PICK(prn_quant_simd, prn_quant_simd_, const prn_quant_simd *prn_quant_simd_table)

/* ---- parameters */

float prn_quant_get(const prony_value *value, int64_t index)
{
    static const prn_cast_rule rule = {.saturate = true};
    float x;
    if (value->dtype == PRONY_FLOAT32) return ((const float *)value->data)[index];
    prn_cast(&x, PRONY_FLOAT32, 0, value->data, value->dtype, index, 1, &rule);
    return x;
}

static prony_status quantized_refuse(const prony_context *context, size_t input, const char *what,
                                     const prony_shape *wanted)
{
    char came[PRN_SHAPE_TEXT_BYTES], text[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %s for %s", input,
                      prn_value_text(context->inputs[input], came), what, prn_shape_text(wanted, text));
}

static prony_status quantized_read_axis(const prony_context *context, const prony_shape *shape, size_t scale,
                                        int64_t axis, int64_t block, prn_quant *out)
{
    const prony_shape *given = &context->inputs[scale]->shape;
    if (!prn_axis_normalize(&axis, shape->rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis, shape->rank);
    }
    out->axis = shape->dim[axis];
    out->inner = prn_shape_count(shape, (int)axis + 1, shape->rank);
    if (block == 0) {
        if (given->rank != 1 || given->dim[0] != out->axis) {
            return quantized_refuse(context, scale, "one scale, or one per index on the axis,", shape);
        }
        return PRONY_OK;
    }
    out->block = block;
    out->blocks = out->axis / block + (out->axis % block != 0);
    prony_shape wanted = *shape;
    wanted.dim[axis] = out->blocks;
    if (!prn_shape_equal(&wanted, given)) return quantized_refuse(context, scale, "one scale per block", shape);
    return PRONY_OK;
}

prony_status prn_quant_read(const prony_context *context, const prony_shape *shape, size_t scale, size_t zero,
                            int64_t axis, int64_t block, prn_quant *out)
{
    *out = (prn_quant){.scale = prn_input(context, scale), .zero = prn_input(context, zero)};
    if (!out->scale) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu (the scale) is missing", scale);
    const int64_t count = prony_shape_numel(&out->scale->shape);
    out->uniform = count == 1 && (block == 0 || out->scale->shape.rank == 0);
    if (!out->uniform) PRN_TRY(quantized_read_axis(context, shape, scale, axis, block, out));
    if (out->zero && prony_shape_numel(&out->zero->shape) != count) {
        return quantized_refuse(context, zero, "as many zero points as scales", &out->scale->shape);
    }
    return PRONY_OK;
}

/* Which entry of scales and zero points element `first` has, and how many from it on have the same. */
static int64_t entry_of(const prn_quant *quant, int64_t first, int64_t *same)
{
    if (quant->uniform) {
        *same = INT64_MAX;
        return 0;
    }
    const int64_t at = first % quant->inner, line = first / quant->inner, a = line % quant->axis;
    if (quant->blocks == 0) {
        *same = quant->inner - at;
        return a;
    }
    /* Lines of one element each follow one another within a block. */
    const int64_t within = quant->block - a % quant->block, left = quant->axis - a;
    *same = quant->inner > 1 ? 1 : within < left ? within : left;
    return (line / quant->axis * quant->blocks + a / quant->block) * quant->inner + at;
}

int64_t prn_quant_run(const prn_quant *quant, int64_t first, int64_t n, float *scale, float *zero)
{
    int64_t same;
    const int64_t entry = entry_of(quant, first, &same);
    *scale = prn_quant_get(quant->scale, entry);
    *zero = quant->zero ? prn_quant_get(quant->zero, entry) : quant->no_zero;
    return same < n ? same : n;
}

/* Entries that follow one another. */
static void load_entries(const prony_value *value, int64_t first, int64_t n, float *to)
{
    if (prn_dtype_is_number(value->dtype)) {
        prn_convert(to, PRONY_FLOAT32, prn_block_at(value->data, value->dtype, first), value->dtype, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) to[i] = prn_quant_get(value, first + i);
}

/* Writes scale and zero point of elements [first, first + n), in runs that share an entry or whose entries follow one
 * another. */
void prn_quant_fill(const prn_quant *quant, int64_t first, int64_t n, float *scale, float *zero)
{
    while (n > 0) {
        int64_t same, run;
        const int64_t entry = entry_of(quant, first, &same);
        if (same == 1 && quant->inner == 1 && quant->blocks == 0)
            run = quant->axis - first % quant->axis; /* entries side by side, as many as the axis has */
        else
            run = quant->blocks > 0 && quant->inner > 1 ? quant->inner - first % quant->inner : 0;
        run = run < n ? run : n;
        if (run > 1) {
            load_entries(quant->scale, entry, run, scale);
            for (int64_t i = 0; i < run && !quant->zero; i++) zero[i] = quant->no_zero;
            if (quant->zero) load_entries(quant->zero, entry, run, zero);
        } else {
            float s, z;
            run = prn_quant_run(quant, first, n, &s, &z);
            for (int64_t i = 0; i < run; i++) scale[i] = s;
            for (int64_t i = 0; i < run; i++) zero[i] = z;
        }
        scale += run;
        zero += run;
        first += run;
        n -= run;
    }
}

prony_status prn_quant_scalar_check(const prony_context *context, size_t scale, size_t zero, uint32_t types)
{
    const prony_shape one = prn_shape_scalar();
    const prony_value *s = prn_input(context, scale), *z = prn_input(context, zero);
    if (!s) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu (a scale) is missing", scale);
    PRN_TRY(prn_check_type(context, scale, PRN_TYPES_SCALE));
    PRN_TRY(prn_check_type(context, zero, types));
    if (prony_shape_numel(&s->shape) != 1) return quantized_refuse(context, scale, "one scale", &one);
    if (z && prony_shape_numel(&z->shape) != 1) return quantized_refuse(context, zero, "one zero point", &one);
    return PRONY_OK;
}

prony_status prn_quant_bounds(const prony_context *context, prony_dtype type, int64_t low, int64_t high, int32_t *least,
                              int32_t *most)
{
    *least = type == PRONY_INT8 ? -128 : 0;
    *most = type == PRONY_INT8 ? 127 : 255;
    if (low > high || low > *most || high < *least)
        return prony_fail(context, PRONY_INVALID_MODEL, "the bounds %lld and %lld leave no code of type %s",
                          (long long)low, (long long)high, prony_dtype_name(type));
    if (low > *least) *least = (int32_t)low;
    if (high < *most) *most = (int32_t)high;
    return PRONY_OK;
}

prn_quant_scalar prn_quant_scalar_get(const prony_context *context, size_t scale, size_t zero)
{
    const prony_value *z = prn_input(context, zero);
    return (prn_quant_scalar){prn_quant_get(context->inputs[scale], 0), z ? prn_quant_get(z, 0) : 0.0f};
}

prony_status prn_quant_lines_read(const prony_context *context, size_t input, uint32_t types, const prony_shape *shape,
                                  int dim, prn_quant_lines *out)
{
    const prony_value *value = prn_input(context, input);
    *out = (prn_quant_lines){.value = value};
    if (!value) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, types));
    if (prony_shape_numel(&value->shape) == 1) return PRONY_OK;
    out->step = 1;
    if (value->shape.rank == 1 && value->shape.dim[0] == shape->dim[dim]) return PRONY_OK;
    prony_shape wanted = *shape;
    wanted.dim[dim == shape->rank - 1 ? shape->rank - 2 : shape->rank - 1] = 1;
    if (shape->rank < 2 || !prn_shape_equal(&wanted, &value->shape)) {
        return quantized_refuse(context, input, "one entry, or one per row or column,", shape);
    }
    out->matrix_step = shape->dim[dim];
    return PRONY_OK;
}

float prn_quant_ratio(float a, float y)
{
    const float ratio = a / y;
    return isinf(ratio) && isfinite(a) ? copysignf(FLT_MAX, ratio) : ratio;
}

float prn_quant_factor(float a, float b, float y)
{
    const float product = a * b;
    if (isnormal(product) || !isfinite(a) || !isfinite(b)) return prn_quant_ratio(product, y);
    const float factor = (float)((double)a * (double)b / (double)y);
    return isinf(factor) ? copysignf(FLT_MAX, factor) : factor;
}

float prn_quant_lines_at(const prn_quant_lines *lines, int64_t matrix, int64_t line)
{
    return lines->value ? prn_quant_get(lines->value, matrix * lines->matrix_step + line * lines->step) : 0.0f;
}

/* ---- codes */

static void code_range(prony_dtype type, float *low, float *high)
{
    const unsigned bits = (unsigned)prn_dtype_bits(type);
    const bool is_signed = PRN_TYPE(type) & (PRN_TYPES_SIGNED | PRN_TYPE(PRONY_INT4) | PRN_TYPE(PRONY_INT2));
    *low = is_signed ? -(float)(1u << (bits - 1)) : 0.0f;
    *high = (float)((1u << (is_signed ? bits - 1 : bits)) - 1);
}

/* The code of an integer type of at most 16 bits. */
static int32_t quantized_code_of(float v, float zero, float low, float high)
{
    const double code = rint((double)v) + (double)zero;
    return (int32_t)(code > (double)low ? (code < (double)high ? code : (double)high) : (double)low);
}

void prn_quantize_one(void *y, prony_dtype type, int64_t at, float v, float zero, const prn_cast_rule *rule)
{
    if (prn_dtype_is_float(type)) {
        const float shifted = v + zero;
        prn_cast(y, type, at, &shifted, PRONY_FLOAT32, 0, 1, rule);
        return;
    }
    float low, high;
    code_range(type, &low, &high);
    const int32_t code = quantized_code_of(v, zero, low, high);
    prn_cast(y, type, at, &code, PRONY_INT32, 0, 1, rule);
}

/* Codes of n scaled values plus their zero points: 8-bit types at once, others in chunks of floats or whole numbers. */
void prn_quantize_run(void *y, prony_dtype type, int64_t at, const float *v, const float *zero, int64_t n,
                      const prn_cast_rule *rule)
{
    const prn_quant_simd *simd = prn_quant_simd_table();
    union {
        float floats[PRN_QUANT_CHUNK];
        int32_t codes[PRN_QUANT_CHUNK];
    } room;
    if (type == PRONY_UINT8) {
        simd->quantize_u8((uint8_t *)y + at, v, zero, n);
        return;
    }
    if (type == PRONY_INT8) {
        simd->quantize_i8((int8_t *)y + at, v, zero, n);
        return;
    }
    float low = 0, high = 0;
    const bool is_float = prn_dtype_is_float(type);
    if (!is_float) code_range(type, &low, &high);
    for (int64_t done = 0; done < n; done += PRN_QUANT_CHUNK) {
        const int64_t count = n - done < PRN_QUANT_CHUNK ? n - done : PRN_QUANT_CHUNK;
        if (is_float) {
            prn_vec()->vv[PRN_BINARY_ADD](room.floats, v + done, zero + done, count);
        } else {
            for (int64_t i = 0; i < count; i++)
                room.codes[i] = quantized_code_of(v[done + i], zero[done + i], low, high);
        }
        prn_cast(y, type, at + done, &room, is_float ? PRONY_FLOAT32 : PRONY_INT32, 0, count, rule);
    }
}

float prn_dequantize_one(const void *x, prony_dtype type, int64_t at, float zero, float scale)
{
    static const prn_cast_rule rule = {.saturate = true};
    double code;
    prn_cast(&code, PRONY_FLOAT64, 0, x, type, at, 1, &rule);
    return (float)(code - (double)zero) * scale;
}

void prn_dequantize_flat(float *y, const void *x, prony_dtype type, int64_t at, float zero, float scale, int64_t n)
{
    const prn_quant_simd *simd = prn_quant_simd_table();
    if (type == PRONY_UINT8) {
        simd->dequantize_flat_u8(y, (const uint8_t *)x + at, zero, scale, n);
        return;
    }
    if (type == PRONY_INT8) {
        simd->dequantize_flat_i8(y, (const int8_t *)x + at, zero, scale, n);
        return;
    }
    float scales[PRN_QUANT_CHUNK], zeros[PRN_QUANT_CHUNK];
    for (int64_t i = 0; i < PRN_QUANT_CHUNK && i < n; i++) scales[i] = scale;
    for (int64_t i = 0; i < PRN_QUANT_CHUNK && i < n; i++) zeros[i] = zero;
    for (int64_t done = 0, count; done < n; done += count) {
        count = n - done < PRN_QUANT_CHUNK ? n - done : PRN_QUANT_CHUNK;
        prn_dequantize_run(y + done, x, type, at + done, zeros, scales, count);
    }
}

void prn_dequantize_run(float *y, const void *x, prony_dtype type, int64_t at, const float *zero, const float *scale,
                        int64_t n)
{
    static const prn_cast_rule rule = {.saturate = true};
    const prn_quant_simd *simd = prn_quant_simd_table();
    if (type == PRONY_UINT8) {
        simd->dequantize_u8(y, (const uint8_t *)x + at, zero, scale, n);
        return;
    }
    if (type == PRONY_INT8) {
        simd->dequantize_i8(y, (const int8_t *)x + at, zero, scale, n);
        return;
    }
    double codes[PRN_QUANT_CHUNK];
    for (int64_t done = 0; done < n; done += PRN_QUANT_CHUNK) {
        const int64_t count = n - done < PRN_QUANT_CHUNK ? n - done : PRN_QUANT_CHUNK;
        prn_cast(codes, PRONY_FLOAT64, 0, x, type, at + done, count, &rule);
        for (int64_t i = 0; i < count; i++) y[done + i] = (float)(codes[i] - (double)zero[done + i]) * scale[done + i];
    }
}

/* ---- tables of 8-bit codes */

void prn_quant_table_build(uint8_t table[256], prony_dtype type, prn_quant_scalar from, prony_dtype to_type,
                           prn_quant_scalar to, prn_quant_map_fn map, const void *argument)
{
    static const prn_cast_rule rule = {.saturate = true};
    uint8_t codes[256];
    float values[256], scale[256], zero[256];
    for (int i = 0; i < 256; i++) {
        codes[i] = (uint8_t)i;
        scale[i] = from.scale;
        zero[i] = from.zero;
    }
    prn_dequantize_run(values, codes, type, 0, zero, scale, 256);
    if (map) map(argument, values, 256);
    for (int i = 0; i < 256; i++) {
        values[i] /= to.scale;
        zero[i] = to.zero;
    }
    prn_quantize_run(table, to_type, 0, values, zero, 256, &rule);
}
