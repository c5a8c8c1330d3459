/* Every failed assertion of cmocka ends in its function _fail. The definition here comes before the one of the shared
 * library, prints callers and scenarios of the failing line, and goes on to cmocka's. It is weak, so that a static
 * libcmocka keeps its own. Without glibc's backtrace() or binutils' addr2line only the scenarios are printed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, dladdr */
#endif
#include "failure_trace.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

enum {
    TRACE_FRAMES = 64,
    TRACE_SCENARIOS = 16, /* deeper ones are not named */
};

typedef struct trace_scenario {
    const char *index, *name;
    long long value;
} trace_scenario;

static _Thread_local trace_scenario trace_scenarios[TRACE_SCENARIOS];
static _Thread_local size_t trace_depth;

size_t scenario_begin(const char *index, long long value, const char *name)
{
    if (trace_depth < TRACE_SCENARIOS) trace_scenarios[trace_depth] = (trace_scenario){index, name, value};
    return trace_depth++;
}

void scenario_end(const size_t *around)
{
    trace_depth = *around;
}

static void trace_print_scenarios(void)
{
    for (size_t i = 0; i < trace_depth && i < TRACE_SCENARIOS; i++) {
        const trace_scenario *s = &trace_scenarios[i];
        fprintf(stderr, "    scenario %s = %lld%s%s\n", s->index, s->value, s->name ? ": " : "",
                s->name ? s->name : "");
    }
    trace_depth = 0; /* cmocka leaves the test by longjmp, which ends no scenario */
}

#ifdef __GLIBC__
/* Writes the command that turns the return addresses inside this program into functions and lines. */
static bool trace_command(char *command, size_t size)
{
    void *frames[TRACE_FRAMES];
    const int count = backtrace(frames, TRACE_FRAMES);
    char program[1024];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    Dl_info own;
    if (length <= 0 || !dladdr((void *)(uintptr_t)&scenario_begin, &own)) return false;
    program[length] = 0;
    size_t used = (size_t)snprintf(command, size, "addr2line 2>/dev/null -pifs -e '%s'", program);
    for (int i = 0; i < count && used < size; i++) {
        Dl_info info;
        if (!dladdr(frames[i], &info) || info.dli_fbase != own.dli_fbase) continue;
        /* A return address is behind its call, which may end a line or a function. */
        const size_t offset = (size_t)((uintptr_t)frames[i] - (uintptr_t)info.dli_fbase) - 1;
        used += (size_t)snprintf(command + used, size - used, " %zx", offset);
    }
    return used < size;
}

static void trace_print_callers(void)
{
    char command[4096], line[512];
    FILE *lines = trace_command(command, sizeof command) ? popen(command, "r") : NULL;
    if (!lines) return;
    while (fgets(line, sizeof line, lines)) {
        if (strstr(line, " at all_skipped.c:")) break; /* calls the test, and is called by main */
        if (strstr(line, "??") || strstr(line, " at failure_trace.c:")) continue;
        const size_t prefix = strncmp(line, " (inlined by) ", 14) == 0 ? 14 : 0;
        line[strcspn(line, "\n")] = 0;
        char *discriminator = strstr(line, " (discriminator ");
        if (discriminator) *discriminator = 0;
        fprintf(stderr, "    in %s\n", line + prefix);
    }
    pclose(lines);
}
#else
static void trace_print_callers(void)
{
}
#endif

void _fail(const char *file, int line);
__attribute__((weak, visibility("default"))) void _fail(const char *file, int line)
{
    void (*original)(const char *, int);
    *(void **)&original = dlsym(RTLD_NEXT, "_fail");
    trace_print_callers();
    trace_print_scenarios();
    fflush(stderr);
    if (original) original(file, line);
    abort();
}
