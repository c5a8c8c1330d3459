#include "ops/pack_key.h"

#include <string.h>

void prn_pack_key_hash(const prn_pack_key *key, prn_keyed_hash *hash)
{
    prn_keyed_hash_word(hash, (uint64_t)(uintptr_t)key->build);
    prn_keyed_hash_word(hash, (uint64_t)(uintptr_t)key->inner);
    prn_keyed_hash_word(hash, (uint64_t)(uintptr_t)key->table);
    prn_keyed_hash_word(hash, (uint64_t)key->dtype);
    for (size_t i = 0; i < PRN_PACK_SIZES; i++) prn_keyed_hash_word(hash, (uint64_t)key->size[i]);
    for (size_t i = 0; i < PRN_PACK_CONSTANTS; i++) prn_keyed_hash_word(hash, (uint64_t)(uintptr_t)key->constants[i]);
    prn_keyed_hash_bytes(hash, key->detail, key->detail_bytes);
}

bool prn_pack_key_same(const prn_pack_key *a, const prn_pack_key *b)
{
    return a->build == b->build && a->inner == b->inner && a->table == b->table && a->dtype == b->dtype &&
           memcmp(a->size, b->size, sizeof a->size) == 0 &&
           memcmp(a->constants, b->constants, sizeof a->constants) == 0 && a->detail_bytes == b->detail_bytes &&
           (a->detail_bytes == 0 || memcmp(a->detail, b->detail, a->detail_bytes) == 0);
}
