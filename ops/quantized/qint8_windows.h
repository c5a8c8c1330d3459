/* The windows of a convolution of 8-bit codes as rows of a product, codes with the channels last: taps in order, of
 * each the channels of the group. A tap outside of the image is as many zero points. */
#ifndef PRN_OPS_QUANTIZED_QINT8_WINDOWS_H
#define PRN_OPS_QUANTIZED_QINT8_WINDOWS_H

#include "ops/kernels/int8/int8_gemm.h"
#include "ops/kernels/window/conv_problem.h"

typedef struct prn_qint8_windows {
    const prn_conv *conv;
    const prn_qint8_dot *dot;
    const uint8_t *x;
    uint8_t flip, zero;              /* of the input's codes; the zero point once flipped */
    bool together;                   /* a kernel's row of taps lies side by side in the input */
    int64_t whole_first, whole_last; /* positions of a row at which all of these taps are inside */
} prn_qint8_windows;

/* Windows may begin before or behind the image: pads of less than 0 shift them. */
prn_qint8_windows prn_qint8_windows_make(const prn_conv *conv, const void *x, uint8_t flip, uint8_t zero);
/* True if the input's positions, where they lie, are the rows. */
bool prn_qint8_windows_lie(const prn_qint8_windows *windows);
/* prn_qint8_rows_fn; the argument is a prn_qint8_windows. */
void prn_qint8_windows_fetch(const void *argument, int64_t group, int64_t row, int64_t rows, uint8_t *to,
                             int64_t to_row);

#endif
