/* The JSON document of a subcommand that does not write a report, and the tables made of it. */
#ifndef PRN_BENCH_SESSION_DOCUMENT_H
#define PRN_BENCH_SESSION_DOCUMENT_H

#include "bench/terminal/json_file.h"

/* The JSON is written to `stream`; NULL while neither --json nor another format is wanted. */
typedef struct document {
    FILE *stream;
    char *text;
    size_t size;
    json_file json; /* opened before anything is shown: a file that cannot be written ends the command */
} document;

/* EXIT_DONE, or EXIT_FAILED after a message. */
int document_open(document *d, const options *o);
/* Writes the JSON where --json says and its tables as --csv, --markdown, --html and --junit say; keeps its runs
 * where --history says. Returns `code`, or
 * EXIT_FAILED after a message. */
int document_close(document *d, const options *o, int code);

#endif
