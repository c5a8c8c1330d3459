/* The registry's metrics of one report, as text in short or at length, and as JSON. */
#include "base/option_struct.h"
#include "profiler/metrics/metrics.h"
#include "profiler/text/text_out.h"
#include "profiler/json/json_write.h"

#include <math.h>
#include <stdio.h>

enum { NAME_COLUMN = 24, VALUE_COLUMN = 54, PRINT_WIDTH = 100 };

static const char *direction_text(prony_direction direction)
{
    return direction == PRONY_SMALLER_IS_BETTER  ? "smaller is better"
           : direction == PRONY_LARGER_IS_BETTER ? "larger is better"
                                                 : "neither is better";
}

static void put_short(prn_text *text, const prony_metric_value *v)
{
    prn_text_put(text, PRN_STYLE_DIM, v->metric->key);
    prn_text_to(text, NAME_COLUMN);
    prn_text_put(text, PRN_STYLE_PLAIN, v->metric->name);
    prn_text_to(text, VALUE_COLUMN);
    prn_text_putf(text, PRN_STYLE_BOLD, "%18s", v->text);
    prn_text_line(text);
}

static void put_long(prn_text *text, const prony_metric_value *v)
{
    char line[600];
    const prony_metric *m = v->metric;
    prn_text_put(text, PRN_STYLE_PLAIN, m->name);
    prn_text_to(text, VALUE_COLUMN);
    prn_text_putf(text, v->known ? PRN_STYLE_BOLD : PRN_STYLE_DIM, "%18s", v->text);
    prn_text_line(text);
    snprintf(line, sizeof line, "%.60s: %.300s; %s", m->key, m->description, direction_text(m->direction));
    prn_text_wrap(text, PRN_STYLE_DIM, 4, line);
}

static prony_status metrics_write_text(const prony_metric_value *values, size_t count, const char *keys, bool detailed,
                                       const prony_write_options *options, prony_write_fn write, void *user,
                                       prony_error *error)
{
    prn_text *text = prn_alloc(sizeof *text);
    if (!text) return prn_no_memory(error);
    prn_text_begin(text, options->width ? options->width : 80, options->color, write, user, error);
    for (size_t i = 0; i < count; i++) {
        if (!prn_metrics_named(keys, values[i].metric->key)) continue;
        if (detailed)
            put_long(text, &values[i]);
        else if (values[i].known || keys)
            put_short(text, &values[i]);
    }
    prony_status status = prn_text_end(text);
    prn_free(text);
    return status;
}

static void put_json(prn_json *json, const prony_metric_value *v)
{
    const prony_metric *m = v->metric;
    prn_json_open(json, NULL, '{', false);
    prn_json_string(json, "key", m->key);
    prn_json_string(json, "name", m->name);
    prn_json_string(json, "description", m->description);
    prn_json_string(json, "unit", prn_metric_unit(m));
    prn_json_string(json, "better", prn_direction_name(m->direction));
    prn_json_double(json, "value", v->known ? v->value : NAN);
    prn_json_string(json, "value_text", v->text);
    prn_json_close(json, '}');
}

static prony_status metrics_write_json(const prony_metric_value *values, size_t count, const char *keys,
                                       const prony_report *report, prony_write_fn write, void *user, prony_error *error)
{
    prn_json *json = prn_json_dated_document("prony.metrics/1", write, user, error);
    if (!json) return PRONY_OUT_OF_MEMORY;
    prn_json_string(json, "model", prn_report_title(report));
    prn_json_bool(json, "measured", report->measured);
    prn_json_open(json, "metrics", '[', false);
    for (size_t i = 0; i < count; i++)
        if (prn_metrics_named(keys, values[i].metric->key)) put_json(json, &values[i]);
    prn_json_close(json, ']');
    return prn_json_finish(json);
}

prony_status prony_metrics_write(const prony_metrics *metrics, const prony_report *report, const char *keys,
                                 bool detailed, prony_format format, const prony_write_options *options,
                                 prony_write_fn write, void *user, prony_error *error)
{
    prony_write_options own = PRONY_WRITE_OPTIONS_INIT;
    if (!metrics || !report || !write)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_metrics_write: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "write options", error));
    options = &own;
    if (format != PRONY_FORMAT_TEXT && format != PRONY_FORMAT_JSON)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "metrics can be written as text or JSON only");
    PRN_TRY(prn_metrics_check_keys(metrics, keys, error));
    size_t count = prony_metrics_count(metrics);
    prony_metric_value *values = prn_calloc(count + 1, sizeof *values);
    if (!values) return prn_no_memory(error);
    prony_status status = prony_metrics_compute_all(metrics, report, values, error);
    if (status == PRONY_OK && format == PRONY_FORMAT_JSON)
        status = metrics_write_json(values, count, keys, report, write, user, error);
    else if (status == PRONY_OK)
        status = metrics_write_text(values, count, keys, detailed, options, write, user, error);
    prn_free(values);
    return status;
}

prony_status prony_metrics_print(const prony_metrics *metrics, const prony_report *report, bool detailed,
                                 prony_write_fn write, void *user, prony_error *error)
{
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.width = PRINT_WIDTH;
    return prony_metrics_write(metrics, report, NULL, detailed, PRONY_FORMAT_TEXT, &options, write, user, error);
}
