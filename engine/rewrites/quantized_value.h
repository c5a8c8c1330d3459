/* Shared by the rewrites from dequantized floats to 8-bit quantised values: a float value described by its quantised
 * source, and a QuantizeLinear by the bounds and scale of its result. */
#ifndef PRN_ENGINE_REWRITES_QUANTIZED_VALUE_H
#define PRN_ENGINE_REWRITES_QUANTIZED_VALUE_H

#include "engine/rewrites/pass.h"

/* A float32 value that is (codes - zero) scale, with constant scales and zero points. */
typedef struct prn_quantized_value {
    prn_node_def *node; /* the DequantizeLinear; dead if it was evaluated at bind time */
    uint32_t codes, scale, zero;
    prony_dtype type;
    int64_t axis; /* of the scales; -1: one scale for all */
} prn_quantized_value;

/* false: another operator makes it, or its parameters are known at run time only. `types`: PRN_TYPE bits of the
 * codes. */
bool prn_rewrite_read_quantized(prn_rewriter *r, uint32_t value, uint32_t types, prn_quantized_value *out);
/* The same if there is one scale. */
bool prn_rewrite_read_quantized_evenly(prn_rewriter *r, uint32_t value, prn_quantized_value *out);

/* A QuantizeLinear to 8 bits with one scale. It stores clip(value): a Relu or Clip before it becomes bounds of the
 * codes. */
typedef struct prn_lowbit {
    prn_node_def *node;
    uint32_t value; /* before Relu or Clip */
    uint32_t scale, zero;
    prony_dtype type;
    int64_t low, high;   /* bounds of the codes */
    bool bounded;        /* tighter than the type's bounds */
    prn_pattern pattern; /* the Relu or Clip */
} prn_lowbit;

bool prn_rewrite_stored(prn_rewriter *r, prn_node_def *node, prn_lowbit *out);

/* true: each output element depends on one element of one operand; the other operands are constants of one element. */
bool prn_rewrite_is_elementwise(const prn_node_def *node);

/* decode: the floats of all 256 codes of a value with one scale, by stored byte. encode: the codes of 256 floats, as
 * QuantizeLinear makes them. */
void prn_rewrite_decode_all(const prn_rewriter *r, const prn_quantized_value *coded, float values[256]);
void prn_rewrite_encode_all(const prn_rewriter *r, const prn_lowbit *stored, const float values[256],
                            uint8_t codes[256]);

/* true: both pairs are constants of one element, and each code stands for the same number in both. An absent zero point
 * is 0. */
bool prn_rewrite_same_quantization(const prn_rewriter *r, uint32_t scale_a, uint32_t zero_a, uint32_t scale_b,
                                   uint32_t zero_b);

/* true: sums of codes times the scale `a`, and times each of the scales `b` (PRN_NO_VALUE: alone), stay within the
 * normal numbers of float32, also when divided by the scale `y`. false: floats may be infinite or NaN where codes are
 * not. The scales are constants; `a` and `y` have one element. */
bool prn_rewrite_scales_fit(const prn_rewriter *r, uint32_t a, uint32_t b, uint32_t y);

/* The zero point, or a new constant 0 of the type if it is absent. */
PRN_MUST_USE prony_status prn_quantized_zero(prn_rewriter *r, uint32_t zero, prony_dtype type, uint32_t *out);

/* Copies the node's attributes with one of the names (NULL ends the list), and returns how many. `to` has room for each
 * name. Other attributes, unknown to the node's operator, could have a meaning for the operator that it becomes. */
size_t prn_node_pick_attributes(const prn_node_def *node, const char *const *names, prn_attr *to);

/* `keep` becomes `op` with these inputs and attributes and computes the output of `stored`. It absorbs `stored`, its
 * pattern, and the DequantizeLinear of `coded` without other readers. NULL op: `keep` keeps its operator, with these
 * inputs. */
PRN_MUST_USE prony_status prn_rewrite_is_quantized(prn_rewriter *r, prn_node_def *keep, const char *op,
                                                   const prn_attr *attributes, size_t attribute_count,
                                                   const uint32_t *inputs, uint32_t input_count,
                                                   const prn_lowbit *stored, const prn_quantized_value *coded,
                                                   size_t coded_count);

/* Absorbs the DequantizeLinear nodes without readers into `keep`, which reads the codes. */
PRN_MUST_USE prony_status prn_rewrite_absorb_unread(prn_rewriter *r, prn_node_def *keep,
                                                    const prn_quantized_value *coded);

#endif
