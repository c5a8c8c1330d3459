/* Arrays of rows that are handed to a caller: one block with a pool behind it for their strings. */
#ifndef PRN_BASE_MEMORY_ROW_BLOCK_H
#define PRN_BASE_MEMORY_ROW_BLOCK_H

#include "base/memory/alloc.h"
#include "base/status.h"

/* `count` zeroed rows; NULL: out of memory. Released by prony_rows_release. */
void *prn_rows_create(size_t count, size_t size);
/* Lives as long as the rows. */
prn_bump *prn_rows_pool(void *rows);
/* A copy of `text` that lives as long as the rows; NULL: out of memory. */
const char *prn_rows_text(void *rows, const char *text);

#endif
