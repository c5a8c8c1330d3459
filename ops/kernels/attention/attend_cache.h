/* Blocks of a cache of keys or values that is kept in fewer bits: [rows][size] of one head.
 *
 *   float16: rows of halves, overflow at the largest one
 *   int8:    rows of codes of -127 to 127, then (at a multiple of 4 bytes) one float32 scale a row; an element is code
 *            times scale, and a row's scale is its largest magnitude over 127 */
#ifndef PRN_OPS_KERNELS_ATTENTION_ATTEND_CACHE_H
#define PRN_OPS_KERNELS_ATTENTION_ATTEND_CACHE_H

#include "ops/op.h"

typedef enum prn_cache_type { PRN_CACHE_FLOAT32, PRN_CACHE_FLOAT16, PRN_CACHE_INT8 } prn_cache_type;

/* Of one row, its scale included. */
static inline size_t prn_cache_row_bytes(prn_cache_type type, int64_t size)
{
    return type == PRN_CACHE_INT8      ? (size_t)size + sizeof(float)
           : type == PRN_CACHE_FLOAT16 ? (size_t)size * sizeof(uint16_t)
                                       : (size_t)size * sizeof(float);
}

/* Of a block with room for `rows` rows: a multiple of 4. */
static inline size_t prn_cache_block_bytes(prn_cache_type type, int64_t rows, int64_t size)
{
    const size_t codes = ((size_t)rows * (size_t)size + 3) / 4 * 4;
    return type == PRN_CACHE_INT8 ? codes + (size_t)rows * sizeof(float)
                                  : (prn_cache_row_bytes(type, size) * (size_t)rows + 3) / 4 * 4;
}

/* Writes `count` dense rows from row `first` on into a block with room for `rows`. */
void prn_cache_store(prn_cache_type type, void *block, int64_t rows, int64_t size, int64_t first, int64_t count,
                     const float *from);
/* Reads `count` rows from row `first` on as dense float32. */
void prn_cache_load(prn_cache_type type, const void *block, int64_t rows, int64_t size, int64_t first, int64_t count,
                    float *to);

#endif
