/* prony inspect MODEL: shows the file's contents and costs without running. A .json file is a saved report, which is
 * shown again in any format. */
#include "bench/session/inputs.h"
#include "bench/process/interrupt.h"

#include <string.h>

static int show_saved(const options *o)
{
    prony_error error = {0};
    prony_report *report = NULL;
    if (prony_report_load(&report, o->arguments[0], &error) != PRONY_OK) return report_error(o, &error);
    int code = write_report(o, report);
    prony_report_release(report);
    return code;
}

int command_inspect(const options *o)
{
    const char *extension = strrchr(o->arguments[0], '.');
    if (extension && strcmp(extension, ".json") == 0) return show_saved(o);
    prony_error error = {0};
    prony_model *model = NULL;
    prony_report *report = NULL;
    prony_session_options s = session_options(o);
    prony_status status = load_model(o, &model, o->arguments[0], &error);
    interrupt_at_once(true);
    if (status == PRONY_OK) status = prony_inspect(&report, model, &s, &error);
    interrupt_at_once(false);
    int code = status == PRONY_OK ? write_report(o, report) : report_session_error(o, model, &error);
    prony_report_release(report);
    prony_model_release(model);
    return code;
}
