/* SHA-256 as FIPS 180-4 section 6.2 states it, with the processor's instructions for it where there are any. The state
 * is the caller's; nothing is shared. */
#include "base/hash/sha256.h"
#include "base/cpu/isa.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t sha256_rotate(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

/* Adds one 64-byte block to the state: the compression function of FIPS 180-4, with v[0..7] as its a..h. */
static void sha256_add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++) {
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 |
               block[4 * t + 3];
    }
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = sha256_rotate(w[t - 15], 7) ^ sha256_rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = sha256_rotate(w[t - 2], 17) ^ sha256_rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    uint32_t v[8];
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t s1 = sha256_rotate(v[4], 6) ^ sha256_rotate(v[4], 11) ^ sha256_rotate(v[4], 25);
        uint32_t choose = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choose + round_constant[t] + w[t];
        uint32_t s0 = sha256_rotate(v[0], 2) ^ sha256_rotate(v[0], 13) ^ sha256_rotate(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

#if defined(__x86_64__)
/* The instructions keep the state as the pairs (a, b, e, f) and (c, d, g, h), highest lane first, and do two rounds
 * each; message words t to t+3 stand in one register. */
__attribute__((target("sha,sse4.1"))) static void add_blocks_with_instructions(uint32_t state[8], const uint8_t *at,
                                                                               size_t blocks)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; blocks > 0; blocks--, at += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int t = 0; t < 4; t++)
            w[t] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(at + 16 * t)), big_endian);
        for (int t = 0; t < 16; t++) {
            if (t >= 4) {
                __m128i seven_back = _mm_alignr_epi8(w[(t + 3) % 4], w[(t + 2) % 4], 4);
                __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[t % 4], w[(t + 1) % 4]), seven_back);
                w[t % 4] = _mm_sha256msg2_epu32(sum, w[(t + 3) % 4]);
            }
            __m128i k = _mm_loadu_si128((const __m128i *)(round_constant + 4 * t));
            __m128i wk = _mm_add_epi32(w[t % 4], k);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#elif defined(__aarch64__)
/* The state stands as it lies in memory: a to d in one register, e to h in the other; each instruction does four
 * rounds. */
__attribute__((target("+crypto"))) static void add_blocks_with_instructions(uint32_t state[8], const uint8_t *at,
                                                                            size_t blocks)
{
    uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
    for (; blocks > 0; blocks--, at += 64) {
        const uint32x4_t abcd_before = abcd, efgh_before = efgh;
        uint32x4_t w[4];
        for (int t = 0; t < 4; t++) w[t] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(at + 16 * t)));
        for (int t = 0; t < 16; t++) {
            if (t >= 4) {
                const uint32x4_t sum = vsha256su0q_u32(w[t % 4], w[(t + 1) % 4]);
                w[t % 4] = vsha256su1q_u32(sum, w[(t + 2) % 4], w[(t + 3) % 4]);
            }
            const uint32x4_t wk = vaddq_u32(w[t % 4], vld1q_u32(round_constant + 4 * t)), former = abcd;
            abcd = vsha256hq_u32(abcd, efgh, wk);
            efgh = vsha256h2q_u32(efgh, former, wk);
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
}
#endif

static void add_blocks(uint32_t state[8], const uint8_t *at, size_t blocks)
{
#if defined(__x86_64__) || defined(__aarch64__)
    if (prn_isa_has(PRN_HAS_SHA)) {
        add_blocks_with_instructions(state, at, blocks);
        return;
    }
#endif
    for (; blocks > 0; blocks--, at += 64) sha256_add_block(state, at);
}

void prn_sha256_init(prn_sha256 *hash)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof start);
    hash->bytes = 0;
}

void prn_sha256_add(prn_sha256 *hash, const void *data, size_t size)
{
    const uint8_t *at = data;
    size_t held = hash->bytes % 64;
    hash->bytes += size;
    if (held) {
        size_t part = size < 64 - held ? size : 64 - held;
        if (part) memcpy(hash->block + held, at, part);
        at += part;
        size -= part;
        if (held + part < 64) return;
        add_blocks(hash->state, hash->block, 1);
    }
    add_blocks(hash->state, at, size / 64);
    if (size % 64) memcpy(hash->block, at + size / 64 * 64, size % 64);
}

void prn_sha256_text(prn_sha256 *hash, char text[65])
{
    uint64_t bits = hash->bytes * 8;
    size_t held = hash->bytes % 64;
    uint8_t tail[128] = {0x80};
    size_t zeros = held < 56 ? 56 - held : 120 - held; /* the 0x80 included */
    for (size_t i = 0; i < 8; i++) tail[zeros + i] = (uint8_t)(bits >> (56 - 8 * i));
    prn_sha256_add(hash, tail, zeros + 8);
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 64; i++) text[i] = digits[hash->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    text[64] = '\0';
}
