/* A prony_write_fn that keeps the text, or refuses on demand. */
#ifndef PRN_TESTS_SUPPORT_TEXT_SINK_H
#define PRN_TESTS_SUPPORT_TEXT_SINK_H

#include "base/memory/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct sink {
    char *text;
    size_t size, capacity;
    int refuse_after; /* pieces; 0: never */
} sink;

static inline int sink_write(void *user, const char *data, size_t size)
{
    sink *s = user;
    if (s->refuse_after && --s->refuse_after == 0) return -1;
    assert_true(PRN_GROW(s->text, s->capacity, s->size + size + 1));
    memcpy(s->text + s->size, data, size);
    s->size += size;
    s->text[s->size] = '\0';
    return 0;
}

#endif
