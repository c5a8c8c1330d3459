/* What stands behind each option: read, checked, and kept in `options`. */
#include "bench/load/load.h"
#include "bench/options/option_table.h"
#include "prony_judge.h"
#include "prony_quantize.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const scenario_names[] = {"single", "multi", "server", "offline", NULL};

static bool parse_threads(const char *text, int *out)
{
    int64_t v = 0;
    if (strcmp(text, "auto") != 0 && !parse_int(text, 1, 1024, &v)) return false;
    *out = (int)v;
    return true;
}

/* The subcommands that run a matrix of configurations. */
static bool takes_lists(const options *o)
{
    return strcmp(o->command, "bench") == 0 || strcmp(o->command, "scale") == 0;
}

/* Those that measure with several numbers of threads. */
static bool takes_thread_lists(const options *o)
{
    return takes_lists(o) || strcmp(o->command, "versus") == 0;
}

static int take_list(const options *o, int option, const char *argument, int_list *list, int *single)
{
    if (!int_list_parse(list, argument, 1, 1024, "auto"))
        return usage(o, "-%c '%s': numbers from 1 to 1024 such as 1,2,4-8, or auto", option, argument);
    *single = (int)list->values[0];
    return 0;
}

static int take_threads(options *o, char *argument)
{
    if (takes_thread_lists(o)) return take_list(o, 'x', argument, &o->intra_ops, &o->intra_op);
    if (parse_threads(argument, &o->intra_op)) return 0;
    return usage(o, "-x '%s': one number from 1 to 1024, or auto (lists are for a matrix of runs)", argument);
}

/* Where nothing is said of workers there is one; auto is something else. */
static int take_workers(options *o, char *argument)
{
    if (!takes_lists(o)) {
        if (!parse_threads(argument, &o->inter_op))
            return usage(o, "-y '%s': a number from 1 to 1024, or auto", argument);
        if (o->inter_op == 0) o->inter_op = PRONY_INTER_OP_AUTO;
        return 0;
    }
    int code = take_list(o, 'y', argument, &o->inter_ops, &o->inter_op);
    for (size_t i = 0; i < o->inter_ops.count; i++)
        if (o->inter_ops.values[i] == 0) o->inter_ops.values[i] = PRONY_INTER_OP_AUTO;
    if (o->inter_op == 0) o->inter_op = PRONY_INTER_OP_AUTO;
    return code;
}

static int take_replicas(options *o, char *argument)
{
    if (int_list_parse(&o->replicas, argument, 1, 1024, NULL)) return 0;
    return usage(o, "--replicas '%s': numbers from 1 to 1024 such as 1,2,4", argument);
}

static int take_batches(options *o, char *argument)
{
    if (!takes_lists(o))
        return parse_int(argument, 1, INT64_MAX, &o->batch) ? 0 : usage(o, "-b '%s': a number from 1", argument);
    if (!int_list_parse(&o->batches, argument, 1, INT64_MAX, NULL))
        return usage(o, "-b '%s': numbers from 1 such as 1,4,8", argument);
    o->batch = o->batches.values[0];
    return 0;
}

static int take_precisions(options *o, char *argument)
{
    o->precision = argument;
    if (!takes_lists(o) && strcmp(o->command, "eval") != 0 && strcmp(o->command, "recommend") != 0) return 0;
    o->precision_count = 0;
    for (char *part = argument; part;) {
        char *next = strchr(part, ',');
        if (next) *next++ = '\0';
        const char **list = realloc(o->precisions, (o->precision_count + 1) * sizeof *list);
        if (!list) return fail(o, "out of memory");
        o->precisions = list;
        list[o->precision_count++] = part;
        part = next;
    }
    o->precision = o->precisions[0];
    return 0;
}

static int take_levels(options *o, char *argument)
{
    static const struct {
        const char *name;
        unsigned level;
    } levels[] = {{"model", PRONY_LEVEL_MODEL},
                  {"layer", PRONY_LEVEL_LAYER},
                  {"operator", PRONY_LEVEL_OPERATOR},
                  {"module", PRONY_LEVEL_MODULE},
                  {"nested", PRONY_LEVEL_NESTED}};
    bool known = *argument;
    o->levels = 0;
    for (char *part = strtok(argument, ","); part && known; part = strtok(NULL, ",")) {
        size_t i = 0;
        while (i < sizeof levels / sizeof *levels && strcmp(part, levels[i].name) != 0) i++;
        known = i < sizeof levels / sizeof *levels;
        if (known) o->levels |= levels[i].level;
    }
    return known && o->levels ? 0 : usage(o, "--level: model, module, layer, operator, comma-separated");
}

/* Tables are written last, so a wrong key has to be found before anything is measured. */
#define SORT_KEYS                                                                                                      \
    "index, time, macs, madds, flops, special, int_ops, parameters, bytes, memory, count, rate, intensity, name"
#define FILTER_KEYS "name, op, module or kernel"
static const char *const sort_keys[] = {"index",   "time",    "macs",       "madds", "flops",
                                        "special", "int_ops", "parameters", "bytes", "memory",
                                        "count",   "rate",    "intensity",  "name",  NULL};
static const char *const filter_keys[] = {"name", "op", "module", "kernel", NULL};

static bool option_values_is_one_of(const char *text, size_t length, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == length && strncmp(*list, text, length) == 0) return true;
    return false;
}

static int take_sort(options *o, char *argument)
{
    o->sort = argument;
    return option_values_is_one_of(argument, strlen(argument), sort_keys)
               ? 0
               : usage(o, "--sort '%s': " SORT_KEYS, argument);
}

static int take_filter(options *o, char *argument)
{
    o->filter = argument;
    if (option_values_is_one_of(argument, strcspn(argument, "="), filter_keys) && strchr(argument, '=')) return 0;
    return usage(o, "--filter '%s': KEY=GLOB with KEY " FILTER_KEYS, argument);
}

static int take_preset(options *o, char *argument)
{
    o->count = argument;
    for (size_t i = 0; i < prony_count_preset_count(); i++)
        if (strcmp(prony_count_preset_at(i)->name, argument) == 0) return 0;
    return usage(o, "--count '%s': fvcore, deepspeed, onnx-tool, moduleprofiler, thop, torch or deeplite", argument);
}

static int option_values_no_memory(const options *o)
{
    return fail(o, "out of memory");
}

static int add_dim(options *o, prony_dim **dims, size_t *count, const char *name, const char *value, int64_t least)
{
    prony_dim *list = realloc(*dims, (*count + 1) * sizeof *list);
    if (!list) return option_values_no_memory(o);
    *dims = list;
    list[*count].name = name;
    if (!parse_int(value, least, INT64_MAX, &list[*count].value))
        return usage(o, "dimension '%s' cannot be '%s'", name, value);
    ++*count;
    return 0;
}

static int parse_pair(options *o, int option, char *argument)
{
    char *value = option == 'i' ? cut_name(argument) : cut_name_last(argument);
    if (!value) return usage(o, "'%s' is not NAME=VALUE", argument);
    if (option == 'i') {
        named_file *list = realloc(o->inputs, (o->input_count + 1) * sizeof *list);
        if (!list) return option_values_no_memory(o);
        o->inputs = list;
        list[o->input_count++] = (named_file){argument, value};
    } else if (option == OPT_DIM) {
        return add_dim(o, &o->dims, &o->dim_count, argument, value, 0);
    } else if (option == OPT_MAX_DIM) {
        return add_dim(o, &o->max_dims, &o->max_dim_count, argument, value, 1);
    } else {
        prony_named_shape *list = realloc(o->shapes, (o->shape_count + 1) * sizeof *list);
        if (!list) return option_values_no_memory(o);
        o->shapes = list;
        list[o->shape_count].name = argument;
        if (!parse_shape(value, &list[o->shape_count++].shape))
            return usage(o, "shape of '%s' is not like 1x3x224x224", argument);
    }
    return 0;
}

static int option_values_add_form(options *o, prony_format format, const char *chart, const char *file)
{
    form_file *list = realloc(o->forms, (o->form_count + 1) * sizeof *list);
    if (!list) return option_values_no_memory(o);
    o->forms = list;
    list[o->form_count++] = (form_file){format, chart, file};
    return 0;
}

static int add_graph(options *o, char *file)
{
    size_t length = strlen(file);
    bool svg = length > 4 && strcmp(file + length - 4, ".svg") == 0;
    return option_values_add_form(o, svg ? PRONY_FORMAT_SVG : PRONY_FORMAT_DOT, svg ? "graph" : NULL, file);
}

static int add_chart(options *o, char *argument)
{
    char *file = cut_name(argument);
    if (!file) return usage(o, "--svg '%s' is not CHART=FILE", argument);
    bool study = strcmp(o->command, "scale") == 0;
    for (const char *const *name = study ? prony_study_chart_names() : prony_chart_names(); *name; name++)
        if (strcmp(*name, argument) == 0) return option_values_add_form(o, PRONY_FORMAT_SVG, argument, file);
    if (study) return usage(o, "--svg '%s': speedup, efficiency, operators or timeline", argument);
    return usage(o, "--svg '%s': layers, types, roofline, memory, latency, modules, graph or accuracy", argument);
}

static int add_tensor(options *o, const char ***list, size_t *count, const char *name)
{
    const char **grown = realloc(*list, (*count + 1) * sizeof *grown);
    if (!grown) return option_values_no_memory(o);
    *list = grown;
    grown[(*count)++] = name;
    return 0;
}

static int add_from(options *o, char *argument)
{
    return add_tensor(o, &o->from, &o->from_count, argument);
}

static int add_to(options *o, char *argument)
{
    return add_tensor(o, &o->to, &o->to_count, argument);
}

/* "F" or "OUTPUT=F". */
static int add_against(options *o, char *argument)
{
    char *file = cut_name(argument);
    named_file *list = realloc(o->against, (o->against_count + 1) * sizeof *list);
    if (!list) return option_values_no_memory(o);
    o->against = list;
    list[o->against_count++] = (named_file){file ? argument : NULL, file ? file : argument};
    return 0;
}

static int add_plot(options *o, char *argument)
{
    return option_values_add_form(o, PRONY_FORMAT_SVG, "speedup", argument);
}

static int take_memory_limit(options *o, char *argument)
{
    o->memory_limit = argument;
    return check_memory_limit(o, "--memory-limit", argument);
}

static int add_threshold(options *o, char *argument)
{
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    prony_threshold threshold;
    const char **list = realloc(o->thresholds, (o->threshold_count + 1) * sizeof *list);
    if (!list) return option_values_no_memory(o);
    o->thresholds = list;
    list[o->threshold_count++] = argument;
    prony_status status = prony_metrics_create(&metrics, &error);
    if (status == PRONY_OK) status = prony_threshold_parse(&threshold, metrics, argument, &error);
    prony_metrics_release(metrics);
    return status == PRONY_OK ? 0 : usage(o, "%s", error.message);
}

static int add_metrics(options *o, char *argument)
{
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    int status = prony_metrics_create(&metrics, &error) == PRONY_OK ? 0 : option_values_no_memory(o);
    const bool every = strcmp(argument, "all") == 0;
    for (const char *at = argument; !status && *at && !every; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        bool found = false;
        for (size_t i = 0; i < prony_metrics_count(metrics) && !found; i++) {
            const char *key = prony_metrics_at(metrics, i)->key;
            found = strlen(key) == length && strncmp(key, at, length) == 0;
        }
        if (!found) status = usage(o, "--metrics: there is no metric '%.*s'", (int)length, at);
        at += length;
    }
    prony_metrics_release(metrics);
    o->metrics = argument;
    return status;
}

/* "METRIC:VALUE", unless there is a file of that name. */
bool is_more_threshold(const char *word)
{
    size_t key = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return key && word[key] == ':' && access(word, F_OK) != 0;
}

/* In per cent of the first value. 0 is the default for the library, so nothing at all is the smallest there is. */
static int take_noise(options *o, char *argument)
{
    char *end;
    double percent = strtod(argument, &end);
    if (*end == '%') end++;
    if (end == argument || *end || !(percent >= 0 && percent < 1000))
        return usage(o, "--noise '%s': per cent from 0", argument);
    o->noise = percent > 0 ? percent / 100 : DBL_MIN;
    return 0;
}

static int take_preprocess(options *o, char *argument)
{
    prony_error error = {0};
    o->preprocess = true;
    o->preprocess_list = argument;
    prony_status status = prony_image_options_parse(&o->image, argument, &error);
    return status == PRONY_OK ? 0 : usage(o, "--preprocess %s", error.message);
}

static int take_method(options *o, char *argument)
{
    prony_calibration_method method;
    o->calibrate_method = argument;
    return prony_calibration_method_find(&method, argument)
               ? 0
               : usage(o, "--calibrate-method '%s': minmax, percentile or entropy", argument);
}

/* A part of the outputs' range, in per cent. */
static int take_keep_accuracy(options *o, char *argument)
{
    char *end;
    double percent = strtod(argument, &end);
    if (*end == '%') end++;
    if (end == argument || *end || !(percent > 0 && percent < 100))
        return usage(o, "--keep-accuracy '%s': per cent above 0 such as 0.5%%", argument);
    o->keep_accuracy = percent / 100;
    return 0;
}

static int take_affinity(options *o, char *argument)
{
    prony_error error = {0};
    o->affinity = argument;
    return prony_affinity_check(argument, &error) == PRONY_OK ? 0 : usage(o, "--%s", error.message);
}

static int take_scenario(options *o, char *argument)
{
    o->scenario = argument;
    for (const char *const *name = scenario_names; *name; name++)
        if (strcmp(*name, argument) == 0) return 0;
    return usage(o, "--scenario '%s': single, multi, server or offline", argument);
}

/* "20ms", as latencies are written. */
static int parse_time(const options *o, const char *argument, double *ns, bool *known)
{
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    prony_status status = prony_metrics_create(&metrics, &error);
    if (status == PRONY_OK) status = prony_metric_parse(prony_metrics_find(metrics, "latency"), argument, ns, &error);
    prony_metrics_release(metrics);
    *known = status == PRONY_OK;
    return status == PRONY_OUT_OF_MEMORY ? option_values_no_memory(o) : 0;
}

static int take_rate(options *o, char *argument)
{
    char *end;
    o->rate = strtod(argument, &end);
    return *end || end == argument || !(o->rate >= 1e-6 && o->rate <= 1e9)
               ? usage(o, "--rate '%s': arrivals per second, from 1e-6 to 1e9", argument)
               : 0;
}

static int take_percentile(options *o, char *argument)
{
    char *end;
    double percent = strtod(argument, &end);
    if (*end || end == argument || !(percent >= 50 && percent <= 99.9))
        return usage(o, "--percentile '%s': a number from 50 to 99.9", argument);
    o->percentile = percent / 100;
    return 0;
}

static int take_time_limit(options *o, char *argument)
{
    double ns = 0;
    bool known;
    int code = parse_time(o, argument, &ns, &known);
    if (code) return code;
    if (!known || !(ns >= 1) || ns > 1e18)
        return usage(o, "--time-limit '%s': a time above 0 such as 60s or 500ms", argument);
    o->time_limit = argument;
    o->time_limit_ns = (int64_t)ns;
    return 0;
}

/* ---- the rows ---- */

typedef enum kind { CALL, FLAG, TEXT, WHOLE, SECONDS, LATENCY, PAIR, FORM } kind;

/* WHOLE: an integer from `least` to `most`. SECONDS: a double above 0. LATENCY: nanoseconds from `least` to a day.
 * PAIR: NAME=VALUE. FORM: a file in the format `least`. CALL: what the function makes of it. */
static const struct row {
    int option;
    kind kind;
    size_t at;
    int64_t least, most;
    const char *name, *wanted; /* of the message */
    int (*call)(options *o, char *argument);
} rows[] = {
#define AT(field) offsetof(options, field)
#define CALLS(f) CALL, 0, 0, 0, NULL, NULL, f
#define FLAGS(field) FLAG, AT(field), 0, 0, NULL, NULL, NULL
#define TEXTS(field) TEXT, AT(field), 0, 0, NULL, NULL, NULL
#define FORMS(format) FORM, 0, format, 0, NULL, NULL, NULL
#define PAIRS PAIR, 0, 0, 0, NULL, NULL, NULL
    {'x', CALLS(take_threads)},
    {'y', CALLS(take_workers)},
    {'b', CALLS(take_batches)},
    {'p', CALLS(take_precisions)},
    {'S', WHOLE, AT(seed), 0, INT64_MAX, "-S", "a number from 0", NULL},
    {'r', WHOLE, AT(runs), 1, 100000000, "-r", "a number from 1 to 1e8", NULL},
    {'w', WHOLE, AT(warmup), 0, 100000000, "-w", "a number from 0 to 1e8", NULL},
    {'t', SECONDS, AT(seconds), 0, 0, "-t", "seconds above 0, or 500ms, 10m", NULL},
    {'i', PAIRS},
    {OPT_DIM, PAIRS},
    {OPT_MAX_DIM, PAIRS},
    {OPT_SHAPE, PAIRS},
    {'o', TEXTS(output)},
    {'q', FLAGS(quiet)},
    {OPT_ACCURACY, FLAGS(accuracy)},
    {OPT_ACCURACY_SAMPLES, WHOLE, AT(accuracy_samples), 1, INT32_MAX, "--accuracy-samples", "a number from 1", NULL},
    {OPT_AFFINITY, CALLS(take_affinity)},
    {OPT_AGAINST, CALLS(add_against)},
    {OPT_ALL, FLAGS(all)},
    {OPT_BATCH_WINDOW, LATENCY, AT(batch_window_ns), 0, 0, "--batch-window",
     "a time from 0 with its unit, such as 20ms", NULL},
    {OPT_BARRIER, FLAGS(barrier)},
    {OPT_BUDGET, SECONDS, AT(budget), 0, 0, "--budget", "a time such as 90s, 10m or 1h", NULL},
    {OPT_CALIBRATE, TEXTS(calibrate)},
    {OPT_CALIBRATE_METHOD, CALLS(take_method)},
    {OPT_COPY_MODEL, FLAGS(copy_model)},
    {OPT_COUNT, CALLS(take_preset)},
    {OPT_COUNTERS, FLAGS(counters)},
    {OPT_CSV, FORMS(PRONY_FORMAT_CSV)},
    {OPT_DATA_FOLDER, TEXTS(data_folder)},
    {OPT_DEPTH, WHOLE, AT(depth), 1, 1000, "--depth", "a number from 1", NULL},
    {OPT_DETAILED, FLAGS(detailed)},
    {OPT_DOT, CALLS(add_graph)},
    {OPT_FILTER, CALLS(take_filter)},
    {OPT_FOLDED, FORMS(PRONY_FORMAT_FOLDED)},
    {OPT_FRESH, FLAGS(fresh)},
    {OPT_FROM, CALLS(add_from)},
    {OPT_HTML, FORMS(PRONY_FORMAT_HTML)},
    {OPT_IGNORE_LOAD, FLAGS(ignore_load)},
    {OPT_JSON, TEXTS(json)},
    {OPT_KEEP_ACCURACY, CALLS(take_keep_accuracy)},
    {OPT_LABELS, TEXTS(labels)},
    {OPT_LATENCY_BOUND, LATENCY, AT(latency_bound_ns), 1, 0, "--latency-bound",
     "a time above 0 with its unit, such as 20ms", NULL},
    {OPT_LATEX, FORMS(PRONY_FORMAT_LATEX)},
    {OPT_LEVEL, CALLS(take_levels)},
    {OPT_MAX_BATCH, WHOLE, AT(max_batch), 1, 65536, "--max-batch", "a number from 1 to 65536", NULL},
    {OPT_MAX_LOOP_TRIPS, WHOLE, AT(max_loop_trips), 1, INT64_MAX, "--max-loop-trips", "a number from 1", NULL},
    {OPT_MEMORY, FLAGS(memory)},
    {OPT_MEMORY_LIMIT, CALLS(take_memory_limit)},
    {OPT_METRICS, CALLS(add_metrics)},
    {OPT_NOISE, CALLS(take_noise)},
    {OPT_NO_COLOR, FLAGS(no_color)},
    {OPT_NO_HELP, FLAGS(no_help)},
    {OPT_NO_PROGRESS, FLAGS(no_progress)},
    {OPT_NO_REUSE, FLAGS(no_reuse)},
    {OPT_NO_REWRITES, FLAGS(no_rewrites)},
    {OPT_ONE_PROCESS, FLAGS(one_process)},
    {OPT_ORT_LIB, TEXTS(ort_lib)},
    {OPT_OUTPUT_DIR, TEXTS(output_dir)},
    {OPT_PERCENTILE, CALLS(take_percentile)},
    {OPT_PLOT, CALLS(add_plot)},
    {OPT_POWER_OF_TWO, FLAGS(power_of_two)},
    {OPT_PREPROCESS, CALLS(take_preprocess)},
    {OPT_PROCESSES, WHOLE, AT(processes), 1, 1000, "--processes", "a number from 1 to 1000", NULL},
    {OPT_RATE, CALLS(take_rate)},
    {OPT_REFERENCE, TEXTS(reference)},
    {OPT_REPEAT, TEXTS(repeat)},
    {OPT_REPLICAS, CALLS(take_replicas)},
    {OPT_RESUME, FLAGS(resume)},
    {OPT_OVERWRITE, FLAGS(overwrite)},
    {OPT_SAMPLES_PER_QUERY, WHOLE, AT(samples_per_query), 1, 65536, "--samples-per-query", "a number from 1 to 65536",
     NULL},
    {OPT_SCENARIO, CALLS(take_scenario)},
    {OPT_SORT, CALLS(take_sort)},
    {OPT_STREAMS, WHOLE, AT(streams), 1, 1024, "--streams", "a number from 1 to 1024", NULL},
    {OPT_STRICT, FLAGS(strict)},
    {OPT_SVG, CALLS(add_chart)},
    {OPT_THRESHOLD, CALLS(add_threshold)},
    {OPT_TIMEOUT, SECONDS, AT(timeout), 0, 0, "--timeout", "a time such as 90s, 10m or 1h", NULL},
    {OPT_TIME_LIMIT, CALLS(take_time_limit)},
    {OPT_TO, CALLS(add_to)},
    {OPT_TOP, WHOLE, AT(top), 1, INT32_MAX, "--top", "a number from 1", NULL},
    {OPT_TOPK, WHOLE, AT(topk), 1, 1000, "--topk", "a number from 1 to 1000", NULL},
    {OPT_TUNE, FLAGS(tune)},
    {OPT_TRACE, FORMS(PRONY_FORMAT_TRACE)},
    {OPT_WEAK, FLAGS(weak)},
    {OPT_WITH_LOAD, FLAGS(with_load)},
};

/* Each long option but --version has a row, and eleven have a letter alone. */
_Static_assert(sizeof rows / sizeof *rows == OPT_NONE - OPT_AFFINITY - 1 + 11,
               "an option is read by no row, or by two");

static int option_values_take_number(options *o, const struct row *row, const char *argument)
{
    void *field = (char *)o + row->at;
    double ns = -1;
    bool known;
    if (row->kind == WHOLE)
        known = parse_int(argument, row->least, row->most, field);
    else if (row->kind == SECONDS)
        known = parse_duration(argument, field);
    else {
        int code = parse_time(o, argument, &ns, &known);
        if (code) return code;
        known = known && ns >= (double)row->least && ns <= 86400e9;
        if (known) *(int64_t *)field = (int64_t)ns;
    }
    return known ? 0 : usage(o, "%s '%s': %s", row->name, argument, row->wanted);
}

int option_take(options *o, int option, char *argument)
{
    const struct row *row = rows;
    while (row < rows + sizeof rows / sizeof *rows && row->option != option) row++;
    if (row == rows + sizeof rows / sizeof *rows) return usage(o, "option %d is not in the table", option);
    switch (row->kind) {
    case CALL:
        return row->call(o, argument);
    case FLAG:
        *(bool *)((char *)o + row->at) = true;
        return 0;
    case TEXT:
        *(const char **)((char *)o + row->at) = argument;
        return 0;
    case PAIR:
        return parse_pair(o, option, argument);
    case FORM:
        return option_values_add_form(o, (prony_format)row->least, NULL, argument);
    default:
        return option_values_take_number(o, row, argument);
    }
}
