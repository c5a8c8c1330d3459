/* The command line as tables: a row an option, a row a command. Parsing (options.c, option_values.c), help
 * (option_help.c), manual pages, completion and docs/reference/options.md (bench/commands/manual.c) follow from the
 * rows. */
#ifndef PRN_BENCH_OPTIONS_OPTION_TABLE_H
#define PRN_BENCH_OPTIONS_OPTION_TABLE_H

#include "bench/command.h"

/* Defaults that depend on the model, so that they are no `initial`: a command applies them, and the option's row shows
 * them. */
#define DEFAULT_CAPACITY_BATCH 8
#define DEFAULT_TEXT_OF(number) #number
#define DEFAULT_TEXT(number) DEFAULT_TEXT_OF(number)

/* In the order of option_table.c's rows, which is the order of the help. */
typedef enum command_id {
    COMMAND_INSPECT,
    COMMAND_RUN,
    COMMAND_PROFILE,
    COMMAND_BENCH,
    COMMAND_SCALE,
    COMMAND_VERSUS,
    COMMAND_COMPARE,
    COMMAND_CHECK,
    COMMAND_RECOMMEND,
    COMMAND_METRICS,
    COMMAND_EVAL,
    COMMAND_EXTRACT,
    COMMAND_QUANTIZE,
    COMMAND_SERVE,
    COMMAND_CAPACITY,
    COMMAND_VERIFY,
    COMMAND_OPS,
    COMMAND_MACHINE,
    COMMAND_DEVICES,
    COMMAND_HISTORY,
    COMMAND_COMPLETION,
    COMMAND_MANUAL,
    COMMAND_LISTED, /* the commands above stand in the help; `scale` and `versus` start the processes below */
    COMMAND_WORKER = COMMAND_LISTED,
    COMMAND_PEER,
    COMMAND_COUNT
} command_id;

enum { COMMAND_EXAMPLES = 4 };

typedef struct command_row {
    const char *name, *arguments, *summary;
    int min_arguments, max_arguments;       /* max -1: any number */
    const char *examples[COMMAND_EXAMPLES]; /* arguments of `prony`; NULL ends them */
} command_row;

typedef enum option_type {
    OPTION_FLAG,    /* bool: no value */
    OPTION_TEXT,    /* const char *; `choices`, if any, are suggestions */
    OPTION_CHOICE,  /* const char *: one of `choices` */
    OPTION_CHOICES, /* unsigned: a bit for each of `choices`, comma-separated */
    OPTION_INT,     /* int64_t from `least` to `most` */
    OPTION_INTS,    /* int_list of such numbers */
    OPTION_NUMBER,  /* double from `least` to `most` */
    OPTION_PERCENT, /* double: the value / 100, from `least` to `most` per cent; the percent sign may be left out */
    OPTION_SECONDS, /* double above 0: 2, 500ms, 10m */
    OPTION_TIME,    /* int64_t nanoseconds from `least`: 20ms */
    OPTION_TEXTS,   /* array of const char *, repeatable */
    OPTION_DIMS,    /* array of prony_dim, repeatable: NAME=N with N from `least` */
    OPTION_EXPORT,  /* a file in the format `least` */
    OPTION_PARSED,  /* `parse` reads the value */
    OPTION_HELP,    /* prints help; with `least` 1 all options */
    OPTION_VERSION
} option_type;

/* The help that shows an option. */
typedef enum option_rank {
    OPTION_FIRST,   /* `prony --help` */
    OPTION_COMMON,  /* and `prony COMMAND --help` */
    OPTION_RARE,    /* --help-all, manual page, reference */
    OPTION_INTERNAL /* nowhere: between processes of one measurement */
} option_rank;

typedef enum option_group {
    GROUP_MODEL,
    GROUP_THREADS,
    GROUP_MEASURING,
    GROUP_LOAD,
    GROUP_SERVICE,
    GROUP_GENERATION,
    GROUP_PRECISION,
    GROUP_KERNELS,
    GROUP_VERDICTS,
    GROUP_REPORT,
    GROUP_FILES,
    GROUP_LIMITS,
    GROUP_TERMINAL,
    GROUP_COUNT
} option_group;

struct option_row;
/* May cut the text. 0, or the exit status after a message. */
typedef int option_parse_fn(options *o, const struct option_row *row, char *text);

/* Rows may share a name or a letter if no command takes both: the value or the default then differs by command. */
typedef struct option_row {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    option_rank rank;
    option_group group;
    uint32_t commands; /* bits 1 << command_id */
    option_type type;
    size_t field, count_field; /* offsets in options; count_field: of arrays */
    double least, most;
    const char *choices; /* comma-separated */
    option_parse_fn *parse;
    const char *value;     /* name of the value in the help; NULL: no value */
    const char *help;      /* at most OPTION_HELP_WIDTH characters */
    const char *details;   /* more of it, for the manual page and --help-all */
    const char *initial;   /* default that is set like a given value; NULL: none */
    const char *otherwise; /* words for the default, if none is set */
    const char *wanted;    /* for messages; NULL: made from type and range */
    const char *aliases;   /* names in other tools, separated by blanks */
} option_row;

enum { OPTION_HELP_WIDTH = 160 };

/* Row `index`, NULL behind the last one. */
const command_row *command_at(size_t index);
const option_row *option_at(size_t index);
const char *group_title(option_group group);

/* NULL: unknown. */
const command_row *find_command(const char *name);
command_id command_id_of(const command_row *command);
/* Without a command (NULL): one of any command. */
bool command_takes(const command_row *command, const option_row *row);
/* By name, alias or abbreviation; NULL: unknown, or *several. A row of another command if this one has none. */
const option_row *find_long(const command_row *command, const char *name, bool *several);
const option_row *find_letter(const command_row *command, int letter);
/* The name nearest to a mistyped one; aliases count. NULL: none is near. */
const char *nearest_command(const char *word);
const char *nearest_option(const command_row *command, const char *word);

/* The next item of a list such as "a,b,c"; its length, 0 at the end. *list moves on. */
size_t next_item(const char **list, char separator, const char **item);

/* "bench, scale": the listed commands among these bits. */
const char *command_list(uint32_t commands, char *text, size_t size);
/* Of one command, or of all (NULL); `all` shows options of rank OPTION_RARE too. */
void print_help(FILE *to, const command_row *command, bool all);
/* "(default 20)" behind an option's help; empty without a default. */
const char *option_default(const option_row *row, char *text, size_t size);

/* Prints the message on stderr and returns EXIT_USAGE. */
int usage(const options *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes a value, which it may cut in place. 0, or the exit status after a message. */
int option_take(options *o, const option_row *row, char *text);
/* Sets `initial` of every row that the command takes. */
int options_begin(options *o, const command_row *command);

/* ---- parse functions of rows, in option_values.c ---- */

option_parse_fn parse_threads, parse_workers, parse_thread_list, parse_worker_list, parse_batches, parse_precisions,
    parse_affinity, parse_named_shape, parse_input, parse_preprocess, parse_against, parse_filter, parse_metrics,
    parse_threshold, parse_generate, parse_graph, parse_chart, parse_plot, parse_memory_limit, parse_time_limit,
    parse_age, parse_size;

/* ---- option_parse.c ---- */

/* "5000" or "5k": a suffix k, M or G multiplies. */
bool parse_int(const char *text, int64_t min, int64_t max, int64_t *out);
/* "2", "60s", "500ms", "10m", "1h"; above 0. */
bool parse_duration(const char *text, double *seconds);
/* NAME=REST; cuts the text in place. NULL: it has another form. */
char *cut_name(char *text);
/* As cut_name, at the last '=': names may hold others, REST none. */
char *cut_name_last(char *text);
/* "1x3x224x224" or "scalar"; cuts it in place. */
bool parse_shape(char *text, prony_shape *out);

/* ---- memory_limit.c ---- */

/* Sets the process's memory limit: --memory-limit, else PRONY_MEMORY_LIMIT, else the available memory less a margin. 0,
 * or the exit status after a message. */
int set_memory_limit(const options *o);
/* 0, or a message that names `who`: "--memory-limit". */
int check_memory_limit(const options *o, const char *who, const char *text);

#endif
