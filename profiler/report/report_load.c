/* prony_report_load: makes a report object from JSON. It supports everything that a live one does, except access to the
 * model.
 */
#include "base/os/file.h"
#include "profiler/report/report_read.h"

prony_status prony_report_load_memory(prony_report **out, const char *name, const char *data, size_t size,
                                      prony_error *error)
{
    if (!out || (!data && size))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_load_memory: an argument is NULL");
    return prn_report_read(out, name ? name : "report", data, size, error);
}

prony_status prony_report_load(prony_report **out, const char *path, prony_error *error)
{
    if (!out || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_load: an argument is NULL");
    prn_map map;
    PRN_TRY(prn_map_open(&map, path, error));
    prony_status status = prn_report_read(out, path, (const char *)map.data, map.size, error);
    prn_map_close(&map);
    return status;
}
