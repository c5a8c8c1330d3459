/* SHA-256 (FIPS 180-4), for the hashes of model and outputs in reports. */
#ifndef PRN_BASE_HASH_SHA256_H
#define PRN_BASE_HASH_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct prn_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
} prn_sha256;

void prn_sha256_init(prn_sha256 *hash);
void prn_sha256_add(prn_sha256 *hash, const void *data, size_t size);
/* 64 lower-case hexadecimal digits and a NUL. */
void prn_sha256_text(prn_sha256 *hash, char text[65]);

#endif
