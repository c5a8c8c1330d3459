/* Hashes of names and bytes that come from files: SipHash-1-3 under a key that each process draws for itself.
 *
 * Tables need hashes that spread. A file can choose names and constants that an unkeyed hash puts into one slot, at
 * quadratic cost; an unknown key prevents this. Hashes differ from process to process: they index tables, and nothing
 * that is written or compared may depend on them. */
#ifndef PRN_BASE_HASH_KEYED_HASH_H
#define PRN_BASE_HASH_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct prn_keyed_hash {
    uint64_t v[4];
} prn_keyed_hash;

void prn_keyed_hash_init(prn_keyed_hash *hash);
void prn_keyed_hash_word(prn_keyed_hash *hash, uint64_t word);
/* The bytes and their number. */
void prn_keyed_hash_bytes(prn_keyed_hash *hash, const void *data, size_t size);
void prn_keyed_hash_text(prn_keyed_hash *hash, const char *text);
uint64_t prn_keyed_hash_end(prn_keyed_hash *hash);

uint64_t prn_hash_text(const char *text);
uint64_t prn_hash_bytes(const void *data, size_t size);

#endif
