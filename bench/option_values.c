/* What stands behind each option: read, checked, and kept in `options`. */
#include "bench/load.h"
#include "bench/option_table.h"
#include "prony_judge.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int usage(const options *o, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "prony%s%s: ", o->command ? " " : "", o->command ? o->command : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nTry 'prony --help'.\n");
    return EXIT_USAGE;
}

/* "5000" or "5k": a suffix k, M or G multiplies. */
static bool parse_int(const char *text, int64_t min, int64_t max, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10), factor = 1;
    if (errno || end == text) return false;
    if (*end && !end[1]) factor = *end == 'k' || *end == 'K' ? 1000 : *end == 'M' ? 1000000 : *end == 'G' ? 1000000000 : 0;
    else if (*end) factor = 0;
    if (!factor || __builtin_mul_overflow(v, factor, &v) || v < min || v > max) return false;
    *out = v;
    return true;
}

bool parse_duration(const char *text, double *seconds)
{
    static const struct {
        const char *suffix;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"sec", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char *end;
    double v = strtod(text, &end);
    if (end == text || !(v > 0) || !isfinite(v)) return false;
    while (*end == ' ') end++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].suffix) != 0) continue;
        *seconds = v * units[i].seconds;
        return true;
    }
    return false;
}

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

static int parse_thread_list(const options *o, int option, const char *argument, int_list *list, int *single)
{
    if (!int_list_parse(list, argument, 1, 1024, "auto"))
        return usage(o, "-%c '%s': numbers from 1 to 1024 such as 1,2,4-8, or auto", option, argument);
    *single = (int)list->values[0];
    return 0;
}

/* Where nothing is said of workers there is one; auto is something else. */
static int parse_workers(options *o, const char *argument)
{
    if (!takes_lists(o)) {
        if (!parse_threads(argument, &o->inter_op))
            return usage(o, "-y '%s': a number from 1 to 1024, or auto", argument);
        if (o->inter_op == 0) o->inter_op = PRONY_INTER_OP_AUTO;
        return 0;
    }
    int code = parse_thread_list(o, 'y', argument, &o->inter_ops, &o->inter_op);
    for (size_t i = 0; i < o->inter_ops.count; i++)
        if (o->inter_ops.values[i] == 0) o->inter_ops.values[i] = PRONY_INTER_OP_AUTO;
    if (o->inter_op == 0) o->inter_op = PRONY_INTER_OP_AUTO;
    return code;
}

static int parse_batches(options *o, const char *argument)
{
    if (!int_list_parse(&o->batches, argument, 1, INT64_MAX, NULL))
        return usage(o, "-b '%s': numbers from 1 such as 1,4,8", argument);
    o->batch = o->batches.values[0];
    return 0;
}

static int parse_precisions(options *o, char *argument)
{
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

/* "2GiB", "1.5 GB", "4096". */
static bool parse_bytes(const char *text, uint64_t *out)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1},        {"B", 1},         {"kB", 1000},    {"KB", 1000},
                 {"MB", 1000000}, {"GB", 1000000000}, {"TB", 1000000000000}, {"KiB", UINT64_C(1) << 10},
                 {"MiB", UINT64_C(1) << 20}, {"GiB", UINT64_C(1) << 30}, {"TiB", UINT64_C(1) << 40}};
    uint64_t whole = 0, part = 0, scale = 1;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole))
            return false;
    if (at == text) return false;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9' && scale < 1000000; at++, scale *= 10) part = part * 10 + (uint64_t)(*at - '0');
    at += *at == ' ';
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        if (strcmp(units[u].unit, at) != 0) continue;
        return !__builtin_mul_overflow(whole, units[u].bytes, out) &&
               !__builtin_add_overflow(*out, units[u].bytes / scale * part, out) && *out > 0;
    }
    return false;
}

/* NAME=REST; cuts the argument in place. */
static char *cut_name(char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1]) return NULL;
    *equals = 0;
    return equals + 1;
}

static bool parse_shape(char *text, prony_shape *out)
{
    *out = (prony_shape){0};
    if (strcmp(text, "scalar") == 0) return true;
    for (char *part = text; part;) {
        char *next = strchr(part, 'x');
        if (next) *next++ = 0;
        if (out->rank == PRONY_MAX_RANK || !parse_int(part, 0, INT64_MAX, &out->dim[out->rank])) return false;
        out->rank++;
        part = next;
    }
    return true;
}

static bool parse_levels(char *text, unsigned *out)
{
    *out = 0;
    for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) {
        if (strcmp(part, "model") == 0)
            *out |= PRONY_LEVEL_MODEL;
        else if (strcmp(part, "layer") == 0)
            *out |= PRONY_LEVEL_LAYER;
        else if (strcmp(part, "operator") == 0)
            *out |= PRONY_LEVEL_OPERATOR;
        else if (strcmp(part, "module") == 0)
            *out |= PRONY_LEVEL_MODULE;
        else if (strcmp(part, "nested") == 0)
            *out |= PRONY_LEVEL_NESTED;
        else
            return false;
    }
    return *out != 0;
}

/* Tables are written last, so a wrong key has to be found before anything is measured. */
#define SORT_KEYS                                                                                                      \
    "index, time, macs, madds, flops, special, int_ops, parameters, bytes, memory, count, rate, intensity, name"
#define FILTER_KEYS "name, op, module or kernel"
static const char *const sort_keys[] = {"index",   "time",    "macs",       "madds", "flops",
                                        "special", "int_ops", "parameters", "bytes", "memory",
                                        "count",   "rate",    "intensity",  "name",  NULL};
static const char *const filter_keys[] = {"name", "op", "module", "kernel", NULL};

static bool is_one_of(const char *text, size_t length, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == length && strncmp(*list, text, length) == 0) return true;
    return false;
}

static bool is_preset(const char *name)
{
    for (size_t i = 0; i < prony_count_preset_count(); i++)
        if (strcmp(prony_count_preset_at(i)->name, name) == 0) return true;
    return false;
}

static int no_memory(const options *o)
{
    return fail(o, "out of memory");
}

static int parse_pair(options *o, int option, char *argument)
{
    char *value = cut_name(argument);
    if (!value) return usage(o, "'%s' is not NAME=VALUE", argument);
    if (option == 'i') {
        named_file *list = realloc(o->inputs, (o->input_count + 1) * sizeof *list);
        if (!list) return no_memory(o);
        o->inputs = list;
        list[o->input_count++] = (named_file){argument, value};
    } else if (option == OPT_DIM) {
        prony_dim *list = realloc(o->dims, (o->dim_count + 1) * sizeof *list);
        if (!list) return no_memory(o);
        o->dims = list;
        list[o->dim_count].name = argument;
        if (!parse_int(value, 0, INT64_MAX, &list[o->dim_count++].value))
            return usage(o, "dimension '%s' cannot be '%s'", argument, value);
    } else {
        prony_named_shape *list = realloc(o->shapes, (o->shape_count + 1) * sizeof *list);
        if (!list) return no_memory(o);
        o->shapes = list;
        list[o->shape_count].name = argument;
        if (!parse_shape(value, &list[o->shape_count++].shape))
            return usage(o, "shape of '%s' is not like 1x3x224x224", argument);
    }
    return 0;
}

static int add_form(options *o, prony_format format, const char *chart, const char *file)
{
    form_file *list = realloc(o->forms, (o->form_count + 1) * sizeof *list);
    if (!list) return no_memory(o);
    o->forms = list;
    list[o->form_count++] = (form_file){format, chart, file};
    return 0;
}

static int add_graph(options *o, const char *file)
{
    size_t length = strlen(file);
    bool svg = length > 4 && strcmp(file + length - 4, ".svg") == 0;
    return add_form(o, svg ? PRONY_FORMAT_SVG : PRONY_FORMAT_DOT, svg ? "graph" : NULL, file);
}

static int add_chart(options *o, char *argument)
{
    char *file = cut_name(argument);
    if (!file) return usage(o, "--svg '%s' is not CHART=FILE", argument);
    bool study = strcmp(o->command, "scale") == 0;
    for (const char *const *name = study ? prony_study_chart_names() : prony_chart_names(); *name; name++)
        if (strcmp(*name, argument) == 0) return add_form(o, PRONY_FORMAT_SVG, argument, file);
    if (study) return usage(o, "--svg '%s': speedup, efficiency, operators or timeline", argument);
    return usage(o, "--svg '%s': layers, types, roofline, memory, latency, modules or graph", argument);
}

static int add_tensor(options *o, const char ***list, size_t *count, const char *name)
{
    const char **grown = realloc(*list, (*count + 1) * sizeof *grown);
    if (!grown) return no_memory(o);
    *list = grown;
    grown[(*count)++] = name;
    return 0;
}

static int add_threshold(options *o, const char *argument)
{
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    prony_threshold threshold;
    const char **list = realloc(o->thresholds, (o->threshold_count + 1) * sizeof *list);
    if (!list) return no_memory(o);
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
    int status = prony_metrics_create(&metrics, &error) == PRONY_OK ? 0 : no_memory(o);
    for (const char *at = argument; !status && *at; at += strspn(at, ",")) {
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
static int parse_noise(options *o, const char *argument)
{
    char *end;
    double percent = strtod(argument, &end);
    if (*end == '%') end++;
    if (end == argument || *end || !(percent >= 0 && percent < 1000))
        return usage(o, "--noise '%s': per cent from 0", argument);
    o->noise = percent > 0 ? percent / 100 : DBL_MIN;
    return 0;
}

static int take_duration(const options *o, const char *name, const char *argument, double *out)
{
    return parse_duration(argument, out) ? 0 : usage(o, "--%s '%s': a time such as 90s, 10m or 1h", name, argument);
}

static int parse_preprocess(options *o, const char *argument)
{
    prony_error error = {0};
    o->preprocess = true;
    o->preprocess_list = argument;
    prony_status status = prony_image_options_parse(&o->image, argument, &error);
    return status == PRONY_OK ? 0 : usage(o, "--preprocess %s", error.message);
}

static int parse_affinity(options *o, const char *argument)
{
    prony_error error = {0};
    o->affinity = argument;
    return prony_affinity_check(argument, &error) == PRONY_OK ? 0 : usage(o, "--%s", error.message);
}

static int parse_scenario(options *o, const char *argument)
{
    o->scenario = argument;
    for (const char *const *name = scenario_names; *name; name++)
        if (strcmp(*name, argument) == 0) return 0;
    return usage(o, "--scenario '%s': single, multi, server or offline", argument);
}

static int parse_count(options *o, const char *name, const char *argument, int64_t most, int64_t *out)
{
    return parse_int(argument, 1, most, out) ? 0 : usage(o, "--%s '%s': a number from 1 to %lld", name, argument, (long long)most);
}

/* "20ms"; at most a day. */
static int parse_time(options *o, const char *name, const char *argument, int64_t least, int64_t *out)
{
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    double ns = -1;
    prony_status status = prony_metrics_create(&metrics, &error);
    if (status == PRONY_OK)
        status = prony_metric_parse(prony_metrics_find(metrics, "latency"), argument, &ns, &error);
    prony_metrics_release(metrics);
    if (status == PRONY_OUT_OF_MEMORY) return no_memory(o);
    if (status != PRONY_OK || !(ns >= (double)least && ns <= 86400e9))
        return usage(o, "--%s '%s': a time %s with its unit, such as 20ms", name, argument, least ? "above 0" : "from 0");
    *out = (int64_t)ns;
    return 0;
}

static int parse_rate(options *o, const char *argument)
{
    char *end;
    o->rate = strtod(argument, &end);
    return *end || end == argument || !(o->rate >= 1e-6 && o->rate <= 1e9)
               ? usage(o, "--rate '%s': arrivals per second, from 1e-6 to 1e9", argument)
               : 0;
}

static int parse_percentile(options *o, const char *argument)
{
    char *end;
    double percent = strtod(argument, &end);
    if (*end || end == argument || !(percent >= 50 && percent <= 99.9))
        return usage(o, "--percentile '%s': a number from 50 to 99.9", argument);
    o->percentile = percent / 100;
    return 0;
}

static int parse_time_limit(options *o, const char *argument)
{
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    double ns = 0;
    if (prony_metrics_create(&metrics, &error) != PRONY_OK) return no_memory(o);
    prony_status status = prony_metric_parse(prony_metrics_find(metrics, "latency"), argument, &ns, &error);
    prony_metrics_release(metrics);
    if (status != PRONY_OK || !(ns >= 1) || ns > 1e18)
        return usage(o, "--time-limit '%s': a time above 0 such as 60s or 500ms", argument);
    o->time_limit = argument;
    o->time_limit_ns = (int64_t)ns;
    return 0;
}

static int check_memory_limit(const options *o, const char *who, const char *text)
{
    uint64_t bytes;
    if (strcmp(text, "none") == 0 || parse_bytes(text, &bytes)) return 0;
    return usage(o, "%s '%s': a size such as 2GiB, or none", who, text);
}

/* What a process of its own may leave to others: libraries, stacks and what the accounting does not see. */
static uint64_t usual_limit(void)
{
    uint64_t available = prony_memory_available(), margin = available / 16;
    if (margin < UINT64_C(64) << 20) margin = UINT64_C(64) << 20;
    return available / 2 > margin ? available - margin : available - available / 2;
}

int set_memory_limit(const options *o)
{
    const char *text = o->memory_limit;
    uint64_t bytes = 0;
    if (!text) {
        text = getenv("PRONY_MEMORY_LIMIT");
        if (text && !*text) text = NULL;
        int status = text ? check_memory_limit(o, "PRONY_MEMORY_LIMIT", text) : 0;
        if (status) return status;
    }
    if (!text)
        bytes = usual_limit();
    else if (strcmp(text, "none") != 0)
        (void)parse_bytes(text, &bytes);
    prony_memory_set_limit(bytes);
    return 0;
}

int option_take(options *o, int option, char *argument)
{
    int64_t v;
    switch (option) {
    case 'x':
        if (takes_lists(o)) return parse_thread_list(o, option, argument, &o->intra_ops, &o->intra_op);
        return parse_threads(argument, &o->intra_op)
                   ? 0
                   : usage(o, "-x '%s': one number from 1 to 1024, or auto (lists are for a matrix of runs)", argument);
    case 'y':
        return parse_workers(o, argument);
    case 'b':
        if (takes_lists(o)) return parse_batches(o, argument);
        return parse_int(argument, 1, INT64_MAX, &o->batch) ? 0 : usage(o, "-b '%s': a number from 1", argument);
    case 'S':
        if (!parse_int(argument, 0, INT64_MAX, &v)) return usage(o, "-S '%s': a number from 0", argument);
        o->seed = (uint64_t)v;
        return 0;
    case 'r':
        return parse_int(argument, 1, 100000000, &o->runs) ? 0 : usage(o, "-r '%s': a number from 1 to 1e8", argument);
    case 'w':
        return parse_int(argument, 0, 100000000, &o->warmup) ? 0
                                                             : usage(o, "-w '%s': a number from 0 to 1e8", argument);
    case 't':
        return parse_duration(argument, &o->seconds) ? 0 : usage(o, "-t '%s': seconds above 0, or 500ms, 10m", argument);
    case OPT_MEMORY_LIMIT:
        o->memory_limit = argument;
        return check_memory_limit(o, "--memory-limit", argument);
    case OPT_ALL:
        o->all = true;
        return 0;
    case OPT_TOP:
        return parse_int(argument, 1, INT32_MAX, &o->top) ? 0 : usage(o, "--top '%s': a number from 1", argument);
    case OPT_LEVEL:
        return parse_levels(argument, &o->levels)
                   ? 0
                   : usage(o, "--level: model, module, layer, operator, comma-separated");
    case 'i':
    case OPT_DIM:
    case OPT_SHAPE:
        return parse_pair(o, option, argument);
    case 'p':
        if (takes_lists(o)) return parse_precisions(o, argument);
        o->precision = argument;
        return 0;
    case OPT_AFFINITY:
        return parse_affinity(o, argument);
    case OPT_SORT:
        o->sort = argument;
        return is_one_of(argument, strlen(argument), sort_keys) ? 0 : usage(o, "--sort '%s': " SORT_KEYS, argument);
    case OPT_FILTER:
        o->filter = argument;
        return is_one_of(argument, strcspn(argument, "="), filter_keys) && strchr(argument, '=')
                   ? 0
                   : usage(o, "--filter '%s': KEY=GLOB with KEY " FILTER_KEYS, argument);
    case OPT_COUNT:
        o->count = argument;
        return is_preset(argument) ? 0
                                   : usage(o,
                                           "--count '%s': fvcore, deepspeed, onnx-tool, moduleprofiler, thop, torch "
                                           "or deeplite",
                                           argument);
    case OPT_DEPTH:
        return parse_int(argument, 1, 1000, &o->depth) ? 0 : usage(o, "--depth '%s': a number from 1", argument);
    case OPT_THRESHOLD:
        return add_threshold(o, argument);
    case OPT_IGNORE_LOAD:
        o->ignore_load = true;
        return 0;
    case OPT_ONE_PROCESS:
        o->one_process = true;
        return 0;
    case OPT_STRICT:
        o->strict = true;
        return 0;
    case OPT_NOISE:
        return parse_noise(o, argument);
    case OPT_PREPROCESS:
        return parse_preprocess(o, argument);
    case OPT_TOPK:
        return parse_int(argument, 1, 1000, &o->topk) ? 0 : usage(o, "--topk '%s': a number from 1 to 1000", argument);
    case OPT_TIME_LIMIT:
        return parse_time_limit(o, argument);
    case OPT_MAX_LOOP_TRIPS:
        return parse_int(argument, 1, INT64_MAX, &o->max_loop_trips)
                   ? 0
                   : usage(o, "--max-loop-trips '%s': a number from 1", argument);
    case OPT_COPY_MODEL:
        o->copy_model = true;
        return 0;
    case OPT_LABELS:
        o->labels = argument;
        return 0;
    case OPT_PROCESSES:
        return parse_int(argument, 1, 1000, &o->processes)
                   ? 0
                   : usage(o, "--processes '%s': a number from 1 to 1000", argument);
    case OPT_BUDGET:
        return take_duration(o, "budget", argument, &o->budget);
    case OPT_TIMEOUT:
        return take_duration(o, "timeout", argument, &o->timeout);
    case OPT_REPEAT:
        o->repeat = argument;
        return 0;
    case OPT_RESUME:
        o->resume = true;
        return 0;
    case OPT_WEAK:
        o->weak = true;
        return 0;
    case OPT_PLOT:
        return add_form(o, PRONY_FORMAT_SVG, "speedup", argument);
    case OPT_METRICS:
        return add_metrics(o, argument);
    case OPT_JSON:
        o->json = argument;
        return 0;
    case OPT_CSV:
        return add_form(o, PRONY_FORMAT_CSV, NULL, argument);
    case OPT_HTML:
        return add_form(o, PRONY_FORMAT_HTML, NULL, argument);
    case OPT_LATEX:
        return add_form(o, PRONY_FORMAT_LATEX, NULL, argument);
    case OPT_TRACE:
        return add_form(o, PRONY_FORMAT_TRACE, NULL, argument);
    case OPT_FOLDED:
        return add_form(o, PRONY_FORMAT_FOLDED, NULL, argument);
    case OPT_DOT:
        return add_graph(o, argument);
    case OPT_SVG:
        return add_chart(o, argument);
    case OPT_OUTPUT_DIR:
        o->output_dir = argument;
        return 0;
    case OPT_MEMORY:
        o->memory = true;
        return 0;
    case OPT_NO_HELP:
        o->no_help = true;
        return 0;
    case OPT_NO_REWRITES:
        o->no_rewrites = true;
        return 0;
    case OPT_SCENARIO:
        return parse_scenario(o, argument);
    case OPT_STREAMS:
        return parse_count(o, "streams", argument, 1024, &o->streams);
    case OPT_MAX_BATCH:
        return parse_count(o, "max-batch", argument, 65536, &o->max_batch);
    case OPT_SAMPLES_PER_QUERY:
        return parse_count(o, "samples-per-query", argument, 65536, &o->samples_per_query);
    case OPT_BATCH_WINDOW:
        return parse_time(o, "batch-window", argument, 0, &o->batch_window_ns);
    case OPT_LATENCY_BOUND:
        return parse_time(o, "latency-bound", argument, 1, &o->latency_bound_ns);
    case OPT_RATE:
        return parse_rate(o, argument);
    case OPT_PERCENTILE:
        return parse_percentile(o, argument);
    case OPT_WITH_LOAD:
        o->with_load = true;
        return 0;
    case OPT_FROM:
        return add_tensor(o, &o->from, &o->from_count, argument);
    case OPT_TO:
        return add_tensor(o, &o->to, &o->to_count, argument);
    case 'o':
        o->output = argument;
        return 0;
    case OPT_COUNTERS:
        o->counters = true;
        return 0;
    case OPT_DATA_FOLDER:
        o->data_folder = argument;
        return 0;
    case OPT_NO_REUSE:
        o->no_reuse = true;
        return 0;
    case OPT_FRESH:
        o->fresh = true;
        return 0;
    case OPT_DETAILED:
        o->detailed = true;
        return 0;
    case OPT_NO_COLOR:
        o->no_color = true;
        return 0;
    case OPT_NO_PROGRESS:
        o->no_progress = true;
        return 0;
    default:
        o->quiet = true;
        return 0;
    }
}
