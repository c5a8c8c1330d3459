/* SipHash of J.-P. Aumasson and D. J. Bernstein with one round a word and three at the end. Each piece of bytes ends
 * with a word with its length, so that different sequences of pieces have different hashes. */
#include "base/hash/keyed_hash.h"

#include "base/os/clock.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static uint64_t key[2];
static pthread_once_t drawn = PTHREAD_ONCE_INIT;

/* Without the system's random numbers (an old kernel, a sandbox) the key comes from the clock, the process and an
 * address. */
static void keyed_hash_draw_key(void)
{
    if (getrandom(key, sizeof key, GRND_NONBLOCK) == (ssize_t)sizeof key) return;
    key[0] = (uint64_t)prn_now_ns() * UINT64_C(0x9e3779b97f4a7c15);
    key[1] = (uint64_t)(uintptr_t)&key ^ (uint64_t)getpid() << 32;
}

static inline uint64_t keyed_hash_rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = keyed_hash_rotate(v[1], 13) ^ v[0];
    v[3] = keyed_hash_rotate(v[3], 16) ^ v[2];
    v[0] = keyed_hash_rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = keyed_hash_rotate(v[1], 17) ^ v[2];
    v[3] = keyed_hash_rotate(v[3], 21) ^ v[0];
    v[2] = keyed_hash_rotate(v[2], 32);
}

void prn_keyed_hash_init(prn_keyed_hash *hash)
{
    pthread_once(&drawn, keyed_hash_draw_key);
    /* the four constants are SipHash's */
    *hash = (prn_keyed_hash){{key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                              key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)}};
}

void prn_keyed_hash_word(prn_keyed_hash *hash, uint64_t word)
{
    hash->v[3] ^= word;
    sip_round(hash->v);
    hash->v[0] ^= word;
}

void prn_keyed_hash_bytes(prn_keyed_hash *hash, const void *data, size_t size)
{
    const uint8_t *p = data;
    uint64_t word;
    for (size_t left = size; left >= sizeof word; left -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        prn_keyed_hash_word(hash, word);
    }
    word = 0;
    if (size % sizeof word) memcpy(&word, p, size % sizeof word);
    prn_keyed_hash_word(hash, word ^ (uint64_t)size << 56);
}

void prn_keyed_hash_text(prn_keyed_hash *hash, const char *text)
{
    prn_keyed_hash_bytes(hash, text, strlen(text));
}

uint64_t prn_keyed_hash_end(prn_keyed_hash *hash)
{
    hash->v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(hash->v);
    return hash->v[0] ^ hash->v[1] ^ hash->v[2] ^ hash->v[3];
}

uint64_t prn_hash_bytes(const void *data, size_t size)
{
    prn_keyed_hash hash;
    prn_keyed_hash_init(&hash);
    prn_keyed_hash_bytes(&hash, data, size);
    return prn_keyed_hash_end(&hash);
}

uint64_t prn_hash_text(const char *text)
{
    return prn_hash_bytes(text, strlen(text));
}
