/* The tables of the command line: options, subcommands with the options that each takes, and help made of both. */
#include "bench/option_table.h"

#include <string.h>

const struct option long_options[] = {{"intra-op", required_argument, NULL, 'x'},
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
                                      {"all", no_argument, NULL, OPT_ALL},
                                      {"filter", required_argument, NULL, OPT_FILTER},
                                      {"json", required_argument, NULL, OPT_JSON},
                                      {"output-dir", required_argument, NULL, OPT_OUTPUT_DIR},
                                      {"memory", no_argument, NULL, OPT_MEMORY},
                                      {"memory-limit", required_argument, NULL, OPT_MEMORY_LIMIT},
                                      {"no-rewrites", no_argument, NULL, OPT_NO_REWRITES},
                                      {"no-help", no_argument, NULL, OPT_NO_HELP},
                                      {"no-reuse", no_argument, NULL, OPT_NO_REUSE},
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
                                      {"ignore-load", no_argument, NULL, OPT_IGNORE_LOAD},
                                      {"metrics", required_argument, NULL, OPT_METRICS},
                                      {"detailed", no_argument, NULL, OPT_DETAILED},
                                      {"time-limit", required_argument, NULL, OPT_TIME_LIMIT},
                                      {"max-loop-trips", required_argument, NULL, OPT_MAX_LOOP_TRIPS},
                                      {"copy-model", no_argument, NULL, OPT_COPY_MODEL},
                                      {"preprocess", required_argument, NULL, OPT_PREPROCESS},
                                      {"topk", required_argument, NULL, OPT_TOPK},
                                      {"labels", required_argument, NULL, OPT_LABELS},
                                      {"tune", no_argument, NULL, OPT_UNBUILT},
                                      {"scenario", required_argument, NULL, OPT_SCENARIO},
                                      {"streams", required_argument, NULL, OPT_STREAMS},
                                      {"max-batch", required_argument, NULL, OPT_MAX_BATCH},
                                      {"batch-window", required_argument, NULL, OPT_BATCH_WINDOW},
                                      {"samples-per-query", required_argument, NULL, OPT_SAMPLES_PER_QUERY},
                                      {"latency-bound", required_argument, NULL, OPT_LATENCY_BOUND},
                                      {"rate", required_argument, NULL, OPT_RATE},
                                      {"percentile", required_argument, NULL, OPT_PERCENTILE},
                                      {"with-load", no_argument, NULL, OPT_WITH_LOAD},
                                      {"repeat", required_argument, NULL, OPT_REPEAT},
                                      {"resume", no_argument, NULL, OPT_RESUME},
                                      {"weak", no_argument, NULL, OPT_WEAK},
                                      {"budget", required_argument, NULL, OPT_BUDGET},
                                      {"processes", required_argument, NULL, OPT_PROCESSES},
                                      {"timeout", required_argument, NULL, OPT_TIMEOUT},
                                      {"plot", required_argument, NULL, OPT_PLOT},
                                      {NULL, 0, NULL, 0}};

static const int shape_options[] = {
    OPT_DIM, OPT_SHAPE, OPT_LEVEL, OPT_DEPTH, OPT_TOP, OPT_SORT, OPT_ALL, OPT_FILTER, OPT_COUNT, OPT_JSON, OPT_CSV,
    OPT_HTML, OPT_LATEX, OPT_TRACE, OPT_FOLDED, OPT_DOT, OPT_SVG, 0};
static const int run_options[] = {
    OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_OUTPUT_DIR, OPT_NO_REWRITES, OPT_TOPK, OPT_LABELS, OPT_NO_REUSE,
    OPT_NO_HELP, 0};
static const int eval_options[] = {
    OPT_PREPROCESS, OPT_LABELS, OPT_THRESHOLD, OPT_IGNORE_LOAD, OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_LEVEL, OPT_TOP,
    OPT_ALL, OPT_SORT, OPT_FILTER, OPT_COUNT, OPT_DEPTH, OPT_JSON, OPT_CSV, OPT_HTML, OPT_NO_REWRITES, OPT_LATEX,
    OPT_TRACE, OPT_FOLDED, OPT_DOT, OPT_SVG, OPT_NO_REUSE, OPT_NO_HELP, 0};
static const int profile_options_list[] = {
    OPT_THRESHOLD, OPT_IGNORE_LOAD, OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_LEVEL, OPT_TOP, OPT_ALL, OPT_SORT,
    OPT_FILTER, OPT_JSON, OPT_OUTPUT_DIR, OPT_MEMORY, OPT_NO_REWRITES, OPT_COUNT, OPT_DEPTH, OPT_CSV, OPT_HTML,
    OPT_LATEX, OPT_TRACE, OPT_FOLDED, OPT_DOT, OPT_SVG, OPT_TOPK, OPT_LABELS, OPT_NO_REUSE, OPT_NO_HELP, 0};
static const int bench_options[] = {
    OPT_ALL, OPT_THRESHOLD, OPT_IGNORE_LOAD, OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_NO_REWRITES, OPT_COUNT,
    OPT_SCENARIO,
    OPT_STREAMS, OPT_MAX_BATCH, OPT_BATCH_WINDOW, OPT_SAMPLES_PER_QUERY, OPT_LATENCY_BOUND, OPT_RATE, OPT_PERCENTILE,
    OPT_WITH_LOAD, OPT_NO_REUSE, OPT_NO_HELP, 0};
static const int compare_options[] = {
    OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_TOP, OPT_JSON, OPT_NO_REWRITES, OPT_NOISE, OPT_IGNORE_LOAD, OPT_METRICS,
    OPT_COUNT, OPT_NO_REUSE, OPT_NO_HELP, 0};
static const int metrics_options[] = {
    OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_NO_REWRITES, OPT_METRICS, OPT_DETAILED, OPT_COUNT, OPT_NO_REUSE,
    OPT_NO_HELP, 0};
static const int check_options[] = {
    OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_NO_REWRITES, OPT_THRESHOLD, OPT_IGNORE_LOAD, OPT_NO_REUSE,
    OPT_NO_HELP, 0};
static const int recommend_options[] = {
    OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_NO_REWRITES, OPT_NO_REUSE, OPT_NO_HELP, 0};
static const int verify_options[] = {OPT_JSON, OPT_NO_REWRITES, OPT_NO_REUSE, 0};
static const int ops_options[] = {OPT_JSON, OPT_FILTER, OPT_COUNT, 0};
static const int scale_options[] = {
    OPT_PROCESSES, OPT_BUDGET, OPT_WEAK, OPT_RESUME, OPT_REPEAT, OPT_TIMEOUT, OPT_AFFINITY, OPT_DIM, OPT_SHAPE,
    OPT_TOP, OPT_JSON, OPT_CSV, OPT_HTML, OPT_SVG, OPT_PLOT, OPT_NO_REWRITES, 0};
static const int worker_options[] = {OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_NO_REWRITES, 0};
static const int machine_options[] = {OPT_JSON, OPT_FRESH, 0};

#define HIDDEN_COMMAND "worker"
static const command_row commands[] = {
    {"inspect", "MODEL", "parameters, shapes, counts and memory; nothing runs", 1, 1, "bxy", shape_options},
    {"run", "MODEL", "one inference; with --output-dir the outputs as .npy", 1, 1, "xybiSp", run_options},
    {"profile", "[MODEL]", "where time and memory go (no MODEL: the digits network)", 0, 1, "xybiSrtwp",
     profile_options_list},
    {"bench", "MODEL", "latency and throughput", 1, 1, "xybiSrtwp", bench_options},
    {"scale", "MODEL", "a thread-scaling study that others can repeat", 1, 1, "xybiSrtwp", scale_options},
    {"compare", "A B", "two reports or two models side by side; A is the baseline", 2, 2, "xybiSrtwp", compare_options},
    {"check", "TARGET", "thresholds on a report or a model", 1, 1, "xybiSrtwp", check_options},
    {"recommend", "TARGET", "what to change, with the measured or computed reason", 1, 1, "xybiSrtwp",
     recommend_options},
    {"metrics", "TARGET", "every metric of a report or a model", 1, 1, "xybiSrtwp", metrics_options},
    {"eval", "MODEL DATA", "accuracy on labelled data: folder, .npz or list", 2, 2, "xybwp", eval_options},
    {"verify", "DIR...", "ONNX test folders: model.onnx and test_data_set_*", 1, -1, "xy", verify_options},
    {"ops", "", "operators, opsets, types, kernels, cost formulas", 0, 0, "", ops_options},
    {"machine", "", "peak FLOP/s and bandwidth here, measured once", 0, 0, "xt", machine_options},
    {HIDDEN_COMMAND, "MODEL", "a process of scale, which starts it", 1, 1, "xybiSrtwp", worker_options},
    {NULL, NULL, NULL, 0, 0, NULL, NULL}};

/* Help, a line per option; more lines of text belong to the option above them. 0: every subcommand takes it. */
static const struct {
    int option;
    const char *text;
} option_help[] = {
    {'x', "  -x, --intra-op N       threads inside operators (default auto); bench and\n"
          "                         scale: lists in -x, -y, -b, -p: 1,2,4-8 (all\n"
          "                         combinations)\n"},
    {'y', "  -y, --inter-op N       workers that run operators side by side, each with -x\n"
          "                         threads (default 1), or auto: what the model gains from\n"},
    {OPT_NO_HELP, "      --no-help          idle workers leave the others' operators alone\n"},
    {OPT_AFFINITY, "      --affinity LIST    core list such as 0-3,8: a core for each thread\n"},
    {'b', "  -b, --batch N          first dimension of every input, where it is free\n"},
    {OPT_DIM, "      --dim NAME=N       a free dimension\n"},
    {OPT_SHAPE, "      --shape NAME=1x3x224x224   a whole input shape\n"},
    {'i', "  -i, --input NAME=FILE  .npy, .npz, .pb, .png, .jpg or raw; otherwise inputs\n"
          "                         are generated\n"},
    {OPT_PREPROCESS, "      --preprocess LIST  of images: resize=N|HxW|fit|none, crop=N|HxW,\n"
                     "                         normalize=0..1|-1..1|0..255|imagenet, mean=R:G:B,\n"
                     "                         std=R:G:B, channels=rgb|bgr, layout=nchw|nhwc,\n"
                     "                         filter=bilinear|bicubic; imagenet: as torchvision\n"},
    {OPT_TOPK, "      --topk N           the N best classes of the first output\n"},
    {OPT_LABELS, "      --labels F         class names, one per line\n"},
    {'S', "  -S, --seed N           of generated inputs (default 0)\n"},
    {'r', "  -r, --runs N           measured runs (default: until the median is known\n"
          "                         to 1 % or the time is up)\n"},
    {'t', "  -t, --seconds S        time limit (default 5, with -r none; machine: 2)\n"},
    {'w', "  -w, --warmup N         runs before measuring (default: detected; eval: 1)\n"},
    {'p', "  -p, --precision P      fp32\n"},
    {OPT_LEVEL, "      --level LIST       model,module,layer,operator\n"},
    {OPT_DEPTH, "      --depth N          of the module table (default: all)\n"},
    {OPT_ALL, "      --all              everything, not what a first look needs\n"},
    {OPT_TOP, "      --top N            rows per table, by time (default 20; inspect: by FLOPs)\n"},
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
    {OPT_PROCESSES, "      --processes N      fresh processes per configuration (default 10)\n"},
    {OPT_BUDGET, "      --budget 10m       time for the whole study: s, m or h\n"},
    {OPT_WEAK, "      --weak             the batch grows with the threads\n"},
    {OPT_RESUME, "      --resume           goes on with the study in the file of --json\n"},
    {OPT_REPEAT, "      --repeat STUDY     the same plan here; status 3 if a result differs\n"},
    {OPT_TIMEOUT, "      --timeout S        when a process that does not answer is ended\n"},
    {OPT_PLOT, "      --plot F           the speed-up as SVG; others: --svg efficiency=F,\n"
               "                         operators=F, timeline=F\n"},
    {OPT_DOT, "      --dot F            the graph coloured by time, for Graphviz; F.svg: drawn\n"},
    {OPT_SVG, "      --svg CHART=F      layers, types, roofline, memory, latency, modules or\n"
              "                         graph\n"},
    {OPT_OUTPUT_DIR, "      --output-dir D     outputs as D/output_K.npy; profile: every form as well\n"},
    {OPT_MEMORY, "      --memory           the arena's events and timeline as well\n"},
    {OPT_MEMORY_LIMIT, "      --memory-limit N   such as 2GiB, or none; otherwise PRONY_MEMORY_LIMIT, or\n"
                       "                         what is available here less 1/16, at least 64 MiB\n"},
    {OPT_THRESHOLD, "      --threshold M:V... limits such as latency:100ms throughput:1000samples/s\n"
                    "                         memory:64MiB; a missed one ends with status 3\n"},
    {OPT_NOISE, "      --noise P          differences below P per cent are none (default 1)\n"},
    {OPT_IGNORE_LOAD, "      --ignore-load      judge times although others had part of the machine\n"},
    {OPT_METRICS, "      --metrics LIST     these alone: latency,memory (default: all)\n"},
    {OPT_DETAILED, "      --detailed         descriptions and directions too, and what is unknown\n"},
    {OPT_NO_REWRITES, "      --no-rewrites      run the model's own nodes, unfused\n"},
    {OPT_SCENARIO, "      --scenario NAME    single, multi, server or offline load (docs/load.md)\n"},
    {OPT_STREAMS, "      --streams N        sessions side by side on one model's weights\n"},
    {OPT_MAX_BATCH, "      --max-batch N      up to N requests in one run\n"},
    {OPT_BATCH_WINDOW, "      --batch-window T   that a request waits for others: 2ms (default 0ms)\n"},
    {OPT_SAMPLES_PER_QUERY, "      --samples-per-query N   multi: requests issued together (default 8)\n"},
    {OPT_LATENCY_BOUND, "      --latency-bound T  what the latency's percentile has to keep: 20ms\n"},
    {OPT_RATE, "      --rate R           server: R arrivals a second, no search\n"},
    {OPT_PERCENTILE, "      --percentile P     of the bound (default 99; single: 90)\n"},
    {OPT_WITH_LOAD, "      --with-load        beside a busy thread pinned to each core\n"},
    {OPT_NO_REUSE, "      --no-reuse         every value in memory of its own: no views, nothing\n"
                   "                         in place; for doubts about the memory plan\n"},
    {OPT_TIME_LIMIT, "      --time-limit T     ends after 60s, 500ms, ... with what is there by then\n"},
    {OPT_MAX_LOOP_TRIPS, "      --max-loop-trips N of one Loop (default 2^31)\n"},
    {OPT_COPY_MODEL, "      --copy-model       read the model whole: it may change meanwhile\n"},
    {OPT_FRESH, "      --fresh            measure again what is kept\n"},
    {0, "  -q, --quiet            errors only\n"
        "      --no-color         as NO_COLOR does\n"
        "      --no-progress\n"
        "  -h, --help             --version\n"}};

bool command_takes(const command_row *command, int option)
{
    if (option == 'q' || option == 'h' || option == OPT_NO_COLOR || option == OPT_NO_PROGRESS || option == OPT_VERSION)
        return true;
    bool no_model = strcmp(command->name, "ops") == 0 || strcmp(command->name, "machine") == 0;
    if (option == OPT_TIME_LIMIT) return strcmp(command->name, "ops") != 0;
    if (option == OPT_MAX_LOOP_TRIPS) return !no_model && strcmp(command->name, "inspect") != 0;
    if (option == OPT_COPY_MODEL) return !no_model;
    if (option == OPT_PREPROCESS && strchr(command->letters, 'i')) return true; /* who takes inputs takes images */
    if (option == OPT_MEMORY_LIMIT) return strchr(command->letters, 'y') != NULL; /* who loads models */
    if (option < 256) return strchr(command->letters, option) != NULL;
    for (const int *o = command->others; *o; o++)
        if (*o == option) return true;
    return false;
}

void print_help(FILE *to, const command_row *command)
{
    if (command) {
        fprintf(to, "usage: prony %s%s%s [options]\n%s.\n\n", command->name, *command->arguments ? " " : "",
                command->arguments, command->summary);
    } else {
        fprintf(to, "usage: prony COMMAND [arguments] [options]\n\n");
        for (const command_row *c = commands; c->name; c++)
            if (strcmp(c->name, HIDDEN_COMMAND) != 0) fprintf(to, "  %-9s %-10s %s\n", c->name, c->arguments, c->summary);
        fprintf(to, "\n");
    }
    for (size_t i = 0; i < sizeof option_help / sizeof *option_help; i++)
        if (!command || !option_help[i].option || command_takes(command, option_help[i].option))
            fputs(option_help[i].text, to);
    if (!command)
        fprintf(to, "\nA command's own options: prony COMMAND --help\n"
                    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a verdict went against it.\n");
}

const command_row *find_command(const char *name)
{
    for (const command_row *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}
