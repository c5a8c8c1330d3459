/* The rows of the command line: commands and options. A new option is a row here and a field in bench/command.h. */
#include "bench/options/option_table.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

// clang-format off
static const command_row commands[COMMAND_COUNT] = {
    [COMMAND_INSPECT] = {"inspect", "MODEL", "parameters, shapes, counts and memory; nothing runs", 1, 1,
        {"inspect model.onnx", "inspect model.onnx -b 8 --sort parameters --top 10", "inspect model.onnx --count fvcore --json -"}},
    [COMMAND_RUN] = {"run", "MODEL", "one inference, with a summary", 1, 1,
        {"run model.onnx", "run model.onnx -i image=cat.png --preprocess imagenet --topk 5", "run model.onnx --dim length=16 --output-dir outputs"}},
    [COMMAND_PROFILE] = {"profile", "[MODEL]", "where time and memory go (no MODEL: the digits network)", 0, 1,
        {"profile model.onnx", "profile model.onnx -b 8 -x 4 --html report.html", "profile model.onnx --json report.json --threshold latency:20ms"}},
    [COMMAND_BENCH] = {"bench", "MODEL", "latency and throughput", 1, 1,
        {"bench model.onnx", "bench model.onnx -x 1,2,4 -b 1,8", "bench model.onnx --scenario server --latency-bound 20ms"}},
    [COMMAND_SCALE] = {"scale", "[MODEL]", "a thread-scaling study that others can repeat", 0, -1,
        {"scale model.onnx --json study.json", "scale model.onnx -x 1,2,4 --budget 10m --html study.html", "scale model.onnx --repeat study.json",
         "scale --join a.json b.json --html page.html"}},
    [COMMAND_VERSUS] = {"versus", "MODEL", "comparison with ONNX Runtime: ratio, interval, operators", 1, 1,
        {"versus model.onnx", "versus model.onnx -x 1,4 --json versus.json",
         "versus gpt2.onnx --generate prompt=32,new=16"}},
    [COMMAND_COMPARE] = {"compare", "A B", "compares two reports, models or studies; A: baseline", 2, 2,
        {"compare before.json after.json", "compare float.onnx int8.onnx -x 1", "compare before.json after.json --metrics all --strict"}},
    [COMMAND_CHECK] = {"check", "TARGET", "checks a report or a model against thresholds", 1, 1,
        {"check report.json --threshold latency:20ms", "check model.onnx --threshold throughput:100samples/s held_memory:64MiB"}},
    [COMMAND_RECOMMEND] = {"recommend", "TARGET", "changes, with the measured or computed reason", 1, 1,
        {"recommend report.json", "recommend model.onnx -t 2"}},
    [COMMAND_METRICS] = {"metrics", "TARGET", "every metric of a report or a model", 1, 1,
        {"metrics report.json", "metrics model.onnx --metrics latency,macs --json -"}},
    [COMMAND_EVAL] = {"eval", "MODEL [DATA]", "accuracy on labelled data, or perplexity of tokens", 1, 2,
        {"eval model.onnx images/ --preprocess imagenet", "eval model.onnx data.npz -p fp32,int8 --calibrate samples.npz",
         "eval decoder.onnx --token-ids tokens.npy -p fp32,int4-weights"}},
    [COMMAND_EXTRACT] = {"extract", "MODEL", "a part of a model, saved as a model", 1, 1,
        {"extract model.onnx --from hidden --to logits -o part.onnx"}},
    [COMMAND_QUANTIZE] = {"quantize", "MODEL", "an int8 model in the standard QDQ form", 1, 1,
        {"quantize model.onnx --calibrate samples/ -o int8.onnx", "quantize model.onnx --calibrate s.npz --keep-accuracy 0.5% -o int8.onnx",
         "quantize decoder.onnx -p int4-weights --calibrate ids.npy -o int4.onnx"}},
    [COMMAND_SERVE] = {"serve", "MODEL[=NAME]...", "an HTTP service: inference, metrics, a live page", 1, 64,
        {"serve model.onnx", "serve model.onnx=classifier --max-batch 8 --batch-window 2ms", "serve a.onnx b.onnx --port 9000 --streams 2",
         "serve model.onnx --alert \"latency_p99 > 50ms for 60s\""}},
    [COMMAND_CAPACITY] = {"capacity", "MODEL", "the least processors that keep a latency bound at a rate", 1, 1,
        {"capacity model.onnx --rate 500 --latency-bound 20ms", "capacity model.onnx --rate 500 --latency-bound 20ms --processors 16"}},
    [COMMAND_VERIFY] = {"verify", "DIR...", "runs ONNX test folders: model.onnx, test_data_set_*", 1, -1,
        {"verify node/test_*"}},
    [COMMAND_OPS] = {"ops", "", "operators, opsets, types, kernels, cost formulas", 0, 0,
        {"ops --filter name=Conv*", "ops --json ops.json"}},
    [COMMAND_MACHINE] = {"machine", "", "peak FLOP/s and bandwidth here, measured once", 0, 0,
        {"machine", "machine --no-cache"}},
    [COMMAND_DEVICES] = {"devices", "", "OpenCL devices for --device, and what they reach", 0, 0,
        {"devices", "devices --json -"}},
    [COMMAND_HISTORY] = {"history", "FILE.db [ACTION]", "runs kept by --history: trend, check, import", 1, -1,
        {"history perf.db", "history perf.db trend latency --model resnet50", "history perf.db check", "history perf.db --html dashboard.html"}},
    [COMMAND_COMPLETION] = {"completion", "SHELL", "a completion script for bash, zsh or fish", 1, 1, {"completion bash"}},
    [COMMAND_MANUAL] = {"manual", "[COMMAND]", "the manual page; markdown: the table of options", 0, 1,
        {"manual profile", "manual markdown"}},
    [COMMAND_WORKER] = {"worker", "MODEL", "a process of scale, which starts it", 1, 1, {NULL}},
    [COMMAND_PEER] = {"peer", "MODEL", "a process of versus, which starts it", 1, 1, {NULL}}};

static const char *const group_titles[GROUP_COUNT] = {
    [GROUP_MODEL] = "Model and inputs", [GROUP_THREADS] = "Threads and device", [GROUP_MEASURING] = "Measuring", [GROUP_LOAD] = "Load", [GROUP_SERVICE] = "Service", [GROUP_GENERATION] = "Text generation",
    [GROUP_PRECISION] = "Precision and accuracy", [GROUP_KERNELS] = "Kernels and memory plan", [GROUP_VERDICTS] = "Verdicts",
    [GROUP_REPORT] = "Report contents", [GROUP_FILES] = "Files", [GROUP_LIMITS] = "Limits", [GROUP_TERMINAL] = "Terminal"};

/* Bits of commands. */
enum {
    INSPECT = 1 << COMMAND_INSPECT, RUN = 1 << COMMAND_RUN, PROFILE = 1 << COMMAND_PROFILE, BENCH = 1 << COMMAND_BENCH,
    SCALE = 1 << COMMAND_SCALE, VERSUS = 1 << COMMAND_VERSUS, COMPARE = 1 << COMMAND_COMPARE, CHECK = 1 << COMMAND_CHECK,
    RECOMMEND = 1 << COMMAND_RECOMMEND, METRICS = 1 << COMMAND_METRICS, EVAL = 1 << COMMAND_EVAL, EXTRACT = 1 << COMMAND_EXTRACT,
    QUANTIZE = 1 << COMMAND_QUANTIZE, VERIFY = 1 << COMMAND_VERIFY, OPS = 1 << COMMAND_OPS, MACHINE = 1 << COMMAND_MACHINE, DEVICES = 1 << COMMAND_DEVICES,
    HISTORY = 1 << COMMAND_HISTORY, SERVE = 1 << COMMAND_SERVE, CAPACITY = 1 << COMMAND_CAPACITY,
    WORKER = 1 << COMMAND_WORKER, PEER = 1 << COMMAND_PEER,
    EVERY = (1 << COMMAND_COUNT) - 1,
    TARGETS = COMPARE | CHECK | RECOMMEND | METRICS, /* reports, or models that they measure */
    MEASURED = PROFILE | BENCH | SCALE | TARGETS | WORKER,
    BOUND = INSPECT | RUN | VERSUS | EVAL | EXTRACT | QUANTIZE | MEASURED, /* free dimensions are set */
    LOADED = BENCH | SERVE | CAPACITY, /* a batcher with sessions side by side */
    MODELS = BOUND | VERIFY | PEER | SERVE | CAPACITY,
    GENERATED = RUN | VERSUS | MEASURED, /* inputs are generated */
    PLANNED = RUN | EVAL | PROFILE | BENCH | TARGETS,
    QUANTIZED = RUN | EVAL | QUANTIZE | MEASURED,
    TABLES = INSPECT | EVAL | PROFILE,
    DOCUMENTS = BENCH | COMPARE | CHECK | RECOMMEND | VERSUS | HISTORY | CAPACITY, /* commands whose results are tables of their own */
    MATRIX = BENCH | SCALE,
    KEEPERS = PROFILE | BENCH | CHECK | EVAL | SCALE | SERVE, /* keep their runs with --history */
    GENERATES = RUN | PROFILE | BENCH | VERSUS,
    SHARDED = RUN | PROFILE | BENCH | EVAL /* stages of a model on the ranks of prony-mpi */
};

#define MOST_RUNS 1e8
#define RUN_ALIASES .aliases = "iterations iters num-iterations num-runs num_runs repetitions"
#define WARMUP_ALIASES .aliases = "warmup-runs warm-up warmup-iterations warmup_runs"
#define BATCH_ALIASES .aliases = "batch-size batch_size batchsize"
#define WORKER_ALIASES .aliases = "inter-op-threads inter_op_num_threads"
#define THREAD_ALIASES .aliases = "threads num-threads nthreads num_threads intra-op-threads intra_op_num_threads"
#define LIST_WANTED "numbers from 1 to 1024 such as 1,2,4-8, or auto"
#define F(field) offsetof(options, field)
#define LIST(field, count) offsetof(options, field), offsetof(options, count)

/* Columns: name, letter, rank, group, commands, type, field. In the order of the help, by group. */
static const option_row rows[] = {
    /* ---- model and inputs ---- */
    {"batch", 'b', OPTION_FIRST, GROUP_MODEL, MATRIX, OPTION_PARSED, .parse = parse_batches, .value = "LIST",
     .help = "first dimension, if it is free, such as 1,4,8", .wanted = "numbers from 1 such as 1,4,8",
     BATCH_ALIASES},
    {"batch", 'b', OPTION_FIRST, GROUP_MODEL, BOUND & ~MATRIX, OPTION_INT, F(model.batch), .least = 1, .most = (double)INT64_MAX,
     .value = "N", .help = "first dimension of every input, if it is free", BATCH_ALIASES},
    {"dim", 0, OPTION_FIRST, GROUP_MODEL, BOUND | SERVE | CAPACITY, OPTION_DIMS, LIST(model.dims, model.dim_count), .value = "NAME=N",
     .help = "free dimension by name or INPUT.AXIS; '*': the rest",
     .aliases = "dims symbolic-dim free-dim"},
    {"max-dim", 0, OPTION_RARE, GROUP_MODEL, RUN | EVAL | PROFILE | BENCH | SERVE, OPTION_DIMS, LIST(model.max_dims, model.max_dim_count), .least = 1,
     .value = "NAME=N", .help = "the maximum of a free dimension that changes from run to run; one plan serves all sizes"},
    {"shape", 0, OPTION_COMMON, GROUP_MODEL, BOUND | SERVE | CAPACITY, OPTION_PARSED, .parse = parse_named_shape, .value = "NAME=SHAPE",
     .help = "a whole input shape such as 1x3x224x224", .wanted = "a shape such as 1x3x224x224",
     .aliases = "input-shape input-shapes shapes"},
    {"input", 'i', OPTION_FIRST, GROUP_MODEL, GENERATED | PEER | CAPACITY, OPTION_PARSED, .parse = parse_input, .value = "NAME=FILE",
     .help = "array or image file, or a value",
     .details = "A file is .npy, .npz, .pb, .png, .jpg or raw. A value is a number (16000), a list ([1,2,3], [\"x\",\"y\"]), zeros, ones or uniform:-1:1. Inputs with a default in the model keep it.",
     .otherwise = "generated", .wanted = "NAME=VALUE", .aliases = "inputs"},
    {"seed", 'S', OPTION_RARE, GROUP_MODEL, GENERATED | CAPACITY, OPTION_INT, F(model.seed), .most = (double)INT64_MAX, .value = "N",
     .help = "seed of generated inputs", .initial = "0", .aliases = "random-seed"},
    {"preprocess", 0, OPTION_COMMON, GROUP_MODEL, GENERATED | EVAL | QUANTIZE | PEER, OPTION_PARSED, .parse = parse_preprocess,
     .choices = "imagenet,resize=,crop=,normalize=,mean=,std=,channels=,layout=,filter=", .value = "LIST",
     .help = "image conversion: imagenet, or resize=256,crop=224",
     .details = "resize=N|HxW|fit|none, crop=N|HxW, normalize=0..1|-1..1|0..255|imagenet, mean=R:G:B, std=R:G:B, "
                "channels=rgb|bgr, layout=nchw|nhwc, filter=bilinear|bicubic; imagenet: as torchvision."},
    {"from", 0, OPTION_RARE, GROUP_MODEL, RUN | PROFILE | BENCH | EXTRACT, OPTION_TEXTS, LIST(model.from, model.from_count), .value = "TENSOR",
     .help = "use the part of the model after this tensor (repeatable)", .details = "Its value is recorded from a run of the model."},
    {"to", 0, OPTION_RARE, GROUP_MODEL, RUN | PROFILE | BENCH | EXTRACT, OPTION_TEXTS, LIST(model.to, model.to_count), .value = "TENSOR",
     .help = "use the part of the model that computes this tensor (repeatable)"},

    /* ---- threads ---- */
    {"intra-op", 'x', OPTION_FIRST, GROUP_THREADS, BENCH | VERSUS, OPTION_PARSED, .parse = parse_thread_list, .value = "LIST",
     .help = "threads in operators, such as 1,2,4-8", .otherwise = "auto", .wanted = LIST_WANTED, THREAD_ALIASES},
    {"intra-op", 'x', OPTION_COMMON, GROUP_THREADS, SCALE, OPTION_PARSED, .parse = parse_thread_list, .value = "LIST",
     .help = "threads in operators", .otherwise = "1, 2, 4, ... all", .wanted = LIST_WANTED, THREAD_ALIASES},
    {"intra-op", 'x', OPTION_FIRST, GROUP_THREADS, (MODELS | MACHINE) & ~(MATRIX | VERSUS | EXTRACT | CAPACITY), OPTION_PARSED, F(threads.intra_op),
     .parse = parse_threads, .value = "N", .help = "threads in operators", .otherwise = "auto",
     .wanted = "a number from 1 to 1024, or auto (bench, scale and versus take lists)", THREAD_ALIASES},
    {"inter-op", 'y', OPTION_COMMON, GROUP_THREADS, MATRIX, OPTION_PARSED, .parse = parse_worker_list, .value = "LIST",
     .help = "operators side by side, such as 1,2", .otherwise = "1",
     .details = "Each worker has -x threads. auto: the number that makes the model fastest.",
     .wanted = LIST_WANTED, WORKER_ALIASES},
    {"inter-op", 'y', OPTION_COMMON, GROUP_THREADS, INSPECT | RUN | EVAL | VERIFY | SERVE | (MEASURED & ~MATRIX), OPTION_PARSED,
     F(threads.inter_op), .parse = parse_workers, .value = "N",
     .help = "operators side by side, or auto", .otherwise = "1",
     .details = "Each worker has -x threads. auto: the number that makes the model fastest.",
     .wanted = "a number from 1 to 1024, or auto", WORKER_ALIASES},
    {"affinity", 0, OPTION_COMMON, GROUP_THREADS, RUN | EVAL | MEASURED | SERVE, OPTION_PARSED, .parse = parse_affinity, .value = "LIST",
     .help = "core list such as 0-3,8: a core for each thread", .aliases = "cpus cores taskset"},
    {"device", 0, OPTION_COMMON, GROUP_THREADS, PLANNED | VERIFY | SERVE | CAPACITY, OPTION_TEXT, F(plan.device), .value = "D",
     .help = "run operators on opencl, opencl:N or opencl:NAME",
     .details = "Operators without a kernel for the device run on the processor; the report lists the copies in between."},
    {"device-split", 0, OPTION_RARE, GROUP_THREADS, PLANNED | VERIFY | SERVE | CAPACITY, OPTION_CHOICE, F(plan.device_split),
     .choices = "auto,memory,none", .value = "MODE",
     .help = "operators that may stay on the processor for memory and copies, for memory alone, or none", .otherwise = "auto",
     .details = "none refuses a model that does not fit the device's memory. Copies count where prony devices measured the device."},
    {"no-work-stealing", 0, OPTION_RARE, GROUP_THREADS, PLANNED, OPTION_FLAG, F(threads.no_work_stealing),
     .help = "idle workers do not help other workers' operators"},
    {"shard", 0, OPTION_RARE, GROUP_THREADS, SHARDED, OPTION_INT, F(shard.stages), .least = 1, .most = 1024, .value = "P",
     .help = "prony-mpi: the model in P stages, one on each rank"},
    {"shard-by", 0, OPTION_RARE, GROUP_THREADS, SHARDED, OPTION_CHOICE, F(shard.by), .choices = "time,memory,measured", .value = "KEY",
     .help = "prony-mpi: stages of even predicted time, of least memory, or of even measured time", .otherwise = "time"},
    {"shard-cut", 0, OPTION_RARE, GROUP_THREADS, SHARDED, OPTION_TEXT, F(shard.cut), .value = "NAMES",
     .help = "prony-mpi: tensors after which stages end, such as a,b", .otherwise = "the plan chooses"},
    {"micro-batch", 0, OPTION_RARE, GROUP_THREADS, SHARDED, OPTION_INT, F(shard.micro_batch), .least = 1, .most = 1e9, .value = "N",
     .help = "prony-mpi: samples that pass the stages at once", .otherwise = "the batch"},

    /* ---- measuring ---- */
    {"runs", 'r', OPTION_COMMON, GROUP_MEASURING, VERSUS | PEER, OPTION_INT, F(measuring.runs), .least = 1, .most = MOST_RUNS,
     .value = "N", .help = "at most N measured runs in each process",
     RUN_ALIASES},
    {"runs", 'r', OPTION_COMMON, GROUP_MEASURING, SCALE, OPTION_INT, F(measuring.runs), .least = 1, .most = MOST_RUNS,
     .value = "N", .help = "measured runs of a process", .otherwise = "as many as -t allows",
     RUN_ALIASES},
    {"runs", 'r', OPTION_FIRST, GROUP_MEASURING, MEASURED & ~SCALE, OPTION_INT, F(measuring.runs), .least = 1, .most = MOST_RUNS,
     .value = "N", .help = "measured runs", .otherwise = "median known to 1 %",
     RUN_ALIASES},
    {"seconds", 't', OPTION_COMMON, GROUP_MEASURING, SCALE, OPTION_SECONDS, F(measuring.seconds), .value = "S",
     .help = "measuring time of a process", .otherwise = "1", .aliases = "duration time"},
    {"seconds", 't', OPTION_FIRST, GROUP_MEASURING, MEASURED & ~SCALE, OPTION_SECONDS, F(measuring.seconds), .value = "S",
     .help = "time limit: 2, 500ms, 10m", .otherwise = "5; with -r none", .aliases = "duration time"},
    {"seconds", 't', OPTION_COMMON, GROUP_MEASURING, VERSUS | PEER, OPTION_SECONDS, F(measuring.seconds), .value = "S",
     .help = "time for each process", .initial = "0.5", .aliases = "duration time"},
    {"seconds", 't', OPTION_COMMON, GROUP_MEASURING, MACHINE, OPTION_SECONDS, F(measuring.seconds), .value = "S",
     .help = "time for all measurements", .otherwise = "2", .aliases = "duration time"},
    {"seconds", 't', OPTION_COMMON, GROUP_MEASURING, CAPACITY, OPTION_SECONDS, F(measuring.seconds), .value = "S",
     .help = "time that all measurements share; at least 8 runs of each", .initial = "10", .aliases = "duration time"},
    {"warmup", 'w', OPTION_COMMON, GROUP_MEASURING, MEASURED, OPTION_INT, F(measuring.warmup), .most = MOST_RUNS, .value = "N",
     .help = "runs before measuring", .otherwise = "detected", WARMUP_ALIASES},
    {"warmup", 'w', OPTION_COMMON, GROUP_MEASURING, EVAL, OPTION_INT, F(measuring.warmup), .most = MOST_RUNS, .value = "N",
     .help = "runs before measuring", .initial = "1", WARMUP_ALIASES},
    {"processes", 0, OPTION_COMMON, GROUP_MEASURING, PROFILE | BENCH, OPTION_INT, F(measuring.processes), .least = 1, .most = 1000,
     .value = "N", .help = "fresh processes, joined in one report", .initial = "1"},
    {"processes", 0, OPTION_COMMON, GROUP_MEASURING, SCALE, OPTION_INT, F(measuring.processes), .least = 1, .most = 1000, .value = "N",
     .help = "fresh processes for each configuration", .otherwise = "10"},
    {"processes", 0, OPTION_COMMON, GROUP_MEASURING, VERSUS, OPTION_INT, F(measuring.processes), .least = 1, .most = 1000, .value = "N",
     .help = "fresh processes of each engine, in turns", .initial = "7"},
    {"no-cache", 0, OPTION_COMMON, GROUP_MEASURING, MACHINE, OPTION_FLAG, F(plan.no_cache), .help = "measure again"},
    {"one-process", 0, OPTION_INTERNAL, GROUP_MEASURING, PROFILE | BENCH, OPTION_FLAG, F(measuring.one_process),
     .help = "one process of --processes: its report goes to stdout"},
    {"barrier", 0, OPTION_INTERNAL, GROUP_MEASURING, WORKER, OPTION_FLAG, F(measuring.barrier),
     .help = "wait for the other replicas before measuring"},
    {"counters", 0, OPTION_RARE, GROUP_MEASURING, PROFILE, OPTION_FLAG, F(measuring.counters),
     .help = "cycles, instructions and cache misses per operator, if the kernel allows"},
    {"budget", 0, OPTION_COMMON, GROUP_MEASURING, SCALE, OPTION_SECONDS, F(measuring.budget), .value = "T",
     .help = "time for the whole study, such as 10m"},
    {"replicas", 0, OPTION_COMMON, GROUP_MEASURING, SCALE, OPTION_INTS, F(measuring.replicas), .least = 1, .most = 1024, .value = "LIST",
     .help = "also measure processes side by side: 1,2,4"},
    {"weak", 0, OPTION_COMMON, GROUP_MEASURING, SCALE, OPTION_FLAG, F(measuring.weak), .help = "the batch grows with the threads",
     .aliases = "weak-scaling"},
    {"generate", 0, OPTION_COMMON, GROUP_MEASURING, RUN | BENCH | VERSUS | PEER, OPTION_PARSED, .parse = parse_generate, .value = "SIZES",
     .help = "a decoder's prompt and new tokens: prompt=512,new=128",
     .details = "run prints the new ids; bench measures prefill and decode, versus both beside ONNX Runtime.",
     .wanted = "prompt=N and new=N, separated by a comma, each from 1 to 2147483647"},
    {"generate", 0, OPTION_RARE, GROUP_MEASURING, PROFILE, OPTION_PARSED, .parse = parse_generate, .value = "SIZES",
     .help = "a decoder's prompt and new tokens: prompt=512,new=128",
     .details = "The report is of one step at the last position. The prompt's report goes to files beside it: F_prefill.",
     .wanted = "prompt=N and new=N, separated by a comma, each from 1 to 2147483647"},

    /* ---- load ---- */
    {"scenario", 0, OPTION_COMMON, GROUP_LOAD, BENCH, OPTION_CHOICE, F(load.scenario), .choices = "single,multi,server,offline",
     .value = "NAME", .help = "load: single, multi, server or offline",
     .details = "With a scenario the default of --seconds is 10."},
    {"streams", 0, OPTION_COMMON, GROUP_LOAD, BENCH | SERVE, OPTION_INT, F(load.streams), .least = 1, .most = 1024, .value = "N",
     .help = "sessions side by side that share one model's weights", .otherwise = "1"},
    {"max-batch", 0, OPTION_COMMON, GROUP_LOAD, LOADED & ~CAPACITY, OPTION_INT, F(load.max_batch), .least = 1, .most = 65536, .value = "N",
     .help = "combine up to N requests in one run", .otherwise = "1"},
    {"max-batch", 0, OPTION_COMMON, GROUP_LOAD, CAPACITY, OPTION_INT, F(load.max_batch), .least = 1, .most = 65536, .value = "N",
     .help = "combine up to N requests in one run", .otherwise = DEFAULT_TEXT(DEFAULT_CAPACITY_BATCH) "; 1 if the model's requests cannot be combined"},
    {"batch-window", 0, OPTION_RARE, GROUP_LOAD, LOADED, OPTION_TIME, F(load.batch_window_ns), .value = "T",
     .help = "time that a request waits for others, such as 2ms", .otherwise = "0ms"},
    {"samples-per-query", 0, OPTION_RARE, GROUP_LOAD, BENCH, OPTION_INT, F(load.samples_per_query), .least = 1, .most = 65536,
     .value = "N", .help = "multi: requests issued together", .otherwise = "8"},
    {"latency-bound", 0, OPTION_COMMON, GROUP_LOAD, BENCH | CAPACITY, OPTION_TIME, F(load.latency_bound_ns), .least = 1, .value = "T",
     .help = "upper bound of the latency's percentile, such as 20ms"},
    {"rate", 0, OPTION_COMMON, GROUP_LOAD, BENCH, OPTION_NUMBER, F(load.rate), .least = 1e-6, .most = 1e9, .value = "R",
     .help = "server: arrivals per second", .otherwise = "searched", .wanted = "arrivals per second from 1e-6 to 1e9"},
    {"rate", 0, OPTION_FIRST, GROUP_LOAD, CAPACITY, OPTION_NUMBER, F(load.rate), .least = 1e-6, .most = 1e9, .value = "R",
     .help = "requests per second", .wanted = "requests per second from 1e-6 to 1e9"},
    {"processors", 0, OPTION_COMMON, GROUP_LOAD, CAPACITY, OPTION_INT, F(capacity.cores), .least = 1, .most = 1024, .value = "N",
     .help = "processors of the largest machine to consider", .otherwise = "this machine's",
     .details = "Beyond this machine's processors, times of sessions side by side are taken from the most that it has."},
    {"percentile", 0, OPTION_RARE, GROUP_LOAD, BENCH | CAPACITY, OPTION_PERCENT, F(load.percentile), .least = 50, .most = 99.9, .value = "P",
     .help = "percentile of the bound", .otherwise = "99; single: 90", .wanted = "a number from 50 to 99.9"},
    {"with-load", 0, OPTION_RARE, GROUP_LOAD, BENCH, OPTION_FLAG, F(load.with_load),
     .help = "measure beside a busy thread on each core"},

    /* ---- service ---- */
    {"port", 0, OPTION_FIRST, GROUP_SERVICE, SERVE, OPTION_INT, F(serve.port), .most = 65535, .value = "N",
     .help = "port; 0: a free one, which the first line names", .initial = "8080"},
    {"host", 0, OPTION_COMMON, GROUP_SERVICE, SERVE, OPTION_TEXT, F(serve.host), .value = "ADDRESS",
     .help = "address to listen on; 0.0.0.0: all", .otherwise = "127.0.0.1",
     .details = "The service has no encryption and no passwords: put a reverse proxy in front of it."},
    {"max-queue", 0, OPTION_COMMON, GROUP_SERVICE, SERVE, OPTION_INT, F(serve.max_queue), .least = 1, .most = 65536, .value = "N",
     .help = "requests of a model that may wait; others get status 429", .initial = "256"},
    {"request-timeout", 0, OPTION_COMMON, GROUP_SERVICE, SERVE, OPTION_TIME, F(serve.request_timeout_ns), .least = 1, .value = "T",
     .help = "longest time of a request, then status 504", .initial = "60s",
     .details = "A request shortens it with the header Request-Timeout, in seconds or with a unit: 0.5, 500ms."},
    {"max-body", 0, OPTION_RARE, GROUP_SERVICE, SERVE, OPTION_PARSED, F(serve.body_limit), .least = 1, .most = 0x1p40, .parse = parse_size,
     .value = "SIZE", .help = "largest body of a request", .initial = "64MiB", .wanted = "a size such as 64MiB, at most 1TiB"},
    {"max-header", 0, OPTION_RARE, GROUP_SERVICE, SERVE, OPTION_PARSED, F(serve.header_limit), .least = 4096, .most = 0x1p24,
     .parse = parse_size, .value = "SIZE", .help = "memory for the headers of a connection", .initial = "32KiB",
     .wanted = "a size from 4KiB to 16MiB"},
    {"connections", 0, OPTION_RARE, GROUP_SERVICE, SERVE, OPTION_INT, F(serve.connections), .least = 2, .most = 100000, .value = "N",
     .help = "connections at once", .initial = "1000"},
    {"client-timeout", 0, OPTION_RARE, GROUP_SERVICE, SERVE, OPTION_TIME, F(serve.client_timeout_ns), .least = 1, .value = "T",
     .help = "close connections that are idle for T, or take twice as long for a request", .initial = "30s",
     .details = "Counted in whole seconds, from 1."},
    {"drain-time", 0, OPTION_RARE, GROUP_SERVICE, SERVE, OPTION_TIME, F(serve.drain_ns), .value = "T",
     .help = "at the end, wait so long for accepted requests", .initial = "30s"},
    {"profile-every", 0, OPTION_COMMON, GROUP_SERVICE, SERVE, OPTION_INT, F(serve.profile_every), .most = 1e9, .value = "N",
     .help = "time the operators of one run in N; 0: never", .initial = "1000"},
    {"metrics-file", 0, OPTION_COMMON, GROUP_SERVICE, SERVE, OPTION_TEXT, F(serve.metrics_file), .value = "F",
     .help = "metrics to F as well, every 10 s and at the end", .details = "For the textfile collector of Prometheus' node exporter."},
    {"alert", 0, OPTION_COMMON, GROUP_SERVICE, SERVE, OPTION_TEXTS, LIST(serve.alerts, serve.alert_count), .value = "RULE",
     .help = "such as \"latency_p99 > 50ms for 60s\" (repeatable)",
     .details = "Metrics: latency_mean, latency_p50, latency_p90, latency_p95, latency_p99, latency_max, queue_p50, queue_p99, rate, samples, errors, batch, "
                "waiting, memory. Comparison: > or <. Times need a unit, rates may end with /s, errors with %. The figures are those of the last 10 s. "
                "\"drift latency_median 5%\" compares with earlier sessions in --history."},
    {"alert-file", 0, OPTION_RARE, GROUP_SERVICE, SERVE, OPTION_TEXT, F(serve.alert_file), .value = "F", .help = "file of rules, one per line; # begins a comment"},
    {"alert-command", 0, OPTION_COMMON, GROUP_SERVICE, SERVE, OPTION_TEXT, F(serve.alert_command), .value = "COMMAND",
     .help = "run for each alert and its end, with a JSON object on stdin", .details = "A webhook is curl -sS --json @- https://example.org/hook."},
    {"alert-state", 0, OPTION_RARE, GROUP_SERVICE, SERVE, OPTION_TEXT, F(serve.alert_state), .value = "F",
     .help = "file that keeps which alerts were sent, so that a restart repeats none"},

    /* ---- text generation ---- */
    {"prompt-ids", 0, OPTION_RARE, GROUP_GENERATION, GENERATES | PEER, OPTION_TEXT, F(generate.prompt_ids), .value = "IDS",
     .help = "prompt as ids 1,2,3 or a .npy file; ';' or a row: the next sequence", .otherwise = "drawn from the seed"},
    {"token-ids", 0, OPTION_COMMON, GROUP_GENERATION, EVAL, OPTION_TEXT, F(generate.token_ids), .value = "IDS",
     .help = "perplexity of these tokens of a decoder: a .npy file, or ids 1,2,3", .details = "Windows of --max-length tokens (default: 512); each token but the first is predicted."},
    {"max-length", 0, OPTION_RARE, GROUP_GENERATION, GENERATES | EVAL | QUANTIZE, OPTION_INT, F(generate.max_length), .least = 2, .most = INT32_MAX, .value = "N",
     .help = "tokens that the cache has room for", .otherwise = "prompt and new tokens"},
    {"chunk", 0, OPTION_RARE, GROUP_GENERATION, GENERATES | QUANTIZE, OPTION_INT, F(generate.chunk), .least = 1, .most = INT32_MAX, .value = "N",
     .help = "compute a prompt in runs of N tokens, which bounds memory", .otherwise = "the whole prompt"},
    {"kv-cache", 0, OPTION_RARE, GROUP_GENERATION, GENERATES | EVAL, OPTION_CHOICE, F(generate.cache_type), .choices = "fp32,fp16,int8", .value = "TYPE",
     .help = "keep keys and values as fp16 or int8: less memory, a little error", .otherwise = "fp32",
     .details = "bench also compares the logits of up to 64 tokens with those of an fp32 cache."},
    {"stop-ids", 0, OPTION_RARE, GROUP_GENERATION, RUN, OPTION_TEXT, F(generate.stop_ids), .value = "IDS", .help = "ids that end a sequence, such as 2,50256"},
    {"temperature", 0, OPTION_RARE, GROUP_GENERATION, RUN, OPTION_NUMBER, F(generate.temperature), .most = 1000, .value = "T",
     .help = "draw ids by their probability; --seed sets the stream", .otherwise = "0: the most probable id", .wanted = "a number from 0 to 1000"},
    {"top-k", 0, OPTION_RARE, GROUP_GENERATION, RUN, OPTION_INT, F(generate.top_k), .most = INT32_MAX, .value = "K",
     .help = "draw among the K most probable ids", .otherwise = "all"},
    {"top-p", 0, OPTION_RARE, GROUP_GENERATION, RUN, OPTION_NUMBER, F(generate.top_p), .most = 1, .value = "P",
     .help = "draw among the fewest ids with probability P", .otherwise = "all", .wanted = "a number from 0 to 1"},
    {"min-p", 0, OPTION_RARE, GROUP_GENERATION, RUN, OPTION_NUMBER, F(generate.min_p), .most = 1, .value = "P",
     .help = "draw among ids with at least P times the largest probability", .otherwise = "all", .wanted = "a number from 0 to 1"},
    {"repetition-penalty", 0, OPTION_RARE, GROUP_GENERATION, RUN, OPTION_NUMBER, F(generate.repetition_penalty), .most = 1000, .value = "R",
     .help = "divide the logits of earlier ids by R", .otherwise = "1", .wanted = "a number from 0 to 1000"},
    {"roles", 0, OPTION_RARE, GROUP_GENERATION, GENERATES | PEER | EVAL | QUANTIZE, OPTION_TEXT, F(generate.roles), .value = "LIST",
     .help = "the decoder's tensors: ids=NAME,mask=NAME,positions=NAME,logits=NAME and others (guide)", .otherwise = "found by names and the graph"},
    {"cache", 0, OPTION_RARE, GROUP_GENERATION, GENERATES | EVAL | QUANTIZE, OPTION_TEXTS, LIST(generate.caches, generate.cache_count), .value = "PAST=PRESENT",
     .help = "input and output of a cache; '*' stands for any text (repeatable)", .otherwise = "found by exporters' names"},

    /* ---- precision and accuracy ---- */
#define PRECISIONS .choices = "fp32,fp32-strict,fast,bf16,fp16,int8,int8-weights,int4-weights", \
    .details = "fp32 uses Winograd for 3x3 convolutions; its errors are of the size of a float32 sum's. fp32-strict computes " \
               "products as written: integers stay exact, and all instruction sets give the same bits. fast has errors of about 1e-5 " \
               "of the range. With int8-weights and int4-weights activations stay fp32.", .aliases = "dtype"
    {"precision", 'p', OPTION_COMMON, GROUP_PRECISION, RECOMMEND, OPTION_PARSED, .parse = parse_precisions, .value = "LIST",
     .help = "the model's own precision, and others to try: fp32,bf16,int8", .otherwise = "fp32, and every other one", PRECISIONS},
    {"precision", 'p', OPTION_COMMON, GROUP_PRECISION, QUANTIZE, OPTION_TEXT, F(precision.name),
     .choices = "int8,int8-weights,int4-weights", .value = "P", .help = "int8, int8-weights or int4-weights", .otherwise = "int8",
     .details = "int8 writes a QDQ model. The others write MatMulNBits of com.microsoft; activations stay as they are.", .aliases = "dtype"},
    {"block", 0, OPTION_COMMON, GROUP_PRECISION, QUANTIZE, OPTION_INT, F(precision.block), .least = 16, .most = 256, .value = "N",
     .help = "int4-weights, int8-weights: N weights share a scale", .otherwise = "32", .wanted = "16, 32, 64, 128 or 256"},
    {"zero-points", 0, OPTION_COMMON, GROUP_PRECISION, QUANTIZE, OPTION_FLAG, F(precision.zero_points),
     .help = "int4-weights, int8-weights: a zero point for each block"},
    {"search-scales", 0, OPTION_COMMON, GROUP_PRECISION, QUANTIZE, OPTION_FLAG, F(precision.search_scales),
     .help = "int4-weights, int8-weights: scales with the least squared error"},
    {"precision", 'p', OPTION_FIRST, GROUP_PRECISION, MATRIX | EVAL, OPTION_PARSED, .parse = parse_precisions, .value = "LIST",
     .help = "fp32, fp32-strict, fast, bf16, fp16, int8, int8-weights, int4-weights; or several of them", .otherwise = "fp32", PRECISIONS},
    {"precision", 'p', OPTION_FIRST, GROUP_PRECISION, (QUANTIZED & ~(MATRIX | EVAL | RECOMMEND | QUANTIZE)) | SERVE | CAPACITY, OPTION_TEXT,
     F(precision.name), .value = "P", .help = "fp32, fp32-strict, fast, bf16, fp16, int8, int8-weights or int4-weights",
     .otherwise = "fp32", PRECISIONS},
    {"calibrate", 0, OPTION_COMMON, GROUP_PRECISION, QUANTIZE, OPTION_TEXT, F(precision.calibrate), .value = "DATA",
     .help = "samples: folder, .npz or list; int4-weights: or token ids, .npy or 1,2,3",
     .details = "int8: also the .calibration.json of an earlier run; the ranges found are kept as .calibration.json beside the model. "
                "int4-weights and int8-weights: scales with the least error, each weight's weighed by the mean square of its activation."},
    {"calibrate", 0, OPTION_COMMON, GROUP_PRECISION, QUANTIZED & ~QUANTIZE, OPTION_TEXT, F(precision.calibrate), .value = "DATA",
     .help = "samples for int8: folder, .npz or list",
     .details = "Also the .calibration.json of an earlier run. The ranges found are kept as .calibration.json beside the model."},
    {"calibrate-method", 0, OPTION_RARE, GROUP_PRECISION, QUANTIZED, OPTION_CHOICE, F(precision.calibrate_method),
     .choices = "minmax,percentile,entropy", .value = "M", .help = "ranges by minmax, percentile or entropy", .otherwise = "minmax"},
    {"keep-accuracy", 0, OPTION_RARE, GROUP_PRECISION, QUANTIZED, OPTION_PERCENT, F(precision.keep_accuracy), .least = 1e-9,
     .most = 100 - 1e-9, .value = "P", .help = "int8: keep layers in fp32 until outputs are within P of their range",
     .wanted = "per cent above 0 such as 0.5%"},
    {"power-of-two", 0, OPTION_RARE, GROUP_PRECISION, QUANTIZED, OPTION_FLAG, F(precision.power_of_two),
     .help = "int8: scales are powers of two"},
    {"accuracy", 0, OPTION_COMMON, GROUP_PRECISION, EVAL | PROFILE | COMPARE, OPTION_FLAG, F(accuracy.enabled),
     .help = "errors of every operator against float64",
     .details = "Each operator has its own error and the accumulated one."},
    {"accuracy-samples", 0, OPTION_RARE, GROUP_PRECISION, EVAL | PROFILE | COMPARE, OPTION_INT, F(accuracy.samples), .least = 1,
     .most = INT32_MAX, .value = "N", .help = "own errors of N operators, evenly along the network", .otherwise = "all"},
    {"reference", 0, OPTION_RARE, GROUP_PRECISION, EVAL | PROFILE, OPTION_TEXT, F(accuracy.reference), .value = "MODEL",
     .help = "model that --accuracy runs in float64, matched by layer names",
     .details = "For a quantised model: the float model that it was made from.", .otherwise = "the same model"},
    {"against", 0, OPTION_COMMON, GROUP_PRECISION, PROFILE, OPTION_PARSED, .parse = parse_against, .value = "[NAME=]F",
     .help = "compare outputs with another runtime's (repeatable)",
     .details = "A file is .npy, .pb, or .npz with arrays named as outputs.", .aliases = "expect"},

    /* ---- kernels and memory plan ---- */
    {"no-rewrites", 0, OPTION_RARE, GROUP_KERNELS, PLANNED | VERIFY | SCALE | WORKER, OPTION_FLAG, F(plan.no_rewrites),
     .help = "run the model's own nodes, unfused", .aliases = "no-fusion no-optimization"},
    {"no-reuse", 0, OPTION_RARE, GROUP_KERNELS, PLANNED | VERIFY, OPTION_FLAG, F(plan.no_reuse),
     .help = "separate memory for every value: no views, nothing in place"},
    {"tune", 0, OPTION_RARE, GROUP_KERNELS, RUN | EVAL | PROFILE | BENCH | VERSUS | SERVE, OPTION_FLAG, F(plan.tune),
     .help = "choose kernels by measurement", .details = "Choices are kept by model and machine in the user's cache folder."},
    {"no-cache", 0, OPTION_RARE, GROUP_KERNELS, RUN | EVAL | PROFILE | BENCH | SERVE, OPTION_FLAG, F(plan.no_cache),
     .help = "with --tune: measure again"},

    /* ---- verdicts ---- */
    {"threshold", 0, OPTION_COMMON, GROUP_VERDICTS, EVAL | PROFILE | BENCH | CHECK, OPTION_PARSED, .parse = parse_threshold,
     .value = "M:V...", .help = "limits such as latency:100ms; if missed, status 3",
     .details = "Repeatable, with several limits each; prony metrics lists the names."},
    {"noise", 0, OPTION_COMMON, GROUP_VERDICTS, COMPARE, OPTION_PERCENT, F(verdict.noise), .most = 1000, .value = "P",
     .help = "ignore differences below P per cent", .initial = "1", .wanted = "per cent from 0"},
    {"noise", 0, OPTION_COMMON, GROUP_VERDICTS, HISTORY, OPTION_PERCENT, F(verdict.noise), .most = 1000, .value = "P",
     .help = "ignore differences below P per cent", .otherwise = "1; accuracy and planned memory: 0", .wanted = "per cent from 0"},
    {"ignore-load", 0, OPTION_RARE, GROUP_VERDICTS, EVAL | PROFILE | BENCH | COMPARE | CHECK | VERSUS | HISTORY, OPTION_FLAG, F(verdict.ignore_load),
     .help = "judge times although other processes used the machine"},
    {"strict", 0, OPTION_RARE, GROUP_VERDICTS, EVAL | PROFILE | BENCH | COMPARE | CHECK | HISTORY, OPTION_FLAG, F(verdict.strict),
     .help = "treat inconclusive results as failures: status 3"},
    {"metrics", 0, OPTION_COMMON, GROUP_VERDICTS, COMPARE, OPTION_PARSED, .parse = parse_metrics, .value = "LIST",
     .help = "metrics that decide: all, or a list such as latency,macs", .otherwise = "latency, throughput and memory"},

    {"metrics", 0, OPTION_COMMON, GROUP_VERDICTS, HISTORY, OPTION_PARSED, .parse = parse_metrics, .value = "LIST",
     .help = "metrics that check judges, such as latency,latency_p99", .otherwise = "latency, throughput, memory and accuracy"},

    /* ---- report contents ---- */
    {"model", 0, OPTION_COMMON, GROUP_REPORT, HISTORY, OPTION_TEXT, F(history.model), .value = "NAME",
     .help = "runs of this model alone: its name, or the beginning of its hash", .otherwise = "all"},
    {"across", 0, OPTION_COMMON, GROUP_REPORT, HISTORY, OPTION_CHOICES, F(history.across), .choices = "model,machine,configuration",
     .value = "LIST", .help = "join runs of different model files, machines or configurations",
     .details = "Without it only runs of one model file, machine and configuration are compared."},
    {"last", 0, OPTION_RARE, GROUP_REPORT, HISTORY, OPTION_INT, F(history.last), .least = 1, .most = 2000, .value = "N",
     .help = "runs of each group that are looked at, newest first", .otherwise = "500"},
    {"metrics", 0, OPTION_COMMON, GROUP_REPORT, METRICS, OPTION_PARSED, .parse = parse_metrics, .value = "LIST",
     .help = "these metrics only, such as latency,macs", .otherwise = "all"},
    {"detailed", 0, OPTION_COMMON, GROUP_REPORT, METRICS, OPTION_FLAG, F(shown.detailed),
     .help = "descriptions and directions, and unknown metrics"},
    {"level", 0, OPTION_COMMON, GROUP_REPORT, TABLES, OPTION_CHOICES, F(shown.levels), .choices = "model,layer,operator,module,nested",
     .value = "LIST", .help = "tables: model,layer,operator,module,nested", .otherwise = "model,layer"},
    {"depth", 0, OPTION_RARE, GROUP_REPORT, TABLES, OPTION_INT, F(shown.depth), .least = 1, .most = 1000, .value = "N",
     .help = "levels of the module table", .otherwise = "all"},
    {"all", 0, OPTION_COMMON, GROUP_REPORT, TABLES | BENCH | COMPARE, OPTION_FLAG, F(shown.all), .help = "show everything"},
    {"top", 0, OPTION_FIRST, GROUP_REPORT, EVAL | PROFILE, OPTION_INT, F(shown.top), .least = 1, .most = INT32_MAX, .value = "N",
     .help = "rows per table, longest time first", .otherwise = "20", .aliases = "limit"},
    {"top", 0, OPTION_COMMON, GROUP_REPORT, INSPECT, OPTION_INT, F(shown.top), .least = 1, .most = INT32_MAX, .value = "N",
     .help = "rows per table, most FLOPs first", .otherwise = "20", .aliases = "limit"},
    {"top", 0, OPTION_COMMON, GROUP_REPORT, COMPARE, OPTION_INT, F(shown.top), .least = 1, .most = INT32_MAX, .value = "N",
     .help = "rows per table", .otherwise = "10", .aliases = "limit"},
    {"top", 0, OPTION_COMMON, GROUP_REPORT, HISTORY, OPTION_INT, F(shown.top), .least = 1, .most = INT32_MAX, .value = "N",
     .help = "newest runs in each table", .otherwise = "20", .aliases = "limit"},
    {"top", 0, OPTION_COMMON, GROUP_REPORT, SCALE, OPTION_INT, F(shown.top), .least = 1, .most = INT32_MAX, .value = "N",
     .help = "rows per table", .otherwise = "12", .aliases = "limit"},
    {"top", 0, OPTION_COMMON, GROUP_REPORT, VERSUS, OPTION_INT, F(shown.top), .least = 1, .most = INT32_MAX, .value = "N",
     .help = "rows per table", .otherwise = "15", .aliases = "limit"},
    {"sort", 0, OPTION_COMMON, GROUP_REPORT, TABLES, OPTION_CHOICE, F(shown.sort), .value = "KEY",
     .choices = "index,time,macs,madds,flops,special,int_ops,parameters,bytes,memory,count,rate,intensity,name",
     .help = "order of rows: time, macs, parameters, name, ...",
     .details = "Keys: index, time, macs, madds, flops, special, int_ops, parameters, bytes, memory, count, rate, intensity, name.", .aliases = "sort-by"},
    {"filter", 0, OPTION_RARE, GROUP_REPORT, TABLES | OPS, OPTION_PARSED, .parse = parse_filter, .choices = "name,op,module,kernel",
     .value = "KEY=GLOB", .help = "rows by name, op, module or kernel", .wanted = "KEY=GLOB with the KEY name, op, module or kernel"},
    {"count", 0, OPTION_RARE, GROUP_REPORT, TABLES | BENCH | COMPARE | METRICS | OPS, OPTION_CHOICE, F(shown.count),
     .choices = "fvcore,deepspeed,onnx-tool,moduleprofiler,thop,torch,deeplite", .value = "PRESET",
     .help = "add the count of fvcore, deepspeed, onnx-tool, moduleprofiler, thop, torch or deeplite"},
    {"memory", 0, OPTION_RARE, GROUP_REPORT, PROFILE, OPTION_FLAG, F(shown.memory), .help = "the arena's events and timeline"},
    {"topk", 0, OPTION_RARE, GROUP_REPORT, RUN | PROFILE, OPTION_INT, F(shown.topk), .least = 1, .most = 1000, .value = "N",
     .help = "the N best classes of the first output"},
    {"labels", 0, OPTION_RARE, GROUP_REPORT, RUN | EVAL | PROFILE, OPTION_TEXT, F(shown.labels), .value = "F",
     .help = "file of class names, one per line"},

    /* ---- files ---- */
    {"json", 0, OPTION_FIRST, GROUP_FILES, INSPECT | RUN | EVAL | PROFILE | BENCH | SCALE | VERSUS | TARGETS | VERIFY | OPS | MACHINE | DEVICES | HISTORY | CAPACITY,
     OPTION_TEXT, F(files.json), .value = "F", .help = "JSON to F; - is stdout, with nothing else on it"},
    {"html", 0, OPTION_FIRST, GROUP_FILES, TABLES | SCALE | DOCUMENTS, OPTION_EXPORT, .least = PRONY_FORMAT_HTML, .value = "F",
     .help = "one page with tables and charts; it needs no network"},
    {"csv", 0, OPTION_COMMON, GROUP_FILES, TABLES, OPTION_EXPORT, .least = PRONY_FORMAT_CSV, .value = "F",
     .help = "layers to F, other levels to files beside it", .details = "--level chooses the levels."},
    {"csv", 0, OPTION_COMMON, GROUP_FILES, SCALE, OPTION_EXPORT, .least = PRONY_FORMAT_CSV, .value = "F", .help = "the results as a table"},
    {"csv", 0, OPTION_COMMON, GROUP_FILES, DOCUMENTS, OPTION_EXPORT, .least = PRONY_FORMAT_CSV, .value = "F",
     .help = "the first table to F, others to files beside it"},
    {"markdown", 0, OPTION_COMMON, GROUP_FILES, TABLES | SCALE | DOCUMENTS, OPTION_EXPORT, .least = PRONY_FORMAT_MARKDOWN, .value = "F",
     .help = "tables for a job summary, 20 rows each", .aliases = "md"},
    {"junit", 0, OPTION_COMMON, GROUP_FILES, CHECK, OPTION_EXPORT, .least = PRONY_FORMAT_JUNIT, .value = "F",
     .help = "a test case for each threshold, as JUnit XML", .aliases = "junit-xml"},
    {"latex", 0, OPTION_RARE, GROUP_FILES, TABLES, OPTION_EXPORT, .least = PRONY_FORMAT_LATEX, .value = "F", .help = "tables for booktabs"},
    {"trace", 0, OPTION_COMMON, GROUP_FILES, TABLES | PEER, OPTION_EXPORT, .least = PRONY_FORMAT_TRACE, .value = "F",
     .help = "the last run, for Perfetto and chrome://tracing"},
    {"folded", 0, OPTION_RARE, GROUP_FILES, TABLES, OPTION_EXPORT, .least = PRONY_FORMAT_FOLDED, .value = "F",
     .help = "stacks for flame graphs: module;...;layer ns"},
    {"dot", 0, OPTION_RARE, GROUP_FILES, TABLES, OPTION_PARSED, .parse = parse_graph, .value = "F",
     .help = "the graph coloured by time, for Graphviz; as a drawing if F ends with .svg"},
    {"svg", 0, OPTION_RARE, GROUP_FILES, TABLES, OPTION_PARSED, .parse = parse_chart,
     .choices = "layers,types,roofline,memory,latency,runs,cores,modules,graph,accuracy,pipeline,generation", .value = "CHART=F",
     .help = "a chart: layers, types, roofline, memory, latency, runs, cores, modules, graph, accuracy, pipeline or generation"},
    {"svg", 0, OPTION_RARE, GROUP_FILES, SCALE, OPTION_PARSED, .parse = parse_chart, .choices = "speedup,efficiency,operators,timeline",
     .value = "CHART=F", .help = "a chart: speedup, efficiency, operators or timeline"},
    {"plot", 0, OPTION_COMMON, GROUP_FILES, SCALE, OPTION_PARSED, .parse = parse_plot, .value = "F", .help = "the speed-up as SVG"},
    {"output-dir", 0, OPTION_COMMON, GROUP_FILES, RUN | PEER, OPTION_TEXT, F(files.output_dir), .value = "D",
     .help = "outputs as D/output_K.npy",
     .details = "Text is written as <U, narrow floats as float32, a sequence as output_K_0.npy and so on."},
    {"output-dir", 0, OPTION_COMMON, GROUP_FILES, PROFILE, OPTION_TEXT, F(files.output_dir), .value = "D",
     .help = "every export, and outputs as D/output_K.npy",
     .details = "Text is written as <U, narrow floats as float32, a sequence as output_K_0.npy and so on."},
    {"output", 'o', OPTION_COMMON, GROUP_FILES, EXTRACT | QUANTIZE, OPTION_TEXT, F(files.output), .value = "F",
     .help = "file for the new model"},
    {"resume", 0, OPTION_COMMON, GROUP_FILES, SCALE, OPTION_FLAG, F(files.resume), .help = "continue the study in the file of --json"},
    {"overwrite", 0, OPTION_RARE, GROUP_FILES, SCALE, OPTION_FLAG, F(files.overwrite),
     .help = "replace the study in the file of --json"},
    {"join", 0, OPTION_COMMON, GROUP_FILES, SCALE, OPTION_FLAG, F(files.join),
     .help = "show the studies that are named, side by side"},
    {"repeat", 0, OPTION_COMMON, GROUP_FILES, SCALE, OPTION_TEXT, F(files.repeat), .value = "STUDY",
     .help = "repeat an earlier study; status 3 if results differ"},
    {"data-folder", 0, OPTION_RARE, GROUP_FILES, BOUND | SERVE | CAPACITY, OPTION_TEXT, F(files.data_folder), .value = "DIR",
     .help = "folder of external data", .otherwise = "beside the model", .aliases = "external-data"},
    {"ort-lib", 0, OPTION_COMMON, GROUP_FILES, VERSUS | PEER, OPTION_TEXT, F(files.ort_lib), .value = "F",
     .help = "ONNX Runtime's library, libonnxruntime.so",
     .otherwise = "PRONY_ORT_LIB, or an npm package onnxruntime-node in ./node_modules"},

    {"history", 0, OPTION_COMMON, GROUP_FILES, KEEPERS & ~(BENCH | SERVE), OPTION_TEXT, F(history.file), .value = "FILE.db",
     .help = "keep the run in this file, for prony history",
     .details = "A SQLite file, made if it does not exist; several processes may write to it at once."},
    {"history", 0, OPTION_RARE, GROUP_FILES, BENCH, OPTION_TEXT, F(history.file), .value = "FILE.db",
     .help = "keep the run in this file, for prony history",
     .details = "A SQLite file, made if it does not exist; several processes may write to it at once."},
    {"history", 0, OPTION_COMMON, GROUP_FILES, SERVE, OPTION_TEXT, F(history.file), .value = "FILE.db",
     .help = "keep the latencies of the session in this file at its end, for prony history",
     .details = "A SQLite file, made if it does not exist. Each version of a model that answered requests is a run."},
    {"history-keep", 0, OPTION_RARE, GROUP_FILES, KEEPERS | HISTORY, OPTION_PARSED, .parse = parse_age, .value = "AGE",
     .help = "remove runs from the history that are older, such as 400d", .otherwise = "keep all",
     .wanted = "an age above 0 such as 400d, 12w or 36h"},
    {"label", 0, OPTION_RARE, GROUP_FILES, KEEPERS | HISTORY, OPTION_TEXT, F(history.label), .value = "TEXT",
     .help = "a name for the run in the history, such as a release"},
    {"commit", 0, OPTION_RARE, GROUP_FILES, KEEPERS | HISTORY, OPTION_TEXT, F(history.commit), .value = "ID",
     .help = "the project's commit of the run in the history", .otherwise = "of the working folder's git repository; of a report that exists already: none"},

    /* ---- limits ---- */
    {"memory-limit", 0, OPTION_COMMON, GROUP_LIMITS, MODELS, OPTION_PARSED, .parse = parse_memory_limit, .value = "N",
     .help = "such as 2GiB, or none", .otherwise = "available less 1/16",
     .details = "PRONY_MEMORY_LIMIT sets the default. Without it, at least 64 MiB of the available memory stay free."},
    {"device-memory-limit", 0, OPTION_RARE, GROUP_LIMITS, PLANNED | VERIFY | SERVE | CAPACITY, OPTION_PARSED, F(plan.device_bytes),
     .least = 1, .most = 1e15, .parse = parse_size, .value = "N", .help = "memory on the --device, such as 2GiB", .otherwise = "no limit",
     .wanted = "a size with KiB, MiB or GiB"},
    {"time-limit", 0, OPTION_COMMON, GROUP_LIMITS, MODELS | MACHINE, OPTION_PARSED, .least = 1, .parse = parse_time_limit,
     .value = "T",
     .help = "stop after 60s, 500ms, ... with the results so far", .wanted = "a time above 0 such as 60s or 500ms"},
    {"timeout", 0, OPTION_RARE, GROUP_LIMITS, SCALE, OPTION_SECONDS, F(limits.timeout), .value = "S",
     .help = "end a process that does not answer", .otherwise = "60 s and ten times the planned time"},
    {"timeout", 0, OPTION_RARE, GROUP_LIMITS, SHARDED, OPTION_SECONDS, F(limits.timeout), .value = "S",
     .help = "prony-mpi: the longest wait for another rank"},
    {"max-loop-trips", 0, OPTION_RARE, GROUP_LIMITS, MODELS & ~(INSPECT | EXTRACT | QUANTIZE), OPTION_INT, F(limits.max_loop_trips),
     .least = 1, .most = (double)INT64_MAX, .value = "N", .help = "bound of each Loop", .otherwise = "2^31"},
    {"send-model", 0, OPTION_RARE, GROUP_LIMITS, SCALE | SHARDED, OPTION_FLAG, F(limits.send_model),
     .help = "prony-mpi: send MODEL to nodes that lack its file"},
    {"copy-model", 0, OPTION_RARE, GROUP_LIMITS, MODELS, OPTION_FLAG, F(limits.copy_model),
     .help = "read the model into memory: its file may change meanwhile"},

    /* ---- terminal ---- */
    {"quiet", 'q', OPTION_RARE, GROUP_TERMINAL, EVERY, OPTION_FLAG, F(terminal.quiet), .help = "errors only", .aliases = "silent"},
    {"no-color", 0, OPTION_RARE, GROUP_TERMINAL, EVERY, OPTION_FLAG, F(terminal.no_color), .help = "no colours, as NO_COLOR"},
    {"no-progress", 0, OPTION_RARE, GROUP_TERMINAL, EVERY, OPTION_FLAG, F(terminal.no_progress), .help = "no progress line"},
    {"help", 'h', OPTION_RARE, GROUP_TERMINAL, EVERY, OPTION_HELP, .help = "this help"},
    {"help-all", 0, OPTION_RARE, GROUP_TERMINAL, EVERY, OPTION_HELP, .least = 1, .help = "all options, with details"},
    {"version", 0, OPTION_RARE, GROUP_TERMINAL, EVERY, OPTION_VERSION, .help = "version, commit, instruction set and libraries"}};
// clang-format on

const command_row *command_at(size_t index)
{
    return index < COMMAND_LISTED ? &commands[index] : NULL;
}

const option_row *option_at(size_t index)
{
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

const char *group_title(option_group group)
{
    return group_titles[group];
}

command_id command_id_of(const command_row *command)
{
    return (command_id)(command - commands);
}

const command_row *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

bool command_takes(const command_row *command, const option_row *row)
{
    return !command || (row->commands >> command_id_of(command) & 1);
}

const char *command_list(uint32_t bits, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < COMMAND_LISTED; i++)
        if (bits >> i & 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", commands[i].name);
    return text;
}

const option_row *find_letter(const command_row *command, int letter)
{
    for (const option_row *row = rows; row < rows + sizeof rows / sizeof *rows; row++)
        if (row->letter && row->letter == letter && command_takes(command, row)) return row;
    return NULL;
}

size_t next_item(const char **list, char separator, const char **item)
{
    const char *text = *list ? *list : "";
    while (*text && *text == separator) text++;
    size_t length = 0;
    while (text[length] && text[length] != separator) length++;
    *item = text;
    *list = text + length;
    return length;
}

static bool is_alias(const option_row *row, const char *name)
{
    const char *rest = row->aliases, *item;
    for (size_t length; (length = next_item(&rest, ' ', &item));)
        if (strlen(name) == length && strncmp(item, name, length) == 0) return true;
    return false;
}

/* Prefers the exact name to an alias and an alias to an abbreviation, then the command's row to another one: the name
 * of another command's option is not taken as the abbreviation of an own one. */
const option_row *find_long(const command_row *command, const char *name, bool *several)
{
    enum { ABBREVIATION = 1, ALIAS, EXACT };
    const option_row *found = NULL;
    int best = 0;
    *several = false;
    for (const option_row *row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
        int match = strcmp(row->name, name) == 0                           ? EXACT
                    : is_alias(row, name)                                  ? ALIAS
                    : *name && strncmp(row->name, name, strlen(name)) == 0 ? ABBREVIATION
                                                                           : 0;
        if (match == ABBREVIATION && found && strcmp(found->name, row->name) != 0) *several = true;
        if (match) match = 2 * match + command_takes(command, row);
        if (match <= best) continue;
        found = row;
        best = match;
    }
    *several = *several && best < 2 * ALIAS;
    return *several ? NULL : found;
}

/* ---- names near to a mistyped one ---- */

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

const char *nearest_option(const command_row *command, const char *word)
{
    static char alias[40];
    const char *found = NULL, *item;
    int least = INT_MAX;
    for (const option_row *row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
        if (!command_takes(command, row) || row->rank == OPTION_INTERNAL) continue;
        consider(word, row->name, &found, &least);
        const char *names = row->aliases;
        for (size_t length; (length = next_item(&names, ' ', &item));) {
            char name[sizeof alias] = "";
            const char *nearer = NULL;
            snprintf(name, sizeof name, "%.*s", (int)length, item);
            consider(word, name, &nearer, &least);
            if (!nearer) continue;
            memcpy(alias, name, sizeof alias);
            found = alias;
        }
    }
    return found;
}
