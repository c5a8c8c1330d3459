/* The `prony` command: one file per subcommand, all on prony.h alone. Options mean the same everywhere. */
#ifndef PRN_BENCH_COMMAND_H
#define PRN_BENCH_COMMAND_H

#include "bench/int_list.h"
#include "prony_data.h"

#include <stdio.h>

/* Exit status, a promise to scripts. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_VERDICT = 3 };

typedef struct named_file {
    const char *name, *file;
} named_file;

/* Cuts NAME=FILE anew at the last '=' where `fits` accepts both sides; where none fits it stays as it is. Names and
 * files may hold '=' themselves, and which of them parts the two is known only once the model is loaded. */
typedef bool cut_fits_fn(const void *context, const char *name, const char *file);
void cut_name_where(named_file *pair, cut_fits_fn *fits, const void *context);

/* An export of the report, and its file; "-" is stdout. */
typedef struct export_file {
    prony_format format;
    const char *chart; /* of PRONY_FORMAT_SVG */
    const char *file;
} export_file;

/* The options of a command line in groups. Rows of bench/options/option_table.c say how each field is set. 0 and NULL
 * mean "not given" unless a comment says otherwise. Arrays are owned; strings point into argv. */
typedef struct model_options {
    int64_t batch; /* the first of `batches` for bench and scale */
    int_list batches;
    prony_dim *dims;
    size_t dim_count;
    prony_dim *max_dims;
    size_t max_dim_count;
    prony_named_shape *shapes;
    size_t shape_count;
    named_file *inputs;
    size_t input_count;
    uint64_t seed;
    const char **from, **to; /* tensors that bound a submodel */
    size_t from_count, to_count;
    bool preprocess; /* `image` was given */
    prony_image_options image;

    const char *preprocess_list; /* as it was given */
} model_options;

typedef struct thread_options {
    int intra_op, inter_op;        /* as the session's: 0 is auto and one worker */
    int_list intra_ops, inter_ops; /* of commands that take lists; the first value is above too */
    const char *affinity;
    bool no_work_stealing;
} thread_options;

typedef struct plan_options {
    bool no_rewrites, no_reuse, tune, no_cache;
    const char *device;   /* NULL: the processor alone */
    int64_t device_bytes; /* limit of its memory; 0: none */
    const char *device_split;
} plan_options;

typedef struct measuring_options {
    int64_t runs, warmup; /* warmup -1: detected */
    double seconds;
    int64_t processes;
    bool one_process; /* one of several processes: its report goes to stdout, and it writes nothing else */
    bool barrier;     /* of worker: waits before it measures */
    bool counters, weak;
    double budget;     /* seconds */
    int_list replicas; /* of scale: processes at once */
} measuring_options;

typedef struct precision_options {
    const char *name; /* the first of `names` for commands that take lists */
    const char **names;
    size_t count;
    const char *calibrate, *calibrate_method; /* data or a calibration file */
    double keep_accuracy;                     /* part of the outputs' range */
    bool power_of_two;
    int64_t block; /* quantize: weights that share a scale */
    bool zero_points, search_scales;
} precision_options;

typedef struct accuracy_options {
    bool enabled;
    int64_t samples;       /* 0: of every operator */
    const char *reference; /* a model; NULL: the measured one */
    named_file *against;   /* name NULL: none was given */
    size_t against_count;
} accuracy_options;

typedef struct load_options {
    const char *scenario;
    int64_t streams, max_batch, samples_per_query;
    int64_t batch_window_ns; /* -1: not given */
    int64_t latency_bound_ns;
    double rate, percentile; /* arrivals per second; 0.99 */
    bool with_load;
} load_options;

/* --generate: a decoder's prompt and new tokens. */
typedef struct generate_options {
    bool enabled;
    int64_t prompt, new_tokens; /* 0: not given */
    const char *prompt_ids;     /* ids separated by commas, or a file */
    const char *token_ids;      /* the same, whose perplexity is measured */
    const char *stop_ids;       /* ids separated by commas */
    const char *roles;          /* ids=NAME,mask=NAME,positions=NAME,logits=NAME */
    const char **caches;        /* PAST=PRESENT */
    const char *cache_type;     /* fp32, fp16, int8; NULL: fp32 */
    size_t cache_count;
    int64_t max_length, chunk, top_k;
    double temperature, top_p, min_p, repetition_penalty;
} generate_options;

typedef struct shown_options {
    unsigned levels;
    int64_t top, depth, topk;
    const char *sort, *filter, *count, *metrics, *labels;
    bool all, memory, detailed;
} shown_options;

typedef struct terminal_options {
    bool quiet, no_color, no_progress;
} terminal_options;

typedef struct file_options {
    const char *json, *output_dir, *output;
    export_file *exports; /* beside text and JSON */
    size_t export_count;
    const char *data_folder, *ort_lib;
    const char *repeat; /* a study */
    bool resume, overwrite, join;
} file_options;

typedef struct verdict_options {
    const char **thresholds; /* METRIC:VALUE, checked */
    size_t threshold_count;
    double noise; /* part of the first value; -1: not given */
    bool ignore_load, strict;
} verdict_options;

typedef struct limit_options {
    const char *memory_limit, *time_limit; /* as given */
    int64_t time_limit_ns, max_loop_trips;
    double timeout;
    bool copy_model, send_model;
} limit_options;

/* --history and the command of that name. */
typedef struct history_options {
    const char *file;    /* of --history */
    double keep_seconds; /* --history-keep; 0: everything */
    const char *label, *commit;
    const char *model; /* name, or beginning of a hash */
    unsigned across;   /* PRONY_ACROSS_* */
    int64_t last;
} history_options;

/* Stages of a model on the ranks of prony-mpi. */
typedef struct shard_options {
    int64_t stages, micro_batch; /* samples of one pass */
    const char *by;              /* "time" or "memory" */
    const char *cut;             /* names of tensors, comma-separated; NULL: the plan chooses */
} shard_options;

/* Of serve. Times have a default in the option's row. */
typedef struct serve_options {
    const char *host;
    int64_t port, max_queue, connections, body_limit, header_limit;
    int64_t request_timeout_ns, client_timeout_ns, drain_ns;
    int64_t profile_every; /* 0: never */
    const char *metrics_file;
    const char **alerts; /* rules */
    size_t alert_count;
    const char *alert_file, *alert_command, *alert_state;
} serve_options;

/* Of capacity. */
typedef struct capacity_options {
    int64_t cores; /* 0: this machine's */
} capacity_options;

typedef struct options {
    const char *command;
    int argc; /* the command line without the command; argv[0] is the program */
    char **argv;
    const char **arguments; /* MODEL, DIR… */
    size_t argument_count;
    model_options model;
    thread_options threads;
    plan_options plan;
    measuring_options measuring;
    precision_options precision;
    accuracy_options accuracy;
    load_options load;
    generate_options generate;
    verdict_options verdict;
    shown_options shown;
    file_options files;
    limit_options limits;
    history_options history;
    shard_options shard;
    serve_options serve;
    capacity_options capacity;
    terminal_options terminal;
} options;

/* 0, or the exit status after a message. *stop is set where no command is to run, such as after --help. */
int options_parse(options *o, int argc, char **argv, bool *stop);
void options_free(options *o);

/* Around main. command_end returns the exit status: EXIT_FAILED where stdout could not be written. */
void command_begin(void);
int command_end(int status);

/* ---- shared by subcommands ---- */

/* Text that may come from a model file: control characters, with which it could steer a terminal, become '?'. */
void put_text(FILE *to, const char *text);
/* A line on stdout, which stands at `column` already; broken at blanks and behind commas where the terminal ends, and
 * further lines begin at `indent`. */
void put_wrapped(const char *text, int column, int indent);
/* Prints "prony COMMAND: message" and returns EXIT_FAILED. */
int report_error(const options *o, const prony_error *error);
int fail(const options *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* From now on the first message goes to `text`, which starts empty, and none to stderr: for a process that another one
 * speaks for. */
void fail_into(char *text, size_t size);

prony_session_options session_options(const options *o);
/* Of --memory-limit; 0: none was given. */
uint64_t given_memory_limit(const options *o);
/* The options of preprocessing images; NULL: the defaults. */
const prony_image_options *image_options(const options *o);
/* Loads a model as options say. */
prony_status load_model(const options *o, prony_model **model, const char *path, prony_error *error);
/* Returns true if o->precision needs a quantized model and this one is not quantized. */
bool wants_codes(const options *o, const prony_model *model);
/* The file for the ranges of --calibrate; the caller frees it. NULL: out of memory. */
char *calibration_path(const options *o);
/* The quantized form of a model, as the options say. */
int quantize_model(const options *o, prony_model *model, prony_model **out);
/* Puts it in the place of *model where it is wanted. */
int quantize_in_place(const options *o, prony_model **model);
/* Loads the one model argument and creates a session with its inputs bound. */
int open_session(const options *o, prony_model **model, prony_session **session, bool profile);
/* As above on a model that is loaded. */
int make_session(const options *o, prony_model *model, prony_session **session, bool profile);

/* As above without inputs, and without a batch of its own. */
int make_bare_session(const options *o, prony_model *model, prony_session **session, bool profile);

/* Text on stdout (unless a form goes there, or -q), JSON where --json says, and the forms. */
int write_report(const options *o, prony_report *report);
/* --count, into the report. */
int apply_count(const options *o, prony_report *report);
prony_write_options write_options(const options *o);
/* Returns true if a format other than text goes to stdout. */
bool stdout_taken(const options *o);
/* Returns true if a requested format shows the arena's events. */
bool forms_need_events(const options *o);
/* The forms that options name, each to its file; a file appears whole or not at all. */
int write_forms(const options *o, const prony_report *report);
/* Every form, under names of its own, into --output-dir. */
int write_all_forms(const options *o, const prony_report *report);
/* "DIR/NAME_LEVEL.csv" beside "DIR/NAME.csv". The caller frees it; NULL: out of memory. */
char *file_beside(const char *file, const char *level);
/* Creates --output-dir if need be. */
int make_output_dir(const options *o);
/* Terminal width, colour and progress follow the stream and the environment. */
int terminal_width(void);
/* A pipe or a file gets names as long as they are. */
bool want_whole_names(void);
bool want_color(const options *o);
bool want_progress(const options *o);
/* Below a report on a terminal: two commands that a user may run next. */
void say_next_steps(const options *o);
/* Progress callback of prony_profile_options; user is the options. */
void show_progress(void *user, int64_t runs, double seconds, double relative_error);
/* A line of progress that replaces the one before; blanks it out, if there is one. */
void show_progress_text(const char *text);
void clear_progress(void);
prony_profile_options profile_options(const options *o);
/* Creates DIR if need be and saves every output as DIR/output_K.npy. */
int save_outputs(const options *o, const prony_model *model, const prony_session *session);
/* PATH.npy of one output; PATH_0.npy and so on of a sequence. */
int save_value(const options *o, const char *name, const prony_value *value, const char *path);
/* The line of `prony run` for one output. */
void print_output(size_t index, const char *name, const prony_value *value);

/* " (assumed: batch=1)" behind line 1, which ends before `column`, where free dimensions were assumed. */
void put_assumed(const prony_report *report, int column);

/* ---- subcommands ---- */

int command_inspect(const options *o);
int command_run(const options *o);
int command_eval(const options *o);
int command_profile(const options *o);
int command_bench(const options *o);
int command_verify(const options *o);
int command_ops(const options *o);
int command_compare(const options *o);
int command_check(const options *o);
int command_recommend(const options *o);
int command_machine(const options *o);
int command_devices(const options *o);
int command_extract(const options *o);
int command_quantize(const options *o);
int command_manual(const options *o);
int command_completion(const options *o);
int command_metrics(const options *o);
int command_scale(const options *o);
int command_history(const options *o);
int command_versus(const options *o);
int command_serve(const options *o);
int command_capacity(const options *o);
/* Processes that `scale` and `versus` start. */
int command_worker(const options *o);
int command_peer(const options *o);

#endif
