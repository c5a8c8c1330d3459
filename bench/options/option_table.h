/* Between the command line's parts: option_table.c has the tables, option_values.c reads values, options.c goes through
 * argv. */
#ifndef PRN_BENCH_OPTIONS_OPTION_TABLE_H
#define PRN_BENCH_OPTIONS_OPTION_TABLE_H

#include "bench/command.h"

#include <getopt.h>

/* Those with a letter are their letter. */
enum {
    OPT_AFFINITY = 256,
    OPT_DIM,
    OPT_SHAPE,
    OPT_LEVEL,
    OPT_TOP,
    OPT_ALL,
    OPT_SORT,
    OPT_FILTER,
    OPT_JSON,
    OPT_OUTPUT_DIR,
    OPT_MEMORY,
    OPT_MEMORY_LIMIT,
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
    OPT_NO_HELP,
    OPT_NO_REUSE,
    OPT_FRESH,
    OPT_THRESHOLD,
    OPT_NOISE,
    OPT_IGNORE_LOAD,
    OPT_STRICT,
    OPT_ONE_PROCESS,
    OPT_METRICS,
    OPT_PREPROCESS,
    OPT_TOPK,
    OPT_LABELS,
    OPT_DETAILED,
    OPT_PROCESSES,
    OPT_BUDGET,
    OPT_REPLICAS,
    OPT_BARRIER,
    OPT_TIMEOUT,
    OPT_REPEAT,
    OPT_RESUME,
    OPT_OVERWRITE,
    OPT_WEAK,
    OPT_PLOT,
    OPT_SCENARIO,
    OPT_STREAMS,
    OPT_MAX_BATCH,
    OPT_BATCH_WINDOW,
    OPT_SAMPLES_PER_QUERY,
    OPT_LATENCY_BOUND,
    OPT_RATE,
    OPT_PERCENTILE,
    OPT_WITH_LOAD,
    OPT_TIME_LIMIT,
    OPT_MAX_LOOP_TRIPS,
    OPT_MAX_DIM,
    OPT_COPY_MODEL,
    OPT_VERSION,
    OPT_DATA_FOLDER,
    OPT_FROM,
    OPT_TO,
    OPT_COUNTERS,
    OPT_ACCURACY,
    OPT_ACCURACY_SAMPLES,
    OPT_AGAINST,
    OPT_REFERENCE,
    OPT_ORT_LIB,
    OPT_CALIBRATE,
    OPT_CALIBRATE_METHOD,
    OPT_KEEP_ACCURACY,
    OPT_POWER_OF_TWO,
    OPT_TUNE,
    OPT_NONE /* behind the last */
};

/* Which options a subcommand takes; -x … -h are written as their letters. */
typedef struct command_row {
    const char *name, *arguments, *summary;
    int min_arguments, max_arguments;
    const char *letters;
    const int *others; /* ends with 0 */
} command_row;

extern const struct option long_options[];

/* The tables row by row, NULL behind the last one; without what `scale` starts its processes by. `option` 0: of every
 * command. */
const command_row *command_at(size_t index);
const char *option_help_at(size_t index, int *option);
/* NULL: there is none of that name. */
const command_row *find_command(const char *name);
/* What other tools call an option: "threads" for "intra-op". `word` has `length` bytes, without dashes. NULL: no such
 * name. */
const char *option_by_other_name(const char *word, size_t length);
/* The name nearest to a mistyped one: of a command, or of a long option that `command` takes. NULL: none is near. */
const char *nearest_command(const char *word);
const char *nearest_option(const command_row *command, const char *word);
bool command_takes(const command_row *command, int option);
/* Of one subcommand, or of all (NULL). */
void print_help(FILE *to, const command_row *command);

/* Says what is wrong, on stderr, and returns EXIT_USAGE. */
int usage(const options *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes an option's argument over, which it may cut in place. 0, or the exit status after a message. */
int option_take(options *o, int option, char *argument);
/* ---- option_parse.c ---- */

/* "5000" or "5k": a suffix k, M or G multiplies. */
bool parse_int(const char *text, int64_t min, int64_t max, int64_t *out);
/* "2", "60s", "500ms", "10m", "1h"; above 0. */
bool parse_duration(const char *text, double *seconds);
/* NAME=REST; cuts the text in place. NULL: it is not of that form. */
char *cut_name(char *text);
/* As cut_name, at the last '=': names may hold others, REST none. */
char *cut_name_last(char *text);
/* "1x3x224x224" or "scalar"; cuts it in place. */
bool parse_shape(char *text, prony_shape *out);

/* ---- */

/* --memory-limit, PRONY_MEMORY_LIMIT, or what is available less a margin becomes the process's bound. 0, or the exit
 * status after a message. */
int set_memory_limit(const options *o);
/* 0, or a message that names `who`: "--memory-limit". */
int check_memory_limit(const options *o, const char *who, const char *text);
/* Whether a word behind --threshold is one more of its values. */
bool is_more_threshold(const char *word);

#endif
