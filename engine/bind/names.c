/* Open addressing with linear probing; at most two thirds full. */
#include "engine/bind/names.h"
#include "base/memory/alloc.h"
#include "base/hash/keyed_hash.h"

#include <string.h>

struct prn_name_slot {
    const char *name; /* NULL: empty */
    uint32_t id;
};

static struct prn_name_slot *names_slot_of(const prn_names *names, const char *name)
{
    size_t i = (size_t)prn_hash_text(name) & (names->capacity - 1);
    while (names->slots[i].name && strcmp(names->slots[i].name, name) != 0) i = (i + 1) & (names->capacity - 1);
    return &names->slots[i];
}

bool prn_names_put(prn_names *names, const char *name, uint32_t id)
{
    if ((names->count + 1) * 3 > names->capacity * 2) {
        prn_names larger = {.outer = names->outer, .capacity = names->capacity ? names->capacity * 2 : 64};
        larger.slots = prn_calloc(larger.capacity, sizeof *larger.slots);
        if (!larger.slots) return false;
        for (size_t i = 0; i < names->capacity; i++)
            if (names->slots[i].name) *names_slot_of(&larger, names->slots[i].name) = names->slots[i];
        larger.count = names->count;
        prn_free(names->slots);
        *names = larger;
    }
    struct prn_name_slot *slot = names_slot_of(names, name);
    if (!slot->name) names->count++;
    *slot = (struct prn_name_slot){name, id};
    return true;
}

bool prn_names_get(const prn_names *names, const char *name, uint32_t *id)
{
    for (; names; names = names->outer) {
        if (!names->capacity) continue;
        const struct prn_name_slot *slot = names_slot_of(names, name);
        if (!slot->name) continue;
        *id = slot->id;
        return true;
    }
    return false;
}

void prn_names_free(prn_names *names)
{
    prn_free(names->slots);
    names->slots = NULL;
    names->count = names->capacity = 0;
}
