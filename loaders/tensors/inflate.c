/* The sole user of zlib. Its state lives as long as one call, and comes from base/memory/alloc.h. */
#include "loaders/tensors/inflate.h"

#ifdef PRN_HAVE_ZLIB

#include "base/memory/alloc.h"

#include <zlib.h>

/* zlib counts bytes in unsigned ints. */
#define MOST_AT_ONCE ((size_t)1 << 30)

static void *zlib_alloc(void *opaque, unsigned count, unsigned size)
{
    (void)opaque;
    return prn_calloc(count, size);
}

static void zlib_free(void *opaque, void *block)
{
    (void)opaque;
    prn_free(block);
}

static unsigned inflate_step_of(size_t left)
{
    return (unsigned)(left < MOST_AT_ONCE ? left : MOST_AT_ONCE);
}

/* Inflates in pieces that zlib's counters can hold. One byte beyond `out_size` detects a longer stream. */
prony_status prn_inflate(uint8_t *out, size_t out_size, const uint8_t *in, size_t in_size, prony_error *error)
{
    uint8_t beyond; /* receives a byte if the stream is longer than declared */
    z_stream stream = {.zalloc = zlib_alloc, .zfree = zlib_free};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return prn_no_memory(error);
    size_t taken = 0, given = 0;
    int code = Z_OK;
    while (code == Z_OK) {
        unsigned in_step = inflate_step_of(in_size - taken), out_step = inflate_step_of(out_size - given);
        bool full = out_step == 0;
        stream.next_in = (Bytef *)(uintptr_t)(in + taken);
        stream.avail_in = in_step;
        stream.next_out = full ? &beyond : out + given;
        stream.avail_out = full ? 1 : out_step;
        code = inflate(&stream, Z_NO_FLUSH);
        taken += in_step - stream.avail_in;
        if (full && stream.avail_out == 0) {
            given++;
            break;
        }
        if (!full) given += out_step - stream.avail_out;
    }
    inflateEnd(&stream);
    if (code == Z_STREAM_END && given == out_size) return PRONY_OK;
    if (code == Z_MEM_ERROR) return prn_no_memory(error);
    if (given > out_size || code == Z_STREAM_END)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "compressed data does not have the declared %zu bytes",
                        out_size);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "damaged compressed data after byte %zu of %zu", taken, in_size);
}

bool prn_crc_matches(const uint8_t *data, size_t size, uint32_t crc)
{
    uLong sum = crc32(0, NULL, 0);
    for (size_t at = 0; at < size;) {
        unsigned step = inflate_step_of(size - at);
        sum = crc32(sum, data + at, step);
        at += step;
    }
    return sum == crc;
}

#else

prony_status prn_inflate(uint8_t *out, size_t out_size, const uint8_t *in, size_t in_size, prony_error *error)
{
    (void)out, (void)out_size, (void)in, (void)in_size;
    return prn_fail(error, PRONY_UNSUPPORTED,
                    "it is compressed, but this build has no zlib (PRONY_ZLIB); numpy.savez does not compress");
}

bool prn_crc_matches(const uint8_t *data, size_t size, uint32_t crc)
{
    (void)data, (void)size, (void)crc;
    return true;
}

#endif
