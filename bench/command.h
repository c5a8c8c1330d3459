/* The `prony` command: one file per subcommand, all on prony.h alone. Options have the same meaning in all of them. */
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

/* Splits NAME=FILE again at the last '=' for which `fits` accepts both sides; otherwise leaves it unchanged. Names and
 * files may contain '=', so the right one is known only once the model is loaded. */
typedef bool cut_fits_fn(const void *context, const char *name, const char *file);
void cut_name_where(named_file *pair, cut_fits_fn *fits, const void *context);

/* A requested report format and its file; "-" is stdout. */
typedef struct form_file {
    prony_format format;
    const char *chart; /* of PRONY_FORMAT_SVG */
    const char *file;
} form_file;

/* The parsed command line. Arrays are owned; strings point into argv. */
typedef struct options {
    const char *command;
    int argc; /* the command line without the command, in getopt's order; argv[0] is the program */
    char **argv;
    char **words; /* of the command line, rewritten */
    size_t word_count;
    const char **arguments; /* MODEL, DIR… */
    size_t argument_count;
    int intra_op, inter_op; /* as the session's: 0 is auto and one worker */
    const char *affinity;
    int64_t batch; /* 0: not given */
    prony_dim *dims;
    size_t dim_count;
    prony_dim *max_dims;
    size_t max_dim_count;
    prony_named_shape *shapes;
    size_t shape_count;
    named_file *inputs;
    size_t input_count;
    uint64_t seed;
    int64_t runs, warmup; /* runs 0, warmup -1: decided by the measurement */
    double seconds;       /* 0: default */
    const char *precision;
    int_list batches, intra_ops, inter_ops; /* of bench and scale: the lists of -b, -x and -y; a single value is also
                                               stored above */
    const char **precisions;
    size_t precision_count;
    unsigned levels;
    int64_t top;
    bool all;
    const char *sort, *filter, *count;
    int64_t depth;           /* of the module table; 0: all */
    const char **from, **to; /* tensors at which a submodel is cut */
    size_t from_count, to_count;
    const char *output;      /* of extract */
    const char *data_folder; /* of external data; NULL: the model's */
    const char *json, *output_dir;
    form_file *forms; /* formats besides text and JSON */
    size_t form_count;
    const char **thresholds; /* METRIC:VALUE, checked */
    size_t threshold_count;
    double noise; /* of compare; 0: default */
    bool ignore_load, strict;
    bool preprocess; /* an image option was given */
    prony_image_options image;
    int64_t topk;                 /* 0: not given */
    const char *labels;           /* file of class names */
    const char *preprocess_list;  /* as given */
    int64_t processes;            /* of scale: of each configuration; of profile and bench; 0: default */
    bool one_process;             /* it is one of several: it only writes its report to stdout */
    double budget, timeout;       /* of scale, seconds; 0: none, default */
    const char *repeat;           /* of scale: an earlier study */
    const char *ort_lib;          /* of versus: a file; NULL: looked for */
    bool weak, resume, overwrite; /* of scale */
    int_list replicas;            /* of scale: processes at once */
    bool barrier;                 /* of worker: waits before it measures */
    const char *memory_limit;     /* as given; NULL: not given */
    const char *metrics;          /* of compare and metrics: keys, comma-separated */
    const char *scenario;         /* of bench; NULL: none */
    int64_t streams, max_batch, samples_per_query; /* 0: not given */
    int64_t batch_window_ns;                       /* -1: not given */
    int64_t latency_bound_ns;                      /* 0: not given */
    double rate, percentile;                       /* arrivals per second; 0.99; 0: not given */
    bool with_load;
    const char *time_limit;                /* as given; NULL: none */
    int64_t time_limit_ns, max_loop_trips; /* 0: none */
    bool copy_model;
    bool accuracy;
    int64_t accuracy_samples; /* 0: of every operator */
    const char *reference;    /* of --accuracy: another model; NULL: the model itself */
    named_file *against;      /* name NULL: none was given */
    size_t against_count;
    const char *calibrate, *calibrate_method; /* data or a calibration; NULL: none, minmax */
    double keep_accuracy;                     /* fraction of the outputs' range; 0: not given */
    bool power_of_two;
    bool counters, memory, quiet, no_color, no_progress, no_rewrites, no_reuse, no_help, fresh, tune, detailed;
} options;

/* 0, or EXIT_USAGE after a message; EXIT_DONE + 1 … never. *stop is set after --help and --version. */
int options_parse(options *o, int argc, char **argv, bool *stop);
void options_free(options *o);

/* Called around main. command_end returns the exit status: EXIT_FAILED if stdout could not be written. */
void command_begin(void);
int command_end(int status);

/* ---- shared by subcommands ---- */

/* Writes text that may come from a model file: control characters, which could control a terminal, become '?'. */
void put_text(FILE *to, const char *text);
/* Writes text on stdout from `column` on. Lines are broken at blanks and after commas at the terminal's width; further
 * lines begin at `indent`. */
void put_wrapped(const char *text, int column, int indent);
/* Prints "prony COMMAND: message" and returns EXIT_FAILED. */
int report_error(const options *o, const prony_error *error);
int fail(const options *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

prony_session_options session_options(const options *o);
/* What to do with images; NULL: the defaults. */
const prony_image_options *image_options(const options *o);
/* Loads a model as options say. */
prony_status load_model(const options *o, prony_model **model, const char *path, prony_error *error);
/* true: o->precision needs a quantized model and this one is not. */
bool wants_codes(const options *o, const prony_model *model);
/* The path of --calibrate's file of ranges; the caller frees it. NULL: out of memory. */
char *calibration_path(const options *o);
/* The quantized form of a model, as the options say. */
int quantize_model(const options *o, prony_model *model, prony_model **out);
/* Replaces *model by its quantized form if the options need it. */
int quantize_in_place(const options *o, prony_model **model);
/* Loads the one model argument and creates a session with its inputs bound. */
int open_session(const options *o, prony_model **model, prony_session **session, bool profile);
/* As above on a model that is loaded. */
int make_session(const options *o, prony_model *model, prony_session **session, bool profile);

/* Writes text on stdout (unless a format goes there, or -q), JSON to --json's file, and the other formats. */
int write_report(const options *o, prony_report *report);
/* Applies --count to the report. */
int apply_count(const options *o, prony_report *report);
prony_write_options write_options(const options *o);
/* true: a format other than text goes to stdout. */
bool stdout_taken(const options *o);
/* true: one of the formats shows the arena's events. */
bool forms_need_events(const options *o);
/* Writes the requested formats, each to its file. Files are written completely or not at all. */
int write_forms(const options *o, const prony_report *report);
/* Writes every format, under its default name, into --output-dir. */
int write_all_forms(const options *o, const prony_report *report);
/* Creates --output-dir if need be. */
int make_output_dir(const options *o);
/* Terminal width, colour and progress depend on the stream and the environment. */
int terminal_width(void);
bool want_color(const options *o);
bool want_progress(const options *o);
/* Progress callback of prony_profile_options; user is the options. */
void show_progress(void *user, int64_t runs, double seconds, double relative_error);
/* show: replaces the progress line. clear: blanks the progress line, if shown. */
void show_progress_text(const char *text);
void clear_progress(void);
prony_profile_options profile_options(const options *o);
/* Creates DIR if need be and saves every output as DIR/output_K.npy. */
int save_outputs(const options *o, const prony_model *model, const prony_session *session);

/* Appends " (assumed: batch=1)" to line 1, which ends before `column`, if free dimensions were assumed. */
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
int command_extract(const options *o);
int command_quantize(const options *o);
int command_manual(const options *o);
int command_completion(const options *o);
int command_metrics(const options *o);
int command_scale(const options *o);
int command_versus(const options *o);
/* Processes that `scale` and `versus` start. */
int command_worker(const options *o);
int command_peer(const options *o);

#endif
