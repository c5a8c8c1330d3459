/* Ranges for the collectors of Intel's ITT: VTune's, for example.
 *
 * ITT is a library that programs link; the functions of a collector replace its own. A collector of interface version 2
 * exports __itt_api_init, which gets the program's `itt_global` with a table of the functions that the program calls.
 * It stores its functions there, or leaves those that the program has itself: names are made by the program, in lists
 * that the collector reads. An older collector exports all functions by name. The types here are those of ITT's
 * headers. */
#define _GNU_SOURCE /* PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP */
#include "base/hash/keyed_hash.h"
#include "base/memory/alloc.h"
#include "base/ranges/range_tools.h"
#include "base/os/shared_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_STRUCTURE = 1 << 12, GROUP_ALL = -1, SLOTS = 256 };

typedef struct itt_domain {
    volatile int flags; /* 0: the tool does not collect now */
    const char *name;
    void *wide_name;
    int extra1;
    void *extra2;
    struct itt_domain *next;
} itt_domain;

typedef struct itt_string {
    const char *text;
    void *wide_text;
    int extra1;
    void *extra2;
    struct itt_string *next;
} itt_string;

typedef struct itt_id {
    unsigned long long d1, d2, d3;
} itt_id;

typedef struct itt_function {
    const char *name;
    void **function;
    void *first, *own; /* before a collector is there; if it has none */
    int group;
} itt_function;

typedef struct itt_global {
    unsigned char magic[8];
    unsigned long version_major, version_minor, version_build;
    volatile long initialized, mutex_initialized, counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **library_path;
    itt_function *functions;
    struct itt_global *next;
    void *threads;
    itt_domain *domains;
    itt_string *strings;
    int state;
    void *counters;
    unsigned processor_trace;
    void *histograms;
} itt_global;

typedef itt_domain *(*itt_domain_create)(const char *name);
typedef itt_string *(*itt_string_create)(const char *text);
typedef void (*itt_task_begin)(const itt_domain *domain, itt_id task, itt_id parent, itt_string *name);
typedef void (*itt_task_end)(const itt_domain *domain);

/* Names live as long as the process, as collectors expect. */
typedef struct itt_name {
    itt_string own; /* if the collector makes none */
    itt_string *handle;
    struct itt_name *next;
    char text[];
} itt_name;

static itt_domain own_domain = {.flags = 1, .name = "prony"};

static itt_domain *create_domain(const char *name)
{
    (void)name; /* there is one */
    return &own_domain;
}

static itt_string *create_no_string(const char *text)
{
    (void)text;
    return NULL; /* itt_find_name has the string */
}

enum { DOMAIN_CREATE, STRING_CREATE, TASK_BEGIN, TASK_END, FUNCTIONS };
static void *functions[FUNCTIONS];
static itt_function function_rows[FUNCTIONS + 1] = {
    [DOMAIN_CREATE] = {"__itt_domain_create", &functions[DOMAIN_CREATE], NULL, NULL, GROUP_STRUCTURE},
    [STRING_CREATE] = {"__itt_string_handle_create", &functions[STRING_CREATE], NULL, NULL, GROUP_STRUCTURE},
    [TASK_BEGIN] = {"__itt_task_begin", &functions[TASK_BEGIN], NULL, NULL, GROUP_STRUCTURE},
    [TASK_END] = {"__itt_task_end", &functions[TASK_END], NULL, NULL, GROUP_STRUCTURE}};
static itt_global global = {.magic = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30},
                            .version_major = 3,
                            .version_build = 20180723,
                            .mutex_initialized = 1,
                            .mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                            .functions = function_rows,
                            .domains = &own_domain};

static struct {
    itt_domain_create domain_create;
    itt_string_create string_create;
    itt_task_begin task_begin;
    itt_task_end task_end;
    itt_domain *domain; /* NULL: not open */
} itt;

/* ---- names ---- */

static itt_name *names[SLOTS];

static itt_name *make_name(const char *text, itt_name **slot)
{
    const size_t size = strlen(text) + 1;
    itt_name *name = prn_calloc(1, sizeof *name + size);
    if (!name) return NULL;
    memcpy(name->text, text, size);
    name->handle = itt.string_create(name->text);
    if (!name->handle) {
        name->own = (itt_string){.text = name->text, .next = global.strings};
        name->handle = global.strings = &name->own;
    }
    name->next = *slot;
    return *slot = name;
}

/* The collector's handle of the text; NULL: no memory. */
static itt_string *itt_find_name(const char *text)
{
    itt_name **slot = &names[prn_hash_text(text) % SLOTS];
    pthread_mutex_lock(&global.mutex);
    itt_name *name = *slot;
    while (name && strcmp(name->text, text) != 0) name = name->next;
    if (!name) name = make_name(text, slot);
    pthread_mutex_unlock(&global.mutex);
    return name ? name->handle : NULL;
}

/* ---- ranges ---- */

static void push_itt(void *user, const char *name, const char *type)
{
    char text[PRN_RANGE_TEXT_BYTES];
    static itt_string no_memory = {.text = "out of memory"};
    const itt_id none = {0, 0, 0};
    (void)user;
    if (!itt.domain->flags) return;
    itt_string *handle = itt_find_name(prn_range_text(text, name, type));
    itt.task_begin(itt.domain, none, none, handle ? handle : &no_memory);
}

static void pop_itt(void *user)
{
    (void)user;
    if (itt.domain->flags) itt.task_end(itt.domain);
}

const prony_range_hooks prn_range_itt_hooks = {sizeof(prony_range_hooks), push_itt, pop_itt, NULL};

/* ---- the collector ---- */

/* Version 2: the collector fills the table. */
static void fill_functions(void *library, void (*begin)(itt_global *global, int groups))
{
    itt_domain_create domain_create = create_domain;
    itt_string_create string_create = create_no_string;
    memcpy(&function_rows[DOMAIN_CREATE].own, &domain_create, sizeof domain_create);
    memcpy(&function_rows[STRING_CREATE].own, &string_create, sizeof string_create);
    for (size_t f = 0; f < FUNCTIONS; f++) functions[f] = function_rows[f].first = function_rows[f].own;
    global.library = library;
    begin(&global, GROUP_ALL);
    global.initialized = 1;
}

static prony_status find_functions(void *library, const char *path, prony_error *error)
{
    for (size_t f = 0; f < FUNCTIONS; f++)
        PRN_TRY(prn_library_function(&functions[f], library, path, function_rows[f].name, error));
    return PRONY_OK;
}

prony_status prn_range_itt_open(prony_error *error)
{
    const char *path = getenv("INTEL_LIBITTNOTIFY64");
    void *library;
    void (*begin)(itt_global *global, int groups) = NULL;
    if (itt.domain) return PRONY_OK;
    if (!path || !*path)
        return prn_fail(error, PRONY_UNSUPPORTED, "INTEL_LIBITTNOTIFY64 does not name the collector's library");
    PRN_TRY(prn_library_open(&library, path, error));
    if (prn_library_function(&begin, library, path, "__itt_api_init", NULL) == PRONY_OK)
        fill_functions(library, begin);
    else
        PRN_TRY(find_functions(library, path, error));
    if (!functions[TASK_BEGIN] || !functions[TASK_END] || !functions[DOMAIN_CREATE] || !functions[STRING_CREATE])
        return prn_fail(error, PRONY_UNSUPPORTED, "'%s' takes no tasks", path);
    memcpy(&itt.domain_create, &functions[DOMAIN_CREATE], sizeof itt.domain_create);
    memcpy(&itt.string_create, &functions[STRING_CREATE], sizeof itt.string_create);
    memcpy(&itt.task_begin, &functions[TASK_BEGIN], sizeof itt.task_begin);
    memcpy(&itt.task_end, &functions[TASK_END], sizeof itt.task_end);
    itt.domain = itt.domain_create("prony");
    return itt.domain ? PRONY_OK : prn_fail(error, PRONY_UNSUPPORTED, "'%s' does not collect", path);
}
