/* The tables of the command line: options, subcommands with the options that each takes, and help made of both. */
#include "bench/options/option_table.h"

#include <limits.h>
#include <string.h>

const struct option long_options[] = {{"intra-op", required_argument, NULL, 'x'},
                                      {"inter-op", required_argument, NULL, 'y'},
                                      {"affinity", required_argument, NULL, OPT_AFFINITY},
                                      {"batch", required_argument, NULL, 'b'},
                                      {"dim", required_argument, NULL, OPT_DIM},
                                      {"max-dim", required_argument, NULL, OPT_MAX_DIM},
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
                                      {"one-process", no_argument, NULL, OPT_ONE_PROCESS},
                                      {"strict", no_argument, NULL, OPT_STRICT},
                                      {"metrics", required_argument, NULL, OPT_METRICS},
                                      {"detailed", no_argument, NULL, OPT_DETAILED},
                                      {"time-limit", required_argument, NULL, OPT_TIME_LIMIT},
                                      {"max-loop-trips", required_argument, NULL, OPT_MAX_LOOP_TRIPS},
                                      {"copy-model", no_argument, NULL, OPT_COPY_MODEL},
                                      {"preprocess", required_argument, NULL, OPT_PREPROCESS},
                                      {"topk", required_argument, NULL, OPT_TOPK},
                                      {"labels", required_argument, NULL, OPT_LABELS},
                                      {"data-folder", required_argument, NULL, OPT_DATA_FOLDER},
                                      {"from", required_argument, NULL, OPT_FROM},
                                      {"to", required_argument, NULL, OPT_TO},
                                      {"output", required_argument, NULL, 'o'},
                                      {"counters", no_argument, NULL, OPT_COUNTERS},
                                      {"accuracy", no_argument, NULL, OPT_ACCURACY},
                                      {"accuracy-samples", required_argument, NULL, OPT_ACCURACY_SAMPLES},
                                      {"against", required_argument, NULL, OPT_AGAINST},
                                      {"reference", required_argument, NULL, OPT_REFERENCE},
                                      {"ort-lib", required_argument, NULL, OPT_ORT_LIB},
                                      {"calibrate", required_argument, NULL, OPT_CALIBRATE},
                                      {"calibrate-method", required_argument, NULL, OPT_CALIBRATE_METHOD},
                                      {"keep-accuracy", required_argument, NULL, OPT_KEEP_ACCURACY},
                                      {"power-of-two", no_argument, NULL, OPT_POWER_OF_TWO},
                                      {"tune", no_argument, NULL, OPT_TUNE},
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
                                      {"overwrite", no_argument, NULL, OPT_OVERWRITE},
                                      {"weak", no_argument, NULL, OPT_WEAK},
                                      {"budget", required_argument, NULL, OPT_BUDGET},
                                      {"replicas", required_argument, NULL, OPT_REPLICAS},
                                      {"barrier", no_argument, NULL, OPT_BARRIER},
                                      {"processes", required_argument, NULL, OPT_PROCESSES},
                                      {"timeout", required_argument, NULL, OPT_TIMEOUT},
                                      {"plot", required_argument, NULL, OPT_PLOT},
                                      {NULL, 0, NULL, 0}};

static const int shape_options[] = {OPT_DIM,   OPT_SHAPE,  OPT_LEVEL,  OPT_DEPTH, OPT_TOP, OPT_SORT,
                                    OPT_ALL,   OPT_FILTER, OPT_COUNT,  OPT_JSON,  OPT_CSV, OPT_HTML,
                                    OPT_LATEX, OPT_TRACE,  OPT_FOLDED, OPT_DOT,   OPT_SVG, 0};
static const int run_options[] = {
    OPT_AFFINITY, OPT_DIM,     OPT_SHAPE, OPT_JSON, OPT_OUTPUT_DIR, OPT_NO_REWRITES, OPT_TOPK,  OPT_LABELS,
    OPT_NO_REUSE, OPT_NO_HELP, OPT_FROM,  OPT_TO,   OPT_MAX_DIM,    OPT_TUNE,        OPT_FRESH, 0};
// clang-format off
static const int eval_options[] = {
    OPT_PREPROCESS, OPT_LABELS, OPT_THRESHOLD, OPT_IGNORE_LOAD, OPT_STRICT, OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_LEVEL, OPT_TOP,
    OPT_ALL, OPT_SORT, OPT_FILTER, OPT_COUNT, OPT_DEPTH, OPT_JSON, OPT_CSV, OPT_HTML, OPT_NO_REWRITES, OPT_LATEX,
    OPT_TRACE, OPT_FOLDED, OPT_DOT, OPT_SVG, OPT_NO_REUSE, OPT_NO_HELP, OPT_ACCURACY, OPT_ACCURACY_SAMPLES, OPT_REFERENCE,
    OPT_MAX_DIM, OPT_TUNE, OPT_FRESH, 0};
static const int profile_options_list[] = {
    OPT_THRESHOLD, OPT_IGNORE_LOAD, OPT_STRICT, OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_LEVEL, OPT_TOP, OPT_ALL, OPT_SORT,
    OPT_FILTER, OPT_JSON, OPT_OUTPUT_DIR, OPT_MEMORY, OPT_NO_REWRITES, OPT_COUNT, OPT_DEPTH, OPT_CSV, OPT_HTML,
    OPT_LATEX, OPT_TRACE, OPT_FOLDED, OPT_DOT, OPT_SVG, OPT_TOPK, OPT_LABELS, OPT_NO_REUSE, OPT_NO_HELP, OPT_FROM,
    OPT_TO, OPT_COUNTERS, OPT_ACCURACY, OPT_ACCURACY_SAMPLES, OPT_AGAINST, OPT_REFERENCE, OPT_PROCESSES, OPT_ONE_PROCESS,
    OPT_MAX_DIM, OPT_TUNE, OPT_FRESH, 0};
static const int bench_options[] = {
    OPT_ALL, OPT_THRESHOLD, OPT_IGNORE_LOAD, OPT_STRICT, OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_JSON, OPT_NO_REWRITES, OPT_COUNT,
    OPT_SCENARIO, OPT_STREAMS, OPT_MAX_BATCH, OPT_BATCH_WINDOW, OPT_SAMPLES_PER_QUERY, OPT_LATENCY_BOUND, OPT_RATE,
    OPT_PERCENTILE, OPT_WITH_LOAD, OPT_NO_REUSE, OPT_NO_HELP, OPT_FROM, OPT_TO, OPT_PROCESSES, OPT_ONE_PROCESS, OPT_MAX_DIM,
    OPT_TUNE, OPT_FRESH, 0};
// clang-format on
static const int quantize_options[] = {OPT_PREPROCESS, OPT_DIM, OPT_SHAPE, 0};
static const int extract_options[] = {OPT_FROM, OPT_TO, OPT_DIM, OPT_SHAPE, 0};
static const int compare_options[] = {OPT_AFFINITY,         OPT_DIM,   OPT_SHAPE,    OPT_TOP,         OPT_JSON,
                                      OPT_NO_REWRITES,      OPT_NOISE, OPT_ALL,      OPT_IGNORE_LOAD, OPT_STRICT,
                                      OPT_METRICS,          OPT_COUNT, OPT_NO_REUSE, OPT_NO_HELP,     OPT_ACCURACY,
                                      OPT_ACCURACY_SAMPLES, 0};
static const int metrics_options[] = {
    OPT_AFFINITY, OPT_DIM,      OPT_SHAPE,   OPT_JSON, OPT_NO_REWRITES, OPT_METRICS, OPT_DETAILED,
    OPT_COUNT,    OPT_NO_REUSE, OPT_NO_HELP, 0};
static const int check_options[] = {
    OPT_AFFINITY, OPT_DIM,      OPT_SHAPE,   OPT_JSON, OPT_NO_REWRITES, OPT_THRESHOLD, OPT_IGNORE_LOAD,
    OPT_STRICT,   OPT_NO_REUSE, OPT_NO_HELP, 0};
static const int recommend_options[] = {OPT_AFFINITY,    OPT_DIM,      OPT_SHAPE,   OPT_JSON,
                                        OPT_NO_REWRITES, OPT_NO_REUSE, OPT_NO_HELP, 0};
static const int verify_options[] = {OPT_JSON, OPT_NO_REWRITES, OPT_NO_REUSE, 0};
static const int ops_options[] = {OPT_JSON, OPT_FILTER, OPT_COUNT, 0};
static const int scale_options[] = {
    OPT_PROCESSES, OPT_BUDGET,   OPT_REPLICAS, OPT_WEAK,        OPT_RESUME, OPT_OVERWRITE, OPT_REPEAT,
    OPT_TIMEOUT,   OPT_AFFINITY, OPT_DIM,      OPT_SHAPE,       OPT_TOP,    OPT_JSON,      OPT_CSV,
    OPT_HTML,      OPT_SVG,      OPT_PLOT,     OPT_NO_REWRITES, 0};
static const int versus_options[] = {OPT_ORT_LIB, OPT_PROCESSES, OPT_IGNORE_LOAD, OPT_DIM, OPT_SHAPE,
                                     OPT_TOP,     OPT_JSON,      OPT_TUNE,        0};
static const int peer_options[] = {OPT_ORT_LIB, OPT_OUTPUT_DIR, OPT_TRACE, 0};
static const int worker_options[] = {OPT_AFFINITY, OPT_DIM, OPT_SHAPE, OPT_NO_REWRITES, OPT_BARRIER, 0};
static const int machine_options[] = {OPT_JSON, OPT_FRESH, 0};

static const int no_options[] = {0};

#define HIDDEN_COMMANDS "worker peer" /* stand last */
static const command_row commands[] = {
    {"inspect", "MODEL", "parameters, shapes, counts and memory; nothing runs", 1, 1, "bxy", shape_options},
    {"run", "MODEL", "one inference; with --output-dir the outputs as .npy", 1, 1, "xybiSp", run_options},
    {"profile", "[MODEL]", "where time and memory go (no MODEL: the digits network)", 0, 1, "xybiSrtwp",
     profile_options_list},
    {"bench", "MODEL", "latency and throughput", 1, 1, "xybiSrtwp", bench_options},
    {"scale", "MODEL", "a thread-scaling study that others can repeat", 1, 1, "xybiSrtwp", scale_options},
    {"versus", "MODEL", "beside ONNX Runtime: ratio, interval, operators", 1, 1, "xbiSrt", versus_options},
    {"compare", "A B", "two reports or models side by side; A is the baseline", 2, 2, "xybiSrtwp", compare_options},
    {"check", "TARGET", "thresholds on a report or a model", 1, 1, "xybiSrtwp", check_options},
    {"recommend", "TARGET", "what to change, with the measured or computed reason", 1, 1, "xybiSrtwp",
     recommend_options},
    {"metrics", "TARGET", "every metric of a report or a model", 1, 1, "xybiSrtwp", metrics_options},
    {"eval", "MODEL DATA", "accuracy on labelled data: folder, .npz or list", 2, 2, "xybwp", eval_options},
    {"extract", "MODEL", "a part as a model: --from TENSOR --to TENSOR -o OUT.onnx", 1, 1, "bo", extract_options},
    {"quantize", "MODEL", "a standard QDQ model: --calibrate DATA -o OUT.onnx", 1, 1, "xbop", quantize_options},
    {"verify", "DIR...", "ONNX test folders: model.onnx and test_data_set_*", 1, -1, "xy", verify_options},
    {"ops", "", "operators, opsets, types, kernels, cost formulas", 0, 0, "", ops_options},
    {"machine", "", "peak FLOP/s and bandwidth here, measured once", 0, 0, "xt", machine_options},
    {"completion", "SHELL", "a completion script for bash, zsh or fish", 1, 1, "", no_options},
    {"manual", "[COMMAND]", "the manual page, for man", 0, 1, "", no_options},
    {"worker", "MODEL", "a process of scale, which starts it", 1, 1, "xybiSrtwp", worker_options},
    {"peer", "MODEL", "a process of versus, which starts it", 1, 1, "xirt", peer_options},
    {NULL, NULL, NULL, 0, 0, NULL, NULL}};

/* Help, a line per option; more lines of text belong to the option above them. 0: every subcommand takes it. */
static const struct {
    int option;
    const char *text;
} option_help[] = {
    {'x', "  -x, --intra-op N       threads inside operators (default auto); bench and\n"
          "                         scale: lists in -x, -y, -b, -p: 1,2,4-8 (all\n"
          "                         combinations); versus: a list in -x\n"},
    {'y', "  -y, --inter-op N       workers that run operators side by side, each with -x\n"
          "                         threads (default 1), or auto: what the model gains from\n"},
    {OPT_NO_HELP, "      --no-help          idle workers leave the others' operators alone\n"},
    {OPT_AFFINITY, "      --affinity LIST    core list such as 0-3,8: a core for each thread\n"},
    {'b', "  -b, --batch N          first dimension of every input, where it is free\n"},
    {OPT_DIM, "      --dim NAME=N       a free dimension, by symbol or as INPUT.AXIS; '*' for\n"
              "                         every one that nothing else says anything of\n"},
    {OPT_MAX_DIM, "      --max-dim NAME=N   a free dimension that changes from run to run, and its\n"
                  "                         largest extent: one plan serves all up to that\n"},
    {OPT_SHAPE, "      --shape NAME=1x3x224x224   a whole input shape\n"},
    {'i', "  -i, --input NAME=FILE  .npy, .npz, .pb, .png, .jpg or raw; or a value: 16000,\n"
          "                         [1,2,3], [\"x\",\"y\"], zeros, ones, uniform:-1:1;\n"
          "                         otherwise inputs are generated or have their default\n"},
    {OPT_DATA_FOLDER, "      --data-folder DIR  where external data lies (default: beside the model)\n"},
    {OPT_PREPROCESS, "      --preprocess LIST  of images: resize=N|HxW|fit|none, crop=N|HxW,\n"
                     "                         normalize=0..1|-1..1|0..255|imagenet, mean=R:G:B,\n"
                     "                         std=R:G:B, channels=rgb|bgr, layout=nchw|nhwc,\n"
                     "                         filter=bilinear|bicubic; imagenet: as torchvision\n"},
    {OPT_TOPK, "      --topk N           the N best classes of the first output\n"},
    {OPT_LABELS, "      --labels F         class names, one per line\n"},
    {'S', "  -S, --seed N           of generated inputs (default 0)\n"},
    {'r', "  -r, --runs N           measured runs (default: until the median is known\n"
          "                         to 1 % or the time is up)\n"},
    {'t', "  -t, --seconds S        time limit such as 2, 500ms, 10m (default 5, with -r\n"
          "                         none; machine: 2; versus: 0.5 for each process)\n"},
    {'w', "  -w, --warmup N         runs before measuring (default: detected; eval: 1)\n"},
    {'p', "  -p, --precision P      fp32 (Winograd for 3x3: errors of a float32\n"
          "                         sum's size, also of integers), fp32-strict\n"
          "                         (products as written: integers stay exact;\n"
          "                         same bits on every instruction set), fast\n"
          "                         (about 1e-5 of the range), bf16, fp16, int8;\n"
          "                         int8-weights,\n"
          "                         int4-weights (activations stay fp32)\n"},
    {OPT_CALIBRATE, "      --calibrate DATA   of -p int8: folder, .npz or list of samples, or a\n"
                    "                         .calibration.json, which measuring leaves beside the\n"
                    "                         model\n"},
    {OPT_CALIBRATE_METHOD, "      --calibrate-method M   ranges by minmax (default), percentile or\n"
                           "                         entropy\n"},
    {OPT_KEEP_ACCURACY, "      --keep-accuracy P  of -p int8: layers stay in float until the outputs are\n"
                        "                         within P of their range, such as 0.5%\n"},
    {OPT_POWER_OF_TWO, "      --power-of-two     scales that are powers of two\n"},
    {OPT_LEVEL, "      --level LIST       model,module,layer,operator,nested\n"},
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
    {OPT_PROCESSES, "      --processes N      fresh processes: scale per configuration (default 10);\n"
                    "                         profile and bench: joined to one report (default 1);\n"
                    "                         versus: of each engine, in turns (default 7)\n"},
    {OPT_ORT_LIB, "      --ort-lib F        ONNX Runtime's library, libonnxruntime.so; otherwise\n"
                  "                         PRONY_ORT_LIB, or an npm package onnxruntime-node in\n"
                  "                         ./node_modules\n"},
    {OPT_BUDGET, "      --budget 10m       time for the whole study: s, m or h\n"},
    {OPT_REPLICAS, "      --replicas LIST    so many independent processes at once as well: 1,2,4\n"},
    {OPT_WEAK, "      --weak             the batch grows with the threads\n"},
    {OPT_RESUME, "      --resume           goes on with the study in the file of --json\n"},
    {OPT_OVERWRITE, "      --overwrite        replaces the study in the file of --json by a new\n"
                    "                         one; without it the file stays as it is\n"},
    {OPT_REPEAT, "      --repeat STUDY     the same plan here; status 3 if a result differs\n"},
    {OPT_TIMEOUT, "      --timeout S        when a process that does not answer is ended\n"},
    {OPT_PLOT, "      --plot F           the speed-up as SVG; others: --svg efficiency=F,\n"
               "                         operators=F, timeline=F\n"},
    {OPT_DOT, "      --dot F            the graph coloured by time, for Graphviz; F.svg: drawn\n"},
    {OPT_SVG, "      --svg CHART=F      layers, types, roofline, memory, latency, modules,\n"
              "                         graph or accuracy\n"},
    {OPT_OUTPUT_DIR, "      --output-dir D     outputs as D/output_K.npy: text as <U, narrow floats as\n"
                     "                         float32, a sequence as output_K_0.npy and so on;\n"
                     "                         profile: every form as well\n"},
    {OPT_MEMORY, "      --memory           the arena's events and timeline as well\n"},
    {OPT_MEMORY_LIMIT, "      --memory-limit N   such as 2GiB, or none; otherwise PRONY_MEMORY_LIMIT, or\n"
                       "                         what is available here less 1/16, at least 64 MiB\n"},
    {OPT_THRESHOLD, "      --threshold M:V... limits such as latency:100ms throughput:1000samples/s\n"
                    "                         held_memory:64MiB; a missed one ends with status 3\n"},
    {OPT_NOISE, "      --noise P          differences below P per cent are none (default 1)\n"},
    {OPT_IGNORE_LOAD, "      --ignore-load      judge times although others had part of the machine\n"},
    {OPT_STRICT, "      --strict           what cannot be told counts against it: status 3\n"},
    {OPT_METRICS, "      --metrics LIST     these alone: latency,macs; compare: these\n"
                  "                         decide, all or a list (default: latency, throughput\n"
                  "                         and memory)\n"},
    {OPT_DETAILED, "      --detailed         descriptions and directions too, and what is unknown\n"},
    {OPT_NO_REWRITES, "      --no-rewrites      run the model's own nodes, unfused\n"},
    {OPT_SCENARIO, "      --scenario NAME    single, multi, server or offline load\n"},
    {OPT_STREAMS, "      --streams N        sessions side by side on one model's weights\n"},
    {OPT_MAX_BATCH, "      --max-batch N      up to N requests in one run\n"},
    {OPT_BATCH_WINDOW, "      --batch-window T   that a request waits for others: 2ms (default 0ms)\n"},
    {OPT_SAMPLES_PER_QUERY, "      --samples-per-query N   multi: requests issued together (default 8)\n"},
    {OPT_LATENCY_BOUND, "      --latency-bound T  what the latency's percentile has to keep: 20ms\n"},
    {OPT_RATE, "      --rate R           server: R arrivals a second, no search\n"},
    {OPT_PERCENTILE, "      --percentile P     of the bound (default 99; single: 90)\n"},
    {OPT_WITH_LOAD, "      --with-load        beside a busy thread pinned to each core\n"},
    {OPT_FROM, "      --from TENSOR      the part behind this tensor (repeatable); what lies\n"
               "                         there is recorded from a run of the model\n"},
    {OPT_TO, "      --to TENSOR        the part that this tensor needs (repeatable)\n"},
    {'o', "  -o, --output F         the model that is written\n"},
    {OPT_COUNTERS, "      --counters         cycles, instructions and cache misses per operator,\n"
                   "                         where the kernel gives them\n"},
    {OPT_ACCURACY, "      --accuracy         every operator beside a float64 reference: its own\n"
                   "                         error, and the accumulated one\n"},
    {OPT_ACCURACY_SAMPLES, "      --accuracy-samples N   own errors of N operators, evenly along the network\n"
                           "                         (default: all); the accumulated ones are of all\n"},
    {OPT_REFERENCE, "      --reference MODEL  --accuracy beside another model in float64, such as the\n"
                    "                         one that this was quantized from, by layers' names\n"},
    {OPT_AGAINST, "      --against [NAME=]F compares an output with another runtime's: .npy, .pb,\n"
                  "                         or .npz with arrays named as outputs (repeatable)\n"},
    {OPT_NO_REUSE, "      --no-reuse         every value in memory of its own: no views, nothing\n"
                   "                         in place; for doubts about the memory plan\n"},
    {OPT_TIME_LIMIT, "      --time-limit T     ends after 60s, 500ms, ... with what is there by then\n"},
    {OPT_MAX_LOOP_TRIPS, "      --max-loop-trips N of one Loop (default 2^31)\n"},
    {OPT_COPY_MODEL, "      --copy-model       read the model whole: it may change meanwhile\n"},
    {OPT_TUNE, "      --tune             kernels by measurement, kept by model and machine in\n"
               "                         the user's cache folder; --fresh measures again\n"},
    {OPT_FRESH, "      --fresh            measure again what is kept\n"},
    {0, "  -q, --quiet            errors only\n"
        "      --no-color         as NO_COLOR does\n"
        "      --no-progress      no line that counts runs\n"
        "  -h, --help\n"
        "      --version          with commit, instruction set and libraries\n"}};

const command_row *command_at(size_t index)
{
    return index + 3 < sizeof commands / sizeof *commands ? &commands[index] : NULL;
}

const char *option_help_at(size_t index, int *option)
{
    if (index >= sizeof option_help / sizeof *option_help) return NULL;
    *option = option_help[index].option;
    return option_help[index].text;
}

/* `names` are separated by spaces. */
static bool option_table_is_named(const command_row *command, const char *names)
{
    size_t length = strlen(command->name);
    for (const char *name = names; *name; name += strspn(name, " ")) {
        size_t size = strcspn(name, " ");
        if (size == length && strncmp(name, command->name, size) == 0) return true;
        name += size;
    }
    return false;
}

bool command_takes(const command_row *command, int option)
{
    if (option == 'q' || option == 'h' || option == OPT_NO_COLOR || option == OPT_NO_PROGRESS || option == OPT_VERSION)
        return true;
    bool no_model = option_table_is_named(command, "ops machine completion manual");
    if (option == OPT_TIME_LIMIT) return !no_model || option_table_is_named(command, "machine");
    if (option == OPT_MAX_LOOP_TRIPS) return !no_model && !option_table_is_named(command, "inspect extract quantize");
    if (option == OPT_COPY_MODEL) return !no_model;
    if (option == OPT_PREPROCESS && strchr(command->letters, 'i')) return true;  /* who takes inputs takes images */
    if (option == OPT_DATA_FOLDER) return strchr(command->letters, 'b') != NULL; /* who binds shapes loads models */
    if (option == OPT_MEMORY_LIMIT) return !no_model;
    if (option == OPT_CALIBRATE || option == OPT_CALIBRATE_METHOD || option == OPT_KEEP_ACCURACY ||
        option == OPT_POWER_OF_TWO)
        return option_table_is_named(command,
                                     "run profile bench eval quantize scale worker compare check metrics recommend");
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
        fprintf(to, "usage: prony COMMAND [arguments] [options]\n"
                    "       prony MODEL [options]     as prony profile MODEL\n\n");
        for (const command_row *c = commands; c->name; c++)
            if (!option_table_is_named(c, HIDDEN_COMMANDS))
                fprintf(to, "  %-10s %-10s %s\n", c->name, c->arguments, c->summary);
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

/* ---- names that people try ---- */

static const struct {
    const char *other, *own;
} other_names[] = {{"threads", "intra-op"},
                   {"num-threads", "intra-op"},
                   {"nthreads", "intra-op"},
                   {"num_threads", "intra-op"},
                   {"intra-op-threads", "intra-op"},
                   {"intra_op_num_threads", "intra-op"},
                   {"inter-op-threads", "inter-op"},
                   {"inter_op_num_threads", "inter-op"},
                   {"iterations", "runs"},
                   {"iters", "runs"},
                   {"num-iterations", "runs"},
                   {"num-runs", "runs"},
                   {"num_runs", "runs"},
                   {"repetitions", "runs"},
                   {"warmup-runs", "warmup"},
                   {"warm-up", "warmup"},
                   {"warmup-iterations", "warmup"},
                   {"warmup_runs", "warmup"},
                   {"duration", "seconds"},
                   {"time", "seconds"},
                   {"batch-size", "batch"},
                   {"batch_size", "batch"},
                   {"batchsize", "batch"},
                   {"input-shape", "shape"},
                   {"input-shapes", "shape"},
                   {"shapes", "shape"},
                   {"dims", "dim"},
                   {"symbolic-dim", "dim"},
                   {"free-dim", "dim"},
                   {"inputs", "input"},
                   {"dtype", "precision"},
                   {"random-seed", "seed"},
                   {"cpus", "affinity"},
                   {"cores", "affinity"},
                   {"taskset", "affinity"},
                   {"sort-by", "sort"},
                   {"limit", "top"},
                   {"no-fusion", "no-rewrites"},
                   {"no-optimization", "no-rewrites"},
                   {"external-data", "data-folder"},
                   {"silent", "quiet"}};

const char *option_by_other_name(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strlen(other_names[i].other) == length && strncmp(other_names[i].other, word, length) == 0)
            return other_names[i].own;
    return NULL;
}

/* Insertions, deletions, replacements and swaps of neighbours between two words; both are cut to what fits. */
static int option_table_distance(const char *a, const char *b)
{
    enum { LONGEST = 40 };
    int d[LONGEST + 1][LONGEST + 1], n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

/* Takes `name` over if it is nearer to `word` than what was found before; a third of its letters may be wrong. */
static void consider(const char *word, const char *name, const char **found, int *least)
{
    int wrong = option_table_distance(word, name), allowed = (int)strlen(name) > 3 ? ((int)strlen(name) + 2) / 3 : 1;
    if (wrong > allowed || wrong >= *least) return;
    *found = name;
    *least = wrong;
}

const char *nearest_command(const char *word)
{
    const char *found = NULL;
    int least = INT_MAX;
    for (size_t i = 0; command_at(i); i++) consider(word, command_at(i)->name, &found, &least);
    return found;
}

static int find_option(const char *name)
{
    for (const struct option *o = long_options; o->name; o++)
        if (strcmp(o->name, name) == 0) return o->val;
    return OPT_NONE;
}

const char *nearest_option(const command_row *command, const char *word)
{
    const char *found = NULL;
    int least = INT_MAX;
    for (const struct option *o = long_options; o->name; o++)
        if (!command || command_takes(command, o->val)) consider(word, o->name, &found, &least);
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (!command || command_takes(command, find_option(other_names[i].own)))
            consider(word, other_names[i].other, &found, &least);
    return found;
}
