/* The functions that -fsanitize=thread calls, answered by the model checker (weak_memory.h). */
#include "weak_memory.h"

#include <string.h>

/* Compilers declare these functions themselves where they emit the calls. */
#define WEAK_FUNCTION(result, name, ...)                                                                               \
    result name(__VA_ARGS__);                                                                                          \
    result name(__VA_ARGS__)

WEAK_FUNCTION(void, __tsan_init, void)
{
}

WEAK_FUNCTION(void, __tsan_func_entry, void *caller)
{
    (void)caller;
}

WEAK_FUNCTION(void, __tsan_func_exit, void)
{
}

#define WEAK_PLAIN(bytes)                                                                                              \
    WEAK_FUNCTION(void, __tsan_read##bytes, void *address)                                                             \
    {                                                                                                                  \
        weak_plain(address, bytes, false);                                                                             \
    }                                                                                                                  \
    WEAK_FUNCTION(void, __tsan_write##bytes, void *address)                                                            \
    {                                                                                                                  \
        weak_plain(address, bytes, true);                                                                              \
    }                                                                                                                  \
    WEAK_FUNCTION(void, __tsan_read_write##bytes, void *address)                                                       \
    {                                                                                                                  \
        weak_plain(address, bytes, true);                                                                              \
    }                                                                                                                  \
    WEAK_FUNCTION(void, __tsan_unaligned_read##bytes, void *address)                                                   \
    {                                                                                                                  \
        weak_plain(address, bytes, false);                                                                             \
    }                                                                                                                  \
    WEAK_FUNCTION(void, __tsan_unaligned_write##bytes, void *address)                                                  \
    {                                                                                                                  \
        weak_plain(address, bytes, true);                                                                              \
    }
WEAK_PLAIN(1)
WEAK_PLAIN(2)
WEAK_PLAIN(4)
WEAK_PLAIN(8)
WEAK_PLAIN(16)

WEAK_FUNCTION(void, __tsan_read_range, void *address, unsigned long bytes)
{
    weak_plain(address, bytes, false);
}

WEAK_FUNCTION(void, __tsan_write_range, void *address, unsigned long bytes)
{
    weak_plain(address, bytes, true);
}

WEAK_FUNCTION(void *, __tsan_memcpy, void *to, const void *from, unsigned long bytes)
{
    weak_plain(from, bytes, false);
    weak_plain(to, bytes, true);
    return memcpy(to, from, bytes);
}

WEAK_FUNCTION(void *, __tsan_memmove, void *to, const void *from, unsigned long bytes)
{
    weak_plain(from, bytes, false);
    weak_plain(to, bytes, true);
    return memmove(to, from, bytes);
}

WEAK_FUNCTION(void *, __tsan_memset, void *to, int value, unsigned long bytes)
{
    weak_plain(to, bytes, true);
    return memset(to, value, bytes);
}

#define WEAK_UPDATE_OF(bits, name, update)                                                                             \
    WEAK_FUNCTION(uint##bits##_t, __tsan_atomic##bits##_##name, volatile void *address, uint##bits##_t value,          \
                  int order)                                                                                           \
    {                                                                                                                  \
        return (uint##bits##_t)weak_change(address, bits / 8, update, value, 0, order, order);                         \
    }

#define WEAK_COMPARE_OF(bits, name)                                                                                    \
    WEAK_FUNCTION(int, __tsan_atomic##bits##_compare_exchange_##name, volatile void *address, void *expected,          \
                  uint##bits##_t value, int order, int failure_order)                                                  \
    {                                                                                                                  \
        uint##bits##_t wanted, found;                                                                                  \
        memcpy(&wanted, expected, sizeof wanted);                                                                      \
        found = (uint##bits##_t)weak_change(address, bits / 8, WEAK_COMPARE, value, wanted, order, failure_order);     \
        if (found == wanted) return 1;                                                                                 \
        weak_plain(expected, sizeof found, true);                                                                      \
        memcpy(expected, &found, sizeof found);                                                                        \
        return 0;                                                                                                      \
    }

#define WEAK_ATOMIC(bits)                                                                                              \
    WEAK_FUNCTION(uint##bits##_t, __tsan_atomic##bits##_load, const volatile void *address, int order)                 \
    {                                                                                                                  \
        return (uint##bits##_t)weak_load(address, bits / 8, order);                                                    \
    }                                                                                                                  \
    WEAK_FUNCTION(void, __tsan_atomic##bits##_store, volatile void *address, uint##bits##_t value, int order)          \
    {                                                                                                                  \
        weak_store(address, bits / 8, value, order);                                                                   \
    }                                                                                                                  \
    WEAK_UPDATE_OF(bits, exchange, WEAK_EXCHANGE)                                                                      \
    WEAK_UPDATE_OF(bits, fetch_add, WEAK_ADD)                                                                          \
    WEAK_UPDATE_OF(bits, fetch_sub, WEAK_SUB)                                                                          \
    WEAK_UPDATE_OF(bits, fetch_and, WEAK_AND)                                                                          \
    WEAK_UPDATE_OF(bits, fetch_or, WEAK_OR)                                                                            \
    WEAK_UPDATE_OF(bits, fetch_xor, WEAK_XOR)                                                                          \
    WEAK_COMPARE_OF(bits, strong)                                                                                      \
    WEAK_COMPARE_OF(bits, weak)                                                                                        \
    WEAK_FUNCTION(uint##bits##_t, __tsan_atomic##bits##_compare_exchange_val, volatile void *address,                  \
                  uint##bits##_t expected, uint##bits##_t value, int order, int failure_order)                         \
    {                                                                                                                  \
        return (uint##bits##_t)weak_change(address, bits / 8, WEAK_COMPARE, value, expected, order, failure_order);    \
    }
WEAK_ATOMIC(8)
WEAK_ATOMIC(16)
WEAK_ATOMIC(32)
WEAK_ATOMIC(64)

WEAK_FUNCTION(void, __tsan_atomic_thread_fence, int order)
{
    (void)order;
    weak_not_modelled("a fence");
}

WEAK_FUNCTION(void, __tsan_atomic_signal_fence, int order)
{
    (void)order;
}
