/* The order of a tensor's elements in memory. The shape is always the logical one ([N, C, spatial …]).
 *
 *   PRN_PLAIN      row-major as ONNX has it
 *   PRN_NHWC       [N, spatial …, C]
 *   PRN_BLOCKED4   [N, ceil(C/4), spatial …, 4]      (NC4HW4 of mobile engines)
 *   PRN_BLOCKED8   [N, ceil(C/8), spatial …, 8]      (oneDNN nChw8c)
 *   PRN_BLOCKED16  [N, ceil(C/16), spatial …, 16]    (oneDNN nChw16c)
 *
 * Invariant: lanes beyond C in the last block are zero. Every writer of a blocked tensor keeps it so.
 */
#ifndef PRN_OPS_LAYOUT_H
#define PRN_OPS_LAYOUT_H

#include "prony.h"

enum { PRN_LAYOUT_MOST_BLOCK = 16 }; /* channels of a block, of those below */
typedef enum prn_layout {
    PRN_PLAIN = 0,
    PRN_NHWC = 1,
    PRN_BLOCKED4 = 4,
    PRN_BLOCKED8 = 8,
    PRN_BLOCKED16 = 16
} prn_layout;

const char *prn_layout_name(prn_layout layout);
/* The blocked layout of this processor's kernels: a block fills one of their vectors. */
prn_layout prn_layout_blocked(void);
/* Channels per block: 4, 8, 16, or 0 for layouts without blocks. */
static inline int64_t prn_layout_block(prn_layout layout)
{
    return layout >= PRN_BLOCKED4 ? (int64_t)layout : 0;
}
/* Elements in memory, padding lanes included; -1 on overflow. */
int64_t prn_layout_elements(const prony_shape *shape, prn_layout layout);
/* Bytes of the value in its own layout; SIZE_MAX if unknown or too large. */
size_t prn_layout_bytes(const prony_value *value);
/* True if the same bytes read the same under both layouts (spatial size 1 and full blocks, or C = 1 for NHWC, …). */
bool prn_layout_same_bytes(const prony_shape *shape, prn_layout a, prn_layout b);

/* The dims of a value as they lie in memory: PRN_NHWC has the channels last, blocked layouts have one more axis. */
prony_shape prn_lowbit_shape(const prony_shape *shape, prn_layout layout);
/* The axis of the stored shape that holds logical axis `axis` (blocked: the axis of blocks for the channels). */
int prn_lowbit_axis(int rank, prn_layout layout, int axis);
/* True if tensors of this rank can be joined or cut in this layout, as far as that does not depend on the extents. */
bool prn_layout_joins(int rank, prn_layout layout);

#endif
