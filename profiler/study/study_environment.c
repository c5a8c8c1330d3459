/* The surroundings of a study, beyond the manifest: variables, SMT, NUMA, huge pages, microcode, the container. A
 * replication that differs says in which of these the two machines differ. */
#define _GNU_SOURCE /* environ, realpath */
#include "base/cpu/node_facts.h"
#include "base/os/text_file.h"
#include "profiler/study/study.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables that change how fast a process runs. */
static const char *const prefixes[] = {"OMP_", "GOMP_",  "KMP_",    "OPENBLAS_",       "DNNL_",      "ONEDNN_",
                                       "MKL_", "PRONY_", "MALLOC_", "GLIBC_TUNABLES=", "LD_PRELOAD="};

static bool is_kept(const char *variable)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static bool keep_variables(prony_study *s)
{
    prn_study_environment *e = &s->environment;
    size_t kept = 0;
    for (char **at = environ; at && *at; at++) kept += is_kept(*at);
    const char **list = prn_bump_alloc(&s->pool, kept + 1, sizeof *list);
    if (!list) return false;
    for (char **at = environ; at && *at; at++) {
        if (!is_kept(*at)) continue;
        const char *copy = prn_bump_strndup(&s->pool, *at, strlen(*at));
        if (!copy) return false;
        list[e->variable_count++] = copy;
    }
    qsort(list, e->variable_count, sizeof *list, by_text);
    e->variables = list;
    return true;
}

/* "always [madvise] never": the word in brackets. */
static void read_huge_pages(char *out, size_t size)
{
    char text[80];
    if (!prn_text_read("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text)) return;
    const char *begin = strchr(text, '['), *end = begin ? strchr(begin, ']') : NULL;
    if (end) snprintf(out, size, "%.*s", (int)(end - begin - 1), begin + 1);
}

static const char *container(void)
{
    static const char *const words[] = {"docker", "kubepods", "containerd", "lxc", "podman"};
    char text[512];
    const char *named = getenv("container");
    if (named && *named) return named;
    if (access("/.dockerenv", F_OK) == 0) return "docker";
    if (access("/run/.containerenv", F_OK) == 0) return "podman";
    if (!prn_text_read("/proc/1/cgroup", text, sizeof text)) return "";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i])) return words[i];
    return "";
}

prony_status prn_study_environment_read(prony_study *s, const char *model, prony_error *error)
{
    prn_study_environment *e = &s->environment;
    prn_node_facts facts;
    prn_node_facts_read(&facts);
    *e = (prn_study_environment){.known = true, .numa_count = facts.numa_count};
    snprintf(e->smt, sizeof e->smt, "%s", facts.smt);
    snprintf(e->microcode, sizeof e->microcode, "%s", facts.microcode);
    read_huge_pages(e->huge_pages, sizeof e->huge_pages);
    snprintf(e->container, sizeof e->container, "%s", container());
    uint64_t *numa = prn_bump_alloc(&s->pool, facts.numa_count + 1, sizeof *numa);
    char whole[PATH_MAX];
    const char *path = model ? realpath(model, whole) : NULL;
    if (path) e->model_path = prn_bump_strndup(&s->pool, path, strlen(path));
    const bool ok = numa && (!path || e->model_path) && keep_variables(s);
    if (!ok) return prn_no_memory(error);
    memcpy(numa, facts.numa_memory_bytes, facts.numa_count * sizeof *numa);
    e->numa_memory_bytes = numa;
    return PRONY_OK;
}

const char *prony_study_model_path(const prony_study *study)
{
    if (!study) return NULL;
    return study->environment.model_path ? study->environment.model_path : study->manifest->model.name;
}

const char *prn_study_variables(const prn_study_environment *e, prn_bump *pool)
{
    const char *text = "";
    for (size_t i = 0; text && i < e->variable_count; i++)
        text = prn_bump_printf(pool, "%s%s%s", text, *text ? " " : "", e->variables[i]);
    return text;
}
