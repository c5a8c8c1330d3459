/* Address ranges that can be filled with memory and emptied. An empty range holds no memory and must not be read.
 *
 * The system clears fresh memory, which often takes longer than the work done with it. So the memory of an emptied
 * range may be kept as a spare for the next range. Not thread-safe: callers that share a range or a spare hold a
 * lock. */
#ifndef PRN_BASE_MEMORY_RESERVE_H
#define PRN_BASE_MEMORY_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

struct prn_budget;

/* Memory not used now. Zero-initialise. */
typedef struct prn_spare {
    void *data;
    size_t bytes;
    struct prn_budget *budget; /* charged while no range uses it */
    bool lent;
} prn_spare;

typedef struct prn_reserve {
    void *data; /* aligned to a page at least; the same for as long as it is open */
    size_t bytes;
    struct prn_budget *budget; /* charged while the range is filled */
    prn_spare *spare;          /* the source of its bytes; NULL: none */
    bool filled;
} prn_reserve;

/* Reserves `bytes` of addresses, without memory. false: none are left. */
bool prn_reserve_open(prn_reserve *reserve, size_t bytes);
/* Fills the range with bytes of undefined contents, charged to the calling thread's budget. `spare` lends its bytes,
 * releases what the range does not need, and gets the bytes back when the range is emptied. NULL or a spare already
 * lent: the bytes are fresh. false: out of memory, still empty. */
bool prn_reserve_fill(prn_reserve *reserve, prn_spare *spare);
void prn_reserve_empty(prn_reserve *reserve);
/* Releases the memory of whole pages among these bytes of a filled range; they are zeros afterwards. */
void prn_reserve_drop(const prn_reserve *reserve, const void *from, size_t bytes);
void prn_reserve_close(prn_reserve *reserve);
/* Must not be lent. */
void prn_spare_release(prn_spare *spare);

#endif
