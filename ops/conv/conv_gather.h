/* The elements that successive output positions of a convolution meet at one tap of one channel. */
#ifndef PRN_OPS_CONV_CONV_GATHER_H
#define PRN_OPS_CONV_CONV_GATHER_H

#include "ops/kernels/window/window.h"

#include <string.h>

/* Defines `name(window, x, tap, begin, count, line)` for elements of a type: what output positions [begin, begin +
 * count) meet at tap (kz, ky, kx) of the channel x; zeros where the window leaves it. */
#define PRN_CONV_GATHER(name, type)                                                                                    \
    static void name(const prn_window *window, const type *x, const int64_t tap[PRN_WINDOW_AXES], int64_t begin,       \
                     int64_t count, type *line)                                                                        \
    {                                                                                                                  \
        int64_t width = window->out[2], stride = window->stride[2], first, last;                                       \
        int64_t shift = tap[2] * window->dilation[2] - window->pad_begin[2];                                           \
        prn_window_outputs(window, tap[2], &first, &last);                                                             \
        while (count > 0) {                                                                                            \
            int64_t row = begin / width, from = begin % width;                                                         \
            int64_t to = from + count < width ? from + count : width;                                                  \
            int64_t start = prn_window_row(window, row, tap[0], tap[1]);                                               \
            const type *source = x + start;                                                                            \
            int64_t lo = first > from ? first : from, hi = last < to ? last : to;                                      \
            if (start < 0 || lo >= hi) {                                                                               \
                memset(line, 0, (size_t)(to - from) * sizeof *line);                                                   \
            } else {                                                                                                   \
                memset(line, 0, (size_t)(lo - from) * sizeof *line);                                                   \
                if (stride == 1) {                                                                                     \
                    memcpy(line + lo - from, source + lo + shift, (size_t)(hi - lo) * sizeof *line);                   \
                } else {                                                                                               \
                    for (int64_t i = lo; i < hi; i++) line[i - from] = source[i * stride + shift];                     \
                }                                                                                                      \
                memset(line + hi - from, 0, (size_t)(to - hi) * sizeof *line);                                         \
            }                                                                                                          \
            line += to - from;                                                                                         \
            begin += to - from;                                                                                        \
            count -= to - from;                                                                                        \
        }                                                                                                              \
    }

#endif
