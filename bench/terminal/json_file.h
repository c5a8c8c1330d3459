/* Where --json goes in subcommands whose result is no report: stdout, or a file that appears whole or not at all. */
#ifndef PRN_BENCH_TERMINAL_JSON_FILE_H
#define PRN_BENCH_TERMINAL_JSON_FILE_H

#include "bench/command.h"

/* Zero-initialise. `stream` is NULL while no JSON is wanted. */
typedef struct json_file {
    FILE *stream;
    char *target, *temporary; /* NULL: written in place */
} json_file;

/* EXIT_DONE, also where --json was not given; otherwise EXIT_FAILED after a message. */
int json_open(json_file *file, const options *o);
/* Begins the document's object with its "schema" and when it is written ("created", UTC); members follow, each behind a
 * comma. */
void json_begin(const json_file *file, const char *schema);
/* Puts the file in place and returns `code`, or EXIT_FAILED after a message. */
int json_close(json_file *file, const options *o, int code);
/* A JSON string, quoted and escaped; bytes that are no UTF-8 become U+FFFD. */
void json_text(FILE *to, const char *text);

#endif
