/* The `prony` command: one file per subcommand, all on prony.h alone. Options mean the same everywhere. */
#ifndef PRN_BENCH_COMMAND_H
#define PRN_BENCH_COMMAND_H

#include "prony.h"

#include <stdio.h>

/* Exit status, a promise to scripts. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_VERDICT = 3 };

typedef struct named_file {
    const char *name, *file;
} named_file;

/* What the command line said. Arrays are owned; strings point into argv. */
typedef struct options {
    const char *command;
    const char **arguments; /* MODEL, DIR… */
    size_t argument_count;
    int intra_op, inter_op; /* 0: auto */
    const char *affinity;
    int64_t batch; /* 0: not given */
    prony_dim *dims;
    size_t dim_count;
    prony_named_shape *shapes;
    size_t shape_count;
    named_file *inputs;
    size_t input_count;
    uint64_t seed;
    int64_t runs, warmup; /* runs 0, warmup -1: decided by the measurement */
    double seconds;       /* 0: default */
    const char *precision;
    unsigned levels;
    int64_t top;
    const char *sort, *filter;
    const char *json, *output_dir;
    bool memory, quiet, no_color, no_progress, no_rewrites;
} options;

/* 0, or EXIT_USAGE after a message; EXIT_DONE + 1 … never. *stop is set after --help and --version. */
int options_parse(options *o, int argc, char **argv, bool *stop);
void options_free(options *o);

/* ---- shared by subcommands ---- */

/* Text that may come from a model file: control characters, with which it could steer a terminal, become '?'. */
void put_text(FILE *to, const char *text);
/* Prints "prony COMMAND: message" and returns EXIT_FAILED. */
int report_error(const options *o, const prony_error *error);
int fail(const options *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

prony_session_options session_options(const options *o);
/* Loads the one model argument and creates a session with its inputs bound. */
int open_session(const options *o, prony_model **model, prony_session **session, bool profile);

/* Text on stdout (unless --json - or -q) and JSON where --json says. */
int write_report(const options *o, const prony_report *report);
/* Terminal width, colour and progress follow the stream and the environment. */
int terminal_width(void);
bool want_color(const options *o);
bool want_progress(const options *o);
/* Progress callback of prony_profile_options; user is the options. */
void show_progress(void *user, int64_t runs, double seconds, double relative_error);
void clear_progress(const options *o);
prony_profile_options profile_options(const options *o);
/* Creates DIR if need be and saves every output as DIR/output_K.npy. */
int save_outputs(const options *o, const prony_model *model, const prony_session *session);

/* ---- subcommands ---- */

int command_inspect(const options *o);
int command_run(const options *o);
int command_profile(const options *o);
int command_bench(const options *o);
int command_verify(const options *o);
int command_ops(const options *o);

#endif
