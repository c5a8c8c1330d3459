/* Shadow memory (weak_shadow.h): a hash table of bytes, cleared by a new generation. */
#include "weak_shadow.h"

#include <string.h>

enum { BYTES = 1 << 16 };

typedef struct shadow {
    uintptr_t address;
    unsigned generation;
    uint16_t read[WEAK_THREADS], written[WEAK_THREADS]; /* 1 + the thread's events at that time; 0: never */
} shadow;

static shadow table[BYTES];
static unsigned generation, used;

void weak_shadow_clear(void)
{
    generation++;
    used = 0;
}

static shadow *shadow_of(uintptr_t address)
{
    size_t at = (address * UINT64_C(0x9e3779b97f4a7c15) >> 40) % BYTES;
    while (table[at].generation == generation && table[at].address != address) at = (at + 1) % BYTES;
    if (table[at].generation != generation) {
        if (++used > BYTES / 2) weak_not_modelled("so much memory in use");
        memset(&table[at], 0, sizeof table[at]);
        table[at].address = address;
        table[at].generation = generation;
    }
    return &table[at];
}

int weak_shadow_access(uintptr_t address, size_t bytes, int thread, const weak_clock *clock, bool writes)
{
    int conflict = -1;
    for (size_t i = 0; i < bytes; i++) {
        shadow *s = shadow_of(address + i);
        for (int t = 0; t < WEAK_THREADS; t++) {
            if (t == thread) continue;
            if (s->written[t] > clock->of[t] || (writes && s->read[t] > clock->of[t])) conflict = t;
        }
        uint16_t *own = writes ? &s->written[thread] : &s->read[thread];
        *own = (uint16_t)(clock->of[thread] + 1);
    }
    return conflict;
}
