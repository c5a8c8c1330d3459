/* MT19937. State is the caller's; nothing here is shared. */
#include "ops/kernels/random/mersenne.h"

enum { MIDDLE = 397 };

void prn_mersenne_seed(prn_mersenne *stream, uint32_t seed)
{
    for (int i = 0; i < PRN_MERSENNE_WORDS; i++) {
        stream->word[i] = seed;
        seed = UINT32_C(1812433253) * (seed ^ seed >> 30) + (uint32_t)i + 1;
    }
    stream->next = PRN_MERSENNE_WORDS;
}

static void renew(prn_mersenne *stream)
{
    uint32_t *word = stream->word;
    for (int i = 0; i < PRN_MERSENNE_WORDS; i++) {
        const uint32_t joined =
            (word[i] & UINT32_C(0x80000000)) | (word[(i + 1) % PRN_MERSENNE_WORDS] & UINT32_C(0x7fffffff));
        word[i] = word[(i + MIDDLE) % PRN_MERSENNE_WORDS] ^ joined >> 1 ^ (joined & 1 ? UINT32_C(0x9908b0df) : 0);
    }
    stream->next = 0;
}

static uint32_t next_word(prn_mersenne *stream)
{
    if (stream->next == PRN_MERSENNE_WORDS) renew(stream);
    uint32_t x = stream->word[stream->next++];
    x ^= x >> 11;
    x ^= x << 7 & UINT32_C(0x9d2c5680);
    x ^= x << 15 & UINT32_C(0xefc60000);
    return x ^ x >> 18;
}

double prn_mersenne_uniform(prn_mersenne *stream)
{
    const uint32_t high = next_word(stream) >> 5, low = next_word(stream) >> 6;
    return ((double)high * 0x1p26 + (double)low) * 0x1p-53;
}
