/* Deflate and CRC-32, through zlib where the build has it. */
#ifndef PRN_LOADERS_TENSORS_INFLATE_H
#define PRN_LOADERS_TENSORS_INFLATE_H

#include "base/status.h"

/* No deflate stream gives more than this many bytes per byte of its own. */
#define PRN_INFLATE_RATIO 1032

/* Fills `out` from a raw deflate stream that must give exactly `out_size` bytes. PRONY_UNSUPPORTED without zlib. */
PRN_MUST_USE prony_status prn_inflate(uint8_t *out, size_t out_size, const uint8_t *in, size_t in_size,
                                      prony_error *error);
/* true: the CRC-32 matches; always true without zlib. */
bool prn_crc_matches(const uint8_t *data, size_t size, uint32_t crc);

#endif
