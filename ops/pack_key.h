/* Identity of a packed form of constant data. The weight cache finds a form by the address of its source and this key,
 * so two problems share a form only if every member is equal. */
#ifndef PRN_OPS_PACK_KEY_H
#define PRN_OPS_PACK_KEY_H

#include "base/hash/keyed_hash.h"
#include "base/status.h"

struct prony_context;

/* Fills a packed form from its source. */
typedef prony_status prn_pack_fn(const struct prony_context *context, void *argument, void *packed);

enum { PRN_PACK_SIZES = 20, PRN_PACK_CONSTANTS = 2 };

/* The members hold everything that `build` reads of its argument, apart from the bytes of its source. */
typedef struct prn_pack_key {
    prn_pack_fn *inner;                        /* the one that `build` hands a converted source; NULL: none */
    prn_pack_fn *build;                        /* the implementation; NULL: the source's bytes as they are, aligned */
    const void *table;                         /* of the instruction set whose panels these are; NULL: any */
    prony_dtype dtype;                         /* of the source's elements; PRONY_UNDEFINED: one type only */
    int64_t size[PRN_PACK_SIZES];              /* dimensions, strides, blocks, in an order of `build`'s own */
    const void *constants[PRN_PACK_CONSTANTS]; /* other constants that `build` reads, which the plan holds too */
    const void *detail;                        /* bytes that are compared too, such as zero points; NULL: none */
    size_t detail_bytes;
} prn_pack_key;

/* Adds every member to `hash`. */
void prn_pack_key_hash(const prn_pack_key *key, prn_keyed_hash *hash);
bool prn_pack_key_same(const prn_pack_key *a, const prn_pack_key *b);

#endif
