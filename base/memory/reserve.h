/* Ranges of addresses whose bytes come and go. While one is empty nothing may be read there, and it holds no memory.
 *
 * The system clears fresh memory, which takes longer than most of what is done with it; so what one range gives up may
 * be kept as a spare that the next one takes over. Not thread-safe: whoever shares a range or a spare has a lock. */
#ifndef PRN_BASE_MEMORY_RESERVE_H
#define PRN_BASE_MEMORY_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

struct prn_budget;

/* Memory that nobody uses now. Zero-initialise. */
typedef struct prn_spare {
    void *data;
    size_t bytes;
    struct prn_budget *budget; /* that it is booked to while nobody has it */
    bool lent;
} prn_spare;

typedef struct prn_reserve {
    void *data; /* aligned to a page at least; the same for as long as it is open */
    size_t bytes;
    struct prn_budget *budget; /* that it is booked to while it is filled */
    prn_spare *spare;          /* that it has its bytes from; NULL: none */
    bool filled;
} prn_reserve;

/* Empty. false: out of addresses. */
bool prn_reserve_open(prn_reserve *reserve, size_t bytes);
/* Gives it bytes, whose contents are undefined; the calling thread's budget pays. `spare` lends it those that it has,
 * gives up what it has beyond them, and gets all of them back when the range is emptied; NULL, or lent already: they
 * are fresh. false: out of memory, still empty. */
bool prn_reserve_fill(prn_reserve *reserve, prn_spare *spare);
void prn_reserve_empty(prn_reserve *reserve);
/* Of a filled range: the memory of the pages that lie wholly in these bytes, which are zeros from then on. */
void prn_reserve_drop(const prn_reserve *reserve, const void *from, size_t bytes);
void prn_reserve_close(prn_reserve *reserve);
/* Must not be lent. */
void prn_spare_release(prn_spare *spare);

#endif
