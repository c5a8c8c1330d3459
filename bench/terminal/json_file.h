/* Output of --json in subcommands without a report: stdout, or a file that is written completely or not at all. */
#ifndef PRN_BENCH_TERMINAL_JSON_FILE_H
#define PRN_BENCH_TERMINAL_JSON_FILE_H

#include "bench/command.h"

/* Zero-initialise. `stream` is NULL while no JSON is wanted. */
typedef struct json_file {
    FILE *stream;
    char *target, *temporary; /* NULL: written in place */
} json_file;

/* EXIT_DONE, also without --json; otherwise EXIT_FAILED after a message. */
int json_open(json_file *file, const options *o);
/* Begins the document's object with its "schema" and the time of writing ("created", UTC). Members follow, each after a
 * comma. */
void json_begin(FILE *to, const char *schema);
/* Puts the file in place and returns `code`, or EXIT_FAILED after a message. */
int json_close(json_file *file, const options *o, int code);
/* A JSON string, quoted and escaped; invalid UTF-8 becomes U+FFFD. */
void json_text(FILE *to, const char *text);

#endif
