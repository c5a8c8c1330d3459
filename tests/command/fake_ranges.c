/* In place of the libraries of two profilers (PRONY_RANGES): NVTX's by its name and by injection, and ITT's collector. Each
 * call is a line of the file that FAKE_RANGES_LOG names: thread, "push" or "pop", tool and text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static void log_call(const char *what, const char *text)
{
    FILE *to = fopen(getenv("FAKE_RANGES_LOG"), "a"); /* one write of a line is not torn */
    if (!to) abort();
    fprintf(to, "%ld %s %s\n", (long)syscall(SYS_gettid), what, text);
    fclose(to);
}

EXPORTED int nvtxRangePushA(const char *message)
{
    log_call("push nvtx", message);
    return 0;
}

EXPORTED int nvtxRangePop(void)
{
    log_call("pop nvtx", "");
    return 0;
}

/* ---- NVTX 3 ---- */

typedef void (*slot)(void);
typedef struct callbacks {
    size_t size;
    int (*module_table)(int module, slot ***table, unsigned *count);
} callbacks;

static int injected_push(const char *message)
{
    log_call("push injection", message);
    return 0;
}

static int injected_pop(void)
{
    log_call("pop injection", "");
    return 0;
}

EXPORTED int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
    const callbacks *all = export_table(1);
    slot **table = NULL;
    unsigned count = 0;
    if (getenv("FAKE_RANGES_REFUSE")) return 0;
    for (int module = 1; module <= 6; module++)
        if (!all->module_table(module, &table, &count) || !table || count < 7 || table[count]) abort();
    if (all->module_table(7, &table, &count) || !export_table(3) || export_table(9)) abort();
    if (!all->module_table(1, &table, &count) || count != 16) abort();
    *table[9] = (slot)injected_push;
    *table[11] = (slot)injected_pop;
    return 1;
}

/* ---- ITT ---- */

typedef struct domain {
    volatile int flags;
} domain;

typedef struct id {
    unsigned long long d1, d2, d3;
} id;

EXPORTED domain *__itt_domain_create(const char *name)
{
    static domain only = {1};
    return strcmp(name, "prony") == 0 ? &only : NULL;
}

EXPORTED const char *__itt_string_handle_create(const char *name)
{
    static char *kept[64]; /* as a collector keeps them */
    size_t i = 0;
    while (i < 63 && kept[i] && strcmp(kept[i], name) != 0) i++;
    return kept[i] ? kept[i] : (kept[i] = strdup(name));
}

EXPORTED void __itt_task_begin(const domain *of, id task, id parent, const char *name)
{
    if (!of || task.d1 || task.d2 || task.d3 || parent.d1 || parent.d2 || parent.d3) abort();
    log_call("push itt", name);
}

EXPORTED void __itt_task_end(const domain *of)
{
    (void)of;
    log_call("pop itt", "");
}
