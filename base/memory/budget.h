/* How much of the heap something may hold: the process, a model with all that is made of it, a session.
 *
 *   process  <-  model  <-  session
 *
 * Every block of base/memory/alloc.h is booked to the budget that the calling thread has entered, and to all those around it,
 * until it is released, by whichever thread. A request that would exceed one of them is refused like one that the
 * machine has no memory for; the refusal is remembered, so that prn_no_memory can say what was asked and which limit
 * stood against it. Thread-safe. A budget stays as long as one of its blocks does. */
#ifndef PRN_BASE_MEMORY_BUDGET_H
#define PRN_BASE_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prn_budget prn_budget;

typedef struct prn_refusal {
    uint64_t asked_bytes, held_bytes, limit_bytes;
} prn_refusal;

/* `outer` NULL: the process; limit 0: none of its own. NULL on out of memory. */
prn_budget *prn_budget_create(prn_budget *outer, uint64_t limit_bytes);
/* Drops the owner's reference; NULL is fine. */
void prn_budget_release(prn_budget *budget);
/* The calling thread's blocks are booked to it from now on (NULL: to the process alone). Returns what it was. */
prn_budget *prn_budget_enter(prn_budget *budget);
prn_budget *prn_budget_current(void);

/* What may still be taken under the calling thread's budget; UINT64_MAX: nothing bounds it. */
uint64_t prn_budget_room(void);
uint64_t prn_budget_held(const prn_budget *budget);
/* Of the process; 0: none. */
void prn_budget_limit_process(uint64_t limit_bytes);

/* The calling thread's last refusal, told once; false: there was none since it last entered a budget. */
bool prn_budget_refused(prn_refusal *out);

/* ---- for base/memory/alloc.c ---- */

/* Books a block of `bytes`, which keeps the budget alive; false: refused. */
bool prn_budget_book(prn_budget *budget, size_t bytes);
/* Books more for a block that is booked already. */
bool prn_budget_book_more(prn_budget *budget, size_t bytes);
void prn_budget_return(prn_budget *budget, size_t bytes);
/* The block is gone. */
void prn_budget_unbook(prn_budget *budget, size_t bytes);

#endif
