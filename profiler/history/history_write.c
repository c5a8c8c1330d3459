/* prony_history_write: chooses the writer of a view. */
#include "base/option_struct.h"
#include "profiler/history/history.h"

static prn_history_writer *history_writer(prony_history_view view, prony_format format)
{
    const bool text = format == PRONY_FORMAT_TEXT, json = format == PRONY_FORMAT_JSON;
    switch (view) {
    case PRONY_HISTORY_LIST:
        return text                          ? prn_history_list_text
               : json                        ? prn_history_list_json
               : format == PRONY_FORMAT_HTML ? prn_history_page
                                             : NULL;
    case PRONY_HISTORY_TREND:
        return text ? prn_history_trend_text : json ? prn_history_trend_json : NULL;
    case PRONY_HISTORY_CHECK:
        return text ? prn_history_check_text : json ? prn_history_check_json : NULL;
    }
    return NULL;
}

prony_status prony_history_write(const prony_history *history, prony_history_view view,
                                 const prony_history_options *options, prony_format format,
                                 const prony_write_options *write_options, prony_write_fn write, void *user,
                                 prony_error *error)
{
    prony_history_options own = PRONY_HISTORY_OPTIONS_INIT;
    prony_write_options shown = PRONY_WRITE_OPTIONS_INIT;
    prn_history_writing w = {0};
    prony_metrics *metrics = NULL;
    if (!history || !write) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_history_write: an argument is NULL");
    prn_history_writer *writer = history_writer(view, format);
    if (!writer)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "a history is written as text or JSON, its list as HTML too");
    PRN_TRY(prn_options_read(&shown, sizeof shown, write_options, "write options", error));
    prony_status status = prn_history_begin(&w, &own, &metrics, history, options, error);
    if (status == PRONY_OK) status = writer(&w, &shown, write, user, error);
    prn_history_end(&w, metrics);
    return status;
}
