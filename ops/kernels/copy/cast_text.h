/* Numbers as text and back, for Cast. The text does not depend on the program's locale. */
#ifndef PRN_OPS_KERNELS_COPY_CAST_TEXT_H
#define PRN_OPS_KERNELS_COPY_CAST_TEXT_H

#include "ops/kernels/lowbit/narrow_types.h"
#include "prony_operator.h"

enum { PRN_NUMBER_TEXT_BYTES = 48 };

/* Writes element `index` of any castable type: integers in decimal, bool as True or False, floats with the fewest
 * digits that read back as the same number (plain between 1e-4 and 1e16), NaN, INF and -INF. Returns the length; the
 * text is NUL-terminated. */
size_t prn_number_to_text(char text[PRN_NUMBER_TEXT_BYTES], const void *data, prony_dtype type, int64_t index);

/* Reads a plain or scientific number, or inf, nan, true and false in any case, blanks around it allowed, into element
 * `index`; integers cut fractions off. false: not a number, or beyond a 64-bit integer. */
bool prn_text_to_number(const prony_string *text, void *data, prony_dtype type, int64_t index,
                        const prn_cast_rule *rule);

/* Converts all elements of `in` to `out`'s type, to and from text too; `out` has at least as many. Text that is no
 * number is PRONY_OUT_OF_RANGE. */
prony_status prn_cast_value(const prony_context *context, const prony_value *in, const prony_value *out,
                            const prn_cast_rule *rule);

#endif
