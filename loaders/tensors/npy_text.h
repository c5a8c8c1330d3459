/* Text in .npy files: NumPy's <U, code points of 32 bits, and |S, bytes. Both fill every element up with zeros to the
 * width of the longest one. */
#ifndef PRN_LOADERS_TENSORS_NPY_TEXT_H
#define PRN_LOADERS_TENSORS_NPY_TEXT_H

#include "base/os/file.h"
#include "base/status.h"

typedef struct prn_npy_text {
    char letter;  /* 'U' or 'S' */
    size_t width; /* characters of an element */
} prn_npy_text;

/* Makes *out a string tensor in UTF-8 from the elements, in their order in the file. A code point from U+DC80 to U+DCFF
 * is the byte that Python's surrogateescape put there. */
PRN_MUST_USE prony_status prn_npy_text_parse(prony_value *out, prn_npy_text type, const prony_shape *shape,
                                             const uint8_t *data, size_t size, prony_error *error);
/* The most code points of an element, at least 1. PRONY_UNSUPPORTED: an element ends with NUL, which NumPy drops. */
PRN_MUST_USE prony_status prn_npy_text_width(size_t *width, const prony_value *value, prony_error *error);
/* Writes the elements as <U of that width; the writer remembers a failure. */
void prn_npy_text_write(prn_file_writer *writer, const prony_value *value, size_t width);

#endif
