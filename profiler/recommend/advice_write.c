/* Recommendations as text and as JSON, "prony.recommendation/1". */
#include "base/option_struct.h"
#include "profiler/text/text_out.h"
#include "profiler/json/json_write.h"
#include "profiler/report/report.h"
#include "prony_judge.h"

#include <stdio.h>

/* Writes numbered recommendations first, then the topics without one. */
static prony_status advice_write_text(const prony_advice *rows, size_t count, const char *target,
                                      const prony_write_options *options, prony_write_fn write, void *user,
                                      prony_error *error)
{
    prn_text *text = prn_alloc(sizeof *text);
    char line[1600];
    size_t number = 0;
    if (!text) return prn_no_memory(error);
    prn_text_begin(text, options->width ? options->width : 80, options->color, write, user, error);
    prn_text_putf(text, PRN_STYLE_TITLE, "Recommendations");
    if (target) prn_text_putf(text, PRN_STYLE_DIM, ", %.200s", target);
    prn_text_line(text);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].applies) continue;
        prn_text_putf(text, PRN_STYLE_BOLD, "%zu. ", ++number);
        snprintf(line, sizeof line, "%s: %s", rows[i].topic, rows[i].action);
        prn_text_wrap(text, PRN_STYLE_BOLD, 3, line);
        snprintf(line, sizeof line, "gain: %s (%s)", rows[i].gain_text, rows[i].measured ? "measured" : "computed");
        prn_text_wrap(text, PRN_STYLE_GOOD, 3, line);
        prn_text_wrap(text, PRN_STYLE_PLAIN, 3, rows[i].reason);
    }
    if (number == 0) {
        prn_text_put(text, PRN_STYLE_GOOD, "Nothing to recommend.");
        prn_text_line(text);
    }
    for (size_t i = 0; i < count; i++) {
        if (rows[i].applies) continue;
        snprintf(line, sizeof line, "%s: %s", rows[i].topic, rows[i].reason);
        prn_text_put(text, PRN_STYLE_DIM, "-");
        prn_text_wrap(text, PRN_STYLE_DIM, 3, line);
    }
    prony_status status = prn_text_end(text);
    prn_free(text);
    return status;
}

/* Recommendations and topics without one are two lists. */
static prony_status advice_write_json(const prony_advice *rows, size_t count, const char *target, prony_write_fn write,
                                      void *user, prony_error *error)
{
    prn_json *json = prn_json_dated_document("prony.recommendation/1", write, user, error);
    if (!json) return PRONY_OUT_OF_MEMORY;
    prn_json_string(json, "target", target);
    prn_json_open(json, "recommendations", '[', false);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].applies) continue;
        prn_json_open(json, NULL, '{', false);
        prn_json_string(json, "topic", rows[i].topic);
        prn_json_string(json, "action", rows[i].action);
        prn_json_string(json, "reason", rows[i].reason);
        prn_json_string(json, "metric", rows[i].metric);
        prn_json_string(json, "basis", rows[i].measured ? "measured" : "computed");
        prn_json_double(json, "gain", rows[i].gain);
        prn_json_string(json, "gain_text", rows[i].gain_text);
        prn_json_close(json, '}');
    }
    prn_json_close(json, ']');
    prn_json_open(json, "considered", '[', false);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].applies) continue;
        prn_json_open(json, NULL, '{', false);
        prn_json_string(json, "topic", rows[i].topic);
        prn_json_string(json, "reason", rows[i].reason);
        prn_json_close(json, '}');
    }
    prn_json_close(json, ']');
    return prn_json_finish(json);
}

prony_status prony_advice_write(const prony_advice *rows, size_t count, const char *target, prony_format format,
                                const prony_write_options *options, prony_write_fn write, void *user,
                                prony_error *error)
{
    prony_write_options own = PRONY_WRITE_OPTIONS_INIT;
    if (!write || (!rows && count))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_advice_write: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "write options", error));
    options = &own;
    if (format == PRONY_FORMAT_JSON) return advice_write_json(rows, count, target, write, user, error);
    if (format == PRONY_FORMAT_TEXT) return advice_write_text(rows, count, target, options, write, user, error);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "recommendations can be written as text or JSON only");
}
