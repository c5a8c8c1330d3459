/* Capabilities of the processor and the kernel, detected once. The result never changes after the first call. */
#include "base/cpu/isa.h"
#include "base/cpu/isa_arch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned present;     /* within the cap */
static const char *set_name; /* the largest available one of `prn_isa_sets` */
static const char *features[PRN_ISA_MOST_FEATURES + 1];
static char set_names[64];

#if !defined(__x86_64__) && !defined(__aarch64__)
const prn_isa_set prn_isa_sets[] = {{"scalar", 0, 0}};
const int prn_isa_set_count = 1;
#endif

static unsigned ask_processor(void)
{
#if defined(__x86_64__)
    return prn_isa_x86_ask(features);
#elif defined(__aarch64__)
    return prn_isa_arm64_ask(features);
#else
    return 0;
#endif
}

static void isa_find(void)
{
    present = ask_processor();
    const char *cap = getenv("PRONY_MAX_ISA");
    for (int i = 0; cap && i < prn_isa_set_count; i++)
        if (strcasecmp(cap, prn_isa_sets[i].name) == 0) present &= prn_isa_sets[i].cap;
    for (int i = 0; i < prn_isa_set_count; i++)
        if ((prn_isa_sets[i].needs & ~present) == 0) set_name = prn_isa_sets[i].name;
    size_t used = 0;
    for (int i = 0; i < prn_isa_set_count && used < sizeof set_names; i++)
        used +=
            (size_t)snprintf(set_names + used, sizeof set_names - used, "%s%s", i ? ", " : "", prn_isa_sets[i].name);
}

/* Called for every kernel choice, in every run: after detection `present` is read without a call. */
bool prn_isa_has(unsigned flags)
{
    enum { KNOWN = 1 << 30 };
    static atomic_uint answer;
    unsigned found = atomic_load_explicit(&answer, memory_order_relaxed);
    if (!(found & KNOWN)) {
        pthread_once(&once, isa_find);
        found = present | KNOWN;
        atomic_store_explicit(&answer, found, memory_order_relaxed);
    }
    return (flags & ~found) == 0;
}

const char *prn_isa_name(void)
{
    pthread_once(&once, isa_find);
    return set_name;
}

const char *prn_isa_set_names(void)
{
    pthread_once(&once, isa_find);
    return set_names;
}

const char *const *prn_isa_features(void)
{
    pthread_once(&once, isa_find);
    return features;
}
