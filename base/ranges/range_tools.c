/* Implements range_tools.h and prony_ranges_open, and passes ranges to NVTX. Nothing is linked: a tool's library is
 * loaded when it is asked for, and its functions have the types that the tool publishes.
 *
 * NVTX 3 is a set of headers. Its code in a program loads the library that NVTX_INJECTION64_PATH names and calls its
 * InitializeInjectionNvtx2, which asks for tables of addresses of function pointers, a table per module, and stores its
 * functions there. This file hands out these tables; two of the functions are used. */
#include "base/ranges/range_tools.h"
#include "base/os/shared_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- NVTX ---- */

typedef int (*nvtx_push)(const char *message);
typedef int (*nvtx_pop)(void);

static struct {
    nvtx_push push;
    nvtx_pop pop;
} nvtx;

static void push_nvtx(void *user, const char *name, const char *type)
{
    char text[PRN_RANGE_TEXT_BYTES];
    (void)user;
    (void)nvtx.push(prn_range_text(text, name, type));
}

static void pop_nvtx(void *user)
{
    (void)user;
    (void)nvtx.pop();
}

static const prony_range_hooks nvtx_hooks = {sizeof(prony_range_hooks), push_nvtx, pop_nvtx, NULL};

/* Modules and ids as in NVTX 3's headers; a tool may ask for every table. */
enum { MODULES = 7, CORE = 1, MOST_FUNCTIONS = 16, PUSH_A = 9, POP = 11, CALLBACKS = 1, VERSION = 3 };
typedef void (*nvtx_slot)(void);
static const unsigned function_counts[MODULES] = {0, 16, 9, 15, 7, 16, 7};
static nvtx_slot slots[MODULES][MOST_FUNCTIONS];
static nvtx_slot *slot_tables[MODULES][MOST_FUNCTIONS + 1]; /* ends with NULL */

/* Called by the tool; either pointer may be NULL. */
static int module_table(int module, nvtx_slot ***table, unsigned *count)
{
    if (module < CORE || module >= MODULES) return 0;
    if (table) *table = slot_tables[module];
    if (count) *count = function_counts[module];
    return 1;
}

static void ignore_version(uint32_t version)
{
    (void)version;
}

static const void *export_table(uint32_t id)
{
    static const struct {
        size_t size;
        int (*module_table)(int module, nvtx_slot ***table, unsigned *count);
    } callbacks = {sizeof callbacks, module_table};
    static const struct {
        size_t size;
        uint32_t version, reserved;
        void (*tell_version)(uint32_t version);
    } version = {sizeof version, 3, 0, ignore_version};
    return id == CALLBACKS ? (const void *)&callbacks : id == VERSION ? (const void *)&version : NULL;
}

static prony_status open_injection(const char *path, prony_error *error)
{
    void *library;
    int (*begin)(const void *(*export_table)(uint32_t id)) = NULL;
    PRN_TRY(prn_library_open(&library, path, error));
    PRN_TRY(prn_library_function(&begin, library, path, "InitializeInjectionNvtx2", error));
    for (size_t m = 0; m < MODULES; m++)
        for (size_t i = 0; i < function_counts[m]; i++) slot_tables[m][i] = &slots[m][i];
    if (!begin(export_table)) return prn_fail(error, PRONY_UNSUPPORTED, "'%s' refuses to start", path);
    if (!slots[CORE][PUSH_A] || !slots[CORE][POP])
        return prn_fail(error, PRONY_UNSUPPORTED, "'%s' takes no ranges", path);
    nvtx.push = (nvtx_push)slots[CORE][PUSH_A];
    nvtx.pop = (nvtx_pop)slots[CORE][POP];
    return PRONY_OK;
}

static prony_status open_nvtx(prony_error *error)
{
    static const char soname[] = "libnvToolsExt.so.1";
    const char *injection = getenv("NVTX_INJECTION64_PATH");
    void *library;
    nvtx_push push;
    nvtx_pop pop;
    if (nvtx.push) return PRONY_OK;
    if (injection && *injection) return open_injection(injection, error);
    PRN_TRY(prn_library_open(&library, soname, error));
    PRN_TRY(prn_library_function(&push, library, soname, "nvtxRangePushA", error));
    PRN_TRY(prn_library_function(&pop, library, soname, "nvtxRangePop", error));
    nvtx.push = push;
    nvtx.pop = pop;
    return PRONY_OK;
}

/* ---- the choice ---- */

prony_status prony_ranges_open(const char *tool, prony_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const struct {
        const char *name;
        prony_status (*open)(prony_error *error);
        const prony_range_hooks *hooks;
    } tools[] = {{"nvtx", open_nvtx, &nvtx_hooks}, {"itt", prn_range_itt_open, &prn_range_itt_hooks}};
    for (size_t i = 0; tool && i < sizeof tools / sizeof *tools; i++) {
        if (strcmp(tools[i].name, tool) != 0) continue;
        pthread_mutex_lock(&lock);
        prony_status status = tools[i].open(error);
        if (status == PRONY_OK) status = prony_range_hooks_install(tools[i].hooks, error);
        pthread_mutex_unlock(&lock);
        return status;
    }
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "ranges for '%.60s' are unknown: use nvtx or itt", tool ? tool : "");
}
