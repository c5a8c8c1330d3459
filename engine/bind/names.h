/* A scope: names of values to ids, with an enclosing scope. Strings are borrowed. */
#ifndef PRN_ENGINE_BIND_NAMES_H
#define PRN_ENGINE_BIND_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prn_names {
    const struct prn_names *outer;
    struct prn_name_slot *slots;
    size_t count, capacity; /* capacity is a power of two */
} prn_names;

/* Replaces an older meaning of the name in this scope. false: out of memory. */
bool prn_names_put(prn_names *names, const char *name, uint32_t id);
/* Looks here, then outwards. */
bool prn_names_get(const prn_names *names, const char *name, uint32_t *id);
void prn_names_free(prn_names *names);

#endif
