/* The pool stands in front of the rows, at a distance that keeps them aligned. */
#include "base/memory/row_block.h"

#include <string.h>

#define HEADER_BYTES 64

_Static_assert(sizeof(prn_bump) <= HEADER_BYTES, "the pool fits before the rows");

void *prn_rows_create(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count + 1, size, &bytes) || bytes > PTRDIFF_MAX - HEADER_BYTES) return NULL;
    char *block = prn_calloc(1, HEADER_BYTES + bytes);
    return block ? block + HEADER_BYTES : NULL;
}

prn_bump *prn_rows_pool(void *rows)
{
    return (prn_bump *)(void *)((char *)rows - HEADER_BYTES);
}

const char *prn_rows_text(void *rows, const char *text)
{
    return text ? prn_bump_strndup(prn_rows_pool(rows), text, strlen(text)) : "";
}

void prony_rows_release(void *rows)
{
    if (!rows) return;
    prn_bump_release(prn_rows_pool(rows));
    prn_free((char *)rows - HEADER_BYTES);
}
