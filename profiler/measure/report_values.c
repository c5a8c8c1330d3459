/* Copies facts of nodes into layers, inside and outside of subgraphs. */
#include "profiler/measure/report_build.h"

#include <string.h>

const char *prn_report_module_of(prony_report *report, const char *name)
{
    const char *end = strrchr(name, '/');
    while (*name == '/') name++;
    return end && end > name ? prn_bump_strndup(&report->pool, name, (size_t)(end - name)) : "";
}

prony_status prn_report_copy_values(prony_report *report, const prn_program *program, const prony_value **copies,
                                    const uint32_t *ids, uint32_t count, const prony_value *const **out,
                                    prony_error *error)
{
    const prony_value **list = prn_bump_alloc(&report->pool, count + 1, sizeof *list);
    if (!list) return prn_no_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == PRN_NO_VALUE) continue;
        list[i] = copies ? copies[ids[i]] : NULL;
        if (list[i]) continue;
        prony_value *copy = prn_bump_alloc(&report->pool, 1, sizeof *copy);
        if (!copy) return prn_no_memory(error);
        *copy = program->values[ids[i]]->info;
        copy->data = NULL;
        copy->items = NULL;
        list[i] = copy;
        if (copies) copies[ids[i]] = copy;
    }
    *out = list;
    return PRONY_OK;
}
