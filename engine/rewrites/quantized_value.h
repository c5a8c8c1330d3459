/* What the rewrites from dequantized floats to 8-bit codes share: a value seen as the codes that it is made from, and a
 * QuantizeLinear as the bounds and the scale of what is stored. */
#ifndef PRN_ENGINE_REWRITES_QUANTIZED_VALUE_H
#define PRN_ENGINE_REWRITES_QUANTIZED_VALUE_H

#include "engine/rewrites/pass.h"

/* A float32 value that is (codes - zero) scale, with constant scales and zero points. */
typedef struct prn_quantized_value {
    prn_node_def *node; /* the DequantizeLinear; dead if it was evaluated at bind time */
    uint32_t codes, scale, zero;
    prony_dtype type;
    int64_t axis; /* of the scales; -1: one for all */
} prn_quantized_value;

/* false: it is made by something else, or by parameters that only a run knows. `types`: PRN_TYPE bits of the codes. */
bool prn_rewrite_read_quantized(prn_rewriter *r, uint32_t value, uint32_t types, prn_quantized_value *out);
/* The same if there is one scale. */
bool prn_rewrite_read_quantized_evenly(prn_rewriter *r, uint32_t value, prn_quantized_value *out);

/* A QuantizeLinear to 8 bits with one scale, and what it stores: clip(value), where Relu and Clip before it are bounds
 * of the codes. */
typedef struct prn_lowbit {
    prn_node_def *node;
    uint32_t value; /* before Relu or Clip */
    uint32_t scale, zero;
    prony_dtype type;
    int64_t low, high;   /* bounds of the codes */
    bool bounded;        /* they are not the type's */
    prn_pattern pattern; /* the Relu or Clip */
} prn_lowbit;

bool prn_rewrite_stored(prn_rewriter *r, prn_node_def *node, prn_lowbit *out);

/* Whether the node makes each element of one element of one operand, if its others are constants of one element. */
bool prn_rewrite_is_elementwise(const prn_node_def *node);

/* What all codes 0 to 255 of an evenly coded value stand for, read as the bytes that they are stored in; and the codes
 * of as many floats, as QuantizeLinear makes them. */
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

/* Copies those of the node's attributes that have one of the names, of which NULL is the last, and returns how many.
 * `to` has room for each name. Attributes that the node's operator does not know may mean something to the one it
 * becomes. */
size_t prn_node_pick_attributes(const prn_node_def *node, const char *const *names, prn_attr *to);

/* `keep` becomes `op` with these inputs and attributes, makes what `stored` made, and absorbs it, its pattern, and what
 * dequantized `coded` for nobody else. NULL op: keep stays what it is, with these inputs. */
PRN_MUST_USE prony_status prn_rewrite_is_quantized(prn_rewriter *r, prn_node_def *keep, const char *op,
                                                   const prn_attr *attributes, size_t attribute_count,
                                                   const uint32_t *inputs, uint32_t input_count,
                                                   const prn_lowbit *stored, const prn_quantized_value *coded,
                                                   size_t coded_count);

/* If nobody reads what dequantized the codes made any more, it is part of `keep`, which reads the codes. */
PRN_MUST_USE prony_status prn_rewrite_absorb_unread(prn_rewriter *r, prn_node_def *keep,
                                                    const prn_quantized_value *coded);

#endif
