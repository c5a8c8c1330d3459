/* prony inspect MODEL: what the file says, and what it would cost; nothing runs. */
#include "bench/command.h"

int command_inspect(const options *o)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_report *report = NULL;
    prony_session_options s = session_options(o);
    prony_status status = prony_model_load(&model, o->arguments[0], NULL, &error);
    if (status == PRONY_OK) status = prony_inspect(&report, model, &s, &error);
    int code = status == PRONY_OK ? write_report(o, report) : report_error(o, &error);
    prony_report_release(report);
    prony_model_release(model);
    return code;
}
