/* Bounds the heap memory of the process, of a model with everything made from it, and of a session.
 *
 *   process  <-  model  <-  session
 *
 * Every block of base/memory/alloc.h is charged to the calling thread's budget and to all enclosing ones until any
 * thread releases it. A request that would exceed one of them fails like one without memory. The refusal is kept, so
 * prn_no_memory can name the request and the limit. Thread-safe. A budget stays as long as one of its blocks does. */
#ifndef PRN_BASE_MEMORY_BUDGET_H
#define PRN_BASE_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prn_budget prn_budget;

typedef struct prn_refusal {
    uint64_t asked_bytes, held_bytes, limit_bytes;
} prn_refusal;

/* `outer` NULL: the process; limit 0: no own limit. NULL on out of memory. */
prn_budget *prn_budget_create(prn_budget *outer, uint64_t limit_bytes);
/* Drops the owner's reference; NULL is fine. */
void prn_budget_release(prn_budget *budget);
/* Charges the calling thread's blocks to `budget` from now on (NULL: to the process alone). Returns the previous
 * budget. */
prn_budget *prn_budget_enter(prn_budget *budget);
prn_budget *prn_budget_current(void);

/* Bytes still available under the calling thread's budget; UINT64_MAX: no limit. */
uint64_t prn_budget_room(void);
uint64_t prn_budget_held(const prn_budget *budget);
/* Sets the limit of the process; 0: none. */
void prn_budget_limit_process(uint64_t limit_bytes);

/* The calling thread's last refusal, returned once; false: no refusal since it last entered a budget. */
bool prn_budget_refused(prn_refusal *out);

/* ---- for base/memory/alloc.c ---- */

/* Charges a block of `bytes`, which keeps the budget alive; false: refused. */
bool prn_budget_book(prn_budget *budget, size_t bytes);
/* Charges more for a block that is already charged. */
bool prn_budget_book_more(prn_budget *budget, size_t bytes);
void prn_budget_return(prn_budget *budget, size_t bytes);
/* Called when the block is released. */
void prn_budget_unbook(prn_budget *budget, size_t bytes);

#endif
