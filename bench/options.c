/* The command line: one table of options, the same for all subcommands; a subcommand that has no use for one refuses it. */
#include "bench/command.h"

#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_AFFINITY = 256,
    OPT_DIM,
    OPT_SHAPE,
    OPT_LEVEL,
    OPT_TOP,
    OPT_SORT,
    OPT_FILTER,
    OPT_JSON,
    OPT_OUTPUT_DIR,
    OPT_MEMORY,
    OPT_COUNT,
    OPT_DEPTH,
    OPT_CSV,
    OPT_HTML,
    OPT_LATEX,
    OPT_TRACE,
    OPT_FOLDED,
    OPT_DOT,
    OPT_SVG,
    OPT_NO_COLOR,
    OPT_NO_PROGRESS,
    OPT_NO_REWRITES,
    OPT_FRESH,
    OPT_THRESHOLD,
    OPT_NOISE,
    OPT_METRICS,
    OPT_VERSION,
    OPT_UNBUILT
};

static const struct option long_options[] = {{"intra-op", required_argument, NULL, 'x'},
                                             {"inter-op", required_argument, NULL, 'y'},
                                             {"affinity", required_argument, NULL, OPT_AFFINITY},
                                             {"batch", required_argument, NULL, 'b'},
                                             {"dim", required_argument, NULL, OPT_DIM},
                                             {"shape", required_argument, NULL, OPT_SHAPE},
                                             {"input", required_argument, NULL, 'i'},
                                             {"seed", required_argument, NULL, 'S'},
                                             {"runs", required_argument, NULL, 'r'},
                                             {"seconds", required_argument, NULL, 't'},
                                             {"warmup", required_argument, NULL, 'w'},
                                             {"precision", required_argument, NULL, 'p'},
                                             {"level", required_argument, NULL, OPT_LEVEL},
                                             {"top", required_argument, NULL, OPT_TOP},
                                             {"sort", required_argument, NULL, OPT_SORT},
                                             {"filter", required_argument, NULL, OPT_FILTER},
                                             {"json", required_argument, NULL, OPT_JSON},
                                             {"output-dir", required_argument, NULL, OPT_OUTPUT_DIR},
                                             {"memory", no_argument, NULL, OPT_MEMORY},
                                             {"no-rewrites", no_argument, NULL, OPT_NO_REWRITES},
                                             {"fresh", no_argument, NULL, OPT_FRESH},
                                             {"quiet", no_argument, NULL, 'q'},
                                             {"no-color", no_argument, NULL, OPT_NO_COLOR},
                                             {"no-progress", no_argument, NULL, OPT_NO_PROGRESS},
                                             {"help", no_argument, NULL, 'h'},
                                             {"version", no_argument, NULL, OPT_VERSION},
                                             {"count", required_argument, NULL, OPT_COUNT},
                                             {"depth", required_argument, NULL, OPT_DEPTH},
                                             {"csv", required_argument, NULL, OPT_CSV},
                                             {"html", required_argument, NULL, OPT_HTML},
                                             {"latex", required_argument, NULL, OPT_LATEX},
                                             {"trace", required_argument, NULL, OPT_TRACE},
                                             {"folded", required_argument, NULL, OPT_FOLDED},
                                             {"dot", required_argument, NULL, OPT_DOT},
                                             {"svg", required_argument, NULL, OPT_SVG},
                                             {"threshold", required_argument, NULL, OPT_THRESHOLD},
                                             {"noise", required_argument, NULL, OPT_NOISE},
                                             {"metrics", required_argument, NULL, OPT_METRICS},
                                             {"tune", no_argument, NULL, OPT_UNBUILT},
                                             {"scenario", required_argument, NULL, OPT_UNBUILT},
                                             {"repeat", required_argument, NULL, OPT_UNBUILT},
                                             {NULL, 0, NULL, 0}};

/* Which options a subcommand takes; -x … -h are written as their letters. */
typedef struct command_row {
    const char *name, *arguments, *summary;
    int min_arguments, max_arguments;
    const char *letters;
    const int *others; /* ends with 0 */
} command_row;

static const int shape_options[] = {OPT_DIM,  OPT_SHAPE,  OPT_LEVEL, OPT_DEPTH, OPT_TOP,
                                    OPT_SORT, OPT_FILTER, OPT_COUNT, OPT_JSON,  OPT_CSV,
                                    OPT_HTML, OPT_LATEX,  OPT_TRACE, OPT_FOLDED, OPT_DOT, OPT_SVG, 0};
static const int run_options[] = {OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_OUTPUT_DIR, OPT_NO_REWRITES, 0};
static const int profile_options_list[] = {OPT_THRESHOLD, OPT_AFFINITY,   OPT_DIM,    OPT_SHAPE,       OPT_LEVEL, OPT_TOP,
                                           OPT_SORT,       OPT_FILTER, OPT_JSON,        OPT_OUTPUT_DIR,
                                           OPT_MEMORY,     OPT_NO_REWRITES, OPT_COUNT, OPT_DEPTH,  OPT_CSV,   OPT_HTML,
                                           OPT_LATEX,      OPT_TRACE,  OPT_FOLDED,  OPT_DOT,   OPT_SVG,   0};
static const int bench_options[] = {OPT_THRESHOLD, OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_NO_REWRITES, 0};
static const int compare_options[] = {OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_TOP, OPT_JSON, OPT_NO_REWRITES, OPT_NOISE, OPT_METRICS, 0};
static const int check_options[] = {OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_NO_REWRITES, OPT_THRESHOLD, 0};
static const int recommend_options[] = {OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_NO_REWRITES, 0};
static const int verify_options[] = {OPT_JSON, OPT_NO_REWRITES, 0};
static const int ops_options[] = {OPT_JSON, OPT_FILTER, OPT_COUNT, 0};
static const int machine_options[] = {OPT_JSON, OPT_FRESH, 0};

static const command_row commands[] = {
    {"inspect", "MODEL", "parameters, shapes, counts, memory of a model; nothing runs", 1, 1, "bxy", shape_options},
    {"run", "MODEL", "one inference; with --output-dir the outputs as .npy", 1, 1, "xybiSp", run_options},
    {"profile", "[MODEL]", "where time and memory go (no MODEL: the digits network)", 0, 1, "xybiSrtwp",
     profile_options_list},
    {"bench", "MODEL", "latency and throughput", 1, 1, "xybiSrtwp", bench_options},
    {"compare", "A B", "two reports or two models side by side; A is the baseline", 2, 2, "xybiSrtwp", compare_options},
    {"check", "TARGET", "thresholds on a report or a model", 1, 1, "xybiSrtwp", check_options},
    {"recommend", "TARGET", "what to change, with the measured or computed reason", 1, 1, "xybiSrtwp", recommend_options},
    {"verify", "DIR...", "ONNX test folders: model.onnx and test_data_set_*", 1, -1, "xy", verify_options},
    {"ops", "", "operators, opsets, types, kernels, cost formulas", 0, 0, "", ops_options},
    {"machine", "", "peak FLOP/s and bandwidth here, measured once", 0, 0, "xt", machine_options},
    {NULL, NULL, NULL, 0, 0, NULL, NULL}};

static const char *const later_commands[] = {"scale", "eval", NULL};

/* Help, a line per option; more lines of text belong to the option above them. 0: every subcommand takes it. */
static const struct {
    int option;
    const char *text;
} option_help[] = {
    {'x', "  -x, --intra-op N       threads inside operators (default auto); bench: also\n"
          "                         lists in -x, -y, -b, -p: 1,2,4-8 (all combinations)\n"},
    {'y', "  -y, --inter-op N       workers (this version: 1)\n"},
    {OPT_AFFINITY, "      --affinity LIST    core list such as 0-3,8\n"},
    {'b', "  -b, --batch N          first dimension of every input, where it is free\n"},
    {OPT_DIM, "      --dim NAME=N       a free dimension\n"},
    {OPT_SHAPE, "      --shape NAME=1x3x224x224   a whole input shape\n"},
    {'i', "  -i, --input NAME=FILE  .npy, .pb or raw; otherwise inputs are generated\n"},
    {'S', "  -S, --seed N           of generated inputs (default 0)\n"},
    {'r', "  -r, --runs N           measured runs (default: until the median is known\n"
          "                         to 1 % or the time is up)\n"},
    {'t', "  -t, --seconds S        time limit (default 5; machine: 2)\n"},
    {'w', "  -w, --warmup N         runs before measuring (default: detected)\n"},
    {'p', "  -p, --precision P      fp32\n"},
    {OPT_LEVEL, "      --level LIST       model,module,layer,operator\n"},
    {OPT_DEPTH, "      --depth N          of the module table (default: all)\n"},
    {OPT_TOP, "      --top N            rows per table\n"},
    {OPT_SORT, "      --sort KEY         index, time, macs, madds, flops, special, int_ops,\n"
               "                         parameters, bytes, memory, count, rate, intensity, name\n"},
    {OPT_COUNT, "      --count PRESET     another tool's figure beside: fvcore, deepspeed,\n"
                "                         onnx-tool, moduleprofiler, thop, torch, deeplite\n"},
    {OPT_FILTER, "      --filter KEY=GLOB  name, op, module or kernel\n"},
    {OPT_JSON, "      --json F           as JSON too; - is stdout, with nothing else on it\n"},
    {OPT_CSV, "      --csv F            layers to F, other levels beside it; or as --level says\n"},
    {OPT_HTML, "      --html F           one page with tables and charts, needs no network\n"},
    {OPT_LATEX, "      --latex F          tables for booktabs\n"},
    {OPT_TRACE, "      --trace F          the last run, for Perfetto and chrome://tracing\n"},
    {OPT_FOLDED, "      --folded F         stacks for flame graphs: module;...;layer ns\n"},
    {OPT_DOT, "      --dot F            the graph coloured by time, for Graphviz; F.svg: drawn\n"},
    {OPT_SVG, "      --svg CHART=F      layers, types, roofline, memory, latency, modules or\n"
              "                         graph\n"},
    {OPT_OUTPUT_DIR, "      --output-dir D     outputs as D/output_K.npy; profile: every form as well\n"},
    {OPT_MEMORY, "      --memory           the arena's events and timeline as well\n"},
    {OPT_THRESHOLD, "      --threshold M:V... limits such as latency:100ms throughput:1000samples/s\n"
                    "                         memory:64MiB; a missed one ends with status 3\n"},
    {OPT_NOISE, "      --noise P          differences below P per cent are none (default 1)\n"},
    {OPT_METRICS, "      --metrics LIST     compare these alone: latency,memory (default: all)\n"},
    {OPT_NO_REWRITES, "      --no-rewrites      run the model's own nodes, unfused\n"},
    {OPT_FRESH, "      --fresh            measure again what is kept\n"},
    {0, "  -q, --quiet            errors only\n"
        "      --no-color         as NO_COLOR does\n"
        "      --no-progress\n"
        "  -h, --help             --version\n"}};

static bool takes(const command_row *command, int option)
{
    if (option == 'q' || option == 'h' || option == OPT_NO_COLOR || option == OPT_NO_PROGRESS || option == OPT_VERSION)
        return true;
    if (option < 256) return strchr(command->letters, option) != NULL;
    for (const int *o = command->others; *o; o++)
        if (*o == option) return true;
    return false;
}

/* Of one subcommand, or of all. */
static void print_help(FILE *to, const command_row *command)
{
    if (command) {
        fprintf(to, "usage: prony %s%s%s [options]\n%s.\n\n", command->name, *command->arguments ? " " : "",
                command->arguments, command->summary);
    } else {
        fprintf(to, "usage: prony COMMAND [arguments] [options]\n\n");
        for (const command_row *c = commands; c->name; c++)
            fprintf(to, "  %-8s %-8s %s\n", c->name, c->arguments, c->summary);
        fprintf(to, "\n");
    }
    for (size_t i = 0; i < sizeof option_help / sizeof *option_help; i++)
        if (!command || !option_help[i].option || takes(command, option_help[i].option)) fputs(option_help[i].text, to);
    if (!command)
        fprintf(to, "\nA command's own options: prony COMMAND --help\n"
                    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a verdict went against it.\n");
}

static int usage(const options *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int usage(const options *o, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "prony%s%s: ", o->command ? " " : "", o->command ? o->command : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nTry 'prony --help'.\n");
    return EXIT_USAGE;
}

static bool parse_int(const char *text, int64_t min, int64_t max, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < min || v > max) return false;
    *out = v;
    return true;
}

static bool parse_threads(const char *text, int *out)
{
    int64_t v = 0;
    if (strcmp(text, "auto") != 0 && !parse_int(text, 1, 1024, &v)) return false;
    *out = (int)v;
    return true;
}

/* The subcommand that runs a matrix of configurations. */
static bool takes_lists(const options *o)
{
    return strcmp(o->command, "bench") == 0;
}

static int parse_thread_list(const options *o, int option, const char *argument, int_list *list, int *single)
{
    if (!int_list_parse(list, argument, 1, 1024, "auto"))
        return usage(o, "-%c '%s': numbers from 1 to 1024 such as 1,2,4-8, or auto", option, argument);
    *single = (int)list->values[0];
    return 0;
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
        else
            return false;
    }
    return *out != 0;
}

static const command_row *find_command(const char *name)
{
    for (const command_row *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

/* Tables are written last, so a wrong key has to be found before anything is measured. */
#define SORT_KEYS "index, time, macs, madds, flops, special, int_ops, parameters, bytes, memory, count, rate, intensity, name"
#define FILTER_KEYS "name, op, module or kernel"
static const char *const sort_keys[] = {"index",      "time",  "macs",   "madds", "flops", "special",   "int_ops",
                                        "parameters", "bytes", "memory", "count", "rate",  "intensity", "name",
                                        NULL};
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
    for (const char *const *name = prony_chart_names(); *name; name++)
        if (strcmp(*name, argument) == 0) return add_form(o, PRONY_FORMAT_SVG, argument, file);
    return usage(o, "--svg '%s': layers, types, roofline, memory, latency, modules or graph", argument);
}

/* Two documents on stdout would be none. */
static int check_stdout(const options *o)
{
    size_t taken = o->json && strcmp(o->json, "-") == 0;
    for (size_t i = 0; i < o->form_count; i++) taken += strcmp(o->forms[i].file, "-") == 0;
    return taken > 1 ? usage(o, "'-' is stdout, and can be given to one form only") : 0;
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

/* "METRIC:VALUE" behind --threshold belongs to it, unless there is a file of that name. */
static bool is_more_threshold(const char *word)
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

static int parse_one(options *o, int option, char *argument)
{
    int64_t v;
    char *end;
    switch (option) {
    case 'x':
        if (takes_lists(o)) return parse_thread_list(o, option, argument, &o->intra_ops, &o->intra_op);
        return parse_threads(argument, &o->intra_op)
                   ? 0
                   : usage(o, "-x '%s': one number from 1 to 1024, or auto (lists are for a matrix of runs)", argument);
    case 'y':
        if (takes_lists(o)) return parse_thread_list(o, option, argument, &o->inter_ops, &o->inter_op);
        return parse_threads(argument, &o->inter_op) ? 0 : usage(o, "-y '%s': a number from 1 to 1024, or auto", argument);
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
        return parse_int(argument, 0, 100000000, &o->warmup) ? 0 : usage(o, "-w '%s': a number from 0 to 1e8", argument);
    case 't':
        o->seconds = strtod(argument, &end);
        return *end || end == argument || !(o->seconds > 0) || !isfinite(o->seconds)
                   ? usage(o, "-t '%s': seconds above 0", argument)
                   : 0;
    case OPT_TOP:
        return parse_int(argument, 1, INT32_MAX, &o->top) ? 0 : usage(o, "--top '%s': a number from 1", argument);
    case OPT_LEVEL:
        return parse_levels(argument, &o->levels) ? 0 : usage(o, "--level: model, module, layer, operator, comma-separated");
    case 'i':
    case OPT_DIM:
    case OPT_SHAPE:
        return parse_pair(o, option, argument);
    case 'p':
        if (takes_lists(o)) return parse_precisions(o, argument);
        o->precision = argument;
        return 0;
    case OPT_AFFINITY:
        o->affinity = argument;
        return 0;
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
        return is_preset(argument) ? 0 : usage(o, "--count '%s': fvcore, deepspeed, onnx-tool, moduleprofiler, thop, torch "
                                                  "or deeplite", argument);
    case OPT_DEPTH:
        return parse_int(argument, 1, 1000, &o->depth) ? 0 : usage(o, "--depth '%s': a number from 1", argument);
    case OPT_THRESHOLD:
        return add_threshold(o, argument);
    case OPT_NOISE:
        return parse_noise(o, argument);
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
    case OPT_NO_REWRITES:
        o->no_rewrites = true;
        return 0;
    case OPT_FRESH:
        o->fresh = true;
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

static int choose_command(options *o, const char *name, const command_row **out)
{
    *out = find_command(name);
    if (*out) {
        o->command = (*out)->name;
        return 0;
    }
    for (const char *const *later = later_commands; *later; later++)
        if (strcmp(*later, name) == 0) return usage(o, "'%s' is not built in this version", name);
    return usage(o, "there is no command '%s'", name);
}

/* The option as it was meant, for messages: getopt has moved on past its value by then. */
static const char *option_name(int option, int index, char text[64])
{
    if (index >= 0)
        snprintf(text, 64, "--%s", long_options[index].name);
    else
        snprintf(text, 64, "-%c", option);
    return text;
}

/* What getopt has no value, no use or no name for. `word` is the argument that it came from. */
static int bad_option(const options *o, int kind, const char *word)
{
    bool is_long = strncmp(word, "--", 2) == 0;
    if (kind == ':') return is_long ? usage(o, "%s needs a value", word) : usage(o, "-%c needs a value", optopt);
    if (is_long && optopt) return usage(o, "'%s': this option takes no value", word);
    if (is_long) return usage(o, "there is no option '%s', or it is short for several", word);
    return usage(o, "there is no option '-%c'", optopt);
}

/* The options of a command line, up to --help or --version, which *done tells. */
static int parse_options(options *o, const command_row *command, int argc, char **argv, bool *done)
{
    char text[64];
    *done = true;
    opterr = 0;
    for (;;) {
        int index = -1, at = optind ? optind : 1;
        int option = getopt_long(argc, argv, ":x:y:b:i:S:r:t:w:p:qh", long_options, &index);
        if (option == -1) break;
        /* A short option inside of a word leaves optind on that word. */
        if (option == ':' || option == '?') return bad_option(o, option, argv[optind > at ? optind - 1 : at]);
        if (option == OPT_UNBUILT) return usage(o, "--%s is not built in this version", long_options[index].name);
        if (option == 'h') return print_help(stdout, command), EXIT_DONE;
        if (option == OPT_VERSION) return printf("prony %s\n", prony_version()), EXIT_DONE;
        if (!command) return usage(o, "a command is needed first");
        if (!takes(command, option)) return usage(o, "'%s' has no use for %s", command->name, option_name(option, index, text));
        int status = parse_one(o, option, optarg);
        while (!status && option == OPT_THRESHOLD && optind < argc && is_more_threshold(argv[optind]))
            status = parse_one(o, option, argv[optind++]);
        if (status) return status;
    }
    *done = false;
    return 0;
}

int options_parse(options *o, int argc, char **argv, bool *stop)
{
    const command_row *command = NULL;
    bool done;
    *o = (options){.warmup = -1};
    *stop = true;
    o->arguments = calloc((size_t)argc + 1, sizeof *o->arguments);
    if (!o->arguments) return no_memory(o);
    if (argc >= 2 && argv[1][0] != '-') {
        int status = choose_command(o, argv[1], &command);
        if (status) return status;
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    int status = parse_options(o, command, argc, argv, &done);
    if (done) return status;
    if (!command) return print_help(stderr, NULL), EXIT_USAGE;
    while (optind < argc) o->arguments[o->argument_count++] = argv[optind++];
    if ((int)o->argument_count < command->min_arguments)
        return usage(o, "%s is missing", command->arguments);
    if (command->max_arguments >= 0 && (int)o->argument_count > command->max_arguments)
        return usage(o, "'%s' is one argument too many", o->arguments[command->max_arguments]);
    status = check_stdout(o);
    if (status) return status;
    *stop = false;
    return 0;
}

void options_free(options *o)
{
    free(o->arguments);
    free(o->dims);
    free(o->shapes);
    free(o->precisions);
    free(o->inputs);
    free(o->forms);
    free(o->thresholds);
}
