/* Values of options: read by the type of the row, or by its parse function, checked, and stored in the row's field. */
#include "bench/load/load.h"
#include "bench/options/option_table.h"
#include "prony_judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const scenario_names[] = {"single", "multi", "server", "offline", NULL};

/* "a, b or c". */
static const char *choice_list(const option_row *row, char *text, size_t size)
{
    const char *choices = row->choices, *item;
    size_t used = 0;
    for (size_t length; used < size && (length = next_item(&choices, ',', &item));)
        used += (size_t)snprintf(text + used, size - used, "%s%.*s",
                                 !used      ? ""
                                 : *choices ? ", "
                                            : " or ",
                                 (int)length, item);
    return text;
}

/* The message for an invalid value: "--top needs a number from 1, got '0'". */
static int option_values_refuse(const options *o, const option_row *row, const char *text)
{
    char choices[200];
    const char *many = row->type == OPTION_INTS ? "numbers" : "a number";
    if (row->wanted) return usage(o, "--%s needs %s, got '%s'", row->name, row->wanted, text);
    if (row->choices)
        return usage(o, "--%s: unknown value '%s'; wanted %s%s", row->name, text,
                     row->type == OPTION_CHOICES ? "some of " : "", choice_list(row, choices, sizeof choices));
    if (row->type == OPTION_SECONDS)
        return usage(o, "--%s needs a time above 0 such as 2, 500ms or 10m, got '%s'", row->name, text);
    if (row->type == OPTION_TIME)
        return usage(o, "--%s needs a time %s 0 with its unit, such as 20ms, got '%s'", row->name,
                     row->least > 0 ? "above" : "from", text);
    if (row->most >= INT32_MAX) return usage(o, "--%s needs %s from %.0f, got '%s'", row->name, many, row->least, text);
    return usage(o, "--%s needs %s from %.0f to %.0f, got '%s'", row->name, many, row->least, row->most, text);
}

static int option_values_no_memory(const options *o)
{
    return fail(o, "out of memory");
}

/* One item of `size` bytes more in an array with its count; NULL: out of memory, after a message. */
static void *add_item(const options *o, void *array, size_t *count, size_t size)
{
    void **items = array, *grown = reallocarray(*items, *count + 1, size);
    if (!grown) return option_values_no_memory(o), NULL;
    *items = grown;
    return memset((char *)grown + (*count)++ * size, 0, size);
}

/* The number of the choice that `text` is, -1: none. */
static int option_values_choice_of(const char *choices, const char *text, size_t length)
{
    const char *item;
    size_t size;
    for (int i = 0; (size = next_item(&choices, ',', &item)); i++)
        if (size == length && strncmp(item, text, length) == 0) return i;
    return -1;
}

static int take_choices(const options *o, const option_row *row, const char *text, unsigned *bits)
{
    const char *rest = text, *item;
    *bits = 0;
    for (size_t length; (length = next_item(&rest, ',', &item));) {
        const int choice = option_values_choice_of(row->choices, item, length);
        if (choice < 0) return option_values_refuse(o, row, text);
        *bits |= 1U << choice;
    }
    return *bits ? 0 : option_values_refuse(o, row, text);
}

/* int64_t of the row's range; INT64_MAX has no double of its own. */
static int64_t most_of(const option_row *row)
{
    return row->most >= 0x1p63 ? INT64_MAX : (int64_t)row->most;
}

static bool read_double(const option_row *row, const char *text, double *out)
{
    char *end;
    const double value = strtod(text, &end);
    const bool percent = row->type == OPTION_PERCENT;
    if (percent && end != text && *end == '%') end++;
    if (end == text || *end || !(value >= row->least && value <= row->most)) return false;
    *out = percent ? value / 100 : value;
    return true;
}

/* "20ms", as latencies are written; at most a day. */
static int take_time(const options *o, const option_row *row, const char *text, int64_t *out, double most)
{
    double ns = -1;
    prony_metrics *metrics = NULL;
    prony_status status = prony_metrics_create(&metrics, NULL);
    if (status == PRONY_OK) status = prony_metric_parse(prony_metrics_find(metrics, "latency"), text, &ns, NULL);
    prony_metrics_release(metrics);
    if (status == PRONY_OUT_OF_MEMORY) return option_values_no_memory(o);
    if (status != PRONY_OK || !(ns >= row->least) || ns > most) return option_values_refuse(o, row, text);
    *out = (int64_t)ns;
    return 0;
}

static int take_dim(const options *o, const option_row *row, char *text, void *array, size_t *count)
{
    char *value = cut_name_last(text);
    if (!value) return usage(o, "--%s needs NAME=N, got '%s'", row->name, text);
    prony_dim *dim = add_item(o, array, count, sizeof *dim);
    if (!dim) return EXIT_FAILED;
    dim->name = text;
    if (parse_int(value, (int64_t)row->least, INT64_MAX, &dim->value)) return 0;
    return usage(o, "--%s %s needs a number from %.0f, got '%s'", row->name, text, row->least, value);
}

static int add_export(options *o, prony_format format, const char *chart, const char *file)
{
    export_file *item = add_item(o, &o->files.exports, &o->files.export_count, sizeof *item);
    if (!item) return EXIT_FAILED;
    *item = (export_file){format, chart, file};
    return 0;
}

static int take_text(const options *o, const char *text, void *array, size_t *count)
{
    const char **item = add_item(o, array, count, sizeof *item);
    if (!item) return EXIT_FAILED;
    *item = text;
    return 0;
}

/* Stores the value in the row's field; the type says how the field looks (option_table.h). */
int option_take(options *o, const option_row *row, char *text)
{
    void *field = (char *)o + row->field;
    size_t *count = (size_t *)(void *)((char *)o + row->count_field);
    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_CHOICE:
        if (option_values_choice_of(row->choices, text, strlen(text)) < 0) return option_values_refuse(o, row, text);
        *(const char **)field = text;
        return 0;
    case OPTION_TEXT:
        *(const char **)field = text;
        return 0;
    case OPTION_CHOICES:
        return take_choices(o, row, text, field);
    case OPTION_INT:
        return parse_int(text, (int64_t)row->least, most_of(row), field) ? 0 : option_values_refuse(o, row, text);
    case OPTION_INTS:
        return int_list_parse(field, text, (int64_t)row->least, most_of(row), NULL)
                   ? 0
                   : option_values_refuse(o, row, text);
    case OPTION_NUMBER:
    case OPTION_PERCENT:
        return read_double(row, text, field) ? 0 : option_values_refuse(o, row, text);
    case OPTION_SECONDS:
        return parse_duration(text, field) ? 0 : option_values_refuse(o, row, text);
    case OPTION_TIME:
        return take_time(o, row, text, field, 86400e9);
    case OPTION_TEXTS:
        return take_text(o, text, field, count);
    case OPTION_DIMS:
        return take_dim(o, row, text, field, count);
    case OPTION_EXPORT:
        return add_export(o, (prony_format)row->least, NULL, text);
    default:
        return row->parse(o, row, text);
    }
}

int options_begin(options *o, const command_row *command)
{
    int status = 0;
    const option_row *row;
    for (size_t i = 0; !status && (row = option_at(i)); i++) /* numbers only, which are not cut */
        if (row->initial && command_takes(command, row)) status = option_take(o, row, (char *)(uintptr_t)row->initial);
    return status;
}

/* ---- rows with a parse function ---- */

static int take_threads(options *o, const option_row *row, const char *text, int automatic)
{
    int64_t value = automatic;
    if (strcmp(text, "auto") != 0 && !parse_int(text, 1, 1024, &value)) return option_values_refuse(o, row, text);
    *(int *)(void *)((char *)o + row->field) = (int)value;
    return 0;
}

int parse_threads(options *o, const option_row *row, char *text)
{
    return take_threads(o, row, text, 0);
}

int parse_workers(options *o, const option_row *row, char *text)
{
    return take_threads(o, row, text, PRONY_INTER_OP_AUTO);
}

int parse_thread_list(options *o, const option_row *row, char *text)
{
    if (!int_list_parse(&o->threads.intra_ops, text, 1, 1024, "auto")) return option_values_refuse(o, row, text);
    o->threads.intra_op = (int)o->threads.intra_ops.values[0];
    return 0;
}

int parse_worker_list(options *o, const option_row *row, char *text)
{
    int_list *list = &o->threads.inter_ops;
    if (!int_list_parse(list, text, 1, 1024, "auto")) return option_values_refuse(o, row, text);
    for (size_t i = 0; i < list->count; i++)
        if (list->values[i] == 0) list->values[i] = PRONY_INTER_OP_AUTO;
    o->threads.inter_op = (int)list->values[0];
    return 0;
}

int parse_batches(options *o, const option_row *row, char *text)
{
    if (!int_list_parse(&o->model.batches, text, 1, INT64_MAX, NULL)) return option_values_refuse(o, row, text);
    o->model.batch = o->model.batches.values[0];
    return 0;
}

int parse_precisions(options *o, const option_row *row, char *text)
{
    (void)row;
    o->precision.count = 0;
    for (char *name = text; name;) {
        char *next = strchr(name, ',');
        if (next) *next++ = '\0';
        if (take_text(o, name, &o->precision.names, &o->precision.count)) return EXIT_FAILED;
        name = next;
    }
    o->precision.name = o->precision.names[0];
    return 0;
}

int parse_affinity(options *o, const option_row *row, char *text)
{
    (void)row;
    prony_error error = {0};
    o->threads.affinity = text;
    return prony_affinity_check(text, &error) == PRONY_OK ? 0 : usage(o, "--%s", error.message);
}

int parse_named_shape(options *o, const option_row *row, char *text)
{
    char *value = cut_name_last(text);
    if (!value) return usage(o, "--shape needs NAME=SHAPE such as image=1x3x224x224, got '%s'", text);
    prony_named_shape *shape = add_item(o, &o->model.shapes, &o->model.shape_count, sizeof *shape);
    if (!shape) return EXIT_FAILED;
    shape->name = text;
    if (parse_shape(value, &shape->shape)) return 0;
    return usage(o, "--shape %s needs %s, got '%s'", text, row->wanted, value);
}

int parse_input(options *o, const option_row *row, char *text)
{
    char *file = cut_name(text);
    if (!file) return option_values_refuse(o, row, text);
    named_file *input = add_item(o, &o->model.inputs, &o->model.input_count, sizeof *input);
    if (!input) return EXIT_FAILED;
    *input = (named_file){text, file};
    return 0;
}

int parse_preprocess(options *o, const option_row *row, char *text)
{
    (void)row;
    prony_error error = {0};
    o->model.preprocess = true;
    o->model.preprocess_list = text;
    prony_status status = prony_image_options_parse(&o->model.image, text, &error);
    return status == PRONY_OK ? 0 : usage(o, "--preprocess %s", error.message);
}

/* "F" or "OUTPUT=F". */
int parse_against(options *o, const option_row *row, char *text)
{
    (void)row;
    char *file = cut_name(text);
    named_file *item = add_item(o, &o->accuracy.against, &o->accuracy.against_count, sizeof *item);
    if (!item) return EXIT_FAILED;
    *item = (named_file){file ? text : NULL, file ? file : text};
    return 0;
}

/* Tables are written after the measurement, so an invalid key has to be found here. */
int parse_filter(options *o, const option_row *row, char *text)
{
    o->shown.filter = text;
    if (strchr(text, '=') && option_values_choice_of(row->choices, text, strcspn(text, "=")) >= 0) return 0;
    return option_values_refuse(o, row, text);
}

int parse_metrics(options *o, const option_row *row, char *text)
{
    (void)row;
    prony_metrics *metrics = NULL;
    const char *rest = strcmp(text, "all") == 0 ? "" : text, *item;
    int status = prony_metrics_create(&metrics, NULL) == PRONY_OK ? 0 : option_values_no_memory(o);
    for (size_t length; !status && (length = next_item(&rest, ',', &item));) {
        bool found = false;
        for (size_t i = 0; i < prony_metrics_count(metrics) && !found; i++) {
            const char *key = prony_metrics_at(metrics, i)->key;
            found = strlen(key) == length && strncmp(key, item, length) == 0;
        }
        if (!found) status = usage(o, "--metrics: no metric '%.*s'; 'prony metrics' lists them", (int)length, item);
    }
    prony_metrics_release(metrics);
    o->shown.metrics = text;
    return status;
}

int parse_threshold(options *o, const option_row *row, char *text)
{
    (void)row;
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    prony_threshold threshold;
    if (take_text(o, text, &o->verdict.thresholds, &o->verdict.threshold_count)) return EXIT_FAILED;
    prony_status status = prony_metrics_create(&metrics, &error);
    if (status == PRONY_OK) status = prony_threshold_parse(&threshold, metrics, text, &error);
    prony_metrics_release(metrics);
    return status == PRONY_OK ? 0 : usage(o, "%s", error.message);
}

int parse_graph(options *o, const option_row *row, char *text)
{
    (void)row;
    size_t length = strlen(text);
    bool svg = length > 4 && strcmp(text + length - 4, ".svg") == 0;
    return add_export(o, svg ? PRONY_FORMAT_SVG : PRONY_FORMAT_DOT, svg ? "graph" : NULL, text);
}

int parse_chart(options *o, const option_row *row, char *text)
{
    char *file = cut_name(text);
    if (file && option_values_choice_of(row->choices, text, strlen(text)) >= 0)
        return add_export(o, PRONY_FORMAT_SVG, text, file);
    char charts[200];
    return usage(o, file ? "--svg: unknown chart '%s'; wanted %s" : "--svg needs CHART=FILE, got '%s'; charts: %s",
                 text, choice_list(row, charts, sizeof charts));
}

int parse_plot(options *o, const option_row *row, char *text)
{
    (void)row;
    return add_export(o, PRONY_FORMAT_SVG, "speedup", text);
}

int parse_memory_limit(options *o, const option_row *row, char *text)
{
    (void)row;
    o->limits.memory_limit = text;
    return check_memory_limit(o, "--memory-limit", text);
}

/* "400d", "12w" or a duration. */
int parse_age(options *o, const option_row *row, char *text)
{
    const size_t length = strlen(text);
    const char last = length ? text[length - 1] : '\0';
    const double unit = last == 'd' ? 86400 : last == 'w' ? 7 * 86400 : 1;
    if (unit > 1) text[length - 1] = '\0';
    const bool valid = parse_duration(text, &o->history.keep_seconds);
    const size_t digits = strspn(text, "0123456789.");
    if (valid && unit > 1) o->history.keep_seconds *= unit;
    if (unit > 1) text[length - 1] = last;
    if (valid && (unit <= 1 || digits == length - 1) && o->history.keep_seconds < 1e11) return 0;
    return usage(o, "'--%s' needs %s, got '%s'", row->name, row->wanted, text);
}

int parse_time_limit(options *o, const option_row *row, char *text)
{
    o->limits.time_limit = text;
    return take_time(o, row, text, &o->limits.time_limit_ns, 1e18);
}
